"""Members of people's JSON: no content makes one fail, on any engine, and none tells that it is there (soundness.md
1.11, 1.17)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest

from dpsql import Session
from dpsql.backends import Backend, DuckDBBackend, PostgresBackend
from dpsql.budget import Caps, open_store
from dpsql.engine.dataset import Dataset
from dpsql.errors import EngineFailure, Position, Refusal, Unverified
from dpsql.mechanisms import ATTO, NANO
from dpsql.plan.backend_sql import private_numbers
from dpsql.plan.dialects import Dialect, dialect_of, dialect_postgres
from dpsql.plan.dialects.dialect_duckdb import DUCKDB, DuckDBDialect
from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.policy import parse_policy
from dpsql.postprocess import SealedEngine
from dpsql.release import verifying
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import empty_duckdb
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import READER, let_read

POLICY = """
database = "duckdb:log.duckdb"
[privacy]
epsilon = 100
delta = 1e-4
neighbours = "add-remove"
[defaults]
epsilon = 1
max_epsilon = 10
delta = 1e-6
[tables.kinds]
public = true
[tables.kinds.columns]
kind = {}
about = {}
[tables.log]
unit = "person"
max_rows = 80
[tables.log.columns]
row_id = {}
doc = {}
"doc.n" = { bounds = [0, 100] }
"doc.k" = { values = ["x", "y"] }
"doc.m.k" = { values = ["x", { null = true }] }
"""
TABLES = """
CREATE TABLE kinds (kind text PRIMARY KEY, about jsonb);
CREATE TABLE log (row_id integer PRIMARY KEY, person integer NOT NULL, doc jsonb);
INSERT INTO log SELECT n, n % 9999, CAST(CASE WHEN n < 5000 THEN '{"a": "x"}' ELSE '{"a": "y"}' END AS jsonb)
FROM generate_series(1, 10000) AS g(n);
"""
SMALL = "{" + ", ".join(f'"k{i}": {i}' for i in range(200)) + "}"
DOCS = (
    None, "null", "7", '"a"', "[]", "{}", "[1, 2]", '["a"]', '{"a": "x"}', '{"a": null}', '{"a": {"b": "y"}}', '{"a": ["b"]}',
    '{"a": "\\u00e9\\ud83d\\ude42"}', '{"a": "' + "z" * 6_000 + '"}', '{"a": "\\\\\\""}', '{"A": "x"}', '{"a b-c_1": "x"}',
    '{"a": ' + "[" * 400 + "]" * 400 + "}", '{"a": true}', '{"a": -12}', '{"": "x"}', '{"a.b": 1}', '{"$": 1}', SMALL,
    '{"a": "%"}', '{"a": " x "}', '{"a": ""}',
)  # fmt: skip
"""What both engines take as JSON, and have the same texts of, but for blanks and spelled numbers."""
SWELLING = (
    '{"a": [' + ", ".join(["1e131000"] * 10_000) + "]}", '{"a": {"b": [' + ", ".join(["1e-16000"] * 70_000) + "]}}",
    '{"a": ' + "[" * 14_000 + "]" * 14_000 + "}", '{"a": 1e131000}', '{"a": ["' + "\\u0001" * 2_000_000 + '"]}',
)  # fmt: skip
"""Of the first two Postgres keeps a hundredth of a MB, or one, and writes more than the GB that a text may have."""
NUMERALS = (
    "12", "+3", "-4", " 7 ", "  007", "-0", "", " ", "-", "+", "1 2", "12.5", "12.50", ".5", "5.", "-0.25", "+1.5 ", "1e5", "1E2",
    "0x1F", "0b1", "1_000", "1,5", "NaN", "Infinity", "-inf", "\u0663", "\u00bd", "\uff11", "\u00a07", "7\n", "\t7", "7\u200b",
    "2147483647", "2147483648", "-2147483648", "32768", "9" * 15, "9" * 16, "9" * 18, "9" * 19, "-" + "9" * 18, "9" * 999,
    "9" * 16 + ".5", "1." + "9" * 15, "1." + "9" * 16, "--1", "+-1", "1-", "true", "null", "x12", "12x", " " * 990 + "1",
    " " * 1_000 + "1", "1" + " " * 5_000,
)  # fmt: skip
"""Texts that are numbers, and that some engine's cast takes or fails on."""
WITH_NUMERALS = (
    *(json.dumps({"n": one}) for one in NUMERALS), '{"n": 12}', '{"n": -5}', '{"n": 250}', '{"n": 1.25}', '{"n": null}',
    '{"n": true}', '{"n": {"n": 1}}', '{"n": [1]}', '{"k": "x"}', '{"k": "z"}', '{"k": null}', '{"m": {"k": "x"}}',
    '{"m": {"k": "y"}}', '["n"]', '"n"',
)  # fmt: skip
NO_JSON = (
    "", "{", '{"a"', '{"a":}', '{"a": "\\ud800"}', '{"a": "\\u0000"}', "NaN", '{"a": NaN}', "[1,]", '{"a":1,}', "nul", "'",
    '{"a": 1} x', "\ufeff{}", '{"a": 1e999}', '{"a": ' + "9" * 999 + "}", "{" * 9_000, '{"a":' * 9_000 + "1" + "}" * 9_000,
    "/* */ {}", '{"a": "\x01"}', '{a: 1}', "\\", '{"a": "\\x"}', '{"a":1,"a":2}', '{"a": 0x1}', "-", '{"a": --1}',
)  # fmt: skip
"""What a file may hold under the type, or as a number that has no other spelling."""
KEYS = (["a"], ["a", "b"], ["a b-c_1"], ["k7"], ["A"])


