"""What is read together of the same rows agrees by least squares: soundness.md 3.15.

It is post-processing of what is stored: free, the same again, of one epoch, and never less exact; its bars hold.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsql import Session
from dpsql.budget import Draw, StoredGrouping
from dpsql.budget.ledger_store import LedgerStore
from dpsql.engine.batch import price_batch, read_batch, run_batch
from dpsql.plan import release_plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import parse_policy
from dpsql.release import consistent as module
from dpsql.release import estimate, finer, table
from dpsql.release.released import ReleasedMeasurement, decode, encode, integers
from dpsql.release.run import ReleasedRows, assemble
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import first, tried
from dpsql.tests.support.random_databases import policy_text

from .conftest import Desk, OpenDesk
from .examples import HEAVY, ORDINARY
from .planting import plant
from .test_batch import MANY, policy_in
from .test_one_draw import another_session, spent

consistent = module.consistent
Patch = pytest.MonkeyPatch

PEOPLE = "SELECT COUNT(*) FROM person"
ACTIVE = "SELECT active, COUNT(*) FROM person GROUP BY active"
AT_WORK = "SELECT COUNT(*) FROM person WHERE active"
VISITS = "SELECT COUNT(*) FROM visit"
FLAGS = "SELECT flag, COUNT(*) FROM visit GROUP BY flag"
CITIES = "SELECT city, COUNT(*) FROM visit GROUP BY city"
LISTED = "SELECT COUNT(*) FROM visit WHERE city IN ('a', 'b')"
TOGETHER = (
    "SELECT (SELECT COUNT(*) FROM person) AS everybody, (SELECT COUNT(*) FROM person WHERE active) AS working, "
    "(SELECT COUNT(*) FROM person WHERE NOT active) AS others"
)


def released(session: Session, *statements: str) -> list[list[tuple[object, ...]]]:
    read = read_batch(session, ";\n".join(statements))
    price = price_batch(session, read, None)
    return [list(answer.rows) for answer in run_batch(session, read, None, price.charge)]


@contextmanager
def watched(patch: Patch) -> Iterator[list[tuple[list[ReleasedRows], list[ReleasedRows]]]]:
    """Give what was read together, before and after it was made to agree."""
    seen: list[tuple[list[ReleasedRows], list[ReleasedRows]]] = []

    def see(rows: Sequence[ReleasedRows]) -> list[ReleasedRows]:
        seen.append((list(rows), consistent(rows)))
        return seen[-1][1]

    with patch.context() as own:
        own.setattr("dpsql.engine.spine.consistent", see)
        own.setattr("dpsql.engine.batch.consistent", see)
        yield seen


def asked(desk: Desk, *statements: str) -> None:
    """Ask one by one, each for itself: the coarse ones first, so that none answers another."""
    desk.session.execute("SET dpsql.reuse = off")
    for sql in statements:
        desk.session.execute(sql)
    desk.session.execute("SET dpsql.reuse = on")


@pytest.fixture
def opened(desk: OpenDesk) -> Desk:
    """A desk with a total, its parts and one of them by itself, each drawn."""
    made = desk(epsilon="0.1")
    made.settle(HEAVY)
    asked(made, PEOPLE, ACTIVE, AT_WORK)
    return made


# --- what agrees ------------------------------------------------------------------------------------------------


def test_a_total_is_the_sum_of_its_parts(opened: Desk) -> None:
    before = spent(opened)
    (((total,),), parts, ((working,),)) = released(opened.session, PEOPLE, ACTIVE, AT_WORK)
    found = dict[Any, Any](parts)  # type: ignore[arg-type]  # rows are pairs
    assert found[True] == working
    assert found[True] + found[False] == total
    assert all(isinstance(one, int) for one in (total, working, *found.values()))
    assert opened.session.execute(TOGETHER).rows == [(total, working, found[False])]
    assert spent(opened) == before


def test_it_is_the_same_again_and_a_tile_by_itself_does_not_move(opened: Desk) -> None:
    alone = {sql: opened.session.execute(sql).rows for sql in (PEOPLE, ACTIVE, AT_WORK)}
    first = released(opened.session, PEOPLE, ACTIVE, AT_WORK)
    shown = opened.session.execute(TOGETHER)
    assert any("agree" in note for note in shown.receipt.notes)  # type: ignore[union-attr]
    for sql in (
        "SELECT team, active, COUNT(*) FROM person WHERE age > 30 GROUP BY team, active",
        "SELECT AVG(height) FROM person",
    ):
        opened.session.execute(sql)  # somebody asks something else
    opened.session.dataset.answers.clear()
    for session in (opened.session, another_session(opened)):
        assert released(session, PEOPLE, ACTIVE, AT_WORK) == first
        assert session.execute(TOGETHER).rows == shown.rows
        for sql, rows in alone.items():
            assert session.execute(sql).rows == rows


CROSSED = (
    "SELECT COUNT(*) FROM visit",
    "SELECT city, COUNT(*) FROM visit GROUP BY city",
    "SELECT flag, COUNT(*) FROM visit GROUP BY flag",
    "SELECT level, COUNT(*) FROM visit GROUP BY level",
    "SELECT city, flag, COUNT(*) FROM visit GROUP BY city, flag",
    "SELECT flag, level, COUNT(*) FROM visit GROUP BY flag, level",
    "SELECT city, level, COUNT(*) FROM visit GROUP BY city, level",
)
"""Of which none makes all others up; cities are not all listed."""


@pytest.mark.parametrize("accounting", first(1, ["pure", "zcdp"]))
def test_tables_that_cross_add_up(desk: OpenDesk, tmp_path: Path, accounting: str) -> None:
    text = policy_text(epsilon="0.1").replace("{ null = true }] }", "{ null = true }], complete = true }")
    text = text.replace(
        "level = {}", 'level = { values = ["low", "high", { null = true }], complete = true }'
    )
    text = text.replace("[privacy]", f'[privacy]\naccounting = "{accounting}"')
    policy = parse_policy(text, tmp_path / "laws.toml")
    made = desk(policy=policy, folder=tmp_path)
    made.settle(HEAVY)
    asked(made, *CROSSED)
    ((total,),), *tables = released(made.session, *CROSSED)
    assert [sum(row[-1] for row in table) for table in tables] == [total] * 6  # type: ignore[misc]
    cities, both = dict[Any, Any](tables[0]), tables[3]  # type: ignore[arg-type]
    for city, number in cities.items():
        assert number == sum(row[-1] for row in both if row[0] == city)  # type: ignore[misc]


def test_the_order_of_a_file_is_nothing(opened: Desk) -> None:
    first = released(opened.session, PEOPLE, ACTIVE, AT_WORK)
    assert released(opened.session, AT_WORK, PEOPLE, ACTIVE) == [first[2], first[0], first[1]]


def test_grouping_sets_that_are_measured_apart(desk: OpenDesk, monkeypatch: Patch) -> None:
    made = desk(epsilon="0.1")
    made.settle(HEAVY)
    sql = "SELECT active, team, COUNT(*) FROM person WHERE team IN ('red', 'blue') GROUP BY GROUPING SETS ((active), (team))"
    with watched(monkeypatch) as seen:
        rows = list[Any](made.session.execute(sql).rows)
    if len(seen) and len(seen[-1][0]) > 1:
        assert sum(row[2] for row in rows[:2]) == sum(row[2] for row in rows[2:])


ZERO = (
    (PEOPLE, ACTIVE, AT_WORK, "SELECT team, COUNT(*) FROM person GROUP BY team"),
    ("SELECT COUNT(*) FROM person WHERE NOT active", PEOPLE, ACTIVE),
    (VISITS, FLAGS, CITIES, LISTED, "SELECT COUNT(*) FROM visit WHERE flag"),
    ("SELECT COUNT(*) FROM person WHERE team IN ('red', 'blue')", "SELECT team, COUNT(*) FROM person WHERE team = 'red' GROUP BY team"),
    (PEOPLE, "SELECT active, COUNT(*) FROM person WHERE NOT active GROUP BY active"),
    ("SELECT SUM(n) FROM visit", "SELECT flag, SUM(n) FROM visit GROUP BY flag"),
    ("SELECT COUNT(*) FROM person WHERE age > 30", "SELECT active, COUNT(*) FROM person GROUP BY active"),
    ("SELECT SUM(age) FROM person", "SELECT active, SUM(age) FROM person GROUP BY active", "SELECT SUM(age) FROM person WHERE active"),
)  # fmt: skip


def check_exact(desk: OpenDesk) -> None:
    """Without noise nothing moves: what is corrected by is noise alone, whatever the rows and the bounds."""
    for database, batches in ((HEAVY, ZERO), (ORDINARY, ZERO[:: tried(3, 1)])):
        made = desk(ZeroNoise(), epsilon="0.1")
        made.settle(database)
        for statements in batches:
            for number, sql in enumerate(statements, 1):  # so that variances are not all alike
                made.session.execute(f"SET dpsql.epsilon = 0.{number}")
                asked(made, sql)
            made.session.execute("RESET dpsql.epsilon")
            made.session.execute("SET dpsql.reuse = off")
            alone = [list(made.session.execute(sql).rows) for sql in statements]
            made.session.execute("SET dpsql.reuse = on")
            assert [list(made.session.execute(sql).rows) for sql in statements] == alone
            assert released(made.session, *statements) == alone


def test_what_is_exact_does_not_move(desk: OpenDesk) -> None:
    check_exact(desk)


# --- what does not ----------------------------------------------------------------------------------------------


OTHERS = (
    (PEOPLE, "SELECT active, COUNT(*) FROM person WHERE age > 30 GROUP BY active"),  # other rows
    (
        "SELECT COUNT(*) FROM person WHERE age > 40",
        "SELECT active, COUNT(*) FROM person WHERE age > 30 GROUP BY active",
    ),
    ("SELECT COUNT(*) FROM visit WHERE flag", FLAGS),  # another t
    (PEOPLE, "SELECT active, SUM(age) FROM person GROUP BY active"),  # another measure
    ("SELECT tag, COUNT(*) FROM visit GROUP BY tag", VISITS),  # found by threshold
    ("SELECT MEDIAN(n) FROM visit", "SELECT flag, MEDIAN(n) FROM visit GROUP BY flag"),  # chosen
    ("SELECT COUNT(DISTINCT city) FROM visit", "SELECT flag, COUNT(DISTINCT city) FROM visit GROUP BY flag"),
)


def check_others(desk: OpenDesk, patch: Patch) -> None:
    """What is not of the same rows and measures stays as it is."""
    made = desk(epsilon="0.1")
    made.settle(HEAVY)
    for statements in OTHERS:
        asked(made, *statements)
        with watched(patch) as seen:
            answers = released(made.session, *statements)
        assert not any(rows.is_agreed for rows in seen[-1][1]), statements
        assert answers == [list(made.session.execute(sql).rows) for sql in statements]


def test_other_rows_stay_as_they_are(desk: OpenDesk, monkeypatch: Patch) -> None:
    check_others(desk, monkeypatch)


def check_bounds(desk: OpenDesk, patch: Patch) -> None:
    """Draws under other bounds are of other numbers."""
    made = desk(epsilon="0.1")
    made.settle(HEAVY)
    asked(made, VISITS)
    made.session.execute("SET dpsql.max_rows = 2")
    asked(made, FLAGS)
    made.session.execute("RESET dpsql.max_rows")
    with watched(patch) as seen:
        released(made.session, VISITS, f"SET dpsql.max_rows = 2; {FLAGS}")
    assert not any(rows.is_agreed for rows in seen[-1][1])


def test_other_bounds_stay_as_they_are(desk: OpenDesk, monkeypatch: Patch) -> None:
    check_bounds(desk, monkeypatch)


def check_epochs(desk: OpenDesk) -> None:
    """An epoch that begins between two look-ups: no number is made of both."""
    made = desk(epsilon="0.001")  # so that numbers are far apart
    made.settle(HEAVY)
    asked(made, PEOPLE, ACTIVE)
    other = another_session(made)
    said = [{row[-1] for sql in (PEOPLE, ACTIVE) for row in made.session.execute(sql).rows}]
    lookup, calls = LedgerStore.lookup, list[Any]()

    def later(self: LedgerStore, *args: Any) -> Any:
        found = lookup(self, *args)
        calls.append(args)
        if len(calls) == 1:
            self.advance_epoch()
            other.execute("SET dpsql.reuse = off")
            said.append({row[-1] for sql in (PEOPLE, ACTIVE) for row in other.execute(sql).rows})
            other.execute("SET dpsql.reuse = on")
            said[-1] |= {row[-1] for sql in (PEOPLE, ACTIVE) for row in other.execute(sql).rows}
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LedgerStore, "lookup", later)
        rows = made.session.execute(
            "SELECT (SELECT COUNT(*) FROM person), n FROM (SELECT active, COUNT(*) AS n FROM person GROUP BY active) t"
        ).rows
    # each as it was told in its own epoch
    assert {one for row in rows for one in row} <= said[0] | said[1]
    assert len(calls) > 1


def test_epochs_are_not_mixed(desk: OpenDesk) -> None:
    check_epochs(desk)


def check_randomised(desk: OpenDesk, patch: Patch) -> None:
    text = policy_text(epsilon="0.1")
    coins = text.replace(
        'values = ["red", "blue"]', 'values = ["red", "blue", { null = true }], randomized = { p = 0.75 }'
    )
    made = desk(policy=parse_policy(coins, Path(tempfile.mkdtemp()) / "laws.toml"))
    made.settle(HEAVY)
    asked(made, PEOPLE, ACTIVE)
    with watched(patch) as seen:
        released(made.session, PEOPLE, ACTIVE)
    assert not any(rows.is_agreed for rows in seen[-1][1])


def test_randomised_answers_stay_as_they_are(desk: OpenDesk, monkeypatch: Patch) -> None:
    check_randomised(desk, monkeypatch)


# --- how exact ---------------------------------------------------------------------------------------------------

DRILLED = "SELECT active, COUNT(*) FROM person WHERE team = 'red' GROUP BY active"
TEAMS = "SELECT team, COUNT(*) FROM person WHERE team IN ('red', 'blue') GROUP BY team"
WHOLE = "SELECT COUNT(*) FROM person WHERE team IN ('red', 'blue')"
CROSS = "SELECT team, active, COUNT(*) FROM person WHERE team IN ('red', 'blue') GROUP BY team, active"
RED = "SELECT COUNT(*) FROM person WHERE team = 'red'"


def kept(
    desk: OpenDesk, patch: Patch, *statements: str, accounting: str = "pure", folder: Path | None = None
) -> list[ReleasedRows]:
    """Return what is read together of statements that were each drawn for itself."""
    policy = None if folder is None else policy_in(folder, accounting)
    made = desk(epsilon="0.1", policy=policy, folder=folder)
    made.session.execute("SET dpsql.epsilon = 0.1")
    made.settle(HEAVY)
    asked(made, *statements)
    with watched(patch) as seen:
        released(made.session, *("SET dpsql.epsilon = 0.1", *statements))
    return seen[-1][0]


def drawn_again(rows: Sequence[ReleasedRows], rng: np.random.Generator) -> list[ReleasedRows]:
    """Return releases whose draws have other noise, over rows of nobody."""
    known: dict[bytes, Draw] = {}

    def again(draw: Draw) -> Draw:
        key = b"".join(draw.measures) + draw.payload
        if key not in known:
            old = decode(draw.payload, draw.law)
            seeded = Bits(rng)
            values = tuple(
                integers(law.draw(len(one), seeded).tolist())
                for one, law in zip(old.values, old.laws, strict=True)
            )
            known[key] = Draw(draw.measures, draw.law, encode(ReleasedMeasurement(values, None, old.laws)))
        return known[key]

    found = []
    for one in rows:
        plan, measurements, taken, own = one.plan, {}, {}, {}
        for index, measurement in one.own.items():
            keys = plan.measure_keys(index, plan.salted(b""), one.keyset)
            own[index] = assemble(
                keys, [tuple(map(again, together)) for together in measurement.draws], plan.axes
            )
        for index, measurement in one.measurements.items():
            old = one.taken.get(index)
            if old is not None and old.question is not None:
                stored = [
                    StoredGrouping(i, draw.law, grouping) for i, (grouping, draw) in enumerate(old.sources)
                ]
                size = plan.measurements[index].size
                source: Any = finer._best(old.question, stored)
                if old.told:
                    source = finer._estimate(plan, index, old.question, stored)
                assert source is not None
                made = source.finer(size, Redrawn([again(draw) for _, draw in old.sources]))
                assert made is not None
                taken[index], measurements[index] = made, made.measurement
                continue
            keys = plan.measure_keys(index, plan.salted(b""), one.keyset)
            measurements[index] = assemble(
                keys, [tuple(map(again, together)) for together in measurement.draws], plan.axes
            )
        found.append(replace(one, measurements=measurements, taken=taken, own=own))
    return found


class Redrawn:
    """A store of draws that have other noise."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._draws = draws

    def draw_of(self, stored: StoredGrouping) -> Draw:
        return self._draws[stored.entry]

    def kept(self, edition: Any, fit: Callable[[], bytes | None]) -> bytes | None:
        return fit()


