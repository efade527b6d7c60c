"""Clients without a login: how many there may be, how long a failed login waits, and whose turn it is to prove itself.

House rules:

1. A newcomer takes the place of the one that has been silent for longest at the same address, or at the address with
   the most of them. A right login takes a moment, so many silent connections hold nobody up, not even those who come
   from where they come from.
2. A delay depends on where an attempt comes from and when, never on why it failed: it tells nothing of who exists.
3. Only failures wait. A right login is late because of others where these are many of its own name and address.
4. Nothing is forgotten for a login that succeeds: one known password buys no guesses at another.
5. Memory is bounded, whatever number of addresses an attacker has; the count of all addresses together stays.
6. A proof is looked at when its turn comes, and a failure keeps its turn until it is told: who does not wait for the
   answer, and opens the next connection instead, guesses no faster.
7. A turn is asked for once the proof is there. Who says nothing takes nobody's.
8. A turn is in the order of asking, whatever the name is and whether it exists.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..cache import Cache
from .options import address_of

if TYPE_CHECKING:
    from .client import Client

__all__ = ["LONGEST", "MOST_OF_ADDRESS", "MOST_OF_NAME", "Strangers", "Throttle", "Turns"]


class Strangers:
    """At most `most` connections, and half of that from one address; of IPv6, from one /64."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._crowds: dict[str, dict[Client, None]] = {}

    def __len__(self) -> int:
        """How many there are."""
        return sum(map(len, self._crowds.values()))

    def make_room(self, peer: str) -> bool:
        """Have room for one more of an address; False where nobody is left who could go for it.

        Returns whether there is room. Who goes is told nothing.
        """
        crowd = self._crowds.get(network_of(peer), {})
        if len(crowd) < self._most // 2:
            if len(self) < self._most:
                return True
            crowd = max(self._crowds.values(), key=len)
        victim = next((one for one in crowd if one.is_idle), None)
        if victim is None:
            return False
        self.remove(victim)
        victim.stop()
        return True

    def add(self, stranger: Client) -> None:
        """Count a connection, as the newest of its address."""
        self._crowds.setdefault(network_of(stranger.peer), {})[stranger] = None

    def remove(self, stranger: Client) -> None:
        """Count a connection no longer: it has logged in, or it has gone, or its address turned out to be another."""
        network = network_of(stranger.peer)
        crowd = self._crowds.get(network, {})
        crowd.pop(stranger, None)
        if not crowd:
            self._crowds.pop(network, None)


LONGEST = 5.0
"""Seconds; the longest delay."""

_FIRST = 0.25
_MAX_NETWORKS = 4096
_IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class _Pace:
    """How a count of failures becomes a delay: `free` of them have none, and every `double` more double it.

    `forget`: failures forgotten a second; `most`: where the count ends.
    """

    free: int
    double: float
    forget: float
    most: int

    def delay(self, count: int) -> float:
        """Return seconds; `count`: the failures remembered, this one among them."""
        if count <= self.free:
            return 0.0
        return float(min(LONGEST, _FIRST * 2 ** ((count - self.free - 1) / self.double)))


_ONE_NETWORK = _Pace(free=3, double=1, forget=0.1, most=20)
_ALL_TOGETHER = _Pace(free=100, double=20, forget=1, most=300)


@dataclass(slots=True)
class _Count:
    """Failures remembered as of `at`."""

    failures: float = 0.0
    at: float = 0.0

    def add(self, pace: _Pace, now: float) -> float:
        """Count a failure and return its delay."""
        kept = max(0.0, self.failures - (now - self.at) * pace.forget)
        self.failures, self.at = min(kept + 1, pace.most), now
        return pace.delay(math.ceil(self.failures))


class Throttle:
    """Counts failed logins by address; IPv6 by the /64 that one customer has. Times are the event loop's."""

    def __init__(self) -> None:
        self._networks: Cache[_Count] = Cache(_MAX_NETWORKS)
        self._all = _Count()

    def __len__(self) -> int:
        """How many networks are remembered."""
        return len(self._networks)

    def fail(self, peer: str, now: float) -> float:
        """Count a failed login and return the seconds until it may be told."""
        network = network_of(peer)
        count = self._networks.get(network) or _Count(at=now)
        self._networks.put(network, count)
        return max(count.add(_ONE_NETWORK, now), self._all.add(_ALL_TOGETHER, now))


def network_of(peer: str) -> str:
    """Return who counts as one: an IPv4 address, or the /64 of an IPv6 one; anything else as it is."""
    address = address_of(peer)
    if address is None:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))


MOST_OF_NAME = 4
"""Turns at once of one name from one address; with a delay of 5 seconds that is a guess in 1.25 seconds."""
MOST_OF_ADDRESS = 16
"""Turns at once from one address, of all names."""

_Key = tuple[str, str | None]


@dataclass(slots=True)
class _Gate:
    turns: asyncio.Semaphore
    users: int = 0


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
