from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.errors import Refusal
from dpsql.mechanisms import (
    floor_to_nano,
    parse_epsilon,
)


@pytest.mark.parametrize(
    ("text", "epsilon"),
    [
        ("0.1", Fraction(1, 10)),
        ("1", Fraction(1)),
        ("10", Fraction(10)),
        ("10.000000000", Fraction(10)),
        ("0.000001", Fraction(1, 10**6)),
        ("0.000001001", Fraction(1001, 10**9)),
        ("0001.5", Fraction(3, 2)),
    ],
)
def test_decimal_text_is_exact(text: str, epsilon: Fraction) -> None:
    assert parse_epsilon(text) == epsilon


@pytest.mark.parametrize(
    "text",
    [
        "", "0", "0.0", "0.000000999", "10.000000001", "11", "9999", "99999", "1e-3", "1E0", "1e-320", "nan",
        "NaN", "inf", "-1", "+1", " 1", "1 ", "1\n", "\n1", "1.", ".5", "1.0000000001", "1/2", "1_0", "0x1",
        "٠.١", "\uff11", "1\u0660", "0,1", "1\x00", "--1", "1;",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse_epsilon(text)
    assert refused.value.sqlstate == "PV301"
    assert refused.value.hint


def test_shares_are_rounded_down() -> None:
    third = Fraction(1, 3)
    assert floor_to_nano(third) == Fraction(333_333_333, 10**9)
    assert 3 * floor_to_nano(third) <= 1
