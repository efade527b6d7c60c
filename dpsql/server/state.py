"""What the statements of a connection read and change: its block, and what that holds: settings and portals.

The ledger stands outside: no charge is ever rolled back. As in Postgres, every statement stands in a block: one of its
own, one of all statements of a Query (a series) or up to a Sync (a pipeline), or one that BEGIN made and that
ReadyForQuery tells of.

Prepared statements and portals, and how far each was read; a cursor of SQL is a portal too, which share their names.

Where a cursor stands after FETCH and MOVE, and which rows they give, are Postgres' rules as arithmetic. A position is
a row's number from 1; 0 is before the first, `size` + 1 after the last.

House rules for the settings of Postgres 15 that clients read or set, what each is here and what it may become:

1. A setting that would change an answer's meaning or form has the one value that holds here.
2. A setting that only tells Postgres how to work is kept and shown, for clients check; it changes nothing here.
3. What a client sends unasked at connect, and cannot be followed, is taken with a warning (`taken`), and SHOW says
   what holds.

When what was drawn may be known (soundness.md 3.6): 100, 200, 400, 800, … milliseconds after its statement began.

What the database does takes longer or shorter with the rows it finds; on this grid few bits of that remain. A draw is
stored no sooner, so that whoever waits for it, or finds it, learns no more than its own analyst; an error is told no
sooner. A statement that is cancelled is on a grid of its own, which begins with the cancel: the analyst knows that
moment.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Generic, TypeVar

from ..engine import Session
from ..engine.settings import OWN, Settings
from ..memory import Share, weight_of
from ..pgwire import Bind, FieldDescription, Format, NoticeResponse, Oid, ParameterStatus, TransactionStatus
from ..policy import Policy
from ..postprocess.rows import LargeRows, Values
from ..records import dataclass
from ..regex import regex
from ..relation.catalog import OWN_SCHEMA
from .report import Fault
from .statements import (
    Begin,
    Characteristics,
    Direction,
    End,
    Fetch,
    Mark,
    Marking,
    Modes,
    Result,
    Set,
    Show,
    Statement,
)

# --- the settings of Postgres 15 that clients read or set: what each is here, and what it may become --------


VERSION = "15.0"
"""An older Postgres: clients are written for it, and know its ways."""
VERSION_TEXT = f"PostgreSQL {VERSION} (dpsql)"


# --- what a value that is given becomes: as it is shown, or None for a bad one ----------------------------

Reader = Callable[[tuple[str, ...]], str | None]
"""The values that were written, of which all but lists take one, to the text that is shown."""

_MAX_TEXT = 1024
_NUMBER = regex(r"([+-]?(?:\d{1,15}(?:\.\d{0,9})?|\.\d{1,9})(?:e[+-]?\d{1,2})?)\s*([A-Za-z]*)", re.IGNORECASE)
_BOOLEANS = {
    **{word[:size]: "on" for word in ("true", "yes") for size in range(1, len(word) + 1)},
    **{word[:size]: "off" for word in ("false", "no") for size in range(1, len(word) + 1)},
    "on": "on", "1": "on", "off": "off", "of": "off", "0": "off",
}  # fmt: skip
_TIME = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Milliseconds of each unit."""
SIZE = {"B": 1 / 1024, "kB": 1, "MB": 1024, "GB": 1024**2, "TB": 1024**3}
"""Kilobytes of each unit."""


def any_text(values: tuple[str, ...]) -> str | None:
    """Read a text that the connection keeps and that means nothing here."""
    text = values[0]
    return text if len(values) == 1 and text.isprintable() and len(text) <= _MAX_TEXT else None


def ascii_text(values: tuple[str, ...]) -> str | None:
    """Read a name: what is no printable ASCII becomes a question mark for each byte, as in Postgres."""
    if len(values) != 1 or len(values[0]) > _MAX_TEXT:
        return None
    return "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in values[0].encode("utf-8", "replace"))


def boolean(values: tuple[str, ...]) -> str | None:
    """Read a switch, by any beginning of a word that tells it."""
    return _BOOLEANS.get(values[0].strip().lower()) if len(values) == 1 else None


def one_of(canonical: str, *others: str, shown: Mapping[str, str] | None = None) -> Reader:
    """Read one of some words; each is shown as itself, or as `shown` has it."""
    accepted = {_bare(text): text for text in (canonical, *others)}
    accepted |= {_bare(text): value for text, value in (shown or {}).items()}
    return lambda values: accepted.get(_bare(", ".join(values)))


def _bare(text: str) -> str:
    return re.sub(r"[\s\"']", "", text).lower()


def integer(low: int, high: int, units: Mapping[str, float] = MappingProxyType({})) -> Reader:
    """Read a number within limits; a fraction is rounded. It is shown in the largest unit that it is whole in."""

    def read(values: tuple[str, ...]) -> str | None:
        written = _number(values, units)
        if written is None or not low <= (number := round(written)) <= high:
            return None
        if number <= 0:
            return str(number)
        whole = [(size, unit) for unit, size in units.items() if size >= 1 and number % size == 0]
        size, unit = max(whole, default=(1, ""))
        return f"{number // int(size)}{unit}"

    return read


def real(low: float, high: float) -> Reader:
    """Read a number within limits."""

    def read(values: tuple[str, ...]) -> str | None:
        number = _number(values, {})
        return None if number is None or not low <= number <= high else f"{number:.15g}"

    return read


def _number(values: tuple[str, ...], units: Mapping[str, float]) -> float | None:
    match = _NUMBER.fullmatch(values[0].strip()) if len(values) == 1 else None
    size = None if match is None else {"": 1, **units}.get(match[2])
    return None if match is None or size is None else float(match[1]) * size


