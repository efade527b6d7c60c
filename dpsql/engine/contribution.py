"""What is said of a plan: how much one person counts, and several; how its groups are added up.

Pure: from plans alone, and from what was measured before (`left_out`). Nothing is known, or said, of whether any row of
an answer was left out.

What is said of ROLLUP, CUBE and GROUPING SETS: which rows are sums of which cells, and what does not add up.

Pure: from plans alone (soundness.md 1.18).
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from functools import reduce

from ..plan.measures.measurements import BoundingQuery, Numbered
from ..plan.planner import Plan
from ..plan.privacy.keys import environment_of
from ..plan.privacy.rows import AddedUp, Item, Label, Lookup, OwnedRows, Release, Select, selects_in
from ..plan.privacy.time import Clock
from ..plan.privacy.value_set import spelled
from ..plan.release_plan import ReleasePlan
from ..policy import Accounting
from ..policy.periods import Slices, first_day, run_text
from ..records import dataclass
from ..relation.catalog import PERIOD, Table
from ..relation.expressions import Field, fields_of, walk
from ..relation.intervals import facts_of
from ..relation.relations import all_parts
from ..relation.types import Kind
from ..release.answer_bars import FindLeftOut, cut_of, groups_of, measured_of
from ..release.left_out import LeftOut, LeftOutByNorms, left_text, percent
from ..words import counted
from .answer import BoundNote
from .settings import decimal_text

# --- whose data a statement is charged for, under a budget by periods (soundness.md 1.40) --------------------


def period_lines(plan: Plan, release: ReleasePlan) -> list[str]:
    """Return which periods a release reads and what is charged to each of them; nothing where there are none."""
    clock, slices = plan.privacy.clock, release.slices
    if clock is None or slices is None or release.is_empty:
        return []
    return _period_lines(clock, release, slices)


def apart_lines(plan: Plan, group: Sequence[int], drawn: Collection[int]) -> list[str]:
    """Return the same of releases, by number, that are one of the statement's, a period each (soundness.md 1.41).

    `drawn`: those that would be drawn now; the others are stored.
    """
    clock, releases = plan.privacy.clock, [plan.releases[number] for number in group]
    own = [one.slices for one in releases if one.slices is not None and not one.is_empty]
    if clock is None or not own:
        return []
    period, since = clock.time.period, clock.time.since
    stored = [
        one for number in group if number not in drawn and (one := plan.releases[number].slices) is not None
    ]
    left = [one for number in group if number in drawn and (one := plan.releases[number].slices) is not None]
    said = f"a draw of each {period.value} by itself, which other intervals are answered from as well"
    if any(one.count > 1 for one in own):
        said = f"one draw of what is over, and one of each {period.value} that is not; they are added up"
    if not stored:
        said += "; none is stored yet"
    elif not left:
        said += "; all are stored"
    else:
        told, paid = (reduce(Slices.union, those).text(period, since) for those in (stored, left))
        said += f"; stored: {told}; to be paid: {paid}"
    return [*_period_lines(clock, releases[0], reduce(Slices.union, own), is_apart=True), said]


def _period_lines(clock: Clock, release: ReleasePlan, slices: Slices, *, is_apart: bool = False) -> list[str]:
    period = clock.time.period
    said = slices.text(period, clock.time.since)
    epsilon = sum((one.epsilon for one in release.measures), Fraction(0))
    each = f"epsilon {decimal_text(epsilon)}"
    if not slices.periods:
        return [f"people's undated rows: {each} is charged to these"]
    tables = dict.fromkeys(
        f'"{one.time.table or source.name}"."{one.time.column}"'
        for select in selects_in(release.release.rows)
        for source in (item.source for item in select.items)
        if source.table is not None and (one := source.table.spans) is not None
    )
    found = [f"{period.value}s: {said} of {', '.join(tables)}, printed; {each} is charged to each"]
    if slices.periods[-1][1] >= clock.end:
        found.append(
            f"not over: {_open_text(clock)}, told as it is on {clock.day}, and charged anew on another day"
        )
    if release.release.rows.is_replaced:
        found.append(
            f"bounded by person: one {period.value} changes how a person counts, and does not take it away"
        )
    elif slices.count > 1 and is_apart:
        found.append(
            f"bounded by person in each {period.value}; a person in all of them: {slices.count} times that"
        )
    elif slices.count > 1:
        found.append(
            f"bounded by person and {period.value}; a person in all of them: {slices.count} times that"
        )
        if all(one.query is BoundingQuery.SCALED for one in release.measurements):
            found.append(
                f"one draw of all {slices.count}: the sum of one for each {period.value} would be "
                f"{math.sqrt(slices.count):.3g} times as far off"
            )
    return found


def _open_text(clock: Clock) -> str:
    """Return the periods that are read and not over."""
    return run_text(clock.time.period, clock.end, clock.read[-1])


def period_notes(plan: Plan, clock: Clock) -> Iterator[str]:
    """Yield that no filter bounds the periods of a release, where it is charged to all that are over."""
    reached = [one.slices for one in plan.releases if one.slices is not None and not one.is_empty]
    if any(one.periods and one.periods[-1][1] >= clock.end for one in reached):
        yield f"not over: {_open_text(clock)}, told as it is on {clock.day}, and charged anew on another day"
    later = {number for group in plan.apart for number in group[1:]}
    whole = {group[0]: [plan.releases[number].slices for number in group] for group in plan.apart}
    for number, release in enumerate(plan.releases):
        own = [one for one in whole.get(number, [release.slices]) if one is not None]
        if not own or number in later or release.is_empty:
            continue
        slices, rows = reduce(Slices.union, own), release.release.rows
        if slices.count < max(2, len(clock.read)):
            continue
        period, first = clock.time.period, first_day(clock.time.period, clock.end - 1)
        asked = {field for term in rows.predicate for field in walk(term) if isinstance(field, Field)}
        others = sorted(
            {
                f'"{one.name}"'
                for one in asked
                if one.type.is_temporal and one.name and one.name != slices.column
            }
        )
        vain = f"; {', '.join(others)} bounds nothing" if others else ""
        yield (
            f'no filter bounds "{slices.column}", so that all {slices.count} {period.value}s are charged{vain}; '
            f"of the last one alone: {slices.column} >= '{first}'"
        )


# --- what a statement's charge means for several persons at once: group privacy (soundness.md 1.19). Pure ---


_HOUSEHOLD = 4
"""The group that is spoken of where the policy promises nothing for several persons: a usual household."""


def group_lines(plan: Plan, accounting: Accounting = Accounting.PURE) -> Iterator[str]:
    """Yield what the charge comes to for a household; nothing where the policy's own promise is for several.

    Under zCDP the rho of k persons is k² times that of one [BS16, proposition 1.9]: the epsilon is k times as large.
    """
    if (
        not plan.releases
        or any(release.bounding.together > 1 for release in plan.releases)
        or not plan.epsilon
    ):
        return
    if accounting is not Accounting.PURE:
        yield f"for {_HOUSEHOLD} persons together: {_HOUSEHOLD**2} times the rho, as {_HOUSEHOLD} times the epsilon"
        return
    epsilon, delta = group_loss(plan.epsilon, plan.delta, _HOUSEHOLD)
    and_delta = f", delta {delta:.3g}" if delta else ""
    yield f"for {_HOUSEHOLD} persons together: epsilon {decimal_text(epsilon)}{and_delta}"


def group_loss(epsilon: Fraction, delta: Fraction, persons: int) -> tuple[Fraction, float]:
    """Return the loss of so many persons together, of what is (epsilon, delta) for each: k·epsilon, and

        delta + delta·e^epsilon + … + delta·e^((k-1)·epsilon)  =  delta · (e^(k·epsilon) - 1) / (e^epsilon - 1).

    The delta is rounded, for display; 1 where it comes to more, which is no promise at all.
    """
    each = float(epsilon)
    factor = math.expm1(persons * each) / math.expm1(each)
    return persons * epsilon, min(1.0, float(delta) * factor)


# --- what is said of ROLLUP, CUBE and GROUPING SETS ---------------------------------------------------------


def sums_of(plan: Plan, release: Release) -> tuple[AddedUp, ...]:
    """Return the grouping sets that are sums of a release's cells, each once, in the statement's order."""
    nodes = (node for relation in (*plan.intermediates, plan.root) for node in all_parts(relation))
    return tuple(dict.fromkeys(n for n in nodes if isinstance(n, AddedUp) and n.release == release))


def cells_of(plan: ReleasePlan, node: AddedUp) -> int:
    """Return of how many of a release's cells one row of a grouping set is the sum, at most."""
    tables = [dict(one.values) if isinstance(one, Label) else None for one in node.by]
    places = [one.place if isinstance(one, Label) else one for one in node.by]
    types = [key.type for key in plan.release.keys]
    rows = Counter(
        tuple(
            group[place] if table is None else table[spelled(group[place], types[place])]
            for place, table in zip(places, tables, strict=True)
        )
        for group in plan.groups or ()
    )
    return max(rows.values(), default=1)


