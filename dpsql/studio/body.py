"""What a page has sent: JSON, read with the types that are wanted, and errors as it is told them."""

from __future__ import annotations

from typing import Any

from ..errors import DpsqlError, EngineFailure
from ..sql.text import ScriptStatement, split_statements

__all__ = ["BadRequest", "Body", "refusal", "statement_at"]


class BadRequest(Exception):
    """What was sent is not what the page sends."""


class Body:
    """An object of JSON."""

    def __init__(self, content: object) -> None:
        if not isinstance(content, dict):
            raise BadRequest
        self._content: dict[str, Any] = content

    def text(self, name: str, usual: str | None = None) -> str:
        """Return a text. Raises BadRequest."""
        found = self._content.get(name, usual)
        if not isinstance(found, str):
            raise BadRequest
        return found

    def number(self, name: str, usual: int | None = None) -> int:
        """Return a whole number, from 0 on. Raises BadRequest."""
        found = self._content.get(name, usual)
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise BadRequest
        return found

    def texts(self, name: str) -> list[str]:
        """Return texts. Raises BadRequest."""
        found = self._content.get(name)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise BadRequest
        return list(found)

    def controls(self) -> dict[str, str]:
        """Return what the page's own controls set, by the setting's name. Raises BadRequest."""
        found = self._content.get("controls", {})
        if not isinstance(found, dict) or not set(found) <= {"epsilon"}:
            raise BadRequest
        if not all(isinstance(value, str) for value in found.values()):
            raise BadRequest
        return {name: value for name, value in found.items() if value}


def statement_at(text: str, cursor: int) -> ScriptStatement | None:
    """Return the statement of a text in which a cursor stands, else the last before it; None where there is none."""
    pieces = split_statements(text)
    before = [piece for piece in pieces if piece.start <= cursor]
    return before[-1] if before else (pieces[0] if pieces else None)


def refusal(error: DpsqlError, piece: ScriptStatement | None, *, is_owner: bool) -> dict[str, Any]:
    """Return an error as the page shows it; its place is one in the whole text, in characters.

    `is_owner`: the hint is for who has the policy file in hand.
    """
    own = not isinstance(error, EngineFailure) and is_owner
    place = error.position
    offset = None if place is None or piece is None or place.offset > len(piece.text) else place.offset
    return {
        "code": error.sqlstate,
        "message": error.message,
        "hint": (error.owner_hint or error.hint) if own else error.hint,
        "cost": error.cost,
        "offset": None if offset is None or piece is None else piece.start + offset,
    }
