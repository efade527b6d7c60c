"""What a statement gives back: rows, their columns, and a receipt, as text, frames and pictures.

Answers as people read them, on a terminal and in a notebook: `5414 ± 30`, with the digits that the noise leaves
meaningful. A bar is told with two digits, rounded up, and its number to the same place. Where the two ends are not
about as far away, they are told themselves, rounded outwards. The exact columns: `--format csv` and `--json`.

House rules:

1. Under zCDP no two epsilons are added or subtracted. An epsilon that is said to be spent is that of all the rho; what
   is left is said as a number of statements.
2. Only what was released is shown: rows, their bars, the receipt. Nothing is asked anew and nothing is charged.
3. Whatever stands in a row is content of the data: it is escaped, on a terminal as in HTML.

As a table of Arrow, pandas or Polars, which are optional, each imported when it is first asked for, it has the types of
its columns:

| SQL | Arrow | pandas |
|---|---|---|
| smallint, integer, bigint | int16, int32, int64 | Int16, Int32, Int64 (NULL stays NULL, nothing is rounded) |
| numeric(p, s) | decimal128(38, s) | that, of Arrow |
| numeric | decimal128(38, as many digits as the values have) | that, of Arrow |
| real, double precision | float, double | float32, float64 |
| boolean, text | bool, string | boolean, str |
| an array of one of these | list | that, as an object |
| date, timestamp, interval | date32, timestamp[us], duration[us] | date32 of Arrow, datetime64[us], timedelta64[us] |

A column with a number of more digits than a decimal of 38 holds has 76, and beyond that it is double.

A picture, whatever draws it, is of a number with its bars. What its rows are named by says which kind of picture it is:
one date, time or number is an axis, of a series or a histogram; anything else has a bar for each row. Numbers far from
zero are points, since a bar that does not begin at zero shows nothing.

In matplotlib a number whose bar is not known has no whisker.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from html import escape
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..budget import Scope, Status, epsilon_text, rho_text, shown_epsilon
from ..errors import Refusal
from ..mechanisms import ATTO, NANO, rho_of_pure
from ..records import dataclass
from ..relation.types import Kind, SqlType
from ..words import plain_text, plural, small_text, terminal_text
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
        """Return what it cost and what is left, with a line for each note."""
        return "\n".join([self.said, *(f"NOTE: {terminal_text(note)}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """Return the same as HTML."""
        notes = "".join(f"<br>NOTE: {escape(terminal_text(note))}" for note in self.notes)
        return f"<p><small>{escape(self.said)}{notes}</small></p>"


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
        return pandas_frame(self.columns, self.rows)

    def arrow(self) -> pyarrow.Table:
        """Return the rows as an Arrow table. Raises Refusal 0A000 when pyarrow is not installed."""
        return arrow_table(self.columns, self.rows)

    def pl(self) -> polars.DataFrame:
        """Return the rows as a Polars DataFrame. Raises Refusal 0A000 when Polars or pyarrow is not installed."""
        return polars_frame(self.columns, self.rows)

    def plot(self, number: str | None = None, ax: Any = None) -> Any:
        """Draw a number of the answer with its error bars; return matplotlib's axes.

        `number`: the column's name; without it the first that has bars, else the last number. `ax`: axes to draw on.
        Raises Refusal: 0A000 when matplotlib is not installed, 42703 where there is no such number.
        """
        return plot(self, number, ax)

    def __repr__(self) -> str:
        """Return it as a table, each number with its bar, and the receipt's lines below it."""
        if not self.columns:
            return self.command
        number = len(self.rows)
        below = [f"({number} {plural(number, 'row')})", *_more(self)]
        below += [] if self.receipt is None else [str(self.receipt)]
        return "\n".join([*Cells.barred(self, _cell, _MOST_ROWS).lines(), *below])

    def _repr_html_(self) -> str:
        """Return the same as HTML."""
        if not self.columns:
            return f"<p>{escape(self.command)}</p>"
        cells = Cells.barred(self, _cell, _MOST_ROWS)
        below = "".join(f"<br>{escape(one)}" for one in _more(self))
        receipt = "" if self.receipt is None else self.receipt._repr_html_()
        return table_html(cells.names, cells.rows, cells.types) + below + receipt


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


