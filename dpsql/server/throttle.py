"""How long a failed login waits for its answer: guessing passwords gets slow.

House rules:

1. A delay depends on where an attempt comes from and when, never on why it failed: it tells nothing of who exists.
2. Only failures wait here. A right login is late because of others where these are many of its own name and address
   (`turns`).
3. Nothing is forgotten for a login that succeeds: one known password buys no guesses at another.
4. Memory is bounded, whatever number of addresses an attacker has; the count of all addresses together stays.
"""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from dataclasses import dataclass

__all__ = ["LONGEST", "Throttle", "network_of"]

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
        self._networks: OrderedDict[str, _Count] = OrderedDict()
        self._all = _Count()

    def __len__(self) -> int:
        """How many networks are remembered."""
        return len(self._networks)

    def fail(self, peer: str, now: float) -> float:
        """Count a failed login and return the seconds until it may be told."""
        network = network_of(peer)
        count = self._networks.setdefault(network, _Count(at=now))
        self._networks.move_to_end(network)
        if len(self._networks) > _MAX_NETWORKS:
            self._networks.popitem(last=False)
        return max(count.add(_ONE_NETWORK, now), self._all.add(_ALL_TOGETHER, now))


def network_of(peer: str) -> str:
    """Return who counts as one: an IPv4 address, or the /64 of an IPv6 one; anything else as it is."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
