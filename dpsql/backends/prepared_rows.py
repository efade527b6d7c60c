"""Numbers the rows of each person in a copy of a table, or in the table itself: the owner's act, `dpsql prepare`;
and CSV and JSON lines to Parquet, once: what does not parse is found here, and by nobody's question.

House rules:

1. One transaction: whatever ends it, the database is as it was before, or has all of it. So it is with the file of a
   copy of files (`write_copy`).
2. The number of a row is a function of its person's own rows, of this table and of the copy before; where rows have a
   time, of those of its period alone, which is why the hash gives the same number again where none came to that period.
   Privacy does not rest on it (soundness.md 1.39): the database holds numbers apart, whoever gives them.
3. A table is replaced only where it has what such a copy has: the columns of the table, but for those that it gained or
   lost since, and a primary key of the person and the number. A column is numbered in place only where it is new, or
   the database holds it apart already.
4. Nothing is numbered of which `check` would refuse whose the rows are: a copy keeps neither the collation nor the
   children of what it was made of, and would be taken (soundness.md 1.39).
5. On Postgres names mean what they mean in pg_catalog: whoever may make a function runs none under the owner's role.
6. Errors say where a statement failed, and nothing of a row.

House rule of files: a message names the file, the line and what to do. The engine's own text quotes the line, so none
of it is passed on.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from ..errors import PolicyError
from ..plan.dialects.quote import identifier, table_name, text
from ..policy.catalog import event_time, table_key
from ..policy.live_schema import LiveSchema, LiveTable
from ..policy.load_tables import is_name
from ..policy.model import FileSources, Policy, TablePolicy, UnitPolicy
from ..policy.units import build_unit, find_live_table
from ..records import dataclass
from ..relation.catalog import References, quoted_names

# --- rows that are numbered -------------------------------------------------------------------------------


TablePath = tuple[str, str]
Run = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done: rows that the table has now, those that came and that went, whether it was there before, and of
    those that stayed how many are others now."""

    rows: int
    came: int
    went: int
    was_there: bool
    changed: int = 0


NO_DAY = "0001-01-01"
"""The first day of the period of a row without a time, which counts for nobody."""


def first_day_of(sql: str, engine_type: str, period: str, zone: str) -> str:
    """Return the first day of the period of a zone in which a time lies, as SQL of both engines.

    `engine_type`: of the time; one without a zone is in UTC, as the scans of statements read it (soundness.md 1.40).
    """
    kind = engine_type.lower()
    if kind.startswith("timestamptz") or "with time zone" in kind:
        sql = f"({sql} AT TIME ZONE {text(zone)})"
    elif kind == "date":
        sql = f"CAST({sql} AS TIMESTAMP)"
    elif zone != "UTC":
        sql = f"({sql} AT TIME ZONE 'UTC' AT TIME ZONE {text(zone)})"
    return f"CAST(date_trunc({text(period)}, {sql}) AS DATE)"


@dataclass(frozen=True, slots=True)
class Dated:
    """Of which period rows are: in which `column` beside the number it stands, by its first day.

    It is the `period` of `zone` in which lies the time that is `held_in` a column of the table so many steps on the
    `way` to the person. `name`: what the time itself is called in the copy.
    """

    column: str
    period: str
    zone: str
    way: int
    held_in: str
    engine_type: str
    name: str

    def first_day(self, sql: str) -> str:
        """Return the first day of the period of a time, as SQL."""
        day = first_day_of(sql, self.engine_type, self.period, self.zone)
        return f"COALESCE({day}, DATE '{NO_DAY}')"


