"""A made-up table whose counts are those of stored tables: post-processing of what was released, which costs nothing.

The tables of counts that are stored of the same rows are read from one estimate (soundness.md 3.15), so they agree; of
all tables over all of their columns that have these counts, iterative proportional fitting finds the one that assumes
least beside them (the largest entropy). What no stored table says of two columns together is made up.

House rules:

1. Released numbers, text and policy alone: nothing is asked of the database, charged or stored (soundness.md 3.20).
2. A row of it is nobody. What is fitted is never an observation of anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..budget import StoredDraws
from ..errors import Refusal
from ..plan.privacy.axes import Partition, Places, refined
from ..plan.privacy.keys import environment_of
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.expressions import Expr, Field, walk
from ..relation.types import SqlType
from .estimate import Sums
from .finer import Finer, find_finer
from .released import declared_groups, shown
from .table import usual_places

MOST_CELLS: Final = 10**6
"""Most cells of a fitted table: its columns' values multiplied."""
MOST_ROWS: Final = 10**7
_ROUNDS = 200
_CLOSE = 1e-6

Array = npt.NDArray[Any]
ByKeys = Callable[[tuple[Expr, ...]], ReleasePlan | None]


@dataclass(frozen=True)
class Model:
    """A table that was fitted. `names`, `types`, `values`: by column, its values as Python has them; `counts`: of their
    product, the last column's the fastest, whole and not negative; `tables`: how many it was fitted to, `edition`: the
    last draw of them; `off`: the most that a number of theirs is off in it; `left_out`: columns of which rows may have
    other values, which are not in it.
    """

    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    values: tuple[list[Any], ...]
    counts: Array
    tables: int
    edition: int
    off: int
    left_out: tuple[str, ...]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class _Table:
    """A stored table of counts: its keys, and how many rows their groups have, an axis a key."""

    keys: tuple[Expr, ...]
    found: Finer
    counts: Array


@dataclass(frozen=True)
class _Axis:
    """A column of the table. `value_of`: the key that its atoms have a value by; `atoms`: of each atom the place among
    the values of each key."""

    name: str
    value_of: Expr
    values: list[Any]
    places: dict[Expr, tuple[int, ...]]
    is_whole: bool

    @property
    def size(self) -> int:
        return len(self.places[self.value_of])


def fitted_table(plan: ReleasePlan, columns: Sequence[str], by_keys: ByKeys, store: StoredDraws) -> Model:
    """Return the table that all stored counts of a release's rows give. `plan`: of their count, without groups;
    `columns`: those that it is to have, all of which something is stored without any; `by_keys`: the same by keys.

    Raises:
        Refusal: 22023 where nothing is stored of its columns, 54001 for too many cells or rows.
    """
    known = usual_places(plan)
    tables = list(_stored_tables(plan, known, columns, by_keys, store))
    if not tables:
        raise Refusal(
            f'no counts of "{plan.release.rows.shown_name}" by its columns are stored'
            + (f" that read {', '.join(columns)} alone" if columns else ""),
            sqlstate="22023",
            hint="ask for tables of two columns each first, SELECT a, b, COUNT(*) … GROUP BY a, b, best in one file "
            "with dpsql release: what is made of them is free",
        )
    axes = _axes(plan, tables, known)
    cells = math.prod(axis.size for axis in axes)
    if cells > MOST_CELLS:
        sizes = ", ".join(f"{axis.name} {axis.size:,}" for axis in axes)
        raise Refusal(
            f"a table over these columns has {cells:,} cells, and at most {MOST_CELLS:,} are fitted: {sizes}",
            sqlstate="54001", hint="name fewer columns, with --columns",
        )  # fmt: skip
    wanted = [found for table in tables if (found := _sums(table, axes)) is not None]
    weights = _fit(tuple(axis.size for axis in axes), wanted)
    total = weights.sum()
    if total > MOST_ROWS:
        raise Refusal(
            f"the table has {int(total):,} rows, and at most {MOST_ROWS:,} are written", sqlstate="54001",
            hint="ask for the counts themselves: they are stored, and free",
        )  # fmt: skip
    counts = np.diff(np.rint(np.cumsum(weights.ravel())), prepend=0.0).astype(np.int64)
    off = max(
        float(np.abs(sums.of(counts.reshape(1, *weights.shape))[0] - numbers).max())
        for sums, numbers in wanted
    )
    return Model(
        tuple(axis.name for axis in axes),
        tuple(axis.value_of.type for axis in axes),
        tuple(axis.values for axis in axes),
        counts,
        len(wanted),
        max(entry for table in tables for entry in table.found.entries),
        math.ceil(off),
        tuple(axis.name for axis in axes if not axis.is_whole),
    )


