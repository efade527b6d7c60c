"""What a value given for a setting becomes: each reader returns the value as it is shown, or None for a bad one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = [
    "Reader",
    "any_text",
    "ascii_text",
    "boolean",
    "integer",
    "name_list",
    "one_of",
    "quantity",
    "real",
]

Reader = Callable[[tuple[str, ...]], str | None]
"""The values that were written, of which all but lists take one, to the text that is shown."""

_MAX_TEXT = 1024
_NUMBER = re.compile(
    r"([+-]?(?:\d{1,15}(?:\.\d{0,9})?|\.\d{1,9})(?:e[+-]?\d{1,2})?)\s*([A-Za-z]*)", re.IGNORECASE
)
_BOOLEANS = {
    **{word[:size]: "on" for word in ("true", "yes") for size in range(1, len(word) + 1)},
    **{word[:size]: "off" for word in ("false", "no") for size in range(1, len(word) + 1)},
    "on": "on", "1": "on", "off": "off", "of": "off", "0": "off",
}  # fmt: skip
TIME = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Milliseconds of each unit."""
SIZE = {"B": 1 / 1024, "kB": 1, "MB": 1024, "GB": 1024**2, "TB": 1024**3}
"""Kilobytes of each unit."""


def any_text(values: tuple[str, ...]) -> str | None:
    """Read a text that the connection keeps and that means nothing here."""
    text = values[0]
    return text if len(values) == 1 and text.isprintable() and len(text) <= _MAX_TEXT else None


def ascii_text(values: tuple[str, ...]) -> str | None:
    """Read a name: what is no printable ASCII becomes a question mark for each byte, as in Postgres."""
    if len(values) != 1 or len(values[0]) > _MAX_TEXT:
        return None
    return "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in values[0].encode("utf-8", "replace"))


def boolean(values: tuple[str, ...]) -> str | None:
    """Read a switch, by any beginning of a word that tells it."""
    return _BOOLEANS.get(values[0].strip().lower()) if len(values) == 1 else None


def one_of(canonical: str, *others: str, shown: Mapping[str, str] | None = None) -> Reader:
    """Read one of some words; each is shown as itself, or as `shown` has it."""
    accepted = {_bare(text): text for text in (canonical, *others)}
    accepted |= {_bare(text): value for text, value in (shown or {}).items()}
    return lambda values: accepted.get(_bare(", ".join(values)))


def _bare(text: str) -> str:
    return re.sub(r"[\s\"']", "", text).lower()


def integer(low: int, high: int) -> Reader:
    """Read a whole number within limits; a fraction is rounded."""
    return lambda values: _quantity(values, low, high, {})


def quantity(low: int, high: int, units: Mapping[str, float]) -> Reader:
    """Read a number with a unit; it is shown in the largest unit that it is a whole number of."""
    return lambda values: _quantity(values, low, high, units)


def _quantity(values: tuple[str, ...], low: int, high: int, units: Mapping[str, float]) -> str | None:
    match = _NUMBER.fullmatch(values[0].strip()) if len(values) == 1 else None
    if match is None or (match[2] and match[2] not in units):
        return None
    number = round(float(match[1]) * (units[match[2]] if match[2] else 1))
    if not low <= number <= high:
        return None
    if number <= 0:
        return str(number)
    whole = [(size, unit) for unit, size in units.items() if size >= 1 and number % size == 0]
    size, unit = max(whole, default=(1, ""))
    return f"{number // int(size)}{unit}"


def real(low: float, high: float) -> Reader:
    """Read a number within limits."""

    def read(values: tuple[str, ...]) -> str | None:
        match = _NUMBER.fullmatch(values[0].strip()) if len(values) == 1 else None
        if match is None or match[2] or not low <= float(match[1]) <= high:
            return None
        return f"{float(match[1]):.15g}"

    return read


def name_list(values: tuple[str, ...]) -> str:
    """Return a list of names as it is shown: quoted where they have to be."""
    return ", ".join(
        name if re.fullmatch(r"[a-z_][a-z0-9_$]*", name) else '"' + name.replace('"', '""') + '"'
        for name in values
    )
