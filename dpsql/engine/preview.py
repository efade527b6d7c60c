"""What a policy would give: how far off typical statements would be, and how many of them the budget holds.

House rules:

1. From the policy and the schema alone: no row is read, no ledger is needed, nothing is charged.
2. Every figure is the plan's own, the one that EXPLAIN shows for the same statement: there is no second formula.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from types import MappingProxyType

from sqlglot.tokens import Tokenizer

from ..errors import Refusal
from ..mechanisms import ATTO, NANO, Laplace, rho_of_pure, rho_within
from ..plan.dialects.quote import identifier
from ..plan.planner import Plan, PrivacyParameters, plan_text
from ..plan.privacy.time import Clock
from ..plan.release_plan import ReleasePlan
from ..policy import Accounting, Policy
from ..records import dataclass
from ..regex import regex
from ..relation.catalog import Catalog, Column, Table
from ..release.price import expected_error
from ..words import small_text
from .settings import decimal_text

# --- what a policy's lifetime cap holds, counted in epsilon and in rho --------------------------------------


STATEMENTS = (10, 100, 1000)
_MISSING = Fraction(1, 20)
_NORMAL = 1.959964


def _statements_held(policy: Policy, each: Fraction, accounting: Accounting | None = None) -> int:
    """Return how many different statements of an epsilon the cap holds; `accounting`: where not the policy's own."""
    if (accounting or policy.privacy.accounting) is Accounting.PURE:
        return math.floor(policy.privacy.epsilon / each)
    return _rho(policy) // rho_of_pure(math.ceil(each * NANO))


def _holding_lines(policy: Policy) -> Iterator[str]:
    """Yield a table: what each accounting holds, and by how much a count of people is off when many share the cap.

    Under epsilon the noise is Laplace, under rho Gaussian; at 95 %.
    """
    each = policy.defaults.epsilon
    kinds = [Accounting.PURE, Accounting.ZCDP] if policy.privacy.delta else [Accounting.PURE]
    heads = "".join(f"{f'{number:,}':>9}" for number in STATEMENTS)
    yield f"  {'accounting':<12}{f'statements at {decimal_text(each)}':>20}   ± of a count, of so many:{heads}"
    for kind in kinds:
        bars = "".join(f"{_decimals(_half_width(policy, kind, number)):>9}" for number in STATEMENTS)
        own = " *" if kind is policy.privacy.accounting else ""
        yield f"  {kind.value + own:<12}{f'{_statements_held(policy, each, kind):,}':>20}   {'':25}{bars}"


def _rho(policy: Policy) -> int:
    """Return the cap on rho; where the policy adds up epsilon, with half of delta for the conversion."""
    return rho_within(policy.privacy.epsilon, policy.privacy.conversion_delta or policy.privacy.delta / 2)


def _half_width(policy: Policy, accounting: Accounting, statements: int) -> float:
    together = policy.privacy.together
    if accounting is Accounting.PURE:
        return Laplace(together * statements / policy.privacy.epsilon).half_width(_MISSING)
    rho = _rho(policy) / ATTO / statements
    return _NORMAL * together / math.sqrt(2 * rho) if rho else math.inf


def _decimals(half_width: float) -> str:
    return f"{half_width:,.0f}" if half_width >= 10 else f"{half_width:.1f}"


# --- what a policy would give -------------------------------------------------------------------------------


