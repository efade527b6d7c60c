"""The store answers more: a count that is stored stands beside a sum, and only what is missing is measured (3.8).

Each aggregate is what it was where it was stored, no answer costs more than asked alone, and none is less exact.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql import Session
from dpsql.engine.dataset import open_ledger
from dpsql.errors import EngineFailure
from dpsql.plan.measures.measurements import Centred, Count
from dpsql.plan.planner import Plan, other_measures
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import load_policy
from dpsql.release import beside
from dpsql.release.price import expected_error
from dpsql.release.run import carry_out
from dpsql.tests.support.length import some, tried

from .examples import HEAVY, NOBODY
from .measured import World, world
from .planting import plant
from .test_finer import notes
from .test_neighbours import check, neighbours_of
from .test_one_draw import cost

Patch = pytest.MonkeyPatch

POLICY = """
database = "duckdb:loans.duckdb"
ledger = "sqlite:loans.db"
[privacy]
epsilon = 9999
delta = 1e-5
[defaults]
max_epsilon = 10
[tables.person]
unit = "id"
[tables.loan]
unit = { column = "person_id", references = "person.id" }
max_rows = 6
[tables.loan.columns]
amount = { bounds = [0, 500] }
balance = { bounds = [-200, 600] }
fee = { bounds = [0, 20] }
age = { bounds = [50, 100] }
branch = { values = ["a", "b", "c", "d"] }
paid = {}
street = {}
"""
ROWS = """
CREATE TABLE person AS SELECT i AS id FROM range(400) AS r(i);
ALTER TABLE person ADD PRIMARY KEY (id);
CREATE TABLE loan AS SELECT i % 400 AS person_id, i * 13 % 501 AS amount, i * 7 % 801 - 200 AS balance,
    CASE WHEN i % 3 > 0 THEN i % 21 END AS fee, i % 51 + 50 AS age, substr('abcd', i % 4 + 1, 1) AS branch,
    i % 2 = 0 AS paid, i % 9 AS street FROM range(2000) AS r(i);
ALTER TABLE loan ALTER COLUMN person_id SET NOT NULL;
ALTER TABLE loan ALTER COLUMN amount SET NOT NULL;
ALTER TABLE loan ALTER COLUMN balance SET NOT NULL;
ALTER TABLE loan ALTER COLUMN age SET NOT NULL;
ALTER TABLE loan ALTER COLUMN branch SET NOT NULL;
ALTER TABLE loan ALTER COLUMN paid SET NOT NULL;
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path) as session:
        yield session


def opened(folder: Path) -> Session:
    folder.mkdir(exist_ok=True)
    with duckdb.connect(str(folder / "loans.duckdb")) as connection:
        connection.execute(ROWS)
    (folder / "loans.toml").write_text(POLICY)
    open_ledger(load_policy(folder / "loans.toml"), create=True).close()
    session = Session.open(folder / "loans.toml")
    session.execute("SET dpsql.epsilon = 1")
    return session


def tile(aggregates: str, where: str = "") -> str:
    return f"SELECT branch, {aggregates} FROM loan{where} GROUP BY branch"


COUNT = tile("COUNT(*)")


def spent(session: Session) -> Fraction:
    return Fraction(session.dataset.store.spent().epsilon_nano, 10**9)


def told(session: Session, sql: str) -> str:
    return " ".join(session.explain(sql).text().split())


@pytest.mark.parametrize(
    ("more", "label"),
    [
        ("SUM(amount)", "centred sum"),
        ("AVG(amount)", "centred sum"),
        ("SUM(balance), AVG(balance)", "centred sum"),
        ("SUM(age)", "centred sum"),
        ("SUM(fee)", "sum"),  # NULL here and there: COUNT(*) is not its count
        ("AVG(fee)", "count and sum together"),
    ],
)
def test_one_more_aggregate_beside_a_stored_count(session: Session, more: str, label: str) -> None:
    sql = tile(f"COUNT(*), {more}")
    alone = session.explain(sql).plan
    counts = dict(session.execute(COUNT).rows)
    said = told(session, sql)
    assert "count of rows: stored already" in said
    assert "parts of this answer are from earlier ones; SET dpsql.reuse = off measures all of it anew" in said
    assert f"{label}" in said
    beside_it = session.explain(sql).plan
    assert no_wider(beside_it, alone)
    answer = session.execute(sql)
    assert cost(answer) == 1
    assert "parts of this answer are from earlier ones" in notes(answer)
    assert {row[0]: row[1] for row in answer.rows} == counts
    again = session.execute(sql)
    assert (cost(again), again.rows) == (0, answer.rows)
    session.dataset.answers.clear()
    again = session.execute(sql)  # from what is stored, and not as it was remembered
    assert (cost(again), again.rows) == (0, answer.rows)
    assert "charge: nothing" in told(session, sql)


