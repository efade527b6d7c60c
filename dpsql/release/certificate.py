"""What a plan claims, handed over to those who verify it: a certificate of the measurements that are to be drawn.

House rules:

1. Nothing is derived here: each figure is the plan's own, each text the very string that the database gets.
2. What is not drawn is not in it: neither what is empty by its text, nor what the store has already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ..budget import Charge as Spent
from ..mechanisms import (
    ATTO,
    NANO,
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
from ..plan.backend_sql.print_release import Part as AskedPart
from ..plan.measures.measurements import Joint
from ..plan.measures.ranks import Ranked, WeighedChoice
from ..plan.measures.top import TopGroups
from ..plan.privacy.rows import IntermediateColumn, selects_in
from ..plan.release_plan import ReleasePlan
from ..relation.expressions import IntermediateValue
from ..verify.certificate import (
    Certificate,
    Charge,
    Facts,
    Groups,
    Law,
    Measurement,
    Part,
    Query,
    Release,
    Stretch,
    Table,
    Threshold,
)

__all__ = ["Asked", "certificate_of", "certify", "law_of_noise", "released_keys"]

_WINDOW = ("v", "less", "w", "n")
"""The columns of a query of rows near a rank, behind its keys."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Measurements of a release that are to be drawn, and the texts that are sent for them.

    `charges`: of what costs something else than it was planned with, since some of it is stored. `stored`: under which
    keys draws are stored, where that is known before.
    """

    plan: ReleasePlan
    wanted: tuple[int, ...]
    queries: tuple[BackendQuery, ...]
    charges: Mapping[int, Spent] = field(default_factory=dict)
    stored: Mapping[int, tuple[bytes, ...]] = field(default_factory=dict)

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
    releases = tuple(_release(one, facts) for one in asked if one.wanted)
    texts = [query.sql for release in releases for query in release.queries]
    return Certificate(_of_texts(facts, texts), releases, _sum(one.charge for one in releases))


def _of_texts(facts: Facts, texts: Sequence[str]) -> Facts:
    """Return the facts of the tables that could stand in some texts, and of those that these lead to."""
    left = [
        name for name in facts.tables if any(all(part in text for part in name.split(".")) for text in texts)
    ]
    found: dict[str, Table] = {}
    while left:
        name = left.pop()
        if name in found or name not in facts.tables:
            continue
        found[name] = table = facts.tables[name]
        left += [one.table for one in table.foreign_keys]
        left += [table.unit.table] if table.unit is not None and table.unit.table else []
    return replace(facts, tables=found)


def _release(asked: Asked, facts: Facts) -> Release:
    plan, place = asked.plan, {number: index for index, number in enumerate(asked.wanted)}
    measurements = tuple(
        replace(
            _measurement(plan, number, _share(asked, number, facts)),
            stored=tuple(key.hex() for key in asked.stored.get(number, ())),
        )
        for number in asked.wanted
    )
    threshold = None
    if plan.counted in place:
        assert plan.counted is not None
        assert plan.tau is not None
        threshold = Threshold(place[plan.counted], plan.minimum_units, plan.tau, plan.delta)
    return Release(
        tuple(f"k{number}" for number in range(len(plan.release.keys))),
        _groups(plan, place),
        measurements,
        tuple(_query(query, plan, place) for query in asked.queries),
        _sum(one.share for one in measurements),
        threshold,
    )


def _groups(plan: ReleasePlan, place: Mapping[int, int]) -> Groups:
    """Return which groups are answered; of those that are chosen, or found, whoever asks later knows the list."""
    if not plan.release.keys:
        return Groups("one")
    if plan.groups is None:
        return Groups("found" if plan.counted in place else "declared")
    if plan.top is not None:
        is_made = plan.selection in place
        return (
            Groups("chosen", len(plan.groups), plan.top.count)
            if is_made
            else Groups("declared", plan.top.count)
        )
    return Groups("declared", len(plan.groups))


def _query(query: BackendQuery, plan: ReleasePlan, place: dict[int, int]) -> Query:
    keys = released_keys(plan)
    parameters = ["salt"] * query.salted + [_said_of(one, keys) for one in query.intermediates]
    parameters += ["keys"] * (len(plan.release.keys) * query.of_shown)
    return Query(
        query.sql,
        tuple(place[number] for number in query.measurements),
        tuple(parameters),
        None if query.part is None else _part(query.part),
    )


def _part(part: AskedPart) -> Part:
    """Return what whoever draws asked for: the values, and which of them are near a rank."""
    return Part(
        part.low,
        part.high,
        tuple(Stretch(Fraction(near.p, near.q), near.offset, near.clamp) for near in part.near),
    )


def _said_of(parameter: IntermediateValue | IntermediateColumn, keys: Mapping[int, frozenset[int]]) -> str:
    """Return what travels as a parameter: of rows, whether it is part of what no two of them share."""
    if isinstance(parameter, IntermediateValue) or parameter.intermediate not in keys:
        return "released"
    key = keys[parameter.intermediate]
    return "released-row" if not key else "released-key" if parameter.index in key else "released"


def released_keys(plan: ReleasePlan) -> dict[int, frozenset[int]]:
    """Return the columns that no two rows of an intermediate result share, where there are such: of one row, none."""
    sources = (item.source for select in selects_in(plan.release.rows) for item in select.items)
    return {one.intermediate: one.keys[0] for one in sources if one.intermediate is not None and one.keys}


def _sum(charges: Iterable[Charge]) -> Charge:
    found = list(charges)
    return Charge(
        sum((one.epsilon for one in found), Fraction(0)),
        sum((one.delta for one in found), Fraction(0)),
        sum((one.rho for one in found), Fraction(0)),
    )


def _share(asked: Asked, number: int, facts: Facts) -> Charge:
    """Return what a draw costs, as the ledger is asked for it; rho in a zCDP dataset alone."""
    plan, is_zcdp = asked.plan, facts.accounting == "zcdp"
    delta = plan.delta if number == plan.counted else Fraction(0)
    if number in asked.charges:
        spent = asked.charges[number]
        epsilon, rho = Fraction(spent.epsilon_nano, NANO), Fraction(spent.rho_atto, ATTO)
        return Charge(epsilon, delta, rho if is_zcdp else Fraction(0))
    loss = plan.measures[number].loss
    return Charge(loss.epsilon, delta, Fraction(loss.rho_atto, ATTO) if is_zcdp else Fraction(0))


def _measurement(plan: ReleasePlan, number: int, share: Charge) -> Measurement:
    one = plan.measurements[number]
    kind, count = one.kind, one.per_mask
    if isinstance(one, TopGroups):
        law = Law("flip", rates=(1 / plan.measures[number].scale,))
        moved = Fraction(one.sensitivity, one.count)
        return Measurement(kind, ((f"m{number}_0",),), moved, law, share, choices=one.count)
    if isinstance(one, WeighedChoice):
        return _choice(plan, number, one, share)
    law = law_of_noise(plan.measures[number].law)
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
        return Measurement(one.kind, (_WINDOW,), moved, law, share, one.unit, candidates=choice.candidates)
    assert isinstance(one, Ranked)
    gammas = (choice.gamma,) if isinstance(choice, RankChoice) else _gammas(choice)
    return Measurement(
        one.kind, (_WINDOW,), moved, Law("rank", rates=gammas), share, one.unit,
        fractions=one.shares, offsets=tuple(near.offset for near in choice.read),
        caps=tuple(near.clamp for near in choice.read), candidates=choice.candidates, hash_bits=choice.hash_bits,
    )  # fmt: skip


def _gammas(split: RankSplit) -> tuple[Fraction, ...]:
    return tuple(split.choice(between, split.candidates).gamma for between in split.between)


def law_of_noise(law: NoiseLaw) -> Law:
    """Return the law of an additive draw, as a certificate says it."""
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
    raise ValueError(f"no draw has the law {law.text}")
