"""rho and (epsilon, delta): against another implementation, against the formula itself over many orders, and the sides."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.mechanisms import conversion, delta_of_rho, epsilon_of_rho, pure_epsilon, rho_of_pure, rho_within
from dpsql.mechanisms.conversion import _bounds_of_log, _rest_above
from dpsql.tests.support.length import tried

ATTO, NANO = 10**18, 10**9
EPSILONS = st.integers(10**3, 10**13).map(lambda nano: Fraction(nano, NANO))
DELTAS = st.integers(1, ATTO - 1).map(lambda atto: Fraction(atto, ATTO))


def log_delta(rho: Fraction, epsilon: Fraction, order: Decimal) -> Decimal:
    """Return ln of the delta that one order gives, as [CKS20] has it: another form than the one under test."""
    exact = lambda number: Decimal(number.numerator) / Decimal(number.denominator)  # noqa: E731
    less = order - 1
    return less * (order * exact(rho) - exact(epsilon)) - less.ln() + order * (1 - 1 / order).ln()


def least_log_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """Return the least over orders from 1 + 1e-10 to 1e14, two a decade and then ever finer around the best."""
    with localcontext() as context:
        context.prec = 60
        low, high = -10.0, 14.0
        for _ in range(7):
            steps = [low + (high - low) * i / 40 for i in range(41)]
            found = min(
                steps, key=lambda step: log_delta(rho, epsilon, 1 + Decimal(10) ** Decimal(repr(step)))
            )
            low, high = found - (high - low) / 20, found + (high - low) / 20
        return log_delta(rho, epsilon, 1 + Decimal(10) ** Decimal(repr(found)))


@settings(max_examples=tried(12, 30), deadline=None)
@given(EPSILONS, DELTAS)
def test_what_is_granted_keeps_the_promise_and_not_much_more_would(
    epsilon: Fraction, delta: Fraction
) -> None:
    rho = rho_within(epsilon, delta)
    wanted = Decimal(delta.numerator).ln() - Decimal(delta.denominator).ln()
    if rho:
        assert least_log_delta(Fraction(rho, ATTO), epsilon) <= wanted + Decimal("1e-9")
    more = Fraction(rho + max(2, rho // 10**6), ATTO)
    assert least_log_delta(more, epsilon) > wanted


@settings(max_examples=tried(12, 30), deadline=None)
@given(st.integers(1, 10**22), DELTAS)
def test_what_is_said_to_be_spent_covers_it_and_not_much_less_does(rho: int, delta: Fraction) -> None:
    epsilon = epsilon_of_rho(rho, delta)
    wanted = Decimal(delta.numerator).ln() - Decimal(delta.denominator).ln()
    assert least_log_delta(Fraction(rho, ATTO), epsilon) <= wanted + Decimal("1e-9")
    less = epsilon - max(Fraction(2, NANO), epsilon / 10**6)
    assert less < 0 or least_log_delta(Fraction(rho, ATTO), less) > wanted


@given(EPSILONS, DELTAS)
def test_there_and_back_never_gains(epsilon: Fraction, delta: Fraction) -> None:
    assert epsilon_of_rho(rho_within(epsilon, delta), delta) <= epsilon


@given(st.lists(EPSILONS, min_size=2, max_size=5), DELTAS)
def test_a_larger_promise_grants_no_less(epsilons: list[Fraction], delta: Fraction) -> None:
    granted = [rho_within(epsilon, delta) for epsilon in sorted(epsilons)]
    assert all(less <= more for less, more in pairwise(granted))


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        (1, Fraction(1, 10**6), 0.0244),
        (1, Fraction(1, 10**9), 0.0150),
        (3, Fraction(1, 10**6), 0.185),
        (10, Fraction(1, 10**6), 1.539),
        (10, Fraction(1, 2 * 10**6), 1.478),
        (10, Fraction(1, 10**9), 1.09),
    ],
)
def test_the_figures_that_are_known(epsilon: int, delta: Fraction, rho: float) -> None:
    assert rho_within(Fraction(epsilon), delta) / ATTO == pytest.approx(rho, rel=4e-3)


def test_the_statements_that_the_manual_names() -> None:
    rho = rho_within(Fraction(10), Fraction(1, 2 * 10**6))
    assert [rho // rho_of_pure(nano) for nano in (10**8, 5 * 10**7, 10**9)] == [295, 1182, 2]


def test_nothing_is_granted_for_nothing() -> None:
    assert rho_within(Fraction(0), Fraction(1, 2)) == rho_within(Fraction(1), Fraction(0)) == 0
    assert epsilon_of_rho(0, Fraction(1, 10**6)) == 0


def test_what_is_said_to_be_spent_is_told_in_whole_digits() -> None:
    assert (epsilon_of_rho(ATTO // 10, Fraction(1, 10**6)) * NANO).denominator == 1


def test_what_would_be_less_than_nothing_is_nothing() -> None:
    assert rho_within(Fraction(1, 10**30), Fraction(1, ATTO)) == 0
    assert epsilon_of_rho(1, Fraction(1, 2)) == 0
    assert delta_of_rho(1000 * ATTO, 0.0) == 1, "and no chance is more than 1"


@pytest.mark.parametrize(
    "number", [Fraction(1), Fraction(1, ATTO), Fraction(10**9, 3), 1 + Fraction(1, 10**12)]
)
def test_bounds_of_a_logarithm_hold_it_with_ten_times_the_error(number: Fraction) -> None:
    """Decimal rounds the quotient and its logarithm, each by 0.5e-59 of itself at most."""
    low, high = _bounds_of_log(number)
    true, error = exact_log(number), (1 + abs(exact_log(number))) / 10**59
    assert low + 9 * error < true < high - 9 * error
    assert high - low < 30 * error


@pytest.mark.parametrize("t", [Fraction(1, 10**9), Fraction(3), Fraction(10**9)])
def test_what_is_added_is_bounded_from_above_in_each_of_its_parts(t: Fraction) -> None:
    delta = Fraction(1, 10**6)
    of_delta, of_t, of_order = (exact_log(number) for number in (delta, t, 1 + t))
    error = ((2 + abs(of_delta) + abs(of_order)) / t + 2 + abs(of_t) + abs(of_order)) / 10**59
    assert _rest_above(t, delta) > (-of_delta - of_order) / t + of_t - of_order + 9 * error


def exact_log(number: Fraction) -> Fraction:
    """Return ln to 100 digits."""
    context = Context(prec=100)
    return Fraction(context.divide(Decimal(number.numerator), Decimal(number.denominator)).ln(context))


@given(st.integers(0, 10**13))
def test_the_pure_epsilon_of_a_pure_rho_is_that_epsilon(nano: int) -> None:
    assert pure_epsilon(rho_of_pure(nano)) == Fraction(nano, NANO)
    assert rho_of_pure(math.floor(pure_epsilon(nano) * NANO)) <= nano, "rounded down"


@pytest.mark.parametrize("rho", [10**14, 10**16, 5 * 10**17, 3 * 10**18])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 20.0])
def test_the_curve_is_that_of_the_formula(rho: int, epsilon: float) -> None:
    known = float(least_log_delta(Fraction(rho, ATTO), Fraction(epsilon)))
    assert delta_of_rho(rho, epsilon) == pytest.approx(math.exp(min(0.0, known)), rel=1e-7)


@pytest.mark.parametrize("delta", [Fraction(1, 10**5), Fraction(1, 2 * 10**6), Fraction(1, 10**9)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3), Fraction(10)])
def test_another_implementation_says_the_same(epsilon: Fraction, delta: Fraction) -> None:
    reason = (
        "dp-accounting is not installed (the registry has it not): the formula is held by the other tests"
    )
    accounting = pytest.importorskip("dp_accounting", reason=reason)
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant", reason=reason)
    rho = rho_within(epsilon, delta)
    orders = [1 + 10 ** (step / 500) for step in range(-1500, 1500)]
    accountant = rdp.RdpAccountant(orders=orders)
    accountant.compose(accounting.dp_event.ZCDpEvent(rho / ATTO))
    assert accountant.get_epsilon(float(delta)) == pytest.approx(float(epsilon), rel=1e-5)


@pytest.mark.parametrize("delta", [Fraction(9, 10), Fraction(1, 2), Fraction(1, 10**9), Fraction(1, 10**17)])
def test_the_rest_of_an_order_is_an_upper_bound_at_every_order(delta: Fraction) -> None:
    """Against digits beyond those of production: no logarithm is taken from the wrong side of its bounds."""
    for step in range(-40, 41):
        t = Fraction(10) ** step
        with localcontext() as context:
            context.prec = 200
            d, ln_delta = Decimal(t.numerator) / Decimal(t.denominator), _ln(delta)
            exact = (-ln_delta - (1 + d).ln()) / d + d.ln() - (1 + d).ln()
            found = conversion._rest_above(t, delta)
            over = Decimal(found.numerator) / Decimal(found.denominator) - exact
            assert 0 < over < Decimal("1e-50") * (1 + 1 / d)
            low, high = conversion._bounds_of_log(t)
            assert low < Fraction(d.ln()) < high


def _ln(number: Fraction) -> Decimal:
    return Decimal(number.numerator).ln() - Decimal(number.denominator).ln()
