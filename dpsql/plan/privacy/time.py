"""Which periods of people's rows a statement reads, and whose claim bounds them there (soundness.md 1.40).

A statement is analyzed once as it stands, to see which periods its filters leave rows of, scan by scan; then again over
tables whose scans are bounded to these, as they will be printed. Of each release one of three holds:

    (a) all of its rows are of one period             bounded by person            claims of a removal
    (b) the analysis accepts (person, period)         bounded by person, period    claims of a removal
    (c) any other                                     bounded by person            claims of a replacement

House rules:

1. What is printed is what is charged: a scan's periods are whole, and stand on the raw column, below the clamp. A wrong
   guess of what a filter leaves costs correctness or budget, never privacy (T2).
2. A period that is not over, with what it has to settle, is read by who asks for open ones alone; what is drawn of it
   answers on that day alone.
3. People's undated rows are joined by INNER alone in (a) and (b), at the top; whatever else reads them is (c), and is
   charged to the undated rows too. In (b) they stand as if they were nobody's, and are private all the same: no list of
   keys, no size, nothing of them is read apart.

A statement whose groups are periods is one release for each of them (soundness.md 1.41):

    SELECT date_trunc('month', t), count(*) FROM orders WHERE t >= '2026-01-01' AND t < '2026-04-01' GROUP BY 1

is what `SELECT count(*) FROM orders` is of January, of February and of March, each beside its month. So each month is a
draw of its own: it is charged to its month alone, stored by what is counted and the month, whatever interval was asked,
and never drawn anew when another month is asked with it.

House rules of `each_period`:

1. A release of one period is one of (a): what it claims, is charged and is stored by is its own, and no other's.
2. What a period leaves no choice of is no part of it: terms of WHERE that hold of all of its moments, keys that are one
   value on all of them. A term that cuts a period stays: which rows are kept depends on it. By text and policy alone; a
   wrong guess costs correctness, never privacy, since what is printed is what is claimed of.
3. Where a group can have rows of two periods, all are one draw: their sum would have more noise than it has. Where some
   are not over, and drawn anew each day, counts and sums of those that are over are a draw by themselves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from types import MappingProxyType

from ...policy.model import Time
from ...policy.periods import Over, Slices, Times, first_day, instant_of, number_of
from ...records import dataclass
from ...relation.calendar import parse_date, parse_timestamp
from ...relation.catalog import PERIOD, Catalog, Column, EventTime, Spans, Table, Unit
from ...relation.catalog import Scalar as Value
from ...relation.expressions import (
    Call,
    Expr,
    Field,
    Literal,
    compared,
    fields_of,
    moved,
    parts_in,
)
from ...relation.intervals import Environment, facts_of
from ...relation.relations import (
    AggregateCall,
    Group,
    OutputColumn,
    Relation,
    SetOperation,
    grouped,
    map_parts,
    map_tables,
    nodes_in,
    projected,
    tables_in,
)
from ...relation.types import BIGINT, BOOLEAN, TEXT, TIMESTAMP, Kind
from .analyze import Analyzed
from .functional_dependencies import Classes
from .keys import Domain, domain_of, environment_of, existing_groups
from .ownership import MAX_CONTRIBUTION, identity_of
from .rows import (
    AddedUp,
    OwnedRows,
    Placed,
    Release,
    Select,
    Source,
    columns_of,
    fields_in,
    selects_in,
    source_at,
)
from .value_set import Looking, spelled

MOST_NUMBERED = 400
"""Most periods whose numbers a scan computes: more are bounded by person."""


class NotByPeriod(Exception):
    """The statement's rows are not those of one (person, period) each, as far as is known."""


