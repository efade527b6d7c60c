"""What the owner records of tables that nothing else fixes: of data files, and of tables on Spark.

House rule: only an owner's command comes here. What is taken is written once the ledger has its epoch (soundness.md
1.30(5)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ..policy.model import FILES, FileSources
from ..records import dataclass
from . import pinned_files
from .backend import Finding, Severity

if TYPE_CHECKING:
    from .spark_backend import SparkBackend


@dataclass(frozen=True, slots=True)
class Taken:
    """What tables are, every value of which was read: the `versions` that statements will see, and what writes the
    record."""

    versions: Mapping[str, str]
    write: Callable[[], None]


def take(url: str, files: FileSources, where: str) -> Taken:
    """Read all rows of all tables as they are now. `where`: the policy's name. Raises PolicyError, EngineFailure."""
    if url == FILES:
        from .duckdb_files import pin_verified

        pins = pin_verified(files, where)
        versions = {name: pinned_files.version_of(ones) for name, ones in pins.items()}
        return Taken(versions, partial(pinned_files.write_record, files.record, pins))
    server = _spark(url)
    from . import spark_tables

    with server.session() as session:
        found = spark_tables.pin_verified(session, files, where)
    versions = {name: spark_tables.version_of(one) for name, one in found.items()}
    return Taken(versions, partial(spark_tables.write_record, files.record, found))


def differences(url: str, files: FileSources, where: str, *, is_whole: bool) -> list[Finding] | None:
    """Return what is otherwise than it was recorded; None where nothing is recorded.

    Files are read in full; tables on Spark where it `is_whole`. Raises PolicyError, EngineFailure.
    """
    if url == FILES:
        recorded = pinned_files.read_record(files.record)
        if recorded is None:
            return None
        said = pinned_files.compare(files, where, recorded)
        return [Finding(Severity.ERROR, sentence, "dpsql refresh") for sentence in said]
    server = _spark(url)
    from . import spark_tables

    known = spark_tables.read_record(files.record)
    if known is None:
        return None
    with server.session() as session:
        return spark_tables.compare(session, files, where, known, is_whole=is_whole)


def _spark(url: str) -> SparkBackend:
    """Return the server of a URL. Raises PolicyError: it is none, or Spark's client is not installed."""
    from .spark_backend import SparkBackend

    return SparkBackend.of(url)
