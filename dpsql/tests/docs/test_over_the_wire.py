"""The way that a statement takes over the wire: as architecture.md has it, and through no more files than it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ..server.conftest import COUNT, TUNED, make_dataset, run_server
from .documents import section

HEADING = "The same over the wire"
NOTED = """
import json, sys, threading
from pathlib import Path
import dpsql
from dpsql.server.channel import Channel
package, found, is_on = str(Path(dpsql.__file__).parent) + "/", {}, False
def note(frame, event, argument):
    code = frame.f_code
    if is_on and event == "call" and code.co_filename.startswith(package):
        found[code.co_filename.removeprefix(package), code.co_qualname] = None
received, put = Channel.data_received, Channel.put
def first(channel, data):
    global is_on
    is_on = is_on or b"SELECT COUNT" in data
    received(channel, data)
def last(channel, data):
    global is_on
    if is_on:
        Path(sys.argv[1] + ".calls").write_text(json.dumps(list(found)))
    is_on = False
    return put(channel, data)
Channel.data_received, Channel.put = first, last
sys.setprofile(note)
threading.setprofile(note)
"""
"""Notes the functions that are called between a statement's bytes and the first of the reply's."""


def calls_of(policy: Path, sql: str) -> list[tuple[str, str]]:
    """Return the functions of dpsql that a statement calls in the server, in the order of their first calls."""
    with run_server(policy, code=NOTED + TUNED) as server, server.connect() as connection:
        connection.execute(sql)
    return [(file, name) for file, name in json.loads(Path(f"{policy}.calls").read_text())]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    return calls_of(make_dataset(tmp_path_factory.mktemp("wire")), COUNT)


def test_a_statement_is_followed_through_the_server(calls: list[tuple[str, str]]) -> None:
    shown = re.findall(r"^\| `([\w/.]+)`, `([\w.]+)` \|", section("architecture", HEADING), re.MULTILINE)
    assert len(shown) > 8
    assert [call for call in calls if call in shown] == shown


def test_a_statement_enters_no_more_files_than_are_told(calls: list[tuple[str, str]]) -> None:
    told = re.search(
        r"enters at most (\d+) files, at most (\d+) of them the server's", section("architecture", HEADING)
    )
    assert told
    files = {file for file, _ in calls}
    assert len(files) <= int(told[1])
    assert sum(file.startswith("server/") for file in files) <= int(told[2])
