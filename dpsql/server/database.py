"""One policy that is served, under its name: its sessions, its ledger's health, and what is counted of it.

House rule: several policies on one port share the port, the certificate, the threads and what strangers may do. Users,
budgets, catalogs, counts and what is remembered are each one's own: nothing here knows of another database.

House rules for the witness outside, who is told what a ledger has come to beside the charges (soundness.md 3.19):

1. No charge, no answer and no other ledger waits for a witness: it is told from a thread of its own.
2. A witness that fails is told to the operator, and is told again later. It refuses nobody.
3. A command is run as it was given, without a shell; it gets the note alone, on its standard input.

House rules for who may connect:

1. Before a password was right, a name of a database that is not there, or is another's, meets the same dialogue as a
   user's own: the salt is that of the user's first policy. Who has proved a password of that user is then told that the
   database does not exist (3D000), also of one that does exist and has no such user.
2. Users that do not exist have salts too, the same at every try and after a restart.
3. A name in two policies is two users with a password each. Their salts differ, unless the line was copied: so a
   stranger who knows the user's name and both databases' can find out that the user is in both.

House rules for sessions on the dataset, which is opened anew when policy or tables have changed:

1. A session stays on the dataset that it was opened on. When the policy says something else to its analyst, or the
   tables have changed, its connection has to end: plans, types that were described and caps are of the old one.
2. A dataset is closed when the last session on it is: a charge that runs is never given up.

House rules, replies that are remembered by the bytes that they answer:

1. Remembered is how an answer was written, never whether it may be given. The session is asked each time
   (`Session.recall`: settings, access, epoch, stored answers, budget), and the reply is sent only where it gives the
   very rows that were written. Whatever has it forget an answer, or give another, ends the reply with it: a refresh, a
   new draw, a setting, a clock that is read, a public table that is.
2. NOTICEs are written anew each time: what is left of the budget, and what is told once, is of now.
3. The key is all else that decides how rows are written: the bytes, the client's settings and dpsql's own, what the
   analyst sees, and the prepared statement that is bound.
4. A batch is one query of the session's, outside a block, with no cursor open: a Query; or Bind, Describe, Execute and
   Sync, of a statement that is prepared or of one that is parsed without a name before. It leaves the connection as it
   found it, but for that statement.
5. They belong to a dataset, which another policy, or other tables, are not; `MOST_BYTES` of them, the latest.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import stat
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from .. import pgwire
from ..budget import Charge, LedgerStore, Status
from ..cache import Cache
from ..engine import Session
from ..engine.dataset import Dataset
from ..engine.spine import StatementTurns
from ..engine.stored import grounds_under, retired
from ..errors import DpsqlError, EngineFailure, LedgerError, PolicyError
from ..memory import MIB, MemoryLimits, ResultMemory, give_back
from ..pgwire import Verifier, mock_verifier
from ..policy import Access, Analyst, Policy, ServerPolicy, is_open_to_others, load_policy
from ..policy.catalog import database_names
from ..records import dataclass
from ..relation.catalog import Catalog
from ..sql.text_process import TextProcess
from ..system_catalog import SystemCatalog
from ..waits import Pace, Precedence, Stop, Stopped, until
from .identity import Identity, Voucher, analyst_of
from .processes import OneOf, Place
from .report import Seldom, Tally, log, place_of
from .state import VERSION, VERSION_TEXT, PreparedStatement
from .statements import Query, Statement

# --- replies that are remembered by the bytes that they answer ----------------------------------------------


MOST_BYTES = 16 * 2**20
LONGEST = 16 * 1024
"""Bytes of a batch that is remembered."""
_LARGEST = 64 * 1024
"""Bytes of a reply that is remembered."""
_ROWS_FACTOR = 8
"""How many bytes the rows take that a byte of them keeps alive, at most about."""
_OVERHEAD = 2000


Key = tuple[bytes, Hashable, Hashable, Hashable]
"""The bytes of a batch, the statement that it binds, the settings, and what the analyst sees."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as it was sent: `before` its notices, and `after` them; to the query `text` with `values`.

    `rows`: those that were written. `unnamed`: the statement that Parse left behind; None where there was no Parse.
    """

    text: str
    values: tuple[object, ...]
    rows: Sequence[tuple[object, ...]]
    before: bytes
    after: bytes
    unnamed: PreparedStatement | None


@dataclass(slots=True)
class Batch:
    """What came at once, while it is answered: under which key its reply would be remembered, and what is in it."""

    key: Key
    events: list[pgwire.Event] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    sent: bytes = b""

    def take(self, data: bytes) -> bool:
        """Take what is sent of the reply; False where it is not one small whole."""
        is_whole, self.sent = not self.sent and len(data) <= _LARGEST, data
        return is_whole

    def parts(self) -> tuple[Query, bytes, bytes] | None:
        """Return its one query, and what was sent before and after the notices; None where it is no batch (rule 4)."""
        if (
            len(self.statements) != 1
            or not isinstance(self.statements[0], Query)
            or not is_batch(self.events)
        ):
            return None
        found = _notices(self.sent)
        return None if found is None else (self.statements[0], self.sent[: found[0]], self.sent[found[1] :])

    @property
    def parses(self) -> bool:
        """Whether it leaves an unnamed statement behind."""
        return isinstance(self.events[0], pgwire.Parse)


class Replies(Cache[Reply]):
    """The remembered replies of a dataset, for all who see the same of it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(most_bytes, _size)


