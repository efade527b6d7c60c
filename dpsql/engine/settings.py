"""A session's settings: what SET takes and SHOW tells; and what a line that is typed may go on with.

dpsql.budget can only be shown.

A line goes on with tables, columns, functions and settings, each with what it means: from the catalog that the
analyst sees, and tables of our own. No row is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..errors import Refusal
from ..mechanisms import parse_epsilon
from ..policy import Policy
from ..policy.describe import column_comment, table_comment
from ..records import dataclass
from ..regex import regex
from ..relation.functions import ROWS

if TYPE_CHECKING:
    from .session import Session

_LEVEL = regex(r"0\.[0-9]{1,4}", re.ASCII)
_ACCURACY = regex(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?(%?)", re.ASCII)
_PATTERN = regex(r"[^%\x00-\x20]{0,40}%[^%\x00-\x20]{0,40}")
_SHARE = regex(r"0\.[0-9]{1,4}", re.ASCII)
_COUNT = regex(r"[0-9]{1,9}", re.ASCII)
_ON, _OFF = ("on", "true", "1"), ("off", "false", "0")


@lru_cache(1000)
def decimal_text(value: Fraction) -> str:
    """Return an exact decimal without trailing zeros, at most 18 digits after the point."""
    scaled = round(value * 10**18)
    sign, digits = "-" if scaled < 0 else "", str(abs(scaled)).rjust(19, "0")
    return (sign + digits[:-18] + "." + digits[-18:]).rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Accuracy:
    """By how much an answer may be off: `size` itself, or `size` percent of a stored count."""

    size: Fraction
    is_percent: bool = False

    @property
    def text(self) -> str:
        """What SET takes."""
        return decimal_text(self.size) + (" %" if self.is_percent else "")

    @property
    def said(self) -> str:
        """The same, for people."""
        return f"± {self.text}"


@dataclass(frozen=True, slots=True)
class Settings:
    """`epsilon` per statement; `intervals`: the level of companion error bars, None for none; `reuse`.

    `max_rows`: most rows of a person that count in a result, where the policy takes more; None: what it takes.
    `accuracy`: where it is set, the least epsilon for it is spent in place of `epsilon`. `selection`: whether the
    largest groups may be chosen before they are measured. `draws_ends`: whether the ends of a chosen value's bar are
    drawn with it where bars are on, which leaves less of epsilon for the value. `interval_names`: what the columns of
    their ends are called, % for the number's own name. `on_empty`: whether an answer of which no
    group is shown is an error. `grids`: whether rows of people that
    a condition keeps are answered with their columns, and no row. `unlisted`: whether a column is
    compared with values that the policy does not list for it. `found_share`: the part of epsilon (or rho) of the count
    of people by which groups are found; None: a rule of the text says it. `edition`: the ledger entry up to which
    stored draws answer, and nothing is drawn; None: all do. `open`: whether periods that are not over are read, under a
    budget by periods.
    """

    epsilon: Fraction
    intervals: Fraction | None
    reuse: bool
    max_rows: int | None = None
    accuracy: Accuracy | None = None
    selection: bool = True
    draws_ends: bool = True
    unlisted: bool = False
    interval_names: tuple[str, str] = ("%_low", "%_high")
    grids: bool = False
    on_empty: bool = False
    found_share: Fraction | None = None
    edition: int | None = None
    open: bool = False
    _hash: int = field(init=False, repr=False, compare=False, default=0)
    """Made once: a fraction's takes longer than all else that is looked at before a remembered answer."""

    def __post_init__(self) -> None:
        own = (
            self.epsilon, self.intervals, self.reuse, self.max_rows, self.accuracy, self.selection,
            self.draws_ends, self.unlisted, self.interval_names, self.grids, self.on_empty, self.found_share,
            self.edition, self.open,
        )  # fmt: skip
        object.__setattr__(self, "_hash", hash(own))

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def of(cls, policy: Policy) -> Settings:
        """Return what a new session starts with."""
        return cls(policy.defaults.epsilon, None, True)

    def set(self, name: str, value: str, policy: Policy) -> Settings:
        """Return the settings after SET name = value.

        Raises:
            Refusal: PV301 or 22023 for a bad value, 42704 for a setting that does not exist.
        """
        if value.lower() == "default":
            return self.reset(name, policy)
        if name == "dpsql.budget":
            raise Refusal("dpsql.budget can only be shown", sqlstate="22023", hint="SHOW dpsql.budget")
        if name not in _SETTINGS:
            raise unknown(name)
        changed = replace(self, **{_field(name): _SETTINGS[name].read(value, policy)})
        return replace(changed, draws_ends=True) if name == "dpsql.intervals" else changed

    def reset(self, name: str, policy: Policy) -> Settings:
        """Return the settings after RESET name."""
        if name not in _SETTINGS:
            raise unknown(name)
        return replace(self, **{_field(name): getattr(Settings.of(policy), _field(name))})

    def with_usual_bars(self, level: Fraction) -> Settings:
        """Return the settings with bars that nobody asked for: they change nothing that is drawn."""
        return replace(self, intervals=level, draws_ends=False)

    def show(self, name: str) -> str:
        """Return a setting's value as text."""
        if name not in _SETTINGS:
            raise unknown(name)
        return _SETTINGS[name].show(getattr(self, _field(name)))


