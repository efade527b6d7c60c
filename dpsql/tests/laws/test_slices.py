"""Nobody loses more of a period than what it was charged: random histories of rows that come late, move, go, and lie
ahead, with statements in between, through the filter and the sums of the ledger (soundness.md 3.22).

No engine is asked: what a statement loses of a unit is what the proofs say it may, where it could see a row of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from dpsql.budget import Charge, Promise, Status, Steps
from dpsql.budget import slices as slices_module
from dpsql.budget.entry import Run, Sums
from dpsql.budget.filter import Piece, refuse_over_slices
from dpsql.budget.slices import Odometer, added
from dpsql.errors import BudgetExhausted
from dpsql.policy import Accounting, Over, Period, Slices
from dpsql.policy.periods import UNDATED, first_day
from dpsql.tests.budget.test_odometer import entry

BEFORE, MONTHS = 24_000, 12
CAP, DELTA_CAP = 40, 60
PROMISE = Promise(period=Period.MONTH, since=first_day(Period.MONTH, BEFORE + 1))


@dataclass
class Statement:
    """What was asked: months from one to another, undated rows, by which way a person is bounded (T3), what it costs."""

    first: int
    last: int
    is_undated: bool
    over: Over
    epsilon: int
    delta: int
    is_beside: bool = False
    """Undated rows stand beside timed ones, and are not charged: all that is read of a person goes without them."""

    @property
    def slices(self) -> Slices:
        return Slices(((self.first, self.last),), is_undated=self.is_undated, over=self.over)

    def loses(self, changed: set[int], present: set[int]) -> int:
        """Return what two histories are apart by it that differ in a person's rows of `changed`; `present`: of which
        slices the person has rows in either. By (a) and (b) it is the charge where a changed slice is read; by (c)
        the person's rows as read are others, which is the charge too.
        """
        read = set(range(self.first, self.last + 1)) | ({UNDATED} if self.is_undated else set())
        met = len(read & (present if self.is_beside and UNDATED in changed else changed & present))
        if not met:
            return 0
        return self.epsilon * (1 if self.over is Over.ONCE else met)


@dataclass
class World:
    """Rows of people by slice, and what was said of them."""

    chance: random.Random
    rows: dict[int, dict[int, set[int]]] = field(default_factory=dict)
    now: int = BEFORE + 3
    steps: Steps = field(default_factory=Steps)
    told: list[tuple[Statement, dict[int, set[int]]]] = field(default_factory=list)
    refused: int = 0

    def live(self) -> None:
        """Let something happen: a row comes, late or of a time ahead, moves, goes, or a month passes."""
        person = self.chance.randrange(3)
        mine = self.rows.setdefault(person, {})
        number = self.chance.randrange(10**6)
        places = [month for month in mine if mine[month]]
        match self.chance.randrange(8):
            case 0:
                mine.setdefault(self.now, set()).add(number)
            case 1:
                mine.setdefault(BEFORE + self.chance.randrange(MONTHS), set()).add(number)  # late, or ahead
            case 2:
                mine.setdefault(UNDATED, set()).add(number)
            case 3 if places:
                moved = mine[self.chance.choice(places)].pop()
                mine.setdefault(BEFORE + self.chance.randrange(MONTHS), set()).add(moved)
            case 4 if places:
                mine[self.chance.choice(places)].clear()
            case 5 if self.now < BEFORE + MONTHS - 1:
                self.now += 1
            case _:
                pass

    def ask(self) -> None:
        """Have a statement charged, where the filter lets it through, and answered."""
        first = BEFORE + self.chance.randrange(MONTHS)
        last = min(BEFORE + MONTHS - 1, first + self.chance.randrange(6))
        statement = Statement(
            first, last, self.chance.random() < 0.25, self.chance.choice(list(Over)),
            self.chance.randrange(1, 12), self.chance.randrange(3),
        )  # fmt: skip
        if not statement.is_undated and statement.over is not Over.ONCE:
            statement.is_beside = self.chance.random() < 0.5
        charge = Charge(statement.epsilon, statement.delta, 1)
        pieces = [
            Piece(begin, end, sums, (0, 0, 0), (charge.epsilon_nano, charge.delta_atto, charge.rho_atto))
            for run in statement.slices.runs
            for begin, end, sums in added(self.steps.meet(*run), *run, (0, 0, 0))
            if run[0] <= begin and end <= run[1]
        ]
        status = Status(0, CAP, 0, DELTA_CAP, 0, 0, None, 1, accounting=Accounting.PURE)
        try:
            refuse_over_slices(status, pieces, charge, PROMISE, "t")
        except BudgetExhausted:
            self.refused += 1
            return
        for run in statement.slices.runs:
            self.steps.add(*run, (statement.epsilon, statement.delta, 1))
        present = {
            person: {month for month, rows in mine.items() if rows} for person, mine in self.rows.items()
        }
        self.told.append((statement, present))


def history(seed: int, make: Callable[[random.Random], World] = World) -> World:
    world = make(random.Random(seed))
    for _ in range(40):
        world.live()
        if world.chance.random() < 0.5:
            world.ask()
    return world


def look(world: World) -> int:
    """Hold what each unit has lost against what its slice was charged; return how many have lost exactly that."""
    charged = {number: sums for first, last, sums in world.steps for number in range(first, last + 1)}
    odometer = Odometer(BEFORE, (), in_rho=False)
    odometer.read(enumerate(entry(one.slices, one.epsilon) for one, _ in world.told))
    reached = 0
    assert all(sums[0] <= CAP and sums[1] <= DELTA_CAP for sums in charged.values()), "a slice passed its cap"
    for person in world.rows:
        lost_in_all = 0
        ever = {month for _, present in world.told for month in present.get(person, set())}
        for month in ever:
            # The two histories differ in the person's rows of one slice alone, wherever these ever stood.
            lost = sum(one.loses({month}, present.get(person, set())) for one, present in world.told)
            least = sum(charged.get(one, (0, 0, 0))[0] for one in (ever if month == UNDATED else {month}))
            assert lost <= least, "a unit lost more than its slice was charged"
            reached += lost > 0 and lost == least
        lost_in_all = sum(one.loses(ever, present.get(person, set())) for one, present in world.told)
        assert lost_in_all <= sum(charged.get(month, (0, 0, 0))[0] for month in ever), (
            "a person lost more than T4"
        )
        assert lost_in_all <= odometer.ever
    return reached


def histories(count: int, first: int = 0) -> tuple[int, int]:
    worlds = [history(seed) for seed in range(first, first + count)]
    return sum(map(look, worlds)), sum(world.refused for world in worlds)


def test_no_unit_loses_more_than_its_slices_were_charged() -> None:
    reached, refused = histories(1_000)
    assert reached > 300, "and many lose exactly that"
    assert refused > 1_000, "and the filter has had something to refuse"


@pytest.mark.long
def test_in_twenty_thousand_histories_no_unit_loses_more() -> None:
    reached, _ = histories(20_000, 1_000)
    assert reached > 6_000


def _last_left_out(met: list[Run], first: int, last: int, more: Sums) -> list[Run]:
    if first == last:
        return added(met, first, last, more)
    below = [run for run in met if run[0] < last]
    return added(below, first, last - 1, more) + [run for run in met if run[0] >= last]


def _gaps_left_out(met: list[Run], first: int, last: int, more: Sums) -> list[Run]:
    before = {number for begin, end, _ in met for number in range(begin, end + 1)}
    return [run for run in added(met, first, last, more) if not met or run[0] in before]


def _larger_of_both(met: list[Run], first: int, last: int, more: Sums) -> list[Run]:
    known = {begin: sums for begin, _, sums in met}
    return [
        (begin, end, known[begin] if begin in known and known[begin][0] > more[0] else sums)
        for begin, end, sums in added(met, first, last, more)
    ]


@pytest.mark.parametrize("fault", [_last_left_out, _gaps_left_out, _larger_of_both])
def test_a_fault_of_the_sums_is_found(
    fault: Callable[..., list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices_module, "added", fault)
    with pytest.raises(AssertionError, match=r"lost more|passed its cap"):
        histories(200)


class ByArrival(World):
    """Charges the month in which a statement runs, whatever it reads: a fault."""

    def ask(self) -> None:
        before = len(self.told)
        steps = self.steps.copy()
        super().ask()
        if len(self.told) > before:
            steps.add(self.now, self.now, (self.told[-1][0].epsilon, 0, 1))
            self.steps = steps


class WithoutRows(World):
    """Charges no month in which nobody has rows yet: a fault, since rows that come late were known not to be there."""

    def ask(self) -> None:
        before = len(self.told)
        steps = self.steps.copy()
        super().ask()
        if len(self.told) > before:
            statement, present = self.told[-1]
            for month in {month for mine in present.values() for month in mine}:
                if statement.first <= month <= statement.last or (month == UNDATED and statement.is_undated):
                    steps.add(month, month, (statement.epsilon, 0, 1))
            self.steps = steps
            every = set(range(statement.first, statement.last + 1))
            self.told[-1] = statement, {person: present.get(person, set()) | every for person in range(3)}


class GivesBack(World):
    """Gives a month's budget back when rows of it come: a fault."""

    def live(self) -> None:
        super().live()
        if self.chance.random() < 0.2:
            self.steps = Steps(run for run in self.steps if run[0] > self.now - 2)


def look_at_some(make: type[World]) -> None:
    for seed in range(200):
        world = history(seed, make)
        world.rows = {person: world.rows.get(person, {}) for person in range(3)}
        look(world)


@pytest.mark.parametrize("fault", [ByArrival, WithoutRows, GivesBack])
def test_an_unsound_way_to_charge_is_found(fault: type[World]) -> None:
    with pytest.raises(AssertionError, match=r"lost more|passed its cap"):
        look_at_some(fault)