@dataclass(frozen=True, slots=True)
class Clock:
    """What is over of a budget by periods: `end` is the number of the first period that is not.

    `opened`: the first period that no statement reads, where those are read that have begun and are not over; `day`: on
    which, since what is drawn of them is of that day.
    """

    time: Time
    end: int
    opened: int | None = None
    day: date | None = None

    @classmethod
    def at(cls, time: Time, now: datetime, *, is_open: bool = False) -> Clock:
        """Return what is over at a moment: the period in which it lies, `settle` before, is the first that is not.

        `is_open`: those that have begun since are read, too.
        """
        moment = now.astimezone(UTC)
        end = _number_at(time, moment - time.settle)
        if not is_open:
            return cls(time, end)
        return cls(time, end, _number_at(time, moment) + 1, moment.date())

    @classmethod
    def now(cls, time: Time | None) -> Clock | None:
        """Return what is over by this machine's clock; None where there are no periods."""
        return None if time is None else cls.at(time, datetime.now(UTC))

    @classmethod
    def of_any(cls, time: Time | None) -> Clock | None:
        """Return it as if at least the first period were over: to see what is ever answered, whatever the day is."""
        now = cls.now(time)
        return (
            None
            if now is None
            else cls(now.time, max(now.end, number_of(now.time.period, now.time.since) + 1))
        )

    @property
    def read(self) -> range:
        """The periods that statements read: from the first one that the policy names or keeps, up to the last that is
        over, or has begun."""
        first, end = (
            number_of(self.time.period, self.time.since),
            self.end if self.opened is None else self.opened,
        )
        return range(first if self.time.retention is None else max(first, end - self.time.retention), end)


def _number_at(time: Time, moment: datetime) -> int:
    """Return the number of the period that a moment lies in."""
    number = number_of(time.period, moment.date()) + 1
    while instant_of(time.period, number, time.zone) > moment:
        number -= 1
    return number


# --- what is printed ----------------------------------------------------------------------------------------


def _literal(clock: Clock, number: int, time_type: Kind, *, is_zoned: bool) -> str:
    """Return the beginning of a period as a literal of its column's type: an instant, or the first day."""
    if time_type is Kind.DATE:
        return first_day(clock.time.period, number).isoformat()
    moment = instant_of(clock.time.period, number, clock.time.zone)
    return f"{moment:%Y-%m-%d %H:%M:%S}{'+00' if is_zoned else ''}"


def _spans(
    table: Table, catalog: Catalog, clock: Clock, numbers: Iterable[int], *, is_numbered: bool
) -> Spans:
    """Return the spans of a timed table's scan."""
    time, found = _time_of(table), sorted(set(numbers))
    runs = Slices.of(found).periods if found else ()
    kind = time.type.kind

    def begins(number: int) -> str:
        return _literal(clock, number, kind, is_zoned=time.is_zoned)

    between = tuple((begins(low), begins(high + 1)) for low, high in runs)
    ends = (*(begins(number + 1) for number in found[:-1]), None)
    numbered = tuple(zip(ends, found, strict=True)) if is_numbered and found else ()
    way = tuple((columns, catalog.tables[parent], key) for columns, parent, key in time.way)
    day = clock.day if found and found[-1] >= clock.end else None
    first_days: tuple[tuple[str | None, str], ...] = ()
    if has_numbers(table) and 0 < len(found) <= MOST_NUMBERED:
        days = (first_day(clock.time.period, number).isoformat() for number in found)
        first_days = tuple(zip(ends, days, strict=True))
    return Spans(time, runs, between, way, numbered, day, first_days)


def has_numbers(table: Table) -> bool:
    """Say whether a table's rows are numbered by person and period."""
    return (
        table.unit is not None
        and table.unit.row_number is not None
        and table.unit.row_number.period is not None
    )


def _time_of(table: Table) -> EventTime:
    assert table.unit is not None, "a table with a time is people's"
    assert table.unit.time is not None, "it has a time"
    return table.unit.time


def _bounded(table: Table, spans: Spans) -> Table:
    """Return a table whose scan has spans; what its column holds is known to lie within them, and all of it is told
    where no bounds of the owner's cut it."""
    if spans.time.way or not spans.between:
        return replace(table, spans=spans, scan=None)
    kind = spans.time.type.kind
    low, high = _counted(spans.between[0][0], kind), _counted(spans.between[-1][1], kind)
    columns = tuple(
        _spanned(column, low, high) if column.name == spans.time.column else column
        for column in table.columns
    )
    return replace(table, columns=columns, spans=spans, scan=None)