# --- each setting -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Setting:
    """How a setting's text is read, under a policy, and how its value is shown. `read` raises Refusal."""

    read: Callable[[str, Policy], Any]
    show: Callable[[Any], str]


def _field(name: str) -> str:
    return name.removeprefix("dpsql.")


def _either(name: str, yes: Sequence[str], no: Sequence[str]) -> _Setting:
    """Return a setting of two values, by their words; the first of each is shown."""

    def read(value: str, policy: Policy) -> bool:
        _require(value.lower() in (*yes, *no), f"{name} is {yes[0]} or {no[0]}", f"SET {name} = {no[0]}")
        return value.lower() in yes

    return _Setting(read, lambda truth: yes[0] if truth else no[0])


def _require(holds: object, said: str, hint: str) -> None:
    """Raise Refusal 22023 unless a value is one of its setting's."""
    if not holds:
        raise Refusal(said, sqlstate="22023", hint=hint)


def _or(word: str, read: Callable[[str, Policy], Any], show: Callable[[Any], str]) -> _Setting:
    """Return a setting that may be none, which is shown as a word."""
    return _Setting(read, lambda value: word if value is None else show(value))


def _read_epsilon(value: str, policy: Policy) -> Fraction:
    """Return an epsilon. Raises Refusal PV301: it is none, or above the owner's limit."""
    epsilon = parse_epsilon(value)
    if epsilon > policy.defaults.max_epsilon:
        limit = decimal_text(policy.defaults.max_epsilon)
        raise Refusal(
            f"epsilon {value} is above the owner's limit of {limit} a statement",
            sqlstate="PV301",
            hint=f"SET dpsql.epsilon = {limit} is the most",
        )
    return epsilon


def _read_level(value: str, policy: Policy) -> Fraction | None:
    """Return the level of error bars, None for off. Raises Refusal 22023."""
    if value.lower() == "off":
        return None
    is_level = _LEVEL.fullmatch(value) and Fraction(1, 100) <= Fraction(value) <= Fraction(9999, 10000)
    said = "dpsql.intervals is a level between 0.01 and 0.9999, or off"
    _require(is_level, said, "SET dpsql.intervals = 0.95")
    return Fraction(value)


def _read_accuracy(value: str, policy: Policy) -> Accuracy | None:
    """Return an accuracy, None for off. Raises Refusal PV301: signs, exponents, NaN, 0, digits of other scripts."""
    if value.lower() == "off":
        return None
    found = _ACCURACY.fullmatch(value)
    if found is None or not Fraction(found[1]):
        raise Refusal(
            "dpsql.accuracy is a number above 0, a number of percent, or off",
            sqlstate="PV301",
            hint="SET dpsql.accuracy = 50, or '2 %' of a stored count; at most nine decimals and no exponent",
        )
    return Accuracy(Fraction(found[1]), bool(found[2]))


