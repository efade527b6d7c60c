"""The views of a policy: their texts, as the engine keeps them, become relations of ours (soundness.md 1.28).

House rules:

1. A view is what its text means to our binder over the tables that the policy declares, and it is judged as a derived
   table of a statement is. The engine's view is never read, and nothing that the engine says of it is relied on: its
   columns' names and kinds are compared, so that an owner and an analyst mean one thing.
2. A view is whole when the policy is checked: a text that is refused is the owner's error, with its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import NoReturn

from ..errors import PolicyError, Refusal
from ..policy import Access, LiveColumn, LiveSchema, LiveTable, Policy, Report, narrowed
from ..policy import build_catalog as build_tables
from ..policy.catalog import (
    build_column,
    column_key,
    database_names,
    match_column,
    table_key,
    view_ground,
    whole_table,
)
from ..policy.check import ColumnReport, TableReport
from ..policy.describe import VIEWS, allowed_text, declared_text, keys_text
from ..policy.model import ViewPolicy
from ..policy.section import plain, quote_key, suggest
from ..records import dataclass
from ..relation.catalog import Catalog, Column, Enforced, Table, View
from ..relation.catalog import Scalar as CatalogScalar
from ..relation.expressions import walk
from ..relation.facts import Facts
from ..relation.intervals import Environment, facts_of
from ..relation.relations import (
    Declared,
    Join,
    Relation,
    Scan,
    all_parts,
    ends_in,
    expressions,
    map_tables,
    nodes_in,
    renamed,
)
from ..relation.types import Kind, SqlType
from ..sql.bind_select import bind
from ..sql.scope import BindingContext
from ..sql.statement import AdmittedQuery, tables_in, view_query
from .planner import PrivacyParameters, plan_text
from .privacy.analyze import private_rows
from .privacy.rows import columns_of
from .privacy.time import Clock

_A_YEAR = 400 * 24 * 3600 * 1_000_000


def build_catalog(policy: Policy, live: LiveSchema) -> Catalog:
    """Return all that statements can name, with the types and constraints that the database has right now.

    A view that is wrong is left out, and named in `left_out`: one that breaks is no reason to answer nothing.
    Raises PolicyError on the first disagreement of a table; `check` lists them all.
    """
    catalog = build_tables(policy, live)
    if not policy.views:
        return catalog
    found, problems = build_views(policy, live)
    shown = {name: view for name, view in found.items() if not policy.views[name].is_hidden}
    left_out = {name: error.message for name, error in problems.items()}
    whole = replace(catalog, views=MappingProxyType(shown), left_out=MappingProxyType(left_out))
    return narrowed(whole, Access())


def build_views(policy: Policy, live: LiveSchema) -> tuple[dict[str, View], dict[str, PolicyError]]:
    """Return the views by name that are whole, hidden ones too, and what is wrong with each other one."""
    reader = _Reader(policy, live.as_called(policy.called))
    found: dict[str, View] = {}
    problems: dict[str, PolicyError] = {}
    for name in policy.views:
        try:
            found[name] = reader.view(name)
        except PolicyError as error:
            problems[name] = error
    return found, problems


@dataclass
class _Reader:
    """Reads the views of a policy, each once, those that a view reads before it."""

    policy: Policy
    live: LiveSchema
    known: dict[str, View] = field(default_factory=dict)
    reading: list[str] = field(default_factory=list)

    @cached_property
    def _enums(self) -> frozenset[str]:
        """The types of labels that the tables have, as the engine prints them."""
        columns = (column for table in self.live.tables for column in table.columns)
        return frozenset(column.engine_type for column in columns if column.enum_values is not None)

    def view(self, name: str) -> View:
        """Return a view. Raises PolicyError."""
        where, declared = table_key(self.policy, name), self.policy.views[name]
        if name in self.reading:
            raise PolicyError(
                f"{where}: is read by a view that it reads itself; a view is made of tables in the end"
            )
        if name not in self.known:
            self.reading.append(name)
            try:
                self.known[name] = self._read(where, declared)
            finally:
                self.reading.pop()
        return self.known[name]

    def _read(self, where: str, declared: ViewPolicy) -> View:
        found = self._live_view(where, declared)
        try:
            query = view_query(found.definition, self.live.dialect, self._enums)
            catalog, written = self._catalog_of(where, found, query)
            own = {table.name: catalog.tables[name] for name, table in written.items()}
            relation = _bound(query, _as_written(catalog, written))
            relation = map_tables(relation, lambda one: own.get(one.name, one))
            _check_meaning(relation, self.live.dialect)
            relation = self._shown(where, declared, found, relation, catalog)
            ground = view_ground(declared, found.definition)  # what reads one of its tables rests on it, too
            relation = map_tables(relation, lambda one: replace(one, grounds=(*one.grounds, ground)))
            view = View(
                declared.name, self.live.written_path(declared.name), (), relation, _role(relation, catalog),
                _tables_of(relation), declared.description,
            )  # fmt: skip
            self._check_count(view, catalog)
        except Refusal as refusal:
            problem = _refused(where, refusal)
        else:
            return replace(view, columns=self._known_columns(declared, relation, catalog))
        raise problem

    def _live_view(self, where: str, declared: ViewPolicy) -> LiveTable:
        found = self.live.table(self.live.path_of(declared.name))
        if found is None:
            views = [self.live.own_name(one.path) for one in self.live.tables if one.definition]
            raise PolicyError(
                f'{where}: the database has no view "{declared.source}"{suggest(declared.source, views)}'
            )
        if not found.definition:
            said = (
                found.unusable or "is a table, and no view; take view = true out, and say whose its rows are"
            )
            raise PolicyError(f"{where}: {said}")
        return found

    def _catalog_of(
        self, where: str, found: LiveTable, query: AdmittedQuery
    ) -> tuple[Catalog, dict[str, Table]]:
        """Return what a view's text can name: declared tables with all of their columns, and declared views.

        And, by the policy's names, those of the tables that the text calls otherwise, as it calls them.
        """
        tables: dict[str, Table] = {}
        written: dict[str, Table] = {}
        views: dict[str, View] = {}
        for schema, name in tables_in(query):
            path = self._path_of(where, found, schema, name)
            if path is None:
                continue  # the binder says that there is no such table
            known, own = self.live.name_of(path), self.live.own_name(path)
            if known in self.policy.views:
                views[own] = replace(self.view(known), name=own)
            elif known in self.policy.tables:
                tables[known] = replace(whole_table(self.policy, known, self.live), is_hidden=False)
                if known != own:
                    written[known] = replace(tables[known], name=_ITS_OWN.format(own), path=path)
            else:
                other = self.live.called.get(own)
                said = "" if other is None else f' ("{own}" is "{other}" in the policy)'
                raise PolicyError(
                    f'{where}: reads "{name}", which is not declared{said}; declare it, with hidden = true if only '
                    "views may read it"
                )
        # The owner's way may lead over tables that the text does not name.
        others = {
            name: replace(whole_table(self.policy, name, self.live), is_hidden=True)
            for name in self.policy.tables
            if name not in tables
        }
        ordered = {name: ({**tables, **others})[name] for name in self.policy.tables}
        catalog = Catalog(
            MappingProxyType(ordered), self.live.default_schema, self.live.dialect, self.live.case_collation,
            database_names(self.policy), views, has_periods=self.policy.privacy.time is not None,
        )  # fmt: skip
        return catalog, written

    def _path_of(self, where: str, found: LiveTable, schema: str, name: str) -> tuple[str, str] | None:
        """Return the live table or view that a text names, as it is found whatever its case; None: there is none."""
        default, own = self.live.default_schema, found.path[0]

        def sought(space: str) -> tuple[str, str] | None:
            for fold in (str, str.lower):
                for table in self.live.tables:
                    if (fold(table.path[0]), fold(table.path[1])) == (fold(space), fold(name)):
                        return table.path
            return None

        if not schema and own != default and sought(own) is not None:
            raise PolicyError(f'{where}: names "{name}" without its schema; write {own}.{name} in the view')
        return sought(schema or default)

    def _shown(
        self, where: str, declared: ViewPolicy, found: LiveTable, relation: Relation, catalog: Catalog
    ) -> Relation:
        """Return a view's relation with the columns that the engine shows, and what is declared of them."""
        if len(relation.columns) != len(found.columns):
            raise PolicyError(
                f"{where}: the database shows other columns than the view's text has; make it anew"
            )
        for mine, theirs in zip(relation.columns, found.columns, strict=True):
            if _family(mine.type) != _family(theirs.type):
                raise PolicyError(
                    f'{where}: "{theirs.name}" is {theirs.engine_type.lower()} to the database and {mine.type} in '
                    "SQL as dpsql reads it; write a CAST in the view"
                )
        names = tuple(column.name for column in found.columns)
        shown: Relation = renamed(relation, names)
        computed: list[Column | None] = [None] * len(names)
        for column in declared.columns:
            place = column_key(self.policy, declared.name, column.name)
            index = names.index(match_column(place, column, found).name)
            known = _column_at(shown, index)
            built = build_column(place, column, _as_live(names[index], shown.columns[index].type, known))
            if column.values is None:
                built = replace(built, values=None)
            if known is None:
                computed[index] = _of_computed(place, built)
            else:
                shown = _with_declared(place, shown, index, built, known)
        if any(computed):
            return self._with_computed(where, shown, tuple(computed), catalog)
        return shown

    def _with_computed(
        self, where: str, shown: Relation, computed: tuple[Column | None, ...], catalog: Catalog
    ) -> Relation:
        """Return a view's relation with what is declared of computed columns: of people's rows alone."""
        if _role(shown, catalog) != "private":
            name = next(column.name for column in computed if column is not None)
            raise PolicyError(
                f"{where}.columns.{quote_key(name)}: is computed of what is nobody's, or of noisy answers, which are "
                "shown as they are; declare it on the table"
            )
        for index, (low, high) in _ranges(_facts(shown, catalog)).items():
            said = computed[index]
            if (
                said is not None
                and said.bounds is not None
                and (said.bounds[1] < low or high < said.bounds[0])
            ):
                reach = f"; they are from {plain(low)} to {plain(high)}" if said.type.is_number else ""
                raise PolicyError(
                    f"{where}.columns.{quote_key(said.name)}.bounds: no value that is computed lies within them{reach}"
                )
        return Declared(shown, computed)

    def _known_columns(
        self, declared: ViewPolicy, relation: Relation, catalog: Catalog
    ) -> tuple[Column, ...]:
        """Return a view's columns as a table's would be declared: with the bounds and values that they have."""
        notes = {column.name: column.description for column in declared.columns}
        facts = _facts(relation, catalog)
        ranges = _ranges(facts)
        listed = {i: _listed(one) for i, one in facts.items() if relation.columns[i].type.kind is Kind.TEXT}
        said = relation.declared if isinstance(relation, Declared) else (None,) * len(relation.columns)
        columns = []
        for index, output in enumerate(relation.columns):
            own = said[index]
            known = _column_at(relation, index) or Column(
                output.name, output.type, bounds=ranges.get(index), step=None if own is None else own.step,
                values=listed.get(index) if own is None or own.values is None else own.values,
            )  # fmt: skip
            note = notes.get(output.name) or known.description
            # What a table enforces holds no longer where a join leaves NULL.
            columns.append(replace(known, name=output.name, enforced=Enforced(), description=note))
        return tuple(columns)

    def _check_count(self, view: View, catalog: Catalog) -> None:
        """Raise Refusal unless a view's rows, if they are people's, can be counted."""
        if view.role != "private":
            return
        policy, known = self.policy, replace(catalog, views={"v": replace(view, name="v")})
        clock = Clock.of_any(policy.privacy.time)
        plan_text(
            "SELECT COUNT(*) FROM v", known, PrivacyParameters.of(policy, policy.defaults.epsilon, clock)
        )


