"""A picture of an answer in matplotlib: a number with its error bars, by what its rows are named by.

One date, time or number names the rows: points along an axis. Anything else: a bar for each row, or a point where the
numbers are far from zero. A number whose bar is not known has no whisker. matplotlib is imported for the first picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import Refusal
from ..relation.types import Kind
from ..value_text import plain_text, terminal_text
from .barred import Shown, drawn_columns
from .frames import needed

if TYPE_CHECKING:
    from .answer import Answer

__all__ = ["plot"]

_WIDTH, _HEIGHT = 6.4, 4.8
_EDGES, _ROW, _HIGHEST = 1.0, 0.3, 40.0
"""Inches, as matplotlib has them: what surrounds bars, one bar, and the most of all."""
_FAR = 0.5


def plot(answer: Answer, number: str | None, ax: Any) -> Any:
    """Draw a number of an answer with its error bars and return matplotlib's axes; see `Answer.plot`."""
    drawn, keys = drawn_columns(answer)
    if number is not None:
        drawn = [one for one in (*drawn, *keys) if one.name == number and one.type.is_number][:1]
        keys = [one for one in keys if not any(one is other for other in drawn)]
    if not drawn:
        named = "number" if number is None else f'number "{terminal_text(number)}"'
        raise Refusal(
            f"the answer has no {named} to draw", sqlstate="42703", hint="plot(name) draws one of its columns"
        )
    shown = drawn[0]
    values = _numbers(shown.values)
    errors = _errors(shown, values)
    is_along = len(keys) == 1 and len(values) > 1 and _is_axis(keys[0])
    if ax is None:
        pyplot = needed("matplotlib", "matplotlib", "matplotlib.pyplot")
        height = _HEIGHT if is_along else min(_EDGES + _ROW * len(values), _HIGHEST)
        ax = pyplot.subplots(figsize=(_WIDTH, height), layout="constrained")[1]
    if is_along:
        _along(ax, keys[0], values, errors)
        ax.set_xlabel(_plain(keys[0].name))
        ax.set_ylabel(_plain(shown.name))
        return ax
    labels = [" · ".join(_label(key.values[row]) for key in keys) for row in range(len(values))]
    places = list(range(len(values)))
    if shown.type.is_integer or not _is_far(values):
        ax.barh(places, values, xerr=errors, capsize=3, alpha=0.6)
    else:
        ax.errorbar(values, places, xerr=errors, fmt="o", capsize=3)
    ax.set_yticks(places, list(map(_plain, labels)))
    ax.invert_yaxis()
    ax.set_xlabel(_plain(shown.name))
    ax.set_ylabel(_plain(", ".join(key.name for key in keys)))
    return ax


def _is_far(values: Sequence[float]) -> bool:
    """Say whether all numbers are so far above zero that bars from there would look alike."""
    known = [value for value in values if not math.isnan(value)]
    return bool(known) and min(known) > _FAR * max(known)


def _along(ax: Any, key: Shown, values: Sequence[float], errors: list[list[float]] | None) -> None:
    """Draw points along an axis; a row without a key has no place on it."""
    order = [row for row, place in enumerate(key.values) if place is not None]
    order.sort(key=lambda row: key.values[row])  # type: ignore[arg-type,return-value]  # of one type
    places = [float(place) if key.type.is_number else place for place in (key.values[row] for row in order)]  # type: ignore[arg-type]
    ends = None if errors is None else [[side[row] for row in order] for side in errors]
    ax.errorbar(places, [values[row] for row in order], yerr=ends, fmt="o-", capsize=3)


def _is_axis(key: Shown) -> bool:
    known = [value for value in key.values if value is not None]
    return (key.type.is_number or key.type.kind in (Kind.DATE, Kind.TIMESTAMP)) and len(set(known)) == len(
        known
    )


def _errors(shown: Shown, values: Sequence[float]) -> list[list[float]] | None:
    """Return how far each bar reaches below and above, NaN where it is not known; None where there are no bars."""
    if shown.lows is None or shown.highs is None or not shown.has_bars:
        return None
    sides = [
        [value - low for value, low in zip(values, _numbers(shown.lows), strict=True)],
        [high - value for value, high in zip(values, _numbers(shown.highs), strict=True)],
    ]
    return [[math.nan if math.isnan(one) else max(one, 0.0) for one in side] for side in sides]


def _numbers(values: Sequence[object]) -> list[float]:
    """Return numbers; NaN for those that are not there, or are endless."""
    found = [math.nan if value is None else float(value) for value in values]  # type: ignore[arg-type]  # numbers
    return [value if math.isfinite(value) else math.nan for value in found]


def _label(value: object) -> str:
    return "NULL" if value is None else terminal_text(plain_text(value))


def _plain(text: str) -> str:
    """Return a text that matplotlib does not read as a formula."""
    return terminal_text(text).replace("$", r"\$")
