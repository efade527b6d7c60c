"""EXECUTE's constants as the values of a prepared statement's parameters, by Postgres' rules of assignment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from ..pgwire import Format, Oid, ParameterError, read_parameter
from .columns import plain
from .read_prepared import type_number
from .report import Fault
from .statements import Constant

__all__ = ["argument_values"]

_WHOLE = (Oid.INT2, Oid.INT4, Oid.INT8)
_FLOATS = (Oid.FLOAT4, Oid.FLOAT8)
_NUMBERS = (*_WHOLE, Oid.NUMERIC, *_FLOATS)
_TEXTS = (Oid.TEXT, Oid.VARCHAR)
_TIMES = (Oid.DATE, Oid.TIMESTAMP, Oid.TIMESTAMPTZ)
_NAMES = {
    Oid.BOOL: "boolean", Oid.INT2: "smallint", Oid.INT4: "integer", Oid.INT8: "bigint", Oid.NUMERIC: "numeric",
    Oid.FLOAT4: "real", Oid.FLOAT8: "double precision", Oid.DATE: "date", Oid.TIMESTAMP: "timestamp",
}  # fmt: skip

_HINT = "write a constant of the parameter's type"


def argument_values(name: str, arguments: Sequence[Constant], types: Sequence[int]) -> tuple[object, ...]:
    """Return one value for each parameter of the prepared statement `name`.

    Raises Fault: another number of arguments (42601), a type that the parameter's cannot be made of (42804), or a value
    that is not of its type, or not in its range (as ParameterError has it).
    """
    if not types:
        return ()  # Postgres does not look at them
    if len(arguments) != len(types):
        raise Fault(
            "42601", f'{len(arguments)} arguments are given, but prepared statement "{name}" takes {len(types)}',
            hint="give one constant for each $n",
        )  # fmt: skip
    pairs = enumerate(zip(arguments, types, strict=True), 1)
    return tuple(_value(number, argument, oid) for number, (argument, oid) in pairs)


def _value(number: int, argument: Constant, oid: int) -> object:
    if argument.text is None:
        return None
    if argument.type is None:
        return _read(oid, argument.text)
    own = _own_type(argument)
    value = _read(own, argument.text)
    if oid == own or (oid in _TEXTS and own in _TEXTS):
        return value
    if oid in _TEXTS:
        return _text(value, argument.text)
    if oid in _NUMBERS and own in _NUMBERS:
        return _read(oid, _rounded(value, own) if oid in _WHOLE else argument.text)
    if oid in _TIMES and own in _TIMES:
        return _read(oid, str(value)[:10] if oid == Oid.DATE else str(value))
    raise Fault(
        "42804", f"parameter ${number} of type {argument.type} cannot be coerced to {_NAMES.get(Oid(oid), 'its type')}",
        hint="write the value in quotes, without a cast",
    )  # fmt: skip


def _own_type(argument: Constant) -> int:
    assert argument.type is not None
    assert argument.text is not None
    own = type_number(argument.type)
    if argument.type == "integer" and argument.text.lstrip("-").isdigit():
        value = int(argument.text)  # a bare number is of the smallest type that holds it
        fits = [oid for oid, limit in ((Oid.INT4, 2**31), (Oid.INT8, 2**63)) if -limit <= value < limit]
        return fits[0] if fits else Oid.NUMERIC
    return Oid.TEXT if own == Oid.UNKNOWN else own


def _read(oid: int, text: str) -> object:
    try:
        return plain(read_parameter(oid, Format.TEXT, text.encode("utf-8", "replace")))
    except ParameterError as error:
        raise Fault(error.sqlstate, error.message, hint=error.hint or _HINT) from None


def _rounded(value: object, own: int) -> str:
    exact = Decimal(str(value))
    if not exact.is_finite():
        return str(value)
    return str(int(exact.to_integral_value(ROUND_HALF_EVEN if own in _FLOATS else ROUND_HALF_UP)))


def _text(value: object, written: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime, date, int)):
        return str(value)
    return written
