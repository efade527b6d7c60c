"""What the owner declares, as frozen values: the policy file after reading, before it meets the database.

Numbers are exact (`Fraction`); text stands for nothing but itself. A declaration chooses a bound; it
never stands in for a constraint that the engine enforces (law L9).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from ..records import dataclass
from ..relation.catalog import References

FILES = "duckdb:"
"""The `database` of a policy whose tables are all files."""

SPARK = "spark://"
"""How the `database` of a policy begins whose tables are recorded versions of what a Spark reads."""

Bound = Fraction | date | datetime
"""One end of `bounds`: a number, a local date, or a local date-time (taken as UTC)."""

Key = bool | Fraction | str | date | datetime | None
"""One of `values`, as the file has it; None is the NULL key, written `{ null = true }`."""


class Neighbours(enum.Enum):
    """Which two databases must look alike: one unit more or less, or one unit replaced by another."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


class Accounting(enum.Enum):
    """What is added up over statements, and kept under the lifetime cap: epsilon, or rho (zCDP)."""

    PURE = "pure"
    ZCDP = "zcdp"


class Verify(enum.Enum):
    """What becomes of a statement whose plan is not verified: it is refused, or it is run and the log says so."""

    REFUSE = "refuse"
    LOG = "log"


class Period(enum.Enum):
    """How long a ration is for, in UTC. A week begins on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Rationing:
    """What may be spent in each period inside the lifetime cap; `epsilon`: by everybody together, None: no such cap.

    `carries`: what is left over may be spent later. It protects nobody: the lifetime cap does (soundness.md 3.12).
    """

    period: Period
    epsilon: Fraction | None
    carries: bool


@dataclass(frozen=True, slots=True)
class Time:
    """A budget for each period of the data: what is protected is one person's rows of one `period` (soundness.md 1.40).

    Periods are those of `zone`, the first of them that of `since`: rows before it never count. A period is answered
    from when it is over by `settle`, in which late rows may come. `windows`: what a person may lose who is in each of
    so many periods in a row, and `person` who is in all (soundness.md 3.22). `is_open`: statements may ask for periods
    that are not over, each day anew. `retention`: of so many periods rows are read, the last ones; None: of all.
    """

    period: Period
    since: date
    zone: str = "UTC"
    settle: timedelta = timedelta(days=3)
    windows: tuple[tuple[int, Fraction], ...] = ()
    person: Fraction | None = None
    is_open: bool = False
    retention: int | None = None


@dataclass(frozen=True, slots=True)
class LifetimeCap:
    """The lifetime cap for everybody together: `epsilon` in steps of 1e-9, `delta` in steps of 1e-18.

    `together`: the promise holds for any so many units together (soundness.md 1.19). `accounting`: how losses add up
    under the cap (3.11). `conversion_delta`: under zCDP, the part of `delta` at which the sum of rho is `epsilon`; the
    rest is for groups that are found in the data. 0 otherwise. `rationing`: caps by the period inside. `verify`: what
    becomes of a plan that is not verified; None: what is usual for the engine. `time`: the cap is of each period of the
    data, and of undated rows; None: of all data together.
    """

    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours
    together: int = 1
    accounting: Accounting = Accounting.PURE
    conversion_delta: Fraction = Fraction(0)
    rationing: Rationing | None = None
    verify: Verify | None = None
    time: Time | None = None

    @property
    def threshold_delta(self) -> Fraction:
        """What all groups that are found in the data may spend of delta."""
        return self.delta - self.conversion_delta


@dataclass(frozen=True, slots=True)
class Defaults:
    """Per statement: `epsilon` when the analyst sets none, `max_epsilon` whatever the analyst sets.

    `delta`: per release with undeclared keys. `minimum_units`: a thresholded key with fewer privacy units
    than this is never published (soundness.md 1.7); 1 adds nothing.
    """

    epsilon: Fraction
    max_epsilon: Fraction
    delta: Fraction
    minimum_units: int


@dataclass(frozen=True, slots=True)
class RandomizedPolicy:
    """By which coins the answers of a column were randomised when they were given: `epsilon`, or `p`, or `p` and `q`.

    `p` alone: the truth with probability p, else another value; with `q`: Pr[true | true] and Pr[true | false].
    """

    epsilon: Fraction | None = None
    p: Fraction | None = None
    q: Fraction | None = None


@dataclass(frozen=True, slots=True)
class ColumnPolicy:
    """A declared column. Its `bounds` and `values` are checked against the type when the catalog is built.

    `complete`: no row has a value outside of these, or a NULL that is not listed, as the owner says. `is_log`: medians
    and percentiles are values of a grid by magnitude.
    """

    name: str
    bounds: tuple[Bound, Bound] | None = None
    step: Fraction | None = None
    is_log: bool = False
    values: tuple[Key, ...] | None = None
    complete: bool = False
    max_length: int | None = None
    description: str | None = None
    randomized: RandomizedPolicy | None = None


@dataclass(frozen=True, slots=True)
class UnitPolicy:
    """How a table's rows find their owner: `references` is a parent's name and its key's columns; None on the root.

    `is_row`: each row is a unit by itself, and no column says whose it is: `columns` is ().
    """

    columns: tuple[str, ...]
    references: References | None = None
    is_row: bool = False


@dataclass(frozen=True, slots=True)
class AlsoPolicy:
    """Whom a table's rows point at besides: as in `relation.catalog.Also`."""

    columns: tuple[str, ...]
    references: References
    max_rows: int


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """A declared table; `unit` is None exactly for public ones. `name` is `table` or `schema.table`.

    `max_rows`, `max_rows_per_group`, `max_groups`, `max_norm`: as in `relation.catalog.Unit`. `source`: the Parquet
    files that it is, as names or patterns relative to the policy's folder, on Spark as its server sees them; of a
    table of the database the one name that this has for it; () for the table of its own name. `is_hidden`: views read
    it, or `dpsql prepare`, and analysts do not. `key`: columns that the owner asserts to be a key of those files; ()
    for none. It counts in the very data in which the owner's command found it to hold (soundness.md 1.30). `also`:
    whom its rows point at, beside whose they are. `time`: the table and the column that say when its rows were; None:
    they are undated. `max_rows_ever`: those of a person in all periods together. `row_number`: the column that numbers
    the rows of each person, after the one of their period where they have a time; () for none. `unit_range`: the least
    and the largest number of a person whose rows are read; None: all are.
    """

    name: str
    unit: UnitPolicy | None
    columns: tuple[ColumnPolicy, ...] = ()
    max_rows: int | None = None
    max_rows_per_group: int | None = None
    max_groups: int | None = None
    description: str | None = None
    source: tuple[str, ...] = ()
    is_hidden: bool = False
    key: tuple[str, ...] = ()
    max_norm: tuple[tuple[str, int], ...] = ()
    also: tuple[AlsoPolicy, ...] = ()
    time: tuple[str, str] | None = None
    max_rows_ever: int | None = None
    row_number: tuple[str, ...] = ()
    unit_range: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ViewPolicy:
    """A declared view: whose rows it shows is in its text. `source`: the name that the database has for it."""

    name: str
    source: str
    columns: tuple[ColumnPolicy, ...] = ()
    description: str | None = None
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class FileSources:
    """Tables whose rows are recorded: `tables` their names and the patterns of their files, relative to `folder`; on
    Spark as its server sees them, and () for a table of its catalog.

    `record`: the file in which is written what the tables were when the owner last recorded them. `keys`: what is
    asserted of tables to be a key.
    """

    folder: Path
    tables: Mapping[str, tuple[str, ...]]
    record: Path
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CopySource:
    """A DuckDB file of which a copy is asked: `path`; `record`: the file in which is written which copy, beside it.

    `stem`: how the copies' names begin.
    """

    path: Path
    record: Path
    stem: str