@dataclass(frozen=True, slots=True)
class Numbering:
    """Which rows are numbered, and where the numbers stand.

    `path`: the table, `target`: its copy; the same where they are numbered in place. `columns`: those of the table,
    with their types and whether each is NOT NULL; `owner`: what the person's own key is called in the copy, with its
    types; `ways`: over which tables it is found, each with pairs of columns, none where it stands in the row;
    `held_in`: the columns there that hold it. `key`: what finds a row again; () where there is none. `number`: the
    column of numbers. `references`: the key that the person's own is a value of; None: the row says whose it is.
    `dated`: of which period rows are; None: they have no time.
    """

    dialect: str
    path: TablePath
    target: TablePath
    columns: tuple[tuple[str, str, bool], ...]
    owner: tuple[tuple[str, str], ...]
    ways: tuple[tuple[TablePath, tuple[tuple[str, str], ...]], ...]
    held_in: tuple[str, ...]
    key: tuple[str, ...]
    number: str
    references: References | None
    is_partitioned: bool = False
    dated: Dated | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the copy but the number."""
        own = [name for name, _, _ in self.columns]
        more = [name for name, _ in self.owner] if self.ways else []
        more += [] if self.dated is None else [self.dated.name, self.dated.column]
        return tuple(dict.fromkeys((*own, *more)))

    @property
    def apart(self) -> tuple[str, ...]:
        """The key by which the database holds numbers apart."""
        return (*self.unit, *([] if self.dated is None else [self.dated.column]), self.number)

    @property
    def unit(self) -> tuple[str, ...]:
        """The columns of the copy that hold the person's own key."""
        return tuple(name for name, _ in self.owner)

    @property
    def is_in_place(self) -> bool:
        """Whether the table itself gets the numbers."""
        return self.path == self.target


def numbering_of(
    where: str, policy: Policy, declared: TablePolicy, live: LiveSchema, target: str | None, number: str
) -> Numbering:
    """Return how the rows of a table are numbered. `target`: the copy's name; None: in place. Raises PolicyError."""
    table = find_live_table(where, declared.name, live)
    unit = _require_numbers(where, policy, declared, table, target)
    ways, end = _ways_to_owner(policy, declared.name, unit, live)
    if ways and target is None:
        raise PolicyError(
            f"{where}: a person's own key does not stand in its rows",
            hint="leave --in-place out: a copy has it",
        )
    last = table if not ways else live.table(ways[-1][0])
    assert last is not None, "a way leads over live tables"
    found = [column for name in end.columns if (column := last.column(name)) is not None]
    own = {column.name: column.engine_type for column in table.columns}
    prefix = ways[-1][0][1] if ways else ""
    owner = tuple(
        (name if name not in own or not ways else f"{prefix}_{name}", column.engine_type)
        for name, column in zip(end.columns, found, strict=True)
    )
    if any(ways and name in own for name, _ in owner):
        raise PolicyError(f"{where}: the copy would have two columns of one name")
    keys = [
        key for key in (table.primary_key, table.asserted, *table.unique) if key and _is_whole(table, key)
    ]
    dated = _dated(where, policy, declared, live, number, [name for name, _ in owner])
    made = {number} if dated is None else {number, dated.column}
    if target is not None and any(name in own for name in made):
        raise PolicyError(
            f"{where}: the table has a column {quoted_names(sorted(made & {*own}))} already",
            hint="name another with --column",
        )
    path = table.path
    if target is not None and (not is_name(target) or live.written_path(target) == path):
        raise PolicyError(
            f'{where}: a copy is another table than "{live.own_name(path)}"',
            hint='name one with --into, "<table>" or "<schema>.<table>"; --in-place makes no copy',
        )
    return Numbering(
        live.dialect,
        path,
        path if target is None else live.written_path(target),
        tuple(
            (column.name, column.engine_type, column.not_null)
            for column in table.columns
            if not (target is None and column.name in made)
        ),
        owner,
        tuple(ways),
        end.columns,
        next((key for key in keys if number not in key), ()),
        number,
        end.references,
        table.is_partitioned,
        dated,
    )


def _dated(
    where: str, policy: Policy, declared: TablePolicy, live: LiveSchema, number: str, owner: Sequence[str]
) -> Dated | None:
    """Return of which period a table's rows are; None: they have no time. Raises PolicyError."""
    time = event_time(where, policy, declared, live)
    if time is None:
        return None
    calendar = policy.privacy.time
    assert calendar is not None, "a table with a time has periods"
    own = find_live_table(where, declared.name, live)
    last = own if not time.way else find_live_table(where, time.way[-1][1], live)
    column = last.column(time.column)
    assert column is not None, "it was just found"
    taken = {*owner, *(one.name for one in own.columns)} if time.way else set[str]()
    name = time.column if time.column not in taken else f"{last.path[1]}_{time.column}"
    if name in taken:
        raise PolicyError(f"{where}: the copy would have two columns of one name")
    period = calendar.period.value
    said = declared.row_number[:-1] if number in declared.row_number[-1:] else ()
    day = said[0] if said else f"{number}_{period}"
    return Dated(day, period, calendar.zone, len(time.way), time.column, column.engine_type, name)