def _spanned(column: Column, low: Fraction, high: Fraction) -> Column:
    """Return the column of a time whose scan has values from `low` to before `high` alone."""
    bounds = _within(column, low, high)
    is_all = column.values is None and bounds == (low, high - 1)
    return replace(
        column,
        bounds=bounds,
        enforced=replace(column.enforced, not_null=True),
        is_complete=column.is_complete or is_all,
    )


def _within(column: Column, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction] | None:
    """Return the bounds of a column whose values lie from `low` to before `high`; its own where they do not meet."""
    own_low, own_high = column.bounds or (low, high)
    found = max(low, own_low), min(high - 1, own_high)  # a day less, or a microsecond
    return found if found[0] <= found[1] else column.bounds


def _counted(text: str, kind: Kind) -> Fraction:
    """Return a literal in days, or in microseconds."""
    number = parse_date(text) if kind is Kind.DATE else parse_timestamp(text.removesuffix("+00"))
    assert number is not None, "it was made here"
    return Fraction(number)


# --- which periods filters leave ----------------------------------------------------------------------------


def numbered_scans(relation: Relation) -> tuple[Relation, int]:
    """Return a relation each scan of which that has a time has a number, and how many there are."""
    numbers = itertools.count()
    changed = map_tables(
        relation,
        lambda table: (
            replace(table, scan=next(numbers)) if table.unit is not None and table.unit.time else table
        ),
    )
    return changed, next(numbers)


def reached(releases: Iterable[Release], clock: Clock) -> dict[int, frozenset[int]]:
    """Return the periods of each numbered scan that the filters beside it may leave rows of."""
    found: dict[int, frozenset[int]] = {}
    for release in releases:
        for select in selects_in(release.rows):
            for placed in fields_in(select.items):
                table = placed.item.source.table
                if table is None or table.scan is None:
                    continue
                own = _reached_by(select, placed, clock)
                found[table.scan] = found.get(table.scan, frozenset()) | own
    return found


def _reached_by(select: Select, placed: Placed, clock: Clock) -> frozenset[int]:
    """Return the periods of one source's rows that what filters it leaves."""
    item, everything = placed.item, frozenset(clock.read)
    table = item.source.table
    assert table is not None, "it is a scan"
    time = _time_of(table)
    if any(other.kind == "full" for other in select.items):
        return everything
    if item.kind != "inner":
        if time.way:
            return everything
        inside = placed.inside
        terms = [moved(term, lambda index: index - placed.start) for term in placed.all_own(item.on)]
        columns, start = item.source.columns, 0
        assert inside.start == placed.start
    else:
        parent = _parent_with_time(select, placed)
        if parent is None:
            return everything
        placed, terms = parent, list(select.predicate)
        columns, start = columns_of(select.items), placed.start
    shown = placed.item.source.shown
    if time.column not in shown:
        return everything
    index = start + shown.index(time.column)
    return _left_by(Field(columns[index].type, index, time.column), columns, tuple(terms), clock)


def _parent_with_time(select: Select, placed: Placed) -> Placed | None:
    """Return the source that has the time of another one's rows, itself or an inner one that is equal in their keys."""
    table = placed.item.source.table
    assert table is not None, "it is a scan"
    classes, here = Classes.of(select.predicate), placed
    for columns, parent, key in _time_of(table).way:
        for other in fields_in(select.items):
            known = other.item.source.table
            if known is None or known.name != parent or other.item.kind != "inner":
                continue
            mine, theirs = here.item.source.shown, other.item.source.shown
            if not ({*columns} <= {*mine} and {*key} <= {*theirs}):
                continue
            pairs = zip(columns, key, strict=True)
            if all(
                classes.find(here.start + mine.index(one)) == classes.find(other.start + theirs.index(two))
                for one, two in pairs
            ):
                here = other
                break
        else:
            return None
    return here


