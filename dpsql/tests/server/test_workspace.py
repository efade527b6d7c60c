"""Own tables over the wire: blocks, prepared statements, the system catalog, and what tools send, as they send it."""

from __future__ import annotations

import datetime
import io
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg.pq import DiagnosticField

from .conftest import POLICY, Served, make_dataset, run_server

COUNTS = "SELECT city, count(*) AS n FROM person GROUP BY city"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("own")
    policy = POLICY.replace(
        "[analysts.poor]", "[analysts.bob]\nepsilon = 500\npassword = PW\n[analysts.poor]", 1
    )
    found = re.search(r'password = ("[^"]*")', policy)
    assert found is not None
    made = make_dataset(folder)
    made.write_text(policy.replace("password = PW", f"password = {found[1]}") + "[server]\ngrid = false\n")
    with run_server(made) as served:
        yield served


@pytest.fixture
def connection(own: Served) -> Iterator[psycopg.Connection[Any]]:
    with own.connect() as opened:
        yield opened
        opened.execute("ROLLBACK")
        opened.execute("DROP SCHEMA IF EXISTS workspace CASCADE")


def at_once(connection: psycopg.Connection[Any], *statements: str) -> None:
    with connection.pipeline():
        for sql in statements:
            connection.execute(sql.encode())


def answers(connection: psycopg.Connection[Any], sql: str) -> list[Any]:
    return connection.execute(sql.encode()).fetchall()


# --- what tools send, as they send it: dbt 1.9, pandas 3 over SQLAlchemy 2, Tableau, Looker, dbplyr, ibis -----

TOOLS = {
    "dbt, a table": [
        'create schema if not exists "workspace"',
        'BEGIN',
        '/* {"app": "dbt"} */\n\n  create  table "people"."workspace"."m__dbt_tmp"\n  \n  \n    as\n  \n  (\n    '
        + COUNTS + '\n  );',
        'alter table "people"."workspace"."m__dbt_tmp" rename to "m"',
        'COMMIT',
        'BEGIN',
        'drop table if exists "people"."workspace"."m__dbt_backup" cascade',
        'COMMIT',
    ],
    "dbt, a view over it": [
        'BEGIN',
        'create view "people"."workspace"."w__dbt_tmp"\n    \n    \n  as (\n    select city from "people"."public"."person"\n  );',
        'alter table "people"."workspace"."w__dbt_tmp" rename to "w"',
        'COMMIT',
        'BEGIN',
        'drop view if exists "people"."workspace"."w__dbt_backup" cascade',
        'COMMIT',
    ],
    "dbt, an incremental model": [
        'create  table "people"."workspace"."inc" as (select 1 as id, 2 as n)',
        'create temporary table "inc__dbt_tmp1" as (select 1 as id, 3 as n)',
        'delete from "people"."workspace"."inc"\n    where (\n        id) in (\n        select (id)\n        from "inc__dbt_tmp1"\n    )',
        'insert into "people"."workspace"."inc" ("id", "n")\n    (\n        select "id", "n"\n        from "inc__dbt_tmp1"\n    )',
        'drop table "inc__dbt_tmp1"',
    ],
    "dbt, a seed": [
        'create table "people"."workspace"."labels" ("id" integer,"label" text)',
        'insert into "people"."workspace"."labels" ("id", "label") values\n            (1,\'a\'),(2,\'it\'\'s\')',
    ],
    "pandas": [
        '\nCREATE TABLE frame (\n\tindex BIGINT, \n\ta BIGINT, \n\tb TEXT, \n\tc FLOAT(53), \n\td TIMESTAMP WITHOUT TIME ZONE, \n\te BOOLEAN\n)\n\n',
        'CREATE INDEX ix_frame_index ON frame (index)',
        "INSERT INTO frame (index, a, b, c, d, e) VALUES (0, 1, 'x', 1.5, '2020-01-01T00:00:00'::timestamp, true), "
        "(1, 2, NULL, NULL, NULL, false)",
        '\nDROP TABLE frame',
    ],
    "Tableau": [
        'CREATE LOCAL TEMPORARY TABLE "#Tableau_12_34_1_Connect" (\n  "COL" INTEGER\n  ) ON COMMIT PRESERVE ROWS',
        'DROP TABLE "#Tableau_12_34_1_Connect"',
        'SELECT "person"."city" AS "city", COUNT(*) AS "n" INTO TEMPORARY "#Tableau_12_34_2_Filter" FROM '
        '"public"."person" "person" GROUP BY 1',
        'CREATE INDEX "_tidx_#Tableau_12_34_2_1a" ON "#Tableau_12_34_2_Filter" ("city")',
        'ANALYZE "#Tableau_12_34_2_Filter"',
    ],
    "Looker": [
        'CREATE TABLE workspace."LR$ABCD_counts" AS ' + COUNTS,
        'CREATE INDEX ON workspace."LR$ABCD_counts" (city)',
        'ANALYZE workspace."LR$ABCD_counts"',
        'ALTER TABLE workspace."LR$ABCD_counts" RENAME TO "LR$EFGH_counts"',
        'DROP TABLE IF EXISTS workspace."LR$EFGH_counts"',
    ],
    "dbplyr": [
        'CREATE TEMPORARY TABLE \n"dbplyr_aB1" AS\nSELECT "city", COUNT(*) AS "n"\nFROM "person"\nGROUP BY "city"',
        'ANALYZE "dbplyr_aB1"',
        'CREATE TEMPORARY TABLE "mtcars" (\n  "mpg" DOUBLE PRECISION,\n  "cyl" DOUBLE PRECISION\n)\n',
    ],
    "ibis": [
        'CREATE TEMPORARY TABLE "ibis_pandas_memtable_a1" ("k" BIGINT, "s" TEXT)',
        'CREATE OR REPLACE TEMPORARY VIEW "ibis_view" AS SELECT "city" FROM "person"',
    ],
}  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS)
def test_what_tools_send_is_done(connection: psycopg.Connection[Any], tool: str) -> None:
    for sql in TOOLS[tool]:
        connection.execute(sql.encode())


