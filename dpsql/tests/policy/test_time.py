"""`[privacy.time]` and what tables say of their time: what is read, and what is refused, each by its place."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import Policy, parse_policy
from dpsql.policy.model import Period, Time

SHOP = """
database = "duckdb:shop.db"
[privacy]
epsilon = 10
{privacy}
[privacy.time]
period = "month"
since = 2019-01-01
{time}
[tables.users]
unit = "id"
[tables.orders]
unit = {{ column = "user_id", references = "users.id" }}
max_rows = 20
{orders}
[tables.items]
unit = {{ column = "order_id", references = "orders.id" }}
max_rows = 60
{items}
"""
TIMED = {"orders": 'time = "ordered_at"', "items": 'time = "orders.ordered_at"'}


def shop(**parts: str) -> Policy:
    """Return a shop's policy with lines put into its sections."""
    lines = {"privacy": "", "time": "", **TIMED, **parts}
    return parse_policy(SHOP.format(**lines), Path("shop.toml"))


def test_what_is_left_out_is_utc_and_three_days() -> None:
    assert shop().privacy.time == Time(Period.MONTH, date(2019, 1, 1), "UTC", timedelta(days=3))


def test_caps_over_several_periods_are_read() -> None:
    time = shop(time='windows = { "12 months" = 60, "2 months" = 20.5 }\nperson = 200').privacy.time
    assert time is not None
    assert (time.windows, time.person) == (((2, Fraction("20.5")), (12, Fraction(60))), 200)


def test_what_is_written_is_read() -> None:
    policy = shop(
        time='zone = "Europe/Berlin"\nsettle = "12 hours"\nundated = "with the rows"',
        orders='time = "ordered_at"\nmax_rows_ever = 200',
    )
    assert policy.privacy.time is not None
    assert (policy.privacy.time.zone, policy.privacy.time.settle) == ("Europe/Berlin", timedelta(hours=12))
    assert policy.tables["orders"].time == ("orders", "ordered_at")
    assert policy.tables["orders"].max_rows_ever == 200
    assert policy.tables["items"].time == ("orders", "ordered_at")
    assert policy.tables["users"].time is None


REFUSED = [
    ({"time": 'open = "yes"'}, "privacy.time.open"),
    ({"time": 'windows = { "12 weeks" = 60 }'}, 'privacy.time.windows."12 weeks": write a number of months'),
    ({"time": 'windows = { "1 months" = 60 }'}, 'privacy.time.windows."1 months": write a number of months'),
    ({"time": 'windows = { "12 months" = 0 }'}, 'privacy.time.windows."12 months": is an epsilon above 0'),
    ({"time": "windows = 60"}, "privacy.time.windows"),
    ({"time": "person = 0"}, "privacy.time.person: is an epsilon above 0"),
    ({"time": 'retention = "2 years"'}, "privacy.time.retention: write a number of months"),
    ({"time": 'retention = "0 months"'}, "privacy.time.retention: write a number of months"),
    ({"time": "retention = 24"}, "privacy.time.retention"),
    ({"time": 'undated = "apart"'}, "privacy.time.undated"),
    ({"time": 'zone = "Nowhere/Here"'}, "privacy.time.zone: is no time zone"),
    ({"time": 'settle = "soon"'}, "privacy.time.settle: write a time"),
    ({"privacy": 'neighbours = "replace-one"'}, "privacy.neighbours"),
    ({"privacy": "together = 2"}, "privacy.together"),
    ({"orders": "", "items": ""}, "privacy.time: needs a table"),
    ({"items": ""}, 'tables.items.time: its person is found through "orders"'),
    ({"items": 'time = "packed_at"'}, 'tables.items.time: its person is found through "orders"'),
    ({"items": 'time = "users.born"'}, 'tables.items.time: "users" is not on the way'),
    ({"items": 'time = "orders.shipped_at"'}, "tables.items.time: is not what"),
    ({"items": 'time = "other.at"'}, 'tables.items.time: no table "other"'),
    ({"orders": 'time = "ordered_at"\nmax_rows_ever = 10'}, "max_rows_ever: is below max_rows = 20"),
    ({"orders": 'time = "ordered_at"\nrow_number = "no"'}, "tables.orders.row_number"),
    ({"orders": 'time = "ordered_at"\nmax_norm = { city = 3 }'}, "tables.orders.max_norm"),
]


@pytest.mark.parametrize(("parts", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_has_no_proof_is_refused_by_name(parts: dict[str, str], said: str) -> None:
    with pytest.raises(PolicyError, match=said.replace("(", r"\(")):
        shop(**parts)


def test_a_time_needs_periods() -> None:
    text = SHOP.format(privacy="", time="", **TIMED)
    without = text.replace('[privacy.time]\nperiod = "month"\nsince = 2019-01-01\n', "")
    with pytest.raises(PolicyError, match=r"tables\.orders\.time: needs a budget by period"):
        parse_policy(without, Path("shop.toml"))


def test_a_number_in_the_row_needs_no_parent_of_its_period() -> None:
    text = SHOP.format(privacy="", time="", **TIMED).replace(
        'unit = { column = "order_id", references = "orders.id" }',
        'unit = { column = "user_id", references = "users.id" }',
    )
    policy = parse_policy(text.replace("orders.ordered_at", "packed_at"), Path("shop.toml"))
    assert policy.tables["items"].time == ("items", "packed_at")
