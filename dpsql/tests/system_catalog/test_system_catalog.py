from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from dpsql.relation.functions import NAMES
from dpsql.relation.functions.above import REFUSED
from dpsql.sql.bind_array import JSON_CALLS, ROW_CALLS
from dpsql.system_catalog import CatalogRefusal, ConnectionFacts, NamedObject, Reads, SystemCatalog, objects
from dpsql.system_catalog.objects import FIRST_OID, SESSION_RELATIONS, Objects
from dpsql.system_catalog.pg_types import load

from .dataset import FACTS, campus, open_catalog

_OURS = (
    "SELECT version()",
    "select current_schema(),session_user",
    "SELECT current_user",
    "SELECT current_schema",
    "SELECT current_setting('x')",
    "SELECT pg_backend_pid()",
    "SELECT 'student'::regclass",
    "SELECT $1::oid[]",
    "TABLE pg_class",
    "(SELECT 1 FROM pg_class) UNION SELECT 2",
    "/* hello */ SELECT * FROM Information_Schema.Tables",
    "WITH x AS (SELECT * FROM pg_type) SELECT * FROM x, LATERAL (SELECT x.typname) AS y",
    "SELECT * FROM (VALUES (1)) AS v(a), unnest(current_schemas(true))",
    'SELECT "oid" FROM "pg_catalog"."pg_class"',
    "SELECT nosuch syntax here FROM pg_catalog.pg_class WHERE",
    "SELECT * FROM pg_nosuch",
)
_NOT_OURS = (
    "SELECT 1",
    "SELECT 1 + 1",
    "SELECT now()",
    "SELECT upper('pg_class')",
    "SELECT sum(factorial(a)) FROM generate_series(1, 5) AS a",
    "SELECT unnest(ARRAY[1, 2]), cardinality(ARRAY[1])",
    "SELECT json_build_object('a', 1)",
    "SELECT COUNT(*) FROM student",
    "SELECT COUNT(*) FROM student WHERE name = 'pg_catalog.pg_class'",
    "WITH pg_mine AS (SELECT 1) SELECT * FROM pg_mine",
    "SELECT name FROM student",
    "SELECT COUNT(*) FROM student WHERE name = current_user",
    "SELECT * FROM nosuch",
    "UPDATE pg_class SET relname = 'x'",
    "EXPLAIN SELECT * FROM pg_class",
    "SHOW search_path",
    "",
)
_BOTH = (
    "SELECT COUNT(*) FROM student, pg_class",
    "SELECT COUNT(*) FROM student WHERE EXISTS (SELECT 1 FROM pg_catalog.pg_class)",
    "WITH x AS (SELECT * FROM student) SELECT * FROM x, information_schema.tables",
    "SELECT * FROM pg_class UNION SELECT * FROM public.loan",
)


_LISTS = ("setting_names", "setting_values", "databases", "database_oids")
_HELPING = {"o"}
"""What a query has for another one that reads it."""


@pytest.mark.parametrize("sql", _OURS)
def test_a_query_of_the_catalog_is_known(catalog: SystemCatalog, sql: str) -> None:
    assert catalog.reads(sql) is Reads.CATALOG
    assert catalog.reads(sql) is Reads.CATALOG


@pytest.mark.parametrize("sql", _NOT_OURS)
def test_any_other_statement_is_left_alone(catalog: SystemCatalog, sql: str) -> None:
    assert catalog.reads(sql) is Reads.OTHER
    assert catalog.reads(sql) is not Reads.CATALOG


@pytest.mark.parametrize("sql", _BOTH)
def test_a_query_of_both_is_known(catalog: SystemCatalog, sql: str) -> None:
    assert catalog.reads(sql) is Reads.BOTH
    assert catalog.reads(sql) is not Reads.CATALOG


def test_a_declared_table_hides_the_catalogs() -> None:
    declared = campus()
    table = declared.tables["course"]
    renamed = type(table)("pg_class", ("public", "pg_class"), table.columns, None)
    opened = open_catalog(type(declared)({"pg_class": renamed}, "public", "f"))
    assert opened.reads("SELECT * FROM pg_class") is Reads.OTHER
    assert opened.reads("SELECT * FROM pg_catalog.pg_class") is Reads.CATALOG
    opened.close()


