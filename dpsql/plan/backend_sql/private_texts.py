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
from ...relation.functions.above.formats import FormatError, parts_in
from ...relation.functions.above.patterns import Pattern, like_similar, read_pattern, replacement
from ...relation.intervals import member_of
from ...relation.size_rules import read_length
from ...relation.types import TEXT, Kind

if TYPE_CHECKING:
    from ..dialects.quote import Patterns
    from .print_private import PrivatePrinter

__all__ = ["TEXT_FORMS", "moment_in"]


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


_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAY = (
    f"(?:{_YEAR}-(?:(?:0?[13578]|1[02])-(?:0?[1-9]|[12][0-9]|3[01])|(?:0?[469]|11)-(?:0?[1-9]|[12][0-9]|30)"
    f"|0?2-(?:0?[1-9]|1[0-9]|2[0-8]))|{_LEAP}-0?2-29)"
)
_CLOCK = "(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,6})?)?)?"
DATES = f"^ *({_DAY}){_CLOCK}Z? *$"
"""Texts that begin with a day of the calendar, years 1 to 9999, as the first group: no other is cast."""
MOMENTS = f"^ *({_DAY}{_CLOCK})Z? *$"
"""The same with a time of day."""


def moment_in(printer: PrivatePrinter, text: str, expr: Call) -> str:
    """Return a text read as a date or a timestamp: the part of it that is one, or NULL, is what is cast."""
    patterns, kind = printer.dialect.patterns(expr.position), expr.type.kind
    found = patterns.first_group(text, DATES if kind is Kind.DATE else MOMENTS)
    return printer.dialect.cast(found, kind.value.upper())


def _moment_by(printer: PrivatePrinter, expr: Call) -> str:
    """Return a text that is read by a constant format: its parts, in the order of ISO, are what is read."""
    shown, form = printer.value(expr.args[0]), _constant(expr, expr.args[1])
    patterns, quoted = printer.dialect.patterns(expr.position), printer.dialect.text_literal
    try:
        parts = [(one, pattern.replace(r"\d", "[0-9]")) for one, pattern in parts_in(form)]
    except FormatError as error:
        raise _needs(expr, str(error)) from None
    asked = [one for one, _ in parts if one.isalnum()]
    given = set(asked)
    is_clock = {"HH24", "MI"} <= given or given.isdisjoint({"HH24", "MI", "SS", "MS", "US"})
    is_whole = "SS" in given or given.isdisjoint({"MS", "US"})
    if len(given) < len(asked) or not {"YYYY", "MM", "DD"} <= given or not (is_clock and is_whole):
        raise _needs(expr, "a format with YYYY, MM and DD, each once, and HH24 with MI")

    def part(wanted: str) -> str:
        pattern = "".join(f"({one})" if word == wanted else one for word, one in parts)
        return patterns.first_group(shown, f"^ *{pattern} *$")

    iso = [part("YYYY"), quoted("-"), part("MM"), quoted("-"), part("DD")]
    for sign, word in ((" ", "HH24"), (":", "MI"), (":", "SS")):
        iso += [quoted(sign), f"right({quoted('0')} || {part(word)}, 2)"] if word in given else []
    iso += [piece for word in ("MS", "US") if word in given for piece in (quoted("."), part(word))]
    return moment_in(printer, f"({' || '.join(iso)})", expr)


TEXT_FORMS: dict[str, Callable[[PrivatePrinter, Call], str]] = {
    "split_part": _split_part, "replace": _replace, "md5": _md5, "regexp_replace": _rewritten,
    "json_member": _json_member, "json_has": _json_has, "to_date_of": _moment_by, "to_timestamp_by": _moment_by,
    **dict.fromkeys(("regexp_matches", "regexp_matches_no_case", "regexp_like", "similar_to"), _matches),
    **dict.fromkeys(("regexp_substr", "substring_matching"), _matched),
}  # fmt: skip
