"""What an owner's Spark has to be like before it is served, as far as a client can see it.

House rule: what cannot be seen is said to be unseen. Nothing here protects an answer: it keeps a mistake elsewhere from
becoming a write, and people other than analysts from the rows (soundness.md 4.4 and 6). What would make answers wrong,
another version or a setting that does not hold, is refused when a session is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import EngineFailure
from .backend import Finding, Severity
from .spark_connection import SparkConnection
from .spark_target import SparkTarget

__all__ = ["verify"]

_ADDRESS = "spark.connect.grpc.binding.address"
_NAMES = (
    _ADDRESS,
    "spark.eventLog.enabled",
    "spark.master",
    "spark.network.crypto.enabled",
    "spark.scheduler.mode",
    "spark.sql.extensions",
    "spark.ui.enabled",
)
_KNOWN_EXTENSIONS = frozenset({
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
})  # fmt: skip
_SHOWN = "statements, with what analysts wrote in them, and exact numbers of rows"
_UNSEEN = (
    "Spark tells nobody what its own credentials may do to the storage: give the server such as read the tables, and "
    "do nothing else; every client of it has them"
)


def verify(connection: SparkConnection, target: SparkTarget) -> list[Finding]:
    """Return what is wrong with a server, as warnings; the last one is of what cannot be seen. Raises EngineFailure."""
    found = connection.options(_NAMES)
    said = [*_door(found, target), *_inside(found), _UNSEEN]
    return [Finding(Severity.WARNING, sentence) for sentence in said]


def _door(found: dict[str, str], target: SparkTarget) -> Iterator[str]:
    if not _asks_token(target):
        yield (
            "the server asks for no token: whoever reaches its port can read the tables, and run programs on it; start "
            "it with spark.connect.authenticate.token"
        )
    if target.is_near and not target.uses_tls and found[_ADDRESS] not in ("127.0.0.1", "localhost", "::1"):
        yield (
            f"the server listens beyond this machine, and speaks no TLS; start it with {_ADDRESS} = 127.0.0.1"
        )


def _inside(found: dict[str, str]) -> Iterator[str]:
    is_spread = not found["spark.master"].startswith("local")
    if is_spread and found["spark.network.crypto.enabled"] != "true":
        yield (
            "the server's processes send each other rows unencrypted, unless their network sees to that; "
            "spark.network.crypto.enabled does"
        )
    if found["spark.scheduler.mode"].upper() != "FAIR":
        yield (
            "the server runs statements in the order in which they came, so that short ones wait for long ones; start "
            "it with spark.scheduler.mode = FAIR"
        )
    if found["spark.eventLog.enabled"] == "true":
        yield f"the server's event log keeps {_SHOWN}; let nobody read it who may not read the tables"
    if found["spark.ui.enabled"] != "false":
        yield f"the server's web pages show {_SHOWN}; start it with spark.ui.enabled = false"
    others = {name.strip() for name in found["spark.sql.extensions"].split(",")} - _KNOWN_EXTENSIONS - {""}
    if others:
        yield (
            f"the server has {len(others)} of spark.sql.extensions that dpsql is not tested with; one may change what "
            "a statement means"
        )


def _asks_token(target: SparkTarget) -> bool:
    """Say whether a client without a token is turned away. Raises EngineFailure: the token cannot be read."""
    if target.token() is None:
        return False  # it let us in
    try:
        SparkConnection(replace(target, has_token=False)).close()
    except EngineFailure:
        return True
    return False
