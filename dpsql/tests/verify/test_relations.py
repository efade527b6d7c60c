"""Whose rows: a text for each rule, and for each of its premises one that lacks it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.tests.verify.clinic import FACTS, VISIT, check
from dpsql.tests.verify.test_lemmas import refused
from dpsql.verify.certificate import Facts, Table, Unit


def counted(source: str) -> str:
    """The rows of a source, cut to 6 of each owner u."""
    return (
        f"WITH r AS ({source}), heavy AS (SELECT u AS hu, (48 // GREATEST(COUNT(*), 6)) - 8 AS w FROM (SELECT r.u AS u FROM r) AS r "
        "GROUP BY u HAVING COUNT(*) > 6) SELECT CAST(SUM(m0_0) AS BIGINT) AS m0_0 FROM (SELECT 8 * COUNT(*) AS m0_0 FROM r "
        "UNION ALL SELECT COALESCE(SUM(w), 0) AS m0_0 FROM (SELECT heavy.w, r.* FROM r CROSS JOIN heavy "
        "WHERE (r.u = heavy.hu)) AS r) AS b"
    )


BY_PATIENT = "(SELECT patient AS u, COUNT(*) AS c FROM main.visit GROUP BY patient) AS g"

NUMBERED = (
    "(SELECT u, ward, cost, ROW_NUMBER() OVER (PARTITION BY u ORDER BY n) AS m FROM (SELECT patient AS u, ward, cost, "
    "ROW_NUMBER() OVER (PARTITION BY %s ORDER BY ward, cost) AS n FROM (SELECT patient, ward, cost FROM main.visit) "
    "AS v) AS t) AS s"
)
"""Numbers of numbered rows: of one owner's rows, of which no two have one number."""


