"""The world of `random_events` as Parquet files: no key, no label, and each table in two files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb
from pyarrow import parquet

from ...backends.duckdb_files import DuckDBFiles, pin_verified
from ...backends.pinned_files import write_record
from ...policy import Policy, parse_policy
from .random_events import SCHEMA_OF_EVENTS, policy_text_of_events
from .random_joins import SCHEMA, policy_text

__all__ = [
    "KEYED_TABLES", "KEYS", "SCHEMA_OF_FILES", "SCHEMA_OF_KEYED_FILES", "TABLES", "RecordedFiles", "policies_of_files",
    "policies_of_keyed_files",
]  # fmt: skip

TABLES = ("person", "account", "note", "profile", "region", "rate", "tag")
"""Those that are files: without its key nothing leads from a booking to a person."""

SCHEMA_OF_FILES = re.sub(r",?\s*PRIMARY KEY( \(region, kind\))?| UNIQUE", "", SCHEMA_OF_EVENTS).replace(
    "level severity", "level VARCHAR"
)


def policies_of_files(folder: Path, *, replace_one: bool = False) -> tuple[Policy, Policy]:
    """Return two policies that say the same: of the files in `folder`, and of the same tables of a database."""
    text = policy_text_of_events(replace_one=replace_one)
    start, end = text.index("[tables.booking]"), text.index("[tables.note]")
    text = text[:start] + text[end:]
    own = '[tables.profile]\nunit = "person_id"\n'
    assert own in text
    text = text.replace(own, f"{own}max_rows = 2\n").replace(
        "level = {}", 'level = { values = ["low", "high"] }'
    )
    sourced = text.replace("duckdb:laws.duckdb", "duckdb:")
    for name in TABLES:
        sourced = sourced.replace(f"[tables.{name}]\n", f'[tables.{name}]\nsource = "{name}-*.parquet"\n')
    return parse_policy(sourced, folder / "laws.toml"), parse_policy(text, folder / "native.toml")


KEYS = {
    "person": ("id",),
    "account": ("no",),
    "booking": ("id",),
    "region": ("name",),
    "rate": ("region", "kind"),
}
"""What is asserted of the files in `policies_of_keyed_files`: the keys that an engine enforces in `random_joins`."""

KEYED_TABLES = ("person", "account", "booking", "note", "profile", "region", "rate", "tag")

SCHEMA_OF_KEYED_FILES = SCHEMA.replace("level severity", "level VARCHAR").replace(" UNIQUE", "")


def policies_of_keyed_files(folder: Path, *, replace_one: bool = False) -> tuple[Policy, Policy]:
    """Return two policies of the world of `random_joins`: over files with asserted keys, and over enforced ones.

    People of `profile` may have several rows there: its column of NULLs is no key.
    """
    text = policy_text(replace_one=replace_one, rows=3, groups=2, epsilon="1")
    own = '[tables.profile]\nunit = { column = "person_id", references = "person.id" }\n'
    assert own in text
    text = text.replace(own, f"{own}max_rows = 2\n").replace(
        "level = {}", 'level = { values = ["low", "high"] }'
    )
    sourced = text.replace("duckdb:laws.duckdb", "duckdb:")
    for name in KEYED_TABLES:
        key = f"key = {json.dumps(KEYS[name])}\n" if name in KEYS else ""
        sourced = sourced.replace(
            f"[tables.{name}]\n", f'[tables.{name}]\nsource = "{name}-*.parquet"\n{key}'
        )
    return parse_policy(sourced, folder / "laws.toml"), parse_policy(text, folder / "native.toml")


_ROW_GROUP = 8
"""Rows of a row group where Arrow writes, so that a few dozen rows have several."""


class RecordedFiles:
    """A connection's tables as the files of a policy: what an owner writes and records anew.

    Each table is two files, one as DuckDB writes them and one as Arrow does, of several row groups.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, policy: Policy, tables: tuple[str, ...] = TABLES
    ) -> None:
        """Write and record what there is. Raises PolicyError: the policy's own, and of files that cannot be recorded."""
        assert policy.files is not None
        self.connection, self.policy, self.files, self.tables = connection, policy, policy.files, tables
        self.refresh()
        self.backend = DuckDBFiles(policy.files)

    def refresh(self) -> None:
        """Write all rows into the files, none of which is as it was, and record these. Raises PolicyError."""
        for name in self.tables:
            self.write(name)
        write_record(self.files.record, pin_verified(self.files, self.policy.source))

    def write(self, name: str) -> None:
        """Write one table's files."""
        first, second = (f"SELECT * FROM {name} WHERE rowid % 2 = {part}" for part in (0, 1))
        place = self.files.folder / name
        self.connection.execute(f"COPY ({first}) TO '{place}-0.parquet'")
        rows = self.connection.sql(second).to_arrow_table()
        parquet.write_table(rows, f"{place}-1.parquet", row_group_size=_ROW_GROUP, write_page_index=True)
