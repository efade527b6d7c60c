"""What a measurement pays for where stored draws tell a part of it, what was spent by then, and how far off it will be.

The price is a function of text, policy and the laws of stored draws. It is looked for in what the estimate of all
draws of the same rows would be with one draw more (`sources_of`), so whatever that reads, the price counts on.

House rules (soundness.md 3.13):

1. What is drawn is charged in full, with its own noise (`Wish.law`). A price that is wrong costs accuracy or budget,
   never privacy.
2. As exact as alone is every number that the answer shows. Where it computes with numbers of several groups, their
   errors may go the same way: then a measurement's own draws alone count, whose errors are independent.
3. What is offered as known was tried: with the draw that is paid for, no number has more variance than alone.
4. Of what a statement that fails has spent by then only what the ledger says is told, and the ledger's decision
   depends on noisy content alone. So whoever reads it learns nothing that `SHOW dpsql.budget` would not tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Final

from ..budget import (
    CLOSE,
    ZERO,
    Charge,
    Fresh,
    Grouping,
    Known,
    StoredDraws,
    StoredGrouping,
    delta_text,
    epsilon_text,
    rho_text,
)
from ..cache import Made
from ..errors import DpsqlError
from ..mechanisms import NANO, Gaussian, Laplace, SquareRoot, Wish, half_width_of
from ..plan.measures.formulas import Linear
from ..plan.planner import Plan
from ..plan.privacy.rows import AddedUp, Release
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.relations import Block, Join, Lateral, Recursive, Relation, all_parts, subqueries
from .finer import Source, sources_of
from .released import Groups

_NEW: Final = 2**63 - 1
"""Stands for the ledger entry of what would be drawn: newer than all others."""
_CHORDS: Final = 3
_TRIES: Final = 3
_SLACK: Final = Fraction(1, 2**18)
"""Of the wanted precision, what may be missing: far less than `CLOSE`."""


def wish_of(plan: ReleasePlan, index: int) -> Wish | None:
    """Return what lets a measurement be paid for in part; None where it is paid for in full.

    That is what decides what is shown, what is chosen, what is drawn together with several widths, and what has less
    noise than a step of its lattice, where means would be rounded to more than is drawn.
    """
    one = plan.measures[index]
    if plan.is_empty or one.is_exact or one.choice is not None or index in (plan.counted, plan.selection):
        return None
    if one.is_stored or not isinstance(one.law, Gaussian | Laplace | SquareRoot) or one.law.spread < 1:
        return None
    if plan.is_zcdp:
        return Wish(one.squared_sensitivity, one.rho_atto, True, one.places is not None)
    wish = Wish(int(one.measurement.sensitivity), math.ceil(one.epsilon * NANO), False)
    return wish if wish.law(wish.loss) == one.law else None


def reads_each_alone(plan: Plan) -> bool:
    """Say whether no number of a statement's answer is computed from numbers of several groups, or of several releases:
    rows of releases are filtered, ordered and joined to public ones, each by itself.
    """
    return not plan.intermediates and _each_alone.of(plan.root)


def _is_each_alone(root: Relation) -> bool:
    for node in all_parts(root):
        if isinstance(node, AddedUp | Recursive) or (
            isinstance(node, Block) and (node.group or node.windows)
        ):
            if _has_release(node):
                return False
        elif isinstance(node, Join | Lateral) and _has_release(node.left) and _has_release(node.right):
            return False
        if any(map(_has_release, subqueries(node))):
            return False
    return True


_each_alone = Made(_is_each_alone)


def _has_release(relation: Relation) -> bool:
    return any(isinstance(part, Release) for part in all_parts(relation))


def known_of(
    plan: ReleasePlan, index: int, wish: Wish, grouping: Grouping | None, groups: Groups, store: StoredDraws
) -> Known | None:
    """Return what stored groupings of a measurement's rows leave to be drawn of it; None: no less than all. `grouping`:
    what it is to those.

    What nothing tells yet is told better, with its own draw, where coarser groupings are stored. An epsilon is about
    the root of a precision: what a draw saves of it the coarser groupings, which it tells too, may have to pay back,
    and more than was saved. So there all of it is drawn, unless those by one key less are told without it.
    """
    stored = () if grouping is None else store.groupings([grouping.family])[1][grouping.family]
    if grouping is None or not stored:
        return None

    def told(beside: StoredGrouping | None, without: bytes | None = None) -> Source | None:
        found = sources_of(plan, index, groups, store, of_same_rows=True, beside=beside, without=without)
        mine = (one for one in found if one.question.predicate == plan.release.rows.predicate)
        return min(mine, key=lambda one: one.spread, default=None)

    whole, counted = wish.precision(wish.loss), dict[int, tuple[int, ...]]()
    before = told(None)
    if before is None and not wish.is_zcdp:
        coarser = (_lacking(told(None, key.digest), whole) for key in grouping.keys)
        if any(lacking > whole * (CLOSE - 1) for lacking in coarser):
            return None

    def lacking(loss: int) -> Fraction:
        found = told(StoredGrouping(_NEW, wish.law(loss), grouping))
        counted[loss] = () if found is None else tuple(sorted({*found.entries} - {_NEW}))
        return _lacking(found, whole)

    loss = _least(wish, whole, _lacking(before, whole), lacking)
    if loss is None or not counted[loss]:
        return None
    seen = frozenset(one.entry for one in stored)
    return Known(loss, counted[loss], ((grouping.family, seen),))


def _least(wish: Wish, whole: Fraction, lacking: Fraction, beside: Callable[[int], Fraction]) -> int | None:
    """Return the loss of a draw beside which no number lacks precision; None: it is no less than alone.

    `lacking`: what the number that lacks most does without it: all, where nothing tells it. Precision is a concave
    function of that of a further draw, which adds all of its own at least: so the draw of all that is lacking is
    enough, and so is that where the chord up to there reaches what is wanted, and the chord up to that again.
    """
    precision, found, chords = lacking, wish.loss, 0
    for attempt in range(_TRIES + _CHORDS):
        loss = wish.reaching(precision)
        if loss >= found and attempt:
            break
        left = beside(loss)
        if left <= whole * _SLACK:
            found, had, chords = loss, wish.precision(loss), chords + 1
            if (
                chords > _CHORDS or left >= lacking
            ):  # no chord falls where nothing lacks, as another has drawn it
                break
            precision = had * lacking / (lacking - left)
        elif chords:
            break
        else:
            precision += left
    return found if found < wish.loss else None


def _lacking(told: Source | None, whole: Fraction) -> Fraction:
    """Return how much precision the number that lacks most does, of what each has alone."""
    if told is None:
        return whole
    lacking, most = [], {rounding: variance for variance, rounding in sorted(told.errors)}
    for rounding, variance in most.items():
        free = 1 / whole - Fraction(rounding)  # what rounding all numbers together leaves
        lacking.append((1 / free if free > 0 else 2 * whole) - 1 / Fraction(variance))
    return max(lacking)


# --- in words ---------------------------------------------------------------------------------------------------


def said_of_missing(fresh: Sequence[Fresh | None]) -> str | None:
    """Return what is to be drawn beside what is stored, in words; None where nothing of it is."""
    drawn = [one for one in fresh if one is not None]
    if not any(one.stored for one in drawn):
        return None
    if all(isinstance(one.law, Gaussian | SquareRoot) for one in drawn if one.stored):
        more, stored = sum(one.charge.rho_atto for one in drawn), sum(one.stored for one in drawn)
        return f"{rho_text(more)} of rho more; {rho_text(stored)} is stored"
    more = sum(one.charge.epsilon_nano for one in drawn)
    known = " and ".join(dict.fromkeys(f"{epsilon_text(one.stored)}" for one in drawn if one.stored))
    return f"epsilon {epsilon_text(more)} more; what is stored is as exact as {known}"


def said_of_entries(fresh: Sequence[Fresh | None]) -> tuple[str, ...]:
    """Return which stored draws stand for what is not drawn, in words; none where there are none."""
    entries = sorted({entry for one in fresh if one is not None for entry in one.entries})
    if not entries:
        return ()
    *before, last = map(str, entries)
    listed = f"entries {', '.join(before)} and {last}" if before else f"entry {last}"
    return (
        f"a part of this answer is known from {listed} of the ledger; what is missing is drawn and paid for",
    )


_STOPPED = ("53200", "55006", "57014", "57V01", "58V01", "F0V02")
"""Errors that may come before the charge as well as after it: they always say which it was."""


@dataclass
class Cost:
    """What the running statement was charged so far; `is_known`: for certain; `is_stored`: what was drawn for it is
    stored, None: it may be.
    """

    charge: Charge = ZERO
    is_stored: bool | None = False
    is_known: bool = True

    def charging(self, charge: Charge, is_logged: bool | None) -> None:
        """Take note of a charge that is being made; see `LedgerStore.reserve`."""
        self.charge = ZERO if is_logged is False else charge
        self.is_known = is_logged is not None

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was charged."""
        return self.charge == ZERO

    def text(self, *, reuse: bool) -> str:
        """Return what was spent, and what asking again costs; `reuse`: of the session's setting."""
        if self.is_nothing:
            return "nothing was charged"
        delta = f", delta {delta_text(self.charge.delta_atto)}" if self.charge.delta_atto else ""
        charged = f"epsilon {epsilon_text(self.charge.epsilon_nano)}{delta}"
        if not self.is_known:
            return f"whether {charged} was charged is not known; if so, it stays spent, and nothing is stored for it"
        again = "asking again is free" if reuse else "asking again with dpsql.reuse on is free"
        if self.is_stored is None:
            return f"{charged} was charged and stays spent; whether its release is stored is not known: if so, {again}"
        if not self.is_stored:
            return f"{charged} stays spent, and nothing was stored for it"
        return f"{charged} was charged, and the release is stored: {again}"


