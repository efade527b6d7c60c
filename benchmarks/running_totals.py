"""Running totals of the demo's loans over a year in a zCDP dataset: how far off they are, by days alone and by levels.

Deviations are expected ones: the root of the mean square of what bounds leave out, which a ledger without noise says,
and of the noise, whose covariance follows from what a ledger has drawn and under which laws. Beside them stand those of
as many ledgers as are drawn again through the same table. A file is split so that all of its epsilon is spent; what it
costs where each statement is as exact as alone stands beside it. Norms are near what 99.95 % of the people have by days
and weeks, and 99.9 % by months and quarters: at 99.5 % all over they leave out 730 of the 300,000 loans, which no
budget brings back.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size
from dpsql import Session
from dpsql.engine.batch import price_batch, read_batch, run_batch
from dpsql.engine.dataset import open_ledger
from dpsql.mechanisms import ATTO, Noise
from dpsql.policy import parse_policy
from dpsql.release.run import PlanRunner, ReleasedRows
from dpsql.testing.injected_noise import ZeroNoise

__all__ = ["measure"]

_RUNNING = (
    "SELECT loaned_on, SUM(COUNT(*)) OVER (ORDER BY loaned_on) AS n FROM loan GROUP BY loaned_on ORDER BY 1"
)
_FILE = (
    _RUNNING,
    "SELECT date_trunc('month', loaned_on), COUNT(*) FROM loan GROUP BY 1",
    "SELECT date_trunc('quarter', loaned_on), COUNT(*) FROM loan GROUP BY 1",
    "SELECT COUNT(*) FROM loan",
)
_EXACT = """
SELECT (SELECT count(*) FROM loan WHERE loaned_on = day)
FROM (SELECT unnest(range(DATE '2025-01-01', DATE '2026-01-01', INTERVAL 1 DAY))::DATE AS day) ORDER BY day
"""
_TOTAL = Fraction(3, 10)
"""Epsilon of the file, rho 0.045."""
_NORM = "max_norm = { loaned_on = 9 }\n"
_NORMS = 'max_norm = { loaned_on = 10, "week(loaned_on)" = 18, "month(loaned_on)" = 36, "quarter(loaned_on)" = 42 }\n'
_BOUND = "max_rows   = 60\n"


_LEDGERS = 200


@dataclass(frozen=True)
class _Table:
    """The noise on running totals. `variances`: of each; `sampled`: of many ledgers, shape (days, ledgers)."""

    variances: Any
    sampled: Any

    @classmethod
    def of(cls, rows: ReleasedRows) -> _Table:
        """Return that of a release by days, from what was drawn of them and of other groupings."""
        (told,), unit = rows.fitted[0], rows.plan.measurements[0].denominator
        assert rows.groups is not None
        days = np.array([str(day) for (day,) in rows.groups.tuples()])
        order = np.argsort(days)
        sums = np.zeros((len(days), len(days)))
        sums[:, order] = np.tril(np.ones_like(sums))
        variances = told.design.variances(told.wanted.spread(sums))
        assert variances is not None
        noises = np.cumsum(told.noise(_LEDGERS)[order], axis=0)
        return cls(variances.sum(axis=0) / unit**2, noises / unit)

    def figure(self, name: str, bias: Any, limit: float, said: str, first: int = 0) -> Figure:
        """Return how far off totals from one on are, with what bounds leave out."""
        expected = math.sqrt((bias**2 + self.variances)[first:].mean())
        drawn = math.sqrt(((bias[:, None] + self.sampled)[first:] ** 2).mean())
        return Figure(name, expected, limit, "rows", f"{drawn:.0f} in {_LEDGERS} ledgers; {said}")


def measure(size: Size) -> Iterator[Figure]:
    """Yield how far off running totals are, by themselves and beside months, quarters and the total."""
    campus = make_campus(size)
    text = campus.read_text("utf-8").replace("[privacy]\n", '[privacy]\naccounting = "zcdp"\n', 1)
    with duckdb.connect(str(campus.with_name("campus.duckdb")), read_only=True) as connection:
        counts = connection.execute(_EXACT).fetchall()
    truth = list(itertools.accumulate(count for (count,) in counts))
    for norm, named, alone, beside, last in (
        ("", "", 2_500, 1_000, 350),
        (_NORM, " with a norm of days", 1_200, 500, 350),
        (_NORMS, " with norms of days and longer", 900, 300, 300),
    ):
        changed, path = text.replace(_BOUND, norm + _BOUND, 1), campus.with_name(f"running-{len(norm)}.toml")
        with _opened(path, changed, "exact", ZeroNoise()) as session:
            totals = session.execute(_RUNNING).rows
        bias = np.array([row[1] for row in totals], dtype=float) - truth
        with _opened(path, changed, "alone") as session, _telling() as told:
            (strategy,) = session.explain(_RUNNING).plan.strategies
            session.execute(_RUNNING)
        days = f"{strategy.alone:.0f} from days alone"
        yield told[0].figure(f"running total at 0.1{named}, rms", bias, alone, days)
        with _opened(path, changed, "file") as session, _telling() as told:
            cost = _run_file(session)
        name = f"the same beside months, quarters and total{named}"
        yield told[0].figure(name, bias, beside, cost)
        cut = f"{-bias[-1]:.0f} of it is what bounds leave out"
        yield told[0].figure(f"its last row{named}", bias, last, cut, len(bias) - 1)


def _run_file(session: Session) -> str:
    """Release the file, and return what it costs, in words."""
    statements = read_batch(session, ";\n".join(("SET dpsql.epsilon = 0.15", *_FILE)))
    alone_at = price_batch(session, statements).charge.rho_atto / ATTO
    statements = read_batch(session, ";\n".join(_FILE))
    price = price_batch(session, statements, _TOTAL).charge
    run_batch(session, statements, _TOTAL, price)
    return f"rho {price.rho_atto / ATTO:.4f}; {alone_at:.4f} where each is as exact as alone at 0.15"


@contextmanager
def _telling() -> Iterator[list[_Table]]:
    """Give the table behind the days of the first statement that is answered in the block."""
    answer, told = Session.answer, list[_Table]()

    def see(
        self: Session, prepared: Any, runner: PlanRunner, charge: Any, public: Any, kept: Any,
        rows: Any = None, *rest: Any,
    ) -> Any:  # fmt: skip
        if not told:
            told.append(_Table.of((rows or runner.rows)[0]))
        return answer(self, prepared, runner, charge, public, kept, rows, *rest)

    with patch.object(Session, "answer", see):
        yield told


def _opened(path: Path, text: str, name: str, noise: Noise | None = None) -> Session:
    """Open a session on a ledger of its own."""
    own = path.with_name(f"{path.stem}-{name}.toml")
    own.write_text(text.replace("campus-ledger", own.stem, 1), "utf-8")
    open_ledger(parse_policy(own.read_text("utf-8"), own), create=True)
    session = Session.open(own)
    return session if noise is None else replace(session, _noise=noise)
