"""The way of one query, station by station, for one analyst: planned, looked up, carried out, answered.

text ─parse→ tree ─bind→ relation ─analyze, plan→ plan ─look up, else charge, run, privatise→ releases ─post-process→
rows

architecture.md follows one statement through them, call by call.

Comparisons with a value that the policy does not list: mostly a slip, told before it is charged.

House rules for lists of keys:

1. Text and policy decide, never data. The list is no constraint: rows may hold other values, and with `dpsql.unlisted`
   on they are asked for as any others. What the engine enforces needs no charge and is no question here.
2. What somebody wrote is a question, and nothing else: what a view's text compares is its owner's, and is not told; nor
   is the name of a column that only views read.

House rules, turns of what a server computes:

1. A turn is held while the interpreter or an engine computes for one statement. Nothing that waits for something else
   is done within a planning turn (`Turn.paused`).
2. Order and length of turns depend on texts, public rows and released values alone, as their work does: no turn is held
   while the owner's engine reads private rows.
3. A short statement goes before the long work of others (`Precedence`): before long texts, which are planned in pieces,
   and before large answers, which are kept in pieces.
"""

from __future__ import annotations

import difflib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field, replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

from ..budget import ZERO, Charge, Status, shown_epsilon
from ..errors import UNLISTED, EngineFailure, PolicyError, Refusal
from ..mechanisms import ATTO, NANO, Noise, SampledNoise
from ..memory import STATEMENT_BYTES, Share
from ..plan.backend_sql.print_release import BackendQuery
from ..plan.planner import Plan, PrivacyParameters, plan
from ..plan.privacy.rows import Item, Source, selects_in, written_in
from ..plan.release_plan import ReleasePlan
from ..policy import Policy, access_of
from ..postprocess.bars import add_companions
from ..records import dataclass
from ..regex import regex
from ..relation.catalog import Catalog, Column, OwnView, Scalar, Table, View
from ..relation.expressions import Expr, Literal, walk
from ..relation.relations import AggregateCall, Relation, ends_in
from ..relation.types import SqlType
from ..release.answer_bars import Cut, FindLeftOut, cut_of
from ..release.beside import find_beside, find_together
from ..release.consistent import consistent
from ..release.levels import are_told, with_levels
from ..release.post_processing import Compiled, Patience, PublicRows, check_public, compile_public, run_public
from ..release.price import Cost, telling
from ..release.released import canonical, publishable
from ..release.run import IntermediateRows, PlanRunner, ReleasedRows, carried, check_intermediate
from ..sql.bind_select import bind
from ..sql.scope import BindingContext
from ..sql.statement import (
    AdmittedQuery,
    check_parameters,
)
from ..sql.text import is_text
from ..sql.text_process import TextProcess
from ..waits import Pace, Place, Precedence, Stop, Turn, Turns, until
from .accuracy import choose, stored_count
from .answer import Answer, OpenRankNote, Receipt, left_text
from .contribution import Known
from .dataset import Dataset, LazySnapshot, PreparedPlan
from .notes import (
    Barred,
    Off,
    bias_notes,
    draw_bars,
    found_notes,
    hidden_notes,
    model_notes,
    rank_notes,
    rows_off,
)
from .row_previews import PLACE, row_preview, without_places
from .settings import Settings
from .workspace import LOST, Above, Kept, Workspace, is_own, with_laws

# --- turns of what a server computes ------------------------------------------------------------------------


LONG = 4_000
"""Characters from which on a statement is read and planned among the long ones, for which no short one waits."""
_MUCH = 0.5
"""Seconds that an analyst has taken lately, from which on its long texts are read in another process first."""


