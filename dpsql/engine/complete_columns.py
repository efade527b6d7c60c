"""Columns that are complete, as the owner says: how many rows have another value, counted over all rows for the owner.

What the owner says costs correctness alone: no noise, charge or filter rests on it (soundness.md 1.34). Which values
they are is never read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ..backends import Snapshot
from ..plan.dialects import Dialect, dialect_of
from ..plan.privacy.axes import spelled
from ..policy import LiveSchema
from ..relation.catalog import Catalog, Column, Scalar
from ..relation.expressions import Literal
from ..relation.types import Kind

__all__ = ["Complete", "look_at_columns"]


@dataclass(frozen=True, slots=True)
class Complete:
    """A complete column: of `rows`, `others` have a value that is not listed, or out of bounds, or an unlisted NULL."""

    table: str
    column: str
    rows: int
    others: int


def look_at_columns(catalog: Catalog, live: LiveSchema, snapshot: Snapshot) -> Iterator[Complete]:
    """Yield what every complete column of people's tables is, over all rows. An owner's act. Raises EngineFailure."""
    dialect = dialect_of(live.dialect, live.case_collation)
    for name, table in catalog.tables.items():
        columns = [column for column in table.columns if column.is_complete and table.unit is not None]
        if not columns:
            continue
        counts = ", ".join(f"COUNT(CASE WHEN {_is_told(column, dialect)} THEN 1 END)" for column in columns)
        sql = f"SELECT COUNT(*), {counts} FROM {dialect.path(live.place_of(name))}"
        ((rows, *told),) = (row for chunk in snapshot.run(sql) for row in chunk)
        for column, number in zip(columns, told, strict=True):
            yield Complete(name, column.name, int(rows), int(rows) - int(number))


def _is_told(column: Column, dialect: Dialect) -> str:
    """Return the test that a value is one of a column's."""
    read = dialect.stored(dialect.identifier(column.name), column.type)
    shown = dialect.bytewise(read) if column.type.kind is Kind.TEXT else read

    def literal(value: Scalar) -> str:
        exact = spelled(value, column.type)
        whole = int(exact) if isinstance(exact, Fraction) and column.type.is_temporal else exact
        return dialect.literal(Literal(column.type, whole))

    if column.values is None:
        assert column.bounds is not None, "the policy says of what it is complete"
        low, high = map(literal, column.bounds)
        return f"{shown} BETWEEN {low} AND {high}"
    listed = [f"{shown} IN ({', '.join(literal(one) for one in column.values if one is not None)})"]
    return " OR ".join([*listed, *([f"{read} IS NULL"] if None in column.values else [])])
