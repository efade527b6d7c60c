"""A catalog query's parse tree: Postgres' own forms, before names or types are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

__all__ = [
    "ArrayList",
    "ArrayQuery",
    "Between",
    "CallNode",
    "CaseNode",
    "Cast",
    "Cte",
    "Exists",
    "Expression",
    "FieldNode",
    "FromItem",
    "FunctionItem",
    "In",
    "IsTest",
    "JoinItem",
    "LiteralNode",
    "Name",
    "Operation",
    "Parameter",
    "Quantified",
    "QueryItem",
    "QueryNode",
    "Row",
    "ScalarQuery",
    "Select",
    "SetOperationNode",
    "Slice",
    "SortKey",
    "Star",
    "Subscript",
    "TableItem",
    "TypeName",
    "ValuesNode",
    "WindowNode",
    "children",
    "nodes",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class LiteralNode:
    """A constant: a string without a type yet, a number as it is written, a boolean, or None for NULL."""

    value: str | int | bool | None
    is_decimal: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """$n."""

    number: int


@dataclass(frozen=True, slots=True)
class Name:
    """A column, by one to three names."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Star:
    """* or t.*."""

    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as it is written; `depth`: 1 for an array."""

    name: str
    modifiers: tuple[int, ...] = ()
    depth: int = 0


@dataclass(frozen=True, slots=True)
class SortKey:
    """An item of ORDER BY."""

    expression: Expression
    is_descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class WindowNode:
    """OVER (…)."""

    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class CallNode:
    """A function; `is_bare`: a word without parentheses, as current_user."""

    name: str
    arguments: tuple[Expression, ...] = ()
    is_star: bool = False
    is_distinct: bool = False
    is_bare: bool = False
    order: tuple[SortKey, ...] = ()
    filter: Expression | None = None
    window: WindowNode | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator with one operand (left is None) or two; LIKE and NOT LIKE are `~~` and `!~~`."""

    operator: str
    left: Expression | None
    right: Expression
    escape: Expression | None = None


@dataclass(frozen=True, slots=True)
class Cast:
    """x::type, CAST(x AS type), or type 'text'."""

    expression: Expression
    type: TypeName


@dataclass(frozen=True, slots=True)
class CaseNode:
    """CASE, with or without an operand."""

    operand: Expression | None
    whens: tuple[tuple[Expression, Expression], ...]
    default: Expression | None


@dataclass(frozen=True, slots=True)
class In:
    """x IN (list or query)."""

    expression: Expression
    among: tuple[Expression, ...] | QueryNode
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Quantified:
    """x op ANY (array or query), x op ALL (…)."""

    operator: str
    left: Expression
    right: Expression | QueryNode
    is_all: bool


@dataclass(frozen=True, slots=True)
class Between:
    """x BETWEEN a AND b."""

    expression: Expression
    low: Expression
    high: Expression
    is_negated: bool


@dataclass(frozen=True, slots=True)
class IsTest:
    """IS NULL, TRUE, FALSE, UNKNOWN, or DISTINCT FROM `other`."""

    expression: Expression
    what: str
    is_negated: bool
    other: Expression | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """EXISTS (query)."""

    query: QueryNode


@dataclass(frozen=True, slots=True)
class ScalarQuery:
    """(query) as a value."""

    query: QueryNode


@dataclass(frozen=True, slots=True)
class ArrayQuery:
    """ARRAY(query)."""

    query: QueryNode


@dataclass(frozen=True, slots=True)
class ArrayList:
    """ARRAY[…]."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """(a, b) or ROW(a, b)."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Subscript:
    """x[i]."""

    expression: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Slice:
    """x[i:j]; None: from the first, or to the last."""

    expression: Expression
    first: Expression | None
    last: Expression | None


@dataclass(frozen=True, slots=True)
class FieldNode:
    """(x).name."""

    expression: Expression
    name: str


Expression = (
    LiteralNode
    | Parameter
    | Name
    | Star
    | CallNode
    | Operation
    | Cast
    | CaseNode
    | In
    | Quantified
    | Between
    | IsTest
    | Exists
    | ScalarQuery
    | ArrayQuery
    | ArrayList
    | Row
    | Subscript
    | Slice
    | FieldNode
)


@dataclass(frozen=True, slots=True)
class TableItem:
    """A relation by name."""

    schema: str | None
    name: str
    alias: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryItem:
    """A subquery in FROM; LATERAL or not is the same to a query that Postgres has accepted."""

    query: QueryNode
    alias: str | None
    columns: tuple[str, ...]
    is_lateral: bool


@dataclass(frozen=True, slots=True)
class FunctionItem:
    """A function in FROM."""

    call: CallNode
    alias: str | None
    columns: tuple[str, ...]
    has_ordinality: bool


@dataclass(frozen=True, slots=True)
class JoinItem:
    """Two items joined; `kind`: INNER, LEFT, RIGHT, FULL or CROSS. `using` is None without USING, and for NATURAL."""

    left: FromItem
    right: FromItem
    kind: str
    condition: Expression | None
    using: tuple[str, ...] | None
    is_natural: bool


FromItem = TableItem | QueryItem | FunctionItem | JoinItem


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT; `distinct`: None, () for DISTINCT, or the expressions of DISTINCT ON."""

    distinct: tuple[Expression, ...] | None
    items: tuple[tuple[Expression, str | None], ...]
    from_: tuple[FromItem, ...]
    where: Expression | None
    group: tuple[Expression, ...]
    having: Expression | None


@dataclass(frozen=True, slots=True)
class ValuesNode:
    """VALUES (…), (…)."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class SetOperationNode:
    """UNION, INTERSECT, EXCEPT."""

    operator: str
    is_all: bool
    left: QueryNode
    right: QueryNode


@dataclass(frozen=True, slots=True)
class Cte:
    """A query of WITH."""

    name: str
    columns: tuple[str, ...]
    query: QueryNode


@dataclass(frozen=True, slots=True)
class QueryNode:
    """A query with its WITH, ORDER BY and LIMIT."""

    body: Select | ValuesNode | SetOperationNode | QueryNode
    ctes: tuple[Cte, ...] = ()
    is_recursive: bool = False
    order: tuple[SortKey, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None


def nodes(node: object) -> Iterator[object]:
    """Yield a node and all below it."""
    yield node
    for child in children(node):
        yield from nodes(child)


def children(node: object) -> Iterator[object]:
    """Yield what a node is made of."""
    if isinstance(node, tuple):
        yield from node
    elif is_dataclass(node) and not isinstance(node, type):
        for field in fields(node):
            yield getattr(node, field.name)
