"""What DuckDB spells and computes in a way of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpsql.verify.terms import Type, simple_type

__all__ = ["DuckDB"]

_TYPES: dict[str, Type] = {
    "TINYINT": ("int", 8),
    "HUGEINT": ("int", 128),
    "INT128": ("int", 128),
    "UTINYINT": ("int", 16),
    "USMALLINT": ("int", 32),
    "UINTEGER": ("int", 64),
    "UBIGINT": ("int", 128),
    "REAL": ("float", 32),
    "FLOAT": ("float", 32),
    "DOUBLE": ("float", 64),
    "VARCHAR": ("text",),
    "TEXT": ("text",),
    "TIMESTAMP": ("timestamp",),
    "TIMESTAMP WITH TIME ZONE": ("timestamptz",),
    "TIMESTAMPTZ": ("timestamptz",),
    "UUID": ("uuid",),
}


class DuckDB:
    """`//` cuts towards zero, SUM of integers is 128 bits wide, LEAST and GREATEST skip NULL."""

    NAME = "duckdb"
    WIDEST = 128
    INTEGERS_DIVIDE_WHOLE = False
    DECIMALS_ARE_FIXED = True
    FUNCTIONS: Mapping[str, str] = MappingProxyType(
        {
            "strlen": "BYTES",
            "json_valid": "JSONVALID",
            "list_last": "LISTLAST",
            "round_even": "ROUND",
            "epoch_us": "EPOCH_US",
            "to_microseconds": "INTERVAL",
        }
    )

    def type_of(self, text: str) -> Type:
        """A type as the catalog or a CAST says it."""
        return simple_type(text, _TYPES)

    def sum_of(self, kind: Type) -> Type:
        """The type of a SUM."""
        return {"int": ("int", 128), "decimal": ("decimal", 38, kind[-1])}.get(kind[0], kind)
