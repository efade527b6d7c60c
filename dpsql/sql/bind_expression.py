"""Scalar expressions: admitted tree nodes to typed expressions.

Aggregates and window calls are taken out as they are met: each becomes a `Pending` marker here and
a column of an Aggregate or Window node in `bind_select`.

House rules:

1. `call` is the only way to a typed call: it reads text literals as their neighbours' type, brings
   comparisons to one form, and folds constants; what does not fit its function is refused there.
2. A node kind without a form, and without a function whose row lists its arguments, is refused (law L4).
3. A form that is short for another is bound as that, over its parts (`Binder.meant`), and errors point at the form.
4. `truth` says what is asked of a node's value: 1 only whether it is true, -1 only whether it is false (an odd
   number of NOTs above), 0 the value itself. AND, OR and parentheses pass it on.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from ..errors import Position, Refusal
from ..records import dataclass
from ..relation.calendar import DAY, EXACT_FIELDS, EXTRACT_FIELDS, TRUNC_UNITS, parse_zoned
from ..relation.expressions import Call, Expr, Literal
from ..relation.functions import FUNCTIONS, NAMES, SYNTAX, WRITTEN, Function, common_type
from ..relation.functions.above import REFUSED
from ..relation.functions.above.moments import EXTRACTED, TRUNCATED, FormatError
from ..relation.functions.above.signature import Signature, constants_of, fitting, signature
from ..relation.functions.moments import has_whole_minutes
from ..relation.relations import AggregateCall, WindowCall
from ..relation.types import BOOLEAN, DATE, DOUBLE, INTEGER, INTERVAL, TEXT, TIMESTAMP, Kind, SqlType
from .bind_estimates import Estimator
from .literals import (
    COMPARISONS,
    as_json,
    cast_literal,
    cast_target,
    coerce_literal,
    compare,
    fold,
    interval_literal,
    listed,
    number_literal,
    parameter_literal,
    same_moments,
    sample,
    text_length,
    type_word,
)
from .scope import Attachment, BindingContext, Scope
from .statement import AGGREGATES, NAMED, OPERATOR_NAMES, expression_of
from .text import MAX_REPEATS, position_of, said_of, too_complex

if TYPE_CHECKING:
    from ..relation.relations import Relation


@dataclass(frozen=True, slots=True)
class Pending(Expr):
    """An aggregate, GROUPING() or window call that was taken out: `kind` and its number among them."""

    kind: str
    index: int


_ONE_TYPE = (
    "compare values of one type: '3' is a text and 3 a number, and CAST(x AS text) makes a text of either"
)


def call(name: str, args: list[Expr], position: Position | None, said: str | None = None) -> Expr:
    """Return a typed call, with text literals read as their neighbours' type and constants folded.

    Raises:
        Refusal: 42883 when the argument types do not fit.
    """
    if name in _NEVER_JSON and any(arg.type.is_json for arg in args):
        raise Refusal(
            f"{said or FUNCTIONS[name].symbol} does not take json", sqlstate="42883", position=position,
            hint="take a value out of it, j ->> 'a', or build it anew: jsonb_build_object('a', j -> 'a')",
        )  # fmt: skip
    args = _arranged(name, _coerce(name, args))
    result = FUNCTIONS[name].result(tuple(args))
    if result is None:
        types = ", ".join(str(arg.type) for arg in args)
        raise Refusal(
            f"{said or FUNCTIONS[name].symbol or name} does not take ({types})",
            sqlstate="42883",
            position=position or next((arg.position for arg in args if arg.position), None),
            hint=_ONE_TYPE if name in COMPARISONS else "cast the arguments",
        )
    if name in COMPARISONS:
        return compare(name, args[0], args[1], position)
    return fold(Call(result, name, tuple(args), position=position))


_NEVER_JSON = frozenset({"add", "sub", "mul", "div", "mod", "array_contains", "array_overlaps"})
_COMPARED = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "in", "is_not_distinct", "coalesce", "greatest", "least", "nullif",
     "add", "sub", "mul", "div", "mod"}
)  # fmt: skip
_CHOOSING = frozenset({"case", "coalesce", "greatest", "least", "nullif"})


def _values_of(name: str, args: list[Expr]) -> list[int]:
    """Return which arguments have to be of one type."""
    if name == "case":
        return [*range(1, len(args) - 1, 2), len(args) - 1]
    return list(range(len(args))) if name in _COMPARED else []


def _coerce(name: str, args: list[Expr]) -> list[Expr]:
    """Read bare text literals and NULLs as the type of the other arguments, as Postgres does."""
    values = _values_of(name, args)
    typed = dict.fromkeys(args[i].type for i in values if not _is_untyped(args[i]))
    target = common_type([*typed]) if typed else None
    if target is None or (name in ("add", "sub") and any(t.kind is Kind.INTERVAL for t in typed)):
        return args
    if name == "add" and target.kind is Kind.TIMESTAMP:
        target = INTERVAL
    read = frozenset(values)
    return [coerce_literal(arg, target) if i in read else arg for i, arg in enumerate(args)]


def _arranged(name: str, args: list[Expr]) -> list[Expr]:
    """Return the moment first in a sum, and dates as timestamps where a choice mixes the two."""
    if name == "add" and args[1].type.is_temporal and not args[0].type.is_temporal:
        return [args[1], args[0]]
    if name not in _CHOOSING:
        return args
    values = _values_of(name, args)
    alike = dict(zip(values, same_moments([args[i] for i in values]), strict=True))
    return [alike.get(i, arg) for i, arg in enumerate(args)]


def _is_untyped(expr: Expr) -> bool:
    return expr.is_constant and expr.type.kind in (Kind.NULL, Kind.TEXT)


def cast(expr: Expr, target: SqlType, position: Position | None) -> Expr:
    """Return `expr` as `target`; literals are converted here and now.

    Raises:
        Refusal: 42804 when there is no such cast, 22023 for a literal that the type cannot hold.
    """
    if expr.type == target:
        return expr
    if target.is_json:
        return as_json(expr, target, position)
    literal = cast_literal(expr, target) if expr.is_constant else None
    if literal is not None:
        return literal
    if expr.calls("time_of_day") and target.kind is Kind.TEXT and has_whole_minutes(expr.args[0]):
        return call("to_char", [expr.args[0], Literal(TEXT, 'HH24:MI":00"')], position)
    if expr.type.kind is Kind.INTERVAL and target.kind is Kind.TEXT:
        return Call(TEXT, "interval_text", (expr,), position=position)
    if target.kind is Kind.TIME and expr.type.kind is Kind.TIMESTAMP:
        return Call(target, "time_of_day", (expr,), position=position)
    if not _castable(expr.type, target):
        hint = "take a text out of it first: (j ->> 'a')::integer" if expr.type.is_json else None
        if (expr.type.kind, target.kind) == (Kind.DATE, Kind.TIME):
            hint = "a date has no time of day; its midnight is x::timestamp::time"
        raise Refusal(
            f"{expr.type} cannot be cast to {target}", sqlstate="42804", position=position, hint=hint
        )
    return Call(target, "cast", (expr,), position=position)


_UNITS = {"extract": ((*EXTRACT_FIELDS, *EXACT_FIELDS), EXTRACTED), "date_trunc": (TRUNC_UNITS, TRUNCATED)}
"""Function -> the units that people's rows take, and the rows of those above a release."""
_OF_TIMES = frozenset({"hour", "minute", "second", "milliseconds", "microseconds"})
"""Fields that a moment and its time of day have alike."""


