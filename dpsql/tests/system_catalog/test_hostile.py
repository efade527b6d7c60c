"""An analyst means harm: no way out of the catalog, and no work without end."""

from __future__ import annotations

import threading
import time

import pytest

from dpsql.errors import EngineFailure, Refusal
from dpsql.system_catalog import CatalogRefusal, ConnectionFacts, SystemCatalog, system_catalog

from .dataset import FACTS, campus, open_catalog

_FROM = "FROM pg_catalog.pg_class"
_REACHING_OUT = (
    "SELECT * FROM read_csv('/etc/passwd'), pg_class",
    "SELECT read_text('/etc/passwd') FROM pg_class",
    f"SELECT getenv('HOME') {_FROM}",
    f"SELECT pg_read_file('/etc/passwd') {_FROM}",
    "SELECT * FROM pg_ls_dir('.')",
    f"SELECT lo_import('/etc/passwd') {_FROM}",
    f"SELECT dblink('dbname=x', 'SELECT 1') {_FROM}",
    f"SELECT query_to_xml('SELECT 1', true, true, '') {_FROM}",
    "SELECT pg_sleep(100)",
    "SELECT pg_terminate_backend(1)",
    "SELECT pg_cancel_backend(pg_backend_pid())",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_notify('a', 'b')",
    f"SELECT nextval('x') {_FROM}",
    "SELECT * FROM pg_catalog.duckdb_settings()",
    "SELECT * FROM pg_catalog.pragma_table_info('pg_class')",
    "SELECT * FROM duckdb_tables(), pg_class",
    "SELECT * FROM pg_class, '/etc/passwd'",
    'SELECT * FROM pg_class, "/etc/passwd"',
    "SELECT * FROM pg_class, h.readable",
    "SELECT * FROM pg_class, c.pg_class AS x",
    "SELECT * FROM pg_class, sqlite_master",
    "SELECT * INTO x FROM pg_class",
    "SELECT * FROM pg_class FOR UPDATE",
    "WITH x AS (DELETE FROM pg_class RETURNING *) SELECT * FROM x, pg_class",
    "SELECT * FROM pg_class; DROP TABLE pg_class",
    "SELECT repeat('x', 1000000000) FROM pg_class",
    "SELECT lpad('x', 1000000000) FROM pg_class",
    "SELECT set_config(relname, 'x', false)('y') FROM pg_class",
)


@pytest.mark.parametrize("sql", _REACHING_OUT)
def test_what_reaches_out_is_refused(catalog: SystemCatalog, sql: str) -> None:
    with pytest.raises(CatalogRefusal) as refused:
        catalog.run(sql, FACTS)
    assert refused.value.sqlstate in ("0A000", "42P01")
    assert "Error" not in str(refused.value)


@pytest.mark.parametrize("name", ["'; DROP SCHEMA c; --", "$user", "{0}", "\\", 'a"b', "'", "🙂", "%s", "?1"])
def test_a_text_stays_a_text(catalog: SystemCatalog, name: str) -> None:
    written = name.replace("'", "''")
    assert catalog.run(f"SELECT '{written}'::name", FACTS)[1] == [(name,)]
    assert catalog.run("SELECT $1::name", FACTS, [name])[1] == [(name,)]
    quoted = name.replace('"', '""')
    columns, rows = catalog.run(f'SELECT x."{quoted}" FROM (SELECT 1::oid AS "{quoted}") AS x', FACTS)
    assert (columns[0].name, rows) == (name, [(1,)])
    hostile = ConnectionFacts(name, name, 1, {name: name})
    assert catalog.run("SELECT current_user, current_database()", hostile)[1] == [(name, name)]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE r(n) AS (SELECT 1::oid UNION ALL SELECT n FROM r) SELECT count(*) FROM r",
        "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d WHERE a.attlen + b.attlen * c.attlen = d.attlen + 7",
        "SELECT string_agg(a.attname || b.attname, '') FROM pg_attribute a, pg_attribute b, pg_attribute c",
        "SELECT array_agg(a.oid) FROM pg_class a, pg_proc b, pg_attribute c",
        "SELECT a.* FROM pg_attribute a, pg_attribute b",
        "SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000000000) b",
    ],
)
def test_work_without_end_is_ended(catalog: SystemCatalog, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_catalog, "_SECONDS", 0.3)
    with pytest.raises(CatalogRefusal) as refused:
        catalog.run(sql, FACTS)
    assert refused.value.sqlstate in ("54000", "0A000")  # 0A000: out of memory
    assert catalog.run("SELECT count(*) FROM pg_am", FACTS)[1] == [(7,)]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {'(' * 5000}1{')' * 5000} FROM pg_class",
        f"SELECT {'NOT ' * 5000}true FROM pg_class",
        f"SELECT {'- ' * 5000}1 FROM pg_class",
        f"SELECT {'1 + ' * 10_000}1 FROM pg_class",
        f"SELECT 1{'::text' * 5000} FROM pg_class",
        f"SELECT oid{'::regclass::text' * 60} FROM pg_class",
        f"{'SELECT * FROM (' * 300}SELECT 1{')' * 300}",
        f"SELECT 1 FROM pg_class {'UNION SELECT 1 ' * 3000}",
        f"SELECT {'CASE WHEN true THEN ' * 300} 1 {'END ' * 300} FROM pg_class",
        f"SELECT '{'x' * 70_000}' FROM pg_class",
    ],
)
def test_a_monstrous_text_is_refused(catalog: SystemCatalog, sql: str) -> None:
    with pytest.raises(Refusal):
        catalog.run(sql, FACTS)


def test_an_engine_that_broke_is_replaced() -> None:
    opened = open_catalog(campus())
    opened._database.close()
    with pytest.raises(CatalogRefusal):
        opened.run("SELECT count(*) FROM pg_am", FACTS)
    assert opened.run("SELECT count(*) FROM pg_am", FACTS)[1] == [(7,)]
    opened.close()
    with pytest.raises(CatalogRefusal):
        opened.run("SELECT count(*) FROM pg_opclass", FACTS)


def test_interrupt_ends_what_runs(catalog: SystemCatalog) -> None:
    slow = "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c WHERE a.attlen + b.attlen = c.attlen + 9"
    ended: list[Exception] = []

    def run() -> None:
        try:
            catalog.run(slow, ConnectionFacts("ann", "campus", 42, {}))
        except EngineFailure as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive() and not ended:
        catalog.interrupt(42)
        catalog.interrupt(43)
        time.sleep(0.02)
    thread.join()
    assert [error.sqlstate for error in ended if isinstance(error, EngineFailure)] == ["57014"]
    assert catalog.run("SELECT current_user", FACTS)[1] == [("ann",)]


def test_a_text_is_looked_through_for_every_word_of_the_catalogs_and_for_no_part_of_one() -> None:
    known = system_catalog._KNOWN - {"["}
    assert {"oid", "char", "information_schema", "has_table_privilege", "current_database"} <= known
    for word in (*known, "pg_x"):
        for text in (word, word.upper(), f'"{word}"', f"1+{word}(", f".{word}.", f"'{word}'"):
            assert system_catalog._has_words(f"SELECT {text}"), text
        for text in (f"xpg_{word}", f"1{word}", f"ä{word}", f"x_{word}"):
            assert not system_catalog._has_words(f"SELECT {text}") or text in known, text
    assert system_catalog._has_words("SELECT a[1]")
    assert not system_catalog._has_words("SELECT COUNT(*) FROM person WHERE age < 5")
