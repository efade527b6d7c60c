"""One database on Spark as it comes, compiling and planning again while it runs, and on two workers: DuckDB's integers.

Each table has three files, so that there are several partitions of it, and several of every shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.tests.support.random_databases import policy_of
from dpsql.tests.support.spark_copy import SparkOwner
from dpsql.tests.support.spark_fixtures import require_spark
from dpsql.tests.support.spark_server import SparkServer

from ..laws.on_spark import counted_alike, of_rows, open_copies
from .places import EVERY_CELL, STATEMENTS

pytestmark = pytest.mark.spark

SAMPLE = STATEMENTS[1::4]
AS_IT_COMES = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.shuffle.partitions": "3",
}


@pytest.fixture(scope="module")
def spark_as_it_comes() -> Iterator[SparkServer]:
    require_spark()
    with SparkServer(settings=AS_IT_COMES) as server:
        yield server


def check(server: SparkServer, folder: Path, sqls: tuple[str, ...]) -> None:
    with (
        SparkOwner(server) as owner,
        open_copies(folder, owner, policy_of(folder), of_rows([EVERY_CELL]), files=3) as copies,
    ):
        assert len(counted_alike(copies, sqls)) > 0.8 * len(sqls)


def test_compiled_and_planned_again(spark_as_it_comes: SparkServer, tmp_path: Path) -> None:
    check(spark_as_it_comes, tmp_path, SAMPLE)


def test_two_workers(spark_cluster: SparkServer, tmp_path: Path) -> None:
    check(spark_cluster, tmp_path, SAMPLE)


@pytest.mark.long
def test_compiled_and_planned_again_at_length(spark_as_it_comes: SparkServer, tmp_path: Path) -> None:
    check(spark_as_it_comes, tmp_path, STATEMENTS)


@pytest.mark.long
def test_two_workers_at_length(spark_cluster: SparkServer, tmp_path: Path) -> None:
    check(spark_cluster, tmp_path, STATEMENTS)