class StatementTurns:
    """The turns of one policy: to plan, one short and one long statement at a time; to compute what is free."""

    def __init__(
        self,
        public_at_once: int,
        precedence: Precedence | None = None,
        database: str = "",
        texts: TextProcess | None = None,
        shared: Callable[[str, int, Callable[[], bool]], AbstractContextManager[None]] | None = None,
    ) -> None:
        """`public_at_once`: statements of one analyst that read public rows, or post-process releases; `shared`: gives,
        by name, number and what cancels, a turn of those that are so many over several processes.

        `precedence`: of all that share the interpreter, in which the analysts of this `database` are others than those
        of the same name elsewhere. `texts`: theirs, too; None: all texts are read here.
        """
        self._texts = texts
        self._short, self._long, self._free = Turns(1, 1), Turns(1, 1), Turns(None, public_at_once)
        self._precedence, self._database = precedence or Precedence(), database
        self._public_at_once, self._shared = public_at_once, shared

    def place(self, analyst: str) -> Place:
        """Return where a statement of an analyst goes ahead of others' long work."""
        return Place(self._precedence, self._name(analyst))

    def pace(self, analyst: str) -> Pace:
        """Return what long work of an analyst is done in."""
        return Pace(self._precedence, self._name(analyst))

    def elsewhere(self, size: int, analyst: str) -> TextProcess | None:
        """Return where a text of so many characters is checked first; None: here, of who has taken little lately."""
        if size <= LONG or self._precedence.taken(self._name(analyst)) < _MUCH:
            return None
        return self._texts

    def _name(self, analyst: str) -> str:
        return f"{self._database} {analyst}"

    @contextmanager
    def to_plan(self, size: int, analyst: str, cancelled: Callable[[], bool]) -> Iterator[Turn]:
        """Have the turn to parse and plan a statement of so many characters. Raises EngineFailure (57014)."""
        if size <= LONG:
            with self._short.turn(analyst, cancelled) as turn:
                yield turn
            return
        with self._long.turn(analyst, cancelled) as turn, self.pace(analyst).piece():
            yield turn

    @contextmanager
    def to_compute(self, analyst: str, cancelled: Callable[[], bool]) -> Iterator[Turn]:
        """Have a turn for what costs nothing. Raises EngineFailure (57014)."""
        with self._free.turn(analyst, cancelled) as turn:
            if self._shared is None:
                yield turn
                return
            with self._shared(self._name(analyst), self._public_at_once, cancelled):
                yield turn


# --- comparisons with a value that the policy does not list: mostly a slip, told before it is charged -------


_MOST_NAMED = 8
_CONSTANT = regex(r"(?:[a-z]&?)?'|\$", re.IGNORECASE)


def check_listed(plan: Plan, text: str) -> None:
    """Refuse a comparison of a column of people with a value that its declared ones lack. Raises Refusal (PV302)."""
    for release in plan.releases:
        if release.is_empty:
            continue
        for column, literal in _compared(release):
            if not _is_written(literal, text):
                continue
            value = str(literal.value)
            shown = f'"{column.name}"' if column.name else "this column"
            raise Refusal(
                f"{shown} has no value {_quoted(value)} in the policy",
                sqlstate=UNLISTED,
                position=literal.position,
                hint=f"{_nearest(value, column)} To compare with {_quoted(value)} all the same: "
                "SET dpsql.unlisted = on",
            )


def _compared(release: ReleasePlan) -> Iterator[tuple[Column, Literal]]:
    """Yield texts that a column of people with declared values is compared with, and that are none of them."""
    rows = release.release.rows
    for select in selects_in(rows):
        written = written_in(select)
        if select is rows:
            written += release.release.keys
            for call in release.release.aggregates:
                written += [*call.args, *([] if call.filter is None else [call.filter])]
        yield from _in(written, [column for item in select.items for column in _columns(item)])
        for place, item in enumerate(select.items):
            before = [column for one in select.items[:place] for column in _columns(one)]
            yield from _in(item.on, [*before, *_of(item.source)])


def _columns(item: Item) -> Sequence[Column | None]:
    return item.columns if item.kind == "mark" else _of(item.source)


def _of(source: Source) -> Sequence[Column | None]:
    """Return a source's columns; of public rows, which show what they hold, none is asked about."""
    if not source.is_private:
        return [None] * len(source.columns)
    table = source.uncut.table
    if table is not None and table.is_hidden:
        return [replace(column, name="") for column in source.columns]
    return source.columns


def _in(written: Sequence[Expr], columns: Sequence[Column | None]) -> Iterator[tuple[Column, Literal]]:
    for part in (part for expr in written for part in walk(expr)):
        if not part.calls("eq", "ne", "in"):
            continue
        known = [columns[side.column] for side in part.args[:2] if side.column is not None]
        values = [side for side in part.args if isinstance(side, Literal) and isinstance(side.value, str)]
        for column in known[:1]:
            if column is not None and column.values is not None:
                unlisted = [value for value in values if value.value not in column.values]
                if len(unlisted) == len(values):  # a list of which some are there is one that tools send
                    yield from ((column, value) for value in unlisted)


def _is_written(literal: Literal, text: str) -> bool:
    """Say whether a constant stands in the statement, or is a parameter: one of a view stands where its name does, and
    the empty text, with which a text's parts are counted, nowhere."""
    at = literal.position
    return literal.value != "" if at is None else _CONSTANT.match(text, at.offset) is not None


