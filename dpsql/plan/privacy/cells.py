"""What an expression can be over a cell: a set of values of each of a few columns, none of which is data.

A cell's part for one column, and what an expression is over a cell, is a `Value`: NULL, a truth value, a text,
numbers or moments between two ends (`Span`), or what is known of less (`OTHER` texts, `NAN`, `PAST`, `FUTURE`).

House rules:

1. For every row whose columns lie in the cell, the printed expression is one of the values that come out. What
   is not certain is `UNKNOWN`; a function without a rule here is. A truth is a set of TRUE, FALSE and NULL: who
   asks whether a filter can be true asks for TRUE in that set.
2. A wrong rule shows a group that cannot have rows, or leaves one out: it costs correctness, never privacy
   (soundness.md 1.7).
3. Engines compute doubles alike: an operation rises with its operand after rounding too, so that the ends of a
   span give the ends of the result.
"""

from __future__ import annotations

import enum
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from ...relation.calendar import DAY, EXACT_FIELDS, date_text, extracted, seconds, truncated, written_alike
from ...relation.expressions import MIRRORED, Call, Expr, Literal, Months
from ...relation.functions.moments import binned, steps_of, word_of, written_format
from ...relation.functions.numbers import buckets_of
from ...relation.types import BOOLEAN, Kind, SqlType
from ...relation.zones import cut_ends
from ...sql.constants import add_months

__all__ = ["Evaluation", "Number", "OneOf", "Other", "Part", "Rule", "Span", "Value", "compiled", "point"]

Number = int | Fraction | float


@dataclass(frozen=True, slots=True)
class Span:
    """Numbers, days or microseconds from `lo` to `hi`, both included."""

    lo: Number
    hi: Number

    @property
    def is_point(self) -> bool:
        """Whether it is one value."""
        return self.lo == self.hi


