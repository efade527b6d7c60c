"""Reads a policy file into the model. What needs the database's types is left to the catalog.

House rules:

1. Deny by default: a key that is not known is an error, so that no declaration is ever lost to a typo.
2. Every number is read from its decimal text as a Fraction; no float is ever made.
3. A message is one line: `<file>: <key>: <problem>; <what to write>`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..errors import PolicyError
from ..regex import regex
from .auth import check_identities, read_auth
from .load_tables import ROW, ReadTables, check_times, is_name, read_tables, read_time
from .model import (
    ENGINES,
    FILES,
    SPARK,
    Access,
    Accounting,
    Analyst,
    Defaults,
    LifetimeCap,
    Neighbours,
    Period,
    Policy,
    Rationing,
    ServerPolicy,
    TablePolicy,
    UnitPolicy,
    Verify,
    ViewPolicy,
)
from .section import Section, plain, quote_key, read_decimal, suggest
from .units import NO_UNIT

_EPSILON_STEP = Fraction(1, 10**9)  # The ledger's unit, soundness.md 3.3.
_EPSILON_LEAST = Fraction(1, 10**6)
_EPSILON_CAP = Fraction(10**4)  # Exclusive: the ledger takes four digits before the point.
_STATEMENT_CAP = Fraction(10)
_DELTA_STEP = Fraction(1, 10**18)
_FILE_SCHEMES = {"database": "duckdb", "ledger": "sqlite"}
_SERVERS = {"database": re.compile(rf"({'|'.join(ENGINES)})://"), "ledger": re.compile(r"postgres(ql)?://")}
_MUTABLE = (
    "is for tables that are recorded files: rows of a database come and go, and what was unique once need not be so at "
    "the next insert; take it out, and add PRIMARY KEY ({}) to the table, or write the person's number into its rows, "
    "as unit"
)
_LONGEST_STATEMENT = 600
_LEAST_MEMORY_MIB = 64
_MOST_TOGETHER = 1_000  # a household, a class: noise that hides everybody leaves no answer
_VERIFIER = regex(
    r"SCRAM-SHA-256\$[1-9][0-9]{0,6}:[A-Za-z0-9+/]{8,}={0,2}\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}="
)


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Return the policy in a file; relative paths in it are relative to its folder, and ~ is the home folder.

    Raises PolicyError, which names the file, the key and the fix: of the first thing that is wrong.
    """
    file = Path(path)
    try:
        file = file.expanduser()
    except RuntimeError:
        raise PolicyError(
            f"{file.name}: cannot be read: there is no home folder; write the whole path"
        ) from None
    return parse_policy(_text_of(file), file)


def inspect_policy(path: Path) -> tuple[Policy | None, tuple[PolicyError, ...]]:
    """Return what can be read of the policy in a file, None for nothing, and all that is wrong in it.

    For the owner's eyes: nothing may be answered under a policy with something wrong in it. Raises PolicyError where
    the file cannot be read at all.
    """
    return _read_policy(_text_of(path), path)


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise PolicyError(f"{path.name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PolicyError(
            f"{path.name}: is not UTF-8 text; a policy is a TOML file, saved as UTF-8"
        ) from None


def parse_policy(text: str, path: Path) -> Policy:
    """Return the policy that a TOML text means, as if `path` held it. Raises PolicyError."""
    policy, wrong = _read_policy(text, path)
    if wrong:
        raise _with_rest(wrong)
    assert policy is not None, "nothing is wrong in it"
    return policy


def _with_rest(wrong: tuple[PolicyError, ...]) -> PolicyError:
    first, *rest = wrong
    if rest and first.hint is None:
        first.hint = f"dpsql check lists {len(rest)} more like it"
    return first


def _parse_toml(text: str, path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text, parse_float=read_decimal)
    except ValueError as error:  # TOMLDecodeError, or Python's own for an integer of thousands of digits.
        raise PolicyError(f"{path.name}: is not valid TOML: {error}") from None
    except RecursionError:
        raise PolicyError(f"{path.name}: is nested too deeply; a policy has few levels") from None


