"""What is said of how much one person counts: the bounds of a release, what was declared, which of them binds.

Pure: from plans alone, and from what was measured before (`left_out`). Nothing is known, or said, of whether any row of
an answer was left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..plan.measures.measurements import BoundingQuery
from ..plan.privacy.rows import Item, OwnedRows, Select, selects_in
from ..plan.release_plan import ReleasePlan
from ..relation.catalog import Table
from ..relation.expressions import fields_of
from ..release.cut import FindLeftOut, cut_of, groups_of, measured_of
from ..release.left_out import LeftOut, percent
from ..words import counted
from .answer import BoundNote

__all__ = [
    "Known",
    "asserted_keys",
    "bounds_of",
    "contribution_lines",
    "contribution_notes",
    "declared_in",
    "nothing_measured",
    "what_binds",
]

_UNBOUNDED = "cut not bounded"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of what bounds leave out: `find` says what was measured.

    `has_bars`: error bars are asked for; `is_computed`: some of them are of what is computed from several numbers,
    which hold the noise alone. `is_agreed`: numbers were made to agree with others, of which the same is so.
    """

    find: FindLeftOut
    has_bars: bool = False
    is_computed: bool = False
    is_agreed: bool = False


def bounds_of(release: ReleasePlan, of: str = "") -> list[str]:
    """Return the bounds of one person that may leave something out; `of`: what the rows are rows of."""
    bounding, found = release.bounding, []
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


def contribution_lines(release: ReleasePlan) -> Iterator[str]:
    """Yield EXPLAIN's lines on one person's part of a release."""
    if release.release.rows.row_tables:
        yield "each row is a unit by itself"
        return
    if release.bounding.per_row:
        yield "one row per person, held by the database"
        return
    if bounds := bounds_of(release):
        yield f"at most {' and '.join(bounds)} of a person"
    if declared := declared_in(release):
        binding = what_binds(release)
        yield f"  declared: {'; '.join(declared)}" + (
            "" if binding is None else f"; {binding} sets the noise"
        )
    if _shares_rows_between_groups(release):
        yield "  a person's groups share these rows: WHERE on one group's key would cut less than GROUP BY"


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
    if bounding.per_row or not is_scaled or total is None or most is None or groups is None:
        return None
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
    if bounds := bounds_of(release, f' of "{rows.shown_name}"'):
        yield BoundNote(f"a person counts with at most {' and '.join(bounds)}{_said(release, known)}")
    for (most, name), parts in sorted(_cut_per_person(rows).items()):
        yield BoundNote(
            f"what is counted or summed per person takes at most {counted(most, 'row')} of "
            f'"{name}"{_quoted(parts, most, known)}; {_UNBOUNDED}'
        )
    for (most, name), parts in sorted(_cut_before_joins(rows).items()):
        yield BoundNote(
            f"a join would multiply the rows of a person: it takes at most {counted(most, 'row')} of "
            f'"{name}"{_quoted(parts, most, known)}; {_UNBOUNDED}'
        )


def _said(release: ReleasePlan, known: Known) -> str:
    """Return what is known of what the bounds of a release leave out, and whether its bars hold it."""
    measured, rows = measured_of(release, known.find), release.release.rows
    is_all = any(measurement.query.takes_all_rows for measurement in release.measurements)
    quoted = ""
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
        return f"{quoted}; {_UNBOUNDED}{_never(rows) if is_all and measured is None else ''}"
    if not known.has_bars:
        return quoted
    if not unheld and not known.is_computed:
        return f"{quoted}; the error bars hold noise and cut"
    first = len(release.release.keys)
    names = [release.release.names[first + number] or calls[number].function for number in unheld]
    names += ["what is computed of several numbers"] if known.is_computed else []
    return f"{quoted}; {_UNBOUNDED} for {', '.join(dict.fromkeys(names))}"


def _never(rows: OwnedRows) -> str:
    """Return how an owner can have it bounded, where that is so."""
    table = rows.table_alone
    if table is None or table.unit is None or table.unit.max_rows is None or table.noted != table.name:
        return ""
    return f": never measured (dpsql bounds {shlex.quote(table.name)})"


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


def _cut_before_joins(rows: OwnedRows) -> dict[tuple[int, str], list[Select]]:
    """Return the sources that are cut before a join (law L10), and at how many rows of a person."""
    found: dict[tuple[int, str], list[Select]] = {}
    for item in _items_in(rows):
        if item.source.most is not None:
            found.setdefault((item.source.most, item.source.shown_name), []).append(item.source.parts[0])
    return found


def _items_in(rows: OwnedRows) -> Iterator[Item]:
    for select in selects_in(rows):
        yield from select.items
