"""Parameters of a statement as Spark takes them: by name, a list as one text.

House rule: what travels is data, never a part of the statement; what is read back from a text is exactly what was
written (`SparkDialect.listed`): a value that is not one of the type it is cast to is an error, never a NULL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

__all__ = ["bound"]


def bound(parameters: Sequence[object]) -> Mapping[str, object]:
    """Return positional parameters, the first of which the statement calls :p1, as the arguments of `session.sql`."""
    return {f"p{number}": _carried(value) for number, value in enumerate(parameters, 1)}


def _carried(value: object) -> object:
    """Return a value as it travels: a list as a JSON array of texts and nulls."""
    if not isinstance(value, list | tuple):
        return value
    return json.dumps([None if one is None else _text(one) for one in value], ensure_ascii=False)


def _text(value: object) -> str:
    """Return a list's value as the text that Spark casts back to the same value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, float) else str(value)
