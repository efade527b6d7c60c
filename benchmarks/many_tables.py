"""Opening a policy of many tables, or of many columns: without the engine's own opening of the file, and half of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.dataset import HEAD
from benchmarks.figure import Figure, Size, Times
from dpsql import Session
from dpsql.backends import open_backend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import load_policy

__all__ = ["measure"]


def measure(size: Size) -> Iterator[Figure]:
    """Yield what a session costs to open beside the file itself, and what twice as much costs more."""
    for name, tables, columns in (("500 tables", 500, 4), ("1,000 columns", 1, 1_000)):
        half = _cost(size, max(1, tables // 2), columns // (1 if tables > 1 else 2))
        whole = _cost(size, tables, columns)
        yield Figure(f"open of {name}, without the engine's", whole, 0.2, "s")
        yield Figure(f"open of {name}, beside half as many", whole / half, 2.6, "x")


def _cost(size: Size, tables: int, columns: int) -> float:
    path = _made(size.folder, tables, columns)
    policy = load_policy(path.with_suffix(".toml"))
    open_ledger(policy, create=not path.with_suffix(".ledger").exists()).close()
    both = [(_processor(partial(_open, path)), _processor(partial(_raw, path))) for _ in range(size.repeats)]
    return min(ours - raw for ours, raw in both)


def _processor(action: partial[None]) -> float:
    return Times.of(action).processor / 1000


def _raw(path: Path) -> None:
    duckdb.connect(str(path), read_only=True).close()


def _open(path: Path) -> None:
    policy = load_policy(path.with_suffix(".toml"))
    with Session(Dataset(policy, open_backend(policy.database), open_ledger(policy, create=False))):
        pass


def _made(folder: Path, tables: int, columns: int) -> Path:
    path = folder / f"many-{tables}-{columns}.duckdb"
    if path.exists():
        return path
    named = [f"c{number}" for number in range(columns)]
    declared = "\n".join(f"{name} = {{ bounds = [0, 10] }}" for name in named)
    text = [HEAD.format(database=f"duckdb:{path}", ledger=path.with_suffix(".ledger"))]
    text.append('[tables.person]\nunit = "id"')
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE person (id BIGINT PRIMARY KEY)")
        for number in range(tables):
            held = "".join(f", {name} INTEGER" for name in named)
            connection.execute(f"CREATE TABLE t{number} (owner BIGINT NOT NULL REFERENCES person (id){held})")
            unit = 'unit = { column = "owner", references = "person.id" }\nmax_rows = 5'
            text.append(f"[tables.t{number}]\n{unit}\n[tables.t{number}.columns]\n{declared}")
    path.with_suffix(".toml").write_text("\n".join(text))
    return path
