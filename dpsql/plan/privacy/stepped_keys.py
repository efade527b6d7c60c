"""Keys that are computed of few values: rows are grouped by those, and the key is computed above the release.

    >>> grouped("floor(height / 0.5) * 0.5")
    CAST(floor(height / 0.5) AS bigint), shown as CAST(it AS double precision) * 0.5

A double is no key, since it has no finite list of values and engines may spell one number in two ways. A bin is: its
number is a whole one between known ends. What is computed of that alone is post-processing, in the very doubles of
the statement; so both engines show the same bits, which are Postgres'.

House rules (soundness.md 1.7):

1. What rows are grouped by has a known list of values, each of which is shown as another one, none of which is NULL
   or NaN; NULL is shown as NULL. So a group is a group of the key that was written, and no two of them are one.
2. An exact key keeps its own values where what it is computed of has no fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...errors import Refusal
from ...relation.catalog import MAX_DERIVED, Scalar
from ...relation.expressions import Call, Expr, Field, Literal, walk
from ...relation.intervals import TYPE_RANGE, Environment, narrowed_facts
from ...relation.lattice import undeclared
from ...relation.types import BIGINT, SqlType
from .cells import Span, Value, compiled, point
from .keys import domain_of

__all__ = ["SteppedKey", "stepped_keys"]

_STEPS = frozenset({"floor", "ceil", "round", "trunc"})
_CARRIED = frozenset({"add", "sub", "mul", "div", "neg", "cast"})
"""What is computed of a step above the release: NULL of NULL, and alike in both engines (`cells`)."""


@dataclass(frozen=True, slots=True)
class SteppedKey:
    """`grouped`: what rows are grouped by; `shown`: the key, computed of `Field(0)`, which is that."""

    grouped: Expr
    shown: Expr


def stepped_keys(keys: Sequence[Expr], env: Environment) -> tuple[SteppedKey | None, ...]:
    """Return how each key is made of a step; None for those that rows are grouped by as they stand.

    Raises:
        Refusal: PV101, PV202 or PV203 for doubles without a list of steps.
    """
    return tuple(_stepped_key(key, env) for key in keys)


def _stepped_key(key: Expr, env: Environment) -> SteppedKey | None:
    if not key.type.is_number:
        return None
    best: SteppedKey | None = None
    own = None if key.type.is_float else domain_of(key, env)
    fewest = None if own is None else len(own.values)
    ways = list(_taken_apart(key))
    for way in ways:
        domain = domain_of(way.grouped, env)
        if domain is None or (fewest is not None and len(domain.values) >= fewest):
            continue
        if _tells_apart(way.shown, [value for value in domain.values if value is not None]):
            best, fewest = way, len(domain.values)
    if best is None and key.type.is_float:
        raise _refusal(key, ways, env)
    return best


def _taken_apart(key: Expr) -> Iterator[SteppedKey]:
    """Yield each exact part, or step of doubles, that a key is computed of alone, the outermost first."""
    if not isinstance(key, Call):
        return
    if key.type.is_float and key.function in _STEPS:
        whole = Call(BIGINT, "cast", (key,), position=key.position)
        yield SteppedKey(whole, Call(key.type, "cast", (Field(BIGINT, 0),)))
    if key.function not in _CARRIED:
        return
    varying = [i for i, arg in enumerate(key.args) if not isinstance(arg, Literal)]
    if len(varying) != 1:
        return
    inner = key.args[varying[0]]
    found = [SteppedKey(inner, Field(inner.type, 0))] if _is_exact(inner) else []
    for way in (*found, *_taken_apart(inner)):
        args = tuple(way.shown if i == varying[0] else arg for i, arg in enumerate(key.args))
        yield SteppedKey(way.grouped, replace(key, args=args))


def _is_exact(expr: Expr) -> bool:
    return expr.type.is_number and not expr.type.is_float


def _tells_apart(shown: Expr, values: Sequence[Scalar]) -> bool:
    """Say whether each of some values is shown as another number."""
    slots: dict[Expr, int] = {part: 0 for part in walk(shown) if isinstance(part, Field)}
    parts = [(part.type, compiled(part, slots)) for part in walk(shown) if not isinstance(part, Literal)]
    found = set()
    for value in values:
        assert not isinstance(value, (str, bool))
        assert value is not None
        results = [(type_, evaluate([point(value)])) for type_, evaluate in parts]
        if not all(_is_of(type_, result) for type_, result in results):
            return False
        found.add(results[0][1])
    return len(found) == len(values)


def _is_of(type_: SqlType, value: Value) -> bool:
    """Say whether a value is one number that its type holds: what Postgres raises on, no key is."""
    if not isinstance(value, Span) or not value.is_point:
        return False
    first, last = TYPE_RANGE.get(type_.kind, (value.lo, value.hi))
    return first <= value.lo <= last


def _refusal(key: Expr, ways: Sequence[SteppedKey], env: Environment) -> Refusal:
    """Return why a double is no key: PV101, PV202 or PV203."""
    facts = narrowed_facts(ways[0].grouped, env) if ways else None
    if facts is not None and not (facts.bounded and facts.declared):
        return undeclared(ways[0].grouped, env)
    if facts is not None and domain_of(ways[0].grouped, env) is None:
        return Refusal(
            f"this key has more than {MAX_DERIVED} steps within its bounds",
            sqlstate="PV203",
            position=key.position,
            hint="take wider ones, or narrow it in WHERE with … BETWEEN low AND high",
        )
    return Refusal(
        "a floating-point expression cannot be a group key",
        sqlstate="PV202",
        position=key.position,
        hint="bin it: floor(x / 10) * 10, or cast it to integer",
    )
