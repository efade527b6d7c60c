"""A statement of which stored draws tell a part pays for the rest, and is as exact as alone (soundness.md 3.13).

The figures are those of the draws that answer, by their laws alone, and of the ledger's records.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql import Session
from dpsql.budget import LedgerStore
from dpsql.engine.batch import release
from dpsql.errors import Unverified
from dpsql.mechanisms import ATTO, NANO, Gaussian, Laplace, Wish
from dpsql.release import finer, price, run, table
from dpsql.release.price import reads_each_alone
from dpsql.release.run import PlanRunner, ReleasedRows
from dpsql.release.table import Shape
from dpsql.tests.support.length import first, tried

from .conftest import Desk, OpenDesk
from .planting import plant
from .test_estimate import ONE, ROLLED, TOTAL, TWO, open_at

Patch = pytest.MonkeyPatch

TILES = (*ONE.values(), *TWO.values(), TOTAL)
BY_CITY, CROSSED = ONE["city",], TWO["city", "flag"]
ACCOUNTINGS = ("pure", "zcdp")
BEFORE = {
    "pure": ("0.56798", "0.58581", "0.598383"),
    "zcdp": ("0.02495598", "0.02610744", "0.02759116"),
}
"""What orders of `TILES` cost, by their seed, before margins helped what they do not tell."""


def paid(desk: Desk) -> Fraction:
    """Return what is spent, in what adds up."""
    spent = desk.session.dataset.store.spent()
    if desk.session.budget().in_rho:
        return Fraction(spent.rho_atto, ATTO)
    return Fraction(spent.epsilon_nano, NANO)


@dataclass
class Seen:
    """The last answer's releases."""

    rows: Sequence[ReleasedRows] = field(default_factory=list)

    def widest(self) -> float:
        """Return the largest variance of a number, over the one that it is to have."""
        found = []
        for rows in self.rows:
            for index, measurement in rows.measurements.items():
                wanted = rows.plan.measures[index].law
                told = rows.fitted.get(index)
                if told:
                    found += [max((one.variances + one.rounding).tolist()) for one in told]
                else:
                    found += [float(law.spread) for law in measurement.laws]
                found = [one / float(wanted.spread) for one in found]
        return float(max(found))


@contextmanager
def watched(patch: Patch) -> Iterator[Seen]:
    seen, original = Seen(), Session.answer

    def answer(self: Session, prepared: Any, runner: PlanRunner, *rest: Any) -> Any:
        again = self.runner(prepared, runner.statement, rest[1], runner.cost, lambda: None)
        assert again.from_store(), "what was drawn answers it again, free"
        seen.rows = again.rows
        return original(self, prepared, runner, *rest)

    with patch.context() as own:
        own.setattr(Session, "answer", answer)
        yield seen


def check_as_exact_as_alone(desk: OpenDesk, folder: Path, accounting: str, patch: Patch) -> None:
    """Whatever was asked before, no number of an answer has more variance than alone; what costs less is free again."""
    for seed in range(3):
        made = open_at(desk, folder / f"exact{seed}", accounting)
        with watched(patch) as seen:
            for sql in random.Random(seed).sample(TILES, len(TILES)):
                made.session.execute(sql)
                assert seen.widest() <= 1 + 2**-15, sql
                before = paid(made)
                made.session.dataset.answers.clear()
                made.session.execute(sql)
                assert paid(made) == before


@pytest.mark.parametrize("accounting", first(1, ACCOUNTINGS))
def test_what_is_paid_for_in_part_is_as_exact_as_alone(
    desk: OpenDesk, tmp_path: Path, monkeypatch: Patch, accounting: str
) -> None:
    check_as_exact_as_alone(desk, tmp_path, accounting, monkeypatch)


def check_charges(desk: OpenDesk, folder: Path, accounting: str) -> None:
    """What each entry of the ledger is charged is what the noise of its own draw loses."""
    made = open_at(desk, folder, accounting)
    for sql in (CROSSED, BY_CITY, TOTAL, *ONE.values()):
        made.session.execute(sql)
    store = made.session.dataset.store
    assert isinstance(store, LedgerStore)
    (release_,) = made.session.explain(BY_CITY).plan.releases
    (measurement,) = release_.measurements
    charges = []
    for entry in store.log(9):
        law = entry.law
        if accounting == "zcdp":
            assert isinstance(law, Gaussian)
            lost = Fraction(measurement.squared_sensitivity) / (2 * law.scale**2)
            assert lost <= Fraction(entry.charge.rho_atto, ATTO)
        else:
            assert isinstance(law, Laplace)
            assert measurement.sensitivity / law.scale == Fraction(entry.charge.epsilon_nano, NANO)
        charges.append(entry.charge)
    assert len({charge.rho_atto for charge in charges}) > 2, "some were charged less than others"


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_the_charge_is_what_the_noise_that_is_drawn_loses(
    desk: OpenDesk, tmp_path: Path, accounting: str
) -> None:
    check_charges(desk, tmp_path, accounting)


