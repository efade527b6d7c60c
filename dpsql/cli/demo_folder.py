"""The demo's folder: what is in it, and the two policies that a reader may take as a model.

House rule: only files that the demo itself names are ever removed, and only on `--fresh`. A ledger is
never reset in passing: what was spent stays spent (law L5), in a demo too.

The demo's university: invented people in a DuckDB file.

The seeded generator below makes the demo's *data* only, so that every newcomer sees the same university.
It has nothing to do with the noise of an answer, which comes from the operating system and takes no seed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .owner import open_ledger, write_private

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Columns = dict[str, NDArray[np.generic]]

# --- the demo's university: invented people in a DuckDB file ------------------------------------------------


_MAJORS = ("Biology", "CS", "EE", "History", "Maths", "ME")
_SEMESTERS = tuple(f"{year}-{half}" for year in (2023, 2024, 2025) for half in ("spring", "autumn"))
_BRANCHES = ("Central", "Harbour", "Law", "Medicine", "Science")

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
CREATE TABLE review (
  id INTEGER PRIMARY KEY,
  reviewer INTEGER NOT NULL REFERENCES student (id),
  reviewed INTEGER NOT NULL REFERENCES student (id),
  stars INTEGER NOT NULL
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
    "review": "id, reviewer, reviewed, stars",
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

    Raises OSError. 20,000 students, 120 courses, some 130,000 enrolments, 300,000 library loans, skewed per student,
    some 40,000 reviews that students write of each other.
    """
    import duckdb

    lists = {
        "first": _FIRST_NAMES.split(),
        "last": _LAST_NAMES.split(),
        "majors": _MAJORS,
        "branches": _BRANCHES,
        "semesters": _SEMESTERS,
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
    major = rng.choice(len(_MAJORS), _STUDENTS, p=[0.18, 0.27, 0.15, 0.11, 0.10, 0.19])
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
        "department": np.arange(_COURSES) % len(_MAJORS),
        "credits": rng.integers(2, 7, _COURSES),
    }
    return {
        "student": student,
        "course": course,
        "enrolment": _enrolments(rng, ids, major),
        "loan": _loans(rng, ids, major),
        "review": _reviews(rng, ids, major),
    }


