"""The owner's report: what the ledger, the stored releases and the policy say, as one file that is complete in itself.

House rules:

1. No row is read and nothing is charged: numbers are the ledger's, a stored release's or the policy's.
2. Statements and names are other people's text: they are escaped (`text`), never markup.
3. The file needs nothing from elsewhere, and its Content-Security-Policy forbids it.

Charts are SVG: text and numbers, no script. Colours and sizes of text are classes of `charts.css`.

What is shown is read from the ledger in one go, added up here, in whole units of the ledger. House rule: under zCDP
rho is what is added up; no two epsilons are (`dpsql.engine.answer`).

House rules, what answers would be like under other settings:

1. Everything comes from the policy, the schema and the planner: no row is read, nothing is charged or stored.
2. The noise is that of the plan which the statement would really have, of the law that would be drawn.
3. How many people have more rows than count is told where `dpsql bounds` has measured it, and never guessed.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import cache
from importlib import resources
from itertools import pairwise

from .. import __version__
from ..budget import Entry, EntryState, LedgerStore, Status, epsilon_text, rho_text
from ..budget.stretches import stretches_of
from ..engine.answer import in_statements, ration_text, said_delta, spent_text
from ..engine.dataset import Dataset
from ..engine.preview import sql_name
from ..errors import DpsqlError
from ..mechanisms import NANO
from ..plan.measures.formulas import Linear
from ..plan.measures.ranks import GRID
from ..plan.planner import PrivacyParameters, plan_text
from ..plan.privacy.time import Clock
from ..plan.release_plan import ReleasePlan
from ..policy import Policy
from ..policy.describe import policy_sentences
from ..policy.model import ColumnPolicy, TablePolicy
from ..policy.periods import MOST_NUMBER, number_of, run_text
from ..records import dataclass
from ..relation.catalog import Catalog
from ..release.left_out import LeftOut, percent
from ..words import counted, terminal_text

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
    return tuple(_statements_of(dataset))


def measured_people(dataset: Dataset, table: str, bounds: Sequence[int]) -> tuple[LeftOut, ...]:
    """Return what is stored of the people with more rows than some bounds. Raises LedgerError."""
    found = (dataset.left_out(table, bound) for bound in bounds)
    return tuple(one for one in found if one is not None)


def _statements_of(dataset: Dataset) -> Iterator[BenchStatement]:
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
    source = sql_name(table.name)
    yield f"SELECT COUNT(*) FROM {source}", Fraction(1)
    numbers = [(column, middle) for column in table.columns if (middle := _middle(column)) is not None]
    for column, middle in numbers[:_MOST_COLUMNS]:
        yield f"SELECT SUM({sql_name(column.name)}) FROM {source}", middle


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
    clock = Clock.now(policy.privacy.time)
    privacy = PrivacyParameters.of(policy, policy.defaults.epsilon, clock, finds_groups=False)
    return plan_text(sql, catalog, privacy).releases


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
        _stored_texts(entries, status),
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


def _stored_texts(entries: Sequence[Entry], status: Status) -> Stored:
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


# --- charts as SVG ----------------------------------------------------------------------------------------


SERIES = 6
"""So many analysts have a colour of their own; the last is that of all others."""
_WIDE = 600

Points = Sequence[tuple[float, float]]
_Place = Callable[[float], float]
_Moment = Callable[[date, float], float]


def text(value: object) -> str:
    """Return a text to stand between tags or in a quoted attribute; what reorders or hides text is spelled out."""
    return html.escape(terminal_text(str(value)), quote=True)


@cache
def asset(name: str) -> str:
    """Return one of the report's files."""
    return resources.files(__package__).joinpath("report_page", name).read_text("utf-8").strip()


def series_of(names: Sequence[str]) -> dict[str, int]:
    """Return the colour's number of each name: those first named have their own."""
    return {name: min(place, SERIES - 1) for place, name in enumerate(names)}


