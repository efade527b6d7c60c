"""The lemmas: SQL in, how far an owner moves the numbers out; and for each premise a text that lacks it."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.tests.verify.clinic import FACTS, check
from dpsql.verify.certificate import Charge, Facts, ForeignKey, Groups, Law, Unit
from dpsql.verify.terms import Refused

CLAMP = "CASE WHEN age BETWEEN 0 AND 120 THEN age WHEN age < 0 THEN 0 WHEN age > 120 THEN 120 END"
BY_UNIT = (
    "SELECT CAST(COALESCE(SUM(c0 * w), 0) AS BIGINT) AS m0_0 FROM (SELECT COUNT(*) AS c0, "
    "(6144 // GREATEST(COUNT(*), 6)) AS w FROM (SELECT patient AS u, cost AS v FROM main.visit WHERE (patient IS NOT NULL)) "
    "AS r GROUP BY u) AS p"
)
E2 = (
    "WITH heavy AS (SELECT u AS hu, (6144 // GREATEST(COUNT(*), 6)) - 1024 AS w FROM (SELECT patient AS u FROM main.visit) "
    "AS r GROUP BY u HAVING COUNT(*) > 6) SELECT k0, CAST(SUM(m0_0) AS BIGINT) AS m0_0 FROM (SELECT k0, 1024 * COUNT(*) AS "
    "m0_0 FROM (SELECT ward AS k0 FROM main.visit) AS r GROUP BY k0 HAVING k0 IN ('a', 'b') UNION ALL "
    "SELECT k0, COALESCE(SUM(w), 0) AS m0_0 FROM (SELECT heavy.w, t0.ward AS k0 FROM main.visit AS t0 CROSS JOIN heavy "
    "WHERE (t0.patient = heavy.hu)) AS r GROUP BY k0 HAVING k0 IN ('a', 'b')) AS b GROUP BY k0"
)
KEPT = (
    "WITH p AS (SELECT patient AS u, ward AS k0 FROM main.visit GROUP BY patient, ward), "
    "above AS (SELECT u, COUNT(*) AS n FROM p GROUP BY u HAVING COUNT(*) > 2), "
    "ranked AS (SELECT u, k0, ROW_NUMBER() OVER (PARTITION BY u ORDER BY md5(CAST(u AS VARCHAR)), k0 NULLS LAST) AS rn "
    "FROM p WHERE u IN (SELECT u FROM above WHERE n <= 128)), "
    "kept AS (SELECT u, k0 FROM p ANTI JOIN above ON p.u = above.u "
    "UNION ALL SELECT u, k0 FROM ranked WHERE rn <= 2 "
    "UNION ALL SELECT u, one.k0 FROM (SELECT u, unnest(min(struct_pack(hashed := md5(CAST(u AS VARCHAR)), k0 := k0), 2)) "
    "AS one FROM p WHERE u IN (SELECT u FROM above WHERE n > 128) GROUP BY u) AS f) "
    "SELECT k0, COUNT(*) AS m0_0 FROM kept AS b GROUP BY k0"
)
DIRECT = (
    f"SELECT COALESCE(0 + ((2 * COALESCE(SUM({CLAMP}), 0) + COUNT(age)) // NULLIF(2 * COUNT(age), 0)), 60) AS m0_0 "
    "FROM main.patient"
)


def refused(sql: str, sensitivity: int, *masks: tuple[str, ...], **more: object) -> str:
    """The rule by which a text is refused."""
    with pytest.raises(Refused) as caught:
        check(sql, sensitivity, *masks, **more)  # type: ignore[arg-type]
    return caught.value.rule


def test_plain_counts_the_rows_that_keys_leave_an_owner() -> None:
    line = check("SELECT COUNT(*) AS m0_0 FROM main.patient", 1)
    assert (line.lemma, line.rows, line.reach, line.moved) == ("plain", 1, 1, 1)
    assert refused("SELECT COUNT(*) AS m0_0 FROM main.visit", 1) == "lemmas: an owner's rows are bounded"
    assert (
        refused("SELECT 2 * COUNT(*) AS m0_0 FROM main.patient", 1)
        == "laws: a draw loses no more than its share"
    )


def test_a_sum_reaches_to_the_ends_of_its_clamp() -> None:
    assert check(f"SELECT COALESCE(SUM({CLAMP}), 0) AS m0_0 FROM main.patient", 120).moved == 120
    assert check("SELECT COALESCE(SUM(age), 0) AS m0_0 FROM main.patient", 2**31).moved == 2**31, "an INTEGER"
    ends = "CASE WHEN age < 0 THEN 0 ELSE age END"
    assert refused(f"SELECT COALESCE(SUM({ends}), 0) AS m0_0 FROM main.patient", 120).startswith(
        "laws: a draw"
    )
    low = CLAMP.replace(" WHEN age < 0 THEN 0", "")
    assert refused(f"SELECT SUM({low}) + COUNT(*) AS m0_0 FROM main.patient", 121).startswith(
        "lemmas: a SUM beside"
    )
    assert (
        refused("SELECT SUM(bmi) AS m0_0 FROM main.patient", 1) == "lemmas: a sum is of integers or decimals"
    )


def test_a_pair_reaches_no_further_than_its_width() -> None:
    pair = (
        f"SELECT COALESCE(SUM({CLAMP}), 0) - 0 * COUNT(age) AS m0_0, 120 * COUNT(age) - COALESCE(SUM({CLAMP}), 0) AS m0_1 "
        "FROM main.patient"
    )
    assert check(pair, 120, ("m0_0", "m0_1")).moved == 120
    assert refused(pair.replace("COUNT(age) - C", "COUNT(*) - C"), 119, ("m0_0", "m0_1")).startswith("laws")
    assert refused(pair.replace("120 * COUNT", "121 * COUNT"), 120, ("m0_0", "m0_1")).startswith("laws")


def test_masks_that_overlap_add_up() -> None:
    masks = (
        "SELECT COUNT(*) FILTER (WHERE age > 5 IS TRUE) AS m0_0, COUNT(*) FILTER (WHERE age > 5 IS NOT TRUE) AS m0_1 "
        "FROM main.patient"
    ).replace("age > 5 IS", "(age > 5) IS")
    assert check(masks, 1, ("m0_0",), ("m0_1",)).moved == 1
    assert refused(masks.replace("IS NOT TRUE", "IS TRUE"), 1, ("m0_0",), ("m0_1",)).startswith("laws")


def test_by_unit_is_bounded_by_a_row() -> None:
    line = check(BY_UNIT, 6144)
    assert (line.lemma, line.rows, line.moved) == ("by unit", 6, 6144)
    assert check(f"{BY_UNIT} WHERE (right('a', 2) >= 'a')", 6144).moved == 6144
    assert refused(f"{BY_UNIT} WHERE w > 9", 6144) == "lemmas: by unit, of all persons"
    assert (
        refused(f"{BY_UNIT} WHERE EXISTS (SELECT 1 FROM main.visit)", 6144) == "relations: rows of two owners"
    )


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("6144 //", "6145 //", "laws: a draw loses no more than its share"),
        ("6144 //", "1 + 6144 //", "lemmas: a weight is K // t"),
        ("6144 //", "2 * 6144 //", "lemmas: a weight is K // t"),
        (
            "GREATEST(COUNT(*), 6)",
            "GREATEST(COUNT(*) FILTER (WHERE v > 3), 6)",
            "values: what adds something is counted",
        ),
        (
            "GREATEST(COUNT(*), 6)",
            "GREATEST(COUNT(v), 6)",
            "lemmas: t is at least R, and all rows that count",
        ),
        ("GREATEST(COUNT(*), 6)", "COUNT(*)", "total: a divisor is not 0"),
        (
            "GREATEST(COUNT(*), 6)",
            "LEAST(GREATEST(COUNT(*), 1), 6)",
            "lemmas: t is at least R, and all rows that count",
        ),
        ("GROUP BY u", "GROUP BY v", "relations: GROUP BY has the owner"),
        ("GROUP BY u", "GROUP BY u, v", "lemmas: p is grouped by exactly the owner"),
        ("GROUP BY u", "GROUP BY u HAVING COUNT(*) < 9", "lemmas: no row of an owner is left out of t"),
        ("c0 * w", "c0 * w + c0", "lemmas: one weight for all"),
        ("c0 * w", "c0 * w * w", "lemmas: one weight for all"),
        ("patient AS u", "no AS u", "lemmas: p is grouped by exactly the owner"),
    ],
)
def test_by_unit_has_premises(old: str, new: str, rule: str) -> None:
    assert old in BY_UNIT
    assert refused(BY_UNIT.replace(old, new), 6144) == rule


def test_a_correction_bounds_who_has_many_rows() -> None:
    line = check(E2, 6144, keys=("k0",))
    assert (line.lemma, line.rows, line.moved) == ("E2", 6, 6144)


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("> 6)", "> 7)", 1),
        ("6144 //", "12288 //", 1),
        ("6144 //", "1 + 6144 //", 1),
        ("6144 // GREATEST", "1024 * 6 // LEAST", 1),
        ("(6144 // GREATEST(COUNT(*), 6))", "6144", 1),
        ("GREATEST(COUNT(*), 6)", "GREATEST(COUNT(patient), 6)", 1),
        (" - 1024 AS w", " AS w", 1),
        (" - 1024 AS w", " - 1023 AS w", 1),
        ("COALESCE(SUM(w), 0)", "0", 1),
        ("COALESCE(SUM(w), 0)", "COALESCE(SUM(w), 0) + COUNT(*)", 1),
        ("COALESCE(SUM(w), 0)", "COALESCE(SUM(w * w), 0)", 1),
        ("1024 * COUNT(*)", "2048 * COUNT(*)", 1),
        ("1024 * COUNT(*)", "COUNT(*)", 1),
        ("CROSS JOIN heavy ", "CROSS JOIN heavy CROSS JOIN heavy AS h2 ", 1),
        (
            "AS b GROUP BY k0",
            "UNION ALL SELECT t0.ward AS k0, SUM(heavy.w) AS m0_0 FROM main.visit AS t0 CROSS JOIN heavy "
            "WHERE t0.patient = heavy.hu GROUP BY t0.ward HAVING t0.ward IN ('a', 'b')) AS b GROUP BY k0",
            1,
        ),
        ("(t0.patient = heavy.hu)", "(t0.no = heavy.hu)", 1),
        (" WHERE (t0.patient = heavy.hu)", "", 1),
        ("(t0.patient = heavy.hu)", "(t0.patient = heavy.hu) AND (t0.cost > 4)", 1),
        ("FROM main.visit) AS r GROUP BY u", "FROM main.visit WHERE cost > 4) AS r GROUP BY u", 1),
        ("HAVING k0 IN ('a', 'b')", "", 1),
        (
            "AS r GROUP BY k0 HAVING k0 IN ('a', 'b')) AS b",
            "AS r GROUP BY k0, w HAVING k0 IN ('a', 'b')) AS b",
            1,
        ),
        ("t0.ward AS k0", "CAST(t0.no AS VARCHAR) AS k0", 1),
        ("UNION ALL", "UNION", 1),
        ("SELECT patient AS u FROM main.visit", "SELECT no AS u FROM main.visit", 1),
    ],
)
def test_a_correction_has_premises(old: str, new: str, count: int) -> None:
    assert E2.count(old) >= count
    refused(re.sub(re.escape(old), new, E2, count=count), 6144, keys=("k0",))


OF_P = E2.replace(
    E2[: E2.index(") SELECT k0, CAST(SUM(m0_0)")],
    "WITH p AS (SELECT u, k0, COUNT(*) AS c FROM (SELECT patient AS u, ward AS k0 FROM main.visit) AS r GROUP BY u, k0), "
    "heavy AS (SELECT u AS hu, (6144 // GREATEST(CAST(SUM(c) AS BIGINT), 6)) - 1024 AS w FROM p GROUP BY u "
    "HAVING CAST(SUM(c) AS BIGINT) > 6",
)


def test_the_rows_of_an_owner_are_those_of_its_groups() -> None:
    line = check(OF_P, 6144, keys=("k0",))
    assert (line.lemma, line.rows, line.moved) == ("E2", 6, 6144)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FROM p GROUP BY u", "FROM p WHERE k0 = 'a' GROUP BY u"),
        ("FROM p GROUP BY u", "FROM p GROUP BY u, k0"),
        ("FROM p GROUP BY u", "FROM p CROSS JOIN p AS q GROUP BY p.u"),
        ("GROUP BY u, k0)", "GROUP BY u, k0 HAVING COUNT(*) > 1)"),
        ("GROUP BY u, k0)", "GROUP BY k0)"),
        ("COUNT(*) AS c", "COUNT(k0) AS c"),
        ("COUNT(*) AS c", "COUNT(DISTINCT k0) AS c"),
        ("COUNT(*) AS c", "COUNT(*) FILTER (WHERE k0 = 'a') AS c"),
        ("COUNT(*) AS c", "1 AS c"),
        ("SUM(c)", "MAX(c)"),
        ("SUM(c)", "SUM(1)"),
        ("SUM(c)", "SUM(DISTINCT c)"),
        ("SUM(c)", "SUM(c) FILTER (WHERE k0 = 'a')"),
        ("SUM(c)", "COUNT(*)"),
        ("SUM(c)", "SUM(c) - 1"),
        ("FROM main.visit) AS r GROUP BY u", "FROM main.visit WHERE cost > 4) AS r GROUP BY u"),
        ("SELECT patient AS u, ward", "SELECT no AS u, ward"),
    ],
)
def test_groups_of_which_rows_are_added_up_have_premises(old: str, new: str) -> None:
    assert old in OF_P
    refused(OF_P.replace(old, new), 6144, keys=("k0",))


PLACE = "CASE WHEN g0 IN ('a', 'b') THEN g0 END"
NORM = (
    "WITH heavy AS (SELECT hu, COALESCE(MIN(w), 0) - 1024 AS w FROM (SELECT u AS hu, (6144 // GREATEST(COUNT(*), 6)) AS w "
    "FROM (SELECT patient AS u, ward AS g0 FROM main.visit) AS r GROUP BY u HAVING COUNT(*) > 6 UNION ALL "
    "SELECT hu, CASE WHEN CAST(x * x AS HUGEINT) * s <= 4194304 THEN x "
    "WHEN CAST((x - 1) * (x - 1) AS HUGEINT) * s <= 4194304 THEN (x - 1) ELSE 0 END AS w FROM (SELECT hu, s, "
    "LEAST(GREATEST(CAST(sqrt(CAST('4194304.0' AS DOUBLE) / CAST(s AS DOUBLE)) AS BIGINT), 1), 1024) AS x FROM (SELECT u AS hu, "
    "CAST(GREATEST(LEAST(SUM(c * c), 4194305), 1) AS BIGINT) AS s FROM (SELECT u, LEAST(COUNT(*), 2049) AS c FROM (SELECT u, "
    f"{PLACE} AS g FROM (SELECT patient AS u, ward AS g0 FROM main.visit) AS r) AS r GROUP BY u, g) AS q GROUP BY u "
    "HAVING SUM(c * c) > 4) AS s) AS f) AS h GROUP BY hu) "
    "SELECT k0, CAST(SUM(m0_0) AS BIGINT) AS m0_0 FROM (SELECT CASE WHEN k0 IN ('a', 'b') THEN k0 END AS k0, m0_0 FROM ("
    "SELECT k0, 1024 * COUNT(*) AS m0_0 FROM (SELECT ward AS k0 FROM main.visit) AS r GROUP BY k0 UNION ALL "
    "SELECT k0, COALESCE(SUM(w), 0) AS m0_0 FROM (SELECT heavy.w, t0.ward AS k0 FROM main.visit AS t0 CROSS JOIN heavy "
    "WHERE (t0.patient = heavy.hu)) AS r GROUP BY k0) AS b) AS b GROUP BY k0"
)
"""At most 6 rows of a person, and 2 in root-sum-of-squares by two wards and all others."""
GAUSSIAN = {
    "keys": ("k0",), "law": Law("gaussian", sigmas=(Fraction(2048),)), "facts": replace(FACTS, accounting="zcdp"),
    "share": Charge(Fraction(1), rho=Fraction(1, 2)),
}  # fmt: skip


def test_a_norm_bounds_squares() -> None:
    line = check(NORM, 2048**2, **GAUSSIAN)  # type: ignore[arg-type]
    assert (line.lemma, line.rows, line.moved) == ("E2", 6, 2048**2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("MIN(w)", "MAX(w)"),
        ("- 1024 AS w", "AS w"),
        ("* s <= 4194304 THEN x ", "* s <= 4194304 THEN x + 1 "),
        ("* s <= 4194304 THEN (x - 1)", "* s <= 4194304 THEN x"),
        ("* s <= 4194304 THEN x ", "* s <= 4194305 THEN x "),
        ("CAST(x * x AS HUGEINT) * s", "CAST(x AS HUGEINT) * s"),
        ("ELSE 0", "ELSE 1"),
        ("SUM(c * c), 4194305", "SUM(c), 4194305"),
        ("LEAST(SUM(c * c), 4194305)", "LEAST(SUM(c * c), 4194304)"),
        ("LEAST(COUNT(*), 2049)", "LEAST(COUNT(*), 2048)"),
        ("LEAST(COUNT(*), 2049)", "LEAST(COUNT(g), 2049)"),
        ("GROUP BY u, g)", "GROUP BY u, g HAVING g IS NOT NULL)"),
        (" AS g FROM (SELECT patient AS u, ward AS g0 FROM main.visit)", " AS g FROM (SELECT patient AS u, ward AS g0 FROM main.visit WHERE cost > 3)"),
        ("HAVING SUM(c * c) > 4", "HAVING SUM(c * c) > 5"),
        ("HAVING SUM(c * c) > 4", "HAVING SUM(c * c) > 2"),
        ("HAVING SUM(c * c) > 4", "HAVING SUM(c) > 4"),
        (PLACE, "g0"),
        (PLACE, "CASE WHEN g0 IN ('a', 'b', 'c') THEN g0 END"),
        ("WHEN k0 IN ('a', 'b') THEN k0 END AS k0", "WHEN k0 IN ('a') THEN k0 END AS k0"),
        ("WHEN k0 IN ('a', 'b') THEN k0 END AS k0", "WHEN k0 IN ('a', 'b') THEN k0 ELSE 'a' END AS k0"),
        ("GROUP BY hu) ", "GROUP BY hu HAVING MIN(w) < 9) "),
    ],
)  # fmt: skip
def test_a_norm_has_premises(old: str, new: str) -> None:
    assert old in NORM
    refused(NORM.replace(old, new), 2048**2, **GAUSSIAN)


def test_ranks_keep_so_many_groups() -> None:
    assert check(KEPT, 2, keys=("k0",)).moved == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rn <= 2", "rn <= 3"),
        ("COUNT(*) > 2", "COUNT(*) > 3"),
        ("PARTITION BY u ", ""),
        ("PARTITION BY u ", "PARTITION BY k0 "),
        (", k0 NULLS LAST", ""),
        ("md5(CAST(u AS VARCHAR)), k0", "random(), k0"),
        ("p.u = above.u", "p.k0 = CAST(above.n AS VARCHAR)"),
        ("ANTI JOIN", "LEFT JOIN"),
        ("k0 := k0), 2", "k0 := k0), 3"),
        ("n > 128", "n > 127"),
        ("n <= 128", "n <= 129"),
        (" WHERE n > 128", ""),
        ("WHERE u IN (SELECT u FROM above WHERE n <= 128)", ""),
        (
            "hashed := md5(CAST(u AS VARCHAR)), k0 := k0",
            "hashed := md5(CAST(u AS VARCHAR)), k1 := k0, k0 := 'a'",
        ),
        (
            "UNION ALL SELECT u, k0 FROM ranked",
            "UNION ALL SELECT u, k0 FROM p UNION ALL SELECT u, k0 FROM ranked",
        ),
    ],
)
def test_ranks_have_premises(old: str, new: str) -> None:
    assert old in KEPT
    refused(KEPT.replace(old, new), 2, keys=("k0",))


def test_a_direct_average_moves_within_its_interval() -> None:
    assert check(DIRECT, 61).moved == 61
    refused(DIRECT.replace(", 60)", ", 130)"), 61)
    refused(DIRECT.replace("2 * COUNT(age)", "COUNT(age)"), 61)
    refused(DIRECT, 60)


def test_a_way_that_the_engine_keeps_is_left_out_of_the_first_part() -> None:
    """Each item has its one visit: the first part reads items alone, the correction goes by the visit to the owner."""
    cut = (
        "WITH r AS (SELECT visit AS j FROM main.item), heavy AS (SELECT u AS hu, (48 // GREATEST(COUNT(*), 6)) - 8 AS w FROM "
        "(SELECT v.patient AS u FROM r CROSS JOIN main.visit AS v WHERE r.j = v.no) AS r GROUP BY u HAVING COUNT(*) > 6) "
        "SELECT CAST(SUM(m0_0) AS BIGINT) AS m0_0 FROM (SELECT 8 * COUNT(*) AS m0_0 FROM r UNION ALL "
        "SELECT COALESCE(SUM(w), 0) AS m0_0 FROM (SELECT heavy.w FROM r CROSS JOIN main.visit AS v CROSS JOIN heavy "
        "WHERE (r.j = v.no) AND (v.patient = heavy.hu)) AS r) AS b"
    )
    items, way = FACTS.tables["main.item"], ForeignKey(("visit",), "main.visit", ("no",))

    def facts(**more: object) -> Facts:
        return replace(FACTS, tables={**FACTS.tables, "main.item": replace(items, **more)})  # type: ignore[arg-type]

    kept = facts(foreign_keys=(way,))
    assert check(cut, 48, facts=kept).moved == 48
    same = "lemmas: E2, both parts read the same rows"
    beside = cut.replace(
        "SELECT visit AS j FROM main.item",
        "SELECT i.visit AS j FROM main.item AS i CROSS JOIN main.city AS c WHERE c.name = 'a'",
    )
    assert check(beside, 48, facts=kept).moved == 48, "another table is no way"
    assert refused(cut, 48) == same, "nothing says that an item has a visit"
    assert refused(cut, 48, facts=facts(foreign_keys=(way,), not_null=())) == same
    for other in ("r.j = v.no AND v.cost > 3", "r.j >= v.no", "r.j = v.cost"):
        refused(cut.replace("r.j = v.no", other), 48, facts=kept)


def test_nothing_leaves_but_keys_and_numbers_with_noise() -> None:
    sql = "SELECT COUNT(*) AS m0_0, MAX(age) AS seen FROM main.patient"
    assert refused(sql, 1) == "laws: what leaves the engine is a key or a number with noise"
    assert refused("SELECT age AS m0_0 FROM main.patient", 1) == "lemmas: a query of aggregates"


_CUT = "LEAST(GREATEST(COALESCE(SUM({}), 0), {} * COUNT(age)), {} * COUNT(age))"


def _direct(cut: str, by: str = " GROUP BY id") -> str:
    """The average of totals of each owner that are cut."""
    return (
        "SELECT COALESCE(0 + ((2 * COALESCE(SUM(s), 0) + COALESCE(SUM(c), 0)) // NULLIF(2 * COALESCE(SUM(c), 0), 0)), 60) AS "
        f"m0_0 FROM (SELECT id AS u, COUNT(age) AS c, CAST({cut} AS BIGINT) AS s FROM main.patient{by}) AS p"
    )


def test_totals_that_are_cut_where_no_row_reaches_are_the_totals() -> None:
    """LEAST and GREATEST of two totals are one of them, where on every row the one adds no less than the other."""
    clamped = _CUT.format(CLAMP, 0, 120)
    assert check(_direct(clamped), 120).moved == 120
    assert check(clamped.join(("SELECT CAST(", " AS BIGINT) AS m0_0 FROM main.patient")), 120).moved == 120


def test_totals_of_an_owner_that_are_cut_are_those_of_a_mean_in_between() -> None:
    assert check(_direct(_CUT.format("age", 0, 120)), 120).moved == 120
    assert check(_direct(_CUT.format("age", 0, 100)), 100).moved == 100
    wider = "LEAST(GREATEST(COALESCE(SUM(age), 0), 0 * COUNT(age)), 121 * COUNT(age))"
    assert refused(_direct(wider), 120) == "laws: a draw loses no more than its share"
    none = "lemmas: a number is a sum over rows"
    for other in (
        wider.replace("121 * COUNT(age)", "120 * COUNT(city)"),
        wider.replace("121 * COUNT(age)", "120 * COUNT(*)"),
        wider.replace("121 * COUNT(age)", "120 * COUNT(age) FILTER (WHERE city = 'x')"),
        wider.replace("0 * COUNT(age)", "122 * COUNT(age)"),
        wider.replace("COALESCE(SUM(age), 0)", "COALESCE(SUM(age), 7)"),
        wider.replace("121 * COUNT(age)", "121"),
    ):
        assert refused(_direct(other), 120) == none, other


def test_a_total_of_several_owners_that_is_cut_is_no_sum() -> None:
    """Who is gone takes what the others' total is cut by with them: -1000 beside 1000 is 0, and without it 120."""
    cut = _CUT.format("age", 0, 120)
    assert refused(f"SELECT CAST({cut} AS BIGINT) AS m0_0 FROM main.patient", 120) == (
        "lemmas: a number is a sum over rows"
    )
    assert refused(_direct(cut, " GROUP BY city").replace("id AS u", "city AS u"), 120) == (
        "relations: GROUP BY has the owner"
    )


