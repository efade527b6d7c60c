"""Every place where a ledger can be: a SQLite file, and a database of a real Postgres of each major."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from dpsql.budget import LedgerStore
from dpsql.policy import Accounting
from dpsql.tests.support.postgres_fixtures import NEWEST_FIRST, postgres_majors
from dpsql.tests.support.postgres_server import Installation, PostgresServer

from .samples import Place

MajorServer = Callable[[Installation], PostgresServer]
SERVERS = postgres_majors()


@pytest.fixture(scope="session")
def durable_server() -> Iterator[MajorServer]:
    """Give a function that starts an installation's server, once in this process; it keeps what it commits."""
    with ExitStack() as stack:
        yield cache(lambda found: stack.enter_context(PostgresServer(found, durable=True)))


def _on_server(folder: Path, server: PostgresServer) -> Iterator[Place]:
    """Give a database of the server in which no ledger is; one a server, since making one takes its time."""
    with server.admin() as admin:
        if admin.execute("SELECT 1 FROM pg_database WHERE datname = 'books'").fetchone() is None:
            server.create_database("books")
    yield Place(server.url("books"), folder / "policy-ledger.log")
    with server.admin("books") as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = 'books' AND pid <> pg_backend_pid()"
        )
        admin.execute("DROP SCHEMA IF EXISTS dpsql CASCADE")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put under `long` all pairs of: by month, on a server, beside a running peer. Each stays by itself."""
    for item in items:
        if not isinstance(item, pytest.Function) or item.path.parent != Path(__file__).parent:
            continue
        of = item.callspec.params if hasattr(item, "callspec") else {}
        is_by_month = of.get("kept") == "by month" or of.get("divided") is True
        if is_by_month + (of.get("place") is not None) + bool(of.get("has_peer")) > 1:
            item.add_marker(pytest.mark.long)


def _name(found: Installation | None) -> str:
    return f"pg{found.major}" if found else "sqlite"


@pytest.fixture(params=[None, *NEWEST_FIRST], ids=_name)
def place(request: pytest.FixtureRequest, tmp_path: Path, durable_server: MajorServer) -> Iterator[Place]:
    """Give a place where no ledger is yet: on SQLite, and on the newest Postgres; in the long run on the oldest too."""
    if request.param is None:
        yield Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log")
        return
    yield from _on_server(tmp_path, durable_server(request.param))


@pytest.fixture
def store(place: Place) -> Iterator[LedgerStore]:
    opened = place.open()
    yield opened
    opened.close()


@pytest.fixture
def server(durable_server: MajorServer) -> PostgresServer:
    """Give the newest Postgres at hand."""
    return durable_server(SERVERS[-1])


@pytest.fixture
def shared(tmp_path: Path, server: PostgresServer) -> Iterator[Place]:
    """Give a place for a ledger on the newest Postgres."""
    yield from _on_server(tmp_path, server)


@pytest.fixture(params=list(Accounting), ids=lambda accounting: accounting.value)
def accounting(request: pytest.FixtureRequest) -> Accounting:
    """Give each kind of accounting that a ledger can be kept in."""
    kind: Accounting = request.param
    return kind


Kept = Callable[[Place], Place]
KINDS = {
    "pure": (Accounting.PURE, False),
    "zcdp": (Accounting.ZCDP, False),
    "by month": (Accounting.PURE, True),
}


@pytest.fixture(params=["pure", "by month", pytest.param("zcdp", marks=pytest.mark.long)])
def kept(request: pytest.FixtureRequest) -> Kept:
    """Give each way in which a ledger can be kept: what it does to a place.

    What is killed, damaged or raced for is the same record in rho, with another number in it: under `long`.
    """
    accounting, is_sliced = KINDS[request.param]
    return lambda place: replace(place, accounting=accounting, is_sliced=is_sliced)


@pytest.fixture(params=[False, True], ids=["as a whole", "by month"])
def divided(request: pytest.FixtureRequest) -> Kept:
    """Give both: a ledger that is kept as a whole, and one by periods."""
    return lambda place: replace(place, is_sliced=request.param)
