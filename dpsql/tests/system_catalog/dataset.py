"""A declared dataset for the tests, and the same objects on a real Postgres."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import psycopg

from dpsql.relation.catalog import Catalog, Column, Enforced, Table, Unit
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
from dpsql.system_catalog import ConnectionFacts, SystemCatalog
from dpsql.system_catalog.objects import Objects

SETTINGS = {
    "search_path": '"$user", public', "server_version": "15.0", "server_version_num": "150000", "jit": "off",
    "standard_conforming_strings": "on", "lc_collate": "C.UTF-8", "lc_ctype": "C.UTF-8", "default_tablespace": "",
    "bytea_output": "hex",
}  # fmt: skip
FACTS = ConnectionFacts("ann", "campus", 7, SETTINGS)


def campus(default_schema: str = "public", tables: Callable[[str], bool] = lambda name: True) -> Catalog:
    """Return a catalog of four tables in two schemas."""
    not_null = Enforced(True)
    student = Table(
        "student", (default_schema, "student"),
        (
            Column("name", TEXT), Column("major", TEXT, values=("CS", "Math")),
            Column("gpa", numeric(3, 2), not_null, bounds=(Fraction(0), Fraction(4))), Column("year", SMALLINT),
            Column("active", BOOLEAN), Column("enrolled", DATE), Column("score", DOUBLE), Column("seen", TIMESTAMP),
        ),
        Unit(("id",), (INTEGER,), is_unique=True, is_not_null=True), keys=(("id",),),
    )  # fmt: skip
    loan = Table(
        "loan", (default_schema, "loan"),
        (Column("loan_id", BIGINT, not_null), Column("days_out", INTEGER), Column("price", REAL)),
        Unit(("student_id",), (INTEGER,), references=("student", ("id",)), is_not_null=True, max_rows=5),
        keys=(("loan_id",),),
    )  # fmt: skip
    course = Table(
        "course", (default_schema, "course"),
        (Column("dept", TEXT, not_null), Column("number", INTEGER, not_null), Column("title", TEXT)),
        None, keys=(("dept", "number"), ("title",)), description="What is taught",
    )  # fmt: skip
    shelf = Table(
        "library.shelf", ("library", "shelf"), (Column("code", TEXT, not_null), Column("city", TEXT)), None,
        keys=(("code",),),
    )  # fmt: skip
    found = {table.name: table for table in (student, loan, course, shelf) if tables(table.name)}
    return Catalog(found, default_schema)


def open_catalog(catalog: Catalog) -> SystemCatalog:
    """Return its system catalog."""
    return SystemCatalog(catalog, has_delta=True, version="15.0", version_text="PostgreSQL 15.0 (dpsql)")


def definitions(catalog: Catalog) -> list[str]:
    """Return the statements that make the same objects on Postgres, owned by a role dpsql, for an analyst ann."""
    objects = Objects(catalog, has_delta=True)
    made = ["CREATE ROLE dpsql", "CREATE ROLE ann LOGIN"]
    made += [f"CREATE SCHEMA {name} AUTHORIZATION dpsql" for name in objects.schemas if name != "public"]
    made += [f"GRANT USAGE ON SCHEMA {name} TO ann, dpsql" for name in objects.schemas]
    made.append("GRANT CREATE ON SCHEMA public TO dpsql; SET ROLE dpsql")
    later = []
    for table in objects.tables:
        path = f"{table.schema}.{table.name}"
        columns = [
            f"{a.name} {_type(a.type, a.modifier)}{' NOT NULL' if a.is_not_null else ''}"
            for a in table.attributes
        ]
        columns += [f"CONSTRAINT {c.name} {c.definition}" for c in table.constraints if c.kind != "f"]
        later += [
            f"ALTER TABLE {path} ADD CONSTRAINT {c.name} {c.definition}"
            for c in table.constraints
            if c.kind == "f"
        ]
        made.append(f"CREATE TABLE {path} ({', '.join(columns)}); GRANT SELECT ON {path} TO ann")
        later.append(f"COMMENT ON TABLE {path} IS {_quoted(table.comment)}")
        later += [
            f"COMMENT ON COLUMN {path}.{a.name} IS {_quoted(a.comment)}"
            for a in table.attributes
            if a.comment
        ]
    return made + later


def _type(oid: int, modifier: int) -> str:
    names = {16: "bool", 20: "int8", 21: "int2", 23: "int4", 25: "text", 700: "float4", 701: "float8", 1082: "date",
             1114: "timestamp"}  # fmt: skip
    return names[oid] if oid != 1700 else f"numeric({modifier - 4 >> 16}, {modifier - 4 & 65535})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_PLACE = re.compile(r"\{\{(.*?)\}\}")
_NUMBER = re.compile(r"(?<![\d.])\d{4,10}(?![\d.])")
_RIGHTS = re.compile(r"^\{?[a-z_]*=[a-zA-Z*]*/[a-z_]+")


class Side:
    """One of the two that are compared; `relations`: a relation's name -> its OID there."""

    def __init__(self, relations: dict[str, int]) -> None:
        self._oids = relations
        self._names = {str(oid): name for name, oid in relations.items()}

    def fill(self, text: str | None) -> str | None:
        """Put this side's OIDs where {{schema.relation}} stands."""
        return None if text is None else _PLACE.sub(lambda match: str(self._oids[match[1]]), text)

    def plain(self, text: str | None) -> str | None:
        """Take away what may differ: OIDs of objects that are not built in, the owner's name, rights."""
        if text is None or _RIGHTS.match(text):
            return None
        if text in ("administrator", "postgres", "pg_database_owner"):
            return "dpsql"
        return _NUMBER.sub(self._number, text)

    def _number(self, match: re.Match[str]) -> str:
        number = match.group()
        if number in self._names:
            return "{{" + self._names[number] + "}}"
        return "#" if int(number) >= 16384 or number == "2200" else number


RELATIONS = "SELECT n.nspname || '.' || c.relname, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid >= 16384 AND n.nspname !~ '^pg_'"


def postgres_side(connection: psycopg.Connection[tuple[object, ...]]) -> Side:
    """Return the real Postgres' side."""
    return Side({str(name): int(str(oid)) for name, oid in connection.execute(RELATIONS).fetchall()})


def our_side(catalog: SystemCatalog) -> Side:
    """Return our side."""
    return Side({str(name): int(str(oid)) for name, oid in catalog.run(RELATIONS, FACTS)[1]})
