"""The forms that are not plain operators: one small function per kind of node, in one table.

A name means, in this order, an aggregate, what it is short for, a form of this table, or the first of its rows that
takes the arguments.

    >>> means("mod(enrolled, 7)", "enrolled % 7")
    >>> means("age(seen)", "age(CURRENT_DATE::timestamp, seen)")
    >>> means("width_bucket(gpa, 0, 4, 8)", "width_bucket(gpa, 0::double precision, '4', 8)")

Patterns are LIKE and ILIKE, and regular expressions as the LIKE patterns that mean the same. Postgres' own engine of
regular expressions backtracks: a pattern could take long on one row, which would tell that it is there (soundness.md
1.11). What is read here is LIKE in another spelling: plain characters, `.`, `.*`, `^` and `$` at the ends, and one
choice in parentheses or of the whole; others are for released rows.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from ..errors import Position, Refusal
from ..regex import regex
from ..relation.calendar import DAY, format_parts
from ..relation.expressions import FALSE, TRUE, Call, Expr, Literal, Months, walk
from ..relation.functions import FUNCTIONS, NAMES, WRITTEN
from ..relation.functions.numbers import MAX_BUCKETS
from ..relation.types import BOOLEAN, DATE, DOUBLE, INTEGER, INTERVAL, NULL, TEXT, TIMESTAMP, Kind
from .bind_aggregate import (
    bind_aggregate,
    bind_alone,
    bind_filter,
    bind_grouping,
    bind_window,
    bind_within_group,
)
from .bind_array import (
    JSON_CALLS,
    ROW_CALLS,
    bind_array,
    bind_cardinality,
    bind_cast,
    bind_element,
    bind_has,
    bind_part,
    bind_path,
    bind_place,
    joined_arrays,
    parse_json,
    refuse_unnest,
)
from .bind_expression import Binder, Condition, Form, bind_row, call, cast, negated, no_such_function
from .bind_moments import at_time_zone, bind_cut, bind_extract, bind_operator, bind_overlaps, constant_moment
from .bind_subquery import (
    bind_comparison,
    bind_exists,
    bind_in_query,
    bind_scalar,
    is_in,
    joined,
    list_items,
    quantified,
    row_parts,
    rows_compared,
)
from .literals import called, coerce_literal, constant_number, folded, listed, sample
from .statement import AGGREGATES, NAMED, ORDERED

_TOKEN = regex(r"\\[^A-Za-z0-9]|\.\*|\(\?:|[^\\*+?\[\]{}]", re.DOTALL)
_ESCAPED = str.maketrans({"%": "\\%", "_": "\\_", "\\": "\\\\"})
_MOST_CHOICES, _MOST_WILDCARDS, _LONGEST = 32, 8, 200


def bind_like(binder: Binder, node: exp.Expr, escape: str = "\\") -> Expr:
    """Return x LIKE or ILIKE a pattern, or ANY or ALL of a list of them that is written out.

    Raises:
        Refusal: PV202 for another list, and for patterns with too much of what makes them slow.
    """
    listed, position = quantified(binder, node.args["expression"]), binder.position(node)
    folds_case = _FOLDS_CASE[type(node)]
    value = binder.repeated(node.args["this"], 1 if listed is None else listed.often)
    if listed is None:
        pattern = binder.bind(node.args["expression"])
        return negated(node, _alike(value, pattern, position, escape, folds_case=folds_case))
    if listed.array is not None:
        raise Refusal(
            "LIKE ANY and LIKE ALL take a list that is written out", sqlstate="PV202", position=position,
            hint="write x LIKE ANY (ARRAY['a%', 'b%']), or EXISTS (SELECT 1 FROM unnest(q) AS p WHERE x LIKE p)",
        )  # fmt: skip
    if not listed.items:
        return FALSE if listed.is_any else TRUE
    each = [
        negated(node, _alike(value, item, position, escape, folds_case=folds_case)) for item in listed.items
    ]
    return joined(each, position, is_any=listed.is_any)


_FOLDS_CASE: dict[type[exp.Expr], bool] = {
    exp.Like: False,
    exp.ILike: True,
    exp.RegexpLike: False,
    exp.RegexpILike: True,
}
"""Kind of node -> whether capital and small letters are alike to it."""


def _alike(value: Expr, given: Expr, position: Position | None, escape: str, *, folds_case: bool) -> Expr:
    """Return x LIKE a pattern; `folds_case`: x ILIKE 'A%' as lower(x) LIKE 'a%', of letters with but one small form."""
    pattern = sample(given, TEXT, "")
    if folds_case:
        pattern, escape = _lower(pattern, position), escape.lower()
        value = call("lower", [value], position, said="ILIKE")
    written = pattern.constant_as(str)
    if written is None:
        return call("like_computed", [value, pattern, Literal(TEXT, escape)], position, said="LIKE")
    if written.count("%") + written.count("_") > _MOST_WILDCARDS or len(written) > _LONGEST:
        raise Refusal(
            "this LIKE pattern has too many wildcards", sqlstate="PV202", position=position, hint="8 at most"
        )
    bare = written.replace(escape * 2, "") if escape else written
    if escape and bare.endswith(escape):
        raise Refusal("the LIKE pattern ends in its escape character", sqlstate="22023", position=position)
    return call("like", [value, pattern, Literal(TEXT, escape)], position, said="LIKE")


def _lower(pattern: Expr, position: Position | None) -> Expr:
    written = pattern.constant_as(str)
    if written is None:
        return pattern if pattern.is_constant else call("lower", [pattern], position, said="ILIKE")
    if not written.isascii():
        raise Refusal(
            "ILIKE takes a pattern of ASCII letters", sqlstate="PV202", position=position,
            hint="write x LIKE '…' for each spelling, joined by OR",
        )  # fmt: skip
    return Literal(TEXT, written.lower(), position=pattern.position)


def bind_escape(binder: Binder, node: exp.Expr) -> Expr:
    """Return x LIKE, ILIKE or SIMILAR TO a pattern ESCAPE a character. Raises Refusal (42601): it is none."""
    like, character = node.args["this"], node.args["expression"]
    if isinstance(like, exp.SimilarTo):
        args = [binder.bind(part) for part in (like.args["this"], like.args["expression"], character)]
        return bind_row(binder, node, "SIMILAR TO", [FUNCTIONS["similar_to"]], args)
    text = character.name if type(character) is exp.Literal else "  "
    if type(like) not in (exp.Like, exp.ILike) or len(text) > 1 or not text.isascii() or text == "'":
        raise binder.refusal(node, "42601", "ESCAPE takes one character after LIKE")
    return bind_like(binder, like, text)


def bind_regex(binder: Binder, node: exp.Expr) -> Expr:
    """Return x ~ pattern or x ~* pattern: of LIKE patterns where it is a choice of them, which are of ASCII letters."""
    position, folds_case = binder.position(node), _FOLDS_CASE[type(node)]
    value, pattern = binder.bind(node.args["this"]), binder.bind(node.args["expression"])
    written = sample(pattern, TEXT, "").constant_as(str)
    is_read = written is not None and (written.isascii() or not folds_case)
    found = like_patterns(str(written)) if is_read else ""
    if not isinstance(found, str):
        literals = (Literal(TEXT, one, position=position) for one in found)
        each = [_alike(value, one, position, "\\", folds_case=folds_case) for one in literals]
        return joined(each, position, is_any=True)
    if not folds_case and pattern.type.kind is Kind.TEXT and not pattern.is_constant:
        return call("regexp_computed", [value, pattern], position, said="~")
    said, name = ("~*", "regexp_matches_no_case") if folds_case else ("~", "regexp_matches")
    return bind_row(binder, node, said, [FUNCTIONS[name]], [value, pattern])


def like_patterns(text: str) -> list[str] | str:
    """Return the LIKE patterns of which a text has to match one, or what of a regular expression is not read."""
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return text[at : at + 2] if text[at] == "\\" else text[at]
        tokens.append(match[0])
        at = match.end()
    choices = _choices(tokens)
    if isinstance(choices, str):
        return choices
    if len(choices) > _MOST_CHOICES:
        return "|"
    found = []
    for choice in choices:
        begins, ends = choice[:1] == ["^"], choice[-1:] == ["$"]
        inner = choice[begins : len(choice) - ends]
        wrong = next((token for token in inner if token in ("^", "$")), None)
        if wrong is not None:
            return wrong
        found.append(f"{'' if begins else '%'}{''.join(map(_of_like, inner))}{'' if ends else '%'}")
    return list(dict.fromkeys(found))


def _of_like(token: str) -> str:
    if token in (".", ".*"):
        return "%" if token == ".*" else "_"
    return token.removeprefix("\\").translate(_ESCAPED) if len(token) > 1 else token.translate(_ESCAPED)


def _choices(tokens: list[str]) -> list[list[str]] | str:
    """Return the sequences of tokens that a pattern chooses from, or what of it is more than one choice."""
    opening = [i for i, token in enumerate(tokens) if token in ("(", "(?:")]
    closing = [i for i, token in enumerate(tokens) if token == ")"]
    if not opening and not closing:
        return _split(tokens)
    if len(opening) != 1 or len(closing) != 1 or closing[0] < opening[0]:
        return "("
    before, inside, after = (
        tokens[: opening[0]],
        tokens[opening[0] + 1 : closing[0]],
        tokens[closing[0] + 1 :],
    )
    if "|" in before or "|" in after:
        return "|"
    return [[*before, *choice, *after] for choice in _split(inside)]


def _split(tokens: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for token in tokens:
        if token == "|":
            found.append([])
        else:
            found[-1].append(token)
    return found


# --- functions that are called by their name ----------------------------------------------------------------


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
    if name in NAMED:
        return bind_aggregate(binder, node)
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
    written = form.constant_as(str)
    if written is None or not value.type.is_temporal or isinstance(format_parts(written), str):
        return None
    return [value, form]


def _binned(width: Expr, value: Expr, origin: Expr) -> list[Expr] | None:
    """Return the arguments of date_bin of a constant width, of no months, and a constant origin."""
    width, value, origin = (
        coerce_literal(*arg) for arg in ((width, INTERVAL), (value, TIMESTAMP), (origin, TIMESTAMP))
    )
    step, origin = width.constant_as(Months), cast(origin, TIMESTAMP, origin.position)
    if step is None or step.months or not value.type.is_temporal or origin.constant_as(int) is None:
        return None
    is_within = 0 < step.days * DAY + step.microseconds <= _WIDEST_BIN
    return [width, value, origin] if is_within else None


def _bucketed(value: Expr, low: Expr, high: Expr, count: Expr) -> list[Expr] | None:
    """Return the arguments of width_bucket with constant ends and a constant count."""
    value = coerce_literal(value, DOUBLE)
    ends = [sample(coerce_literal(end, DOUBLE), DOUBLE, Fraction(at)) for at, end in enumerate((low, high))]
    count = sample(coerce_literal(count, INTEGER), INTEGER, 1)
    first, last, buckets = constant_number(ends[0]), constant_number(ends[1]), count.constant_as(int)
    if first is None or last is None or buckets is None:
        return None
    far, apart = max(abs(first), abs(last)), abs(last - first)
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
    values = [value for arg in args if (value := arg.constant_as(int)) is not None]
    if len(values) != 3:
        return bind_row(binder, node, "make_date", [FUNCTIONS["make_date_of"]], args)
    try:
        date = datetime.date(*values)
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
    return folded(bind_row(binder, node, "make_interval", [FUNCTIONS["make_interval"]], args))


def _age(binder: Binder, node: exp.Expr) -> Expr:
    """Return age(x, y). Raises Refusal (22023): a constant is no moment."""
    args = [coerce_literal(arg, TIMESTAMP) for arg in binder.arguments(node)]
    return bind_row(binder, node, "age", NAMES["age"], args)


def _error_bar(binder: Binder, node: exp.Expr) -> Expr:
    """Return dp_low(x) or dp_high(x), dp_bar(x), half of a bar's width, or dp_text(x), `4000 ± 3`.

    Raises Refusal: x is an end of a bar itself, or several.
    """
    name, args = str(node.args["this"]).lower(), binder.arguments(node)
    if len(args) != 1:
        raise no_such_function(binder, node, name)
    if any(part.calls(*_BARS) for part in walk(args[0])):
        raise Refusal("an error bar has no error bar", position=binder.position(node))
    if name in _BARS:
        return binder.call(name, args, node)
    if name == "dp_bar":
        return binder.meant(_HALF, node, {"a": args[0]})
    value, half = "a::text", f"ceil({_HALF})::bigint::text"
    if not args[0].type.is_integer:
        value, half = _DIGITS.format("a"), _DIGITS.format(_HALF)
    return binder.meant(f"{value} || coalesce(' ± ' || {half}, '')", node, {"a": args[0]})


_BARS = ("dp_low", "dp_high")
_HALF = "((dp_high(a) - dp_low(a)) / 2)"
_SHORTER = "WHEN " + _HALF + " >= {at} THEN round({{0}}::numeric, {digits})::text "
_STEPS = ((10, 0), (1, 1), (0.1, 2), (0.01, 3))
_DIGITS = (
    f"CASE {''.join(_SHORTER.format(at=at, digits=digits) for at, digits in _STEPS)}ELSE {{0}}::text END"
)
"""A number to the two digits that its bar leaves, as text."""


def _begins(binder: Binder, node: exp.Expr) -> Expr:
    """Return starts_with(x, 'ab'), whose constant people's rows take as a place: where it begins is the first."""
    args = binder.arguments(node)
    if len(args) == 2 and args[0].type.kind is Kind.TEXT and _text(args[1]) is not None:
        return binder.meant("position(b IN a) = 1", node, dict(zip("ab", args, strict=True)))
    return bind_row(binder, node, "starts_with", NAMES["starts_with"], args)


