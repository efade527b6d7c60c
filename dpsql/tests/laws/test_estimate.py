"""Stored groupings that tell a question together: soundness.md 3.8, 3.15.

At any moment all answers of the same rows are sums of one table, whoever asked first; none is less exact than asked
alone, none is dearer than where each grouping answers by itself; and a question that is free moves no number.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.engine.answer import Answer
from dpsql.engine.session import Session
from dpsql.policy import parse_policy
from dpsql.release import estimate, finer, table
from dpsql.release.run import PlanRunner
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import tried
from dpsql.tests.support.random_databases import policy_text

from .conftest import Desk, OpenDesk
from .examples import HEAVY, ORDINARY
from .planting import plant
from .test_one_draw import another_session, spent

Patch = pytest.MonkeyPatch

KEYS = ("city", "flag", "level")
ONE = {(key,): f"SELECT {key}, COUNT(*) FROM visit GROUP BY {key}" for key in KEYS}
TWO = {
    pair: f"SELECT {', '.join(pair)}, COUNT(*) FROM visit GROUP BY {', '.join(pair)}"
    for pair in itertools.combinations(KEYS, 2)
}
TOTAL = "SELECT COUNT(*) FROM visit"
TILES = (*TWO.values(), *ONE.values(), TOTAL, "SELECT COUNT(*) FROM visit WHERE city = 'a'")
TURNED = "SELECT flag, city, COUNT(*) FROM visit GROUP BY flag, city"
ROLLED = "SELECT city, COUNT(*) FROM visit GROUP BY ROLLUP (city)"


def open_at(desk: OpenDesk, folder: Path, accounting: str = "zcdp", epsilon: str = "0.1") -> Desk:
    """Open a desk whose columns have no other values than those that are listed."""
    folder.mkdir(exist_ok=True)
    text = policy_text(epsilon=epsilon).replace("{ null = true }] }", "{ null = true }], complete = true }")
    text = text.replace(
        "level = {}", 'level = { values = ["low", "high", { null = true }], complete = true }'
    )
    text = text.replace("[privacy]", f'[privacy]\naccounting = "{accounting}"')
    made = desk(policy=parse_policy(text, folder / "laws.toml"), folder=folder)
    made.settle(HEAVY)
    return made


def charged(answer: Answer) -> Fraction:
    assert answer.receipt is not None
    return answer.receipt.epsilon


def numbers(desk: Desk, statements: Sequence[str] = TILES) -> dict[str, list[Any]]:
    return {sql: list(desk.session.execute(sql).rows) for sql in statements}


def check_one_table(desk: OpenDesk, folder: Path, accounting: str = "zcdp") -> None:
    """All tiles add up to each other, whatever was asked first, for everybody, and asking them is free."""
    for seed in range(2):
        made = open_at(desk, folder / str(seed), accounting)
        for sql in random.Random(seed).sample(
            TILES[:-1], len(TILES) - 1
        ):  # by itself a filter's t is another one
            made.session.execute(sql)
        before, said = spent(made), numbers(made)
        assert spent(made) == before
        ((total,),) = said[TOTAL]
        for sql in (*TWO.values(), *ONE.values()):
            assert sum(row[-1] for row in said[sql]) == total
        for (key,), sql in ONE.items():
            for pair, crossed in TWO.items():
                if key in pair:
                    at = pair.index(key)
                    for name, number in said[sql]:
                        assert number == sum(row[-1] for row in said[crossed] if row[at] == name)
        turned = {(city, flag): number for flag, city, number in made.session.execute(TURNED).rows}
        assert turned == {row[:2]: row[2] for row in said[TWO["city", "flag"]]}
        assert dict(said[ONE["city",]])["a"] == said[TILES[-1]][0][0]
        made.session.dataset.answers.clear()
        assert {sql: list(another_session(made).execute(sql).rows) for sql in reversed(TILES)} == said


@pytest.mark.parametrize("accounting", ["pure", pytest.param("zcdp", marks=pytest.mark.long)])
def test_all_answers_are_sums_of_one_table(desk: OpenDesk, tmp_path: Path, accounting: str) -> None:
    check_one_table(desk, tmp_path, accounting)


@pytest.mark.parametrize("is_stored", [False, True])
def test_an_answer_that_a_draw_overtook_is_not_remembered(
    desk: OpenDesk, tmp_path: Path, monkeypatch: Patch, is_stored: bool
) -> None:
    """Another draws of the same rows after the store was read for an answer: the next who asks reads both draws."""
    made = open_at(desk, tmp_path)
    other, own = Session(made.session.dataset, "somebody else", is_shared=True), Session.agreeing
    if is_stored:
        made.session.execute(TOTAL)
        made.session.dataset.answers.clear()

    def overtaken(self: Session, *arguments: Any) -> Any:
        found = own(self, *arguments)
        if self is made.session:
            assert charged(other.execute(ONE["city",])) > 0
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Session, "agreeing", overtaken)
        assert (charged(made.session.execute(TOTAL)) == 0) is is_stored
    after = made.session.execute(TOTAL)
    assert after.receipt is not None
    assert charged(after) == 0
    assert any("from 2 stored answers" in str(note) for note in after.receipt.notes)


def check_exact(desk: OpenDesk, folder: Path) -> None:
    """Without noise, and where no bound bites, every number is what its own draw says, whatever it is made of."""
    folder.mkdir(exist_ok=True)
    made = open_at(lambda **rest: desk(ZeroNoise(), **rest), folder)
    made.settle(ORDINARY)  # of rows that are cut a filter's are others
    made.session.execute("SET dpsql.reuse = off")
    own = numbers(made)
    made.session.execute("SET dpsql.reuse = on")
    assert numbers(made) == own


def test_what_is_exact_does_not_move(desk: OpenDesk, tmp_path: Path) -> None:
    check_exact(desk, tmp_path)


def check_again(desk: OpenDesk, folder: Path) -> None:
    """What is told when it is drawn is what is told again, of all stored draws, as exactly as was asked for."""
    made = open_at(desk, folder)
    made.session.execute(TWO["city", "flag"])
    first = made.session.execute(ONE["level",])
    assert first.receipt is not None
    assert any('edition 2 of "visit": from 2 stored answers' in note for note in first.receipt.notes)
    made.session.dataset.answers.clear()
    again = made.session.execute(ONE["level",])
    assert charged(again) == 0
    assert list(again.rows) == list(first.rows)


def test_what_is_told_first_is_told_again(desk: OpenDesk, tmp_path: Path) -> None:
    check_again(desk, tmp_path)


def check_free(desk: OpenDesk, folder: Path) -> None:
    """Nothing that is free moves a number; a draw of other rows does not either."""
    made = open_at(desk, folder)
    for sql in (TWO["city", "flag"], TWO["flag", "level"], TOTAL):
        made.session.execute(sql)
    tiles = (TWO["city", "flag"], TWO["flag", "level"], TOTAL, ONE["flag",])
    made.session.execute(ONE["flag",])
    said, before = numbers(made, tiles), spent(made)
    for sql in (
        "SELECT COUNT(*) FROM visit WHERE city = 'b'",
        "SELECT flag, COUNT(*) FROM visit WHERE flag GROUP BY flag",
    ):
        made.session.execute("SET dpsql.epsilon = 0.01")
        made.session.execute(sql)
        made.session.execute("RESET dpsql.epsilon")
    assert spent(made) == before
    made.session.execute("SELECT COUNT(*) FROM visit WHERE n > 1")
    made.session.execute("SELECT SUM(n) FROM visit")
    made.session.dataset.answers.clear()
    assert numbers(made, tiles) == said


def test_free_questions_move_no_number(desk: OpenDesk, tmp_path: Path) -> None:
    check_free(desk, tmp_path)


def test_the_price_is_of_the_text_alone(desk: OpenDesk, tmp_path: Path) -> None:
    """Other rows, and other noise: the same charges, in every order."""
    for seed in range(tried(1, 2)):
        tiles = random.Random(seed).sample(TILES, len(TILES))
        paid = []
        for number, database in enumerate((HEAVY, ORDINARY)):
            made = open_at(desk, tmp_path / f"{seed}{number}")
            made.settle(database)
            paid.append([charged(made.session.execute(sql)) for sql in tiles])
        assert paid[0] == paid[1]


MANY = (
    *TILES, ROLLED, "SELECT SUM(n) FROM visit", "SELECT flag, SUM(n) FROM visit GROUP BY flag", "SELECT AVG(n) FROM visit",
    "SELECT flag, AVG(n), COUNT(*) FROM visit GROUP BY flag", "SELECT COUNT(*) FROM person",
    "SELECT team, active, COUNT(*) FROM person GROUP BY team, active", "SELECT active, COUNT(*) FROM person GROUP BY active",
    "SELECT team, COUNT(*) FROM person WHERE active GROUP BY team",
)  # fmt: skip


def check_never_worse(desk: OpenDesk, folder: Path, accounting: str, orders: int) -> None:
    """Against the store in which each grouping answers by itself: no order is dearer, and no bar in it is wider."""
    for seed in range(orders):
        order = random.Random(seed).sample(MANY, 9)
        runs = []
        for together in (False, True):
            made = open_at(desk, folder / f"{seed}{together}", accounting)
            made.session.execute("SET dpsql.intervals = 0.95")
            with pytest.MonkeyPatch.context() as patch:
                if not together:
                    patch.setattr(finer, "_estimate", lambda *rest: None)
                answers = [made.session.execute(sql) for sql in order]
            runs.append((spent(made), answers))
        (alone, before), (paid, after) = runs
        assert paid <= alone, order
        for sql, one, other in zip(order, before, after, strict=True):
            names = [column.name for column in other.columns]
            for low, high in (
                (names.index(n), names.index(n[:-4] + "_high")) for n in names if n.endswith("_low")
            ):
                if accounting == "zcdp" and "AVG" not in sql:
                    both: tuple[list[Any], list[Any]] = list(one.rows), list(other.rows)
                    widths = [max(row[high] - row[low] for row in rows) for rows in both]
                    simulated = (
                        1.06 if "ROLLUP" in sql else 1
                    )  # quantiles of 2,000 replicas, three deviations
                    assert widths[1] <= widths[0] * simulated + 2, (sql, order)


@pytest.mark.parametrize("accounting", ["pure", "zcdp"])
def test_no_order_is_dearer_or_less_exact(desk: OpenDesk, tmp_path: Path, accounting: str) -> None:
    check_never_worse(desk, tmp_path, accounting, tried(1, 3))


@pytest.mark.long
@pytest.mark.parametrize("accounting", ["pure", "zcdp"])
def test_no_order_of_many_is_dearer_or_less_exact(desk: OpenDesk, tmp_path: Path, accounting: str) -> None:
    check_never_worse(desk, tmp_path, accounting, 40)


def test_older_draws_choose_first(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    """Where a table has no room for more axes, what was told stays told."""
    monkeypatch.setattr(finer, "_MOST_CELLS", 14)
    made = open_at(desk, tmp_path)
    for sql in (TWO["city", "flag"], ONE["flag",]):
        made.session.execute(sql)
    before = spent(made)
    for sql in (TWO["flag", "level"], TWO["city", "level"]):
        made.session.execute(sql)
        made.session.dataset.answers.clear()
        assert charged(made.session.execute(ONE["flag",])) == 0
    assert spent(made) > before


def check_told_stays_told(desk: OpenDesk, folder: Path, patch: Patch) -> None:
    """Weeks lie across months, whose errors are of many kinds then: whatever is drawn of them, what was told is free."""
    made = open_at(desk, folder)
    crossed, months, weeks = (
        f"SELECT {keys}, COUNT(*) FROM visit GROUP BY ALL"
        for keys in ("date_trunc('month', day), city", "date_trunc('month', day)", "date_trunc('week', day)")
    )
    for module in (finer, estimate):
        patch.setattr(module, "MOST_FORMS", 2_000)
    made.session.execute(crossed)
    assert 0 < charged(made.session.execute(months)) < charged(made.session.execute(weeks))
    made.session.dataset.answers.clear()
    assert charged(made.session.execute(months)) == 0


def test_what_was_told_stays_told(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    check_told_stays_told(desk, tmp_path, monkeypatch)


def test_plant_the_newer_take_room_away(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    plant(monkeypatch, finer._joined, ("found.is_small:", "True:"))
    with pytest.raises(AssertionError):
        check_told_stays_told(desk, tmp_path, monkeypatch)


# --- mutants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "old", "new", "check"),
    [
        (table.whole_keys, ", **complete}", "}", check_one_table),
        (table.Reading.values, "_numbers(self.shape, self.axes)", "_numbers(self.shape, self.axes)[::-1]", check_exact),
        (finer.Source.serves, "float(one.variances.max()) <=", "0 <=", check_never_worse),
        (PlanRunner.take_estimates, "if not self.reuse or", "if self.reuse or", check_again),
        (PlanRunner._take_best, "not is_enough", "own is None", check_one_table),
    ],
    ids=["others in the total", "keys in another order", "whatever is stored serves", "told by its own draw alone", "own draws first"],
)  # fmt: skip
def test_wrong_estimates(
    desk: OpenDesk, tmp_path: Path, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str,
    check: Callable[..., None],
) -> None:  # fmt: skip
    plant(monkeypatch, function, (old, new))
    with pytest.raises((AssertionError, ValueError)):
        check(desk, tmp_path, *(("zcdp", 3) if check is check_never_worse else ()))