PEOPLE = (1_000, 100_000, 10_000_000)
"""How many people the table is imagined to hold, with one row each."""
_FEWEST_QUESTIONS = 20
"""A budget of fewer default questions is warned of."""
_MOST_LOST = 100_000
"""People with one row each: a bound under whose noise a count of them is lost is warned of."""
NOTHING = Fraction(0)
_PLAIN = regex(r"[a-z_][a-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Figure:
    """Half-widths at 95 %, absolute and as a share of the value, under one setting, for each number of `PEOPLE`."""

    max_rows: int | None
    epsilon: str
    plus_minus: tuple[float, ...]
    relative: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A typical statement; `relative_to`: what its relative errors are parts of. The first figure is as declared."""

    sql: str
    relative_to: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class TablePreview:
    """A private table. `bound`: how many rows of a person count; `thresholds`: what groups by undeclared keys need."""

    name: str
    bound: str
    questions: tuple[Question, ...]
    thresholds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """All private tables, what the budget holds, and what the owner should think of again."""

    tables: tuple[TablePreview, ...]
    budget: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return the preview as plain dicts and lists, for `json.dumps`."""
        return {"people": list(PEOPLE), **asdict(self)}

    def to_text(self) -> str:
        """Return the preview for a terminal."""
        lines = [f"warning: {warning}" for warning in self.warnings]
        lines += ["", *self.budget] if lines else list(self.budget)
        lines += [
            "",
            "Below: by how much an answer would be off, 95 times in 100, if each person had one row.",
            "With more rows of each the percentages are smaller: with ten, a tenth.",
        ]
        for table in self.tables:
            lines += ["", f"{table.name}: {table.bound}"]
            if table.questions:
                people = "".join(f"{f'{number:,} people':>26}" for number in PEOPLE)
                lines.append(f"  {'max_rows':>8}  {'epsilon':>8}{people}")
            for question in table.questions:
                lines.append(f"  {question.sql}   (% of {question.relative_to})")
                lines += [_line(figure) for figure in question.figures]
            lines += [f"  {text}" for text in table.thresholds]
        return "\n".join(lines) + "\n"


def preview(policy: Policy, catalog: Catalog) -> Preview:
    """Return what typical statements of each private table would get."""
    tables = tuple(_Previewer(policy, catalog, table).table() for table in _private(catalog))
    return Preview(tables, tuple(_budget_lines(policy)), warnings_of(policy, catalog))


def warnings_of(policy: Policy, catalog: Catalog) -> tuple[str, ...]:
    """Return what makes most answers useless, or keeps groups from being shown; each with its remedy."""
    found = []
    held = _statements_held(policy, policy.defaults.epsilon)
    if held < _FEWEST_QUESTIONS:
        found.append(
            f"{policy.source}: privacy.epsilon: holds {held} questions at defaults.epsilon "
            f"{decimal_text(policy.defaults.epsilon)}, for everybody together, for ever; have a question cost less"
        )
    for table in _private(catalog):
        found += _Previewer(policy, catalog, table).warnings()
    return tuple(found)


def _private(catalog: Catalog) -> list[Table]:
    return [table for table in catalog.tables.values() if table.unit is not None and not table.is_hidden]


def _budget_lines(policy: Policy) -> Iterator[str]:
    whole, each = policy.privacy.epsilon, policy.defaults.epsilon
    halved, doubled = (
        f"{_statements_held(policy, cost):,} at {decimal_text(cost)}" for cost in (each / 2, each * 2)
    )
    yield (
        f"budget: epsilon {decimal_text(whole)} holds {_statements_held(policy, each):,} different questions at "
        f"{decimal_text(each)} ({halved}, {doubled}), for everybody together, for ever"
    )
    if policy.privacy.delta and policy.defaults.delta:
        held = math.floor(policy.privacy.threshold_delta / policy.defaults.delta)
        total = small_text(policy.privacy.threshold_delta)
        yield f"  delta {total} holds {held:,} of them with group keys that are not declared"
    yield from _holding_lines(policy)
    if policy.privacy.together > 1:
        yield f"  any {policy.privacy.together} persons are protected together: so many times the noise of one"


@dataclass(frozen=True)
class _Previewer:
    """The statements of one table, planned under the policy or what is near it."""

    policy: Policy
    catalog: Catalog
    private: Table

    def table(self) -> TablePreview:
        """Return what the table's statements would get."""
        questions = [self._question(*said) for said in self._statements()]
        found = tuple(question for question in questions if question.figures)
        return TablePreview(self.private.name, self._bound(), found, tuple(self._thresholds()))

    def warnings(self) -> Iterator[str]:
        """Yield what is wrong with the table's bounds."""
        unit, where = self.private.unit, f"{self.policy.source}: tables.{self.private.name}"
        assert unit is not None
        count = self._release(f"SELECT COUNT(*) FROM {sql_name(self.private.name)}")
        if count is None or unit.is_unique or unit.max_rows is None:
            return
        half = expected_error(count, 0)[0]
        if half > _MOST_LOST:
            yield (
                f"{where}.max_rows: a count would be off by ± {_short(float(half))} at defaults.epsilon, more than "
                f"{_MOST_LOST:,} people with one row each; declare fewer rows of a person"
            )
        by_threshold = next(self._by_threshold(), None)
        if unit.max_groups is None and by_threshold is not None:
            column, release = by_threshold
            yield (
                f"{where}.max_groups: is not declared, so {unit.max_rows} groups of a person count, and a group by "
                f"{column.name} is shown from about {release.tau:,} people on; declare how many groups a person touches"
            )

    def _bound(self) -> str:
        unit = self.private.unit
        assert unit is not None
        if unit.is_unique:
            return "one row per person"
        return ", ".join(unit.declared) or "max_rows is not declared, so its statements are refused"

    def _statements(self) -> Iterator[tuple[str, str, Fraction]]:
        """Yield typical statements, what their relative errors are parts of, and what that is for one person."""
        table = sql_name(self.private.name)
        yield f"SELECT COUNT(*) FROM {table}", "the count", Fraction(1)
        if (key := self._public_key()) is not None:
            column, groups = key
            sql = f"SELECT {sql_name(column.name)}, COUNT(*) FROM {table} GROUP BY {sql_name(column.name)}"
            yield sql, f"a group's count, {groups} groups of one size", Fraction(1, groups)
        measured = (c for c in self.private.columns if c.type.is_number and c.bounds and not c.is_personal)
        for column in measured:
            assert column.bounds is not None
            lo, hi = column.bounds
            if self._release(f"SELECT AVG({sql_name(column.name)}) FROM {table}") is not None and lo < hi:
                middle = abs(lo + hi) / 2 or hi
                shown = decimal_text(middle)
                yield f"SELECT AVG({sql_name(column.name)}) FROM {table}", "the range", hi - lo
                yield f"SELECT SUM({sql_name(column.name)}) FROM {table}", f"the sum, at {shown} each", middle
                return

    def _public_key(self) -> tuple[Column, int] | None:
        """Return the first column whose groups are known beforehand, one with declared values if any has."""
        for column in sorted(self.private.columns, key=lambda column: column.values is None):
            # estimates over randomised answers are further off than their noise
            release = self._grouped(column) if column.randomized is None else None
            if release is not None and release.groups is not None and len(release.groups) > 1:
                return column, len(release.groups)
        return None

    def _by_threshold(self) -> Iterator[tuple[Column, ReleasePlan]]:
        """Yield the columns whose groups would have to be found, with the plan of their count."""
        for column in self.private.columns:
            release = self._grouped(column)
            if release is not None and release.tau is not None:
                yield column, release

    def _thresholds(self) -> Iterator[str]:
        found = list(self._by_threshold())
        if found:
            names = ", ".join(column.name for column, _ in found[:3]) + (", …" if found[3:] else "")
            tau = found[0][1].tau
            yield f"GROUP BY {names}: keys are not declared; a group is shown from about {tau:,} people on"

    def _grouped(self, column: Column) -> ReleasePlan | None:
        if self.private.unit is not None and self.private.unit.columns == (column.name,):
            return None
        name, table = sql_name(column.name), sql_name(self.private.name)
        return self._release(f"SELECT {name}, COUNT(*) FROM {table} GROUP BY {name}")

    def _question(self, sql: str, relative_to: str, whole: Fraction) -> Question:
        figures = []
        for most, epsilon in self._settings():
            release = self._release(sql, most, epsilon)
            if release is not None:
                figures.append(
                    _figure(release, most, epsilon, whole, is_average=sql.startswith("SELECT AVG"))
                )
        return Question(sql, relative_to, tuple(figures))

    def _settings(self) -> Iterator[tuple[int | None, Fraction]]:
        """Yield max_rows and epsilon: as declared, then what is near."""
        unit, epsilon = self.private.unit, self.policy.defaults.epsilon
        count = self._release(f"SELECT COUNT(*) FROM {sql_name(self.private.name)}")
        is_single = unit is None or unit.is_unique or count is None
        most = None if is_single or count is None else count.bounding.in_all
        yield most, epsilon
        if most is not None:
            yield max(1, most // 2), epsilon
            yield 2 * most, epsilon
        yield most, epsilon / 2
        yield most, epsilon * 2

    def _release(
        self, sql: str, most: int | None = None, epsilon: Fraction | None = None
    ) -> ReleasePlan | None:
        """Return the plan of a statement's one release; None where it is refused. `most`: another max_rows."""
        try:
            planned = self._plan(sql, most, epsilon or self.policy.defaults.epsilon)
        except Refusal:
            return None
        return planned.releases[0] if len(planned.releases) == 1 else None

    def _plan(self, sql: str, most: int | None, epsilon: Fraction) -> Plan:
        catalog = self.catalog if most is None else self._bounded_by(most)
        clock = Clock.now(self.policy.privacy.time)
        return plan_text(sql, catalog, PrivacyParameters.of(self.policy, epsilon, clock))

    def _bounded_by(self, most: int) -> Catalog:
        """Return the catalog with another max_rows in this table, and nothing beside it."""
        assert self.private.unit is not None
        unit = replace(self.private.unit, max_rows=most, max_rows_per_group=None, max_groups=None)
        tables: Mapping[str, Table] = {
            **self.catalog.tables,
            self.private.name: replace(self.private, unit=unit),
        }
        return replace(self.catalog, tables=MappingProxyType(tables))


def _figure(
    release: ReleasePlan, most: int | None, epsilon: Fraction, whole: Fraction, *, is_average: bool
) -> Figure:
    """Return an expected error for each number of people; `whole`: what it is relative to, for one person."""
    half, is_per_row = expected_error(release, len(release.release.aggregates) - 1)
    widths = tuple(float(half) / (people if is_per_row else 1) for people in PEOPLE)
    relative = tuple(
        width / (float(whole) * (1 if is_average else people))
        for width, people in zip(widths, PEOPLE, strict=True)
    )
    return Figure(most, decimal_text(epsilon), widths, relative)


def _line(figure: Figure) -> str:
    cells = (
        f"{f'± {_short(width)} ({_percent(part)})':>26}"
        for width, part in zip(figure.plus_minus, figure.relative, strict=True)
    )
    most = "" if figure.max_rows is None else str(figure.max_rows)
    return f"  {most:>8}  {figure.epsilon:>8}{''.join(cells)}"


def _short(value: float, digits: int = 3) -> str:
    """Return a number of so many digits, or of all those before the point."""
    if value >= 10 ** (digits - 1):
        return f"{round(value):,}"
    places = digits - 1 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{places}f}".rstrip("0").rstrip(".") if places > 0 else f"{value:.0f}"


def _percent(part: float) -> str:
    return f"{_short(100 * part, 2)} %" if part >= 1e-5 else "< 0.001 %"


def sql_name(name: str) -> str:
    """Return a table's or column's name as SQL has it: in quotes where it would be read otherwise, or as a word.

    >>> sql_name("library.loan"), sql_name("limit"), sql_name("Loan")
    ('library.loan', '"limit"', '"Loan"')
    """
    return ".".join(part if _is_plain(part) else identifier(part) for part in name.split("."))


def _is_plain(part: str) -> bool:
    return _PLAIN.fullmatch(part) is not None and part.upper() not in Tokenizer.KEYWORDS
