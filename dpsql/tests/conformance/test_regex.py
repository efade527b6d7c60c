"""A regular expression that is read matches what Postgres' own matches, as the LIKE patterns it becomes."""

from __future__ import annotations

import itertools

import psycopg
import pytest

from dpsql.sql.bind_forms import like_patterns
from dpsql.tests.support.postgres_server import PostgresServer

TEXTS = (
    "",
    "a",
    "b",
    "ab",
    "abc",
    "xabc",
    "abcx",
    "a.c",
    "a_c",
    "a%c",
    "a\\c",
    "A",
    "aXc",
    "a\nc",
    "\n",
    "a|b",
    "(a)",
    "^a",
    "$",
    "ac",
    "cab",
    "ä",
)
PATTERNS = (
    "",
    "a",
    "^a",
    "a$",
    "^a$",
    "^(a|b)$",
    "^a|b$",
    "a.c",
    "^a.*c$",
    "a\\.c",
    "a%c",
    "a_c",
    "^(?:ab|ca)",
    "x(a|b)",
    "(a|b)c",
    "^$",
    ".",
    "^.$",
    "a|",
    "^(|a)$",
    "ä",
    "\\^a",
    "\\$",
    "\\(a\\)",
    "a\\|b",
    "c.*b",
    "()",
    "a c",
)
REFUSED = {
    "a*": "*",
    "a+": "+",
    "(a*)*b": "*",
    "[ab]": "[",
    "\\d": "\\d",
    "a{2}": "{",
    "(a)(b)": "(",
    "((a))": "(",
    "a^b": "^",
    "(?i)a": "?",
    "a?": "?",
    "x|(a|b)": "|",
    "***=a": "*",
    "(a": "(",
    "a)": "(",
    "a\\": "\\",
}


def test_what_is_read_matches_what_postgres_matches(postgres: PostgresServer) -> None:
    with postgres.admin(postgres.create_database()) as connection:
        for pattern, text in itertools.product(PATTERNS, TEXTS):
            found = like_patterns(pattern)
            assert isinstance(found, list), pattern
            theirs, ours = one(connection, pattern, text, found)
            assert ours == theirs, (pattern, text, found)


def one(
    connection: psycopg.Connection[tuple[bool, bool]], pattern: str, text: str, found: list[str]
) -> tuple[bool, bool]:
    row = connection.execute("SELECT %s ~ %s, %s LIKE ANY (%s)", [text, pattern, text, found]).fetchone()
    assert row is not None
    return row


@pytest.mark.parametrize(("pattern", "part"), REFUSED.items())
def test_the_rest_is_refused_by_its_part(pattern: str, part: str) -> None:
    assert like_patterns(pattern) == part
