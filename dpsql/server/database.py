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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..budget import Charge, LedgerStore, Status
from ..engine.dataset import Dataset
from ..engine.retired import grounds_under, retired
from ..errors import DpsqlError, LedgerError, PolicyError
from ..pgwire import Verifier, mock_verifier
from ..policy import Policy, is_open_to_others, load_policy
from ..policy.catalog import database_names
from ..sql.text_process import TextProcess
from ..waits import Precedence
from .identity import Identity, Voucher, analyst_of
from .processes import OneOf, Place
from .report import Seldom, Tally, log, place_of
from .sessions import Sessions

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
