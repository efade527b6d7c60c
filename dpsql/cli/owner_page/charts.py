"""Charts as SVG: of the page, and the same for the pictures of the manual. Text and numbers, no script.

Colours and sizes of text are classes of `charts.css`, which a picture that stands alone has inside.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from importlib import resources
from itertools import pairwise

from .markup import text

__all__ = [
    "SERIES",
    "Curve",
    "alone",
    "asset",
    "budget_chart",
    "curve_chart",
    "flow_chart",
    "histogram_chart",
    "line_chart",
    "series_of",
]

SERIES = 6
"""So many analysts have a colour of their own; the last is that of all others."""
_WIDE = 600
_MARGIN = 14

Points = Sequence[tuple[float, float]]
_Place = Callable[[float], float]
_Moment = Callable[[date, float], float]


@cache
def asset(name: str) -> str:
    """Return one of the page's files."""
    return resources.files(__package__).joinpath(name).read_text("utf-8").strip()


def alone(svg: str) -> str:
    """Return a chart as a file of its own: with its style inside, on white, and a margin."""
    head, _, rest = svg.partition(">")
    found = re.fullmatch(r'<svg viewBox="0 0 (\S+) (\S+)" width="\S+" height="\S+" (.*)', head)
    assert found
    width, height = (_n(float(size) + 2 * _MARGIN) for size in found.group(1, 2))
    return (
        f'<svg viewBox="-{_MARGIN} -{_MARGIN} {width} {height}" width="{width}" height="{height}" {found[3]} '
        f'xmlns="http://www.w3.org/2000/svg"><style>{asset("charts.css")}</style>'
        f'<rect class="ground" x="-{_MARGIN}" y="-{_MARGIN}" width="{width}" height="{height}"/>{rest}\n'
    )


def series_of(names: Sequence[str]) -> dict[str, int]:
    """Return the colour's number of each name: those first named have their own."""
    return {name: min(place, SERIES - 1) for place, name in enumerate(names)}


# --- the budget ----------------------------------------------------------------------------------------------


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

    parts = [f'<text class="title" x="{left}" y="14">{text(unit)} left, of {_short(cap)}</text>']
    parts += _grid_rows(cap, y, left, width - right)
    line = [(x(first), y(cap))]
    for day, _, after in days:
        line += [(x(day, 0.5), line[-1][1]), (x(day, 0.5), y(after))]
    line.append((x(today, 1), line[-1][1]))
    base = y(0)
    area = [*line, (line[-1][0], base), (line[0][0], base)]
    parts.append(f'<path class="area" d="{_path(area)}Z"/><path class="line" d="{_path(line)}"/>')
    if ends is not None and days:
        after = days[-1][2]
        share = min(1.0, (end - today).days / max(1, (ends - today).days))
        parts.append(f'<path class="forecast" d="{_path([line[-1], (x(end, 1), y(after * (1 - share)))])}"/>')
    parts.append(f'<text class="title" x="{left}" y="{bottom - 10}">spent by day</text>')
    wide = max(1.5, min(26.0, inner / span - 1))
    for day, spent, _ in days:
        foot = float(bottom + low)
        for name in sorted(spent, key=lambda one: colours.get(one, SERIES - 1)):
            tall = low * spent[name] / most
            said = f"{day.isoformat()}, {text(name)}: {_short(spent[name])}"
            parts.append(
                f'<rect class="s{colours.get(name, SERIES - 1)}" x="{_n(x(day, 0.5) - wide / 2)}" '
                f'y="{_n(foot - tall)}" width="{_n(wide)}" height="{_n(tall)}"><title>{said}</title></rect>'
            )
            foot -= tall
    parts.append(
        f'<text class="tick" text-anchor="end" x="{left - 6}" y="{bottom + 8}">{_short(most)}</text>'
    )
    parts.append(_rule(left, width - right, bottom + low))
    parts += _day_ticks(first, end, x, bottom + low + 16, width)
    return _svg(width, bottom + low + 24, f"{unit} left by day, and what each day took", parts)


def _grid_rows(cap: float, y: _Place, left: float, right: float) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        at = y(cap * share)
        yield _rule(left, right, at)
        yield f'<text class="tick" text-anchor="end" x="{left - 6}" y="{_n(at + 4)}">{_short(cap * share)}</text>'