def test_two_totals_of_an_owner_are_cut_each_by_itself() -> None:
    """Of z = -1000 and 1000 under F the total of both is cut to 0, and that of F to 120: rows have two means."""
    under = "FILTER (WHERE ward = 'x')"
    cut = "LEAST(GREATEST(COALESCE(SUM(cost), 0), 0 * COUNT(cost)), 120 * COUNT(cost))"
    less = cut.replace("SUM(cost)", f"SUM(cost) {under}").replace("COUNT(cost)", f"COUNT(cost) {under}")
    sql = (
        "SELECT CAST(COALESCE(SUM(s * w), 0) - 2 * COALESCE(SUM(l * w), 0) AS BIGINT) AS m0_0 FROM (SELECT patient AS u, "
        f"CAST({cut} AS BIGINT) AS s, CAST({less} AS BIGINT) AS l, (6144 // GREATEST(COUNT(*), 6)) AS w FROM main.visit "
        "WHERE (patient IS NOT NULL) GROUP BY patient) AS p"
    )
    assert check(sql, 240 * 6144).moved == 240 * 6144
    assert check(sql.replace(less, cut), 120 * 6144).moved == 120 * 6144


def test_an_average_whose_middle_is_0_or_that_averages_nothing() -> None:
    around_0 = DIRECT.replace(
        "COALESCE(0 + ((2 * COALESCE(SUM", "COALESCE(-60 + ((2 * (COALESCE(SUM"
    ).replace("END), 0) + COUNT", "END), 0) - 0 * COUNT(age)) + COUNT")
    assert check(around_0.replace(", 0)), 60)", ", 0)), 0)"), 61).moved == 61
    nothing = DIRECT.replace("FROM main.patient", "FROM main.patient WHERE (1000 IS NULL)").replace(
        "), 60)", "), 700)"
    )
    assert check(nothing, 1).moved == 0