def keys_text(node: AddedUp) -> str:
    """Return a grouping set as GROUP BY has it."""
    return f"({', '.join(name or '…' for name in node.names)})"


def set_notes(plan: Plan) -> Iterator[str]:
    """Yield where rows of different grouping sets do not add up, and what is in no row of those that do."""
    apart = [release for release in plan.releases if release.release.share[0] != release.release.share[1]]
    added = {release.release: sums_of(plan, release.release) for release in plan.releases}
    for release in plan.releases:
        keys = [name for number, name in enumerate(release.release.names) if _is_open(release, number)]
        if any(_is_coarser(node) for node in added[release.release]) and keys:
            named = " or ".join(dict.fromkeys(f'"{name}"' if name else "an expression" for name in keys))
            yield (
                f'totals of "{release.release.rows.shown_name}" leave out rows whose {named} is outside its declared '
                "values or bounds, if there are any; COUNT(*) without GROUP BY has them all"
            )
    if any(release.groups is None for release in apart):
        yield "groups that are found by threshold do not add up to the rows above them"
    if any(release.groups is not None and not added[release.release] and _once(release) for release in apart):
        yield "COUNT(DISTINCT …) of a group is no sum of those of finer groups: it is measured for each grouping set"
    if any(release.choices for release in apart):
        yield "a value that is chosen by its rank is chosen for each grouping set by itself"
    if sum(bool(added[release.release]) for release in apart) > 1:
        yield (
            "grouping sets that are measured apart add up each to a total of its own, unless their groups hold all "
            "rows"
        )


