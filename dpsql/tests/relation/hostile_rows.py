"""A DuckDB table of every column type with rows that are as bad as the types allow, and text grammars over it."""

from __future__ import annotations

import random
from fractions import Fraction

import duckdb
from hypothesis import strategies as st

from dpsql.relation import types as sql
from dpsql.relation.catalog import Catalog, Column, Enforced, Scalar, Table, Unit
from dpsql.relation.expressions import Expr
from dpsql.relation.relations import ends_in
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.tests.support.inserted import insert

__all__ = [
    "COLUMNS",
    "bind_expression",
    "booleans",
    "environments",
    "moments",
    "numbers",
    "open_table",
    "texts",
]

_INTEGERS = ("0", "1", "-1", "2", "3", "7", "10", "100", "-128", "127", "-32768", "32767")
_WIDE = ("-2147483648", "2147483647", "4294967295", "-9223372036854775808", "9223372036854775807")
_FLOATS = ("0", "-0", "1", "-1", "0.5", "2.5", "-2.5", "0.1", "1e-300", "1e300", "-1e300", "5e-324",
           "nan", "inf", "-inf", "1e10")  # fmt: skip
_DATES = ("1970-01-01", "2024-02-29", "2023-12-31", "2025-06-15", "0001-01-01", "9999-12-31",
          "5881580-07-10", "5877642-06-25 (BC)", "infinity", "-infinity")  # fmt: skip
_MOMENTS = ("1970-01-01 00:00:00", "2024-02-29 23:59:59.999999", "2025-06-15 12:34:56", "1969-12-31 23:59:59",
            "0001-01-01 00:00:00", "9999-12-31 23:59:59", "294247-01-10 04:00:54.775806",
            "290309-12-22 (BC) 00:00:00", "infinity", "-infinity")  # fmt: skip
_TEXTS = ("", "a", "b", "B", "ab", "abcde", "a_b", "a%", "ä", "é̀", "🙂x", " a ", "a\\", "%", "A" * 300)

_ENGINE: dict[str, tuple[str, sql.SqlType, tuple[str, ...]]] = {
    "i16": ("SMALLINT", sql.SMALLINT, _INTEGERS),
    "i32": ("INTEGER", sql.INTEGER, _INTEGERS + _WIDE[:2]),
    "i64": ("BIGINT", sql.BIGINT, _INTEGERS + _WIDE),
    "u8": ("UTINYINT", sql.INTEGER, ("0", "1", "255")),
    "u32": ("UINTEGER", sql.BIGINT, ("0", "7", "4294967295")),
    "u64": ("UBIGINT", sql.numeric(20, 0), ("0", "7", "18446744073709551615")),
    "hug": ("HUGEINT", sql.numeric(38, 0), (*_INTEGERS, *_WIDE, "170141183460469231731687303715884105727",
                                            "-170141183460469231731687303715884105728")),
    "n": ("DECIMAL(10,2)", sql.numeric(10, 2), ("0", "0.01", "-2.50", "2.55", "99999999.99", "-99999999.99")),
    "fine": ("DECIMAL(38,30)", sql.numeric(38, 30), ("0", "99999999." + "9" * 30, "-0." + "0" * 29 + "1", "1.5")),
    "r": ("REAL", sql.REAL, (*_FLOATS[:8], "nan", "inf", "-inf", "3.4e38")),
    "f": ("DOUBLE", sql.DOUBLE, _FLOATS),
    "d": ("DATE", sql.DATE, _DATES),
    "ts": ("TIMESTAMP", sql.TIMESTAMP, _MOMENTS),
    "b": ("BOOLEAN", sql.BOOLEAN, ("true", "false")),
    "s": ("VARCHAR", sql.TEXT, _TEXTS),
    "e": ("ENUM('a', 'b', 'B')", sql.TEXT, ("a", "b", "B")),
}  # fmt: skip
COLUMNS = tuple(Column(name, type_) for name, (_, type_, _) in _ENGINE.items())
"""The columns with nothing declared of them."""


def open_table(count: int = 120) -> duckdb.DuckDBPyConnection:
    """Return a database with the table t: each value of each type, NULL in a tenth of the cells."""
    chance = random.Random(20261120)
    connection = duckdb.connect()
    columns = ", ".join(f"{name} {engine}" for name, (engine, _, _) in _ENGINE.items())
    connection.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {columns})")
    rows = []
    for number in range(count):
        cells = [
            None if chance.random() < 0.1 else chance.choice(values) for _, _, values in _ENGINE.values()
        ]
        rows.append([number, *cells])
    rows.append([count, *(None for _ in _ENGINE)])
    insert(connection, "t", rows)
    return connection


