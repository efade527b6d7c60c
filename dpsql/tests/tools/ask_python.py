"""What tools of Python ask, through themselves: run by `make tools` in their own environment, against a server.

Prints a line for each check: ok or failed, its name, and what came.
"""

from __future__ import annotations

import datetime
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
PORT = int(sys.argv[1])
AT = {"host": "127.0.0.1", "port": PORT, "user": "alice", "password": sys.argv[2], "database": "people"}
URL = f"postgresql+psycopg2://alice:{sys.argv[2].replace(' ', '%20')}@127.0.0.1:{PORT}/people"


def check(name: str, ask: Callable[[], Any]) -> None:
    try:
        print("ok", name, str(ask()).replace("\n", " ")[:60], sep="\t", flush=True)
    except Exception as error:  # noqa: BLE001  # each tool has its own
        print(
            "failed", name, f"{type(error).__name__} {error}".replace("\n", " ")[:300], sep="\t", flush=True
        )


def django_orm() -> None:
    import django
    from django.conf import settings
    from django.db import models
    from django.db.models import Avg, Count, Max, Q, Sum
    from django.db.models.functions import ExtractYear, TruncMonth

    base = {"ENGINE": "django.db.backends.postgresql", **{key.upper(): value for key, value in AT.items()}}
    base["NAME"] = base.pop("DATABASE")
    settings.configure(USE_TZ=True, TIME_ZONE="UTC", DATABASES={"default": base}, INSTALLED_APPS=[])
    django.setup()

    class Person(models.Model):
        id = models.IntegerField(primary_key=True)
        age, city, born = models.IntegerField(), models.TextField(), models.DateField()
        income = models.DecimalField(max_digits=9, decimal_places=2)

        class Meta:
            app_label, managed, db_table = "asked", False, "person"

    class Loan(models.Model):
        loan_id = models.IntegerField(primary_key=True)
        person = models.ForeignKey(Person, on_delete=models.CASCADE, db_column="person_id")
        amount, taken = models.IntegerField(), models.DateTimeField()

        class Meta:
            app_label, managed, db_table = "asked", False, "loan"

    people, loans, spring = Person.objects, Loan.objects, datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC)
    check("django count", people.count)
    check("django exists", people.exists)
    check("django exists where", people.filter(age__gt=3).exists)
    check("django first", people.first)
    check("django head", lambda: list(people.all()[:5]))
    check("django aggregate", lambda: people.aggregate(a=Avg("age"), s=Sum("income"), m=Max("age")))
    check("django group", lambda: list(people.values("city").annotate(n=Count("id")).order_by("-n")))
    check("django icontains", people.filter(city__icontains="nor").count)
    check("django in", people.filter(city__in=["north"]).count)
    check("django filter", lambda: people.aggregate(n=Count("id", filter=Q(age__gt=30))))
    check("django since", loans.filter(taken__gte=spring).count)
    check("django year", loans.filter(taken__year=2024).count)
    check("django day", loans.filter(taken__date=spring.date()).count)
    check(
        "django year of birth",
        lambda: len(people.annotate(y=ExtractYear("born")).values("y").annotate(n=Count("id"))),
    )
    check(
        "django month",
        lambda: len(loans.annotate(m=TruncMonth("taken")).values("m").annotate(n=Count("loan_id"))),
    )
    check("django join", lambda: list(loans.values("person__city").annotate(s=Sum("amount"))))


def ibis_tables() -> None:
    import ibis

    connection = ibis.postgres.connect(**AT)
    person, loan = connection.table("person"), connection.table("loan")
    check("ibis tables", connection.list_tables)
    check("ibis schema", person.schema)
    check("ibis head", person.head().execute)
    check("ibis count", person.count().execute)
    check("ibis group", person.group_by("city").agg(n=person.count(), a=person.age.mean()).execute)
    check("ibis ilike", person.filter(person.city.ilike("N%")).count().execute)
    check("ibis isin", person.filter(person.city.isin(["north"])).count().execute)
    check("ibis median", person.age.median().execute)
    check("ibis max", person.age.max().execute)
    check("ibis std", person.age.std().execute)
    check("ibis month", loan.group_by(m=loan.taken.truncate("M")).agg(n=loan.count()).execute)
    check("ibis since", loan.filter(loan.taken >= ibis.timestamp("2024-03-01")).count().execute)
    check("ibis date", person.filter(person.born >= ibis.date(1980, 1, 1)).count().execute)
    check(
        "ibis join",
        loan.join(person, loan.person_id == person.id).group_by("city").agg(s=loan.amount.sum()).execute,
    )


