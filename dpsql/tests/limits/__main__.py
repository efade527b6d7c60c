"""The job of limits, as `make limits` runs it: `python -m dpsql.tests.limits [WORDS …]`.

Every hostile statement (`hostile.py`) runs under every limit on two databases that differ in one person's rows, each in a
process of its own. Both must end alike, with the rows that are sent and the memory that dpsql takes bounded; what
ends differently is told, and the exit code is 1. WORDS: of limits and statements, to ask these alone.

House rules:

1. A limit is far above what a statement takes that does not grow, and far below what one takes that does: no clock and
   no noise of the machine decides. What runs under a clock takes seconds, or days.
2. What is known to differ (`KNOWN`) must differ: what was mended is taken off the list.
3. The job has power: a planted fault (`FAULTS`) that lets something grow must be seen.
4. Scarce limits, below what an engine's own operators take of the owner's rows, are the residue of soundness.md 6: what
   differs there is printed, and does not fail, but for statements that are `FLAT`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import duckdb

from ...backends import DuckDBBackend
from ..support.postgres_server import PostgresServer, find_servers
from .apart import ANSWERED, Case, End, Rewrite, begin, wait_for
from .hostile import STATEMENTS, rows_of, schema_of

MIB = 2**20
SENT, PEAK = MIB, 64 * MIB
"""Most bytes by which one person may move what an engine sends, and the memory that dpsql takes outside of it."""
SCARCE = "; scarce: the engine's own operators decide"
ENDS = {ANSWERED, "58V01", "57014"}


KNOWN = {
    "40 keys of many texts": "each row of a person becomes a megabyte at most (soundness.md 6)",
}
"""Statements that differ, under one limit at least, and why."""
FLAT = {
    "MODE", "rows above R", "rows by a declared key", "medians", "many fractions", "variances", "huge numbers",
    "rows per person",
}  # fmt: skip
"""Statements of which an engine holds nothing that grows with one person's rows: they end alike under scarce limits too."""


@dataclass(frozen=True)
class Limit:
    """A limit on an engine; `case`: how a statement is asked under it, in one of the two databases."""

    name: str
    engine: str
    case: Callable[[str, bool], Case]
    is_scarce: bool = False


@dataclass(frozen=True)
class Pair:
    """How a statement ended with the hostile person there, and without."""

    limit: Limit
    statement: str
    here: End
    there: End

    @property
    def wrong(self) -> str:
        """What must not be under any limit, in words, or nothing."""
        ends = (self.here, self.there)
        found = [one.wrong for one in ends if one.wrong]
        found += ["charges differ"] if self.here.charge != self.there.charge else []
        return "; ".join(
            dict.fromkeys(found + [f"ends in {one.kind}" for one in ends if one.kind not in ENDS])
        )

    @property
    def difference(self) -> str:
        """By what the two differ more than they may, in words, or nothing."""
        here, there = self.here, self.there
        found = [] if here.kind == there.kind else ["ends differ"]
        if here.sent - there.sent > SENT:
            found.append(f"{(here.sent - there.sent) / MIB:.0f} MiB more sent")
        if self.limit.engine == "postgres" and here.peak - there.peak > PEAK:
            found.append(f"{(here.peak - there.peak) / MIB:.0f} MiB more of memory")
        return "; ".join(found)

    def line(self) -> str:
        """Return a line of the table."""
        parts = [f"{self.limit.engine:8} {self.limit.name:33} {self.statement:25}"]
        for one in (self.here, self.there):
            parts.append(
                f"{one.kind:8} {one.seconds:5.1f} s {one.sent / 1024:6.0f} kB {one.peak / MIB:4.0f} MiB"
            )
        known = " (known)" if self.statement in KNOWN else ""
        return " | ".join((*parts, self.wrong or (self.difference and self.difference + known)))


# --- the engines --------------------------------------------------------------------------------------------


def duckdb_limits(folder: Path) -> Iterator[Limit]:
    """Make the two files, and yield the limits of DuckDB."""
    files = {is_there: folder / f"people-{is_there}.duckdb" for is_there in (True, False)}
    for is_there, file in files.items():
        with duckdb.connect(str(file)) as connection:
            connection.execute(schema_of("duckdb"))
            connection.execute(rows_of("duckdb", is_there=is_there))

    def case(memory: str = "", spill: str = "", **more: int) -> Callable[[str, bool], Case]:
        def made(sql: str, is_there: bool) -> Case:
            def opened() -> DuckDBBackend:
                connection = duckdb.connect(str(files[is_there]), read_only=True)
                connection.execute(f"SET memory_limit = '{memory}'")
                connection.execute(
                    f"SET temp_directory = '{folder / f'spilled-{is_there}' if spill else ''}'"
                )
                if spill:
                    connection.execute(f"SET max_temp_directory_size = '{spill}'")
                return DuckDBBackend.over(connection)

            return Case(sql, f"duckdb:{files[is_there]}", opened if memory else None, **more)

        return made

    yield Limit("memory 384 MiB, no files", "duckdb", case("384MiB"))
    yield Limit("memory 128 MiB, files 256 MiB", "duckdb", case("128MiB", "256MiB"))
    yield Limit("ulimit -v 1 GiB", "duckdb", case(address_space=1024 * MIB, file_size=64 * MIB))
    yield Limit("memory 16 MiB, no files", "duckdb", case("16MiB"), is_scarce=True)