def _is_coarser(node: AddedUp) -> bool:
    """Say whether a release's rows are added up by less than all of its keys."""
    return not set(range(len(node.release.keys))) <= set(node.by)


def _is_open(plan: ReleasePlan, number: int) -> bool:
    """Say whether a row may have a key that is none of a release's: neither its type nor the engine keeps it out."""
    if number >= len(plan.domains) or plan.domains[number] is None:
        return number < len(plan.domains)
    key, domain, rows = plan.release.keys[number], plan.domains[number], plan.release.rows
    assert domain is not None
    known = set(domain.values)
    if facts_of(key, environment_of(rows.columns, rows.predicate)).nullable and None not in known:
        return True
    if key.type.kind is Kind.BOOLEAN:
        return not known.issuperset((False, True))
    held = None if key.column is None else rows.columns[key.column].enforced
    if held is None or held.lo is None or held.hi is None or not key.type.is_integer:
        return True
    least, most = math.ceil(held.lo), math.floor(held.hi)
    return most - least >= len(known) or not known.issuperset(range(least, most + 1))


def _once(release: ReleasePlan) -> bool:
    return any(call.distinct or call.function == "avg_direct" for call in release.release.aggregates)


# --- what is said of how much one person counts -------------------------------------------------------------


_UNBOUNDED = "no error bar holds what that leaves out"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of what bounds leave out: `find` says what was measured, `find_norms` of a table's norms.

    `has_bars`: error bars are asked for; `is_computed`: some of them are of what is computed from several numbers,
    which hold the noise alone. `is_agreed`: numbers were made to agree with others, of which the same is so.
    """

    find: FindLeftOut
    find_norms: Callable[[str], LeftOutByNorms | None] = lambda name: None
    has_bars: bool = False
    is_computed: bool = False
    is_agreed: bool = False


def bounds_of(release: ReleasePlan, of: str = "") -> list[str]:
    """Return the bounds of one person that may leave something out; `of`: what the rows are rows of."""
    bounding, found = release.bounding, []
    if bounding.numbered is not None:
        return [f"{counted(bounding.in_all, 'row')}{of}, {_numbers_of(release, bounding.numbered)}"]
    if bounding.per_row:
        return []
    measurements = {measurement.query: measurement for measurement in release.measurements}
    if any(query.takes_all_rows for query in measurements):
        found.append(f"{counted(bounding.in_all, 'row')}{of}")
    if BoundingQuery.RANKED in measurements and bounding.ranked:
        found.append(counted(bounding.groups, "group"))
    if BoundingQuery.DISTINCT in measurements:
        found.append(counted(measurements[BoundingQuery.DISTINCT].distinct_limit, "distinct value"))
    return found


def _numbers_of(release: ReleasePlan, numbered: Numbered) -> str:
    """Return which numbers are read: of one table's rows, or of each source that is cut by its own before a join."""
    rows = release.release.rows
    if numbered.place is not None:
        last = release.bounding.last_number
        return f"numbered 1 to {last}{' of each period' if last != release.bounding.in_all else ''}"
    cuts = (rows.items[place].source for place in rows.told)
    return " × ".join(f'"{cut.shown_name}" numbered 1 to {cut.most}' for cut in cuts)


