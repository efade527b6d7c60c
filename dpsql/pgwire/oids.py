"""The types that travel on the wire: numbers, names, sizes; and values that Python has no type for."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

# --- values that Python has no type for ---------------------------------------------------------------------


_DAY = 86_400 * 10**6


@dataclass(frozen=True, slots=True)
class Interval:
    """A Postgres interval: three numbers that do not convert into each other."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    @classmethod
    def of(cls, length: timedelta) -> Interval:
        """Return days and time of a timedelta, both of its sign, as Postgres writes them.

        One that knows its own three numbers (`parts`) has those.
        """
        parts: tuple[int, int, int] | None = getattr(length, "parts", None)
        if parts is not None:
            return cls(*parts)
        total = length // timedelta(microseconds=1)
        days = abs(total) // _DAY * (1 if total >= 0 else -1)
        return cls(0, days, total - days * _DAY)


@dataclass(frozen=True, slots=True)
class ObjectName:
    """A regclass, regtype, regproc and the like: the name as text, the OID in binary.

    Any value with these two attributes is written as one.
    """

    oid: int
    name: str


# --- the types that travel on the wire: their numbers, names and sizes in every Postgres --------------------


class Oid(enum.IntEnum):
    """A type's number in `pg_type`; `X_ARRAY` is the array of `X`."""

    BOOL = 16
    BYTEA = 17
    CHAR = 18  # "char", one byte
    NAME = 19
    INT8 = 20
    INT2 = 21
    INT2VECTOR = 22
    INT4 = 23
    REGPROC = 24
    TEXT = 25
    OID = 26
    XID = 28
    OIDVECTOR = 30
    JSON = 114
    PG_NODE_TREE = 194
    JSON_ARRAY = 199
    FLOAT4 = 700
    FLOAT8 = 701
    UNKNOWN = 705
    BOOL_ARRAY = 1000
    CHAR_ARRAY = 1002
    NAME_ARRAY = 1003
    INT2_ARRAY = 1005
    INT4_ARRAY = 1007
    TEXT_ARRAY = 1009
    VARCHAR_ARRAY = 1015
    INT8_ARRAY = 1016
    FLOAT4_ARRAY = 1021
    FLOAT8_ARRAY = 1022
    OID_ARRAY = 1028
    ACLITEM = 1033
    ACLITEM_ARRAY = 1034
    BPCHAR = 1042
    VARCHAR = 1043
    DATE = 1082
    TIME = 1083
    TIMESTAMP = 1114
    TIMESTAMP_ARRAY = 1115
    DATE_ARRAY = 1182
    TIME_ARRAY = 1183
    TIMESTAMPTZ = 1184
    TIMESTAMPTZ_ARRAY = 1185
    INTERVAL = 1186
    INTERVAL_ARRAY = 1187
    NUMERIC_ARRAY = 1231
    NUMERIC = 1700
    REGCLASS = 2205
    REGTYPE = 2206
    REGCLASS_ARRAY = 2210
    REGTYPE_ARRAY = 2211
    VOID = 2278
    JSONB = 3802
    JSONB_ARRAY = 3807
    REGNAMESPACE = 4089
    REGROLE = 4096


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """A type: its SQL name as error messages have it, and its size (`pg_type.typlen`; -1 where it varies)."""

    oid: Oid
    name: str
    size: int


_SCALARS = (
    TypeInfo(Oid.BOOL, "boolean", 1),
    TypeInfo(Oid.BYTEA, "bytea", -1),
    TypeInfo(Oid.CHAR, '"char"', 1),
    TypeInfo(Oid.NAME, "name", 64),
    TypeInfo(Oid.INT8, "bigint", 8),
    TypeInfo(Oid.INT2, "smallint", 2),
    TypeInfo(Oid.INT4, "integer", 4),
    TypeInfo(Oid.REGPROC, "regproc", 4),
    TypeInfo(Oid.TEXT, "text", -1),
    TypeInfo(Oid.OID, "oid", 4),
    TypeInfo(Oid.XID, "xid", 4),
    TypeInfo(Oid.JSON, "json", -1),
    TypeInfo(Oid.PG_NODE_TREE, "pg_node_tree", -1),
    TypeInfo(Oid.FLOAT4, "real", 4),
    TypeInfo(Oid.FLOAT8, "double precision", 8),
    TypeInfo(Oid.UNKNOWN, "unknown", -2),
    TypeInfo(Oid.ACLITEM, "aclitem", 12),
    TypeInfo(Oid.BPCHAR, "character", -1),
    TypeInfo(Oid.VARCHAR, "character varying", -1),
    TypeInfo(Oid.DATE, "date", 4),
    TypeInfo(Oid.TIME, "time without time zone", 8),
    TypeInfo(Oid.TIMESTAMP, "timestamp without time zone", 8),
    TypeInfo(Oid.TIMESTAMPTZ, "timestamp with time zone", 8),
    TypeInfo(Oid.INTERVAL, "interval", 16),
    TypeInfo(Oid.NUMERIC, "numeric", -1),
    TypeInfo(Oid.REGCLASS, "regclass", 4),
    TypeInfo(Oid.REGTYPE, "regtype", 4),
    TypeInfo(Oid.VOID, "void", 4),
    TypeInfo(Oid.JSONB, "jsonb", -1),
    TypeInfo(Oid.REGNAMESPACE, "regnamespace", 4),
    TypeInfo(Oid.REGROLE, "regrole", 4),
)
_BY_NAME = {info.oid.name: info for info in _SCALARS}

ELEMENTS = MappingProxyType(
    {
        Oid.INT2VECTOR: Oid.INT2,
        Oid.OIDVECTOR: Oid.OID,
        **{oid: _BY_NAME[oid.name.removesuffix("_ARRAY")].oid for oid in Oid if oid.name.endswith("_ARRAY")},
    }
)
"""An array's type -> its elements' type."""

TYPES: MappingProxyType[int, TypeInfo] = MappingProxyType(
    {
        **{info.oid: info for info in _SCALARS},
        **{oid: TypeInfo(oid, f"{_BY_NAME[element.name].name}[]", -1) for oid, element in ELEMENTS.items()},
        Oid.INT2VECTOR: TypeInfo(Oid.INT2VECTOR, "int2vector", -1),
        Oid.OIDVECTOR: TypeInfo(Oid.OIDVECTOR, "oidvector", -1),
    }
)
"""Every type known here."""
