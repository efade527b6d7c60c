"""Small wild databases and random statements over them: what the tests of the laws feed the engine.

The databases keep no declaration: more rows and groups than M and C, values outside bounds and lists,
NULL units and keys, NaN, infinities, the ends of every type. They keep what the engine enforces (types,
the root's PRIMARY KEY, one CHECK). The statements are spread over the grammar; a refusal is a fine answer.
Needs hypothesis, as only tests do.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from ...policy import Policy, parse_policy

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "NEWCOMER", "PERSON", "SCHEMA", "UNITS", "VISIT", "Database", "aggregates", "databases", "load", "numbers",
    "policy_of", "policy_text", "predicates", "random_database", "replaced", "rows_of", "statements", "without",
]  # fmt: skip

SCHEMA = """
CREATE TYPE severity AS ENUM ('low', 'high');
CREATE TABLE person (
    id INTEGER PRIMARY KEY, age SMALLINT, height DOUBLE, score DECIMAL(3,1) CHECK (score BETWEEN 0 AND 9),
    nick VARCHAR, team VARCHAR, born DATE, active BOOLEAN NOT NULL);
CREATE TABLE visit (
    person_id INTEGER, n INTEGER, big BIGINT, far BIGINT, huge HUGEINT, x DOUBLE, wild DOUBLE, vast DOUBLE,
    r REAL, d DECIMAL(6,2), fine DECIMAL(38,20), city VARCHAR, tag VARCHAR, day DATE, any_day DATE,
    seen TIMESTAMP, any_seen TIMESTAMP, flag BOOLEAN, level severity);
"""

_POLICY = """
database = "duckdb:laws.duckdb"
ledger = "sqlite:laws-ledger.db"
[privacy]
epsilon = 9999
delta = 0.9
neighbours = "{neighbours}"
[defaults]
epsilon = {epsilon}
max_epsilon = 10
delta = {delta}
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 120] }}
height = {{ bounds = [0.5, 2.5], step = 0.01 }}
score = {{ bounds = [0, 9] }}
nick = {{}}
team = {{ values = ["red", "blue"] }}
born = {{ bounds = [1990-01-01, 2009-12-31] }}
active = {{}}
[tables.visit]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = {total}
max_rows_per_group = {rows}
max_groups = {groups}
[tables.visit.columns]
n = {{ bounds = [-3, 7] }}
big = {{ bounds = [0, 1152921504606846976] }}
far = {{ bounds = [1000000000000000000, 1000000000000000100] }}
huge = {{}}
x = {{ bounds = [-1, 4] }}
wild = {{}}
vast = {{ bounds = [-1e300, 1e300] }}
r = {{ bounds = [0, 2] }}
d = {{ bounds = [0, 5] }}
fine = {{ bounds = [-1, 1] }}
city = {{ values = ["a", "b", "c", {{ null = true }}] }}
tag = {{}}
day = {{ bounds = [2020-01-01, 2020-12-31] }}
any_day = {{}}
seen = {{ bounds = [2020-01-01T00:00:00, 2020-03-31T23:59:59] }}
any_seen = {{}}
flag = {{}}
level = {{}}
"""


def policy_of(
    folder: Path,
    *,
    replace_one: bool = False,
    rows: int = 3,
    groups: int = 2,
    epsilon: str = "1",
    delta: str = "1e-3",
) -> Policy:
    """Return the policy over `SCHEMA`; `folder` holds its ledger. `rows` is M, `groups` is C."""
    text = policy_text(replace_one=replace_one, rows=rows, groups=groups, epsilon=epsilon, delta=delta)
    return parse_policy(text, folder / "laws.toml")


def policy_text(
    *,
    replace_one: bool = False,
    rows: int = 3,
    groups: int = 2,
    epsilon: str = "1",
    delta: str = "1e-3",
) -> str:
    """Return the text of `policy_of`."""
    neighbours = "replace-one" if replace_one else "add-remove"
    return _POLICY.format(
        neighbours=neighbours, total=rows * groups, rows=rows, groups=groups, epsilon=epsilon, delta=delta
    )


# --- rows --------------------------------------------------------------------------------------------

Cell = str | None
Row = tuple[Cell, ...]

UNITS = (1, 2, 3, 4)
"""The privacy units of a random database."""
NEWCOMER = 9
"""The unit that takes another's place in a replace-one neighbour."""

