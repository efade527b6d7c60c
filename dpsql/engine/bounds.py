"""What an owner may pay to learn of bounds: `max_rows` of a table, ends of its columns (soundness.md 3.10).

House rules:

1. All that leaves is a release as any other: its plan is made here, and `Session.released` carries it out, which looks
   it up, or charges before it asks. Nothing else asks the database.
2. What is measured second depends on what was chosen first, which is released by then. The budget must hold the whole
   price before the first of it is charged.
3. No analyst's text leads here: who calls this has opened policy, ledger and database as the owner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from fractions import Fraction

from ..budget import ZERO, Charge
from ..budget.filter import refuse_over_cap
from ..errors import PolicyError, Refusal
from ..mechanisms import NANO, floor_to_nano
from ..plan.dialects.quote import identifier, literal, table_name
from ..plan.measures.formulas import Chosen
from ..plan.measures.ranks import GRID, RankMeasurement, left_above, people_above
from ..plan.planner import Plan, PrivacyParameters, plan_text
from ..plan.release_plan import ReleasePlan
from ..policy import ColumnPolicy, Policy
from ..policy.load_tables import MAX_CONTRIBUTION
from ..policy.measured import (
    column_policy,
    declared_also,
    declared_column,
    find_table,
    norms_policy,
    path_to_owner,
    pointed_policy,
    require_squares,
)
from ..policy.model import AlsoPolicy, Bound
from ..records import dataclass
from ..relation.catalog import Catalog, Column, norm_key
from ..relation.expressions import Literal
from ..relation.types import Kind, SqlType
from ..release.left_out import LeftOut, LeftOutByNorms, norms_key, people_keys, rungs_for, steps_between
from ..release.run import ReleasedRows
from .session import Session

_LOW, _HIGH = "0.005", "0.995"
"""The ranks between which a column's bounds leave its values."""
_STEPS = 1_000
"""Ends that are no whole numbers are rounded outwards, to a power of ten of about this part of what lies between."""
_COUNTS = 3
"""Shares of the price that go to how many rows people have; the choice of a bound, and each column, has one."""
_NEAR = 2
"""A declared bound is kept unless the chosen one is more than so many times it, or less than one part in so many."""
_MOST_GROUPS = 2
"""Columns of a table of which it is measured in how many groups people are, unless more are named."""
_MISSING = Fraction(1, 20)
_STEPS_AROUND = (-4, -2, 2, 4, 6)
"""Places of `GRID` from that of a declared bound: about a fifth, a half, 2, 5 and 10 times as many rows."""
_AS_GOOD = 1.25
"""A declared bound is kept unless the best one's error is so many times smaller."""
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be measured of a table.

    `epsilon`: the price of all of it. `for_epsilon`: what people will spend on a question. `columns`: each with the
    range outside of which no value is believed; None: the bounds that are declared. `groups`: columns of which it is
    asked in how many groups people are.
    """

    table: str
    epsilon: Fraction
    for_epsilon: Fraction
    columns: tuple[tuple[str, tuple[Bound, Bound] | None], ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Groups:
    """In how many groups of a column people are: `declared`, `suggested` are bounds of `max_groups`."""

    column: str
    declared: int | None
    suggested: int
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """What came out, as it is stored.

    `declared`, `suggested`: `max_rows`, the same where the declared one is about as good; nothing is suggested where a
    person has one row. `left_out`: what the declared bound and the suggested one leave out. `columns`: with bounds
    inside which nearly all values lie, where so many people have one (`reliable_from`): of fewer they may be far
    outside. `measured`: the day of the oldest.
    `spent`: in this run; `paid`: for all of it, whenever.
    """

    wish: Wish
    declared: int | None
    suggested: int | None
    left_out: tuple[LeftOut, ...]
    columns: tuple[ColumnPolicy, ...]
    reliable_from: tuple[int, ...]
    measured: str
    spent: Charge
    paid: Charge
    groups: tuple[Groups, ...] = ()


def measure(session: Session, wish: Wish, statement: str) -> Measured | str:
    """Return what was measured, or in words why there is nothing to: then nothing is charged.

    `statement`: the command, for the ledger's record.
    Raises PolicyError for a table or column that is not there, BudgetExhausted, EngineFailure, LedgerError.
    """
    table = find_table(session.policy, wish.table)
    unit = session.catalog.tables[wish.table].unit
    if unit is None:
        return f'"{wish.table}" is public: it is answered as it is, and nothing of it needs a bound.'
    if unit.is_row and not wish.columns:
        return f'each row of "{wish.table}" is a unit by itself: there is no max_rows to choose.'
    if unit.is_unique and not wish.columns:
        return f'"{wish.table}" has one row a person, held by the database: there is no max_rows to choose.'
    columns = tuple(declared_column(session.policy, wish.table, *column) for column in wish.columns)
    share = _share(wish, is_unique=unit.is_unique)
    act = _Act(session, statement)
    ends = [_ends(session, wish.table, column, share) for column in columns]
    known = {column.name for column in session.catalog.tables[wish.table].columns}
    if lost := [name for name in wish.groups if name not in known]:
        raise PolicyError(f'table "{wish.table}" declares no column "{lost[0]}"')
    counted = () if unit.is_unique else (None, *wish.groups)
    choices = [_choice(session, wish, share, of) for of in counted]
    act.require([*choices, *ends], wish.epsilon)
    rows = act.carry_out([*choices, *ends])
    rest = wish.epsilon - share * (len(choices) + len(ends))
    found: list[Groups] = []
    for of, chosen in zip(
        counted, (GRID[int(one.measurements[0].values[0][0])] for one in rows), strict=False
    ):
        declared = table.max_rows if of is None else table.max_groups
        best = _suggested(declared, chosen)
        price = floor_to_nano(rest / (len(choices) - len(found)))  # what is rounded is the next one's
        rest -= price
        people = act.people(wish.table, sorted({declared or best, best}), chosen, price, of)
        found.append(Groups(of or "", declared, best, people))
    suggested, left_out = (found[0].suggested, found[0].left_out) if found else (None, ())
    bounds = tuple(
        replace(column, bounds=_read_ends(found_ends, column.bounds))
        for column, found_ends in zip(columns, rows[len(choices) :], strict=True)
        if column.bounds is not None
    )
    reliable_from = tuple(map(_reliable_from, ends))
    return Measured(
        wish, table.max_rows, suggested, left_out, bounds, reliable_from, min(act.days), act.spent, act.paid,
        tuple(found[1:]),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pointed:
    """How many rows count with those that they point at, under bounds on the rows that point at one person.

    `kept`: by such a bound, the rows that count and the half width of their noise at 95 %; `first`: the most rows of a
    person before that. `left_out`: the rows that the suggested bound leaves out of those that the largest keeps.
    """

    wish: Wish
    declared: AlsoPolicy
    suggested: int
    first: int
    kept: tuple[tuple[int, int, int], ...]
    measured: str
    spent: Charge
    paid: Charge

    @property
    def left_out(self) -> int:
        kept = {most: rows for most, rows, _ in self.kept}
        return max(0, max(kept.values()) - kept[self.suggested])


def measure_pointed(session: Session, wish: Wish, columns: tuple[str, ...], statement: str) -> Pointed:
    """Return how many joined rows count under bounds around the declared one of whom a table's columns point at.

    Each bound is a count of its own, of sensitivity R_a + R_b (soundness.md 1.38), and they share the price: more rows
    that count cost more noise, and where that is least for one count of all is suggested.
    `statement`: the command, for the ledger's record.
    Raises PolicyError for a table or columns that point at nobody, BudgetExhausted, EngineFailure, LedgerError.
    """
    find_table(session.policy, wish.table)
    declared = declared_also(session.policy, wish.table, columns)
    bounds = _around(declared.max_rows)
    each = floor_to_nano(wish.epsilon / len(bounds))
    plans = [_joined(session, wish.table, replace(declared, max_rows=most), each) for most in bounds]
    act = _Act(session, statement)
    act.require(plans, wish.epsilon)
    kept = tuple(
        (most, int(rows.measurements[0].values[0][0]), math.ceil(plan.measures[0].law.half_width(_MISSING)))
        for most, plan, rows in zip(bounds, plans, act.carry_out(plans), strict=True)
    )
    of_two = plans[0].bounding.of_two
    assert of_two is not None, "rows of two people"
    all_rows = max(rows for _, rows, _ in kept)
    noise = float(session.policy.privacy.together / wish.for_epsilon) * math.sqrt(2)
    errors = {most: noise * (of_two[0] + most) + all_rows - rows for most, rows, _ in kept}
    best = min(bounds, key=lambda most: errors[most])
    if errors[declared.max_rows] <= _AS_GOOD * errors[best]:
        best = declared.max_rows
    return Pointed(wish, declared, best, of_two[0], kept, min(act.days), act.spent, act.paid)


@dataclass(frozen=True, slots=True)
class Normed:
    """By what the rows of nearly all people come to by a column, as roots of sums of squares (soundness.md 1.36).

    `left_out`: by such a bound, the rows that it leaves out of those that `max_rows` keeps.
    """

    wish: Wish
    column: str
    declared: int | None
    suggested: int
    max_rows: int
    left_out: tuple[tuple[int, LeftOutByNorms], ...]
    measured: str
    spent: Charge
    paid: Charge


def measure_norm(session: Session, wish: Wish, column: str, statement: str) -> Normed | str:
    """Return which norm by a column few people exceed, and the share of rows that it and the declared one leave out.

    The bound is a choice by rank over the people's sums of squares, and pays half of the price; each count of rows,
    under a bound and under `max_rows` alone, of sensitivity R, has an equal part of the rest. In words, where there is
    nothing to measure: then nothing is charged. `statement`: the command, for the ledger's record.
    Raises PolicyError for what can have no norm, BudgetExhausted, EngineFailure, LedgerError.
    """
    table = find_table(session.policy, wish.table)
    unit = session.catalog.tables[wish.table].unit
    if unit is None or unit.is_row or unit.is_unique or table.max_rows == 1:
        return f'nobody has several rows in "{wish.table}": nothing of it needs a norm.'
    require_squares(session.policy, wish.table, column)
    assert table.max_rows is not None, "else it is refused"
    declared = dict(table.max_norm).get(column)
    others = tuple(one for one in table.max_norm if one[0] != column)
    choice = _choice(session, wish, floor_to_nano(wish.epsilon / 2), column, is_squared=True)
    act = _Act(session, statement)
    act.require([choice], wish.epsilon)
    (rows,) = act.carry_out([choice])
    best = min(_suggested(declared, GRID[int(rows.measurements[0].values[0][0])]), table.max_rows - 1)
    bounds = sorted({declared or best, best})
    norms = [(*others, (column, most)) for most in bounds]
    price = floor_to_nano(wish.epsilon / 2 / (len(norms) + 1))
    act.carry_out([_under_norms(session, wish.table, one, price) for one in ((), *norms)])
    found = (
        (most, session.dataset.left_out_by_norms(wish.table, one))
        for most, one in zip(bounds, norms, strict=True)
    )
    left_out = tuple((most, one) for most, one in found if one is not None)
    return Normed(wish, column, declared, best, table.max_rows, left_out, min(act.days), act.spent, act.paid)


def _under_norms(
    session: Session, name: str, norms: tuple[tuple[str, int], ...], epsilon: Fraction
) -> _KeyedPlan:
    """Return the release of a table's rows that count under norms, which is found again by `norms_key`."""
    policy = norms_policy(session.policy, name, norms)
    sql = f"SELECT COUNT(*) FROM {_quoted(name)}"
    catalog = session.dataset.catalog_under(policy)
    return _keyed(sql, policy, catalog, epsilon, (norms_key(policy, catalog, name, norms),))


