"""`/metrics`, as Prometheus reads it, on a port of its own.

House rule: it is the owner's, as the log is. Durations here are finer than what analysts see, whose replies wait for
the grid (soundness.md 3.6); so who asks dpsql must not read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from ..errors import DpsqlError
from .sockets import CannotListen
from .tally import SECONDS, Tally

if TYPE_CHECKING:
    from prometheus_client import Metric

    from ..budget import Status

__all__ = ["serve_metrics"]

_NANO = 10**9
_ATTO = 10**18


def serve_metrics(
    host: str, port: int, tally: Tally, connections: Callable[[], int], status: Callable[[], Status]
) -> tuple[int, Callable[[], None]]:
    """Serve from a thread of its own; return the port and what ends that.

    `connections`: how many analysts' there are; `status`: what is spent, which may raise DpsqlError. Raises
    CannotListen.
    """
    registry = CollectorRegistry()
    registry.register(_Counts(tally, connections, status))
    ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise CannotListen(host, port, error) from None

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, stop


class _Counts(Collector):
    def __init__(self, tally: Tally, connections: Callable[[], int], status: Callable[[], Status]) -> None:
        self._tally, self._connections, self._status = tally, connections, status

    def describe(self) -> Iterable[Metric]:
        """Name nothing beforehand: the ledger is not looked at before somebody asks."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return all counts as they are."""
        tally = self._tally
        answered = CounterMetricFamily(
            "dpsql_answered", "Queries that were answered, by how.", labels=["outcome"]
        )
        for outcome, number in sorted(tally.answered.items()):
            answered.add_metric([outcome], number)
        yield answered
        refused = CounterMetricFamily(
            "dpsql_refused", "Statements that ended in an error.", labels=["sqlstate"]
        )
        for code, number in sorted(tally.refused.items()):
            refused.add_metric([code], number)
        yield refused
        yield self._durations()
        yield GaugeMetricFamily("dpsql_connections", "Connections of analysts.", self._connections())
        yield from self._budget()

    def _durations(self) -> Metric:
        found = HistogramMetricFamily("dpsql_answer_seconds", "From a query to its answer.")
        below, buckets = 0, []
        for end, number in zip((*map(str, SECONDS), "+Inf"), self._tally.durations, strict=True):
            below += number
            buckets.append((end, below))
        found.add_metric([], buckets, self._tally.seconds)
        return found

    def _budget(self) -> Iterator[Metric]:
        """Return what is spent and the caps; nothing while the ledger cannot be read."""
        try:
            status = self._status()
        except DpsqlError:
            yield GaugeMetricFamily("dpsql_ledger_up", "Whether the ledger can be read.", 0)
            return
        yield GaugeMetricFamily("dpsql_ledger_up", "Whether the ledger can be read.", 1)
        if status.in_rho:
            unit, spent, cap, per = "rho", status.rho_spent_atto, status.rho_cap_atto, _ATTO
        else:
            unit, spent, cap, per = "epsilon", status.epsilon_spent_nano, status.epsilon_cap_nano, _NANO
        amounts = (
            (unit, spent, cap, per),
            ("delta", status.delta_spent_atto, status.delta_cap_atto, _ATTO),
        )
        for name, used, most, scale in amounts:
            yield GaugeMetricFamily(f"dpsql_{name}_spent", f"What is spent of {name}.", used / scale)
            yield GaugeMetricFamily(f"dpsql_{name}_cap", f"What may be spent of {name}.", most / scale)
            yield GaugeMetricFamily(
                f"dpsql_{name}_left", f"What is left of {name}.", max(0, most - used) / scale
            )
