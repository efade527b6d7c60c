"""Rows that hold every wild cell, and statements that touch every form of SQL that is printed: to measure in several
places."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.plan.planner import Plan
from dpsql.tests.support.random_databases import PERSON, VISIT, Database

from ..laws.examples import HEAVY, person, visit
from ..laws.measured import Measured, World, fixed_intermediates, measure_release
from .both import spelled

__all__ = ["EVERY_CELL", "STATEMENTS", "all_measured"]


def _every_cell() -> Database:
    """Every cell of every column once, and units with many rows and groups beside."""
    visits = [
        visit(100 + row, **{name: cells[row % len(cells)] for name, cells in VISIT.cells.items()})
        for row in range(max(map(len, VISIT.cells.values())))
    ]
    for name, cells in VISIT.cells.items():
        visits += [
            visit(200 + row, **{name: cell}, city="a", n="1")
            for row, cell in enumerate(cells)
            if name not in ("city", "n")
        ]
    for number in range(40):
        cells = {
            name: of[(number * 7 + place) % len(of)] for place, (name, of) in enumerate(VISIT.cells.items())
        }
        visits += [visit(1, **cells), visit(2 + number % 3, **cells)]
    persons = [
        person(300 + row, **{name: cells[row % len(cells)] for name, cells in PERSON.cells.items()})
        for row in range(14)
    ]
    return Database((*HEAVY.persons, *persons), (*HEAVY.visits, *visits))  # fmt: skip


EVERY_CELL = _every_cell()

STATEMENTS = (
    "SELECT COUNT(*), SUM(n), AVG(x), VAR_POP(d) FROM visit",
    "SELECT city, COUNT(*), SUM(big), AVG(r) FROM visit GROUP BY city",
    "SELECT tag, COUNT(*), COUNT(DISTINCT n) FROM visit GROUP BY tag",
    "SELECT lower(tag), upper(city), COUNT(*) FROM visit GROUP BY 1, 2",
    "SELECT day, COUNT(*) FROM visit GROUP BY day",
    "SELECT to_char(day, 'YYYY-MM'), to_char(seen, 'FMDay HH24'), COUNT(*) FROM visit GROUP BY 1, 2",
    "SELECT to_char(any_seen, 'IYYY-IW'), SUM(extract(year FROM age(DATE '2024-02-29', day))), SUM(extract(epoch FROM seen)) FROM visit GROUP BY 1",
    "SELECT SUM(extract(day FROM seen - day)), COUNT(*) FILTER (WHERE age(seen, day) < INTERVAL '1 year 3 days'), COUNT(*) FILTER (WHERE seen - any_seen > INTERVAL '1 month') FROM visit",
    "SELECT date_bin('7 days', seen, DATE '2020-01-01'), AVG(extract(second FROM seen)) FROM visit GROUP BY 1",
    "SELECT date_trunc('hour', seen)::time, COUNT(*) FROM visit WHERE any_seen::time IS NULL OR any_seen::time < '18:30' GROUP BY 1",
    "SELECT date_bin('25 minutes', any_seen, DATE '2020-01-01')::time, COUNT(DISTINCT seen::time) FROM visit WHERE day::timestamp::time = '00:00' GROUP BY 1",
    "SELECT date_trunc('month', seen, 'Europe/Zurich'), COUNT(*) FROM visit GROUP BY 1",
    "SELECT date_trunc('quarter', seen::timestamptz AT TIME ZONE 'America/Havana'), COUNT(*) FROM visit GROUP BY 1",
    "SELECT SUM(extract(hour FROM seen AT TIME ZONE 'Pacific/Apia')) FROM visit WHERE day AT TIME ZONE 'Asia/Amman' < seen",
    "SELECT floor(x / 0.3) * 0.3, width_bucket(d, 0, 5, 4), COUNT(*) FROM visit GROUP BY 1, 2",
    "SELECT width_bucket(x, 4, -1, 7), trunc(r * 3) / 3, SUM(width_bucket(vast, -1, 1e9, 3)) FROM visit GROUP BY 1, 2",
    "SELECT any_day, COUNT(*) FROM visit GROUP BY any_day",
    "SELECT date_trunc('month', tag::date), COUNT(*) FROM visit WHERE day::text::date = day OR to_date(tag, 'DD.MM.YYYY') > day GROUP BY 1",
    "SELECT any_seen, COUNT(*) FROM visit GROUP BY any_seen",
    "SELECT date_trunc('month', any_seen), extract(dow FROM any_day), COUNT(*) FROM visit GROUP BY 1, 2",
    "SELECT huge, COUNT(*) FROM visit GROUP BY huge",
    "SELECT fine, flag, level, COUNT(*) FROM visit GROUP BY fine, flag, level",
    "SELECT SUM(x * x), SUM(sqrt(abs(x))), SUM(exp(least(x, 3))) FROM visit",
    "SELECT COUNT(*) FROM visit WHERE x * x > 0.25 AND vast / 3 < x / 7 OR r + x > 2 OR wild > x",
    "SELECT COUNT(*) FROM visit WHERE tag LIKE '%t%' OR tag || '-' || city = 't-a' OR position('t' IN tag) = 1",
    "SELECT SUM(n / 3), SUM(n % 3), SUM(round(x)), SUM(trunc(d)), SUM(CAST(x AS INTEGER)) FROM visit",
    "SELECT COUNT(*) FROM visit WHERE day + INTERVAL '1 month' > DATE '2020-02-29' OR any_day < any_seen",
    "SELECT city, COUNT(*) FILTER (WHERE flag), COUNT(*) FROM visit GROUP BY ROLLUP (city, tag)",
    "SELECT COUNT(*) FROM visit WHERE n > (SELECT AVG(n) FROM visit)",
    "SELECT COUNT(*) FROM visit v JOIN (SELECT tag, COUNT(*) AS c FROM visit GROUP BY tag) t ON t.tag = v.tag",
    "SELECT COUNT(*) FROM (SELECT person_id, n, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY x, day) AS k FROM visit) t WHERE k = 2",
    "SELECT c, COUNT(*) FROM (SELECT person_id, COUNT(*) AS c FROM visit GROUP BY person_id) t GROUP BY c",
    "SELECT team, COUNT(*), AVG(height), SUM(score) FROM person GROUP BY team",
    "SELECT nick, born, COUNT(*) FROM person GROUP BY nick, born",
)


def all_measured(world: World, plans: Sequence[Plan] = ()) -> list[Measured]:
    """Return the exact integers of all statements; `plans`: of each, where it is known."""
    found = []
    for plan in plans or map(world.plan, STATEMENTS):
        intermediates = fixed_intermediates(plan)
        with world.backend.snapshot() as snapshot:
            found.append(
                [spelled(measure_release(release, snapshot, intermediates)) for release in plan.releases]
            )
    return found
