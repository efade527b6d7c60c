"""Choices by rank and by weight: the steps above the weights, and the weights, each with faults in one place."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.tests.verify.clinic import check
from dpsql.tests.verify.test_lemmas import refused
from dpsql.verify.certificate import Law, Part, Stretch

COST = "CASE WHEN cost BETWEEN 0 AND 1000 THEN cost WHEN cost < 0 THEN 0 WHEN cost > 1000 THEN 1000 END"
WEIGHTS = (
    f"WITH a AS (SELECT patient AS u, CAST({COST} AS BIGINT) AS v FROM main.visit WHERE cost IS NOT NULL), "
    "heavy AS (SELECT u AS hu, COUNT(*) AS t FROM a GROUP BY u HAVING COUNT(*) > 6), "
    "r AS (SELECT v, COALESCE((6144 // t), 1024) AS w FROM a LEFT JOIN heavy ON u = hu WHERE t IS NULL OR t <= 6144), "
)
NEAR = (
    "CAST(2 AS BIGINT) * (less + w) - CAST(1 AS BIGINT) * n > -9000 AND "
    "CAST(2 AS BIGINT) * less - CAST(1 AS BIGINT) * n < 9000"
)
RANK = WEIGHTS + (
    "g AS (SELECT (v >> 4) AS cell, CAST(SUM(w) AS BIGINT) AS w FROM r GROUP BY cell), "
    "c AS (SELECT cell, w, CAST(SUM(w) OVER (ORDER BY cell ROWS UNBOUNDED PRECEDING) AS BIGINT) - w AS less, "
    "CAST(SUM(w) OVER () AS BIGINT) AS n FROM g WHERE cell IS NOT NULL), "
    f"s AS (SELECT cell, less, n FROM c WHERE {NEAR}), "
    "h AS (SELECT s.cell, r.v, CAST(SUM(r.w) AS BIGINT) AS w, MIN(s.less) AS base, MIN(s.n) AS n FROM r JOIN s "
    "ON (r.v >> 4) = s.cell GROUP BY s.cell, r.v), "
    "e AS (SELECT v, base + CAST(SUM(w) OVER (PARTITION BY cell ORDER BY v ROWS UNBOUNDED PRECEDING) AS BIGINT) - w AS less, "
    f"w, n FROM h), d AS (SELECT v, less, w, n FROM e WHERE {NEAR}) SELECT v, less, w, n FROM d"
)
MODE = (
    "WITH a AS (SELECT patient AS u, ward AS x FROM main.visit WHERE ward IN ('a', 'b')), "
    "heavy AS (SELECT u AS hu, COUNT(*) AS t FROM a GROUP BY u HAVING COUNT(*) > 6), "
    "r AS (SELECT x, COALESCE((6144 // t), 1024) AS w FROM a LEFT JOIN heavy ON u = hu WHERE t IS NULL OR t <= 6144), "
    "g AS (SELECT x, CAST(SUM(w) AS BIGINT) AS w FROM r GROUP BY x) SELECT CAST((CASE x WHEN 'a' THEN 0 WHEN 'b' THEN 1 END) "
    "AS BIGINT) AS v, CAST(0 AS BIGINT) AS less, w, CAST(0 AS BIGINT) AS n FROM g"
)
WINDOW = ("v", "less", "w", "n")


def rank(sql: str, rate: Fraction = Fraction(1, 12288)) -> dict[str, object]:
    """A median's measurement: 2·rate·6144 = 1."""
    return {
        "law": Law("rank", rates=(rate,)),
        "fractions": (Fraction(1, 2),),
        "offsets": (0,),
        "caps": (9000,),
        "candidates": 1001,
    }


def test_a_median_weighs_an_owner_by_its_bound() -> None:
    line = check(RANK, 6144, WINDOW, **rank(RANK))
    assert (line.lemma, line.rows, line.moved, line.loss) == ("weights", 6, 6144, 1)
    assert "loses no more" in refused(RANK, 6144, WINDOW, **rank(RANK, Fraction(1, 12287)))


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("6144 // t", "12288 // t", 1),
        ("1024)", "2048)", 1),
        ("t IS NULL OR t <= 6144", "t IS NULL OR t <= 12288", 1),
        (" WHERE t IS NULL OR t <= 6144", "", 1),
        ("COUNT(*) > 6", "COUNT(*) > 7", 1),
        ("FROM a GROUP BY u", "FROM a WHERE v > 3 GROUP BY u", 1),
        ("ON u = hu", "ON u < hu", 1),
        ("GROUP BY u HAVING", "GROUP BY u, v HAVING", 1),
        ("SUM(w) AS BIGINT) AS w FROM r", "SUM(1e0 * w) AS BIGINT) AS w FROM r", 1),
        ("SUM(w) OVER (ORDER BY", "SUM(1e0 * w) OVER (ORDER BY", 1),
        ("SUM(r.w)", "SUM(2 * r.w)", 1),
        ("ORDER BY cell ROWS UNBOUNDED PRECEDING", "ORDER BY cell", 1),
        ("ORDER BY cell", "ORDER BY w", 1),
        ("- w AS less", "AS less", 1),
        ("SUM(w) OVER ()", "SUM(w) OVER (ORDER BY cell)", 1),
        ("PARTITION BY cell ORDER BY v", "ORDER BY v", 1),
        ("MIN(s.less)", "MAX(r.v)", 1),
        ("> -9000", "> -8999", 1),
        ("(r.v >> 4) = s.cell", "(r.v >> 5) = s.cell", 1),
        ("(v >> 4) AS cell", "(v >> 5) AS cell", 1),
        ("cost > 1000 THEN 1000", "cost > 1000 THEN 1001", 1),
        ("SELECT v, less, w, n FROM d", "SELECT v, less, n AS w, n FROM d", 1),
        ("LEFT JOIN heavy", "JOIN heavy", 1),
    ],
)
def test_each_step_of_a_median_is_the_template_s(old: str, new: str, count: int) -> None:
    assert old in RANK
    refused(RANK.replace(old, new, count), 6144, WINDOW, **rank(RANK))


