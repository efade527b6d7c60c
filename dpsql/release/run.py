"""One statement's releases, or those of a batch: looked up, reserved, run, noised, stored. The spine's delicate half.

House rules (laws L5, L6, L7; soundness.md 1.14(5), 3.2 and 3.5):

1. Nothing of private rows is asked of the engine before `LedgerStore.reserve` has returned (public ones are counted
   here, and fetched by `session`): all intermediate results of the statement, and all statements of a batch, are
   reserved at once, and nothing is ever given back. Nothing is reserved before it is verified, and no text of private
   rows is sent that is not (`verifying`).
2. Nothing reaches the analyst before `LedgerStore.commit` has returned: what was drawn is stored, and
   the answer is made from what was stored.
3. Which way is taken (store, engine) depends on the store's noisy content alone. A measurement's own stored draw goes
   before what a stored grouping says of it (`finer`); with reuse off neither is looked for.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..budget import (
    ZERO,
    Charge,
    Claim,
    Draw,
    Fresh,
    Grouping,
    Known,
    LedgerStore,
    MeasurementClaim,
    Overtaken,
    Pending,
    Reservation,
    StoredDraws,
    Together,
    charge_of,
    fresh_of,
)
from ..errors import EngineFailure, LedgerAway, Refusal
from ..mechanisms import (
    ATTO,
    NANO,
    Coordinate,
    Law,
    Noise,
    SquareRoot,
    Vector,
    WeightedSum,
    Wish,
    best_weights,
    mean_of,
)
from ..plan.backend_sql.print_release import BackendQuery, Part
from ..plan.measures.measurements import Coord
from ..plan.planner import Plan, check_grown
from ..plan.privacy.axes import Axis
from ..plan.privacy.rows import IntermediateColumn
from ..plan.release_plan import ReleasePlan, Work
from ..policy.periods import most_of
from ..records import dataclass
from ..relation.catalog import Scalar
from ..relation.expressions import IntermediateValue
from ..relation.types import SqlType
from ..waits import Stopped
from .estimate import DrawId, Told, id_of, told_by_root
from .finer import AsOf, Finer, find_finer
from .price import Cost, known_of, reads_each_alone, said_of_missing, wish_of
from .privatise import AskPart, Drawn, Exact, draw, draw_picks, pick_groups, privatise, publish
from .released import (
    Array,
    Groups,
    ReleasedMeasurement,
    canonical,
    completed,
    decode,
    encode,
    integers,
    listed,
    listed_part,
    planned_groups,
    vectors_of,
)
from .table import grouping_of

if TYPE_CHECKING:
    from ..backends import Snapshot
    from ..verify.certificate import Facts
    from .verifying import Asked, Certified, Verifier


Place = tuple[int, int]
"""A release of a plan, and a measurement of it."""

_MOST_OVERTAKEN = 4
"""Times that a statement is priced while others draw of the same rows."""

MAX_INTERMEDIATE_ROWS = 100_000
"""Most rows of a released or public subquery that are sent to the engine again, to be joined with private rows."""


@dataclass
class ReleasedRows:
    """A release's groups and the noisy measurements over them, as far as they are known yet.

    `keyset`: what the measures of a release whose groups are found or chosen are keyed by: those very groups.
    `borrowed`: the ledger entries of the groupings that measurements were taken from; `taken`: how, by measurement.
    `fitted`: by measurement, the estimate of each coordinate where it is made of several draws; `is_agreed`: these
    estimates were made to agree with others that are read together; `own`: by measurement, the answer of its own draws
    alone, where the estimate is more exact (soundness.md 3.15).
    """

    plan: ReleasePlan
    groups: Groups | None = None
    measurements: dict[int, ReleasedMeasurement] = field(default_factory=dict)
    keyset: bytes = b""
    borrowed: set[int] = field(default_factory=set)
    taken: dict[int, Finer] = field(default_factory=dict)
    fitted: dict[int, tuple[Told, ...]] = field(default_factory=dict)
    is_agreed: bool = False
    own: dict[int, ReleasedMeasurement] = field(default_factory=dict)

    def take_keys(self, stored: Draw) -> None:
        """Take in the stored groups of a release whose groups are found or chosen."""
        assert self.plan.keyed_by is not None
        self.measurements[self.plan.keyed_by] = keys = decode(stored.payload, stored.law)
        self.groups, self.keyset = keys.groups, _keyset_id(stored.payload)

    def take(self, index: int, found: Finer) -> None:
        """Take in what the store says of a measurement in another question."""
        self.measurements[index] = found.measurement
        self.borrowed.update(found.entries)
        self.taken[index] = found
        if found.told:
            self.fitted[index] = found.told

    def take_own(self, index: int, own: Own) -> None:
        """Take in what a measurement's own draws say."""
        self.measurements[index], told = own
        if told:
            self.fitted[index] = told

    def by_own_draws(self) -> ReleasedRows:
        """Return it with what its own draws say, where they do."""
        measurements = {**self.measurements, **self.own}
        taken = {index: one for index, one in self.taken.items() if index not in self.own}
        fitted = {index: one for index, one in self.fitted.items() if index not in self.own}
        return replace(self, measurements=measurements, taken=taken, fitted=fitted)

    def values_of(self, coordinate: Coord) -> Array:
        """Return a coordinate's released integers, shape (groups,)."""
        return self.measurements[coordinate.measure].values[coordinate.place]

    def law_of(self, coordinate: Coord) -> Law:
        """Return the law of the noise that is on a coordinate."""
        return self.measurements[coordinate.measure].laws[coordinate.place]

    @property
    def is_complete(self) -> bool:
        """Whether all measurements are there."""
        return self.groups is not None and len(self.measurements) == len(self.plan.measurements)


