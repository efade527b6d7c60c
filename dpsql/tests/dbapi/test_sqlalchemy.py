"""The dialect of SQLAlchemy: URLs, statements, types, reflection, cost, errors, and the tools that stand on it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest
import sqlalchemy as sa
from pandas.errors import DatabaseError as PandasError
from sqlalchemy import exc, types
from sqlalchemy.ext.automap import automap_base
from sqlalchemy.orm import Session

import dpsql
from dpsql.dbapi.sqlalchemy_dialect import DpsqlDialect
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy
from dpsql.tests.dbapi.conftest import POLICY, SCHEMA

MORE = """
CREATE SCHEMA lab;
CREATE TABLE visit (
    id INTEGER, person_id INTEGER REFERENCES person (id), day DATE, cost DECIMAL(9, 2), secret TEXT,
    PRIMARY KEY (id), UNIQUE (person_id, day));
INSERT INTO visit SELECT i, i % 2000, DATE '2020-01-01' + (i % 300)::INT, i % 50, 'x' FROM range(4000) AS r(i);
CREATE TABLE lab.probe ("Code" TEXT PRIMARY KEY, "two words" INTEGER, weight DOUBLE NOT NULL);
INSERT INTO lab.probe VALUES ('a%', 1, 0.5), ('b', 2, 1.5);
CREATE TABLE undeclared (x INTEGER);
CREATE VIEW seen AS SELECT * FROM visit;
"""
DECLARED = """
[tables.visit]
description = "each time that somebody came"
unit = { column = "person_id", references = "person.id" }
max_rows = 6
max_rows_per_group = 3
max_groups = 2
[tables.visit.columns]
id = {}
day = { bounds = [2020-01-01, 2020-12-31], description = "when" }
cost = { bounds = [0, 50], step = 0.5 }
[tables."lab.probe"]
public = true
[tables."lab.probe".columns]
"two words" = { values = [1, 2, 3], description = "how many" }
"""
COUNT = sa.text("SELECT COUNT(*) AS n FROM person")

Open = Callable[..., sa.Engine]


def make(folder: Path) -> Path:
    """Make the data of `conftest` with a second table of people and a table in another schema."""
    with duckdb.connect(str(folder / "people.duckdb")) as database:
        database.execute(SCHEMA + MORE)
    path = folder / "people.toml"
    path.write_text(POLICY + DECLARED)
    open_ledger(load_policy(path), create=True).close()
    return path


@pytest.fixture
def more(tmp_path: Path) -> Path:
    """The policy's path; nothing is spent."""
    return make(tmp_path)


@pytest.fixture
def engine(more: Path) -> sa.Engine:
    """An engine with a budget of its own."""
    return sa.create_engine(f"dpsql:///{more}")


