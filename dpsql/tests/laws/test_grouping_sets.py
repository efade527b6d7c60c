"""Rows that add up: of ROLLUP, CUBE and GROUPING SETS, each coarser sum is that of its finer rows (1.18).

With the noise that users meet, over both engines. Figures of type numeric are read as the decimals that they are.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pytest

from dpsql.plan.measures import formulas
from dpsql.plan.privacy import release_boundary
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database

from .conftest import Desk, OpenDesk, make_desk
from .examples import HEAVY, person, visit
from .planting import plant

Patch = pytest.MonkeyPatch
Row = tuple[Any, ...]

KEYS = {"city": "city", "flag": "flag", "month": "EXTRACT(month FROM day)", "team": "p.team"}
AGGREGATES = ("COUNT(*)", "SUM(n)", "SUM(d)", "COUNT(*) FILTER (WHERE n > 0)", "SUM(d * 2 + 1)", "COUNT(d)")


@pytest.fixture
def full(engine: PostgresServer | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with ExitStack() as stack:
        desk = make_desk(stack, tmp_path_factory.mktemp("sets"), epsilon="0.25", server=engine)
        desk.settle(HEAVY)
        yield desk


def statement(sets: Sequence[Sequence[str]], aggregates: Sequence[str]) -> str:
    """Return a statement over grouping sets that shows all keys, then GROUPING() of each, then the aggregates."""
    keys = list(KEYS)
    listed = ", ".join(f"({', '.join(KEYS[key] for key in one)})" for one in sets)
    shown = [KEYS[key] if any(key in one for one in sets) else "NULL" for key in keys]
    bits = [f"GROUPING({KEYS[key]})" if any(key in one for one in sets) else "1" for key in keys]
    return (
        f"SELECT {', '.join([*shown, *bits, *aggregates])} FROM visit v JOIN person p ON p.id = v.person_id "
        f"GROUP BY GROUPING SETS ({listed})"
    )


def check_sums(rows: Sequence[Row], finest: Sequence[str]) -> None:
    """Each row is the sum of the rows of the finest set that have its keys."""
    width = len(KEYS)
    keys = list(KEYS)
    mask = tuple(0 if key in finest else 1 for key in keys)
    cells = [row for row in rows if row[width : 2 * width] == mask]
    assert cells
    for row in rows:
        kept = [i for i in range(width) if row[width + i] == 0]
        own = [cell for cell in cells if all(cell[i] == row[i] for i in kept)]
        for place in range(2 * width, len(row)):
            total = sum((Decimal(cell[place]) for cell in own), Decimal(0))
            assert total == row[place], (row, place, total)


def sets_of(rng: random.Random) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return some keys, and grouping sets over them of which the first has them all."""
    finest = rng.sample(list(KEYS), rng.choice((1, 2, 2, 3)))
    below = [part for size in range(len(finest)) for part in itertools.combinations(finest, size)]
    chosen = rng.sample(below, min(len(below), rng.choice((1, 2, 4))))
    return finest, [tuple(finest), *chosen]


def check_random_sets(desk: Desk, seeds: Sequence[int]) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        finest, sets = sets_of(rng)
        aggregates = rng.sample(AGGREGATES, rng.choice((1, 2, 3)))
        rng.shuffle(sets)
        check_sums(desk.session.execute(statement(sets, aggregates)).rows, finest)


def test_counts_and_sums_add_up_over_declared_keys(full: Desk) -> None:
    check_random_sets(full, range(tried(10, 25)))


def test_a_set_beside_what_counts_once_adds_up_too(full: Desk) -> None:
    """What cannot add up is measured for each set, and takes nothing from what can."""
    sql = statement([("city", "flag"), ("city",), ()], ["COUNT(*)", "SUM(d)"])
    mixed = sql.replace("COUNT(*), SUM(d) ", "COUNT(*), SUM(d), COUNT(DISTINCT tag), COUNT(DISTINCT p.id) ")
    rows = [row[:-2] for row in full.session.execute(mixed).rows]
    check_sums(rows, ("city", "flag"))
    notes = full.session.execute(mixed).receipt.notes  # type: ignore[union-attr]
    assert any("COUNT(DISTINCT …) of a group is no sum" in note for note in notes)


