"""What the page shows: read from the ledger in one go, added up here, in whole units of the ledger.

House rule: under zCDP rho is what is added up; no two epsilons are (`dpsql.engine.answer`).

House rules, what answers would be like under other settings:

1. Everything comes from the policy, the schema and the planner: no row is read, nothing is charged or stored.
2. The noise is that of the plan which the statement would really have, of the law that would be drawn.
3. How many people have more rows than count is told where `dpsql bounds` has measured it, and never guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from sqlglot.tokens import Tokenizer

from ..budget import Entry, EntryState, LedgerStore, Status, epsilon_text, rho_text
from ..budget.stretches import stretches_of
from ..engine.answer import in_statements, ration_text, said_delta, spent_text
from ..engine.dataset import Dataset
from ..errors import DpsqlError
from ..mechanisms import NANO
from ..plan.dialects.quote import identifier
from ..plan.measures.formulas import Linear
from ..plan.measures.ranks import GRID
from ..plan.planner import PrivacyParameters, plan
from ..plan.privacy.time import Clock
from ..plan.release_plan import ReleasePlan
from ..policy import Policy
from ..policy.describe import policy_sentences
from ..policy.model import ColumnPolicy, Neighbours, TablePolicy
from ..policy.periods import MOST_NUMBER, number_of, run_text
from ..records import dataclass
from ..relation.catalog import Catalog
from ..release.left_out import LeftOut
from ..sql.bind_select import bind
from ..sql.scope import BindingContext
from ..sql.statement import AdmittedQuery, parse_statement

# --- what answers would be like under other settings --------------------------------------------------------


EPSILONS = tuple(map(Fraction, ("0.01", "0.02", "0.05", "0.1", "0.2", "0.3", "0.5", "1", "2", "5", "10")))
_MISSING = Fraction(1, 20)
_MOST_COLUMNS = 4
_MOST_TABLES = 40


@dataclass(frozen=True, slots=True)
class BenchNoise:
    """The noise on one answer: its law's family, its scale and its error bar at 95 %, in the answer's own unit."""

    family: str
    scale: Fraction
    bar: Fraction


@dataclass(frozen=True, slots=True)
class BenchStatement:
    """A usual statement. `max_rows`: the bounds that it is tried under, () where a person has one row.

    `declared`: the policy's bound. `one`: what one row adds, as far as bounds tell: their middle; 1 of a count.
    `noises`: by bound (one where there are none), then by epsilon.
    """

    table: str
    sql: str
    max_rows: tuple[int, ...]
    declared: int | None
    one: Fraction
    epsilons: tuple[Fraction, ...]
    noises: tuple[tuple[BenchNoise, ...], ...]


def bench_statements(dataset: Dataset) -> tuple[BenchStatement, ...]:
    """Return a count of each table of people's and sums of its columns, under all settings."""
    return tuple(_statements(dataset))


def measured_people(dataset: Dataset, table: str, bounds: Sequence[int]) -> tuple[LeftOut, ...]:
    """Return what is stored of the people with more rows than some bounds. Raises LedgerError."""
    found = (dataset.left_out(table, bound) for bound in bounds)
    return tuple(one for one in found if one is not None)


def _statements(dataset: Dataset) -> Iterator[BenchStatement]:
    policy = dataset.policy
    usual = policy.defaults
    epsilons = tuple(sorted({*EPSILONS, usual.epsilon, usual.max_epsilon}))
    epsilons = tuple(one for one in epsilons if one <= usual.max_epsilon)
    for name, table in [*policy.tables.items()][:_MOST_TABLES]:
        known = dataset.catalog.tables.get(name)
        if table.is_hidden or known is None or known.unit is None:
            continue
        bounds = () if known.unit.is_unique else _bounds(table)
        catalogs = [(bound, *_under(dataset, name, bound)) for bound in bounds or (None,)]
        for sql, one in _asked(table):
            noises = [_noises(sql, catalog, under, epsilons) for _, under, catalog in catalogs]
            if all(noises):
                yield BenchStatement(
                    name, sql, bounds, table.max_rows, one, epsilons, tuple(one for one in noises if one)
                )