# --- what an owner may declare of it -----------------------------------------------------------------

_DAYS = (-719162, -1, 0, 365, 19782, 20088, 20254, 2932896)
_DAY = 86_400_000_000


def _ends(name: str, is_bounded: bool) -> st.SearchStrategy[tuple[Fraction, Fraction] | None]:
    type_ = _ENGINE[name][1]
    if type_.kind is sql.Kind.DATE:
        points = [Fraction(day) for day in _DAYS]
    elif type_.kind is sql.Kind.TIMESTAMP:
        points = [Fraction(day * _DAY) for day in _DAYS]
    elif type_.is_float:
        points = [Fraction(text) for text in ("0", "1", "-1", "0.1", "4", "-2.5", "1000", "1e6", "1e100")]
    elif type_.is_number:
        points = [Fraction(text) for text in ("0", "1", "-1", "5", "-7", "60", "1000", "-1000")]
        if name in ("i64", "hug"):
            points += [Fraction(2**61), Fraction(-(2**61)), Fraction(2**40)]
    else:
        return st.none()
    pairs = st.tuples(st.sampled_from(points), st.sampled_from(points))
    ordered = pairs.map(lambda pair: (min(pair), max(pair)))
    return ordered if is_bounded else st.none() | ordered


@st.composite
def environments(draw: st.DrawFn, is_bounded: bool = False) -> tuple[Column, ...]:
    """Declared columns: the table's types, with bounds and values that the rows may or may not respect."""
    columns = []
    for name, (_, type_, _) in _ENGINE.items():
        values: tuple[Scalar, ...] | None = None
        if name in ("s", "e"):
            values = draw(st.sampled_from((None, ("a", "b"), ("ab", "abcde", "B", None))))
        longest = draw(st.sampled_from((None, 2))) if name in ("s", "e") else None
        enforced = Enforced(not_null=draw(st.booleans()))
        ends = draw(_ends(name, is_bounded))
        columns.append(Column(name, type_, enforced, bounds=ends, values=values, max_length=longest))
    return tuple(columns)


def bind_expression(text: str, columns: tuple[Column, ...]) -> Expr:
    """Return the bound form of an expression over the table t."""
    table = Table(
        "t", ("main", "t"), columns, Unit(("id",), (sql.INTEGER,), is_unique=True, is_not_null=True)
    )
    query = parse_statement(f"SELECT {text} FROM t")
    assert isinstance(query, AdmittedQuery)
    relation = bind(query, BindingContext(Catalog({"t": table}, "main"), query.text, (), 0, {}))
    assert ends_in(relation, "outputs")
    return relation.exprs[0]


# --- expressions as text -----------------------------------------------------------------------------

_NUMBERS = ("i16", "i32", "i64", "u8", "u32", "u64", "hug", "n", "fine", "r", "f")
_LITERALS = ("0", "1", "2", "-3", "7", "10", "0.5", "2.5", "-0.01", "100", "1e6", "0.000000001", "2147483648",
             "9223372036854775807", "1e-30", "CAST(0.1 AS double precision)", "NULL")  # fmt: skip
_WORDS = ("'a'", "'b'", "'ab'", "''", "'%'", "'a_'", "'ä'", "NULL")
_TARGETS = (
    "smallint",
    "integer",
    "bigint",
    "numeric(10,2)",
    "numeric(38,0)",
    "double precision",
    "real",
    "numeric",
)
_PATTERNS = ("'a%'", "'%b'", "'_'", "'a\\_%'", "'%a%b%'", "''")
_REGULAR = ("'^[a-z]+$'", "'a.*b|B'", "'[[:alpha:]]\\d?'", "'\\w+\\s'", "'[^a]$'", "'(a|b)*c'", "'\\\\'")
_ROWS = ("'[a-z]+'", "'a(.)'", "'[^a-z]+'", "'\\W'")
_FORMATS = ("YYYY-MM", "FMMonth DD", "Dy HH24:MI", 'IYYY-"W"IW', "Q", "DDD D ID YY")
_INTERVALS = (
    "INTERVAL '1 day'",
    "INTERVAL '1 month'",
    "INTERVAL '3 year'",
    "INTERVAL '90 minute'",
    "INTERVAL '-2 week'",
)


def _call(function: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda args: f"{function}({', '.join(args)})")


def _infix(
    left: st.SearchStrategy[str], signs: tuple[str, ...], right: st.SearchStrategy[str]
) -> st.SearchStrategy[str]:
    return st.tuples(left, st.sampled_from(signs), right).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    )