def costs(
    desk: OpenDesk, folder: Path, accounting: str, statements: Sequence[str], *, at_once: bool
) -> Fraction:
    made = open_at(desk, folder, accounting)
    if at_once:
        release(made.session, statements)
    else:
        for sql in statements:
            made.session.execute(sql)
    return paid(made)


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_no_order_costs_more_than_in_full_and_no_file_more_than_its_statements(
    desk: OpenDesk, tmp_path: Path, monkeypatch: Patch, accounting: str
) -> None:
    for seed in range(tried(1, 3)):
        order = random.Random(seed).sample(TILES, len(TILES))
        one_by_one = costs(desk, tmp_path / f"one{seed}", accounting, order, at_once=False)
        assert one_by_one <= Fraction(BEFORE[accounting][seed])
        assert costs(desk, tmp_path / f"file{seed}", accounting, order, at_once=True) <= one_by_one
        with monkeypatch.context() as patch:
            patch.setattr(run, "known_of", lambda *_: None)
            if accounting == "pure":
                patch.setattr(run, "wish_of", lambda *_: None)
            assert one_by_one <= costs(desk, tmp_path / f"full{seed}", accounting, order, at_once=False)


def check_sums_of_groups(desk: OpenDesk, folder: Path) -> None:
    """A total that is added up above the release has no more variance than where all of it is drawn for it."""
    made = open_at(desk, folder)
    for sql in TWO.values():
        made.session.execute(sql)
    before = paid(made)
    made.session.execute(ROLLED)
    assert paid(made) - before == Fraction(1, 200)


def test_what_is_added_up_above_a_release_is_paid_in_full(desk: OpenDesk, tmp_path: Path) -> None:
    check_sums_of_groups(desk, tmp_path)


def check_sums_of_what_is_told(desk: OpenDesk, folder: Path) -> None:
    """Groups that are told as well as alone, with errors that go the same way: their total is paid for."""
    made = open_at(desk, folder)
    for sql in TWO.values():
        made.session.execute(sql)
    before = paid(made)
    made.session.execute(BY_CITY)
    part = paid(made) - before
    made.session.execute(ROLLED)
    assert 0 < part < paid(made) - before == Fraction(1, 200)


def test_a_total_of_groups_that_were_paid_for_in_part_is_as_exact_as_alone(
    desk: OpenDesk, tmp_path: Path
) -> None:
    check_sums_of_what_is_told(desk, tmp_path)


def test_of_what_is_computed_each_number_is_read_alone(desk: OpenDesk, tmp_path: Path) -> None:
    made = open_at(desk, tmp_path)

    def alone(sql: str) -> bool:
        return reads_each_alone(made.session.explain(sql).plan)

    assert all(map(alone, (*TILES, f"{BY_CITY} HAVING COUNT(*) > 10 ORDER BY 2 LIMIT 2")))
    assert alone(f"{BY_CITY} UNION ALL {ONE['flag',].replace('flag', 'CAST(flag AS text)', 1)}")
    for sql in (
        ROLLED,
        "SELECT city, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () FROM visit GROUP BY city",
        f"SELECT MAX(n) FROM ({BY_CITY}) AS t(city, n)",
        f"SELECT a.n - b.n FROM ({BY_CITY}) AS a(c, n) JOIN ({BY_CITY}) AS b(c, n) ON a.c < b.c",
        f"SELECT ({TOTAL}) - (SELECT COUNT(*) FROM person)",
    ):
        assert not alone(sql), sql


