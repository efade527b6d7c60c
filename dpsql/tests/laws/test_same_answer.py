"""Without noise and where no bound bites, the answer is the engine's own to the analyst's text (1.2, 1.6).

A group that no row falls in is answered too where keys are declared: it holds nothing but zeros and NULLs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given, settings

from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.audit.statements import SHAPES
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import Refusal
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.drawn_statements import statements
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.length import tried
from dpsql.tests.support.random_joins import SCHEMA, Database, load, policy_of, row

from .examples import REPEATED

FUZZ = settings(REPEATED, max_examples=tried(10, 60))

UNITS = range(1, 25)
TAME = Database(
    {
        "person": tuple(
            row("person", u, age=str(20 + u * 7 % 50), team=("red", "blue")[u % 2], home="ab"[u % 2], height=f"1.{u + 50}")
            for u in UNITS
        ),
        "account": tuple(
            row("account", 10 * u + i, u, kind=("giro", "save")[(u + i) % 2], balance=f"{(u * 31 + i * 7) % 900}.50",
                opened=f"2020-0{1 + (u + i) % 9}-15")
            for u in UNITS for i in range(u % 4)
        ),
        "booking": tuple(
            row("booking", 1000 * u + 100 * i + j, 10 * u + i, n=str((u + j) % 8), amount=f"{(u * 3 + j) % 50}.25",
                x=str((u + i + j) % 9 / 2 - 0.5), big=str(u * 100 + j), city="abc"[(u + j) % 3],
                seen=f"2020-02-0{1 + j} 10:00:00", flag=("true", "false", None)[(u * i + j) % 3])
            for u in UNITS for i in range(u % 4) for j in range((u + i) % 4)
        ),
        "note": tuple(
            row("note", u, ref=str(10 * u), n=str((u + j) % 6), x=str((u + j) % 5 / 2), fine="0.5", tag="tu"[j % 2], city="abc"[(u + j) % 3],
                day=f"2020-0{1 + j}-0{1 + u % 9}", flag=("true", "false", None)[(u + j) % 3])
            for u in UNITS for j in range(u % 5)
        ),
        "profile": tuple(
            row("profile", u, city="ab"[u // 2 % 2], level=("low", "high", None)[u // 2 % 3], score=f"{u % 9}.5") for u in UNITS if u % 3
        ),
    }
)  # fmt: skip
"""Four in a row have none to three accounts, and each account none to three bookings; nothing is out of bounds."""

_PUBLIC = """
INSERT INTO region VALUES ('a', 1, 'north'), ('b', 9, 'south'), ('c', 4, 'north'), ('t', 2, 'south');
INSERT INTO rate VALUES ('a', 'giro', 1.5), ('a', 'save', 0.5), ('b', 'giro', 3), ('c', 'low', 1);
INSERT INTO tag VALUES ('t', 'g', 1), ('t', 'h', 4), ('u', NULL, 2), ('a', 'g', 3), (NULL, 'h', 0);
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, duckdb.DuckDBPyConnection]]:
    with ExitStack() as stack:
        policy = policy_of(tmp_path_factory.mktemp("same"), rows=100, groups=10)
        connection = stack.enter_context(empty_duckdb())
        connection.execute(SCHEMA + _PUBLIC)
        load(connection, TAME, order=1)
        store = open_ledger(policy, create=True)
        made = Session(
            Dataset(policy, DuckDBBackend.over(connection), store, warm_sealed()),
            "tester",
            _noise=ZeroNoise(),
        )
        yield stack.enter_context(made), connection


Groups = dict[tuple[object, ...], list[object]]


def grouped(rows: list[tuple[object, ...]], keys: int) -> Groups:
    found: Groups = {}
    for values in rows:
        key = tuple(str(value) if value is not None else None for value in values[:keys])
        assert key not in found, "a group came twice"
        found[key] = [_plain(value) for value in values[keys:]]
    return found


def _plain(value: object) -> object:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return float(value)
    return value


def is_same(ours: object, theirs: object, step: float = 1e-7) -> bool:
    """Compare one cell; of no rows they have NULL, and we a count of 0, a sum of 0, the middle of an average."""
    if theirs is None or ours is None:
        return theirs is None
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-7, abs_tol=step)
    return ours == theirs


