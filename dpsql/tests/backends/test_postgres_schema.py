"""Introspection of real Postgres databases: every type, every kind of constraint, every trap that was seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from dpsql.backends import PostgresBackend
from dpsql.errors import PolicyError
from dpsql.plan.views import build_catalog as build_whole
from dpsql.policy import LiveForeignKey, LiveSchema, build_catalog, left_out, parse_policy
from dpsql.policy.live_schema import comparable_type
from dpsql.relation import types
from dpsql.relation.types import SqlType, numeric
from dpsql.tests.support.postgres_server import PostgresServer

from .conftest import Read, Table

COLUMNS: dict[str, tuple[str, SqlType]] = {
    "boolean": ("boolean", types.BOOLEAN),
    "smallint": ("smallint", types.SMALLINT),
    "integer": ("integer", types.INTEGER),
    "bigint": ("bigint", types.BIGINT),
    "serial": ("integer", types.INTEGER),
    "integer GENERATED ALWAYS AS IDENTITY": ("integer", types.INTEGER),
    "numeric(3,2)": ("numeric(3,2)", numeric(3, 2)),
    "numeric(5)": ("numeric(5,0)", numeric(5, 0)),
    "numeric(38,38)": ("numeric(38,38)", numeric(38, 38)),
    "numeric(39,0)": ("numeric(39,0)", numeric(38, 0)),
    "numeric(1000,18)": ("numeric(1000,18)", numeric(38, 18)),
    "numeric(1000,19)": ("numeric", numeric(38, 6)),
    "numeric(3,5)": ("numeric", numeric(38, 6)),
    "numeric(5,-2)": ("numeric", numeric(38, 6)),
    "numeric": ("numeric", numeric(38, 6)),
    "real": ("real", types.REAL),
    "double precision": ("double precision", types.DOUBLE),
    "text": ("text", types.TEXT),
    "varchar": ("character varying", types.TEXT),
    "varchar(10)": ("character varying", types.TEXT),
    "char(3)": ("character", types.TEXT),
    "name": ("name", types.TEXT),
    'text COLLATE "POSIX"': ("text", types.TEXT),
    "date": ("date", types.DATE),
    "timestamp": ("timestamp", types.TIMESTAMP),
    "timestamp(3)": ("timestamp", types.TIMESTAMP),
    "timestamptz": ("timestamptz", types.TIMESTAMP),
    "interval": ("interval", types.INTERVAL),
    "uuid": ("uuid", types.OPAQUE),
    "bytea": ("bytea", types.OPAQUE),
    "time": ("time without time zone", types.OPAQUE),
    "timetz": ("time with time zone", types.OPAQUE),
    "json": ("json", types.OPAQUE),
    "jsonb": ("jsonb", types.OPAQUE),
    "money": ("money", types.OPAQUE),
    "inet": ("inet", types.OPAQUE),
    "bit(3)": ("bit(3)", types.OPAQUE),
    "integer[]": ("integer[]", types.OPAQUE),
    "text[]": ("text[]", types.OPAQUE),
    "int4range": ("int4range", types.OPAQUE),
    "oid": ("oid", types.OPAQUE),
    '"char"': ('"char"', types.OPAQUE),
    "point": ("point", types.OPAQUE),
    "tsvector": ("tsvector", types.OPAQUE),
    "xml": ("xml", types.OPAQUE),
}


def test_types(table_of: Table) -> None:
    defined = ", ".join(f"c{i} {declared}" for i, declared in enumerate(COLUMNS))
    found = [(column.engine_type, column.type) for column in table_of(f"CREATE TABLE t ({defined})").columns]
    assert dict(zip(COLUMNS, found, strict=True)) == COLUMNS


def test_what_is_compared_keeps_its_engine_type(table_of: Table) -> None:
    kinds = (
        "uuid",
        "bytea",
        "numeric",
        "timestamptz",
        "numeric(39,0)",
        "numeric(5,2)",
        "text",
        "timestamp",
        "json",
    )
    table = table_of("CREATE TABLE t (" + ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds)) + ")")
    assert [comparable_type(column).engine for column in table.columns] == [
        "uuid", "bytea", "numeric", "timestamptz", "numeric(39,0)", None, None, None, None,
    ]  # fmt: skip


def test_enum_labels_come_whole_and_in_order(table_of: Table, emptied: psycopg.Connection[Any]) -> None:
    labels = ["z", "a", "", "it's", "', 'x", "b)", "ENUM('q')", "é\n", '"']
    text = ", ".join("'" + label.replace("'", "''") + "'" for label in labels)
    table = table_of(f"CREATE TYPE e AS ENUM ({text})", "CREATE TABLE t (x e, y e[])")
    assert table.columns[0].enum_values == tuple(labels)
    assert table.columns[0].type == types.TEXT
    assert (table.columns[1].type, table.columns[1].enum_values) == (types.OPAQUE, None)
    emptied.execute("ALTER TYPE e ADD VALUE 'first' BEFORE 'z'")
    with PostgresBackend.over(emptied).snapshot() as snapshot:
        assert snapshot.schema().tables[0].columns[0].enum_values == ("first", *labels)


def test_a_new_enum_label_is_a_change(schema_of: Read, emptied: psycopg.Connection[Any]) -> None:
    schema_of("CREATE TYPE e AS ENUM ('a')", "CREATE DOMAIN d AS e", "CREATE TABLE t (x d)")
    backend = PostgresBackend.over(emptied, ("t",))
    found = []
    for change in (None, "ALTER TYPE e ADD VALUE 'b'", "ALTER TYPE e RENAME VALUE 'a' TO 'c'"):
        if change is not None:
            emptied.execute(change)
        with backend.snapshot() as snapshot:
            found.append(snapshot.schema().tables[0].columns[0].enum_values)
    assert found == [("a",), ("a", "b"), ("c", "b")]


def test_a_domain_is_its_base_type_without_its_constraints(table_of: Table) -> None:
    table = table_of(
        "CREATE DOMAIN share AS numeric(5,4) NOT NULL CHECK (VALUE BETWEEN 0 AND 1)",
        "CREATE DOMAIN half AS share CHECK (VALUE < 0.5)",
        "CREATE DOMAIN many AS integer[]",
        "CREATE TABLE t (a share, b half, c many, d half CHECK (d >= 0.25))",
    )
    found = [(c.engine_type, c.type, c.not_null, c.lo, c.hi) for c in table.columns]
    exact = ("numeric(5,4)", numeric(5, 4), False)
    assert found[:2] == [(*exact, None, None)] * 2
    assert found[2][1] == types.OPAQUE
    assert found[3] == (*exact, None, None)


def test_citext(table_of: Table, emptied: psycopg.Connection[Any]) -> None:
    known = emptied.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'citext'").fetchone()
    if known is None:
        pytest.skip("never: this build of Postgres has no citext")
    table = table_of("CREATE EXTENSION citext", "CREATE TABLE t (x citext PRIMARY KEY)")
    assert (table.columns[0].type, table.primary_key) == (types.TEXT, ("x",))


def test_a_type_that_is_called_citext_is_not_it(table_of: Table) -> None:
    (column,) = table_of("CREATE TYPE citext AS (a integer)", "CREATE TABLE t (x citext)").columns
    assert column.type == types.OPAQUE


# --- tables --------------------------------------------------------------------------------------------------


def test_what_cannot_be_declared(schema_of: Read, emptied: psycopg.Connection[Any]) -> None:
    has_fdw = emptied.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'file_fdw'").fetchone()
    foreign = [
        "CREATE EXTENSION IF NOT EXISTS file_fdw",
        "CREATE SERVER IF NOT EXISTS files FOREIGN DATA WRAPPER file_fdw",
        "CREATE FOREIGN TABLE foreign_one (x int) SERVER files OPTIONS (filename '/nowhere')",
        "CREATE TABLE parted_foreign (x int) PARTITION BY LIST (x)",
        "CREATE FOREIGN TABLE foreign_part PARTITION OF parted_foreign DEFAULT SERVER files OPTIONS (filename '/n')",
    ]
    schema = schema_of(
        "CREATE TABLE plain (x int)",
        "CREATE VIEW seen AS SELECT * FROM plain",
        "CREATE MATERIALIZED VIEW kept AS SELECT * FROM plain",
        "CREATE TABLE secured (x int)",
        "ALTER TABLE secured ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE parent (x int PRIMARY KEY)",
        "CREATE TABLE child () INHERITS (parent)",
        "CREATE TABLE parted (x int PRIMARY KEY) PARTITION BY RANGE (x)",
        "CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10)",
        "CREATE UNLOGGED TABLE fast (x int)",
        "CREATE TEMPORARY TABLE mine (x int)",
        *(foreign if has_fdw else ()),
    )
    found = {table.path[1]: table.unusable for table in schema.tables}
    usable = {name for name, why in found.items() if why is None}
    assert usable == {"plain", "child", "parted", "part", "fast"}
    reasons = {name: (why or "").split(",")[0] for name, why in found.items() if name not in usable}
    expected = {
        "seen": "is a view; write view = true",
        "kept": "is a materialized view",
        "secured": "has row level security",
        "parent": "has inheritance children",
    }
    if has_fdw:
        expected |= {
            "foreign_one": "is a foreign table",
            "foreign_part": "is a foreign table",
            "parted_foreign": "has a foreign table as a partition",
        }
    assert reasons == expected
    emptied.execute("DROP TABLE mine")


def test_a_partitioned_table_has_the_keys_of_all_its_rows(schema_of: Read) -> None:
    schema = schema_of(
        "CREATE TABLE student (id int PRIMARY KEY)",
        "CREATE TABLE loan (id int, student_id int NOT NULL REFERENCES student, PRIMARY KEY (student_id, id))"
        " PARTITION BY HASH (student_id)",
        "CREATE TABLE loan_0 PARTITION OF loan FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE loan_1 PARTITION OF loan FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        "CREATE TABLE pay (student_id int, loan_id int, FOREIGN KEY (student_id, loan_id) REFERENCES loan)",
        "CREATE UNIQUE INDEX half ON ONLY loan (student_id)",
    )
    to_student = LiveForeignKey(("student_id",), ("public", "student"), ("id",))
    found = {table.path[1]: table for table in schema.tables}
    for name in ("loan", "loan_0"):
        assert found[name].primary_key == ("student_id", "id")
        assert found[name].foreign_keys == (to_student,)
    assert found["loan"].unique == (), "an index that some partition lacks is not valid"
    assert found["pay"].foreign_keys == (
        LiveForeignKey(("student_id", "loan_id"), ("public", "loan"), ("student_id", "id")),
    )


def test_only_what_the_role_may_read_is_there(
    postgres: PostgresServer, emptied: psycopg.Connection[Any], schema_of: Read
) -> None:
    schema_of(
        "CREATE TABLE seen (x int)",
        "CREATE TABLE unseen (x int)",
        "CREATE SCHEMA closed",
        "CREATE TABLE closed.t (x int)",
        "DROP ROLE IF EXISTS looking",
        "CREATE ROLE looking LOGIN",
        "GRANT USAGE ON SCHEMA public TO looking",
        "GRANT SELECT ON seen, closed.t TO looking",
    )
    backend = PostgresBackend(postgres.url(emptied.info.dbname, "looking"))
    with backend.snapshot() as snapshot:
        assert [table.path for table in snapshot.schema().tables] == [("public", "seen")]
    assert backend.close_idle()
    emptied.execute("DROP OWNED BY looking; DROP ROLE looking")


def test_names_that_are_quoted(schema_of: Read) -> None:
    odd = ('Odd "name"', "it's", "a.b", "select", "é", "%s", "$1", "x{y}")
    tables = [f'CREATE TABLE "{name.replace(chr(34), chr(34) * 2)}" (x int)' for name in odd]
    schema = schema_of(*tables, 'CREATE SCHEMA "S x"', 'CREATE TABLE "S x"."T" (x int)')
    assert {table.path for table in schema.tables} == {("public", name) for name in odd} | {("S x", "T")}
    named = schema_of(
        *tables, 'CREATE SCHEMA "S x"', 'CREATE TABLE "S x"."T" (x int)', names=("it's", "S x.T", "none")
    )
    assert [table.path for table in named.tables] == [("S x", "T"), ("public", "it's")]


def test_a_database_without_tables(schema_of: Read) -> None:
    assert schema_of().tables == ()
    assert schema_of(names=("student",)).tables == ()


def test_letter_case_has_a_collation_of_its_own(schema_of: Read, emptied: psycopg.Connection[Any]) -> None:
    """Whatever the database's default is: under C, upper('é') is 'é'."""
    name = schema_of("CREATE TABLE t (x text)").case_collation
    assert name in ("pg_c_utf8", "C.utf8", "und-x-icu")
    found = emptied.execute(
        f"""SELECT upper('é' COLLATE pg_catalog."{name}"), lower('ÀŞ' COLLATE pg_catalog."{name}")"""
    )
    assert found.fetchone() == ("É", "àş")


