"""What all the tests share: real engines, started when the first test asks for one, and examples without a clock."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

from dpsql.tests.support.length import pytest_collection_modifyitems, pytest_configure
from dpsql.tests.support.postgres_fixtures import postgres, start_postgres
from dpsql.tests.support.spark_fixtures import spark, spark_cluster

__all__ = [
    "postgres",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "spark",
    "spark_cluster",
    "start_postgres",
]

# A run that is started in the background ignores SIGINT, and so would every program that it tries.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast this machine is just now says nothing of the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