def check_overtaken(desk: OpenDesk, folder: Path, patch: Patch, owner: object, step: str) -> None:
    """What another draws of the same rows before a step, after the statement looked: it looks again, and pays nothing."""
    made = open_at(desk, folder)
    made.session.execute(CROSSED)
    other = Session(made.session.dataset, "somebody else", is_shared=True)
    original, seen = getattr(owner, step), list[Fraction]()

    def overtaken(*arguments: Any) -> Any:
        if not seen:
            seen.append(paid(made))
            other.execute(BY_CITY)
            seen.append(paid(made))
        return original(*arguments)

    with patch.context() as own:
        own.setattr(owner, step, overtaken)
        made.session.execute(BY_CITY)
    assert paid(made) == seen[1] > seen[0], "the other's draw answers it"


PRICED, DRAWN = (run.PlanRunner, "claim"), (run, "carry_out")


@pytest.mark.parametrize("place", [PRICED, DRAWN], ids=["before its price", "after its price"])
def test_who_is_overtaken_by_another_draw_looks_again(
    desk: OpenDesk, tmp_path: Path, monkeypatch: Patch, place: tuple[object, str]
) -> None:
    check_overtaken(desk, tmp_path, monkeypatch, *place)


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_explain_says_what_is_known_and_what_is_paid(desk: OpenDesk, tmp_path: Path, accounting: str) -> None:
    made = open_at(desk, tmp_path, accounting)
    made.session.execute(CROSSED)
    (entry,) = made.session.dataset.store.log(1)
    said = made.session.explain(BY_CITY).text()
    before = paid(made)
    receipt = made.session.execute(BY_CITY).receipt
    more = paid(made) - before
    assert f"known from entry {entry.seq} of the ledger; what is missing is drawn" in " ".join(said.split())
    words = (
        f"charge: {float(more):.4g} of rho more; "
        if accounting == "zcdp"
        else f"charge: epsilon {float(more)} more; "
    )
    assert words in said
    assert receipt is not None
    assert any(" more; " in str(note) for note in receipt.notes)
    assert "of it is stored, in " in made.session.dataset.store.log(1)[0].note


def check_what_nothing_tells(desk: OpenDesk, folder: Path, accounting: str) -> None:
    """A grouping beside its stored margins costs less than all of it; of epsilon only where these are told without."""
    folder.mkdir(exist_ok=True)
    made, whole = (
        open_at(desk, folder / "margins", accounting),
        Fraction(1, 200 if accounting == "zcdp" else 10),
    )

    def charge(sql: str) -> Fraction:
        before = paid(made)
        made.session.execute(sql)
        return paid(made) - before

    assert [charge(TOTAL) == whole, *(charge(sql) < whole for sql in (*ONE.values(), CROSSED))] == [True] * 5
    made = open_at(desk, folder / "crossed", accounting)
    assert charge(CROSSED) == whole
    assert (charge(TWO["flag", "level"]) < whole) is (accounting == "zcdp"), (
        "by level it would be told less well"
    )


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_what_nothing_tells_yet_is_paid_for_beside_its_margins(
    desk: OpenDesk, tmp_path: Path, accounting: str
) -> None:
    check_what_nothing_tells(desk, tmp_path, accounting)