def what_is_copied(
    where: str,
    policy: Policy,
    declared: TablePolicy,
    live: LiveSchema,
    into: str | None = None,
    *,
    in_place: bool = False,
) -> tuple[LiveSchema, str | None]:
    """Return the schema in which a table's name means the rows that are numbered, and what their copy is called.

    None: `in_place`. A table that is a copy already, whose `source` has numbers, is made of the database's table of its
    own name. Raises PolicyError: there is none, or it does not say by the same columns whose its rows are.
    """
    name, called = declared.name, policy.called
    if in_place:
        return live.as_called(called), None
    if name not in called or not declared.row_number:
        return live.as_called(called), into or f"{policy.origin(name)}_prepared"
    source = called.pop(name)
    if into is None:
        hint = (
            f"declare the table whose copy {source} is under a name of its own, with source, its unit and hidden = "
            f"true, and run dpsql prepare on that one, --into {source}"
        )
        live, base = live.as_called(called), live.table(live.written_path(name))
        if any(path == live.written_path(name) for path, _ in live.unreadable):
            raise PolicyError(
                f'{where}: this role may not read "{name}", which is copied',
                hint="name one that may, with --database",
            )
        if base is None:
            raise PolicyError(f'{where}: the database has no table "{name}" to be copied', hint=hint)
        assert declared.unit is not None, "rows of people are numbered"
        if missing := [one for one in declared.unit.columns if base.column(one) is None]:
            raise PolicyError(
                f'{where}: "{name}" of the database has no {quoted_names(missing)}, which would say whose its rows are',
                hint=hint,
            )
    return live.as_called(called), into or source


def _require_numbers(
    where: str, policy: Policy, declared: TablePolicy, table: LiveTable, target: str | None
) -> UnitPolicy:
    """Return whose the rows are. Raises PolicyError where a person has no several, or they cannot be numbered so."""
    if declared.unit is None or declared.unit.is_row:
        raise PolicyError(f"{where}: nobody has several rows here; name a table of people's rows")
    if policy.is_on_spark:
        raise PolicyError(
            f"{where}: tables of a lake enforce no key, so numbers in them would bound nothing",
            hint="load them into Parquet files, a DuckDB file or into Postgres, or leave the table as it is",
        )
    if policy.files is not None and target is None:
        raise PolicyError(
            f"{where}: files are not numbered in place", hint="leave --in-place out: a copy is made"
        )
    if declared.unit.references is None and table.is_unique(*declared.unit.columns):
        raise PolicyError(f"{where}: a person has one row here, and nothing is to be numbered")
    return declared.unit


def _ways_to_owner(
    policy: Policy, name: str, unit: UnitPolicy, live: LiveSchema
) -> tuple[list[tuple[TablePath, tuple[tuple[str, str], ...]]], UnitPolicy]:
    """Return over which tables the person's own key is found, and whose rows the last one's are, which holds it.

    Raises PolicyError where the database does not hold that each row leads to one person.
    """
    ways: list[tuple[TablePath, tuple[tuple[str, str], ...]]] = []
    _require_one_owner(policy, name, live)
    while unit.references is not None:
        parent, key = unit.references
        _require_one_owner(policy, parent, live)
        above = policy.tables[parent].unit
        assert above is not None, "a way leads over private tables"
        if above.references is None and above.columns == key:
            break  # the columns hold the unit itself
        ways.append((live.path_of(parent), tuple(zip(unit.columns, key, strict=True))))
        unit = above
    return ways, unit


def _require_one_owner(policy: Policy, name: str, live: LiveSchema) -> None:
    """Raise PolicyError where `check` refuses how a table says whose its rows are, its numbers aside."""
    build_unit(table_key(policy, name), policy, replace(policy.tables[name], row_number=()), live)


def _is_whole(table: LiveTable, key: Sequence[str]) -> bool:
    return all((column := table.column(name)) is not None and column.not_null for name in key)


