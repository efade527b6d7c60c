"""The estimate behind several groupings, against the normal equations in fractions: soundness.md 3.15."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.plan.privacy.axes import Partition
from dpsql.release import estimate
from dpsql.release.estimate import (
    CELL_PARTS,
    MOST_ATOMS,
    MOST_FORMS,
    MOST_GROUPINGS,
    PARTS,
    Design,
    Sums,
    _Along,
    design_of,
    rounded,
    rounded_noise,
)
from dpsql.tests.laws.planting import plant

Patch = pytest.MonkeyPatch
Row = list[Fraction]


def cells_of(sums: Sums) -> list[list[int]]:
    """Return for each number its cells, read off the partitions alone."""
    numbers: dict[tuple[int, ...], list[int]] = {
        groups: [] for groups in itertools.product(*(range(max(one.groups) + 1) for one in sums.partitions))
    }
    atoms = itertools.product(*(range(len(one.groups)) for one in sums.partitions))
    for cell, places in enumerate(atoms):
        groups = tuple(one.groups[at] for one, at in zip(sums.partitions, places, strict=True))
        if min(groups, default=0) >= 0:
            numbers[groups].append(cell)
    every = list(numbers.values())
    return every if sums.rows is None else [every[row] for row in sums.rows]


class Normal:
    """The normal equations, solved in fractions."""

    def __init__(self, design: Design) -> None:
        self.count = math.prod(design.sizes)
        self.rows = [(cells, Fraction(v)) for sums, v in zip(design.drawn, design.spreads, strict=True) for cells in cells_of(sums)]  # fmt: skip
        matrix = [[Fraction(0)] * self.count for _ in range(self.count)]
        for cells, variance in self.rows:
            for i, j in itertools.product(cells, cells):
                matrix[i][j] += 1 / variance
        self.steps, self.pivots = list[tuple[int, int, Row]](), list[tuple[int, int]]()
        self.matrix = matrix

    def solve(self, right: Row) -> Row | None:
        """Return some z with N z = right; None where there is none."""
        rows = [[*row, value] for row, value in zip(self.matrix, right, strict=True)]
        pivots, top = [], 0
        for column in range(self.count):
            found = next((i for i in range(top, self.count) if rows[i][column]), None)
            if found is None:
                continue
            rows[top], rows[found] = rows[found], rows[top]
            rows[top] = [one / rows[top][column] for one in rows[top]]
            for i in range(self.count):
                if i != top and (factor := rows[i][column]):
                    rows[i] = [a - factor * b for a, b in zip(rows[i], rows[top], strict=True)]
            pivots.append(column)
            top += 1
        if any(row[-1] for row in rows[top:]):
            return None
        solution = [Fraction(0)] * self.count
        for i, column in enumerate(pivots):
            solution[column] = rows[i][-1]
        return solution

    def variance(self, cells: Sequence[int]) -> Fraction | None:
        """Return the least variance of an unbiased estimate of a sum of cells; None: it is not told."""
        solution = self.solve([Fraction(i in cells) for i in range(self.count)])
        return None if solution is None else sum((solution[i] for i in cells), Fraction(0))

    def estimate(self, numbers: Sequence[int]) -> Row:
        right = [Fraction(0)] * self.count
        for (cells, variance), number in zip(self.rows, numbers, strict=True):
            for cell in cells:
                right[cell] += Fraction(number, PARTS) / variance
        found = self.solve(right)
        assert found is not None
        return found


def partitions(rng: random.Random, atoms: int) -> Partition:
    """Return a random partition: all, each, some, runs, or anything."""
    match rng.randrange(6):
        case 0:
            return Partition.whole(atoms)
        case 1:
            return Partition(tuple(range(atoms)))
        case 2:
            kept = set(rng.sample(range(atoms), rng.randint(1, atoms)))
            return Partition(tuple(-(atom not in kept) for atom in range(atoms)))
        case 3:
            places = rng.sample(range(atoms), rng.randint(1, atoms))
            return Partition(tuple(places.index(atom) if atom in places else -1 for atom in range(atoms)))
        case 4:
            return Partition(tuple(atom // 2 for atom in range(atoms)))
    names: dict[int, int] = {}
    return Partition(tuple(names.setdefault(rng.randrange(3), len(names)) for _ in range(atoms)))


def sums(rng: random.Random, sizes: Sequence[int]) -> Sums:
    found = Sums(tuple(partitions(rng, atoms) for atoms in sizes))
    if rng.random() < 0.2:
        return Sums(found.partitions, tuple(rng.sample(range(found.size), rng.randint(1, found.size))))
    return found


def plain_sums(rng: random.Random, sizes: Sequence[int]) -> Sums:
    """Return sums of which along each axis either all atoms are one group, or each is one."""
    each = (Partition(tuple(range(atoms))) for atoms in sizes)
    return Sums(tuple(rng.choice([one, Partition.whole(len(one.groups))]) for one in each))


def designs(count: int, seed: int, most: int = 3) -> Iterator[tuple[random.Random, Design]]:
    """Yield random ones, every third of which has all or each along every axis."""
    rng = random.Random(seed)
    for _ in range(count):
        sizes = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, most)))
        made_of = rng.choice([sums, sums, plain_sums])
        drawn = tuple(dict.fromkeys(made_of(rng, sizes) for _ in range(rng.randint(1, 4))))
        made = design_of(sizes, drawn, tuple(float(rng.choice([2, 50, 200, 20_000])) for _ in drawn))
        assert made is not None
        yield rng, made


def variances(design: Design, wanted: Sums) -> list[float] | None:
    found = design.forms(wanted)
    if found is None:
        return None
    by_kind = sum(v * (w**2).sum(axis=1) for w, v in zip(found.weights, design.spreads, strict=True))
    return [float(by_kind[kind]) for kind in found.kinds]


def check_variances(count: int = 40) -> None:
    """Every number has the least variance that there is, and is told exactly where some estimate of it is."""
    for rng, design in designs(count, 3):
        normal = Normal(design)
        for _ in range(2):
            wanted = sums(rng, design.sizes)
            exact = [normal.variance(cells) for cells in cells_of(wanted)]
            found = variances(design, wanted)
            assert (found is None) == (None in exact), (design, wanted)
            for one, least in zip(found or (), exact, strict=False):
                assert abs(one - float(least or 0)) <= 1e-6 * one, (design, wanted)


def test_variances_are_the_least() -> None:
    check_variances()


def test_no_sum_of_told_numbers_has_more_variance() -> None:
    """The largest eigenvalue of their covariances, which NumPy has of the fractions."""
    count = 0
    for rng, design in designs(40, 13):
        normal, wanted = Normal(design), sums(rng, design.sizes)
        each = cells_of(wanted)
        solved = [normal.solve([Fraction(i in cells) for i in range(normal.count)]) for cells in each]
        told = [one for one in solved if one is not None]
        if len(told) < len(solved):
            continue
        covariances = [[float(sum((one[i] for i in cells), Fraction(0))) for cells in each] for one in told]
        found = design.largest(wanted)
        assert found is not None
        assert found == pytest.approx(np.linalg.eigvalsh(np.array(covariances)).max(), rel=1e-3), design
        count += 1
    assert count > 15


@pytest.mark.parametrize("large", [1, 10**15])
def test_values_are_those_of_the_normal_equations(large: int) -> None:
    check_values(large)


def check_values(large: int, count: int = 25) -> None:
    """What the draws tell is the estimate within a few parts, however large what is exact is."""
    for rng, design in designs(count, 5):
        numbers, normal = list[list[int]](), Normal(design)
        truth = [rng.randrange(1000 * large) for _ in range(normal.count)]
        for one, variance in zip(design.drawn, design.spreads, strict=True):
            numbers.append([PARTS * sum(truth[i] for i in cells) + round(rng.gauss(0, variance**0.5) * PARTS) for cells in cells_of(one)])  # fmt: skip
        found = design.table(numbers)
        assert found is not None
        exact = normal.estimate([number for one in numbers for number in one])
        for one, variance in zip(design.drawn, design.spreads, strict=True):
            for cells in cells_of(one):
                off = sum((Fraction(found[i], CELL_PARTS) - exact[i] for i in cells), Fraction(0))
                assert abs(off) <= 1e-5 * (1 + variance**0.5), design


def test_more_draws_are_never_less_exact() -> None:
    """The law of monotony: of all subsets of draws, and all numbers."""
    for rng, design in designs(25, 9):
        wanted = sums(rng, design.sizes)
        known: dict[frozenset[int], list[float] | None] = {}
        every = range(len(design.drawn))
        for chosen in itertools.chain.from_iterable(itertools.combinations(every, n + 1) for n in every):
            part = design_of(
                design.sizes, tuple(design.drawn[i] for i in chosen), tuple(design.spreads[i] for i in chosen)
            )
            assert part is not None
            known[frozenset(chosen)] = variances(part, wanted)
        for fewer, more in itertools.permutations(known, 2):
            before, after = known[fewer], known[more]
            if fewer < more and before is not None:
                assert after is not None
                assert all(a <= b * (1 + 1e-9) for a, b in zip(after, before, strict=True))


def check_what_is_told() -> None:
    """A sum is told where some estimate of it is, and has its variance."""
    for rng, design in designs(60, 77):
        normal = Normal(design)
        for _ in range(3):
            cells = cells_of(plain_sums(rng, design.sizes))[0]
            table = np.zeros((1, *design.sizes))
            table.reshape(-1)[cells] = 1
            found, exact = design.variances(table), normal.variance(cells)
            assert (found is None) == (exact is None), design
            assert found is None or abs(found.sum(axis=0)[0] / float(exact or 0) - 1) < 1e-6, design


def test_what_was_drawn_is_told() -> None:
    check_what_is_told()


def steps(design: Design, monkeypatch: Patch) -> int:
    """Return how often the normal equations are looked at for a table."""
    count, normal = [0], Design._normal

    def counted(self: Design, cells: np.ndarray[Any, Any]) -> Any:
        count[0] += 1
        return normal(self, cells)

    rng = random.Random(2)
    with monkeypatch.context() as patch:
        patch.setattr(Design, "_normal", counted)
        assert design.table([[rng.randrange(PARTS * 1000) for _ in range(one.size)] for one in design.drawn])
    return count[0]


def check_steps(monkeypatch: Patch) -> None:
    """Where draws are of all or of each it is one step and one to see it, of a calendar some, whatever the sizes."""
    each = Partition(tuple(range(365)))
    months, weeks = (
        Partition(tuple(min(11, 12 * day // 365) if by == 12 else day // 7 for day in range(365)))
        for by in (12, 7)
    )
    quarters = Partition(tuple(month // 3 for month in months.groups))
    regions = [Partition(tuple(range(9))), Partition.whole(9)]
    for own, most in (
        ([each, Partition.whole(365)], 4),
        ([each, months, quarters, Partition.whole(365)], 16),
        ([each, months, weeks], 80),
    ):
        drawn = tuple(map(Sums, itertools.product(own, regions)))
        made = Design((365, 9), drawn, tuple(50.0 + 7 * place for place in range(len(drawn))))
        assert steps(made, monkeypatch) <= most


def test_calendars_take_few_steps(monkeypatch: Patch) -> None:
    check_steps(monkeypatch)


def test_sixty_atoms() -> None:
    each, none = (lambda n: Partition(tuple(range(n)))), Partition.whole
    drawn = (
        Sums((each(5), each(4), none(3))),
        Sums((none(5), each(4), each(3))),
        Sums((each(5), none(4), each(3))),
    )
    made = design_of((5, 4, 3), drawn, (200.0, 50.0, 800.0))
    assert made is not None
    normal = Normal(made)
    for wanted in (Sums((each(5), none(4), none(3))), Sums((none(5), none(4), none(3))), drawn[0]):
        found = variances(made, wanted)
        assert found is not None
        exact = normal.variance(cells_of(wanted)[0])
        assert exact is not None
        assert abs(found[0] / float(exact) - 1) < 1e-6
        assert len(set(made.forms(wanted).kinds)) == 1  # type: ignore[union-attr]


def months() -> Partition:
    """Eleven days in months of four, four and three."""
    return Partition(tuple(day // 4 for day in range(11)))


def check_kinds() -> None:
    """A short month is a kind of its own, and so are its days."""
    estimate.kinds_of.cache_clear()
    days = Partition(tuple(range(11)))
    made = design_of((11,), (Sums((days,)), Sums((months(),))), (50.0, 80.0))
    assert made is not None
    normal = Normal(made)
    for wanted, kinds in ((Sums((days,)), 2), (Sums((months(),)), 2), (Sums((Partition.whole(11),)), 1)):
        found = made.forms(wanted)
        assert found is not None
        assert len(set(found.kinds)) == kinds
        exact = [normal.variance(cells) for cells in cells_of(wanted)]
        assert np.allclose(variances(made, wanted), [float(one or 0) for one in exact], rtol=1e-6)  # type: ignore[arg-type]


def test_groups_of_other_sizes_are_of_other_kinds() -> None:
    check_kinds()


def check_equalities(count: int = 30) -> None:
    """Sums of random blocks of one rounded table add up, whatever was drawn; each is near its estimate."""
    for rng, design in designs(count, 21):
        numbers = [[PARTS * rng.randrange(-(10**9), 10**9) + rng.randrange(PARTS) for _ in range(one.size)] for one in design.drawn]  # fmt: skip
        found = design.table(numbers)
        assert found is not None
        cells = rounded(design.sizes, found, 1, CELL_PARTS)
        table = np.array(cells, dtype=object).reshape((1, *design.sizes))
        for _ in range(4):
            coarse = sums(rng, design.sizes)
            parts = cells_of(coarse)
            said = coarse.of(table)[0].tolist()
            assert said == [sum(cells[i] for i in part) for part in parts]
            for number, part, most in zip(said, parts, coarse.blocks(), strict=True):
                off = number * CELL_PARTS - sum(found[i] for i in part)
                assert abs(off) <= most * CELL_PARTS // 2


def test_every_equality_holds_to_the_last_digit() -> None:
    check_equalities()


def alone(place: int, atoms: int) -> Sums:
    """Return the sum of one atom of an axis."""
    return Sums((Partition(tuple(-(atom != place) for atom in range(atoms))),))


def test_what_is_too_much_is_not_worked_out() -> None:
    one = Sums((Partition.whole(MOST_ATOMS + 1),))
    assert design_of((MOST_ATOMS + 1,), (one,), (1.0,)) is None
    some = tuple(alone(place, 100) for place in range(MOST_GROUPINGS + 1))
    assert design_of((100,), some, (1.0,) * len(some)) is None
    assert design_of((100,), some[:-1], (1.0,) * (len(some) - 1)) is not None
    many = tuple(alone(place, MOST_ATOMS) for place in range(11))
    assert design_of((MOST_ATOMS,), many, (1.0,) * 11) is None
    assert design_of((3,), (), ()) is None


@pytest.mark.parametrize(
    ("function", "old", "new", "check"),
    [
        (estimate._branches_of, "precision * sums.kept", "sums.kept", check_variances),
        (Design.forms, "own.append(precision * ", "own.append(", check_variances),
        (_Along.of, "np.take(cells, self._order, axis=axis)", "cells", lambda: check_values(1)),
        (Design.table, "PARTS * so_far", "PARTS * float(so_far)", lambda: check_values(10**15)),
        (_Along.spread, "if self.groups.min() < 0", "if False", check_variances),
        (Design._solved, "is_told & (left <= stop)", "np.ones_like(is_told)", check_what_is_told),
        (estimate._colours, "range(len(each) + 1)", "range(0)", check_kinds),
        (estimate._by_totals, "np.cumsum(tables, axis=axis)", "np.cumsum(tables, axis=1)", check_equalities),
    ],
    ids=["variance of another draw", "weights", "atoms in their own order", "large sums in doubles", "dropped", "what was not found", "kinds by length", "one axis"],
)  # fmt: skip
def test_wrong_estimates(
    monkeypatch: Patch, function: Callable[..., Any], old: str, new: str, check: Callable[[], None]
) -> None:
    plant(monkeypatch, function, (old, new))
    with pytest.raises((AssertionError, TypeError, OverflowError)):
        check()


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        (Design._nearly, "own - step.spread(mean, axis)", "own"),
        (Design._times.func, "precision * sums.size", "sums.size"),  # type: ignore[attr-defined]
        (estimate._Level.told, "counts**2", "counts"),
        (estimate._levels_of, "max(chains, key=len)", "min(chains, key=len)"),
    ],
    ids=["a mean twice", "every draw alike", "no squares", "no levels"],
)
def test_wrong_steps_are_many(monkeypatch: Patch, function: Callable[..., Any], old: str, new: str) -> None:
    plant(monkeypatch, function, (old, new))
    with pytest.raises(AssertionError):
        check_steps(monkeypatch)


def test_numbers_of_too_many_kinds_are_not_told() -> None:
    """Groups that cut across each other are a kind each: their errors would take minutes, and the memory of a table
    for each."""
    rng, atoms = random.Random(1), 100
    fine = Sums((Partition(tuple(range(atoms))),) * 2)

    def across() -> Partition:
        groups = [*range(20), *(rng.randrange(20) for _ in range(atoms - 20))]
        return Partition(tuple(rng.sample(groups, atoms)))

    design = design_of((atoms, atoms), (fine, Sums((across(), across()))), (1.0, 2.0))
    assert design is not None
    wanted = Sums((across(), across()))
    assert design.work(wanted) > MOST_FORMS
    assert design.forms(wanted) is None
    tens = Sums((Partition(tuple(i // 10 for i in range(atoms))),) * 2)
    regular = design_of((atoms, atoms), (fine, tens), (1.0, 2.0))
    assert regular is not None
    assert regular.forms(tens) is not None


# --- rounded ---------------------------------------------------------------------------------------------------------

SIZES = (4, 3, 2)


@pytest.mark.parametrize("unit", [1, 1024])
@pytest.mark.parametrize("large", [0, 2**60])
def test_every_run_is_near_and_of_whole_units(unit: int, large: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        cells = [
            int(one) + large * CELL_PARTS for one in rng.integers(-5000 * CELL_PARTS, 5000 * CELL_PARTS, 24)
        ]
        found = rounded(SIZES, cells, unit, CELL_PARTS)
        assert all(one % unit == 0 for one in found)
        after, before = (np.array(each, dtype=object).reshape(SIZES) for each in (found, cells))
        runs = [[(a, b) for a in range(n) for b in range(a + 1, n + 1)] for n in SIZES]
        for run in itertools.product(*runs):
            part = tuple(slice(a, b) for a, b in run)
            corners = 2 ** sum(a > 0 for a, _ in run)
            off = after[part].sum() * CELL_PARTS - before[part].sum()
            assert abs(off) <= corners * unit * CELL_PARTS // 2


def test_replicas_are_rounded_as_numbers_are() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 5, (50, 4, 3))
    for before, after in zip(noise, rounded_noise(noise, 1), strict=True):
        cells = [round(one * CELL_PARTS) for one in before.ravel().tolist()]
        assert after.ravel().tolist() == rounded((4, 3), cells, 1, CELL_PARTS)
