"""One first hour, command by command as the README has them, counted: by which program it is run is the caller's."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dpsql.tests.docs.documents import ROOT, text
from dpsql.tests.support.postgres_server import PostgresServer

from .trials import Trial

__all__ = ["MOST_STEPS", "Hour", "Program", "first_hour", "make_data", "manual_example", "readme_commands"]

Program = Callable[[tuple[str, ...]], str]
"""Runs `dpsql` with these words in the current folder; returns what it printed. Raises AssertionError for a failure."""

MOST_STEPS = 5
"""Commands from nothing to a first answer, at most."""

_WORD = re.compile(r"[\w.\-]+")


@dataclass(frozen=True, slots=True)
class Hour:
    """What a first hour took: commands to the first answer, words that the owner wrote, seconds to the first answer."""

    steps: int
    words: int
    seconds: float


def readme_commands() -> list[tuple[str, ...]]:
    """Return the commands of the README's "With your own data", without `dpsql` and what is said of them."""
    block = text("README").split("\n## With your own data\n")[1].split("```\n")[1].split("```")[0]
    return [tuple(line.split("#")[0].split()[1:]) for line in block.splitlines()]


def make_data(trial: Trial, postgres: PostgresServer | None) -> str:
    """Make a trial's data in the current folder; return the URL of those in Postgres, as their reader has it, else ""."""
    if not isinstance(trial.data, str):
        trial.data()
        return ""
    assert postgres is not None
    name = postgres.create_database()
    with postgres.admin(name) as connection:
        connection.execute(trial.data)
        connection.execute(f"REVOKE TEMPORARY, CREATE ON DATABASE {name} FROM PUBLIC")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    return postgres.create_reader(name, "first_reader")


def first_hour(trial: Trial, database: str, run: Program) -> Hour:
    """Do in the current folder, which has the data, what the README says, and ask; each answer has its error bars.

    `database`: its URL, "" for data in the folder.
    """
    start = time.monotonic()
    words, steps = 0, 0
    seconds = -1.0
    for command in readme_commands():
        if command[0] == "query":
            for sql in trial.questions:
                said = run((*command, "--intervals", "0.95", sql))
                assert re.search(r"_low\b.*_high\b", said), said
                steps, seconds = (steps + 1, time.monotonic() - start) if seconds < 0 else (steps, seconds)
            continue
        steps += 1
        if command[0] == "init":
            run(("init", *([database] if database else []), *trial.sources))
            words = _fill_in(Path("dpsql.toml"), trial)
        else:
            said = run(command)
            assert "problem: " not in said, said
    assert steps <= MOST_STEPS, "from nothing to a first answer"
    return Hour(steps, words, seconds)


def _fill_in(policy: Path, trial: Trial) -> int:
    """Edit the policy as the owner does; return the number of words that were not there."""
    before = policy.read_text("utf-8")
    after = before
    for old, new in trial.changes:
        assert old in after, (old, after)
        after = after.replace(old, new)
    policy.write_text(after, "utf-8")
    units = {name: table.get("unit", "public") for name, table in tomllib.loads(after)["tables"].items()}
    assert units == trial.units
    pairs = zip(before.split("\n"), after.split("\n"), strict=True)
    return sum(len(_WORD.findall(new)) - len(_WORD.findall(old)) for old, new in pairs)


def manual_example(trial: Trial) -> str:
    """Return the owner's manual's policy of a trial, for the database of the policy in the current folder."""
    section = (ROOT / "dpsql/docs/owner/examples.md").read_text("utf-8").split(f"\n**{trial.manual}**")[1]
    database = tomllib.loads(Path("dpsql.toml").read_text("utf-8"))["database"]
    policy = section.split("```toml\n")[1].split("```")[0]
    return re.sub(r'^database = ".*"', f'database = "{database}"', policy)
