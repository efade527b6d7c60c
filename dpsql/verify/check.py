"""`verify`: a certificate against facts, a line for each measurement that was proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from dpsql.verify.certificate import VERSION, Certificate, Charge, Facts, Measurement, Query, Release
from dpsql.verify.engines import DuckDB, Postgres, Spark
from dpsql.verify.laws import distance, loss
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
