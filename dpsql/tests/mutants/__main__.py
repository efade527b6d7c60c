"""`python -m dpsql.tests.mutants [FILE …]`: run the mutants of files that carry a claim; all of them unless some are named.

--changed    those of files that differ from the upstream main, and none where there is nothing to compare with
--minutes N  end after so many minutes of processor, and say how many were not reached
--each N     seconds of tests for one mutant (30), as they take without a fault
--only TEXT  those alone whose name has this text
--sample N   N of all, drawn by --seed S (1): says what share is killed, with an interval for that of all
--again      run survivors again, but for those that are no other program
--open       run nothing: list survivors without a reason as open, which counts against the tests
--table      run nothing: write the table of soundness.md from what was found, and from the list; with --sample the
             line of that sample

Exit code 1: a mutant survived that `survivors.toml` gives no reason for.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from dpsql.tests.mutants.claim_bearing import CLAIM_BEARING
from dpsql.tests.mutants.derive import Mutant, derive
from dpsql.tests.mutants.run import Run, changed_since_main, drawn, run_file
from dpsql.tests.mutants.store import Results, list_open, survivors
from dpsql.tests.mutants.table import SAMPLE_HEAD, sample_of, write_sample, write_table

_LIBRARIES = ("duckdb", "hypothesis", "numpy", "psycopg", "pytest", "scipy.stats", "sqlglot")
"""What every fork needs is imported once."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dpsql.tests.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="as plan/planner.py")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--each", type=float, default=30.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    results = Results()
    if asked.sample and (asked.files or asked.changed or asked.only):
        parser.error("a sample is drawn of all mutants")
    sample = drawn(asked.sample, asked.seed) if asked.sample else None
    if asked.open:
        list_open(results)
    if asked.table and sample is None:
        write_table(results)
    elif asked.table and sample is not None:
        found = sample_of(sample, asked.seed, results)
        if found is None:
            parser.error("not all of the sample has been run")
        write_sample(found)
    if asked.open or asked.table:
        return 0
    if unknown := [file for file in asked.files if file not in CLAIM_BEARING]:
        parser.error(f"not among the files that carry a claim: {', '.join(unknown)}")
    if sample is not None:
        todo = sample
    else:
        every = (
            changed_since_main()
            if asked.changed
            else {file: derive(file) for file in asked.files or CLAIM_BEARING}
        )
        todo = {path: [one for one in mutants if asked.only in one.name] for path, mutants in every.items()}
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
    if sample is not None and (found := sample_of(sample, asked.seed, results)) is not None:
        print("\n".join((*SAMPLE_HEAD, str(found))))
    return int(bool(without_reason))


if __name__ == "__main__":
    sys.exit(main())
