"""The largest groups of many: how many of the true ones are chosen, and how far off their counts are."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.figure import Figure, Size
from dpsql import Session
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy

__all__ = ["measure"]

_KEYS, _PEOPLE = 1_000, 20_000
_POLICY = """
database = "duckdb:{name}.duckdb"
ledger = "sqlite:{name}.db"
[privacy]
epsilon = 9999
[defaults]
epsilon = 0.1
[tables.person]
unit = "id"
[tables.person.columns]
id = {{}}
[tables.event]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = {groups}
max_rows_per_group = 1
max_groups = {groups}
[tables.event.columns]
key = {{ bounds = [1, {keys}] }}
"""
_CASES = (
    (10, 1, 20.0, 95.0), (50, 1, 20.0, 486.0), (50, 5, 101.0, 503.0), (50, 10, 196.0, 510.0),
)  # fmt: skip
"""Groups of a person, groups that are asked for, the prototypes' errors of a count: chosen, and of the histogram."""
_RECALL = 1.0
"""The prototypes' share of the true largest among those chosen, where the rule chooses at all."""


def measure(size: Size) -> Iterator[Figure]:
    """Yield recall and error of counts, Zipf keys, epsilon 0.1, one row of a person in a group."""
    draws = 10 if size.draws < 1_000_000 else 60
    for groups in dict.fromkeys(case[0] for case in _CASES):
        exact = _make(size.folder, groups)
        with Session.open(size.folder / f"top{groups}.toml", analyst="bench") as session:
            session.execute("SET dpsql.reuse = off")
            for _, count, chosen, histogram in (case for case in _CASES if case[0] == groups):
                yield from _compared(session, exact, groups, count, (chosen, histogram), draws)


def _compared(
    session: Session,
    exact: dict[int, int],
    groups: int,
    count: int,
    prototypes: tuple[float, float],
    draws: int,
) -> Iterator[Figure]:
    sql = f"SELECT key, COUNT(*) AS n FROM event GROUP BY key ORDER BY n DESC LIMIT {count}"
    name = f"top {count} of {_KEYS:,}, {groups} groups a person"
    largest = set(sorted(exact, key=lambda key: -exact[key])[:count])
    for setting, prototype in zip(("on", "off"), prototypes, strict=True):
        session.execute(f"SET dpsql.selection = {setting}")
        answers = [session.execute(sql).rows for _ in range(draws)]
        recall = [len(largest & {row[0] for row in rows}) / count for rows in answers]
        errors = [abs(row[1] - exact[row[0]]) for rows in answers for row in rows]
        how = "chosen" if setting == "on" else "histogram"
        is_ours = setting == "on"
        yield Figure(
            f"error of a count, {name}, {how}", statistics.fmean(errors),
            1.1 * prototype + 3 * _error_of_mean(errors) if is_ours else None, "rows",
        )  # fmt: skip
        yield Figure(
            f"recall, {name}, {how}", statistics.fmean(recall),
            _RECALL / 1.1 - 3 * _error_of_mean(recall) if is_ours else None, "", is_rate=True,
        )  # fmt: skip


def _error_of_mean(values: Sequence[float]) -> float:
    return statistics.pstdev(values) / math.sqrt(len(values))


def _make(folder: Path, groups: int) -> dict[int, int]:
    """Make data, policy and ledger; return the true counts: each person has so many keys, drawn by 1 / rank."""
    random = np.random.default_rng(11)
    weights = 1 / np.arange(1, _KEYS + 1)
    times = -np.log(random.random((_PEOPLE, _KEYS))) / weights  # the first to come: a draw without repeats
    keys = np.argpartition(times, groups, axis=1)[:, :groups] + 1
    name, owners = f"top{groups}", np.repeat(np.arange(_PEOPLE), groups)
    database = folder / f"{name}.duckdb"
    database.unlink(missing_ok=True)
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY)")
        connection.execute(f"INSERT INTO person SELECT * FROM range({_PEOPLE})")
        frame = {"owner": owners.astype(np.int32), "key": keys.ravel().astype(np.int32)}
        connection.execute("CREATE TABLE event (person_id INTEGER NOT NULL, key INTEGER NOT NULL)")
        connection.execute("INSERT INTO event SELECT owner, key FROM frame")
        assert frame
    for suffix in (".db", ".db.log"):
        (folder / f"{name}{suffix}").unlink(missing_ok=True)
    policy = folder / f"{name}.toml"
    policy.write_text(_POLICY.format(name=name, groups=groups, keys=_KEYS))
    open_ledger(load_policy(policy), create=True).close()
    shown, found = np.unique(keys, return_counts=True)
    return dict(zip(shown.tolist(), found.tolist(), strict=True))
