"""Filters that exclude themselves by their text: answered exactly and free. All others are charged.

The oracle is DuckDB on rows that hold every combination of a few values, NULL and NaN among them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.errors import Refusal
from dpsql.plan.planner import PrivacyParameters, plan
from dpsql.plan.privacy.contradiction import Facts, facts_in
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import load_policy
from dpsql.relation.catalog import Catalog, Column, Enforced, Proved
from dpsql.relation.types import DOUBLE, INTEGER
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.tests.plan.planned import CATALOG, NOW, grounded
from dpsql.tests.support.length import tried

_POLICY = """
database = "duckdb:rows.duckdb"
ledger = "sqlite:rows-ledger.db"
[privacy]
epsilon = 1000
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.person.columns]
x = { bounds = [0, 5] }
h = { bounds = [0, 5] }
m = { bounds = [0, 5] }
s = {}
b = {}
d = { bounds = [2024-01-01, 2024-12-31] }
"""
_ROWS = """
CREATE TABLE person AS SELECT CAST(row_number() OVER () AS INTEGER) AS id, x, h, m, s, b, d FROM
  unnest([1, 2, 3, NULL]) AS a(x), unnest([CAST(1 AS DOUBLE), 1.5, 3, 'NaN', NULL]) AS c(h),
  unnest([CAST(1 AS DECIMAL(4,2)), 2.5, 3, NULL]) AS e(m), unnest(['a', 'b', NULL]) AS f(s),
  unnest([true, false, NULL]) AS g(b),
  unnest([DATE '2024-01-01', DATE '2024-01-02', DATE '2024-01-03', NULL]) AS i(d);
ALTER TABLE person ADD PRIMARY KEY (id)
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    path = tmp_path_factory.mktemp("rows")
    with duckdb.connect(str(path / "rows.duckdb")) as connection:
        connection.execute(_ROWS)
    (path / "rows.toml").write_text(_POLICY)
    open_ledger(load_policy(path / "rows.toml"), create=True).close()
    with Session.open(path / "rows.toml") as opened:
        yield opened


_EMPTY = (
    "h BETWEEN 5 AND 2",
    "h < 1 AND h > 1",
    "h >= 1 AND h < 1",
    "x < 1 AND x > 1",
    "x > 1 AND x < 2",
    "x = 1 AND x = 2",
    "x = 1 AND x <> 1",
    "x IN (1, 2) AND x IN (3, 4)",
    "x IN (1, 2) AND x NOT IN (1, 2)",
    "x IN (1, 2) AND x > 2",
    "x >= 2 AND x <= 2 AND x <> 2",
    "NOT (x < 5) AND x < 3",
    "(x < 1 OR x > 4) AND x BETWEEN 2 AND 3",
    "x IS NULL AND x > 1",
    "s IS NULL AND s IS NOT NULL",
    "x > NULL",
    "x IN (NULL)",
    "x NOT IN (1, NULL)",
    "x <> x",
    "m > 2.5 AND m < 2.5",
    "h = 0.1 AND h = 0.2",
    "s = 'a' AND s = 'b'",
    "s > 'b' AND s < 'a'",
    "b AND NOT b",
    "b AND b = false",
    "d < DATE '2024-01-01' AND d > DATE '2024-12-31'",
    "d > DATE '2024-01-01' AND d < DATE '2024-01-02'",
    "d >= TIMESTAMP '2024-01-02 12:00' AND d <= TIMESTAMP '2024-01-02 13:00'",
    "x + 1 > 5 AND x + 1 < 3",
    "s LIKE 'a%' AND NOT (s LIKE 'a%')",
)
_OPEN = (
    "h BETWEEN 2 AND 5",
    "h > 1 AND h < 2",
    "h >= 1 AND h <= 1",
    "h IS NULL AND h > 1",  # NaN is NULL for us, and above all numbers
    "m > 2.5 AND m < 2.51",
    "x > 1 AND x < 3",
    "x BETWEEN 200 AND 300",  # outside the bounds, which the data need not keep
    "x IN (1, NULL)",
    "s IN ('a', 'b') AND s <> 'a'",
    "(x < 1 OR x > 2) AND x BETWEEN 2 AND 3",
    "x < 1 OR x > 1",
)


