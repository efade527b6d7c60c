"""What Tab offers at the prompt, each with what it means: tables, columns, functions, settings, words of SQL.

From the catalog that the analyst sees, and tables of our own: no row is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

from .meant import KEYWORDS
from .prompt_commands import COMMANDS

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from ..engine.session import Session

__all__ = ["SETTINGS", "Offers", "SqlCompleter"]

SETTINGS = {
    "dpsql.epsilon": "what a statement may spend",
    "dpsql.accuracy": "by how much a number may be off: the least epsilon for it is found",
    "dpsql.intervals": "the level of error bars, such as 0.95, or off",
    "dpsql.max_rows": "how many rows of a person count, if fewer than the policy says",
    "dpsql.reuse": "off: draw anew and pay, in place of the stored answer",
    "dpsql.selection": "off: measure all groups, where the largest would be chosen first",
    "dpsql.unlisted": "on: compare with values that the policy does not list",
    "dpsql.budget": "what is left (SHOW only)",
}
"""Each setting with its meaning."""

_AGGREGATES = {
    "COUNT": "how many rows, or values that are not NULL",
    "COUNT(DISTINCT ": "how many different values",
    "SUM": "their sum",
    "AVG": "their mean: a noisy sum by a noisy count",
    "MEDIAN": "the middle value, chosen near its rank",
    "STDDEV": "the standard deviation",
    "VARIANCE": "the variance",
    "CORR": "the correlation of two columns",
    "MIN": "a value near the smallest",
    "MAX": "a value near the largest",
    "MODE": "the most frequent value",
    "PERCENTILE_CONT": "a percentile, WITHIN GROUP (ORDER BY …)",
}
_TYPED = re.compile(r"\\?[\w.]*\Z")
_AFTER_TABLE_WORD = re.compile(r"\b(?:from|join)\s+(?:\w+\s*,\s*)*[\w.]*\Z", re.IGNORECASE)
_AFTER_SETTING_WORD = re.compile(r"\A\s*(?:set|show|reset)\s+(?:local\s+)?[\w.]*\Z", re.IGNORECASE)
_AFTER_COMMAND = re.compile(r"\A\s*\\(?:d|dt|d\+)\s+\w*\Z")
_LONGEST = 76


class Offers:
    """What a session offers: name and meaning, by kind."""

    def __init__(self, session: Session) -> None:
        from ..policy.describe import column_comment, table_comment
        from ..relation.functions import ROWS

        policy = session.policy
        shown = session.catalog.shown
        self.tables = {name: table_comment(table) for name, table in shown.items()}
        self.columns = {
            name: {one.name: column_comment(table, one.name, policy.has_delta) for one in table.named}
            for name, table in shown.items()
        }
        named = ((re.match(r"([a-z_]\w*)\(", row.form), row) for row in ROWS)
        self.functions = {match[1]: f"{row.form}: {row.doc}" for match, row in named if match}

    def of_statement(self, text: str) -> dict[str, str]:
        """Return the columns of the tables that a statement names, of all tables where it names none."""
        words = set(re.findall(r"\w+", text.lower()))
        tables = [name for name in self.columns if name.lower().rpartition(".")[2] in words] or list(
            self.columns
        )
        found: dict[str, str] = {}
        for name in tables:
            for column, meaning in self.columns[name].items():
                found.setdefault(column, meaning)
        return found


class SqlCompleter(Completer):
    """Offers what fits where the cursor stands."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what begins as the word before the cursor does; names before functions before words of SQL."""
        before = document.text_before_cursor
        match = _TYPED.search(before)
        typed = match[0] if match else ""
        given = set[str]()
        for name, meaning in self._fitting(document.text, before, typed):
            if name.lower().startswith(typed.lower()) and name.lower() not in given:
                given.add(name.lower())
                short = meaning if len(meaning) <= _LONGEST else meaning[: _LONGEST - 1] + "…"
                yield Completion(name, -len(typed), display_meta=short)

    def _fitting(self, text: str, before: str, typed: str) -> Iterable[tuple[str, str]]:
        offers = self._offers
        if typed.startswith("\\"):
            return (
                [(f"\\{command.name}", command.meaning) for command in COMMANDS]
                if before.strip() == typed
                else ()
            )
        if _AFTER_COMMAND.search(before) or _AFTER_TABLE_WORD.search(before):
            return offers.tables.items()
        if _AFTER_SETTING_WORD.search(before):
            return SETTINGS.items()
        table, point, _ = typed.rpartition(".")
        if point:
            return [(f"{table}.{name}", meaning) for name, meaning in offers.columns.get(table, {}).items()]
        if not typed:
            return offers.of_statement(text).items()
        words = [(word if typed.isupper() else word.lower(), "") for word in KEYWORDS]
        calls = [
            (name if typed.isupper() else name.lower(), meaning) for name, meaning in _AGGREGATES.items()
        ]
        return [
            *offers.of_statement(text).items(),
            *calls,
            *offers.functions.items(),
            *words,
            *offers.tables.items(),
        ]
