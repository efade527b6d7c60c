"""Why a query of the system catalog is not answered: one refusal, and its kind for the owner's log."""

from __future__ import annotations

from ..errors import Refusal

MOST_OF_A_SERIES = 1_000_000
_HINT = "declared tables and columns are in information_schema.tables and information_schema.columns"


class CatalogRefusal(Refusal):
    """The query is not answered. `kind` says which construct it was, in words of ours and names in the text.

    `kind` is for the owner's log; it holds no row, and no text of an engine.
    """

    default_sqlstate = "0A000"

    def __init__(self, kind: str, *, message: str | None = None, sqlstate: str | None = None) -> None:
        super().__init__(
            message or "this query of the system catalog is not supported", sqlstate=sqlstate, hint=_HINT
        )
        self.kind = kind


def unsupported(kind: str) -> CatalogRefusal:
    """Return the refusal of a construct."""
    return CatalogRefusal(kind)


_RAISED = {
    "series": ("54000", f"generate_series gives at most {MOST_OF_A_SERIES} rows"),
    "step": ("22023", "step size cannot equal zero"),
    "length": ("22023", "negative substring length not allowed"),
    "limit": ("22023", "LIMIT must not be negative"),
    "offset": ("22023", "OFFSET must not be negative"),
    "zone": ("22023", "the only time zone here is UTC"),
    "place": ("22023", "field position must not be zero"),
}
"""What a value may turn out to be while a query runs -> SQLSTATE and message."""


def raised(what: str) -> str:
    """Return the engine's SQL that ends a query: a value is refused, and never put right in silence."""
    assert what in _RAISED
    return f"error('dpsql:{what}')"


def raised_in(error: Exception) -> CatalogRefusal | None:
    """Return the refusal that a query ended itself with; None for an error of the engine's own."""
    for what, (sqlstate, message) in _RAISED.items():
        if f"dpsql:{what}" in str(error):
            return CatalogRefusal(what, message=message, sqlstate=sqlstate)
    return None
