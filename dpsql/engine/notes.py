"""What is said beside an answer: what bends it, which groups it has, how far chosen values may be from the wanted ones.

House rule: from the plan, the laws of the draws that answer, and noisy numbers that are released; nothing of the data.

Bars of chosen values, where error bars are on: which a statement draws, and why it has none (soundness.md 1.21).

House rule: which fractions are drawn follows from text, policy, settings and a stored count, which is noisy: it is
fixed before the charge. Whether there are bars is never decided by the data.

What a choice misses its rank by is bounded for the worst of data: all candidates but one might miss by next to nothing.
Counts of the same rows by the column, its blocks or its calendar, stored earlier or later, say how many candidates do;
so they narrow what is told of a rank, and never widen it (soundness.md 1.43).

House rule of histograms: from text, policy and stored draws. Which of them are read follows from their keys and laws
alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from ..budget import Grouping, LedgerStore, StoredGrouping
from ..cache import Made
from ..errors import Refusal
from ..mechanisms import Blocks, Gaussian, Laplace, Law, Rank, Truncated
from ..plan.measures.formulas import Chosen, Linear, Within
from ..plan.measures.measurements import Count, Mask, Moment
from ..plan.measures.normal_form import normal_form
from ..plan.measures.ranks import (
    COUNT_MISSES,
    BarKey,
    Bars,
    RankMeasurement,
    SplitMeasurement,
    ValueBar,
    bar_of,
)
from ..plan.planner import Plan, PrivacyParameters, by_keys, count_of, counting, releases_of, with_bars
from ..plan.privacy.axes import usual_keys
from ..plan.privacy.keys import environment_of
from ..plan.privacy.rows import OwnedRows, Release
from ..plan.release_plan import ReleasePlan
from ..plan.strategies import name_of
from ..records import dataclass
from ..relation.aggregates import Asks
from ..relation.catalog import Catalog, Table
from ..relation.catalog import Scalar as Value
from ..relation.expressions import Expr, Field, Scalar, fields_of, walk
from ..relation.facts import is_cut, read_length
from ..relation.intervals import Environment, Lattice, LogLattice, facts_of, lattice_of
from ..relation.relations import AggregateCall, Block, Relation, SetOperation, expressions
from ..relation.types import Kind
from ..release.price import expected_error
from ..release.released import Array, decode, others_of
from ..release.run import ReleasedRows
from ..release.table import grouping_of, named_digests
from .answer import EmptyNote, GroupNote, OnceNote, OpenRankNote, RankNote
from .contribution import Known, contribution_notes, nothing_measured, period_notes, set_notes
from .selection import selection_notes
from .settings import decimal_text, number_text

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Off:
    """How many rows a chosen value is off its rank by at most, and by what it was counted, in words."""

    rows: int
    counted: str


@dataclass(frozen=True, slots=True)
class _Histogram:
    """A stored draw of counts by a release's keys and one more, the last. `cells`: shape (places of each key)."""

    plan: ReleasePlan
    law: Law
    cells: Array


def rows_off(
    rows: ReleasedRows, call: AggregateCall, level: Fraction, catalog: Catalog, privacy: PrivacyParameters,
    store: LedgerStore,
) -> Off | None:  # fmt: skip
    """Return how far the values of an aggregate are from their rank at a level, by the stored histogram that says least
    of it; None: none says more than the choice's own law.
    """
    choice = _choice_of(rows, call)
    if choice is None:
        return None
    measurement, law = choice
    found = list(_histograms(rows.plan, call, measurement, catalog, privacy, store))
    offs = _worst(rows, found, measurement, law, 1 - level)
    names = [name_of(one.plan.release.keys[-1]) for one in found]
    off = Off(*min(zip(offs, names, strict=True))) if offs else None
    return off if off is not None and off.rows < law.half_width(1 - level) else None