@dataclass(frozen=True, slots=True)
class IntermediateRows:
    """The rows of an intermediate result by column, as they travel on to the next private plan."""

    columns: tuple[list[object], ...]


@dataclass
class PlanRunner:
    """Runs one plan.

    `intermediate_value(i, rows)` computes intermediate result i from the releases so far: one value, or
    `IntermediateRows`. `hold()` waits for the moment at which draws may be seen in the store (soundness.md 3.6):
    before it nobody finds them there. `cost` is kept up to date. `finer`: answers from stored draws of other questions,
    by release and measurement; those given at the start are what the plan itself takes from the store. `pending`: in a
    batch, the store with what is drawn and not stored yet. `verifier`: gives what verifies that; None: nothing is
    asked. `verified`: the SQL texts that passed; `facts`: the facts they were checked against;
    `most_drawn`: by release, for how many groups the certificate allows numbers to be drawn. `edition`: the ledger
    entry up to which stored draws answer; None: all do.
    """

    plan: Plan
    store: LedgerStore
    noise: Noise
    analyst: str
    statement: str
    reuse: bool
    intermediate_value: Callable[[int, list[ReleasedRows]], object]
    cancelled: Callable[[], bool]
    hold: Callable[[], None]
    cost: Cost
    rows: list[ReleasedRows] = field(default_factory=list)
    intermediates: list[object] = field(default_factory=list)
    finer: dict[tuple[int, int], Finer] = field(default_factory=dict)
    fresh: dict[tuple[int, int], Fresh] = field(default_factory=dict)
    pending: Pending | None = None
    verifier: Callable[[], Verifier] | None = field(default=None, kw_only=True)
    verified: set[str] = field(default_factory=set, kw_only=True)
    most_drawn: dict[int, int | None] = field(default_factory=dict, kw_only=True)
    facts: Facts | None = field(default=None, kw_only=True)
    edition: int | None = field(default=None, kw_only=True)
    _given: dict[tuple[int, int], Finer] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._given = dict(self.finer)
        self.rows = [_known_rows(plan) for plan in self.plan.releases]
        for (number, index), found in self.finer.items():
            self.rows[number].take(index, found)

    @property
    def draws(self) -> StoredDraws:
        """Where draws are looked up."""
        if self.edition is not None:
            return AsOf(self.store, self.edition)
        return self.store if self.pending is None else self.pending

    @property
    def origins(self) -> tuple[str, ...]:
        """What is answered from stored groupings, in words; of a release that is drawn period by period, the newest."""
        said = dict[object, tuple[int, str]]()
        of = {number: group[0] for group in self.plan.apart for number in group}
        for (number, index), found in self.finer.items():
            place = (of[number], index) if number in of else found.said
            said[place] = max(said.get(place, (-1, "")), (max(found.entries, default=0), found.said))
        return tuple(dict.fromkeys(one for _, one in said.values()))

    # --- the store -----------------------------------------------------------------------------------

    def from_store(self) -> bool:
        """Fill what the store has; say whether that is all."""
        if not self.reuse:
            return all(rows.plan.is_empty or not rows.plan.measurements for rows in self.rows)
        is_whole = True
        for number in range(len(self.rows)):
            if not self._advance_intermediates(number):
                return False
            is_whole = self._look_up(number) and is_whole
        return is_whole

    def _advance_intermediates(self, number: int) -> bool:
        """Compute the intermediate values that release `number` needs; False while they cannot be known yet."""
        needed = self.rows[number].plan.intermediates
        while needed and len(self.intermediates) <= max(needed):
            if not all(self.rows[i].is_complete for i in self._sources(len(self.intermediates))):
                return False
            self.intermediates.append(self.intermediate_value(len(self.intermediates), self.rows))
        return True

    def _sources(self, intermediate: int) -> list[int]:
        from ..plan.planner import releases_of

        wanted = set(releases_of(self.plan.intermediates[intermediate]))
        return [i for i, rows in enumerate(self.rows) if rows.plan.release in wanted]

    def _look_up(self, number: int) -> bool:
        rows = self.rows[number]
        plan = rows.plan
        if plan.is_empty:
            return True
        relation = self._relation_key(number)
        if plan.keyed_by is not None:
            found = self.draws.lookup(_keyset_keys(plan, relation), plan.measures[plan.keyed_by].law)
            if found is None:
                return False
            rows.take_keys(found[0][0])
        for index in range(len(plan.measurements)):
            if index in rows.measurements:
                continue
            self._look_up_one(number, index, relation, plan)
        return rows.is_complete

    def _look_up_one(self, number: int, index: int, relation: bytes, plan: ReleasePlan) -> None:
        """Take a measurement's answer from the store: the estimate from all stored draws of the same rows, or its own
        draws alone, whichever is more exact; without own draws the estimate from others. Intermediate results use own
        draws where they serve, since what is computed from them is stored under their value (soundness.md 3.8); so do
        levels, which nobody reads."""
        rows = self.rows[number]
        measures = plan.measure_keys(index, relation, rows.keyset)
        draws = self.draws.lookup(measures, plan.measures[index].law)
        self._take_best(number, index, plan, None if draws is None else own_of(plan, measures, draws))

    def _take_best(self, number: int, index: int, plan: ReleasePlan, own: Own | None) -> None:
        """Take a measurement's answer of its own draws, or as all stored draws of the same rows have it. See
        `_look_up_one`."""
        rows = self.rows[number]
        found, is_enough = None, own is not None and (self.plan.intermediates or number in self.plan.levels)
        if rows.groups is not None and not is_enough:
            # with own draws the estimate from all draws, these among them, is the best one: of every sum
            is_summed = own is None and not reads_each_alone(self.plan)
            found = find_finer(
                plan, index, rows.groups, self.draws, of_same_rows=own is not None, is_summed=is_summed
            )
        if found is not None and (own is None or (found.told and _is_no_wider(found.measurement, own[0]))):
            self.finer[number, index] = found
            rows.take(index, found)
            if own is not None:
                rows.own[index] = own[0]
        elif own is not None:
            rows.take_own(index, own)

    def _relation_key(self, number: int) -> bytes:
        values = [
            repr(self.intermediates[intermediate]) for intermediate in self.rows[number].plan.intermediates
        ]
        return self.rows[number].plan.salted("\x1f".join(values).encode())

    def imagined(self, number: int, index: int, law: Law) -> Draw:
        """Return a draw of a measurement under a law, without content: to find out beforehand what it would serve."""
        rows, plan, measures = self.rows[number], self.rows[number].plan, self.measures_of(number, index)
        size, groups = 0 if rows.groups is None else _drawn(rows, index).size, None
        if index == plan.keyed_by:
            size, groups = 0, Groups(tuple([] for _ in plan.release.keys), 0)
        values = tuple(np.zeros(size, dtype=np.int64) for _ in range(len(measures)))
        if index == plan.selection:
            values = ()
        empty = ReleasedMeasurement(values, groups, tuple(law.at(place) for place in range(len(values))))
        return Draw(measures, law, encode(empty))

    def measures_of(self, number: int, index: int) -> tuple[bytes, ...]:
        """Return what a measurement is stored under; where groups are found or chosen, once they are known."""
        rows, relation = self.rows[number], self._relation_key(number)
        if index == rows.plan.keyed_by:
            return _keyset_keys(rows.plan, relation)
        return rows.plan.measure_keys(index, relation, rows.keyset)

    def look_up(self, number: int) -> None:
        """Take from the store what it has of a release, once what the release depends on is known."""
        if self._advance_intermediates(number):
            self._look_up(number)

    # --- the charge ------------------------------------------------------------------------------------

    def claim(self) -> tuple[Claim, list[Place]]:
        """Return the statement's claim, and which (release, measurement) each of its measurements is."""
        places = [
            (number, index)
            for number, rows in enumerate(self.rows)
            for index in range(len(rows.plan.measures))
            if not rows.plan.is_empty and (number, index) not in self.finer
        ]
        claims = tuple(self.claimed(*place, knowing=True) for place in places)
        return Claim(self.analyst, self.statement, claims, self.reuse), places

    def priced(self, number: int, index: int) -> tuple[MeasurementClaim, Fresh]:
        """Return what is claimed of a measurement that is to be drawn, and how it would be drawn now."""
        claim = self.claimed(number, index, knowing=True)
        laws = self.draws.laws(claim.measures)
        fresh = fresh_of(claim, laws)
        if claim.wish is None or not fresh.stored:
            return replace(claim, known=None), fresh
        seen = dict(() if claim.known is None else claim.known.seen)
        seen |= {key: frozenset(one) for key, one in zip(claim.measures, laws, strict=True)}
        known = Known(fresh.charge.loss(claim.wish), fresh.entries, tuple(seen.items()))
        return replace(claim, known=known), fresh

    def claimed(self, number: int, index: int, *, knowing: bool = False) -> MeasurementClaim:
        """Return what is claimed of a measurement: as if nothing of it were known, or `knowing` what is stored."""
        rows, plan = self.rows[number], self.rows[number].plan
        one, measures = plan.measures[index], tuple[bytes, ...]()
        is_known = all(intermediate < len(self.intermediates) for intermediate in plan.intermediates)
        if is_known and (plan.keyed_by in (None, index) or plan.keyed_by in rows.measurements):
            measures = self.measures_of(number, index)
        delta = plan.delta if index == plan.counted else Fraction(0)
        wish, grouping = wish_of(plan, index), grouping_of(plan, index)
        return MeasurementClaim(
            measures,
            one.law,
            Charge(_ceil(one.epsilon * NANO), _ceil(delta * ATTO), one.rho_atto),
            _note(plan, index),
            grouping,
            wish,
            self._known(number, index, wish, grouping) if knowing else None,
            grounds=plan.grounds_at(index),
            slices=plan.slices,
            whose=plan.whose,
        )

    def _known(self, number: int, index: int, wish: Wish | None, grouping: Grouping | None) -> Known | None:
        """Return what is left to draw of a measurement beyond stored groupings, where these tell a part of it."""
        rows = self.rows[number]
        if wish is None or not self.reuse or rows.groups is None or index in rows.measurements:
            return None
        if rows.plan.keyed_by is not None or self.edition is not None or not reads_each_alone(self.plan):
            return None
        return known_of(rows.plan, index, wish, grouping, rows.groups, self.draws)

    def price(self) -> Fraction:
        """Return what is to be charged for what was not found, in what adds up: of a batch all that it would cost."""
        if self.pending is None:
            claim = self.claim()[0]
            fresh = self.store.quote(claim)
            paid = zip(claim.measurements, fresh, strict=True)
            whole = charge_of((of.slices, one.charge) for of, one in paid if one is not None)
            is_zcdp = any(rows.plan.is_zcdp for rows in self.rows)
            return Fraction(whole.rho_atto, ATTO) if is_zcdp else Fraction(whole.epsilon_nano, NANO)
        return most_of(
            (rows.plan.slices, loss)
            for rows in self.rows
            for i, loss in enumerate(rows.plan.losses)
            if i not in rows.measurements
        )

    def take_estimates(self) -> None:
        """Take in what all stored draws say of what was drawn, now that it is stored: as whoever asks again finds it
        (soundness.md 3.15)."""
        if not self.reuse or self.plan.intermediates or self.pending is not None:
            return
        for number, plan in enumerate(self.plan.releases):
            for index in range(len(plan.measurements)):
                if index != plan.keyed_by and not plan.is_empty and (number, index) not in self.finer:
                    rows = self.rows[number]
                    own = rows.measurements[index], rows.fitted.get(index, ())
                    self._take_best(number, index, plan, own)

    # --- verified --------------------------------------------------------------------------------------------

    def verify(self, places: Mapping[Place, tuple[bytes, ...]], facts: Facts) -> Certified:
        """Return the certificate of what is about to be drawn; `places`: by measurement, the store keys. Raises
        Unverified.
        """
        from .verifying import Asked

        self.facts = facts
        asked = {}
        for number, rows in enumerate(self.rows):
            stored = {index: keys for (release, index), keys in places.items() if release == number}
            asked[number] = replace(Asked.of(rows.plan, stored), stored=stored)
        return self._require(asked)

    def _require(self, asked: Mapping[int, Asked]) -> Certified:
        """Verify what is to be drawn, by the number of a release. Raises Unverified."""
        from .verifying import certify

        assert self.verifier is not None, "who asks is verified"
        assert self.facts is not None, "it was verified before it was charged"
        certificate = certify(list(asked.values()), self.facts)
        found = self.verifier().require(certificate)
        self.verified |= {query.sql for one in asked.values() for query in one.queries}
        claimed = (number for number, one in asked.items() if one.wanted)
        for number, release in zip(claimed, certificate.releases, strict=True):
            self.most_drawn[number] = release.groups.drawn
        return found

    def _size(self, number: int, index: int) -> int:
        """Return of how many groups a measurement is drawn, no more than were verified (soundness.md 5.6, V18)."""
        size, most = _drawn(self.rows[number], index).size, self.most_drawn[number]
        if most is not None and size > most:
            raise AssertionError("more groups are drawn than were verified")
        return size

    def _verify_drawn(self, reservation: Reservation, wanted: Wanted) -> None:
        """Verify what is drawn under another noise, or for less, than was claimed (soundness.md 3.13)."""
        from .verifying import Asked

        changed: dict[Place, Charge] = {}
        for place, claim, one in zip(wanted.places, wanted.claims, reservation.fresh, strict=True):
            if one is not None and (one.law, one.charge) != (claim.law, claim.charge):
                changed[place] = one.charge
        for number, rows in enumerate(self.rows):
            charges = {index: charge for (release, index), charge in changed.items() if release == number}
            if charges:
                self._require({number: replace(Asked.of(rows.plan, charges), charges=charges)})

    # --- the engine --------------------------------------------------------------------------------------

    def from_engine(self, snapshot: Snapshot, epoch_secret: Callable[[int], bytes]) -> Charge:
        """Reserve, run, noise and store what the store did not have; return what was charged."""
        for attempt in itertools.count(1):
            claim, places = self.claim()
            wanted = Wanted(self, claim.measurements, places)
            try:
                return carry_out([wanted.tried(attempt)], snapshot, epoch_secret)[0]
            except Overtaken:  # others drew of the same rows: less may be missing now
                self.rows, self.intermediates, self.finer = [], [], dict(self._given)
                self.__post_init__()
                if self.from_store():
                    return ZERO
        raise AssertionError("what counts on nothing is not overtaken")

    def draw_owed(
        self, reservation: Reservation, wanted: Wanted, snapshot: Snapshot, salt: bytes
    ) -> list[Draw]:
        """Run and noise what is reserved; return the draws in the order of their entries."""
        claimed = zip(wanted.places, reservation.entries, strict=True)
        owed = [place for place, entry in claimed if entry is not None]
        self._take_found(reservation, wanted)
        self._take_fresh(dict(zip(wanted.places, reservation.fresh, strict=True)))
        self._verify_drawn(reservation, wanted)
        drawn: dict[Place, Draw] = {}
        for number in range(len(self.rows)):
            if not self._advance_intermediates(number):
                raise AssertionError("an intermediate result was not ready in its order")
            if self.pending is not None:  # what an earlier statement of the batch drew
                self._look_up(number)
            asked = [index for release, index in owed if release == number]
            for index, measurement_draw in self._run_release(number, asked, snapshot, salt):
                drawn[number, index] = measurement_draw
        return [drawn[place] for place in owed]

    @contextmanager
    def reserved(self, claim: Claim) -> Iterator[Reservation]:
        """Reserve; whatever goes wrong afterwards, the entries are closed and stay spent."""
        reservation = self.store.reserve(claim, cancelled=self.cancelled, charging=self.cost.charging)
        self.cost.charge = reservation.charge
        for digest in reservation.unproved:
            assert self.verifier is not None, "who asks is verified"
            self.verifier().tell(f"there is no room for a certificate: {digest}")
        done, is_full = False, False
        try:
            yield reservation
            done = True
        except EngineFailure as failure:
            if failure.sqlstate != "57014":
                self.hold()  # whoever waits for this draw learns of its end from here on
            raise
        except MemoryError:  # for the rows that were asked for: reported like a failure of the engine
            is_full = True
            self.hold()
        finally:
            if not done:
                self.store.fail(reservation)
        if is_full:
            raise EngineFailure("run: this process has no memory left for what the database sends")

    def _take_found(self, reservation: Reservation, wanted: Wanted) -> None:
        """Take in what another statement stored since `from_store` looked."""
        for (number, index), found, measurement in zip(
            wanted.places, reservation.found, wanted.claims, strict=True
        ):
            rows = self.rows[number]
            if found is None:
                if index in rows.measurements:
                    raise EngineFailure("the epoch was advanced while this statement began")
                continue
            if index in rows.measurements:
                continue  # what was looked up first stays: the other measurements' keys speak of these groups
            if index == rows.plan.keyed_by:
                rows.take_keys(found[0][0])
            else:
                rows.take_own(index, own_of(rows.plan, measurement.measures, found))

    def _take_fresh(self, fresh: dict[tuple[int, int], Fresh | None]) -> None:
        """Take in under which noise each measurement is drawn, and what it is combined with (soundness.md 3.13)."""
        for (number, index), one in fresh.items():
            if one is None:
                continue
            rows = self.rows[number]
            self.fresh[number, index] = one
            if rows.plan.counted != index and rows.plan.selection != index:
                rows.plan = rows.plan.given(index, one.law)

    @property
    def said_of_price(self) -> str | None:
        """A sentence on what was charged in addition to stored draws; None where nothing was."""
        return said_of_missing(list(self.fresh.values()))

    def _run_release(
        self, number: int, wanted: list[int], snapshot: Snapshot, salt: bytes
    ) -> list[tuple[int, Draw]]:
        """Ask the engine for the wanted measurements, add noise, and return them as draws to be stored."""
        rows, plan = self.rows[number], self.rows[number].plan
        if not wanted:
            return []
        if any(fan.intermediates for work in plan.works for fan in work.fans):
            self.check_growth(snapshot)
        relation = self._relation_key(number)
        if plan.selection in wanted:
            return self._run_selection(number, wanted, snapshot, _short_salt(salt, relation))
        exact = Exact()
        short = _short_salt(salt, relation)
        queries = list(plan.queries(tuple(wanted), _chosen_groups(rows)))
        drawn: list[tuple[int, Draw]] = []
        if plan.counted in wanted:
            assert plan.counted is not None
            # What counts people comes first: the others are asked of the groups that it shows, and no others
            self._ask(exact, rows, queries.pop(0), snapshot, short)
            keys = publish(exact, plan, self.noise, self.plan.privacy.minimum_units)
            payload = encode(keys)
            rows.groups, rows.measurements[plan.counted], rows.keyset = keys.groups, keys, _keyset_id(payload)
            law = plan.measures[plan.counted].law
            drawn.append((plan.counted, Draw(_keyset_keys(plan, relation), law, payload)))
        assert rows.groups is not None
        # before the engine is asked: how long it takes to draw says nothing of what is added to (soundness.md 2.3)
        noises: dict[int, Drawn] = {
            index: draw(plan, index, self._size(number, index), self.noise)
            for index in wanted
            if index != plan.counted
        }
        for query in queries:
            self._ask(exact, rows, query, snapshot, short)
        return [*drawn, *self._noised(number, exact, noises, self._asker(rows, snapshot, short))]

    def _asker(self, rows: ReleasedRows, snapshot: Snapshot, salt: str) -> AskPart:
        """Return what asks for the rows of a part of a group that were not read with all of them."""
        plan, chosen = rows.plan, _chosen_groups(rows)

        def ask_part(index: int, part: Part) -> Exact:
            found = Exact()
            self._ask(found, rows, plan.part_query(index, part, chosen), snapshot, salt)
            return found

        return ask_part

    def _noised(
        self, number: int, exact: Exact, noises: dict[int, Drawn], ask_part: AskPart
    ) -> Iterator[tuple[int, Draw]]:
        """Add noise to measurements, or choose, and yield them as draws to be stored."""
        rows, plan = self.rows[number], self.rows[number].plan
        relation = self._relation_key(number)
        assert rows.groups is not None
        for index, noise in noises.items():
            released = privatise(exact, plan, index, _drawn(rows, index), noise, ask_part)
            measures = plan.measure_keys(index, relation, rows.keyset)
            drawn = Draw(measures, plan.measures[index].law, encode(released))
            fresh = self.fresh.get((number, index))
            beside = fresh.beside if fresh is not None else ()
            together = [tuple(drawn if one is None else one for one in draws) for draws in beside]
            rows.take_own(index, own_of(plan, measures, together or [(drawn,)] * len(measures)))
            yield index, drawn

    def _run_selection(
        self, number: int, wanted: list[int], snapshot: Snapshot, salt: str
    ) -> list[tuple[int, Draw]]:
        """Choose a release's groups, then measure what is wanted of them: two queries of one snapshot and one charge.

        All bits are drawn before either (soundness.md 1.23).
        """
        rows, plan = self.rows[number], self.rows[number].plan
        relation, chosen = self._relation_key(number), plan.selection
        assert chosen is not None
        assert plan.top is not None
        candidates = planned_groups(plan)
        size = min(plan.top.count, candidates.size)
        bits = draw_picks(plan, candidates.size, self.noise)
        noises = {index: draw(plan, index, size, self.noise) for index in wanted if index != chosen}
        exact = Exact()
        self._ask_all(exact, rows, [chosen], snapshot, salt)
        keys = pick_groups(exact, plan, candidates, bits)
        stored = Draw(_keyset_keys(plan, relation), plan.measures[chosen].law, encode(keys))
        rows.take_keys(stored)
        exact = Exact()
        self._ask_all(exact, rows, list(noises), snapshot, salt)
        return [(chosen, stored), *self._noised(number, exact, noises, self._asker(rows, snapshot, salt))]

    def _ask_all(
        self, exact: Exact, rows: ReleasedRows, wanted: Sequence[int], snapshot: Snapshot, salt: str
    ) -> None:
        """Ask for some measurements of a release, of the groups that are chosen where they are."""
        for query in rows.plan.queries(tuple(wanted), _chosen_groups(rows)):
            self._ask(exact, rows, query, snapshot, salt)

    def check_growth(self, snapshot: Snapshot) -> None:
        """Count the public rows that one person's are joined with (law L10), as far as they are known yet.

        Raises:
            Refusal: PV201 where one person's rows could become too many; nothing but public rows decides it.
        """

        def size(work: Work) -> int:
            most = work.most
            for fan in work.fans:
                if all(one.intermediate < len(self.intermediates) for one in fan.intermediates):
                    parameters = [self._parameter(one) for one in fan.intermediates]
                    found = [row[0] for chunk in snapshot.run(fan.sql, parameters) for row in chunk]
                    most *= max(1, *found)
            return most

        check_grown([rows.plan for rows in self.rows], size)

    def _parameter(self, intermediate: IntermediateValue | IntermediateColumn) -> object:
        """Return what travels to the engine: an intermediate result's one value, or a column of its rows as a list."""
        value = self.intermediates[intermediate.intermediate]
        if isinstance(intermediate, IntermediateValue):
            return value
        assert isinstance(value, IntermediateRows)
        return value.columns[intermediate.index]

    def _hold_key(self, intermediate: int, key: frozenset[int]) -> None:
        """Hold that no two rows of an intermediate result share a key of it: what is verified rests on it."""
        rows = self.intermediates[intermediate]
        if not isinstance(rows, IntermediateRows):
            return
        count = len(rows.columns[0]) if rows.columns else 0
        found = set(zip(*(rows.columns[index] for index in sorted(key)), strict=True)) if key else {()}
        if count > len(found):
            raise EngineFailure("run: two rows of an intermediate result have one key")

    def _ask(
        self, exact: Exact, rows: ReleasedRows, query: BackendQuery, snapshot: Snapshot, salt: str
    ) -> None:
        """Run one backend query and take its exact integers in. Raises Unverified."""
        from .verifying import Asked, released_keys

        plan, keys = rows.plan, rows.plan.release.keys
        for number, unique in released_keys(plan).items():
            self._hold_key(number, unique)
        if query.sql not in self.verified:  # it was printed from what is released meanwhile
            number = next(number for number, one in enumerate(self.rows) if one is rows)
            self._require({number: Asked(plan, query.measurements, (query,))})
        parameters: list[object] = [salt] if query.salted else []
        parameters += [self._parameter(intermediate) for intermediate in query.intermediates]
        if query.of_shown:
            assert rows.groups is not None
            parameters += listed(rows.groups, [key.type for key in keys])
        columns: list[list[Any]] = []
        for chunk in snapshot.run(query.sql, parameters, is_direct=query.is_direct):
            columns = columns or [[] for _ in chunk[0]]
            for place, column in enumerate(columns):
                column += [row[place] for row in chunk]
        places = [(v, i) for v in query.measurements for i in range(plan.measurements[v].size)]
        columns = columns or [[] for _ in range(len(keys) + (4 if query.is_window else len(places)))]
        size = len(columns[0])
        for place, key in enumerate(keys):
            change = canonical(key.type)
            if change is not None:
                columns[place] = [change(value) for value in columns[place]]
        if query.is_window:
            (number,) = query.measurements
            exact.add_windows(number, columns[: len(keys)], columns[len(keys) :], size)
            return
        values = dict(zip(places, columns[len(keys) :], strict=True))
        exact.add(columns[: len(keys)], values, size)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a statement wants drawn: a claim for each of some measurements of its plan (`places`)."""

    runner: PlanRunner
    claims: tuple[MeasurementClaim, ...]
    places: list[Place]

    def of(self, reservation: Reservation, start: int) -> Reservation:
        """Return its part of a reservation; `start`: the number of its first claim among all of the reservation."""
        part = slice(start, start + len(self.claims))
        fresh = reservation.fresh[part]
        paid = zip(self.claims, fresh, strict=True)
        charge = charge_of((of.slices, one.charge) for of, one in paid if one is not None)
        return Reservation(
            reservation.entries[part], reservation.found[part], charge, reservation.epoch, fresh
        )

    @property
    def missing(self) -> dict[Place, tuple[bytes, ...]]:
        """The measurements that are to be drawn, as far as it was looked up, each with its store keys."""
        rows = self.runner.rows
        return {
            (number, index): claim.measures
            for (number, index), claim in zip(self.places, self.claims, strict=True)
            if index not in rows[number].measurements
        }

    def tried(self, attempt: int) -> Wanted:
        """Return it as it is claimed at that attempt: after several overtaken ones, at the price that was found.

        Raises Overtaken: others have stored draws since this statement looked, so that no more than the least possible
        loss is left to draw. Looked up again, it is answered from the store.
        """
        if attempt < _MOST_OVERTAKEN:
            if any(one.is_told for one in self.claims):
                raise Overtaken
            return self
        known = (None if one.known is None else replace(one.known, seen=()) for one in self.claims)
        claims = (replace(one, known=part) for one, part in zip(self.claims, known, strict=True))
        return replace(self, claims=tuple(claims))

    def proved(self, by: Certified) -> Wanted:
        """Return it with the certificate of what is to be drawn."""
        missing = self.missing
        claims = (
            replace(claim, certificate=by.stored) if place in missing else claim
            for claim, place in zip(self.claims, self.places, strict=True)
        )
        return replace(self, claims=tuple(claims))


def carry_out(
    wanted: Sequence[Wanted], snapshot: Snapshot, epoch_secret: Callable[[int], bytes]
) -> list[Charge]:
    """Verify, reserve, run, noise and store what statements want, all together or nothing; return their charges.

    One after the other: what one draws may answer the next. They share one store, analyst, cost, verifier and `hold`.
    Raises Unverified.
    """
    first = wanted[0].runner
    for one in wanted:
        one.runner.check_growth(snapshot)  # of public rows: a refusal here is free
    wanted = _certified(wanted, snapshot)
    claims = tuple(claim for one in wanted for claim in one.claims)
    whole = Claim(first.analyst, first.statement, claims, first.reuse)
    charges, drawn = [], list[Draw]()
    with first.reserved(whole) as reservation:  # durable: private rows may be asked for (law L5)
        if any(found.epoch != reservation.epoch for one in wanted for found in one.runner.finer.values()):
            raise EngineFailure("the epoch was advanced while this statement began")
        salt, start = epoch_secret(reservation.epoch), 0
        for one in wanted:
            part, start = one.of(reservation, start), start + len(one.claims)
            draws = one.runner.draw_owed(part, one, snapshot, salt)
            if one.runner.pending is not None:
                groupings = (
                    c.grouping for c, e in zip(one.claims, part.entries, strict=True) if e is not None
                )
                for entry, draw_, grouping in zip(part.to_draw, draws, groupings, strict=True):
                    one.runner.pending.add(entry, draw_, grouping)
            drawn += draws
            charges.append(part.charge)
        if drawn:
            first.hold()
        # Before anybody sees it: whoever asks again gets what is stored (law L7).
        try:
            first.store.commit(reservation, drawn)
        except (LedgerAway, Stopped):
            first.cost.is_stored = None  # its answer did not come
            raise
        first.cost.is_stored = True
    for one in wanted:
        one.runner.take_estimates()
    return charges


def _certified(wanted: Sequence[Wanted], snapshot: Snapshot) -> list[Wanted]:
    """Verify what statements want, and return it with its certificates. Raises Unverified."""
    verifier = wanted[0].runner.verifier
    assert verifier is not None, "who asks is verified"
    facts = verifier().facts(snapshot)
    return [one.proved(one.runner.verify(one.missing, facts)) for one in wanted]


def _is_no_wider(found: ReleasedMeasurement, own: ReleasedMeasurement) -> bool:
    return all(one.spread <= other.spread for one, other in zip(found.laws, own.laws, strict=True))


def _short_salt(secret: bytes, relation: bytes) -> str:
    """Return a relation's bounding salt: 48 bits, so that salt, unit and key mostly fit one block of md5.

    It spreads what bounding leaves out over the groups; privacy does not rest on it (soundness.md 1.9).
    """
    return hmac.new(secret, relation, hashlib.sha256).hexdigest()[:12]


def _known_rows(plan: ReleasePlan) -> ReleasedRows:
    """Return what the plan alone says of a release: declared groups, and all of a statically empty one."""
    rows = ReleasedRows(plan, _declared_groups(plan))
    if plan.is_empty:
        rows.groups = rows.groups or Groups(tuple([] for _ in plan.release.keys), 0)
        for index, measurement in enumerate(plan.measurements):
            values = tuple(
                integers([measurement.empty_value] * rows.groups.size) for _ in range(measurement.size)
            )
            rows.measurements[index] = ReleasedMeasurement(values, None, ())
    return rows


def _declared_groups(plan: ReleasePlan) -> Groups | None:
    """Return the groups that are answered, where they are known beforehand."""
    return None if plan.keyed_by is not None else planned_groups(plan)


def _drawn(rows: ReleasedRows, index: int) -> Groups:
    """Return the groups that a measurement is drawn over: of counts and sums those of other values too."""
    assert rows.groups is not None
    return completed(rows.plan, index) or rows.groups


def _chosen_groups(rows: ReleasedRows) -> tuple[tuple[Scalar, ...], ...] | None:
    """Return the groups that were chosen, whose rows alone are asked for; None: nothing chooses, or not yet."""
    if rows.plan.selection is None or rows.groups is None:
        return None
    return tuple(rows.groups.tuples())


def _keyset_id(payload: bytes) -> bytes:
    """Return what the measures of a thresholded release are keyed by: the very groups that were published."""
    return hashlib.sha256(payload).digest()


def _keyset_keys(plan: ReleasePlan, relation: bytes) -> tuple[bytes, ...]:
    """Return what the groups of a release are stored under, where they are found or chosen."""
    if plan.selection is not None:
        return plan.measure_keys(plan.selection, relation, b"chosen groups")
    return (hashlib.sha256(relation + b"published keys").digest(),)


Own = tuple[ReleasedMeasurement, tuple[Told, ...]]
"""What a measurement's own draws say, and where these are running sums, what each coordinate is told by."""


