"""L9 where keys are at stake: those that two people share although the engine should forbid it, and those that may be
NULL.

A window and a GROUP BY below a release are each owner's, whatever the keys hold (`analyze`). A UNIQUE column may be
NULL any number of times: then it tells neither rows nor people apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from dpsql.tests.support.random_joins import SCHEMA, Database, load, policy_of, row, without

from .measured import World, measure_release, world
from .test_neighbours_joined import check

Patch = pytest.MonkeyPatch

_NOBODY: dict[str, tuple[tuple[str | None, ...], ...]] = dict.fromkeys(
    ("person", "account", "booking", "note", "profile"), ()
)

NUMBERS = range(10, 30)
SHARED = Database(
    {
        **_NOBODY,
        "account": (
            *(row("account", no, 1, kind="save", opened="2020-01-01") for no in NUMBERS),
            *(row("account", no, 100 + no, kind="giro", opened="2020-12-31") for no in NUMBERS),
        ),
    }
)
"""Twenty numbers of accounts that the first person shares with one other person each, whose row comes later."""

OF_SHARED_KEYS = (
    "SELECT COUNT(*) FROM (SELECT no, kind, ROW_NUMBER() OVER (PARTITION BY no ORDER BY opened) AS k FROM account) t "
    "WHERE k = 1 AND kind = 'giro'",
    "SELECT COUNT(*) FROM (SELECT no, MAX(kind) AS m FROM account GROUP BY no) t WHERE m = 'giro'",
    "SELECT COUNT(*) FROM (SELECT no, balance, COUNT(*) AS c FROM account GROUP BY no, balance) t WHERE c = 1",
    "SELECT COUNT(*) FROM (SELECT DISTINCT no, kind FROM account) t",
)

NULLS = Database(
    {
        **_NOBODY,
        "note": (
            *(row("note", 1, n="5", city="abc"[i % 3], tag="t") for i in range(12)),
            *(row("note", u, n="1", city="a", tag="t") for u in (2, 3)),
        ),
    }
)
"""One person with twelve notes whose UNIQUE column is NULL in each."""

GROUPED_BY_NULLS = "SELECT ref, COUNT(*) FROM note GROUP BY ref"
FIRST_OF_NULLS = (
    "SELECT COUNT(*) FROM (SELECT person_id, city, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS k FROM note) t "
    "WHERE k = 1 AND city = 'a'"
)
MIXING = (
    "SELECT COUNT(*) FROM (SELECT ref, n, ROW_NUMBER() OVER (PARTITION BY ref ORDER BY n) AS k FROM note) t WHERE k = 1",
    "SELECT COUNT(*) FROM note a JOIN (SELECT ref, COUNT(*) OVER (PARTITION BY ref) AS c FROM note) b ON b.ref = a.ref WHERE b.c > 1",
)  # fmt: skip


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world whose catalog knows keys that its tables do not keep."""
    folder = tmp_path_factory.mktemp("trusting")
    with world(folder, policy=policy_of(folder), schema=SCHEMA) as made:
        made.connection.execute("CREATE OR REPLACE TABLE account AS FROM account")
        yield made


@pytest.fixture(scope="module")
def nullable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world in which `note.ref` is UNIQUE."""
    folder = tmp_path_factory.mktemp("nullable")
    schema = SCHEMA.replace("ref BIGINT,", "ref BIGINT UNIQUE,", 1)
    assert schema != SCHEMA
    with world(folder, policy=policy_of(folder), schema=schema) as made:
        yield made


def check_shared_keys(trusting: World, sql: str) -> Fraction:
    worst = check(trusting, sql, SHARED, [without(SHARED, 1)])
    assert worst is not None, "refused, or the engine failed"
    return worst


@pytest.mark.parametrize("sql", OF_SHARED_KEYS)
def test_whatever_the_keys_hold_a_row_is_one_persons(trusting: World, sql: str) -> None:
    check_shared_keys(trusting, sql)


def check_rows_of_a_null_key(nullable: World, patch: Patch) -> None:
    """Rows whose key is NULL are one group of many rows; should such a key be refused, the refusal is taken out."""
    patch.setattr("dpsql.plan.privacy.release_boundary._check_keys", lambda *_: None)
    assert check(nullable, GROUPED_BY_NULLS, NULLS, [without(NULLS, 1)]) is not None
    load(nullable.connection, NULLS)
    (release,) = nullable.plan(GROUPED_BY_NULLS).releases
    with nullable.backend.snapshot() as snapshot:
        found = measure_release(release, snapshot)
    rows = (6 + 1 + 1) * release.measurements[0].denominator
    assert [groups[(None,)] for groups in found.values()] == [(rows,), (3,)], "rows up to R, and people"


def test_a_unique_key_that_is_null_has_many_rows(nullable: World, monkeypatch: Patch) -> None:
    check_rows_of_a_null_key(nullable, monkeypatch)


def check_order_of_a_null_key(nullable: World) -> None:
    """Rows that are alike but for a NULL in their key are ordered by all that they show, not by where they lie."""
    found = []
    for order in range(1, 6):
        load(nullable.connection, NULLS, order)
        (release,) = nullable.plan(FIRST_OF_NULLS).releases
        with nullable.backend.snapshot() as snapshot:
            found.append(measure_release(release, snapshot))
    assert all(other == found[0] for other in found)


def test_a_unique_key_that_is_null_orders_nothing(nullable: World) -> None:
    check_order_of_a_null_key(nullable)


def check_mixing(nullable: World, sql: str) -> None:
    assert check(nullable, sql, NULLS, []) is None, "it is answered per person"


@pytest.mark.parametrize("sql", MIXING)
def test_a_unique_key_that_may_be_null_is_nobodys(nullable: World, sql: str) -> None:
    """A window partitioned by it would mix people's rows, so it is refused, as is any that is not a person's."""
    check_mixing(nullable, sql)
