"""Failed logins of one name from one address, and of one address, wait a few at a time; the others wait for them.

House rules:

1. A proof is looked at when its turn comes, and a failure keeps its turn until it is told: who does not wait for the
   answer, and opens the next connection instead, guesses no faster.
2. A turn is asked for once the proof is there. Who says nothing takes nobody's.
3. A turn is in the order of asking, whatever the name is and whether it exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from .throttle import network_of

__all__ = ["MOST_OF_ADDRESS", "MOST_OF_NAME", "Turns"]

MOST_OF_NAME = 4
"""Turns at once of one name from one address; with a delay of 5 seconds that is a guess in 1.25 seconds."""
MOST_OF_ADDRESS = 16
"""Turns at once from one address, of all names."""

_Key = tuple[str, str | None]


@dataclass(slots=True)
class _Gate:
    turns: asyncio.Semaphore
    users: int = field(default=0)


class Turns:
    """The turns that are taken and waited for; nothing is kept of an address where nobody waits."""

    def __init__(self) -> None:
        self._gates: dict[_Key, _Gate] = {}

    def __len__(self) -> int:
        """How many gates somebody stands at."""
        return len(self._gates)

    @asynccontextmanager
    async def turn(self, peer: str, user: str) -> AsyncIterator[None]:
        """Wait for a turn of `user` from `peer`, and have it until the block ends."""
        network = network_of(peer)
        async with self._pass((network, user), MOST_OF_NAME), self._pass((network, None), MOST_OF_ADDRESS):
            yield

    @asynccontextmanager
    async def _pass(self, key: _Key, most: int) -> AsyncIterator[None]:
        gate = self._gates.setdefault(key, _Gate(asyncio.Semaphore(most)))
        gate.users += 1
        try:
            async with gate.turns:
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                del self._gates[key]