# --- answers as people read them: a number with its bar -----------------------------------------------------


_UNEVEN = Decimal("1.5")
"""From so many times the nearer end's distance on, a bar is told by its ends."""
_MOST_DIGITS = 15
"""A double's digits; what has more, or begins further behind the point, is told as it is."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of an answer as people see it: its values, and low and high of each where it has bars."""

    name: str
    type: SqlType
    values: Sequence[object]
    lows: Sequence[object] | None = None
    highs: Sequence[object] | None = None

    @property
    def has_bars(self) -> bool:
        """Whether one of its values has a bar."""
        return self.lows is not None and any(low is not None for low in self.lows)

    def barred(self, plain: Callable[[object], str]) -> list[tuple[str, str]]:
        """Return each value and its bar, which is empty where there are none; `plain`: a value with all its digits."""
        if self.lows is None or self.highs is None or not self.has_bars:
            return [(plain(value), "") for value in self.values]
        ends = zip(self.values, self.lows, self.highs, strict=True)
        return [barred_cell(value, low, high, plain(value)) for value, low, high in ends]


@dataclass(frozen=True, slots=True)
class Cells:
    """A table of texts, however it is written: names and types of its columns, and its rows."""

    names: Sequence[str]
    types: Sequence[SqlType]
    rows: Sequence[Sequence[str]]

    @classmethod
    def exact(cls, answer: Answer, plain: Callable[[object], str]) -> Cells:
        """Return all columns of an answer, the ends of bars too."""
        rows = [list(map(plain, row)) for row in answer.rows]
        return cls(
            [terminal_text(one.name) for one in answer.columns], [one.type for one in answer.columns], rows
        )

    @classmethod
    def barred(cls, answer: Answer, plain: Callable[[object], str], most: int | None = None) -> Cells:
        """Return an answer with a column for each number and its bar, point below point; `most`: first rows."""
        shown = columns_of(answer, most)
        texts = [
            list(aligned(one.barred(plain))) if one.has_bars else list(map(plain, one.values))
            for one in shown
        ]
        rows = list(zip(*texts, strict=True))
        return cls([terminal_text(one.name) for one in shown], [one.type for one in shown], rows)

    def lines(self, width: Callable[[str], int] = len) -> Iterator[str]:
        """Yield the names, the rule below them, and the rows; numbers stand at the right. `width`: a text's."""
        widths = [max(map(width, column)) for column in zip(self.names, *self.rows, strict=True)]
        yield self._line(self.names, widths, width)
        yield "-" + "-+-".join("-" * most for most in widths) + "-"
        yield from (self._line(row, widths, width) for row in self.rows)

    def _line(self, row: Sequence[str], widths: Sequence[int], width: Callable[[str], int]) -> str:
        parts = []
        for text, most, type_ in zip(row, widths, self.types, strict=True):
            blank = " " * (most - width(text))
            parts.append(blank + text if type_.is_number else text + blank)
        return " " + " | ".join(parts).rstrip()


def columns_of(answer: Answer, most: int | None = None) -> list[Shown]:
    """Return the columns of an answer, the ends of bars with the numbers whose ends they are; `most`: first rows."""
    rows = answer.rows if most is None else answer.rows[:most]
    data = [[row[index] for row in rows] for index in range(len(answer.columns))]
    ends = {column.bar_of: index for index, column in reversed([*enumerate(answer.columns)])}
    return [
        Shown(column.name, column.type, data[index])
        if index not in ends
        else Shown(column.name, column.type, data[index], data[ends[index]], data[ends[index] + 1])
        for index, column in enumerate(answer.columns)
        if column.bar_of is None
    ]


