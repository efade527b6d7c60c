"""Regular expressions as an engine prints them: a pattern is in the engine's own spelling, and known to be right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ...relation.functions.above.patterns import OF_POSTGRES, OF_RE2, Spelling
from .quote import text

__all__ = ["Patterns", "PostgresPatterns", "Re2Patterns"]


class Patterns(ABC):
    """What is asked of a text by a pattern. `spelling`: how patterns are written."""

    spelling: ClassVar[Spelling]

    @abstractmethod
    def matches(self, sql: str, pattern: str) -> str:
        """Return whether a pattern is found in a text."""

    @abstractmethod
    def matched(self, sql: str, pattern: str, groups: int, *, is_group: bool) -> str:
        """Return the first match of a pattern of so many groups, or its first group; NULL where there is none."""

    @abstractmethod
    def first_group(self, sql: str, pattern: str) -> str:
        """Return what the first group of a pattern finds, which is never empty; NULL where there is no match."""

    @abstractmethod
    def replaced(self, sql: str, pattern: str, new: tuple[str, str], *, is_each: bool) -> str:
        """Return a text with the first match, or each, replaced; `new`: by what, as Postgres and as RE2 write it."""


class Re2Patterns(Patterns):
    """RE2's, which DuckDB has: in time linear in the text."""

    spelling = OF_RE2

    def matches(self, sql: str, pattern: str) -> str:
        return f"regexp_matches({sql}, {text(pattern)})"

    def matched(self, sql: str, pattern: str, groups: int, *, is_group: bool) -> str:
        found = f"regexp_extract({sql}, {text(pattern)}, {int(is_group)})"  # '' where there is none
        return f"CASE WHEN {self.matches(sql, pattern)} THEN {found} END"

    def first_group(self, sql: str, pattern: str) -> str:
        return f"NULLIF(regexp_extract({sql}, {text(pattern)}, 1), '')"

    def replaced(self, sql: str, pattern: str, new: tuple[str, str], *, is_each: bool) -> str:
        return f"regexp_replace({sql}, {text(pattern)}, {text(new[1])}{_flags(is_each)})"


class PostgresPatterns(Patterns):
    """Postgres' own, without back references and looking around: in time linear in the text."""

    spelling = OF_POSTGRES

    def matches(self, sql: str, pattern: str) -> str:
        return f"({sql} ~ {text(pattern)})"

    def matched(self, sql: str, pattern: str, groups: int, *, is_group: bool) -> str:
        whole = f"({pattern})" if groups and not is_group else pattern  # its first group, where it has one
        return f"substring({sql}, {text(whole)})"

    def first_group(self, sql: str, pattern: str) -> str:
        return f"substring({sql}, {text(pattern)})"

    def replaced(self, sql: str, pattern: str, new: tuple[str, str], *, is_each: bool) -> str:
        return f"regexp_replace({sql}, {text(pattern)}, {text(new[0])}{_flags(is_each)})"


def _flags(is_each: bool) -> str:
    return ", 'g'" if is_each else ""
