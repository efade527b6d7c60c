"""Spark's words; `dialect` has the house rules.

Traps that these forms stand for, each reproduced on 4.3 (soundness.md 2.6):

1. A backslash in a text literal escapes what follows it, `${env:HOME}` in a statement is replaced before it is
   parsed, and settings change both: a literal with any character that could be either is written as its bytes.
2. DIV of decimals wraps beyond 64 bits without an error, SUM(BIGINT) stays a BIGINT and raises, a cast of a double
   truncates, and so does one of a decimal; a cast of a double to a decimal takes its shortest text.
3. A text may hold bytes that are no UTF-8, and substring() of such reads the memory behind them: a column is NULL
   there, wherever it is read.
4. A step of WITH is computed again for each of its readers.
5. Behind `map(`, which a list's reader says, `>>` is read as two signs that end a type: nothing is shifted by a sign.

What is printed relies on settings that the backend pins and reads back: ANSI arithmetic, decimals without loss of
precision (`decimalOperations.allowPrecisionLoss` false), and UTC, in which TIMESTAMP_NTZ and TIMESTAMP_LTZ are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from ...errors import Position, Refusal
from ...relation.catalog import Table
from ...relation.expressions import Literal, Months
from ...relation.types import Kind, SqlType
from .dialect import Dialect, ListColumn, Patterns

_PLAIN = frozenset(" _-.,:;/()%+*=<>!?@#&|")
"""What a quoted text may hold besides letters and digits, whatever the settings are."""
_EIGHTEEN = 9 * 10**18
"""Below 2^63: quotients are taken in two steps that are below it, see `quotient`."""
_DIVISOR = 10**19


_IOTA = (*range(0x1F80, 0x1F88), *range(0x1F90, 0x1F98), *range(0x1FA0, 0x1FA8))
_SEVERAL = {
    "lower": ("İ", "i"),
    "upper": (
        "".join(map(chr, _IOTA)) + "\u1fb3\u1fc3\u1ff3",
        "".join(chr(one + 8) for one in _IOTA) + "\u1fbc\u1fcc\u1ffc",
    ),
}
"""Letters that Spark maps to several, and the one that each is alone."""


class SparkDialect(Dialect):
    """Spark 4.1 and later, over Spark Connect."""

    name = "spark"
    double = "DOUBLE"
    text = "STRING"
    decimal = "DECIMAL(38, 0)"
    compares_any_decimals = False
    lists_doubles = False  # beyond ten it looks them up by their bits
    numerics_are_finite = True
    listed_by_sort = ""
    has_no_orphans = False  # keys are never enforced
    correlates_once = False
    runs_public_parts = False
    kinds = MappingProxyType({
        "HUGEINT": "DECIMAL(38, 0)", "NUMERIC": "DECIMAL(38, 0)", "VARCHAR": "STRING", "TEXT": "STRING",
        "TIMESTAMP": "TIMESTAMP_NTZ", "REAL": "FLOAT", "DOUBLE PRECISION": "DOUBLE",
    })  # fmt: skip
    narrow_decimals = False
    sums_widen = False
    keeps_steps = False
    groups_before_having = True
    ranks_all = True
    list_cast = "try_cast"
    anti_join = "LEFT ANTI JOIN {other} ON {match}"
    has_linear_ranges = False
    direct_places = 0
    forms = MappingProxyType(
        {
            "as_text": "CAST({0} AS STRING)",  # of the collation UTF8_BINARY, whatever that of its argument is
            "flag": "CAST({0} AS BIGINT)",
            "octets": "octet_length({0})",
            "is_nan": "isnan({0})",
            "below_nan": "NOT isnan({0})",
            "wide_sum": "CAST({0} AS DECIMAL(38, 0))",
            "half_even": "rint({0})",
            "half_away": "round({0})",
            "position": "instr({0}, {1})",
            "days_between": "CAST(datediff({0}, {1}) AS BIGINT)",
            "calendar_operand": "{0}",
            "less_microseconds": "timestampadd(MICROSECOND, -({1}), {0})",
            "same": "{0} <=> {1}",
            "read_hexadecimal": "CAST(conv({0}, 16, 10) AS BIGINT)",
        }
    )

    @classmethod
    def of(cls, case_collation: str | None) -> SparkDialect:
        return SPARK

    # --- literals and names -----------------------------------------------------------------------------

    def text_literal(self, value: str) -> str:
        is_plain = all(character.isalnum() or character in _PLAIN for character in value)
        if is_plain and "--" not in value and "/*" not in value:
            return f"'{value}'"
        return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"

    def identifier(self, name: str) -> str:
        return f"`{name.replace('`', '``')}`"

    def parameter(self, number: int, *, is_text: bool = False) -> str:
        # Spark writes an argument into the statement as a literal: a text travels in base64 (`spark_backend`).
        return f"CAST(unbase64(:p{number}) AS STRING)" if is_text else f":p{number}"

    def literal(self, value: Literal) -> str:
        kind = value.type.kind
        if value.value is None and kind not in (Kind.NULL, Kind.OPAQUE, Kind.INTERVAL):
            return self.cast("NULL", kind.value.upper())
        shown = super().literal(value)
        return shown.replace("TIMESTAMP ", "TIMESTAMP_NTZ ", 1) if kind is Kind.TIMESTAMP else shown

    def bytewise(self, sql: str) -> str:
        return sql  # texts are read as columns are, so

    def table(self, table: Table) -> str:
        return self.path(table.place)

    # --- a table's columns ------------------------------------------------------------------------------

    def stored(self, shown: str, type_: SqlType) -> str:
        return f"try_validate_utf8({self.as_text(shown)})" if type_.kind is Kind.TEXT else shown

    def column(self, shown: str, type_: SqlType) -> str:
        return shown

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

    # --- clamps and arithmetic ----------------------------------------------------------------------------

    def fits_beside(self, sql: str, type_: SqlType, other: SqlType) -> str:
        if type_.kind is Kind.BIGINT and other.kind is Kind.NUMERIC:
            # Beside decimals a BIGINT is taken for one of 20 digits; with 19 after the point the last would be rounded.
            return self.cast(sql, "DECIMAL(19, 0)") if other.scale is None or other.scale >= 19 else sql
        return sql

    def quotient(self, left: str, right: str, *, wide: bool, most: int) -> str:
        """Return an integer division; where it may pass 2^63, at which DIV wraps, in two steps that stay below.

        With c = K·b for |b| <= 10^19, a = c·q + r and |r| < |c|, all cut towards zero: a/b = K·q + r/b, in which
        q and r/b have the sign of a/b, |q| <= 2^125/K < 2^63 and |r/b| < K < 2^63. For a larger b, c = ±K·10^19 is
        above 2^125: q = 0 and r = a, |a/b| < 2^63.
        """
        if not wide:
            return f"({left} DIV {right})"
        if most < 2**63:
            return self.cast(f"({left} DIV {right})", "HUGEINT")
        if right.isdecimal():
            step = str(min(int(right), _DIVISOR) * _EIGHTEEN)
        else:
            inside = f"LEAST(GREATEST({right}, -{_DIVISOR}), {_DIVISOR})"  # of NULL an end: the second step is NULL
            step = f"({self.cast(inside, 'HUGEINT')} * {_EIGHTEEN})"
        first = self.cast(f"(({left}) DIV {step})", "HUGEINT")
        return f"({first} * {_EIGHTEEN} + ((({left}) % {step}) DIV {right}))"

    def summand(self, largest_sum: int) -> str:
        return "BIGINT" if largest_sum < 2**62 else "HUGEINT"

    def summed(self, sql: str, kind: str, largest_sum: int | None) -> str:
        is_wide = largest_sum is None or largest_sum >= 2**62
        return self.cast(sql, "HUGEINT") if is_wide and kind != "HUGEINT" else sql

    def shifted_right(self, sql: str, bits: int) -> str:
        return f"shiftright({sql}, {bits})"  # >> behind map() is read as two signs, which end types

    def splits(self, largest: int, largest_sum: int) -> bool:
        return largest_sum >= 2**62 and largest < 2**46

    def rounded(self, sql: str, kind: str, reach: int) -> str:
        whole = f"rint({sql})"
        if reach < 2**62:
            narrow = f"CAST({whole} AS BIGINT)"
            return narrow if kind == "BIGINT" else self.cast(narrow, kind)
        # In two parts, each exact: the decimal that a cast makes of a double is that of its shortest text.
        high = f"CAST({whole} / {2**63}e0 AS BIGINT)"
        low = f"CAST({whole} - CAST({high} AS DOUBLE) * {2**63}e0 AS BIGINT)"
        return self.cast(f"({self.cast(high, 'HUGEINT')} * {2**63} + {low})", kind)

    def stepped(self, function: str, sql: str) -> str:
        """Return floor, ceil or trunc of a double from its nearest whole one: Spark's own are BIGINTs, and raise."""
        nearest = f"rint({sql})"
        down = f"({nearest} - CASE WHEN {nearest} > {sql} THEN 1e0 ELSE 0e0 END)"
        up = f"({nearest} + CASE WHEN {nearest} < {sql} THEN 1e0 ELSE 0e0 END)"
        if function == "trunc":
            return f"CASE WHEN {sql} < 0e0 THEN {up} ELSE {down} END"
        return down if function == "floor" else up

    def truncated(self, sql: str) -> str:
        return f"(CASE WHEN {sql} < 0 THEN ceil({sql}) ELSE floor({sql}) END)"

    def extreme(self, function: str, values: Sequence[str]) -> str:
        return super().extreme(function, values) if len(values) > 1 else values[0]

    # --- text and calendar --------------------------------------------------------------------------------

    def letter_case(self, name: str, sql: str) -> str:
        # Those that have one character alone: 'ß' is two capitals, and 'İ' two small letters.
        parts = f"split(translate({sql}, '{_SEVERAL[name][0]}', '{_SEVERAL[name][1]}'), '')"
        each = f"transform({parts}, c -> CASE WHEN length({name}(c)) = 1 THEN {name}(c) ELSE c END)"
        return f"CASE WHEN octet_length({sql}) = length({sql}) THEN {name}({sql}) ELSE array_join({each}, '') END"

    def trimmed(self, name: str, sql: str) -> str:
        side = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[name]
        return f"trim({side} ' ' FROM {sql})"

    def like(self, sql: str, pattern: str, escape: str, word: str = "LIKE") -> str:
        """Return LIKE with one escape character, before special characters alone: before others it is an error."""
        parts, characters = [], iter(pattern)
        for character in characters:
            if escape and character == escape:
                parts.append((next(characters), False))
            else:
                parts.append((character, character in "%_"))
        if not any(one in "%_\\" for one, is_special in parts if not is_special):
            return f"({sql} {word} {self.text_literal(''.join(one for one, _ in parts))})"
        shown = "".join(one if is_special or one not in "%_!" else f"!{one}" for one, is_special in parts)
        return f"({sql} {word} {self.text_literal(shown)} ESCAPE '!')"

    def substring(self, sql: str, *numbers: int) -> str:
        start, *lengths = numbers  # from 0 as from 1, but for a length: what is before the first counts
        if start == 0:
            return super().substring(sql, 1, *(max(0, length - 1) for length in lengths))
        return super().substring(sql, start, *lengths)

    def text_of(self, sql: str, type_: SqlType) -> str:
        return self.spelled(sql, type_)

    def patterns(self, position: Position | None) -> Patterns:
        # Java's take a stack as deep as the text, and exponential time.
        raise Refusal(
            "regular expressions are not read on people's rows of Spark, nor numbers and dates in their texts",
            sqlstate="PV202", position=position,
            hint="people's rows read plain characters, . .* ^ $ and one choice (a|b); or join several x LIKE '…' by OR",
        )  # fmt: skip

    def since_1970(self, sql: str, type_: SqlType) -> str:
        if type_.kind is Kind.DATE:
            return f"CAST(unix_date({sql}) AS BIGINT)"
        return f"unix_micros(CAST({sql} AS TIMESTAMP_LTZ))"

    def date_trunc(self, unit: str, operand: str) -> str:
        return f"CAST(date_trunc('{unit}', {operand}) AS TIMESTAMP_NTZ)"

    def extract(self, field: str, operand: str) -> str:
        if field == "dow":
            return f"(extract(DAYOFWEEK FROM {operand}) - 1)"  # theirs is 1 on Sundays
        field = {"isodow": "DAYOFWEEK_ISO", "isoyear": "YEAROFWEEK"}.get(field, field)
        return f"extract({field} FROM {operand})"

    def shifted(self, moment: str, sign: str, by: Months, type_: SqlType) -> str:
        factor = -1 if sign == "-" else 1
        microseconds = factor * by.microseconds
        seconds, rest = divmod(abs(microseconds), 10**6)
        shown = f"CAST('{'-' if microseconds < 0 else ''}{seconds}.{rest:06}' AS DECIMAL(18, 6))"
        interval = f"make_interval(0, {factor * by.months}, 0, {factor * by.days}, 0, 0, {shown})"
        return f"({self.cast(moment, 'TIMESTAMP') if type_.kind is Kind.DATE else moment} + {interval})"

    # --- rows -----------------------------------------------------------------------------------------------

    def spelled(self, sql: str, type_: SqlType) -> str:
        shown = self.as_text(sql)
        if not type_.is_temporal:
            return shown
        # As in DuckDB: no sign before five digits of a year, and (BC) after the date of one before Christ.
        name = "DATE" if type_.kind is Kind.DATE else "TIMESTAMP_NTZ"
        day = f"right(CAST(CAST({sql} AS DATE) AS STRING), 6)"
        time = "''" if type_.kind is Kind.DATE else f"substring({shown}, instr({shown}, ' '))"
        before = f"format_string('%04d%s (BC)%s', 1 - year({sql}), {day}, {time})"
        return (
            f"CASE WHEN {sql} < {name} '0001-01-01' THEN {before} WHEN year({sql}) > 9999 THEN substring({shown}, 2) "
            f"ELSE {shown} END"
        )

    def without_end(self, sql: str, letter: str) -> str:
        return f"trim(TRAILING '{letter}' FROM {sql})"

    def listed(self, columns: Sequence[ListColumn]) -> str:
        """Each list travels as one text, a JSON array of texts (`spark_backend`): a list is no parameter here."""
        lists = ", ".join(
            f"from_json({self.parameter(one.parameter, is_text=True)}, 'ARRAY<STRING>', map('mode', 'FAILFAST'))"
            for one in columns
        )
        names = ", ".join(one.name for one in columns)
        shown = ", ".join(
            f"{self.list_cast}({one.name} AS {self.kind(one.cast)}) AS {one.name}"
            if one.cast
            else f"{self.cast(one.name, one.carried)} AS {one.name}"
            for one in columns
        )
        return f"SELECT {shown} FROM (SELECT inline(arrays_zip({lists})) AS ({names})) AS l"


SPARK = SparkDialect()