@dataclass(frozen=True, slots=True)
class Other:
    """A text, or a declared value of any type, that is none of `values`.

    A text above `lo` and below `hi`, where they are known: bytewise, as all engines compare, which is the order of
    code points.
    """

    values: frozenset[object]
    lo: str | None = None
    hi: str | None = None


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several values."""

    values: tuple[Value, ...]


class Part(enum.Enum):
    """What is no single value."""

    UNKNOWN = "anything, NULL too"
    NAN = "no number, and above all of them in a comparison"
    PAST = "a moment before the year 1"
    FUTURE = "a moment after the year 9999"


Value = None | bool | str | Span | Other | OneOf | Part
_UNKNOWN = Part.UNKNOWN
Evaluation = Callable[[Sequence[Value]], Value]
Rule = Callable[[Call, list[Value]], Value]


def point(number: Number) -> Span:
    """Return the span of one number."""
    return Span(number, number)


def compiled(expr: Expr, slots: Mapping[Expr, int]) -> Evaluation:
    """Return what computes an expression over cells; `slots`: the place in a cell of what it says the value of."""
    if expr in slots:
        slot = slots[expr]
        return lambda cell: cell[slot]
    if isinstance(expr, Literal):
        value = _of_literal(expr)
        return lambda cell: value
    rule = _RULES.get(expr.function)
    if rule is None:
        return lambda cell: _UNKNOWN
    assert isinstance(expr, Call)
    known, args = expr, [compiled(arg, slots) for arg in expr.args]
    if known.function in _OF_SETS:
        return lambda cell: rule(known, [arg(cell) for arg in args])
    return lambda cell: _of_each(rule, known, [arg(cell) for arg in args])


_MOST_CHOICES = 64
_TRUTHS: tuple[Value, ...] = (True, False, None)


def _choices(value: Value, type_: SqlType) -> tuple[Value, ...]:
    if isinstance(value, OneOf):
        return value.values
    return _TRUTHS if value is _UNKNOWN and type_ == BOOLEAN else (value,)


def _of_each(rule: Rule, call: Call, args: list[Value]) -> Value:
    """Return what a rule makes of arguments that are one of several values, for each choice among them."""
    if not any(arg is _UNKNOWN or isinstance(arg, OneOf) for arg in args):
        return rule(call, args)
    choices = [_choices(arg, part.type) for arg, part in zip(args, call.args, strict=True)]
    if math.prod(map(len, choices)) > _MOST_CHOICES:
        return _UNKNOWN
    return _one_of([rule(call, list(chosen)) for chosen in itertools.product(*choices)])


def _of_literal(literal: Literal) -> Value:
    value = literal.value
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Months) or (isinstance(value, float) and not math.isfinite(value)):
        return _UNKNOWN
    if literal.type.is_float:
        return point(float(value))
    return point(value)


# --- logic and comparisons ------------------------------------------------------------------------------------


def _truths(value: Value) -> frozenset[Value]:
    """Return which of TRUE, FALSE and NULL a value can be."""
    values = value.values if isinstance(value, OneOf) else (value,)
    return frozenset(values if all(one in _TRUTHS for one in values) else _TRUTHS)


def _truth(values: Iterable[Value]) -> Value:
    found = frozenset(values)
    return _UNKNOWN if len(found) == len(_TRUTHS) else _one_of([one for one in _TRUTHS if one in found])


def _and(call: Call, args: list[Value]) -> Value:
    return _least(args, (False, None, True))


def _or(call: Call, args: list[Value]) -> Value:
    return _least(args, (True, None, False))


def _least(args: list[Value], order: tuple[Value, ...]) -> Value:
    """Return the first in an order of three truths that some argument is: for all that the arguments can be."""
    sets = [{order.index(one) for one in _truths(arg)} for arg in args]
    last = min(map(max, sets))
    return _truth(order[rank] for rank in set[int]().union(*sets) if rank <= last)


def _not(call: Call, args: list[Value]) -> Value:
    (arg,) = args
    return arg if arg is None else not arg if isinstance(arg, bool) else _UNKNOWN


_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_RANKS = {Part.PAST: -1, Part.FUTURE: 1, Part.NAN: 1}


def _compare(call: Call, args: list[Value]) -> Value:
    return _compared(call.function, args[0], args[1])


def _compared(sign: str, left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    if isinstance(left, Other) and isinstance(right, Other):
        return _UNKNOWN
    if isinstance(right, Other):
        return _compared(MIRRORED.get(sign, sign), right, left)
    if isinstance(left, Other):
        if isinstance(right, str) and (side := _side_of(left, right)):
            return _SIGNS[sign](side, 0)
        is_else = isinstance(right, (bool, str)) and right in left.values
        is_else = is_else or (isinstance(right, Span) and right.is_point and right.lo in left.values)
        return {"eq": False, "ne": True}.get(sign, _UNKNOWN) if is_else else _UNKNOWN
    if isinstance(left, Span) and isinstance(right, Span):
        return _of_spans(sign, left, right)
    if isinstance(left, (bool, str)) and isinstance(right, (bool, str)):
        return _SIGNS[sign](left, right)
    ranks = [_RANKS.get(side) if isinstance(side, Part) else 0 for side in (left, right)]
    if None in ranks or ranks[0] == ranks[1]:
        return _UNKNOWN
    return _SIGNS[sign](ranks[0], ranks[1])


def _side_of(other: Other, text: str) -> int:
    """Return 1 where a text that is not known is above one that is, -1 where it is below, 0 where nobody can say."""
    if other.lo is not None and text <= other.lo:
        return 1
    return -1 if other.hi is not None and text >= other.hi else 0


def _of_spans(sign: str, a: Span, b: Span) -> Value:
    if sign in ("eq", "ne"):
        if a.hi < b.lo or b.hi < a.lo:
            return sign == "ne"
        return sign == "eq" if a.is_point and b.is_point else _UNKNOWN
    if sign in ("gt", "ge"):
        a, b, sign = b, a, MIRRORED[sign]
    if sign == "lt":
        return True if a.hi < b.lo else False if a.lo >= b.hi else _UNKNOWN
    return True if a.hi <= b.lo else False if a.lo > b.hi else _UNKNOWN


def _in(call: Call, args: list[Value]) -> Value:
    return _or(call, [_compared("eq", args[0], item) for item in args[1:]])


def _is_not_distinct(call: Call, args: list[Value]) -> Value:
    nulls = [_is_null(call, [arg]) for arg in args]
    if all(null is True for null in nulls):
        return True
    if True in nulls and False in nulls:
        return False
    return _compared("eq", *args) if all(null is False for null in nulls) else _UNKNOWN


def _is_null(call: Call, args: list[Value]) -> Value:
    (arg,) = args
    if arg is None or arg is Part.NAN:
        return True
    return _UNKNOWN if arg is _UNKNOWN else False


def _is_truth(call: Call, args: list[Value]) -> Value:
    (arg,) = args
    wanted = call.function == "is_true"
    return arg is wanted if arg is None or isinstance(arg, bool) else _UNKNOWN


def _like(call: Call, args: list[Value]) -> Value:
    text, pattern, escape = args
    if text is None or pattern is None:
        return None
    if not isinstance(text, str) or not isinstance(pattern, str) or not isinstance(escape, str):
        return _UNKNOWN
    found, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if escape and char == escape:
            at += 1
            if at == len(pattern):
                return _UNKNOWN
            found += re.escape(pattern[at])
        else:
            found += {"%": ".*", "_": "."}.get(char, re.escape(char))
        at += 1
    return _UNKNOWN if found.count(".*") > 5 else re.fullmatch(found, text, re.DOTALL) is not None


# --- choices --------------------------------------------------------------------------------------------------


def _one_of(values: Sequence[Value]) -> Value:
    flat: dict[Value, None] = {}
    for value in values:
        flat.update(dict.fromkeys(value.values if isinstance(value, OneOf) else (value,)))
    if _UNKNOWN in flat:
        return _UNKNOWN
    return next(iter(flat)) if len(flat) == 1 else OneOf(tuple(flat))


def _case(call: Call, args: list[Value]) -> Value:
    found: list[Value] = []
    for condition, value in zip(args[:-1:2], args[1::2], strict=True):
        truths = _truths(condition)
        if True in truths:
            found.append(value)
            if len(truths) == 1:
                return _one_of(found)
    return _one_of([*found, args[-1]])


def _coalesce(call: Call, args: list[Value]) -> Value:
    found: list[Value] = []
    for arg in args:
        null = _is_null(call, [arg])
        if null is True:
            continue
        found.append(arg)
        if null is False:
            return _one_of(found)
    return _one_of([*found, None])


def _nullif(call: Call, args: list[Value]) -> Value:
    equal = _compared("eq", args[0], args[1])
    return None if equal is True else args[0] if equal is False or equal is None else _one_of([args[0], None])


def _extreme(call: Call, args: list[Value]) -> Value:
    present = [arg for arg in args if arg is not None]
    if not all(isinstance(arg, Span) for arg in present):
        return _UNKNOWN
    spans = [arg for arg in present if isinstance(arg, Span)]
    best = max if call.function == "greatest" else min
    return Span(best(span.lo for span in spans), best(span.hi for span in spans)) if spans else None


# --- numbers --------------------------------------------------------------------------------------------------


def _numbers(rule: Callable[[Call, list[Span]], Value]) -> Rule:
    """Return the rule of a function that is NULL for NULL, and for what is no number or has no calendar."""

    def whole(call: Call, args: list[Value]) -> Value:
        if any(arg is None or (isinstance(arg, Part) and arg in _RANKS) for arg in args):
            return None
        spans = [arg for arg in args if isinstance(arg, Span)]
        return rule(call, spans) if len(spans) == len(args) else _UNKNOWN

    return whole


def _corners(call: Call, a: Span, b: Span, compute: Callable[[Number, Number], Number]) -> Value:
    if call.type.is_float:
        a, b = (Span(float(span.lo), float(span.hi)) for span in (a, b))
    corners = [compute(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    if any(isinstance(x, float) and not math.isfinite(x) for x in corners):
        return _UNKNOWN
    return Span(min(corners), max(corners))


def _sum(call: Call, args: list[Value]) -> Value:
    if any(arg.type.kind is Kind.INTERVAL for arg in call.args):
        return _shifted(call, args)
    return _plain_sum(call, args)


def _add(call: Call, args: list[Span]) -> Value:
    return _corners(call, args[0], args[1], operator.sub if call.function == "sub" else operator.add)


_plain_sum = _numbers(_add)


def _shifted(call: Call, args: list[Value]) -> Value:
    at = next(i for i in (1, 0) if call.args[i].type.kind is Kind.INTERVAL)
    interval, sign = call.args[at].constant_as(Months), -1 if call.calls("sub") else 1
    if interval is None:
        return _UNKNOWN
    return _of_moment(
        args[1 - at],
        call.args[1 - at],
        lambda lo, hi: _span(*(add_months(end, interval, sign) for end in (lo, hi))),
    )


def _mul(call: Call, args: list[Span]) -> Value:
    return _corners(call, args[0], args[1], operator.mul)


def _div(call: Call, args: list[Span]) -> Value:
    a, b = args
    if b.is_point and b.lo == 0:
        return None
    if b.lo <= 0 <= b.hi:
        return _UNKNOWN
    if call.type.is_integer:
        return _corners(call, a, b, lambda x, y: math.trunc(Fraction(x) / Fraction(y)))
    if call.type.is_float:
        return _corners(call, a, b, operator.truediv)
    if not isinstance(call.args[1], Literal):  # by a constant it is exact, else a double
        return _UNKNOWN
    return _corners(call, a, b, lambda x, y: Fraction(x) / Fraction(y))


def _mod(call: Call, args: list[Span]) -> Value:
    a, b = args
    if not b.is_point:
        return _UNKNOWN
    if b.lo == 0:
        return None
    step = abs(Fraction(b.lo))
    first, last = (math.trunc(Fraction(end) / step) for end in (a.lo, a.hi))
    if first == last and (a.lo >= 0 or a.hi <= 0):
        return Span(Fraction(a.lo) - first * step, Fraction(a.hi) - last * step)
    return _UNKNOWN


def _neg(call: Call, args: list[Span]) -> Value:
    return Span(-args[0].hi, -args[0].lo)


def _abs(call: Call, args: list[Span]) -> Value:
    (a,) = args
    if a.lo >= 0:
        return a
    return Span(-a.hi, -a.lo) if a.hi <= 0 else Span(0, max(-a.lo, a.hi))


def _sign(call: Call, args: list[Span]) -> Value:
    lo, hi = ((end > 0) - (end < 0) for end in (args[0].lo, args[0].hi))
    return Span(float(lo), float(hi)) if call.type.is_float else Span(lo, hi)


def _half_away(number: Fraction) -> int:
    whole = math.floor(abs(number) + Fraction(1, 2))
    return whole if number >= 0 else -whole


_STEPS: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": _half_away,
}  # fmt: skip


def _stepped(call: Call, args: list[Span]) -> Value:
    digits = int(args[1].lo) if len(args) > 1 else 0
    change = round if call.function == "round" and call.args[0].type.is_float else _STEPS[call.function]
    return _on_steps(args[0], Fraction(10) ** -digits, change)


def _bucket(call: Call, args: list[Span]) -> Value:
    ends = [buckets_of(call).number(Fraction(end)) for end in (args[0].lo, args[0].hi) if math.isfinite(end)]
    return Span(min(ends), max(ends)) if len(ends) == 2 else _UNKNOWN


def _on_steps(span: Span, step: Fraction, change: Callable[[Fraction], int]) -> Value:
    if any(isinstance(end, float) and not math.isfinite(end) for end in (span.lo, span.hi)):
        return _UNKNOWN
    return Span(*(change(Fraction(end) / step) * step for end in (span.lo, span.hi)))


# --- moments --------------------------------------------------------------------------------------------------


def _microseconds(span: Span, type_: SqlType) -> tuple[int, int]:
    scale = DAY if type_.kind is Kind.DATE else 1
    return int(span.lo) * scale, int(span.hi) * scale


def _of_moment(value: Value, moment: Expr, rule: Callable[[int, int], Value]) -> Value:
    """Return what a rule makes of a moment's ends in microseconds; NULL of NULL, and of what has no calendar."""
    if value is None or value in (Part.PAST, Part.FUTURE):
        return None
    return rule(*_microseconds(value, moment.type)) if isinstance(value, Span) else _UNKNOWN


