"""The store answers more: a filter on a stored grouping's key, or fewer keys, from the groups that are stored (3.8).

Each answer is some stored numbers or their sum, costs nothing, and is of the same rows, bounds and epoch as was asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.engine.answer import Answer
from dpsql.errors import EngineFailure, LedgerError
from dpsql.plan import release_plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import parse_policy
from dpsql.release import finer, table
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import policy_text

from .conftest import Desk, OpenDesk, make_desk
from .examples import HEAVY
from .planting import plant
from .test_one_draw import EDITS, another_session, cost, spent

Patch = pytest.MonkeyPatch

TOTAL = "SELECT COUNT(*) FROM visit"
CITIES = "SELECT city, COUNT(*) FROM visit GROUP BY city"
FLAGS = "SELECT flag, COUNT(*) FROM visit GROUP BY flag"
DRILLED = (
    "SELECT COUNT(*) FROM visit WHERE city = 'a'",
    "SELECT COUNT(*) FROM visit WHERE city IN ('b')",
    "SELECT city, COUNT(*) FROM visit WHERE city IN ('a', 'c') GROUP BY city",
    "SELECT COUNT(*) FROM visit WHERE NOT flag",
    "SELECT COUNT(*) FROM visit WHERE flag",
)


@pytest.fixture
def full(engine: PostgresServer | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with ExitStack() as stack:
        desk = make_desk(stack, tmp_path_factory.mktemp("finer"), server=engine)
        desk.settle(HEAVY)
        yield desk


def notes(answer: Answer) -> str:
    assert answer.receipt is not None
    return " ".join(answer.receipt.notes)


def check_dashboard(full: Desk) -> None:
    run_ = full.session.execute
    total, by_city, by_flag, *drilled = [cost(run_(sql)) for sql in (TOTAL, CITIES, FLAGS, *DRILLED)]
    # n cells of variance w beside their total of variance u have w - w²/(n·w + u), which is what one has alone, 1:
    # of 5 cells and u = 1 w is 1.2071; of 3 and u = 1/(1 + 1/(5·1.2071)) it is 1.3816; and epsilon is 1/√w
    assert (total, *drilled) == (1, 0, 0, 0, 0, 0)
    assert (float(by_city), float(by_flag)) == pytest.approx((0.9102, 0.8508), abs=0.002)
    cities, flags = dict(run_(CITIES).rows), dict(run_(FLAGS).rows)
    shown = [list(run_(sql).rows) for sql in DRILLED]
    assert shown[:2] == [[(cities["a"],)], [(cities["b"],)]]
    assert shown[2] == [("a", cities["a"]), ("c", cities["c"])]
    assert shown[3:] == [[(flags[False],)], [(flags[True],)]]
    assert spent(full) == (total + by_city + by_flag) * 10**9


def test_a_dashboard_is_charged_for_its_groupings(full: Desk) -> None:
    check_dashboard(full)


@pytest.mark.parametrize("seed", range(6))
def test_in_any_order_a_dashboard_costs_no_more_than_its_tiles(desk: OpenDesk, seed: int) -> None:
    opened = desk()
    opened.settle(HEAVY)
    tiles = [TOTAL, CITIES, FLAGS, *DRILLED]
    random.Random(seed).shuffle(tiles)
    paid = {sql: cost(opened.session.execute(sql)) for sql in tiles}
    assert all(0 <= one <= 1 for one in paid.values())  # what is known of a part lowers it (3.13)
    assert 2 * 10**9 < spent(opened) <= len(tiles) * 10**9
    before = spent(opened)
    first = {sql: list(opened.session.execute(sql).rows) for sql in tiles}
    assert {sql: list(opened.session.execute(sql).rows) for sql in reversed(tiles)} == first
    if not paid[DRILLED[0]]:  # else it is of its own rows, under its own t
        assert dict(first[CITIES])["a"] == first[DRILLED[0]][0][0]  # type: ignore[arg-type]  # rows are pairs
    assert spent(opened) == before


def test_it_says_what_it_is_from_and_reuse_off_asks_alone(full: Desk) -> None:
    full.session.execute(CITIES)
    said = "read from an earlier answer by city"
    assert said in " ".join(full.session.explain(DRILLED[0]).text().split())
    assert said in notes(full.session.execute(DRILLED[0]))
    assert said in notes(full.session.execute(DRILLED[0]))  # the remembered answer too
    full.session.execute("SET dpsql.reuse = off")
    assert "an earlier answer" not in full.session.explain(DRILLED[0]).text()
    alone = full.session.execute(DRILLED[0])
    assert (cost(alone), "an earlier answer" in notes(alone)) == (1, False)
    full.session.execute("SET dpsql.reuse = on")
    assert full.session.execute(DRILLED[0]).rows == alone.rows  # its own draw goes first from now on


def test_numbers_of_one_draw_have_a_joint_bar(full: Desk) -> None:
    """Their noises are not independent: replicas are of the draws, not of the numbers."""
    pair = (
        "SELECT (SELECT COUNT(*) FROM visit WHERE flag) + (SELECT COUNT(*) FROM visit WHERE NOT flag) AS both, "
        "(SELECT COUNT(*) FROM visit WHERE flag) - (SELECT COUNT(*) FROM visit WHERE flag) AS nothing"
    )
    run_ = full.session.execute
    run_("SET dpsql.intervals = 0.95")
    run_(FLAGS)
    for _ in range(2):
        both, low, high, nothing, *ends = run_(pair).rows[0]
        assert low < both < high
        assert (nothing, *ends) == (0, 0, 0)
        run_("SET dpsql.reuse = off")


def test_another_session_says_the_same(desk: OpenDesk) -> None:
    full = desk()
    full.settle(HEAVY)
    full.session.execute(CITIES)
    shown = full.session.execute(DRILLED[2]).rows
    assert another_session(full).execute(DRILLED[2]).rows == shown
    assert spent(full) == 10**9


def check_sums(desk: OpenDesk) -> None:
    """A sum is served where its spread is at most what is asked, with the rows of all other values in it."""
    opened = desk()
    opened.settle(HEAVY)
    run_ = opened.session.execute
    both = "SELECT city, flag, SUM(n) FROM visit GROUP BY city, flag"
    cells = {row[:2]: row[2:] for row in run_(both).rows}
    assert (
        cost(run_("SELECT SUM(n) FROM visit WHERE city = 'b'")) == 1
    )  # three groups are wider than one number
    run_("SET dpsql.epsilon = 0.1")
    three = run_("SELECT city, SUM(n) FROM visit GROUP BY city")
    assert cost(three) == 0
    for city, total in three.rows:
        assert (
            abs(total - sum(cells[city, flag][0] for flag in (True, False, None))) <= 2
        )  # each cell was rounded
    for sql in ("SELECT flag, SUM(n) FROM visit GROUP BY flag", "SELECT SUM(n) FROM visit"):
        assert cost(run_(sql)) == 0, sql  # 4 and 12 cells, that of other cities among them
    two = run_("SELECT SUM(n) FROM visit WHERE city IN ('a', 'c') AND flag")
    assert cost(two) == 0
    assert abs(two.rows[0][0] - sum(cells[city, True][0] for city in "ac")) <= 1


def test_sums(desk: OpenDesk) -> None:
    check_sums(desk)


def check_listed_alone(desk: OpenDesk, monkeypatch: Patch) -> None:
    """Where the rows of other values were not drawn, the groups are not all rows: as in what an older version stored."""
    opened = desk()
    opened.settle(HEAVY)
    with monkeypatch.context() as patch:
        patch.setattr(ReleasePlan, "axes", None)
        cities = opened.session.execute(CITIES).rows
    run_ = opened.session.execute
    assert (cost(run_(CITIES)), run_(CITIES).rows) == (0, cities)
    run_("SET dpsql.epsilon = 0.1")
    assert cost(run_(DRILLED[0])) == 0
    assert cost(run_(TOTAL)) == Fraction(1, 10)


def test_what_was_drawn_without_the_others(desk: OpenDesk, monkeypatch: Patch) -> None:
    check_listed_alone(desk, monkeypatch)


OTHERS = (
    "SELECT COUNT(*) FROM visit WHERE city = 'd'",  # no group has it
    "SELECT COUNT(*) FROM visit WHERE city = 'a' AND n > 1",  # other rows
    "SELECT COUNT(*) FROM visit WHERE city <> 'a'",
    "SELECT COUNT(*) FROM visit WHERE city IN ('a', 'd')",
    "SELECT SUM(n) FROM visit WHERE city = 'a'",  # another measure
    "SELECT COUNT(DISTINCT person_id) FROM visit WHERE city = 'b'",
    "SELECT COUNT(*) FROM visit v JOIN person p ON p.id = v.person_id WHERE city = 'a'",
)


def check_other_questions_are_asked_anew(desk: OpenDesk) -> None:
    opened = desk()
    opened.settle(HEAVY)
    run_ = opened.session.execute
    run_(CITIES)
    run_("SELECT city, COUNT(DISTINCT person_id) FROM visit GROUP BY city")
    for sql in OTHERS:
        assert cost(run_(sql)) == 1, sql
    run_("SET dpsql.max_rows = 2")
    assert cost(run_(DRILLED[0])) == 1  # other bounds
    run_("SELECT city, COUNT(*) FROM visit WHERE NOT flag GROUP BY city")
    run_("RESET dpsql.max_rows")
    assert cost(run_("SELECT COUNT(*) FROM visit WHERE NOT flag AND city = 'a'")) == 1
    run_("SELECT city, COUNT(*) FROM visit WHERE flag GROUP BY city")
    assert cost(run_("SELECT COUNT(*) FROM visit WHERE city = 'a' AND n > 2 AND flag")) == 1
    assert cost(run_("SELECT COUNT(*) FROM visit WHERE city = 'b' AND flag")) == 0
    run_("SELECT city, COUNT(*) FROM visit WHERE n > 2 GROUP BY city")
    assert cost(run_("SELECT COUNT(*) FROM visit WHERE city = 'c' AND n > 3")) == 1  # of the same columns
    run_("SET dpsql.epsilon = 0.1")
    assert cost(run_("SELECT COUNT(DISTINCT person_id) FROM visit WHERE city = 'c'")) == Fraction(1, 10)
    run_("SET dpsql.epsilon = 1")
    opened.session.dataset.store.advance_epoch()
    assert cost(run_("SELECT COUNT(*) FROM visit WHERE city = 'b'")) == 1


def test_other_questions_are_asked_anew(desk: OpenDesk) -> None:
    check_other_questions_are_asked_anew(desk)


def check_groups_that_are_no_product(desk: OpenDesk) -> None:
    """Where WHERE leaves groups out, what is stored is not all that the keys' values make."""
    opened = desk()
    opened.settle(HEAVY)
    run_ = opened.session.execute
    run_("SELECT city, COUNT(*) FROM visit WHERE city <> 'a' GROUP BY city")
    run_("SELECT city, flag, COUNT(*) FROM visit WHERE flag OR city = 'b' GROUP BY city, flag")
    assert cost(run_("SELECT COUNT(*) FROM visit WHERE city <> 'a' AND city = 'b'")) == 1
    assert (
        cost(run_("SELECT city, COUNT(*) FROM visit WHERE (flag OR city = 'b') AND flag GROUP BY city")) == 1
    )