def test_sets_that_are_measured_apart_add_up_where_one_holds_the_other(full: Desk) -> None:
    """No set has both keys, and their product is too wide: each is measured, and the total is the sum of one."""
    sql = statement([("month",), ("team", "city"), (), ("team",)], ["COUNT(*)", "SUM(n)"])
    answer = full.session.execute(sql)
    width = len(KEYS)
    teams = [row for row in answer.rows if row[width + list(KEYS).index("team")] == 0]
    check_sums(teams, ("team", "city"))
    (total,) = (row for row in answer.rows if all(row[width : 2 * width]))
    sums = []
    for finest in (("month",), ("team", "city")):
        mask = tuple(0 if key in finest else 1 for key in KEYS)
        own = [row for row in answer.rows if row[width : 2 * width] == mask]
        sums.append(sum(row[2 * width] for row in own))
    assert total[2 * width] in sums
    assert answer.receipt is not None
    assert any("measured apart" in note for note in answer.receipt.notes)


def test_a_rollup_is_the_group_by_that_it_is_made_of(full: Desk) -> None:
    """Its cells are the draws of GROUP BY alone: free after it, and no more noise than there."""
    alone = full.session.execute("SELECT city, COUNT(*) FROM visit GROUP BY city")
    rolled = full.session.execute("SELECT city, COUNT(*) FROM visit GROUP BY ROLLUP (city)")
    assert rolled.receipt is not None
    assert rolled.receipt.epsilon == 0
    assert list(rolled.rows[:-1]) == list(alone.rows)
    assert rolled.rows[-1] == (None, sum(row[1] for row in alone.rows))


FEW_ROWS = Database(
    (person(1, team="red"), person(2, team="blue")),
    tuple(visit(unit, city=city, flag=flag, tag="t", n="7", d="5") for unit in (1, 2) for city, flag in
          (("a", "true"), ("a", "false"), ("b", "true"))),
)  # fmt: skip


def check_values(desk: OpenDesk) -> None:
    """Without noise, and where nobody is cut, the rows are the engine's own; averages are of the added sums."""
    quiet = desk(noise=ZeroNoise())
    quiet.settle(FEW_ROWS)
    sql = "SELECT city, flag, COUNT(*), SUM(d), AVG(d), COUNT(DISTINCT tag) FROM visit GROUP BY CUBE (city, flag)"
    rows = {row[:2]: row[2:] for row in quiet.session.execute(sql).rows}
    assert rows["a", True] == (2, Decimal(10), Decimal(5), 1)
    assert rows[None, None][:3] == (6, Decimal(30), Decimal(5))
    assert rows[None, True][:3] == (4, Decimal(20), Decimal(5))
    assert rows[None, None][3] == 1


def test_values_are_the_engines_own(desk: OpenDesk) -> None:
    check_values(desk)


def check_all(desk: OpenDesk, opened: Desk) -> None:
    check_values(desk)
    check_random_sets(opened, range(25))


def check_found_keys(desk: OpenDesk) -> None:
    """A total beside keys that are found by threshold is asked for itself: a group that is not shown is in it."""
    quiet = desk(noise=ZeroNoise())
    quiet.settle(FEW_ROWS)
    answer = quiet.session.execute("SELECT tag, COUNT(*) FROM visit GROUP BY ROLLUP (tag)")
    assert list(answer.rows) == [(None, 6)]
    assert answer.receipt is not None
    assert any("found by threshold" in note for note in answer.receipt.notes)


def test_found_keys_are_not_added_up(desk: OpenDesk) -> None:
    check_found_keys(desk)


# --- mutants ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        (formulas.print_parts, "COALESCE(sum({name}), 0) AS BIGINT", "COALESCE(2 * sum({name}), 0) AS BIGINT"),
        (formulas.print_parts, "COALESCE(sum({name}), 0) * {", "COALESCE(sum(DISTINCT {name}), 0) * {"),
        (formulas.print_part, 'f"round_even({formula.times(1 / grid).double()}, 0)"',
         "formula.times(1 / grid).double()"),
    ],
    ids=["a cell counted twice", "cells of one size counted once", "rounded after they are added"],
)  # fmt: skip
def test_add_up_wrongly(
    desk: OpenDesk, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str
) -> None:
    opened = desk(epsilon="0.25")
    opened.settle(HEAVY)
    plant(monkeypatch, function, (old, new))
    with pytest.raises(AssertionError):
        check_all(desk, opened)


def test_add_up_what_is_found_by_threshold(desk: OpenDesk, monkeypatch: Patch) -> None:
    plant(
        monkeypatch, release_boundary.sources_of,
        ("(found := size(one)) is not None", "(found := size(one) or 1)"),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        check_found_keys(desk)


def test_add_up_what_counts_a_thing_once(desk: OpenDesk, monkeypatch: Patch) -> None:
    plant(monkeypatch, release_boundary.adds_up, ("return counts_people and (", "return True or ("))
    with pytest.raises(AssertionError):
        check_values(desk)
