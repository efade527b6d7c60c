"""Functions that are called by their name: which the parser has no node for, or does not see (`statement`).

A name means, in this order, an aggregate, what it is short for, a form of this table, or the first of its rows that
takes the arguments.

    >>> means("mod(enrolled, 7)", "enrolled % 7")
    >>> means("age(seen)", "age(CURRENT_DATE::timestamp, seen)")
    >>> means("width_bucket(gpa, 0, 4, 8)", "width_bucket(gpa, 0::double precision, '4', 8)")
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from ..errors import Refusal
from ..relation.calendar import DAY, format_parts
from ..relation.expressions import Call, Expr, Literal, Months, walk
from ..relation.functions import FUNCTIONS, NAMES
from ..relation.functions.bins import MAX_BUCKETS
from ..relation.types import DATE, DOUBLE, INTEGER, INTERVAL, TEXT, TIMESTAMP
from .aggregates import NAMED, PUBLIC_NAMED
from .bind_aggregate import bind_public_aggregate, read_aggregate
from .bind_array import bind_cardinality, refuse_unnest
from .bind_expression import Binder, Form, cast
from .bind_json import JSON_CALLS
from .bind_series import ROW_CALLS
from .constant_intervals import folded
from .constants import coerce_literal
from .literals import sample
from .named_calls import bind_row, no_such_function
from .tree import called, listed

__all__ = ["bind_anonymous"]

_WIDEST_BIN = 36_525 * DAY
_FARTHEST_END = Fraction(10) ** 100
_UNITS = ("years", "months", "weeks", "days", "hours", "mins", "secs")

_MEANINGS: dict[tuple[str, int], str] = {
    ("now", 0): "CURRENT_TIMESTAMP",
    ("transaction_timestamp", 0): "CURRENT_TIMESTAMP",
    ("statement_timestamp", 0): "CURRENT_TIMESTAMP",
    ("age", 1): "age(CURRENT_DATE::timestamp, a)",
    ("mod", 2): "a % b",
    ("date", 1): "a::date",
}
"""Name and number of arguments -> what it is short for, as SQL over them."""


def bind_anonymous(binder: Binder, node: exp.Expr) -> Expr:
    """Return what a call by name is. Raises Refusal (42883): it is of a function that does not exist here."""
    name, written = str(node.args["this"]).lower(), listed(node)
    if name in PUBLIC_NAMED:
        return bind_public_aggregate(binder, node)
    if name in NAMED:
        return binder.add_aggregate(read_aggregate(binder, node, NAMED[name]))
    if (sql := _MEANINGS.get((name, len(written)))) is not None:
        return binder.meant(sql, node, dict(zip("ab", binder.arguments(node), strict=False)))
    if name in _FORMS:
        return _FORMS[name](binder, node)
    if (form := JSON_CALLS.get(name)) is not None:
        return form[0](binder, node, name, form[1])
    if name in ROW_CALLS:
        return refuse_unnest(binder, node)
    if name in NAMES:
        args = binder.arguments(node)
        count, read = _ON_ROWS.get(name, (-1, None))
        taken = read(*args) if read is not None and len(args) == count else None
        if taken is not None:
            return binder.call(name, taken, node)
        return bind_row(binder, node, binder.said(name) or name, NAMES[name], args)
    if name in FUNCTIONS and binder.meaning is not None:
        return binder.call(name, binder.arguments(node), node)
    raise no_such_function(binder, node, name)


# --- of constants on people's rows too, else above a release -------------------------------------------------


def _formatted(value: Expr, form: Expr) -> list[Expr] | None:
    """Return the arguments of to_char of a moment, by what `format_parts` reads; None: they are others."""
    value, form = coerce_literal(value, TIMESTAMP), sample(form, TEXT, "YYYY")
    written = form.constant
    is_read = (
        isinstance(written, str) and value.type.is_temporal and not isinstance(format_parts(written), str)
    )
    return [value, form] if is_read else None


def _binned(width: Expr, value: Expr, origin: Expr) -> list[Expr] | None:
    """Return the arguments of date_bin of a constant width, of no months, and a constant origin."""
    width, value, origin = (
        coerce_literal(*arg) for arg in ((width, INTERVAL), (value, TIMESTAMP), (origin, TIMESTAMP))
    )
    step, origin = (
        width.constant,
        cast(origin, TIMESTAMP, origin.position),
    )
    if not isinstance(step, Months) or step.months or not value.type.is_temporal:
        return None
    is_known = isinstance(origin.constant, int)
    return (
        [width, value, origin]
        if is_known and 0 < step.days * DAY + step.microseconds <= _WIDEST_BIN
        else None
    )


def _bucketed(value: Expr, low: Expr, high: Expr, count: Expr) -> list[Expr] | None:
    """Return the arguments of width_bucket with constant ends and a constant count."""
    value = coerce_literal(value, DOUBLE)
    ends = [sample(coerce_literal(end, DOUBLE), DOUBLE, Fraction(at)) for at, end in enumerate((low, high))]
    count = sample(coerce_literal(count, INTEGER), INTEGER, 1)
    first, last, buckets = (one.constant for one in (*ends, count))
    if not (
        isinstance(first, (int, Fraction)) and isinstance(last, (int, Fraction)) and isinstance(buckets, int)
    ):
        return None
    far, apart = max(abs(Fraction(first)), abs(Fraction(last))), abs(Fraction(last) - Fraction(first))
    if far > _FARTHEST_END or apart < 1 / _FARTHEST_END or not 1 <= buckets <= MAX_BUCKETS:
        return None
    if any(arg.type.is_float for arg in (value, *ends)):
        ends = [cast(end, DOUBLE, end.position) for end in ends]
    return [value, *ends, count]


_ON_ROWS: dict[str, tuple[int, Callable[..., list[Expr] | None]]] = {
    "to_char": (2, _formatted), "date_bin": (3, _binned), "width_bucket": (4, _bucketed),
}  # fmt: skip
"""Name -> how many arguments, and what people's rows take of them: where they take none, released rows may."""


