"""What is asked of people's rows and said by other relations: windows, simple aggregates, joins (soundness.md 1.13).

    median(x)  ->  (MIN(x) FILTER (WHERE 2 * c > n - 1) + MIN(x) FILTER (WHERE 2 * (c - 1) >= n - 1)) / 2

where c is COUNT(x) OVER (PARTITION BY keys ORDER BY x), how many of the person's values are no larger than a row's, and
n is COUNT(x) OVER (PARTITION BY keys). No engine's own percentile is asked: each takes the fraction as a double, in a
way of its own.

House rules:

1. A row of `_PROGRAMS` is said in terms of windows and aggregates that `derived` has facts of: its range, its grid,
   when it is NULL and its print are theirs, on every engine, and the verifier meets nothing new.
2. A window here gives rows that tie one value (`derived.ignores_ties`), or only a value in which such rows are alike is
   read of the row that it chooses.
3. The keys have one owner, and stand in every PARTITION BY.

House rules of frames, of which it says which are taken and in which direction:

1. A frame by ROWS goes along a total order, so rows that tie in the written one are ordered by more (`derived`). One by
   RANGE has whole ties: it is the same for rows that tie, and an aggregate of it is one of its bag. One by GROUPS is
   one by RANGE over the numbers of the ties (`by_ranks`): DuckDB walks over a frame's groups anew for each row.
2. What is taken of a frame is linear in a person's rows but for a logarithm: a count and a sum lose the row that
   leaves. A least value does not: its frame begins with the person's first row, or ends with the last, and is then read
   from that end; or it has few rows, `MAX_FEW`, which are read for each.
3. RANGE with an offset compares whole numbers: an order's values on their lattice, a moment's days or microseconds. No
   sum of a value and an offset leaves BIGINT (`print_source`).

LATERAL is a join with what each person's rows are numbered by:

    p CROSS JOIN LATERAL (SELECT v.fee FROM visit v WHERE v.person_id = p.id ORDER BY v.no DESC LIMIT 2) l
    ->  p JOIN (SELECT fee, person_id, row_number() OVER (PARTITION BY person_id ORDER BY no DESC) AS i FROM visit) l
        ON l.person_id = p.id AND l.i <= 2

    p CROSS JOIN LATERAL (SELECT max(v.fee) AS most, count(*) AS n FROM visit v WHERE v.person_id = p.id) l
    ->  p LEFT JOIN (SELECT person_id, max(fee), count(*) FROM visit GROUP BY person_id) l ON l.person_id = p.id,
        with coalesce(l.count, 0)

House rules of LATERAL:

1. The right side reads the left row in equalities alone, each of them of a column of its own. Which rows those of a
   left row are is then a matter of these columns, and so are their numbers and their groups.
2. An aggregate without GROUP BY is a row of no rows too: a count is 0 there, all else NULL, as a LEFT JOIN has it.

House rules of the parts of people's texts, which are asked of the texts: no array is made of a row (soundness.md 1.11):

1. A text is taken apart by a constant separator, or by a pattern that is a row of characters and cannot match nothing.
   So there is one part more than there are matches, and each match is as many characters shorter as it is replaced by
   fewer: they are counted by two replacements.
2. A part is in the list if, between two separators, it is in the text between two separators. That is so where the
   separator is one character, which the part has not.
3. A text's parts in rows are its first parts, each by its place: rows of UNION ALL, one for each place up to a bound.
4. What is asked otherwise of an array stays refused; None says so.

NTILE over people is in which of k parts of equal shares a value lies, by released percentiles (soundness.md 1.14):

    ntile(4) OVER (ORDER BY x)  ->  CASE WHEN x <= q1 THEN 1 WHEN x <= q2 THEN 2 WHEN x <= q3 THEN 3 ELSE 4 END

where q1, q2, q3 are `percentile_disc` of x at 1/4, 1/2 and 3/4 over the same rows, drawn first as one release with a
share of the epsilon. What is computed beside them is a function of one row and of what was released.

House rules of NTILE:

1. Values that are equal are in one part, so parts are of equal size as far as values differ and percentiles are near.
2. NULL is in the part where Postgres sorts it: the last of an ascending order, the first of a descending one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from ...errors import Refusal
from ...records import dataclass
from ...regex import regex
from ...relation.aggregates import AGGREGATES, Asks, check_printers
from ...relation.expressions import (
    TRUE,
    Call,
    Expr,
    Field,
    Literal,
    conjunction,
    conjuncts,
    fields_of,
    map_children,
    moved,
    substitute,
)
from ...relation.facts import MAX_TEXT, Facts
from ...relation.functions import FUNCTIONS
from ...relation.relations import (
    AggregateCall,
    Block,
    Group,
    Join,
    Lateral,
    Order,
    Relation,
    Scan,
    Unnest,
    Values,
    WindowCall,
    all_parts,
    ends_in,
    filtered,
    grouped,
    projected,
    windowed,
)
from ...relation.types import BIGINT, BOOLEAN, INTEGER, NUMERIC, TEXT
from ...sql.scope import Opened, Outer, open_query, outer_in, project_onto

MAX_FEW = 100
"""Most rows of a frame that are looked at for each row."""

_DAY = 86_400_000_000
_END = r"(UNBOUNDED|CURRENT|INTERVAL '[^']*'|[0-9.e+-]+) (PRECEDING|FOLLOWING|ROW)"
_FRAME = regex(rf"(ROWS|RANGE|GROUPS) BETWEEN {_END} AND {_END}")
_TIME = regex(r"INTERVAL '(\d+) months (\d+) days (\d+) microseconds'")
_SIDE = regex("PRECEDING|FOLLOWING")
_OTHER = {"PRECEDING": "FOLLOWING", "FOLLOWING": "PRECEDING"}


@dataclass(frozen=True)
class Frame:
    """A frame's kind and its ends: how far before the row itself (below 0) or after it; None: without an end.

    Of RANGE the distance is in the order's own unit; of a moment's in microseconds, or in months, which have no length.
    """

    kind: str
    start: Fraction | None
    end: Fraction | None
    has_months: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether it has an end at a distance from the row."""
        return any(end not in (None, 0) for end in (self.start, self.end))

    @property
    def is_by_value(self) -> bool:
        """Whether what is in it depends on how far the order's values are apart."""
        return self.kind == "RANGE" and self.is_measured

    @property
    def has_whole_ties(self) -> bool:
        """Whether rows that tie in the written order have one frame."""
        return self.kind != "ROWS" or self.start is self.end is None