_ITS_OWN = "{}."
"""What a table is called while a text is bound that calls it as the database does: no policy can call one so."""


def _as_written(catalog: Catalog, written: Mapping[str, Table]) -> Catalog:
    """Return a catalog in which tables stand under the names that a view's text has for them."""
    tables = {name: table for name, table in catalog.tables.items() if name not in written}
    tables |= {table.name.removesuffix("."): table for table in written.values()}
    return replace(catalog, tables=MappingProxyType(tables))


def _facts(relation: Relation, catalog: Catalog) -> dict[int, Facts]:
    """Return what is known of each column of people's rows, where that can be told."""
    found: dict[int, Facts] = {}
    rows = private_rows(relation, catalog)
    if rows is None:
        return found
    env = Environment(columns_of(rows.items), {})
    for index, expr in enumerate(rows.outputs):
        if expr.type.is_number or expr.type.is_temporal or expr.type.kind is Kind.TEXT:
            with suppress(Refusal):  # of texts in it, which may be long
                found[index] = facts_of(expr, env)
    return found


def _ranges(facts: Mapping[int, Facts]) -> dict[int, tuple[Fraction, Fraction]]:
    """Return the range of each number that people's rows hold, where declarations give it one."""
    return {
        index: (one.lo, one.hi)
        for index, one in facts.items()
        if one.declared and one.lo is not None and one.hi is not None
    }


