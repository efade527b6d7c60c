"""Every plan is verified before it is charged: by a program that shares nothing with what made it (soundness.md 5.6).

House rules:

1. What is verified is the string that the database gets, in the snapshot that answers, by facts that are read there a
   second time.
2. Whether a plan is verified depends on text, policy and schema, and so does the rule that is missing (law L6). The
   rule is told to the owner's log alone.
3. What is not verified is refused, where the policy does not say otherwise, before anything is charged. A text that is
   printed from released numbers is verified before it is sent: its refusal follows from what is released.

What a plan claims, handed over to those who verify it: a certificate of the measurements that are to be drawn.

House rules:

1. Nothing is derived here: each figure is the plan's own, each text the very string that the database gets.
2. What is not drawn is not in it: neither what is empty by its text, nor what the store has already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ..budget import Certificate as Stored
from ..budget import Charge as Spent
from ..budget import LedgerStore
from ..budget.certificates import MOST_BYTES_OF_ONE
from ..cache import Cache
from ..errors import Unverified
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
    SquareRoot,
    Thresholded,
)
from ..mechanisms import Law as NoiseLaw
from ..mechanisms import Truncated as TruncatedLaw
from ..plan.backend_sql.print_release import BackendQuery
from ..plan.backend_sql.print_release import Part as AskedPart
from ..plan.measures.least_error import TopGroups
from ..plan.measures.measurements import Joint
from ..plan.measures.ranks import Ranked, WeighedChoice
from ..plan.privacy.rows import IntermediateColumn, selects_in
from ..plan.release_plan import ReleasePlan
from ..policy import Policy, Verify
from ..records import dataclass
from ..relation.catalog import PERIOD
from ..relation.expressions import IntermediateValue
from ..verify import Refused, Verified, verify
from ..verify.certificate import (
    Certificate,
    Charge,
    Facts,
    Groups,
    Law,
    Measurement,
    Part,
    Query,
    Reach,
    Release,
    Stretch,
    Table,
    Threshold,
    dumps_stored,
)
from .facts import read_facts
from .released import most_drawn

if TYPE_CHECKING:
    from ..backends import Snapshot
    from ..policy import LiveSchema


# --- what a plan claims, handed over to those who verify it -------------------------------------------------


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
    said = _unquoted("\n".join(texts))
    left = [name for name in facts.tables if all(part in said for part in _unquoted(name).split("."))]
    found: dict[str, Table] = {}
    while left:
        name = left.pop()
        if name in found or name not in facts.tables:
            continue
        found[name] = table = facts.tables[name]
        left += [one.table for one in table.foreign_keys]
        left += [table.unit.table] if table.unit is not None and table.unit.table else []
        left += [] if table.time is None else [one.table for one in table.time.way]
    return replace(facts, tables=found)


def _unquoted(name: str) -> str:
    """Return a name, or a text of names, without quotes: an identifier has its own twice."""
    return name.replace('"', "").replace("`", "")


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
        reach_of(plan),
    )


def reach_of(plan: ReleasePlan) -> Reach | None:
    """Return whose data a release is charged for, where there are periods."""
    if plan.slices is None:
        return None
    rows = plan.release.rows
    by = "person" if rows.is_replaced else "pair" if PERIOD in rows.root[1] else "one"
    return Reach(plan.slices.periods, plan.slices.is_undated, by)  # type: ignore[arg-type]


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
            else Groups("declared", plan.top.count, drawn=most_drawn(plan))
        )
    return Groups("declared", len(plan.groups), drawn=most_drawn(plan))


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
    if len(found) == 1:
        return found[0]
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
    is_squared = law.name in ("gaussian", "thresholded", "root")
    moved = Fraction(plan.measures[number].squared_sensitivity if is_squared else one.sensitivity)
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
        case SquareRoot():
            return Law("root", sigmas=(law.scale,))
        case TruncatedLaw():
            return Law("truncated", law.scale, bound=law.bound, weight=law.weight)
        case Thresholded():
            return Law("thresholded", sigmas=(law.scale,), bound=law.bound)
    raise ValueError(f"no draw has the law {law.text}")


# --- every plan is verified before it is charged ------------------------------------------------------------


USUAL = {"duckdb": Verify.REFUSE, "postgres": Verify.REFUSE, "spark": Verify.LOG}
"""What becomes of a plan that is not verified where the policy does not say, by engine."""

_MAX_KNOWN = 4096


@dataclass(frozen=True, slots=True)
class Certified:
    """A certificate as it is stored, None where it is too long. `rule`: why it does not hold; "" where it does."""

    stored: Stored | None
    rule: str


class Verifier:
    """Verifies what a dataset's statements are about to ask; safe for threads. What was verified is remembered.

    `tell`: takes a line for the owner alone, with the rule that is missing.
    """

    def __init__(self, policy: Policy, store: LedgerStore, engine: str, tell: Callable[[str], None]) -> None:
        self._policy, self._store = policy, store
        self._refuses = (policy.privacy.verify or USUAL[engine]) is Verify.REFUSE
        self._known: Cache[str] = Cache(_MAX_KNOWN)
        self._read: tuple[LiveSchema, Facts] | None = None
        self.tell = tell

    def facts(self, snapshot: Snapshot) -> Facts:
        """Return what is believed while a snapshot is open. Raises EngineFailure, LedgerError, PolicyError.

        A backend gives one and the same schema for as long as nothing behind it can have changed: of a file that no one
        may write, of tables that are locked and whose catalog rows are those of before. What was read then holds now.
        """
        live, known = snapshot.schema(), self._read
        if known is not None and known[0] is live:
            return known[1]
        facts = read_facts(snapshot, self._policy, self._store.key_check)
        if not any(table.asserted for table in live.tables):
            self._read = live, facts
        return facts

    def require(self, certificate: Certificate) -> Certified:
        """Return the certificate of what is about to be asked, as it is stored. Raises Unverified: it does not hold."""
        found = self.certified(certificate)
        if found.stored is None:
            self.tell("a certificate is too long to be stored")
        if found.rule:
            self.tell(f"a plan is not verified: {found.rule}")
            if self._refuses:
                raise Unverified(found.rule)
        return found

    def certified(self, certificate: Certificate) -> Certified:
        """Return a certificate as it is stored, and whether it holds."""
        content, unstored = (text.encode() for text in dumps_stored(certificate))
        name, claim = (hashlib.sha256(text).hexdigest() for text in (content, unstored))
        rule = self._known.get(claim)
        if rule is None:
            rule = rule_against(certificate)
            self._known.put(claim, rule)
        return Certified(Stored(name, content) if len(content) <= MOST_BYTES_OF_ONE else None, rule)


def rule_against(certificate: Certificate) -> str:
    """Return which rule a certificate does not satisfy by its own facts, or which is missing; "" where it holds."""
    return verdict_on(certificate, certificate.facts)[1]


def verdict_on(certificate: Certificate, facts: Facts) -> tuple[Verified | None, str]:
    """Return what is proved of a certificate and "", or None and the rule that it does not satisfy, or that is not
    there."""
    try:
        return verify(certificate, facts), ""
    except Refused as refused:
        return None, refused.rule
    except Exception as error:  # noqa: BLE001  # what is not proved is not verified, whatever the reason
        return None, f"a bug: {type(error).__name__}"