def _read_policy(text: str, path: Path) -> tuple[Policy | None, tuple[PolicyError, ...]]:
    """Return the policy without what is wrong in it, and that; None where too little is left. Raises PolicyError."""
    top = Section(path.name, _parse_toml(text, path))
    folder = path.absolute().parent
    attempt = top.attempt
    database = attempt(lambda: _read_database(top, folder))
    ledger = attempt(
        lambda: _read_url(top, "ledger", top.text("ledger") or f"sqlite:{path.stem}-ledger.db", folder)
    )
    is_copied = attempt(lambda: _read_snapshot(top, database))
    dataset = attempt(lambda: top.text("dataset"))
    has_previews = attempt(lambda: top.flag("previews"))
    privacy = attempt(lambda: _read_privacy(top))
    defaults, analysts, groups = None, None, None
    if privacy is not None:
        defaults = attempt(lambda: _read_defaults(top, privacy))
    read = attempt(lambda: read_tables(top))
    if privacy is not None:
        analysts = attempt(lambda: _read_analysts(top, privacy, "analysts"))
        groups = attempt(lambda: _read_analysts(top, privacy, "groups"))
    server = attempt(lambda: _read_server(top, folder))
    check_identities(top, None if server is None else server.auth, analysts or {}, groups or {})
    for key in ("defaults", "analysts", "groups"):
        top.take(key)  # known keys, whether they could be looked at or not
    attempt(top.finish)
    root = None if read is None else attempt(lambda: _find_root(top, read))
    if read is not None:
        _check_references(top, read)
        _check_grants(top, read, "analysts", analysts or {})
        _check_grants(top, read, "groups", groups or {})
    if read is not None and database is not None:
        _check_sources(top, database[1], read.tables)
        _check_views(top, database[1], read)
    if read is not None and privacy is not None:
        check_times(top, privacy.time, read, None if database is None else database[1])
    wrong = tuple({error.message: error for error in reversed(top.found)}.values())[::-1]
    if database is None or ledger is None or privacy is None or read is None or root is None:
        return None, wrong
    written, url = database
    place = written if url != FILES else f"{written}{''.join(read.tables[root].source[:1])}"
    return Policy(
        path=path.absolute(),
        source=path.name,
        database=url,
        ledger=ledger,
        ledger_log=folder / f"{path.stem}-ledger.log",
        dataset_id=dataset or f"{root}@{place}",
        privacy=privacy,
        defaults=defaults or _read_defaults(Section(path.name, {}), privacy),
        root=root,
        tables=_in_parents_order(read.tables),
        analysts=analysts or {},
        server=server or ServerPolicy(),
        undecided=read.undecided,
        views=read.views,
        has_previews=has_previews is not False,
        is_copied=is_copied or False,
        groups=groups or {},
    ), wrong


def _read_database(top: Section, folder: Path) -> tuple[str, str]:
    """Return the database as it is written, and its URL with an absolute path."""
    written = top.text("database")
    if written is None:
        raise top.error('is missing; write database = "duckdb:<file>"', "database")
    return written, _read_url(top, "database", written, folder)


def _read_snapshot(top: Section, database: tuple[str, str] | None) -> bool:
    """Return whether a copy of the database is asked."""
    said = top.text("snapshot")
    if said is None:
        return False
    if said != "copy":
        raise top.error('write "copy", or take it out', "snapshot")
    if database is not None and (database[1] == FILES or not database[1].startswith(FILES)):
        raise top.error("is for a DuckDB file; take it out", "snapshot")
    return True


def _read_url(top: Section, key: str, url: str, folder: Path) -> str:
    """Return a URL with its path made absolute. A password in it is refused."""
    scheme = _FILE_SCHEMES[key]
    if url.startswith(f"{scheme}:"):
        path = url.removeprefix(f"{scheme}:")
        if key == "database" and url == FILES:
            return url
        if not path or path.startswith((":", "//")):
            raise top.error(f'name a file; write "{scheme}:<file>"', key)
        return f"{scheme}:{folder / path}"
    if _SERVERS[key].match(url):
        try:
            parts = urlsplit(url)
            has_password = parts.password is not None or "password" in unquote(parts.query).lower()
        except ValueError:
            example = "spark://host:port" if url.startswith("spark:") else "postgresql://user@host/database"
            raise top.error(f"is not a URL; write {example}", key) from None
        if has_password:
            raise top.error("holds a password; take it out, use the environment or a passfile", key)
        return url
    kinds = (
        '"duckdb:<file>", postgresql://… or spark://…'
        if key == "database"
        else '"sqlite:<file>" or postgresql://…'
    )
    raise top.error(f"unknown kind of URL; write {kinds}", key)


