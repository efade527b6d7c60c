"""Groups of rows of two people that are found in the data: counts move by several, each as steps of one (soundness.md 1.38).

R_a is 2 and R_b is 3, as in `test_two_owners`; kinds of votes and cats of posts are not declared.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsql.errors import Refusal
from dpsql.mechanisms import Truncated
from dpsql.plan import release_plan
from dpsql.policy import Accounting, Neighbours, parse_policy
from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import World, measure_release, world
from .planting import plant
from .test_two_owners import POLICY, SCHEMA, People, check, put, verdict

Patch = pytest.MonkeyPatch
FOUND = POLICY.replace('cat = { values = ["x", "y"] }', "cat = {}").replace(
    "kind = { values = [0, 1, 2] }", "kind = {}"
)

BY_KIND = "SELECT v.kind, COUNT(*) FROM vote v JOIN post p ON v.post = p.id GROUP BY v.kind"
STATEMENTS = (
    BY_KIND,
    "SELECT p.cat, COUNT(*), SUM(v.amount) FROM vote v JOIN post p ON v.post = p.id GROUP BY p.cat",
    "SELECT p.cat, v.kind, COUNT(DISTINCT v.voter) FROM vote v JOIN post p ON v.post = p.id GROUP BY p.cat, v.kind",
    "SELECT v.kind, VAR_POP(v.amount) FROM vote v JOIN post p ON v.post = p.id WHERE p.cat <> 'y' GROUP BY v.kind",
    "SELECT v.kind FROM vote v JOIN post p ON v.post = p.id GROUP BY v.kind",
    "SELECT p.cat, a.city, COUNT(*) FROM vote v JOIN post p ON v.post = p.id JOIN person a ON a.id = p.owner "
    "GROUP BY p.cat, a.city",
)  # fmt: skip


def opened(
    folder: Path,
    engine: PostgresServer | None,
    *,
    replace_one: bool = False,
    together: int = 1,
    zcdp: bool = False,
) -> Iterator[World]:
    policy = parse_policy(FOUND, folder / "laws.toml")
    privacy = replace(
        policy.privacy,
        neighbours=Neighbours.REPLACE_ONE if replace_one else Neighbours.ADD_REMOVE,
        together=together,
        accounting=Accounting.ZCDP if zcdp else Accounting.PURE,
        conversion_delta=policy.privacy.delta / 2 if zcdp else Fraction(0),
    )
    with world(folder, policy=replace(policy, privacy=privacy), schema=SCHEMA, server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def finding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory.mktemp("found"), engine)


def scattered() -> People:
    """Person 1 is voted on in three kinds, and votes first in two kinds for two authors of many kinds: in place of each of
    these votes another kind is kept. 3 + 2 + 2 counts of authors move by one each."""
    numbers = iter(sorted(range(100, 160), key=lambda one: one * 2654435761 % 2**32))
    rows: list[tuple[object, ...]] = [(next(numbers), 1, 2, 20, 1), (next(numbers), 1, 3, 21, 1)]
    voters = iter(range(30, 90))
    for author, kinds in ((1, (10, 11, 12, 13)), (2, (31, 32, 33, 34)), (3, (41, 42, 43, 44))):
        rows += [(next(numbers), next(voters), author, kind, 1) for kind in kinds]
    post = tuple((one, one, "xyz"[one - 1]) for one in (1, 2, 3))
    return People(tuple((one, "a") for one in range(1, 100)), post, tuple(rows), ())


def drawn(seed: int) -> People:
    draw = random.Random(seed)
    post = tuple(
        (i, draw.choice([1, 1, 2, 3, 4, None]), draw.choice(["x", "y", "z", None])) for i in range(8)
    )
    vote = tuple(
        (i, draw.choice([1, 1, 2, 3, 4, 5, 6, None]), draw.choice([*range(9), None]), draw.randrange(5), 1)
        for i in draw.sample(range(500), draw.randrange(10, 40))
    )
    return People(tuple((one, draw.choice("ab")) for one in range(1, 7)), post, vote, ())


@pytest.mark.parametrize("sql", STATEMENTS)
def test_it_is_verified(finding: World, sql: str) -> None:
    plan = finding.plan(sql)
    assert plan.releases[0].groups is None
    assert verdict(finding, sql) == ""


def test_the_figure_is_reached(finding: World) -> None:
    """7 counts of people by one each: all of K; and no group that is there on one side alone passes the threshold."""
    people = scattered()
    release = finding.plan(BY_KIND).releases[0]
    assert release.counted is not None
    found = []
    for order, one in enumerate((people, people.without(1))):
        finding.settle(put, one, order)
        with finding.backend.snapshot() as snapshot:
            found.append(measure_release(release, snapshot)[release.counted])
    here, there = found
    moved = sum(abs(here.get(key, (0,))[0] - there.get(key, (0,))[0]) for key in {*here, *there})
    assert moved == 7 == release.measurements[release.counted].sensitivity
    check(finding, (BY_KIND,), people, [people.without(1)])


def test_people_and_rows_are_two_numbers(finding: World) -> None:
    """Of one owner's single rows they are one, and one draw answers both."""
    release = finding.plan(BY_KIND).releases[0]
    assert release.counted == 1
    rows, people = (release.measure_keys(one, b"", b"") for one in range(2))
    assert not {*rows} & {*people}