def _around(declared: int) -> tuple[int, ...]:
    """Return bounds to measure around a declared one, itself among them."""
    place = min(range(len(GRID)), key=lambda number: abs(math.log(GRID[number] / declared)))
    near = (GRID[place + step] for step in _STEPS_AROUND if 0 <= place + step < len(GRID))
    return tuple(sorted({declared, *near}))


def _joined(session: Session, name: str, also: AlsoPolicy, epsilon: Fraction) -> ReleasePlan:
    """Return the release of the count of a table's rows joined with what they point at."""
    policy = pointed_policy(session.policy, name, also)
    parent, key = also.references
    on = " AND ".join(
        f"t0.{identifier(own)} = t1.{identifier(one)}" for own, one in zip(also.columns, key, strict=True)
    )
    sql = f"SELECT COUNT(*) FROM {_quoted(name)} AS t0 JOIN {_quoted(parent)} AS t1 ON {on}"
    return _planned(sql, session.dataset.catalog_under(policy), policy, epsilon)


def tables_to_measure(session: Session) -> list[str]:
    """Return the tables of which a person may have many rows."""
    units = ((name, session.catalog.tables[name].unit) for name in session.policy.tables)
    return [name for name, unit in units if unit is not None and not unit.is_unique]


def group_columns(session: Session, name: str) -> tuple[str, ...]:
    """Return columns of a table whose groups are found in the data, where nothing says in how many a person is."""
    if session.policy.tables[name].max_groups is not None:
        return ()
    declared = {column.name: column.values for column in session.policy.tables[name].columns}
    texts = [c.name for c in session.catalog.tables[name].columns if c.type.kind is Kind.TEXT]
    unit = session.catalog.tables[name].unit
    own = set(unit.columns) if unit is not None else set()
    return tuple(one for one in texts if declared.get(one) is None and one not in own)[:_MOST_GROUPS]


