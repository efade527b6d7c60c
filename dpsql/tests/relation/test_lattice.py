"""The public integers that stand for a column's values, from bounds, literals and types alone."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.errors import Refusal
from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Call, Field, Literal
from dpsql.relation.facts import Facts
from dpsql.relation.intervals import (
    LOG_PARTS,
    Environment,
    Lattice,
    LogLattice,
    candidates_of,
    lattice_of,
    rung_of,
)
from dpsql.relation.types import BIGINT, DOUBLE, INTEGER, SqlType, numeric


def of_column(
    type_: SqlType, low: Fraction, high: Fraction, step: Fraction | None = None, *, squared: bool = False
) -> Lattice | None:
    env = Environment([Column("x", type_, bounds=(low, high), step=step)])
    return lattice_of(Field(type_, 0, "x"), env, squared=squared)


@pytest.mark.parametrize(
    ("type_", "low", "high", "step", "expected"),
    [
        (INTEGER, 0, 100, None, (0, 100, 1, True)),
        (INTEGER, -7, 20, None, (-7, 20, 1, True)),
        (INTEGER, Fraction(1, 2), Fraction(7, 2), None, (1, 3, 1, True)),  # the integers inside
        (numeric(10, 2), -10, 50, None, (-1000, 5000, Fraction(1, 100), True)),
        (numeric(10, 2), 0, 50, Fraction(1, 2), (0, 100, Fraction(1, 2), False)),  # coarser than the type: rounded
        (DOUBLE, 0, 2, Fraction(1, 100), (0, 200, Fraction(1, 100), False)),
        (DOUBLE, 0, 1, None, (0, 2**32, Fraction(1, 2**32), False)),  # a step of our own, a power of two
    ],
)  # fmt: skip
def test_columns(
    type_: SqlType, low: Fraction, high: Fraction, step: Fraction | None, expected: tuple[object, ...]
) -> None:
    lattice = of_column(type_, Fraction(low), Fraction(high), step)
    assert lattice is not None
    assert (lattice.low, lattice.high, lattice.step, lattice.exact) == expected


def test_width_and_reach() -> None:
    lattice = of_column(INTEGER, Fraction(-7), Fraction(20))
    assert lattice is not None
    assert (lattice.width, lattice.reach) == (27, 20)


def test_squares_are_coarser() -> None:
    fine, coarse = (of_column(DOUBLE, Fraction(0), Fraction(1), squared=squared) for squared in (False, True))
    assert fine is not None
    assert coarse is not None
    assert (fine.width, coarse.width) == (2**32, 2**24)


def test_a_filter_that_nothing_passes_leaves_no_lattice() -> None:
    x = Field(INTEGER, 0, "x")
    env = Environment(
        [Column("x", INTEGER, bounds=(Fraction(0), Fraction(9)))], {x: Facts(lo=Fraction(10), nullable=False)}
    )
    assert lattice_of(x, env, squared=False) is None


@pytest.mark.parametrize(("low", "high", "code"), [(0, 10**101, "PV201"), (0, 2**62, "PV201")])
def test_too_wide(low: int, high: int, code: str) -> None:
    with pytest.raises(Refusal) as refusal:
        of_column(DOUBLE, Fraction(low), Fraction(high), Fraction(1))
    assert refusal.value.sqlstate == code


def test_undeclared_bounds_are_named() -> None:
    x = Field(INTEGER, 0, "x")
    with pytest.raises(Refusal) as refusal:
        lattice_of(
            Call(BIGINT, "add", (x, Literal(INTEGER, 1))), Environment([Column("x", INTEGER)]), squared=False
        )
    assert refusal.value.sqlstate == "PV101"
    assert '"x"' in refusal.value.message


# --- by magnitude (soundness.md 1.20) ---------------------------------------------------------------------------

ENDS = [
    (0, 10**6),
    (-(10**6), 10**6),
    (100, 5000),
    (-7, 3),
    (2049, 10**7),
    (-(10**7), -2049),
    (0, 2**60),
    (5, 5),
]


def of_ends(low: int, high: int) -> LogLattice:
    env = Environment([Column("x", BIGINT, bounds=(Fraction(low), Fraction(high)), is_log=True)])
    found = candidates_of(Field(BIGINT, 0, "x"), env)
    assert isinstance(found, LogLattice)
    return found


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_candidates_by_magnitude(low: int, high: int) -> None:
    lattice = of_ends(low, high)
    assert (lattice.at(0), lattice.at(lattice.last)) == (low, high)
    places = {*range(min(lattice.last, 30_000) + 1), *range(max(0, lattice.last - 30_000), lattice.last + 1)}
    values = [lattice.at(place) for place in sorted(places)]
    assert values == sorted(set(values))
    for value in {*values, *(value + 1 for value in values), (low + high) // 3, high // 7}:
        if low <= value <= high:
            place = rung_of(value) - rung_of(low)
            chosen = lattice.at(place)
            assert 0 <= place <= lattice.last
            assert abs(chosen - value) * LOG_PARTS <= max(abs(value), abs(chosen))
            inside = 0 < place < lattice.last
            assert not inside or rung_of(chosen) - rung_of(low) == place


def test_zero_and_small_numbers_are_candidates() -> None:
    lattice = of_ends(-(10**6), 10**6)
    found = [lattice.at(rung_of(value) - rung_of(-(10**6))) for value in range(-2048, 2049)]
    assert found == list(range(-2048, 2049))
    assert of_ends(0, 10**6).last + 1 == 2048 + 8 * 1024 + 930 + 1


def test_only_a_column_itself_has_a_log_scale() -> None:
    env = Environment([Column("x", INTEGER, bounds=(Fraction(0), Fraction(9)), is_log=True)])
    column = Field(INTEGER, 0, "x")
    assert isinstance(candidates_of(column, env), LogLattice)
    assert not isinstance(lattice_of(column, env, squared=False), LogLattice)
    plus = Call(INTEGER, "add", (column, Literal(INTEGER, 1)))
    assert not isinstance(candidates_of(plus, env), LogLattice)
