"""Predicates, text, calendar forms, bins of moments on private rows; `print_private` has the house rules.

>>> where("height IS NULL AND NOT city IN ('Ulm', 'Bonn')")
(CASE WHEN isnan("height") THEN NULL ELSE "height" END IS NULL)
AND (NOT (CAST("city" AS VARCHAR) IN ('Bonn', 'Ulm')))

No content makes a part of a text or a regular expression fail, since what they could fail by is constant and read
before: a separator, a place, a pattern. A pattern is in the syntax that takes linear time, with classes of ASCII, so
that all engines find the same (soundness.md 1.11).

By the clocks of a named zone no engine is asked: its steps are printed, as a CASE over instants with an ELSE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from ...cache import Made
from ...errors import Refusal
from ...relation.calendar import DAY, MAX_CHANGES, MAX_YEARS, Steps, back_steps, calendar_ends, clock_steps
from ...relation.expressions import Call, Expr, Literal, Months
from ...relation.facts import TEXT_CUT, Facts, read_length
from ...relation.functions import FUNCTIONS
from ...relation.functions.above.moments import FormatError, parts_in
from ...relation.functions.above.patterns import Pattern, like_similar, read_pattern, replacement
from ...relation.functions.moments import bin_of, steps_of, word_of, written_format
from ...relation.functions.numbers import shiftable
from ...relation.intervals import facts_of, member_of
from ...relation.types import TEXT, TIMESTAMP, Kind
from ..dialects.dialect import Number, is_bare, reach_of, unbounded, written

if TYPE_CHECKING:
    from ..dialects.dialect import Patterns
    from .print_private import PrivatePrinter


def to_char(printer: PrivatePrinter, expr: Call) -> str:
    """Return a moment's text, each part of it from a field: engines' own formats differ, and may depend on a locale."""
    moment = printer.dialect.calendar_operand(printer.moment(expr.args[0]))
    return printer.dialect.as_text(f"({written(written_format(expr), moment, printer.dialect)})")


def date_bin(printer: PrivatePrinter, expr: Call) -> str:
    """Return where a moment's bin begins: the moment less what has gone by of its bin."""
    facts, (first, last) = facts_of(expr, printer.env), calendar_ends(TIMESTAMP)
    if facts.lo is None or facts.hi is None:
        raise unbounded(expr)
    if facts.lo < first or facts.hi > last:
        raise Refusal(
            "these bins could leave the years 1 to 9999", sqlstate="PV202", position=expr.position,
            hint="narrow the bounds with BETWEEN",
        )  # fmt: skip
    moment = _timestamp(printer, expr.args[1])
    return printer.dialect.less_microseconds(moment, _gone(printer, expr, moment))


def _gone(printer: PrivatePrinter, expr: Call, moment: str) -> str:
    """Return the microseconds of a moment's bin that have gone by."""
    width, origin = bin_of(expr)
    return _modulo(f"({printer.dialect.since_1970(moment, TIMESTAMP)} - {origin % width})", width)


def _modulo(sql: str, by: int) -> str:
    """Return what is left of a whole number below or above 0, from 0 up."""
    return f"((({sql} % {by}) + {by}) % {by})"


def _timestamp(printer: PrivatePrinter, expr: Expr) -> str:
    moment = printer.moment(expr)
    return printer.dialect.cast(moment, "TIMESTAMP") if expr.type.kind is Kind.DATE else moment


def time_of_day(printer: PrivatePrinter, expr: Call) -> str:
    """Return the time of day of a moment as its whole microseconds, a BIGINT from 0 to the last of a day."""
    inner = expr.args[0]
    # whole numbers all the way, and no moment between
    if isinstance(inner, Call) and inner.calls("date_bin"):
        moment = _timestamp(printer, inner.args[1])
        begun = f"({printer.dialect.since_1970(moment, TIMESTAMP)} - {_gone(printer, inner, moment)})"
        return _modulo(begun, DAY)
    return _clock(printer, _timestamp(printer, inner))


