"""What comes of a case's statement, in the words of the case files: what it becomes, or why it is refused."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce

from dpsql import Session
from dpsql.engine.explain import Explanation
from dpsql.errors import DpsqlError
from dpsql.mechanisms import ATTO
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.measures.measurements import Joint
from dpsql.plan.planner import Plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Accounting, Slices
from dpsql.policy.periods import period_text
from dpsql.testing.case_file import (
    Accepted,
    Case,
    ExpectedCharge,
    Measure,
    Outcome,
    Refused,
    ReleaseClaim,
    read_cases,
    rewrite_case,
)

__all__ = ["explain", "outcome_of", "queries_of", "refilled", "refusal_of", "set_epsilon"]


def set_epsilon(session: Session, case: Case) -> None:
    """Set what the case asks for."""
    value = Decimal(case.epsilon.numerator) / Decimal(case.epsilon.denominator)
    session.execute(f"SET dpsql.epsilon = '{value}'")


def explain(session: Session, case: Case) -> Explanation:
    """Return what EXPLAIN knows of a case's statement, under its epsilon."""
    set_epsilon(session, case)
    return session.explain(case.sql, case.parameters)


def refusal_of(session: Session, case: Case) -> Refused | None:
    """Run a statement; return its refusal, None when it is answered."""
    try:
        set_epsilon(session, case)
        session.execute(case.sql, case.parameters)
    except DpsqlError as error:
        position = "" if error.position is None else str(error.position)
        return Refused(error.sqlstate, position, error.message, error.hint or "")
    return None


def outcome_of(explained: Explanation, dialect: Dialect | None = None) -> Accepted:
    """Return what a statement becomes; `dialect`: in whose words, if not in those of the session's engine."""
    plan = explained.plan
    columns = " ".join(f"{column.name}:{column.type}" for column in explained.compiled.relation.columns)
    shown = [release if dialect is None else replace(release, dialect=dialect) for release in plan.releases]
    return Accepted(
        tuple(query.sql for release in shown for query in queries_of(release)),
        tuple(_claim(release) for release in plan.releases),
        ExpectedCharge(
            plan.epsilon,
            plan.delta,
            Fraction(plan.rho_atto, ATTO) if plan.privacy.accounting is Accounting.ZCDP else None,
            _slices(plan),
        ),
        columns,
        tuple(intermediate.sql for intermediate in explained.intermediates),
        explained.compiled.sql,
    )


def _slices(plan: Plan) -> str:
    """Return what is charged, as the case files write it: `2024-01..2024-03,undated`."""
    found = [release.slices for release in plan.releases if release.slices is not None]
    if not found or plan.privacy.clock is None:
        return ""
    period, reached = plan.privacy.clock.time.period, reduce(Slices.union, found)
    runs = [
        period_text(period, first)
        if first == last
        else f"{period_text(period, first)}..{period_text(period, last)}"
        for first, last in reached.periods
    ]
    return ",".join([*runs, *(["undated"] if reached.is_undated else [])])


def queries_of(release: ReleasePlan) -> tuple[BackendQuery, ...]:
    """Return the queries that ask for all measurements of a release."""
    return release.queries(tuple(range(len(release.measurements))))


def refilled(case: Case, outcome: Outcome) -> Case:
    """Write what is no claim of an outcome into the case's file, and return the case as it is there now."""
    rewrite_case(case.path, case.name, outcome)
    return next(one for one in read_cases(case.path) if one.name == case.name)


def _claim(release: ReleasePlan) -> ReleaseClaim:
    measures = []
    for number, measurement in enumerate(release.measurements):
        lattice = measurement.lattice
        is_gaussian = release.is_zcdp and number not in release.choices
        reach = measurement.sensitivity // measurement.denominator
        if is_gaussian:
            reach = measurement.squared_sensitivity // measurement.denominator**2
        measures.append(
            Measure(
                measurement.kind,
                measurement.size,
                None if lattice is None else lattice.step,
                None if lattice is None else (lattice.low, lattice.high),
                reach,
                release.measures[number].scale / measurement.denominator,
                Fraction(0) if release.is_zcdp else release.measures[number].epsilon,
                Fraction(release.measures[number].rho_atto, ATTO) if release.is_zcdp else None,
                is_gaussian,
                measurement.reaches if isinstance(measurement, Joint) else (),
            )
        )
    if release.groups is None:
        groups = f"threshold tau={release.tau} delta={Fraction(release.delta)}"
    elif release.top is not None:
        groups = f"chosen {release.top.count} of {len(release.groups)}"
    elif release.release.keys:
        groups = f"declared {len(release.groups)}"
    else:
        groups = "one"
    return ReleaseClaim(tuple(measures), groups)
