"""Certificates of charges: what proves a plan's claim, kept once beside the entries that name it by its digest.

House rules:

1. A certificate's name is the sha256 of its bytes, so that what is handed out is what was put, or nothing.
2. A certificate is on the disk before an entry names it (`require_stored`, in the entry's own transaction).
3. There is a bound on each and on all that are in the ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ..errors import LedgerError
from .claim import is_digest
from .ledger import Database

__all__ = ["MOST_BYTES", "MOST_BYTES_OF_ONE", "has", "put", "require_name", "require_stored", "stored"]

MOST_BYTES_OF_ONE = 2**20
"""No certificate is longer."""

MOST_BYTES = 2**26
"""No log has more bytes of certificates in the ledger: 64 MiB."""

TABLE = (
    "certificate (log text NOT NULL, digest text NOT NULL, size bigint NOT NULL, content {bytes},"
    " PRIMARY KEY (log, digest))"
)
"""The certificates of each log's entries."""


def require_name(digest: str, content: bytes) -> None:
    """Raise ValueError unless the digest is that of the content, and the content within its bound."""
    if not is_digest(digest) or hashlib.sha256(content).hexdigest() != digest:
        raise ValueError("a certificate is named by its sha256, in hex")
    if len(content) > MOST_BYTES_OF_ONE:
        raise ValueError(f"a certificate has at most {MOST_BYTES_OF_ONE} bytes")


def has(db: Database, log: str, digest: str) -> bool:
    """Return whether the certificate is in the ledger, put by this log's machine."""
    asked = "SELECT 1 FROM certificate WHERE log = ? AND digest = ? AND content IS NOT NULL"
    return db.execute(asked, (log, digest)).fetchone() is not None


def put(db: Database, log: str, digest: str, content: bytes) -> None:
    """Store a certificate. Requires: `require_name`, a write transaction. Raises LedgerError where there is no room."""
    asked = "SELECT COALESCE(SUM(size), 0) FROM certificate WHERE log = ? AND content IS NOT NULL"
    if int(db.execute(asked, (log,)).fetchone()[0]) + len(content) > MOST_BYTES:
        raise LedgerError(
            f"the ledger's certificates fill the {MOST_BYTES // 2**20} MiB that they may have",
            hint="the same certificate is stored once: keep fewer of them",
        )
    db.execute(
        "INSERT INTO certificate (log, digest, size, content) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (log, digest) DO UPDATE SET content = excluded.content",
        (log, digest, len(content), content),
    )


def stored(db: Database, digest: str) -> bytes | None:
    """Return a certificate's bytes, None where the ledger does not have them. Raises LedgerError for damaged ones."""
    asked = "SELECT content FROM certificate WHERE digest = ? AND content IS NOT NULL LIMIT 1"
    row = db.execute(asked, (digest,)).fetchone()
    if row is None:
        return None
    content = bytes(row[0])
    if hashlib.sha256(content).hexdigest() != digest:
        raise LedgerError("a certificate in the ledger is damaged", hint="restore the ledger from a backup")
    return content


def require_stored(db: Database, log: str, digests: Iterable[str | None]) -> None:
    """Raise LedgerError unless each certificate is in the ledger: one may have been moved away since it was put."""
    for digest in sorted({digest for digest in digests if digest is not None}):
        if not has(db, log, digest):
            raise LedgerError("a certificate is not in the ledger, or no longer", hint="ask again")