def _padded(binder: Binder, node: exp.Expr) -> Expr:
    """Return lpad(x, 5, '0') and rpad: of constants, one character, as people's rows take them."""
    name, args = str(node.args["this"]).lower(), binder.arguments(node)
    written = sample(args[1], INTEGER, 1) if len(args) in (2, 3) else None
    size = written.constant_as(int) if written is not None and written.type.is_integer else None
    filler = _text(args[2]) if len(args) == 3 else " "
    is_read = size is not None and 0 <= size <= _WIDEST and filler is not None and len(filler) == 1
    if not is_read or args[0].type.kind is not Kind.TEXT:
        return bind_row(binder, node, name, NAMES[name], args)
    assert size is not None
    assert filler is not None
    parts = {"a": args[0], "f": Literal(TEXT, filler * size), "n": Literal(INTEGER, size)}
    return binder.meant(
        "right(f || left(a, n), n)" if name == "lpad" else "left(left(a, n) || f, n)", node, parts
    )


def _joined_by(binder: Binder, node: exp.Expr) -> Expr:
    """Return concat_ws(', ', x, y): what is there with the constant before it, without the first one's."""
    args = binder.arguments(node)
    between = _text(args[0]) if len(args) > 1 else None
    is_read = all(arg.type.kind in (Kind.TEXT, Kind.DATE) or arg.type.is_integer for arg in args[1:])
    if between is None or not is_read:
        return bind_row(binder, node, "concat_ws", NAMES["concat_ws"], args)
    parts = {f"x{place}": arg for place, arg in enumerate(args[1:])}
    each = ", ".join(f"s || {name}" for name in parts)
    return binder.meant(f"substring(concat({each}) FROM {len(between) + 1})", node, {"s": args[0], **parts})


