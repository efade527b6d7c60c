"""Public tables: the owner's engine answers what reads them alone, and only what is used goes on to the sealed one."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.engine import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import EngineFailure, Refusal
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.policy import parse_policy
from dpsql.postprocess import SealedEngine
from dpsql.postprocess.print_public import PublicPrinter
from dpsql.postprocess.rows import encode_fetched
from dpsql.relation.relations import Scan
from dpsql.relation.types import BIGINT, NUMERIC, TEXT
from dpsql.release import post_processing
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import some

POLICY = """
database = "duckdb:shop.duckdb"
ledger = "sqlite:{folder}/shop.db"
[privacy]
epsilon = 1000
delta = 1e-3
[tables.person]
unit = "id"
[tables.person.columns]
city = {{ values = [1, 2, {{ null = true }}] }}
age = {{ bounds = [0, 120] }}
[tables.city]
public = true
[tables.country]
public = true
[tables.odd]
public = true
"""

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, city INTEGER, age INTEGER);
INSERT INTO person VALUES (1, 1, 30), (2, 1, 50), (3, 2, 20), (4, 2, 20), (5, NULL, 90);
CREATE TABLE city (id INTEGER PRIMARY KEY, country INTEGER, name VARCHAR, size DECIMAL(9,2), founded DATE, code UUID);
INSERT INTO city VALUES
    (1, 1, 'Ulm', 126.30, DATE '0854-07-22', uuid()), (2, 1, 'Bonn', NULL, NULL, uuid()),
    (3, 2, NULL, 7.05, DATE '1900-01-01', uuid()), (4, NULL, 'Nowhere', -1.5, DATE '2000-02-29', NULL);
CREATE TABLE country (id INTEGER, label VARCHAR);
INSERT INTO country VALUES (1, 'DE'), (2, 'FR'), (2, 'FX');
CREATE TYPE mood AS ENUM ('sad', 'glad', 'bad');
CREATE TABLE odd (
    tiny TINYINT, small SMALLINT, whole INTEGER, big BIGINT, unsigned UBIGINT, huge HUGEINT, fine DECIMAL(38,10),
    real FLOAT, double DOUBLE, flag BOOLEAN, word VARCHAR, mood mood, day DATE, moment TIMESTAMP, span INTERVAL,
    token UUID);
INSERT INTO odd VALUES
    (0, 0, 0, 0, 0, 0, 0, 0, 0, false, '', 'sad', DATE '2020-01-31', TIMESTAMP '2020-01-31 12:00:00', INTERVAL 1 DAY,
     uuid()),
    (-128, -32768, -2147483648, -9223372036854775808, 18446744073709551615,
     170141183460469231731687303715884105727, 9999999999999999999999999999.9999999999, 'nan', 'inf', true, 'ß%_\\',
     'bad', DATE 'infinity', TIMESTAMP 'infinity', NULL, NULL),
    (127, 32767, 2147483647, 9223372036854775807, 1, -170141183460469231731687303715884105727,
     -9999999999999999999999999999.9999999999, 3.4e38, 1.7e308, NULL, NULL, NULL, DATE '5877642-06-25 (BC)',
     TIMESTAMP '294000-01-01', NULL, NULL),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, '-inf', -1.7e308, NULL, '12', 'glad', DATE '200000-01-01',
     TIMESTAMP '0044-03-15 (BC) 00:00:00', NULL, NULL);
"""


class Seen:
    """A snapshot that notes what it is asked."""

    def __init__(self, inner: Any, asked: list[str]) -> None:
        self._inner, self._asked = inner, asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def run(self, sql: str, *asked: Any, **how: Any) -> Any:
        self._asked.append(sql)
        return self._inner.run(sql, *asked, **how)

    def columns(self, sql: str) -> Any:
        self._asked.append(sql)
        return self._inner.columns(sql)


@dataclass
class Watched:
    """A backend that notes what its snapshots are asked."""

    inner: DuckDBBackend
    asked: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[Seen]:
        with self.inner.snapshot(owner) as snapshot:
            yield Seen(snapshot, self.asked)


