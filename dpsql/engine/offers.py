"""What a line that is typed may go on with, each with what it means: tables, columns, functions, settings.

From the catalog that the analyst sees, and tables of our own: no row is read.
"""

from __future__ import annotations

import re

from ..policy.describe import column_comment, table_comment
from ..relation.functions import ROWS
from .session import Session

SETTINGS = {
    "dpsql.epsilon": "what a statement may spend",
    "dpsql.accuracy": "by how much a number may be off: the least epsilon for it is found",
    "dpsql.intervals": "the level of error bars, such as 0.95, or off",
    "dpsql.interval_names": "what the columns of their ends are called: '%_low %_high'",
    "dpsql.max_rows": "how many rows of a person count, if fewer than the policy says",
    "dpsql.reuse": "off: draw anew and pay, in place of the stored answer",
    "dpsql.open": "on: read periods that are not over too, charged anew each day, where the owner allows it",
    "dpsql.selection": "off: measure all groups, where the largest would be chosen first",
    "dpsql.found_share": "what part of epsilon finds groups that nobody has declared",
    "dpsql.edition": "the edition that answers, as receipts name them: nothing is drawn, or newest",
    "dpsql.unlisted": "on: compare with values that the policy does not list",
    "dpsql.grids": "empty: rows that WHERE keeps are answered with their columns, and no row",
    "dpsql.on_empty": "error: an answer of which no group is shown says why as an error",
    "dpsql.budget": "what is left (SHOW only)",
}
"""Each setting with its meaning."""

AGGREGATES = {
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


class Offers:
    """What a session offers: name and meaning, by kind."""

    def __init__(self, session: Session) -> None:
        policy = session.policy
        shown = session.seen.everything
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
