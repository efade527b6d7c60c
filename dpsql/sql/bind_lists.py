"""`= ANY (list)` and `<> ALL (list)`: what drivers make of a list, as IN and NOT IN of its constants."""

from __future__ import annotations

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import FALSE, Call, Expr, Literal
from ..relation.functions import FUNCTIONS, common_type
from ..relation.types import BOOLEAN, Kind
from .bind_expression import Binder, call, cast
from .bind_lateral import compared_rows
from .comparison import compare_in
from .constants import coerce_literal
from .literals import parameter_literal
from .parameters import Awaited
from .types import cast_target

__all__ = ["array_items", "bind_equal", "bind_order_of", "bind_unequal", "has_value", "list_items"]

MAX_ITEMS = 1_000
"""Most items of a list that is one constant."""


def bind_equal(binder: Binder, node: exp.Expr) -> Expr:
    """Return `x = y`, or `x = ANY (list)` as `x IN (its items)`."""
    compared = compared_rows(binder, node, "eq")
    if compared is not None:
        return compared
    inside = _in_array(binder, node)
    if inside is not None:
        return inside
    items = _list_of(binder, node, exp.EQ)
    if items is None:
        return _compared(binder, node, "eq")
    return _in(binder, node, items)


def _in_array(binder: Binder, node: exp.Expr) -> Expr | None:
    """Return `x = ANY (q)` for an array that is a column; None: it is none."""
    right = node.args["expression"]
    inner = right.args["this"] if isinstance(right, exp.Any) else None
    while isinstance(inner, exp.Paren):
        inner = inner.args["this"]
    if not isinstance(inner, exp.Column):
        return None
    array = binder.bind(inner)
    if array.type.kind is not Kind.ARRAY:
        return None
    return has_value(array, binder.bind(node.args["this"]), binder.position(node))


def has_value(array: Expr, value: Expr, position: Position | None, name: str = "array_has") -> Expr:
    """Return a call of an array and a value, which is read as its elements are."""
    element = array.type.element
    assert element is not None
    value = coerce_literal(value, element)
    if value.type != element and common_type([element, value.type]) == element:
        value = cast(value, element, position)
    return call(name, [array, value], position, said="= ANY" if name == "array_has" else name)


def bind_unequal(binder: Binder, node: exp.Expr) -> Expr:
    """Return `x <> y`, or `x <> ALL (list)` as `x NOT IN (its items)`."""
    compared = compared_rows(binder, node, "ne")
    if compared is not None:
        return compared
    items = _list_of(binder, node, exp.NEQ)
    if items is None:
        return _compared(binder, node, "ne")
    inside = _in(binder, node, items)
    return Call(BOOLEAN, "not", (inside,), position=inside.position)


def bind_order_of(binder: Binder, node: exp.Expr) -> Expr:
    """Return `x < y` and its like, of values, rows of values, or a value and what a query has."""
    name = _ORDERED[type(node)]
    found = compared_rows(binder, node, name)
    if found is not None:
        return found
    args = [binder.bind(node.args["this"]), binder.bind(node.args["expression"])]
    return call(name, args, binder.position(node), said=FUNCTIONS[name].symbol)


