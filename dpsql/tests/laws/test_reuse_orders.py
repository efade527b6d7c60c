"""What is stored never changes what a statement answers: sequences in one ledger, in both orders, with noise off.

Where no bound bites and nothing is noised, each answer is the engine's own, whatever was asked before: a draw that is
taken for another's, added up to a coarser group, topped up, weighed with its relatives or read beside another may lower
the charge, and nothing else (soundness.md 3.7 to 3.13). Statements of a sequence are near relatives, so that most of
them find something of theirs stored; some are asked for what they leave behind alone.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.plan.measures.measurements import Pair
from dpsql.plan.measures.ranks import Ranked
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Accounting, Policy
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.length import tried
from dpsql.tests.support.random_databases import SCHEMA, Database, load, policy_of

from .examples import person, visit
from .planting import plant

_DRAWN = random.Random(5)
TAME = Database(
    tuple(
        person(
            unit, age=str(_DRAWN.randrange(121)), height=f"{_DRAWN.randrange(50, 251) / 100:.2f}", score=f"{_DRAWN.randrange(90) / 10}",
            team=("red", "blue")[unit % 2], active=("true", "false")[unit % 3 > 0],
        )
        for unit in range(60)
    ),
    tuple(
        visit(
            unit, city=_DRAWN.choice(("a", "b", "c", None)), flag=_DRAWN.choice(("true", "false", None)), tag="tu"[i % 2],
            n=_DRAWN.choice((None, *map(str, range(-3, 8)))), d=f"{_DRAWN.randrange(501) / 100:.2f}",
            x=str(_DRAWN.randrange(-2, 9) / 2), level=_DRAWN.choice(("low", "high")),
        )
        for unit in range(60) for i in range(unit % 7)
    ),
)  # fmt: skip
"""Nothing is out of bounds, and nobody has more than M rows of a group or C groups."""


Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Family:
    """What relatives are made of: statements over one table."""

    table: str
    values: tuple[str, ...]
    filters: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]


FAMILIES = (
    Family("person", ("age", "height"), ("active", "team = 'red'"), ((), (), ("active",), ("team",), ("active", "team"))),
    Family("visit", ("n", "d"), ("flag", "city = 'a'"), ((), ("flag",), ("city",), ("city", "flag"), ("flag", "level"))),
)  # fmt: skip
EXACT = (
    "COUNT(*)", "COUNT(*)", "COUNT({v})", "SUM({v})", "SUM({v})", "AVG({v})", "AVG({v})", "VAR_POP({v})", "STDDEV_SAMP({v})",
    "COUNT(DISTINCT {owner})", "CORR({v}, {w})", "PERCENTILE_DISC({f}) WITHIN GROUP (ORDER BY {v})",
    "AVG({v}) + SUM({v})", "COUNT(*) - COUNT({v})",
)  # fmt: skip
"""Calls whose answer without noise is the engine's."""
OTHERS = (
    "MIN({v})",
    "MAX({v})",
    "COUNT(DISTINCT {k})",
    "dp_avg_direct({v})",
    "MODE() WITHIN GROUP (ORDER BY {k})",
    "MEDIAN({v})",
)
"""Calls that are asked for what they leave in the store."""


@dataclass(frozen=True)
class Asked:
    """A statement; `keys`: its first columns; `calls`: the others, of which those of `EXACT` are compared."""

    sql: str
    keys: tuple[str, ...]
    calls: tuple[tuple[str, bool], ...]
    epsilon: str


