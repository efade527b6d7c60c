"""Parameters without a value: the types that they are to have, found from where they stand, as Postgres finds them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.engine import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import Refusal
from dpsql.policy import parse_policy
from dpsql.relation.types import BIGINT, DATE, DOUBLE, INTEGER, TEXT, SqlType, numeric

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 10
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
city = { values = ["north", "south"] }
[tables.thing]
public = true
"""
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, city TEXT);
CREATE TABLE thing (
    small SMALLINT, big BIGINT, money DECIMAL(9, 2), single REAL, double DOUBLE, flag BOOLEAN, name TEXT, day DATE,
    moment TIMESTAMP);
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("people")
    with duckdb.connect(folder / "people.duckdb") as database:
        database.execute(SCHEMA)
    policy = parse_policy(POLICY, folder / "people.toml")
    dataset = Dataset(policy, DuckDBBackend(folder / "people.duckdb"), open_ledger(policy, create=True))
    with Session(dataset) as opened:
        yield opened


def types_of(session: Session, sql: str, declared: list[SqlType | None]) -> list[str]:
    return [str(type_) for type_ in session.describe_parameters(sql, declared)[1]]


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("SELECT COUNT(*) FROM person WHERE age > $1", "integer"),
        ("SELECT COUNT(*) FROM person WHERE $1 <= age", "integer"),
        ("SELECT COUNT(*) FROM person WHERE age BETWEEN $1 AND $2", "integer, integer"),
        ("SELECT COUNT(*) FROM person WHERE age IN ($1, 3, $2)", "integer, integer"),
        ("SELECT COUNT(*) FROM person WHERE age + $1 > 4", "integer"),
        ("SELECT COUNT(*) FROM person WHERE city = $1 OR city LIKE $2", "text, text"),
        ("SELECT COUNT(*) FROM person WHERE $1", "boolean"),
        ("SELECT COUNT(*) FROM person WHERE CASE WHEN $1 THEN age ELSE $2 END > 4", "boolean, integer"),
        ("SELECT COUNT(*) FROM person WHERE CASE city WHEN $1 THEN 1 END = 1", "text"),
        ("SELECT city, COUNT(*) FROM person GROUP BY city HAVING COUNT(*) > $1 LIMIT $2 OFFSET $3", "bigint, bigint, bigint"),
        ("SELECT COUNT(*) FROM thing WHERE day = $1 AND moment < $2 AND money > $3", "date, timestamp, numeric(9,2)"),
        ("SELECT COUNT(*) FROM thing WHERE single > $1 AND double < $2 AND flag = $3", "real, double precision, boolean"),
        ("SELECT COUNT(*) FROM thing WHERE small = $1 AND big = $2", "smallint, bigint"),
        ("SELECT substring(name FROM $1 FOR $2), round(money, $3) FROM thing", "integer, integer, integer"),
        ("SELECT COALESCE($1, big), NULLIF(day, $2), GREATEST(money, $3) FROM thing", "bigint, date, numeric(9,2)"),
        ("SELECT CAST($1 AS integer), $2::date, $3::double precision", "integer, date, double precision"),
        ("SELECT $1, lower($2), $3 || 'x'", "text, text, text"),
        ("SELECT big + $1 FROM thing WHERE big = (SELECT MAX(big) FROM thing WHERE name = $2)", "bigint, text"),
        ("WITH old AS (SELECT city FROM person WHERE age > $1) SELECT COUNT(*) FROM old WHERE city = $2", "integer, text"),
        ("EXPLAIN SELECT COUNT(*) FROM person WHERE age > $1", "integer"),
        ("SELECT COUNT(*) FROM person WHERE age > $1 OR age < $1", "integer"),
        ("SELECT SUM(age * $1) FROM person", "integer"),
    ],
)  # fmt: skip
def test_a_parameter_has_the_type_of_what_it_meets(session: Session, sql: str, types: str) -> None:
    expected = types.split(", ")
    declared: list[SqlType | None] = [None] * len(expected)
    assert types_of(session, sql, declared) == expected
    assert session.budget().epsilon_spent_nano == 0


