"""The tests of SQLAlchemy's suite."""

from sqlalchemy.testing.suite import *  # noqa: F403
