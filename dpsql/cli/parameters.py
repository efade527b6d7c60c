"""The values of $1, $2, … as the command line spells them."""

from __future__ import annotations

import re
from decimal import Decimal

__all__ = ["ParameterValue", "parameter_value"]

ParameterValue = int | Decimal | str | bool | None

_INTEGER = re.compile(r"[+-]?[0-9]{1,38}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,38}\.[0-9]{0,38}|\.[0-9]{1,38})")
_QUOTED = re.compile(r"'(?:[^']|'')*'", re.DOTALL)
_WORDS = {"null": None, "true": True, "false": False}


def parameter_value(text: str) -> ParameterValue:
    """Return the value that `-p text` stands for: as an SQL literal where it is one, else as text.

    >>> [parameter_value(t) for t in ("3", "2.50", "CS", "NULL", "true", "'42'", "2025-01-31")]
    [3, Decimal('2.50'), 'CS', None, True, '42', '2025-01-31']
    """
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    if _QUOTED.fullmatch(text):
        return text[1:-1].replace("''", "'")
    return _WORDS.get(text.lower(), text)
