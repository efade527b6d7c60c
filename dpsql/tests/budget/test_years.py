"""A ledger that is killed hundreds of times, with a checkpoint and a new file of its log at every change."""

from __future__ import annotations

import random
import signal
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.budget.journal import Journal
from dpsql.mechanisms import Laplace
from dpsql.tests.support.length import tried

from .conftest import Kept
from .samples import Place, draw, key
from .test_crash import child

MOST_STEPS = 60


@pytest.fixture
def place(place: Place, divided: Kept) -> Place:
    """Give each place twice: for a ledger as a whole, and for one by periods, whose slices are looked at each time."""
    return divided(place)


def outlive(place: Place, kills: int, seed: int) -> None:
    """See after each kill that what was told as charged is spent, and what was told as stored is there, to the byte."""
    rng = random.Random(seed)
    place.open().close()
    charged, stored = 0, list[str]()
    for number in range(kills):
        with child("work", *place.arguments, str(number), str(rng.randrange(1, MOST_STEPS))) as process:
            output, _ = process.communicate(timeout=600)
            assert process.returncode == -signal.SIGKILL
        said = [line.split(" ", 1) for line in output.splitlines()]
        charged += sum(word == "charged" for word, _ in said)
        stored += [name for word, name in said if word == "stored"]
        store = place.open(create=False)
        assert charged <= store.spent().epsilon_nano <= charged + number + 1
        charged = store.spent().epsilon_nano
        for name in stored[-40:]:
            assert store.lookup([key(name)], Laplace(Fraction(10))) == ((draw(name),),)
        if number % 25 == 24 or number == kills - 1:
            report = store.verify()
            assert report.damaged == 0
            assert report.answers >= len(stored)
            assert report.files > min(4, kills // 3)
        store.close()
    journal = Journal(place.log)
    entries = sum('"kind":"entry"' in text for _, text in journal.records(0))
    journal.close()
    assert entries == charged, "nothing was lost, nothing was counted twice"
    store = place.open(create=False)
    for name in stored:
        assert store.lookup([key(name)], Laplace(Fraction(10))) == ((draw(name),),)
    store.close()


def test_killed_some_times_nothing_is_lost(place: Place) -> None:
    outlive(place, tried(3, 12), 7)


@pytest.mark.long
def test_killed_five_hundred_times_nothing_is_lost(tmp_path: Path, divided: Kept) -> None:
    outlive(divided(Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log")), 500, 11)
