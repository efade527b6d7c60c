"""Values against Postgres itself, against psycopg's loaders and dumpers, and there and back."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer

from dpsql.pgwire import ELEMENTS, TYPES, Format, Interval, ObjectName, Oid, read_parameter
from dpsql.pgwire.read_parameter import BINARY_READERS
from dpsql.pgwire.write_binary import BINARY_WRITERS
from dpsql.pgwire.write_columns import TEXT_WRITERS
from dpsql.tests.support.length import tried

from .value_samples import CORNERS, STRATEGIES
from .with_postgres import BINARY, TEXT, through_postgres, written

ALL_SAMPLES = [(oid, value) for oid, values in CORNERS.items() for value in values]


def same(left: Any, right: Any) -> bool:
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    if isinstance(left, Decimal) and left.is_nan():
        return bool(right.is_nan())
    return bool(left == right)


# Postgres itself is the oracle: it reads one of our formats, and must write the other as we do.


FLOATS = (Oid.FLOAT4, Oid.FLOAT8, Oid.FLOAT8_ARRAY)


def is_as_short(ours: bytes, theirs: bytes | None, oid: int) -> bool:
    """Of a float's two shortest texts, ours may be the other one."""
    assert theirs is not None
    read = numpy.float32 if oid == Oid.FLOAT4 else float
    pairs = list(zip(ours.strip(b"{}").split(b","), theirs.strip(b"{}").split(b","), strict=True))
    return all(our == their or (len(our) <= len(their) and read(our) == read(their)) for our, their in pairs)


def test_another_of_two_shortest_texts_is_of_the_same_number() -> None:
    assert is_as_short(b"3.456415e+07", b"3.4564152e+07", Oid.FLOAT4)
    assert not is_as_short(b"3.456415e+07", b"3.4564152e+07", Oid.FLOAT8)


def check_with_postgres(connection: psycopg.Connection[Any], oid: int, value: Any) -> None:
    text = written(oid, TEXT, value)
    theirs = through_postgres(connection, oid, TEXT, text, TEXT)
    assert theirs == text or (oid in FLOATS and is_as_short(text, theirs, oid))
    if oid in BINARY_WRITERS:
        binary = written(oid, BINARY, value)
        assert through_postgres(connection, oid, BINARY, binary, TEXT) == theirs
        assert through_postgres(connection, oid, TEXT, text, BINARY) == binary


@pytest.mark.parametrize(
    ("oid", "value"), ALL_SAMPLES, ids=lambda part: getattr(part, "name", None) or repr(part)[:40]
)
def test_corner_cases_are_written_as_postgres_writes_them(
    connection: psycopg.Connection[Any], oid: Oid, value: Any
) -> None:
    check_with_postgres(connection, oid, value)


@pytest.mark.parametrize("oid", STRATEGIES, ids=lambda oid: oid.name)
@given(data=st.data())
@settings(
    deadline=None, max_examples=tried(20, 60), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_value_is_written_as_postgres_writes_it(
    connection: psycopg.Connection[Any], oid: Oid, data: st.DataObject
) -> None:
    check_with_postgres(connection, oid, data.draw(STRATEGIES[oid]))


@pytest.mark.parametrize("year", [1800, 2024])  # local mean time had seconds in its offset
@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/St_Johns", "Europe/London", "UTC"])
def test_a_timestamp_is_written_in_its_own_zone(
    connection: psycopg.Connection[Any], zone: str, year: int
) -> None:
    moment = datetime(year, 2, 27, 1, 2, 3, 450_000, tzinfo=ZoneInfo(zone))
    binary, text = (written(Oid.TIMESTAMPTZ, form, moment) for form in (BINARY, TEXT))
    connection.execute("SELECT set_config('TimeZone', %s, false)", [zone])
    try:
        assert through_postgres(connection, Oid.TIMESTAMPTZ, BINARY, binary, TEXT) == text
    finally:
        connection.execute("SET TimeZone = 'UTC'")
    assert read_parameter(Oid.TIMESTAMPTZ, TEXT, text) == moment


# There and back, and psycopg.


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize("oid", STRATEGIES, ids=lambda oid: oid.name)
@given(data=st.data())
@settings(deadline=None, max_examples=tried(20, 60))
def test_there_and_back(oid: Oid, form: Format, data: st.DataObject) -> None:
    value = data.draw(STRATEGIES[oid])
    assert same(read_parameter(oid, form, written(oid, form, value)), value)


@pytest.mark.parametrize(
    ("oid", "value"), ALL_SAMPLES, ids=lambda part: getattr(part, "name", None) or repr(part)[:40]
)
def test_corner_cases_there_and_back(oid: Oid, value: Any) -> None:
    expected = Interval.of(value) if isinstance(value, timedelta) else value
    for form in Format:
        if form is BINARY and oid not in BINARY_READERS:
            continue
        data = written(oid, form, value)
        assert same(read_parameter(oid, form, data), expected) or oid is Oid.FLOAT4
        assert written(oid, form, read_parameter(oid, form, data)) == data


PSYCOPG = [oid for oid in STRATEGIES if oid not in (Oid.BYTEA, Oid.INTERVAL)]


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize("oid", PSYCOPG, ids=lambda oid: oid.name)
@given(data=st.data())
@settings(deadline=None, max_examples=tried(15, 40))
def test_psycopg_reads_what_we_write(oid: Oid, form: Format, data: st.DataObject) -> None:
    value = data.draw(STRATEGIES[oid])
    loader = Transformer().get_loader(oid, pq.Format(form))
    loaded = loader.load(written(oid, form, value))
    if oid is Oid.FLOAT4:  # of a text, psycopg makes the double nearest to it
        (loaded,) = struct.unpack(">f", struct.pack(">f", loaded))
    assert same(loaded, value)


@given(st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6)))
def test_psycopg_reads_our_intervals(value: timedelta) -> None:
    for form in Format:
        loader = Transformer().get_loader(Oid.INTERVAL, pq.Format(form))
        assert loader.load(written(Oid.INTERVAL, form, value)) == value


