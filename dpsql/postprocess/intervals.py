"""Intervals in an answer: the sealed engine's client has no type that keeps months, so they travel as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from ..errors import Refusal
from ..relation.expressions import Call, Field
from ..relation.relations import Project, Relation
from ..relation.types import Kind

__all__ = ["Interval", "check_carried", "read_interval", "show_intervals"]

_PART = re.compile(r"([+-]?\d+) (year|mon|day)s?")
_CLOCK = re.compile(r"([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?$")


class Interval(timedelta):
    """A timedelta of 365 days a year and 30 a month, as drivers make one, that keeps months, days and microseconds."""

    parts: tuple[int, int, int]


def read_interval(value: object) -> Interval | None:
    """Return an interval from Postgres' text of it."""
    if not isinstance(value, str):
        return None
    found = {unit: int(number) for number, unit in _PART.findall(value)}
    clock = _CLOCK.search(value)
    microseconds = 0
    if clock is not None:
        sign, hours, minutes, seconds, fraction = clock.groups()
        microseconds = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10**6
        microseconds += int((fraction or "").ljust(6, "0"))
        microseconds = -microseconds if sign == "-" else microseconds
    years, months, days = (found.get(unit, 0) for unit in ("year", "mon", "day"))
    try:
        made = Interval(days=years * 365 + months * 30 + days, microseconds=microseconds)
    except OverflowError:
        return None
    made.parts = (years * 12 + months, days, microseconds)
    return made


def check_carried(parts: Mapping[Relation, frozenset[int]]) -> None:
    """Check that no part of public tables hands an interval on. Raises Refusal (0A000)."""
    for part, needed in parts.items():
        if any(part.columns[index].type.kind is Kind.INTERVAL for index in needed):
            raise Refusal(
                "an interval of a public table is not joined to a release", sqlstate="0A000",
                hint="join the two moments, and take their difference there",
            )  # fmt: skip


def show_intervals(node: Relation) -> Relation:
    """Return a statement's relation with its columns of intervals as text; they keep their type."""
    if not any(column.type.kind is Kind.INTERVAL for column in node.columns):
        return node
    fields = [Field(column.type, index, column.name) for index, column in enumerate(node.columns)]
    exprs = tuple(
        Call(field.type, "interval_text", (field,)) if field.type.kind is Kind.INTERVAL else field
        for field in fields
    )
    return Project(node, exprs, tuple(column.name for column in node.columns))