def _text(arg: Expr) -> str | None:
    """Return a constant text; None: it is another value, or none."""
    found = sample(arg, TEXT, "x")
    return found.constant_as(str) if found.type.kind is Kind.TEXT else None


_WIDEST = 100
"""Most characters that people's texts are filled up to."""


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
    return node.is_string and node.name.lower() == word


_FORMS: dict[str, Form] = {
    "make_date": _make_date, "make_interval": _make_interval, "cardinality": bind_cardinality,
    "age": _age,
    **dict.fromkeys((*_BARS, "dp_bar", "dp_text"), _error_bar), "encode": _encode,
    "starts_with": _begins, "lpad": _padded, "rpad": _padded, "concat_ws": _joined_by,
}  # fmt: skip
"""Name -> the function that binds a call of it."""


# --- the forms that are not plain operators: one small function per kind of node, in one table --------------


def _logic(binder: Binder, node: exp.Expr, truth: int) -> Expr:
    """AND and OR, flattened, each term once, in stable order."""
    kind = type(node)
    terms: dict[Expr, None] = {}
    stack = [node]
    while stack:
        top = stack.pop()
        inner = top.args["this"] if isinstance(top, exp.Paren) else top
        if isinstance(inner, kind):
            stack += [inner.args["expression"], inner.args["this"]]
        else:
            terms[binder.bind_boolean(top, "each side of AND and OR", truth)] = None
    return joined(list(terms), binder.position(node), is_any=kind is exp.Or)


