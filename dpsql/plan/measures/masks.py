"""Disjoint masks for filters: the truth assignments that a row can have (soundness.md 1.5)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ...relation.expressions import Expr
from .disjoint import are_disjoint
from .measurements import Mask

__all__ = ["mask_count", "masks_of"]


def _masks(filters: Sequence[Expr], *, rest: bool) -> list[Mask]:
    """Return disjoint masks whose unions give every filter (and, with `rest`, all rows)."""
    masks: list[Mask] = []
    for truth in itertools.product((True, False), repeat=len(filters)):
        if not any(truth) and not rest:
            continue
        chosen = [filters[i] for i in range(len(filters)) if truth[i]]
        if any(are_disjoint(a, b) for a, b in itertools.combinations(chosen, 2)):
            continue
        masks.append(Mask(tuple(zip(filters, truth, strict=True))))
    return masks


def mask_count(filters: Sequence[Expr], rest: bool) -> int:
    """Return how many masks there are, without building more than the limits."""
    return 10**6 if len(filters) > 12 and not _all_disjoint(filters) else len(masks_of(filters, rest))


def _all_disjoint(filters: Sequence[Expr]) -> bool:
    return all(are_disjoint(a, b) for a, b in itertools.combinations(filters, 2))


def masks_of(filters: Sequence[Expr], rest: bool) -> list[Mask]:
    if not _all_disjoint(filters) or len(filters) < 2:
        return _masks(filters, rest=rest)
    masks = [Mask(tuple((f, f is chosen) for f in filters)) for chosen in filters]
    return [*masks, Mask(tuple((f, False) for f in filters))] if rest else masks
