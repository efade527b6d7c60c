"""A dashboard one tile after the other, and as a batch, at the same total: how far off its numbers are.

The error of a tile is the root of its mean variance over that of the same tile asked alone at the whole total; what is
compared is the root of its mean square over the tiles, from the laws of the draws that answered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size
from dpsql import Session
from dpsql.engine.batch import price_batch, read_batch
from dpsql.plan.planner import Plan
from dpsql.release.price import expected_error

__all__ = ["measure"]

_TOTAL = Fraction(1)
_TILES = (
    "SELECT COUNT(*) AS n FROM student",
    "SELECT major, COUNT(*) AS n FROM student GROUP BY major",
    "SELECT COUNT(*) AS n FROM student WHERE major = 'CS'",
    "SELECT COUNT(*) AS n FROM student WHERE major IN ('CS', 'Biology')",
    "SELECT AVG(gpa) AS gpa FROM student",
    "SELECT major, AVG(gpa) AS gpa FROM student GROUP BY major",
    "SELECT COUNT(*) AS n FROM loan",
    "SELECT branch, COUNT(*) AS n FROM loan GROUP BY branch",
)


def measure(size: Size) -> Iterator[Figure]:
    """Yield the error of eight tiles as a batch, of that one by one, and what they cost as exact as alone."""
    with Session.open(make_campus(size)) as session:
        script = ";\n".join(_TILES)
        alone = [_errors(_explained(session, tile, _TOTAL)) for tile in _TILES]
        price = price_batch(session, read_batch(session, script), _TOTAL)
        batch = [_errors(one.actual) for one in price.statements]
        usual = price_batch(session, read_batch(session, script)).charge.epsilon_nano
        usually = Fraction(usual, 10**9) / session.policy.defaults.epsilon  # so many of the tiles are charged
        each = [_errors(_explained(session, tile, _TOTAL / usually)) for tile in _TILES]
    apart, together = _off(each, alone), _off(batch, alone)
    where = f"{together:.2f} beside {apart:.2f} times the error of a tile that has all of epsilon 1"
    yield Figure("a dashboard as a batch, of one by one", together / apart, 0.9, "x", where)
    yield Figure("eight tiles, each as exact as alone", float(usually), 7, "times one's price")


def _explained(session: Session, sql: str, epsilon: Fraction) -> Plan:
    session.execute(f"SET dpsql.epsilon = {float(epsilon):f}")
    plan = session.explain(sql).plan
    session.execute("RESET dpsql.epsilon")
    return plan


def _errors(plan: Plan) -> list[float]:
    return [
        float(expected_error(release, index)[0])
        for release in plan.releases
        for index in range(len(release.formulas))
    ]


def _off(found: list[list[float]], alone: list[list[float]]) -> float:
    tiles = [
        sum((a / b) ** 2 for a, b in zip(one, other, strict=True)) / len(one)
        for one, other in zip(found, alone, strict=True)
    ]
    return math.sqrt(sum(tiles) / len(tiles))
