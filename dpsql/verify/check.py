"""`verify`: a certificate against facts, a line for each measurement that was proved; and what its draw loses.

The laws, from how far one owner moves numbers to what a draw loses: neighbours, several owners together, and the laws.

Each law has its premise as an inequality between the certificate's figures and a `Move` that was derived,
decided in rationals, or in 60 digits with what was rounded added on the safe side (soundness.md 1.1, 1.7,
1.19-1.25).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import comb, isqrt

from sqlglot import exp

from dpsql.verify.certificate import (
    VERSION,
    Certificate,
    Charge,
    Facts,
    Groups,
    Measurement,
    Query,
    Release,
    Threshold,
)
from dpsql.verify.engines import DuckDB, Postgres, Spark
from dpsql.verify.lemmas import Lemmas, Move, Part
from dpsql.verify.periods import Periods
from dpsql.verify.read import Dialect, Reader, columns_of
from dpsql.verify.relations import Relations
from dpsql.verify.terms import Pool, Refused, Term
from dpsql.verify.total import Total
from dpsql.verify.two_owners import References
from dpsql.verify.values import Number, Values
from dpsql.verify.windows import Windows

_TOGETHER = 10_000
"""More persons than a promise is made to together; laws count up to it."""


@dataclass(frozen=True)
class Checked:
    """What was derived of one measurement: the lemma, rows of an owner (R), reach of a row, how far neighbours are
    apart (derived, and as claimed), the law, and what the draw loses (epsilon, or rho under zCDP)."""

    release: int
    measurement: int
    coordinates: str
    lemma: str
    rows: int
    reach: Number
    moved: Number
    claimed: Fraction
    law: str
    loss: Fraction


@dataclass(frozen=True)
class Verified:
    """All lines of a certificate, and what they cost together."""

    lines: tuple[Checked, ...]
    charge: Charge


def verify(certificate: Certificate, facts: Facts) -> Verified:
    """Proves that a statement loses no more than its charge, from its queries' text and from facts; or raises
    Refused.

    Claims: by soundness.md 3.1 the losses of draws add up, and so do those of releases.
    """
    if certificate.version != VERSION:
        raise Refused("read: a certificate of this version", str(certificate.version)[:20])
    if not 1 <= facts.together <= _TOGETHER:
        raise Refused("facts: a number of persons together", str(facts.together)[:20])
    lines: list[Checked] = []
    zcdp = facts.accounting == "zcdp"
    for number, release in enumerate(certificate.releases):
        try:
            lines += _Release(number, release, facts).lines()
        except RecursionError as error:
            raise Refused("read: the text is not too deep") from error
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise Refused("read: a form that a rule expects", type(error).__name__) from error
    charges = [one.charge for one in certificate.releases]
    _covers("laws: releases cost no more than the statement", certificate.charge, charges, zcdp)
    return Verified(tuple(lines), certificate.charge)


def _covers(rule: str, charge: Charge, parts: Sequence[Charge], zcdp: bool) -> None:
    epsilon = sum((one.epsilon for one in parts), Fraction(0))
    rho = sum((one.rho for one in parts), Fraction(0))
    delta = sum((one.delta for one in parts), Fraction(0))
    spent = rho > charge.rho if zcdp else epsilon > charge.epsilon or rho > 0
    if spent or delta > charge.delta:
        raise Refused(rule, f"epsilon {epsilon}, rho {rho}, delta {delta}")


class _Release:
    """One release: its queries are read over one pool of terms."""

    def __init__(self, number: int, release: Release, facts: Facts) -> None:
        self.number = number
        self.release = release
        has_periods = facts.calendar is not None or release.reach is not None
        self.periods = Periods(facts, release.reach) if has_periods else None
        self.facts = facts = facts if self.periods is None else self.periods.facts
        self.pool = Pool()
        self.dialect = _dialect(facts)
        self.values = Values(self.pool, self.dialect, facts)
        self.reader = Reader(self.pool, self.dialect, facts, self.values.type)
        self.values.checks = self.reader.checks
        self.relations = Relations(self.pool, self.values, facts)
        self.lemmas = Lemmas(self.pool, self.values, self.relations, release.groups.drawn)
        self.total = Total(self.values, self.dialect)
        is_looked_up = release.reach is None or release.reach.by == "person"
        self.references = References(self.relations, is_looked_up=is_looked_up)

    def lines(self) -> list[Checked]:
        """Every measurement is read from a query, and no more than its columns and the keys leave the engine."""
        release, found = self.release, []
        if (release.groups.kind == "found") != (release.threshold is not None):
            raise Refused("laws: found groups are tested")
        if (release.groups.kind == "one") != (not release.keys):
            raise Refused("laws: one group has no keys")
        if (drawn := release.groups.drawn) is not None and (release.groups.kind != "declared" or drawn < 1):
            raise Refused("laws: how many groups are drawn is said of a declared list")
        parsed = [self.reader.parse(query.sql) for query in release.queries]
        parsed = parsed if self.periods is None else self.periods.plain(parsed)
        trees = [self._read(query, tree) for query, tree in zip(release.queries, parsed, strict=True)]
        self.values.spells_doubles = self.total.spells_doubles
        for query, (tree, top) in zip(release.queries, trees, strict=True):
            found += self._query(query, tree, top)
        if sorted(line.measurement for line in found) != list(range(len(release.measurements))):
            raise Refused("laws: a measurement is read from one query")
        shares = [one.share for one in release.measurements]
        zcdp = self.facts.accounting == "zcdp"
        _covers("laws: draws cost no more than the release", release.charge, shares, zcdp)
        return found

    def _read(self, query: Query, tree: exp.Expression) -> tuple[exp.Expression, Term]:
        """A query's tree and relation, of which no expression fails on any row."""
        self.reader.words = query.parameters
        tree = self.lemmas.unlisted(self.reader, tree, self.release.keys)
        top = self.reader.tree(tree)
        self.total.relation(top)
        self.references.check(top)
        return tree, top

    def _query(self, query: Query, tree: exp.Expression, top: Term) -> list[Checked]:
        self.reader.words = query.parameters
        measurements = [self.release.measurements[number] for number in query.measurements]
        if any(one.is_of_values or one.law.name == "rank" for one in measurements):
            [number], [measurement] = query.measurements, measurements
            windows = Windows(self.pool, self.values, self.lemmas, self.reader)
            move = windows.move(tree, measurement, self.release, query.part)
            return [self._line(number, measurement, move)]
        columns = [name for one in measurements for mask in one.columns for name in mask]
        if sorted([*columns, *self.release.keys]) != sorted(columns_of(top)):
            raise Refused(
                "laws: what leaves the engine is a key or a number with noise", ", ".join(columns_of(top))
            )
        counted = self._counted(measurements)
        parts = self.lemmas.parts(top, self.release.keys, counted)
        self.lemmas.shown(top, parts, counted)
        return [
            self._line(number, one, self._move(one, parts))
            for number, one in zip(query.measurements, measurements, strict=True)
        ]

    def _counted(self, measurements: Sequence[Measurement]) -> tuple[str, int] | None:
        """The column that counts people for a threshold, where a query has it, and the least that is told."""
        threshold = self.release.threshold
        if threshold is None:
            return None
        counted = self.release.measurements[threshold.counted]
        if counted not in measurements or len(counted.columns) != 1 or len(counted.columns[0]) != 1:
            return None
        return counted.columns[0][0], threshold.minimum_units

    def _move(self, measurement: Measurement, parts: Sequence[Part]) -> Move:
        if measurement.law.name == "box" or (measurement.law.name == "gaussian" and measurement.reaches):
            return self.lemmas.boxed(parts, measurement.columns, measurement.reaches)
        return self.lemmas.move(parts, [name for mask in measurement.columns for name in mask])

    def _line(self, number: int, measurement: Measurement, move: Move) -> Checked:
        names = [name for mask in measurement.columns for name in mask]
        threshold = self.release.threshold
        threshold = threshold if threshold is not None and threshold.counted == number else None
        alone = len(names) == 1 and not self.release.keys
        if measurement.law.name == "flip" and not measurement.is_of_values:
            move = self.lemmas.score(move, measurement, self.release.groups.chosen)
        if threshold is not None:
            self._people(move, measurement, threshold.tau - threshold.minimum_units)
        if measurement.law.name == "root":
            moved = distance_of_root(measurement, move, self.facts, self.release.groups)
        else:
            moved = distance(measurement, move, self.facts, alone)
        by_several = threshold is not None and move.in_group > 1
        spent = loss(measurement, moved, self.facts, threshold, bool(self.release.keys), by_several)
        share = measurement.share
        within = spent.rho <= share.rho if self.facts.accounting == "zcdp" else spent.epsilon <= share.epsilon
        if not within or spent.delta > share.delta:
            raise Refused("laws: a draw loses no more than its share", f"{spent} of {share}"[:300])
        if threshold is not None and threshold.delta > share.delta:
            raise Refused("laws: a draw loses no more than its share", "delta")
        lost = spent.rho if self.facts.accounting == "zcdp" else spent.epsilon
        return Checked(
            self.number,
            number,
            " ".join(names),
            move.lemma,
            move.rows,
            move.reach,
            moved,
            measurement.sensitivity,
            measurement.law.name,
            lost,
        )

    def _people(self, move: Move, measurement: Measurement, bound: int) -> None:
        """Premise of a threshold: one owner moves each group's count by one at most, upwards; or, of rows of two
        owners, counts in whole steps; `tau - m` is the law's bound."""
        by_one = (move.in_group <= 1 and move.monotone) or (move.lemma == "lookup" and move.reach == 1)
        if not by_one or bound != measurement.law.bound:
            raise Refused("laws: a threshold counts people, each once a group")