def prepare(
    url: str,
    numbering: Numbering,
    live: LiveSchema,
    *,
    anew: bool = False,
    advance: Callable[[Prepared], None] | None = None,
) -> Prepared:
    """Number the rows, all in one transaction: those that came since the copy was made, or all, `anew`.

    Where they have a time it is all: by arrival the last rows of each period would have the highest numbers. `url`: of
    the database, under a role that may write. `advance`: called before the transaction ends, while nobody reads the
    table: so no draw of what it was is stored behind that, and none of what it is before. It is called
    whether rows are others or not, which nobody is to be told. Raises PolicyError, and as `advance`: nothing was
    changed then.
    """
    anew = anew or numbering.dated is not None
    there = live.table(numbering.target)
    if there is not None and not numbering.is_in_place and not _is_copy(there, numbering):
        name = live.own_name(numbering.target)
        raise PolicyError(
            f'a table "{name}" is there, which is no copy with numbers of "{live.own_name(numbering.path)}"',
            hint="name the copy otherwise with --into, or drop that table",
        )
    is_alike = there is not None and {one.name for one in there.columns} == {
        *numbering.names,
        numbering.number,
    }
    if there is not None and not anew and not numbering.is_in_place:
        if not is_alike:
            raise PolicyError(
                f'the columns of "{live.own_name(numbering.path)}" are no longer those of its copy',
                hint="dpsql prepare --renumber makes the copy anew",
            )
        if not numbering.key:
            raise PolicyError(
                f'"{live.own_name(numbering.path)}" has no key by which its rows are found again in the copy',
                hint="give it a PRIMARY KEY; or dpsql prepare --renumber numbers all rows anew",
            )
    open_ = _on_duckdb if numbering.dialect == "duckdb" else _on_postgres
    with open_(url) as run:
        if numbering.is_in_place:
            done = _in_place(run, numbering, there)
        elif there is None or anew:
            done = _all_anew(run, numbering, there is not None, is_alike=is_alike)
        else:
            done = _by_steps(run, numbering)
        if advance is not None:
            if numbering.dialect == "postgres":  # a DuckDB file that is written is read by nobody
                run(f"LOCK TABLE {table_name(numbering.target)} IN ACCESS EXCLUSIVE MODE")
            advance(done)
    return done


def prepare_files(
    files: FileSources, where: str, numbering: Numbering, live: LiveSchema, target: Path
) -> Prepared:
    """Number all rows of a table of files, in one file beside them. Raises PolicyError, EngineFailure."""
    from .duckdb_files import write_copy

    read = {live.own_name(path) for path in (numbering.path, *(path for path, _ in numbering.ways))}
    sources = replace(files, tables={name: files.tables[name] for name in read})
    columns = frozenset((*numbering.names, numbering.number))
    rows, was_there = write_copy(sources, where, numbered_rows(numbering), target, columns)
    return Prepared(rows, rows, 0, was_there)


def _is_copy(table: LiveTable, numbering: Numbering) -> bool:
    """Say whether a table can be a copy, made before columns were added to the rows or taken from them."""
    own, wanted = {column.name for column in table.columns}, {*numbering.names, numbering.number}
    is_of_these = own >= wanted or (own < wanted and own >= {*numbering.key})
    return {*table.primary_key} == {*numbering.apart} and is_of_these


# --- connections ------------------------------------------------------------------------------------------------


@contextmanager
def _on_duckdb(url: str) -> Iterator[Run]:
    try:
        connection = duckdb.connect(url.removeprefix("duckdb:"))
    except duckdb.Error as error:
        raise PolicyError(
            f"the database cannot be opened for writing ({type(error).__name__})",
            hint="no other program may have the file open; end dpsql serve, and try again",
        ) from None
    with connection:
        try:
            connection.execute("BEGIN")
            yield lambda sql: connection.execute(sql).fetchall()
            connection.execute("COMMIT")
        except duckdb.Error as error:
            raise _failed(type(error).__name__, is_full="space left" in str(error)) from None


@contextmanager
def _on_postgres(url: str) -> Iterator[Run]:
    import psycopg

    from .postgres_connection import set_locally

    try:
        with psycopg.connect(url) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute(set_locally(is_limited=False))

            def run(sql: str) -> list[tuple[Any, ...]]:
                cursor = connection.execute(sql)
                return cursor.fetchall() if cursor.description else [(cursor.rowcount,)]

            yield run
    except psycopg.Error as error:
        raise _failed(error.sqlstate or type(error).__name__, is_full=error.sqlstate == "53100") from None


