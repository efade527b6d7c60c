"""The backend queries of a release: exact integers per group, contributions bounded in the SQL itself.

    >>> backend_sql("SELECT kind, COUNT(*) FROM card GROUP BY kind")
    SELECT k0, CAST(SUM(m0_0) AS BIGINT) AS m0_0
    FROM (SELECT (CASE WHEN (k0 IN ('gold', 'plain')) THEN k0 END) COLLATE C AS k0, m0_0
      FROM (SELECT k0, COUNT(*) AS m0_0
        FROM (SELECT (CASE WHEN strlen(CAST("kind" AS VARCHAR)) <= 5 THEN CAST("kind" AS VARCHAR) END) COLLATE C AS k0
          FROM "main"."card") AS r
        GROUP BY k0) AS b) AS b
    GROUP BY k0

House rules (soundness.md 1.1, 1.5 and 1.9, which have the proofs):

1. Every figure that a sensitivity was computed from is an operator here: the value clamp, the weight of a unit's
   rows by their number t where that is more than R, the rank to C groups or P values of a unit. The one exception is
   `Bounding.per_row`: the engine's own constraint holds one row per unit; or one row per unit and number, and the rows
   with a number from 1 to R are read, `Bounding.numbered` (soundness.md 1.39).
2. What is kept of a unit is a function of that unit's own rows and of constants: its own t, or hashes with a
   total order, never LIMIT, never a volatile function.
3. Counts and sums are taken of all rows, each weighed U, and corrected for the units with more than R rows, which
   `heavy` lists: Σ over all rows of U + Σ over heavy units' rows of (w - U). `heavy` leaves out keys and values,
   never a filter, or a join that could copy rows: t counts every row that is summed. What is joined, or what a filter
   leaves of a table where that is little, is printed once, a step that all of these read. Where the engine keeps no
   step the sums of each unit in each group are weighed, by t over the unit's groups. All is one statement, hence one
   snapshot.
4. A unit has one weight for all groups, after all of its rows were counted in t, those of undeclared groups too.
   Counts and sums of declared groups have one more cell of each key, for the rows of all other values. Keys are
   mapped to cells in the outermost sum, where rows are grouped already (1.34).
5. People are counted with the sums only where every group of every unit is listed: no key is declared (1.31).
6. Of keys that are found, no query returns a group that is not tested: what counts people has the test on that very
   count after HAVING, and any other is of the groups that are shown, which are known when it is asked (1.31).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction

from ...mechanisms import FlipChoice, Near
from ...records import dataclass
from ...relation.catalog import Scalar
from ...relation.expressions import Expr, Field, IntermediateValue, Literal
from ...relation.intervals import Lattice
from ...relation.types import Kind, SqlType
from ..dialects.dialect import Dialect
from ..measures.least_error import TopGroups
from ..measures.measurements import (
    MAX_SQUARES,
    WEIGHT,
    Bounding,
    BoundingQuery,
    Choice,
    Count,
    Direct,
    Mask,
    Measurement,
    Norm,
    counted_in,
)
from ..measures.ranks import ModeMeasurement, Ranked
from ..privacy.axes import Axis
from ..privacy.keys import MAX_DOMAIN, Domain, share_left
from ..privacy.ownership import without_path
from ..privacy.public_inputs import KeyList
from ..privacy.rows import Fan, IntermediateColumn, Lookup, OwnedRows, columns_of, fields_in
from .print_private import print_whole
from .print_source import SourcePrinter, carried_as, hash_texts, numbered, shown_keys, spread
from .print_sums import (
    CappedSums,
    GroupSums,
    InnerRows,
    KeptSums,
    PointedSums,
    UnitSums,
    WeighedSums,
    WindowPrinter,
    integer_type,
    print_candidate,
)

_SCATTERING = frozenset(
    {Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.TEXT, Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN}
)
"""Types of one spelling: what equal values are scattered by where a row is a unit by itself (soundness.md 1.33)."""


@dataclass(frozen=True, slots=True)
class Part:
    """The candidates `low` .. `high` of the group with key `group`: rows of theirs near the ranks `near` are read."""

    group: tuple[Scalar, ...]
    low: int
    high: int
    near: tuple[Near, ...]


@dataclass(frozen=True, slots=True)
class BackendQuery:
    """One SELECT: the group keys first, then one integer column per coordinate of `measurements`, in order.

    `is_window`: of a choice by rank, whose groups come with a row for each candidate that has rows near the wanted
    rank: the candidate, the weight below it, its own, and that of all rows of the group.
    Parameter $1 is the bounding salt when `salted`; the others are `intermediates`, numbered on; then, when it is
    `of_shown`, the keys of the groups that are shown, a list for each key. `row_bytes`: the most bytes of a row of its
    subqueries. `part`: the part of one group's values that it reads; None: all. `is_direct`: its only grouping by
    integers is by a unit read within a range small enough for a direct table (soundness.md 1.42).
    """

    sql: str
    measurements: tuple[int, ...]
    salted: bool
    intermediates: tuple[IntermediateValue | IntermediateColumn, ...]
    is_window: bool = False
    row_bytes: int = field(default=0, compare=False)
    of_shown: bool = False
    part: Part | None = None
    is_direct: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Tested:
    """Of keys that are found: the measurement that counts people, and the fewest with whom a group is tested."""

    counted: int
    least: int


def print_fan(fan: Fan, dialect: Dialect) -> BackendQuery:
    """Return the query of one number, how many rows of a public source can match one row."""
    sources = SourcePrinter(dialect, 1)
    return _query(sources.fan(fan), (), sources)


def print_keys(listed: KeyList, dialect: Dialect) -> BackendQuery:
    """Return the query of the keys that public tables have: columns of keys alone, one tuple more than is answered."""
    sources = SourcePrinter(dialect, 1)
    return _query(sources.keys(listed, MAX_DOMAIN + 1), (), sources)


def norm_divisor(dialect: Dialect, most: int) -> tuple[str, str]:
    """Return (z of s, d of s and z): with V = 2^20, V times the root of s, at least V times `most` (soundness.md 1.38).

    z is the engine's root, rounded to an integer; one Newton step from any z is never below the true root.
    """
    root = f"sqrt({dialect.as_double('s')}) * {dialect.double_literal(Fraction(WEIGHT))}"
    root = dialect.rounded(
        f"LEAST({root}, {dialect.double_literal(Fraction(_MAX_ROOT))})", "BIGINT", _MAX_ROOT
    )
    largest = MAX_SQUARES * WEIGHT**2
    other = dialect.quotient(f"({dialect.cast('s', 'HUGEINT')} * {WEIGHT**2})", "z", wide=True, most=largest)
    half = dialect.quotient(f"(z + {other})", "2", wide=True, most=largest)
    return f"GREATEST({root}, 1)", f"GREATEST({half} + 1, {most * WEIGHT})"


_MAX_ROOT = 2**50
"""Above all roots of `MAX_SQUARES`, times `WEIGHT`."""
_FEW = Fraction(1, 4)
"""Of a table's rows: the largest share that costs less to keep than to read again."""
_FAR = 64
"""How many times what is kept of a unit it has, for its first to be taken by an engine's heap and not by a window.

A heap has room for all that is kept, in each thread of the engine: in all far less than such a unit's rows take. Of
many units with a few more than is kept it takes three times what the window does, with sixteen threads."""


