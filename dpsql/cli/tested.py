"""Whether what dpsql is built on is what it was tested with, by dpsql's own requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata

__all__ = ["missing_or_old", "untested"]

_NAME = re.compile(r"([\w.-]+)(?:\[[^]]*\])?")
_FLOOR = re.compile(r">=\s*([0-9.]+)")
_CEILING = re.compile(r"<=\s*([0-9.]+)")


def untested() -> Iterator[str]:
    """Yield a sentence for each package that is newer than the newest that dpsql was tested with.

    An installer that keeps to the requirements lets none be; one that was told not to does.
    """
    for name, bounds, _ in _requirements():
        installed, ceiling = _installed(name), _CEILING.search(bounds)
        if installed and ceiling and _numbers(installed) > _numbers(ceiling[1]):
            yield f"{name} {installed} is installed, and dpsql is tested up to {ceiling[1]}"


def missing_or_old() -> Iterator[str]:
    """Yield a sentence for each package that dpsql needs and that is not there, or older than it can be."""
    for name, bounds, is_optional in _requirements():
        installed, floor = _installed(name), _FLOOR.search(bounds)
        if installed is None and not is_optional:
            yield f"{name} is not installed"
        elif installed and floor and _numbers(installed) < _numbers(floor[1]):
            yield f"{name} {installed} is installed, and dpsql needs {floor[1]}"


def _requirements() -> Iterator[tuple[str, str, bool]]:
    """Yield of each requirement its name, the bounds on its version, and whether it is an optional part's."""
    try:
        requirements = metadata.requires("dpsql") or []
    except metadata.PackageNotFoundError:  # run from its source
        return
    for requirement in requirements:
        bounds, _, marker = requirement.partition(";")
        if found := _NAME.match(bounds):
            yield found[1], bounds, "extra" in marker


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", version))