def _read_epsilon(section: Section, key: str) -> Fraction | None:
    epsilon = section.number(key)
    if epsilon is None:
        return None
    if not _EPSILON_LEAST <= epsilon < _EPSILON_CAP:
        raise section.error("must be at least 0.000001 and below 10000; 1 is a usual cap", key)
    if (epsilon / _EPSILON_STEP).denominator != 1:
        raise section.error(f"has too many digits; write {plain(_floor(epsilon, _EPSILON_STEP))}", key)
    return epsilon


def _read_delta(section: Section, key: str) -> Fraction | None:
    delta = section.number(key)
    if delta is None:
        return None
    if not 0 <= delta < 1:
        raise section.error("must be at least 0 and below 1; 1e-6 is a usual cap, 1e-9 a release", key)
    if (delta / _DELTA_STEP).denominator != 1:
        raise section.error(f"has too many digits; write {plain(_floor(delta, _DELTA_STEP))}", key)
    return delta


def _floor(number: Fraction, step: Fraction) -> Fraction:
    return number // step * step


def _read_privacy(top: Section) -> LifetimeCap:
    section = top.section("privacy")
    if section is None:
        raise top.error("is missing; write [privacy] with epsilon, the lifetime cap", "privacy")
    epsilon = _read_epsilon(section, "epsilon")
    if epsilon is None:
        raise section.error("is missing; write the lifetime cap for everybody together", "epsilon")
    delta = _read_delta(section, "delta")
    neighbours = section.choice("neighbours", Neighbours) or Neighbours.ADD_REMOVE
    together = section.count("together") or 1
    if together > _MOST_TOGETHER:
        raise section.error(f"is above {_MOST_TOGETHER}, the most that are protected together", "together")
    accounting, conversion_delta = _read_accounting(section, delta or Fraction(0))
    rationing = _read_rationing(section, epsilon)
    time = read_time(section)
    if time is not None and neighbours is Neighbours.REPLACE_ONE:
        raise section.error('is not there yet with a budget by period; write "add-remove"', "neighbours")
    if time is not None and together > 1:
        raise section.error("is not there yet with a budget by period; take it out", "together")
    verify = section.choice("verify", Verify)
    section.finish()
    delta = delta or Fraction(0)
    return LifetimeCap(
        epsilon, delta, neighbours, together, accounting, conversion_delta, rationing, verify, time
    )


def _read_rationing(section: Section, total: Fraction) -> Rationing | None:
    """Return the caps by period, None where there is no period."""
    period, carries = section.choice("period", Period), section.flag("carry")
    epsilon = _read_epsilon(section, "period_epsilon")
    if period is None:
        for key, value in (("carry", carries), ("period_epsilon", epsilon)):
            if value is not None:
                raise section.error('needs a period; write period = "month"', key)
        return None
    if epsilon is not None and epsilon > total:
        raise section.error(f"is above privacy.epsilon {plain(total)}; write less", "period_epsilon")
    return Rationing(period, epsilon, carries or False)


def _read_accounting(section: Section, delta: Fraction) -> tuple[Accounting, Fraction]:
    """Return how losses add up, and the part of delta that is for the conversion: half, where it is left out."""
    accounting = section.choice("accounting", Accounting) or Accounting.PURE
    conversion = _read_delta(section, "conversion_delta")
    if accounting is Accounting.PURE:
        if conversion is not None:
            raise section.error('is of accounting = "zcdp"; take it out', "conversion_delta")
        return accounting, Fraction(0)
    if not delta:
        raise section.error("zcdp needs a delta above 0 in [privacy]; 1e-6 is a usual one", "accounting")
    if conversion is None:
        conversion = max(_floor(delta / 2, _DELTA_STEP), _DELTA_STEP)
    if not 0 < conversion <= delta:
        raise section.error(
            "must be above 0 and at most privacy.delta; left out, it is half", "conversion_delta"
        )
    return accounting, conversion