def _castable(source: SqlType, target: SqlType) -> bool:
    if source.kind is Kind.ARRAY or target.kind is Kind.ARRAY:
        return False
    if source.kind is Kind.NULL or (target.kind is Kind.TEXT and source.kind is not Kind.OPAQUE):
        return True
    if source.is_number and target.is_number:
        return True
    if source.is_temporal and target.is_temporal:
        return True
    if source.kind is Kind.BOOLEAN:
        return target.kind is Kind.INTEGER or target.kind is Kind.BOOLEAN
    return source.kind is Kind.TEXT and (target.is_number or target.is_temporal or target.kind is Kind.TIME)


def negated(node: exp.Expr, expr: Expr) -> Expr:
    """Return the opposite of what a node says where NOT is a part of it."""
    return Call(BOOLEAN, "not", (expr,), position=expr.position) if node.args.get("negate") else expr


Form = Callable[["Binder", exp.Expr], Expr]
Condition = Callable[["Binder", exp.Expr, int], Expr]


@dataclass(frozen=True, slots=True)
class Grammar:
    """How queries, and the expressions that are not plain operators, are bound: node kind -> function.

    `conditions` are told what is asked of their truth (house rule 4).
    """

    query: Callable[[exp.Expr, BindingContext], Relation]
    forms: Mapping[type[exp.Expr], Form]
    conditions: Mapping[type[exp.Expr], Condition]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a form stands for, while that is bound: its parts by name, and where and as what the form is written."""

    parts: Mapping[str, Expr]
    position: Position | None
    said: str


@dataclass
class Binder:
    """Binds the expressions of one SELECT over one scope, collecting its aggregates, windows and joins.

    `makes_rows`: an expression has several values for a row, which `bind_array.unnested` lays out. `repeats`: how often
    what is bound now stands in the outermost expression.
    """

    context: BindingContext
    scope: Scope
    grammar: Grammar
    aggregates: dict[AggregateCall, int] = field(default_factory=dict)
    groupings: list[tuple[Expr, ...]] = field(default_factory=list)
    windows: list[WindowCall] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    named_windows: dict[str, exp.Expr] = field(default_factory=dict)
    place: str = "here"
    allow_aggregates: bool = True
    estimator: Estimator | None = None
    makes_rows: bool = False
    meaning: Meaning | None = None
    repeats: int = 1

    def refusal(self, node: exp.Expr, sqlstate: str, message: str, hint: str | None = None) -> Refusal:
        """Return the refusal of a node, with its place."""
        return Refusal(message, sqlstate=sqlstate, position=self.position(node), hint=hint)

    def position(self, node: exp.Expr) -> Position | None:
        """Return where a node stands in the statement's text: one of a meaning, where the form does."""
        return position_of(self.context.text, node) if self.meaning is None else self.meaning.position

    def meant(self, sql: str, node: exp.Expr, parts: Mapping[str, Expr], said: str = "") -> Expr:
        """Return what a node means: `sql`, in which its bound parts stand by their names, as if that were written.

        `said`: what a refusal calls the outermost operators. Each part is bound once, however often it stands there.
        """
        around, self.meaning = self.meaning, Meaning(parts, self.position(node), said)
        try:
            return self.bind(expression_of(sql))
        finally:
            self.meaning = around

    @contextmanager
    def within(self, place: str) -> Iterator[None]:
        """Have no aggregate in what is bound: a refusal says that it stands at this place."""
        around = self.place, self.allow_aggregates
        self.place, self.allow_aggregates = place, False
        try:
            yield
        finally:
            self.place, self.allow_aggregates = around

    def check_allowed(self, name: str, node: exp.Expr) -> None:
        """Check that an aggregate may stand here. Raises Refusal (42803)."""
        if not self.allow_aggregates:
            raise self.refusal(node, "42803", f"{name}() cannot stand {self.place}")

    def arguments(self, node: exp.Expr) -> list[Expr]:
        """Return the arguments of a function that is called by its name. Raises as `bind`."""
        return [self.bind(part) for part in listed(node)]

    def call(self, name: str, args: list[Expr], node: exp.Expr, said: str | None = None) -> Expr:
        """Return the typed call that a node is. Raises as `call`."""
        return call(name, args, self.position(node), said=self.said(said))

    def said(self, name: str | None) -> str | None:
        """Return what a refusal calls an operator or a function: what the form is called that is short for it."""
        return (self.meaning.said if self.meaning is not None else "") or name

    def bind(self, node: exp.Expr, truth: int = 0) -> Expr:
        """Return the typed expression of an admitted node.

        Raises:
            Refusal: names, types and forms that do not bind.
        """
        if (condition := self.grammar.conditions.get(type(node))) is not None:
            return condition(self, node, truth)
        if (form := self.grammar.forms.get(type(node))) is not None:
            return form(self, node)
        syntax = SYNTAX.get(type(node))
        if syntax is None or not syntax.args:
            said = said_of(node, self.context.text)
            raise Refusal(f"{said} is not supported {self.place}", position=self.position(node))
        if syntax.means:
            sql = syntax.means if isinstance(syntax.means, str) else syntax.means(node)
            often = Counter(column.name for column in expression_of(sql).find_all(exp.Column))
            parts = {name: self.repeated(node.args[name], often[name]) for name in syntax.args}
            return negated(node, self.meant(sql, node, parts, syntax.said))
        row = WRITTEN[type(node)]
        if row.signatures:
            args = [self.bind(part) for name in syntax.args if (part := node.args.get(name)) is not None]
            return bind_row(self, node, row.said.removesuffix("()"), [row], args)
        if any(node.args.get(name) is None for name in syntax.args):
            raise Refusal(
                f"{said_of(node, self.context.text)} does not take these arguments", sqlstate="42883",
                position=self.position(node), hint=f"write {row.form}",
            )  # fmt: skip
        args = [self.bind(part) for name in syntax.args for part in _parts(node.args[name])]
        return self.call(row.name, args, node, said=row.symbol or None)

    def repeated(self, node: exp.Expr, times: int) -> Expr:
        """Return the expression of a node that stands so many times in what is bound: forms inside each other multiply.

        Raises:
            Refusal: 54001 where it would stand there too often, and as `bind`.
        """
        around, self.repeats = self.repeats, self.repeats * max(times, 1)
        try:
            if self.repeats > MAX_REPEATS:
                raise too_complex(
                    "nest fewer of CASE, IN, BETWEEN and age inside each other", self.position(node)
                )
            return self.bind(node)
        finally:
            self.repeats = around

    def bind_boolean(self, node: exp.Expr, where: str, truth: int = 1) -> Expr:
        """Return a predicate, of which the truth alone matters where nothing else is said.

        Raises:
            Refusal: 42804 when it is not boolean.
        """
        expr = coerce_literal(self.bind(node, truth), BOOLEAN)
        if expr.type.kind not in (Kind.BOOLEAN, Kind.NULL):
            raise self.refusal(node, "42804", f"{where} must be true or false, not {expr.type}")
        return expr

    def literal(self, node: exp.Expr) -> Literal:
        """Return a number or a text as it is written."""
        return self.text(node) if node.is_string else number_literal(node.name, self.position(node))

    def text(self, node: exp.Expr) -> Literal:
        """Return a text as it is written."""
        return Literal(TEXT, str(node.args["this"]), position=self.position(node))

    def escaped(self, node: exp.Expr) -> Literal:
        """Return E'…'. Raises Refusal (0A000): it has \\v, which is a letter to Postgres alone, or a zero byte."""
        value = str(node.args["this"])
        if "\v" in value or "\0" in value:
            raise self.refusal(
                node, "0A000", "this E'…' has a character that is not read", "join it: 'a' || chr(11)"
            )
        return Literal(TEXT, value, position=self.position(node))

    def parameter(self, node: exp.Expr) -> Literal:
        """Return the value bound to $n.

        Raises:
            Refusal: 42P02 when there is none.
        """
        number, value = self.parameter_value(node)
        return parameter_literal(value, number, self.position(node))

    def parameter_value(self, node: exp.Expr) -> tuple[int, object]:
        """Return the number of $n and the value that is bound to it. Raises as `parameter`."""
        text = node.name
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0
        if not 1 <= number <= len(self.context.parameters):
            raise Refusal(
                f"there is no parameter ${text}",
                sqlstate="42P02",
                position=self.position(node),
                hint=f"{len(self.context.parameters)} were given; they count from $1",
            )
        return number, self.context.parameters[number - 1]

    def interval(self, node: exp.Expr) -> Expr:
        """Return an INTERVAL literal.

        Raises:
            Refusal: 42601 when it is not a literal, 22023 when it is not an interval.
        """
        if not isinstance(node.args["this"], exp.Literal):
            raise self.refusal(node, "42601", "an interval is written as a literal")
        return interval_literal(node.name, node.text("unit") or None, self.position(node))

    def part_of_moment(self, node: exp.Expr, name: str, unit: exp.Expr, value: exp.Expr) -> Expr:
        """Return extract(unit FROM value) or date_trunc(unit, value): the function of this name.

        Raises:
            Refusal: 22023 for a field that is not answered.
        """
        word, bound, (known, more) = self.unit_word(unit, name), self.bind(value), _UNITS[name]
        if name == "extract" and bound.calls("time_of_day") and word in _OF_TIMES:
            bound = bound.args[0]
        if word in more and (word not in known or bound.type.kind is Kind.INTERVAL):
            return bind_row(self, node, name, [more[word]], [coerce_literal(bound, TIMESTAMP)])
        if word not in known:
            raise Refusal(
                f'{name} has no field "{word}" here',
                sqlstate="22023",
                position=self.position(node),
                hint="one of " + ", ".join(dict.fromkeys((*known, *more))),
            )
        return call(name, [Literal(TEXT, word), bound], self.position(node))

    def unit_word(self, unit: exp.Expr, said: str) -> str:
        """Return the unit or field that is written, bound as a parameter, or cast from a text, in small letters.

        Raises:
            Refusal: 22023 where it is no constant.
        """
        if not isinstance(unit, (exp.Parameter, exp.Cast, exp.Paren)):
            return str(unit.args["this"]).lower()
        word = sample(self.bind(unit), TEXT, "month").constant_as(str)
        if word is None:
            raise self.refusal(unit, "22023", f"{said} takes a constant unit", f"{said}('month', x)")
        return word.lower()

    def cast_node(self, node: exp.Expr) -> Expr:
        """Return CAST(x AS type) or x::type."""
        length = text_length(node.args["to"], self.position(node))
        if length is not None:
            return self._cut(cast(self.bind(node.args["this"]), TEXT, self.position(node)), length)
        target, value = cast_target(node.args["to"], self.position(node)), self.bind(node.args["this"])
        text = value.constant_as(str) if type_word(node.args["to"]) == "TIMESTAMPTZ" else None
        moment = None if text is None else parse_zoned(text)
        if moment is not None:
            return Literal(TIMESTAMP, moment, position=value.position)
        return cast(value, target, self.position(node))

    def _cut(self, value: Expr, length: int) -> Expr:
        """Return x::varchar(n): its first characters."""
        if value.is_constant:
            text = value.constant_as(str)
            return Literal(TEXT, None if text is None else text[:length], position=value.position)
        return call("left", [value, Literal(INTEGER, length)], value.position)

    def today(self, node: exp.Expr) -> Expr:
        """Return CURRENT_DATE as a literal."""
        return Literal(DATE, self.context.moment() // DAY, position=self.position(node))

    def moment(self, node: exp.Expr) -> Expr:
        """Return the statement's moment, cut to the minute, as a literal."""
        minute = DAY // 1440
        return Literal(TIMESTAMP, self.context.moment() // minute * minute, position=self.position(node))

    def column(self, node: exp.Expr) -> Expr:
        """Return the column of a name, or the part of a meaning that it is. Raises Refusal: there is none of it."""
        if self.meaning is not None:
            return self.meaning.parts[node.name]
        return self.scope.resolve(node, self.position(node))

    def add_aggregate(self, aggregate: AggregateCall) -> Expr:
        """Take an aggregate out and return its marker."""
        index = self.aggregates.setdefault(aggregate, len(self.aggregates))
        is_estimate = self.estimator is not None and self.estimator.is_estimate(aggregate)
        type_ = DOUBLE if is_estimate else aggregate.type
        return Pending(type_, "aggregate", index, position=aggregate.position)

    def add_grouping(self, keys: tuple[Expr, ...], position: Position | None) -> Expr:
        """Take GROUPING(keys) out and return its marker."""
        if keys not in self.groupings:
            self.groupings.append(keys)
        return Pending(INTEGER, "grouping", self.groupings.index(keys), position=position)

    def add_window(self, window: WindowCall) -> Expr:
        """Take a window call out and return its marker."""
        if window not in self.windows:
            self.windows.append(window)
        return Pending(window.type, "window", self.windows.index(window), position=window.position)

    def inside(self) -> BindingContext:
        """Return the context of a subquery, which sees this SELECT's columns around it."""
        return replace(self.context, outer=self.scope)

    def attach(self, attachment: Attachment) -> int:
        """Ask for a join and return its number."""
        if attachment not in self.attachments:
            self.attachments.append(attachment)
        return self.attachments.index(attachment)


def _parts(value: exp.Expr | list[exp.Expr]) -> list[exp.Expr]:
    return value if isinstance(value, list) else [value]


# --- functions that are called by their name alone, as Postgres resolves a call -------------------------------
# The parser does not see their names, of some of which it has a node of its own (`statement`).


def bind_row(binder: Binder, node: exp.Expr, name: str, rows: Sequence[Function], args: list[Expr]) -> Expr:
    """Return the call of the first row that takes arguments, as they are or with bare constants read as it takes them.

    Raises:
        Refusal: 42883 where none does, PV202 where it takes a constant only.
    """
    position = binder.position(node)
    every = [(row, one) for row in rows for one in map(signature, row.signatures) if one.counts(len(args))]
    for read in (lambda one, args: args, _as_taken):
        for row, one in every:
            given = read(one, args)
            if given is not None and one.takes(tuple(given)):
                taken = tuple(_read(one, place, args) for place in range(len(args)))
                _check_constant(row, taken, binder, node)
                return Call(one.result(taken), row.name, taken, position=position)
    _refuse_variable(rows, args, name, binder, node)
    types = ", ".join(str(arg.type) for arg in args)
    forms = " or ".join(dict.fromkeys(row.form for row in rows))
    raise binder.refusal(
        node, "42883", f"{name}({types}) does not exist", f"write {forms}; cast the arguments"
    )


def _check_constant(row: Function, args: tuple[Expr, ...], binder: Binder, node: exp.Expr) -> None:
    """Check that a constant format is read. Raises Refusal (22023), with what of it is not."""
    found, written = fitting(row, args)
    if isinstance(written, str):
        return
    try:
        written(*constants_of(found, args))
    except FormatError as error:
        raise binder.refusal(
            node, "22023", f"{row.said} does not read this: {error}", "`dpsql docs sql` has what is read"
        ) from None


def _as_taken(one: Signature, args: list[Expr]) -> list[Expr] | None:
    """Return arguments, bare constants as what the function takes there; None where one is none of those."""
    try:
        return [_read(one, place, args) for place in range(len(args))]
    except Refusal:
        return None


def _read(one: Signature, place: int, args: list[Expr]) -> Expr:
    arg, target = args[place], one.target(place, tuple(args))
    if target is None or not (arg.is_constant and arg.type.kind in (Kind.TEXT, Kind.NULL)):
        return arg
    return sample(arg, TEXT, "") if one.is_constant(place) else coerce_literal(arg, target)


def _refuse_variable(
    rows: Sequence[Function], args: list[Expr], name: str, binder: Binder, node: exp.Expr
) -> None:
    for one in (one for row in rows for one in map(signature, row.signatures) if one.counts(len(args))):
        for place, arg in enumerate(args):
            if one.is_constant(place) and not arg.is_constant and arg.type.kind is Kind.TEXT:
                raise Refusal(
                    f"{name}() takes a constant {one.word(place)}", sqlstate="PV202", position=binder.position(node),
                    hint=f"write the {one.word(place)} out, or pass it as a parameter; several by CASE",
                )  # fmt: skip


_WRITTEN = (re.match(r"\w+(?=\()", row.form) for row in FUNCTIONS.values())
_PARSED = (name.lower() for syntax in (*SYNTAX, *AGGREGATES) for name in getattr(syntax, "sql_names", list)())
_KNOWN = sorted(
    (
        {*NAMES, *NAMED, *_PARSED, *(form[0] for form in _WRITTEN if form is not None)}
        | {row.name for row in AGGREGATES.values()}
    )
    - OPERATOR_NAMES
)
"""Names that may be meant by one that is not known: of functions and of aggregates."""
_ANYBODYS = frozenset({*_KNOWN, *REFUSED, *map(str.lower, Postgres.Parser.FUNCTIONS)})


def is_anybodys(name: str) -> bool:
    """Say whether a name is one of a function that Postgres, the parser or dpsql has: such a name tells nothing."""
    return name.lower() in _ANYBODYS


def no_such_function(binder: Binder, node: exp.Expr, name: str) -> Refusal:
    """Return the refusal of a function that is none of ours, with the nearest name."""
    if (left := REFUSED.get(name)) is not None:
        return binder.refusal(node, "0A000", f"{name}() is not answered: {left.why}", f"write {left.instead}")
    close = difflib.get_close_matches(name, _KNOWN, 1, 0.8)
    meant = f"did you mean {close[0]}()? " if close else ""
    return Refusal(
        f'function "{name}" does not exist here', sqlstate="42883", position=binder.position(node),
        hint=f"{meant}`dpsql docs sql functions` lists the functions that are answered",
    )  # fmt: skip