def _choice_of(rows: ReleasedRows, call: AggregateCall) -> tuple[RankMeasurement, Rank] | None:
    """Return the one choice that an aggregate of a column was made by, and what is known of its rank; None: it is not
    one among all integers of a lattice, or rows weigh otherwise than they count."""
    plan = rows.plan
    formula = plan.formulas[plan.release.aggregates.index(call)]
    if not isinstance(formula, Chosen) or formula.coordinate is None or not plan.bounding.per_row:
        return None
    measurement, law = plan.measurements[formula.coordinate.measure], rows.law_of(formula.coordinate)
    draws = rows.measurements[formula.coordinate.measure].draws
    if not (type(measurement) is RankMeasurement and isinstance(law, Rank) and 0 < measurement.share < 1):
        return None
    lattice, value = measurement.known_lattice, measurement.value
    is_alone = bool(draws) and all(len(draw.measures) == 1 for together in draws for draw in together)
    is_plain = lattice.exact and not isinstance(lattice, LogLattice) and law.candidates == lattice.last + 1
    is_column = value is not None and value.column is not None
    return (measurement, law) if is_alone and is_plain and is_column else None


def _histograms(
    plan: ReleasePlan, call: AggregateCall, measurement: RankMeasurement, catalog: Catalog,
    privacy: PrivacyParameters, store: LedgerStore,
) -> Iterator[_Histogram]:  # fmt: skip
    """Yield the stored counts of the very rows of an aggregate by its groups and its column, of each key the draw with
    the least spread."""
    if plan.groups is None or plan.listed_from or plan.intermediates or plan.selection is not None:
        return
    column, keys = measurement.value, plan.release.keys
    assert isinstance(column, Field)
    alone = counting(plan, call, catalog, privacy)
    family = alone.family(0, plan.release.rows.predicate)
    _, stored = store.groupings([] if family is None else [family])
    drawn = [one for one in stored.get(family or b"", ()) if len(one.grouping.keys) == len(keys) + 1]
    for key in usual_keys(column) if drawn else ():
        counted = _counted_by(alone, key, catalog, privacy)
        grouping = None if counted is None else grouping_of(counted, 0)
        mine = [one for one in drawn if one.grouping == grouping and _is_noise(one)]
        if counted is None or grouping is None or not mine or not _is_named(counted, grouping):
            continue
        best = min(mine, key=lambda one: (one.law.spread, one.entry))
        (values,) = decode(store.draw_of(best).payload, best.law).values
        sizes = [axis.size for axis in counted.axes or ()]
        yield _Histogram(counted, best.law, np.array(values.tolist(), dtype=object).reshape(sizes))


def _is_named(plan: ReleasePlan, grouping: Grouping) -> bool:
    """Say whether all keys of a grouping have a name for the analyst (soundness.md 3.16)."""
    named = named_digests(plan)
    return named is None or all(one.digest in named for one in grouping.keys)


def _is_noise(one: StoredGrouping) -> bool:
    return isinstance(one.law, (Gaussian, Laplace))


def _counted_by(
    alone: ReleasePlan, key: Expr, catalog: Catalog, privacy: PrivacyParameters
) -> ReleasePlan | None:
    """Return a count by one more key; None: it is no number with one noise of each row."""
    try:
        found = by_keys(alone, (*alone.release.keys, key), catalog, privacy)
    except Refusal:
        return None
    if found is None or found.axes is None or len(found.measurements) != 1 or not found.bounding.per_row:
        return None
    formula = found.formulas[0]
    if not isinstance(found.measurements[0], Count) or not isinstance(formula, Linear):
        return None
    is_whole = not formula.constant and [weight for _, weight in formula.terms] == [1]
    return found if is_whole else None