_DAYS = ["2020-01-01", "2020-12-31", "2020-06-15", "2019-12-31", "1970-01-01", "9999-12-31", "20000-01-01",
         "infinity", "-infinity", "0001-01-01", "0044-03-15 (BC)", "5881580-07-10", "5877642-06-25 (BC)"]  # fmt: skip
_MOMENTS = ["2020-01-01 00:00:00", "2020-03-31 23:59:59", "2020-02-29 12:34:56.789012", "1969-12-31 23:59:59",
            "9999-12-31 23:59:59.999999", "20000-01-01 00:00:00", "infinity", "-infinity",
            "294247-01-10 04:00:54.775806", "290308-12-22 (BC) 00:00:00"]  # fmt: skip
_REALS = ["0", "-0.0", "4", "-1", "0.3", "2.5", "nan", "inf", "-inf", "1e308", "-1e308", "5e-324", "1e16"]
_TEXTS = ["", "t", "T", "tt", "it's", "%_\\", "ß", "\U0001f600", "x" * 40, "12", "\x1f", "\x1e"]


@dataclass(frozen=True, eq=False)
class _Table:
    """A table's columns with the cells that a random row takes: the first few cells are the common ones."""

    name: str
    cells: dict[str, tuple[Cell, ...]]


def _with_null(values: list[str]) -> tuple[Cell, ...]:
    return (*values[:4], None, *values[4:])


PERSON = _Table(
    "person",
    {
        "age": _with_null(["0", "120", "30", "31", "-32768", "32767", "121"]),
        "height": _with_null(["1.8", "0.5", "2.5", "1.795", "nan", "inf", "-inf", "1e308", "-0.0"]),
        "score": _with_null(["0", "9", "4.5", "8.9"]),
        "nick": _with_null(_TEXTS),
        "team": _with_null(["red", "blue", "green", "", "Red"]),
        "born": _with_null(["2000-02-29", "1990-01-01", "2009-12-31", *_DAYS]),
        "active": ("true", "false"),
    },
)
VISIT = _Table(
    "visit",
    {
        "n": _with_null(["7", "-3", "0", "1", "8", "-4", "2147483647", "-2147483648"]),
        "big": _with_null(
            ["1152921504606846976", "0", "5", "1", "9223372036854775807", "-9223372036854775808"]
        ),
        "far": _with_null(["1000000000000000100", "1000000000000000000", "1000000000000000050", "0", "-1"]),
        "huge": _with_null(
            [
                "1",
                "0",
                "170141183460469231731687303715884105727",
                "-170141183460469231731687303715884105728",
            ]
        ),
        "x": _with_null(_REALS),
        "wild": _with_null(_REALS),
        "vast": _with_null(["1e300", "-1e300", "0", "1", *_REALS]),
        "r": _with_null(["2", "0", "0.1", "1.5", "nan", "inf", "-inf", "3e38", "-3e38", "1e-45"]),
        "d": _with_null(["5", "0", "2.50", "0.01", "9999.99", "-9999.99"]),
        "fine": _with_null(["1", "-1", "0.00000000000000000001", "0", "999999999999999999.99999999999999999999"]),
        "city": _with_null(["a", "b", "c", "A", "", "z", "a "]),
        "tag": _with_null(_TEXTS),
        "day": _with_null(_DAYS),
        "any_day": _with_null(_DAYS),
        "seen": _with_null(_MOMENTS),
        "any_seen": _with_null(_MOMENTS),
        "flag": _with_null(["true", "false"]),
        "level": _with_null(["low", "high"]),
    },
)  # fmt: skip


@dataclass(frozen=True)
class Database:
    """Rows of both tables, the unit first (None: a row without an owner, `visit` alone has such)."""

    persons: tuple[tuple[int, Row], ...]
    visits: tuple[tuple[int | None, Row], ...]


@cache
def rows_of(table: _Table) -> st.SearchStrategy[Row]:
    """Random cells of one row, without its unit."""
    return st.tuples(*(st.sampled_from(cells) for cells in table.cells.values()))


