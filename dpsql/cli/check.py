"""`dpsql init`: a first policy file, from the schema alone, or a template's; and `dpsql check`: the policy file and the
live database, looked at together.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import click

from ..errors import LedgerError, LedgerMissing, PolicyError
from ..policy.model import SPARK
from ..regex import regex
from ..words import terminal_text
from .faults import error_text, exit_code, tell
from .owner import (
    key_checks,
    looked,
    looks_of_values,
    public_keys,
    public_ranges,
    read_live_schema,
    with_lookup_keys,
    write_private,
)
from .terminal import CommandSettings, json_option, pass_settings, say

if TYPE_CHECKING:
    from ..backends import Finding
    from ..budget import KeyCheck
    from ..engine.asserted_keys import FoundKey, Orphans
    from ..engine.stored import Retired
    from ..policy import FileSources, LiveSchema, Policy, Report
    from ..relation.catalog import Catalog


# --- whether what dpsql is built on is what it was tested with, by dpsql's own requirements -----------------


_NAME = regex(r"([\w.-]+)(?:\[[^]]*\])?")
_FLOOR = regex(r">=\s*([0-9.]+)")
_CEILING = regex(r"<=\s*([0-9.]+)")


def untested() -> Iterator[str]:
    """Yield a sentence for each package that is newer than the newest that dpsql was tested with.

    An installer that keeps to the requirements lets none be; one that was told not to does.
    """
    for name, bounds, _ in _requirements():
        installed, ceiling = _installed(name), _CEILING.search(bounds)
        if installed and ceiling and _numbers(installed) > _numbers(ceiling[1]):
            yield f"{name} {installed} is installed, and dpsql is tested up to {ceiling[1]}"


def missing_or_old() -> Iterator[str]:
    """Yield a sentence for each package that dpsql needs and that is not there, or older than it can be."""
    for name, bounds, is_optional in _requirements():
        installed, floor = _installed(name), _FLOOR.search(bounds)
        if installed is None and not is_optional:
            yield f"{name} is not installed"
        elif installed and floor and _numbers(installed) < _numbers(floor[1]):
            yield f"{name} {installed} is installed, and dpsql needs {floor[1]}"


def _requirements() -> Iterator[tuple[str, str, bool]]:
    """Yield of each requirement its name, the bounds on its version, and whether it is an optional part's."""
    try:
        requirements = metadata.requires("dpsql") or []
    except metadata.PackageNotFoundError:  # run from its source
        return
    for requirement in requirements:
        bounds, _, marker = requirement.partition(";")
        if found := _NAME.match(bounds):
            yield found[1], bounds, "extra" in marker


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", version))


# --- what `dpsql check` says of asserted keys ---------------------------------------------------------------


_NOT_YET = "not verified for the data as it is, and nothing is answered; run dpsql check --data"


Said = Iterator[tuple[str, str, bool]]
"""What is found of a table: its name, what is said, and whether that is a warning; else it is a note."""


def _with_said(report: Report, said: Said) -> Report:
    """Return the report with what is said of tables; a warning begins with the policy's key."""
    warnings, notes = list[str](), dict[str, list[str]]()
    for table, text, is_warning in said:
        if is_warning:
            warnings.append(f"{report.source}: tables.{table}{text}")
        else:
            notes.setdefault(table, []).append(text)
    return report.more(warnings=warnings, notes=notes)


def _values(policy: Policy, live: LiveSchema) -> Said:
    """Yield a warning for each column of a public table whose values look like a person's.

    The values are the owner's to see, and none is said. Raises PolicyError.
    """
    for name, column, look in looks_of_values(policy, live):
        text = (
            f': is public, so its rows are shown as they are, and the values of "{column}" look like {look}; if they '
            "are of people, write unit = …"
        )
        yield name, text, True


def _complete(policy: Policy, catalog: Catalog, *, is_recorded: bool) -> Said:
    """Yield how many rows have another value than a column that is `complete`. Raises PolicyError."""
    from ..engine.asserted_keys import look_at_columns

    if not any(column.is_complete for table in catalog.tables.values() for column in table.columns):
        return
    for one in looked(look_at_columns, policy, is_recorded, catalog):
        if one.others:
            text = (
                f".columns.{one.column}.complete: {one.others:,} of {one.rows:,} rows have another value, or NULL: "
                "totals and groups will not agree; list it, or take complete out"
            )
            yield one.table, text, True
        else:
            yield one.table, f'"{one.column}" is complete, in all {one.rows:,} rows', False


