"""The command line: `dpsql query`, `explain`, `check`, `init`, `budget`, `refresh`, `serve`, `user`,
`demo`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the program and leave the process with its exit code, quietly also when interrupted at once."""
    try:
        from .application import run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("ERROR 57014: cancelled\n")
        raise SystemExit(6) from None