def _bounds(table: TablePolicy) -> tuple[int, ...]:
    """Return the bounds to try: those of the grid about the declared one, and it."""
    declared = table.max_rows or 100
    near = {bound for bound in GRID if declared <= 20 * bound and bound <= 20 * declared}
    return tuple(sorted(near | ({table.max_rows} if table.max_rows else set())))


def _under(dataset: Dataset, name: str, bound: int | None) -> tuple[Policy, Catalog]:
    policy = replace(dataset.policy, views={})
    if bound is not None:
        own = replace(policy.tables[name], max_rows=bound, max_rows_per_group=None, max_groups=None)
        policy = replace(policy, tables={**policy.tables, name: own})
    return policy, dataset.catalog_under(policy)


def _asked(table: TablePolicy) -> Iterator[tuple[str, Fraction]]:
    source = ".".join(map(_written, table.name.split(".")))
    yield f"SELECT COUNT(*) FROM {source}", Fraction(1)
    numbers = [(column, middle) for column in table.columns if (middle := _middle(column)) is not None]
    for column, middle in numbers[:_MOST_COLUMNS]:
        yield f"SELECT SUM({_written(column.name)}) FROM {source}", middle


def _written(name: str) -> str:
    """Return a name as people write it, in quotes where it needs them."""
    is_plain = re.fullmatch("[a-z_][a-z0-9_]*", name) and name.upper() not in Tokenizer.KEYWORDS
    return name if is_plain else identifier(name)


def _middle(column: ColumnPolicy) -> Fraction | None:
    """Return the middle of a number's bounds; None where there are none to sum between."""
    low, high = column.bounds or (None, None)
    return (low + high) / 2 if isinstance(low, Fraction) and isinstance(high, Fraction) else None


def _noises(
    sql: str, catalog: Catalog, policy: Policy, epsilons: Sequence[Fraction]
) -> tuple[BenchNoise, ...]:
    """Return the noise at each epsilon; () for what this schema does not answer so."""
    try:
        (whole,) = _planned(sql, catalog, policy)
    except DpsqlError:
        return ()
    found = []
    for epsilon in epsilons:
        release = whole.under(epsilon, Fraction(1))
        (formula,) = whole.formulas
        noises = release.noises(formula) if release is not None and isinstance(formula, Linear) else []
        if len(noises) != 1:
            return ()
        ((law, weight),) = noises
        size = abs(weight)
        found.append(BenchNoise(law.family, law.scale * size, law.half_width(_MISSING) * size))
    return tuple(found)


def _planned(sql: str, catalog: Catalog, policy: Policy) -> tuple[ReleasePlan, ...]:
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    privacy = PrivacyParameters(
        policy.defaults.epsilon,
        Fraction(0),
        1,
        policy.privacy.neighbours is Neighbours.REPLACE_ONE,
        together=policy.privacy.together,
        accounting=policy.privacy.accounting,
        clock=Clock.now(policy.privacy.time),
    )
    return plan(bind(query, BindingContext(catalog, query.text, (), 0, {})), catalog, privacy).releases


# --- what the page shows ------------------------------------------------------------------------------------


_MOST_ENTRIES = 50_000
_MOST_STATEMENTS = 10
_PACE_DAYS = 28
_LEAST_DAYS = 3


@dataclass(frozen=True, slots=True)
class Day:
    """What was spent on a day (UTC), by analyst, and what was left at its end under the cap of today."""

    day: date
    spent: dict[str, int]
    left: int


@dataclass(frozen=True, slots=True)
class Spender:
    """What an analyst has spent; `cap`: their own, None where there is none."""

    name: str
    spent: int
    cap: int | None
    left: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement's text with all that it was charged, how often, by whom, and when last."""

    text: str
    note: str
    spent: int
    charges: int
    analysts: tuple[str, ...]
    last: str