def _name_list(values: tuple[str, ...]) -> str:
    """Return a list of names as it is shown: quoted where they have to be."""
    return ", ".join(
        name if re.fullmatch(r"[a-z_][a-z0-9_$]*", name) else '"' + name.replace('"', '""') + '"'
        for name in values
    )


# --- the settings ------------------------------------------------------------------------------------

_GREATEST = 2**31 - 1
_LEVELS = ("read committed", "read uncommitted", "repeatable read", "serializable")
_MESSAGES = ("notice", "debug5", "debug4", "debug3", "debug2", "debug1", "log", "warning", "error")
_ORDERS = {
    "MDY": "MDY",
    "DMY": "DMY",
    "YMD": "YMD",
    "US": "MDY",
    "NonEuro": "MDY",
    "Euro": "DMY",
    "European": "DMY",
}
_DATES = {
    written: f"ISO, {shown}"
    for order, shown in _ORDERS.items()
    for written in (f"ISO, {order}", f"{order}, ISO", order)
}
_UTC = ("UTC", "GMT", "Etc/UTC", "Etc/GMT", "Etc/Zulu", "Zulu", "UCT", "Universal", "Greenwich", "Z", "UTC0", "GMT0",
        "0", "00", "00:00", "+00:00", "-00:00", "+00", "-00", "+0", "-0")  # fmt: skip
_ZONE = regex(r"[A-Za-z<][A-Za-z0-9_+\-/<>:,.]{1,60}|[+-]?\d{1,2}(?:\.\d{1,4}|:\d{2}(?::\d{2})?)?")


@dataclass(frozen=True, slots=True)
class _KnownSetting:
    """A setting: its name as it is shown, its value at first, and what values given for it become.

    `fixed`: why it can never be set, as a SQLSTATE and a hint. `taken`: a value of this form is accepted, warned of
    and not followed.
    """

    name: str
    default: str
    read: Reader
    fixed: tuple[str, str] | None = None
    taken: re.Pattern[str] | None = None
    warning: str = ""


def _only(name: str, value: str, *others: str) -> _KnownSetting:
    """A setting of the one value that holds here, however it is written."""
    return _KnownSetting(name, value, one_of(value, shown=dict.fromkeys(others, value)))


def _internal(name: str, value: str) -> _KnownSetting:
    return _KnownSetting(name, value, one_of(value), ("55P02", "it is a fact of this server"))


def _superuser(name: str, value: str) -> _KnownSetting:
    return _KnownSetting(name, value, one_of(value), ("42501", "only the owner of a server may"))


def _switch(name: str, value: str = "on") -> _KnownSetting:
    return _KnownSetting(name, value, boolean)


def _choice(name: str, first: str, *others: str, shown: Mapping[str, str] | None = None) -> _KnownSetting:
    return _KnownSetting(name, first, one_of(first, *others, shown=shown))


def _time(name: str) -> _KnownSetting:
    return _KnownSetting(name, "0", integer(0, _GREATEST, _TIME))


_YES = one_of("on", shown=dict.fromkeys(("true", "yes", "t", "y", "1"), "on"))
_NO = regex(r"off?|false|f|no|n|0", re.IGNORECASE)
_ONLY_READS = "dpsql only reads: the setting stays on"

