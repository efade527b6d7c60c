"""L10 on Spark, on a sample: no text passes the bound that its plan states, and no step has more rows than it states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from dpsql.backends.spark_backend import bound
from dpsql.engine.audit.audit import parameter_of
from dpsql.errors import EngineFailure
from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.relation.expressions import Expr, Literal
from dpsql.relation.intervals import facts_of
from dpsql.relation.types import Kind
from dpsql.tests.support import random_growing_texts, random_joins
from dpsql.tests.support.spark_copy import SparkOwner, in_schema
from dpsql.tests.support.spark_server import SparkServer

from .measured import SALT, fixed_intermediates
from .on_spark import Copies, drawn, open_copies
from .test_growth import MILD, RESTARTS, nested
from .test_growth_rows import ANSWERED, LINEAR, extreme, linear, stated
from .test_neighbours import planned

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def owner(spark: SparkServer) -> Iterator[SparkOwner]:
    with SparkOwner(spark) as made:
        yield made


# --- texts ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grown(owner: SparkOwner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    folder, made = tmp_path_factory.mktemp("grown"), random_growing_texts
    with open_copies(
        folder, owner, made.policy_of(folder), [made.load_extreme], schema=made.SCHEMA
    ) as copies:
        yield copies


def watched(sql: str, most: int) -> str:
    """Return a text that cannot be read where it is longer than it may be: no number ends in an x."""
    too_long = "CAST(CAST(one || 'x' AS INT) AS STRING)"
    return f"element_at(transform(array({sql}), one -> CASE WHEN length(one) > {most} THEN {too_long} ELSE one END), 1)"


def most_of(size: int) -> int:
    """Return the most characters that a text is let have; a planted fault lets it have fewer."""
    return size


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a trap around every printed text that fails where the text is longer than its plan says."""
    original = PrivatePrinter.value

    def value(self: PrivatePrinter, expr: Expr) -> str:
        sql = original(self, expr)
        if expr.type.kind is not Kind.TEXT or isinstance(expr, Literal) or self.dialect.name != "spark":
            return sql
        return watched(sql, most_of(facts_of(expr, self.env).size))

    monkeypatch.setattr(PrivatePrinter, "value", value)
    monkeypatch.setattr("dpsql.plan.backend_sql.print_private.MAX_LENGTH", 300_000)


def run(copies: Copies, sql: str) -> bool:
    """Ask Spark what a statement asks; say whether it is answered. A text that is too long fails there."""
    plan = planned(copies.spark, sql)
    if plan is not None:
        copies.on_spark(plan)
    return plan is not None


@pytest.mark.parametrize("restart", list(RESTARTS)[::3])
def test_no_text_passes_its_bound(grown: Copies, watch: None, restart: str) -> None:
    assert run(grown, nested(restart, 2))


def test_no_text_of_a_random_statement_passes_its_bound(grown: Copies, watch: None) -> None:
    asked = [*MILD, *drawn(random_growing_texts.statements(), 20)]
    assert sum(run(grown, sql) for sql in asked) > len(MILD)


def test_a_text_that_has_grown_would_be_seen(
    grown: Copies, watch: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsql.tests.laws.test_spark_growth.most_of", lambda size: 1)
    with pytest.raises(EngineFailure):
        run(grown, MILD[0])


# --- rows ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def heavy(owner: SparkOwner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    """One person has a hundred rows of each kind, and there is nobody else."""
    folder, made = tmp_path_factory.mktemp("heavy"), random_joins
    with open_copies(
        folder, owner, made.policy_of(folder), [lambda connection: made.load(connection, extreme())], schema=made.SCHEMA
    ) as copies:  # fmt: skip
        made.load(copies.duckdb.connection, extreme())  # whose public rows `stated` counts
        yield copies


def largest_step(copies: Copies, query: BackendQuery, intermediates: list[object]) -> int:
    """Return the most rows that any operator of Spark's gave."""
    parameters: list[object] = [SALT] if query.salted else []
    parameters += [parameter_of(intermediates[value.intermediate], value) for value in query.intermediates]
    with copies.backend.session() as session:
        frame = session.sql(in_schema(query.sql, copies.backend.schemas[0]), args=dict(bound(parameters)))
        frame.toArrow()
        assert frame.executionInfo is not None
        steps = frame.executionInfo.metrics._metrics  # there is no other way to them than a text
        found = [one.value for step in steps for one in step.metrics if one.name == "numOutputRows"]
    return int(max(found))


@pytest.mark.parametrize("sql", [*(sql for sql, _ in list(ANSWERED.values())[::2]), *LINEAR[::3]])
def test_no_step_has_more_rows_than_the_plan_states(heavy: Copies, sql: str) -> None:
    plan, here = heavy.spark.plan(sql), heavy.duckdb.plan(sql)
    intermediates = fixed_intermediates(plan)
    for release, other in zip(plan.releases, here.releases, strict=True):
        places = tuple(range(len(release.measurements)))
        every, others = (replace(one, counted=None) for one in (release, other))
        for query, one in zip(every.queries(places), others.queries(places), strict=True):
            most = max(stated(heavy.duckdb, other, intermediates), linear(one.sql))
            assert largest_step(heavy, query, intermediates) <= most


def test_a_step_that_has_grown_would_be_seen(heavy: Copies) -> None:
    (release,) = heavy.spark.plan(LINEAR[0]).releases
    (query,) = release.queries((0,))
    grown = BackendQuery(
        "SELECT COUNT(*) FROM `main`.`note` AS a JOIN `main`.`note` AS b ON a.person_id = b.person_id", (0,), False, ()
    )  # fmt: skip
    assert largest_step(heavy, query, []) < 1000
    assert largest_step(heavy, grown, []) == 10_000