@pytest.mark.parametrize("filter_", _EMPTY)
def test_what_no_row_passes_is_free(session: Session, filter_: str) -> None:
    answer = session.execute(f"SELECT COUNT(*) AS n, SUM(h) AS s, AVG(x) AS a FROM person WHERE {filter_}")
    assert answer.receipt is not None
    assert answer.receipt.epsilon == 0
    ((count, total, _),) = answer.rows
    assert (count, repr(total)) == (0, "0.0")


@pytest.mark.parametrize("filter_", _OPEN)
def test_what_a_row_may_pass_is_charged(session: Session, filter_: str) -> None:
    assert session.explain(f"SELECT COUNT(*) FROM person WHERE {filter_}").plan.epsilon == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM person WHERE h < 1 AND h > 2 GROUP BY id) AS t",
        "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM person GROUP BY id) AS t WHERE n > 5 AND n < 5",
        "SELECT COUNT(*) FROM person AS p WHERE EXISTS (SELECT 1 FROM person AS q WHERE q.id = p.id AND 1 = 0)",
        "SELECT COUNT(*) FROM person WHERE id IN (SELECT id FROM person WHERE h > 5 AND h < 3)",
        "SELECT s, COUNT(*) FROM person WHERE s IN ('a', 'b') AND h > 5 AND h < 2 GROUP BY s",
        "SELECT COUNT(*) FROM person AS p JOIN person AS q ON p.id = q.id WHERE p.x > q.x AND NOT p.x > q.x",
    ],
)
def test_subqueries_groups_and_joins(session: Session, sql: str) -> None:
    assert session.explain(sql).plan.epsilon == 0


def _random_term(pick: random.Random) -> str:
    name, values = pick.choice(
        (("x", ("0", "1", "2", "3", "1.5", "NULL")), ("h", ("1", "1.5", "3", "0.1")), ("m", ("1", "2.5", "2.75")),
         ("s", ("'a'", "'b'", "'c'", "''")),
         ("d", ("DATE '2024-01-01'", "DATE '2024-01-02'", "TIMESTAMP '2024-01-02 07:00'")))
    )  # fmt: skip
    a, b = pick.choice(values), pick.choice(values)
    compared = f"{name} {pick.choice(('=', '<>', '<', '<=', '>', '>='))} {a}"
    term = pick.choice(
        (compared, compared, f"{a} < {name}", f"{name} BETWEEN {a} AND {b}", f"{name} IN ({a}, {b})",
         f"{name} IS NULL", "b", "b = false", "NOT b")
    )  # fmt: skip
    return f"NOT ({term})" if pick.random() < 0.25 else term


def test_a_free_zero_is_the_truth(session: Session) -> None:
    pick, free = random.Random(11), 0
    with duckdb.connect() as connection:
        connection.execute(_ROWS)
        for _ in range(tried(250, 1500)):
            terms = [_random_term(pick) for _ in range(pick.randint(2, 4))]
            if pick.random() < 0.4:
                terms[0] = f"({terms[0]} OR {_random_term(pick)})"
            filter_ = " AND ".join(terms)
            if session.explain(f"SELECT COUNT(*) FROM person WHERE {filter_}").plan.epsilon == 0:
                free += 1
                found = connection.execute(f"SELECT COUNT(*) FROM person WHERE {filter_}").fetchone()
                assert found == (0,), filter_
    assert free > tried(32, 200)


PROVED = {
    "person": Proved((("id",),)),
    "visit": Proved((("person_id", "no"),), ((("person_id",), ("main", "person"), ("id",)),)),
    "bill": Proved((("id",),), ((("person_id",), ("main", "person"), ("id",)),)),
    "line": Proved((), ((("bill_id",), ("main", "bill"), ("id",)),)),
}


