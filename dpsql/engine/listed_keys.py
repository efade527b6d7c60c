"""Keys of public tables, read for a plan: in the statement's own snapshot, before anything is charged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from ..plan.backend_sql.print_release import BackendQuery
from ..relation.catalog import Scalar
from ..relation.types import SqlType
from ..release.released import canonical, publishable
from .dataset import LazySnapshot

__all__ = ["ListedKeys", "listed"]


@dataclass
class ListedKeys:
    """Reads lists of keys for one plan; `snapshot` None: for the columns of an answer alone, lists are empty.

    `paused`: in which the database is asked, so that other statements are planned meanwhile.
    """

    snapshot: LazySnapshot | None
    paused: Callable[[], AbstractContextManager[None]] = nullcontext
    are_read: bool = False

    def read(self, query: BackendQuery, types: tuple[SqlType, ...]) -> list[tuple[Scalar, ...]]:
        """Return the keys that a query gives (`planner.ReadKeys`). Raises EngineFailure."""
        self.are_read = True
        if self.snapshot is None:
            return []
        with self.paused():
            rows = [row for chunk in self.snapshot.open().run(query.sql, []) for row in chunk]
        return listed(rows, types)


def listed(rows: list[tuple[Any, ...]], types: tuple[SqlType, ...]) -> list[tuple[Scalar, ...]]:
    """Return keys in canonical form; a moment that has no place in our calendar is no group."""
    changes = [canonical(type_) for type_ in types]
    found = [tuple(v if c is None else c(v) for v, c in zip(row, changes, strict=True)) for row in rows]
    columns = [[group[place] for group in found] for place in range(len(types))]
    good = publishable(columns, types, len(found))
    return [group for group, is_good in zip(found, good, strict=True) if is_good]