def measure_all(session: Session, wishes: Sequence[Wish], statement: str) -> list[Measured]:
    """Return what was measured of some of these tables, one after the other, where the budget holds the price of all.

    Raises as `measure`.
    """
    choices = [_choice(session, wish, _share(wish), of) for wish in wishes for of in (None, *wish.groups)]
    _Act(session, statement).require(choices, sum((wish.epsilon for wish in wishes), Fraction(0)))
    found = [measure(session, wish, statement) for wish in wishes]
    return [one for one in found if isinstance(one, Measured)]


def _share(wish: Wish, *, is_unique: bool = False) -> Fraction:
    """Return the part of a price that each of what is measured has."""
    counted = 0 if is_unique else 1 + len(wish.groups)
    return floor_to_nano(wish.epsilon / (len(wish.columns) + counted * (1 + _COUNTS)))


def _suggested(declared: int | None, chosen: int) -> int:
    """Return the bound to suggest: the declared one where another would be little better."""
    is_near = declared is not None and chosen <= _NEAR * declared and declared <= _NEAR * chosen
    return declared if is_near and declared is not None else chosen


class _Act:
    """One act of an owner: what it costs now, what was paid for all that it shows, and on which days."""

    def __init__(self, session: Session, statement: str) -> None:
        self.session, self.statement = session, statement
        self.spent, self.paid, self.days = ZERO, ZERO, list[str]()

    def require(self, releases: Sequence[ReleasePlan], epsilon: Fraction) -> None:
        """Refuse where the budget does not hold the price of all, and not all of these are stored already.

        Raises BudgetExhausted.
        """
        if not self._are_stored(releases):
            refuse_over_cap(self.session.budget(), Charge.pure(math.ceil(epsilon * NANO)))

    def _are_stored(self, releases: Sequence[ReleasePlan]) -> bool:
        store = self.session.dataset.store
        wanted = [(one, number) for one in releases for number in range(len(one.measurements))]
        return all(
            store.lookup(_keys(one, number), one.measures[number].law) is not None for one, number in wanted
        )

    def carry_out(self, releases: Sequence[ReleasePlan]) -> list[ReleasedRows]:
        """Return the releases, under one charge. Raises BudgetExhausted, EngineFailure, LedgerError."""
        privacy = PrivacyParameters(releases[0].measures[0].epsilon, Fraction(0), 1, replace_one=False)
        whole = Plan(releases[0].release, (), frozenset(), tuple(releases), privacy)
        rows, spent = self.session.released(whole, self.statement)
        self.spent = self.spent + spent
        for release in releases:
            for number in range(len(release.measurements)):
                found = self.session.dataset.store.newest(_keys(release, number))
                assert found is not None, "it was stored, or drawn and stored"
                self.days.append(found.at[:10])
                self.paid = self.paid + found.charge
        return rows

    def people(
        self, name: str, bounds: Sequence[int], few: int, epsilon: Fraction, of: str | None
    ) -> tuple[LeftOut, ...]:
        """Return how many rows people have, and what each of some bounds leaves out of them, for epsilon in all.

        `few`: of how many rows it is said that few people have more. `of`: the column whose groups are counted instead.
        """
        policy, catalog = self.session.dataset.under_people(name, of)
        below = [bound for bound in bounds if bound < MAX_CONTRIBUTION]

        def releases(each: Fraction) -> list[ReleasePlan]:
            ladders = (rungs_for(bound, few) for bound in below)
            return [people_between(policy, catalog, name, rungs, of, each) for rungs in ladders]

        halves = releases(
            floor_to_nano(epsilon / 2)
        )  # what there is once the suggested bound is the declared one
        is_stored = self._are_stored(halves)
        self.carry_out(halves if is_stored else releases(floor_to_nano(epsilon / len(below))))
        found = (self.session.dataset.left_out(name, bound, of) for bound in below)
        return tuple(one for one in found if one is not None)


