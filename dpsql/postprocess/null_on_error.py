"""SQL that is NULL on error: what the printer writes for Postgres' operators over released values.

Each function takes operands that are already printed and returns SQL for the sealed engine that gives
Postgres' value where Postgres gives one and NULL where Postgres raises; it never raises.

House rules:

1. An operand is printed exactly once. DuckDB's NULLIF and `CASE x WHEN` copy their operand when they
   are bound: 18 nested NULLIFs take 40 seconds. What needs an operand twice binds it in a lambda:
   `list_filter([x], lambda v: ...)[1]`, `list_transform([x], lambda v: ...)[1]`.
2. An operand stands outside the lambda's body, since DuckDB allows no window there; and never within
   TRY(), which allows neither windows nor subqueries.
3. Operands are joined by spaces and parentheses (DuckDB 2.0 reads `%-` as one operator).
4. No DOUBLE is NaN or infinite: `released` loads none, and every result that could be is filtered.
   NUMERIC is carried as DOUBLE and read as its shortest decimal text, so 2.675 is a tie.
5. Integer operands may be wider than BIGINT (a released measure): beyond BIGINT they are NULL.
6. A template names no data: it depends on operands, types and literals of the statement alone.
"""

from __future__ import annotations

from .null_on_error_casts import cast
from .null_on_error_dates import add_days, add_interval, date_bin, date_trunc, days_between, extract, to_char
from .null_on_error_numbers import (
    absolute,
    aggregate,
    arithmetic,
    ceil,
    divide,
    exponential,
    floor,
    logarithm,
    modulo,
    negate,
    nullif,
    pair,
    power,
    scalar_subquery,
    square_root,
    width_bucket,
)  # fmt: skip
from .null_on_error_rounding import round_half_away, round_half_even, truncate
from .null_on_error_text import concatenate, left, like, position, right, substring, trim

__all__ = [
    "absolute", "add_days", "add_interval", "aggregate", "arithmetic", "cast", "ceil", "concatenate",
    "date_bin", "date_trunc", "days_between", "divide", "exponential", "extract", "floor", "left", "like", "logarithm",
    "modulo", "negate", "nullif", "pair", "position", "power", "right", "round_half_away", "round_half_even",
    "scalar_subquery", "square_root", "substring", "to_char", "trim", "truncate", "width_bucket",
]  # fmt: skip
