"""Arguments of Spark's statements: nothing in them could be read as more than a value."""

from __future__ import annotations

import datetime
import json
import re
from base64 import b64decode

from dpsql.backends.spark_backend import bound


def read(value: object) -> str:
    assert isinstance(value, str)
    assert re.fullmatch("[A-Za-z0-9+/]*=*", value)
    return b64decode(value).decode()


def test_they_are_counted_from_one() -> None:
    assert list(bound(["a", 1])) == ["p1", "p2"]
    assert bound([]) == {}


def test_numbers_and_truth_values_travel_as_they_are() -> None:
    assert list(bound([1, 2.5, True, None]).values()) == [1, 2.5, True, None]


def test_a_text_holds_nothing_that_a_statement_could_be_made_of() -> None:
    for text in ("", "a", "x\\' OR 1=1 --", "${env:HOME}", "\x00\n😀"):
        assert read(bound([text])["p1"]) == text
    assert read(bound([datetime.date(2024, 2, 29)])["p1"]) == "2024-02-29"
    assert read(bound([datetime.datetime(2024, 2, 29, 1)])["p1"]) == "2024-02-29 01:00:00"


def test_a_list_is_one_text_of_texts() -> None:
    given = [1, -(2**63), 0.1, True, None, "null", "\\'\"", ""]
    assert json.loads(read(bound([given])["p1"])) == [
        "1", "-9223372036854775808", "0.1", "true", None, "null", "\\'\"", ""
    ]  # fmt: skip
    assert json.loads(read(bound([[]])["p1"])) == []
