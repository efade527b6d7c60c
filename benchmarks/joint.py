"""What is drawn together: how far off variances, averages and correlations are, through the real planner."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

import duckdb
import numpy as np
import numpy.typing as npt

from benchmarks.dataset import HEAD
from benchmarks.figure import Figure, Size, Times
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.mechanisms import Box, SampledNoise
from dpsql.policy import parse_policy

__all__ = ["measure_joint"]

Pairs = npt.NDArray[np.float64]
_BOX = Box(Fraction(10), (1, 200, 40_000))


def _uniform(random: np.random.Generator, rows: int) -> Pairs:
    return random.integers(0, 201, (2, rows)) / 100 + 2


def _ends(random: np.random.Generator, rows: int) -> Pairs:
    return random.integers(0, 2, (2, rows)) * 2.0 + 2


def _normal(random: np.random.Generator, rows: int) -> Pairs:
    """Two values in [2, 4] with a correlation of about 0.6."""
    first, second = random.normal(0, 0.45, (2, rows))
    return np.clip(np.round(np.stack([3.1 + first, 3.1 + 0.6 * first + 0.8 * second]), 2), 2, 4)


_ASKED: tuple[tuple[str, Callable[[np.random.Generator, int], Pairs], int, str, float, float], ...] = (
    ("VAR, uniform", _uniform, 50_000, "VAR_POP(y)", 1e4, 2.70),
    ("VAR, at the ends", _ends, 50_000, "VAR_POP(y)", 1e4, 2.53),
    ("AVG beside VAR", _normal, 50_000, "AVG(y), VAR_POP(y)", 1e2, 0.0562),
    ("CORR, 5,000 rows", _normal, 5_000, "CORR(y, x)", 1, 0.099),
    ("CORR, 50,000 rows", _normal, 50_000, "CORR(y, x)", 1, 0.0101),
    ("REGR_SLOPE, 50,000 rows", _normal, 50_000, "REGR_SLOPE(y, x)", 1, 0.0102),
    ("COVAR_POP, 50,000 rows", _normal, 50_000, "COVAR_POP(y, x)", 1, 0.00086),
)
"""Data in [2, 4] in steps of 0.01, rows, what is asked at epsilon 0.1, a unit, and the prototypes' error in it."""

_POLICY = """
[tables.person]
unit = "id"
[tables.person.columns]
y = { bounds = [2, 4] }
x = { bounds = [2, 4] }
"""


def measure_joint(size: Size) -> Iterator[Figure]:
    """Yield vectors a second, and errors beside those of the prototypes."""
    best = min(
        Times.of(lambda: SampledNoise().vectors(_BOX, 3, size.draws)).processor for _ in range(size.repeats)
    )
    yield Figure("vectors of three", size.draws / best * 1000, 300_000, "/s", is_rate=True)
    draws = max(20, size.draws // 5_000)
    for number, (name, make, rows, asked, unit, prototype) in enumerate(_ASKED):
        values = make(np.random.default_rng(7), rows)
        with _opened(size, f"joint-{number}", values) as (session, connection):
            ((exact, *_),) = connection.execute(f"SELECT {asked} FROM person").fetchall()
            errors = [(_answer(session, asked) - float(exact)) * unit for _ in range(draws)]
        error = math.sqrt(float(np.mean(np.square(errors))))
        # the error of a mean square over so few draws, at three deviations
        slack = 1 + 3 * float(np.std(np.square(errors))) / math.sqrt(draws) / error**2 / 2
        yield Figure(f"error of {name}, epsilon 0.1", error, 1.1 * prototype * slack, "")


def _answer(session: Session, asked: str) -> float:
    value = session.execute(f"SELECT {asked} FROM person").rows[0][0]
    assert value is not None
    return float(str(value))


@contextmanager
def _opened(size: Size, name: str, values: Pairs) -> Iterator[tuple[Session, duckdb.DuckDBPyConnection]]:
    """Open a session over persons with two values each, and the connection below it."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE person (id BIGINT PRIMARY KEY, y DECIMAL(3,2) NOT NULL, x DECIMAL(3,2) NOT NULL)"
    )
    y, x = values
    connection.register("given", {"id": np.arange(len(y)), "y": y, "x": x})
    connection.execute("INSERT INTO person SELECT id, y, x FROM given")
    ledger = size.folder / f"{name}.db"
    policy = parse_policy(
        HEAD.format(database="duckdb:none", ledger=ledger) + _POLICY, size.folder / f"{name}.toml"
    )
    with Session(
        Dataset(policy, DuckDBBackend.over(connection), open_ledger(policy, create=True))
    ) as session:
        session.execute("SET dpsql.epsilon = 0.1")
        session.execute("SET dpsql.reuse = off")
        yield session, connection
    connection.close()
