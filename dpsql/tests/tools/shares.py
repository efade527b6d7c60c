"""What share of each driver's statements dpsql answers, of those that Postgres answers with the declared tables, empty.

Each driver sends all statements through its own way of binding, to a real Postgres and to dpsql; a driver's own queries
of the catalog, as they were recorded, are among its statements. Writes and LISTEN are not.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["LEAST", "Share", "asked_through", "statements_of"]

LEAST = 0.95
HERE = Path(__file__).parent
_CORPUS = HERE.parent / "system_catalog/corpus.json"
Share = tuple[int, int, list[str]]
"""How many statements Postgres answers, how many of these dpsql answers, and the others."""

# Values: i a whole number, n a decimal, s a text, d a date.
_STATEMENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("SELECT COUNT(*) FROM person", ()),
    ("SELECT COUNT(*) FROM person WHERE age > $1", ("i:30",)),
    ("SELECT COUNT(*) FROM person WHERE city = $1 AND age BETWEEN $2 AND $3", ("s:north", "i:20", "i:60")),
    ("SELECT COUNT(*) FROM person WHERE born >= $1", ("d:1970-01-01",)),
    ("SELECT city, COUNT(*) AS n FROM person GROUP BY city ORDER BY n DESC", ()),
    ("SELECT city, AVG(income), SUM(age), MIN(age), MAX(age) FROM person GROUP BY city", ()),
    ("SELECT city, COUNT(*) FROM person GROUP BY city HAVING COUNT(*) > $1", ("i:10",)),
    ("SELECT date_trunc('month', taken) AS month, COUNT(*) FROM loan GROUP BY 1 ORDER BY 1", ()),
    ("SELECT date_trunc($1, taken) AS unit, COUNT(*) FROM loan GROUP BY 1 ORDER BY 1", ("s:quarter",)),
    ("SELECT extract(year FROM taken) AS y, extract(month FROM taken) AS m, COUNT(*) FROM loan GROUP BY 1, 2", ()),
    ("SELECT date_part($1, taken), COUNT(*) FROM loan GROUP BY 1", ("s:month",)),
    ("SELECT to_char(taken, 'YYYY-MM'), COUNT(*) FROM loan GROUP BY 1 LIMIT $1", ("i:5",)),
    ("SELECT DATE(taken), COUNT(*) FROM loan GROUP BY 1", ()),
    ("SELECT date_trunc('hour', taken)::time AS hour, COUNT(*) FROM loan GROUP BY 1", ()),
    ("SELECT COUNT(*) FROM loan WHERE taken::time >= '09:00'", ()),
    ("SELECT COUNT(*) FROM loan WHERE taken >= now() - interval '30 days'", ()),
    ("SELECT COUNT(*) FROM loan WHERE taken >= now() - make_interval(days => 30)", ()),
    ("SELECT COUNT(*) FROM loan WHERE taken >= CAST($1 AS timestamp)", ("s:2024-02-01 00:00:00",)),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM person", ()),
    ("SELECT COUNT(DISTINCT person_id) FROM loan", ()),
    ("SELECT COUNT(*) FILTER (WHERE active) AS a, COUNT(*) AS n FROM person", ()),
    ("SELECT SUM(CASE WHEN age > $1 THEN 1 ELSE 0 END) FROM person", ("i:50",)),
    ("SELECT p.city, COUNT(*) FROM loan l JOIN person p ON p.id = l.person_id GROUP BY p.city", ()),
    ("SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM loan l WHERE l.person_id = p.id AND l.amount > $1)", ("i:10",)),
    ("SELECT COUNT(*) FROM person WHERE id IN (SELECT person_id FROM loan WHERE amount > 10)", ()),
    ("WITH g AS (SELECT city, COUNT(*) AS n FROM person GROUP BY city) SELECT SUM(n), MAX(n) FROM g", ()),
    ("SELECT city, n, 100.0 * n / SUM(n) OVER () AS share FROM (SELECT city, COUNT(*) AS n FROM person GROUP BY city) q", ()),
    ("SELECT city, active, COUNT(*) FROM person GROUP BY ROLLUP (city, active)", ()),
    ("SELECT age / 10 * 10 AS bin, COUNT(*) FROM person GROUP BY 1 ORDER BY 1", ()),
    ("SELECT width_bucket(height, 1.4, 2.2, 8) AS bin, COUNT(*) FROM person GROUP BY 1", ()),
    ("SELECT upper(city), COUNT(*) FROM person GROUP BY 1", ()),
    ("SELECT COALESCE(city, $1) AS city, COUNT(*) FROM person GROUP BY 1", ("s:none",)),
    ("SELECT STDDEV(income), VAR_POP(age), CORR(age, income) FROM person", ()),
    ("SELECT COUNT(*) FROM person WHERE city LIKE $1", ("s:n%",)),
    ("SELECT COUNT(*) FROM person WHERE city = ANY (ARRAY['north', 'south'])", ()),
    ("SELECT COUNT(*) FROM person WHERE income IS NULL OR income < $1", ("n:12.5",)),
    ("SELECT 1 AS one, 'a' AS word, NULL AS nothing, true AS yes, 1.5 AS half", ()),
    ("SELECT CAST($1 AS integer) AS i, CAST($2 AS text) AS t, CAST($3 AS date) AS d", ("i:7", "s:x", "d:2024-02-29")),
    ("SELECT current_user, session_user, current_database(), current_schema()", ()),
    ("SELECT version()", ()),
    ("SELECT now(), current_date, current_timestamp", ()),
    ("SHOW server_version", ()),
    ("SHOW transaction_isolation", ()),
    ("SELECT current_setting('server_version_num')", ()),
    ("SELECT pg_backend_pid()", ()),
    ("SELECT * FROM number WHERE i < $1 ORDER BY i", ("i:5",)),
    ("SELECT * FROM thing ORDER BY id", ()),
    ("SELECT id, name, day FROM thing WHERE day = $1", ("d:2020-02-29",)),
    ("SELECT COUNT(*), MAX(i) FROM number", ()),
    ("SELECT i % 10 AS digit, COUNT(*) FROM number GROUP BY 1 ORDER BY 1", ()),
    ("SELECT name || $1 FROM thing WHERE id = $2", ("s:!", "i:1")),
    ("SELECT t.id, n.i FROM thing t LEFT JOIN number n ON n.i = t.id ORDER BY 1", ()),
    ("SELECT * FROM person LIMIT 10", ()),
    ("SELECT * FROM person WHERE 1 = 0", ()),
    ("SELECT id, city FROM person ORDER BY id LIMIT 100", ()),
    ("EXPLAIN SELECT COUNT(*) FROM person", ()),
    ("EXPLAIN (FORMAT JSON) SELECT COUNT(*) FROM person", ()),
    ("SET application_name = 'share'", ()),
    ("SET statement_timeout = 60000", ()),
    ("RESET statement_timeout", ()),
    ("BEGIN", ()), ("SAVEPOINT a", ()), ("SELECT COUNT(*) FROM number", ()), ("ROLLBACK TO a", ()), ("COMMIT", ()),
    ("SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = $1", ("s:public",)),
    ("SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = $1", ("s:person",)),
    ("SELECT oid, typname FROM pg_catalog.pg_type WHERE typname = $1", ("s:int4",)),
    ("SELECT relname, relkind FROM pg_catalog.pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1", ()),
    ("SELECT has_table_privilege('person', 'SELECT')", ()),
)  # fmt: skip
_CLIENTS = {
    "psycopg3": ("psycopg3",), "psycopg2": ("psycopg2",), "asyncpg": ("asyncpg",), "pg8000": ("pg8000",),
    "sqlalchemy psycopg": ("sqlalchemy/psycopg",), "sqlalchemy psycopg2": ("sqlalchemy/psycopg2",),
    "sqlalchemy asyncpg": ("sqlalchemy/asyncpg",),
    "sqlalchemy pg8000": ("sqlalchemy/pg8000",), "jdbc": ("jdbc",),
}  # fmt: skip


def statements_of(driver: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return what a driver is to send: what everybody asks, and what it was seen to ask of the catalog by itself."""
    recorded = json.loads(_CORPUS.read_text())
    own = [
        (one["sql"], ()) for one in recorded
        if one["client"] in _CLIENTS.get(driver, ()) and not one.get("values") and "set_config" not in one["sql"]
    ]  # fmt: skip
    return [*_STATEMENTS, *own]


def asked_through(
    command: Sequence[str | Path], driver: str, folder: Path, ports: tuple[int, int], word: str
) -> Share:
    """Return the share of a driver; `ports`: of a Postgres and of dpsql. Raises RuntimeError: the driver has failed."""
    asked = statements_of(driver)
    path = folder / "statements.tsv"
    path.write_text(
        "".join("\t".join([base64.b64encode(sql.encode()).decode(), *values]) + "\n" for sql, values in asked)
    )
    answers = []
    for port in ports:
        done = subprocess.run(
            [*command, driver, str(port), word, str(path)], cwd=folder, capture_output=True, text=True, check=False,
            timeout=900,
        )  # fmt: skip
        lines = [line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line]
        if done.returncode or len(lines) != len(asked):
            raise RuntimeError(f"{len(lines)} of {len(asked)} answers: {done.stderr[-600:]}")
        answers.append(lines)
    known = [i for i, (state, _) in enumerate(answers[0]) if state == "ok"]
    missing = [f"{asked[i][0][:80]}: {answers[1][i][1]}" for i in known if answers[1][i][0] != "ok"]
    return len(known), len(known) - len(missing), missing
