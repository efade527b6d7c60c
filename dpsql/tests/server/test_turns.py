"""What the owner sets for public statements, and that one analyst's many connections have one share."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from dpsql.pgwire import make_verifier

from .conftest import COUNT, PASSWORD, SLOW, Served, cancelling, make_dataset, run_server


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    policy: Path = make_dataset(tmp_path_factory.mktemp("limited"))
    other = f'[analysts.bob]\nepsilon = 1\npassword = "{make_verifier(PASSWORD).text()}"\n'
    policy.write_text(f"{policy.read_text()}{other}[server]\npublic_rows = 100\n")
    with run_server(policy) as served:
        yield served


def test_more_rows_than_the_owner_gives(limited: Served) -> None:
    with limited.connect() as connection:
        assert len(connection.execute("SELECT i FROM number WHERE i < 100").fetchall()) == 100
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("SELECT i FROM number WHERE i < 101")
        assert refused.value.sqlstate == "54000"
        assert "LIMIT" in (refused.value.diag.message_hint or "")
        assert (
            len(connection.execute(f"SELECT x.n, i FROM ({COUNT}) AS x, number WHERE i < 200").fetchall())
            == 200
        )


def test_one_public_statement_at_a_time_an_analyst(limited: Served) -> None:
    """Another of the same analyst waits its turn, what is stored does not, and other analysts have their own turn."""
    public = "SELECT COUNT(*) FROM number AS a WHERE a.i < 7"
    with (
        limited.connect() as one,
        limited.connect() as two,
        limited.connect() as three,
        limited.connect(user="bob") as bob,
    ):
        three.execute(COUNT).fetchall()
        with ThreadPoolExecutor(2) as threads:
            slow = threads.submit(one.execute, SLOW)
            while bob.execute(public).fetchall() == [(7,)]:
                waiting = threads.submit(two.execute, public)
                assert three.execute(COUNT).fetchall()
                if not waiting.done():
                    break
                assert not slow.done()
            assert bob.execute(public).fetchall() == [(7,)]
            with cancelling(one.cancel_safe):
                assert isinstance(slow.exception(timeout=300), psycopg.errors.QueryCanceled)
            assert waiting.result(timeout=300).fetchall() == [(7,)]


def test_the_owners_time_is_told_with_whose_it_is(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    policy.write_text(f"{policy.read_text()}[server]\npublic_seconds = 2\n")
    slow = SLOW.replace("= 3", "= 2").replace("b WHERE", "b, number AS c WHERE c.i <> a.i AND")
    with (
        run_server(policy) as limited,
        limited.connect() as connection,
        pytest.raises(psycopg.errors.QueryCanceled) as late,
    ):
        connection.execute(slow)
    assert late.value.diag.message_primary == "reading public tables took more than 2 seconds"
    assert "owner" in (late.value.diag.message_hint or "")
