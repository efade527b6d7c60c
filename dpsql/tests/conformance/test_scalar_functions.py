"""Each function above the release against a real Postgres, over generated values: its value, and NULL where it raises."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.engine import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy
from dpsql.relation.functions import NAMES, above, moments
from dpsql.relation.functions.above.patterns import read_pattern
from dpsql.relation.functions.above.signature import MOST_BYTES, Signature, signature
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.postgres_server import PostgresServer

from .scalar_expressions import EXPRESSIONS, UNTRIED

POLICY = """
database = "{database}"
ledger = "sqlite:{folder}/{name}.db"
[privacy]
epsilon = 1
[tables.person]
unit = "id"
[tables.sample]
public = true
"""
ROWS = (*above.ROWS, *moments.ZONES)
COLUMNS = (
    "id INTEGER, s TEXT, t TEXT, u TEXT, i INTEGER, j INTEGER, k SMALLINT, b BIGINT, n NUMERIC(12,3), x DOUBLE PRECISION,"
    " y DOUBLE PRECISION, f BOOLEAN, d DATE, e DATE, p TIMESTAMP, q TIMESTAMP"
)
TEXTS = ["", "a", "abc", " ab ", "ABC def", "a,b,,c", "o'Neil", "back\\slash", "éÉß", "日本語", "😀x", "xxabxx", "A1b2-c3",
         "%_", "12", "-0.5", "Hello World foo_bar", "a\nb", "\ttab", "ab" * 30]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 3, 7, 10, -5, 12, 255, 1000, -1000]
DOUBLES = [0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 3.14159, -2.75, 100.25, 1e10, -1e-3, 1e300, 0.1, 45.0, 90.0]
DATES = [date(1970, 1, 1), date(2000, 2, 29), date(2024, 2, 29), date(2023, 12, 31), date(1, 1, 1), date(9999, 12, 31),
         date(2024, 3, 31), date(1900, 2, 28), date(2020, 1, 30), date(2021, 1, 3)]  # fmt: skip
TIMES = [timedelta(), timedelta(hours=12), timedelta(hours=23, minutes=59, seconds=59, microseconds=999_999),
         timedelta(hours=1, minutes=2, seconds=3, microseconds=450_000), timedelta(hours=15, minutes=44, seconds=17)]  # fmt: skip
OF_WORD = {
    "text": ["s", "t", "u"], "integer": ["i", "j", "k"], "int4": ["i", "j"], "bigint": ["b", "i", "j"],
    "numeric": ["n", "i"], "double": ["x", "y", "n"], "boolean": ["f"], "date": ["d", "e"],
    "timestamp": ["p", "q", "d"], "clock": ["p", "q"], "any": ["s", "i", "f", "d", "n"],
    "value": ["i", "f", "d", "n", "p"],
    # Fields of `p - q` itself are of doubles on DuckDB: exact for the moments of tests/sql/test_ages.py, not of year 1.
    "interval": ["age(p, q)", "p - q + INTERVAL '0 days'", "INTERVAL '1 year 14 months 33 days 27 hours'"],
}  # fmt: skip


def _rows() -> list[tuple[Any, ...]]:
    """Return seeded rows: each value at least once in each column of its type, and NULL."""
    chance = random.Random(18)

    def pick(values: list[Any]) -> Any:
        return None if chance.random() < 0.06 else chance.choice(values)

    rows: list[tuple[Any, ...]] = []
    for number in range(90):
        first = TEXTS[number % len(TEXTS)]
        day = DATES[number % len(DATES)]
        part = first[:2] if chance.random() < 0.5 else pick(TEXTS)
        numeric = pick([Decimal(value).scaleb(-3) for value in (0, 1500, -2500, 125, 999999999, -1, 42000)])
        moments = [
            datetime.combine(pick(DATES) or day, datetime.min.time()) + chance.choice(TIMES) for _ in "pq"
        ]
        ends = [2**31 - 1, -(2**31)] if number > 70 else []
        wide = [2**63 - 1, -(2**63)] if number > 70 else []
        rows.append((
            number, first, part, pick(TEXTS), pick(NUMBERS + ends), pick(NUMBERS[:8]), pick(NUMBERS[:8]),
            pick(NUMBERS + wide), numeric, pick(DOUBLES), pick(DOUBLES), pick([True, False]), day, pick(DATES),
            moments[0], None if number == 3 else moments[1],
        ))  # fmt: skip
    return [*rows, (len(rows), *[None] * 15)]


@dataclass
class World:
    """The same rows in Postgres, read by a client; by dpsql; and by dpsql over a DuckDB."""

    postgres: psycopg.Connection[tuple[Any, ...]]
    sealed: Session
    in_database: Session
    major: int
    count: int

    def exact(self, expressions: list[str]) -> list[list[Any]]:
        """Return a column for each expression; None where Postgres raises."""
        return [self._column(expression) for expression in expressions]

    def _column(self, expression: str) -> list[Any]:
        try:
            return [row[0] for row in self.postgres.execute(f"SELECT {expression} FROM sample ORDER BY id")]  # type: ignore[arg-type]
        except (psycopg.errors.UndefinedFunction, psycopg.errors.SyntaxError):
            raise
        except (
            psycopg.DataError,
            psycopg.errors.ProgramLimitExceeded,
            psycopg.errors.InternalError,
            psycopg.errors.FeatureNotSupported,
        ):
            return [self._one(expression, number) for number in range(self.count)]

    def _one(self, expression: str, number: int) -> Any:
        try:
            found = self.postgres.execute(f"SELECT {expression} FROM sample WHERE id = {number}").fetchone()  # type: ignore[arg-type]
        except psycopg.Error:
            return None
        assert found is not None
        return found[0]


def _answers(session: Session, expressions: list[str]) -> list[list[Any]]:
    items = ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(expressions))
    rows = session.execute(f"SELECT {items} FROM sample ORDER BY id").rows
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.fixture(scope="module")
def scalar_world(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder, rows = tmp_path_factory.mktemp("scalars"), _rows()
    database = postgres.create_database()
    with ExitStack() as stack:
        admin = stack.enter_context(postgres.admin(database))
        admin.execute("SET timezone = 'UTC'")
        here = stack.enter_context(duckdb.connect())
        for run in (admin.execute, here.execute):
            run("CREATE TABLE person (id INTEGER PRIMARY KEY)")
            run(f"CREATE TABLE sample ({COLUMNS})")  # type: ignore[operator]
        places = ", ".join(["%s"] * 16)
        with admin.cursor() as cursor:
            cursor.executemany(f"INSERT INTO sample VALUES ({places})", rows)  # type: ignore[arg-type]
        insert(here, "sample", rows)
        url = postgres.create_reader(database)
        outside = parse_policy(_policy(url, folder, "sealed"), folder / "p.toml")
        open_ledger(outside, create=True).close()
        sealed = stack.enter_context(Session.open(outside))
        policy = parse_policy(_policy("duckdb:sample.duckdb", folder, "inside"), folder / "d.toml")
        dataset = Dataset(policy, DuckDBBackend.over(here), open_ledger(policy, create=True))
        inside = stack.enter_context(Session(dataset))
        yield World(admin, sealed, inside, postgres.major, len(rows))


def _policy(database: str, folder: Path, name: str) -> str:
    return POLICY.format(database=database, folder=folder, name=name)


def _called(name: str, one: Signature) -> Iterator[str]:
    """Yield calls of a function by its signature, over columns of every type that it takes."""
    words = [*one.words, *([one.words[-1]] * 2 if one.is_open else [])]
    choices = [OF_WORD[word] for word in words]
    longest = max(map(len, choices), default=1)
    for shift in range(longest if len(choices) < 2 else longest + 1):
        args = [columns[(shift + place) % len(columns)] for place, columns in enumerate(choices)]
        yield f"{name}({', '.join(args)})"


def _expressions(name: str) -> list[str]:
    row = next(row for row in ROWS if row.name == name)
    made: list[str] = list(EXPRESSIONS.get(name, ()))
    for one in map(signature, row.signatures):
        taken = {*one.words} <= OF_WORD.keys()
        if (
            row.names
            and name not in UNTRIED
            and taken
            and not any(map(one.is_constant, range(len(one.words))))
        ):
            made += itertools.chain.from_iterable(_called(written, one) for written in row.names)
    return list(dict.fromkeys(made))


def _alike(found: Any, exact: Any) -> bool:
    if isinstance(exact, datetime) and exact.tzinfo is not None:
        exact = exact.replace(tzinfo=None)
    if found is None and isinstance(exact, str) and len(exact.encode()) > MOST_BYTES:
        return True
    if found is None or exact is None:
        is_nothing = isinstance(exact, (float, Decimal)) and not math.isfinite(exact)
        return found is exact or (found is None and is_nothing)
    if isinstance(exact, (float, Decimal, int)) and not isinstance(exact, bool):
        return isinstance(found, (float, Decimal, int)) and math.isclose(
            float(found), float(exact), rel_tol=1e-13, abs_tol=1e-15
        )
    if isinstance(exact, timedelta):
        return isinstance(found, timedelta) and found == exact
    return bool(found == exact) and type(found) is type(exact)


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_a_function_means_what_it_means_in_postgres(scalar_world: World, name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    if row.since > scalar_world.major:
        pytest.skip(f"Postgres {row.since} has it first")
    expressions = _expressions(name)
    assert expressions, "a function of the table needs expressions to be tried on"
    exact = scalar_world.exact(expressions)
    assert any(value is not None for column in exact for value in column), expressions
    sealed = _answers(scalar_world.sealed, expressions)
    inside = _answers(scalar_world.in_database, expressions)
    rows, wrong = _rows(), []
    for expression, wanted, *answers in zip(expressions, exact, sealed, inside, strict=True):
        for place, answer in zip(("sealed", "in the database"), answers, strict=True):
            unlike = [
                (rows[i][1:], found, value)
                for i, (found, value) in enumerate(zip(answer, wanted, strict=True))
                if not _alike(found, value)
            ]
            wrong += (
                [f"{expression} {place}: {len(unlike)} of {len(answer)}, first {unlike[0]}"] if unlike else []
            )
    assert not wrong, "\n".join(wrong)


def test_every_name_is_called() -> None:
    """A function without an expression of its own is called by each of its names."""
    spoken = " ".join(expression for row in ROWS for expression in _expressions(row.name)).lower()
    assert {name for name in NAMES if f"{name}(" not in spoken} == set()


def _pattern(chance: random.Random, depth: int = 0) -> str:
    """Return a regular expression of the texts' characters."""
    parts = []
    for _ in range(chance.randint(1, 4)):
        atoms = ["a", "b", "x", ".", "[ab]", "[^a]", "\\d", "\\w", ",", "A", "é", "[a-cx]"]
        if depth < 2 and chance.random() < 0.3:
            branches = "|".join(_pattern(chance, depth + 1) for _ in range(chance.randint(1, 2)))
            atom = f"({branches})"
        else:
            atom = chance.choice(atoms)
        parts.append(atom + chance.choice(["", "", "", "*", "+", "?", "{2}", "{1,2}", "+?"]))
    return "".join(parts)


def test_patterns_by_chance(scalar_world: World) -> None:
    """What is read of regular expressions matches the same texts, at the same places."""
    chance = random.Random(9)
    patterns = list(dict.fromkeys(_pattern(chance) for _ in range(160)))
    spans = [one for one in patterns if (read := read_pattern(one)).is_row and not read.may_be_empty]
    assert len(spans) > 30
    expressions = [f"s ~ '{one}'" for one in patterns]
    expressions += [f"substring(s from '{one}')" for one in spans]
    expressions += [f"regexp_replace(s, '{one}', '<\\&>', 'g')" for one in spans]
    for start in range(0, len(expressions), 60):
        some = expressions[start : start + 60]
        exact, sealed = scalar_world.exact(some), _answers(scalar_world.sealed, some)
        for expression, wanted, found in zip(some, exact, sealed, strict=True):
            assert found == wanted, expression
