"""Introspection of real DuckDB databases: every type, every kind of constraint, every trap that was seen."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest
import sqlglot

from dpsql.backends import DuckDBBackend
from dpsql.policy import LiveColumn, LiveForeignKey, LiveSchema, LiveTable
from dpsql.relation import types
from dpsql.relation.catalog import Allowed, Proved
from dpsql.relation.types import SqlType, numeric


def schema_of(*statements: str) -> LiveSchema:
    connection = duckdb.connect()
    for statement in statements:
        connection.execute(statement)
    with DuckDBBackend.over(connection).snapshot() as snapshot:
        schema = snapshot.schema()
    connection.close()
    return schema


def table_of(*statements: str) -> LiveTable:
    (table,) = schema_of(*statements).tables
    return table


ENGINE_TYPES = {
    "BOOLEAN": types.BOOLEAN,
    "TINYINT": types.SMALLINT,
    "SMALLINT": types.SMALLINT,
    "INTEGER": types.INTEGER,
    "BIGINT": types.BIGINT,
    "HUGEINT": numeric(38, 0),
    "UTINYINT": types.INTEGER,
    "USMALLINT": types.INTEGER,
    "UINTEGER": types.BIGINT,
    "UBIGINT": numeric(20, 0),
    "UHUGEINT": types.OPAQUE,
    "DECIMAL(3,2)": numeric(3, 2),
    "DECIMAL": numeric(18, 3),
    "DECIMAL(38,38)": numeric(38, 38),
    "FLOAT": types.REAL,
    "DOUBLE": types.DOUBLE,
    "VARCHAR": types.TEXT,
    "VARCHAR(10)": types.TEXT,
    "ENUM ('a', 'b')": types.TEXT,
    "DATE": types.DATE,
    "TIMESTAMP": types.TIMESTAMP,
    "TIMESTAMP_S": types.OPAQUE,
    "TIMESTAMP_MS": types.OPAQUE,
    "TIMESTAMP_NS": types.OPAQUE,
    "TIMESTAMPTZ": types.TIMESTAMP,
    "TIME": types.OPAQUE,
    "TIMETZ": types.OPAQUE,
    "INTERVAL": types.INTERVAL,
    "UUID": types.OPAQUE,
    "BLOB": types.OPAQUE,
    "BIT": types.OPAQUE,
    "JSON": types.OPAQUE,
    "INTEGER[]": types.OPAQUE,
    "INTEGER[3]": types.OPAQUE,
    "STRUCT(a INTEGER)": types.OPAQUE,
    "MAP(INTEGER, VARCHAR)": types.OPAQUE,
    "UNION(a INTEGER, b VARCHAR)": types.OPAQUE,
}


@pytest.mark.parametrize(("engine_type", "expected"), ENGINE_TYPES.items())
def test_types(engine_type: str, expected: SqlType) -> None:
    (column,) = table_of(f"CREATE TABLE t (x {engine_type})").columns
    assert column.type == expected
    assert (column.enum_values is not None) == engine_type.startswith("ENUM")


def test_enum_labels_come_whole_and_in_order() -> None:
    labels = ["z", "a", "", "it's", "', 'x", "b)", "ENUM('q')", "é\n"]
    text = ", ".join("'" + label.replace("'", "''") + "'" for label in labels)
    (column,) = table_of(f"CREATE TYPE e AS ENUM ({text})", "CREATE TABLE t (x e)").columns
    assert column.enum_values == tuple(labels)


def test_constraints() -> None:
    schema = schema_of(
        "CREATE TABLE p (id INT PRIMARY KEY, a INT, b INT NOT NULL UNIQUE, UNIQUE (a, b))",
        "CREATE TABLE c (p_id INT REFERENCES p (id), x INT, y INT, PRIMARY KEY (x, y),"
        " n DECIMAL(5,2) CHECK (n BETWEEN -1.5 AND 2), f DOUBLE CHECK (f >= 0.3),"
        " CHECK (x <= 7), CHECK (x < y))",
    )
    child, parent = schema.tables
    assert schema.default_schema == "main"
    assert parent.primary_key == ("id",)
    assert set(parent.unique) == {("b",), ("a", "b")}
    assert [parent.is_unique(name) for name in ("id", "a", "b")] == [True, False, True]
    assert [column.not_null for column in parent.columns] == [True, False, True]
    assert child.foreign_keys == (LiveForeignKey(("p_id",), ("main", "p"), ("id",)),)
    assert child.primary_key == ("x", "y")
    assert child.proved == Proved(
        (("x", "y"),),
        ((("p_id",), ("main", "p"), ("id",)),),
        (Allowed("x", None, Fraction(7)), Allowed("n", Fraction(-3, 2), Fraction(2))),
    )
    assert not child.is_unique("x")
    assert [(column.lo, column.hi) for column in child.columns] == [
        (None, None),
        (None, 7),
        (None, None),
        (Fraction(-3, 2), 2),
        (min(Fraction(3, 10), Fraction(0.3)), None),
    ]


def test_what_is_proved_of_values() -> None:
    """Nothing of floats, of texts that are equal to others, and of types that are read as others; of days here alone."""
    table = table_of(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE t (s VARCHAR CHECK (s IN ('a', 'b')), m mood, k INT CHECK (k IN (1, 2)), f DOUBLE CHECK (f > 0),"
        " c VARCHAR COLLATE NOCASE CHECK (c IN ('a')), u UUID CHECK (u IN ('a')), d DATE CHECK (d > '2020-01-01'))",
    )
    assert table.proved is not None
    assert [(column.lo, column.hi, column.listed) for column in table.columns[-1:]] == [(None, None, None)]
    assert table.proved.allowed == (
        Allowed("s", listed=frozenset({"a", "b"})),
        Allowed("m", listed=frozenset({"sad", "glad"})),
        Allowed("k", listed=frozenset({Fraction(1), Fraction(2)})),
        Allowed("d", lo=Fraction(18262)),
    )


def test_views_are_marked_and_temporary_tables_are_not_seen() -> None:
    schema = schema_of(
        "CREATE TABLE t (x INT)",
        "CREATE VIEW v AS SELECT x + 1 AS y FROM t",
        "CREATE TEMP TABLE tt (x INT)",
        "CREATE TEMP VIEW tv AS SELECT 1",
        "CREATE SCHEMA s",
        "CREATE TABLE s.t (x INT)",
    )
    assert [(table.path, table.unusable is not None) for table in schema.tables] == [
        (("main", "t"), False),
        (("main", "v"), True),
        (("s", "t"), False),
    ]
    assert schema.tables[1].columns == (LiveColumn("y", types.INTEGER, "INTEGER"),)


def test_an_attached_database_is_not_seen() -> None:
    schema = schema_of(
        "CREATE TABLE t (x INT)",
        "ATTACH ':memory:' AS other",
        "CREATE TABLE other.main.u (x INT PRIMARY KEY)",
    )
    assert [table.path for table in schema.tables] == [("main", "t")]


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE t (a VARCHAR, x VARCHAR COLLATE NOCASE PRIMARY KEY, n INT)"],
        ["CREATE TABLE t (a VARCHAR, x VARCHAR COLLATE NOCASE.NOACCENT NOT NULL, n INT)"],
        ["CREATE TABLE t (a VARCHAR, x VARCHAR COLLATE DE, n INT)"],
        ["CREATE TABLE t (a VARCHAR, n INT)", "ALTER TABLE t ADD COLUMN x VARCHAR COLLATE NOCASE"],
    ],
)
def test_a_collation_makes_text_opaque(statements: list[str]) -> None:
    table = table_of(*statements)
    found = {column.name: (column.type, column.is_bytewise) for column in table.columns}
    assert found["x"] == (types.OPAQUE, False)
    assert found["a"] == (types.TEXT, True)
    assert found["n"] == (types.INTEGER, True)


def test_why_a_collation_matters() -> None:
    """The primary key is enforced on bytes, and a query then counts two keys as one."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x VARCHAR COLLATE NOCASE PRIMARY KEY)")
    connection.execute("INSERT INTO t VALUES ('a'), ('A')")
    assert connection.execute("SELECT COUNT(*) FROM t GROUP BY x").fetchall() == [(2,)]
    connection.close()


