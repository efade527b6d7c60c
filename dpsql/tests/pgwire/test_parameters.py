"""Parameters, in text as Postgres reads and refuses them, and in binary."""

from __future__ import annotations

import struct
import time
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import pq

from dpsql.pgwire import Format, Oid, ParameterError, read_parameter
from dpsql.pgwire.read_parameter import TEXT_READERS
from dpsql.tests.support.length import tried

from .with_postgres import BINARY, TEXT, through_postgres, written

SQLSTATES = {"22P02", "22P03", "22003", "22007", "22008", "22015", "22021", "0A000"}


def refusal(oid: int, form: Format, data: bytes) -> ParameterError | None:
    """Read a parameter: what it was refused with, where it was."""
    try:
        read_parameter(oid, form, data)
    except ParameterError as error:
        return error
    return None


@pytest.mark.parametrize(
    "text",
    [
        "1 year 2 mons", "1 years 2 months -3 days +04:05:06.7", "-1 year", "3 days ago", "1 day 2:03", "-00:00:01",
        "@ 1 minute 2 secs", "1.5 months", "0.5 days", "2 weeks", "90", "1 h 2 m 3 s", "5 ms 7 us", "1 decade", "P1Y2M3DT4H5M6.5S",
        "PT36H", "P2W", "P-1D", "1 days 3600 s 0 us", "1 years 2 mons 3 days 4 hours 5 mins 6.7 secs", "-1 days -02:03:04",
        "1 century", "0",
    ],
)  # fmt: skip
def test_intervals_are_read_as_postgres_reads_them(connection: psycopg.Connection[Any], text: str) -> None:
    ours = read_parameter(Oid.INTERVAL, TEXT, text.encode())
    theirs = through_postgres(connection, Oid.INTERVAL, TEXT, text.encode(), BINARY)
    assert written(Oid.INTERVAL, BINARY, ours) == theirs


@pytest.mark.parametrize(
    ("oid", "text"),
    [
        (Oid.BOOL, " TRUE "), (Oid.BOOL, "of"), (Oid.BOOL, "1"), (Oid.BOOL, "y"),
        (Oid.INT4, " -007 "), (Oid.INT8, "+9223372036854775807"), (Oid.INT4, "0" * 5000 + "1"),
        (Oid.FLOAT8, "1e5"), (Oid.FLOAT8, ".5"), (Oid.FLOAT8, "5."), (Oid.FLOAT8, "-inf"), (Oid.FLOAT8, "NaN"),
        (Oid.NUMERIC, " 1e-5 "), (Oid.NUMERIC, "-00.10"), (Oid.NUMERIC, "nan"), (Oid.NUMERIC, "1.5e3"),
        (Oid.DATE, "2024-02-29"), (Oid.DATE, "20240229"), (Oid.DATE, "2024-02-29 12:00:00+01"),
        (Oid.DATE, "2024-01-01 +00"),  # as JDBC sends it
        (Oid.TIMESTAMP, "2024-02-29T01:02:03.5"), (Oid.TIMESTAMP, "2024-02-29 24:00:00"), (Oid.TIMESTAMP, "2024-02-29"),
        (Oid.TIMESTAMP, "2024-02-29 01:02"), (Oid.TIMESTAMP, "2024-02-29 01:02:03+05"),
        (Oid.TIMESTAMPTZ, "2024-02-29 01:02:03+05:30"), (Oid.TIMESTAMPTZ, "2024-02-29 01:02:03Z"),
        (Oid.TIMESTAMPTZ, "2024-02-29 01:02:03 -0330"), (Oid.TIMESTAMPTZ, "2024-02-29 01:02:03 UTC"),
        (Oid.TEXT_ARRAY, "{ a , \"b, c\" , NULL,\"NULL\", d\\,e }"), (Oid.INT4_ARRAY, " {1, 2 ,NULL} "), (Oid.INT4_ARRAY, "{ }"),
        (Oid.BYTEA, "\\x00fF"), (Oid.BYTEA, "a\\\\b\\000ä"), (Oid.TEXT, " a "), (Oid.INT2VECTOR, "1 2"),
    ],
)  # fmt: skip
def test_texts_are_read_as_postgres_reads_them(
    connection: psycopg.Connection[Any], oid: Oid, text: str
) -> None:
    ours = read_parameter(oid, TEXT, text.encode())
    assert written(oid, BINARY, ours) == through_postgres(connection, oid, TEXT, text.encode(), BINARY)


