"""A session's settings: dpsql.epsilon, dpsql.intervals, dpsql.reuse; dpsql.budget can only be shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from ..errors import Refusal
from ..mechanisms import parse_epsilon
from ..policy import Defaults

__all__ = ["NAMES", "Settings", "decimal_text"]

NAMES = ("dpsql.epsilon", "dpsql.intervals", "dpsql.reuse", "dpsql.budget")
"""What SET and SHOW know."""

_LEVEL = re.compile(r"0\.[0-9]{1,4}", re.ASCII)
_SWITCH = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


@lru_cache(1000)
def decimal_text(value: Fraction) -> str:
    """Return an exact decimal without trailing zeros, at most 18 digits after the point."""
    scaled = round(value * 10**18)
    sign, digits = "-" if scaled < 0 else "", str(abs(scaled)).rjust(19, "0")
    return (sign + digits[:-18] + "." + digits[-18:]).rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Settings:
    """`epsilon` per statement; `intervals`: the level of companion error bars, None for none; `reuse`."""

    epsilon: Fraction
    intervals: Fraction | None
    reuse: bool

    @classmethod
    def of(cls, defaults: Defaults) -> Settings:
        """Return what a new session starts with."""
        return cls(defaults.epsilon, None, True)

    def set(self, name: str, value: str, defaults: Defaults) -> Settings:
        """Return the settings after SET name = value.

        Raises:
            Refusal: PV301 or 22023 for a bad value, 42704 for a setting that does not exist.
        """
        if value.lower() == "default":
            return self.reset(name, defaults)
        if name == "dpsql.epsilon":
            epsilon = parse_epsilon(value)
            if epsilon > defaults.max_epsilon:
                raise Refusal(
                    f"epsilon {value} is above the owner's limit of {decimal_text(defaults.max_epsilon)} a statement",
                    sqlstate="PV301",
                    hint="set a smaller one",
                )
            return replace(self, epsilon=epsilon)
        if name == "dpsql.intervals":
            if value.lower() == "off":
                return replace(self, intervals=None)
            if not _LEVEL.fullmatch(value) or not Fraction(1, 100) <= Fraction(value) <= Fraction(
                9999, 10000
            ):
                raise Refusal(
                    "dpsql.intervals is a level between 0.01 and 0.9999, or off",
                    sqlstate="22023",
                    hint="SET dpsql.intervals = 0.95",
                )
            return replace(self, intervals=Fraction(value))
        if name == "dpsql.reuse":
            if value.lower() not in _SWITCH:
                raise Refusal("dpsql.reuse is on or off", sqlstate="22023", hint="SET dpsql.reuse = off")
            return replace(self, reuse=_SWITCH[value.lower()])
        if name == "dpsql.budget":
            raise Refusal("dpsql.budget can only be shown", sqlstate="22023", hint="SHOW dpsql.budget")
        raise unknown(name)

    def reset(self, name: str, defaults: Defaults) -> Settings:
        """Return the settings after RESET name."""
        fresh = Settings.of(defaults)
        if name in ("dpsql.epsilon", "dpsql.intervals", "dpsql.reuse"):
            field = name.removeprefix("dpsql.")
            return replace(self, **{field: getattr(fresh, field)})
        raise unknown(name)

    def show(self, name: str) -> str:
        """Return a setting's value as text."""
        if name == "dpsql.epsilon":
            return decimal_text(self.epsilon)
        if name == "dpsql.intervals":
            return "off" if self.intervals is None else decimal_text(self.intervals)
        if name == "dpsql.reuse":
            return "on" if self.reuse else "off"
        raise unknown(name)


def unknown(name: str) -> Refusal:
    """Return the refusal of a setting that does not exist."""
    return Refusal(f'setting "{name}" does not exist', sqlstate="42704", hint="settings: " + ", ".join(NAMES))
