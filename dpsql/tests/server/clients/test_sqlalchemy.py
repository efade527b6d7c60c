"""SQLAlchemy over four drivers: what it reflects, what its expressions become; pandas and polars on top."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from urllib.parse import quote

import pandas
import polars
import pytest
import sqlalchemy as sa

from dpsql.tests.support.length import first

from ..conftest import PASSWORD, Served
from .conftest import ROWS, THING

pytest.importorskip("psycopg2")
pytest.importorskip("pg8000")


def url(served: Served, driver: str) -> sa.URL:
    return sa.URL.create(f"postgresql+{driver}", "alice", PASSWORD, "127.0.0.1", served.port, "people")


@pytest.fixture(params=first(1, ["psycopg", "psycopg2", "pg8000"]))
def engine(request: pytest.FixtureRequest, served: Served) -> Iterator[sa.Engine]:
    found = sa.create_engine(url(served, request.param))
    yield found
    found.dispose()


def _reflected(found: sa.Inspector) -> None:
    """Check what an inspector sees."""
    assert set(found.get_table_names()) == {"person", "loan", "number", "thing"}
    assert found.has_table("person")
    assert not found.has_table("nosuch")
    assert found.default_schema_name in found.get_schema_names()
    columns = {column["name"]: column for column in found.get_columns("person")}
    assert list(columns) == ["id", "age", "city", "income", "height", "born", "active"]
    assert (str(columns["income"]["type"]), str(columns["born"]["type"])) == ("NUMERIC(9, 2)", "DATE")
    assert (columns["age"]["nullable"], columns["city"]["nullable"]) == (False, True)
    assert "in years" in str(columns["age"]["comment"])
    assert found.get_pk_constraint("person")["constrained_columns"] == ["id"]
    [key] = found.get_foreign_keys("loan")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (
        ["person_id"], "person", ["id"],
    )  # fmt: skip
    assert str(found.get_table_comment("person")["text"]).startswith("one row each")
    for many in (found.get_view_names, found.get_materialized_view_names, found.get_sequence_names):
        assert many() == []
    for one in (found.get_indexes, found.get_unique_constraints, found.get_check_constraints):
        assert one("person") == []
    assert found.get_enums() == []  # type: ignore[attr-defined]
    assert len(found.get_multi_columns()) == 4


def test_what_is_reflected(engine: sa.Engine, spent: Callable[[], Decimal]) -> None:
    _reflected(sa.inspect(engine))
    assert spent() == 0


def test_expressions(engine: sa.Engine, spent: Callable[[], Decimal]) -> None:
    everything = sa.MetaData()
    everything.reflect(engine)
    person, loan, thing = (everything.tables[name] for name in ("person", "loan", "thing"))
    with engine.connect() as connection:
        assert connection.execute(sa.select(thing).where(thing.c.id == 1)).all() == [THING]
        grouped = (
            sa.select(person.c.city, sa.func.count().label("n"), sa.func.avg(person.c.height).label("h"))
            .where(
                person.c.age.between(5, 50 + len(engine.driver)),
                person.c.city.in_(["north", "south"]),
                person.c.born > date(1950, 2, 1),
            )
            .group_by(person.c.city)
            .order_by(sa.desc("n"))
        )
        first = connection.execute(grouped.limit(10)).all()
        assert len(first) == 2
        assert spent() == Decimal("0.1")
        wrapped = sa.select(grouped.subquery()).limit(1000)
        assert len(connection.execute(wrapped).all()) == 2
        joined = (
            sa.select(person.c.city, sa.func.sum(loan.c.amount))
            .join_from(loan, person)
            .group_by(person.c.city)
        )
        assert len(connection.execute(joined).all()) == 2
        assert connection.execute(sa.select(thing.c.id).where(thing.c.day == None)).all() == [(2,)]  # noqa: E711
        with pytest.raises(sa.exc.DBAPIError), connection.begin_nested():
            connection.execute(sa.select(person).where(person.c.age > 5))
        assert connection.scalar(sa.select(sa.literal(1))) == 1


def test_rows_in_parts(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        asked = connection.execution_options(stream_results=True, yield_per=3000)
        assert sum(1 for _ in asked.execute(sa.text("SELECT i FROM number"))) == ROWS


@pytest.mark.parametrize("level", ["AUTOCOMMIT", "SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"])
def test_isolation_levels_and_the_pool(engine: sa.Engine, level: str) -> None:
    for _ in range(3):
        with engine.connect() as connection:
            asked = connection.execution_options(isolation_level=level)
            assert asked.scalar(sa.text("SELECT 1")) == 1


def test_over_asyncpg(served: Served) -> None:
    pytest.importorskip("asyncpg")
    pytest.importorskip("greenlet")
    from sqlalchemy.ext.asyncio import create_async_engine

    async def whole() -> None:
        engine = create_async_engine(url(served, "asyncpg"))
        async with engine.connect() as connection:
            asked = sa.text("SELECT COUNT(*) FROM person WHERE age > :a AND city = :c")
            assert len((await connection.execute(asked, {"a": 5, "c": "north"})).all()) == 1
            await connection.run_sync(lambda plain: _reflected(sa.inspect(plain)))
        await engine.dispose()

    asyncio.run(whole())


def test_pandas(engine: sa.Engine) -> None:
    asked = sa.text("SELECT city, COUNT(*) AS n FROM person WHERE age > :a GROUP BY city ORDER BY city")
    frame = pandas.read_sql(asked, engine, params={"a": 71})
    assert list(frame["city"]) == ["north", "south"]
    assert str(frame["n"].dtype) == "int64"
    assert len(pandas.read_sql_table("thing", engine)) == 2
    with engine.connect() as connection:
        parts = connection.execution_options(stream_results=True)
        assert [len(part) for part in pandas.read_sql(sa.text("SELECT i FROM number"), parts, chunksize=8000)] == [
            8000, 8000, 4000,
        ]  # fmt: skip


def test_polars(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        assert polars.read_database("SELECT * FROM thing ORDER BY id", connection).row(0) == THING


def test_arrow_database_connectivity(served: Served, spent: Callable[[], Decimal]) -> None:
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
    where = f"postgresql://alice:{quote(PASSWORD)}@127.0.0.1:{served.port}/people"
    with adbc.connect(where) as connection, connection.cursor() as cursor:
        assert connection.adbc_get_table_schema("person").names[:2] == ["id", "age"]
        [database] = connection.adbc_get_objects(depth="all", catalog_filter="people").read_all().to_pylist()
        assert {table["table_name"] for schema in database["catalog_db_schemas"] for table in schema["db_schema_tables"]} >= {
            "loan", "person",
        }  # fmt: skip
        cursor.execute("SELECT COUNT(*) FROM person WHERE city = $1 AND age > $2", ("north", 72))
        assert cursor.fetchone()[0] < 1000
        cursor.execute("SELECT i FROM number")
        assert cursor.fetch_arrow_table().num_rows == ROWS
        cursor.adbc_execute_schema("SELECT city, COUNT(*) FROM person WHERE age > 73 GROUP BY city")
        connection.rollback()
    assert spent() == Decimal("0.1")
    assert polars.read_database_uri(
        "SELECT id, name, day FROM thing WHERE id = 1", where, engine="adbc"
    ).rows() == [(1, "ä 'quoted'", THING[9])]
