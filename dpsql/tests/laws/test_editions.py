"""Editions: asked again in one the same numbers, in a later one at least as exact, and a pinned one tells the old ones.

The tables are kept beside the ledger, so what is told does not depend on who fits (soundness.md 3.8).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsql import Session
from dpsql.engine.answer import Answer
from dpsql.engine.batch import price, release
from dpsql.errors import Refusal
from dpsql.mechanisms import Gaussian, Laplace
from dpsql.plan.privacy.axes import Partition
from dpsql.release import finer, run
from dpsql.release.estimate import CELL_PARTS, PARTS, Design, Sums
from dpsql.release.run import PlanRunner
from dpsql.tests.support.random_databases import Database

from .conftest import Desk, OpenDesk
from .examples import visit
from .planting import plant
from .test_estimate import ONE, TOTAL, TWO, charged, numbers, open_at
from .test_one_draw import another_session, spent

Patch = pytest.MonkeyPatch
CROSSED = tuple(TWO.values())


@pytest.fixture
def opened(desk: OpenDesk, tmp_path: Path) -> Desk:
    """A desk with three editions: of the tables by two keys, each drawn."""
    made = open_at(desk, tmp_path)
    for sql in CROSSED:
        made.session.execute(sql)
    return made


def again(desk: Desk, *statements: str) -> None:
    """Draw anew: as many editions."""
    desk.session.execute("SET dpsql.reuse = off")
    for sql in statements:
        desk.session.execute(sql)
    desk.session.execute("SET dpsql.reuse = on")


def said(answer: Answer) -> str:
    assert answer.receipt is not None
    (note,) = (str(note) for note in answer.receipt.notes if isinstance(note, finer.EditionNote))
    return note


def pinned(session: Session, last: int, sql: str) -> Answer:
    session.execute(f"SET dpsql.edition = {last}")
    try:
        return session.execute(sql)
    finally:
        session.execute("RESET dpsql.edition")


# --- the same numbers ---------------------------------------------------------------------------------------------


def check_kept(made: Desk, patch: Patch) -> None:
    """Another machine, whose sums of doubles come out otherwise, tells the numbers of who fitted first."""
    first = {sql: list(made.session.execute(sql).rows) for sql in CROSSED}
    table = Design.table

    def other(self: Design, given: Any) -> list[int] | None:
        found = table(self, given)
        return None if found is None else [one + 2**40 * CELL_PARTS for one in found]

    with patch.context() as elsewhere:
        elsewhere.setattr(Design, "table", other)
        made.session.dataset.answers.clear()
        session = another_session(made)
        assert {sql: list(session.execute(sql).rows) for sql in CROSSED} == first


def test_the_first_who_fits_fits_for_everybody(opened: Desk, monkeypatch: Patch) -> None:
    check_kept(opened, monkeypatch)


def test_what_is_not_kept_is_seen(opened: Desk, monkeypatch: Patch) -> None:
    """The test above can fail."""
    plant(monkeypatch, finer.fitted, ("store.kept(edition, fit)", "fit()"))
    with pytest.raises(AssertionError):
        check_kept(opened, monkeypatch)


def test_a_crash_between_the_commit_and_the_fit_loses_nothing(opened: Desk, monkeypatch: Patch) -> None:
    before = spent(opened)

    def crash(self: PlanRunner) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PlanRunner, "take_estimates", crash)
        with pytest.raises(KeyboardInterrupt):
            again(opened, CROSSED[0])
    opened.session.execute("SET dpsql.reuse = on")
    after = spent(opened)
    assert after > before
    found = another_session(opened).execute(CROSSED[0])
    assert said(found).startswith('edition 4 of "visit": from 4 stored answers')
    opened.session.dataset.answers.clear()
    assert list(opened.session.execute(CROSSED[0]).rows) == list(found.rows)
    assert spent(opened) == after


# --- a later edition ----------------------------------------------------------------------------------------------


def test_a_later_edition_is_free_and_better_and_says_so(opened: Desk) -> None:
    asked = CROSSED[0]
    old = opened.session.execute(asked)
    assert said(old).startswith('edition 3 of "visit"')
    again(opened, CROSSED[1])
    new = opened.session.execute(asked)
    assert charged(new) == 0
    moved = max(abs(a[-1] - b[-1]) for a, b in zip(old.rows, new.rows, strict=True))  # type: ignore[operator]
    assert said(new).startswith(
        'edition 4 of "visit": from 4 stored answers of the same rows together; better than '
    )
    assert f"better than edition 3 (SET dpsql.edition = 3), from whose numbers these have moved by up to {moved};" in said(new)  # fmt: skip
    assert "better than edition 3" in "\n".join(opened.session.explain(asked).as_dict()["from_the_store"])  # type: ignore[arg-type]


def test_a_pinned_edition_tells_the_old_numbers(opened: Desk) -> None:
    told = {3: numbers(opened, CROSSED)}
    for last, sql in enumerate((CROSSED[1], *ONE.values(), CROSSED[2]), 4):
        again(opened, sql)
        told[last] = numbers(opened, CROSSED)
    before = spent(opened)
    for last, rows in told.items():
        for session in (opened.session, another_session(opened)):
            assert {sql: list(pinned(session, last, sql).rows) for sql in CROSSED} == rows
    assert numbers(opened, CROSSED) == told[max(told)]
    assert spent(opened) == before


FILE = (*ONE.values(), TOTAL, "SELECT AVG(n), COUNT(*) FROM visit", "SELECT COUNT(*) FROM person")


def check_pinned_file(made: Desk) -> None:
    """A file that names the edition of its own commit tells the numbers of that day, free, whoever runs it."""
    first = [list(answer.rows) for answer in release(made.session, FILE)]
    last = max(one.seq for one in made.session.dataset.store.log(100))
    moved = first
    for _ in range(20):  # what two draws say of few groups may be the first one's numbers
        again(made, *FILE)
        moved = [list(answer.rows) for answer in release(made.session, FILE)]
        if all(old != new for old, new in zip(first, moved, strict=True)):
            break
    assert all(old != new for old, new in zip(first, moved, strict=True))
    before, text = spent(made), f"SET dpsql.edition = {last};" + ";".join(FILE)
    for session in (made.session, another_session(made)):
        priced = price(session, text)
        assert all(one.is_stored for one in priced.statements)
        assert [list(answer.rows) for answer in release(session, text)] == first
        mixed = f"SET dpsql.edition = {last}; {FILE[0]}; RESET dpsql.edition; {FILE[0]}; {FILE[-2]}"
        assert [list(answer.rows) for answer in release(session, mixed)] == [first[0], moved[0], moved[-2]]
    assert spent(made) == before
    old, new, *_ = release(made.session, mixed, Fraction(1))
    assert list(old.rows) == first[0] != list(new.rows)
    assert spent(made) > before


def test_a_file_that_names_its_edition_tells_the_same_for_ever(desk: OpenDesk, tmp_path: Path) -> None:
    check_pinned_file(open_at(desk, tmp_path))


def test_a_file_of_the_newest_edition_is_seen(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(run, "AsOf", lambda store, last: store)
    with pytest.raises(AssertionError):
        check_pinned_file(open_at(desk, tmp_path))


def test_an_edition_that_is_no_longer_kept_is_fitted_again(opened: Desk, monkeypatch: Patch) -> None:
    first = numbers(opened, CROSSED)
    monkeypatch.setattr("dpsql.budget.editions.MOST_EDITIONS", 2)
    for sql in CROSSED:
        again(opened, sql)
        opened.session.execute(sql)
    assert {sql: list(pinned(opened.session, 3, sql).rows) for sql in CROSSED} == first
    assert "better" not in said(pinned(opened.session, 4, CROSSED[2]))
    assert "better than edition 5" in said(pinned(opened.session, 6, CROSSED[2]))


def test_an_edition_without_the_answer_is_refused_and_charges_nothing(opened: Desk) -> None:
    before = spent(opened)
    for last, sql in (
        (0, CROSSED[0]),
        (1, CROSSED[1]),
        (3, "SELECT AVG(n) FROM visit"),
        (3, "SELECT COUNT(*) FROM person"),
    ):
        for ask in (opened.session.execute, opened.session.explain):
            opened.session.execute(f"SET dpsql.edition = {last}")
            with pytest.raises(Refusal, match=f"edition {last} does not answer this") as caught:
                ask(sql)
            assert caught.value.sqlstate == "22023"
            opened.session.execute("RESET dpsql.edition")
    for value in ("-1", "1.5", "x", "1e3"):
        with pytest.raises(Refusal, match=r"dpsql\.edition is the number of an edition"):
            opened.session.execute(f"SET dpsql.edition = '{value}'")
    opened.session.execute("SET dpsql.edition = 3")
    assert list(opened.session.execute("SHOW dpsql.edition").rows) == [("3",)]
    opened.session.execute("SET dpsql.edition = newest")
    with pytest.raises(Refusal, match="statement 2: edition 2 does not answer this"):
        release(opened.session, f"SET dpsql.edition = 2; {CROSSED[0]}; {CROSSED[2]}")
    assert spent(opened) == before


def test_an_epoch_begins_anew(opened: Desk) -> None:
    opened.session.dataset.store.advance_epoch()
    opened.session.dataset.answers.clear()
    with pytest.raises(Refusal, match="edition 3 does not answer this"):
        pinned(opened.session, 3, CROSSED[0])


# --- do they agree ------------------------------------------------------------------------------------------------


def test_rows_that_changed_within_an_epoch_are_noticed(opened: Desk) -> None:
    assert "do not agree" not in said(opened.session.execute(CROSSED[0]))
    opened.session.execute("SET dpsql.epsilon = 1")
    again(opened, CROSSED[0])
    opened.settle(Database((), tuple(visit(unit, city="a", flag="true", level="low") for unit in range(400))))
    again(opened, CROSSED[1])
    assert "which do not agree: rows have changed since" in said(opened.session.execute(CROSSED[0]))


def designs() -> list[tuple[Design, int]]:
    """Return designs with how many numbers their tables have of their own, worked out by hand."""
    each, none = (lambda n: Partition(tuple(range(n)))), Partition.whole
    months = Partition((0, 0, 0, 1, 1, 1, 1))
    rows, columns, both = Sums((each(4), none(3))), Sums((none(4), each(3))), Sums((each(4), each(3)))
    days, by_month, total = Sums((each(7),)), Sums((months,)), Sums((none(7),))
    return [
        (Design((4, 3), (rows, columns), (2.0, 3.0)), 4 + 3 - 1),
        (Design((4, 3), (rows, both), (2.0, 3.0)), 12),
        (Design((7,), (days, by_month, total), (1.0, 1.0, 1.0)), 7),
        (Design((7,), (by_month, total), (1.0, 1.0)), 2),
    ]


def test_how_many_numbers_a_table_has_of_its_own() -> None:
    for design, rank in designs():
        assert finer._rank(design) == rank
    across = Sums((Partition((0, 0, 0, 1, 1, 1, 1)),)), Sums((Partition((0, 0, 1, 1, 2, 2, 2)),))
    assert finer._rank(Design((7,), across, (1.0, 1.0))) is None


@pytest.mark.parametrize("law", [Laplace(Fraction(10)), Gaussian(Fraction(10))], ids=["laplace", "gaussian"])
def test_draws_that_agree_are_seldom_said_not_to(law: Any) -> None:
    """Of 2,000 tables of two to twenty draws none is; of draws that are ten deviations off all are."""
    rng = np.random.default_rng(5)

    def noise(size: int) -> Any:
        scale = float(law.spread) ** 0.5
        drawn = (
            rng.laplace(0, scale / 2**0.5, size) if isinstance(law, Laplace) else rng.normal(0, scale, size)
        )
        return np.rint(drawn).astype(np.int64)

    for design, rank in designs():
        for draws in (1, 2, 5):
            wrong = 0
            for off in (False,) * 100 + (True,) * 3:
                drawn, laws = [], []
                for sums in design.drawn:
                    own = [noise(sums.size) for _ in range(draws)]
                    own[0] = own[0] + int(off and sums is design.drawn[0]) * 200
                    drawn.append(
                        (
                            [round(float(one) * PARTS) for one in np.mean(own, axis=0)],
                            [(one, law) for one in own],
                        )
                    )
                    laws.append([law] * draws)
                cells = design.table([numbers for numbers, _ in drawn])
                assert cells is not None
                distance = finer._distance(design, cells, [each for _, each in drawn])
                degrees = sum(sums.size for sums in design.drawn) * draws - rank
                found = finer.disagrees(design, distance, laws)
                if off and degrees > 0 and draws > 1:
                    assert found
                wrong += found and not off
            assert wrong == 0


# --- mutants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "old", "new", "check"),
    [
        (finer.AsOf.groupings, "one.entry <= self.last", "True", test_a_pinned_edition_tells_the_old_numbers),
        (finer.AsOf.lookup, "self.last if until is None", "None if until is None", test_an_edition_without_the_answer_is_refused_and_charges_nothing),
        (finer.Source._edition, "family, place", "family, 0", None),
    ],
    ids=["later draws", "later draws of one's own", "one coordinate for all"],
)  # fmt: skip
def test_wrong_editions(
    opened: Desk, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str, check: Callable[[Desk], None] | None
) -> None:  # fmt: skip
    plant(monkeypatch, function, (old, new))
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        (check or two_coordinates)(opened)


def two_coordinates(opened: Desk) -> None:
    """An average's two coordinates are two tables."""
    for sql in ("SELECT AVG(n) FROM visit", "SELECT flag, AVG(n) FROM visit GROUP BY flag"):
        again(opened, sql)
    found = opened.session.dataset.store.groupings([])
    assert found
    keys = set()
    fit = finer.fitted

    def see(store: Any, edition: Any, *rest: Any) -> Any:
        keys.add(edition.key)
        return fit(store, edition, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finer, "fitted", see)
        opened.session.dataset.answers.clear()
        opened.session.execute("SELECT flag, AVG(n) FROM visit GROUP BY flag")
    assert len(keys) > 1


def test_coordinates_have_tables_of_their_own(opened: Desk) -> None:
    two_coordinates(opened)