def _is(binder: Binder, node: exp.Expr) -> Expr:
    what, position = node.args["expression"], binder.position(node)
    if isinstance(what, exp.Null):
        value = binder.bind(node.args["this"])
        return negated(node, Call(BOOLEAN, "is_null", (value,), position=position))
    if isinstance(what, exp.Boolean):
        name, truth = ("is_true", 1) if what.args["this"] else ("is_false", -1)
        return negated(node, call(name, [binder.bind(node.args["this"], truth)], position))
    raise Refusal("IS takes NULL, TRUE or FALSE", sqlstate="42601", position=position)


def _in(binder: Binder, node: exp.Expr, truth: int) -> Expr:
    position = binder.position(node)
    if node.args.get("query") is not None:
        return negated(node, bind_in_query(binder, node, -truth if node.args.get("negate") else truth))
    if not node.args.get("expressions"):
        raise Refusal("IN takes a list in parentheses", sqlstate="42601", position=position)
    rows = row_parts(node.args["this"])
    if rows is not None and len(rows) > 1:
        return negated(node, _in_rows(binder, node, rows))
    (first, *more) = node.args["expressions"]
    if isinstance(first, exp.Values) and not more:
        items = list_items(binder, first)
    else:
        items = [binder.bind(item) for item in node.args["expressions"]]
    if any(isinstance(item, exp.Subquery) for item in node.args["expressions"]):
        raise Refusal("IN takes a list of values", position=position, hint="write x = (SELECT …) OR x = b")
    if not all(item.is_constant for item in items):
        value = binder.repeated(node.args["this"], len(items))
        each = [call("eq", [value, item], position, said="IN") for item in items]
        return negated(node, joined(each, position, is_any=True))
    return negated(node, is_in(binder.bind(node.args["this"]), items, position, "IN"))