def _catalog(proved: dict[str, Proved | None]) -> Catalog:
    tables = {name: replace(table, proved=proved.get(name)) for name, table in CATALOG.tables.items()}
    tables["person"] = replace(
        tables["person"],
        columns=(*tables["person"].columns, Column("code", INTEGER, Enforced(not_null=True))),
        keys=(("id",), ("email",), ("code",)),
    )
    tables["visit"] = replace(
        tables["visit"], columns=(*tables["visit"].columns, Column("weight", DOUBLE, Enforced(not_null=True)))
    )
    return replace(
        CATALOG, tables=MappingProxyType({name: grounded(table) for name, table in tables.items()})
    )


def releases(sql: str, proved: dict[str, Proved | None] = PROVED) -> tuple[ReleasePlan, ...]:
    query, catalog = parse_statement(sql), _catalog(proved)
    assert isinstance(query, AdmittedQuery)
    relation = bind(query, BindingContext(catalog, query.text, (), NOW, {}))
    return plan(relation, catalog, PrivacyParameters(Fraction(1), Fraction(1, 1000), 1, False)).releases


def is_proved(sql: str, proved: dict[str, Proved | None] = PROVED) -> bool:
    """Say whether all releases of a statement are empty by what constraints prove, and none by its text."""
    found = releases(sql, proved)
    assert found
    assert all(release.is_empty == release.is_proved for release in found)
    return all(release.is_proved for release in found)


def dbt(sql: str) -> str:
    """Return what dbt sends for a test: its macros' text around the rows that fail."""
    return f"select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error from ( {sql} ) dbt_internal_test"


def not_null(table: str, column: str) -> str:
    return dbt(f"select {column} from {table} where {column} is null")


def unique(table: str, column: str) -> str:
    return dbt(
        f"select {column} as unique_field, count(*) as n_records from {table} where {column} is not null "
        f"group by {column} having count(*) > 1"
    )


def relationships(table: str, column: str, to: str, field: str) -> str:
    return dbt(
        f"with child as ( select {column} as from_field from {table} where {column} is not null ), "
        f"parent as ( select {field} as to_field from {to} ) select from_field from child "
        "left join parent on child.from_field = parent.to_field where parent.to_field is null"
    )


ANSWERED = (
    not_null("person", "id"),
    not_null("visit", "person_id"),
    not_null("visit", "days"),
    unique("person", "id"),
    unique("bill", "id"),
    relationships("bill", "person_id", "person", "id"),
    relationships("visit", "person_id", "person", "id"),
    relationships("line", "bill_id", "bill", "id"),
    "SELECT COUNT(*) FROM bill WHERE id IS NULL",
    "SELECT COUNT(*) FROM bill WHERE id IS NULL OR person_id IS NULL",
    "SELECT COUNT(*), AVG(days) FROM visit WHERE days IS NULL",
    "SELECT COUNT(*) FROM bill WHERE id IN (SELECT id FROM bill GROUP BY id HAVING COUNT(id) > 1)",
    "SELECT COUNT(*) FROM (SELECT person_id, no, COUNT(*) AS n FROM visit GROUP BY person_id, no HAVING COUNT(*) >= 2) AS t",
    "SELECT COUNT(*) FROM bill AS b WHERE NOT EXISTS (SELECT 1 FROM person AS p WHERE p.id = b.person_id)",
    "SELECT COUNT(*) FROM bill AS b LEFT JOIN person AS p ON p.id = b.person_id WHERE p.id IS NULL",
    # Great Expectations
    "SELECT sum(CASE WHEN (days IS NULL) THEN 1 ELSE 0 END) AS c FROM visit",
    "SELECT coalesce(sum(CASE WHEN (days IS NULL) THEN 1 ELSE 0 END), 0) AS c FROM visit WHERE no < 3",
    "SELECT count(*) FILTER (WHERE days IS NULL), count(CASE WHEN no IS NULL THEN 1 END) FROM visit",
    "SELECT sum(CASE WHEN id IN (SELECT id FROM bill WHERE id IS NOT NULL GROUP BY id HAVING count(id) > 1) THEN 1 ELSE 0 "
    "END) FROM bill",
    "SELECT sum(CASE WHEN id IS NOT NULL AND n > 1 THEN 1 ELSE 0 END) FROM (SELECT id, count(id) OVER (PARTITION BY id) AS n "
    "FROM bill) AS t",
    "SELECT COUNT(*) FROM (SELECT id, count(*) OVER (PARTITION BY id ORDER BY person_id) AS n FROM bill) AS t WHERE n >= 2",
)  # fmt: skip

