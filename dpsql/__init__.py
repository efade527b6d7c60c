"""dpsql: ask a private database in SQL; get differentially private answers with error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .engine import Answer as Answer
    from .engine import Explanation as Explanation
    from .engine import Receipt as Receipt
    from .engine import Session as Session
    from .errors import DpsqlError as DpsqlError

__all__ = ["Answer", "DpsqlError", "Explanation", "Receipt", "Session", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import the engine on first use, so that `dpsql --help` stays quick."""
    if name == "DpsqlError":
        from .errors import DpsqlError

        return DpsqlError
    if name in __all__:
        from . import engine

        return getattr(engine, name)
    raise AttributeError(f"module 'dpsql' has no attribute {name!r}")