def _in_rows(binder: Binder, node: exp.Expr, written: list[exp.Expr]) -> Expr:
    """Return `(a, b) IN ((1, 2), (3, 4))` as equalities joined by OR."""
    position, often = binder.position(node), len(node.args["expressions"])
    values = [binder.repeated(one, often) for one in written]
    each: list[Expr] = []
    for item in node.args["expressions"]:
        parts = row_parts(item)
        if parts is None:
            raise Refusal("IN compares a row of values with rows", sqlstate="42883", position=position)
        each.append(rows_compared("eq", values, [binder.bind(part) for part in parts], position))
    return joined(each, position, is_any=True)


def _case(binder: Binder, node: exp.Expr) -> Expr:
    subject, args = node.args.get("this"), list[Expr]()
    value = None if subject is None else binder.repeated(subject, len(node.args["ifs"]))
    for branch in node.args["ifs"]:
        condition = branch.args["this"]
        if value is None:
            args.append(binder.bind_boolean(condition, "WHEN"))
        else:
            args.append(binder.call("eq", [value, binder.bind(condition)], node))
        args.append(binder.bind(branch.args["true"]))
    default = node.args.get("default")
    args.append(binder.bind(default) if default is not None else Literal(args[1].type, None))
    return call("case", args, binder.position(node), said="CASE")


def _digits(binder: Binder, node: exp.Expr) -> Expr:
    name, args = WRITTEN[type(node)].name, [binder.bind(node.args["this"])]
    if node.args.get("decimals") is not None:
        digits = sample(coerce_literal(binder.bind(node.args["decimals"]), INTEGER), INTEGER, 0)
        number = digits.constant_as(int)
        if number is None or abs(number) > 15:
            raise Refusal(
                f"{name} takes a literal number of digits, -15 to 15", position=binder.position(node)
            )
        args.append(digits)
    return call(name, args, binder.position(node))


def _logarithm(binder: Binder, node: exp.Expr) -> Expr:
    """log(x) of base 10, or log(b, x)"""
    args = [binder.bind(part) for name in ("this", "expression") if (part := node.args.get(name)) is not None]
    return (
        binder.call("log", args, node)
        if len(args) == 1
        else bind_row(binder, node, "log", [FUNCTIONS["log_of"]], args)
    )


def _trim(binder: Binder, node: exp.Expr) -> Expr:
    args = [binder.bind(part) for name in ("this", "expression") if (part := node.args.get(name)) is not None]
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
        str(node.args.get("position") or "").upper(), "btrim"
    )
    if len(args) > 1:
        return bind_row(binder, node, name, [FUNCTIONS[f"{name}_of"]], args)
    return binder.call("trim" if name == "btrim" else name, args, node)


def _substring(binder: Binder, node: exp.Expr) -> Expr:
    """substring(x FROM start FOR length): a start before the first character is counted from there."""
    parts = [node.args.get("start"), node.args.get("length")]
    given = [binder.bind(part) for part in parts if part is not None]
    is_matched = len(given) == 1 and given[0].type.kind is Kind.TEXT and parts[0] is not None
    if is_matched or not all(arg.is_constant for arg in given):
        row = FUNCTIONS["substring_matching" if is_matched else "substring_at"]
        return bind_row(binder, node, "substring", [row], [binder.bind(node.args["this"]), *given])
    start, length = (1 if part is None else _whole_of(binder, part) for part in parts)
    if length < 0:
        raise binder.refusal(node, "22023", "a substring's length is not negative")
    args = [binder.bind(node.args["this"]), Literal(INTEGER, max(start, 1))]
    if parts[1] is not None:
        args.append(Literal(INTEGER, max(length + min(start, 1) - 1, 0)))
    return binder.call("substr", args, node)


