"""Chunks of rows and copies: against one row at a time, against Postgres' own COPY, and how fast."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.pgwire import (
    BinaryCopy,
    CopyData,
    CsvOptions,
    DataRow,
    FieldDescription,
    Format,
    Interval,
    LineCopy,
    LocalProtocolError,
    Oid,
    RowEncoder,
    TextOptions,
    Texts,
)
from dpsql.pgwire.write_binary import BINARY_WRITERS
from dpsql.pgwire.write_columns import MANY, TEXT_WRITERS, Values, listed
from dpsql.tests.support.postgres_server import PostgresServer

from .value_samples import CORNERS, STRATEGIES

KINDS = (Oid.INT4, Oid.FLOAT8, Oid.TEXT, Oid.NUMERIC, Oid.DATE, Oid.BOOL)
ROW = st.tuples(*[st.none() | STRATEGIES[oid] for oid in KINDS])


def columns(form: Format, oids: tuple[Oid, ...] = KINDS) -> list[FieldDescription]:
    return [FieldDescription(f"c{index}", oid, format=form) for index, oid in enumerate(oids)]


def one_by_one(rows: list[tuple[Any, ...]], form: Format, oids: tuple[Oid, ...] = KINDS) -> bytes:
    def value(oid: Oid, given: Any) -> bytes | None:
        if given is None:
            return None
        return BINARY_WRITERS[oid](given) if form else TEXT_WRITERS[oid](given).encode()

    return b"".join(DataRow(tuple(map(value, oids, row))).encode() for row in rows)


@given(rows=st.lists(ROW, max_size=8), form=st.sampled_from(Format))
@settings(deadline=None)
def test_a_chunk_is_its_rows_one_by_one(rows: list[tuple[Any, ...]], form: Format) -> None:
    assert RowEncoder(columns(form)).encode(rows).encode() == one_by_one(rows, form)


@pytest.mark.parametrize("form", Format)
def test_large_empty_and_missing_values(form: Format) -> None:
    rows = [("x" * 5000, None), ("", "y" * 4096), (None, ""), ("z" * 4095, "ä" * 70_000)]
    oids = (Oid.TEXT, Oid.VARCHAR)
    assert RowEncoder(columns(form, oids)).encode(rows).encode() == one_by_one(rows, form, oids)


# Many rows are written all at once: the bytes are the same.

MANY_KINDS = (*KINDS, Oid.INT2, Oid.INT8, Oid.FLOAT4, Oid.TIMESTAMP)
LENGTHS = {
    Oid.INT2: [0, -1, 2**15 - 1, -(2**15)],
    Oid.INT4: [0, 7, -10, 2**31 - 1, -(2**31)],
    Oid.INT8: [0, 10, -999, 2**63 - 1, -(2**63)],
    Oid.FLOAT8: [0.0, -0.0, 20.0, -3.05, 1e-5, 5e-324, 999999999999999.9, -999999999999999.9, 0.1, 100.0],
    Oid.TEXT: [
        "",
        "plain",
        "x" * 300,
        "grüße \N{SNOWMAN}\U0001f600",
        "\\",
        "NULL",
        "a,b",
        "tab\t",
        "\\.",
        "-1, 2",
    ],
}
BORDERS = [1e15, -1e15, 1e16, float("inf"), float("nan"), 1e300]


def cycled(values: list[Any], count: int = MANY + 3) -> list[Any]:
    return [values[index % len(values)] for index in range(count)]


@given(
    few=st.lists(st.tuples(*[st.none() | STRATEGIES[oid] for oid in MANY_KINDS]), min_size=1, max_size=6),
    nulls=st.booleans(),
    form=st.sampled_from(Format),
)
@settings(deadline=None)
def test_many_rows_are_their_rows_one_by_one(few: list[tuple[Any, ...]], nulls: bool, form: Format) -> None:
    full = [STANDS_FOR_NULL[oid] for oid in MANY_KINDS]
    if not nulls:
        few = [tuple(f if v is None else v for v, f in zip(row, full, strict=True)) for row in few]
    rows = cycled(few)
    expected = one_by_one(rows, form, MANY_KINDS)
    assert RowEncoder(columns(form, MANY_KINDS)).encode(rows).encode() == expected


STANDS_FOR_NULL: dict[Oid, Any] = {
    Oid.INT4: 1, Oid.FLOAT8: 0.5, Oid.TEXT: "x", Oid.NUMERIC: Decimal(1), Oid.DATE: date(2024, 1, 1), Oid.BOOL: True,
    Oid.INT2: 2, Oid.INT8: 3, Oid.FLOAT4: 0.5, Oid.TIMESTAMP: datetime(2024, 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize("oid", LENGTHS)
@pytest.mark.parametrize("with_null", [False, True])
def test_many_values_of_every_length(form: Format, oid: Oid, with_null: bool) -> None:
    values = LENGTHS[oid] + ([None] if with_null else [])
    for count in (MANY - 1, MANY, MANY + 1, 3 * MANY):
        rows = [(value,) for value in cycled(values, count)]
        assert RowEncoder(columns(form, (oid,))).encode(rows).encode() == one_by_one(rows, form, (oid,))


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize("border", [*BORDERS, *CORNERS[Oid.FLOAT8]])
def test_one_double_among_many(form: Format, border: float) -> None:
    for others in ([0.1], [index / 7 for index in range(200)]):
        rows = [(value,) for value in cycled([*others, border], 201)]
        expected = one_by_one(rows, form, (Oid.FLOAT8,))
        assert RowEncoder(columns(form, (Oid.FLOAT8,))).encode(rows).encode() == expected


@pytest.mark.parametrize("form", Format)
def test_many_rows_of_long_texts_and_of_none(form: Format) -> None:
    rows = cycled([("x" * 5000, None), ("", "y" * 4096), (None, ""), ("z" * 4095, "ä" * 7000)], 200)
    oids = (Oid.TEXT, Oid.VARCHAR)
    assert RowEncoder(columns(form, oids)).encode(rows).encode() == one_by_one(rows, form, oids)
    rows = [(None, None)] * 200
    assert RowEncoder(columns(form, oids)).encode(rows).encode() == one_by_one(rows, form, oids)
    assert RowEncoder(()).encode([()] * 200).encode() == DataRow(()).encode() * 200


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize(
    ("oid", "good", "bad"),
    [
        (Oid.INT4, 1, "secret"), (Oid.INT4, 1, 1.5), (Oid.INT8, 1, Decimal(1)), (Oid.FLOAT8, 1.5, "secret"),
        (Oid.TEXT, "x", 1), (Oid.TEXT, "x", "sec\0ret"), (Oid.TEXT, "x", "secret\ud800"), (Oid.BOOL, True, 1),
    ],
)  # fmt: skip
def test_what_does_not_fit_among_many_is_named_and_not_shown(
    form: Format, oid: Oid, good: Any, bad: Any
) -> None:
    for others in ([(good,)], [(good,), (None,)]):
        with pytest.raises(LocalProtocolError, match="c0") as caught:
            RowEncoder(columns(form, (oid,))).encode(cycled([*others, (bad,)], 200))
        assert "secret" not in str(caught.value)
    with pytest.raises(LocalProtocolError, match="values"):
        RowEncoder(columns(form, (oid,))).encode([*[(good,)] * 200, (good, good)])


@pytest.mark.parametrize(("oid", "beyond"), [(Oid.INT2, 2**15), (Oid.INT4, -(2**31) - 1), (Oid.INT8, 2**63)])
def test_an_integer_beyond_its_type_among_many_has_no_binary(oid: Oid, beyond: int) -> None:
    with pytest.raises(LocalProtocolError, match="c0"):
        RowEncoder(columns(Format.BINARY, (oid,))).encode(cycled([(1,), (beyond,)], 200))


# Rows that are given by column: as arrays, or as texts that are written already.

INTEGERS = [0, 1, -1, *[sign * (10**power + more) for power in range(1, 19) for sign in (1, -1) for more in (-1, 0)],
            2**63 - 1, -(2**63), 2**32 - 1, 2**32]  # fmt: skip
BY_COLUMN: dict[str, tuple[Oid, npt.NDArray[Any] | list[str]]] = {
    "int2": (Oid.INT2, np.array([0, 7, -7, 2**15 - 1, -(2**15)], dtype=np.int16)),
    "int4 of few digits": (Oid.INT4, np.array([5, 0, 9], dtype=np.int32)),
    "int4": (Oid.INT4, np.array([1, -20, 2**31 - 1, -(2**31)], dtype=np.int64)),
    "int8": (Oid.INT8, np.array(INTEGERS, dtype=np.int64)),
    "int8 of int2": (Oid.INT8, np.array([-300, 4], dtype=np.int16)),
    "float8": (Oid.FLOAT8, np.array([0.0, -0.0, 1 / 3, -1e-5, 20.0, 5e-324])),
    "float8 of many": (Oid.FLOAT8, np.arange(-50, 51) / 7),
    "float8 with exponents": (Oid.FLOAT8, np.array([1e15, -1e300, 0.5, np.inf, -np.inf, np.nan])),
    "bool": (Oid.BOOL, np.array([True, False, False])),
    "text": (Oid.TEXT, ["", "a", "grüße \N{SNOWMAN}", "x" * 256, "NULL", "tab\t", 'a,"b"']),
    "long text": (Oid.VARCHAR, ["", "y" * 257, "ä" * 9000]),
    "objects": (Oid.TEXT, np.array(["p", "qq"], dtype=object)),
    "numbers": (Oid.NUMERIC, np.array([1, -20])),
}


def by_column(values: npt.NDArray[Any] | list[str], size: int, nulls: npt.NDArray[Any] | None) -> Values:
    """Return as many values, with NULLs, as they are kept."""
    if isinstance(values, list):
        parts = [
            "" if nulls is not None and nulls[at] else text for at, text in enumerate(cycled(values, size))
        ]
        data = "".join(f"{part}\0" for part in parts).encode()
        return Texts.ending(data, np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 0), nulls)
    array = np.resize(values, size)
    return array if nulls is None else np.ma.MaskedArray(array, nulls)


@pytest.mark.parametrize("size", [1, MANY - 1, MANY, 2000])
@pytest.mark.parametrize("with_null", [False, True])
@pytest.mark.parametrize("name", BY_COLUMN)
def test_rows_by_column_are_the_rows_one_by_one(name: str, size: int, with_null: bool) -> None:
    oid, values = BY_COLUMN[name]
    nulls = np.arange(size) % 5 == 1 if with_null else None
    oids = (oid, Oid.INT4, oid)
    column = by_column(values, size, nulls)
    given: list[Values] = [column, np.arange(size, dtype=np.int32), column]
    rows = list(zip(*map(listed, given), strict=True))
    for form in Format:
        encoder = RowEncoder(columns(form, oids))
        assert encoder.encode_columns(given, size).encode() == one_by_one(rows, form, oids)
    binary, other = (BinaryCopy(columns(Format.BINARY, oids)) for _ in range(2))
    assert binary.encode_columns(given, size).encode() == b"".join(
        other.encode([row]).encode() for row in rows
    )
    for options, _ in OPTIONS:
        if isinstance(options, CsvOptions):
            options = replace(options, force_quote=options.force_quote & {0, 1})
        copy = LineCopy(columns(Format.TEXT, oids), options)
        lines = b"".join(copy.encode([row]).encode() for row in rows)
        assert copy.encode_columns(given, size).encode() == lines, options


def test_values_that_share_bytes_and_have_others_between() -> None:
    texts = Texts(
        np.frombuffer(b"?abc?", dtype=np.uint8),
        np.resize(np.array([1, 2, 4, 4]), MANY),
        np.resize(np.array([3, 1, 1, 0]), MANY),
    )
    encoded = RowEncoder(columns(Format.TEXT, (Oid.TEXT,))).encode_columns([texts], MANY).encode()
    assert encoded == one_by_one([("abc",), ("b",), ("?",), ("",)] * (MANY // 4), Format.TEXT, (Oid.TEXT,))


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize(("oid", "wrong"), [(Oid.INT4, 0.5), (Oid.TEXT, 7), (Oid.BOOL, 1)])
def test_an_array_of_another_type_is_refused_as_its_values_are(form: Format, oid: Oid, wrong: Any) -> None:
    with pytest.raises(LocalProtocolError, match="c0"):
        RowEncoder(columns(form, (oid,))).encode_columns([np.full(200, wrong)], 200)


@pytest.mark.parametrize("oid", CORNERS)
@pytest.mark.parametrize("with_null", [False, True])
def test_many_values_of_each_type_are_those_one_by_one(oid: Oid, with_null: bool) -> None:
    """One by one they are held against Postgres' own text and binary (`test_datatypes`)."""
    values = [value for value in CORNERS[oid] if value != Decimal("1E+20000")]  # it has no binary
    rows = [(value,) for value in cycled([*values, *([None] if with_null else [])], 2 * MANY)]
    for form in Format:
        assert RowEncoder(columns(form, (oid,))).encode(rows).encode() == one_by_one(rows, form, (oid,))


