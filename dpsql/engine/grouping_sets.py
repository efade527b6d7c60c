"""What is said of ROLLUP, CUBE and GROUPING SETS: which rows are sums of which cells, and what does not add up.

Pure: from plans alone (soundness.md 1.18).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from ..plan.planner import Plan
from ..plan.privacy.keys import environment_of
from ..plan.privacy.rows import AddedUp, Release
from ..plan.release_plan import ReleasePlan
from ..relation.expressions import Field
from ..relation.intervals import facts_of
from ..relation.relations import all_parts
from ..relation.types import Kind

__all__ = ["cells_of", "keys_text", "set_notes", "sums_of"]


def sums_of(plan: Plan, release: Release) -> tuple[AddedUp, ...]:
    """Return the grouping sets that are sums of a release's cells, each once, in the statement's order."""
    nodes = (node for relation in (*plan.intermediates, plan.root) for node in all_parts(relation))
    return tuple(dict.fromkeys(n for n in nodes if isinstance(n, AddedUp) and n.release == release))


def cells_of(plan: ReleasePlan, node: AddedUp) -> int:
    """Return of how many of a release's cells one row of a grouping set is the sum, at most."""
    rows = Counter(tuple(group[i] for i in node.chosen) for group in plan.groups or ())
    return max(rows.values(), default=1)


def keys_text(node: AddedUp) -> str:
    """Return a grouping set as GROUP BY has it."""
    return f"({', '.join(node.release.columns[i].name or '…' for i in node.chosen)})"


def set_notes(plan: Plan) -> Iterator[str]:
    """Yield where rows of different grouping sets do not add up, and what is in no row of those that do."""
    apart = [release for release in plan.releases if release.release.share[0] != release.release.share[1]]
    added = {release.release: sums_of(plan, release.release) for release in plan.releases}
    for release in plan.releases:
        keys = [name for number, name in enumerate(release.release.names) if _is_open(release, number)]
        if any(len(node.chosen) < len(release.release.keys) for node in added[release.release]) and keys:
            named = " or ".join(dict.fromkeys(f'"{name}"' if name else "an expression" for name in keys))
            yield (
                f'totals of "{release.release.rows.shown_name}" leave out rows whose {named} is outside its declared '
                "values or bounds, if there are any; COUNT(*) without GROUP BY has them all"
            )
    if any(release.groups is None for release in apart):
        yield "groups that are found by threshold do not add up to the rows above them"
    if any(release.groups is not None and not added[release.release] and _once(release) for release in apart):
        yield "COUNT(DISTINCT …) of a group is no sum of those of finer groups: it is measured for each grouping set"
    if any(release.choices for release in apart):
        yield "a value that is chosen by its rank is chosen for each grouping set by itself"
    if sum(bool(added[release.release]) for release in apart) > 1:
        yield (
            "grouping sets that are measured apart add up each to a total of its own, unless their groups hold all "
            "rows"
        )


def _is_open(plan: ReleasePlan, number: int) -> bool:
    """Say whether a row may have a key that is none of a release's: neither its type nor the engine keeps it out."""
    if number >= len(plan.domains) or plan.domains[number] is None:
        return number < len(plan.domains)
    key, domain, rows = plan.release.keys[number], plan.domains[number], plan.release.rows
    assert domain is not None
    known = set(domain.values)
    if facts_of(key, environment_of(rows.columns, rows.predicate)).nullable and None not in known:
        return True
    if key.type.kind is Kind.BOOLEAN:
        return not known.issuperset((False, True))
    held = rows.columns[key.index].enforced if isinstance(key, Field) else None
    if held is None or held.lo is None or held.hi is None or not key.type.is_integer:
        return True
    least, most = math.ceil(held.lo), math.floor(held.hi)
    return most - least >= len(known) or not known.issuperset(range(least, most + 1))


def _once(release: ReleasePlan) -> bool:
    return any(call.distinct or call.function == "avg_direct" for call in release.release.aggregates)
