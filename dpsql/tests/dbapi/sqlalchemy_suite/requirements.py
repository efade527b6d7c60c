"""What SQLAlchemy's suite may ask of dpsql, where that is not what it asks of any engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

__all__ = ["CLOSED", "Requirements"]

CLOSED = {
    "nothing is written, so nothing counts, numbers or returns what was": (
        "autoincrement_insert", "empty_inserts", "empty_inserts_executemany", "sane_rowcount", "sane_multi_rowcount",
        "implements_get_lastrowid", "duplicate_key_raises_integrity_error", "temporary_tables",
        "temp_table_reflection",
    ),
    "a public table's foreign keys, indexes and comments are not declared; only the way to a person is": (
        "foreign_key_constraint_reflection", "self_referential_foreign_keys", "index_reflection",
        "indexes_with_ascdesc", "reflect_indexes_with_ascdesc",
    ),
    "only tables are declared, no views": ("view_reflection", "view_column_reflection"),
    "no such type": ("time", "time_microseconds", "time_implicit_bound", "binary_comparisons", "binary_literals"),
}  # fmt: skip
"""Why something is not there, and what the suite calls it."""

OPEN = (
    "ctes", "ctes_with_values", "window_functions", "nullsordering", "except_", "intersect", "fetch_first",
    "fetch_no_order_by", "boolean_col_expressions", "schemas", "implicit_default_schema", "isolation_level",
    "datetime_literals", "datetime_historic", "date_historic", "timestamp_microseconds", "precision_numerics_enotation_small",
    "precision_numerics_many_significant_digits", "precision_numerics_retains_significant_digits",
    "float_or_double_precision_behaves_generically", "unicode_ddl", "order_by_label_with_expression",
    "mod_operator_as_percent_sign", "table_value_constructor", "standard_cursor_sql", "independent_readonly_connections",
    "skip_autocommit_rollback", "percent_schema_names",
)  # fmt: skip
"""What is off unless a dialect says that it is there."""


class Requirements(SuiteRequirements):
    """The suite's own, but for the names above."""

    def get_isolation_levels(self, config: object) -> dict[str, object]:
        """Return the one level."""
        return {"default": "AUTOCOMMIT", "supported": ["AUTOCOMMIT"]}


def _switch(name: str, exclusion: Callable[[], Any]) -> None:
    assert hasattr(SuiteRequirements, name), f"the suite knows no {name}"
    setattr(Requirements, name, property(lambda self: exclusion()))


for _name in (name for names in CLOSED.values() for name in names):
    _switch(_name, exclusions.closed)
for _name in OPEN:
    _switch(_name, exclusions.open)
