"""Tables of editions: what was fitted of some stored draws, kept so that everybody is told the same whole numbers.

House rules:

1. What is kept can be fitted again from draws that are stored: nothing is lost with it, and nothing rests on it.
2. The first writer's numbers are everybody's. What is damaged is as if it were not there.
3. Bounded: `MOST_EDITIONS` of a family, `MOST_BYTES` in all, and those of this epoch; the oldest go first.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ..records import dataclass

if TYPE_CHECKING:
    from .ledger import Database

MOST_EDITIONS = 10
"""No family has more editions that are kept."""
MOST_BYTES = 2**26
"""No ledger keeps more of them: 64 MiB."""

TABLE = (
    "edition (key {bytes} PRIMARY KEY, family {bytes} NOT NULL, epoch bigint NOT NULL, last bigint NOT NULL,"
    " size bigint NOT NULL, content {bytes})"
)
"""`content` is NULL once it is no longer kept."""
_DIGEST = 32


@dataclass(frozen=True, slots=True)
class Edition:
    """What a table is of. `key`: a digest of all that it is a function of; `last`: the newest ledger entry in it."""

    key: bytes
    family: bytes
    last: int


def stored(db: Database, key: bytes) -> bytes | None:
    """Return what is kept under a key, None where nothing is, or not as it was put."""
    row = db.execute("SELECT content FROM edition WHERE key = ? AND content IS NOT NULL", (key,)).fetchone()
    kept = b"" if row is None else bytes(row[0])
    content = kept[_DIGEST:]
    return content if kept and hashlib.sha256(content).digest() == kept[:_DIGEST] else None


def put(db: Database, edition: Edition, epoch: int, content: bytes) -> bytes:
    """Keep what was fitted, and return what is kept: of who came first. Requires: a write transaction."""
    known = stored(db, edition.key)
    if known is not None:
        return known
    lasts = "SELECT DISTINCT last FROM edition WHERE family = ? AND content IS NOT NULL ORDER BY last DESC"
    kept = [int(last) for (last,) in db.execute(lasts, (edition.family,)).fetchall()]
    newer = [last for last in kept if last > edition.last]
    if len(newer) >= MOST_EDITIONS or len(content) > MOST_BYTES // MOST_EDITIONS:
        return content
    whole = hashlib.sha256(content).digest() + content
    db.execute(
        "INSERT INTO edition (key, family, epoch, last, size, content) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET size = excluded.size, content = excluded.content",
        (edition.key, edition.family, epoch, edition.last, len(whole), whole),
    )
    first = sorted({*kept, edition.last})[-MOST_EDITIONS:][0]
    dropped = "UPDATE edition SET size = 0, content = NULL WHERE content IS NOT NULL AND"
    db.execute(f"{dropped} (epoch < ? OR (family = ? AND last < ?))", (epoch, edition.family, first))
    while _bytes(db) > MOST_BYTES:
        (oldest,) = db.execute("SELECT MIN(last) FROM edition WHERE content IS NOT NULL").fetchone()
        db.execute(f"{dropped} last = ?", (oldest,))
    return content


def _bytes(db: Database) -> int:
    return int(db.execute("SELECT COALESCE(SUM(size), 0) FROM edition", ()).fetchone()[0])