def _worst(
    rows: ReleasedRows, found: Sequence[_Histogram], measurement: RankMeasurement, law: Rank, beta: Fraction
) -> list[int]:
    """Return by each histogram how far a value is off its rank at most, in whichever group; none where some group is
    not counted."""
    assert rows.groups is not None
    worst, left = [0] * len(found), Blocks.left_of(beta) / max(1, len(found))
    for group in rows.groups.tuples():
        told = [_blocks(one, group, measurement, left) for one in found]
        known = [one for one in told if one is not None]
        if len(known) < len(found):
            return []
        worst = list(map(max, worst, law.half_widths_in(known, beta)))
    return worst


def _blocks(
    told: _Histogram, group: tuple[Value, ...], measurement: RankMeasurement, left: Fraction
) -> Blocks | None:
    """Return what the counts of a group say of where its rows are, but for a probability of `left`; None: nothing.

    Of the column its listed places are counted, and all others together, which may be anywhere in the lattice.
    """
    key = told.plan.release.keys[-1]
    *axes, axis = told.plan.axes or ()
    lattice = measurement.known_lattice
    starts = sorted(
        (max(lattice.low, _start(key, value, lattice)), place)
        for place, value in enumerate(axis.values)
        if value is not None
    )
    ends = [lattice.low, *(start for start, _ in starts[1:]), lattice.high + 1]
    sizes = [end - start for start, end in itertools.pairwise(ends)]
    if min(sizes) < 1 or not all(value in one.values for value, one in zip(group, axes, strict=True)):
        return None
    cells = told.cells[tuple(one.values.index(value) for value, one in zip(group, axes, strict=True))]
    counted = [int(cells[place]) for _, place in starts]
    others = int(cells[len(axis.values)]) if axis.others else None
    return Blocks.of(sizes, counted, others, told.law, measurement.share, left)


def _start(key: Expr, value: Value, lattice: Lattice) -> int:
    """Return the least integer of a lattice at which a usual key of its column has a value, or a larger one."""
    assert isinstance(value, (int, Fraction))
    if key.calls("div"):
        size = key.args[1].constant
        assert isinstance(size, int)
        value = value * size if value > 0 else value * size - (size - 1)
    elif key.calls("date_trunc") and key.args[1].type.kind is Kind.DATE:
        value //= _DAY
    elif key.calls("cast"):
        value *= _DAY
    return math.ceil(value / lattice.step)


# --- bars of chosen values, where error bars are on ---------------------------------------------------------


StoredCountAt = Callable[[ReleasePlan, AggregateCall, Fraction], int | None]
"""The lower end of the bar, at a level, of a stored count of what an aggregate takes in; None: there is none."""

_LEAST = Fraction(1, 10_000)
_AT_95 = 1.96
MODEL: Final = "model"
"""The schema of tables that are models: what they answer is told apart (soundness.md 3.20)."""


@dataclass(frozen=True, slots=True)
class Barred:
    """A plan with the bars of chosen values that it draws, and notes on those that have none.

    `uses_store`: a count was looked for, so it holds for now alone.
    """

    plan: Plan
    notes: tuple[RankNote, ...] = ()
    uses_store: bool = False


def draw_bars(
    planned: Plan, catalog: Catalog, privacy: PrivacyParameters, level: Fraction, stored: StoredCountAt
) -> Barred:
    """Return the plan that draws the ends of its chosen values' bars with them, where the rows' number is known."""
    blocks = planned.blocks
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
    return Barred(replace(planned, releases=tuple(releases)), tuple(dict.fromkeys(notes)), uses_store)


def _shown(planned: Plan, release: ReleasePlan) -> list[AggregateCall]:
    """Return the chosen numbers of a release that are columns of the answer."""
    first, found = len(release.release.keys), dict[AggregateCall, None]()
    for index, column in enumerate(planned.root.columns):
        origins = origins_of(planned.root, index, is_apart=bool(planned.apart))
        origin = next((one for one in origins if one[0] == release.release), None)
        if origin is None or not first <= origin[1] < first + len(release.formulas):
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
    return f"{_label(release, call)}: its bars are NULL, since {why}"


