"""`/metrics`, as Prometheus reads it, on a port of its own.

House rule: it is the owner's, as the log is. Durations here are finer than what analysts see, whose replies wait for
the grid (soundness.md 3.6); so who asks dpsql must not read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from ..errors import DpsqlError
from .log import SECONDS, Tally
from .sockets import CannotListen

if TYPE_CHECKING:
    from prometheus_client import Metric

    from .database import Database

__all__ = ["serve_metrics"]

_NANO = 10**9
_ATTO = 10**18


@contextmanager
def serve_metrics(
    host: str, port: int, databases: Sequence[Database], connections: Callable[[Database], int]
) -> Iterator[int]:
    """Serve from a thread of its own within the block, which is given the port.

    `connections`: how many analysts' there are. Raises CannotListen.
    """
    registry = CollectorRegistry(auto_describe=False)  # the ledger is not looked at before somebody asks
    registry.register(_Counts(databases, connections))
    ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise CannotListen(host, port, error) from None
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Counts(Collector):
    def __init__(self, databases: Sequence[Database], connections: Callable[[Database], int]) -> None:
        self._databases, self._connections = databases, connections

    def collect(self) -> Iterator[Metric]:
        """Return all counts as they are; each of its database."""
        answered = CounterMetricFamily(
            "dpsql_answered", "Queries that were answered, by how.", labels=["database", "outcome"]
        )
        refused = CounterMetricFamily(
            "dpsql_refused", "Statements that ended in an error.", labels=["database", "sqlstate"]
        )
        durations = HistogramMetricFamily(
            "dpsql_answer_seconds", "From a query to its answer.", labels=["database"]
        )
        gauges: dict[str, GaugeMetricFamily] = {}
        for database in self._databases:
            tally = database.tally
            for outcome, number in sorted(tally.answered.items()):
                answered.add_metric([database.name, outcome], number)
            for code, number in sorted(tally.refused.items()):
                refused.add_metric([database.name, code], number)
            durations.add_metric([database.name], _buckets(tally), tally.seconds)
            connections = self._connections(database)
            for name, said, value in (
                ("connections", "Connections of analysts.", connections),
                *_answers(database),
                *_budget(database),
            ):
                gauge = gauges.setdefault(name, GaugeMetricFamily(f"dpsql_{name}", said, labels=["database"]))
                gauge.add_metric([database.name], value)
        yield from (answered, refused, durations, *gauges.values())


def _buckets(tally: Tally) -> list[tuple[str, int]]:
    ends = (*map(str, SECONDS), "+Inf")
    return list(zip(ends, accumulate(tally.durations), strict=True))


def _answers(database: Database) -> Iterator[tuple[str, str, float]]:
    """Yield what the answers that are kept for clients take."""
    memory = database.sessions.memory
    yield "answers_memory_bytes", "What answers take in memory.", memory.held
    yield "answers_memory_most_bytes", "The most of it since the start.", memory.most
    yield "answers_files_bytes", "What answers take in files.", memory.in_files


def _budget(database: Database) -> Iterator[tuple[str, str, float]]:
    """Yield what is spent and the caps; that there is no telling while the ledger cannot be read."""
    up = "Whether the ledger can be read."
    try:
        status = database.status()
    except DpsqlError:
        yield "ledger_up", up, 0
        return
    yield "ledger_up", up, 1
    everybody = status.scopes[0]
    unit, per = ("rho", _ATTO) if status.in_rho else ("epsilon", _NANO)
    for name, used, most, scale in (
        (unit, everybody.spent, everybody.cap, per),
        ("delta", status.delta_spent_atto, status.delta_cap_atto, _ATTO),
    ):
        yield f"{name}_spent", f"What is spent of {name}.", used / scale
        yield f"{name}_cap", f"What may be spent of {name}.", most / scale
        yield f"{name}_left", f"What is left of {name}.", max(0, most - used) / scale
