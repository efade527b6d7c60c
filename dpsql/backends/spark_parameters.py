"""Parameters of a statement as Spark takes them: by name, a list as one text, each text in base64.

House rules:

1. What travels is data, never a part of the statement. Spark itself writes an argument into the statement, as a
   literal that settings may read otherwise (4.3: `escapedStringLiterals`); in base64 there is nothing to read.
2. What is read back (`SparkDialect.parameter`, `SparkDialect.listed`) is exactly what was given: what is not of the
   type that it is cast to is an error, never a NULL.
"""

from __future__ import annotations

import datetime
import json
from base64 import b64encode
from collections.abc import Sequence

__all__ = ["bound"]


def bound(parameters: Sequence[object]) -> dict[str, object]:
    """Return positional parameters, the first of which the statement calls :p1, as the arguments of `session.sql`."""
    return {f"p{number}": _carried(value) for number, value in enumerate(parameters, 1)}


def _carried(value: object) -> object:
    """Return a value as it travels: a list as a JSON array of texts and nulls."""
    if isinstance(value, list | tuple):
        return _encoded(json.dumps([None if one is None else _text(one) for one in value]))
    return _encoded(_text(value)) if isinstance(value, str | datetime.date) else value


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode("ascii")


def _text(value: object) -> str:
    """Return a value as the text that Spark casts back to the same value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, float) else str(value)
