"""A connection of PEP 249: one session, shared by its cursors and by threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from fractions import Fraction
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any

import duckdb

from ..backends import Backend, DuckDBBackend
from ..engine import Explanation, Receipt, Session
from ..engine.batch import PricedBatch
from ..engine.shown import table_html
from ..mechanisms import parse_epsilon
from ..policy import Policy, load_policy
from ..relation.catalog import Catalog
from ..value_text import terminal_text
from . import errors
from .cursor import Cursor
from .placeholders import Parameters, collected, read_statement
from .schema import listed_tables
from .shared_session import Accuracy, Epsilon, Level, SharedSession, setting_text

if TYPE_CHECKING:
    import psycopg

__all__ = ["Connection", "connect"]


def connect(
    policy: str | os.PathLike[str] | Policy,
    analyst: str = "local",
    connection: duckdb.DuckDBPyConnection | psycopg.Connection[Any] | None = None,
    *,
    epsilon: Epsilon = None,
    intervals: Level = None,
    accuracy: Accuracy = None,
) -> Connection:
    """Open a connection to the dataset that a policy describes.

    Args:
        policy: the policy file's path, as text too, in which ~ is the home folder; or a policy that was read from one.
        analyst: a name for the ledger and for the owner's personal caps; a label, not an identity.
        connection: a connection of DuckDB or of psycopg, of the caller's, that holds the data, in place of the
            policy's `database`. It is read and never closed; what it has not committed is not seen.
        epsilon: what each statement may spend; without it, the policy's default.
        intervals: the level of error bars beside each number, such as 0.95.
        accuracy: by how much numbers may be off, such as 50: each statement spends the least epsilon for it.

    A connection runs in the caller's own process, with the caller's rights to the data: a convenience for the
    trusted, not a security boundary.

    Raises:
        OperationalError: the policy or the ledger is wrong, or the database does not answer.
        ProgrammingError, DataError: a bad `epsilon`, `intervals` or `accuracy`.
        InterfaceError: `connection` is no connection of DuckDB or psycopg.
    """
    shared = SharedSession(errors.guarded(lambda: _open(policy, analyst, connection)))
    try:
        if epsilon is not None:
            shared.set("dpsql.epsilon", setting_text(epsilon))
        if intervals is not None:
            shared.set("dpsql.intervals", setting_text(intervals))
        if accuracy is not None:
            shared.set("dpsql.accuracy", setting_text(accuracy))
    except errors.Error:
        shared.close()
        raise
    return Connection(shared)


def _total(epsilon: Epsilon) -> Fraction | None:
    return None if epsilon is None else errors.guarded(lambda: parse_epsilon(setting_text(epsilon)))


def _open(policy: str | os.PathLike[str] | Policy, analyst: str, connection: object) -> Session:
    known = policy if isinstance(policy, Policy) else load_policy(policy)
    backend: Backend | None = None
    if isinstance(connection, duckdb.DuckDBPyConnection):
        backend = DuckDBBackend.over(connection)
    elif "psycopg" in sys.modules and isinstance(connection, sys.modules["psycopg"].Connection):
        from ..backends import PostgresBackend

        backend = PostgresBackend.over(connection, known.read_from)
    elif connection is not None:
        raise errors.InterfaceError("the connection handed in is not one of DuckDB or psycopg")
    return Session.open(known, analyst=analyst, backend=backend)


class Connection:
    """One analyst's connection to one dataset, made by `connect`. Threads may share it.

    Its statements run one at a time, whichever cursor or thread they come from; `cancel` stops the running
    one. Nothing is written, so there are no transactions: every statement sees the data as they are when it
    runs, and what it has charged is on the disk before it runs and is not given back.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: SharedSession) -> None:
        """Use `connect`."""
        self._session = session
        self._settings = session.settings

    def cursor(
        self, *, epsilon: Epsilon = None, intervals: Level = None, accuracy: Accuracy = None
    ) -> Cursor:
        """Return a new cursor; `intervals`: its own level of error bars, such as 0.95; `accuracy`: its own, such as 50.

        Raises InterfaceError on a closed connection, DataError for a bad level, ProgrammingError for no accuracy.
        """
        self._session.require_open()
        cursor = Cursor(self, self._session, None)
        if epsilon is not None:
            cursor.with_epsilon(epsilon)
        if intervals is not None:
            cursor.with_intervals(intervals)
        return cursor if accuracy is None else cursor.with_accuracy(accuracy)

    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        """Answer one statement on a new cursor and return that. Raises as `Cursor.execute`."""
        return self.cursor().execute(operation, parameters)

    def release(self, statements: str | Sequence[str], *, epsilon: Epsilon = None) -> list[Cursor]:
        """Answer several queries, planned together and charged once; return a cursor with the result of each.

        As `dpsql release`: what they share is measured once, numbers of the same rows agree. `statements`: texts, or
        one text with semicolons; SET and RESET hold for the queries after them. `epsilon`: what all together may spend,
        split for the least total error; without it each is as exact as asked alone. Asking again is free.

        Raises: as `Cursor.execute`; if one is refused, or the price does not fit, nothing was charged.
        """
        outcomes = self._session.release(statements, _total(epsilon))
        return [Cursor.of(self, self._session, outcome) for outcome in outcomes]

    def price(self, statements: str | Sequence[str], *, epsilon: Epsilon = None) -> PricedBatch:
        """Return what `release` would give each query, and what it would charge; costs nothing. Raises as it does."""
        return self._session.price(statements, _total(epsilon))

    def explain(self, operation: str, parameters: Parameters = None) -> Explanation:
        """Return what a query would release, how noisy it would be and what it would cost; costs nothing.

        Raises ProgrammingError, NotSupportedError or DataError, as the query itself would.
        """
        self._session.require_open()
        given = collected(parameters)
        statement = read_statement(operation, given)
        return self._session.explain(statement, statement.bind(given), None)

    @property
    def receipt(self) -> Receipt | None:
        """What the last answer of this connection cost, whichever cursor had it: that of `pandas.read_sql` too.

        None where there was none yet. Threads that share a connection look at their cursor's.
        """
        return self._session.receipt

    @property
    def budget(self) -> str:
        """What is spent and what is left, in words, as SHOW dpsql.budget says it. Raises as `Cursor.execute`."""
        return self._session.budget()

    @property
    def policy(self) -> Policy:
        """The policy that the connection was opened with."""
        return self._session.policy

    @property
    def catalog(self) -> Catalog:
        """The declared tables and columns: all that an analyst may know of the schema."""
        return self._session.catalog

    @property
    def time_limit(self) -> float | None:
        """Most seconds that the post-processing of a statement may take; None, as it begins, for the usual minute.

        More than ten minutes are ten. May be set.
        """
        return self._session.time_limit

    @time_limit.setter
    def time_limit(self, seconds: float | None) -> None:
        self._session.time_limit = seconds

    def reset(self) -> None:
        """Undo every SET: the settings are again those that the connection was opened with.

        Raises InterfaceError on a closed connection.
        """
        self._session.restore(self._settings)

    def cancel(self) -> None:
        """Stop the statement that runs now, from any thread: it raises OperationalError (57014).

        What it has charged stays spent. One that begins later is not stopped.
        """
        self._session.cancel()

    @property
    def autocommit(self) -> bool:
        """True: each statement stands alone."""
        return True

    def commit(self) -> None:
        """Do nothing, since nothing is written. Raises InterfaceError on a closed connection."""
        self._session.require_open()

    def rollback(self) -> None:
        """Do nothing: nothing was written, and no charge is given back.

        A transaction would give no snapshot across statements, and the ledger stands outside of any.
        Raises InterfaceError on a closed connection.
        """
        self._session.require_open()

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        return not self._session.is_open

    def close(self) -> None:
        """Cancel what runs and let the database and the ledger go. Closing again does nothing."""
        self._session.close()

    def __repr__(self) -> str:
        return f"<dpsql.Connection to {self.policy.source} as {self._session.analyst!r}{self._state()}>"

    def _repr_html_(self) -> str:
        tables = [(terminal_text(name), comment) for name, comment in listed_tables(self.catalog)]
        return f"<p>{escape(repr(self)[1:-1])}</p>{table_html(('table', 'rows'), tables)}"

    def _state(self) -> str:
        return ", closed" if self.closed else ""

    def __enter__(self) -> Connection:
        self._session.require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
