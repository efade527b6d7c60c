"""EXPLAIN: each release with its measures, noise and charge, the backend SQL and the post-processing."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction

from ..mechanisms import half_width
from ..plan.formulas import Average, Linear, Variance
from ..plan.planner import Plan, ReleasePlan
from ..plan.vectors import Kind
from .finish import Compiled
from .settings import decimal_text

__all__ = ["Explanation"]

_SAID = {
    Kind.COUNT: "count of rows",
    Kind.PAIR: "complementary sums",
    Kind.SUM: "sum",
    Kind.MOMENT: "sum of centred squares",
    Kind.DISTINCT: "distinct values",
    Kind.UNITS: "count of people",
    Kind.DIRECT: "direct average",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a query would release and cost; `left` is the epsilon left now, read from the ledger."""

    plan: Plan
    compiled: Compiled
    stages: tuple[Compiled, ...]
    left: Fraction

    def as_dict(self) -> dict[str, object]:
        """Return the same for programs; numbers are exact decimals or fractions as text."""
        return {
            "releases": [_release(number, plan) for number, plan in enumerate(self.plan.releases)],
            "charge": {"epsilon": decimal_text(self.plan.epsilon), "delta": _small(self.plan.delta)},
            "epsilon_left": decimal_text(self.left),
            "stages": [stage.sql for stage in self.stages],
            "post_processing": self.compiled.sql,
        }

    def json_text(self) -> str:
        """Return `as_dict` as JSON text."""
        return json.dumps(self.as_dict(), indent=2)

    def text(self) -> str:
        """Return the same for people."""
        lines: list[str] = []
        for number, plan in enumerate(self.plan.releases):
            lines += _release_text(number, plan)
        lines.append(f"charge: epsilon {decimal_text(self.plan.epsilon)}"
                     + (f", delta {_small(self.plan.delta)}" if self.plan.delta else "")
                     + f" (nothing, if it is answered already); {decimal_text(self.left)} left")  # fmt: skip
        lines += [f"stage {i + 1}: {stage.sql}" for i, stage in enumerate(self.stages)]
        lines.append(f"post-processing: {self.compiled.sql}")
        return "\n".join(lines)


def _small(value: Fraction) -> str:
    return f"{float(value):.6g}"


def number_text(value: Fraction) -> str:
    """Return an exact decimal where it is short, else a rounded one."""
    exact = decimal_text(value)
    return exact if Fraction(exact) == value and len(exact) <= 15 else f"{float(value):.6g}"


def _release(number: int, plan: ReleasePlan) -> dict[str, object]:
    bounding = plan.bounding
    return {
        "name": f"r{number}",
        "table": plan.release.table.name,
        "neighbours": "replace-one" if bounding.replace_one else "add-remove",
        "rows_per_unit": bounding.rows,
        "groups_per_unit": bounding.groups,
        "groups": None if plan.groups is None else len(plan.groups),
        "threshold": plan.tau,
        "delta": _small(plan.delta),
        "measures": [_measure(plan, index) for index in range(len(plan.vectors))],
        "outputs": [
            {"name": call.function, "expected": _expected(plan, i)}
            for i, call in enumerate(plan.release.aggregates)
        ],
        "backend_sql": [query.sql for query in plan.queries(tuple(range(len(plan.vectors))))],
    }


def _measure(plan: ReleasePlan, index: int) -> dict[str, object]:
    vector = plan.vectors[index]
    step = Fraction(1) if vector.lattice is None else vector.lattice.step
    scale = plan.scale(index)
    return {
        "measure": _SAID[vector.kind],
        "coordinates": vector.size,
        "lattice": str(step),
        "sensitivity": number_text(vector.sensitivity * step),
        "scale": number_text(scale * step),
        "variance": number_text(2 * (scale * step) ** 2),
        "plus_minus_95": number_text(half_width(scale, Fraction(1, 20)) * step),
        "epsilon": decimal_text(plan.epsilons[index]),
    }


def _deviation(plan: ReleasePlan, formula: Linear) -> float:
    """Return the standard deviation of a linear formula's noise."""
    return math.sqrt(
        sum(2 * float(weight * plan.scale(plan.vector_of(index))) ** 2 for index, weight in formula.terms)
    )


def _expected(plan: ReleasePlan, index: int) -> str:
    """Return the expected ± at 95 % of an aggregate: a figure, or a formula in the number of rows n."""
    formula = plan.formulas[index]
    if isinstance(formula, Linear):
        if len(formula.terms) == 1:
            coordinate, weight = formula.terms[0]
            half = half_width(plan.scale(plan.vector_of(coordinate)), Fraction(1, 20))
            return f"± {number_text(abs(weight) * half)}"
        return f"± {1.96 * _deviation(plan, formula):.6g}"
    if isinstance(formula, Average):
        reach = float(formula.highest - formula.lowest) / 2
        worst = math.hypot(_deviation(plan, formula.difference), reach * _deviation(plan, formula.count))
        return f"± {1.96 * worst:.6g} / n at most"
    assert isinstance(formula, Variance)
    unit = float(formula.step**2) / 4
    squares = _deviation(plan, formula.moment) / 2
    spread = 2 * formula.width * _deviation(plan, formula.difference)
    return f"± {1.96 * unit * math.hypot(squares, spread):.6g} / n at most (of the variance)"


def _release_text(number: int, plan: ReleasePlan) -> list[str]:
    bounding, release = plan.bounding, plan.release
    lines = [f'release r{number} from "{release.table.name}"']
    if bounding.per_row:
        lines.append("  one row per person, held by the database")
    else:
        lines.append(
            f"  at most {bounding.rows} rows of a person in a group, {bounding.groups} groups of a person"
        )
    if plan.groups is None:
        lines.append(
            f"  groups: those whose noisy count of people reaches {plan.tau} (delta {_small(plan.delta)})"
        )
    else:
        lines.append(f"  groups: {len(plan.groups)}, declared")
    for index in range(len(plan.vectors)):
        shown = _measure(plan, index)
        lines.append(
            f"  {shown['measure']} ({shown['coordinates']}): sensitivity {shown['sensitivity']}, Laplace scale "
            f"{shown['scale']}, variance {shown['variance']}, ± {shown['plus_minus_95']} at 95 %, "
            f"epsilon {shown['epsilon']}"
        )
    for index, call in enumerate(release.aggregates):
        lines.append(f"  {call.function}: expected {_expected(plan, index)} at 95 %")
    lines += [f"  backend: {query.sql}" for query in plan.queries(tuple(range(len(plan.vectors))))]
    return lines