def test_a_default_collation_changes_nothing(postgres: PostgresServer) -> None:
    if not postgres.has_icu():
        pytest.skip("never: this build of Postgres knows no ICU locale")
    name = postgres.create_database(icu_locale="en-US")
    with postgres.admin(name) as connection:
        connection.execute("CREATE TABLE t (x text PRIMARY KEY)")
        with PostgresBackend.over(connection).snapshot() as snapshot:
            (table,) = snapshot.schema().tables
    assert (table.columns[0].type, table.columns[0].is_bytewise, table.primary_key) == (
        types.TEXT,
        True,
        ("x",),
    )
    postgres.drop_database(name)


# --- the policy over it --------------------------------------------------------------------------------------

POLICY = """
database = "postgresql://reader@host/campus"
[privacy]
epsilon = 10
[tables.student]
unit = "id"
[tables.student.columns]
"""


def catalog_column(schema: LiveSchema, text: str) -> Any:
    policy = parse_policy(POLICY + text, Path("/srv/campus.toml"))
    (column,) = build_catalog(policy, schema).tables["student"].columns
    return column


@pytest.mark.parametrize(
    ("declared", "scale"),
    [
        ("open = {}", 6),
        ("open = { bounds = [0, 10] }", 6),
        ("open = { step = 0.01 }", 2),
        ("open = { step = 1 }", 0),
        ("open = { step = 1e-9 }", 9),
        ("open = { step = 1e-18 }", 18),
        ("open = { step = 0.25 }", 6),
        ("open = { step = 100 }", 6),
    ],
)
def test_an_open_number_is_read_at_its_step(schema_of: Read, declared: str, scale: int) -> None:
    schema = schema_of("CREATE TABLE student (id int PRIMARY KEY, open numeric NOT NULL)")
    column = catalog_column(schema, declared)
    assert column.type == SqlType(types.Kind.NUMERIC, 38, scale, "numeric")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("open = { step = 1e-19 }", "is finer than 0.000000000000000001; write that, or more"),
        ("open = { step = 5e-8 }", "the column is numeric(38,6); write a multiple of 0.000001"),
    ],
)
def test_a_step_that_an_open_number_cannot_have(schema_of: Read, declared: str, message: str) -> None:
    schema = schema_of("CREATE TABLE student (id int PRIMARY KEY, open numeric)")
    with pytest.raises(PolicyError) as caught:
        catalog_column(schema, declared)
    assert caught.value.message == f"campus.toml: tables.student.columns.open.step: {message}"


