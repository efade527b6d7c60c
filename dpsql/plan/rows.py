"""The two kinds of relation (design.md 3): private rows, and everything else, which is public.

House rules:

1. A `Private` relation cannot be printed, iterated or compared by a user: its repr says only that it
   is private. What it holds is a plan, not data, but nothing above the door has a use for it.
2. `Release` is the one door. It is built by `judge` alone; its rows are noisy or declared, never exact.
3. `Private` is a select block over one source: the rows of a table that pass `predicate`, with one
   owner each. Every rule of `judge` maps such a block to such a block, so that
   N(D) = ⊎_u N_u(D_u, Pub) holds by construction (soundness.md I1): a row's owner and content depend
   on that one row and on constants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from ..relation.catalog import Table
from ..relation.expressions import Expr
from ..relation.relations import AggregateCall, OutputColumn, Relation

__all__ = ["Private", "Release"]


@dataclass(frozen=True, slots=True, repr=False)
class Private:
    """Rows owned by privacy units: of `table`, where all of `predicate` hold, as `outputs`.

    Expressions are over the table's declared columns and then its hidden owner column.
    """

    table: Table
    predicate: tuple[Expr, ...]
    outputs: tuple[Expr, ...]
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return "Private(…)"

    @property
    def owner(self) -> int:
        """The position of the hidden owner column among the table's columns."""
        return len(self.table.columns)


@dataclass(frozen=True)
class Release(Relation):
    """Noisy aggregates of private rows by keys: output is the keys, then the aggregates.

    `share`: this release's part of the query block it came from, as (part, whole): a grouping set
    that one unit may touch with C_s of the block's C_total groups has (C_s, C_total), amendments.md f.
    """

    table: Table
    predicate: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    share: tuple[int, int]
    names: tuple[str, ...] = field(compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[OutputColumn, ...]:
        types = [*(key.type for key in self.keys), *(call.type for call in self.aggregates)]
        return tuple(OutputColumn(t, n) for t, n in zip(types, self.names, strict=True))
