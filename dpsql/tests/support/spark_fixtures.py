"""Pytest fixtures of a real Spark, for a conftest to import.

A test that asks for one is marked `spark`. It is skipped where there is none, unless DPSQL_REQUIRE_SPARK says that
there has to be one, as `make test-spark` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .spark_server import SparkServer, why_no_spark

__all__ = ["REQUIRED", "require_spark", "spark", "spark_cluster"]

REQUIRED = "DPSQL_REQUIRE_SPARK"


def require_spark() -> None:
    """Skip the test where no Spark can be started, or fail it where one has to be there."""
    if reason := why_no_spark():
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(reason)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkServer]:
    """Give a running server, one for all tests of this process; a test makes a schema of its own in it."""
    require_spark()
    with SparkServer() as server:
        yield server


@pytest.fixture(scope="module")
def spark_cluster() -> Iterator[SparkServer]:
    """Give a server whose statements two worker processes run, for the tests of a module."""
    require_spark()
    with SparkServer(workers=2) as server:
        yield server