# --- forms of their own --------------------------------------------------------------------------------------


def _make_date(binder: Binder, node: exp.Expr) -> Expr:
    """Return make_date(year, month, day) of constants, or above a release of columns.

    Raises:
        Refusal: 42883 for another number of arguments, 22023 for no date.
    """
    position, args = binder.position(node), binder.arguments(node)
    if len(args) != 3:
        raise Refusal("make_date takes year, month and day", sqlstate="42883", position=position)
    args = [sample(coerce_literal(arg, INTEGER), INTEGER, 1) for arg in args]
    values = [arg.constant for arg in args if arg.is_constant]
    if len(values) != 3 or not all(isinstance(value, int) for value in values):
        return bind_row(binder, node, "make_date", [FUNCTIONS["make_date_of"]], args)
    try:
        date = datetime.date(*values)  # type: ignore[arg-type]  # all are int, as was just looked at
    except (ValueError, OverflowError):
        raise Refusal("there is no such date", sqlstate="22023", position=position) from None
    return Literal(DATE, (date - datetime.date(1970, 1, 1)).days, position=position)


def _make_interval(binder: Binder, node: exp.Expr) -> Expr:
    """Return make_interval(years, …) with its parts in order or by name. Raises Refusal (42883)."""
    given: dict[str, Expr] = {}
    for unit, part in itertools.zip_longest(_UNITS, listed(node)):
        if part is None:
            break
        is_named = isinstance(part, exp.Kwarg)
        word = str(part.args["this"].name).lower() if is_named else unit
        if word not in _UNITS or word in given:
            raise Refusal(
                "make_interval takes " + ", ".join(_UNITS), sqlstate="42883", position=binder.position(node),
                hint="make_interval(days => 10, hours => 2)",
            )  # fmt: skip
        given[word] = binder.bind(part.args["expression"] if is_named else part)
    args = [given.get(word, Literal(INTEGER, 0)) for word in _UNITS]
    bound = bind_row(binder, node, "make_interval", [FUNCTIONS["make_interval"]], args)
    return folded(bound) if isinstance(bound, Call) else bound