def _listed(facts: Facts) -> tuple[CatalogScalar, ...] | None:
    """Return the values of a text that people's rows hold, where a computation leaves few."""
    return (*facts.values, None) if facts.values is not None and facts.nullable else facts.values


def _role(relation: Relation, catalog: Catalog) -> str:
    """Return what a view's rows are. Raises Refusal: they are neither public nor one person's each."""
    if private_rows(relation, catalog) is not None:
        return "private"
    private = {name for name, table in catalog.tables.items() if table.unit is not None}
    return "released" if private.intersection(_tables_of(relation)) else "public"


def _bound(query: AdmittedQuery, catalog: Catalog) -> Relation:
    """Return the relation of a query. Raises Refusal; 0A000 for one that is another at another time."""
    first, later = (bind(query, BindingContext(catalog, query.text, (), now, {})) for now in (0, _A_YEAR))
    if first != later:
        raise Refusal(
            "a view that reads the clock shows other rows each day", sqlstate="0A000",
            hint="take the condition out of the view, and write it in statements",
        )  # fmt: skip
    return first


def _refused(where: str, refusal: Refusal) -> PolicyError:
    """Return what a refusal of a view's text is to its owner."""
    at = "" if refusal.position is None else f" at {refusal.position}"
    hint = "" if refusal.hint is None else f"; {refusal.hint}"
    return PolicyError(f"{where}: the view's text{at}: {refusal.message}{hint}")