def _size(key: Key, reply: Reply) -> int:
    """Return how many bytes a reply takes, at most about."""
    sent = len(reply.before) + len(reply.after)
    return _OVERHEAD + len(key[0]) + len(reply.text) + _ROWS_FACTOR * sent


def statement_name(data: bytes) -> str | None:
    """Return which statement a batch binds without a Parse; "" also for one that binds none so; None for no batch."""
    if len(data) < 6 or len(data) > LONGEST:
        return None
    if data[0] in b"QP":
        return "" if data[0] == ord("Q") or data[5] == 0 else None
    end = data.find(0, 6)
    if data[0] != ord("B") or data[5] != 0 or end < 0:
        return None
    return data[6:end].decode(errors="replace")


def is_batch(events: Sequence[pgwire.Event]) -> bool:
    """Return whether these messages, and no others, are one query of one kind of batch (rule 4)."""
    match events:
        case [pgwire.Query()]:
            return True
        case [pgwire.Parse(statement=""), pgwire.Bind(statement=""), *_]:
            events = events[1:]
    match events:
        case [pgwire.Bind("", name), *describes, pgwire.Execute("", 0), pgwire.Sync()]:
            allowed = (
                pgwire.Describe(pgwire.Target.PORTAL, ""),
                pgwire.Describe(pgwire.Target.STATEMENT, name),
            )
            return all(one in allowed for one in describes)
    return False


_BEFORE = b"12tTnD"
_NOTICE, _LAST = ord("N"), b"CZ"


def _notices(sent: bytes) -> tuple[int, int] | None:
    """Return where the notices of a reply begin and end; None where it is not rows, notices, the tag and ready."""
    tags, places, place = bytearray(), [], 0
    while place < len(sent):
        tags.append(sent[place])
        places.append(place)
        place += 1 + int.from_bytes(sent[place + 1 : place + 5], "big")
    body, last = tags[:-2], bytes(tags[-2:])
    rows = body.rstrip(b"N")
    if last != _LAST or sent[-1:] != b"I" or rows.translate(None, _BEFORE):
        return None
    return (places[len(rows)], places[len(body)])


# --- the dataset that all connections share, and the sessions on it -----------------------------------------


_IDLE_SECONDS = 30.0
_FILE_SECONDS = 1.0
"""How long after the last statement began a database is kept open; a DuckDB file, which nobody can write meanwhile."""

_OPEN_SECONDS = 120.0
"""How long a dataset may take to be opened anew: a peer that is silent holds up no login, and no reload, for longer."""
_TRIM_SECONDS, _TRIM_UNTIL = 10.0, 120.0


@dataclass
class _Opened:
    """A dataset, and what connections to it share. `users`: sessions on it; `is_stale`: its tables have changed."""

    dataset: Dataset
    catalogs: dict[Access, SystemCatalog]
    replies: Replies = field(default_factory=Replies)
    users: int = 0
    is_stale: bool = False