def test_rows_without_columns() -> None:
    assert RowEncoder(()).encode([(), ()]).encode() == DataRow(()).encode() * 2
    assert RowEncoder(()).encode([]).encode() == b""


def test_formats_may_differ_by_column() -> None:
    mixed = (FieldDescription("a", Oid.INT4, format=Format.BINARY), FieldDescription("b", Oid.INT4))
    assert RowEncoder(mixed).encode([(1, 1)]).encode() == DataRow((b"\0\0\0\1", b"1")).encode()


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize(
    "rows", [[("secret",)], [(1.5,)], [(1, 2)], [()], [(1,), ("secret",)], [(1,), (1, 2)]]
)
def test_what_does_not_fit_is_named_by_its_column_and_not_shown(
    form: Format, rows: list[tuple[Any, ...]]
) -> None:
    with pytest.raises(LocalProtocolError, match=r"c0|values") as caught:
        RowEncoder(columns(form, (Oid.INT4,))).encode(rows)
    assert "secret" not in str(caught.value)


def test_half_a_surrogate_pair_is_not_text() -> None:
    for form in Format:
        with pytest.raises(LocalProtocolError, match="c0"):
            RowEncoder(columns(form, (Oid.TEXT,))).encode([("\ud800",)])
    with pytest.raises(LocalProtocolError, match="not Unicode"):
        LineCopy(columns(Format.TEXT, (Oid.TEXT,)), CsvOptions()).encode([("\ud800",)])


