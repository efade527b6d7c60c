"""What the owner's commands open: the policy, the live schema and the ledger, without a session."""

from __future__ import annotations

import getpass
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from ..errors import EngineFailure, FilesChanged, PolicyError
from ..records import dataclass
from .faults import tell

if TYPE_CHECKING:
    from ..backends import Backend
    from ..budget import KeyCheck, LedgerStore
    from ..engine.asserted_keys import FoundKey
    from ..policy.live_schema import LiveSchema
    from ..policy.model import FileSources, Policy

_MOST_KEYS = 200
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _nothing() -> None:
    """Files that are recorded already are left as they are."""


def read_live_schema(database_url: str, files: FileSources | None = None) -> LiveSchema:
    """Return what the database really has; no row is read.

    Raises PolicyError for a bad URL, and for a database that cannot be read: this is the owner's own
    screen, so it says why (the backend's detail, which holds no text of the engine and no value).
    """
    from ..backends import open_backend
    from ..policy.model import SPARK

    try:
        backend = open_backend(database_url, files=files, is_recorded=False)
        try:
            with backend.snapshot() as snapshot:
                return snapshot.schema()
        finally:
            backend.close_idle()
    except EngineFailure as failure:
        if database_url.startswith(SPARK):
            raise _spark_unread(database_url, failure) from None
        if files is not None:
            raise PolicyError(
                f"the data files cannot be read ({failure.detail})", hint="write them anew"
            ) from None
        raise PolicyError(
            f"{database_url}: the schema cannot be read ({failure.detail})",
            hint="the server must run, and know the role and its password (PGPASSWORD, or a passfile)"
            if database_url.startswith("postgres")
            else "no other program may have it open for writing"
            if failure.sqlstate == "55006"
            else "name a DuckDB file that this user may read; a policy for CSV or Parquet files: dpsql init FILES",
        ) from None


def _spark_unread(database_url: str, failure: EngineFailure) -> PolicyError:
    return PolicyError(
        f"{database_url}: the tables cannot be read ({failure.detail})",
        hint="the Spark Connect server must run, know the token, and be able to read them",
    )


def public_keys(
    database_url: str, files: FileSources | None, live: LiveSchema, name: str
) -> tuple[int | str, ...] | None:
    """Return the values of the one-column key of a table that the owner has called public, in order.

    None where they are too many to list, or of a type that is not listed; () where there is no such key. Raises
    PolicyError: there is no such table.
    """
    from ..backends import open_backend
    from ..plan.dialects import dialect_of
    from ..policy.units import find_live_table
    from ..relation.types import Kind

    table = find_live_table("--public", name, live)
    key = table.primary_key or table.asserted
    column = table.column(key[0]) if len(key) == 1 else None
    if column is None:
        return ()
    if not (column.type.is_integer or column.type.kind is Kind.TEXT):
        return None
    dialect = dialect_of(live.dialect, live.case_collation)
    shown, place = dialect.identifier(column.name), dialect.path(table.place)
    sql = f"SELECT {shown} FROM {place} ORDER BY 1 LIMIT {_MOST_KEYS + 1}"
    try:
        with open_backend(database_url, files=files, is_recorded=False).snapshot() as snapshot:
            found = [row[0] for chunk in snapshot.run(sql) for row in chunk]
    except EngineFailure as failure:
        problem = PolicyError(
            f"--public {name}: its keys cannot be read ({failure.detail})", hint="leave --public out"
        )
    else:
        return tuple(found) if len(found) <= _MOST_KEYS else None
    raise problem


def public_ranges(
    database_url: str, files: FileSources | None, live: LiveSchema, name: str
) -> dict[str, tuple[Fraction, Fraction]]:
    """Return between which ends the numbers of each column lie of a table that the owner has called public.

    Of reals the ends are rounded outwards. A column without a finite number, and one that is a key, is left out. Raises
    PolicyError: there is no such table, or it cannot be read.
    """
    from ..backends import open_backend
    from ..plan.dialects import dialect_of
    from ..policy.units import find_live_table

    table = find_live_table("--public", name, live)
    keys = {*table.primary_key, *table.asserted, *(one for key in table.foreign_keys for one in key.columns)}
    numbers = [
        column
        for column in table.columns
        if column.type.is_number and column.name not in keys and not table.is_unique(column.name)
    ]
    if not numbers:
        return {}
    dialect = dialect_of(live.dialect, live.case_collation)
    names = [dialect.identifier(column.name) for column in numbers]
    ends = ", ".join(f"MIN({one}), MAX({one})" for one in names)
    sql = f"SELECT {ends} FROM {dialect.path(table.place)}"
    try:
        with open_backend(database_url, files=files, is_recorded=False).snapshot() as snapshot:
            (row,) = (row for chunk in snapshot.run(sql) for row in chunk)
    except EngineFailure as failure:
        raise PolicyError(
            f"--public {name}: its numbers cannot be read ({failure.detail})", hint="leave --public out"
        ) from None
    found = {}
    for place, column in enumerate(numbers):
        low, high = row[2 * place : 2 * place + 2]
        if low is not None and math.isfinite(low) and math.isfinite(high):
            between = Fraction(low), Fraction(high)
            found[column.name] = _outwards(*between) if column.type.is_float else between
    return found


