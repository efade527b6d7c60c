"""Each form that Spark spells otherwise gives what DuckDB's gives, over values that are hard for one of them."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from dpsql.backends.spark_backend import bound
from dpsql.plan.dialects.dialect import Dialect, ListColumn, written
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.dialect_spark import SPARK
from dpsql.relation.calendar import EXTRACT_FIELDS, FORMAT_PATTERNS, TRUNC_UNITS, format_parts
from dpsql.relation.expressions import Literal, Months
from dpsql.relation.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, TEXT, TIMESTAMP, numeric
from dpsql.tests.plan.spark_places import ATTACKS, PLACES, queries
from dpsql.tests.support.spark_server import SparkServer

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = pytest.mark.spark

Form = Callable[[Dialect], str]
_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.variable.substitute": "false",
}


@pytest.fixture(scope="module")
def session(spark: SparkServer) -> Iterator[SparkSession]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of a pandas that nothing here uses
        from pyspark.sql.connect.session import SparkSession
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{spark.port}").create()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    yield session
    session.stop()


def rows(session: SparkSession, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    table = session.sql(sql, args=dict(bound(parameters))).toArrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Values:
    """Values x (and y) of a type as rows of both engines, by their texts."""

    def __init__(self, kind: str, texts: Sequence[Sequence[str | None]]) -> None:
        self.kind, self.columns = kind, [list(column) for column in zip(*texts, strict=True)]
        self.names = ("x", "y")[: len(self.columns)]

    def listed(self, dialect: Dialect) -> str:
        """Return SQL of the rows i, x, y."""
        columns = [ListColumn("i", 1, "BIGINT", "")]
        columns += [ListColumn(name, number, "VARCHAR", "") for number, name in enumerate(self.names, 2)]
        shown = [f"CAST({name} AS {dialect.kind(self.kind)}) AS {name}" for name in self.names]
        return f"(SELECT i, {', '.join(shown)} FROM ({dialect.listed(columns)}) AS v) AS w"

    def found(
        self, session: SparkSession, forms: dict[str, Form]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """Return what DuckDB and Spark make of each form, by the rows' order."""
        parameters = [list(range(len(self.columns[0]))), *self.columns]

        def sql(dialect: Dialect) -> str:
            shown = ", ".join(f"{form(dialect)} AS f{n}" for n, form in enumerate(forms.values()))
            return f"SELECT {shown} FROM {self.listed(dialect)} ORDER BY i"

        with duckdb.connect() as connection:
            ours = connection.execute(sql(DUCKDB), parameters).fetchall()
        theirs = rows(session, sql(SPARK), *parameters)
        return (
            dict(zip(forms, map(list, zip(*ours, strict=True)), strict=True)),
            dict(zip(forms, map(list, zip(*theirs, strict=True)), strict=True)),
        )

    def check(self, session: SparkSession, forms: dict[str, Form]) -> None:
        """Hold both to the same values."""
        ours, theirs = self.found(session, forms)
        for name in forms:
            pairs = zip(zip(*self.columns, strict=True), ours[name], theirs[name], strict=True)
            wrong = [(x, a, b) for x, a, b in pairs if not _are_same(a, b)]
            assert not wrong, f"{name}: {wrong[:5]}"


def _are_same(a: object, b: object) -> bool:
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _one(values: Sequence[object]) -> list[tuple[str | None]]:
    return [
        (None if value is None else value if isinstance(value, str) else repr(value),) for value in values
    ]


DOUBLES = [
    *(sign * value for sign in (1, -1) for value in (
        0.0, 0.1, 0.3, 0.49999999999999994, 0.5, 0.5000000000000001, 1.5, 2.5, 3.5, 0.7, 1e-320, 5e-324, 1e15 + 0.5,
        2.0**51 + 0.5, 2.0**52 - 0.5, 2.0**52 + 1, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**63, 1e300, math.inf,
    )),
    math.nan, None,
]  # fmt: skip
_INSIDE = (f"CAST('{-(2.0**62)!r}' AS DOUBLE)", f"CAST('{2.0**62!r}' AS DOUBLE)")
_FAR_INSIDE = (f"CAST('{-(2.0**124)!r}' AS DOUBLE)", f"CAST('{2.0**124!r}' AS DOUBLE)")


