"""The command line: `dpsql query`, `explain`, `check`, `init`, `budget`, `refresh`, `serve`, `user`,
`demo`."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the program and leave the process with its exit code."""
    try:
        from . import interrupts

        interrupts.start()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    from .application import run

    run()
