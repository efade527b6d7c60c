"""Answers as pictures in characters: bars with whiskers, a histogram, a time series; as wide as the terminal.

A picture for each number of the answer, as `engine.answer` says which. A whisker is the number's error bar, left out
where it is smaller than a character.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise

from ..engine.answer import Picture, Point, aligned
from ..records import dataclass
from ..words import plain_text, terminal_text
from .terminal import can_write, display_width, styled, width

_HEIGHT = 10
_LEAST_PLOT = 10
_MOST_STEP = 7
"""Most characters between two points of a histogram or a series."""


@dataclass(frozen=True, slots=True)
class _Marks:
    """The characters of a picture: a bar, its parts by eighths, a point, whiskers across and upright, a truth.

    `both`: a truth in the place of what was answered, so that neither hides the other.
    """

    fill: str
    eighths: str
    point: str
    low: str
    across: str
    high: str
    top: str
    upright: str
    bottom: str
    axis: str
    corner: str
    truth: str
    both: str


_FINE = _Marks("█", "▁▂▃▄▅▆▇█", "●", "├", "─", "┤", "┬", "│", "┴", "─", "└", "×", "⊗")
_PLAIN = _Marks("#", "       #", "o", "|", "-", "|", "+", "|", "+", "-", "+", "x", "@")


def truth_marks() -> tuple[str, str]:
    """Return the character that marks a truth, and the one that marks it in the place of what was answered."""
    return _marks().truth, _marks().both


def chart_lines(picture: Picture, height: int = _HEIGHT) -> list[str]:
    """Return a picture's lines, no wider than the terminal where that has room for any; `height`: of one upright."""
    marks = _marks()
    if not any(point is not None for point in picture.points):
        return [f"{picture.title}: nothing to draw"]
    places = _places(picture)
    if places is not None:
        drawn = _upright(picture, places, height, marks)
        if drawn is not None:
            return drawn
    return list(_across(picture, marks))


def _marks() -> _Marks:
    """Return the characters that standard output has."""
    return _FINE if can_write("".join(getattr(_FINE, name) for name in _FINE.__slots__)) else _PLAIN


# --- a bar for each row -------------------------------------------------------------------------------------