def test_oids_are_the_same_at_every_start_and_in_their_range() -> None:
    first, second = Objects(campus(), True), Objects(campus(), True)
    assert first.tables == second.tables
    oids = [
        oid
        for table in first.tables
        for oid in (
            table.oid, table.row_type, table.row_array, *(key.oid for key in table.constraints),
            *(key.index for key in table.constraints if key.kind != "f"),
        )
    ]  # fmt: skip
    assert len(set(oids)) == len(oids)
    assert all(FIRST_OID <= oid < 2**31 for oid in oids)


def test_oids_do_not_depend_on_other_tables() -> None:
    alone = Objects(campus(tables=lambda name: name == "course"), True)
    together = Objects(campus(), True)
    assert alone.tables[0] == next(table for table in together.tables if table.name == "course")


def test_oids_that_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_OIDS", 64)
    first, second = Objects(campus(), True), Objects(campus(), True)
    assert len({table.oid for table in first.tables}) == 4
    assert [table.oid for table in first.tables] == [table.oid for table in second.tables]


def test_an_analyst_sees_no_other(catalog: SystemCatalog) -> None:
    for user in ("ann", "bob", "dpsql"):
        facts = ConnectionFacts(user, "campus", 1, {})
        roles = {name for (name,) in catalog.run("SELECT rolname FROM pg_roles", facts)[1]}
        assert roles == {user, "dpsql"}
        assert catalog.run("SELECT usename FROM pg_user WHERE usename <> current_user", facts)[1] == []
        assert catalog.run("SELECT count(*) FROM pg_stat_activity", facts)[1] == [(0,)]
    assert catalog.run("SELECT datname FROM pg_database", FACTS)[1] == [("campus",)]
    other = ConnectionFacts("ann", "other", 1, {})
    assert catalog.run("SELECT datname, current_database() FROM pg_database", other)[1] == [
        ("other", "other")
    ]


def test_a_plan_serves_every_connection(catalog: SystemCatalog) -> None:
    sql = "SELECT current_user, pg_backend_pid(), current_setting('a')"
    for number in range(3):
        facts = ConnectionFacts(f"user{number}", "campus", number, {"a": str(number)})
        assert catalog.run(sql, facts)[1] == [(f"user{number}", number, str(number))]


def test_no_count_of_rows_is_shown(catalog: SystemCatalog) -> None:
    sql = "SELECT DISTINCT reltuples, relpages, relallvisible, pg_total_relation_size(oid) FROM pg_class"
    assert catalog.run(sql, FACTS)[1] == [(-1.0, 0, 0, 0)]
    for name in (
        "pg_stats",
        "pg_statistic",
        "pg_stat_user_tables",
        "pg_statio_all_tables",
        "pg_stat_database",
    ):
        assert catalog.run(f"SELECT * FROM {name}", FACTS)[1] == []


def test_the_default_schema_is_public_whatever_the_database_calls_it() -> None:
    opened = open_catalog(campus("main"))
    facts = ConnectionFacts("ann", "campus", 1, {})
    assert opened.default_schema == "public"
    for name in ("student", "public.student", "main.student"):
        assert opened.run(f"SELECT '{name}'::regclass::text, to_regclass('{name}')::text", facts)[1] == [
            ("student",) * 2
        ]
    assert opened.run("SELECT current_schema()", facts)[1] == [("public",)]
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
    assert opened.run(tables, facts)[1] == [("course",), ("loan",), ("student",)]
    names = opened.run("SELECT nspname, oid FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1", facts)[1]
    assert [name for name, _ in names] == ["information_schema", "library", "public"]
    assert names[2][1] == 2200
    visible = "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid) AND relnamespace = 2200"
    assert {name for (name,) in opened.run(visible, facts)[1]} == {"student", "loan", "course"}
    opened.close()


