"""A query over rows that belong to persons, against COUNT(DISTINCT person) of the same groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

from benchmarks.dataset import open_bench
from benchmarks.figure import Figure, Size, Times, compare

__all__ = ["measure"]

_AGGREGATES = ("COUNT(DISTINCT owner)", "COUNT(*)", "AVG(minutes)", "COUNT(*), SUM(minutes)")
_LIMITS = {20: 3.0, 3: 6.0}
"""max_groups that does not bind, and one that does: people are ranked, and half of them have rows cut."""


def measure(size: Size) -> Iterator[Figure]:
    """Yield the ratio of the whole statement to the analyst's COUNT(DISTINCT owner)."""
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
