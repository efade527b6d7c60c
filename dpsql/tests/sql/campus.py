"""A small catalog to bind against, and the shortest ways from text to a relation or a refusal."""

from __future__ import annotations

from types import MappingProxyType

from dpsql.errors import Refusal
from dpsql.plan.privacy.analyze import analyze
from dpsql.relation.catalog import Catalog, Column, Table, Unit
from dpsql.relation.expressions import Expr
from dpsql.relation.relations import Group, Relation, ends_in
from dpsql.relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    numeric,
)
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, Explain, parse_statement

__all__ = ["NOW", "aggregate", "expression", "names", "refused", "relation", "types", "where"]

NOW = 1_700_000_000_123_456
"""The statement's moment: 2023-11-14 22:13:20.123456."""

_STUDENT = Table(
    "student", ("main", "student"),
    (Column("name", TEXT), Column("gpa", DOUBLE), Column("major", TEXT), Column("enrolled", INTEGER),
     Column("born", DATE), Column("seen", TIMESTAMP), Column("active", BOOLEAN), Column("fee", numeric(10, 2)),
     Column("big", BIGINT), Column("small", SMALLINT), Column("ratio", REAL)),
    Unit(("id",), (INTEGER,), is_unique=True, is_not_null=True),
)  # fmt: skip
_COURSE = Table(
    "course", ("main", "course"), (Column("id", INTEGER), Column("major", TEXT), Column("Title", TEXT)), None
)
_ROOM = Table("hall.room", ("hall", "room"), (Column("id", INTEGER), Column("seats", INTEGER)), None)
_UPPER = Table("Odd Name", ("main", "Odd Name"), (Column("A", INTEGER), Column("a", TEXT)), None)
CATALOG = Catalog(
    MappingProxyType({t.name: t for t in (_STUDENT, _COURSE, _ROOM, _UPPER)}),
    "main",
    databases=("campus",),
)


def relation(text: str, *parameters: object) -> Relation:
    """Return the bound relation of a query."""
    statement = parse_statement(text)
    query = statement.query if isinstance(statement, Explain) else statement
    assert isinstance(query, AdmittedQuery)
    return bind(query, BindingContext(CATALOG, query.text, parameters, NOW, {}))


def expression(text: str, *parameters: object, source: str = " FROM student") -> Expr:
    """Return the bound form of one scalar expression."""
    bound = relation(f"SELECT {text}{source}", *parameters)
    assert ends_in(bound, "outputs")
    return bound.exprs[0]


def where(text: str, *parameters: object) -> Expr:
    """Return the bound form of a WHERE clause over student."""
    bound = relation(f"SELECT 1 FROM student WHERE {text}", *parameters)
    assert ends_in(bound, "outputs")
    assert ends_in(bound.below, "where", "having")
    return bound.below.predicate


def names(text: str) -> list[str]:
    """Return the names of a query's output columns."""
    return [column.name for column in relation(text).columns]


def types(text: str, *parameters: object) -> list[str]:
    """Return the types of a query's output columns."""
    return [str(column.type) for column in relation(text, *parameters).columns]


def aggregate(text: str) -> Group:
    """Return the GROUP BY of a query."""
    node = relation(text)
    while not ends_in(node, "group"):
        assert ends_in(node, "outputs", "where", "having", "orders", "limit")
        node = node.below
    assert node.group is not None
    return node.group


def refused(text: str, *parameters: object) -> tuple[str, str | None]:
    """Return the code of a refusal, where it is bound or judged, and the text that stands at its position."""
    try:
        analyze(relation(text, *parameters), CATALOG)
    except Refusal as refusal:
        at = refusal.position
        if at is None:
            return refusal.sqlstate, None
        lines = text.split("\n")
        assert lines[at.line - 1][at.column - 1 :] == text[at.offset :].split("\n")[0]
        found = text[at.offset :].split()
        return refusal.sqlstate, found[0] if found else ""
    raise AssertionError(f"not refused: {text}")
