"""`dpsql init`: a first policy file, from the schema alone, or a template's."""

from __future__ import annotations

import os
import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import PolicyError
from ..policy.model import SPARK
from ..words import terminal_text
from .faults import tell
from .owner import public_keys, public_ranges, read_live_schema, with_lookup_keys, write_private
from .settings import CommandSettings, pass_settings

if TYPE_CHECKING:
    from ..policy import FileSources

_NEXT = """\
Wrote {path}. Next:
  1. fill in what it asks for, from what you know of the subject and never from the data
  2. dpsql -P {path} check            says what an analyst may do, and what is missing
  3. dpsql -P {path} budget create    makes the ledger, once
  4. dpsql -P {path} query            asks"""
_TEMPLATES = ("course", "hospital", "hr", "statistics")
"""Policies that are written out, in `dpsql/cli/templates`."""
_NEXT_OF_TEMPLATE = """\
Wrote {path}. Next:
  1. read it: put your tables and columns in place of its own, and bounds that you know of the subject
  2. dpsql -P {path} check            says what differs from the database, {database}
  3. dpsql -P {path} check --preview  says how far off answers would be
  4. dpsql -P {path} budget create    makes the ledger, once"""
_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson")
_PATTERN = frozenset("*?[")
_DUCKDB = (".duckdb", ".ddb", ".db")
_MOST_SAID = 20


@click.command()
@click.argument("sources", nargs=-1)
@click.option(
    "--template", type=click.Choice(_TEMPLATES),
    help="A whole policy with comments, for a kind of data, to be edited; of SOURCES it takes one database, or none.",
)  # fmt: skip
@click.option(
    "--public", "public", multiple=True, metavar="TABLE",
    help="A table that is nobody's data: it is declared so, with the bounds of its numbers, and where others point at "
    "it its keys are listed.",
)  # fmt: skip
@click.option(
    "--force", is_flag=True, help="Write over a policy that exists; it is kept beside, as FILE.old."
)
@pass_settings
def init(
    settings: CommandSettings,
    sources: tuple[str, ...],
    template: str | None,
    public: tuple[str, ...],
    force: bool,
) -> None:
    """Write a first policy file for SOURCES: a database, such as duckdb:campus.duckdb, or data files.

    \b
      dpsql init duckdb:campus.duckdb
      dpsql init postgresql://dpsql@db.example/shop --public country
      dpsql init visits.parquet patients.csv 'events/*.parquet'
      dpsql init spark://lake.example/sales
      dpsql init spark://lake.example 's3a://lake/orders/*.parquet'
      dpsql init --template hospital

    A file, a folder of Parquet files or a pattern is a table; CSV files and JSON lines are converted to Parquet
    beside them first. A relative path counts from the current folder. The policy goes where --policy says, for its
    owner alone; one that exists is kept, but with --force. Only the schema is read, and never the data (but for the
    tables that --public names): bounds are left for the owner to fill in, since a bound that was read off the data
    tells of the data.
    """
    path = settings.policy_path
    if template is not None:
        text = _template(template, sources, public, path)
        _write(path, text, force, f"--template {template}")
        tell(_NEXT_OF_TEMPLATE.format(path=path, database=tomllib.loads(text)["database"]))
        return
    if not sources:
        raise click.UsageError("Name a database or files, or a --template.")
    _refuse_to_lose(path, force, " ".join(sources))
    from ..policy import left_out, scaffold

    url, files = _what_is_named(sources, path)
    live = read_live_schema(url, files)
    if public and (files is not None or url.startswith(SPARK)):
        live = with_lookup_keys(url, files, live, public)
    keys = {name: public_keys(url, files, live, name) for name in public}
    ranges = {name: public_ranges(url, files, live, name) for name in public}
    tables = None if files is None else files.tables
    _write(
        path,
        scaffold(live, url if files else _from_folder(url, path.parent), tables, keys, ranges),
        force,
        " ".join(sources),
    )
    _tell_left_out(left_out(live))
    tell(_NEXT.format(path=path))


def _template(name: str, sources: tuple[str, ...], public: tuple[str, ...], path: Path) -> str:
    """Return a template's text, over the database that is named, if one is. Raises click.UsageError."""
    from ..policy.model import ENGINES

    text = resources.files("dpsql").joinpath("cli", "templates", f"{name}.toml").read_text("utf-8")
    if public:
        raise click.UsageError("--template writes its own tables; say in the policy which are public.")
    if not sources:
        return text
    url, files = _what_is_named(sources, path) if _is_a_database(sources[0]) else ("", None)
    if files is not None or url.partition(":")[0] not in ENGINES:
        raise click.UsageError(
            "--template takes one database, such as duckdb:my.duckdb or postgresql://…, and no files."
        )
    written = _from_folder(url, path.parent).replace("\\", "\\\\").replace('"', '\\"')
    return re.sub(
        r'^database = "[^"]*"', lambda _: f'database = "{written}"', text, count=1, flags=re.MULTILINE
    )


def _is_a_database(source: str) -> bool:
    return ":" in source or Path(source).suffix.lower() in _DUCKDB