# --- the budget ---------------------------------------------------------------------------------------------


def budget_chart(
    days: Sequence[tuple[date, Mapping[str, float], float]],
    cap: float,
    today: date,
    ends: date | None,
    colours: Mapping[str, int],
    unit: str,
    width: int,
) -> str:
    """Return what is left by day, as a line with its forecast, and below what each day took, by analyst.

    `days`: each with what was spent by whom, and what was left at its end.
    """
    left, right, top, high, low = 44, 14, 26, 190, 70
    first = days[0][0] if days else today
    end = min(ends, today + max(timedelta(14), today - first)) if ends else today
    span = max(1, (end - first).days + 1)
    inner, bottom = width - left - right, top + high + 40
    most = max((sum(spent.values()) for _, spent, _ in days), default=0) or 1

    def x(day: date, part: float = 0.0) -> float:
        return left + inner * ((day - first).days + part) / span

    def y(amount: float) -> float:
        return top + high * (1 - amount / cap) if cap else top

    parts = [f'<text class="title" x="{left}" y="14">{text(unit)} left, of {short(cap)}</text>']
    parts += grid_rows(cap, y, left, width - right)
    line = [(x(first), y(cap))]
    for day, _, after in days:
        line += [(x(day, 0.5), line[-1][1]), (x(day, 0.5), y(after))]
    line.append((x(today, 1), line[-1][1]))
    base = y(0)
    area = [*line, (line[-1][0], base), (line[0][0], base)]
    parts.append(f'<path class="area" d="{path(area)}Z"/><path class="line" d="{path(line)}"/>')
    if ends is not None and days:
        after = days[-1][2]
        share = min(1.0, (end - today).days / max(1, (ends - today).days))
        parts.append(f'<path class="forecast" d="{path([line[-1], (x(end, 1), y(after * (1 - share)))])}"/>')
    parts.append(f'<text class="title" x="{left}" y="{bottom - 10}">spent by day</text>')
    wide = max(1.5, min(26.0, inner / span - 1))
    for day, spent, _ in days:
        foot = float(bottom + low)
        for name in sorted(spent, key=lambda one: colours.get(one, SERIES - 1)):
            tall = low * spent[name] / most
            said = f"{day.isoformat()}, {text(name)}: {short(spent[name])}"
            parts.append(
                f'<rect class="s{colours.get(name, SERIES - 1)}" x="{px(x(day, 0.5) - wide / 2)}" '
                f'y="{px(foot - tall)}" width="{px(wide)}" height="{px(tall)}"><title>{said}</title></rect>'
            )
            foot -= tall
    parts.append(f'<text class="tick" text-anchor="end" x="{left - 6}" y="{bottom + 8}">{short(most)}</text>')
    parts.append(rule(left, width - right, bottom + low))
    parts += _day_ticks(first, end, x, bottom + low + 16, width)
    return svg(width, bottom + low + 24, f"{unit} left by day, and what each day took", parts)


def period_chart(periods: Sequence[tuple[str, int, float]], cap: float, unit: str, width: int) -> str:
    """Return what each period of the data was charged, as bars under the cap that each of them has.

    `periods`: what some in a row are called, how many, and what each was charged.
    """
    left, right, top, high = 44, 14, 26, 190
    inner, total = width - left - right, sum(number for _, number, _ in periods)
    most = max([cap, *(spent for _, _, spent in periods)]) or 1.0

    def y(amount: float) -> float:
        return top + high * (1 - amount / most)

    parts = [
        f'<text class="title" x="{left}" y="14">{text(unit)} spent of each period, of {short(cap)}</text>'
    ]
    parts += grid_rows(cap, y, left, width - right)
    place = 0
    for name, number, spent in periods:
        begin, end = (left + inner * at / total for at in (place, place + number))
        wide = max(1.0, end - begin - 1)
        parts.append(
            f'<rect class="s0" x="{px(begin)}" y="{px(y(spent))}" width="{px(wide)}" height="{px(y(0) - y(spent))}">'
            f"<title>{text(name)}: {short(spent)} of {short(cap)}</title></rect>"
        )
        place += number
    for name, at, anchor in ((periods[0][0], left, "start"), (periods[-1][0], width - right, "end")):
        parts.append(
            f'<text class="tick" text-anchor="{anchor}" x="{px(at)}" y="{top + high + 16}">{text(name)}</text>'
        )
    return svg(width, top + high + 24, f"{unit} spent of each period of the data", parts)


