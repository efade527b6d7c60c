"""A batch of known statements, a dashboard or a yearly report: planned together, charged once, answered alike.

Each statement is planned as if it were asked after those before it, over a store with what they would have drawn; so
what one draws answers the others in every way that a store does (`finer`, `beside`). Of some orders of asking the best
one is taken. Then all is reserved at once, drawn in one snapshot, and stored at once.

House rules (soundness.md 3.13):

1. Planning reads text, policy, settings, public keys and what is stored; nothing of people, and nothing is charged.
2. All statements are planned, tried out over empty tables, and their public rows fetched, before the one charge.
3. Answers are made of what is stored afterwards, as they are when the file is run again.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ..budget import (
    ZERO,
    AskedOnce,
    Charge,
    Fresh,
    Known,
    MeasurementClaim,
    Overtaken,
    Pending,
    Status,
    StoredDraws,
    charge_of,
    fresh_of,
)
from ..errors import DpsqlError, EngineFailure, Position, Refusal
from ..mechanisms import ATTO, NANO
from ..plan.planner import Plan
from ..records import dataclass
from ..release.batch_split import Drawn, relative_errors, scaled, split, wishing
from ..release.beside import find_together
from ..release.consistent import consistent
from ..release.levels import with_levels
from ..release.post_processing import PublicRows
from ..release.price import Cost, telling
from ..release.run import Place, PlanRunner, ReleasedRows, Wanted, carry_out
from ..sql.statement import AdmittedQuery, ResetSetting, SetSetting, parse_statement
from ..sql.text import split_statements
from .answer import Answer
from .dataset import LazySnapshot, PreparedPlan
from .settings import Settings, decimal_text

if TYPE_CHECKING:
    from .session import Session

_MOST = 200
"""Statements of a batch."""
_MOST_TRIED = 20
"""Times that a split is settled; a total of which the least shares do not fit is refused then."""
_LESS = Fraction(999, 1000)
_IMAGINED = 2**62
"""Draws that are only planned have numbers from here on."""


@dataclass(frozen=True)
class BatchStatement:
    """A query of a file. `number` from 1; `place`: where it begins; `settings`: those that SET lines before it leave.

    `has_own`: these name its epsilon, its accuracy or an edition, so that it has no part in what is split.
    """

    number: int
    query: AdmittedQuery
    place: Position
    settings: Settings
    has_own: bool

    @property
    def text(self) -> str:
        """The statement on one line."""
        return " ".join(self.query.text.split())


@dataclass(frozen=True)
class PricedStatement:
    """What a statement would get. `charge`: of what is drawn for it first; `uses`: the statements of the batch whose
    draws it takes besides; `is_stored`: it is answered free, now.
    """

    statement: BatchStatement
    prepared: PreparedPlan
    actual: Plan
    charge: Charge
    uses: tuple[int, ...]
    is_stored: bool


@dataclass(frozen=True)
class PricedBatch:
    """All statements, and what they cost together; `status` is the ledger's now."""

    statements: tuple[PricedStatement, ...]
    charge: Charge
    status: Status


@dataclass(frozen=True)
class _Asked:
    """A statement as it is to be asked; `alone`: its plan before anything was known of the others."""

    statement: BatchStatement
    prepared: PreparedPlan
    alone: Plan


_Paid = tuple[MeasurementClaim, Fresh]


@dataclass(frozen=True)
class _Step:
    """A statement as it was asked: its plan then, and what it draws. `paid`: what is claimed of that, and how it is
    drawn, by place.
    """

    asked: _Asked
    prepared: PreparedPlan
    drawn: Drawn
    paid: Mapping[Place, _Paid]

    @property
    def charge(self) -> Charge:
        return charge_of((claim.slices, fresh.charge) for claim, fresh in self.paid.values())

    @property
    def draws(self) -> frozenset[int]:
        """All draws of the batch that its answer is made of, and those that leave less to be drawn for it."""
        known = (entry for _, fresh in self.paid.values() for entry in fresh.entries if entry >= _IMAGINED)
        return self.drawn.draws.union(known)


# --- the file --------------------------------------------------------------------------------------------------


def script_of(statements: str | Sequence[str]) -> str:
    """Return statements as one text; places in it are counted over all of them."""
    return statements if isinstance(statements, str) else "\n;\n".join(statements)