REFUSED = [
    (Oid.BOOL, "maybe", "22P02"), (Oid.BOOL, "o", "22P02"), (Oid.BYTEA, "a\\b", "22P02"), (Oid.BYTEA, "\\xf", None), (Oid.INT4, "", "22P02"), (Oid.INT4, "1.5", "22P02"),
    (Oid.INT4, "\N{ARABIC-INDIC DIGIT ONE}", "22P02"), (Oid.INT4, "2147483648", "22003"),
    (Oid.INT2, "-32769", "22003"), (Oid.INT8, "9" * 5000, "22003"), (Oid.FLOAT8, "abc", "22P02"),
    (Oid.FLOAT8, "1e999", "22003"), (Oid.FLOAT8, "1e-999", "22003"), (Oid.FLOAT4, "1e39", "22003"),
    (Oid.FLOAT4, "1e-60", "22003"),
    (Oid.NUMERIC, "1,5", "22P02"), (Oid.NUMERIC, "1e200000", "22003"), (Oid.NUMERIC, "", "22P02"),
    (Oid.DATE, "yesterdayish", "22007"), (Oid.DATE, "2024-02-30", "22008"), (Oid.DATE, "2024-13-01", "22008"),
    (Oid.TIMESTAMP, "2024-02-29 25:00:00", "22008"), (Oid.TIMESTAMP, "2024-02-29 24:00:01", "22008"),
    (Oid.INTERVAL, "1 parsec", None), (Oid.INTERVAL, "", None), (Oid.INTERVAL, "P", None),
    (Oid.INTERVAL, "ago", None), (Oid.INTERVAL, "999999999999 days", None),
    (Oid.INT4_ARRAY, "1,2", "22P02"), (Oid.INT4_ARRAY, "{1,}", "22P02"), (Oid.INT4_ARRAY, "{1", "22P02"),
    (Oid.INT4_ARRAY, "{1}x", "22P02"), (Oid.INT4_ARRAY, "{a}", "22P02"), (Oid.TEXT_ARRAY, "{a{b}", "22P02"),
]  # fmt: skip