def drawn_columns(answer: Answer) -> tuple[list[Shown], list[Shown]]:
    """Return the numbers of an answer that a picture draws, those with bars where there are any, and what is left.

    Without bars it is the last number: the others are taken for what the rows are named by.
    """
    columns = columns_of(answer)
    numbers = [one for one in columns if one.type.is_number]
    drawn = [one for one in numbers if one.has_bars] or numbers[-1:]
    return drawn, [one for one in columns if not any(one is other for other in drawn)]


def barred_cell(value: object, low: object, high: object, plain: str) -> tuple[str, str]:
    """Return a number and its bar; `plain`: the number with all its digits.

    >>> [barred_cell(*n, "") for n in ((5414, 5384.0, 5444.0), (62236.71, 62116.88, 62356.54), (40, 10.0, 99.0))]
    [('5414', '± 30'), ('62240', '± 120'), ('40', '(10 to 99)')]
    """
    if value is None or isinstance(value, bool):
        return plain, ""
    if low is None or high is None:
        return plain, "± ?"
    number, lower, upper = _decimal(value), _decimal(low), _decimal(high)
    if not (number.is_finite() and lower.is_finite() and upper.is_finite()):
        return plain, f"({low} to {high})"
    below, above = number - lower, upper - number
    near, far = min(below, above), max(below, above)
    if not far:
        return plain, ""
    least = min(_exponent(number), _exponent(lower), _exponent(upper))
    place = max(_rounded(far).adjusted() - 1, least)
    if max(number.adjusted(), upper.adjusted(), lower.adjusted()) > _MOST_DIGITS or place <= -_MOST_DIGITS:
        return plain, f"± {float(far):.2g}"
    if near < 0 or far > max(near * _UNEVEN, near + Decimal(1).scaleb(least)):
        ends = _text(lower, place, ROUND_FLOOR), _text(upper, place, ROUND_CEILING)
        return _text(number, place), f"({ends[0]} to {ends[1]})"
    return _text(number, place), f"± {_text(_rounded(far), place, ROUND_CEILING)}"


