"""What comes of each question is what outcomes.txt records, and none but the known ones is answered otherwise.

After a change that moves one, `python -m dpsql.tests.questions` writes the file anew; its diff is what the change does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.tests.support.length import first
from dpsql.tests.support.postgres_fixtures import postgres_majors
from dpsql.tests.support.postgres_server import Installation, PostgresServer

from .asking import Asking, read_outcomes
from .data_sets import DATA_SETS, OF_TWO, read_questions

_MEANT = {
    "survey 03": "MAX stands some rows inside the end, as the manual says",
    "forum 04": "MAX stands some rows inside the end, as the manual says",
    "hospital 19": "its deciles are cut at percentiles that are near, and MIN stands some rows inside the end",
    "hospital 16": "a stay of more days than max_rows counts for max_rows of them, as the manual says",
}
"""Why a question is answered otherwise than by Postgres, where that is meant."""


@pytest.mark.long
@pytest.mark.parametrize("data_set", [one for one in DATA_SETS if one not in OF_TWO])
def test_outcomes_are_those_recorded(
    start_postgres: Callable[[Installation], PostgresServer], tmp_path: Path, data_set: str
) -> None:
    recorded = read_outcomes()
    with Asking(start_postgres(postgres_majors()[-1]), data_set, tmp_path) as asking:
        for question in read_questions(data_set):
            assert asking.outcome(question) == recorded[question.name], question.name


@pytest.mark.parametrize("data_set", first(1, sorted(OF_TWO, reverse=True)))
def test_what_is_refused_of_two_people_has_a_statement_that_works(
    start_postgres: Callable[[Installation], PostgresServer], tmp_path: Path, data_set: str
) -> None:
    recorded = read_outcomes()
    instead = [one for one in read_questions("instead") if one.name.startswith(data_set)]
    refused = [name for name, outcome in recorded.items() if outcome.startswith("refused")]
    assert [one.name for one in instead] == [name for name in refused if name.startswith(data_set)]
    with Asking(start_postgres(postgres_majors()[-1]), data_set, tmp_path) as asking:
        for question in instead:
            assert asking.outcome(question).startswith("same"), question.name
        for question in read_questions(data_set):
            assert asking.outcome(question) == recorded[question.name], question.name


def test_none_is_answered_otherwise() -> None:
    recorded = read_outcomes()
    assert list(recorded) == [question.name for one in DATA_SETS for question in read_questions(one)]
    assert {name for name, outcome in recorded.items() if "wrong:" in outcome} == set(_MEANT)
