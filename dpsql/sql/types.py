"""Written type names to SQL types."""

from __future__ import annotations

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    SqlType,
    numeric,
)

__all__ = ["cast_target", "text_length"]

_NAMES = {
    "SMALLINT": SMALLINT, "INT": INTEGER, "BIGINT": BIGINT, "DECIMAL": NUMERIC, "FLOAT": REAL,
    "DOUBLE": DOUBLE, "TEXT": TEXT, "VARCHAR": TEXT, "BOOLEAN": BOOLEAN, "DATE": DATE, "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "INTERVAL": INTERVAL, "JSON": JSON, "JSONB": JSONB,
}  # fmt: skip


def text_length(node: exp.Expr, position: Position | None) -> int | None:
    """Return n of a cast to varchar(n); None: it is another type.

    Raises:
        Refusal: 22023 for a length that Postgres does not take, 0A000 for char(n), which has blanks that do not count.
    """
    name, params = getattr(node.args.get("this"), "name", ""), node.args.get("expressions") or []
    if node.args.get("nested") or (name != "CHAR" and not (name == "VARCHAR" and params)):
        return None
    if name == "CHAR":
        raise Refusal(
            "char(n) is not supported in a cast", sqlstate="0A000", position=position,
            hint="x::varchar(3) cuts a text; rpad(x, 3) fills it up as well",
        )  # fmt: skip
    digits = str(params[0].args["this"].args.get("this")) if len(params) == 1 else ""
    if not (digits.isascii() and digits.isdigit() and 1 <= int(digits[:9]) <= 10_485_760):
        raise Refusal("varchar(n) takes a length of 1 to 10485760", sqlstate="22023", position=position)
    return int(digits)


def cast_target(node: exp.Expr, position: Position | None) -> SqlType:
    """Return the type that a CAST names.

    Raises:
        Refusal: 42704-like refusal (0A000) for a type that dpsql does not compute with.
    """
    name = getattr(node.args.get("this"), "name", "")
    params = node.args.get("expressions") or []
    found = _NAMES.get(name)
    if found is None or node.args.get("nested") or (params and found is not NUMERIC):
        raise Refusal(
            "this type is not supported in a cast",
            sqlstate="0A000",
            position=position,
            hint="smallint, integer, bigint, numeric, numeric(p,s), real, double precision, text, boolean, "
            "date, timestamp, json, jsonb",
        )
    if found is NUMERIC and params:
        digits = [str(param.args["this"].args.get("this")) for param in params]
        if len(digits) > 2 or not all(d.isascii() and d.isdigit() and len(d) <= 2 for d in digits):
            raise Refusal("this numeric(p,s) is not written right", sqlstate="42601", position=position)
        precision, scale = int(digits[0]), int(digits[1]) if len(digits) == 2 else 0
        if not 1 <= precision <= 38 or scale > precision:
            raise Refusal("numeric(p,s) takes 1 <= p <= 38 and s <= p", sqlstate="22023", position=position)
        return numeric(precision, scale)
    return found