@pytest.mark.parametrize(("oid", "text", "sqlstate"), REFUSED)
def test_what_postgres_refuses_is_refused_in_its_words(
    connection: psycopg.Connection[Any], oid: Oid, text: str, sqlstate: str | None
) -> None:
    with pytest.raises(ParameterError) as caught:
        read_parameter(oid, TEXT, text.encode())
    assert sqlstate is None or caught.value.sqlstate == sqlstate
    answer = connection.pgconn.exec_params(b"SELECT $1", [text.encode()], [oid])
    assert answer.status == pq.ExecStatus.FATAL_ERROR
    if sqlstate is not None:
        assert (answer.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode() == sqlstate


@pytest.mark.parametrize(
    ("oid", "text", "sqlstate"),
    [
        (Oid.DATE, "infinity", "22008"),
        (Oid.DATE, "0044-03-15 BC", "22008"),
        (Oid.DATE, "12345-01-01", "22008"),
        (Oid.INT4_ARRAY, "{{1},{2}}", "0A000"),
        (Oid.INT4_ARRAY, "[2:3]={1,2}", "0A000"),
        (Oid.VOID, "", "0A000"),
        (999_999, "x", "0A000"),
    ],
)
def test_what_is_refused_though_postgres_takes_it(oid: int, text: str, sqlstate: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_parameter(oid, TEXT, text.encode())
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("oid", "data", "sqlstate"),
    [
        (Oid.BOOL, b"", "22P03"),
        (Oid.INT4, b"123", "22P03"),
        (Oid.INT8, bytes(9), "22P03"),
        (Oid.FLOAT8, b"", "22P03"),
        (Oid.TEXT, b"\xff", "22021"),
        (Oid.TEXT, b"a\0", "22021"),
        (Oid.JSONB, b"\2{}", "22P03"),
        (Oid.INTERVAL, bytes(15), "22P03"),
        (Oid.DATE, struct.pack(">i", 2**31 - 1), "22008"),
        (Oid.TIMESTAMP, struct.pack(">q", -(2**63)), "22008"),
        (Oid.NUMERIC, b"", "22P03"),
        (Oid.NUMERIC, struct.pack(">HhHHH", 1, 0, 0, 0, 10_000), "22P03"),
        (Oid.NUMERIC, struct.pack(">HhHH", 1, 0, 0, 0), "22P03"),
        (Oid.NUMERIC, struct.pack(">HhHH", 0, 0, 0x1234, 0), "22P03"),
        (Oid.NUMERIC, struct.pack(">HhHH", 0, 0, 0, 16_384), "22P03"),
        (Oid.INT4_ARRAY, struct.pack(">iiIii", 1, 0, 23, 2**30, 1), "22P03"),
        (Oid.INT4_ARRAY, struct.pack(">iiIiiii", 1, 0, 23, 1, 1, 4, 1) + b"x", "22P03"),
        (Oid.INT4_ARRAY, struct.pack(">iiIiiii", 1, 0, 23, 1, 1, 8, 1), "22P03"),
        (Oid.INT4_ARRAY, struct.pack(">iiI", 0, 0, 25), "0A000"),
        (Oid.INT4_ARRAY, struct.pack(">iiI", 2, 0, 23), "0A000"),
        (Oid.INT4_ARRAY, b"", "22P03"),
    ],
)
def test_bad_binary_parameters(oid: Oid, data: bytes, sqlstate: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_parameter(oid, BINARY, data)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize("oid", sorted(TEXT_READERS), ids=lambda oid: Oid(oid).name)
@given(data=st.binary(max_size=40))
@settings(deadline=None, max_examples=tried(30, 80))
def test_any_bytes_are_read_or_refused(oid: int, data: bytes) -> None:
    for form in Format:
        error = refusal(oid, form, data)
        assert error is None or error.sqlstate in SQLSTATES


ALPHABET = '0123456789+-.:,eE TZPYMDHSinfNaday{}"\\xtago '


@given(text=st.text(ALPHABET, max_size=25), oid=st.sampled_from(sorted(TEXT_READERS)))
@settings(deadline=None, max_examples=tried(400, 1500))
def test_any_text_is_read_or_refused(text: str, oid: int) -> None:
    error = refusal(oid, TEXT, text.encode())
    assert error is None or error.sqlstate in SQLSTATES - {"22P03", "22021"}


@pytest.mark.parametrize(
    "oid",
    [
        Oid.INT8,
        Oid.FLOAT8,
        Oid.NUMERIC,
        Oid.DATE,
        Oid.TIMESTAMP,
        Oid.INTERVAL,
        Oid.INT4_ARRAY,
        Oid.TEXT_ARRAY,
    ],
    ids=lambda oid: oid.name,
)
@pytest.mark.parametrize("piece", ["9", " ", "1 ", "{", '"', "\\", "2024-01-01 ", "1:", "-", ".", "{1,"])
def test_a_long_text_takes_no_long_time(oid: Oid, piece: str) -> None:
    """Quadratic reading would take minutes."""
    for text in (
        piece * 200_000,
        "1" + piece * 200_000,
        "2024-01-01" + piece * 200_000 + "x",
        "{" + piece * 200_000 + "x",
    ):
        start = time.process_time()
        error = refusal(oid, TEXT, text.encode())
        assert error is None or len(error.message) < 300
        assert time.process_time() - start < 2