def test_an_unusable_table_says_why(schema_of: Read) -> None:
    schema = schema_of(
        "CREATE TABLE student (id int PRIMARY KEY)", "ALTER TABLE student ENABLE ROW LEVEL SECURITY"
    )
    with pytest.raises(PolicyError) as caught:
        catalog_column(schema, "")
    assert caught.value.message == (
        "campus.toml: tables.student: has row level security, which hides rows; serve a copy without it"
    )


@pytest.mark.parametrize(
    ("parent", "child", "names"),
    [
        ("numeric(39,6)", "numeric(38,6)", ("numeric(39,6)", "numeric(38,6)")),
        ("timestamp", "timestamptz", ("timestamp", "timestamptz")),
        ("uuid", "bytea", ("uuid", "bytea")),
    ],
)
def test_an_owner_is_found_by_one_type_of_the_engine(
    schema_of: Read, parent: str, child: str, names: tuple[str, str]
) -> None:
    schema = schema_of(
        f"CREATE TABLE student (id {parent} PRIMARY KEY)", f"CREATE TABLE loan (student_id {child})"
    )
    text = POLICY + '[tables.loan]\nunit = { column = "student_id", references = "student.id" }\n'
    policy = parse_policy(text, Path("/srv/campus.toml"))
    with pytest.raises(PolicyError) as caught:
        build_catalog(policy, schema)
    assert caught.value.message == (
        f'campus.toml: tables.loan.unit.references: "student_id" is {names[1]} and "id" is {names[0]}; '
        "give both columns one type"
    )


