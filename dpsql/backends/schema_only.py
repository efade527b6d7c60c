"""A database of which the schema is known, and nothing else: what plans, cannot read a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from ..policy.live_schema import LiveSchema
from .backend import CHUNK_ROWS, Backend, Finding, Snapshot, implements

__all__ = ["SchemaOnly"]


@implements(Snapshot)
class _Schema:
    def __init__(self, live: LiveSchema) -> None:
        self._live = live

    def schema(self) -> LiveSchema:
        """Return the schema that is known."""
        return self._live

    def run(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        size: int = CHUNK_ROWS,
        *,
        is_direct: bool = False,
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Never run anything."""
        _unread()

    def catalog(self, sql: str) -> list[tuple[Any, ...]]:
        """Never run anything."""
        _unread()

    def columns(self, sql: str) -> NoReturn:
        """Never run anything."""
        _unread()

    def cancel(self) -> None:
        """Do nothing: nothing runs."""


@implements(Backend)
class SchemaOnly:
    """A backend for plans alone."""

    def __init__(self, live: LiveSchema) -> None:
        self._live = live

    @property
    def dialect(self) -> str:
        """The engine's, of which the schema is."""
        return self._live.dialect

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[Snapshot]:
        """Open nothing."""
        yield _Schema(self._live)

    def cancel(self, owner: object = None) -> None:
        """Do nothing: nothing runs."""

    def close_idle(self) -> bool:
        """Nothing is held."""
        return True

    def findings(self) -> list[Finding]:
        """Nothing is known of rights."""
        return []


def _unread() -> NoReturn:
    raise AssertionError("a plan reads no row")