def _read_defaults(top: Section, privacy: LifetimeCap) -> Defaults:
    """Return the defaults; what the owner leaves out is made to fit under the caps that are written."""
    section = top.section("defaults") or Section(top.source, {}, ("defaults",), top.found)
    maximum = _read_epsilon(section, "max_epsilon")
    if maximum is None:
        maximum = min(Fraction(1), privacy.epsilon)
    if maximum > _STATEMENT_CAP:
        raise section.error(
            "is above 10, the most that a statement may take; write 10 or less", "max_epsilon"
        )
    if maximum > privacy.epsilon:
        raise section.error(f"is above privacy.epsilon {plain(privacy.epsilon)}; write less", "max_epsilon")
    epsilon = _read_epsilon(section, "epsilon")
    if epsilon is None:
        epsilon = min(Fraction(1, 10), maximum)
    if epsilon > maximum:
        raise section.error(
            f"is above max_epsilon {plain(maximum)}; write {plain(maximum)} or less", "epsilon"
        )
    delta = _read_delta(section, "delta")
    if delta is None:
        delta = min(Fraction(1, 10**9), privacy.threshold_delta)
    if privacy.delta >= delta > privacy.threshold_delta:
        raise section.error(
            f"is above the {plain(privacy.threshold_delta)} of privacy.delta that the conversion leaves; write less",
            "delta",
        )
    if delta > privacy.delta:
        raise section.error(
            f"is above privacy.delta {plain(privacy.delta)}; raise that, or write less", "delta"
        )
    minimum_units = section.count("minimum_units") or 1
    section.finish()
    return Defaults(epsilon, maximum, delta, minimum_units)


def _read_analysts(top: Section, privacy: LifetimeCap, key: str) -> dict[str, Analyst]:
    """Return the analysts, or what members of each group may do."""
    analysts: dict[str, Analyst] = {}
    section = top.section(key) or Section(top.source, {}, found=top.found)
    for name in section.names():
        analyst = section.attempt(partial(_read_analyst, section, name, privacy, is_group=key == "groups"))
        if analyst is not None:
            analysts[name] = analyst
    return analysts


def _read_analyst(section: Section, name: str, privacy: LifetimeCap, *, is_group: bool) -> Analyst:
    analyst = section.section(name)
    assert analyst is not None, "the key was just listed"
    if not name.strip() or not name.isprintable():
        raise section.error("give the analyst a name of letters, digits, blanks and signs", name)
    epsilon = _read_epsilon(analyst, "epsilon")
    if epsilon is None:
        raise analyst.error("is missing; write this analyst's cap", "epsilon")
    ration = _read_epsilon(analyst, "period_epsilon")
    if ration is not None and privacy.rationing is None:
        raise analyst.error('needs a period; write period = "month" in [privacy]', "period_epsilon")
    verifier = None if is_group else _read_verifier(analyst, name)
    identity = analyst.text("member_of" if is_group else "identity")
    if is_group and identity is None:
        raise analyst.error("is missing; write what the directory or the issuer calls the group", "member_of")
    access = Access(_read_names(analyst, "tables"), _read_names(analyst, "hide") or ())
    analyst.finish()
    return Analyst(name, epsilon, verifier, ration, access, identity)


def _read_names(section: Section, key: str) -> tuple[str, ...] | None:
    items = section.array(key)
    if items is None:
        return None
    names = tuple(item for item in items if isinstance(item, str) and item)
    if len(names) < len(items) or not names:
        example = '["student.gpa"]' if key == "hide" else '["student", "loan"]'
        raise section.error(f"write names in quotes, like {example}", key)
    return names