@pytest.fixture
def connection(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection with a budget of its own."""
    with engine.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    """An engine for all that costs nothing: at the end, nothing is spent."""
    engine = sa.create_engine(f"dpsql:///{make(tmp_path_factory.mktemp('common'))}")
    yield engine
    with engine.connect() as connection:
        assert left(connection) == "2"


@pytest.fixture
def free(common: sa.Engine) -> Iterator[sa.Connection]:
    """A connection for a test that costs nothing."""
    with common.connect() as connection:
        yield connection


def left(connection: sa.Connection) -> str:
    return str(connection.exec_driver_sql("SHOW dpsql.budget").scalar_one()).split()[0]


def table(connection: sa.Connection, name: str, schema: str | None = None) -> sa.Table:
    return sa.Table(name, sa.MetaData(), schema=schema, autoload_with=connection)


def refused(connection: sa.Connection, statement: Any, parameters: Any = None) -> exc.DBAPIError:
    with pytest.raises(exc.DBAPIError) as refusal:
        connection.execute(statement, parameters)
    return refusal.value


# --- the URL -----------------------------------------------------------------------------------------------


def test_a_relative_path_and_options(more: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(more.parent)
    engine = sa.create_engine("dpsql:///people.toml?analyst=alice&epsilon=0.05&intervals=0.9")
    with engine.connect() as connection:
        assert left(connection) == "0.15"  # what alice may spend
        assert connection.execute(COUNT).keys() == ["n", "n_low", "n_high"]
        assert left(connection) == "0.1"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("dpsql://", "the dpsql URL names no policy file; write dpsql:///policy.toml"),
        ("dpsql:///", "the dpsql URL names no policy file; write dpsql:///policy.toml"),
        (
            "dpsql://alice@/people.toml",
            "a dpsql URL names a policy file and no host or user; write dpsql:///policy.toml, "
            "or dpsql:////path/to/policy.toml, and ?analyst=... for the analyst",
        ),
        (
            "dpsql:///people.toml?reuse=off",
            'a dpsql URL has no option "reuse"; it takes analyst, epsilon, intervals, accuracy, '
            "and SET sets the rest on a connection",
        ),
        (
            "dpsql:///people.toml?epsilon=1&epsilon=2",
            'the dpsql URL has the option "epsilon" twice; write it once',
        ),
    ],
)
def test_a_url_that_is_wrong(url: str, message: str) -> None:
    with pytest.raises(exc.ArgumentError) as wrong:
        sa.create_engine(url).connect()
    assert str(wrong.value) == message


@pytest.mark.parametrize(
    ("options", "kind", "sqlstate"),
    [
        ("epsilon=7", exc.ProgrammingError, "PV301"),
        ("epsilon=nan", exc.ProgrammingError, "PV301"),
        ("intervals=2", exc.DataError, "22023"),
    ],
)
def test_an_option_of_a_bad_value(
    more: Path, options: str, kind: type[exc.DBAPIError], sqlstate: str
) -> None:
    with pytest.raises(kind) as wrong:
        sa.create_engine(f"dpsql:///{more}?{options}").connect()
    assert wrong.value.orig is not None
    assert wrong.value.orig.sqlstate == sqlstate


def test_a_policy_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(exc.OperationalError, match=r"F0V01: none.toml: cannot be read"):
        sa.create_engine(f"dpsql:///{tmp_path}/none.toml").connect()


def test_a_connection_that_is_handed_in(more: Path) -> None:
    with duckdb.connect() as database:
        database.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, city TEXT)")
        database.execute("CREATE TABLE number AS SELECT 41 AS i; CREATE TABLE thing (x INTEGER)")
        database.execute(MORE.replace("range(4000)", "range(0)"))
        engine = sa.create_engine(f"dpsql:///{more}", connect_args={"connection": database})
        with engine.connect() as connection:
            assert connection.execute(sa.text("SELECT i FROM number")).scalar() == 41


# --- what is never charged ------------------------------------------------------------------------------------


def test_nothing_that_sqlalchemy_does_of_itself_asks_a_query(
    more: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    execute = dpsql.Session.execute

    def recorded(self: dpsql.Session, sql: str, parameters: Any = ()) -> Any:
        asked.append(sql)
        return execute(self, sql, parameters)

    monkeypatch.setattr(dpsql.Session, "execute", recorded)
    for options in ({}, {"poolclass": sa.QueuePool, "pool_pre_ping": True}):
        engine = sa.create_engine(f"dpsql:///{more}", isolation_level="AUTOCOMMIT", **options)
        for _ in range(2):
            with engine.begin() as connection:
                sa.MetaData().reflect(connection)
                sa.MetaData().reflect(connection, schema="lab", views=True)
                inspector = sa.inspect(connection)
                for name in inspector.get_table_names():
                    inspector.get_indexes(name)
                    inspector.get_table_comment(name)
                    inspector.get_check_constraints(name)
                assert engine.dialect.do_ping(connection.connection.dbapi_connection)
        automap_base().prepare(engine)
        engine.dispose()
    assert asked == []
    with sa.create_engine(f"dpsql:///{more}").connect() as connection:
        assert left(connection) == "2"


def test_a_question_is_charged_once(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        first = connection.execute(COUNT).all()
        assert left(connection) == "1.9"
    with engine.connect() as connection:
        assert connection.execute(COUNT).all() == first
        assert left(connection) == "1.9"


def test_several_sets_of_parameters_are_refused_before_any_is_charged(free: sa.Connection) -> None:
    statement = sa.text("SELECT COUNT(*) FROM person WHERE age > :age")
    refusal = refused(free, statement, [{"age": 20}, {"age": 30}])
    assert isinstance(refusal, exc.NotSupportedError)
    assert str(refusal.orig) == (
        "0A000: a statement is executed with one set of parameters at a time\n"
        "HINT: call execute for each set: SQLAlchemy shows the first answer of several alone"
    )
    assert left(free) == "2"


# --- connections -----------------------------------------------------------------------------------------------


def test_an_idle_engine_holds_nothing(more: Path) -> None:
    engine = sa.create_engine(f"dpsql:///{more}")
    assert isinstance(engine.pool, sa.NullPool)
    with engine.connect() as connection:
        connection.execute(COUNT)
        with pytest.raises(duckdb.Error):
            duckdb.connect(str(more.with_suffix(".duckdb")))
    with duckdb.connect(str(more.with_suffix(".duckdb"))) as owner:
        owner.execute("ALTER TABLE undeclared ADD COLUMN y INTEGER")
    with engine.connect() as connection:
        connection.execute(COUNT)


def test_a_pool_hands_no_settings_on(more: Path) -> None:
    engine = sa.create_engine(f"dpsql:///{more}?epsilon=0.05", poolclass=sa.QueuePool, pool_size=1)
    with engine.connect() as connection:
        first = connection.connection.dbapi_connection
        connection.exec_driver_sql("SET dpsql.epsilon = 1")
        connection.exec_driver_sql("SET dpsql.intervals = 0.95")
        connection.rollback()
        assert connection.exec_driver_sql("SHOW dpsql.epsilon").scalar() == "1"
    with engine.connect() as connection:
        assert connection.connection.dbapi_connection is first
        assert connection.exec_driver_sql("SHOW dpsql.epsilon").scalar() == "0.05"
        assert connection.exec_driver_sql("SHOW dpsql.intervals").scalar() == "off"
    engine.dispose()


def test_a_closed_connection_is_replaced(more: Path) -> None:
    engine = sa.create_engine(f"dpsql:///{more}", poolclass=sa.QueuePool, pool_size=1)
    with engine.connect() as connection:
        connection.connection.dbapi_connection.close()
        closed = refused(connection, COUNT)
        assert closed.connection_invalidated
        connection.rollback()
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1
        assert not refused(connection, sa.text("SELECT name FROM person")).connection_invalidated
    engine.dispose()


def test_a_ping_finds_a_closed_connection(more: Path) -> None:
    engine = sa.create_engine(f"dpsql:///{more}", poolclass=sa.QueuePool, pool_size=1, pool_pre_ping=True)
    with engine.connect() as connection:
        driver = connection.connection.dbapi_connection
    driver.close()
    with engine.connect() as connection:
        assert connection.connection.dbapi_connection is not driver
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1
    engine.dispose()


def test_there_are_no_transactions(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "AUTOCOMMIT"
        assert (
            connection.execution_options(isolation_level="AUTOCOMMIT").get_isolation_level() == "AUTOCOMMIT"
        )
        connection.execute(COUNT)
        connection.rollback()
        assert left(connection) == "1.9"
        connection.commit()
        connection.rollback()
        with pytest.raises(exc.ArgumentError, match="Valid isolation levels for 'dpsql' are AUTOCOMMIT"):
            connection.execution_options(isolation_level="SERIALIZABLE")
        with pytest.raises(exc.NotSupportedError, match="only queries are answered, not SAVEPOINT"):
            connection.begin_nested()


# --- statements -------------------------------------------------------------------------------------------------


def test_a_grouped_aggregate_over_a_join(connection: sa.Connection) -> None:
    visit = table(connection, "visit")
    person = visit.metadata.tables["person"]
    statement = (
        sa.select(person.c.city, sa.func.count().label("n"), sa.func.avg(visit.c.cost).label("cost"))
        .join_from(person, visit)
        .where(visit.c.day >= datetime.date(2020, 2, 1), person.c.city.in_(["north", "south"]))
        .group_by(person.c.city)
        .order_by(person.c.city.desc())
    )
    rows = connection.execute(statement).all()
    assert [row.city for row in rows] == ["south", "north"]
    assert all(isinstance(row.n, int) and isinstance(row.cost, Decimal) for row in rows)
    assert left(connection) == "1.9"
    assert connection.execute(statement.limit(1)).all() == rows[:1]
    assert left(connection) == "1.9"


def test_the_statement_cache_keeps_values_apart(free: sa.Connection) -> None:
    number = table(free, "number")
    for least in (3, 7):
        found = free.execute(sa.select(number.c.i).where(number.c.i >= least).order_by(number.c.i)).scalars()
        assert found.all() == list(range(least, 10))
    thing = table(free, "thing")
    for start, end, some in (("a", ":x", "quoted"), ("b", "y", "z")):
        found = [
            free.execute(sa.select(thing.c.small).where(condition)).all()
            for condition in (
                thing.c.name.startswith(start), thing.c.name.endswith(end), thing.c.name.contains(some),
                thing.c.name.contains("%", autoescape=True), ~thing.c.name.startswith("zz"),
                ~thing.c.name.endswith(end + "!"), ~thing.c.name.contains(some + "!"),
            )
        ]  # fmt: skip
        assert found == [[(1,)] if start == "a" else []] * 3 + [[(1,)]] * 4
    assert DpsqlDialect.supports_statement_cache


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        (lambda s: s.offset(8), [8, 9]),
        (lambda s: s.limit(2).offset(1), [1, 2]),
        (lambda s: s.fetch(2), [0, 1]),
        (lambda s: s.fetch(2).offset(7), [7, 8]),
        (lambda s: s.where(s.selected_columns.i.in_([])), []),
        (lambda s: s.where(s.selected_columns.i.not_in([])).limit(1), [0]),
        (lambda s: s.where(sa.cast(s.selected_columns.i, sa.Float(53)) / 2 == 1.5), [3]),
        (lambda s: s.where(s.selected_columns.i / 2 == Decimal("1.5")), [3]),
        (lambda s: s.where(s.selected_columns.i // 2 == 1), [2, 3]),
    ],
)
def test_forms_that_postgres_would_have_otherwise(
    free: sa.Connection, change: Callable[[Any], Any], rows: list[int]
) -> None:
    number = table(free, "number")
    statement = change(sa.select(number.c.i).order_by(number.c.i))
    assert free.execute(statement).scalars().all() == rows


def test_an_empty_list_of_texts(free: sa.Connection) -> None:
    thing = sa.table("thing", sa.column("name", sa.String(30)))
    assert free.execute(sa.select(thing).where(thing.c.name.in_([]))).all() == []


def test_a_table_of_another_schema(free: sa.Connection) -> None:
    probe = table(free, "probe", "lab")
    statement = sa.select(probe.c.Code, probe.c["two words"]).where(probe.c.weight > 1).order_by(probe.c.Code)
    assert free.execute(statement).all() == [("b", 2)]
    aliased = probe.alias()
    assert free.execute(sa.select(aliased.c.Code).where(aliased.c.weight < 1)).all() == [("a%",)]


def test_types_go_through(free: sa.Connection) -> None:
    thing = table(free, "thing")
    row = free.execute(sa.select(thing).where(thing.c.small == 1)).one()
    assert tuple(row) == (
        1, 2, 9007199254740993, Decimal("12.50"), 1.5, 0.1, True, "a 'quoted' % ? :x", datetime.date(2020, 2, 29),
        datetime.datetime(2020, 2, 29, 12, 30, 0, 1),
    )  # fmt: skip
    assert [type(value) for value in row[3:7]] == [Decimal, float, float, bool]
    for column in (thing.c.money, thing.c.flag, thing.c.name, thing.c.day, thing.c.moment, thing.c.double):
        value = row._mapping[column.name]
        assert free.execute(sa.select(thing.c.small).where(column == value)).all() == [(1,)]
        assert free.execute(
            sa.select(thing.c.small).where(column == sa.literal(value, literal_execute=True))
        ).all() == [(1,)]
    assert free.execute(sa.select(thing).where(thing.c.small.is_(None))).one() == (None,) * 10
    apart = sa.literal_column("INTERVAL '1 day'", types.Interval)
    assert free.execute(sa.select(apart)).scalar_one() == datetime.timedelta(days=1)


def test_the_orm(connection: sa.Connection) -> None:
    base = automap_base()
    base.prepare(autoload_with=connection)
    with Session(connection) as session:
        visit = base.classes.visit
        assert (
            session.scalar(sa.select(sa.func.count()).select_from(visit).where(visit.cost > 10)) is not None
        )
        assert session.scalars(sa.select(visit)).all() == []
        with pytest.raises(exc.ProgrammingError, match="PV002"):
            session.scalars(sa.select(visit).where(visit.cost > 10)).all()
        thing = base.metadata.tables["number"]
        assert session.execute(sa.select(thing.c.i).where(thing.c.i == 3)).scalar_one() == 3


# --- refusals -----------------------------------------------------------------------------------------------------


def test_raw_rows_are_refused(free: sa.Connection) -> None:
    refusal = refused(free, sa.select(table(free, "person").c.age))
    assert isinstance(refusal, exc.ProgrammingError)
    assert isinstance(refusal.orig, dpsql.ProgrammingError)
    assert (refusal.orig.sqlstate, str(refusal.orig.position)) == ("PV002", "1:8")
    assert str(refusal.orig).startswith(
        'PV002 at 1:8: column "age" is private and is not inside an aggregate\nHINT: '
    )
    assert left(free) == "2"


_OWNERS = '"number" is the owner\'s, and is not written'


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda t: sa.insert(t).values(i=1), _OWNERS),
        (lambda t: sa.insert(t).values([{"i": 1}, {"i": 2}]), _OWNERS),
        (lambda t: sa.insert(t).from_select(["i"], sa.select(t.c.i)), _OWNERS),
        (lambda t: sa.update(t).values(i=1), "only queries are answered, not UPDATE"),
        (lambda t: sa.delete(t), _OWNERS),
        (lambda t: sa.schema.CreateTable(t), '"number" is a table of the policy'),
        (lambda t: sa.schema.DropTable(t), _OWNERS),
        (lambda t: sa.schema.CreateIndex(sa.Index("of_i", t.c.i)), _OWNERS),
        (lambda t: sa.schema.CreateSequence(sa.Sequence("s")), "CREATE SEQUENCE is not supported"),
        (lambda t: sa.text("TRUNCATE number"), _OWNERS),
    ],
)
def test_nothing_is_written_of_the_owners(
    free: sa.Connection, write: Callable[[sa.Table], Any], said: str
) -> None:
    refusal = refused(free, write(table(free, "number")))
    assert isinstance(refusal, exc.ProgrammingError if '"number"' in said else exc.NotSupportedError)
    assert f"{said}\nHINT: " in str(refusal.orig)


def test_many_rows_are_not_written_either(free: sa.Connection) -> None:
    refusal = refused(free, sa.insert(table(free, "number")), [{"i": 1}, {"i": 2}])
    assert _OWNERS in str(refusal.orig)


def test_a_sequence_is_refused(free: sa.Connection) -> None:
    refusal = refused(free, sa.select(sa.Sequence("s").next_value()))
    assert 'function "nextval" does not exist here' in str(refusal.orig)
    assert not sa.inspect(free).has_sequence("s")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s, c: s.where(c.ilike("%ä%")), "ILIKE takes a pattern of ASCII letters"),
        (lambda s, c: s.where(c.regexp_match("x(?=y)")), "~ does not read this"),
        (lambda s, c: s.fetch(1, with_ties=True), "WITH TIES needs ORDER BY"),
        (lambda s, c: s.where(sa.cast(c, sa.CHAR(5)) == "x"), "char(n) is not supported in a cast"),
        (lambda s, c: s.add_columns(sa.cast(c, sa.LargeBinary)), "this type is not supported in a cast"),
    ],
)
def test_what_sqlalchemy_can_write_and_dpsql_does_not_answer(
    free: sa.Connection, change: Callable[[Any, Any], Any], said: str
) -> None:
    name = table(free, "thing").c.name
    assert said in str(refused(free, change(sa.select(name), name)).orig)


def test_a_spent_budget_and_a_missing_table(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        missing = refused(connection, sa.text("SELECT * FROM undeclared"))
        assert isinstance(missing, exc.ProgrammingError)
        assert missing.orig is not None
        assert missing.orig.sqlstate == "42P01"
        connection.exec_driver_sql("SET dpsql.epsilon = 1")
        for age in (10, 20):
            connection.execute(sa.text("SELECT COUNT(*) FROM person WHERE age > :age"), {"age": age})
        spent = refused(connection, COUNT)
        assert isinstance(spent, exc.OperationalError)
        assert spent.orig is not None
        assert spent.orig.sqlstate == "53V01"
        assert not spent.connection_invalidated


# --- reflection ---------------------------------------------------------------------------------------------------


def test_names(free: sa.Connection) -> None:
    inspector = sa.inspect(free)
    assert inspector.default_schema_name == "main"
    assert inspector.get_schema_names() == ["lab", "main"]
    assert inspector.get_table_names() == ["number", "person", "thing", "visit"]
    assert inspector.get_table_names("main") == inspector.get_table_names()
    assert inspector.get_table_names("lab") == ["probe"]
    assert inspector.get_table_names("nowhere") == []
    for kind in ("view", "materialized_view", "temp_table", "temp_view", "sequence"):
        assert getattr(inspector, f"get_{kind}_names")() == []
    assert inspector.has_schema("lab")
    assert not inspector.has_schema("information_schema")
    assert inspector.has_table("visit")
    assert inspector.has_table("probe", schema="lab")
    assert not inspector.has_table("probe")


@pytest.mark.parametrize("name", ["undeclared", "missing", "seen", "Visit", "sqlite_master", "duckdb_tables"])
def test_an_undeclared_table_is_a_missing_one(free: sa.Connection, name: str) -> None:
    inspector = sa.inspect(free)
    assert not inspector.has_table(name)
    for kind in (
        "columns",
        "pk_constraint",
        "foreign_keys",
        "unique_constraints",
        "indexes",
        "check_constraints",
    ):
        with pytest.raises(exc.NoSuchTableError) as missing:
            getattr(inspector, f"get_{kind}")(name)
        assert str(missing.value) == name
    for ask in (inspector.get_table_comment, inspector.get_view_definition):
        with pytest.raises(exc.NoSuchTableError):
            ask(name)
    with pytest.raises(exc.NoSuchTableError):
        table(free, name)


def test_columns_and_what_may_be_done_with_them(free: sa.Connection) -> None:
    columns = sa.inspect(free).get_columns("visit")
    assert [(c["name"], str(c["type"]), c["nullable"], c["comment"]) for c in columns] == [
        ("id", "INTEGER", False, "COUNT only; GROUP BY needs values, or a delta"),
        (
            "person_id",
            "INTEGER",
            True,
            "whose row it is, as person.id: to join on, and for COUNT(DISTINCT person_id)",
        ),
        (
            "day",
            "DATE",
            True,
            "when; bounds 2020-01-01 to 2020-12-31; COUNT, MEDIAN, percentiles, MIN, MAX, MODE; group keys: 366 values inside the bounds",
        ),
        (
            "cost",
            "NUMERIC(9, 2)",
            True,
            "bounds 0 to 50, step 0.5; COUNT, SUM, AVG, STDDEV, CORR, REGR, MEDIAN, percentiles, MIN, MAX; GROUP BY needs values, or a delta",
        ),
    ]
    person = {c["name"]: (c["nullable"], c["comment"]) for c in sa.inspect(free).get_columns("person")}
    assert person["id"] == (False, "whose row it is: to join on, and for COUNT(DISTINCT id)")
    assert person["city"] == (True, "COUNT, MODE; group keys: 'north', 'south'")
    probe = {c["name"]: c["comment"] for c in sa.inspect(free).get_columns("probe", "lab")}
    assert probe == {
        "Code": "public",
        "two words": "how many; group keys: 1, 2, 3; public",
        "weight": "public",
    }


def test_every_type(free: sa.Connection) -> None:
    found = {column["name"]: column["type"] for column in sa.inspect(free).get_columns("thing")}
    assert {name: type(type_) for name, type_ in found.items()} == {
        "small": types.SMALLINT, "whole": types.INTEGER, "big": types.BIGINT, "money": types.NUMERIC,
        "single": types.REAL, "double": types.DOUBLE_PRECISION, "flag": types.BOOLEAN, "name": types.TEXT,
        "day": types.DATE, "moment": types.TIMESTAMP,
    }  # fmt: skip
    money = found["money"]
    assert isinstance(money, types.NUMERIC)
    assert (money.precision, money.scale) == (9, 2)


def test_keys(free: sa.Connection) -> None:
    inspector = sa.inspect(free)
    assert inspector.get_pk_constraint("person")["constrained_columns"] == ["id"]
    assert inspector.get_pk_constraint("probe", "lab")["constrained_columns"] == ["Code"]
    assert inspector.get_pk_constraint("visit")["constrained_columns"] == ["id"]
    assert inspector.get_pk_constraint("number")["constrained_columns"] == []
    assert inspector.get_unique_constraints("visit") == [{"name": None, "column_names": ["person_id", "day"]}]
    assert inspector.get_unique_constraints("person") == []
    (key,) = inspector.get_foreign_keys("visit")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"], key["referred_schema"]) == (
        ["person_id"], "person", ["id"], None,
    )  # fmt: skip
    assert inspector.get_foreign_keys("person") == inspector.get_indexes("person") == []


def test_comments_of_tables(free: sa.Connection) -> None:
    metadata = sa.MetaData()
    metadata.reflect(free)
    assert sorted(metadata.tables) == ["number", "person", "thing", "visit"]
    assert metadata.tables["person"].comment == 'private, one row per unit in "id"'
    assert metadata.tables["number"].comment == "public, nobody's data: answered exactly and free"
    assert metadata.tables["visit"].comment == (
        'each time that somebody came; private, owned through "person_id" by person.id; '
        "6 rows of a unit count in a result; 3 of them in a group; 2 groups of a unit count"
    )
    assert metadata.tables["visit"].foreign_keys.pop().column is metadata.tables["person"].c.id


# --- tools that stand on it -----------------------------------------------------------------------------------------


def test_pandas_reads_queries(engine: sa.Engine) -> None:
    text = "SELECT city, COUNT(*) AS n, AVG(age) AS age FROM person GROUP BY city ORDER BY city"
    frame = pd.read_sql(text, engine)
    assert frame["city"].tolist() == ["north", "south"]
    assert frame["n"].dtype == "int64"
    with engine.connect() as connection:
        person = table(connection, "person")
        pd.testing.assert_frame_equal(frame, pd.read_sql(sa.text(text), connection))
        mean = sa.func.avg(person.c.age).label("age")
        statement = sa.select(person.c.city, sa.func.count().label("n"), mean).group_by(person.c.city)
        assert pd.read_sql(statement.order_by("city"), connection)["n"].tolist() == frame["n"].tolist()
        numbers = sa.text("SELECT i FROM number WHERE i > :least ORDER BY i")
        assert pd.read_sql(numbers, connection, params={"least": 7})["i"].tolist() == [8, 9]
        assert left(connection) == "1.9"


def test_pandas_reads_a_public_table_and_no_private_one(engine: sa.Engine) -> None:
    assert sorted(pd.read_sql_table("number", engine)["i"]) == list(range(10))
    for read in (pd.read_sql_table, pd.read_sql):  # all columns of a table are a look at it: no row
        assert read("person", engine).empty
    with pytest.raises(PandasError) as refusal:
        pd.read_sql("SELECT city, id FROM person WHERE id > 3", engine)
    assert "is private and is not inside an aggregate\nHINT: aggregate it" in str(refusal.value)
    with pytest.raises(ValueError, match="Table undeclared not found"):
        pd.read_sql_table("undeclared", engine)
    frame = pd.DataFrame({"x": [1, 2], "y": ["a", None]})
    for times in (1, 2):
        frame.to_sql("mine", engine, index=False, if_exists="append")
        assert len(pd.read_sql("SELECT x, y FROM mine", engine)) == 2 * times
    assert sa.inspect(engine).get_table_names(schema="workspace") == ["mine"]
    with pytest.raises(ValueError, match="already exists"):
        frame.to_sql("mine", engine)


def test_what_the_sql_magic_of_notebooks_asks(engine: sa.Engine) -> None:
    """The calls of jupysql and ipython-sql: one connection, texts, a commit or a rollback after each."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("SET dpsql.epsilon = 0.5")).close()
        connection.commit()
        assert not connection.execute(sa.text("SET dpsql.intervals = 0.95")).returns_rows
        assert connection.execute(sa.text("SHOW dpsql.epsilon")).all() == [("0.5",)]
        answer = connection.execute(
            sa.text("SELECT AVG(age) AS age FROM person WHERE city = :city"), {"city": "north"}
        )
        assert list(answer.keys()) == ["age", "age_low", "age_high"]
        assert len(answer.fetchmany(10)) == 1
        connection.commit()
        assert "PV002" in str(refused(connection, sa.text("SELECT city FROM person")))
        connection.rollback()
        plan = connection.execute(sa.text("EXPLAIN SELECT COUNT(*) FROM person"))
        assert list(plan.keys()) == ["QUERY PLAN"]
        assert left(connection) == "1.5"
        assert sa.inspect(connection).get_table_names() == ["number", "person", "thing", "visit"]


def test_polars_reads_queries(engine: sa.Engine) -> None:
    frame = pl.read_database("SELECT i, i * 0.5 AS half FROM number WHERE i > 7 ORDER BY i", engine)
    assert frame["i"].to_list() == [8, 9]
    with engine.connect() as connection:
        assert pl.read_database(COUNT, connection)["n"].dtype == pl.Int64
