"""What the ledger records, and how a record is written as text.

A record's text is canonical JSON (sorted keys, ASCII): the same bytes stand in the append-only log
and in the ledger, so that the two can be compared byte for byte. What may change later (an entry's
state) is not part of it. Times are for people; nothing is decided by them (attacks.md, row G14).

From format 4 on a record names the sha256 of the record before it in its log (`after`), so that the last one's sha256
stands for all of them: soundness.md 3.19.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Callable
from dataclasses import field, replace
from datetime import date
from operator import attrgetter
from typing import Any

from ..cache import Cache
from ..errors import LedgerError
from ..mechanisms import Law, law_of
from ..policy import Accounting, Over, Period, Slices
from ..policy.periods import MOST_NUMBER, UNDATED, Times
from ..records import dataclass
from ..relation.catalog import Ground
from .claim import KEY_BYTES, Charge, Draw, Grouping, GroupingKey, epsilon_nano_of, is_digest

FORMAT = 7
"""The newest version of the records and of the schema beside them. 2: laws other than Laplace, named by a word.
3: zCDP, in the ledgers that are kept in it alone. 4, and 5 where zCDP is: chained records, checkpoints, certificates;
the ledger's clock; what an entry's answer rests on. 6, and 7 where zCDP is: charges by slice, in the ledgers that are
kept by periods alone.

What an earlier version wrote is read as it is, and a ledger gets its number before anything is written to it: a
version that knows less refuses it then (`newer`), in place of calling damaged what it cannot read.
"""

FORMATS = {Accounting.PURE: 4, Accounting.ZCDP: 5}
"""The version that a ledger gets. Who keeps it otherwise sees by it, in each transaction, that it was moved."""

BY_PERIODS = 2
"""By so much the version of a ledger that is kept by slices is higher."""

OF_ZCDP = frozenset({3, 5, 7})
"""The versions of ledgers that are kept in rho."""

OF_PERIODS = frozenset({6, 7})
"""The versions of ledgers that are kept by slices."""

CHAINED = 4
"""The first version whose records are chained, and which has checkpoints and certificates."""

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
    policy has it; empty in the ledgers of before it was written, which go with any. `accounting`: what is added up;
    `conversion_delta_atto`: under zCDP, the part of delta at which the sum of rho is an epsilon, and 0 otherwise.

    `period`: a unit is what a person has in one (soundness.md 3.22), which begins at midnight in `zone`; what lies
    before `since` is one slice. None: a unit is all that a person ever has.
    """

    neighbours: str = ""
    together: int = 1
    accounting: Accounting = Accounting.PURE
    conversion_delta_atto: int = 0
    period: Period | None = None
    zone: str = "UTC"
    since: date | None = None

    def __post_init__(self) -> None:
        if (self.period is None) is not (self.since is None):
            raise ValueError("periods have a first one")

    @property
    def format(self) -> int:
        """The version of a ledger that is kept so."""
        return FORMATS[self.accounting] + (0 if self.period is None else BY_PERIODS)

    def agrees(self, other: Promise) -> bool:
        """Say whether charges of both add up."""
        known = {self.neighbours, other.neighbours} - {""}
        return len(known) <= 1 and replace(self, neighbours="") == replace(other, neighbours="")

    def after(self, *acts: Move | Division | None) -> Promise:
        """Return what a promise is after the ledger was moved, or divided, if it was."""
        promise = self
        for act in acts:
            match act:
                case Move() if promise.accounting is Accounting.PURE:
                    conversion = act.conversion_delta_atto
                    promise = replace(promise, accounting=Accounting.ZCDP, conversion_delta_atto=conversion)
                case Division() if promise.period is None:
                    promise = replace(promise, period=act.period, zone=act.zone, since=act.since)
                case _:
                    pass
        return promise


UNSAID = Promise()
"""What the ledgers of before a promise was written are taken to say."""


@dataclass(frozen=True, slots=True)
class Header:
    """A log's first record: of which dataset's ledger it is, and which log, where several share a ledger.

    `log`: random, so that no two logs have the same; empty where a ledger has one log alone. `format`: when the log
    was begun; later records may be of a later one. `salt`: random, in hex, of what a witness is told; from format 4 on.
    """

    seq: int
    at: str
    dataset: str
    log: str = ""
    promise: Promise = UNSAID
    salt: str = ""
    format: int = field(kw_only=True)