def test_an_average_whose_middle_is_outside_moves_from_there() -> None:
    """Where nobody is left it is the middle, so one person moves it as far as that is away."""
    for middle, moved in (("120", 120), ("130", 130), ("-1", 121), ("700", 700)):
        outside = DIRECT.replace(", 60)", f", {middle})")
        assert check(outside, moved).moved == moved
        assert refused(outside, moved - 1) == "laws: a draw loses no more than its share"
    of_some = DIRECT.replace("SELECT C", "SELECT city AS k0, C") + " GROUP BY city"
    assert check(of_some, 61, keys=("k0",)).moved == 61


def test_an_average_of_rows_that_weigh_apart_moves_by_all_its_width() -> None:
    """Who weighs a hundred times as much as the others moves their average nearly to the own value."""
    heavy = DIRECT.replace(
        f"SUM({CLAMP}), 0)", f"SUM({CLAMP}), 0) + 99 * COALESCE(SUM({CLAMP}) FILTER (WHERE city = 'a'), 0)"
    )
    heavy = heavy.replace("2 * (", "2 * ").replace("2 * COALESCE(SUM", "2 * (COALESCE(SUM", 1)
    heavy = heavy.replace("FILTER (WHERE city = 'a'), 0)", "FILTER (WHERE city = 'a'), 0))").replace(
        "COUNT(age)", "(COUNT(age) + 99 * COUNT(age) FILTER (WHERE city = 'a'))"
    )
    assert check(heavy, 120).moved == 120
    assert refused(heavy, 61) == "laws: a draw loses no more than its share"


