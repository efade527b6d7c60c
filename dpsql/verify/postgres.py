"""What Postgres spells and computes in a way of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpsql.verify.terms import Type, simple_type

__all__ = ["Postgres"]

_TYPES: dict[str, Type] = {
    "REAL": ("float", 32),
    "DOUBLE PRECISION": ("float", 64),
    "TEXT": ("text",),
    "TIMESTAMP": ("timestamp",),
    "TIMESTAMP WITHOUT TIME ZONE": ("timestamp",),
    "TIMESTAMP WITH TIME ZONE": ("timestamptz",),
    "UUID": ("uuid",),
}


class Postgres:
    """`/` of integers and `div` cut towards zero; LEAST and GREATEST skip NULL; sums of BIGINT are numeric."""

    NAME = "postgres"
    WIDEST = 64
    INTEGERS_DIVIDE_WHOLE = True
    DECIMALS_ARE_FIXED = False
    FUNCTIONS: Mapping[str, str] = MappingProxyType(
        {
            "octet_length": "BYTES",
            "trim_scale": "TRIM_SCALE",
            "jsonb_object_field": "JSONFIELD",
            "jsonb_object_field_text": "JSONMEMBER",
            "jsonb_typeof": "JSONTYPE",
            "pg_column_size": "STOREDSIZE",
        }
    )

    def type_of(self, text: str) -> Type:
        """A type as the catalog or a CAST says it; texts of a limited length are texts, padded ones are not."""
        if text.lower().startswith(("character varying", "varchar")):
            return ("text",)
        if text.lower().startswith("bit("):
            return ("bits",)
        return simple_type(text, _TYPES)

    def sum_of(self, kind: Type) -> Type:
        """The type of a SUM: BIGINT of narrower integers, numeric of BIGINT."""
        if kind[0] == "int":
            return ("int", 64) if kind[1] < 64 else ("decimal", None, 0)
        return ("decimal", None, kind[-1]) if kind[0] == "decimal" else kind