class Sessions:
    """Opens sessions on the current dataset; every method may be called from any thread."""

    def __init__(
        self,
        policy: Policy,
        precedence: Precedence,
        texts: TextProcess,
        processes: int = 1,
        place: Place | None = None,
    ) -> None:
        """Open the dataset; `precedence` and `texts`: of all that share the interpreter; `processes`: how many serve,
        and `place`, what they share.

        Raises PolicyError, LedgerError, EngineFailure: the owner has to mend something.
        """
        self._lock = threading.Lock()
        self.memory = ResultMemory(_limits(policy.server).part(processes))
        self._place = place
        self._precedence, self._texts = precedence, texts
        self._untidied = Seldom("ledger not tidied")
        self._turns = self._turns_of(policy)
        self._current = self._open(policy)
        self._opened = {id(self._current.dataset): self._current}
        self._used = self._trimmed = time.monotonic()

    @property
    def dataset(self) -> Dataset:
        """What new sessions are opened on."""
        return self._current.dataset

    def catalog(self, session: Session) -> SystemCatalog:
        """Return the system catalog of what a session's analyst sees of its dataset."""
        return self._opened[id(session.dataset)].catalogs[session.access]

    def replies(self, session: Session) -> Replies:
        """Return what is remembered of the replies about a session's dataset."""
        return self._opened[id(session.dataset)].replies

    def pace(self, analyst: str) -> Pace:
        """Return what an analyst's large answers are sent in."""
        return self._turns.pace(analyst)

    def open(self, analyst: str, kind: type[Session] = Session) -> Session:
        """Return a new session, on the tables as they are now. Raises as `__init__` does."""
        with self._lock:
            if self._current.is_stale:
                self._swap(self._open(self.dataset.policy))
            if analyst not in self.dataset.policy.analysts:  # taken out since the login
                raise PolicyError("this analyst is not in the policy")
            session = kind(self.dataset, analyst, is_shared=True, turns=self._turns)
            self._current.users += 1
            return session

    def take_in(self, member: Analyst) -> None:
        """Have a member of a group be an analyst, or an analyst another cap: no session ends for it."""
        with self._lock:
            self.dataset.take_in(member)

    def close(self, session: Session) -> None:
        """Let a session go, and its dataset with the last one if it is no longer the current one."""
        session.close()
        with self._lock:
            opened = self._opened[id(session.dataset)]
            opened.users -= 1
            if opened is not self._current:
                self._close_unused(opened)

    def is_current(self, session: Session) -> bool:
        """Return whether a session may go on: neither its policy nor the tables have changed since it was opened."""
        opened, analyst = self._opened.get(id(session.dataset)), session.analyst
        if opened is None or opened.is_stale:
            return False
        current = self.dataset.policy
        return opened is self._current or session.policy.as_for(analyst) == current.as_for(analyst)

    def replace(self, policy: Policy) -> None:
        """Have another policy from here on. Raises as `__init__` does, and then all stays as it was."""
        opened = self._open(policy)
        with self._lock:
            self._turns = self._turns_of(policy)
            self._swap(opened)

    def retire(self, session: Session) -> None:
        """Take note that the tables are no longer as a session's dataset has them."""
        self._opened[id(session.dataset)].is_stale = True

    def used(self) -> None:
        """Take note that a statement runs."""
        self._used = time.monotonic()

    def rest(self) -> None:
        """Let the database go for a while if nobody has asked anything lately: a file's owner can write it then.

        Memory that nobody uses any more is given back now and then, until long after the last statement; and the ledger
        does what no charge has to wait for.
        """
        try:
            self.dataset.store.tidy()
        except LedgerError as error:
            self._untidied.log(reason=error.message, database=self.dataset.policy.path.stem)
        now = time.monotonic()
        rested = now - self._used
        if rested < _TRIM_UNTIL and now - self._trimmed > _TRIM_SECONDS:
            give_back()
            self._trimmed = time.monotonic()
        if rested <= _FILE_SECONDS:
            return
        with self._lock:
            known = [opened.dataset for opened in self._opened.values()]
        for dataset in known:
            is_file = dataset.policy.database.startswith("duckdb:") and dataset.policy.files is None
            if is_file or rested > _IDLE_SECONDS:
                dataset.backend.close_idle()

    def forget_last_read(self) -> None:
        """Have no stored answer be given without the ledger before it is read again (soundness.md 3.17)."""
        with self._lock:
            for opened in self._opened.values():
                opened.dataset.last_read.forget()

    def tell_answered_away(self) -> None:
        """Write a line of the log for each answer that was given while the ledger was away. Once it is back."""
        with self._lock:
            known = [opened.dataset for opened in self._opened.values()]
        for dataset in known:
            for analyst, at in dataset.last_read.take_noted():
                log("answered away", analyst=analyst, given=at, database=dataset.policy.path.stem)

    def shut(self) -> None:
        """Close the current dataset, unless a session is still on it."""
        self.tell_answered_away()  # or nobody would
        with self._lock:
            self._close_unused(self._current)

    def _turns_of(self, policy: Policy) -> StatementTurns:
        shared = None if self._place is None else self._place.turn
        return StatementTurns(
            policy.server.public_at_once, self._precedence, policy.path.stem, self._texts, shared
        )

    def _swap(self, opened: _Opened) -> None:
        self._opened[id(opened.dataset)] = opened
        old, self._current = self._current, opened
        self._close_unused(old)

    def _open(self, policy: Policy) -> _Opened:
        try:
            with until(Stop.after(_OPEN_SECONDS)):
                dataset = Dataset.open(policy, memory=self.memory, leaves_core=True)
        except Stopped:
            raise EngineFailure("open: the database, or the ledger, did not answer in time") from None
        if dataset.store.lost:
            log("answers lost", reason=dataset.store.lost, database=policy.path.stem)
        told = Seldom("not verified")
        dataset.tell = lambda reason: told.log(reason=reason, database=policy.path.stem)
        try:
            known = (*policy.analysts.values(), *policy.groups.values())
            kinds = dict.fromkeys(one.access for one in known)
            return _Opened(
                dataset, {access: system_catalog(dataset.seen_by(access), policy) for access in kinds}
            )
        except BaseException:
            dataset.close()
            raise

    def _close_unused(self, opened: _Opened) -> None:
        if opened.users:
            return
        del self._opened[id(opened.dataset)]
        for catalog in opened.catalogs.values():
            catalog.close()
        opened.dataset.close()