def _failed(what: str, *, is_full: bool) -> PolicyError:
    """Return the error of a transaction that did not end well; `is_full`: the disk is, as the engine's text says."""
    return PolicyError(
        f"the rows could not be numbered ({what}), and nothing was changed",
        hint="the disk is full: a copy takes as much room as the table, and the log as much again"
        if is_full
        else "the role must own the table, or may create one beside it; a person's own key must not be NULL",
    )


# --- SQL --------------------------------------------------------------------------------------------------------


def _listed(names: Sequence[str], source: str = "") -> str:
    return ", ".join(f"{source}{identifier(name)}" for name in names)


def _same(names: Sequence[str], left: str, right: str) -> str:
    return " AND ".join(f"{left}.{identifier(name)} = {right}.{identifier(name)}" for name in names)


def _text(names: Sequence[str], source: str) -> str:
    return f"CAST(ROW({_listed(names, f'{source}.')}) AS VARCHAR)"


def _rows(numbering: Numbering) -> str:
    """Return the rows as the copy has them, without a number: with the person's own key, and without nobody's."""
    only = "" if numbering.dialect == "duckdb" or numbering.is_partitioned else "ONLY "
    text, last = f"{only}{table_name(numbering.path)} AS w0", 0
    for number, (path, pairs) in enumerate(numbering.ways, 1):
        on = " AND ".join(
            f"w{last}.{identifier(own)} = w{number}.{identifier(other)}" for own, other in pairs
        )
        text, last = f"{text} JOIN {table_name(path)} AS w{number} ON {on}", number
    shown = [f"w0.{identifier(name)}" for name, _, _ in numbering.columns]
    held = [f"w{last}.{identifier(name)}" for name in numbering.held_in]
    if numbering.ways:
        shown += [f"{sql} AS {identifier(name)}" for sql, name in zip(held, numbering.unit, strict=True)]
    if (dated := numbering.dated) is not None:
        moment = f"w{dated.way}.{identifier(dated.held_in)}"
        shown += [f"{moment} AS {identifier(dated.name)}"] if dated.way else []
        shown.append(f"{dated.first_day(moment)} AS {identifier(dated.column)}")
    there = " AND ".join(f"{sql} IS NOT NULL" for sql in held)
    return f"SELECT {', '.join(shown)} FROM {text} WHERE {there}"


def _number(numbering: Numbering, source: str, *, of: str = "") -> str:
    """Return a row's place among its person's, of its period: by a hash of its key, or of all of it.

    `of`: the period's first day, where no column of the source has it yet.
    """
    dated = numbering.dated
    names = [name for name in numbering.names if dated is None or name != dated.column]
    by = _text(numbering.key or names, source)
    parts = [f"{source}.{identifier(name)}" for name in numbering.unit]
    if dated is not None:
        parts.append(of or f"{source}.{identifier(dated.column)}")
    return f"ROW_NUMBER() OVER (PARTITION BY {', '.join(parts)} ORDER BY md5({by}), {by})"


def numbered_rows(numbering: Numbering) -> str:
    """Return the SELECT of all rows as the copy has them, with their numbers, person by person."""
    shown = f"{_listed(numbering.names, 'r.')}, {_number(numbering, 'r')} AS {identifier(numbering.number)}"
    order = _listed(numbering.apart, "n.")
    return f"SELECT * FROM (SELECT {shown} FROM ({_rows(numbering)}) AS r) AS n ORDER BY {order}"


def _count(run: Run, numbering: Numbering) -> int:
    ((rows,),) = run(f"SELECT COUNT(*) FROM {table_name(numbering.target)}")
    return int(rows)


def _all_anew(run: Run, numbering: Numbering, was_there: bool, *, is_alike: bool) -> Prepared:
    target = table_name(numbering.target)
    if was_there and is_alike and numbering.dialect == "postgres":
        run(f"TRUNCATE {target}")  # who may read it still may
    else:
        if was_there:
            run(f"DROP TABLE {target}")
        for sql in _definition(numbering):
            run(sql)
    run(f"INSERT INTO {target} ({_listed([*numbering.names, numbering.number])}) {numbered_rows(numbering)}")
    rows = _count(run, numbering)
    return Prepared(rows, rows, 0, was_there)