def test_doubles(session: SparkSession) -> None:
    far = [math.ldexp(random.Random(7).random(), power) for power in range(60, 126)]
    forms: dict[str, Form] = {
        "half_even": lambda d: d.half_even("x"), "half_away": lambda d: d.half_away("x"),
        **{name: (lambda d, name=name: d.stepped(name, "x")) for name in ("floor", "ceil", "trunc")},
        "clamp": lambda d: d.clamp("x", "-1e0", "3e0", nan=True),
        "is null": lambda d: f"CASE WHEN {d.is_nan('x')} THEN NULL ELSE x END IS NULL",
        "rounded": lambda d: d.rounded(f"({d.clamp('x', *_INSIDE, nan=True)})", "BIGINT", 2**62 - 1),
        "wide": lambda d: d.rounded(f"({d.clamp('x', *_FAR_INSIDE, nan=True)})", "HUGEINT", 2**124),
        "beside": lambda d: f"x > {d.double_literal(0)} AND NOT x = {d.double_literal(2)}",
        "extreme": lambda d: d.extreme("greatest", ["x", "0e0"]),
    }  # fmt: skip
    Values("DOUBLE", _one([*DOUBLES, *far])).check(session, forms)


WIDE = sorted({
    sign * (value + more) for sign in (1, -1) for more in (-1, 0, 1)
    for value in (1, 2, 7, 10**9, 2**31, 10**18, 9 * 10**18, 10**19, 2**62, 2**63, 2**64, 3 * 10**20, 10**37, 2**124)
})  # fmt: skip


def test_wide_quotients(session: SparkSession) -> None:
    generator = random.Random(3)
    drawn = [
        tuple(
            generator.randrange(1, 2 ** generator.randrange(1, 125)) * generator.choice((1, -1)) for _ in "xy"
        )
        for _ in range(400)
    ]
    pairs = [*itertools.product(WIDE, WIDE), *drawn]
    texts = [(str(x), str(y)) for x, y in pairs] + [(None, "3"), ("3", None), ("3", "0")]
    forms: dict[str, Form] = {
        "quotient": lambda d: d.quotient("x", "NULLIF(y, 0)", wide=True, most=2**125),
        "by seven": lambda d: d.quotient("x", "7", wide=True, most=2**125),
        "rest": lambda d: "(x % NULLIF(y, 0))",
        "rest of seven": lambda d: "(x % 7)",
    }
    values = Values("HUGEINT", texts)
    values.check(session, forms)
    _, theirs = values.found(session, {"quotient": forms["quotient"]})
    for (x, y), found in zip(pairs, theirs["quotient"], strict=False):
        assert y == 0 or found == abs(x) // abs(y) * (1 if (x > 0) == (y > 0) or abs(x) < abs(y) else -1), (
            x,
            y,
        )


