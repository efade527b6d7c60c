"""Asks the questions of a data set on both engines with the noise off, and says what comes of each in one line.

`same`: the rows are those of Postgres' own answer to the statement as the analyst wrote it. Behind it may stand: groups
without rows, which a policy's values and bounds bring; groups below the threshold, which are not shown; numbers that are
near, within 1 %, as a percentile is that is chosen from a grid. `hidden`: no group is shown. `refused`: with code, place
and hint. `wrong`: anything else.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from contextlib import ExitStack
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, Self

import duckdb
import psycopg

from dpsql import Session
from dpsql.backends import Backend, DuckDBBackend, PostgresBackend
from dpsql.budget import Caps, open_store
from dpsql.engine.dataset import Dataset
from dpsql.errors import DpsqlError
from dpsql.mechanisms import ATTO, NANO
from dpsql.postprocess import SealedEngine
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import READER, let_read

from .data_sets import Question, fill_duckdb, fill_postgres, read_policy
from .rows import ROWS

__all__ = ["Asking", "read_outcomes", "write_outcomes"]

_NEAR = 0.01
_EXACT = 1e-9
_OUTCOMES = Path(__file__).with_name("outcomes.txt")
_Row = tuple[Any, ...]


class Asking:
    """A data set in a DuckDB and a Postgres of its own, for the time of a `with` block; `ledgers`: a folder for them."""

    def __init__(self, server: PostgresServer, data_set: str, ledgers: Path) -> None:
        self._server, self._data_set, self._ledgers = server, data_set, ledgers
        self._policy = read_policy(data_set)
        self._number = count(1)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            rows = ROWS[self._data_set]()
            database = self._server.create_database()
            stack.callback(self._server.drop_database, database)
            self._owner = stack.enter_context(self._server.admin(database))
            fill_postgres(self._owner, self._data_set, rows)
            let_read(self._owner, "public")
            self._owner.execute("SET TimeZone = 'UTC'")
            connection = stack.enter_context(duckdb.connect(config={"threads": 1}))
            fill_duckdb(connection, self._data_set, rows)
            self._sealed = SealedEngine()
            stack.callback(self._sealed.close)
            postgres = PostgresBackend(self._server.url(database, READER), self._policy.read_from)
            stack.callback(postgres.close_idle)
            self._backends: dict[str, Backend] = {
                "duckdb": DuckDBBackend.over(connection),
                "postgres": postgres,
            }
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def outcome(self, question: Question) -> str:
        """Return what comes of a question, of each engine if they differ."""
        truth = psycopg.RawCursor(self._owner).execute(question.sql.encode()).fetchall()
        told = {engine: self._told(backend, question, truth) for engine, backend in self._backends.items()}
        if len(set(told.values())) == 1:
            return told["duckdb"]
        return "; ".join(f"{engine}: {one}" for engine, one in told.items())

    def _told(self, backend: Backend, question: Question, truth: list[_Row]) -> str:
        try:
            rows, delta = self._ask(backend, question.sql)
        except DpsqlError as error:
            hint = f" -> {error.hint}" if error.hint else ""
            return f"refused {error.sqlstate} at {error.position}: {error.message}{hint}"
        return _compared(rows, truth, question, finds_groups=delta > 0)

    def _ask(self, backend: Backend, sql: str) -> tuple[list[_Row], float]:
        """Return the rows, and the delta that finding the groups cost; each question has a budget of its own."""
        privacy = self._policy.privacy
        caps = Caps(int(privacy.epsilon * NANO), int(privacy.delta * ATTO), {})
        path = self._ledgers / f"{next(self._number)}.db"
        with ExitStack() as stack:
            store = open_store(f"sqlite:{path}", self._policy.dataset_id, caps, create=True, log=path)
            stack.callback(store.close)
            dataset = Dataset(self._policy, backend, store, self._sealed)
            session = Session(dataset, "analyst", _noise=ZeroNoise())
            session.execute(f"SET dpsql.epsilon = '{self._policy.defaults.max_epsilon}'")
            answer = session.execute(sql)
            assert answer.receipt is not None
            return list(answer.rows), float(answer.receipt.delta)


def _compared(ours: list[_Row], truth: list[_Row], question: Question, *, finds_groups: bool) -> str:
    """Say how an answer stands to Postgres' own."""
    if not ours:
        return f"hidden, all {len(truth)} groups" if finds_groups else "wrong: no row"
    left, missing, worst = list(ours), [], 0.0
    places = []
    for row in truth:
        distance, place = min(
            ((_distance(row, mine, question.keys), place) for place, mine in enumerate(ours)),
            key=lambda pair: (pair[0], pair[1] in places),
        )
        if distance > _NEAR or ours[place] not in left:
            missing.append(row)
            continue
        left.remove(ours[place])
        places.append(place)
        worst = max(worst, distance)
    values = [key for key in range(len(truth[0])) if key not in question.keys]
    known = {_key(row, question.keys): row for row in missing}
    for row in left:
        other = known.get(_key(row, question.keys))
        if other is not None and not (question.keys and _is_empty(row, values)):
            return f"wrong: {_said(row)} in place of {_said(other)}"
    strange = [row for row in left if not (question.keys and _is_empty(row, values))]
    if strange:
        return f"wrong: {_said(strange[0])} is no row of Postgres, nor are {len(strange) - 1} others"
    if missing and not finds_groups:
        return f"wrong: {_said(missing[0])} is missing, and {len(missing) - 1} others"
    notes = [f"same, {len(left)} groups without rows besides" if left else "same"]
    if missing:
        notes.append(f"{len(missing)} of {len(truth)} groups hidden")
    if worst > _EXACT:
        notes.append(f"near by {100 * worst:.2g} %")
    if places != sorted(places) and "ORDER BY" in question.sql.rpartition(")")[2]:
        notes.append("in another order")
    return ", ".join(notes)