def compare(made: tuple[Session, duckdb.DuckDBPyConnection], sql: str, keys: int) -> None:
    """Hold our answer against the engine's own: `keys` are the leading columns that name the group."""
    session, connection = made
    ours = grouped(session.execute(sql).rows, keys)
    theirs = grouped(connection.execute(sql).fetchall(), keys)
    for key, values in ours.items():
        expected = theirs.pop(key, [None] * len(values))
        # the lattice of numbers up to 2^60 over many rows has steps of some hundred
        step = 256 if "big)" in sql and "AVG(" in sql else 1e-7
        assert all(map(is_same, values, expected, [step] * len(values))), (sql, key, values, expected)
    assert not theirs, (sql, theirs)


JOINS = [
    (0, "SELECT COUNT(*) FROM person p JOIN account a ON p.id = a.person_id"),
    (0, "SELECT COUNT(*), SUM(b.amount) FROM account a JOIN booking b ON a.no = b.account_no"),
    (0, "SELECT COUNT(*) FROM account a, booking b WHERE a.no = b.account_no AND b.n > 2"),
    (1, "SELECT p.team, COUNT(*) FROM person p JOIN account a ON p.id = a.person_id JOIN booking b ON b.account_no = a.no GROUP BY p.team"),
    (1, "SELECT p.team, COUNT(DISTINCT p.id) FROM person p LEFT JOIN account a ON p.id = a.person_id WHERE a.no IS NULL GROUP BY p.team"),
    (0, "SELECT COUNT(*), COUNT(b.id) FROM account a LEFT JOIN booking b ON a.no = b.account_no AND b.flag"),
    (0, "SELECT COUNT(*), SUM(a.balance) FROM booking b RIGHT JOIN account a ON a.no = b.account_no"),
    (0, "SELECT COUNT(*), COUNT(n.n), COUNT(a.no) FROM note n FULL JOIN account a ON n.person_id = a.person_id"),
    (0, "SELECT COUNT(*) FROM note n FULL JOIN profile f USING (person_id)"),
    (0, "SELECT COUNT(*) FROM account a JOIN note n USING (person_id)"),
    (0, "SELECT SUM(n.n) FROM note n JOIN note m ON n.person_id = m.person_id AND n.n < m.n"),
    (0, "SELECT COUNT(*) FROM booking b JOIN booking c ON b.id = c.id"),
    (0, "SELECT COUNT(*) FROM booking b JOIN booking c ON b.account_no = c.account_no"),
    (1, "SELECT r.zone, SUM(b.amount) FROM booking b JOIN region r ON r.name = b.city GROUP BY r.zone"),
    (1, "SELECT n.city, COUNT(*) FROM note n LEFT JOIN tag t ON t.tag = n.tag GROUP BY n.city"),
    (0, "SELECT SUM(x.value) FROM booking b JOIN account a ON a.no = b.account_no JOIN rate x ON x.region = b.city AND x.kind = a.kind"),
    (0, "SELECT COUNT(*) FROM note n CROSS JOIN region r"),
    (0, "SELECT COUNT(*) FROM note n, tag t WHERE n.n > t.n"),
    (0, "SELECT COUNT(*) FROM note n JOIN region r ON n.n < r.weight"),
    (0, "SELECT COUNT(*) FROM note n JOIN (VALUES ('a', 1), ('b', 2)) AS v (city, w) ON v.city = n.city"),
    (0, "SELECT COUNT(*) FROM (person p JOIN account a ON p.id = a.person_id) LEFT JOIN (booking b JOIN account c ON c.no = b.account_no) ON b.account_no = a.no"),
    (1, "SELECT f.level, AVG(b.x) FROM profile f JOIN account a USING (person_id) JOIN booking b ON b.account_no = a.no GROUP BY f.level"),
    (2, "SELECT p.team, b.city, COUNT(*) FROM person p JOIN account a ON p.id = a.person_id JOIN booking b ON b.account_no = a.no GROUP BY p.team, b.city"),
    (2, "SELECT p.team, a.kind, COUNT(*) FROM person p JOIN account a ON p.id = a.person_id GROUP BY GROUPING SETS ((p.team, a.kind), (p.team), ())"),
]  # fmt: skip
SUBQUERIES = [
    (0, "SELECT COUNT(*) FROM account a WHERE EXISTS (SELECT 1 FROM booking b WHERE b.account_no = a.no AND b.n > 4)"),
    (0, "SELECT COUNT(*) FROM person p WHERE NOT EXISTS (SELECT 1 FROM note n WHERE n.person_id = p.id)"),
    (0, "SELECT COUNT(*) FROM account WHERE no IN (SELECT account_no FROM booking WHERE flag)"),
    (0, "SELECT COUNT(*) FROM note WHERE city IN (SELECT name FROM region WHERE zone = 'north')"),
    (0, "SELECT COUNT(*) FROM note n WHERE NOT EXISTS (SELECT 1 FROM tag t WHERE t.tag = n.tag AND t.n > 2)"),
    (0, "SELECT COUNT(*) FROM note n WHERE EXISTS (SELECT 1 FROM account a JOIN booking b ON a.no = b.account_no WHERE a.person_id = n.person_id)"),
    (1, "SELECT city, COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM account a WHERE a.person_id = n.person_id)) FROM note n GROUP BY city"),
    (0, "SELECT COUNT(*) FROM account a WHERE a.balance > (SELECT SUM(b.amount) FROM booking b WHERE b.account_no = a.no)"),
    (0, "SELECT COUNT(*) FROM person p WHERE 2 <= (SELECT COUNT(*) FROM note n WHERE n.person_id = p.id)"),
    (0, "SELECT SUM(v) FROM (SELECT p.id, (SELECT MAX(n.n) FROM note n WHERE n.person_id = p.id) AS v FROM person p) t WHERE v BETWEEN 0 AND 5"),
    (0, "SELECT COUNT(*) FROM note n WHERE n.n > (SELECT AVG(m.n) FROM note m WHERE m.person_id = n.person_id)"),
    (0, "SELECT COUNT(*) FROM note WHERE x > (SELECT AVG(x) FROM note)"),
    (0, "SELECT COUNT(*) FROM note n JOIN (SELECT city, AVG(n) AS s FROM note GROUP BY city) t USING (city) WHERE n.n > t.s"),
    (1, "SELECT b.city, COUNT(*) FROM booking b JOIN (SELECT city, COUNT(*) AS s FROM note GROUP BY city) t ON t.city = b.city WHERE t.s > 12 GROUP BY b.city"),
    (0, "SELECT COUNT(*) FROM note WHERE city IN (SELECT city FROM booking GROUP BY city HAVING COUNT(*) > 20)"),
    (0, "SELECT COUNT(*) FROM note n WHERE EXISTS (SELECT 1 FROM (SELECT city, SUM(n) AS s FROM booking GROUP BY city) t WHERE t.city = n.city AND t.s > n.n)"),
]  # fmt: skip
PER_PERSON = [
    (0, "SELECT AVG(c) FROM (SELECT person_id, COUNT(*) AS c FROM note GROUP BY person_id) t WHERE c <= 10"),
    (0, "SELECT SUM(s) FROM (SELECT person_id, SUM(n) AS s FROM note GROUP BY person_id HAVING COUNT(*) > 1) t WHERE s BETWEEN 0 AND 50"),
    (0, "SELECT COUNT(*) FROM (SELECT person_id, city, COUNT(*) AS c FROM note GROUP BY person_id, city) t WHERE c = 2"),
    (1, "SELECT c, COUNT(*) FROM (SELECT person_id, LEAST(COUNT(*), 5) AS c FROM note GROUP BY person_id) t WHERE c BETWEEN 0 AND 5 GROUP BY c"),
    (1, "SELECT c, COUNT(*) FROM (SELECT p.id, COUNT(a.no) AS c FROM person p LEFT JOIN account a ON a.person_id = p.id GROUP BY p.id) t WHERE c BETWEEN 0 AND 9 GROUP BY c"),
    (0, "SELECT AVG(c) FROM (SELECT account_no, MAX(amount) AS c FROM booking GROUP BY account_no) t"),
    (0, "SELECT COUNT(*) FROM (SELECT person_id FROM note GROUP BY person_id HAVING bool_and(n > 1)) t"),
    (0, "SELECT COUNT(*) FROM (SELECT person_id, COUNT(DISTINCT city) AS c FROM note GROUP BY person_id) t WHERE c = 3"),
    (0, "SELECT COUNT(*) FROM (SELECT person_id, AVG(x) AS c, MIN(day) AS d FROM note GROUP BY person_id) t WHERE c > 0.9 AND d < DATE '2020-06-01'"),
    (1, "SELECT p.team, AVG(t.c) FROM person p JOIN (SELECT person_id, SUM(balance) AS c FROM account GROUP BY person_id) t ON t.person_id = p.id WHERE t.c BETWEEN 0 AND 3000 GROUP BY p.team"),
    (0, "SELECT COUNT(*) FROM (SELECT DISTINCT person_id, city FROM note) t"),
    (1, "SELECT city, COUNT(*) FROM (SELECT DISTINCT person_id, city FROM note) t GROUP BY city"),
    (0, "SELECT COUNT(*), SUM(v) FROM (SELECT person_id AS u, n AS v FROM note UNION ALL SELECT id, age FROM person) t"),
    (0, "SELECT COUNT(*) FROM (SELECT person_id AS u, city AS v FROM note UNION SELECT person_id, city FROM profile) t"),
    (0, "SELECT COUNT(*) FROM (SELECT person_id, n, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS rn FROM note) t WHERE rn = 1 AND n > 2"),
    (0, "SELECT SUM(n) FROM (SELECT person_id, n, RANK() OVER (PARTITION BY person_id ORDER BY n DESC) AS rn FROM note) t WHERE rn <= 2"),
    (0, "SELECT COUNT(*) FROM (SELECT person_id, n, LAG(n) OVER (PARTITION BY person_id ORDER BY day) AS was FROM note) t WHERE n > was"),
    (0, "SELECT COUNT(*) FROM (SELECT person_id, SUM(n) OVER (PARTITION BY person_id ORDER BY day) AS so_far FROM note) t WHERE so_far > 4"),
    (0, "SELECT COUNT(*) FROM (SELECT person_id, x, AVG(x) OVER (PARTITION BY person_id) AS own FROM note) t WHERE x >= own"),
    (0, "WITH big AS (SELECT person_id, COUNT(*) AS c FROM note GROUP BY person_id), rich AS (SELECT person_id, SUM(balance) AS s FROM account GROUP BY person_id) "
        "SELECT COUNT(*) FROM big JOIN rich ON big.person_id = rich.person_id WHERE c > 1 AND s > 100"),
    (0, "SELECT AVG(m) FROM (SELECT person_id, MAX(c) AS m FROM (SELECT person_id, city, COUNT(*) AS c FROM note GROUP BY person_id, city) t GROUP BY person_id) s WHERE m <= 4"),
    (0, "SELECT COUNT(*) FROM (SELECT a.person_id, SUM(t.s) AS all_in FROM account a JOIN (SELECT account_no, SUM(amount) AS s FROM booking GROUP BY account_no) t ON t.account_no = a.no GROUP BY a.person_id) q WHERE all_in > 60"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "sql"), [*JOINS, *SUBQUERIES, *PER_PERSON])
