"""DuckDB's words; `dialect` has the house rules."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from ...errors import Position
from ...relation.catalog import Table
from ...relation.types import Kind, SqlType
from .dialect import DECIMAL_REACH, Dialect, Patterns, Re2Patterns
from .quote import identifier, text

_LEAST_TAKE = 1_000_000
"""min(x, n) takes an n below it."""
DIRECT_BITS = 22
"""Of whole numbers in a range of so many bits, NULL among them, DuckDB groups by a direct table where it is allowed to:
by a place for each, in each thread."""


class DuckDBDialect(Dialect):
    """DuckDB 1.4 and later."""

    name = "duckdb"
    double = "DOUBLE"
    text = "VARCHAR"
    decimal = "DECIMAL(38, 0)"
    compares_any_decimals = False
    lists_doubles = True
    numerics_are_finite = True
    listed_by_sort = ""
    has_no_orphans = True
    correlates_once = True
    runs_public_parts = True
    kinds = MappingProxyType({})
    narrow_decimals = True
    sums_widen = True
    keeps_steps = True
    groups_before_having = False
    ranks_all = False
    list_cast = "TRY_CAST"
    anti_join = "ANTI JOIN {other} ON {match}"
    has_linear_ranges = True
    direct_places = 2**DIRECT_BITS - 2
    forms = MappingProxyType(
        {
            "as_text": "CAST({0} AS VARCHAR)",
            "flag": "CAST({0} AS BIGINT)",
            "octets": "strlen({0})",
            "is_nan": "isnan({0})",
            "below_nan": "{0} <= CAST('Infinity' AS DOUBLE)",
            "wide_sum": "{0}",
            "half_even": "round_even({0}, 0)",
            "half_away": "round({0})",
            "position": "instr({0}, {1})",
            "days_between": "date_diff('day', {1}, {0})",
            "calendar_operand": "{0}",
            "less_microseconds": "({0} - to_microseconds({1}))",
            "same": "{0} IS NOT DISTINCT FROM {1}",
            "read_hexadecimal": "CAST('0x' || {0} AS BIGINT)",
        }
    )

    @classmethod
    def of(cls, case_collation: str | None) -> DuckDBDialect:
        return DUCKDB

    def bytewise(self, sql: str) -> str:
        return f"{sql} COLLATE C"

    def text_literal(self, value: str) -> str:
        return text(value)

    def identifier(self, name: str) -> str:
        return identifier(name)

    def parameter(self, number: int, *, is_text: bool = False) -> str:
        return f"${number}"

    def table(self, table: Table) -> str:
        return self.path(table.place)

    def stored(self, shown: str, type_: SqlType) -> str:
        # Whatever the session's own zone is: no expression above knows of zones.
        return f"({shown} AT TIME ZONE 'UTC')" if type_.engine == "TIMESTAMP WITH TIME ZONE" else shown

    def column(self, shown: str, type_: SqlType) -> str:
        # An ENUM is TEXT to us; compared with a text outside its list it would raise.
        return self.as_text(shown) if type_.kind is Kind.TEXT else shown

    def json_member(self, shown: str, keys: Sequence[str], position: Position | None) -> str:
        # A file may hold text that is no JSON under that type: it is none before a member is looked for.
        return f"json_extract_string({self._json_path(shown, keys)})"

    def json_field(self, shown: str, keys: Sequence[str], position: Position | None) -> str:
        return f"json_extract({self._json_path(shown, keys)})"

    def _json_path(self, shown: str, keys: Sequence[str]) -> str:
        whole, path = self.as_text(shown), "".join(f'."{key}"' for key in keys)
        return f"CASE WHEN json_valid({whole}) THEN {whole} END, {text('$' + path)}"

    def owner(self, shown: str, type_: SqlType) -> str:
        return shown

    def number_key(self, shown: str, type_: SqlType) -> str:
        return shown

    def is_open(self, type_: SqlType) -> bool:
        return False

    def on_scale(self, shown: str, type_: SqlType) -> str:
        return shown

    def exact_as_double(self, shown: str, type_: SqlType) -> str:
        return self.as_double(shown)

    def quotient(self, left: str, right: str, *, wide: bool, most: int) -> str:
        return f"({left} // {right})"

    def whole(self, sql: str, factor: int, reach: int, kind: str) -> str:
        # A product of decimals of at most 18 digits has no more of them, and raises: it keeps those after the point.
        if factor > 1 and reach * factor >= DECIMAL_REACH:
            sql = f"CAST({sql} AS DECIMAL(38, {len(str(factor)) - 1}))"
        return super().whole(sql, factor, reach, kind)

    def summand(self, largest_sum: int) -> str:
        return "BIGINT"

    def letter_case(self, name: str, sql: str) -> str:
        if name == "lower":
            return f"lower({sql})"
        parts = f"list_transform(string_split({sql}, 'ß'), lambda p: upper(p))"  # not to a capital ẞ
        return f"CASE WHEN contains({sql}, 'ß') THEN array_to_string({parts}, 'ß') ELSE upper({sql}) END"

    def like(self, sql: str, pattern: str, escape: str, word: str = "LIKE") -> str:
        # Only without ESCAPE, which is none unless it is written, it looks for the parts of a pattern as such.
        escaped = f" ESCAPE {text(escape)}" if escape and escape in pattern else ""
        return f"({sql} {word} {text(pattern)}{escaped})"

    def patterns(self, position: Position | None) -> Patterns:
        return Re2Patterns()

    def since_1970(self, sql: str, type_: SqlType) -> str:
        if type_.kind is Kind.DATE:
            return self.days_between(sql, "CAST('1970-01-01' AS DATE)")
        return f"epoch_us({sql})"

    def spelled(self, sql: str, type_: SqlType) -> str:
        return f"CAST({sql} AS {self.text})"

    def first(
        self, rows: str, unit: Sequence[str], hashed: str, shown: Sequence[str], most: int
    ) -> str | None:
        """The least of structs, which are ordered by their fields, one after the other, NULL last."""
        if most >= _LEAST_TAKE:
            return None
        by, fields = ", ".join(unit), "".join(f", {name} := {name}" for name in shown)
        least = f"min(struct_pack(hashed := {hashed}{fields}), {most})"
        columns = ", ".join([*unit, *(f"one.{name}" for name in shown)])
        return f"SELECT {columns} FROM (SELECT {by}, unnest({least}) AS one FROM {rows} GROUP BY {by}) AS f"

    def last(self, sql: str, most: int) -> str | None:
        return f"list_last(min({sql}, {most}))" if most < _LEAST_TAKE else None


DUCKDB = DuckDBDialect()
