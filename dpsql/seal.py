"""What closes a DuckDB of ours: no file, no network, no extension, no Python variable, and no way to open it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import duckdb

NO_WAY_OUT: Final = {
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "python_enable_replacements": "false",
}
"""For every connection, an owner's file too; in every DuckDB from 1.4 on."""

_IN_MEMORY: Final = {
    "allow_unsigned_extensions": "false",
    "disabled_filesystems": "LocalFileSystem",
    "python_scan_all_frames": "false",
    "temp_directory": "",
    "threads": "1",
    **NO_WAY_OUT,  # last: without access to the outside, other settings can no longer be changed
}


def seal(database: duckdb.DuckDBPyConnection, memory_mib: int, more: Mapping[str, Any]) -> None:
    """Close an in-memory database, with `more` settings besides, and lock it.

    Raises duckdb.Error for a setting that this DuckDB does not know: a failure, never a warning.
    """
    settings = {"memory_limit": f"{memory_mib}MiB", **more, **_IN_MEMORY, "lock_configuration": "true"}
    for name, value in settings.items():
        database.execute(f"SET GLOBAL {name} = '{value}'")
