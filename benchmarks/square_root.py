"""Running totals of a table with one row a person over a year in a zCDP dataset, at rho 1/2: by days, by levels, and by
sums by square root (soundness.md 1.44), against the exact ones over many ledgers; and how long a fit of these takes.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import duckdb

from benchmarks.figure import Figure, Size
from dpsql import Session
from dpsql.engine.dataset import open_ledger
from dpsql.plan.privacy.axes import Partition
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import parse_policy
from dpsql.release.estimate import PARTS, Design, Sums

__all__ = ["measure"]

_MEMBERS = """
CREATE TABLE member (id INTEGER PRIMARY KEY, joined DATE NOT NULL);
INSERT INTO member SELECT i, DATE '2025-01-01' + (i * 7919 % 365)::INTEGER FROM range(20000) AS t(i)
"""
_POLICY = """
database = "duckdb:members.duckdb"
ledger = "sqlite:{ledger}.db"
[privacy]
accounting = "zcdp"
epsilon = 10
delta = 1e-6
[defaults]
epsilon = 1
max_epsilon = 1
[tables.member]
unit = "id"
[tables.member.columns]
joined = {{ bounds = [2025-01-01, 2025-12-31], complete = true }}
"""
_JOINED = "SELECT joined, SUM(COUNT(*)) OVER (ORDER BY joined) AS n FROM member GROUP BY joined ORDER BY 1"
_BY_DAY = "SELECT joined, COUNT(*) FROM member GROUP BY joined ORDER BY 1"


def measure(size: Size) -> Iterator[Figure]:
    """Yield how far off running totals over a year are, of one row a person, by each strategy at rho 1/2."""
    database = size.folder / "members.duckdb"
    database.unlink(missing_ok=True)
    with duckdb.connect(str(database)) as connection:
        connection.execute(_MEMBERS)
        counts = connection.execute("SELECT COUNT(*) FROM member GROUP BY joined ORDER BY joined").fetchall()
    truth, ledgers = list(itertools.accumulate(count for (count,) in counts)), max(2, size.repeats * 3)
    for name, limit in (("days", None), ("levels", None), ("square root", 2.9)):
        found, off = list[list[float]](), 0.0
        for k in range(ledgers):
            ledger = f"members-{name.replace(' ', '-')}-{k}"
            with _opened(size.folder / f"{ledger}.toml", _POLICY.format(ledger=ledger)) as session:
                is_summed = (
                    ReleasePlan.may_be_summed if name == "square root" else property(lambda plan: False)
                )
                with patch.object(ReleasePlan, "may_be_summed", is_summed):
                    off = session.explain(_JOINED).plan.strategies[0].off
                    if name == "days":  # they are stored, and so the totals are theirs
                        session.execute(_BY_DAY)
                    totals = session.execute(_JOINED).rows
            found.append([float(row[1]) - exact for row, exact in zip(totals, truth, strict=True)])
        said = "" if name == "days" else f"{off:.2f} expected"
        yield Figure(
            f"running total of 365 days, one row a person, by {name}, rms", _rms(found), limit, "rows", said
        )
    yield _fit()


def _fit() -> Figure:
    """Return the processor time of a fit of such sums beside months, quarters and the total."""
    months = [min(11, day // 30) for day in range(365)]
    by = [range(365), months, [month // 3 for month in months], [0] * 365]
    drawn = tuple(Sums((Partition(tuple(own)),), by_root=number == 0) for number, own in enumerate(by))
    design, times = Design((365,), drawn, (193_000.0, 1.0, 1.0, 1.0)), []
    for step in range(1, 8):
        numbers = [[PARTS * (7 * step * k % 99) for k in range(one.size)] for one in drawn]
        start = time.process_time()
        assert design.table(numbers) is not None
        times.append(time.process_time() - start)
    return Figure("a fit of them beside months, quarters and total", 1000 * min(times), 50, "ms")


def _rms(errors: Sequence[Sequence[float]]) -> float:
    each = [error for some in errors for error in some]
    return math.sqrt(sum(error**2 for error in each) / len(each))


def _opened(path: Path, text: str) -> Session:
    path.write_text(text, "utf-8")
    policy = parse_policy(text, path)
    open_ledger(policy, create=True)
    return Session.open(path)