@pytest.fixture
def asked(engine: PostgresServer | None, tmp_path: Path) -> Iterator[tuple[Session, Session]]:
    """Sessions over neighbours: the second has a person more, whose rows are as bad as JSON can be."""
    bad = [(number, 99_999, doc) for number, doc in enumerate((*DOCS, *SWELLING), 50_000)]
    with ExitStack() as stack:
        without = _session(stack, engine, tmp_path, "without", bad[:1])
        yield without, _session(stack, engine, tmp_path, "with", bad)


def _session(
    stack: ExitStack,
    engine: PostgresServer | None,
    tmp_path: Path,
    name: str,
    rows: Sequence[tuple[int, int, str | None]],
) -> Session:
    policy = parse_policy(POLICY, tmp_path / "policy.toml")
    backend: Backend
    if engine is None:
        connection = stack.enter_context(empty_duckdb())
        connection.execute(TABLES.replace("jsonb", "json"))
        connection.executemany("INSERT INTO log VALUES (?, ?, ?)", rows)
        backend = DuckDBBackend.over(connection)
    else:
        database = engine.create_database()
        stack.callback(engine.drop_database, database)
        owner = stack.enter_context(engine.admin(database))
        owner.execute(TABLES.encode())
        owner.cursor().executemany("INSERT INTO log VALUES (%s, %s, %s)", rows)
        let_read(owner, "public")
        backend = PostgresBackend(engine.url(database, READER), policy.read_from)
        stack.callback(backend.close_idle)
    sealed = SealedEngine()
    stack.callback(sealed.close)
    caps = Caps(100 * NANO, int(1e-4 * ATTO), {})
    path = tmp_path / f"{name}.db"
    store = open_store(f"sqlite:{path}", policy.dataset_id, caps, create=True, log=path)
    stack.callback(store.close)
    return Session(Dataset(policy, backend, store, sealed), "analyst", _noise=ZeroNoise())


ASKED = (
    "SELECT count(*) FROM log WHERE doc->>'a' = 'x'",
    "SELECT count(doc->>'a') FROM log",
    "SELECT count(DISTINCT doc->'a'->>'b') FROM log",
    "SELECT count(*) FROM log WHERE lower(doc #>> '{a,b}') LIKE '%y%' OR doc->>'a b-c_1' IS NULL",
    "SELECT sum(length(doc->>'a')) FROM log",
    "SELECT count(*) FROM (SELECT person, min(doc->>'a') AS a, count(DISTINCT doc->>'k7') AS n FROM log GROUP BY person) p "
    "WHERE a <> 'x' OR n > 0",
    "SELECT doc->>'a' AS a, count(*) FROM log GROUP BY a",
)  # fmt: skip


