"""Running totals of the demo's loans over a year in a zCDP dataset: how far off they are, by days alone and by levels.

Deviations are those of what is told, over many ledgers: the numbers against the exact ones. A file is split so that
all of its epsilon is spent; what it costs where each statement is as exact as alone stands beside it. Norms are near
what 99.95 % of the people have by days and weeks, and 99.9 % by months and quarters: at 99.5 % all over they leave out
730 of the 300,000 loans, which no budget brings back.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size
from dpsql import Session
from dpsql.engine.batch import price_batch, read_batch, run_batch
from dpsql.engine.dataset import open_ledger
from dpsql.mechanisms import ATTO
from dpsql.policy import parse_policy

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
_NORMS = 'max_norm = { loaned_on = 10, "week(loaned_on)" = 18, "month(loaned_on)" = 34, "quarter(loaned_on)" = 40 }\n'
_BOUND = "max_rows   = 60\n"


def measure(size: Size) -> Iterator[Figure]:
    """Yield how far off running totals are, by themselves and beside months, quarters and the total."""
    campus = make_campus(size)
    text = campus.read_text("utf-8").replace("[privacy]\n", '[privacy]\naccounting = "zcdp"\n', 1)
    ledgers = 20 if size.rows >= 1_000_000 else 2
    with duckdb.connect(str(campus.with_name("campus.duckdb")), read_only=True) as connection:
        counts = connection.execute(_EXACT).fetchall()
    truth = list(itertools.accumulate(count for (count,) in counts))
    for norm, alone, beside, last in (
        ("", 2_500, 1_000, 350),
        (_NORM, 1_200, 500, 350),
        (_NORMS, 900, 300, 300),
    ):
        changed = text.replace(_BOUND, norm + _BOUND, 1)
        found = [
            _asked(campus.with_name(f"running-{len(norm)}-{k}.toml"), changed, truth) for k in range(ledgers)
        ]
        named = {"": "", _NORM: " with a norm of days", _NORMS: " with norms of days and longer"}[norm]
        (day,) = {f"{one.alone:.0f} from days alone" for one, _, _, _ in found}
        yield Figure(
            f"running total at 0.1{named}, rms", _rms([one for _, one, _, _ in found]), alone, "rows", day
        )
        both, costs = [one for _, _, one, _ in found], {one for *_, one in found}
        yield Figure(f"the same beside months, quarters and total{named}", _rms(both), beside, "rows", *costs)
        ends = [one[-1] for one in both]
        mean = sum(ends) / len(ends)
        apart = math.sqrt(sum((one - mean) ** 2 for one in ends) / max(1, len(ends) - 1))
        bias = f"{mean:.0f} in the mean, which bounds leave out, and {apart:.0f} around it"
        yield Figure(f"its last row{named}", _rms([ends]), last, "rows", bias)


def _asked(path: Path, text: str, truth: Sequence[int]) -> tuple[Any, list[float], list[float], str]:
    """Return the strategy of a running total by itself, and its errors; then those in a file, of another ledger, and
    what it costs, in words."""
    with _opened(path, text.replace("campus-ledger", f"{path.stem}-alone", 1)) as session:
        (strategy,) = session.explain(_RUNNING).plan.strategies
        alone = session.execute(_RUNNING).rows
    with _opened(path, text.replace("campus-ledger", f"{path.stem}-file", 1)) as session:
        statements = read_batch(session, ";\n".join(("SET dpsql.epsilon = 0.15", *_FILE)))
        alone_at = price_batch(session, statements).charge.rho_atto / ATTO
        statements = read_batch(session, ";\n".join(_FILE))
        price = price_batch(session, statements, _TOTAL).charge
        beside = run_batch(session, statements, _TOTAL, price)[0].rows
    cost = f"rho {price.rho_atto / ATTO:.4f}; {alone_at:.4f} where each is as exact as alone at 0.15"
    errors = [
        [float(row[1]) - exact for row, exact in zip(rows, truth, strict=True)] for rows in (alone, beside)
    ]
    return strategy, errors[0], errors[1], cost


def _rms(errors: Sequence[Sequence[float]]) -> float:
    each = [error for some in errors for error in some]
    return math.sqrt(sum(error**2 for error in each) / len(each))


def _opened(path: Path, text: str) -> Session:
    path.write_text(text, "utf-8")
    policy = parse_policy(text, path)
    open_ledger(policy, create=True)
    return Session.open(path)
