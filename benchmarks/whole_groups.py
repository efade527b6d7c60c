"""Fifteen one- and two-way tables and their total: what they cost where groups are all rows, and that they add up.

Beside it what they cost where only the listed groups are drawn, as they were before; which orders of asking pay most.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import duckdb

from benchmarks.figure import Figure, Size
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.batch import price_batch, read_batch, run_batch
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import parse_policy

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
major = {{ values = ["Art", "Biology", "CS", "Law"], complete = true }}
year = {{ bounds = [2019, 2025], complete = true }}
grade = {{ bounds = [0, 9], complete = true }}
home = {{ values = ["near", "far"], complete = true }}
level = {{ bounds = [1, 3], complete = true }}
"""
_KEYS = ("major", "year", "grade", "home", "level")
_ONE = tuple(f"SELECT {key}, COUNT(*) FROM student GROUP BY {key}" for key in _KEYS)
_TWO = tuple(
    f"SELECT {a}, {b}, COUNT(*) FROM student GROUP BY {a}, {b}" for a, b in itertools.combinations(_KEYS, 2)
)
_TOTAL = ("SELECT COUNT(*) FROM student",)
_SHOWN = {"pure": (1.6, 1.4), "zcdp": (0.08, 0.07)}


def measure(size: Size) -> Iterator[Figure]:
    """Yield what sixteen statements cost asked one by one, and how far the totals of a released file are apart."""
    database = _make_students(size.folder / "whole_groups.duckdb")
    unit = {"pure": "epsilon", "zcdp": "rho"}
    for accounting, (most, least) in _SHOWN.items():
        with patch.object(ReleasePlan, "axes", None):
            before = float(_charged(size, database, accounting, (*_TWO, *_ONE, *_TOTAL), told=False))
        for name, order, bound in (
            ("in the order of a file", (*_TOTAL, *_ONE, *_TWO), most),
            ("the finest first", (*_TWO, *_ONE, *_TOTAL), least),
        ):
            charged = float(_charged(size, database, accounting, order))
            said = f"{before:.4g} where only listed groups are drawn"
            yield Figure(f"sixteen tables, {accounting}, {name}", charged, bound, unit[accounting], said)
        with _session(size, database, accounting) as session:
            texts = [*_TOTAL, *_ONE, *_TWO[:6]]
            statements = read_batch(session, ";\n".join(texts))
            price = price_batch(session, statements, Fraction(1))
            answers = run_batch(session, statements, Fraction(1), price.charge)
            totals = [sum(row[-1] for row in answer.rows) for answer in answers]
            apart = max(totals) - min(totals)
            yield Figure(f"totals of twelve released tables, {accounting}, apart", float(apart), 0.0, "rows")


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
                "INSERT INTO student SELECT i, ['Art', 'Biology', 'CS', 'Law'][1 + (hash(i) % 4)::INTEGER], "
                "2019 + hash(i + 1) % 7, hash(i + 2) % 10, ['near', 'far'][1 + (hash(i + 3) % 2)::INTEGER], "
                "1 + hash(i + 4) % 3 FROM range(20000) AS t(i)"
            )
    return path