def frame_of(call: WindowCall) -> Frame | None:
    """Return the frame of a call, None for the usual one, and for a frame that leaves rows out of its middle."""
    found = None if call.frame is None else _FRAME.fullmatch(call.frame)
    if found is None:
        return None
    kind, first, side, last, other = found.groups()
    times = [time for time in map(_TIME.fullmatch, (first, last)) if time is not None]
    return Frame(
        kind, _frame_end(first, side), _frame_end(last, other), any(time[1] != "0" for time in times)
    )


def _frame_end(said: str, side: str) -> Fraction | None:
    if said == "UNBOUNDED":
        return None
    if said == "CURRENT":
        return Fraction(0)
    time = _TIME.fullmatch(said)
    length = Fraction(said) if time is None else Fraction(int(time[2]) * _DAY + int(time[3]))
    return -length if side == "PRECEDING" else length


def most_in(call: WindowCall, most: int | None) -> int | None:
    """Return how many rows a frame has at most: by ROWS what is written, by other distances `most`; None: no limit."""
    frame = frame_of(call)
    if frame is None or frame.start is None or frame.end is None:
        return None
    return max(0, int(frame.end - frame.start) + 1) if frame.kind == "ROWS" else most


def checked(call: WindowCall) -> WindowCall:
    """Return a window call as it is asked of a person's rows.

    Raises:
        Refusal: PV202 for a frame that is not taken.
    """
    if call.frame is None:
        return call
    frame = frame_of(call)
    if frame is None:
        raise _refused(
            call, "a frame with EXCLUDE is summed anew for each row, and is not taken of people's rows",
            "leave out EXCLUDE, and take off what the row itself adds",
        )  # fmt: skip
    if frame.has_months:
        raise _refused(
            call,
            "a month has no length, and a frame over private rows has one",
            "write days: INTERVAL '30 days'",
        )
    is_aggregate = call.row is not None and call.row.in_frames
    if not is_aggregate and (frame.is_by_value or frame.kind == "GROUPS"):
        raise _refused(
            call,
            f"{call.function.upper()} is not taken of a frame by {frame.kind} over private rows",
            "write ROWS",
        )
    return _from_an_end(call, frame) if call.row is not None and call.row.is_extreme else call


