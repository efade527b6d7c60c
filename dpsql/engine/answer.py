"""What a statement gives back: rows, their columns, and a receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..relation.types import SqlType
from .left import charged_text, delta_text, said_epsilon
from .settings import decimal_text

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = [
    "Answer", "AnswerColumn", "BoundNote", "GroupNote", "OnceNote", "OpenRankNote", "RankNote", "Receipt", "RowNote",
]  # fmt: skip


class GroupNote(str):
    """A note that says which groups an answer has; over the wire it is a NOTICE of its own."""

    __slots__ = ()


class RowNote(GroupNote):
    """One that says why rows of people are not in an answer."""

    __slots__ = ()


class OnceNote(GroupNote):
    """One that a session tells once."""

    __slots__ = ()


class BoundNote(str):
    """A note that says what a bound on one person may leave out; over the wire it is a NOTICE of its own too."""

    __slots__ = ()


class RankNote(str):
    """A note on how far a chosen value may be from the wanted one; over the wire it is a NOTICE of its own too."""

    __slots__ = ()


class OpenRankNote(RankNote):
    """One that will say more once a count is stored: an answer that has it is not remembered."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A result column; `bar_of`: it is the low or, behind it, the high end of the bars of the column at this place."""

    name: str
    type: SqlType
    bar_of: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a statement cost: `epsilon` and `delta` charged, epsilon `left` under the caps that bind this
    analyst, whether everything was `reused` from the store, and `notes` for the analyst.

    Under zCDP `epsilon` is what was asked with, `rho` what was charged, in 1e-18, `left` the most that one statement
    could take, and `left_words` what is left in words."""

    epsilon: Fraction
    delta: Fraction
    left: Fraction
    reused: bool
    notes: tuple[str, ...] = ()
    rho: int | None = None
    left_words: str | None = None

    @property
    def said_left(self) -> str:
        """What is left, in words."""
        return self.left_words or f"{decimal_text(self.left)} left"

    @property
    def said_charge(self) -> str:
        """What was charged, in words."""
        delta = f", delta {delta_text(self.delta)}" if self.delta else ""
        return (
            f"epsilon {said_epsilon(self.epsilon)}" if self.rho is None else charged_text(self.rho)
        ) + delta

    @property
    def said(self) -> str:
        """What it cost and what is left, in one line."""
        if self.epsilon or self.delta:
            return f"charged {self.said_charge}; {self.said_left}"
        why = "answered from stored releases" if self.reused else "nothing private was asked"
        return f"free: {why}; {self.said_left if self.left_words else f'epsilon {self.said_left}'}"

    def __repr__(self) -> str:
        return f"<Receipt: {self.said}>"

    def __str__(self) -> str:
        from .shown import receipt_text

        return receipt_text(self)

    def _repr_html_(self) -> str:
        from .shown import receipt_html

        return receipt_html(self)


@dataclass(frozen=True, slots=True)
class Answer:
    """A statement's result; `command` is SELECT, EXPLAIN, SET, SHOW or RESET.

    Notebooks show it as a table with each number's bar, and the receipt below it.
    """

    columns: tuple[AnswerColumn, ...]
    rows: Sequence[tuple[object, ...]]
    command: str
    receipt: Receipt | None

    def df(self) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame. Raises Refusal 0A000 when pandas or pyarrow is not installed."""
        from .frames import pandas_frame

        return pandas_frame(self.columns, self.rows)

    def arrow(self) -> pyarrow.Table:
        """Return the rows as an Arrow table. Raises Refusal 0A000 when pyarrow is not installed."""
        from .frames import arrow_table

        return arrow_table(self.columns, self.rows)

    def pl(self) -> polars.DataFrame:
        """Return the rows as a Polars DataFrame. Raises Refusal 0A000 when Polars or pyarrow is not installed."""
        from .frames import polars_frame

        return polars_frame(self.columns, self.rows)

    def plot(self, number: str | None = None, ax: Any = None) -> Any:
        """Draw a number of the answer with its error bars; return matplotlib's axes.

        `number`: the column's name; without it the first that has bars, else the last number. `ax`: axes to draw on.
        Raises Refusal: 0A000 when matplotlib is not installed, 42703 where there is no such number.
        """
        from .plot import plot

        return plot(self, number, ax)

    def __repr__(self) -> str:
        from .shown import answer_text

        return answer_text(self)

    def _repr_html_(self) -> str:
        from .shown import answer_html

        return answer_html(self)
