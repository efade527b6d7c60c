"""Makes the pictures of README and manual, with the code of the owner's report: `make pictures`.

The people are the demo's, who are invented; the noise is the real sampler's, from a source that repeats. A test holds
the pictures that are committed against what is made here.
"""

from __future__ import annotations

import tempfile
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import duckdb

import dpsql
from dpsql.cli.demo import make_folder
from dpsql.mechanisms import Laplace
from dpsql.studio.report import budget_chart, series_of
from dpsql.testing.injected_noise import SeededSource

from .manual_charts import alone, flow_chart, histogram_chart, line_chart, terminal_chart

__all__ = ["PICTURES", "pictures"]

PICTURES = Path(dpsql.__file__).parent / "docs" / "pictures"
_EPSILONS = ("0.01", "0.1", "1")
_MISSING = Fraction(1, 20)
_LESS = " WHERE id <> 7"


def pictures(database: Path) -> dict[str, str]:
    """Return the pictures by their files' names, of a demo's database."""
    with duckdb.connect(database, read_only=True) as demo:
        grades = demo.execute(
            "SELECT floor(gpa * 10) / 10 AS g, COUNT(*) FROM student WHERE major = 'History' GROUP BY g ORDER BY g"
        ).fetchall()
        loans = demo.execute("SELECT COUNT(*) FROM loan GROUP BY student_id").fetchall()
        totals = [
            demo.execute(f"SELECT (100 * SUM(gpa))::BIGINT FROM student{less}").fetchall()[0][0]
            for less in ("", _LESS)
        ]
    drawn = {
        "attack.svg": _attack(totals),
        "flow.svg": _flow(),
        "epsilon.svg": _histogram([float(key) for key, _ in grades], [count for _, count in grades]),
        "max-rows.svg": _max_rows([count for (count,) in loans]),
        "burn-down.svg": _burn_down(),
    }
    return {name: alone(svg) for name, svg in drawn.items()}


def _attack(hundredths: list[int]) -> str:
    """The attack and how it fails, at epsilon 0.1 each: a student moves a sum of GPAs by 4, which is 400 hundredths."""
    law = Laplace(400 / Fraction("0.1"))
    noisy = [total + int(one) for total, one in zip(hundredths, law.draw(2, SeededSource(11)), strict=True)]
    bar = round(law.half_width(_MISSING) / 100, -1)
    asked = [f"SELECT SUM(gpa) FROM student{less};" for less in ("", _LESS)]
    exact = [f"{sql:<48}{total / 100:>10.2f}" for sql, total in zip(asked, hundredths, strict=True)]
    private = [
        f"{sql:<48}{round(total / 100, -1):>10.0f} ± {bar:.0f}"
        for sql, total in zip(asked, noisy, strict=True)
    ]
    lost, kept = (hundredths[0] - hundredths[1]) / 100, round(noisy[0] / 100, -1) - round(noisy[1] / 100, -1)
    return terminal_chart(
        [
            ("Two harmless totals, from the database itself:", "said"),
            *((line, "command") for line in exact),
            (
                f"The difference is {lost:.2f}: the grade point average of student 7, to the last digit.",
                "lost",
            ),
            ("", "said"),
            ("The same two through dpsql:", "said"),
            *((line, "command") for line in private),
            (f"The difference is {kept:.0f}, where a GPA lies between 2 and 4: it is noise.", "kept"),
            ("", "said"),
            ("Each total is right to two parts in a thousand. Asked again it is the same, and free.", "said"),
        ],
        760,
        "an attack by two sums, and how it fails",
    )


def _flow() -> str:
    return flow_chart(
        [
            ("Postgres, DuckDB", "people's rows"),
            ("dpsql", "adds noise, keeps count"),
            ("psql", "BI tools, Python, notebooks"),
        ],
        [("exact sums", "rewritten SQL"), ("answer ± bar", "SQL")],
        [("policy.toml", "whose rows, bounds, budget"), ("ledger", "what is spent, and stored")],
        ["up", "down"],
    )


def _histogram(keys: list[float], counts: list[int]) -> str:
    source = SeededSource(7)
    panels = []
    for epsilon in _EPSILONS:
        noise = Laplace(1 / Fraction(epsilon)).draw(len(counts), source)
        panels.append(
            (f"epsilon {epsilon}", [count + int(one) for count, one in zip(counts, noise, strict=True)])
        )
    return histogram_chart(keys, counts, panels, 760)


def _max_rows(rows: list[int]) -> str:
    bounds = range(25, 101, 5)
    noise = [(bound, Laplace(bound / Fraction("0.1")).half_width(_MISSING)) for bound in bounds]
    cut = [(bound, sum(max(0, count - bound) for count in rows)) for bound in bounds]
    return line_chart(
        [("noise (± 95 %)", noise), ("left out", cut)],
        60,
        ("max_rows", "rows by which COUNT(*) FROM loan is off, at epsilon 0.1"),
        760,
        "noise and what is left out, by max_rows",
    )


def _burn_down() -> str:
    """Return a made-up quarter of two analysts."""
    first, cap, left = date(2026, 1, 5), 10.0, 10.0
    days = []
    for number in range(60):
        day = first + timedelta(number)
        spent = (
            {} if day.weekday() > 4 else {"ada": 0.1 * (number * 7 % 4 // 2), "ben": 0.1 * (number * 5 % 3)}
        )
        spent = {name: amount for name, amount in spent.items() if amount}
        left -= sum(spent.values())
        if spent:
            days.append((day, spent, left))
    today = first + timedelta(60)
    ends = today + timedelta(int(left * 60 / (cap - left)))
    return budget_chart(days, cap, today, ends, series_of(["ben", "ada"]), "epsilon", 760)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "demo"
        assert make_folder(made, fresh=False)
        PICTURES.mkdir(exist_ok=True)
        for name, svg in pictures(made / "campus.duckdb").items():
            (PICTURES / name).write_text(svg, "utf-8")
