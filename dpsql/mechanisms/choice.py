"""Choices with exact probabilities: the exponential mechanism, permute-and-flip, and what of the rows a rank needs.

The draw of the exponential mechanism, among very many candidates, n·exp(-gamma·k).

Candidates of one score stand together as an interval: `counts[i]` candidates, each with weight w^`exponents[i]`,
w = exp(-gamma). One uniform real number in [0, 1), of which bits are drawn as they are needed, picks the candidate
by the inverse of the cumulative sums; so neither time nor memory depend on how many candidates there are.

House rules (soundness.md 2.4):

1. Integers and rational bounds alone. A candidate is returned only when it is the one for every real number that
   the bits so far and the bounds of exp allow: the law is exact, whatever the precision.
2. Nothing here is kept, printed or logged: exponents are exact scores of people's rows.

The candidate with the largest score, nearly: permute-and-flip with exact probabilities (McKenna, Sheldon 2020).

Each candidate's coin shows heads with probability exp(-gamma·(best - score)), so that of the best one always; one of
the heads is returned, each as likely as the others. That is the law of the original form, which tosses the coins in a
random order until the first head: order and coins are independent, and the first head in a random order is a uniform
one. Nothing does better for the same epsilon: Pr[i] = E[heads_i / Σ heads].

House rules (soundness.md 2.4):

1. Integers and rational bounds alone: a coin is decided only when it is the same for every probability that the
   bounds of exp allow, and for every real number that begins with the bits drawn so far.
2. The first bytes are asked for in one call, as many as the number of candidates says; only what those leave open,
   with probability below 2^-60 for each candidate, asks for more. They may therefore be drawn before the scores
   are known.
3. Nothing here is kept, printed or logged: scores are exact numbers of people's rows.

A value near a wanted rank, chosen by the exponential mechanism: the score, and what of the data it needs.

Rows have weights; `less` is the weight of the rows below a candidate, w that of the rows at it, n that of all. The
wanted rank is (p·n + offset)/q, so that a quantile is p/q, and the offset-th smallest or largest row has q = 1.

    d(c) = min(T, max(0, q·less - (p·n + offset), (p·n + offset) - q·(less + w)))     the ranks of c miss it by so much
    Pr[c] is proportional to exp(-gamma·d(c))

House rules (soundness.md 1.20):

1. T is public. All candidates that miss by T or more weigh the same, so the rows that miss by less are all that is
   needed of the data: the window.
2. A window is exact: it has no repr of its content, and goes no further than the choice that is made from it.

Values near several wanted ranks of the same rows: the middle one first, then those on either side of it.

Recursive splitting (Kaplan, Schnapp, Stemmer 2022): the middle fraction is chosen among all candidates, the others
among those below and above it, from the rows that are there, at their fraction between those of the ends. What is
chosen at one depth is chosen from disjoint parts of the rows, so a depth costs what one choice does; there are
ceil(log2(k + 1)) of them for k fractions, and each has its part of epsilon (soundness.md 1.21).

A candidate is a step of the lattice with a hash of the row's person after it, so that rows of one value are many
candidates: a value that holds much of the rows would else take them from both sides.

House rules:

1. Bounds of parts are earlier outputs, weights of rows are as they were printed: nothing is scaled anew in a part.
2. A part is chosen from only where every row that could matter there was read; else it is asked for (`Ask`).
3. A part is exact, as windows are: it has no repr of its content, and goes no further than the choices made from it.
"""

from __future__ import annotations

import decimal
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import mul
from typing import ClassVar, Final

from ..records import dataclass
from .discrete_laplace import bounds_of_exp
from .uniform import RandomSource

CLAMP_BITS: Final = 40
"""A candidate that misses by T or more comes out with probability below 2^-40."""


@dataclass(slots=True, repr=False, eq=False)
class Window:
    """The rows of a group near the wanted rank, by value in ascending order: candidate, weight below it, weight.

    The three lists are of one length, a place for each candidate that was read. Candidates are numbered from 0; weights
    are whole, U for a row of whoever has at most R. `total`: the weight of all rows of the group; 0 where it has none.
    """

    candidates: list[int] = field(default_factory=list)
    less: list[int] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    total: int = 0

    def __repr__(self) -> str:
        return "Window(…)"


