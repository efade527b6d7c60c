"""Public tables alone, through a whole session: the answers of subqueries and joins are DuckDB's own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy

_PUBLIC = ("a", "b", "c", "part", "supplier", "partsupp", "nation", "region")
_POLICY = """
database = "duckdb:public.duckdb"
ledger = "sqlite:public.db"
[privacy]
epsilon = 5
[tables.person]
unit = "id"
""" + "".join(f"[tables.{name}]\npublic = true\n" for name in _PUBLIC)

_TABLES = """
CREATE TABLE person (id INTEGER PRIMARY KEY);
CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, v INTEGER, t TEXT);
INSERT INTO a VALUES (1, 1, 10, 'x'), (2, 2, 20, 'y'), (3, NULL, 30, 'x'), (4, 4, 40, NULL), (5, 1, NULL, 'z');
CREATE TABLE b (k INTEGER, w INTEGER, t TEXT);
INSERT INTO b VALUES (1, 5, 'x'), (1, 15, 'y'), (2, NULL, 'y'), (NULL, 7, 'x'), (9, 1, NULL);
CREATE TABLE c (k INTEGER, w INTEGER);
INSERT INTO c VALUES (1, 5), (2, 6), (3, 7);
CREATE TABLE region (r_regionkey INTEGER, r_name TEXT);
INSERT INTO region VALUES (0, 'EUROPE'), (1, 'ASIA');
CREATE TABLE nation (n_nationkey INTEGER, n_name TEXT, n_regionkey INTEGER);
INSERT INTO nation VALUES (0, 'GERMANY', 0), (1, 'FRANCE', 0), (2, 'JAPAN', 1);
CREATE TABLE supplier (s_suppkey INTEGER, s_name TEXT, s_address TEXT, s_nationkey INTEGER, s_phone TEXT,
    s_acctbal DECIMAL(15, 2), s_comment TEXT);
