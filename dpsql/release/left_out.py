"""How many rows people have, as the owner once measured it for a policy's `max_rows`, and what that bound leaves out.

People are counted by where their number of rows stands between bounds: the declared one, and where many people have far
more, another that few exceed. Between two of them a person counts as their place says: so much at the lower one, the
rest at the upper one. What is linear in between, as rows beyond a bound are, is then a weighted sum of released numbers
(soundness.md 3.18).

House rules:

1. What is said depends on stored noisy numbers, the policy and the schema alone. Nothing is charged or asked here.
2. It is found by the table, the way to its owner and the bound: other declarations do not matter. One of an
   earlier epoch is said to be of before the data changed.
3. It is told beside an answer, and widens error bars. It never goes into a number, a plan or a charge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ..budget import BudgetStore, DatedDraw
from ..mechanisms import Law, half_width_of
from ..plan.dialects.quote import identifier
from ..plan.planner import Plan, PrivacyParameters, plan
from ..policy import Policy
from ..policy.measured import path_to_owner
from ..policy.model import Neighbours
from ..relation.catalog import Catalog
from ..relation.map_tables import all_grounds
from ..sql.bind_select import bind
from ..sql.scope import BindingContext
from ..sql.statement import AdmittedQuery, parse_statement
from .released import decode

__all__ = [
    "FEW",
    "TAIL",
    "Excess",
    "LeftOut",
    "counts_sql",
    "find_left_out",
    "percent",
    "planned",
    "quoted",
    "rows_each",
    "rungs_for",
]

_LADDERS = ((1,), (1, 5), (1, 25))
"""The bounds between which people are counted, as multiples of the one that is measured."""
TAIL = 2
"""Of the few people beyond the last bound v it is taken that they have on average at most so many times v rows more."""
FEW = Fraction(1, 20)
"""The share of people that are few: where more are beyond, nothing is taken of what they have."""
_BETA = Fraction(1, 20)

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
        return Fraction(total) / _unit(self.rungs)

    def _noises(self, weights: dict[_Place, Fraction]) -> tuple[tuple[Law, Fraction], ...]:
        return tuple((self.law, weight / _unit(self.rungs)) for weight in weights.values() if weight)

    def _half(self, weights: dict[_Place, Fraction], beta: Fraction) -> Fraction:
        return half_width_of(self._noises(weights), beta)

    def _bar(self, weights: dict[_Place, Fraction], beta: Fraction) -> tuple[Fraction, Fraction]:
        number, half = self._sum(weights), self._half(weights, beta)
        return max(Fraction(0), number - half), max(Fraction(0), number + half)


def rungs_for(max_rows: int, few: int) -> tuple[int, ...]:
    """Return the bounds to count people between, where few are said to have more rows than `few`."""
    ladders = [tuple(max_rows * step for step in ladder) for ladder in _LADDERS]
    return next((rungs for rungs in ladders if rungs[-1] >= few), ladders[-1])


def _unit(rungs: Sequence[int]) -> int:
    """Return what one person weighs: the number of steps between two rungs, all whole."""
    return math.lcm(*(high - low for low, high in zip((0, *rungs), rungs, strict=False)))


def planned(sql: str, catalog: Catalog, policy: Policy, epsilon: Fraction) -> Plan:
    """Return the plan of a statement that is made here. Raises Refusal."""
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    privacy = PrivacyParameters(
        epsilon,
        Fraction(0),
        1,
        policy.privacy.neighbours is Neighbours.REPLACE_ONE,
        None,
        policy.privacy.together,
        policy.privacy.accounting,
    )
    return plan(bind(query, BindingContext(catalog, query.text, (), 0, {})), catalog, privacy)


def rows_each(policy: Policy, name: str, of: str | None = None) -> str:
    """Return SQL for a row n for each person who has rows of a table: how many, or in how many groups of a column."""
    path = path_to_owner(policy, name)
    text = f"{quoted(path[0].name)} AS t0"
    for number, table in enumerate(path[1:], 1):
        unit = path[number - 1].unit
        assert unit is not None
        assert unit.references is not None
        pairs = zip(unit.references[1], unit.columns, strict=True)
        on = " AND ".join(
            f"t{number}.{identifier(key)} = t{number - 1}.{identifier(own)}" for key, own in pairs
        )
        text += f" JOIN {quoted(table.name)} AS t{number} ON {on}"
    owner = path[-1].unit
    assert owner is not None
    by = ", ".join(f"t{len(path) - 1}.{identifier(column)}" for column in owner.columns)
    key = "" if of is None else f"t0.{identifier(of)}"
    groups = f"COUNT(DISTINCT {key}) + MAX(CASE WHEN {key} IS NULL THEN 1 ELSE 0 END)"
    return f"(SELECT {groups if key else 'COUNT(*)'} AS n FROM {text} GROUP BY {by}) AS p"


def counts_sql(policy: Policy, name: str, rungs: Sequence[int], of: str | None = None) -> str:
    """Return the statement of the people of a table by where their rows, or groups, stand between rungs."""
    parts, places = "", ""
    for number, (low, high) in enumerate(zip((0, *rungs), rungs, strict=False)):
        steps = _unit(rungs) // (high - low)
        parts += f" WHEN n <= {high} THEN {number}"
        places += f" WHEN n <= {high} THEN GREATEST(LEAST(n, {high}) - {low}, 0) * {steps}"
    shown = f"CASE{parts} ELSE {len(rungs)} END AS part, CASE{places} ELSE {_unit(rungs)} END AS place"
    each = f"(SELECT {shown} FROM {rows_each(policy, name, of)}) AS q"
    return f"SELECT part, COUNT(*), SUM(place) FROM {each} GROUP BY part"


def find_left_out(
    store: BudgetStore, policy: Policy, catalog: Catalog, name: str, max_rows: int, of: str | None = None
) -> LeftOut | None:
    """Return what is stored of a table's people, the newest; None where it was never measured. Raises LedgerError.

    `policy`, `catalog`: those under which it is measured (`people_policy`). `of`: the column whose groups are counted.
    """
    newest: tuple[DatedDraw, tuple[int, ...], tuple[bytes, ...]] | None = None
    for ladder in _LADDERS:
        rungs = tuple(max_rows * step for step in ladder)
        keys = _keys(counts_sql(policy, name, rungs, of), _Under(catalog, policy))
        found = store.newest(keys)
        if found is not None and (newest is None or found.at > newest[0].at):
            newest = found, rungs, keys
    if newest is None:
        return None
    found, rungs, keys = newest
    values = decode(found.draw.payload, found.draw.law).values
    high, low = (tuple(map(int, values[found.draw.measures.index(key)])) for key in keys)
    return LeftOut(rungs, low, high, found.draw.law.at(0), found.at[:10], found.is_current)


@dataclass(frozen=True, slots=True)
class _Under:
    """A catalog and its policy, alike where plans rest on the same."""

    catalog: Catalog
    policy: Policy

    def __hash__(self) -> int:
        return hash(all_grounds(self.catalog))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Under) and all_grounds(other.catalog) == all_grounds(self.catalog)


@lru_cache(maxsize=256)
def _keys(sql: str, under: _Under) -> tuple[bytes, ...]:
    """Return what the two numbers of each part are stored under: at the upper rung, and at the lower one."""
    (release,) = planned(sql, under.catalog, under.policy, Fraction(1)).releases
    return release.measure_keys(0, release.salted(b""), b"")


def percent(share: float, *, up: bool = False, down: bool = False) -> str:
    """Return a share in percent, to two digits and a hundredth: `0.37 %`; `up`: no less than it is; `down`: no more."""
    size = 100 * share
    digits = min(2, max(0, 1 - math.floor(math.log10(size)))) if size else 0
    steps = size * 10**digits
    whole = math.ceil(steps - 1e-9) if up else math.floor(steps + 1e-9) if down else round(steps)
    text = f"{whole / 10**digits:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def quoted(name: str) -> str:
    """Return a table's name as SQL has it."""
    return ".".join(map(identifier, name.split(".")))