def _definition(numbering: Numbering) -> Iterator[str]:
    """Yield what makes the copy, with the key by which the database holds numbers apart."""
    target = table_name(numbering.target)
    key = f"PRIMARY KEY ({_listed(numbering.apart)})"
    held = [name for name, _, is_held in numbering.columns if is_held]
    if numbering.dialect == "postgres":  # which has types that are not told by their names alone
        yield f"CREATE TABLE {target} AS {_rows(numbering)} LIMIT 0"
        changes = [f"ALTER COLUMN {identifier(name)} SET NOT NULL" for name in held]
        yield f"ALTER TABLE {target} {', '.join([*changes, f'ADD COLUMN {identifier(numbering.number)} INTEGER'])}"
        yield f"ALTER TABLE {target} ADD {key}"
        return
    types = {name: type_ for name, type_, _ in numbering.columns} | dict(numbering.owner)
    if (dated := numbering.dated) is not None:
        types |= {dated.name: dated.engine_type, dated.column: "DATE"}
    types[numbering.number] = "INTEGER"
    columns = [
        f"{identifier(name)} {types[name]}{' NOT NULL' if name in (*held, *numbering.apart) else ''}"
        for name in (*numbering.names, numbering.number)
    ]
    yield f"CREATE TABLE {target} ({', '.join([*columns, key])})"


def _by_steps(run: Run, numbering: Numbering) -> Prepared:
    """Bring the copy to the rows of now: a row that is another's is put in anew, and none that stays is renumbered.

    The next numbers of a person are those after all that were there before: what goes leaves holes.
    """
    target, number, unit = table_name(numbering.target), identifier(numbering.number), numbering.unit
    whose = list(dict.fromkeys((*numbering.key, *unit)))
    before = _count(run, numbering)
    run(
        f"CREATE TEMP TABLE dpsql_last AS SELECT {_listed(unit)}, MAX({number}) AS last FROM {target} "
        f"GROUP BY {_listed(unit)}"
    )
    run(
        f"DELETE FROM {target} AS t WHERE NOT EXISTS (SELECT 1 FROM ({_rows(numbering)}) AS r "
        f"WHERE {_same(whose, 'r', 't')})"
    )
    kept = _count(run, numbering)
    rest, altered = [name for name in numbering.names if name not in whose], 0
    if rest:
        changed = ", ".join(f"{identifier(name)} = r.{identifier(name)}" for name in rest)
        ((altered,),) = run(
            f"UPDATE {target} AS t SET {changed} FROM ({_rows(numbering)}) AS r "
            f"WHERE {_same(whose, 'r', 't')} AND {_text(rest, 'r')} <> {_text(rest, 't')}"
        )
    run(
        f"INSERT INTO {target} ({_listed([*numbering.names, numbering.number])}) "
        f"SELECT {_listed(numbering.names, 'r.')}, GREATEST(COALESCE(b.last, 0), 0) + {_number(numbering, 'r')} "
        f"FROM ({_rows(numbering)}) AS r LEFT JOIN dpsql_last AS b ON {_same(unit, 'b', 'r')} "
        f"WHERE NOT EXISTS (SELECT 1 FROM {target} AS t WHERE {_same(whose, 't', 'r')}) "
        f"ORDER BY {_listed(unit, 'r.')}"
    )
    run("DROP TABLE dpsql_last")
    rows = _count(run, numbering)
    return Prepared(rows, rows - kept, before - kept, True, int(altered))


def _made(numbering: Numbering) -> dict[str, tuple[str, str]]:
    """Return what a table w0 gains that is numbered in place: the type and the SQL of each column."""
    if (dated := numbering.dated) is None:
        return {numbering.number: ("INTEGER", _number(numbering, "w0"))}
    day = dated.first_day(f"w0.{identifier(dated.held_in)}")
    return {dated.column: ("DATE", day), numbering.number: ("INTEGER", _number(numbering, "w0", of=day))}


def _in_place(run: Run, numbering: Numbering, there: LiveTable | None) -> Prepared:
    """Number a table's own rows, by the hash, and have the database hold the numbers apart."""
    assert there is not None, "it is the table itself"
    made = _made(numbering)
    was_there = any(there.column(one) is not None for one in made)
    if was_there and not any({*key} == {*numbering.apart} for key in there.unique):
        taken = next(one for one in made if there.column(one) is not None)
        raise PolicyError(
            f'the table has a column "{taken}" already, and no UNIQUE constraint says that it numbers rows',
            hint="name another with --column; or drop that one",
        )
    if numbering.dialect == "duckdb":
        _put_in_anew(run, numbering, there, was_there=was_there)
    else:
        _numbered_where_they_lie(run, numbering)
    rows = _count(run, numbering)
    return Prepared(rows, rows, 0, was_there)


