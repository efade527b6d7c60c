"""Released measurements as bytes: what is stored once is read for ever, and its bytes say which groups it speaks of."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.mechanisms import Laplace
from dpsql.relation.types import BIGINT, DATE, NUMERIC, TEXT
from dpsql.release.released import Groups, ReleasedMeasurement, decode, encode, integers, shown

LAW = Laplace(Fraction(10))
NUMBERS = st.integers(-(2**70), 2**70) | st.integers(-50, 50)
KEYS = (
    st.none()
    | st.booleans()
    | NUMBERS
    | st.fractions()
    | st.text('aß\U0001f600\x00"\\,[]{}: 1', max_size=4)
    | st.sampled_from(["]", "[", '],"size":1,"keys":[', "1,2", "]}", "\\", '"'])
)


def _columns(size: int) -> st.SearchStrategy[list[Any]]:
    return st.one_of(*(st.lists(of, min_size=size, max_size=size) for of in (NUMBERS, KEYS)))


def _measurements(size: int) -> st.SearchStrategy[ReleasedMeasurement]:
    numbers = st.lists(NUMBERS, min_size=size, max_size=size).map(integers)
    groups = st.lists(_columns(size), max_size=3).map(lambda columns: Groups(tuple(columns), size))
    values = st.lists(numbers, min_size=1, max_size=3).map(tuple)
    return st.builds(lambda v, g: ReleasedMeasurement(v, g, (LAW,) * len(v)), values, st.none() | groups)


MEASUREMENTS = st.integers(0, 5).flatmap(_measurements)


@given(MEASUREMENTS)
def test_what_is_stored_is_read_and_written_again_to_the_byte(measurement: ReleasedMeasurement) -> None:
    payload = encode(measurement)
    found = decode(payload, LAW)
    assert found.laws == measurement.laws
    assert [column.tolist() for column in found.values] == [column.tolist() for column in measurement.values]
    assert (found.groups is None) == (measurement.groups is None)
    if found.groups is not None and measurement.groups is not None:
        assert found.groups.size == measurement.groups.size
        assert repr(found.groups.tuples()) == repr(measurement.groups.tuples())
    assert encode(found) == payload


def test_the_bytes_are_those_of_every_ledger_so_far() -> None:
    groups = Groups((["a", None], [1, Fraction(1, 3)], [True, False], [5, -6]), 2)
    payload = encode(ReleasedMeasurement((np.array([1, -2]), integers([2**64, 0])), groups, (LAW, LAW)))
    assert payload == (
        b'{"values":[[1,-2],[18446744073709551616,0]],"size":2,'
        b'"keys":[["a",null],[1,{"n":[1,3]}],[true,false],[5,-6]]}'
    )
    assert encode(decode(b'{"values":[[7]]}', LAW)) == b'{"values":[[7]]}'


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**18, -(10**18), 10**40])
def test_no_integer_is_cut_to_64_bits(number: int) -> None:
    (values,) = decode(encode(ReleasedMeasurement((integers([1, number]),), None, (LAW,))), LAW).values
    assert values.tolist() == [1, number]


@pytest.mark.parametrize("payload", [b'{"n":[1,2]}', b"{}", b'{"values":[["a"]]}', b""])
def test_other_bytes_are_no_measurement(payload: bytes) -> None:
    with pytest.raises(ValueError, match="released measurement"):
        decode(payload, LAW)


def test_integer_keys_are_shown_in_their_type() -> None:
    keys = np.array([0, 1])
    assert list(shown(keys, BIGINT)) == [0, 1]
    assert [day.isoformat() for day in shown(keys, DATE)] == ["1970-01-01", "1970-01-02"]
    assert [type(value).__name__ for value in shown(keys, NUMERIC)] == ["Decimal", "Decimal"]
    assert shown(np.array([], dtype=np.int64), TEXT) == []
