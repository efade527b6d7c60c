"""Real tools against a server, as `make tools` runs them: `python -m dpsql.tests.tools ENVIRONMENT`.

ENVIRONMENT: the folder into which the Makefile has installed them, apart from dpsql. Each asks through itself over a
small DuckDB dataset; what is not answered as expected is told, and the exit code is 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

from dpsql.engine.dataset import open_ledger
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy
from dpsql.tests.server.clients.conftest import POLICY, SCHEMA
from dpsql.tests.server.conftest import PASSWORD, run_server

HERE = Path(__file__).parent
REFUSED = {"django exists where"}
"""What has to be refused: "no" would be told of people's rows."""
PROJECT = {
    "dbt_project.yml": 'name: p\nversion: "1.0.0"\nprofile: p\nmodel-paths: ["models"]\n',
    "profiles.yml": """
p: {{target: d, outputs: {{d: {{type: postgres, host: 127.0.0.1, port: {port}, user: alice, password: "{password}",
  dbname: people, schema: public, threads: 1}}}}}}
""",
    "models/people.yml": """
version: 2
sources:
  - name: people
    database: people
    schema: public
    tables:
      - name: thing
        columns: [{{name: id, tests: [not_null, unique]}}]
      - name: person
""",
    "models/by_city.sql": 'select city, count(*) as n from {{{{ source("people", "person") }}}} group by city\n',
}
STEPS = (("debug",), ("show", "--select", "by_city"), ("test",), ("docs", "generate", "--no-compile"))


def asked(command: list[str], folder: Path) -> list[tuple[str, str, str]]:
    """Return a script's lines: ok or failed, the check, what came."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.startswith(("ok\t", "failed\t"))]
    found = [(line[0], line[1], line[-1]) for line in lines]
    return found if done.returncode == 0 else [*found, ("failed", command[1], done.stderr[-1000:])]


def by_dbt(program: Path, port: int, folder: Path) -> list[tuple[str, str, str]]:
    """Return what dbt says of a project of one model and its sources."""
    for name, text in PROJECT.items():
        path = folder / "dbt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(port=port, password=PASSWORD))
    found = []
    for step in STEPS:
        done = subprocess.run(
            [program, "--no-use-colors", "--no-send-anonymous-usage-stats", *step, "--profiles-dir", "."],
            cwd=folder / "dbt", capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        found.append(("failed" if done.returncode else "ok", f"dbt {step[0]}", done.stdout[-600:]))
    return found


def main(environment: Path) -> int:
    """Run all that is installed; return the exit code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with duckdb.connect(str(folder / "people.duckdb")) as database:
            database.execute(SCHEMA)
        policy = folder / "people.toml"
        policy.write_text(
            POLICY.format(database="duckdb:people.duckdb", verifier=make_verifier(PASSWORD).text())
        )
        open_ledger(load_policy(policy), create=True).close()
        found: list[tuple[str, str, str]] = []
        with run_server(policy) as server:
            python = environment / "python/bin/python"
            found += asked([str(python), str(HERE / "ask_python.py"), str(server.port), PASSWORD], folder)
            found += by_dbt(environment / "dbt/bin/dbt", server.port, folder)
            if (environment / "node/node_modules").is_dir():
                script = shutil.copy(HERE / "ask_node.mjs", environment / "node")
                found += asked(["node", str(script), str(server.port), PASSWORD], folder)
    wrong = [one for one in found if (one[0] == "failed") != (one[1] in REFUSED)]
    for state, check, what in found:
        print(f"{state:7}{check}" if (state, check, what) not in wrong else f"WRONG  {check}: {what}")
    print(f"{len(found) - len(wrong)} of {len(found)} as expected")
    return int(bool(wrong) or not found)


if __name__ == "__main__":
    os.environ["DO_NOT_TRACK"] = "1"
    sys.exit(main(Path(sys.argv[1]).absolute()))