@dataclass(frozen=True, slots=True)
class Stored:
    """Releases that answer again at no charge, and what they were charged; those that answer no more."""

    releases: int
    spent: int
    earlier: int
    failed: int
    failed_spent: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """At the pace of so many days the budget ends on `day`; None: it is too early to say, or nothing is spent."""

    days: int
    spent: int
    day: date | None


@dataclass(frozen=True, slots=True)
class PeriodFacts:
    """Some periods of the data in a row that were charged alike: what they are called, how many, what each was charged.

    What is before the first one, or undated, is one.
    """

    name: str
    number: int
    spent: int


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the page shows; amounts are in what the ledger adds up: epsilon in 1e-9, or rho in 1e-18."""

    policy: Policy
    made: datetime
    status: Status
    spent: int
    cap: int
    days: tuple[Day, ...]
    forecast: Forecast
    spenders: tuple[Spender, ...]
    statements: tuple[Statement, ...]
    charges: int
    stored: Stored
    chapters: tuple[tuple[str, tuple[str, ...]], ...]
    bench: tuple[BenchStatement, ...]
    people: dict[str, tuple[LeftOut, ...]]
    periods: tuple[PeriodFacts, ...] | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the ledger has more charges than were read one by one."""
        return self.charges == _MOST_ENTRIES

    @property
    def unit(self) -> str:
        """What is added up: epsilon or rho."""
        return "rho" if self.status.in_rho else "epsilon"

    def amount(self, units: int) -> str:
        """Return an amount as text."""
        return rho_text(units) if self.status.in_rho else epsilon_text(units)

    @property
    def delta(self) -> str:
        """What is spent of delta, of how much."""
        spent, cap = (
            Fraction(one, 10**18) for one in (self.status.delta_spent_atto, self.status.delta_cap_atto)
        )
        return f"{said_delta(spent)} of {said_delta(cap)}"

    @property
    def rations(self) -> tuple[str, ...]:
        """What is spent of each period's cap."""
        return tuple(_sentence(ration_text(scope, self.status)) for scope in self.status.rations)

    @property
    def as_epsilon(self) -> str:
        """What the rho that is spent comes to in epsilon; empty where epsilon is what is added up."""
        status = self.status
        if not status.in_rho:
            return ""
        spent, cap = status.epsilon_spent_nano, status.epsilon_cap_nano
        return _sentence(spent_text(spent, cap, status.rho_spent_atto, status.rho_cap_atto, status))

    @property
    def left_in_words(self) -> str:
        """What is left, in statements."""
        return in_statements(self.status, self.policy.defaults.epsilon)


def facts_of(dataset: Dataset, bench: tuple[BenchStatement, ...], now: datetime | None = None) -> Facts:
    """Return what the page shows now. Raises LedgerError."""
    policy, store = dataset.policy, dataset.store
    entries = store.log(_MOST_ENTRIES)[::-1]
    status = store.status()
    made = now or datetime.now(UTC)
    whole = status.scopes[0]
    names = sorted({*policy.analysts, *store.analysts()})
    bounds = {one.table: one.max_rows for one in bench if one.max_rows}
    periods = _periods(store, status)
    days = _days(entries, whole.spent, whole.cap, in_rho=status.in_rho) if periods is None else ()
    return Facts(
        policy,
        made,
        status,
        whole.spent,
        whole.cap,
        days,
        forecast_of(days, whole.left, made.date()),
        tuple(_spender(name, store.status(name), policy.defaults.epsilon) for name in names),
        _costliest(entries, in_rho=status.in_rho),
        len(entries),
        _stored(entries, status),
        (*policy_sentences(policy), *_granted(policy, status, {name: store.status(name) for name in names})),
        bench,
        {table: measured_people(dataset, table, tried) for table, tried in bounds.items()},
        periods,
    )