def draw(
    chance: random.Random, family: Family, pool: Sequence[tuple[str, bool]], where: str, epsilon: str
) -> Asked:
    """Return a statement with calls of a pool, about some rows or all of them."""
    keys = chance.choice(family.keys)
    calls = []
    for call, is_exact in chance.sample(pool, chance.choice((1, 1, 1, 1, 2))):
        is_filtered = chance.random() < 0.15 and " + SUM" not in call and " - COUNT" not in call
        calls.append((f"{call} FILTER (WHERE {where})" if is_filtered else call, is_exact))
    sql = f"SELECT {', '.join([*keys, *(call for call, _ in calls)])} FROM {family.table}"
    if chance.random() < 0.3:
        sql += f" WHERE {where}"
    if keys:
        sql += (
            f" GROUP BY ROLLUP ({', '.join(keys)})"
            if chance.random() < 0.1
            else f" GROUP BY {', '.join(keys)}"
        )
    return Asked(sql, keys, tuple(calls), epsilon)


def sequence(seed: int) -> list[Asked]:
    """Return statements that are near relatives, of a few calls over one column by few keys: each wants less than the
    one before, so that what is stored serves it, and turned round more, so that it is topped up."""
    chance = random.Random(seed)
    family = chance.choice(FAMILIES)
    family = replace(family, keys=((), *chance.sample(family.keys, 1)))
    value, where = chance.choice(family.values), chance.choice(family.filters)
    pool = [
        (
            call.format(
                v=value, w=chance.choice(family.values), owner="id" if family.table == "person" else "person_id",
                k=family.filters[0], f=chance.choice(("0.25", "0.5", "0.9")),
            ),
            call in EXACT,
        )
        for call in (*chance.sample(EXACT, 2), *chance.sample(OTHERS, chance.choice((0, 0, 1))))
    ]  # fmt: skip
    return [draw(chance, family, pool, where, epsilon) for epsilon in ("4", "2", "0.5", "0.1")]


@dataclass(frozen=True)
class Place:
    """An engine with the rows, and where ledgers are made."""

    policy: Policy
    connection: duckdb.DuckDBPyConnection
    number: Iterator[int]

    def session(self, stack: ExitStack) -> Session:
        """Open a session over a ledger of its own."""
        policy = replace(self.policy, ledger=self.policy.ledger + str(next(self.number)))
        store = open_ledger(policy, create=True)
        made = Session(
            Dataset(policy, DuckDBBackend.over(self.connection), store, warm_sealed()),
            "tester",
            _noise=ZeroNoise(),
        )
        return stack.enter_context(made)


@pytest.fixture(scope="module", params=Accounting)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from place_of(tmp_path_factory.mktemp("orders"), request.param)


def place_of(folder: Path, accounting: Accounting) -> Iterator[Place]:
    policy = policy_of(folder, rows=8, groups=12, delta="0.1")
    conversion = policy.privacy.delta / 9 if accounting is Accounting.ZCDP else Fraction(0)
    policy = replace(
        policy, privacy=replace(policy.privacy, accounting=accounting, conversion_delta=conversion)
    )
    with empty_duckdb() as connection:
        connection.execute(SCHEMA)
        load(connection, TAME, order=1)
        yield Place(policy, connection, itertools.count())


def ask(place: Place, asked: Sequence[Asked]) -> None:
    """Ask statements one after the other in a ledger of their own, and hold each answer."""
    with ExitStack() as stack:
        session = place.session(stack)
        for one in asked:
            session.execute(f"SET dpsql.epsilon = '{one.epsilon}'")
            ours, theirs = (
                session.execute(one.sql).rows,
                place.connection.execute(one.sql.replace("dp_avg_direct", "avg")).fetchall(),
            )
            compare(one, list(ours), theirs, [other.sql for other in asked])