NOT_ANSWERED = (
    not_null("person", "city"),  # may be NULL
    not_null("visit", "weight"),  # NaN is NULL to a statement
    unique("person", "code"),  # a key of the policy's, that the engine does not prove
    "SELECT COUNT(*) FROM (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY person_id HAVING COUNT(*) > 1) AS t",  # half a key
    "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM bill GROUP BY id HAVING COUNT(*) > 0) AS t",
    "SELECT COUNT(*) FROM (SELECT b.id, COUNT(*) AS n FROM bill AS b JOIN line AS l ON l.bill_id = b.id GROUP BY b.id "
    "HAVING COUNT(*) > 1) AS t",  # rows of a join are others
    "SELECT COUNT(*) FROM line AS l LEFT JOIN bill AS b ON l.bill_id = b.id WHERE b.id IS NULL",  # NULL points at nobody
    "SELECT COUNT(*) FROM bill AS b LEFT JOIN person AS p ON p.id = b.person_id AND p.age > 3 WHERE p.id IS NULL",
    "SELECT COUNT(*) FROM bill AS b LEFT JOIN (SELECT id FROM person WHERE age > 3) AS p ON p.id = b.person_id WHERE p.id IS NULL",
    "SELECT COUNT(*) FROM bill AS b LEFT JOIN (SELECT id, city || 'x' AS c FROM person WHERE age > 3) AS p "
    "ON p.id = b.person_id WHERE p.id IS NULL",
    "SELECT COUNT(*) FROM bill AS b LEFT JOIN person AS p ON p.id = b.person_id WHERE p.city IS NULL",
    "SELECT COUNT(*) FROM bill AS b WHERE EXISTS (SELECT 1 FROM person AS p WHERE p.id = b.person_id)",
    "SELECT COUNT(*) FROM bill AS b FULL JOIN person AS p ON p.id = b.person_id WHERE b.id IS NULL",
    "SELECT COUNT(*) FROM bill AS b RIGHT JOIN person AS p ON p.id = b.person_id WHERE b.id IS NULL",
    "SELECT COUNT(*) FROM person AS p LEFT JOIN bill AS b ON p.id = b.person_id WHERE b.id IS NULL",  # the other way
    "SELECT sum(CASE WHEN days IS NULL THEN 1 ELSE 2 END) FROM visit",
    "SELECT sum(CASE WHEN days IS NULL THEN 1 END) FROM visit",  # NULL, or 0
    "SELECT sum(days) FILTER (WHERE days IS NULL) FROM visit",
    "SELECT avg(CASE WHEN days IS NULL THEN 1 ELSE 0 END) FROM visit",
    "SELECT sum(CASE WHEN days IS NULL THEN 1 WHEN days > 3 THEN 1 ELSE 0 END) FROM visit",
    "SELECT count(CASE WHEN days IS NULL THEN 1 ELSE 2 END) FROM visit",
    "SELECT COUNT(*) FROM (SELECT id, count(*) OVER (PARTITION BY person_id) AS n FROM bill) AS t WHERE n > 1",
    "SELECT COUNT(*) FROM (SELECT id, sum(3) OVER (PARTITION BY id) AS n FROM bill) AS t WHERE n > 1",
)  # fmt: skip


@pytest.mark.parametrize("sql", ANSWERED)
def test_what_constraints_prove_is_empty(sql: str) -> None:
    assert is_proved(sql)


@pytest.mark.parametrize("sql", NOT_ANSWERED)
def test_what_they_do_not_prove_is_measured(sql: str) -> None:
    assert not is_proved(sql)


@pytest.mark.parametrize("sql", ANSWERED)
def test_without_proof_all_is_measured(sql: str) -> None:
    """Keys and NOT NULL as they are declared, asserted or recorded: no word of them is believed (planted fault: is)."""
    assert not is_proved(sql, {})