def _moments(rule: Callable[[str, int, int], Value]) -> Rule:
    """Return the rule of a function of a word and a moment."""
    return lambda call, args: _of_moment(args[1], call.args[1], partial(rule, call.literal(0, str)))


def _span(lo: int | None, hi: int | None) -> Value:
    return _UNKNOWN if lo is None or hi is None else Span(lo, hi)


def _date_trunc(unit: str, lo: int, hi: int) -> Value:
    return _span(truncated(unit, lo), truncated(unit, hi))


_COARSER = {
    "quarter": "year", "month": "year", "week": "isoyear", "doy": "year", "day": "month", "isodow": "week",
    "dow": "day", "hour": "day", "minute": "hour", "year": "", "isoyear": "",
}  # fmt: skip
"""Field of extract -> within what it rises with the moment; "": always. A week begins with its Monday."""


def _to_char(call: Call, args: list[Value]) -> Value:
    def written(lo: int, hi: int) -> Value:
        text = written_alike(written_format(call), lo, hi)
        return _UNKNOWN if text is None else text

    return _of_moment(args[0], call.args[0], written)


def _date_bin(call: Call, args: list[Value]) -> Value:
    return _of_moment(args[1], call.args[1], lambda lo, hi: Span(binned(call, lo), binned(call, hi)))