def compare(one: Asked, ours: Rows, theirs: Rows, all_of: list[str]) -> None:
    """Hold our rows against the engine's; of one key there may be several, a total and a group of NULL."""
    mine, other = by_key(one, ours), by_key(one, theirs)
    for key, rows in other.items():
        found = mine.get(key, [])
        if not found and "tag" in one.keys:  # groups that are found in the data: small ones are not shown
            continue
        assert all(any(is_same(one, row, wanted) for row in found) for wanted in rows), (
            one.sql,
            key,
            found,
            rows,
            all_of,
        )
    for key, rows in mine.items():
        left = [row for row in rows if not any(is_same(one, row, wanted) for wanted in other.get(key, []))]
        assert len(left) <= max(0, len(rows) - len(other.get(key, []))), (one.sql, key, left, all_of)
        for row in left:  # a group of nobody: nothing is counted there
            counts = [
                cell for (call, _), cell in zip(one.calls, row, strict=True) if call.startswith("COUNT")
            ]
            assert not any(counts), (one.sql, key, row, all_of)


def by_key(one: Asked, rows: Rows) -> dict[tuple[str, ...], Rows]:
    found: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        found.setdefault(tuple(map(str, row[: len(one.keys)])), []).append(row[len(one.keys) :])
    return found


def is_same(one: Asked, ours: tuple[object, ...], theirs: tuple[object, ...]) -> bool:
    """Say whether all that is to be compared of a row is alike; of a group with one row, where theirs is NULL, nothing."""
    for (_, is_exact), mine, other in zip(one.calls, ours, theirs, strict=True):
        if not is_exact or other is None:
            continue
        assert isinstance(other, (int, float, Decimal))
        if math.isnan(other):  # a correlation with what does not vary
            continue
        if not isinstance(mine, (int, float, Decimal)):
            return False
        if not math.isclose(float(mine), float(other), rel_tol=1e-6, abs_tol=1e-6):
            return False
    return True


def hold(place: Place, seeds: Sequence[int]) -> None:
    for seed in seeds:
        ask_both(place, sequence(seed))


PAIRED = (
    "COUNT(*)",
    "SUM(height)",
    "AVG(height)",
    "VAR_POP(height)",
    "COUNT(DISTINCT id)",
    "SUM(height) FILTER (WHERE active)",
)


def pair(*calls: str) -> list[Asked]:
    return [Asked(f"SELECT {call} FROM person", (), ((call, True),), "1") for call in calls]


def test_each_pair_of_relatives(place: Place) -> None:
    """One after the other, in both orders: of a column whose least value is not 0."""
    for first, second in itertools.permutations(PAIRED, 2):
        ask(place, pair(first, second))


def test_answers_are_the_engines_whatever_was_asked_before(place: Place) -> None:
    hold(place, range(tried(2, 12)))


@pytest.mark.long
@pytest.mark.parametrize("part", range(40))
def test_many_answers_are_the_engines_whatever_was_asked_before(place: Place, part: int) -> None:
    hold(place, range(1000 + 50 * part, 1000 + 50 * (part + 1)))


# --- mutants ---------------------------------------------------------------------------------------------------

FAULTS = {
    "a centred sum for a sum": (
        Pair.key_of, " and self.known_lattice.low == 0", "", pair("AVG(height)", "SUM(height)")),
    "of no column": (
        Ranked.key_of, "self.value, self.lattice, self.shares[part])", "None, None, self.shares[part])",
        pair("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age)", "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY height)"),
    ),
    "of no fraction": (
        Ranked.key_of, "self.lattice, self.shares[part])", "self.lattice)",
        pair("PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY age)", "PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age)"),
    ),
    "of no filter": (
        ReleasePlan._labels, "(mask if by_rows else index,", "(0 if by_rows else index,", pair("SUM(age) FILTER (WHERE active)", "SUM(age)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("function", "old", "new", "asked"), FAULTS.values(), ids=FAULTS)
def test_plant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Callable[..., object], old: str, new: str,
    asked: list[Asked],
) -> None:  # fmt: skip
    for made in place_of(tmp_path, Accounting.PURE):
        ask_both(made, asked)
        plant(monkeypatch, function, (old, new))
        with pytest.raises(AssertionError):
            ask_both(made, asked)


def ask_both(place: Place, asked: list[Asked]) -> None:
    ask(place, asked)
    ask(place, asked[::-1])
