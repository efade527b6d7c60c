"""Error bars as plotly and Vega-Lite draw them, of what dpsql answered: run by `make tools`, over the demo.

Prints a line for each check: ok or failed, its name, and what came. The pictures are written into the folder of the
third argument; those of the manual are such ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair
import pandas
import plotly.graph_objects
import psycopg

PORT, WORD, FOLDER = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
ASKED = (
    "SELECT date_trunc('month', loaned_on) AS month, COUNT(*) AS n, dp_low(COUNT(*)) AS n_low, dp_high(COUNT(*)) AS n_high, "
    "dp_bar(COUNT(*)) AS half FROM loan GROUP BY 1 HAVING date_trunc('month', loaned_on) IS NOT NULL ORDER BY 1"
)


def read() -> pandas.DataFrame:
    with psycopg.connect(
        f"host=127.0.0.1 port={PORT} user=analyst dbname=campus", password=WORD, autocommit=True
    ) as connection:
        cursor = connection.execute(ASKED)
        names = [one.name for one in cursor.description or ()]
        return pandas.DataFrame(cursor.fetchall(), columns=names)


def by_plotly(frame: pandas.DataFrame) -> str:
    bars = plotly.graph_objects.Bar(x=frame.month, y=frame.n, error_y={"type": "data", "array": frame.half})
    figure = plotly.graph_objects.Figure(bars)
    figure.update_layout(
        width=640, height=260, margin={"l": 40, "r": 10, "t": 10, "b": 30}, template="simple_white"
    )
    path = FOLDER / "plotly-bars.png"
    figure.write_image(path)
    return drawn(path)


def by_vega(frame: pandas.DataFrame) -> str:
    base = altair.Chart(frame).encode(x=altair.X("month:T", title=None))
    band = base.mark_errorband().encode(y=altair.Y("n_low:Q", title="loans"), y2="n_high:Q")
    chart = (band + base.mark_line(point=True).encode(y="n:Q")).properties(width=560, height=200)
    path = FOLDER / "vega-band.png"
    chart.save(path)
    return drawn(path)


def drawn(path: Path) -> str:
    """Return how large a picture is. Raises AssertionError: it is none, or an empty one."""
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG"), content[:8]
    assert len(content) > 5_000, len(content)
    return f"{len(content)} bytes"


def check(name: str, draw: Callable[[Any], str], frame: pandas.DataFrame) -> None:
    try:
        print("ok", name, draw(frame), sep="\t", flush=True)
    except Exception as error:  # noqa: BLE001  # each tool has its own
        print(
            "failed", name, f"{type(error).__name__} {error}".replace("\n", " ")[:400], sep="\t", flush=True
        )


answered = read()
check("plotly error bars", by_plotly, answered)
check("vega band", by_vega, answered)
