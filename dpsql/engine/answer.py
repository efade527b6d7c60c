"""What a statement gives back: rows, their columns, and a receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..relation.types import SqlType

__all__ = ["Answer", "AnswerColumn", "BoundNote", "GroupNote", "OnceNote", "Receipt"]


class GroupNote(str):
    """A note that says which groups an answer has; over the wire it is a NOTICE of its own."""

    __slots__ = ()


class OnceNote(GroupNote):
    """One that a session tells once."""

    __slots__ = ()


class BoundNote(str):
    """A note that says what a bound on one person may leave out; over the wire it is a NOTICE of its own too."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A result column."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a statement cost: `epsilon` and `delta` charged, epsilon `left` under the caps that bind this
    analyst, whether everything was `reused` from the store, and `notes` for the analyst."""

    epsilon: Fraction
    delta: Fraction
    left: Fraction
    reused: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A statement's result; `command` is SELECT, EXPLAIN, SET, SHOW or RESET."""

    columns: tuple[AnswerColumn, ...]
    rows: Sequence[tuple[object, ...]]
    command: str
    receipt: Receipt | None