@dataclass(frozen=True, slots=True)
class Access:
    """What an analyst sees: of these tables and views (None: of all) everything but the columns `hide`, as
    `table.column`. It keeps secrets of the owner's; what protects people is the same for everybody (soundness.md 3.16).
    """

    tables: tuple[str, ...] | None = None
    hide: tuple[str, ...] = ()

    @property
    def is_narrowed(self) -> bool:
        """Whether anything is kept from the analyst."""
        return self.tables is not None or bool(self.hide)

    def hidden_in(self, table: str) -> frozenset[str]:
        """Return the columns of a table that are hidden."""
        start = f"{table}."
        return frozenset(name.removeprefix(start) for name in self.hide if name.startswith(start))


@dataclass(frozen=True, slots=True)
class Analyst:
    """An analyst and a personal cap: fairness, not a privacy guarantee (soundness.md 3.4).

    `ration`: this analyst's cap in each period, where there is one. `access`: what they see.
    `password`: the text of a SCRAM-SHA-256 verifier; None: this analyst cannot connect to a server by one.
    `identity`: what a directory or an issuer calls the person; of a group, what it calls the group.
    """

    name: str
    epsilon: Fraction
    password: str | None = field(default=None, repr=False)
    ration: Fraction | None = None
    access: Access = Access()
    identity: str | None = None

    def identity_under(self, auth: DirectoryPolicy | IssuerPolicy | None) -> str | None:
        """Return what the person is called there: in a directory by the analyst's own name, unless said otherwise."""
        if self.identity is None and isinstance(auth, DirectoryPolicy):
            return auth.names.person(self.name)
        return self.identity


