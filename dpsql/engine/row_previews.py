"""What tools ask of a table before anything else: its first rows, and whether it is there (soundness.md 1.16).

`SELECT … FROM t LIMIT n`, and all columns of a table without a LIMIT, are answered with these columns and no row,
`SELECT 1 FROM t LIMIT 1` and `SELECT EXISTS (SELECT 1 FROM t)` with the one row that any declared table gives; so is
`SELECT 1 WHERE EXISTS (…)`.

House rules:

1. Decided by the text and the policy alone: what is answered is a relation without the table, and so the same
   whatever the table holds.
2. With a WHERE nothing is answered here, "no row" would be taken for what the rows say; but where the analyst has
   asked for it (`dpsql.grids`), as browsing tools need it.
3. The form is read first (`look_of`), which changes nothing of the tree; a form that is not surely one of these is
   none. Whose rows they are is asked then.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from sqlglot import exp

from ..plan.planner import is_empty_by_text
from ..plan.privacy.analyze import private_rows
from ..records import dataclass
from ..relation.catalog import Catalog
from ..relation.expressions import TRUE, Expr, Field
from ..relation.relations import Join, Relation, Values, ends_in, projected, skipped, unordered
from ..sql.scope import fold_name
from ..sql.statement import AdmittedQuery, expression_of
from .answer import RowNote

# --- queries that look at a table's rows as they are, by their text -----------------------------------------


class Look(enum.Enum):
    """What a query looks at."""

    ROWS = "rows of a table, or a constant for each, within a LIMIT"
    ALL_ROWS = "columns of all rows of a table"
    SOME_ROWS = "columns of the rows of a table that a condition keeps"
    EXISTENCE = "whether a table has rows"
    ONE_ROW = "one row where a table has rows"


_CLAUSES = frozenset({"expressions", "from_", "where", "order", "limit", "offset", "with_"})
"""What a query of a table's plain rows may be made of."""
_NOT_PLAIN = (exp.AggFunc, exp.Anonymous, exp.Explode, exp.Query, exp.Window)
_ROWS_OF_ITEMS = (exp.AggFunc, exp.Anonymous, exp.Explode, exp.Window)
"""What may make another number of rows than one of a query without a table."""
_NESTED = 8
"""Most subqueries in FROM around a table."""


def look_of(tree: exp.Expr) -> Look | None:
    """Return what a whole statement looks at; None: it asks for something else."""
    select = _bare(tree)
    if not isinstance(select, exp.Select):
        return None
    if _is_one_row(select):
        return Look.ONE_ROW
    if select.args.get("from_") is None:
        return Look.EXISTENCE if _asks_existence(select) else None
    if not _is_plain(select, {}, _NESTED):
        is_kept = _is_plain(select, {}, _NESTED, any_where=True) and _has_columns_alone(select)
        return Look.SOME_ROWS if is_kept else None
    if _is_limited(select):
        return Look.ROWS
    inner = (one for one in select.find_all(exp.Select) if one is not select)
    is_whole = all(isinstance(item, exp.Star) for one in inner for item in one.args["expressions"])
    return Look.ALL_ROWS if is_whole and _has_columns_alone(select) else None


def _has_columns_alone(select: exp.Select) -> bool:
    items = [
        item.args["this"] if isinstance(item, exp.Alias) else item for item in select.args["expressions"]
    ]
    return all(isinstance(item, (exp.Star, exp.Column)) for item in items)


def _bare(node: exp.Expr) -> exp.Expr:
    """Return a query out of its parentheses."""
    while isinstance(node, exp.Subquery) and not _given(node) - {"this", "alias"}:
        node = node.args["this"]
    return node


def _given(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value is not None and value != []}


def _asks_existence(select: exp.Select) -> bool:
    items = select.args["expressions"]
    if len(items) != 1 or _given(select) - {"expressions"}:
        return False
    return _is_existence(items[0].args["this"] if isinstance(items[0], exp.Alias) else items[0])