def no_wider(plan: Plan, alone: Plan) -> bool:
    pairs = [
        (expected_error(one, index)[0], expected_error(other, index)[0])
        for one, other in zip(plan.releases, alone.releases, strict=True)
        for index in range(len(one.formulas))
    ]
    return all(here <= there for here, there in pairs) and any(here < there for here, there in pairs)


def test_only_what_is_missing_is_asked(session: Session) -> None:
    session.execute(COUNT)
    shown = session.explain(tile("COUNT(*), SUM(amount)"))
    (release,) = shown.plan.releases
    assert [measurement.kind for measurement in release.measurements] == [
        Centred.kind,
        Count.kind,
    ]
    assert (release.fresh, shown.plan.epsilon) == ((0,), 1)
    (query,) = release.queries(release.fresh)
    assert query.measurements == (0,)


def check_a_pair_gives_its_sum(session: Session) -> None:
    """As well as it is asked for alone, or it is asked."""
    session.execute("SET dpsql.epsilon = 0.5")
    for one in ("COUNT(*), AVG(amount)", "AVG(balance)"):
        session.execute(tile(one))
    said = told(session, tile("SUM(amount)"))
    assert "parts of this answer are from earlier ones" in said
    assert cost(session.execute(tile("SUM(amount)"))) == 0
    # of -200 to 600 a pair's sum has 40/36 times the variance of one alone
    assert cost(session.execute(tile("SUM(balance)"))) == Fraction(1, 2)
    session.dataset.store.advance_epoch()
    session.execute("SET dpsql.epsilon = 0.5")
    session.execute(tile("COUNT(*), AVG(balance)"))
    session.execute("SET dpsql.epsilon = 0.4")
    assert cost(session.execute(tile("SUM(balance)"))) == 0


def test_a_pair_gives_its_sum(session: Session) -> None:
    check_a_pair_gives_its_sum(session)


def test_a_count_and_a_centred_sum_give_the_average_too(session: Session) -> None:
    session.execute(COUNT)
    shown = {row[0]: row[1:] for row in session.execute(tile("COUNT(*), SUM(amount)")).rows}
    averages = session.execute(tile("AVG(amount)"))
    assert cost(averages) == 0
    for branch, average in averages.rows:
        count, total = shown[branch]
        assert abs(float(average) - float(total) / count) < 300 / count  # the count is shown rounded


def test_a_row_of_a_stored_grouping_stands_beside_a_sum(session: Session) -> None:
    """The count of a filter's rows is one of the stored groups, in this tile as in the other."""
    counts = dict(session.execute(COUNT).rows)
    sql = "SELECT COUNT(*), SUM(amount) FROM loan WHERE branch = 'b'"
    said = "read from an earlier answer by branch"
    assert said in told(session, sql)
    answer = session.execute(sql)
    assert (cost(answer), answer.rows[0][0]) == (1, counts["b"])
    assert said in notes(answer)
    assert session.execute("SELECT COUNT(*) FROM loan WHERE branch = 'b'").rows == [(counts["b"],)]


def test_rollups_and_bars(session: Session) -> None:
    session.execute(COUNT)
    session.execute("SET dpsql.intervals = 0.95")
    rows = session.execute(
        "SELECT branch, COUNT(*) AS n, SUM(amount) AS s FROM loan GROUP BY ROLLUP (branch)"
    ).rows
    assert rows[-1][1] == sum(row[1] for row in rows[:-1])
    assert rows[-1][4] == sum(row[4] for row in rows[:-1])
    expected = [expected_error(told_plan, index)[0] for told_plan in
                session.explain(tile("COUNT(*), SUM(amount)")).plan.releases for index in (0, 1)]  # fmt: skip
    alone = session.execute(tile("COUNT(*), SUM(amount)")).rows[0]
    for half, place in zip(expected, (1, 4), strict=True):
        assert abs((float(alone[place + 2]) - float(alone[place + 1])) / 2 - half) <= 1


