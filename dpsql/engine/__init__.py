"""The spine: one statement from text to rows. `session.Session` is what all interfaces use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..release.finer import EditionNote
    from .answer import Answer, AnswerColumn, BoundNote, GroupNote, RankNote, Receipt
    from .explain import Explanation
    from .session import Session

__all__ = [
    "Answer",
    "AnswerColumn",
    "BoundNote",
    "EditionNote",
    "Explanation",
    "GroupNote",
    "RankNote",
    "Receipt",
    "Session",
]

_HOMES = {"EditionNote": "..release.finer", "Explanation": ".explain", "Session": ".session"}


def __getattr__(name: str) -> object:
    """Import what a name needs on first use: who names one module of the engine does not load all of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, ".answer"), __name__), name)