def by_ranks(node: Block, calls: Sequence[WindowCall]) -> Relation | None:
    """Return a step's windows without GROUPS: a frame is by RANGE over dense_rank, in a step below; None: none is by
    GROUPS.

    `calls`: its windows, `checked`.
    """
    ranks: dict[WindowCall, Field] = {}
    start = len(node.below.columns)
    for call in calls:
        if _is_by_groups(call):
            rank = WindowCall(
                BIGINT, "dense_rank", (), call.partition, call.orders, None, position=call.position
            )
            ranks.setdefault(rank, Field(BIGINT, start + len(ranks)))
    if not ranks:
        return None
    placed = {(rank.partition, rank.orders): place for rank, place in ranks.items()}
    ranged = tuple(
        _ranged(call, placed[call.partition, call.orders]) if _is_by_groups(call) else call for call in calls
    )
    made = windowed(windowed(node.below, tuple(ranks), node.position), ranged, node.position)
    shown = (*made.row[:start], *made.row[start + len(ranks) :])
    return projected(made, shown, [column.name for column in node.columns], node.position)


def _is_by_groups(call: WindowCall) -> bool:
    frame = frame_of(call)
    return frame is not None and frame.kind == "GROUPS"


def _ranged(call: WindowCall, rank: Field) -> WindowCall:
    frame = (call.frame or "").replace("GROUPS", "RANGE", 1)
    return replace(call, orders=(Order(rank, False, False),), frame=frame)


def _from_an_end(call: WindowCall, frame: Frame) -> WindowCall:
    """Return a least or largest value as one that an engine need not take anew for each row (law L10)."""
    if frame.start is None or (
        frame.kind == "ROWS" and frame.end is not None and frame.end - frame.start < MAX_FEW
    ):
        return call
    if frame.end is not None:
        raise _refused(
            call, f"{call.function.upper()} over a frame whose start moves is taken anew for each of a person's rows",
            f"begin the frame with UNBOUNDED PRECEDING, or take at most {MAX_FEW} ROWS",
        )  # fmt: skip
    orders = tuple(
        replace(order, descending=not order.descending, nulls_first=not order.nulls_first)
        for order in call.orders
    )
    kind, _, ends = (call.frame or "").partition(" BETWEEN ")
    start = _SIDE.sub(lambda side: _OTHER[side[0]], ends.removesuffix(" AND UNBOUNDED FOLLOWING"))
    return replace(call, orders=orders, frame=f"{kind} BETWEEN UNBOUNDED PRECEDING AND {start}")


def _refused(call: WindowCall, said: str, hint: str) -> Refusal:
    return Refusal(said, sqlstate="PV202", position=call.position, hint=hint)


def by_windows(node: Block, facts: Callable[[Expr], Facts]) -> Relation | None:
    """Return what a GROUP BY of one person's rows means by windows over what it reads; None: no aggregate asks for one.

    `facts`: of an expression over what it reads.

    Raises:
        Refusal: PV001 for values of a type that has no such meaning.
    """
    group = node.group
    assert group is not None
    rows = [_program(call) for call in group.aggregates]
    if not any(rows):
        return None
    program = _Program(node, group, facts)
    shown: list[Expr] = [
        program.aggregate(call) if row is None else row(program, call)
        for row, call in zip(rows, group.aggregates, strict=True)
    ]
    return program.relation(node, group, shown)


def _program(call: AggregateCall) -> Callable[[_Program, AggregateCall], Expr] | None:
    if call.distinct and call.row.asks is Asks.SUMS and call.row.per_person:
        return _of_distinct
    return _PROGRAMS.get(call.function)


class _Program:
    """The windows and aggregates of one GROUP BY, each once. A column of the second step has a number below 0."""

    def __init__(self, node: Block, group: Group, facts: Callable[[Expr], Facts]) -> None:
        self.facts = facts
        self._below = node.below
        self._keys = group.keys
        self.partition = tuple(key for key in group.keys if not key.is_constant)
        self._first: list[WindowCall] = []
        self._second: list[WindowCall] = []
        self._aggregates: list[AggregateCall] = []

    def over(
        self,
        function: str,
        *args: Expr,
        by: tuple[Expr, ...] = (),
        orders: tuple[Order, ...] = (),
    ) -> Field:
        """Return the column of a window over the rows of a person's group, and of those alike in `by`."""
        call = WindowCall(BIGINT, function, args, (*self.partition, *by), orders, None)
        if call not in self._first:
            self._first.append(call)
        return Field(BIGINT, len(self._below.columns) + self._first.index(call))

    def largest(self, column: Field) -> Field:
        """Return the column of a group's largest value of one that is a window's."""
        call = WindowCall(BIGINT, "max", (column,), self.partition, (), None)
        if call not in self._second:
            self._second.append(call)
        return Field(BIGINT, -1 - self._second.index(call))

    def aggregate(self, call: AggregateCall) -> Field:
        """Return the column of an aggregate of a group's rows."""
        if call not in self._aggregates:
            self._aggregates.append(call)
        return Field(call.type, len(self._keys) + self._aggregates.index(call), position=call.position)

    def relation(self, node: Block, group: Group, shown: list[Expr]) -> Relation:
        """Return the steps, one over the other."""
        made = windowed(self._below, tuple(self._first), node.position) if self._first else self._below
        start = len(made.columns)
        if self._second:
            made = windowed(made, tuple(self._second), node.position)
        calls = (
            call.map(lambda expr: moved(expr, lambda i: i if i >= 0 else start - 1 - i))
            for call in self._aggregates
        )
        made = grouped(made, replace(group, aggregates=tuple(calls)), node.position)
        keys = [
            Field(key.type, i, name)
            for i, (key, name) in enumerate(zip(self._keys, group.names, strict=False))
        ]
        return projected(made, [*keys, *shown], [column.name for column in group.columns], node.position)