def _left_by(
    column: Field, columns: Sequence[Column], terms: tuple[Expr, ...], clock: Clock
) -> frozenset[int]:
    """Return the periods that terms leave of a column: between its ends, and of these those that a key can have."""
    env, kind = environment_of(tuple(columns), terms), column.type.kind
    # nothing is declared of what is read: it is bounded by what is printed on it, below any clamp
    open_ = replace(columns[column.index], bounds=None, values=None)
    known = facts_of(column, replace(env, columns=(*columns[: column.index], open_)))

    def begins(number: int) -> Fraction:
        return _counted(_literal(clock, number, kind, is_zoned=False), kind)

    candidates = [
        number
        for number in clock.read
        if (known.lo is None or known.lo < begins(number + 1))
        and (known.hi is None or begins(number) <= known.hi)
    ]
    found, in_utc = {*candidates}, clock.time.zone == "UTC" or kind is Kind.DATE
    if len(candidates) > 1 and in_utc and column.index in fields_of(*terms):
        unit = Fraction(24 * 3600 * 10**6) if kind is Kind.DATE else Fraction(1)
        own = replace(
            columns[column.index], bounds=(begins(candidates[0]), begins(candidates[-1] + 1) - 1), values=None
        )
        narrowed = environment_of((*columns[: column.index], own, *columns[column.index + 1 :]), terms)
        key = Call(TIMESTAMP, "date_trunc", (Literal(TEXT, clock.time.period.value), column))
        values = {begins(number) * unit: number for number in candidates}
        groups = existing_groups((key,), [Domain(tuple(values))], narrowed, terms, Looking())
        found = {values[value] for (value,) in groups if isinstance(value, Fraction) and value in values}
    return frozenset(found)


# --- the same statement over scans that are bounded ---------------------------------------------------------


def _of_scan(table: Table, scans: dict[int, frozenset[int]]) -> frozenset[int]:
    return frozenset() if table.scan is None else scans[table.scan]


def by_person(
    relation: Relation, catalog: Catalog, clock: Clock, scans: dict[int, frozenset[int]], *, is_ever: bool
) -> tuple[Relation, Catalog]:
    """Return a statement and its catalog by person. `is_ever`: over several periods, a person is replaced (c)."""
    union = frozenset[int]().union(*scans.values())

    def changed(table: Table, numbers: frozenset[int]) -> Table:
        if table.unit is None or table.unit.time is None:
            return replace(table, scan=None)
        unit = _ever(table.unit, max(1, len(numbers))) if is_ever else table.unit
        spans = _spans(table, catalog, clock, numbers, is_numbered=False)
        return _bounded(replace(table, unit=unit), spans)

    tables = {name: changed(table, union) for name, table in catalog.tables.items()}
    over = map_tables(relation, lambda table: changed(table, _of_scan(table, scans)))
    return over, replace(catalog, tables=MappingProxyType(tables), is_replaced=is_ever)


def _ever(unit: Unit, periods: int) -> Unit:
    """Return a unit whose bounds are of a person's rows in the several periods that a scan reads."""
    if unit.max_rows is None:
        return unit
    most = min(unit.max_rows * periods, MAX_CONTRIBUTION)
    most = most if unit.max_rows_ever is None else min(most, unit.max_rows_ever)
    bounds = (
        None if bound is None else min(bound * periods, most)
        for bound in (unit.max_rows_per_group, unit.max_groups)
    )
    rows, groups = bounds
    return replace(unit, max_rows=most, max_rows_per_group=rows, max_groups=groups)


def by_period(
    relation: Relation, catalog: Catalog, clock: Clock, scans: dict[int, frozenset[int]]
) -> tuple[Relation, Catalog]:
    """Return a statement and its catalog with (person, period) as the unit, undated tables as if nobody's.

    Raises NotByPeriod: where the person does not stand in a timed row, or there are many periods.
    """
    union = frozenset[int]().union(*scans.values())
    if len(union) > MOST_NUMBERED:
        raise NotByPeriod

    def changed(table: Table, numbers: frozenset[int]) -> Table:
        unit = table.unit
        if unit is None or table.own is not None:
            return table
        if unit.time is None:
            return _as_nobodys(table)
        spans = _spans(table, catalog, clock, numbers, is_numbered=not unit.time.way)
        if unit.time.way:
            return _bounded(table, spans)
        identity, owner = identity_of(table, catalog)
        if identity != catalog.root:
            raise NotByPeriod
        types = dict(zip(unit.columns, unit.types, strict=True))
        pair = replace(
            unit,
            columns=(*owner, PERIOD),
            types=(*(types[name] for name in owner), BIGINT),
            references=None,
            is_held=False,
        )
        return _bounded(replace(table, unit=pair), spans)

    timed = {
        name
        for name, table in catalog.tables.items()
        if table.unit is not None and table.unit.time is not None
    }
    asked = {table.name for table in tables_in(relation)}
    ways = {parent for name in asked & timed for _, parent, _ in _time_of(catalog.tables[name]).way}
    tables = {}
    for name, table in catalog.tables.items():
        try:
            tables[name] = changed(table, union)
        except NotByPeriod:
            if name in asked | ways:
                raise
            tables[name] = _as_nobodys(table)
    over = map_tables(relation, lambda table: changed(table, _of_scan(table, scans)))
    return over, replace(catalog, tables=MappingProxyType(tables))