def aligned(cells: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield numbers and their bars in equally wide cells, point below point."""
    split = [value.partition(".") for value, _ in cells]
    before = max((len(whole) for whole, _, _ in split), default=0)
    after = max((len(point + part) for _, point, part in split), default=0)
    bars = max((len(bar) for _, bar in cells), default=0)
    for (whole, point, part), (_, bar) in zip(split, cells, strict=True):
        number = whole.rjust(before) + (point + part).ljust(after)
        yield f"{number} {bar.ljust(bars)}" if bars else number


def _decimal(value: object) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else Decimal(value)
    return Decimal(str(value))


def _exponent(number: Decimal) -> int:
    """Return the place of a number's last digit behind the point: the analyst, or a whole type, may have rounded it."""
    exponent = number.normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return min(exponent, 0)


def _rounded(number: Decimal) -> Decimal:
    """Return a distance without the last digits of a double, which mean nothing."""
    return Decimal(f"{number:.9g}")


def _text(number: Decimal, place: int, rounding: str = ROUND_HALF_EVEN) -> str:
    text = format(number.quantize(Decimal(1).scaleb(place), rounding), "f")
    return text.removeprefix("-") if not text.strip("-0.") else text


# --- answers, receipts and explanations as a notebook shows them --------------------------------------------


_MOST_ROWS = 60
"""Rows that are shown: the others are in `rows`."""
_LONGEST_CELL = 200
_NUMBER, _TEXT = "text-align: right; white-space: pre", "text-align: left"


def table_html(
    names: Sequence[str], rows: Sequence[Sequence[str]], types: Sequence[SqlType | None] = ()
) -> str:
    """Return a table; a column whose type is a number's is aligned as such."""
    styles = [_NUMBER if type_ is not None and type_.is_number else _TEXT for type_ in types]
    styles += [_TEXT] * (len(names) - len(styles))

    def line(tag: str, cells: Sequence[str]) -> str:
        parts = (
            f'<{tag} style="{style}">{escape(cell)}</{tag}>'
            for style, cell in zip(styles, cells, strict=True)
        )
        return f"<tr>{''.join(parts)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', names)}</thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    text = "NULL" if value is None else terminal_text(plain_text(value))
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def _more(answer: Answer) -> list[str]:
    hidden = len(answer.rows) - _MOST_ROWS
    return [f"{hidden:,} more {plural(hidden, 'row')} in the answer"] if hidden > 0 else []


# --- an answer as a table of Arrow, pandas or Polars -----------------------------------------------------


_PLAIN = {
    Kind.BOOLEAN: "bool", Kind.SMALLINT: "int16", Kind.INTEGER: "int32", Kind.BIGINT: "int64",
    Kind.REAL: "float", Kind.DOUBLE: "double", Kind.DATE: "date32", Kind.TIMESTAMP: "timestamp[us]",
    Kind.TIME: "time64[us]", Kind.INTERVAL: "duration[us]",
}  # fmt: skip
_DIGITS, _WIDE_DIGITS = 38, 76
_DEFAULT_SCALE = 18


def arrow_table(columns: Sequence[AnswerColumn], rows: Sequence[tuple[object, ...]]) -> pyarrow.Table:
    """Return rows as an Arrow table. Raises Refusal 0A000 when pyarrow is not installed."""
    pa = needed("pyarrow", '"dpsql[arrow]"')
    arrays = [
        _array(pa, list(map(itemgetter(index), rows)), column.type) for index, column in enumerate(columns)
    ]
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


def pandas_frame(columns: Sequence[AnswerColumn], rows: Sequence[tuple[object, ...]]) -> pandas.DataFrame:
    """Return rows as a pandas DataFrame. Raises Refusal 0A000 when pandas is not installed."""
    pd, pa = needed("pandas", '"dpsql[pandas]"'), needed("pyarrow", '"dpsql[pandas]"')
    whole = {
        pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }  # fmt: skip

    def dtype(type_: Any) -> Any:
        of_arrow = pa.types.is_decimal(type_) or pa.types.is_date(type_)
        return pd.ArrowDtype(type_) if of_arrow else whole.get(type_)

    frame: pandas.DataFrame = arrow_table(columns, rows).to_pandas(types_mapper=dtype)
    return frame


def polars_frame(columns: Sequence[AnswerColumn], rows: Sequence[tuple[object, ...]]) -> polars.DataFrame:
    """Return rows as a Polars DataFrame, in which the second column of a name has a number behind it.

    Raises Refusal 0A000 when Polars is not installed.
    """
    pl = needed("polars", '"dpsql[polars]"')
    needed("pyarrow", '"dpsql[polars]"')
    table = arrow_table(columns, rows)
    names = _distinct([column.name for column in columns])
    frame: polars.DataFrame = pl.from_arrow(table.rename_columns(names))
    return frame


def needed(package: str, install: str, module: str | None = None) -> Any:
    """Return a module of an optional package. Raises Refusal 0A000, with the line that installs it."""
    try:
        return importlib.import_module(module or package)
    except ImportError:
        missing = Refusal(
            f"this needs {package}, which is not installed", sqlstate="0A000", hint=f"pip install {install}"
        )
    raise missing


def _array(pa: Any, values: list[Any], type_: SqlType) -> Any:
    if type_.element is not None:
        return _lists(pa, values, type_.element)
    if type_.kind is Kind.NUMERIC:
        return _decimals(pa, values, type_.scale)
    name = _PLAIN.get(type_.kind)
    return pa.array(values, pa.string() if name is None else pa.type_for_alias(name))


def _lists(pa: Any, values: list[Any], element: SqlType) -> Any:
    """Return arrays, all of whose values are of one type."""
    ends = [0]
    flat: list[Any] = []
    for value in values:
        flat += value or []
        ends.append(len(flat))
    offsets = pa.array(
        [None if value is None else end for value, end in zip([*values, []], ends, strict=True)], pa.int32()
    )
    return pa.ListArray.from_arrays(offsets, _array(pa, flat, element))


def _decimals(pa: Any, values: list[Any], scale: int | None) -> Any:
    """Return exact decimals of one scale: the declared one, or the one that the values need."""
    found: Any = values
    if scale is None:
        found, scale = _read_scale(pa, values)
    for digits, decimal in ((_DIGITS, pa.decimal128), (_WIDE_DIGITS, pa.decimal256)):
        if scale <= digits:
            try:
                type_ = decimal(digits, scale)
                return pa.array(found, type_) if found is values else found.cast(type_)
            except pa.ArrowInvalid:  # too many digits
                continue
    return _doubles(pa, values)


def _read_scale(pa: Any, values: list[Any]) -> tuple[Any, int]:
    """Return the values as Arrow's text, and the most digits that one has after its point.

    Arrow finds that out by itself as well, and takes five times as long. Text with an exponent is written out.
    """
    pc = importlib.import_module("pyarrow.compute")
    text = pa.array([None if value is None else str(value) for value in values], pa.string())
    if pc.any(pc.match_substring(text, "E")).as_py():
        text = pa.array([None if value is None else f"{value:f}" for value in values], pa.string())
    point = pc.find_substring(text, ".")
    after = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(pc.binary_length(text), point), 1))
    most = pc.max(after).as_py()
    return text, _DEFAULT_SCALE if most is None else most


