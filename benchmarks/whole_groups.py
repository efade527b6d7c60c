"""Fifteen one- and two-way tables and their total: what they cost and how exact they are, and that they add up.

Beside it what they cost where only the listed groups are drawn, as they were before; which orders of asking pay most;
and how long the estimate behind them takes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import stdev
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size, milliseconds
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.batch import price_batch, read_batch, run_batch
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.plan.privacy.axes import Partition
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import parse_policy
from dpsql.release.estimate import PARTS, Design, Forms, Sums, design_of
from dpsql.release.run import PlanRunner

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
_OF_CAMPUS = ("major", "enrolled", "FLOOR(gpa / 0.25) * 0.25", "gpa >= 3", "EXTRACT(YEAR FROM born)")
_PAID = {"pure": (1.30, 1.17), "zcdp": (0.062, 0.0506)}
"""What the demo's fifteen tables may cost asked one by one: in the order of a file, and by two keys first."""
_EXACT = {"pure": 16.0, "zcdp": 2.97}
_LEAST_COVERED = 93.0
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
        yield from _of_campus(size, accounting)
        yield from _at_once(size, database, accounting)
    each = [c for k in (1, 2) for c in itertools.combinations(range(len(_SIZES)), k)]
    kept = [tuple((_blocks if i in c else Partition.whole)(n) for i, n in enumerate(_SIZES)) for c in each]
    yield Figure(
        "the estimate of fifteen tables over 6,720 cells", _time(_SIZES, kept, size.repeats), 50.0, "ms"
    )
    kept = [
        (_blocks(1826, days), own(50)) for days in (1, 7, 31, 93, 365) for own in (_blocks, Partition.whole)
    ]
    longest = _time((1826, 50), kept, size.repeats)
    yield Figure(
        "the longest: five years by day and less often, by fifty groups and in all", longest, 1000.0, "ms"
    )
    errors = _time_of_errors((1826, 50), kept)
    yield Figure("the error of two numbers of it", errors, 1000.0, "ms")


def _of_campus(size: Size, accounting: str) -> Iterator[Figure]:
    """Yield what the demo's fifteen one- and two-way tables cost asked one by one, and how far off they are expected to
    be where one release of epsilon 1 has them all."""
    columns = [f"{key} AS k{number}" for number, key in enumerate(_OF_CAMPUS)]
    one, two = (
        [
            f"SELECT {', '.join(some)}, COUNT(*) AS n FROM student GROUP BY ALL"
            for some in itertools.combinations(columns, k)
        ]
        for k in (1, 2)
    )
    orders = (("in the order of a file", [*one, *two]), ("the finest first", [*two, *one]))
    for (name, order), most in zip(orders, _PAID[accounting], strict=True):
        with _campus(size, accounting, f"fifteen-{len(name)}") as session:
            for sql in order:
                session.execute(sql)
            spent = _spent(session, accounting)
        unit = "rho" if accounting == "zcdp" else "epsilon"
        yield Figure(f"the demo's 15 tables, {accounting}, {name}", float(spent), most, unit)
    with _campus(size, accounting, "fifteen-at-once") as session, _variances() as found:
        statements = read_batch(session, ";\n".join([*one, *two]))
        run_batch(session, statements, Fraction(1), price_batch(session, statements, Fraction(1)).charge)
    assert len(found) == len(statements)
    off = math.sqrt(sum(found) / len(found))
    yield Figure(
        f"the demo's 15 tables at epsilon 1, {accounting}, expected rms", off, _EXACT[accounting], "rows"
    )


def _campus(size: Size, accounting: str, name: str) -> Session:
    """Open a session on the demo with a ledger of its own."""
    text = make_campus(size).read_text("utf-8")
    text = text.replace("[privacy]\n", f'[privacy]\naccounting = "{accounting}"\n', 1)
    path = make_campus(size).with_name(f"{name}-{accounting}.toml")
    path.write_text(text.replace("campus-ledger", path.stem, 1), "utf-8")
    open_ledger(parse_policy(path.read_text("utf-8"), path), create=True)
    return Session.open(path)