def _across(picture: Picture, marks: _Marks) -> Iterator[str]:
    texts = list(aligned(picture.shown.barred(_plain)))
    most = min(max(map(display_width, (*picture.labels, ""))), width() // 3)
    room = max(width() - most - max(map(len, texts)) - 5, _LEAST_PLOT)
    scale = _Scale.of(picture, room)
    yield styled(f" {_title(picture)}", bold=True)
    for index, (label, text, point) in enumerate(zip(picture.labels, texts, picture.points, strict=True)):
        truth = None if picture.truths is None else picture.truths[index]
        yield f" {_cut(label, most)}  {text}  {_bar(point, truth, scale, marks)}".rstrip()
    low, high = _number(scale.low), _number(scale.high)
    start = " " * (most + max(map(len, texts)) + 5)
    yield f"{start}{low}{high.rjust(room - len(low))}"


def _bar(point: Point | None, truth: float | None, scale: _Scale, marks: _Marks) -> str:
    if point is None:
        return ""
    cells = [" "] * scale.size
    value, low, high = (scale.cell(one) for one in point)
    if scale.is_from_zero:
        zero = scale.cell(0.0)
        for cell in range(min(zero, value), max(zero, value) + 1):
            cells[cell] = marks.fill
    if high - low >= 2:
        cells[low + 1 : high] = marks.across * (high - low - 1)
        cells[low], cells[high] = marks.low, marks.high
        cells[value] = marks.point
    elif not scale.is_from_zero:
        cells[value] = marks.point
    if truth is None:
        return _coloured(cells, None, marks)
    return _coloured(cells, scale.cell(truth), marks)


def _coloured(cells: list[str], truth: int | None, marks: _Marks) -> str:
    text = "".join(cells)
    if truth is None:
        return styled(text, colour="cyan")
    head, tail = text[:truth], text[truth + 1 :]
    return (
        styled(head, colour="cyan")
        + styled(marks.both if cells[truth] == marks.point else marks.truth, colour="red", bold=True)
        + styled(tail, colour="cyan")
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Numbers as places in a row of `size` characters, or of parts of them."""

    low: float
    high: float
    size: int
    is_from_zero: bool

    @classmethod
    def of(cls, picture: Picture, size: int) -> _Scale:
        low, high, is_from_zero = picture.range
        return cls(*_round_ends(low, high or (1.0 if not low else 0.0)), size, is_from_zero)

    def cell(self, number: float) -> int:
        share = (number - self.low) / ((self.high - self.low) or 1.0)
        return min(max(round(share * (self.size - 1)), 0), self.size - 1)


def _step(span: float) -> float:
    """Return a round number, of which a span has four to ten."""
    power = 10.0 ** math.floor(math.log10(span))
    return float(next(power * part for part in (0.1, 0.2, 0.25, 0.5, 1.0) if span <= 10 * power * part))


def _round_ends(low: float, high: float) -> tuple[float, float]:
    step = _step((high - low) or abs(high))
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _number(number: float) -> str:
    number += 0.0  # no -0
    return f"{number:.6g}" if abs(number) < 1e6 else f"{number:.3g}"


# --- a histogram, a series ----------------------------------------------------------------------------------


def _places(picture: Picture) -> list[float] | None:
    """Return where the rows stand on an axis of numbers or of time; None where what names them is no axis."""
    if picture.axis is None or len(picture.labels) < 3:
        return None
    places = [_place(value) for value in picture.axis.values]
    known = [place for place in places if place is not None]
    return None if len(set(known)) < len(places) else known


def _place(value: object) -> float | None:
    if isinstance(value, datetime):
        return value.timestamp() if value.tzinfo else (value - datetime(1970, 1, 1)).total_seconds()
    if isinstance(value, date):
        return float(value.toordinal())
    if isinstance(value, (int, float, Decimal)) and math.isfinite(value):
        return float(value)
    return None


def _upright(picture: Picture, places: list[float], height: int, marks: _Marks) -> list[str] | None:
    """Return the lines of a picture over an axis; None where the terminal is too narrow for its rows."""
    scale = _Scale.of(picture, height * 8)
    ticks = {0: scale.low, height // 2: (scale.low + scale.high) / 2, height - 1: scale.high}
    names = {row: _number(number) for row, number in ticks.items()}
    margin = max(map(len, names.values())) + 2
    order = sorted(range(len(places)), key=places.__getitem__)
    slots = _slots([places[index] for index in order])
    step = min((width() - margin - 1) // (slots[-1] + 1), _MOST_STEP)
    if step < 1:
        return None
    is_filled = scale.is_from_zero and picture.keys[0].type.is_number
    grid = [[" "] * (step * (slots[-1] + 1)) for _ in range(height)]
    truths = list[tuple[int, int]]()
    for index, slot in zip(order, slots, strict=True):
        point = picture.points[index]
        if point is not None:
            _stand(grid, slot * step, step, point, scale, marks, is_filled=is_filled)
        if picture.truths is not None:
            truths.append((scale.cell(picture.truths[index]) // 8, slot * step + _beside(step, is_filled)))
    lines = [styled(f" {_title(picture, with_bar=True)}", bold=True)]
    for row in reversed(range(height)):
        marked = {column for at, column in truths if at == row}
        lines.append(
            f" {names.get(row, '').rjust(margin - 2)} {_grid_line(grid[row], marked, marks)}".rstrip()
        )
    lines.append(f"{' ' * (margin - 1)}{marks.corner}{marks.axis * (len(grid[0]) - 1)}")
    return [
        *lines,
        _axis_labels(picture, [(order[at], slot * step) for at, slot in enumerate(slots)], margin),
    ]


def _beside(step: int, is_filled: bool) -> int:
    """Return the column of a truth within those of a row of an answer: beside what is drawn, where there is room."""
    return step - 1 if is_filled else min((step - 1) // 2 + 1, step - 1)


def _stand(
    grid: list[list[str]], left: int, step: int, point: Point, scale: _Scale, marks: _Marks, *,
    is_filled: bool,
) -> None:  # fmt: skip
    """Draw one row of an answer: a column or a point, and its whisker upright."""
    middle = left + (step - 1) // 2
    value, low, high = (scale.cell(one) for one in point)
    if is_filled:
        zero = scale.cell(0.0)
        for row in range(len(grid)):
            part = value - 8 * row
            for column in range(left, left + max(step - (step > 2), 1)):
                if 8 * row >= zero - 7 and part > 0 and value >= zero:
                    grid[row][column] = marks.eighths[min(part, 8) - 1]
                elif value < zero and 8 * row < zero and part < 0:
                    grid[row][column] = marks.fill
    rows = range(low // 8, high // 8 + 1)
    if len(rows) >= 2:
        for row in rows:
            grid[row][middle] = marks.upright
        grid[rows[0]][middle], grid[rows[-1]][middle] = marks.bottom, marks.top
    if not is_filled:
        grid[value // 8][middle] = marks.point


def _grid_line(cells: list[str], truths: set[int], marks: _Marks) -> str:
    parts = [
        styled(marks.truth if cell == " " else marks.both, colour="red", bold=True)
        if column in truths
        else cell
        for column, cell in enumerate(cells)
    ]
    text, done = "", 0
    for column in [*sorted(truths), len(cells)]:
        text += styled("".join(parts[done:column]), colour="cyan") + (
            parts[column] if column < len(cells) else ""
        )
        done = column + 1
    return text if truths else styled("".join(cells).rstrip(), colour="cyan")


def _slots(places: list[float]) -> list[int]:
    """Return the columns of sorted places: in even steps where these fit, else one after the other."""
    least, span = min(later - place for place, later in pairwise(places)), places[-1] - places[0]
    if span < 3 * len(places) * least:
        slots = [round((place - places[0]) / least) for place in places]
        if all(
            abs((place - places[0]) / least - slot) < 0.05 for place, slot in zip(places, slots, strict=True)
        ):
            return slots
    return list(range(len(places)))


def _axis_labels(picture: Picture, columns: Sequence[tuple[int, int]], margin: int) -> str:
    """Return the line below an axis: as many labels as have room."""
    line = " " * margin
    for index, column in columns:
        start = margin + column
        if start >= len(line) + (1 if line.strip() else 0) and start + len(picture.labels[index]) <= width():
            line = line.ljust(start) + picture.labels[index]
    return line.rstrip()


def _title(picture: Picture, *, with_bar: bool = False) -> str:
    """Return what is drawn, by what, and the size of the bars where all have one size and are not told beside them."""
    names = ", ".join(terminal_text(key.name) for key in picture.keys)
    bars = {bar for _, bar in picture.shown.barred(_plain)}
    title = f"{picture.title} by {names}" if names else picture.title
    return f"{title}, each {bars.pop()}" if with_bar and len(bars) == 1 and "" not in bars else title


def _plain(value: object) -> str:
    return "NULL" if value is None else plain_text(value)


def _cut(label: str, most: int) -> str:
    """Return a label in so many characters, the last of them a point where there are more."""
    if display_width(label) > most:
        while label and display_width(label) >= most:
            label = label[:-1]
        label += "…" if can_write("…") else "."
    return label + " " * (most - display_width(label))