def _each_period(release: ReleasePlan) -> str:
    """Return of which rows a person's are bounded, where it is those of each period."""
    return " in each period" if PERIOD in release.release.rows.root[1] else ""


def _norms_of(release: ReleasePlan) -> str:
    """Return by what norms a person's rows are bounded besides; a column that has no name here is not named."""
    table = release.release.rows.table_alone
    hidden = frozenset() if table is None else table.unnamed
    found = []
    for norm in release.bounding.norms:
        columns = [part.name for part in walk(norm.key) if isinstance(part, Field)]
        name = "a column" if hidden.intersection(columns) else " ".join(columns)
        if norm.key.calls("date_trunc"):
            name = f"{norm.key.args[0].constant}({name})"
        found.append(f"{norm.most} in root-sum-of-squares by {name}")
    is_scaled = any(measurement.query is BoundingQuery.SCALED for measurement in release.measurements)
    return f", and {' and '.join(found)}" if found and is_scaled else ""


def contribution_lines(release: ReleasePlan) -> Iterator[str]:
    """Yield EXPLAIN's lines on one person's part of a release."""
    if release.release.rows.row_tables:
        yield "each row is a unit by itself"
        return
    if release.release.rows.lookup is not None:
        yield from _lines_of_two(release, release.release.rows.lookup)
        return
    if release.bounding.per_row and release.bounding.numbered is None:
        yield "one row per person, held by the database"
        return
    if bounds := bounds_of(release):
        yield f"at most {' and '.join(bounds)} of a person{_each_period(release)}{_norms_of(release)}"
    if declared := declared_in(release):
        binding = what_binds(release)
        yield f"  declared: {'; '.join(declared)}" + (
            "" if binding is None else f"; {binding} sets the noise"
        )
    if _shares_rows_between_groups(release):
        yield "  a person's groups share these rows: WHERE on one group's key would cut less than GROUP BY"


def _lines_of_two(release: ReleasePlan, lookup: Lookup) -> Iterator[str]:
    """Yield EXPLAIN's lines on rows of two people: how many count of each, how many one moves, what is hidden."""
    rows = release.release.rows
    own, other = (rows.items[place].source.shown_name for place in (lookup.place, lookup.other))
    yield (
        f'rows of two people: at most {counted(lookup.first, "row")} of "{own}" of a person'
        f"{_numbers_of_two(rows, lookup)}, "
        f'and of those joined at most {lookup.most} that point at a person through "{other}"'
    )
    yield (
        f"  one person leaving: {lookup.apart} = 2 x {lookup.first} + {lookup.most} rows at most ({lookup.first} out "
        f"and {lookup.first} others in, {lookup.most} that point at them)"
    )
    if rows.items[lookup.other].source.is_looked_up:
        yield f'  "{other}" is looked up for what is read of "{own}": rows that point at nothing there are not counted'
    if any(measurement.is_clamped for measurement in release.measurements):
        yield (
            f"  counts by group: of who is pointed at {lookup.most} in root-sum-of-squares over the groups, in place "
            f"of {counted(lookup.most, 'row')}"
        )
    yield f"  {_hidden_of_two(own)}"


def _numbers_of_two(rows: OwnedRows, lookup: Lookup) -> str:
    """Return which numbers the rows of who points have, where they are kept by these."""
    return "" if rows.items[lookup.place].source.number is None else f", numbered 1 to {lookup.first}"


def _hidden_of_two(name: str) -> str:
    return f'hidden of who is pointed at: that rows of "{name}" point at them; not hidden: that these rows are there'


def declared_in(release: ReleasePlan) -> list[str]:
    """Return what the policy declares of each table of many rows a person that is read, in the text's order."""
    found = []
    for table in dict.fromkeys(_private_tables(release.release.rows)):
        unit = table.unit
        assert unit is not None
        if unit.declared and not unit.is_unique:
            found.append(f'"{table.noted}" {", ".join(unit.declared)}')
    return found