@contextmanager
def _variances() -> Iterator[list[float]]:
    """Give the mean variance of a number, with rounding, of each statement that is answered in the block."""
    answer, found = Session.answer, list[float]()

    def see(
        self: Session, prepared: Any, runner: PlanRunner, charge: Any, public: Any, kept: Any,
        rows: Any = None, *rest: Any,
    ) -> Any:  # fmt: skip
        first = (rows or runner.rows)[0]
        (told,), unit = first.fitted[0], first.plan.measurements[0].denominator
        found.append(float((told.variances + np.array(told.rounding)).mean()) / unit**2 + 1 / 12)
        return answer(self, prepared, runner, charge, public, kept, rows, *rest)

    with patch.object(Session, "answer", see):
        yield found


def _at_once(size: Size, database: Path, accounting: str) -> Iterator[Figure]:
    """Yield how far off fifteen tables of one release are, how often their bars hold, and how far totals are apart."""
    texts, found = [*_ONE, *_TWO], list[list[list[Any]]]()
    for _ in range(10 if size.rows >= 1_000_000 else 2):
        with _session(size, database, accounting) as session:
            session.execute("SET dpsql.intervals = 0.95")
            statements = read_batch(session, ";\n".join(texts))
            price = price_batch(session, statements, Fraction(1))
            answers = run_batch(session, statements, Fraction(1), price.charge)
            found.append([list(answer.rows) for answer in answers])
    totals = [[sum(row[-3] for row in rows) for rows in tables] for tables in found]
    apart = max(max(own) - min(own) for own in totals)
    yield Figure(f"totals of fifteen released tables, {accounting}, apart", float(apart), 0.0, "rows")
    with duckdb.connect(str(database), read_only=True) as connection:
        truths = [{row[:-1]: row[-1] for row in connection.execute(text).fetchall()} for text in texts]
    off, is_held = list[float](), list[bool]()
    for tables in found:
        squares = []
        for rows, truth in zip(tables, truths, strict=True):
            exact = [truth.get(tuple(row[:-3]), 0) for row in rows]
            squares.append(sum((row[-3] - n) ** 2 for row, n in zip(rows, exact, strict=True)) / len(rows))
            is_held += [row[-2] <= n <= row[-1] for row, n in zip(rows, exact, strict=True)]
        off.append(sum(squares) / len(squares))
    mean = sum(off) / len(off)
    slack = 1 + 1.5 * stdev(off) / math.sqrt(len(off)) / mean
    said = f"{_EXACT[accounting]:g}, and three deviations of {len(off)} releases"
    yield Figure(
        f"fifteen tables at epsilon 1, {accounting}, rms",
        math.sqrt(mean),
        _EXACT[accounting] * slack,
        "rows",
        said,
    )
    covered = 100 * sum(is_held) / len(is_held)
    yield Figure(
        f"their bars at 95 % hold the truth, {accounting}", covered, _LEAST_COVERED, "%",
        f"of {len(is_held)} numbers", is_rate=True,
    )  # fmt: skip


def _blocks(atoms: int, width: int = 1) -> Partition:
    return Partition(tuple(atom // width for atom in range(atoms)))


def _time(sizes: tuple[int, ...], kept: Sequence[tuple[Partition, ...]], repeats: int) -> float:
    """Return how long it takes to estimate the table behind draws by some partitions of its axes."""
    drawn, source = tuple(map(Sums, kept)), np.random.default_rng(7)
    design = design_of(sizes, drawn, (200.0,) * len(drawn))
    assert design is not None
    cells = source.poisson(20, (1, *sizes))
    exact = [one.of(cells)[0] for one in drawn]
    noised = [own + np.rint(source.normal(0, math.sqrt(200), own.size)).astype(int) for own in exact]
    numbers = [[PARTS * one for one in own.tolist()] for own in noised]
    return min(milliseconds(partial(design.table, numbers)) for _ in range(max(3, repeats)))


def _time_of_errors(sizes: tuple[int, ...], kept: Sequence[tuple[Partition, ...]]) -> float:
    """Return how long it takes to work out how far off as many kinds of numbers are as may be."""
    drawn = tuple(map(Sums, kept))
    design = Design(sizes, drawn, (200.0,) * len(drawn))
    halves = Sums((_blocks(sizes[0], sizes[0] // 2), Partition.whole(sizes[1])))
    found = list[Forms | None]()
    took = milliseconds(lambda: found.append(design.forms(halves)))
    assert found[0] is not None
    return took


def _charged(
    size: Size, database: Path, accounting: str, statements: Sequence[str], *, told: bool = True
) -> Fraction:
    with _session(size, database, accounting, told=told) as session:
        for text in statements:
            session.execute(text)
        return _spent(session, accounting)


def _spent(session: Session, accounting: str) -> Fraction:
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
