"""The command line: `dpsql query`, `explain`, `check`, `init`, `budget`, `refresh`, `demo`."""

from __future__ import annotations

from .application import main

__all__ = ["main"]