@contextmanager
def telling(cost: Cost, *, reuse: bool) -> Iterator[None]:
    """Have an error that leaves the block say what was spent, where something was or may have been."""
    try:
        yield
    except DpsqlError as error:
        if not cost.is_nothing or error.sqlstate in _STOPPED:
            error.cost = cost.text(reuse=reuse)
        raise


MISSING = Fraction(1, 20)
"""How often what is said after ± misses."""
_FEW_NOISES = 64
_NORMAL = 1.959964


def _formula_half(plan: ReleasePlan, formula: Linear, cells: int = 1) -> Fraction:
    """Return the half-width of a linear formula at 95 %, added up over so many groups: exact to six digits.

    Of many noises it is the normal one, which their sum comes to.
    """
    if plan.is_empty or not formula.terms:
        return Fraction(0)
    noises = plan.noises(formula)
    if len(noises) * cells <= _FEW_NOISES or cells == 1:
        return half_width_of(noises * cells, MISSING)
    variance = cells * sum(weight**2 * law.spread for law, weight in noises)
    return Fraction(_NORMAL * math.sqrt(variance)).limit_denominator(10**6)


def expected_error(
    plan: ReleasePlan, index: int, half_of: Callable[[Linear], Fraction] | None = None, cells: int = 1
) -> tuple[Fraction, bool]:
    """Return the expected ± of an aggregate, at 95 %; True: at most, and to be divided by the number of rows.

    `cells`: of how many groups of the release its numbers are added up. `half_of`: the half-width of a linear formula,
    where another level is meant.
    """
    return plan.formulas[index].widest(half_of or (lambda one: _formula_half(plan, one, cells)))