def what_binds(release: ReleasePlan) -> str | None:
    """Return which number the noise of counts and sums follows; None where there are none of many rows."""
    bounding, rows = release.bounding, release.release.rows
    is_scaled = any(measurement.query.takes_all_rows for measurement in release.measurements)
    total, most, groups = rows.max_rows, rows.max_rows_per_group, rows.max_groups
    is_single = bounding.per_row and bounding.numbered is None
    if is_single or not is_scaled or total is None or most is None or groups is None:
        return None
    if bounding.in_norm is not None:
        return "max_norm"
    if release.unselected is not None and bounding.in_all < release.unselected.bounding.in_all:
        return "max_rows_per_group × LIMIT"
    if bounding.in_all < min(total, (bounding.in_group if bounding.grouped else most) * groups):
        return "dpsql.max_rows"
    if bounding.in_all < total:
        return "max_groups, at one row in each,"
    tables = [t.unit for t in dict.fromkeys(_private_tables(rows)) if t.unit and not t.unit.is_unique]
    if len(tables) == 1 and bounding.in_all < (tables[0].max_rows or 0):
        return "max_rows_per_group × max_groups"
    return "max_rows" if len(tables) == 1 else "what they come to together"


def _shares_rows_between_groups(release: ReleasePlan) -> bool:
    """Say whether a filter on a key would leave a person above the bound more of that key's rows."""
    rows, keys = release.release.rows, release.release.keys
    is_scaled = any(measurement.query.takes_all_rows for measurement in release.measurements)
    return (
        is_scaled
        and bool(keys)
        and not fields_of(*keys) <= rows.fixed_columns
        and release.bounding.in_all > 1
    )


def _private_tables(rows: Select) -> Iterator[Table]:
    """Yield the private tables whose rows are counted; those that only lead to the owner are left out."""
    for item in rows.items:
        source = item.source
        if item.kind != "mark" and source.table is not None and source.is_private and source.name:
            yield source.table
        if item.kind != "mark":
            for part in source.parts:
                yield from _private_tables(part)


def asserted_keys(release: ReleasePlan) -> list[str]:
    """Return the keys that the owner asserts of what a release reads, each as `orders (o_orderkey)`."""
    sources = (item.source for select in selects_in(release.release.rows) for item in select.items)
    tables = dict.fromkeys(source.table for source in sources if source.table is not None)
    return [f"{table.name} ({', '.join(table.asserted)})" for table in tables if table.asserted]


def nothing_measured(name: str, max_rows: int, of: str | None) -> LeftOut | None:
    """Know of nothing that was measured."""
    return None


def contribution_notes(release: ReleasePlan, known: Known) -> Iterator[BoundNote]:
    """Yield what bounds on one person leave out of an answer, in one line each, for a receipt."""
    rows = release.release.rows
    if rows.lookup is not None:
        name = rows.items[rows.lookup.place].source.shown_name
        yield BoundNote(
            f'of "{name}" a person counts with at most {counted(rows.lookup.first, "row")}'
            f"{_numbers_of_two(rows, rows.lookup)}, and of those joined at most {rows.lookup.most} that point at one "
            f"person; {_UNBOUNDED}; {_hidden_of_two(name)}"
        )
        return
    if bounds := bounds_of(release, f' of "{rows.shown_name}"'):
        of = f"{' and '.join(bounds)}{_each_period(release)}{_norms_of(release)}"
        yield BoundNote(f"a person counts with at most {of}{_said(release, known)}")
    for (most, name), parts in sorted(_cut_per_person(rows).items()):
        yield BoundNote(
            f"what is counted or summed per person takes at most {counted(most, 'row')} of "
            f'"{name}"{_quoted(parts, most, known)}; {_UNBOUNDED}'
        )
    for (most, name, is_numbered), parts in sorted(_cut_before_joins(rows).items()):
        told = f", numbered 1 to {most}" if is_numbered else _quoted(parts, most, known)
        yield BoundNote(
            f"a join would multiply the rows of a person: it takes at most {counted(most, 'row')} of "
            f'"{name}"{told}; {_UNBOUNDED}'
        )


