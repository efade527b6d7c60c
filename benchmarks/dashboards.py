"""What one table behind every dashboard is to show, each figure beside its limit: other measurements, in one run.

Numbers of one release and asked one by one, running totals, norms, keys that are found, values by rank, and averages
of two columns.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from benchmarks import levers, norms, running_totals, whole_groups
from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size
from dpsql import Session
from dpsql.engine import spine
from dpsql.engine.dataset import open_ledger
from dpsql.policy import parse_policy

__all__ = ["measure"]

_AVERAGES = "SELECT AVG(gpa) AS gpa, AVG(enrolled) AS enrolled FROM student"


def measure(size: Size) -> Iterator[Figure]:
    """Yield the figures."""
    for module in (whole_groups, running_totals, norms, levers):
        yield from module.measure(size)
    yield _two_averages(size)


def _two_averages(size: Size) -> Figure:
    """Return how much narrower two columns' averages are where both are drawn as one vector (soundness.md 1.22)."""
    campus = make_campus(size)
    joined, apart = ([_widths(campus, f"averages-{n}-{k}", n == 0) for k in range(3)] for n in range(2))
    ratios = [
        statistics.median(before) / statistics.median(now)
        for before, now in zip(zip(*apart, strict=True), zip(*joined, strict=True), strict=True)
    ]
    said = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    name = "two columns' averages, pure: bars of those drawn apart over those of one vector"
    return Figure(name, min(ratios), 1.5, "x", said, is_rate=True)


def _widths(campus: Path, name: str, is_joined: bool) -> list[float]:
    """Return how wide the bars of two averages are in a ledger of their own."""
    path = campus.with_name(f"{name}.toml")
    path.write_text(campus.read_text("utf-8").replace("campus-ledger", name, 1), "utf-8")
    open_ledger(parse_policy(path.read_text("utf-8"), path), create=True)
    together = spine.find_together if is_joined else lambda plan: None
    with Session.open(path) as session, patch.object(spine, "find_together", together):
        session.execute("SET dpsql.intervals = 0.95")
        answer = session.execute(_AVERAGES)
    names = [column.name for column in answer.columns]
    ends = [(names.index(name), names.index(f"{name[:-4]}_high")) for name in names if name.endswith("_low")]
    (row,) = answer.rows
    return [float(row[high]) - float(row[low]) for low, high in ends]  # type: ignore[arg-type]
