"""A batch is never dearer nor less exact than its statements one by one, and is charged once (soundness.md 3.14).

What is compared is taken from the draws that answer, by figures of their laws alone, not from what was planned.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql import Session
from dpsql.budget import Pending
from dpsql.engine import batch
from dpsql.engine.batch import price_batch, read_batch, run_batch
from dpsql.errors import BudgetExhausted, EngineFailure, Refusal
from dpsql.plan.measures.formulas import Chosen, Linear
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Policy, parse_policy
from dpsql.release import batch_split
from dpsql.release.price import expected_error
from dpsql.release.run import PlanRunner, ReleasedRows, carry_out
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import policy_text

from .conftest import Desk, OpenDesk, make_desk
from .examples import HEAVY
from .planting import plant
from .test_finer import CITIES, DRILLED, FLAGS, TOTAL
from .test_one_draw import spent

Patch = pytest.MonkeyPatch

PEOPLE = "SELECT COUNT(*) FROM person"
DASHBOARD = (*DRILLED, TOTAL, CITIES, FLAGS)
BELOW = "SELECT COUNT(*) FROM visit WHERE n > (SELECT AVG(n) FROM visit)"
MANY = (
    *DASHBOARD,
    "SELECT SUM(n) FROM visit",
    "SELECT AVG(n) FROM visit",
    "SELECT city, AVG(n), COUNT(*) FROM visit GROUP BY city",
    "SELECT city, flag, COUNT(*) FROM visit GROUP BY city, flag",
    "SELECT COUNT(*), SUM(x) FROM visit WHERE flag",
    "SELECT AVG(n), VAR_SAMP(n) FROM visit",
    "SELECT MEDIAN(n) FROM visit",
    "SELECT MEDIAN(n), MAX(n) FROM visit",
    "SELECT COUNT(DISTINCT person_id) FROM visit",
    "SELECT COUNT(*) FROM person",
    "SELECT AVG(height) FROM person",
    "SELECT SUM(age), COUNT(*) FROM person WHERE team = 'red'",
    "SELECT tag, COUNT(*) FROM visit GROUP BY tag",
    "SELECT tag, SUM(n) FROM visit GROUP BY tag",
    BELOW,
    "SELECT COUNT(*) + 1 FROM visit WHERE n > (SELECT AVG(n) FROM visit)",
    "SELECT city, COUNT(*) FROM visit GROUP BY ROLLUP (city)",
    "SELECT 1",
)
ACCOUNTINGS = ("pure", "zcdp")


def policy_in(folder: Path, accounting: str) -> Policy:
    text = policy_text(epsilon="1").replace("[privacy]", f'[privacy]\naccounting = "{accounting}"')
    return parse_policy(text, folder / "laws.toml")


@pytest.fixture(params=ACCOUNTINGS)
def opens(request: pytest.FixtureRequest, desk: OpenDesk, tmp_path: Path) -> Callable[[], Desk]:
    """Open desks over the same rows, in either accounting, with nothing spent yet."""
    numbers = iter(range(1000))

    def open_one() -> Desk:
        folder = tmp_path / f"batch{next(numbers)}"
        folder.mkdir()
        opened = desk(policy=policy_in(folder, request.param), folder=folder)
        opened.settle(HEAVY)
        return opened

    return open_one


def released(
    session: Session, script: str, total: Fraction | None = None, agreed: Any = None
) -> list[list[tuple[object, ...]]]:
    statements = read_batch(session, script)
    price = price_batch(session, statements, total)
    return [list(answer.rows) for answer in run_batch(session, statements, total, agreed or price.charge)]


def rho_spent(desk: Desk) -> int:
    return desk.session.dataset.store.spent().rho_atto


def paid(desk: Desk) -> int:
    """Return what is spent, in what adds up."""
    status = desk.session.budget()
    return status.rho_spent_atto if status.in_rho else status.epsilon_spent_nano


# --- what answers ---------------------------------------------------------------------------------------------


@dataclass
class Seen:
    """The releases that answered each statement, in order of answering."""

    by_text: dict[str, list[ReleasedRows]] = field(default_factory=dict)


@contextmanager
def watched(patch: Patch) -> Iterator[Seen]:
    seen, original = Seen(), Session.answer

    def answer(self: Session, prepared: Any, runner: PlanRunner, *rest: Any) -> Any:
        seen.by_text[runner.statement] = runner.rows
        return original(self, prepared, runner, *rest)

    with patch.context() as own:
        own.setattr(Session, "answer", answer)
        yield seen


def variance(plan: ReleasePlan, index: int) -> float:
    formula = plan.formulas[index]
    if isinstance(formula, Chosen):
        assert formula.coordinate is not None
        return float(plan.measures[formula.coordinate.measure].law.spread)

    def of(linear: Linear) -> Fraction:
        return sum((weight**2 * law.spread for law, weight in plan.noises(linear)), Fraction(0))

    return float(expected_error(plan, index, of)[0])


def errors(rows: Sequence[ReleasedRows], alone: Sequence[ReleasePlan]) -> list[float]:
    """Return of each aggregate the variance of what answers it, over the one that it has asked alone."""
    found = []
    for one, other in zip(rows, alone, strict=True):
        if other.is_empty:
            continue
        actual = one.plan.taking({i: measurement.law for i, measurement in one.measurements.items()})
        for index in range(len(other.formulas)):
            if reference := variance(other, index):
                found.append(variance(actual, index) / reference)
    return found


def alone_plans(desk: Desk, texts: Sequence[str]) -> dict[str, Sequence[ReleasePlan]]:
    return {text: desk.session.explain(text).plan.releases for text in texts}


def asked_one_by_one(opens: Callable[[], Desk], texts: Sequence[str], patch: Patch) -> tuple[int, Seen]:
    one_by_one = opens()
    with watched(patch) as seen:
        for text in texts:
            one_by_one.session.execute(text)
    return paid(one_by_one), seen


def some(seed: int) -> list[str]:
    rng = random.Random(seed)
    return rng.sample(MANY, rng.randint(2, 9))


def check_price(opens: Callable[[], Desk], texts: Sequence[str], patch: Patch) -> None:
    """As exact as asked alone, each, and not dearer than one after the other; free again, with the same answers."""
    price, _ = asked_one_by_one(opens, texts, patch)
    desk, plain = opens(), alone_plans(opens(), texts)
    with watched(patch) as seen:
        answers = released(desk.session, ";\n".join(texts))
    assert 0 < paid(desk) <= price or texts == ["SELECT 1"]
    for text in texts:
        found = errors(seen.by_text[text], plain[text])
        assert all(error <= 1.01 for error in found), (text, found)
    before = paid(desk)
    assert released(desk.session, ";\n".join(texts)) == answers
    assert paid(desk) == before
    for text in texts:  # a tile that is looked at by itself
        desk.session.execute(text)
    assert paid(desk) == before


def check_total(opens: Callable[[], Desk], texts: Sequence[str], patch: Patch) -> None:
    """At what asking one by one costs, the sum of the statements' errors is not larger; nor is the charge."""
    price, one_by_one = asked_one_by_one(opens, texts, patch)
    desk, plain = opens(), alone_plans(opens(), texts)
    is_zcdp = desk.session.budget().in_rho
    total = Fraction(int((2 * price) ** 0.5 + 1), 10**9) if is_zcdp else Fraction(price, 10**9)
    with watched(patch) as seen:
        answers = released(desk.session, ";\n".join(texts), total)
    assert paid(desk) <= price * (1 + 1e-8)
    sums = [0.0, 0.0]
    for text in texts:
        for place, rows in enumerate((one_by_one.by_text[text], seen.by_text[text])):
            found = errors(rows, plain[text])
            sums[place] += sum(found) / max(1, len(found))
    assert sums[1] <= sums[0] * 1.001, sums
    before = paid(desk)
    assert released(desk.session, ";\n".join(texts), total) == answers
    assert paid(desk) == before


