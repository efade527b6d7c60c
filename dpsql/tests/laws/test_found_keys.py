"""What finding groups in the data costs one person, from the laws that plans made, by enumeration (soundness.md 1.7).

A person changes the counts of C groups, or C of the one who goes and C of the one who comes; k persons go together.
The release of one group (its noisy count, or nothing) is enumerated for every number of people in it, and the losses of
all groups that change are added up: they stay within what the statement is charged. Of what the planner says of its
laws (scale, sensitivity, excess) nothing is believed: only C, k, the neighbours and the charge are read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.mechanisms import ATTO, NANO, Thresholded, Truncated
from dpsql.plan import release_plan
from dpsql.plan.measures import least_error
from dpsql.plan.planner import PrivacyParameters, plan
from dpsql.plan.release_plan import KeyLaw, ReleasePlan
from dpsql.policy import Accounting
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.tests.plan.planned import CATALOG

from .measured import NOW
from .planting import plant

Chances = npt.NDArray[np.float64]
"""Of what comes out about one group: its noisy count from 1 on, and last that it is not shown."""

_ROUNDING = 1 + 1e-9
_ORDERS = (1.5, 2.0, 5.0, 20.0)

STATEMENTS = (
    "SELECT note, COUNT(DISTINCT person_id) FROM visit GROUP BY note",
    "SELECT note, COUNT(*), SUM(days) FROM visit WHERE urgent GROUP BY note",
    "SELECT note, ward, COUNT(*) FROM visit GROUP BY ROLLUP (note, ward)",
)


@dataclass(frozen=True)
class Setting:
    """What the owner declares: one person is in `groups` groups at most."""

    accounting: Accounting
    groups: int
    epsilon: Fraction
    delta: Fraction
    replace_one: bool = False
    together: int = 1
    found_share: Fraction | None = None
    least: int = 1
    """The policy's minimum_units: groups of fewer people are never tested."""

    @property
    def changed(self) -> int:
        """In how many groups one step to a neighbour changes the number of people, by one each."""
        return self.groups * (2 if self.replace_one else 1)


def releases_of(sql: str, setting: Setting) -> Iterator[ReleasePlan]:
    """Yield the releases that find their groups."""
    visit = CATALOG.tables["visit"]
    assert visit.unit is not None
    unit = replace(visit.unit, max_groups=setting.groups, max_rows=100, max_rows_per_group=100)
    catalog = replace(
        CATALOG, tables={**CATALOG.tables, "visit": replace(visit, unit=unit)}, case_collation="pg_c_utf8"
    )
    privacy = PrivacyParameters(
        setting.epsilon, setting.delta, setting.least, setting.replace_one, together=setting.together,
        accounting=setting.accounting, found_share=setting.found_share,
    )  # fmt: skip
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    relation = bind(query, BindingContext(catalog, query.text, (), NOW, {}))
    for release in plan(relation, catalog, privacy).releases:
        if release.counted is not None:
            yield release


@cache
def shown(law: KeyLaw, people: int, width: int, least: int = 1) -> Chances:
    """Return the chances of what comes out about a group of so many people, from the law's definition and its rule."""
    found = np.zeros(width + 1)
    if people < least:  # never tested
        found[-1] = 1
        return found
    noise = np.arange(-width, width + 1)
    chances = _noise(law, width)
    for coin, part in ((True, float(law.coin)), (False, 1 - float(law.coin))):
        is_shown = law.shown(people + noise - (least - 1), np.full(len(noise), coin))
        assert not is_shown[people + noise < least].any()
        place = np.where(is_shown, np.clip(people + noise, 1, width) - 1, width)
        found += part * np.bincount(place, chances, width + 1)
    return found


@cache
def _noise(law: KeyLaw, width: int) -> Chances:
    """Return the chance of each noise from -width to width, by its definition."""
    at = np.abs(np.arange(-width, width + 1)).astype(np.float64)
    if isinstance(law, Thresholded):
        weights = np.exp(-(at**2) / (2 * float(law.scale) ** 2))
    else:
        weights = np.where(at <= law.bound, np.exp(-at / float(law.scale)), 0.0)
        weights[at == law.bound] *= float(law.weight)
    return weights / math.fsum(weights)


def width_of(law: KeyLaw, least: int) -> int:
    """Return up to which count all is enumerated: beyond, the rule leaves nothing but the noise."""
    return 3 * law.bound + 5 + least + (math.ceil(12 * law.scale) if isinstance(law, Thresholded) else 0)


