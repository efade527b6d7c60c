"""`python -m dpsql.cli`: the program without its installed script."""

from __future__ import annotations

from .application import main

main()
