"""Relations that stand above the release alone: series, arrays in rows, lateral joins, recursion.

No engine below the release is ever asked for one of these: the privacy analysis refuses them over people's rows, and
the sealed engine, whose memory and time are limited, is where they run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..errors import Refusal
from .expressions import Expr
from .relations import Change, OutputColumn, Relation
from .types import BIGINT, BOOLEAN, SqlType

__all__ = [
    "MAX_RECURSION", "MAX_ROW_SERIES", "MAX_SERIES", "Lateral", "Recursive", "RecursiveRef", "Series", "Unnest",
]  # fmt: skip

MAX_SERIES = 1_000_000
"""Most rows of one series that the text says."""
MAX_ROW_SERIES = 10_000
"""Most rows of a series that a row says: the engine holds those of 2048 rows at once, outside its memory limit."""
MAX_RECURSION = 1_000_000
"""Most rows that all rounds of a statement's recursions make, before UNION leaves any out: each makes one at least."""


@dataclass(frozen=True)
class Series(Relation):
    """Rows of one column: integers, or microseconds since 1970-01-01 for timestamps, known from the text."""

    values: range | tuple[int, ...]
    type: SqlType
    name: str = field(default="generate_series", compare=False)

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return (OutputColumn(self.type, self.name),)


@dataclass(frozen=True)
class Unnest(Relation):
    """The input's columns, then one of each array's elements, in rows: as many as the longest array has.

    `numbered`: a last column counts the rows of each input row from 1. `outer`: a row of the input whose arrays are
    all empty is kept, with NULL.
    """

    input: Relation
    arrays: tuple[Expr, ...]
    numbered: bool = False
    outer: bool = False

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        elements = [array.type.element for array in self.arrays]
        added = [OutputColumn(element) for element in elements if element is not None]
        return (*self.input.columns, *added, *([OutputColumn(BIGINT, "ordinality")] if self.numbered else []))

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def map_inputs(self, change: Callable[[Relation], Relation]) -> Relation:
        return replace(self, input=change(self.input))

    def map_expressions(self, change: Change) -> Relation:
        return replace(self, arrays=tuple(map(change, self.arrays)))


@dataclass(frozen=True)
class Lateral(Relation):
    """A join whose right side reads the left row, as `Outer` expressions over it.

    `kind`: inner and left have both sides' columns. Others have the left ones and one more: scalar, the value of the
    right side's one row (NULL for none, and for several); any, whether the condition, which is over left's and then
    right's columns, is true for some right row: NULL where it is not, and is NULL for one. `refused`: what is said
    where one side is of people's rows.
    """

    kind: str
    left: Relation
    right: Relation
    condition: Expr
    refused: Refusal = field(compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        if self.kind == "any":
            return (*self.left.columns, OutputColumn(BOOLEAN))
        return (*self.left.columns, *self.right.columns)

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.left, self.right

    def map_inputs(self, change: Callable[[Relation], Relation]) -> Relation:
        return replace(self, left=change(self.left), right=change(self.right))

    def map_expressions(self, change: Change) -> Relation:
        return replace(self, condition=change(self.condition))


@dataclass(frozen=True)
class RecursiveRef(Relation):
    """The rows of the last round, inside the step of the recursion of that number."""

    number: int
    outputs: tuple[OutputColumn, ...]

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.outputs


@dataclass(frozen=True)
class Recursive(Relation):
    """WITH RECURSIVE: `base`, and round by round the rows of `step`; without `all` each row once."""

    number: int
    base: Relation
    step: Relation
    all: bool
    outputs: tuple[OutputColumn, ...]

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.outputs

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.base, self.step

    def map_inputs(self, change: Callable[[Relation], Relation]) -> Relation:
        return replace(self, base=change(self.base), step=change(self.step))