def age_seconds(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """Return an age in microseconds, a month as 30 days.

    Where the later day of the month, with its clock, is before the earlier's, a month is taken back as the days that
    the earlier moment's month has; of a negative age all is the other way round.
    """
    (x, since_x), (y, since_y) = (_by_month(printer, arg) for arg in expr.args)
    within_x, within_y = (_within(printer, one) for one in (x, y))
    taken = (
        f"CASE WHEN {x} >= {y} THEN CASE WHEN {within_x} < {within_y} THEN {_beyond(printer, y)} ELSE 0 END "
        f"WHEN {within_y} < {within_x} THEN -({_beyond(printer, x)}) ELSE 0 END"
    )
    sql = f"(({since_x} - {since_y}) + ({taken}) * {DAY})"
    return Number(sql, Fraction(1, 10**6), reach_of(facts, Fraction(1, 10**6), expr))


def _by_month(printer: PrivatePrinter, arg: Expr) -> tuple[str, str]:
    """Return a timestamp, and the microseconds of its months of 30 days with what is within its month."""
    moment = _timestamp(printer, arg)
    months = f"({_field(printer, 'year', moment)} * 12 + {_field(printer, 'month', moment)})"
    return moment, f"({months} * {30 * DAY} + {_within(printer, moment)})"


def _within(printer: PrivatePrinter, moment: str) -> str:
    return f"({_field(printer, 'day', moment)} * {DAY} + {_clock(printer, moment)})"


def _clock(printer: PrivatePrinter, moment: str) -> str:
    return _modulo(printer.dialect.since_1970(moment, TIMESTAMP), DAY)


def _field(printer: PrivatePrinter, field: str, moment: str) -> str:
    return printer.dialect.cast(
        printer.dialect.extract(field, printer.dialect.calendar_operand(moment)), "BIGINT"
    )


def _beyond(printer: PrivatePrinter, moment: str) -> str:
    """Return the days of a moment's month, above 30."""
    month, year = (_field(printer, field, moment) for field in ("month", "year"))
    leaps = f"({year} % 400 = 0 OR ({year} % 4 = 0 AND {year} % 100 <> 0))"
    long = f"{month} IN (1, 3, 5, 7, 8, 10, 12)"
    return f"CASE WHEN {long} THEN 1 WHEN {month} <> 2 THEN 0 WHEN {leaps} THEN -1 ELSE -2 END"


def zone_moved(printer: PrivatePrinter, expr: Call) -> str:
    """Return what the clocks show at a moment, or the moment at which they do."""
    value = expr.args[0]
    steps = _known(expr, steps_of(expr, *_bounds(printer, value)))
    return _plus(printer, printer.moment(value), steps, value)


def zone_cut(printer: PrivatePrinter, expr: Call) -> str:
    """Return where a moment's unit began by the clocks: they are cut, and made a moment again."""
    unit, value, zone = word_of(expr, 0), expr.args[1], word_of(expr, 2)
    lo, hi = _bounds(printer, value)
    clock, back = _known(expr, clock_steps(zone, lo, hi)), _known(expr, back_steps(unit, zone, lo, hi))
    shown = printer.dialect.calendar_operand(_plus(printer, printer.moment(value), clock, value))
    return _plus(printer, printer.dialect.date_trunc(unit, shown), back, value)


def _bounds(printer: PrivatePrinter, value: Expr) -> tuple[int, int]:
    """Raises Refusal (PV101, PV201): there are none."""
    facts = facts_of(value, printer.env)
    if facts.lo is None or facts.hi is None:
        raise unbounded(value)
    return int(facts.lo), int(facts.hi)


def _known(expr: Call, steps: Steps | None) -> Steps:
    """Raises Refusal (PV203): there are too many, or there is no calendar for them."""
    if steps is None:
        raise Refusal(
            f"a zone's clocks are written out for at most {MAX_CHANGES} of their changes and {MAX_YEARS} years",
            sqlstate="PV203", position=expr.position,
            hint="narrow the moments in WHERE: x BETWEEN TIMESTAMP '2020-01-01' AND TIMESTAMP '2024-12-31'",
        )  # fmt: skip
    return steps


def _plus(printer: PrivatePrinter, moment: str, steps: Steps, by: Expr) -> str:
    """Return a moment with what the steps add at `by`, which is compared as it stands: NULL and infinity meet an ELSE.

    `moment` is NULL where `by` is.
    """
    less, shown = str(-steps.first), printer.value(by)
    if steps.changes:
        starts = [printer.dialect.literal(Literal(TIMESTAMP, at)) for at, _ in steps.changes]
        values = [-steps.first, *(-value for _, value in steps.changes)]
        arms = "".join(
            f"WHEN {shown} < {at} THEN {value} " for at, value in zip(starts, values[:-1], strict=True)
        )
        less = f"CASE {arms}ELSE {values[-1]} END"
    return printer.dialect.less_microseconds(moment, printer.dialect.cast(less, "BIGINT"))


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
    "split_part": _split_part, "replace": _replace, "regexp_replace": _rewritten,
    "md5": lambda printer, expr: f"md5({printer.value(expr.args[0])})",
    "json_member": _json_member, "json_has": _json_has, "to_date_of": _moment_by, "to_timestamp_by": _moment_by,
    **dict.fromkeys(("regexp_matches", "regexp_matches_no_case", "regexp_like", "similar_to"), _matches),
    **dict.fromkeys(("regexp_substr", "substring_matching"), _matched),
}  # fmt: skip