# --- what is asked for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 60, 2**20 * 12])
@pytest.mark.parametrize("known", [0.001, 0.3, 0.9, 0.999])
def test_a_pure_draw_has_the_precision_that_is_missing(size: int, known: float) -> None:
    """By the law itself: the discrete Laplace's variance is 1 / (cosh(epsilon / size) - 1)."""
    wish = Wish(size, NANO // 2, False)
    whole = wish.precision(wish.loss)
    assert float(whole) == pytest.approx(2 * math.sinh(0.25 / size) ** 2, rel=1e-12)
    part = Fraction(known) * whole
    loss = wish.missing(part)
    assert wish.precision(loss) >= whole - part > wish.precision(loss - 1000)
    assert wish.law(loss) == Laplace(Fraction(size * NANO, loss))
    assert wish.missing(Fraction(0)) == wish.loss
    assert wish.stored(wish.loss - 1) <= wish.loss


# --- mutants -------------------------------------------------------------------------------------------------------


@dataclass
class Uneven:
    """A source of which one number is told four times as well as another, or moved by rounding."""

    errors: set[tuple[float, float]] = field(default_factory=lambda: {(4.0, 0.0), (16.0, 0.0)})


def check_the_number_that_lacks_most() -> None:
    source: Any = Uneven()
    assert price._lacking(source, Fraction(1, 2)) == Fraction(1, 2) - Fraction(1, 16)
    source = Uneven({(4.0, 0.0), (4.0, 0.25)})
    assert price._lacking(source, Fraction(1, 2)) == Fraction(4, 7) - Fraction(1, 4)


def test_the_number_that_lacks_most_is_paid_for() -> None:
    check_the_number_that_lacks_most()


@pytest.mark.parametrize("lacking", [Fraction(-1), Fraction(0), Fraction(1, 2**40)])
def test_where_nothing_lacks_the_least_is_drawn(lacking: Fraction) -> None:
    """Another process has drawn it between two looks: then a further draw changes nothing of what lacks."""
    wish = Wish(2, NANO // 10, is_zcdp=False)
    assert price._least(wish, wish.precision(wish.loss), lacking, lambda _: lacking) == wish.reaching(lacking)


@pytest.mark.parametrize(
    "piece",
    [("max(lacking)", "min(lacking)"), ("sorted(told.errors)", "sorted(told.errors, reverse=True)")],
    ids=["of roundings", "of variances"],
)
def test_plant_the_number_that_lacks_least(monkeypatch: Patch, piece: tuple[str, str]) -> None:
    plant(monkeypatch, price._lacking, piece)
    with pytest.raises(AssertionError):
        check_the_number_that_lacks_most()


def test_plant_beyond_the_chord(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    """A draw that was not tried is less than what is missing, and is asked for again."""
    plant(
        monkeypatch,
        price._least,
        ("had * lacking / (lacking - left)", "had * lacking / (2 * (lacking - left))"),
        ("if left <= whole * _SLACK:", "if True:"),
    )
    with pytest.raises((AssertionError, ZeroDivisionError)):
        check_as_exact_as_alone(desk, tmp_path, "zcdp", monkeypatch)


def test_plant_what_margins_pay_back(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    plant(monkeypatch, price.known_of, ("if before is None and not wish.is_zcdp:", "if False:"))
    with pytest.raises(AssertionError):
        check_what_nothing_tells(desk, tmp_path, "pure")


def test_plant_another_key_left_out(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    """A margin that is not the one without a key."""
    plant(monkeypatch, Shape.without, ("if digest != key", "if digest == key"))
    with pytest.raises(AssertionError):
        check_left_out(desk, tmp_path)


def check_left_out(desk: OpenDesk, folder: Path) -> None:
    """A question by all of its keys but one has each group of the others once, in their order."""
    made = open_at(desk, folder)
    ((release_,),) = (made.session.explain(CROSSED).plan.releases,)
    groups = run._known_rows(release_).groups
    assert groups is not None
    shape = table.questions_of(release_, groups)[0].shape
    places = dict(shape.keys)
    for key in places:
        (other,) = places.keys() - {key}
        left = shape.without(key)
        assert (left.keys, left.rows) == (((other, tuple(range(len(places[other])))),), None)
        alone = left.without(other)
        assert (alone.keys, alone.size) == ((), 1)


def test_a_question_by_one_key_less_has_each_group_once(desk: OpenDesk, tmp_path: Path) -> None:
    check_left_out(desk, tmp_path)


def test_plant_sums_of_groups(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(run, "reads_each_alone", lambda _: True)
    with pytest.raises(AssertionError):
        check_sums_of_groups(desk, tmp_path)


def test_plant_sums_of_what_is_told(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(finer.Source, "sways", lambda self, wanted: False)
    with pytest.raises(AssertionError):
        check_sums_of_what_is_told(desk, tmp_path)


def test_plant_a_narrower_noise_than_is_paid_for(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    """The verifier holds the charge against the noise that is drawn."""
    plant(monkeypatch, Wish.law, ("Gaussian.finely_for_rho(self.size, Fraction(loss, ATTO))",
                                  "Gaussian.finely_for_rho(self.size, Fraction(self.loss, ATTO))"))  # fmt: skip
    with pytest.raises((AssertionError, Unverified)):
        check_charges(desk, tmp_path, "zcdp")


def test_plant_what_was_known_before(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    from dpsql.budget import ledger_store

    plant(monkeypatch, ledger_store._is_overtaken, ("!= entries", "== entries and False"))
    with pytest.raises(AssertionError):
        check_overtaken(desk, tmp_path, monkeypatch, *DRAWN)


def test_plant_the_least_loss_is_paid_for_nothing(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    plant(monkeypatch, run.Wanted.tried, ("one.is_told", "False"))
    with pytest.raises(AssertionError):
        check_overtaken(desk, tmp_path, monkeypatch, *PRICED)