def test_an_incremental_model_has_the_new_row(connection: psycopg.Connection[Any]) -> None:
    for sql in TOOLS["dbt, an incremental model"]:
        connection.execute(sql.encode())
    assert answers(connection, "SELECT * FROM workspace.inc") == [(1, 3)]


# --- blocks -------------------------------------------------------------------------------------------------


def test_a_block_is_written_whole_or_not_at_all(own: Served, connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE t (a int)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.execute("CREATE VIEW v AS SELECT * FROM t")
    assert answers(connection, "SELECT * FROM v") == [(1,)]
    with own.connect() as other:
        assert answers(other, "SELECT count(*) FROM t") == [(0,)]
    connection.execute("ROLLBACK")
    assert answers(connection, "SELECT count(*) FROM t") == [(0,)]
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT * FROM v")
    connection.execute("BEGIN; INSERT INTO t VALUES (2); COMMIT")
    assert answers(connection, "SELECT * FROM t") == [(2,)]


def test_an_error_undoes_the_block_or_the_statements_sent_at_once(
    connection: psycopg.Connection[Any],
) -> None:
    connection.execute("CREATE TABLE t (a int)")
    with pytest.raises(psycopg.Error):
        connection.execute("INSERT INTO t VALUES (1); SELECT nothing FROM t")
    with pytest.raises(psycopg.Error):
        at_once(connection, "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES ('x')")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(psycopg.Error):
        connection.execute("SELECT nothing FROM t")
    assert connection.execute("COMMIT").statusmessage == "ROLLBACK"
    assert answers(connection, "SELECT count(*) FROM t") == [(0,)]


def test_a_connection_that_is_lost_has_written_nothing_of_its_block(
    own: Served, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("CREATE TABLE t (a int)")
    lost = own.connect()
    lost.execute("BEGIN")
    lost.execute("INSERT INTO t VALUES (1)")
    lost.close()
    for _ in range(100):  # until its block has been taken back
        with suppress(psycopg.errors.SerializationFailure):
            connection.execute("INSERT INTO t VALUES (2)")
            break
        time.sleep(0.05)
    assert answers(connection, "SELECT * FROM t") == [(2,)]


@pytest.mark.parametrize("temporary", ["", "TEMP "])
def test_a_savepoint_takes_back_what_was_written(
    own: Served, connection: psycopg.Connection[Any], temporary: str
) -> None:
    connection.execute(f"CREATE {temporary}TABLE t (a int); INSERT INTO t VALUES (0)")
    connection.execute("BEGIN; INSERT INTO t VALUES (1); SAVEPOINT s")
    with pytest.raises(psycopg.Error):
        connection.execute("SELECT nothing FROM t")
    connection.execute("ROLLBACK TO s; INSERT INTO t VALUES (2); SAVEPOINT r; DELETE FROM t WHERE a < 2")
    assert answers(connection, "SELECT a FROM t") == [(2,)]
    connection.execute("ROLLBACK TO r")
    assert answers(connection, "SELECT a FROM t") == [(0,), (1,), (2,)]
    connection.execute(
        f"DROP TABLE t; CREATE {temporary}TABLE t (b text); CREATE {temporary}VIEW v AS TABLE t"
    )
    with pytest.raises(psycopg.Error):
        connection.execute("INSERT INTO t VALUES ('x'); INSERT INTO t VALUES (1, 2)")
    connection.execute(
        "ROLLBACK TO s; ALTER TABLE t ADD COLUMN c int; ALTER TABLE t RENAME TO u; ROLLBACK TO s"
    )
    with pytest.raises(psycopg.errors.InvalidSavepointSpecification):
        connection.execute("RELEASE r")
    connection.execute("ROLLBACK TO s; TRUNCATE t; SAVEPOINT q; INSERT INTO t VALUES (3); RELEASE q")
    connection.execute("INSERT INTO t VALUES (4); ROLLBACK TO s; INSERT INTO t VALUES (5); RELEASE s")
    connection.execute("COMMIT")
    assert answers(connection, "SELECT * FROM t") == [(0,), (1,), (5,)]
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT * FROM v")
    connection.execute("BEGIN; SAVEPOINT s; INSERT INTO t VALUES (6); ROLLBACK TO s; ROLLBACK")
    assert answers(connection, "SELECT * FROM t") == [(0,), (1,), (5,)]


def test_a_savepoint_of_one_session_meets_what_another_writes(
    own: Served, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("CREATE TABLE t (a int); CREATE TABLE u (a int)")
    with own.connect() as other:
        for block in (connection, other):
            block.execute("BEGIN; SAVEPOINT s")
        connection.execute("INSERT INTO t VALUES (1)")
        other.execute("INSERT INTO u VALUES (1); ROLLBACK TO s; INSERT INTO u VALUES (2)")
        connection.execute("COMMIT")
        other.execute("COMMIT")
        assert answers(other, "SELECT t.a, u.a FROM t, u") == [(1, 2)]
        for block in (connection, other):
            block.execute("BEGIN; SAVEPOINT s")
        connection.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            other.execute("INSERT INTO t VALUES (3)")
        with pytest.raises(psycopg.errors.SerializationFailure):  # and so has the whole block to begin again
            other.execute("ROLLBACK TO s")
        other.execute("ROLLBACK")
        connection.execute("COMMIT")
    assert answers(connection, "SELECT a FROM t") == [(1,), (2,)]


def test_temporary_tables_end_with_their_session_or_block(
    own: Served, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("CREATE TEMP TABLE t AS SELECT 1 AS a")
    connection.execute("BEGIN; CREATE TEMP TABLE u ON COMMIT DROP AS SELECT 1 AS a")
    assert answers(connection, "SELECT * FROM u") == [(1,)]
    connection.execute("COMMIT")
    for gone in ("u",):
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute(f"SELECT * FROM {gone}".encode())
    with own.connect() as other, pytest.raises(psycopg.errors.UndefinedTable):
        other.execute("SELECT * FROM t")
    connection.execute("DISCARD ALL")
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT * FROM t")


# --- rows that clients copy in ------------------------------------------------------------------------------


def copy_in(connection: psycopg.Connection[Any], sql: str, *pieces: str) -> int:
    with connection.cursor() as cursor:
        with cursor.copy(sql.encode()) as copy:
            for piece in pieces:
                copy.write(piece.encode())
        return cursor.rowcount


def test_rows_are_copied_in(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "CREATE TABLE t (a bigint, b text, c date, d double precision, e boolean, f numeric(5,2))"
    )
    assert (
        copy_in(
            connection,
            "COPY t FROM STDIN",
            "1\tx\t2020-01-02\t1.5\tt\t1.25\n\\N\t\\N\t\\N\t\\N",
            "\tf\t\\N\n",
        )
        == 2
    )
    csv = "COPY workspace.t (b, a) FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';')"
    assert copy_in(connection, csv, 'b;a\n"x;\n""y""";2\n', ";3\n") == 2
    assert copy_in(connection, "COPY t (a) FROM STDIN WITH CSV", "") == 0
    assert answers(connection, "SELECT a, b, c::text, d, e, f FROM t ORDER BY a") == [
        (1, "x", "2020-01-02", 1.5, True, Decimal("1.25")), (2, 'x;\n"y"', None, None, None, None),
        (3, None, None, None, None, None), (None, None, None, None, False, None),
    ]  # fmt: skip
    many = "".join(f"{i}\n" for i in range(12_001))
    connection.execute("CREATE TEMP TABLE u (a int)")
    assert copy_in(connection, "COPY u FROM STDIN", many) == 12_001
    assert answers(connection, "SELECT count(*), sum(a) FROM u") == [(12_001, 12_000 * 12_001 // 2)]


@pytest.mark.parametrize(
    ("sql", "rows", "sqlstate", "said"),
    [
        ("COPY t FROM STDIN", "1\tx\n2\n", "22P04", "line 2 has 1 values for 2 columns"),
        ("COPY t FROM STDIN", "1\tx\ny\tx\n", "22023", 'line 2, column "a"'),
        ("COPY t FROM STDIN", "1\tx\n" * 5_000 + "y\tx\n", "22023", 'line 5001, column "a"'),
        ("COPY t FROM STDIN CSV", '1,"x\n', "22P04", "does not end"),
        ("COPY n FROM STDIN", "\\N\n", "23502", "NOT NULL"),
        ("COPY person FROM STDIN", "", "42501", "is the owner's"),
        ("COPY nowhere FROM STDIN", "", "42P01", "no table"),
        ("COPY t (z) FROM STDIN", "", "42703", "does not exist"),
        ("COPY t FROM STDIN (FORMAT binary)", "", "22P04", "cut off"),
        ("COPY t FROM STDIN (FORMAT binary)", "1\tx\n", "22P04", "no copy in binary"),
        ("COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE *)", "", "42601", "FORCE_QUOTE"),
        ("COPY t FROM '/etc/passwd'", "", "0A000", "this form of COPY"),
        ("COPY t FROM PROGRAM 'id'", "", "0A000", "this form of COPY"),
    ],
)  # fmt: skip
def test_a_copy_is_written_whole_or_not_at_all(
    connection: psycopg.Connection[Any], sql: str, rows: str, sqlstate: str, said: str
) -> None:
    connection.execute("CREATE TABLE t (a bigint, b text)")
    connection.execute("CREATE TABLE n (a bigint NOT NULL)")
    with pytest.raises(psycopg.Error, match=said) as refused:
        copy_in(connection, sql, rows)
    assert refused.value.sqlstate == sqlstate
    assert answers(connection, "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM n)") == [(0, 0)]


def copy_values(
    connection: psycopg.Connection[Any], sql: str, types: Sequence[str], rows: Sequence[Sequence[Any]]
) -> int:
    with connection.cursor() as cursor:
        with cursor.copy(sql.encode()) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)
        return cursor.rowcount


def test_rows_are_copied_in_binary(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "CREATE TABLE t (a bigint, b text, c date, d double precision, e boolean, f numeric(5,2), g timestamp, h int)"
    )
    rows = [
        (1, "x\n", datetime.date(1999, 1, 2), 1.5, True, Decimal("1.25"), datetime.datetime(2020, 1, 2, 3, 4, 5, 6), -7),
        (None,) * 8,
        (-(2**40), "é", datetime.date(2030, 1, 2), -0.1, False, Decimal(-3), datetime.datetime(1960, 1, 1), 0),
    ]  # fmt: skip
    types = ("int8", "text", "date", "float8", "bool", "numeric", "timestamp", "int4")
    assert copy_values(connection, "COPY t FROM STDIN (FORMAT binary)", types, rows) == 3
    assert answers(connection, "SELECT * FROM t") == rows
    with connection.cursor() as cursor, cursor.copy("COPY (TABLE t) TO STDOUT (FORMAT binary)") as copy:
        sent = b"".join(bytes(piece) for piece in copy)
    connection.execute("CREATE TABLE u (a bigint, b text, c date, d double precision, e boolean, f numeric(5,2), "
                       "g timestamp, h int)")  # fmt: skip
    with connection.cursor() as cursor, cursor.copy("COPY u FROM STDIN (FORMAT binary)") as copy:
        for at in range(0, len(sent), 7):
            copy.write(sent[at : at + 7])
    assert answers(connection, "SELECT * FROM u") == rows
    for column, type_, value, said in (
        ("a", "int4", 1, "line 1: incorrect binary data"),
        ("a", "text", "1", "line 1: incorrect binary data"),
        ("d", "float8", float("nan"), 'line 1, column "d": nan is not kept'),
    ):
        with pytest.raises(psycopg.Error, match=said):
            copy_values(connection, f"COPY t ({column}) FROM STDIN (FORMAT binary)", [type_], [(value,)])
    assert answers(connection, "SELECT count(*) FROM t") == [(3,)]


def test_a_copy_that_is_given_up_or_cut_off_leaves_nothing(
    own: Served, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("CREATE TABLE t (a bigint)")
    connection.pgconn.exec_(b"COPY t FROM STDIN")
    connection.pgconn.put_copy_data(b"1\n" * 6_000)
    connection.pgconn.put_copy_end(b"no more of it")
    given_up = connection.pgconn.get_result()
    assert given_up is not None
    assert given_up.error_field(DiagnosticField.SQLSTATE) == b"57014"
    assert connection.pgconn.get_result() is None
    other = own.connect()
    other.pgconn.exec_(b"COPY t FROM STDIN")
    other.pgconn.put_copy_data(b"1\n" * 6_000)
    other.pgconn.flush()
    other.close()
    assert answers(connection, "SELECT count(*) FROM t") == [(0,)]
    connection.execute("BEGIN")
    copy_in(connection, "COPY t FROM STDIN", "1\n")
    assert answers(connection, "SELECT count(*) FROM t") == [(1,)]
    connection.execute("ROLLBACK")
    assert answers(connection, "SELECT count(*) FROM t") == [(0,)]


def test_what_pandas_copies(connection: psycopg.Connection[Any], own: Served) -> None:
    """`DataFrame.to_sql(method=…)` as its manual has it, over psycopg2's `copy_expert`."""
    psycopg2 = pytest.importorskip("psycopg2")
    connection.execute("CREATE TABLE frame (a bigint, b text)")
    info = connection.info
    with psycopg2.connect(
        host=info.host, port=info.port, dbname=info.dbname, user=info.user, password=info.password
    ) as other:
        with other.cursor() as cursor:
            cursor.copy_expert('COPY "frame" ("a", "b") FROM STDIN WITH CSV', io.StringIO('1,x\n2,"y,z"\n'))
        other.commit()
    other.close()
    assert answers(connection, "SELECT * FROM frame ORDER BY a") == [(1, "x"), (2, "y,z")]


# --- parameters, tags, notices ------------------------------------------------------------------------------


def test_parameters_have_their_columns_types(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE t (a bigint, b text, c date)")
    cursor = connection.cursor()
    cursor.executemany(
        "INSERT INTO t VALUES (%s, %s, %s)", [(i, f"row {i}", "2020-01-01") for i in range(50)]
    )
    assert answers(connection, "SELECT count(*), max(a), max(c)::text FROM t") == [(50, 49, "2020-01-01")]
    connection.execute("PREPARE p AS INSERT INTO t (a) VALUES ($1)")
    assert connection.execute("EXECUTE p(99)").statusmessage == "INSERT 0 1"


def test_tags_and_the_charge(connection: psycopg.Connection[Any]) -> None:
    told: list[str | None] = []
    connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
    assert connection.execute(f"CREATE TABLE t AS {COUNTS}".encode()).statusmessage == "SELECT 2"
    assert connection.execute("SELECT * FROM t").statusmessage == "SELECT 2"
    assert connection.execute("DELETE FROM t").statusmessage == "DELETE 2"
    assert connection.execute("DROP TABLE t").statusmessage == "DROP TABLE"
    assert len([one for one in told if one is not None and ("charged" in one or "free" in one)]) == 1


# --- the system catalog, and others -------------------------------------------------------------------------


def test_the_catalog_shows_a_schema_of_ones_own(own: Served, connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b")
    connection.execute("CREATE VIEW v AS SELECT * FROM t")
    connection.execute("CREATE SCHEMA mine")
    tables = "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema <> 'public'"
    system = " AND table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 2"
    assert answers(connection, tables + system) == [
        ("workspace", "t", "BASE TABLE"),
        ("workspace", "v", "VIEW"),
    ]
    assert answers(connection, "SELECT nspname FROM pg_namespace WHERE nspname IN ('mine', 'workspace') ORDER BY 1") == [
        ("mine",), ("workspace",),
    ]  # fmt: skip
    assert answers(
        connection, "SELECT pg_table_is_visible('workspace.t'::regclass), 't'::regclass::text"
    ) == [(True, "workspace.t")]
    assert 'Table "workspace.t"' in own.psql("\\d t")
    with own.connect(user="bob") as bob:
        assert answers(bob, tables + system) == []
        assert answers(bob, "SELECT count(*) FROM pg_namespace WHERE nspname = 'mine'") == [(0,)]
        for name in ("t", "v", "workspace.t"):
            with pytest.raises(psycopg.errors.UndefinedTable):
                bob.execute(f"SELECT * FROM {name}".encode())
        bob.execute("CREATE TABLE t AS SELECT 5 AS z")
        assert answers(bob, "SELECT * FROM t") == [(5,)]
        bob.execute("DROP TABLE t")
    assert answers(connection, "SELECT a FROM t") == [(1,)]
    connection.execute("DROP SCHEMA mine")


def test_the_current_schema_is_the_own_one_that_the_path_names_first(
    connection: psycopg.Connection[Any],
) -> None:
    schema = "SELECT current_schema(), current_schemas(false)"
    connection.execute("CREATE TABLE t (a int)")
    assert answers(connection, schema) == [("public", ["public"])]
    for path, expected in (
        ("workspace, public", "workspace"), ('"workspace"', "workspace"), ("public, workspace", "public"),
        ("other, workspace", "public"),
    ):  # fmt: skip
        connection.execute(f"SET search_path = {path}")
        assert answers(connection, schema) == [(expected, [expected])]
    connection.execute("RESET search_path; CREATE SCHEMA mine; CREATE TABLE mine.t (a int)")
    connection.execute("SET search_path = mine, public")
    assert answers(connection, schema) == [("mine", ["mine"])]


@pytest.mark.parametrize("path", ["workspace, public", "workspace", "public, workspace"])
def test_no_search_path_has_an_own_table_hide_one_of_the_policy(
    connection: psycopg.Connection[Any], path: str
) -> None:
    connection.execute("CREATE TABLE workspace.thing AS SELECT 1 AS mine")
    connection.execute(f"SET search_path = {path}".encode())
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SELECT mine FROM thing")
    assert answers(connection, "SELECT whole FROM thing") == [(2,)]


def test_nothing_is_written_of_the_owners(connection: psycopg.Connection[Any]) -> None:
    for sql in (
        "INSERT INTO thing VALUES (1)", "DELETE FROM person", "DROP TABLE person", "TRUNCATE public.person",
        "ALTER TABLE person RENAME TO p", "CREATE TABLE public.x AS SELECT 1 AS a", "CREATE VIEW main.x AS SELECT 1 AS a",
        "DROP SCHEMA public CASCADE", "ANALYZE person", "COMMENT ON TABLE person IS 'x'",
    ):  # fmt: skip
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(sql.encode())


def test_files_are_of_the_server_alone(own: Served, connection: psycopg.Connection[Any]) -> None:
    for sql in (
        "CREATE TABLE t AS SELECT * FROM read_csv('/etc/passwd')", "CREATE TABLE t AS SELECT * FROM '/etc/passwd'",
        "COPY person TO '/tmp/x'", "CREATE VIEW v AS SELECT * FROM glob('*')", "INSERT INTO t SELECT pg_read_file('x')",
    ):  # fmt: skip
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(sql.encode())
        assert refused.value.sqlstate in ("42P01", "0A000", "42883", "42601")
