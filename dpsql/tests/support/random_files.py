"""The world of `random_events` as Parquet files: no key, no label, and each table in two files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb

from ...backends.duckdb_files import DuckDBFiles, pin_verified
from ...backends.pinned_files import write_record
from ...policy import Policy, parse_policy
from .random_events import SCHEMA_OF_EVENTS, policy_text_of_events
from .random_joins import SCHEMA, policy_text

__all__ = [
    "KEYED_TABLES", "KEYS", "SCHEMA_OF_FILES", "SCHEMA_OF_KEYED_FILES", "TABLES", "files_of", "policies_of_files",
    "policies_of_keyed_files", "write_files",
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


def write_files(
    connection: duckdb.DuckDBPyConnection, folder: Path, tables: tuple[str, ...] = TABLES
) -> None:
    """Write the tables' rows, each table in two files, and no file as it was."""
    for name in tables:
        for part in (0, 1):
            rows = f"SELECT * FROM {name} WHERE rowid % 2 = {part}"
            connection.execute(f"COPY ({rows}) TO '{folder}/{name}-{part}.parquet' (ROW_GROUP_SIZE 2048)")


def files_of(policy: Policy) -> DuckDBFiles:
    """Return the backend over a policy's files, which are recorded as they are."""
    files = policy.files
    assert files is not None
    write_record(files.record, pin_verified(files, policy.source))
    return DuckDBFiles(files)
