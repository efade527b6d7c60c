"""The two kinds of relation: private rows say nothing of themselves, and blocks know their columns' places."""

from __future__ import annotations

from dpsql.plan.privacy.rows import columns_of, fields_in, intermediates_in
from dpsql.tests.plan.planned import planned, rows_of

BOTH = "SELECT COUNT(*) FROM visit v JOIN bill b ON b.person_id = v.person_id AND v.days > 3"


def test_private_rows_do_not_show() -> None:
    rows = rows_of(BOTH)
    for shown in (repr(rows), str(rows), f"{rows}"):
        assert shown == "Private(…)"


def test_columns_stand_one_source_after_the_other() -> None:
    rows = rows_of(BOTH)
    starts = [start for _, start in fields_in(rows.items)]
    assert starts == [0, len(rows.items[0].columns)]
    assert len(columns_of(rows.items)) == sum(len(item.columns) for item in rows.items) == len(rows.columns)
    marked = rows_of(
        "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit WHERE person_id = p.id)"
    )
    assert (
        len(marked.columns) == len(marked.items[0].columns) + 1
    )  # a mark is one column, however wide its source


def test_a_cut_is_its_source_and_no_more() -> None:
    cut = rows_of(BOTH).items[0].source
    assert cut.most is not None
    assert not cut.is_subquery
    assert (cut.uncut.name, cut.uncut.uncut) == ("visit", cut.uncut)
    assert cut.columns == cut.uncut.columns
    assert [part.items[0].source for part in cut.parts] == [cut.uncut]
    assert cut.uncut.parts == ()


def test_the_identity_of_rows_is_spelled_as_it_was() -> None:
    """Stored answers are found by it, those that an earlier spelling of the classes was drawn under too."""
    (item,) = rows_of(
        "SELECT SUM(d) FROM (SELECT person_id, MAX(days) AS d FROM visit GROUP BY person_id) t"
    ).items
    assert repr(item).startswith(
        "Item(source=Derived(name='visit', parts=(Grouped(items=(Item(source=TableSource(name="
    )
    assert repr(rows_of(BOTH).items[0]).startswith(
        "Item(source=Cut(name='visit', block=Block(items=(Item(source=TableS"
    )


def test_intermediates_are_found_wherever_they_are_used() -> None:
    mean = "(SELECT AVG(age) FROM person)"
    inner = f"SELECT person_id, MAX(days) AS d FROM visit WHERE days > {mean} GROUP BY person_id"
    *_, last = planned(f"SELECT COUNT(*) FROM ({inner}) t WHERE d < {mean}").releases
    assert set(intermediates_in(last.release.rows)) == {0}
    *_, last = planned(
        f"SELECT COUNT(*) FROM ({inner}) t JOIN (SELECT DISTINCT floor FROM ward) w ON w.floor = d"
    ).releases
    assert set(intermediates_in(last.release.rows)) == {0, 1}


def test_the_identity_of_rows_is_their_sources_and_filters() -> None:
    """What the store looks answers up by: two texts of one meaning are one, another filter is another."""
    same = [
        f"SELECT COUNT(*) FROM visit WHERE {filter_}"
        for filter_ in ("days > 3 AND no = 1", "no = 1 AND days > 3")
    ]
    assert repr(rows_of(same[0]).identity()) == repr(rows_of(same[1]).identity())
    assert repr(rows_of(same[0]).identity()) != repr(
        rows_of("SELECT COUNT(*) FROM visit WHERE days > 3").identity()
    )