class Bits:
    """A source of random bytes from a generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def random_bytes(self, count: int) -> bytes:
        return self._rng.bytes(count)


TREES = ((PEOPLE, ACTIVE, AT_WORK), (RED, TEAMS, CROSS, WHOLE), (WHOLE, TEAMS, DRILLED))


def check_bars(rows: Sequence[ReleasedRows]) -> None:
    """Errors are what the laws say, no larger than without, and bars hold at 95 and at 80 percent."""
    rng, draws = np.random.default_rng(12), tried(220, 600)
    agreed = consistent(rows)
    assert all(one.is_agreed for one in agreed)
    seen = [
        [*map(measured, runs)]
        for runs in zip(*(pair(drawn_again(rows, rng)) for _ in range(draws)), strict=True)
    ]
    plain, together = seen
    for place, (one, before) in enumerate(zip(agreed, rows, strict=True)):
        for group in range(len(one.measurements[0].values[0])):
            law = one.measurements[0].each[0](group)
            was, now = (
                np.array([run[place][group] for run in runs], dtype=float) for runs in (plain, together)
            )
            assert law.spread <= before.measurements[0].laws[0].spread * Fraction(10001, 10000)
            assert law.spread <= before.by_own_draws().measurements[0].laws[0].spread * Fraction(10001, 10000)
            assert abs(now.mean()) < 6 * np.sqrt(float(law.spread) / draws)
            assert abs(now.var() / (float(law.spread) + 0.1) - 1) < 6 * np.sqrt(5 / draws)
            assert now.var() < was.var() * 1.02
            for level in (Fraction(19, 20), Fraction(4, 5)):
                held = np.mean(np.abs(now) <= law.half_width(1 - level))
                off = 3.4 * np.sqrt(float(level * (1 - level)) / draws)
                assert float(level) - off < held < float(level) + 0.11, (place, group, held)


def check_small(rows: Sequence[ReleasedRows]) -> None:
    """Where noise is a step or two, rounding makes no number less exact."""
    rng, draws = np.random.default_rng(3), tried(180, 500)
    runs = [[measured(one) for one in pair(drawn_again(rows, rng))] for _ in range(draws)]
    for place, one in enumerate(rows):
        for group in range(len(one.measurements[0].values[0])):
            was, now = (np.mean([run[i][place][group] ** 2 for run in runs]) for i in (0, 1))
            assert now <= was * (1 + 3 * np.sqrt(2 / draws)), (place, group, was, now)


def pair(rows: list[ReleasedRows]) -> tuple[list[ReleasedRows], list[ReleasedRows]]:
    return rows, consistent(rows)


def measured(rows: Sequence[ReleasedRows]) -> list[list[int]]:
    return [one.measurements[0].values[0].tolist() for one in rows]


# Each accounting once, and each tree that no other test draws again: the others are under `long`.
@pytest.mark.parametrize(
    ("tree", "accounting"),
    [
        pytest.param(TREES[0], "pure", id="parts-pure", marks=pytest.mark.long),  # as check_borrowed
        pytest.param(TREES[1], "zcdp", id="four-zcdp"),
        pytest.param(TREES[2], "pure", id="drilled-pure"),
        pytest.param(TREES[0], "zcdp", id="parts-zcdp", marks=pytest.mark.long),
        pytest.param(TREES[1], "pure", id="four-pure", marks=pytest.mark.long),
        pytest.param(TREES[2], "zcdp", id="drilled-zcdp", marks=pytest.mark.long),
    ],
)
def test_bars_hold(
    desk: OpenDesk, tmp_path: Path, monkeypatch: Patch, tree: tuple[str, ...], accounting: str
) -> None:
    check_bars(kept(desk, monkeypatch, *tree, accounting=accounting, folder=tmp_path))


EPSILONS = {"alike": ("1", "1", "1"), "a coarse whole": ("0.1", "1", "1"), "a coarse part": ("1", "1", "0.2")}


@pytest.mark.parametrize(
    ("epsilons", "accounting"),
    [
        pytest.param(EPSILONS["alike"], "zcdp", id="alike-zcdp", marks=pytest.mark.long),
        pytest.param(EPSILONS["a coarse whole"], "pure", id="a coarse whole-pure"),
        pytest.param(EPSILONS["a coarse part"], "zcdp", id="a coarse part-zcdp"),
        pytest.param(EPSILONS["alike"], "pure", id="alike-pure", marks=pytest.mark.long),
        pytest.param(EPSILONS["a coarse whole"], "zcdp", id="a coarse whole-zcdp", marks=pytest.mark.long),
        pytest.param(EPSILONS["a coarse part"], "pure", id="a coarse part-pure", marks=pytest.mark.long),
    ],
)
def test_small_noise(
    desk: OpenDesk, tmp_path: Path, monkeypatch: Patch, epsilons: tuple[str, ...], accounting: str
) -> None:
    made = desk(policy=policy_in(tmp_path, accounting), folder=tmp_path)
    made.settle(HEAVY)
    for epsilon, sql in zip(epsilons, (PEOPLE, ACTIVE, AT_WORK), strict=True):
        made.session.execute(f"SET dpsql.epsilon = {epsilon}")
        asked(made, sql)
    with watched(monkeypatch) as seen:
        released(made.session, "SET dpsql.epsilon = 0.1", PEOPLE, ACTIVE, AT_WORK)
    check_small(seen[-1][0])


def check_borrowed(desk: OpenDesk, patch: Patch) -> None:
    """A draw that answers twice is one observation."""
    made = desk(epsilon="0.1")
    made.settle(HEAVY)
    asked(made, PEOPLE)
    made.session.execute("SET dpsql.epsilon = 0.4")
    asked(made, ACTIVE)
    made.session.execute("RESET dpsql.epsilon")
    with watched(patch) as seen:
        released(made.session, PEOPLE, ACTIVE, AT_WORK, "SELECT COUNT(*) FROM person WHERE NOT active")
    assert any(rows.borrowed for rows in seen[-1][0])
    check_bars(seen[-1][0])


def test_a_draw_that_answers_twice_counts_once(desk: OpenDesk, monkeypatch: Patch) -> None:
    check_borrowed(desk, monkeypatch)


def test_what_is_made_of_several_has_its_own_bar(opened: Desk) -> None:
    """Numbers that agree have noises that depend on each other: a difference that must be 0 has a bar of width 0."""
    run_ = opened.session.execute
    run_("SET dpsql.intervals = 0.95")
    ((nothing, low, high, *_, both, least, most),) = list[Any](
        run_(
            "SELECT (SELECT COUNT(*) FROM person) - (SELECT COUNT(*) FROM person WHERE active) "
            "- (SELECT COUNT(*) FROM person WHERE NOT active) AS nothing, "
            "(SELECT COUNT(*) FROM person WHERE active) + (SELECT COUNT(*) FROM person WHERE NOT active) AS both"
        ).rows
    )
    ((_, left, right),) = list[Any](run_("SELECT COUNT(*) FROM person").rows)
    assert (nothing, low, high) == (0, 0, 0)
    assert least < both < most
    assert most - least < right - left


def test_random_batches(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    """Whatever is read together: no law is wider than without, and running it again says the same."""
    rng = random.Random(8)
    for number in range(tried(1, 4)):
        folder = tmp_path / f"random{number}"
        folder.mkdir()
        made = desk(policy=policy_in(folder, ("zcdp", "pure")[number % 2]), folder=folder)
        made.settle(HEAVY)
        texts = rng.sample(MANY, 7)
        for sql in rng.sample(texts, 4):
            made.session.execute("SET dpsql.epsilon = 0.3")
            made.session.execute(sql)
        made.session.execute("RESET dpsql.epsilon")
        with watched(monkeypatch) as seen:
            answers = released(made.session, *texts)
        for before, after in zip(*seen[-1], strict=True):
            for index, measurement in before.measurements.items():
                laws = after.measurements[index].laws
                assert all(
                    b.spread <= a.spread * Fraction(1000001, 1000000)
                    for a, b in zip(measurement.laws, laws, strict=True)
                )
        assert released(made.session, *texts) == answers


# --- mutants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "old", "new", "check"),
    [
        (Session.agreeing, "self.dataset.store.epoch == epoch", "True", check_epochs),
        (release_plan._rows_text, "rows.items, predicate, *rows.owner", "rows.items, *rows.owner", check_others),
        (ReleasePlan.family, "bounding.in_all,", "", check_bounds),
        (module._memberships, "or plan.bounding.per_row", "or True", check_others),
        (module._memberships, " or is_reported(plan.release.rows)", "", check_randomised),
        (module._drawn, "[id_of(draw), place]", "[b'again' + id_of(draw), place]", check_borrowed),
        (estimate.Told._noises, "float(one.weights[id_])", "0.7", check_borrowed),
        (estimate.Design.forms, "own.append(precision * ", "own.append(0.5 * precision * ", check_borrowed),
        (table.Table._placed, "np.isin(places[key], filters[key])", "True", check_exact),
    ],
    ids=["epochs", "WHERE", "bounds", "t", "randomised", "twice", "bars", "weights", "filters"],
)  # fmt: skip
def test_wrong_agreement(
    desk: OpenDesk, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str, check: Callable[..., None]
) -> None:  # fmt: skip
    estimate.forms_of.cache_clear()
    plant(monkeypatch, getattr(function, "__wrapped__", function), (old, new))
    with pytest.raises(AssertionError):
        check(*((desk,) if check in (check_epochs, check_exact) else (desk, monkeypatch)))
    monkeypatch.undo()
    estimate.forms_of.cache_clear()