def _said(release: ReleasePlan, known: Known) -> str:
    """Return what is known of what the bounds of a release leave out, and whether its bars hold it."""
    measured, rows = measured_of(release, known.find), release.release.rows
    if release.bounding.numbered is not None:
        return f"; {_UNBOUNDED}: rows of a higher number count for nobody, also where lower ones are missing"
    is_all = any(measurement.query.takes_all_rows for measurement in release.measurements)
    quoted = ""
    if is_all and release.bounding.norms:
        return f"; {_UNBOUNDED}: {_left_by_norms(rows, known)}"
    if is_all and measured is None:
        quoted = _quoted([rows], release.bounding.in_all, known)
    elif measured is not None and is_all and release.bounding.in_all == measured.max_rows:
        quoted = _kept(measured)
    if (groups := groups_of(release, known.find)) is not None and not is_all:
        quoted = _kept(groups, "groups of people")
    if known.is_agreed:
        return f"{quoted}; {_UNBOUNDED} where numbers were made to agree"
    calls = release.release.aggregates
    unheld = [number for number in range(len(calls)) if cut_of(release, number, known.find) is None]
    if len(unheld) == len(calls):
        can_be = (
            is_all and measured is None and release.slices is None
        )  # bounds of one period are not measured
        return f"{quoted}; {_UNBOUNDED}{_never(rows) if can_be else ''}"
    if not known.has_bars:
        return quoted
    if not unheld and not known.is_computed:
        return f"{quoted}; the error bars hold the noise and what that leaves out"
    first = len(release.release.keys)
    names = [release.release.names[first + number] or calls[number].function for number in unheld]
    names += ["what is computed of several numbers"] if known.is_computed else []
    return f"{quoted}; {_UNBOUNDED} for {', '.join(dict.fromkeys(names))}"


def _left_by_norms(rows: OwnedRows, known: Known) -> str:
    """Return how much of a table's rows its norms leave out, as it was measured, or that it was not."""
    table = rows.table_alone
    measured = None if table is None or table.noted != table.name else known.find_norms(table.name)
    if measured is None:
        return "what max_norm leaves out was never measured"
    return f"of max_norm, {left_text(measured.left)} {measured.when}"


def _never(rows: OwnedRows) -> str:
    """Return how an owner can have it bounded, where that is so."""
    table = rows.table_alone
    if table is None or table.unit is None or table.unit.max_rows is None or table.noted != table.name:
        return ""
    return f": the owner has not measured it (dpsql bounds {shlex.quote(table.name)})"


def _quoted(parts: Sequence[Select], most: int, known: Known) -> str:
    """Return what is known of the rows that a bound keeps, for the tables of which it is the `max_rows`."""
    tables = dict.fromkeys(table for part in parts for table in _private_tables(part))
    units = ((table.name, table.unit) for table in tables if table.noted == table.name)
    found = [
        known.find(name, most, None)
        for name, unit in units
        if unit and not unit.is_unique and unit.max_rows == most
    ]
    return "".join(_kept(one) for one in found if one is not None)


def _kept(measured: LeftOut, what: str = "rows") -> str:
    """Return about how many of a table's rows count under its bound, and how few it can be."""
    if measured.kept is None:
        return f", too few people to say how many that is {measured.when}"
    least = f", at least {percent(measured.kept_at_least, down=True)}" if measured.kept_at_least else ""
    return f", about {percent(measured.kept)} of all {what}{least} {measured.when}"


def _cut_per_person(rows: OwnedRows) -> dict[tuple[int, str], list[Select]]:
    """Return the bounds of counts and sums per person, and what they count, in subqueries too: with its selects."""
    found: dict[tuple[int, str], list[Select]] = {}
    for item in _items_in(rows):
        for part in item.source.parts:
            if part.most is not None and part.most > 1:
                called = {call.function for call in part.aggregates or ()}
                if called & {"count", "sum"}:
                    found.setdefault((part.most, item.source.shown_name), []).append(part)
    return found


def _cut_before_joins(rows: OwnedRows) -> dict[tuple[int, str, bool], list[Select]]:
    """Return the sources that are cut before a join (law L10): at how many rows of a person, and whether by numbers."""
    found: dict[tuple[int, str, bool], list[Select]] = {}
    for source in (item.source for item in _items_in(rows)):
        if source.most is not None:
            how = source.most, source.shown_name, source.number is not None
            found.setdefault(how, []).append(source.parts[0])
    return found


def _items_in(rows: OwnedRows) -> Iterator[Item]:
    for select in selects_in(rows):
        yield from select.items