def test_a_person_with_bad_json_only_counts(asked: tuple[Session, Session]) -> None:
    for sql in ASKED:
        without, beside = (session.execute(sql).rows for session in asked)
        if "GROUP BY a" in sql:  # found groups: those that are the person's alone stay hidden
            assert {row[0] for row in without} == {row[0] for row in beside} == {"x", "y"}
            continue
        most = len(DOCS) + len(SWELLING)
        most = most * 1_000 if "sum" in sql else most
        assert 0 <= beside[0][0] - without[0][0] <= most


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT count(*) FROM log WHERE doc->>0 = 'a'", "constant key"),
        ("SELECT count(*) FROM log WHERE doc->>'a\"b' = 'a'", "constant key"),
        ("SELECT count(*) FROM log WHERE doc->>'12' = 'a'", "constant key"),
        ("SELECT count(*) FROM log WHERE doc #>> '{a,0}' = 'a'", "constant key"),
        ("SELECT count(p->>'a') FROM (SELECT *, doc AS p, row_number() OVER (PARTITION BY person ORDER BY row_id) AS n "
         "FROM log) t WHERE n = 1", "table's own column"),
        ("SELECT about->>'a' FROM kinds", "cannot be answered"),
        ("SELECT count(*) FROM kinds WHERE about->>'a' = 'x'", "cannot be answered"),
        ("SELECT count(*) FROM log WHERE (doc->'a') IS NULL", "private rows"),
    ],
)  # fmt: skip
def test_what_is_no_member_is_refused(asked: tuple[Session, Session], sql: str, says: str) -> None:
    with pytest.raises(Refusal, match=says) as raised:
        asked[0].execute(sql)
    assert raised.value.hint


def _read(text: str | None, pattern: str) -> float | None:
    """What a text is read as: the reference, over what is carried of it."""
    found = None if text is None else re.fullmatch(f" *({pattern}) *", text[:1_000], re.ASCII)
    return None if found is None else float(found[1])


def _numerals() -> list[str | None]:
    found: list[str | None] = []
    for doc in WITH_NUMERALS:
        whole = json.loads(doc)
        if isinstance(whole, dict) and "n" in whole:
            one = whole["n"]
            found.append(one if one is None or isinstance(one, str) else json.dumps(one))
    return found


WHOLE, REAL = r"[-+]?\d{1,18}", r"[-+]?\d{1,15}(?:\.\d{1,15})?"


def test_a_text_is_read_as_a_number_or_is_null(numerals: Session) -> None:
    texts = _numerals()
    whole, real = ([_read(text, pattern) for text in texts] for pattern in (WHOLE, REAL))
    wholes, reals = ([one for one in found if one is not None] for found in (whole, real))

    def asked(sql: str) -> float:
        ((value,),) = numerals.execute(sql).rows
        return float(value)

    for type_, bits in (("smallint", 15), ("integer", 31), ("bigint", 63)):
        # what has no place in the type is none; between declared bounds it is one: the nearer end
        assert asked(f"SELECT count((doc->>'n')::{type_}) FROM log") == len(wholes), type_
        read = [one for one in wholes if -(2**bits) < one < 2**bits]
        assert asked(f"SELECT count((doc->'n'->>'n')::{type_}) FROM log") == 1, read
    for type_ in ("numeric", "double precision"):
        assert asked(f"SELECT count((doc->>'n')::{type_}) FROM log") == len(reals), type_
    inside = [min(max(one, 0), 100) for one in wholes]
    assert asked("SELECT sum((doc->>'n')::integer) FROM log") == sum(inside)
    assert asked("SELECT sum((doc->>'n')::numeric) FROM log") == pytest.approx(
        sum(min(max(one, 0), 100) for one in reals), rel=1e-6
    )
    assert asked("SELECT max((doc->>'n')::integer) FROM log WHERE (doc->>'n')::integer < 50") <= 50
    assert asked("SELECT count(*) FROM log WHERE doc ? 'n'") == len(texts)
    assert asked("SELECT count(*) FROM log WHERE doc -> 'n' ? 'n'") == 1
    assert numerals.execute("SELECT doc->>'k' AS k, count(*) FROM log GROUP BY k").rows == [
        ("x", 1),
        ("y", 0),
    ]
    for sql, count in (
        ("SELECT count(*) FROM log WHERE doc->>'k' = 'x'", 1),
        ("SELECT count(upper(doc->>'k')) FROM log", 1),
        ("SELECT count(*) FROM log WHERE doc->>'k' IS NULL", 10_000 + len(WITH_NUMERALS) - 1),
    ):
        assert asked(sql) == count, sql  # 'z' is declared to be none
    rows = numerals.execute("SELECT doc->'m'->>'k' AS k, count(*) FROM log GROUP BY k").rows
    assert dict(rows) == {"x": 1, None: 10_000 + len(WITH_NUMERALS) - 1}