def _day_ticks(first: date, end: date, x: _Moment, y: float, width: int) -> Iterator[str]:
    days = (end - first).days
    steps = min(days, 6 if width >= _WIDE else 2)
    for place in range(steps + 1):
        day = first + timedelta(days * place // max(1, steps))
        anchor = "middle" if days == 0 else "start" if place == 0 else "end" if place == steps else "middle"
        part = 0.5 if anchor == "middle" else 0.0 if anchor == "start" else 1.0
        yield f'<text class="tick" text-anchor="{anchor}" x="{_n(x(day, part))}" y="{_n(y)}">{day.isoformat()}</text>'


# --- laws ----------------------------------------------------------------------------------------------------


class Curve:
    """The shape of a law's probabilities about 0, the highest 1: of the discrete Laplace or Gaussian law."""

    def __init__(self, family: str, scale: float) -> None:
        self.family, self.scale = family, scale

    def __call__(self, noise: float) -> float:
        z = noise / self.scale
        return math.exp(-z * z / 2) if "auss" in self.family else math.exp(-abs(z))


def curve_chart(
    truth: float, curve: Curve, bar: float, ends: tuple[float, float], width: int, label: str
) -> str:
    """Return the distribution of an answer about its true value, with its bar at 95 % shaded."""
    left, right, top, high = 12, 12, 30, 150
    inner, (low, most) = width - left - right, ends

    def x(value: float) -> float:
        return left + inner * (value - low) / (most - low)

    def shape(start: float, stop: float) -> str:
        steps = 160
        points = [start + (stop - start) * step / steps for step in range(steps + 1)]
        if start < truth < stop:
            points = sorted([*points, truth])
        line = [(x(value), top + high * (1 - curve(value - truth))) for value in points]
        return f"{_path([(x(start), top + high), *line, (x(stop), top + high)])}Z"

    inside = max(low, truth - bar), min(most, truth + bar)
    parts = [
        f'<text class="title" x="{left}" y="14">{text(label)}</text>',
        f'<path class="area" d="{shape(low, most)}"/><path class="bar" d="{shape(*inside)}"/>',
        f'<path class="truth" d="M{_n(x(truth))} {top}V{top + high}"/>',
        _rule(left, width - right, top + high),
    ]
    for place, value in enumerate((low, truth, most)):
        anchor = ("start", "middle", "end")[place]
        parts.append(
            f'<text class="tick" text-anchor="{anchor}" x="{_n(x(value))}" y="{top + high + 18}">{_short(value)}</text>'
        )
    return _svg(width, top + high + 26, label, parts)


def line_chart(
    lines: Sequence[tuple[str, Points]], marked: float, labels: tuple[str, str], width: int, title: str
) -> str:
    """Return lines over a logarithmic axis, each with its name at its end; `marked`: a place on the axis."""
    left, right, top, high = 52, 110, 30, 190
    first, last = (math.log(lines[0][1][place][0]) for place in (0, -1))
    most = _round_up(max(value for _, points in lines for _, value in points) or 1)

    def x(value: float) -> float:
        return left + (width - left - right) * (math.log(value) - first) / (last - first)

    def y(value: float) -> float:
        return top + high * (1 - value / most)

    parts = [
        f'<text class="title" x="{left}" y="14">{text(labels[1])}</text>',
        *_grid_rows(most, y, left, width - right),
    ]
    parts.append(f'<path class="truth" d="M{_n(x(marked))} {top}V{top + high}"/>')
    for place, (name, points) in enumerate(lines):
        parts.append(f'<path class="line l{place}" d="{_path([(x(a), y(b)) for a, b in points])}"/>')
        at = y(points[-1][1])
        parts.append(
            f'<text class="name t{place}" x="{width - right + 8}" y="{_n(at + 4)}">{text(name)}</text>'
        )
    shown = -math.inf
    for value, _ in lines[0][1]:
        if x(value) - shown >= 44:
            shown = x(value)
            parts.append(
                f'<text class="tick" text-anchor="middle" x="{_n(shown)}" y="{top + high + 18}">{_short(value)}</text>'
            )
    parts.append(f'<text class="tick" x="{left}" y="{top + high + 36}">{text(labels[0])}</text>')
    return _svg(width, top + high + 46, title, parts)


def histogram_chart(
    keys: Sequence[float], truth: Sequence[float], panels: Sequence[tuple[str, Sequence[float]]], width: int
) -> str:
    """Return one histogram several times over, each as it was answered; the true one is a line in all of them."""
    left, top, high, gap = 40, 30, 170, 26
    wide = (width - left - gap * (len(panels) - 1)) / len(panels)
    values = [*truth, *(value for _, panel in panels for value in panel)]
    most, least = max(values), min(0.0, *values)
    step = wide / len(keys)

    def y(value: float) -> float:
        return top + high * (most - value) / (most - least)

    parts: list[str] = []
    for value in (least, 0, most):
        parts.append(
            f'<text class="tick" text-anchor="end" x="{left - 6}" y="{_n(y(value) + 4)}">{_short(round(value))}</text>'
        )
    for number, (name, panel) in enumerate(panels):
        start = left + number * (wide + gap)
        parts += [f'<text class="title" x="{_n(start)}" y="14">{text(name)}</text>']
        for place, value in enumerate(panel):
            ends = sorted((y(value), y(0)))
            parts.append(
                f'<rect class="bar" x="{_n(start + place * step + 0.5)}" y="{_n(ends[0])}" width="{_n(step - 1)}" '
                f'height="{_n(ends[1] - ends[0])}"/>'
            )
        line = [
            (start + (place + side) * step, y(value)) for place, value in enumerate(truth) for side in (0, 1)
        ]
        parts += [_rule(start, start + wide, y(0)), f'<path class="outline" d="{_path(line)}"/>']
        for place, anchor in ((0, "start"), (-1, "end")):
            at = start if place == 0 else start + wide
            parts.append(
                f'<text class="tick" text-anchor="{anchor}" x="{_n(at)}" y="{top + high + 18}">{keys[place]:g}</text>'
            )
    return _svg(width, top + high + 26, "one histogram at several epsilons", parts)


# --- pictures ------------------------------------------------------------------------------------------------


def flow_chart(
    boxes: Sequence[tuple[str, str]],
    arrows: Sequence[tuple[str, str]],
    below: Sequence[tuple[str, str]],
    ways: Sequence[str],
) -> str:
    """Return boxes in a row, with arrows there and back between them, and others below the middle one.

    `ways`: of each of those below, whether its arrow goes "up" or "down".
    """
    wide, tall, gap, top, under = 186, 76, 100, 4, 136
    width = len(boxes) * wide + (len(boxes) - 1) * gap + 4
    middle = width / 2
    parts: list[str] = []
    for place, box in enumerate(boxes):
        parts += _box(2 + place * (wide + gap), top, wide, tall, *box)
    for place, (there, back) in enumerate(arrows):
        start, end = 2 + place * (wide + gap) + wide + 6, 2 + (place + 1) * (wide + gap) - 6
        parts += _arrow(f"M{start} {top + 30}H{end}m-7 -4l7 4l-7 4", (start + end) / 2, top + 23, there)
        parts += _arrow(f"M{end} {top + 50}H{start}m7 -4l-7 4l7 4", (start + end) / 2, top + 66, back)
    left = middle - (len(below) * (wide + 24) - 24) / 2
    for place, (box, way) in enumerate(zip(below, ways, strict=True)):
        x = left + place * (wide + 24)
        at = middle + (place - (len(below) - 1) / 2) * wide * 0.7
        head, foot = top + tall + 5, top + under - 5
        path = (
            f"M{_n(at)} {foot}V{head}m-4 7l4 -7l4 7"
            if way == "up"
            else f"M{_n(at)} {head}V{foot}m-4 -7l4 7l4 -7"
        )
        parts += [f'<path class="arrow" d="{path}"/>', *_box(x, top + under, wide, tall, *box)]
    return _svg(width, top + under + tall + 4, "data, policy, dpsql and psql", parts)


def _arrow(path: str, x: float, y: float, said: str) -> Iterator[str]:
    yield f'<path class="arrow" d="{path}"/>'
    yield f'<text class="tick" text-anchor="middle" x="{_n(x)}" y="{_n(y)}">{text(said)}</text>'


def _box(x: float, y: float, wide: float, tall: float, head: str, note: str) -> Iterator[str]:
    yield f'<rect class="box" x="{x}" y="{y}" width="{wide}" height="{tall}" rx="6"/>'
    yield f'<text class="head" text-anchor="middle" x="{x + wide / 2}" y="{y + 32}">{text(head)}</text>'
    yield f'<text class="tick" text-anchor="middle" x="{x + wide / 2}" y="{y + 54}">{text(note)}</text>'


# --- parts ---------------------------------------------------------------------------------------------------


def _svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" height="{_n(height)}" role="img" '
        f'aria-label="{text(label)}">{"".join(parts)}</svg>'
    )


def _rule(left: float, right: float, y: float) -> str:
    return f'<path class="rule" d="M{_n(left)} {_n(y)}H{_n(right)}"/>'


def _path(points: Points) -> str:
    kept = [point for before, point in pairwise([(math.nan, math.nan), *points]) if point != before]
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in kept)


def _round_up(value: float) -> float:
    """Return a number of few digits that is no less: where an axis ends."""
    step = 2 * 10 ** math.floor(math.log10(value) - 0.3)
    return float(math.ceil(value / step) * step)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _short(value: float) -> str:
    """Return a number of an axis: four digits are enough."""
    if value and abs(value) < 0.001:
        return f"{value:.2g}"
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 else f"{rounded:.4g}"
