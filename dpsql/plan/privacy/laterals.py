"""LATERAL over one person's rows, as a join with what each person's rows are numbered by (soundness.md 1.13).

    p CROSS JOIN LATERAL (SELECT v.fee FROM visit v WHERE v.person_id = p.id ORDER BY v.no DESC LIMIT 2) l
    ->  p JOIN (SELECT fee, person_id, row_number() OVER (PARTITION BY person_id ORDER BY no DESC) AS i FROM visit) l
        ON l.person_id = p.id AND l.i <= 2

House rule: the right side reads the left row in equalities alone, each of them of a column of its own. Which rows those
of a left row are is then a matter of these columns, and so are their numbers.
"""

from __future__ import annotations

from ...errors import Refusal
from ...relation.expressions import (
    Call,
    Expr,
    Field,
    Literal,
    conjunction,
    conjuncts,
    fields_of,
    moved,
    substitute,
)
from ...relation.relations import (
    Join,
    Lateral,
    Order,
    Relation,
    Scan,
    WindowCall,
    all_parts,
    ends_in,
    filtered,
    projected,
    windowed,
)
from ...relation.types import BIGINT, BOOLEAN
from ...sql.attach import Opened, Outer, open_query, outer_in

__all__ = ["as_join"]


def as_join(node: Lateral) -> Relation | None:
    """Return a lateral join as a join; None: nobody owns its right side's rows, or it reads more of the left row."""
    has_owners = (isinstance(part, Scan) and part.table.unit is not None for part in all_parts(node.right))
    if node.kind not in ("inner", "left") or not any(has_owners):
        return None
    shown: tuple[Expr, ...] = node.right.row
    rows, limit = node.right, None
    orders: tuple[Order, ...] = ()
    if ends_in(rows, "outputs") and ends_in(rows.below, "limit"):
        shown, rows = rows.exprs, rows.below
    if ends_in(rows, "limit"):
        limit, rows = rows.limit, rows.below
    if ends_in(rows, "orders"):
        orders, rows = rows.orders, rows.below
    try:
        opened = open_query(rows, exists=False)
    except Refusal:
        return None
    pairs = [_sides(term) for term in opened.conditions]
    if not pairs or None in pairs or any(map(outer_in, opened.outputs)):
        return None
    return _joined(node, opened, [pair for pair in pairs if pair is not None], orders, limit, shown)


def _sides(term: Expr) -> tuple[Expr, Outer] | None:
    """Return the right side's and the left row's side of an equality of the two; None: it is something else."""
    if term.calls("eq"):
        for own, other in (term.args, term.args[::-1]):
            if isinstance(other, Outer) and fields_of(own) and not outer_in(own):
                return own, other
    return None


def _joined(
    node: Lateral, opened: Opened, pairs: list[tuple[Expr, Outer]], orders: tuple[Order, ...],
    limit: tuple[int | None, int] | None, shown: tuple[Expr, ...],
) -> Relation:  # fmt: skip
    keys = tuple(dict.fromkeys(own for own, _ in pairs))
    relation, position = opened.relation, node.position
    if limit is not None:
        count, offset = limit
        written = tuple(order.map(lambda expr: substitute(expr, opened.outputs)) for order in orders)
        number = Field(BIGINT, len(relation.columns))
        relation = windowed(
            relation,
            (WindowCall(BIGINT, "row_number", (), keys, written, None, position=position),),
            position,
        )
        ends = [("le", offset + count)] if count is not None else []
        ends += [("gt", offset)] if offset else []
        kept = tuple(Call(BOOLEAN, name, (number, Literal(BIGINT, end))) for name, end in ends)
        relation = filtered(relation, conjunction(kept), position) if kept else relation
    width, own_width = len(node.left.columns), len(opened.outputs)
    right = projected(relation, (*opened.outputs, *keys), position=position)

    links = [
        Call(
            BOOLEAN,
            "eq",
            (Field(own.type, width + own_width + keys.index(own)), other.expr),
            position=position,
        )
        for own, other in pairs
    ]
    columns = tuple(moved(expr, lambda index: width + index) for expr in shown)
    row = (*node.left.row, *columns)
    condition = conjunction((*links, *conjuncts(substitute(node.condition, row))))
    joined = Join(node.kind, node.left, right, condition, position=position)
    names = [column.name for column in node.columns]
    return projected(joined, row, names, position)