def _check_meaning(relation: Relation, engine: str) -> None:
    """Raise Refusal where DuckDB means something else by the words of a text: its / of whole numbers is a fraction."""
    if engine != "duckdb":
        return
    for node in all_parts(relation):
        for expr in expressions(node):
            for part in walk(expr):
                if part.calls("div") and not part.type.is_float:
                    raise Refusal(
                        "/ of these numbers is a fraction to DuckDB, and rounded in SQL as dpsql reads it",
                        sqlstate="42804", position=part.position,
                        hint="write CAST(… AS DOUBLE) around one of them",
                    )  # fmt: skip


def _tables_of(relation: Relation) -> tuple[str, ...]:
    """Return the names of the tables that a relation reads, in the order of its text."""
    return tuple(dict.fromkeys(scan.table.name for scan in nodes_in(Scan, relation)))


_FAMILIES = {
    Kind.SMALLINT: "number", Kind.INTEGER: "number", Kind.BIGINT: "number", Kind.NUMERIC: "number",
    Kind.REAL: "number", Kind.DOUBLE: "number",
}  # fmt: skip


def _family(type_: SqlType) -> str:
    return _FAMILIES.get(type_.kind, type_.kind.value)


def _as_live(name: str, type_: SqlType, known: Column | None) -> LiveColumn:
    """Return a view's column as one of a table, for the rules of what may be declared of it."""
    enforced = None if known is None else known.enforced
    return LiveColumn(
        name, type_, type_.engine or str(type_), not_null=enforced is not None and enforced.not_null,
        lo=None if enforced is None else enforced.lo, hi=None if enforced is None else enforced.hi,
    )  # fmt: skip