def test_a_view_with_labels_is_read(schema_of: Read) -> None:
    schema = schema_of(
        "CREATE TYPE state AS ENUM ('open', 'paid', 'sent')",
        "CREATE TABLE orders (id int PRIMARY KEY, state state NOT NULL, total int)",
        "CREATE VIEW paid AS SELECT id, total, state FROM orders WHERE state = 'paid' OR state IN ('sent', 'open')",
        "CREATE VIEW late AS SELECT id FROM orders WHERE state > 'paid'",
    )
    text = (
        'database = "postgresql://x/y"\n[privacy]\nepsilon = 1\n[tables.orders]\nunit = "id"\n'
        "[tables.paid]\nview = true\n[tables.late]\nview = true\n"
    )
    catalog = build_whole(parse_policy(text, Path("/nowhere/shop.toml")), schema)
    assert list(catalog.views) == ["paid"]
    assert list(catalog.left_out) == ["late"], (
        "labels are ordered as they were declared, and texts by their letters"
    )


def test_without_any_grant_one_for_all_tables_is_offered(
    postgres: PostgresServer, emptied: psycopg.Connection[Any], schema_of: Read
) -> None:
    schema_of(
        "CREATE TABLE a (x int)", "CREATE TABLE b (x int)", "CREATE SCHEMA open", "CREATE TABLE open.c (x int)",
        "CREATE TABLE open.d (x int)", "DROP ROLE IF EXISTS looking", "CREATE ROLE looking LOGIN",
        "GRANT USAGE ON SCHEMA open TO looking", "GRANT SELECT ON open.c TO looking",
    )  # fmt: skip
    backend = PostgresBackend(postgres.url(emptied.info.dbname, "looking"))
    with backend.snapshot() as snapshot:
        said = left_out(snapshot.schema())
    whole = "GRANT USAGE ON SCHEMA public TO looking; GRANT SELECT ON ALL TABLES IN SCHEMA public TO looking"
    assert f"a, b: dpsql's role may not read them; run {whole}, and init again" in said
    assert any(one.startswith('"open.d": ') and "SELECT ON open.d TO looking" in one for one in said)
    assert backend.close_idle()
    emptied.execute("DROP OWNED BY looking; DROP ROLE looking")
