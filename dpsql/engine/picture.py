"""What is drawn of an answer, by whatever draws it: a number with its bars, by what its rows are named by.

What its rows are named by says which kind of picture it is: one date, time or number is an axis, of a series or a
histogram; anything else has a bar for each row. Numbers far from zero are points, since a bar that does not begin at
zero shows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..relation.types import Kind
from ..words import plain_text, terminal_text
from .barred import Shown, drawn_columns

if TYPE_CHECKING:
    from .answer import Answer

__all__ = ["Picture", "Point", "pictures"]

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