def test_types_without_a_writer_are_refused_before_any_row() -> None:
    with pytest.raises(LocalProtocolError, match="type 600"):
        RowEncoder((FieldDescription("p", 600),))
    with pytest.raises(LocalProtocolError, match="type 1034"):
        RowEncoder((FieldDescription("acl", Oid.ACLITEM_ARRAY, format=Format.BINARY),))
    assert (
        RowEncoder((FieldDescription("acl", Oid.ACLITEM_ARRAY),)).encode([(None,)]).encode()
        == DataRow((None,)).encode()
    )


# COPY, with Postgres as the oracle.

COPIED: list[tuple[Any, ...]] = [
    (1, "plain", 1.5, Decimal("1.50"), date(2024, 1, 1), True, datetime(2024, 1, 1, 1), Interval(1, 2), ["a", None]),
    (None,) * 9,
    (-1, "", float("inf"), Decimal("NaN"), None, False, None, Interval(), []),
    (2, "tab\tline\nreturn\rback\\slash \b\f\v", 0.1, Decimal(0), None, None, None, None, ["x,y", 'q"', "\\"]),
    (3, "\\N", 1e300, None, None, None, None, None, ["\n"]),
    (4, "\\.", None, None, None, None, None, None, None),
    (5, 'quo"te,comma;semi|pipe', None, None, None, None, None, None, None),
    (6, "grüße \N{SNOWMAN}", None, None, None, None, None, None, None),
    (7, "NULL", None, None, None, None, None, None, None),
    (8, "0", None, None, None, None, None, None, None),
]  # fmt: skip
TABLE = (
    Oid.INT4,
    Oid.TEXT,
    Oid.FLOAT8,
    Oid.NUMERIC,
    Oid.DATE,
    Oid.BOOL,
    Oid.TIMESTAMP,
    Oid.INTERVAL,
    Oid.TEXT_ARRAY,
)
NAMES = ("int4", "text", "float8", "numeric", "date", "bool", "timestamp", "interval", "text[]")


