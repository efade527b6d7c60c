"""What each engine spells and computes in a way of its own: DuckDB, Postgres and Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dpsql.verify.terms import Type, simple_type

_DUCKDB_TYPES: dict[str, Type] = {
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
        return simple_type(text, _DUCKDB_TYPES)

    def decimal_digits(self, sides: Sequence[Type]) -> int:
        """The digits of a result of decimals: 18 where each of them has no more, and 38 beside one that is wider; of
        one whose digits nobody says it is not known to be."""
        return 38 if any(one[0] == "decimal" and (one[1] or 0) > 18 for one in sides) else 18

    def sum_of(self, kind: Type) -> Type:
        """The type of a SUM."""
        return {"int": ("int", 128), "decimal": ("decimal", 38, kind[-1])}.get(kind[0], kind)


_POSTGRES_TYPES: dict[str, Type] = {
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
        return simple_type(text, _POSTGRES_TYPES)

    def decimal_digits(self, sides: Sequence[Type]) -> int:
        """The digits of a result of decimals."""
        return 38

    def sum_of(self, kind: Type) -> Type:
        """The type of a SUM: BIGINT of narrower integers, numeric of BIGINT."""
        if kind[0] == "int":
            return ("int", 64) if kind[1] < 64 else ("decimal", None, 0)
        return ("decimal", None, kind[-1]) if kind[0] == "decimal" else kind


_SPARK_TYPES: dict[str, Type] = {
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
        return simple_type(text.removesuffix(" valid"), _SPARK_TYPES)

    def decimal_digits(self, sides: Sequence[Type]) -> int:
        """The digits of a result of decimals."""
        return 38

    def sum_of(self, kind: Type) -> Type:
        """The type of a SUM."""
        return {"int": ("int", 64), "decimal": ("decimal", 38, kind[-1])}.get(kind[0], kind)
