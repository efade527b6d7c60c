"""The dataset that the tools ask, served from a DuckDB file and from a real Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from dpsql.cli.demo import MAIN_POLICY, make_folder
from dpsql.engine.dataset import open_ledger
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy
from dpsql.tests.server.clients.conftest import POLICY, SCHEMA
from dpsql.tests.server.conftest import PASSWORD, Served, run_server
from dpsql.tests.support.postgres_copy import copy_rows, copy_schema
from dpsql.tests.support.postgres_server import PostgresServer, find_servers

__all__ = ["ENGINES", "PASSWORD", "serve_beside_postgres", "serve_demo"]


@contextmanager
def serve_duckdb(folder: Path) -> Iterator[Served]:
    with duckdb.connect(str(folder / "people.duckdb")) as database:
        database.execute(SCHEMA)
    with _serve(folder, "duckdb:people.duckdb") as served:
        yield served


@contextmanager
def serve_postgres(folder: Path) -> Iterator[Served]:
    with PostgresServer(find_servers()[-1]) as engine:
        name = engine.create_database()
        with duckdb.connect() as source, engine.admin(name) as target:
            source.execute(SCHEMA)
            copy_schema(source, target)
            copy_rows(source, target)
        with _serve(folder, engine.create_reader(name)) as served:
            yield served


@contextmanager
def serve_beside_postgres(folder: Path) -> Iterator[tuple[int, int]]:
    """The dataset in a real Postgres and dpsql over it: ports of a Postgres with the declared tables, empty, and of dpsql."""
    with PostgresServer(find_servers()[-1]) as oracle, serve_postgres(folder) as served:
        oracle.create_database("people")
        with duckdb.connect() as source, oracle.admin("people") as target:
            source.execute(SCHEMA)
            copy_schema(source, target)
        oracle.create_reader("people", "alice")
        with oracle.admin("people") as administrator:
            administrator.execute(f"ALTER ROLE alice PASSWORD '{PASSWORD}'")
        yield oracle.port, served.port


@contextmanager
def serve_demo(folder: Path) -> Iterator[Served]:
    """The university of `dpsql demo`, for its analyst."""
    folder.mkdir()
    make_folder(folder, fresh=False)
    with run_server(folder / MAIN_POLICY) as served:
        yield served


@contextmanager
def _serve(folder: Path, database: str) -> Iterator[Served]:
    policy = folder / "people.toml"
    policy.write_text(POLICY.format(database=database, verifier=make_verifier(PASSWORD).text()))
    open_ledger(load_policy(policy), create=True).close()
    with run_server(policy) as served:
        yield served


ENGINES = {"duckdb": serve_duckdb, "postgres": serve_postgres}
