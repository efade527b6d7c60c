"""Connections without a login: how many there may be, and who goes when there are too many.

House rule: a newcomer takes the place of the one that has been silent for longest at the same address, or at the
address with the most of them. A right login takes a moment, so many silent connections hold nobody up, not even
those who come from where they come from.
"""

from __future__ import annotations

from typing import Protocol

from .throttle import network_of

__all__ = ["Stranger", "Strangers"]


class Stranger(Protocol):
    """A connection without a login."""

    @property
    def peer(self) -> str:
        """The address that it comes from."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether it has proved nothing yet: it neither waits for its turn nor for the answer to a failed login."""
        ...

    def stop(self) -> None:
        """Hang up."""
        ...


class Strangers:
    """At most `most` connections, and half of that from one address; of IPv6, from one /64."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._crowds: dict[str, dict[Stranger, None]] = {}

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

    def add(self, stranger: Stranger) -> None:
        """Count a connection, as the newest of its address."""
        self._crowds.setdefault(network_of(stranger.peer), {})[stranger] = None

    def remove(self, stranger: Stranger) -> None:
        """Count a connection no longer: it has logged in, or it has gone, or its address turned out to be another."""
        network = network_of(stranger.peer)
        crowd = self._crowds.get(network, {})
        crowd.pop(stranger, None)
        if not crowd:
            self._crowds.pop(network, None)
