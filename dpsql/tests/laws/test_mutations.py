"""The laws' tests can fail: each known way to be wrong turns one of them red (soundness.md 5.2(5)).

Every mutant changes the running code or the printed SQL in process, and is undone. A mutant that no longer
fits the code fails here by name: then it needs a new form, not to be taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import pytest

from dpsql.mechanisms import Laplace, Law
from dpsql.plan.backend_sql import print_release
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.plan.measures import measurements
from dpsql.plan.measures.measurements import WEIGHT
from dpsql.plan.release_plan import Planned, ReleasePlan
from dpsql.relation.expressions import Expr
from dpsql.release import privatise as noised
from dpsql.release import run
from dpsql.release.run import PlanRunner
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.random_databases import Database, load

from .conftest import Desk, OpenDesk
from .examples import HEAVY, NOBODY, WIDE, visit
from .measured import World, measure_release, parameters_of, world
from .sql_faults import DOUBLES, OF_VISITS, ORDER, SqlFault
from .test_charge_first import watched_session
from .test_neighbours import check, neighbours_of
from .test_noise_always_on import test_every_coordinate_gets_a_draw_of_its_own as every_coordinate_is_noised

Patch = pytest.MonkeyPatch


@pytest.fixture
def adding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("mutant")) as made:
        yield made


def rewrite(patch: Patch, change: Callable[[str], str]) -> list[int]:
    """Change all printed SQL; return a list that grows when a change did take place."""
    original = ReleasePlan.queries
    changed: list[int] = []

    def queries(self: ReleasePlan, wanted: tuple[int, ...], chosen: Any = None) -> tuple[BackendQuery, ...]:
        found = []
        for query in original(self, wanted, chosen):
            sql = change(query.sql)
            changed.extend([1] * (sql != query.sql))
            found.append(replace(query, sql=sql))
        return tuple(found)

    patch.setattr(ReleasePlan, "queries", queries)
    return changed


def holds(world: World, sql: str, database: Database = HEAVY) -> None:
    """The law L1 for one statement; a failing engine counts as red."""
    assert check(world, sql, database, neighbours_of(world, database, NOBODY)) is not None


def by_order(
    world: World, sql: str, settle: Callable[[World, int], None] = lambda w, o: load(w.connection, HEAVY, o)
) -> None:
    """The law L3 for one statement: rows in other physical orders give the same integers."""
    (release,) = world.plan(sql).releases
    found = []
    for order in range(3):
        settle(world, order)
        with world.backend.snapshot() as snapshot:
            found.append(measure_release(release, snapshot))
    assert all(other == found[0] for other in found)


CITY = "SELECT city, COUNT(*) FROM visit GROUP BY city"
PEOPLE = "SELECT city, COUNT(DISTINCT person_id) FROM visit GROUP BY city"


@pytest.mark.parametrize(
    "sql",
    [CITY, PEOPLE, "SELECT COUNT(DISTINCT n) FROM visit", "SELECT city, COUNT(*) FILTER (WHERE flag), COUNT(*) FROM visit GROUP BY city", "SELECT AVG(x) FROM visit",
     "SELECT tag, COUNT(*) FROM visit GROUP BY tag", "SELECT city, SUM(x) FROM visit GROUP BY city"],
)  # fmt: skip
def test_the_laws_hold_without_a_mutant(adding: World, sql: str) -> None:
    holds(adding, sql)
    by_order(adding, sql)


@pytest.mark.parametrize("fault", OF_VISITS, ids=lambda fault: fault.name)
def test_a_fault_of_printed_sql(adding: World, monkeypatch: Patch, fault: SqlFault) -> None:
    holds(adding, fault.sql, fault.database)
    changed = rewrite(monkeypatch, fault.plant)
    with pytest.raises(AssertionError):
        holds(adding, fault.sql, fault.database)
    assert changed


def scaled(patch: Patch, by: Fraction) -> None:
    """Draw all Laplace noise at a multiple of its scale, for as long as the patch stands."""
    original = vars(Planned)["law"].func

    def law(self: Planned) -> Law:
        wanted = original(self)
        return Laplace(wanted.scale * by) if isinstance(wanted, Laplace) else wanted

    patch.setattr(Planned, "law", property(law))


def test_half_the_scale(adding: World, monkeypatch: Patch) -> None:
    scaled(monkeypatch, Fraction(1, 2))
    with pytest.raises(AssertionError):
        holds(adding, CITY)


DISTINCT = "SELECT city, COUNT(DISTINCT tag) FROM visit GROUP BY city"


@pytest.mark.parametrize(
    "sql",
    [
        PEOPLE, "SELECT city, flag, COUNT(DISTINCT person_id) FROM visit GROUP BY city, flag",
        DISTINCT, "SELECT COUNT(DISTINCT tag) FROM visit",
    ],
)  # fmt: skip
def test_keep_one_group_or_value_too_many(adding: World, monkeypatch: Patch, sql: str) -> None:
    """In a domain of more than twice as many all are ranked, in another one the heavy units' alone."""
    original = print_release.ReleasePrinter._kept

    def kept(self: Any, source: str, hashes: list[str], names: list[str], most: int, *more: Any) -> list[str]:
        return original(self, source, hashes, names, most + 1, *more)

    holds(adding, sql, WIDE)
    monkeypatch.setattr(print_release.ReleasePrinter, "_kept", kept)
    with pytest.raises(AssertionError):
        holds(adding, sql, WIDE)


@pytest.mark.parametrize("sql", [DISTINCT, "SELECT COUNT(DISTINCT tag) FROM visit"])
def test_count_distinct_as_if_one_value_counted(adding: World, monkeypatch: Patch, sql: str) -> None:
    monkeypatch.setattr(measurements.DistinctValues, "added", 1)
    with pytest.raises(AssertionError):
        holds(adding, sql, WIDE)


