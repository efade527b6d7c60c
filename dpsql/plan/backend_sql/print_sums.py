"""The innermost rows of a release's query, and the counts and sums over them that its coordinates are made of.

House rule: a value is summed as `print_value` clamps it, a mask is printed as a truth assignment of flags that
each row has computed once; nothing else of a row is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...relation.expressions import Expr, fields_of
from ...relation.intervals import narrowed_facts
from ..measures.measurements import WEIGHT, BoundingQuery, Mask, Measurement, Numbered, Product
from ..privacy.ownership import path_begins, without_path
from ..privacy.rows import OwnedRows
from .print_source import SourcePrinter, numbered
from .print_value import MAX_ROWS, PrintedValue, print_value


class InnerRows:
    """The relation r: keys, values and flags of the rows that pass the filter and have an owner.

    `beside`: the name of what stands in FROM too, one row of it for each unit whose rows are wanted.
    `is_kept`: r is a step that is read more than once, by `of_units` too: where nobody else asks for the owner, by
    its path from r. `by_number`: the source that has a number for each row of a person, and the most that is taken.
    """

    def __init__(
        self, sources: SourcePrinter, rows: OwnedRows, keys: tuple[Expr, ...], read: Iterable[Expr], *,
        shows_unit: bool = False, beside: str = "", is_kept: bool = False,
        by_number: tuple[Numbered, int] | None = None,
    ) -> None:  # fmt: skip
        self.unit, self.heavy = (numbered(name, len(rows.owner)) for name in ("u", "hu"))
        self.keys, self.dialect = keys, sources.dialect
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
        if (
            not is_plain
        ):  # a source that is cut orders rows by what is read of it, which is one thing in one statement
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
        select += [f"{self.printer.key(key)} AS k{i}" for i, key in enumerate(self.keys)]
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
                early=early, later=self.inner.later,
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
