"""What a statement gives back: rows, their columns, and a receipt; what is spent and what is left, in words.

House rule: under zCDP no two epsilons are added or subtracted. An epsilon that is said to be spent is that of all the
rho; what is left is said as a number of statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..budget import Scope, Status, epsilon_text, rho_text, shown_epsilon
from ..mechanisms import ATTO, NANO, rho_of_pure
from ..records import dataclass
from ..relation.types import SqlType
from ..words import plural, small_text
from .settings import decimal_text

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class GroupNote(str):
    """A note that says which groups an answer has; over the wire it is a NOTICE of its own."""

    __slots__ = ()


class RowNote(GroupNote):
    """One that says why rows of people are not in an answer."""

    __slots__ = ()


class EmptyNote(GroupNote):
    """One that says why an answer has no group."""

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
        return self.left_words or f"{_short_left(int(self.left * NANO))} left"

    @property
    def said_charge(self) -> str:
        """What was charged, in words."""
        delta = f", delta {said_delta(self.delta)}" if self.delta else ""
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
        from .barred import receipt_text

        return receipt_text(self)

    def _repr_html_(self) -> str:
        from .barred import receipt_html

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
        from .picture import plot

        return plot(self, number, ax)

    def __repr__(self) -> str:
        from .barred import answer_text

        return answer_text(self)

    def _repr_html_(self) -> str:
        from .barred import answer_html

        return answer_html(self)


# --- what is spent and what is left, in words ---------------------------------------------------------

_SIX = Context(prec=6, rounding=ROUND_CEILING)


def statements_left(status: Status, each: Fraction) -> int:
    """Return how many statements of an epsilon still fit under all caps but that of delta."""
    cost = int(each * NANO)
    return min(scope.left for scope in status.scopes) // (rho_of_pure(cost) if status.in_rho else cost)


def left_text(status: Status, each: Fraction) -> str:
    """Return what is left; `each`: the epsilon of a statement, where it is told in statements."""
    if not status.in_rho:
        return f"{_short_left(status.left_nano)} left{of_text(status)}"
    return in_statements(status, each) + of_text(status)


def of_text(status: Status) -> str:
    """Return which slices it is of, where a ledger is kept by slices: `, of 2026-03`; else nothing."""
    return f", of {status.of}" if status.of else ""


def in_statements(status: Status, each: Fraction) -> str:
    """Return how many statements of an epsilon still fit, in words."""
    number = statements_left(status, each)
    return f"about {number:,} more {plural(number, 'statement')} at {decimal_text(each)}"


def charged_text(rho_atto: int) -> str:
    """Return what is charged under zCDP, but for a delta: the epsilon that was asked with, and its rho."""
    return f"as epsilon {shown_epsilon(rho_atto)} (rho {rho_text(rho_atto)})"


def budget_text(status: Status, each: Fraction) -> str:
    """Return what is spent and what is left, of the cap that is reached first."""
    least = min(status.scopes, key=lambda scope: scope.left)
    is_own = least != status.scopes[0]
    if not status.in_rho:
        caps = [status.epsilon_cap_nano]
        caps += [] if status.analyst_cap_nano is None else [status.analyst_cap_nano]
        return f"{_short_left(status.left_nano)} of {epsilon_text(min(caps))} epsilon left{of_text(status)}"
    if least.until:
        return f"{ration_text(least, status)}; {left_text(status, each)}"
    spent, cap = (
        (status.analyst_spent_nano, status.analyst_cap_nano or 0)
        if is_own
        else (status.epsilon_spent_nano, status.epsilon_cap_nano)
    )
    return f"{spent_text(spent, cap, least.spent, least.cap, status)}; {left_text(status, each)}"


def ration_text(scope: Scope, status: Status) -> str:
    """Return what is spent of a period's cap, which is a ration inside the total."""
    unit, text = ("rho", rho_text) if status.in_rho else ("epsilon", epsilon_text)
    return f"{scope.whose} ration: {unit} {text(scope.spent)} of {text(scope.cap)} spent, until {scope.until} (UTC)"


def spent_text(
    spent_nano: int, cap_nano: int | None, rho_atto: int, rho_cap_atto: int | None, status: Status
) -> str:
    """Return what is spent under zCDP in one scope: the epsilon of the rho, at which delta, and the rho."""
    delta = said_delta(Fraction(status.conversion_delta_atto, ATTO))
    at = f"at delta {delta}"
    epsilon = f"epsilon {_short(spent_nano)}"
    if cap_nano is None or rho_cap_atto is None:
        return f"{epsilon} spent {at} (rho {rho_text(rho_atto)}), no cap of their own"
    return f"{epsilon} of {epsilon_text(cap_nano)} spent {at} (rho {rho_text(rho_atto)} of {rho_text(rho_cap_atto)})"


def _short(epsilon_nano: int) -> str:
    """Return an epsilon that is spent, rounded up to its first four digits."""
    step = int(10 ** max(0, len(str(epsilon_nano)) - 4))
    return epsilon_text(-(-epsilon_nano // step) * step)


def _short_left(epsilon_nano: int) -> str:
    """Return an epsilon that is left, rounded down to four decimals, of a small one to its first four digits."""
    step = min(NANO // 10**4, int(10 ** max(0, len(str(epsilon_nano)) - 4)))
    return epsilon_text(epsilon_nano // step * step)


def said_delta(delta: Fraction) -> str:
    """Return a delta as people write it, 1e-9, rounded up to six digits."""
    return small_text(_up(delta))


def said_epsilon(epsilon: Fraction) -> str:
    """Return an epsilon that was charged, rounded up to six digits: so shares that were rounded down do not show."""
    return f"{_up(epsilon):f}"


def _up(number: Fraction) -> Decimal:
    found = _SIX.divide(Decimal(number.numerator), Decimal(number.denominator))
    return found.normalize(_SIX) if found else found
