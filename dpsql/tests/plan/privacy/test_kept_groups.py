"""Which terms over its keys hold of all groups of a release that a statement uses, for each of its uses."""

from __future__ import annotations

import pytest

from dpsql.plan.privacy.analyze import analyze
from dpsql.plan.privacy.contradiction import kept_groups
from dpsql.relation.expressions import fields_of
from dpsql.tests.plan.planned import CATALOG, bound

WARDS = "SELECT ward, COUNT(*) AS n FROM visit GROUP BY ward"


def kept(sql: str) -> list[list[int]]:
    """Return of each use of the one release how many columns each of its terms reads, over the rows' columns."""
    analyzed = analyze(bound(sql), CATALOG)
    found = kept_groups((*analyzed.intermediates, analyzed.root))
    (uses,) = found.values()
    return sorted([len(fields_of(term)) for term in terms] for terms in uses)


@pytest.mark.parametrize(
    ("sql", "terms"),
    [
        (f"{WARDS} HAVING ward <> 'a'", [[1]]),
        (f"SELECT * FROM ({WARDS}) AS t WHERE ward <> 'a' AND ward > 'b'", [[1, 1]]),
        (f"SELECT x FROM (SELECT ward AS x FROM ({WARDS}) AS t ORDER BY n) AS u WHERE x <> 'a'", [[1]]),
        (f"SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM ({WARDS}) AS t) AS u WHERE ward <> 'a'", [[1]]),
        (f"SELECT * FROM ({WARDS}) AS t WHERE n > 3", [[]]),  # a noisy number
        (f"SELECT * FROM ({WARDS}) AS t WHERE ward <> 'a' OR n > 3", [[]]),
        (f"SELECT * FROM (SELECT upper(ward) AS u FROM ({WARDS}) AS t) AS v WHERE u <> 'A'", [[]]),
        (f"SELECT * FROM ({WARDS} ORDER BY n LIMIT 1) AS t WHERE ward <> 'a'", [[]]),
        (f"SELECT * FROM (SELECT ward, SUM(n) OVER () AS s FROM ({WARDS}) AS t) AS u WHERE ward <> 'a'", [[]]),
        (f"WITH t AS ({WARDS}) SELECT ward FROM t WHERE ward <> 'a' UNION ALL SELECT ward FROM t", [[], [1]]),
        (f"WITH t AS ({WARDS}) SELECT ward, (SELECT MAX(n) FROM t) FROM t WHERE ward <> 'a'", [[], [1]]),
    ],
)  # fmt: skip
def test_terms_of_each_use(sql: str, terms: list[list[int]]) -> None:
    assert kept(sql) == terms
