"""What all the tests share: a real Postgres, started when the first test asks for it, and examples without a clock."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from dpsql.tests.support.postgres_fixtures import postgres, start_postgres

__all__ = ["postgres", "start_postgres"]

# How fast this machine is just now says nothing of the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