def test_a_declared_type_holds(session: Session) -> None:
    sql = "SELECT COUNT(*) FROM person WHERE age > $1 AND age < $2"
    assert types_of(session, sql, [numeric(38, 2), None]) == ["numeric(38,2)", "integer"]
    columns, _ = session.describe_parameters("SELECT $1 + 1, $2, $3", [BIGINT, DATE, TEXT])
    assert [str(column.type) for column in columns] == ["bigint", "date", "text"]


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT city, COUNT(*) AS n FROM person WHERE age > $1 GROUP BY city LIMIT $2", [3, 1]),
        ("SELECT AVG(age), SUM(age) FROM person WHERE city = $1", ["north"]),
        ("SELECT big * $1, double / $2, name FROM thing WHERE name LIKE $3", [2, 0.5, "a%"]),
    ],
)
def test_the_columns_are_those_of_the_answer(session: Session, sql: str, values: list[object]) -> None:
    columns, _ = session.describe_parameters(sql, [None] * len(values))
    answered = session.execute(sql, values).columns
    assert [(c.name, c.type.kind) for c in columns] == [(c.name, c.type.kind) for c in answered]


def test_nothing_that_was_described_answers_a_statement_with_values(session: Session) -> None:
    sql = "SELECT COUNT(*) FROM thing WHERE big < $1"
    session.describe_parameters(sql, [None])
    assert session.execute(sql, [None]).rows == [(0,)]
    assert session.execute(sql, [7]).rows == [(0,)]


@pytest.mark.parametrize(
    "sql", ["SELECT nope FROM person WHERE age > $1", "SELEC $1", "SELECT $1 FROM nowhere"]
)
def test_what_no_value_can_mend_is_refused_at_once(session: Session, sql: str) -> None:
    with pytest.raises(Refusal):
        session.describe_parameters(sql, [None])


def test_typed_nulls_keep_their_type(session: Session) -> None:
    assert str(session.describe("SELECT CAST(NULL AS bigint) + 1")[0].type) == "bigint"


def test_text_is_read_as_the_count_that_a_limit_takes(session: Session) -> None:
    assert session.execute("SELECT small FROM thing LIMIT $1", ["10"]).rows == []
    with pytest.raises(Refusal, match="not a value of type bigint"):
        session.execute("SELECT small FROM thing LIMIT $1", ["many"])


def test_too_many_types_are_refused(session: Session) -> None:
    with pytest.raises(Refusal):
        session.describe_parameters("SELECT $1", [INTEGER, DOUBLE])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM public.person WHERE public.person.age > 3",
        "SELECT COUNT(*) FROM main.person WHERE main.person.age > 3",
        "SELECT COUNT(*) FROM thing WHERE moment < TIMESTAMP '2020-02-03T10:00:00.5Z'",
        "SELECT COUNT(*) FROM thing WHERE moment < '2020-02-03 10:00:00+00:00'",
    ],
)
def test_what_tools_write_unasked_is_read(session: Session, sql: str) -> None:
    assert session.execute(sql).columns


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DATE '2020-01-01' + CAST(NULL AS interval)",
        "SELECT CAST(NULL AS interval) + DATE '2020-01-01'",
    ],
)
def test_an_interval_that_is_null_makes_null(session: Session, sql: str) -> None:
    assert session.execute(sql).rows == [(None,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM other.person",
        "SELECT COUNT(*) FROM public.person WHERE other.person.age > 3",
        "SELECT TIMESTAMP '2020-02-03 10:00:00+05'",
    ],
)
def test_what_means_something_else_is_not(session: Session, sql: str) -> None:
    with pytest.raises(Refusal):
        session.execute(sql)
