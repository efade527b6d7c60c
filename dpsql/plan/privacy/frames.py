"""Frames of windows over one person's rows: which are taken, and in which direction (soundness.md 1.13).

House rules:

1. A frame by ROWS goes along a total order, so rows that tie in the written one are ordered by more (`derived`). One by
   RANGE has whole ties: it is the same for rows that tie, and an aggregate of it is one of its bag. One by GROUPS is
   one by RANGE over the numbers of the ties (`by_ranks`): DuckDB walks over a frame's groups anew for each row.
2. What is taken of a frame is linear in a person's rows but for a logarithm: a count and a sum lose the row that
   leaves. A least value does not: its frame begins with the person's first row, or ends with the last, and is then read
   from that end; or it has few rows, `MAX_FEW`, which are read for each.
3. RANGE with an offset compares whole numbers: an order's values on their lattice, a moment's days or microseconds. No
   sum of a value and an offset leaves BIGINT (`print_source`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from ...errors import Refusal
from ...records import dataclass
from ...relation.expressions import Field
from ...relation.relations import Block, Order, Relation, WindowCall, projected, windowed
from ...relation.types import BIGINT

MAX_FEW = 100
"""Most rows of a frame that are looked at for each row."""

_DAY = 86_400_000_000
_END = r"(UNBOUNDED|CURRENT|INTERVAL '[^']*'|[0-9.e+-]+) (PRECEDING|FOLLOWING|ROW)"
_FRAME = re.compile(rf"(ROWS|RANGE|GROUPS) BETWEEN {_END} AND {_END}")
_TIME = re.compile(r"INTERVAL '(\d+) months (\d+) days (\d+) microseconds'")
_SIDE = re.compile("PRECEDING|FOLLOWING")
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
    return Frame(kind, _end(first, side), _end(last, other), any(time[1] != "0" for time in times))


def _end(said: str, side: str) -> Fraction | None:
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