def _of_unknown_groups(release: ReleasePlan, call: AggregateCall) -> str:
    return (
        f"{_label(release, call)}: its bars are NULL, since they need groups that the statement and the policy list, "
        "and values that wait for no subquery"
    )


def _uncounted(release: ReleasePlan, call: AggregateCall) -> str:
    counted = _label(release, count_of(call))
    return (
        f"{_label(release, call)} has no bars: they need {counted} of the same rows and groups, a charge of its own, "
        "and then a part of this value's epsilon, which makes it less exact; SET dpsql.intervals = off asks for none"
    )


def _too_few(release: ReleasePlan, call: AggregateCall) -> str:
    return f"{_label(release, call)}: its bars are NULL, since at this epsilon they need more rows, or fewer fractions"


def _label(release: ReleasePlan, call: AggregateCall) -> str:
    return call_text(call, release.release.rows)


# --- what is said beside an answer --------------------------------------------------------------------------


def null_notes(release: ReleasePlan) -> Iterator[OnceNote]:
    """Yield why there is a group for NULL: a declared key that may be it, whether or not any row is."""
    for number, domain in enumerate(release.domains if release.groups is not None else ()):
        if domain is not None and None in domain.values:
            yield OnceNote(
                f"{_name(release, number)} may be NULL, so NULL is one of its groups whether or not it occurs; "
                "WHERE … IS NOT NULL leaves it out"
            )


def wide_notes(release: ReleasePlan) -> Iterator[OnceNote]:
    """Yield that groups are listed of which it was not found out whether a row can be in them."""
    if release.is_wide:
        yield OnceNote(
            "groups are listed that may not exist: too many values to look through; narrow the keys in WHERE"
        )


def sign_notes(release: ReleasePlan) -> Iterator[OnceNote]:
    """Yield that remainders below 0 are listed, of a column of which nothing says that it is not below 0."""
    env = environment_of(release.release.rows.columns, release.release.rows.predicate)
    for key in release.release.keys if release.groups is not None else ():
        lo = facts_of(key, env).lo
        taken = [part.args[0] for part in walk(key) if part.calls("mod")] if lo is not None and lo < 0 else []
        for index in (index for one in taken for index in fields_of(one)):
            column = env.columns[index]
            facts = facts_of(Field(column.type, index), env)
            if not facts.declared and facts.lo is not None and facts.lo < 0:
                yield OnceNote(
                    f"groups below 0 are listed, as nothing says that {column.name} is not: WHERE {column.name} >= "
                    "0 leaves them out, and so do bounds that the owner declares, or a CHECK"
                )


def length_notes(release: ReleasePlan) -> Iterator[OnceNote]:
    """Yield to how many characters a text key is read where it is found: those that begin alike are one group."""
    env = environment_of(release.release.rows.columns, release.release.rows.predicate)
    keys = zip(release.release.keys, release.domains, strict=True) if release.groups is None else ()
    for key, domain in keys:
        if domain is not None or key.type.kind is not Kind.TEXT:
            continue
        lengths = {read_length(env.columns[index]) for index in fields_of(key) if _is_read_cut(env, index)}
        if lengths and facts_of(key, env).size >= max(lengths):  # else the key is of their beginnings alone
            yield OnceNote(
                f"texts are cut to {max(lengths):,} characters: those that begin alike are one group"
            )


def width_notes(release: ReleasePlan) -> Iterator[OnceNote]:
    """Yield which numbers tell nothing: their expected error is as wide as all that the policy lets them be."""
    rows = release.release.rows
    for index, (call, formula) in enumerate(zip(release.release.aggregates, release.formulas, strict=True)):
        if not isinstance(formula, Within) or formula.highest is None:
            continue
        half = expected_error(release, index)[0]
        if half < formula.highest - formula.lowest:
            continue
        names = [rows.columns[arg.column].name for arg in call.args if arg.column is not None]
        helps = f"; GROUP BY {names[0]} shows how many rows each value has" if call.distinct and names else ""
        yield OnceNote(
            f"{call_text(call, rows)} tells nothing at this epsilon: it is {formula.lowest} to {formula.highest} by "
            f"the policy, and the error ± {math.ceil(half):,}{helps}"
        )