def _distance(mine: _Row, other: _Row, keys: Sequence[int]) -> float:
    """Return the largest relative distance of two rows' numbers, infinity where something else differs."""
    if len(mine) != len(other):
        return math.inf
    return max(
        _apart(a, b) if place not in keys else (0.0 if _plain(a) == _plain(b) else math.inf)
        for place, (a, b) in enumerate(zip(mine, other, strict=True))
    )


def _apart(mine: object, other: object) -> float:
    a, b = _plain(mine), _plain(other)
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return max(map(_apart, a, b), default=0.0)
    if isinstance(a, float) and isinstance(b, float):
        return 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))
    return 0.0 if a == b else math.inf


def _plain(value: object) -> object:
    """Return a number as a float, a date as the timestamp at its start."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, Decimal)):
        return float(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return value


def _key(row: _Row, keys: Sequence[int]) -> tuple[object, ...]:
    return tuple(_plain(row[key]) for key in keys)


def _is_empty(row: _Row, values: Sequence[int]) -> bool:
    """Say whether a row is of a group without rows: one of its numbers is 0 or NULL."""
    return any(row[place] is None or _plain(row[place]) == 0.0 for place in values)


def _said(row: _Row) -> str:
    return "(" + ", ".join("NULL" if value is None else str(value) for value in row) + ")"


def read_outcomes() -> dict[str, str]:
    """Return the recorded outcome of each question by its name."""
    lines = _OUTCOMES.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" | ", 1) for line in lines if not line.startswith("#"))  # type: ignore[misc]  # two parts


def write_outcomes(outcomes: dict[str, str]) -> None:
    """Record outcomes, with their shares on top."""
    kinds = [outcome.partition(" ")[0].rstrip(",:") for outcome in outcomes.values()]
    head = [f"# {kind}: {kinds.count(kind)} of {len(kinds)}" for kind in sorted(set(kinds))]
    lines = [f"{name} | {outcome}" for name, outcome in outcomes.items()]
    _OUTCOMES.write_text("\n".join(head + lines) + "\n", encoding="utf-8")
