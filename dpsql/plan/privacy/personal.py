"""Values that tell people apart: an e-mail address, a receipt's number, and what is computed from one of them.

House rule: this is a courtesy, and no proof rests on it. A group of such a value is one person's, so that a
release by it is charged and can show nothing; whose a row is, is `ownership`'s to say.
"""

from __future__ import annotations

from collections.abc import Callable

from ...relation.expressions import Expr, Field
from ...relation.types import Kind
from .functional_dependencies import classes_of, equalities
from .rows import OwnedRows, fields_in

_KEEPING = frozenset(
    {"add", "sub", "mul", "neg", "lower", "upper", "trim", "ltrim", "rtrim", "concat", "concat_op", "coalesce",
     "nullif"}
)  # fmt: skip
"""Functions that give different values of an argument different results, but for a few."""


def tells_apart(expr: Expr, is_personal: Callable[[int], bool]) -> Field | None:
    """Return the column by which an expression tells people apart; None where many can share a value of it."""
    if isinstance(expr, Field):
        return expr if is_personal(expr.index) else None
    parts: tuple[Expr, ...] = ()
    if expr.calls(*_KEEPING) or (expr.calls("cast") and _keeps_values(expr)):
        parts = expr.args
    elif expr.calls("case"):
        parts = (*expr.args[1:-1:2], expr.args[-1])
    found = (tells_apart(part, is_personal) for part in parts)
    return next((field for field in found if field is not None), None)


def _keeps_values(cast: Expr) -> bool:
    before, after = cast.args[0].type, cast.type
    if after.kind is Kind.TEXT or before.is_integer:
        return after.kind is not Kind.BOOLEAN
    return before.kind is after.kind or (before.is_number and after.is_float)


def personal_columns(rows: OwnedRows) -> Callable[[int], bool]:
    """Return the test of which columns tell people apart, by themselves or by an equality with one that does."""
    classes = classes_of(rows.items, rows.predicate, rows.root)
    for item, _ in fields_in(rows.items):
        for left, right in equalities(item.on if item.kind == "left" else ()):
            classes.unite(left, right)
    personal = {classes.find(index) for index, column in enumerate(rows.columns) if column.is_personal}
    return lambda index: classes.find(index) in personal