@pytest.mark.parametrize(
    ("sql", "missing"),
    [
        (unique("bill", "id"), {"bill": Proved()}),  # deferrable, or asserted
        (relationships("bill", "person_id", "person", "id"), {"bill": Proved((("id",),)), "person": PROVED["person"]}),
        (relationships("bill", "person_id", "person", "id"), {"bill": PROVED["bill"], "person": Proved()}),
        (relationships("bill", "person_id", "person", "id"), {"bill": PROVED["bill"]}),
    ],
)  # fmt: skip
def test_each_part_of_a_proof_is_needed(sql: str, missing: dict[str, Proved | None]) -> None:
    assert not is_proved(sql, missing)


@pytest.mark.parametrize(
    ("sql", "zeros"),
    [
        ("SELECT sum(CASE WHEN days IS NULL THEN 1 ELSE 0 END), count(*) FROM visit", {0}),
        ("SELECT avg(days), count(*) FILTER (WHERE days IS NULL), count(no) FROM visit", {1}),
        ("SELECT ward, sum(CASE WHEN days IS NULL THEN 1 ELSE 0 END) FROM visit GROUP BY ward", {0}),
        ("SELECT count(*), count(days), sum(CASE WHEN days IS NULL THEN 1 END) FROM visit", set()),
        ("SELECT count(*), count(*) FILTER (WHERE bill_id IS NULL) FROM line", set()),
    ],
)
def test_what_is_proved_to_be_zero_is_no_measurement(sql: str, zeros: set[int]) -> None:
    """But groups are measured whatever is asked of them, and a NULL on the way to a person is there."""
    (release,) = releases(sql)
    assert release.zeros == zeros
    assert (release.is_proved, release.is_empty) == (bool(zeros), False)
    assert [not formula.coordinates for formula in release.formulas] == [
        number in zeros for number in range(len(release.formulas))
    ]
    (unproved,) = releases(sql, {})
    assert not unproved.zeros


@pytest.mark.parametrize(
    "sql",
    [
        not_null("line", "bill_id"),
        "SELECT COUNT(*) FROM line WHERE bill_id IS NULL AND amount > 2",
        "SELECT SUM(amount) FROM (SELECT amount FROM line WHERE bill_id IS NULL) AS t",
        "SELECT COUNT(*) FROM line WHERE bill_id IS NULL AND amount IN (1, 2) OR bill_id IS NULL AND amount > 3",
    ],
)
def test_rows_that_are_nobodys_are_not_said_to_be_none(sql: str) -> None:
    """Such rows never count; that there are none of them was said to be so by the text."""
    for proved in (PROVED, {}):
        with pytest.raises(Refusal, match="they are nobody's") as refused:
            releases(sql, proved)
        assert refused.value.sqlstate == "PV003"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM line WHERE bill_id IS NULL OR amount > 2",
        "SELECT COUNT(*) FROM line WHERE amount IS NULL",
        "SELECT COUNT(*) FROM bill AS b LEFT JOIN line AS l ON l.bill_id = b.id WHERE l.bill_id IS NULL",
        "SELECT COUNT(*) FROM line AS l FULL JOIN bill AS b ON l.bill_id = b.id WHERE l.bill_id IS NULL",
    ],
)
def test_what_others_have_beside_them_is_measured(sql: str) -> None:
    assert not any(release.is_empty or release.zeros for release in releases(sql))


def test_a_contradiction_of_the_text_is_one_though_nobodys_rows_are_asked_for() -> None:
    (release,) = releases("SELECT COUNT(*) FROM line WHERE bill_id IS NULL AND bill_id = 3")
    assert (release.is_empty, release.is_proved) == (True, False)


def test_a_full_join_proves_nothing() -> None:
    """It fills up rows of the sources before it with NULL."""
    (release,) = releases("SELECT COUNT(*) FROM bill AS b LEFT JOIN person AS p ON p.id = b.person_id")
    first, second = release.release.rows.items[:2]
    assert facts_in((first, second), ()).not_null
    assert facts_in((first, replace(second, kind="full")), ()) == Facts()
