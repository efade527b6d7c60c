"""Relations that are none by themselves: parts of a lateral join or a recursion, which people's rows never meet.

What reads the row around it, or the last round of a recursion, has a meaning inside its join alone. It is never read in
place by the owner's engine beside people's rows, never drawn first, and never printed for private rows.
"""

from __future__ import annotations

from ...errors import Position, Refusal
from ...relation.relations import Recursive, RecursiveRef, Relation, parts_of
from ...sql.attach import first_outer

__all__ = ["ReadsAround", "check_whole", "is_whole"]


class ReadsAround(Refusal):
    """People's rows meet what reads the row around a subquery, or a recursion's last round."""

    def __init__(self, position: Position | None) -> None:
        super().__init__(
            "people's rows cannot be compared with the row around this subquery", sqlstate="PV004", position=position,
            hint="aggregate the people's rows in a subquery of their own first, and use its result",
        )  # fmt: skip


def is_whole(relation: Relation) -> bool:
    """Say whether a relation has all that it reads: no reference to a row around, or to a recursion around, is left."""
    if first_outer(relation) is not None:
        return False
    numbers = [part.number for part in parts_of(relation) if isinstance(part, Recursive)]
    return all(part.number in numbers for part in parts_of(relation) if isinstance(part, RecursiveRef))


def check_whole(relation: Relation) -> None:
    """Check that a relation has all that it reads. Raises ReadsAround."""
    if not is_whole(relation):
        outer = first_outer(relation)
        raise ReadsAround(relation.position if outer is None else outer.position)
