"""How many people have more rows than a policy's `max_rows`: what the owner once measured, and what is said of it.

House rules (soundness.md 3.10):

1. What is said depends on stored noisy numbers, the policy and the schema alone. Nothing is charged or asked here.
2. It is found by the table, the way to its owner and the bound: other declarations do not matter. One of an
   earlier epoch is said to be of before the data changed.
3. It is told beside an answer, and never goes into a number, an error bar or a plan.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ..budget import BudgetStore
from ..mechanisms import Law
from ..plan.dialects.quote import identifier
from ..plan.measures.formulas import Linear
from ..plan.planner import Plan, PrivacyParameters, plan
from ..policy import Policy
from ..policy.measured import path_to_owner
from ..policy.model import Neighbours
from ..relation.catalog import Catalog
from ..sql.bind_select import bind
from ..sql.scope import BindingContext
from ..sql.statement import AdmittedQuery, parse_statement
from .released import decode

__all__ = [
    "PeopleAbove",
    "above_sql",
    "find_people_above",
    "more_rows",
    "percent",
    "planned",
    "quoted",
    "rows_each",
]

_BETA = Fraction(1, 40)
"""Each of two bars misses so often: both together 1 time in 20 at most."""


@dataclass(frozen=True, slots=True)
class PeopleAbove:
    """Noisy numbers of people with more rows of a table than a bound, and with at most so many, as they are stored."""

    max_rows: int
    above: int
    others: int
    law: Law
    measured: str
    is_current: bool

    @property
    def people(self) -> int:
        """The people who have a row."""
        return max(0, self.above + self.others)

    @property
    def people_ends(self) -> tuple[int, int]:
        """The ends of an error bar of the people at 95 %: of each number one at 97.5 %, taken together."""
        half = 2 * self.law.half_width(_BETA)
        return max(0, self.above + self.others - half), max(0, self.above + self.others + half)

    @property
    def share(self) -> float | None:
        """The share of those above; None where there are too few people to say."""
        low, high = self.share_ends
        return None if self.people == 0 else min(max(self.above / self.people, low), high)

    @property
    def share_ends(self) -> tuple[float, float]:
        """The ends of an error bar of the share at 95 %, from those of the two numbers."""
        half = self.law.half_width(_BETA)
        least, most = max(0, self.above - half), max(0, self.above + half)
        low = least / max(1, least + max(0, self.others + half))
        return low, most / most_of if (most_of := most + max(0, self.others - half)) else 1.0


MoreRows = Callable[[str, int], str]
"""Says of a table and the bound on a person's rows how many people have more; empty where nothing is to be said."""


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
    )
    return plan(bind(query, BindingContext(catalog, query.text, (), 0, {})), catalog, privacy)


def rows_each(policy: Policy, name: str) -> str:
    """Return SQL for a row n for each person who has rows of a table: how many they are."""
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
    return f"(SELECT COUNT(*) AS n FROM {text} GROUP BY {by}) AS p"


def above_sql(policy: Policy, name: str, max_rows: int) -> str:
    """Return the statement of two numbers: people with more rows than `max_rows`, and the others."""
    counts = ", ".join(f"COUNT(*) FILTER (WHERE n {sign} {max_rows})" for sign in (">", "<="))
    return f"SELECT {counts} FROM {rows_each(policy, name)}"


def find_people_above(
    store: BudgetStore, policy: Policy, catalog: Catalog, name: str, max_rows: int
) -> PeopleAbove | None:
    """Return what is stored of a table's people, the newest; None where it was never measured. Raises LedgerError.

    `policy`, `catalog`: those under which it is measured (`people_policy`).
    """
    keys = _keys(above_sql(policy, name, max_rows), _Under(catalog, policy))
    found = store.newest(keys)
    if found is None:
        return None
    values = decode(found.draw.payload, found.draw.law).values
    above, others = (int(values[found.draw.measures.index(key)][0]) for key in keys)
    return PeopleAbove(max_rows, above, others, found.draw.law, found.at[:10], found.is_current)


@dataclass(frozen=True, slots=True)
class _Under:
    """A catalog and its policy, alike where the fingerprints are."""

    catalog: Catalog
    policy: Policy

    def __hash__(self) -> int:
        return hash(self.catalog.fingerprint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Under) and other.catalog.fingerprint == self.catalog.fingerprint


@lru_cache(maxsize=256)
def _keys(sql: str, under: _Under) -> tuple[bytes, bytes]:
    """Return what the two numbers are stored under: those above, and the others."""
    (release,) = planned(sql, under.catalog, under.policy, Fraction(1)).releases
    keys = release.measure_keys(0, release.salted(b""), b"")
    first, second = (formula.terms[0][0] for formula in release.formulas if isinstance(formula, Linear))
    return keys[first], keys[second]


def more_rows(find: Callable[[str, int], PeopleAbove | None]) -> MoreRows:
    """Return what says how many people have more rows than count, as far as `find` knows."""

    def said(name: str, max_rows: int) -> str:
        found = find(name, max_rows)
        if found is None:
            command = f"dpsql bounds {shlex.quote(name)}"
            return f'how many people of "{name}" have more rows was never measured; its owner can: {command}'
        return f"{_share_text(found, name)} ({_dated(found)})"

    return said


def _share_text(found: PeopleAbove, name: str) -> str:
    if found.share is None:
        return f'people of "{name}" are too few to say how many have more rows'
    return f'about {percent(found.share)} of the people of "{name}" have more rows'


def _dated(found: PeopleAbove) -> str:
    since = "" if found.is_current else "; the data have changed since"
    return f"at most {percent(found.share_ends[1], up=True)}, measured {found.measured}{since}"


def percent(share: float, *, up: bool = False) -> str:
    """Return a share in percent, to two digits and a hundredth: `0.37 %`; `up`: no less than it is."""
    size = 100 * share
    digits = min(2, max(0, 1 - math.floor(math.log10(size)))) if size else 0
    steps = size * 10**digits
    text = f"{(math.ceil(steps - 1e-9) if up else round(steps)) / 10**digits:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def quoted(name: str) -> str:
    """Return a table's name as SQL has it."""
    return ".".join(map(identifier, name.split(".")))