def test_groups_that_are_no_product_are_asked_anew(desk: OpenDesk) -> None:
    check_groups_that_are_no_product(desk)


def check_found_keys(desk: OpenDesk) -> None:
    opened = desk()
    opened.settle(HEAVY)
    opened.session.execute("SELECT tag, COUNT(*) FROM visit GROUP BY tag")
    opened.session.execute("SELECT tag, city, COUNT(*) FROM visit WHERE tag IN ('p', 'q') GROUP BY tag, city")
    assert cost(opened.session.execute("SELECT COUNT(*) FROM visit WHERE tag = 'p'")) == 1
    assert cost(opened.session.execute("SELECT city, COUNT(*) FROM visit GROUP BY city")) == 1


def test_found_keys_answer_their_own_question_alone(desk: OpenDesk) -> None:
    check_found_keys(desk)


@pytest.mark.parametrize(
    "damage",
    ["UPDATE draw SET payload = x'00'", "DELETE FROM draw", "UPDATE measure SET scale = '1/7'",
     "UPDATE measure SET entry = 3 - entry"],
)  # fmt: skip
def test_a_damaged_grouping_is_never_served(desk: OpenDesk, damage: str) -> None:
    opened = desk()
    opened.settle(HEAVY)
    opened.session.execute(CITIES)
    opened.session.execute("SELECT city, SUM(n) FROM visit GROUP BY city")
    store: Any = opened.session.dataset.store
    with store._ledger.write() as db:
        db.execute(damage)
    with pytest.raises(LedgerError):
        opened.session.execute(DRILLED[0])
    assert spent(opened) == 2 * 10**9


