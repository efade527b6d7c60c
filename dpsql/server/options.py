"""What the owner decides about the server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Options", "is_loopback"]


@dataclass(frozen=True, slots=True)
class Options:
    """Where and how to listen; times in seconds.

    `certificate` and `key`: PEM files, given together; without them nothing is encrypted. `has_grid`: replies of
    charged statements wait for the grid (`grid`).
    """

    host: str = "127.0.0.1"
    port: int = 5433
    certificate: Path | None = None
    key: Path | None = None
    max_connections: int = 100
    authentication_seconds: float = 10.0
    idle_seconds: float = 3600.0
    grace_seconds: float = 10.0
    has_grid: bool = True


def is_loopback(host: str) -> bool:
    """Return whether an address, or the name localhost, cannot be reached from another machine."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"