_CLIENT = (
    _KnownSetting("application_name", "", ascii_text),
    _KnownSetting("TimeZone", "UTC", one_of("UTC", shown=dict.fromkeys(_UTC, "UTC")), taken=_ZONE,
          warning="timestamps have no zone here, and now() is in UTC: TimeZone stays UTC"),
    _KnownSetting("DateStyle", "ISO, MDY", one_of("ISO, MDY", shown={"ISO": "ISO, MDY", **_DATES})),
    _choice("client_min_messages", *_MESSAGES, shown={"debug": "debug2", "info": "notice"}),
    _KnownSetting("extra_float_digits", "1", integer(-15, 3)),
    _KnownSetting("search_path", "", any_text),
    _only("client_encoding", "UTF8", "UTF-8", "unicode", "auto", "utf_8", "SQL_ASCII"),
    _only("IntervalStyle", "postgres"),
    _only("bytea_output", "hex"),
    _only("standard_conforming_strings", "on", "true", "1", "yes"),
    _only("backslash_quote", "safe_encoding"),
    _only("array_nulls", "on", "true", "1"),
    _only("transform_null_equals", "off", "false", "0"),
    _only("quote_all_identifiers", "off", "false", "0"),
    _choice("xmloption", "content", "document"),
    _choice("xmlbinary", "base64", "hex"),
    _switch("escape_string_warning"),
)  # fmt: skip
_TRANSACTIONS = (
    _choice("transaction_isolation", *_LEVELS),
    _choice("default_transaction_isolation", *_LEVELS),
    _switch("transaction_deferrable", "off"),
    _switch("default_transaction_deferrable", "off"),
    _KnownSetting("transaction_read_only", "on", _YES, taken=_NO, warning=_ONLY_READS),
    _KnownSetting("default_transaction_read_only", "on", _YES, taken=_NO, warning=_ONLY_READS),
    _time("statement_timeout"), _time("lock_timeout"), _time("idle_in_transaction_session_timeout"),
    _time("idle_session_timeout"),
    _choice("synchronous_commit", "on", "off", "local", "remote_write", "remote_apply",
            shown={"true": "on", "1": "on", "false": "off", "0": "off"}),
)  # fmt: skip
_WORK = (
    *(_switch(name) for name in (
        "geqo", "check_function_bodies", "row_security", "parallel_leader_participation", "synchronize_seqscans",
        "enable_async_append", "enable_bitmapscan", "enable_gathermerge", "enable_hashagg", "enable_hashjoin",
        "enable_incremental_sort", "enable_indexonlyscan", "enable_indexscan", "enable_material", "enable_memoize",
        "enable_mergejoin", "enable_nestloop", "enable_parallel_append", "enable_parallel_hash",
        "enable_partition_pruning", "enable_seqscan", "enable_sort", "enable_tidscan",
    )),
    *(_switch(name, "off") for name in ("jit", "enable_partitionwise_aggregate", "enable_partitionwise_join")),
    _choice("constraint_exclusion", "partition", "on", "off"),
    _choice("plan_cache_mode", "auto", "force_generic_plan", "force_custom_plan"),
    _choice("password_encryption", "scram-sha-256", "md5"),
    _KnownSetting("geqo_threshold", "12", integer(2, _GREATEST)),
    _KnownSetting("from_collapse_limit", "8", integer(1, _GREATEST)),
    _KnownSetting("join_collapse_limit", "8", integer(1, _GREATEST)),
    _KnownSetting("max_parallel_workers", "8", integer(0, 1024)),
    _KnownSetting("max_parallel_workers_per_gather", "2", integer(0, 1024)),
    _KnownSetting("effective_io_concurrency", "1", integer(0, 1000)),
    _KnownSetting("work_mem", "4MB", integer(64, _GREATEST, SIZE)),
    _KnownSetting("maintenance_work_mem", "64MB", integer(1024, _GREATEST, SIZE)),
    _KnownSetting("cursor_tuple_fraction", "0.1", real(0, 1)),
    _KnownSetting("random_page_cost", "4", real(0, 1e308)),
    _KnownSetting("seq_page_cost", "1", real(0, 1e308)),
    *(_KnownSetting(name, value, any_text) for name, value in (
        ("default_tablespace", ""), ("temp_tablespaces", ""), ("default_table_access_method", "heap"),
        ("lc_monetary", "C.UTF-8"), ("lc_numeric", "C.UTF-8"), ("lc_time", "C.UTF-8"),
        ("default_text_search_config", "pg_catalog.simple"), ("timezone_abbreviations", "Default"),
        ("event_source", "PostgreSQL"), ("tcp_user_timeout", "0"), ("tcp_keepalives_idle", "0"),
        ("tcp_keepalives_interval", "0"), ("tcp_keepalives_count", "0"), ("client_connection_check_interval", "0"),
        ("gin_fuzzy_search_limit", "0"), ("vacuum_cost_delay", "0"), ("default_with_oids", "off"),
    )),
)  # fmt: skip
_FACTS = (
    *(
        _internal(name, value)
        for name, value in (
            ("server_version", VERSION), ("server_version_num", "150000"), ("server_encoding", "UTF8"),
            ("integer_datetimes", "on"), ("in_hot_standby", "off"), ("is_superuser", "off"), ("ssl", "off"),
            ("max_identifier_length", "63"), ("max_index_keys", "32"), ("max_function_args", "100"),
            ("block_size", "8192"), ("lc_collate", "C.UTF-8"), ("lc_ctype", "C.UTF-8"),
            ("max_prepared_transactions", "0"),
        )
    ),
    *(
        _superuser(name, value)
        for name, value in (
            ("session_replication_role", "origin"), ("log_statement", "none"),
            ("log_min_duration_statement", "-1"), ("lc_messages", "C"), ("zero_damaged_pages", "off"),
        )
    ),
)  # fmt: skip

KNOWN: Mapping[str, _KnownSetting] = MappingProxyType(
    {known.name.lower(): known for known in (*_CLIENT, *_TRANSACTIONS, *_WORK, *_FACTS)}
)
"""By name in lower case."""


# --- when what was drawn may be known (soundness.md 3.6) ----------------------------------------------------


_LEAST = 0.1


def release_time(start: float, now: float) -> float:
    """Return the first moment of the grid from `start` on that is not before `now`."""
    wait = _LEAST
    while start + wait < now:
        wait *= 2
    return start + wait


# --- a connection's settings --------------------------------------------------------------------------------


_REPORTED = (
    "server_version", "server_encoding", "client_encoding", "application_name",
    "default_transaction_read_only", "in_hot_standby", "is_superuser", "session_authorization", "DateStyle",
    "IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings",
)  # fmt: skip
"""What a client is told unasked, at first and when it changes."""

