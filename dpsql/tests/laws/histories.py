"""Histories of statements over one ledger, with what each was answered, at which bars and what price.

`python -m dpsql.tests.laws.histories` writes the record again, after a change that is meant to answer better: it stops
where a bar is wider, or a price higher, than in the record that there is.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.answer import Answer
from dpsql.engine.batch import release
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.mechanisms import SampledNoise
from dpsql.policy import parse_policy
from dpsql.testing.injected_noise import SeededSource
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed

__all__ = ["ACCOUNTINGS", "SEEDS", "Step", "asked", "dearer", "history", "recorded", "worse"]

RECORD = Path(__file__).with_name("histories.json")
ACCOUNTINGS = ("pure", "zcdp")
LENGTH, SEEDS = 8, 24

Step = tuple[str, str, list[float], str]
"""What was asked, what is spent after it, the widest bar of each column, and a digest of the numbers."""

_POLICY = """
database = "duckdb:histories.duckdb"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 9999
accounting = "{accounting}"
delta = 1e-6
[defaults]
epsilon = 0.5
max_epsilon = 9
[tables.person]
unit = "id"
[tables.person.columns]
born = {{ bounds = [2024-01-20, 2024-02-12], complete = true }}
age = {{ bounds = [10, 70], complete = true }}
team = {{ values = ["red", "blue", "green"], complete = true }}
town = {{ values = ["a", "b"] }}
active = {{}}
[tables.visit]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 6
[tables.visit.columns]
n = {{ bounds = [0, 9] }}
city = {{ values = ["a", "b", "c", {{ null = true }}] }}
level = {{ values = ["low", "high"], complete = true }}
flag = {{}}
"""
_ROWS = """
CREATE TABLE person (id INTEGER PRIMARY KEY, born DATE NOT NULL, age INTEGER NOT NULL, team VARCHAR NOT NULL,
    town VARCHAR, active BOOLEAN NOT NULL);
CREATE TABLE visit (person_id INTEGER, n INTEGER, city VARCHAR, level VARCHAR NOT NULL, flag BOOLEAN NOT NULL);
INSERT INTO person SELECT i, DATE '2024-01-20' + (i * i % 24)::INTEGER, 10 + i % 61,
    ['red', 'blue', 'green'][1 + i * i % 3], ['a', 'b', 'c'][1 + i % 3], i % 4 = 0 FROM range(1, 601) AS t (i);
INSERT INTO visit SELECT i, (i * j) % 10, ['a', 'b', 'c', NULL][1 + (i + j) % 4], ['low', 'high'][1 + (i * j) % 2], j % 2 = 0
    FROM range(1, 601) AS t (i), range(1, 7) AS u (j) WHERE j <= i % 7;
"""
"""Nobody has more rows than count, so that what is answered depends on the drawn noise alone."""
_MONTH, _RUNNING = "date_trunc('month', born)", "born, SUM(COUNT(*)) OVER (ORDER BY born)"
_TABLES = {
    "person": (
        ("team", "town", "active", _MONTH, "born"),
        ("team = 'red'", "team IN ('red', 'blue')", "active", "town = 'a'", "age > 30"),
        "age",
    ),
    "visit": (("city", "flag", "level"), ("city = 'a'", "flag", "level = 'low'", "n > 2"), "n"),
}
_CALLS = (
    "COUNT(*)",
    "COUNT(*)",
    "COUNT(*)",
    "SUM({0})",
    "AVG({0})",
    "AVG({0}), COUNT(*)",
    "SUM({0}), COUNT(*)",
)

_SIMULATED = ("AVG", "ROLLUP", "OVER")
"""Whose bars are quantiles of 2,000 replicas, of three deviations; of whole numbers they end at a whole one."""


def history(seed: int) -> Iterator[tuple[str, ...]]:
    """Yield what is asked, by turns of two analysts: a statement, or several together."""
    chance = random.Random(seed)
    table = chance.choice(list(_TABLES))
    keys, filters, column = _TABLES[table]
    calls = [one.format(column) for one in chance.sample(_CALLS, 2)]

    def statement() -> str:
        if table == "person" and chance.random() < 0.1:
            return f"SELECT {_RUNNING} AS n FROM person GROUP BY born"
        own = chance.sample(keys, chance.choice((0, 1, 1, 2, 2)))
        where = f" WHERE {chance.choice(filters)}" if chance.random() < 0.3 else ""
        by = ", ".join(own)
        grouped = f"ROLLUP ({by})" if own and chance.random() < 0.1 else by
        columns = [f"{key} AS k{i}" for i, key in enumerate(own)]
        columns += [f"{call} AS m{i}" for i, call in enumerate(chance.choice(calls).split(", "))]
        group = f" GROUP BY {grouped}" if own else ""
        return f"SELECT {', '.join(columns)} FROM {table}{where}{group}"

    for _ in range(LENGTH):
        if chance.random() < 0.2:
            yield (f"SET dpsql.epsilon = '{chance.choice(('0.25', '0.5', '1'))}'",)
        several = chance.random() < 0.2
        yield tuple(statement() for _ in range(3 if several else 1))


def asked(seed: int, accounting: str) -> list[Step]:
    """Return what a history was answered, in a ledger of its own, with noise by its seed."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        policy = parse_policy(_POLICY.format(accounting=accounting), folder / "dpsql.toml")
        connection = stack.enter_context(empty_duckdb())
        connection.execute(_ROWS)
        store, noise = open_ledger(policy, create=True), SampledNoise(SeededSource(seed))
        sessions = [
            stack.enter_context(
                Session(
                    Dataset(policy, DuckDBBackend.over(connection), store, warm_sealed()), name, _noise=noise
                )
            )
            for name in ("one", "other")
        ]
        for session in sessions:
            session.execute("SET dpsql.unlisted = on")
            session.execute("SET dpsql.intervals = 0.95")
        found = list[Step]()
        for number, texts in enumerate(history(seed)):
            session = sessions[number % 2]
            answers = [session.execute(texts[0])] if len(texts) == 1 else release(session, list(texts))
            spent = store.spent()
            paid = spent.rho_atto if accounting == "zcdp" else spent.epsilon_nano
            bars = [width for answer in answers for width in _widest(answer)]
            numbers = repr([_numbers(answer) for answer in answers]).encode()
            found.append(("; ".join(texts), str(paid), bars, hashlib.sha256(numbers).hexdigest()[:12]))
        return found


