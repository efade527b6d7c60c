"""Tells the owner what the policy lets an analyst do, and what is still wrong or missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from types import MappingProxyType

from ..errors import PolicyError
from ..records import dataclass
from ..regex import regex
from ..relation.catalog import Column, References, Unit, quoted_names, reference_text
from ..relation.types import Kind
from .catalog import (
    build_column,
    build_member,
    column_key,
    describe_column,
    ends_with_a_day,
    event_time,
    match_column,
    member_path,
    table_key,
)
from .describe import allowed_text, declared_text, keys_text
from .live_schema import LiveColumn, LiveSchema, LiveTable
from .model import Policy, TablePolicy, UnitPolicy
from .scaffold import is_named_for_people, is_telling, known_people, personal_columns
from .section import plain, quote_key
from .units import (
    asserted_key,
    build_unit,
    find_live_table,
    is_own_way,
    private_behind,
    quoted_key,
    without_unit,
)

_WEAK_EPSILON = Fraction(10)
_LARGE_DELTA = Fraction(1, 10**5)
_ONE_ROW = "a unit has one row here; max_rows matters only after joins that copy rows"


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """A declared column: what the policy says of it, what an analyst may do, what would allow more."""

    name: str
    type: str
    declared: str
    allows: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableReport:
    """A declared table. `role` is root, private or public; `hidden` are the columns no analyst sees."""

    name: str
    role: str
    unit: str
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    columns: tuple[ColumnReport, ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The policy held against the live schema. It is servable exactly if `problems` is empty.

    `left_out`: what is wrong with views, without which the rest is served. `analysts`: who sees which tables, where not
    all see everything.
    """

    source: str
    dataset: str
    privacy: str
    tables: tuple[TableReport, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    analysts: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def more(
        self,
        problems: Iterable[str] = (),
        warnings: Iterable[str] = (),
        notes: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> Report:
        """Return the report with more; `notes`: by table."""
        tables = tuple(replace(one, notes=(*one.notes, *notes.get(one.name, ()))) for one in self.tables)
        return replace(
            self, tables=tables, problems=(*self.problems, *problems), warnings=(*self.warnings, *warnings)
        )

    def to_json(self) -> dict[str, object]:
        """Return the report as plain dicts, tuples and strings, for `json.dumps`."""
        return asdict(self)

    def to_text(self) -> str:
        """Return the report for a terminal, problems first."""
        lines = [f"{self.source}: dataset {self.dataset}", f"{self.privacy}", ""]
        lines += [f"problem: {problem}" for problem in self.problems]
        lines += [f"left out: {problem}" for problem in self.left_out]
        lines += [f"warning: {warning}" for warning in self.warnings]
        for table in self.tables:
            lines += ["", f"{quote_key(table.name)}: {table.unit}"]
            lines += [f"  missing: {what}" for what in table.missing]
            lines += [f"  note: {what}" for what in table.notes]
            width = max((len(quote_key(column.name)) for column in table.columns), default=0)
            for column in table.columns:
                declared = f" [{column.declared}]" if column.declared else ""
                lines.append(f"  {quote_key(column.name):{width}}  {column.type}{declared}: {column.allows}")
                lines += [f"  {'':{width}}  missing: {what}" for what in column.missing]
            if table.hidden:
                lines.append(f"  hidden, not declared: {', '.join(map(quote_key, table.hidden))}")
        if self.analysts:
            lines += ["", "who sees what:", *(f"  {line}" for line in self.analysts)]
        return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def check(policy: Policy, live: LiveSchema) -> Report:
    """Return what the policy and the live schema mean together; every disagreement is a problem in it.

    Looks at the schema alone, never at a row.
    """
    live = live.as_called(policy.called)
    problems = [
        without_unit(table_key(policy, name), policy, name, live).message for name in policy.undecided
    ]
    warnings = _privacy_warnings(policy)
    tables = []
    for declared in policy.tables.values():
        where = table_key(policy, declared.name)
        try:
            table = find_live_table(where, declared.name, live)
        except PolicyError as error:
            problems.append(error.message)
            continue
        unit = None
        try:
            asserted_key(where, table)
        except PolicyError as error:
            problems.append(error.message)
        try:
            unit = build_unit(where, policy, declared, live)
            if policy.privacy.time is not None:
                event_time(where, policy, declared, live)
        except PolicyError as error:
            problems.append(error.message)
        columns = _column_reports(policy, declared, table, problems)
        warnings += _table_warnings(policy, declared, table, unit, live)
        tables.append(_table_report(policy, declared, table, unit, columns))
    privacy = (
        f"{_of_time(policy)}epsilon {plain(policy.privacy.epsilon)}, delta {plain(policy.privacy.delta)}; "
        f"{policy.privacy.neighbours.value} neighbours{_together(policy)}"
    )
    return Report(policy.source, policy.dataset_id, privacy, tuple(tables), tuple(problems), tuple(warnings))


def _of_time(policy: Policy) -> str:
    time = policy.privacy.time
    return "lifetime " if time is None else f"for each {time.period.value} of the data from {time.since} on: "


def _together(policy: Policy) -> str:
    many = policy.privacy.together
    return f", any {many} persons together" if many > 1 else ""


def _column_reports(
    policy: Policy, declared: TablePolicy, table: LiveTable, problems: list[str]
) -> tuple[ColumnReport, ...]:
    """Return the reports of the columns that an analyst sees, and add what is wrong to `problems`."""
    built: dict[str, Column] = {}
    for column in declared.columns:
        where = column_key(policy, declared.name, column.name)
        try:
            if member_path(column, table) is not None:
                build_member(where, column, table)
                continue
            built[column.name] = build_column(where, column, match_column(where, column, table))
        except PolicyError as error:
            problems.append(error.message)
    reports = []
    for live in table.columns:
        column_built = built.get(live.name)
        if declared.unit is None and column_built is None and not (live.is_generated or live.refused):
            column_built = describe_column(live)
        if column_built is not None:
            reports.append(_column_report(policy, declared, column_built, live))
    return tuple(reports)


def _column_report(policy: Policy, declared: TablePolicy, column: Column, live: LiveColumn) -> ColumnReport:
    type_name = live.engine_type.lower() if column.type.kind is Kind.OPAQUE else str(column.type)
    if declared.unit is None:
        allows = "anything" if column.randomized is None else allowed_text(column)
        return ColumnReport(column.name, type_name, declared_text(column), f"{allows}, at no charge")
    missing = []
    if column.randomized is not None:
        pass  # no sum of it is answered
    elif column.type.is_number and column.bounds is None:
        missing.append(f"bounds, for SUM and AVG: {{ bounds = [lower, upper] }}{_hint(column)}")
    elif column.type.is_temporal and column.bounds is None:
        missing.append("bounds, for computing with dates: { bounds = [first, last] }, without quotes")
    allows = f"{allowed_text(column)}; {keys_text(column, policy.defaults.delta > 0)}"
    return ColumnReport(column.name, type_name, declared_text(column), allows, tuple(missing))


def _hint(column: Column) -> str:
    lo, hi = column.enforced.lo, column.enforced.hi
    return f"; its CHECK allows [{plain(lo)}, {plain(hi)}]" if lo is not None and hi is not None else ""


def _table_report(
    policy: Policy,
    declared: TablePolicy,
    table: LiveTable,
    unit: Unit | None,
    columns: tuple[ColumnReport, ...],
) -> TableReport:
    seen = {column.name for column in columns}
    if declared.unit is not None:
        seen.update(declared.unit.columns)  # they may be counted: COUNT(DISTINCT …)
    seen.update(name for also in declared.also for name in also.columns)
    hidden = tuple(column.name for column in table.columns if column.name not in seen)
    days = _whole_days(declared, table)
    if declared.unit is None:
        return TableReport(declared.name, "public", "public, nobody's data", (), days, columns, hidden)
    is_root = declared.unit.references is None and unit is not None and unit.is_unique
    role = "root" if is_root else "private"
    missing: list[str] = []
    notes: list[str] = []
    if unit is not None and unit.is_row:
        notes += _row_notes(table)
    elif unit is not None and unit.is_unique:
        if unit.max_rows is not None:
            notes.append(_ONE_ROW)
    elif unit is not None and unit.max_rows is None:
        missing.append(
            "max_rows, without which queries on this table are refused; write max_rows = <rows of one person>, or "
            f"measure it: dpsql bounds {quote_key(declared.name)}"
        )
    notes += [
        f"{quoted_names(also.columns)} {'points' if len(also.columns) == 1 else 'point'} at people, by "
        f"{reference_text(also.references)}: answered of rows that are joined there, {also.max_rows} of each person"
        for also in declared.also
    ]
    text = _owner_text(policy, declared.unit, is_root=is_root)
    return TableReport(declared.name, role, text, tuple(missing), (*notes, *days), columns, hidden)


def _row_notes(table: LiveTable) -> Iterator[str]:
    """Yield what the owner promises with `unit = "row"`, and a key of the table that says more."""
    yield (
        "each row is taken for one person: of somebody with several rows each is protected, not all of them together; "
        "rows join public tables alone"
    )
    for key in (table.primary_key, *table.unique, table.asserted):
        if key:
            yield (
                f"{quoted_names(key)} is a key; if it is a person's number, unit = {quoted_key(key)} says so, and "
                "allows joins on it"
            )
            return


def _whole_days(declared: TablePolicy, table: LiveTable) -> tuple[str, ...]:
    """Return which bounds of timestamps end with a date: earlier versions ended them with its midnight."""
    found = []
    for column in declared.columns:
        live = table.column(column.name)
        if live is not None and column.bounds is not None and ends_with_a_day(column.bounds, live.type):
            found.append(
                f"{quote_key(column.name)}: the bound {column.bounds[1]} is a date, and means the end of that day, "
                "23:59:59.999999; earlier versions took its midnight, and what was drawn under that answers no more"
            )
    return tuple(found)


def _owner_text(policy: Policy, unit: UnitPolicy, *, is_root: bool) -> str:
    """Return how a row finds its owner, hop by hop: the references end at a table that says its unit itself."""
    if unit.is_row:
        return "private, each row is a unit by itself"
    if unit.references is None:
        return f"{'root, one row per' if is_root else 'private, the'} unit in {quoted_names(unit.columns)}"
    hops = [
        f"private, owned through {quoted_names(unit.columns)} by {_reference_text(policy, unit.references)}"
    ]
    (_, key), parent = unit.references, policy.tables.get(unit.references[0])
    while parent is not None and parent.unit is not None and parent.unit.references is not None:
        hops.append(
            f"then {quoted_names(parent.unit.columns)} by {_reference_text(policy, parent.unit.references)}"
        )
        (_, key), parent = parent.unit.references, policy.tables.get(parent.unit.references[0])
    if parent is not None and parent.unit is not None and key != parent.unit.columns:
        hops.append(f"then {quoted_names(parent.unit.columns)}")
    return ", ".join(hops)


def _reference_text(policy: Policy, references: References) -> str:
    name, columns = references
    parent = policy.tables.get(name)
    asserted = parent is not None and parent.key and set(parent.key) == set(columns)
    return f"{reference_text(references)}{', which you assert is unique' if asserted else ''}"


def _privacy_warnings(policy: Policy) -> list[str]:
    warnings = []
    if policy.privacy.epsilon > _WEAK_EPSILON:
        warnings.append(
            f"{policy.source}: privacy.epsilon: {plain(policy.privacy.epsilon)} protects little; "
            "1 is strong, 10 is weak"
        )
    if policy.privacy.delta > _LARGE_DELTA:
        warnings.append(
            f"{policy.source}: privacy.delta: {plain(policy.privacy.delta)} is large; "
            "keep it far below one in the number of units"
        )
    if not policy.server.has_grid:
        warnings.append(
            f"{policy.source}: server.grid: false lets an analyst time the database, whose work depends on the data"
        )
    for analyst in policy.analysts.values():
        if analyst.epsilon > policy.privacy.epsilon:
            warnings.append(
                f"{policy.source}: analysts.{quote_key(analyst.name)}.epsilon: is above privacy.epsilon, "
                "which binds first"
            )
    return warnings


def _table_warnings(
    policy: Policy, declared: TablePolicy, table: LiveTable, unit: Unit | None, live: LiveSchema
) -> list[str]:
    """Return what is allowed and yet may not be what the owner means."""
    where = table_key(policy, declared.name)
    warnings = []
    for key in table.foreign_keys:
        private = private_behind(key, policy, live)
        if private is None or (declared.unit is not None and is_own_way(key, declared.unit, policy, live)):
            continue
        if any(set(also.columns) == set(key.columns) for also in declared.also):
            continue
        columns = ", ".join(key.columns)
        points = "points at" if private == live.name_of(key.table) else "leads to"
        if declared.unit is None:
            warnings.append(f'{where}: is public, and "{columns}" {points} the private table {private}')
        else:
            target = f"another row of {private}" if private == declared.name else f"{private} too"
            warnings.append(
                f'{where}: "{columns}" {points} {target}; only the owner through '
                f"{quoted_names(declared.unit.columns)} is protected; declare also, or leave the column out"
            )
    if declared.unit is None:
        warnings += _personal_warnings(where, policy, table, live)
    warnings += _shared_unit_warning(where, policy, declared)
    warnings += _time_warnings(where, declared, table)
    if unit is not None and not unit.is_not_null:
        shown = " or ".join(f'"{column}"' for column in unit.columns)
        warnings.append(f"{where}: rows whose {shown} is NULL have no owner and are never counted")
    return warnings


_CHANGES = regex("updat|modif|chang|expir")
_SUMS_UP = regex("last_|latest_|total_|running_")


def _time_warnings(where: str, declared: TablePolicy, table: LiveTable) -> list[str]:
    """Return what is wrong with a time that changes, or is missing, and with one period's facts in another's rows."""
    if declared.time is None:
        return []
    name, column = declared.time[1], table.column(declared.time[1])
    found = []
    if declared.time[0] == declared.name:
        if _CHANGES.search(name.lower()):
            found.append(
                f'{where}.time: "{name}" seems to change: each change makes the row one of another period, which loses '
                "what both are charged; name when it happened, or when the row came in"
            )
        if column is not None and not column.not_null:
            found.append(f'{where}.time: rows whose "{name}" is NULL are of no period and are never counted')
    found += [
        f"{where}.columns.{quote_key(one.name)}: seems to tell one period's fact in the rows of another, whose budget "
        "then tells it too; leave it out if it does"
        for one in declared.columns
        if _SUMS_UP.match(one.name.lower())
    ]
    return found


def _shared_unit_warning(where: str, policy: Policy, declared: TablePolicy) -> list[str]:
    """Return the warning for a table whose own unit column is named otherwise than the first such table's."""
    first = policy.tables[policy.root]
    if (
        declared.unit is None
        or declared.unit.references is not None
        or first.unit is None
        or declared.unit.is_row
    ):
        return []
    if declared.name == first.name or (
        declared.unit.columns == first.unit.columns and any(map(is_telling, first.unit.columns))
    ):
        return []
    return [
        f"{where}: {quoted_names(declared.unit.columns)} and {quoted_names(first.unit.columns)} of {first.name} are "
        "taken for one number of one person: equal values are one unit"
    ]


def _personal_warnings(where: str, policy: Policy, table: LiveTable, live: LiveSchema) -> list[str]:
    """Return the warning for a public table that may be about people, though no foreign key says so."""
    root = live.table(live.path_of(policy.root))
    if root is None:
        return []
    private = [one for one in policy.tables.values() if one.unit is not None]
    owners = [name for one in private if one.unit is not None for name in one.unit.columns]
    known = known_people(root, [*(one.name for one in private), *policy.undecided], owners)
    said = {
        column for key in table.foreign_keys if private_behind(key, policy, live) for column in key.columns
    }
    looks = [f'"{name}"' for name in personal_columns(table, known, live) if name not in said]
    if not looks and (said or not is_named_for_people(table)):
        return []
    what = (
        f"{' and '.join(looks[:3])} look{'' if looks[1:] else 's'} like a person's key"
        if looks
        else ("it is named for people")
    )
    return [
        f"{where}: is public, so its rows are shown as they are, and {what}; if they are about people, write unit = …"
    ]
