"""A statement answered many times over the same exact integers: what it says, and where its bars lie.

Noise, formulas and bars are those of every answer; only the database is asked once, and nothing is charged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpsql import Session
from dpsql.engine.spine import DEFAULT_LEVEL
from dpsql.mechanisms import SampledNoise
from dpsql.plan.backend_sql.print_release import Part
from dpsql.plan.release_plan import ReleasePlan
from dpsql.release.post_processing import Patience, PublicRows, run_public
from dpsql.release.privatise import Exact, draw, privatise
from dpsql.release.released import Groups, canonical, declared_groups
from dpsql.release.run import ReleasedRows

__all__ = ["Number", "answers"]

_BATCH = 400
"""Draws that are post-processed together."""
_SALT = "0" * 32


@dataclass(frozen=True, slots=True)
class Number:
    """One number of an answer: its row's keys and its column, what was said, its bar, and the truth of the data."""

    place: tuple[object, ...]
    said: float
    low: float
    high: float
    truth: float

    @property
    def is_held(self) -> bool:
        """Whether the bar holds the truth."""
        return self.low <= self.truth <= self.high


def answers(session: Session, sql: str, draws: int) -> Iterator[Number]:
    """Yield every number of so many answers to a statement of one release.

    Requires: `dpsql.intervals` is set; the truth is the statement's own text over the same database.
    """
    explained = session.explain(sql)
    (release,) = explained.plan.releases
    exact, groups = _exact(session, release)
    names = [column.name for column in explained.compiled.relation.columns]
    numbers = [i for i, name in enumerate(names) if f"{name}_low" in names]
    keys = [
        i for i, name in enumerate(names) if f"{name.rsplit('_', 1)[0]}_low" not in names and i not in numbers
    ]
    truth, nothing = _truth(session, sql, len(keys)), (0,) * len(numbers)  # a declared group without rows
    for _ in range(draws // _BATCH):
        rows = _drawn(release, exact, groups)
        found = run_public(
            explained.compiled,
            [rows],
            session.dataset.sealed,
            DEFAULT_LEVEL,
            PublicRows(_nothing),
            Patience(None),
        )
        for row in found:
            key = tuple(row[i] for i in keys)
            for place, column in enumerate(numbers):
                low, high = (row[names.index(f"{names[column]}_{end}")] for end in ("low", "high"))
                said = (float(row[column]), float(low), float(high))
                yield Number((*key, names[column]), *said, float(truth.get(key, nothing)[place]))


def _nothing() -> Any:
    raise AssertionError("no public table is read")


def _exact(session: Session, release: ReleasePlan) -> tuple[Exact, Groups]:
    """Return the exact integers of a release with declared groups, or none."""
    assert release.groups is not None
    types = [key.type for key in release.release.keys]
    exact = Exact()
    with session.dataset.backend.snapshot() as snapshot:
        for query in release.queries(tuple(range(len(release.measurements)))):
            rows = [
                row for chunk in snapshot.run(query.sql, [_SALT] if query.salted else []) for row in chunk
            ]
            columns = [list(column) for column in zip(*rows, strict=True)]
            for index, type_ in enumerate(types):
                if (change := canonical(type_)) is not None:
                    columns[index] = [change(value) for value in columns[index]]
            places = [
                (number, i) for number in query.measurements for i in range(release.measurements[number].size)
            ]
            values = dict(zip(places, columns[len(types) :], strict=True))
            exact.add(columns[: len(types)], values, len(rows))
    return exact, declared_groups(release.groups, types)


def _drawn(release: ReleasePlan, exact: Exact, groups: Groups) -> ReleasedRows:
    """Return a batch of draws as one release whose groups come again and again."""
    columns = tuple(list(column) * _BATCH for column in groups.columns)
    rows = ReleasedRows(release, Groups(columns, groups.size * _BATCH))
    for number in range(len(release.measurements)):
        noise = draw(release, number, groups.size * _BATCH, SampledNoise())
        assert rows.groups is not None
        rows.measurements[number] = privatise(exact, release, number, rows.groups, noise, _nothing_more)
    return rows


def _truth(session: Session, sql: str, keys: int) -> dict[tuple[object, ...], tuple[Any, ...]]:
    with session.dataset.backend.snapshot() as snapshot:
        rows = [row for chunk in snapshot.run(sql) for row in chunk]
    return {tuple(row[:keys]): tuple(row[keys:]) for row in rows}


def _nothing_more(index: int, part: Part) -> Exact:
    raise AssertionError("choices are not measured here")
