"""Rows of two people: votes on posts where voter and author are protected, beside the same where the voter alone is.

A million votes with heavy tails: of 100,000 voters and 100,000 authors some have thousands. The same statement is asked
of two policies: posts are people's, or public. On DuckDB processor time is compared, on Postgres wall time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.figure import Figure, Size, Times, compare
from dpsql import Session
from dpsql.engine.dataset import open_ledger
from dpsql.policy import parse_policy
from dpsql.tests.support.postgres_server import PostgresServer, find_servers

__all__ = ["measure"]

_TABLES = """
CREATE TABLE person (id INTEGER PRIMARY KEY);
CREATE TABLE post (id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, cat INTEGER NOT NULL);
CREATE TABLE vote (
    id INTEGER PRIMARY KEY, voter INTEGER NOT NULL, post_id INTEGER NOT NULL, month INTEGER NOT NULL,
    amount INTEGER NOT NULL)
"""
_ROWS = """
INSERT INTO person SELECT range + 1 FROM range({people});
INSERT INTO post SELECT range + 1, least({people}, floor(pow(1 - {post}, -1 / 1.1)))::INTEGER, range % 24
    FROM range({people});
INSERT INTO vote SELECT
    range + 1, least({people}, floor(pow(1 - {voter}, -1 / 0.5)))::INTEGER,
    (least({people}, floor(pow(1 - {post}, -1 / 0.6))) * 7919 % {people})::INTEGER + 1,
    range % 12 + 1, (range * 31) % 501
    FROM range({rows})
