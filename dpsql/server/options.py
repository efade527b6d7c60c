"""What the owner decides about the server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Options", "address_of", "is_loopback"]

_LEAST_STRANGERS = 32
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Options:
    """Where and how to listen; times in seconds.

    `certificate` and `key`: PEM files, given together; without them nothing is encrypted. `write_seconds`: how long
    a client may leave unread what it is sent. `probe_seconds`: between two looks at the ledger. `metrics`: the address
    on which counts are served to Prometheus; None for none. `metrics_token`: the file of the token that it asks for.
    `witness`: a file, or `witness_command`, a program with its arguments, that is told what the ledgers have come to.
    `trusted_proxies`: connections from there begin with the PROXY protocol, version 2.
    """

    host: str = "127.0.0.1"
    port: int = 5433
    certificate: Path | None = None
    key: Path | None = None
    max_connections: int = 100
    authentication_seconds: float = 10.0
    idle_seconds: float = 3600.0
    write_seconds: float = 120.0
    grace_seconds: float = 10.0
    probe_seconds: float = 10.0
    metrics: tuple[str, int] | None = None
    metrics_token: Path | None = None
    trusted_proxies: tuple[Network, ...] = ()
    witness: Path | None = None
    witness_command: tuple[str, ...] = ()

    @property
    def max_strangers(self) -> int:
        """How many connections without a login there may be: of all, and half of that of one address."""
        return max(2 * self.max_connections, _LEAST_STRANGERS)

    def trusts(self, peer: str) -> bool:
        """Return whether an address is a proxy's that is believed whom it speaks for."""
        address = address_of(peer)
        return address is not None and any(address in network for network in self.trusted_proxies)

    def max_per_analyst(self, analysts: int) -> int:
        """How many connections one of so many analysts may have: with others, half of all."""
        return self.max_connections if analysts == 1 else (self.max_connections + 1) // 2


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address without its zone; None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Return whether an address, or the name localhost, cannot be reached from another machine."""
    address = address_of(host)
    return host == "localhost" if address is None else address.is_loopback