class Names(Protocol):
    """How people's names at a directory or an issuer and analysts' names are made of one another."""

    def person(self, user: str) -> str:
        """Return the name of the person whom somebody means who writes it whole, or short."""

    def short(self, name: str) -> str | None:
        """Return what is short for a name; None: it is not made so."""


@dataclass(frozen=True, slots=True)
class NamePattern:
    """How a person's name at a directory or an issuer is made of a short one: what stands before it, and behind it.

    No two persons have one short name, since it says all that differs between their names.
    """

    before: str = ""
    after: str = ""

    def person(self, user: str) -> str:
        """Return the name of the person whom somebody means who writes it whole, or short."""
        return user if self.short(user) is not None else f"{self.before}{user}{self.after}"

    def short(self, name: str) -> str | None:
        """Return what is short for a name; None: it is not made so."""
        end = len(name) - len(self.after)
        is_so = name.startswith(self.before) and name.endswith(self.after) and end > len(self.before)
        return name[len(self.before) : end] if is_so else None


@dataclass(frozen=True, slots=True)
class DirectoryPolicy:
    """A directory that is bound to as the analyst, by LDAP over TLS.

    `url`: ldaps://, or ldap:// that is made TLS before anything is said. `base`: the entry right below which people
    are, or, where it `searches`, anywhere below which they are looked for, bound as `bind` with the password in a file,
    or as nobody. `attribute`: the one of their entry that has their name. `groups`: the entry below which groups
    list their members; None: only what an entry says of itself (memberOf). `ca`: who has to have signed its
    certificate. `names`: how the attribute is made of an analyst's name.
    """

    url: str
    base: str
    attribute: str
    searches: bool = False
    groups: str | None = None
    bind: str | None = None
    password_file: Path | None = None
    ca: Path | None = None
    names: Names = NamePattern()


@dataclass(frozen=True, slots=True)
class IssuerPolicy:
    """An issuer of tokens by OpenID Connect; `audience`: for whom a token must be issued. `scope`: what clients ask
    for. `groups`: the claim that lists groups. `ca`: who has to have signed its certificate. `names`: how `sub` is made
    of a shorter name."""

    url: str
    audience: str
    scope: str = "openid"
    groups: str = "groups"
    ca: Path | None = None
    names: Names = NamePattern()


@dataclass(frozen=True, slots=True)
class ServerPolicy:
    """What a server does with the data: `has_grid`, its replies wait for the grid (soundness.md 3.6).

    `statement_seconds`: the longest that any statement may take, whatever its client allows. `memory_mib`,
    `files_mib`: what the answers that are kept for clients may take together, in memory and in files, of which an
    analyst has a quarter; None: what the machine allows. Of public tables: `public_seconds` and `public_rows` that one
    statement may take and give, `public_at_once` of one analyst. `workspace_mib`: what an analyst's own tables may
    take; 0: there are none. `auth`: who says who an analyst is; None: a password in the policy. `refusals`: what the
    owner's log of refusals holds of statements: nothing ("codes"), what is left of them without literals ("shapes"), or
    all ("texts").
    """

    has_grid: bool = True
    statement_seconds: int = 600
    memory_mib: int | None = None
    files_mib: int | None = None
    public_seconds: int = 60
    public_rows: int = 1_000_000
    public_at_once: int = 1
    workspace_mib: int = 256
    auth: DirectoryPolicy | IssuerPolicy | None = None
    refusals: str = "codes"