def _ranges(policy: Policy, catalog: Catalog, *, is_recorded: bool) -> Said:
    """Yield how many rows are of people outside a table's `unit_range`. Raises PolicyError."""
    from ..engine.asserted_keys import look_at_ranges

    if not any(table.unit_range is not None for table in policy.tables.values()):
        return
    for one in looked(look_at_ranges, policy, is_recorded, catalog):
        if one.outside:
            text = (
                f'.unit_range: {one.outside:,} of {one.rows:,} rows are of people whose "{one.column}" is outside, and '
                "are never counted"
            )
            yield one.table, text, True
        else:
            yield one.table, f'"{one.column}" is in its range, in all {one.rows:,} rows', False


def _times(policy: Policy, *, is_recorded: bool) -> Said:
    """Yield the rows that are of no period, and of one that has not begun. Raises PolicyError."""
    from ..engine.asserted_keys import look_at_times

    time = policy.privacy.time
    if time is None:
        return
    today = datetime.now(UTC).astimezone(ZoneInfo(time.zone)).date()
    for one in looked(look_at_times, policy, is_recorded, today):
        for count, said in (
            (one.without, f'have no "{one.column}", and are never counted'),
            (one.before, f"are of before {time.since}, and are never counted"),
            (one.later, f"are of a {time.period.value} that has not begun, and wait for it"),
            (
                one.elsewhere,
                f"have the first day of another {time.period.value} beside their number, and no count or sum by number "
                "counts them; dpsql prepare numbers them anew",
            ),
        ):
            if count:
                yield one.table, f".time: {count:,} of {one.rows:,} rows {said}", True
        if not (one.without or one.before or one.later or one.elsewhere):
            yield one.table, f'all {one.rows:,} rows have a "{one.column}" of some period', False


def _keys(policy: Policy, live: LiveSchema) -> Said:
    """Yield what the ledger has of the keys that are asserted. Raises LedgerError."""
    from ..engine.ledgers import open_ledger

    with closing(open_ledger(policy, create=False)) as ledger:
        for table in live.tables:
            if not table.asserted:
                continue
            name = live.name_of(table.path)
            found = ledger.key_check(name, table.asserted, table.version)
            is_held = found is not None and found.holds
            if found is not None and is_held:
                yield name, _verified(found, policy), False
            else:
                yield name, f".key: {_NOT_YET}", True


def _verified(check: KeyCheck, policy: Policy) -> str:
    what = "tables" if policy.is_on_spark else "files"
    return (
        f"({', '.join(check.columns)}), which you assert is a key, was verified on {check.at[:10]} for the {what} as "
        f"they are, at epoch {check.epoch}"
    )


def _with_data(report: Report, policy: Policy, *, has_ledger: bool) -> Report:
    """Return the report with what the rows say, and record it where there is a ledger.

    What the files, or the tables on Spark, were recorded as is what is read; where they are not recorded yet, as they
    are, and nothing is noted. Raises PolicyError, FilesChanged, LedgerError.
    """
    from ..engine.asserted_keys import look_at_keys, look_at_orphans

    files = policy.files
    assert files is not None, "keys are asserted of what is recorded"
    is_recorded = files.record.exists()
    found = looked(look_at_keys, policy, is_recorded)
    if is_recorded and has_ledger:
        _record(policy, found)
    notes: dict[str, list[str]] = {}
    for one in found:
        if one.holds:
            known = (
                "recorded" if is_recorded and has_ledger else "not recorded yet: dpsql budget create does it"
            )
            notes[one.table] = [f"({', '.join(one.columns)}) is a key of its {one.rows} rows; {known}"]
    for nobodys in looked(look_at_orphans, policy, is_recorded):
        if nobodys.rows:
            notes.setdefault(nobodys.table, []).append(_orphans_text(nobodys))
    return report.more((f"{one.problem}; nothing is answered" for one in found if not one.holds), notes=notes)


def _record(policy: Policy, found: tuple[FoundKey, ...]) -> None:
    from ..engine.ledgers import open_ledger

    with closing(open_ledger(policy, create=False)) as ledger:
        ledger.record_keys(key_checks(found))


def _orphans_text(found: Orphans) -> str:
    many = f"{found.rows} rows lead" if found.rows > 1 else "1 row leads"
    return f'{many} by "{found.column}" to no {found.references}: nobody\'s, and never counted'


# --- `dpsql check`: the policy file and the live database, looked at together -------------------------------


