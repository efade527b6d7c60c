"""Why a query of the system catalog is not answered: one refusal, and its kind for the owner's log."""

from __future__ import annotations

from ..errors import Refusal

__all__ = ["CatalogRefusal", "unsupported"]


class CatalogRefusal(Refusal):
    """The query is not answered. `kind` says which construct it was, in words of ours and names in the text.

    `kind` is for the owner's log; it holds no row, and no text of an engine.
    """

    default_sqlstate = "0A000"

    def __init__(self, kind: str, *, message: str | None = None, sqlstate: str | None = None) -> None:
        hint = "declared tables and columns are in information_schema.tables and information_schema.columns"
        super().__init__(
            message or "this query of the system catalog is not supported", sqlstate=sqlstate, hint=hint
        )
        self.kind = kind


def unsupported(kind: str) -> CatalogRefusal:
    """Return the refusal of a construct."""
    return CatalogRefusal(kind)
