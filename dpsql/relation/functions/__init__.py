"""The table of scalar functions and operators: everything that a `Call` may name.

A function that is not in this table does not exist for the analyst (law L4). `row` says what a row has. Printers
stand where their engine is, in `plan` for private rows and in `postprocess` above the release, each in one table by
the same names.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import above, arrays, comparisons, moments, numbers, texts
from .row import Function, Shorthand, common_type, promote

__all__ = [
    "FUNCTIONS", "NAMES", "ROWS", "SYNTAX", "WRITTEN", "Function", "check_printers", "common_type", "manual_lines",
    "promote",
]  # fmt: skip

_BOTH = frozenset(row.name for row in texts.NAMED)
_SECTIONS: dict[str, tuple[Function | Shorthand, ...]] = {
    "arithmetic": (*numbers.ARITHMETIC, *numbers.ROWS, *numbers.BINS),
    "comparison": comparisons.ROWS,
    "choice": comparisons.CHOICES,
    "text": (*texts.ROWS, *texts.NAMED),
    "dates": (*moments.ROWS, *moments.ZONES),
    "casts": comparisons.CASTS,
    **{
        heading: tuple(row for row in rows if row.name not in _BOTH)
        for heading, rows in above.SECTIONS.items()
    },
    "several percentiles": arrays.ROWS,
    "JSON": arrays.JSON_ROWS,
    "error bars": numbers.ERROR_BARS,
}
ROWS = tuple(row for rows in _SECTIONS.values() for row in rows)
"""All that is answered, in the manual's order."""

FUNCTIONS = {
    row.name: row for row in (*ROWS, *moments.COMPUTED, *numbers.ESTIMATES) if isinstance(row, Function)
}
"""Name -> row of the table, with those that only dpsql writes."""

SYNTAX = {syntax.node: syntax for row in ROWS for syntax in row.syntax}
"""Kind of node -> what is read of it."""

NAMES = above.NAMES
"""Name that is called -> the functions above a release that it may mean."""

WRITTEN = {syntax.node: row for row in FUNCTIONS.values() for syntax in row.syntax}
"""Kind of node -> the function that is written so."""


def check_printers(names: Iterable[str], *, private: bool) -> None:
    """Check a table of printers against the rows: a function without one, or one without a function, is a mistake."""
    wanted = {name for name, row in FUNCTIONS.items() if (row.private if private else row.public)}
    wrong = wanted.symmetric_difference(names)
    if wrong:
        raise ImportError(f"functions and their printers differ: {', '.join(sorted(wrong))}")


def manual_lines() -> str:
    """Return the manual's list of functions: what `python -m dpsql.relation.functions` prints."""
    return "\n".join(
        f"**{section}**\n\n" + "".join(f"- `{row.form}`: {row.doc}\n" for row in rows)
        for section, rows in _SECTIONS.items()
    ).rstrip()
