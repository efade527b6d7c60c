"""Long texts of who takes much are read in another process first: the same answers and refusals, with it and without."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.engine.spine import LONG, StatementTurns
from dpsql.errors import Refusal
from dpsql.policy import load_policy
from dpsql.sql import text_process
from dpsql.sql.statement import check_statement
from dpsql.sql.text import check_words, split_statements
from dpsql.sql.text_process import TextProcess
from dpsql.waits import Precedence

from ..server.conftest import COUNT, make_dataset

BOMBS = {
    "listed": f"SELECT COUNT(*) FROM person WHERE age IN ({'1, ' * 10_000} 0)",
    "united": " UNION ".join([COUNT, *(f"SELECT {i}" for i in range(500))]),
    "negated": f"SELECT COUNT(*) FROM person WHERE {'NOT ' * 15_000} (age = 1)",
    "nested": f"SELECT {'(' * 2_000}1{')' * 2_000}",
    "unread": f"SELECT COUNT(*) FROM person WHERE {'age = 1 OR ' * 500} FROM",
    "unclosed": f"SELECT '{'x' * 5_000}",
}


def process_of(text: str) -> int:
    return os.getpid()


@pytest.fixture(scope="module")
def texts() -> Iterator[TextProcess]:
    made = ready(TextProcess())
    yield made
    made.close()


def ready(texts: TextProcess) -> TextProcess:
    """Return it once its process is there; until then nobody waits for that."""
    while not texts._is_ready:
        assert texts.call(len, "four") == 4
    return texts


def said(check: Callable[[str], object], text: str) -> tuple[object, ...]:
    with pytest.raises(Refusal) as refused:
        check(text)
    one = refused.value
    return one.sqlstate, one.message, one.hint, one.position, str(one)


@pytest.mark.parametrize("name", BOMBS)
def test_the_same_refusals(texts: TextProcess, name: str) -> None:
    text = BOMBS[name]
    assert texts.call(process_of, text) != os.getpid()
    assert said(lambda one: texts.call(check_statement, one), text) == said(check_statement, text)
    assert texts.call(split_statements, text) == split_statements(text)


def test_what_fails_there_is_done_here(texts: TextProcess) -> None:
    """A bug is met where its place can be told."""
    assert texts.call(len, "four") == 4
    with pytest.raises(ValueError, match="invalid literal"):
        texts.call(int, "four")
    assert texts.call(process_of, "") != os.getpid()


def test_a_server_with_many_open_files_reads_there_too() -> None:
    """The number of a file passes what `select` can look at, 1,023, where many clients are connected."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        if soft < 2048:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard), hard))
            stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        while (file := os.dup(0)) < 1024:
            stack.callback(os.close, file)
        stack.callback(os.close, file)
        texts = TextProcess()
        stack.callback(texts.close)
        assert ready(texts).call(process_of, "") != os.getpid()


def test_a_process_that_dies_is_begun_again() -> None:
    texts = ready(TextProcess())
    first = texts._process
    assert first is not None
    first.kill()
    first.wait()
    assert texts.call(process_of, "") == os.getpid()
    assert ready(texts)._process is not first
    assert texts.call(process_of, "") != os.getpid()
    texts.close()
    assert texts._process is None


def test_processes_that_do_not_last_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_process.sys, "executable", "/bin/false")
    texts, begun = TextProcess(), set[int]()
    for _ in range(50):
        assert texts.call(process_of, "") == os.getpid()
        if texts._process is not None:
            begun.add(texts._process.pid)
            texts._process.wait()
    assert len(begun) <= 10
    assert texts._count == 10
    assert texts._process is None


def test_it_ends_with_who_began_it() -> None:
    texts = ready(TextProcess())
    process = texts._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    texts.close()


def test_another_version_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_process, "_version", lambda: "of before the upgrade")
    texts = ready(TextProcess())
    assert texts.call(process_of, "") == os.getpid()
    texts.close()


def test_whose_texts_are_read_there() -> None:
    precedence, texts = Precedence(), TextProcess()
    turns = StatementTurns(1, precedence, "people", texts)
    assert turns.elsewhere(LONG + 1, "mallory") is None, "of who has taken little"
    precedence.take("people mallory", 1.0)
    assert turns.elsewhere(LONG + 1, "mallory") is texts
    assert turns.elsewhere(LONG, "mallory") is None, "a short text"
    assert turns.elsewhere(LONG + 1, "alice") is None, "somebody else's"


class Recorded(TextProcess):
    """Takes note of what it is asked, and does it here."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def _asked(self, function: Callable[[str], object], text: str) -> tuple[str, object]:
        self.asked.append(function.__name__)
        return "unsaid", None


@pytest.mark.parametrize("name", BOMBS)
def test_a_session_refuses_the_same(tmp_path: Path, name: str) -> None:
    policy = load_policy(make_dataset(tmp_path))
    open_ledger(policy, create=True).close()
    dataset, precedence, texts = Dataset.open(policy), Precedence(), Recorded()
    turns = StatementTurns(1, precedence, "", texts)
    session = Session(dataset, "analyst", is_shared=True, turns=turns)
    try:
        before = said(session.execute, BOMBS[name])
        assert not texts.asked
        precedence.take(" analyst", 60.0)
        assert said(session.execute, BOMBS[name]) == before
        session.read_text(split_statements, BOMBS[name])
        assert texts.asked == ["check_statement", "split_statements"]
        assert session.execute(f"{COUNT} -- {'x' * LONG}").rows, "what is no bomb is answered"
        session.read_text(check_words, COUNT)
        assert texts.asked[2:] == ["check_statement"]
    finally:
        dataset.close()
