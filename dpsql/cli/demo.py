"""`dpsql demo`: a small university, and a walk through what dpsql does with it; or, as a challenge, one with a secret;
and `dpsql textbook`, whose exercises are asked of it.

The challenge's flag is the GPA of student 7, drawn anew from 201 values by the operating system. Epsilon is 1 for
everybody together, so a guess is right with probability e / 201 + delta at most, whatever was asked: Pr[v is guessed |
the flag is v] is at most e · Pr[v is guessed | the student is not there] + delta, and these last sum up to 1 over all
v, each of which is the flag with probability 1 / 201.

House rule: only files that the demo or the challenge itself names are ever removed, and only on `--fresh`. A ledger is
never reset in passing: what was spent stays spent (law L5), in a demo too.

The university is invented people in a DuckDB file. The seeded generator below makes the demo's *data* only, so that
every newcomer sees the same university. It has nothing to do with the noise of an answer, which comes from the
operating system and takes no seed.

To an exercise a statement is right that dpsql plans as the exercise asks, and whose exact answer over the demo's
invented students is the solution's. Nothing is charged: it is explained, and the exact answer is read from the demo's
own file.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..records import dataclass
from ..regex import regex
from .docs import parts_of, read_part, read_section, read_topic
from .faults import tell
from .owner import open_ledger, write_private
from .serve import psql_line, run_server

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


# --- the walk, and the challenge --------------------------------------------------------------------------


_TO_PASTE = (
    "\\d+ student",
    "SET dpsql.intervals = 0.95;",
    "SELECT major, COUNT(*) AS n FROM student WHERE gpa >= 3.5 GROUP BY major ORDER BY n DESC;",
    "SELECT name, gpa FROM student WHERE id = 7;",
)
"""What is worth seeing first in psql."""


@click.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--fresh", is_flag=True, help="Remove the demo in DIR first, with its ledger, and make it anew."
)
@click.option("--serve", is_flag=True, help="Serve it to psql instead, on this machine alone, until Ctrl-C.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=5433,
    show_default=True,
    help="The port for --serve and --challenge; 0 takes a free one.",
)
@click.option(
    "--challenge",
    is_flag=True,
    help="Serve a university with a secret in it (DIR: challenge), and say what would break the promise.",
)
@click.option(
    "--guess", type=float, metavar="GPA", help="With --challenge: say whether that is the secret, and tell it."
)  # fmt: skip
@click.option(
    "--month",
    is_flag=True,
    help="Walk through a library (DIR: library) whose loans go on: each month of them has a budget of its own.",
)
def demo(
    folder: Path | None,
    fresh: bool,
    serve: bool,
    port: int,
    challenge: bool,
    guess: float | None,
    month: bool,
) -> None:
    """Make a small university database in DIR (default: demo) and ask it some questions.

    At a terminal each step of the walk waits for Enter, and q leaves it; elsewhere all of it is shown at once.
    Its students are invented. Run again, it uses the same data and the same ledger: questions asked
    before are answered from the store, free.
    """
    if guess is not None and not challenge:
        raise click.UsageError("--guess is of a --challenge.")
    if month and (challenge or serve):
        raise click.UsageError("--month is a walk of its own: leave --serve and --challenge out.")
    if month:
        from .demo_tour import walk_months  # the engine takes long to load

        walk_months(folder or Path("library"), fresh=fresh)
        return
    if challenge:
        _challenge(folder or Path("challenge"), fresh, port, guess)
        return
    folder = folder or Path("demo")
    if serve:
        make_folder(folder, fresh=fresh)
        _serve(folder, port)
        return
    if make_folder(folder, fresh=fresh):
        click.echo(f"Made a university in {folder}: 20,000 students, 300,000 library loans, all invented.")
    else:
        click.echo(
            f"{folder} holds the demo already. Its data and its ledger are used as they are: what was\n"
            "spent stays spent, and questions asked before are answered from the store, free.\n"
            f"To begin anew: dpsql demo --fresh {folder}"
        )
    click.echo(f"What its owner declares is in {folder / MAIN_POLICY}.")
    from .demo_tour import walk  # the engine takes long to load

    walk(folder)
    click.echo(
        f"\nNow you:\n  dpsql -P {folder / MAIN_POLICY} query         a prompt; \\d lists what may be asked\n"
        f"  dpsql -P {folder / MAIN_POLICY} budget show   what is left\n"
        f"  dpsql demo --serve {folder}                   the same for psql, as make serve does"
    )


def _challenge(folder: Path, fresh: bool, port: int, guess: float | None) -> None:
    """Make the challenge and serve it, or say whether a guess is right."""

    if guess is not None:
        click.echo(told_of_guess(folder, guess))
        return
    make_challenge(folder, fresh=fresh)
    _run(folder / POLICY, port, told())


def _serve(folder: Path, port: int) -> None:
    """Serve the demo in a folder; says on standard error how to connect, before the log begins."""
    from ..policy import load_policy

    policy = load_policy(folder / MAIN_POLICY)
    analyst = policy.analysts.get(ANALYST)
    if analyst is None or analyst.password is None:
        raise click.UsageError(
            f"{folder} was made before the demo had an analyst. Make it anew: dpsql demo --fresh --serve {folder}"
        )
    _run(folder / MAIN_POLICY, port, "")


def _run(path: Path, port: int, first: str) -> None:
    """Serve a policy of the demo's; says on standard error `first`, and how to connect, before the log begins."""
    from ..policy import load_policy
    from ..server import Options

    policy, options = load_policy(path), Options(port=port)

    def announce(port: int) -> None:
        line = psql_line(options.host, port, ANALYST, policy.path.stem)
        tell(
            (f"{first}\n" if first else "")
            + "A small university is served on this machine, until Ctrl-C; the server's log comes below,\n"
            f"one JSON object a line. Paste into another terminal:\n\n  PGPASSWORD={PASSWORD} {line}\n\n"
            "and there:\n\n" + "".join(f"  {one}\n" for one in _TO_PASTE)
        )

    run_server([policy], options, announce)