def excess_of(law: KeyLaw, epsilon: float, least: int = 1) -> float:
    """Return the delta of one group at an epsilon: the worst Σ max(0, P - e^epsilon P') of a step by one person."""
    width, worst = width_of(law, least), 0.0
    for people in range(2 * law.bound + 2 + least):
        here, there = shown(law, people, width, least), shown(law, people + 1, width, least)
        for left, right in ((here, there), (there, here)):
            worst = max(worst, math.fsum(np.maximum(0.0, left - math.exp(epsilon) * right)))
    return worst


def divergence_of(law: Thresholded, order: float, most: int, least: int) -> float:
    """Return the worst Rényi divergence of a group that `least` others are in too, over the square of the step to it."""
    width, worst = width_of(law, least), 0.0
    for people, step in itertools.product(range(least, law.bound + 2 + least), range(1, most + 1)):
        here, there = shown(law, people, width, least), shown(law, people + step, width, least)
        for left, right in ((here, there), (there, here)):
            apart = (left > 1e-200) & (right > 1e-200)
            terms = order * np.log(left[apart]) + (1 - order) * np.log(right[apart])
            total = float(np.max(terms)) + math.log(math.fsum(np.exp(terms - np.max(terms))))
            worst = max(worst, total / (order - 1) / step**2)
    return worst


def check(release: ReleasePlan, setting: Setting) -> None:
    """Hold what all groups lose together against what is charged for finding them."""
    law, number, steps = release.key_law, release.counted, setting.together
    assert law is not None
    assert number is not None
    assert release.measures[number].law == law
    changed, delta = setting.changed, float(release.delta)
    if setting.accounting is Accounting.PURE:
        epsilon = float(release.measures[number].epsilon)
        one = excess_of(law, epsilon / steps / changed, setting.least)
        assert changed * one * sum(math.exp(epsilon * i / steps) for i in range(steps)) <= delta * _ROUNDING
        return
    rho = release.measures[number].rho_atto / ATTO
    if isinstance(law, Truncated):  # (e, d)-DP is d-approximate e²/2-zCDP
        assert steps == 1
        assert changed * excess_of(law, math.sqrt(2 * rho / changed), setting.least) <= delta * _ROUNDING
        return
    # a group of too few others: whatever is shown is delta; n of the changed are in it, together in k·C groups
    width = width_of(law, setting.least)
    new = max(
        (1 - shown(law, others + people, width, setting.least)[-1]) / people
        for others, people in itertools.product(range(setting.least), range(1, steps + 1))
    )
    assert steps * setting.groups * new <= delta * _ROUNDING
    for order in _ORDERS:
        worst = divergence_of(law, order, steps, setting.least) * steps**2 * changed
        assert worst <= order * rho * _ROUNDING + 1e-12


def settings_of(accounting: Accounting) -> Iterator[Setting]:
    for groups, delta in itertools.product(
        (1, 2, 3, 8, 20), (Fraction(1, 1000), Fraction(1, 50), Fraction(2, 5))
    ):
        for epsilon in (Fraction(1), Fraction(4)):
            yield Setting(accounting, groups, epsilon, delta)
    for groups, together in ((1, 3), (3, 2)):
        yield Setting(accounting, groups, Fraction(2), Fraction(1, 100), together=together)
    for groups in (1, 2, 8):
        yield Setting(accounting, groups, Fraction(2), Fraction(1, 5), replace_one=True)
    for groups, together in ((2, 1), (1, 2)):
        yield Setting(accounting, groups, Fraction(2), Fraction(1, 50), together=together, least=3)


def check_all(settings: Iterable[Setting], sql: str) -> None:
    for setting in settings:
        for release in releases_of(sql, setting):
            check(release, setting)


@pytest.mark.parametrize("accounting", Accounting)
@pytest.mark.parametrize("sql", STATEMENTS)
def test_all_groups_together_lose_what_is_charged_at_most(accounting: Accounting, sql: str) -> None:
    check_all(settings_of(accounting), sql)


def test_both_rules_are_among_them_with_several_groups() -> None:
    """Else the law would not speak of truncated noise on several groups under rho."""
    laws = [
        (type(release.key_law), setting.groups)
        for setting in settings_of(Accounting.ZCDP)
        for release in releases_of(STATEMENTS[0], setting)
    ]
    for kind in (Truncated, Thresholded):
        assert any(law is kind and groups > 1 for law, groups in laws)


