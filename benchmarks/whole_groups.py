"""Fifteen one- and two-way tables and their total: what they cost and how exact they are, and that they add up.

Beside it what they cost where only the listed groups are drawn, as they were before; which orders of asking pay most;
and how long the estimate behind them takes.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb

from benchmarks.figure import Figure, Size, milliseconds
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.batch import price_batch, read_batch, run_batch
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.plan.privacy.axes import Partition
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import parse_policy
from dpsql.release.estimate import PARTS, Sums, design_of

__all__ = ["measure"]

_POLICY = """
database = "duckdb:{database}"
ledger = "sqlite:{ledger}"
[privacy]
epsilon = 100
delta = 1e-6
accounting = "{accounting}"
[defaults]
epsilon = 0.1
[tables.student]
unit = "id"
[tables.student.columns]
major = {{ values = ["Art", "Biology", "CS", "History", "Law", "Music"], complete = true }}
year = {{ bounds = [2019, 2025], complete = true }}
grade = {{ bounds = [0, 9], complete = true }}
home = {{ values = ["near", "far"], complete = true }}
level = {{ bounds = [1, 8], complete = true }}
"""
_KEYS = ("major", "year", "grade", "home", "level")
_ONE = tuple(f"SELECT {key}, COUNT(*) FROM student GROUP BY {key}" for key in _KEYS)
_TWO = tuple(
    f"SELECT {a}, {b}, COUNT(*) FROM student GROUP BY {a}, {b}" for a, b in itertools.combinations(_KEYS, 2)
)
_MIXED = tuple(
    text
    for place, key in enumerate(_KEYS)
    for text in (_ONE[place], *(one for one in _TWO if one.startswith(f"SELECT {key},")))
)
"""Each key's table, then those of it and the keys behind it."""
_TOTAL = ("SELECT COUNT(*) FROM student",)
_SHOWN = {"pure": (1.4, 1.2, 1.35), "zcdp": (0.062, 0.052, 0.056)}
_EXACT = {"pure": 18.0, "zcdp": 3.4}
"""One release is drawn: on average it is 16.0 and 2.97."""
_SIZES = (6, 7, 10, 2, 8)


def measure(size: Size) -> Iterator[Figure]:
    """Yield what sixteen statements cost asked one by one, and how far the totals of a released file are apart."""
    database = _make_students(size.folder / "whole_groups.duckdb")
    unit = {"pure": "epsilon", "zcdp": "rho"}
    for accounting, (most, least, mixed) in _SHOWN.items():
        with patch.object(ReleasePlan, "axes", None):
            before = float(_charged(size, database, accounting, (*_TWO, *_ONE, *_TOTAL), told=False))
        for name, order, bound in (
            ("in the order of a file", (*_TOTAL, *_ONE, *_TWO), most),
            ("the finest first", (*_TWO, *_ONE, *_TOTAL), least),
            ("each key's before the next", _MIXED, mixed),
        ):
            charged = float(_charged(size, database, accounting, order))
            said = f"{before:.4g} where only listed groups are drawn"
            yield Figure(f"{len(order)} tables, {accounting}, {name}", charged, bound, unit[accounting], said)
        with _session(size, database, accounting) as session:
            texts = [*_ONE, *_TWO]
            statements = read_batch(session, ";\n".join(texts))
            price = price_batch(session, statements, Fraction(1))
            tables: list[list[Any]] = [
                list(answer.rows) for answer in run_batch(session, statements, Fraction(1), price.charge)
            ]
        totals = [sum(row[-1] for row in rows) for rows in tables]
        yield Figure(
            f"totals of fifteen released tables, {accounting}, apart",
            float(max(totals) - min(totals)),
            0.0,
            "rows",
        )
        with duckdb.connect(str(database), read_only=True) as connection:
            truths = [{row[:-1]: row[-1] for row in connection.execute(text).fetchall()} for text in texts]
        off = [
            math.sqrt(sum((row[-1] - truth.get(tuple(row[:-1]), 0)) ** 2 for row in rows) / len(rows))
            for rows, truth in zip(tables, truths, strict=True)
        ]
        yield Figure(
            f"fifteen tables at epsilon 1, {accounting}, rms", sum(off) / len(off), _EXACT[accounting], "rows"
        )
    yield Figure("the estimate of fifteen tables over 6,720 cells", min(_times(size.repeats)), 50.0, "ms")


def _times(repeats: int) -> list[float]:
    """Return how long it takes to estimate the table behind fifteen draws."""
    each, whole = (lambda n: Partition(tuple(range(n)))), Partition.whole
    chosen = [c for k in (1, 2) for c in itertools.combinations(range(len(_SIZES)), k)]
    drawn = tuple(Sums(tuple((each if i in c else whole)(n) for i, n in enumerate(_SIZES))) for c in chosen)
    design = design_of(_SIZES, drawn, (200.0,) * len(drawn))
    assert design is not None
    source = random.Random(7)
    numbers = [[PARTS * source.randrange(1000) for _ in range(one.size)] for one in drawn]
    return [milliseconds(partial(design.table, numbers)) for _ in range(max(3, repeats))]


def _charged(
    size: Size, database: Path, accounting: str, statements: Sequence[str], *, told: bool = True
) -> Fraction:
    with _session(size, database, accounting, told=told) as session:
        for text in statements:
            session.execute(text)
        status = session.budget()
        if accounting == "zcdp":
            return Fraction(status.rho_spent_atto, 10**18)
        return Fraction(status.epsilon_spent_nano, 10**9)


def _session(size: Size, database: Path, accounting: str, *, told: bool = True) -> Session:
    """Open a session; `told`: the policy says of the columns that they are complete."""
    ledger = f"whole-groups-{len(list(size.folder.glob('whole-groups-*.db')))}.db"
    text = _POLICY.format(database=database, ledger=ledger, accounting=accounting)
    text = text if told else text.replace(", complete = true", "")
    policy = parse_policy(text, size.folder / "whole_groups.toml")
    return Session(Dataset(policy, DuckDBBackend(database), open_ledger(policy, create=True)))


def _make_students(path: Path) -> Path:
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                "CREATE TABLE student (id INTEGER PRIMARY KEY, major TEXT NOT NULL, year INTEGER NOT NULL, "
                "grade INTEGER NOT NULL, home TEXT NOT NULL, level INTEGER NOT NULL);"
                "INSERT INTO student SELECT i, "
                "['Art', 'Biology', 'CS', 'History', 'Law', 'Music'][1 + (hash(i) % 6)::INTEGER], "
                "2019 + hash(i + 1) % 7, hash(i + 2) % 10, ['near', 'far'][1 + (hash(i + 3) % 2)::INTEGER], "
                "1 + hash(i + 4) % 8 FROM range(20000) AS t(i)"
            )
    return path
