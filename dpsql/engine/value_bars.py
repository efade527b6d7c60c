"""Bars of chosen values, where error bars are on: which a statement draws, and why it has none (soundness.md 1.21).

House rule: which fractions are drawn follows from text, policy, settings and a stored count, which is noisy: it is
fixed before the charge. Whether there are bars is never decided by the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..mechanisms import Law
from ..plan.measures.formulas import Chosen
from ..plan.measures.ranks import SplitMeasurement
from ..plan.measures.value_bars import COUNT_MISSES, BarKey, Bars, ValueBar, bar_of
from ..plan.planner import Plan, PrivacyParameters, count_of, with_bars
from ..plan.release_plan import ReleasePlan
from ..relation.aggregates import Asks
from ..relation.catalog import Catalog
from ..relation.relations import AggregateCall
from .answer import RankNote
from .explain import call_text, origin_of

__all__ = ["Barred", "draw_bars"]

StoredCount = Callable[[ReleasePlan, AggregateCall, Fraction], int | None]
"""The lower end of the bar, at a level, of a stored count of what an aggregate takes in; None: there is none."""

_LEAST = Fraction(1, 10_000)


@dataclass(frozen=True, slots=True)
class Barred:
    """A plan with the bars of chosen values that it draws, and notes on those that have none.

    `uses_store`: a count was looked for, so it holds for now alone.
    """

    plan: Plan
    notes: tuple[RankNote, ...] = ()
    uses_store: bool = False


def draw_bars(
    planned: Plan, catalog: Catalog, privacy: PrivacyParameters, level: Fraction, stored: StoredCount
) -> Barred:
    """Return the plan that draws the ends of its chosen values' bars with them, where the rows' number is known."""
    blocks = sum((Fraction(*one.release.share) for one in planned.releases), Fraction(0))
    releases, notes, uses_store = list(planned.releases), list[RankNote](), False
    for number, release in enumerate(releases):
        calls = _shown(planned, release)
        notes += [RankNote(_without_ends(release, call)) for call in calls if not _is_between(call)]
        asked = _by_rows(release, [call for call in calls if _is_between(call)])
        if asked and not _has_known_groups(release):
            notes += [RankNote(_of_unknown_groups(release, calls[0])) for calls in asked.values()]
            continue
        uses_store = uses_store or bool(asked)
        counts = {
            key: stored(release, calls[0], 1 - COUNT_MISSES * (1 - level)) for key, calls in asked.items()
        }
        notes += [
            RankNote(_uncounted(release, asked[key][0])) for key, rows in counts.items() if rows is None
        ]
        known = {key: rows for key, rows in counts.items() if rows is not None}
        if not known:
            continue

        def barred(bars: Bars, release: ReleasePlan = release) -> ReleasePlan:
            return with_bars(release, bars, catalog, privacy, blocks)

        bars = _bars(barred(dict.fromkeys(known, ValueBar(_LEAST, 0))), release, known, level)
        notes += [RankNote(_too_few(release, asked[key][0])) for key in known.keys() - bars.keys()]
        if bars:
            releases[number] = barred(bars)
    return Barred(replace(planned, releases=tuple(releases)), tuple(notes), uses_store)


def _shown(planned: Plan, release: ReleasePlan) -> list[AggregateCall]:
    """Return the chosen numbers of a release that are columns of the answer."""
    first, found = len(release.release.keys), dict[AggregateCall, None]()
    for index, column in enumerate(planned.root.columns):
        origin = origin_of(planned.root, index)
        if (
            origin is None
            or origin[0] != release.release
            or not first <= origin[1] < first + len(release.formulas)
        ):
            continue
        formula = release.formulas[origin[1] - first]
        if column.type.is_number and isinstance(formula, Chosen) and formula.coordinate is not None:
            found[release.release.aggregates[origin[1] - first]] = None
    return [] if release.is_empty else list(found)


def _is_between(call: AggregateCall) -> bool:
    """Say whether a value is looked for between the ends, by its rank."""
    return call.row.asks is Asks.RANK and not call.row.is_extreme and 0 < call.share < 1


def _has_known_groups(release: ReleasePlan) -> bool:
    return not (
        release.groups is None
        or release.listed_from
        or release.intermediates
        or release.selection is not None
    )


def _key_of(release: ReleasePlan, call: AggregateCall) -> BarKey:
    formula = release.formulas[release.release.aggregates.index(call)]
    assert isinstance(formula, Chosen)
    assert formula.coordinate is not None
    measurement = release.measurements[formula.coordinate.measure]
    assert measurement.value is not None
    return measurement.value, measurement.masks


def _by_rows(release: ReleasePlan, calls: Sequence[AggregateCall]) -> dict[BarKey, list[AggregateCall]]:
    found: dict[BarKey, list[AggregateCall]] = {}
    for call in calls:
        found.setdefault(_key_of(release, call), []).append(call)
    return found


def _bars(wide: ReleasePlan, release: ReleasePlan, counts: dict[BarKey, int], level: Fraction) -> Bars:
    """Return the bars that there are. `wide`: the plan in which what has bars is one measurement each."""
    found: dict[BarKey, ValueBar] = {}
    for number, split in enumerate(wide.measurements):
        if not isinstance(split, SplitMeasurement) or split.value is None:
            continue
        rows = counts.get((split.value, split.masks))
        if rows is None:
            continue

        def law_of(one: SplitMeasurement, number: int = number) -> Law:
            return replace(wide.measures[number], measurement=one).law

        bar = bar_of(split, _asked(release, (split.value, split.masks)), rows, level, law_of)
        if bar is not None:
            found[split.value, split.masks] = bar
    return found


def _asked(release: ReleasePlan, key: BarKey) -> list[Fraction]:
    """Return the fractions that a release asks for of some rows, shown or not."""
    found = {
        call.share
        for call, formula in zip(release.release.aggregates, release.formulas, strict=True)
        if isinstance(formula, Chosen) and formula.coordinate is not None
        and call.row.asks is Asks.RANK and not call.row.is_extreme and _key_of(release, call) == key
    }  # fmt: skip
    return sorted(found)


# --- why there are none ---------------------------------------------------------------------------------------


def _without_ends(release: ReleasePlan, call: AggregateCall) -> str:
    why = (
        "what is known of it is its number of rows"
        if call.row.asks is Asks.MODE
        else "it is looked for inside the end, and nothing is known of what lies further out"
    )
    return f"{_name(release, call)}: its bars are NULL, since {why}"


def _of_unknown_groups(release: ReleasePlan, call: AggregateCall) -> str:
    return (
        f"{_name(release, call)}: its bars are NULL, since they need groups that the statement and the policy list, "
        "and values that wait for no subquery"
    )


def _uncounted(release: ReleasePlan, call: AggregateCall) -> str:
    counted = _name(release, count_of(call))
    return (
        f"{_name(release, call)} has no bars: they need {counted} of the same rows and groups, a charge of its own, "
        "and then a part of this value's epsilon, which makes it less exact; SET dpsql.intervals = off asks for none"
    )


def _too_few(release: ReleasePlan, call: AggregateCall) -> str:
    return f"{_name(release, call)}: its bars are NULL, since at this epsilon they need more rows, or fewer fractions"


def _name(release: ReleasePlan, call: AggregateCall) -> str:
    return call_text(call, release.release.rows)
