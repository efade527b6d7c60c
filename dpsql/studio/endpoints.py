"""Which endpoints there are: of every analyst, and of the owner alone.

A group is a module with `ENDPOINTS`. What an endpoint is sent is JSON that a page has made: `Body` reads it, and what
is not as it should be is a BadRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from . import naming, pricing, running, spending, trying
from .body import BadRequest, Body
from .door import Seat

__all__ = ["ANALYST", "OWNER", "BadRequest", "Body", "Endpoint", "endpoint_for"]

Endpoint = Callable[[Seat, Body], Mapping[str, Any]]

ANALYST: Mapping[str, Endpoint] = MappingProxyType(
    {**naming.ENDPOINTS, **pricing.ENDPOINTS, **running.ENDPOINTS}
)
"""Each analyst's, of what is theirs."""

OWNER: Mapping[str, Endpoint] = MappingProxyType({**spending.ENDPOINTS, **trying.ENDPOINTS})
"""Of who has the policy file in hand."""


def endpoint_for(seat: Seat, name: str) -> Endpoint | None:
    """Return the endpoint of a name that this seat has; None where there is none."""
    found = ANALYST.get(name)
    return OWNER.get(name) if found is None and seat.is_owner else found
