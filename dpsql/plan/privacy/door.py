"""The door: private rows to a release, one for each grouping set (soundness.md 1.10).

House rule: a key that holds an owner, or a value with one owner, is refused: each group would be one
person's, and a threshold keeps all but a few of them out.
"""

from __future__ import annotations

from ...errors import Position, Refusal
from ...relation.expressions import Expr, Field, Literal, walk
from ...relation.relations import Aggregate, AggregateCall, Project, Relation, SetOperation
from ...relation.types import INTEGER, Kind
from .keys import environment_of, max_groups_in
from .personal import personal_columns, tells_apart
from .rows import Identity, Release, Rows, TableSource, fields_in, uncut

__all__ = ["check_keys", "one_person", "open_door", "owner_of_key"]


def open_door(
    node: Aggregate, rows: Rows, keys: tuple[Expr, ...], aggregates: tuple[AggregateCall, ...]
) -> Relation:
    """Open the door: one release per grouping set, put together by UNION ALL."""
    check_keys(rows, keys)
    env = environment_of(rows.columns, rows.predicate)
    shares = [max_groups_in(rows, tuple(keys[i] for i in chosen), env) for chosen in node.sets]
    parts: list[Relation] = []
    for chosen, share in zip(node.sets, shares, strict=True):
        names = tuple(column.name for column in node.columns)
        kept = (*(names[i] for i in chosen), *names[len(keys) : len(keys) + len(aggregates)])
        whole = (share, sum(shares)) if len(shares) > 1 else (1, 1)
        release = Release(
            rows, tuple(keys[i] for i in chosen), aggregates, whole, kept,
            position=node.position,
        )  # fmt: skip
        parts.append(
            release if len(node.sets) == 1 and not node.groupings else _spread(node, release, chosen)
        )
    result = parts[0]
    for part in parts[1:]:
        result = SetOperation("union", True, result, part, node.columns)
    return result


def _spread(node: Aggregate, release: Release, chosen: tuple[int, ...]) -> Relation:
    """Return one grouping set's rows in the columns of the whole: absent keys NULL, GROUPING() bits."""
    exprs: list[Expr] = []
    for index, key in enumerate(node.keys):
        if index in chosen:
            exprs.append(Field(key.type, chosen.index(index)))
        else:
            exprs.append(Literal(key.type, None))
    exprs += [Field(call.type, len(chosen) + i) for i, call in enumerate(node.aggregates)]
    for wanted in node.groupings:
        bits = 0
        for index in wanted:
            bits = bits * 2 + (index not in chosen)
        exprs.append(Literal(INTEGER, bits))
    return Project(release, tuple(exprs), tuple(column.name for column in node.columns))


def owner_of_key(key: Expr, rows: Rows) -> Identity | None:
    """Return the identity that a key is a value of, in an inner source, where it is never NULL."""
    if not isinstance(key, Field):
        return None
    for item, start in fields_in(rows.items):
        if item.kind == "inner" and start <= key.index < start + len(item.columns):
            index = key.index - start
            known = item.source.identities.get(index)
            source = uncut(item.source)
            unit = source.table.unit if isinstance(source, TableSource) else None
            is_unit = (
                unit is not None and isinstance(source, TableSource) and source.shown[index] == unit.column
            )
            certain = key.index in rows.units or is_unit or item.columns[index].enforced.not_null
            return known if certain else None
    return None


def check_keys(rows: Rows, keys: tuple[Expr, ...]) -> None:
    """Refuse keys that hold an owner, or a value with one owner, NULL or not: each group would be one person's."""
    is_personal = personal_columns(rows)
    for key in keys:
        if key.type.kind is Kind.OPAQUE:
            raise Refusal(
                f"a key of type {key.type} is not shown", sqlstate="42804", position=key.position,
                hint="group by a property that many people share",
            )  # fmt: skip
        for part in walk(key):
            if isinstance(part, Field) and (part.index in rows.units or owner_of_key(part, rows)):
                raise one_person(part.name, part.position or key.position)
        if (column := tells_apart(key, is_personal)) is not None:
            raise one_person(column.name, column.position or key.position)


def one_person(name: str, position: Position | None) -> Refusal:
    key = f'"{name}"' if name else "this key"
    return Refusal(
        f"grouping by {key} would make one group per person",
        sqlstate="PV005",
        position=position,
        hint="group by a property that many people share",
    )
