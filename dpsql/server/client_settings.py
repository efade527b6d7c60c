"""A connection's settings: those there are, what a client asked for and has set, and what its block holds.

The settings of Postgres 15 that clients read or set: what each is here, and what it may become.

House rules:

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

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType

from ..engine.settings import OWN, Settings
from ..policy import Policy
from ..records import dataclass
from ..relation.catalog import OWN_SCHEMA
from .report import Fault
from .statements import Modes

# --- the settings of Postgres 15 that clients read or set: what each is here, and what it may become --------


VERSION = "15.0"
"""An older Postgres: clients are written for it, and know its ways."""
VERSION_TEXT = f"PostgreSQL {VERSION} (dpsql)"


# --- what a value that is given becomes: as it is shown, or None for a bad one ----------------------------

Reader = Callable[[tuple[str, ...]], str | None]
"""The values that were written, of which all but lists take one, to the text that is shown."""

_MAX_TEXT = 1024
_NUMBER = re.compile(
    r"([+-]?(?:\d{1,15}(?:\.\d{0,9})?|\.\d{1,9})(?:e[+-]?\d{1,2})?)\s*([A-Za-z]*)", re.IGNORECASE
)
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

_MAX = 2**31 - 1
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
_ZONE = re.compile(r"[A-Za-z<][A-Za-z0-9_+\-/<>:,.]{1,60}|[+-]?\d{1,2}(?:\.\d{1,4}|:\d{2}(?::\d{2})?)?")


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
    return _KnownSetting(name, "0", integer(0, _MAX, _TIME))


_YES = one_of("on", shown=dict.fromkeys(("true", "yes", "t", "y", "1"), "on"))
_NO = re.compile(r"off?|false|f|no|n|0", re.IGNORECASE)
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
    _KnownSetting("geqo_threshold", "12", integer(2, _MAX)),
    _KnownSetting("from_collapse_limit", "8", integer(1, _MAX)),
    _KnownSetting("join_collapse_limit", "8", integer(1, _MAX)),
    _KnownSetting("max_parallel_workers", "8", integer(0, 1024)),
    _KnownSetting("max_parallel_workers_per_gather", "2", integer(0, 1024)),
    _KnownSetting("effective_io_concurrency", "1", integer(0, 1000)),
    _KnownSetting("work_mem", "4MB", integer(64, _MAX, SIZE)),
    _KnownSetting("maintenance_work_mem", "64MB", integer(1024, _MAX, SIZE)),
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
_CUSTOM = re.compile(r"[a-z_][\w$]*(?:\.[a-z_][\w$]*)+")
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