@dataclass(frozen=True)
class _KeyedPlan(ReleasePlan):
    """A release whose numbers are found again by keys of their own, however the statement is printed."""

    keys: tuple[bytes, ...] = ()

    def measure_keys(self, number: int, relation: bytes, keyset: bytes) -> tuple[bytes, ...]:
        return self.keys


def people_between(
    policy: Policy, catalog: Catalog, name: str, rungs: Sequence[int], of: str | None, epsilon: Fraction
) -> _KeyedPlan:
    """Return the release of the people of a table by where their rows, or groups, stand between rungs."""
    keys = people_keys(policy, catalog, name, rungs, of)
    return _keyed(_counts_sql(policy, name, rungs, of), policy, catalog, epsilon, keys)


def _keyed(
    sql: str, policy: Policy, catalog: Catalog, epsilon: Fraction, keys: tuple[bytes, ...]
) -> _KeyedPlan:
    release = _planned(sql, catalog, policy, epsilon)
    return _KeyedPlan(**{one.name: getattr(release, one.name) for one in fields(release)}, keys=keys)


def _keys(release: ReleasePlan, number: int) -> tuple[bytes, ...]:
    return release.measure_keys(number, release.salted(b""), b"")


def _planned(sql: str, catalog: Catalog, policy: Policy, epsilon: Fraction) -> ReleasePlan:
    """Return the one release of a statement that is made here. Raises Refusal."""
    if policy.privacy.time is not None:
        raise Refusal(
            "bounds of one period are not measured yet", sqlstate="0A000",
            hint="choose max_rows by what you know: it is of one person's rows of one period",
        )  # fmt: skip
    privacy = PrivacyParameters.of(policy, epsilon, finds_groups=False)
    (release,) = plan_text(sql, catalog, privacy).releases
    return release