def read_batch(session: Session, script: str) -> list[BatchStatement]:
    """Return the queries of a file, each under the settings of the SET and RESET lines before it.

    Raises:
        Refusal: what is neither; more queries than a batch takes. Its place is that in the file.
    """
    found: list[BatchStatement] = []
    settings, owns = session.settings, {"dpsql.epsilon": False}
    for piece in split_statements(script):
        place = _place_in(script, piece.start)
        with _naming(len(found) + 1, place):
            said = parse_statement(piece.text)
            if isinstance(said, AdmittedQuery):
                is_pinned = settings.edition is not None
                has_own = owns["dpsql.epsilon"] or settings.accuracy is not None or is_pinned
                found.append(BatchStatement(len(found) + 1, said, place, settings, has_own))
            elif isinstance(said, SetSetting):
                settings = settings.set(said.name, said.value, session.policy)
                owns[said.name] = said.value.lower() != "default"
            elif isinstance(said, ResetSetting):
                settings = settings.reset(said.name, session.policy)
                owns[said.name] = False
            else:
                raise Refusal(
                    "a release is of queries; SET and RESET stand before them",
                    sqlstate="0A000", hint="leave it out: dpsql release --dry-run shows what each query would get",
                )  # fmt: skip
            if not settings.reuse:
                raise Refusal(
                    "a release takes what is stored, so that running it again is free", sqlstate="22023",
                    hint="ask what is to be drawn anew with dpsql query",
                )  # fmt: skip
            if len(found) > _MOST:
                raise Refusal(f"a release has at most {_MOST} queries", sqlstate="54001", hint="cut the file")
    if not found:
        raise Refusal("there is no query to release", sqlstate="42601", hint="write a SELECT")
    return found


def _place_in(script: str, start: int) -> Position:
    before = script[:start]
    return Position(before.count("\n") + 1, start - before.rfind("\n"), start)


@contextmanager
def _naming(number: int, place: Position) -> Iterator[None]:
    """Have an error that leaves the block name the statement, and its place in the file."""
    try:
        yield
    except DpsqlError as error:
        error.message = f"statement {number}: {error.message}"
        at = error.position or Position(1, 1, 0)
        column = at.column + place.column - 1 if at.line == 1 else at.column
        error.position = Position(place.line + at.line - 1, column, place.offset + at.offset)
        raise


# --- planning --------------------------------------------------------------------------------------------------


