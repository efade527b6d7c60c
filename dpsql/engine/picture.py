"""What is drawn of an answer, by whatever draws it: a number with its bars, by what its rows are named by.

What its rows are named by says which kind of picture it is: one date, time or number is an axis, of a series or a
histogram; anything else has a bar for each row. Numbers far from zero are points, since a bar that does not begin at
zero shows nothing.

In matplotlib a number whose bar is not known has no whisker.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import Refusal
from ..records import dataclass
from ..relation.types import Kind
from ..words import plain_text, terminal_text
from .answer import Answer, Shown, drawn_columns
from .frames import needed

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


# --- A picture of an answer in matplotlib, as `picture` says which; matplotlib is imported for the first one ---


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