def test_a_schema_public_beside_the_default_one_is_another() -> None:
    found = campus("main")
    table = replace(found.tables["library.shelf"], name="public.shelf", path=("public", "shelf"))
    opened = open_catalog(replace(found, tables={**found.tables, "public.shelf": table}))
    facts = ConnectionFacts("ann", "campus", 1, {})
    assert opened.default_schema == "main"
    sql = "SELECT to_regclass('main.student')::text, to_regclass('public.student')::text, 'public.shelf'::regclass::text"
    assert opened.run(sql, facts)[1] == [("student", None, "public.shelf")]
    opened.close()


def test_comments_say_what_an_analyst_may_do(catalog: SystemCatalog) -> None:
    sql = "SELECT obj_description('loan'::regclass), col_description('student'::regclass, 4)"
    table, column = catalog.run(sql, FACTS)[1][0]
    assert "owned through" in str(table)
    assert "bounds 0 to 4" in str(column)


def test_the_unit_column_comes_first(catalog: SystemCatalog) -> None:
    sql = "SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = 'student' ORDER BY ordinal_position LIMIT 2"
    assert catalog.run(sql, FACTS)[1] == [("id", "NO"), ("name", "YES")]


def test_rights_are_to_read_and_no_more(catalog: SystemCatalog) -> None:
    sql = "SELECT DISTINCT privilege_type, grantee FROM information_schema.table_privileges WHERE table_schema = 'public'"
    assert catalog.run(sql, FACTS)[1] == [("SELECT", "ann")]
    rights = "SELECT has_table_privilege('loan', 'SELECT'), has_table_privilege('loan', 'UPDATE'), has_schema_privilege('public', 'CREATE')"
    assert catalog.run(rights, FACTS)[1] == [(True, False, False)]


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("SELECT * FROM pg_class WHERE relname = $1", (19,)),
        ("SELECT * FROM pg_class WHERE oid = $1", (26,)),
        ("SELECT * FROM pg_class WHERE relkind = ANY($1)", (1002,)),
        ("SELECT * FROM pg_type WHERE oid = ANY($1::oid[])", (1028,)),
        ("SELECT $1", (25,)),
        ("SELECT relname LIKE $1 || '%' FROM pg_class LIMIT $2", (25, 20)),
        ("SELECT $2::regclass::oid FROM pg_am", (25, 2205)),
        ("SELECT CASE WHEN attnum = $1 THEN attname ELSE $2 END FROM pg_attribute", (21, 19)),
        ("SELECT $1 WHERE $1::int4 > 0 AND current_user = 'ann'", (23,)),
    ],
)
def test_a_parameter_takes_the_type_of_its_place(
    catalog: SystemCatalog, sql: str, types: tuple[int, ...]
) -> None:
    assert catalog.describe(sql, FACTS)[1] == types


def test_a_declared_type_wins(catalog: SystemCatalog) -> None:
    sql = "SELECT relname FROM pg_class WHERE oid = $1 AND relname = $2"
    assert catalog.describe(sql, FACTS, (23, 0))[1] == (23, 19)
    assert catalog.describe(sql, FACTS, (0, 1043))[1] == (26, 1043)


def test_parameters_are_values(catalog: SystemCatalog) -> None:
    sql = "SELECT relname FROM pg_class WHERE relname = ANY($1) ORDER BY 1"
    assert catalog.run(sql, FACTS, [["student", "loan", None]])[1] == [("loan",), ("student",)]
    assert catalog.run(sql, FACTS, [[]])[1] == []
    assert catalog.run(sql, FACTS, [None])[1] == []
    (found,) = catalog.run("SELECT $1::regclass", FACTS, ["student"])[1][0]
    assert isinstance(found, NamedObject)
    assert found.name == "student"
    assert catalog.run("SELECT $1::regclass", FACTS, [found.oid])[1] == [(found,)]
    with pytest.raises(CatalogRefusal) as refused:
        catalog.run("SELECT $1::regclass", FACTS, ["nosuch"])
    assert refused.value.sqlstate == "42P01"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT nosuch FROM pg_class", "42703"),
        ("SELECT * FROM pg_catalog.nosuch", "42P01"),
        ("SELECT 'nosuch'::regclass", "42P01"),
        ("SELECT current_setting('nosuch')", "42704"),
        ("SELECT oid FROM pg_class, pg_type", "42702"),
        ("SELECT (SELECT oid FROM pg_class)", "0A000"),
        ("SELECT relname::int4 FROM pg_class", "0A000"),
    ],
)
def test_what_is_wrong_is_refused_in_our_words(catalog: SystemCatalog, sql: str, code: str) -> None:
    with pytest.raises(CatalogRefusal) as refused:
        catalog.run(sql, FACTS)
    assert refused.value.sqlstate == code
    assert refused.value.kind
    assert refused.value.hint


