"""What a policy's lifetime cap holds, counted in epsilon and in rho: statements, and the error bars of many of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from ..mechanisms import ATTO, NANO, Laplace, rho_of_pure, rho_within
from ..policy import Accounting, Policy
from .settings import decimal_text

__all__ = ["holding_lines", "statements_held"]

STATEMENTS = (10, 100, 1000)
_MISSING = Fraction(1, 20)
_NORMAL = 1.959964


def statements_held(policy: Policy, each: Fraction, accounting: Accounting | None = None) -> int:
    """Return how many different statements of an epsilon the cap holds; `accounting`: where not the policy's own."""
    if (accounting or policy.privacy.accounting) is Accounting.PURE:
        return math.floor(policy.privacy.epsilon / each)
    return _rho(policy) // rho_of_pure(math.ceil(each * NANO))


def holding_lines(policy: Policy) -> Iterator[str]:
    """Yield a table: what each accounting holds, and by how much a count of people is off when many share the cap.

    Under epsilon the noise is Laplace, under rho Gaussian; at 95 %.
    """
    each = policy.defaults.epsilon
    kinds = [Accounting.PURE, Accounting.ZCDP] if policy.privacy.delta else [Accounting.PURE]
    heads = "".join(f"{f'{number:,}':>9}" for number in STATEMENTS)
    yield f"  {'accounting':<12}{f'statements at {decimal_text(each)}':>20}   ± of a count, of so many:{heads}"
    for kind in kinds:
        bars = "".join(f"{_figure(_half_width(policy, kind, number)):>9}" for number in STATEMENTS)
        own = " *" if kind is policy.privacy.accounting else ""
        yield f"  {kind.value + own:<12}{f'{statements_held(policy, each, kind):,}':>20}   {'':25}{bars}"


def _rho(policy: Policy) -> int:
    """Return the cap on rho; where the policy adds up epsilon, with half of delta for the conversion."""
    return rho_within(policy.privacy.epsilon, policy.privacy.conversion_delta or policy.privacy.delta / 2)


def _half_width(policy: Policy, accounting: Accounting, statements: int) -> float:
    together = policy.privacy.together
    if accounting is Accounting.PURE:
        return Laplace(together * statements / policy.privacy.epsilon).half_width(_MISSING)
    rho = _rho(policy) / ATTO / statements
    return _NORMAL * together / math.sqrt(2 * rho) if rho else math.inf


def _figure(half_width: float) -> str:
    return f"{half_width:,.0f}" if half_width >= 10 else f"{half_width:.1f}"