@dataclass
class _Planner:
    """Plans a batch for a session. `total`: the epsilon of all statements together; None: each as asked alone."""

    session: Session
    statements: Sequence[BatchStatement]
    total: Fraction | None
    snapshot: LazySnapshot
    _values: dict[object, str] = field(default_factory=dict)

    def steps(self) -> list[_Step]:
        """Return what each statement draws, in the order in which they are to be asked."""
        asked = self._together([self._asked(one) for one in self.statements])
        stored = AskedOnce(self.session.dataset.store)
        base = stored if self.total is None else None
        found: list[tuple[tuple[float | Fraction, ...], list[_Step], dict[int, Fraction]]] = []
        joins = any(find_together(one.prepared.plan) is not None for one in asked)
        for order, is_joined in itertools.product(self._orders(asked), (False, True)[: 1 + joins]):
            walk, _ = self._walk(order, base, is_final=False, joins=is_joined)
            losses = _losses(walk) if self.total is None else self._split(walk)
            error = _total_error(walk, losses)
            found.append(((error,) if self.total is not None else (self._price(walk), error), walk, losses))
        for _, walk, losses in sorted(found, key=lambda one: one[0]):
            final = self._settled(walk, losses)
            steps, pending = self._walk(final, stored, is_final=True)
            unsettled = [step for step in steps if not self._is_settled(step, pending)]
            if not unsettled:
                return steps
        with _under(self.session, unsettled[0].asked.statement):
            raise Refusal(
                "another statement makes a subquery's result more exact, and this one would be charged again then",
                sqlstate="0A000", hint="release it by itself, after the others",
            )  # fmt: skip

    def _settled(self, walk: Sequence[_Step], losses: Mapping[int, Fraction]) -> list[_Asked]:
        """Return the statements as each wishes for what it has of a split.

        Split so, one draw may answer what another was for: then that one's part is the others', as if nothing were
        stored. Where one does not answer quite what it is wished to, and more is drawn beside it, each has less, until
        all of them are within the total.
        """
        for _ in range(_MOST_TRIED):
            drawn = [step.drawn for step in walk]
            final = [self._with(step, wishing(step.drawn, losses, drawn)) for step in walk]
            if self.total is None:
                return final
            again, _ = self._walk(final, None, is_final=True)
            if len(_losses(again)) < len(losses):
                walk, losses = again, self._split(again)
                continue
            total, _, is_zcdp = self._limits()
            needed = self._price([step for step in again if step.asked.statement.has_own])
            spent = self._price(again) - needed
            if spent <= total - needed:
                return final
            losses = scaled(losses, _own(walk), (total - needed) / spent * _LESS, is_zcdp=is_zcdp)
        raise self._too_little("what these statements draw does not fit into epsilon")

    def _is_settled(self, step: _Step, pending: Pending) -> bool:
        """Say whether all that is drawn still answers a statement of intermediate results as it is answered first."""
        if not step.prepared.plan.intermediates or not step.drawn.owed:
            return True
        return self._imagining(step.asked.statement, step.prepared, pending).from_store()

    def _asked(self, one: BatchStatement) -> _Asked:
        shared = sum(not statement.has_own for statement in self.statements)
        settings = one.settings
        if self.total is not None and not one.has_own:
            most = self.session.policy.defaults.max_epsilon
            settings = replace(settings, epsilon=min(most, self._part(shared)))
        with _under(self.session, replace(one, settings=settings)):
            prepared = self.session.prepared(one.query, self.snapshot)
        return _Asked(replace(one, settings=settings), prepared, prepared.plan)

    def _together(self, asked: Sequence[_Asked]) -> list[_Asked]:
        """Return statements with no other levels than those that help beside what the others draw anyway."""
        plain = [one.alone.plain or one.alone for one in asked]
        found = list(asked)
        for number, one in enumerate(asked):
            if one.alone.plain is not None:
                beside = [
                    release for i, other in enumerate(plain) if i != number for release in other.releases
                ]
                with _under(self.session, one.statement):
                    levelled = with_levels(one.alone.plain, self.session.catalog, beside)
                    prepared = replace(one.prepared, plan=levelled, compiled=self.session.compiled(levelled))
                found[number] = replace(one, prepared=prepared, alone=levelled)
        return found

    def _part(self, count: int) -> Fraction:
        """Return the epsilon of one of so many statements that share the total."""
        assert self.total is not None
        if self.session.policy.privacy.accounting.value != "zcdp":
            return self.total / count
        return Fraction(int(float(self.total) / count**0.5 * 10**9), 10**9)

    def _orders(self, asked: Sequence[_Asked]) -> list[list[_Asked]]:
        """Return orders of asking: as in the file, the most exact and finest first, counts before what is summed."""

        def is_free(one: _Asked) -> bool:
            return self.total is not None and not one.statement.has_own

        def groups(one: _Asked) -> int:
            return sum(len(release.groups or ()) for release in one.alone.releases)

        def values(one: _Asked) -> int:
            return sum(bool(m.values) for release in one.alone.releases for m in release.measurements)

        keys: list[Callable[[_Asked], tuple[object, ...]]] = [
            lambda one: (is_free(one),),
            lambda one: (is_free(one), -one.alone.epsilon, -groups(one), values(one)),
            lambda one: (is_free(one), values(one), -one.alone.epsilon, -groups(one)),
            lambda one: (is_free(one), -groups(one), -values(one), -one.alone.epsilon),
        ]
        found: list[list[_Asked]] = []
        for key in keys:
            order = sorted(asked, key=key)
            last = sorted(order, key=lambda one: (is_free(one), bool(one.alone.intermediates)))
            found += [one for one in (order, last) if one not in found]
        return found

    def _price(self, walk: Sequence[_Step]) -> Fraction:
        charge = sum((step.charge for step in walk), ZERO)
        if self.session.policy.privacy.accounting.value == "zcdp":
            return Fraction(charge.rho_atto, ATTO)
        return Fraction(charge.epsilon_nano, NANO)

    def _split(self, walk: Sequence[_Step]) -> dict[int, Fraction]:
        """Return what each draw is to cost: what the file's own settings need first, the rest for the others."""
        total, most, is_zcdp = self._limits()
        own = [step for step in walk if step.asked.statement.has_own]
        needed = self._price(own)
        if needed > total or (needed == total and any(step.drawn.owed for step in walk if step not in own)):
            said = decimal_text(
                needed if not is_zcdp else Fraction(int((2 * needed * ATTO * ATTO) ** 0.5), ATTO)
            )
            raise self._too_little(
                f"what the file itself asks for takes epsilon {said}, and all of it is to take"
            )
        return split([step.drawn for step in walk], _own(walk), total - needed, most, is_zcdp=is_zcdp)

    def _too_little(self, said: str) -> Refusal:
        assert self.total is not None
        return Refusal(
            f"{said} {decimal_text(self.total)}",
            sqlstate="PV301", hint="give more, or leave --epsilon out: then the price is found",
        )  # fmt: skip

    def _limits(self) -> tuple[Fraction, Fraction, bool]:
        """Return the most of all statements and of one, in what adds up, and whether that is rho."""
        assert self.total is not None
        total, most = self.total, self.session.policy.defaults.max_epsilon
        if self.session.policy.privacy.accounting.value == "zcdp":
            return total**2 / 2, most**2 / 2, True
        return total, most, False

    def _with(self, step: _Step, plan: Plan) -> _Asked:
        if plan == step.prepared.plan:
            return _Asked(step.asked.statement, step.prepared, step.asked.alone)
        with _under(self.session, step.asked.statement):
            compiled = self.session.compiled(plan)
        prepared = replace(step.prepared, plan=plan, compiled=compiled)
        return _Asked(step.asked.statement, prepared, step.asked.alone)

    # --- asking, as if -----------------------------------------------------------------------------------

    def _walk(
        self, order: Sequence[_Asked], base: StoredDraws | None, *, is_final: bool, joins: bool = False
    ) -> tuple[list[_Step], Pending]:  # fmt: skip
        """Ask one after the other, over what is stored and what the ones before would have drawn; return that too.

        `joins`: several columns of a statement may be one vector, which serves others less well (soundness.md 1.22).
        """
        pending = Pending(base, self.session.dataset.store.epoch)
        numbers = itertools.count(_IMAGINED)
        found = []
        for asked in order:
            with _under(self.session, asked.statement):
                found.append(self._step(asked, pending, numbers, base, is_final=is_final, joins=joins))
        return found, pending

    def _step(
        self, asked: _Asked, pending: Pending, numbers: Iterator[int], base: StoredDraws | None, *,
        is_final: bool, joins: bool,
    ) -> _Step:  # fmt: skip
        prepared = asked.prepared
        if asked.statement.settings.edition is not None:
            return self._pinned(asked)
        if base is not None and prepared.plan.intermediates:
            runner = _runner(
                self.session, asked.statement, prepared, PublicRows(self.snapshot.open), Cost(), _nothing
            )
            if runner.from_store():
                return _Step(asked, prepared, Drawn(runner, {}, {}, asked.alone), {})
        runner = self._imagining(asked.statement, prepared, pending)
        if not runner.from_store() and not is_final:
            other = self.session.beside(prepared, runner, joins=joins)
            if other is not None:
                prepared, runner = other
                runner.from_store()
        owed: dict[Place, int] = {}
        paid: dict[Place, _Paid] = {}
        for number, rows in enumerate(runner.rows):
            runner.look_up(number)
            order = sorted(range(len(rows.plan.measurements)), key=lambda i: i != rows.plan.keyed_by)
            for index in order:
                if rows.plan.is_empty or index in rows.measurements:
                    continue
                place = number, index
                owed[place] = entry = next(numbers)
                paid[place] = claim, fresh = self._paid(runner, place, pending)
                pending.add(entry, runner.imagined(number, index, fresh.law), claim.grouping)
                runner.look_up(number)
        sources = _sources(runner, owed, pending, base)
        return _Step(asked, prepared, Drawn(runner, owed, sources, asked.alone), paid)

    def _pinned(self, asked: _Asked) -> _Step:
        """Ask a statement that an edition is to answer: it draws nothing. Raises Refusal (22023): it does not."""
        prepared, public = asked.prepared, PublicRows(self.snapshot.open)
        runner = _runner(self.session, asked.statement, prepared, public, Cost(), _nothing)
        if not runner.from_store():
            other = self.session.beside(prepared, runner, joins=False)
            if other is None or not other[1].from_store():
                self.session.check_edition()
                raise AssertionError("what no edition is to answer is drawn")
            prepared, runner = other
        return _Step(asked, prepared, Drawn(runner, {}, {}, asked.alone), {})

    def _paid(self, runner: PlanRunner, place: Place, pending: Pending) -> _Paid:
        """Return what is claimed of a measurement, and how it is drawn: what shares a total, and what is known of by
        its name alone until it is drawn, in full.
        """
        plan = runner.rows[place[0]].plan
        is_named = bool(plan.intermediates)
        if plan.keyed_by is not None:
            keys, law = runner.measures_of(place[0], plan.keyed_by), plan.measures[plan.keyed_by].law
            is_named = is_named or pending.entries(keys, law) is not None
        if self.total is None and not is_named:
            return runner.priced(*place)
        claim = runner.claimed(*place)
        claim = replace(claim, wish=claim.wish if self.total is None else None)
        return claim, fresh_of(claim, ())

    def _imagining(self, statement: BatchStatement, prepared: PreparedPlan, pending: Pending) -> PlanRunner:
        """Return a runner that asks nothing: an intermediate result is told from others, and has no value."""
        plan = prepared.plan

        def value(number: int, rows: Sequence[ReleasedRows]) -> object:
            laws = tuple(repr(one.laws) for row in rows for one in row.measurements.values())
            return self._values.setdefault(
                (plan.intermediates[number], laws), f"imagined {len(self._values)}"
            )

        asked = self.session.runner(
            prepared, statement.query.text, PublicRows(self.snapshot.open), Cost(), _nothing
        )
        return replace(
            asked,
            reuse=True,
            intermediate_value=value,
            verifier=None,
            pending=pending,
            rows=[],
            intermediates=[],
        )


