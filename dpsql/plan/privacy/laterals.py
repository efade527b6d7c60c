"""LATERAL over one person's rows, as a join with what each person's rows are numbered by (soundness.md 1.13).

    p CROSS JOIN LATERAL (SELECT v.fee FROM visit v WHERE v.person_id = p.id ORDER BY v.no DESC LIMIT 2) l
    ->  p JOIN (SELECT fee, person_id, row_number() OVER (PARTITION BY person_id ORDER BY no DESC) AS i FROM visit) l
        ON l.person_id = p.id AND l.i <= 2

    p CROSS JOIN LATERAL (SELECT max(v.fee) AS most, count(*) AS n FROM visit v WHERE v.person_id = p.id) l
    ->  p LEFT JOIN (SELECT person_id, max(fee), count(*) FROM visit GROUP BY person_id) l ON l.person_id = p.id,
        with coalesce(l.count, 0)

House rules:

1. The right side reads the left row in equalities alone, each of them of a column of its own. Which rows those of a
   left row are is then a matter of these columns, and so are their numbers and their groups.
2. An aggregate without GROUP BY is a row of no rows too: a count is 0 there, all else NULL, as a LEFT JOIN has it.
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import Refusal
from ...relation.expressions import (
    TRUE,
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
    AggregateCall,
    Group,
    Join,
    Lateral,
    Order,
    Relation,
    Scan,
    WindowCall,
    all_parts,
    ends_in,
    filtered,
    grouped,
    projected,
    windowed,
)
from ...relation.types import BIGINT, BOOLEAN
from ...sql.attach import Opened, Outer, open_query, outer_in, project_onto


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
    if ends_in(rows, "outputs") and ends_in(rows.below, "having", "group"):
        exprs, rows = rows.exprs, rows.below
        shown = project_onto(shown, exprs)
        orders = tuple(order.map(lambda expr: project_onto((expr,), exprs)[0]) for order in orders)
    having: tuple[Expr, ...] = ()
    if ends_in(rows, "having") and ends_in(rows.below, "group"):
        having, rows = conjuncts(rows.predicate), rows.below
    group, below = (rows.group, rows.below) if ends_in(rows, "group") else (None, rows)
    try:
        opened = open_query(below, exists=False)
    except Refusal:
        return None
    sides = [_sides(term) for term in opened.conditions]
    pairs = [pair for pair in sides if pair is not None]
    if not pairs or len(pairs) < len(sides) or any(map(outer_in, (*opened.outputs, *having))):
        return None
    if group is not None:
        is_one_row = group.is_one_row
        if is_one_row and (having or limit not in (None, (1, 0)) or node.condition != TRUE):
            return None
        if group.groupings or not (is_one_row or group.sets == (tuple(range(len(group.keys))),)):
            return None
        if any(own.type.is_float != outer.type.is_float for own, outer in pairs):
            return None  # two groups could equal one value
        opened, pairs = _grouped(opened, pairs, group, having)
        if is_one_row:
            row = (_counted(call, i) for i, call in enumerate(group.aggregates))
            shown, node = project_onto(shown, tuple(row)), replace(node, kind="left")
            limit, orders = None, ()
    return _joined(node, opened, pairs, orders, limit, shown)


_Pair = tuple[Expr, Outer]
"""The right side's and the left row's side of an equality of the two."""


def _grouped(
    opened: Opened, pairs: list[_Pair], group: Group, having: tuple[Expr, ...]
) -> tuple[Opened, list[_Pair]]:
    """Return the groups that each left row's rows are, as rows of their own, and their sides of the equalities."""
    by = tuple(dict.fromkeys(own for own, _ in pairs))
    group = group.map(lambda expr: project_onto((expr,), opened.outputs)[0])
    keys = (*group.keys, *by)
    whole = Group(keys, group.aggregates, (tuple(range(len(keys))),), names=("",) * len(keys))
    made = grouped(opened.relation, whole)
    row = (*made.row[: len(group.keys)], *made.row[len(keys) :])
    if having:
        made = filtered(made, project_onto((conjunction(having),), row)[0])
    own_side = {own: made.row[len(group.keys) + i] for i, own in enumerate(by)}
    return Opened(made, row, ()), [(own_side[own], outer) for own, outer in pairs]


def _counted(call: AggregateCall, index: int) -> Expr:
    """Return a column of the right side's one row, over the columns of a LEFT JOIN."""
    field = Field(call.type, index)
    return Call(call.type, "coalesce", (field, Literal(call.type, 0))) if call.function == "count" else field


def _sides(term: Expr) -> _Pair | None:
    """Return both sides of an equality; None: it is something else."""
    if term.calls("eq"):
        for own, other in (term.args, term.args[::-1]):
            if isinstance(other, Outer) and fields_of(own) and not outer_in(own):
                return own, other
    return None


def _joined(
    node: Lateral, opened: Opened, pairs: list[_Pair], orders: tuple[Order, ...],
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