def _doubles(pa: Any, values: list[Any]) -> Any:
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def _distinct(names: list[str]) -> list[str]:
    """Return the names, each once: the second "n" is "n_1", or the next number that is free."""
    taken: set[str] = set(names)
    seen: set[str] = set()
    distinct = []
    for name in names:
        chosen, number = name, 0
        while chosen in seen or (number and chosen in taken):
            number += 1
            chosen = f"{name}_{number}"
        seen.add(chosen)
        distinct.append(chosen)
    return distinct


# --- what is drawn of an answer --------------------------------------------------------------------------


_MOST = 1e100
_FAR = 0.5
"""A smallest number above so much of the largest is far from zero."""

Point = tuple[float, float, float]
"""A number, and the ends of its bar: the number itself where there is none."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn of one number: by what its rows are named, values with their bars, and truths where known."""

    title: str
    keys: tuple[Shown, ...]
    labels: tuple[str, ...]
    shown: Shown
    truths: tuple[float, ...] | None = None

    @property
    def points(self) -> list[Point | None]:
        """Each row's number and the ends of its bar; None where there is none that can be drawn."""
        values = self.shown.values
        lows, highs = self.shown.lows or values, self.shown.highs or values
        return [_point(*ends) for ends in zip(values, lows, highs, strict=True)]

    @property
    def axis(self) -> Shown | None:
        """The one number, date or time that the rows are named by, each another; None: they are named otherwise."""
        key = self.keys[0] if len(self.keys) == 1 else None
        if key is None or not (key.type.is_number or key.type.kind in (Kind.DATE, Kind.TIMESTAMP)):
            return None
        known = [value for value in key.values if value is not None]
        return key if len(set(known)) == len(known) else None

    @property
    def range(self) -> tuple[float, float, bool]:
        """The least and the greatest of what is drawn, and whether bars begin at zero, which is in between then."""
        drawn = [*(end for point in self.points if point is not None for end in point), *(self.truths or ())]
        low, high = min(drawn, default=0.0), max(drawn, default=0.0)
        if self.shown.type.is_integer or low <= _FAR * high or high <= 0:
            return min(low, 0.0), max(high, 0.0), True
        return low, high, False


def _point(value: object, low: object, high: object) -> Point | None:
    number = _drawable(value)
    if number is None:
        return None
    ends = _drawable(low), _drawable(high)
    return number, number if ends[0] is None else ends[0], number if ends[1] is None else ends[1]


def _drawable(value: object) -> float | None:
    """Return a number that has a place on a scale: none of those that are endless, or nearly so."""
    if value is None or not abs(number := float(value)) < _MOST:  # type: ignore[arg-type]  # numbers alone
        return None
    return number if abs(number) > 1 / _MOST else 0.0


