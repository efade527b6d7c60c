"""The commonest groupings of a product's tables: exactly the groups that its declarations let be, planned at once.

A year of events, orders and sign-ups, both ends included: 367 days, 13 months. The counts are by hand: of 13 months those
not before a person's first are 13 · 14 / 2, of three in order 13 · 14 · 15 / 6.
"""

from __future__ import annotations

import time
from fractions import Fraction
from types import MappingProxyType

import pytest

from dpsql.plan.planner import PrivacyParameters, plan
from dpsql.plan.privacy import value_set
from dpsql.plan.release_plan import ReleasePlan
from dpsql.relation.calendar import DAY, parse_timestamp
from dpsql.relation.catalog import Catalog, Column, Enforced, Table, Unit
from dpsql.relation.types import DATE, INTEGER, TEXT, TIMESTAMP
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.tests.plan import planned as clinic

NOW = parse_timestamp("2025-01-02") or 0
_YEAR = tuple(Fraction(parse_timestamp(day) or 0) for day in ("2024-01-01", "2025-01-01"))
_HELD = Enforced(not_null=True)


def _moment(name: str) -> Column:
    return Column(name, TIMESTAMP, _HELD, bounds=(_YEAR[0], _YEAR[1]))


def _between(low: int, high: int) -> tuple[Fraction, Fraction]:
    return Fraction(low), Fraction(high)


def _of_person(name: str, *columns: Column) -> Table:
    unit = Unit(("user_id",), (INTEGER,), ("users", ("id",)), is_not_null=True, max_rows=300, max_rows_per_group=300,
                max_groups=300)  # fmt: skip
    return Table(name, ("main", name), (Column("user_id", INTEGER, _HELD), *columns), unit)


_USERS = Table(
    "users", ("main", "users"),
    (Column("id", INTEGER, _HELD), Column("plan", TEXT, _HELD, values=("free", "pro", "team")), _moment("signed_up"),
     Column("sat", INTEGER, _HELD, bounds=_between(1, 5)), Column("code", TEXT, values=(*"abcdefgh", None)),
     Column("age", INTEGER, _HELD, bounds=_between(18, 90)), Column("no", INTEGER, Enforced(not_null=True, lo=Fraction(1))),
     Column("day", DATE, _HELD, bounds=(_YEAR[0] / DAY, _YEAR[1] / DAY))),
    Unit(("id",), (INTEGER,), is_unique=True, is_not_null=True, max_rows=1, max_rows_per_group=1, max_groups=1), keys=(("id",),),
)  # fmt: skip
_DEVICES = Column("device", TEXT, _HELD, values=("ios", "android", "web"))
_TABLES = (_USERS, _of_person("events", _moment("ts"), _DEVICES), _of_person("orders", _moment("ordered_at")))
_CATALOG = Catalog(
    MappingProxyType(
        {
            table.name: Table(
                table.name,
                table.path,
                table.columns,
                table.unit,
                keys=table.keys,
                grounds=((table.name, "0"),),
                column_grounds=tuple((f"{table.name}.{column.name}", "0") for column in table.columns),
            )
            for table in _TABLES
        }
    ),
    "main",
)
_BOTH = "events e JOIN users u ON e.user_id = u.id WHERE e.ts >= u.signed_up"
_SOON = f"{_BOTH} AND e.ts < u.signed_up + interval '14 days'"
_MONTHS = (
    "(extract(year FROM e.ts) - extract(year FROM u.signed_up)) * 12 + extract(month FROM e.ts) "
    "- extract(month FROM u.signed_up)"
)
_SECONDS = "(extract(epoch FROM e.ts) - extract(epoch FROM u.signed_up))"


def planned(keys: str, source: str, by: str = "") -> ReleasePlan:
    names = ", ".join(str(place + 1) for place in range(len(keys.split(" & "))))
    query = parse_statement(
        f"SELECT {keys.replace(' & ', ', ')}, count(*) FROM {source} GROUP BY {by or names}"
    )
    assert isinstance(query, AdmittedQuery)
    relation = bind(query, BindingContext(_CATALOG, query.text, (), NOW, {}))
    privacy = PrivacyParameters(Fraction(1), Fraction(1, 10**6), 1, False)
    return plan(relation, _CATALOG, privacy).releases[0]


