"""What is said of ROLLUP, CUBE and GROUPING SETS: which rows are sums of which cells, and what does not add up.

Pure: from plans alone (soundness.md 1.18).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..plan.planner import Plan, ReleasePlan
from ..plan.privacy.rows import AddedUp, Release
from ..relation.relations import Relation
from ..relation.types import Kind

__all__ = ["cells_of", "keys_text", "set_notes", "sums_of"]


def sums_of(plan: Plan, release: Release) -> tuple[AddedUp, ...]:
    """Return the grouping sets that are sums of a release's cells, each once, in the statement's order."""
    found = (node for relation in (*plan.intermediates, plan.root) for node in _added_up(relation))
    return tuple(dict.fromkeys(node for node in found if node.release == release))


def _added_up(relation: Relation) -> Iterator[AddedUp]:
    if isinstance(relation, AddedUp):
        yield relation
    for below in relation.inputs:
        yield from _added_up(below)


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
        open_keys = any(key.type.kind is not Kind.BOOLEAN for key in release.release.keys)
        if any(len(node.chosen) < len(release.release.keys) for node in added[release.release]) and open_keys:
            yield (
                f'totals of "{release.release.rows.shown_name}" are the sums of the groups that are known beforehand: '
                "rows with any other key, if there are such, are in none of them"
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


def _once(release: ReleasePlan) -> bool:
    return any(call.distinct or call.function == "avg_direct" for call in release.release.aggregates)