"""
_POLICY = """
database = "{database}"
ledger = "sqlite:{ledger}"
[privacy]
epsilon = 1000
delta = 0.5
[defaults]
epsilon = 0.1
[tables.person]
unit = "id"
[tables.vote]
unit = {{ column = "voter", references = "person.id" }}
max_rows = {first}
max_rows_per_group = {first}
max_groups = 12
{also}
[tables.vote.columns]
id = {{}}
post_id = {{}}
month = {{ values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] }}
amount = {{ bounds = [0, 500] }}
[tables.post]
{post}
"""
_MESSAGES = """
database = "duckdb:{database}"
ledger = "sqlite:{ledger}"
[privacy]
accounting = "{accounting}"
epsilon = 1000
delta = 0.5
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.message]
unit = {{ column = "sender", references = "person.id" }}
max_rows = {first}
also = [{{ column = "receiver", references = "person.id", max_rows = {most} }}]
[tables.message.columns]
id = {{}}
month = {{ values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] }}
"""
_TWO = 'also = [{{ column = "post_id", references = "post.id", max_rows = {most} }}]'
_OWNED = 'unit = { column = "owner", references = "person.id" }\ncolumns = { id = {} }'
_JOIN = "FROM vote v JOIN post p ON v.post_id = p.id"
_ASKED = (
    f"SELECT v.month, COUNT(*) {_JOIN} GROUP BY v.month",
    f"SELECT v.month, COUNT(*), SUM(v.amount) {_JOIN} GROUP BY v.month",
)
_BOUNDS = ((20, 100), (200, 1000))
_LIMITS = {"DuckDB": 2.0, "Postgres": 2.0}


def measure(size: Size) -> Iterator[Figure]:
    """Yield how long votes by month take with both people protected, beside the voter alone."""
    rows = min(size.rows, 1_000_000)
    path = size.folder / "votes.db"
    with duckdb.connect(str(path)) as connection:
        for statement in [*_TABLES.split(";"), *_filled(rows).split(";")]:
            connection.execute(statement)
    yield from _ratios(size, "DuckDB", f"duckdb:{path}")
    yield from _errors(size, rows)
    with PostgresServer(find_servers()[-1], settings={"shared_buffers": "1GB"}) as server:
        database = server.create_database()
        with server.admin(database) as admin, duckdb.connect(str(path), read_only=True) as connection:
            for statement in _TABLES.split(";"):
                admin.execute(statement)
            for table in ("person", "post", "vote"):
                with admin.cursor().copy(f"COPY {table} FROM STDIN") as copied:
                    for row in connection.execute(f"SELECT * FROM {table}").fetchall():
                        copied.write_row(row)
            admin.execute("ANALYZE")
        yield from _ratios(size, "Postgres", server.create_reader(database))


def _errors(size: Size, rows: int) -> Iterator[Figure]:
    """Yield how far off messages by month are at epsilon 1: noise and what is cut, of a mean group, in percent."""
    path, people = size.folder / "messages.db", max(10, rows // 10)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY)")
        connection.execute(f"INSERT INTO person SELECT range FROM range({people})")
        connection.execute(
            "CREATE TABLE message (id INTEGER PRIMARY KEY, sender INTEGER, receiver INTEGER, month INTEGER)"
        )
        draws = [f"(hash(range * 16 + {start}) % 4294967296 / 4294967296.0)" for start in (1, 7)]
        sent, received = (
            f"floor({people} * pow({u}, {a}))" for u, a in zip(draws, (1.67, 1.55), strict=True)
        )
        connection.execute(
            f"INSERT INTO message SELECT range, {sent}, {people} - 1 - {received}, range % 12 + 1 FROM range({rows})"
        )
        exact = dict(connection.execute("SELECT month, COUNT(*) FROM message GROUP BY month").fetchall())
    for accounting, first, most, limit in (("pure", 100, 200, 1.1), ("zcdp", 200, 100, 0.5)):
        ledger, policy = (
            size.folder / f"messages-{accounting}.db",
            size.folder / f"messages-{accounting}.toml",
        )
        text = _MESSAGES.format(database=path, ledger=ledger, accounting=accounting, first=first, most=most)
        policy.write_text(text, "utf-8")
        open_ledger(parse_policy(text, policy), create=True)
        with Session.open(policy) as session:
            sql = (
                "SELECT m.month, COUNT(*) FROM message m JOIN person r ON m.receiver = r.id GROUP BY m.month"
            )
            (release,) = session.explain(sql).plan.releases
            spread = float(release.measures[0].scale / release.measurements[0].denominator)
            (query,) = release.queries((0,))
        with duckdb.connect(str(path), read_only=True) as connection:
            kept = dict(connection.execute(query.sql).fetchall())
        noise = 2 * spread**2 if accounting == "pure" else spread**2
        unit = release.measurements[0].denominator
        squares = [noise + (exact[month] - kept[month] / unit) ** 2 for month in exact]
        error = 100 * math.sqrt(sum(squares) / len(squares)) / (rows / 12)
        where = f"at most {first} and {most} rows, noise alone {100 * math.sqrt(noise) / (rows / 12):.2f}"
        yield Figure(f"messages by month, {accounting}, epsilon 1", error, limit, "%", where)


def _filled(rows: int) -> str:
    """Return what fills the tables: the number of a row, scattered, stands for a draw."""
    draws = {
        name: f"(hash(range * 16 + {start}) % 4294967296 / 4294967296.0)"
        for name, start in (("post", 1), ("voter", 7))
    }
    return _ROWS.format(people=max(10, rows // 10), rows=rows, **draws)


def _ratios(size: Size, engine: str, database: str) -> Iterator[Figure]:
    for first, most in _BOUNDS:
        with ExitStack() as stack:
            both, one = (
                stack.enter_context(_opened(size, database, first, also, post))
                for also, post in ((_TWO.format(most=most), _OWNED), ("", "public = true"))
            )
            for sql in _ASKED:
                runs = [partial(Times.of, partial(session.execute, sql)) for session in (one, both)]
                for run in runs:
                    run()
                of = (lambda times: times.processor) if engine == "DuckDB" else (lambda times: times.wall)
                found = compare(*runs, max(3, size.repeats // 2), of=of)
                name = f"{engine}: {sql}, at most {first} and {most} rows"
                yield Figure(name, found.ratio, _LIMITS[engine], "x", str(found))


def _opened(size: Size, database: str, first: int, also: str, post: str) -> Session:
    number = len(list(size.folder.glob("two-*.toml")))
    path: Path = size.folder / f"two-{number}.toml"
    ledger = size.folder / f"two-{number}-ledger.db"
    text = _POLICY.format(database=database, ledger=ledger, first=first, also=also, post=post)
    path.write_text(text, "utf-8")
    open_ledger(parse_policy(text, path), create=True)
    session = Session.open(path)
    session.execute("SET dpsql.reuse = off")
    return session
