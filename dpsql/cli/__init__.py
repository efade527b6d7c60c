"""The command line: `dpsql query`, `explain`, `check`, `init`, `budget`, `refresh`, `serve`, `user`,
`demo`."""

from __future__ import annotations

import gc
import os

__all__ = ["main"]

_BETWEEN_LOOKS = 250_000
"""Objects more than before, at which the collector of garbage looks: what a command loads is none, and is two hundred
thousand of them, which the collector's own 700 would have it look through twenty times."""


def main() -> None:
    """Run the program and leave the process with its exit code."""
    gc.set_threshold(_BETWEEN_LOOKS)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's: nothing here is solved in threads of it
    try:
        from . import interrupts

        interrupts.start()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    from .application import run

    run()