def sqlalchemy_orm() -> None:
    import pandas
    import sqlalchemy as sa
    from sqlalchemy.orm import Session, declarative_base

    engine = sa.create_engine(URL)

    class Person(declarative_base()):  # type: ignore[misc]
        __tablename__ = "person"
        id, age, city = sa.Column(sa.Integer, primary_key=True), sa.Column(sa.Integer), sa.Column(sa.Text)

    with Session(engine) as session:
        count = session.query(sa.func.count()).select_from(Person)
        check("sqlalchemy count", session.query(Person).count)
        check("sqlalchemy first", session.query(Person).first)
        check("sqlalchemy exists", session.query(session.query(Person).exists()).scalar)
        check("sqlalchemy ilike", count.filter(Person.city.ilike("n%")).scalar)
        check("sqlalchemy any_", count.filter(Person.age == sa.any_(sa.literal([1, 2, 3]))).scalar)
        check("sqlalchemy in_", count.filter(Person.age.in_([1, 2, 3])).scalar)
    check("sqlalchemy columns", lambda: sa.inspect(engine).get_columns("person", schema="public")[0]["name"])
    check(
        "pandas group",
        lambda: pandas.read_sql("SELECT city, COUNT(*) AS n FROM person GROUP BY city", engine),
    )
    check("pandas table", lambda: pandas.read_sql_table("thing", engine))


def great_expectations() -> None:
    import great_expectations as gx
    from great_expectations import expectations as expected

    context = gx.get_context(mode="ephemeral")
    source = context.data_sources.add_postgres("people", connection_string=URL)
    check(
        "great expectations table",
        lambda: source.add_table_asset("person", table_name="person", schema_name="public"),
    )
    head = source.get_asset("person").add_batch_definition_whole_table("rows").get_batch()
    check("great expectations head", lambda: head.head(5))

    def suite() -> bool:
        query = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM person GROUP BY city"
        batch = source.add_query_asset("by city", query=query).add_batch_definition_whole_table("all")
        asked = gx.ExpectationSuite(
            name="by city",
            expectations=[
                expected.ExpectColumnValuesToBeBetween(column="n", min_value=100, max_value=5000),
                expected.ExpectTableRowCountToEqual(value=2),
                expected.ExpectColumnValuesToNotBeNull(column="city"),
                expected.ExpectColumnMeanToBeBetween(column="a", min_value=10, max_value=90),
                expected.ExpectColumnValuesToBeInSet(column="city", value_set=["north", "south"]),
            ],
        )
        found = gx.ValidationDefinition(name="by city", data=batch, suite=context.suites.add(asked))
        result = context.validation_definitions.add(found).run()
        assert result.success, [one.exception_info for one in result.results if not one.success]
        return bool(result.success)

    def counts() -> str:
        """Row expectations over people's rows: how many values are not as expected; none of the values is asked for."""
        batch = source.get_asset("person").get_batch_definition("rows")
        asked = gx.ExpectationSuite(
            name="rows",
            expectations=[
                expected.ExpectColumnValuesToNotBeNull(column="id"),
                expected.ExpectColumnValuesToBeUnique(column="id"),
                expected.ExpectColumnValuesToBeBetween(column="age", min_value=0, max_value=50),
                expected.ExpectColumnValuesToBeInSet(column="age", value_set=list(range(10))),
            ],
        )
        found = gx.ValidationDefinition(name="rows", data=batch, suite=context.suites.add(asked))
        result = context.validation_definitions.add(found).run(
            result_format={"result_format": "BASIC", "partial_unexpected_count": 0}
        )
        said = [
            (one.result.get("element_count"), one.result.get("unexpected_count")) for one in result.results
        ]
        assert all(None not in one for one in said), [one.exception_info for one in result.results]
        assert sorted(count > 100 for _, count in said) == [False, False, True, True], said
        assert [count for _, count in said].count(0) == 2, said  # what the schema proves, exactly
        rows = expected.UnexpectedRowsExpectation(
            unexpected_rows_query="SELECT * FROM {batch} WHERE age > 30"
        )
        assert not batch.get_batch().validate(rows).success, "no row would read as: none is unexpected"
        return str(said)

    check("great expectations suite", suite)
    check("great expectations counts", counts)


def jupysql() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "sql")
    shell.run_line_magic("sql", URL)
    check("jupysql count", lambda: shell.run_line_magic("sql", "SELECT COUNT(*) FROM person"))
    check("jupysql preview", lambda: shell.run_line_magic("sql", "SELECT * FROM person LIMIT 3"))
    check("jupysql tables", lambda: shell.run_line_magic("sqlcmd", "tables"))
    check("jupysql columns", lambda: shell.run_line_magic("sqlcmd", "columns --table person"))


for tool in (django_orm, ibis_tables, sqlalchemy_orm, great_expectations, jupysql):
    tool()
