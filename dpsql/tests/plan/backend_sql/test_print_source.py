"""FROM and WHERE of a block and its subqueries: what ownership rests on is printed, for every kind of source."""

from __future__ import annotations

import re

import pytest

from dpsql.tests.plan.planned import printed


def from_(source: str, engine: str = "duckdb") -> str:
    """Return the printed source of a count."""
    return printed(f"SELECT COUNT(*) FROM {source}", engine)


def test_one_table_needs_no_alias() -> None:
    """But where the people with too many rows stand beside it."""
    assert '(SELECT "person_id" AS u FROM "main"."visit") AS r GROUP BY u' in from_("visit")
    sql = printed("SELECT days, COUNT(*) FROM visit GROUP BY days")
    assert '(SELECT "person_id" AS u FROM "main"."visit") AS r GROUP BY u' in sql
    assert '(SELECT "days" AS k0 FROM "main"."visit") AS r GROUP BY k0' in sql
    assert 'FROM "main"."visit" AS t0 CROSS JOIN heavy WHERE (t0."person_id" = heavy.hu)' in sql


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (
            "visit v JOIN card c ON c.person_id = v.person_id",
            '"main"."visit" AS t0 CROSS JOIN "main"."card" AS t1 WHERE (t1."person_id" = t0."person_id")',
        ),
        (
            "person p LEFT JOIN card c ON c.person_id = p.id",
            '"main"."person" AS t0 LEFT JOIN "main"."card" AS t1 ON (t1."person_id" = t0."id")',
        ),
        (
            "person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.person_id = p.id)",
            'EXISTS (SELECT 1 FROM "main"."visit" AS t1 WHERE (t1."person_id" = t0."id")',
        ),
        ("line", 'CROSS JOIN "main"."bill" AS t1 WHERE (t0."bill_id" = t1."id")'),
    ],
)
def test_equalities_are_printed_as_they_were_analyzed(source: str, shown: str) -> None:
    assert shown in from_(source)
    assert shown.replace('"main"."', 'ONLY "main"."') in from_(source, "postgres")


def test_a_subquery_groups_by_its_owner_besides_what_was_written() -> None:
    """A unit that may be NULL is nobody's, and is left out there."""
    sql = from_(
        "(SELECT b.id, COUNT(*) AS n FROM line l JOIN bill b ON b.id = l.bill_id GROUP BY b.id) t WHERE n > 1"
    )
    assert 'GROUP BY t2."person_id", t2."id"' in sql
    assert '"person_id" IS NOT NULL' in sql


def test_windows_are_partitioned_by_the_owner() -> None:
    sql = from_(
        "(SELECT person_id, RANK() OVER (PARTITION BY person_id, ward ORDER BY days) AS r FROM visit) t WHERE r = 1"
    )
    assert 'rank() OVER (PARTITION BY "person_id", ' in sql


def test_only_columns_that_are_used_are_computed() -> None:
    inner = "(SELECT id, MAX(age) AS a, MAX(height) AS h FROM person GROUP BY id) t"
    assert "height" in from_(f"{inner} WHERE h > 1")
    assert "height" not in from_(f"{inner} WHERE a > 1")


def test_a_cut_is_ordered_by_all_that_is_read_of_it() -> None:
    sql = from_("visit v JOIN bill b ON b.person_id = v.person_id WHERE v.days > b.id")
    cuts = re.findall(r"\(WITH s AS .*? WHERE rn <= \d+\)", sql)
    visits, bills = cuts[::2], cuts[1::2]
    assert len(visits) == len(bills) == 1  # who has too many is found in the rows that are summed
    assert visits[0].endswith("rn <= 6)")  # 3 rows in each of 2 groups
    assert bills[0].endswith("rn <= 2)")
    for cut in (visits[0], bills[0]):
        names = re.findall(r" AS (c\d+)", cut.split(" FROM ")[0])
        last = ", ".join(f"s.{name} NULLS LAST" for name in names)
        assert re.search(
            rf"PARTITION BY s\.u ORDER BY (?:md5\([^,]*.*|\(\(CAST\(.* \* 48271 % 2147483647)\), {last}\) AS rn",
            cut,
        )
    assert "HAVING COUNT(*) > 12)" in sql  # each of 6 visits with each of 2 bills
    assert "LIMIT" not in sql
