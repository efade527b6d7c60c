"""A session: statements from text to answers, what is remembered of them, and their settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cache, reduce, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ..backends import Backend
from ..budget import ZERO, Charge, Status
from ..errors import DpsqlError, LedgerAway, NothingShown, PolicyError, Refusal
from ..plan.planner import Plan
from ..policy import Policy, Slices
from ..postprocess.workspace import Origin
from ..relation.types import JSON, TEXT, SqlType
from ..release.price import Cost, telling
from ..release.run import PlanRunner, ReleasedRows
from ..sql.literals import Awaited
from ..sql.statement import (
    AdmittedQuery,
    Explain,
    ResetSetting,
    SetSetting,
    ShowSetting,
    Statement,
    check_statement,
    parse_own_view,
    parse_statement,
    written_query,
)
from ..sql.workspace import CreateTable, ObjectName, WorkspaceStatement
from ..waits import Stop, Stopped, until
from .answer import Answer, AnswerColumn, EmptyNote, OnceNote, Receipt, budget_text
from .dataset import ASK_SECONDS, Dataset, Explained, LazySnapshot, PreparedPlan
from .notes import bias_notes
from .spine import Spine, bound_in
from .workspace import Asking, Kept, asked_as

if TYPE_CHECKING:
    from .batch import PricedBatch
    from .explain import Explanation

_T = TypeVar("_T")
_P = ParamSpec("_P")
_MOST_TOLD = 1_000
"""Most notes that a session remembers as shown already."""


def _statement(method: Callable[Concatenate[Session, _P], _T]) -> Callable[Concatenate[Session, _P], _T]:
    """Run a method as one statement: a cancel ends its waits, and a cancel of an earlier statement does not."""

    @wraps(method)
    def run(self: Session, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with self.statement():
            return method(self, *args, **kwargs)

    return run


class Session(Spine):
    """One analyst's session on one dataset. Statements run one at a time; `cancel` may come from outside.

    An embedded session runs in the analyst's own process: a convenience for the trusted, not a security
    boundary. `is_shared`: other sessions use the dataset too, so that `close` lets nothing go. See `Spine`.
    """

    def __post_init__(self) -> None:
        Spine.__post_init__(self)
        self._told_notes: set[str] = set()
        self._given: tuple[Answer, Status, Answer] | None = None
        """The answer that was given last from memory, what the ledger was then, and as it was given."""

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
        """Let own tables go, and the database, the ledger and the sealed engine, unless others use them."""
        self.workspace.close()
        if not self.is_shared:
            self.dataset.close()

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
        if (known := self._remembered(key, status) or self._explained(key, status)) is not None:
            return known
        if (prepared := self.dataset.prepared.get(key)) is not None:  # so its text is a query's
            with self.refusals_kept(sql), self.snapshot() as snapshot:
                return self.once(self._answer_prepared(prepared, sql, key, status.epoch, snapshot))
        statement = self._parsed(sql)
        if isinstance(statement, AdmittedQuery):
            with self.refusals_kept(sql):
                return self.once(self._query(statement, tuple(parameters), key, status.epoch))
        if isinstance(statement, Explain):
            is_lasting, column = False, _plan_column(statement)
            if statement.verify:
                lines = self._verified(statement.query, tuple(parameters))
            else:
                from .explain import plan_lines

                told, is_lasting = self._explain(statement.query, tuple(parameters))
                lines = plan_lines(told, statement.form)
            answer = Answer((column,), [(line,) for line in lines], "EXPLAIN", None)
            if (
                is_lasting
            ):  # under what was read of the ledger before: what was written since has it forgotten
                self.dataset.explained.put((key, self.analyst), Explained(answer, status, self.policy))
            return answer
        if isinstance(statement, WorkspaceStatement):
            return self._write(statement, tuple(parameters), status.epoch)
        return self._setting(statement)

    @contextmanager
    def refusals_kept(self, text: str = "") -> Iterator[None]:
        """Have the owner's log keep what is refused of a query's text, or of several queries, and raise it."""
        try:
            yield
        except DpsqlError as error:
            self.dataset.refusals.record(self.analyst, error, text)
            raise

    def _write(self, statement: WorkspaceStatement, parameters: tuple[object, ...], epoch: int) -> Answer:
        """Carry out a statement that writes the analyst's own tables. Raises as `execute`."""
        self.doing = "writing to your own tables"
        with self._as_kept(statement):
            asking = Asking(
                lambda query: self.bound(parse_own_view(query.text)),
                lambda kept: self.planned(written_query(kept.query), parameters, kept=kept).columns,
                lambda kept: self._ask_kept(kept, parameters, epoch),
                lambda kept: self._origin(kept, parameters),
            )
            found = self.workspace.run(statement, self.catalog, parameters, asking)
        return found if found.receipt is None else self.once(found)

    @_statement
    def copy_target(self, name: ObjectName, names: Sequence[str]) -> list[SqlType]:
        """Return the types of the values of a row that is copied into an own table. Raises Refusal, EngineFailure."""
        self.doing = "writing to your own tables"
        table, targets = self.workspace.target(name, names, self.catalog)
        return [table.columns[i].type for i in targets]

    @_statement
    def copy_rows(
        self, name: ObjectName, names: Sequence[str], rows: Sequence[Sequence[Any]], first: int
    ) -> None:
        """Write rows that the analyst sends into an own table, `first` is the number of the first of them.

        Raises Refusal, EngineFailure: none of these is written.
        """
        self.doing = "writing to your own tables"
        self.workspace.copied(name, names, rows, first, self.catalog)

    @contextmanager
    def _as_kept(self, statement: WorkspaceStatement) -> Iterator[None]:
        """Write error bars as columns of a table that is created, and never into one that exists."""
        before = self.settings
        if not isinstance(statement, CreateTable):
            self.settings = replace(before, intervals=None)
        try:
            yield
        finally:
            self.settings = before

    def _origin(self, kept: Kept, parameters: tuple[object, ...]) -> Origin | None:
        """Return how a query was asked that has just been answered from the store, or into it."""
        newest = self.dataset.store.log(1)
        return asked_as(self.settings, kept, parameters, newest[0].seq) if newest else None

    def _ask_kept(
        self, kept: Kept, parameters: tuple[object, ...], epoch: int
    ) -> tuple[Answer, PreparedPlan]:
        query = written_query(kept.query)
        with self.snapshot() as snapshot, telling(Cost(), reuse=self.settings.reuse):
            prepared = self.planned(query, parameters, snapshot, kept)
            return self._answer_prepared(
                prepared, query.text, (query.text, "kept"), epoch, snapshot
            ), prepared

    def price(self, statements: str | Sequence[str], *, epsilon: Fraction | None = None) -> PricedBatch:
        """Return what each query of a batch would get, and what all cost together; costs nothing. See `release`."""
        from .batch import price

        return price(self, statements, epsilon)

    def release(self, statements: str | Sequence[str], *, epsilon: Fraction | None = None) -> list[Answer]:
        """Answer the queries of a batch, planned together and charged once. Arguments and errors: `batch.release`."""
        from .batch import release

        with self.refusals_kept():
            return release(self, statements, epsilon)

    def recall(self, sql: str, parameters: Sequence[object] = ()) -> Answer | None:
        """Return what `execute` would, for a statement whose answer is remembered here; None where that takes time.

        Raises LedgerError.
        """
        key = self._key(sql, parameters)
        is_explained = self.dataset.explained.get((key, self.analyst)) is not None
        if not is_explained and (not self.settings.reuse or self.dataset.prepared.get(key) is None):
            return None
        status = self.dataset.store.status_at_once(self.analyst)
        if status is None:
            return None
        self.dataset.last_read.read(self.analyst, status)
        return self._explained(key, status) if is_explained else self._remembered(key, status)

    def _explained(self, key: object, status: Status) -> Answer | None:
        """Return the last answer of EXPLAIN, if neither the ledger nor the policy has changed since; else None."""
        known = self.dataset.explained.get((key, self.analyst))
        is_same = known is not None and known.status is status and known.policy is self.policy
        return known.answer if known is not None and is_same else None

    def _held(self, key: object) -> tuple[Answer, Receipt, Status] | None:
        """Return the answer in memory to a statement, its receipt, and the ledger's status when it was read last; None
        where there is no such answer.
        """
        status = self.dataset.last_read.status(self.analyst)
        if status is None or not self.settings.reuse:
            return None
        cached = self.dataset.answers.get((key, status.epoch))
        return None if cached is None or cached.receipt is None else (cached, cached.receipt, status)

    def _asked(self, held: tuple[Answer, Receipt, Status] | None) -> Status | Answer:
        """Return the ledger's status; where the ledger does not answer, the answer `held`, if any (soundness.md 3.17).

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
        return self.once(replace(cached, receipt=again))

    def _remembered(self, key: object, status: Status) -> Answer | None:
        cached = self.dataset.answers.get((key, status.epoch))
        if cached is None or not self.settings.reuse or cached.receipt is None:
            return None
        known = self._given
        if known is None or known[0] is not cached or known[1] is not status:
            was = cached.receipt
            again = self._receipt(ZERO, status, reused=was.reused or was.epsilon > 0, notes=was.notes)
            known = self._given = cached, status, replace(cached, receipt=again)
        return self.once(known[2])

    def once(self, answer: Answer) -> Answer:
        """Return an answer without the once-only notes that this session has shown already."""
        assert answer.receipt is not None
        if not answer.receipt.notes:
            return answer
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
        return self._explain(statement, tuple(parameters))[0]

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
            with self.refusals_kept(sql):
                return self._prepare(statement, parameters, key).columns
        if isinstance(statement, Explain):
            return (_plan_column(statement),)
        if isinstance(statement, WorkspaceStatement):
            self._described_write(statement, parameters)
            return ()
        return (AnswerColumn(statement.name, TEXT),) if isinstance(statement, ShowSetting) else ()

    def _described_write(self, statement: WorkspaceStatement, parameters: tuple[object, ...]) -> None:
        """Plan the query of a statement that writes, if it has one. Raises as `describe`."""
        with self._as_kept(statement):
            kept = self.workspace.query_of(statement, self.catalog)
            self.workspace.parameters_of(statement, self.catalog, parameters)
            if kept is not None:
                self.planned(written_query(kept.query), parameters, kept=kept)

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
        if isinstance(statement, WorkspaceStatement):
            awaited = tuple(Awaited(type_) for type_ in declared)
            self._described_write(statement, awaited)
            return (), tuple(one.type for one in awaited)
        if not isinstance(statement, (AdmittedQuery, Explain)):
            return self.describe(sql), ()
        query = statement.query if isinstance(statement, Explain) else statement
        awaited = tuple(Awaited(type_) for type_ in declared)
        try:
            columns = self.planned(query, awaited).columns
        except Refusal as error:
            if not awaited or self.settings.intervals is not None:
                if query is statement:
                    self.dataset.refusals.record(self.analyst, error, query.text)
                raise
            context = self._context(query, awaited)
            bound = bound_in(query, context).columns
            columns = tuple(AnswerColumn(column.name, column.type) for column in bound)
        if isinstance(statement, Explain):
            columns = (_plan_column(statement),)
        return columns, tuple(one.type for one in awaited)

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

    def _query(self, query: AdmittedQuery, parameters: tuple[object, ...], key: object, epoch: int) -> Answer:
        with self.snapshot() as snapshot:
            return self._answered(query, parameters, key, epoch, snapshot)

    def _answered(
        self,
        query: AdmittedQuery,
        parameters: tuple[object, ...],
        key: object,
        epoch: int,
        snapshot: LazySnapshot,
    ) -> Answer:
        with telling(Cost(), reuse=self.settings.reuse):
            prepared = self._prepare(query, parameters, key, snapshot)
        return self._answer_prepared(prepared, query.text, key, epoch, snapshot)

    def _answer_prepared(
        self, prepared: PreparedPlan, text: str, key: object, epoch: int, snapshot: LazySnapshot
    ) -> Answer:
        cost, reuse = Cost(), self.settings.reuse
        if self._place is not None and any(one.parts for one in (*prepared.intermediates, prepared.compiled)):
            self._place.leave()  # what reads public rows is long work itself
        with telling(cost, reuse=reuse), self._memory() as share:
            public = self._public(snapshot, share)
            since = self.dataset.answers.cleared
            runner = self.runner(prepared, text, public, cost, lambda: self.hold(snapshot.close))
            asked = prepared, runner
            is_whole = runner.from_store()
            if not is_whole and (other := self.beside(prepared, runner)) is not None:
                prepared, runner = other
                is_whole = runner.from_store()
            is_proved = any(release.is_proved for release in prepared.plan.releases)
            own = None if is_proved or self.settings.on_empty else (key, epoch)
            if is_whole:
                if is_proved:
                    snapshot.open()  # its constraints are those that prove it
                rows = self.agreeing(runner, epoch)
                above = self.above(prepared, rows, snapshot, public)
                return self._shown_groups(
                    self.answer(prepared, runner, ZERO, public, own and (own, since), rows, above)
                )
            self.check_edition()
            self.try_out(prepared, public)
            self.doing = "the database is computing"
            opened = snapshot.open()
            try:
                with self._apart():
                    charge = runner.from_engine(opened, self.dataset.salt)
            finally:
                self.dataset.answers.clear()  # what was drawn joins what is stored of the same numbers
            kept = own and (own, since + 1)  # forgotten by its own draw alone
            if prepared is not asked[0]:
                prepared, runner = self._again(*asked) or (prepared, runner)
            rows = self.agreeing(runner, epoch)
            above = self.above(prepared, rows, snapshot, public)
            return self._shown_groups(self.answer(prepared, runner, charge, public, kept, rows, above))

    def _again(self, prepared: PreparedPlan, runner: PlanRunner) -> tuple[PreparedPlan, PlanRunner] | None:
        """Return a statement's plan and runner as a repetition finds them in the store, which may choose another set of
        stored measures (soundness.md 3.8); None: the store does not have all of it."""
        asked = replace(runner, finer={}, rows=[], intermediates=[])
        if asked.from_store():
            return prepared, asked
        other = self.beside(prepared, asked)
        return other if other is not None and other[1].from_store() else None

    def _shown_groups(self, answer: Answer) -> Answer:
        """Return an answer. Raises NothingShown: it has no row, no group could be shown, and that is to be an error."""
        notes = () if answer.receipt is None else answer.receipt.notes
        why = next((note for note in notes if isinstance(note, EmptyNote)), None)
        if self.settings.on_empty and why is not None and not answer.rows:
            raise NothingShown(str(why), hint="SET dpsql.on_empty = rows answers without a row")
        return answer

    def prepared(self, query: AdmittedQuery, snapshot: LazySnapshot) -> PreparedPlan:
        """Return a statement's plan, the one that is remembered where it is. Raises as `execute`."""
        return self._prepare(query, (), self._key(query.text, ()), snapshot)

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
        prepared = self.planned(query, parameters, snapshot)
        if prepared.is_lasting:
            self.dataset.prepared.put(key, prepared)
        return prepared

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

    def _explain(self, query: AdmittedQuery, parameters: tuple[object, ...]) -> tuple[Explanation, bool]:
        """Return the explanation, and whether only the ledger, the policy and the settings can change it."""
        from .explain import Explanation  # what a query does without is loaded by an EXPLAIN

        status = self.budget()
        with self.snapshot() as snapshot:
            key = ("EXPLAIN", self._key(query.text, parameters))
            prepared = self._prepare(query, parameters, key, snapshot)
            public = self._public(snapshot, None)
            runner = self.runner(prepared, query.text, public, Cost(), snapshot.close)
            if not prepared.plan.intermediates:
                is_whole = runner.from_store()
                if not is_whole and (other := self.beside(prepared, runner)) is not None:
                    prepared, runner = other
                    is_whole = runner.from_store()
                if not is_whole:
                    self.check_edition()
            claim, places = runner.claim()
            more = self.dataset.store.quote(claim)
        known = self._known(prepared.compiled, cache(self.dataset.left_out))
        told = Explanation(
            prepared.plan, prepared.compiled, prepared.intermediates, self._left_of(prepared.plan, status),
            self.policy.defaults.epsilon,
            runner.origins, prepared.chosen, (*prepared.bar_notes, *bias_notes(prepared.plan, known)), more,
            tuple(number for number, _ in places),
            tuple(_groups_beforehand(rows) for rows in runner.rows),
        )  # fmt: skip
        return told, prepared.is_lasting

    def _left_of(self, planned: Plan, status: Status) -> Status:
        """Return the status of the slices that a plan is charged to of which the least is left; else the ledger's."""
        slices = [one.slices for one in planned.releases if one.slices is not None and not one.is_empty]
        if not slices:
            return status
        return self.dataset.store.left_of(reduce(Slices.union, slices), self.analyst).status

    def _verified(self, query: AdmittedQuery, parameters: tuple[object, ...]) -> list[str]:
        """Return how a statement's plan is verified, all of it: a line for each measurement. Costs nothing.

        Raises Unverified, where the policy refuses.
        """
        from ..release.verifying import certificate_of
        from .proofs import proof_lines, prove

        verifier = self.dataset.verifier
        with self.snapshot() as snapshot:
            key = ("EXPLAIN", self._key(query.text, parameters))
            prepared = self._prepare(query, parameters, key, snapshot)
            certificate = certificate_of(prepared.plan.releases, verifier.facts(snapshot.open()))
        verifier.require(certificate)
        proof = prove(certificate)
        if not certificate.releases:
            return ["nothing private is asked"]
        return ["not verified"] if proof.verified is None else proof_lines(certificate, proof.verified)

    @_statement
    def released(self, planned: Plan, statement: str) -> tuple[list[ReleasedRows], Charge]:
        """Return a plan's releases and what they cost: from the store, else charged, drawn and stored as a query's.

        For what an owner measures (`bounds`): no analyst's text comes here. `statement`: for the ledger's record.
        Requires: a plan without intermediate results. Raises BudgetExhausted, EngineFailure, LedgerError.
        """
        cost = Cost()
        with self.snapshot() as snapshot, telling(cost, reuse=True):
            runner = PlanRunner(
                planned, self.dataset.store, self._noise, self.analyst, statement, True, _no_intermediate,
                self._cancelled.is_set, lambda: self.hold(snapshot.close), cost, verifier=lambda: self.dataset.verifier,
            )  # fmt: skip
            if not runner.from_store():
                runner.from_engine(snapshot.open(), self.dataset.salt)
        return runner.rows, cost.charge

    def _key(self, sql: str, parameters: Sequence[object]) -> object:
        """Return what a plan depends on besides the dataset."""
        values = tuple((type(value).__name__, repr(value)) for value in parameters)
        clock = self.dataset.clock(is_open=self.settings.open)
        over = None if clock is None else (clock.end, clock.opened, clock.day)
        return sql, values, self.settings, self.access, over


def _groups_beforehand(rows: ReleasedRows) -> int:
    """Return how many groups a release has, as far as that is declared, chosen or stored; 0 where they are found."""
    if rows.groups is not None:
        return rows.groups.size
    return 0 if rows.plan.top is None else rows.plan.top.count


def _plan_column(statement: Explain) -> AnswerColumn:
    """Return the column of EXPLAIN: a text, or JSON, as Postgres'."""
    return AnswerColumn("QUERY PLAN", JSON if statement.form == "json" and not statement.verify else TEXT)


def _no_intermediate(number: int, rows: Sequence[ReleasedRows]) -> object:
    raise AssertionError("a plan without intermediate results has none")
