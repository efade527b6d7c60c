"""Running sums by square root (soundness.md 1.44): no neighbour is further from them than is claimed, they are drawn once
each and undone without a bias, and no one takes them for the numbers of groups."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings

from dpsql import Session
from dpsql.engine import batch
from dpsql.engine.proofs import prove_ledger
from dpsql.errors import Refusal
from dpsql.mechanisms import ATTO, Gaussian, Law, SquareRoot
from dpsql.mechanisms.laws.square_root import squared_of, sums_of
from dpsql.plan.planner import Plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Policy, parse_policy
from dpsql.release import privatise, verifying
from dpsql.release.estimate import told_by_root
from dpsql.release.facts import read_facts
from dpsql.release.levels import with_levels
from dpsql.release.released import declared_groups
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.testing.injected_noise import CountingNoise, ZeroNoise
from dpsql.tests.mechanisms.test_square_root import moved
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, databases, load, policy_text, without
from dpsql.verify import verify
from dpsql.verify.certificate import Certificate

from .conftest import OpenDesk
from .examples import NOBODY, ORDINARY, REPEATED, person
from .measured import World, world
from .planting import plant
from .test_levels import answered, coverage, running
from .test_neighbours import measured_here, neighbours_of

FUZZ = settings(REPEATED, max_examples=tried(2, 12))
AGES = "SELECT age, SUM(COUNT(*)) OVER (ORDER BY age) AS n FROM person GROUP BY age"
SCORES = "SELECT age, SUM(SUM(score)) OVER (ORDER BY age) AS n FROM person GROUP BY age"
COUNTS = "SELECT age, COUNT(*) FROM person GROUP BY age"
VISITS = "SELECT day, SUM(COUNT(*)) OVER (ORDER BY day) AS n FROM visit GROUP BY day"
FIRST = Database((person(1, age="0", score="9"), person(2, age="120", score="9")), ())
"""Who goes moves every sum, or the last ones alone."""
Patch = pytest.MonkeyPatch


def policy_in_rho(folder: Path, *, replace_one: bool = False, norm: bool = False) -> Policy:
    text = policy_text(replace_one=replace_one)
    for old, new in (
        ("[privacy]", '[privacy]\naccounting = "zcdp"'),
        ("age = { bounds = [0, 120] }", "age = { bounds = [0, 120], complete = true }"),
        ("[tables.visit]", "[tables.visit]\nmax_norm = { day = 2 }" if norm else "[tables.visit]"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return parse_policy(text, folder / "laws.toml")


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("adding")
    with world(folder, policy=policy_in_rho(folder, norm=True), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("replacing")
    with world(folder, policy=policy_in_rho(folder, replace_one=True), server=engine) as made:
        yield made


def summed(made: World, sql: str) -> Plan:
    plan = with_levels(made.plan(sql), made.catalog)
    (release,) = plan.releases
    assert all(isinstance(one.law, SquareRoot) for one in release.measures), sql
    return plan


# --- the numbers ------------------------------------------------------------------------------------------------


def test_no_neighbour_of_a_small_table_is_further_than_a_column() -> None:
    """Of all tables of up to four places and two people in each, and all that come, go or move: |C·(x - x')|²."""
    for places in range(1, 5):
        reached = set[int]()
        for counts in itertools.product(range(3), repeat=places):
            for come, go in itertools.product(range(-1, places), repeat=2):
                other = list(counts)
                for place, step in ((come, 1), (go, -1)):
                    if place >= 0:
                        other[place] += step
                far = sum((a - b) ** 2 for a, b in zip(moved(counts), moved(other), strict=True))
                times = (come >= 0) + (go >= 0)
                assert far <= times * squared_of(places)
                if times == 1:
                    reached.add(far)
        assert max(reached) == squared_of(places)


# --- the loss ---------------------------------------------------------------------------------------------------


def check(made: World, plan: Plan, database: Database, neighbours: Sequence[Database]) -> Fraction:
    """Hold that sums of neighbours are no further apart than is claimed; return the largest loss, of what is charged."""
    (release,) = plan.releases
    made.settle(load, database)
    here, worst = measured_here(made, plan), Fraction(0)
    assert here is not None
    for order, neighbour in enumerate(neighbours, 1):
        made.settle(load, neighbour, order)
        there = measured_here(made, plan)
        assert there is not None
        lost = Fraction(0)
        for number, one in enumerate(release.measures):
            left, right = here[0][number], there[0][number]
            assert list(left) == list(right)
            squared = 0
            for place in range(one.measurement.size):
                change = [left[key][place] - right[key][place] for key in left]
                squared += sum(step**2 for step in moved(change))
            assert squared <= one.squared_sensitivity
            lost += Fraction(squared) / (2 * one.law.scale**2)
        assert lost <= Fraction(plan.rho_atto, 10**18)
        worst = max(worst, lost / Fraction(plan.rho_atto, 10**18))
    return worst


@pytest.mark.parametrize("sql", [AGES, SCORES])
@FUZZ
@given(databases())
@example(FIRST)
@example(ORDINARY)
def test_a_person_moves_the_sums_by_no_more_than_is_charged(
    adding: World, replacing: World, sql: str, database: Database
) -> None:
    for made in (adding, replacing):
        check(made, summed(made, sql), database, neighbours_of(made, database, NOBODY))


def test_the_charge_is_reached(adding: World) -> None:
    assert check(adding, summed(adding, AGES), FIRST, [without(FIRST, 1)]) > Fraction(99, 100)


def test_a_table_of_many_rows_has_levels(adding: World) -> None:
    plan = with_levels(adding.plan(VISITS), adding.catalog)
    assert plan.strategies[0].levels
    assert all(isinstance(one.law, Gaussian) for release in plan.releases for one in release.measures)


# --- what is drawn ----------------------------------------------------------------------------------------------


class Noted(CountingNoise):
    """Noise whose laws are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.laws: list[tuple[Law, int]] = []

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        self.laws.append((law, count))
        return super().draw(law, count)


def drawn(release: ReleasePlan, counts: Sequence[int]) -> tuple[list[int], Noted]:
    """Return what is drawn of groups with so many rows, of which those without are not sent, and the noise on it."""
    noise, found = Noted(), privatise.Exact()
    groups = declared_groups([(i,) for i in range(len(counts))], [release.release.keys[0].type])
    sent = [i for i, count in enumerate(counts) if count]
    found.add([list(sent)], {(0, 0): [counts[i] for i in sent]}, len(sent))
    added = privatise.draw(release, 0, groups.size, noise)
    released = privatise.privatise(found, release, 0, groups, added, lambda *asked: found)
    return released.values[0].tolist(), noise


def check_drawn(release: ReleasePlan) -> None:
    """Hold that each sum of the exact numbers of all groups has one draw of its own, of the law that was claimed."""
    for counts in ([0, 0, 3, 0, 1, 0], [2, 0, 0, 0, 0, 7], [0] * 6):
        values, noise = drawn(release, counts)
        assert values == [one + added for one, added in zip(moved(counts), noise.given, strict=True)]
        assert noise.laws == [(Gaussian(release.measures[0].law.scale), 6)]


def test_each_sum_of_exact_numbers_has_noise_of_its_own(adding: World) -> None:
    check_drawn(summed(adding, AGES).releases[0])


def test_without_noise_running_totals_are_exact(desk: OpenDesk, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    totals, counts = (
        answered(opened(desk, folder, FIRST, ZeroNoise()), sql)[0]
        for folder, sql in zip(folders, (AGES, COUNTS), strict=True)
    )
    assert totals == running(counts)


# --- the store --------------------------------------------------------------------------------------------------


def opened(desk: OpenDesk, folder: Path, database: Database, noise: ZeroNoise | None = None) -> Session:
    folder.mkdir(exist_ok=True)
    made = desk(noise, policy=policy_in_rho(folder), folder=folder)
    made.settle(database)
    return made.session


def test_they_are_charged_once_and_groups_for_what_is_missing(desk: OpenDesk, tmp_path: Path) -> None:
    session = opened(desk, tmp_path, ORDINARY)
    totals, price = answered(session, AGES)
    assert price == session.settings.epsilon
    assert answered(session, AGES) == (totals, 0)
    assert "by a square root" in " ".join(str(session.explain(AGES)).split())
    counts, price = answered(session, COUNTS)
    assert 0 < price < session.settings.epsilon  # what is missing beside what the sums tell
    assert answered(session, COUNTS) == (counts, 0)
    totals, price = answered(session, AGES)
    assert price == 0
    assert totals == running(counts)


def test_asked_again_for_more_only_what_is_missing_is_drawn(desk: OpenDesk, tmp_path: Path) -> None:
    """And the ledger's proofs hold of it."""
    session = opened(desk, tmp_path, ORDINARY)
    session.execute("SET dpsql.epsilon = 0.3")
    before, _ = spent(session, AGES)
    session.execute("SET dpsql.epsilon = 0.5")
    after, notes = spent(session, AGES)
    assert (before, after) == (45 * 10**15, 80 * 10**15)
    assert any("0.08 of rho more; 0.045 is stored" in note for note in notes)
    assert spent(session, AGES)[0] == 0
    proofs = list(prove_ledger(session.dataset.store, 9))
    assert len(proofs) == 2
    assert not any(one.is_wrong for one in proofs)
    assert all(one.proof is not None for one in proofs)


def test_beyond_a_step_of_the_groups_noise_sums_are_drawn_too(desk: OpenDesk, tmp_path: Path) -> None:
    """Where noise on a group alone would be less than a step, that on sums is not."""
    session = opened(desk, tmp_path, ORDINARY)
    session.execute("SET dpsql.epsilon = 1.5")
    assert "by a square root" in " ".join(str(session.explain(AGES)).split())


MOVING = "SELECT age, SUM(COUNT(*)) OVER (ORDER BY age ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS n FROM person GROUP BY age"


def check_files(session: Session) -> None:
    for texts in ((AGES, AGES), (AGES, MOVING), (AGES, AGES, MOVING)):
        found = batch.price_batch(session, batch.read_batch(session, ";\n".join(texts)), Fraction(1, 2))
        assert 0 < Fraction(found.charge.rho_atto, ATTO) <= Fraction(1, 8)


def test_a_file_costs_no_more_than_its_total(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    session = opened(desk, tmp_path, ORDINARY)
    check_files(session)
    plant(monkeypatch, batch._Planner._settled, ("if spent <= total - needed:", "if spent:"))
    with pytest.raises(AssertionError):
        check_files(session)


def test_a_total_of_which_no_share_is_left_is_refused(desk: OpenDesk, tmp_path: Path) -> None:
    """Each draw takes a part of what adds up at least: what none is left of is refused, and ends."""
    session = opened(desk, tmp_path, ORDINARY)
    own = "SET dpsql.epsilon = 0.1;\nSELECT COUNT(*) FROM person WHERE age > 3;\nRESET dpsql.epsilon;\n"
    statements = batch.read_batch(session, own + ";\n".join((AGES, SCORES)))
    with pytest.raises(Refusal, match="does not fit") as raised:
        batch.price_batch(session, statements, Fraction("0.100000000000000001"))
    assert raised.value.sqlstate == "PV301"


def spent(session: Session, sql: str) -> tuple[int, Sequence[str]]:
    receipt = session.execute(sql).receipt
    assert receipt is not None
    assert receipt.rho is not None
    return receipt.rho, receipt.notes


def test_totals_and_groups_agree_to_the_last_digit(desk: OpenDesk, tmp_path: Path) -> None:
    session = opened(desk, tmp_path, ORDINARY)
    parts = "SELECT age / 16, COUNT(*) FROM person GROUP BY age / 16"
    answered(session, AGES)
    ((whole,),), price = answered(session, "SELECT COUNT(*) FROM person")
    ends, free = answered(session, AGES)
    assert price > free == 0
    assert ends[-1][1] == whole
    blocks, price = answered(session, parts)
    ends, free = answered(session, AGES)
    assert price > free == 0
    assert [total for age, total in ends if age in (15, 31, 47)] == [
        total for _, total in running(blocks)[:3]
    ]


def test_counts_that_are_stored_give_running_totals_for_nothing(desk: OpenDesk, tmp_path: Path) -> None:
    session = opened(desk, tmp_path, ORDINARY)
    counts, _ = answered(session, COUNTS)
    totals, price = answered(session, AGES)
    assert price == 0
    assert totals == running(counts)


def test_by_itself_they_tell_what_the_table_of_all_draws_tells(adding: World) -> None:
    """The last sum alone has what lies beyond the listed groups: with it or without, these are the same."""
    (release,) = summed(adding, AGES).releases
    one, source = release.measures[0], np.random.default_rng(7)
    assert isinstance(one.law, SquareRoot)
    column = np.array(moved([*range(30)])) + np.rint(source.normal(0, float(one.law.scale), 30)).astype(
        np.int64
    )
    each = [{(b"", 0): (column, one.law)}]
    found = [told_by_root(each, 29, believed)[0].values[0].tolist() for believed in (29, 30)]
    assert found[0] == found[1]


def test_bars_of_running_totals_hold(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    assert 0.93 <= coverage(opened(desk, tmp_path, ORDINARY), monkeypatch, 100, AGES) <= 0.975


# --- verified, and mutants --------------------------------------------------------------------------------------


def certificate(made: World, plan: Plan) -> Certificate:
    with made.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, made.policy, lambda *asked: None)
        return certificate_of(plan.releases, facts)


@pytest.mark.parametrize("sql", [AGES, SCORES])
def test_what_is_derived_is_what_is_claimed(adding: World, replacing: World, sql: str) -> None:
    for made in (adding, replacing):
        found = certificate(made, summed(made, sql))
        for line in verify(found, found.facts).lines:
            assert line.moved == line.claimed
            assert line.law == "root"


def narrower(found: Certificate) -> Certificate:
    """Sums that are claimed to be moved as groups are, with the noise for that."""
    (release,) = found.releases
    (one,) = release.measurements
    law = replace(one.law, sigmas=(Fraction(1),))
    return replace(found, releases=(replace(release, measurements=(replace(one, law=law),)),))


def of_fewer(found: Certificate) -> Certificate:
    """Of fewer groups than are drawn is the noise of these; whoever draws more is stopped (`PlanRunner._size`)."""
    (release,) = found.releases
    return replace(found, releases=(replace(release, groups=replace(release.groups, drawn=200)),))


def unsaid(found: Certificate) -> Certificate:
    """It is not said of how many groups."""
    (release,) = found.releases
    return replace(found, releases=(replace(release, groups=replace(release.groups, drawn=None)),))


@pytest.mark.parametrize("change", [narrower, of_fewer, unsaid])
def test_other_claims_are_not_proved(adding: World, change: Callable[[Certificate], Certificate]) -> None:
    found = certificate(adding, summed(adding, AGES))
    assert rule_against(found) == ""
    assert rule_against(change(found)).startswith("laws: ")


def test_take_the_last_column_for_the_longest(adding: World, monkeypatch: Patch) -> None:
    plan = summed(adding, AGES)
    plant(monkeypatch, squared_of, ("[:places]", "[:1]"))
    plan = summed(adding, AGES)
    assert rule_against(certificate(adding, plan)).startswith("laws: ")
    with pytest.raises(AssertionError):
        check(adding, plan, FIRST, [without(FIRST, 1)])


def test_cut_coefficients_off(adding: World, monkeypatch: Patch) -> None:
    """What is proved is no more than what is drawn where both round alike: else the law of the numbers sees it."""
    plan = summed(adding, AGES)
    plant(
        monkeypatch,
        sums_of,
        (
            "coefficients()[: values.shape[-1]]",
            "[one - (one < 60) for one in coefficients()[: values.shape[-1]]]",
        ),
    )
    counts = [1, *[0] * 40]
    values, noise = drawn(plan.releases[0], counts)
    with pytest.raises(AssertionError):
        assert values == [one + added for one, added in zip(moved(counts), noise.given, strict=True)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("exact_values = map(sums_of, exact_values)", "noise = tuple(map(sums_of, noise))"),
        ("exact_values = map(sums_of, exact_values)", "exact_values = tuple(exact_values)"),
        (
            "exact_values = map(sums_of, exact_values)",
            "exact_values = [column[np.argsort(column == 0, kind='stable')] for column in exact_values]\n"
            "        exact_values = map(sums_of, exact_values)",
        ),
    ],
    ids=["noise is summed too", "groups in place of sums", "groups that have rows first"],
)
def test_draw_something_else(adding: World, monkeypatch: Patch, old: str, new: str) -> None:
    release = summed(adding, AGES).releases[0]
    check_drawn(release)
    plant(monkeypatch, privatise.privatise, (old, new))
    with pytest.raises(AssertionError):
        check_drawn(release)


def test_forget_that_a_person_has_one_row(adding: World, monkeypatch: Patch) -> None:
    """A norm of days says nothing of sums over days: three rows on as many days add up."""
    many = Database(
        (person(1),),
        tuple((1, row) for row in _on_days(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"])),
    )
    plant(monkeypatch, ReleasePlan.may_be_summed.fget, ("is_of_one_row\n", "True\n"))  # type: ignore[attr-defined]
    plan = summed(adding, VISITS)
    assert rule_against(certificate(adding, plan)).startswith("laws: ")
    with pytest.raises(AssertionError):
        check(adding, plan, many, [without(many, 1)])


def _on_days(days: Sequence[str]) -> list[Any]:
    from .examples import visit

    return [visit(1, day=day)[1] for day in days]


def test_store_them_under_the_keys_of_groups(adding: World, monkeypatch: Patch) -> None:
    def keys() -> set[bytes]:
        plan, plain = summed(adding, AGES), adding.plan(AGES)
        return set(plan.releases[0].measure_keys(0, b"", b"")) & set(
            plain.releases[0].measure_keys(0, b"", b"")
        )

    assert not keys()
    plant(monkeypatch, ReleasePlan.measure_keys, ("is None else _SUMMED", 'is None else b""'))
    with pytest.raises(AssertionError):
        assert not keys()


def test_claim_them_as_groups(adding: World, monkeypatch: Patch) -> None:
    """A certificate that calls the law Gaussian has another claim than the one that is derived."""
    plan = summed(adding, AGES)
    plant(monkeypatch, verifying.law_of_noise, ('Law("root"', 'Law("gaussian"'))
    found = certificate(adding, plan)
    assert any(line.moved != line.claimed for line in verify(found, found.facts).lines)
