"""Choices at several fractions: their joint law by enumeration, what is read for them, and ways to be wrong.

All databases of a few rows on a few values are compared with all that have one unit more. What is chosen is
enumerated through the very code that chooses, and compared with a second writing of it over all rows.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest

from dpsql.mechanisms import Near, RankSplit, Window
from dpsql.mechanisms import choice as rank_choice
from dpsql.tests.laws.planting import plant
from dpsql.tests.mechanisms.tape import Choices, enumerate_outcomes

Patch = pytest.MonkeyPatch
Rows = tuple[tuple[int, int], ...]
"""(candidate, weight); candidates are values, without a hash behind them."""
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
ODD = (Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1))
EPSILON = Fraction(1)


def split_of(shares: Sequence[Fraction], values: int, weight: int = 1) -> RankSplit:
    """Return choices for epsilon 1 where a unit weighs so much."""
    return RankSplit(tuple(shares), values - 1, 0, weight * len(shares).bit_length() / EPSILON, 0)


def read(rows: Rows, near: Sequence[Near]) -> Window:
    """Return the rows near some ranks, as the printed SQL does."""
    total, found = sum(weight for _, weight in rows), Window()
    found.total = total
    for value in sorted({value for value, _ in rows}):
        less = sum(weight for other, weight in rows if other < value)
        own = sum(weight for other, weight in rows if other == value)
        centres = ((one, one.p * total + one.offset) for one in near)
        if any(one.q * (less + own) - c > -one.clamp and one.q * less - c < one.clamp for one, c in centres):
            found.candidates.append(value)
            found.less.append(less)
            found.weights.append(own)
    found.total = total if found.candidates else 0
    return found


def among(rows: Rows, low: int, high: int) -> Rows:
    return tuple((value, weight) for value, weight in rows if low <= value <= high)


def run(
    split: RankSplit, rows: Rows, choices: Choices, asked: list[tuple[int, int]] | None = None
) -> tuple[int, ...]:
    def pick(_: int, counts: list[int], misses: list[int], gamma: Fraction) -> tuple[int, int]:
        places = [(i, j) for i, count in enumerate(counts) for j in range(count)]
        weights = [math.exp(-float(gamma) * misses[i]) for i, _ in places]
        return places[choices.choose([weight / math.fsum(weights) for weight in weights])]

    def ask(low: int, high: int, near: tuple[Near, ...]) -> Window:
        if asked is not None:
            asked.append((low, high))
        return read(among(rows, low, high), near)

    return tuple(split.values(read(rows, split.read), pick, ask))


def law_over(split: RankSplit, rows: Rows) -> dict[Any, float]:
    law, left = enumerate_outcomes(lambda choices: run(split, rows, choices), 0)
    assert left == 0
    return law


def reference(
    split: RankSplit, rows: Rows, first: int, last: int, a: Fraction, b: Fraction, low: int, high: int
) -> dict[Any, float]:
    """Return the joint law of the choices first .. last - 1, from all rows and by the definition."""
    if first == last:
        return {(): 1.0}
    if low > high:
        return {(low,) * (last - first): 1.0}
    middle = (first + last) // 2
    f = (split.shares[middle] - a) / (b - a)
    one, here = split.choice(f, high - low + 1), among(rows, low, high)
    total, weights = sum(weight for _, weight in here), []
    for value in range(low, high + 1):
        less = sum(weight for other, weight in here if other < value)
        upto = sum(weight for other, weight in here if other <= value)
        centre = one.p * total + one.offset
        weights.append(
            math.exp(-float(one.gamma) * min(one.clamp, max(0, one.q * less - centre, centre - one.q * upto)))
        )
    law: dict[Any, float] = {}
    for value, weight in zip(range(low, high + 1), weights, strict=True):
        below = reference(split, rows, first, middle, a, split.shares[middle], low, value - 1)
        above = reference(split, rows, middle + 1, last, split.shares[middle], b, value + 1, high)
        for (left, p), (right, q) in itertools.product(below.items(), above.items()):
            law[*left, value, *right] = law.get((*left, value, *right), 0) + p * q * weight / math.fsum(
                weights
            )
    return law


def databases(values: int, most: int) -> Iterator[tuple[int, ...]]:
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(range(values), size)


def worst_ratio(split: RankSplit, pairs: list[tuple[Rows, Rows]]) -> float:
    laws: dict[Rows, dict[Any, float]] = {}
    for rows in itertools.chain.from_iterable(pairs):
        if rows not in laws:
            laws[rows] = law_over(split, rows)
    worst = 0.0
    for here, there in pairs:
        assert laws[here].keys() == laws[there].keys()
        worst = max(worst, *(abs(math.log(laws[here][value] / laws[there][value])) for value in laws[here]))
    return worst


def added(values: int, most: int, own: Sequence[Rows]) -> list[tuple[Rows, Rows]]:
    """Return databases beside those with one unit more, whose rows are one of `own`."""
    found = []
    for places in databases(values, most):
        rows = tuple((place, own[0][0][1]) for place in places)
        found += [(rows, tuple(sorted((*rows, *unit)))) for unit in own]
    return found


ONE_ROW: list[Rows] = [((value, 1),) for value in range(4)]
SEVERAL: list[Rows] = [((0, 2), (3, 2)), ((1, 2), (2, 2)), ((0, 1), (1, 1), (2, 1), (3, 1)), ((2, 4),)]
"""Units with the weight 4 in all, on one value or over all parts."""


@pytest.mark.parametrize("shares", [QUARTILES, ODD, QUARTILES[:2]], ids=["quartiles", "odd", "two"])
def test_the_code_has_the_law_of_the_definition(shares: tuple[Fraction, ...]) -> None:
    split = split_of(shares, 4)
    for rows in ((), (0,), (1, 1, 2), (0, 0, 0, 3), (0, 1, 2, 3, 3)):
        weighed = tuple((value, 1 + value % 2) for value in rows)
        expected = reference(split, weighed, 0, len(shares), Fraction(0), Fraction(1), 0, 3)
        found = law_over(split, weighed)
        merged: dict[Any, float] = {}
        for outcome, p in expected.items():
            shown = tuple(min(3, value) for value in outcome)
            merged[shown] = merged.get(shown, 0) + p
        assert merged.keys() == found.keys()
        for outcome, p in merged.items():
            assert found[outcome] == pytest.approx(p, rel=1e-9)


def test_one_more_row_changes_the_joint_law_by_epsilon_at_most() -> None:
    worst = worst_ratio(split_of(QUARTILES, 4), added(4, 4, ONE_ROW))
    assert 0.5 < worst <= EPSILON + 1e-12
    assert worst_ratio(split_of(ODD[1:3], 4), added(4, 4, ONE_ROW)) <= EPSILON + 1e-12


def test_a_unit_in_many_parts_changes_it_no_more() -> None:
    worst = worst_ratio(split_of(QUARTILES, 4, weight=4), added(4, 3, SEVERAL))
    assert 0.2 < worst <= EPSILON + 1e-12


def test_replacing_a_unit_at_twice_the_weight() -> None:
    split = split_of(QUARTILES, 4, weight=2)
    pairs = []
    for places in databases(4, 3):
        rows = tuple((place, 1) for place in places)
        pairs += [
            (tuple(sorted((*rows, (a, 1)))), tuple(sorted((*rows, (b, 1)))))
            for a, b in itertools.combinations(range(4), 2)
        ]
    assert worst_ratio(split, pairs) <= EPSILON + 1e-12


# --- known ways to be wrong ---------------------------------------------------------------------------------


def test_epsilon_is_divided_among_the_depths() -> None:
    whole = RankSplit(QUARTILES, 3, 0, Fraction(1), 0)
    assert worst_ratio(whole, added(4, 4, ONE_ROW)) > EPSILON


def test_forget_max_p_q_less_p(monkeypatch: Patch) -> None:
    split = split_of((Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)), 4)
    pairs = added(4, 3, ONE_ROW)
    assert worst_ratio(split, pairs) <= EPSILON
    plant(monkeypatch, RankSplit.choice, ("self.scale * max(p, q - p)", "self.scale * min(p, q - p)"))
    assert worst_ratio(split, pairs) > EPSILON


def _check_parts(monkeypatch: Patch) -> None:
    """At each depth, no candidate and no weight is in two of the parts that are chosen from."""
    split, drawn = split_of(tuple(Fraction(i, 8) for i in range(1, 8)), 40), random.Random(5)
    rows = tuple(sorted((drawn.randrange(40), drawn.randrange(1, 4)) for _ in range(60)))
    parts: list[tuple[int, int, int]] = []
    original = rank_choice._near_of

    def near_of(part: Any, one: Any) -> Window:
        assert one.candidates == part.high - part.low + 1
        parts.append((part.low, part.high, part.rows.total))
        return original(part, one)

    with monkeypatch.context() as patch:
        patch.setattr(rank_choice, "_near_of", near_of)
        for _ in range(50):
            depths: list[int] = []

            def pick(number: int, counts: list[int], misses: list[int], gamma: Fraction) -> tuple[int, int]:
                depths.append(split.depths[number])  # noqa: B023
                return drawn.choice([(i, drawn.randrange(count)) for i, count in enumerate(counts) if count])

            parts.clear()
            values = split.values(
                read(rows, split.read), pick, lambda low, high, near: read(among(rows, low, high), near)
            )
            assert values == sorted(values)
            for depth in range(3):
                here = sorted(part for part, at in zip(parts, depths, strict=True) if at == depth)
                assert all(one[1] < other[0] for one, other in itertools.pairwise(here))
                assert all(weight == sum(w for _, w in among(rows, *ends)) for *ends, weight in here)


def test_the_parts_of_a_depth_are_disjoint(monkeypatch: Patch) -> None:
    _check_parts(monkeypatch)


def test_parts_that_overlap_by_one(monkeypatch: Patch) -> None:
    """Candidates, or the rows of the chosen one, on both sides of it."""
    with monkeypatch.context() as patch:
        plant(
            patch, RankSplit.values,
            ("low, found - 1, below)", "low, found, below)"), ("found + 1, high, above)", "found, high, above)"),
        )  # fmt: skip
        with pytest.raises(AssertionError):
            _check_parts(monkeypatch)
    with monkeypatch.context() as patch:
        plant(patch, rank_choice._split, ("+ rows.weights[at], at + 1", ", at"))
        with pytest.raises(AssertionError):
            _check_parts(monkeypatch)


# --- what is read -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_what_is_read_is_all_that_decides(seed: int, monkeypatch: Patch) -> None:
    """With so few rows read that some are missed, every choice is offered what all rows would offer."""
    monkeypatch.setattr(rank_choice, "clamp_of", lambda scale, candidates: math.ceil(scale))
    monkeypatch.setattr(
        RankSplit, "_offset", lambda self, share: {Fraction(0): 1, Fraction(1): -1}.get(share, 0)
    )
    shares = tuple(Fraction(i, 9) for i in range(10))
    drawn = random.Random(seed)
    asked: list[tuple[int, int]] = []
    for round_ in range(60):
        split = RankSplit(shares, 499, 0, Fraction(drawn.choice((1, 3, 20))), 0)
        heavy = drawn.choice((1, 1, 40))
        rows = tuple((drawn.randrange(500), drawn.randrange(1, 4) * (heavy if drawn.random() < 0.1 else 1))
                     for _ in range(drawn.choice((0, 1, 5, 300))))  # fmt: skip
        seeds = drawn.random()

        def offered(near: tuple[Near, ...], answered: bool) -> list[Any]:
            said: list[Any] = []
            dice = random.Random(seeds)  # noqa: B023

            def pick(number: int, counts: list[int], misses: list[int], gamma: Fraction) -> tuple[int, int]:
                flat = [miss for count, miss in zip(counts, misses, strict=True) for _ in range(count)]
                said.append((number, gamma, flat))
                best = min(flat)
                near = (
                    [place for place, miss in enumerate(flat) if miss <= best]
                    if dice.random() < 0.8
                    else range(len(flat))
                )
                wanted = dice.choice(list(near))
                for i, count in enumerate(counts):
                    if wanted < count:
                        return i, wanted
                    wanted -= count
                raise AssertionError

            def ask(low: int, high: int, near: tuple[Near, ...]) -> Window:
                assert answered
                asked.append((low, high))
                return read(among(rows, low, high), near)  # noqa: B023

            said.append(split.values(read(rows, near), pick, ask))  # noqa: B023
            return said

        everything = tuple(Near(one.p, one.q, one.offset, 10**9) for one in split.read)
        found = offered(split.read, True)
        with monkeypatch.context() as patch:
            patch.setitem(split.__dict__, "read", everything)
            assert found == offered(everything, False), round_
    assert asked, "nothing was missed: the test says nothing about what is asked for"


def test_a_miss_is_rare_and_its_answer_small() -> None:
    """Of many spread rows all is read at once; what is asked of one part is no more than what its choices need."""
    shares = tuple(Fraction(i, 20) for i in range(1, 20))
    split, drawn = split_of(shares, 2**20), random.Random(1)
    rows = tuple(sorted({drawn.randrange(2**20): 1 for _ in range(3000)}.items()))
    less = list(itertools.accumulate((weight for _, weight in rows), initial=0))[:-1]
    window = Window([v for v, _ in rows], less, [w for _, w in rows], len(rows))

    def pick(_: int, counts: list[int], misses: list[int], gamma: Fraction) -> tuple[int, int]:
        weights = [
            n * math.exp(-float(gamma) * (miss - min(misses))) for n, miss in zip(counts, misses, strict=True)
        ]
        (i,) = drawn.choices(range(len(counts)), weights)
        return i, drawn.randrange(counts[i])

    def never(low: int, high: int, near: tuple[Near, ...]) -> Window:
        raise AssertionError("something was missed")

    for _ in range(5):
        assert len(split.values(window, pick, never)) == 19


@pytest.mark.parametrize(
    "shares", [QUARTILES, ODD, tuple(Fraction(i, 33) for i in range(1, 33))], ids=["3", "4", "32"]
)
def test_depths_fractions_and_bounds(shares: tuple[Fraction, ...]) -> None:
    split = split_of(shares, 1000)
    assert max(split.depths) + 1 == math.ceil(math.log2(len(shares) + 1)) == len(shares).bit_length()
    assert all(0 <= share <= 1 for share in split.between)
    assert split.most_read <= split.candidates
    assert 0 < split.rows_off() <= 2 * split.scale * (max(split.depths) + 1)


def test_the_bar_of_a_fraction_adds_up_what_it_rests_on() -> None:
    """Quartiles: the outer two rest on the middle one, at half of what it is off."""
    split = split_of(QUARTILES, 100)
    assert split.between == (Fraction(1, 2),) * 3
    assert split.rows_off() == 2 * split.scale * (Fraction(1, 2) + Fraction(1, 2) * Fraction(1, 2))


def test_a_candidate_has_the_bits_of_a_person() -> None:
    split = RankSplit(QUARTILES, 120, 2, Fraction(2))
    assert split.candidates == 31 * 4096
    rows = Window([17 * 4096 + 5], [0], [10**6], 10**6)

    def pick(_: int, counts: list[int], misses: list[int], gamma: Fraction) -> tuple[int, int]:
        return misses.index(min(misses)), 0

    assert split.values(rows, pick, lambda *_: Window())[1] == 17 * 4


def test_a_part_shows_nothing() -> None:
    part = rank_choice._Part(0, 1, Window(), [])
    assert repr(part) == str(part) == "_Part(…)"