CREATE TABLE part (p_partkey INTEGER, p_mfgr TEXT, p_brand TEXT, p_type TEXT, p_size INTEGER);
CREATE TABLE partsupp (ps_partkey INTEGER, ps_suppkey INTEGER, ps_availqty INTEGER, ps_supplycost DECIMAL(15, 2));
"""


def _fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Make a small TPC-H of the public tables, the same each time."""
    source = random.Random(7)
    connection.execute(_TABLES)
    for key in range(20):
        comment = "the Customer has Complaints" if key % 6 == 0 else "fine"
        row = (
            key,
            f"s{key}",
            f"at {key}",
            key % 3,
            f"1{key}",
            Decimal(source.randrange(10_000)) / 100,
            comment,
        )
        connection.execute("INSERT INTO supplier VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    for key in range(40):
        kind = source.choice(("LARGE BRASS", "MEDIUM POLISHED TIN", "SMALL BRASS"))
        brand = f"Brand#{source.choice((12, 45))}"
        row = (key, f"m{key % 3}", brand, kind, source.choice((15, 9, 3, 1)))
        connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", row)
        for supplier in source.sample(range(20), 4):
            cost = Decimal(source.randrange(500, 600))
            row = (key, supplier, source.randrange(1, 50), cost)
            connection.execute("INSERT INTO partsupp VALUES (?, ?, ?, ?)", row)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("public")
    with duckdb.connect(str(made / "public.duckdb")) as connection:
        _fill(connection)
    (made / "public.toml").write_text(_POLICY)
    open_ledger(load_policy(made / "public.toml"), create=True).close()
    return made


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    with Session.open(folder / "public.toml") as opened:
        yield opened


def _plain(rows: object) -> list[tuple[object, ...]]:
    """Return rows in no order, their exact numbers as doubles to twelve digits."""
    shown = []
    assert isinstance(rows, list)
    for row in rows:
        shown.append(
            tuple(
                float(f"{value:.12g}") if isinstance(value, (int, float, Decimal)) else value for value in row
            )
        )
    return sorted(shown, key=repr)


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        _fill(connection)
        yield connection


def _check(session: Session, oracle: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[object, ...]]:
    answer = [tuple(row) for row in session.execute(sql).rows]
    assert _plain(answer) == _plain(oracle.execute(sql).fetchall())
    assert session.budget().epsilon_spent_nano == 0
    return answer


_STATEMENTS = [
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.w > a.v)",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b)",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE FALSE)",
    "SELECT id FROM a WHERE k IN (SELECT k FROM b)",
    "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b)",
    "SELECT id FROM a WHERE k NOT IN (SELECT k FROM c)",
    "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE k IS NOT NULL)",
    "SELECT id FROM a WHERE NOT (k IN (SELECT k FROM b WHERE b.t = a.t))",
    "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE FALSE)",
    "SELECT id FROM a WHERE NOT (v > 15 AND k IN (SELECT k FROM c))",
    "SELECT id FROM a WHERE NOT (v > 15 OR k NOT IN (SELECT k FROM c))",
    "SELECT id FROM a WHERE (k, t) IN (SELECT k, t FROM b)",
    "SELECT id FROM a WHERE (k, t) NOT IN (SELECT k, t FROM b)",
    "SELECT id FROM a WHERE (k, t) NOT IN (SELECT k, t FROM b WHERE k IS NOT NULL)",
    "SELECT id FROM a WHERE (k, t) NOT IN (SELECT k, 'q' FROM b)",
    "SELECT id FROM a WHERE 1 IN (SELECT k FROM b WHERE b.t = a.t)",
    "SELECT id FROM a WHERE 1 NOT IN (SELECT k FROM b WHERE b.t = a.t)",
    "SELECT id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k) FROM a",
    "SELECT id, CASE WHEN k IN (SELECT k FROM b) THEN 'y' ELSE 'n' END FROM a",
    "SELECT id, (SELECT count(*) FROM b WHERE b.k = a.k) FROM a",
    "SELECT id, (SELECT count(w) FROM b WHERE b.k = a.k) AS n FROM a",
    "SELECT id, (SELECT sum(w) FROM b WHERE b.k = a.k) FROM a",
    "SELECT id, (SELECT avg(w) FROM b WHERE b.k = a.k) FROM a",
    "SELECT id, (SELECT min(w) FROM b WHERE a.k = b.k AND b.t = a.t) FROM a",
    "SELECT id, (SELECT coalesce(sum(w), 0) + count(*) FROM b WHERE b.k = a.k) FROM a",
    "SELECT id, (SELECT coalesce(max(w), -1) FROM b WHERE b.k = a.k) FROM a",
    "SELECT id, (SELECT count(*) > 0 FROM b WHERE b.k = a.k) FROM a",
    "SELECT id, (SELECT CASE WHEN count(*) = 0 THEN 'none' ELSE 'some' END FROM b WHERE b.k = a.k) FROM a",
    "SELECT id, (SELECT 2 * max(w) FROM b WHERE b.k = a.k + 1) FROM a",
    "SELECT id, (SELECT count(*) FROM b WHERE b.k + 1 = a.k AND b.w > 3) FROM a",
    "SELECT id FROM a WHERE v > (SELECT avg(w) FROM b WHERE b.k = a.k)",
    "SELECT id FROM a WHERE 0 = (SELECT count(*) FROM b WHERE b.k = a.k)",
    "SELECT t, count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) GROUP BY t",
    "SELECT t, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)) FROM a GROUP BY t",
    "SELECT t, sum(CASE WHEN k IN (SELECT k FROM c) THEN 1 ELSE 0 END) FROM a GROUP BY t",
    "SELECT t, sum((SELECT count(*) FROM b WHERE b.k = a.k)) FROM a GROUP BY t",
    "SELECT t, count(*) FROM a GROUP BY t HAVING EXISTS (SELECT 1 FROM b WHERE b.t = a.t)",
    "SELECT t, count(*), (SELECT count(*) FROM b WHERE b.t = a.t) FROM a GROUP BY t",
    "SELECT t, count(*) FROM a GROUP BY t HAVING count(*) IN (SELECT k FROM c)",
    "SELECT t, count(*) FROM a GROUP BY t HAVING count(*) NOT IN (SELECT k FROM c) OR t = 'x'",
    "SELECT t, count(*) FROM a GROUP BY t ORDER BY (SELECT count(*) FROM b WHERE b.t = a.t), t",
    "SELECT a.id, c.w FROM a JOIN c ON a.k = c.k AND EXISTS (SELECT 1 FROM b WHERE b.k = c.k AND b.t = a.t)",
    "SELECT a.id, c.w, d.w FROM a JOIN c ON a.k = c.k AND c.k IN (SELECT k FROM b) JOIN c AS d ON d.k > c.k",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND EXISTS (SELECT 1 FROM c WHERE c.w = b.w))",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.w > (SELECT avg(c.w) FROM c WHERE c.k <= 2 AND c.k = b.k) - 1)",
    "SELECT id FROM a WHERE k IN (SELECT k FROM b WHERE w IN (SELECT w FROM c) AND b.t = a.t)",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON b.k = c.k AND c.w > a.v - 10 WHERE b.k = a.k)",
    "SELECT id FROM a WHERE EXISTS (SELECT DISTINCT k FROM b WHERE b.k = a.k ORDER BY k LIMIT 1)",
    "SELECT id FROM a WHERE EXISTS (SELECT k FROM b GROUP BY k HAVING count(*) > 1)",
    "SELECT id FROM a WHERE k IN (SELECT k FROM b GROUP BY k HAVING count(*) > 1)",
    "SELECT id FROM a WHERE k IN (SELECT max(k) FROM c UNION ALL SELECT 1)",
    "SELECT id FROM a WHERE k IN (SELECT k FROM b ORDER BY k DESC NULLS LAST LIMIT 2)",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM (SELECT k, w FROM b WHERE b.t = a.t) d WHERE d.w > 5)",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k IS NOT DISTINCT FROM a.k)",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b LEFT JOIN c ON b.k = c.k WHERE c.k IS NULL AND b.t = a.t)",
    "SELECT x.id, y.w FROM a x LEFT JOIN (b y JOIN c z ON y.k = z.k) ON x.k = y.k",
    "SELECT j.id, j.w FROM (a JOIN c USING (k)) AS j",
    "SELECT k, count(*) FROM ((a JOIN c USING (k)) LEFT JOIN b USING (k)) GROUP BY k",
    "SELECT row_number() OVER (ORDER BY id), EXISTS (SELECT 1 FROM b WHERE b.k = a.k) FROM a",
    "SELECT sum(v) OVER (PARTITION BY EXISTS (SELECT 1 FROM b WHERE b.k = a.k)) FROM a",
    "SELECT id FROM a ORDER BY (SELECT count(*) FROM b WHERE b.k = a.k) DESC, id LIMIT 2",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) OR v > (SELECT max(w) FROM b WHERE b.t = a.t) OR k IN (SELECT k FROM c WHERE c.w < a.v)",
    "SELECT EXISTS (SELECT 1 FROM b WHERE k = 100)",
    "SELECT id FROM a WHERE (SELECT max(w) FROM b WHERE b.k = a.k) IN (SELECT 3 * w FROM c)",
    "WITH q AS (SELECT k, count(*) AS n FROM b GROUP BY k) SELECT id FROM a WHERE k IN (SELECT k FROM q WHERE n = 2)",
    "SELECT id, (SELECT max(b.w) FROM b, c WHERE b.k = c.k AND c.k = a.k) FROM a",
    "SELECT id, (SELECT count(*) FROM b WHERE b.k = a.v / 10.0) FROM a",
    "SELECT id, (SELECT count(*) FROM b WHERE b.k = CAST(a.v AS double precision) / 10) FROM a",
    "SELECT id, (SELECT sum(w) FROM (SELECT w, k FROM b WHERE w > 5) d WHERE d.k = a.k) FROM a",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b) AND k IN (SELECT k FROM c) AND v < 20",
    "SELECT a.id, b.w FROM a NATURAL JOIN b",
    "SELECT a.id, k, t, b.w FROM a NATURAL LEFT JOIN b",
    "SELECT a.id, k, c.w FROM a NATURAL FULL JOIN c",
    "SELECT k, b.t, w FROM b NATURAL RIGHT JOIN c",
    "SELECT id FROM a WHERE (k IN (SELECT k FROM b)) IS NOT TRUE",
    "SELECT id FROM a WHERE (k IN (SELECT k FROM b WHERE b.t = a.t)) IS FALSE",
    "SELECT id FROM a WHERE (k NOT IN (SELECT k FROM c)) IS TRUE",
]


