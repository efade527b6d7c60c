"""One TOML table under the reader's hand: every key that is asked for is known, every other is an error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from itertools import count
from typing import TypeVar

from ..errors import PolicyError
from ..regex import regex

T = TypeVar("T")
K = TypeVar("K", bound=Enum)

_BARE_KEY = regex(r"[A-Za-z0-9_-]+")
_CONTROL = regex(r"[\x00-\x1f\x7f-\x9f]")
_MOST_DIGITS = (
    400  # Before the point, and all together: beyond any column type; 10^(10^9) would fill the memory.
)
_MOST_COUNT = 2**31 - 1


def quote_key(key: str) -> str:
    """Return a key as TOML writes it: bare, or as a basic string."""
    return key if _BARE_KEY.fullmatch(key) else quote_text(key)


def quote_text(text: str) -> str:
    """Return text as a TOML basic string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def plain(number: Fraction) -> str:
    """Return a number as decimal text if it has any, else as a fraction: `4`, `0.01`, `1/3`."""
    rest = number.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    if rest > 1:
        return str(number)
    places = next(places for places in count() if (number * 10**places).denominator == 1)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else sign + digits


def bound_text(bound: Fraction | date | datetime) -> str:
    """Return a bound as the policy file writes it."""
    return plain(bound) if isinstance(bound, Fraction) else bound.isoformat()


def read_decimal(text: str) -> Decimal:
    """Return the number of a TOML float; NaN, which no key takes, for an exponent that no Decimal has."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def exact(value: object) -> Fraction | None:
    """Return a TOML number as the exact Fraction of its text; None for anything else, inf and nan included.

    None too for a number of more digits than anybody means: to compute with it would take for ever.
    Requires: floats were read by `read_decimal`.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value) if abs(value) < 10**_MOST_DIGITS else None
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    is_short = abs(value.adjusted()) <= _MOST_DIGITS and len(value.as_tuple().digits) <= _MOST_DIGITS
    return Fraction(value) if is_short else None


def suggest(word: str, known: list[str]) -> str:
    """Return the end of a message about an unknown word: the close one, else all, else nothing."""
    if close := get_close_matches(word, known, n=1) or [k for k in known if k.lower() == word.lower()]:
        return f'; did you mean "{close[0]}"?'
    return f"; known here: {', '.join(sorted(set(known)))}" if known else ""


class Section:
    """A TOML table with its place in the file. Its readers return None for a key that is not there."""

    __slots__ = ("_asked", "_content", "_keys", "found", "source")

    def __init__(
        self,
        source: str,
        content: Mapping[str, object],
        keys: tuple[str, ...] = (),
        found: list[PolicyError] | None = None,
    ) -> None:
        """`found`: where `attempt` notes what is wrong, shared by all sections of a file."""
        self.source = source
        self.found: list[PolicyError] = [] if found is None else found
        self._content = content
        self._keys = keys
        self._asked: list[str] = []

    def error(self, problem: str, *keys: str) -> PolicyError:
        """Return the error for this table, or for a key below it: file, key, problem with its fix."""
        where = ".".join(quote_key(key) for key in self._keys + keys)
        return PolicyError(f"{self.source}: {where}: {problem}" if where else f"{self.source}: {problem}")

    def attempt(self, read: Callable[[], T]) -> T | None:
        """Return what is read, or None where it is wrong: that is noted, so that the rest is looked at too."""
        try:
            return read()
        except PolicyError as error:
            self.found.append(error)
            return None

    def take(self, key: str) -> object:
        """Return the raw value of a key, or None."""
        self._asked.append(key)
        return self._content.get(key)

    def names(self) -> list[str]:
        """Return all keys that the file has here, in its order. Raises PolicyError for one that nothing can have."""
        for key in self._content:
            if "\0" in key:
                raise self.error("holds a NUL character, which no name has; take it out", key)
        return list(self._content)

    def text(self, key: str) -> str | None:
        """Return a string that is not blank, of one line."""
        value = self.note(key)
        if value is not None and _CONTROL.search(value):
            raise self.error("holds a control character, like a line's end; take it out", key)
        return value

    def note(self, key: str) -> str | None:
        """Return a string that is not blank, of any number of lines."""
        value = self.take(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.error('write text in quotes, like "…"', key)
        if value is not None and _CONTROL.search(re.sub(r"[\t\n\r]", "", value)):
            raise self.error("holds a control character; take it out", key)
        return value

    def choice(self, key: str, kinds: type[K]) -> K | None:
        """Return one of some kinds, by its value."""
        value = self.text(key)
        words = [kind.value for kind in kinds]
        if value is not None and value not in words:
            *others, last = (f'"{word}"' for word in words)
            raise self.error(f"write {', '.join(others)} or {last}", key)
        return None if value is None else kinds(value)

    def flag(self, key: str) -> bool | None:
        """Return a boolean."""
        value = self.take(key)
        if value is not None and not isinstance(value, bool):
            raise self.error("write true or false", key)
        return value

    def count(self, key: str, least: int = 1) -> int | None:
        """Return a whole number of at least `least`."""
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(f"write a whole number of at least {least}", key)
        if value > _MOST_COUNT:
            raise self.error(f"is above {_MOST_COUNT}, the most that can be counted; write less", key)
        return value

    def number(self, key: str) -> Fraction | None:
        """Return a finite number, exactly as its decimal text says."""
        value = self.take(key)
        if value is None:
            return None
        number = exact(value)
        if number is None:
            raise self.error(f"write a finite number without quotes, of at most {_MOST_DIGITS} digits", key)
        return number

    def array(self, key: str) -> list[object] | None:
        """Return an array."""
        value = self.take(key)
        if value is not None and not isinstance(value, list):
            raise self.error("write an array, like [ …, … ]", key)
        return value

    def section(self, key: str) -> Section | None:
        """Return the table under a key."""
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error("write a table, like { … }", key)
        return Section(self.source, value, (*self._keys, key), self.found)

    def within(self, key: str, content: Mapping[str, object]) -> Section:
        """Return a table that stands in an array under a key."""
        return Section(self.source, content, (*self._keys, key), self.found)

    def finish(self) -> None:
        """Raise PolicyError if the file has a key here that nobody asked for."""
        unknown = [
            self.error(f"unknown key{suggest(key, self._asked)}", key)
            for key in self._content
            if key not in self._asked
        ]
        if unknown:
            self.found.extend(unknown[1:])
            raise unknown[0]
