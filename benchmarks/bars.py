"""What bars cost: beside the same answer without them, at every epsilon that a policy may allow, and from the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from benchmarks.dataset import HEAD
from benchmarks.figure import Figure, Size, Times
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy

__all__ = ["measure"]

EPSILONS = ("10", "5", "1", "0.1", "0.01", "0.0001")
_VARIANCES = ("VAR_POP(y)", "STDDEV(y)", "AVG(y), VARIANCE(y)", "CORR(y, x)", "REGR_SLOPE(y, x)", "AVG(y)")
_MANY = {
    "counts": "SELECT place, COUNT(*) AS n FROM person GROUP BY place",
    "averages": "SELECT place, COUNT(*) AS n, AVG(y) AS a FROM person GROUP BY place",
    "variances": "SELECT place, VAR_POP(y) AS v FROM person GROUP BY place",
    "in order": "SELECT place, COUNT(*) AS n FROM person GROUP BY place ORDER BY n DESC LIMIT 10",
    "shares": "SELECT place, COUNT(*) / SUM(COUNT(*)) OVER () AS n FROM person GROUP BY place",
}
"""Statements of many groups; of each what its bars may cost beside it, in processor seconds."""

_POLICY = """
[tables.person]
unit = "id"
[tables.person.columns]
y = {{ bounds = [0, 1000] }}
x = {{ bounds = [0, 1000] }}
place = {{ bounds = [0, {last}] }}
"""


def measure(size: Size) -> Iterator[Figure]:
    """Yield what bars of one row cost at most at each epsilon, and those of 1,000 and of 100,000 groups."""
    yield from _of_one_row(size)
    for groups in (1_000, 100_000 - 1):
        yield from _of_many_groups(size, min(size.groups // 10, groups))


def _of_one_row(size: Size) -> Iterator[Figure]:
    with _opened(size.folder, "one", 20_000, 20_000) as session:
        for asked in _VARIANCES:
            found: dict[str, tuple[float, bool]] = {}
            session.execute("SET dpsql.reuse = off")
            for epsilon in EPSILONS:
                session.execute(f"SET dpsql.epsilon = {epsilon}")
                text = f"SELECT {asked} FROM person"
                plain = _asked(session, text, None)
                barred, rows = _asked_rows(session, text, "0.95")
                found[epsilon] = (barred - plain, all(value is not None for value in rows[0]))
            worst = max(found, key=lambda epsilon: found[epsilon][0])
            without = [epsilon for epsilon, (_, is_there) in found.items() if not is_there]
            where = ", ".join(f"{one}: {cost:.2f}" for one, (cost, _) in found.items())
            where += f"; NULL at {', '.join(without)}" if without else ""
            yield Figure(f"bars of {asked}, epsilon {worst}", found[worst][0], 0.5, "s", where)


def _of_many_groups(size: Size, groups: int) -> Iterator[Figure]:
    with _opened(size.folder, f"many-{groups}", 20 * groups, groups) as session:
        session.execute("SET dpsql.epsilon = 5")
        for name, text in _MANY.items():
            plain = _asked(session, text, None)
            first = _asked(session, text, "0.95")
            session.dataset.answers.clear()
            again = _asked(session, text, "0.95")
            base = _asked(session, text, None)
            where = f"without {plain:.2f} s, with {first:.2f} s; from the store {base:.2f} and {again:.2f} s"
            yield Figure(f"bars of {groups:,} groups, {name}", first - plain, 0.5, "s", where)
            yield Figure(f"bars of {groups:,} groups, {name}, again", again - base, 0.5, "s", where)


def _asked(session: Session, text: str, level: str | None) -> float:
    return _asked_rows(session, text, level)[0]


def _asked_rows(session: Session, text: str, level: str | None) -> tuple[float, list[tuple[object, ...]]]:
    """Return processor seconds, and the rows, at most the first hundred."""
    session.execute(f"SET dpsql.intervals = {level or 'off'}")
    rows: list[tuple[object, ...]] = []
    times = Times.of(lambda: rows.extend(session.execute(text).rows[:100]))
    return times.processor / 1000, rows


@contextmanager
def _opened(folder: Path, name: str, rows: int, groups: int) -> Iterator[Session]:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE person (id BIGINT PRIMARY KEY, y INTEGER NOT NULL, x INTEGER NOT NULL, place INTEGER NOT NULL)"
    )
    connection.execute(
        f"INSERT INTO person SELECT i, hash(i) % 1001, hash(i + 1) % 1001, i % {groups} FROM range({rows}) AS t(i)"
    )
    ledger = folder / f"bars-{name}.db"
    head = HEAD.format(database="duckdb:none", ledger=ledger).replace("max_epsilon = 5", "max_epsilon = 10")
    policy = parse_policy(head + _POLICY.format(last=groups - 1), folder / f"bars-{name}.toml")
    with Session(
        Dataset(policy, DuckDBBackend.over(connection), open_ledger(policy, create=True))
    ) as session:
        yield session
    connection.close()
