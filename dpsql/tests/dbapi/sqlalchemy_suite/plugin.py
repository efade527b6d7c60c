"""Runs SQLAlchemy's suite over dpsql in a pytest of its own: its plugin takes over the whole run."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from sqlalchemy.dialects import registry

from .left_out import LEFT_OUT

for _name in ("dpsql", "dpsql.dpsql"):
    registry.register(_name, "dpsql.tests.dbapi.sqlalchemy_suite.owner", "OwnerDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin import pytestplugin  # noqa: E402 (its assertions are rewritten)

pytest_plugins = [pytestplugin.__name__]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is left out. Raises UsageError for a pattern that means no test."""
    unused = {pattern for patterns in LEFT_OUT.values() for pattern in patterns}
    for item in items:
        assert isinstance(item, pytest.Function)
        name = f"{item.cls.__name__.removesuffix('_dpsql+dpsql')}.{item.name}"
        for reason, patterns in LEFT_OUT.items():
            for pattern in patterns:
                if fnmatchcase(name, pattern):
                    unused.discard(pattern)
                    item.add_marker(pytest.mark.skip(reason=reason))
    if unused:
        raise pytest.UsageError(f"left out, but not in the suite: {', '.join(sorted(unused))}")