# --- rows ---------------------------------------------------------------------------------------------------


def _value(call: AggregateCall) -> Expr:
    """Return what is taken of a row: NULL, which counts nowhere, where its FILTER is not true."""
    value = call.args[0]
    if call.filter is None:
        return value
    return Call(value.type, "case", (call.filter, value, Literal(value.type, None)), position=value.position)


def _end(
    program: _Program, call: AggregateCall, value: Expr, kept: Expr | None, *, largest: bool = False
) -> Field:
    """Return the least of the values that are kept, or the largest."""
    taken = AggregateCall(
        value.type, "max" if largest else "min", (value,), False, kept, position=call.position
    )
    return program.aggregate(taken)


def _whole(number: int) -> Literal:
    return Literal(BIGINT, number)


def _of(function: str, *args: Expr) -> Call:
    type_ = FUNCTIONS[function].result(args)
    assert type_ is not None, "arguments of one kind"
    return Call(type_, function, args)


def _at_least(one: Expr, other: Expr, share: Fraction, *, more: bool = False) -> Call:
    """Return whether one number is at least so large a share of another, or `more` than that, in whole numbers."""
    sides = _of("mul", one, _whole(share.denominator)), _of("mul", other, _whole(share.numerator))
    return Call(BOOLEAN, "gt" if more else "ge", sides)


def _percentile_disc(program: _Program, call: AggregateCall) -> Expr:
    """The first value that, with all before it, is so large a share of the values; of a descending order the last."""
    value, descends = _value(call), bool(call.orders) and call.orders[0].descending
    if call.share in (0, 1):
        return _end(program, call, value, None, largest=call.share == 1)
    by_value = (Order(value, descends, descends),)
    count, upto = program.over("count", value), program.over("count", value, orders=by_value)
    share = 1 - call.share if descends else call.share
    return _end(program, call, value, _at_least(upto, count, share), largest=descends)


def _percentile_cont(program: _Program, call: AggregateCall) -> Expr:
    """Between the values at the ranks around 1 + (n - 1) p / q: r / q of the way, where r is what (n - 1) p leaves."""
    value, share = _value(call), call.share
    if not value.type.is_number:
        raise Refusal(
            f"{call.function.upper()} of a person's moments would lie between two of them", sqlstate="PV001",
            position=call.position, hint="percentile_disc is one of them",
        )  # fmt: skip
    if share in (0, 1):
        return _as_double(call, _end(program, call, value, None, largest=share == 1))
    by_value = (Order(value, False, False),)
    count, upto = program.over("count", value), program.over("count", value, orders=by_value)
    steps, before = (_of("sub", number, _whole(1)) for number in (count, upto))
    low = _end(program, call, value, _at_least(upto, steps, share, more=True))
    high = _end(program, call, value, _at_least(before, steps, share))
    parts = Literal(NUMERIC, Fraction(share.denominator))
    if share == Fraction(1, 2):
        return _as_double(call, _of("div", _of("add", low, high), parts))
    most = program.aggregate(AggregateCall(BIGINT, "max", (count,), False, None, position=call.position))
    ranks = _of("mul", _of("sub", most, _whole(1)), _whole(share.numerator))
    way = _of("mul", _of("sub", high, low), _of("mod", ranks, _whole(share.denominator)))
    between = _of("add", low, _of("div", way, parts))
    return _as_double(call, _within(between, program.facts(value)))