def _choices(one: st.SearchStrategy[str], depth: int) -> list[st.SearchStrategy[str]]:
    """The forms that choose among values of any one type."""
    case = st.tuples(booleans(depth), one, one).map(
        lambda p: f"(CASE WHEN {p[0]} THEN {p[1]} ELSE {p[2]} END)"
    )
    return [_call("coalesce", one, one), _call("nullif", one, one), _call("greatest", one, one),
            _call("least", one, one), case]  # fmt: skip


def numbers(depth: int) -> st.SearchStrategy[str]:
    """Numeric expressions at most `depth` operators deep."""
    leaf = st.sampled_from(_NUMBERS) | st.sampled_from(_LITERALS)
    if depth == 0:
        return leaf
    one = numbers(depth - 1)
    digits, small = st.sampled_from(("-2", "-1", "0", "1", "2")), st.sampled_from(("0", "1", "2", "3"))
    names = (
        "abs",
        "floor",
        "ceil",
        "round",
        "trunc",
        "sqrt",
        "ln",
        "log",
        "exp",
        "sign",
        "sin",
        "cos",
        "atan",
        "tanh",
    )
    plain = [_call(name, one) for name in names]
    cast = st.tuples(one, st.sampled_from(_TARGETS)).map(lambda p: f"CAST({p[0]} AS {p[1]})")
    fields = st.sampled_from(
        (
            "year",
            "quarter",
            "month",
            "week",
            "day",
            "doy",
            "dow",
            "isodow",
            "hour",
            "isoyear",
            "second",
            "epoch",
        )
    )
    field = st.tuples(fields, moments(depth - 1)).map(lambda p: f"extract({p[0]} FROM {p[1]})")
    age = st.tuples(st.sampled_from(("year", "month")), moments(0), moments(0)).map(
        lambda p: f"extract({p[0]} FROM age({p[1]}, {p[2]}))"
    )
    between = st.tuples(
        st.sampled_from(("epoch", "day", "hour", "second")), moments(depth - 1), moments(0)
    ).map(lambda p: f"extract({p[0]} FROM CAST({p[1]} AS timestamp) - {p[2]})")
    position = st.tuples(texts(depth - 1), texts(depth - 1)).map(lambda p: f"position({p[0]} IN {p[1]})")
    ends = st.sampled_from(("0, 10", "-2.5, 2.5", "100, -7", "0.1, 1e6", "-1e30, 1e30"))
    bucket = st.tuples(one, ends, st.sampled_from(("1", "7", "1000"))).map(
        lambda p: f"width_bucket({p[0]}, {p[1]}, {p[2]})"
    )
    return st.one_of(
        leaf, _infix(one, ("+", "-", "*", "/", "%"), one), _infix(one, ("+", "-", "*", "/", "%"), one), bucket,
        one.map(lambda x: f"(- {x})"), _call("round", one, digits), _call("trunc", one, digits),
        _call("power", one, small), *plain, *_choices(one, depth - 1), cast, field, age, between, position,
        _call("length", texts(depth - 1)), _infix(st.just("d"), ("-",), st.just("d")),
        booleans(depth - 1).map(lambda x: f"CAST({x} AS integer)"),
    )  # fmt: skip


def texts(depth: int) -> st.SearchStrategy[str]:
    """Text expressions."""
    leaf = st.sampled_from(("s", "e")) | st.sampled_from(_WORDS)
    if depth == 0:
        return leaf
    one, count = texts(depth - 1), st.sampled_from(("0", "1", "2", "7"))
    return st.one_of(
        leaf, *(_call(name, one) for name in ("lower", "upper", "trim", "ltrim", "rtrim")),
        *_choices(one, depth - 1), _call("left", one, count), _call("right", one, count),
        _call("substr", one, st.sampled_from(("-1", "1", "2", "5"))),
        _call("substr", one, st.sampled_from(("-1", "1", "2", "5")), count), _infix(one, ("||",), one),
        _call("split_part", one, st.sampled_from(("'a'", "'b'", "''", "' '")), st.sampled_from(("1", "2", "7"))),
        _call("replace", one, st.sampled_from(("'a'", "''", "'A'")), st.sampled_from(("''", "'xy'"))), _call("md5", one),
        _call("regexp_replace", one, st.sampled_from(_ROWS), st.sampled_from(("''", "'<\\&>'")), st.sampled_from(("''", "'g'", "'gi'"))),
        st.tuples(one, st.sampled_from(_ROWS)).map(lambda p: f"substring({p[0]} FROM {p[1]})"),
        _call("regexp_substr", one, st.sampled_from(_ROWS)),
        _call("concat", one, one), st.sampled_from(("i32", "n", "b", "d")).map(lambda x: f"CAST({x} AS text)"),
        st.tuples(moments(depth - 1), st.sampled_from(_FORMATS)).map(lambda p: f"to_char({p[0]}, '{p[1]}')"),
    )  # fmt: skip