def _read_names(value: str, policy: Policy) -> tuple[str, str]:
    """Return what the columns of low and high ends are called. Raises Refusal 22023."""
    names = tuple(value.split())
    _require(
        len(names) == 2 and all(map(_PATTERN.fullmatch, names)) and len({*names, "%"}) == 3,
        "dpsql.interval_names is two names, each with % for the number's own",
        "SET dpsql.interval_names = '%__yhat_lower %__yhat_upper' is what a band in Superset reads",
    )
    return names[0], names[1]


def _read_share(value: str, policy: Policy) -> Fraction:
    """Return a part between 0 and 1. Raises Refusal 22023."""
    said = "dpsql.found_share is a part between 0 and 1, with at most four decimals, or default"
    _require(_SHARE.fullmatch(value) and Fraction(value), said, "SET dpsql.found_share = 0.5")
    return Fraction(value)


def _read_max_rows(value: str, policy: Policy) -> int:
    """Return how many rows of a person an analyst takes. Raises Refusal: 22023, or PV301 above the policy's."""
    is_count = _COUNT.fullmatch(value) and int(value) >= 1
    _require(is_count, "dpsql.max_rows is a whole number of at least 1", "SET dpsql.max_rows = 10")
    most = max((table.max_rows or 0 for table in policy.tables.values()), default=0)
    if int(value) > most:
        raise Refusal(
            f"max_rows {value} is above the owner's limit of {most} rows of a person"
            if most
            else "the owner declares no max_rows, so there is nothing to take less of",
            sqlstate="PV301",
            hint=f"SET dpsql.max_rows = {most} is the most, RESET dpsql.max_rows takes what the policy says"
            if most
            else "RESET dpsql.max_rows",
        )
    return int(value)


def _read_open(value: str, policy: Policy) -> bool:
    """Return whether periods that are not over are read. Raises Refusal 22023: where the owner does not allow it."""
    is_open = bool(_either("dpsql.open", _ON, _OFF).read(value, policy))
    has_periods = not is_open or policy.privacy.time is not None
    _require(has_periods, "there are no periods here: all data are read", "RESET dpsql.open")
    if is_open and policy.privacy.time is not None and not policy.privacy.time.is_open:
        period = policy.privacy.time.period.value
        raise Refusal(
            f"the owner has no {period} answered before it is over", sqlstate="22023",
            hint=f"ask for {period}s that are over", owner_hint="write open = true in [privacy.time]",
        )  # fmt: skip
    return is_open


def _read_edition(value: str, policy: Policy) -> int | None:
    """Return a ledger entry, None for the newest. Raises Refusal 22023."""
    if value.lower() == "newest":
        return None
    hint = 'SET dpsql.edition = 18, where a receipt says: edition 18 of "student"'
    _require(_COUNT.fullmatch(value), "dpsql.edition is the number of an edition, or newest", hint)
    return int(value)


_SETTINGS: dict[str, _Setting] = {
    "dpsql.epsilon": _Setting(_read_epsilon, decimal_text),
    "dpsql.accuracy": _or("off", _read_accuracy, lambda wish: wish.text),
    "dpsql.intervals": _or("off", _read_level, decimal_text),
    "dpsql.interval_names": _Setting(_read_names, " ".join),
    "dpsql.max_rows": _or("default", _read_max_rows, str),
    "dpsql.reuse": _either("dpsql.reuse", _ON, _OFF),
    "dpsql.selection": _either("dpsql.selection", _ON, _OFF),
    "dpsql.found_share": _or("default", _read_share, decimal_text),
    "dpsql.edition": _or("newest", _read_edition, str),
    "dpsql.open": _Setting(_read_open, lambda truth: _ON[0] if truth else _OFF[0]),
    "dpsql.unlisted": _either("dpsql.unlisted", _ON, _OFF),
    "dpsql.grids": _either("dpsql.grids", ("empty",), ("off",)),
    "dpsql.on_empty": _either("dpsql.on_empty", ("error",), ("rows",)),
}
"""Each setting, of the field of its name in `Settings`."""