@pytest.mark.parametrize(
    ("keys", "source", "count"),
    [
        ("plan & CASE plan WHEN 'free' THEN 'no' ELSE 'yes' END", "users", 3),
        ("plan & upper(plan)", "users", 3),
        ("id % 3", "users", 5),
        ("no % 3", "users", 3),
        ("mod(no - 2, 3)", "users", 4),
        ("id % 3", "users WHERE id >= 0", 3),
        ("sat & CASE WHEN sat <= 2 THEN 'low' ELSE 'high' END", "users", 5),
        ("code & coalesce(code, 'none')", "users", 9),
        ("to_char(ts, 'Mon') & extract(month FROM ts)", "events", 12),
        ("to_char(ts, 'Dy') & extract(dow FROM ts)", "events", 7),
        ("CASE WHEN extract(hour FROM ts) < 12 THEN 'am' ELSE 'pm' END & extract(hour FROM ts)", "events", 24),
        ("extract(year FROM ts) & extract(month FROM ts)", "events", 13),
        ("extract(year FROM ordered_at) & extract(month FROM ordered_at)", "orders WHERE ordered_at < '2025-01-01'", 12),
        ("date_trunc('month', ts) & to_char(ts, 'Mon')", "events", 13),
        ("date_trunc('week', ts) & to_char(ts, 'IYYY-IW')", "events", 53),
        ("date_trunc('week', ts) & to_char(ts, 'YYYY-MM')", "events", 53 + 10),  # ten months begin within a week
        ("ts::date & date_trunc('month', ts)", "events", 367),
        ("ts::date & date_trunc('week', ts) & extract(dow FROM ts)", "events", 367),
        ("date_trunc('quarter', ts) & date_trunc('month', ts)", "events", 13),
        ("floor(age / 10) * 10", "users WHERE age BETWEEN 20 AND 49", 3),
        (_MONTHS, _BOTH, 13),
        (f"date_trunc('month', u.signed_up) & {_MONTHS}", _BOTH, 91),
        (f"floor({_SECONDS} / 604800)", _BOTH, 53),
        (f"floor({_SECONDS} / 2592000)", _BOTH, 13),
        (f"floor({_SECONDS} / 86400)", _SOON, 14),
        ("date_trunc('hour', day)", "users", 367),
        ("day::text", "users", 367),
        ("n", "(SELECT user_id, count(DISTINCT device) AS n FROM events GROUP BY user_id) AS t", 3),
        ("n", "(SELECT user_id, count(DISTINCT date_trunc('month', ts)) AS n FROM events GROUP BY user_id) AS t", 13),
        ("e.ts::date - u.signed_up::date", _SOON, 15),
        ("date_trunc('month', u.signed_up) & date_trunc('month', e.ts)", _SOON, 13 + 12),
        ("date_trunc('month', u.signed_up) & date_trunc('month', e.ts) & date_trunc('month', o.ordered_at)",
         "events e JOIN orders o ON o.user_id = e.user_id JOIN users u ON e.user_id = u.id WHERE e.ts >= u.signed_up "
         "AND o.ordered_at >= e.ts", 455),
    ],
)  # fmt: skip
def test_the_groups_are_those_that_can_exist(keys: str, source: str, count: int) -> None:
    planned(keys, source)
    value_set._kept.clear()
    begun = time.thread_time()
    groups = planned(keys, source).groups
    took = time.thread_time() - begun
    assert groups is not None
    assert len(groups) == len(set(groups)) == count
    assert took < 0.25  # 25 ms where nothing else runs


def test_a_rollup_adds_up_the_groups_that_exist() -> None:
    (release,) = [planned("date_trunc('quarter', ts) & date_trunc('month', ts)", "events", "ROLLUP (1, 2)")]
    assert len(release.groups or ()) == 13


def test_a_quotient_that_a_condition_takes_is_looked_at_as_a_double() -> None:
    """Its type has no grid, though its values lie on one."""
    days = "CASE WHEN height = 0 THEN extract(epoch FROM born) / 86400 ELSE age END"
    born = "born BETWEEN DATE '1990-01-01' AND DATE '2000-01-01'"
    found = clinic.planned(
        f"SELECT floor(height * 2) AS k, COUNT(*) FROM person WHERE {born} AND {days} > 1 GROUP BY 1"
    )
    assert {key for (key,) in found.releases[0].groups or ()} == {0, 1, 2, 3, 4, None}