def random_database(rng: random.Random, most: int = 14) -> Database:
    """Return a database in which units own none to all of the rows; rows are often repeated, so that M is passed."""

    def row_of(table: _Table) -> Row:
        return tuple(rng.choice(cells) for cells in table.cells.values())

    units = [rng.choice(UNITS) for _ in range(rng.randint(0, 4))]
    kinds = [row_of(VISIT) for _ in range(rng.randint(1, 4))]
    owners = (1, 1, 1, 2, 2, 3, 4, None)
    visits = tuple((rng.choice(owners), rng.choice(kinds)) for _ in range(rng.randint(0, most)))
    return Database(tuple((unit, row_of(PERSON)) for unit in dict.fromkeys(units)), visits)


@st.composite
def databases(draw: st.DrawFn, most: int = 14) -> Database:
    """The same, drawn by hypothesis."""
    return random_database(draw(st.randoms(use_true_random=False)), most)


def without(database: Database, unit: int) -> Database:
    """Return the add-remove neighbour: all rows of one unit are gone from every table."""
    return Database(
        tuple(row for row in database.persons if row[0] != unit),
        tuple(row for row in database.visits if row[0] != unit),
    )


def replaced(database: Database, unit: int, newcomer: Database) -> Database:
    """Return the replace-one neighbour: one unit's rows for those of `NEWCOMER`, all of `newcomer`'s rows."""
    rest = without(database, unit)
    person = tuple((NEWCOMER, row) for _, row in newcomer.persons[:1])
    return replace(
        rest, persons=rest.persons + person, visits=rest.visits + tuple((NEWCOMER, row) for _, row in newcomer.visits)
    )  # fmt: skip


def load(connection: duckdb.DuckDBPyConnection, database: Database, order: int = 0) -> None:
    """Put a database's rows into the tables, in a physical order that depends on `order`."""
    for table, rows in (("visit", list(database.visits)), ("person", list(database.persons))):
        connection.execute(f"DELETE FROM {table}")
        random.Random(order).shuffle(rows)
        if rows:
            lines = ", ".join(_line((None if unit is None else str(unit), *cells)) for unit, cells in rows)
            connection.execute(f"INSERT INTO {table} VALUES {lines}")


def _line(cells: Row) -> str:
    shown = ("NULL" if cell is None else "'" + cell.replace("'", "''") + "'" for cell in cells)
    return f"({', '.join(shown)})"


# --- statements --------------------------------------------------------------------------------------

_NUMBERS = {"visit": ("n", "x", "d", "r", "big", "far", "n", "x", "d", "vast", "fine"),
            "person": ("age", "height", "score")}  # fmt: skip
_UNDECLARED = {"visit": ("wild", "huge"), "person": ()}
_TEXT = {"visit": ("city", "tag", "level"), "person": ("team", "nick")}
_TIMES = {"visit": ("day", "seen", "any_day", "any_seen"), "person": ("born",)}
_FLAGS = {"visit": ("flag",), "person": ("active",)}
_CONSTANTS = ("0", "1", "2", "-3", "0.5", "2.25", "7", "100", "1e3", "0.000000000001")
_TEXT_CONSTANTS = ("'a'", "'red'", "''", "'t'", "'zz'")
_TIME_CONSTANTS = ("DATE '2020-06-15'", "TIMESTAMP '2020-02-01 10:00:00'", "DATE '2000-01-01'")
_ZONES = ("Europe/Zurich", "America/Havana")
_UNITS_OF_TIME = ("year", "quarter", "month", "week", "day", "hour", "minute")
_FIELDS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "doy",
    "dow",
    "isodow",
    "hour",
    "minute",
    "isoyear",
    "second",
    "epoch",
)


def _form(pattern: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda chosen: pattern.format(*chosen))


@cache
def _texts(table: str) -> st.SearchStrategy[str]:
    column = st.sampled_from(_TEXT[table])
    return st.one_of(
        column, _form("lower({})", column), _form("upper({})", column), _form("trim({})", column),
        _form("substring({} FROM 1 FOR 2)", column), _form("left({}, 1)", column), _form("right({}, 2)", column),
        _form("({} || '-' || {})", column, column), _form("concat({}, {})", column, column),
        _form("to_char({}, '{}')", st.sampled_from(_TIMES[table]), st.sampled_from(("YYYY-MM", "FMMonth", "Dy HH24"))),
        _form("coalesce({}, 'none')", column), _form("nullif({}, 'a')", column),
    )  # fmt: skip