def _as_nobodys(table: Table) -> Table:
    """Return people's undated rows as a plan by (person, period) joins them."""
    own = {column.name: ground for column, ground in zip(table.columns, table.column_grounds, strict=True)}
    added = table.owner_columns
    grounds = (own.get(column.name, (table.name, "")) for column in added)
    return replace(
        table,
        columns=(*table.columns, *added),
        column_grounds=(*table.column_grounds, *grounds),
        unit=None,
        is_undated=True,
    )


# --- what holds of a release --------------------------------------------------------------------------------


def _is_undated(source: Source) -> bool:
    table = source.table
    return table is not None and (table.is_undated or (table.unit is not None and table.unit.time is None))


def _is_timed(source: Source) -> bool:
    return source.table is not None and source.table.spans is not None


def joins_plainly(rows: OwnedRows) -> bool:
    """Say whether each row has a timed row in it, and undated ones by INNER joins at the top alone (house rule 3)."""
    top = [item for item in rows.items if item.kind == "inner"]
    deep = [select for select in selects_in(rows) if select is not rows]
    if any(_is_undated(item.source) for select in deep for item in select.items):
        return False
    if any(_is_undated(item.source) for item in rows.items if item.kind != "inner"):
        return False
    return any(_is_timed(item.source) or (item.source.is_private and bool(item.source.parts)) for item in top)


def joins_own(rows: OwnedRows) -> bool:
    """Say whether each undated row stands beside a timed one whose person is its own, by columns that are equal."""
    holders = {
        i for i, item in enumerate(rows.items) if _is_timed(item.source) and item.source.holds(rows.root)
    }
    if not holders:
        return all(not _is_undated(item.source) for item in rows.items)
    for item, start in fields_in(rows.items):
        if not _is_undated(item.source):
            continue
        ways = item.source.holds(rows.root)
        if not any(
            all(start + index in unit for index, unit in zip(way, rows.units, strict=True)) for way in ways
        ):
            return False
    return True


def reads_references(rows: OwnedRows) -> bool:
    """Say whether it is read whom people's rows point at: of these undated rows may stand there, or rows of another
    period (soundness.md 1.38)."""
    if rows.lookup is not None:
        return True
    for select in selects_in(rows):
        read = fields_of(*select.predicate, *(term for item in select.items for term in item.on))
        for item, start in fields_in(select.items):
            table = item.source.table
            also = () if table is None or table.unit is None else table.unit.also
            points = {name for one in also for name in one.columns}
            if any(start + index in read for index, name in enumerate(item.source.shown) if name in points):
                return True
    return False


def undated_scans(rows: OwnedRows) -> int:
    """Return how many undated tables stand in rows as a statement reads them."""
    return sum(_is_undated(item.source) and not item.source.is_on_way for item in rows.items)


def _sources(rows: OwnedRows) -> Iterator[Source]:
    for select in selects_in(rows):
        yield from (item.source for item in select.items)


def spans_in(rows: OwnedRows) -> Iterator[Spans]:
    """Yield the spans of the scans of some rows."""
    tables = (source.table for source in _sources(rows) if source.table is not None)
    yield from (table.spans for table in tables if table.spans is not None)


def slices_of(rows: OwnedRows, clock: Clock) -> Slices | None:
    """Return whose data a release of these rows is charged for, None where no period of it is over."""
    spans = list(spans_in(rows))
    numbers = {number for one in spans for first, last in one.periods for number in range(first, last + 1)}
    is_undated = any(_is_undated(source) for source in _sources(rows))
    if spans and not numbers:
        return None
    is_charged = not spans or (is_undated and (rows.is_replaced or not joins_plainly(rows)))
    over = Over.ONCE if rows.is_replaced else Over.EACH if len(numbers) <= 1 else Over.ALL
    column = next((one.time.column for one in spans), "")
    return Slices.of(numbers, is_undated=is_charged, column=column, over=over, times=_times_of(rows))


