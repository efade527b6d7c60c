"""Real tools against a server, as `make tools` runs them: `python -m dpsql.tests.tools ENVIRONMENT [SCRIPT …]`.

ENVIRONMENT: the folder into which the Makefile has installed them, apart from dpsql. Each asks through itself over a
small dataset in a DuckDB file and in a real Postgres; what is not answered as expected is told, and the exit code is 1.
A tool of Debian's that is not installed is skipped, and told.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsql.cli import demo
from dpsql.tests.tools import dbt_university
from dpsql.tests.tools.serving import ENGINES, PASSWORD, serve_beside_postgres, serve_demo
from dpsql.tests.tools.shares import LEAST, asked_through

HERE = Path(__file__).parent
REFUSED = {"django exists where"}
"""What has to be refused: "no" would be told of people's rows."""
PROJECT = {
    "dbt_project.yml": 'name: p\nversion: "1.0.0"\nprofile: p\nmodel-paths: ["models"]\nseed-paths: ["seeds"]\n',
    "profiles.yml": """
p: {{target: d, outputs: {{d: {{type: postgres, host: 127.0.0.1, port: {port}, user: alice, password: "{password}",
  dbname: people, schema: workspace, threads: 1}}}}}}
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
    "seeds/labels.csv": "city,label\nnorth,up\nsouth,it's down\n",
    "models/stg_person.sql": 'select city, age from {{{{ source("people", "person") }}}}\n',
    "models/by_city.sql": '{{{{ config(materialized="table") }}}}\n'
    'select city, count(*) as n from {{{{ ref("stg_person") }}}} group by city\n',
    "models/labelled.sql": 'select label, n from {{{{ ref("by_city") }}}} join {{{{ ref("labels") }}}} using (city)\n',
    "models/grown.sql": '{{{{ config(materialized="incremental", unique_key="city") }}}}\nselect * from {{{{ ref("by_city") }}}}\n',
}
STEPS = (
    ("debug",), ("seed",), ("run",), ("run",), ("seed", "--full-refresh"), ("show", "--select", "labelled"), ("test",),
    ("docs", "generate"),
)  # fmt: skip


GO = Path("/usr/share/gocode")
GGPLOT = Path("/usr/lib/R/site-library/ggplot2")
JDBC = Path("/usr/share/java/postgresql.jar")
Found = tuple[str, str, str]
"""Ok, failed or skipped; the check; what came."""


@dataclass(frozen=True)
class Tool:
    """A script that asks through a tool: how it is run before port and password, what follows them, what it needs."""

    script: str
    command: Sequence[str | Path]
    needs: Path | str | None
    after: Sequence[str | Path] = ()


def tools(environment: Path, folder: Path) -> list[Tool]:
    """Return all tools; `needs`: a file, or a program on the path."""
    python, frames, node = (
        environment / "python/bin/python",
        environment / "frames/bin/python",
        environment / "node",
    )
    odbc = next(
        Path("/usr/lib").glob("*/odbc/psqlodbcw.so"), Path("psqlodbcw.so of Debian's odbc-postgresql")
    )
    superset = environment / "superset/bin/python"
    return [
        Tool("ask_python.py", [python], python),
        Tool("ask_frames.py", [frames], frames),
        Tool("ask_findings.py", [frames], frames),
        Tool("ask_odbc.py", [frames], odbc, [odbc]),
        Tool("ask_superset.py", [superset], superset, [folder]),
        Tool("ask_node.mjs", ["node"], node / "node_modules"),
        Tool("ask_more.mjs", ["node"], node / "node_modules"),
        Tool("Ask.java", ["java", "-Duser.timezone=UTC", "-cp", JDBC], JDBC),
        Tool("ask.go", ["env", "GO111MODULE=off", f"GOPATH={GO}", "go", "run", HERE / "pgx_forms.go"], GO / "src/github.com/jackc/pgx"),
        Tool("ask.R", ["Rscript"], "Rscript"),
    ]  # fmt: skip


def asked(tool: Tool, environment: Path, folder: Path, port: int, password: str = PASSWORD) -> list[Found]:
    """Return what a tool says: a line for each check."""
    there = shutil.which(tool.needs) if isinstance(tool.needs, str) else tool.needs and tool.needs.exists()
    if not there:
        return [("skipped", tool.script, f"needs {tool.needs}")]
    script = HERE / tool.script
    if script.suffix == ".mjs":  # which finds its modules from where it stands
        script = Path(shutil.copy(script, environment / "node"))
    command = [*tool.command, script, str(port), password, *tool.after]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=1200)
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.startswith(("ok\t", "failed\t"))]
    found = [(line[0], line[1], line[-1]) for line in lines]
    return found if done.returncode == 0 else [*found, ("failed", tool.script, done.stderr[-1000:])]


def by_dbt(
    program: Path,
    port: int,
    folder: Path,
    project: Mapping[str, str],
    steps: Sequence[Sequence[str]],
    password: str,
) -> list[Found]:
    """Return what dbt says of a project."""
    for name, text in project.items():
        path = folder / "dbt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(port=port, password=password, user=demo.ANALYST))
    found = []
    for step in steps:
        done = subprocess.run(
            [program, "--no-use-colors", "--no-send-anonymous-usage-stats", *step, "--profiles-dir", "."],
            cwd=folder / "dbt", capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        found.append(("failed" if done.returncode else "ok", f"dbt {step[0]}", done.stdout[-600:]))
    return found


def by_drivers(environment: Path, folder: Path) -> list[Found]:
    """Return of each driver what share of the statements that a Postgres of empty tables answers dpsql does."""
    python, node = environment / "frames/bin/python", environment / "node"
    go = ["env", "GO111MODULE=off", f"GOPATH={GO}", "go", "run", HERE / "share.go"]
    of_python = (
        "psycopg3", "psycopg2", "asyncpg", "pg8000", "sqlalchemy psycopg", "sqlalchemy psycopg2", "sqlalchemy asyncpg",
        "sqlalchemy pg8000",
    )  # fmt: skip
    commands: dict[str, list[str | Path]] = {
        **{driver: [python, HERE / "share.py"] for driver in of_python},
        **{driver: ["node", node / "share.mjs"] for driver in ("pg", "postgres.js", "knex", "kysely", "drizzle")},
        "jdbc": ["java", "-Duser.timezone=UTC", "-cp", JDBC, HERE / "Share.java"], "pgx": go,
    }  # fmt: skip
    needs = {"jdbc": JDBC, "pgx": GO / "src/github.com/jackc/pgx"}
    if node.exists():
        shutil.copy(HERE / "share.mjs", node)
    found = []
    with serve_beside_postgres(folder) as ports:
        for driver, command in commands.items():
            needed = needs.get(driver, node / "node_modules" if command[0] == "node" else python)
            if not needed.exists():
                found.append(("skipped", f"share {driver}", f"needs {needed}"))
                continue
            try:
                known, answered, missing = asked_through(command, driver, folder, ports, PASSWORD)
            except RuntimeError as error:
                found.append(("failed", f"share {driver}", str(error)))
                continue
            state = "ok" if known and answered >= LEAST * known else "failed"
            print(
                f"{driver}: {answered} of {known} that Postgres answers; not: {'; '.join(missing) or 'none'}",
                flush=True,
            )
            found.append((state, f"share {driver}", f"{answered} of {known}: {missing}"))
    return found


def main(environment: Path, *scripts: str) -> int:
    """Run all that is installed, or what is named, over each engine; return the exit code."""
    expected, asked_of = Counter[str](), Counter[str]()
    program = environment / "dbt/bin/dbt"

    def tell(engine: str, found: list[tuple[str, Found]]) -> None:
        for of, (state, check, what) in found:
            is_wrong = state != "skipped" and (state == "failed") != (check in REFUSED)
            asked_of[of] += state != "skipped"
            expected[of] += state != "skipped" and not is_wrong
            shown = f": {what}" if is_wrong or state == "skipped" else ""
            print(f"{'WRONG' if is_wrong else state:8}{engine:9}{check}{shown}", flush=True)

    with tempfile.TemporaryDirectory() as name:
        for engine, serve in ENGINES.items():
            folder = Path(name) / engine
            folder.mkdir()
            with serve(folder) as server:
                found: list[tuple[str, Found]] = []
                for tool in tools(environment, Path(name)):
                    if not scripts or tool.script in scripts:
                        found += ((tool.script, one) for one in asked(tool, environment, folder, server.port))
                if not scripts or "dbt" in scripts:
                    dbt = by_dbt(program, server.port, folder, PROJECT, STEPS, PASSWORD)
                    found += (("dbt", one) for one in dbt)
            tell(engine, found)
        charts = environment / "charts/bin/python"
        superset = environment / "superset/bin/python"
        drawing = [
            Tool("draw_superset.py", [superset], "chromium", [name, environment / "superset.png"]),
            Tool("draw_charts.py", [charts], charts, [environment]),
            Tool("draw.R", ["Rscript"], GGPLOT, [environment]),
        ]
        wanted = [one for one in drawing if not scripts or one.script in scripts]
        if wanted or "university" in scripts:
            folder = Path(name) / "demo"
            with serve_demo(folder) as server:
                password = demo.PASSWORD
                found = [
                    (tool.script, one)
                    for tool in wanted for one in asked(tool, environment, folder, server.port, password)
                ]  # fmt: skip
                if not scripts or "university" in scripts:
                    project, steps = dbt_university.PROJECT, dbt_university.STEPS
                    dbt = by_dbt(program, server.port, folder, project, steps, password)
                    found += (("dbt university", one) for one in dbt)
            tell("demo", found)
        if not scripts or "shares" in scripts:
            folder = Path(name) / "shares"
            folder.mkdir()
            tell("postgres", [("shares", one) for one in by_drivers(environment, folder)])
    for of, count in asked_of.items():
        print(f"{of}: {expected[of]} of {count} as expected" if count else f"{of}: not seen here")
    print(f"{expected.total()} of {asked_of.total()} as expected")
    return int(expected != asked_of or not asked_of.total())


if __name__ == "__main__":
    os.environ["DO_NOT_TRACK"] = "1"
    sys.exit(main(Path(sys.argv[1]).absolute(), *sys.argv[2:]))