def _put_in_anew(run: Run, numbering: Numbering, there: LiveTable, *, was_there: bool) -> None:
    """Number the rows of a DuckDB table, which go out and come in again in the order of their people.

    An UPDATE would not do: in a transaction that has one DuckDB makes no column NOT NULL, and no key.
    """
    schema, table = map(text, numbering.target)
    here = f"database_name = current_database() AND schema_name = {schema}"
    others = run(
        f"SELECT DISTINCT table_name FROM duckdb_constraints() WHERE {here} AND constraint_type = 'FOREIGN KEY' "
        f"AND referenced_table = {table}"
    )
    if others:
        raise PolicyError(
            f'rows of "{others[0][0]}" refer to the table, and DuckDB lets no row go out to which another one refers',
            hint="leave --in-place out: a copy is made",
        )
    indexes = run(f"SELECT index_name FROM duckdb_indexes() WHERE {here} AND table_name = {table}")
    if indexes and not was_there:
        raise PolicyError(
            f'the table has the index "{indexes[0][0]}", and DuckDB makes no key for a table that has one',
            hint="drop the index, and make it again when the rows are numbered; or leave --in-place out",
        )
    target, made = table_name(numbering.target), _made(numbering)
    stored = [one.name for one in there.columns if not one.is_generated and one.name not in made]
    found = ", ".join(f"{sql} AS {identifier(name)}" for name, (_, sql) in made.items())
    run(f"CREATE TEMP TABLE dpsql_rows AS SELECT {_listed(stored, 'w0.')}, {found} FROM {target} AS w0")
    for name, (type_, _) in () if was_there else made.items():
        run(f"ALTER TABLE {target} ADD COLUMN {identifier(name)} {type_}")
    run(f"DELETE FROM {target}")
    columns = _listed([*stored, *made])
    run(
        f"INSERT INTO {target} ({columns}) SELECT {columns} FROM dpsql_rows ORDER BY {_listed(numbering.apart)}"
    )
    if not was_there:
        for name in made:
            run(f"ALTER TABLE {target} ALTER COLUMN {identifier(name)} SET NOT NULL")
        run(f"ALTER TABLE {target} ADD UNIQUE ({_listed(numbering.apart)})")
    run("DROP TABLE dpsql_rows")


def _numbered_where_they_lie(run: Run, numbering: Numbering) -> None:
    """Number the rows of a Postgres table."""
    target, name = (
        table_name(numbering.target),
        identifier(f"{numbering.target[1]}_{numbering.number}_of_person"),
    )
    run(f"ALTER TABLE {target} DROP CONSTRAINT IF EXISTS {name}")
    values = {identifier(column): made for column, made in _made(numbering).items()}
    for column, (type_, _) in values.items():
        run(f"ALTER TABLE {target} ADD COLUMN IF NOT EXISTS {column} {type_}")
    found = ", ".join(f"{sql} AS {column}" for column, (_, sql) in values.items())
    run(
        f"UPDATE {target} AS t SET {', '.join(f'{column} = r.{column}' for column in values)} FROM (SELECT "
        f"w0.ctid AS place, w0.tableoid AS part, {found} FROM {target} AS w0) AS r "
        "WHERE t.ctid = r.place AND t.tableoid = r.part"
    )
    for column in values:
        run(f"ALTER TABLE {target} ALTER COLUMN {column} SET NOT NULL")
    run(f"ALTER TABLE {target} ADD CONSTRAINT {name} UNIQUE ({_listed(numbering.apart)})")


# --- files converted to Parquet ---------------------------------------------------------------------------


_DELIMITERS = {".csv": ",;\t|", ".tsv": "\t"}
_LINES = (".jsonl", ".ndjson")
_INTEGERS = ("BIGINT", "HUGEINT", "INTEGER", "UBIGINT")


@dataclass(frozen=True, slots=True)
class Converted:
    """A Parquet file that was written: its rows, and its columns with their types in order."""

    target: Path
    rows: int
    columns: tuple[tuple[str, str], ...]