def grid_rows(cap: float, y: _Place, left: float, right: float) -> Iterator[str]:
    """Yield a line and a number at 0, at the half and at the whole of an axis."""
    for share in (0.0, 0.5, 1.0):
        at = y(cap * share)
        yield rule(left, right, at)
        yield f'<text class="tick" text-anchor="end" x="{left - 6}" y="{px(at + 4)}">{short(cap * share)}</text>'


def _day_ticks(first: date, end: date, x: _Moment, y: float, width: int) -> Iterator[str]:
    days = (end - first).days
    steps = min(days, 6 if width >= _WIDE else 2)
    for place in range(steps + 1):
        day = first + timedelta(days * place // max(1, steps))
        anchor = "middle" if days == 0 else "start" if place == 0 else "end" if place == steps else "middle"
        part = 0.5 if anchor == "middle" else 0.0 if anchor == "start" else 1.0
        yield f'<text class="tick" text-anchor="{anchor}" x="{px(x(day, part))}" y="{px(y)}">{day.isoformat()}</text>'


# --- parts --------------------------------------------------------------------------------------------------


def svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    """Return a picture of its parts; `label` says what it shows to who does not see it."""
    return (
        f'<svg viewBox="0 0 {px(width)} {px(height)}" width="{px(width)}" height="{px(height)}" role="img" '
        f'aria-label="{text(label)}">{"".join(parts)}</svg>'
    )


def rule(left: float, right: float, y: float) -> str:
    """Return a line from side to side."""
    return f'<path class="rule" d="M{px(left)} {px(y)}H{px(right)}"/>'


def path(points: Points) -> str:
    """Return a line through points, each once, as the data of a path."""
    kept = [point for before, point in pairwise([(math.nan, math.nan), *points]) if point != before]
    return "M" + "L".join(f"{px(x)} {px(y)}" for x, y in kept)


def px(value: float) -> str:
    """Return a place or a size, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def short(value: float) -> str:
    """Return a number of an axis: four digits are enough."""
    if value and abs(value) < 0.001:
        return f"{value:.2g}"
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 else f"{rounded:.4g}"


_LEFT_OUT = "none"
_FOOTER = (
    f"dpsql {__version__}. Every number here is the ledger's, a stored release's or the policy's. What is promised, "
    "and the proofs: dpsql docs threat-model, dpsql docs soundness."
)


def _content_security_policy() -> str:
    """Return what the page may load: its own style and script, by their hashes, and nothing else from anywhere."""
    return (
        f"default-src 'none'; style-src '{_hash(_style())}'; script-src '{_hash(asset('report.js'))}'; "
        "base-uri 'none'; form-action 'none'"
    )


def report_of(dataset: Dataset) -> str:
    """Return the report of a dataset as it is now: the whole page."""
    facts = facts_of(dataset, bench_statements(dataset))
    title = f"dpsql: {facts.policy.path.stem}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{text(_content_security_policy())}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{text(title)}</title><style>{_style()}</style></head><body>",
        '<a class="skip" href="#budget">To the budget</a>',
        *_header(facts),
        "<main>",
        *_budget(facts),
        *_statements(facts),
        *_stored(facts),
        *_bench(facts),
        *_policy(facts),
        "</main>",
        f"<footer><p>{text(_FOOTER)}</p></footer>",
        f'<script type="application/json" id="bench-data">{_data(_bench_data(facts))}</script>',
        f"<script>{asset('report.js')}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _data(value: object) -> str:
    """Return JSON that no text in it ends: to stand in a script element of data."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


def _style() -> str:
    return f"{asset('report.css')}\n{asset('charts.css')}"


def _hash(inline: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}"


def _header(facts: Facts) -> Iterator[str]:
    name = facts.policy.path.stem
    yield f"<header><h1>What may still be learned from {text(name)}</h1>"
    yield (
        f'<p class="quiet">From the ledger and the policy {text(facts.policy.source)}, '
        f"{facts.made:%Y-%m-%d %H:%M} UTC. No row of people was read for this page, and nothing was charged.</p>"
    )
    yield '<nav aria-label="Parts of this page"><ul>'
    for place, said in (
        ("budget", "Budget"), ("statements", "Costliest statements"), ("stored", "Stored answers"),
        ("bench", "Bench"), ("policy", "Policy"),
    ):  # fmt: skip
        yield f'<li><a href="#{place}">{said}</a></li>'
    yield "</ul></nav></header>"


def _budget(facts: Facts) -> Iterator[str]:
    left = max(0, facts.cap - facts.spent)
    share = percent(float(Fraction(left, facts.cap))) if facts.cap else "0 %"
    yield '<section id="budget" aria-labelledby="budget-h"><h2 id="budget-h">Budget</h2>'
    yield '<dl class="figures">'
    figures = [
        (f"{facts.unit} left", facts.amount(left), f"{share} of {facts.amount(facts.cap)}"),
        (
            f"{facts.unit} spent",
            facts.amount(facts.spent),
            f"in {counted(facts.charges, 'charge')}{' and more' if facts.is_cut else ''}",
        ),
        ("about", facts.left_in_words.split()[1], " ".join(facts.left_in_words.split()[2:])),
        ("used up", *_forecast_words(facts)),
    ]
    for head, number, note in figures:
        yield f"<div><dt>{text(head)}</dt><dd>{text(number)} <small>{text(note)}</small></dd></div>"
    yield "</dl>"
    if facts.status.of:
        yield f"<p>Figures are of {text(facts.status.of)}, the newest that was charged.</p>"
    yield from _budget_charts(facts)
    yield "<p class='quiet'>Caps are those of today, with all that was granted. Days are UTC. " + (
        f"Of delta, {text(facts.delta)} is spent.</p>"
    )
    if facts.is_cut:
        yield f"<p>Days and statements are those of the newest {facts.charges:,} charges.</p>"
    yield from (f"<p>{text(one)}</p>" for one in (facts.as_epsilon, *facts.rations) if one)
    yield from _spenders(facts)
    yield "</section>"


def _forecast_words(facts: Facts) -> tuple[str, str]:
    forecast = facts.forecast
    days = counted(forecast.days, "day")
    if facts.periods is not None:
        return "by period", "each new one has the whole budget"
    if facts.spent >= facts.cap:
        return "now", "nothing is left"
    if forecast.day is not None:
        return forecast.day.isoformat(), f"at the pace of the last {days}"
    if not forecast.spent:
        return "open", f"nothing was spent in {days}"
    return "too early", f"to say, after {days} of charges"


def _budget_charts(facts: Facts) -> Iterator[str]:
    if facts.periods:
        per = 10**18 if facts.status.in_rho else 10**9
        periods = [(one.name, one.number, one.spent / per) for one in facts.periods]
        for kind, width in (("wide", 1132), ("middle", 680), ("narrow", 340)):
            yield f'<div class="chart {kind}">{period_chart(periods, facts.cap / per, facts.unit, width)}</div>'
        return
    if not facts.days:
        yield "<p>Nothing was charged yet.</p>"
        return
    per = 10**18 if facts.status.in_rho else 10**9
    colours = series_of([one.name for one in sorted(facts.spenders, key=lambda one: -one.spent)])
    days = [
        (one.day, {name: spent / per for name, spent in one.spent.items()}, one.left / per)
        for one in facts.days
    ]
    for kind, width in (("wide", 1132), ("middle", 680), ("narrow", 340)):
        chart = budget_chart(
            days, facts.cap / per, facts.made.date(), facts.forecast.day, colours, facts.unit, width
        )
        yield f'<div class="chart {kind}">{chart}</div>'
    yield '<ul class="key" aria-label="Colours">'
    for name, colour in colours.items():
        yield f'<li><svg viewBox="0 0 12 12" aria-hidden="true"><rect class="s{colour}" width="12" height="12"/></svg>'
        yield f"{text(name)}</li>"
    yield "</ul>"


def _spenders(facts: Facts) -> Iterator[str]:
    if not facts.spenders:
        return
    rows = [
        [
            text(one.name),
            facts.amount(one.spent),
            _LEFT_OUT if one.cap is None else facts.amount(one.cap),
            text(one.left),
        ]
        for one in facts.spenders
    ]
    yield from _table(
        "By analyst",
        [("analyst", ""), (f"{facts.unit} spent", "n"), ("cap of their own", "n"), ("left", "")],
        rows,
    )


def _statements(facts: Facts) -> Iterator[str]:
    yield '<section id="statements" aria-labelledby="statements-h"><h2 id="statements-h">Costliest statements</h2>'
    if not facts.statements:
        yield "<p>Nothing was charged yet.</p></section>"
        return
    rows = [
        [
            facts.amount(one.spent),
            f"<code>{text(one.text)}</code><small>{text(one.note)}</small>",
            text(", ".join(one.analysts)),
            f"{one.charges:,}",
            text(one.last),
        ]
        for one in facts.statements
    ]
    heads = [(facts.unit, "n"), ("statement", "text"), ("analysts", ""), ("charges", "n"), ("last", "day")]
    yield from _table("All charges of one text together, as the ledger has them", heads, rows)
    yield "</section>"


def _stored(facts: Facts) -> Iterator[str]:
    stored = facts.stored
    yield '<section id="stored" aria-labelledby="stored-h"><h2 id="stored-h">Stored answers</h2>'
    yield (
        f"<p><strong>{counted(stored.releases, 'stored release')}</strong> "
        f"answer{'s' if stored.releases == 1 else ''} again at no charge. They were charged {facts.unit} "
        f"{facts.amount(stored.spent)}: each time all of them are asked again, that much is saved.</p>"
    )
    yield (
        "<p>How often a stored release answered is not in the ledger, which records charges alone; "
        "a server's log has it, and its metrics count it.</p>"
    )
    if stored.earlier:
        yield f"<p>{stored.earlier:,} of before the data were renewed answer no more.</p>"
    if stored.failed:
        yield (
            f"<p>{stored.failed:,} failed after their charge: {facts.unit} {facts.amount(stored.failed_spent)} is "
            "spent, and nothing is stored for it.</p>"
        )
    yield "</section>"


def _bench(facts: Facts) -> Iterator[str]:
    yield '<section id="bench" aria-labelledby="bench-h"><h2 id="bench-h">Bench</h2>'
    yield (
        "<p>What would an answer be worth under other settings? Move epsilon and <code>max_rows</code>. The noise is "
        "that of the plan dpsql would make; no question is asked and nothing is spent.</p>"
    )
    if not facts.bench:
        yield "<p>No table of people's rows is shown to analysts.</p></section>"
        return
    yield '<div class="bench"><form id="bench-form" hidden aria-describedby="said">'
    yield '<label for="statement">Statement</label><select id="statement"></select>'
    yield '<label for="people">People who count</label>'
    yield '<input id="people" type="number" min="1" max="1000000000" step="1" value="1000">'
    yield '<label for="epsilon">epsilon <output id="epsilon-now" for="epsilon"></output></label>'
    yield '<input id="epsilon" type="range" min="0" max="0" step="1" value="0">'
    yield '<label for="rows">max_rows <output id="rows-now" for="rows"></output></label>'
    yield '<input id="rows" type="range" min="0" max="0" step="1" value="0">'
    yield '</form><div><p class="said" id="said" role="status"></p><div class="chart" id="drawing"></div>'
    yield '<p class="quiet" id="assumed"></p><p class="quiet" id="law"></p><p id="cut"></p></div></div>'
    yield "<details><summary>The bars as a table</summary>"
    yield from _bars(facts)
    yield "</details></section>"


def _bars(facts: Facts) -> Iterator[str]:
    epsilons = facts.bench[0].epsilons
    rows = []
    for one in facts.bench:
        place = one.max_rows.index(one.declared) if one.declared in one.max_rows else 0
        bound = "one a person" if not one.max_rows else f"{one.max_rows[place]:,}"
        bars = [_figure(noise.bar) for noise in one.noises[place]]
        rows.append([f"<code>{text(one.sql)}</code>", bound, *bars])
    heads = [
        ("statement", "text"),
        ("max_rows", "n"),
        *((f"ε {float(epsilon):g}", "n") for epsilon in epsilons),
    ]
    yield from _table("Error bars at 95 %, under the policy's max_rows, by epsilon", heads, rows, "bars")


def _figure(bar: Fraction) -> str:
    return f"{float(bar):,.0f}" if bar >= 1000 else f"{float(f'{float(bar):.3g}'):g}"


def _policy(facts: Facts) -> Iterator[str]:
    yield '<section id="policy" aria-labelledby="policy-h"><h2 id="policy-h">The policy in sentences</h2>'
    yield '<div class="chapters">'
    for title, sentences in facts.chapters:
        yield f"<div><h3>{text(title)}</h3><ul>"
        yield from (f"<li>{text(one)}</li>" for one in sentences)
        yield "</ul></div>"
    yield "</div></section>"


def _table(
    caption: str, heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], kind: str = "stacked"
) -> Iterator[str]:
    """Yield a table; cells are markup, heads are text with the class of their column.

    `kind`: stacked, where a narrow screen has its rows one below the other; bars, where it scrolls.
    """
    yield f'<div class="scroll" tabindex="0" role="group" aria-label="{text(caption)}"><table class="{kind}">'
    yield f"<caption>{text(caption)}</caption><thead><tr>"
    yield from (f'<th scope="col" class="{column}">{text(head)}</th>' for head, column in heads)
    yield "</tr></thead><tbody>"
    for row in rows:
        cells = (
            f'<td class="{column}" data-head="{text(head)}">{cell}</td>'
            for cell, (head, column) in zip(row, heads, strict=True)
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _bench_data(facts: Facts) -> dict[str, object]:
    return {
        "usual": float(facts.policy.defaults.epsilon),
        "statements": [
            {
                "table": one.table,
                "sql": one.sql,
                "max_rows": one.max_rows,
                "declared": one.declared,
                "one": float(one.one),
                "epsilons": [float(epsilon) for epsilon in one.epsilons],
                "noises": [
                    [(noise.family, float(noise.scale), float(noise.bar)) for noise in row]
                    for row in one.noises
                ],
            }
            for one in facts.bench
        ],
        "people": {
            table: [{"max_rows": one.max_rows, "said": _cut_words(table, one)} for one in found]
            for table, found in facts.people.items()
        },
    }


def _cut_words(table: str, found: LeftOut) -> str:
    since = "" if found.is_current else "; the data have changed since"
    if found.share is None:
        return f"Too few people to say how many have more than {found.max_rows:,} rows in {table}{since}."
    kept = "" if found.kept is None else f", and about {percent(found.kept)} of the rows count"
    return (
        f"About {percent(found.share)} of the people have more than {found.max_rows:,} rows in {table} and are cut, at "
        f"most {percent(found.share_ends[1], up=True)}{kept} {found.when}."
    )