def coverage_of_sums(session: Session, rounds: int) -> float:
    """Return how often bars of sums of two stored groups hold the truth; nobody is cut, so it is the plain count."""
    truth = {"a": 500, "b": 500, "c": 500, "d": 500}
    session.execute("SET dpsql.intervals = 0.95")
    held = []
    for _ in range(rounds):
        session.dataset.store.advance_epoch()
        session.execute("SET dpsql.epsilon = 0.3")
        session.execute("SELECT branch, paid, COUNT(*) FROM loan GROUP BY branch, paid")
        session.execute("SET dpsql.epsilon = 0.1")
        answer = session.execute(tile("COUNT(*) AS n"))
        assert cost(answer) == 0
        held += [row[2] <= truth[row[0]] <= row[3] for row in answer.rows]
    return sum(held) / len(held)


def test_bars_of_sums_of_stored_groups(session: Session) -> None:
    assert coverage_of_sums(session, 25) >= 0.86


@pytest.mark.long
def test_bars_of_sums_of_stored_groups_of_many_draws(session: Session) -> None:
    assert 0.94 <= coverage_of_sums(session, 1000) <= 0.965


OTHERS = (
    tile("COUNT(*), SUM(amount)", " WHERE amount > 3"),  # other rows
    "SELECT COUNT(*), SUM(amount) FROM loan",  # other keys
    "SELECT paid, COUNT(*), SUM(amount) FROM loan GROUP BY paid",
    tile("COUNT(fee), AVG(fee)"),  # another count
    tile("COUNT(*) FILTER (WHERE paid), AVG(amount)"),  # of persons with other numbers of rows
    "SELECT street, COUNT(*), SUM(amount) FROM loan GROUP BY street",  # keys that are found
)


def check_other_questions_are_asked_alone(session: Session) -> None:
    session.execute(COUNT)
    session.execute("SELECT street, COUNT(*) FROM loan GROUP BY street")
    session.execute(tile("COUNT(*) FILTER (WHERE paid)"))
    for sql in OTHERS:
        assert "stored already" not in told(session, sql), sql
        # the sums of found keys, whose groups are stored, are what is left of epsilon beside a fifth for finding them
        whole, paid = Fraction(4, 5) if "street" in sql else 1, cost(session.execute(sql))
        if sql == OTHERS[1]:  # groups may tell a part of their total
            assert 0 < paid <= 1
        elif sql == OTHERS[2]:
            # a total as exact as what is asked for leaves two groups' variance s to draw: s·(s + 1) / (2s + 1) = 1
            golden = (1 + math.sqrt(5)) / 2
            assert golden**-0.5 <= paid < golden**-0.5 + 0.001
        else:
            assert paid == whole, sql
    sql = tile("COUNT(*), SUM(amount)")
    session.execute("SET dpsql.epsilon = 1.5")
    assert "stored already" not in told(session, sql)  # the stored count is wider than it is asked for
    session.execute("SET dpsql.epsilon = 1")
    session.execute("SET dpsql.max_rows = 3")
    assert "stored already" not in told(session, sql)
    session.execute("RESET dpsql.max_rows")
    session.execute("SET dpsql.reuse = off")
    assert "stored already" not in told(session, sql)
    session.execute("SET dpsql.reuse = on")
    assert "stored already" in told(session, sql)
    session.dataset.store.advance_epoch()
    assert "stored already" not in told(session, sql)
    below = "SELECT branch, COUNT(*), SUM(amount) FROM loan WHERE amount > (SELECT AVG(age) FROM loan) GROUP BY branch"
    session.execute(COUNT)
    assert cost(session.execute(below)) == 1


def test_other_questions_are_asked_alone(session: Session) -> None:
    check_other_questions_are_asked_alone(session)


CHOICES = (
    "MEDIAN(balance)",
    "MIN(balance)",
    "MODE() WITHIN GROUP (ORDER BY paid)",
    "PERCENTILE_CONT(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY balance)",
)


@pytest.mark.parametrize("choice", some([*CHOICES], 2))
def test_a_choice_that_is_stored_stands_beside_what_is(session: Session, choice: str) -> None:
    """All of it is stored, under other measures: free, by EXPLAIN too."""
    sql = tile(f"COUNT(*), SUM(amount), {choice}")
    for part in ("COUNT(*)", "SUM(amount)", choice):
        session.execute(tile(part))
    before = spent(session)
    said = told(session, sql)
    assert "charge: nothing" in said
    assert "choice" in said.split("stored already")[2]
    assert session.explain(sql).as_dict()["releases"]
    assert cost(session.execute(sql)) == 0
    assert spent(session) == before


