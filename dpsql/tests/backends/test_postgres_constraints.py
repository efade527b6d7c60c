"""Constraints of real Postgres databases: what it enforces on every row is seen, what it does not is not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import psycopg
import pytest

from dpsql.backends.postgres_backend import PostgresBackend
from dpsql.policy import LiveForeignKey
from dpsql.relation.catalog import Allowed
from dpsql.tests.support.postgres_server import PostgresServer

from .conftest import Read, Table


def test_constraints(schema_of: Read) -> None:
    schema = schema_of(
        'CREATE TABLE p (id int PRIMARY KEY, a int, b int NOT NULL UNIQUE, "A b" int UNIQUE, UNIQUE (a, b))',
        "CREATE TABLE c (p_id int REFERENCES p (id), x int, y int, PRIMARY KEY (y, x), FOREIGN KEY (x, y)"
        " REFERENCES p (a, b), n numeric(5,2) CHECK (n BETWEEN -1.5 AND 2), f float8 CHECK (f >= 0.3),"
        ' CHECK (x <= 7), CHECK (x < y), "X" int CHECK ("X" >= 3))',
    )
    child, parent = schema.tables
    assert schema.default_schema == "public"
    assert schema.dialect == "postgres"
    assert parent.primary_key == ("id",)
    assert set(parent.unique) == {("b",), ("a", "b"), ("A b",)}
    assert [column.not_null for column in parent.columns] == [True, False, True, False]
    assert set(child.foreign_keys) == {
        LiveForeignKey(("p_id",), ("public", "p"), ("id",)),
        LiveForeignKey(("x", "y"), ("public", "p"), ("a", "b")),
    }
    assert child.primary_key == ("y", "x")
    assert [(column.name, column.lo, column.hi) for column in child.columns] == [
        ("p_id", None, None),
        ("x", None, 7),
        ("y", None, None),
        ("n", Fraction(-3, 2), 2),
        ("f", min(Fraction(3, 10), Fraction(0.3)), None),
        ("X", 3, None),
    ]


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE UNIQUE INDEX ON t (x) WHERE y > 0",
        "CREATE UNIQUE INDEX ON t (abs(x))",
        "CREATE UNIQUE INDEX ON t (x, (y + 1))",
        "CREATE INDEX ON t (x)",
        "CREATE UNIQUE INDEX ON t (x, y)",
        "ALTER TABLE t ADD EXCLUDE (x WITH =)",
        "CREATE UNIQUE INDEX i ON t (x); UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'i'::regclass",
        "CREATE UNIQUE INDEX i ON t (x); UPDATE pg_index SET indisready = false WHERE indexrelid = 'i'::regclass",
    ],
)
def test_what_is_no_unique_key(table_of: Table, definition: str) -> None:
    table = table_of("CREATE TABLE t (x int, y int)", definition)
    assert not table.is_unique("x")
    assert table.unique in ((), (("x", "y"),))


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE UNIQUE INDEX ON t (x)",
        "CREATE UNIQUE INDEX ON t (x) INCLUDE (y)",
        "CREATE UNIQUE INDEX ON t (x DESC NULLS LAST)",
        "ALTER TABLE t ADD UNIQUE (x) DEFERRABLE INITIALLY DEFERRED",
        "ALTER TABLE t ADD PRIMARY KEY (x) INCLUDE (y)",
    ],
)
def test_what_is_a_unique_key(table_of: Table, definition: str) -> None:
    assert table_of("CREATE TABLE t (x int, y int)", definition).is_unique("x")


def test_equality_of_an_operator_class_of_somebodys_own_is_no_equality(table_of: Table) -> None:
    """Under it 1 and 1 could differ: a key in such an index may occur any number of times."""
    table = table_of(
        "CREATE FUNCTION never(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'",
        "CREATE OPERATOR CLASS odd FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,"
        " OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 never(int, int)",
        "CREATE TABLE t (x int, y text)",
        "CREATE UNIQUE INDEX ON t (x odd)",
        "CREATE UNIQUE INDEX ON t (y text_pattern_ops)",
    )
    assert table.unique == (("y",),)


def test_constraints_that_are_not_validated_say_nothing(schema_of: Read) -> None:
    child, parent = schema_of(
        "CREATE TABLE p (id int PRIMARY KEY)",
        "CREATE TABLE c (id int, x int)",
        "ALTER TABLE c ADD FOREIGN KEY (id) REFERENCES p NOT VALID",
        "ALTER TABLE c ADD CHECK (x >= 0) NOT VALID",
    ).tables
    assert parent.primary_key == ("id",)
    assert child.foreign_keys == ()
    assert child.columns[1].lo is None
    assert child.proved is not None
    assert child.proved.allowed == ()


def test_what_is_proved_of_values(schema_of: Read) -> None:
    """Nothing of floats, of open numbers, of texts that are equal to others, and of what is not validated."""
    (table,) = schema_of(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE t (s text CHECK (s IN ('a', 'b')), v varchar(3) CHECK (v IN ('a', 'b')), m mood,"
        " k int CHECK (k IN (1, 2) AND k > 0), n numeric(4,1) CHECK (n IN (1, 2.5)), o numeric CHECK (o IN (1, 2)),"
        " f float8 CHECK (f IN (1, 2) AND f > 0), c char(3) CHECK (c IN ('a', 'b')), d date CHECK (d > '2020-01-01'),"
        " l int, b boolean CHECK (b), e text CHECK (e = 'a' OR e IS NULL))",
        "ALTER TABLE t ADD CHECK (l IN (1, 2)) NOT VALID",
    ).tables
    assert table.proved is not None
    assert table.proved.allowed == (
        Allowed("s", listed=frozenset({"a", "b"})),
        Allowed("v", listed=frozenset({"a", "b"})),
        Allowed("m", listed=frozenset({"sad", "glad"})),
        Allowed("k", Fraction(0), None, frozenset({Fraction(1), Fraction(2)})),
        Allowed("n", listed=frozenset({Fraction(1), Fraction(5, 2)})),
        Allowed("d", Fraction(18262)),
    )


def test_what_postgres_18_does_not_enforce(postgres: PostgresServer, schema_of: Read) -> None:
    if postgres.major < 18:
        pytest.skip("never: these constraints came with Postgres 18")
    child, _, temporal = schema_of(
        "CREATE TABLE p (id int PRIMARY KEY)",
        "CREATE TABLE c (id int REFERENCES p NOT ENFORCED, x int CHECK (x >= 0) NOT ENFORCED, y int, z int NOT NULL,"
        " v int GENERATED ALWAYS AS (y + 1) VIRTUAL, s int GENERATED ALWAYS AS (y + 1) STORED)",
        "INSERT INTO c VALUES (7, -1, NULL, 1)",
        "ALTER TABLE c ADD CONSTRAINT later NOT NULL y NOT VALID",
        "CREATE TABLE t (id int4range, at daterange, PRIMARY KEY (id, at WITHOUT OVERLAPS))",
    ).tables
    assert child.foreign_keys == ()
    assert child.columns[1].lo is None
    assert child.proved is not None
    assert child.proved.allowed == ()
    assert [(column.name, column.not_null) for column in child.columns[2:4]] == [("y", False), ("z", True)]
    assert [column.is_generated for column in child.columns[4:]] == [True, False]
    assert (temporal.primary_key, temporal.unique) == ((), ())


def test_stored_generated_columns_are_columns(table_of: Table) -> None:
    table = table_of("CREATE TABLE t (x int, y int GENERATED ALWAYS AS (x + 1) STORED)")
    assert [column.is_generated for column in table.columns] == [False, False]


def test_dropped_columns_leave_no_trace(table_of: Table) -> None:
    table = table_of(
        "CREATE TABLE t (a int, b int, c int UNIQUE, UNIQUE (a, b))",
        "ALTER TABLE t DROP COLUMN a",
        "ALTER TABLE t ADD COLUMN d int NOT NULL UNIQUE",
    )
    assert [column.name for column in table.columns] == ["b", "c", "d"]
    assert set(table.unique) == {("c",), ("d",)}


CHECKS = {
    "i BETWEEN 1 AND 5": {"i": (1, 5)},
    "((i >= 1) AND (5 >= i))": {"i": (1, 5)},
    "i > -3 AND i < 100000": {"i": (-3, 100000)},
    "s >= -1 AND s <= 3000": {"s": (-1, 3000)},
    "b >= 3000000000": {"b": (3000000000, None)},
    "b <= -5": {"b": (None, -5)},
    "n >= 0 AND n <= 3.5": {"n": (0, Fraction(7, 2))},
    "n > '-2.50'": {"n": (Fraction(-5, 2), None)},
    "w <= 1": {"w": (None, 1)},
    "f >= 0 AND f <= 1.5": {"f": (0, Fraction(3, 2))},
    "r >= -1": {"r": (-1, None)},
    "i >= 0 AND length(t) < 5": {"i": (0, None)},
    "i >= 0 AND (i = 3 OR n > 2)": {"i": (0, None)},
    "i >= 1.5": {},
    "i >= 1e2": {},
    "i::numeric >= 3": {},
    "i >= 2.5::integer": {},
    "n >= 2.567::numeric(3,1)": {},
    "n >= 'NaN'": {},
    "o >= 3": {},
    "i >= 0 OR n >= 0": {},
    "NOT i >= 0": {},
    "i + 1 >= 0": {},
    "i IN (1, 2)": {},
    "i >= n": {},
    "i > 0 IS NOT FALSE": {},
    "i OPERATOR(public.>=) 3": {},
    "d >= '2020-01-01'": {},
    "t >= '3'": {},
    "i >= length(t)": {},
}


def test_bounds_off_a_check(table_of: Table) -> None:
    """Each as Postgres shows it, which is not as it was written."""
    columns = "i int, s smallint, b bigint, n numeric(5,2), w numeric(50,3), o numeric, f float8, r real, d date, t text"
    found = {}
    for check in CHECKS:
        table = table_of(
            "CREATE FUNCTION never(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'",
            "CREATE OPERATOR public.>= (LEFTARG = int, RIGHTARG = int, FUNCTION = never)",
            f"CREATE TABLE t ({columns}, CHECK ({check}))",
        )
        found[check] = {
            column.name: (column.lo, column.hi)
            for column in table.columns
            if column.lo is not None or column.hi is not None
        }
    assert found == CHECKS


@pytest.mark.parametrize("column", ["double precision", "real"])
@pytest.mark.parametrize("literal", ["0.1", "0.3", "16777217", "3.4", "1.1", "-0.7"])
def test_a_float_bound_covers_what_the_engine_lets_in(
    table_of: Table, emptied: psycopg.Connection[Any], column: str, literal: str
) -> None:
    for sign, side in ((">=", "lo"), ("<=", "hi")):
        for cast in ("", f"::{column}", "::real"):
            (found,) = table_of(f"CREATE TABLE t (x {column} CHECK (x {sign} {literal}{cast}))").columns
            candidates = [f"{literal}::{column}", f"{literal}::real", f"{literal}::double precision"]
            for candidate in candidates:
                with emptied.transaction() as attempt:
                    try:
                        emptied.execute(f"INSERT INTO t VALUES ({candidate})")
                    except psycopg.errors.CheckViolation:
                        raise psycopg.Rollback(attempt) from None
            bound = getattr(found, side)
            for (stored,) in emptied.execute("SELECT x::double precision FROM t").fetchall():
                assert bound is None or (
                    bound <= Fraction(stored) if side == "lo" else bound >= Fraction(stored)
                )
            if not cast:
                assert bound is not None


@pytest.mark.parametrize(
    ("definition", "keys"),
    [
        ("ALTER TABLE t ADD PRIMARY KEY (x)", (("x",),)),
        ("CREATE UNIQUE INDEX ON t (x)", (("x",),)),
        ("ALTER TABLE t ADD UNIQUE (x) DEFERRABLE INITIALLY DEFERRED", ()),
        ("ALTER TABLE t ADD UNIQUE (x) DEFERRABLE", ()),
        ("CREATE UNIQUE INDEX ON t (x) WHERE y > 0", ()),
    ],
)
def test_a_key_that_may_be_deferred_proves_nothing(
    table_of: Table, definition: str, keys: tuple[tuple[str, ...], ...]
) -> None:
    """What proves that there is no row (soundness.md 1.16)."""
    table = table_of("CREATE TABLE t (x int, y int)", definition)
    assert table.proved is not None
    assert table.proved.keys == keys


@pytest.mark.parametrize(
    ("statement", "is_proved"),
    [
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id)", True),
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id) NOT VALID", False),
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id) DEFERRABLE", False),
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id); ALTER TABLE c DISABLE TRIGGER ALL", False),
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id); ALTER TABLE p DISABLE TRIGGER ALL", False),
    ],
)
def test_a_foreign_key_proves_where_it_is_held_at_all_times(
    schema_of: Read, statement: str, is_proved: bool
) -> None:
    schema = schema_of("CREATE TABLE p (id int PRIMARY KEY)", "CREATE TABLE c (p int)", statement)
    child, parent = schema.tables
    assert child.proved is not None
    assert parent.proved is not None
    assert child.proved.foreign_keys == (((("p",), ("public", "p"), ("id",)),) if is_proved else ())
    assert parent.proved.keys == (("id",),)


def test_views_and_foreign_tables_prove_nothing(schema_of: Read) -> None:
    schema = schema_of("CREATE TABLE t (id int PRIMARY KEY)", "CREATE VIEW v AS SELECT id FROM t")
    assert [table.proved is None for table in schema.tables] == [False, True]


def test_a_trigger_that_is_disabled_changes_the_schema(
    emptied: psycopg.Connection[Any], schema_of: Read
) -> None:
    """So a plan that rests on its foreign key is made anew."""
    schema_of("CREATE TABLE p (id int PRIMARY KEY)", "CREATE TABLE c (p int REFERENCES p)")
    backend = PostgresBackend.over(emptied, None)
    with backend.snapshot() as snapshot:
        before = snapshot.schema()
    emptied.execute("ALTER TABLE p DISABLE TRIGGER ALL")
    with backend.snapshot() as snapshot:
        assert snapshot.schema() != before
