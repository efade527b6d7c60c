"""Ages are compared as Postgres compares them, and an age beside a constant says of the other side where it ends."""

from __future__ import annotations

import random

import psycopg
import pytest

from dpsql.relation.calendar import DAY, age_of

from ..support.postgres_server import PostgresServer
from .campus import expression

_CLOCKS = (0, 0, 1, DAY - 1, DAY // 2)
_FIRST, _LAST = 18_500, 21_000


def _moment(chance: random.Random) -> int:
    return chance.randrange(_FIRST, _LAST) * DAY + chance.choice(_CLOCKS)


def test_an_age_is_that_of_postgres(postgres: PostgresServer) -> None:
    chance = random.Random(34)
    pairs = [(_moment(chance), _moment(chance)) for _ in range(3_000)]
    moment = "(timestamp '1970-01-01' + {} * interval '1 microsecond')"
    age = f"age({moment.format('later')}, {moment.format('earlier')})"
    sql = (
        "SELECT COUNT(*) FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS t(later, earlier, age) "
        f"WHERE {age} <> t.age * interval '1 microsecond'"
    )
    with psycopg.connect(postgres.url("postgres")) as connection:
        later, earlier = zip(*pairs, strict=True)
        row = connection.execute(
            sql, [list(later), list(earlier), [age_of(*pair) for pair in pairs]]
        ).fetchone()
    assert row == (0,)


@pytest.mark.parametrize("seed", range(8))
def test_whole_months_are_reached_once(seed: int) -> None:
    """An age of fewer than so many months ends at one moment, whichever side moves."""
    chance = random.Random(seed)
    fixed, clock = _moment(chance), chance.choice(_CLOCKS)
    moments = [day * DAY + clock for day in range(_FIRST, _LAST)]
    later, earlier = ([age_of(*pair) for pair in pairs] for pairs in (
        [(moment, fixed) for moment in moments], [(fixed, moment) for moment in moments[::-1]]
    ))  # fmt: skip
    for ages in (later, earlier):
        for months in (1, 2, 3, 11, 12, 13, 30):
            limit = months * 30 * DAY
            for reached in ([age < limit for age in ages], [age <= limit for age in ages]):
                assert reached == sorted(reached, reverse=True)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("age(DATE '2024-12-31', born) < INTERVAL '1 year'", "born >= DATE '2024-01-02'"),
        ("age(DATE '2024-12-31', born) >= INTERVAL '18 years'", "born < DATE '2007-01-02'"),
        ("INTERVAL '1 month' > age(seen, DATE '2024-01-31')", "seen < TIMESTAMP '2024-03-01 00:00:00'"),
        (
            "seen - TIMESTAMP '2024-01-31' BETWEEN INTERVAL '0 s' AND INTERVAL '1 month 12:00'",
            "extract(epoch FROM seen) - extract(epoch FROM TIMESTAMP '2024-01-31') BETWEEN 0::numeric AND 2635200::numeric",
        ),
        (
            "extract(day FROM seen - born) = 3",
            "trunc((extract(epoch FROM seen) - extract(epoch FROM born)) / 86400) = 3",
        ),
    ],
)
def test_what_is_compared(written: str, meant: str) -> None:
    assert expression(written) == expression(meant)
