"""How many rows people have, as the owner once measured it for a policy's `max_rows`, and what that bound leaves out.

People are counted by where their number of rows stands between bounds: the declared one, and where many people have far
more, another that few exceed. Between two of them a person counts as their place says: so much at the lower one, the
rest at the upper one. What is linear in between, as rows beyond a bound are, is then a weighted sum of released numbers
(soundness.md 3.18).

House rules:

1. What is said depends on stored noisy numbers, the policy and the schema alone. Nothing is charged or asked here.
2. It is found by the table, the way to its owner and the bound (`people_keys`): other declarations do not matter, and
   nothing is planned to find it. One of an earlier epoch is said to be of before the data changed.
3. It is told beside an answer, and widens error bars. It never goes into a number, a plan or a charge.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction

from ..budget import DatedDraw, LedgerStore
from ..cache import Cache
from ..mechanisms import Law, half_width_of
from ..policy import Policy
from ..policy.measured import path_to_owner
from ..records import dataclass
from ..relation.catalog import Catalog, norm_key
from ..relation.relations import all_grounds
from .released import decode

_LADDERS = ((1,), (1, 5), (1, 25))
"""The bounds between which people are counted, as multiples of the one that is measured."""
TAIL = 2
"""Of the few people beyond the last bound v it is taken that they have on average at most so many times v rows more."""
FEW = Fraction(1, 20)
"""The share of people that are few: where more are beyond, nothing is taken of what they have."""
_BETA = Fraction(1, 20)
_WIDEST = Fraction(1, 5)
"""Of all rows: where a bar of the share that is left out is wider to either side, nothing is said of it."""

_Place = tuple[int, bool]
"""A released number: of the people between which bounds, and whether what stands at the upper one of them."""


@dataclass(frozen=True, slots=True)
class Excess:
    """At least the rows that a bound leaves out, with noise on it: each law with its weight, all independent."""

    rows: Fraction
    noises: tuple[tuple[Law, Fraction], ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Noisy numbers of a table's people by how many rows they have, as they are stored.

    `rungs`: the bound that is measured, and perhaps a larger one. `low`, `high`: of the people up to each rung, and of
    those beyond all, how much of them stands at the rung below and at the one above; a person is one in both together,
    in the steps of the rungs. Those beyond have nothing below. `law`: of the noise on each.
    """

    rungs: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    law: Law
    measured: str
    is_current: bool

    @property
    def max_rows(self) -> int:
        """The bound."""
        return self.rungs[0]

    @property
    def people(self) -> int:
        """The people who have a row."""
        return max(0, round(self._sum(self._all)))

    @property
    def people_ends(self) -> tuple[int, int]:
        """The ends of an error bar of the people at 95 %."""
        number, half = self._sum(self._all), self._half(self._all, _BETA)
        return max(0, math.floor(number - half)), max(0, math.ceil(number + half))

    @property
    def above(self) -> int:
        """The people with more rows than the bound."""
        return round(self._sum(self._beyond(1)))

    @property
    def share(self) -> float | None:
        """The share of people with more rows than the bound; None where there are too few people to say."""
        low, high = self.share_ends
        return None if self.people == 0 else min(max(self.above / self.people, low), high)

    @property
    def share_ends(self) -> tuple[float, float]:
        """The ends of an error bar of it at 95 %: of those above and of the others one at 97.5 %, taken together."""
        others = {(0, False): Fraction(1), (0, True): Fraction(1)}
        part, rest = (self._bar(weights, _BETA / 2) for weights in (self._beyond(1), others))
        low = part[0] / max(Fraction(1), part[0] + rest[1])
        return float(low), float(part[1] / most) if (most := part[1] + rest[0]) else 1.0

    @property
    def kept(self) -> float | None:
        """The share of rows that count, where nobody has more than the last rung; None of too few people to say."""
        ends = (0, *self.rungs, self.rungs[-1])
        cut = {place: Fraction(max(0, ends[place[0] + place[1]] - self.max_rows)) for place in self._all}
        kept, most = self._sum(self._kept), max(Fraction(0), self._sum(cut))
        return None if kept <= 0 else float(kept / (kept + most))

    @property
    def kept_at_least(self) -> float:
        """The lower end of an error bar of it at 95 %; 0 where nothing is proved of what is left out."""
        excess = self.excess(self.max_rows)
        if excess is None:
            return 0.0
        most = max(Fraction(0), excess.rows + half_width_of(excess.noises, _BETA))
        low, _ = self._bar(self._kept, _BETA)  # of each the other end is not looked at
        return float(low / (low + most)) if low else 0.0

    @property
    def left(self) -> tuple[float, float] | None:
        """The share of all rows that are left out, and how far it may be off at 95 %; None: too few people to say.

        The number is as `kept` has it; its bar goes as far as what `TAIL` takes of those beyond the last rung.
        """
        most, kept = self.excess(self.max_rows), self._sum(self._kept)
        if most is None or kept <= 0:
            return None
        ends = (0, *self.rungs, self.rungs[-1])
        cut = {place: Fraction(max(0, ends[place[0] + place[1]] - self.max_rows)) for place in self._all}
        beyond = {**cut, (len(self.rungs), True): cut[len(self.rungs), True] + TAIL * self.rungs[-1]}
        share, _ = self._share_left(cut)
        half = max(end + half - share for end, half in map(self._share_left, (cut, beyond)))
        return (float(share), float(half)) if half <= _WIDEST else None

    def _share_left(self, cut: dict[_Place, Fraction]) -> tuple[Fraction, Fraction]:
        """Return the share of rows that are cut, by weights of the people at each place, and the half-width of its bar:
        with the share as it is found, cut rows are off from it by a weighted sum of the noises."""
        kept, lost = self._sum(self._kept), max(Fraction(0), self._sum(cut))
        share = lost / (kept + lost)
        off = {
            place: (1 - share) * weight - share * self._kept.get(place, Fraction(0))
            for place, weight in cut.items()
        }
        off |= {place: -share * weight for place, weight in self._kept.items() if place not in cut}
        half = self._half(off, _BETA) if any(off.values()) else Fraction(0)
        return share, half / (kept + lost)

    @property
    def when(self) -> str:
        """When it was measured, and that the data are others since, in words."""
        return _when(self.measured, self.is_current)

    def excess(self, bound: int) -> Excess | None:
        """Return the rows that this bound, or a larger one, leaves out: of each person's what is beyond it.

        It is no less than the truth, but for its noise, where `TAIL` is so of the people beyond the last rung. None:
        too many people are beyond it, or there are too few in all; or the bound is smaller.
        """
        if bound < self.max_rows:
            return None
        last = len(self.rungs)
        beyond = self._beyond(last)
        if self._sum(beyond) + self._half(beyond, _BETA) > FEW * self._sum(self._all):
            return None
        ends = (0, *self.rungs, self.rungs[-1])
        weights = {place: Fraction(max(0, ends[place[0] + place[1]] - bound)) for place in self._all}
        weights[last, True] += TAIL * self.rungs[-1]
        return Excess(self._sum(weights), self._noises(weights))

    # --- weighted sums of what was released -------------------------------------------------------------

    @property
    def _all(self) -> dict[_Place, Fraction]:
        return self._beyond(0)

    @property
    def _kept(self) -> dict[_Place, Fraction]:
        return {(0, True): Fraction(self.max_rows), **dict.fromkeys(self._beyond(1), Fraction(self.max_rows))}

    def _beyond(self, rung: int) -> dict[_Place, Fraction]:
        """Return the weights that count the people above a number of rungs."""
        inner = [(number, is_high) for number in range(rung, len(self.rungs)) for is_high in (False, True)]
        return dict.fromkeys((*inner, (len(self.rungs), True)), Fraction(1))

    def _sum(self, weights: dict[_Place, Fraction]) -> Fraction:
        values = ((self.high if is_high else self.low)[number] for number, is_high in weights)
        total = sum(weight * value for weight, value in zip(weights.values(), values, strict=True))
        return Fraction(total) / steps_between(self.rungs)

    def _noises(self, weights: dict[_Place, Fraction]) -> tuple[tuple[Law, Fraction], ...]:
        return tuple((self.law, weight / steps_between(self.rungs)) for weight in weights.values() if weight)

    def _half(self, weights: dict[_Place, Fraction], beta: Fraction) -> Fraction:
        return half_width_of(self._noises(weights), beta)

    def _bar(self, weights: dict[_Place, Fraction], beta: Fraction) -> tuple[Fraction, Fraction]:
        number, half = self._sum(weights), self._half(weights, beta)
        return max(Fraction(0), number - half), max(Fraction(0), number + half)