@dataclass
class Shop:
    session: Session
    connection: duckdb.DuckDBPyConnection
    asked: list[str]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.session.execute(sql).rows

    def exact(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.cursor().execute(sql).fetchall()

    def compiled(self, sql: str) -> post_processing.Compiled:
        return self.session.explain(sql).compiled


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    policy = parse_policy(POLICY.format(folder=tmp_path), tmp_path / "shop.toml")
    with duckdb.connect() as connection:
        connection.execute(SCHEMA)
        backend = Watched(DuckDBBackend.over(connection))
        store = open_ledger(policy, create=True)
        dataset = Dataset(policy, backend, store)  # type: ignore[arg-type]
        with Session(dataset, _noise=ZeroNoise()) as session:
            yield Shop(session, connection, backend.asked)


def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows with numbers as rounded doubles, in one order."""
    shown = [
        tuple(
            round(float(v), 9) if isinstance(v, (int, float, Decimal)) and not isinstance(v, bool) else v
            for v in row
        )
        for row in rows
    ]
    return sorted(shown, key=repr)


# --- public alone -----------------------------------------------------------------------------------------

PUBLIC = (
    "SELECT id, name, size FROM city ORDER BY size DESC, id",
    "SELECT country, COUNT(*) AS n, SUM(size) AS s, MIN(founded) AS f FROM city GROUP BY country ORDER BY country",
    "SELECT c.name, l.label FROM city c LEFT JOIN country l ON c.country = l.id ORDER BY 1, 2",
    "SELECT name FROM city WHERE size > (SELECT AVG(size) FROM city) ORDER BY name",
    "SELECT id, RANK() OVER (PARTITION BY country ORDER BY size) AS r, SUM(size) OVER (ORDER BY id) AS s FROM city ORDER BY id",
    "SELECT country FROM city UNION SELECT id FROM country ORDER BY 1",
    "SELECT DISTINCT country FROM city ORDER BY 1 LIMIT 2 OFFSET 1",
    "SELECT COUNT(*) FROM city, country",
    "SELECT SUM(DISTINCT country), COUNT(DISTINCT country), AVG(id) FROM city",
    "SELECT MAX(size) AS m FROM city WHERE name LIKE '%n%'",
    "SELECT name FROM city c WHERE id NOT IN (SELECT country FROM city WHERE country > 1) ORDER BY name",
    "SELECT c.name FROM city c WHERE EXISTS (SELECT 1 FROM country l WHERE l.id = c.country AND l.label < 'F') ORDER BY 1",
    "SELECT name FROM city c WHERE size >= (SELECT MAX(d.size) FROM city d WHERE d.country = c.country) ORDER BY name",
    "SELECT country, id, COUNT(*) FROM city GROUP BY ROLLUP (country, id) ORDER BY 1, 2, 3",
)


@pytest.mark.parametrize("sql", PUBLIC)
def test_public_statements_are_answered_by_the_owners_engine(
    shop: Shop, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the sealed engine was asked")

    monkeypatch.setattr(SealedEngine, "run", never)
    found = shop.rows(sql)
    assert len(shop.asked) == 1
    assert plain(found) == plain(shop.exact(sql))
    if "ORDER BY" in sql:
        expected = shop.exact(sql.replace(" DESC", " DESC NULLS FIRST"))
        assert [row[0] for row in found] == [row[0] for row in expected]
    assert shop.session.budget().epsilon_spent_nano == 0


def test_decimals_are_added_without_a_rest(shop: Shop) -> None:
    shop.connection.execute("CREATE OR REPLACE TABLE country AS SELECT 1 AS id, 'x' AS label WHERE false")
    shop.connection.execute("DELETE FROM city")
    shop.connection.execute(
        "INSERT INTO city SELECT i, i % 3, 'n', (i % 1000) / 100, NULL, NULL FROM range(100000) AS r(i)"
    )
    sql = "SELECT country, SUM(size * 3) AS s FROM city GROUP BY country ORDER BY country"
    assert shop.rows(sql) == shop.exact(sql)


def test_an_answer_is_of_now(shop: Shop) -> None:
    assert shop.rows("SELECT COUNT(*) FROM country") == [(3,)]
    shop.connection.execute("INSERT INTO country VALUES (9, 'X')")
    assert shop.rows("SELECT COUNT(*) FROM country") == [(4,)]


def test_nothing_is_made_in_the_database(shop: Shop) -> None:
    before = shop.exact("SELECT table_name FROM duckdb_tables() ORDER BY 1")
    for sql in (*PUBLIC, *MIXED):
        shop.rows(sql)
    assert shop.exact("SELECT table_name FROM duckdb_tables() ORDER BY 1") == before


def test_constants_need_no_database(shop: Shop) -> None:
    assert shop.rows("SELECT 1 + 1, 7 / 2") == [(2, 3)]
    assert shop.asked == []


# --- whatever the rows hold -----------------------------------------------------------------------------

_NUMBERS = ("tiny", "small", "whole", "big", "unsigned", "huge", "fine", "real", "double")


@pytest.mark.parametrize("number", some(_NUMBERS, 4))
def test_arithmetic_never_raises(shop: Shop, number: str) -> None:
    others = ("whole", "big", "fine", "double")
    items = [f"{number} {sign} {other}" for sign in "+-*/" for other in others]
    items += [] if number in ("real", "double") else [f"{number} % whole", f"{number} % big", f"{number} % 0"]
    items += [
        f"- {number}",
        f"abs({number})",
        f"{number} / 0",
        f"round({number})",
        f"sign({number})",
    ]
    items += [f"CAST({number} AS {t})" for t in ("SMALLINT", "BIGINT", "NUMERIC(9,2)", "REAL", "TEXT")]
    items += [f"{number} * {number} * {number} * {number} * {number}", f"sqrt({number})", f"ln({number})"]
    for item in items:
        for value in (value for (value,) in shop.rows(f"SELECT {item} AS v FROM odd")):
            assert not isinstance(value, float) or math.isfinite(value), item
    for function in ("SUM", "AVG", "MIN", "MAX", "STDDEV", "VAR_POP", "SUM(DISTINCT", "AVG(DISTINCT"):
        call = f"{function} {number})" if "(" in function else f"{function}({number})"
        shop.rows(f"SELECT {call} AS v FROM odd")
        shop.rows(f"SELECT flag, {call} AS v FROM odd GROUP BY flag")
    shop.rows(f"SELECT SUM({number}) OVER (ORDER BY word), LAG({number}) OVER (ORDER BY word) FROM odd")


@pytest.mark.parametrize("moment", ["day", "moment"])
def test_moments_never_raise(shop: Shop, moment: str) -> None:
    items = [f"extract({f} FROM {moment})" for f in ("year", "month", "dow", "minute", "isoyear", "week")]
    items += [f"date_trunc('{f}', {moment})" for f in ("year", "week", "day")]
    items += [f"{moment} + INTERVAL '1 month'", f"{moment} - INTERVAL '9000 year'", f"CAST({moment} AS DATE)"]
    items += [f"CAST({moment} AS TIMESTAMP)", f"CAST({moment} AS TEXT)"]
    items += ["day + whole", "day - whole", "day - DATE '1970-01-01'"] if moment == "day" else []
    for item in items:
        shop.rows(f"SELECT {item} AS v FROM odd")
    assert [type(v) for (v,) in shop.rows(f"SELECT {moment} AS v FROM odd ORDER BY 1")] == [
        date if moment == "day" else datetime,
        *[type(None)] * 3,
    ]


def test_text_and_enums(shop: Shop) -> None:
    rows = shop.rows("SELECT mood, mood || 'x' AS m, mood < 'c' AS c FROM odd ORDER BY mood")
    assert rows == [
        ("bad", "badx", True),
        ("glad", "gladx", False),
        ("sad", "sadx", False),
        (None, None, None),
    ]
    shop.rows(
        "SELECT word LIKE '%!_' ESCAPE '!', substring(word, -1, 3), CAST(word AS INTEGER), left(word, -2) FROM odd"
    )
    assert shop.rows("SELECT MAX(CAST(word AS INTEGER)) FROM odd") == [(12,)]


def test_a_column_that_cannot_be_carried_is_refused_when_it_is_read(shop: Shop) -> None:
    assert shop.rows("SELECT name FROM (SELECT * FROM city) AS c WHERE id = 1") == [("Ulm",)]
    shop.asked.clear()
    for sql in ("SELECT code FROM city", "SELECT * FROM city", "SELECT span FROM odd", "SELECT COUNT(token) FROM odd",
                "SELECT 1 FROM city WHERE code IS NULL", "SELECT (SELECT MAX(code) FROM city)"):  # fmt: skip
        with pytest.raises(Refusal) as refused:
            shop.rows(sql)
        assert refused.value.sqlstate in ("0A000", "42883"), sql
    assert shop.asked == []


# --- beside releases ------------------------------------------------------------------------------------

_BY_CITY = "(SELECT city, COUNT(*) AS n, SUM(age) AS years FROM person GROUP BY city) AS p"
MIXED = (
    f"SELECT c.name, p.n FROM {_BY_CITY} JOIN city c ON c.id = p.city",
    f"SELECT c.name, p.n FROM city c LEFT JOIN {_BY_CITY} ON c.id = p.city",
    f"SELECT c.name, c.founded, c.size, p.n FROM {_BY_CITY} LEFT JOIN city c ON c.id = p.city AND c.size > 0",
    f"SELECT c.name, p.n FROM city c FULL JOIN {_BY_CITY} ON c.id = p.city AND c.size > 100",
    f"SELECT c.name, p.n FROM {_BY_CITY} RIGHT JOIN city c ON c.id = p.city AND p.n > 1",
    f"SELECT l.label, p.n FROM {_BY_CITY}, city c, country l WHERE c.id = p.city AND l.id = c.country AND c.size > 1",
    f"SELECT l.label, p.n FROM city c, country l, {_BY_CITY} WHERE c.id = p.city AND l.id = c.country AND l.label <> 'FX'",
    f"SELECT l.label, p.n FROM city c, country l, {_BY_CITY} WHERE c.id = p.city AND l.id = p.city",
    f"SELECT COUNT(*) FROM {_BY_CITY} CROSS JOIN country l",
    f"SELECT p.city, p.n FROM {_BY_CITY} WHERE p.n > (SELECT COUNT(*) FROM country WHERE label = 'DE')",
    f"SELECT name FROM city WHERE size > (SELECT MAX(n) FROM {_BY_CITY}) AND id < 3",
    f"SELECT c.country, SUM(p.n), SUM(c.size) FROM {_BY_CITY} JOIN city c ON c.id = p.city GROUP BY c.country",
    f"SELECT c.name, SUM(p.n) OVER (ORDER BY c.id) FROM {_BY_CITY} JOIN city c ON c.id = p.city",
    f"SELECT p.city FROM {_BY_CITY} UNION ALL SELECT country FROM city WHERE id > 1",
    f"SELECT p.city FROM {_BY_CITY} EXCEPT SELECT country FROM city",
    f"SELECT DISTINCT c.country FROM {_BY_CITY} JOIN city c ON c.id = p.city",
    f"WITH big AS (SELECT id, name FROM city WHERE size > 1) SELECT a.name, b.id FROM {_BY_CITY} JOIN big a ON a.id = p.city"
    " JOIN big b ON b.id = p.n",
    f"SELECT p.city FROM {_BY_CITY} WHERE p.city IN (SELECT id FROM city WHERE size > 0)",
    f"SELECT p.city FROM {_BY_CITY} WHERE NOT EXISTS (SELECT 1 FROM city c WHERE c.id = p.city AND c.size > 0)",
    f"SELECT c.name FROM city c WHERE c.id IN (SELECT p.city FROM {_BY_CITY})"
    " AND EXISTS (SELECT 1 FROM country l WHERE l.id = c.country AND l.label = 'DE')",
    f"SELECT c.name FROM city c WHERE c.size > (SELECT SUM(p.n) FROM {_BY_CITY} WHERE p.city = c.id)",
    f"SELECT p.city FROM {_BY_CITY} WHERE p.n <= (SELECT COUNT(*) FROM country l, city c WHERE l.id = c.country AND c.id = p.city)",
    f"SELECT o.word, o.flag, o.day, o.big FROM {_BY_CITY} JOIN odd o ON o.whole = p.n - 2",
)  # fmt: skip


@pytest.mark.parametrize("sql", MIXED)
def test_releases_meet_public_tables(shop: Shop, sql: str) -> None:
    assert plain(shop.rows(sql)) == plain(shop.exact(sql))
    shop.session.execute("SET dpsql.reuse = off")
    assert plain(shop.rows(sql)) == plain(shop.exact(sql))  # this way the query is checked before the charge


def parts(shop: Shop, sql: str) -> list[tuple[tuple[str, ...], list[str]]]:
    return [(part.tables, [name for name, _ in part.columns]) for part in shop.compiled(sql).parts]


def test_only_what_is_used_is_fetched(shop: Shop) -> None:
    assert parts(shop, MIXED[0]) == [(("t_city",), ["c0", "c2"])]
    assert parts(shop, MIXED[5]) == [(("t_city",), ["c0", "c1"]), (("t_country",), ["c0", "c1"])]
    assert parts(shop, MIXED[6]) == [(("t_city", "t_country"), ["c0", "c7"])]
    assert parts(shop, MIXED[7]) == [(("t_city",), ["c0"]), (("t_country",), ["c0", "c1"])]
    assert parts(shop, MIXED[8]) == [(("t_country",), ["one"])]
    assert parts(shop, MIXED[16]) == [(("t_city",), ["c0", "c1"])]


def test_filters_go_down_with_the_part(shop: Shop) -> None:
    marked = parts(shop, MIXED[17])
    assert marked == [(("t_city",), ["c0"])]
    for index, words in ((2, ["> "]), (5, ["> "]), (6, ["<>", " = "]), (10, ["< "])):
        asked = " ".join(part.sql for part in shop.compiled(MIXED[index]).parts)
        assert all(word in asked for word in words), asked


def test_a_part_that_is_too_large_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_processing, "MAX_PUBLIC_ROWS", 3)
    assert len(shop.rows("SELECT id FROM country")) == 3
    assert len(shop.rows(MIXED[10])) == 1
    for sql in ("SELECT id FROM city", MIXED[0]):
        with pytest.raises(Refusal) as refused:
            shop.rows(sql)
        assert refused.value.sqlstate == "54001"
    assert '"city"' in refused.value.message


def test_what_the_engine_cannot_bind_fails_before_the_charge(shop: Shop) -> None:
    explained = shop.session.explain(MIXED[0])
    compiled, engine = explained.compiled, SealedEngine()
    post_processing.check_public(compiled, explained.plan.releases, engine)
    broken = replace(compiled.parts[0], check_sql="SELECT nothing FROM t_city")
    with pytest.raises(EngineFailure):
        post_processing.check_public(replace(compiled, parts=(broken,)), explained.plan.releases, engine)


def test_a_public_intermediate_is_checked_too(shop: Shop) -> None:
    intermediate = post_processing.compile_public(
        shop.compiled("SELECT MAX(size) FROM city").relation, (), DUCKDB
    )
    assert intermediate.in_database
    post_processing.check_public(intermediate, (), SealedEngine())


def test_a_private_table_is_never_printed_as_public(shop: Shop) -> None:
    with pytest.raises(AssertionError):
        PublicPrinter({}, in_database=True).relation(Scan(shop.session.catalog.tables["person"]))


# --- stopping -------------------------------------------------------------------------------------------

_FOREVER = "SELECT COUNT(*) FROM city a, city b, city c, city d WHERE (a.id * b.id + c.id * d.id) % 7 = 3"


@pytest.fixture
def endless(shop: Shop) -> Shop:
    shop.connection.execute("INSERT INTO city SELECT i + 10, i, 'x', 1, NULL, NULL FROM range(3000) AS r(i)")
    return shop


def test_a_public_statement_can_be_cancelled(endless: Shop) -> None:
    def cancel() -> None:
        while not endless.asked:
            time.sleep(0.01)
        endless.session.cancel()

    stopper = threading.Thread(target=cancel)
    stopper.start()
    with pytest.raises(EngineFailure) as stopped:
        endless.rows(_FOREVER)
    stopper.join()
    assert stopped.value.sqlstate == "57014"
    assert endless.rows("SELECT COUNT(*) FROM country") == [(3,)]


def test_a_public_statement_has_an_end(endless: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_processing, "PUBLIC_SECONDS", 0.2)
    with pytest.raises(EngineFailure) as stopped:
        endless.rows(_FOREVER)
    assert (stopped.value.sqlstate, stopped.value.cost) == ("57V01", "nothing was charged")
    monkeypatch.undo()
    assert endless.rows("SELECT COUNT(*) FROM country") == [(3,)]


# --- columns as arrays ------------------------------------------------------------------------------------


def test_columns_come_as_arrays(shop: Shop) -> None:
    with shop.session.dataset.backend.snapshot() as snapshot:
        (numbers, nulls), (texts, none) = snapshot.columns(
            "SELECT big, 'a' AS w FROM odd WHERE tiny = 127 OR tiny IS NULL ORDER BY big NULLS LAST"
        )
        assert numbers[0] == 2**63 - 1
        assert nulls is not None
        assert nulls.tolist() == [False, True]
        assert (texts.tolist(), none) == (["a", "a"], None)
        with pytest.raises(EngineFailure):
            snapshot.columns("SELECT error('seen')")


def test_an_array_of_another_type_is_not_taken() -> None:
    with pytest.raises(EngineFailure):
        encode_fetched(BIGINT, np.array([1.0]), None)
    with pytest.raises(EngineFailure):
        encode_fetched(TEXT, np.array([1]), None)
    assert encode_fetched(NUMERIC, np.array([np.inf]), None).carried_as == "DOUBLE"