def test_threads_do_not_disturb_each_other(catalog: SystemCatalog) -> None:
    def ask(number: int) -> bool:
        facts = ConnectionFacts(f"user{number}", "campus", number, {})
        found = catalog.run(
            f"SELECT current_user, count(*) FROM pg_class WHERE relnatts > {number % 7}", facts
        )
        return found[1][0][0] == f"user{number}"

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(60)))


@pytest.mark.parametrize("path", sorted(load().relations))
def test_every_relation_has_postgres_columns(catalog: SystemCatalog, path: tuple[str, str]) -> None:
    relation = load().relations[path]
    if not (relation.is_readable or relation.schema == "pg_catalog"):
        return
    columns, _ = catalog.run(f"SELECT * FROM {path[0]}.{path[1]}", FACTS)
    assert [column.name for column in columns] == [column[0] for column in relation.columns]


@pytest.mark.parametrize("path", sorted(SESSION_RELATIONS))
def test_a_query_gives_columns_that_the_relation_has(catalog: SystemCatalog, path: str) -> None:
    sql = SESSION_RELATIONS[path]
    facts = {name: ["1"] if name in _LISTS else "1" for name in re.findall(r"\$(\w+)", sql)}
    given = {column[0] for column in catalog._database.cursor().execute(sql, facts or None).description}
    schema, _, name = path.partition(".")
    assert given - {column[0] for column in load().relations[schema, name].columns} <= _HELPING


def test_repeated_texts_are_kept_but_not_without_bound(catalog: SystemCatalog) -> None:
    for number in range(500):
        catalog.describe(f"SELECT {number}::oid", FACTS)
    assert len(catalog._plans) == 400


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT ('{a,b,c}'::text[])[2:3]", ["b", "c"]),
        ("SELECT ('{a,b,c}'::text[])[:2]", ["a", "b"]),
        ("SELECT ('{a,b,c}'::text[])[0:1]", ["a"]),
        ("SELECT ('{a,b,c}'::text[])[3:]", ["c"]),
        ("SELECT ('{a,b,c}'::text[])[2:1]", []),
        ("SELECT row_to_json(t) FROM (SELECT count(*) AS n, sum(typlen) AS s, 'a' AS t FROM pg_type WHERE oid = 23) t",
         '{"n":1,"s":4,"t":"a"}'),
        ("SELECT to_char(TIMESTAMP '2024-02-03 14:05:06', 'YYYY-MM-DD HH24:MI:SS') FROM pg_am LIMIT 1",
         "2024-02-03 14:05:06"),
        ("SELECT has_table_privilege('no.such', 'SELECT') FROM pg_am WHERE amname = 'heap'", None),
        ("SELECT oidvectortypes(proargtypes) FROM pg_proc WHERE proname = 'dp_low'", "double precision"),
    ],
)  # fmt: skip
def test_what_pgadmin_calls(catalog: SystemCatalog, sql: str, value: object) -> None:
    assert catalog.run(sql, FACTS)[1] == [(value,)]


def test_functions_that_are_answered_are_shown() -> None:
    """Of those that Postgres 15 has: what `\\df` lists, and the trees of administrators' tools."""
    shown = {row[1] for row in load().rows["pg_proc"]}
    called = {name for name, rows in NAMES.items() if all(row.since <= 15 for row in rows)}
    assert called - shown == set()
    assert {*JSON_CALLS, *ROW_CALLS} - shown == set()
    assert not shown & {*REFUSED} - {"quote_ident", "parse_ident"}
