"""The audit: a policy's statements on made-up neighbours, with the SQL and the noise that are really used.

House rules:

1. Nothing of the owner's data is read, no ledger is touched: only the policy and the schema come in.
2. What is compared with the claim is a lower bound: an audit that passes proves nothing, one that fails is a bug.

What the printed SQL of a release gives without noise, and how far two databases are apart in it.

House rule: for made-up databases alone, those of the audit and of the tests. What a session asks goes into an `Exact`
(`release/run.py`), which nobody reads.

Of choices at several fractions it is the weights of the candidates: their claim is about these (soundness.md 1.21).

House rule, made-up values of what a statement draws first: always the same values for the same plan, so that neighbours
are compared under one of them.

The search of an owner's own policy: statements of every shape, on made-up neighbours (soundness.md 5.4).

House rules:

1. As for the audit: nothing of the owner's data is read, no ledger is touched, no noise is drawn.
2. A statement is asked as it was written, or counted as refused: nothing here chooses among them.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...backends import DuckDBBackend
from ...budget.slices import Steps
from ...errors import DpsqlError, EngineFailure, Refusal
from ...mechanisms import (
    ATTO,
    NANO,
    Box,
    FlipChoice,
    Noise,
    RankChoice,
    RankSplit,
    SampledNoise,
    Window,
    delta_of_rho,
)
from ...plan.dialects.quote import text
from ...plan.planner import Plan, PrivacyParameters, plan_text
from ...plan.privacy.rows import IntermediateColumn, selects_in
from ...plan.privacy.time import Clock
from ...plan.release_plan import ReleasePlan
from ...plan.views import build_catalog
from ...policy import Accounting, Neighbours, Policy
from ...policy.live_schema import LiveSchema
from ...policy.model import Time
from ...policy.periods import UNDATED, first_day, number_of, run_text
from ...records import dataclass
from ...relation.catalog import Catalog, Scalar, Table
from ...relation.expressions import IntermediateValue
from ...relation.types import Kind, SqlType
from ...release.facts import read_facts
from ...release.privatise import Exact, publish
from ...release.released import canonical, completed, declared_groups
from ...release.verifying import certificate_of, rule_against
from ..preview import sql_name
from ..settings import number_text
from .statements import statements
from .twins import CROWD, PATTERNS, Person, Twin, twin_of

if TYPE_CHECKING:
    from ...backends import Snapshot
    from ...plan.backend_sql.print_release import BackendQuery

# --- windows of choices by rank, and how far they are apart for two databases -------------------------------


Misses = tuple[tuple[int, int], ...]
"""The misses of the candidates in ascending order: (the first candidate after, the miss up to there)."""


class Weights(tuple[tuple[int, int], ...]):
    """The weights of a group's candidates, ascending: (candidate, weight); of all its rows, or it is no measure."""

    __slots__ = ()


def window_of(rows: Iterable[tuple[int, ...]]) -> Window:
    """Return a group's rows (candidate, less, weight, n) as a window."""
    window = Window()
    for place, less, weight, total in sorted(rows):
        assert all(type(value) is int for value in (place, less, weight, total)), "not an integer"
        window.candidates.append(place)
        window.less.append(less)
        window.weights.append(weight)
        window.total = total
    return window


def steps_of(choice: RankChoice | RankSplit | FlipChoice, window: Window) -> Misses:
    """Return the misses of all candidates, or their weights."""
    if isinstance(choice, FlipChoice):
        return Weights(zip(window.candidates, window.weights, strict=True))
    if isinstance(choice, RankSplit):
        assert sum(window.weights) == window.total, "too many rows for their weights to be read"
        return Weights(zip(window.candidates, window.weights, strict=True))
    counts, misses = choice.intervals(window)
    assert sum(counts) == choice.candidates
    assert all(count > 0 for count in counts)
    return tuple(zip(accumulate(counts), misses, strict=True))


def windows_of(
    choice: RankChoice | RankSplit | FlipChoice, rows: Iterable[tuple[Any, ...]], width: int
) -> dict[tuple[Any, ...], Misses]:
    """Return the misses of all candidates by group; `width`: how many keys a row begins with."""
    groups: dict[tuple[Any, ...], list[tuple[int, ...]]] = {}
    for row in rows:
        groups.setdefault(row[:width], []).append(row[width:])
    for found in groups.values():
        places = [row[0] for row in found]
        assert len(set(places)) == len(places), "a candidate came twice"
    return {key: steps_of(choice, window_of(found)) for key, found in groups.items()}


def moved(left: Misses, right: Misses) -> int:
    """Return the most that any candidate's miss changed; of weights the sum of all changes."""
    if isinstance(left, Weights):
        here, there = dict(left), dict(right)
        return sum(abs(here.get(place, 0) - there.get(place, 0)) for place in here.keys() | there.keys())
    most, i, j = 0, 0, 0
    while i < len(left) and j < len(right):
        most = max(most, abs(left[i][1] - right[j][1]))
        end = min(left[i][0], right[j][0])
        i, j = i + (left[i][0] == end), j + (right[j][0] == end)
    assert i == len(left)
    assert j == len(right)
    return most


# --- what the printed SQL of a release gives without noise, and how far two databases are apart in it -------


Key = tuple[Scalar, ...]
Groups = dict[Key, tuple[Any, ...]]
"""A measurement's exact integers by group; of a choice by rank the misses of all candidates."""

SALT = "00" * 32
"""The salt of bounding, always the same: databases that are compared leave out the same groups."""


