"""The laws on Spark, on a sample: no content of a row raises (L2), neighbours move no more than is claimed (L1, L9), and
nothing else of a person shows (L6). Beside each of them, both engines count the same integers.

A query of Spark's takes as long to begin as a hundred of DuckDB's: the databases of a law stand side by side, and each
statement is asked of all of them in one query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache

import duckdb
import pytest

from dpsql import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import EngineFailure
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.drawn_statements import statements
from dpsql.tests.support.random_databases import (
    SCHEMA,
    Database,
    databases,
    policy_of,
    replaced,
    without,
)
from dpsql.tests.support.spark_copy import SparkOwner, copy_tables
from dpsql.tests.support.spark_server import SparkServer
from dpsql.tests.support.spark_twin import CopiesBackend

from ..conformance.places import EVERY_CELL, STATEMENTS
from .conftest import Desk
from .examples import HEAVY, NOBODY, ORDINARY, visit
from .measured import compared
from .on_spark import Copies, counted_alike, drawn, of_rows, open_copies, put
from .test_neighbours import TIGHT, TIGHT_AND_WIDE
from .test_non_interference import LOOKED_AT, seen
from .test_total import ONCE_FAILED

pytestmark = pytest.mark.spark

_TEXTS = (
    "\0", "a\0b", "x" * 5000, "\U0010ffff", "\ufeff", "\r\n", "\\", "\\'", "${env:HOME}", "e\u0301", "\u200d", "İ", "ŉ",
)  # fmt: skip
HOSTILE = replace(
    EVERY_CELL,
    visits=(
        *EVERY_CELL.visits,
        *(visit(1 + i % 4, tag=text, city="a", n="1") for i, text in enumerate(_TEXTS)),
    ),
)
"""Every wild cell of every column, people with many rows, and texts that some engine stumbles over."""


@cache
def full() -> Database:
    """The largest of some random databases."""
    return max(drawn(databases(), 60), key=lambda one: len(one.persons) + len(one.visits))


@pytest.fixture(scope="module")
def owner(spark: SparkServer) -> Iterator[SparkOwner]:
    with SparkOwner(spark) as made:
        yield made


@pytest.fixture(scope="module")
def hostile(owner: SparkOwner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    folder = tmp_path_factory.mktemp("hostile")
    with open_copies(folder, owner, policy_of(folder), of_rows([HOSTILE])) as made:
        yield made


@pytest.fixture(scope="module")
def adding(owner: SparkOwner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    """Two databases, each followed by what it is without one person: 1 has much of everything in the first."""
    folder = tmp_path_factory.mktemp("adding")
    sides = [
        HOSTILE,
        *(without(HOSTILE, unit) for unit in (1, 2)),
        full(),
        *(without(full(), unit) for unit in (1, 2)),
    ]
    with open_copies(folder, owner, policy_of(folder), of_rows(sides)) as made:
        yield made


@pytest.fixture(scope="module")
def replacing(owner: SparkOwner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    folder = tmp_path_factory.mktemp("replacing")
    sides = [HEAVY, replaced(HEAVY, 1, NOBODY), replaced(HEAVY, 1, full()), replaced(HEAVY, 2, HEAVY)]
    with open_copies(folder, owner, policy_of(folder, replace_one=True), of_rows(sides)) as made:
        yield made


# --- totality, and the same integers -----------------------------------------------------------------------


ASKED = tuple(sql.removeprefix("EXPLAIN ") for sql in (*ONCE_FAILED, *STATEMENTS))


@pytest.mark.parametrize("part", range(4))
def test_no_row_makes_a_statement_fail(hostile: Copies, part: int) -> None:
    assert len(counted_alike(hostile, ASKED[part::4])) > 8


def test_no_row_makes_a_random_statement_fail(hostile: Copies) -> None:
    assert len(counted_alike(hostile, drawn(statements("one table"), 90))) > 10


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_no_row_makes_a_random_statement_fail_at_length(hostile: Copies, part: int) -> None:
    assert len(counted_alike(hostile, drawn(statements("one table"), 2000)[part::20])) > 10


def test_a_failing_statement_would_be_seen(hostile: Copies) -> None:
    """The tests' own eye: an engine that fails on a row does turn them red."""
    with pytest.raises(EngineFailure):
        hostile.backend.rows(hostile.backend.schemas[0], "SELECT CAST(`tag` AS INT) FROM `main`.`visit`")


# --- neighbours ----------------------------------------------------------------------------------------------


def check_neighbours(copies: Copies, sqls: Sequence[str], bases: Sequence[int]) -> int:
    """Hold the claim of each statement between each of `bases` and what follows it; return how many there are."""
    found = counted_alike(copies, sqls)
    for sql, (plan, sides) in found.items():
        for base, end in zip(bases, [*bases[1:], len(sides)], strict=True):
            for side in sides[base + 1 : end]:
                compared(plan, sides[base], side, sql)
    return len(found)


def test_one_person_less(adding: Copies) -> None:
    assert check_neighbours(adding, [*TIGHT, *TIGHT_AND_WIDE][::2], [0, 3]) > 6


def test_one_person_less_in_random_statements(adding: Copies) -> None:
    assert check_neighbours(adding, drawn(statements("one table"), 50), [0, 3]) > 8


def test_one_person_replaced(replacing: Copies) -> None:
    assert check_neighbours(replacing, [*TIGHT[:7], *drawn(statements("one table"), 20)], [0]) > 8


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_one_person_less_at_length(adding: Copies, part: int) -> None:
    assert check_neighbours(adding, drawn(statements("one table"), 1000)[part::20], [0, 3]) > 8


# --- non-interference ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def desks(owner: SparkOwner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Desk]]:
    """Sessions over databases that have nobody, few and many people, and one person less."""
    with ExitStack() as stack:
        made = []
        for database in (NOBODY, ORDINARY, HOSTILE, without(HOSTILE, 1)):
            folder = tmp_path_factory.mktemp("desk")
            policy = policy_of(folder, epsilon="0.001")
            connection = stack.enter_context(duckdb.connect())
            connection.execute(SCHEMA)
            put(connection, database)
            backend = CopiesBackend(owner.url, connection, [copy_tables(connection, owner, folder)])
            stack.callback(backend.close_idle)
            store = open_ledger(policy, create=True)
            session = stack.enter_context(
                Session(Dataset(policy, backend, store), "tester", _noise=ZeroNoise())
            )
            session.execute("SET dpsql.reuse = off")
            made.append(Desk(session, connection, policy))
        yield made


@pytest.mark.parametrize("sql", LOOKED_AT)
def test_any_database_looks_like_the_empty_one(desks: list[Desk], sql: str) -> None:
    looks = [seen(desk, sql) for desk in desks]
    assert looks == [looks[0]] * len(looks)
