"""A query over rows that are persons, against the analyst's own exact query in the same database."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.dataset import Bench, open_bench
from benchmarks.figure import Figure, Size, Times, compare

__all__ = ["measure"]

_AGGREGATES = ("SUM({0})", "AVG({0})", "COUNT(*), SUM({0}), AVG({0})")
_COLUMNS = {
    "whole": "integer",
    "held": "integer NOT NULL",
    "money": "decimal",
    "real": "double",
    "stray": "integer, 1 % outside its bounds",
}
_GROUPED_LIMITS = {"whole": 2.0, "held": 2.0, "money": 2.0, "real": 2.5, "stray": None}


def measure(size: Size) -> Iterator[Figure]:
    """Yield the ratio of the engine's time to the raw query's, for each type, grouped and not, and our own work."""
    own: list[float] = []
    with open_bench(size) as bench:
        bench.session.execute("SET dpsql.reuse = off")
        for column, type_name in _COLUMNS.items():
            for aggregates in _AGGREGATES:
                shown, name = aggregates.format(column), aggregates.format("x")
                limits = (
                    None if column == "stray" else (2.5 if column == "real" else 2.0),
                    None if column == "stray" else 4.0,
                )
                grouped = f"SELECT major, {shown} FROM person GROUP BY major"
                yield _compared(
                    f"grouped {name}, {type_name}", _GROUPED_LIMITS[column], grouped, bench, size, own
                )
                yield _compared(
                    f"ungrouped {name}, {type_name}",
                    limits[1],
                    f"SELECT {shown} FROM person",
                    bench,
                    size,
                    own,
                )
    yield Figure("our work outside the engines (processor), most of the above", max(own), 10, "ms")


def _compared(name: str, limit: float | None, sql: str, bench: Bench, size: Size, own: list[float]) -> Figure:
    """Compare a statement with the same text run raw; add the least processor time of our own work to `own`."""
    clocks = bench.clocks
    wholes: list[float] = []
    own_walls: list[float] = []
    own_processor: list[float] = []

    def raw() -> Times:
        return Times.of(partial(bench.run_exact, sql))

    def ours() -> Times:
        clocks.reset()
        whole = Times.of(partial(bench.session.execute, sql))
        wholes.append(whole.wall)
        own_walls.append(whole.wall - 1000 * (clocks.engine + clocks.fetching + clocks.sealed))
        own_processor.append(
            whole.processor - 1000 * (clocks.engine_cpu + clocks.fetching + clocks.sealed_cpu)
        )
        return Times(clocks.engine * 1000, clocks.engine_cpu * 1000)

    raw(), ours()
    found = compare(raw, ours, size.repeats)
    own.append(min(own_processor))
    where = f"{found}; the whole statement {min(wholes):.0f} ms, our own work {min(own_walls):.1f} ms"
    return Figure(name, found.ratio, limit, "x", f"{where} (processor {min(own_processor):.1f})")
