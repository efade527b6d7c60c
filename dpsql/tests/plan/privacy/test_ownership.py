"""One owner for every row, by equalities that are printed and keys that are enforced; or a refusal."""

from __future__ import annotations

import pytest

from dpsql.plan.privacy.ownership import MAX_CONTRIBUTION, MAX_SOURCES, scan_source, sum_of_bounds
from dpsql.tests.plan.planned import CATALOG, printed, refused, released, rows_of


def names_of_units(sql: str) -> list[str]:
    """Return the columns that hold the owner in every row."""
    rows = rows_of(sql)
    return sorted(rows.columns[index].name for unit in rows.units for index in unit)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visit v JOIN card c ON c.person_id = v.person_id",
        "SELECT COUNT(*) FROM visit v, card c WHERE c.person_id = v.person_id",
        "SELECT COUNT(*) FROM visit v JOIN person p ON p.id = v.person_id JOIN card c ON c.person_id = p.id",
        "SELECT COUNT(*) FROM line l JOIN bill b ON b.id = l.bill_id JOIN card c ON c.person_id = b.person_id",
        "SELECT COUNT(*) FROM person a JOIN person b ON a.email = b.email",  # UNIQUE: a value has one owner
    ],
)
def test_an_equality_of_one_key_makes_one_owner(sql: str) -> None:
    rows = rows_of(sql)
    assert rows.root == ("person", ("id",))
    assert [part.index in unit for part, unit in zip(rows.owner, rows.units, strict=True)] == [True]


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("c.kind = v.ward", "no key at all"),
        ("c.person_id = v.no", "a key, and a column that is none"),
        ("c.person_id = v.person_id OR v.days > 3", "an OR holds without the equality"),
        ("c.person_id >= v.person_id", "holds of many values"),
        ("c.person_id = v.person_id + 0", "a computed side is no column"),
        ("NOT (c.person_id <> v.person_id)", "holds, but is not printed as an equality"),
        ("c.person_id = 5", "one side's key alone"),
    ],
)
def test_what_only_looks_like_an_equality_is_refused(condition: str, why: str) -> None:
    assert refused(f"SELECT COUNT(*) FROM visit v JOIN card c ON {condition}") == ("PV003", "card"), why


def test_every_source_has_to_reach_the_first() -> None:
    """Two pairs of one person each are still two persons."""
    joined = "visit v JOIN card c ON c.person_id = v.person_id, bill b JOIN line l ON l.bill_id = b.id"
    assert refused(f"SELECT COUNT(*) FROM {joined}")[0] == "PV003"
    assert rows_of(f"SELECT COUNT(*) FROM {joined} WHERE b.person_id = c.person_id")


def test_columns_that_equal_the_owner() -> None:
    assert names_of_units("SELECT COUNT(*) FROM visit") == [
        "person_id",
        "person_id",
    ]  # as declared, and as unit
    joined = "SELECT COUNT(*) FROM visit v JOIN person p ON p.id = v.person_id WHERE v.no = p.age"
    assert names_of_units(joined) == ["id", "id", "person_id", "person_id"]


def test_the_path_to_the_owner_is_joined() -> None:
    """A line knows its bill, the bill its person: one enforced key after the other, NULL reaching nobody."""
    rows = rows_of("SELECT COUNT(*) FROM line")
    assert [item.source.name for item in rows.items] == ["line", ""]
    assert [rows.columns[part.index].name for part in rows.owner] == ["person_id"]
    sql = printed("SELECT COUNT(*) FROM line")
    assert 'FROM "main"."line" AS t0 CROSS JOIN "main"."bill" AS t1 WHERE (t0."bill_id" = t1."id")' in sql
    assert 't1."person_id" AS u' in sql


def test_bounds_multiply_over_sources_that_no_other_determines() -> None:
    both = rows_of(
        "SELECT COUNT(*) FROM visit v JOIN line l JOIN bill b ON b.id = l.bill_id ON b.person_id = v.person_id"
    )
    assert (both.max_rows_per_group, both.max_groups) == (3 * 4, 2 * 2)
    one = rows_of("SELECT COUNT(*) FROM visit v JOIN card c ON c.person_id = v.person_id")
    assert (one.max_rows_per_group, one.max_groups, one.max_rows) == (3, 2, 6)
    public = rows_of("SELECT COUNT(*) FROM visit v JOIN price p ON p.ward = v.ward")
    assert (public.max_rows_per_group, public.max_groups) == (3, 2)


def test_one_row_by_keys_needs_no_bounds() -> None:
    rows = rows_of("SELECT COUNT(*) FROM person p JOIN card c ON c.person_id = p.id")
    assert rows.is_single
    assert released("SELECT COUNT(*) FROM person p JOIN card c ON c.person_id = p.id").bounding.per_row
    assert not rows_of("SELECT COUNT(*) FROM visit").is_single


def test_what_identifies_an_owner_in_a_table() -> None:
    person, line = (scan_source(CATALOG.tables[name], CATALOG) for name in ("person", "line"))
    shown = {person.shown[index]: identity for (index,), identity in person.identities.items()}
    assert shown == {"id": ("person", ("id",)), "email": ("person", ("email",))}
    assert {line.shown[index]: identity for (index,), identity in line.identities.items()} == {
        "bill_id": ("bill", ("id",))
    }
    assert scan_source(CATALOG.tables["ward"], CATALOG).identities == {}


def test_too_many_sources() -> None:
    chain = "".join(f" JOIN card c{i} ON c{i}.person_id = p.id" for i in range(MAX_SOURCES))
    assert refused(f"SELECT COUNT(*) FROM person p{chain}")[0] == "54001"


def test_sums_of_bounds_saturate() -> None:
    assert sum_of_bounds([3, 4]) == 7
    assert sum_of_bounds([MAX_CONTRIBUTION, 1]) == MAX_CONTRIBUTION
    assert sum_of_bounds([3, None]) is None