def _stored_tables(
    plan: ReleasePlan,
    known: dict[bytes, tuple[Expr, Places]],
    columns: Sequence[str],
    by_keys: ByKeys,
    store: StoredDraws,
) -> Sequence[_Table]:
    """Return what is stored by keys that are known, each set of them once; what reads other columns is left out."""
    family = plan.family(0, plan.release.rows.predicate)
    if family is None:
        return ()
    _, stored = store.groupings([family])
    asked: dict[tuple[Expr, ...], None] = {}
    for one in stored[family]:
        digests = [key.digest for key in one.grouping.keys]
        if not digests or not all(digest in known for digest in digests):
            continue
        keys = tuple(known[digest][0] for digest in digests)
        if not columns or all(_column(key).name in columns for key in keys):
            asked[keys] = None
    found = []
    for keys in asked:
        grouped = by_keys(keys)
        if grouped is None or grouped.axes is None or grouped.groups is None:
            continue
        groups = declared_groups(grouped.groups, [key.type for key in keys])
        one_ = find_finer(grouped, 0, groups, store)
        if one_ is not None:
            unit = grouped.measurements[0].denominator
            numbers = np.array([float(Fraction(int(n), unit)) for n in one_.measurement.values[0].tolist()])
            found.append(_Table(keys, one_, numbers.reshape([len(axis.values) for axis in grouped.axes])))
    return found


def _column(key: Expr) -> Field:
    return next(part for part in walk(key) if isinstance(part, Field))


def _axes(
    plan: ReleasePlan, tables: Sequence[_Table], known: dict[bytes, tuple[Expr, Places]]
) -> tuple[_Axis, ...]:
    """Return the columns that tables have keys of, in the order of the rows' columns."""
    rows = plan.release.rows
    env = environment_of(rows.columns, rows.predicate)
    places = dict(known.values())
    keys: dict[int, dict[Expr, None]] = {}
    for table in tables:
        for key in table.keys:
            keys.setdefault(_column(key).index, {})[key] = None
    found = []
    for index in sorted(keys):
        own = sorted(keys[index], key=lambda key: -len(places[key][0]))
        partitions: Sequence[Partition] | None = refined(own, [places[key] for key in own], env)
        if len(own) == 1 or partitions is None:
            own, partitions = own[:1], [Partition(tuple(range(places[own[0]][1])))]
        listed = [
            atom
            for atom in range(len(partitions[0].groups))
            if all(one.groups[atom] < len(places[key][0]) for one, key in zip(partitions, own, strict=True))
        ]
        at = {
            key: tuple(one.groups[atom] for atom in listed) for one, key in zip(partitions, own, strict=True)
        }
        values, column = places[own[0]], _column(own[0])
        types = shown(list(values[0]), own[0].type)
        spelled = types.tolist() if isinstance(types, np.ndarray) else types
        is_whole = values[1] == len(values[0])
        found.append(_Axis(column.name or "", own[0], [spelled[place] for place in at[own[0]]], at, is_whole))
    return tuple(found)


def _sums(table: _Table, axes: Sequence[_Axis]) -> tuple[Sums, Array] | None:
    """Return a stored table as sums of the fitted one's cells, and what they are to be; None: it has two keys of a
    column, or one that is not known on its axis."""
    at = [next((i for i, axis in enumerate(axes) if key in axis.places), None) for key in table.keys]
    places = [place for place in at if place is not None]
    if len(set(places)) < len(table.keys):
        return None
    counts = table.counts.transpose([at.index(place) for place in sorted(places)])
    partitions = [Partition.whole(axis.size) for axis in axes]
    for number, place in enumerate(sorted(places)):
        groups = axes[place].places[table.keys[at.index(place)]]
        used = sorted(set(groups))  # of the others all rows have a value that is not listed
        counts = counts.take(used, axis=number)
        partitions[place] = Partition(tuple(used.index(group) for group in groups))
    return Sums(tuple(partitions)), counts.ravel()


def _fit(sizes: tuple[int, ...], wanted: Sequence[tuple[Sums, Array]]) -> Array:
    """Return the table of the largest entropy that has some sums, by iterative proportional fitting."""
    table = np.full((1, *sizes), 1.0)
    for _ in range(_ROUNDS):
        worst = 0.0
        for sums, numbers in wanted:
            counts, has = np.maximum(numbers, 0), sums.of(table)[0]
            ratios = np.divide(counts, has, out=np.zeros_like(counts), where=has > 0)
            worst = max(worst, float(np.abs(has - counts).max(initial=0.0)))
            table = table * sums.spread(ratios[None, :])
        if worst <= _CLOSE * max(1.0, float(table.sum())):
            break
    return np.asarray(table[0])
