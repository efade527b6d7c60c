"""What a batch would give and cost, in words and for programs: EXPLAIN's figures, one statement after the other."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ..budget import ZERO, Charge
from ..mechanisms import ATTO, NANO
from ..words import counted
from .answer import charged_text, left_text
from .batch import PricedBatch, PricedStatement
from .explain import expected_errors
from .settings import decimal_text

__all__ = ["batch_dict", "batch_lines"]


def batch_lines(price: PricedBatch, width: int) -> Iterator[str]:
    """Yield the list of prices; `width`: the most characters of a statement that are shown."""
    for one in price.statements:
        text = one.statement.text
        yield f"{one.statement.number}: {text if len(text) <= width else text[: width - 1] + '…'}"
        for name, expected in expected_errors(one.actual, one.prepared.compiled):
            yield f"   {name}: expected {expected}"
        yield f"   {_cost_text(one, in_rho=price.status.in_rho)}"
    statements = counted(len(price.statements), "statement")
    cost = "free" if price.charge == ZERO else _charge_text(price.charge, in_rho=price.status.in_rho)
    each = price.statements[0].statement.settings.epsilon
    yield f"all {statements}: {cost}; {left_text(price.status, each)} before"


def _cost_text(one: PricedStatement, *, in_rho: bool) -> str:
    uses = f"what statement {', '.join(map(str, one.uses))} draws" if one.uses else ""
    if one.charge != ZERO:
        return f"{_charge_text(one.charge, in_rho=in_rho)}{', beside ' + uses if uses else ''}"
    if uses:
        return f"free, from {uses}"
    return "free, it is stored" if one.is_stored else "free, nothing private is asked"


def _charge_text(charge: Charge, *, in_rho: bool) -> str:
    delta = f", delta {decimal_text(Fraction(charge.delta_atto, ATTO))}" if charge.delta_atto else ""
    said = charged_text(charge.rho_atto) if in_rho else _epsilon(charge)
    return f"{said}{delta}"


def _epsilon(charge: Charge) -> str:
    return f"epsilon {decimal_text(Fraction(charge.epsilon_nano, NANO))}"


def batch_dict(price: PricedBatch) -> dict[str, object]:
    """Return the same for programs; amounts are exact decimals as text."""
    return {
        "statements": [
            {
                "number": one.statement.number,
                "line": one.statement.place.line,
                "sql": one.statement.text,
                "charge": _amounts(one.charge, in_rho=price.status.in_rho),
                "uses": list(one.uses),
                "stored": one.is_stored,
                "expected": [
                    {"column": name, "error": expected}
                    for name, expected in expected_errors(one.actual, one.prepared.compiled)
                ],
            }
            for one in price.statements
        ],
        "charge": _amounts(price.charge, in_rho=price.status.in_rho),
        "epsilon_left": decimal_text(Fraction(price.status.left_nano, NANO)),
    }


def _amounts(charge: Charge, *, in_rho: bool) -> dict[str, str]:
    delta = {"delta": decimal_text(Fraction(charge.delta_atto, ATTO))}
    if in_rho:
        return {"rho": decimal_text(Fraction(charge.rho_atto, ATTO))} | delta
    return {"epsilon": decimal_text(Fraction(charge.epsilon_nano, NANO))} | delta