@pytest.mark.parametrize("choice", some([*CHOICES], 2))
def test_what_is_stored_makes_no_choice_worse(session: Session, choice: str) -> None:
    """Three things that share epsilon beside a stored count, for two: the choice would have a third for a half."""
    sql = f"SELECT VAR_POP(amount), {choice} FROM loan"
    alone = choices_of(session, sql)
    session.execute("SET dpsql.epsilon = 10")
    session.execute("SELECT COUNT(*) FROM loan")
    session.execute("SET dpsql.epsilon = 1")
    assert choices_of(session, sql) == alone


def test_a_mutant_that_leaves_choices_out(session: Session, monkeypatch: Patch) -> None:
    monkeypatch.setattr(beside, "_rows_off", lambda plan, index, level: 0)
    with pytest.raises(AssertionError):
        test_what_is_stored_makes_no_choice_worse(session, CHOICES[0])


def choices_of(session: Session, sql: str) -> list[int]:
    """Return how many rows off each of the choices of a statement may be."""
    (release,) = session.explain(sql).plan.releases
    return [release.measures[number].law.half_width(Fraction(1, 20)) for number in release.choices]


def check_what_is_missing_shares_epsilon(session: Session) -> None:
    session.execute(COUNT)
    assert cost(session.execute(tile("COUNT(*), SUM(amount), AVG(balance)"))) == 1
    assert spent(session) == 2


def check_a_better_answer(session: Session) -> None:
    """What is stored of the statement's own measures goes before what would be more exact and cost more."""
    session.execute(COUNT)
    session.execute("SET dpsql.epsilon = 0.5")
    session.execute(tile("AVG(fee)"))
    session.execute("SET dpsql.epsilon = 1")
    sql = tile("COUNT(*), AVG(fee), AVG(amount)")
    session.execute("SET dpsql.reuse = off")
    alone = session.explain(sql).plan
    session.execute("SET dpsql.reuse = on")
    assert session.explain(sql).plan.epsilon <= alone.epsilon
    assert cost(session.execute(sql)) <= Fraction(1, 2)


def test_a_better_answer_that_costs_more_is_not_taken(session: Session) -> None:
    check_a_better_answer(session)


def test_what_is_missing_shares_epsilon(session: Session) -> None:
    check_what_is_missing_shares_epsilon(session)


def check_an_epoch_that_begins_meanwhile(session: Session, monkeypatch: Patch) -> None:
    """A count of one epoch never stands beside a sum that is drawn in the next."""
    session.execute(COUNT)
    reserve = type(session.dataset.store).reserve

    def later(self: Any, *args: Any, **named: Any) -> Any:
        self.advance_epoch()
        return reserve(self, *args, **named)

    monkeypatch.setattr(type(session.dataset.store), "reserve", later)
    with pytest.raises(EngineFailure):
        session.execute(tile("COUNT(*), SUM(amount)"))
    assert spent(session) == 2


def test_an_epoch_that_begins_meanwhile_mixes_nothing(session: Session, monkeypatch: Patch) -> None:
    check_an_epoch_that_begins_meanwhile(session, monkeypatch)


# --- in any order ----------------------------------------------------------------------------------------------

TILES = (
    COUNT,
    tile("COUNT(*), SUM(amount)"),
    tile("COUNT(*), AVG(amount)"),
    tile("SUM(amount)"),
    tile("AVG(balance)"),
    tile("COUNT(*), SUM(amount), AVG(balance)"),
    tile("COUNT(*), AVG(fee)"),
    tile("SUM(fee), COUNT(fee)"),
    tile("VAR_POP(age), COUNT(*)"),
    "SELECT COUNT(*), SUM(balance) FROM loan",
    "SELECT COUNT(*) FROM loan",
    "SELECT COUNT(*), SUM(amount) FROM loan WHERE branch = 'a'",
    tile("COUNT(*) FILTER (WHERE paid), COUNT(*), SUM(amount)"),
)
EPSILONS = ("1", "0.5", "0.25")


def check_a_sequence(session: Session, seed: int) -> None:
    """No statement costs more than asked alone, none is wider, and what was answered is answered again, free."""
    rng = random.Random(seed)
    for _ in range(10):
        epsilon, sql = rng.choice(EPSILONS), rng.choice(TILES)
        session.execute(f"SET dpsql.epsilon = {epsilon}")
        session.execute("SET dpsql.reuse = off")
        alone = session.explain(sql).plan
        session.execute("SET dpsql.reuse = on")
        now = session.explain(sql).plan
        assert now.epsilon <= alone.epsilon <= Fraction(epsilon)
        for one, other in zip(now.releases, alone.releases, strict=True):
            for index in range(len(one.formulas)):
                assert expected_error(one, index)[0] <= expected_error(other, index)[0], sql
        answer = session.execute(sql)
        assert cost(answer) <= alone.epsilon
        session.dataset.answers.clear()
        again = session.execute(sql)
        assert (cost(again), again.rows) == (0, answer.rows), sql


