"""The backend query of a choice by rank: the rows of each group near the wanted rank, and what is below them.

    >>> backend_sql("SELECT MEDIAN(age) FROM person")
    WITH r AS NOT MATERIALIZED (SELECT (CAST(z0 AS BIGINT) - CAST(0 AS BIGINT)) AS v, 1 AS w
        FROM (SELECT CAST((CASE WHEN "age" BETWEEN 0 AND 100 THEN "age" WHEN "age" < 0 THEN 0
          WHEN "age" > 100 THEN 100 END) AS BIGINT) AS z0 FROM "main"."person") AS r),
      g AS (SELECT v AS cell, CAST(SUM(w) AS BIGINT) AS w FROM r GROUP BY cell),
      c AS (SELECT cell, w, CAST(SUM(w) OVER (ORDER BY cell ROWS UNBOUNDED PRECEDING) AS BIGINT) - w AS less,
        CAST(SUM(w) OVER () AS BIGINT) AS n FROM g WHERE cell IS NOT NULL),
      d AS (SELECT cell AS v, less, w, n FROM c WHERE CAST(2 AS BIGINT) * (less + w) - CAST(1 AS BIGINT) * n > -65
        AND CAST(2 AS BIGINT) * less - CAST(1 AS BIGINT) * n < 65)
    SELECT v, less, w, n FROM d

House rules (soundness.md 1.20):

1. The weights are those that `print_release` prints: a unit with t > R rows that have a value has R·U div t for each,
   all others U.
2. What is returned is decided by exact sums and public numbers: rows that miss the wanted rank by less than T.
3. Two passes read the same rows: first the weights of public cells, then the values of the cells near the rank.
   All is one statement, hence one snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...mechanisms import Near
from ...records import dataclass
from ...relation.intervals import LOG_PARTS, Lattice, LogLattice, rung_of
from ..dialects.dialect import Dialect
from .print_value import MAX_ROWS

_CELLS = 12
_CELLS_OF_A_GROUP = 10


def print_candidate(z: str, lattice: Lattice, dialect: Dialect) -> str:
    """Return the number, from 0, of the candidate that a value stands at, NULL of NULL. `z`: a BIGINT of it."""
    if not isinstance(lattice, LogLattice):
        return f"({z} - {dialect.cast(str(lattice.low), 'BIGINT')})"
    branches = []
    for shift in range(max(abs(lattice.low), abs(lattice.high)).bit_length()):
        near, far, rungs = LOG_PARTS << shift, LOG_PARTS << (shift + 1), shift * LOG_PARTS
        if not shift:
            branches.append((-far, far, z))
            continue
        up = 2**shift - 1
        for first, last, size, sign in (
            (near + 1, far, f"{z} + {up}", ""),
            (-far, -near - 1, f"{up} - {z}", "-"),
        ):
            branches.append((first, last, f"{sign}({rungs} + {dialect.shifted_right(f'({size})', shift)})"))
    cases = " ".join(
        f"WHEN {z} BETWEEN {max(first, lattice.low)} AND {min(last, lattice.high)} THEN {rung}"
        for first, last, rung in branches
        if first <= lattice.high and last >= lattice.low
    )
    return f"((CASE {cases} END) - {dialect.cast(str(rung_of(lattice.low)), 'BIGINT')})"


@dataclass(frozen=True, slots=True)
class WindowPrinter:
    """Prints the steps from rows r (keys, candidate v, weight w) to the window of each group.

    `candidates`: how many there are. `near`: the ranks of which the rows are read.
    `keys`: names; those in `nullable` may be NULL. `in_domain`: the HAVING clause that keeps declared groups alone.
    `unit`: most that a row weighs.
    """

    dialect: Dialect
    candidates: int
    near: tuple[Near, ...]
    unit: int
    keys: Sequence[str]
    nullable: frozenset[str]
    in_domain: str

    def steps(self) -> tuple[list[str], str]:
        """Return the WITH steps over r, and the name of the last: keys, v, less, w, n."""
        shift = max(0, (self.candidates - 1).bit_length() - (_CELLS_OF_A_GROUP if self.keys else _CELLS))
        cell = self.dialect.shifted_right("v", shift) if shift else "v"
        by = ", ".join([*self.keys, "cell"])
        steps = [
            f"g AS (SELECT {self._listed()}{cell} AS cell, {self._sum('w')} AS w FROM r GROUP BY {by}{self.in_domain})",
            f"c AS (SELECT {by}, w, {self._sum('w', self._over('cell'))} - w AS less, "
            f"{self._sum('w', self._over())} AS n FROM g WHERE cell IS NOT NULL)",
        ]
        if not shift:
            shown = f"SELECT {self._listed()}cell AS v, less, w, n FROM c WHERE {self._is_near()}"
            return [*steps, f"d AS ({shown})"], "d"
        same = [self._same(f"r.{key}", f"s.{key}", key in self.nullable) for key in self.keys]
        on = " AND ".join([*same, f"{self.dialect.shifted_right('r.v', shift)} = s.cell"])
        group = ", ".join([*(f"r.{key}" for key in self.keys), "s.cell", "r.v"])
        steps += [
            f"s AS (SELECT {by}, less, n FROM c WHERE {self._is_near()})",
            f"h AS (SELECT {group}, {self._sum('r.w')} AS w, MIN(s.less) AS base, MIN(s.n) AS n "
            f"FROM r JOIN s ON {on} GROUP BY {group})",
            f"e AS (SELECT {self._listed()}v, base + {self._sum('w', self._over('v', 'cell'))} - w AS less, "
            f"w, n FROM h)",
            f"d AS (SELECT {self._listed()}v, less, w, n FROM e WHERE {self._is_near()})",
        ]
        return steps, "d"

    def _is_near(self) -> str:
        """Return the test that a row, or a cell, misses one of the wanted ranks by less than T."""
        tests = [self._misses(one) for one in self.near]
        return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"

    def _misses(self, one: Near) -> str:
        wide = one.q * self.unit * MAX_ROWS + abs(one.offset) + one.clamp >= 2**62
        q, p = (self.dialect.cast(str(factor), "HUGEINT" if wide else "BIGINT") for factor in (one.q, one.p))
        return (
            f"{q} * (less + w) - {p} * n > {one.offset - one.clamp} "
            f"AND {q} * less - {p} * n < {one.offset + one.clamp}"
        )

    def _listed(self) -> str:
        return "".join(f"{key}, " for key in self.keys)

    def _sum(self, what: str, over: str = "") -> str:
        return self.dialect.cast(f"SUM({what}){over}", "BIGINT")

    def _over(self, order: str = "", also: str = "") -> str:
        """Return a window over a group's rows, in some order up to the row itself."""
        parts = [*self.keys, *([also] if also else [])]
        by = [f"PARTITION BY {', '.join(parts)}"] if parts else []
        by += [f"ORDER BY {order} ROWS UNBOUNDED PRECEDING"] if order else []
        return f" OVER ({' '.join(by)})"

    def _same(self, left: str, right: str, may_be_null: bool) -> str:
        return self.dialect.same(left, right) if may_be_null else f"{left} = {right}"