def _rows_each(policy: Policy, name: str, of: str | None = None) -> str:
    """Return SQL for a row n for each person who has rows of a table: how many, or in how many groups of a column."""
    text, by = _with_owners(policy, name)
    key = "" if of is None else f"t0.{identifier(of)}"
    groups = f"COUNT(DISTINCT {key}) + MAX(CASE WHEN {key} IS NULL THEN 1 ELSE 0 END)"
    return f"(SELECT {groups if key else 'COUNT(*)'} AS n FROM {text} GROUP BY {', '.join(by)}) AS p"


def _squares_each(policy: Policy, name: str, column: Column, unit: str | None) -> str:
    """Return SQL for a row n for each person who has rows of a table: the sum of the squares of how many are in each
    of a column's places, those beside its list together; by periods a moment beyond its ends is at these (soundness.md
    1.36)."""
    text, by = _with_owners(policy, name)
    key = f"t0.{identifier(column.name)}"
    if column.values is not None:
        listed = f"{key} IN ({', '.join(literal(Literal(column.type, one)) for one in column.values)})"
    else:
        assert column.bounds is not None, "such a column can have no norm"
        low, high = (literal(Literal(column.type, int(end))) for end in column.bounds)
        listed = f"{key} BETWEEN {low} AND {high}"
        if unit is not None:
            key = f"CASE WHEN {key} < {low} THEN {low} WHEN {key} > {high} THEN {high} ELSE {key} END"
            key, listed = f"date_trunc('{unit}', {key})", "TRUE"
    people = [f"u{number}" for number in range(len(by))]
    owners = ", ".join(f"{one} AS {person}" for one, person in zip(by, people, strict=True))
    places = f"SELECT {owners}, CASE WHEN {listed} THEN {key} END AS place, COUNT(*) AS m FROM {text} "
    places += f"GROUP BY {', '.join(map(str, range(1, len(by) + 2)))}"
    return f"(SELECT SUM(m * m) AS n FROM ({places}) AS c GROUP BY {', '.join(people)}) AS p"