@pytest.mark.parametrize("seed", range(tried(2, 3)))
def test_random_sequences(session: Session, seed: int) -> None:
    check_a_sequence(session, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 63))
def test_many_random_sequences(session: Session, seed: int) -> None:
    check_a_sequence(session, seed)


@pytest.mark.parametrize("seed", range(2))
def test_a_dashboard_in_any_order(tmp_path: Path, seed: int) -> None:
    tiles = list(TILES)
    random.Random(seed).shuffle(tiles)
    with opened(tmp_path / "loans") as session:
        for sql in tiles:
            assert cost(session.execute(sql)) <= 1
        whole = spent(session)
        shown = {sql: list(session.execute(sql).rows) for sql in tiles}
        assert spent(session) == whole <= len(tiles)
        session.dataset.answers.clear()
        assert spent(session) == whole
        assert sorted(shown) == sorted(tiles)


# --- the measurements that only a store brings about
# --------------------------------------------------------------------

ASKED = (
    "SELECT city, COUNT(*), SUM(x) FROM visit GROUP BY city",
    "SELECT COUNT(*), AVG(n) FROM visit WHERE n IS NOT NULL",
    "SELECT city, SUM(n), AVG(d) FROM visit WHERE n IS NOT NULL AND d IS NOT NULL GROUP BY city",
    "SELECT AVG(n) FILTER (WHERE flag), SUM(n), VAR_SAMP(n) FROM visit",
    "SELECT COUNT(*), AVG(height) FROM person",
)


def others_of(plan: Plan) -> list[Plan]:
    """Return a plan with its one release by other measurements, epsilon shared over them."""
    (release,) = plan.releases
    found = []
    for other in (one.plan() for one in other_measures(release)):
        share = other.measures[0].epsilon / len(other.measures)
        found.append(replace(plan, releases=(other.of_each(share),)))
    return found


@pytest.fixture(scope="module", params=[False, True], ids=["add-remove", "replace-one"])
def people(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("beside"), replace_one=request.param) as made:
        yield made


def check_claims(people: World, monkeypatch: Patch) -> None:
    """The claim of every set of measurements holds for hostile neighbours."""
    kinds = set()
    for sql in ASKED:
        for other in others_of(people.plan(sql)):
            kinds |= {measurement.kind for measurement in other.releases[0].measurements}
            with monkeypatch.context() as patch:
                patch.setattr(World, "plan", lambda self, text, other=other: other)
                assert check(people, sql, HEAVY, neighbours_of(people, HEAVY, NOBODY)) is not None
    assert Centred.kind in kinds


def test_the_claims_of_other_measurements(people: World, monkeypatch: Patch) -> None:
    check_claims(people, monkeypatch)


# --- mutants ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "old", "new", "check"),
    [
        (beside._ratios, "here > there", "False", check_a_pair_gives_its_sum),
        (beside._best, "if price < least:", "if best is None or price[1] < least[1]:", check_a_better_answer),
        (ReleasePlan._labels, "(self._counted_in,)", "(None,)", check_other_questions_are_asked_alone),
        (ReleasePlan._labels, "distinct_limit, measured.masks)", "distinct_limit)", check_other_questions_are_asked_alone),
    ],
    ids=["a wider sum", "a higher charge", "another t", "another filter"],
)  # fmt: skip
def test_take_what_is_another(
    session: Session, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str,
    check: Callable[[Session], None],
) -> None:  # fmt: skip
    plant(monkeypatch, function, (old, new))
    with pytest.raises((AssertionError, ValueError, IndexError)):
        check(session)


def test_stand_beside_another_epoch(session: Session, monkeypatch: Patch) -> None:
    plant(monkeypatch, carry_out, ("found.epoch != reservation.epoch", "False"))
    with pytest.raises(pytest.fail.Exception):
        check_an_epoch_that_begins_meanwhile(session, monkeypatch)


def test_claim_too_little_of_a_centred_sum(people: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, Centred.reach.fget, ("self.known_lattice.width", "self.known_lattice.width // 4"))  # type: ignore[attr-defined]
    with pytest.raises(AssertionError):
        check_claims(people, monkeypatch)