_NO_KEY = "no key is asserted, so --data has none to verify"
_OPEN = "others on this machine can read it, and the verifiers of passwords in it"
_NO_LEDGER = (
    "The ledger does not exist yet, and nothing is answered without it. For a new dataset: dpsql -P {path} budget "
    "create. One that was lost is restored, with its log, not made anew."
)


@click.command()
@click.option(
    "--preview",
    "is_preview",
    is_flag=True,
    help="Show how far off typical statements would be, and what the budget holds.",
)
@click.option(
    "--data",
    "is_data",
    is_flag=True,
    help="Verify the keys that the policy asserts of files and of tables on Spark, and complete columns; look at "
    "public tables' values.",
)
@json_option
@pass_settings
def check(settings: CommandSettings, is_preview: bool, is_data: bool) -> None:
    """Check the policy file against the live database.

    Says, for each table and column, what an analyst may do with it and what is still missing, and which
    rights dpsql's role has in the database that it should not have: all that is wrong in one round, with what to
    write. Reads the schema, never the data.
    Looks after the ledger too, and says how many stored answers an edit of the policy has retired, and what they cost.
    Ends with exit code 5 when the policy or the role must be mended, 7 when the ledger cannot be used; one that was
    not made yet is no fault.

    With `--preview` it says what analysts would get, before any budget is spent: how far off counts, sums and
    averages of each table would be for how many people, around the bounds and epsilon that are declared.

    With `--data` it reads the rows too, for the owner: whether the keys that the policy asserts of data files, or of
    tables on Spark, hold in them, which the ledger records for the data as they are, and how many rows lead to nobody.
    Nothing is answered before that. It counts the rows with another value than those of a column that is complete,
    and those of people outside a unit_range.
    On Spark it also compares every row with what was recorded. Of public tables it
    reads the first rows, and warns where their values look like people's: addresses, phone numbers, identifiers.
    """
    from ..engine.preview import preview, warnings_of
    from ..plan.views import build_catalog, view_reports
    from ..policy import check as check_policy
    from ..policy import inspect_policy
    from ..policy.catalog import check_access, seen_lines

    policy, wrong = inspect_policy(settings.policy_path)
    if policy is None:
        _tell_all(settings, wrong)
        return
    try:
        live = read_live_schema(policy.database, policy.files)
    except PolicyError as error:
        _tell_all(settings, (*wrong, error))
        return
    report = view_reports(check_policy(policy, live), policy, live)
    report = replace(report, problems=(*(error.message for error in wrong), *report.problems))
    catalog = None if report.problems else build_catalog(policy, live)
    if catalog is not None and (wrong_grants := check_access(policy, catalog)):
        report, catalog = replace(report, problems=tuple(error.message for error in wrong_grants)), None
    if catalog is not None and is_preview:
        shown = preview(policy, catalog)
        say(shown.to_json(), _lines(shown.to_text()))
        return
    if catalog is not None:
        report = report.more(warnings=warnings_of(policy, catalog))
        report = replace(report, analysts=seen_lines(policy, catalog))
    report = _with_deployment(report, policy, catalog, is_data=is_data)
    fault, gone = _in_ledger(policy, catalog)
    if gone is not None and gone.number:
        report = report.more(warnings=[f"{policy.source}: {gone.text(policy.privacy.accounting)}"])
    if catalog is not None and is_data and not report.problems:
        is_recorded = policy.files is not None and policy.files.record.exists()
        report = _with_said(report, _complete(policy, catalog, is_recorded=is_recorded))
        report = _with_said(report, _times(policy, is_recorded=is_recorded))
        report = _with_said(report, _ranges(policy, catalog, is_recorded=is_recorded))
    report = _with_keys(report, policy, live, fault, is_data=is_data)
    _tell_report(settings, report, fault, gone)


def _with_keys(
    report: Report, policy: Policy, live: LiveSchema, fault: LedgerError | None, *, is_data: bool
) -> Report:
    """Return a report with what is known of asserted keys, where the policy asserts some of data files.

    With `is_data` also with what the values of public tables look like.
    """
    if is_data and not report.problems and not policy.is_on_spark:
        report = _with_said(report, _values(policy, live))
    if policy.files is None or not policy.files.keys:
        has_complete = any(column.complete for table in policy.tables.values() for column in table.columns)
        has_range = any(table.unit_range is not None for table in policy.tables.values())
        is_idle = is_data and not (policy.is_on_spark or has_complete or has_range)
        return report.more(warnings=[f"{policy.source}: {_NO_KEY}"] if is_idle else [])
    if report.problems:
        return report
    if is_data:
        return _with_data(report, policy, has_ledger=fault is None)
    return _with_said(report, _keys(policy, live)) if fault is None else report