def _own(walk: Sequence[_Step]) -> frozenset[int]:
    """Return the draws of statements that name their own epsilon."""
    return frozenset(
        entry for step in walk if step.asked.statement.has_own for entry in step.drawn.owed.values()
    )


def _losses(walk: Sequence[_Step]) -> dict[int, Fraction]:
    return {entry: loss for step in walk for entry, loss in step.drawn.losses().items()}


def _total_error(walk: Sequence[_Step], losses: Mapping[int, Fraction]) -> float:
    """Return the sum of all statements' relative errors under a split."""
    before, total = _losses(walk), 0.0
    power = 1 if any(release.is_zcdp for step in walk for release in step.prepared.plan.releases) else 2
    for step in walk:
        for entry, error in relative_errors(step.drawn).items():
            total += error * float(before[entry] / losses[entry]) ** power
    return total


def _sources(
    runner: PlanRunner, owed: Mapping[Place, int], pending: Pending, base: StoredDraws | None
) -> dict[Place, tuple[int, ...]]:
    """Return by place the draws of the batch that a statement is answered from."""
    found: dict[Place, tuple[int, ...]] = {}
    for number, rows in enumerate(runner.rows):
        for index in rows.measurements:
            if rows.plan.is_empty or (number, index) in owed:
                continue
            finer = runner.finer.get((number, index))
            if finer is not None and finer.entries:
                found[number, index] = tuple(entry for entry in finer.entries if entry >= _IMAGINED)
                continue
            measures, law = runner.measures_of(number, index), rows.plan.measures[index].law
            if base is None or base.lookup(measures, law) is None:
                drawn = pending.entries(measures, law) or ()
                found[number, index] = tuple(dict.fromkeys(entry for entries in drawn for entry in entries))
    return found