def _whole_of(binder: Binder, node: exp.Expr) -> int:
    number = sample(coerce_literal(binder.bind(node), INTEGER), INTEGER, 1).constant_as(int)
    if number is None or not abs(number) < 2**31:
        raise Refusal("substring takes literal numbers", sqlstate="PV202", position=binder.position(node))
    return number


def _join_texts(binder: Binder, node: exp.Expr) -> Expr:
    args = [sample(binder.bind(node.args[side]), TEXT, "1") for side in ("this", "expression")]
    if any(arg.type.kind is Kind.ARRAY for arg in args):
        return joined_arrays(binder, node, args)
    if not any(arg.type.kind is Kind.TEXT for arg in args):
        is_json = any(arg.type.is_json for arg in args)
        raise Refusal(
            f"|| joins texts and arrays, not ({args[0].type}, {args[1].type})", sqlstate="42883",
            position=binder.position(node),
            hint="build it anew: jsonb_build_object('a', j -> 'a')" if is_json else "cast one side: x::text || y",
        )  # fmt: skip
    return call("concat_op", args, binder.position(node), said="||")


def _inner(binder: Binder, node: exp.Expr, truth: int) -> Expr:
    return binder.bind(node.args["this"], truth)


def _not(binder: Binder, node: exp.Expr, truth: int) -> Expr:
    return binder.call("not", [binder.bind(node.args["this"], -truth)], node)


CONDITIONS: dict[type[exp.Expr], Condition] = {
    exp.Paren: _inner,
    exp.Alias: _inner,
    exp.Not: _not,
    exp.And: _logic,
    exp.Or: _logic,
    exp.In: _in,
}
"""Node kind -> the function that binds it, by what is asked of its truth."""

FORMS: dict[type[exp.Expr], Form] = {
    exp.Column: Binder.column, exp.Literal: Binder.literal, exp.RawString: Binder.text, exp.ByteString: Binder.escaped,
    exp.Boolean: lambda binder, node: Literal(BOOLEAN, bool(node.args["this"]), position=binder.position(node)),
    exp.Null: lambda binder, node: Literal(NULL, None, position=binder.position(node)),
    exp.Parameter: Binder.parameter, exp.Interval: Binder.interval,
    exp.Is: _is,
    exp.StrToDate: constant_moment, exp.StrToTime: constant_moment, exp.AtTimeZone: at_time_zone,
    **dict.fromkeys((exp.RegexpLike, exp.RegexpILike), bind_regex),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), bind_comparison),
    **dict.fromkeys((exp.Like, exp.ILike), bind_like), exp.Escape: bind_escape, exp.Case: _case, exp.Round: _digits,
    exp.Trunc: _digits, exp.Trim: _trim,
    exp.Log: _logarithm, exp.Overlaps: bind_overlaps,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), bind_operator), exp.Substring: _substring,
    exp.DPipe: _join_texts, exp.Extract: bind_extract,
    exp.TimestampTrunc: bind_cut, exp.Cast: bind_cast, exp.CurrentDate: Binder.today,
    exp.CurrentTimestamp: Binder.moment, exp.Localtimestamp: Binder.moment, exp.Subquery: bind_scalar,
    exp.Exists: bind_exists, exp.Anonymous: bind_anonymous, exp.Filter: bind_filter,
    exp.Grouping: bind_grouping, exp.Window: bind_window,
    exp.WithinGroup: bind_within_group, exp.Array: bind_array, exp.Explode: refuse_unnest,
    exp.ExplodingGenerateSeries: refuse_unnest,
    exp.JSONBContainsTopKey: bind_has,
    exp.JSONExtract: bind_part, exp.JSONExtractScalar: bind_part, exp.JSONBExtract: bind_path,
    exp.JSONBExtractScalar: bind_path, exp.ParseJSON: parse_json,
    exp.Bracket: bind_element, exp.ArrayPosition: bind_place,
    **dict.fromkeys(AGGREGATES, bind_aggregate), **dict.fromkeys(ORDERED, bind_alone),
}  # fmt: skip
"""Node kind -> the function that binds it."""