def _limits(server: ServerPolicy) -> MemoryLimits:
    memory = None if server.memory_mib is None else server.memory_mib * MIB
    return MemoryLimits.of(memory, None if server.files_mib is None else server.files_mib * MIB)


def system_catalog(seen: Catalog, policy: Policy) -> SystemCatalog:
    """Return the system catalog of what an analyst sees. Raises EngineFailure."""
    return SystemCatalog(seen, has_delta=policy.has_delta, version=VERSION, version_text=VERSION_TEXT)


# --- who may connect ----------------------------------------------------------------------------------------


class Logins:
    """The analysts of the served policies who may connect: by a password, or by the word of who vouches for them."""

    def __init__(self, policies: Sequence[Policy], secret: bytes) -> None:
        """`secret`: a dataset's, so that unknown names meet the same salts after a restart as before.

        Raises PolicyError, as `verifiers_of` and `places_by_name`.
        """
        self._known = [verifiers_of(policy) for policy in policies]
        self._named = [
            set(known) if policy.server.auth is None else set(policy.analysts)
            for policy, known in zip(policies, self._known, strict=True)
        ]
        self._places = places_by_name(policies)
        self._users = {user for named in self._named for user in named}
        self._secret = hmac.digest(secret, b"dpsql: users that do not exist", "sha256")
        self._iterations = sorted({one.iterations for known in self._known for one in known.values()})

    def __len__(self) -> int:
        """How many users there are: a name in two policies is two."""
        return sum(map(len, self._named))

    def __contains__(self, user: str) -> bool:
        return user in self._users

    def verifier(self, user: str, database: str) -> Verifier:
        """Return whose password has to be proved; that of a name without one looks no different, and none fits it."""
        digest = hashlib.sha256(self._secret + user.encode(errors="surrogatepass")).digest()
        iterations = self._iterations[digest[0] % len(self._iterations)]
        mock = mock_verifier(self._secret, user, iterations=iterations)
        return self._known[self.place(user, database)].get(user, mock)

    def place(self, user: str, database: str) -> int:
        """Return the place of the policy whose password has to be proved: the user's first, where none is meant."""
        found = self.find(user, database)
        return next(iter(self.places_of(user)), 0) if found is None else found

    def find(self, user: str, database: str) -> int | None:
        """Return the place of the policy that a user means by a database's name; None for one without that user."""
        index = self._places.get(database)
        return None if index is None or user not in self._named[index] else index

    def places_of(self, user: str) -> list[int]:
        """Return the places of the policies in which a name may connect."""
        return [index for index, named in enumerate(self._named) if user in named]

    def place_of(self, database: str) -> int:
        """Return the place of the policy that a database's name means; of a name that means none, the first's."""
        return self._places.get(database, 0)