@pytest.mark.parametrize("accounting", Accounting)
def test_so_does_what_is_drawn_at_another_price(accounting: Accounting) -> None:
    """A statement's epsilon is asked anew, or its total split otherwise: the rule is made anew with it."""
    settings = [Setting(accounting, groups, Fraction(1), Fraction(2, 5)) for groups in (1, 3, 8)]
    settings += [replace(settings[1], together=2), replace(settings[1], replace_one=True)]
    for setting, factor in itertools.product(settings, (Fraction(1, 3), Fraction(5))):
        for release in releases_of(STATEMENTS[1], setting):
            under = release.under(setting.epsilon * factor, Fraction(1))
            assert under is not None
            check(under, setting)
            losses = [Fraction(math.ceil(loss * factor * NANO), NANO) for loss in release.losses]
            check(release.spending(losses), setting)


SHARES = (None, Fraction(1, 20), Fraction(1, 2), Fraction(19, 20))


def check_shares(accounting: Accounting) -> None:
    """Hold what the noise of a whole statement loses, from its scales, against its epsilon: however that is shared."""
    for share, sql in itertools.product(SHARES, STATEMENTS):
        setting = Setting(accounting, 3, Fraction(1), Fraction(1, 50), found_share=share)
        lost = Fraction(0)
        for release in releases_of(sql, setting):
            check(release, setting)
            assert [one.law for one in release.measures if isinstance(one.law, KeyLaw)] == [release.key_law]
            for one in release.measures:
                measurement = one.measurement
                if one.law == release.key_law:  # held by `check` against its loss
                    lost += one.loss.added
                elif accounting is Accounting.PURE:
                    lost += measurement.sensitivity / one.law.scale
                else:
                    lost += measurement.squared_sensitivity / (2 * one.law.scale**2)
        assert lost <= (setting.epsilon if accounting is Accounting.PURE else setting.epsilon**2 / 2) * (
            1 + Fraction(1, 10**9)
        )


@pytest.mark.parametrize("accounting", Accounting)
def test_unequal_shares_add_up(accounting: Accounting) -> None:
    check_shares(accounting)


def test_what_is_charged_is_used() -> None:
    """Of truncated noise all of delta, and four fifths of the charge are not enough: the law is no empty one."""
    for groups in (1, 3):
        setting = Setting(Accounting.PURE, groups, Fraction(1), Fraction(1, 50))
        (release,) = releases_of(STATEMENTS[0], setting)
        assert release.key_law is not None
        assert groups * excess_of(release.key_law, 1 / groups) > 0.999 * float(release.delta)
        assert groups * excess_of(release.key_law, 0.8 / groups) > 2 * float(release.delta)


# --- mutants ---------------------------------------------------------------------------------------------------

FAULTS = {
    "each group gets all of rho": ("pure_epsilon(each.rho // groups)", "pure_epsilon(each.rho)"),
    "each group gets all of delta under rho": ("alone, delta / groups", "alone, delta"),
    "each group gets all of delta": ("delta / (counted.of_one * steps)", "delta / steps"),
    "each group gets all of epsilon": ("counted.scale(each.epsilon), delta / (", "1 / each.epsilon, delta / ("),
    "each group has noise of its own change": ("counted.squared_sensitivity", "1"),
    "a threshold for one group": ("counted.bounding.groups, together", "1, together"),
    "a threshold for one person": ("counted.bounding.groups, together", "counted.bounding.groups, 1"),
    "deltas of several persons as if they did not grow": ("1 / bounds_of_exp(i * each.epsilon / together, _DIGITS)[0]", "1"),
    "truncated noise for several persons": ("if together > 1 or not alone", "if not alone"),
}  # fmt: skip


SHARE_FAULTS = {
    "the others have all but half of it": ("(1 - found_share) / (count - 1)", "(1 - found_share / 2) / (count - 1)"),
    "the others have all of it": ("(1 - found_share) / (count - 1)", "Fraction(1) / (count - 1)"),
    "the others have it each": ("(1 - found_share) / (count - 1)", "1 - found_share"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), SHARE_FAULTS.values(), ids=SHARE_FAULTS)
@pytest.mark.parametrize("accounting", Accounting)
def test_plant_in_the_shares(
    monkeypatch: pytest.MonkeyPatch, accounting: Accounting, old: str, new: str
) -> None:
    plant(monkeypatch, least_error._shares, (old, new))
    with pytest.raises(AssertionError):
        check_shares(accounting)


@pytest.mark.parametrize(("old", "new"), FAULTS.values(), ids=FAULTS)
def test_plant(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    plant(monkeypatch, release_plan.key_rule, (old, new))
    with pytest.raises(AssertionError):
        check_all(itertools.chain.from_iterable(map(settings_of, Accounting)), STATEMENTS[0])
