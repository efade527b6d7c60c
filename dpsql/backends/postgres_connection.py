"""Connections to an owner's Postgres: where a URL leads, the settings that printed SQL relies on, errors in our words.

House rules:

1. A connection is looked at, without asking anybody, before it is given again: one that was lost is replaced by the
   statement that needs it, at once.
2. Every wait here ends with its statement (`waits`), that for a place among the connections too.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from ..errors import EngineFailure, PolicyError
from ..postgres_waits import BoundedConnection, is_lost
from .backend import Pool

Connection = psycopg.Connection[Any]

T = TypeVar("T")

LEAST_VERSION = 13
OLDEST_TESTED, NEWEST_TESTED = 15, 18
"""Postgres' majors that the tests run on. Above them nothing is answered: that a statement gives what was proved of
it rests on the meaning of every function in it. Below, documentation has to do, and `check` says so."""
STATEMENT_SECONDS = 600
LOCK_SECONDS = 10
WAIT_SECONDS = 30
_MOST_CONNECTIONS = 16
_OLDEST_SECONDS = 3600
_SECRETS = ("password", "sslpassword", "oauth_client_secret")

# What the printed SQL relies on.
_MEANING = {
    "search_path": "pg_catalog",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "row_security": "off",  # An error where a policy would hide rows.
}
_LIMITS = {
    "statement_timeout": f"{STATEMENT_SECONDS // 60}min",
    "lock_timeout": f"{LOCK_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{STATEMENT_SECONDS // 60}min",
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",  # It compiles for seconds what then runs for one.
    # Chosen where filters seem to leave one row, the one by the first of two keys: n² of one person's rows (law
    # L10), where a hash of all keys takes n.
    "enable_nestloop": "off",
    "enable_mergejoin": "off",
}
_SEAL = {"default_transaction_read_only": "on", "application_name": "dpsql"}

_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 1000 * WAIT_SECONDS,
}
"""What a URL may say otherwise."""

# The driver logs what the server said when a connection failed, in the server's own words.
logging.getLogger("psycopg").disabled = True


class EngineConnection(BoundedConnection):
    """A connection on which a statement that has to end is cancelled."""

    longest: ClassVar[float] = STATEMENT_SECONDS + 5
    cancels: ClassVar[bool] = True
    made = 0.0


def target_of(url: str) -> str:
    """Return where a policy's URL leads, for `connect`. Raises PolicyError: no URL, or one with a password."""
    try:
        target = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        target = {}
    if not target and url not in ("postgresql://", "postgres://"):
        raise PolicyError("database: is not a URL of Postgres; write postgresql://user@host/database")
    for name in _SECRETS:
        if name in target:
            raise PolicyError(
                f"database: holds a {name}; take it out",
                hint="set PGPASSWORD, or name a passfile: postgresql://user@host/database?passfile=…",
            )
    return make_conninfo("", **{**_DEFAULTS, **target})


def connect(target: str) -> EngineConnection:
    """Return a connection on which every setting of ours holds. Raises EngineFailure and PolicyError."""
    connection = guarded("open", lambda: EngineConnection.reach(target, autocommit=True))
    try:
        guarded("open", lambda: _configure(connection))
        check_connection(connection)
    except BaseException:
        connection.close()
        raise
    connection.made = time.monotonic()
    return connection


def connections(target: str) -> Pool[EngineConnection]:
    """Return the connections to a server; those that nobody uses are closed too where this is forgotten."""
    pool = Pool(
        lambda: connect(target),
        lambda one: not is_lost(one),
        _is_kept,
        "connection",
        most=_MOST_CONNECTIONS,
        kept=_MOST_CONNECTIONS,
        seconds=WAIT_SECONDS,
    )
    weakref.finalize(pool, _close_all, pool.idle)
    return pool


def _is_kept(connection: EngineConnection) -> bool:
    is_idle = not connection.closed and _status(connection) == TransactionStatus.IDLE
    return is_idle and time.monotonic() - connection.made < _OLDEST_SECONDS


def _close_all(idle: list[EngineConnection]) -> None:
    while idle:
        idle.pop().close()


def _status(connection: Connection) -> TransactionStatus:
    return TransactionStatus(connection.info.transaction_status)


def check_connection(connection: Connection) -> None:
    """Raise PolicyError for a server that dpsql cannot be exact on, or whose text is not Unicode."""
    major = connection.info.server_version // 10_000
    if not LEAST_VERSION <= major <= NEWEST_TESTED:
        raise PolicyError(
            f"database: is Postgres {major}; {LEAST_VERSION} to {NEWEST_TESTED} can be asked",
            hint="what each function means is known of these: take a server of one, or see for a newer dpsql",
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise PolicyError(f"database: has the encoding {encoding}; move it to one with ENCODING 'UTF8'")


def set_locally(*, is_limited: bool = True) -> str:
    """Return the statements that give a transaction our settings, whatever its connection has.

    `is_limited`: those of time and plans too, which an owner's act has none of.
    """
    settings = _MEANING | _LIMITS if is_limited else _MEANING
    return "; ".join(f"SET LOCAL {name} = {_quoted(name, value)}" for name, value in settings.items())


def _quoted(name: str, value: str) -> str:
    # Each of a list's parts is quoted by itself.
    return value if name in ("search_path", "DateStyle") else f"'{value}'"


def _configure(connection: Connection) -> None:
    """Make the settings and read each back. Raises OperationalError where one does not hold."""
    settings = _MEANING | _LIMITS | _SEAL
    calls = ", ".join(
        f"pg_catalog.set_config('{name}', '{value}', false)" for name, value in settings.items()
    )
    connection.execute(f"SELECT {calls}")
    shown = ", ".join(f"pg_catalog.current_setting('{name}')" for name in settings)
    found = connection.execute(f"SELECT {shown}").fetchone()
    if found is None or list(found) != list(settings.values()):
        raise psycopg.OperationalError("a setting does not hold")


def guarded(stage: str, action: Callable[[], T]) -> T:
    """Return what the action returns; every error of the engine becomes an EngineFailure without its text.

    ValueError and OverflowError are what the driver raises for a value that it cannot send or read.
    """
    try:
        return action()
    except (psycopg.Error, ValueError, OverflowError) as error:
        failure = EngineFailure(_describe(stage, error))
    raise failure


_AT_THE_DOOR = (
    (
        "password",
        "open: the server asks for a password, or refuses the one it got; set PGPASSWORD or a passfile",
    ),
    ("pg_hba.conf", "open: the server's pg_hba.conf lets this role not in"),
    ("database system", "open: the server is starting or stopping"),
    ("connection slots", "open: the server has no connection left for this role"),
    ("too many", "open: the server has no connection left for this role"),
    ("SSL", "open: the server does not speak TLS as the URL asks for"),
    ("role ", "open: the role does not exist, or may not log in"),
    ("database ", "open: the database does not exist, or the role may not connect to it"),
    ("refused", "open: no server listens where the URL says"),
    ("No such file", "open: no server listens where the URL says"),
    ("translate host name", "open: the URL's host is not known"),
    ("timeout", "open: the server did not answer in time"),
)


def _describe(stage: str, error: Exception) -> str:
    """Return what the owner's log may say: the stage, the error's class and its SQLSTATE, never its text."""
    if stage == "open" and isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        # Nothing has been asked yet: this text is about the connection alone. It is looked at, not passed on.
        text = str(error).rpartition("failed:")[2]
        for words, meaning in _AT_THE_DOOR:
            if words in text:
                return meaning
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    return f"{stage}: {type(error).__name__}{f' {state}' if state else ''}"
