"""A picture of an answer in matplotlib, as `picture` says which; matplotlib is imported for the first one.

A number whose bar is not known has no whisker.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..errors import Refusal
from ..words import terminal_text
from .barred import Shown
from .frames import needed
from .picture import Picture, pictures

if TYPE_CHECKING:
    from .answer import Answer

__all__ = ["plot"]

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
