"""What an external witness is told of a ledger, and what its notes say later (soundness.md 3.19).

A note says how many records a log had and what they came to: the head, salted, so that who reads notes learns nothing
of what was asked. Who puts an old ledger back together with its old log takes both to an earlier head; a witness that
has seen a later one says so.

House rule: a witness is told what was compared, after it is durable; no charge waits for one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import LedgerError
from .chain import Chain, digest_of, salted

__all__ = ["Note", "Testimony", "note_of", "read_notes"]

_MOST_CHARACTERS = 1_000
"""No note is longer."""


@dataclass(frozen=True, slots=True)
class Note:
    """`ledger`: which one, by a name that only its salt gives; `records`: how many its log had; `head`: salted."""

    at: str
    ledger: str
    records: int
    head: str

    @property
    def text(self) -> str:
        """One line of JSON, without a newline."""
        return json.dumps({"at": self.at, "ledger": self.ledger, "records": self.records, "head": self.head})


def note_of(chain: Chain, at: str) -> Note:
    """Return what is told of a log. Requires: it is chained."""
    return Note(at, _name(chain.salt), chain.place, salted(chain.salt, chain.head))


def _name(salt: str) -> str:
    return digest_of(f"dpsql ledger {salt}")[:16]


def read_notes(lines: Iterable[str]) -> list[Note]:
    """Return the notes in a witness' file; what is no note, as a line that a crash has cut, is passed over."""
    return [note for line in lines if len(line) <= _MOST_CHARACTERS and (note := _read(line)) is not None]


def _read(line: str) -> Note | None:
    try:
        written: Any = json.loads(line)
        note = Note(written["at"], written["ledger"], written["records"], written["head"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    texts = all(isinstance(text, str) for text in (note.at, note.ledger, note.head))
    return note if texts and type(note.records) is int else None


class Testimony:
    """Holds notes against a log that is looked at as a whole."""

    def __init__(self, notes: Iterable[Note]) -> None:
        self._notes: dict[int, list[Note]] = {}
        for note in notes:
            self._notes.setdefault(note.records, []).append(note)
        self._wrong: Note | None = None
        self.agreed = 0
        """Notes of this ledger that it agrees with."""

    def look(self, chain: Chain) -> None:
        """Hold the notes of so many records against what they come to. Call with each record."""
        for note in self._notes.get(chain.place, ()) if chain.is_chained else ():
            if note.ledger != _name(chain.salt):
                continue
            if note.head == salted(chain.salt, chain.head):
                self.agreed += 1
            else:
                self._wrong = self._wrong or note

    def require(self, chain: Chain) -> None:
        """Raise LedgerError unless all notes of this ledger agree with it, and there is one; `chain`: its end."""
        own = [note for notes in self._notes.values() for note in notes if note.ledger == _name(chain.salt)]
        if not own:
            raise LedgerError(
                "the witness has no note of this ledger",
                hint="name the file that dpsql serve --witness wrote for it, or that --witness-command's program keeps",
            )
        latest = max(own, key=lambda note: note.records)
        if latest.records > chain.place:
            raise LedgerError(
                f"the witness has seen {latest.records} records on {latest.at}, and ledger and log have {chain.place}: "
                "both are older, and what was charged since is not counted",
                hint="put back the newest log that there is: the ledger is brought up to it. Where there is none, take "
                "what was answered since off the caps of the policy",
            )
        if self._wrong is not None:
            raise LedgerError(
                f"the witness has seen other records: of {self._wrong.records} on {self._wrong.at}",
                hint="ledger and log were written anew, or were both put back and went on; look for the log that the "
                "witness has seen",
            )
