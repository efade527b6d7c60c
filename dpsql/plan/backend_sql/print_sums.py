"""The innermost rows of a release's query, and what is made of them: counts and sums, and choices by rank.

House rule: a value is summed as `print_private` clamps it, a mask is printed as a truth assignment of flags that
each row has computed once; nothing else of a row is looked at.

A choice by rank has a query of its own: the rows of each group near the wanted rank, and what is below them.

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

House rules of choices (soundness.md 1.20):

1. The weights are those that `print_release` prints: a unit with t > R rows that have a value has R·U div t for each,
   all others U.
2. What is returned is decided by exact sums and public numbers: rows that miss the wanted rank by less than T.
3. Two passes read the same rows: first the weights of public cells, then the values of the cells near the rank.
   All is one statement, hence one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...mechanisms import Near
from ...records import dataclass
from ...relation.expressions import Expr, fields_of
from ...relation.intervals import LOG_PARTS, Lattice, LogLattice, narrowed_facts, rung_of
from ..dialects.dialect import Dialect
from ..measures.measurements import WEIGHT, BoundingQuery, Mask, Measurement, Numbered, Product
from ..privacy.ownership import path_begins, without_path
from ..privacy.rows import OwnedRows
from .print_private import MAX_ROWS, PrintedValue, print_value
from .print_source import SourcePrinter, numbered


class InnerRows:
    """The relation r: keys, values and flags of the rows that pass the filter and have an owner.

    `sources`: what prints the tables of the query that it is a part of.
    `beside`: the name of what stands in FROM too, one row of it for each unit whose rows are wanted.
    `is_kept`: r is a step that is read more than once, by `of_units` too: where nobody else asks for the owner, by
    its path from r. `by_number`: the source that has a number for each row of a person, and the most that is taken.
    `longest`: of each key, as `PrivatePrinter.key` has it; none: all texts are cut.
    """

    def __init__(
        self, sources: SourcePrinter, rows: OwnedRows, keys: tuple[Expr, ...], read: Iterable[Expr], *,
        shows_unit: bool = False, beside: str = "", is_kept: bool = False,
        by_number: tuple[Numbered, int] | None = None, longest: Sequence[int | None] = (),
    ) -> None:  # fmt: skip
        self.longest = longest or (None,) * len(keys)
        self.unit, self.heavy = (numbered(name, len(rows.owner)) for name in ("u", "hu"))
        self.sources, self.keys, self.dialect = sources, keys, sources.dialect
        nullable = [part for part in rows.owner if not rows.columns[part.index].enforced.not_null]
        items, predicate = rows.items, rows.predicate
        is_plain = not any(item.source.parts for item in items)
        if not shows_unit and not beside and is_plain and self.dialect.has_no_orphans:
            items, predicate = without_path(rows)
        has_path = is_kept and len(items) < len(rows.items)
        shows_unit = shows_unit or (is_kept and not has_path)
        owner = rows.owner if shows_unit or beside else tuple(nullable)
        first = path_begins(rows, items) if has_path else frozenset()
        used = fields_of(*keys, *read, *owner) | first
        # a source that is cut orders rows by what is read of it, which is one thing in one statement
        if not is_plain:
            used |= fields_of(*rows.owner)
        self.printer, self.from_, self.where = sources.block(
            items, predicate, used, beside=bool(beside), by_number=by_number
        )
        self.where += [f"({self.printer.owner(part)} IS NOT NULL)" for part in nullable]
        unit = [self.printer.owner(part) for part in rows.owner] if shows_unit or beside else []
        self.first = (
            [f"{sql} AS {name}" for sql, name in zip(unit, self.unit, strict=True)] if shows_unit else []
        )
        if beside:
            self.from_ += f" CROSS JOIN {beside}"
            self.where += self._is_of(beside, unit)
            self.first += self._of(beside)
        self.first += [f"{self.printer.row[index]} AS j{index}" for index in sorted(first)]
        self._path = sources.path(rows, items) if has_path else ("r", [], [f"r.{name}" for name in self.unit])
        self.items: dict[str, str] = {}
        self.later_items: dict[str, str] = {}
        self.filters: dict[Mask, str] = {}
        self._flags: dict[Expr, str] = {}

    def _of(self, beside: str) -> list[str]:
        return [f"{beside}.w"]

    def _is_of(self, beside: str, unit: Iterable[str]) -> list[str]:
        return [f"({sql} = {beside}.{name})" for sql, name in zip(unit, self.heavy, strict=True)]

    def item(self, sql: str, prefix: str) -> str:
        """Return the name of a column of r, adding it once."""
        return self._named(self.items, sql, prefix)

    def later(self, sql: str, prefix: str) -> str:
        """Return the name of a column of r that is computed from others of r, adding it once."""
        return self._named(self.later_items, sql, prefix)

    def _named(self, items: dict[str, str], sql: str, prefix: str) -> str:
        if sql not in items:
            names = [*self.items.values(), *self.later_items.values()]
            items[sql] = f"{prefix}{sum(name.startswith(prefix) for name in names)}"
        return items[sql]

    def mask(self, mask: Mask) -> str | None:
        """Return a mask as a predicate over r; None for all rows."""
        parts = []
        for predicate, truth in mask.terms:
            flag = self._flags.get(predicate)
            if flag is None:
                flag = self._flags[predicate] = self.item(self.printer.boolean(predicate), "f")
            parts.append(f"{flag} IS TRUE" if truth else f"{flag} IS NOT TRUE")
        return " AND ".join(parts) if parts else None

    def only(self, mask: Mask) -> str:
        """Return a mask as an aggregate's FILTER."""
        if mask not in self.filters:
            where = self.mask(mask)
            self.filters[mask] = f" FILTER (WHERE {where})" if where else ""
        return self.filters[mask]

    def sql(self) -> str:
        """Return r, with what has been asked of it."""
        select = [*self.first]
        pairs = zip(self.keys, self.longest, strict=True)
        select += [f"{self.printer.key(key, longest=most)} AS k{i}" for i, (key, most) in enumerate(pairs)]
        select += [f"{sql} AS {name}" for sql, name in self.items.items()]
        clause = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        rows = f"SELECT {', '.join(select) or '1 AS one'} FROM {self.from_}{clause}"
        if not self.later_items:
            return rows
        later = [f"{sql} AS {name}" for sql, name in self.later_items.items()]
        return f"SELECT {', '.join(['r.*', *later])} FROM ({rows}) AS r"

    def of_units(
        self, where: Iterable[str], *, beside: str = "", whole: bool = False, more: Iterable[str] = ()
    ) -> str:
        """Return the units of the rows of step r as u, with `more`; `beside`: a relation; the rows of those in it.

        `whole`: the units with all that r has, which is u too where no path leads to it.
        The tables of a path may have columns of any name: all are said with their source.
        """
        from_, links, unit = self._path
        terms = [*links, *where, *(self._is_of(beside, unit) if beside else [])]
        shown = (
            self._of(beside)
            if beside
            else [*(f"{sql} AS {name}" for sql, name in zip(unit, self.unit, strict=True)), *more]
        )
        if beside or whole:
            shown = ["r.*"] if whole and from_ == "r" else [*shown, "r.*"]
        clause = f" WHERE {' AND '.join(terms)}" if terms else ""
        return f"SELECT {', '.join(shown)} FROM {from_}{f' CROSS JOIN {beside}' if beside else ''}{clause}"


