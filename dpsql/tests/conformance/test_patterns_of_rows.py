"""Regular expressions as people's rows print them: a random pattern finds the same on Postgres and on DuckDB."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import psycopg
import pytest

from dpsql.plan.dialects.dialect import Patterns, PostgresPatterns, Re2Patterns
from dpsql.relation.functions.above.moments import FormatError
from dpsql.relation.functions.above.patterns import Pattern, read_pattern, replacement
from dpsql.tests.support.inserted import insert

from ..support.postgres_server import PostgresServer

_ATOMS = (
    "a", "b", "c", "B", "1", " ", ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", "[a-c]", "[^a-c]", "[[:alpha:]_]",
    "[^[:space:]1]", r"\.", r"\\", "-", "ä", "[ä-ü]", "🙂", r"\n", "[]b]", "[a-]", r"[\w.]", "[[:upper:]]", "%", "/",
)  # fmt: skip
_COUNTS = ("", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}")
_TEXTS = (
    "", "a", "abc", "aabbcc", "B-1", "a b c", "äöü", "🙂a", "a\nb", "a.b/c", r"a\b", "1a2b3c", " \t\v\f\r\n", "aaaaabbbb", "ß",
    "Å٣é_x", "a-b]c", "x" * 300 + "a1", "\u00a0b", "AB CD", "%a%",
)  # fmt: skip
_NEW = (("", ""), (r"<\&>", ""), ("xy", ""), (r"\1.", "group"), (r"a\\b", ""))


def _row(chance: random.Random) -> str:
    parts = [chance.choice(_ATOMS) + chance.choice(_COUNTS) for _ in range(chance.randrange(1, 5))]
    if chance.random() < 0.4:
        place = chance.randrange(len(parts))
        parts[place] = f"({parts[place]})"
    return chance.choice(("", "", "^")) + "".join(parts) + chance.choice(("", "", "$"))


def _any(chance: random.Random, depth: int = 2) -> str:
    parts = []
    for _ in range(chance.randrange(1, 4)):
        inner = (
            chance.choice(_ATOMS) if depth == 0 or chance.random() < 0.6 else f"({_any(chance, depth - 1)})"
        )
        parts.append(inner + chance.choice(_COUNTS))
    return "|".join(["".join(parts), *([_any(chance, 0)] if chance.random() < 0.3 else [])])


def _asked(engine: Patterns, written: str, is_row: bool, no_case: bool) -> Iterator[str]:
    pattern: Pattern = read_pattern(written, no_case, engine.spelling)
    yield engine.matches("t", pattern.text)
    if not is_row:
        return
    yield engine.matched("t", pattern.text, pattern.groups, is_group=False)
    if pattern.groups:
        yield engine.matched("t", pattern.text, pattern.groups, is_group=True)
    for new, needs in _NEW:
        if not needs or pattern.groups:
            for is_each in (False, True):
                yield engine.replaced(
                    "t", pattern.text, (new, replacement(new, pattern.groups)), is_each=is_each
                )


@pytest.mark.parametrize("seed", range(2))
def test_both_engines_find_the_same(postgres: PostgresServer, seed: int) -> None:
    chance = random.Random(seed)
    written: list[tuple[str, bool, bool]] = []
    while len(written) < 120:
        is_row, no_case = chance.random() < 0.6, chance.random() < 0.3
        text = _row(chance) if is_row else _any(chance)
        try:
            read = read_pattern(text, no_case)
        except FormatError:
            continue
        written.append((text, is_row and read.is_row and not read.may_be_empty, no_case))
    with duckdb.connect() as ours, psycopg.connect(postgres.url("postgres")) as theirs:
        ours.execute("CREATE TABLE texts (n INTEGER, t VARCHAR)")
        insert(ours, "texts", list(enumerate(_TEXTS)))
        theirs.execute('CREATE TEMPORARY TABLE texts (n integer, t text COLLATE "C")')
        theirs.cursor().executemany("INSERT INTO texts VALUES (%s, %s)", list(enumerate(_TEXTS)))
        for text, is_row, no_case in written:
            pairs = zip(
                _asked(Re2Patterns(), text, is_row, no_case), _asked(PostgresPatterns(), text, is_row, no_case), strict=True,
            )  # fmt: skip
            asked = list(pairs)
            one = ours.execute(f"SELECT {', '.join(a for a, _ in asked)} FROM texts ORDER BY n").fetchall()
            sql = f"SELECT {', '.join(b for _, b in asked)} FROM texts ORDER BY n"
            two = psycopg.RawCursor(theirs).execute(sql.encode()).fetchall()
            for value, mine, other in zip(_TEXTS, one, two, strict=True):
                assert mine == other, (text, value, asked)
