"""The price while one types: EXPLAIN's figures, without a row, a connection or a charge; the last text wins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from dpsql.engine.dataset import Dataset
from dpsql.engine.session import Session
from dpsql.studio.desk import Desk, Overtaken
from dpsql.tests.support.length import tried

from .conftest import ANALYST, Page

COUNT = "SELECT COUNT(*) AS n FROM student"
STATEMENTS = (
    COUNT,
    "SELECT major, AVG(gpa) AS g FROM student GROUP BY major",
    "SELECT branch, MEDIAN(days_out) FROM loan GROUP BY branch",
    "SELECT name, COUNT(*) FROM student GROUP BY name",
    "SELECT gpa FROM student",
    "SELECT * FROM course",
    "SELECT c.department, COUNT(*) FROM enrolment AS e JOIN course AS c ON c.id = e.course_id GROUP BY c.department",
    "SELECT cuont(*) FROM student",
    "EXPLAIN SELECT COUNT(*) FROM loan",
    "SET dpsql.epsilon = 0.5",
    "SHOW dpsql.budget",
    "",
)


def test_a_price_is_what_explain_says(page: Page, dataset: Dataset) -> None:
    found = page.ask("price", text=STATEMENTS[1])
    said = Session(dataset, ANALYST, is_shared=True).explain(STATEMENTS[1])
    assert found["state"] == "priced"
    assert (found["now"], found["charge"]) == ("0.1", said.as_dict()["charge"])
    assert found["columns"] == [{"name": "g", "expected": "± 59.91 / n at most at 95 %"}]


def test_a_refusal_has_its_code_place_and_hint(page: Page) -> None:
    found = page.ask("price", text=f"{COUNT}; SELECT majr, COUNT(*) FROM student GROUP BY majr", cursor=60)
    refusal = found["refusal"]
    assert (found["state"], refusal["code"], refusal["offset"]) == ("refused", "42703", 42)
    assert refusal["hint"].startswith("columns: ")


def touched(*_: object, **__: object) -> NoReturn:
    raise AssertionError("somebody types, and the database is touched")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_typing_touches_no_database_and_charges_nothing(
    page: Page, dataset: Dataset, campus: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = campus.parent / "campus-ledger.db.log"
    before = log.read_bytes()
    for name in ("snapshot", "cancel"):
        monkeypatch.setattr(dataset.backend, name, touched)
    for length in sorted({*range(0, len(statement), tried(5, 1)), len(statement)}):
        found = page.ask("price", text=statement[:length], cursor=length)
        assert found["state"] in ("priced", "refused", "free", "empty", "unread")
        page.ask("fix", text=statement[:length], cursor=length)
    assert log.read_bytes() == before
    assert dataset.refusals.read() == [], "what is typed is not what is asked"


def test_public_keys_are_not_read_for_a_price(page: Page) -> None:
    found = page.ask("price", text=STATEMENTS[6])
    assert found["state"] == "unread"


def test_what_is_stored_is_told_as_explain_tells_it(page: Page, dataset: Dataset) -> None:
    other = Session(dataset, "ben", is_shared=True)
    other.execute(COUNT)
    mine = Session(dataset, ANALYST, is_shared=True).explain(COUNT)
    assert page.ask("price", text=COUNT)["now"] == str(mine.cost) == "0"


def test_the_last_text_wins(desk: Desk) -> None:
    began, go, ended = threading.Event(), threading.Event(), list[str]()

    def slow(session: Session) -> str:
        began.set()
        go.wait(30)
        return "first"

    def planned(name: str, call: Callable[[Session], str]) -> None:
        try:
            ended.append(desk.plan(call, desk.settings))
        except Overtaken:
            ended.append(f"{name} overtaken")

    threads = [threading.Thread(target=planned, args=("first", slow))]
    threads[0].start()
    assert began.wait(30)
    for name in ("second", "third"):
        waits = desk._newest
        threads.append(threading.Thread(target=planned, args=(name, lambda _, name=name: name)))
        threads[-1].start()
        while desk._newest == waits:
            pass
    go.set()
    for thread in threads:
        thread.join(30)
    assert sorted(ended) == ["first", "second overtaken", "third"]


def test_a_long_planning_is_stopped_by_a_newer_text(desk: Desk) -> None:
    began = threading.Event()
    ended = list[str]()

    def endless(session: Session) -> str:
        with session.statement():
            began.set()
            assert session._cancelled.wait(30)
            session._check_cancelled()
        return "done"

    def first() -> None:
        try:
            desk.plan(endless, desk.settings)
        except Overtaken:
            ended.append("overtaken")

    thread = threading.Thread(target=first)
    thread.start()
    assert began.wait(30)
    assert desk.plan(lambda _: "second", desk.settings) == "second"
    thread.join(30)
    assert ended == ["overtaken"]
