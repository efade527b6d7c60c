"""What answers would be like under other settings: the noise of usual statements, for each epsilon and `max_rows`.

House rules:

1. Everything comes from the policy, the schema and the planner: no row is read, nothing is charged or stored.
2. The noise is that of the plan which the statement would really have, of the law that would be drawn.
3. How many people have more rows than count is told where `dpsql bounds` has measured it, and never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot.tokens import Tokenizer

from ..errors import DpsqlError
from ..plan.dialects.quote import identifier
from ..plan.measures.clip import GRID
from ..plan.measures.formulas import Linear
from ..plan.planner import PrivacyParameters, plan
from ..plan.release_plan import ReleasePlan
from ..policy import Policy
from ..policy.model import ColumnPolicy, Neighbours, TablePolicy
from ..relation.catalog import Catalog
from ..release.left_out import LeftOut
from ..sql.bind_select import bind
from ..sql.scope import BindingContext
from ..sql.statement import AdmittedQuery, parse_statement
from .dataset import Dataset

__all__ = ["EPSILONS", "BenchNoise", "BenchStatement", "bench_statements", "measured_people"]

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
    )
    return plan(bind(query, BindingContext(catalog, query.text, (), 0, {})), catalog, privacy).releases
