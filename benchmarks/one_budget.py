"""How many statements one budget holds, and how far off they are, in both accountings: `dpsql query`, whole processes.

Each error is the root of the mean square over all statements that the budget holds, against the exact answers.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import duckdb

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size
from dpsql.mechanisms import pure_epsilon, rho_within

__all__ = ["make_people", "make_policy", "measure"]

_EPSILON, _DELTA = Fraction(10), Fraction(1, 10**6)
_STATEMENTS = 100
_PEOPLE = 20_000
_ACCOUNTINGS = ("pure", "zcdp")

_POLICY = """
database = "duckdb:{database}"
ledger = "sqlite:{ledger}"
[privacy]
epsilon = 10
delta = 1e-6
accounting = "{accounting}"
[defaults]
epsilon = 0.1
max_epsilon = 1
delta = 1e-9
[tables.person]
unit = "id"
[tables.person.columns]
bucket = {{ bounds = [0, 999] }}
n = {{ bounds = [0, 999] }}
[tables.stay]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 3
[tables.stay.columns]
slot = {{ bounds = [0, 999] }}
n = {{ bounds = [0, 999] }}
"""


def measure(size: Size) -> Iterator[Figure]:
    """Yield statements at 0.1, then errors at so much epsilon each that the budget holds a hundred statements."""
    database = make_people(size.folder / "one-budget.duckdb")
    for accounting, least in zip(_ACCOUNTINGS, (100, 290), strict=True):
        policy = make_policy(size.folder, "held", database, accounting)
        asked = [f"SELECT COUNT(*) AS n FROM person WHERE n < {k}" for k in range(100, 420)]
        held = len(_answered(policy, "0.1", asked))
        yield Figure(f"{accounting}: statements at 0.1", held, least, "", is_rate=True)
    for name, table, key, limit in (("a count", "person", "bucket", 5.9), ("C = 3", "stay", "slot", 10.2)):
        asked = [
            f"SELECT {key}, COUNT(*) AS n FROM {table} WHERE n <> {k} GROUP BY {key}"
            for k in range(_STATEMENTS)
        ]
        for accounting in _ACCOUNTINGS:
            policy = make_policy(size.folder, f"{table}-off", database, accounting)
            off = _off(policy, accounting, asked, database)
            most = limit if accounting == "zcdp" else None
            yield Figure(f"{accounting}: {name} at {_STATEMENTS} statements", off, most, "rows")
    yield from _demo(size)


def _demo(size: Size) -> Iterator[Figure]:
    """Yield the error of the demo's loans by branch, in one accounting of the other's."""
    campus = make_campus(size)
    database, off = campus.parent / "campus.duckdb", {}
    asked = [
        f"SELECT branch, COUNT(*) AS n FROM loan WHERE days_out < 100 + {k} GROUP BY branch"
        for k in range(_STATEMENTS)
    ]
    for accounting in _ACCOUNTINGS:
        text = campus.read_text(encoding="utf-8").replace(
            "[privacy]", f'[privacy]\naccounting = "{accounting}"'
        )
        text = text.replace("sqlite:campus-ledger.db", f"sqlite:{accounting}-ledger.db")
        policy = campus.parent / f"{accounting}.toml"
        policy.write_text(text, encoding="utf-8")
        _made(policy)
        off[accounting] = _off(policy, accounting, asked, database)
    where = ", ".join(f"{name} {value:,.0f} rows" for name, value in off.items())
    yield Figure("loans by branch, zcdp of pure", off["zcdp"] / off["pure"], 0.5, "x", where)


# --- the command line ----------------------------------------------------------------------------------------


def _dpsql(policy: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dpsql.cli", "--policy", str(policy), *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def _made(policy: Path) -> None:
    """Make the ledger of a policy, without what an earlier run has spent."""
    for left in policy.parent.glob(f"{policy.stem}-ledger.db*"):
        if left.is_dir():  # who has it open
            shutil.rmtree(left)
        else:
            left.unlink()
    made = _dpsql(policy, "budget", "create")
    assert made.returncode == 0, made.stderr


def make_policy(folder: Path, name: str, database: Path, accounting: str) -> Path:
    policy = folder / f"{name}-{accounting}.toml"
    ledger = f"{policy.stem}-ledger.db"
    text = _POLICY.format(database=database, ledger=ledger, accounting=accounting)
    policy.write_text(text, encoding="utf-8")
    _made(policy)
    return policy


def _answered(policy: Path, epsilon: str, asked: Sequence[str]) -> list[list[list[object]]]:
    """Return the rows of the statements that are answered, up to the first that is refused."""
    run = _dpsql(policy, "query", "--json", "--epsilon", epsilon, text=";\n".join(asked))
    assert run.returncode in (0, 4), run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    return [one["rows"] for one in found if one["receipt"]["epsilon"] > 0]


def _off(policy: Path, accounting: str, asked: Sequence[str], database: Path) -> float:
    """Return the root of the mean square error of all numbers of statements that take all of the budget together."""
    epsilon = _EPSILON / _STATEMENTS
    if accounting == "zcdp":
        epsilon = pure_epsilon(rho_within(_EPSILON, _DELTA / 2) // _STATEMENTS)
    answers = _answered(policy, f"{float(math.floor(epsilon * 10**6) / 10**6):.6f}", asked)
    assert len(answers) == _STATEMENTS, f"the budget held {len(answers)} statements"
    total, count = 0.0, 0
    with duckdb.connect(str(database), read_only=True) as connection:
        for sql, rows in zip(asked, answers, strict=True):
            truth = dict(connection.execute(sql).fetchall())
            total += sum((float(str(said)) - truth.get(key, 0)) ** 2 for key, said in rows)
            count += len(rows)
    return math.sqrt(total / count)


def make_people(path: Path) -> Path:
    """Make people with one bucket each, and stays in three slots each that the engine holds to be different."""
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                "CREATE TABLE person (id INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, n INTEGER NOT NULL);"
                "CREATE TABLE stay (person_id INTEGER NOT NULL REFERENCES person (id), slot INTEGER NOT NULL, "
                "n INTEGER NOT NULL, PRIMARY KEY (person_id, slot));"
                f"INSERT INTO person SELECT i, hash(i) % 1000, hash(i + 1) % 1000 FROM range({_PEOPLE}) AS t(i);"
                "INSERT INTO stay SELECT i, (hash(i) + 300 * j) % 1000, hash(i + j) % 1000 "
                f"FROM range({_PEOPLE}) AS t(i), range(3) AS u(j)"
            )
    return path
