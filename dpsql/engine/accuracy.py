"""An accuracy that is asked for in place of an epsilon: the least epsilon that gives it (`SET dpsql.accuracy`).

House rules:

1. The epsilon that is found depends on the text, the policy, the settings and what is stored, which is noisy: so may
   the charge (soundness.md 3.9). Nothing of the data is read.
2. What is promised is of every aggregate of the answer, at the level of `dpsql.intervals`; no figure is smaller
   than what the bars will show, but for the rounding of `_deviations`.
3. The epsilon is a multiple of `STEP`, rounded up, so that the same wish meets what it has stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from statistics import NormalDist

from ..budget import LedgerStore
from ..errors import Refusal
from ..mechanisms import Gaussian, SampledNoise
from ..plan.measures.formulas import Bivariate, Linear, Variance
from ..plan.planner import Plan, PrivacyParameters, counting, releases_of
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.catalog import Catalog
from ..relation.relations import AggregateCall
from ..release.price import Cost, expected_error
from ..release.run import PlanRunner
from .contribution import cells_of, sums_of
from .notes import estimate_notes, lowest_of
from .settings import Accuracy, decimal_text, number_text

STEP = Fraction(1, 10_000)
"""Epsilon is found in steps of this."""
_MOST_STEPS = 10**8
"""An accuracy that takes more than this many steps of epsilon is out of reach of any policy."""

Counts = Callable[[ReleasePlan, AggregateCall], int | None]
"""The lower end of the bar of a stored number of rows that an aggregate takes in, over the smallest group; or None."""


_ANY = Fraction(1, 10**9)
"""The epsilon of a measurement that every stored draw of it serves."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The epsilon that was found; `uses_store`: a stored count was read for it, so it holds for now alone."""

    epsilon: Fraction
    said: str
    uses_store: bool


@dataclass(frozen=True, slots=True)
class _Need:
    """An aggregate, the most groups that a row of it is the sum of, and how far off it may be by `expected_error`."""

    release: ReleasePlan
    index: int
    cells: int
    most: Fraction


def choose(planned: Plan, wanted: Accuracy, level: Fraction, most: Fraction, counts: Counts) -> Chosen | None:
    """Return the least epsilon under which every aggregate of the answer is within `wanted`; None: nothing is noised.

    `planned`: the statement under any epsilon; `most`: the owner's limit.

    Raises:
        Refusal: PV301 where it takes more than `most`, or a stored count that is not there.
    """
    _check_has_no_coins(planned)
    counted: list[int] = []
    needs = []
    blocks = planned.blocks
    for release in _answering(planned):
        cells = max((cells_of(release, node) for node in sums_of(planned, release.release)), default=1)
        for index, call in enumerate(release.release.aggregates):
            if index in release.zeros:
                continue
            if call.row.is_chosen:
                _check_is_exact(release, index, call, most, blocks, level)
                continue
            needs.append(_Need(release, index, cells, _most(release, index, call, wanted, counts, counted)))
    if not needs:
        return None
    of_count = f" of a count of at least {min(counted):,}" if wanted.is_percent else ""
    found = _least(lambda epsilon: all(_fits(need, epsilon, blocks, level) for need in needs))
    if found is None or found > most:
        needed = f"epsilon {decimal_text(found)}" if found is not None else "more epsilon than there is"
        raise Refusal(
            f"{wanted.said}{of_count} takes {needed}, and a statement may take {decimal_text(most)} at most",
            sqlstate="PV301",
            hint=f"{_what_fits(needs, wanted, most, blocks, level)}; or SET dpsql.accuracy = off",
        )
    return Chosen(found, f"epsilon {decimal_text(found)} chosen for {wanted.said}{of_count}", bool(counted))


def _answering(planned: Plan) -> Iterator[ReleasePlan]:
    """Yield the releases that the answer is made of; those of subqueries below a release only have their share."""
    asked = set(releases_of(planned.root))
    return (release for release in planned.releases if release.release in asked and not release.is_empty)


def _check_has_no_coins(planned: Plan) -> None:
    """Refuse estimates over randomised answers: what their coins add, no epsilon makes smaller. Raises Refusal."""
    if planned.releases and estimate_notes(planned.root):
        raise Refusal(
            "estimates over randomised answers have an error of their own, whatever epsilon is", sqlstate="PV301",
            hint="set dpsql.epsilon; EXPLAIN says how far off they are for their coins",
        )  # fmt: skip


def _check_is_exact(
    release: ReleasePlan, index: int, call: AggregateCall, most: Fraction, blocks: Fraction, level: Fraction
) -> None:
    """Refuse a value that is chosen by rank: how far that is from the true one is data. Raises Refusal (PV301)."""
    for coordinate in release.formulas[index].coordinates:
        widest = release.under(most, blocks)
        rows = None if widest is None else widest.measures[coordinate.measure].law.half_width(1 - level)
        raise Refusal(
            "an accuracy cannot be asked for of a value that is chosen by its rank",
            sqlstate="PV301", position=call.position,
            hint="ask for fewer aggregates at a time, with SET dpsql.accuracy = off"
            if rows is None
            else f"within {rows:,} rows of the wanted one is what epsilon {decimal_text(most)} gives; "
            "SET dpsql.accuracy = off",
        )  # fmt: skip