def _times_of(rows: OwnedRows) -> Times:
    """Return by which time the rows of each of people's tables that is read are of a period."""
    tables = (source.table for source in _sources(rows) if _is_timed(source) or _is_undated(source))
    return tuple(
        sorted(
            {
                (one.origin, "" if one.spans is None else _said_time(one.spans))
                for one in tables
                if one is not None
            }
        )
    )


def _said_time(spans: Spans) -> str:
    """Return the column of a table's time as charges are told by it: its table by the database's name."""
    return f"{spans.way[-1][1].origin}.{spans.time.column}" if spans.way else spans.time.column


def is_of_one_period(rows: OwnedRows, clock: Clock) -> bool:
    """Say whether (a) holds: all rows are of one period, or no time is read at all."""
    slices = slices_of(rows, clock)
    if slices is None or not any(_is_timed(source) for source in _sources(rows)):
        return True
    return slices.count == 1 and joins_plainly(rows)


MOST_PERIODS = 100
"""Most periods of a statement that are draws of their own: of more, all are one."""
_MOST_LOOKED_AT = 12
"""Most values of a key of which it is looked at which are there in a period: months of a year, days of a week."""


@dataclass(frozen=True, slots=True)
class Each:
    """A statement over releases of one period each. `parts`: those that a release of the statement is made of."""

    analyzed: Analyzed
    parts: tuple[tuple[Release, ...], ...]


def ordered(analyzed: Analyzed) -> tuple[Release, ...]:
    """Return the releases of a statement in order of drawing."""
    return tuple(dict.fromkeys(nodes_in(Release, *analyzed.intermediates, analyzed.root)))


def each_period(whole: Analyzed, by_period: Sequence[Sequence[Release | None]]) -> Each | None:
    """Return a statement made of releases of one period each; None: some group of it can have rows of two.

    `by_period`: of each release in order of drawing, what it is in each period; None: it reads nothing of that one.
    """

    def own(release: Release, parts: list[Release]) -> list[Release]:
        if not all(_is_alike(part.rows, release.rows) for part in parts):
            return []
        # by the keys that the whole has: in one period another one of them may say the rest
        keys, aggregates, names = release.keys, release.aggregates, release.names
        found = [replace(part, keys=keys, aggregates=aggregates, names=names) for part in parts]
        return found if _are_apart(found) else []

    return _of_parts(whole, by_period, own, lambda rows, release: rows)


def at_boundary(whole: Analyzed, by_part: Sequence[Sequence[Release | None]]) -> Each | None:
    """Return a statement whose counts and sums are those of some parts of the periods, added up; None: it has others.

    `by_part`: of each release in order of drawing, what it is over each part; None: it reads nothing of that one.
    """

    def own(release: Release, parts: list[Release]) -> list[Release]:
        if any(call.function not in ("count", "sum") or call.distinct for call in release.aggregates):
            return []
        alike = (_is_alike(part.rows, release.rows) and part.keys == release.keys for part in parts)
        return parts if all(alike) else []

    return _of_parts(whole, by_part, own, _added_up)


def _of_parts(
    whole: Analyzed, by_part: Sequence[Sequence[Release | None]],
    own: Callable[[Release, list[Release]], list[Release]], shown: Callable[[Relation, Release], Relation],
) -> Each | None:  # fmt: skip
    """Return a statement with the rows of parts in the place of each release, as they are `shown`; None: `own`, which
    says what is drawn of each, has none for one of them."""
    if any(nodes_in(AddedUp, whole.root, *whole.intermediates)):
        return None
    made: dict[Release, Relation] = {}
    found: list[tuple[Release, ...]] = []
    for release, parts in zip(ordered(whole), by_part, strict=True):
        alone = [
            _alone(part) for part in own(release, [part for part in dict.fromkeys(parts) if part is not None])
        ]
        if not alone:
            return None
        made[release] = shown(_united([rows for _, rows in alone], release.columns), release)
        found.append(tuple(part for part, _ in alone))
    root, *intermediates = (
        map_parts(one, lambda node: made[node] if isinstance(node, Release) else None)
        for one in (whole.root, *whole.intermediates)
    )
    return Each(replace(whole, root=root, intermediates=tuple(intermediates)), tuple(found))