def _widest(answer: Answer) -> list[float]:
    names, rows = [column.name for column in answer.columns], list[Any](answer.rows)
    ends = [(names.index(name), names.index(name[:-4] + "_high")) for name in names if name.endswith("_low")]
    return [
        max((float(row[high]) - float(row[low]) for row in rows if row[low] is not None), default=0.0)
        for low, high in ends
    ]


def _numbers(answer: Answer) -> list[list[str]]:
    kept = [
        i for i, column in enumerate(answer.columns) if not column.name.endswith(("_low", "_high", "_bar"))
    ]
    return [[str(row[i]) for i in kept] for row in list[Any](answer.rows)]


def worse(before: list[Step], after: list[Step], *, is_same: bool = True) -> list[str]:
    """Return where one and the same history is dearer or has a wider bar than before; `is_same`: or other numbers,
    where all that was paid so far is what it was."""
    found, is_paid_alike = list[str](), True
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        is_paid_alike = is_paid_alike and old[1] == new[1]
        if Fraction(new[1]) > Fraction(old[1]):
            found.append(f"{number}: {new[0]}: {new[1]} is paid, {old[1]} before")
        is_simulated = any(word in new[0] for word in _SIMULATED)
        slack = 1.06 if is_simulated else 1 + 1e-9 if is_paid_alike else 1.02
        if is_paid_alike or "AVG" not in new[0]:  # of other draws a quotient's bar is another one
            pairs = zip(old[2], new[2], strict=True)
            wider = [(b, a) for b, a in pairs if a > b * slack + (is_simulated and b.is_integer())]
            found += [f"{number}: {new[0]}: a bar of {a} in place of {b}" for b, a in wider]
        if is_same and is_paid_alike and old[3] != new[3]:
            found.append(f"{number}: {new[0]}: other numbers")
    return found


def dearer(alone: list[Step], found: list[Step]) -> list[str]:
    """Return where a history costs more in all than another way of answering it, and by then is no more exact."""
    if Fraction(found[-1][1]) <= Fraction(alone[-1][1]):
        return []
    pairs = zip(alone, found, strict=True)
    old, new = next((a, b) for a, b in pairs if Fraction(b[1]) > Fraction(a[1]))
    is_exact = all(b <= a for a, b in zip(old[2], new[2], strict=True)) and sum(new[2]) < sum(old[2])
    return [] if is_exact else [f"{new[0]}: {new[1]} is paid, {old[1]} otherwise, for bars of {new[2]}"]


def recorded(seed: int, accounting: str) -> list[Step]:
    """Return what a history was answered when the record was written; none where it is not in it."""
    known = json.loads(RECORD.read_text("utf-8"))[accounting] if RECORD.exists() else []
    steps = known[seed] if seed < len(known) else []
    return [("; ".join(texts), *step) for texts, step in zip(history(seed), steps, strict=False)]


if __name__ == "__main__":
    written = {name: [asked(seed, name) for seed in range(SEEDS)] for name in ACCOUNTINGS}
    said = [
        f"{name} {seed} {line}"
        for name in ACCOUNTINGS
        for seed in range(SEEDS)
        for line in worse(recorded(seed, name) or written[name][seed], written[name][seed], is_same=False)
    ]
    if said:
        sys.exit("\n".join(said))
    lines = {
        name: ",\n".join(json.dumps([step[1:] for step in steps]) for steps in each)
        for name, each in written.items()
    }
    text = ",\n".join(f'"{name}": [\n{each}\n]' for name, each in lines.items())
    RECORD.write_text(f"{{\n{text}\n}}\n", "utf-8")
