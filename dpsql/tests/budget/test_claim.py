from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.budget import Caps, Charge, Claim, Draw, Known, MeasurementClaim, delta_text, epsilon_text
from dpsql.mechanisms import Laplace
from dpsql.mechanisms.laws.weighted import Wish

from .samples import key


@pytest.mark.parametrize("bad", [-1, 0.5, 1.0, True, float("nan")])
@pytest.mark.parametrize("place", range(3))
def test_a_charge_is_made_of_integers_that_are_not_negative(bad: Any, place: int) -> None:
    with pytest.raises(ValueError, match="charge"):
        Charge(*[bad if i == place else 1 for i in range(3)])


@given(st.integers(0, 10**13))
def test_rho_is_half_the_square_rounded_up(epsilon_nano: int) -> None:
    exact = Fraction(epsilon_nano, 10**9) ** 2 / 2 * 10**18
    assert 0 <= Charge.pure(epsilon_nano).rho_atto - exact < 1


def test_charges_add_up() -> None:
    assert Charge(1, 2, 3) + Charge(10, 20, 30) == Charge(11, 22, 33)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (epsilon_text(0), "0"),
        (epsilon_text(1_500_000_000), "1.5"),
        (epsilon_text(10 * 10**9), "10"),
        (epsilon_text(1), "0.000000001"),
        (epsilon_text(-1_500_000_000), "-1.5"),
        (delta_text(10**9), "0.000000001"),
    ],
)
def test_amounts_are_shown_as_plain_decimals(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    "change",
    [
        {"measures": (b"short",)},
        {"measures": (key("a"), key("a"))},
        {"charge": Charge(0, 5, 1)},
        {"charge": Charge.pure(10**15 + 1)},
        {"charge": Charge.pure(1, 10**18 + 1)},
        {"note": "\ud800"},
    ],
)
def test_a_measurement_is_checked_when_it_is_built(change: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "measures": (key("a"),),
        "law": Laplace(Fraction(1)),
        "charge": Charge.pure(1),
        "note": "",
    }
    MeasurementClaim(**good)
    with pytest.raises(ValueError, match=r"."):
        MeasurementClaim(**(good | change))


WISH = Wish(120, 10**8, is_zcdp=False)
LEAST = WISH.reaching(Fraction(0))


@pytest.mark.parametrize(
    ("known", "wish", "is_told"),
    [
        (None, None, False),
        (None, WISH, False),
        (Known(LEAST, (7,)), None, False),
        (Known(LEAST - 1, (7,)), WISH, True),
        (Known(LEAST, (7,)), WISH, True),
        (Known(LEAST + 1, (7,)), WISH, False),
    ],
)
def test_what_leaves_the_least_loss_is_told(known: Known | None, wish: Wish | None, is_told: bool) -> None:
    claim = MeasurementClaim((), Laplace(Fraction(1)), Charge.pure(1), "count", None, wish, known)
    assert claim.is_told is is_told


def test_a_claim_names_its_analyst() -> None:
    with pytest.raises(ValueError, match="analyst"):
        Claim("", "SELECT 1", ())
    with pytest.raises(ValueError, match="Unicode"):
        Claim("\udcff", "SELECT 1", ())


def test_a_draw_shows_no_payload_and_holds_a_measure() -> None:
    assert "777" not in repr(Draw((key("a"),), Fraction(1), b"777"))
    with pytest.raises(ValueError, match="at least one"):
        Draw((), Fraction(1), b"")


@pytest.mark.parametrize("bad", [(-1, 0, {}), (1, 10**18 + 1, {}), (1, 0, {"a": -1}), (1.0, 0, {})])
def test_caps_are_checked(bad: tuple[Any, Any, Any]) -> None:
    with pytest.raises(ValueError, match="cap"):
        Caps(*bad)