_OF_BLOCK = ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
"""What a block has of its own, at first what the setting of this name with `default_` before it says."""
_CUSTOM = regex(r"[a-z_][\w$]*(?:\.[a-z_][\w$]*)+")
_MAX_CUSTOM = 200


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Frozen, so that a block that is rolled back goes back to those before it; names are in lower case."""

    user: str
    policy: Policy
    """What dpsql's own settings may be; they are kept as they were written."""
    known: Mapping[str, _KnownSetting]
    """The settings that there are, by name, but the client's own."""
    first: Mapping[str, str]
    """What the client asked for when it connected, and RESET goes back to."""
    now: Mapping[str, str]
    local: Mapping[str, str] = field(default_factory=dict)
    """What holds until the block ends."""

    @classmethod
    def of(
        cls, user: str, policy: Policy, asked: Mapping[str, str], *, schema: str = "public", written: str = "public",
        has_tls: bool = False,
    ) -> ClientSettings:  # fmt: skip
        """Return a new connection's settings. Raises Fault, Refusal for one that does not exist, or a bad value.

        `schema`: of tables that are named without one, which the database itself calls `written`.
        A zone or a form of dates is not a reason to refuse: some clients send their machine's, and are told what is
        here.
        """
        known = {**KNOWN, "search_path": _search_path(schema, written)}
        if has_tls:
            known["ssl"] = replace(KNOWN["ssl"], default="on")
        settings = cls(user, policy, known, {}, {})
        for name, value in asked.items():
            if name.lower() not in ("timezone", "datestyle"):
                values = tuple(map(_trimmed, value.split(","))) if name.lower() == "search_path" else (value,)
                settings = settings.set(name, values)
        return replace(settings, first=settings.now)

    def set(self, name: str, values: tuple[str, ...], *, is_local: bool = False) -> ClientSettings:
        """Return the settings after SET.

        Raises Fault: 42704 for no setting, 22023 for a bad value, 55P02 and 42501 for what cannot be set. Raises
        Refusal for one of dpsql's own that does not exist, or a bad value of it.
        """
        known = self._find(name)
        return self._with(known.name.lower(), self._read(known, values), is_local)

    def warning(self, name: str, values: tuple[str, ...]) -> str | None:
        """Return what a client has to be told of a value that is taken and not followed."""
        known = self.known.get(name.lower())
        if known is None or known.taken is None or known.read(values) is not None:
            return None
        return known.warning

    def _read(self, known: _KnownSetting, values: tuple[str, ...]) -> str:
        _check_settable(known)
        read = known.read(values)
        if read is None and known.taken is not None and known.taken.fullmatch(", ".join(values)):
            return known.default
        if read is None:
            raise Fault(
                "22023", f'"{", ".join(values)[:60]}" cannot be the value of {known.name}',
                hint=f"SHOW {known.name} says what it is here",
            )  # fmt: skip
        return read

    def _with(self, key: str, value: str, is_local: bool) -> ClientSettings:
        if is_local or key in _OF_BLOCK:
            return replace(self, local={**self.local, key: value})
        return replace(self, now={**self.now, key: value}, local=_without(self.local, key))

    def reset(self, name: str, *, is_local: bool = False) -> ClientSettings:
        """Return the settings after RESET. Raises as `set`."""
        known = self._find(name)
        _check_settable(known)
        key = known.name.lower()
        if key.startswith("dpsql."):
            known.read((known.default,))  # there is one of this name
        value = self.first.get(key)
        if is_local or key in _OF_BLOCK:
            return self._with(key, self._default(known) if value is None else value, True)
        kept = _without(self.now, key) if value is None else {**self.now, key: value}
        return replace(self, now=kept, local=_without(self.local, key))

    def reset_all(self) -> ClientSettings:
        """Return the settings as they were at connect; a block's own modes stay."""
        kept = {key: value for key, value in self.local.items() if key in _OF_BLOCK}
        return replace(self, now=self.first, local=kept)

    def in_block(self) -> ClientSettings:
        """Return the settings in a block that begins: its modes are what `default_…` says."""
        return replace(self, local={key: self.show(f"default_{key}")[1] for key in _OF_BLOCK})

    def with_modes(self, modes: Modes, prefix: str = "") -> ClientSettings:
        """Return the settings with some of a block's modes set, or with `default_` for all blocks to come."""
        settings = self
        for key, value in modes:
            if not key.endswith("read_only"):  # all of them only read
                settings = settings.set(prefix + key, (value,))
        return settings

    def after_block(self) -> ClientSettings:
        """Return the settings without what held until the block's end."""
        return replace(self, local={})

    def modes(self) -> Modes:
        """Return the modes of the block at hand."""
        return tuple((key, self.show(key)[1]) for key in _OF_BLOCK)

    def show(self, name: str) -> tuple[str, str]:
        """Return a setting's name as it is shown, and its value. Raises Fault: 42704."""
        key = name.lower()
        if key in ("session_authorization", "role"):
            return key, self.user if key == "session_authorization" else "none"
        if key in OWN or not (key in self.known or key in self.now or key in self.local):
            raise _missing(name)
        known = self._find(name)
        return known.name, self.local.get(key, self.now.get(key, self._default(known)))

    def show_all(self) -> list[tuple[str, str]]:
        """Return all settings by name, but dpsql's own."""
        names = {*self.known, *self.now, *self.local, "session_authorization"} - set(OWN)
        return [self.show(name) for name in sorted(names)]

    def reported(self) -> dict[str, str]:
        """Return what the client is told unasked."""
        return dict(self.show(name) for name in _REPORTED)

    def may_differ(self, before: ClientSettings) -> bool:
        """Return whether more than a block's modes may differ from other settings; quick to say no."""
        return self.now is not before.now or len(self.local.keys() | before.local.keys()) > len(_OF_BLOCK)

    @property
    def own(self) -> Settings:
        """dpsql's own settings, as the session has them."""
        own = Settings.of(self.policy)
        for name, text in {**self.now, **self.local}.items():
            own = own.set(name, text, self.policy) if name in OWN else own
        return own

    @property
    def timeout(self) -> float | None:
        """Seconds that a statement may take, None for no limit: of the grid on which replies are sent (`grid`).

        A limit between two of its moments would tell on which side of it a statement ended.
        """
        match = re.fullmatch(r"(\d+)([a-z]*)", self.show("statement_timeout")[1])
        assert match is not None, "the table's reader has written it"
        asked = int(match[1]) * _TIME[match[2] or "ms"] / 1000
        return release_time(0.0, asked) if asked else None

    @property
    def wants_notices(self) -> bool:
        """Whether NOTICEs are to be sent."""
        return self.show("client_min_messages")[1] not in ("warning", "error")

    @property
    def wants_warnings(self) -> bool:
        """Whether WARNINGs are to be sent."""
        return self.show("client_min_messages")[1] != "error"

    def _default(self, known: _KnownSetting) -> str:
        return self.show(f"default_{known.name}")[1] if known.name in _OF_BLOCK else known.default

    def _find(self, name: str) -> _KnownSetting:
        """Return a setting; one with a dot in its name is the client's own, as Postgres has it."""
        key = name.lower()
        known = self.known.get(key)
        if known is not None:
            return known
        if name.startswith("dpsql."):
            return self._find_own(name)
        if not _CUSTOM.fullmatch(key) or key.startswith(("dpsql.", "pg_")):
            raise _missing(name)
        customs = sum("." in other and other not in OWN for other in (*self.now, *self.local))
        if key not in self.now and customs >= _MAX_CUSTOM:
            raise Fault(
                "53400", f"there are more than {_MAX_CUSTOM} settings of the client's own", hint="reuse one"
            )
        return _KnownSetting(
            key, "", lambda values: values[0] if len(values) == 1 and len(values[0]) <= 4096 else None
        )

    def _find_own(self, name: str) -> _KnownSetting:
        def read(values: tuple[str, ...]) -> str:
            text = ", ".join(values)
            Settings.of(self.policy).set(name, text, self.policy)
            return text

        return _KnownSetting(name, "default", read)