def test_narrow_quotients_of_wide_numbers(session: SparkSession) -> None:
    """Up to the last one that 64 bits hold."""
    ends = [
        (sign * (2**63 - 1) * y + more, y)
        for sign in (1, -1)
        for y in (1, 7, 2**40, 2**61)
        for more in (0, 1)
    ]
    pairs = [(x, y) for x, y in (*itertools.product(WIDE, WIDE), *ends) if y and abs(x) // abs(y) < 2**63]
    assert len(pairs) > 1000
    form: Form = lambda d: d.quotient("x", "y", wide=True, most=2**63 - 1)  # noqa: E731
    Values("HUGEINT", [(str(x), str(y)) for x, y in pairs]).check(session, {"quotient": form})


def test_narrow_quotients(session: SparkSession) -> None:
    narrow = [value for value in WIDE if abs(value) < 2**62]
    Values("BIGINT", [(str(x), str(y)) for x, y in itertools.product(narrow, [*narrow, 0])]).check(
        session,
        {"quotient": lambda d: d.quotient("x", "NULLIF(y, 0)", wide=False, most=2**62), "rest": lambda d: "x % NULLIF(y, 0)",
         "shifted": lambda d: d.shifted_right("x", 7), "scattered": lambda d: d.scattered([("x", BIGINT)], 10)},
    )  # fmt: skip


def test_sums_are_wide(session: SparkSession) -> None:
    """Four rows near 2^62, whose sum no BIGINT holds."""
    values = Values("BIGINT", [(str(2**62 - 1),)] * 4)
    forms: dict[str, Form] = {
        "sum": lambda d: f"SUM({d.summed('x', 'BIGINT', 2**102)}) OVER ()",
        "cast": lambda d: f"SUM({d.cast('x', d.summand(2**102))}) OVER ()",
        "squares": lambda d: f"SUM({d.summed('(x >> 32) * (x >> 32)', 'BIGINT', None)}) OVER ()",
    }
    values.check(session, forms)


@pytest.mark.parametrize(("precision", "scale"), [(38, 10), (38, 37), (18, 2), (9, 4), (20, 19)])
def test_decimals(session: SparkSession, precision: int, scale: int) -> None:
    generator = random.Random(precision)
    whole = [0, 1, -1, 10**precision - 1, 1 - 10**precision, 5 * 10 ** max(scale - 1, 0)]
    whole += [generator.randrange(10 ** generator.randrange(1, precision + 1)) for _ in range(200)]
    whole += [-one for one in whole]
    texts = [
        f"{'-' if one < 0 else ''}{abs(one) // 10**scale}.{abs(one) % 10**scale:0{max(scale, 1)}}"
        for one in whole
    ]
    type_ = numeric(precision, scale)
    forms: dict[str, Form] = {
        "text": lambda d: d.spelled("x", type_), "clamp": lambda d: d.clamp("x", "-0.5", "0.5"),
    }  # fmt: skip
    if scale == 10:  # of fewer digits DuckDB's own trunc() has no place for all
        forms["truncated"] = lambda d: d.cast(d.truncated("x"), "HUGEINT")
    if scale == 4:
        forms["lattice"] = lambda d: d.cast(f"{d.cast('x', 'DECIMAL(18, 4)')} * {10**scale}", "BIGINT")
    Values(f"DECIMAL({precision}, {scale})", _one(texts)).check(session, forms)


def test_a_bigint_beside_many_decimals(session: SparkSession) -> None:
    """Spark takes a BIGINT for 20 digits, and would round the last of 19 after the point."""
    type_ = numeric(38, 19)
    shown = f"{SPARK.fits_beside('CAST(1 AS BIGINT)', BIGINT, type_)} = CAST('1.0000000000000000001' AS DECIMAL(38, 19))"
    assert rows(session, f"SELECT {shown}") == [(False,)]


_DAYS = [
    *range(-719_162 - 3, -719_162 + 3), *range(2_932_896 - 2, 2_932_896 + 3), *range(-800, 800, 37), -719_162 - 400, -2_000_000,
    -5_000_000, 4_000_000, 60, 59, 11016, None,
]  # fmt: skip
_MOMENTS = [
    *(day * 86_400_000_000 + more for day in _DAYS if day is not None for more in (0, 1, -1, 43_200_000_000, 500_000)), None
]  # fmt: skip
_FORMATS = [*FORMAT_PATTERNS, "FMMonth", "FMDay", '"it\'s \\ "YYYY-MM-DD', '"plain"']


def _calendar(kind: str) -> dict[str, Form]:
    """Return what is printed of a moment inside our calendar, and of one anywhere."""
    type_ = DATE if kind == "DATE" else TIMESTAMP
    ends = (-719_162, 2_932_896) if kind == "DATE" else (-62_135_596_800_000_000, 253_402_300_799_999_999)

    def moment(d: Dialect) -> str:
        return f"({d.clamp('x', *(d.literal(Literal(type_, end)) for end in ends))})"

    forms: dict[str, Form] = {
        "text": lambda d: d.text_of("x", type_), "hash": lambda d: d.hashed([d.hash_text("x", type_)]),
        "since": lambda d: d.since_1970(moment(d), type_),
    }  # fmt: skip
    for field in EXTRACT_FIELDS:
        if kind == "TIMESTAMP" or field not in ("hour", "minute"):
            forms[field] = lambda d, field=field: (
                f"CAST({d.extract(field, d.calendar_operand(moment(d)))} AS BIGINT)"
            )
    for unit in TRUNC_UNITS:
        forms[f"cut {unit}"] = lambda d, unit=unit: d.since_1970(
            d.date_trunc(unit, d.calendar_operand(moment(d))), TIMESTAMP
        )
    for text in _FORMATS if kind == "TIMESTAMP" else ():
        parts = format_parts(text)
        assert not isinstance(parts, str), text
        forms[f"to_char {text}"] = lambda d, parts=parts: written(parts, d.calendar_operand(moment(d)), d)
    return forms


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP"])
def test_calendar(session: SparkSession, kind: str) -> None:
    values = _DAYS if kind == "DATE" else _MOMENTS
    since = "DATE '1970-01-01' + CAST({0} AS INTEGER)" if kind == "DATE" else "make_timestamp({0})"
    made = {DUCKDB: since, SPARK: "date_from_unix_date(CAST({0} AS INTEGER))" if kind == "DATE"
            else "CAST(timestamp_micros({0}) AS TIMESTAMP_NTZ)"}  # fmt: skip

    class Moments(Values):
        def listed(self, dialect: Dialect) -> str:
            return f"(SELECT i, {made[dialect].format('x')} AS x FROM {super().listed(dialect)}) AS m"

    Moments("BIGINT", _one(values)).check(session, _calendar(kind))


def test_intervals(session: SparkSession) -> None:
    shifts = [
        Months(*one)
        for one in (
            (1, 0, 0),
            (-14, 3, 0),
            (0, -40, 1),
            (0, 0, -1),
            (0, 0, 86_400_000_001),
            (7, 7, -7_000_007),
        )
    ]

    def shifted(by: Months, sign: str, type_: Any) -> Form:
        return lambda d: d.shifted("x", sign, by, type_)

    for kind, type_ in (("DATE", DATE), ("TIMESTAMP", TIMESTAMP)):
        forms = {f"{sign} {by}": shifted(by, sign, type_) for by in shifts for sign in "+-"}
        if kind == "TIMESTAMP":
            forms["less"] = lambda d: d.less_microseconds("x", "CAST(9007199254740991 AS BIGINT)")
            forms["more"] = lambda d: d.less_microseconds("x", "CAST(-3600000001 AS BIGINT)")
        else:
            forms["days"] = lambda d: d.days_between("x", "DATE '2020-02-29'")
        texts = ["2020-01-31", "2020-02-29", "1999-12-31", "1600-03-01", "2024-03-30"]
        texts = texts if kind == "DATE" else [f"{one} 23:59:59.999999" for one in texts]
        Values(kind, _one([*texts, None])).check(session, forms)
    assert DUCKDB.literal(Literal(INTERVAL, shifts[0])).startswith("INTERVAL")


TEXTS = [
    "", " ", "a", "abc", " a b ", "A\tb\n", "ß", "Straße", "İstanbul", "ΣΑΣ", "ǆ", "é", "e\u0301", "😀", "a😀b", "\x01", "\x1f",
    "it's", "\\", "a\\", "\\'", "''", "%", "_", "50%", "a_b", "!", "!%", "${env:HOME}", "$1", ":p1", "`", '"', "-- x", "/* x",
    "x\\' OR 1=1 --", "\u00a0a\u00a0", "ab" * 300, None,
]  # fmt: skip


def test_texts(session: SparkSession) -> None:
    forms: dict[str, Form] = {
        "read": lambda d: d.column(d.stored("x", TEXT), TEXT),
        **{name: (lambda d, name=name: d.letter_case(name, "x")) for name in ("lower", "upper")},
        **{name: (lambda d, name=name: d.trimmed(name, "x")) for name in ("trim", "ltrim", "rtrim")},
        **{f"substring {numbers}": (lambda d, numbers=numbers: d.substring("x", *numbers))
           for numbers in ((0,), (0, 0), (0, 1), (0, 2), (1,), (1, 2), (2, 1), (3, 2**31 - 2), (2**31 - 2, 5))},
        "cut": lambda d: d.cut("x", 3), "length": lambda d: "CAST(length(x) AS BIGINT)",
        "ends": lambda d: "left(x, 2) || right(x, 2)", "right 0": lambda d: "right(x, 0)",
        "hash": lambda d: d.hashed([d.hash_text("x", TEXT), "'k'"]),
        "scattered": lambda d: d.scattered([("x", TEXT)], 12),
        "order": lambda d: f"ROW_NUMBER() OVER (ORDER BY {d.bytewise(d.as_text('x'))} NULLS LAST, i)",
    }  # fmt: skip
    Values("VARCHAR", _one(TEXTS)).check(session, forms)
    known = [text for text in TEXTS if text is not None]
    pairs: dict[str, Form] = {
        "position": lambda d: f"CAST({d.position('x', 'y')} AS BIGINT)", "less": lambda d: f"{d.bytewise('x')} < {d.bytewise('y')}",
        "same": lambda d: d.same("x", "y"), "most": lambda d: d.extreme("greatest", [d.bytewise("x"), d.bytewise("y")]),
    }  # fmt: skip
    Values("VARCHAR", list(itertools.product(known, known))).check(session, pairs)


def test_constants(session: SparkSession) -> None:
    """A text that an analyst writes is nothing but that text, and a pattern means what it does elsewhere."""
    known = [text for text in TEXTS if text is not None]
    values = Values("VARCHAR", [(text,) for text in known])
    forms: dict[str, Form] = {}
    for number, text in enumerate(known):
        forms[f"equal {number}"] = lambda d, text=text: f"x = {d.text_literal(text)}"
        for place in (1, 2) if text else ():
            part = f"split_part(x, {{}}, {place})"
            forms[f"part {number} {place}"] = lambda d, text=text, part=part: part.format(
                d.text_literal(text)
            )
    for pattern, escape in [
        *((text, "") for text in known), *((text.replace("\\", "\\\\"), "\\") for text in known), ("%a%", ""), ("a_b", "\\"),
        ("a\\_b", "\\"), ("50\\%", "\\"), ("%!%", "!"), ("!!%", "!"), ("a!_b", "!"), ("%\\\\", "\\"), ("\\a%", "\\"), ("_", ""),
        ("%\\_%", ""), ("%'%", ""), ("%😀_", ""), ("!%%", ""), ("\\!%", "\\"),
    ]:  # fmt: skip
        forms[f"like {pattern!r} {escape!r}"] = lambda d, p=pattern, e=escape: d.like("x", p, e)
    values.check(session, forms)


_OTHER_SETTINGS = {
    "spark.sql.parser.escapedStringLiterals": "true", "spark.sql.variable.substitute": "true",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enabled": "false",
}  # fmt: skip


@pytest.mark.parametrize("setting", sorted(_OTHER_SETTINGS))
def test_no_setting_changes_a_literal(session: SparkSession, setting: str) -> None:
    known = [text for text in TEXTS if text]
    before = session.conf.get(setting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that one of them is not to be set
        session.conf.set(setting, _OTHER_SETTINGS[setting])
    try:
        shown = ", ".join(SPARK.text_literal(text) for text in known)
        assert rows(session, f"SELECT explode(array({shown}))") == [(text,) for text in known]
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            session.conf.set(setting, before)


def test_a_parameter_is_a_value_under_every_setting(session: SparkSession) -> None:
    known = [text for text in TEXTS if text is not None]
    shown = ", ".join(SPARK.parameter(number, is_text=True) for number in range(1, len(known) + 1))
    for setting in ("", "spark.sql.parser.escapedStringLiterals", "spark.sql.variable.substitute"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            before = session.conf.get(setting) if setting else ""
            if setting:
                session.conf.set(setting, "true")
            try:
                assert rows(session, f"SELECT explode(array({shown}))", *known) == [(text,) for text in known]
            finally:
                if setting:
                    session.conf.set(setting, before)


def test_a_name_is_a_name(session: SparkSession) -> None:
    for name in ("a", "a b", 'say "no"', "x`y", "`", "a.b", "\\", "it's", "--", "Ä"):
        table = session.sql(
            f"SELECT {SPARK.identifier(name)} FROM (SELECT 1 AS {SPARK.identifier(name)}) AS t"
        ).toArrow()
        assert table.schema.names == [name]


def test_lists_come_back_as_they_were(session: SparkSession) -> None:
    lists: dict[str, list[object]] = {
        "BIGINT": [0, -(2**63), 2**63 - 1, None], "DOUBLE": [0.1, -1e300, 5e-324, None], "BOOLEAN": [True, False, None, True],
        "VARCHAR": ["\\'\"", "😀\n", None, "null"],
    }  # fmt: skip
    columns = [ListColumn(f"c{n}", n + 1, carried, "") for n, carried in enumerate(lists)]
    columns.append(ListColumn("c4", 5, "VARCHAR", "DATE"))
    dates: list[object] = ["2024-02-29", None, "0001-01-01", "9999-12-31"]
    found = rows(session, SPARK.listed(columns), *lists.values(), dates)
    assert [list(column) for column in list(zip(*found, strict=True))[:4]] == list(lists.values())
    assert [str(row[4]) if row[4] else None for row in found] == dates
    assert rows(session, SPARK.listed(columns[:1]), []) == []


def test_what_is_no_utf8_is_null(session: SparkSession) -> None:
    """substring() of such a text reads what stands behind it in memory."""
    bad = "CAST(X'61E2' AS STRING)"
    assert (
        rows(
            session,
            f"SELECT {SPARK.stored('x', TEXT)}, hex(substring(x, 2, 1)) FROM (SELECT {bad} AS x) AS t",
        )[0][0]
        is None
    )


def test_a_column_is_compared_bytewise_and_without_padding(session: SparkSession) -> None:
    for declared in ("x COLLATE UTF8_LCASE", "x COLLATE UNICODE_CI"):
        shown = SPARK.column(SPARK.stored("x", TEXT), TEXT)
        source = f"(SELECT {declared} AS x FROM (SELECT 'a' AS x) AS t) AS t"
        assert rows(
            session, f"SELECT x = 'A', {shown} = 'A', {SPARK.bytewise(shown)} < 'B' FROM {source}"
        ) == [(True, False, False)]


def test_truth_and_nothing(session: SparkSession) -> None:
    forms: dict[str, Form] = {
        "flag": lambda d: d.flag("x"), "text": lambda d: d.spelled("x", BOOLEAN), "same": lambda d: d.same("x", "NULL"),
        **{str(type_): (lambda d, type_=type_: f"{d.literal(Literal(type_, None))} IS NULL AND x")
           for type_ in (BIGINT, BOOLEAN, DOUBLE, TEXT, DATE, TIMESTAMP, numeric(9, 2))},
    }  # fmt: skip
    Values("BOOLEAN", _one(["true", "false", None])).check(session, forms)


_CLINIC = {
    "person": "id INTEGER, city VARCHAR, age INTEGER, email VARCHAR, height DOUBLE, born DATE",
    "visit": "person_id INTEGER, no INTEGER, ward VARCHAR, fee DECIMAL(10, 2), days INTEGER, urgent BOOLEAN, note VARCHAR",
    "ward": "name VARCHAR, floor INTEGER, beds INTEGER",
}  # fmt: skip


@pytest.fixture(scope="module")
def clinic(session: SparkSession) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give the clinic of `planned` in both engines; each attack is somebody's note."""
    with duckdb.connect() as connection:
        for table, columns in _CLINIC.items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
        notes = [*ATTACKS, "a", "b", "", " a ", "z", None]
        people = [(n, "Ulm", 20 + n, "e", None, "2001-02-03") for n in range(len(notes) // 2 + 1)]
        visits = [(n // 2, n, "abcd"[n % 4], "1.50", n % 9, n % 2 == 0, note) for n, note in enumerate(notes)]
        connection.executemany("INSERT INTO person VALUES (?, ?, ?, ?, ?, ?)", people)
        connection.executemany("INSERT INTO visit VALUES (?, ?, ?, ?, ?, ?, ?)", visits)
        connection.executemany("INSERT INTO ward VALUES (?, 1, 9)", [("a",), ("b",)])
        for table in _CLINIC:
            session.createDataFrame(connection.table(table).to_arrow_table()).createOrReplaceTempView(table)
        yield connection


def _agree(session: SparkSession, clinic: duckdb.DuckDBPyConnection, place: str, attack: str) -> None:
    for ours, theirs in zip(queries(place, attack, "duckdb"), queries(place, attack, "spark"), strict=True):
        salt = ["0123456789ab"] if ours.salted else []
        here = clinic.execute(ours.sql, salt).fetchall()
        there = rows(session, theirs.sql.replace("`main`.", ""), *salt)
        assert sorted(map(repr, map(_plain, here))) == sorted(map(repr, map(_plain, there))), (place, attack)


@pytest.mark.parametrize("number", range(len(PLACES)))
def test_an_attack_is_a_text_in_every_place(
    session: SparkSession, clinic: duckdb.DuckDBPyConnection, number: int
) -> None:
    """Two attacks in each place, others in the next."""
    for attack in (ATTACKS[number % len(ATTACKS)], ATTACKS[(number * 5 + 3) % len(ATTACKS)]):
        _agree(session, clinic, PLACES[number], attack)


@pytest.mark.long
@pytest.mark.parametrize("attack", ATTACKS)
def test_each_attack_is_a_text_in_every_place(
    session: SparkSession, clinic: duckdb.DuckDBPyConnection, attack: str
) -> None:
    for place in PLACES:
        _agree(session, clinic, place, attack)


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(int(value) if isinstance(value, Decimal) else value for value in row)


@pytest.mark.long
@pytest.mark.parametrize("name", ["lower", "upper"])
def test_every_character(session: SparkSession, name: str) -> None:
    """Letters that got their other case in another version of Unicode differ, and no others."""
    characters = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000]
    ours, theirs = Values("VARCHAR", [(one,) for one in characters]).found(
        session, {name: lambda d: d.letter_case(name, "x")}
    )
    pairs = zip(characters, ours[name], theirs[name], strict=True)
    differ = [(hex(ord(x)), a, b) for x, a, b in pairs if a != b]
    assert all(
        chr(int(code, 16)) in (a, b) and int(code, 16) > 0x180 and len(b) == 1 for code, a, b in differ
    )
    assert len(differ) < 100, differ