def _check_grants(top: Section, read: ReadTables, key: str, analysts: Mapping[str, Analyst]) -> None:
    """Note what is wrong where an analyst is granted what nobody can name; a column is looked for in the catalog."""
    declared: dict[str, TablePolicy | ViewPolicy] = {**read.tables, **read.views}
    known = [name for name, table in declared.items() if not table.is_hidden]
    for analyst in analysts.values():
        for name in analyst.access.tables or ():
            here = (key, analyst.name, "tables")
            if name in declared and name not in known:
                top.found.append(
                    top.error(f'"{name}" is hidden = true, which no analyst sees; take one out', *here)
                )
            elif name not in (*known, *read.undecided, *read.broken):
                top.found.append(top.error(f'no table "{name}" is declared{suggest(name, known)}', *here))


def _read_server(top: Section, folder: Path) -> ServerPolicy:
    section = top.section("server") or Section(top.source, {}, ("server",), top.found)
    has_grid = section.flag("grid")
    seconds = section.count("statement_timeout")
    if seconds is not None and seconds > _LONGEST_STATEMENT:
        raise section.error(
            f"is above {_LONGEST_STATEMENT} seconds, the longest that is waited", "statement_timeout"
        )
    memory, files = section.count("memory_mib"), section.count("files_mib")
    if memory is not None and memory < _LEAST_MEMORY_MIB:
        raise section.error(
            f"is below {_LEAST_MEMORY_MIB}, with which nothing could be answered", "memory_mib"
        )
    usual = ServerPolicy()
    public = {
        name: section.count(name) or getattr(usual, name)
        for name in ("public_seconds", "public_rows", "public_at_once")
    }
    for name, value in public.items():
        if name != "public_at_once" and value > getattr(usual, name):
            raise section.error(f"is above {getattr(usual, name)}, the most that is answered", name)
    own = section.count("workspace_mib", least=0)
    auth = read_auth(section, folder)
    refusals = section.text("refusals") or usual.refusals
    if refusals not in ("codes", "shapes", "texts"):
        raise section.error(
            'is what is kept of refused statements; write "codes", "shapes" or "texts"', "refusals"
        )
    section.finish()
    return ServerPolicy(
        has_grid is not False, seconds or _LONGEST_STATEMENT, memory, files, **public,
        workspace_mib=usual.workspace_mib if own is None else own, auth=auth, refusals=refusals,
    )  # fmt: skip


def _read_verifier(section: Section, name: str) -> str | None:
    """Return the verifier of an analyst's password; the text that it should have been is not quoted."""
    text = section.text("password")
    if text is not None and not _VERIFIER.fullmatch(text):
        raise section.error(
            "is no verifier, and a password itself does not belong here; "
            f"write what dpsql user add {quote_key(name)} prints",
            "password",
        )
    return text


def _find_root(top: Section, read: ReadTables) -> str | None:
    """Return the first table whose own rows say their unit; the others share its values (soundness.md 1.26).

    Where there is none, the first of those whose rows are units by themselves. None where it may be one that is wrong.
    """
    units = [(name, table.unit) for name, table in read.tables.items() if table.unit is not None]
    roots = [name for name, unit in units if unit.references is None and not unit.is_row]
    roots += [name for name, unit in units if unit.is_row]
    if not roots and read.undecided:
        raise top.error(NO_UNIT, "tables", next(iter(read.undecided)))
    if not roots and read.broken:
        return None
    if not roots:
        raise top.error(
            'one table must say who its rows are of; write unit = "<the column of the person>"', "tables"
        )
    return roots[0]


def _check_sources(top: Section, database: str, tables: dict[str, TablePolicy]) -> None:
    """Note what is wrong unless all tables are files, and there is no database, or none is; on Spark each may be."""
    read: dict[str, str] = {}
    for name, table in tables.items():
        is_in_database = database != FILES and not database.startswith(SPARK)
        problem = _wrong_name(name, table, read) if is_in_database else _wrong_files(table.source, database)
        if problem:
            top.found.append(top.error(problem, "tables", name, "source"))
        elif is_in_database and table.key:
            top.found.append(top.error(_MUTABLE.format(", ".join(table.key)), "tables", name, "key"))


