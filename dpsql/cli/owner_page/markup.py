"""Text as HTML, harmless wherever it comes from."""

from __future__ import annotations

import html
import json

from ..text_cells import terminal_text

__all__ = ["data", "text"]


def text(value: object) -> str:
    """Return a text to stand between tags or in a quoted attribute; what reorders or hides text is spelled out."""
    return html.escape(terminal_text(str(value)), quote=True)


def data(value: object) -> str:
    """Return JSON that no text in it ends: to stand in a script element of data."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")
