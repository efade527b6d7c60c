"""Which releases are read as running totals, and the coarser groupings that such totals may be made of as well.

A running total over 365 days is a sum of 365 noises. Drawn by month too, it is a sum of eleven months and a few days:
what is drawn of several groupings of the same rows is one table to the estimate (soundness.md 3.15). A *strategy* is
such a set of groupings, its *levels*, each a release like any other, whose losses are added up (soundness.md 1.37).

House rule: from the text and the policy alone; so is which levels are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..records import dataclass
from ..relation.expressions import Expr, Field, fields_of, parts_in
from ..relation.relations import Block, Relation, WindowCall, all_parts, skipped
from .privacy.axes import usual_keys
from .privacy.rows import Release

_ENDS = {"UNBOUNDED PRECEDING": -math.inf, "CURRENT ROW": 0, "UNBOUNDED FOLLOWING": math.inf}
_OF_ALL = frozenset({"windows", "outputs", "orders"})
"""Parts of a SELECT that leave no group out."""

Span = tuple[float, float]
"""From which group to which a sum goes, counted from its row's own; infinite: to the end."""
TO_HERE: Span = (-math.inf, 0)
"""That of a running total."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a statement shows of a release. `key`: the key that sums go along, by number; `totals`: the aggregates that
    they are of; `shown`: those that are shown group by group; `spans`: from where to where sums go, with the key
    ascending."""

    key: int
    totals: frozenset[int]
    shown: frozenset[int]
    spans: frozenset[Span]


@dataclass(frozen=True, slots=True)
class Level:
    """A coarser key in place of a release's own, and what it is in words."""

    key: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Strategy:
    """A release of a plan and those that are drawn with it, by number.

    `key`: the name of the key that sums go along; `names`: in words what each level is by. `off` and `alone`: the
    expected deviation of a sum, the root of its mean square over the groups, and the same from the release's own groups
    at all of the charge. `sums`: what these are, in words.
    """

    release: int
    levels: tuple[int, ...]
    key: str
    names: tuple[str, ...]
    off: float
    alone: float
    sums: str


def running_totals(root: Relation) -> Mapping[Release, Running]:
    """Return the releases of which an analyzed statement shows running totals, or moving sums, along a key."""
    totals: dict[tuple[Release, int], set[int]] = {}
    spans: dict[tuple[Release, int], set[Span]] = {}
    for node in all_parts(root):
        for call in node.windows if isinstance(node, Block) else ():
            below = skipped(node, "limit", "orders", "distinct", "outputs", "windows")
            if (found := _running(below, call)) is not None:
                release, key, aggregate, span = found
                totals.setdefault((release, key), set()).add(aggregate)
                spans.setdefault((release, key), set()).add(span)
    shown: dict[Release, set[int]] = {}
    for index in range(len(root.columns)):
        origin = _origin(root, index, of_all=False)
        if origin is not None and origin[1] >= len(origin[0].keys):
            shown.setdefault(origin[0], set()).add(origin[1] - len(origin[0].keys))
    several = {release for release, _ in totals if sum(one is release for one, _ in totals) > 1}
    return {
        release: Running(
            key, frozenset(found), frozenset(shown.get(release, ())), frozenset(spans[release, key])
        )
        for (release, key), found in totals.items()
        if release not in several
    }


def _running(below: Relation, call: WindowCall) -> tuple[Release, int, int, Span] | None:
    """Return the release, the key, the aggregate and the groups of which a window call over a relation is the sum along
    the key; None: it is none."""
    span = _span(call)
    if span is None or len(call.orders) != 1:
        return None
    summed, ordered = (_traced(below, expr) for expr in (call.args[0], call.orders[0].expr))
    if summed is None or ordered is None or summed[0] is not ordered[0]:
        return None
    release, width = summed[0], len(summed[0].keys)
    if summed[1] < width or ordered[1] >= width:
        return None
    first, last = span
    return release, ordered[1], summed[1] - width, ((-last, -first) if call.orders[0].descending else span)


def _span(call: WindowCall) -> Span | None:
    """Return from where to where a call sums, in its own order; None: it does not, or not by numbers of rows."""
    kind, _, ends = (call.frame or "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW").partition(" BETWEEN ")
    places = [_place(end) for end in ends.split(" AND ")]
    if call.function not in ("sum", "avg") or len(places) != 2:
        return None
    first, last = places
    if first is None or last is None or (first, last) == (-math.inf, math.inf):
        return None
    by_rows = kind in ("ROWS", "GROUPS") or {first, last} <= set(_ENDS.values())
    is_moving = math.isfinite(first) and math.isfinite(last)
    return (first, last) if by_rows and (is_moving or call.function == "sum") else None


def _place(end: str) -> float | None:
    """Return where a frame's end is, counted from its row; None: that is no number of rows."""
    if end in _ENDS:
        return _ENDS[end]
    offset, _, way = end.partition(" ")
    if not offset.isdigit() or way not in ("PRECEDING", "FOLLOWING"):
        return None
    return -int(offset) if way == "PRECEDING" else int(offset)


def _traced(below: Relation, expr: Expr) -> tuple[Release, int] | None:
    return None if expr.column is None else _origin(below, expr.column, of_all=True)


def _origin(relation: Relation, index: int, *, of_all: bool) -> tuple[Release, int] | None:
    """Return the release and its column that a column carries unchanged; None: none. `of_all`: of all its groups."""
    while isinstance(relation, Block):
        if of_all and any(name not in _OF_ALL for name, _ in relation.parts):
            return None
        origin = relation.origin(index)
        if origin is None:
            return None
        relation, index = origin
    return (relation, index) if isinstance(relation, Release) else None


def levels_of(key: Expr) -> tuple[Level, ...]:
    """Return the levels that groups by a key may have: the usual keys of the one column that it reads."""
    columns = dict.fromkeys(parts_in(Field, key))
    if len(columns) != 1 or len(fields_of(key)) != 1:
        return ()
    return tuple(Level(one, name_of(one)) for column in columns for one in usual_keys(column) if one != key)


def name_of(key: Expr) -> str:
    """Return in words what a usual key is by."""
    if key.calls("date_trunc"):
        return f"by {key.args[0].constant}"
    if key.calls("div"):
        return f"by blocks of {key.args[1].constant}"
    return "by day" if key.type.is_temporal else "by value"
