"""The groups with the largest counts or sums, when asked and when it pays, are chosen first: top-k (soundness.md 1.23).

House rules:

1. The claim is about scores: one unit moves each group's score by at most `each`, in whichever groups it is, and all
   of them in one direction. The printed clamp of each unit's part in a group holds it (law L9); C and R do not enter.
2. Whether groups are chosen is a function of text, policy and settings, never of data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from fractions import Fraction

from ...mechanisms import Law, Rank
from ...records import dataclass
from ...relation.intervals import Environment
from ...relation.relations import AggregateCall, Block, Relation, ends_in, skipped, subqueries
from ..privacy.rows import Release, Units
from .formulas import Linear
from .least_error import Asked, choose_measurements
from .measurements import Bounding, BoundingQuery, Loss, Measurement, Steps, Sum, Sums


@dataclass(frozen=True, slots=True)
class TopRows:
    """The first `count` rows of a release in descending order of an aggregate, by its number."""

    aggregate: int
    count: int


def top_rows(relations: Sequence[Relation]) -> dict[Release, TopRows]:
    """Return the releases of which a statement reads nothing but its first rows, each in one place.

    What else may stand above: expressions of a row, and whatever reads the few rows. A filter before the LIMIT
    (HAVING), an OFFSET, another use of the release need the other groups too.
    """
    nodes = [node for relation in relations for node in _nodes(relation)]
    uses = Counter(node for node in nodes if isinstance(node, Release))
    found = {}
    for node in nodes:
        if ends_in(node, "limit") and (one := _of_limit(node)) is not None and uses[one[0]] == 1:
            found[one[0]] = one[1]
    return found


def _nodes(relation: Relation) -> Iterator[Relation]:
    """Yield a relation's nodes, those of its subqueries included; what is used twice comes twice."""
    yield relation
    for below in (*relation.inputs, *subqueries(relation)):
        yield from _nodes(below)


def _of_limit(node: Block) -> tuple[Release, TopRows] | None:
    below, (count, offset) = skipped(node.below, "outputs"), node.limit or (None, 0)
    if not count or offset or not ends_in(below, "orders") or not below.orders[0].descending:
        return None
    expr, source = below.orders[0].expr, below.below
    while ends_in(source, "outputs") and expr.column is not None:
        expr, source = source.exprs[expr.column], source.below
    if not isinstance(source, Release):
        return None
    aggregate = source.aggregate_at(expr)
    return None if aggregate is None else (source, TopRows(aggregate, count))


MAX_CHOSEN = 32
"""Most groups that are chosen."""
_MOST_SCORES = 2**18
"""Most scores that are compared, over all choices: some seconds."""
_WORTH = 4
"""How much smaller the noise has to be for a choice, which takes its own part of epsilon."""


@dataclass(frozen=True, slots=True)
class TopGroups(Measurement):
    """The `count` groups where `of` is largest, by so many choices one after the other, each among those that are left.

    Its one coordinate is the score of a group: `of` without noise, of each unit at most `each`. `groups`: among how
    many. `aggregate`: whose score it is, by its number in the release.
    """

    kind = "top"
    query = BoundingQuery.TOP
    label = "choice of groups"

    of: Measurement
    count: int
    groups: int = field(compare=False)
    aggregate: int = field(default=0, compare=False)

    @property
    def each(self) -> int:
        """Most that one unit adds to the score of a group: min(R, M) rows of the largest reach, or one person."""
        if self.of.is_of_people:
            return 1
        return min(self.bounding.in_all, self.bounding.in_group) * self.of.reach

    @property
    def added(self) -> Steps:
        """`count` times `each`: what a unit moves all choices by together."""
        return Steps(self.count * self.each)

    def whole(self, sums: Sums) -> list[str]:
        return self.of.whole(sums)

    def key_of(self, part: int) -> tuple[object, ...]:
        return (*Measurement.key_of(self, part), self.of.kind, self.count, self.bounding)

    def law(self, epsilon: Fraction) -> Rank:
        """Return what is known of the choices: by how much a group that is left out may be larger than the smallest
        that is chosen, in what the score counts.
        """
        return Rank(self.scale(epsilon), self.groups * self.count)

    def drawn(self, loss: Loss) -> Law:
        """Permute-and-flip costs what any pure draw does (1.25)."""
        return self.law(loss.epsilon)


def top_groups(
    call: AggregateCall, env: Environment, bounding: Bounding, units: Units, count: int, groups: int
) -> TopGroups | None:
    """Return the choice of the `count` groups of so many where an aggregate is largest; None where it does not pay.

    It pays where what is chosen is then measured with a quarter of the noise, by bounds alone: a unit has fewer rows,
    or is in fewer groups, of those that are chosen than of all.
    """
    if not 0 < count <= min(MAX_CHOSEN, groups - 1) or count * groups > _MOST_SCORES:
        return None
    of = _score(call, env, bounding, units)
    if of is None:
        return None
    few = among(bounding, count)
    top = TopGroups(of.value, of.lattice, of.masks, False, 0, bounding, of, count, groups)
    before, after = (bounding.groups, few.groups) if of.is_of_people else (bounding.in_all, few.in_all)
    return None if before < _WORTH * after else top


def among(bounding: Bounding, count: int) -> Bounding:
    """Return the bounds of a release whose rows are those of `count` groups alone, known beforehand."""
    return replace(
        bounding,
        in_all=min(bounding.in_all, count * bounding.in_group),
        groups=min(bounding.groups, count),
        ranked=bounding.ranked and bounding.groups < count,
    )


def _score(call: AggregateCall, env: Environment, bounding: Bounding, units: Units) -> Measurement | None:
    """Return the one measurement whose only coordinate an aggregate follows, where no unit makes it smaller."""
    if call.function not in ("count", "sum"):
        return None
    found = choose_measurements(Asked([call], env, bounding, units))
    if not _follows_one(found.measurements, found.formulas):
        return None
    (measurement,) = found.measurements
    grows = measurement.is_count or (measurement.kind == Sum.kind and measurement.known_lattice.low >= 0)
    return measurement if grows else None


def _follows_one(measurements: Sequence[Measurement], formulas: Sequence[object]) -> bool:
    (formula,) = formulas
    if len(measurements) != 1 or measurements[0].size != 1 or not isinstance(formula, Linear):
        return False
    return [one.number for one, weight in formula.terms if weight > 0] == [0]