def _nearest(value: str, column: Column) -> str:
    listed = [one for one in column.values or () if isinstance(one, str)]
    by_lower = {one.lower(): one for one in listed}
    close = difflib.get_close_matches(value.lower(), by_lower, 1, 0.5)
    if close:
        return f"did you mean {_quoted(by_lower[close[0]])}?"
    shown = ", ".join(map(_quoted, listed[:_MOST_NAMED]))
    return f"its values are {shown}{', …' if len(listed) > _MOST_NAMED else ''}."


def _quoted(text: str) -> str:
    return "'" + text[:60].replace("'", "''") + "'"


# --- keys of public tables, read for a plan: in the statement's own snapshot, before anything is charged ----


@dataclass
class ListedKeys:
    """Reads lists of keys for one plan; `snapshot` None: for the columns of an answer alone, lists are empty.

    `paused`: in which the database is asked, so that other statements are planned meanwhile.
    """

    snapshot: LazySnapshot | None
    paused: Callable[[], AbstractContextManager[None]] = nullcontext
    are_read: bool = False

    def read(self, query: BackendQuery, types: tuple[SqlType, ...]) -> list[tuple[Scalar, ...]]:
        """Return the keys that a query gives (`planner.ReadKeys`). Raises EngineFailure."""
        self.are_read = True
        if self.snapshot is None:
            return []
        with self.paused():
            rows = [row for chunk in self.snapshot.open().run(query.sql, []) for row in chunk]
        return listed(rows, types)


def listed(rows: list[tuple[Any, ...]], types: tuple[SqlType, ...]) -> list[tuple[Scalar, ...]]:
    """Return keys in canonical form; a moment that has no place in our calendar is no group."""
    changes = [canonical(type_) for type_ in types]
    found = [tuple(v if c is None else c(v) for v, c in zip(row, changes, strict=True)) for row in rows]
    columns = [[group[place] for group in found] for place in range(len(types))]
    good = publishable(columns, types, len(found))
    return [group for group, is_good in zip(found, good, strict=True) if is_good]


# --- the way of one query, station by station, for one analyst ----------------------------------------------


_T = TypeVar("_T")
DEFAULT_LEVEL = Fraction(19, 20)
_SURE = Fraction(99, 100)
"""At which level rows of values that are not listed are spoken of."""
_WITHOUT_BARS = "error bars took too long, or too much memory, and are NULL here"
_AGREE = (
    "numbers of the same rows that were read together were made to agree, by least squares over their draws"
)
_LATE = "post-processing took more than {:g} seconds"
_LONGEST_KEPT = 20_000
"""Characters of a statement with its parameters, of which plan and answer are remembered."""


