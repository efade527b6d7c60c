"""Postgres' scalar functions above the release and on public tables: one row a function.

House rules:

1. A row is Postgres' name, what it takes and gives (`signature`), and the SQL of its value (`Function.sql`), which is
   read over the arguments {a}, {b}, …, each there and of its type. Where Postgres raises it is NULL, whatever it raises
   itself; where DuckDB means something else by a name, Postgres' meaning is written out.
2. Nothing here runs on people's rows, but what `named_texts` says more of: no row here says how long its text can be,
   or what it could make fail.
3. No text is made longer than `MOST_BYTES` or the one that it is made of, and none much longer stands on the way.
4. Each row is held against a real Postgres over generated values (`dpsql/tests/conformance/test_scalar_functions.py`).
"""

from __future__ import annotations

from ..row import Function
from . import moments, numbers, patterns, texts

__all__ = ["NAMES", "ROWS", "SECTIONS"]

SECTIONS: dict[str, tuple[Function, ...]] = {
    "more of text": texts.ROWS,
    "more of dates": moments.ROWS,
    "more of numbers": numbers.ROWS,
    "more of patterns": patterns.ROWS,
    "more of arrays": numbers.ARRAYS,
}
"""The manual's headings, and the rows below each."""

ROWS = tuple(row for rows in SECTIONS.values() for row in rows)

NAMES: dict[str, tuple[Function, ...]] = {
    name: tuple(row for row in ROWS if name in row.names) for row in ROWS for name in row.names
}
"""Name of a function -> its rows, the first that takes the arguments is meant."""