def _enrolments(rng: Any, ids: Any, major: Any) -> Columns:
    """Two to eleven courses a student, most of them of the own department; grades 1.0 to 4.0, some open."""
    import numpy as np

    owner = np.repeat(np.arange(_STUDENTS), rng.integers(2, 12, _STUDENTS))
    count = len(owner)
    own_department = rng.random(count) < 0.7
    department = np.where(own_department, major[owner], rng.integers(0, len(_MAJORS), count))
    grade = np.clip(np.rint(rng.normal(31, 6, count)), 10, 40).astype(np.int64)
    return {
        "student": ids[owner],
        "course": department + len(_MAJORS) * rng.integers(0, _COURSES // len(_MAJORS), count) + 1,
        "semester": rng.integers(0, len(_SEMESTERS), count),
        "grade": np.where(rng.random(count) < 0.05, -1, grade),
    }


def _loans(rng: Any, ids: Any, major: Any) -> Columns:
    """Skewed: many students borrow a few books, some borrow dozens; mostly at one branch, in three months."""
    import numpy as np

    weight = np.minimum(rng.lognormal(0.0, 0.4, _STUDENTS), 5.0)
    owner = np.sort(rng.choice(_STUDENTS, _LOANS, p=weight / weight.sum()))
    home = np.array([3, 4, 4, 0, 4, 1])[major]
    away = rng.random(_LOANS) < 0.08
    branch = np.where(away, rng.integers(0, len(_BRANCHES), _LOANS), home[owner])
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


def _reviews(rng: Any, ids: Any, major: Any) -> Columns:
    """None to four a student, of students of any major; those of one's own do better."""
    import numpy as np

    writer = np.repeat(np.arange(_STUDENTS), rng.integers(0, 5, _STUDENTS))
    count = len(writer)
    other = (writer + rng.integers(1, _STUDENTS, count)) % _STUDENTS
    stars = np.rint(rng.normal(3.6, 1.0, count) + 0.4 * (major[writer] == major[other]))
    return {
        "id": np.arange(1, count + 1),
        "reviewer": ids[writer],
        "reviewed": ids[other],
        "stars": np.clip(stars, 1, 5).astype(np.int64),
    }


# --- the demo's folder: what is in it, and the two policies that a reader may take as a model ---------------


ANALYST, PASSWORD = "analyst", "demo"
"""Who may connect to the demo's server. No secret: the people in the database are invented."""

DATABASE = "campus.duckdb"
MAIN_POLICY = "campus.toml"
TEXTBOOK_POLICY = "textbook.toml"

_HALF_MADE = "campus.duckdb.partial"


def _toml_list(values: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"


_CAMPUS = f"""\
# Written by `dpsql demo`. The people in this database are invented.
# One file says everything that the owner declares. What is not here does not exist for an analyst.

database = "duckdb:{DATABASE}"
ledger   = "sqlite:%(ledger)s"     # what was spent, and the released answers

[privacy]
epsilon    = %(total)-2d             # for everybody together, for ever: the most that can be learned about one student
delta      = 1e-6
neighbours = "add-remove"   # protects whether a student is in the database at all

[defaults]
epsilon     = 0.1           # for a statement, when the analyst sets none
max_epsilon = 1             # for a statement, whatever the analyst sets
delta       = 1e-9          # for a release whose group keys are not declared

# The root: one row per person. Its key is what is protected.
[tables.student]
unit = "id"
[tables.student.columns]
name     = {{}}                                        # may be counted, nothing more
gpa      = {{ bounds = [2.0, 4.0], step = 0.01 }}
major    = {{ values = {_toml_list(_MAJORS)}, complete = true }}
enrolled = {{ bounds = [2019, 2025], complete = true }}
born     = {{ bounds = [1999-01-01, 2009-12-31] }}

# A student has many loans. The librarian knows that hardly anyone borrows more than 60 books in a year: 60 loans
# of a student count in a result. Who has more counts with less of each, so that the noise need not hide more.
[tables.loan]
unit = {{ column = "student_id", references = "student.id" }}
max_rows   = 60
max_groups = 12      # of a student where group keys must be found in the data: so many people hide one
[tables.loan.columns]
branch    = {{ values = {_toml_list(_BRANCHES)}, complete = true }}
loaned_on = {{ bounds = [2025-01-01, 2025-12-31], complete = true }}
days_out  = {{ bounds = [0, 60] }}
fee       = {{ bounds = [0, 10] }}

[tables.enrolment]
unit = {{ column = "student_id", references = "student.id" }}
max_rows = 12       # nobody takes more courses than that
[tables.enrolment.columns]
course_id = {{ bounds = [1, 120] }}
semester  = {{ values = {_toml_list(_SEMESTERS)}, complete = true }}
grade     = {{ bounds = [1.0, 4.0] }}

# Students review each other: a row of two people. It is the writer's, of whom 4 count. `also` protects whom it is
# about, as long as 8 of those joined count of each; without it the column is best left out.
[tables.review]
unit = {{ column = "reviewer", references = "student.id" }}
max_rows = 4
also = [{{ column = "reviewed", references = "student.id", max_rows = 8 }}]
[tables.review.columns]
id    = {{}}
stars = {{ bounds = [1, 5], complete = true }}

# Nobody's data: answered as it is.
[tables.course]
public = true

# May connect to a server: `dpsql demo --serve` starts one, and says the password. What stands here is a
# verifier, from which the password cannot be read. For others: dpsql user add NAME
[analysts.{ANALYST}]
epsilon  = %(of_analyst)d                # a cap of this analyst's own, inside the common one
password = "%(password)s"
"""


def campus_policy(*, ledger: str = "campus-ledger.db", epsilon: int = 10, of_analyst: int = 5) -> str:
    """Return the campus' policy, its analyst's password with a salt of its own."""
    from ..pgwire import make_verifier

    return _CAMPUS % {
        "ledger": ledger, "total": epsilon, "of_analyst": of_analyst, "password": make_verifier(PASSWORD).text(),
    }  # fmt: skip


_TEXTBOOK = f"""\
# Written by `dpsql demo`: the textbook's example. Neighbours differ in one student's row being replaced,
# and the average is noised directly, with the width of its range as sensitivity.
# (Two ledgers over the same people add up. A real owner keeps one; this policy is here to be explained.)

database = "duckdb:{DATABASE}"
ledger   = "sqlite:textbook-ledger.db"

[privacy]
epsilon    = 1
delta      = 0
neighbours = "replace-one"

[defaults]
epsilon = 0.01

[tables.student]
unit = "id"
[tables.student.columns]
gpa = {{ bounds = [2.0, 4.0], step = 0.01 }}
"""


def make_folder(folder: Path, *, fresh: bool) -> bool:
    """Make the demo in `folder`, or leave the one that is there; return whether it was made now.

    Args:
        fresh: remove the demo's files first, its ledgers included.

    Raises click.UsageError when the folder holds anything that the demo did not write.
    """
    names, files = (MAIN_POLICY, TEXTBOOK_POLICY), (DATABASE, "campus-ledger.db", "textbook-ledger.db")
    return fill_folder(folder, "demo", names, files, _write_folder, fresh=fresh)


def fill_folder(
    folder: Path,
    command: str,
    policies: Sequence[str],
    files: tuple[str, ...],
    write: Callable[[Path], None],
    *,
    fresh: bool,
) -> bool:
    """Have a folder hold what `write` writes, its policies last; return whether that was written now.

    `command`: of dpsql, which makes it. `files`: the database and the ledgers, beside which files of the same name with
    something after it are kept.
    Raises click.UsageError: the folder holds anything else, or cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{folder} is a file. Name a folder: dpsql {command} DIR")
    entries = list(folder.iterdir()) if folder.exists() else []
    names = sorted(entry.name for entry in entries)
    if strangers := [name for name in names if name not in policies and not name.startswith(files)]:
        raise click.UsageError(
            f"{folder} holds something else ({strangers[0]}). Name another folder: dpsql {command} DIR"
        )
    if all((folder / name).is_file() for name in (files[0], *policies)) and not fresh:
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            _remove(entry)
        write(folder)
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be written: {error.strerror or 'the disk'}") from None
    return True


def _write_folder(folder: Path) -> None:
    """Write the demo, the policies last. Raises OSError."""
    write_database(folder / _HALF_MADE)
    (folder / _HALF_MADE).rename(folder / DATABASE)
    write_private(folder / MAIN_POLICY, campus_policy())
    write_private(folder / TEXTBOOK_POLICY, _TEXTBOOK)
    for policy in (MAIN_POLICY, TEXTBOOK_POLICY):
        with open_ledger(folder / policy, create=True):
            pass


def _remove(entry: Path) -> None:
    """Remove a file, a link or a folder with all that it has."""
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()
