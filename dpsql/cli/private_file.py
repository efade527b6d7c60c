"""Files that hold secrets, or will: nobody but their owner can ever read them."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import PolicyError

__all__ = ["replace_file", "write_private"]


def write_private(path: Path, text: str) -> None:
    """Write a file that does not exist yet; it is its owner's alone from its first moment. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(text)


def replace_file(path: Path, text: str) -> None:
    """Put a text in a file's place, whole or not at all, with the rights that the file had. Raises PolicyError."""
    path = path.resolve()
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_private(new, text)
        os.chmod(new, path.stat().st_mode & 0o777)
        os.replace(new, path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise PolicyError(f"{path.name}: cannot be written: {error.strerror}") from None
