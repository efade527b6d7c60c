"""The type that values of several types have together, as Postgres has it."""

from __future__ import annotations

from ..types import DOUBLE, NULL, NUMERIC, TIMESTAMP, Kind, SqlType

__all__ = ["common_type", "promote"]

_RANK = {
    Kind.SMALLINT: 0, Kind.INTEGER: 1, Kind.BIGINT: 2, Kind.NUMERIC: 3, Kind.REAL: 4, Kind.DOUBLE: 5,
}  # fmt: skip


def promote(left: SqlType, right: SqlType) -> SqlType | None:
    """Return the type of arithmetic between two number types, as Postgres has it; None for others."""
    if left.kind is Kind.NULL:
        left = right
    if right.kind is Kind.NULL:
        right = left
    if not (left.is_number and right.is_number):
        return None
    if left.is_float or right.is_float:
        return left if left == right else DOUBLE
    if left.kind is Kind.NUMERIC or right.kind is Kind.NUMERIC:
        return NUMERIC
    return max((left, right), key=lambda t: _RANK[t.kind])


def common_type(types: list[SqlType]) -> SqlType | None:
    """Return the one type that all can be read as (CASE branches, IN lists, UNION columns)."""
    known = [t for t in types if t.kind is not Kind.NULL]
    if not known:
        return NULL
    best = known[0]
    for other in known[1:]:
        if other == best:
            continue
        if best.kind is Kind.NUMERIC and other.kind is Kind.NUMERIC:
            scales = (best.scale, other.scale)
            scale = None if None in scales else max(s for s in scales if s is not None)
            best = SqlType(Kind.NUMERIC, None if scale is None else 38, scale)
            continue
        both = promote(best, other)
        if both is None and best.is_temporal and other.is_temporal:
            both = TIMESTAMP
        if both is None:
            return None
        best = both
    return best