@dataclass(frozen=True, slots=True)
class LeftOutByNorms:
    """Noisy numbers of a table's rows that count: under norms, and under max_rows alone, as they are stored.

    `laws`: of the noise on each, which are independent.
    """

    kept: int
    all_rows: int
    laws: tuple[Law, Law]
    measured: str
    is_current: bool

    @property
    def left(self) -> tuple[float, float] | None:
        """The share of the rows that norms leave out of those that max_rows keeps, and the half width of its bar at
        95 %; None: too few rows to say.

        With s the share that is found, s·(all rows) - (all rows - kept) is off from 0 by the two noises alone, of
        weights 1 - s and 1.
        """
        if self.all_rows <= 0:
            return None
        share = Fraction(max(0, self.all_rows - self.kept), self.all_rows)
        noises = zip(self.laws, (Fraction(1), 1 - share), strict=True)
        half = half_width_of([(law, weight) for law, weight in noises if weight], _BETA) / self.all_rows
        return (float(share), float(half)) if half <= _WIDEST else None

    @property
    def when(self) -> str:
        """When it was measured, and that the data are others since, in words."""
        return _when(self.measured, self.is_current)


def norms_key(policy: Policy, catalog: Catalog, name: str, norms: tuple[tuple[str, int], ...]) -> bytes:
    """Return what the rows of a table that count under norms are stored under; of none, under max_rows alone.

    A function of what a policy and a schema say of the table, of the way to its owner and of the norms' columns, as
    `people_keys` is: `policy` is `norms_policy` of these.
    """
    tables = [policy.tables[table.name] for table in path_to_owner(policy, name)]
    way = [(table.name, table.unit, table.max_rows) for table in tables]
    asked = {norm_key(key)[1] for key, _ in norms}
    own = [column for column in tables[0].columns if column.name in asked]
    keys = [(column.name, column.bounds, column.values) for column in own]
    promise = policy.privacy.neighbours.value, policy.privacy.together
    said = repr(("rows under norms", way, promise, sorted(all_grounds(catalog)), norms, keys))
    return hashlib.sha256(said.encode()).digest()


