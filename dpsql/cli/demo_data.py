"""The demo's university: invented people in a DuckDB file.

The seeded generator below makes the demo's *data* only, so that every newcomer sees the same university.
It has nothing to do with the noise of an answer, which comes from the operating system and takes no seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Columns = dict[str, NDArray[np.generic]]

__all__ = ["BRANCHES", "MAJORS", "SEMESTERS", "write_database"]

MAJORS = ("Biology", "CS", "EE", "History", "Maths", "ME")
SEMESTERS = tuple(f"{year}-{half}" for year in (2023, 2024, 2025) for half in ("spring", "autumn"))
BRANCHES = ("Central", "Harbour", "Law", "Medicine", "Science")

_STUDENTS = 20_000
_COURSES = 120
_LOANS = 300_000

_SCHEMA = """
CREATE TABLE student (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  gpa DECIMAL(3,2) NOT NULL,
  major TEXT NOT NULL,
  enrolled INTEGER NOT NULL,
  born DATE NOT NULL
);
CREATE TABLE course (
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  department TEXT NOT NULL,
  credits INTEGER NOT NULL
);
CREATE TABLE enrolment (
  student_id INTEGER NOT NULL REFERENCES student (id),
  course_id INTEGER NOT NULL,
  semester TEXT NOT NULL,
  grade DECIMAL(2,1)
);
CREATE TABLE loan (
  id INTEGER PRIMARY KEY,
  student_id INTEGER NOT NULL REFERENCES student (id),
  branch TEXT NOT NULL,
  loaned_on DATE NOT NULL,
  days_out INTEGER,
  fee DECIMAL(6,2)
);
"""

_FILL = {
    "student": "id, first[name % 40 + 1] || ' ' || last[name // 40 + 1], (gpa / 100)::DECIMAL(3,2), "
    "majors[major + 1], enrolled, DATE '1995-01-01' + born::INTEGER",
    "course": "id, majors[department + 1] || ' ' || (100 + id), majors[department + 1], credits",
    "enrolment": "student, course, semesters[semester + 1], "
    "CASE WHEN grade < 0 THEN NULL ELSE (grade / 10)::DECIMAL(2,1) END",
    "loan": "id, student, branches[branch + 1], DATE '2025-01-01' + loaned::INTEGER, "
    "CASE WHEN days < 0 THEN NULL ELSE days END, "
    "CASE WHEN fee < 0 THEN NULL ELSE (fee / 100)::DECIMAL(6,2) END",
}
_FIRST_NAMES = """
    Ada Alan Amara Ana Arun Ben Bo Carla Chen Dana David Elif Emma Femi Grace Hana Hugo Ines Ivan Jun
    Kai Lea Leo Lin Maya Mia Nils Noor Olga Omar Paul Petra Ravi Rosa Sara Sven Tara Theo Uma Yuki
"""
_LAST_NAMES = """
    Adler Baker Costa Diaz Evans Fischer Garcia Haas Ito Jensen Kim Lopez Meyer Novak Okafor Park
    Quinn Rossi Sato Tan Ueda Vogel Weber Xu Young
"""


def write_database(path: Path) -> None:
    """Write the university to a new DuckDB file at `path` (about one second, 20 MB at most).

    Raises OSError. 20,000 students, 120 courses, some 130,000 enrolments, 300,000 library loans, skewed per student.
    """
    import duckdb

    lists = {
        "first": _FIRST_NAMES.split(),
        "last": _LAST_NAMES.split(),
        "majors": MAJORS,
        "branches": BRANCHES,
        "semesters": SEMESTERS,
    }
    texts = ", ".join(f"{_sql_list(values)} AS {name}" for name, values in lists.items())
    try:
        with duckdb.connect(str(path)) as connection:
            connection.execute(_SCHEMA)
            connection.begin()
            for table, columns in _columns().items():
                connection.register("made", columns)
                connection.execute(f"INSERT INTO {table} SELECT {_FILL[table]} FROM made, (SELECT {texts})")
                connection.unregister("made")
            connection.commit()
    except duckdb.IOException as error:
        raise OSError(f"{path.name} cannot be written") from error


def _sql_list(values: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


def _columns() -> dict[str, Columns]:
    """Return the raw numbers of every table, parents first."""
    import numpy as np

    rng = np.random.default_rng(1729)
    ids = np.arange(1, _STUDENTS + 1)
    major = rng.choice(len(MAJORS), _STUDENTS, p=[0.18, 0.27, 0.15, 0.11, 0.10, 0.19])
    lift = np.array([4, 0, -6, 10, -2, -4])[major]
    enrolled = rng.integers(2019, 2026, _STUDENTS)
    student = {
        "id": ids,
        "name": rng.integers(0, 40 * 25, _STUDENTS),
        "gpa": np.clip(np.rint(rng.normal(312, 42, _STUDENTS)) + lift, 200, 400).astype(np.int64),
        "major": major,
        "enrolled": enrolled,
        "born": (enrolled - 2014) * 365 + rng.integers(0, 1200, _STUDENTS),
    }
    course = {
        "id": np.arange(1, _COURSES + 1),
        "department": np.arange(_COURSES) % len(MAJORS),
        "credits": rng.integers(2, 7, _COURSES),
    }
    return {
        "student": student,
        "course": course,
        "enrolment": _enrolments(rng, ids, major),
        "loan": _loans(rng, ids, major),
    }


def _enrolments(rng: Any, ids: Any, major: Any) -> Columns:
    """Two to eleven courses a student, most of them of the own department; grades 1.0 to 4.0, some open."""
    import numpy as np

    owner = np.repeat(np.arange(_STUDENTS), rng.integers(2, 12, _STUDENTS))
    count = len(owner)
    own_department = rng.random(count) < 0.7
    department = np.where(own_department, major[owner], rng.integers(0, len(MAJORS), count))
    grade = np.clip(np.rint(rng.normal(31, 6, count)), 10, 40).astype(np.int64)
    return {
        "student": ids[owner],
        "course": department + len(MAJORS) * rng.integers(0, _COURSES // len(MAJORS), count) + 1,
        "semester": rng.integers(0, len(SEMESTERS), count),
        "grade": np.where(rng.random(count) < 0.05, -1, grade),
    }


def _loans(rng: Any, ids: Any, major: Any) -> Columns:
    """Skewed: many students borrow a few books, some borrow dozens; mostly at one branch, in three months."""
    import numpy as np

    weight = np.minimum(rng.lognormal(0.0, 0.4, _STUDENTS), 5.0)
    owner = np.sort(rng.choice(_STUDENTS, _LOANS, p=weight / weight.sum()))
    home = np.array([3, 4, 4, 0, 4, 1])[major]
    away = rng.random(_LOANS) < 0.08
    branch = np.where(away, rng.integers(0, len(BRANCHES), _LOANS), home[owner])
    busy = rng.choice(12, (_STUDENTS, 3), p=np.array([9, 8, 10, 9, 11, 8, 4, 3, 6, 11, 12, 9]) / 100)
    month = busy[owner, rng.integers(0, 3, _LOANS)]
    starts = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])
    days = np.minimum(rng.geometric(0.07, _LOANS), 60)
    late = np.maximum(days - 28, 0) * 25
    return {
        "id": np.arange(1, _LOANS + 1),
        "student": ids[owner],
        "branch": branch,
        "loaned": starts[month] + rng.integers(0, 28, _LOANS),
        "days": np.where(rng.random(_LOANS) < 0.04, -1, days),
        "fee": np.where(rng.random(_LOANS) < 0.03, -1, late),
    }
