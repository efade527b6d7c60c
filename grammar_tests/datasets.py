"""The policies' databases: as written, tame, and with each privacy unit in turn removed or replaced."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import duckdb
from replay import Run

from dpsql import Session
from dpsql.backends import Backend, DuckDBBackend, Snapshot
from dpsql.budget import Caps, LedgerStore, Promise, open_store
from dpsql.engine.dataset import Dataset
from dpsql.mechanisms import ATTO, NANO
from dpsql.plan.privacy.time import Clock
from dpsql.policy import Neighbours, Policy, parse_policy
from dpsql.policy.live_schema import LiveSchema
from dpsql.policy.periods import UNDATED, first_day, number_of
from dpsql.postprocess import SealedEngine
from dpsql.testing.case_file import Case
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import tried

__all__ = ["CountingBackend", "DataSets", "PolicyData", "PolicyFiles", "owner_of", "run_on"]

NOW = datetime(2024, 4, 10, tzinfo=UTC)
"""When the cases are asked, where a budget is by periods of the data."""

_A_SALT = re.compile("[0-9a-f]{12}")
_SALT = "0123456789ab"


class _CountingSnapshot:
    """A snapshot that notes each statement, with its parameters, on its way to the engine."""

    def __init__(
        self, snapshot: Snapshot, runs: list[tuple[str, tuple[object, ...]]], seen: list[LiveSchema]
    ) -> None:
        self._snapshot, self._runs, self._seen = snapshot, runs, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._snapshot, name)

    def run(
        self, sql: str, parameters: Sequence[object] = (), size: int = 65536, *, is_direct: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        parameters = _with_salt(parameters)
        self._runs.append((sql, tuple(parameters)))
        return self._snapshot.run(sql, parameters, size, is_direct=is_direct)

    def schema(self) -> LiveSchema:
        """Return the schema as it was first read: nobody changes it."""
        if not self._seen:
            self._seen.append(self._snapshot.schema())
        return self._seen[0]

    def columns(self, sql: str) -> Any:
        self._runs.append((sql, ()))
        return self._snapshot.columns(sql)


def _with_salt(parameters: Sequence[object]) -> Sequence[object]:
    """Return the parameters with one salt for all sessions, so that they leave out the same groups."""
    first = parameters[0] if parameters else None
    if isinstance(first, str) and _A_SALT.fullmatch(first):
        return [_SALT, *parameters[1:]]
    return parameters


class CountingBackend:
    """A real backend that notes what reaches it; the groups of a unit are always chosen by the same salt."""

    def __init__(self, backend: Backend, seen: list[LiveSchema]) -> None:
        """`seen`: where the schema of this backend is kept, for all who ask it."""
        self._backend, self._seen = backend, seen
        self.runs: list[tuple[str, tuple[object, ...]]] = []
        self.snapshots = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[_CountingSnapshot]:
        self.snapshots += 1
        with self._backend.snapshot(owner) as snapshot:
            yield _CountingSnapshot(snapshot, self.runs, self._seen)


class _DataSet(Dataset):
    """A dataset that is asked at one moment for ever."""

    def clock(self, *, is_open: bool = False) -> Clock | None:
        time = self.policy.privacy.time
        return None if time is None else Clock.at(time, NOW)


@dataclass(frozen=True)
class PolicyFiles:
    """A policy, the statements that make its tables, and those that fill them; None: there are no tame rows."""

    policy: Policy
    schema: str
    rows: str
    tame_rows: str | None


@dataclass
class PolicyData:
    """One policy with its databases. `wild`: the data as written, bounds bite; `tame`: none does."""

    policy: Policy
    schema: str
    rows: str
    wild: duckdb.DuckDBPyConnection
    tame: duckdb.DuckDBPyConnection | None
    opened: list[duckdb.DuckDBPyConnection] = field(default_factory=list)
    _copies: int = 0

    @cached_property
    def backend(self) -> DuckDBBackend:
        """What asks the wild data: one for all sessions, so that the schema is read once."""
        return DuckDBBackend.over(self.wild)

    @cached_property
    def tame_backend(self) -> DuckDBBackend:
        """What asks the tame data."""
        assert self.tame is not None
        return DuckDBBackend.over(self.tame)

    @cached_property
    def gone(self) -> list[tuple[object, int]] | None:
        """Whose rows of which slice each neighbour lacks; None where the budget is no one by periods."""
        if self.policy.privacy.time is None:
            return None
        period, found = self.policy.privacy.time.period, set()
        for table in self.policy.tables:
            owner, day = (
                owner_of(self.policy, "main", table, "own"),
                day_of(self.policy, "main", table, "own"),
            )
            if owner is None:
                continue
            rows = self.wild.execute(
                f'SELECT DISTINCT {owner}, {day or "NULL"} FROM "{table}" AS own'
            ).fetchall()
            found |= {
                (unit, UNDATED if day is None else number_of(period, at))
                for unit, at in rows
                if unit is not None and (day is None or at is not None)
            }
        return sorted(found)

    @cached_property
    def neighbours(self) -> list[duckdb.DuckDBPyConnection]:
        """The wild data without each unit in turn, under replace-one with each other unit's rows in its
        place; rows in reverse order."""
        if self.gone is not None:
            slices = [self._changed(unit, None, number) for unit, number in self.gone]
            self.opened += slices
            return slices
        root = self.policy.tables[self.policy.root].unit
        assert root is not None
        key = "rowid" if root.is_row else key_of(root.columns)
        found = self.wild.execute(f'SELECT {key} FROM "{self.policy.root}"').fetchall()
        units = [unit for (unit,) in found]
        if self.policy.privacy.neighbours is Neighbours.ADD_REMOVE:
            changes: list[tuple[object, object]] = [(unit, None) for unit in units]
        else:
            changes = list(itertools.permutations(units, 2))
        changed = [self._changed(unit, other) for unit, other in changes]
        self.opened += changed
        return changed

    @property
    def numbers(self) -> list[int | None]:
        """The slice in which each neighbour differs; None where the budget is no one by periods."""
        if self.gone is None:
            return [None] * len(self.neighbours)
        return [number for _, number in self.gone]

    def in_turn(self, case: Case) -> list[int]:
        """Return which neighbours a case is held on: in `make test` the one that differs by most rows, and four others
        at most, different ones for each case."""
        every = max(1, tried(-(-len(self.neighbours) // 4), 1))
        return sorted(
            {self._heaviest, *range(len(self.neighbours))[crc32(str(case).encode()) % every :: every]}
        )

    @cached_property
    def _heaviest(self) -> int:
        def rows(neighbour: duckdb.DuckDBPyConnection) -> int:
            counts = (f'(SELECT COUNT(*) FROM "{table}")' for table in self.policy.tables)
            ((count,),) = neighbour.execute(f"SELECT {' + '.join(counts)}").fetchall()
            return int(count)

        return min(range(len(self.neighbours)), key=lambda number: rows(self.neighbours[number]))

    @cached_property
    def owned(self) -> duckdb.DuckDBPyConnection:
        """The wild data without the rows that have no owner, or no time: nothing may show a difference."""
        self.opened.append(self._changed(None, None))
        return self.opened[-1]

    @cached_property
    def _beside_wild(self) -> duckdb.DuckDBPyConnection:
        """One engine for all changed data, each a database of its own in it; and the wild data, to copy from."""
        connection = _connect(f"ATTACH ':memory:' AS wild; USE wild; {self.schema}; {self.rows}")
        self.opened.append(connection)
        return connection

    def _changed(self, unit: object, other: object, number: int | None = None) -> duckdb.DuckDBPyConnection:
        """Copy the wild data without a unit's rows (None: the unowned), with those of `other` in its name; `number`:
        without those of one slice alone."""
        self._copies += 1
        connection = self._beside_wild.cursor()
        connection.execute(f"ATTACH ':memory:' AS copy{self._copies}; USE copy{self._copies}; {self.schema}")
        tables = self.wild.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_oid").fetchall()
        for (table,) in tables:
            source = f'FROM wild."{table}" AS own'
            owner = owner_of(self.policy, "wild", table, "own")
            if owner is None:
                connection.execute(f'INSERT INTO "{table}" SELECT * {source}')
                continue
            stays = f"{owner} IS DISTINCT FROM ?"
            day = day_of(self.policy, "wild", table, "own")
            if number is not None:
                stays += f" OR {self._is_elsewhere(day, number)}"
            elif day is not None and unit is None:
                stays += f" AND {day} IS NOT NULL"
            kept = f"SELECT * {source} WHERE {stays} ORDER BY rowid DESC"
            connection.execute(f'INSERT INTO "{table}" {kept}', [unit])
            if other is not None:
                assert owner.startswith("own."), "a replaced unit's rows are found in one step"
                column = owner.removeprefix("own.")
                taken = f"SELECT * REPLACE (? AS {column}) {source} WHERE {owner} = ?"
                connection.execute(f'INSERT INTO "{table}" {taken}', [unit, other])
        return connection

    def _is_elsewhere(self, day: str | None, number: int) -> str:
        """Say as SQL whether a row is of another slice; `day`: None where it is undated."""
        if day is None or number == UNDATED:
            return str((day is None) is not (number == UNDATED)).upper()
        time = self.policy.privacy.time
        assert time is not None
        begins = f"date_trunc('{time.period.value}', {day})"
        return f"{begins} IS DISTINCT FROM CAST('{first_day(time.period, number)}' AS TIMESTAMP)"

    def close(self) -> None:
        for connection in (self.wild, *self.opened, *([self.tame] if self.tame else [])):
            connection.close()


def owner_of(policy: Policy, schema: str, table: str, alias: str) -> str | None:
    """Return a row's owner as SQL, along the policy's path; None for a public table, and for one of other units."""
    unit = policy.tables[table].unit if table in policy.tables else None
    if unit is None or (unit.is_row and table != policy.root):
        return None
    if unit.is_row:
        return f"{alias}.rowid"
    if unit.references is None or unit.references[0] == policy.root:
        return key_of(unit.columns, f"{alias}.")
    parent, key = unit.references
    inner = owner_of(policy, schema, parent, f"{alias}_up")
    pairs = zip(key, unit.columns, strict=True)
    links = " AND ".join(f'{alias}_up."{one}" = {alias}."{own}"' for one, own in pairs)
    return f'(SELECT {inner} FROM {schema}."{parent}" AS {alias}_up WHERE {links})'


def day_of(policy: Policy, schema: str, table: str, alias: str) -> str | None:
    """Return a row's time as SQL, along the policy's path; None for a table without one."""
    found = policy.tables[table]
    if found.time is None:
        return None
    if found.time[0] == table:
        return f'CAST({alias}."{found.time[1]}" AS TIMESTAMP)'
    assert found.unit is not None
    assert found.unit.references is not None, "the time stands on the way"
    parent, (key,) = found.unit.references
    (own,) = found.unit.columns
    inner = day_of(policy, schema, parent, f"{alias}_at")
    return (
        f'(SELECT {inner} FROM {schema}."{parent}" AS {alias}_at WHERE {alias}_at."{key}" = {alias}."{own}")'
    )


def key_of(columns: Sequence[str], prefix: str = "") -> str:
    """Return a key as one SQL value: of several columns a text that tells all of their values apart, NULL for NULL."""
    if len(columns) == 1:
        return f'{prefix}"{columns[0]}"'
    return " || '-' || ".join(f'hex(CAST({prefix}"{column}" AS VARCHAR))' for column in columns)


class DataSets:
    """Opens each policy's databases once."""

    def __init__(self, folder: Path, ledgers: Path, sealed: SealedEngine) -> None:
        self._folder, self._ledgers, self._sealed = folder, ledgers, sealed
        self._known: dict[str, PolicyData] = {}
        self._asked: dict[tuple[str, str], tuple[Session, CountingBackend]] = {}
        self._ledgers_made = 0
        self._passing: list[LedgerStore] = []
        self._schemas: dict[int, tuple[Backend, list[LiveSchema]]] = {}

    def of(self, name: str) -> PolicyData:
        """Return a policy's data."""
        if name not in self._known:
            files = self.files(name)
            wild = _connect(files.schema + files.rows)
            tame = None if files.tame_rows is None else _connect(files.schema + files.tame_rows)
            self._known[name] = PolicyData(files.policy, files.schema, files.rows, wild, tame)
        return self._known[name]

    def files(self, name: str) -> PolicyFiles:
        """Return what the files of a policy say."""
        path, tame = self._folder / f"{name}.toml", self._folder / f"{name}_tame.sql"
        script = (self._folder / f"{name}.sql").read_text(encoding="utf-8")
        schema, _, rows = script.partition("\n-- rows\n")
        return PolicyFiles(
            parse_policy(path.read_text(encoding="utf-8"), path),
            schema,
            rows,
            tame.read_text(encoding="utf-8") if tame.exists() else None,
        )

    def refusing(self, name: str, analyst: str) -> tuple[Session, CountingBackend]:
        """Return a session on the wild data that many refused statements share: they leave no trace."""
        if (name, analyst) not in self._asked:
            data = self.of(name)
            self._asked[name, analyst] = self.session(data.policy, data.backend, analyst, stays=True)
        return self._asked[name, analyst]

    def session(
        self, policy: Policy, backend: Backend, analyst: str, *, stays: bool = False
    ) -> tuple[Session, CountingBackend]:
        """Return a noiseless session with a ledger of its own, and the backend that notes its calls.

        The ledger is open until `end_sessions`; `stays`: for longer, as it is for many cases.
        """
        self._ledgers_made += 1
        caps = Caps(
            int(policy.privacy.epsilon * NANO),
            int(policy.privacy.delta * ATTO),
            {name: int(one.epsilon * NANO) for name, one in policy.analysts.items()},
        )
        path, time = self._ledgers / f"{self._ledgers_made}.db", policy.privacy.time
        promise = Promise() if time is None else Promise(period=time.period, zone=time.zone, since=time.since)
        store = open_store(f"sqlite:{path}", policy.dataset_id, caps, create=True, log=path, promise=promise)
        if not stays:
            self._passing.append(store)
        counting = CountingBackend(backend, self._schemas.setdefault(id(backend), (backend, []))[1])
        session = Session(_DataSet(policy, counting, store, self._sealed), analyst, _noise=ZeroNoise())
        counting.snapshots = 0
        return session, counting

    def end_sessions(self) -> None:
        """Close the ledgers of a case: each holds files open."""
        while self._passing:
            self._passing.pop().close()

    def close(self) -> None:
        """Close every database."""
        for data in self._known.values():
            data.close()


def _connect(sql: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(sql)
    return connection


def run_on(connection: duckdb.DuckDBPyConnection) -> Run:
    """Return what runs SQL on a database and gives the rows."""

    def run(sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        return connection.execute(sql, list(parameters)).fetchall()

    return run