def _outwards(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Return ends of few digits, not far outside of these."""
    size = max(abs(low), abs(high))
    step = Fraction(10) ** (math.floor(math.log10(size)) - 2) if size else Fraction(1)
    return low // step * step, -(-high // step) * step


def looks_of_values(policy: Policy, live: LiveSchema) -> tuple[tuple[str, str, str], ...]:
    """Return the columns of public tables whose values look like a person's: table, column, and what they look like.

    Reads the first rows of each public table, and no others. Raises PolicyError: one cannot be read.
    """
    from ..backends import open_backend
    from ..plan.dialects import dialect_of
    from ..policy.scaffold import MOST_READ, look_of
    from ..relation.types import Kind

    live, dialect = live.as_called(policy.called), dialect_of(live.dialect, live.case_collation)
    backend = open_backend(policy.database, policy.read_from, policy.files, is_recorded=False)
    found = []
    try:
        for name, declared in policy.tables.items():
            table = live.table(live.path_of(name))
            if declared.unit is not None or table is None or table.unusable is not None:
                continue
            texts = [one for one in table.columns if one.type.kind is Kind.TEXT and one.enum_values is None]
            texts = [one for one in texts if not (one.is_generated or one.refused)]
            if not texts:
                continue
            shown = ", ".join(f"CAST({dialect.identifier(one.name)} AS {dialect.text})" for one in texts)
            with backend.snapshot() as snapshot:
                sql = f"SELECT {shown} FROM {dialect.path(table.place)} LIMIT {MOST_READ}"
                rows = [row for chunk in snapshot.run(sql) for row in chunk]
            for column, values in zip(texts, zip(*rows, strict=True), strict=False):
                known = [value for value in values if value is not None]
                look = look_of(known, is_key=table.is_unique(column.name))
                found += [] if look is None else [(name, column.name, look)]
    except EngineFailure as failure:
        problem = PolicyError(
            f"a public table cannot be read ({failure.detail})", hint="look whether the database is there"
        )
    else:
        return tuple(found)
    finally:
        backend.close_idle()
    raise problem


def with_lookup_keys(
    database_url: str, files: FileSources | None, live: LiveSchema, names: tuple[str, ...]
) -> LiveSchema:
    """Return the schema with the keys of tables that the owner has called public, where nothing says what is a key, as
    of files: their rows say which column is one.

    Raises PolicyError: there is no such table, or it cannot be read.
    """
    from ..backends import open_backend
    from ..plan.dialects import dialect_of
    from ..policy.scaffold import possible_keys, with_lookup
    from ..policy.units import find_live_table

    dialect = dialect_of(live.dialect, live.case_collation)
    with open_backend(database_url, files=files, is_recorded=False).snapshot() as snapshot:
        for name in names:
            table = find_live_table("--public", name, live)
            for column in possible_keys(table, live):
                one, place = dialect.identifier(column), dialect.path(table.place)
                sql = f"SELECT COUNT(*), COUNT({one}), COUNT(DISTINCT {one}) FROM {place}"
                ((rows, there, different),) = (row for chunk in snapshot.run(sql) for row in chunk)
                if rows == there == different:
                    live = with_lookup(live, table.path, column)
                    break
    return live


@contextmanager
def open_ledger(policy_path: Path, *, create: bool = False) -> Iterator[LedgerStore]:
    """Open the ledger that the policy names; make it, if it may be made and is not there yet.

    Raises PolicyError and LedgerError.
    """
    from ..engine.ledgers import open_ledger as open_store
    from ..policy import load_policy

    with closing(open_store(load_policy(policy_path), create=create)) as store:
        tell_lost(store)
        yield store


def tell_lost(store: LedgerStore) -> None:
    """Say what the ledger's file was found to have lost."""
    if store.lost:
        tell(f"Note: {store.lost}.")


def login_name() -> str:
    """Return the login name for the record, or "unknown" where the system knows none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


@dataclass(frozen=True, slots=True)
class VerifiedFiles:
    """Files that were read, all of them: `checked`, the asserted keys, which hold in them, for the ledger; `record`
    writes down what the files are."""

    checked: tuple[KeyCheck, ...] = ()
    record: Callable[[], None] = _nothing


def verified_files(policy_path: Path, *, only_new: bool = False) -> VerifiedFiles:
    """Read the files that the policy's tables are, all of them, and verify the keys that it asserts; or copy its
    database file where a copy is asked.

    Nothing is recorded yet, and until a copy is, nothing is answered. Where there is neither there is nothing to do,
    nor, with `only_new`, where a record is there. Raises PolicyError: a file is missing, cannot be read to its end, or
    be copied, or a key does not hold.
    """
    from ..backends.duckdb_backend import make_copy, record_copy, suspend_copy
    from ..backends.pinned_files import take
    from ..engine.asserted_keys import look_at_keys
    from ..policy import load_policy

    policy = load_policy(policy_path)
    copied = policy.copied
    if copied is not None:
        if only_new and copied.record.exists():
            return VerifiedFiles()
        try:
            name = make_copy(copied)
        except EngineFailure as failure:
            raise PolicyError(
                f"{copied.path.name}: the copy cannot be made ({failure.detail})",
                hint="end the load first, and try again",
            ) from None
        suspend_copy(copied)
        return VerifiedFiles(record=lambda: record_copy(copied, name))
    files = policy.files
    if files is None or (only_new and files.record.exists()):
        return VerifiedFiles()
    with _readable(policy):
        taken = take(policy.database, files, policy.source)
    found = looked(look_at_keys, policy, False) if files.keys else ()
    for one in found:
        if one.version != taken.versions[one.table]:
            raise PolicyError(
                f"{one.where}: the files changed while they were read; try again when they are written"
            )
    wrong = [one.problem for one in found if not one.holds]
    if wrong:
        raise PolicyError(
            "; ".join(wrong),
            hint="nothing was changed; mend the files, or take the key out and write the person's number into the "
            "rows, as unit",
        )
    return VerifiedFiles(key_checks(found), taken.write)


def looked(
    look: Callable[Concatenate[Policy, Backend, _P], _T],
    policy: Policy,
    is_recorded: bool,
    *more: _P.args,
    **options: _P.kwargs,
) -> _T:
    """Return what a look at rows finds, of the data as they were recorded, or as they are now.

    `look`: one of `engine.asserted_keys`. Raises PolicyError, FilesChanged.
    """
    from ..backends import open_backend

    backend = open_backend(policy.database, policy.read_from, policy.files, is_recorded=is_recorded)
    try:
        with _readable(policy):
            return look(policy, backend, *more, **options)
    finally:
        backend.close_idle()


@contextmanager
def _readable(policy: Policy) -> Iterator[None]:
    """Tell the owner what keeps the data from being read. Raises PolicyError, FilesChanged."""
    try:
        yield
    except FilesChanged:
        raise
    except EngineFailure as failure:
        problem = PolicyError(f"the data files cannot be read ({failure.detail})", hint="write them anew")
        if policy.is_on_spark:
            problem = _spark_unread(policy.database, failure)
    else:
        return
    raise problem


def key_checks(found: Sequence[FoundKey]) -> tuple[KeyCheck, ...]:
    """Return what the ledger records of keys that were looked at; it numbers and dates them itself."""
    from .. import __version__
    from ..budget import KeyCheck

    return tuple(
        KeyCheck(-1, "", 0, one.table, one.columns, one.version, one.holds, __version__, login_name())
        for one in found
    )


# --- files that hold secrets, or will: nobody but their owner can ever read them ----------------------------


def write_private(path: Path, text: str) -> None:
    """Write a file that does not exist yet; it is its owner's alone from its first moment. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(text)


def replace_file(path: Path, text: str) -> None:
    """Put a text in a file's place, whole or not at all, with the rights that the file had. Raises PolicyError."""
    path = path.resolve()
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_private(new, text)
        os.chmod(new, path.stat().st_mode & 0o777)
        os.replace(new, path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise PolicyError(f"{path.name}: cannot be written: {error.strerror}") from None
