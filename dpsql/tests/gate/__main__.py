"""What a newcomer does, with dpsql as the README installs it: `make gate`.

A copy of what git tracks is installed by the README's commands into an environment of its own, without extras and
without what the tests need, and that program goes through each first hour of `trials`: `init`, `check`, `budget create`,
the first answers, then `user add`, `serve` with a client of Postgres, and `studio --export`. It prints a table, and ends with 1 where
something failed, or where the manual's table says other steps or words.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import psycopg

from dpsql.tests.docs.documents import ROOT, text
from dpsql.tests.support.postgres_server import PostgresServer, find_servers

from .first_hour import Hour, first_hour, make_data
from .trials import TRIALS, Trial

_HEADING = "### What a first hour takes"
_PASSWORD = "a password of the gate's"
_LONGEST = 600
_BARE = "import duckdb, numpy, psycopg, sqlglot"
MOST_TIMES = 30
"""Processor time of a first hour with an own Parquet file, at most, as a multiple of what a bare import of the engine, the
parser and the driver takes on this machine."""
_READY = re.compile(r'"port": ?(\d+)|:(\d{4,5})\b')


class Installed:
    """The program in an environment of its own, run as a person runs it."""

    def __init__(self, program: Path) -> None:
        self._program = program
        kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")
        self.environment = {name: value for name, value in os.environ.items() if name in kept}
        self.spent: dict[str, float] = {}
        """Processor seconds by trial."""

    def __call__(self, words: tuple[str, ...], said: str = "") -> str:
        """Run a command in the current folder; return all that it printed. Raises AssertionError."""
        done = subprocess.run(
            [self._program, *words], env=self.environment, input=said, capture_output=True, text=True,
            timeout=_LONGEST, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"dpsql {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    def bare(self) -> float:
        """Return the processor seconds of a process that imports what dpsql stands on, the least of three."""
        python = self._program.with_name("python")
        least = float("inf")
        for _ in range(3):
            began = _processor_seconds()
            subprocess.run([python, "-c", _BARE], env=self.environment, check=True)
            least = min(least, _processor_seconds() - began)
        return least

    @contextmanager
    def serving(self) -> Iterator[int]:
        """Serve the current folder's policy; give the port that the first line of its log names."""
        server = subprocess.Popen(
            [self._program, "serve", "--port", "0"], env=self.environment, stderr=subprocess.PIPE, text=True
        )
        assert server.stderr is not None
        try:
            line = server.stderr.readline()
            port = _READY.search(line)
            assert port, line
            yield int(port[1] or port[2])
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=_LONGEST)
        assert server.returncode == 0, server.returncode


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def install(folder: Path) -> Installed:
    """Do what the README's "Install" says, in a copy of what git tracks."""
    copy = folder / "dpsql"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, tracked.stdout.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    block = text("README").split("\n## Install\n")[1].split("```\n")[1].split("```")[0]
    program = Installed(copy / ".venv/bin/dpsql")
    environment = program.environment | {
        name: value for name, value in os.environ.items() if name.startswith("PIP_")
    }
    for line in block.splitlines():
        print(f"$ {line}", flush=True)
        words = line.split()
        words = [sys.executable, *words[1:]] if words[0] == "python3" else words
        done = subprocess.run(words, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return program


def hold(trial: Trial, postgres: PostgresServer, run: Installed) -> Hour:
    """Go through a trial in a folder of its own; then serve it, ask it over the wire, and write the owner's report."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        began = _processor_seconds()
        hour = first_hour(trial, make_data(trial, postgres), run)
        run.spent[trial.name] = _processor_seconds() - began
        line = run(("user", "add", "alice"), f"{_PASSWORD}\n")
        policy = Path("dpsql.toml")
        policy.write_text(f"{policy.read_text('utf-8')}\n[analysts.alice]\nepsilon = 0.5\n{line}", "utf-8")
        with run.serving() as port:
            assert _over_the_wire(port, trial.questions[0]), trial.questions[0]
        run(("studio", "--export", "report.html"))
        assert "</html>" in Path("report.html").read_text("utf-8")
    return hour


def _over_the_wire(port: int, sql: str) -> str:
    """Ask as psql does where there is one, else as a driver."""
    if psql := shutil.which("psql"):
        done = subprocess.run(
            [psql, "-X", "-h", "localhost", "-p", str(port), "-U", "alice", "-c", sql, "dpsql"],
            env={"PGPASSWORD": _PASSWORD, "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout
    where = f"host=localhost port={port} user=alice dbname=dpsql"
    with psycopg.connect(where, password=_PASSWORD) as connection:
        return str(connection.execute(sql.encode()).fetchall())


def told() -> dict[str, tuple[int, int]]:
    """Return the steps and words of each trial that the owner's manual says."""
    rows = re.findall(
        r"^\| ([^|]+) \| (\d+) \| (\d+) \|", text("owner").split(f"\n{_HEADING}\n")[1], re.MULTILINE
    )
    return {name: (int(steps), int(words)) for name, steps, words in rows}


def main() -> int:
    """Install, go through all trials, print the table."""
    postgres = PostgresServer(find_servers()[-1])
    with tempfile.TemporaryDirectory() as folder, postgres:
        run = install(Path(folder))
        hours = {trial.name: hold(trial, postgres, run) for trial in TRIALS}
        times = run.spent[TRIALS[0].name] / run.bare()
    print("| data | commands to the first answer | words to fill in | seconds |\n|---|---|---|---|")
    for name, hour in hours.items():
        print(f"| {name} | {hour.steps} | {hour.words} | {hour.seconds:.1f} |")
    print(f"{TRIALS[0].name}: {times:.1f} times the processor of a bare import")
    if times > MOST_TIMES:
        print(f"{MOST_TIMES} times are asked at most")
        return 1
    found = {name: (hour.steps, hour.words) for name, hour in hours.items()}
    if found != told():
        print(f"the owner's manual says something else below {_HEADING!r}: {told()}")
        return 1
    print(f"{len(hours)} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
