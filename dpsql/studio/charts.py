"""Charts as SVG: what is left by day and what each period was charged; and the parts that others are made of.

Text and numbers, no script. Colours and sizes of text are classes of `charts.css`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from importlib import resources
from itertools import pairwise

from ..words import terminal_text

SERIES = 6
"""So many analysts have a colour of their own; the last is that of all others."""
_WIDE = 600

Points = Sequence[tuple[float, float]]
_Place = Callable[[float], float]
_Moment = Callable[[date, float], float]


def text(value: object) -> str:
    """Return a text to stand between tags or in a quoted attribute; what reorders or hides text is spelled out."""
    return html.escape(terminal_text(str(value)), quote=True)


@cache
def asset(name: str) -> str:
    """Return one of the report's files."""
    return resources.files(__package__).joinpath("report_page", name).read_text("utf-8").strip()


def series_of(names: Sequence[str]) -> dict[str, int]:
    """Return the colour's number of each name: those first named have their own."""
    return {name: min(place, SERIES - 1) for place, name in enumerate(names)}


# --- the budget ---------------------------------------------------------------------------------------------


def budget_chart(
    days: Sequence[tuple[date, Mapping[str, float], float]],
    cap: float,
    today: date,
    ends: date | None,
    colours: Mapping[str, int],
    unit: str,
    width: int,
) -> str:
    """Return what is left by day, as a line with its forecast, and below what each day took, by analyst.

    `days`: each with what was spent by whom, and what was left at its end.
    """
    left, right, top, high, low = 44, 14, 26, 190, 70
    first = days[0][0] if days else today
    end = min(ends, today + max(timedelta(14), today - first)) if ends else today
    span = max(1, (end - first).days + 1)
    inner, bottom = width - left - right, top + high + 40
    most = max((sum(spent.values()) for _, spent, _ in days), default=0) or 1

    def x(day: date, part: float = 0.0) -> float:
        return left + inner * ((day - first).days + part) / span

    def y(amount: float) -> float:
        return top + high * (1 - amount / cap) if cap else top

    parts = [f'<text class="title" x="{left}" y="14">{text(unit)} left, of {short(cap)}</text>']
    parts += grid_rows(cap, y, left, width - right)
    line = [(x(first), y(cap))]
    for day, _, after in days:
        line += [(x(day, 0.5), line[-1][1]), (x(day, 0.5), y(after))]
    line.append((x(today, 1), line[-1][1]))
    base = y(0)
    area = [*line, (line[-1][0], base), (line[0][0], base)]
    parts.append(f'<path class="area" d="{path(area)}Z"/><path class="line" d="{path(line)}"/>')
    if ends is not None and days:
        after = days[-1][2]
        share = min(1.0, (end - today).days / max(1, (ends - today).days))
        parts.append(f'<path class="forecast" d="{path([line[-1], (x(end, 1), y(after * (1 - share)))])}"/>')
    parts.append(f'<text class="title" x="{left}" y="{bottom - 10}">spent by day</text>')
    wide = max(1.5, min(26.0, inner / span - 1))
    for day, spent, _ in days:
        foot = float(bottom + low)
        for name in sorted(spent, key=lambda one: colours.get(one, SERIES - 1)):
            tall = low * spent[name] / most
            said = f"{day.isoformat()}, {text(name)}: {short(spent[name])}"
            parts.append(
                f'<rect class="s{colours.get(name, SERIES - 1)}" x="{px(x(day, 0.5) - wide / 2)}" '
                f'y="{px(foot - tall)}" width="{px(wide)}" height="{px(tall)}"><title>{said}</title></rect>'
            )
            foot -= tall
    parts.append(f'<text class="tick" text-anchor="end" x="{left - 6}" y="{bottom + 8}">{short(most)}</text>')
    parts.append(rule(left, width - right, bottom + low))
    parts += _day_ticks(first, end, x, bottom + low + 16, width)
    return svg(width, bottom + low + 24, f"{unit} left by day, and what each day took", parts)


def period_chart(periods: Sequence[tuple[str, int, float]], cap: float, unit: str, width: int) -> str:
    """Return what each period of the data was charged, as bars under the cap that each of them has.

    `periods`: what some in a row are called, how many, and what each was charged.
    """
    left, right, top, high = 44, 14, 26, 190
    inner, total = width - left - right, sum(number for _, number, _ in periods)
    most = max([cap, *(spent for _, _, spent in periods)]) or 1.0

    def y(amount: float) -> float:
        return top + high * (1 - amount / most)

    parts = [
        f'<text class="title" x="{left}" y="14">{text(unit)} spent of each period, of {short(cap)}</text>'
    ]
    parts += grid_rows(cap, y, left, width - right)
    place = 0
    for name, number, spent in periods:
        begin, end = (left + inner * at / total for at in (place, place + number))
        wide = max(1.0, end - begin - 1)
        parts.append(
            f'<rect class="s0" x="{px(begin)}" y="{px(y(spent))}" width="{px(wide)}" height="{px(y(0) - y(spent))}">'
            f"<title>{text(name)}: {short(spent)} of {short(cap)}</title></rect>"
        )
        place += number
    for name, at, anchor in ((periods[0][0], left, "start"), (periods[-1][0], width - right, "end")):
        parts.append(
            f'<text class="tick" text-anchor="{anchor}" x="{px(at)}" y="{top + high + 16}">{text(name)}</text>'
        )
    return svg(width, top + high + 24, f"{unit} spent of each period of the data", parts)


def grid_rows(cap: float, y: _Place, left: float, right: float) -> Iterator[str]:
    """Yield a line and a number at 0, at the half and at the whole of an axis."""
    for share in (0.0, 0.5, 1.0):
        at = y(cap * share)
        yield rule(left, right, at)
        yield f'<text class="tick" text-anchor="end" x="{left - 6}" y="{px(at + 4)}">{short(cap * share)}</text>'


def _day_ticks(first: date, end: date, x: _Moment, y: float, width: int) -> Iterator[str]:
    days = (end - first).days
    steps = min(days, 6 if width >= _WIDE else 2)
    for place in range(steps + 1):
        day = first + timedelta(days * place // max(1, steps))
        anchor = "middle" if days == 0 else "start" if place == 0 else "end" if place == steps else "middle"
        part = 0.5 if anchor == "middle" else 0.0 if anchor == "start" else 1.0
        yield f'<text class="tick" text-anchor="{anchor}" x="{px(x(day, part))}" y="{px(y)}">{day.isoformat()}</text>'


# --- parts --------------------------------------------------------------------------------------------------


def svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    """Return a picture of its parts; `label` says what it shows to who does not see it."""
    return (
        f'<svg viewBox="0 0 {px(width)} {px(height)}" width="{px(width)}" height="{px(height)}" role="img" '
        f'aria-label="{text(label)}">{"".join(parts)}</svg>'
    )


def rule(left: float, right: float, y: float) -> str:
    """Return a line from side to side."""
    return f'<path class="rule" d="M{px(left)} {px(y)}H{px(right)}"/>'


def path(points: Points) -> str:
    """Return a line through points, each once, as the data of a path."""
    kept = [point for before, point in pairwise([(math.nan, math.nan), *points]) if point != before]
    return "M" + "L".join(f"{px(x)} {px(y)}" for x, y in kept)


def px(value: float) -> str:
    """Return a place or a size, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def short(value: float) -> str:
    """Return a number of an axis: four digits are enough."""
    if value and abs(value) < 0.001:
        return f"{value:.2g}"
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 else f"{rounded:.4g}"
