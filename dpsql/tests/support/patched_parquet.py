"""Parquet files whose statistics are as other writers make them: written by Arrow, Polars or DuckDB, then patched."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...backends.verify_claims import BINARY, I64, TRUE, Fields, read_struct, write_struct

__all__ = ["change_statistics", "forget", "say", "say_of_pages", "statistics_of", "without_bits"]

_MAX, _MIN, _NULLS, _MAX_VALUE, _MIN_VALUE, _MAX_EXACT, _MIN_EXACT = 1, 2, 3, 5, 6, 7, 8


def statistics_of(path: Path, column: str) -> list[Fields]:
    """Return what a file says of a column, a struct for each row group."""
    footer, _ = _footer(path.read_bytes())
    return [meta[12][1] if 12 in meta else {} for meta in _metas(footer, column)]


def change_statistics(
    path: Path, column: str, change: Callable[[Fields], None], group: int | None = None
) -> None:
    """Change what is said of a column in a row group, or in all of them."""
    data = path.read_bytes()
    footer, start = _footer(data)
    for number, meta in enumerate(_metas(footer, column)):
        if group in (None, number):
            change(meta.setdefault(12, (12, {}))[1])
    written = write_struct(footer)
    path.write_bytes(data[:start] + written + len(written).to_bytes(4, "little") + b"PAR1")


def say(
    path: Path,
    column: str,
    *,
    low: bytes | None = None,
    high: bytes | None = None,
    nulls: int | None = None,
    is_old: bool = False,
    is_exact: bool | None = None,
    group: int | None = None,
) -> None:
    """Say other bounds of a column, in both pairs of fields or (`is_old`) in those of before 2017 alone."""

    def change(said: Fields) -> None:
        if is_old:
            for key in (_MAX_VALUE, _MIN_VALUE, _MAX_EXACT, _MIN_EXACT):
                said.pop(key, None)
        for bound, keys in ((low, (_MIN, _MIN_VALUE)), (high, (_MAX, _MAX_VALUE))):
            for key in keys[:1] if is_old else keys:
                if bound is not None:
                    said[key] = (BINARY, bound)
        if nulls is not None:
            said[_NULLS] = (I64, nulls)
        if is_exact is not None:
            said[_MAX_EXACT] = said[_MIN_EXACT] = (TRUE, is_exact)

    change_statistics(path, column, change, group)


def forget(path: Path, column: str, *keys: int) -> None:
    """Say nothing of a column, or leave out some fields."""

    def change(said: Fields) -> None:
        for key in keys or [*said]:
            said.pop(key, None)

    change_statistics(path, column, change)


def say_of_pages(path: Path, old: bytes, new: bytes) -> None:
    """Say another bound in place of `old`, of the same length, in the headers of pages alone, where it is said there."""
    data = path.read_bytes()
    _, start = _footer(data)
    said = re.compile(b"([\x18\x28\x38\x48\x58]" + re.escape(bytes([len(old)])) + b")" + re.escape(old))
    pages = said.sub(lambda found: found[1] + new, data[:start])
    if len(pages) != start:
        raise ValueError
    path.write_bytes(pages + data[start:])


def without_bits(path: Path, column: str) -> None:
    """Empty a column's bloom filters."""
    data = bytearray(path.read_bytes())
    footer, _ = _footer(bytes(data))
    for meta in _metas(footer, column):
        header, at = read_struct(bytes(data), meta[14][1])
        count = header[1][1]
        assert any(data[at : at + count])
        data[at : at + count] = bytes(count)
    path.write_bytes(data)


def _footer(data: bytes) -> tuple[Fields, int]:
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return read_struct(data[start:-8])[0], start


def _metas(footer: Fields, column: str) -> list[Any]:
    found = [
        chunk[3][1]
        for group in footer[4][1][1]
        for chunk in group[1][1][1]
        if b".".join(chunk[3][1][3][1][1]).decode() == column
    ]
    assert found
    return found