def postgres_limits(stack: ExitStack) -> Iterator[Limit]:
    """Start a server with the two databases, and yield the limits of Postgres."""
    settings = {"autovacuum": "off", "shared_buffers": "32MB", "jit": "off"}
    server = stack.enter_context(PostgresServer(find_servers()[-1], settings=settings))
    databases = {is_there: server.create_database() for is_there in (True, False)}
    for is_there, database in databases.items():
        with server.admin(database) as owner:
            owner.execute(schema_of("postgres").encode())
            owner.execute(rows_of("postgres", is_there=is_there).encode())
            owner.execute("VACUUM ANALYZE")
        for role in ("usual", "small", "scarce"):
            server.create_reader(database, role)
    with server.admin() as owner:
        for role, files in (("small", "256MB"), ("scarce", "4MB")):
            owner.execute(f"ALTER ROLE {role} SET work_mem = '64kB'".encode())
            owner.execute(f"ALTER ROLE {role} SET temp_file_limit = '{files}'".encode())

    def case(role: str, **more: int) -> Callable[[str, bool], Case]:
        return lambda sql, is_there: Case(sql, server.url(databases[is_there], role), **more)

    yield Limit(
        "1 GB, 60 s, ulimit -v 128 MiB", "postgres", case("usual", address_space=128 * MIB, seconds=60)
    )
    server.address_space = 512 * MIB
    server.restart()
    yield Limit("work_mem 64 kB, files 256 MB, -v", "postgres", case("small"))
    yield Limit("work_mem 64 kB, files 4 MB, -v", "postgres", case("scarce"), is_scarce=True)


# --- the job ------------------------------------------------------------------------------------------------

Fault = tuple[str, str, int, Rewrite]
FAULTS: dict[str, Fault] = {
    "a join's sources are not cut": (
        "postgres, 1 GB", "pairs in order", 5, lambda sql: re.sub(r"AS ranked WHERE rn <= \d+", "AS ranked", sql)),
    "groups of a person are not cut": (
        "duckdb, memory 384 MiB", "found keys", 60, lambda sql: re.sub(r" ANTI JOIN above ON p\.u = above\.u", "", sql)),
    "texts are not cut": (
        "duckdb, ulimit -v", "letters of 30 texts", 60, lambda sql: re.sub(r"\b1000\b", "1000000000", sql)),
}  # fmt: skip
"""Name -> how a limit's title begins; the statement; seconds until it is stopped; what is planted into its SQL."""


def asked(limit: Limit, statement: str, seconds: int | None = None, rewrite: Rewrite | None = None) -> Pair:
    """Ask a statement of both databases at once."""
    cases = [limit.case(STATEMENTS[statement], is_there) for is_there in (True, False)]
    running = [begin(replace(case, seconds=seconds or case.seconds, rewrite=rewrite)) for case in cases]
    here, there = [wait_for(one) for one in running]
    return Pair(limit, statement, here, there)


def main(words: list[str]) -> int:
    """Run the job and return its exit code."""
    failures: list[str] = []
    differing: set[str] = set()
    seen: set[str] = set()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for limit in chain(duckdb_limits(folder), postgres_limits(stack)):
            title = f"{limit.engine}, {limit.name}"
            print(f"{title}: with the hostile person | without{SCARCE * limit.is_scarce}")
            for statement in STATEMENTS:
                if not all(word in f"{limit.engine} {limit.name} {statement}" for word in words):
                    continue
                pair = asked(limit, statement)
                print(pair.line(), flush=True)
                if pair.difference and not limit.is_scarce:
                    differing.add(statement)
                is_held = statement in FLAT if limit.is_scarce else statement not in KNOWN
                if pair.wrong or (pair.difference and is_held):
                    failures.append(pair.line())
            for name, (start, *planted) in FAULTS.items():
                if title.startswith(start) and not words:
                    pair = asked(limit, *planted)
                    print(pair.line(), f"planted: {name}", flush=True)
                    seen.update([name] if pair.difference else [])
    if not words:
        failures += [f"not seen: {name}" for name in FAULTS.keys() - seen]
        failures += [f"mended, take it off the list: {name}" for name in KNOWN.keys() - differing]
    print(*failures, f"{len(failures)} failures", sep="\n")
    return min(len(failures), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