POLICY = "challenge.toml"
_LEDGER = "challenge-ledger.db"
_PERSON = 7
_VALUES = 201
_EPSILON = 1

TRIED = {
    "laws/test_searched.py": "statements of every shape on neighbouring databases, against the claimed sensitivity",
    "laws/test_audit.py": "the best test between two neighbours, with the noise that is really used",
    "laws/test_non_interference.py": "errors, charges, types and numbers of rows, which must not depend on one person",
    "laws/test_same_answer.py": "asking again, in other words or another order, to average the noise out",
    "laws/test_charge_first.py": "ending the process at every step of a charge",
    "laws/test_attack_bounding.py": "one person with very many rows, groups or values",
    "laws/test_default_deny.py": "what the policy does not declare: columns, tables, functions, the catalog",
    "limits": "memory, files and time that one person's rows could exhaust",
}
"""What the tests try, by their names in `dpsql/tests`."""


def make_challenge(folder: Path, *, fresh: bool) -> bool:
    """Make the challenge in a folder, or leave the one that is there; return whether it was made now.

    Raises click.UsageError when the folder holds anything else.
    """
    return fill_folder(folder, "demo --challenge", [POLICY], (DATABASE, _LEDGER), _write, fresh=fresh)


def _write(folder: Path) -> None:
    write_database(folder / DATABASE)
    _hide_flag(folder / DATABASE)
    write_private(folder / POLICY, campus_policy(ledger=_LEDGER, epsilon=_EPSILON, of_analyst=_EPSILON))
    with open_ledger(folder / POLICY, create=True):
        pass


def _hide_flag(database: Path) -> None:
    import duckdb

    with duckdb.connect(str(database)) as connection:
        flag = 200 + secrets.randbelow(_VALUES)
        connection.execute(f"UPDATE student SET gpa = ($1 / 100)::DECIMAL(3,2) WHERE id = {_PERSON}", [flag])
    database.chmod(0o600)