def test_an_average_of_rows_that_are_owners_themselves_moves_by_half() -> None:
    rows = replace(
        FACTS, tables={name: replace(table, unit=Unit(())) for name, table in FACTS.tables.items()}
    )
    both = (
        "SELECT k0, COALESCE(0 + ((2 * COALESCE(SUM(v), 0) + COUNT(v)) // NULLIF(2 * COUNT(v), 0)), 60) AS m0_0 FROM "
        f"(SELECT city AS k0, {CLAMP} AS v FROM main.patient UNION ALL SELECT ward AS k0, 7 AS v FROM main.visit) AS r "
        "GROUP BY k0"
    )
    assert check(both, 61, keys=("k0",), facts=rows).moved == 61
    twice = both.replace("main.visit)", "main.patient)").replace("ward", "city")
    assert refused(twice, 61, keys=("k0",), facts=rows) == "laws: a draw loses no more than its share"


@pytest.mark.parametrize(
    ("number", "is_said"),
    [
        ("exp(CASE WHEN age BETWEEN 0 AND 9 THEN age WHEN age < 0 THEN 0 WHEN age > 9 THEN 9 END)", True),
        ("bmi", False),
        ("(bmi + bmi)", False),
        (
            "log10(CAST(CASE WHEN age BETWEEN 0 AND 9 THEN age WHEN age < 0 THEN 0 WHEN age > 9 THEN 9 END AS DOUBLE))",
            False,
        ),
    ],
)
def test_a_clamp_of_a_double_is_null_where_the_double_is(number: str, is_said: bool) -> None:
    """A pair that counts rows moves by its width alone where the number is there in each of them: NaN has no ends."""
    low, high = "CAST('1' AS DOUBLE)", "CAST('5' AS DOUBLE)"
    clamp = (
        f"CASE WHEN {number} BETWEEN {low} AND {high} THEN {number} WHEN {number} < {low} THEN {low} "
        f"WHEN {number} > {high} AND {number} <= CAST('Infinity' AS DOUBLE) THEN {high} END"
    )
    total = f"COALESCE(SUM(CAST(({clamp}) * CAST('1024' AS DOUBLE) AS BIGINT)), 0)"
    pair = (
        f"SELECT {total} - 1024 * COUNT(*) AS m0_0, 5120 * COUNT(*) - {total} AS m0_1 FROM main.patient "
        "WHERE (age IS NOT NULL)"
    )
    if is_said:
        assert check(pair, 4096, ("m0_0", "m0_1")).moved == 4096
    else:
        rules = ("laws: a draw loses no more than its share", "total: ")
        assert refused(pair, 4096, ("m0_0", "m0_1")).startswith(rules)


