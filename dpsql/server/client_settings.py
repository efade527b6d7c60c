"""A connection's settings: what a client asked for at connect, what it has set, and what holds until its block ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..engine.settings import OWN, Settings
from ..policy import Policy
from .release_timing import release_time
from .report import Fault
from .setting_table import KNOWN, TIME, KnownSetting, name_list
from .statements import Modes

__all__ = ["ClientSettings"]

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
    known: Mapping[str, KnownSetting]
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

    def _read(self, known: KnownSetting, values: tuple[str, ...]) -> str:
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
        asked = int(match[1]) * TIME[match[2] or "ms"] / 1000
        return release_time(0.0, asked) if asked else None

    @property
    def wants_notices(self) -> bool:
        """Whether NOTICEs are to be sent."""
        return self.show("client_min_messages")[1] not in ("warning", "error")

    @property
    def wants_warnings(self) -> bool:
        """Whether WARNINGs are to be sent."""
        return self.show("client_min_messages")[1] != "error"

    def _default(self, known: KnownSetting) -> str:
        return self.show(f"default_{known.name}")[1] if known.name in _OF_BLOCK else known.default

    def _find(self, name: str) -> KnownSetting:
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
        return KnownSetting(
            key, "", lambda values: values[0] if len(values) == 1 and len(values[0]) <= 4096 else None
        )

    def _find_own(self, name: str) -> KnownSetting:
        def read(values: tuple[str, ...]) -> str:
            text = ", ".join(values)
            Settings.of(self.policy).set(name, text, self.policy)
            return text

        return KnownSetting(name, "default", read)


def _search_path(schema: str, written: str) -> KnownSetting:
    """Any list is taken that leaves dpsql's own schema, or what clients take for it, in sight."""
    default = '"$user", public' if schema == "public" else name_list((schema,))
    in_sight = {schema, written, "public", "$user"}
    return KnownSetting(
        "search_path", default, lambda values: name_list(values) if in_sight & set(values) else None
    )


def _check_settable(known: KnownSetting) -> None:
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
