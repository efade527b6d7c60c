"""lower() and upper() map every character alike on all engines, but for letters that one Unicode has before another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.plan.dialects.dialect import DUCKDB, Dialect
from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.tests.support.postgres_server import PostgresServer

CHARACTERS = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000]
COLLATIONS = ("pg_c_utf8", "C.utf8", "C.UTF-8", "und-x-icu")


@pytest.fixture(scope="module")
def owner(postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with postgres.admin(postgres.create_database()) as connection:
        connection.execute("CREATE TABLE letters (code integer, c text)")
        with connection.cursor() as cursor, cursor.copy("COPY letters FROM STDIN") as copy:
            for character in CHARACTERS:
                copy.write_row((ord(character), character))
        yield connection


def collations(owner: psycopg.Connection[Any]) -> list[str]:
    rows = owner.execute(
        "SELECT collname FROM pg_collation WHERE collname = ANY(%s)", [list(COLLATIONS)]
    ).fetchall()
    return [name for (name,) in rows]


def printed(dialect: Dialect, name: str) -> str:
    return f"SELECT {dialect.letter_case(name, 'c')} FROM letters ORDER BY code"


@pytest.fixture(scope="module")
def ours() -> dict[str, list[str]]:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE letters AS SELECT unicode(c) AS code, c FROM (SELECT unnest($1) AS c)", [CHARACTERS]
        )
        return {
            name: [c for (c,) in connection.execute(printed(DUCKDB, name)).fetchall()]
            for name in ("lower", "upper")
        }


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_every_character_is_mapped_alike(
    owner: psycopg.Connection[Any], ours: dict[str, list[str]], name: str
) -> None:
    """A letter that has got its other case later is left as it is by the older Unicode; ICU maps one to several."""
    assert collations(owner)
    for collation in collations(owner):
        theirs = [c for (c,) in owner.execute(printed(PostgresDialect(collation), name).encode()).fetchall()]
        assert len(theirs) == len(CHARACTERS)
        for character, here, there in zip(CHARACTERS, ours[name], theirs, strict=True):
            if here != there:
                is_newer = character in (here, there) and ord(character) > 0x180
                assert is_newer or (collation == "und-x-icu" and len(there) > 1), (
                    collation,
                    character,
                    here,
                    there,
                )


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_letters_of_old_are_mapped_alike(
    owner: psycopg.Connection[Any], ours: dict[str, list[str]], name: str
) -> None:
    """Latin, Greek and Cyrillic as Europe writes them, in words: the place in a word changes nothing either."""
    words = ["Straße", "ΣΟΦΟΣ", "σοφος", "İstanbul ıI", "ÉÈé", "Ёж", "ﬁn", "Ǆ", "e\u0301É", "\U00010400"]
    for collation in set(collations(owner)) - {"und-x-icu"}:
        dialect = PostgresDialect(collation)
        with duckdb.connect() as connection:
            for word in words:
                here = connection.execute(f"SELECT {DUCKDB.letter_case(name, '$1')}", [word]).fetchone()
                there = owner.execute(
                    f"SELECT {dialect.letter_case(name, 'CAST(%s AS text)')}".encode(), [word]
                ).fetchone()
                assert here == there, (collation, word)
