"""The statement that works: planned before it is offered, and of the same tables and conditions."""

from __future__ import annotations

import pytest

from dpsql.engine.dataset import Dataset
from dpsql.engine.session import Session
from dpsql.errors import Refusal

from .conftest import ANALYST, Page

FIXED = {
    "SELECT name, gpa FROM student": "SELECT AVG(gpa) AS gpa FROM student",
    "SELECT * FROM student WHERE gpa > 3": "SELECT COUNT(*) FROM student WHERE gpa > 3",
    "SELECT major, gpa FROM student": "SELECT major, AVG(gpa) AS gpa FROM student GROUP BY major",
    "SELECT majr, COUNT(*) FROM student GROUP BY majr": "SELECT major, COUNT(*) FROM student GROUP BY major",
    "SELECT cuont(*) FROM studnet": "SELECT COUNT(*) FROM student",
    "SELECT COUNT(*) FORM student": "SELECT COUNT(*) FROM student",
    "SELCT COUNT(*) FROM student": "SELECT COUNT(*) FROM student",
    "SELECT COUNT(*) FROM student WHERE major = 'cs'": "SELECT COUNT(*) FROM student WHERE major = 'CS'",
    "SELECT id, COUNT(*) FROM student GROUP BY id": "SELECT COUNT(*) FROM student",
    "SELECT student_id, SUM(fee) FROM loan GROUP BY student_id": "SELECT SUM(fee) FROM loan",
    "SELECT major, COUNT(*) FROM student": "SELECT major, COUNT(*) FROM student GROUP BY major",
}


@pytest.mark.parametrize("refused", FIXED)
def test_what_works_is_offered(standing: tuple[Page, Dataset], refused: str) -> None:
    page, dataset = standing
    session = Session(dataset, ANALYST, is_shared=True)
    with pytest.raises(Refusal):
        session.explain(refused)
    found = page.ask("price", text=refused)
    assert found["state"] == "refused"
    assert page.ask("fix", text=refused)["fix"]["sql"] == FIXED[refused]
    session.explain(FIXED[refused])


@pytest.mark.parametrize(
    "refused",
    [
        "SELECT MAX(name) FROM student",
        "SELECT SUM(id) FROM student",
        "SELECT zzz FROM qqq",
        "SELECT 1 +",
        "((((",
        "'",
    ],
)
def test_nothing_is_offered_where_nothing_is_known(standing: tuple[Page, Dataset], refused: str) -> None:
    page, _ = standing
    found = page.ask("price", text=refused)
    assert found["state"] == "refused"
    assert page.ask("fix", text=refused)["fix"] is None


def test_what_comes_before_and_after_is_left_alone(page: Page) -> None:
    found = page.ask(
        "fix", text="SELECT 1; SELECT majr, COUNT(*) FROM student GROUP BY major; SELECT 2", cursor=20
    )
    assert (found["start"], found["end"]) == (10, 59)
    assert found["fix"]["sql"] == "SELECT major, COUNT(*) FROM student GROUP BY major"
