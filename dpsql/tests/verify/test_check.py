"""The laws' inequalities: what is drawn loses as much as its share, and a little less noise is refused."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from dpsql.tests.verify.clinic import FACTS, certificate_of, check
from dpsql.tests.verify.test_lemmas import CLAMP, DIRECT, refused
from dpsql.verify import Refused, verify
from dpsql.verify.certificate import Charge, Facts, Law, Measurement, Threshold
from dpsql.verify.check import loss, shown_by_chance

COUNT = "SELECT COUNT(*) AS m0_0 FROM main.patient"
REPLACED = replace(FACTS, neighbours="replace-one")
HOUSEHOLD = replace(FACTS, together=4)
ZCDP = replace(FACTS, accounting="zcdp")


def test_replacing_moves_a_single_count_by_one_and_groups_by_two() -> None:
    assert check(COUNT, 1, facts=REPLACED).moved == 1
    grouped = "SELECT city AS k0, COUNT(*) AS m0_0 FROM main.patient GROUP BY city HAVING city IN ('a', 'b')"
    assert check(grouped, 2, keys=("k0",), facts=REPLACED).moved == 2
    refused(grouped, 1, keys=("k0",), facts=REPLACED)


def test_replacing_moves_a_sum_by_its_range() -> None:
    signed = CLAMP.replace("0 AND 120", "-20 AND 120").replace("< 0 THEN 0", "< -20 THEN -20")
    assert check(f"SELECT SUM({signed}) AS m0_0 FROM main.patient", 140, facts=REPLACED).moved == 140
    assert check(DIRECT, 120, facts=REPLACED).moved == 120


def test_several_together_are_as_many_steps() -> None:
    assert check(COUNT, 4, facts=HOUSEHOLD).moved == 4
    refused(COUNT, 3, facts=HOUSEHOLD)


def test_an_average_stays_in_its_interval_whoever_is_there() -> None:
    """Three of one group move it by no more than its width, squared; of C groups each by what an owner moves there."""
    law, share = Law("gaussian", sigmas=(Fraction(10**6),)), Charge(Fraction(1), rho=Fraction(1, 2))
    said = {"law": law, "share": share}
    assert check(DIRECT, 120, facts=replace(HOUSEHOLD, accounting="zcdp"), **said).moved == 120**2
    assert check(DIRECT, 120, facts=HOUSEHOLD).moved == 120
    grouped = DIRECT.replace("SELECT ", "SELECT city AS k0, ") + " GROUP BY city HAVING city IN ('a', 'b')"
    both = replace(ZCDP, neighbours="replace-one", together=2)
    assert check(grouped, 120, keys=("k0",), facts=both, **said).moved == 4 * max(61**2, 120**2 // 2)


@pytest.mark.parametrize("sigma", [Fraction(1), Fraction(999, 1000)])
def test_gaussian_noise_has_its_rho(sigma: Fraction) -> None:
    law, share = Law("gaussian", sigmas=(sigma,)), Charge(Fraction(1), rho=Fraction(1, 2))
    if sigma < 1:
        assert "loses no more" in _refused(ZCDP, law, share)
    else:
        assert _checked(ZCDP, law, share) == Fraction(1, 2)


def test_gaussian_noise_is_for_zcdp() -> None:
    assert "zCDP" in _refused(FACTS, Law("gaussian", sigmas=(Fraction(9),)), Charge(Fraction(1)))


def test_a_threshold_tells_of_one_person_no_more_than_delta() -> None:
    """Against the law written out: e = 1, k = 3, w = 1/2."""
    rate, bound, weight = Fraction(1), 3, Fraction(1, 2)
    q = Decimal(-1).exp()
    total = sum((q ** abs(x) for x in range(-2, 3)), Decimal(0)) + 2 * Decimal("0.5") * q**3
    told = (Decimal("0.5") * q**3 + Decimal("0.5") * q**2) / total
    found = shown_by_chance(rate, bound, weight)
    assert told <= found <= told * (1 + Decimal(1).scaleb(-25))


@pytest.mark.parametrize(("together", "rho"), [(1, Fraction(3, 2 * 100)), (2, Fraction(36, 2 * 100))])
def test_counts_of_found_groups_add_up_in_rho(together: int, rho: Fraction) -> None:
    """Three counts of one person, each a draw of scale 10; of two persons together the whole distance is one step."""
    law = Law("truncated", scale=Fraction(10), bound=90, weight=Fraction(1, 2))
    facts = replace(ZCDP, together=together)
    counted = Measurement("units", (("m0_0",),), Fraction(3), law, Charge())
    spent = loss(counted, Fraction(3 * together), facts, Threshold(0, 1, 91, Fraction(1)), True)
    assert (spent.rho, spent.epsilon) == (rho, Fraction(3 * together, 10))
    assert loss(counted, Fraction(3), FACTS, Threshold(0, 1, 91, Fraction(1)), True).rho == 0


def _checked(facts: Facts, law: Law, share: Charge) -> Fraction:
    certificate = certificate_of(COUNT, 1, facts=facts, law=law, share=share)
    [line] = verify(certificate, facts).lines
    return line.loss


def _refused(facts: Facts, law: Law, share: Charge) -> str:
    with pytest.raises(Refused) as caught:
        _checked(facts, law, share)
    return caught.value.rule