def moments(depth: int) -> st.SearchStrategy[str]:
    """Dates and timestamps."""
    leaf = st.sampled_from(("d", "ts", "d", "ts", "DATE '2024-02-29'", "TIMESTAMP '2025-01-01 10:00'"))
    if depth == 0:
        return leaf
    one = moments(depth - 1)
    units = st.sampled_from(("'year'", "'quarter'", "'month'", "'week'", "'day'", "'hour'", "'minute'"))
    zone = st.sampled_from(("'Europe/Zurich'", "'America/Havana'", "'Pacific/Apia'"))
    kind = st.sampled_from(("timestamptz", "timestamp"))
    return st.one_of(
        leaf, _call("date_trunc", units, one), _infix(one, ("+", "-"), st.sampled_from(_INTERVALS)),
        _infix(st.just("d"), ("+", "-"), st.sampled_from(("1", "400", "i16", "u8"))), *_choices(one, depth - 1),
        st.tuples(st.sampled_from(("15 minutes", "3 days")), one).map(
            lambda p: f"date_bin('{p[0]}', {p[1]}, TIMESTAMP '2001-01-01')"
        ), (one | texts(depth - 1)).map(lambda x: f"CAST({x} AS date)"),
        (one | texts(depth - 1)).map(lambda x: f"CAST({x} AS timestamp)"),
        _call("to_date", texts(depth - 1), st.sampled_from(("'YYYY-MM-DD'", "'DD.MM.YYYY'"))),
        _call("to_timestamp", texts(depth - 1), st.sampled_from(("'YYYY-MM-DD HH24:MI'", "'DD.MM.YYYY HH24:MI:SS.US'"))),
        _call("date_trunc", units, one, zone),
        st.tuples(one, kind, zone).map(lambda p: f"(({p[0]})::{p[1]} AT TIME ZONE {p[2]})"),
    )  # fmt: skip


def times(depth: int) -> st.SearchStrategy[str]:
    """Times of day."""
    leaf = st.sampled_from(("TIME '09:30'", "TIME '23:59:59.999999'"))
    one = moments(max(0, depth - 1)).map(lambda x: f"CAST({x} AS timestamp)::time")
    return st.one_of(leaf, one, *_choices(one, depth - 1)) if depth > 0 else st.one_of(leaf, one)


def booleans(depth: int) -> st.SearchStrategy[str]:
    """Predicates."""
    leaf = st.sampled_from(("b", "TRUE", "FALSE", "(i32 > 3)", "(s = 'a')", "(f < 0.5)", "(NULL)"))
    if depth == 0:
        return leaf
    signs = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
    one = booleans(depth - 1)
    kinds = (numbers(depth - 1), texts(depth - 1), moments(depth - 1), times(depth - 1))
    listed = st.lists(st.sampled_from(_LITERALS), min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        leaf, *(_infix(kind, signs, kind) for kind in kinds), _infix(one, ("AND", "OR"), one),
        one.map(lambda x: f"(NOT {x})"), *(kind.map(lambda x: f"({x} IS NULL)") for kind in kinds),
        st.tuples(numbers(depth - 1), listed).map(lambda p: f"({p[0]} IN ({p[1]}))"),
        st.tuples(texts(depth - 1), st.sampled_from(_PATTERNS)).map(lambda p: f"({p[0]} LIKE {p[1]})"),
        _infix(texts(depth - 1), ("~", "~*", "!~", "SIMILAR TO"), st.sampled_from(_REGULAR)),
        _call("regexp_like", texts(depth - 1), st.sampled_from(_REGULAR), st.sampled_from(("''", "'i'"))),
        st.tuples(one, st.sampled_from(("TRUE", "FALSE", "NOT TRUE"))).map(lambda p: f"({p[0]} IS {p[1]})"),
        st.tuples(moments(0), moments(0), st.sampled_from(_INTERVALS)).map(
            lambda p: f"(age({p[0]}, {p[1]}) < {p[2]} OR CAST({p[0]} AS timestamp) - {p[1]} >= {p[2]})"
        ),
        st.tuples(numbers(0), numbers(0), numbers(0)).map(lambda p: f"({p[0]} BETWEEN SYMMETRIC {p[1]} AND {p[2]})"),
    )  # fmt: skip
