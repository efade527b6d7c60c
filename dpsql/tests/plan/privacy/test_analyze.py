"""Private or public: one rule for each relation, and a refusal for what no rule derives."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.plan.privacy.analyze import _RULES, analyze
from dpsql.plan.privacy.rows import Release
from dpsql.relation.relations import PARTS, Block
from dpsql.tests.plan.planned import CATALOG, bound, planned, refused


@pytest.mark.parametrize(
    ("sql", "code", "word"),
    [
        ("SELECT age FROM person", "PV002", "age"),
        ("SELECT city, age + 1 FROM person ORDER BY 1 LIMIT 3", "PV002", "city"),
        ("SELECT person_id, COUNT(*) FROM visit GROUP BY person_id", "PV005", "person_id"),
        ("SELECT COUNT(*) FROM (SELECT * FROM visit LIMIT 5) t", "PV003", ""),
        ("SELECT COUNT(*) FROM (SELECT days FROM visit INTERSECT SELECT stars FROM remark) t", "PV003", "days"),
        ("SELECT COUNT(*) FROM (SELECT ward FROM visit UNION ALL SELECT name FROM ward) t", "PV003", "ward"),
        ("SELECT SUM(r) FROM (SELECT ROW_NUMBER() OVER (ORDER BY fee) AS r FROM visit) t", "PV003", "ROW_NUMBER"),
        ("SELECT SUM(r) FROM (SELECT RANK() OVER (PARTITION BY ward ORDER BY fee) AS r FROM visit) t", "PV003", "RANK"),
        ("SELECT COUNT(*) FROM person WHERE age > (SELECT MIN(beds) FROM ward GROUP BY floor)", "PV004", "MIN(beds"),
        ("SELECT COUNT(*) FROM person WHERE age = (SELECT days FROM visit)", "PV002", "days"),
    ],
)  # fmt: skip
def test_what_no_rule_derives_is_refused(sql: str, code: str, word: str) -> None:
    assert refused(sql) == (code, word)


def test_each_part_of_a_block_has_one_rule_and_its_line_of_proof() -> None:
    """What no row is of cannot be derived: a part without one would end in an error of ours, and never in an answer."""
    assert {(part, "all") for part in PARTS} < set(_RULES)
    assert all(rule.proof for rule in _RULES.values())


def test_the_release_is_the_one_way_out() -> None:
    """What is analyzed public holds its private rows inside releases, and nowhere else."""
    analyzed = analyze(
        bound("SELECT ward, COUNT(*) + 1 FROM visit GROUP BY ward ORDER BY 2 LIMIT 3"), CATALOG
    )
    node, seen = analyzed.root, []
    while not isinstance(node, Release):
        assert isinstance(node, Block)
        seen.append(node.last)
        node = node.below
    assert seen == ["limit", "orders", "outputs"]
    assert [key.type.kind.value for key in node.keys] == ["text"]
    assert repr(node.rows) == "Private(…)"


def test_public_tables_stay_as_they_are() -> None:
    plan = planned("SELECT floor, SUM(beds) FROM ward GROUP BY floor")
    assert plan.releases == ()
    assert (plan.epsilon, plan.delta) == (0, 0)


def test_a_public_subquery_is_drawn_first() -> None:
    """Its value has a static range, and takes an equal part of the charge."""
    plan = planned("SELECT COUNT(*) FROM person WHERE age > (SELECT AVG(age) FROM person)")
    assert [release.losses for release in plan.releases] == [(Fraction(1, 2),), (Fraction(1, 2),)]
    assert (len(plan.intermediates), plan.tables) == (1, frozenset())
    assert [release.intermediates for release in plan.releases] == [(), (0,)]


def test_the_same_subquery_twice_is_one_intermediate() -> None:
    mean = "(SELECT AVG(age) FROM person)"
    plan = planned(f"SELECT COUNT(*) FROM person WHERE age > {mean} OR age < {mean} / 2")
    assert (len(plan.intermediates), len(plan.releases)) == (1, 2)


def test_released_rows_come_in_as_rows() -> None:
    few = "(SELECT ward FROM visit GROUP BY ward HAVING COUNT(*) > 5)"
    plan = planned(f"SELECT COUNT(*) FROM visit WHERE ward IN {few}")
    assert (len(plan.intermediates), plan.tables) == (1, frozenset({0}))


def test_grouping_by_the_owner_stays_private() -> None:
    (release,) = planned("SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visit GROUP BY person_id) t").releases
    assert release.bounding.per_row
    assert release.release.rows.name == "visit"


def test_an_expression_that_doubles_is_refused_before_it_is_built() -> None:
    source = "SELECT age AS a FROM person"
    for _ in range(12):
        source = f"SELECT a + a AS a FROM ({source}) t"
    assert refused(f"SELECT COUNT(*) FROM ({source}) t WHERE a > 5")[0] == "54001"
