"""The studio on the demo: how long after a key the price is there, over HTTP, for statements typed letter by letter."""

from __future__ import annotations

import http.client
import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import closing

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size
from dpsql.engine.dataset import Dataset
from dpsql.studio.desk import Desk
from dpsql.studio.server import StudioServer

__all__ = ["measure"]

_TYPED = (
    "SELECT major, COUNT(*) AS n, AVG(gpa) AS mean FROM student GROUP BY major ORDER BY n DESC",
    "SELECT branch, SUM(fee) AS fees FROM loan WHERE days_out > 30 GROUP BY branch",
    "SELECT s.major, COUNT(*) FROM loan AS l JOIN student AS s ON s.id = l.student_id GROUP BY s.major",
    "SELECT AVG(n) FROM (SELECT student_id, COUNT(*) AS n FROM enrolment GROUP BY student_id) AS t",
    "SELECT semester, MEDIAN(grade) FROM enrolment WHERE course_id < 40 GROUP BY semester",
    "SELECT enrolled, gpa FROM studnet",
)
_SETTLED = 20
"""Milliseconds that the page waits for another key."""


def measure(size: Size) -> Iterator[Figure]:
    """Yield the 95th percentile and the median, with what the page waits before it asks."""
    taken, processor = list[float](), list[float]()
    with closing(Dataset.open(make_campus(size))) as dataset, closing(Desk(dataset, "ada")) as desk:
        server = StudioServer(0, desk)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
            headers = _headers(server, connection)
            for text in _TYPED:
                for end in range(1, len(text) + 1):
                    began, worked = time.perf_counter(), time.process_time()
                    connection.request("POST", "/api/price", json.dumps({"text": text[:end]}), headers)
                    connection.getresponse().read()
                    taken.append((time.perf_counter() - began) * 1000 + _SETTLED)
                    processor.append((time.process_time() - worked) * 1000 + _SETTLED)
            connection.close()
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
    where = f"{len(taken)} keys, {_SETTLED} ms of each the page's own wait"
    yield Figure("studio: price after a key, p95, of processor", _high(processor), 100, "ms", where)
    yield Figure(
        "studio: price after a key, p95, by the clock", _high(taken), 100, "ms", "on a machine without others"
    )
    yield Figure("studio: price after a key, median, by the clock", statistics.median(taken), None, "ms")


def _high(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def _headers(server: StudioServer, connection: http.client.HTTPConnection) -> dict[str, str]:
    connection.request("GET", server.door.link.partition(str(server.server_port))[2])
    reply = connection.getresponse()
    reply.read()
    return {
        "Cookie": (reply.getheader("Set-Cookie") or "").partition(";")[0],
        "Origin": f"http://127.0.0.1:{server.server_port}",
        "Content-Type": "application/json",
        "X-Dpsql-Key": (reply.getheader("Location") or "").removeprefix("/#key="),
    }