def _by_zone(call: Call, args: list[Value]) -> Value:
    def moved(lo: int, hi: int) -> Value:
        steps = steps_of(call, lo, hi)
        return _UNKNOWN if steps is None else Span(*steps.span(lo, hi))

    return _of_moment(args[0], call.args[0], moved)


def _zone_cut(call: Call, args: list[Value]) -> Value:
    def cut(lo: int, hi: int) -> Value:
        ends = cut_ends(word_of(call, 0), word_of(call, 2), lo, hi)
        return _UNKNOWN if ends is None else Span(*ends)

    return _of_moment(args[1], call.args[1], cut)


def _extract(field: str, lo: int, hi: int) -> Value:
    if field in EXACT_FIELDS:
        rises = field == "epoch" or truncated("minute", lo) == truncated("minute", hi)
        return Span(seconds(field, lo), seconds(field, hi)) if rises else _UNKNOWN
    within = _COARSER[field]
    change = extracted if within == "isoyear" else truncated
    rises = not within or change(within, lo) == change(within, hi)
    return _span(extracted(field, lo), extracted(field, hi)) if rises else _UNKNOWN


# --- casts and texts ------------------------------------------------------------------------------------------


def _cast(call: Call, args: list[Value]) -> Value:
    (arg,), source, target = args, call.args[0].type, call.type
    if target.kind is Kind.TEXT:
        return _as_text(arg, source)
    if arg is None:
        return None
    if source.is_temporal:
        unit = DAY if target.kind is Kind.DATE else 1
        moment = _of_moment(arg, call.args[0], lambda lo, hi: Span(lo // unit, hi // unit))
        return moment if target.is_temporal or moment is None else _UNKNOWN
    if isinstance(arg, bool):
        return point(int(arg))
    if not isinstance(arg, Span):
        return None if arg is Part.NAN else _UNKNOWN
    scale = 0 if target.is_integer else target.scale
    if target.is_float or scale is None:
        return Span(float(arg.lo), float(arg.hi)) if target.kind is Kind.DOUBLE else _UNKNOWN
    return _on_steps(arg, Fraction(1, 10**scale), round if source.is_float else _half_away)


def _as_text(arg: Value, source: SqlType) -> Value:
    if arg is None or (isinstance(arg, (str, Other)) and source.kind is Kind.TEXT):
        return arg
    if isinstance(arg, bool):
        return "true" if arg else "false"
    if isinstance(arg, Span) and arg.is_point and source.is_integer:
        return str(int(arg.lo))
    if isinstance(arg, Span) and arg.is_point and source.kind is Kind.DATE:
        return date_text(int(arg.lo))
    return _UNKNOWN


def _texts(rule: Callable[..., Value]) -> Rule:
    """Return the rule of a function that is NULL for NULL, of short texts and whole numbers.

    What it makes of a text that is not declared is no text that is: declared values are taken to be all.
    """

    def whole(call: Call, args: list[Value]) -> Value:
        if any(arg is None for arg in args):
            return None
        if isinstance(args[0], Other) and call.type.kind is Kind.TEXT:
            return _ANY_OTHER
        plain: list[str | int] = []
        for arg in args:
            if isinstance(arg, Span) and arg.is_point:
                plain.append(int(arg.lo))
            elif isinstance(arg, str) and len(arg) <= _SHORT:
                plain.append(arg)
        return rule(*plain) if len(plain) == len(args) else _UNKNOWN

    return whole


_ANY_OTHER = Other(frozenset())
_SHORT = 100
"""Characters of a text that no printed form cuts; a column that declares fewer has no cell (`existing`)."""


def _letters(change: Callable[[str], str]) -> Rule:
    return _texts(lambda text: change(text) if text.isascii() else _UNKNOWN)


def _substr(text: str, start: int, count: int | None = None) -> Value:
    return text[max(start - 1, 0) : None if count is None else max(start - 1 + count, 0)]


def _left(text: str, count: int) -> Value:
    return text[:count] if count >= 0 else _UNKNOWN


def _right(text: str, count: int) -> Value:
    return text[max(len(text) - count, 0) :] if count >= 0 else _UNKNOWN


def _concat(call: Call, args: list[Value]) -> Value:
    texts = [_as_text(arg, part.type) for arg, part in zip(args, call.args, strict=True)]
    if call.function == "concat":
        texts = ["" if text is None else text for text in texts]
    joined = [text for text in texts if isinstance(text, str) and len(text) <= _SHORT]
    if None in texts:
        return None
    if any(isinstance(text, Other) for text in texts):
        return _ANY_OTHER
    return "".join(joined) if len(joined) == len(texts) else _UNKNOWN


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_SIGNS, _compare), "and": _and, "or": _or, "not": _not, "in": _in, "is_null": _is_null,
    "is_not_distinct": _is_not_distinct, "is_true": _is_truth, "is_false": _is_truth, "like": _like,
    "case": _case, "coalesce": _coalesce, "nullif": _nullif, "greatest": _extreme, "least": _extreme,
    "add": _sum, "sub": _sum, "mul": _numbers(_mul), "div": _numbers(_div), "mod": _numbers(_mod),
    "neg": _numbers(_neg), "width_bucket": _numbers(_bucket), "abs": _numbers(_abs), "sign": _numbers(_sign),
    **dict.fromkeys(_STEPS, _numbers(_stepped)),
    "date_trunc": _moments(_date_trunc), "extract": _moments(_extract),
    "to_char": _to_char, "date_bin": _date_bin, "cast": _cast,
    "zone_clock": _by_zone, "zone_moment": _by_zone, "zone_cut": _zone_cut,
    "lower": _letters(str.lower), "upper": _letters(str.upper), "substr": _texts(_substr),
    "left": _texts(_left), "right": _texts(_right), "concat": _concat, "concat_op": _concat,
    "length": _texts(lambda text: point(len(text))),
}  # fmt: skip

_OF_SETS = frozenset({"and", "or", "case"})
"""Functions whose rules take one of several values as they stand: they have many arguments."""