def _is_read_cut(env: Environment, index: int) -> bool:
    return env.columns[index].type.kind is Kind.TEXT and is_cut(env.columns[index])


def found_notes(rows: Sequence[ReleasedRows]) -> Iterator[GroupNote]:
    """Yield about how many people a group that is found in the data needs, and that none has so many: once of all
    releases by the same keys."""
    shown = dict[tuple[str, str], bool]()
    for released in rows:
        plan = released.plan
        tau = _tau(released)
        if tau is None or released.groups is None:
            continue
        names = ", ".join(_name(plan, number) for number in range(len(plan.release.keys)))
        people = f"about {tau:,} people"
        shown[names, people] = shown.get((names, people), False) or bool(released.groups.size)
    for (names, people), is_shown in shown.items():
        if is_shown:
            yield GroupNote(f"groups by {names} with fewer than {people} are not shown")
        else:
            yield EmptyNote(
                f"no group by {names} is shown: none has {people} or more; groups that are listed, in the policy or in "
                "WHERE key IN (…), are shown however few people they have"
            )


def hidden_notes(rows: Sequence[ReleasedRows], level: Fraction) -> Iterator[OnceNote]:
    """Yield how many rows have another value of a key than those that are listed, where a count of them says that some
    do: by a bar at a level that leaves out 0.
    """
    for released in rows:
        plan = released.plan
        for index, one in enumerate(plan.measures):
            found, what = released.measurements.get(index), one.measurement
            is_count = isinstance(what, Count) and what.masks == (Mask(()),)
            if plan.axes is None or not is_count or found is None or not found.draws:
                continue
            for place, number, law in others_of(found.draws[0], plan.axes):
                half = law.half_width(1 - level)
                if number <= half:
                    continue
                name, unit = _name(plan, place), what.denominator
                about = f"about {round(number / unit):,} ± {-(-half // unit):,} rows"
                if plan.axes[place].is_complete:
                    yield OnceNote(
                        f"the policy says that {name} has no other values than those listed, but {about} have; the "
                        "owner can look with dpsql check --data"
                    )
                else:
                    yield OnceNote(
                        f"{about} have another {name} than those listed: COUNT(*) holds them, groups do not"
                    )


def _tau(released: ReleasedRows) -> int | None:
    """Return the noisy count from which groups were shown: by the law of the draw that answers, where it says so."""
    plan = released.plan
    if plan.tau is None or plan.key_law is None or plan.counted not in released.measurements:
        return plan.tau
    (law,) = released.measurements[plan.counted].laws
    return plan.tau - plan.key_law.bound + law.bound if isinstance(law, Truncated) else plan.tau


def _name(plan: ReleasePlan, number: int) -> str:
    name = plan.release.names[number]
    return f'"{name}"' if name else "an expression"


# --- what may bend an answer --------------------------------------------------------------------------

_NOTHING = Known(nothing_measured)


def bias_notes(plan: Plan, known: Known = _NOTHING) -> tuple[str, ...]:
    """Return what may bend the answers besides the noise: contribution bounds that leave rows out.

    From the plan, and what is `known` by earlier releases: nothing is said of whether any row was left out.
    What the plan does not have is not asked for its notes.
    """
    notes: list[str] = []
    *by_release, rest = _notes_by_plan.of(plan)
    for release, own in zip(plan.releases, by_release, strict=True):
        is_single = release.bounding.per_row and release.bounding.numbered is None
        if not (is_single and release.release.rows.is_flat):
            notes += contribution_notes(release, known)
        notes += own
    return tuple(dict.fromkeys((*notes, *rest)))