def pictures(answer: Answer, number: str | None = None) -> list[Picture]:
    """Return what can be drawn of an answer, none where it has no rows or no numbers but those that name rows.

    `number`: the name of a column that is to be drawn, whatever else could be.
    """
    drawn, others = drawn_columns(answer)
    if number is not None:
        columns = [*drawn, *others]
        drawn = [one for one in columns if one.name == number and one.type.is_number][:1]
        others = [one for one in others if not any(one is other for other in drawn)]
    if not answer.rows:
        return []
    names = [_names(one) for one in others]
    labels = tuple(" · ".join(name[index] for name in names) for index in range(len(answer.rows)))
    return [Picture(terminal_text(one.name), tuple(others), labels, one) for one in drawn]


def _names(key: Shown) -> list[str]:
    """Return what rows are named by; moments that are all at midnight as days."""
    texts = ["NULL" if value is None else terminal_text(plain_text(value)) for value in key.values]
    if key.type.kind is Kind.TIMESTAMP and all(
        text == "NULL" or text.endswith(" 00:00:00") for text in texts
    ):
        return [text.removesuffix(" 00:00:00") for text in texts]
    return texts


# --- the same in matplotlib, which is imported for the first one ---------------------------------------------


_WIDTH, _HEIGHT = 6.4, 4.8
_EDGES, _ROW, _HIGHEST = 1.0, 0.3, 40.0
"""Inches, as matplotlib has them: what surrounds bars, one bar, and the most of all."""


def plot(answer: Answer, number: str | None, ax: Any) -> Any:
    """Draw a number of an answer with its error bars and return matplotlib's axes; see `Answer.plot`."""
    picture = next(iter(pictures(answer, number)), None)
    if picture is None:
        named = "number" if number is None else f'number "{terminal_text(number)}"'
        raise Refusal(
            f"the answer has no {named} to draw", sqlstate="42703", hint="plot(name) draws one of its columns"
        )
    values = [math.nan if point is None else point[0] for point in picture.points]
    axis = picture.axis if len(values) > 1 else None
    if ax is None:
        pyplot = needed("matplotlib", "matplotlib", "matplotlib.pyplot")
        height = min(_EDGES + _ROW * len(values), _HIGHEST) if axis is None else _HEIGHT
        ax = pyplot.subplots(figsize=(_WIDTH, height), layout="constrained")[1]
    number_name, key_names = _plain(picture.shown.name), _plain(", ".join(key.name for key in picture.keys))
    if axis is not None:
        _along(ax, axis, values, _errors(picture))
        ax.set_xlabel(key_names)
        ax.set_ylabel(number_name)
        return ax
    places = list(range(len(values)))
    if picture.range[2]:
        ax.barh(places, values, xerr=_errors(picture), capsize=3, alpha=0.6)
    else:
        ax.errorbar(values, places, xerr=_errors(picture), fmt="o", capsize=3)
    ax.set_yticks(places, list(map(_plain, picture.labels)))
    ax.invert_yaxis()
    ax.set_xlabel(number_name)
    ax.set_ylabel(key_names)
    return ax


def _along(ax: Any, key: Shown, values: list[float], errors: list[list[float]] | None) -> None:
    """Draw points along an axis; a row without a key has no place on it."""
    order = [row for row, place in enumerate(key.values) if place is not None]
    order.sort(key=lambda row: key.values[row])  # type: ignore[arg-type,return-value]  # of one type
    places = [float(place) if key.type.is_number else place for place in (key.values[row] for row in order)]  # type: ignore[arg-type]
    ends = None if errors is None else [[side[row] for row in order] for side in errors]
    ax.errorbar(places, [values[row] for row in order], yerr=ends, fmt="o-", capsize=3)


def _errors(picture: Picture) -> list[list[float]] | None:
    """Return how far each bar reaches below and above, NaN where there is none; None where there are no bars."""
    if not picture.shown.has_bars:
        return None
    reach = [
        (math.nan, math.nan) if one is None else (one[0] - one[1], one[2] - one[0]) for one in picture.points
    ]
    return [[math.nan if not any(both) else max(both[side], 0.0) for both in reach] for side in (0, 1)]


def _plain(text: str) -> str:
    """Return a text that matplotlib does not read as a formula."""
    return terminal_text(text).replace("$", r"\$")
