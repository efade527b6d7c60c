"""Chunks of rows and copies: against one row at a time, against Postgres' own COPY, and how fast."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.pgwire import (
    BinaryCopy,
    Column,
    CopyData,
    CsvOptions,
    DataRow,
    Format,
    Interval,
    LineCopy,
    LocalProtocolError,
    Oid,
    RowEncoder,
    TextOptions,
)
from dpsql.pgwire.datatypes.write_binary import BINARY_WRITERS
from dpsql.pgwire.datatypes.write_text import TEXT_WRITERS
from dpsql.testing.postgres_server import PostgresServer

from .value_samples import STRATEGIES

KINDS = (Oid.INT4, Oid.FLOAT8, Oid.TEXT, Oid.NUMERIC, Oid.DATE, Oid.BOOL)
ROW = st.tuples(*[st.none() | STRATEGIES[oid] for oid in KINDS])


def columns(form: Format, oids: tuple[Oid, ...] = KINDS) -> list[Column]:
    return [Column(f"c{index}", oid, format=form) for index, oid in enumerate(oids)]


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


def test_rows_without_columns() -> None:
    assert RowEncoder(()).encode([(), ()]).encode() == DataRow(()).encode() * 2
    assert RowEncoder(()).encode([]).encode() == b""


def test_formats_may_differ_by_column() -> None:
    mixed = (Column("a", Oid.INT4, format=Format.BINARY), Column("b", Oid.INT4))
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
        RowEncoder((Column("p", 600),))
    with pytest.raises(LocalProtocolError, match="type 1034"):
        RowEncoder((Column("acl", Oid.ACLITEM_ARRAY, format=Format.BINARY),))
    assert (
        RowEncoder((Column("acl", Oid.ACLITEM_ARRAY),)).encode([(None,)]).encode()
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


@pytest.mark.parametrize("words", ["FORMAT text", "FORMAT csv"])
def test_one_column_alone(connection: psycopg.Connection[Any], words: str) -> None:
    """A lone `\\.` would end a CSV copy: it is quoted."""
    options = TextOptions() if words == "FORMAT text" else CsvOptions()
    copy = LineCopy([Column("c1", Oid.TEXT)], options)
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
