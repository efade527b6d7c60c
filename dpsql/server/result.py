"""What a statement gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..pgwire import Column, NoticeResponse, ParameterStatus
from .statements import CopyOut

__all__ = ["Result"]

_COUNTED = ("SELECT", "COPY", "FETCH")


@dataclass(frozen=True, slots=True)
class Result:
    """Rows, or a tag alone; `copy`: the rows go out as a copy; `is_binary`: they are those of a binary cursor."""

    tag: str
    columns: tuple[Column, ...] = ()
    rows: Sequence[tuple[object, ...]] = ()
    notices: tuple[NoticeResponse, ...] = ()
    statuses: tuple[ParameterStatus, ...] = ()
    copy: CopyOut | None = None
    is_binary: bool = False

    def tag_of(self, count: int) -> str:
        """Return the tag after so many rows."""
        return f"{self.tag} {count}" if self.tag in _COUNTED else self.tag