_MAX_LENGTH = 2**31 - 1


def _comparison(printer: PrivatePrinter, expr: Call) -> str:
    return printer.compared(expr.args[0], expr.args[1], FUNCTIONS[expr.function].symbol, expr)


def _in_list(printer: PrivatePrinter, expr: Call) -> str:
    subject, items = expr.args[0], expr.args[1:]
    if not subject.type.is_number:
        if all(item.is_constant and item.type == subject.type for item in items):
            shown = _listed(printer, expr)
        else:
            shown = ", ".join(printer.beside(item, (subject, item)) for item in items)
        left = printer.whole(subject) if printer.stands_whole(subject, items) else printer.value(subject)
        return f"({left} IN ({shown}))"
    is_computed = _is_computed(printer, subject)
    if not is_computed and len(items) > 1 and _are_alike(subject, items):
        return f"({printer.beside(subject, (subject, subject))} IN ({_listed(printer, expr)}))"
    found: dict[str, list[str]] = {}
    for item in items:
        left, right = printer.sides(subject, item, expr)
        found.setdefault(left, []).append(right)
    is_list = is_computed and (printer.dialect.lists_doubles or not subject.type.is_float)
    terms = [term for left, rights in found.items() for term in _among(left, rights, is_list=is_list)]
    return terms[0] if len(terms) == 1 else f"({' OR '.join(terms)})"


def _listed(printer: PrivatePrinter, expr: Call) -> str:
    """Return the constants of a list as they stand: of a long one they are printed once."""
    of = _lists.of(expr)
    if printer.dialect not in of:
        of[printer.dialect] = ", ".join(map(printer.value, expr.args[1:]))
    return of[printer.dialect]


_lists: Made[dict[object, str]] = Made(lambda _: {})
"""The constants of a list by the dialect that they are printed for."""


def _among(left: str, rights: Sequence[str], *, is_list: bool) -> list[str]:
    """Return terms of which one is TRUE where a number is one of several; as a list it stands there once."""
    if is_list and len(rights) > 1:
        return [f"({left} IN ({', '.join(rights)}))"]
    return [f"({left} = {right})" for right in rights]


def _is_computed(printer: PrivatePrinter, subject: Expr) -> bool:
    """Say whether a number is no table's column: it is printed as a count of a grid, or as a DOUBLE."""
    column = printer.env.declared(subject)
    return subject.column is None or (column is not None and column.facts is not None)


def _are_alike(subject: Expr, items: Sequence[Expr]) -> bool:
    """Say whether a list of exact numbers is compared of which one type of an engine holds all: whole ones, or those
    of one NUMERIC type beside which a BIGINT's 20 digits are no more than 38.
    """
    if not subject.type.is_integer:
        whole, scale = (subject.type.precision or 39) - (subject.type.scale or 0), subject.type.scale or 0
        fits = subject.type.kind is Kind.NUMERIC and max(whole, 20) + scale <= 38
        return fits and all(item.type == subject.type and item.constant is not None for item in items)
    return all(item.type.is_integer and item.constant is not None for item in items)