def told() -> str:
    """Return the challenge's page: the flag, what breaks the promise, what was tried, how to report."""
    most = 100 * math.exp(_EPSILON) / _VALUES
    tried = "\n".join(f"  {name:<{max(map(len, TRIED))}}  {what}" for name, what in TRIED.items())
    return f"""\
THE FLAG is the GPA of student {_PERSON}, Theo Evans: one of {_VALUES} values, 2.00 to 4.00, drawn for this folder
alone. Epsilon is {_EPSILON}, for everybody together and for ever. You are the analyst {ANALYST}, password {PASSWORD},
and may read the policy, this program and all of its code. The database's file and the ledger are the owner's alone.

WHAT WOULD BREAK THE PROMISE
  a way to name flags that is right more often than {most:.1f} % of the time (e^{_EPSILON} / {_VALUES}; 0.5 % by blind
  guessing): three of ten, each of a folder made anew, would come by luck once in 3,600 such tries at most
  an answer, an error, a charge or a plan that depends on Theo beyond that; a charge that is lost or given back
  a statement that reaches what the policy does not declare, or that writes
  a login without the password; a message that stops the server
WHAT WOULD NOT: one lucky guess, facts about all students, reading the owner's files, how long answers take within
what the threat model says (dpsql docs threat-model)

WHAT WAS TRIED, by the names of the tests in dpsql/tests; each attack by name: dpsql docs soundness attacks
{tried}

TO REPORT IT: SECURITY.md, privately. To check a guess, which tells the flag: dpsql demo --challenge --guess 3.14
"""


def told_of_guess(folder: Path, guess: float) -> str:
    """Say whether a guess is right, and what the flag was. Raises click.UsageError."""
    import duckdb

    if not (folder / POLICY).is_file():
        raise click.UsageError(f"{folder} holds no challenge. Make one: dpsql demo --challenge {folder}")
    try:
        with duckdb.connect(str(folder / DATABASE), read_only=True) as connection:
            (flag,) = connection.execute(
                f"SELECT gpa::DOUBLE FROM student WHERE id = {_PERSON}"
            ).fetchone() or (0.0,)
    except duckdb.Error:
        raise click.UsageError(f"{folder / DATABASE} cannot be read.") from None
    said = "Right" if math.isclose(guess, flag, abs_tol=0.001) else "Wrong"
    return f"{said}: the flag was {flag:.2f}. For a new one: dpsql demo --challenge --fresh {folder}"


# --- the textbook's exercises -----------------------------------------------------------------------------


_TOPIC = "textbook"
_WRONG = 2
_BLOCK = regex(r"^```(\w+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_FILE = regex(r"`(\w+\.toml)`:\n\n\Z")


@click.command()
@click.argument("number", required=False, metavar="[EXERCISE]")
@click.argument("answer", required=False, metavar="[ANSWER]")
@click.option("--solution", is_flag=True, help="Show how the exercise is solved.")
@click.option(
    "--demo",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    metavar="DIR",
    help="The folder of the demo, for answers that are statements.",
)
@click.option(
    "--notebook", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write the textbook as a notebook of Jupyter, its commands and its Python as cells to run.",
)  # fmt: skip
@click.pass_context
def textbook(
    ctx: click.Context,
    number: str | None,
    answer: str | None,
    solution: bool,
    demo: Path,
    notebook: Path | None,
) -> None:
    """Show an exercise of the textbook, or say whether ANSWER is right; without EXERCISE, what there is.

    \b
      dpsql textbook
      dpsql textbook 3.1
      dpsql textbook 3.1 0.3
      dpsql textbook 3.2 "SELECT ..."
      dpsql textbook 3.2 --solution

    An answer that is a statement is explained over the demo's policy, which charges nothing. The exit code is 0
    where an answer is right, and 2 where it is not. The text itself: dpsql docs textbook.
    """
    if notebook is not None:
        _write_notebook(notebook)
    elif number is None:
        for title in re.findall(r"^## (.*)$", read_part(_TOPIC, "exercises"), re.MULTILINE):
            click.echo(title)
    elif number not in EXERCISES:
        raise click.UsageError(f"there is no exercise {number}; dpsql textbook lists them.")
    elif solution:
        click.echo(read_section(_TOPIC, f"Solution {number}"), nl=False)
    elif answer is None:
        click.echo(read_section(_TOPIC, number), nl=False)
    else:
        fault = EXERCISES[number].fault(answer, demo)
        click.echo(f"Not right. {fault}" if fault else "Right.")
        if fault:
            ctx.exit(_WRONG)


def _write_notebook(path: Path) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(as_notebook())
    except FileExistsError:
        raise click.UsageError(f"{path} exists. Name another file.") from None
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}") from None
    click.echo(f"Wrote {path}. Run it in the folder in which the demo stands (dpsql demo demo).")