def _wrong_files(source: tuple[str, ...], database: str) -> str:
    """Return what is wrong with the files that a table is; "" where nothing is."""
    other = next((item for item in source if not item.lower().endswith(".parquet")), None)
    if database.startswith(SPARK) and not all(map(_is_whole_path, source)):
        return (
            'is read by the server; write the whole path, like "/data/orders/*.parquet" or "s3a://…/*.parquet"; a '
            "table of the catalog has its own name here"
        )
    if other is not None:
        return (
            f'"{other}" does not end in .parquet, and files of other kinds are never parsed for an analyst; run dpsql '
            "convert on it, and name the Parquet file"
        )
    if database == FILES and not source:
        return 'is missing, as no database is named; write source = "<files>.parquet"'
    return ""


def _wrong_name(name: str, table: TablePolicy, read: dict[str, str]) -> str:
    """Return what is wrong with the name of a table in the database, "" where nothing is. `read`: those before it.

    No row is of two tables: it would be two people's, where their units name other columns (soundness.md 1.26).
    """
    if any(item.lower().endswith(".parquet") for item in table.source):
        return f'is for database = "{FILES}", where every table is files; write that, or take it out'
    if len(table.source) > 1 or not all(map(is_name, table.source)):
        return 'write the table\'s name in the database, "<table>" or "<schema>.<table>"'
    origin = table.source[0] if table.source else name
    other = read.setdefault(origin, name)
    return (
        ""
        if other == name
        else f'"{origin}" is what {quote_key(other)} reads already; have each row in one table'
    )


def _is_whole_path(pattern: str) -> bool:
    """Say whether a path means one place, whatever folder somebody is in."""
    return pattern.startswith("/") or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", pattern) is not None


def _check_views(top: Section, database: str, read: ReadTables) -> None:
    """Note what is wrong: views where there is no database, and tables that are hidden with no view."""
    if read.views and (database == FILES or database.startswith(SPARK)):
        problem = "is of a database, and here all tables are files; name the files"
        if database != FILES:
            problem = (
                "is for DuckDB and Postgres: Spark's own text is not read; declare the tables that it reads"
            )
        top.found.append(top.error(problem, "tables", next(iter(read.views))))
    hidden = next((name for name, table in read.tables.items() if table.is_hidden), None)
    is_prepared = any(table.source and table.row_number for table in read.tables.values())
    if hidden is not None and not (read.views or is_prepared):
        problem = "is for tables that only views read, or dpsql prepare, and there is neither; take it out"
        top.found.append(top.error(problem, "tables", hidden, "hidden"))


def _in_parents_order(tables: Mapping[str, TablePolicy]) -> dict[str, TablePolicy]:
    """Return the tables, those that refer to another's unit with its columns in the order of that unit."""
    found = dict(tables)
    for name, table in tables.items():
        unit = table.unit
        if unit is None or unit.references is None or unit.references[0] not in tables:
            continue
        parent = tables[unit.references[0]].unit
        if parent is None or parent.references is not None:
            continue
        own = dict(zip(unit.references[1], unit.columns, strict=True))
        if own.keys() == set(parent.columns):
            columns = tuple(own[key] for key in parent.columns)
            found[name] = replace(table, unit=UnitPolicy(columns, (unit.references[0], parent.columns)))
    return found


def _check_references(top: Section, read: ReadTables) -> None:
    """Note what is wrong unless every private table's references lead to the root, or to a table that is not known."""
    for name, table in read.tables.items():
        top.attempt(partial(_check_reference, top, read, name, table))


def _check_reference(top: Section, read: ReadTables, name: str, table: TablePolicy) -> None:
    tables, seen, unit = read.tables, [name], table.unit
    while unit is not None and unit.references is not None:
        parent = unit.references[0]
        here = ("tables", seen[-1], "unit", "references")
        if parent in read.undecided or parent in read.broken:
            break
        if parent not in tables:
            raise top.error(f'no table "{parent}" is declared{suggest(parent, list(tables))}', *here)
        if tables[parent].unit is None:
            raise top.error(f'table "{parent}" is public and has no owners; name a private one', *here)
        if tables[parent].unit == ROW:
            raise top.error(
                f'table "{parent}" has unit = "row": nobody is known there by a key; name the column of it that says '
                "whose a row is as its unit, or take this table out",
                *here,
            )
        if parent in seen:
            raise top.error("leads back to itself; it must end at the root", *here)
        seen.append(parent)
        unit = tables[parent].unit
