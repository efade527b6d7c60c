"""What all the tests share: a real Postgres, started when the first test asks for it."""

from __future__ import annotations

from dpsql.testing.postgres_fixtures import postgres, start_postgres

__all__ = ["postgres", "start_postgres"]