@dataclass(frozen=True, slots=True)
class Policy:
    """A whole policy file.

    `path`: the file, absolute; `source`: its name, for messages. `database` and `ledger`: URLs with absolute paths.
    `ledger_log`: beside the file; what this machine charges to a ledger on a server is logged there.
    `dataset_id`: what the ledger is bound to; the `dataset` key, or the root's name and the database URL
    as it is written in the file. `root`: the name of the one table whose rows are the privacy units.
    `views`: the declared views by name, none of which is among `tables`.
    `is_copied`: a copy of the DuckDB file is asked, not the file itself.
    `undecided`: declared tables that are neither public nor say their unit, with their sources. They are not among
    `tables`, and
    no catalog is built while there are any: the live foreign keys are needed to tell the owner the choice.
    `has_previews`: a look at people's rows is answered with their columns, and no row (soundness.md 1.16).
    `groups`: what members of a directory's or an issuer's groups may spend and see, who are no analysts by name; of
    several the first counts. `members`: those of `analysts` who are there as members alone, since they logged in.
    `is_measuring`: bounds are measured under it, and no statement is answered (3.10).
    """

    path: Path
    source: str
    database: str
    ledger: str
    ledger_log: Path
    dataset_id: str
    privacy: LifetimeCap
    defaults: Defaults
    root: str
    tables: Mapping[str, TablePolicy]
    analysts: Mapping[str, Analyst]
    server: ServerPolicy
    undecided: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, ViewPolicy] = field(default_factory=dict)
    has_previews: bool = True
    is_copied: bool = False
    groups: Mapping[str, Analyst] = field(default_factory=dict)
    members: frozenset[str] = frozenset()
    is_measuring: bool = False
    _referred: dict[str, set[tuple[str, ...]]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        for table in self.tables.values():
            ways = [also.references for also in table.also]
            if table.unit is not None and table.unit.references is not None:
                ways.append(table.unit.references)
            for name, key in ways:
                self._referred.setdefault(name, set()).add(tuple(sorted(key)))

    def referred(self, table: str) -> frozenset[tuple[str, ...]]:
        """Return the keys of a table, each sorted, that tables refer to for a person."""
        return frozenset(self._referred.get(table, ()))

    @property
    def has_delta(self) -> bool:
        """Whether group keys that nobody declared can be found, by thresholds."""
        return self.privacy.delta > 0 and self.defaults.delta > 0

    @property
    def copied(self) -> CopySource | None:
        """The file of which a copy is asked, where `snapshot = "copy"`."""
        if not self.is_copied:
            return None
        stem = self.path.stem
        path = Path(self.database.removeprefix("duckdb:"))
        return CopySource(path, self.path.parent / f"{stem}-copy.json", stem)

    @property
    def read_from(self) -> tuple[str, ...]:
        """What the database calls all that is read of it: its tables, and the views whose texts are read."""
        return tuple(map(self.origin, (*self.tables, *self.views)))

    @property
    def called(self) -> dict[str, str]:
        """What the database calls tables and views that the policy calls otherwise, by the policy's names."""
        if self.files is not None:
            return {}
        names = {name: table.source[0] for name, table in self.tables.items() if table.source}
        names |= {name: view.source for name, view in self.views.items()} | dict(self.undecided)
        return {name: source for name, source in names.items() if name != source}

    def origin(self, name: str) -> str:
        """Return what the database calls a table or view: charges are told by it, as they are of the rows there."""
        view, table = self.views.get(name), self.tables.get(name)
        if view is not None:
            return view.source
        return name if table is None or self.files is not None or not table.source else table.source[0]

    @property
    def files(self) -> FileSources | None:
        """The files that the tables are, where there is no database, and on Spark all tables: what is recorded."""
        if self.database != FILES and not self.is_on_spark:
            return None
        tables = {name: table.source for name, table in self.tables.items()}
        keys = {name: table.key for name, table in self.tables.items() if table.key}
        record = f"{self.path.stem}-{'tables' if self.is_on_spark else 'files'}.json"
        return FileSources(self.path.parent, tables, self.path.parent / record, keys)

    @property
    def is_on_spark(self) -> bool:
        """Whether the tables are versions of what a Spark reads."""
        return self.database.startswith(SPARK)

    def with_member(self, member: Analyst) -> Policy:
        """Return the policy with a member of a group among its analysts."""
        return replace(
            self, analysts={**self.analysts, member.name: member}, members=self.members | {member.name}
        )

    def as_for(self, analyst: str) -> Policy:
        """Return what the policy is to one analyst: of all analysts only their own cap, and no password."""
        own = self.analysts.get(analyst)
        return replace(
            self,
            analysts={} if own is None else {analyst: replace(own, password=None)},
            groups={},
            members=frozenset(),
        )


# --- the engines that can hold an owner's database: one line each -------------------------------------------


_BACKENDS = "dpsql.backends."

ENGINES = {
    "duckdb": f"{_BACKENDS}duckdb_backend:DuckDBBackend",
    "postgresql": f"{_BACKENDS}postgres_backend:PostgresBackend",
    "postgres": f"{_BACKENDS}postgres_backend:PostgresBackend",
    "spark": f"{_BACKENDS}spark_backend:SparkBackend",
}
"""How a `database` URL begins -> the module and the class that open it: imported when one is opened, as a driver takes
as long to import as all the rest."""


# --- who else can read a policy that holds verifiers of passwords -------------------------------------------


_OTHERS = 0o007


def is_open_to_others(policy: Policy) -> bool:
    """Say whether anybody on this machine can read the policy's file though analysts' verifiers are in it.

    From a verifier a password can be guessed at leisure. The owner's group is let be: somebody gave it the file.
    """
    if all(analyst.password is None for analyst in policy.analysts.values()):
        return False
    try:
        return bool(policy.path.stat().st_mode & _OTHERS)
    except OSError:
        return False
