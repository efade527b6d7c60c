"""What histories of statements were answered stays as good: no bar is wider, no price higher (soundness.md 3.8, 3.15).

Where all that was paid is what it was the numbers are the same, too: the noise is by a seed.
"""

from __future__ import annotations

import pytest

from dpsql.release import finer

from .histories import ACCOUNTINGS, SEEDS, Step, asked, dearer, recorded, worse

FEW = 2


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("seed", range(FEW))
def test_a_history_is_answered_as_well_as_before(accounting: str, seed: int) -> None:
    assert worse(recorded(seed, accounting), asked(seed, accounting)) == []


@pytest.mark.long
@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("seed", range(FEW, SEEDS))
def test_many_histories_are_answered_as_well_as_before(accounting: str, seed: int) -> None:
    assert worse(recorded(seed, accounting), asked(seed, accounting)) == []


MORE_EXACT = 22
"""The one history that costs more: running totals that its days gave free are drawn by levels."""


def check_against_each_grouping(monkeypatch: pytest.MonkeyPatch, accounting: str, seed: int) -> bool:
    """Return whether it costs more in all, which is for narrower bars then."""
    monkeypatch.setattr(finer, "_estimate", lambda *rest: None)
    alone, found = asked(seed, accounting), recorded(seed, accounting)
    assert dearer(alone, found) == []
    return int(found[-1][1]) > int(alone[-1][1])


def test_what_costs_more_than_by_each_grouping_is_more_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_against_each_grouping(monkeypatch, "pure", MORE_EXACT)


@pytest.mark.long
@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_other_history_costs_more_than_by_each_grouping(
    monkeypatch: pytest.MonkeyPatch, accounting: str, seed: int
) -> None:
    is_more = check_against_each_grouping(monkeypatch, accounting, seed)
    assert is_more == ((accounting, seed) == ("pure", MORE_EXACT))


# --- mutants ------------------------------------------------------------------------------------------------------


def test_plant_each_grouping_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dearer, or with a wider bar."""
    monkeypatch.setattr(finer, "_estimate", lambda *rest: None)
    assert worse(recorded(1, "zcdp"), asked(1, "zcdp"), is_same=False)


def test_what_costs_more_and_is_no_more_exact_is_said() -> None:
    old: list[Step] = [("a", "2", [3.0, 4.0], "x"), ("b", "3", [3.0, 4.0], "y")]
    for paid, bars, is_said in (
        ("3", [5.0, 9.0], False),
        ("4", [3.0, 4.0], True),
        ("4", [1.0, 4.1], True),
        ("4", [3.0, 1.0], False),
    ):
        assert bool(dearer(old, [old[0], ("b", paid, bars, "z")])) is is_said


def test_what_is_worse_is_said() -> None:
    old: list[Step] = [("a", "2", [3.0], "x"), ("b", "2", [3.0], "y")]
    assert worse(old, old) == []
    for new, said in (
        (("a", "3", [3.0], "x"), "3 is paid"),
        (("a", "2", [4.0], "x"), "a bar of 4.0"),
        (("a", "2", [3.0], "z"), "other numbers"),
    ):
        assert any(said in line for line in worse(old, [new, old[1]])), said
    assert worse(old, [("a", "1", [3.0], "z"), ("b", "1", [3.0], "z")]) == []
