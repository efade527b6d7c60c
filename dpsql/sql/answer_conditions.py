"""What a condition says of a randomised answer: a set of its values (soundness.md 1.24).

House rule: a condition is evaluated here, value by value in SQL's three truths; what this module cannot evaluate
is refused, never guessed.
"""

from __future__ import annotations

from ..relation.catalog import Column
from ..relation.expressions import Call, Expr, Field, Literal
from ..relation.types import BOOLEAN
from .comparison import compare_in
from .reported import Answer, refuse_use

__all__ = ["Chosen", "Conditions", "chosen_by", "merged", "reports"]

Chosen = frozenset[int]
"""Which of an answer's values are asked for, by their numbers."""
Conditions = dict[Answer, Chosen]


def merged(one: Conditions, other: Conditions) -> Conditions:
    """Return what two conditions, both true, say."""
    both = dict(one)
    for answer, chosen in other.items():
        both[answer] = both.get(answer, chosen) & chosen
    return both


def reports(field_: Field, column: Column, chosen: Chosen) -> Expr:
    """Return whether a row reports one of the chosen values."""
    values = [(column.values or ())[number] for number in sorted(chosen)]
    listed: list[Expr] = [Literal(column.type, value) for value in values if value is not None]
    terms: list[Expr] = [compare_in(field_, listed, None)] if listed else []
    if None in values:
        terms.append(Call(BOOLEAN, "is_null", (field_,)))
    return terms[0] if len(terms) == 1 else Call(BOOLEAN, "or", tuple(terms))


def chosen_by(term: Expr, answer: Answer) -> Chosen:
    """Return of which values a condition on an answer alone is true. Raises Refusal."""
    values = answer.column.values or ()
    return frozenset(number for number, value in enumerate(values) if _truth(term, value, answer) is True)


def _truth(expr: Expr, value: object, answer: Answer) -> bool | None:
    """Return a condition's truth for one value, in SQL's three values. Raises Refusal: it is not one that is read."""
    if expr.is_constant and (expr.constant is None or isinstance(expr.constant, bool)):
        return expr.constant
    if isinstance(expr, Field) and expr.type == BOOLEAN:
        return None if value is None else bool(value)
    if not isinstance(expr, Call):
        raise refuse_use(answer, expr.position)
    function, args = expr.function, expr.args
    if function in ("and", "or", "not", "is_true", "is_false"):
        found = [_truth(arg, value, answer) for arg in args]
        if function == "not":
            return None if found[0] is None else not found[0]
        if function.startswith("is_"):
            return found[0] is (function == "is_true")
        decisive = function == "or"
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    if not isinstance(args[0], Field) or not all(arg.is_constant for arg in args[1:]):
        raise refuse_use(answer, expr.position, "compare it with literals")
    given = [arg.constant for arg in args[1:] if arg.is_constant]
    if function == "is_null":
        return value is None
    if function == "is_not_distinct":
        return value == given[0]
    if function not in ("eq", "ne", "in"):
        raise refuse_use(answer, expr.position, "compare it by =, <> and IN")
    if value is None:
        return None
    if function == "ne":
        return None if given[0] is None else value != given[0]
    return True if value in given else None if None in given else False
