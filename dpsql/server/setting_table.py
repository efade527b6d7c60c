"""The settings of Postgres 15 that clients read or set: what each is here, and what it may become.

House rules:

1. A setting that would change an answer's meaning or form has the one value that holds here.
2. A setting that only tells Postgres how to work is kept and shown, for clients check; it changes nothing here.
3. What a client sends unasked at connect, and cannot be followed, is taken with a warning (`taken`), and SHOW says
   what holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["KNOWN", "TIME", "VERSION", "VERSION_TEXT", "KnownSetting", "name_list"]

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
TIME = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
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


def name_list(values: tuple[str, ...]) -> str:
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
class KnownSetting:
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


def _only(name: str, value: str, *others: str) -> KnownSetting:
    """A setting of the one value that holds here, however it is written."""
    return KnownSetting(name, value, one_of(value, shown=dict.fromkeys(others, value)))


def _internal(name: str, value: str) -> KnownSetting:
    return KnownSetting(name, value, one_of(value), ("55P02", "it is a fact of this server"))


def _superuser(name: str, value: str) -> KnownSetting:
    return KnownSetting(name, value, one_of(value), ("42501", "only the owner of a server may"))


def _switch(name: str, value: str = "on") -> KnownSetting:
    return KnownSetting(name, value, boolean)


def _choice(name: str, first: str, *others: str, shown: Mapping[str, str] | None = None) -> KnownSetting:
    return KnownSetting(name, first, one_of(first, *others, shown=shown))


def _time(name: str) -> KnownSetting:
    return KnownSetting(name, "0", integer(0, _MAX, TIME))


_YES = one_of("on", shown=dict.fromkeys(("true", "yes", "t", "y", "1"), "on"))
_NO = re.compile(r"off?|false|f|no|n|0", re.IGNORECASE)
_ONLY_READS = "dpsql only reads: the setting stays on"

_CLIENT = (
    KnownSetting("application_name", "", ascii_text),
    KnownSetting("TimeZone", "UTC", one_of("UTC", shown=dict.fromkeys(_UTC, "UTC")), taken=_ZONE,
          warning="timestamps have no zone here, and now() is in UTC: TimeZone stays UTC"),
    KnownSetting("DateStyle", "ISO, MDY", one_of("ISO, MDY", shown={"ISO": "ISO, MDY", **_DATES})),
    _choice("client_min_messages", *_MESSAGES, shown={"debug": "debug2", "info": "notice"}),
    KnownSetting("extra_float_digits", "1", integer(-15, 3)),
    KnownSetting("search_path", "", any_text),
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
    KnownSetting("transaction_read_only", "on", _YES, taken=_NO, warning=_ONLY_READS),
    KnownSetting("default_transaction_read_only", "on", _YES, taken=_NO, warning=_ONLY_READS),
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
    KnownSetting("geqo_threshold", "12", integer(2, _MAX)),
    KnownSetting("from_collapse_limit", "8", integer(1, _MAX)),
    KnownSetting("join_collapse_limit", "8", integer(1, _MAX)),
    KnownSetting("max_parallel_workers", "8", integer(0, 1024)),
    KnownSetting("max_parallel_workers_per_gather", "2", integer(0, 1024)),
    KnownSetting("effective_io_concurrency", "1", integer(0, 1000)),
    KnownSetting("work_mem", "4MB", integer(64, _MAX, SIZE)),
    KnownSetting("maintenance_work_mem", "64MB", integer(1024, _MAX, SIZE)),
    KnownSetting("cursor_tuple_fraction", "0.1", real(0, 1)),
    KnownSetting("random_page_cost", "4", real(0, 1e308)),
    KnownSetting("seq_page_cost", "1", real(0, 1e308)),
    *(KnownSetting(name, value, any_text) for name, value in (
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

KNOWN: Mapping[str, KnownSetting] = MappingProxyType(
    {known.name.lower(): known for known in (*_CLIENT, *_TRANSACTIONS, *_WORK, *_FACTS)}
)
"""By name in lower case."""