DUMPED = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), STRATEGIES[Oid.TEXT], st.dates(),
    STRATEGIES[Oid.NUMERIC], st.datetimes(), STRATEGIES[Oid.TIMESTAMPTZ],
    st.lists(st.integers(1, 10**6), min_size=1, max_size=4), st.lists(STRATEGIES[Oid.TEXT], min_size=1, max_size=4),
    st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6)),
)  # fmt: skip


@given(value=DUMPED, wanted=st.sampled_from([PyFormat.TEXT, PyFormat.BINARY]))
@settings(deadline=None, max_examples=tried(100, 300))
def test_we_read_what_psycopg_sends(value: Any, wanted: PyFormat) -> None:
    transformer = Transformer()
    (data,) = transformer.dump_sequence([value], [wanted])
    (oid,), (form,) = transformer.types or (0,), transformer.formats or (pq.Format.TEXT,)
    if isinstance(value, str) or (isinstance(value, list) and isinstance(value[0], str)):
        oid = oid or (Oid.TEXT if isinstance(value, str) else Oid.TEXT_ARRAY)
    read = read_parameter(oid, Format(form), None if data is None else bytes(data))
    expected = Interval.of(value) if isinstance(value, timedelta) else value
    if isinstance(read, Interval):
        assert (read.days * 86_400 * 10**6 + read.microseconds) == value // timedelta(microseconds=1)
    else:
        assert same(read, expected)


def test_null_is_none_of_any_type() -> None:
    assert read_parameter(Oid.INT4, TEXT, None) is None


def test_object_names_are_names_in_text_and_oids_in_binary() -> None:
    value = ObjectName(16384, "campus.student")
    assert written(Oid.REGCLASS, TEXT, value) == b"campus.student"
    assert written(Oid.REGCLASS, BINARY, value) == struct.pack(">I", 16384)
    assert read_parameter(Oid.REGCLASS, TEXT, b"student") == "student"
    assert read_parameter(Oid.REGCLASS, BINARY, struct.pack(">I", 7)) == 7


WRONG: list[tuple[Oid, Any]] = [
    (Oid.BOOL, 1), (Oid.INT4, 1.0), (Oid.INT4, "1"), (Oid.TEXT, 1), (Oid.TEXT, "a\0"), (Oid.DATE, datetime(2024, 1, 1)),
    (Oid.TIMESTAMP, date(2024, 1, 1)), (Oid.TIMESTAMP, datetime(2024, 1, 1, tzinfo=UTC)),
    (Oid.TIMESTAMPTZ, datetime(2024, 1, 1)), (Oid.NUMERIC, 1.5), (Oid.REGCLASS, 7), (Oid.FLOAT8, "1"),
    (Oid.FLOAT4, 1e300), (Oid.BYTEA, "a"), (Oid.INT4_ARRAY, ["a"]), (Oid.INTERVAL, 5),
]  # fmt: skip


@pytest.mark.parametrize(("oid", "value"), WRONG)
def test_values_of_another_type_are_not_written(oid: Oid, value: Any) -> None:
    for form in Format:
        with pytest.raises((TypeError, ValueError, AttributeError, OverflowError, struct.error)):
            written(oid, form, value)


# The table of types.


def test_every_type_can_be_written_and_is_as_in_postgres(connection: psycopg.Connection[Any]) -> None:
    rows = connection.execute(
        "SELECT oid, format_type(oid, NULL), typlen, typelem FROM pg_type WHERE oid = ANY(%s)",
        [list(map(int, Oid))],
    ).fetchall()
    if connection.info.server_version >= 160_000:  # aclitem grew; we say that we are 15
        rows = [(oid, name, 12 if oid == Oid.ACLITEM else size, element) for oid, name, size, element in rows]
    assert {oid for oid, *_ in rows} == set(Oid) == set(TYPES) == set(TEXT_WRITERS)
    for oid, name, size, element in rows:
        assert (TYPES[oid].name, TYPES[oid].size) == (name, size)
        if oid in ELEMENTS:
            assert ELEMENTS[oid] == element
    assert set(TYPES) - set(BINARY_WRITERS) == {Oid.ACLITEM, Oid.ACLITEM_ARRAY}
