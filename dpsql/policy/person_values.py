"""Whether the values of a public table look like persons': for `check --data`, which reads them for the owner.

House rule: as in `personal`, nothing here decides, and no value is ever said. `init` reads none.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

__all__ = ["MOST_READ", "look_of"]

MOST_READ = 10_000
"""Rows of a public table that are looked at."""
_LEAST = 20
"""Fewer values than this that all differ are a short list, and say nothing."""
_SHARE = 0.8
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]{2,}")
_PHONE = re.compile(r"(\+|00?)[\d\s()./-]{6,20}|[\d]{2,5}[\s()./-][\d\s()./-]{4,18}")
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_NUMBERED = re.compile(r"(?=\D*\d{4})[A-Za-z0-9][A-Za-z0-9./_-]{4,30}")
"""A short word with four digits in a row: a number that somebody, or something, was given."""


def look_of(values: Sequence[str], *, is_key: bool) -> str | None:
    """Return what the texts of a column look like, in words; None: like nobody's.

    `is_key`: a constraint says already that they are a key, as a lookup's own code is.
    """
    if not values:
        return None
    for words, test in (
        ("e-mail addresses", _EMAIL.fullmatch),
        ("IP addresses", _is_address),
        ("phone numbers", _is_phone),
        ("random identifiers", _UUID.fullmatch),
    ):
        if sum(bool(test(value.strip())) for value in values) >= _SHARE * len(values):
            return words
    are_distinct = len(values) >= _LEAST and len(set(values)) == len(values)
    if are_distinct and not is_key and all(map(_NUMBERED.fullmatch, values)):
        return "numbers of which each stands once"
    return None


def _is_address(value: str) -> bool:
    if not re.search(r"[.:].*[.:]", value):
        return False
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return False
    return True


def _is_phone(value: str) -> bool:
    digits = sum(map(str.isdigit, value))
    is_date = re.fullmatch(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T\s].*)?", value)
    return 7 <= digits <= 15 and is_date is None and _PHONE.fullmatch(value) is not None
