"""Statements of every shape over the worlds, as hypothesis draws them: for laws that are about one statement at a time."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import duckdb
from hypothesis import strategies as st

from ...backends import DuckDBBackend
from ...engine.audit.statements import GROWING, SHAPES, Axes, statement
from ...plan.views import build_catalog
from ...relation.catalog import Catalog
from .random_databases import SEEDED
from .worlds import WORLDS

__all__ = ["growing_statements", "statements"]


@cache
def catalog_of(world: str) -> Catalog:
    """Return what statements over a world may name, under its own policy."""
    setting = WORLDS[world]
    with duckdb.connect() as connection:
        connection.execute(setting.schema + setting.views)
        with DuckDBBackend.over(connection).snapshot() as snapshot:
            return setting.named(build_catalog(setting.policy(Path.cwd()), snapshot.schema()))


@st.composite
def statements(draw: st.DrawFn, world: str = "joins", shapes: Axes = SHAPES) -> str:
    """A statement over a world; some of them are refused."""
    rng = draw(SEEDED)
    point = {axis: rng.choice(options) for axis, options in shapes.items()}
    return statement(catalog_of(world), point, rng).sql


def growing_statements(world: str = "joins") -> st.SearchStrategy[str]:
    """A statement that may multiply one person's rows."""
    return statements(world, GROWING)