def _periods(store: LedgerStore, status: Status) -> tuple[PeriodFacts, ...] | None:
    """Return what was charged by period of the data, the oldest first; None where the budget is of all together."""
    promise = store.promise
    if promise.period is None or promise.since is None:
        return None
    before = number_of(promise.period, promise.since) - 1
    found = []
    for one in stretches_of(store, status.in_rho, MOST_NUMBER):
        last = before + 1 if one.last == MOST_NUMBER else one.last
        name = run_text(promise.period, one.first, one.last, promise.since)
        found.append(PeriodFacts(name, max(1, last - max(one.first, before) + 1), one.most))
    return tuple(found)


def _sentence(said: str) -> str:
    return f"{said[:1].upper()}{said[1:]}."


def _granted(policy: Policy, status: Status, own: dict[str, Status]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a chapter of what was granted beyond the policy's caps, where anything was."""
    caps = [("everybody together", status.epsilon_cap_nano, policy.privacy.epsilon)]
    for name, analyst in policy.analysts.items():
        caps.append((name, own[name].analyst_cap_nano or 0, analyst.epsilon))
    said = tuple(
        f"The cap for {whose} is epsilon {epsilon_text(cap)} now: {epsilon_text(cap - int(first * NANO))} was granted."
        for whose, cap, first in caps
        if cap > first * NANO
    )
    if said:
        yield "Granted since", said


def _spender(name: str, status: Status, usual: Fraction) -> Spender:
    if status.in_rho:
        spent, cap = status.analyst_rho_spent_atto, status.analyst_rho_cap_atto
    else:
        spent, cap = status.analyst_spent_nano, status.analyst_cap_nano
    return Spender(name, spent, cap, in_statements(status, usual))


def _days(entries: Sequence[Entry], spent: int, cap: int, *, in_rho: bool) -> tuple[Day, ...]:
    """Return the days on which something was charged, the oldest first."""
    by_day: dict[date, Counter[str]] = {}
    for entry in entries:
        own = by_day.setdefault(date.fromisoformat(entry.at[:10]), Counter())
        own[entry.analyst] += entry.charge.amount(in_rho=in_rho)
    before = spent - sum(
        own.total() for own in by_day.values()
    )  # of entries that are older than all that were read
    found = []
    for day in sorted(by_day):
        before += by_day[day].total()
        found.append(Day(day, dict(by_day[day]), max(0, cap - before)))
    return tuple(found)


def forecast_of(days: Sequence[Day], left: int, today: date) -> Forecast:
    """Return when the budget ends at the pace of the last days, counted from the first charge among them to today."""
    since = today - timedelta(days=_PACE_DAYS - 1)
    recent = [one for one in days if since <= one.day <= today]
    if not recent:
        return Forecast(_PACE_DAYS, 0, None)
    first = days[0].day if days[0].day > since else since
    span, spent = (today - first).days + 1, sum(sum(one.spent.values()) for one in recent)
    if span < _LEAST_DAYS or not spent:
        return Forecast(span, spent, None)
    more = left * span // spent
    return Forecast(span, spent, today + timedelta(days=more) if more < 36500 else None)


def _costliest(entries: Sequence[Entry], *, in_rho: bool) -> tuple[Statement, ...]:
    by_text: dict[str, list[Entry]] = {}
    for entry in entries:
        by_text.setdefault(" ".join(entry.statement.split()), []).append(entry)
    found = [
        Statement(
            text,
            own[-1].note,
            sum(one.charge.amount(in_rho=in_rho) for one in own),
            len(own),
            tuple(sorted({one.analyst for one in own})),
            own[-1].at[:10],
        )
        for text, own in by_text.items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.spent, one.text))[:_MOST_STATEMENTS])


def _stored(entries: Sequence[Entry], status: Status) -> Stored:
    in_rho = status.in_rho
    drawn = [one for one in entries if one.state is EntryState.COMMITTED]
    usable = [one for one in drawn if one.epoch == status.epoch]
    failed = [one for one in entries if one.state is EntryState.FAILED]
    return Stored(
        len(usable),
        sum(one.charge.amount(in_rho=in_rho) for one in usable),
        len(drawn) - len(usable),
        len(failed),
        sum(one.charge.amount(in_rho=in_rho) for one in failed),
    )
