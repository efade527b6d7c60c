"""Parquet files of events: an owner's first commands, and statements against the same plan over native tables."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.figure import Figure, Size, Times, compare, milliseconds
from dpsql import Session
from dpsql.backends.duckdb_files import pin_verified
from dpsql.policy import parse_policy

__all__ = ["measure"]

_PARTS = 4
_SESSIONS_EACH = 10
_TABLES = {
    "event": "SELECT CAST(hash(i) % {sessions} AS INTEGER) AS session_id, "
    "CAST(hash(i, 2) % {people} AS INTEGER) AS user_id, "
    "['view', 'click', 'buy'][1 + i % 3] AS kind, CAST(hash(i, 1) % 1000 AS INTEGER) AS ms, "
    "TIMESTAMP '2026-01-01' + INTERVAL 1 SECOND * (i % 10000000) AS at FROM range({rows}) AS t (i)",
    "visit": "SELECT CAST(i AS INTEGER) AS id, CAST(hash(i, 3) % {people} AS INTEGER) AS user_id, "
    "['phone', 'desk'][1 + i % 2] AS device FROM range({sessions}) AS t (i)",
}
_POLICY = """
database = "{database}"
[privacy]
epsilon = 9000
[tables.visit]
{visit}unit = "user_id"
max_rows = 40
columns.id = {{}}
columns.device = {{ values = ["phone", "desk"] }}
[tables.event]
{event}unit = {unit}
max_rows = 400
columns.session_id = {{}}
columns.kind = {{ values = ["view", "click", "buy"] }}
columns.ms = {{ bounds = [0, 1000] }}
"""
_POLICY_OF_RECORDS = """
database = "duckdb:"
[privacy]
epsilon = 1
[tables.event]
source = "event/*.parquet"
unit = "user_id"
max_rows = 400
"""
_OWN, _HOP = '"user_id"', '{ column = "session_id", references = "visit.id" }'
_STATEMENTS = {
    "count": "SELECT COUNT(*) FROM event",
    "sum by kind": "SELECT kind, COUNT(*), SUM(ms) FROM event GROUP BY kind",
    "filter": "SELECT AVG(ms) FROM event WHERE kind = 'buy' AND ms > 100",
    "people by kind": "SELECT kind, COUNT(DISTINCT event.user_id) FROM event GROUP BY kind",
    "join": "SELECT v.device, COUNT(*) FROM event e JOIN visit v ON v.id = e.session_id AND v.user_id = e.user_id "
    "GROUP BY v.device",
}
_HOPS = {
    "hop, count": "SELECT COUNT(*) FROM event",
    "hop, sum by kind": "SELECT kind, COUNT(*), SUM(ms) FROM event GROUP BY kind",
    "hop, join": "SELECT v.device, COUNT(*), SUM(ms) FROM event e JOIN visit v ON v.id = e.session_id "
    "GROUP BY v.device",
}
_LIMIT = 1.2
_MINUTES = 300


def measure(size: Size) -> Iterator[Figure]:
    """Yield the seconds of each command up to a first answer, and the ratio of files to native tables."""
    folder = _made(size)
    yield _recorded(folder)
    yield from _first_hour(folder)
    for name, unit, statements in (("own", _OWN, _STATEMENTS), ("hop", _HOP, _HOPS)):
        yield from _compared(folder, name, unit, statements, size)


def _made(size: Size) -> Path:
    """Write the files and the database of the same rows, unless they are there; no ledger of before stays."""
    folder = size.folder / f"files-{size.rows}"
    if not folder.exists():
        folder.mkdir()
        people = max(1, size.rows // 100)
        numbers = {"rows": size.rows, "people": people, "sessions": people * _SESSIONS_EACH}
        with duckdb.connect(str(folder / "native.duckdb")) as native:
            for table, sql in _TABLES.items():
                native.execute(f"CREATE TABLE {table} AS {sql.format(**numbers)}")
                (folder / table).mkdir()
                for part in range(_PARTS):
                    rows = f"SELECT * FROM {table} WHERE rowid % {_PARTS} = {part}"
                    native.execute(f"COPY ({rows}) TO '{folder}/{table}/{part}.parquet'")
            native.execute("ALTER TABLE visit ADD PRIMARY KEY (id)")
    for old in (*folder.glob("*-ledger.*"), *folder.glob("*-files.json"), *folder.glob("*.toml")):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    return folder


def _policy(folder: Path, name: str, unit: str, *, of_files: bool) -> Path:
    path = folder / f"{name}-{'files' if of_files else 'native'}.toml"
    text = _POLICY.format(
        database="duckdb:" if of_files else "duckdb:native.duckdb",
        visit='source = "visit/*.parquet"\nkey = ["id"]\n' if of_files else "",
        event='source = "event/*.parquet"\n' if of_files else "",
        unit=unit,
    )
    path.write_text(text)
    return path


def _recorded(folder: Path) -> Figure:
    """Return how long it takes to record files, whose statistics are verified, against reading each value once."""
    files = parse_policy(_POLICY_OF_RECORDS, folder / "records.toml").files
    assert files is not None
    read = "SELECT max(hash(t)) FROM read_parquet('{}/event/*.parquet') AS t"
    recording = milliseconds(partial(pin_verified, files, "records.toml"))
    reading = milliseconds(lambda: duckdb.sql(read.format(folder)).fetchall())
    return Figure("recording", recording / reading, None, "x reading", f"{recording:.0f} of {reading:.0f} ms")


def _first_hour(folder: Path) -> Iterator[Figure]:
    """Yield the time of each command; the policy that init writes is not filled in, another one is taken."""
    policy, total = _policy(folder, "first", _HOP, of_files=True), 0.0
    tables = [str(folder / table) for table in _TABLES]
    first = _HOPS["hop, sum by kind"]
    steps: list[tuple[str, Path, list[str]]] = [
        ("init", folder / "init.toml", ["init", *tables]),
        ("check", policy, ["check"]),
        ("budget create", policy, ["budget", "create"]),
        ("first answer", policy, ["query", "--epsilon", "1", first]),
    ]
    more: list[tuple[str, Path, list[str]]] = [
        ("check, files recorded", policy, ["check"]),
        ("check --data", policy, ["check", "--data"]),
        ("refresh", policy, ["refresh"]),
    ]
    for name, path, words in steps:
        seconds = _command(path, words)
        total += seconds
        yield Figure(name, seconds, None, "s")
    yield Figure("from files to a first answer", total, _MINUTES, "s")
    for name, path, words in more:
        yield Figure(name, _command(path, words), None, "s")


def _command(policy: Path, words: list[str]) -> float:
    command = [sys.executable, "-m", "dpsql.cli", "-P", str(policy), *words]
    return milliseconds(partial(subprocess.run, command, capture_output=True, check=True)) / 1000


def _compared(folder: Path, name: str, unit: str, statements: dict[str, str], size: Size) -> Iterator[Figure]:
    policies = [_policy(folder, name, unit, of_files=of_files) for of_files in (False, True)]
    for policy in policies:
        _command(policy, ["budget", "create"])
    with Session.open(policies[0]) as native, Session.open(policies[1]) as files:
        for session in (native, files):
            session.execute("SET dpsql.reuse = off")
        for shown, sql in statements.items():
            raw, ours = (partial(Times.of, partial(session.execute, sql)) for session in (native, files))
            raw(), ours()
            found = compare(raw, ours, max(2, size.repeats // 2))
            yield Figure(shown, found.ratio, _LIMIT, "x native", str(found))