def places_by_name(policies: Sequence[Policy]) -> dict[str, int]:
    """Return which of the policies each name of a database means; a dataset's name that two have means neither.

    Raises PolicyError: two have one name.
    """
    datasets = Counter(policy.dataset_id for policy in policies)
    known: dict[str, int] = {}
    for place, policy in enumerate(policies):
        for name in dict.fromkeys(database_names(policy)):
            if name == policy.dataset_id and datasets[name] > 1 and name != policy.path.stem:
                continue
            if (other := known.setdefault(name, place)) != place:
                raise PolicyError(
                    f'{policies[other].path} and {policy.path} would both be the database "{name}"',
                    hint="a database has the name of its policy's file: rename one, or name each policy once",
                )
    return known


def verifiers_of(policy: Policy) -> dict[str, Verifier]:
    """Return the verifiers of a policy by name; none where others vouch for analysts.

    Raises PolicyError: one cannot be read, or nobody could connect.
    """
    if policy.server.auth is not None:
        if not policy.analysts and not policy.groups:
            raise PolicyError(
                f"{policy.source}: analysts: there are none, nor groups, so nobody could connect",
                hint="write [analysts.NAME] with an epsilon, or [groups.NAME] with member_of",
            )
        return {}
    found = {
        name: _parse(policy, name, analyst.password)
        for name, analyst in policy.analysts.items()
        if analyst.password is not None
    }
    if not found:
        raise PolicyError(
            f"{policy.source}: analysts: nobody has a password, so nobody could connect",
            hint="dpsql user add NAME prints the line to write",
        )
    return found


def _parse(policy: Policy, name: str, text: str) -> Verifier:
    try:
        return Verifier.parse(text)
    except ValueError as error:
        raise PolicyError(f'{policy.source}: analysts."{name}".password: {error}') from None


# --- tells a witness outside what a ledger has come to, beside the charges (soundness.md 3.19) --------------


_EVERY_RECORDS = 100
_EVERY_SECONDS = 60.0
"""After so long a witness is told of a single record, too."""
_LOOK_SECONDS = 2.0
_LONGEST_SECONDS = 30.0


class Witness:
    """The witness of one ledger: a file, or a command. Called from one thread at a time."""

    def __init__(self, file: Path | None, command: Sequence[str], database: str) -> None:
        self._file, self._command, self._database = file, tuple(command), database
        self.records = 0
        """How many records the witness was told of last."""
        self.failures = 0
        self._failed = Seldom("witness failed")
        self._next_look = self._told_at = float("-inf")
        self._teller: threading.Thread | None = None
        self._is_late = False

    def look(self, store: LedgerStore) -> None:
        """Begin to tell the witness what is new, where that is much or some time ago. Raises LedgerError."""
        now = time.monotonic()
        if self._teller is not None and self._teller.is_alive():
            if now - self._told_at > 2 * _LONGEST_SECONDS and not self._is_late:
                self._is_late = True
                self._fail("it does not answer")
            return
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        note = store.note()
        new = 0 if note is None else note.records - self.records
        if note is None or not new or (new < _EVERY_RECORDS and now - self._told_at < _EVERY_SECONDS):
            return
        self._told_at, self._is_late = now, False
        line, records = note.text + "\n", note.records
        self._teller = threading.Thread(target=self._tell, args=(line, records), daemon=True)
        self._teller.start()

    def _tell(self, line: str, records: int) -> None:
        try:
            if self._file is not None:
                append_note(self._file, line.encode("ascii"))
            else:
                ended = subprocess.run(
                    self._command,
                    input=line.encode("ascii"),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=_LONGEST_SECONDS,
                )
                if ended.returncode:
                    self._fail(f"its exit code is {ended.returncode}")
                    return
        except subprocess.TimeoutExpired:
            self._fail(f"it has not ended within {_LONGEST_SECONDS:g} seconds")
        except OSError as error:
            self._fail(os.strerror(error.errno) if error.errno else type(error).__name__)
        else:
            self.records = records

    def _fail(self, reason: str) -> None:
        self.failures += 1
        self._failed.log(reason=reason, database=self._database)


def append_note(file: Path, line: bytes) -> None:
    """Add a line to a witness' file, durably; a line that was cut there before keeps its own. Raises OSError."""
    fd = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("no file")
        if found.st_size and os.pread(fd, 1, found.st_size - 1) != b"\n":
            line = b"\n" + line
        while line:
            line = line[os.write(fd, line) :]
        os.fsync(fd)
    finally:
        os.close(fd)


