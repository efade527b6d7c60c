"""Norms by a column in a zCDP dataset: the noise of the demo's loans by day and enrolments by course, and the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.dataset import HEAD, VISITORS, make_database
from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size, Times, compare
from dpsql import Session
from dpsql.engine.dataset import open_ledger
from dpsql.policy import parse_policy

__all__ = ["measure"]

_NORMS = (
    ("loan", "max_rows   = 60\n", "loaned_on", 9, 95.0),
    ("enrolment", "max_rows = 12 ", "course_id", 5, 52.0),
)
"""Tables of the demo, their bound as it is written, the column, T, and the most that a deviation at 0.1 may be."""
_COUNT = "SELECT month, COUNT(*) FROM visit GROUP BY month"


def measure(size: Size) -> Iterator[Figure]:
    """Yield the deviation of counts by a column with a norm, and the time of a statement beside the same without."""
    campus = make_campus(size)
    text = campus.read_text("utf-8").replace("[privacy]\n", '[privacy]\naccounting = "zcdp"\n', 1)
    for table, bound, column, most, limit in _NORMS:
        found = []
        for number, norm in enumerate(("", f"max_norm = {{ {column} = {most} }}\n")):
            changed = text.replace("campus-ledger", f"{table}-{number}", 1).replace(bound, norm + bound, 1)
            with _opened(campus.with_name(f"{table}-{number}.toml"), changed) as session:
                sql = f"SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}"
                (release,) = session.explain(sql).plan.releases
                found.append(float(release.measures[0].scale / release.measurements[0].denominator))
        yield Figure(
            f"{table} by {column} at 0.1, deviation", found[1], limit, "rows", f"{found[0]:g} without"
        )
    yield _time(size)


def _time(size: Size) -> Figure:
    """Return how long a count by month takes with a norm by month that most people are beyond."""
    head = HEAD.replace("delta = 0.5", 'delta = 0.5\naccounting = "zcdp"')
    tables = VISITORS.format(rows=60, groups=20)
    with ExitStack() as stack:
        runs = []
        for number, norm in enumerate(("", "max_norm = { month = 3 }\n")):
            ledger = size.folder / f"norm-{number}.db"
            text = head.format(database=f"duckdb:{make_database(size)}", ledger=ledger) + tables
            text = text.replace("max_rows = 60\n", f"max_rows = 60\n{norm}")
            session = stack.enter_context(_opened(size.folder / f"norm-{number}.toml", text))
            session.execute("SET dpsql.reuse = off")
            session.execute(_COUNT)
            runs.append(partial(Times.of, partial(session.execute, _COUNT)))
        found = compare(*runs, max(2, size.repeats // 2))
    return Figure(
        "a count by month with a norm by month, beside one without", found.ratio, 8.0, "x", str(found)
    )


@contextmanager
def _opened(path: Path, text: str) -> Iterator[Session]:
    path.write_text(text, "utf-8")
    open_ledger(parse_policy(text, path), create=True)
    with Session.open(path) as session:
        yield session
