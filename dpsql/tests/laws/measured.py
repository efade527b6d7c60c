"""What the printed SQL of a plan gives on a database, without noise, and how far two of these are apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
from hypothesis.vendor.pretty import RepresentationPrinter

from dpsql.backends import Backend, DuckDBBackend
from dpsql.engine.audit.audit import (
    SALT,
    Groups,
    distance,
    drawn_scale,
    fixed_intermediates,
    measure_release,
    parameter_of,
    squared_distance,
)
from dpsql.mechanisms import (
    ATTO,
    FlipChoice,
    Gaussian,
    Gaussians,
    RankSplit,
    SquareRoot,
    Thresholded,
    Truncated,
)
from dpsql.mechanisms.discrete_laplace import bounds_of_exp
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.plan.measures.measurements import Count, Units
from dpsql.plan.planner import Plan, PrivacyParameters, plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.plan.views import build_catalog
from dpsql.policy import Accounting, Neighbours, Policy
from dpsql.relation.catalog import Catalog
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.tests.support.duckdb_pool import empty_duckdb
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import PostgresTwin
from dpsql.tests.support.random_databases import SCHEMA, policy_of
from dpsql.tests.support.random_files import RecordedFiles

__all__ = [
    "REACHED", "SALT", "Groups", "Measured", "World", "compared", "distance", "engine_of", "fixed_intermediates", "loss",
    "measure_release", "parameters_of", "rho_of", "squared_distance", "world",
]  # fmt: skip

REACHED = 1 - Fraction(1, 2**17)
"""What a heavy person reaches of a bound, at least: each of t rows weighs R·U div t, U = 2^20 (soundness.md 1.9)."""

Measured = list[dict[int, Groups]]
"""The exact integers of all releases of a plan, by measurement."""

NOW = 1_600_000_000_000_000


@dataclass(frozen=True, repr=False)
class World:
    """A database with the random schema, and the catalog that the policy makes of it.

    `connection` is a DuckDB, which rows are put into; where the engine is Postgres, `twin` is its copy there, and where
    files are asked, `files` are those.
    """

    connection: duckdb.DuckDBPyConnection
    twin: PostgresTwin | None
    backend: Backend
    policy: Policy
    catalog: Catalog
    files: RecordedFiles | None = None

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        printer.text("World(…)")

    def settle(self, load: Callable[..., None], database: object, order: int = 0) -> None:
        """Put a database's rows in with `load`, in a physical order that depends on `order`."""
        load(self.connection, database, order)
        self.refresh()

    def refresh(self) -> None:
        """Bring the rows of `connection` to the engine."""
        if self.twin is not None:
            self.twin.refresh()
        if self.files is not None:
            self.files.refresh()

    def plan(self, sql: str) -> Plan:
        """Return a statement's plan. Raises Refusal."""
        query = parse_statement(sql)
        assert isinstance(query, AdmittedQuery)
        relation = bind(query, BindingContext(self.catalog, query.text, (), NOW, {}))
        defaults = self.policy.defaults
        replace_one = self.policy.privacy.neighbours is Neighbours.REPLACE_ONE
        together = self.policy.privacy.together
        privacy = PrivacyParameters(
            defaults.epsilon, defaults.delta, defaults.minimum_units, replace_one, together=together,
            accounting=self.policy.privacy.accounting,
        )  # fmt: skip
        return plan(relation, self.catalog, privacy)


@contextmanager
def world(
    folder: Path,
    *,
    replace_one: bool = False,
    policy: Policy | None = None,
    schema: str = SCHEMA,
    server: PostgresServer | None = None,
    views: str = "",
    tables: tuple[str, ...] = (),
) -> Iterator[World]:
    """Open a world in DuckDB, or on a server of Postgres.

    `views`: SQL that makes views over the schema's tables. `tables`: those that are recorded files, by the policy.
    """
    policy = policy or policy_of(folder, replace_one=replace_one)
    with ExitStack() as stack:
        connection = stack.enter_context(empty_duckdb())
        connection.execute(schema)
        files = RecordedFiles(connection, policy, tables) if tables else None
        if files is None:
            twin, backend = engine_of(stack, connection, policy, server, views)
        else:
            twin, backend = None, files.backend
            stack.callback(backend.close_idle)
        with backend.snapshot() as snapshot:
            catalog = build_catalog(policy, snapshot.schema())
        yield World(connection, twin, backend, policy, catalog, files)


def engine_of(
    stack: ExitStack,
    connection: duckdb.DuckDBPyConnection,
    policy: Policy,
    server: PostgresServer | None,
    views: str = "",
) -> tuple[PostgresTwin | None, Backend]:
    """Return the backend over a database, or over its copy on a server of Postgres; the stack ends both."""
    if server is None:
        connection.execute(views)
        return None, DuckDBBackend.over(connection)
    twin = stack.enter_context(PostgresTwin(server, connection, views))
    backend = twin.backend(policy.read_from)
    stack.callback(backend.close_idle)
    return twin, backend


