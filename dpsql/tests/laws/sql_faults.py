"""Faults of printed SQL as data: what is replaced by what in the query that a statement becomes, and the law that must see it.

Each is a query that does not hold what the plan claims of it, whichever code would print it: what judges printed SQL by
itself has to refuse them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpsql.tests.support import random_joins
from dpsql.tests.support.random_databases import Database
from dpsql.tests.support.random_joins import row

from .examples import HEAVY, NOBODY, visit

__all__ = ["DOUBLES", "OF_JOINS", "OF_VISITS", "ORDER", "SqlFault"]


@dataclass(frozen=True)
class SqlFault:
    """Regular expressions and what is put in place of what they match; the statement whose query has all of it.

    On `database` the query without the fault holds law L1, and with it does not.
    """

    name: str
    pieces: tuple[tuple[str, str], ...]
    sql: str
    database: Database | random_joins.Database = HEAVY

    def plant(self, query: str) -> str:
        """Return a query with the fault in it, or the query itself where nothing is matched."""
        for old, new in self.pieces:
            query = re.sub(old, new, query, flags=re.DOTALL)
        return query


TAGS = Database((), tuple(visit(1, city=city, tag=str(i)) for city in "abc" for i in range(3)))
_NO_ROWS_BOUND = ((r"HAVING COUNT\(\*\) > 6", "HAVING COUNT(*) > 1000000"),)
_ODD = Database((), tuple(visit(1, city="ab"[i % 2], n="7") for i in range(31)))
"""One person whose rows are no part of R·U."""
_NO_RANK = ((r"(rn|\(\*\)) (>|<=) \d+", r"\1 \2 1000000"),)
_THREE = "MEDIAN(n), PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY n), PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY n DESC)"

OF_VISITS = (
    SqlFault(
        "a count of people in every group", _NO_RANK,
        "SELECT city, COUNT(DISTINCT person_id) FROM visit GROUP BY city", TAGS,
    ),
    SqlFault(
        "a count of values in every group", _NO_RANK,
        "SELECT city, COUNT(DISTINCT tag) FROM visit GROUP BY city", TAGS,
    ),
    SqlFault(
        "rows of some groups in t alone",
        ((r"(\(\"person_id\" IS NOT NULL\))\) AS r GROUP BY u", r"\1 AND city = 'a') AS r GROUP BY u"),),
        "SELECT city, COUNT(*) FROM visit GROUP BY city",
    ),
    SqlFault("all rows of a person", _NO_ROWS_BOUND, "SELECT city, COUNT(*) FROM visit GROUP BY city"),
    SqlFault(
        "weights that are rounded up",
        ((r"\((\d+) // (GREATEST\(COUNT\(\*\), 6\))\)", r"((\1 + \2 - 1) // \2)"),),
        "SELECT city, COUNT(*) FROM visit GROUP BY city", _ODD,
    ),
    SqlFault("weights beside all rows", ((r" - \d+ AS w", " AS w"),), "SELECT city, COUNT(*) FROM visit GROUP BY city", _ODD),
    SqlFault(
        "a part of the weight of a row is never taken off", ((r" - 1048576 AS w", " - 1048575 AS w"),),
        "SELECT city, SUM(n) FROM visit GROUP BY city", _ODD,
    ),
    SqlFault(
        "people above the bound twice", ((r"(CROSS JOIN heavy)", r"\1 CROSS JOIN (VALUES (1), (2)) AS twice (x)"),),
        "SELECT city, COUNT(*) FROM visit GROUP BY city", _ODD,
    ),
    SqlFault("all rows of a person in a median", _NO_ROWS_BOUND, "SELECT MEDIAN(n) FROM visit"),
    SqlFault("all rows of a person in several ranks", _NO_ROWS_BOUND, f"SELECT {_THREE} FROM visit"),
    SqlFault("all rows of a person in a mode", _NO_ROWS_BOUND, "SELECT MODE() WITHIN GROUP (ORDER BY city) AS m FROM visit"),
    SqlFault(
        "all rows of a person without groups", _NO_ROWS_BOUND,
        "SELECT COUNT(*) FROM visit",
    ),
    SqlFault(
        "a person's rows counted in each group by itself",
        (
            (
                r"SELECT u AS hu, COUNT\(\*\) AS t FROM a GROUP BY u",
                "SELECT u AS hu, k0 AS hk, COUNT(*) AS t FROM a GROUP BY u, k0",
            ),
            ("ON u = hu", "ON u = hu AND k0 IS NOT DISTINCT FROM hk"),
        ),
        "SELECT city, MEDIAN(n) FROM visit GROUP BY city",
    ),
    SqlFault(
        "fewer rows counted than are summed",
        ((r'\A(.*?)"main"\."visit"', r"\1(SELECT * FROM main.visit WHERE city <> 'a')"),),
        "SELECT city, COUNT(*) FROM visit GROUP BY city",
    ),
    SqlFault("a threshold on rows", ((r"FROM kept GROUP BY k0\)", "FROM (SELECT tag AS k0 FROM main.visit) AS q GROUP BY k0)"),), "SELECT tag, COUNT(*) FROM visit GROUP BY tag"),
    SqlFault("NULL for the sum of nothing", ((r"COALESCE\((SUM\()", r"(\1"), (", 0\\)", ")")), "SELECT SUM(x) FROM visit", NOBODY),
)  # fmt: skip
"""Over `dpsql/tests/support/random_databases.py`."""

ORDER = SqlFault(
    "groups numbered without a total order",
    ((r"(PARTITION BY u) ORDER BY md5\(.*?\) AS rn", r"\1 ORDER BY length(CAST($1 AS VARCHAR))) AS rn"),),
    "SELECT city, COUNT(DISTINCT person_id) FROM visit GROUP BY city",
)
"""Law L3: other integers for another physical order, where there are many equals."""
DOUBLES = SqlFault(
    "sums of doubles", ((r"SUM\((\w+|CASE)", r"SUM(1e0 * \1"),), "SELECT SUM(big) FROM visit",
    Database((), tuple(visit(unit, big=str(2**60 - unit)) for unit in range(64))),
)  # fmt: skip
"""Another integer than the sum."""

_MANY = random_joins.Database(
    {
        **dict.fromkeys(("account", "booking", "profile"), ()),
        "person": (row("person", 1, age="30", team="red", home="a"),),
        "note": tuple(row("note", 1, ref=str(i), n="7", city="abc"[i % 3]) for i in range(12)),
    }
)
_JOINED = "SELECT a.city, COUNT(*) FROM note a JOIN person p ON p.id = a.person_id GROUP BY a.city"

OF_JOINS = tuple(
    SqlFault(
        name, ((r"\(SELECT r\.u AS u FROM r\)", f"(SELECT r.u AS u FROM r WHERE {which})"),), _JOINED, _MANY
    )
    for name, which in (
        ("joined rows counted in other groups alone", "k0 <> 'a'"),
        ("joined rows counted without a group alone", "k0 IS NULL"),
    )
)
"""Over `dpsql/tests/support/random_joins.py`, whose first person goes."""