def _search_path(schema: str, written: str) -> _KnownSetting:
    """Any list is taken that leaves dpsql's own schema, or what clients take for it, in sight."""
    default = '"$user", public' if schema == "public" else _name_list((schema,))
    in_sight = {schema, written, "public", "$user", OWN_SCHEMA}
    return _KnownSetting(
        "search_path", default, lambda values: _name_list(values) if in_sight & set(values) else None
    )


def _check_settable(known: _KnownSetting) -> None:
    if known.fixed is not None:
        raise Fault(known.fixed[0], f"{known.name} cannot be set", hint=known.fixed[1])


def _missing(name: str) -> Fault:
    return Fault(
        "42704", f'setting "{name[:60]}" does not exist',
        hint=f"SHOW ALL lists the connection's; dpsql's own are {', '.join(OWN)}",
    )  # fmt: skip


def _trimmed(name: str) -> str:
    name = name.strip()
    return name[1:-1].replace('""', '"') if len(name) > 1 and name[0] == name[-1] == '"' else name.lower()


def _without(settings: Mapping[str, str], key: str) -> dict[str, str]:
    return {other: value for other, value in settings.items() if other != key}


# --- prepared statements and portals, and how far each was read ---------------------------------------------


_MAX = 1000
"""Portals, and prepared statements, of a connection."""
_MAX_BYTES = 32 * 2**20
_LITTLE = 4096
"""Bytes up to which a portal is not counted, and characters up to which a statement's text is not."""
_MAX_ROWS = 2_000_000
"""Rows that a connection's portals may keep together; one released result has at most a million."""
_HINT = "close cursors that are read; to ask again what was charged is free"
_LIMITS = {Oid.INT2: 2**15, Oid.INT4: 2**31, Oid.INT8: 2**63}


@dataclass
class PreparedStatement:
    """A prepared statement; `statement` None: the text held none. `described`: what Describe has told of it.

    `types`: of its parameters, of which its text names the first `count`; 0: not known yet, and read as text.
    `start`: where it begins in what the client sent.
    """

    statement: Statement | None
    types: tuple[int, ...]
    count: int
    start: int
    described: tuple[FieldDescription, ...] | None = None
    share: Share | None = None
    """Where its text is counted, if it is long and has a name."""

    @property
    def key(self) -> Hashable:
        """All that an execution depends on, as what can be compared."""
        return self.statement, self.types, self.count, self.described


_T = TypeVar("_T", "PreparedStatement", "Portal")


class _Named(Generic[_T]):
    """What a connection keeps by name; "" is the protocol's unnamed one, which gives way to the next."""

    _what: str
    _taken: str
    _missing: str

    def __init__(self, share: Share | None = None) -> None:
        """`share`: where long texts and parameters are counted, and rows that are kept in memory."""
        self._share = share
        self._known: dict[str, _T] = {}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def has_room(self) -> bool:
        """Whether there may be one more."""
        return len(self._known) < _MAX

    def check(self, name: str) -> None:
        """Raise Fault if no more can be added: the name is taken, or there are too many (53400)."""
        if name and name in self._known:
            raise Fault(self._taken, f'{self._what} "{name}" already exists', hint="close it first")
        if not self.has_room:
            raise Fault("53400", f"too many {self._what}s", hint="close some")

    def find(self, name: str) -> _T:
        """Return what has this name. Raises Fault: there is none."""
        found = self._known.get(name)
        if found is None:
            hint = "it ends with its block, or was closed"
            raise Fault(self._missing, f'{self._what} "{name}" does not exist', hint=hint)
        return found

    def has(self, name: str) -> bool:
        """Say whether there is one of this name."""
        return name in self._known

    def close(self, name: str) -> None:
        """Forget what has this name, if there is one."""
        self._known.pop(name, None)

    def clear(self) -> None:
        """Forget all."""
        self._known = {}

    def _count(self, kept: _T, size: int) -> None:
        """Count what is kept, for as long as it is. Raises EngineFailure (53200): no room."""
        if self._share is None or size <= _LITTLE:
            return
        kept.share = kept.share or self._share.another()
        kept.share.take(size, seconds=0)


class PreparedStatements(_Named[PreparedStatement]):
    """The prepared statements of a connection: those of the protocol and of SQL, for both share their names."""

    _what, _taken, _missing = "prepared statement", "42P05", "26000"

    def add(self, name: str, prepared: PreparedStatement) -> None:
        """Add a statement; the unnamed one takes the place of the last. Raises as `check`; EngineFailure (53200)."""
        self.check(name)
        if name:
            self._count(prepared, len(repr(prepared.statement)))
        self._known[name] = prepared

    def clear(self) -> None:
        """Forget all that have a name."""
        self._known = {name: prepared for name, prepared in self._known.items() if not name}


def as_described(
    columns: Sequence[FieldDescription], told: Sequence[FieldDescription]
) -> tuple[FieldDescription, ...]:
    """Return the columns that Describe has told, if they can hold what comes: where the values of parameters give
    them other types, these are within the integers. Raises Fault (0A000): it is of another kind."""
    for column, known in zip(columns, told, strict=True):
        if column.oid != known.oid and not (column.oid in _LIMITS and known.oid in _LIMITS):
            raise Fault(
                "0A000", "the result's types depend on the parameters, and are others than Describe has told",
                hint="cast the parameters: CAST($1 AS integer)",
            )  # fmt: skip
    return tuple(told)