@dataclass(frozen=True, slots=True)
class Near:
    """Which rows are read: those that miss the rank (p·n + offset)/q by less than `clamp` q-ths, n all rows there."""

    p: int
    q: int
    offset: int
    clamp: int


@dataclass(frozen=True, slots=True)
class RankChoice:
    """One choice among the candidates 0 .. `candidates` - 1; all of it is public.

    A candidate stands for 2^`shift` of the values that can be chosen, from the lowest on. `p`, `q`, `offset`: the
    wanted rank. `clamp`: T. `gamma`: epsilon over twice the score's sensitivity.
    """

    hash_bits: ClassVar[int] = 0
    candidates: int
    shift: int
    p: int
    q: int
    offset: int
    clamp: int
    gamma: Fraction = field(repr=False)

    @property
    def read(self) -> tuple[Near, ...]:
        """What is read of all rows."""
        return (Near(self.p, self.q, self.offset, self.clamp),)

    def intervals(self, window: Window) -> tuple[list[int], list[int]]:
        """Return counts and misses d of the intervals of equal score, which cover all candidates in ascending order."""
        centre, q, clamp = self.p * window.total + self.offset, self.q, self.clamp
        counts: list[int] = []
        misses: list[int] = []
        after, below = 0, window.less[0] if window.candidates else 0
        for candidate, less, weight in zip(window.candidates, window.less, window.weights, strict=True):
            if candidate > after:
                counts.append(candidate - after)
                misses.append(min(clamp, abs(q * less - centre)))
            counts.append(1)
            below = less + weight
            misses.append(min(clamp, max(0, q * less - centre, centre - q * below)))
            after = candidate + 1
        if after < self.candidates:
            counts.append(self.candidates - after)
            misses.append(min(clamp, abs(q * below - centre)))
        return counts, misses

    def step(self, counts: Sequence[int], index: int, place: int) -> int:
        """Return the number, from 0, of the value that has a place in an interval."""
        return (sum(counts[:index]) + place) << self.shift


def clamp_of(scale: Fraction, candidates: int) -> int:
    """Return T for weights exp(-d / `scale`): a candidate that misses by T has less than 2^-40 of all weight."""
    return math.ceil(scale * (log_above(Fraction(candidates)) + CLAMP_BITS * _LN_2))


def log_above(number: Fraction) -> Fraction:
    """Return a rational that is at least ln(number), by less than 10^-20 of it and 10^-20; `number` >= 1."""
    context = decimal.Context(prec=60, rounding=decimal.ROUND_CEILING)
    shown = context.divide(decimal.Decimal(number.numerator), decimal.Decimal(number.denominator))
    return Fraction(context.ln(shown)) * (1 + Fraction(1, 10**30)) + Fraction(1, 10**30)


_LN_2: Final = log_above(Fraction(2))


# --- values near several wanted ranks of the same rows ------------------------------------------------------


HASH_BITS: Final = 12
"""Rows of one value are spread over 2^12 candidates by their persons, over fewer where too many could be read."""


Ask = Callable[[int, int, "tuple[Near, ...]"], Window]
"""Reads the rows of the candidates from .. to .. alone that are near some ranks among them."""
_Pick = Callable[[int, "list[int]", "list[int]", Fraction], "tuple[int, int]"]
"""Chooses for fraction number i: (interval, place), as `choice.choose` does."""


@dataclass(slots=True, repr=False, eq=False)
class _Part:
    """The candidates `low` .. `high`, with rows there: places of the whole, weights below them of the part alone.

    `stretches`: all rows with less + w > a and less < b were read, for each (a, b).
    """

    low: int
    high: int
    rows: Window
    stretches: list[tuple[Fraction, Fraction]]

    def __repr__(self) -> str:
        return "_Part(…)"