def _added_up(rows: Relation, release: Release) -> Relation:
    """Return the rows of a release's parts added up: one for each group."""
    width, row = len(release.keys), rows.row
    calls = tuple(
        AggregateCall(call.type, "sum", (row[width + i],), False, None)
        for i, call in enumerate(release.aggregates)
    )
    sums = grouped(rows, Group(row[:width], calls, (tuple(range(width)),), names=release.names))
    shown = (
        Call(call.type, "cast", (field,))
        for call, field in zip(release.aggregates, sums.row[width:], strict=True)
    )
    return projected(sums, (*sums.row[:width], *shown), release.names, release.position)


def _is_alike(rows: Select, others: Select) -> bool:
    """Say whether columns of two blocks are the same ones, of whatever periods."""
    here, there = (
        [(item.kind, item.source.name, item.source.uncut.shown, len(item.columns)) for item in of.items]
        for of in (rows, others)
    )
    return here == there


def _united(parts: Sequence[Relation], columns: tuple[OutputColumn, ...]) -> Relation:
    """Return the rows of all parts, as many steps deep as there are halves of them."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = _united(parts[:half], columns), _united(parts[half:], columns)
    return SetOperation("union", True, left, right, columns)


# --- which groups a period has -----------------------------------------------------------------------------------


def _are_apart(parts: Sequence[Release]) -> bool:
    """Say whether some key tells each two periods apart: no value of it is one of both."""
    if len(parts) == 1:
        return True
    return _tells_apart([[_traced(key, part.rows) for key in part.keys] for part in parts])


def _tells_apart(known: Sequence[Sequence[tuple[Value, ...] | None]]) -> bool:
    """Say whether of each two periods some key has no value in common. `known`: what each can be, by period."""
    return all(
        any(
            mine is not None and theirs is not None and not set(mine) & set(theirs)
            for mine, theirs in zip(*pair, strict=True)
        )
        for pair in itertools.combinations(known, 2)
    )


def _traced(key: Expr, rows: Select) -> tuple[Value, ...] | None:
    """Return what a key can be where it is one of its moments, or of those that a subquery of one part reads."""
    if key.column is None:
        return _values(key, environment_of(rows.columns, rows.predicate), _moments(rows))
    item, start = source_at(rows.items, key.column)
    if any(one.kind == "full" for one in rows.items):
        return None
    if item.kind == "inner" and item.source.is_subquery and len(item.source.parts) == 1:
        (part,) = item.source.parts
        place = key.column - start
        return _traced(part.outputs[place], part) if place < len(part.outputs) else None
    return _values(key, environment_of(rows.columns, rows.predicate), _moments(rows))


def are_of_one_period(parts: Sequence[Select]) -> bool:
    """Say whether each row of a block is made of rows of one period: those of its periods, apart, are then all of it.

    `parts`: the block in each period. One source has a time, by an INNER join: a table as it stands, or a subquery of
    such rows, which is grouped, where it is, by what tells the periods apart.
    """
    first = parts[0]
    timed = [place for place, item in enumerate(first.items) if _has_time(item.source)]
    if len(timed) != 1 or not all(_is_alike(part, first) for part in parts):
        return False
    items = [part.items[timed[0]] for part in parts]
    source = items[0].source
    if items[0].kind != "inner" or (source.table is None and not source.is_subquery):
        return False
    for number in range(len(source.parts) if source.is_subquery else 0):
        below = [item.source.parts[number] for item in items]
        if not are_of_one_period(below) or below[0].windows:
            return False
        if below[0].aggregates is not None and not _tells_apart(
            [[_traced(key, one) for key in one.outputs] for one in below]
        ):
            return False
    return True


def _has_time(source: Source) -> bool:
    if source.table is not None:
        return source.table.spans is not None
    return any(_has_time(item.source) for part in source.parts for item in part.items)


def _values(key: Expr, env: Environment, moments: frozenset[int]) -> tuple[Value, ...] | None:
    """Return what a key can be, where it is one of its moments alone; None: that is not known."""
    if not fields_of(key) or not fields_of(key) <= moments:
        return None
    domain = domain_of(key, env)
    if domain is None:
        return None
    values = domain.values
    if 1 < len(values) <= _MOST_LOOKED_AT:
        values = tuple(value for (value,) in existing_groups((key,), [domain], env, (), Looking()))
    return tuple(spelled(value, key.type) for value in values)


def _moments(rows: Select) -> frozenset[int]:
    """Return the columns of a block that are bounded to its periods where they are read, and so never NULL."""
    found = set[int]()
    if any(item.kind == "full" for item in rows.items):
        return frozenset()
    for item, start in fields_in(rows.items):
        table = item.source.uncut.table
        if item.kind != "inner" or table is None or table.spans is None or table.spans.time.way:
            continue
        time = table.spans.time.column
        found |= {start + i for i, name in enumerate(item.source.uncut.shown) if name == time}
    return frozenset(found)


# --- what a period leaves no choice of ---------------------------------------------------------------------------


def _alone(release: Release) -> tuple[Release, Relation]:
    """Return a release of one period without what that leaves no choice of, and as it was asked for, with all keys."""
    rows = release.rows
    predicate = cutting(rows)
    left = rows if predicate == rows.predicate else replace(rows, predicate=predicate)
    one = [_one_value(key, left) for key in release.keys]
    kept = [place for place, value in enumerate(one) if value is None]
    width = len(release.keys)
    names = (*(release.names[place] for place in kept), *release.names[width:])
    drawn = replace(
        release,
        rows=left,
        keys=tuple(release.keys[place] for place in kept),
        names=names,
    )
    if len(kept) == width:
        return drawn, drawn
    row = drawn.row
    keys = (row[kept.index(i)] if value is None else value for i, value in enumerate(one))
    return drawn, projected(drawn, (*keys, *row[len(kept) :]), release.names, release.position)


def cutting(rows: Select) -> tuple[Expr, ...]:
    """Return the terms of a filter that some moment of the periods which are read could fail."""
    plain, moments = environment_of(rows.columns, ()), _moments(rows)
    return tuple(term for term in rows.predicate if not _holds(term, plain, moments))


def _one_value(key: Expr, rows: Select) -> Literal | None:
    """Return the value that a key is on all moments of a period; None: it may be several."""
    values = _traced(key, rows)
    if values is None or len(values) != 1:
        return None
    (value,) = values
    return Literal(key.type, value, position=key.position) if isinstance(value, int | str) else None


_COMPARED: Mapping[str, Callable[[Fraction, Fraction, Fraction], bool]] = {
    "ge": lambda low, high, value: low >= value,
    "gt": lambda low, high, value: low > value,
    "le": lambda low, high, value: high <= value,
    "lt": lambda low, high, value: high < value,
}
"""When a comparison holds of all values from `low` to `high`."""


def _holds(term: Expr, env: Environment, moments: frozenset[int]) -> bool:
    """Say whether a term holds of all moments of a period: so it is where no row of the period fails it."""
    read = fields_of(term)
    if len(read) != 1 or not read <= moments:
        return False
    (column,) = set(parts_in(Field, term))
    facts, found = facts_of(column, env), compared(term)
    if found is not None and found[1] == column and found[0] in _COMPARED:
        value = found[2].exact if isinstance(found[2], Literal) else None
        if isinstance(value, Fraction) and found[2].type.kind is column.type.kind:
            low, high = facts.lo, facts.hi
            return low is not None and high is not None and _COMPARED[found[0]](low, high, value)
    key = Call(TIMESTAMP, "date_trunc", (Literal(TEXT, "year"), column))
    domain = domain_of(key, env)
    if domain is None:
        return False
    failed = Call(BOOLEAN, "or", (Call(BOOLEAN, "not", (term,)), Call(BOOLEAN, "is_null", (term,))))
    narrowed = environment_of(tuple(env.columns), (failed,))
    return not existing_groups((key,), [domain], narrowed, (failed,), Looking())
