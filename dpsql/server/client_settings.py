"""The settings that every Postgres client reads or sets at connect: honest values, and nothing that is not kept.

A setting whose value changes something here can be set; of every other one only the value that holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .report import Fault

__all__ = ["REPORTED", "VERSION", "VERSION_TEXT", "ClientSettings"]

VERSION = "15.0"
"""An older Postgres: clients are written for it, and know its ways."""
VERSION_TEXT = f"PostgreSQL {VERSION} (dpsql)"

_TIME = re.compile(r"(\d{1,9})\s*(ms|s|min|h)?")
_UNITS = {"ms": 1, None: 1, "s": 1000, "min": 60_000, "h": 3_600_000}
_LEVELS = ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")


def _any(value: str) -> str | None:
    return value if value.isprintable() and len(value) <= 256 else None


def _one_of(canonical: str, *others: str) -> Callable[[str], str | None]:
    accepted = {re.sub(r"[\s\"']", "", text).lower() for text in (canonical, *others)}
    return lambda value: canonical if re.sub(r"[\s\"']", "", value).lower() in accepted else None


def _milliseconds(value: str) -> str | None:
    match = _TIME.fullmatch(value.strip().lower())
    if match is None or int(match[1]) * _UNITS[match[2]] > 2**31 - 1:
        return None
    return str(int(match[1]) * _UNITS[match[2]])


@dataclass(frozen=True, slots=True)
class _Known:
    """A setting: its name as it is shown, its value at first, and what a value given for it becomes."""

    name: str
    default: str
    read: Callable[[str], str | None]


def _fixed(name: str, value: str, *others: str) -> _Known:
    return _Known(name, value, _one_of(value, *others))


_ALL = (
    _Known("application_name", "", _any),
    _Known("statement_timeout", "0", _milliseconds),
    _Known("client_min_messages", "notice", lambda v: v.lower() if v.lower() in _LEVELS else None),
    _Known("extra_float_digits", "1", lambda v: v if v in ("1", "2", "3") else None),
    _fixed("client_encoding", "UTF8", "UTF-8", "unicode", "auto"),
    _fixed("server_encoding", "UTF8"),
    _fixed("DateStyle", "ISO, MDY", "ISO"),
    _fixed("IntervalStyle", "postgres"),
    _fixed("TimeZone", "UTC", "GMT", "Etc/UTC", "Z", "0", "00:00", "+00:00"),
    _fixed("integer_datetimes", "on"),
    _fixed("standard_conforming_strings", "on", "true", "1"),
    _fixed("bytea_output", "hex"),
    _fixed("search_path", '"$user", public', "public"),
    _fixed("server_version", VERSION),
    _fixed("server_version_num", "150000"),
    _fixed("is_superuser", "off"),
    _fixed("in_hot_standby", "off"),
    _fixed("default_transaction_read_only", "on", "true"),
    _fixed("transaction_read_only", "on", "true"),
    _fixed("transaction_isolation", "read committed"),
    _fixed("default_transaction_isolation", "read committed"),
    _fixed("transaction_deferrable", "off"),
    _fixed("lock_timeout", "0"),
    _fixed("idle_in_transaction_session_timeout", "0"),
    _fixed("max_identifier_length", "63"),
    _fixed("jit", "off", "false"),
)
_KNOWN: Mapping[str, _Known] = MappingProxyType({known.name.lower(): known for known in _ALL})

REPORTED = (
    "server_version", "server_encoding", "client_encoding", "application_name",
    "default_transaction_read_only", "in_hot_standby", "is_superuser", "session_authorization", "DateStyle",
    "IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings",
)  # fmt: skip
"""What a client is told unasked, at first and when it changes."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """A connection's settings; frozen, so that a block that is rolled back goes back to those before it."""

    user: str
    first: Mapping[str, str]
    """By name in lower case: what the client asked for when it connected, and RESET goes back to."""
    now: Mapping[str, str]

    @classmethod
    def of(cls, user: str, asked: Mapping[str, str]) -> ClientSettings:
        """Return a new connection's settings. Raises Fault for one that does not exist, or a bad value.

        A zone is not a reason to refuse: some clients send their machine's, and are told that here it is UTC.
        """
        settings = cls(user, {}, {})
        for name, value in asked.items():
            if name.lower() not in ("timezone", "datestyle"):
                settings = settings.set(name, value)
        return cls(user, settings.now, settings.now)

    def set(self, name: str, value: str) -> ClientSettings:
        """Return the settings after SET. Raises Fault: 42704 for no setting, 22023 for a bad value."""
        known = _find(name)
        read = known.read(value)
        if read is None:
            raise Fault(
                "22023", f'"{value[:60]}" cannot be the value of {known.name}',
                hint=f"SHOW {known.name} says what it is here",
            )  # fmt: skip
        return ClientSettings(self.user, self.first, {**self.now, known.name.lower(): read})

    def reset(self, name: str) -> ClientSettings:
        """Return the settings after RESET. Raises Fault: 42704."""
        key = _find(name).name.lower()
        kept = {other: value for other, value in self.now.items() if other != key}
        if key in self.first:
            kept[key] = self.first[key]
        return ClientSettings(self.user, self.first, kept)

    def reset_all(self) -> ClientSettings:
        """Return the settings as they were at connect."""
        return ClientSettings(self.user, self.first, self.first)

    def show(self, name: str) -> tuple[str, str]:
        """Return a setting's name as it is shown, and its value. Raises Fault: 42704."""
        if name.lower() == "session_authorization":
            return "session_authorization", self.user
        known = _find(name)
        return known.name, self.now.get(known.name.lower(), known.default)

    def show_all(self) -> list[tuple[str, str]]:
        """Return all settings by name."""
        return [self.show(name) for name in sorted((*_KNOWN, "session_authorization"))]

    def reported(self) -> dict[str, str]:
        """Return what the client is told unasked."""
        return dict(self.show(name) for name in REPORTED)

    @property
    def timeout(self) -> float | None:
        """Seconds that a statement may take; None for no limit."""
        return int(self.show("statement_timeout")[1]) / 1000 or None

    @property
    def wants_notices(self) -> bool:
        """Whether NOTICEs are to be sent."""
        return self.show("client_min_messages")[1] not in ("warning", "error")


def _find(name: str) -> _Known:
    known = _KNOWN.get(name.lower())
    if known is None:
        raise Fault(
            "42704", f'setting "{name[:60]}" does not exist',
            hint="SHOW ALL lists the connection's; dpsql's own are dpsql.epsilon, dpsql.intervals, dpsql.reuse",
        )  # fmt: skip
    return known
