"""The laws of noise and store have power: each turns red when draws are shared, or the store knows too little (L7, L8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsql.plan import planner
from dpsql.plan.backend_sql import print_release
from dpsql.plan.measures.measurements import Measurement
from dpsql.plan.release_plan import ReleasePlan
from dpsql.release import privatise as noised
from dpsql.release import run
from dpsql.release.run import PlanRunner
from dpsql.tests.support.length import some

from .conftest import OpenDesk
from .planting import plant
from .test_one_draw import (
    EDITS,
    check_an_edited_policy_is_asked_anew,
    check_measures_go_with_their_keys,
    check_other_questions,
    check_the_outer_answer_goes_with_the_inner_one,
)
from .test_own_draws import FEW, check_own_draws
from .test_published_keys import check_delta_is_charged, check_minimum_units, check_order_of_keys

Patch = pytest.MonkeyPatch
Key = Callable[[ReleasePlan, int, int], object]


def share(patch: Patch, key: Key) -> list[int]:
    """Draw once for all measurements of one key; return a list that grows when a draw is used again."""
    known: dict[object, Any] = {}
    again: list[int] = []
    original = noised.draw

    def shared(plan: ReleasePlan, number: int, groups: int, noise: Any) -> Any:
        name = key(plan, number, groups), plan.measurements[number].size
        again.extend([1] * (name in known))
        if name not in known:
            known[name] = original(plan, number, groups, noise)
        return known[name]

    patch.setattr(run, "draw", shared)
    patch.setattr(noised, "draw", shared)
    return again


SHARED: dict[str, Key] = {
    "measurements of a release": lambda plan, number, groups: (plan.identity, plan.measures[number].scale, groups),
    "releases": lambda plan, number, groups: (number, plan.measures[number].scale, groups),
    "keys' counts and their measures": lambda plan, number, groups: (
        (plan.identity, plan.measures[number].scale if plan.counted is not None else number)
    ),
    "statements": lambda plan, number, groups: (
        plan.measures[number].scale, groups, plan.intermediates == ()
    ),
}  # fmt: skip


@pytest.mark.parametrize("key", some([*SHARED.values()], 2), ids=SHARED)
def test_share_one_draw(desk: OpenDesk, monkeypatch: Patch, key: Key) -> None:
    again = share(monkeypatch, key)
    with pytest.raises(AssertionError):
        check_own_draws(desk, monkeypatch, FEW)
    assert again


@pytest.mark.parametrize(
    ("what", "new"),
    [
        (
            "groups",
            "tuple(drawn[i * groups : i * groups + 1].repeat(groups) for i in range(measurement.size))",
        ),
        ("coordinates", "tuple(drawn[:groups] for i in range(measurement.size))"),
        ("neighbouring slices", "tuple(drawn[i : i + groups] for i in range(measurement.size))"),
    ],
)
def test_share_draws_inside_a_measurement(desk: OpenDesk, monkeypatch: Patch, what: str, new: str) -> None:
    old = "tuple(drawn[i * groups : (i + 1) * groups] for i in range(measurement.size))"
    plant(monkeypatch, noised.draw, (old, new))
    with pytest.raises(AssertionError):
        check_own_draws(desk, monkeypatch, FEW)


def test_leave_one_group_exact(desk: OpenDesk, monkeypatch: Patch) -> None:
    original = noised.privatise

    def mutant(
        exact: Any, plan: ReleasePlan, number: int, groups: Any, noise: tuple[Any, ...], ask: Any
    ) -> Any:
        bare = tuple(np.concatenate([part[:-1], part[-1:] * 0]) for part in noise)
        return original(exact, plan, number, groups, bare if groups.size > 1 else noise, ask)

    monkeypatch.setattr(run, "privatise", mutant)
    with pytest.raises(AssertionError):
        check_own_draws(desk, monkeypatch, FEW)


def test_ignore_minimum_units(desk: OpenDesk, monkeypatch: Patch, tmp_path: Path) -> None:
    """In both places that hold it: what leaves the engine, and what is shown."""
    original = noised.publish
    plant(monkeypatch, print_release.ReleasePrinter._is_tested, ("{self.tested.least}", "1"))
    monkeypatch.setattr(run, "publish", lambda exact, plan, noise, least: original(exact, plan, noise, 1))
    with pytest.raises(AssertionError):
        check_minimum_units(desk, tmp_path / "least")


def test_show_found_keys_as_the_engine_met_them(desk: OpenDesk, monkeypatch: Patch) -> None:
    plant(monkeypatch, print_release.ReleasePrinter._outer, ("if tests:", "if False:"))
    with pytest.raises(AssertionError):
        check_order_of_keys(desk)


def test_leave_out_what_it_rests_on(desk: OpenDesk, monkeypatch: Patch, tmp_path: Path) -> None:
    """A stored answer would survive an edited policy."""
    plant(monkeypatch, planner._identity, ("= (rests,", "= (None,"))
    with pytest.raises(AssertionError):
        check_an_edited_policy_is_asked_anew(desk, tmp_path / "edited", EDITS[0])


def test_leave_intermediate_values_out(desk: OpenDesk, monkeypatch: Patch) -> None:
    """The outer answer would belong to another inner one."""
    original = ReleasePlan.salted
    monkeypatch.setattr(ReleasePlan, "salted", lambda self, extra: original(self, b""))
    with pytest.raises(AssertionError):
        check_the_outer_answer_goes_with_the_inner_one(desk)


def test_know_one_intermediate_value_alone(desk: OpenDesk, monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        PlanRunner, "_relation_key", lambda self, number: self.rows[number].plan.salted(b"known")
    )
    with pytest.raises(AssertionError):
        check_the_outer_answer_goes_with_the_inner_one(desk)


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        (ReleasePlan._labels, "(mask if by_rows else index,", "(0 if by_rows else index,"),
        (ReleasePlan._labels, "distinct_limit, measured.masks)", "distinct_limit)"),
        (Measurement.key_of, "(self.kind, part, self.value,", "(self.kind, part,"),
        (Measurement.key_of, "(self.kind, part,", "(part,"),
        (planner._identity, "rows.identity(), ", ""),
        (planner._identity, "release.keys, bounding, *", "bounding, *"),
    ],
)
def test_leave_out_what_a_question_is(
    desk: OpenDesk, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str
) -> None:
    plant(monkeypatch, function, (old, new))
    with pytest.raises(AssertionError):
        check_other_questions(desk)


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        (ReleasePlan.measure_keys, "relation + keyset +", "relation +"),
        (run._keyset_id, "hashlib.sha256(payload).digest()", "b''"),
    ],
)
def test_keep_measures_when_the_keys_are_others(
    desk: OpenDesk, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str
) -> None:
    plant(monkeypatch, function, (old, new))
    with pytest.raises((AssertionError, ValueError)):
        check_measures_go_with_their_keys(desk)


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        (PlanRunner.claimed, "plan.delta if index == plan.counted else Fraction(0)", "Fraction(0)"),
        (run._ceil, "-(-value.numerator // value.denominator)", "value.numerator // value.denominator"),
    ],
)
def test_charge_less_than_is_claimed(
    desk: OpenDesk, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str
) -> None:
    plant(monkeypatch, function, (old, new))
    with pytest.raises(AssertionError):
        check_delta_is_charged(desk)
