"""The statements of what a client sends at once."""

from __future__ import annotations

from ..sql.script import Statement, split_statements
from ..sql.text import MAX_TEXT
from .report import Fault

__all__ = ["cut"]

_MAX_TEXT = 4 * MAX_TEXT
_MAX_STATEMENTS = 10_000


def cut(text: str) -> list[Statement]:
    """Return the statements of a text. Raises Fault: it is too long to be looked through at once."""
    if len(text) > _MAX_TEXT:
        raise Fault(
            "54001", f"the text has more than {_MAX_TEXT} characters", hint="send fewer statements at once"
        )
    found = split_statements(text)
    if len(found) > _MAX_STATEMENTS:
        raise Fault("54001", f"there are more than {_MAX_STATEMENTS} statements", hint="send fewer at once")
    return found