_ORDERED: dict[type[exp.Expr], str] = {exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge"}


def _compared(binder: Binder, node: exp.Expr, name: str) -> Expr:
    args = [binder.bind(node.args["this"]), binder.bind(node.args["expression"])]
    return call(name, args, binder.position(node), said="=" if name == "eq" else "<>")


def _in(binder: Binder, node: exp.Expr, items: list[Expr]) -> Expr:
    """Return whether the left side is one of the items; of none, nothing is, not even NULL."""
    position = binder.position(node)
    value = binder.bind(node.args["this"])
    if not items:
        return FALSE
    bound = call("in", [value, *items], position, said="ANY")
    assert isinstance(bound, Call)
    return compare_in(bound.args[0], list(bound.args[1:]), position)


def _list_of(binder: Binder, node: exp.Expr, kind: type[exp.Expr]) -> list[Expr] | None:
    """Return the items of the list on the right of `= ANY` or `<> ALL`; None where no list stands there.

    Raises:
        Refusal: 0A000 for the two words the other way round, PV202 for a list that is no constant.
    """
    right = node.args["expression"]
    is_any = isinstance(right, exp.Any)
    is_all = isinstance(right, exp.Anonymous) and str(right.args["this"]).lower() == "all"
    if not (is_any or is_all or isinstance(right, exp.All)):
        return None
    if is_any is not (kind is exp.EQ):
        raise Refusal(
            "a list stands after = ANY or <> ALL", sqlstate="0A000", position=binder.position(node),
            hint="write x = ANY (list) for any of it, x <> ALL (list) for none of it",
        )  # fmt: skip
    written = right.args["expressions"] if is_all else [right.args["this"]]
    inner = written[0] if len(written) == 1 else None
    while isinstance(inner, exp.Paren):
        inner = inner.args["this"]
    if inner is None or isinstance(inner, (exp.Subquery, exp.Select)):
        raise Refusal(
            "ANY and ALL take a list here, not a query", sqlstate="0A000", position=binder.position(node),
            hint="write x IN (SELECT …) or x NOT IN (SELECT …)",
        )  # fmt: skip
    return list_items(binder, inner)


def list_items(binder: Binder, node: exp.Expr) -> list[Expr]:
    """Return the constants of a list: ARRAY[…], a parameter that is a list, or text such as '{a,b}', cast or not.

    Raises:
        Refusal: PV202 for what is no constant list, 22023 for text that is not written as one.
    """
    position = binder.position(node)
    if isinstance(node, exp.Array):
        items = [binder.bind(item) for item in node.args["expressions"]]
        if not all(isinstance(item, Literal) for item in items):
            raise Refusal("this list is to hold literals", sqlstate="PV202", position=position)
        return items
    if isinstance(node, exp.Cast):
        to = node.args["to"]
        inner = to.args.get("expressions") or []
        if getattr(to.args.get("this"), "name", "") != "ARRAY" or len(inner) != 1:
            raise _no_list(position)
        target = cast_target(inner[0], position)
        return [cast(item, target, item.position) for item in list_items(binder, node.args["this"])]
    if isinstance(node, exp.Parameter):
        return _of_parameter(binder, node)
    if isinstance(node, exp.Literal) and node.args.get("is_string"):
        return array_items(str(node.args["this"]), position)
    raise _no_list(position)


def _of_parameter(binder: Binder, node: exp.Parameter) -> list[Expr]:
    number, value = binder.parameter_value(node)
    position = binder.position(node)
    if isinstance(value, Awaited):
        value.lists.append(True)
        return [parameter_literal(value, number, position)]
    if isinstance(value, str):
        return array_items(value, position)
    if isinstance(value, (list, tuple)):
        if len(value) > MAX_ITEMS:
            raise _too_many(position)
        return [parameter_literal(item, number, position) for item in value]
    raise _no_list(position)


def _no_list(position: Position | None) -> Refusal:
    return Refusal(
        "ANY and ALL take a list of constants", sqlstate="PV202", position=position,
        hint="write ARRAY[1, 2], '{1,2}', or pass a list as a parameter",
    )  # fmt: skip


def _too_many(position: Position | None) -> Refusal:
    return Refusal(f"this list has more than {MAX_ITEMS} items", sqlstate="54001", position=position)


def array_items(text: str, position: Position | None) -> list[Expr]:
    """Read Postgres' text of an array of one dimension: {a,"b c",NULL}."""
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        raise _no_list(position)
    items: list[Expr] = []
    rest = bare[1:-1]
    while rest.strip():
        if len(items) >= MAX_ITEMS:
            raise _too_many(position)
        item, quoted, rest = _first_item(rest.lstrip(), position)
        is_null = not quoted and item.upper() == "NULL"
        items.append(parameter_literal(None if is_null else item, 0, position))
    return items


def _first_item(text: str, position: Position | None) -> tuple[str, bool, str]:
    """Return the first item of an array's text, whether it stood in quotes, and what follows its comma."""
    found: list[str] = []
    quoted = text.startswith('"')
    at = 1 if quoted else 0
    while at < len(text) and text[at] != ('"' if quoted else ","):
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        elif not quoted and text[at] in '{}"':
            raise _no_list(position)
        found.append(text[at])
        at += 1
    if quoted and at >= len(text):
        raise _no_list(position)
    rest = text[at + 1 :] if quoted else text[at:]
    rest = rest.lstrip()
    item = "".join(found) if quoted else "".join(found).strip()
    if (rest and not rest.startswith(",")) or (rest == ",") or (not quoted and not item):
        raise _no_list(position)
    return item, quoted, rest[1:]