def _within(between: Expr, facts: Facts) -> Expr:
    """Return what lies between two values, as no arithmetic of intervals sees, within the ends of all values."""
    if facts.lo is None or facts.hi is None:
        return between
    ends = (Literal(NUMERIC, end) for end in (facts.lo, facts.hi))
    inside = _of("least", _of("greatest", between, next(ends)), next(ends))
    return Call(
        inside.type, "case", (Call(BOOLEAN, "is_null", (between,)), Literal(inside.type, None), inside)
    )


def _as_double(call: AggregateCall, value: Expr) -> Expr:
    return Call(call.type, "cast", (value,), position=call.position)


def _mode(program: _Program, call: AggregateCall) -> Expr:
    """The least of the values that are as frequent as the most frequent one; of a descending order the largest."""
    value, descends = _value(call), bool(call.orders) and call.orders[0].descending
    _check_exact(value, call, "its most frequent value")
    count = program.over("count", value, by=(value,))
    kept = Call(BOOLEAN, "eq", (count, program.largest(count)))
    return _end(program, call, value, kept, largest=descends)


def _of_distinct(program: _Program, call: AggregateCall) -> Expr:
    """A sum or an average over one row of each value: rows that tie are alike in the value, which alone is read."""
    value = _value(call)
    _check_exact(value, call, f"{call.function.upper()}(DISTINCT …)")
    first = Call(BOOLEAN, "eq", (program.over("row_number", by=(value,)), _whole(1)))
    return program.aggregate(replace(call, args=(value,), distinct=False, filter=first))


MAX_JOINED = 40
"""Most of a person's values that string_agg joins."""