def _logic(printer: PrivatePrinter, expr: Call) -> str:
    return "(" + f" {expr.function.upper()} ".join(printer.boolean(arg) for arg in expr.args) + ")"


def _not(printer: PrivatePrinter, expr: Call) -> str:
    inner = expr.args[0]
    if inner.calls("is_null"):
        return f"({_null_test(printer, inner.args[0])} IS NOT NULL)"
    if isinstance(inner, Call) and inner.calls(
        "like"
    ):  # one word: an engine may know no other form of it where it plans
        return _like(printer, inner, "NOT LIKE")
    return f"(NOT {printer.boolean(inner)})"


def _null_test(printer: PrivatePrinter, expr: Expr) -> str:
    if expr.column is not None and expr.type.is_float:
        shown = printer.as_number(expr)  # NaN counts as NULL everywhere on the private side
        return f"CASE WHEN {printer.dialect.is_nan(shown)} THEN NULL ELSE {shown} END"
    if expr.type.is_number and not is_bare(expr):
        return printer.number(expr).sql
    return printer.whole(expr)


def _is_null(printer: PrivatePrinter, expr: Call) -> str:
    return f"({_null_test(printer, expr.args[0])} IS NULL)"


def _truth(printer: PrivatePrinter, expr: Call) -> str:
    return f"({printer.boolean(expr.args[0])} IS {'TRUE' if expr.function == 'is_true' else 'FALSE'})"


def _like(printer: PrivatePrinter, expr: Call, word: str = "LIKE") -> str:
    pattern, escape = (arg.constant for arg in expr.args[1:] if arg.is_constant)
    subject, begins = expr.args[0], _prefix(str(pattern), str(escape))
    is_whole = begins is not None and printer.stands_whole(subject, (Literal(TEXT, begins),))
    shown = printer.whole(subject) if is_whole else printer.value(subject)
    return printer.dialect.like(shown, str(pattern), str(escape), word)


def _prefix(pattern: str, escape: str) -> str | None:
    """Return what a pattern says a text begins with, if it says nothing else: all before one `%`, which is the last."""
    found, characters = [], iter(pattern)
    for character in characters:
        if escape and character == escape:
            found.append(next(characters))
        elif character == "%":
            return "".join(found) if next(characters, None) is None else None
        elif character == "_":
            return None
        else:
            found.append(character)
    return "".join(found)


def _case(printer: PrivatePrinter, expr: Call) -> str:
    branches = [
        f"WHEN {printer.boolean(expr.args[i])} THEN {printer.value(expr.args[i + 1])}"
        for i in range(0, len(expr.args) - 1, 2)
    ]
    return f"CASE {' '.join(branches)} ELSE {printer.value(expr.args[-1])} END"


def _function(printer: PrivatePrinter, expr: Call) -> str:
    name = {"substr": "substring"}.get(expr.function, expr.function)
    counts = [arg.constant_as(int) for arg in expr.args[1:]]
    places = [count for count in counts if count is not None and 0 <= count < _MAX_LENGTH]
    if expr.function == "substr" and len(places) < len(counts):
        raise Refusal(
            "substring takes literal numbers below 2^31", sqlstate="PV202", position=expr.position,
            hint="write substring(x FROM 1 FOR 3); several by CASE",
        )  # fmt: skip
    if expr.function in ("left", "right") and not places:
        raise Refusal(
            f"{name} takes a literal length, from 0", sqlstate="PV202", position=expr.position,
            hint=f"write {name}(x, 3); several by CASE",
        )  # fmt: skip
    if expr.function == "substr":
        end = sum(places) - 1 if len(places) == 2 else None
        return printer.dialect.substring(printer.beginning(expr.args[0], end), *places)
    if expr.function == "left":
        return f"left({printer.beginning(expr.args[0], places[0])}, {places[0]})"
    values = [printer.value(arg) for arg in expr.args]
    if expr.function in ("greatest", "least"):
        return printer.dialect.extreme(expr.function, values)
    return f"{name}({', '.join(values)})"


def _letter_case(printer: PrivatePrinter, expr: Call) -> str:
    return printer.dialect.letter_case(expr.function, printer.new_text(expr.args[0]))