def _refuse_to_lose(path: Path, force: bool, words: str) -> None:
    """Raise click.UsageError where a policy would be written over that is not to be, or that cannot be kept beside."""
    old = _beside(path)
    if path.exists() and force and old.exists():
        raise click.UsageError(f"{old} exists, and is what was written over before. Move it away first.")
    if path.exists() and not force:
        raise click.UsageError(
            f"{path} exists. Write over it with --force, or name another file: dpsql -P other.toml init {words}"
        )


def _write(path: Path, text: str, force: bool, words: str) -> None:
    """Write a policy, one that exists being kept beside. Raises click.UsageError."""
    _refuse_to_lose(path, force, words)
    try:
        if path.exists():
            os.replace(path, _beside(path))
        write_private(path, text)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}") from None


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.old")


def _tell_left_out(said: tuple[str, ...]) -> None:
    for one in said[:_MOST_SAID]:
        tell(f"left out: {terminal_text(one)}")
    if said[_MOST_SAID:]:
        tell(f"left out: {len(said) - _MOST_SAID} more, which are named at the end of the policy")


def _what_is_named(sources: tuple[str, ...], path: Path) -> tuple[str, FileSources | None]:
    """Return the database's URL, or "duckdb:" and the files. Raises click.UsageError, PolicyError."""
    from ..policy.model import ENGINES, FILES, FileSources

    if sources[0].startswith(SPARK):
        return sources[0], _paths_on_spark(sources[1:], path)
    is_url = [source.partition(":")[0] in ENGINES and ":" in source for source in sources]
    if any(is_url) or (":" in sources[0] and not Path(sources[0]).exists()):
        if len(sources) > 1:
            raise click.UsageError("Name one database, or files. Each policy is of one database.")
        return sources[0], None
    if len(sources) == 1 and Path(sources[0]).suffix.lower() in _DUCKDB:
        return f"duckdb:{sources[0]}", None
    tables: dict[str, tuple[str, ...]] = {}
    for source in sources:
        name, pattern = _table_of(source)
        if name in tables:
            raise click.UsageError(
                f"{source}: another table is called {name} already. Rename one, or name both by one pattern in quotes."
            )
        tables[name] = (os.path.relpath(pattern, path.parent),)
    return FILES, FileSources(path.absolute().parent, tables, path.with_name(f"{path.stem}-files.json"))


def _paths_on_spark(sources: tuple[str, ...], path: Path) -> FileSources | None:
    """Return the Parquet files that a Spark's server sees, as tables; None for its catalog. Raises click.UsageError."""
    from ..policy.model import FileSources

    tables: dict[str, tuple[str, ...]] = {}
    for source in sources:
        if not source.lower().endswith(".parquet"):
            raise click.UsageError(
                f"{source}: name Parquet files as the server sees them: /data/orders/*.parquet"
            )
        name = _table_of(source)[0]
        tables[name] = (*tables.get(name, ()), source)
    record = path.with_name(f"{path.stem}-tables.json")
    return FileSources(path.absolute().parent, tables, record) if tables else None


def _table_of(source: str) -> tuple[str, str]:
    """Return a table's name and the pattern of its Parquet files; a file of text is converted first."""
    file = Path(source)
    if file.is_dir():
        return _named(file.resolve().name, source), str(file / "*.parquet")
    ending = file.suffix.lower()
    if _PATTERN.intersection(source):
        if ending != ".parquet":
            raise click.UsageError(
                f"{source}: a pattern is of Parquet files. Convert the others first: dpsql convert"
            )
        within = [
            part
            for part in file.parent.parts
            if not _PATTERN.intersection(part) and part not in (".", "..", "/")
        ]
        plain = file.stem.strip("*?-_. ")
        return _named(within[-1] if within else plain or "data", source), source
    if ending == ".parquet":
        return _named(file.stem, source), source
    if ending not in _TEXTS:
        raise click.UsageError(
            f"{source}: is no database and no data file. Write duckdb:{source} for a DuckDB file, or name Parquet, CSV "
            "or JSON-lines files."
        )
    return _named(file.stem, source), str(_converted(file))


def _converted(file: Path) -> Path:
    """Return the Parquet file beside a file of text, written now. Raises PolicyError, click.UsageError."""
    from ..backends.convert_files import convert

    target = file.with_suffix(".parquet")
    if target.exists():
        raise click.UsageError(
            f"{target} exists already. Name it in place of {file}, or write it anew: dpsql convert {file}"
        )
    if not file.exists():
        raise PolicyError(f"{file}: there is no such file", hint="name a file that is there")
    done = convert(file)
    tell(f"{terminal_text(str(done.target))}: {done.rows} rows converted")
    return done.target


def _named(stem: str, source: str) -> str:
    name = re.sub(r"[^\w]+", "_", stem).strip("_").lower()
    if not name:
        raise click.UsageError(f"{source}: its name makes no table's name. Rename it.")
    return name


def _from_folder(database_url: str, folder: Path) -> str:
    """Return the URL as the policy file must have it: a relative path counts from the file's own folder."""
    scheme, _, rest = database_url.partition(":")
    if scheme != "duckdb" or Path(rest).is_absolute():
        return database_url
    return f"{scheme}:{os.path.relpath(rest, folder)}"
