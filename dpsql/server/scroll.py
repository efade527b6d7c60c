"""Where a cursor stands after FETCH and MOVE, and which rows they give: Postgres' rules as arithmetic.

A position is a row's number from 1; 0 is before the first, `size` + 1 after the last.
"""

from __future__ import annotations

from .statements import Direction, Fetch

__all__ = ["needs_backward", "step"]

_Step = tuple[range, int]
"""The numbers of the rows in the order they come, and the position after them."""


def step(how: Fetch, position: int, size: int) -> _Step:
    """Return which rows a fetch gives, and where it ends."""
    if how.direction is Direction.ABSOLUTE:
        return _absolute(how.count or 0, size)
    if how.direction is Direction.RELATIVE:
        return _relative(how.count or 0, position, size)
    count = how.count
    forward = how.direction is Direction.FORWARD
    if count == 0:
        return _again(position, size)
    if count is not None and count < 0:
        forward, count = not forward, -count
    return _forward(count, position, size) if forward else _backward(count, position, size)


def _again(position: int, size: int) -> _Step:
    """A count of zero gives the row at hand once more."""
    return (range(position, position + 1) if 1 <= position <= size else range(0)), position


def _forward(count: int | None, position: int, size: int) -> _Step:
    if count is None or position + count > size:
        return range(position + 1, size + 1), size + 1
    return range(position + 1, position + count + 1), position + count


def _backward(count: int | None, position: int, size: int) -> _Step:
    after = 0 if count is None else max(position - count, 0)
    return range(position - 1, max(after, 1) - 1, -1), after


def _absolute(count: int, size: int) -> _Step:
    if count == 0:
        return range(0), 0
    if count > 0:
        return _forward(1, min(count - 1, size + 1), size)
    return _backward(1, max(size + 2 + count, 0), size)


def _relative(count: int, position: int, size: int) -> _Step:
    if count == 0:
        return _again(position, size)
    if count > 0:
        return _forward(1, min(position + count - 1, size + 1), size)
    return _backward(1, max(position + count + 1, 0), size)


def needs_backward(how: Fetch, position: int, size: int) -> bool:
    """Say whether a fetch is one that a cursor without SCROLL refuses; some are, wherever the cursor stands."""
    count = how.count
    if how.direction is Direction.ABSOLUTE:
        count = count or 0
        return count < 0 or (position > 0 and count <= position)
    if count == 0:
        return not how.is_move and (how.direction is Direction.BACKWARD or 1 <= position <= size)
    backward = how.direction is Direction.BACKWARD
    if backward and count is None and how.is_move:
        return position > 0
    return backward != (count is not None and count < 0)