def find_left_out_by_norms(store: LedgerStore, keys: Sequence[bytes]) -> LeftOutByNorms | None:
    """Return what is stored of a table's rows under norms, and under max_rows alone; None: one was never measured.

    `keys`: of the two, as `norms_key` has them. Raises LedgerError.
    """
    found = [store.newest([key]) for key in keys]
    kept, whole = found
    if kept is None or whole is None:
        return None
    rows, all_rows = (int(decode(one.draw.payload, one.draw.law).values[0][0]) for one in (kept, whole))
    laws = kept.draw.law.at(0), whole.draw.law.at(0)
    is_current = kept.is_current and whole.is_current
    return LeftOutByNorms(rows, all_rows, laws, min(kept.at, whole.at)[:10], is_current)


def rungs_for(max_rows: int, few: int) -> tuple[int, ...]:
    """Return the bounds to count people between, where few are said to have more rows than `few`."""
    ladders = [tuple(max_rows * step for step in ladder) for ladder in _LADDERS]
    return next((rungs for rungs in ladders if rungs[-1] >= few), ladders[-1])


def steps_between(rungs: Sequence[int]) -> int:
    """Return what one person weighs: the number of steps between two rungs, all whole."""
    return math.lcm(*(high - low for low, high in zip((0, *rungs), rungs, strict=False)))