def convert(source: Path) -> Converted:
    """Write a CSV file or JSON lines as Parquet beside it, all of it or nothing; a file of that name is replaced.

    Types are those that every line has; numbers that are not written as numbers are (007, +1) stay text, so that two
    that differ stay two. Raises PolicyError: another kind of file, a line that does not parse, or no place to write.
    """
    target = source.with_suffix(".parquet")
    draft = target.with_name(f"{target.name}.new")
    try:
        with duckdb.connect() as connection:
            rows = _rows_sql(connection, source)
            columns = tuple((row[0], row[1]) for row in connection.execute(f"DESCRIBE {rows}").fetchall())
            connection.execute(f"COPY ({rows}) TO {text(str(draft))} (FORMAT parquet)")
            written = f"SELECT COUNT(*) FROM read_parquet({text(str(draft))})"
            ((count,),) = connection.execute(written).fetchall()
        os.replace(draft, target)
        return Converted(target, count, columns)
    except UnicodeDecodeError:
        problem = PolicyError(f"{source.name}: is not UTF-8 text; save it as UTF-8")
    except OSError as error:
        problem = PolicyError(f"{source.name}: cannot be converted: {error.strerror}")
    except duckdb.IOException:
        problem = PolicyError(f"{source.name}: cannot be read, or {target.name} cannot be written beside it")
    except duckdb.Error as error:
        problem = PolicyError(f"{source.name}: {_place_of(error)}; mend it, and convert again")
    finally:
        draft.unlink(missing_ok=True)
    raise problem


def _rows_sql(connection: duckdb.DuckDBPyConnection, source: Path) -> str:
    """Return the SELECT that reads a file, all lines of which were read as text. Raises PolicyError, duckdb.Error."""
    name, ending = text(str(source)), source.suffix.lower()
    if ending in _LINES:
        _check_json(source)
        return f"SELECT * FROM read_json({name}, format = 'newline_delimited', sample_size = -1)"
    if ending not in _DELIMITERS:
        raise PolicyError(f"{source.name}: is neither .csv, .tsv, .jsonl nor .ndjson; name such a file")
    with open(source, encoding="utf-8-sig", newline="") as file:
        delimiter = max(_DELIMITERS[ending], key=file.readline().count)
        file.seek(0)
        names = next(csv.reader(file, delimiter=delimiter), [])
    if len({one.lower() for one in names}) < len(names) or not all(names):
        raise PolicyError(
            f"{source.name}: its first line does not name every column, or one twice; write names there"
        )
    options = f"delim = '{delimiter}', quote = '\"', escape = '\"', header = true, strict_mode = true"
    texts = _read(name, options, dict.fromkeys(names, "VARCHAR"))
    connection.execute(f"SELECT COUNT(*) FROM {texts}").fetchall()
    sniffed = f"DESCRIBE SELECT * FROM read_csv({name}, {options}, sample_size = -1)"
    types = {
        column: row[1] for column, row in zip(names, connection.execute(sniffed).fetchall(), strict=True)
    }
    for column in [column for column, type_ in types.items() if type_ in _INTEGERS]:
        plain = f"{identifier(column)} = CAST(TRY_CAST({identifier(column)} AS HUGEINT) AS VARCHAR)"
        if connection.execute(f"SELECT bool_and({plain}) FROM {texts}").fetchall() == [(False,)]:
            types[column] = "VARCHAR"
    return f"SELECT * FROM {_read(name, options, types)}"


def _read(name: str, options: str, types: Mapping[str, str]) -> str:
    shown = ", ".join(f"{text(column)}: '{type_}'" for column, type_ in types.items())
    return f"read_csv({name}, {options}, auto_detect = false, columns = {{{shown}}})"


def _check_json(source: Path) -> None:
    """Raise PolicyError for the first line that is no JSON object; blank ones are none."""
    with open(source, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                is_object = not line.strip() or isinstance(json.loads(line), dict)
            except ValueError:
                is_object = False
            if not is_object:
                raise PolicyError(
                    f"{source.name}: line {number} is no JSON object; mend it, and convert again"
                )


def _place_of(error: duckdb.Error) -> str:
    """Return where a file does not parse: the engine's text is looked at for the number of a line, not passed on."""
    found = re.search(r"\bline:? (\d+)", str(error), re.IGNORECASE)
    return f"line {found[1]} does not fit the others" if found else "its lines do not have the same columns"