def _with_owners(policy: Policy, name: str) -> tuple[str, list[str]]:
    """Return SQL for a table's rows, t0, joined along the way to their owner, and for the owner's key."""
    path = path_to_owner(policy, name)
    text = f"{_quoted(path[0].name)} AS t0"
    for number, table in enumerate(path[1:], 1):
        unit = path[number - 1].unit
        assert unit is not None
        assert unit.references is not None
        pairs = zip(unit.references[1], unit.columns, strict=True)
        on = " AND ".join(
            f"t{number}.{identifier(key)} = t{number - 1}.{identifier(own)}" for key, own in pairs
        )
        text += f" JOIN {_quoted(table.name)} AS t{number} ON {on}"
    owner = path[-1].unit
    assert owner is not None
    return text, [f"t{len(path) - 1}.{identifier(column)}" for column in owner.columns]


def _counts_sql(policy: Policy, name: str, rungs: Sequence[int], of: str | None = None) -> str:
    """Return the statement of the people of a table by where their rows, or groups, stand between rungs."""
    parts, places = "", ""
    for number, (low, high) in enumerate(zip((0, *rungs), rungs, strict=False)):
        steps = steps_between(rungs) // (high - low)
        parts += f" WHEN n <= {high} THEN {number}"
        places += f" WHEN n <= {high} THEN GREATEST(LEAST(n, {high}) - {low}, 0) * {steps}"
    shown = (
        f"CASE{parts} ELSE {len(rungs)} END AS part, CASE{places} ELSE {steps_between(rungs)} END AS place"
    )
    each = f"(SELECT {shown} FROM {_rows_each(policy, name, of)}) AS q"
    return f"SELECT part, COUNT(*), SUM(place) FROM {each} GROUP BY part"


def _quoted(name: str) -> str:
    """Return a table's name as SQL has it."""
    return table_name(tuple(name.split(".")))


