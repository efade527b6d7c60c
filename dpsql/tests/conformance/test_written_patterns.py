"""Patterns as analysts write them: LIKE, ILIKE, SIMILAR TO, ~ and their functions, random ones of what is admitted, over
hostile texts. What is printed for each engine has one value, and no engine raises."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import duckdb
import psycopg
import pytest

from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Expr
from dpsql.relation.intervals import Environment
from dpsql.relation.types import TEXT
from dpsql.tests.support.inserted import insert

from ..sql.campus import expression
from ..support.postgres_server import PostgresServer
from .test_expressions import case_collation

_LETTERS = (
    "a",
    "b",
    "c",
    "A",
    "B",
    "1",
    "2",
    " ",
    ".",
    "-",
    "ä",
    "ß",
    "🙂",
    "\n",
    "/",
    "%",
    "_",
    "\\",
    "é",
    "İ",
    "'",
)
_LIKE = (*_LETTERS, "%", "%", "_", "_", "\\%", "\\_", "\\\\", "!%", "!!", "aa", "ab")
_SIMILAR = (
    "a",
    "b",
    "1",
    "%",
    "_",
    "[ab]",
    "[^a-c]",
    "(a|b)",
    "(ab|c%)",
    "a*",
    "b+",
    "c?",
    "(ab)*",
    ".",
    "ä",
    "\\%",
    "-",
)
_ATOMS = (
    "a", "b", "c", "B", "1", " ", ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", "[a-c]", "[^a-c]", "[[:alpha:]_]",
    "[^[:space:]1]", r"\.", r"\\", "-", "ä", "[ä-ü]", "🙂", r"\n", "[]b]", "[a-]", r"[\w.]", "[[:upper:]]", "%", "/",
    ".*", "(?:ab)", "(a|bc)", "(ab)",
)  # fmt: skip
_COUNTS = ("", "", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}")
_NEW = ("", "x", "<\\&>", "\\1.", "a\\\\b", "$1")
_REGEX = (
    "name ~ {0}", "name ~* {0}", "name !~ {0}", "name !~* {0}", "regexp_like(name, {0})", "regexp_like(name, {0}, 'i')",
    "substring(name FROM {0})", "regexp_substr(name, {0})", "regexp_replace(name, {0}, {1})",
    "regexp_replace(name, {0}, {1}, 'g')", "regexp_replace(name, {0}, {1}, 'gi')",
)  # fmt: skip
_PATTERNS = (
    "name LIKE {0}", "name NOT LIKE {0}", "name ILIKE {0}", "name NOT ILIKE {0}", "name LIKE {0} ESCAPE '!'",
    "name SIMILAR TO {0}", "name NOT SIMILAR TO {0}", *_REGEX,
)  # fmt: skip
_TEXTS = (
    "", "a", "ab", "abc", "aabbcc", "ABC", "B-1", "a b c", "äöü", "ÄÖÜ", "🙂a", "a\nb", "\n", "a.b/c", r"a\b", "\\", "%", "_",
    "1a2b3c", " \t\v\f\r\n", "aaaaabbbb", "ß", "SS", "İ", "ı", "i\u0307", "Å٣é_x", "e\u0301", "a-b]c", "\u00a0b", "AB CD",
    "%a%", "a!%b", "$1", "'", "\U0010ffff", "\ufeffa", "x" * 300 + "a1", "ab" * 700, "a" * 999 + "b", "a" * 1000 + "b",
)  # fmt: skip
_AT_ONCE = 100


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _pattern(chance: random.Random, form: str) -> str:
    if "LIKE {0}" in form:
        return "".join(chance.choices(_LIKE, k=chance.randrange(0, 7)))
    if "SIMILAR" in form:
        return "".join(chance.choices(_SIMILAR, k=chance.randrange(0, 6)))
    parts = [chance.choice(_ATOMS) + chance.choice(_COUNTS) for _ in range(chance.randrange(1, 5))]
    if chance.random() < 0.3:
        place = chance.randrange(len(parts))
        parts[place] = f"({parts[place]})"
    if chance.random() < 0.2:
        parts.insert(chance.randrange(len(parts)), "|")
    return chance.choice(("", "", "^")) + "".join(parts) + chance.choice(("", "", "$"))


def _written(chance: random.Random, count: int) -> list[tuple[str, Expr]]:
    """Return so many expressions that are admitted, each with its text."""
    found: list[tuple[str, Expr]] = []
    while len(found) < count:
        form = chance.choice(_PATTERNS)
        text = form.format(_quoted(_pattern(chance, form)), _quoted(chance.choice(_NEW)))
        try:
            one = text, expression(text)
            for dialect in (DUCKDB, PostgresDialect("C")):
                _printed([one], dialect)
        except Refusal:
            continue
        found.append(one)
    return found


def _printed(written: Sequence[tuple[str, Expr]], dialect: Dialect) -> str:
    printer = PrivatePrinter(Environment([Column("name", TEXT)]), ["t"], dialect)
    shown = (
        f"({printer.value(expr)}){'' if expr.type == TEXT else '::int'} AS c{at}"
        for at, (_, expr) in enumerate(written)
    )
    return f"SELECT {', '.join(shown)} FROM texts ORDER BY n"


@pytest.mark.parametrize(
    ("seed", "count"),
    [(0, 300), pytest.param(1, 10_000, marks=pytest.mark.long)],
)
def test_both_engines_find_the_same(postgres: PostgresServer, seed: int, count: int) -> None:
    written = _written(random.Random(seed), count)
    forms = Counter(
        next(form for form in _PATTERNS if text.startswith(form.split("{")[0])) for text, _ in written
    )
    assert len(forms) > 10, forms
    rows = list(enumerate((*_TEXTS, None)))
    with duckdb.connect() as ours, psycopg.connect(postgres.url("postgres")) as theirs:
        ours.execute("CREATE TABLE texts (n INTEGER, t VARCHAR)")
        insert(ours, "texts", rows)
        theirs.execute("CREATE TEMPORARY TABLE texts (n integer, t text)")
        theirs.cursor().executemany("INSERT INTO texts VALUES (%s, %s)", rows)
        dialect = PostgresDialect(case_collation(theirs))
        cursor = psycopg.RawCursor(theirs)
        told = 0
        for start in range(0, len(written), _AT_ONCE):
            some = written[start : start + _AT_ONCE]
            one = ours.execute(_printed(some, DUCKDB)).fetchall()
            two = cursor.execute(_printed(some, dialect).encode()).fetchall()
            for (_, value), mine, other in zip(rows, one, two, strict=True):
                for (text, _), here, there in zip(some, mine, other, strict=True):
                    assert here == there, (text, value)
                    told += here not in (None, 0, value)
        assert told > count  # patterns that find nothing would be alike
