"""Collects the case files: every `*.case` below this folder, one test a case (`-k name` picks one)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest
from datasets import DataSets
from on_duckdb import CasesOnDuckDB
from postgres_sets import PostgresSets
from spark_sets import SparkSets

from dpsql.postprocess import SealedEngine
from dpsql.testing.case_file import Accepted, Case, Refused, read_cases
from dpsql.tests.support.length import pytest_configure as note_length
from dpsql.tests.support.postgres_fixtures import NEWEST_FIRST, start_postgres
from dpsql.tests.support.postgres_server import Installation, PostgresServer
from dpsql.tests.support.spark_copy import SparkOwner
from dpsql.tests.support.spark_fixtures import spark
from dpsql.tests.support.spark_server import SparkServer

__all__ = ["spark", "start_postgres"]

HERE = Path(__file__).parent

_TURNS = {"case_on_postgres": (0, 4), "case_in_turn_on_postgres": (2, 8), "case_in_turn_on_spark": (4, 16)}
"""By parameter, with which accepted case of a file it begins, and every how many it goes on. Of each file the first and
those are taken on that engine; the others are under `long`: cases of one file are of one rule, and every one is taken on
DuckDB."""


def case_files() -> list[Path]:
    """Return all case files, in order."""
    return sorted(HERE.glob("*/*.case"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-cases",
        action="store_true",
        help="refill what is no privacy claim in grammar_tests/*/*.case (see dpsql/testing/case_file.py)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--rewrite-cases") and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--rewrite-cases writes files: run it without -n")
    note_length(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", _cases("duckdb"), ids=str)
    if "accepted_case" in metafunc.fixturenames:
        accepted = [case for case in _cases("duckdb") if isinstance(case.expected, Accepted)]
        metafunc.parametrize("accepted_case", accepted, ids=str)
    if "case_of_some" in metafunc.fixturenames:
        accepted = [case for case in _cases("duckdb") if isinstance(case.expected, Accepted)]
        shown = [
            pytest.param(case, marks=(pytest.mark.long,) if crc32(case.name.encode()) % 16 else ())
            for case in accepted
        ]
        metafunc.parametrize("case_of_some", shown, ids=list(map(str, accepted)))
    for name, (first, every) in _TURNS.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, _in_turn(first, every), ids=str)
    if "refused_case" in metafunc.fixturenames:
        refused = [case for case in _cases("duckdb") if isinstance(case.expected, Refused)]
        metafunc.parametrize("refused_case", refused, ids=str)
    if "postgres_case" in metafunc.fixturenames:
        metafunc.parametrize("postgres_case", _cases("postgres"), ids=str)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what is held of a case together, policy by policy: what it came to on DuckDB is known then to who holds
    another engine to it, and a worker makes the databases of some policies, not of all."""
    places = [at for at, item in enumerate(items) if _case_of(item) is not None]
    ordered = sorted((items[at] for at in places), key=_by_case)
    for at, item in zip(places, ordered, strict=True):
        items[at] = item


def _case_of(item: pytest.Item) -> Case | None:
    of = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return next((value for value in of.values() if isinstance(value, Case)), None)


def _by_case(item: pytest.Item) -> tuple[str, str, str, str]:
    case = _case_of(item)
    assert case is not None
    return case.policy, str(case.path), case.name, case.engine


def _in_turn(first: int, every: int) -> list[object]:
    """Return the accepted cases of all engines, those whose turn it is not under `long`."""
    found: list[object] = []
    for _, cases in itertools.groupby(_cases("duckdb"), key=lambda case: case.path):
        accepted = [case for case in cases if isinstance(case.expected, Accepted)]
        for number, case in enumerate(accepted):
            marks = () if number % every == first or number == 0 else (pytest.mark.long,)
            found.append(pytest.param(case, marks=marks))
    return found


def _cases(engine: str) -> list[Case]:
    return [case for case in _every_case() if case.engine == engine]


@cache
def _every_case() -> list[Case]:
    return [case for path in case_files() for case in read_cases(path)]


@pytest.fixture(scope="session")
def every_case() -> list[Case]:
    """All cases of all files."""
    return _every_case()


@pytest.fixture(scope="session")
def sealed() -> Iterator[SealedEngine]:
    """One sealed engine for all cases: it keeps nothing between statements."""
    engine = SealedEngine()
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def data_sets(sealed: SealedEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataSets]:
    """The policies' databases."""
    sets = DataSets(HERE / "policies", tmp_path_factory.mktemp("ledgers"), sealed)
    yield sets
    sets.close()


@pytest.fixture
def data(data_sets: DataSets) -> Iterator[DataSets]:
    """The same for one test, whose sessions end with it."""
    yield data_sets
    data_sets.end_sessions()


@pytest.fixture(scope="session")
def on_duckdb(data_sets: DataSets) -> CasesOnDuckDB:
    """What accepted cases come to on DuckDB."""
    return CasesOnDuckDB(data_sets)


@pytest.fixture(scope="session", params=NEWEST_FIRST, ids=lambda found: f"pg{found.major}")
def on_postgres(
    request: pytest.FixtureRequest,
    data_sets: DataSets,
    start_postgres: Callable[[Installation], PostgresServer],
) -> Iterator[PostgresSets]:
    """The policies' databases in Postgres: in the newest major, and under `long` in others."""
    sets = PostgresSets(start_postgres(request.param), data_sets)
    yield sets
    sets.close()


@pytest.fixture(scope="session")
def on_spark(
    data_sets: DataSets, spark: SparkServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSets]:
    """The policies' databases in Spark."""
    with SparkOwner(spark) as owner:
        sets = SparkSets(owner, data_sets, tmp_path_factory.mktemp("parquet"))
        yield sets
        sets.close()
