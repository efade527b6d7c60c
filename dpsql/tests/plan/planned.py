"""A small clinic to plan against: from a statement to its plan or its refusal, without a database.

A person has visits (at most 3 in a group, in at most 2 groups), at most one card, and remarks of which
the owner declares no bounds; a bill is a person's, and a line is its bill's person's; wards and prices are public.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from dpsql.errors import Refusal
from dpsql.plan.planner import Plan, PrivacyParameters, plan
from dpsql.plan.privacy.rows import OwnedRows
from dpsql.plan.release_plan import ReleasePlan
from dpsql.relation.catalog import Catalog, Column, Enforced, Table, Unit
from dpsql.relation.relations import Relation
from dpsql.relation.types import BOOLEAN, DATE, DOUBLE, INTEGER, TEXT, numeric
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement

__all__ = ["CATALOG", "bound", "grounded", "planned", "printed", "refused", "released", "rows_of"]

NOW = 1_700_000_000_000_000
_ID = ("person", ("id",))


def _between(low: int, high: int) -> tuple[Fraction, Fraction]:
    return Fraction(low), Fraction(high)


def _of_person(**bounds: int) -> Unit:
    return Unit(("person_id",), (INTEGER,), _ID, is_not_null=True, **bounds)


_PERSON = Table(
    "person", ("main", "person"),
    (Column("id", INTEGER, Enforced(not_null=True)), Column("city", TEXT, values=("Bonn", "Ulm", "Wien")),
     Column("age", INTEGER, bounds=_between(0, 100)), Column("email", TEXT, is_personal=True),
     Column("height", DOUBLE, bounds=_between(0, 2), step=Fraction(1, 100)), Column("born", DATE)),
    Unit(("id",), (INTEGER,), is_unique=True, is_not_null=True, max_rows=1, max_rows_per_group=1, max_groups=1),
    keys=(("id",), ("email",)),
)  # fmt: skip
_VISIT = Table(
    "visit", ("main", "visit"),
    (Column("person_id", INTEGER, Enforced(not_null=True)), Column("no", INTEGER, Enforced(not_null=True)),
     Column("ward", TEXT, values=("a", "b", "c", "d")), Column("fee", numeric(10, 2), bounds=_between(-10, 50)),
     Column("days", INTEGER, Enforced(not_null=True), bounds=_between(0, 9)), Column("urgent", BOOLEAN),
     Column("note", TEXT, max_length=20)),
    _of_person(max_rows=6, max_rows_per_group=3, max_groups=2), keys=(("person_id", "no"),),
)  # fmt: skip
_CARD = Table(
    "card", ("main", "card"),
    (Column("person_id", INTEGER, Enforced(not_null=True)), Column("kind", TEXT, values=("gold", "plain"))),
    _of_person(max_rows=1, max_rows_per_group=1, max_groups=1), keys=(("person_id",),),
)  # fmt: skip
_REMARK = Table(
    "remark", ("main", "remark"),
    (Column("person_id", INTEGER, Enforced(not_null=True)), Column("stars", INTEGER, bounds=_between(1, 5))),
    _of_person(),
)  # fmt: skip
_BILL = Table(
    "bill", ("main", "bill"),
    (Column("id", INTEGER, Enforced(not_null=True)), Column("person_id", INTEGER, Enforced(not_null=True))),
    _of_person(max_rows=2, max_rows_per_group=2, max_groups=1), keys=(("id",),),
)  # fmt: skip
_LINE = Table(
    "line", ("main", "line"),
    (Column("bill_id", INTEGER), Column("amount", INTEGER, bounds=_between(0, 8))),
    Unit(("bill_id",), (INTEGER,), ("bill", ("id",)), max_rows=8, max_rows_per_group=4, max_groups=2),
)  # fmt: skip
_WARD = Table(
    "ward", ("main", "ward"),
    (Column("name", TEXT, Enforced(not_null=True)), Column("floor", INTEGER, bounds=_between(1, 3)),
     Column("beds", INTEGER)),
    None, keys=(("name",),),
)  # fmt: skip
_PRICE = Table(
    "price", ("main", "price"), (Column("ward", TEXT), Column("cost", INTEGER, bounds=_between(0, 99))), None
)
_TABLES = {table.name: table for table in (_PERSON, _VISIT, _CARD, _REMARK, _BILL, _LINE, _WARD, _PRICE)}


def grounded(table: Table) -> Table:
    columns = tuple((f"{table.name}.{column.name}", "0") for column in table.columns)
    return replace(table, grounds=((table.name, "0"),), column_grounds=columns)


CATALOG = Catalog(
    MappingProxyType({name: grounded(table) for name, table in _TABLES.items()}),
    "main",
)


def bound(sql: str) -> Relation:
    """Return the bound relation of a query."""
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    return bind(query, BindingContext(CATALOG, query.text, (), NOW, {}))


def planned(sql: str, *, engine: str = "duckdb", replace_one: bool = False, delta: str = "1/1000") -> Plan:
    """Return the plan of a query at epsilon 1. Raises Refusal."""
    privacy = PrivacyParameters(Fraction(1), Fraction(delta), 1, replace_one)
    return plan(bound(sql), replace(CATALOG, dialect=engine, case_collation="pg_c_utf8"), privacy)


def released(sql: str, *, engine: str = "duckdb", replace_one: bool = False) -> ReleasePlan:
    """Return the one release of a query."""
    (release,) = planned(sql, engine=engine, replace_one=replace_one).releases
    return release


def rows_of(sql: str) -> OwnedRows:
    """Return the private rows that a query's one release is made of."""
    return released(sql).release.rows


def printed(sql: str, engine: str = "duckdb") -> str:
    """Return the SQL that the owner's engine runs for a query of one release."""
    release = released(sql, engine=engine)
    (query,) = release.queries(tuple(range(len(release.measurements))))
    return query.sql


def refused(sql: str) -> tuple[str, str]:
    """Return the code of a query's refusal, and the word at its place."""
    try:
        planned(sql)
    except Refusal as refusal:
        at = refusal.position
        return refusal.sqlstate, "" if at is None else sql[at.offset :].split()[0].rstrip(",()")
    raise AssertionError(f"not refused: {sql}")