# --- at once ---------------------------------------------------------------------------------------------------


def price(session: Session, statements: str | Sequence[str], epsilon: Fraction | None = None) -> PricedBatch:
    """Return what each query of a batch would get, and what all cost together; costs nothing. See `release`."""
    with session.statement():
        return price_batch(session, read_batch(session, script_of(statements)), epsilon)


def release(
    session: Session, statements: str | Sequence[str], epsilon: Fraction | None = None
) -> list[Answer]:
    """Answer the queries of a batch, planned together and charged once, as `dpsql release` does.

    `statements`: a text of several, or one text each; SET and RESET hold for the queries after them. `epsilon`:
    of all together, split for the least total error; None: each is as exact as asked alone.

    Raises: as `Session.execute`; if one is refused, or the price does not fit, nothing was charged.
    """
    with session.statement():
        return run_batch(session, read_batch(session, script_of(statements)), epsilon)


# --- price -----------------------------------------------------------------------------------------------------


def price_batch(
    session: Session, statements: Sequence[BatchStatement], total: Fraction | None = None
) -> PricedBatch:
    """Return what each statement would get, and what all of them cost; costs nothing.

    `total`: the epsilon of all together, split for the least total error; None: each is to be as exact as asked alone
    under its settings, and the price is found.

    Raises:
        Refusal: of the first statement that would not be answered; it names the statement.
    """
    status = session.budget()
    with _begun(session) as snapshot:
        steps = _Planner(session, statements, total, snapshot).steps()
    numbers = _numbers(steps)
    priced = [
        PricedStatement(
            step.asked.statement,
            step.prepared,
            replace(
                step.prepared.plan, releases=tuple(map(step.drawn.actual, range(len(step.drawn.runner.rows))))
            ),
            step.charge,
            tuple(sorted({numbers[e] for e in step.draws} - {step.asked.statement.number})),
            not step.drawn.draws and bool(step.drawn.runner.rows),
        )
        for step in steps
    ]
    priced.sort(key=lambda one: one.statement.number)
    return PricedBatch(tuple(priced), sum((step.charge for step in steps), ZERO), status)