def _plan_notes(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Return what the plan alone says: of each release, and of all of it."""
    by_release = [
        (*_coarse_steps(release), *(() if release.top is None else selection_notes(release)))
        for release in plan.releases
    ]
    notes: list[str] = []
    if any(release.release.keys or release.release.share != (1, 1) for release in plan.releases):
        notes += set_notes(plan)
    if plan.privacy.clock is not None:
        notes += period_notes(plan, plan.privacy.clock)
    notes += (_proved_note(release) for release in plan.releases if release.is_proved)
    for number in plan.tables:
        found = set(releases_of(plan.intermediates[number]))
        if any(release.groups is None for release in plan.releases if release.release in found):
            notes.append(
                "the keys of a subquery are found by threshold: rows of other keys find nothing there"
            )
    notes += strategy_notes(plan)
    for told in (null_notes, length_notes, wide_notes, sign_notes, width_notes):
        asked = (one for one in plan.releases if told is wide_notes or not one.is_empty)
        notes += (note for release in asked for note in told(release))
    coins = [said for relation in (*plan.intermediates, plan.root) for said in estimate_notes(relation)]
    notes += coins
    if coins and any(release.groups is None for release in plan.releases):
        notes.append(
            "groups are found by threshold: what is in those that are not shown is missing in estimates of the others"
        )
    return *by_release, tuple(notes)


_notes_by_plan = Made(_plan_notes, 64)


def model_notes(read: Iterable[Table]) -> tuple[str, ...]:
    """Return what is said of the models among the public tables that an answer is made of."""
    models = (table for table in read if table.name.startswith(f"{MODEL}."))
    return tuple(
        dict.fromkeys(f"model, no bar: {one.description or 'made of released tables'}" for one in models)
    )


def strategy_notes(plan: Plan) -> Iterator[str]:
    """Yield which groupings sums along a key are made of, and how far off they are expected to be."""
    for one in plan.strategies:
        release = plan.releases[one.release].release
        named = f' along "{one.key}"' if one.key else ""
        off, alone = (_said_of(_AT_95 * size) for size in (one.off, one.alone))
        within = (
            f"{'a total' if one.sums == 'running totals' else 'one'} is expected within ± {off} at 95 %, "
            f"± {alone} from its groups alone"
        )
        if not one.levels:
            yield (
                f'{one.sums} of "{release.rows.shown_name}"{named} are made of sums by a square root, which are drawn '
                f"in place of its groups: {within}"
            )
            continue
        listed = " and ".join((*((", ".join(one.names[:-1]),) if one.names[1:] else ()), one.names[-1]))
        yield (
            f'{one.sums} of "{release.rows.shown_name}"{named} are made of its groups and of groups {listed}, '
            f"which share the charge: {within}"
        )


def _said_of(size: float) -> str:
    return number_text(Fraction(f"{size:.3g}"))


def _proved_note(plan: ReleasePlan) -> str:
    """Return what the database enforces, so that no row counts: in all that is asked, or in some of it."""
    rows, calls = plan.release.rows, plan.release.aggregates
    said = dict.fromkeys(call_text(calls[number], rows) for number in sorted(plan.zeros))
    where = f"in {', '.join(said)}" if said else "here"
    return f'no row of "{rows.shown_name}" can count {where}: exact and free, the database enforces it'


def _coarse_steps(plan: ReleasePlan) -> Iterator[str]:
    """Yield what a variance makes of sums and averages of the same values, where it needs a coarser lattice.

    They share it: apart they would share epsilon, which costs more than steps of under 2^-23 of the range.
    """
    env = environment_of(plan.release.rows.columns, plan.release.rows.predicate)
    for measurement in (part for whole in plan.measurements for part in whole.parts):
        if measurement.kind != Moment.kind or measurement.value is None or measurement.lattice is None:
            continue
        alone = lattice_of(measurement.value, env, squared=False)
        if alone is None or alone.step >= measurement.lattice.step:
            continue
        column = env.declared(measurement.value)
        if alone.exact or (column is not None and column.step == alone.step):
            yield (
                f"a variance rounds its values to steps of {number_text(measurement.lattice.step)}, for sums and "
                f"averages of the same values too; asked for without it, they have steps of {number_text(alone.step)}"
            )


def estimate_notes(relation: Relation) -> tuple[str, ...]:
    """Return what is said of the coins of each answer whose estimates a relation holds."""
    found: dict[str, None] = {}
    seen: dict[int, Relation] = {}
    stack = [relation]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        stack += reversed(node.inputs)
        for part in (part for expr in expressions(node) for part in walk(expr)):
            if isinstance(part, Scalar):
                stack.append(part.relation)
            if part.calls("estimated") and part.args[3].is_constant:
                found.update(dict.fromkeys(str(part.args[3].constant).split("\n")))
    return tuple(found)


# --- chosen values: how far from the wanted one each may stand, in rows (soundness.md 1.20, 1.21) -----

_INSIDE = Fraction(1, 20)
"""MIN and MAX are looked for as far inside the ends as their choice misses by so often (soundness.md 1.20)."""
_MOST_NAMED = 4
"""Fractions that a note names one by one."""

StoredCount = Callable[[ReleasePlan, AggregateCall], int | None]
"""The lower end of the bar of a stored count of the rows that an aggregate takes in; None: nothing is stored."""


StoredOff = Callable[[ReleasedRows, AggregateCall], Off | None]
"""How far a chosen value is off its rank by a stored histogram of its column; None: none says more than its law."""


def rank_notes(
    rows: Sequence[ReleasedRows], level: Fraction, stored: StoredCount, told_by: StoredOff
) -> Iterator[RankNote]:
    """Yield how far each chosen value may be from the wanted one, and what share of the rows that is where it is known.

    Fractions of the same rows under the same law are told together.
    """
    for released in rows:
        told: dict[tuple[object, ...], list[AggregateCall]] = {}
        laws: dict[tuple[object, ...], Law] = {}
        for call, law in _chosen(released):
            is_alone = call.row.is_extreme or call.row.asks is Asks.MODE
            key: tuple[object, ...] = (is_alone and call.function, call.args[0], call.filter, law)
            told.setdefault(key, []).append(call)
            laws[key] = law
        for key, calls in told.items():
            count = _count(released, calls[0], level, stored)
            kind = OpenRankNote if count is None and released.plan.groups is not None else RankNote
            offs = [told_by(released, call) for call in calls]
            known = [off for off in offs if off is not None]
            off = max(known, key=lambda one: one.rows) if len(known) == len(offs) else None
            yield kind(_said(released.plan, calls, laws[key], level, count, off))


def _chosen(released: ReleasedRows) -> Iterator[tuple[AggregateCall, Law]]:
    """Yield what is chosen, with the law of the draw that answers."""
    plan = released.plan
    for call, formula in zip(plan.release.aggregates, plan.formulas, strict=True):
        if not plan.is_empty and isinstance(formula, Chosen) and formula.coordinate is not None:
            yield call, released.law_of(formula.coordinate)


def _count(released: ReleasedRows, call: AggregateCall, level: Fraction, stored: StoredCount) -> int | None:
    """Return how many rows there are at least, in each group; of groups that are found, none is known beforehand."""
    if released.plan.groups is None:
        return None
    beside = _counted_beside(released, call, level)
    return stored(released.plan, call) if beside is None else beside


def _counted_beside(rows: ReleasedRows, call: AggregateCall, level: Fraction) -> int | None:
    """Return the lower end of a count beside an aggregate in its own release, of the very rows that it takes in."""
    release = rows.plan.release
    env = environment_of(release.rows.columns, release.rows.predicate)

    def taken(one: AggregateCall) -> tuple[object, ...]:
        want = normal_form(one, env, release.rows.units)
        return want.function, want.filter

    own = taken(count_of(call))
    found = [
        lowest_of(rows, formula, level)
        for other, formula in zip(release.aggregates, rows.plan.formulas, strict=True)
        if other.function == "count" and isinstance(formula, Linear) and taken(other) == own
    ]
    return max((one for one in found if one is not None), default=None)


def lowest_of(rows: ReleasedRows, count: Linear, level: Fraction) -> int | None:
    """Return the lower end of a count's bar, the least over its groups; None: there is no group."""
    if rows.groups is None or not rows.groups.size:
        return None
    values, deviation = float(count.constant) + np.zeros(rows.groups.size), 0.0
    for coordinate, weight in count.terms:
        values = values + float(weight) * np.asarray(rows.values_of(coordinate), dtype=float)
        half = rows.law_of(coordinate).half_width(1 - level)
        deviation = float(np.hypot(deviation, abs(float(weight)) * half))
    return int(np.floor(values.min() - deviation))


def _said(
    plan: ReleasePlan, calls: Sequence[AggregateCall], law: Law, level: Fraction, count: int | None,
    off: Off | None,
) -> str:  # fmt: skip
    rows, call = law.half_width(1 - level) if off is None else off.rows, calls[0]
    if call.row.asks is Asks.MODE:
        where = f"the value has at most {rows:,} rows fewer than the most frequent one"
    elif call.row.is_extreme:
        rows += law.half_width(_INSIDE)
        where = f"at most {rows:,} rows are {'larger' if call.share else 'smaller'} than the value"
    else:
        shares = sorted({one.share for one in calls})
        subject = "the value is" if len(shares) == 1 else f"each of {len(shares)} values is"
        where = f"{subject} within {rows:,} rows of {_wanted(shares)}"
    counted = f", as stored counts {off.counted} show" if off is not None else ""
    of_rows = ""
    if count is not None and count > rows:
        each = " of a group" if plan.release.keys else ""
        of_rows = f": {100 * rows / count:.2g} % of the rows{each}, of which there are {count:,} or more"
    return (
        f"{call_text(call, plan.release.rows)}: {where}, at {decimal_text(100 * level)} %{counted}{of_rows}"
    )


def _wanted(shares: Sequence[Fraction]) -> str:
    if list(shares) == [Fraction(1, 2)]:
        return "the true median"
    if len(shares) > _MOST_NAMED:
        return "the true percentile"
    return f"the true percentile {', '.join(map(number_text, shares))}"


# --- columns and aggregates in the query's own words ------------------------------------------------------


def origins_of(relation: Relation, index: int, *, is_apart: bool) -> Iterator[tuple[Release, int]]:
    """Yield the releases and their output that column `index` of a relation carries unchanged, one or none; where
    some are one release, period by period (`is_apart`), all of these."""
    while isinstance(relation, Block):
        origin = None if relation.last == "distinct" else relation.origin(index)
        if origin is None:
            return
        relation, index = origin
    if isinstance(relation, Release):
        yield relation, index
    elif is_apart and isinstance(relation, SetOperation) and relation.kind == "union" and relation.all:
        for side in relation.inputs:
            yield from origins_of(side, index, is_apart=True)


def call_text(call: AggregateCall, rows: OwnedRows) -> str:
    """Return an aggregate in the query's own words, as far as they are column names."""
    args = call.args[:1] if call.row.is_ordered else call.args
    plain = ["…" if arg.column is None else rows.columns[arg.column].name or "…" for arg in args]
    listed = f"({', '.join(plain)})" if call.distinct and len(plain) > 1 else ", ".join(plain)
    shown = f"{'DISTINCT ' if call.distinct else ''}{listed}" if call.args else "*"
    return f"{call.row.said or call.function}({shown})" + (" FILTER (…)" if call.filter is not None else "")