Sums = tuple[int, int, int]
"""Epsilon in 1e-9, delta and rho in 1e-18."""


Ends = tuple[int, str]
"""Up to which period the ends of all are told, and the sha256 of them, where they are those of a zone."""

Run = tuple[int, int, Sums]
"""The first and the last of some periods, and what each of them was charged."""


def add(one: Sums, other: Sums) -> Sums:
    """Return the sums of both."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


@dataclass(frozen=True, slots=True)
class Segment:
    """A log's record that says what it goes on from: the first one of each of its files but the oldest, and the first
    chained one in a log of before format 4.

    `number`: of the file that it is in, from 0; `start`: how many bytes the log has in the files before. `spent`: what
    the log's entries before this record add up to, by analyst; `slices`: what they come to by slice, where a ledger is
    kept so. The others: as in `Header`.
    """

    seq: int
    at: str
    dataset: str
    log: str
    promise: Promise
    salt: str
    number: int
    start: int
    epoch: int
    spent: tuple[tuple[str, Sums], ...]
    slices: tuple[tuple[str, tuple[Run, ...]], ...] = ()
    ends: Ends | None = None
    times: Times = ()
    whose: tuple[Ground, ...] = ()
    format: int = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """One charged measurement: who, when, which statement, which measures under which noise, what it cost.

    `seq`: in a log, its place there; as the store gives it, its number in the ledger. `digest`: the kind of
    checksum that its draw is stored under; empty for entries of before there was one. `grouping`, `grounds`: as it was
    claimed; `grounds` None for entries of before they were written, whose keys are of another making. `certificate`:
    the sha256, in hex, of the certificate of its charge, where it has one. `slices`: whose data it is charged for;
    `ends`: where the periods that were charged so far begin and end, in a zone other than UTC (`LedgerStore._ends`);
    `times`: by which time the rows of all tables that were charged so far are of a period; `whose`: how they find their
    owner.
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
    certificate: str | None = None
    grounds: tuple[Ground, ...] | None = None
    slices: Slices | None = None
    ends: Ends | None = None
    times: Times = ()
    whose: tuple[Ground, ...] = ()


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
    """The owner's act that makes stored releases of earlier epochs stop answering.

    `retired`: those of these slices alone, in a ledger by periods; None: all.
    """

    seq: int
    at: str
    epoch: int
    retired: Slices | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """The owner's act after which a ledger that was kept in epsilon is kept in rho, for good (soundness.md 3.11)."""

    seq: int
    at: str
    conversion_delta_atto: int
    by: str
    accounting: str = Accounting.ZCDP.value