# --- one policy that is served, under its name --------------------------------------------------------------


class Health:
    """`is_good`: as of the last look. Each change is a line of the log, which alone says why."""

    def __init__(self, probe: Callable[[], object], pool: Executor, seconds: float, database: str) -> None:
        """`probe` looks at a database's ledger and raises where it cannot be used; every `seconds`, on the pool."""
        self.is_good = True
        self._probe, self._pool, self._seconds, self._database = probe, pool, seconds, database

    async def watch(self) -> None:
        """Look until cancelled. A look that takes longer than the time between two counts as failed."""
        loop = asyncio.get_running_loop()
        while True:
            look = loop.run_in_executor(self._pool, self._probe)
            look.add_done_callback(_heard)
            done, _ = await asyncio.wait({look}, timeout=self._seconds)
            if not done:
                self._set(False, "the ledger does not answer")
                await asyncio.wait({look})
            error = look.exception()
            if error is None:
                self._set(True)
            elif isinstance(error, DpsqlError):
                self._set(False, error.message)
            else:
                self._set(False, place_of(error))
            await asyncio.sleep(self._seconds)

    def _set(self, is_good: bool, reason: str | None = None) -> None:
        if is_good is self.is_good:
            return
        self.is_good = is_good
        if is_good:
            log("healthy", database=self._database)
        else:
            log("unhealthy", reason=reason, database=self._database)


def _heard(look: asyncio.Future[object]) -> None:
    """Take note of how a look ended, which nobody may be waiting for any more: the server stops."""
    if not look.cancelled():
        look.exception()


_LEVELS = (80, 95)
"""Per cent of a cap."""