def _dialect(facts: Facts) -> Dialect:
    dialects: dict[str, type[Dialect]] = {"duckdb": DuckDB, "postgres": Postgres, "spark": Spark}
    if facts.engine not in dialects:
        raise Refused("read: a dialect with a reader", facts.engine)
    return dialects[facts.engine]()


_UP, _DOWN = Context(prec=60, rounding=ROUND_CEILING), Context(prec=60, rounding=ROUND_FLOOR)
_SLACK = Decimal(1).scaleb(-50)


def distance(measurement: Measurement, move: Move, facts: Facts, alone: bool) -> Number:
    """How far neighbours are apart, in what the law measures.

    In L1: removing or adding an owner, the owner's part; replacing one, twice that, or, of one coordinate without
    groups, the length of the interval that a part lies in, as both parts do. In squared L2: at most the square of
    L1, and L1 times the most in one group; replacing twice that where each coordinate's parts have one sign, else
    four times. Of k owners together there are k steps. Where each coordinate stays in an interval, a group that `a`
    owners who come or go are in moves by `min(span, a·in_group)`, and all of them are in `n·rows` groups (V11)."""
    replaced, together = facts.neighbours == "replace-one", facts.together
    if measurement.law.name in ("gaussian", "thresholded"):
        square = min(move.l1 * move.l1, move.l1 * move.in_group)
        square = square if move.squared is None else min(square, move.squared)
        if replaced:
            square = square * (2 if move.one_sign else 4)
            square = min(square, (move.high - move.low) ** 2) if alone else square
        square = together**2 * square
        if move.span is not None:
            changed = together * (2 if replaced else 1)
            each = [Fraction(min(move.span, a * move.in_group) ** 2, a) for a in range(1, changed + 1)]
            square = min(square, move.span**2 if alone else changed * move.rows * max(each))
        return square
    total = move.l1
    if replaced:
        total = (
            min(2 * total, move.high - move.low) if alone and measurement.law.name != "flip" else 2 * total
        )
    total = together * total
    return min(total, move.span) if alone and move.span is not None else total