def as_notebook() -> str:
    """Return the textbook as a notebook: text, and each command, file and piece of Python as a cell."""
    pages = [read_topic(_TOPIC), *(read_part(_TOPIC, part) for part in parts_of(_TOPIC))]
    cells = [cell for page in pages for cell in _cells(page)]
    for place, cell in enumerate(cells):
        cell["id"] = f"cell-{place}"
    known = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return (
        json.dumps({"cells": cells, "metadata": known, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"
    )


def _cells(page: str) -> Iterator[dict[str, Any]]:
    """Return a page's cells: Markdown between blocks, and the blocks that are run."""
    done = 0
    last: dict[str, Any] = {}
    for block in _BLOCK.finditer(page):
        language, body = block[1], block[2]
        if language == "sql":
            continue
        if page[done : block.start()].strip():
            yield _text(page[done : block.start()])
        done = block.end()
        if language == "output":
            last["outputs"] = _shown(body)
        elif language == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command = re.match(r"(?:.*\\\n)*.*\n", part)
                assert command is not None
                yield _code(f"!{command[0].rstrip()}", part[command.end() :])
        else:
            name = _FILE.search(page[: block.start()])
            last = _code(f"%%writefile {name[1]}\n{body.rstrip()}" if name else body.rstrip(), "")
            yield last
    if page[done:].strip():
        yield _text(page[done:])


def _text(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip("\n")}


def _code(source: str, shown: str) -> dict[str, Any]:
    return {
        "cell_type": "code", "execution_count": None, "metadata": {}, "source": source, "outputs": _shown(shown),
    }  # fmt: skip


def _shown(text: str) -> list[dict[str, Any]]:
    return [{"name": "stdout", "output_type": "stream", "text": text}] if text else []


_TOLERANCE = 0.01
_SENSITIVITY = regex(r"^    sensitivity (\d+(?:\.\d+)?),", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, right to one part in a hundred."""

    value: float

    def fault(self, answer: str, demo: Path) -> str | None:
        """Return what is wrong with an answer; None where nothing is."""
        try:
            given = float(answer.strip().removesuffix("%").replace(",", ""))
        except ValueError:
            return "The answer is a number."
        if math.isclose(given, self.value, rel_tol=_TOLERANCE):
            return None
        return (
            "That is too small."
            if given < self.value
            else "That is too large."
            if given > self.value
            else "That is no number."
        )


@dataclass(frozen=True, slots=True)
class Word:
    """One word, in either case."""

    word: str

    def fault(self, answer: str, demo: Path) -> str | None:
        """Return what is wrong with an answer; None where nothing is."""
        return None if answer.strip().casefold() == self.word.casefold() else "That is another."


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that answers what the solution does, and whose noise hides no more than that sensitivity.

    `says`: words of EXPLAIN, where one plan is asked for.
    """

    solution: str
    sensitivity: Fraction
    says: str = ""

    def fault(self, answer: str, demo: Path) -> str | None:
        """Return what is wrong with an answer; None where nothing is. Raises DpsqlError: it is refused."""
        from .worker import open_session  # the engine takes long to load

        if not (demo / MAIN_POLICY).is_file():
            raise click.UsageError(
                f"{demo} holds no demo. Make it (dpsql demo {demo}), or name it with --demo."
            )
        with open_session(demo / MAIN_POLICY, "local") as running:
            explained = running.run(running.session.explain, answer)
            told = explained.text()
        largest = max((Fraction(said) for said in _SENSITIVITY.findall(told)), default=None)
        if largest is None:
            return "It measures nothing of people."
        if self.says not in told:
            return f"dpsql plans it otherwise: EXPLAIN does not say {self.says!r}."
        if largest > self.sensitivity:
            return f"Its sensitivity is {largest}."
        return _difference(demo / DATABASE, self.solution, answer)


Check = Figure | Word | Statement


def _difference(database: Path, solution: str, answer: str) -> str | None:
    """Say how the exact answers of two statements differ, in any order of rows; None where they do not."""
    import duckdb

    try:
        with duckdb.connect(
            str(database), read_only=True, config={"enable_external_access": False}
        ) as connection:
            wanted, given = (_rows(connection.execute(sql).fetchall()) for sql in (solution, answer))
    except duckdb.Error:
        return "It could not be compared with the solution: ask it in SQL that DuckDB has too."
    if len(given) != len(wanted):
        return f"It gives {len(given)} rows, and {len(wanted)} were asked for."
    if given and len(given[0]) != len(wanted[0]):
        return f"It gives {len(given[0])} columns, and {len(wanted[0])} were asked for."
    return None if given == wanted else "Its numbers are others than were asked for."


def _rows(rows: Iterable[tuple[object, ...]]) -> list[list[str]]:
    """Return rows in one order, and each one's values, as an exercise leaves both orders open."""
    return sorted(sorted(_cell(value) for value in row) for row in rows)


def _cell(value: object) -> str:
    try:
        return f"{float(value):.6f}"  # type: ignore[arg-type]  # what is no number is taken as it is
    except (TypeError, ValueError):
        return str(value)


EXERCISES: Mapping[str, Check] = {
    "1.1": Figure(8),
    "1.2": Word("PV002"),
    "2.1": Figure(100 * math.e / (1 + math.e)),
    "2.2": Figure(math.exp(2)),
    "3.1": Figure(math.log(20) / 10),
    "3.2": Statement(
        "SELECT enrolled, COUNT(*) AS n, SUM(gpa) AS total FROM student GROUP BY enrolled", Fraction(2),
        "complementary sums",
    ),
    "3.3": Figure(1 + 4 + 16),
    "4.1": Figure(12 / 0.5),
    "4.2": Statement(
        "SELECT COUNT(*) FILTER (WHERE gpa >= 3) AS a, COUNT(*) FILTER (WHERE gpa >= 3.3) AS b, "
        "COUNT(*) FILTER (WHERE gpa >= 3.6) AS c FROM student",
        Fraction(1),
    ),
    "4.3": Figure(0.01 * math.sqrt(2000 * math.log(1e6)) + 10 * math.expm1(0.01)),
    "5.1": Figure(math.log(1001) + math.log(20)),
    "5.2": Statement(
        "SELECT course_id, COUNT(DISTINCT student_id) AS n FROM enrolment GROUP BY course_id ORDER BY n DESC LIMIT 3",
        Fraction(3),
        "chooses 3 of 120 groups",
    ),
    "6.1": Figure(math.exp(2) / (1 + math.exp(2))),
    "6.2": Figure(2400),
    "6.3": Figure(math.log(40) / (2 * 0.25 * 0.02**2)),
    "7.1": Figure(5),
    "7.2": Figure(math.sqrt(12) / 0.1),
    "7.3": Figure(1e-9 * (1 + math.exp(0.1) + math.exp(0.2))),
}  # fmt: skip
"""Each exercise's number, and what answers it."""
