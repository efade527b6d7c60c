"""Correlated aggregates: a release of the groups alone that a row around can ask for."""

from __future__ import annotations

from dpsql.tests.plan.planned import planned, printed

LOOKED_UP = "SELECT w.name, (SELECT COUNT(*) FROM visit v WHERE v.ward = w.name) AS n FROM ward w{}"


def test_rows_are_held_to_the_keys_of_filtered_public_rows() -> None:
    sql = printed(LOOKED_UP.format(" WHERE w.floor = 2"))
    assert 'EXISTS (SELECT 1 FROM "main"."ward"' in sql
    assert '"floor" = 2' in sql


def test_without_a_filter_nothing_is_narrowed() -> None:
    assert "EXISTS (SELECT 1 FROM" not in printed(LOOKED_UP.format(""))


def test_the_charge_is_one_release_of_groups() -> None:
    for filter_ in ("", " WHERE w.floor = 2"):
        (release,) = planned(LOOKED_UP.format(filter_)).releases
        assert [key.type.kind.value for key in release.release.keys] == ["text"]
        assert sum(release.losses) == 1
        assert release.bounding.groups == 2


def test_a_filter_on_private_rows_does_not_pass_for_a_public_one() -> None:
    """The keys that private rows hold are theirs: only what public rows filter is asked for."""
    sql = "SELECT COUNT(*) FROM person p WHERE p.age > (SELECT AVG(q.age) FROM person q WHERE q.city = p.city) AND p.age > 50"
    inner, _ = planned(sql).releases
    (query,) = inner.queries(tuple(range(len(inner.measurements))))
    assert "EXISTS" not in query.sql
    assert "50" not in query.sql
