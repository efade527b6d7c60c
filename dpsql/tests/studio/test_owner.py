"""The owner's half: who asked what, what was refused, until when it lasts, and the policy as it would be."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import DpsqlError
from dpsql.policy import load_policy
from dpsql.studio import spending
from dpsql.studio.desk import BadRequest, Body, Desk, LoopbackDoor, Seat
from dpsql.studio.server import OWNER, StudioServer, endpoint_for
from dpsql.tests.support.browser import browsing, missing

from .conftest import Page

COUNT = "SELECT COUNT(*) FROM student"
BY_BRANCH = "SELECT branch, COUNT(*) FROM loan GROUP BY branch"
MEAN = "SELECT major, AVG(days_out) FROM loan JOIN student ON loan.student_id = student.id GROUP BY major"
HOSTILE = "<img src=x onerror=alert(1)>"


def spent(dataset: Dataset, analyst: str, *statements: str) -> None:
    desk = Desk(dataset, analyst)
    for sql in statements:
        with suppress(DpsqlError):
            desk.run(sql, None)
    desk.close()


def test_what_was_spent_is_told_by_analyst_table_and_day(page: Page, dataset: Dataset) -> None:
    spent(dataset, "grace", COUNT, MEAN)
    spent(dataset, "mallory", BY_BRANCH, "SELECT name FROM student")
    found = page.ask("spending")
    assert (found["unit"], found["spent"], found["cap"]) == ("epsilon", "0.3", "10")
    assert {one["name"]: one["spent"] for one in found["spenders"]} == {
        "analyst": "0", "grace": "0.2", "mallory": "0.1",
    }  # fmt: skip
    assert {one["name"]: (one["spent"], one["charges"]) for one in found["tables"]} == {
        "student": ("0.2", 2), "loan": ("0.2", 2),
    }  # fmt: skip
    (day,) = found["days"]
    assert day["day"] == found["today"]
    assert day["left"] == pytest.approx(0.97)
    assert [one["statement"] for one in found["entries"]] == [BY_BRANCH, MEAN, COUNT]
    (refused,) = found["refusals"]
    assert (refused["analyst"], refused["code"], refused["statement"]) == ("mallory", "PV002", "")
    assert found["forecast"]["ends"] is None  # too early to say


def test_how_far_off_a_statement_is_today_is_told_for_nothing(page: Page, dataset: Dataset) -> None:
    before = dataset.store.status()
    found = page.ask("errors", statement=COUNT)
    assert found["columns"] == [{"name": "count", "expected": "± 30 at 95 %"}]
    assert page.ask("errors", statement="SELECT name FROM student")["refusal"]["code"] == "PV002"
    assert page.ask("errors", statement="")["state"] == "empty"
    assert dataset.store.status() == before


def test_the_report_is_the_owners_and_reads_no_row(
    page: Page, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent(dataset, "grace", COUNT)
    before = dataset.store.status()
    dataset.backend.close_idle()
    monkeypatch.setattr(type(dataset.backend), "snapshot", None)  # nothing may be opened
    found = page.ask("report")["page"]
    assert COUNT in found
    assert "epsilon spent</dt><dd>0.1 " in found
    assert dataset.store.status() == before


def test_another_policy_says_what_it_does_and_writes_nothing(
    page: Page, campus: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, status = campus.read_text(), dataset.store.status()
    dataset.backend.close_idle()
    monkeypatch.setattr(type(dataset.backend), "snapshot", None)  # nothing may be opened
    tried = text.replace("max_rows   = 60", "max_rows   = 30").replace("step = 0.01 }", "step = 0.01 } # x")
    statements = [BY_BRANCH, "SELECT COUNT(*) FROM course", "SELECT name FROM student"]
    found = page.ask("try_policy", text=tried, statements=statements)
    halves = [found[when][0]["columns"][0]["expected"] for when in ("before", "after")]
    assert [float(one.split()[1]) for one in halves] == [1797.44, 898.72]
    assert [one["state"] for one in found["after"]][1:] == ["priced", "refused"]
    assert [line for line in found["difference"] if line.startswith(("-max", "+max"))] == [
        "-max_rows   = 60", "+max_rows   = 30",
    ]  # fmt: skip
    assert campus.read_text() == text
    assert dataset.store.status() == status


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("max_rows   = 60", "max_rows   = ", "is not valid TOML"),
        ("max_rows   = 60", "max_rows   = -1", "tables.loan.max_rows"),
        ('unit = "id"', 'unit = "nothing"', "nothing"),
        ("[privacy]", "[privac]", "privac"),
    ],
)
def test_a_wrong_policy_is_told_as_check_does(
    page: Page, campus: Path, old: str, new: str, said: str
) -> None:
    found = page.ask("try_policy", text=campus.read_text().replace(old, new, 1), statements=[COUNT])
    assert said in found["wrong"]["message"]
    assert found["after"] is None
    assert found["before"][0]["state"] == "priced"


def test_statements_to_try_are_the_newest_and_else_a_count_of_each_table(
    page: Page, dataset: Dataset
) -> None:
    counts = page.ask("policy")["statements"]
    assert counts == [f"SELECT COUNT(*) FROM {name}" for name in ("student", "loan", "enrolment", "review")]
    spent(dataset, "grace", COUNT, MEAN)
    assert page.ask("policy")["statements"] == [MEAN, COUNT]


@pytest.fixture
def several(campus: Path, tmp_path: Path) -> Iterator[Page]:
    """A studio of two policies over one university."""
    other = campus.with_name(f"{HOSTILE[:8]}.toml")
    other.write_text(
        campus.read_text()
        .replace("campus-ledger.db", "other.db")
        .replace("max_rows   = 60", "max_rows   = 30")
    )
    open_ledger(load_policy(other), create=True)
    with ExitStack() as stack:
        datasets = [stack.enter_context(closing(Dataset.open(one))) for one in (campus, other)]
        server = StudioServer(0, *[stack.enter_context(closing(Desk(one, "ada"))) for one in datasets])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Page(server)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def test_several_policies_are_each_by_themselves(several: Page) -> None:
    several.enter()

    def told(number: str, name: str, **body: str) -> tuple[int, dict[str, Any]]:
        headers = several.headers | {"X_Dpsql_Desk": number}
        status, _, found = several.request("POST", f"/api/{name}", body, **headers)
        return status, json.loads(found)

    names = ["campus", HOSTILE[:8]]
    for number, half in (("0", 1797.44), ("1", 898.72)):
        _, about = told(number, "about")
        assert (about["dataset"], about["datasets"]) == (names[int(number)], names)
        _, errors = told(number, "errors", statement=BY_BRANCH)
        assert float(errors["columns"][0]["expected"].split()[1]) == half
    assert told("1", "run", text=COUNT, cursor=0)[0] == 200  # type: ignore[arg-type]
    assert [told(number, "spending")[1]["spent"] for number in "01"] == ["0", "0.1"]
    for number in ("2", "-1", "01", "x", ""):
        assert told(number, "about")[0] == 404


@pytest.mark.skipif(bool(missing()), reason=missing() or "there is one")
def test_in_a_browser_another_policy_is_chosen(several: Page, tmp_path: Path) -> None:
    name = "return document.querySelector('#whose select')?.selectedOptions[0]?.textContent"
    with browsing(tmp_path / "profile") as browser:
        browser.open(several.server.door.link)
        for place, wanted in ((1, HOSTILE[:8]), (0, "campus")):
            for _ in range(200):
                if browser.run(f"{name} && document.title.includes('dpsql')"):
                    break
                browser.run("return new Promise(done => setTimeout(done, 50))")
            browser.run(
                f"const s = document.querySelector('#whose select'); s.value = '{place}'; s.dispatchEvent(new Event('change'))"
            )
            for _ in range(200):
                browser.run("return new Promise(done => setTimeout(done, 50))")
                if browser.run(f"return document.title.includes({wanted!r})"):
                    break
            assert browser.run(name) == wanted
        assert browser.complaints() == []


def test_an_analyst_has_none_of_it(desk: Desk) -> None:
    analyst, owner = Seat(desk, is_owner=False), Seat(desk, is_owner=True)
    assert set(OWNER) == {"spending", "errors", "report", "policy", "try_policy"}
    for name in OWNER:
        assert endpoint_for(owner, name) is not None
        assert endpoint_for(analyst, name) is None


@pytest.mark.parametrize(
    "body",
    [{}, {"text": 1, "statements": []}, {"text": "", "statements": "x"}, {"text": "", "statements": [1]},
     {"text": "", "statements": [COUNT] * 31}, {"text": "x" * 400_001, "statements": []}],
)  # fmt: skip
def test_what_the_page_does_not_send_is_refused(desk: Desk, body: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        spending.try_policy(Seat(desk, is_owner=True), Body(body))


def test_the_newest_of_many_charges_are_told_one_by_one(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.run(COUNT, None)
    (entry,) = desk.dataset.store.log(1)
    many = [replace(entry, statement=f"{COUNT} -- {number}") for number in range(3000)]
    monkeypatch.setattr(type(desk.dataset.store), "log", lambda _, number: many[:number])
    found = spending.spending(Seat(desk, is_owner=True), Body({}))
    assert len(found["entries"]) == 2000
    assert found["is_cut"]


@pytest.mark.skipif(bool(missing()), reason=missing() or "there is one")
def test_in_a_browser_a_click_chooses_and_names_are_text(
    page: Page, desk: Desk, dataset: Dataset, tmp_path: Path
) -> None:
    spent(dataset, HOSTILE, COUNT, "SELECT name FROM student")
    spent(dataset, "grace", f'SELECT AVG(gpa) AS "{HOSTILE}" FROM student')
    server = page.server
    server.door = LoopbackDoor(Seat(desk, is_owner=True), server.server_port)
    waits = "return new Promise(done => setTimeout(done, 50))"

    def until(script: str) -> object:
        for _ in range(200):
            if found := browser.run(script):
                return found
            browser.run(waits)
        raise AssertionError(script)

    lines = "[...document.querySelectorAll('.view-spending .past:nth-last-child(2) .asked .sql')].map(e => e.textContent)"
    with browsing(tmp_path / "profile") as browser:
        browser.size(1440, 1000)
        browser.open(server.door.link)
        until("return !!document.querySelector('#views a')")
        browser.run("location.hash = 'spending'")
        until(f"return {lines}.length === 2")
        assert browser.run("return document.querySelectorAll('img').length") == 0
        browser.run(
            f"[...document.querySelectorAll('.line')].find(e => e.textContent.includes({HOSTILE!r})).click()"
        )
        assert until(f"return {lines}.length === 1 && {lines}") == [COUNT]
        browser.run("document.querySelector('.view-spending .asked button').click()")
        until(
            "return document.querySelector('.view-spending .widths-said').textContent.includes('count ± 30')"
        )
        browser.run(
            "let page = null; URL.createObjectURL = (blob) => { page = blob.text(); return 'blob:kept'; }; "
            "HTMLAnchorElement.prototype.click = function () { "
            "page.then((text) => { window.kept = [this.download, text]; }); }; "
            "document.querySelector('.burn .buttons button').click()"
        )
        name, kept = until("return window.kept")  # type: ignore[misc]
        assert (name, HOSTILE in kept, "&lt;img src=x" in kept) == ("report.html", False, True)
        browser.run("location.hash = 'policy'")
        until("return document.querySelectorAll('.view-policy tbody tr').length === 2")
        browser.run(
            "const t = document.getElementById('toml'); t.value = t.value.replace('add-remove', 'replace-one'); "
            "t.dispatchEvent(new Event('input'))"
        )
        until("return document.querySelectorAll('.view-policy td.moved').length > 0")
        assert browser.run("return document.querySelectorAll('img').length") == 0
        for width in (360, 768, 1440):
            browser.size(width, 900)
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
        assert browser.complaints() == []
