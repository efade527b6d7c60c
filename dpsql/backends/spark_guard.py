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

from ..errors import EngineFailure

__all__ = ["require_query"]

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
_COMMENT = re.compile(r"--|/\*")
_BEGINS = frozenset({"SELECT", "WITH", "VALUES"})
# What begins a command, or has one run by another program; none of them is a word of a query that is printed.
_COMMANDS = frozenset(
    "ADD ALTER ANALYZE BEGIN CACHE CALL CLEAR COMMENT COPY CREATE DECLARE DELETE DESC DESCRIBE DFS DIRECTORY DROP EXECUTE "
    "EXPLAIN EXPORT GRANT IMMEDIATE IMPORT INSERT JAR LIST LOAD LOCK MERGE MSCK OPTIMIZE OVERWRITE REDUCE REFRESH REPAIR "
    "RESET REVOKE SET SHOW STREAM TRANSFORM TRUNCATE UNCACHE UNLOCK UPDATE USE VACUUM".split()
)
_FORMATS = frozenset(
    "avro binaryfile csv delta hudi iceberg image jdbc json kafka libsvm memory orc parquet protobuf rate socket "
    "statestore text xml".split()
)
"""Names of a data source, before which ``FROM text.`path` `` would read a file; the setting `runSQLOnFiles` too is off."""


def require_query(sql: str, functions: frozenset[str]) -> None:
    """Raise EngineFailure unless this is one query that calls no function but these, in lower case."""
    before: tuple[str, str] = ("", "")
    depth, place, first = 0, 0, ""
    while place < len(sql):
        found = _TOKEN.match(sql, place)
        if found is None or _COMMENT.match(sql, place):
            raise EngineFailure("refused: not a single query in the words that dpsql prints")
        kind, token, place = str(found.lastgroup), found[0], found.end()
        if kind == "space":
            continue
