"""Functions by name that give rows: parts of JSON and of texts, each an array of its own that is laid out in rows.

What Postgres raises for a value, as for the elements of an object, is no row here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ..errors import Refusal
from ..relation.expressions import Call, Expr, Literal
from ..relation.functions import NAMES
from ..relation.types import INTEGER, JSON, JSONB, TEXT, SqlType, array_of
from .bind_expression import Binder
from .bind_json import as_json_value
from .named_calls import bind_row

__all__ = ["ROW_CALLS", "RowCall", "is_rows", "row_call"]


@dataclass(frozen=True, slots=True)
class RowCall:
    """What a function gives: its arrays, of which each row has one value; `columns`: their names, none for its own."""

    arrays: Callable[[Binder, exp.Expr, str], tuple[Expr, ...]]
    columns: tuple[str, ...] = ()


def row_call(node: exp.Expr) -> str | None:
    """Return the name of a function that gives rows, where it is called; None: another is, or none."""
    inner = node.args["this"] if isinstance(node, exp.Table) else node
    name = str(inner.args["this"]).lower() if isinstance(inner, exp.Anonymous) else None
    return name if name in ROW_CALLS else None


def is_rows(node: exp.Expr) -> bool:
    """Say whether a FROM item is a function that gives rows."""
    is_series = isinstance(node, exp.Table) and isinstance(node.args["this"], exp.ExplodingGenerateSeries)
    return is_series or isinstance(node, exp.Unnest) or row_call(node) is not None


def _written(node: exp.Expr) -> Sequence[exp.Expr]:
    inner = node.args["this"] if isinstance(node, exp.Table) else node
    found: Sequence[exp.Expr] = inner.args.get("expressions") or []
    return found


def _json(binder: Binder, node: exp.Expr, name: str) -> Expr:
    """Return the one argument, of the kind of JSON that the name says. Raises Refusal (42883): it is of another."""
    written, wanted = _written(node), JSONB if name.startswith("jsonb") else JSON
    value = (
        as_json_value(binder.bind(written[0]), wanted, binder.position(node)) if len(written) == 1 else None
    )
    if value is None or value.type.kind is not wanted.kind:
        raise Refusal(
            f"{name}() takes one value of {wanted}", sqlstate="42883", position=binder.position(node),
            hint="json_… is of json, jsonb_… of jsonb",
        )  # fmt: skip
    return value


def _of(function: str, element: SqlType | None = None) -> Callable[[Binder, exp.Expr, str], tuple[Expr, ...]]:
    """Return what makes one array of the parts of JSON; `element`: their type, where it is not the JSON's own."""

    def arrays(binder: Binder, node: exp.Expr, name: str) -> tuple[Expr, ...]:
        value = _json(binder, node, name)
        return (Call(array_of(element or value.type), function, (value,), position=binder.position(node)),)

    return arrays


def _as_texts(parts: str) -> Callable[[Binder, exp.Expr, str], tuple[Expr, ...]]:
    def arrays(binder: Binder, node: exp.Expr, name: str) -> tuple[Expr, ...]:
        found = _of(parts)(binder, node, name)
        return (Call(array_of(TEXT), "json_texts", found, position=binder.position(node)),)

    return arrays


def _both(
    values: Callable[[Binder, exp.Expr, str], tuple[Expr, ...]],
) -> Callable[[Binder, exp.Expr, str], tuple[Expr, ...]]:
    return lambda binder, node, name: (
        *_of("json_keys", TEXT)(binder, node, name),
        *values(binder, node, name),
    )


def _named(function: str) -> Callable[[Binder, exp.Expr, str], tuple[Expr, ...]]:
    """Return what makes the array that a function of the table gives."""

    def arrays(binder: Binder, node: exp.Expr, name: str) -> tuple[Expr, ...]:
        args = [binder.bind(part) for part in _written(node)]
        return (bind_row(binder, node, name, NAMES[function], args),)

    return arrays


def _places(binder: Binder, node: exp.Expr, name: str) -> tuple[Expr, ...]:
    """Return 1, 2, … up to how many values an array has."""
    args = [binder.bind(part) for part in _written(node)]
    last = bind_row(binder, node, name, NAMES["array_upper"], args)
    numbers = (Literal(INTEGER, 1), last, Literal(INTEGER, 1))
    return (Call(array_of(INTEGER), "series", numbers, position=binder.position(node)),)


ROW_CALLS = {
    **dict.fromkeys(
        ("json_array_elements", "jsonb_array_elements"), RowCall(_of("json_elements"), ("value",))
    ),
    **dict.fromkeys(
        ("json_array_elements_text", "jsonb_array_elements_text"),
        RowCall(_as_texts("json_elements"), ("value",)),
    ),
    **dict.fromkeys(("json_object_keys", "jsonb_object_keys"), RowCall(_of("json_keys", TEXT))),
    **dict.fromkeys(("json_each", "jsonb_each"), RowCall(_both(_of("json_values")), ("key", "value"))),
    **dict.fromkeys(
        ("json_each_text", "jsonb_each_text"), RowCall(_both(_as_texts("json_values")), ("key", "value"))
    ),
    "string_to_table": RowCall(_named("string_to_array")),
    "regexp_split_to_table": RowCall(_named("regexp_split_to_array")),
    "generate_subscripts": RowCall(_places),
}
"""Name -> what it gives."""