def fitted(result: Result, told: tuple[FieldDescription, ...]) -> Result:
    """Return a result under the columns that were told. Raises Fault (22003): an integer is too large for its own."""
    for index, (column, known) in enumerate(zip(result.columns, told, strict=True)):
        if column.oid == known.oid:
            continue
        limit = _LIMITS[Oid(known.oid)]
        if any(not -limit <= row[index] < limit for row in result.rows if row[index] is not None):  # type: ignore[operator]  # integers
            raise Fault(
                "22003", f'"{known.name}" is out of the range that Describe has told',
                hint="cast it: CAST(… AS bigint); what was charged answers again, free",
            )  # fmt: skip
    return replace(result, columns=told)


@dataclass
class Portal:
    """A prepared statement with its parameters; once it has run, its result, and where the last row taken stands.

    `position`: from 1; 0 is before the first row, one more than there are is after the last. `is_held`: its rows
    outlive the block, and (`is_kept`) have. `level`: how many savepoints there were when it was opened.
    """

    prepared: PreparedStatement
    bind: Bind
    values: tuple[object, ...]
    is_cursor: bool = False
    is_held: bool = False
    is_binary: bool = False
    is_forward_only: bool = True
    columns: tuple[FieldDescription, ...] = ()
    """What a cursor's query was found to give before it has run."""
    level: int = 0
    is_kept: bool = False
    is_broken: bool = False
    result: Result | None = None
    position: int = 0

    size: int = 0
    """Bytes of its parameters."""
    share: Share | None = None
    """Where parameters and rows are counted, if they are many bytes."""

    def formats(self, count: int) -> list[Format]:
        """Return the formats of so many columns. Raises ParameterError: Bind names another number."""
        return list(self.bind.column_formats(count))

    def check(self, how: Fetch) -> None:
        """Raise Fault (55000) if the rows cannot be fetched so; the portal cannot be read on after that."""
        if self.is_broken:
            raise Fault("55000", f'portal "{how.name}" cannot be run', hint="close it, and open it again")
        if self.is_forward_only and _needs_backward(how, self.position, self._size):
            self.is_broken = True
            raise Fault("55000", "the cursor can only go forward", hint="DECLARE … SCROLL CURSOR")

    def take(self, how: Fetch) -> Sequence[tuple[object, ...]]:
        """Return the next rows, and stand at the last of them. Requires: it has run."""
        assert self.result is not None
        places, self.position = step(how, self.position, self._size)
        return _Taken(self.result.rows, range(places.start - 1, places.stop - 1, places.step))

    def take_forward(self, limit: int | None) -> tuple[int, int]:
        """Return the index of the next row and of the end of the next `limit` rows, and pass over them."""
        places, position = step(Fetch("", Direction.FORWARD, limit, False), self.position, self._size)
        self.position = position
        return (places[0] - 1, places[-1]) if places else (0, 0)

    @property
    def _size(self) -> int:
        return 0 if self.result is None else len(self.result.rows)


class Portals(_Named[Portal]):
    """The portals of a connection, by name."""

    _what, _taken, _missing = "portal", "42P03", "34000"

    def add(self, name: str, portal: Portal) -> None:
        """Open a portal; the unnamed one takes the place of the last. Raises as `check`, EngineFailure (53200)."""
        self.check(name)
        if sum(other.size for key, other in self._known.items() if key != name) + portal.size > _MAX_BYTES:
            raise Fault("53400", "the open portals keep too much", hint="close some, or bind shorter values")
        self._count(portal, portal.size)
        self._known[name] = portal

    def check_room(self) -> None:
        """Raise Fault (53400) if no more rows can be kept."""
        if self._rows() >= _MAX_ROWS:
            raise Fault("53400", "the open cursors keep too many rows", hint=_HINT)

    def keep(self, portal: Portal, result: Result) -> None:
        """Have a portal keep its rows. Raises Fault (53400): all together would be too many."""
        if result.columns and result.copy is None and self._rows() + len(result.rows) > _MAX_ROWS:
            raise Fault("53400", "the open cursors would keep too many rows", hint=_HINT)
        if isinstance(result.rows, list):  # others are counted where they were made
            self._count(portal, weight_of(result.rows))
        portal.result = result

    def commit(self) -> None:
        """Close what ends with its block; what is held is kept from here on."""
        self._known = {name: portal for name, portal in self._known.items() if portal.is_held}
        for portal in self._known.values():
            portal.is_kept, portal.level = True, 0

    def roll_back(self, level: int = 0) -> None:
        """Close what was opened in the block, or after so many savepoints of it."""
        self._known = {
            name: portal for name, portal in self._known.items() if portal.is_kept or portal.level < level
        }

    def release(self, level: int) -> None:
        """Take note that there are only so many savepoints left."""
        for portal in self._known.values():
            portal.level = min(portal.level, level)

    def _rows(self) -> int:
        return sum(len(portal.result.rows) for portal in self._known.values() if portal.result is not None)


class _Taken(LargeRows):
    """Some of a result's rows, which are made when they are read."""

    def __init__(self, rows: Sequence[tuple[object, ...]], places: range) -> None:
        self._rows, self._places = rows, places

    def __len__(self) -> int:
        return len(self._places)

    def _between(self, low: int, high: int) -> list[tuple[object, ...]]:
        places = self._places[low:high]
        low, high = min(places[0], places[-1]), max(places[0], places[-1])
        return list(self._rows[low : high + 1])[:: places.step]

    def columns(self, low: int, high: int) -> list[Values] | None:
        places = self._places[low:high]
        if places.step != 1 or not isinstance(self._rows, LargeRows):
            return None
        return self._rows.columns(places.start, places.stop)


# --- where a cursor stands ------------------------------------------------------------------------------