def test_an_epoch_that_begins_meanwhile_mixes_nothing(desk: OpenDesk, monkeypatch: Patch) -> None:
    """What one epoch's grouping says never stands beside what is drawn in the next."""
    opened = desk()
    opened.settle(HEAVY)
    opened.session.execute(CITIES)
    reserve = type(opened.session.dataset.store).reserve

    def later(self: Any, *args: Any, **named: Any) -> Any:
        self.advance_epoch()
        return reserve(self, *args, **named)

    monkeypatch.setattr(type(opened.session.dataset.store), "reserve", later)
    sql = "SELECT (SELECT COUNT(*) FROM visit WHERE city = 'a'), (SELECT COUNT(*) FROM person)"
    opened.session.execute("SET dpsql.epsilon = 0.5")
    with pytest.raises(EngineFailure):
        opened.session.execute(sql)


def check_an_edited_policy_is_asked_anew(desk: OpenDesk, folder: Path) -> None:
    """A grouping that was stored under other declarations answers nothing."""
    folder.mkdir()
    past = "FROM visit WHERE d + 1 > 5.5"
    for old, new in (("", ""), EDITS[0][:2]):
        policy = parse_policy(policy_text().replace(old, new, 1), folder / "laws.toml")
        opened = desk(folder=folder, policy=policy)
        asked = (
            f"SELECT COUNT(*) {past} AND city = 'a'" if new else f"SELECT city, COUNT(*) {past} GROUP BY city"
        )
        assert cost(opened.session.execute(asked)) == 1
        opened.session.dataset.store.close()  # type: ignore[attr-defined]


