"""Folders that many tests begin with: made by the first of them, written again for each other one."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["made_once"]


def made_once(make: Callable[[Path], Path]) -> Callable[[Path], Path]:
    """Have a function that fills an empty folder, and returns a path of it, do so once in this process.

    Each call gives the same files, to the byte, of the same rights: they name each other by relative paths, as an
    owner's folder that is moved does.
    """
    kept: list[tuple[Path, int, bytes | None]] = []
    returned = Path()

    @wraps(make)
    def write(folder: Path) -> Path:
        nonlocal returned
        if not kept:
            with TemporaryDirectory() as first:
                returned = make(Path(first)).relative_to(first)
                for path in sorted(Path(first).rglob("*")):
                    content = None if path.is_dir() else path.read_bytes()
                    kept.append((path.relative_to(first), path.stat().st_mode & 0o777, content))
        for name, mode, content in kept:
            if content is None:
                (folder / name).mkdir()
            else:
                (folder / name).write_bytes(content)
            os.chmod(folder / name, mode)
        return folder / returned

    return write
