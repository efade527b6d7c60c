"""Notes on which groups an answer has: why one is there, and why others are not. From plan, law and release alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..mechanisms import Truncated
from ..plan.planner import Plan, ReleasePlan
from .answer import GroupNote, OnceNote
from .run import ReleasedRows

__all__ = ["found_notes", "null_notes"]


def null_notes(plan: Plan) -> Iterator[OnceNote]:
    """Yield why there is a group for NULL: a declared key that may be it, whether or not any row is."""
    for release in plan.releases:
        if release.groups is None or release.is_empty:
            continue
        for number, domain in enumerate(release.domains):
            if domain is not None and None in domain.values:
                name = _name(release, number)
                yield OnceNote(
                    f"{name} may be NULL, so NULL is one of its groups whether or not it occurs; "
                    "WHERE … IS NOT NULL leaves it out"
                )


def found_notes(rows: Sequence[ReleasedRows]) -> Iterator[GroupNote]:
    """Yield about how many people a group that is found in the data needs, and that none has so many."""
    for released in rows:
        plan = released.plan
        tau = _tau(released)
        if tau is None or released.groups is None:
            continue
        names = ", ".join(_name(plan, number) for number in range(len(plan.release.keys)))
        people = f"about {tau:,} people"
        if released.groups.size:
            yield GroupNote(f"groups by {names} are found in the data: one is shown from {people} on")
        else:
            yield GroupNote(
                f"no group by {names} is shown: no row counts, or none has {people}; keys that are listed, in the "
                "policy or in WHERE key IN (…), are answered whatever they hold"
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