def people_keys(
    policy: Policy, catalog: Catalog, name: str, rungs: Sequence[int], of: str | None = None
) -> tuple[bytes, bytes]:
    """Return what the two numbers of each part are stored under: at the upper rung, and at the lower one.

    A function of the table, the way to its owner, the rungs and what a policy and a schema say of the tables on that
    way; how the statement is printed that counts them is no part of it. As `find_left_out`.
    """
    asked = id(policy), id(catalog), name, tuple(rungs), of
    known = _keys.get(asked)
    if known is None or known[0] is not policy or known[1] is not catalog:
        known = policy, catalog, _people_keys(policy, catalog, name, rungs, of)
        _keys.put(asked, known)
    return known[2]


_keys: Cache[tuple[Policy, Catalog, tuple[bytes, bytes]]] = Cache(64)
"""What people are counted under, by the numbers of policy and catalog, which are kept with it: each answer asks."""


def _people_keys(
    policy: Policy, catalog: Catalog, name: str, rungs: Sequence[int], of: str | None
) -> tuple[bytes, bytes]:
    way = [(table.name, table.unit) for table in path_to_owner(policy, name)]
    promise = policy.privacy.neighbours.value, policy.privacy.together
    said = repr(("people between rungs", way, promise, sorted(all_grounds(catalog)), tuple(rungs), of))
    upper, lower = (hashlib.sha256(f"{said} {place}".encode()).digest() for place in ("upper", "lower"))
    return upper, lower


def find_left_out(
    store: LedgerStore, policy: Policy, catalog: Catalog, name: str, max_rows: int, of: str | None = None
) -> LeftOut | None:
    """Return what is stored of a table's people, the newest; None where it was never measured. Raises LedgerError.

    `policy`, `catalog`: those under which it is measured (`people_policy`). `of`: the column whose groups are counted.
    """
    newest: tuple[DatedDraw, tuple[int, ...], tuple[bytes, bytes]] | None = None
    for ladder in _LADDERS:
        rungs = tuple(max_rows * step for step in ladder)
        keys = people_keys(policy, catalog, name, rungs, of)
        found = store.newest(keys)
        if found is not None and (newest is None or found.at > newest[0].at):
            newest = found, rungs, keys
    if newest is None:
        return None
    found, rungs, keys = newest
    values = decode(found.draw.payload, found.draw.law).values
    high, low = (tuple(map(int, values[found.draw.measures.index(key)])) for key in keys)
    return LeftOut(rungs, low, high, found.draw.law.at(0), found.at[:10], found.is_current)


def _when(day: str, is_current: bool) -> str:
    return f"(measured {day}{'' if is_current else '; the data have changed since'})"


def about(share: float | None) -> str:
    """Return a share as it is said: None is too few people to say."""
    return "too few to say" if share is None else f"about {percent(share)}"


def left_text(left: tuple[float, float] | None, what: str = "rows") -> str:
    """Return the share of rows that a bound leaves out as it is said: with its bar, or with its upper end where the bar
    begins below 0."""
    if left is None:
        return f"how much of all {what} it leaves out: too few people to say"
    share, half = left
    if half >= share:
        return f"it leaves out at most {percent(share + half, up=True)} of all {what}"
    digits = min(2, max(0, 1 - math.floor(math.log10(100 * half))))
    return f"it leaves out {100 * share:.{digits}f} ± {100 * half:.{digits}f} % of all {what}"


def percent(share: float, *, up: bool = False, down: bool = False) -> str:
    """Return a share in percent, to two digits and a hundredth: `0.37 %`; `up`: no less than it is; `down`: no more."""
    size = 100 * share
    digits = min(2, max(0, 1 - math.floor(math.log10(size)))) if size else 0
    steps = size * 10**digits
    whole = math.ceil(steps - 1e-9) if up else math.floor(steps + 1e-9) if down else round(steps)
    text = f"{whole / 10**digits:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"
