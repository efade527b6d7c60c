"""Whether what dpsql is built on is what it was tested with, by dpsql's own requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata

__all__ = ["untested"]

_WITH_CEILING = re.compile(r"([\w.-]+)(?:\[[^]]*\])?[^;]*?<=\s*([0-9.]+)")


def untested() -> Iterator[str]:
    """Yield a sentence for each package that is newer than the newest that dpsql was tested with.

    An installer that keeps to the requirements lets none be; one that was told not to does.
    """
    try:
        requirements = metadata.requires("dpsql") or []
    except metadata.PackageNotFoundError:  # run from its source
        return
    for requirement in requirements:
        if not (found := _WITH_CEILING.match(requirement)):
            continue
        try:
            installed = metadata.version(found[1])
        except metadata.PackageNotFoundError:  # an optional part, `extra == "spark"`, that nobody asked for
            continue
        if _numbers(installed) > _numbers(found[2]):
            yield f"{found[1]} {installed} is installed, and dpsql is tested up to {found[2]}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", version))
