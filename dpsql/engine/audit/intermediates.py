"""Made-up values of what a statement draws first: what stands above them is then a function of the rows alone.

House rule: always the same values for the same plan, so that neighbours are compared under one of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ...plan.planner import Plan
from ...plan.privacy.rows import selects_in
from ...relation.types import Kind, SqlType

__all__ = ["fixed_intermediates"]


def fixed_intermediates(plan: Plan) -> list[object]:
    """Return made-up values for all intermediate results of a plan: rows with repeated keys, unless the plan takes
    them to be unique."""
    uniques: dict[int, tuple[frozenset[int], ...]] = {}
    for release in plan.releases:
        for select in selects_in(release.release.rows):
            sources = (item.source for item in select.items)
            uniques |= {one.intermediate: one.keys for one in sources if one.intermediate is not None}
    found: list[object] = []
    for number, intermediate in enumerate(plan.intermediates):
        types = [column.type for column in intermediate.columns]
        if number in plan.tables:
            found.append(_made_up_rows(types, uniques.get(number, ())))
        else:
            found.append(
                _MADE_UP[types[0].kind][number % 3] if types[0].kind in _MADE_UP else _NUMBERS[number % 4]
            )
    return found


def _made_up_rows(types: Sequence[SqlType], keys: tuple[frozenset[int], ...]) -> tuple[list[object], ...]:
    """Return columns of rows; those of the first key hold every combination once, the others repeat."""
    pools = [_pool(type_) for type_ in types]
    if not keys:
        return tuple([pool[i // 2 % len(pool)] for i in range(8)] for pool in pools)
    key = sorted(keys[0])
    combinations = list(itertools.product(*(pools[index] for index in key)))[:9]
    columns = [[pool[i % len(pool)] for i in range(len(combinations))] for pool in pools]
    for place, index in enumerate(key):
        columns[index] = [combination[place] for combination in combinations]
    return tuple(columns)


def _pool(type_: SqlType) -> tuple[object, ...]:
    if type_.is_integer:
        return (1, 2, None, 7)
    return _MADE_UP.get(type_.kind, (2.5, 0.5, None, 1.0))


_NUMBERS = (2.5, -1.0, None, 0.0)
_MADE_UP: dict[Kind, tuple[object, ...]] = {
    Kind.TEXT: ("a", "b", None, "t"), Kind.BOOLEAN: (True, False, None),
    Kind.DATE: ("2020-06-15", "2020-01-01", None), Kind.TIMESTAMP: ("2020-02-01 00:00:00", "2020-01-01 00:00:00", None),
}  # fmt: skip