def _tell_report(
    settings: CommandSettings, report: Report, fault: LedgerError | None, gone: Retired | None
) -> None:
    """Print what was found, and end with the exit code that says it."""
    is_missing = isinstance(fault, LedgerMissing)
    problem = None if fault is None or is_missing else {"message": fault.message, "hint": fault.hint}
    body = {**report.to_json(), "has_ledger": not is_missing, "ledger_problem": problem}
    body["retired"] = None if gone is None else gone.to_json()
    lines = _lines(report.to_text())
    if fault is not None:
        text = _NO_LEDGER.format(path=settings.policy_path) if is_missing else error_text(fault)
        lines += ["", *text.split("\n")]
    say(body, lines)
    if report.problems or report.left_out:
        click.get_current_context().exit(5)
    if fault is not None and not is_missing:
        click.get_current_context().exit(exit_code(fault))


def _tell_all(settings: CommandSettings, wrong: tuple[PolicyError, ...]) -> None:
    """Tell what keeps the tables from being looked at; one error alone is told as every command tells it."""
    if len(wrong) == 1:
        raise wrong[0]
    problems = [error.message for error in wrong]
    say({"source": settings.policy_path.name, "problems": problems}, (f"problem: {one}" for one in problems))
    click.get_current_context().exit(5)


def _lines(text: str) -> list[str]:
    return text.rstrip().split("\n")


def _with_deployment(report: Report, policy: Policy, catalog: Catalog | None, *, is_data: bool) -> Report:
    """Return the report with what is wrong around the database: errors are problems, which keep it from serving.

    `catalog`: what is declared and there; None: not both fit. `is_data`: rows may be read.

    Raises EngineFailure.
    """
    from ..backends import open_backend
    from ..backends.backend import Severity
    from ..backends.duckdb_backend import copy_findings
    from ..policy import is_open_to_others

    backend = open_backend(policy.database, policy.read_from, policy.files, is_recorded=False)
    findings = backend.findings()
    if catalog is not None and backend.dialect == "postgres":
        from ..backends.postgres_schema import missing_indexes

        with backend.snapshot() as snapshot:
            findings = [*findings, *missing_indexes(snapshot, catalog)]
    backend.close_idle()
    if policy.files is not None:
        findings = [*findings, *_file_findings(policy, policy.files, is_data=is_data)]
    if policy.copied is not None:
        findings = [*findings, *copy_findings(policy.copied)]
    problems, warnings = (
        tuple(finding.to_text() for finding in findings if finding.severity is severity)
        for severity in Severity
    )
    warnings += tuple(f"this installation: {sentence}; see dpsql/constraints.txt" for sentence in untested())
    if is_open_to_others(policy):
        warnings = (*warnings, f"{policy.source}: {_OPEN}; chmod 600 {policy.source}")
    return report.more(problems, warnings)


def _file_findings(policy: Policy, files: FileSources, *, is_data: bool) -> list[Finding]:
    """Return how the data differ from what was recorded: all of files, and on Spark what its storage tells of them, or,
    with `is_data`, all rows. Raises PolicyError, EngineFailure."""
    from ..backends.backend import Finding, Severity
    from ..backends.pinned_files import differences

    what = "tables" if policy.is_on_spark else "data files"
    said = differences(policy.database, files, policy.source, is_whole=is_data)
    if said is None:
        return [Finding(Severity.WARNING, f"the {what} are not recorded yet", "dpsql budget create")]
    return said


def _in_ledger(policy: Policy, catalog: Catalog | None) -> tuple[LedgerError | None, Retired | None]:
    """Return why the ledger cannot be used, or None, and which of its answers the policy has no use for.

    A missing ledger is not made. `catalog`: None where the policy is not in force as it is.
    """
    from ..engine.ledgers import open_ledger
    from ..engine.stored import grounds_under, retired

    try:
        with closing(open_ledger(policy, create=False)) as ledger:
            found = None if catalog is None else retired(ledger.resting(), grounds_under(policy, catalog))
    except LedgerError as error:
        return error, None
    return None, found


# --- a first policy file ----------------------------------------------------------------------------------


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
    from ..backends.prepared_rows import convert

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
