"""Keys of public tables, read for a plan: in the statement's own snapshot, before anything is charged.

Comparisons with a value that the policy does not list: mostly a slip, told before it is charged.

House rules:

1. Text and policy decide, never data. The list is no constraint: rows may hold other values, and with `dpsql.unlisted`
   on they are asked for as any others. What the engine enforces needs no charge and is no question here.
2. What somebody wrote is a question, and nothing else: what a view's text compares is its owner's, and is not told; nor
   is the name of a column that only views read.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from ..errors import UNLISTED, Refusal
from ..plan.backend_sql.print_release import BackendQuery
from ..plan.planner import Plan
from ..plan.privacy.rows import Item, Source, selects_in, written_in
from ..plan.release_plan import ReleasePlan
from ..relation.catalog import Column, Scalar
from ..relation.expressions import Expr, Literal, walk
from ..relation.types import SqlType
from ..release.released import canonical, publishable
from .dataset import LazySnapshot

__all__ = ["ListedKeys", "check_listed", "listed"]


# --- comparisons with a value that the policy does not list: mostly a slip, told before it is charged -------


_MOST_NAMED = 8
_CONSTANT = re.compile(r"(?:[a-z]&?)?'|\$", re.IGNORECASE)


def check_listed(plan: Plan, text: str) -> None:
    """Refuse a comparison of a column of people with a value that its declared ones lack. Raises Refusal (PV302)."""
    for release in plan.releases:
        if release.is_empty:
            continue
        for column, literal in _compared(release):
            if not _is_written(literal, text):
                continue
            value = str(literal.value)
            shown = f'"{column.name}"' if column.name else "this column"
            raise Refusal(
                f"{shown} has no value {_quoted(value)} in the policy",
                sqlstate=UNLISTED,
                position=literal.position,
                hint=f"{_nearest(value, column)} To compare with {_quoted(value)} all the same: "
                "SET dpsql.unlisted = on",
            )


def _compared(release: ReleasePlan) -> Iterator[tuple[Column, Literal]]:
    """Yield texts that a column of people with declared values is compared with, and that are none of them."""
    rows = release.release.rows
    for select in selects_in(rows):
        written = written_in(select)
        if select is rows:
            written += release.release.keys
            for call in release.release.aggregates:
                written += [*call.args, *([] if call.filter is None else [call.filter])]
        yield from _in(written, [column for item in select.items for column in _columns(item)])
        for place, item in enumerate(select.items):
            before = [column for one in select.items[:place] for column in _columns(one)]
            yield from _in(item.on, [*before, *_of(item.source)])


def _columns(item: Item) -> Sequence[Column | None]:
    return item.columns if item.kind == "mark" else _of(item.source)


def _of(source: Source) -> Sequence[Column | None]:
    """Return a source's columns; of public rows, which show what they hold, none is asked about."""
    if not source.is_private:
        return [None] * len(source.columns)
    table = source.uncut.table
    if table is not None and table.is_hidden:
        return [replace(column, name="") for column in source.columns]
    return source.columns


def _in(written: Sequence[Expr], columns: Sequence[Column | None]) -> Iterator[tuple[Column, Literal]]:
    for part in (part for expr in written for part in walk(expr)):
        if not part.calls("eq", "ne", "in"):
            continue
        known = [columns[side.column] for side in part.args[:2] if side.column is not None]
        values = [side for side in part.args if isinstance(side, Literal) and isinstance(side.value, str)]
        for column in known[:1]:
            if column is not None and column.values is not None:
                unlisted = [value for value in values if value.value not in column.values]
                if len(unlisted) == len(values):  # a list of which some are there is one that tools send
                    yield from ((column, value) for value in unlisted)


def _is_written(literal: Literal, text: str) -> bool:
    """Say whether a constant stands in the statement, or is a parameter: one of a view stands where its name does."""
    at = literal.position
    return at is None or _CONSTANT.match(text, at.offset) is not None


def _nearest(value: str, column: Column) -> str:
    listed = [one for one in column.values or () if isinstance(one, str)]
    by_lower = {one.lower(): one for one in listed}
    close = difflib.get_close_matches(value.lower(), by_lower, 1, 0.5)
    if close:
        return f"did you mean {_quoted(by_lower[close[0]])}?"
    shown = ", ".join(map(_quoted, listed[:_MOST_NAMED]))
    return f"its values are {shown}{', …' if len(listed) > _MOST_NAMED else ''}."


def _quoted(text: str) -> str:
    return "'" + text[:60].replace("'", "''") + "'"


# --- keys of public tables, read for a plan: in the statement's own snapshot, before anything is charged ----


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
