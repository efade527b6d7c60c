"""A block is taken apart as it was put together: its parts in SQL's order, and none of them lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dpsql.relation.expressions import Call, Expr, Field, Literal
from dpsql.relation.relations import (
    PARTS,
    AggregateCall,
    Block,
    Group,
    Order,
    OutputColumn,
    Relation,
    SetOperation,
    Values,
    WindowCall,
    filtered,
    grouped,
    limited,
    ordered,
    projected,
    renamed,
    unordered,
    windowed,
    without_repeats,
)
from dpsql.relation.types import BIGINT, BOOLEAN, INTEGER

ROWS = Values((), (OutputColumn(INTEGER, "a"), OutputColumn(INTEGER, "b")))
COUNT = AggregateCall(BIGINT, "count", (), False, None)
FIRST = Field(INTEGER, 0)


def _windows(rows: Relation) -> Block:
    return windowed(rows, (WindowCall(BIGINT, "row_number", (), (rows.row[0],), (), None),))


STEPS: dict[str, Callable[[Relation], Block]] = {
    "where": lambda rows: filtered(rows, Call(BOOLEAN, "is_null", (rows.row[0],))),
    "group": lambda rows: grouped(rows, Group((rows.row[0],), (COUNT,), ((0,),))),
    "windows": _windows,
    "outputs": lambda rows: projected(rows, (rows.row[-1], rows.row[0]), ("x", "y")),
    "distinct": without_repeats,
    "orders": lambda rows: ordered(rows, (Order(rows.row[0], False, False),)),
    "limit": lambda rows: limited(rows, 3, 1),
}


def steps_of(node: Relation) -> list[str]:
    """Return the steps that a relation is made of, the first one first."""
    found: list[str] = []
    while isinstance(node, Block):
        found.insert(0, node.last)
        node = node.below
    return found


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=8))
def test_what_is_put_on_is_taken_off_again(names: list[str]) -> None:
    node, below = ROWS, list[Relation]()
    for name in names:
        below.append(node)
        node = STEPS[name](node)
        assert node.below == below[-1]
        assert len(node.columns) == len(replace(node).columns)  # of the fields alone, too
        assert replace(node).below == below[-1]
        assert node.over(below[-1]) is node
        assert replace(node).over(replace(node).below) == node
    written = [
        "having" if name == "where" and names[i - 1 : i] == ["group"] else name
        for i, name in enumerate(names)
    ]
    assert steps_of(node) == written


@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=8))
def test_the_parts_of_one_block_stand_in_the_order_of_sql(names: list[str]) -> None:
    node: Relation = ROWS
    for name in names:
        node = STEPS[name](node)
    while isinstance(node, Block):
        places = [PARTS.index(part) for part, _ in node.parts]
        assert places == sorted(set(places))
        assert [one.last for one in node.steps] == [part for part, _ in node.parts]
        node = node.input


def test_a_select_is_one_block() -> None:
    node: Relation = ROWS
    for name in ("where", "group", "where", "windows", "outputs", "distinct", "orders", "limit"):
        node = STEPS[name](node)
    assert isinstance(node, Block)
    assert node.input is ROWS
    assert [part for part, _ in node.parts] == list(PARTS)
    assert steps_of(unordered(node)) == ["where", "group", "having", "windows", "outputs", "distinct"]


def test_a_column_is_followed_to_where_it_comes_from() -> None:
    node = STEPS["outputs"](STEPS["windows"](STEPS["where"](ROWS)))
    assert node.origin(0) == (node.below, 2)
    assert node.below.origin(2) is None  # what a window call makes
    assert node.origin(1) == (node.below, 0)
    assert STEPS["group"](ROWS).origin(0) is None
    assert [column.name for column in renamed(node, ("m", "n")).columns] == ["m", "n"]


def test_expressions_that_stay_as_they_are_leave_the_block_as_it_is() -> None:
    node = STEPS["limit"](STEPS["outputs"](STEPS["group"](STEPS["where"](ROWS))))
    assert node.map_expressions(lambda expr: expr) is node

    def zero(expr: Expr) -> Expr:
        return Literal(expr.type, 0) if isinstance(expr, Field) else expr

    changed = node.map_expressions(zero)
    assert changed.limit == node.limit
    assert changed.outputs == (Literal(BIGINT, 0), Literal(INTEGER, 0))
    assert changed.below == replace(changed, limit=None, parts=changed.parts[:-1])


def _united(left: Relation, right: Relation, kind: str = "union") -> SetOperation:
    return SetOperation(kind, True, left, right, ROWS.columns)


def test_unions_of_the_same_types_are_one_list() -> None:
    """What is no UNION ALL, or has another type somewhere, is a leaf; other leaves take the same places."""
    one, two, three = (Values(((Literal(INTEGER, i),) * 2,), ROWS.columns) for i in range(3))
    other = Values((), (OutputColumn(BIGINT, "a"), OutputColumn(INTEGER, "b")))
    less, wider = _united(two, three, "except"), replace(_united(other, other), outputs=other.columns)
    tree = _united(_united(one, less), _united(_united(wider, two), three))
    assert tree.leaves == (one, less, wider, two, three)
    assert less.leaves == (two, three)
    assert replace(tree, all=False).leaves == (tree.left, tree.right)
    columns = (OutputColumn(BIGINT, "n"),)
    moved = [Values(((Literal(BIGINT, i),),), columns) for i in range(5)]
    again = tree.over_leaves(moved, columns)
    assert again.leaves == tuple(moved)
    assert isinstance(again.right, SetOperation)
    assert again.right.columns == columns