class BudgetWatch:
    """Looks at a ledger; each level of each cap is told once, and again once the cap was raised above it."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._spent: Charge | None = None
        self._told: dict[tuple[str, str], int] = {}
        self._has_told_clock = False

    def look(self, store: LedgerStore, analysts: Iterable[str]) -> None:
        """Warn where a cap of all, or of one of `analysts`, has reached a level. Raises LedgerError."""
        status = store.status()
        self._tell("everybody", status)
        if status.clock and not self._has_told_clock:
            log("clock not taken", reason=status.clock, database=self._database)
        self._has_told_clock = bool(status.clock)
        spent = store.spent()
        if spent != self._spent:
            for name in analysts:
                self._tell(name, store.status(name))
            self._spent = spent

    def _tell(self, name: str, status: Status) -> None:
        for owner, what, percent in _shares(name, status):
            if owner != name:
                continue
            level = max((level for level in _LEVELS if level <= percent), default=0)
            if level > self._told.get((name, what), 0):
                log("budget low", of=name, what=what, percent=percent, database=self._database)
            self._told[name, what] = level


def _shares(name: str, status: Status) -> Iterator[tuple[str, str, int]]:
    """Yield whose each cap is, of what, and how many per cent of it are spent."""
    unit = "rho" if status.in_rho else "epsilon"
    for scope in status.scopes:
        what = f"{unit} until {scope.until}" if scope.until else unit
        owner = name if scope.whose.startswith("your own") else "everybody"
        yield owner, what, _percent(scope.spent, scope.cap)
    yield "everybody", "delta", _percent(status.delta_spent_atto, status.delta_cap_atto)


def _percent(spent: int, cap: int) -> int:
    return 100 * spent // cap if cap else 0


class Database:
    """What is served of one policy; `name`: the policy file's, without its ending."""

    def __init__(
        self, policy: Policy, pool: Executor, probe_seconds: float, precedence: Precedence, texts: TextProcess,
        one_of: OneOf | None = None, place: Place | None = None,
    ) -> None:  # fmt: skip
        """Try whether database and ledger can be opened. Raises PolicyError, LedgerError, EngineFailure.

        `one_of` and `place`: where several processes serve, of which the first alone tells what each would tell.
        """
        self.policy, self.name = policy, policy.path.stem
        self.sessions = Sessions(policy, precedence, texts, 1 if one_of is None else one_of.of, place)
        self._tells = one_of is None or one_of.number == 0
        self.tally = Tally(self.name)
        self.health = Health(self._look, pool, probe_seconds, self.name)
        self._budget_watch = BudgetWatch(self.name)
        self._pool = pool
        self._changing = threading.Lock()
        self.witness: Witness | None = None

    def rest(self) -> None:
        """Do what no charge has to wait for; the witness, where there is one, is told beside it."""
        self.sessions.rest()
        if self.witness is not None:
            with suppress(LedgerError):  # which `health` tells
                self.witness.look(self.sessions.dataset.store)

    def take_in(self, voucher: Voucher, identity: Identity, user: str) -> str | None:
        """Return the analyst that a person is; None: none. A member of a group is an analyst from here on, with what
        the group has now. Called from a thread: it waits while the policy is read anew."""
        with self._changing:
            analyst = analyst_of(self.policy, voucher, identity, user)
            if analyst is None:
                return None
            if self.policy.analysts.get(analyst.name) != analyst:
                self.sessions.take_in(analyst)
                self.policy = self.policy.with_member(analyst)
            return analyst.name

    def secret(self) -> bytes:
        """Return the secret of the ledger. Raises LedgerError."""
        return self.sessions.dataset.store.secret()

    def status(self) -> Status:
        """Return what is spent, and what may be. Raises LedgerError."""
        return self.sessions.dataset.store.status()

    async def reload(self) -> bool:
        """Read the policy anew, for the sessions to come; return whether it could be, which the log says too.

        What cannot be read stays as it was. Raises nothing.
        """
        loop, before = asyncio.get_running_loop(), self.sessions.dataset
        try:
            policy = await loop.run_in_executor(self._pool, load_policy, self.policy.path)
            _check_same_dataset(self.policy, policy)
            verifiers_of(policy)
            await loop.run_in_executor(self._pool, self._replace, policy)
        except DpsqlError as error:
            self.sessions.forget_last_read()
            log("reload refused", what="policy", reason=error.message, database=self.name)
            return False
        log("reloaded", what="policy", database=self.name)
        self.look_at_policy()
        await loop.run_in_executor(self._pool, self._tell_retired, before, self.sessions.dataset)
        return True

    def _replace(self, policy: Policy) -> None:
        with self._changing:
            policy = _with_members(policy, self.policy)
            self.sessions.replace(policy)
            self.policy = policy

    def _tell_retired(self, before: Dataset, after: Dataset) -> None:
        """Log how many stored answers an edit has retired, and what they cost."""
        known, now = (grounds_under(one.policy, one.catalog) for one in (before, after))
        if known <= now:
            return
        try:
            gone = retired(after.store.resting(), now, known)
        except LedgerError:
            return  # which `Health` tells
        if gone.number:
            by = ", ".join(f"{name} ({number})" for name, number in gone.by)
            cost = gone.cost(after.policy.privacy.accounting)
            log("answers retired", number=gone.number, cost=cost, by=by, database=self.name)

    def look_at_policy(self) -> None:
        """Warn of a policy that others can read, and of its views that are left out."""
        for table, reason in self.sessions.dataset.catalog.left_out.items():
            log("left out", table=table, reason=reason, database=self.name)
        if is_open_to_others(self.policy):
            log("policy readable", database=self.name)

    def _look(self) -> None:
        """Raise LedgerError where the ledger cannot be used; warn of what is nearly spent."""
        store = self.sessions.dataset.store
        if self._tells:
            self._budget_watch.look(store, list(self.policy.analysts))
        else:
            store.status()
        self.sessions.tell_answered_away()


def _with_members(policy: Policy, before: Policy) -> Policy:
    """Return a policy with the members who have logged in, each with what the group has in it, if it is there still."""
    for name in sorted(before.members):
        group = next(
            (one for one in policy.groups.values() if one.identity == before.analysts[name].identity), None
        )
        if group is not None and name not in policy.analysts:
            policy = policy.with_member(replace(group, name=name))
    return policy


def _check_same_dataset(old: Policy, new: Policy) -> None:
    """Raise PolicyError where a policy means other data or another ledger, which takes a new start."""
    if (old.database, old.ledger, old.dataset_id) != (new.database, new.ledger, new.dataset_id):
        raise PolicyError(f"{new.source}: names another database, ledger or dataset; start the server anew")
    if old.server.auth != new.server.auth:
        raise PolicyError(f"{new.source}: has another auth in [server]; start the server anew")
    before, now = old.privacy, new.privacy
    if (before.neighbours, before.together) != (now.neighbours, now.together):
        raise PolicyError(
            f"{new.source}: says other privacy.neighbours or privacy.together, which takes a new ledger"
        )
