"""Every place of a statement over private rows that an analyst's text reaches, and texts that try to leave it."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.tests.plan.planned import planned

__all__ = ["ATTACKS", "PLACES", "queries", "statements"]

ATTACKS = (
    "\\", "\\\\", "a\\", "x\\' OR 1=1 --", "' OR 1=1 --", "'; DROP TABLE visit; --", "${env:HOME}", "${system:user.name}",
    "$1", ":p1", '"', "`", "/* x", "\\u0027", "\n", "x' UNION ALL SELECT * FROM text.`/etc/passwd` --",
    "', java_method('java.lang.System', 'exit', 1), '",
)  # fmt: skip

PLACES = (
    "SELECT COUNT(*) FROM visit WHERE note = {}",
    "SELECT COUNT(*) FROM visit WHERE note <> {} OR note IS NULL",
    "SELECT COUNT(*) FROM visit WHERE note < {}",
    "SELECT COUNT(*) FROM visit WHERE note IN ({}, 'b')",
    "SELECT COUNT(*) FROM visit WHERE note LIKE {}",
    "SELECT COUNT(*) FROM visit WHERE note LIKE {} ESCAPE '!'",
    "SELECT COUNT(*) FROM visit WHERE note ILIKE {}",
    "SELECT COUNT(*) FROM visit WHERE position({} IN note) > 1",
    "SELECT COUNT(*) FROM visit WHERE COALESCE(note, {}) = 'a'",
    "SELECT COUNT(*) FROM visit WHERE concat(note, {}) = 'a'",
    "SELECT COUNT(*) FROM visit WHERE note || {} LIKE 'a%'",
    "SELECT COUNT(*) FROM visit WHERE lower(note) = lower({})",
    "SELECT COUNT(*) FROM visit WHERE NULLIF(note, {}) IS NULL",
    "SELECT COUNT(*) FROM visit WHERE GREATEST(note, {}) = 'z'",
    "SELECT COUNT(*) FROM visit WHERE trim(note) = {} AND length(note) < 9",
    "SELECT COUNT(*) FILTER (WHERE note = {}) FROM visit",
    "SELECT SUM(CASE WHEN note = {} THEN days ELSE 0 END) FROM visit",
    "SELECT COUNT(DISTINCT COALESCE(note, {})) FROM visit",
    "SELECT CASE WHEN urgent THEN {} ELSE 'x' END AS k, COUNT(*) FROM visit GROUP BY 1",
    "SELECT note, COUNT(*) FROM visit WHERE note IN ({}, 'b') GROUP BY note",
    "SELECT COALESCE(note, {}) AS k, COUNT(*) FROM visit GROUP BY 1",
    "SELECT AVG(days) FROM visit WHERE note = {}",
    "SELECT MEDIAN(days) FROM visit WHERE note = {}",
    "SELECT COUNT(*) FROM person p JOIN visit v ON v.person_id = p.id AND v.note = {}",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.person_id = p.id AND v.note = {})",
    "SELECT COUNT(*) FROM (SELECT person_id, MAX(note) AS m FROM visit GROUP BY person_id) AS t WHERE m = {}",
    "SELECT COUNT(*) FROM (SELECT person_id, MAX(COALESCE(note, {})) AS m FROM visit GROUP BY person_id) AS t WHERE m > 'a'",
    "SELECT COUNT(*) FROM visit v JOIN ward w ON w.name = v.ward WHERE w.name <> {}",
    "SELECT COUNT(*) FROM person WHERE to_char(born, {}) = '1'",
    "SELECT COUNT(*) FROM person WHERE to_char(born, 'YYYY') = {}",
    "SELECT x.k, COUNT(*) FROM (SELECT CASE WHEN note = {} THEN 'a' ELSE 'b' END AS k FROM visit) AS x GROUP BY x.k",
)


def queries(place: str, attack: str, engine: str) -> Iterator[BackendQuery]:
    """Yield the queries of a statement with a text in a place; none of one that is refused."""
    quoted = "'" + attack.replace("'", "''") + "'"
    try:
        plan = planned(place.format(quoted), engine=engine)
        for release in plan.releases:
            yield from release.queries(tuple(range(len(release.measurements))))
    except Refusal:
        return


def statements(place: str, attack: str, engine: str) -> Iterator[str]:
    """Yield their SQL."""
    yield from (query.sql for query in queries(place, attack, engine))
