"""What a plan claims, handed over to those who verify it: a certificate of the measurements that are to be drawn.

House rules:

1. Nothing is derived here: each figure is the plan's own, each text the very string that the database gets.
2. What is not drawn is not in it: neither what is empty by its text, nor what the store has already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..mechanisms import (
    ATTO,
    Box,
    FlipChoice,
    Gaussian,
    Gaussians,
    Laplace,
    RankChoice,
    RankSplit,
    Thresholded,
)
from ..mechanisms import Law as NoiseLaw
from ..mechanisms import Truncated as TruncatedLaw
from ..plan.backend_sql.print_release import BackendQuery
from ..plan.measures.measurements import Joint
from ..plan.measures.measurements import Measurement as Planned
from ..plan.measures.ranks import WeighedChoice
from ..plan.measures.top import TopGroups
from ..plan.planner import ReleasePlan
from ..verify.certificate import (
    Certificate,
    Charge,
    Facts,
    Groups,
    Law,
    Measurement,
    Query,
    Release,
    Threshold,
)

__all__ = ["Asked", "certificate_of", "certify"]

_WINDOW = ("v", "less", "w", "n")
"""The columns of a query of rows near a rank, behind its keys."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Measurements of a release that are to be drawn, and the texts that are sent for them."""

    plan: ReleasePlan
    wanted: tuple[int, ...]
    queries: tuple[BackendQuery, ...]

    @classmethod
    def of(cls, plan: ReleasePlan, wanted: Iterable[int]) -> Asked:
        """Return what is asked for some measurements, as far as the plan alone says it: where groups are chosen, the
        first ones stand in their place.
        """
        numbers = tuple(wanted)
        return cls(plan, numbers, plan.queries(numbers) if numbers else ())


def certificate_of(plans: Sequence[ReleasePlan], facts: Facts) -> Certificate:
    """Return what whole releases claim, all of which are drawn."""
    return certify(
        [Asked.of(plan, range(len(plan.measurements))) for plan in plans if not plan.is_empty], facts
    )


def certify(asked: Sequence[Asked], facts: Facts) -> Certificate:
    """Return what is claimed of all that is to be drawn under one charge."""
    releases = tuple(_release(one) for one in asked if one.wanted)
    return Certificate(facts, releases, _sum(one.charge for one in releases))


def _release(asked: Asked) -> Release:
    plan, place = asked.plan, {number: index for index, number in enumerate(asked.wanted)}
    measurements = tuple(_measurement(plan, number) for number in asked.wanted)
    threshold = None
    if plan.counted in place:
        assert plan.counted is not None
        assert plan.tau is not None
        threshold = Threshold(place[plan.counted], plan.minimum_units, plan.tau, plan.delta)
    return Release(
        tuple(f"k{number}" for number in range(len(plan.release.keys))),
        _groups(plan),
        measurements,
        tuple(_query(query, plan, place) for query in asked.queries),
        _sum(one.share for one in measurements),
        threshold,
    )


def _groups(plan: ReleasePlan) -> Groups:
    if not plan.release.keys:
        return Groups("one")
    if plan.groups is None:
        return Groups("found")
    if plan.top is not None:
        return Groups("chosen", len(plan.groups), plan.top.count)
    return Groups("declared", len(plan.groups))


def _query(query: BackendQuery, plan: ReleasePlan, place: dict[int, int]) -> Query:
    parameters = ["salt"] * query.salted + ["released"] * len(query.intermediates)
    parameters += ["keys"] * (len(plan.release.keys) * query.of_shown)
    return Query(query.sql, tuple(place[number] for number in query.measurements), tuple(parameters))


def _sum(charges: Iterable[Charge]) -> Charge:
    found = list(charges)
    return Charge(
        sum((one.epsilon for one in found), Fraction(0)),
        sum((one.delta for one in found), Fraction(0)),
        sum((one.rho for one in found), Fraction(0)),
    )


def _measurement(plan: ReleasePlan, number: int) -> Measurement:
    one = plan.measurements[number]
    share = Charge(
        plan.epsilons[number],
        plan.delta if number == plan.counted else Fraction(0),
        Fraction(plan.rhos[number], ATTO) if plan.rhos else Fraction(0),
    )
    kind, count = one.kind.value, one.per_mask
    if isinstance(one, TopGroups):
        law = Law("flip", rates=(1 / plan.scale(number),))
        moved = Fraction(one.sensitivity, one.count)
        return Measurement(kind, ((f"m{number}_0",),), moved, law, share, choices=one.count)
    if isinstance(one, WeighedChoice):
        return _choice(plan, number, one, share)
    law = _law(plan.law(number))
    columns = tuple(
        tuple(f"m{number}_{mask * count + part}" for part in range(count)) for mask in range(len(one.masks))
    )
    is_squared = law.name in ("gaussian", "thresholded")
    moved = Fraction(one.squared_sensitivity if is_squared else one.sensitivity)
    reaches = one.reaches if isinstance(one, Joint) else ()
    return Measurement(kind, columns, moved, law, share, one.denominator, reaches)


def _choice(plan: ReleasePlan, number: int, one: WeighedChoice, share: Charge) -> Measurement:
    """Return the claim of a choice from weights: what one unit's can move in all, before any fraction's factor."""
    bounding, choice = one.bounding, plan.choices[number]
    moved = Fraction(bounding.in_all * one.unit * bounding.together * (2 if bounding.replace_one else 1))
    if isinstance(choice, FlipChoice):
        law = Law("flip", rates=(choice.gamma,))
        return Measurement(
            one.kind.value, (_WINDOW,), moved, law, share, one.unit, candidates=choice.candidates
        )
    gammas = (choice.gamma,) if isinstance(choice, RankChoice) else _gammas(choice)
    return Measurement(
        one.kind.value, (_WINDOW,), moved, Law("rank", rates=gammas), share, one.unit,
        fractions=_fractions(one), offsets=tuple(near.offset for near in choice.read),
        caps=tuple(near.clamp for near in choice.read), candidates=choice.candidates, hash_bits=choice.hash_bits,
    )  # fmt: skip


def _gammas(split: RankSplit) -> tuple[Fraction, ...]:
    return tuple(split.choice(between, split.candidates).gamma for between in split.between)


def _fractions(one: Planned) -> tuple[Fraction, ...]:
    shares: tuple[Fraction, ...] = one.shares  # type: ignore[attr-defined]
    return shares


def _law(law: NoiseLaw) -> Law:
    match law:
        case Laplace():
            return Law("laplace", law.scale)
        case Box():
            return Law("box", law.scale)
        case Gaussian():
            return Law("gaussian", sigmas=(law.scale,))
        case Gaussians():
            return Law("gaussian", sigmas=tuple(law.scale * reach for reach in law.reaches))
        case TruncatedLaw():
            return Law("truncated", law.scale, bound=law.bound, weight=law.weight)
        case Thresholded():
            return Law("thresholded", sigmas=(law.scale,), bound=law.bound)
    raise AssertionError(f"no draw has the law {law.text}")