class GroupSums:
    """Aggregates over r, as they stand: all of a group's rows at once."""

    def __init__(self, inner: InnerRows) -> None:
        self.inner, self.dialect = inner, inner.dialect
        self.parts: dict[str, str] = {}
        self.last: tuple[Measurement, PrintedValue] | None = None

    def named(self, sql: str, prefix: str) -> str:
        """Return how an aggregate over r is read where coordinates are computed."""
        return sql

    def rows(self, measurement: Measurement, mask: Mask) -> str:
        return self.typed(measurement, self.named(f"COUNT(*){self.inner.only(mask)}", "c"))

    def present(self, measurement: Measurement, mask: Mask) -> str:
        return self.typed(measurement, self.named(self._present(measurement, mask), "c"))

    def total(self, measurement: Measurement, mask: Mask) -> str:
        total = self._value(measurement).sum(self.inner.only(mask), self._present(measurement, mask))
        return self.named(self._narrow(measurement, total), "s")

    def squares(self, measurement: Measurement, mask: Mask) -> str:
        """Return Σ (z - L)²; each square fits 64 bits, as z - L <= 2^30, and each product."""
        above = self._value(measurement).above(measurement.known_lattice.low)
        squares = self._added(f"{above} * {above}", measurement.known_lattice.width**2, mask)
        return self.named(self._narrow(measurement, squares), "q")

    def products(self, measurement: Product, mask: Mask) -> str:
        left, right = (self._value(side).above(side.known_lattice.low) for side in measurement.sides)
        widths = [side.known_lattice.width for side in measurement.sides]
        products = self._added(f"{left} * {right}", widths[0] * widths[1], mask)
        return self.named(self._narrow(measurement, products), "q")

    def _added(self, integer: str, most: int, mask: Mask) -> str:
        """Return the sum of a BIGINT of each row, which is at most `most`; 0 for no rows."""
        return f"COALESCE(SUM({self.dialect.summed(integer, 'BIGINT', None)}){self.inner.only(mask)}, 0)"

    def units(self, mask: Mask) -> str:
        return f"COUNT(*){self.inner.only(mask)}"

    def values(self, measurement: Measurement, mask: Mask) -> str:
        assert measurement.value is not None
        name = self.inner.item(self.inner.printer.key(measurement.value), "v")
        return f"COUNT(DISTINCT {name}){self.inner.only(mask)}"

    def _value(self, measurement: Measurement) -> PrintedValue:
        assert measurement.value is not None
        if self.last is None or self.last[0] is not measurement:  # its masks come one after the other
            early = measurement.query is BoundingQuery.RANKED and not measurement.bounding.per_row
            shown = print_value(
                self.inner.printer, self.inner.item, measurement.value, measurement.known_lattice,
                early=early, is_shared=measurement.bounding.per_row and measurement.size > 1,
                later=self.inner.later,
            )  # fmt: skip
            self.last = measurement, shown
        return self.last[1]

    def _present(self, measurement: Measurement, mask: Mask) -> str:
        """Return the count of values; one that is never NULL is counted by its rows where units have many."""
        count = self._value(measurement).count if self._may_be_null(measurement) else "*"
        return f"COUNT({count}){self.inner.only(mask)}"

    def _may_be_null(self, measurement: Measurement) -> bool:
        assert measurement.value is not None
        return (
            measurement.bounding.per_row or narrowed_facts(measurement.value, self.inner.printer.env).nullable
        )

    def typed(self, measurement: Measurement, sql: str) -> str:
        return self.dialect.cast(sql, "HUGEINT") if integer_type(measurement) == "HUGEINT" else sql

    def _narrow(self, measurement: Measurement, total: str) -> str:
        """Return a sum as 64 bits where it cannot pass them, else as so many that its products cannot pass those."""
        is_narrow = integer_type(measurement) == "BIGINT"
        return f"CAST({total} AS BIGINT)" if is_narrow else self.dialect.wide_sum(total)