@cache
def _times(table: str) -> st.SearchStrategy[str]:
    column = st.sampled_from(_TIMES[table])
    return st.one_of(
        column, column, _form("date_trunc('{}', {})", st.sampled_from(_UNITS_OF_TIME), column),
        _form("({} + INTERVAL '{}')", column, st.sampled_from(("1 day", "-2 months", "90 minutes", "1 year"))),
        _form("date_trunc('{}', {}, '{}')", st.sampled_from(_UNITS_OF_TIME), column, st.sampled_from(_ZONES)),
        _form("({}::timestamptz AT TIME ZONE '{}')", column, st.sampled_from(_ZONES)),
        _form("CAST({} AS DATE)", column), _form("CAST({} AS TIMESTAMP)", column),
        _form("date_bin('{}', {}, TIMESTAMP '2001-01-01')", st.sampled_from(("7 days", "90 minutes")), column),
    )  # fmt: skip


@cache
def numbers(table: str, depth: int = 2) -> st.SearchStrategy[str]:
    """Numeric expressions over a table, up to `depth` operators deep."""
    declared = st.sampled_from(_NUMBERS[table])
    leaf = st.one_of(declared, declared, declared, st.sampled_from((*_CONSTANTS, *_UNDECLARED[table])))
    if depth == 0:
        return leaf
    inner = numbers(table, depth - 1)
    operator = st.sampled_from(("+", "-", "*", "/", "%"))
    one = st.sampled_from(
        ("abs({})", "(-{})", "round({})", "floor({})", "ceil({})", "trunc({})", "sign({})", "sin({})", "cos({})",
         "atan({})", "tanh({})", "sqrt(abs({}))", "ln(greatest({}, 1))", "log(greatest({}, 0.5))",
         "exp(least({}, 3))", "power({}, 2)", "power({}, 3)", "coalesce({}, 0)", "nullif({}, 0)",
         "CAST({} AS INTEGER)", "CAST({} AS NUMERIC(8,1))", "CAST({} AS DOUBLE PRECISION)", "({} / 4)",
         "width_bucket({}, 0, 4, 5)", "width_bucket({}, 2.5, -1, 3)")
    )  # fmt: skip
    flag, text, time = (st.sampled_from(part[table]) for part in (_FLAGS, _TEXT, _TIMES))
    return st.one_of(
        leaf,
        _form("({} {} {})", inner, operator, inner),
        st.tuples(one, inner).map(lambda pair: pair[0].format(pair[1])),
        _form("greatest({}, {})", inner, inner),
        _form("least({}, {})", inner, inner),
        _form("CASE WHEN {} THEN {} ELSE {} END", predicates(table, 0), inner, inner),
        _form("CASE WHEN {} THEN {} END", predicates(table, 0), inner),
        _form("CAST({} AS INTEGER)", flag),
        _form("extract({} FROM {})", st.sampled_from(_FIELDS), time),
        _form("extract({} FROM age({}, {}))", st.sampled_from(("year", "month")), st.sampled_from(_TIME_CONSTANTS), time),
        _form("length({})", text),
        _form("position('t' IN {})", text),
        _form("({} - DATE '2020-01-01')", st.sampled_from([c for c in _TIMES[table] if "day" in c or c == "born"])),
    )  # fmt: skip


@cache
def predicates(table: str, depth: int = 1) -> st.SearchStrategy[str]:
    """Predicates over a table."""
    number = numbers(table, depth)
    sign = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))
    text, time, flag = _texts(table), _times(table), st.sampled_from(_FLAGS[table])
    column = st.sampled_from((*_NUMBERS[table], *_UNDECLARED[table]))
    simple = st.one_of(
        flag,
        _form("({} {} {})", number, sign, number),
        _form("({} {} {})", column, sign, st.sampled_from(_CONSTANTS)),
        _form("({} BETWEEN {} AND {})", column, st.sampled_from(_CONSTANTS), st.sampled_from(_CONSTANTS)),
        _form("({} IN ({}, {}))", column, st.sampled_from(_CONSTANTS), st.sampled_from(_CONSTANTS)),
        _form("({} {} {})", text, sign, st.sampled_from(_TEXT_CONSTANTS)),
        _form("({} IN ('a', 'b'))", text),
        _form("({} LIKE '{}')", text, st.sampled_from(("%t%", "a_", "\\%%", ""))),
        _form("({} {} {})", time, sign, st.one_of(time, st.sampled_from(_TIME_CONSTANTS))),
        _form("({} IS NULL)", st.one_of(number, text, time, flag)),
        _form("({} IS NOT NULL)", st.one_of(number, text, flag)),
        _form("({} IS NOT TRUE)", flag),
        _form("({} IS DISTINCT FROM {})", number, st.sampled_from(_CONSTANTS)),
    )
    if depth == 0:
        return simple
    inner = predicates(table, depth - 1)
    return st.one_of(
        simple, simple, _form("(NOT {})", inner), _form("({} AND {})", inner, inner), _form("({} OR {})", inner, inner)
    )  # fmt: skip