_Step = tuple[range, int]
"""The numbers of the rows in the order they come, and the position after them."""


def step(how: Fetch, position: int, size: int) -> _Step:
    """Return which rows a fetch gives, and where it ends."""
    count, is_forward = how.count, how.direction is not Direction.BACKWARD
    if how.direction is Direction.ABSOLUTE and count is not None:
        return _at(count if count >= 0 else size + 1 + count, size)
    if count is not None and (count == 0 or how.direction is Direction.RELATIVE):
        return _at(position + count, size)
    if count is not None and count < 0:
        count, is_forward = -count, not is_forward
    if is_forward:
        end = size + 1 if count is None else min(position + count, size + 1)
        return range(position + 1, min(end, size) + 1), end
    end = 0 if count is None else max(position - count, 0)
    return range(position - 1, max(end, 1) - 1, -1), end


def _at(place: int, size: int) -> _Step:
    """Return the row of a position, if there is one; what goes further ends before the first or after the last."""
    place = min(max(place, 0), size + 1)
    return range(place, place + (1 <= place <= size)), place


def _needs_backward(how: Fetch, position: int, size: int) -> bool:
    """Say whether a fetch is one that a cursor without SCROLL refuses; some are, wherever the cursor stands."""
    count = how.count
    if how.direction is Direction.ABSOLUTE:
        count = count or 0
        return count < 0 or (position > 0 and count <= position)
    if count == 0:
        return not how.is_move and (how.direction is Direction.BACKWARD or 1 <= position <= size)
    backward = how.direction is Direction.BACKWARD
    if backward and count is None and how.is_move:
        return position > 0
    return backward != (count is not None and count < 0)


# --- what the statements of a connection read and change ----------------------------------------------------


_MAX_SAVEPOINTS = 100


class BlockKind(enum.Enum):
    """What made the block."""

    NONE = enum.auto()
    SINGLE = enum.auto()
    PIPELINE = enum.auto()
    SERIES = enum.auto()
    BEGUN = enum.auto()


