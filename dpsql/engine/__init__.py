"""The spine: one statement from text to rows. `session.Session` is what all interfaces use."""

from __future__ import annotations

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
