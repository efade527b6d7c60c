"""The backend query of a release: exact integers per group, contributions bounded in the SQL itself.

    >>> backend_sql("SELECT kind, COUNT(*) FROM card GROUP BY kind")
    SELECT k0, CAST(COUNT(*) AS BIGINT) AS m0_0
    FROM (SELECT CAST("kind" AS VARCHAR) COLLATE C AS k0 FROM "main"."card") AS r
    GROUP BY k0 HAVING ((k0 IN ('gold', 'plain'))) OR COUNT(*) < 0

House rules (soundness.md 1.5 and 1.9; laws L1 and L9):

1. Every figure that a sensitivity was computed from is an operator here: the value clamp, the joint
   clamp to M rows per (unit, group), the rank to C groups per unit, the d distinct values. The one
   exception is `Bounding.per_row`: the engine's own constraint holds one row per unit.
2. What is kept of a unit is a function of that unit's own rows and of constants: hashes with a total
   order, never LIMIT, never a volatile function.
3. Joint clamp: with c rows of the unit in the group and parts p_i >= 0 that sum to W·c, the scaled
   parts p_i·M div max(c, M) are >= 0 and sum to at most W·min(c, M); the last part takes what is left
   of that, so the parts sum to W·min(c, M) exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ...relation.catalog import Scalar
from ...relation.expressions import Expr, Field, Literal, StageValue, fields_of
from ...relation.intervals import Environment, narrowed_facts
from ...relation.types import SqlType
from ..dialects.dialect import Dialect
from ..dialects.quote import text
from ..measures.vectors import Bounding, Kind, Mask, Vector
from ..privacy.keys import Domain
from ..privacy.rows import Fan, Rows, StageColumn
from .print_source import SourcePrinter
from .print_value import MAX_ROWS, PrintedValue, print_value

__all__ = ["BackendQuery", "print_fan", "print_release"]


@dataclass(frozen=True, slots=True)
class BackendQuery:
    """One SELECT: the group keys first, then one integer column per coordinate of `vectors`, in order.

    Parameter $1 is the bounding salt when `salted`; the others are `stages`, numbered on.
    """

    sql: str
    vectors: tuple[int, ...]
    salted: bool
    stages: tuple[StageValue | StageColumn, ...]


def print_release(
    rows: Rows,
    keys: tuple[Expr, ...],
    vectors: tuple[Vector, ...],
    wanted: tuple[int, ...],
    bounding: Bounding,
    env: Environment,
    domains: tuple[Domain | None, ...],
    dialect: Dialect,
) -> tuple[BackendQuery, ...]:
    """Return the queries for the wanted vectors of a release (all of them, or those not in the store)."""
    plain = tuple(i for i in wanted if vectors[i].kind is not Kind.DISTINCT or bounding.per_row)
    queries = []
    if plain:
        main = _Query(rows, keys, vectors, bounding, env, domains, dialect, bounding.ranked)
        queries.append(main.main(plain))
    for number in wanted:
        if number not in plain:
            query = _Query(rows, keys, vectors, bounding, env, domains, dialect, True)
            queries.append(query.distinct(number))
    return tuple(queries)


def print_fan(fan: Fan, dialect: Dialect) -> BackendQuery:
    """Return the query of one number, how many rows of a public source can match one row."""
    sources = SourcePrinter(dialect, 1)
    sql = sources.fan(fan)
    stages = tuple(p for p in sources.parameters if isinstance(p, (StageValue, StageColumn)))
    return BackendQuery(sql, (), False, stages)


class _Query:
    """Prints one query of a release; the inner relation r computes keys, values and masks once."""

    def __init__(
        self, rows: Rows, keys: tuple[Expr, ...], vectors: tuple[Vector, ...],
        bounding: Bounding, env: Environment, domains: tuple[Domain | None, ...],
        dialect: Dialect, salted: bool,
    ) -> None:  # fmt: skip
        self.keys, self.dialect = keys, dialect
        self.vectors, self.bounding, self.domains = vectors, bounding, domains
        self.sources = SourcePrinter(dialect, 2 if salted else 1)
        assert isinstance(rows.owner, Field)
        used = [*keys, rows.owner, *(v.value for v in vectors if v.value is not None)]
        used += [term for v in vectors for mask in v.masks for term, _ in mask.terms]
        self.printer, self.from_, self.where = self.sources.block(
            rows.items, rows.predicate, fields_of(*used)
        )
        self.unit, self.unit_type = self.printer.owner(rows.owner), rows.owner.type
        if not rows.columns[rows.owner.index].enforced.not_null:
            self.where.append(f"({self.unit} IS NOT NULL)")
        self.items: dict[str, str] = {}
        self.parts: dict[str, str] = {}
        self.key_names = [f"k{i}" for i in range(len(keys))]

    # --- the inner rows ----------------------------------------------------------------------------

    def item(self, sql: str, prefix: str) -> str:
        """Return the name of a column of r, adding it once."""
        if sql not in self.items:
            self.items[sql] = f"{prefix}{sum(name.startswith(prefix) for name in self.items.values())}"
        return self.items[sql]

    def mask(self, mask: Mask) -> str | None:
        """Return a mask as a predicate over r; None for all rows."""
        parts = []
        for predicate, truth in mask.terms:
            flag = self.item(self.printer.boolean(predicate), "f")
            parts.append(f"{flag} IS TRUE" if truth else f"{flag} IS NOT TRUE")
        return " AND ".join(parts) if parts else None

    def rows(self) -> str:
        """Return the relation r: unit, keys, values and masks of the rows that pass the filter."""
        select = [] if self.bounding.per_row else [f"{self.unit} AS u"]
        select += [
            f"{self.printer.key(key)} AS {name}" for key, name in zip(self.keys, self.key_names, strict=True)
        ]
        select += [f"{sql} AS {name}" for sql, name in self.items.items()]
        clause = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"SELECT {', '.join(select) or '1 AS one'} FROM {self.from_}{clause}"

    def value(self, vector: Vector) -> PrintedValue:
        """Return how a summed value is clamped and turned into integers."""
        assert vector.value is not None
        assert vector.lattice is not None
        early = not self.bounding.per_row and vector.kind is not Kind.MOMENT
        return print_value(self.printer, self.item, vector.value, vector.lattice, early=early)

    # --- the main query ----------------------------------------------------------------------------

    def main(self, numbers: tuple[int, ...]) -> BackendQuery:
        coordinates: list[tuple[str, str]] = []
        steps: list[str] = []
        if self.bounding.per_row:
            for number in numbers:
                coordinates += self._per_row(number)
            source = self.rows()
            sql = self._grouped(f"({source}) AS r", coordinates, filtered=False)
        else:
            for number in numbers:
                coordinates += self._per_unit(number)
            parts = [f"{sql} AS {name}" for sql, name in self.parts.items()]
            columns = ", ".join(["u", *self.key_names, *parts])
            by = ", ".join(["u", *self.key_names])
            steps = [
                f"r AS ({self.rows()})",
                f"p AS (SELECT {columns} FROM r GROUP BY {by}{self._in_domain()})",
            ]
            source = "p"
            if self.bounding.ranked:
                steps += self._kept("p")
                source = "kept"
            sql = f"WITH {', '.join(steps)} " + self._grouped(f"{source} AS b", coordinates, filtered=True)
        return BackendQuery(sql, numbers, self.bounding.ranked, self._stages())

    def _stages(self) -> tuple[StageValue | StageColumn, ...]:
        return tuple(p for p in self.sources.parameters if isinstance(p, (StageValue, StageColumn)))

    def _in_domain(self) -> str:
        """Return the HAVING clause that keeps declared groups alone; nothing when none is declared.

        COUNT(*) < 0 is never true: it keeps the engine from testing the keys of every row before it
        groups them, which takes more time than the grouping.
        """
        pairs = zip(self.keys, self.key_names, self.domains, strict=True)
        tests = [self._member(name, key.type, domain) for key, name, domain in pairs if domain is not None]
        return f" HAVING ({' AND '.join(tests)}) OR COUNT(*) < 0" if tests else ""

    def _grouped(self, source: str, coordinates: list[tuple[str, str]], *, filtered: bool) -> str:
        """Return the outer SELECT; dates and timestamps leave as text, which holds every value they have."""
        shown = [
            f"{self.dialect.as_text(name)} AS {name}" if key.type.is_temporal else name
            for key, name in zip(self.keys, self.key_names, strict=True)
        ]
        columns = [
            *shown,
            *(f"{self.dialect.cast(sql, self._carrier(name))} AS {name}" for name, sql in coordinates),
        ]
        group = f" GROUP BY {', '.join(self.key_names)}" if self.keys else ""
        group += "" if filtered else self._in_domain()
        if None in self.domains:  # keys that are found come out in their own order, whatever the data's
            group += f" ORDER BY {', '.join(f'{name} NULLS LAST' for name in self.key_names)}"
        return f"SELECT {', '.join(columns) or 'COUNT(*) AS present'} FROM {source}{group}"

    def _carrier(self, name: str) -> str:
        return self._integer(self.vectors[int(name[1:].split("_")[0])])

    def _integer(self, vector: Vector) -> str:
        """Return the integer type of a vector's sums and totals: BIGINT where 2^40 units or rows cannot pass it."""
        reach = 1
        if vector.lattice is not None:
            reach = 4 * max(vector.lattice.width, vector.lattice.reach)
            reach *= 8 * reach if vector.kind is Kind.MOMENT else 1
        return "BIGINT" if reach * self.bounding.rows < 2**63 // MAX_ROWS else "HUGEINT"

    def _kept(self, source: str) -> list[str]:
        """Return the steps that keep C groups of each unit, in hashed order with the keys as the last word.

        Where few units can have more than C groups, or a unit has few of the many keys that are found, only
        units that have more are ranked, by their keys alone; else it is faster to rank all. The same are kept.
        """
        c, keys = self.bounding.groups, ", ".join(["u", *self.key_names])
        by = ", ".join([self._hash(), *(f"{name} NULLS LAST" for name in self.key_names)])
        number = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY {by}) AS rn"
        sizes = [len(domain.values) for domain in self.domains if domain is not None]
        if len(sizes) == len(self.domains) and math.prod(sizes) > 2 * c:
            return [
                f"ranked AS (SELECT {source}.*, {number} FROM {source})",
                f"kept AS (SELECT * FROM ranked WHERE rn <= {c})",
            ]
        return [
            f"heavy AS (SELECT u FROM {source} GROUP BY u HAVING COUNT(*) > {c})",
            f"ranked AS (SELECT {keys}, {number} FROM {source} WHERE u IN (SELECT u FROM heavy))",
            f"dropped AS (SELECT {keys} FROM ranked WHERE rn > {c})",
            f"kept AS ({self.dialect.without(source, 'dropped', ['u', *self.key_names])})",
        ]

    def _hash(self) -> str:
        parts = [f"CAST($1 AS {self.dialect.text})", self.dialect.hash_text("u", self.unit_type)]
        for key, name in zip(self.keys, self.key_names, strict=True):
            parts.append(f"COALESCE({self.dialect.hash_text(name, key.type)}, chr(30))")
        return self.dialect.hashed(parts)

    # --- coordinates with one row per unit -----------------------------------------------------------

    def _per_row(self, number: int) -> list[tuple[str, str]]:
        vector = self.vectors[number]
        found: list[str] = []
        for mask in vector.masks:
            where = self.mask(mask)
            only = f" FILTER (WHERE {where})" if where else ""
            if vector.kind in (Kind.COUNT, Kind.UNITS):
                found.append(f"COUNT(*){only}")
            elif vector.kind is Kind.DISTINCT:
                assert vector.value is not None
                name = self.item(self.printer.key(vector.value), "v")
                found.append(f"COUNT(DISTINCT {name}){only}")
            else:
                value = self.value(vector)
                rows = f"COUNT({value.count}){only}"
                total = self._narrow(vector, value.sum(only, rows))
                assert vector.lattice is not None
                squares = self._narrow(vector, value.squares(only, vector.lattice.low))
                found += self._from_sums(vector, rows, total, squares, f"COUNT(*){only}")
        return [(f"m{number}_{i}", sql) for i, sql in enumerate(found)]

    def _from_sums(self, vector: Vector, rows: str, total: str, squares: str, everyone: str) -> list[str]:
        """Return a mask's coordinates from its row count, its exact sum and its sum of squares."""
        lattice = vector.lattice
        assert lattice is not None
        if vector.kind is Kind.SUM:
            return [total]
        if self._integer(vector) == "HUGEINT":
            rows, everyone = (self.dialect.cast(count, "HUGEINT") for count in (rows, everyone))
        above = f"({total} - {lattice.low} * {rows})" if lattice.low else total
        if vector.kind is Kind.MOMENT:
            # Σ(2u² - W²) with u = 2z - (L+H) = 2a - W for a = z - L: 2u² - W² = 8a² - 8aW + W²
            return [f"(8 * {squares} - {8 * lattice.width} * {above} + {lattice.width**2} * {rows})"]
        if vector.kind is Kind.DIRECT:
            middle = (lattice.low + lattice.high) // 2
            mean = self.dialect.quotient(f"(2 * {above} + {rows})", f"NULLIF(2 * {rows}, 0)", wide=True)
            return [f"COALESCE({lattice.low} + {mean}, {middle})"]
        parts = [above, f"({lattice.high} * {rows} - {total})"]
        if vector.null_rows:
            parts.append(f"({lattice.width} * ({everyone} - {rows}))")
        return parts

    # --- coordinates with many rows per unit ------------------------------------------------------------

    def part(self, sql: str, prefix: str) -> str:
        """Return the name of a column of p, a figure of one unit in one group, adding it once."""
        if sql not in self.parts:
            self.parts[sql] = f"{prefix}{sum(name.startswith(prefix) for name in self.parts.values())}"
        return self.parts[sql]

    def _per_unit(self, number: int) -> list[tuple[str, str]]:
        """Return a vector's bounded coordinates summed over units, noting the parts that they need."""
        vector = self.vectors[number]
        if vector.kind is Kind.UNITS:
            return [(f"m{number}_0", self._units(vector))]
        if vector.kind is Kind.COUNT:
            shown = counts = [self.part(f"COUNT(*){self._only(mask)}", "c") for mask in vector.masks]
        else:
            shown, counts = [], []
            for mask in vector.masks:
                self._sums(vector, self._only(mask), shown, counts)
        return [(f"m{number}_{i}", sql) for i, sql in enumerate(self._bounded(vector, shown, counts))]

    def _only(self, mask: Mask) -> str:
        where = self.mask(mask)
        return f" FILTER (WHERE {where})" if where else ""

    def _sums(self, vector: Vector, only: str, shown: list[str], counts: list[str]) -> None:
        """Add a mask's coordinates of one unit, and the count that they are clamped by.

        A value that is never NULL is counted by its rows.
        """
        assert vector.value is not None
        assert vector.lattice is not None
        value, is_nullable = self.value(vector), narrowed_facts(vector.value, self.printer.env).nullable
        count = f"COUNT({value.count if is_nullable else '*'}){only}"
        rows = self.part(count, "c")
        everyone = self.part(f"COUNT(*){only}", "c") if vector.null_rows else rows
        total = self.part(self._narrow(vector, value.sum(only, count)), "s")
        squares = ""
        if vector.kind is Kind.MOMENT:
            squares = self.part(self._narrow(vector, value.squares(only, vector.lattice.low)), "q")
        if vector.kind is Kind.DIRECT:
            rows, total = f"COALESCE(SUM({rows}), 0)", f"COALESCE(SUM({total}), 0)"
        shown += self._from_sums(vector, rows, total, squares, everyone)
        counts.append(everyone)

    def _narrow(self, vector: Vector, total: str) -> str:
        """Return a sum as 64 bits where it cannot pass them: engines sum integers in wider types."""
        return f"CAST({total} AS BIGINT)" if self._integer(vector) == "BIGINT" else total

    def _units(self, vector: Vector) -> str:
        where = self.mask(vector.masks[0])
        if where is None:
            return "COUNT(*)"
        return f"COUNT(*) FILTER (WHERE {self.part(f'COUNT(*) FILTER (WHERE {where})', 'c')} > 0)"

    def _bounded(self, vector: Vector, shown: list[str], counts: list[str]) -> list[str]:
        """Return Σ over units of the jointly clamped parts (house rule 3)."""
        if vector.kind is Kind.DIRECT:
            return shown
        m = self.bounding.rows
        c = counts[0] if len(counts) == 1 else f"({' + '.join(counts)})"
        few = f"CASE WHEN {c} <= {m} THEN {c} ELSE {m} END"
        wide = self._integer(vector) == "HUGEINT"
        cut = [self.dialect.quotient(f"({p} * {m})", f"GREATEST({c}, {m})", wide=wide) for p in shown]
        scaled = [f"CASE WHEN {c} <= {m} THEN {p} ELSE {q} END" for p, q in zip(shown, cut, strict=True)]
        if vector.kind is Kind.SUM and len(shown) == 1:
            assert vector.lattice is not None
            lo, hi = min(0, m * vector.lattice.low), max(0, m * vector.lattice.high)
            return [f"COALESCE(SUM({self.dialect.clamp(shown[0], str(lo), str(hi))}), 0)"]
        if vector.kind in (Kind.SUM, Kind.MOMENT):
            return [f"COALESCE(SUM({part}), 0)" for part in scaled]
        weight = 1 if vector.lattice is None else vector.lattice.width
        others = [f"COALESCE(SUM({part}), 0)" for part in scaled[:-1]]
        left = "".join(f" - {part}" for part in others)
        total = f"SUM({few})" if weight == 1 else f"{weight} * SUM({few})"
        return [*others, f"(COALESCE({total}, 0){left})"]

    # --- distinct values of many rows per unit -----------------------------------------------------------

    def distinct(self, number: int) -> BackendQuery:
        """COUNT(DISTINCT x): per (unit, group) at most d values in hashed order, then each value once."""
        vector, groups = self.vectors[number], self.key_names
        assert vector.value is not None
        where = self.mask(vector.masks[0])
        name = self.item(self.printer.key(vector.value), "v")
        present = f"{name} IS NOT NULL" + (f" AND {where}" if where else "")
        unit_keys = ", ".join(["u", *groups])
        steps = [f"r AS ({self.rows()})"]
        source = "r"
        if self.bounding.ranked:
            steps.append(f"g AS (SELECT {unit_keys} FROM r GROUP BY {unit_keys}{self._in_domain()})")
            steps += self._kept("g")
            same = [self.dialect.same(f"r.{key}", f"kept.{key}") for key in groups]
            match = " AND ".join(["r.u = kept.u", *same])
            steps.append(f"inside AS (SELECT r.* FROM r JOIN kept ON {match})")
            source = "inside"
        steps.append(f"v AS (SELECT DISTINCT {unit_keys}, {name} AS x FROM {source} WHERE {present})")
        value = self.dialect.hash_text("x", vector.value.type)
        order = f"{self.dialect.hashed([f'CAST($1 AS {self.dialect.text})', value])}, x"
        steps.append(
            f"few AS (SELECT v.*, ROW_NUMBER() OVER (PARTITION BY {unit_keys} ORDER BY {order}) AS vn FROM v)"
        )
        column = (f"m{number}_0", "COUNT(DISTINCT x)")
        body = self._grouped(
            f"(SELECT * FROM few WHERE vn <= {vector.distinct_limit}) AS b", [column], filtered=False
        )
        sql = f"WITH {', '.join(steps)} {body}"
        return BackendQuery(sql, (number,), True, self._stages())

    def _member(self, name: str, type_: SqlType, domain: Domain) -> str:
        """Return the test that a key is in its domain."""
        values = [self._domain_literal(value, type_) for value in domain.values if value is not None]
        tests = [f"{name} IN ({', '.join(values)})"] if values else []
        tests += [f"{name} IS NULL"] if None in domain.values else []
        return f"({' OR '.join(tests)})" if tests else "FALSE"

    def _domain_literal(self, value: Scalar, type_: SqlType) -> str:
        """Return a public key value as a literal; temporal ones may be declared as ISO text."""
        if isinstance(value, str) and type_.is_temporal:
            return f"CAST({text(value)} AS {type_.kind.value.upper()})"
        if isinstance(value, Fraction) and (type_.is_temporal or value.denominator == 1):
            value = int(value)
        return self.dialect.literal(Literal(type_, value))
