"""Certificates of charges: what proves a plan's claim, kept once beside the entries that name it by its digest.

House rules:

1. A certificate's name is the sha256 of its bytes, so that what is handed out is what was put, or nothing.
2. A certificate is written in the transaction of the entries that name it, and so is on the disk before a draw of them
   is told. An entry that was cut off before, which the log alone has, may name one that is not there.
3. There is a bound on each, and on all that are in the ledger; a rotation moves these beside the sealed log.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LedgerError
from ..records import dataclass

if TYPE_CHECKING:
    from .ledger import Database

MOST_BYTES_OF_ONE = 2**20
"""No certificate is longer."""

MOST_BYTES = 2**26
"""No log has more bytes of certificates in the ledger: 64 MiB."""

TABLE = (
    "certificate (log text NOT NULL, digest text NOT NULL, size bigint NOT NULL, content {bytes},"
    " PRIMARY KEY (log, digest))"
)
"""The certificates of each log's entries; `content` is NULL once it stands beside a sealed file of the log."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What proves a charge: its bytes, and the sha256 of them, in hex, by which entries name it.

    Raises ValueError for a digest that is not that of the bytes, and for more than `MOST_BYTES_OF_ONE` of them.
    """

    digest: str
    content: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if hashlib.sha256(self.content).hexdigest() != self.digest:
            raise ValueError("a certificate is named by its sha256, in hex")
        if len(self.content) > MOST_BYTES_OF_ONE:
            raise ValueError(f"a certificate has at most {MOST_BYTES_OF_ONE} bytes")


def has(db: Database, log: str, digest: str) -> bool:
    """Return whether the certificate is in the ledger, put by this log's machine."""
    asked = "SELECT 1 FROM certificate WHERE log = ? AND digest = ? AND content IS NOT NULL"
    return db.execute(asked, (log, digest)).fetchone() is not None


def size(db: Database, log: str) -> int:
    """Return how many bytes a log's certificates have that are in the ledger."""
    asked = "SELECT COALESCE(SUM(size), 0) FROM certificate WHERE log = ? AND content IS NOT NULL"
    return int(db.execute(asked, (log,)).fetchone()[0])


def put(db: Database, log: str, one: Certificate) -> None:
    """Store a certificate. Requires: there is room for it, a write transaction."""
    db.execute(
        "INSERT INTO certificate (log, digest, size, content) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (log, digest) DO UPDATE SET content = excluded.content",
        (log, one.digest, len(one.content), one.content),
    )


def stored(db: Database, digest: str) -> bytes | None:
    """Return a certificate's bytes, None where the ledger does not have them. Raises LedgerError for damaged ones."""
    asked = "SELECT content FROM certificate WHERE digest = ? AND content IS NOT NULL LIMIT 1"
    row = db.execute(asked, (digest,)).fetchone()
    if row is None:
        return None
    content = bytes(row[0]) if isinstance(row[0], (bytes, memoryview)) else b""
    if hashlib.sha256(content).hexdigest() != digest:
        raise LedgerError("a certificate in the ledger is damaged", hint="restore the ledger from a backup")
    return content


def lines(db: Database, log: str) -> list[str]:
    """Return the certificates that are in the ledger, each as a line for the file beside a sealed one."""
    asked = "SELECT digest, content FROM certificate WHERE log = ? AND content IS NOT NULL ORDER BY digest"
    return [
        json.dumps({"sha256": digest, "certificate": b64encode(bytes(content)).decode()}) + "\n"
        for digest, content in db.execute(asked, (log,)).fetchall()
    ]


def forget(db: Database, log: str) -> None:
    """Take the certificates out of the ledger. Requires: `lines` are on the disk, and a write transaction."""
    db.execute("UPDATE certificate SET content = NULL WHERE log = ? AND content IS NOT NULL", (log,))


def sealed(files: Iterable[Path], digest: str) -> bytes | None:
    """Return a certificate from the files beside sealed ones, None where none has it as it was put."""
    for file in files:
        with file.open(encoding="ascii", errors="replace") as text:
            for line in text:
                if digest in line and (content := _read(line, digest)) is not None:
                    return content
    return None


def _read(line: str, digest: str) -> bytes | None:
    try:
        content = b64decode(json.loads(line)["certificate"], validate=True)
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return content if hashlib.sha256(content).hexdigest() == digest else None