def test_forget_the_clamp_of_a_value(adding: World, monkeypatch: Patch) -> None:
    far = Database((), (visit(1, n="2147483647"), visit(2, n="1")))
    monkeypatch.setattr("dpsql.plan.dialects.dialect.Dialect.clamp", lambda self, sql, lo, hi, **_: sql)
    with pytest.raises(AssertionError):
        holds(adding, "SELECT city, SUM(n) FROM visit GROUP BY city", far)


def test_leave_a_count_exact(desk: OpenDesk, monkeypatch: Patch) -> None:
    """AVG over an exact n, in the general form: one coordinate of a measurement goes out without noise."""
    original = noised.privatise

    def mutant(
        exact: Any, plan: ReleasePlan, number: int, groups: Any, noise: tuple[Any, ...], ask: Any
    ) -> Any:
        return original(exact, plan, number, groups, (*noise[:-1], noise[-1] * 0), ask)

    monkeypatch.setattr(run, "privatise", mutant)
    with pytest.raises(AssertionError):
        every_coordinate_is_noised(desk)


def test_number_groups_without_a_total_order(adding: World, monkeypatch: Patch) -> None:
    """Among equals the engine takes what it met first; small tables happen to be sorted, 9000 groups are not."""

    def many(world: World, order: int) -> None:
        world.connection.execute("DELETE FROM visit")
        rows = f"SELECT i % 3000, chr((97 + i // 3000)::INTEGER) FROM range(9000) t(i) ORDER BY hash(i + {order})"
        world.connection.execute(f"INSERT INTO visit (person_id, city) {rows}")

    by_order(adding, ORDER.sql, many)
    changed = rewrite(monkeypatch, ORDER.plant)
    with pytest.raises(AssertionError):
        by_order(adding, ORDER.sql, many)
    assert changed


def test_sum_doubles(adding: World, monkeypatch: Patch) -> None:
    expected = sum(2**60 - number for number in range(64))
    (release,) = adding.plan(DOUBLES.sql).releases
    load(adding.connection, DOUBLES.database)
    with adding.backend.snapshot() as snapshot:
        assert measure_release(release, snapshot)[0] == {(): (WEIGHT * expected,)}
        changed = rewrite(monkeypatch, DOUBLES.plant)
        assert measure_release(release, snapshot)[0] != {(): (WEIGHT * expected,)}
    assert changed


def test_count_rows_of_one_of_disjoint_counts(adding: World, monkeypatch: Patch) -> None:
    """Two counts of disjoint rows, weighed by the rows of the one, move by more than R together (soundness.md 1.5)."""

    def of_one(measured: Iterable[measurements.Measurement]) -> tuple[Expr, ...]:
        measured = tuple(measured)
        terms = (term for one in measured for mask in one.masks for term, _ in mask.terms)
        return measurements.counted_in(measured) or tuple(islice(terms, 1))

    monkeypatch.setattr(print_release, "counted_in", of_one)
    holds(adding, "SELECT COUNT(*) FROM visit")
    with pytest.raises(AssertionError):
        holds(adding, "SELECT COUNT(*) FILTER (WHERE flag), COUNT(*) FROM visit")


def test_charge_after_the_run(desk: OpenDesk, monkeypatch: Patch) -> None:
    original = PlanRunner.from_engine

    def late(self: PlanRunner, snapshot: Any, secret: Any) -> Any:
        for rows in self.rows:
            for query in rows.plan.queries(tuple(range(len(rows.plan.measurements)))):
                list(snapshot.run(query.sql, parameters_of(rows.plan, query)))
        return original(self, snapshot, secret)

    monkeypatch.setattr(PlanRunner, "from_engine", late)
    session, watched = watched_session(desk)
    session.execute(CITY)
    assert set(watched.spent_at) != {10**9}


def test_believe_that_a_unit_has_one_row(adding: World, monkeypatch: Patch) -> None:
    """L9: a declaration that stands in for a constraint."""
    visits = adding.catalog.tables["visit"]
    trusting = replace(visits, keys=(("person_id",),))
    catalog = replace(adding.catalog, tables={**adding.catalog.tables, "visit": trusting})
    with pytest.raises(AssertionError):
        holds(replace(adding, catalog=catalog), "SELECT COUNT(*) FROM visit")


def test_scale_for_replace_one_as_for_add_remove(tmp_path_factory: pytest.TempPathFactory) -> None:
    with world(tmp_path_factory.mktemp("rep"), replace_one=True) as replacing:
        newcomer = Database((), tuple(visit(9, city="c", n="1") for _ in range(4)))
        here = Database((), tuple(visit(1, city="a", n="1") for _ in range(4)))
        from dpsql.tests.support.random_databases import replaced

        neighbour = [replaced(here, 1, newcomer)]
        assert check(replacing, CITY, here, neighbour) is not None
        with pytest.MonkeyPatch.context() as patch:
            scaled(patch, Fraction(3, 4))
            two_cities = Database((), tuple(visit(1, city=c) for c in ("a", "b") for _ in range(4)))
            arrival = Database((), tuple(visit(9, city="c") for _ in range(4)) + (visit(9, city=None),) * 4)
            with pytest.raises(AssertionError):
                check(replacing, CITY, two_cities, [replaced(two_cities, 1, arrival)])


def test_answer_the_empty_sum_with_null(desk: OpenDesk) -> None:
    """The eye of the L6 tests: NULL for no rows would be seen."""
    opened: Desk = desk(ZeroNoise())
    opened.settle(NOBODY)
    assert opened.session.execute("SELECT SUM(n) FROM visit").rows[0][0] is not None