def _trimmed(printer: PrivatePrinter, expr: Call) -> str:
    return printer.dialect.trimmed(expr.function, printer.value(expr.args[0]))


def _concat(printer: PrivatePrinter, expr: Call) -> str:
    parts = []
    for arg in expr.args:
        if arg.type.is_float:
            raise Refusal("a floating-point number cannot be joined to text here", sqlstate="PV202",
                          position=expr.position)  # fmt: skip
        shown = printer.new_text(arg)
        parts.append(shown if expr.function == "concat_op" else f"COALESCE({shown}, '')")
    return "(" + " || ".join(parts) + ")"


def _date_trunc(printer: PrivatePrinter, expr: Call) -> str:
    moment = printer.dialect.calendar_operand(printer.moment(expr.args[1]))
    return printer.dialect.date_trunc(expr.literal(0, str), moment)


def _shift(printer: PrivatePrinter, expr: Call) -> str:
    """Return a date or timestamp moved by days or an interval; the result stays in the years 1 to 9999."""
    facts = facts_of(expr, printer.env)
    if facts.lo is None or facts.hi is None:
        raise unbounded(expr)
    first, last = calendar_ends(expr.type)
    left, right = expr.args
    if left.type.kind is Kind.INTERVAL:
        left, right = right, left
    sign = FUNCTIONS[expr.function].symbol
    if right.type.kind is Kind.INTERVAL and not facts_of(left, printer.env).bounded:
        within = shiftable(expr)
        if within[0] > within[1]:
            raise _leaves(expr)
        moment = printer.moment(left, within)
        return printer.dialect.shifted(moment, sign, expr.literal(1, Months), left.type)
    if not facts.declared:
        raise unbounded(expr)
    reach = facts_of(right, printer.env) if right.type.is_integer else None
    far = reach is not None and (reach.lo is None or reach.hi is None or max(-reach.lo, reach.hi) > 4_000_000)
    if facts.lo < first or facts.hi > last or far:
        raise _leaves(expr)
    if right.type.is_integer:
        days = printer.on_grid(printer.number(right), Fraction(1), expr)
        return f"({printer.moment(left)} {sign} CAST({days.sql} AS INTEGER))"
    return printer.dialect.shifted(printer.moment(left), sign, expr.literal(1, Months), left.type)


def _leaves(expr: Call) -> Refusal:
    return Refusal(
        "this date arithmetic could leave the years 1 to 9999", sqlstate="PV202", position=expr.position,
        hint="narrow the bounds with BETWEEN",
    )  # fmt: skip


def _cast_value(printer: PrivatePrinter, expr: Call) -> str:
    source, target = expr.args[0].type, expr.type
    good = target.kind is Kind.TEXT and not source.is_float and source.kind is not Kind.OPAQUE
    if source == target:
        return printer.dialect.as_text(printer.value(expr.args[0]))
    if good:
        return printer.new_text(expr.args[0])
    if source.is_temporal and target.is_temporal:
        return printer.dialect.cast(printer.moment(expr.args[0]), target.kind.value.upper())
    if source.kind is Kind.TEXT and target.is_temporal:
        return moment_in(printer, printer.value(expr.args[0]), expr)
    raise Refusal(
        f"a cast from {source} to {target} could fail on some row", sqlstate="PV202", position=expr.position
    )


FORMS: dict[str, Callable[[PrivatePrinter, Call], str]] = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct"), _comparison),
    "in": _in_list, "and": _logic, "or": _logic, "not": _not, "is_null": _is_null, "is_true": _truth,
    "is_false": _truth, "like": _like, "case": _case,
    **dict.fromkeys(("coalesce", "greatest", "least", "nullif", "substr", "left", "right"), _function),
    **dict.fromkeys(("lower", "upper"), _letter_case), **dict.fromkeys(("trim", "ltrim", "rtrim"), _trimmed),
    "concat": _concat, "concat_op": _concat, "date_trunc": _date_trunc, "date_bin": date_bin, "to_char": to_char,
    "add": _shift, "sub": _shift, "zone_clock": zone_moved, "zone_moment": zone_moved, "zone_cut": zone_cut,
    "time_of_day": time_of_day,
    "cast": _cast_value, **TEXT_FORMS,
}  # fmt: skip
