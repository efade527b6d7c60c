"""Parts of texts and regular expressions on private rows; `print_private` has the house rules.

No content makes one of these fail, since what they could fail by is constant and read before: a separator, a place, a
pattern. A pattern is in the syntax that takes linear time, with classes of ASCII, so that all engines find the same
(soundness.md 1.11).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import Refusal
from ...relation.expressions import Call, Expr, Literal
from ...relation.facts import TEXT_CUT
from ...relation.functions import FUNCTIONS
from ...relation.functions.above.patterns import Pattern, like_similar, read_pattern, replacement
from ...relation.intervals import member_of
from ...relation.size_rules import read_length
from ...relation.types import TEXT

if TYPE_CHECKING:
    from ..dialects.patterns import Patterns
    from .print_private import PrivatePrinter

__all__ = ["TEXT_FORMS"]


def _constant(expr: Call, arg: Expr) -> str:
    if not isinstance(arg.constant, str):
        raise _needs(expr, "constant texts")
    return arg.constant


def _needs(expr: Call, what: str) -> Refusal:
    row = FUNCTIONS[expr.function]
    return Refusal(
        f"{row.said} takes {what} on people's rows", sqlstate="PV202", position=expr.position,
        hint=f"write {row.form}",
    )  # fmt: skip


def _split_part(printer: PrivatePrinter, expr: Call) -> str:
    separator, place = _constant(expr, expr.args[1]), expr.args[2].constant_as(int)
    if place is None or not 0 < place < 2**31:
        raise _needs(expr, "a constant place from 1")
    shown = printer.value(expr.args[0])
    if not separator:
        return shown if place == 1 else f"left({shown}, 0)"
    return f"split_part({shown}, {printer.dialect.text_literal(separator)}, {place})"


def _replace(printer: PrivatePrinter, expr: Call) -> str:
    old, new = (_constant(expr, arg) for arg in expr.args[1:])
    shown = printer.value(expr.args[0])
    text = printer.dialect.text_literal
    return f"replace({shown}, {text(old)}, {text(new)})" if old else shown


def _md5(printer: PrivatePrinter, expr: Call) -> str:
    return f"md5({printer.value(expr.args[0])})"


def _pattern(printer: PrivatePrinter, expr: Call, flags: str) -> tuple[Pattern, Patterns]:
    """Return the pattern of a call as the engine spells it, and how it is printed."""
    text = _constant(expr, expr.args[1])
    if expr.function == "similar_to":
        text, flags = (like_similar(text, flags) if len(expr.args) > 2 else like_similar(text)), ""
    no_case = "i" in flags or expr.function == "regexp_matches_no_case"
    engine = printer.dialect.patterns(expr.position)
    return read_pattern(text, no_case, engine.spelling), engine


def _flags(expr: Call, place: int) -> str:
    return _constant(expr, expr.args[place]) if len(expr.args) > place else ""


def _matches(printer: PrivatePrinter, expr: Call) -> str:
    pattern, engine = _pattern(printer, expr, _flags(expr, 2))
    return engine.matches(printer.value(expr.args[0]), pattern.text)


def _matched(printer: PrivatePrinter, expr: Call) -> str:
    pattern, engine = _pattern(printer, expr, _flags(expr, 2))
    is_group = expr.function == "substring_matching" and pattern.groups > 0
    return engine.matched(printer.value(expr.args[0]), pattern.text, pattern.groups, is_group=is_group)


def _rewritten(printer: PrivatePrinter, expr: Call) -> str:
    new, flags = _constant(expr, expr.args[2]), _flags(expr, 3)
    pattern, engine = _pattern(printer, expr, flags)
    written = new, replacement(new, pattern.groups)
    return engine.replaced(printer.value(expr.args[0]), pattern.text, written, is_each="g" in flags)


def _not_a_column(expr: Call) -> Refusal:
    return Refusal(
        "a member of JSON is read of a table's own column", sqlstate="PV202", position=expr.position,
        hint="name the member in the subquery that reads the table, and use it outside by its name",
    )  # fmt: skip


def _json_member(printer: PrivatePrinter, expr: Call) -> str:
    column, *keys = expr.args
    declared = printer.env.declared(column)
    if declared is None or not declared.type.has_members:
        raise _not_a_column(expr)
    found = printer.dialect.as_text(
        printer.dialect.json_member(
            printer.as_number(column), [str(key.constant) for key in keys], expr.position
        )
    )
    member = member_of(expr, printer.env)
    if member is None or member.values is None:
        return printer.dialect.cut(found, TEXT_CUT if member is None else read_length(member))
    listed = ", ".join(
        printer.dialect.literal(Literal(TEXT, one)) for one in member.values if one is not None
    )
    return f"(CASE WHEN {found} IN ({listed}) THEN {found} END)" if listed else "CAST(NULL AS text)"


def _json_has(printer: PrivatePrinter, expr: Call) -> str:
    column, *keys = expr.args
    declared = printer.env.declared(column)
    if declared is None or not declared.type.has_members:
        raise _not_a_column(expr)
    found = printer.dialect.json_field(
        printer.as_number(column), [str(key.constant) for key in keys], expr.position
    )
    return f"({found} IS NOT NULL)"


TEXT_FORMS: dict[str, Callable[[PrivatePrinter, Call], str]] = {
    "split_part": _split_part, "replace": _replace, "md5": _md5, "regexp_replace": _rewritten,
    "json_member": _json_member, "json_has": _json_has,
    **dict.fromkeys(("regexp_matches", "regexp_matches_no_case", "regexp_like", "similar_to"), _matches),
    **dict.fromkeys(("regexp_substr", "substring_matching"), _matched),
}  # fmt: skip