def _string_agg(program: _Program, call: AggregateCall) -> Expr:
    """The first values of an order that the values themselves complete, each by its number; as many as are never longer
    together than a text may grow to.

    Distinct ones are ordered by themselves. Raises Refusal: PV202 for texts of which not even two are short enough.
    """
    value, separator = _as_long_as_declared(_value(call), program), call.args[1].constant_as(str) or ""
    longest = program.facts(value).size + len(separator)
    most = min(MAX_JOINED, MAX_TEXT // max(longest, 1))
    if most < 2:
        raise Refusal(
            f"string_agg joins no texts of a person's that may have {longest} characters", sqlstate="PV202",
            position=call.position, hint="join their beginnings: string_agg(left(x, 20), ', ')",
        )  # fmt: skip
    orders = (*call.orders, Order(value, False, False))
    if call.distinct and call.orders:
        orders = (replace(call.orders[0], expr=value),)
    name = "dense_rank" if call.distinct else "row_number"
    number = program.over(name, by=(Call(BOOLEAN, "is_null", (value,)),), orders=orders)
    first, *others = (
        _end(program, call, value, Call(BOOLEAN, "eq", (number, _whole(place))))
        for place in range(1, most + 1)
    )
    with_separator = (Call(TEXT, "concat_op", (Literal(TEXT, separator), other)) for other in others)
    joined = Call(TEXT, "concat", (first, *with_separator))
    is_null = Call(BOOLEAN, "is_null", (first,))
    return Call(TEXT, "case", (is_null, Literal(TEXT, None), joined), position=call.position)


def _as_long_as_declared(value: Expr, program: _Program) -> Expr:
    """Return a text that has declared values no longer than tells these from all others."""
    texts = [text for text in program.facts(value).values or () if isinstance(text, str)]
    if not texts:
        return value
    return Call(TEXT, "left", (value, Literal(INTEGER, 1 + max(map(len, texts)))), position=value.position)


def _check_exact(value: Expr, call: AggregateCall, said: str) -> None:
    """Refuse to ask which of a person's fractions are equal: two zeros are, and no two results of a sum need be."""
    if value.type.is_float:
        raise Refusal(
            f"{said} asks which of a person's fractions are equal", sqlstate="PV001", position=call.position,
            hint="round them: CAST(round(x * 100) AS integer)",
        )  # fmt: skip


_PROGRAMS: dict[str, Callable[[_Program, AggregateCall], Expr]] = {
    "median": _percentile_cont, "percentile_cont": _percentile_cont, "percentile_disc": _percentile_disc, "mode": _mode,
    "any_value": lambda program, call: _end(program, call, _value(call), None), "string_agg": _string_agg,
}  # fmt: skip
"""Aggregate -> what it means of a person's rows. ANY_VALUE is the least, which no order of the rows changes."""

check_printers(_PROGRAMS, lambda row: row.is_program)


def as_join(node: Lateral) -> Relation | None:
    """Return a lateral join as a join; None: nobody owns its right side's rows, or it reads more of the left row."""
    has_owners = (isinstance(part, Scan) and part.table.unit is not None for part in all_parts(node.right))
    if node.kind not in ("inner", "left") or not any(has_owners):
        return None
    shown: tuple[Expr, ...] = node.right.row
    rows, limit = node.right, None
    orders: tuple[Order, ...] = ()
    if ends_in(rows, "outputs") and ends_in(rows.below, "limit"):
        shown, rows = rows.exprs, rows.below
    if ends_in(rows, "limit"):
        limit, rows = rows.limit, rows.below
    if ends_in(rows, "orders"):
        orders, rows = rows.orders, rows.below
    if ends_in(rows, "outputs") and ends_in(rows.below, "having", "group"):
        exprs, rows = rows.exprs, rows.below
        shown = project_onto(shown, exprs)
        orders = tuple(order.map(lambda expr: project_onto((expr,), exprs)[0]) for order in orders)
    having: tuple[Expr, ...] = ()
    if ends_in(rows, "having") and ends_in(rows.below, "group"):
        having, rows = conjuncts(rows.predicate), rows.below
    group, below = (rows.group, rows.below) if ends_in(rows, "group") else (None, rows)
    try:
        opened = open_query(below, exists=False)
    except Refusal:
        return None
    sides = [_sides(term) for term in opened.conditions]
    pairs = [pair for pair in sides if pair is not None]
    if not pairs or len(pairs) < len(sides) or any(map(outer_in, (*opened.outputs, *having))):
        return None
    if group is not None:
        is_one_row = group.is_one_row
        if is_one_row and (having or limit not in (None, (1, 0)) or node.condition != TRUE):
            return None
        if group.groupings or not (is_one_row or group.sets == (tuple(range(len(group.keys))),)):
            return None
        if any(own.type.is_float != outer.type.is_float for own, outer in pairs):
            return None  # two groups could equal one value
        opened, pairs = _grouped(opened, pairs, group, having)
        if is_one_row:
            row = (_counted(call, i) for i, call in enumerate(group.aggregates))
            shown, node = project_onto(shown, tuple(row)), replace(node, kind="left")
            limit, orders = None, ()
    return _joined(node, opened, pairs, orders, limit, shown)


_Pair = tuple[Expr, Outer]
"""The right side's and the left row's side of an equality of the two."""


def _grouped(
    opened: Opened, pairs: list[_Pair], group: Group, having: tuple[Expr, ...]
) -> tuple[Opened, list[_Pair]]:
    """Return the groups that each left row's rows are, as rows of their own, and their sides of the equalities."""
    by = tuple(dict.fromkeys(own for own, _ in pairs))
    group = group.map(lambda expr: project_onto((expr,), opened.outputs)[0])
    keys = (*group.keys, *by)
    whole = Group(keys, group.aggregates, (tuple(range(len(keys))),), names=("",) * len(keys))
    made = grouped(opened.relation, whole)
    row = (*made.row[: len(group.keys)], *made.row[len(keys) :])
    if having:
        made = filtered(made, project_onto((conjunction(having),), row)[0])
    own_side = {own: made.row[len(group.keys) + i] for i, own in enumerate(by)}
    return Opened(made, row, ()), [(own_side[own], outer) for own, outer in pairs]


def _counted(call: AggregateCall, index: int) -> Expr:
    """Return a column of the right side's one row, over the columns of a LEFT JOIN."""
    field = Field(call.type, index)
    return Call(call.type, "coalesce", (field, Literal(call.type, 0))) if call.function == "count" else field


def _sides(term: Expr) -> _Pair | None:
    """Return both sides of an equality; None: it is something else."""
    if term.calls("eq"):
        for own, other in (term.args, term.args[::-1]):
            if isinstance(other, Outer) and fields_of(own) and not outer_in(own):
                return own, other
    return None


def _joined(
    node: Lateral, opened: Opened, pairs: list[_Pair], orders: tuple[Order, ...],
    limit: tuple[int | None, int] | None, shown: tuple[Expr, ...],
) -> Relation:  # fmt: skip
    keys = tuple(dict.fromkeys(own for own, _ in pairs))
    relation, position = opened.relation, node.position
    if limit is not None:
        count, offset = limit
        written = tuple(order.map(lambda expr: substitute(expr, opened.outputs)) for order in orders)
        number = Field(BIGINT, len(relation.columns))
        relation = windowed(
            relation,
            (WindowCall(BIGINT, "row_number", (), keys, written, None, position=position),),
            position,
        )
        ends = [("le", offset + count)] if count is not None else []
        ends += [("gt", offset)] if offset else []
        kept = tuple(Call(BOOLEAN, name, (number, Literal(BIGINT, end))) for name, end in ends)
        relation = filtered(relation, conjunction(kept), position) if kept else relation
    width, own_width = len(node.left.columns), len(opened.outputs)
    right = projected(relation, (*opened.outputs, *keys), position=position)

    links = [
        Call(
            BOOLEAN,
            "eq",
            (Field(own.type, width + own_width + keys.index(own)), other.expr),
            position=position,
        )
        for own, other in pairs
    ]
    columns = tuple(moved(expr, lambda index: width + index) for expr in shown)
    row = (*node.left.row, *columns)
    condition = conjunction((*links, *conjuncts(substitute(node.condition, row))))
    joined = Join(node.kind, node.left, right, condition, position=position)
    names = [column.name for column in node.columns]
    return projected(joined, row, names, position)


MAX_PARTS = 32
"""Most parts of a text that become rows: each place is a scan of its own."""

_ROW = regex(r"(?:(?:\\[sdwSDW]|\\[^A-Za-z0-9]|\[[^\[\]\\^-][^\[\]\\-]*\]|[^\\^$.|?*+()\[\]{}])\+?)+")
"""Characters and classes, each once or more."""
_NONE = Literal(INTEGER, 0)
_ONE = Literal(INTEGER, 1)


def asked_of_texts(expr: Call) -> Expr | None:
    """Return what a function of a text's parts means of the text; None: it has no such meaning."""
    if expr.function == "array_length" and len(expr.args) == 2 and expr.args[1].constant == 1:
        return _count(expr.args[0], Literal(INTEGER, None))
    if expr.function == "cardinality":
        return _count(expr.args[0], _NONE)
    if expr.function == "array_has":
        return _has(*expr.args)
    if expr.function in ("array_contains", "array_overlaps"):
        one, other = expr.args
        if expr.function == "array_overlaps" and one.calls("array"):
            one, other = other, one
        each = [_has(one, value) for value in other.args] if other.calls("array") else []
        found = [term for term in each if term is not None]
        if not found or len(found) < len(each):
            return None
        word = "and" if expr.function == "array_contains" else "or"
        return found[0] if len(found) == 1 else Call(BOOLEAN, word, tuple(found), position=expr.position)
    return None


def parts_in_rows(node: Lateral) -> Expr | None:
    """Return the array of a text's parts, over the left side's columns, whose elements are the right side's rows; None:
    these are something else."""
    right = node.right
    while ends_in(right, "outputs"):
        if not (isinstance(right, Block) and len(right.exprs) == 1 and right.exprs[0].column == 0):
            return None
        right = right.below
    if (
        node.kind != "inner"
        or node.condition != TRUE
        or not isinstance(right, Unnest)
        or len(right.arrays) != 1
    ):
        return None
    if right.numbered or right.outer or not isinstance(right.input, Values) or right.input.rows != ((),):
        return None
    array = _read(right.arrays[0])
    text_and_separator = array.calls("string_to_array") and len(array.args) == 2
    return array if text_and_separator and isinstance(by := array.args[1].constant, str) and by else None


def _read(expr: Expr) -> Expr:
    """Return an expression with the left side's columns in place of those of the query around."""
    return expr.expr if isinstance(expr, Outer) else map_children(expr, _read)


def placed_parts(array: Expr, most: int) -> list[tuple[Expr, Expr]]:
    """Return, for each place up to the `most`th, whether a text has a part there, and the part."""
    text, by = array.args
    count = _count(array, _NONE)
    assert count is not None, "its separator is constant"
    places = [Literal(INTEGER, place) for place in range(1, most + 1)]
    return [
        (Call(BOOLEAN, "ge", (count, place)), Call(TEXT, "split_part", (text, by, place))) for place in places
    ]


def _count(parts: Expr, of_none: Expr) -> Expr | None:
    """Return how many parts a text has; `of_none`: said of the empty text, which a separator makes no parts of."""
    if len(parts.args) != 2 or not isinstance(by := parts.args[1].constant, str) or not by:
        return None
    branches: tuple[Expr, ...] = ()
    text, new = parts.args[0], (Literal(TEXT, "."), Literal(TEXT, ""))
    if parts.calls("string_to_array"):
        found = _one_more(*(Call(TEXT, "replace", (text, Literal(TEXT, by), one)) for one in new))
        branches = (Call(BOOLEAN, "eq", (text, Literal(TEXT, ""))), of_none)
    elif parts.calls("regexp_split_to_array") and by.isascii() and _ROW.fullmatch(by):
        pattern, flags = parts.args[1], Literal(TEXT, "g")
        found = _one_more(*(Call(TEXT, "regexp_replace", (text, pattern, one, flags)) for one in new))
    else:
        return None
    is_text = Call(BOOLEAN, "not", (Call(BOOLEAN, "is_null", (text,)),))
    return Call(INTEGER, "case", (*branches, is_text, found, Literal(INTEGER, None)))


def _one_more(longer: Expr, shorter: Expr) -> Expr:
    """Return one more than the characters by which two texts differ; the greatest of it and 1, which it is."""
    ends = tuple(Call(INTEGER, "length", (text,)) for text in (longer, shorter))
    return Call(INTEGER, "greatest", (Call(INTEGER, "add", (Call(INTEGER, "sub", ends), _ONE)), _ONE))


def _has(parts: Expr, value: Expr) -> Expr | None:
    """Return whether a text has a constant part between its separators."""
    if not parts.calls("string_to_array") or len(parts.args) != 2:
        return None
    text, by, part = parts.args[0], parts.args[1].constant, value.constant
    if not isinstance(by, str) or len(by) != 1 or not isinstance(part, str) or by in part:
        return None
    between = reduce(
        lambda a, b: Call(TEXT, "concat_op", (a, b)), (Literal(TEXT, by), text, Literal(TEXT, by))
    )
    place = Call(INTEGER, "position", (between, Literal(TEXT, f"{by}{part}{by}")))
    found = Call(BOOLEAN, "gt", (place, _NONE))
    return found if part else Call(BOOLEAN, "and", (found, Call(BOOLEAN, "ne", (text, Literal(TEXT, "")))))


MAX_TILES = 20
"""Most parts: twenty have 19 percentiles, at the epsilon of five."""


def tiled(node: Block) -> Relation | None:
    """Return what windows that are all NTILE over all rows mean beside released percentiles; None: they are others."""
    counts = [_tiles(call) for call in node.windows]
    if not counts or None in counts:
        return None
    below = node.below
    width = len(below.columns)
    ends: list[AggregateCall] = []
    shown: list[Expr] = []
    for call, count in zip(node.windows, counts, strict=True):
        assert count is not None
        first = width + len(ends)
        order, type_ = call.orders[0], AGGREGATES["percentile_disc"].result(call.orders[0].expr.type)
        assert type_ is not None, "it has percentiles"
        ends += [
            AggregateCall(
                type_, "percentile_disc", (order.expr, Literal(NUMERIC, Fraction(place, count))), False, None,
                position=call.position,
            )
            for place in range(1, count)
        ]  # fmt: skip
        thresholds = [Field(type_, index, "") for index in range(first, width + len(ends))]
        shown.append(_part(order.expr, thresholds, descending=order.descending))
    cut = grouped(below, Group((), tuple(ends), ((),)), node.position)
    beside = Join("cross", below, cut, TRUE, position=node.position)
    own = [Field(column.type, index, column.name) for index, column in enumerate(below.columns)]
    names = [*(column.name for column in below.columns), *("" for _ in shown)]
    return projected(beside, [*own, *shown], names, node.position)


def _tiles(call: WindowCall) -> int | None:
    """Return k of an NTILE of all rows by one value that has percentiles; None: it is something else."""
    if call.function != "ntile" or call.partition or len(call.orders) != 1 or call.frame:
        return None
    count, order = call.args[0].constant, call.orders[0]
    has_ends = order.expr.type.is_number or order.expr.type.is_temporal
    is_usual = order.nulls_first == order.descending
    fits = type(count) is int and 2 <= count <= MAX_TILES
    return count if fits and has_ends and is_usual and not order.expr.is_constant else None  # type: ignore[return-value]


def _part(value: Expr, ends: list[Field], *, descending: bool) -> Expr:
    """Return the number of the part that a value is in; the first is that of the least, or else of the largest ones."""
    sign, cuts = ("gt", ends[::-1]) if descending else ("le", ends)
    branches: list[Expr] = []
    for place, end in enumerate(cuts, 1):
        test: Expr = Call(BOOLEAN, sign, (value, end))
        if descending and place == 1:
            test = Call(BOOLEAN, "or", (Call(BOOLEAN, "is_null", (value,)), test))
        branches += [test, Literal(INTEGER, place)]
    return Call(INTEGER, "case", (*branches, Literal(INTEGER, len(ends) + 1)))
