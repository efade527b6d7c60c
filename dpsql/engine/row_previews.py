"""What tools ask of a table before anything else: its first rows, and whether it is there (soundness.md 1.16).

`SELECT … FROM t LIMIT n`, and all columns of a table without a LIMIT, are answered with these columns and no row,
`SELECT 1 FROM t LIMIT 1` and `SELECT EXISTS (SELECT 1 FROM t)` with the one row that any declared table gives; so is
`SELECT 1 WHERE EXISTS (…)`.

House rules:

1. Decided by the text and the policy alone: what is answered is a relation without the table, and so the same
   whatever the table holds.
2. With a WHERE nothing is answered here, "no row" would be taken for what the rows say; but where the analyst has
   asked for it (`dpsql.grids`), as browsing tools need it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..plan.planner import is_empty_by_text
from ..plan.privacy.analyze import private_rows
from ..relation.catalog import Catalog
from ..relation.expressions import TRUE, Expr, Field
from ..relation.relations import Join, Relation, Values, ends_in, projected, skipped, unordered
from ..sql.plain_rows import Look, look_of
from ..sql.statement import AdmittedQuery
from .answer import RowNote

__all__ = ["RowPreview", "row_preview"]

_WITHOUT_ROWS = RowNote(
    "rows of people are not shown: these are the columns, and no row; COUNT, AVG and other aggregates are answered"
)
_WHATEVER_IS_KEPT = RowNote(
    "rows of people are not shown, whatever WHERE says: no row here is no answer; SET dpsql.grids = off refuses this"
)
_IS_THERE = RowNote(
    "the table is declared, and that is all this says: whether it holds anybody was not looked up"
)


@dataclass(frozen=True, slots=True)
class RowPreview:
    """What stands in a statement's place, and why, for the analyst."""

    relation: Relation
    note: RowNote


def row_preview(
    query: AdmittedQuery, relation: Relation, catalog: Catalog, *, has_grids: bool = False
) -> RowPreview | None:
    """Return what a look at people's rows, or at whether there are any, is answered with; None: it is neither.

    `relation`: what the query is bound to. `has_grids`: also with a WHERE. Raises Refusal, as `private_rows`.
    """
    look = look_of(query.tree)
    if look is None or (look is Look.SOME_ROWS and not has_grids):
        return None
    node = relation
    if look in (Look.EXISTENCE, Look.ONE_ROW):
        node = _asked(relation)
    limits: list[tuple[int | None, int]] = []
    rows = _unordered(node, limits)
    if is_empty_by_text(node) or private_rows(rows, catalog) is None:
        return None
    if look is Look.EXISTENCE:
        return None if _skips(limits) else RowPreview(_one_row((TRUE,), relation), _IS_THERE)
    if look is Look.SOME_ROWS:
        return RowPreview(Values((), relation.columns), _WHATEVER_IS_KEPT)
    if look is Look.ALL_ROWS:
        return RowPreview(Values((), relation.columns), _WITHOUT_ROWS) if _has_all(relation) else None
    constants = _constants(relation, len(relation.columns))
    if look is Look.ONE_ROW:
        is_there = constants and not is_empty_by_text(relation) and not _skips(limits)
        return RowPreview(_one_row(constants, relation), _IS_THERE) if is_there else None
    if constants and all(count in (1, None) for count, _ in limits[:1]) and not _skips(limits):
        return RowPreview(_one_row(constants, relation), _IS_THERE)
    return RowPreview(Values((), relation.columns), _WITHOUT_ROWS)


def _asked(relation: Relation) -> Relation:
    """Return the rows that an EXISTS asks for: what the text says is one, `look_of` has seen."""
    relation = skipped(relation, "where", "having", "outputs", "limit")
    assert isinstance(relation, Join)
    return relation.right


def _unordered(node: Relation, limits: list[tuple[int | None, int]]) -> Relation:
    """Return a query's rows without their order and limits; these are added to `limits`, the outermost first."""
    if ends_in(node, "orders", "limit"):
        limits += [] if node.limit is None else [node.limit]
        return _unordered(node.below, limits)
    return node.over(_unordered(node.below, limits)) if ends_in(node, "outputs") else node


def _has_all(relation: Relation) -> bool:
    """Say whether the outputs are all columns of what is read, by their names there."""
    node = unordered(relation)
    if not ends_in(node, "outputs") or node.outputs is None:
        return True
    shown = {node.below.columns[expr.index].name for expr in node.outputs if isinstance(expr, Field)}
    return {column.name for column in node.below.columns if column.name} <= shown


def _skips(limits: list[tuple[int | None, int]]) -> bool:
    return any(offset for _, offset in limits)


def _constants(node: Relation, count: int) -> tuple[Expr, ...]:
    """Return what a query says of every row, if that is constants alone; else nothing."""
    node = unordered(node)
    said = node.exprs[:count] if ends_in(node, "outputs") else ()
    return said if all(expr.is_constant for expr in said) else ()


def _one_row(values: tuple[Expr, ...], relation: Relation) -> Relation:
    return projected(Values(((),), ()), values, (column.name for column in relation.columns))