@pytest.mark.parametrize("seed", range(2))
def test_random_batches_cost_no_more(opens: Callable[[], Desk], monkeypatch: Patch, seed: int) -> None:
    check_price(opens, some(seed), monkeypatch)


@pytest.mark.parametrize("seed", range(2))
def test_random_batches_are_no_less_exact(opens: Callable[[], Desk], monkeypatch: Patch, seed: int) -> None:
    check_total(opens, some(seed + 100), monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 40))
def test_many_random_batches(opens: Callable[[], Desk], monkeypatch: Patch, seed: int) -> None:
    check_price(opens, some(seed), monkeypatch)
    check_total(opens, some(seed + 100), monkeypatch)


def check_stored_before(opens: Callable[[], Desk]) -> None:
    """What a subquery gives is, while the batch draws, what it is of all that is stored afterwards."""
    inner = "SELECT AVG(n) FROM visit"
    for _ in range(tried(2, 4)):
        opened = opens()
        opened.session.execute("SET dpsql.epsilon = 0.3")
        opened.session.execute(inner)
        opened.session.execute("RESET dpsql.epsilon")
        answers = released(opened.session, f"{BELOW}; {inner}")
        before = paid(opened)
        assert released(opened.session, f"{BELOW}; {inner}") == answers
        assert paid(opened) == before