@pytest.mark.parametrize("sql", _STATEMENTS)
def test_an_answer_is_the_one_of_duckdb(
    session: Session, oracle: duckdb.DuckDBPyConnection, sql: str
) -> None:
    _check(session, oracle, sql)


_Q2 = """
select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from part, supplier, partsupp, nation, region
where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS'
  and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE'
  and ps_supplycost = (
    select min(ps_supplycost) from partsupp, supplier, nation, region
    where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
      and n_regionkey = r_regionkey and r_name = 'EUROPE')
order by s_acctbal desc, n_name, s_name, p_partkey limit 100
"""
_Q11 = """
select ps_partkey, sum(ps_supplycost * ps_availqty) as value from partsupp, supplier, nation
where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY'
group by ps_partkey having sum(ps_supplycost * ps_availqty) > (
  select sum(ps_supplycost * ps_availqty) * 0.03 from partsupp, supplier, nation
  where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY')
order by value desc
"""
_Q16 = """
select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt from partsupp, part
where p_partkey = ps_partkey and p_brand <> 'Brand#45' and p_type not like 'MEDIUM POLISHED%'
  and p_size in (49, 14, 23, 45, 15, 3, 36, 9)
  and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
group by p_brand, p_type, p_size order by supplier_cnt desc, p_brand, p_type, p_size
"""


@pytest.mark.parametrize("sql", [_Q2, _Q11, _Q16], ids=["q2", "q11", "q16"])
def test_public_queries_of_tpch(session: Session, oracle: duckdb.DuckDBPyConnection, sql: str) -> None:
    assert _check(session, oracle, sql)


def test_a_common_column_of_natural_comes_first(session: Session) -> None:
    answer = session.execute("SELECT * FROM a NATURAL JOIN c ORDER BY id LIMIT 1")
    assert [tuple(row) for row in answer.rows] == [(1, 1, 10, "x", 5)]