def _most(
    release: ReleasePlan,
    index: int,
    call: AggregateCall,
    wanted: Accuracy,
    counts: Counts,
    counted: list[int],
) -> Fraction:
    """Return how far off an aggregate may be; of an average or a variance, times the number of its rows."""
    formula = release.formulas[index]
    is_count = isinstance(formula, Linear) and call.function == "count"
    if wanted.is_percent and not is_count:
        hint = f"say by how much {call.function} may be off, in its own unit: SET dpsql.accuracy = 50"
        raise _refused(call, "an accuracy in percent is of a count", hint)
    if isinstance(formula, Variance) and formula.is_root:
        said = "an accuracy cannot be asked for of a standard deviation"
        raise _refused(call, said, "ask it of the variance, or SET dpsql.epsilon")
    if isinstance(formula, Bivariate):
        said = f"an accuracy cannot be asked for of {call.function}"
        raise _refused(call, said, "SET dpsql.accuracy = off; SET dpsql.epsilon")
    if isinstance(formula, Linear) and not wanted.is_percent:
        return wanted.size
    rows = counts(release, call)
    needed = "how much epsilon that takes depends on the number of rows, and"
    if rows is None:
        hint = "ask COUNT(…) of the same rows and groups first, with SET dpsql.accuracy = off"
        raise _refused(call, f"{needed} no count of them is stored", hint)
    if rows < 1:
        hint = "ask COUNT(…) again at a larger epsilon, or SET dpsql.epsilon"
        raise _refused(call, f"{needed} the stored count may be 0", hint)
    counted.append(rows)
    return wanted.size * rows / 100 if wanted.is_percent else wanted.size * rows


def _refused(call: AggregateCall, said: str, hint: str) -> Refusal:
    """Return the refusal of an accuracy of an aggregate."""
    return Refusal(said, sqlstate="PV301", position=call.position, hint=hint)


def _fits(need: _Need, epsilon: Fraction, blocks: Fraction, level: Fraction) -> bool:
    half = _half_width(need, epsilon, blocks, level)
    return half is not None and half <= need.most


def _half_width(need: _Need, epsilon: Fraction, blocks: Fraction, level: Fraction) -> Fraction | None:
    """Return how far off an aggregate is under an epsilon, as in `expected_error`; None: too little to be shared."""
    release = need.release.under(epsilon, blocks)
    if release is None:
        return None
    deviations, normal = Fraction(_deviations(level)), Fraction(_normal_deviations(level))

    def half_of(formula: Linear) -> Fraction:
        noises = release.noises(formula)
        if len(noises) * need.cells == 1:
            ((law, weight),) = noises
            return abs(weight) * law.half_width(1 - level)
        variance = need.cells * sum(weight**2 * law.spread for law, weight in noises)
        are_normal = all(isinstance(law, Gaussian) for law, _ in noises)
        return (normal if are_normal else deviations) * Fraction(math.sqrt(variance))

    return expected_error(release, need.index, half_of)[0]


def _least(fits: Callable[[Fraction], bool]) -> Fraction | None:
    """Return the least multiple of `STEP` that fits, None beyond what is looked at. Larger ones fit then too."""
    if not fits(_MOST_STEPS * STEP):
        return None
    low, high = 0, 1
    while high < _MOST_STEPS and not fits(high * STEP):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle * STEP) else (middle, high)
    return high * STEP


def _what_fits(
    needs: list[_Need], wanted: Accuracy, most: Fraction, blocks: Fraction, level: Fraction
) -> str:
    """Return the accuracy that the owner's limit gives, in the words of the wish."""
    widest = Fraction(0)
    for need in needs:
        half = _half_width(need, most, blocks, level)
        if half is None:
            return "ask for fewer aggregates at a time"
        widest = max(widest, Fraction(half) * wanted.size / need.most)
    digits = max(0, 3 - math.ceil(math.log10(widest)))
    rounded = Fraction(math.ceil(widest * 10**digits), 10**digits)
    unit = " %" if wanted.is_percent else ""
    return f"± {number_text(rounded)}{unit} is what epsilon {decimal_text(most)} gives"


def _deviations(level: Fraction) -> float:
    """Return how many standard deviations several Laplace noises together stay within at a level.

    A single one has ln(1 / (1 - level)) / √2, very many have the normal law's; sums of few lie between the two.
    """
    return max(math.log(1 / float(1 - level)) / math.sqrt(2), _normal_deviations(level))


def _normal_deviations(level: Fraction) -> float:
    """Return how many standard deviations Gaussian noises together stay within at a level."""
    return NormalDist().inv_cdf(1 - float(1 - level) / 2)


# --- how many rows there are -----------------------------------------------------------------------------------------


def stored_count(
    release: ReleasePlan,
    call: AggregateCall,
    catalog: Catalog,
    privacy: PrivacyParameters,
    store: LedgerStore,
    level: Fraction,
) -> int | None:
    """Return the lower end of a stored count's bar at a level, the least over its groups; None: nothing is stored.

    First a count that was asked for itself, then the one beside the aggregate, where that was drawn before.
    A release that waits for a subquery's value has none; by keys of public tables there is the one beside it alone.
    """
    if release.intermediates:
        return None
    asked = [(release, release.release.aggregates.index(call))]
    if not release.listed_from:
        asked.append((counting(release, call, catalog, privacy), 0))
    found = (_least_count(one, index, store, privacy, level) for one, index in asked)
    return max((one for one in found if one is not None), default=None)


def _least_count(
    release: ReleasePlan, index: int, store: LedgerStore, privacy: PrivacyParameters, level: Fraction
) -> int | None:
    count = release.formulas[index].compared
    if count is None or release.is_empty:
        return None
    plan = Plan(release.release, (), frozenset(), (release.of_each(_ANY),), privacy)
    runner = PlanRunner(
        plan, store, SampledNoise(), "", "", True, lambda *_: None, lambda: False, lambda: None, Cost()
    )
    return lowest_of(runner.rows[0], count, level) if runner.from_store() else None