def measure_release(
    release: ReleasePlan, snapshot: Snapshot, intermediates: Sequence[object] = ()
) -> dict[int, Groups]:
    """Return every measurement's integers, as the production path reads them; declared groups are filled up.

    Where keys are found, of all groups: which of them leave the engine is told by the people they keep (soundness.md
    1.7), and sums of groups that both of two databases show are held to the claim whichever these are. Of a group that
    leaves with the count of its people, the integers are those of that query.
    `intermediates`: by number, the value of an earlier intermediate result, or the columns of its rows. A release
    that is empty from its text alone asks the engine nothing: its measurements are empty here too.
    """
    wanted = tuple(range(len(release.measurements)))
    every = replace(release, counted=None).queries(wanted)
    leaving = [query for query in release.queries(wanted) if not (query.of_shown or query in every)]
    found, left = ({number: dict[Any, Any]() for number in wanted} for _ in range(2))
    for query in (*every, *leaving):
        _measure(left if query in leaving else found, release, query, snapshot, intermediates)
    found = {number: {**groups, **left[number]} for number, groups in found.items()}
    if release.groups is not None:
        found = {number: _filled(release, number, groups) for number, groups in found.items()}
    return found


def _measure(
    found: dict[int, Groups], release: ReleasePlan, query: BackendQuery, snapshot: Snapshot,
    intermediates: Sequence[object],
) -> None:  # fmt: skip
    """Add what a query returns."""
    width = len(release.release.keys)
    changes = [canonical(key.type) for key in release.release.keys]
    parameters: list[object] = [SALT] if query.salted else []
    parameters += [parameter_of(intermediates[value.intermediate], value) for value in query.intermediates]
    rows = (
        (*(v if c is None else c(v) for v, c in zip(row[:width], changes, strict=True)), *row[width:])
        for chunk in snapshot.run(query.sql, parameters)
        for row in chunk
    )
    if query.is_window:
        (number,) = query.measurements
        found[number] = windows_of(release.choices[number], rows, width)
    else:
        _take_in(found, release, query, rows)


def _take_in(
    found: dict[int, Groups], release: ReleasePlan, query: BackendQuery, rows: Iterable[tuple[Any, ...]]
) -> None:
    """Add the coordinates of a query's rows."""
    width = len(release.release.keys)
    for row in rows:
        key, start = row[:width], width
        for number in query.measurements:
            size = release.measurements[number].size
            assert key not in found[number], "a group came twice"
            values = row[start : start + size]
            assert all(type(value) is int for value in values), "an exact measure is not an integer"
            found[number][key] = values
            start += size
        assert start == len(row)


def distance(release: ReleasePlan, number: int, left: Groups, right: Groups) -> int:
    """Return what the claim bounds, summed over groups: |change| of all coordinates of one measurement, the norm of
    what is drawn together, of a choice the most that a score changes, up and down together; of several choices one
    after the other that for each of them."""
    empty = _empty(release, number)
    if number == release.selection:
        assert release.top is not None
        changes = [
            int(right.get(key, empty)[0] - left.get(key, empty)[0]) for key in left.keys() | right.keys()
        ]
        return release.top.count * (max(0, *changes, 0) - min(0, *changes, 0))
    total = 0
    for key in left.keys() | right.keys():
        if number in release.choices:
            total += moved(left.get(key, empty), right.get(key, empty))
            continue
        pairs = zip(left.get(key, empty), right.get(key, empty), strict=True)
        total += release.measurements[number].norm([a - b for a, b in pairs])
    return total


def parameter_of(intermediate: object, parameter: IntermediateValue | IntermediateColumn) -> object:
    """Return what a parameter stands for: an intermediate result's value, or a column of its rows."""
    if isinstance(parameter, IntermediateValue):
        return intermediate
    assert isinstance(intermediate, tuple)
    return intermediate[parameter.index]


def _filled(release: ReleasePlan, number: int, groups: Groups) -> Groups:
    assert release.groups is not None
    types = [key.type for key in release.release.keys]
    declared = (completed(release, number) or declared_groups(release.groups, types)).tuples()
    assert len(set(declared)) == len(declared), "a declared group is listed twice: it would be noised twice"
    return {key: groups.get(key, _empty(release, number)) for key in declared}


def _empty(release: ReleasePlan, number: int) -> tuple[Any, ...]:
    measurement = release.measurements[number]
    if number in release.choices:
        return steps_of(release.choices[number], Window())
    return (measurement.empty_value,) * measurement.size


def squared_distance(release: ReleasePlan, number: int, left: Groups, right: Groups) -> Fraction:
    """Return what the claim in rho bounds of one measurement that is no choice: Σ change² of all coordinates."""
    measurement, empty = release.measurements[number], _empty(release, number)
    return sum(
        (
            measurement.square(
                [a - b for a, b in zip(left.get(key, empty), right.get(key, empty), strict=True)]
            )
            for key in left.keys() | right.keys()
        ),
        Fraction(0),
    )


def drawn_scale(release: ReleasePlan, number: int) -> Fraction:
    """Return the scale of the noise that is really drawn: of the law, and of a choice what its weights decay by."""
    if number in release.choices or number == release.selection:
        return release.measures[number].scale
    return release.measures[number].law.scale


# --- made-up values of what a statement draws first ---------------------------------------------------------