def test_an_edited_policy_is_asked_anew(desk: OpenDesk, tmp_path: Path) -> None:
    check_an_edited_policy_is_asked_anew(desk, tmp_path / "edited")


# --- mutants ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "old", "new", "check"),
    [
        (release_plan._rows_text, "rows.items, predicate, *rows.owner", "rows.items, *rows.owner",
         check_other_questions_are_asked_anew),
        (ReleasePlan.family, "bounding.in_all,", "",
         check_other_questions_are_asked_anew),
        (ReleasePlan.family, "measurement.query is not BoundingQuery.SCALED", "False",
         check_other_questions_are_asked_anew),
        (finer.Source._summed, "cells.tolist(), dtype", "cells.tolist()[::-1], dtype", check_sums),
        (finer._made_of, "not all(key in whole or", "not all(True or", check_listed_alone),
        (finer.Source.serves, "self.law.spread", "self.drawn[0].law.spread", check_sums),
        (table._question, "not place_of.keys() >= set(term.values)", "False", check_other_questions_are_asked_anew),
        (table.grouping_of, "groups.tuples() != list(itertools.product(*listed))", "False",
         check_groups_that_are_no_product),
    ],
    ids=["another WHERE", "another t", "what counts once", "cells in another order", "the outside cell forgotten",
         "a sum as good as a cell", "a value that no group has", "a part of the product"],
)  # fmt: skip
def test_answer_from_what_is_another(
    desk: OpenDesk, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str,
    check: Callable[..., None],
) -> None:  # fmt: skip
    plant(monkeypatch, function, (old, new))
    with pytest.raises((AssertionError, ValueError, LookupError)):
        check(*((desk, monkeypatch) if check is check_listed_alone else (desk,)))


def test_answer_from_another_epoch(desk: OpenDesk, monkeypatch: Patch) -> None:
    from dpsql.budget import ledger_store

    plant(monkeypatch, ledger_store._groupings_of, ("m.epoch = (", "m.epoch <= ("))
    with pytest.raises(AssertionError):
        check_other_questions_are_asked_anew(desk)


def test_answer_from_another_policy(desk: OpenDesk, monkeypatch: Patch, tmp_path: Path) -> None:
    plant(monkeypatch, release_plan._rows_text, ("(rests, rows", "(rows"))
    with pytest.raises(AssertionError):
        check_an_edited_policy_is_asked_anew(desk, tmp_path / "edited")