# --- what is declared of a view's columns ------------------------------------------------------------------

_AS_GIVEN = "is of answers as they were given; declare it on the table"


def _column_at(node: Relation, index: int) -> Column | None:
    """Return the column of a table that a column of a relation is, value for value; None: it is computed."""
    scan = _scan_at(node, index)
    return None if scan is None else scan[0].table.columns[scan[1]]


def _scan_at(node: Relation, index: int) -> tuple[Scan, int] | None:
    while not isinstance(node, Scan):
        origin = None if ends_in(node, "windows", "distinct") else node.origin(index)
        if origin is None:
            return None
        node, index = origin
    return (node, index) if index < len(node.table.columns) else None


def _with_declared(where: str, node: Relation, index: int, built: Column, known: Column) -> Relation:
    """Return a view's relation with what is declared of a column that is a table's: in that place, for this view alone.

    Raises PolicyError.
    """
    if built.randomized is not None:
        _fail(where, "randomized", _AS_GIVEN)
    if built.type != known.type:
        _fail(where, "step", "makes another type of the column; declare it on the table")
    declared = replace(
        known,
        bounds=built.bounds or known.bounds,
        step=built.step or known.step,
        is_log=built.is_log or known.is_log,
        values=known.values if built.values is None else built.values,
        max_length=built.max_length or known.max_length,
    )
    return _replaced(node, index, declared)


def _of_computed(where: str, built: Column) -> Column | None:
    """Return what is declared of a column that is computed; None: nothing. Raises PolicyError."""
    if built.randomized is not None:
        _fail(where, "randomized", _AS_GIVEN)
    if built.max_length is not None:
        _fail(where, "max_length", "is for a column of a table, and this one is computed; write left(…, n)")
    return None if built.bounds is None and built.step is None and built.values is None else built


def _replaced(node: Relation, index: int, column: Column) -> Relation:
    """Return a relation with another declaration of the table's column that one of its columns is."""
    if isinstance(node, Scan):
        columns = (*node.table.columns[:index], column, *node.table.columns[index + 1 :])
        return replace(node, table=replace(node.table, columns=columns))
    origin = node.origin(index)
    assert origin is not None
    sides = list(node.reads)
    side = int(isinstance(node, Join) and index >= len(node.left.columns))
    sides[side] = _replaced(*origin, column)
    return node.over(*sides)


def _fail(where: str, key: str, problem: str) -> NoReturn:
    raise PolicyError(f"{where}.{key}: {problem}")


# --- what the owner is told of views ------------------------------------------------------------------------


def view_reports(report: Report, policy: Policy, live: LiveSchema) -> Report:
    """Return a report with the policy's views in it, and with what is wrong with them."""
    if not policy.views:
        return report
    found, errors = build_views(policy, live)
    left_out = [error.message for error in errors.values() if error.message not in report.problems]
    views = tuple(_view_report(policy, view) for view in found.values())
    return replace(report, tables=(*report.tables, *views), left_out=tuple(dict.fromkeys(left_out)))


def _view_report(policy: Policy, view: View) -> TableReport:
    hidden = ", hidden from analysts" if policy.views[view.name].is_hidden else ""
    text = f"a view of {', '.join(view.reads) or 'nothing'}: {VIEWS[view.role]}{hidden}"
    columns = tuple(_column_report(policy, view, column) for column in view.columns)
    return TableReport(view.name, "view", text, (), (), columns, ())


def _column_report(policy: Policy, view: View, column: Column) -> ColumnReport:
    type_ = (column.type.engine or "").lower() if column.type.kind is Kind.OPAQUE else str(column.type)
    if view.role != "private":
        allows = "anything, at no charge" if view.role == "public" else "anything, its noise is charged"
        return ColumnReport(column.name, type_, declared_text(column), allows)
    missing = ("bounds, for SUM and AVG",) if column.type.is_number and column.bounds is None else ()
    allows = f"{allowed_text(column)}; {keys_text(column, policy.defaults.delta > 0)}"
    return ColumnReport(column.name, type_, declared_text(column), allows, missing)