class ConnectionState:
    """The block that a connection is in, if any, its settings, which a rollback restores, and its portals."""

    def __init__(self, session: Session, client: ClientSettings) -> None:
        self.client = self._told = client
        """The settings now, and as the client knows them."""
        self.kind = BlockKind.NONE
        self.is_failed = False
        self.has_queried = False
        """Whether a statement of the block has read: its modes are settled from then on."""
        self.portals = Portals(session.share())
        self._session = session
        session.settings = client.own
        self._shown: tuple[object, Hashable] = None, None
        """The client's settings when they were last compared, and what with."""
        self._before = list[tuple[str, ClientSettings]]()
        """What held at the block's beginning, under "", and at each savepoint."""

    # --- the block -----------------------------------------------------------------------------------

    @property
    def status(self) -> TransactionStatus:
        """What ReadyForQuery says."""
        if self.kind is not BlockKind.BEGUN:
            return TransactionStatus.IDLE
        return TransactionStatus.FAILED if self.is_failed else TransactionStatus.IN_BLOCK

    @property
    def is_bare(self) -> bool:
        """Whether there is no block, and no setting that holds until one ends."""
        return self.kind is BlockKind.NONE and not self.client.local

    @property
    def settings(self) -> Hashable:
        """All settings, outside a block, as what can be compared."""
        if self._shown[0] is not self.client.now:
            self._shown = self.client.now, tuple(sorted(self.client.now.items()))
        return self._shown[1]

    @property
    def is_lasting(self) -> bool:
        """Whether more than one statement can stand in the block: a cursor may be opened, SET LOCAL lasts."""
        return self.kind in (BlockKind.SERIES, BlockKind.BEGUN)

    @property
    def is_alone(self) -> bool:
        """Whether nothing else stands in the block."""
        return self.kind in (BlockKind.NONE, BlockKind.SINGLE)

    @property
    def depth(self) -> int:
        """How many savepoints there are."""
        return max(len(self._before) - 1, 0)

    def check(self, statement: Statement | None) -> None:
        """Raise Fault (25P02) if the block has failed and the statement does not end it or go back in it."""
        ends = isinstance(statement, End) or (
            isinstance(statement, Mark) and statement.marking is Marking.ROLLBACK
        )
        if self.is_failed and not ends:
            raise Fault(
                "25P02", "the block has failed: statements are ignored until it ends", hint="ROLLBACK"
            )

    def open(self, kind: BlockKind) -> None:
        """Have the next statement stand in a block, if no BEGIN has made one; a single one becomes a series."""
        if self.kind is BlockKind.NONE:
            self._before = [("", self.client)]
            self.kind, self.is_failed, self.has_queried = kind, False, False
            self.client = self.client.in_block()
        elif self.kind is BlockKind.SINGLE:
            self.kind = kind

    def settle(self) -> None:
        """End a block that no BEGIN has made, once all that was sent at once is answered."""
        if self.kind is not BlockKind.BEGUN:
            self._close(is_commit=True)

    def abort(self) -> None:
        """Take note of an error: what no BEGIN has made is undone, or what was since the last savepoint, or BEGIN."""
        if self.kind is BlockKind.BEGUN:
            self.is_failed = True
            self._keep(self._before[-1][1])
        else:
            self._close(is_commit=False)

    def _close(self, *, is_commit: bool) -> None:
        """End the block, whatever made it."""
        after = self.client
        if is_commit and not self.is_failed:
            after = after.after_block()
            self.portals.commit()
        else:
            after = self._before[0][1] if self._before else after
            self.portals.roll_back()
        self.kind, self.is_failed, self.has_queried, self._before = BlockKind.NONE, False, False, []
        self._keep(after)

    def end(self, statement: End) -> Result:
        """Commit or roll back; the tag says which it was."""
        was_begun, modes = self.kind is BlockKind.BEGUN, self.client.modes()
        if statement.is_chain and not was_begun:
            written = "COMMIT" if statement.is_commit else "ROLLBACK"
            raise Fault("25P01", f"{written} AND CHAIN can only be used in a block", hint="BEGIN first")
        notices = self.warn("25P01", None if was_begun else "there is no transaction in progress")
        tag = "COMMIT" if statement.is_commit and not self.is_failed else "ROLLBACK"
        self._close(is_commit=statement.is_commit)
        if statement.is_chain:
            self.open(BlockKind.BEGUN)
            self._keep(self.client.with_modes(modes))
        return Result(tag, notices=notices)

    def mark(self, statement: Mark) -> Result:
        """Make, release or go back to a savepoint.

        Raises Fault: outside a block (25P01), no such savepoint (3B001), or too many (54000).
        """
        what = statement.marking
        if self.kind is not BlockKind.BEGUN:
            written = {Marking.ROLLBACK: "ROLLBACK TO SAVEPOINT", Marking.RELEASE: "RELEASE SAVEPOINT"}
            raise Fault(
                "25P01", f"{written.get(what, what.value)} can only be used in a block", hint="BEGIN first"
            )
        if what is Marking.SAVE:
            if len(self._before) > _MAX_SAVEPOINTS:
                raise Fault("54000", "too many savepoints", hint="release some")
            self._before.append((statement.name, self.client))
            self._session.workspace.save()
            return Result(what.value)
        place = self.place(statement)
        if what is Marking.RELEASE:
            del self._before[place:]
            self.portals.release(self.depth)
            self._session.workspace.release(self.depth)
            return Result(what.value)
        del self._before[place + 1 :]
        self.portals.roll_back(self.depth)
        self.is_failed = False
        self._keep(self._before[place][1])
        return Result(what.value)

    def place(self, statement: Mark) -> int:
        """Return how many savepoints there are up to the one that a statement names. Raises Fault (3B001): none is."""
        names = [name for name, _ in self._before]
        if statement.name not in names[1:]:
            raise Fault(
                "3B001", f'savepoint "{statement.name}" does not exist', hint="it was released, or never made"
            )
        return len(names) - 1 - names[::-1].index(statement.name)

    def set_modes(self, statement: Begin | Characteristics) -> Result:
        """Begin a block, or set the modes of the one at hand, or of all to come."""
        if isinstance(statement, Characteristics) and statement.is_session:
            self._keep(self.client.with_modes(statement.modes, "default_"))
            return Result("SET")
        for name, value in statement.modes:
            self._check_mode(name, value)
        if isinstance(statement, Begin):
            tag, is_begun = statement.tag, self.kind is BlockKind.BEGUN
            notices = self.warn("25001", "there is already a transaction in progress" if is_begun else None)
            self.kind = BlockKind.BEGUN
        else:
            tag, warning = "SET", "SET TRANSACTION can only be used in transaction blocks"
            notices = self.warn("25P01", None if self.is_lasting else warning)
        self._keep(self.client.with_modes(statement.modes))
        return Result(tag, notices=notices)

    def _check_mode(self, name: str, value: str) -> None:
        """Raise Fault (25001) if a mode of the block at hand is settled."""
        is_level = name == "transaction_isolation"
        if name == "transaction_read_only" or (is_level and self.client.show(name)[1] == value):
            return
        if self.has_queried or self.depth:
            what = "the isolation level" if is_level else "DEFERRABLE"
            raise Fault("25001", f"{what} must be set before any query of the block", hint="BEGIN with it")

    # --- settings ------------------------------------------------------------------------------------

    def show(self, statement: Show) -> Result:
        """Show a client's setting, or all."""
        if statement.name is not None:
            name, value = self.client.show(statement.name)
            return Result("SHOW", (FieldDescription(name, Oid.TEXT),), [(value,)])
        columns = (FieldDescription("name", Oid.TEXT), FieldDescription("setting", Oid.TEXT))
        own = [(name, self.client.own.show(name)) for name in OWN]
        return Result("SHOW", columns, sorted([*self.client.show_all(), *own]))

    def set(self, statement: Set) -> Result:
        """Set a setting, or have it go back. Raises Fault, Refusal."""
        name, values = statement.name, statement.values
        if name is None:
            self.reset_all()
            return Result(statement.tag)
        warning = "SET LOCAL can only be used in transaction blocks"
        is_warned = statement.is_local and not self.is_lasting
        notices = self.warn("25P01", warning if is_warned else None)
        if values is None:
            changed = self.client.reset(name, is_local=statement.is_local)
        else:
            if name.startswith("transaction_") and len(values) == 1:
                self._check_mode(name, values[0].lower())
            changed = self.client.set(name, values, is_local=statement.is_local)
            notices += self.warn("01000", self.client.warning(name, values))
        self._keep(changed)
        return Result(statement.tag, notices=notices)

    def reset_all(self) -> None:
        """Have all settings be as they were at connect."""
        self._keep(self.client.reset_all())

    def warn(self, sqlstate: str, message: str | None) -> tuple[NoticeResponse, ...]:
        """Return a warning, if there is one and the client wants to be told."""
        if message is None or not self.client.wants_warnings:
            return ()
        return (NoticeResponse(sqlstate, message, severity="WARNING"),)

    def changes(self) -> list[ParameterStatus]:
        """Return what the client has to be told of its settings, which it then knows."""
        told, self._told = self._told, self.client
        if not self._told.may_differ(told):
            return []
        before, after = told.reported(), self._told.reported()
        return [ParameterStatus(name, after[name]) for name in after if after[name] != before[name]]

    def _keep(self, settings: ClientSettings) -> None:
        """Take over settings, of which the session has dpsql's own."""
        if settings.may_differ(self.client):
            self._session.settings = settings.own
        self.client = settings
