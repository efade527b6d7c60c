"""A query over rows that belong to persons, against COUNT(DISTINCT person) of the same groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

from benchmarks.dataset import WEIGHED, by_weights, open_bench
from benchmarks.figure import Figure, Size, Times, compare

__all__ = ["measure"]

_AGGREGATES = ("COUNT(DISTINCT owner)", "COUNT(*)", "AVG(minutes)", "COUNT(*), SUM(minutes)")
_LIMITS = {20: 3.0, 3: 6.0}
"""max_groups that does not bind, and one that does: people are ranked, and half of them have rows cut."""

_SUMS = ("SUM(minutes)", "SUM(month)", "SUM(minutes + month)", "SUM(minutes - month)")
_ABOVE = {"nobody": (60, 2.0), "half of the people": (9, 3.0)}
"""max_rows that nobody has more rows than, and that half of the people have: each has ten in the mean."""


def measure(size: Size) -> Iterator[Figure]:
    """Yield the ratio of the whole statement to the analyst's COUNT(DISTINCT owner)."""
    yield from _without_groups(size)
    for max_rows in WEIGHED:
        with open_bench(size, max_groups=20, max_rows=max_rows) as bench:
            yield by_weights(bench, size, max_rows, "visit", "//")
    for max_groups, limit in _LIMITS.items():
        with open_bench(size, max_groups=max_groups) as bench:
            bench.session.execute("SET dpsql.reuse = off")
            for key, aggregates in itertools.product(("month", "major"), _AGGREGATES):
                exact = f"SELECT {key}, COUNT(DISTINCT owner) FROM visit GROUP BY {key}"
                sql = f"SELECT {key}, {aggregates} FROM visit GROUP BY {key}"
                bench.clocks.reset()
                bench.session.execute(sql)
                is_ranked = "ROW_NUMBER" in bench.clocks.queries[0]
                assert is_ranked == (max_groups == 3 and "DISTINCT" in aggregates)
                raw = partial(Times.of, partial(bench.run_exact, exact))
                ours = partial(Times.of, partial(bench.session.execute, sql))
                found = compare(raw, ours, max(2, size.repeats // 2))
                yield Figure(
                    f"max_groups {max_groups}, {aggregates} by {key}",
                    found.ratio,
                    limit,
                    "x",
                    str(found),
                )


def _without_groups(size: Size) -> Iterator[Figure]:
    """Yield the same for one, two and four sums of all rows."""
    exact = "SELECT COUNT(DISTINCT owner) FROM visit"
    for above, (max_rows, limit) in _ABOVE.items():
        with open_bench(size, max_groups=20, max_rows=max_rows) as bench:
            bench.session.execute("SET dpsql.reuse = off")
            for count in (1, 2, 4):
                sql = f"SELECT {', '.join(_SUMS[:count])} FROM visit"
                raw = partial(Times.of, partial(bench.run_exact, exact))
                ours = partial(Times.of, partial(bench.session.execute, sql))
                raw(), ours()
                found = compare(raw, ours, max(2, size.repeats // 2))
                yield Figure(
                    f"{count} sums of all rows, {above} above R", found.ratio, limit, "x", str(found)
                )