@dataclass
class ReleasePrinter:
    """Prints the queries of one release: of all its measurements, or of those that are not in the store.

    `relation`: its rows. `choices`: what is chosen for each group, by measurement. `tested`: where keys are found: then
    what counts people comes first, and groups that are not tested never (1.7). `axes`: of counts and sums that are
    asked for with the rows of all other groups (1.34). `groups`: whose rows alone there are; None: all.
    """

    relation: OwnedRows
    keys: tuple[Expr, ...]
    measurements: tuple[Measurement, ...]
    bounding: Bounding
    domains: tuple[Domain | None, ...]
    choices: Mapping[int, Choice]
    dialect: Dialect
    tested: Tested | None = None
    axes: tuple[Axis, ...] | None = None
    groups: Sequence[tuple[Scalar, ...]] | None = None

    def __post_init__(self) -> None:
        """Name its keys and its units' columns."""
        assert self.relation.owner or self.bounding.per_row, (
            "rows that are units by themselves have no owner to bound by"
        )
        if self.axes is not None and not any(axis.others for axis in self.axes):
            self.axes = None
        self.key_names = [f"k{i}" for i in range(len(self.keys))]
        self.unit, self.heavy = (numbered(name, len(self.relation.owner)) for name in ("u", "hu"))
        self.longest = [self._longest(*pair) for pair in zip(self.keys, self.domains, strict=True)]

    def _longest(self, key: Expr, domain: Domain | None) -> int | None:
        """Return the bytes of the longest text that is asked for in a key, None where each text is one of its own.

        A norm tells texts apart as its own key has them.
        """
        if domain is None or None in domain.values or key.type.kind is not Kind.TEXT or self.bounding.norms:
            return None
        return max((len(str(value).encode()) for value in domain.values), default=0)

    def queries(
        self, wanted: tuple[int, ...], chosen_groups: Sequence[tuple[Scalar, ...]] | None = None
    ) -> tuple[BackendQuery, ...]:
        """Return the queries for the wanted measurements.

        `chosen_groups`: only their rows are read, but for the choice of these groups itself (soundness.md 1.23).
        """
        chosen_first = tuple(self.top(i) for i in wanted if self.measurements[i].query is BoundingQuery.TOP)
        release = self if chosen_groups is None else self.of_groups(chosen_groups)
        return release._queries(wanted, chosen_first)

    def _queries(
        self, wanted: tuple[int, ...], chosen_first: tuple[BackendQuery, ...]
    ) -> tuple[BackendQuery, ...]:
        measurements, lookup = self.measurements, self.relation.lookup
        chosen = {how: tuple(i for i in wanted if measurements[i].query is how) for how in BoundingQuery}
        windows = tuple(
            self.values(i, one) if isinstance(one := measurements[i], ModeMeasurement) else self.window(i)
            for i in chosen[BoundingQuery.RANK]
        )
        if lookup is not None:
            clamped = tuple(i for i in wanted if measurements[i].is_clamped)
            plain = tuple(i for i in wanted if i not in clamped)
            queries = [self.looked_up(plain, lookup)] if plain else []
            return self.limited([*queries, *(self.clamped(i, lookup) for i in clamped)])
        if self.bounding.per_row:
            summed = tuple(i for i in wanted if measurements[i].query is not BoundingQuery.RANK)
            # an average of several groups is none of theirs added up
            apart = tuple(i for i in summed if self.axes and measurements[i].kind == Direct.kind)
            summed = tuple(i for i in summed if i not in apart)
            queries = [self.per_row(summed)] if summed else []
            queries += [replace(self, axes=None).per_row(apart)] if apart else []
            return self.limited([*queries, *windows])
        scaled, ranked = chosen[BoundingQuery.SCALED], chosen[BoundingQuery.RANKED]
        if scaled and self.is_count_of_all_people(ranked):
            queries = [self.scaled(scaled, *ranked)]
        else:
            queries = [self.scaled(scaled)] if scaled else []
            queries += [self.ranked(ranked)] if ranked else []
        distinct = (self.distinct(number) for number in chosen[BoundingQuery.DISTINCT])
        return self.limited([*chosen_first, *queries, *distinct, *windows])

    def part(
        self, number: int, part: Part, chosen_groups: Sequence[tuple[Scalar, ...]] | None = None
    ) -> BackendQuery:
        """Return the query of the rows of a part alone, with the weights that they have among all (soundness.md 1.21).

        `chosen_groups`: those that all are of, as in `queries`.
        """
        return (self if chosen_groups is None else self.of_groups(chosen_groups)).window(number, part)

    def of_groups(self, groups: Sequence[tuple[Scalar, ...]]) -> ReleasePrinter:
        """Return the release of the rows of some groups alone: no other row is joined, counted or in a unit's t."""
        domains = tuple(Domain(tuple(dict.fromkeys(column))) for column in zip(*groups, strict=True))
        return replace(self, domains=domains, tested=None, axes=None, groups=groups)

    def per_row(self, numbers: tuple[int, ...]) -> BackendQuery:
        """Units with one row, or with rows that are kept by number: a plain aggregate."""
        inner = self._inner(numbers)
        coordinates = self._coordinates(numbers, GroupSums(inner))
        return _query(self._by_group(f"({inner.sql()}) AS r", coordinates), numbers, inner.sources)

    # --- rows of two people ---------------------------------------------------------------------------------

    def looked_up(self, numbers: tuple[int, ...], lookup: Lookup) -> BackendQuery:
        """A plain aggregate of the first R_b rows of each person who is pointed at (soundness.md 1.38).

        The printed block has R_a rows of each owner of the pointing rows already. A person with at most R_b rows keeps
        them all; of more rows the first R_b are kept, by a hash of the row's key and then by all columns that are read:
        a total order, but for rows that are alike.
        """
        inner = self._inner(numbers, more=lookup.key, shows_unit=True)
        whole = [inner.printer.whole(one) for one in lookup.key]
        own = [
            inner.item(self.dialect.scattered_apart(sql, one.type) if lookup.is_spread else sql, "o")
            for sql, one in zip(whole, lookup.key, strict=True)
        ]
        coordinates = self._coordinates(numbers, PointedSums(inner))
        columns = [*self.key_names, *inner.items.values(), *inner.later_items.values()]
        names = list(dict.fromkeys([*own, *columns]))
        keys = [(name, one.type) for name, one in zip(own, lookup.key, strict=True)]
        order = ", ".join([*spread(keys, self.dialect), *(f"{name} NULLS LAST" for name in names)])
        if lookup.is_spread:
            order = f"s.{own[0]}"
            names.remove(own[0])
        unit, shown = ", ".join(self.unit), [*self.unit, *names]
        steps = [
            self.dialect.step("s", inner.sql(), is_kept=True),
            f"heavy AS (SELECT {unit} FROM s GROUP BY {unit} HAVING COUNT(*) > {lookup.most})",
            f"r AS ({inner.sources.first_rows(self.unit, shown, order, lookup.most, is_number=lookup.is_spread)})",
        ]
        body = self._outer("r", coordinates, in_domain=True)
        return _query(f"WITH {', '.join(steps)} {body}", numbers, inner.sources)

    def clamped(self, number: int, lookup: Lookup) -> BackendQuery:
        """Counts of all joined rows, each person who is pointed at cut to R_b by the norm of their counts.

        Who has R_b rows at most is within it. Of the others c has the counts by group and mask, q the sum of their
        squares.
        """
        measurement = self.measurements[number]
        assert isinstance(measurement, Count)
        inner = self._inner((number,), shows_unit=True)
        only = [inner.only(mask) for mask in measurement.masks]
        unit, listed = ", ".join(self.unit), self._in_domain()
        own = [f"s.{one}" for one in (*self.unit, *self.key_names)]
        cells = [f"LEAST(COUNT(*){one}, {measurement.most_in_cell}) AS c{i}" for i, one in enumerate(only)]
        squares = " + ".join(f"c{i} * c{i}" for i in range(len(only)))
        s = self.dialect.cast(f"LEAST(SUM({squares}), {MAX_SQUARES})", "BIGINT")
        root, divisor = norm_divisor(self.dialect, lookup.most)
        same, of = (
            " AND ".join(f"{left}.{one} = {right}.{one}" for one in self.unit)
            for left, right in (("heavy", "s"), ("d", "c"))
        )
        steps = [
            self.dialect.step("s", inner.sql(), is_kept=True),
            f"heavy AS (SELECT {unit} FROM s GROUP BY {unit} HAVING COUNT(*) > {lookup.most})",
            f"c AS (SELECT {', '.join([*own, *cells])} FROM s CROSS JOIN heavy WHERE {same} GROUP BY {', '.join(own)}"
            f"{listed})",
            f"q AS (SELECT {unit}, {s} AS s FROM c GROUP BY {unit})",
            f"z AS (SELECT {unit}, s, {root} AS z FROM q)",
            f"d AS (SELECT {unit}, {divisor} AS d FROM z)",
        ]
        names, weight = [f"m{number}_{i}" for i in range(len(only))], self.bounding.weight
        light = [f"COALESCE({weight} * COUNT(*){one}, 0)" for one in only]
        heavy = [
            f"COALESCE(SUM({self._share_of(f'c.c{i}', weight * lookup.most, measurement)}), 0)"
            for i in range(len(only))
        ]
        by = f" GROUP BY {', '.join(self.key_names)}{listed}" if self.keys else ""
        both = [
            f"SELECT {self._listed(list(zip(names, sums, strict=True)))} FROM {rows}{by}"
            for sums, rows in (
                (light, f"s WHERE NOT EXISTS (SELECT 1 FROM heavy WHERE {same})"),
                (heavy, f"c CROSS JOIN d WHERE {of}"),
            )
        ]
        body = self._added_up(f"({' UNION ALL '.join(both)}) AS b", names)
        return _query(f"WITH {', '.join(steps)} {body}", (number,), inner.sources)

    def _share_of(self, cell: str, most: int, measurement: Count) -> str:
        """Return a cell's count times `most` and over the divisor d, which is V times its person's norm."""
        whole = f"({self.dialect.cast(cell, 'HUGEINT')} * {most * WEIGHT})"
        return self.dialect.quotient(
            whole, "d.d", wide=True, most=measurement.most_in_cell * self.bounding.weight
        )

    def _by_group(self, source: str, coordinates: list[tuple[str, str]]) -> str:
        """Return the sums of rows by group: each listed group, and one cell of each key for all other values."""
        if self.axes is None:
            return self._outer(source, coordinates, in_domain=True)
        by = ", ".join(self.key_names)
        raw = f"(SELECT {self._listed(coordinates)} FROM {source} GROUP BY {by}{self._in_domain(whole=True)}) AS b"
        return self._added_up(raw, [name for name, _ in coordinates])

    def _added_up(self, source: str, names: Sequence[str]) -> str:
        """Return the sums by group of partial sums, whose keys are still as in the rows.

        Keys are mapped to groups here, where rows are grouped already and fewer.
        """
        if self.axes is not None:
            keys = (self._told_apart(place, axis) for place, axis in enumerate(self.axes))
            source = f"(SELECT {', '.join([*keys, *names])} FROM {source}) AS b"
        return self._outer(source, [(name, f"SUM({name})") for name in names])

    def _told_apart(self, place: int, axis: Axis) -> str:
        """Return a key mapped to its groups: a listed value to itself, all others to one cell."""
        name, key, domain = self.key_names[place], self.keys[place], self.domains[place]
        if not axis.others or domain is None:
            return name
        (other,) = axis.others
        rest = "" if other is None else f" ELSE {self._domain_literal(other, key.type)}"
        told = f"CASE WHEN {self._member(name, key.type, domain)} THEN {name}{rest} END"
        return f"{self.dialect.bytewise(f'({told})') if key.type.kind is Kind.TEXT else told} AS {name}"

    # --- counts and sums of units with many rows ------------------------------------------------------------

    def scaled(self, numbers: tuple[int, ...], counted: int | None = None) -> BackendQuery:
        """Counts and sums of all rows, each for less where its unit has more than R: in the cheapest of three ways.

        `counted`: the measurement that counts the people of each group, with them (`is_count_of_all_people`).
        """
        is_plain = self._is_of_table() and counted is None and bool(self.keys)
        if not self.dialect.keeps_steps and not is_plain:
            return self._in_one_pass(numbers, counted)
        return self._of_scans(numbers, counted) if self._is_scanned() else self._of_joins(numbers, counted)

    def _is_of_table(self) -> bool:
        items = self.relation.items
        return len(items) == 1 and items[0].source.table is not None

    def _is_scanned(self) -> bool:
        """Say whether each part reads the rows from their table anew: one that is read without its owners, and of which
        a filter leaves many. Few cost less to keep.

        How many is guessed from what is declared.
        """
        if self._is_of_table() and not self.dialect.keeps_steps:
            return True
        rows = self.relation
        items, predicate = without_path(rows) if self.dialect.has_no_orphans else (rows.items, rows.predicate)
        if len(items) != 1 or items[0].source.table is None:
            return False
        return self._is_direct() or share_left(columns_of(items), predicate) > _FEW

    def _is_direct(self) -> bool:
        """Say whether units can be grouped in a direct table, and no key is an integer to the engine: with one it could
        choose its way by how far keys are from each other, and its time would tell of a single row.
        """
        table = self.relation.items[0].source.table
        if not self._is_of_table() or table is None or table.unit is None or table.unit.range is None:
            return False
        low, high = table.unit.range
        return high - low < self.dialect.direct_places and all(
            key.type.kind is Kind.TEXT for key in self.keys
        )

    def _of_scans(self, numbers: tuple[int, ...], counted: int | None) -> BackendQuery:
        """A plain aggregate of a table, corrected for the units with more than R rows (house rule 3)."""
        norms = [norm.key for norm in self.bounding.norms]
        is_salted = counted is not None and self.bounding.ranked
        sources = SourcePrinter(self.dialect, 2 if is_salted else 1)
        steps: list[str] = []
        if counted is not None:
            steps += self._people(self._inner(sources=sources, shows_unit=True).sql())
        heavy = self._heavy_of_people() if self._lists_all_rows(counted) else self._listed_heavy(sources)
        steps.append(self.dialect.step("heavy", heavy, is_kept=None if self._is_of_table() else True))
        plain, inner = (self._inner(numbers, sources=sources, beside=beside) for beside in ("", "heavy"))
        whole = self._whole(numbers, GroupSums(plain))
        less = self._coordinates(numbers, WeighedSums(inner))
        numbers = numbers if counted is None else (*numbers, counted)
        sums = self._corrected(whole, f"({plain.sql()}) AS r", less, f"({inner.sql()}) AS r", counted)
        query = _query(f"WITH {', '.join(steps)} {sums}", numbers, sources)
        return replace(query, is_direct=self._is_direct() and counted is None and not norms)

    def _listed_heavy(self, sources: SourcePrinter) -> str:
        """Return the units that are beyond a bound, from the table's rows."""
        filters = counted_in(self.measurements)
        norms = [norm.key for norm in self.bounding.norms]
        listed = self._inner(keys=(), more=(*filters, *norms), shows_unit=True, sources=sources)
        if filters:
            listed.where.append(f"({' OR '.join(listed.printer.boolean(term) for term in filters)})")
        places = [listed.item(listed.printer.key(key), "g") for key in norms]
        return self._lighter(f"({listed.sql()}{self.dialect.listed_by_sort}) AS r", places)

    def _of_joins(self, numbers: tuple[int, ...], counted: int | None) -> BackendQuery:
        """The same of rows that are made once: joins, filters and subqueries cost more than to keep what they leave."""
        is_salted = counted is not None and self.bounding.ranked
        norms = [norm.key for norm in self.bounding.norms]
        inner = self._inner(numbers, is_kept=True, more=norms, is_salted=is_salted)
        places = [inner.item(inner.printer.key(key), "g") for key in norms]
        whole = self._whole(numbers, GroupSums(inner))
        less = self._coordinates(numbers, WeighedSums(inner))
        flags = self._counted(inner)
        listed = inner.of_units(
            [f"({' OR '.join(flags)})"] if flags else [], more=[f"r.{name}" for name in places]
        )
        steps = [self.dialect.step("r", inner.sql(), is_kept=True)]
        if counted is not None:
            steps += self._people(inner.of_units([], whole=True))
            numbers = (*numbers, counted)
        is_listed = self._lists_all_rows(counted)
        heavy = self._heavy_of_people() if is_listed else self._lighter(f"({listed}) AS r", places)
        steps.append(self.dialect.step("heavy", heavy, is_kept=True))
        of_heavy = f"({inner.of_units([], beside='heavy')}) AS r"
        sums = self._corrected(whole, "r", less, of_heavy, counted)
        return _query(f"WITH {', '.join(steps)} {sums}", numbers, inner.sources)

    def _in_one_pass(self, numbers: tuple[int, ...], counted: int | None = None) -> BackendQuery:
        """The same by units: each one's sums in each group, times its weight.

        `counted`: as in `scaled`; the units of each group, by their first C groups in hashed order.
        """
        is_ranked = counted is not None and self.bounding.ranked
        inner = self._inner(numbers, shows_unit=True, is_salted=is_ranked)
        sums, rows = UnitSums(inner), self._rows_counted(inner)
        totals = [(name, f"COALESCE(SUM({sql} * w), 0)") for name, sql in self._coordinates(numbers, sums)]
        by = ", ".join([*self.unit, *self.key_names])
        counted_rows = f"{rows} AS n" if self.keys else f"{self._weight(rows)} AS w"
        shown = sums.sql([*([by] if self.keys else []), counted_rows])
        units = f"SELECT {shown} FROM ({inner.sql()}) AS r GROUP BY {by}"
        if self.keys:
            t = self.dialect.cast(f"SUM(n) OVER (PARTITION BY {', '.join(self.unit)})", "BIGINT")
            names = sums.names([*self.key_names, f"{self._weight(t)} AS w"])
            rank = [self._rank(self._key_hashes(), self.key_names)] if is_ranked else []
            units = f"SELECT {', '.join([*names, *rank])} FROM ({units}) AS p"
        if counted is not None:
            first = f" FILTER (WHERE rn <= {self.bounding.groups})" if is_ranked else ""
            totals += [(f"m{counted}_0", f"COUNT(*){first}")]
            numbers = (*numbers, counted)
        return _query(self._by_group(f"({units}) AS p", totals), numbers, inner.sources)

    def _heavy(self, listed: str, shown: str, rows: str = "COUNT(*)") -> str:
        """Return the units with more than R rows, from a list of each row's unit, and what is `shown` of each."""
        unit = "".join(f"{name} AS {other}, " for name, other in zip(self.unit, self.heavy, strict=True))
        by = ", ".join(self.unit)
        return f"SELECT {unit}{shown} FROM {listed} GROUP BY {by} HAVING {rows} > {self.bounding.in_all}"

    def _lists_all_rows(self, counted: int | None) -> bool:
        """Say whether step p has the number of each unit's rows in each group, of all rows that t counts."""
        return counted is not None and not self.bounding.norms and not counted_in(self.measurements)

    def _heavy_of_people(self) -> str:
        """Return the same as `_lighter`, from p: a unit's rows are those of its groups together."""
        rows = self.dialect.cast("SUM(c)", "BIGINT")
        return self._heavy("p", f"{self._weight(rows)} - {self.bounding.weight} AS w", rows)

    def _lighter(self, listed: str, places: Sequence[str]) -> str:
        """Return the units that are beyond a bound, and what the weight of their rows is above U: less than 0.

        `listed`: SQL of each row's unit and norm keys; `places`: the names of these keys, one for each norm.
        """
        less = f"- {self.bounding.weight} AS w"
        if not self.bounding.norms:
            return self._heavy(listed, f"{self._weight('COUNT(*)')} {less}")
        units = ", ".join(self.heavy)
        weighed = [self._heavy(listed, f"{self._weight('COUNT(*)')} AS w")]
        weighed += [
            self._within(norm, name, listed) for norm, name in zip(self.bounding.norms, places, strict=True)
        ]
        return f"SELECT {units}, COALESCE(MIN(w), 0) {less} FROM ({' UNION ALL '.join(weighed)}) AS h GROUP BY {units}"

    def _within(self, norm: Norm, name: str, listed: str) -> str:
        """Return the units whose row counts by a norm's cells are beyond it, and the largest weight w with
        w²·S <= (T·U)², S the sum of their squares (soundness.md 1.36).

        Every engine's root is within 1 of the true one, and integers decide. A count so large that w is 0 is cut before
        it is squared.
        """
        most = (norm.most * self.bounding.weight) ** 2
        type_ = norm.key.type
        place = f"CASE WHEN {self._member(name, type_, Domain(norm.values))} THEN {name} END"
        place = self.dialect.bytewise(f"({place})") if type_.kind is Kind.TEXT else place
        by = ", ".join(self.unit)
        placed = f"SELECT {by}, {place} AS g FROM {listed}"
        cut = norm.most * self.bounding.weight + 1
        cells = f"SELECT {by}, LEAST(COUNT(*), {cut}) AS c FROM ({placed}) AS r GROUP BY {by}, g"
        shown = "".join(f"{one} AS {other}, " for one, other in zip(self.unit, self.heavy, strict=True))
        squares = "SUM(c * c)"
        s = self.dialect.cast(f"GREATEST(LEAST({squares}, {most + 1}), 1)", "BIGINT")
        sums = f"SELECT {shown}{s} AS s FROM ({cells}) AS q GROUP BY {by} HAVING {squares} > {norm.most**2}"
        root = f"sqrt({self.dialect.double_literal(Fraction(most))} / {self.dialect.as_double('s')})"
        x = f"LEAST(GREATEST({self.dialect.rounded(root, 'BIGINT', WEIGHT)}, 1), {self.bounding.weight})"
        roots = f"SELECT {', '.join(self.heavy)}, s, {x} AS x FROM ({sums}) AS s"
        tests = " ".join(
            f"WHEN {self.dialect.cast(f'{x} * {x}', 'HUGEINT')} * s <= {most} THEN {x}"
            for x in ("x", "(x - 1)")
        )
        return f"SELECT {', '.join(self.heavy)}, CASE {tests} ELSE 0 END AS w FROM ({roots}) AS f"

    def _weight(self, rows: str) -> str:
        """Return the weight of each row of a unit with so many rows: R·U div max(t, R)."""
        most = self.bounding.in_all * self.bounding.weight
        return self.dialect.quotient(
            str(most), f"GREATEST({rows}, {self.bounding.in_all})", wide=False, most=most
        )

    def _counted(self, inner: InnerRows) -> list[str]:
        """Return tests over r of which one is true on every row that a scaled measurement could count; none for all
        rows."""
        filters = counted_in(self.measurements)
        return [f"r.{inner.item(inner.printer.boolean(term), 'f')} IS TRUE" for term in filters]

    def _rows_counted(self, inner: InnerRows) -> str:
        """Return t over a unit's rows of r."""
        counted = " OR ".join(self._counted(inner))
        return f"COUNT(*){f' FILTER (WHERE {counted})' if counted else ''}"

    def _whole(self, numbers: tuple[int, ...], sums: GroupSums) -> list[tuple[str, str]]:
        """Return the coordinates of all rows, each weighed U."""
        return [(name, f"{self.bounding.weight} * {sql}") for name, sql in self._coordinates(numbers, sums)]

    def _corrected(
        self, whole: list[tuple[str, str]], rows: str, less: list[tuple[str, str]], of_heavy: str,
        counted: int | None,
    ) -> str:  # fmt: skip
        """Return the sums of all rows (r), weighed U, and of the heavy units' (r too), weighed w - U, by group.

        `counted`: the measurement that counts the units of each group, which are those of `people`: rows of groups that
        are not in it are left out of the sums.
        """
        # The third part is the count of people, 0 in the other two, so that all three add up group by group.
        by = f" GROUP BY {', '.join(self.key_names)}" if self.keys else ""
        nobody = [] if counted is None else [(f"m{counted}_0", "0")]
        if counted is not None:
            rows, of_heavy = self._beside_people(rows), self._beside_people(of_heavy)
        listed = self._in_domain(whole=True)
        added = [
            f"SELECT {self._listed([*sums, *nobody])} FROM {one}{by}{listed}"
            for sums, one in ((whole, rows), (less, of_heavy))
        ]
        if counted is not None:
            added += [
                f"SELECT {self._listed([*((name, '0') for name, _ in whole), (f'm{counted}_0', 'n')])} FROM people"
            ]
        return self._added_up(f"({' UNION ALL '.join(added)}) AS b", [name for name, _ in (*whole, *nobody)])

    # --- counts and sums, and the people of the same keys -----------------------------------------------------

    def is_count_of_all_people(self, ranked: tuple[int, ...]) -> bool:
        """Say whether all that is ranked is the one count of people that groups are tested by, and has no masks.

        Where groups are not tested (keys of public tables) a group of which nobody is kept has sums too.
        """
        if self.tested is None or ranked != (self.tested.counted,):
            return False
        measurement = self.measurements[self.tested.counted]
        is_all = measurement.is_of_people and measurement.masks == (Mask(()),)
        return is_all and all(domain is None for domain in self.domains)

    def _people(self, rows: str) -> list[str]:
        """Return the steps that count the units of each group, those that keep it, from rows with unit and keys.

        A group that keeps nobody is in none of them, and is not tested by `ranked` either (soundness.md 1.7).
        """
        by, keys = [*self.unit, *self.key_names], ", ".join(self.key_names)
        listed = f"SELECT {', '.join(by)}, COUNT(*) AS c FROM ({rows}) AS r GROUP BY {', '.join(by)}"
        steps = [self.dialect.step("p", listed, is_kept=True)]
        if self.bounding.ranked:
            steps += self._kept("p", self._key_hashes(), self.key_names, self.bounding.groups)
        kept = "kept" if self.bounding.ranked else "p"
        counted = f"SELECT {keys}, COUNT(*) AS n FROM {kept} GROUP BY {keys}"
        return [*steps, self.dialect.step("people", counted, is_kept=True)]

    def _beside_people(self, rows: str) -> str:
        """Return the rows of r whose group somebody keeps."""
        same = [self.dialect.same(f"r.{name}", f"people.{name}") for name in self.key_names]
        return f"(SELECT r.* FROM {rows} JOIN people ON {' AND '.join(same)}) AS r"

    # --- what counts a thing once ---------------------------------------------------------------------------

    def ranked(self, numbers: tuple[int, ...]) -> BackendQuery:
        """Counts of units, and averages as they are: C groups of each unit in hashed order, where it may have more."""
        inner = self._inner(numbers, shows_unit=True, is_salted=self.bounding.ranked)
        sums = KeptSums(inner)
        coordinates = self._coordinates(numbers, sums)
        by = [*self.unit, *self.key_names]
        steps = [
            f"r AS ({inner.sql()})",
            f"p AS (SELECT {sums.sql(by)} FROM r GROUP BY {', '.join(by)}{self._in_domain()})",
        ]
        if self.bounding.ranked:
            steps += self._kept("p", self._key_hashes(), self.key_names, self.bounding.groups, sums.names([]))
        body = self._outer(f"{'kept' if self.bounding.ranked else 'p'} AS b", coordinates)
        query = _query(f"WITH {', '.join(steps)} {body}", numbers, inner.sources)
        return replace(query, is_direct=self._is_direct() and not self.keys and not sums.parts)

    def distinct(self, number: int) -> BackendQuery:
        """COUNT(DISTINCT x): at most P pairs of group and value of each unit in hashed order, then each once."""
        measurement = self.measurements[number]
        assert measurement.value is not None
        inner = self._inner((number,), shows_unit=True, is_salted=True)
        name = inner.item(inner.printer.key(measurement.value), "v")
        where = inner.mask(measurement.masks[0])
        present = f"{name} IS NOT NULL" + (f" AND {where}" if where else "")
        by = ", ".join([*self.unit, *self.key_names, name])
        steps = [
            f"v AS (SELECT {', '.join([*self.unit, *self.key_names])}, {name} AS x FROM ({inner.sql()}) AS r "
            f"WHERE {present} GROUP BY {by}{self._in_domain()})"
        ]
        hashes = [*self._key_hashes(), self.dialect.hash_text("x", measurement.value.type)]
        steps += self._kept("v", hashes, [*self.key_names, "x"], measurement.distinct_limit)
        body = self._outer("kept AS b", [(f"m{number}_0", "COUNT(DISTINCT x)")])
        return _query(f"WITH {', '.join(steps)} {body}", (number,), inner.sources)

    def _kept(
        self, source: str, hashes: list[str], names: list[str], most: int, more: Sequence[str] = ()
    ) -> list[str]:
        """Return the steps that keep so many rows of each unit, in hashed order with all they show as the last word.

        `names` tell a unit's rows apart, `more` are what else they have. Where few units can have more, or a unit has
        few of the many keys that are found, only units that have more are ranked; else it is faster to rank all. Of a
        unit with very many the first are taken without a sort, where the engine can. The same are kept.
        """
        sizes = [len(domain.values) for domain in self.domains if domain is not None]
        if self.dialect.ranks_all or (len(sizes) == len(names) and math.prod(sizes) > 2 * most):
            return [
                f"ranked AS (SELECT {source}.*, {self._rank(hashes, names)} FROM {source})",
                f"kept AS (SELECT * FROM ranked WHERE rn <= {most})",
            ]
        unit, columns = ", ".join(self.unit), [*self.unit, *names, *more]
        of = f"{source} WHERE {f'({unit})' if len(self.unit) > 1 else unit} IN (SELECT {unit} FROM above"
        far, hashed = _FAR * most, self._hashed(hashes)
        first = self.dialect.first(f"{of} WHERE n > {far})", self.unit, hashed, [*names, *more], most)
        parts = [
            self.dialect.without(source, "above", self.unit, columns),
            f"SELECT {', '.join(columns)} FROM ranked WHERE rn <= {most}",
            *([first] if first else []),
        ]
        near = f" WHERE n <= {far}" if first else ""
        size = ", COUNT(*) AS n" if first else ""
        return [
            f"above AS (SELECT {unit}{size} FROM {source} GROUP BY {unit} HAVING COUNT(*) > {most})",
            f"ranked AS (SELECT {', '.join(columns)}, {self._rank(hashes, names)} FROM {of}{near}))",
            f"kept AS ({' UNION ALL '.join(parts)})",
        ]

    def _rank(self, hashes: list[str], names: list[str]) -> str:
        by = ", ".join([self._hashed(hashes), *(f"{name} NULLS LAST" for name in names)])
        return f"ROW_NUMBER() OVER (PARTITION BY {', '.join(self.unit)} ORDER BY {by}) AS rn"

    def _hashed(self, hashes: list[str]) -> str:
        """Return the salted hash of a unit's row by what tells its rows apart."""
        unit = [self.dialect.hash_text(name, type_) for name, type_ in self._typed_unit()]
        return self.dialect.hashed(
            [f"CAST({self.dialect.parameter(1, is_text=True)} AS {self.dialect.text})", *unit, *hashes]
        )

    def _typed_unit(self) -> list[tuple[str, SqlType]]:
        return [(name, part.type) for name, part in zip(self.unit, self.relation.owner, strict=True)]

    def _key_hashes(self) -> list[str]:
        types = (key.type for key in self.keys)
        return hash_texts(zip(self.key_names, types, strict=True), self.dialect)

    # --- choices of groups ----------------------------------------------------------------------------------

    def top(self, number: int) -> BackendQuery:
        """Return the query of the scores that groups are chosen by: of each unit so much in a group, in all groups."""
        measurement = self.measurements[number]
        assert isinstance(measurement, TopGroups)
        inner = self._inner((number,), shows_unit=True)
        sums = KeptSums(inner) if measurement.of.is_of_people else CappedSums(inner, measurement.each)
        coordinates = self._coordinates((number,), sums)
        by = [*self.unit, *self.key_names]
        units = f"SELECT {sums.sql(by)} FROM ({inner.sql()}) AS r GROUP BY {', '.join(by)}{self._in_domain()}"
        return _query(self._outer(f"({units}) AS p", coordinates), (number,), inner.sources)

    # --- choices by rank ------------------------------------------------------------------------------------

    def window(self, number: int, part: Part | None = None) -> BackendQuery:
        """Return the query of the rows near wanted ranks; each unit weighs R rows at most, over all groups.

        `part`: of some candidates of one group alone, with the weights that rows have among all.
        """
        measurement, choice = self.measurements[number], self.choices[number]
        assert isinstance(measurement, Ranked)
        assert measurement.value is not None
        assert not isinstance(choice, FlipChoice)
        scattering = self._scattering() if choice.hash_bits else ()
        shows_unit = not self.bounding.per_row or (choice.hash_bits > 0 and bool(self.relation.owner))
        inner = self._inner((number,), more=scattering, shows_unit=shows_unit)
        z = print_whole(inner.printer, inner.item, measurement.value, measurement.known_lattice)
        flag = inner.mask(measurement.masks[0])
        # A value is computed wherever it stands: rows without one fall out of the cells, or before t is counted.
        tests = [*([] if self.bounding.per_row else [f"{z} IS NOT NULL"]), *([flag] if flag else [])]
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        names = [inner.item(inner.printer.key(column), "h") for column in scattering]
        scattered = [(name, column.type) for name, column in zip(names, scattering, strict=True)]
        place = self._place(z, measurement.known_lattice, choice, scattered)
        keys = "".join(f"{name}, " for name in self.key_names)
        last = "r" if part is None else "b"
        if self.bounding.per_row:
            rows = f"SELECT {keys}{place} AS v, 1 AS w FROM ({inner.sql()}) AS r{where}"
            steps = [self._read_twice(last, rows)]
        else:
            rows = f"SELECT {', '.join(self.unit)}, {keys}{place} AS v FROM ({inner.sql()}) AS r{where}"
            steps = [self._read_twice("a", rows), *self._weighed(measurement.unit, f"{keys}v", last)]
        steps += (
            [] if part is None else [self._read_twice("r", f"SELECT * FROM b WHERE {self._in_part(part)}")]
        )
        nullable = frozenset(
            name
            for name, domain in zip(self.key_names, self.domains, strict=True)
            if domain is None or None in domain.values
        )
        near = choice.read if part is None else part.near
        printer = WindowPrinter(
            self.dialect,
            choice.candidates,
            near,
            measurement.unit,
            self.key_names,
            nullable,
            self._in_domain(),
        )
        more, last = printer.steps()
        shown = ", ".join([*self._shown_keys(), "v", "less", "w", "n"])
        sql = f"WITH {', '.join([*steps, *more])} SELECT {shown} FROM {last}"
        return replace(_query(sql, (number,), inner.sources), is_window=True, part=part)

    def values(self, number: int, measurement: ModeMeasurement) -> BackendQuery:
        """Return the query of what the rows of each known value weigh; as windows come, with their value's number."""
        assert measurement.value is not None
        value = measurement.value
        inner = self._inner((number,), shows_unit=not self.bounding.per_row)
        x = inner.item(inner.printer.key(value), "x")
        flag = inner.mask(measurement.masks[0])
        where = " AND ".join(
            [self._member(x, value.type, Domain(measurement.candidates)), *([flag] if flag else [])]
        )
        keys = "".join(f"{name}, " for name in self.key_names)
        if self.bounding.per_row:
            steps = [f"r AS (SELECT {keys}{x} AS x, 1 AS w FROM ({inner.sql()}) AS r WHERE {where})"]
        else:
            rows = f"SELECT {', '.join(self.unit)}, {keys}{x} AS x FROM ({inner.sql()}) AS r WHERE {where}"
            steps = [
                self._read_twice("a", rows),
                *self._weighed(measurement.unit, f"{keys}x", "r"),
            ]
        by = ", ".join([*self.key_names, "x"])
        total = self.dialect.cast("SUM(w)", "BIGINT")
        steps += [f"g AS (SELECT {by}, {total} AS w FROM r GROUP BY {by}{self._in_domain()})"]
        cases = " ".join(
            f"WHEN {self._domain_literal(one, value.type)} THEN {place}"
            for place, one in enumerate(measurement.candidates)
        )
        zero = self.dialect.cast("0", "BIGINT")
        place = self.dialect.cast(f"(CASE x {cases} END)", "BIGINT")
        shown = ", ".join([*self._shown_keys(), f"{place} AS v", f"{zero} AS less", "w", f"{zero} AS n"])
        sql = f"WITH {', '.join(steps)} SELECT {shown} FROM g"
        return replace(_query(sql, (number,), inner.sources), is_window=True)

    def _weighed(self, unit: int, shown: str, name: str) -> list[str]:
        """Return the steps that give the rows of a their weight w, by how many of them their unit has."""
        most = self.bounding.in_all
        share = self.dialect.quotient(str(most * unit), "t", wide=False, most=most * unit)
        same = " AND ".join(f"{one} = {other}" for one, other in zip(self.unit, self.heavy, strict=True))
        weighed = (
            f"SELECT {shown}, COALESCE({share}, {unit}) AS w FROM a LEFT JOIN heavy ON {same} "
            f"WHERE t IS NULL OR t <= {most * unit}"
        )
        return [f"heavy AS ({self._heavy('a', 'COUNT(*) AS t')})", self._read_twice(name, weighed)]

    def _read_twice(self, name: str, rows: str) -> str:
        """Return a step that the next ones read twice: what is joined is computed once."""
        return self.dialect.step(name, rows, is_kept=False if self._is_of_table() else None)

    def _scattering(self) -> tuple[Field, ...]:
        """Return what equal values of rows that are units by themselves are scattered by: what the row holds."""
        return tuple(
            Field(column.type, start + index, column.name)
            for item, start in fields_in(self.relation.items) if item.source.row_tables
            for index, column in enumerate(item.columns) if column.type.kind in _SCATTERING
        )  # fmt: skip

    def _place(self, z: str, lattice: Lattice, choice: Choice, row: Sequence[tuple[str, SqlType]]) -> str:
        """Return the candidate of a value in lattice integers: its steps, then bits of the row's person.

        `row`: where the row is the person, what it holds.
        """
        above = print_candidate(z, lattice, self.dialect)
        place = self.dialect.shifted_right(above, choice.shift) if choice.shift else above
        if not choice.hash_bits:
            return place
        if self.relation.owner:
            scattered = self.dialect.scattered(self._typed_unit(), choice.hash_bits)
        else:
            texts = hash_texts(row, self.dialect) or ["''"]
            scattered = self.dialect.scattered_texts(texts, choice.hash_bits)
        return f"({place} * {2**choice.hash_bits} + {scattered})"

    def _in_part(self, part: Part) -> str:
        """Return the test that a row is of a part: of its group, and between its ends."""
        tests = [
            self._member(name, key.type, Domain((value,)))
            for name, key, value in zip(self.key_names, self.keys, part.group, strict=True)
        ]
        return " AND ".join([f"v BETWEEN {part.low} AND {part.high}", *tests])

    # --- groups that are found ------------------------------------------------------------------------------

    def limited(self, queries: Sequence[BackendQuery]) -> tuple[BackendQuery, ...]:
        """Return queries that return no group but those that are tested, or shown (house rule 6): as it is what has
        the test, and first; of any other the rows whose keys are listed.
        """
        if self.tested is None:
            return tuple(queries)
        counting = [query for query in queries if self.tested.counted in query.measurements]
        return (*counting, *(self._of_shown(query) for query in queries if query not in counting))

    def _of_shown(self, query: BackendQuery) -> BackendQuery:
        """Return a query's rows of the groups that are listed, whose keys follow its own parameters."""
        first = 1 + int(query.salted) + len(query.intermediates)
        pairs = list(zip(self.key_names, (key.type for key in self.keys), strict=True))
        lists = [carried_as(name, number, type_) for number, (name, type_) in enumerate(pairs, first)]
        same = [
            self.dialect.same(self._found(f"f.{name}", type_), self._listed_key(f"s.{name}", type_))
            for name, type_ in pairs
        ]
        listed = f"({self.dialect.listed(lists)}) AS s"
        return replace(
            query,
            sql=f"SELECT f.* FROM ({query.sql}) AS f JOIN {listed} ON {' AND '.join(same)}",
            of_shown=True,
        )

    def _found(self, sql: str, type_: SqlType) -> str:
        """Return a key that a query shows as it is compared with a listed one: of one type, and spelled alike."""
        if type_.is_integer:
            return self.dialect.cast(sql, "BIGINT")
        if type_.kind is Kind.NUMERIC:
            return self.dialect.exact_text(sql, type_)
        return self.dialect.bytewise(sql) if type_.kind is Kind.TEXT or type_.is_temporal else sql

    def _listed_key(self, sql: str, type_: SqlType) -> str:
        """Return a listed key as it is compared: `shown_keys` says how it travels."""
        if type_.is_temporal:
            sql = self.dialect.text_of(sql, type_)
        is_text = type_.is_temporal or type_.kind in (Kind.TEXT, Kind.NUMERIC)
        return self.dialect.bytewise(sql) if is_text else sql

    # --- parts of all queries -------------------------------------------------------------------------------

    def _inner(
        self, numbers: Iterable[int] = (), *, keys: tuple[Expr, ...] | None = None, more: Iterable[Expr] = (),
        shows_unit: bool = False, beside: str = "", is_kept: bool = False, is_salted: bool = False,
        sources: SourcePrinter | None = None,
    ) -> InnerRows:  # fmt: skip
        """Return the rows that some measurements are computed from, `more`: and that have these columns.

        `keys`: what they are grouped by, None: all keys. Where groups are chosen, they are the rows of these.
        `sources`: of the query that they are a part of; None: they begin one, which is salted or not.
        """
        measurements = [self.measurements[number] for number in numbers]
        read = [*more, *(value for measurement in measurements for value in measurement.values)]
        read += [term for measurement in measurements for mask in measurement.masks for term, _ in mask.terms]
        read += () if self.groups is None else self.keys
        number, last = self.bounding.numbered, self.bounding.last_number
        inner = InnerRows(
            sources or SourcePrinter(self.dialect, 2 if is_salted else 1), self.relation,
            self.keys if keys is None else keys, read, shows_unit=shows_unit, beside=beside, is_kept=is_kept,
            by_number=None if number is None or number.place is None or last is None else (number, last),
            longest=self.longest if keys is None else (),
        )  # fmt: skip
        if self.groups is not None:
            inner.where.append(self._of_one_of(self.groups, inner))
        return inner

    def _of_one_of(self, groups: Sequence[tuple[Scalar, ...]], inner: InnerRows) -> str:
        """Return the test that a row is in one of some groups."""
        printed = [f"({inner.printer.key(key)})" for key in self.keys]
        types = [key.type for key in self.keys]
        if len(types) == 1:
            return self._member(printed[0], types[0], self.domains[0] or Domain(()))
        rows = (
            " AND ".join(
                self._member(name, type_, Domain((value,)))
                for name, type_, value in zip(printed, types, group, strict=True)
            )
            for group in groups
        )
        return f"({' OR '.join(f'({row})' for row in rows)})"

    def _coordinates(self, numbers: Iterable[int], sums: GroupSums) -> list[tuple[str, str]]:
        """Return the coordinates of measurements with their names."""
        return [
            (f"m{number}_{i}", sql)
            for number in numbers for i, sql in enumerate(self.measurements[number].whole(sums))
        ]  # fmt: skip

    def _measurement_of(self, coordinate: str) -> Measurement:
        return self.measurements[int(coordinate[1:].split("_")[0])]

    def _listed(self, coordinates: Sequence[tuple[str, str]]) -> str:
        return ", ".join([*self.key_names, *(f"{sql} AS {name}" for name, sql in coordinates)])

    def _outer(self, source: str, coordinates: list[tuple[str, str]], *, in_domain: bool = False) -> str:
        """Return the outer SELECT; dates and timestamps leave as text, which holds every value they have."""
        columns = [
            *self._shown_keys(),
            *(
                f"{self.dialect.cast(sql, integer_type(self._measurement_of(name)))} AS {name}"
                for name, sql in coordinates
            ),
        ]
        group = f" GROUP BY {', '.join(self.key_names)}" if self.keys else ""
        tests = self._is_tested(coordinates)
        group += self._having([*(self._in_domains() if in_domain else []), *tests])
        if tests:  # keys that are found come out in their own order, whatever the data's
            group += f" ORDER BY {', '.join(f'{name} NULLS LAST' for name in self.key_names)}"
        return f"SELECT {', '.join(columns) or 'COUNT(*) AS present'} FROM {source}{group}"

    def _shown_keys(self) -> list[str]:
        return shown_keys(self.keys, self.key_names, self.dialect)

    def _having(self, tests: Sequence[str]) -> str:
        if len(tests) > 1:
            tests = [f"({test})" for test in tests]
        return f" HAVING {' AND '.join(tests)}" if tests else ""

    def _is_tested(self, coordinates: Sequence[tuple[str, str]]) -> list[str]:
        """Return the test that a group has as many people as are tested, where they are counted."""
        if self.tested is None:
            return []
        people = dict(coordinates).get(f"m{self.tested.counted}_0")
        return [] if people is None else [f"{people} >= {self.tested.least}"]

    def _in_domain(self, *, whole: bool = False) -> str:
        """Return the HAVING clause that keeps declared groups alone; nothing when none is declared.

        `whole`: where the rows of all others are asked for too, of the keys that have no others.
        """
        return self._having(self._in_domains(whole=whole))

    def _in_domains(self, *, whole: bool = False) -> list[str]:
        """Return the test that a group is declared.

        COUNT(*) < 0 is never true: it keeps an engine from testing the keys of every row before it
        groups them, which takes more time than the grouping.
        """
        late = "" if self.dialect.groups_before_having else " OR COUNT(*) < 0"
        listed = [
            None if whole and self.axes is not None and self.axes[place].others else domain
            for place, domain in enumerate(self.domains)
        ]
        pairs = zip(self.keys, self.key_names, listed, strict=True)
        tests = [self._member(name, key.type, domain) for key, name, domain in pairs if domain is not None]
        return [f"({' AND '.join(tests)}){late}"] if tests else []

    def _member(self, name: str, type_: SqlType, domain: Domain) -> str:
        """Return the test that a key is in its domain."""
        values = [self._domain_literal(value, type_) for value in domain.values if value is not None]
        tests = [f"{name} IN ({', '.join(values)})"] if values else []
        tests += [f"{name} IS NULL"] if None in domain.values else []
        return f"({' OR '.join(tests)})" if tests else "FALSE"

    def _domain_literal(self, value: Scalar, type_: SqlType) -> str:
        """Return a public key value as a literal; temporal ones may be declared as ISO text."""
        if isinstance(value, str) and type_.is_temporal:
            return self.dialect.cast(self.dialect.text_literal(value), type_.kind.value.upper())
        if isinstance(value, Fraction) and (type_.is_temporal or value.denominator == 1):
            value = int(value)
        return self.dialect.literal(Literal(type_, value))


def _query(sql: str, numbers: tuple[int, ...], sources: SourcePrinter) -> BackendQuery:
    """Return a query of measurements; it is salted where the parameters of its sources begin after the salt."""
    intermediates = tuple(
        p for p in sources.parameters if isinstance(p, (IntermediateValue, IntermediateColumn))
    )
    is_salted = sources.first_parameter > 1
    return BackendQuery(sql, numbers, is_salted, intermediates, row_bytes=sources.row_bytes)