def test_the_answer_is_the_engines_own(
    session: tuple[Session, duckdb.DuckDBPyConnection], keys: int, sql: str
) -> None:
    compare(session, sql, keys)


def has_one_answer(session: Session, sql: str) -> bool:
    """Say whether a random statement is answered at all, without ties in windows and keys found by threshold."""
    if " OVER (" in sql or "ROLLUP" in sql or "GROUPING" in sql:
        return False
    try:
        session.execute(sql)  # public rows are counted when it runs: there may be too many
        return all(release.counted is None for release in session.explain(sql).plan.releases)
    except Refusal:
        return False


def keys_of(sql: str) -> int:
    """Return the number of keys of the statement's own GROUP BY."""
    flat = sql
    while (inner := re.sub(r"\([^()]*\)", "", flat)) != flat:
        flat = inner
    grouping = flat.partition(" GROUP BY ")[2]
    return grouping.count(", ") + 1 if grouping else 0


SUMS = {
    **SHAPES,
    "grouping": ("by",),
    "measure": ("count", "rows", "distinct", "people", "sum", "average", "variance", "averages"),
    "keys": ("none", "declared", "found", "two", "listed"),
    "argument": ("column",),
    "where": ("all", "compared"),
    "filter": ("all",),
    "above": ("plain",),
}
"""What both say alike: no ranks, and few expressions that the engines spell otherwise."""
NOT_OF_DUCKDB = (
    "to_char",
    "width_bucket",
    "date_bin",
    "AT TIME ZONE",
    "age(",
    "'Europe/",
    "'America/",
    "'Pacific/",
)


@FUZZ
@given(statements(shapes=SUMS))
def test_random_statements_have_the_engines_answer(
    session: tuple[Session, duckdb.DuckDBPyConnection], sql: str
) -> None:
    if not has_one_answer(session[0], sql):
        return
    if sql.startswith("WITH ") or any(word in sql for word in ("(1", ", 1", *NOT_OF_DUCKDB)):
        return
    keys = keys_of(sql)
    compare(session, sql, keys)
