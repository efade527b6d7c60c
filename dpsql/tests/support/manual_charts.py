"""The manual's charts as SVG, of the owner page's parts, which a picture that stands alone has inside."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from dpsql.studio.report import Points, asset, grid_rows, path, px, rule, short, svg, text

__all__ = ["alone", "flow_chart", "histogram_chart", "line_chart", "terminal_chart"]

_MARGIN = 14


def alone(svg: str) -> str:
    """Return a chart as a file of its own: with its style inside, on white, and a margin."""
    head, _, rest = svg.partition(">")
    found = re.fullmatch(r'<svg viewBox="0 0 (\S+) (\S+)" width="\S+" height="\S+" (.*)', head)
    assert found
    width, height = (px(float(size) + 2 * _MARGIN) for size in found.group(1, 2))
    return (
        f'<svg viewBox="-{_MARGIN} -{_MARGIN} {width} {height}" width="{width}" height="{height}" {found[3]} '
        f'xmlns="http://www.w3.org/2000/svg"><style>{asset("charts.css")}</style>'
        f'<rect class="ground" x="-{_MARGIN}" y="-{_MARGIN}" width="{width}" height="{height}"/>{rest}\n'
    )


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
        *grid_rows(most, y, left, width - right),
    ]
    parts.append(f'<path class="truth" d="M{px(x(marked))} {top}V{top + high}"/>')
    for place, (name, points) in enumerate(lines):
        parts.append(f'<path class="line l{place}" d="{path([(x(a), y(b)) for a, b in points])}"/>')
        at = y(points[-1][1])
        parts.append(
            f'<text class="name t{place}" x="{width - right + 8}" y="{px(at + 4)}">{text(name)}</text>'
        )
    shown = -math.inf
    for value, _ in lines[0][1]:
        if x(value) - shown >= 44:
            shown = x(value)
            parts.append(
                f'<text class="tick" text-anchor="middle" x="{px(shown)}" y="{top + high + 18}">{short(value)}</text>'
            )
    parts.append(f'<text class="tick" x="{left}" y="{top + high + 36}">{text(labels[0])}</text>')
    return svg(width, top + high + 46, title, parts)


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
            f'<text class="tick" text-anchor="end" x="{left - 6}" y="{px(y(value) + 4)}">{short(round(value))}</text>'
        )
    for number, (name, panel) in enumerate(panels):
        start = left + number * (wide + gap)
        parts += [f'<text class="title" x="{px(start)}" y="14">{text(name)}</text>']
        for place, value in enumerate(panel):
            ends = sorted((y(value), y(0)))
            parts.append(
                f'<rect class="bar" x="{px(start + place * step + 0.5)}" y="{px(ends[0])}" width="{px(step - 1)}" '
                f'height="{px(ends[1] - ends[0])}"/>'
            )
        line = [
            (start + (place + side) * step, y(value)) for place, value in enumerate(truth) for side in (0, 1)
        ]
        parts += [rule(start, start + wide, y(0)), f'<path class="outline" d="{path(line)}"/>']
        for place, anchor in ((0, "start"), (-1, "end")):
            at = start if place == 0 else start + wide
            parts.append(
                f'<text class="tick" text-anchor="{anchor}" x="{px(at)}" y="{top + high + 18}">{keys[place]:g}</text>'
            )
    return svg(width, top + high + 26, "one histogram at several epsilons", parts)


_SHOWN_SECONDS = 20
"""How long a terminal's lines take from the first until they begin anew."""

_TERMINAL = """\
svg .screen { fill: #14202b; }
svg .said { font-family: ui-monospace, "Liberation Mono", Menlo, Consolas, monospace; font-size: 13px; fill: #d8e2ec; }
svg .command { fill: #ffffff; font-weight: 600; }
svg .lost { fill: #ff9d7a; font-weight: 600; }
svg .kept { fill: #8fd9ab; font-weight: 600; }
@media (prefers-reduced-motion: no-preference) {"""


def terminal_chart(lines: Sequence[tuple[str, str]], width: int, title: str) -> str:
    """Return lines of a terminal that appear one after the other, and all at once for who wants no motion.

    Each with its class: `command`, `said`, `lost` or `kept`. An empty line is a pause.
    """
    step, top = 20, 26
    height = top + step * len(lines)
    style, parts = [_TERMINAL], [f'<rect class="screen" width="{width}" height="{height}" rx="6"/>']
    for place, (line, kind) in enumerate(lines):
        if not line:
            continue
        begins = 80 * place / len(lines)
        style.append(
            f"  @keyframes a{place} {{ 0%, {begins:.4g}% {{ opacity: 0; }} {begins + 1:.4g}%, 97% {{ opacity: 1; }} }}\n"
            f"  svg .a{place} {{ animation: a{place} {_SHOWN_SECONDS}s linear infinite; }}"
        )
        parts.append(
            f'<text class="said {kind} a{place}" x="16" y="{top + step * place}" xml:space="preserve">{text(line)}</text>'
        )
    style.append("}")
    return svg(width, height, title, ["<style>" + "\n".join(style) + "</style>", *parts])


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
            f"M{px(at)} {foot}V{head}m-4 7l4 -7l4 7"
            if way == "up"
            else f"M{px(at)} {head}V{foot}m-4 -7l4 7l4 -7"
        )
        parts += [f'<path class="arrow" d="{path}"/>', *_box(x, top + under, wide, tall, *box)]
    return svg(width, top + under + tall + 4, "data, policy, dpsql and psql", parts)


def _arrow(path: str, x: float, y: float, said: str) -> Iterator[str]:
    yield f'<path class="arrow" d="{path}"/>'
    yield f'<text class="tick" text-anchor="middle" x="{px(x)}" y="{px(y)}">{text(said)}</text>'


def _box(x: float, y: float, wide: float, tall: float, head: str, note: str) -> Iterator[str]:
    yield f'<rect class="box" x="{x}" y="{y}" width="{wide}" height="{tall}" rx="6"/>'
    yield f'<text class="head" text-anchor="middle" x="{x + wide / 2}" y="{y + 32}">{text(head)}</text>'
    yield f'<text class="tick" text-anchor="middle" x="{x + wide / 2}" y="{y + 54}">{text(note)}</text>'


def _round_up(value: float) -> float:
    """Return a number of few digits that is no less: where an axis ends."""
    step = 2 * 10 ** math.floor(math.log10(value) - 0.3)
    return float(math.ceil(value / step) * step)
