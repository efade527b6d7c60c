"""`python -m dpsql.tests.mutants [FILE …]`: run the mutants of files that carry a claim; all of them unless some are named.

--changed    those of files that differ from the upstream main, and none where there is nothing to compare with
--minutes N  end after so many minutes of processor, and say how many were not reached
--each N     seconds of tests for one mutant (30), as they take without a fault
--only TEXT  those alone whose name has this text
--share P    P percent of them, chosen evenly over all files by their names: what share dies is that of all, nearly
--again      run survivors again, but for those that are no other program
--open       run nothing: list survivors without a reason as open, which counts against the tests
--table      run nothing: write the table of soundness.md from what was found, and from the list

Exit code 1: a mutant survived that `survivors.toml` gives no reason for.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from dpsql.tests.mutants.claim_bearing import CLAIM_BEARING
from dpsql.tests.mutants.derive import Mutant, derive
from dpsql.tests.mutants.run import Run, changed_since_main, is_in_share, run_file
from dpsql.tests.mutants.store import Results, list_open, survivors
from dpsql.tests.mutants.table import write_table

_LIBRARIES = ("duckdb", "hypothesis", "numpy", "psycopg", "pytest", "scipy.stats", "sqlglot")
"""What every fork needs is imported once."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dpsql.tests.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="as plan/planner.py")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--each", type=float, default=30.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--share", type=float, default=100.0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    results = Results()
    if asked.open:
        list_open(results)
    if asked.table:
        write_table(results)
    if asked.open or asked.table:
        return 0
    if unknown := [file for file in asked.files if file not in CLAIM_BEARING]:
        parser.error(f"not among the files that carry a claim: {', '.join(unknown)}")
    todo = (
        changed_since_main()
        if asked.changed
        else {file: derive(file) for file in asked.files or CLAIM_BEARING}
    )
    todo = {
        path: [one for one in mutants if asked.only in one.name and is_in_share(one, asked.share)]
        for path, mutants in todo.items()
    }
    for library in _LIBRARIES if todo else ():
        import_module(library)
    run = Run(results, asked.each, again=asked.again)
    listed = survivors()
    without_reason: list[Mutant] = []
    not_reached = done = 0
    for number, (path, mutants) in enumerate(todo.items()):
        if asked.minutes:  # each file has its part of what is left
            run.most = run.used + max(0.0, 60 * asked.minutes - run.used) / (len(todo) - number)
        ran = run_file(path, mutants, run)
        done, not_reached = done + ran.done, not_reached + ran.not_reached
        without_reason += [mutant for mutant in ran.survived if mutant.key not in listed.get(path, {})]
    for mutant in without_reason:
        print(f"survived without a reason: {mutant.path}:{mutant.lines.start} {mutant.key}")
    print(f"mutants: {done} run, {not_reached} not reached, {len(without_reason)} survived without a reason")
    return int(bool(without_reason))


if __name__ == "__main__":
    sys.exit(main())
