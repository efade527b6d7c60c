"""Blocks put together: which side's rows stay when nothing matches, and whose they are."""

from __future__ import annotations

import pytest

from dpsql.tests.plan.planned import printed, refused, rows_of


def test_inner_and_cross_joins_are_one_block() -> None:
    sources = [
        "visit v JOIN card c ON c.person_id = v.person_id",
        "visit v, card c WHERE c.person_id = v.person_id",
        "visit v CROSS JOIN card c WHERE v.person_id = c.person_id AND c.person_id = v.person_id",
    ]
    shown = {printed(f"SELECT COUNT(*) FROM {source}") for source in sources}
    assert [item.kind for item in rows_of(f"SELECT COUNT(*) FROM {sources[0]}").items] == ["inner", "inner"]
    assert all('"main"."visit" AS t0 CROSS JOIN "main"."card" AS t1 WHERE (' in sql for sql in shown)
    assert len(shown) == 2  # an equality written twice, each its own way, is printed as it stands


def test_an_outer_side_may_be_null_and_claims_nothing() -> None:
    rows = rows_of("SELECT COUNT(*) FROM person p LEFT JOIN card c ON c.person_id = p.id")
    left, right = rows.items
    assert (left.kind, right.kind, len(right.on)) == ("inner", "left", 1)
    assert left.columns[0].enforced.not_null
    assert not any(column.enforced.not_null for column in right.columns)
    (kind,) = [column for column in right.columns if column.name == "kind"]
    assert kind.values == ("gold", "plain", None)


def test_a_right_join_is_the_mirror_of_a_left() -> None:
    left = printed("SELECT AVG(p.age) FROM person p LEFT JOIN card c ON c.person_id = p.id")
    assert printed("SELECT AVG(p.age) FROM card c RIGHT JOIN person p ON c.person_id = p.id") == left
    assert 'LEFT JOIN "main"."card"' in left


def test_a_full_join_is_owned_by_whichever_side_is_there() -> None:
    sql = printed("SELECT COUNT(*) FROM visit v FULL JOIN card c ON c.person_id = v.person_id")
    assert " FULL JOIN " in sql
    assert "coalesce(t1.u, t2.u) AS u" in sql


def test_filters_inside_the_outer_side_stay_in_its_on() -> None:
    """In WHERE they would drop the rows that the join keeps."""
    (_, right) = rows_of(
        "SELECT COUNT(*) FROM person p LEFT JOIN (SELECT * FROM card WHERE kind = 'gold') c ON c.person_id = p.id"
    ).items
    assert len(right.on) == 2
    assert rows_of("SELECT COUNT(*) FROM person p LEFT JOIN card c ON c.person_id = p.id").predicate == ()


def test_exists_is_a_column_of_the_row() -> None:
    rows = rows_of("SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit WHERE person_id = p.id)")
    assert [item.kind for item in rows.items] == ["inner", "mark"]
    assert rows.is_single  # it adds no rows
    assert len(rows.items[1].columns) == 1


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        # rows that stay because nobody matches have no owner
        ("SELECT COUNT(*) FROM ward w LEFT JOIN visit v ON v.ward = w.name", "COUNT(*"),
        ("SELECT COUNT(*) FROM visit v RIGHT JOIN ward w ON v.ward = w.name", "COUNT(*"),
        ("SELECT COUNT(*) FROM ward w FULL JOIN visit v ON v.ward = w.name", "visit"),
        ("SELECT COUNT(*) FROM ward w WHERE EXISTS (SELECT no FROM visit v WHERE v.ward = w.name)", "no"),
        # matched rows may be other people's
        ("SELECT COUNT(*) FROM person p LEFT JOIN visit v ON v.no = p.age", "visit"),
        ("SELECT COUNT(*) FROM person p FULL JOIN visit v ON v.no = p.age", "visit"),
        ("SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT no FROM visit v WHERE v.no = p.age)", "no"),
        ("SELECT COUNT(*) FROM person p WHERE p.age IN (SELECT no FROM visit)", "p.age"),
        ("SELECT COUNT(*) FROM person p WHERE p.id NOT IN (SELECT bill_id FROM line)", "p.id"),
    ],
)
def test_rows_of_nobody_and_of_others_are_refused(sql: str, word: str) -> None:
    assert refused(sql) == ("PV003", word)
