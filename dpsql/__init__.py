"""dpsql: ask a private database in SQL; get differentially private answers with error bars."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = (
    False  # as type checkers know it; `typing` takes longer than all of this, and Ctrl-C may come meanwhile
)

if TYPE_CHECKING:
    from .dbapi import BINARY as BINARY
    from .dbapi import DATETIME as DATETIME
    from .dbapi import NUMBER as NUMBER
    from .dbapi import ROWID as ROWID
    from .dbapi import STRING as STRING
    from .dbapi import Binary as Binary
    from .dbapi import Connection as Connection
    from .dbapi import Cursor as Cursor
    from .dbapi import DatabaseError as DatabaseError
    from .dbapi import DataError as DataError
    from .dbapi import Date as Date
    from .dbapi import DateFromTicks as DateFromTicks
    from .dbapi import Error as Error
    from .dbapi import IntegrityError as IntegrityError
    from .dbapi import InterfaceError as InterfaceError
    from .dbapi import InternalError as InternalError
    from .dbapi import NotSupportedError as NotSupportedError
    from .dbapi import OperationalError as OperationalError
    from .dbapi import ProgrammingError as ProgrammingError
    from .dbapi import Time as Time
    from .dbapi import TimeFromTicks as TimeFromTicks
    from .dbapi import Timestamp as Timestamp
    from .dbapi import TimestampFromTicks as TimestampFromTicks
    from .dbapi import Warning as Warning
    from .dbapi import apilevel as apilevel
    from .dbapi import connect as connect
    from .dbapi import paramstyle as paramstyle
    from .dbapi import threadsafety as threadsafety
    from .engine import Answer as Answer
    from .engine import Explanation as Explanation
    from .engine import Receipt as Receipt
    from .engine import Session as Session
    from .errors import DpsqlError as DpsqlError
    from .mechanisms.randomized_response import randomize as randomize

_HOMES = {
    "errors": ("DpsqlError",),
    "engine": ("Answer", "Explanation", "Receipt", "Session"),
    "mechanisms.randomized_response": ("randomize",),
}

__all__ = [
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Answer", "Binary", "Connection", "Cursor",
    "DataError", "DatabaseError", "Date", "DateFromTicks", "DpsqlError", "Error", "Explanation",
    "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError", "OperationalError",
    "ProgrammingError", "Receipt", "Session", "Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks",
    "Warning", "__version__", "apilevel", "connect", "paramstyle", "randomize", "threadsafety",
]  # fmt: skip

__version__ = "0.1.0"


def __dir__() -> list[str]:
    """Return the names that are for use, and the module's own."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> object:
    """Import what a name needs on first use, so that `dpsql --help` stays quick."""
    if name not in __all__:
        raise AttributeError(f"module 'dpsql' has no attribute {name!r}")
    home = next((module for module, names in _HOMES.items() if name in names), "dbapi")
    return getattr(import_module(f".{home}", __name__), name)