PAIR = (
    "SELECT COALESCE(SUM({0}), 0) - COUNT(*) AS m0_0, 9 * COUNT(*) - COALESCE(SUM({0}), 0) AS m0_1 FROM "
    "(SELECT id, city, bmi, age, n FROM (SELECT id, city, bmi, age, {1} AS n FROM main.patient) AS s) AS r WHERE {2}"
)
"""A pair moves by its width, 8, where a number is there in each row that counts; by 10 where it is not."""
OF_AGE = "CASE WHEN age BETWEEN 1 AND 9 THEN age WHEN age < 1 THEN 1 WHEN age > 9 THEN 9 END"
LOW, HIGH = "CAST('1' AS DOUBLE)", "CAST('9' AS DOUBLE)"
OF_BMI = (
    f"CAST(CASE WHEN bmi BETWEEN {LOW} AND {HIGH} THEN bmi WHEN bmi < {LOW} THEN {LOW} "
    f"WHEN bmi > {HIGH} AND bmi <= CAST('Infinity' AS DOUBLE) THEN {HIGH} END AS BIGINT)"
)
OF_N = "CASE WHEN n < 9 THEN CAST(1 AS INTEGER) WHEN n = 9 THEN 2 WHEN n > 9 THEN 3 END"
OVER = "OVER (PARTITION BY id ORDER BY age)"


