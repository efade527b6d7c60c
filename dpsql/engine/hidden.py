"""Tables that only views read have no name for analysts, in refusals either."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from ..errors import Refusal
from ..relation.catalog import Catalog

__all__ = ["without_hidden"]

_T = TypeVar("_T")
_SAID = "a table of a view"


def without_hidden(catalog: Catalog, action: Callable[[], _T]) -> _T:
    """Return what an action returns. Raises Refusal: the action's own, in which no hidden table is named."""
    hidden = [name for name, table in catalog.tables.items() if table.is_hidden and name not in catalog.views]
    if not hidden:
        return action()
    try:
        return action()
    except Refusal as refusal:
        names = "|".join(re.escape(name) for name in sorted(hidden, key=len, reverse=True))
        named = re.compile(rf'"(?:{names})"|(?<![\w"])(?:{names})(?![\w"])')
        if not named.search(f"{refusal.message}\n{refusal.hint or ''}"):
            raise
        told = Refusal(
            named.sub(_SAID, refusal.message), sqlstate=refusal.sqlstate, position=refusal.position,
            hint=None if refusal.hint is None or named.search(refusal.hint) else refusal.hint,
        )  # fmt: skip
    raise told
