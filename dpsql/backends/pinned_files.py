"""Data files as the owner recorded them: which they are, and whether they still are what they were.

House rules (soundness.md 1.27):

1. What is read is a list of files by name, fixed by an act of the owner. A pattern is looked up by that act alone.
2. A file is known by its size, the time of its last change and the hash of its footer, before and after each
   statement; by the hash of all of it when it is recorded, and when the owner checks it.
3. Messages name files and what to do. They hold nothing of what is in a file.

House rule of what is recorded, of files and of tables on Spark: only an owner's command comes here (`take`). What is
taken is written once the ledger has its epoch (soundness.md 1.30(5)).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FilesChanged, PolicyError
from ..policy.model import FILES, FileSources
from ..records import dataclass
from .backend import Finding, Severity

if TYPE_CHECKING:
    from .spark_backend import SparkBackend


_MAGIC = b"PAR1"
_LARGEST_FOOTER = 2**28
_CHUNK = 2**20
_PATTERN = frozenset("*?[]{}")
_FORMAT = 2


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file as it was: `modified` in nanoseconds, `footer` and `content` hashes in hex; `content` "" if not hashed."""

    path: str
    size: int
    modified: int
    footer: str
    content: str = ""

    def place(self) -> str:
        """Return where the file is, alike for all of its names. Raises FilesChanged: it is not there."""
        try:
            found = os.stat(self.path)
        except OSError:
            raise FilesChanged(f"files: {self.path} is not what was recorded", is_recorded=True) from None
        return f"{found.st_dev}:{found.st_ino}"

    def is_now(self) -> bool:
        """Say whether the file has this size, time and footer. It may be missing."""
        try:
            return look_at(self.path) == PinnedFile(self.path, self.size, self.modified, self.footer)
        except (OSError, PolicyError):
            return False


Pins = Mapping[str, tuple[PinnedFile, ...]]
"""The files of each table, in the order in which they are read."""


