"""When what was drawn may be known (soundness.md 3.6): 100, 200, 400, 800, … milliseconds after its statement began.

What the database does takes longer or shorter with the rows it finds; on this grid few bits of that remain. A draw is
stored no sooner, so that whoever waits for it, or finds it, learns no more than its own analyst; an error is told no
sooner. A statement that is cancelled is on a grid of its own, which begins with the cancel: the analyst knows that
moment.
"""

from __future__ import annotations

__all__ = ["release_time"]

_LEAST = 0.1


def release_time(start: float, now: float) -> float:
    """Return the first moment of the grid from `start` on that is not before `now`."""
    wait = _LEAST
    while start + wait < now:
        wait *= 2
    return start + wait