def _numbers(steps: Sequence[_Step]) -> dict[int, int]:
    """Return which statement makes each draw."""
    return {entry: step.asked.statement.number for step in steps for entry in step.drawn.owed.values()}


# --- running ---------------------------------------------------------------------------------------------------


def run_batch(
    session: Session,
    statements: Sequence[BatchStatement],
    total: Fraction | None,
    agreed: Charge | None = None,
) -> list[Answer]:
    """Return the answers in the order of the file: all are charged and stored together, or nothing is.

    `agreed`: the most that they may cost; None: what they cost as they are planned first.

    Raises:
        Refusal: a statement is refused, or the price is above what was agreed to; nothing was charged.
        BudgetExhausted: the price does not fit; nothing was charged.
        EngineFailure: as of one statement; `cost` says what was spent.
    """
    cost = Cost()
    with _begun(session) as snapshot, telling(cost, reuse=True):
        for attempt in itertools.count(1):
            steps = _Planner(session, statements, total, snapshot).steps()
            price = sum((step.charge for step in steps), ZERO)
            agreed = price if agreed is None else agreed
            _check_agreed(price, agreed)
            publics = [PublicRows(snapshot.open) for _ in steps]
            try:
                charges = _drawn(session, steps, publics, cost, snapshot, attempt)
            except Overtaken:  # others drew of the same rows: less may be missing now
                continue
            break
        if any(release.is_proved for step in steps for release in step.prepared.plan.releases):
            snapshot.open()  # its constraints are those that prove it
        answers = _answers(session, steps, publics, charges)
    return [session.once(answers[statement.number]) for statement in statements]


def _drawn(
    session: Session, steps: Sequence[_Step], publics: Sequence[PublicRows], cost: Cost, snapshot: LazySnapshot,
    attempt: int,
) -> dict[int, Charge]:  # fmt: skip
    """Draw what the statements are to draw, all at once, and return what each is charged. Raises Overtaken."""
    if not any(step.drawn.owed for step in steps):
        return {}
    for step, public in zip(steps, publics, strict=True):
        with _under(session, step.asked.statement):
            session.try_out(step.prepared, public)
    wanted = _wanted(session, steps, publics, cost, lambda: session.hold(snapshot.close))
    if not wanted:
        return {}
    try:
        asked = [one.tried(attempt) for one in wanted.values()]
        charged = carry_out(asked, snapshot.open(), session.dataset.salt)
    finally:
        session.dataset.answers.clear()  # what is drawn answers from now on
    return dict(zip(wanted, charged, strict=True))


def _answers(
    session: Session, steps: Sequence[_Step], publics: Sequence[PublicRows], charges: Mapping[int, Charge]
) -> dict[int, Answer]:
    """Return the answers by statement, from what is stored: those of the same rows agree (soundness.md 3.15)."""
    epoch, runners, answers = session.dataset.store.epoch, list[PlanRunner](), dict[int, Answer]()
    for step, public in zip(steps, publics, strict=True):
        with _under(session, step.asked.statement):
            runners.append(_runner(session, step.asked.statement, step.prepared, public, Cost(), _nothing))
            if not runners[-1].from_store():
                raise EngineFailure("what a batch has stored does not answer it")
    agreeing = dict[int | None, Iterator[ReleasedRows]]()
    for edition in {runner.edition for runner in runners}:  # of another one a number is of other draws
        own = (runner for runner in runners if runner.edition == edition and not runner.plan.intermediates)
        rows = [one for runner in own for one in runner.rows]
        agreeing[edition] = iter(consistent(rows) if session.dataset.store.epoch == epoch else rows)
    for step, runner, public in zip(steps, runners, publics, strict=True):
        statement = step.asked.statement
        told = runner.rows
        if not runner.plan.intermediates:
            told = list(itertools.islice(agreeing[runner.edition], len(runner.rows)))
        charge = charges.get(statement.number, ZERO)
        with _under(session, statement):
            with session.snapshot() as snapshot:
                above = session.above(step.prepared, told, snapshot, public)
            answers[statement.number] = session.answer(
                step.prepared, runner, charge, public, None, told, above
            )
    return answers


