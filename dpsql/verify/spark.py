"""What Spark spells and computes in a way of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpsql.verify.terms import Type, simple_type

__all__ = ["Spark"]

_TYPES: dict[str, Type] = {
    "TINYINT": ("int", 8),
    "FLOAT": ("float", 32),
    "DOUBLE": ("float", 64),
    "STRING": ("text",),
    "TIMESTAMP_NTZ": ("timestamp",),
    "TIMESTAMP": ("timestamptz",),
    "TIMESTAMP_LTZ": ("timestamptz",),
}


class Spark:
    """`DIV` cuts towards zero and is a BIGINT; LEAST and GREATEST skip NULL; `/` is never of integers."""

    NAME = "spark"
    WIDEST = 64
    INTEGERS_DIVIDE_WHOLE = False
    DECIMALS_ARE_FIXED = True
    FUNCTIONS: Mapping[str, str] = MappingProxyType(
        {"octet_length": "BYTES", "try_validate_utf8": "VALID", "conv": "CONV"}
    )

    def type_of(self, text: str) -> Type:
        """A type as the catalog or a CAST says it; `string valid` is text that was read and is UTF-8."""
        return simple_type(text.removesuffix(" valid"), _TYPES)

    def sum_of(self, kind: Type) -> Type:
        """The type of a SUM."""
        return {"int": ("int", 64), "decimal": ("decimal", 38, kind[-1])}.get(kind[0], kind)