def _is_one_row(select: exp.Select) -> bool:
    """Say whether a query is of no table or of one row without a table, under the condition that EXISTS is."""
    where, from_ = select.args.get("where"), select.args.get("from_")
    if where is None or _given(select) - {"expressions", "from_", "where", "limit"}:
        return False
    source = None if from_ is None else from_.args["this"]
    inner = _bare(source) if isinstance(source, exp.Subquery) else None
    is_single = (
        isinstance(inner, exp.Select) and _given(inner) == {"expressions"} and not inner.find(*_ROWS_OF_ITEMS)
    )
    return (source is None or is_single) and _is_existence(where.args["this"])


def _is_existence(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren):
        node = node.args["this"]
    return isinstance(node, exp.Exists) and _is_plain(_bare(node.args["this"]), {}, _NESTED)


def _is_limited(select: exp.Select) -> bool:
    clause = select.args.get("limit")
    written = clause.args.get("expression") if isinstance(clause, exp.Limit) else clause
    return written is not None and not isinstance(written, (exp.Var, exp.Null))


def _is_plain(node: exp.Expr, ctes: Mapping[str, exp.Expr], depth: int, *, any_where: bool = False) -> bool:
    """Say whether a query is of one named table's rows as they are, whichever of their columns; `any_where`: or of
    those that its own condition keeps."""
    select = _bare(node)
    if not isinstance(select, exp.Select) or _given(select) - _CLAUSES or not depth:
        return False
    with_ = select.args.get("with_")
    for cte in with_.args["expressions"] if with_ is not None else ():
        ctes = {**ctes, fold_name(cte.args["alias"].args["this"])[0]: cte.args["this"]}
    order, where = select.args.get("order"), select.args.get("where")
    written = [*select.args["expressions"], *([] if order is None else [order])]
    if any(part.find(*_NOT_PLAIN) for part in written):
        return False
    if where is not None and not any_where and not _is_always_true(where.args["this"]):
        return False
    source = select.args["from_"].args["this"] if select.args.get("from_") is not None else None
    if isinstance(source, exp.Table) and isinstance(source.args["this"], exp.Identifier):
        known = None if source.args.get("db") else ctes.get(fold_name(source.args["this"])[0])
        return not source.args.get("joins") and (known is None or _is_plain(known, {}, depth - 1))
    if isinstance(source, exp.Subquery):
        return not source.args.get("joins") and _is_plain(source.args["this"], ctes, depth - 1)
    return False


def _is_always_true(node: exp.Expr) -> bool:
    """Say whether a condition is TRUE, or an equality of a literal with itself, as programs write it."""
    while isinstance(node, exp.Paren):
        node = node.args["this"]
    if isinstance(node, exp.Boolean):
        return bool(node.args["this"])
    if not isinstance(node, exp.EQ):
        return False
    left, right = node.args["this"], node.args["expression"]
    return isinstance(left, exp.Literal) and left == right


def without_places(query: AdmittedQuery, catalog: Catalog) -> AdmittedQuery:
    """Return a look at a table's rows with NULL for the `ctid` that DataGrip's grid asks for beside `*`.

    Rows have no place here that could be told. Elsewhere `ctid` is what it is named, a column or nothing.
    """
    select = _bare(query.tree)
    if not isinstance(select, exp.Select):
        return query
    items = select.args["expressions"]
    places = [place for place, item in enumerate(items) if _is_place(item)]
    if not places or not any(item.is_star for item in items) or look_of(query.tree) not in _GRIDS:
        return query
    source, with_ = select.args["from_"].args["this"], select.args.get("with_")
    alias = source.args.get("alias")
    is_bare = isinstance(source, exp.Table) and with_ is None and not (alias and alias.args.get("columns"))
    known = (column.name for table in catalog.everything.values() for column in table.columns)
    if not is_bare or PLACE in known:
        return query
    tree = query.tree.copy()
    for place in places:
        _bare(tree).args["expressions"][place].replace(expression_of(f"NULL::text AS {PLACE}").copy())
    return AdmittedQuery(tree, query.text)


PLACE = "ctid"
"""What DataGrip's grid names a row's place."""
_GRIDS = (Look.ROWS, Look.ALL_ROWS, Look.SOME_ROWS)


def _is_place(item: exp.Expr) -> bool:
    name = item.args["this"] if isinstance(item, exp.Column) else None
    return isinstance(name, exp.Identifier) and fold_name(name)[0] == PLACE


# --- what tools ask of a table before anything else ---------------------------------------------------------


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