@cache
def _bins(table: str) -> st.SearchStrategy[str]:
    column = st.sampled_from(("x", "n", "d", "r") if table == "visit" else ("height", "age", "score"))
    bins = ("floor({} / 0.5) * 0.5", "floor({} * 2) / 2", "ceil({} / 0.3) * 0.3 - 1", "(CAST({} AS INTEGER) / 2) * 2",
            "round({}) * 1e0", "width_bucket({}, 0, 4, 5)", "trunc({} / 1.5) * 1.5")  # fmt: skip
    return st.tuples(st.sampled_from(bins), column).map(lambda pair: pair[0].format(pair[1]))


@cache
def _keys(table: str) -> st.SearchStrategy[str]:
    column = st.sampled_from((*_TEXT[table], *_FLAGS[table], *_TIMES[table]))
    return st.one_of(
        column, column, _texts(table), _times(table), numbers(table, 1),
        _form("({} % 3)", st.sampled_from(("n",) if table == "visit" else ("age",))),
        _form("CASE WHEN {} THEN 'yes' ELSE 'no' END", predicates(table, 0)),
        st.sampled_from(("n", "d", "huge", "floor(x)") if table == "visit" else ("age", "score")),
        _bins(table),
    )  # fmt: skip


@st.composite
def aggregates(draw: st.DrawFn, table: str) -> str:
    """An aggregate call, with or without FILTER."""
    number = numbers(table, draw(st.sampled_from((0, 0, 1, 2))))
    owner = "person_id" if table == "visit" else "id"
    pattern = draw(
        st.sampled_from(
            ("COUNT(*)", "COUNT(*)", "COUNT({})", "SUM({})", "SUM({})", "AVG({})", "AVG({})", "VAR_POP({})",
             "STDDEV({})", "dp_avg_direct({})", "COUNT(DISTINCT {})", "DISTINCT KEY", "OWNERS", "MEDIAN({})",
             "CORR({}, {})", "COVAR_SAMP({}, {})", "MIN({})", "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {} DESC)", "MAX TIME")
        )
    )  # fmt: skip
    if pattern == "DISTINCT KEY":
        call = f"COUNT(DISTINCT {draw(_keys(table))})"
    elif pattern == "MAX TIME":
        call = f"MAX({draw(st.sampled_from(_TIMES[table]))})"
    elif pattern == "OWNERS":
        call = f"COUNT(DISTINCT {owner})"
    else:
        call = pattern.format(*(draw(number) for _ in range(pattern.count("{}"))))
    return f"{call} FILTER (WHERE {draw(predicates(table, 0))})" if draw(st.integers(0, 3)) == 0 else call


@st.composite
def statements(draw: st.DrawFn, table: str | None = None) -> str:
    """A statement over one private table; some of them are refused."""
    name = table or draw(st.sampled_from(("visit", "visit", "visit", "person")))
    source = name
    if draw(st.integers(0, 4)) == 0:
        source = f"(SELECT * FROM {name} WHERE {draw(predicates(name))}) AS t"
    where = f" WHERE {draw(predicates(name))}" if draw(st.booleans()) else ""
    keys = draw(st.lists(_keys(name), max_size=2, unique=True))
    if keys and draw(st.integers(0, 7)) == 0:
        return f"SELECT DISTINCT {', '.join(keys)} FROM {source}{where}"
    calls = draw(st.lists(aggregates(name), min_size=1, max_size=3))
    group = ""
    if keys:
        by = ", ".join(str(i) for i in range(1, len(keys) + 1))
        shapes: list[Any] = [f" GROUP BY {by}"] * 4
        shapes += [f" GROUP BY {word} ({', '.join(keys)})" for word in ("ROLLUP", "CUBE")]
        group = draw(st.sampled_from(shapes))
    return f"SELECT {', '.join([*keys, *calls])} FROM {source}{where}{group}"