@dataclass(frozen=True, slots=True)
class Division:
    """The owner's act after which a ledger is kept by periods, for good (soundness.md 3.22).

    `slices`: that have the charges of before; `spent`: what they count for in each of these, by analyst.
    """

    seq: int
    at: str
    period: Period
    zone: str
    since: date
    slices: Slices
    spent: tuple[tuple[str, Sums], ...]
    by: str
    ends: Ends | None = None
    times: Times = ()
    whose: tuple[Ground, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """The owner's act of looking whether a key that the policy asserts holds in a table's data (soundness.md 1.30).

    `version`: of the data, as the backend tells it; `holds`: what was found. `dpsql`: the version that looked.
    Unlike a law of noise it needs no later format: a version that does not know it says so, and knows no such keys.
    """

    seq: int
    at: str
    epoch: int
    table: str
    columns: tuple[str, ...]
    version: str
    holds: bool
    dpsql: str
    by: str

    @property
    def subject(self) -> tuple[str, tuple[str, ...], str]:
        """Of what it is: table, columns, version. A later one of the same subject takes its place."""
        return self.table, self.columns, self.version


@dataclass(frozen=True, slots=True)
class Clock:
    """The moment that the ledger has come to (soundness.md 3.12): seen in passing, or confirmed by the owner, `by`.

    It is written where periods have caps, or by the owner's act.
    """

    seq: int
    at: str
    by: str = ""


Record = Header | Segment | Entry | Grant | EpochStart | Move | Division | KeyCheck | Clock


@dataclass(frozen=True, slots=True)
class Scope:
    """A cap and what is spent under it, in what is added up: epsilon in 1e-9, or rho in 1e-18. `whose`: in words.

    `until`: of a period's, the day (UTC) on which the next one begins.
    """

    whose: str
    spent: int
    cap: int
    until: str = ""

    @property
    def left(self) -> int:
        """What is left, never below nothing."""
        return max(0, self.cap - self.spent)


@dataclass(frozen=True, slots=True)
class Status:
    """What is spent, what the caps are (policy and grants together), and the dataset's epoch.

    Epsilon in 1e-9, delta and rho in 1e-18. A spent figure can exceed its cap when the owner has
    lowered the policy since. `analyst_cap_nano` is None when the analyst has no personal cap.

    Under zCDP rho is what has caps, `rho_cap_atto` and `analyst_rho_cap_atto`; an epsilon that is spent is that of
    all the rho, at `conversion_delta_atto`, and delta is the part that thresholds may spend. `rations`: the caps of the
    running period; `clock`: where the machine's is not that of the ledger (`Rations.moment`), how it is told.

    `of`: where the ledger is kept by slices, which of them this is the status of, in words: what is spent is the
    most that one of these was charged (soundness.md 3.22).
    """

    epsilon_spent_nano: int
    epsilon_cap_nano: int
    delta_spent_atto: int
    delta_cap_atto: int
    rho_spent_atto: int
    analyst_spent_nano: int
    analyst_cap_nano: int | None
    epoch: int
    accounting: Accounting = Accounting.PURE
    conversion_delta_atto: int = 0
    rho_cap_atto: int = 0
    analyst_rho_spent_atto: int = 0
    analyst_rho_cap_atto: int | None = None
    rations: tuple[Scope, ...] = ()
    clock: str = ""
    of: str = ""

    @property
    def in_rho(self) -> bool:
        """Whether rho is what is added up."""
        return self.accounting is not Accounting.PURE

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """All caps but that of delta, the dataset's first."""
        if self.accounting is Accounting.PURE:
            everybody, own = (
                (self.epsilon_spent_nano, self.epsilon_cap_nano),
                (self.analyst_spent_nano, self.analyst_cap_nano),
            )
        else:
            everybody, own = (
                (self.rho_spent_atto, self.rho_cap_atto),
                (self.analyst_rho_spent_atto, self.analyst_rho_cap_atto),
            )
        found: tuple[Scope, ...] = (Scope("the dataset's", *everybody),)
        found += () if own[1] is None else (Scope("your own", own[0], own[1]),)
        return found + self.rations

    @property
    def left_nano(self) -> int:
        """The largest epsilon that one statement may spend now, in 1e-9."""
        left = min(scope.left for scope in self.scopes)
        return left if self.accounting is Accounting.PURE else epsilon_nano_of(left)


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of the slices that a statement reaches: the status of `where`, those of which the least is left."""

    status: Status
    where: Slices


# --- a record as text: one table of fields a kind, which is written and read by ----------------------------------


_ALWAYS = object()


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a record's text: its name there, where the record has it (`promise.together`), its reader and writer.

    `default`: what is not written, and stands for what is not there; a field without one is in every text.
    """

    name: str
    path: str = ""
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None
    default: Any = _ALWAYS


class _Kind:
    """The records of one kind: `made` by what their fields say, beside `seq` and `at`, which all have."""

    def __init__(self, name: str, made: Callable[..., Record], *fields: _Field) -> None:
        self.name, self._made = name, made
        paths = [(one.path or one.name).rpartition(".") for one in fields]
        self._written = [
            (one.name, attrgetter(one.path or one.name), one.write, one.default) for one in fields
        ]
        self._read = [
            (one.name, part, name, one.read, one.default)
            for one, (part, _, name) in zip(fields, paths, strict=True)
        ]
        self._parts = {part for part, _, _ in paths if part}

    def written(self, record: Record) -> dict[str, Any]:
        """Return a record's fields as JSON has them."""
        fields = {"kind": self.name, "seq": record.seq, "at": record.at}
        for name, value_of, write, default in self._written:
            if (value := value_of(record)) != default:
                fields[name] = value if write is None else write(value)
        return fields

    def read(self, fields: dict[str, Any]) -> Record:
        """Return the record of such fields. Raises one of many errors where they are of no record."""
        parts: dict[str, dict[str, Any]] = {part: {} for part in self._parts}
        parts[""] = values = {"seq": fields["seq"], "at": fields["at"]}
        for name, part, attribute, read, default in self._read:
            if default is not _ALWAYS and name not in fields:
                parts[part][attribute] = default
            else:
                parts[part][attribute] = fields[name] if read is None else read(fields[name])
        return self._made(**values, **{part: _PARTS[part](**parts[part]) for part in self._parts})


def _natural(number: object) -> int:
    if type(number) is not int or number < 0:
        raise ValueError("no natural number")
    return number


def _spent(written: list[list[Any]]) -> tuple[tuple[str, Sums], ...]:
    return tuple((name, _sums(sums)) for name, *sums in written)


def _sums(written: list[Any]) -> Sums:
    epsilon, delta, rho = map(_natural, written)
    return epsilon, delta, rho


def _slices(written: dict[str, Any]) -> Slices:
    runs = tuple((_natural(first), _natural(last)) for first, last in written["periods"])
    if type(written["undated"]) is not bool:
        raise ValueError("undated or not")
    return Slices(runs, is_undated=written["undated"], over=Over(written["over"]))


def _slices_text(slices: Slices) -> dict[str, Any]:
    return {"periods": slices.periods, "undated": slices.is_undated, "over": slices.over.value}


def _ends(written: list[Any]) -> Ends:
    until, digest = written
    return _natural(until), _sha256(digest)


def _said(written: dict[str, str]) -> tuple[Ground, ...]:
    if not all(isinstance(said, str) for said in written.values()):
        raise ValueError("nothing that is said of a table")
    return tuple(sorted(written.items()))


def _runs(written: list[Any]) -> tuple[tuple[str, tuple[Run, ...]], ...]:
    return tuple((name, tuple(_run(run) for run in runs)) for name, runs in written)


def _run(written: list[Any]) -> Run:
    first, last, *sums = written
    if type(first) is not int or type(last) is not int or not UNDATED <= first <= last <= MOST_NUMBER:
        raise ValueError("no run of periods")
    return first, last, _sums(sums)


def _runs_text(slices: tuple[tuple[str, tuple[Run, ...]], ...]) -> list[Any]:
    return [[name, [[first, last, *sums] for first, last, sums in runs]] for name, runs in slices]


def _grouping(written: list[Any]) -> Grouping:
    family, keys = written
    return Grouping(
        bytes.fromhex(family),
        tuple(GroupingKey(bytes.fromhex(digest), size, complete) for digest, size, complete in keys),
    )


def _grouping_text(grouping: Grouping) -> list[Any]:
    return [grouping.family.hex(), [[key.digest.hex(), key.size, key.is_complete] for key in grouping.keys]]


def _known_digest(name: str) -> str:
    if name not in ("", DIGEST):
        raise ValueError("unknown checksum")
    return name


def _sha256(written: str) -> str:
    if not is_digest(written):
        raise ValueError("no digest")
    return written


def _known_format(number: object) -> int:
    if type(number) is not int or not 1 <= number <= FORMAT:
        raise ValueError("unknown format")
    return number


_PARTS: dict[str, Callable[..., object]] = {"promise": Promise, "charge": Charge}
_SPENT = _Field("spent", read=_spent, write=lambda spent: [[name, *sums] for name, sums in spent])
_ENDS = _Field("ends", read=_ends, write=list, default=None)
_TIMES = _Field("times", read=_said, write=dict, default=())
_UNITS = _Field("whose", read=_said, write=dict, default=())
_WHOSE = (
    _Field("dataset"), _Field("format", read=_known_format), _Field("log", default=""), _Field("salt", default=""),
    _Field("neighbours", "promise.neighbours", default=""), _Field("together", "promise.together", default=1),
    _Field("accounting", "promise.accounting", Accounting, attrgetter("value"), default=Accounting.PURE),
    _Field("conversion_delta_atto", "promise.conversion_delta_atto", default=0),
    _Field("period", "promise.period", Period, attrgetter("value"), default=None),
    _Field("zone", "promise.zone", default="UTC"),
    _Field("since", "promise.since", date.fromisoformat, date.isoformat, default=None),
)  # fmt: skip
_KINDS: dict[type[Record], _Kind] = {
    Header: _Kind("header", Header, *_WHOSE),
    Segment: _Kind(
        "segment", Segment, *_WHOSE, _Field("number", read=_natural), _Field("start", read=_natural), _Field("epoch"),
        _SPENT, _Field("slices", read=_runs, write=_runs_text, default=()), _ENDS, _TIMES, _UNITS,
    ),
    Entry: _Kind(
        "entry", Entry, *map(_Field, ("epoch", "analyst", "statement", "note")),
        _Field(
            "measures", read=lambda keys: tuple(map(bytes.fromhex, keys)), write=lambda keys: [k.hex() for k in keys]
        ),
        _Field("scale", "law", law_of, attrgetter("text")),
        *(_Field(name, f"charge.{name}") for name in ("epsilon_nano", "delta_atto", "rho_atto")),
        _Field("digest", read=_known_digest, default=""), _Field("certificate", read=_sha256, default=None),
        _Field("grouping", read=_grouping, write=_grouping_text, default=None),
        _Field("grounds", read=lambda grounds: tuple((of, said) for of, said in grounds), default=None),
        _Field("slices", read=_slices, write=_slices_text, default=None), _ENDS, _TIMES, _UNITS,
    ),
    Grant: _Kind("grant", Grant, *map(_Field, ("analyst", "epsilon_nano", "by"))),
    EpochStart: _Kind(
        "epoch", EpochStart, _Field("epoch"), _Field("retired", read=_slices, write=_slices_text, default=None)
    ),
    Move: _Kind(
        "move", Move, *map(_Field, ("conversion_delta_atto", "by")),
        _Field("accounting", read={Accounting.ZCDP.value: Accounting.ZCDP.value}.__getitem__),
    ),
    Division: _Kind(
        "division", Division, _Field("period", read=Period, write=attrgetter("value")), _Field("zone"),
        _Field("since", read=date.fromisoformat, write=date.isoformat),
        _Field("slices", read=_slices, write=_slices_text), _SPENT, _Field("by"), _ENDS, _TIMES, _UNITS,
    ),
    KeyCheck: _Kind(
        "key", KeyCheck, *map(_Field, ("epoch", "table", "version", "holds", "dpsql", "by")),
        _Field("columns", read=tuple),
    ),
    Clock: _Kind("clock", Clock, _Field("by")),
}  # fmt: skip
_NAMED = {kind.name: kind for kind in _KINDS.values()}


def record_text(record: Record, after: str | None = None) -> str:
    """Return the record as one line of canonical JSON (without a newline); `after`: the sha256 of the one before."""
    fields = _KINDS[type(record)].written(record) | ({} if after is None else {"after": after})
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def read_record(text: str) -> Record:
    """Return the record that `record_text` wrote; an Entry as it was reserved.

    Raises LedgerError for text that this version did not write.
    """
    return read_linked(text)[0]


def read_linked(text: str) -> tuple[Record, str | None]:
    """Return the record, and the sha256 of the one that it says it comes after. Raises as `read_record`."""
    known = _lately_read.get(text)
    if known is not None:
        return known
    try:
        fields = json.loads(text)
        kind = _NAMED[fields["kind"]]
        record = kind.read(fields)
        after = _sha256(fields["after"]) if "after" in fields else None
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, RecursionError) as error:
        raise _unreadable() from error
    if record_text(record, after) != text:
        raise _unreadable()
    _lately_read.put(text, (record, after))
    return record, after


_lately_read: Cache[tuple[Record, str | None]] = Cache(200_000, lambda text, _: len(text))
"""Records by their texts, of so many characters: a release has its own read at each station."""


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


# --- draws as they are stored -------------------------------------------------------------------------

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
