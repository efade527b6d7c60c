"""What may be sent to Spark: one query, and none that reaches beyond the tables.

Spark has no role that can only read and no transaction that only reads: what a statement can do is decided by the
server's own rights. So the text is looked at once more before it is sent, whoever printed it (soundness.md 4.4).

House rules:

1. Deny by default: a function that is not listed is refused, and so is a word that begins a command, wherever it
   stands, a comment, a second statement, and a character that no printed statement has.
2. The text is read as Spark's lexer reads it under the pinned settings. What these settings would change, a backslash
   in a quoted text, `${`, a name in double quotes, is refused too: the dialect prints none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import EngineFailure

__all__ = ["calls", "require_query"]

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<text>[xX]?'[^'\\]*')
      | (?P<name>`(?:[^`]|``)+`)
      | (?P<parameter>:p[0-9]+)
      | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[lLdD]?|[0-9]+BD)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign><=>|->|<>|<=|>=|\|\||!=|[-+*/%(),.=<>\[\]&|^])
    """,
    re.VERBOSE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_Token = tuple[str, str]
"""Its kind and its text."""

_COMMENTS = ("--", "/*")
_STARTS = frozenset({"SELECT", "WITH", "VALUES", "("})
# What makes a command of a query, or has another program read its rows; the dialect prints none of them.
_COMMANDS = _words("""
    ADD ALTER ANALYZE BEGIN CACHE CALL CLEAR COMMENT COPY CREATE DECLARE DELETE DESCRIBE DFS DIRECTORY DROP
    EXECUTE EXPLAIN EXPORT GRANT IDENTIFIER IMMEDIATE IMPORT INSERT JAR LIST LOAD LOCK MERGE MSCK OPTIMIZE
    OVERWRITE REDUCE REFRESH REPAIR RESET REVOKE SET SHOW STREAM TRUNCATE UNCACHE UNLOCK UPDATE USE USING VACUUM
    """)  # fmt: skip
_FORMATS = _words("""
    avro binaryfile csv delta hudi iceberg image jdbc json kafka libsvm orc parquet protobuf rate socket
    statestore text xml
    """)  # fmt: skip
"""Data sources: ``FROM text.`/etc/passwd` `` reads that file, where the setting `runSQLOnFiles` is on."""

# Of their arguments alone, whatever these are. Some words of the grammar stand before a bracket too.
_FUNCTIONS = _words("""
    abs add_months aggregate array array_join arrays_zip ascii atan avg bit_and bit_length bit_or bit_xor
    bool_and bool_or bround btrim cast ceil ceiling char char_length chr coalesce concat concat_ws conv cos
    count count_if cume_dist date_add date_from_unix_date date_part date_sub date_trunc dateadd datediff day
    dayofmonth dayofweek dayofyear decimal decode dense_rank double element_at encode exists exp explode
    extract filter first_value floor forall format_string from_json greatest grouping grouping_id hash hex
    hour if ifnull inline instr is_valid_utf8 isnan isnotnull isnull lag last_day last_value lead least left
    length ln locate log log10 log2 lower lpad ltrim make_date make_dt_interval make_interval make_timestamp
    make_timestamp_ntz make_ym_interval map max md5 min minute mod month months_between named_struct
    nth_value ntile nullif nvl octet_length percent_rank pmod posexplode position pow power quarter range
    rank repeat replace reverse right rint round row_number rpad rtrim second sequence sha2 shiftleft
    shiftright sign sin size split sqrt struct substr substring sum tanh timestamp_micros timestampadd
    timestampdiff transform translate trim trunc try_add try_cast try_divide try_element_at try_multiply
    try_subtract try_sum try_validate_utf8 unbase64 unhex unix_date unix_micros unix_millis unix_seconds
    upper validate_utf8 weekday weekofyear width_bucket xxhash64 year zip_with
    all and any as between by case cross cube distinct div else end except from full group having in inner
    intersect is join not on or order over partition rollup select sets some then union values when where
    window with
    """)  # fmt: skip
_READS = frozenset({"FROM", "JOIN"})
_REFUSED = "refused: not a single query in the words that dpsql prints"


def require_query(sql: str) -> None:
    """Raise EngineFailure unless this is one query over tables, that calls no function but these."""
    tokens = list(_tokens(sql))
    if not tokens or tokens[0][1].upper() not in _STARTS:
        raise EngineFailure(_REFUSED)
    padded = [("", ""), ("", ""), *tokens]
    for far, near, token in zip(padded, padded[1:], tokens, strict=False):
        _require_token(far, near, token)
    for before, first, dot, second in zip(padded, padded[1:], padded[2:], padded[3:], strict=False):
        if dot[1] == "." and _bare(first) in _FORMATS and (before[1].upper() in _READS or "/" in second[1]):
            raise EngineFailure("refused: a file by its path")


def _tokens(sql: str) -> Iterator[_Token]:
    place = 0
    while place < len(sql):
        found = _TOKEN.match(sql, place)
        if found is None or sql.startswith(_COMMENTS, place):
            raise EngineFailure(_REFUSED)
        place = found.end()
        if found.lastgroup != "space":
            yield str(found.lastgroup), found[0]


def calls(name: str) -> bool:
    """Say whether a query may call a function, or has a word of the grammar there."""
    return name.lower() in _FUNCTIONS


def _require_token(far: _Token, near: _Token, token: _Token) -> None:
    """Look at a token behind the two before it."""
    kind, text = token[0], token[1].upper()
    if kind == "word" and (text in _COMMANDS or (text == "TRANSFORM" and near[1].upper() == "SELECT")):
        raise EngineFailure(_REFUSED)
    if kind == "text" and near[1] in ("r", "R"):
        raise EngineFailure(_REFUSED)  # in which a backslash means itself
    if text == "(" and far[1].upper() != "AS" and _is_call(near):
        raise EngineFailure("refused: a function that dpsql does not print")


def _is_call(near: _Token) -> bool:
    """Say whether a bracket behind this begins a call that is not of the list."""
    return near[0] == "name" or (near[0] == "word" and not calls(near[1]))


def _bare(token: _Token) -> str:
    return token[1].strip("`").lower() if token[0] in ("name", "word") else ""