@pytest.mark.parametrize(
    ("value", "column", "where", "is_there"),
    [
        (OF_AGE, "7", "age > 3 OR (1000 IS NULL)", True),
        (OF_AGE, "7", "age > 3 OR (city IS NULL)", False),
        (OF_BMI, "7", f"bmi = {LOW} OR bmi = {HIGH}", True),
        (OF_BMI, "7", f"bmi < {LOW}", True),
        (OF_BMI, "7", f"bmi > {LOW}", False),
        (OF_BMI, "7", "bmi = bmi", False),
        (OF_N, f"ROW_NUMBER() {OVER}", "(1 IS NOT NULL)", True),
        (OF_N, f"COUNT(*) {OVER}", "(1 IS NOT NULL)", True),
        (OF_N, f"LAG(age) {OVER}", "(1 IS NOT NULL)", False),
        (OF_N, f"MIN(age) {OVER}", "(1 IS NOT NULL)", False),
    ],
)
def test_a_number_is_there_in_each_row_that_counts(
    value: str, column: str, where: str, is_there: bool
) -> None:
    pair = PAIR.format(value, column, where)
    if is_there:
        assert check(pair, 8, ("m0_0", "m0_1")).moved == 8
    else:
        assert refused(pair, 8, ("m0_0", "m0_1")) == "laws: a draw loses no more than its share"