OWN = tuple(_SETTINGS)
"""What can be set."""

NAMES = (*OWN, "dpsql.budget")
"""What SET and SHOW know."""


def unknown(name: str) -> Refusal:
    """Return the refusal of a setting that does not exist."""
    return Refusal(f'setting "{name}" does not exist', sqlstate="42704", hint="settings: " + ", ".join(NAMES))


def number_text(value: Fraction) -> str:
    """Return an exact decimal where it is short, else a rounded one."""
    exact = decimal_text(value)
    return exact if Fraction(exact) == value and len(exact) <= 15 else f"{float(value):.6g}"


# --- what a line that is typed may go on with ------------------------------------------------------------


SETTINGS = {
    "dpsql.epsilon": "what a statement may spend",
    "dpsql.accuracy": "by how much a number may be off: the least epsilon for it is found",
    "dpsql.intervals": "the level of error bars, such as 0.95, or off",
    "dpsql.interval_names": "what the columns of their ends are called: '%_low %_high'",
    "dpsql.max_rows": "how many rows of a person count, if fewer than the policy says",
    "dpsql.reuse": "off: draw anew and pay, in place of the stored answer",
    "dpsql.open": "on: read periods that are not over too, charged anew each day, where the owner allows it",
    "dpsql.selection": "off: measure all groups, where the largest would be chosen first",
    "dpsql.found_share": "what part of epsilon finds groups that nobody has declared",
    "dpsql.edition": "the edition that answers, as receipts name them: nothing is drawn, or newest",
    "dpsql.unlisted": "on: compare with values that the policy does not list",
    "dpsql.grids": "empty: rows that WHERE keeps are answered with their columns, and no row",
    "dpsql.on_empty": "error: an answer of which no group is shown says why as an error",
    "dpsql.budget": "what is left (SHOW only)",
}
"""Each setting with its meaning."""

AGGREGATES = {
    "COUNT": "how many rows, or values that are not NULL",
    "COUNT(DISTINCT ": "how many different values",
    "SUM": "their sum",
    "AVG": "their mean: a noisy sum by a noisy count",
    "MEDIAN": "the middle value, chosen near its rank",
    "STDDEV": "the standard deviation",
    "VARIANCE": "the variance",
    "CORR": "the correlation of two columns",
    "MIN": "a value near the smallest",
    "MAX": "a value near the largest",
    "MODE": "the most frequent value",
    "PERCENTILE_CONT": "a percentile, WITHIN GROUP (ORDER BY …)",
}


class Offers:
    """What a session offers: name and meaning, by kind."""

    def __init__(self, session: Session) -> None:
        policy = session.policy
        shown = session.seen.everything
        self.tables = {name: table_comment(table) for name, table in shown.items()}
        self.columns = {
            name: {one.name: column_comment(table, one.name, policy.has_delta) for one in table.named}
            for name, table in shown.items()
        }
        named = ((re.match(r"([a-z_]\w*)\(", row.form), row) for row in ROWS)
        self.functions = {match[1]: f"{row.form}: {row.doc}" for match, row in named if match}

    def of_statement(self, text: str) -> dict[str, str]:
        """Return the columns of the tables that a statement names, of all tables where it names none."""
        words = set(re.findall(r"\w+", text.lower()))
        tables = [name for name in self.columns if name.lower().rpartition(".")[2] in words] or list(
            self.columns
        )
        found: dict[str, str] = {}
        for name in tables:
            for column, meaning in self.columns[name].items():
                found.setdefault(column, meaning)
        return found
