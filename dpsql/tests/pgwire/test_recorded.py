"""Real clients' bytes, recorded against the scripted server: one chunk a line, as it came from the socket.

psql and pgbench 15.18, psycopg 3.3.9 with libpq 18 (pipelines, binary values, COPY), JDBC 42.7.13 (a fetch size,
prepared statements on the server).
"""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.pgwire import State, make_verifier
from dpsql.tests.support.length import tried

from .samples import make_script
from .scripted_server import ScriptedSession

FOLDER = Path(__file__).parent / "recorded"
ONCE = "Parse Bind Describe Execute Sync "
AGAIN = "Bind Describe Execute Sync "
LOGIN = "StartupMessage SASLInitialResponse SASLResponse "
KINDS = {
    "psql": f"SSLRequest {LOGIN}Query Query Query Query Query Terminate",
    "pgbench": f"{LOGIN}Parse Sync {AGAIN * 3}Terminate",
    # What follows the failed second Parse up to Sync is skipped.
    "psycopg": f"SSLRequest {LOGIN}Parse Bind Describe Execute Parse Sync {ONCE * 2}Parse Sync {AGAIN * 2}Query Terminate",
    "jdbc": (
        f"{LOGIN}Query {ONCE}Query {ONCE}Execute Sync Execute Sync Close {ONCE}"
        "Parse Describe Bind Execute Sync Bind Execute Sync Parse Sync Terminate"
    ),
}
"""The events that each must give."""


def _chunks(name: str) -> list[bytes]:
    return [ast.literal_eval(line) for line in (FOLDER / f"{name}.txt").read_text().splitlines()]


def _replay(chunks: list[bytes]) -> tuple[ScriptedSession, bytes]:
    session = ScriptedSession(
        make_script(make_verifier("secret", salt=b"0123456789abcdef")), nonce="fixednonce"
    )
    return session, b"".join(map(session.feed, chunks))


@pytest.mark.parametrize("name", KINDS)
def test_events_of_a_recorded_conversation(name: str) -> None:
    session, replied = _replay(_chunks(name))
    assert " ".join(type(event).__name__ for event in session.script.seen) == KINDS[name]
    assert session.connection.state is State.CLOSED
    assert b"08P01" not in replied


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
@settings(deadline=None, max_examples=tried(20, 50))
def test_split_anywhere_the_replies_are_the_same(name: str, data: st.DataObject) -> None:
    chunks = _chunks(name)
    whole = b"".join(chunks)
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=40).map(sorted))
    pieces = [whole[start:end] for start, end in pairwise([0, *cuts, len(whole)])]
    assert _replay(pieces)[1] == _replay(chunks)[1]


@pytest.mark.parametrize("name", KINDS)
def test_byte_by_byte_the_replies_are_the_same(name: str) -> None:
    chunks = _chunks(name)
    session, replied = _replay([bytes([byte]) for byte in b"".join(chunks)])
    expected, whole = _replay(chunks)
    assert (session.script.seen, replied) == (expected.script.seen, whole)


@pytest.mark.parametrize("name", KINDS)
def test_every_truncated_prefix_waits_for_more(name: str) -> None:
    whole = b"".join(_chunks(name))
    complete, _ = _replay([whole])
    for end in range(0, len(whole), tried(3, 1)):
        session, replied = _replay([whole[:end]])
        assert session.script.seen == complete.script.seen[: len(session.script.seen)]
        assert b"08P01" not in replied
        assert session.connection.state not in (State.FAILED, State.CLOSED)