def _choice(
    session: Session, wish: Wish, epsilon: Fraction, of: str | None = None, *, is_squared: bool = False
) -> ReleasePlan:
    """Return the release of one place in the grid, near the one that leaves as many people above it as is best.

    `of`: the column whose groups are counted in place of rows; `is_squared`: what is bounded is the root of the sum of
    the squares of a person's rows by it, or by its periods.
    """
    unit, name = (None, None) if of is None else norm_key(of) if is_squared else (None, of)
    policy, catalog = session.dataset.under_people(wish.table, name)
    if is_squared:
        assert of is not None, "squares are by a column"
        assert name is not None, "a key reads one"
        normed = norms_policy(session.policy, wish.table, ((of, 1),))
        column = session.dataset.catalog_under(normed).tables[wish.table].column(name)
        assert column is not None, "it is declared"
        people = _squares_each(policy, wish.table, column, unit)
    else:
        people = _rows_each(policy, wish.table, of)
    ends = (value * value if is_squared else value for value in GRID[:-1])
    places = " ".join(f"WHEN n <= {end} THEN {place}" for place, end in enumerate(ends))
    each = f"(SELECT CASE {places} ELSE {len(GRID) - 1} END AS place FROM {people}) AS q"
    release = _planned(f"SELECT MAX(place) FROM {each}", catalog, policy, epsilon)
    (largest,) = release.measurements
    assert isinstance(largest, RankMeasurement)
    left = left_above(wish.for_epsilon, session.policy.privacy.together)
    measures = (replace(release.measures[0], measurement=people_above(largest, left)),)
    return replace(release, measures=measures, identity=release.salted(f"left {left}".encode()))


def _ends(session: Session, name: str, column: ColumnPolicy, epsilon: Fraction) -> ReleasePlan:
    """Return the release of the two ends of a column's values; each person weighs what one row does."""
    policy = column_policy(session.policy, name, column)
    catalog = session.dataset.catalog_under(policy)
    found = catalog.tables[name].column(column.name)
    if found is not None and found.type.is_float and column.step is None:
        policy = column_policy(session.policy, name, replace(column, step=_coarse_step(column)))
        catalog = session.dataset.catalog_under(policy)
    ends = ", ".join(
        f"PERCENTILE_DISC({rank}) WITHIN GROUP (ORDER BY {identifier(column.name)})" for rank in (_LOW, _HIGH)
    )
    return _planned(f"SELECT {ends} FROM {_quoted(name)}", catalog, policy, epsilon)


def _coarse_step(column: ColumnPolicy) -> Fraction:
    """Return steps that are fine enough for ends of reals: fewer candidates are chosen from better."""
    low, high = column.bounds or (0, 0)
    assert isinstance(low, Fraction)
    assert isinstance(high, Fraction)
    return _power_of_ten((high - low) / (10 * _STEPS))


def _power_of_ten(number: Fraction) -> Fraction:
    """Return the largest power of ten that is no more than a positive number, but for rounding."""
    return Fraction(10) ** math.floor(math.log10(number))


def _reliable_from(release: ReleasePlan) -> int:
    """Return how many people make what lies outside an end more than its choice may miss by, at 95 %."""
    rows = max(one.law.half_width(_MISSING) for one in release.measures)
    return math.ceil(rows / Fraction(_LOW))


def _read_ends(rows: ReleasedRows, outer: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    """Return the ends of a column as the policy writes them, inside the range that they were looked for in."""
    values, (call, _) = [], rows.plan.release.aggregates
    for formula in rows.plan.formulas:
        assert isinstance(formula, Chosen)
        steps = 0 if formula.coordinate is None else int(rows.values_of(formula.coordinate)[0])
        values.append(steps * formula.step + (formula.constant or 0))
    low, high = sorted(values)  # two choices: they may cross
    if call.type.is_temporal:
        return _moment(low, call.type), _moment(high, call.type)
    first, last = outer
    assert isinstance(first, Fraction)
    assert isinstance(last, Fraction)
    if call.type.is_integer:
        return max(low, first), min(high, last)
    step = _power_of_ten(((high - low) or (last - first)) / _STEPS)
    return max(first, low // step * step), min(last, -(-high // step) * step)


def _moment(value: Fraction, type_: SqlType) -> Bound:
    if type_.kind is Kind.DATE:
        return _EPOCH.date() + timedelta(days=int(value))
    return _EPOCH + timedelta(microseconds=int(value))