def test_a_subquery_of_which_some_is_stored(opens: Callable[[], Desk]) -> None:
    check_stored_before(opens)


# --- a dashboard ----------------------------------------------------------------------------------------------


THREE = 2_683_140_000
"""In 1e-9 of epsilon a total, cities and flags at 1 each, of which the first ones tell a part of the others."""


def check_dashboard(desk: OpenDesk) -> None:
    """Eight tiles cost what their three measures cost one by one, and each is recorded with its own charge."""
    opened, alone = desk(), desk()
    opened.settle(HEAVY)
    alone.settle(HEAVY)
    statements = read_batch(opened.session, ";\n".join(DASHBOARD))
    price = price_batch(opened.session, statements)
    assert spent(opened) == 0
    uses = [set(one.uses) for one in price.statements]
    assert all(
        own <= found for own, found in zip([{7}, {7}, {7}, {8}, {8}, set(), set(), set()], uses, strict=True)
    )
    assert all(found <= {7, 8} for found in uses), uses
    answers = [list(one.rows) for one in run_batch(opened.session, statements, None, price.charge)]
    assert price.charge.epsilon_nano == spent(opened) == THREE
    cities, flags = dict(answers[6]), dict(answers[7])  # type: ignore[arg-type]  # rows are pairs
    assert answers[:2] == [[(cities["a"],)], [(cities["b"],)]]
    assert answers[3:5] == [[(flags[False],)], [(flags[True],)]]
    for text in (CITIES, FLAGS, TOTAL):
        alone.session.execute(text)
    recorded = [
        sorted(
            (entry.note.partition(", in ")[0], entry.law.text, entry.charge.epsilon_nano)
            for entry in one.session.dataset.store.log(99)
        )
        for one in (opened, alone)
    ]
    assert recorded[0] == recorded[1]


def check_total_is_kept(desk: OpenDesk) -> None:
    opened = desk()
    opened.settle(HEAVY)
    released(opened.session, ";\n".join(DASHBOARD), Fraction(1))
    assert 0.9999 * 10**9 < spent(opened) <= 10**9


def test_a_dashboard_costs_what_its_measures_cost(desk: OpenDesk) -> None:
    check_dashboard(desk)


def test_a_total_is_spent_and_no_more(desk: OpenDesk) -> None:
    check_total_is_kept(desk)


def test_on_either_engine(engine: PostgresServer | None, tmp_path: Path) -> None:
    """The same price, one charge, one snapshot's answers, free again."""
    with ExitStack() as stack:
        opened = make_desk(stack, tmp_path, server=engine)
        opened.settle(HEAVY)
        script = ";\n".join((*DASHBOARD, "SELECT city, AVG(n) FROM visit GROUP BY city", BELOW))
        answers = released(opened.session, script)
        assert spent(opened) == THREE + 2 * 10**9
        assert answers[2] == [row for row in answers[6] if row[0] in ("a", "c")]
        assert released(opened.session, script) == answers
        assert spent(opened) == THREE + 2 * 10**9


