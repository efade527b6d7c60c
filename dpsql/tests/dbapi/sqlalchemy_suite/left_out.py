"""Tests of SQLAlchemy's suite that are not run, beside what the requirements switch off, and why."""

from __future__ import annotations

__all__ = ["LEFT_OUT"]

LEFT_OUT = {
    "dpsql writes nothing: these are about INSERT, UPDATE, DELETE, RETURNING and CREATE TABLE AS": (
        "CTETest.test_delete*", "CTETest.test_insert*", "CTETest.test_update*", "IdentityAutoincrementTest.*",
        "InsertBehaviorTest.*", "ReturningGuardsTest.*", "TableViaSelectTest.*",
    ),
    "only tables are declared, no views": ("ComponentReflectionTest.test_get_view_names*",),
    "keys are known by their columns, not by names; indexes are not known": (
        "ComponentReflectionTest.test_get_*unique_constraints*", "LongNameBlowoutTest.test_long_convention_name?ix-*",
    ),
    "a text has no length: VARCHAR(52) is TEXT": (
        "CastTypeDecoratorTest.*", "ComponentReflectionTestExtra.test_string_length_reflection*",
    ),
    "a uuid can only be a privacy unit": ("UuidTest.*",),
    "numeric has the digits of a double above a release": (
        "NumericTest.test_many_significant_digits", "TrueDivTest.test_truediv_divisor?numeric_38*",
        "TrueDivTest.test_truediv_divisor?numeric_many*",
    ),
    "WITH RECURSIVE is refused": ("CTETest.test_select_recursive_round_trip",),
    "there is one isolation level": ("IsolationLevelTest.test_dialect_user_setting_is_restored",),
    "it is written as for Postgres, and refused": ("DistinctOnTest.*",),
    "the catalog is the session's, and here the owner opens it again after DROP TABLE": (
        "HasTableTest.test_has_table_cache",
    ),
}  # fmt: skip
"""Why, and which: the class and the test, as patterns of `fnmatch`."""