def test_a_clamp_that_leaves_nan_to_its_high_end_is_there_where_it_is_nan() -> None:
    """NaN is above each number, so `x > 9` takes it; of rows where x is NaN such a clamp is 9, and another is NULL."""
    of_nan = "(CASE WHEN isnan(bmi) THEN NULL ELSE bmi END IS NULL) AND (bmi IS NOT NULL)"
    total = f"SELECT COALESCE(SUM({OF_BMI}), 0) AS m0_0 FROM main.patient WHERE {of_nan}"
    assert check(total, 9).moved == 0
    assert check(total.replace(" AND bmi <= CAST('Infinity' AS DOUBLE)", ""), 9).moved == 9


@pytest.mark.parametrize(
    ("test", "where", "is_there"),
    [
        (" AND weight < CAST('NaN' AS numeric)", "weight <= 12", True),
        (" AND weight < CAST('NaN' AS numeric)", "weight >= 12", False),
        (" AND weight < CAST('NaN' AS numeric)", "(weight IS NOT NULL)", False),
        ("", "(weight IS NOT NULL)", True),
    ],
)
def test_a_numeric_of_postgres_can_be_nan(test: str, where: str, is_there: bool) -> None:
    patient = replace(
        FACTS.tables["main.patient"],
        columns={
            "id": "integer",
            "city": "text",
            "bmi": "double precision",
            "age": "integer",
            "weight": "numeric(5,2)",
        },
    )
    facts = Facts("postgres", {"main.patient": patient})
    clamp = f"CASE WHEN weight BETWEEN 1 AND 9 THEN weight WHEN weight < 1 THEN 1 WHEN weight > 9{test} THEN 9 END"
    pair = (
        "SELECT COALESCE(SUM({0}), 0) - COUNT(*) AS m0_0, 9 * COUNT(*) - COALESCE(SUM({0}), 0) AS m0_1 FROM main.patient "
        "WHERE {1}"
    ).format(f"CAST(({clamp}) AS BIGINT)", where)
    if is_there:
        assert check(pair, 8, ("m0_0", "m0_1"), facts=facts).moved == 8
    else:
        assert refused(pair, 8, ("m0_0", "m0_1"), facts=facts) == "laws: a draw loses no more than its share"


