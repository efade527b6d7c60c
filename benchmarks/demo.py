"""The demo's database and its statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figure import Size
from dpsql import Session
from dpsql.cli.demo import MAIN_POLICY, make_folder
from dpsql.cli.demo_tour import QUESTIONS

__all__ = ["campus_queries", "make_campus", "open_campus"]


def make_campus(size: Size) -> Path:
    """Make the demo's folder, unless it is there, and return its policy's path."""
    folder = size.folder / "campus"
    if not folder.exists():
        make_folder(folder, fresh=False)
    return folder / MAIN_POLICY


@contextmanager
def open_campus(size: Size) -> Iterator[Session]:
    """Open a session on the demo."""
    with Session.open(make_campus(size)) as session:
        yield session


def campus_queries(session: Session) -> list[str]:
    """Return the queries that the demo's walk draws; each has been asked once, so nothing is cold."""
    queries = [question.sql for question in QUESTIONS]
    for text in queries:
        session.execute(text)
    return queries