@dataclass(frozen=True)
class RankSplit:
    """Choices at several fractions among the candidates 0 .. `candidates` - 1; all of it is public.

    `shares`: at least two, ascending, all different. `width`: the number of the last of the values that can be chosen,
    from 0; 2^`shift` of these are one candidate.
    `scale`: of a choice at one depth, in weight: what a unit may weigh times the depths, over epsilon. `hash_bits`: of
    the row's person, behind the step.
    """

    shares: tuple[Fraction, ...]
    width: int
    shift: int
    scale: Fraction = field(repr=False)
    hash_bits: int = HASH_BITS

    @property
    def candidates(self) -> int:
        """Candidates of the lattice times those that a hash makes of each."""
        return ((self.width >> self.shift) + 1) << self.hash_bits

    @cached_property
    def between(self) -> tuple[Fraction, ...]:
        """Each fraction's place between the two that are chosen before it on either side."""
        found = {middle: (self.shares[middle] - a) / (b - a) for middle, a, b, _ in self._order()}
        return tuple(found[number] for number in range(len(self.shares)))

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """At which depth each fraction is chosen, from 0."""
        found = {middle: depth for middle, _, _, depth in self._order()}
        return tuple(found[number] for number in range(len(self.shares)))

    def _order(self) -> list[tuple[int, Fraction, Fraction, int]]:
        """Return (number, fraction below, fraction above, depth) of each choice."""
        found: list[tuple[int, Fraction, Fraction, int]] = []
        open_ = [(0, len(self.shares), Fraction(0), Fraction(1), 0)]
        while open_:
            first, last, a, b, depth = open_.pop()
            if first < last:
                middle = (first + last) // 2
                found.append((middle, a, b, depth))
                open_ += [
                    (first, middle, a, self.shares[middle], depth + 1),
                    (middle + 1, last, self.shares[middle], b, depth + 1),
                ]
        return found

    def choice(self, share: Fraction, candidates: int) -> RankChoice:
        """Return the choice at a fraction of a part; at its ends, so far inside as MIN and MAX are (1.20)."""
        p, q = share.numerator, share.denominator
        scale = self.scale * max(p, q - p)
        return RankChoice(
            candidates, 0, p, q, self._offset(share), clamp_of(2 * scale, self.candidates), 1 / (2 * scale)
        )

    def _offset(self, share: Fraction) -> int:
        inside = math.ceil(2 * self.scale * log_above(Fraction(20 * self.candidates)))
        return {Fraction(0): inside, Fraction(1): -inside}.get(share, 0)

    def near(self, first: int, last: int, a: Fraction, b: Fraction) -> tuple[Near, ...]:
        """Return what is read of a part between two fractions, for the choices first .. last - 1 there.

        For the one that is made first, all that could matter. The parts of the others are not known yet: twice that.
        """
        found = []
        for number in range(first, last):
            share = (self.shares[number] - a) / (b - a)
            one = self.choice(self.between[number], self.candidates)
            wide = Fraction(one.clamp, one.q) * (1 if number == (first + last) // 2 else 2)
            found.append(
                Near(
                    share.numerator,
                    share.denominator,
                    self._offset(share),
                    math.ceil(wide * share.denominator),
                )
            )
        return tuple(found)

    @cached_property
    def read(self) -> tuple[Near, ...]:
        """What is read of all rows."""
        return self.near(0, len(self.shares), Fraction(0), Fraction(1))

    @property
    def most_read(self) -> int:
        """Most candidates whose rows are read: each has a weight of 1 at least, but for the ends of a stretch."""
        return min(self.candidates, sum(2 * one.clamp // one.q + 2 for one in self.read))

    def values(self, window: Window, pick: _Pick, ask: Ask) -> list[int]:
        """Return the number of the chosen value, from 0, at each fraction, ascending."""
        chosen = [0] * len(self.shares)
        whole = _Part(0, self.candidates - 1, window, _stretches(self.read, window.total))
        open_: list[tuple[int, int, Fraction, Fraction, int, int, _Part | None]] = [
            (0, len(self.shares), Fraction(0), Fraction(1), 0, self.candidates - 1, whole)
        ]
        while open_:
            first, last, a, b, low, high, part = open_.pop()
            if first == last:
                continue
            middle = (first + last) // 2
            if low > high:  # no candidate is left between two choices that stand side by side
                chosen[first:last] = [min(low, self.candidates - 1)] * (last - first)
                continue
            one = self.choice(self.between[middle], high - low + 1)
            if part is None or not _covers(part, one):
                near = self.near(first, last, a, b)
                rows = ask(low, high, near)
                part = _Part(low, high, rows, _stretches(near, rows.total))
            counts, misses = one.intervals(_near_of(part, one))
            interval, place = pick(middle, counts, misses, one.gamma)
            found = chosen[middle] = low + sum(counts[:interval]) + place
            below, above = _split(part, found)
            open_ += [
                (first, middle, a, self.shares[middle], low, found - 1, below),
                (middle + 1, last, self.shares[middle], b, found + 1, high, above),
            ]
        return [(candidate >> self.hash_bits) << self.shift for candidate in chosen]

    def rows_off(self) -> Fraction:
        """Return the worst fraction's b, in weight: Pr[it misses its rank by more than b·ln(depths·N/beta)] <= beta.

        A choice misses the rank that it looks for by its own; what it looks for is as far off as the choices on
        either side of it are, each in proportion.
        """
        made: dict[Fraction, dict[int, Fraction]] = {Fraction(0): {}, Fraction(1): {}}
        worst = Fraction(0)
        for middle, a, b, _ in sorted(self._order(), key=lambda one: one[3]):
            f = self.between[middle]
            parts = dict.fromkeys({*made[a], *made[b], middle}, Fraction(0))
            for weight, end in ((1 - f, a), (f, b)):
                for number, part in made[end].items():
                    parts[number] += weight * part
            parts[middle] += 1
            made[self.shares[middle]] = parts
            off = sum(part * max(self.between[i], 1 - self.between[i]) for i, part in parts.items())
            worst = max(worst, 2 * self.scale * off)
        return worst


def _stretches(near: Sequence[Near], total: int) -> list[tuple[Fraction, Fraction]]:
    """Return between which weights all rows were read, those that meet made one."""
    found: list[tuple[Fraction, Fraction]] = []
    for one in near:
        centre = one.p * total + one.offset
        found.append((Fraction(centre - one.clamp, one.q), Fraction(centre + one.clamp, one.q)))
    joined: list[tuple[Fraction, Fraction]] = []
    for start, end in sorted(found):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _reach(part: _Part, one: RankChoice) -> tuple[Fraction, Fraction]:
    """Return between which weights of a part its rows decide a choice."""
    centre = one.p * part.rows.total + one.offset
    return Fraction(centre - one.clamp, one.q), Fraction(centre + one.clamp, one.q)


def _covers(part: _Part, one: RankChoice) -> bool:
    """Say whether all rows that decide a choice in a part were read."""
    start, end = _reach(part, one)
    start, end = max(start, Fraction(0)), min(end, Fraction(part.rows.total))
    return start >= end or any(a <= start and end <= b for a, b in part.stretches)


def _near_of(part: _Part, one: RankChoice) -> Window:
    """Return the rows of a part that decide a choice, places counted from its first candidate."""
    start, end = _reach(part, one)
    rows = part.rows
    first = max(0, bisect_right(rows.less, start) - 1)
    last = max(first, bisect_left(rows.less, end))
    return Window(
        [place - part.low for place in rows.candidates[first:last]],
        rows.less[first:last],
        rows.weights[first:last],
        rows.total,
    )


def _split(part: _Part, found: int) -> tuple[_Part | None, _Part | None]:
    """Return what is known of the candidates below and above a chosen one; None where it is not how much is there."""
    rows = part.rows
    at = bisect_left(rows.candidates, found)
    below = rows.less[at - 1] + rows.weights[at - 1] if at else 0
    if at < len(rows.candidates) and rows.candidates[at] == found:
        less, upto, after = rows.less[at], rows.less[at] + rows.weights[at], at + 1
    else:
        less, upto, after = rows.less[at] if at < len(rows.candidates) else rows.total, below, at
        if (
            less != upto
        ):  # rows stand between that were not read: the candidate is one of those that T makes alike
            return None, None
    left = Window(rows.candidates[:at], rows.less[:at], rows.weights[:at], less)
    right = Window(
        rows.candidates[after:],
        [one - upto for one in rows.less[after:]],
        rows.weights[after:],
        rows.total - upto,
    )
    shifted = [(a - upto, b - upto) for a, b in part.stretches]
    return _Part(part.low, found - 1, left, part.stretches), _Part(found + 1, part.high, right, shifted)


# --- the draw of the exponential mechanism ------------------------------------------------------------------


FIRST_BYTES: Final = 16
"""Random bytes that decide a choice but with probability below 2^-60: they can be drawn before anything else."""
_MORE_BYTES: Final = 8
_GUARD_BITS: Final = 64
_DIGIT_BITS: Final = 13
_DIGIT: Final = 2**_DIGIT_BITS - 1
POWER_ERROR: Final = 2**20
"""How far a power may be above its lower bound, in units of the last place: see `powers`."""


def choose(
    counts: Sequence[int], exponents: Sequence[int], gamma: Fraction, first: bytes, source: RandomSource
) -> tuple[int, int]:
    """Return (i, j): candidate j of interval i, with probability exp(-gamma·exponents[i]) over the sum of all.

    `first`: uniform bytes, used for this choice alone. `source`: gives more where they leave it open.
    Requires: counts >= 0 and not all 0; exponents >= 0; gamma > 0.
    """
    least = min(exponent for exponent, count in zip(exponents, counts, strict=True) if count)
    above = [max(0, exponent - least) for exponent in exponents]
    bits, drawn = 8 * len(first), int.from_bytes(first, "big")
    while True:
        found = _decided(counts, above, gamma, drawn, bits)
        if found is not None:
            return found
        more = source.random_bytes(_MORE_BYTES)
        bits, drawn = bits + 8 * len(more), drawn << (8 * len(more)) | int.from_bytes(more, "big")


def _decided(
    counts: Sequence[int], exponents: Sequence[int], gamma: Fraction, drawn: int, bits: int
) -> tuple[int, int] | None:
    """Return the candidate that all real numbers in [drawn, drawn + 1) / 2^bits pick, None if they differ.

    With S_i the true cumulative sums times 2^precision and c_i those of the lower bounds, c_i <= S_i <= c_i + slack.
    """
    candidates = sum(counts)
    precision = -(-(bits + candidates.bit_length() + _GUARD_BITS) // 64) * 64
    weights = powers(gamma, exponents, precision)
    sums = list(accumulate(map(mul, counts, weights)))
    total, slack = sums[-1], candidates * POWER_ERROR
    low, high = drawn * total, (drawn + 1) * (total + slack)  # of the real number times S, times 2^bits
    index = bisect_right(sums, low >> bits)
    if index == len(sums) or not weights[index]:
        return None
    before = sums[index - 1] if index else 0
    surely_before = before + slack if index else 0
    least = (low - (surely_before << bits)) // (weights[index] + POWER_ERROR << bits)
    most = (high - (before << bits) - 1) // (weights[index] << bits)
    return (index, least) if 0 <= least == most < counts[index] else None


def powers(gamma: Fraction, exponents: Sequence[int], bits: int) -> list[int]:
    """Return for each k an integer p with p <= exp(-gamma·k)·2^bits <= p + 2^20.

    k is written in digits of 13 bits, with a table of powers for each digit. In a table one lower bound is multiplied
    on and rounded down: with f the factor's bound, less than 3 below it, the error grows by less than 4 a step, hence
    stays below 2^15; a product of two powers adds their errors and 1. Eight digits make less than 2^20.
    """
    found = [1 << bits] * len(exponents)
    rest, place = list(exponents), 0
    while (most := max(rest)) > 0:
        if place == 8 * _DIGIT_BITS:
            raise ValueError("the exponents are too large")
        table = _table(gamma * 2**place, min(_DIGIT_BITS, most.bit_length()), bits)
        powers_here = [table[k & _DIGIT] for k in rest]
        found = [p * q >> bits for p, q in zip(found, powers_here, strict=True)] if place else powers_here
        rest, place = [k >> _DIGIT_BITS for k in rest], place + _DIGIT_BITS
    return found


@lru_cache(maxsize=64)
def _table(gamma: Fraction, size: int, bits: int) -> list[int]:
    """Return lower bounds of exp(-gamma·j)·2^bits for j = 0 .. 2^size - 1."""
    digits = math.ceil(bits * 0.30103) + 20  # so that the bound of exp itself is off by less than 1
    factor = math.floor(bounds_of_exp(gamma, digits)[0] * 2**bits)
    table = [1 << bits]
    for _ in range(2**size - 1):
        table.append(table[-1] * factor >> bits)
    return table


def coin(bounds: Callable[[int], tuple[Fraction, Fraction]], source: RandomSource) -> bool:
    """Return True with a probability p of which `bounds(b)` gives rational bounds, at most 2^-b apart.

    A uniform real number is compared with p; bits are drawn until it is certainly on one side.
    """
    bits, drawn = 0, 0
    while True:
        more = source.random_bytes(_MORE_BYTES)
        bits, drawn = bits + 8 * len(more), drawn << (8 * len(more)) | int.from_bytes(more, "big")
        low, high = bounds(bits)
        if Fraction(drawn + 1, 2**bits) <= low:
            return True
        if Fraction(drawn, 2**bits) >= high:
            return False


# --- the candidate with the largest score, nearly -----------------------------------------------------------


_COIN_BYTES: Final = 8
_PICK_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class FlipChoice:
    """One choice among the candidates 0 .. `candidates` - 1 by their weights; all of it is public.

    `gamma`: epsilon over what one unit may weigh in all.
    """

    hash_bits: ClassVar[int] = 0
    shift: ClassVar[int] = 0
    candidates: int
    gamma: Fraction = field(repr=False)

    def scores(self, window: Window) -> list[int]:
        """Return the weights of all candidates; those without a row have none."""
        found = [0] * self.candidates
        for candidate, weight in zip(window.candidates, window.weights, strict=True):
            found[candidate] = weight
        return found


def first_bytes_of(candidates: int) -> int:
    """Return how many random bytes a choice among so many candidates begins with."""
    return candidates * _COIN_BYTES + _PICK_BYTES


def permute_and_flip(scores: Sequence[int], gamma: Fraction, source: RandomSource) -> int:
    """Return the place of a candidate in `scores`, by permute-and-flip at gamma.

    `gamma`: epsilon over the scores' sensitivity, if with one unit more no score falls and none rises by more than
    the sensitivity (or the other way round); epsilon over twice that if they may move either way.
    Requires: scores not empty, integers of any size within 2^100 of each other; gamma > 0.
    """
    best = max(scores)
    behind = [best - score for score in scores]
    first = source.random_bytes(first_bytes_of(len(scores)))
    distances = sorted(set(behind))
    bits = 8 * _COIN_BYTES
    precision = bits + _GUARD_BITS
    below = dict(zip(distances, powers(gamma, distances, precision), strict=True))
    heads = []
    for candidate, distance in enumerate(behind):
        drawn = int.from_bytes(first[candidate * _COIN_BYTES : (candidate + 1) * _COIN_BYTES], "big")
        shown = _compared(drawn, bits, below[distance], precision, distance)
        if _tossed(drawn, gamma, distance, source) if shown is None else shown:
            heads.append(candidate)
    return heads[_picked(len(heads), first[-_PICK_BYTES:], source)]


def _compared(drawn: int, bits: int, below: int, precision: int, distance: int) -> bool | None:
    """Say whether all real numbers in [drawn, drawn + 1) / 2^bits are below exp(-gamma·distance), or none; else None.

    `below`: the lower bound of `powers`, of which no part is missing where nothing is behind.
    """
    if distance == 0 or (drawn + 1) << (precision - bits) <= below:
        return True
    return False if drawn << (precision - bits) >= below + POWER_ERROR else None


def _tossed(drawn: int, gamma: Fraction, distance: int, source: RandomSource) -> bool:
    """Return a coin that its first bits left open: more of them, and sharper bounds, until it is decided."""
    bits = 8 * _COIN_BYTES
    while True:
        drawn = drawn << (8 * _MORE_BYTES) | int.from_bytes(source.random_bytes(_MORE_BYTES), "big")
        bits += 8 * _MORE_BYTES
        precision = bits + _GUARD_BITS
        (below,) = powers(gamma, [distance], precision)
        shown = _compared(drawn, bits, below, precision, distance)
        if shown is not None:
            return shown


def _picked(heads: int, first: bytes, source: RandomSource) -> int:
    """Return a uniform integer below `heads`: floor(U·heads), once the bits drawn of U decide it."""
    bits, drawn = 8 * len(first), int.from_bytes(first, "big")
    while drawn * heads >> bits != ((drawn + 1) * heads - 1) >> bits:
        drawn = drawn << (8 * _MORE_BYTES) | int.from_bytes(source.random_bytes(_MORE_BYTES), "big")
        bits += 8 * _MORE_BYTES
    return drawn * heads >> bits
