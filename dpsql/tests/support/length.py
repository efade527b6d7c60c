"""How much is tried at random: all of it where the long tests run too, a part of it where they do not (`-m "not long"`)."""

from __future__ import annotations

import pytest

__all__ = ["pytest_configure", "tried"]

_is_short = False


def pytest_configure(config: pytest.Config) -> None:
    """Note which run it is, before a module of tests is read."""
    global _is_short
    _is_short = "not long" in config.option.markexpr


def tried(few: int, many: int) -> int:
    """Return how many are tried of what each run tries the same first ones of: `few` in `make test`, else `many`."""
    return few if _is_short else many
