"""ROLLUP, CUBE, GROUPING SETS: which sets of keys are measured, and which are sums of these (soundness.md 1.18).

House rules:

1. By text and policy alone: how many values each key has, and by how much a person weighs. Never by what was released.
2. A sum is taken over declared keys alone: of keys that are found by threshold, the cells that are not shown are
   missing, and a missing cell is not 0.
3. What counts a thing once in each group is no sum of finer groups: the same thing may be in several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from ...relation.aggregates import Asks
from ...relation.expressions import Expr, fields_of
from ...relation.relations import AggregateCall
from .keys import MAX_DOMAIN
from .rows import OwnedRows, holds_unit

__all__ = ["Keys", "adds_up", "sources_of"]

Keys = tuple[int, ...]


def adds_up(call: AggregateCall, keys: tuple[Expr, ...], rows: OwnedRows) -> bool:
    """Say whether an aggregate of a group is made of numbers that are sums of those of finer groups.

    Counts of rows, sums, averages and variances are. People are where each is in one group alone; other values that
    are counted once, averages that are noised as they are, and values that are chosen by rank, never.
    """
    if call.row.asks is Asks.COUNT and call.distinct:
        counts_people = holds_unit(call.args, rows.units)
        return counts_people and (rows.is_single or fields_of(*keys) <= rows.fixed_columns)
    return call.row.adds_up


def sources_of(
    sets: Sequence[Keys], size: Callable[[Keys], int | None], weight: Callable[[Keys], int]
) -> dict[Keys, Keys]:
    """Return for each set of declared keys the set that is measured, of which it is the sum (or is it itself).

    `size`: how many groups a set has; None: not declared. `weight`: its part of epsilon, among those that are
    measured. A set is never measured beside a finer one. Where no set has all the keys, their product is measured if
    the widest row is narrower then than by measuring the largest sets each.
    """
    cells = {one: found for one in sets if (found := size(one)) is not None}
    declared = list(cells)
    if not declared:
        return {}
    largest = [one for one in declared if not any(set(one) < set(other) for other in declared)]
    spread = {one: Fraction(cells[one], weight(one) ** 2) for one in largest}
    split = {
        one: min((it for it in largest if set(one) <= set(it)), key=lambda it: (spread[it], it))
        for one in declared
    }
    finest = tuple(sorted(set().union(*declared)))
    cells[finest] = size(finest) or 1
    whole = dict.fromkeys(declared, finest)
    is_narrower = _widest(whole, cells, weight) <= _widest(split, cells, weight)
    return whole if finest in declared or (cells[finest] <= MAX_DOMAIN and is_narrower) else split


def _widest(source: dict[Keys, Keys], cells: dict[Keys, int], weight: Callable[[Keys], int]) -> Fraction:
    """Return the variance of the widest row, in that of a cell which all of epsilon is spent on."""
    measured = set(source.values())
    total = sum(weight(one) for one in measured)
    return max(
        Fraction(total, weight(other)) ** 2 * Fraction(cells[other], cells[one])
        for one, other in source.items()
    )
