"""What the ledger records, and how a record is written as text.

A record's text is canonical JSON (sorted keys, ASCII): the same bytes stand in the append-only log
and in the ledger, so that the two can be compared byte for byte. What may change later (an entry's
state) is not part of it. Times are for people; nothing is decided by them (soundness.md G14).
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any

from ..errors import LedgerError
from ..mechanisms import Law, law_of
from .claim import Charge, Grouping, GroupingKey

__all__ = [
    "DIGEST",
    "FORMAT",
    "UNSAID",
    "Entry",
    "EntryState",
    "EpochStart",
    "Grant",
    "Header",
    "Promise",
    "Record",
    "Status",
    "newer",
    "read_record",
    "record_text",
]

FORMAT = 2
"""The version of the records and of the schema beside them. 2: laws other than Laplace, named by a word.

What an earlier version wrote is read as it is, and a ledger gets this number before anything is written to it: a
version that knows less refuses it then (`newer`), in place of calling damaged what it cannot read.
"""

DIGEST = "sha256"
"""The checksum of draws. It is part of the record, hence of the log: a draw cannot lose its checksum unseen."""


class EntryState(enum.Enum):
    """What became of an entry; all three are spent. RESERVED moves once, to one of the others."""

    RESERVED = "reserved"
    COMMITTED = "committed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Promise:
    """What the spent epsilon is an epsilon of: between which databases, and for how many units `together`.

    A ledger has one for good: what was charged under one meaning does not count under another. `neighbours`: as the
    policy has it; empty in the ledgers of before it was written, which go with any.
    """

    neighbours: str = ""
    together: int = 1

    def agrees(self, other: Promise) -> bool:
        """Say whether charges of both add up."""
        known = {self.neighbours, other.neighbours} - {""}
        return self.together == other.together and len(known) <= 1


UNSAID = Promise()
"""What the ledgers of before a promise was written are taken to say."""


@dataclass(frozen=True, slots=True)
class Header:
    """A log's first record: of which dataset's ledger it is, and which log, where several share a ledger.

    `log`: random, so that no two logs have the same; empty where a ledger has one log alone. `format`: when the log
    was begun; later records may be of a later one.
    """

    seq: int
    at: str
    dataset: str
    log: str = ""
    promise: Promise = UNSAID
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Entry:
    """One charged measurement: who, when, which statement, which measures under which noise, what it cost.

    `seq`: in a log, its place there; as the store gives it, its number in the ledger. `digest`: the kind of
    checksum that its draw is stored under; empty for entries of before there was one. `grouping`: as it was claimed.
    """

    seq: int
    at: str
    epoch: int
    analyst: str
    statement: str
    note: str
    measures: tuple[bytes, ...]
    law: Law
    charge: Charge
    state: EntryState = EntryState.RESERVED
    digest: str = DIGEST
    grouping: Grouping | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """The owner's act that raises a cap by `epsilon_nano`: the global one when `analyst` is None."""

    seq: int
    at: str
    analyst: str | None
    epsilon_nano: int
    by: str


@dataclass(frozen=True, slots=True)
class EpochStart:
    """The owner's act that makes stored releases of earlier epochs stop answering."""

    seq: int
    at: str
    epoch: int


Record = Header | Entry | Grant | EpochStart


@dataclass(frozen=True, slots=True)
class Status:
    """What is spent, what the caps are (policy and grants together), and the dataset's epoch.

    Epsilon in 1e-9, delta and rho in 1e-18. A spent figure can exceed its cap when the owner has
    lowered the policy since. `analyst_cap_nano` is None when the analyst has no personal cap.
    """

    epsilon_spent_nano: int
    epsilon_cap_nano: int
    delta_spent_atto: int
    delta_cap_atto: int
    rho_spent_atto: int
    analyst_spent_nano: int
    analyst_cap_nano: int | None
    epoch: int