def test_a_moment_that_is_not_infinite_is_some_number_of_days() -> None:
    patient = FACTS.tables["main.patient"]
    dated = replace(patient, columns={**patient.columns, "born": "DATE"})
    facts = replace(FACTS, tables={**FACTS.tables, "main.patient": dated})
    low, high = "DATE '1970-01-02'", "DATE '1970-01-10'"
    born = f"CASE WHEN born BETWEEN {low} AND {high} THEN born WHEN born < {low} THEN {low} WHEN born > {high} THEN {high} END"
    days = "date_diff('day', CAST('1970-01-01' AS DATE), {})"
    pair = PAIR.replace("bmi, age, ", "born, ")
    assert (
        check(pair.format(days.format(born), 7, "(born IS NOT NULL)"), 8, ("m0_0", "m0_1"), facts=facts).moved
        == 8
    )
    bare = days.format("born")
    clamped = (
        f"CASE WHEN {bare} BETWEEN 1 AND 9 THEN {bare} WHEN {bare} < 1 THEN 1 WHEN {bare} > 9 THEN 9 END"
    )
    assert (
        refused(pair.format(clamped, 7, "(born IS NOT NULL)"), 8, ("m0_0", "m0_1"), facts=facts)
        == "laws: a draw loses no more than its share"
    )


@pytest.mark.parametrize("key", ["city || COUNT(*)", "city || MAX(age)", "city || ROW_NUMBER() OVER ()"])
def test_a_key_tells_nothing_but_the_group(key: str) -> None:
    shown = f"SELECT {key} AS k0, COUNT(*) AS m0_0 FROM main.patient GROUP BY city"
    assert check(shown.replace(key, "city || 'x'"), 1, keys=("k0",)).moved == 1
    assert refused(shown, 1, keys=("k0",))


PAIRS = "SELECT k0, COUNT(*) AS m0_0 FROM (SELECT patient AS u, ward AS k0 FROM main.visit GROUP BY patient, ward) AS p GROUP BY k0"


def _listed(drawn: int | None, count: int = 3) -> Groups:
    return Groups("declared", count, drawn=drawn)


def test_drawn_groups_bound_who_has_one_row_in_each() -> None:
    line = check(PAIRS, 3, keys=("k0",), groups=_listed(3))
    assert (line.lemma, line.rows, line.moved) == ("plain", 3, 3)
    short = "laws: a draw loses no more than its share"
    assert refused(PAIRS, 2, keys=("k0",), groups=_listed(3)) == short
    # nobody says how many are drawn, as of groups that were found before: `count` does not
    unbounded = "lemmas: an owner's rows are bounded"
    assert refused(PAIRS, 3, keys=("k0",), groups=_listed(None)) == unbounded
    assert refused(PAIRS, 3, keys=("k0",), groups=_listed(None, 1)) == unbounded
    # several rows of an owner in a group; and groups that are merged, where a ward holds all pairs of its patients
    many = "SELECT ward AS k0, COUNT(*) AS m0_0 FROM main.visit GROUP BY ward"
    assert refused(many, 3, keys=("k0",), groups=_listed(3)) == unbounded
    merged = (
        "SELECT substr(k0, 1, 1) AS k0, SUM(m0_0) AS m0_0 FROM (SELECT k0, COUNT(*) AS m0_0 FROM (SELECT patient AS u, "
        "ward AS k0 FROM main.visit GROUP BY patient, ward) AS p GROUP BY k0) AS g GROUP BY substr(k0, 1, 1)"
    )
    assert refused(merged, 3, keys=("k0",), groups=_listed(3)) == unbounded
    # rows of nobody, and sums, by their reach
    free = replace(FACTS.tables["main.visit"], not_null=("no",))
    nobody = replace(FACTS, tables={**FACTS.tables, "main.visit": free})
    assert (
        refused(PAIRS, 3, keys=("k0",), groups=_listed(3), facts=nobody)
        == "lemmas: rows of nobody are left out"
    )
    sums = PAIRS.replace("COUNT(*)", "5 * COUNT(*)")
    assert check(sums, 15, keys=("k0",), groups=_listed(3)).moved == 15
    assert refused(sums, 14, keys=("k0",), groups=_listed(3)) == short


def test_drawn_groups_are_said_of_lists_alone() -> None:
    rule = "laws: how many groups are drawn is said of a declared list"
    assert refused(PAIRS, 3, keys=("k0",), groups=_listed(0)) == rule
    assert refused(PAIRS, 3, keys=("k0",), groups=_listed(-3)) == rule
    assert refused("SELECT COUNT(*) AS m0_0 FROM main.patient", 1, groups=Groups("one", drawn=1)) == rule
    assert refused(PAIRS, 3, keys=("k0",), groups=Groups("chosen", 9, 3, drawn=3)) == rule


def test_a_list_with_a_null_beside_what_is_found_is_true() -> None:
    """Of `1 IN (1, x)` nothing follows about x; of `x IN (1, 2)` that it is there."""
    visit = replace(FACTS.tables["main.visit"], not_null=("no",))
    nullable = Facts("duckdb", {**FACTS.tables, "main.visit": visit})
    there = "(patient IS NOT NULL)"
    for said in (there, "(patient IN (1, 2))", "(patient IN (1, no))"):
        assert check(BY_UNIT.replace(there, said), 6144, facts=nullable).moved == 6144
    for said in ("(1 IN (1, patient))", "(no IN (1, patient))", "((1 IN (2, patient)) IS NOT NULL)"):
        assert (
            refused(BY_UNIT.replace(there, said), 6144, facts=nullable)
            == "lemmas: rows of nobody are left out"
        )
