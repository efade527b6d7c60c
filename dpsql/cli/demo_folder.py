"""The demo's folder: what is in it, and the two policies that a reader may take as a model.

House rule: only files that the demo itself names are ever removed, and only on `--fresh`. A ledger is
never reset in passing: what was spent stays spent (law L5), in a demo too.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from .demo_data import BRANCHES, MAJORS, SEMESTERS, write_database
from .owner import open_ledger
from .private_file import write_private

__all__ = ["ANALYST", "DATABASE", "MAIN_POLICY", "PASSWORD", "TEXTBOOK_POLICY", "is_made", "make_folder"]

ANALYST, PASSWORD = "analyst", "demo"
"""Who may connect to the demo's server. No secret: the people in the database are invented."""

DATABASE = "campus.duckdb"
MAIN_POLICY = "campus.toml"
TEXTBOOK_POLICY = "textbook.toml"

_HALF_MADE = "campus.duckdb.partial"
_WITH_COMPANIONS = (DATABASE, "campus-ledger.db", "textbook-ledger.db")
"""Beside these the database and the ledger keep files of the same name with something after it."""


def _toml_list(values: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"


_CAMPUS = f"""\
# Written by `dpsql demo`. The people in this database are invented.
# One file says everything that the owner declares. What is not here does not exist for an analyst.

database = "duckdb:{DATABASE}"
ledger   = "sqlite:campus-ledger.db"     # what was spent, and the released answers

[privacy]
epsilon    = 10             # for everybody together, for ever: the most that can be learned about one student
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
major    = {{ values = {_toml_list(MAJORS)}, complete = true }}
enrolled = {{ bounds = [2019, 2025], complete = true }}
born     = {{ bounds = [1999-01-01, 2009-12-31] }}

# A student has many loans. The librarian knows that hardly anyone borrows more than 60 books in a year: 60 loans
# of a student count in a result. Who has more counts with less of each, so that the noise need not hide more.
[tables.loan]
unit = {{ column = "student_id", references = "student.id" }}
max_rows   = 60
max_groups = 12      # of a student where group keys must be found in the data: so many people hide one
[tables.loan.columns]
branch    = {{ values = {_toml_list(BRANCHES)}, complete = true }}
loaned_on = {{ bounds = [2025-01-01, 2025-12-31], complete = true }}
days_out  = {{ bounds = [0, 60] }}
fee       = {{ bounds = [0, 10] }}

[tables.enrolment]
unit = {{ column = "student_id", references = "student.id" }}
max_rows = 12       # nobody takes more courses than that
[tables.enrolment.columns]
course_id = {{ bounds = [1, 120] }}
semester  = {{ values = {_toml_list(SEMESTERS)}, complete = true }}
grade     = {{ bounds = [1.0, 4.0] }}

# Nobody's data: answered as it is.
[tables.course]
public = true

# May connect to a server: `dpsql demo --serve` starts one, and says the password. What stands here is a
# verifier, from which the password cannot be read. For others: dpsql user add NAME
[analysts.{ANALYST}]
epsilon  = 5                # a cap of this analyst's own, inside the common one
password = "%s"
"""

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


def is_made(folder: Path) -> bool:
    """Return whether `folder` holds a finished demo (the policies are written last)."""
    return all((folder / name).is_file() for name in (DATABASE, MAIN_POLICY, TEXTBOOK_POLICY))


def make_folder(folder: Path, *, fresh: bool) -> bool:
    """Make the demo in `folder`, or leave the one that is there; return whether it was made now.

    Args:
        fresh: remove the demo's files first, its ledgers included.

    Raises click.UsageError when the folder holds anything that the demo did not write.
    """
    strangers = sorted(entry.name for entry in _entries(folder) if not _is_ours(entry))
    if strangers:
        raise click.UsageError(
            f"{folder} holds something else ({strangers[0]}). Name another folder: dpsql demo DIR"
        )
    if is_made(folder) and not fresh:
        return False
    try:
        _write_folder(folder)
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be written: {error.strerror or 'the disk'}") from None
    return True


def _write_folder(folder: Path) -> None:
    """Write the demo, the policies last. Raises OSError."""
    from ..pgwire import make_verifier

    folder.mkdir(parents=True, exist_ok=True)
    for entry in _entries(folder):
        _remove(entry)
    write_database(folder / _HALF_MADE)
    (folder / _HALF_MADE).rename(folder / DATABASE)
    write_private(folder / MAIN_POLICY, _CAMPUS % make_verifier(PASSWORD).text())
    write_private(folder / TEXTBOOK_POLICY, _TEXTBOOK)
    for policy in (MAIN_POLICY, TEXTBOOK_POLICY):
        with open_ledger(folder / policy, create=True):
            pass


def _entries(folder: Path) -> list[Path]:
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{folder} is a file. Name a folder: dpsql demo DIR")
    return list(folder.iterdir()) if folder.exists() else []


def _is_ours(entry: Path) -> bool:
    """Return whether the demo, or the ledger and the database under it, writes something of this name."""
    return entry.name in (MAIN_POLICY, TEXTBOOK_POLICY) or entry.name.startswith(_WITH_COMPANIONS)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()
