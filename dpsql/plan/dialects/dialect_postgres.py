"""Postgres' words; `dialect` has the house rules.

Traps that these forms stand for, each reproduced (soundness.md 1.9, 1.11, 2.2): NaN and infinity are values
of numeric too; IS NOT DISTINCT FROM is never joined by hash; text is compared under the collation of its
column; CASE does not guard what is constant; a date loses its place when it is cast to a moment with a zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from ...errors import Position, Refusal
from ...relation.catalog import Table
from ...relation.expressions import Literal
from ...relation.facts import MAX_TEXT
from ...relation.types import Kind, SqlType
from .dialect import Dialect, Patterns, PostgresPatterns
from .quote import identifier, text

_NAN = "CAST('NaN' AS numeric)"
_BYTEWISE = ' COLLATE "C")'


class PostgresDialect(Dialect):
    """Postgres 13 and later.

    `case_collation`: the collation of pg_catalog whose letter case is Unicode's; None: there is none.
    """

    name = "postgres"
    double = "double precision"
    text = "text"
    decimal = "numeric"
    compares_any_decimals = True
    lists_doubles = True
    numerics_are_finite = False
    listed_by_sort = " ORDER BY 1"
    # Or an index on it: a hash table of a million units, which the planner prefers, takes three times as long.
    has_no_orphans = False  # a subscriber of logical replication, or a load without triggers, asks no key
    correlates_once = False
    runs_public_parts = False
    kinds = MappingProxyType({"HUGEINT": "numeric(39, 0)", "DOUBLE": "double precision", "VARCHAR": "text"})
    narrow_decimals = False
    sums_widen = True
    keeps_steps = True
    groups_before_having = False
    ranks_all = False
    list_cast = "CAST"
    anti_join = "WHERE NOT EXISTS (SELECT 1 FROM {other} WHERE {match})"
    has_linear_ranges = True
    direct_places = 0
    forms = MappingProxyType(
        {
            "as_text": '(CAST({0} AS text) COLLATE "C")',
            "flag": "CAST(CAST({0} AS integer) AS bigint)",
            "octets": "octet_length({0})",
            "is_nan": "{0} = 'NaN'",
            "below_nan": "{0} < 'NaN'",
            "wide_sum": "CAST({0} AS numeric(39, 0))",  # a sum of INTEGER is a bigint
            "half_even": "round({0})",
            "half_away": "(trunc({0}) + CASE WHEN abs({0} - trunc({0})) >= 0.5e0 THEN sign({0}) ELSE 0e0 END)",
            "position": "strpos({0}, {1})",
            "days_between": "CAST({0} - {1} AS bigint)",
            "calendar_operand": "CAST({0} AS timestamp)",
            "less_microseconds": "({0} - CAST({1} AS double precision) * INTERVAL '1 microsecond')",
            "same": "ARRAY[{0}] = ARRAY[{1}]",
            "read_hexadecimal": "CAST(CAST(CAST('x' || {0} AS bit(12)) AS integer) AS bigint)",
        }
    )

    def __init__(self, case_collation: str | None) -> None:
        self.case_collation = case_collation

    @classmethod
    def of(cls, case_collation: str | None) -> PostgresDialect:
        return cls(case_collation)

    def bytewise(self, sql: str) -> str:
        return sql if sql.endswith(_BYTEWISE) else f"({sql}{_BYTEWISE}"

    def literal(self, value: Literal) -> str:
        if value.value is None and value.type.kind not in (Kind.NULL, Kind.OPAQUE):
            return self.cast("NULL", value.type.kind.value.upper())  # a subquery would make a text of it
        return super().literal(value)

    def text_literal(self, value: str) -> str:
        return text(value)

    def identifier(self, name: str) -> str:
        return identifier(name)

    def parameter(self, number: int, *, is_text: bool = False) -> str:
        return f"${number}"

    def table(self, table: Table) -> str:
        # A child that is attached after its constraints were looked at has none of them.
        return f"{'' if table.is_partitioned else 'ONLY '}{self.path(table.place)}"

    # --- a table's columns ------------------------------------------------------------------------------

    def column(self, shown: str, type_: SqlType) -> str:
        if type_.kind is Kind.TEXT:
            return self.as_text(shown)
        if type_.engine == "numeric":  # of equal ones, as 1.0 and 1.00, any may be the one that is kept
            return f"trim_scale({shown})"
        return f"({shown} AT TIME ZONE 'UTC')" if type_.engine == "timestamptz" else shown

    def cut(self, sql: str, most: int) -> str:
        return f"{super().cut(sql, most)[:-1]}{_BYTEWISE}"

    def cut_column(self, shown: str, type_: SqlType, most: int) -> str:
        return self.cut(f"CAST({shown} AS text)", most)

    def json_member(self, shown: str, keys: Sequence[str], position: Position | None) -> str:
        # An object or an array is written out whole before it is cut, and a number in it of a dozen bytes as 147,000
        # digits: of few kilobytes Postgres would make a text that it has no room for. So only a short one is.
        whole = self.json_field(shown, keys[:-1], position)
        member = self.json_field(whole, keys[-1:], position)
        is_short = f"pg_column_size({member}) <= {MAX_TEXT} OR jsonb_typeof({member}) IN ('number', 'string')"
        return f"jsonb_object_field_text(CASE WHEN {is_short} THEN {whole} END, {text(keys[-1])})"

    def json_field(self, shown: str, keys: Sequence[str], position: Position | None) -> str:
        for key in keys:
            shown = f"jsonb_object_field({shown}, {text(key)})"
        return shown

    def owner(self, shown: str, type_: SqlType) -> str:
        return self.as_text(shown) if type_.kind is Kind.TEXT else shown

    def number_key(self, shown: str, type_: SqlType) -> str:
        return f"CASE WHEN {shown} < {_NAN} AND abs({shown}) < 1e39 THEN {self.on_scale(shown, type_)} END"

    def is_open(self, type_: SqlType) -> bool:
        return type_.engine == "numeric"

    def on_scale(self, shown: str, type_: SqlType) -> str:
        return f"round({shown}, {type_.scale})" if self.is_open(type_) else shown

    def exact_as_double(self, shown: str, type_: SqlType) -> str:
        if type_.is_integer or (type_.engine is None and (type_.precision or 39) <= 38):
            return self.as_double(shown)
        return self.as_double(
            f"CASE WHEN {shown} BETWEEN -1e300 AND 1e300 THEN round({shown}, 300) "
            f"WHEN {shown} < 0 THEN -1e300 WHEN {shown} < {_NAN} THEN 1e300 WHEN {shown} = {_NAN} THEN {_NAN} END"
        )

    # --- clamps and arithmetic ----------------------------------------------------------------------------

    def quotient(self, left: str, right: str, *, wide: bool, most: int) -> str:
        return f"div({left}, {right})" if wide else f"({left} / {right})"

    def summand(self, largest_sum: int) -> str:
        return "INTEGER" if largest_sum < 2**62 else "BIGINT"  # which are summed as bigint, and as numeric

    # --- text and calendar --------------------------------------------------------------------------------

    def letter_case(self, name: str, sql: str) -> str:
        if self.case_collation is None:
            raise Refusal(
                f"{name}() cannot be used on private rows of this database", sqlstate="PV202",
                hint="ask the owner for a database that has the collation pg_c_utf8, C.utf8 or und-x-icu",
            )  # fmt: skip
        return f"({name}({sql} COLLATE pg_catalog.{identifier(self.case_collation)}){_BYTEWISE}"

    def like(self, sql: str, pattern: str, escape: str, word: str = "LIKE") -> str:
        return f"({sql} {word} {text(pattern)} ESCAPE {text(escape)})"

    def patterns(self, position: Position | None) -> Patterns:
        return PostgresPatterns()

    def since_1970(self, sql: str, type_: SqlType) -> str:
        if type_.kind is Kind.DATE:
            return self.days_between(sql, "CAST('1970-01-01' AS date)")
        return f"CAST(round(extract(epoch FROM {sql}) * 1000000) AS bigint)"

    # --- rows -----------------------------------------------------------------------------------------------

    def spelled(self, sql: str, type_: SqlType) -> str:
        shown = f"CAST({sql} AS text)"
        if not type_.is_temporal:
            return shown
        # Before the time of day, and in parentheses.
        moved = f"regexp_replace({shown}, '( [^ ]*)? BC$', ' (BC)\\1')"
        return f"CASE WHEN {sql} < '0001-01-01' THEN {moved} ELSE {shown} END"
