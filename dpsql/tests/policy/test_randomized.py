"""Columns that the owner declares as randomised when they were collected: what is read, and each thing that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from dpsql.errors import PolicyError
from dpsql.mechanisms import Channel
from dpsql.policy import LiveSchema, build_catalog, check
from dpsql.policy.describe import column_comment
from dpsql.relation.relations import all_grounds

from .conftest import HEAD, policy_from

SQL = """
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TABLE person (id INTEGER PRIMARY KEY, drug VARCHAR NOT NULL, pills SMALLINT NOT NULL, ill BOOLEAN NOT NULL,
    feels mood NOT NULL, asked VARCHAR, weight DOUBLE NOT NULL, born DATE NOT NULL);
CREATE TABLE sent (drug VARCHAR NOT NULL);
"""
THREE = 'values = ["a", "b", "c"]'
Read = Callable[[str], LiveSchema]


@pytest.fixture(scope="module")
def live(read_live: Read) -> LiveSchema:
    return read_live(SQL)


def policy(column: str, declared: str, table: str = 'person]\nunit = "id"') -> str:
    name = table.partition("]")[0]
    return f"{HEAD}\n[tables.{table}\n[tables.{name}.columns]\n{column} = {{ {declared} }}\n"


def channel(live: LiveSchema, column: str, declared: str) -> Channel | None:
    table = build_catalog(policy_from(policy(column, declared)), live).tables["person"]
    found = table.column(column)
    assert found is not None
    return found.randomized


def test_the_three_forms(live: LiveSchema) -> None:
    two = 'values = ["good", "bad"]'
    assert channel(live, "feels", f"{two}, randomized = {{ p = 0.75 }}") == Channel.of_truth(
        2, Fraction(3, 4)
    )
    assert channel(live, "drug", f"{THREE}, randomized = {{ epsilon = 1 }}") == Channel.of_epsilon(
        3, Fraction(1)
    )
    assert channel(live, "pills", "values = [1, 2, 3], randomized = { p = 0.5 }") == Channel.of_truth(
        3, Fraction(1, 2)
    )
    bit = "values = [false, true], randomized = { p = 0.5, q = 0.2 }"
    assert channel(live, "ill", bit) == Channel.of_bit(Fraction(1, 2), Fraction(1, 5), 1)
    bit = "values = [true, false], randomized = { p = 0.5, q = 0.2 }"
    assert channel(live, "ill", bit) == Channel.of_bit(Fraction(1, 2), Fraction(1, 5), 0)
    null = 'values = ["a", { null = true }], randomized = { p = 0.75 }'
    assert channel(live, "asked", null) == Channel.of_truth(2, Fraction(3, 4))
    assert channel(live, "drug", THREE) is None


@pytest.mark.parametrize(
    ("column", "declared", "said"),
    [
        ("drug", f"{THREE}, randomized = {{}}", "write { epsilon = 1 }"),
        ("drug", f"{THREE}, randomized = 0.75", "write a table"),
        ("drug", f"{THREE}, randomized = {{ q = 0.2 }}", "write { epsilon = 1 }"),
        ("drug", f"{THREE}, randomized = {{ epsilon = 1, p = 0.75 }}", "write { epsilon = 1 }"),
        ("drug", f"{THREE}, randomized = {{ epsilon = 1, q = 0.75 }}", "write { epsilon = 1 }"),
        ("drug", f"{THREE}, randomized = {{ eps = 1 }}", "unknown key"),
        ("drug", f"{THREE}, randomized = {{ p = 0.25 }}", "write a p above 1/3 and below 1"),
        ("feels", 'values = ["good", "bad"], randomized = { p = 0.5 }', "write a p above 0.5 and below 1"),
        ("drug", f"{THREE}, randomized = {{ p = 1 }}", "write a p above 1/3 and below 1"),
        ("drug", f"{THREE}, randomized = {{ p = 1.5 }}", "write a p above 1/3 and below 1"),
        ("drug", f"{THREE}, randomized = {{ epsilon = 0 }}", "epsilon is above 0"),
        ("drug", f"{THREE}, randomized = {{ epsilon = -1 }}", "epsilon is above 0"),
        ("drug", f"{THREE}, randomized = {{ epsilon = 60 }}", "at most 50"),
        ("drug", f"{THREE}, randomized = {{ p = 0.5, q = 0.2 }}", "values = [true, false]"),
        ("ill", "values = [true, false], randomized = { p = 0.2, q = 0.2 }", "write 0 < q < p < 1"),
        ("ill", "values = [true, false], randomized = { p = 0.2, q = 0.5 }", "write 0 < q < p < 1"),
        ("ill", "values = [true, false], randomized = { p = 0.5, q = 0 }", "write 0 < q < p < 1"),
        ("ill", "randomized = { p = 0.75 }", "needs values"),
        ("drug", "randomized = { p = 0.75 }", "needs values"),
        ("drug", 'values = ["a"], randomized = { p = 0.75 }', "one value alone"),
        ("asked", f"{THREE}, randomized = {{ p = 0.75 }}", "NOT NULL"),
        ("pills", "values = [1, 2], bounds = [0, 3], randomized = { p = 0.75 }", "take the bounds out"),
        ("weight", "randomized = { p = 0.75 }", "is for text"),
        ("born", "values = [2020-01-01, 2020-01-02], randomized = { p = 0.75 }", "is for text"),
    ],
)
def test_what_is_wrong_is_said_with_its_fix(live: LiveSchema, column: str, declared: str, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        build_catalog(policy_from(policy(column, declared)), live)
    assert f"tables.person.columns.{column}.randomized" in caught.value.message
    assert said in caught.value.message


def test_check_tells_each_columns_loss(live: LiveSchema) -> None:
    text = check(
        policy_from(policy("feels", 'values = ["good", "bad"], randomized = { p = 0.75 }')), live
    ).to_text()
    assert "truth with probability 0.75, loss 1.09861 towards everybody" in text
    assert "estimates: COUNT, SUM and AVG of other columns" in text
    text = check(
        policy_from(policy("drug", f"{THREE}, randomized = {{ epsilon = 1 }}") + "[tables.sent]\npublic = true\n"
                    f"[tables.sent.columns]\ndrug = {{ {THREE}, randomized = {{ epsilon = 2 }} }}"), live
    ).to_text()  # fmt: skip
    assert "loss 1 towards everybody" in text
    assert "loss 2 towards everybody" in text
    assert "at no charge" in text


def test_comments_of_columns_tell_it(live: LiveSchema) -> None:
    made = policy_from(policy("drug", f"{THREE}, randomized = {{ epsilon = 1 }}"))
    comment = column_comment(build_catalog(made, live).tables["person"], "drug", has_delta=False)
    assert "randomised when collected" in comment
    assert "estimates" in comment


def test_another_channel_is_another_plan(live: LiveSchema) -> None:
    prints = {
        all_grounds(build_catalog(policy_from(policy("drug", f"{THREE}{more}")), live))
        for more in ("", ", randomized = { epsilon = 1 }", ", randomized = { epsilon = 2 }", ", randomized = { p = 0.5 }")
    }  # fmt: skip
    assert len(prints) == 4