@pytest.mark.parametrize(
    "source",
    [
        "SELECT patient AS u FROM main.visit",
        "SELECT v.patient AS u FROM main.visit AS v CROSS JOIN main.patient AS p WHERE v.patient = p.id",
        "SELECT v.patient AS u FROM main.visit AS v LEFT JOIN main.patient AS p ON v.patient = p.id",
        "SELECT v.patient AS u FROM main.visit AS v LEFT JOIN main.city AS c ON c.name = v.ward",
        "SELECT v.patient AS u FROM main.item AS i CROSS JOIN main.visit AS v WHERE i.visit = v.no",
        "SELECT v.patient AS u FROM main.item AS i CROSS JOIN main.item AS j CROSS JOIN main.visit AS v "
        "WHERE i.visit = j.visit AND j.visit = v.no",
        "SELECT v.patient AS u FROM main.visit AS v WHERE EXISTS (SELECT 1 FROM main.patient AS p WHERE p.id = v.patient)",
        "SELECT v.patient AS u FROM main.visit AS v WHERE NOT EXISTS "
        "(SELECT 1 FROM main.visit AS w WHERE w.no = v.no AND w.cost > 3)",
        "SELECT v.patient AS u FROM main.visit AS v WHERE v.ward IN (SELECT name FROM main.city)",
        "SELECT v.patient AS u FROM main.visit AS v CROSS JOIN "
        + BY_PATIENT
        + " WHERE g.u = v.patient AND g.c > 1",
        "SELECT v.patient AS u FROM main.visit AS v WHERE v.cost > "
        "(SELECT MIN(w.cost) FROM main.visit AS w WHERE w.patient = v.patient)",
        "SELECT u FROM (SELECT patient AS u, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY no) AS n FROM main.visit) "
        "AS s WHERE n < 3",
        "SELECT u FROM (SELECT patient AS u, COUNT(*) OVER (PARTITION BY patient ORDER BY ward) AS n FROM main.visit) AS s",
        "SELECT v.patient AS u FROM main.item AS i LEFT JOIN main.visit AS v ON i.visit = v.no LEFT JOIN main.patient AS p "
        "ON v.patient = p.id WHERE v.patient IS NOT NULL",
        "SELECT v.patient AS u FROM main.item AS i CROSS JOIN main.visit AS v LEFT JOIN main.visit AS w ON i.visit = w.no "
        "LEFT JOIN main.patient AS p ON w.patient = p.id WHERE i.visit = v.no",
        "SELECT v.patient AS u FROM main.visit AS v LEFT JOIN main.patient AS p ON v.patient = p.id "
        "WHERE EXISTS (SELECT 1 FROM main.visit AS w WHERE w.patient = p.id)",
        "SELECT v.patient AS u FROM main.visit AS v LEFT JOIN main.patient AS p ON v.patient = p.id "
        "WHERE NOT EXISTS (SELECT 1 FROM main.visit AS w WHERE w.patient = p.id)",
        "SELECT coalesce(CAST(a.u AS INTEGER), CAST(b.u AS INTEGER)) AS u FROM (SELECT patient AS u FROM main.visit) AS a "
        "FULL JOIN (SELECT id AS u FROM main.patient) AS b ON a.u = b.u",
        "SELECT u FROM (SELECT patient AS u, FIRST_VALUE(ward) OVER (PARTITION BY patient ORDER BY ward) AS n, cost "
        "FROM main.visit) AS s WHERE n < 'b' AND cost > 2",
        f"SELECT u FROM {NUMBERED % ('patient')} WHERE m < 3 AND cost > 2",
        *(
            f"SELECT u FROM (SELECT patient AS u, {value} OVER (PARTITION BY patient ORDER BY {order}) AS n, cost "
            "FROM main.visit) AS s WHERE n > 0 AND cost > 2"
            for value, order in (
                ("PERCENT_RANK()", "ward"),
                ("CUME_DIST()", "ward"),
                ("NTILE(4)", "no"),
                ("NTH_VALUE(cost, 2)", "no"),
                ("COUNT(*)", "CAST(cost AS BIGINT) RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING"),
                ("COUNT(cost)", "ward RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
            )
        ),
        "SELECT u FROM (SELECT patient AS u FROM main.visit UNION ALL SELECT id AS u FROM main.patient) AS s",
        "SELECT coalesce(a.u, b.u) AS u FROM (SELECT patient AS u FROM main.visit) AS a FULL JOIN "
        "(SELECT id AS u FROM main.patient) AS b ON a.u = b.u WHERE coalesce(a.u, b.u) IS NOT NULL",
    ],
)
def test_rows_of_one_owner_are_cut_to_their_bound(source: str) -> None:
    line = check(counted(source), 48)
    assert (line.lemma, line.rows, line.moved) == ("E2", 6, 48)


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("SELECT v.patient AS u FROM main.visit AS v CROSS JOIN main.patient AS p", "rows of two owners"),
        (
            "SELECT v.patient AS u FROM main.visit AS v CROSS JOIN main.patient AS p WHERE v.cost = p.id",
            "rows of two",
        ),
        (
            "SELECT v.patient AS u FROM main.visit AS v, main.patient AS p WHERE v.patient < p.id",
            "rows of two owners",
        ),
        (
            "SELECT p.id AS u FROM main.visit AS v, main.patient AS p WHERE v.patient = p.bmi",
            "rows of two owners",
        ),
        (
            "SELECT v.patient AS u FROM main.visit AS v LEFT JOIN main.patient AS p ON v.cost = p.id",
            "rows of two",
        ),
        (
            "SELECT c.beds AS u FROM main.city AS c LEFT JOIN main.visit AS v ON v.ward = c.name",
            "a public row",
        ),
        (
            "SELECT beds AS u FROM main.city AS c WHERE EXISTS (SELECT 1 FROM main.visit AS v WHERE v.ward = c.name)",
            "a pub",
        ),
        (
            "SELECT v.patient AS u FROM main.visit AS v LEFT JOIN main.patient AS p ON v.patient = p.id AND p.age > 3 "
            "WHERE NOT EXISTS (SELECT 1 FROM main.visit AS w WHERE w.patient = coalesce(p.id, 7))",
            "rows of two owners",
        ),
        (
            "SELECT v.patient AS u FROM main.visit AS v LEFT JOIN main.city AS c ON c.name = v.ward "
            "WHERE NOT EXISTS (SELECT 1 FROM main.visit AS w WHERE w.patient = c.beds)",
            "rows of two owners",
        ),
        (
            "SELECT coalesce(CAST(a.u AS SMALLINT), CAST(b.u AS SMALLINT)) AS u FROM (SELECT patient AS u FROM main.visit) "
            "AS a FULL JOIN (SELECT id AS u FROM main.patient) AS b ON a.u = b.u",
            "",
        ),
        (
            "SELECT patient AS u FROM main.visit AS v WHERE EXISTS (SELECT 1 FROM main.patient AS p)",
            "rows of two owners",
        ),
        (
            "SELECT patient AS u FROM main.visit AS v WHERE v.ward IN (SELECT city FROM main.patient)",
            "rows of two owners",
        ),
        (
            "SELECT CASE WHEN EXISTS (SELECT 1 FROM main.patient AS p WHERE p.age > 3) THEN patient ELSE patient END AS u "
            "FROM main.visit",
            "rows of two owners",
        ),
        (
            "SELECT patient AS u FROM main.visit AS v WHERE v.cost > (SELECT MIN(cost) FROM main.visit)",
            "rows of two owners",
        ),
        (
            "SELECT v.patient AS u FROM main.item AS i, main.visit AS v WHERE i.price = v.no",
            "rows of two owners",
        ),
        (
            "SELECT v.patient AS u FROM main.visit AS v CROSS JOIN "
            "(SELECT ward AS w, COUNT(*) AS c FROM main.visit GROUP BY ward) AS g WHERE g.w = v.ward",
            "GROUP BY has the owner",
        ),
        (
            "SELECT u FROM (SELECT patient AS u, ROW_NUMBER() OVER (PARTITION BY ward ORDER BY no) AS n FROM main.visit) AS s",
            "PARTITION BY has the owner",
        ),
        (
            "SELECT u FROM (SELECT patient AS u, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY ward) AS n, cost "
            "FROM main.visit) AS s WHERE n < 3 AND cost > 2",
            "rows that tie are alike",
        ),
        (f"SELECT u FROM {NUMBERED % 'patient, cost'} WHERE m < 3 AND cost > 2", "rows that tie are alike"),
        (
            "SELECT u FROM (SELECT patient AS u, SUM(cost) OVER (PARTITION BY patient ORDER BY ward "
            "ROWS UNBOUNDED PRECEDING) AS n FROM main.visit) AS s WHERE n < 3",
            "rows that tie are alike",
        ),
        *(
            (
                f"SELECT u FROM (SELECT patient AS u, {value} OVER (PARTITION BY patient ORDER BY ward{frame}) AS n, cost "
                "FROM main.visit) AS s WHERE n IS NULL AND cost > 2",
                "rows that tie are alike",
            )
            for value, frame in (
                ("FIRST_VALUE(cost)", ""),
                ("LAST_VALUE(ward)", " ROWS UNBOUNDED PRECEDING"),
                ("LAG(ward)", ""),
                ("NTILE(4)", ""),
                ("NTH_VALUE(cost, 2)", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
                ("NTH_VALUE(cost, 2)", " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW"),
                ("COUNT(*)", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
                ("COUNT(*)", " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW"),
            )
        ),
        (
            "SELECT v.patient AS u FROM main.item AS i CROSS JOIN main.visit AS v LEFT JOIN main.visit AS w ON i.visit = w.no "
            "LEFT JOIN main.patient AS p ON w.cost = p.id WHERE i.visit = v.no",
            "rows of two owners",
        ),
        (
            "SELECT v.patient AS u FROM main.item AS i CROSS JOIN main.visit AS v LEFT JOIN main.visit AS w ON i.price = w.no "
            "AND w.patient = v.patient LEFT JOIN main.patient AS p ON coalesce(w.patient, 7) = p.id WHERE i.visit = v.no",
            "rows of two owners",
        ),
        (
            "SELECT u FROM (SELECT patient AS u FROM main.visit UNION ALL SELECT beds AS u FROM main.city) AS s",
            "members of",
        ),
        (
            "SELECT coalesce(a.u, b.u) AS u FROM (SELECT patient AS u, ward AS w FROM main.visit) AS a FULL JOIN "
            "(SELECT id AS u, city AS w FROM main.patient) AS b ON a.w = b.w WHERE coalesce(a.u, b.u) IS NOT NULL",
            "rows of two owners",
        ),
        ("SELECT patient AS u FROM main.visit LIMIT 5", "listed kind"),
        ("SELECT patient AS u FROM main.visit WHERE random() < 0.5", "listed kind"),
        ("SELECT patient AS u FROM main.secret", "the table is known"),
        ("SELECT DISTINCT patient AS u FROM main.visit", "listed kind"),
    ],
)
def test_rows_without_an_owner_are_refused(source: str, rule: str) -> None:
    assert rule in refused(counted(source), 48)


def test_a_key_on_the_way_has_to_be_enforced() -> None:
    source = counted(
        "SELECT v.patient AS u FROM main.item AS i CROSS JOIN main.visit AS v WHERE i.visit = v.no"
    )
    loose = _with(FACTS, "main.visit", replace(VISIT, unique=()))
    assert refused(source, 48, facts=loose) == "relations: a key on the way to the unit is enforced"


def test_a_key_that_can_be_null_determines_nothing() -> None:
    ranked = (
        "SELECT u FROM (SELECT patient AS u, cost, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY no) AS n "
        "FROM main.visit) AS s WHERE n < 3 AND cost > 1"
    )
    assert check(counted(ranked), 48).rows == 6
    loose = _with(FACTS, "main.visit", replace(VISIT, not_null=("patient",)))
    assert refused(counted(ranked), 48, facts=loose) == "relations: rows that tie are alike"


def test_rows_of_nobody_are_left_out() -> None:
    loose = _with(FACTS, "main.visit", replace(VISIT, not_null=("no",)))
    by_unit = (
        "SELECT SUM(c0 * w) AS m0_0 FROM (SELECT 6 // GREATEST(COUNT(*), 6) AS w, COUNT(*) AS c0 FROM main.visit "
        "GROUP BY patient) AS p"
    )
    assert check(by_unit, 6).moved == 6
    assert refused(by_unit, 6, facts=loose) == "lemmas: rows of nobody are left out"


def test_rows_that_are_owners_meet_nobody() -> None:
    rows = Table(columns={"age": "INTEGER", "city": "VARCHAR"}, unit=Unit(()))
    facts = _with(_with(FACTS, "main.answer", rows), "main.later", rows)
    count = "SELECT COUNT(*) AS m0_0 FROM "
    assert check(count + "main.answer", 1, facts=facts).moved == 1
    both = "(SELECT age FROM main.answer UNION ALL SELECT age FROM main.later) AS t"
    assert check(count + both, 1, facts=facts).moved == 1
    twice = both.replace("later", "answer")
    assert check(count + twice, 2, facts=facts).moved == 2
    joined = "main.answer AS a CROSS JOIN main.later AS b WHERE a.age = b.age"
    assert refused(count + joined, 1, facts=facts) == "relations: rows of two owners"
    grouped = "(SELECT age, COUNT(*) AS c FROM main.answer GROUP BY age) AS g"
    assert refused(count + grouped, 1, facts=facts) == "relations: GROUP BY has the owner"


def test_a_join_with_a_public_table_multiplies_unless_a_key_says_otherwise() -> None:
    one = "SELECT COUNT(*) AS m0_0 FROM main.patient AS p CROSS JOIN main.city AS c WHERE c.name = p.city"
    assert check(one, 1).moved == 1
    assert (
        refused(one.replace("c.name = p.city", "c.beds = p.age"), 1) == "lemmas: an owner's rows are bounded"
    )
    loose = _with(FACTS, "main.city", replace(FACTS.tables["main.city"], unique=()))
    assert refused(one, 1, facts=loose) == "lemmas: an owner's rows are bounded"


def test_a_left_join_whose_rows_have_to_match_is_a_join() -> None:
    joined = (
        "SELECT COUNT(*) AS m0_0 FROM (SELECT patient AS u, k FROM (SELECT v.patient, p.city AS k FROM main.visit AS v "
        "LEFT JOIN main.patient AS p ON v.patient = p.id AND p.age > 3 WHERE p.age < 90) AS s GROUP BY patient, k) AS g"
    )
    assert check(joined, 1).moved == 1
    of_a_visit = joined.replace("p.age > 3", "v.cost > 3")
    assert check(of_a_visit.replace("p.age < 90", "p.city = p.city"), 1).moved == 1
    assert refused(of_a_visit.replace(" WHERE p.age < 90", ""), 1) == "lemmas: an owner's rows are bounded"


def test_a_left_join_that_matches_asks_the_one_before_it_to_match() -> None:
    """Where a visit's patient is there, the visit is."""
    chain = (
        "SELECT v.patient AS u FROM main.item AS i LEFT JOIN main.visit AS w ON i.visit = w.no LEFT JOIN main.patient AS p "
        "ON w.patient = p.id CROSS JOIN main.visit AS v WHERE i.visit = v.no AND (p.age > 3 OR (coalesce(p.age, 0) IS NULL))"
    )
    assert check(counted(chain), 48).moved == 48
    assert (
        refused(counted(chain.replace("ON w.patient = p.id", "ON w.cost = p.id")), 48)
        == "relations: rows of two owners"
    )


def test_what_a_left_join_matches_is_known_where_on_reads_what_is_known() -> None:
    joined = (
        "SELECT COUNT(*) AS m0_0 FROM (SELECT patient AS u, k FROM (SELECT v.patient, p.city AS k FROM main.visit AS v "
        "LEFT JOIN main.patient AS p ON v.patient = p.id AND p.age > 3) AS s GROUP BY patient, k) AS g"
    )
    assert check(joined, 1).moved == 1
    for other in (
        "v.cost > 3",
        "EXISTS (SELECT 1 FROM main.visit AS w WHERE w.patient = p.id AND w.no < v.no)",
    ):
        assert refused(joined.replace("p.age > 3", other), 1) == "lemmas: an owner's rows are bounded"
    assert refused(joined.replace("v.patient = p.id", "v.patient = p.age"), 1).startswith(
        "relations: rows of two"
    )


def test_the_owner_of_a_full_join_is_that_of_the_side_that_is_there() -> None:
    joined = (
        "SELECT COUNT(*) AS m0_0 FROM (SELECT coalesce(l.u, r.w) AS u FROM (SELECT id AS u, city FROM main.patient WHERE "
        "(id IS NOT NULL)) AS l FULL JOIN (SELECT patient AS u, patient AS w FROM main.visit WHERE (patient IS NOT NULL)) "
        "AS r ON l.u = r.u) AS j GROUP BY u"
    )
    by_owner = f"SELECT COUNT(*) AS m0_0 FROM ({joined}) AS g"
    assert check(by_owner, 1).moved == 1
    assert refused(by_owner.replace("coalesce(l.u, r.w)", "l.u"), 1) == "relations: GROUP BY has the owner"
    assert refused(by_owner.replace("patient AS w", "no AS w"), 1) == "relations: GROUP BY has the owner"
    nobody = (
        "SELECT COUNT(*) AS m0_0 FROM (SELECT coalesce(l.u, r.u) AS u, l.w FROM (SELECT ref AS u, id AS w FROM main.log) AS l "
        "FULL JOIN (SELECT ref AS u FROM main.log) AS r ON l.u = r.u) AS j GROUP BY u"
    )
    log = Table(columns={"id": "INTEGER", "ref": "INTEGER"}, unit=Unit(("ref",)))
    refused(f"SELECT SUM(m0_0) AS m0_0 FROM ({nobody}) AS g", 1, facts=_with(FACTS, "main.log", log))


def test_a_right_side_is_one_row_where_on_equates_its_key() -> None:
    """The key may be NULL elsewhere; an expression of what is known is known."""
    null = replace(FACTS.tables["main.city"], not_null=())
    joined = "SELECT COUNT(*) AS m0_0 FROM main.patient AS p LEFT JOIN main.city AS c ON c.name = "
    for side in ("p.city", "upper(p.city)", "CAST(p.age AS VARCHAR)"):
        assert check(joined + side, 1, facts=_with(FACTS, "main.city", null)).moved == 1
    for other in ("p.city OR c.name IS NULL", "upper(c.name)", "p.city COLLATE nocase"):
        refused(joined + other, 1, facts=_with(FACTS, "main.city", null))


def test_which_of_equal_doubles_is_read_is_told_by_texts_alone() -> None:
    most = (
        "SELECT COUNT(*) AS m0_0 FROM main.patient AS p WHERE p.age > (SELECT MAX(CASE WHEN q.bmi BETWEEN {low} AND 9 THEN "
        "q.bmi WHEN q.bmi < {low} THEN {low} WHEN q.bmi > 9 THEN 9 END) FROM main.patient AS q WHERE q.id = p.id)"
    )
    text = " AND CAST(p.bmi AS VARCHAR) < '5'"
    assert check(most.format(low=-1), 1).moved == 1
    assert check(most.format(low=1) + text, 1).moved == 1
    assert refused(most.format(low=-1) + text, 1) == "relations: MIN and MAX are of an exact order"
    assert refused(most.format(low=-1) + " AND concat(p.bmi, 'a') < '5'", 1).startswith("read: ")


def test_what_a_check_says_holds_of_each_row() -> None:
    total = "SELECT COALESCE(SUM(age), 0) AS m0_0 FROM main.patient"
    for said in (
        "(age BETWEEN 0 AND 120)",
        "((age >= 0) AND (age <= 120))",
        "(((age < 120.5)) AND (-1 < age))",
    ):
        held = _with(FACTS, "main.patient", replace(FACTS.tables["main.patient"], checks=(said,)))
        assert check(total, 121, facts=held).moved in (120, Fraction(241, 2))
    for said in (
        "(age <= 120)",
        "((age >= 0) OR (age <= 120))",
        "(age + 0 <= 120)",
        "nonsense(",
        "(id <= 120)",
    ):
        loose = _with(FACTS, "main.patient", replace(FACTS.tables["main.patient"], checks=(said,)))
        assert refused(total, 121, facts=loose).startswith("laws: a draw loses")


def test_a_label_is_its_text() -> None:
    table = replace(
        FACTS.tables["main.patient"],
        columns={**FACTS.tables["main.patient"].columns, "kind": "ENUM('a', 'b''c')"},
    )
    facts = _with(FACTS, "main.patient", table)
    joined = "SELECT COUNT(*) AS m0_0 FROM main.patient AS p CROSS JOIN main.city AS c WHERE c.name = CAST(p.kind AS VARCHAR)"
    assert check(joined, 1, facts=facts).moved == 1
    length = "SELECT COALESCE(SUM(length(CAST(kind AS VARCHAR))), 0) AS m0_0 FROM main.patient"
    assert check(length, 6, facts=facts).moved == 6  # as it is written, with its quotation marks


def test_lists_that_are_passed_are_keyed_by_their_groups() -> None:
    joined = (
        "SELECT COUNT(*) AS m0_0 FROM main.patient AS p CROSS JOIN (SELECT unnest(CAST($1 AS VARCHAR[])) AS k, "
        "unnest(CAST($2 AS DOUBLE[])) AS v) AS l WHERE l.k = p.city"
    )
    assert check(joined, 1, parameters=("released-key", "released")).moved == 1
    for parameters in (("released", "released"), ("released-key", "released-key"), ()):
        refused(joined, 1, parameters=parameters)


@pytest.mark.parametrize(
    "text",
    [
        'SELECT COUNT(*) AS m0_0 FROM (SELECT u FROM (SELECT no AS "U", patient AS u FROM main.visit) AS x GROUP BY u) AS y',
        "SELECT COUNT(*) AS m0_0 FROM (SELECT id AS zz FROM main.patient) AS p WHERE EXISTS (SELECT v.patient AS zz FROM "
        "main.visit AS v WHERE zz = v.patient)",
        "SELECT COUNT(*) AS m0_0 FROM (SELECT id AS rowid FROM main.patient) AS p WHERE EXISTS (SELECT 1 FROM main.visit AS v "
        "WHERE rowid = v.patient)",
        "SELECT COUNT(*) AS m0_0 FROM main.patient AS p WHERE EXISTS (SELECT 1 FROM main.visit AS P WHERE P.cost > 3 AND "
        "p.patient = p.id)",
        "WITH a AS (SELECT id FROM main.patient), A AS (SELECT no AS id FROM main.visit) SELECT COUNT(*) AS m0_0 FROM a",
        "WITH A AS (SELECT no AS id FROM main.visit) SELECT COUNT(*) AS m0_0 FROM (WITH b AS (SELECT id FROM main.patient) "
        "SELECT id FROM a) AS c",
    ],
)
def test_a_name_that_an_engine_may_read_otherwise_is_refused(text: str) -> None:
    """Names that differ in case, an alias or a hidden column that stands nearer than the source that is meant."""
    assert refused(text, 1) in ("read: a name means one column", "read: a name means one query")


def test_a_list_of_groups_is_of_constants() -> None:
    listed = "SELECT COUNT(*) AS m0_0 FROM (SELECT patient, cost FROM main.visit GROUP BY patient, cost HAVING cost IN (3, 1)) AS x"
    assert check(listed, 2).moved == 2
    for other in ("cost IN (cost, 1)", "cost IN (patient, 1)", "cost NOT IN (3, 1)", "cost = cost"):
        assert refused(listed.replace("cost IN (3, 1)", other), 2) == "lemmas: an owner's rows are bounded"


def test_no_row_becomes_several() -> None:
    several = (
        "SELECT COUNT(*) AS m0_0 FROM (SELECT id, unnest(CAST($1 AS VARCHAR[])) AS x FROM main.patient) AS y"
    )
    assert refused(several, 1, parameters=("released",)).startswith("relations: rows are multiplied")


def _with(facts: Facts, name: str, table: Table) -> Facts:
    return replace(facts, tables={**facts.tables, name: table})
