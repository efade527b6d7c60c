"""`python -m dpsql.cli`: the program without its installed script."""

from __future__ import annotations

from . import main

main()