@pytest.fixture(scope="module")
def connection(postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with postgres.admin() as connection:
        fields = ", ".join(f"c{index} {name}" for index, name in enumerate(NAMES))
        connection.execute(f"CREATE TEMP TABLE t (id serial, {fields})")
        for row in COPIED:
            texts = [
                None if value is None else TEXT_WRITERS[oid](value)
                for oid, value in zip(TABLE, row, strict=True)
            ]
            marks = ", ".join(f"%s::{name}" for name in NAMES)
            connection.execute(f"INSERT INTO t VALUES (DEFAULT, {marks})", texts)
        yield connection


def _messages(connection: psycopg.Connection[Any], select: str, options: str) -> bytes:
    """Postgres' CopyData messages, as they come."""
    with connection.cursor().copy(f"COPY ({select} FROM t ORDER BY id) TO STDOUT ({options})") as copy:
        return b"".join(CopyData(bytes(data)).encode() for data in copy)


def _ours(copy: LineCopy | BinaryCopy, rows: list[tuple[Any, ...]], chunk: int) -> bytes:
    parts = [
        copy.begin(),
        *[copy.encode(rows[at : at + chunk]) for at in range(0, len(rows), chunk)],
        copy.end(),
    ]
    return b"".join(part.encode() for part in parts)


OPTIONS: list[tuple[TextOptions | CsvOptions, str]] = [
    (TextOptions(), "FORMAT text"),
    (TextOptions(header=True), "FORMAT text, HEADER"),
    (TextOptions(delimiter="|", null="NULL"), "FORMAT text, DELIMITER '|', NULL 'NULL'"),
    (TextOptions(delimiter=",", null=""), "FORMAT text, DELIMITER ',', NULL ''"),
    (TextOptions(delimiter="-"), "FORMAT text, DELIMITER '-'"),
    (CsvOptions(), "FORMAT csv"),
    (CsvOptions(header=True), "FORMAT csv, HEADER"),
    (CsvOptions(delimiter=";", null="NULL"), "FORMAT csv, DELIMITER ';', NULL 'NULL'"),
    (CsvOptions(null="0"), "FORMAT csv, NULL '0'"),
    (CsvOptions(quote="'", escape="\\"), "FORMAT csv, QUOTE '''', ESCAPE '\\'"),
    (CsvOptions(delimiter="\t"), "FORMAT csv, DELIMITER E'\\t'"),
    (CsvOptions(force_quote=frozenset({0, 1})), "FORMAT csv, FORCE_QUOTE (c0, c1)"),
    (CsvOptions(delimiter="."), "FORMAT csv, DELIMITER '.'"),
]


@pytest.mark.parametrize(
    ("options", "words"), OPTIONS, ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_copy_of_lines_is_postgres_own(
    connection: psycopg.Connection[Any], options: TextOptions | CsvOptions, words: str
) -> None:
    select = "SELECT " + ", ".join(f"c{index}" for index in range(len(TABLE)))
    copy = LineCopy(columns(Format.TEXT, TABLE), options)
    assert _ours(copy, COPIED, 3) == _messages(connection, select, words)


PLAIN: list[tuple[Any, ...]] = [(1, "a b", 0.5), (-20, "Ω", 3.0), (300, "x", -0.0)]


@pytest.mark.parametrize(
    ("options", "words"), OPTIONS, ids=lambda part: part if isinstance(part, str) else ""
)
@pytest.mark.parametrize(
    "odd", [None, "", "NULL", "0", "a;b", "a,b", "a|b", "a-b", "a.b", "\t", "'", '"', "\\."]
)
@pytest.mark.parametrize("oids", [(Oid.TEXT,), (Oid.INT4, Oid.TEXT, Oid.FLOAT8)], ids=["alone", "beside"])
def test_many_lines_are_the_lines_one_by_one(
    options: TextOptions | CsvOptions, words: str, odd: str | None, oids: tuple[Oid, ...]
) -> None:
    rows = cycled([*PLAIN, (4, odd, 1e15)], 200)
    rows = rows if len(oids) == 3 else [(text,) for _, text, _ in rows]
    if isinstance(options, CsvOptions):
        options = replace(options, force_quote=options.force_quote & set(range(len(oids))))
    copy = LineCopy(columns(Format.TEXT, oids), options)
    assert _ours(copy, rows, 200) == _ours(copy, rows, 1)


@pytest.mark.parametrize("chunk", [MANY, MANY + 1, 1000])
def test_many_rows_of_a_copy_are_postgres_own(connection: psycopg.Connection[Any], chunk: int) -> None:
    kinds = (Oid.INT4, Oid.FLOAT8, Oid.TEXT)
    rows = [(index - 500, (index - 500) / 3, f"place {index}") for index in range(1000)]
    select = "SELECT i - 500, (i - 500) / 3.0::float8, 'place ' || i FROM generate_series(0, 999) AS t(i)"
    for encoder, words in (
        (LineCopy(columns(Format.TEXT, kinds), TextOptions()), "FORMAT text"),
        (LineCopy(columns(Format.TEXT, kinds), CsvOptions(header=True)), "FORMAT csv, HEADER"),
        (BinaryCopy(columns(Format.TEXT, kinds)), "FORMAT binary"),
    ):
        named = (
            select.replace("500, (", "500 AS c0, (")
            .replace("8, '", "8 AS c1, '")
            .replace("i FR", "i AS c2 FR")
        )
        with connection.cursor().copy(f"COPY ({named}) TO STDOUT ({words})") as copy:
            expected = b"".join(CopyData(bytes(data)).encode() for data in copy)
        assert _ours(encoder, rows, chunk) == expected


def test_many_rows_of_a_binary_copy_with_nulls() -> None:
    rows = cycled([(1, None, "a"), (None, 0.5, ""), (3, -0.0, None)], 300)
    oids = (Oid.INT8, Oid.FLOAT8, Oid.TEXT)
    at_once, by_one = (BinaryCopy(columns(Format.BINARY, oids)) for _ in range(2))
    assert _ours(at_once, rows, 300) == _ours(by_one, rows, 1)


@pytest.mark.parametrize("words", ["FORMAT text", "FORMAT csv"])
def test_one_column_alone(connection: psycopg.Connection[Any], words: str) -> None:
    """A lone `\\.` would end a CSV copy: it is quoted."""
    options = TextOptions() if words == "FORMAT text" else CsvOptions()
    copy = LineCopy([FieldDescription("c1", Oid.TEXT)], options)
    assert _ours(copy, [(row[1],) for row in COPIED], 100) == _messages(connection, "SELECT c1", words)


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_a_binary_copy_is_postgres_own(connection: psycopg.Connection[Any], chunk: int) -> None:
    """The header comes with the first row, and the trailer alone: clients rely on it."""
    select = "SELECT " + ", ".join(f"c{index}" for index in range(len(TABLE)))
    ours = _ours(BinaryCopy(columns(Format.BINARY, TABLE)), COPIED, chunk)
    assert ours == _messages(connection, select, "FORMAT binary")


def test_a_binary_copy_of_no_rows(connection: psycopg.Connection[Any]) -> None:
    ours = _ours(BinaryCopy(columns(Format.BINARY, (Oid.INT4,))), [], 1)
    with connection.cursor().copy("COPY (SELECT c0 FROM t LIMIT 0) TO STDOUT (FORMAT binary)") as copy:
        assert b"".join(CopyData(bytes(data)).encode() for data in copy) == ours


# Speed: far below what was measured, so that a busy machine does not fail it; a per-row encoder would.


@pytest.mark.long
@pytest.mark.parametrize("form", Format)
def test_a_hundred_thousand_rows_a_second(form: Format) -> None:
    count = 50_000
    rows = [(index, random.random() * 1e6, f"name {index % 100}") for index in range(count)]
    encoder = RowEncoder(columns(form, (Oid.INT4, Oid.FLOAT8, Oid.TEXT)))
    start = time.process_time()
    for at in range(0, count, 2000):
        encoder.encode(rows[at : at + 2000])
    assert count / (time.process_time() - start) > 100_000