def fixed_intermediates(plan: Plan) -> list[object]:
    """Return made-up values for all intermediate results of a plan: rows with repeated keys, unless the plan takes
    them to be unique."""
    uniques: dict[int, tuple[frozenset[int], ...]] = {}
    for release in plan.releases:
        for select in selects_in(release.release.rows):
            sources = (item.source for item in select.items)
            uniques |= {one.intermediate: one.keys for one in sources if one.intermediate is not None}
    found: list[object] = []
    for number, intermediate in enumerate(plan.intermediates):
        types = [column.type for column in intermediate.columns]
        if number in plan.tables:
            found.append(_made_up_rows(types, uniques.get(number, ())))
        else:
            found.append(
                _MADE_UP[types[0].kind][number % 3] if types[0].kind in _MADE_UP else _NUMBERS[number % 4]
            )
    return found


def _made_up_rows(types: Sequence[SqlType], keys: tuple[frozenset[int], ...]) -> tuple[list[object], ...]:
    """Return columns of rows; those of the first key hold every combination once, the others repeat."""
    pools = [_pool(type_) for type_ in types]
    if not keys:
        return tuple([pool[i // 2 % len(pool)] for i in range(8)] for pool in pools)
    key = sorted(keys[0])
    combinations = list(itertools.product(*(pools[index] for index in key)))[:9]
    columns = [[pool[i % len(pool)] for i in range(len(combinations))] for pool in pools]
    for place, index in enumerate(key):
        columns[index] = [combination[place] for combination in combinations]
    return tuple(columns)


def _pool(type_: SqlType) -> tuple[object, ...]:
    if type_.is_integer:
        return (1, 2, None, 7)
    return _MADE_UP.get(type_.kind, (2.5, 0.5, None, 1.0))


_NUMBERS = (2.5, -1.0, None, 0.0)
_MADE_UP: dict[Kind, tuple[object, ...]] = {
    Kind.TEXT: ("a", "b", None, "t"), Kind.BOOLEAN: (True, False, None),
    Kind.DATE: ("2020-06-15", "2020-01-01", None), Kind.TIMESTAMP: ("2020-02-01 00:00:00", "2020-01-01 00:00:00", None),
}  # fmt: skip


# --- what an attacker's hits and false alarms say of epsilon ------------------------------------------------


ERROR = 1e-6
"""How often a bound is wrong."""
_FALSE_ALARMS = 0.05
_ORDERS = [1 + 10 ** (step / 10) for step in range(-20, 21)]
_LIMITS = np.linspace(0.02, 0.98, 49)


@dataclass(frozen=True, slots=True)
class Attack:
    """The best test of which of two databases it was: a lower bound of epsilon, and the textbook's view of it.

    `found`: how often it is right, where it gives a false alarm 5 times in 100.
    """

    epsilon: float
    found: float


def attack(
    here: npt.NDArray[Any], there: npt.NDArray[Any], delta: float = 0.0, *, in_rho: bool = False
) -> Attack:
    """Return what half lines of a score find; `here` and `there` are of releases of one database each, shape (runs,).

    Larger scores speak for the first. `in_rho`: the loss is bounded in rho, and told as the epsilon of the pure draw
    that costs as much. The event is chosen on the first half of the draws and judged on the second.
    """
    half = len(here) // 2
    limits = np.unique(np.quantile(np.concatenate([here[:half], there[:half]]), _LIMITS))

    def bound(limit: float, part: slice) -> float:
        hits, alarms = int((here[part] >= limit).sum()), int((there[part] >= limit).sum())
        if in_rho:
            return math.sqrt(2 * least_rho(hits, alarms, len(here[part])))
        return lower_bound(hits, alarms, len(here[part]), delta)

    chosen = max(limits, key=lambda limit: bound(float(limit), slice(half)))
    strict = np.quantile(there[:half], 1 - _FALSE_ALARMS)
    return Attack(bound(float(chosen), slice(half, None)), _power(here[half:], there[half:], float(strict)))


def _power(here: npt.NDArray[Any], there: npt.NDArray[Any], limit: float) -> float:
    """Return the hits at 5 % false alarms: above the limit always, at it so often as it takes."""
    above, at = float((there > limit).mean()), float((there == limit).mean())
    share = min(1.0, max(0.0, (_FALSE_ALARMS - above) / at)) if at else 0.0
    return float((here > limit).mean()) + share * float((here == limit).mean())


def lower_bound(hits: int, alarms: int, runs: int, delta: float = 0.0) -> float:
    """Return a lower bound of epsilon from an event's counts on both sides; 0 where they say nothing."""
    low, high = at_least(hits, runs, ERROR / 2), at_most(alarms, runs, ERROR / 2)
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def least_rho(hits: int, alarms: int, runs: int) -> float:
    """Return a lower bound of rho from an event's counts on both sides; 0 where they say nothing.

    Whether the event is there is post-processing: in each order a its two sides are no further apart than a·rho.
    """
    p, q = at_least(hits, runs, ERROR / 2), at_most(alarms, runs, ERROR / 2)
    if not 0 < q < p < 1:
        return 0.0
    return max(float(_divergence(p, q, order)) / order for order in _ORDERS)


def _divergence(p: float, q: float, order: float) -> float:
    """Return the Rényi divergence of one biased coin from another."""
    heads = order * math.log(p) + (1 - order) * math.log(q)
    tails = order * math.log1p(-p) + (1 - order) * math.log1p(-q)
    return float(np.logaddexp(heads, tails)) / (order - 1)


def allowed(rho_atto: int, delta: float) -> float:
    """Return how often an attacker may be right at 5 % false alarms: by the hockey stick of rho."""
    known = (math.exp(e) * _FALSE_ALARMS + delta_of_rho(rho_atto, float(e)) for e in np.linspace(0, 6, 601))
    return min(1.0, min(known) + delta)


@lru_cache(2**14)  # a search asks for the same few counts of the same number of runs
def at_least(hits: int, runs: int, error: float = ERROR) -> float:
    """Return a lower bound of a probability that gave so many hits: the p with Pr[at least `hits`] = `error`."""
    return _solved(lambda p: _at_least_so_many(hits, runs, p), error) if hits else 0.0


def at_most(hits: int, runs: int, error: float = ERROR) -> float:
    """Return an upper bound of a probability that gave so many hits."""
    return 1.0 - at_least(runs - hits, runs, error)


def _solved(rising: Any, error: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) <= error else (low, middle)
    return low


def _at_least_so_many(hits: int, runs: int, p: float) -> float:
    """Return Pr[Binomial(runs, p) >= hits], for 1 <= hits: the regularised incomplete beta function I_p(a, b)."""
    a, b = float(hits), float(runs - hits + 1)
    if p <= 0 or p >= 1:
        return float(p >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(p) + b * math.log1p(-p)
    )
    if p < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, p) / a
    return 1.0 - front * _fraction(b, a, 1 - p) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz' method (DLMF 8.17.22)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d or tiny)
    value = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / ((1.0 + term * d) or tiny)
            c = (1.0 + term / c) or tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return value


# --- the audit ----------------------------------------------------------------------------------------------


EPSILON = Fraction(1)
"""What the statements are planned at: scales change no way through the code, and large losses are seen best."""
DELTA = Fraction(1, 1000)
"""The same for delta: large enough to be counted."""
RUNS = 200_000
"""Releases that are drawn of each of two databases."""
_MOST_DRAWS = 6_000_000
_FEWEST_RUNS = 20_000

Measures = list[dict[int, Groups]]
_Pair = tuple[Measures, Measures]


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """What the audit found of one statement; probabilities and epsilons as floats, for display.

    `in_rho`: all epsilons are those of pure draws that cost as much rho. `claimed`: its epsilon;
    `moved`: the most that the neighbours moved it by, of what is claimed, and `by` which of
    them. `epsilon`: a lower bound of the real one; `found`, `allowed`: how often an attacker is right who is wrong
    in 5 % of cases. `problems`: none where it passes.
    """

    sql: str
    claimed: float
    moved: str
    by: str
    epsilon: float
    found: float
    allowed: float
    problems: tuple[str, ...] = ()
    in_rho: bool = False


@dataclass(frozen=True, slots=True)
class Audit:
    """All statements of an audit."""

    findings: tuple[AuditFinding, ...]

    @property
    def has_passed(self) -> bool:
        """Whether nothing was found to be wrong."""
        return not any(finding.problems for finding in self.findings)

    def to_json(self) -> dict[str, object]:
        """Return the audit as plain dicts and lists, for `json.dumps`."""
        return {"passed": self.has_passed, "statements": [asdict(finding) for finding in self.findings]}


def run_audit(
    policy: Policy,
    live: LiveSchema,
    statements: Sequence[str] = (),
    *,
    noise: Noise | None = None,
    runs: int = RUNS,
) -> Audit:
    """Audit what the policy lets be asked of its tables; `statements`: these in place of the usual ones.

    Raises:
        PolicyError: policy and schema do not go together.
        Refusal: one of the given statements is refused, draws a subquery first, or chooses values or groups.
    """
    with twin_of(policy, live) as (twin, backend):
        with backend.snapshot() as snapshot:
            catalog = build_catalog(policy, snapshot.schema())
        plans = dict(_given(policy, catalog, statements) if statements else _usual(policy, catalog))
        found = {sql: _Compared(sql, planned) for sql, planned in plans.items()}
        together = _Together(policy)
        for by, left, right, number in pairs_over(policy, twin, backend, plans):
            losses = [one.compare(by, left[sql], right[sql], number) for sql, one in found.items()]
            together.take(by, number, sum(losses, Fraction(0)))
        findings = [one.finding(noise or SampledNoise(), runs) for one in found.values()]
        return Audit((*findings, *together.findings(list(plans.values()))))


# --- the statements ------------------------------------------------------------------------------------


def _given(policy: Policy, catalog: Catalog, statements: Sequence[str]) -> Iterator[tuple[str, Plan]]:
    for sql in statements:
        planned = plan_audited(policy, catalog, sql)
        if planned.intermediates:
            hint = "audit the subquery, and the statement with a constant in its place"
            raise _not_audited("draws a subquery first", hint)
        if any(release.choices for release in planned.releases):
            hint = "it draws noise: of MEDIAN, percentiles, MIN and MAX `dpsql explain` says what is claimed"
            raise _not_audited("chooses values by rank", hint)
        if any(release.selection is not None for release in planned.releases):
            hint = "it draws noise: audit the statement without its LIMIT"
            raise _not_audited("chooses groups before it measures them", hint)
        yield sql, planned


def _not_audited(what: str, hint: str) -> Refusal:
    return Refusal(f"the audit takes no statement that {what}", sqlstate="0A000", hint=hint)


def _usual(policy: Policy, catalog: Catalog) -> Iterator[tuple[str, Plan]]:
    """Yield what is asked of each table of people, as far as the policy lets it be asked."""
    for table in catalog.tables.values():
        for sql in _questions(policy, table) if table.unit is not None and not table.is_hidden else ():
            try:
                yield sql, plan_audited(policy, catalog, sql)
            except Refusal:
                continue


def _questions(policy: Policy, table: Table) -> Iterator[str]:
    name = sql_name(table.name)
    yield f"SELECT COUNT(*) FROM {name}"
    yield from _of_periods(policy, table)
    measured = [
        sql_name(c.name) for c in table.columns if c.type.is_number and c.bounds and not c.is_personal
    ]
    for column in measured:
        for function in ("SUM", "AVG", "VAR_POP"):
            yield f"SELECT {function}({column}) FROM {name}"
    if len(measured) > 1:
        yield f"SELECT CORR({measured[0]}, {measured[1]}) FROM {name}"
    for key in (c for c in table.columns if c.values):
        column = sql_name(key.name)
        yield f"SELECT {column}, COUNT(*) FROM {name} GROUP BY 1"
        yield from (f"SELECT {column}, AVG({one}) FROM {name} GROUP BY 1" for one in measured[:1])
        if key.values and isinstance(key.values[0], str) and key.type.kind is Kind.TEXT:
            yield f"SELECT COUNT(*) FILTER (WHERE {column} = {text(key.values[0])}), COUNT(*) FROM {name}"
    found = [c for c in table.columns if c.type.kind is Kind.TEXT and not c.values and not c.is_personal]
    for key in found[:1]:
        yield f"SELECT COUNT(DISTINCT {sql_name(key.name)}) FROM {name}"
        yield f"SELECT {sql_name(key.name)}, COUNT(*) FROM {name} GROUP BY 1"


def _of_periods(policy: Policy, table: Table) -> Iterator[str]:
    """Yield questions about a table's periods, by each and by some that overlap."""
    time = policy.privacy.time
    if time is None or table.unit is None or table.unit.time is None or table.unit.time.way:
        return
    name, column = sql_name(table.name), sql_name(table.unit.time.column)
    yield f"SELECT date_trunc('{time.period.value}', {column}), COUNT(*) FROM {name} GROUP BY 1"
    first = number_of(time.period, time.since)
    for low, high in ((0, 1), (0, 2), (1, 3)):
        begin, end = (first_day(time.period, first + at) for at in (low, high))
        yield f"SELECT COUNT(*) FROM {name} WHERE {column} >= '{begin}' AND {column} < '{end}'"


def plan_audited(policy: Policy, catalog: Catalog, sql: str) -> Plan:
    """Return a statement's plan, at the audit's epsilon and delta. Raises Refusal."""
    privacy = replace(PrivacyParameters.of(policy, EPSILON, _clock(policy)), delta=DELTA)
    return plan_text(sql, catalog, privacy)


# --- the neighbours -------------------------------------------------------------------------------------


_OVER = 3
"""How many periods are over when an audit asks."""
_PERIODS = (0, 1, 2, _OVER, 40, -1)
"""Where a person has rows: in each that is over, the running one, one that lies far ahead, one before the first."""

Pair = tuple[str, list[Person], list[Person], int | None]
"""Two databases: what the one has that the other has not, both, and the slice in which they differ, by its number."""


def _clock(policy: Policy) -> Clock | None:
    """Return what is over in an audit; None where the budget is no one by periods."""
    time = policy.privacy.time
    return None if time is None else Clock(time, number_of(time.period, time.since) + _OVER)


def neighbours_in(policy: Policy) -> Iterator[Pair]:
    """Yield pairs of databases that the policy calls neighbours."""
    if policy.privacy.time is not None:
        yield from _slices_in(policy.privacy.time)
        return
    for by, here, there in _people_in(policy):
        yield by, here, there, None


def _slices_in(time: Time) -> Iterator[Pair]:
    """Yield databases that differ in one person's rows of one period, or in a person who has undated rows alone.

    Where a person's other rows lead to an undated one, an engine with foreign keys has no database without it.
    """
    crowd = [Person("one of the crowd", rows=0, periods=(at,)) for at in (0, 1, 2)] * (CROWD // 3)
    first = number_of(time.period, time.since)
    for person in PATTERNS:
        whole = replace(person, periods=_PERIODS)
        for at in (0, 2, _OVER, 40, -1):
            named = f"rows of {run_text(time.period, first + at, first + at)}: {person.name}"
            yield named, [*crowd, whole], [*crowd, replace(whole, without=first + at)], first + at
        alone = replace(person, periods=())
        yield f"undated rows alone: {person.name}", [*crowd, alone], crowd, UNDATED
    alone = replace(PATTERNS[-2], periods=(1,))
    yield "the only person's rows of one period", [alone], [replace(alone, without=first + 1)], first + 1


def _people_in(policy: Policy) -> Iterator[tuple[str, list[Person], list[Person]]]:
    crowd, many = [Person("one of the crowd", rows=0)] * CROWD, policy.privacy.together
    if policy.privacy.neighbours is Neighbours.ADD_REMOVE:
        for person in PATTERNS:
            yield person.name, crowd + [person] * many, crowd
        yield "the only person", [PATTERNS[-2]] * many, []
        return
    for person in PATTERNS:
        for other in (PATTERNS[3], PATTERNS[4], PATTERNS[5]):
            if other is not person:
                yield (
                    f"{person.name}, in the place of: {other.name}",
                    crowd + [person] * many,
                    crowd + [other] * many,
                )


def pairs_over(
    policy: Policy, twin: Twin, backend: DuckDBBackend, plans: dict[str, Plan]
) -> Iterator[tuple[str, dict[str, Measures | DpsqlError], dict[str, Measures | DpsqlError], int | None]]:
    """Yield what statements measure of each two neighbours, by what they differ, and in which slice."""
    known: dict[tuple[Person, ...], dict[str, Measures | DpsqlError]] = {}
    for by, here, there, number in neighbours_in(policy):
        for people in (here, there):
            if tuple(people) not in known:
                known[tuple(people)] = measured_over(twin, backend, people, plans)
        yield by, known[tuple(here)], known[tuple(there)], number


def measured_over(
    twin: Twin, backend: DuckDBBackend, people: list[Person], plans: dict[str, Plan]
) -> dict[str, Measures | DpsqlError]:
    """Return the exact integers of each statement over some people; the error, where the engine failed."""
    twin.fill(people)
    found: dict[str, Measures | DpsqlError] = {}
    for sql, planned in plans.items():
        try:
            with backend.snapshot() as snapshot:
                given = fixed_intermediates(planned)
                found[sql] = [measure_release(release, snapshot, given) for release in planned.releases]
        except EngineFailure as failure:
            found[sql] = failure
    return found


# --- one statement --------------------------------------------------------------------------------------


class _Compared:
    """A statement over all neighbours: the pair that moved it most, and what was wrong on the way.

    `sharpest`: the pair to attack, which may be another one: what both of its databases show differs most, in the
    fewest numbers.
    """

    def __init__(self, sql: str, planned: Plan) -> None:
        self.sql, self.plan = sql, planned
        self.problems: list[str] = []
        self.loss, self.by = Fraction(0), ""
        self.sharpest: _Pair | None = None
        self._sharpness = (0.0, 0)

    def compare(
        self, by: str, left: Measures | DpsqlError, right: Measures | DpsqlError, number: int | None
    ) -> Fraction:
        """Hold two databases against the claim (law L1); return what they are apart."""
        loss, problems = held_over(self.plan, by, left, right, number)
        self.problems += problems
        if loss is None or isinstance(left, DpsqlError) or isinstance(right, DpsqlError):
            return Fraction(0)
        if loss > self.loss:
            self.loss, self.by = loss, by
        changes = [
            release.measurements[number].norm(moved) / float(drawn_scale(release, number))
            for release, *both in zip(self.plan.releases, left, right, strict=True)
            for number, moved in _changes(release, *both)
        ]
        if (sharpness := (round(sum(changes), 6), -len(changes))) > self._sharpness:
            self._sharpness, self.sharpest = sharpness, (left, right)
        return loss

    @property
    def _in_rho(self) -> bool:
        return self.plan.privacy.accounting is Accounting.ZCDP

    def finding(self, noise: Noise, runs: int) -> AuditFinding:
        """Attack the pair that moved it most, and say what came of it all."""
        claimed = float(self.plan.epsilon)
        seen = Attack(0.0, 0.05)
        if self.sharpest is not None:
            seen = _attacked(self.plan, self.sharpest, noise, runs)
        if seen.epsilon > claimed:
            least = ("rho", seen.epsilon**2 / 2) if self._in_rho else ("epsilon", seen.epsilon)
            real = f"{least[0]} is at least {least[1]:.3f}"
            self.problems.append(f"the real {real}")
        shown = (_thresholds(release, self.plan, noise, runs) for release in self.plan.releases)
        self.problems += [said for said in shown if said is not None]
        delta = float(self.plan.delta)
        most = (
            allowed(self.plan.rho_atto, delta) if self._in_rho else min(1.0, math.exp(claimed) * 0.05 + delta)
        )
        return AuditFinding(
            self.sql,
            claimed,
            self._moved(),
            self.by,
            seen.epsilon,
            seen.found,
            most,
            tuple(dict.fromkeys(self.problems)),
            self._in_rho,
        )

    def _moved(self) -> str:
        """Return how far the worst pair is apart: in units of the measure where it is one, else in parts."""
        if not self.plan.epsilon:
            return "0 of 0"
        (release, *others), measurements = self.plan.releases, self.plan.releases[0].measurements
        if others or len(measurements) > 1 or self._in_rho:
            return f"{float(100 * self.loss / claim_of(self.plan)):.4g} of 100 %"
        measurement = measurements[0]
        step = (
            Fraction(1) if measurement.lattice is None else measurement.lattice.step
        ) / measurement.denominator
        loss = self.loss * release.measures[0].scale * step
        return f"{number_text(loss)} of {number_text(measurement.sensitivity * step)}"


def claim_of(planned: Plan) -> Fraction:
    """Return what the charge says that neighbours are apart at most: in epsilon, or in rho."""
    in_rho = planned.privacy.accounting is Accounting.ZCDP
    return Fraction(planned.rho_atto, ATTO) if in_rho else planned.epsilon


def moved_by(
    planned: Plan, left: Measures, right: Measures, at: int | None = None
) -> tuple[Fraction, list[str]]:
    """Return how far two databases are apart in all that a statement measures, and what of it is not claimed (L1).

    `at`: the slice in which they differ: what is not charged to it moves by nothing (soundness.md 1.40).
    """
    loss, problems, in_rho = Fraction(0), list[str](), planned.privacy.accounting is Accounting.ZCDP
    for release, here, there in zip(planned.releases, left, right, strict=True):
        if at is not None and not _is_charged(release, at) and here != there:
            problems.append("a period that is not charged is read")
        for number, measurement in enumerate(release.measurements):
            if release.is_empty:
                continue
            if distance(release, number, here[number], there[number]) > measurement.sensitivity:
                problems.append(f"{measurement.label} moved by more than its sensitivity")
            loss += _loss(release, number, here[number], there[number], in_rho=in_rho)
        if release.counted is not None:
            alone = _new(here[release.counted], there[release.counted])
            alone += _new(there[release.counted], here[release.counted])
            if alone > 2 * planned.privacy.together * release.bounding.groups:
                problems.append("found keys of more groups than are bounded")
    if loss > claim_of(planned):
        problems.append("moved by more than is claimed")
    return loss, problems


def held_over(
    planned: Plan, by: str, left: Measures | DpsqlError, right: Measures | DpsqlError, number: int | None
) -> tuple[Fraction | None, list[str]]:
    """Return how far two databases are apart, None where the engine failed over one, and what is wrong of it."""
    if isinstance(left, DpsqlError) or isinstance(right, DpsqlError):
        return None, [f"the engine failed over {by}"]
    loss, problems = moved_by(planned, left, right, number)
    return loss, [f"{problem}: {by}" for problem in problems]


def _is_charged(release: ReleasePlan, number: int) -> bool:
    slices = release.slices
    return slices is not None and any(first <= number <= last for first, last in slices.runs)


class _Together:
    """All statements as one ledger has them: what a slice lost by all of them, beside what its runs were charged."""

    def __init__(self, policy: Policy) -> None:
        self._time, self._in_rho = policy.privacy.time, policy.privacy.accounting is Accounting.ZCDP
        self._lost: dict[int, tuple[Fraction, str]] = {}

    def take(self, by: str, number: int | None, loss: Fraction) -> None:
        """Keep what neighbours in a slice are apart in all statements together, where it is the most."""
        if number is not None and (number not in self._lost or loss > self._lost[number][0]):
            self._lost[number] = loss, by

    def findings(self, plans: Sequence[Plan]) -> Iterator[AuditFinding]:
        """Yield what came of each slice in which databases differed."""
        if self._time is None:
            return
        steps, kind, unit = Steps(), 2 if self._in_rho else 0, ATTO if self._in_rho else NANO
        for planned in plans:
            for release in planned.releases:
                if release.slices is not None and not release.is_empty:
                    epsilon = sum((one.epsilon for one in release.measures), Fraction(0))
                    rho = sum(one.loss.rho or 0 for one in release.measures) if self._in_rho else 0
                    for first, last in release.slices.runs:
                        steps.add(first, last, (int(epsilon * NANO), 0, rho))
        for number, (loss, by) in sorted(self._lost.items()):
            charged = max(
                (Fraction(sums[kind], unit) for _, _, sums in steps.meet(number, number)), default=Fraction(0)
            )
            problems = ("lost more than its slice is charged",) if loss > charged else ()
            share = f"{float(100 * loss / charged) if charged else 0.0:.4g} of 100 %"
            of = run_text(self._time.period, number, number, self._time.since)
            yield AuditFinding(
                f"all of these, of {of}", float(charged), share, by, 0.0, 0.05, 1.0, problems, self._in_rho
            )


def _new(here: Groups, there: Groups) -> int:
    return sum(values[0] for key, values in here.items() if key not in there)


def _attacked(planned: Plan, pair: _Pair, noise: Noise, runs: int) -> Attack:
    """Return what the best half line of the privacy loss finds, in the better of the two directions."""
    left, right = pair
    moved = sum(len(changes) for changes in map(_changes, planned.releases, left, right))
    count = max(_FEWEST_RUNS, min(runs, _MOST_DRAWS // max(1, moved)))
    here, there = (scores(planned, *both, noise, count) for both in ((left, right), (right, left)))
    in_rho = planned.privacy.accounting is Accounting.ZCDP
    one, other = attack(here, -there, in_rho=in_rho), attack(there, -here, in_rho=in_rho)
    return Attack(max(one.epsilon, other.epsilon), max(one.found, other.found))


def scores(planned: Plan, centre: Measures, other: Measures, noise: Noise, runs: int) -> npt.NDArray[Any]:
    """Return the privacy loss of `runs` releases drawn around `centre`, shape (runs,): ln Pr[centre] - ln Pr[other].

    A key that one database alone has is delta's part, and left out.
    """
    total = np.zeros(runs)
    for release, here, there in zip(planned.releases, centre, other, strict=True):
        for number, moved in _changes(release, here, there):
            scale, law = float(drawn_scale(release, number)), release.measures[number].law
            change = np.array(moved, dtype=float)[:, None]
            if law.is_joint:
                drawn = noise.vectors(law, len(moved), runs).astype(float)
            else:
                drawn = noise.draw(law, runs).astype(float)[None, :]
            if isinstance(law, Box):
                total += (_norms(law, drawn + change) - _norms(law, drawn)) / scale
            elif "Gaussian" in law.family:
                widths = np.array([float(law.at(place).scale) for place in range(len(moved))])[:, None]
                total += (((drawn + change) ** 2 - drawn**2) / (2 * widths**2)).sum(axis=0)
            else:
                total += (np.abs(drawn + change) - np.abs(drawn))[0] / scale
    return total


def _norms(law: Box, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return N of each column of `vectors`, shape (k, runs), to the digits of doubles: shape (runs,)."""
    reaches = np.array(law.reaches, dtype=float)[:, None]
    return np.asarray(np.ceil(np.abs(vectors) / reaches).max(axis=0))


def _loss(release: ReleasePlan, number: int, here: Groups, there: Groups, *, in_rho: bool) -> Fraction:
    """Return how far two databases are apart in a measurement: in epsilon; or in rho.

    At scale s a number that moved by d costs d/s of Laplace noise, hence rho (d/s)²/2: that of Gaussian noise too. Of
    a pure choice it is the same, of one by rank a quarter of it (soundness.md 1.25).
    """
    if not in_rho:
        return Fraction(distance(release, number, here, there)) / drawn_scale(release, number)
    choice = release.choices.get(number)
    if choice is None and number != release.selection:
        return squared_distance(release, number, here, there) / (2 * drawn_scale(release, number) ** 2)
    moved = Fraction(distance(release, number, here, there)) / drawn_scale(release, number)
    return moved**2 / (2 if choice is None or isinstance(choice, FlipChoice) else 8)


def _changes(
    release: ReleasePlan, here: dict[int, Groups], there: dict[int, Groups]
) -> list[tuple[int, list[int]]]:
    """Return (measurement, change) of each coordinate that the two databases differ in, of vectors as a whole."""
    found = []
    for number, groups in here.items():
        for key, values in groups.items():
            moved = [a - b for a, b in zip(values, there[number].get(key, values), strict=True)]
            law = release.measures[number].law
            size = law.size_of(1)
            chunks = (moved[start : start + size] for start in range(0, len(moved), size))
            found += [(number, chunk) for chunk in chunks if any(chunk)]
    return found


def _thresholds(release: ReleasePlan, planned: Plan, noise: Noise, runs: int) -> str | None:
    """Count how often a key is shown that too few people have: each way to be so few, at most its part of delta."""
    if release.counted is None or release.is_empty:
        return None
    fewest, many = planned.privacy.minimum_units, planned.privacy.together
    for alone in dict.fromkeys((1, many)):
        exact = Exact()
        keys: list[Scalar] = list(range(runs))
        columns = [keys] * len(release.release.keys)
        exact.add(columns, {(release.counted, 0): [fewest - 1 + alone] * runs}, runs)
        shown = publish(exact, release, noise, fewest).values[0].size
        if at_least(shown, runs) > float(release.delta * alone / (many * release.bounding.groups)):
            return f"a key that {fewest - 1 + alone} people have is shown too often"
    return None


# --- the search: statements of every shape ---------------------------------------------------------------


_AT_ONCE = 100
"""Statements whose integers are held at one time."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A statement that did not keep its claim: over which neighbours, and how."""

    sql: str
    problem: str


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What a search found.

    `refused`: how many by code. `worst`: the most that a statement moved by, of what it may, and `at` which it was.
    `unverified`: of how many answered ones the plan is not verified, by the rule that is missing.
    """

    seed: int
    tried: int
    answered: int
    refused: Mapping[str, int]
    worst: float
    at: str
    violations: tuple[Violation, ...]
    unverified: Mapping[str, int]

    @property
    def has_passed(self) -> bool:
        """Whether every statement kept its claim."""
        return not self.violations

    def to_json(self) -> dict[str, object]:
        """Return the search as plain dicts and lists, for `json.dumps`."""
        return {"passed": self.has_passed, **asdict(self)}


def run_fuzz(policy: Policy, live: LiveSchema, count: int, seed: int = 0) -> Fuzzed:
    """Search so many statements over a policy's tables, always the same ones for the same policy, schema and seed.

    Raises PolicyError: policy and schema do not go together.
    """
    with twin_of(policy, live) as (twin, backend):
        with backend.snapshot() as snapshot:
            catalog = build_catalog(policy, snapshot.schema())
            facts = read_facts(snapshot, policy, lambda *asked: None)  # its keys are the twin's own
        asked = [one.sql for one in statements(catalog, seed, count)]
        refused, search = Counter[str](), _Search(policy, twin, backend)
        plans: dict[str, Plan] = {}
        for sql in asked:
            try:
                plans[sql] = plan_audited(policy, catalog, sql)
            except Refusal as refusal:
                refused[refusal.sqlstate] += 1
        answered = list(plans)
        against = {sql: rule_against(certificate_of(one.releases, facts)) for sql, one in plans.items()}
        search.verified = {sql for sql, rule in against.items() if not rule}
        for start in range(0, len(answered), _AT_ONCE):
            search.hold({sql: plans[sql] for sql in answered[start : start + _AT_ONCE]})
        return Fuzzed(
            seed, len(asked), len(asked) - refused.total(), dict(sorted(refused.items())), float(search.worst),
            search.at, tuple(search.violations), Counter(rule for rule in against.values() if rule),
        )  # fmt: skip


class _Search:
    """Statements over all neighbours: the one that moved most, and those that did not keep their claim."""

    def __init__(self, policy: Policy, twin: Twin, backend: DuckDBBackend) -> None:
        self._policy, self._twin, self._backend = policy, twin, backend
        self.worst, self.at = Fraction(0), ""
        self.verified: set[str] = set()
        self.violations: list[Violation] = []

    def hold(self, plans: dict[str, Plan]) -> None:
        for by, left, right, number in pairs_over(self._policy, self._twin, self._backend, plans):
            for sql, planned in plans.items():
                loss, problems = held_over(planned, by, left[sql], right[sql], number)
                said = "verified, and yet " if sql in self.verified and loss is not None else ""
                self.violations += [Violation(sql, f"{said}{problem}") for problem in problems]
                claim = claim_of(planned)
                if claim and (loss or 0) / claim > self.worst:
                    self.worst, self.at = (loss or 0) / claim, sql