def _check_agreed(price: Charge, agreed: Charge) -> None:
    """Refuse what has become dearer since its price was shown. Raises Refusal."""
    if price.epsilon_nano > agreed.epsilon_nano or price.delta_atto > agreed.delta_atto or (
        price.rho_atto > agreed.rho_atto
    ):  # fmt: skip
        raise Refusal(
            "the price is no longer the one that was shown: what is stored has changed meanwhile",
            sqlstate="PV301", hint="run it again",
        )  # fmt: skip


def _wanted(
    session: Session, steps: Sequence[_Step], publics: Sequence[PublicRows], cost: Cost, hold: Callable[[], None]
) -> dict[int, Wanted]:  # fmt: skip
    """Return what is to be drawn, by the statement that draws it."""
    pending = Pending(session.dataset.store, session.dataset.store.epoch)
    labels, found = _labels(steps), {}
    for step, public in zip(steps, publics, strict=True):
        if not step.drawn.owed:
            continue
        runner = _runner(session, step.asked.statement, step.prepared, public, cost, hold, pending)
        runner.from_store()
        label = {place: labels[entry] for place, entry in step.drawn.owed.items()}
        places = [place for place in label if place not in runner.finer]
        if places:
            planned = {place: claim for place, (claim, _) in step.paid.items()}
            claims = (
                replace(_at_price(runner.claimed(*place), planned[place]), statement=label[place])
                for place in places
            )
            found[step.asked.statement.number] = Wanted(runner, tuple(claims), places)
    return found


def _at_price(own: MeasurementClaim, planned: MeasurementClaim) -> MeasurementClaim:
    """Return a claim at the price that was shown: what other statements of the batch draw lowers it too."""
    known = planned.known
    if known is not None:
        seen = ((key, frozenset(one for one in entries if one < _IMAGINED)) for key, entries in known.seen)
        entries = tuple(one for one in known.entries if one < _IMAGINED)
        known = Known(known.loss, entries, tuple(seen))
    return replace(own, wish=planned.wish, known=known)


def _labels(steps: Sequence[_Step]) -> dict[int, str]:
    """Return what the ledger keeps of each draw: which batch it is of, and the statements that it answers."""
    statements = sorted((step.asked.statement for step in steps), key=lambda one: one.number)
    batch = hashlib.sha256("\n".join(one.text for one in statements).encode()).hexdigest()[:8]
    found: dict[int, str] = {}
    for entry in _numbers(steps):
        served = sorted((s.asked.statement for s in steps if entry in s.draws), key=lambda one: one.number)
        texts = "; ".join(f"{one.number}: {one.text}" for one in served)
        found[entry] = f"release {batch} of {len(statements)} statements, {texts}"
    return found


def _runner(
    session: Session, statement: BatchStatement, prepared: PreparedPlan, public: PublicRows, cost: Cost,
    hold: Callable[[], None], pending: Pending | None = None,
) -> PlanRunner:  # fmt: skip
    made = session.runner(prepared, statement.query.text, public, cost, hold)
    return replace(made, reuse=True, pending=pending, rows=[], intermediates=[])


@contextmanager
def _begun(session: Session) -> Iterator[LazySnapshot]:
    with session.statement(), session.snapshot() as snapshot:
        yield snapshot


@contextmanager
def _under(session: Session, statement: BatchStatement) -> Iterator[None]:
    """Have the session take a statement's settings until the block ends, and a refusal name its statement; what else
    goes wrong is not the statement's."""
    before, session.settings = session.settings, statement.settings
    try:
        yield
    except Refusal as error:
        with _naming(statement.number, statement.place):
            raise error
    finally:
        session.settings = before


def _nothing() -> None:
    """Hold nothing back: nothing is drawn."""
