"""What a ledger's records come to, up to one of them: each log's chain, and what its entries add up to.

Records of format 4 name the sha256 of the record before them, so the last one's sha256, the *head*, stands for all of
its log. Those of before are chained here: head = sha256(head before, text). A `Verified` is a checkpoint: up to which
record a ledger was compared with its log, and all that going on from there needs (soundness.md 3.19).

House rule: pure. What is not as it has to be is a Disagreement, in words that name a record by its place alone.

What an external witness is told of a ledger, and what its notes say later (soundness.md 3.19).

A note says how many records a log had and what they came to: the head, salted, so that who reads notes learns nothing
of what was asked. Who puts an old ledger back together with its old log takes both to an earlier head; a witness that
has seen a later one says so.

House rule: a witness is told what was compared, after it is durable; no charge waits for one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Any

from ..errors import LedgerError
from ..policy import Slices
from ..records import dataclass
from .entry import CHAINED, Clock, Division, Entry, Header, Record, Segment, Sums, add, read_linked
from .slices import Steps

Days = dict[tuple[str, str], Sums]
"""What was charged by day (UTC) and analyst; the days of other records stand under no name."""

_NOTHING: Sums = (0, 0, 0)


class Disagreement(ValueError):
    """Records, a log, sums that do not fit together; the text says which, by their places."""


def digest_of(text: str) -> str:
    """Return the sha256 of a record's text, as its line in the log has it."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def moment_of(at: str) -> datetime:
    """Return a record's time, in UTC; the first one of all where it is no time."""
    try:
        return datetime.fromisoformat(at).astimezone(UTC)
    except (ValueError, OverflowError):
        return datetime.min.replace(tzinfo=UTC)


def passed(highest: datetime | None, kind: str, at: datetime, *, is_owners: bool) -> datetime:
    """Return the highest moment of a ledger after a record of a kind; `is_owners`: by the owner's word (soundness.md
    3.12). What begins a log, or a file of it, may be of another machine, whose clock nothing has looked at yet.
    """
    if highest is None or (kind == "clock" and is_owners):
        return at
    return highest if kind in ("header", "segment") else max(highest, at)


def after_record(highest: datetime | None, record: Record) -> datetime:
    """Return the highest moment of a ledger after a record."""
    is_owners = isinstance(record, Clock) and bool(record.by)
    return passed(highest, type(record).__name__.lower(), moment_of(record.at), is_owners=is_owners)


def salted(salt: str, head: str) -> str:
    """Return what a witness is told of a head: it says nothing of the records to who does not have the salt."""
    return hashlib.sha256(f"dpsql witness\n{salt}\n{head}".encode()).hexdigest()


def linked_head(text: str | None) -> str | None:
    """Return the head of a log whose last record this is, None where it takes the records before to tell."""
    if text is None:
        return None
    record, after = read_linked(text)
    is_first = isinstance(record, Header) and record.format >= CHAINED
    return digest_of(text) if after is not None or is_first else None


@dataclass(slots=True)
class Chain:
    """One log up to a record: how many records, the head, whether they say so themselves, the sums, the salt.

    `slices`: what was spent by slice, by analyst, where the ledger is kept so.
    """

    place: int = 0
    head: str = ""
    is_chained: bool = False
    spent: dict[str, Sums] = field(default_factory=dict)
    salt: str = ""
    slices: dict[str, Steps] = field(default_factory=dict)

    def take(self, record: Record, text: str, after: str | None) -> None:
        """Go on by the next record. Raises Disagreement where it is not the next one."""
        if self.place == 0 and isinstance(record, Segment) and after is not None:
            self._begin_at(record, after)
        if record.seq != self.place or (self.place == 0) != isinstance(record, Header):
            raise Disagreement(f"another record stands in the place of record {self.place}")
        is_next = not self.is_chained if after is None else after == self.head
        if not is_next:
            raise Disagreement(f"record {self.place} does not come after the one before it")
        match record:
            case Entry(analyst=name, charge=charge):
                sums = charge.epsilon_nano, charge.delta_atto, charge.rho_atto
                self.spent[name] = add(self.spent.get(name, _NOTHING), sums)
            case Segment():
                said = {name: Steps(runs) for name, runs in record.slices}
                if dict(record.spent) != self.spent or said != self.slices:
                    raise Disagreement(f"record {self.place} does not say what was spent before it")
                self.salt = record.salt
            case Header():
                self.salt = record.salt
                self.is_chained = record.format >= CHAINED
            case _:
                pass
        charge_slices(self.slices, record)
        self.is_chained = self.is_chained or after is not None
        self.head = digest_of(text) if self.is_chained else digest_of(self.head + text)
        self.place += 1

    def _begin_at(self, segment: Segment, after: str) -> None:
        """Take the word of a file's first record for what the files before it held."""
        self.place, self.head = segment.seq, after
        self.go_on_from(segment)

    def go_on_from(self, segment: Segment) -> None:
        """Take the word of a record for what was spent before it."""
        self.spent = dict(segment.spent)
        self.slices = {name: Steps(runs) for name, runs in segment.slices}