_MOST_PLACES = 1024


def distance_of_root(measurement: Measurement, move: Move, facts: Facts, groups: Groups) -> Number:
    """How far neighbours' running sums by square root are apart, squared (V21). Premise: numbers of N groups of a list
    that is fixed before are drawn at most, with one sigma. Conclusion: `l1²·Σ c_k²` over k < N; replaced, twice that of
    one sign, else four times; of k owners together k² times. Why: the map is applied to the groups' exact numbers
    before noise, `c_k = floor(256·C(2k, k)/4^k + 1/2)`, and none of its columns is longer than the first."""
    places = groups.drawn
    if groups.kind != "declared" or places is None or not 1 <= places <= _MOST_PLACES:
        raise Refused("laws: a square root is of a declared list, and of how many groups is said")
    if measurement.reaches or move.span is not None:
        raise Refused("laws: a square root is of counts and sums")
    column = sum(((2 * 256 * comb(2 * k, k) + 4**k) // (2 * 4**k)) ** 2 for k in range(places))
    times = 1 if facts.neighbours != "replace-one" else 2 if move.one_sign else 4
    return facts.together**2 * times * move.l1 * move.l1 * column


def loss(
    measurement: Measurement, moved: Number, facts: Facts, threshold: Threshold | None, groups: bool,
    by_several: bool = False,
) -> Charge:  # fmt: skip
    """What a draw loses, by its law; refused where the law's own premise fails. `by_several`: of what is counted for a
    threshold one owner moves a group's count by more than one."""
    rule = _LAWS.get(measurement.law.name)
    if rule is None:
        raise Refused("laws: a law with a rule", measurement.law.name)
    if (measurement.law.name in ("truncated", "thresholded")) != (threshold is not None):
        raise Refused("laws: what is counted for a threshold has a law for it")
    moved = Fraction(moved)
    if measurement.law.name == "rank" and len(measurement.fractions) == 1:
        moved = moved * _of_scores(measurement.fractions[0], facts, groups)
    if by_several:
        spent = _by_steps(measurement, moved, facts, threshold)
    else:
        spent = rule(measurement, moved, facts, threshold)
    if facts.accounting == "zcdp" and spent.epsilon:
        return Charge(spent.epsilon, spent.delta, spent.rho or spent.epsilon**2 / 2)
    return spent


def _scale(measurement: Measurement) -> Fraction:
    scale = measurement.law.scale
    if scale is None or scale <= 0:
        raise Refused("laws: a scale above 0")
    return scale


def _laplace(measurement: Measurement, moved: Fraction, facts: Facts, _: Threshold | None) -> Charge:
    """Discrete Laplace on each coordinate, and the box law of 1.22: distance / scale."""
    return Charge(moved / _scale(measurement))


def _gaussian(measurement: Measurement, moved: Fraction, facts: Facts, _: Threshold | None) -> Charge:
    """Discrete Gaussian: `D² / (2·sigma²)`. With a sigma for each coordinate of a box, distances are in units of
    reaches, `moved` is `(R·U)²` and the loss is the sum over coordinates of `reach² / (2·sigma²)` times it."""
    sigmas, reaches = measurement.law.sigmas, measurement.reaches
    if facts.accounting != "zcdp" or not sigmas or any(one <= 0 for one in sigmas):
        raise Refused("laws: Gaussian noise has a sigma, in zCDP")
    if reaches:
        if len(reaches) != len(sigmas):
            raise Refused("laws: a sigma for each reach")
        return Charge(
            rho=sum((moved * r * r / (2 * s * s) for r, s in zip(reaches, sigmas, strict=True)), Fraction(0))
        )
    if len(sigmas) != 1:
        raise Refused("laws: one sigma for one distance")
    return Charge(rho=moved / (2 * sigmas[0] ** 2))


def _of_scores(fraction: Fraction, facts: Facts, groups: bool) -> Fraction:
    """By how much weights move scores of the fraction p/q: max(p, q-p) times; without groups, of an owner who is
    replaced, q times the weight of one of the two (1.20)."""
    most = max(fraction.numerator, fraction.denominator - fraction.numerator)
    if facts.neighbours == "replace-one" and not groups:
        return min(Fraction(most), Fraction(fraction.denominator, 2))
    return Fraction(most)


def _rank(measurement: Measurement, moved: Fraction, facts: Facts, _: Threshold | None) -> Charge:
    """Exponential mechanism by rank. One fraction p/q: scores move by `moved`, the loss is `2·rate` times that.
    Of k fractions at least three, choices of one depth are of disjoint parts: each depth loses the most of its
    choices, `2·rate·S` times max(p, q-p) of the fraction's place between those that enclose it (1.21). In zCDP
    a choice of bounded range x loses `x²/8`."""
    rates, fractions = measurement.law.rates, measurement.fractions
    if len(rates) != len(fractions) or not rates or any(one <= 0 for one in rates):
        raise Refused("laws: a rate for each fraction")
    factors = [[(rates[0], Fraction(1))]]
    if len(rates) > 1:
        if any(one >= two for one, two in pairwise(fractions)):
            raise Refused("laws: fractions rise")
        factors = [[] for _ in range(len(rates).bit_length())]
        _split(list(zip(rates, fractions, strict=True)), Fraction(0), Fraction(1), factors)
    ranges = [max(2 * rate * moved * factor for rate, factor in depth) for depth in factors]
    if facts.accounting == "zcdp":
        return Charge(rho=sum((one**2 / 8 for one in ranges), Fraction(0)))
    return Charge(sum(ranges, Fraction(0)))


def _split(
    asked: list[tuple[Fraction, Fraction]],
    low: Fraction,
    high: Fraction,
    depths: list[list[tuple[Fraction, Fraction]]],
    depth: int = 0,
) -> None:
    """The choices of each depth: the middle one of the fractions, at its place between low and high, then
    either side."""
    if not asked:
        return
    middle = len(asked) // 2
    rate, fraction = asked[middle]
    place = (fraction - low) / (high - low) if high > low else fraction
    depths[depth].append((rate, Fraction(max(place.numerator, place.denominator - place.numerator))))
    _split(asked[:middle], low, fraction, depths, depth + 1)
    _split(asked[middle + 1 :], fraction, high, depths, depth + 1)


def _flip(measurement: Measurement, moved: Fraction, facts: Facts, _: Threshold | None) -> Charge:
    """Permute-and-flip over scores that rise only: `rate` times what one rises by, for each choice that is made."""
    rates = measurement.law.rates
    if len(rates) != 1 or rates[0] <= 0 or measurement.choices < 1:
        raise Refused("laws: a rate for each choice")
    return Charge(measurement.choices * rates[0] * moved)


def _truncated(
    measurement: Measurement, moved: Fraction, facts: Facts, threshold: Threshold | None
) -> Charge:
    """Found groups by truncated noise (1.7): each of `moved` counts loses 1/scale, and is told by chance with what
    `shown_by_chance` says; of k owners together the deltas of k steps are put into one another (1.19). Of one owner the
    counts are `moved` draws of their own, each (1/scale, delta)-DP: in zCDP `1 / (2·scale²)` each (1.25(6))."""
    scale, bound, weight = _scale(measurement), measurement.law.bound, measurement.law.weight
    if bound is None or weight is None or bound < 1 or not 0 < weight <= 1 or threshold is None:
        raise Refused("laws: a bound and a weight of the last step")
    counts = moved / facts.together
    chance = shown_by_chance(1 / scale, bound, weight)
    steps, one = Decimal(0), counts / scale
    for step in range(facts.together):
        power = _UP.exp(_decimal(one * step, _UP))
        steps = _UP.add(steps, power)
    delta = _UP.multiply(_UP.multiply(chance, steps), _decimal(counts, _UP))
    is_added = facts.accounting == "zcdp" and facts.together == 1
    rho = moved / (2 * scale**2) if is_added else Fraction(0)
    return Charge(moved / scale, Fraction(delta) * (1 + Fraction(_SLACK)), rho)


def _by_steps(measurement: Measurement, moved: Fraction, facts: Facts, threshold: Threshold | None) -> Charge:
    """Found groups where an owner moves counts by several (1.38): `moved` steps n that move one count by one each,
    every one (1/scale, chance)-DP, put into one another as those of several owners are: `chance·(e^(n/s) -
    1)/(e^(1/s) - 1)`."""
    scale, bound, weight = _scale(measurement), measurement.law.bound, measurement.law.weight
    if measurement.law.name != "truncated" or facts.accounting == "zcdp" or threshold is None:
        raise Refused("laws: a law for counts that move by several")
    if bound is None or weight is None or bound < 1 or not 0 < weight <= 1 or scale > 2**40:
        raise Refused("laws: a bound and a weight of the last step")
    whole = _UP.subtract(_UP.exp(_decimal(moved / scale, _UP)), 1)
    each = _DOWN.subtract(_DOWN.exp(_decimal(1 / scale, _DOWN)), 1)
    delta = _UP.multiply(shown_by_chance(1 / scale, bound, weight), _UP.divide(whole, each))
    return Charge(moved / scale, Fraction(delta) * (1 + Fraction(_SLACK)) ** 2)


def shown_by_chance(rate: Fraction, bound: int, weight: Fraction) -> Decimal:
    """`c·w·q^k + c·(1-w)·q^(k-1)` for `q = exp(-rate)`, k the bound, w the weight, and c that makes the law sum to
    1; not less than it is."""
    up, down = _UP, _DOWN
    q = down.exp(-_decimal(rate, up))
    high = up.exp(-_decimal(rate, down))
    q, high = q * (1 - _SLACK), high * (1 + _SLACK)
    last, before = up.power(high, bound) * (1 + _SLACK), up.power(high, bound - 1) * (1 + _SLACK)
    w = _decimal(weight, up)
    below = Fraction(q)
    least = down.power(q, bound) * (1 - _SLACK)
    inside = (1 + below - 2 * Fraction(last)) / (1 - below)
    total = inside + 2 * weight * Fraction(least)
    over = Fraction(w) * Fraction(last) + (1 - weight) * Fraction(before)
    return _decimal(over / total, up) * (1 + _SLACK)


def _thresholded(
    measurement: Measurement, moved: Fraction, facts: Facts, threshold: Threshold | None
) -> Charge:
    """Found groups by Gaussian noise (1.25(6)): `D² / (2·sigma²)`, and `k·C·max over n <= k of Pr[Y > b - n] /
    n`."""
    sigmas, bound = measurement.law.sigmas, measurement.law.bound
    if len(sigmas) != 1 or sigmas[0] <= 0 or bound is None or threshold is None or facts.accounting != "zcdp":
        raise Refused("laws: a bound and a sigma of the threshold")
    together = facts.together
    groups = moved / together**2 / (2 if facts.neighbours == "replace-one" else 1)
    chance = max(_tail(sigmas[0], bound - n) / n for n in range(1, together + 1))
    return Charge(rho=moved / (2 * sigmas[0] ** 2), delta=together * groups * chance)


def _tail(sigma: Fraction, above: int) -> Fraction:
    """`Pr[Y > above]` of a discrete Gaussian, not less than it is: terms summed until they fall by half and more,
    the rest as a geometric series; above them all terms of the centre."""
    if above < 0 or sigma > 2**12:
        raise Refused("laws: a bound and a sigma of the threshold")
    width = 2 * sigma * sigma

    def term(x: int, context: Context) -> Decimal:
        return context.exp(-_decimal(Fraction(x * x) / width, _DOWN if context is _UP else _UP))

    over, x = Decimal(0), above + 1
    while True:
        one = term(x, _UP)
        over = _UP.add(over, one)
        x += 1
        if one < _SLACK * over or one == 0:
            break
    over = _UP.add(over, one * (isqrt(int(width)) + 2) * 2)
    under = Decimal(1)
    for x in range(1, 8 * int(sigma) + 8):
        under = _DOWN.add(under, 2 * term(x, _DOWN))
    return Fraction(over) / Fraction(under) * (1 + Fraction(_SLACK))


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


_LAWS = {
    "laplace": _laplace,
    "box": _laplace,
    "gaussian": _gaussian,
    "root": _gaussian,
    "rank": _rank,
    "flip": _flip,
    "truncated": _truncated,
    "thresholded": _thresholded,
}