def parameters_of(
    release: ReleasePlan,
    query: BackendQuery,
    intermediates: Sequence[object] = (),
    lists: Sequence[object] = (),
) -> list[object]:
    """Return the parameters of a query of a release. `lists`: the keys of groups that are shown, a list for each."""
    found: list[object] = [SALT] if query.salted else []
    found += [parameter_of(intermediates[value.intermediate], value) for value in query.intermediates]
    return [*found, *(lists or [[] for _ in release.release.keys])] if query.of_shown else found


def rho_of(release: ReleasePlan, number: int, left: Groups, right: Groups) -> Fraction:
    """Return what one measurement's change costs of zCDP: change²/(2 sigma²), or of a pure draw loss²/2 or loss²/8."""
    law = release.measures[number].law
    if isinstance(law, SquareRoot):
        return _squared_of_sums(left, right) / (2 * law.scale**2)
    if isinstance(law, (Gaussian, Gaussians, Thresholded)):
        return squared_distance(release, number, left, right) / (2 * law.scale**2)
    moved = Fraction(distance(release, number, left, right)) / drawn_scale(release, number)
    if number == release.selection or isinstance(release.choices.get(number), FlipChoice):
        return moved**2 / 2
    if number in release.choices:
        return moved**2 / 8
    assert isinstance(law, Truncated)  # each key by itself, at most by one step
    assert all(abs(here - there) <= 1 for here, there in _beside(left, right))
    return moved / drawn_scale(release, number) ** 2 / 2


def _squared_of_sums(left: Groups, right: Groups) -> Fraction:
    """Return the squared distance of running sums by square root, over the groups in their order (soundness.md 1.44)."""
    assert list(left) == list(right)
    changes = [[a - b for a, b in zip(left[key], right[key], strict=True)] for key in left]
    kernel = [
        math.floor(Fraction(256 * math.comb(2 * k, k), 4**k) + Fraction(1, 2)) for k in range(len(changes))
    ]
    steps = (
        sum(kernel[t - s] * int(one) for s, one in enumerate(column[: t + 1]))
        for column in zip(*changes, strict=True)
        for t in range(len(column))
    )
    return Fraction(sum(step**2 for step in steps))


def loss(release: ReleasePlan, left: dict[int, Groups], right: dict[int, Groups]) -> Fraction:
    """Return Σ over measurements, groups and coordinates of |change| / scale: the privacy loss at worst."""
    return sum(
        (Fraction(distance(release, number, left[number], right[number])) / drawn_scale(release, number) for number in left),
        Fraction(0),
    )  # fmt: skip


def compared(plan: Plan, here: Measured, there: Measured, sql: str) -> Fraction:
    """Hold the claim for two databases; return the loss per epsilon."""
    total = Fraction(0)
    for release, left, right in zip(plan.releases, here, there, strict=True):
        if release.is_empty:  # from its text alone: nothing is asked, noised or charged
            assert left == right
            continue
        for number, measurement in enumerate(release.measurements):
            moved = distance(release, number, left[number], right[number])
            assert moved <= measurement.sensitivity, (sql, measurement.kind, moved, measurement.sensitivity)
            # one row in a group is not so of all others together, which a pure draw has, and a zCDP one leaves out (1.34)
            is_claimed = release.is_zcdp or not measurement.bounding.one_a_group
            if is_claimed and number not in release.choices and number != release.selection:
                squared, claimed = (
                    squared_distance(release, number, left[number], right[number]),
                    measurement.squared_sensitivity,
                )
                assert squared <= claimed, (sql, measurement.kind, squared, claimed)
            if isinstance(split := release.choices.get(number), RankSplit):
                check_split(release, number, split)
        if release.counted is not None:
            check_threshold(plan, release, left[release.counted], right[release.counted])
        check_new_keys(plan, release, left, right)
        check_new_keys(plan, release, right, left)
        if release.is_zcdp:
            total += sum(
                (rho_of(release, number, left[number], right[number]) for number in left), Fraction(0)
            )
        else:
            total += loss(release, left, right)
    if plan.privacy.accounting is Accounting.ZCDP:
        claimed_rho = Fraction(plan.rho_atto, ATTO)
        assert total <= claimed_rho <= plan.privacy.epsilon**2 / 2 + Fraction(100, ATTO), sql
        return total / claimed_rho if claimed_rho else Fraction(0)
    assert total <= plan.epsilon <= plan.privacy.epsilon, sql
    blocks = sum((Fraction(*release.release.share) for release in plan.releases), Fraction(0))
    assert plan.delta <= plan.privacy.delta * blocks, sql
    return total / plan.epsilon if plan.epsilon else Fraction(0)


