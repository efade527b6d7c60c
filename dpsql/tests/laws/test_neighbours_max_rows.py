"""L1 where a person's rows in all are bounded below what the groups and rows in each would come to."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from dpsql.policy import parse_policy
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import policy_text

from .examples import HEAVY, NOBODY
from .measured import World, world
from .test_neighbours import check, neighbours_of

BY_CITY = "SELECT city, COUNT(*) FROM visit GROUP BY city"
BOUNDS = "max_rows = 6\nmax_rows_per_group = 3\nmax_groups = 2"


@pytest.fixture(
    scope="module", params=["max_rows = 2", "max_rows = 4\nmax_rows_per_group = 3\nmax_groups = 2"]
)
def tight(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, engine: PostgresServer | None
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("tight")
    assert BOUNDS in policy_text()
    policy = parse_policy(policy_text().replace(BOUNDS, request.param), folder / "laws.toml")
    with world(folder, policy=policy, server=engine) as made:
        yield made


def test_the_claim_is_reached(tight: World) -> None:
    worst = check(tight, BY_CITY, HEAVY, neighbours_of(tight, HEAVY, NOBODY))
    assert worst is not None
    assert Fraction(99, 100) < worst <= 1
