"""What an owner's Spark has to be like before it is served, as far as a client can see it.

House rule: what cannot be seen is said to be unseen. Nothing here protects an answer (soundness.md 4.4 and 6).
"""

from __future__ import annotations

from .deployment import Finding
from .spark_connection import SparkConnection
from .spark_target import SparkTarget

__all__ = ["verify"]


def verify(connection: SparkConnection, target: SparkTarget) -> list[Finding]:
    """Return what is wrong with a server, errors first."""
    return []