@dataclass(slots=True)
class Verified:
    """A ledger up to the record of a number: that, the bytes of our own log, and each log's chain.

    `days`: what was charged by day, and `moment`, the highest one; None where the beginning was not looked at.
    """

    number: int = -1
    position: int = 0
    chains: dict[str, Chain] = field(default_factory=dict)
    days: Days | None = None
    moment: datetime | None = None
    begun: set[str] = field(default_factory=set)
    """The logs of which a record of the ledger was taken."""

    def take(self, number: int, log: str, text: str) -> None:
        """Go on by the ledger's next record. Raises Disagreement, and LedgerError where it cannot be read."""
        record, after = read_linked(text)
        chain = self.chains.setdefault(log, Chain())
        is_first = log not in self.begun
        self.begun.add(log)
        chain.take(record, text, after)
        self.number = number
        if self.days is not None:
            note_day(self.days, record, is_first=is_first)
            self.moment = after_record(self.moment, record)

    def copy(self) -> Verified:
        """Return one that goes on by itself."""
        chains = {
            log: replace(chain, spent=dict(chain.spent), slices=_copied(chain.slices))
            for log, chain in self.chains.items()
        }
        days = None if self.days is None else dict(self.days)
        return replace(self, chains=chains, days=days, begun=set(self.begun))

    @property
    def spent(self) -> dict[str, Sums]:
        """What the entries of all logs add up to, by analyst."""
        total: dict[str, Sums] = {}
        for chain in self.chains.values():
            for name, sums in chain.spent.items():
                total[name] = add(total.get(name, _NOTHING), sums)
        return total

    @property
    def slices(self) -> dict[str, Steps]:
        """What the entries of all logs come to by slice, by analyst, and under no name that of all of them."""
        total: dict[str, Steps] = {}
        for chain in self.chains.values():
            for name, steps in chain.slices.items():
                for of in (name, ""):
                    total.setdefault(of, Steps()).merge(steps)
        return total

    def text(self) -> str:
        """Return it as a checkpoint is stored: with its own sha256, so that what is damaged is not believed."""
        chains = {
            log: [
                one.place,
                one.head,
                one.is_chained,
                one.salt,
                [[name, *sums] for name, sums in one.spent.items()],
                *([[[name, list(steps)] for name, steps in one.slices.items()]] if one.slices else []),
            ]
            for log, one in self.chains.items()
        }
        body = json.dumps([self.number, self.position, chains], separators=(",", ":"))
        return f"{digest_of(body)} {body}"

    @classmethod
    def read(cls, text: str) -> Verified:
        """Return a stored checkpoint. Raises ValueError, TypeError, KeyError for what `text` did not write."""
        digest, _, body = text.partition(" ")
        if not body.isascii() or digest_of(body) != digest:
            raise ValueError("the checkpoint is damaged")
        number, position, chains = json.loads(body)
        return cls(
            int(number), int(position), {log: _read_chain(*written) for log, written in chains.items()}
        )


def _read_chain(
    place: int, head: str, is_chained: bool, salt: str, spent: list[list[Any]], slices: Sequence[Any] = ()
) -> Chain:
    sums: dict[str, Sums] = {
        name: (int(epsilon), int(delta), int(rho)) for name, epsilon, delta, rho in spent
    }
    steps = {
        name: Steps((first, last, _three(three)) for first, last, three in runs) for name, runs in slices
    }
    return Chain(int(place), str(head), bool(is_chained), sums, str(salt), steps)


def _three(written: Sequence[int]) -> Sums:
    epsilon, delta, rho = map(int, written)
    return epsilon, delta, rho


def _copied(slices: dict[str, Steps]) -> dict[str, Steps]:
    return {name: steps.copy() for name, steps in slices.items()}


def charge_slices(slices: dict[str, Steps], record: Record) -> None:
    """Add what a record charges to what was spent by slice, by analyst."""
    match record:
        case Entry(slices=Slices() as reached, analyst=name, charge=charge):
            spent = [(name, (charge.epsilon_nano, charge.delta_atto, charge.rho_atto))]
        case Division(slices=reached):
            spent = list(record.spent)
        case _:
            return
    for name, sums in spent:
        for first, last in reached.runs:
            slices.setdefault(name, Steps()).add(first, last, sums)


def note_day(days: Days, record: Record, *, is_first: bool) -> None:
    """Add a record to what was charged by day; `is_first`: nothing of its log is known before it."""
    day = moment_of(record.at).date().isoformat()
    if isinstance(record, Entry):
        charge = record.charge
        sums = charge.epsilon_nano, charge.delta_atto, charge.rho_atto
        days[day, record.analyst] = add(days.get((day, record.analyst), _NOTHING), sums)
        return
    days.setdefault((day, ""), _NOTHING)
    if isinstance(record, Segment) and is_first:  # what was charged before is of this day: that only takes
        for name, spent in record.spent:
            days[day, name] = add(days.get((day, name), _NOTHING), spent)


# --- what an external witness is told of a ledger, and what its notes say later (soundness.md 3.19) ---------


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