def record_text(record: Record) -> str:
    """Return the record as one line of canonical JSON (without a newline)."""
    fields: dict[str, Any] = {"seq": record.seq, "at": record.at}
    match record:
        case Header():
            fields |= {"kind": "header", "dataset": record.dataset, "format": record.format}
            if record.log:
                fields["log"] = record.log
            if record.promise.neighbours:
                fields["neighbours"] = record.promise.neighbours
            if record.promise.together != 1:
                fields["together"] = record.promise.together
        case Entry():
            fields |= {
                "kind": "entry",
                "epoch": record.epoch,
                "analyst": record.analyst,
                "statement": record.statement,
                "note": record.note,
                "measures": [key.hex() for key in record.measures],
                "scale": record.law.text,
                "epsilon_nano": record.charge.epsilon_nano,
                "delta_atto": record.charge.delta_atto,
                "rho_atto": record.charge.rho_atto,
            }
            if record.digest:
                fields["digest"] = record.digest
            if record.grouping:
                fields["grouping"] = [
                    record.grouping.family.hex(),
                    [[key.digest.hex(), key.size, key.is_complete] for key in record.grouping.keys],
                ]
        case Grant():
            fields |= {
                "kind": "grant",
                "analyst": record.analyst,
                "epsilon_nano": record.epsilon_nano,
                "by": record.by,
            }
        case EpochStart():
            fields |= {"kind": "epoch", "epoch": record.epoch}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def read_record(text: str, state: EntryState = EntryState.RESERVED) -> Record:
    """Return the record that `record_text` wrote; `state` is the state of an Entry.

    Raises LedgerError for text that this version did not write.
    """
    try:
        fields = json.loads(text)
        record = _record(fields, state)
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise _unreadable() from error
    if record_text(record) != text:
        raise _unreadable()
    return record


def _record(fields: dict[str, Any], state: EntryState) -> Record:
    seq, at = fields["seq"], fields["at"]
    match fields["kind"]:
        case "header":
            promise = Promise(fields.get("neighbours", ""), fields.get("together", 1))
            return Header(
                seq, at, fields["dataset"], fields.get("log", ""), promise, _known_format(fields["format"])
            )
        case "entry":
            return Entry(
                seq=seq,
                at=at,
                epoch=fields["epoch"],
                analyst=fields["analyst"],
                statement=fields["statement"],
                note=fields["note"],
                measures=tuple(bytes.fromhex(key) for key in fields["measures"]),
                law=law_of(fields["scale"]),
                charge=Charge(fields["epsilon_nano"], fields["delta_atto"], fields["rho_atto"]),
                state=state,
                digest=_known_digest(fields.get("digest", "")),
                grouping=_grouping(fields["grouping"]) if "grouping" in fields else None,
            )
        case "grant":
            return Grant(seq, at, fields["analyst"], fields["epsilon_nano"], fields["by"])
        case "epoch":
            return EpochStart(seq, at, fields["epoch"])
        case _:
            raise ValueError("unknown kind of record")


def _grouping(written: list[Any]) -> Grouping:
    family, keys = written
    return Grouping(
        bytes.fromhex(family),
        tuple(GroupingKey(bytes.fromhex(digest), size, complete) for digest, size, complete in keys),
    )


def _known_digest(name: str) -> str:
    if name not in ("", DIGEST):
        raise ValueError("unknown checksum")
    return name


def _known_format(number: object) -> int:
    if type(number) is not int or not 1 <= number <= FORMAT:
        raise ValueError("unknown format")
    return number


def newer() -> LedgerError:
    """Return the error for a ledger in which a newer version of dpsql writes."""
    return LedgerError(
        "the ledger is kept by a newer version of dpsql than this one",
        hint="stop this one, and use that version or a newer one for all who share the ledger",
    )


def _unreadable() -> LedgerError:
    return LedgerError(
        "the ledger holds a record that this version cannot read",
        hint="use the version of dpsql that wrote it, or a newer one",
    )
