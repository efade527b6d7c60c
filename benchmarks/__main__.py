"""Run the measurements: `python -m benchmarks [--quick] [name …]`. One table, one line a figure."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

from benchmarks import (
    accuracy,
    bars,
    bars_of_cases,
    command_line,
    dashboards,
    dbapi,
    files,
    five_years,
    fresh,
    hostile,
    keys_of_one,
    levers,
    long_texts,
    many_groups,
    many_tables,
    mechanisms,
    noise_speed,
    norms,
    patterns,
    periods,
    postgres,
    prepared,
    prepared_files,
    public,
    row_level,
    running_totals,
    square_root,
    stored_answers,
    studio,
    text_cut,
    text_to_plan,
    tpch,
    tpch_prepared,
    two_people,
    user_level,
    verifying,
    whole_groups,
    wire,
    workers,
    years,
)
from benchmarks.figure import Figure, Size

FIGURES = {
    "text_to_plan": text_to_plan.measure,
    "long_texts": long_texts.measure,
    "verifying": verifying.measure,
    "stored_answers": stored_answers.measure,
    "fresh": fresh.measure,
    "command_line": command_line.measure,
    "studio": studio.measure,
    "dbapi": dbapi.measure,
    "bars": bars.measure,
    "bars_of_cases": bars_of_cases.measure,
    "noise_speed": noise_speed.measure,
    "mechanisms": mechanisms.measure,
    "row_level": row_level.measure,
    "user_level": user_level.measure,
    "postgres": postgres.measure,
    "prepared": prepared.measure,
    "prepared_files": prepared_files.measure,
    "many_groups": many_groups.measure,
    "many_tables": many_tables.measure,
    "keys_of_one": keys_of_one.measure,
    "text_cut": text_cut.measure,
    "patterns": patterns.measure,
    "public": public.measure,
    "files": files.measure,
    "tpch": tpch.measure,
    "tpch_prepared": tpch_prepared.measure,
    "accuracy": accuracy.measure,
    "levers": levers.measure,
    "whole_groups": whole_groups.measure,
    "norms": norms.measure,
    "two_people": two_people.measure,
    "running_totals": running_totals.measure,
    "square_root": square_root.measure,
    "wire": wire.measure,
    "workers": workers.measure,
    "years": years.measure,
    "periods": periods.measure,
    "five_years": five_years.measure,
}
LONG = ("dashboards", "hostile", "spark")
"""They repeat others in one run, take as long as they are told to, or ask for a Spark: measured only where named."""


def main() -> int:
    """Run what is asked for and return 1 if a figure missed its limit (never with --quick)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data: shows that everything runs")
    parser.add_argument("--folder", type=Path, help="keep the data here and use what is there")
    named = f"of {', '.join(FIGURES)}; all of these without one; or {', '.join(LONG)}"
    parser.add_argument("names", nargs="*", metavar="name", help=named)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long hostile attacks")
    parser.add_argument(
        "--scale", type=float, action="append", help="of TPC-H's tables on spark; more than once"
    )
    parser.add_argument("--all", action="store_true", help="bars of every statement of the cases")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in (*FIGURES, *LONG)]
    if unknown:
        parser.error(f"there is no measurement {unknown[0]}")
    missed: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="dpsql-bench-") as made:
        folder = asked.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        size = Size.quick(folder) if asked.quick else Size.full(folder)
        measures = {
            **FIGURES,
            "bars_of_cases": partial(bars_of_cases.measure, is_whole=asked.all),
            "dashboards": dashboards.measure,
            "hostile": partial(hostile.measure, seconds=asked.seconds),
            "spark": _spark(asked.scale),
        }
        for name in asked.names or FIGURES:
            print(f"{name}: {import_module(f'benchmarks.{name}').__doc__}", flush=True)
            for figure in measures[name](size):
                print(f"  {figure}", flush=True)
                missed += [figure] if figure.is_missed else []
    print(f"{len(missed)} missed" + (": " + "; ".join(figure.name for figure in missed) if missed else ""))
    return 1 if missed and not asked.quick else 0


def _spark(scales: list[float] | None) -> Callable[[Size], Iterator[Figure]]:
    """Return the measurement on a Spark; its client is imported where it is asked for."""

    def measure(size: Size) -> Iterator[Figure]:
        from benchmarks import spark

        return spark.measure(size, scales)

    return measure


if __name__ == "__main__":
    sys.exit(main())