def test_a_mode_weighs_an_owner_by_its_bound() -> None:
    law = Law("flip", rates=(Fraction(1, 6144),))
    assert check(MODE, 6144, WINDOW, law=law, candidates=2).loss == 1
    for old, new in (
        ("6144 // t", "6145 // t"),
        ("WHEN 'b' THEN 1", "WHEN 'b' THEN 0"),
        ("WHEN 'b' THEN 1", "WHEN 'b' THEN 2"),
        ("CAST(0 AS BIGINT) AS less", "w AS less"),
        ("w, CAST(0", "2 * w AS w, CAST(0"),
        ("GROUP BY x)", "GROUP BY x HAVING COUNT(*) > 2)"),
    ):
        assert old in MODE
        refused(MODE.replace(old, new), 6144, WINDOW, law=law, candidates=2)
    refused(MODE, 6144, WINDOW, law=Law("flip", rates=(Fraction(1, 6143),)), candidates=2)


def test_a_mode_writes_keys_of_keys_alone() -> None:
    law = Law("flip", rates=(Fraction(1, 6144),))
    by_day = (
        MODE.replace("ward AS x", "ward AS x, no AS k0")
        .replace("SELECT x, COALESCE", "SELECT k0, x, COALESCE")
        .replace(
            "SELECT x, CAST(SUM(w) AS BIGINT) AS w FROM r GROUP BY x)",
            "SELECT k0, x, CAST(SUM(w) AS BIGINT) AS w FROM r GROUP BY k0, x)",
        )
        .replace("SELECT CAST((CASE", "SELECT CAST(k0 AS VARCHAR) AS k0, CAST((CASE")
    )
    assert check(by_day, 6144, WINDOW, keys=("k0",), law=law, candidates=2).loss == 1
    for other in ("CAST(w AS VARCHAR)", "CAST(x AS VARCHAR)", "k0 || x"):
        refused(
            by_day.replace("CAST(k0 AS VARCHAR)", other), 6144, WINDOW, keys=("k0",), law=law, candidates=2
        )


def test_values_are_chosen_by_laws_of_choices() -> None:
    refused(RANK, 6144, WINDOW)  # Laplace noise on them is no law
    refused("SELECT COUNT(*) AS m0_0 FROM main.patient", 1, law=Law("rank", rates=(Fraction(1, 2),)))


PART = RANK.replace("r AS (SELECT v, COALESCE", "b AS (SELECT v, COALESCE").replace(
    "t <= 6144), g AS", "t <= 6144), r AS (SELECT * FROM b WHERE v BETWEEN 16 AND 47), g AS"
)


NEAR_PART = PART.replace("n > -9000", "n > -700").replace("n < 9000", "n < 500")
OF_PART = Part(16, 47, (Stretch(Fraction(1, 2), -100, 600),))


def test_a_part_of_the_values_is_read_near_its_own_ranks() -> None:
    """The second query of a choice: fewer rows of those that t counts, and the stretches that were asked for."""
    for text in (NEAR_PART, NEAR_PART.replace("v BETWEEN 16 AND 47", "v BETWEEN 16 AND 47 AND (v <> 20)")):
        line = check(text, 6144, WINDOW, part=OF_PART, **rank(text))
        assert (line.lemma, line.rows, line.moved) == ("weights", 6, 6144)


@pytest.mark.parametrize(
    "part",
    [
        None,
        Part(15, 47, OF_PART.stretches),
        Part(16, 48, OF_PART.stretches),
        Part(16, 47, (Stretch(Fraction(1, 2), -100, 601),)),
        Part(16, 47, (Stretch(Fraction(1, 2), -101, 600),)),
        Part(16, 47, (Stretch(Fraction(1, 3), -100, 600),)),
        Part(16, 47, OF_PART.stretches * 2),
    ],
)
def test_a_part_is_the_one_that_was_asked_for(part: Part | None) -> None:
    refused(NEAR_PART, 6144, WINDOW, part=part, **rank(NEAR_PART))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v BETWEEN 16 AND 47", "v > 16"),
        ("n > -700", "n > 700"),
        ("* less -", "* w -"),
        ("6144 // t", "12288 // t"),
        ("COUNT(*) > 6", "COUNT(*) > 7"),
        ("FROM a GROUP BY u", "FROM a WHERE v BETWEEN 16 AND 47 GROUP BY u"),
        ("v BETWEEN 16 AND 47", "v BETWEEN 16 AND 47 AND v < (SELECT COUNT(*) FROM main.patient)"),
        (") SELECT v, less, w, n FROM d", ") SELECT v, less, w, n FROM e"),
    ],
)
def test_a_part_with_a_fault_is_refused(old: str, new: str) -> None:
    assert old in NEAR_PART
    text = NEAR_PART.replace(old, new)
    refused(text, 6144, WINDOW, part=OF_PART, **rank(text))