@pytest.mark.parametrize("pattern", ["^(.*)$", "^ *([-+]?[0-9]{1,30}) *$", "^ *([-+]?[0-9]{0,18}) *$"])
def test_no_other_text_is_cast(numerals: Session, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    sql = "SELECT {}((doc->>'n')::integer) FROM log WHERE doc ? 'n'"
    monkeypatch.setattr(private_numbers, "WHOLE", pattern)
    with pytest.raises(Unverified):
        numerals.execute(sql.format("count"))
    monkeypatch.setattr(verifying, "verify", lambda *_: ())
    with pytest.raises(EngineFailure):
        numerals.execute(sql.format("sum"))


@pytest.fixture
def numerals(engine: PostgresServer | None, tmp_path: Path) -> Iterator[Session]:
    """A session over one person's rows of each."""
    rows = [(number, 99_999, doc) for number, doc in enumerate(WITH_NUMERALS, 50_000)]
    with ExitStack() as stack:
        yield _session(stack, engine, tmp_path, "numerals", rows)


def _printed(dialect: Dialect, keys: list[str], column: str) -> str:
    return dialect.cut(dialect.as_text(dialect.json_member(column, keys, None)), 1000)


@pytest.mark.parametrize("keys", KEYS, ids=".".join)
def test_both_engines_find_the_same_members(postgres: PostgresServer, keys: list[str]) -> None:
    here, there = (dialect_of(name, "pg_c_utf8") for name in ("duckdb", "postgres"))
    with postgres.admin("postgres") as connection, empty_duckdb() as db:
        for doc in DOCS:
            text = "NULL" if doc is None else there.text_literal(doc)
            (one,) = (
                connection.execute(
                    f"SELECT {_printed(there, keys, f'CAST({text} AS jsonb)')}".encode()
                ).fetchone()
                or ()
            )
            (other,) = db.execute(f"SELECT {_printed(here, keys, '$1')}", [doc]).fetchone() or ()
            if one is None or other is None:
                assert one == other, doc
            else:
                assert one.replace(" ", "")[:400] == other.replace(" ", "")[:400]


def _over_bad_texts(dialect: Dialect) -> list[str | None]:
    with empty_duckdb() as db:
        db.execute("CREATE TABLE t (doc VARCHAR)")
        insert(db, "t", [(doc,) for doc in (*NO_JSON, *DOCS)])
        shown = _printed(dialect, ["a"], "doc")
        kept = db.execute(
            f"SELECT {shown} FROM t WHERE {shown} IS NOT NULL OR length({shown}) > 3"
        ).fetchall()
        grouped = db.execute(
            f"SELECT {shown}, count(*) FROM t GROUP BY 1 HAVING count({shown}) > 0"
        ).fetchall()
    assert {one for (one,) in kept} == {one for one, _ in grouped}
    return [one for (one,) in kept]


def test_what_is_no_json_has_no_member() -> None:
    assert all(one is None or len(one) <= 1_000 for one in _over_bad_texts(DUCKDB))


class _Unguarded(DuckDBDialect):
    """The fault: a member of the column as it stands."""

    def json_member(self, shown: str, keys: object, position: object) -> str:
        return f"json_extract_string({shown}, '$.\"a\"')"


def test_without_its_guard_a_row_makes_it_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDBDialect, "json_member", _Unguarded.json_member)
    with pytest.raises(duckdb.Error, match="JSON"):
        _over_bad_texts(DUCKDB)


def _unmeasured(self: PostgresDialect, shown: str, keys: Sequence[str], position: Position | None) -> str:
    """The fault: a member is written out, however long."""
    return f"jsonb_object_field_text({shown}, '{keys[0]}')"


def test_a_member_that_is_written_out_is_short(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT count(*) FROM log WHERE doc->>'a' = 'x'"
    with ExitStack() as stack:
        session = _session(stack, postgres, tmp_path, "swelling", [(50_000, 99_999, SWELLING[0])])
        with monkeypatch.context() as planted:
            planted.setattr(dialect_postgres, "MAX_TEXT", 2**20)  # more than is verified
            with pytest.raises(Unverified):
                session.execute(sql)
        monkeypatch.setattr(PostgresDialect, "json_member", _unmeasured)
        with pytest.raises(Unverified):
            session.execute(sql)
        monkeypatch.setattr(verifying, "verify", lambda *_: ())
        with pytest.raises(EngineFailure):
            session.execute(sql.replace("'x'", "'y'"))


def test_spark_has_no_member() -> None:
    with pytest.raises(Refusal, match="not answered on spark"):
        dialect_of("spark", None).json_member("doc", ["a"], None)