def _age(binder: Binder, node: exp.Expr) -> Expr:
    """Return age(x, y). Raises Refusal (22023): a constant is no moment."""
    args = [coerce_literal(arg, TIMESTAMP) for arg in binder.arguments(node)]
    return bind_row(binder, node, "age", NAMES["age"], args)


def _error_bar(binder: Binder, node: exp.Expr) -> Expr:
    """Return dp_low(x) or dp_high(x). Raises Refusal: x is an end of a bar itself, or several."""
    name, args = str(node.args["this"]).lower(), binder.arguments(node)
    if len(args) != 1:
        raise no_such_function(binder, node, name)
    if any(isinstance(part, Call) and part.function in _BARS for part in walk(args[0])):
        raise Refusal("an error bar has no error bar", position=binder.position(node))
    return binder.call(name, args, node)


_BARS = ("dp_low", "dp_high")
_HALF = "((dp_high(a) - dp_low(a)) / 2)"
_SHORTER = "WHEN " + _HALF + " >= {at} THEN round({{0}}::numeric, {digits})::text "
_STEPS = ((10, 0), (1, 1), (0.1, 2), (0.01, 3))
_DIGITS = (
    f"CASE {''.join(_SHORTER.format(at=at, digits=digits) for at, digits in _STEPS)}ELSE {{0}}::text END"
)
"""A number to the two digits that its bar leaves, as text."""


def _half_bar(binder: Binder, node: exp.Expr) -> Expr:
    """Return dp_bar(x), half of a bar's width, or dp_text(x), `4000 ± 3`. Raises Refusal, as `_error_bar`."""
    name, args = str(node.args["this"]).lower(), binder.arguments(node)
    if len(args) != 1:
        raise no_such_function(binder, node, name)
    if any(isinstance(part, Call) and part.function in _BARS for part in walk(args[0])):
        raise Refusal("an error bar has no error bar", position=binder.position(node))
    if name == "dp_bar":
        return binder.meant(_HALF, node, {"a": args[0]})
    value, half = ("a::text", f"ceil({_HALF})::bigint::text")
    if not args[0].type.is_integer:
        value, half = _DIGITS.format("a"), _DIGITS.format(_HALF)
    return binder.meant(f"{value} || coalesce(' ± ' || {half}, '')", node, {"a": args[0]})


def _encode(binder: Binder, node: exp.Expr) -> Expr:
    """Return `encode(sha256(convert_to(x, 'UTF8')), 'hex')`, the one use of bytes that is read."""
    taken = listed(node)
    hashed = _arguments(taken[0], "sha256") if len(taken) == 2 and _says(taken[1], "hex") else []
    found = _arguments(hashed[0], "convert_to") if len(hashed) == 1 else []
    if len(found) != 2 or not (_says(found[1], "utf8") or _says(found[1], "utf-8")):
        raise no_such_function(binder, node, "encode")
    return bind_row(binder, node, "encode", [FUNCTIONS["sha256_hex"]], [binder.bind(found[0])])


def _arguments(node: exp.Expr, name: str) -> list[exp.Expr]:
    return listed(node) if called(node) == name else []


def _says(node: exp.Expr, word: str) -> bool:
    is_text = isinstance(node, exp.Literal) and bool(node.args.get("is_string"))
    return is_text and str(node.args["this"]).lower() == word


_FORMS: dict[str, Form] = {
    "make_date": _make_date, "make_interval": _make_interval, "cardinality": bind_cardinality,
    "age": _age,
    **dict.fromkeys(_BARS, _error_bar), **dict.fromkeys(("dp_bar", "dp_text"), _half_bar), "encode": _encode,
}  # fmt: skip
"""Name -> the function that binds a call of it."""
