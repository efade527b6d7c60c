"""Which releases are read as running totals, and the coarser groupings that such totals may be made of as well.

A running total over 365 days is a sum of 365 noises. Drawn by month too, it is a sum of eleven months and a few days:
what is drawn of several groupings of the same rows is one table to the estimate (soundness.md 3.15). A *strategy* is
such a set of groupings, its *levels*, each a release like any other, whose losses are added up (soundness.md 1.37).

House rule: from the text and the policy alone; so is which levels are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..records import dataclass
from ..relation.expressions import Expr, Field, fields_of, parts_in
from ..relation.relations import Block, Relation, WindowCall, all_parts, skipped
from .privacy.axes import usual_keys
from .privacy.rows import Release

_ENDS = ("UNBOUNDED PRECEDING AND CURRENT ROW", "CURRENT ROW AND UNBOUNDED FOLLOWING")
_OF_ALL = frozenset({"windows", "outputs", "orders"})
"""Parts of a SELECT that leave no group out."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a statement shows of a release. `key`: the key that totals run along, by number; `totals`: the aggregates
    that they are of; `shown`: those that are shown group by group."""

    key: int
    totals: frozenset[int]
    shown: frozenset[int]


@dataclass(frozen=True, slots=True)
class Level:
    """A coarser key in place of a release's own, and what it is in words."""

    key: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Strategy:
    """A release of a plan and those that are drawn with it, by number.

    `key`: the name of the key that totals run along; `names`: in words what each level is by. `off`
    and `alone`: the expected deviation of a running total, the root of its mean square over the groups, and the same
    from the release's own groups at all of the charge.
    """

    release: int
    levels: tuple[int, ...]
    key: str
    names: tuple[str, ...]
    off: float
    alone: float


def running_totals(root: Relation) -> Mapping[Release, Running]:
    """Return the releases of which an analyzed statement shows running totals along a key."""
    totals: dict[tuple[Release, int], set[int]] = {}
    for node in all_parts(root):
        for call in node.windows if isinstance(node, Block) else ():
            below = skipped(node, "limit", "orders", "distinct", "outputs", "windows")
            if (found := _running(below, call)) is not None:
                release, key, aggregate = found
                totals.setdefault((release, key), set()).add(aggregate)
    shown: dict[Release, set[int]] = {}
    for index in range(len(root.columns)):
        origin = _origin(root, index, of_all=False)
        if origin is not None and origin[1] >= len(origin[0].keys):
            shown.setdefault(origin[0], set()).add(origin[1] - len(origin[0].keys))
    several = {release for release, _ in totals if sum(one is release for one, _ in totals) > 1}
    return {
        release: Running(key, frozenset(found), frozenset(shown.get(release, ())))
        for (release, key), found in totals.items()
        if release not in several
    }


def _running(below: Relation, call: WindowCall) -> tuple[Release, int, int] | None:
    """Return the release, the key and the aggregate of which a window call over a relation is the running total; None:
    it is none."""
    if call.function != "sum" or len(call.orders) != 1 or not _runs(call.frame):
        return None
    summed, ordered = (_traced(below, expr) for expr in (call.args[0], call.orders[0].expr))
    if summed is None or ordered is None or summed[0] is not ordered[0]:
        return None
    release, width = summed[0], len(summed[0].keys)
    if summed[1] < width or ordered[1] >= width:
        return None
    return release, ordered[1], summed[1] - width


def _runs(frame: str | None) -> bool:
    """Say whether a frame is from one end to the row itself."""
    return frame is None or frame.partition(" BETWEEN ")[2] in _ENDS


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