def own_of(plan: ReleasePlan, measures: Sequence[bytes], draws: Sequence[Together]) -> Own:
    """Return what the draws that the store chose for a measurement say: see `assemble`. Of running sums by square root
    (soundness.md 1.44) what they tell of its listed groups."""
    if not isinstance(draws[0][0].law, SquareRoot):
        return assemble(measures, draws, plan.axes), ()
    assert plan.axes is not None
    (axis,) = plan.axes
    each = list[dict[DrawId, tuple[Array, SquareRoot]]]()
    for measure, together in zip(measures, draws, strict=True):
        each.append({})
        for one in together:
            at = one.measures.index(measure)
            assert isinstance(one.law, SquareRoot), "its store keys say how it is drawn"
            each[-1][id_of(one), at] = decode(one.payload, one.law).values[at], one.law
    measurement, told = told_by_root(each, len(axis.values), axis.believed)
    return replace(measurement, draws=tuple(draws)), told


def assemble(
    measures: Sequence[bytes], draws: Sequence[Together], axes: Sequence[Axis] | None
) -> ReleasedMeasurement:
    """Return the measurement of `measures`, each from the draws that the store chose for it: a single draw as it is,
    of several the mean of least variance (soundness.md 3.13). `axes`: the plan's, to whose listed groups it is cut.
    """
    each = {id(one): one for together in draws for one in together}
    decoded = {number: _decoded(one, axes) for number, one in each.items()}
    values, laws, vectors = [], [], []
    for place, (measure, together) in enumerate(zip(measures, draws, strict=True)):
        parts = [(decoded[id(one)], one.measures.index(measure)) for one in together]
        one, at = parts[0]
        value, law, vector = one.values[at], one.laws[at], one.vectors[at]
        if len(parts) > 1:
            law, vector, weights = _mixed(
                together, [part.laws[at] for part, at in parts], place, len(measures)
            )
            value = mean_of([part.values[at] for part, at in parts], weights)
        values.append(value)
        laws.append(law)
        vectors.append(vector)
    groups = next(iter(decoded.values())).groups
    return ReleasedMeasurement(tuple(values), groups, tuple(laws), tuple(vectors), tuple(draws))


