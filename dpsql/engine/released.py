"""Released values: group keys in canonical form, noisy integers, and both as bytes for the store.

House rule: nothing exact comes in here. `privatise` is the only maker of a `ReleasedVector`, and the
bytes hold noisy integers and published keys alone (amendments.md b).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..relation.calendar import parse_date, parse_timestamp
from ..relation.catalog import Scalar
from ..relation.types import Kind, SqlType

__all__ = [
    "Key",
    "ReleasedVector",
    "canonical_key",
    "declared_key",
    "decode",
    "encode",
    "integers",
    "order_of",
    "shown_key",
]

Key = tuple[Scalar, ...]
"""A group: text, bool, int (whole numbers, days, microseconds), Fraction, or None for NULL."""

Array = npt.NDArray[Any]
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class ReleasedVector:
    """The noisy integers of one vector, one array per coordinate over the release's groups.

    `keys`: the published groups, where the vector was drawn together with them.
    """

    values: tuple[Array, ...]
    keys: tuple[Key, ...] | None


def canonical_key(type_: SqlType) -> Callable[[Any], Scalar] | None:
    """Return what turns an engine's value of a key type into canonical form; None: nothing to do.

    Dates and timestamps come as text. One that has no place in our calendar (infinity, years beyond
    9999 or before 1) stays text: no declared group has such a key, and none is ever published.
    """
    if type_.kind is Kind.DATE:
        return _days
    if type_.kind is Kind.TIMESTAMP:
        return _microseconds
    if type_.kind is Kind.NUMERIC:
        return _exact
    return None


def is_publishable(key: Key, types: Sequence[SqlType]) -> bool:
    """Say whether a group's key has a value of its type: a temporal key that stayed text has none."""
    return not any(isinstance(v, str) and t.is_temporal for v, t in zip(key, types, strict=True))


def _days(value: Any) -> Scalar:
    days = None if value is None else parse_date(value)
    return value if days is None else days


def _microseconds(value: Any) -> Scalar:
    moment = None if value is None else parse_timestamp(value)
    return value if moment is None else moment


def _exact(value: Any) -> Scalar:
    if value is None:
        return None
    number = Fraction(value)
    return int(number) if number.denominator == 1 else number


def declared_key(value: Scalar, type_: SqlType) -> Scalar:
    """Return a declared domain's value in canonical form; dates and timestamps may come as ISO text."""
    if isinstance(value, str) and type_.kind is Kind.DATE:
        return parse_date(value)
    if isinstance(value, str) and type_.kind is Kind.TIMESTAMP:
        return parse_timestamp(value)
    if isinstance(value, Fraction) and value.denominator == 1:
        return int(value)
    return value


def shown_key(value: Scalar, type_: SqlType) -> object:
    """Return a canonical key value as the Python value of its SQL type."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if type_.kind is Kind.DATE:
        return _EPOCH.date() + datetime.timedelta(days=int(value))
    if type_.kind is Kind.TIMESTAMP:
        return _EPOCH + datetime.timedelta(microseconds=int(value))
    if type_.kind is Kind.NUMERIC:
        return Decimal(Fraction(value).numerator) / Decimal(Fraction(value).denominator)
    return int(value)


def order_of(key: Key) -> tuple[tuple[int, Any], ...]:
    """Return a sort key that does not depend on the data: by value, text bytewise, NULL last."""
    return tuple((1, 0) if v is None else (0, v.encode() if isinstance(v, str) else v) for v in key)


def encode(vector: ReleasedVector) -> bytes:
    """Return a released vector as bytes."""
    body: dict[str, object] = {"values": [array.tolist() for array in vector.values]}
    if vector.keys is not None:
        body["keys"] = [[_plain(value) for value in key] for key in vector.keys]
    return json.dumps(body, separators=(",", ":")).encode()


def _plain(value: Scalar) -> object:
    return {"n": [value.numerator, value.denominator]} if isinstance(value, Fraction) else value


def decode(payload: bytes) -> ReleasedVector:
    """Return the released vector that `encode` made bytes of."""
    body = json.loads(payload)
    keys = body.get("keys")
    parsed = None if keys is None else tuple(tuple(_scalar(value) for value in key) for key in keys)
    return ReleasedVector(tuple(integers(values) for values in body["values"]), parsed)


def _scalar(value: Any) -> Scalar:
    if isinstance(value, dict):
        return Fraction(*value["n"])
    assert value is None or isinstance(value, (bool, int, str))
    return value


def integers(values: Sequence[int]) -> Array:
    """Return integers as an int64 array, or of Python ints when one does not fit."""
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array(values, dtype=object)