def test_the_ledger_has_it_as_one_act_with_its_statements(full: Desk) -> None:
    released(full.session, ";\n".join(DASHBOARD))
    entries = full.session.dataset.store.log(99)
    assert len(entries) == 3
    heads = {entry.statement.split(",")[0] for entry in entries}
    assert len(heads) == 1
    assert heads.pop().endswith(" of 8 statements")
    for number, text in enumerate(DASHBOARD, 1):
        assert any(f"{number}: {text}" in entry.statement for entry in entries)


@pytest.fixture
def full(desk: OpenDesk) -> Desk:
    opened = desk()
    opened.settle(HEAVY)
    return opened


# --- what a file says of its statements --------------------------------------------------------------------------


def test_accuracies_of_the_file(full: Desk) -> None:
    script = (
        f"SET dpsql.accuracy = 50; {TOTAL}; SET dpsql.accuracy = 20; {CITIES}; RESET dpsql.accuracy; {PEOPLE}"
    )
    statements = read_batch(full.session, script)
    price = price_batch(full.session, statements)
    alone = []
    for accuracy, sql in (("50", TOTAL), ("20", CITIES)):
        full.session.execute(f"SET dpsql.accuracy = {accuracy}")
        alone.append(full.session.explain(sql).plan.epsilon)
    full.session.execute("RESET dpsql.accuracy")
    assert alone[0] < alone[1]
    assert price.charge.epsilon_nano == (alone[1] + 1) * 10**9  # the cities of 20 are a total of 50
    shared = price_batch(full.session, statements, Fraction(2))
    assert [one.charge.epsilon_nano for one in shared.statements[:2]] == [0, int(alone[1] * 10**9)]
    assert abs(shared.charge.epsilon_nano - 2 * 10**9) < 2000
    with pytest.raises(Refusal, match=r"takes epsilon .* all of it is to take 0\.5"):
        price_batch(full.session, statements, Fraction(1, 2))
    assert full.session.settings.accuracy is None
    assert spent(full) == 0


@pytest.mark.parametrize(
    ("script", "code", "words", "place"),
    [
        (f"{TOTAL};\n\n  SELECT city FROM visit", "PV002", "statement 2: ", (3, 10)),
        (f"{TOTAL}; SELECT MEDIAN(huge) FROM visit", "PV101", "statement 2: ", None),
        (f"{TOTAL};\nSET dpsql.accuracy = 5; SELECT AVG(n) FROM visit", "PV301", "statement 2: ", (2, 32)),
        (f"{TOTAL};\nSHOW dpsql.epsilon", "0A000", "a release is of queries", (2, 1)),
        ("SET dpsql.reuse = off;\nSELECT 1", "22023", "a release takes what is stored", (1, 1)),
        ("SET dpsql.epsilon = 1", "42601", "no query", None),
        (";\n".join([TOTAL] * 201), "54001", "statement 201: ", (201, 1)),
    ],
)
def test_a_refused_statement_is_named_and_nothing_is_charged(
    full: Desk, script: str, code: str, words: str, place: tuple[int, int] | None
) -> None:
    for run in (
        lambda: price_batch(full.session, read_batch(full.session, script)),
        lambda: run_batch(full.session, read_batch(full.session, script), None, batch.ZERO),
    ):
        with pytest.raises(Refusal) as caught:
            run()
        assert (caught.value.sqlstate, words in caught.value.message) == (code, True)
        assert place is None or caught.value.position is not None
        at = caught.value.position
        assert place is None or (at is not None and (at.line, at.column) == place)
    assert spent(full) == 0