def test_the_word_collate_alone_is_no_collation() -> None:
    table = table_of("CREATE TABLE t (\"collate\" VARCHAR, y VARCHAR DEFAULT 'COLLATE NOCASE')")
    assert [column.type for column in table.columns] == [types.TEXT, types.TEXT]


def test_generated_columns_are_marked() -> None:
    table = table_of("CREATE TABLE t (x INT, y INT GENERATED ALWAYS AS (x + 1))")
    assert [column.is_generated for column in table.columns] == [False, True]


def test_a_text_that_cannot_be_read_refuses_and_never_admits(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise sqlglot.errors.ParseError("unreadable")

    monkeypatch.setattr("dpsql.backends.duckdb_backend.sqlglot.parse_one", fail)
    table = table_of("CREATE TABLE t (x VARCHAR COLLATE NOCASE, y VARCHAR, n INT)")
    assert [column.type for column in table.columns] == [types.OPAQUE, types.OPAQUE, types.INTEGER]
    table = table_of("CREATE TABLE t (x INT, y INT GENERATED ALWAYS AS (x + 1))")
    assert [column.is_generated for column in table.columns] == [True, True]


CHANGES = {
    "nothing": "SELECT 1",
    "another table": "CREATE TABLE other (x INTEGER)",
    "a column more": "ALTER TABLE t ADD COLUMN y DATE",
    "a column less": "ALTER TABLE t DROP COLUMN price",
    "another name": "ALTER TABLE t RENAME COLUMN price TO cost",
    "another type": "ALTER TABLE t ALTER COLUMN price TYPE VARCHAR",
    "no NULL": "ALTER TABLE t ALTER COLUMN price SET NOT NULL",
    "a key": "ALTER TABLE t ADD PRIMARY KEY (id)",
    "a CHECK": "DROP TABLE t; CREATE TABLE t (id INTEGER, level mood, price money CHECK (price > 0))",
    "a collation": "DROP TABLE t; CREATE TABLE t (id VARCHAR COLLATE NOCASE, level mood, price money)",
    "other labels": "DROP TABLE t; DROP TYPE mood; CREATE TYPE mood AS ENUM ('a', 'c'); {made}",
    "a type by the same name": "DROP TABLE t; DROP TYPE money; CREATE TYPE money AS DECIMAL(9,4); {made}",
    "a table in another schema": "CREATE SCHEMA s; CREATE TABLE s.t (x INTEGER)",
    "a view": "CREATE VIEW v AS SELECT id FROM t",
}
MADE = "CREATE TABLE t (id INTEGER, level mood, price money)"


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_read_before_is_that_of_today(change: str) -> None:
    """The same backend, before a change and after it, reads what another one reads that has seen nothing."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TYPE money AS DECIMAL(9,2); {MADE}")
        backend = DuckDBBackend.over(connection)
        with backend.snapshot() as snapshot:
            before = snapshot.schema()
        connection.execute(CHANGES[change].format(made=MADE))
        with backend.snapshot() as snapshot, DuckDBBackend.over(connection).snapshot() as fresh:
            assert snapshot.schema() == fresh.schema()
            assert (snapshot.schema() is before) == (change == "nothing")


def test_a_view_of_another_database_is_read_each_time() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "ATTACH ':memory:' AS far; CREATE TABLE far.t (x INTEGER); CREATE VIEW v AS FROM far.t"
        )
        backend = DuckDBBackend.over(connection)
        read = []
        for _ in range(2):
            with backend.snapshot() as snapshot:
                read.append(snapshot.schema())
        assert read[0] == read[1]
        assert read[0] is not read[1]
