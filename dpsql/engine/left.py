"""What is spent and what is left, in words: in epsilon, or under zCDP in rho and in statements that still fit.

House rule: under zCDP no two epsilons are added or subtracted. An epsilon that is said to be spent is that of all the
rho; what is left is said as a number of statements.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from ..budget import Scope, Status, epsilon_text, rho_text, shown_epsilon
from ..mechanisms import ATTO, NANO, rho_of_pure
from .settings import decimal_text

__all__ = [
    "budget_text", "charged_text", "delta_text", "in_statements", "left_text", "ration_text", "said_epsilon",
    "spent_text", "statements_left",
]  # fmt: skip

_SIX = Context(prec=6, rounding=ROUND_CEILING)


def statements_left(status: Status, each: Fraction) -> int:
    """Return how many statements of an epsilon still fit under all caps but that of delta."""
    cost = int(each * NANO)
    return min(scope.left for scope in status.scopes) // (rho_of_pure(cost) if status.in_rho else cost)


def left_text(status: Status, each: Fraction) -> str:
    """Return what is left; `each`: the epsilon of a statement, where it is told in statements."""
    if not status.in_rho:
        return f"{decimal_text(Fraction(status.left_nano, NANO))} left"
    return in_statements(status, each)


def in_statements(status: Status, each: Fraction) -> str:
    """Return how many statements of an epsilon still fit, in words."""
    number = statements_left(status, each)
    return f"about {number:,} more statement{'' if number == 1 else 's'} at {decimal_text(each)}"


def charged_text(rho_atto: int) -> str:
    """Return what is charged under zCDP, but for a delta: the epsilon that was asked with, and its rho."""
    return f"as epsilon {shown_epsilon(rho_atto)} (rho {rho_text(rho_atto)})"


def budget_text(status: Status, each: Fraction) -> str:
    """Return what is spent and what is left, of the cap that is reached first."""
    least = min(status.scopes, key=lambda scope: scope.left)
    is_own = least != status.scopes[0]
    if not status.in_rho:
        caps = [status.epsilon_cap_nano]
        caps += [] if status.analyst_cap_nano is None else [status.analyst_cap_nano]
        return f"{epsilon_text(status.left_nano)} of {epsilon_text(min(caps))} epsilon left"
    if least.until:
        return f"{ration_text(least, status)}; {left_text(status, each)}"
    spent, cap = (
        (status.analyst_spent_nano, status.analyst_cap_nano or 0)
        if is_own
        else (status.epsilon_spent_nano, status.epsilon_cap_nano)
    )
    return f"{spent_text(spent, cap, least.spent, least.cap, status)}; {left_text(status, each)}"


def ration_text(scope: Scope, status: Status) -> str:
    """Return what is spent of a period's cap, which is a ration inside the total."""
    unit, text = ("rho", rho_text) if status.in_rho else ("epsilon", epsilon_text)
    return f"{scope.whose} ration: {unit} {text(scope.spent)} of {text(scope.cap)} spent, until {scope.until} (UTC)"


def spent_text(
    spent_nano: int, cap_nano: int | None, rho_atto: int, rho_cap_atto: int | None, status: Status
) -> str:
    """Return what is spent under zCDP in one scope: the epsilon of the rho, at which delta, and the rho."""
    delta = delta_text(Fraction(status.conversion_delta_atto, ATTO))
    at = f"at delta {delta}"
    epsilon = f"epsilon {_short(spent_nano)}"
    if cap_nano is None or rho_cap_atto is None:
        return f"{epsilon} spent {at} (rho {rho_text(rho_atto)}), no cap of their own"
    return f"{epsilon} of {epsilon_text(cap_nano)} spent {at} (rho {rho_text(rho_atto)} of {rho_text(rho_cap_atto)})"


def _short(epsilon_nano: int) -> str:
    """Return an epsilon that is spent, rounded up to its first four digits."""
    step = int(10 ** max(0, len(str(epsilon_nano)) - 4))
    return epsilon_text(-(-epsilon_nano // step) * step)


def delta_text(delta: Fraction) -> str:
    """Return a delta as people write it, 1e-9, rounded up to six digits."""
    return f"{float(_up(delta)):g}".replace("e-0", "e-")


def said_epsilon(epsilon: Fraction) -> str:
    """Return an epsilon that was charged, rounded up to six digits: so shares that were rounded down do not show."""
    return f"{_up(epsilon):f}"


def _up(number: Fraction) -> Decimal:
    found = _SIX.divide(Decimal(number.numerator), Decimal(number.denominator))
    return found.normalize(_SIX) if found else found