@pytest.mark.parametrize("seed", range(6))
def test_no_claim_is_passed(finding: World, seed: int) -> None:
    people = drawn(seed)
    check(finding, STATEMENTS, people, [people.without(one) for one in (1, 2, 3)])


@pytest.mark.parametrize("how", ["replace", "together"])
def test_other_promises_hold(tmp_path: Path, engine: PostgresServer | None, how: str) -> None:
    together = 2 if how == "together" else 1
    for made in opened(tmp_path, engine, replace_one=how == "replace", together=together):
        assert [verdict(made, sql) for sql in STATEMENTS] == [""] * len(STATEMENTS)
        for people in (scattered(), drawn(3)):
            one = people.without(1)
            pair = (one, people.without(2)) if how == "replace" else (people, one.without(2))
            check(made, STATEMENTS, pair[0], [pair[1]])


def test_where_rho_adds_up_it_is_refused(tmp_path: Path, engine: PostgresServer | None) -> None:
    for made in opened(tmp_path, engine, zcdp=True):
        with pytest.raises(Refusal) as caught:
            made.plan(BY_KIND)
        assert caught.value.sqlstate == "PV103"


# --- the mechanism itself, exactly --------------------------------------------------------------------------


def told(law: Truncated, people: int) -> np.ndarray:
    """The probabilities of what is told of a group of so many people: nothing, then each noisy count."""
    counts = range(law.bound, 3 * law.bound + 20)
    shown = [float(law.chance_shown(people, one)) if people else 0.0 for one in counts]
    return np.array([1 - math.fsum(shown), *shown])


def excess(law: Truncated, epsilon: float, pairs: list[tuple[int, int]]) -> float:
    """The delta of two count vectors at epsilon, in one direction: Σ max(0, P - e^epsilon Q) over all that is told."""
    left, right = (np.ones(1), np.ones(1))
    for one, other in pairs:
        left, right = np.outer(left, told(law, one)).ravel(), np.outer(right, told(law, other)).ravel()
    return float(np.maximum(0, left - math.exp(epsilon) * right).sum())


@pytest.mark.parametrize("start", [0, 1, 5, 60])
def test_what_several_steps_tell(start: int) -> None:
    """All steps in one group, or over two: within epsilon and delta, in both directions; a step's delta alone is not enough
    for all of them."""
    steps, epsilon, delta = 7, Fraction(1), Fraction(1, 10**4)
    whole = math.expm1(1) / math.expm1(1 / 7)
    law = Truncated.within(steps / epsilon, delta / Fraction(whole).limit_denominator(10**6))
    for pairs in ([(start + steps, start)], [(start + 4, start), (start, start + 3)]):
        for turned in (pairs, [pair[::-1] for pair in pairs]):
            assert excess(law, 1.0, turned) <= float(delta) * (1 + 1e-6)
    wide = Truncated.within(steps / epsilon, delta)
    assert max(
        excess(wide, 1.0, [(start + steps, start)]), excess(wide, 1.0, [(start, start + steps)])
    ) > float(delta)


# --- mutants ------------------------------------------------------------------------------------------------


def falls(made: World) -> None:
    people = scattered()
    assert verdict(made, BY_KIND) != "", "it is not verified"
    with pytest.raises(AssertionError):
        check(made, (BY_KIND,), people, [people.without(1)])


def test_give_each_step_all_of_delta(finding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        release_plan.key_rule,
        ("delta / _of_steps(each.epsilon, counted.sensitivity)", "delta"),
    )
    falls(finding)


def test_give_each_step_one_share_of_delta(finding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch, release_plan.key_rule,
        ("delta / _of_steps(each.epsilon, counted.sensitivity)", "delta / counted.sensitivity"),
    )  # fmt: skip
    falls(finding)


def test_take_it_for_a_count_that_moves_by_one(finding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        release_plan.key_rule,
        ("counted.scale(each.epsilon), delta / _of", "1 / each.epsilon, delta / _of"),
    )
    falls(finding)


def test_a_text_without_a_premise_is_not_verified(finding: World) -> None:
    with finding.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, finding.policy, lambda *_: None)
    whole = certificate_of(finding.plan(BY_KIND).releases, facts)
    (query,) = whole.releases[0].queries
    assert rule_against(whole) == ""
    for old, new in (
        ("HAVING COUNT(DISTINCT u) >= 1", "HAVING COUNT(DISTINCT u) >= 2"),
        ("HAVING COUNT(DISTINCT u) >= 1", "HAVING COUNT(*) >= 1"),
        ("CAST(COUNT(DISTINCT u) AS", "CAST(2 * COUNT(DISTINCT u) AS"),
        ("HAVING COUNT(*) > 3", "HAVING COUNT(*) > 2"),
    ):
        before, found, after = query.sql.rpartition(old)
        assert found, old
        changed = replace(query, sql=f"{before}{new}{after}")
        release = replace(whole.releases[0], queries=(changed,))
        assert rule_against(replace(whole, releases=(release,))) != "", old