def find_files(where: str, folder: Path, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the absolute names of the files that patterns mean, each once, in order. Raises PolicyError: none is."""
    found: set[str] = set()
    for pattern in patterns:
        names = [folder / pattern]  # an absolute name stays one
        if any(char in pattern for char in "*?["):
            top = Path(Path(pattern).anchor) if Path(pattern).is_absolute() else folder
            names = [path for path in top.glob(pattern.removeprefix(Path(pattern).anchor)) if path.is_file()]
        if not names:
            raise PolicyError(f'{where}: no file is named like "{pattern}", seen from {folder}')
        found |= {os.path.abspath(name) for name in names}
    for name in sorted(found):
        if _PATTERN.intersection(name) or not name.isprintable():
            raise PolicyError(f'{where}: "{name}" has a name that is a pattern too; rename it')
    return tuple(sorted(found))


def look_at(path: str) -> PinnedFile:
    """Return what a file is now, its content not hashed. Raises OSError, and PolicyError for one that is no Parquet."""
    with open(path, "rb") as file:
        before = os.fstat(file.fileno())
        if not stat.S_ISREG(before.st_mode) or before.st_size < 12:
            raise _no_parquet(path)
        file.seek(-8, os.SEEK_END)
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or length > min(before.st_size - 12, _LARGEST_FOOTER):
            raise _no_parquet(path)
        file.seek(-8 - length, os.SEEK_END)
        footer = hashlib.sha256(file.read(length + 8)).hexdigest()
    return PinnedFile(path, before.st_size, before.st_mtime_ns, footer)


def _no_parquet(path: str) -> PolicyError:
    return PolicyError(f'"{path}" is not a Parquet file, or is encrypted; write it anew')


def pin(files: FileSources, where: str, *, is_whole: bool) -> Pins:
    """Return what the files of each table are now. `where`: the policy's name; `is_whole`: their content is hashed.

    Raises PolicyError: a file is missing, cannot be read, is no Parquet, or changed while it was read.
    """
    found: dict[str, tuple[PinnedFile, ...]] = {}
    for name, patterns in files.tables.items():
        place = f"{where}: tables.{name}.source"
        pins = []
        for path in find_files(place, files.folder, patterns):
            try:
                pins.append(_hashed(path) if is_whole else look_at(path))
            except OSError as error:
                raise PolicyError(f'{place}: "{path}" cannot be read: {error.strerror}') from None
            except PolicyError as error:
                raise PolicyError(f"{place}: {error.message}") from None
        places: dict[str, PinnedFile] = {}
        for one in pins:
            known = places.setdefault(one.place(), one)
            if known is not one:
                raise PolicyError(
                    f'{place}: "{known.path}" and "{one.path}" are one file; its rows would be read twice'
                )
        found[name] = tuple(pins)
    return found


def compare(files: FileSources, where: str, recorded: Pins) -> list[str]:
    """Return what is otherwise than it was recorded, a sentence for each table; all of every file is read.

    Raises PolicyError, as `pin`.
    """
    found, said = pin(files, where, is_whole=True), []
    for name, ones in found.items():
        known = {one.path: one for one in recorded.get(name, ())}
        changed = sorted(
            {one.path for one in ones if known.get(one.path, one) != one}
            | (known.keys() - {one.path for one in ones})
        )
        more = [one.path for one in ones if one.path not in known]
        if changed:
            said.append(f'"{changed[0]}" of {name} is not what was recorded, and nothing is answered')
        if more:
            said.append(f'"{more[0]}" of {name} is not recorded, and is not read')
    return said


def _hashed(path: str) -> PinnedFile:
    seen = look_at(path)
    whole = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            whole.update(chunk)
    if look_at(path) != seen:
        raise PolicyError(f'"{path}" changed while it was read; wait until it is written, and try again')
    return PinnedFile(path, seen.size, seen.modified, seen.footer, whole.hexdigest())


def version_of(pins: tuple[PinnedFile, ...]) -> str:
    """Return what a table's files are as one hash: other files have another."""
    text = json.dumps([[one.path, one.size, one.modified, one.footer] for one in pins])
    return hashlib.sha256(text.encode()).hexdigest()


def read_record(record: Path) -> Pins | None:
    """Return what was recorded; None if nothing was. Raises PolicyError: it cannot be read."""
    try:
        content = read_json(record, _FORMAT)
        if content is None:
            return None
        return {name: tuple(PinnedFile(**one) for one in pins) for name, pins in content["tables"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise PolicyError(
            f"{record.name}: is no record of data files; dpsql refresh writes it anew"
        ) from None


def write_record(record: Path, pins: Pins) -> None:
    """Write what the files are, all of it or nothing. Raises PolicyError: it cannot be written."""
    write_json(record, _FORMAT, {name: [asdict(one) for one in ones] for name, ones in pins.items()})


def read_json(record: Path, number: int) -> Any:
    """Return what a record holds, None where there is none. Raises OSError, ValueError, TypeError, KeyError: it is none
    of this format."""
    try:
        content: Any = json.loads(record.read_bytes())
    except FileNotFoundError:
        return None
    if content["format"] != number:
        raise ValueError
    return content


def write_json(record: Path, number: int, tables: Mapping[str, object]) -> None:
    """Write a record of tables, all of it or nothing. Raises PolicyError: it cannot be written."""
    draft = record.with_name(f"{record.name}.new")
    try:
        with open(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump({"format": number, "tables": tables}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, record)
    except OSError as error:
        raise PolicyError(f"{record.name}: cannot be written: {error.strerror}") from None


# --- what an owner's act records --------------------------------------------------------------------------


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
        versions = {name: version_of(ones) for name, ones in pins.items()}
        return Taken(versions, partial(write_record, files.record, pins))
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
        recorded = read_record(files.record)
        if recorded is None:
            return None
        said = compare(files, where, recorded)
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
