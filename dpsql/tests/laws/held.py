"""Statements of one world held to their claims over neighbours that a test names, and to the verifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against

from .measured import World, compared, measure_release

__all__ = ["verdict", "worst_losses"]


def worst_losses(
    put: Callable[..., None],
    made: World,
    statements: Sequence[str],
    people: object,
    neighbours: Sequence[object],
) -> list[Fraction]:
    """Hold statements' claims against all neighbours; return the largest loss of each, per its charge."""
    plans = [made.plan(sql) for sql in statements]

    def here(rows: object, order: int) -> list[list[dict[int, object]]]:
        made.settle(put, rows, order)
        with made.backend.snapshot() as snapshot:
            return [[measure_release(one, snapshot) for one in plan.releases] for plan in plans]  # type: ignore[misc]

    base, worst = here(people, 0), [Fraction(0)] * len(plans)
    for order, one in enumerate(neighbours, 1):
        there = here(one, order)
        for place, (plan, sql) in enumerate(zip(plans, statements, strict=True)):
            loss = compared(plan, base[place], there[place], sql)  # type: ignore[arg-type]
            worst[place] = max(worst[place], loss)
    return worst


def verdict(made: World, sql: str) -> str:
    """The rule by which a statement is not verified; "" where it is."""
    with made.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, made.policy, lambda *_: None)
    return rule_against(certificate_of(made.plan(sql).releases, facts))
