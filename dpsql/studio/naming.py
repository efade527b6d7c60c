"""Where the analyst is: the dataset, what is left, and the names and values that a statement can be made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..budget import Status
from ..engine.answer import budget_text
from ..engine.offers import AGGREGATES, SETTINGS, Offers
from ..engine.session import Session
from ..engine.settings import decimal_text
from ..meant import KEYWORDS
from ..words import plain_text
from .body import Body
from .desk import Desk
from .door import Seat

__all__ = ["ENDPOINTS", "left_of"]

_MOST_VALUES = 100


def left_of(desk: Desk) -> dict[str, Any]:
    """Return what is left for an analyst, in words and as a share of the cap that is reached first."""
    status = desk.asking.budget()
    return {"said": budget_text(status, desk.dataset.policy.defaults.epsilon), "share": _share(status)}


def _share(status: Status) -> float:
    return min((scope.left / scope.cap if scope.cap else 0.0) for scope in status.scopes)


def about(seat: Seat, _: Body) -> Mapping[str, Any]:
    """Return whose page this is, and its limits."""
    desk, policy = seat.desk, seat.desk.dataset.policy
    return {
        "dataset": policy.path.stem,
        "datasets": [one.dataset.policy.path.stem for one in seat.desks],
        "analyst": desk.name,
        "is_owner": seat.is_owner,
        "epsilon": decimal_text(desk.settings.epsilon),
        "max_epsilon": decimal_text(policy.defaults.max_epsilon),
        "accounting": policy.privacy.accounting.value,
        "left": left_of(desk),
    }


def names(seat: Seat, _: Body) -> Mapping[str, Any]:
    """Return the tables with their columns and declared values, and the functions, words and settings."""
    return seat.desk.look(_names)


def _names(session: Session) -> dict[str, Any]:
    offers = Offers(session)
    return {
        "tables": [
            {
                "name": name,
                "said": offers.tables[name],
                "columns": [
                    {
                        "name": one.name,
                        "type": str(one.type),
                        "said": offers.columns[name][one.name],
                        "values": [plain_text(value) for value in (one.values or ())[:_MOST_VALUES]],
                    }
                    for one in table.named
                ],
            }
            for name, table in session.seen.everything.items()
        ],
        "aggregates": AGGREGATES,
        "functions": offers.functions,
        "settings": SETTINGS,
        "words": KEYWORDS,
    }


ENDPOINTS = {"about": about, "names": names}
