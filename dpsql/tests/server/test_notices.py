"""What a NOTICE says of an answer's groups: a client of the wire reads no receipt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import POLICY, Served, make_dataset, run_server

BY_AGE = "SELECT age, COUNT(*) FROM person GROUP BY age"
BY_CITY = "SELECT city, COUNT(*) FROM person WHERE age {} GROUP BY city"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server of the dataset with a delta, and cities that nobody has listed."""
    policy: Path = make_dataset(tmp_path_factory.mktemp("found"))
    text = POLICY.replace("epsilon = 1000", "epsilon = 1000\ndelta = 1e-6", 1)
    text = text.replace('city = { values = ["north", "south"] }', "city = {}")
    policy.write_text(text)
    with run_server(policy) as served:
        yield served


def notices(served: Served, *statements: str) -> list[list[str]]:
    """Return, for each statement of one connection, its notices but for what it cost."""
    said: list[list[str]] = []
    with served.connect() as connection:
        connection.add_notice_handler(lambda note: said[-1].append(note.message_primary or ""))
        for sql in statements:
            said.append([])
            connection.execute(sql.encode()).fetchall()
    return [[line for line in lines if not line.startswith(("charged", "free"))] for lines in said]


def test_a_group_of_null_is_explained_once_to_a_connection(found: Served) -> None:
    first, second = notices(found, BY_AGE, BY_AGE)
    assert [line.split(",")[0] for line in first] == ['"age" may be NULL']
    assert second == []
    assert len(notices(found, BY_AGE)[0]) == 1


def test_groups_that_are_found_say_what_they_need_and_why_there_are_none(found: Served) -> None:
    some, none = notices(found, BY_CITY.format(">= 0"), BY_CITY.format("> 119"))
    assert [re.split(": |[0-9]", line)[0] for line in some] == [
        'groups by "city" with fewer than about ', "texts are cut to ",
    ]  # fmt: skip
    assert some[0].endswith("people are not shown")
    assert [line.split(":")[0] for line in none] == ['no group by "city" is shown']


def test_who_wants_no_notices_has_none(found: Served) -> None:
    said: list[str] = []
    with found.connect(options="-c client_min_messages=warning") as connection:
        connection.add_notice_handler(lambda note: said.append(note.message_primary or ""))
        assert connection.execute(BY_CITY.format("> 118").encode()).fetchall() == []
    assert said == []


def test_an_edition_is_named(tmp_path: Path) -> None:
    """A total that is drawn beside its groups is told by both draws, of the edition of the last one."""
    with run_server(make_dataset(tmp_path)) as served:
        told = notices(
            served, "SELECT city, COUNT(*) FROM person GROUP BY city", "SELECT COUNT(*) FROM person"
        )
    assert told[1][0].startswith(
        'edition 2 of "person": from 2 stored answers of the same rows together; SET'
    )
