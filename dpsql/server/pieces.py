"""The statements of what a client sends at once."""

from __future__ import annotations

from ..sql.script import Statement, split_statements
from ..sql.text import MAX_TEXT
from .report import Fault

__all__ = ["cut"]

_MAX_TEXT = 4 * MAX_TEXT


def cut(text: str) -> list[Statement]:
    """Return the statements of a text. Raises Fault: it is too long to be looked through at once."""
    if len(text) > _MAX_TEXT:
        raise Fault(
            "54001", f"the text has more than {_MAX_TEXT} characters", hint="send fewer statements at once"
        )
    return split_statements(text)
