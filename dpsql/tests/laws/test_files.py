"""L1, L2 and L6 over Parquet files: the same integers as over tables of the same rows (soundness.md 1.27).

What holds of tables whose unit stands in the row (`test_event_tables`) then holds of files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.backends import Snapshot
from dpsql.backends.duckdb_files import DuckDBFiles
from dpsql.plan.planner import Plan
from dpsql.policy import Policy, build_catalog
from dpsql.tests.support.drawn_statements import statements
from dpsql.tests.support.length import tried
from dpsql.tests.support.random_events import event_databases
from dpsql.tests.support.random_files import SCHEMA_OF_FILES, RecordedFiles, policies_of_files
from dpsql.tests.support.random_joins import Database, load, row, units_of, without

from .measured import Measured, World, compared, fixed_intermediates, measure_release, world
from .test_neighbours import planned
from .test_neighbours_joined import FUZZ, HEAVY


@dataclass(repr=False)
class Files:
    """A world and its rows as files."""

    world: World
    policy: Policy
    recorded: RecordedFiles

    @property
    def backend(self) -> DuckDBFiles:
        return self.recorded.backend

    def write(self, database: Database, order: int = 0) -> None:
        """Put a database's rows into the tables and into the files, and record these."""
        rows = {name: content for name, content in database.tables.items() if name in self.recorded.tables}
        self.world.settle(load, Database(rows), order)
        self.recorded.refresh()


def measured(plan: Plan, snapshot: Snapshot) -> Measured:
    return [measure_release(one, snapshot, fixed_intermediates(plan)) for one in plan.releases]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    folder: Path = tmp_path_factory.mktemp("files")
    policy, native = policies_of_files(folder)
    with world(folder, policy=native, schema=SCHEMA_OF_FILES) as made:
        recorded = RecordedFiles(made.connection, policy)
        yield Files(made, policy, recorded)
        recorded.backend.close_idle()


def check(files: Files, sqls: list[str], database: Database, neighbours: list[Database]) -> int:
    """Hold files to what the tables give, and to the claim against all neighbours; return how many were answered."""
    plans = [plan for sql in sqls if (plan := planned(files.world, sql)) is not None and plan.releases]
    found: list[Measured] = []
    for order, one in enumerate((database, *neighbours) if plans else ()):
        files.write(one, order)
        with files.backend.snapshot() as of_files, files.world.backend.snapshot() as of_tables:
            for number, plan in enumerate(plans):
                here = measured(plan, of_files)
                assert here == measured(plan, of_tables)
                found.append(here)
                if order:
                    compared(plan, found[number], here, "")
    return len(plans)


@settings(FUZZ, max_examples=tried(2, 15))
@given(st.lists(statements("events"), min_size=2, max_size=4), event_databases())
def test_files_are_as_tables(files: Files, sqls: list[str], database: Database) -> None:
    check(files, sqls, database, [without(database, unit) for unit in units_of(database)[:1]])


ASKED = [
    "SELECT COUNT(*) FROM person",
    "SELECT city, COUNT(*), SUM(n), AVG(x) FROM note GROUP BY city",
    "SELECT COUNT(*) FROM person p JOIN note n ON n.person_id = p.id",
    "SELECT level, COUNT(DISTINCT person_id) FROM profile GROUP BY level",
    "SELECT opened, COUNT(*) FROM account GROUP BY opened",
    "SELECT MEDIAN(day), SUM(fine) FROM note",
    "SELECT COUNT(*) FROM note n JOIN tag t ON t.tag = n.tag",
    "SELECT COUNT(*) FROM (SELECT person_id, x, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY x) AS k FROM note) t WHERE k < 3",
]  # fmt: skip


def test_what_is_asked_most_is_answered_and_tight(files: Files) -> None:
    assert check(files, ASKED, HEAVY, [without(HEAVY, 1)]) == len(ASKED)


def test_wild_values_come_back_from_files_as_they_went(files: Files) -> None:
    wild = (
        *(row("note", 1, x=x, n="5", day=d, fine="99999999999999999999.999999999999999999") for x, d in (
            ("nan", "infinity"), ("inf", "-infinity"), ("-inf", "9999-12-31"), ("-0.0", "0044-03-15 (BC)"), ("5e-324", None),
        )),
    )  # fmt: skip
    database = Database({**HEAVY.tables, "note": (*HEAVY.tables["note"], *wild)})
    check(files, ASKED, database, [without(database, 1)])


def test_both_policies_make_one_plan(files: Files) -> None:
    """But for what the rows are read from, which plans rest on; and files prove nothing (soundness.md 1.16)."""
    with files.backend.snapshot() as snapshot:
        catalog = build_catalog(files.policy, snapshot.schema())
    enforced = files.world.catalog.tables
    assert catalog.tables == {name: replace(table, proved=None) for name, table in enforced.items()}
    assert not any({*table.grounds} & {*enforced[name].grounds} for name, table in catalog.tables.items())