class PointedSums(GroupSums):
    """The same of rows of two people, which have the one who is pointed at as u: people are these."""

    def units(self, mask: Mask) -> str:
        (unit,) = self.inner.unit
        return f"COUNT(DISTINCT {unit}){self.inner.only(mask)}"


class WeighedSums(GroupSums):
    """The same of rows that count w times each, a whole number of at most `WEIGHT` either way."""

    def rows(self, measurement: Measurement, mask: Mask) -> str:
        return self._narrow(measurement, f"COALESCE(SUM(w){self.inner.only(mask)}, 0)")

    def present(self, measurement: Measurement, mask: Mask) -> str:
        if not self._may_be_null(measurement):
            return self.rows(measurement, mask)
        only, there = self.inner.only(mask), f"{self._value(measurement).count} IS NOT NULL"
        only = f"{only[:-1]} AND {there})" if only else f" FILTER (WHERE {there})"
        return self._narrow(measurement, f"COALESCE(SUM(w){only}, 0)")

    def total(self, measurement: Measurement, mask: Mask) -> str:
        total = self._added(self._value(measurement).whole(), measurement.known_lattice.reach, mask)
        return self._narrow(measurement, total)

    def _added(self, integer: str, most: int, mask: Mask) -> str:
        is_narrow = most * WEIGHT < 2**63
        whole = integer if is_narrow else self.dialect.cast(integer, "HUGEINT")
        kind = "BIGINT" if is_narrow else "HUGEINT"
        summed = self.dialect.summed(f"{whole} * w", kind, most * WEIGHT * MAX_ROWS)
        return f"COALESCE(SUM({summed}){self.inner.only(mask)}, 0)"


class UnitSums(GroupSums):
    """Aggregates over one unit's rows in a group, which are columns of p: coordinates are read from there."""

    def named(self, sql: str, prefix: str) -> str:
        if sql not in self.parts:
            self.parts[sql] = f"{prefix}{sum(name.startswith(prefix) for name in self.parts.values())}"
        return self.parts[sql]

    def sql(self, first: Iterable[str]) -> str:
        """Return the columns of p."""
        return ", ".join([*first, *(f"{sql} AS {name}" for sql, name in self.parts.items())])

    def names(self, first: Iterable[str]) -> list[str]:
        """Return the columns of p by their names, for another step."""
        return [*first, *self.parts.values()]


class KeptSums(UnitSums):
    """Sums of the columns of p, over the units that are kept."""

    def named(self, sql: str, prefix: str) -> str:
        return f"COALESCE(SUM({super().named(sql, prefix)}), 0)"

    def units(self, mask: Mask) -> str:
        if not mask.terms:
            return "COUNT(*)"
        return f"COUNT(*) FILTER (WHERE {super().named(f'COUNT(*){self.inner.only(mask)}', 'c')} > 0)"


class CappedSums(UnitSums):
    """Sums of the columns of p, of each unit in each group no more than `most`. No column of p is NULL."""

    def __init__(self, inner: InnerRows, most: int) -> None:
        super().__init__(inner)
        self.most = most

    def named(self, sql: str, prefix: str) -> str:
        return f"COALESCE(SUM(LEAST({super().named(sql, prefix)}, {self.most})), 0)"


def integer_type(measurement: Measurement) -> str:
    """Return the integer type of a measurement's sums and products: BIGINT where those of 2^40 rows cannot pass it.

    HUGEINT holds all: the terms that coordinates are added up from are at most 2^64 for a row, those of a moment at
    most 2^63, and are multiplied by weights of at most 2^20: of 2^40 rows they are below 2^125.
    """
    return "BIGINT" if measurement.largest * measurement.denominator < 2**63 // MAX_ROWS else "HUGEINT"


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
