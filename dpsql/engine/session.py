"""The spine: one statement, station by station, and a session's settings.

text ─parse→ tree ─bind→ relation ─analyze, plan→ plan ─look up, else charge, run, privatise→ releases ─post-process→
rows

architecture.md follows one statement through them, call by call.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from ..backends import Backend
from ..budget import ZERO, Charge, Fresh, Status, shown_epsilon
from ..errors import EngineFailure, LedgerAway, PolicyError, Refusal
from ..fair import Turn
from ..mechanisms import ATTO, NANO, Noise, SampledNoise
from ..memory import STATEMENT_BYTES, Share
from ..plan.planner import Plan, PrivacyParameters, plan
from ..plan.release_plan import ReleasePlan
from ..policy import Neighbours, Policy, access_of
from ..postprocess.bars import add_companions
from ..relation.relations import AggregateCall, Relation, ends_in
from ..relation.types import TEXT, SqlType
from ..release.beside import find_beside
from ..release.consistent import consistent
from ..release.cost import Cost, telling
from ..release.cut import Cut, FindLeftOut, cut_of
from ..release.post_processing import Compiled, Patience, PublicRows, check_public, compile_public, run_public
from ..release.run import IntermediateRows, PlanRunner, ReleasedRows, carried, check_intermediate
from ..release.stored_count import stored_count
from ..release.verifying import certificate_of
from ..sql.bind_select import bind
from ..sql.literals import Awaited
from ..sql.scope import BindingContext
from ..sql.statement import (
    AdmittedQuery,
    Explain,
    ResetSetting,
    SetSetting,
    ShowSetting,
    Statement,
    check_parameters,
    check_statement,
    parse_statement,
)
from ..sql.text import is_text
from ..sql.text_process import TextProcess
from ..waits import Stop, Stopped, until
from .accuracy import choose
from .answer import Answer, AnswerColumn, OnceNote, OpenRankNote, Receipt, budget_text, left_text
from .contribution import Known
from .dataset import ASK_SECONDS, Dataset, LazySnapshot, PreparedPlan
from .explain import Explanation
from .listed_keys import ListedKeys, check_listed
from .notes import Barred, bias_notes, draw_bars, found_notes, hidden_notes, rank_notes
from .proofs import proof_lines, prove
from .row_previews import row_preview
from .settings import Settings
from .turns import LONG, StatementTurns

if TYPE_CHECKING:
    from .batch import PricedBatch

__all__ = ["Session"]

_T = TypeVar("_T")
_P = ParamSpec("_P")
DEFAULT_LEVEL = Fraction(19, 20)
_SURE = Fraction(99, 100)
"""At which level rows of values that are not listed are spoken of."""
_WITHOUT_BARS = "error bars took too long, or too much memory, and are NULL here"
_AGREE = (
    "numbers of the same rows that were read together were made to agree, by least squares over their draws"
)
_LATE = "post-processing took more than {:g} seconds"
_PLAN = AnswerColumn("QUERY PLAN", TEXT)
_MOST_TOLD = 1_000
"""Notes that a session remembers to have told."""
_LONGEST_KEPT = 20_000
"""Characters of a statement with its parameters, of which plan and answer are remembered."""


def _statement(method: Callable[Concatenate[Session, _P], _T]) -> Callable[Concatenate[Session, _P], _T]:
    """Have a method be one statement: what stops it ends its waits, and what stopped an earlier one does not."""

    @wraps(method)
    def run(self: Session, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        self._begin()
        with until(self._cancelled):
            return method(self, *args, **kwargs)

    return run


@dataclass
class Session:
    """One analyst's session on one dataset. Statements run one at a time; `cancel` may come from outside.

    An embedded session runs in the analyst's own process: a convenience for the trusted, not a security
    boundary; `analyst` is a label for the ledger's fairness caps, not an identity (threat-model.md).
    `time_limit`: most seconds for post-processing; None for the usual minute.
    `is_shared`: other sessions use the dataset too, so that `close` lets nothing go. `release_time`: of a statement
    that began at one moment and has its draws at another (of `time.monotonic`), when they may be known; None: at once.
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
        self.doing = "planning"
        self._told_notes: set[str] = set()

    def __repr__(self) -> str:
        return f"<Session on {self.policy.source} as {self.analyst!r}>"

    @classmethod
    def open(
        cls,
        policy: str | os.PathLike[str] | Policy,
        *,
        analyst: str = "local",
        backend: Backend | None = None,
    ) -> Session:
        """Open a session on the dataset that a policy describes; `backend`: in place of the policy's database.

        `policy`: a path, in which ~ is the home folder, or a policy that was read from one.

        Raises:
            PolicyError, LedgerError, EngineFailure: each says what the owner has to mend.
        """
        dataset = Dataset.open(policy, backend=backend)
        try:
            return cls(dataset, analyst)
        except PolicyError:
            dataset.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the database, the ledger and the sealed engine go, unless others use them."""
        if not self.is_shared:
            self.dataset.close()

    @property
    def policy(self) -> Policy:
        """What the owner declared."""
        return self.dataset.policy

    def cancel(self) -> None:
        """Stop the running statement, from any thread; what it has charged stays spent."""
        self._cancelled.set()
        self.dataset.backend.cancel(self)
        self._sealed.cancel()

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

    # --- statements --------------------------------------------------------------------------------

    @_statement
    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Answer:
        """Answer one statement: a query, EXPLAIN, or SET / SHOW / RESET of a dpsql setting.

        Raises:
            Refusal: decided from the text, the policy and the schema; nothing was charged.
            BudgetExhausted: the charge does not fit; nothing was charged, nothing was run.
            EngineFailure: the database failed, the statement was cancelled, or post-processing took too long;
                the charge stays spent, and `cost` says what it was.
        """
        self.doing = "planning"
        key = self._key(sql, parameters)
        with telling(Cost(), reuse=self.settings.reuse):
            status = self._asked(self._held(key))
        if isinstance(status, Answer):
            return status
        if (known := self._remembered(key, status)) is not None:
            return known
        statement = self._parsed(sql)
        if isinstance(statement, AdmittedQuery):
            return self._once(self._query(statement, tuple(parameters), key, status.epoch))
        if isinstance(statement, Explain):
            if statement.verify:
                lines = self._verified(statement.query, tuple(parameters))
                return Answer((_PLAN,), [(line,) for line in lines], "EXPLAIN", None)
            shown = self._explain(statement.query, tuple(parameters))
            lines = [shown.json_text()] if statement.json else shown.text().split("\n")
            return Answer((_PLAN,), [(line,) for line in lines], "EXPLAIN", None)
        return self._setting(statement)

    @_statement
    def price(self, statements: str | Sequence[str], *, epsilon: Fraction | None = None) -> PricedBatch:
        """Return what each query of a batch would get, and what all cost together; costs nothing. See `release`."""
        from .batch import price_batch, read_batch, script_of

        return price_batch(self, read_batch(self, script_of(statements)), epsilon)

    @_statement
    def release(self, statements: str | Sequence[str], *, epsilon: Fraction | None = None) -> list[Answer]:
        """Answer the queries of a batch, planned together and charged once, as `dpsql release` does.

        `statements`: a text of several, or one text each; SET and RESET hold for the queries after them. `epsilon`:
        of all together, split for the least total error; None: each is as exact as asked alone.

        Raises: as `execute`; if one is refused, or the price does not fit, nothing was charged.
        """
        from .batch import price_batch, read_batch, run_batch, script_of

        read = read_batch(self, script_of(statements))
        return run_batch(self, read, epsilon, price_batch(self, read, epsilon).charge)

    def recall(self, sql: str, parameters: Sequence[object] = ()) -> Answer | None:
        """Return what `execute` would, for a statement whose answer is remembered here; None where that takes time.

        Raises LedgerError.
        """
        key = self._key(sql, parameters)
        if not self.settings.reuse or self.dataset.prepared.get(key) is None:
            return None
        status = self.dataset.store.status_at_once(self.analyst)
        if status is None:
            return None
        self.dataset.last_read.read(self.analyst, status)
        return self._remembered(key, status)

    def _held(self, key: object) -> tuple[Answer, Receipt, Status] | None:
        """Return the answer to a statement that is in memory under what was read last of the ledger, with its receipt
        and that; None where there is none.
        """
        status = self.dataset.last_read.status(self.analyst)
        if status is None or not self.settings.reuse:
            return None
        cached = self.dataset.answers.get((key, status.epoch))
        return None if cached is None or cached.receipt is None else (cached, cached.receipt, status)

    def _asked(self, held: tuple[Answer, Receipt, Status] | None) -> Status | Answer:
        """Return the status; where the ledger does not answer, and `held` is there, that (soundness.md 3.17).

        Raises LedgerError, Stopped.
        """
        if held is None:
            return self.budget()
        last, (cached, was, status) = self.dataset.last_read, held
        if not last.is_away:
            try:
                with until(Stop.after(ASK_SECONDS)):
                    return self.budget()
            except (LedgerAway, Stopped):
                self._check_cancelled()
                last.failed()
        notes = (last.note(self.analyst), *was.notes)
        again = self._receipt(ZERO, status, reused=was.reused or was.epsilon > 0, notes=notes)
        return self._once(replace(cached, receipt=again))

    def _remembered(self, key: object, status: Status) -> Answer | None:
        cached = self.dataset.answers.get((key, status.epoch))
        if cached is None or not self.settings.reuse or cached.receipt is None:
            return None
        was = cached.receipt
        again = self._receipt(ZERO, status, reused=was.reused or was.epsilon > 0, notes=was.notes)
        return self._once(replace(cached, receipt=again))

    def _once(self, answer: Answer) -> Answer:
        """Return an answer without the notes that this session has told already and that are told once."""
        assert answer.receipt is not None
        once = {note for note in answer.receipt.notes if isinstance(note, OnceNote)}
        notes = tuple(note for note in answer.receipt.notes if note not in once & self._told_notes)
        self._told_notes = once | (self._told_notes if len(self._told_notes) < _MOST_TOLD else set())
        return replace(answer, receipt=replace(answer.receipt, notes=notes))

    @_statement
    def explain(self, sql: str, parameters: Sequence[object] = ()) -> Explanation:
        """Return what a query would release, how noisy it would be and what it would cost; costs nothing."""
        statement = self._parsed(sql)
        if isinstance(statement, Explain):
            statement = statement.query
        if not isinstance(statement, AdmittedQuery):
            raise Refusal("only queries can be explained", sqlstate="0A000")
        return self._explain(statement, tuple(parameters))

    def describe(self, sql: str, parameters: Sequence[object] = ()) -> tuple[AnswerColumn, ...]:
        """Return the columns that `execute` would give; nothing is charged, and no row is read.

        Raises:
            Refusal: the statement would not be answered.
        """
        key = self._key(sql, parameters)
        known = self.dataset.prepared.get(key)
        if known is not None:
            return known.columns
        return self._described(sql, tuple(parameters), key)

    @_statement
    def _described(self, sql: str, parameters: tuple[object, ...], key: object) -> tuple[AnswerColumn, ...]:
        statement = self._parsed(sql)
        if isinstance(statement, AdmittedQuery):
            return self._prepare(statement, parameters, key).columns
        if isinstance(statement, Explain):
            return (_PLAN,)
        return (AnswerColumn(statement.name, TEXT),) if isinstance(statement, ShowSetting) else ()

    def is_planned(self, sql: str, parameters: Sequence[object] = ()) -> bool:
        """Return whether a statement was planned already, so that `describe` takes no time."""
        return self.dataset.prepared.get(self._key(sql, parameters)) is not None

    @_statement
    def describe_parameters(
        self, sql: str, declared: Sequence[SqlType | None]
    ) -> tuple[tuple[AnswerColumn, ...], tuple[SqlType, ...]]:
        """Return the columns that `execute` would give, and its parameters' types, before a value is known.

        `declared`: for each parameter its type, or None to have it found: the type of what it is compared or
        computed with, else text. A refusal that a value may still avert (bounds that depend on it) is left to
        `execute`. Nothing is charged, and no row is read. Raises as `describe`.
        """
        statement = self._parsed(sql)
        if not isinstance(statement, (AdmittedQuery, Explain)):
            return self.describe(sql), ()
        query = statement.query if isinstance(statement, Explain) else statement
        awaited = tuple(Awaited(type_) for type_ in declared)
        try:
            columns = self._planned(query, awaited).columns
        except Refusal:
            if not awaited or self.settings.intervals is not None:
                raise
            bound = bind(query, self._context(query, awaited)).columns
            columns = tuple(AnswerColumn(column.name, column.type) for column in bound)
        return (_PLAN,) if query is not statement else columns, tuple(one.type for one in awaited)

    def _setting(self, statement: SetSetting | ShowSetting | ResetSetting) -> Answer:
        if isinstance(statement, SetSetting):
            self.settings = self.settings.set(statement.name, statement.value, self.policy)
            return Answer((), [], "SET", None)
        if isinstance(statement, ResetSetting):
            self.settings = self.settings.reset(statement.name, self.policy)
            return Answer((), [], "RESET", None)
        if statement.name == "dpsql.budget":
            text = budget_text(self.budget(), self.policy.defaults.epsilon)
        else:
            text = self.settings.show(statement.name)
        return Answer((AnswerColumn(statement.name, TEXT),), [(text,)], "SHOW", None)

    # --- one query -----------------------------------------------------------------------------------

    def _query(self, query: AdmittedQuery, parameters: tuple[object, ...], key: object, epoch: int) -> Answer:
        with self.dataset.lazy_snapshot(self, self._cancelled) as snapshot:
            return self._answered(query, parameters, key, epoch, snapshot)

    def _answered(
        self,
        query: AdmittedQuery,
        parameters: tuple[object, ...],
        key: object,
        epoch: int,
        snapshot: LazySnapshot,
    ) -> Answer:
        cost, reuse = Cost(), self.settings.reuse
        with telling(cost, reuse=reuse):
            prepared = self._prepare(query, parameters, key, snapshot)
        if self._place is not None and any(one.parts for one in (*prepared.intermediates, prepared.compiled)):
            self._place.leave()  # what reads public rows is long work itself
        with telling(cost, reuse=reuse), self._memory() as share:
            public = self._public(snapshot, share)
            runner = self._runner(prepared, query, public, cost, lambda: self._hold(snapshot.close))
            is_whole = runner.from_store()
            if not is_whole and (other := self._beside(prepared, runner)) is not None:
                prepared, runner = other
                is_whole = runner.from_store()
            is_proved = any(release.is_proved for release in prepared.plan.releases)
            kept = None if is_proved else (key, epoch)
            if is_whole:
                if is_proved:
                    snapshot.open()  # its constraints are those that prove it
                return self._answer(prepared, runner, ZERO, public, kept, self._agreeing(runner, epoch))
            for compiled in (*prepared.intermediates, prepared.compiled):
                if not prepared.is_checked:
                    check_public(compiled, prepared.plan.releases, self._sealed)
            prepared.is_checked = True
            self._fetch(prepared, public)
            for number in prepared.plan.tables:
                if prepared.intermediates[number].in_database:
                    check_intermediate(public.answer(prepared.intermediates[number].parts[0]))
            self.doing = "the database is computing"
            opened = snapshot.open()
            with self._apart():
                charge = runner.from_engine(opened, self.dataset.salt)
            self.dataset.answers.clear()  # what was drawn joins what is stored of the same numbers
            return self._answer(prepared, runner, charge, public, kept, self._agreeing(runner, epoch))

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

    def _agreeing(self, runner: PlanRunner, epoch: int) -> Sequence[ReleasedRows]:
        """Return a statement's releases with the numbers that agree (soundness.md 3.15), where all are of one epoch."""
        if len(runner.rows) < 2 or runner.plan.intermediates:
            return runner.rows
        return consistent(runner.rows) if self.dataset.store.epoch == epoch else runner.rows

    def _runner(
        self,
        prepared: PreparedPlan,
        query: AdmittedQuery,
        public: PublicRows,
        cost: Cost,
        hold: Callable[[], None],
    ) -> PlanRunner:
        return PlanRunner(
            prepared.plan, self.dataset.store, self._noise, self.analyst, " ".join(query.text.split()),
            self.settings.reuse, lambda number, rows: self._intermediate(prepared, number, rows, public),
            self._cancelled.is_set, hold, cost, verifier=self.dataset.verifier,
        )  # fmt: skip

    def _beside(self, prepared: PreparedPlan, runner: PlanRunner) -> tuple[PreparedPlan, PlanRunner] | None:
        """Return the plan that takes from the store what is there under other measures, where that is better."""
        if (unselected := self._unselected(prepared, runner)) is not None:
            return unselected
        level = self._level() if prepared.chosen else DEFAULT_LEVEL
        found = find_beside(prepared.plan, runner.rows, runner.draws, level) if self.settings.reuse else None
        if found is None:
            return None
        compiled = self._compiled(found.plan)
        other = replace(prepared, plan=found.plan, compiled=compiled, is_checked=False)
        return other, replace(runner, plan=found.plan, finer=found.taken, rows=[], intermediates=[])

    def _unselected(
        self, prepared: PreparedPlan, runner: PlanRunner
    ) -> tuple[PreparedPlan, PlanRunner] | None:
        """Return the plan of all groups where the store has all of it: its largest are then free (1.23)."""
        plan = prepared.plan
        if not self.settings.reuse or plan.intermediates:
            return None
        if all(release.unselected is None for release in plan.releases):
            return None
        whole = replace(plan, releases=tuple(release.unselected or release for release in plan.releases))
        other = replace(runner, plan=whole, finer={}, rows=[], intermediates=[])
        if not other.from_store():
            return None
        return replace(prepared, plan=whole, compiled=self._compiled(whole), is_checked=False), other

    def _prepare(
        self,
        query: AdmittedQuery,
        parameters: tuple[object, ...],
        key: object,
        snapshot: LazySnapshot | None = None,
    ) -> PreparedPlan:
        """Return a statement's plan; without a snapshot no public table is read for its keys."""
        known = self.dataset.prepared.get(key)
        if known is not None:
            return known
        prepared = self._planned(query, parameters, snapshot)
        if prepared.is_lasting:
            self.dataset.prepared.put(key, prepared)
        return prepared

    def _planned(
        self, query: AdmittedQuery, parameters: tuple[object, ...], snapshot: LazySnapshot | None = None
    ) -> PreparedPlan:
        with self._to_plan(query.text) as turn:
            return self._planned_at_once(
                query, parameters, ListedKeys(snapshot, nullcontext if turn is None else turn.paused)
            )

    def _planned_at_once(
        self, query: AdmittedQuery, parameters: tuple[object, ...], keys: ListedKeys
    ) -> PreparedPlan:
        context = self._context(query, parameters)
        relation, notes = self._shown(query, bind(query, context))
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
        planned = barred.plan
        compiled = self._compiled(planned)
        intermediates = tuple(
            compile_public(one, planned.releases, self.dataset.dialect) for one in planned.intermediates
        )
        lasting = not context.moments  # another answer next time
        lasting = lasting and not keys.are_read  # another list next time, where the table has changed
        lasting = lasting and _is_small(query.text, parameters) and not (chosen and chosen.uses_store)
        return PreparedPlan(
            planned, compiled, intermediates, lasting and not barred.uses_store,
            chosen=chosen.said if chosen else None, bar_notes=(*barred.notes, *notes),
        )  # fmt: skip

    def _fetch(self, prepared: PreparedPlan, public: PublicRows) -> None:
        """Ask for what a statement reads of public tables, in its analyst's turn. Raises as `PublicRows.fetch`."""
        read = [one for one in (*prepared.intermediates, prepared.compiled) if one.parts]
        with self._to_compute() if read else nullcontext():
            for compiled in read:
                public.fetch(compiled)

    def _public(self, snapshot: LazySnapshot, share: Share | None) -> PublicRows:
        """Return what a statement reads of public tables, within the owner's limits where a server answers it."""
        if self.turns is None:
            return PublicRows(snapshot.open, self.time_limit, share)
        most, limits = self.policy.server.public_seconds, self.policy.server
        seconds = most if self.time_limit is None else min(self.time_limit, most)
        rest = self.turns.pace(self.analyst).rest
        return PublicRows(
            snapshot.open, seconds, share, most_rows=limits.public_rows, most_seconds=most, rest=rest
        )

    @_statement
    def read_in_turn(self, text: str, read: Callable[[], _T]) -> _T:
        """Return what `read` makes of a text, in the turn of such texts. Raises what it raises, and EngineFailure."""
        with self._to_plan(text):
            return read()

    def _parsed(self, sql: str) -> Statement:
        """Return a text's statement, parsed in turn. Raises as `parse_statement`; EngineFailure: cancelled before."""
        with self._to_plan(sql):
            if self._elsewhere(sql) is not None:
                self.read_text(check_statement, sql)
            return parse_statement(sql)

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

    def _shown(self, query: AdmittedQuery, relation: Relation) -> tuple[Relation, tuple[str, ...]]:
        """Return what a statement is answered with, and why that is another relation than it asks for, if it is."""
        is_aggregated = ends_in(relation, "outputs") and ends_in(relation.below, "group")
        if is_aggregated or not self.policy.has_previews:  # what is aggregated is no look at rows
            return relation, ()
        shown = row_preview(query, relation, self.catalog)
        return (relation, ()) if shown is None else (shown.relation, (shown.note,))

    def _barred(self, planned: Plan) -> Barred:
        """Return the plan with the bars of chosen values, where error bars are asked for."""
        if self.settings.intervals is None or not self.settings.draws_ends:
            return Barred(planned)
        return draw_bars(planned, self.catalog, planned.privacy, self.settings.intervals, self._counted_at)

    def _compiled(self, planned: Plan) -> Compiled:
        """Return the statement above its releases, with the columns of its bars."""
        root = planned.root
        if self.settings.intervals is not None:
            root = add_companions(root, {p.release: p for p in planned.releases})
        return compile_public(root, planned.releases, self.dataset.dialect)

    def _level(self) -> Fraction:
        """Return at which level bars hold."""
        return self.settings.intervals or DEFAULT_LEVEL

    def _context(self, query: AdmittedQuery, parameters: tuple[object, ...]) -> BindingContext:
        check_parameters(query, len(parameters))
        return BindingContext(self.catalog, query.text, parameters, time.time_ns() // 1000, {})

    def _plan(self, relation: Relation, epsilon: Fraction, keys: ListedKeys) -> Plan:
        """Plan a bound statement at an epsilon, under this session's other settings."""
        privacy = self._privacy(epsilon)
        return plan(relation, self.catalog, privacy, keys.read)

    def _privacy(self, epsilon: Fraction) -> PrivacyParameters:
        return PrivacyParameters(
            epsilon,
            self.policy.defaults.delta if self.policy.privacy.delta else Fraction(0),
            self.policy.defaults.minimum_units,
            self.policy.privacy.neighbours is Neighbours.REPLACE_ONE,
            self.settings.max_rows,
            self.policy.privacy.together,
            self.policy.privacy.accounting,
            self.settings.selection,
        )

    def _counted(self, release: ReleasePlan, call: AggregateCall) -> int | None:
        """Return how many rows an aggregate takes in at least, in its smallest group, as far as the store can tell."""
        return self._counted_at(release, call, self._level())

    def _counted_at(self, release: ReleasePlan, call: AggregateCall, level: Fraction) -> int | None:
        privacy = self._privacy(self.settings.epsilon)
        return stored_count(release, call, self.catalog, privacy, self.dataset.store, level)

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

    def _answer(
        self, prepared: PreparedPlan, runner: PlanRunner, charge: Charge, public: PublicRows, key: object,
        rows: Sequence[ReleasedRows] | None = None,
    ) -> Answer:  # fmt: skip
        """Return the answer. `rows`: as the statement's releases agree with what is read together with them; None: as
        they are.
        """
        self.doing = "computing from the noisy numbers"
        rows = runner.rows if rows is None else rows
        find = cache(self.dataset.left_out)  # each is asked of the ledger once
        level = self._level()
        with self._to_compute():
            patience = Patience(self.time_limit)
            try:
                cuts = self._cuts(prepared.plan.releases, find)
                found = run_public(prepared.compiled, rows, self._sealed, level, public, patience, cuts)
            except EngineFailure as failure:
                raise self._told(failure, patience.limit, has_releases=bool(rows)) from None
        reused = charge == ZERO and any(row.plan.measurements and not row.plan.is_empty for row in rows)
        notes: tuple[str, ...] = (prepared.chosen,) if prepared.chosen else ()
        ranks = tuple(dict.fromkeys(rank_notes(rows, level, self._counted)))
        notes += (*found_notes(rows), *hidden_notes(runner.rows, _SURE), *ranks, *prepared.bar_notes)
        is_agreed = any(row.fitted for row in rows)
        known = self._known(prepared.compiled, find, is_agreed=is_agreed)
        notes += (*bias_notes(prepared.plan, known), *runner.origins)
        notes += (runner.topped_up,) if prepared.plan.rho_atto and runner.topped_up else ()
        notes += (_AGREE,) if is_agreed else ()
        notes += (_WITHOUT_BARS,) if patience.without_bars else ()
        receipt = self._receipt(charge, self.budget(), reused=reused, notes=notes)
        answer = Answer(prepared.columns, found, "SELECT", receipt)
        is_whole = not patience.without_bars and not any(isinstance(note, OpenRankNote) for note in ranks)
        is_small = isinstance(found, list) or self.dataset.memory is None
        is_small = is_small and len(found) <= 10_000
        if is_whole and is_small and prepared.is_lasting and not prepared.compiled.tables:
            self.dataset.answers.put(key, answer)
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

    def _explain(self, query: AdmittedQuery, parameters: tuple[object, ...]) -> Explanation:
        status = self.budget()
        origins: tuple[str, ...] = ()
        more: tuple[Fresh | None, ...] = ()
        with self.dataset.lazy_snapshot(self, self._cancelled) as snapshot:
            key = self._key("EXPLAIN " + query.text, parameters)
            prepared = self._prepare(query, parameters, key, snapshot)
            if not prepared.plan.intermediates:
                public = self._public(snapshot, None)
                runner = self._runner(prepared, query, public, Cost(), snapshot.close)
                if not runner.from_store() and (other := self._beside(prepared, runner)) is not None:
                    prepared, runner = other
                    runner.from_store()
                origins = runner.origins
                more = self.dataset.store.quote(runner.claim()[0]) if self.settings.reuse else ()
        known = self._known(prepared.compiled, cache(self.dataset.left_out))
        return Explanation(
            prepared.plan, prepared.compiled, prepared.intermediates, status, self.policy.defaults.epsilon, origins,
            prepared.chosen, (*prepared.bar_notes, *bias_notes(prepared.plan, known)), more,
        )  # fmt: skip

    def _verified(self, query: AdmittedQuery, parameters: tuple[object, ...]) -> list[str]:
        """Return how a statement's plan is verified, all of it: a line for each measurement. Costs nothing.

        Raises Unverified, where the policy refuses.
        """
        verifier = self.dataset.verifier
        with self.dataset.lazy_snapshot(self, self._cancelled) as snapshot:
            key = self._key("EXPLAIN " + query.text, parameters)
            prepared = self._prepare(query, parameters, key, snapshot)
            certificate = certificate_of(prepared.plan.releases, verifier.facts(snapshot.open()))
        verifier.require(certificate)
        proof = prove(certificate)
        if not certificate.releases:
            return ["nothing private is asked"]
        return ["not verified"] if proof.verified is None else proof_lines(certificate, proof.verified)

    # --- a plan that no text says ---------------------------------------------------------------------------

    @_statement
    def released(self, planned: Plan, statement: str) -> tuple[list[ReleasedRows], Charge]:
        """Return a plan's releases and what they cost: from the store, else charged, drawn and stored as a query's.

        For what an owner measures (`bounds`): no analyst's text comes here. `statement`: for the ledger's record.
        Requires: a plan without intermediate results. Raises BudgetExhausted, EngineFailure, LedgerError.
        """
        cost = Cost()
        with self.dataset.lazy_snapshot(self, self._cancelled) as snapshot, telling(cost, reuse=True):
            runner = PlanRunner(
                planned, self.dataset.store, self._noise, self.analyst, statement, True, _no_intermediate,
                self._cancelled.is_set, lambda: self._hold(snapshot.close), cost, verifier=self.dataset.verifier,
            )  # fmt: skip
            if not runner.from_store():
                runner.from_engine(snapshot.open(), self.dataset.salt)
        return runner.rows, cost.charge

    # --- what the stations share ------------------------------------------------------------------------

    def _begin(self) -> None:
        """Take note that a statement begins: what stopped an earlier one does not stop it."""
        self._cancelled.clear()
        self._expired.clear()
        self._began = time.monotonic()

    def _key(self, sql: str, parameters: Sequence[object]) -> object:
        """Return what a plan depends on besides the dataset."""
        values = tuple((type(value).__name__, repr(value)) for value in parameters)
        return sql, values, self.settings, self.access

    def _hold(self, rest: Callable[[], None]) -> None:
        """Let the database go, and wait until what was drawn may be known to anybody.

        Raises:
            EngineFailure: cancelled meanwhile.
        """
        rest()
        if self.release_time is not None:
            now = time.monotonic()
            if self._cancelled.wait(max(0.0, self.release_time(self._began, now) - now)):
                raise EngineFailure("cancelled", sqlstate="57014")

    def _cuts(self, releases: Sequence[ReleasePlan], find: FindLeftOut) -> Callable[[int, int], Cut | None]:
        """Return what says how much of a release's numbers bounds leave out."""

        def cut(number: int, index: int) -> Cut | None:
            return cut_of(releases[number], index, find)

        return cut

    def _known(self, compiled: Compiled, find: FindLeftOut, *, is_agreed: bool = False) -> Known:
        """Return what is known of what bounds leave out, and of which bars hold it."""
        if self.settings.intervals is None:
            return Known(find)
        bars = (bar for found in compiled.bars.values() for bar in found)
        is_computed = bool(compiled.simulations) or any(
            bar.terms is None and bar.chosen is None for bar in bars
        )
        return Known(find, True, is_computed, is_agreed)

    def _receipt(self, charge: Charge, status: Status, *, reused: bool, notes: tuple[str, ...]) -> Receipt:
        left, delta = Fraction(status.left_nano, NANO), Fraction(charge.delta_atto, ATTO)
        if not status.in_rho:
            return Receipt(Fraction(charge.epsilon_nano, NANO), delta, left, reused, notes)
        epsilon = Fraction(shown_epsilon(charge.rho_atto))
        words = left_text(status, self.policy.defaults.epsilon)
        return Receipt(epsilon, delta, left, reused, notes, charge.rho_atto, words)


def _no_intermediate(number: int, rows: Sequence[ReleasedRows]) -> object:
    raise AssertionError("a plan without intermediate results has none")


def _is_small(text: str, parameters: Sequence[object]) -> bool:
    """Return whether a statement is short enough to be remembered."""
    long = (value for value in parameters if isinstance(value, (str, list, tuple)))
    return len(text) + sum(len(repr(value)) for value in long) <= _LONGEST_KEPT