def _decoded(stored: Draw, axes: Sequence[Axis] | None) -> ReleasedMeasurement:
    one = decode(stored.payload, stored.law)
    values = tuple(listed_part(column, axes) for column in one.values)
    return replace(one, values=values, vectors=vectors_of(stored.law, stored.measures, stored.payload))


def _mixed(
    together: Together, laws: Sequence[Law], place: int, count: int
) -> tuple[Law, Vector | None, tuple[Fraction, ...]]:
    """Return the law of a mean of draws, its vector where coordinates are dependent, and the draws' weights: vectors
    are combined whole, with one weight for all coordinates. `place`: the number of the measure among `count`.
    """
    whole = count > 1 and all(isinstance(law, Coordinate) for law in laws)
    each = [one.law for one in together] if whole else laws
    weights = best_weights(each)
    mean = WeightedSum.of(zip(each, weights, strict=True), Fraction(1, 2))
    if not whole:
        return mean, None, weights
    said = hashlib.sha256()
    for one in together:
        said.update(hashlib.sha256(b"".join(one.measures) + one.payload).digest())
    return mean.at(place), Vector(said.digest(), mean, place), weights


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


def _note(plan: ReleasePlan, index: int) -> str:
    one, measurement = plan.measures[index], plan.measurements[index]
    what = measurement.kind if not measurement.values else f"{measurement.kind} of an expression"
    sensitivity, scale = (
        Fraction(size) / measurement.claim_unit for size in (measurement.sensitivity, one.scale)
    )
    if plan.is_zcdp and one.choice is None and index != plan.selection:
        squared = Fraction(one.squared_sensitivity, measurement.claim_unit**2)
        return f"{plan.release.rows.name}: {what}, squared sensitivity {squared}, sigma {scale}"
    return f"{plan.release.rows.name}: {what}, sensitivity {sensitivity}, scale {scale}"


def check_intermediate(rows: Sequence[object]) -> None:
    """Refuse rows of a subquery that are too many to go down again. Raises Refusal (54001)."""
    if len(rows) > MAX_INTERMEDIATE_ROWS:
        raise Refusal(
            f"a subquery beside private rows has more than {MAX_INTERMEDIATE_ROWS} rows", sqlstate="54001",
            hint="narrow it with WHERE or HAVING",
        )  # fmt: skip


def carried(value: object, type_: SqlType | None = None) -> object:
    """Return an intermediate result's value as it travels: integers of a table as 64 bits, numbers as doubles,
    moments as text.

    NaN and infinities become NULL (soundness.md 1.14(2)). `type_` None: a single value, whose numbers are doubles.
    """
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, Decimal, float)):
        if type_ is not None and type_.is_integer:
            return min(max(int(value), -(2**63)), 2**63 - 1)
        number = float(value)
        return number if math.isfinite(number) else None
    return str(value) if type_ is not None else value
