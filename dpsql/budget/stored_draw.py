"""A draw as the ledger stores it: its payload, with a checksum at the end that ties it to its entry.

House rules:

1. Whether a draw has a checksum is said by its entry's record, which stands in the log as well: what a damaged
   row lacks is missed. Entries of before there were checksums say none, and their draws are read as they are.
2. A draw that cannot be vouched for is never served (`MALFORMED`), nor drawn anew in passing: the owner has to look.
"""

from __future__ import annotations

import hashlib

from ..mechanisms import law_of
from .claim import KEY_BYTES, Draw
from .entry import Entry, read_record

__all__ = ["MALFORMED", "read_draw", "stored_payload"]

MALFORMED = (ValueError, TypeError, ArithmeticError, LookupError)
"""What comes of reading rows that dpsql did not write."""

_DIGEST_BYTES = hashlib.sha256().digest_size


def stored_payload(entry: Entry, body: str, draw: Draw) -> bytes:
    """Return what is stored of a draw's payload; `body` is the text of its entry's record."""
    return draw.payload + _checksum(body, draw) if entry.digest else draw.payload


def read_draw(body: str, keys: bytes, scale: str, stored: bytes) -> Draw:
    """Return the draw of a stored row and its entry's record. Raises one of `MALFORMED` for a row that is damaged."""
    entry = read_record(body)
    if not isinstance(entry, Entry):
        raise ValueError("the record is of another kind")
    payload, checksum = stored, b""
    if entry.digest:
        payload, checksum = stored[:-_DIGEST_BYTES], stored[-_DIGEST_BYTES:]
    measures = tuple(keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES))
    draw = Draw(measures, law_of(scale), bytes(payload))
    if entry.digest and _checksum(body, draw) != checksum:
        raise ValueError("the checksum does not hold")
    return draw


def _checksum(body: str, draw: Draw) -> bytes:
    """Return the sha256 of the record's line, the law's, the keys' and the payload: none runs into the next."""
    head = f"{body}\n{draw.law.text}\n{b''.join(draw.measures).hex()}\n"
    return hashlib.sha256(head.encode() + draw.payload).digest()
