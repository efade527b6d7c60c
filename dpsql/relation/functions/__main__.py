"""Print the list of functions for `dpsql/docs/sql/functions.md`."""

from __future__ import annotations

from . import manual_lines

print(manual_lines())