def test_what_is_dearer_than_was_shown_is_refused(full: Desk) -> None:
    statements = read_batch(full.session, f"{CITIES}; {TOTAL}")
    full.session.execute(TOTAL)
    agreed = price_batch(full.session, statements).charge
    assert 0 < agreed.epsilon_nano < 10**9  # the total that is stored tells a part of the cities
    full.session.dataset.store.advance_epoch()
    with pytest.raises(Refusal, match="no longer the one that was shown"):
        run_batch(full.session, statements, None, agreed)
    assert spent(full) == 10**9


def test_more_than_is_left_is_refused_as_a_whole(full: Desk) -> None:
    script = ";".join(
        f"SET dpsql.epsilon = 10; SELECT COUNT(*) FROM visit WHERE n > {i} AND x > 0.{i}" for i in range(5)
    )
    store = full.session.dataset.store
    store._caps = replace(store._caps, epsilon_nano=49 * 10**9)  # type: ignore[attr-defined]
    with pytest.raises(BudgetExhausted):
        released(full.session, script)
    assert spent(full) == 0


# --- what stops on its way ----------------------------------------------------------------------------------------


def check_all_or_nothing(desk: OpenDesk) -> None:
    """One that fails takes all with it: what was charged stays spent, and none of it is stored."""
    opened = desk()
    opened.settle(HEAVY)
    statements = read_batch(opened.session, ";\n".join((TOTAL, CITIES, FLAGS)))
    price = price_batch(opened.session, statements).charge
    original, asked = PlanRunner._ask, []

    def fails(self: PlanRunner, *rest: Any) -> None:
        asked.append(rest)
        if len(asked) == 2:
            raise EngineFailure("stopped")
        original(self, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlanRunner, "_ask", fails)
        with pytest.raises(EngineFailure) as caught:
            run_batch(opened.session, statements, None, price)
    assert caught.value.cost == "epsilon 2.68314 stays spent, and nothing was stored for it"
    assert spent(opened) == THREE
    assert price_batch(opened.session, statements).charge == price


def test_all_are_stored_or_none(desk: OpenDesk) -> None:
    check_all_or_nothing(desk)


def test_all_is_charged_before_anything_is_asked(full: Desk, monkeypatch: Patch) -> None:
    seen, original = [], PlanRunner._ask

    def asks(self: PlanRunner, *rest: Any) -> None:
        seen.append(spent(full))
        original(self, *rest)

    monkeypatch.setattr(PlanRunner, "_ask", asks)
    released(full.session, ";\n".join(DASHBOARD))
    assert seen == [THREE] * 3


def test_one_snapshot_for_all(full: Desk, monkeypatch: Patch) -> None:
    seen, original = set(), PlanRunner._ask

    def asks(self: PlanRunner, exact: Any, plan: Any, query: Any, snapshot: Any, salt: str) -> None:
        seen.add(id(snapshot))
        original(self, exact, plan, query, snapshot, salt)

    monkeypatch.setattr(PlanRunner, "_ask", asks)
    released(full.session, ";\n".join(DASHBOARD))
    assert len(seen) == 1


# --- mutants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "old", "new", "check"),
    [
        (Pending.add, "if grouping is not None", "if False", check_dashboard),
        (batch._at_price, "replace(own, ", "replace(own, charge=batch_charge(own.charge), ", check_dashboard),
        (batch_split.split, "sum(roots.values())", "sum(list(roots.values())[1:])", check_total_is_kept),
        (carry_out, "            drawn += draws\n", "            drawn += draws\n            first.store.commit(part, draws)\n", check_all_or_nothing),
    ],
    ids=["a measure twice", "a dropped epsilon", "a share dropped", "stored one by one"],
)  # fmt: skip
def test_wrong_batches(
    desk: OpenDesk, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str,
    check: Callable[[OpenDesk], None],
) -> None:  # fmt: skip
    monkeypatch.setattr(batch, "batch_charge", lambda charge: batch.Charge.pure(1), raising=False)
    plant(monkeypatch, function, (old, new))
    with pytest.raises((AssertionError, ValueError)):
        check(desk)
