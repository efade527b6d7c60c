"""A statement run: what is sent of its answer, what it costs, and whose history it is in."""

from __future__ import annotations

import csv
import io
import re
import threading

from dpsql.engine.dataset import Dataset
from dpsql.engine.session import Session
from dpsql.studio.desk import Body, Desk, Seat
from dpsql.studio.running import MOST_ROWS
from dpsql.studio.server import ANALYST as ENDPOINTS

from .conftest import ANALYST, Page

BY_MAJOR = "SELECT major, COUNT(*) AS n FROM student GROUP BY major ORDER BY major"


def test_an_answer_has_its_bars_and_its_picture(page: Page) -> None:
    found = page.ask("run", text=BY_MAJOR)
    assert found["state"] == "answered"
    assert [one["name"] for one in found["columns"]] == ["major", "n"]
    assert [row[0][0] for row in found["rows"]] == ["Biology", "CS", "EE", "History", "ME", "Maths"]
    assert {row[1][1] for row in found["rows"]} == {"± 30"}
    assert found["receipt"]["charge"] == "epsilon 0.1"
    assert found["left"]["said"] == "9.9 of 10 epsilon left"
    (picture,) = found["pictures"]
    assert picture["labels"] == ["Biology", "CS", "EE", "History", "ME", "Maths"]
    assert all(low < value < high for value, low, high in picture["points"])
    again = page.ask("run", text=BY_MAJOR)
    assert again["receipt"]["charge"] == "free"
    assert again["rows"] == found["rows"]


def test_the_csv_has_all_columns_and_rows(page: Page) -> None:
    number = page.ask("run", text="SELECT id AS n, title FROM course ORDER BY id")["number"]
    rows = [*csv.reader(io.StringIO(page.ask("csv", number=number)["csv"]))]
    assert rows[0] == ["n", "title"]
    assert len(rows) == 121
    barred = page.ask("run", text=BY_MAJOR)["number"]
    assert page.ask("csv", number=barred)["csv"].startswith("major,n,n_low,n_high\n")


def test_a_page_is_sent_some_of_many_rows(page: Page) -> None:
    found = page.ask("run", text="SELECT a.id FROM course AS a, course AS b")
    assert (len(found["rows"]), found["count"]) == (MOST_ROWS, 14_400)


def test_the_control_is_of_one_statement_and_set_stays(page: Page, desk: Desk) -> None:
    assert page.ask("run", text=BY_MAJOR, controls={"epsilon": "0.5"})["receipt"]["charge"] == "epsilon 0.5"
    assert page.ask("about")["epsilon"] == "0.1"
    page.ask("run", text="SET dpsql.epsilon = 0.2", controls={"epsilon": "0.5"})
    assert page.ask("about")["epsilon"] == "0.2"
    assert page.ask("price", text="SELECT COUNT(*) FROM loan")["now"] == "0.2"
    bad = page.ask("price", text="SELECT COUNT(*) FROM loan", controls={"epsilon": "-1"})
    assert bad["refusal"]["code"] == "PV301"
    assert page.ask("price", text="SET dpsql.nothing = 1")["refusal"]["code"] == "42704"


def test_what_is_refused_is_said_and_not_charged(page: Page) -> None:
    found = page.ask("run", text="SELECT name FROM student")
    assert (found["state"], found["refusal"]["code"]) == ("refused", "PV002")
    assert found["left"]["said"] == "10 of 10 epsilon left"


def test_a_running_statement_can_be_stopped(page: Page) -> None:
    endless = (
        "SELECT COUNT(*) AS n FROM course AS a, course AS b, course AS c, course AS d, course AS e, course AS f"
        " WHERE (a.id * b.id + c.id * d.id + e.id * f.id) % 7 = 3"
    )
    found = list[object]()
    running = threading.Thread(target=lambda: found.append(page.ask("run", text=endless)))
    running.start()
    while running.is_alive():
        page.ask("cancel")
        running.join(0.2)
    assert isinstance(found[0], dict)
    assert found[0]["refusal"]["code"] == "57014"


def test_history_is_this_analysts_own(page: Page, dataset: Dataset) -> None:
    secret = "SELECT COUNT(*) AS bens_own_question FROM loan"
    Session(dataset, "ben", is_shared=True).execute(secret)
    Session(dataset, ANALYST, is_shared=True).execute("SELECT COUNT(*) AS before FROM student")
    page.ask("run", text=BY_MAJOR)
    found = page.ask("history")
    assert [one["sql"] for one in found["here"]] == [BY_MAJOR]
    assert re.fullmatch("n ± 2[0-9]|n ± 30", found["here"][0]["widths"][0])
    assert found["here"][0]["cost"] == "epsilon 0.1"
    assert [one["sql"] for one in found["before"]] == ["SELECT COUNT(*) AS before FROM student"]
    assert found["before"][0]["cost"] == "epsilon 0.1"


def test_no_endpoint_of_an_analyst_shows_anothers_statements(dataset: Dataset) -> None:
    word = "bens_own_question"
    desks = [Desk(dataset, name) for name in ("ben", ANALYST)]
    ben, ada = (Seat(desk, is_owner=False) for desk in desks)
    asked = {"text": f"SELECT COUNT(*) AS {word} FROM loan"}
    assert word in str(ENDPOINTS["run"](ben, Body(asked)))
    assert word in str(ENDPOINTS["history"](ben, Body({})))
    own = {"text": "SELECT COUNT(*) AS n FROM student", "number": 1}
    for name, endpoint in ENDPOINTS.items():
        if name in ("csv", "again"):
            ENDPOINTS["run"](ada, Body(own))
        assert word not in str(endpoint(ada, Body(own))), name
    for desk in desks:
        desk.close()


def test_names_have_declared_values(page: Page) -> None:
    tables = {one["name"]: one for one in page.ask("names")["tables"]}
    columns = {one["name"]: one for one in tables["student"]["columns"]}
    assert columns["major"]["values"] == ["Biology", "CS", "EE", "History", "Maths", "ME"]
    assert columns["gpa"]["type"] == "numeric(3,2)"