def check_split(release: ReleasePlan, number: int, split: RankSplit) -> None:
    """The choices of each depth cost their part: a unit may have all its weight in one part at each of them (1.21).

    A choice's range is 2·gamma·max(p, q - p) of what a unit weighs, and of rho an eighth of its square.
    """
    ranges: dict[int, Fraction] = {}
    for share, depth in zip(split.between, split.depths, strict=True):
        one = split.choice(share, split.candidates)
        reach = 2 * one.gamma * max(one.p, one.q - one.p) * release.measurements[number].sensitivity
        ranges[depth] = max(reach, ranges.get(depth, Fraction(0)))
    if release.is_zcdp:
        assert sum(reach**2 / 8 for reach in ranges.values()) <= Fraction(
            release.measures[number].rho_atto, ATTO
        )
    else:
        assert sum(ranges.values()) <= release.measures[number].epsilon


def check_threshold(plan: Plan, release: ReleasePlan, left: Groups, right: Groups) -> None:
    """Each key that a step to a neighbour moves, by one, costs its part of epsilon and of delta (soundness.md 1.7).

    They are C at most, or C of the one who goes and C of the one who comes; one of `minimum_units` may be shown for
    its part of delta alone. Of k steps the deltas add up, each by e^(epsilon/k) more (1.19).
    """
    law, number, steps = release.key_law, release.counted, plan.privacy.together
    assert law is not None
    assert number is not None
    assert release.measures[number].law == law
    if isinstance(law, Thresholded):
        check_gaussian_threshold(plan, release, law)
        return
    if release.bounding.of_two is not None:
        check_steps(plan, release, law, sum(abs(here - there) for here, there in _beside(left, right)))
        return
    each = release.bounding.groups * (2 if plan.privacy.replace_one else 1)
    if release.is_zcdp:
        assert steps == 1
        assert each / (2 * law.scale**2) <= Fraction(release.measures[number].rho_atto, ATTO)
        assert each * law.excess <= release.delta
        assert release.tau == plan.privacy.minimum_units + law.bound
        return
    assert steps * each / law.scale <= release.measures[number].epsilon
    growth = 1 / bounds_of_exp(release.measures[number].epsilon / steps, 40)[1]
    assert each * law.excess * sum(growth**i for i in range(steps)) <= release.delta
    assert release.tau == plan.privacy.minimum_units + law.bound
    changes = [abs(here - there) for here, there in _beside(left, right)]
    assert max(changes, default=0) <= steps
    assert sum(changes) <= steps * each


def check_steps(plan: Plan, release: ReleasePlan, law: Truncated, moved: int) -> None:
    """Of rows of two people counts move by several: each step of one costs its part, its delta e^(1/scale) times the
    last one's (soundness.md 1.38)."""
    assert release.counted is not None
    steps = release.measurements[release.counted].sensitivity
    assert moved <= steps
    assert steps / law.scale <= release.measures[release.counted].epsilon
    growth = sum(1 / bounds_of_exp(i / law.scale, 40)[1] for i in range(steps))
    assert law.excess * growth <= release.delta
    assert release.tau == plan.privacy.minimum_units + law.bound


def check_gaussian_threshold(plan: Plan, release: ReleasePlan, law: Thresholded) -> None:
    """rho covers the counts of all groups, delta the chance that one of the changed units alone is shown (1.25)."""
    assert release.counted is not None
    steps, groups = plan.privacy.together, release.bounding.groups
    squared = steps**2 * groups * (2 if plan.privacy.replace_one else 1)
    assert Fraction(squared) / (2 * law.scale**2) <= Fraction(
        release.measures[release.counted].rho_atto, ATTO
    )
    for people in range(1, steps + 1):
        assert (
            Fraction(steps * groups, people) * Gaussian(law.scale).tail(law.bound + 1 - people)
            <= release.delta
        )
    assert release.tau == plan.privacy.minimum_units + law.bound


def _beside(left: Groups, right: Groups) -> Iterator[tuple[int, int]]:
    for key in left.keys() | right.keys():
        yield left.get(key, (0,))[0], right.get(key, (0,))[0]


def check_new_keys(
    plan: Plan, release: ReleasePlan, left: dict[int, Groups], right: dict[int, Groups]
) -> None:
    """With undeclared keys each of k units brings at most C new ones, and they are alone in each (soundness.md 1.7)."""
    if release.counted is None:
        return
    there, here = left[release.counted], right[release.counted]
    new = [key for key, (count,) in here.items() if count and there.get(key, (0,)) == (0,)]
    many = plan.privacy.together
    if release.bounding.of_two is not None:
        assert sum(here[key][0] for key in new) <= release.measurements[release.counted].sensitivity
        return
    assert sum(here[key][0] for key in new) <= many * release.bounding.groups
    assert all(1 <= here[key][0] <= many for key in new)
    assert release.measurements[release.counted].kind in (Units.kind, Count.kind)
