"""Columns as Describe has told them, where the values of parameters give them others: within the integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..pgwire import Column, Oid
from .report import Fault
from .result import Result

__all__ = ["as_told", "fitted"]

_LIMITS = {Oid.INT2: 2**15, Oid.INT4: 2**31, Oid.INT8: 2**63}


def as_told(columns: Sequence[Column], told: Sequence[Column]) -> tuple[Column, ...]:
    """Return what was told, if it can hold what comes. Raises Fault (0A000): it is of another kind."""
    for column, known in zip(columns, told, strict=True):
        if column.oid != known.oid and not (column.oid in _LIMITS and known.oid in _LIMITS):
            raise Fault(
                "0A000", "the result's types depend on the parameters, and are others than Describe has told",
                hint="cast the parameters: CAST($1 AS integer)",
            )  # fmt: skip
    return tuple(told)


def fitted(result: Result, told: tuple[Column, ...]) -> Result:
    """Return a result under the columns that were told. Raises Fault (22003): an integer is too large for its own."""
    for index, (column, known) in enumerate(zip(result.columns, told, strict=True)):
        if column.oid == known.oid:
            continue
        limit = _LIMITS[Oid(known.oid)]
        if any(not -limit <= row[index] < limit for row in result.rows if row[index] is not None):  # type: ignore[operator]  # integers
            raise Fault(
                "22003", f'"{known.name}" is out of the range that Describe has told',
                hint="cast it: CAST(… AS bigint); what was charged answers again, free",
            )  # fmt: skip
    return replace(result, columns=told)