@dataclass
class Spine:
    """What stations of a query share. One query at a time; `cancel` may come from outside.

    `analyst`: a label for the ledger's fairness caps, not an identity (threat-model.md).
    `is_shared`: others use the dataset too. `time_limit`: most seconds for post-processing; None for the usual minute.
    `release_time`: of a statement that began at one moment and has its draws at another (of `time.monotonic`), when
    they may be known; None: at once.
    `turns`: a server's, in which statements are planned and post-processed; None: at once, and without the limits that
    the owner sets for public statements.
    `doing`: what the running statement waits for, in words for the one who waits; any thread may read it.
    `catalog`: the declared tables and columns that this analyst sees, as the database had them when it was opened.
    """

    dataset: Dataset
    analyst: str = "local"
    is_shared: bool = False
    time_limit: float | None = None
    release_time: Callable[[float, float], float] | None = None
    turns: StatementTurns | None = None
    _noise: Noise = field(default_factory=SampledNoise, repr=False)

    def __post_init__(self) -> None:
        if not is_text(self.analyst):
            raise PolicyError("the analyst's name is not text")
        self.settings = Settings.of(self.policy)
        self.access = access_of(self.policy, self.analyst)
        self.catalog = self.dataset.seen_by(self.access)
        self._cancelled, self._expired = Stop(), threading.Event()
        self._sealed = self.dataset.sealed.sharing(self._cancelled.is_set, self.analyst)
        self._place = None if self.turns is None else self.turns.place(self.analyst)
        self._began = 0.0
        self.workspace = Workspace(self.policy, self.analyst)
        self.doing = "planning"

    @property
    def policy(self) -> Policy:
        """What the owner declared."""
        return self.dataset.policy

    @property
    def seen(self) -> Catalog:
        """The catalog with what the analyst has made. Raises EngineFailure."""
        return self.workspace.seen(self.catalog)

    def cancel(self) -> None:
        """Stop the running statement, from any thread; what it has charged stays spent."""
        self._cancelled.set()
        self.dataset.backend.cancel(self)
        self._sealed.cancel()
        self.workspace.cancel()

    def expire(self) -> None:
        """Stop the running statement as `cancel` does, since its time is up: if it is post-processed, it is told so."""
        self._expired.set()
        self.cancel()

    def budget(self) -> Status:
        """Return what is spent and what the caps are."""
        store = self.dataset.store
        status = store.status_at_once(self.analyst) or store.status(self.analyst)
        self.dataset.last_read.read(self.analyst, status)
        return status

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Have the block be one statement: what stops it ends its waits, and what stopped an earlier one does not."""
        self._cancelled.clear()
        self._expired.clear()
        self._began = time.monotonic()
        with until(self._cancelled):
            yield

    def snapshot(self) -> AbstractContextManager[LazySnapshot]:
        """Have what opens a snapshot on first use, which a cancel of this statement stops."""
        return self.dataset.lazy_snapshot(self, self._cancelled)

    # --- its turn, and what it holds -------------------------------------------------------------------------

    @contextmanager
    def ahead(self, size: int) -> Iterator[None]:
        """Have a statement of so many characters go before others' long work within the block, unless it is long."""
        if self._place is None or size > LONG:
            yield
            return
        self._place.enter()
        try:
            yield
        finally:
            self._place.leave()

    def _apart(self) -> AbstractContextManager[None]:
        """Be ahead of nobody while private rows are read, and until their draws may be known.

        Where there is no grid, an analyst's own clock tells how long the engine takes, and everybody may see it.
        """
        return nullcontext() if self._place is None or self.release_time is None else self._place.apart()

    @contextmanager
    def _memory(self) -> Iterator[Share | None]:
        """Yield where what a statement holds is counted: what it takes at least is there before anything is charged.

        Raises EngineFailure: 53200, there is no room; 57014, the statement is cancelled.
        """
        share = self.share()
        if share is None:
            yield None
            return
        with share:
            share.take(STATEMENT_BYTES)
            yield share

    def share(self) -> Share | None:
        """Return where what this analyst holds is counted; None where nobody counts."""
        memory = self.dataset.memory
        return None if memory is None else memory.share(self.analyst, self._cancelled.is_set)

    def read_text(self, read: Callable[[str], _T], text: str) -> _T:
        """Return what a function of a text alone returns; a long one of who takes much is read in another process.

        Requires: it is a module's own function. Raises what it raises.
        """
        other = self._elsewhere(text)
        return read(text) if other is None else other.call(read, text)

    def _elsewhere(self, text: str) -> TextProcess | None:
        return None if self.turns is None else self.turns.elsewhere(len(text), self.analyst)

    @contextmanager
    def _to_plan(self, sql: str) -> Iterator[Turn | None]:
        """Have the turn to parse and plan a text within the block. Raises EngineFailure: cancelled before its end."""
        if self.turns is None:
            yield None
            return
        with (
            telling(Cost(), reuse=self.settings.reuse),
            self.turns.to_plan(len(sql), self.analyst, self._cancelled.is_set) as turn,
        ):
            yield turn
            self._check_cancelled()

    def _check_cancelled(self) -> None:
        """Raise EngineFailure (57014) if the statement is cancelled: where no engine runs that would say so."""
        if self._cancelled.is_set():
            raise EngineFailure("cancelled before anything was charged", sqlstate="57014")

    def _to_compute(self) -> AbstractContextManager[Turn | None]:
        return (
            nullcontext()
            if self.turns is None
            else self.turns.to_compute(self.analyst, self._cancelled.is_set)
        )

    # --- planned ---------------------------------------------------------------------------------------------

    def planned(
        self, query: AdmittedQuery, parameters: tuple[object, ...], snapshot: LazySnapshot | None = None,
        kept: Kept | None = None,
    ) -> PreparedPlan:  # fmt: skip
        with self._to_plan(query.text) as turn:
            keys = ListedKeys(snapshot, nullcontext if turn is None else turn.paused)
            return self._planned_at_once(query, parameters, keys, kept)

    def _planned_at_once(
        self, query: AdmittedQuery, parameters: tuple[object, ...], keys: ListedKeys, kept: Kept | None
    ) -> PreparedPlan:
        context = self._context(query, parameters)
        relation, notes = bound_in(query, context), tuple[str, ...]()
        if kept is not None:
            relation = kept.shape(relation)  # what is kept is no look at rows
        else:
            relation, notes = self._shown(query, relation)
        self._check_cancelled()
        if self.settings.accuracy is None:
            planned, chosen = self._plan(relation, self.settings.epsilon, keys), None
        else:
            level, most = self._level(), self.policy.defaults.max_epsilon
            planned = self._plan(relation, most, keys)
            chosen = choose(planned, self.settings.accuracy, level, most, self._counted)
            planned = planned if chosen is None else self._plan(relation, chosen.epsilon, keys)
        self._check_cancelled()
        if not self.settings.unlisted:
            check_listed(planned, query.text)
        barred = self._barred(planned)
        planned = with_levels(barred.plan, self.catalog) if chosen is None else barred.plan
        compiled = self.compiled(planned)
        intermediates = tuple(
            compile_public(one, planned.releases, self.dataset.dialect) for one in planned.intermediates
        )
        lasting = not context.moments  # another answer next time
        lasting = lasting and not keys.are_read  # another list next time, where the table has changed
        lasting = lasting and kept is None and not any(map(is_own, context.found))
        lasting = lasting and _is_small(query.text, parameters) and not (chosen and chosen.uses_store)
        return PreparedPlan(
            planned, compiled, intermediates, lasting and not barred.uses_store,
            chosen=chosen.said if chosen else None, bar_notes=(*barred.notes, *notes), found=tuple(context.found),
        )  # fmt: skip

    def bound(self, query: AdmittedQuery) -> tuple[Relation, list[Table | View | OwnView]]:
        """Return what a query means, planned or not, and what it names. Raises Refusal."""
        with self._to_plan(query.text):
            context = self._context(query, ())
            return bound_in(query, context), context.found

    def _shown(self, query: AdmittedQuery, relation: Relation) -> tuple[Relation, tuple[str, ...]]:
        """Return what a statement is answered with, and why that is another relation than it asks for, if it is."""
        is_aggregated = ends_in(relation, "outputs") and ends_in(relation.below, "group")
        if is_aggregated or not self.policy.has_previews:  # what is aggregated is no look at rows
            return relation, ()
        shown = row_preview(query, relation, self.catalog, has_grids=self.settings.grids)
        return (relation, ()) if shown is None else (shown.relation, (shown.note,))

    def _barred(self, planned: Plan) -> Barred:
        """Return the plan with the bars of chosen values, where error bars are asked for."""
        if self.settings.intervals is None or not self.settings.draws_ends:
            return Barred(planned)
        return draw_bars(planned, self.catalog, planned.privacy, self.settings.intervals, self._counted_at)

    def barred_root(self, planned: Plan) -> Relation:
        """Return what a statement means above its releases, with the columns of its bars."""
        if self.settings.intervals is None:
            return planned.root
        plans = {one.release: one for one in planned.releases}
        return add_companions(planned.root, plans, self.settings.interval_names)

    def compiled(self, planned: Plan) -> Compiled:
        """Return the statement above its releases, with the columns of its bars."""
        return compile_public(self.barred_root(planned), planned.releases, self.dataset.dialect)

    def above(
        self, prepared: PreparedPlan, rows: Sequence[ReleasedRows], snapshot: LazySnapshot, public: PublicRows
    ) -> Above:
        """Return what is computed over a statement's releases, and over own tables' queries. Raises as `with_laws`."""
        if not prepared.reads_own:
            return Above(prepared.compiled, rows)
        return with_laws(self, prepared, rows, snapshot, public)

    def run_above(
        self,
        compiled: Compiled,
        rows: Sequence[ReleasedRows],
        public: PublicRows,
        patience: Patience,
        find: FindLeftOut | None = None,
    ) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a compiled statement over its releases. Raises as `run_public`."""
        cuts = self._cuts([one.plan for one in rows], find or cache(self.dataset.left_out))
        return run_public(compiled, rows, self._sealed, self._level(), public, patience, cuts)

    def _level(self) -> Fraction:
        """Return at which level bars hold."""
        return self.settings.intervals or DEFAULT_LEVEL

    def _context(self, query: AdmittedQuery, parameters: tuple[object, ...]) -> BindingContext:
        check_parameters(query, len(parameters))
        return BindingContext(self.seen, query.text, parameters, time.time_ns() // 1000, {})

    def _plan(self, relation: Relation, epsilon: Fraction, keys: ListedKeys) -> Plan:
        """Plan a bound statement at an epsilon, under this session's other settings."""
        privacy = self._privacy(epsilon)
        return plan(relation, self.catalog, privacy, keys.read)

    def _privacy(self, epsilon: Fraction) -> PrivacyParameters:
        known = PrivacyParameters.of(self.policy, epsilon, self.dataset.clock(is_open=self.settings.open))
        own = self.settings
        return replace(known, max_rows=own.max_rows, selection=own.selection, found_share=own.found_share)

    def _counted(self, release: ReleasePlan, call: AggregateCall) -> int | None:
        """Return how many rows an aggregate takes in at least, in its smallest group, as far as the store can tell."""
        return self._counted_at(release, call, self._level())

    def _counted_at(self, release: ReleasePlan, call: AggregateCall, level: Fraction) -> int | None:
        privacy = self._privacy(self.settings.epsilon)
        return stored_count(release, call, self.catalog, privacy, self.dataset.store, level)

    def _off(self, rows: ReleasedRows, call: AggregateCall) -> Off | None:
        """Return how far a chosen value is off its rank by stored histograms of its column."""
        privacy = self._privacy(self.settings.epsilon)
        return rows_off(rows, call, self._level(), self.catalog, privacy, self.dataset.store)

    # --- carried out -----------------------------------------------------------------------------------------

    def runner(
        self,
        prepared: PreparedPlan,
        text: str,
        public: PublicRows,
        cost: Cost,
        hold: Callable[[], None],
    ) -> PlanRunner:
        """Return what runs a plan; `text`: its statement's, for the ledger's record."""
        return PlanRunner(
            prepared.plan, self.dataset.store, self._noise, self.analyst, " ".join(text.split()),
            self.settings.reuse, lambda number, rows: self._intermediate(prepared, number, rows, public),
            self._cancelled.is_set, hold, cost, verifier=lambda: self.dataset.verifier, edition=self.settings.edition,
        )  # fmt: skip

    def check_edition(self) -> None:
        """Refuse what is not all stored, where an edition is to answer. Raises Refusal (22023)."""
        if self.settings.edition is not None:
            raise Refusal(
                f"edition {self.settings.edition} does not answer this", sqlstate="22023",
                hint="RESET dpsql.edition asks the newest, and measures what is missing",
            )  # fmt: skip

    def beside(
        self, prepared: PreparedPlan, runner: PlanRunner, *, joins: bool = True
    ) -> tuple[PreparedPlan, PlanRunner] | None:
        """Return the plan that takes from the store what is there under other measures, where that is better.

        `joins`: or the one that draws several columns as one vector, where the store has all of that, or nothing that
        makes the statement's own measures cheaper.
        """
        if (unselected := self._unselected(prepared, runner)) is not None:
            return unselected
        if not self.settings.reuse:
            return None
        level = self._level() if prepared.chosen else DEFAULT_LEVEL
        joined = self._joined(prepared, runner) if joins else None
        if joined is not None and joined[1].from_store():
            return joined
        found = find_beside(prepared.plan, runner.rows, runner.draws, level)
        if found is None:
            return None if joined is None or joined[1].price() > runner.price() else joined
        compiled = self.compiled(found.plan)
        other = replace(prepared, plan=found.plan, compiled=compiled, is_checked=False)
        return other, replace(runner, plan=found.plan, finer=found.taken, rows=[], intermediates=[])

    def _joined(self, prepared: PreparedPlan, runner: PlanRunner) -> tuple[PreparedPlan, PlanRunner] | None:
        """Return the plan that draws several columns as one vector, where that is more exact (soundness.md 1.22)."""
        whole = find_together(prepared.plan)
        if whole is None:
            return None
        other = replace(runner, plan=whole, finer={}, rows=[], intermediates=[])
        return replace(prepared, plan=whole, compiled=self.compiled(whole), is_checked=False), other

    def _unselected(
        self, prepared: PreparedPlan, runner: PlanRunner
    ) -> tuple[PreparedPlan, PlanRunner] | None:
        """Return the plan of all groups, or that without levels, where the store has all of it: its largest are then
        free (1.23), and so are running totals (1.37)."""
        plan = prepared.plan.plain or prepared.plan
        if not self.settings.reuse or plan.intermediates:
            return None
        if plan is prepared.plan and all(release.unselected is None for release in plan.releases):
            return None
        whole = replace(plan, releases=tuple(release.unselected or release for release in plan.releases))
        other = replace(runner, plan=whole, finer={}, rows=[], intermediates=[])
        if not other.from_store():
            return None
        return replace(prepared, plan=whole, compiled=self.compiled(whole), is_checked=False), other

    def _fetch(self, prepared: PreparedPlan, public: PublicRows) -> None:
        """Ask for what a statement reads of public tables, in its analyst's turn. Raises as `PublicRows.fetch`."""
        read = [one for one in (*prepared.intermediates, prepared.compiled) if one.parts]
        with self._to_compute() if read else nullcontext():
            for compiled in read:
                public.fetch(compiled)

    def try_out(self, prepared: PreparedPlan, public: PublicRows) -> None:
        """Run a statement's post-processing over no rows, and fetch its public ones: what fails here is free."""
        if not prepared.is_checked:
            for compiled in (*prepared.intermediates, prepared.compiled):
                check_public(compiled, prepared.plan.releases, self._sealed)
        prepared.is_checked = True
        self._fetch(prepared, public)
        for number in prepared.plan.tables:
            if prepared.intermediates[number].in_database:
                check_intermediate(public.answer(prepared.intermediates[number].parts[0]))

    def _public(self, snapshot: LazySnapshot, share: Share | None) -> PublicRows:
        """Return what a statement reads of public tables, within the owner's limits where a server answers it."""
        own = self.workspace.columns
        if self.turns is None:
            return PublicRows(snapshot.open, self.time_limit, share, own=own)
        most, limits = self.policy.server.public_seconds, self.policy.server
        seconds = most if self.time_limit is None else min(self.time_limit, most)
        rest = self.turns.pace(self.analyst).rest
        return PublicRows(
            snapshot.open, seconds, share, most_rows=limits.public_rows, most_seconds=most, rest=rest, own=own
        )

    def _intermediate(
        self, prepared: PreparedPlan, number: int, rows: list[ReleasedRows], public: PublicRows
    ) -> object:
        """Return the value of an intermediate result, or its rows, as they go down again (soundness.md 1.14(2)); NULL
        for no row.

        Raises:
            Refusal: 54001 for more rows than may go down.
        """
        with self._to_compute():
            patience = Patience(self.time_limit)
            answer = run_public(
                prepared.intermediates[number], rows, self._sealed, DEFAULT_LEVEL, public, patience
            )
        if patience.without_bars:  # what goes down again is the same whenever it is asked for
            raise EngineFailure("error bars of an intermediate result ran out of time", sqlstate="57V01")
        if number not in prepared.plan.tables:
            return carried(answer[0][0]) if len(answer) == 1 else None
        check_intermediate(answer)
        types = [column.type for column in prepared.intermediates[number].relation.columns]
        # rows without an order are the same in any: the store is asked by their content
        ordered = sorted(answer, key=repr)
        columns = [[carried(row[index], type_) for row in ordered] for index, type_ in enumerate(types)]
        return IntermediateRows(tuple(columns))

    def hold(self, rest: Callable[[], None]) -> None:
        """Let the database go, and wait until what was drawn may be known to anybody.

        Raises:
            EngineFailure: cancelled meanwhile.
        """
        rest()
        if self.release_time is not None:
            now = time.monotonic()
            if self._cancelled.wait(max(0.0, self.release_time(self._began, now) - now)):
                raise EngineFailure("cancelled", sqlstate="57014")

    # --- answered --------------------------------------------------------------------------------------------

    def agreeing(self, runner: PlanRunner, epoch: int) -> Sequence[ReleasedRows]:
        """Return a statement's releases with the numbers that agree (soundness.md 3.15), where all are of one epoch."""
        if len(runner.rows) < 2 or runner.plan.intermediates or are_told(runner.plan, runner.rows):
            return runner.rows
        return consistent(runner.rows) if self.dataset.store.epoch == epoch else runner.rows

    def answer(
        self, prepared: PreparedPlan, runner: PlanRunner, charge: Charge, public: PublicRows,
        kept: tuple[object, int] | None, rows: Sequence[ReleasedRows] | None = None,
        above: Above | None = None,
    ) -> Answer:  # fmt: skip
        """Return the answer. `rows`: as the statement's releases agree with what is read together with them; None: as
        they are. `above`: the statement over the queries that own tables are copies of, in its place.
        `kept`: under which key it is remembered, and how often answers had been forgotten before the store
        was read for it: what another draw joined meanwhile is of an edition that is over (soundness.md 3.8).
        """
        self.doing = "computing from the noisy numbers"
        rows = runner.rows if rows is None else rows
        above = above or Above(prepared.compiled, rows)
        find = cache(self.dataset.left_out)  # each is asked of the ledger once
        level = self._level()
        with self._to_compute():
            patience = Patience(self.time_limit)
            try:
                found = self.run_above(above.compiled, above.rows, public, patience, find)
            except EngineFailure as failure:
                raise self._told(failure, patience.limit, has_releases=bool(rows)) from None
        reused = charge == ZERO and any(row.plan.measurements and not row.plan.is_empty for row in rows)
        notes: tuple[str, ...] = (prepared.chosen,) if prepared.chosen else ()
        ranks = tuple(dict.fromkeys(rank_notes(rows, level, self._counted, self._off)))
        notes += (*found_notes(rows), *hidden_notes(runner.rows, _SURE), *ranks, *prepared.bar_notes)
        is_agreed = any(row.is_agreed for row in rows)
        known = self._known(above.compiled, find, is_agreed=is_agreed)
        notes += (*bias_notes(prepared.plan, known), *runner.origins)
        notes += (runner.said_of_price,) if runner.said_of_price else ()
        notes += (_AGREE,) if is_agreed else ()
        notes += (_WITHOUT_BARS,) if patience.without_bars else ()
        notes += (LOST,) if above.is_lost else ()
        notes += model_notes(prepared.compiled.tables.values())
        receipt = self._receipt(charge, self.budget(), reused=reused, notes=notes)
        answer = Answer(prepared.columns, found, "SELECT", receipt)
        is_whole = not patience.without_bars and not any(isinstance(note, OpenRankNote) for note in ranks)
        is_small = isinstance(found, list) or self.dataset.memory is None
        is_small = is_small and len(found) <= 10_000
        is_lasting = is_whole and is_small and prepared.is_lasting and not prepared.compiled.tables
        if kept is not None and is_lasting:
            self.dataset.answers.put(kept[0], answer, since=kept[1])
        return answer

    def _told(self, failure: EngineFailure, limit: float, *, has_releases: bool) -> EngineFailure:
        """Return why a statement did not come to its end: out of time is one thing where releases stand behind it.

        Of public tables alone nothing is stored: there a limit that the analyst has set is a cancel, as in Postgres.
        """
        if has_releases and failure.sqlstate == "57014" and self._expired.is_set():
            return EngineFailure(
                "the time limit came in post-processing", sqlstate="57V01", limit=_LATE.format(limit)
            )
        if failure.sqlstate != "57V01":
            return failure
        is_owners = self.turns is not None and limit >= self.policy.server.public_seconds
        if not has_releases and self.time_limit is not None and not is_owners:
            said = f"the statement took more than {limit:g} seconds, its time limit"
            return EngineFailure("the time limit came", sqlstate="57014", limit=said)
        told = EngineFailure(failure.detail, sqlstate="57V01", limit=failure.limit or _LATE.format(limit))
        told.hint = failure.hint
        return told

    def _cuts(self, releases: Sequence[ReleasePlan], find: FindLeftOut) -> Callable[[int, int], Cut | None]:
        """Return what says how much of a release's numbers bounds leave out."""

        def cut(number: int, index: int) -> Cut | None:
            return cut_of(releases[number], index, find)

        return cut

    def _known(self, compiled: Compiled, find: FindLeftOut, *, is_agreed: bool = False) -> Known:
        """Return what is known of what bounds leave out, and of which bars hold it."""
        if self.settings.intervals is None:
            return Known(find, self.dataset.left_out_by_norms)
        bars = (bar for found in compiled.bars.values() for bar in found)
        is_computed = bool(compiled.simulations) or any(
            bar.terms is None and bar.chosen is None for bar in bars
        )
        return Known(find, self.dataset.left_out_by_norms, True, is_computed, is_agreed)

    def _receipt(self, charge: Charge, status: Status, *, reused: bool, notes: tuple[str, ...]) -> Receipt:
        left, delta = Fraction(status.left_nano, NANO), Fraction(charge.delta_atto, ATTO)
        if not status.in_rho:
            return Receipt(Fraction(charge.epsilon_nano, NANO), delta, left, reused, notes)
        epsilon = Fraction(shown_epsilon(charge.rho_atto))
        words = left_text(status, self.policy.defaults.epsilon)
        return Receipt(epsilon, delta, left, reused, notes, charge.rho_atto, words)


def bound_in(query: AdmittedQuery, context: BindingContext) -> Relation:
    """Return what a query means. Raises Refusal."""
    asked = without_places(query, context.catalog) if PLACE in query.text.lower() else query
    return bind(asked, context)


def _is_small(text: str, parameters: Sequence[object]) -> bool:
    """Return whether a statement is short enough to be remembered."""
    long = (value for value in parameters if isinstance(value, (str, list, tuple)))
    return len(text) + sum(len(repr(value)) for value in long) <= _LONGEST_KEPT
