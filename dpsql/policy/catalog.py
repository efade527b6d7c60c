"""Joins the policy with the live schema into the catalog that the binder resolves against, a declared column first.

House rules of what one analyst sees of it (soundness.md 3.16):

1. What is not granted has no name: a statement cannot write it, and nothing that is said names it. That is decided
   here, once, when a session begins; whoever binds, describes or refuses has the narrowed catalog alone.
2. Nothing else changes. Whose a row is, what is measured and under which identity it is stored are those of the whole
   catalog: what two analysts may both ask is one release, drawn and charged once.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from ..errors import PolicyError
from ..mechanisms import Channel
from ..relation.catalog import (
    PERIOD,
    Catalog,
    Column,
    Enforced,
    EventTime,
    Ground,
    Hop,
    Later,
    Proved,
    Table,
    Unit,
    View,
    norm_key,
)
from ..relation.expressions import Field
from ..relation.relations import map_tables, renamed
from ..relation.types import DOUBLE, PLAIN_KEY, TEXT, Kind, SqlType
from .live_schema import (
    MAX_SCALE,
    OPEN_NUMERIC,
    LiveColumn,
    LiveSchema,
    LiveTable,
    comparable_type,
    open_numeric,
)
from .model import (
    Access,
    Accounting,
    Bound,
    ColumnPolicy,
    Key,
    Policy,
    RandomizedPolicy,
    TablePolicy,
    ViewPolicy,
)
from .section import bound_text, plain, quote_key, suggest
from .units import asserted_key, build_unit, enforced_keys, find_live_table, whose_of, without_unit

# --- A declared column meets its type -----------------------------------------------------------------------


Scalar = bool | int | Fraction | str | None

_INTEGER_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_FLOAT_MAX = {
    Kind.REAL: Fraction(struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]),
    Kind.DOUBLE: Fraction(struct.unpack("<d", b"\xff\xff\xff\xff\xff\xff\xef\x7f")[0]),
}
_EPOCH = datetime(1970, 1, 1)
_DAY = 24 * 60 * 60 * 10**6


@cache
def type_range(kind: SqlType) -> tuple[Fraction, Fraction] | None:
    """Return the least and the greatest finite value of a number type; None if it has none."""
    if kind.is_integer:
        half = 2 ** (_INTEGER_BITS[kind.kind] - 1)
        return Fraction(-half), Fraction(half - 1)
    if kind.is_float:
        return -_FLOAT_MAX[kind.kind], _FLOAT_MAX[kind.kind]
    if kind.kind is Kind.NUMERIC and kind.precision is not None:
        greatest = Fraction(10**kind.precision - 1, 10 ** (kind.scale or 0))
        return -greatest, greatest
    return None


def describe_column(live: LiveColumn) -> Column:
    """Return a column of a public table that the policy says nothing about: all that is known is enforced."""
    return Column(live.name, comparable_type(live), _enforced(live), values=_own_values(live))


def _enforced(live: LiveColumn) -> Enforced:
    labels = live.enum_values
    most = live.max_length if labels is None else max(map(len, labels), default=0)
    return Enforced(live.not_null, live.lo, live.hi, most)


def build_column(where: str, declared: ColumnPolicy, live: LiveColumn) -> Column:
    """Return the catalog's column. `where` is the file and the column's key, for messages.

    Ensures: bounds lie within the type's range with lower <= upper; values are distinct values of the
    type. A column of a small public type (ENUM, BOOLEAN) has its own values unless others are declared,
    NULL among them when the engine allows it. A number without a fixed scale has the decimals of a step
    that is a power of ten. Raises PolicyError.
    """
    if live.is_generated:
        _fail(where, "", "is computed when it is read and may fail on a row; store it, or take it out")
    if live.refused:
        _fail(where, "", live.refused)
    if live.type.kind is Kind.TEXT:
        _refuse_for_text(where, declared)
    elif declared.max_length is not None:
        _fail(where, "max_length", f"is for text, and the column is {live.type}; take it out")
    if live.engine_type == OPEN_NUMERIC and declared.step is not None:
        live = replace(live, type=_type_of_step(f"{where}.step", declared.step))
    return Column(
        name=declared.name,
        type=comparable_type(live),
        enforced=_enforced(live),
        bounds=None if declared.bounds is None else _bounds(f"{where}.bounds", declared.bounds, live.type),
        step=None if declared.step is None else _step(f"{where}.step", declared.step, live.type),
        is_log=_is_log(where, declared, live),
        values=_own_values(live) if declared.values is None else _values(f"{where}.values", declared, live),
        max_length=declared.max_length,
        description=declared.description,
        randomized=_channel(where, declared, live),
        is_complete=declared.complete,
    )


def _is_log(where: str, declared: ColumnPolicy, live: LiveColumn) -> bool:
    if declared.is_log and not live.type.is_number:
        _fail(where, "scale", f"is for numbers, and the column is {live.type}; take it out")
    return declared.is_log


def _channel(where: str, declared: ColumnPolicy, live: LiveColumn) -> Channel | None:
    """Return by which coins the column's answers were randomised, the values in their declared order."""
    coins, where = declared.randomized, f"{where}.randomized"
    if coins is None:
        return None
    if not (live.type.kind in (Kind.TEXT, Kind.BOOLEAN) or live.type.is_integer):
        _fail(
            where, "", f"is for text, whole numbers and booleans, and the column is {live.type}; take it out"
        )
    if declared.bounds is not None:
        _fail(
            where, "", "the column has bounds too; its values say all that there is, so take the bounds out"
        )
    values = declared.values
    if values is None:
        _fail(where, "", "needs values: all answers that could be given, in one list")
    if len(values) < 2:
        _fail(
            where, "", "there is one value alone, and nothing to randomise it with; list all, or take it out"
        )
    if None not in values and not live.not_null:
        _fail(
            where, "",
            "the column may hold NULL, which is not among its values, and so was not randomised: it would tell who did "
            "not answer; make the column NOT NULL, or add { null = true } to its values if it was randomised too",
        )  # fmt: skip
    try:
        return _coins(coins, values)
    except ValueError as error:
        _fail(where, "", f"{error}; {_likeliest(coins, len(values))}")


def _coins(coins: RandomizedPolicy, values: tuple[Key, ...]) -> Channel:
    """Return the channel of the declared coins. Raises ValueError."""
    if coins.epsilon is not None:
        return Channel.of_epsilon(len(values), coins.epsilon)
    assert coins.p is not None
    if coins.q is None:
        return Channel.of_truth(len(values), coins.p)
    if set(values) != {True, False}:
        raise ValueError("p and q are Pr[true | true] and Pr[true | false], for values = [true, false]")
    return Channel.of_bit(coins.p, coins.q, values.index(True))


def _likeliest(coins: RandomizedPolicy, size: int) -> str:
    if coins.epsilon is not None:
        return "write another"
    if coins.q is not None:
        return "write 0 < q < p < 1"
    return f"write a p above {plain(Fraction(1, size))} and below 1"


def _fail(where: str, key: str, problem: str) -> NoReturn:
    raise PolicyError(f"{where}{'.' if key else ''}{key}: {problem}")


def _type_of_step(where: str, step: Fraction) -> SqlType:
    """Return the type at which a number without a fixed scale is read so that a step is exact in it."""
    for scale in range(MAX_SCALE + 1):
        if step == Fraction(1, 10**scale):
            return open_numeric(scale)
    if step < Fraction(1, 10**MAX_SCALE):
        _fail(where, "", f"is finer than {plain(Fraction(1, 10**MAX_SCALE))}; write that, or more")
    return open_numeric()


def _refuse_for_text(where: str, declared: ColumnPolicy) -> None:
    if declared.bounds is not None:
        _fail(where, "bounds", "is for numbers and dates, and the column is text; write max_length or values")
    if declared.step is not None:
        _fail(where, "step", "is for numbers, and the column is text; take it out")


def _bounds(where: str, bounds: tuple[Bound, Bound], kind: SqlType) -> tuple[Fraction, Fraction]:
    """Return bounds in the catalog's units (days, microseconds), cut to what the type can hold.

    A date that ends those of a timestamp is all of that day, in UTC: else its rows would be clamped to midnight.
    """
    if not (kind.is_number or kind.is_temporal):
        _fail(where, "", f"is for numbers and dates, and the column is {kind}; take it out")
    lower, upper = (_bound(where, bound, kind) for bound in bounds)
    if ends_with_a_day(bounds, kind):
        upper += _DAY - 1
    if kind.is_integer and (lower.denominator != 1 or upper.denominator != 1):
        inner = f"[{-(-lower // 1)}, {upper // 1}]"
        _fail(where, "", f"the column is {kind}; write whole numbers, like {inner}")
    span = type_range(kind)
    if span is not None:
        if upper < span[0] or lower > span[1]:
            _fail(where, "", f"no {kind} lies between {plain(lower)} and {plain(upper)}; write other bounds")
        lower, upper = max(lower, span[0]), min(upper, span[1])
    return lower, upper


def ends_with_a_day(bounds: tuple[Bound, Bound], kind: SqlType) -> bool:
    """Say whether the upper end of a timestamp's bounds is a whole day."""
    return kind.kind is Kind.TIMESTAMP and not isinstance(bounds[1], (datetime, Fraction))


def _bound(where: str, bound: Bound, kind: SqlType) -> Fraction:
    if kind.is_number and isinstance(bound, Fraction):
        return bound
    if kind.kind is Kind.DATE and isinstance(bound, date) and not isinstance(bound, datetime):
        return Fraction((bound - _EPOCH.date()).days)
    if kind.kind is Kind.TIMESTAMP and isinstance(bound, date):
        moment = bound if isinstance(bound, datetime) else datetime(bound.year, bound.month, bound.day)
        return Fraction((moment - _EPOCH) // timedelta(microseconds=1))
    example = {
        Kind.DATE: "dates, like [2020-01-01, 2020-12-31]",
        Kind.TIMESTAMP: "date-times, like [2020-01-01T00:00:00, 2020-12-31T23:59:59]",
    }.get(kind.kind, "numbers")
    _fail(where, "", f"the column is {kind}; write {example}")


def _step(where: str, step: Fraction, kind: SqlType) -> Fraction:
    if not kind.is_number:
        _fail(where, "", f"is for numbers, and the column is {kind}; take it out")
    if kind.is_integer and step.denominator != 1:
        _fail(where, "", f"the column is {kind}; write a whole number")
    if kind.kind is Kind.NUMERIC and kind.precision is not None:
        unit = Fraction(1, 10 ** (kind.scale or 0))
        if (step / unit).denominator != 1:
            _fail(where, "", f"the column is {kind}; write a multiple of {plain(unit)}")
    return step


def _own_values(live: LiveColumn) -> tuple[Scalar, ...] | None:
    """Return the values that the type itself makes public, NULL last if the engine allows it."""
    if live.type.kind is Kind.BOOLEAN:
        own: tuple[Scalar, ...] = (False, True)
    elif live.enum_values is not None and live.type.kind is Kind.TEXT:
        own = live.enum_values
    else:
        return None
    return own if live.not_null else (*own, None)


def _values(where: str, declared: ColumnPolicy, live: LiveColumn) -> tuple[Scalar, ...]:
    values: list[Scalar] = []
    if live.type.is_float or live.type.kind in (Kind.OPAQUE, Kind.INTERVAL):
        _fail(where, "", f"the column is {live.type}, which cannot be a group key; take it out")
    for key in declared.values or ():
        value = None if key is None else _value(where, key, live)
        if value in values:
            _fail(where, "", f"{_show(value)} is listed twice; list it once")
        limit = declared.max_length  # Only text has one.
        if limit is not None and isinstance(value, str) and len(value) > limit:
            _fail(where, "", f"{_show(value)} is longer than max_length {limit}; raise that")
        values.append(value)
    return tuple(values)


def _value(where: str, key: Key, live: LiveColumn) -> Scalar:
    """Return one key in the type's own canonical form: dates and date-times as ISO text."""
    kind = live.type.kind
    if kind is Kind.BOOLEAN and isinstance(key, bool):
        return key
    if kind is Kind.TEXT and isinstance(key, str):
        if live.enum_values is not None and key not in live.enum_values:
            _fail(where, "", f"{_show(key)} is not a label of the column's enum; write one, or take it out")
        return key
    if kind is Kind.DATE and isinstance(key, date) and not isinstance(key, datetime):
        return key.isoformat()
    if kind is Kind.TIMESTAMP and isinstance(key, date):
        moment = key if isinstance(key, datetime) else datetime(key.year, key.month, key.day)
        return moment.isoformat(sep=" ")
    if live.type.is_number and isinstance(key, Fraction):
        return _number(where, key, live.type)
    example = {
        Kind.BOOLEAN: "true and false",
        Kind.TEXT: "text in quotes",
        Kind.DATE: "dates, like 2020-12-31",
        Kind.TIMESTAMP: "date-times, like 2020-12-31T00:00:00",
    }.get(kind, "numbers")
    _fail(where, "", f"{_show(key)} does not fit in {live.type}; write {example}")


def _number(where: str, key: Fraction, kind: SqlType) -> Scalar:
    span = type_range(kind)
    if span is not None and not span[0] <= key <= span[1]:
        _fail(where, "", f"{plain(key)} does not fit in {kind}; take it out")
    if kind.is_integer:
        if key.denominator != 1:
            _fail(where, "", f"{plain(key)} does not fit in {kind}; write whole numbers")
        return int(key)
    if kind.precision is not None and (key * 10 ** (kind.scale or 0)).denominator != 1:
        _fail(where, "", f"{plain(key)} has more digits than {kind} holds; round it")
    return key


def _show(value: Key | Scalar) -> str:
    if value is None:
        return "{ null = true }"
    if isinstance(value, str):
        return f'"{value}"'
    return bound_text(value) if isinstance(value, Fraction | date) else str(value).lower()


# --- joins the policy with the live schema into the catalog that the binder resolves against ----------------


MEASURING = "dpsql bounds"
"""What plans rest on, in place of the dataset, by which the owner measures bounds."""


def build_catalog(policy: Policy, live: LiveSchema) -> Catalog:
    """Return all declared tables with the types and constraints that the database has right now.

    A table is found under the name that the policy gives it: `table`, or `schema.table` outside the
    default schema. Ensures: what `build_unit`, `build_column` and `enforced_keys` ensure, for every table.
    Views are not among them: to read their texts takes the binder (`plan.views`).
    Raises PolicyError on the first disagreement, a table without a unit first; `check` lists them all.
    """
    live = live.as_called(policy.called)
    for name in policy.undecided:
        raise without_unit(table_key(policy, name), policy, name, live)
    grounded = _Grounded(policy, live)
    built = {name: grounded.built(name) for name in policy.tables}
    tables = {name: grounded.table(table) for name, table in built.items()}
    return Catalog(
        MappingProxyType(tables), live.default_schema, live.dialect, live.case_collation, database_names(policy),
        has_periods=policy.privacy.time is not None,
    )  # fmt: skip


def database_names(policy: Policy) -> tuple[str, ...]:
    """Return what analysts may call the database: the dataset's name, or the policy file's."""
    return policy.dataset_id, Path(policy.source).stem


def table_key(policy: Policy, table: str) -> str:
    """Return where a table is declared, for messages: `campus.toml: tables.student`."""
    return f"{policy.source}: tables.{quote_key(table)}"


def column_key(policy: Policy, table: str, column: str) -> str:
    """Return where a column is declared, for messages: `campus.toml: tables.student.columns.gpa`."""
    return f"{table_key(policy, table)}.columns.{quote_key(column)}"


def match_column(where: str, declared: ColumnPolicy, table: LiveTable) -> LiveColumn:
    """Return the live column of exactly the declared name. Raises PolicyError if there is none."""
    column = table.column(declared.name)
    if column is None:
        known = [column.name for column in table.columns]
        raise PolicyError(
            f'{where}: table "{table.path[1]}" has no column "{declared.name}"{suggest(declared.name, known)}'
        )
    return column


def member_path(declared: ColumnPolicy, table: LiveTable) -> tuple[str, tuple[str, ...]] | None:
    """Return the column of JSON and the keys whose member a declared name is: `props.os`; None of a column's name."""
    name, *keys = declared.name.split(".")
    return None if not keys or table.column(declared.name) is not None else (name, tuple(keys))


def build_member(where: str, declared: ColumnPolicy, table: LiveTable) -> Column:
    """Return what is declared of a member of JSON: numbers where it has bounds, else texts. Raises PolicyError."""
    path = member_path(declared, table)
    assert path is not None, "it is no column's name"
    live = match_column(where, replace(declared, name=path[0]), table)
    if not comparable_type(live).has_members:
        _fail(where, "", f'"{path[0]}" is {live.engine_type.lower()}, which has no members; name one of JSON')
    if not all(PLAIN_KEY.fullmatch(key) for key in path[1]):
        _fail(where, "", "is no path: write keys of letters, digits, _, - and blanks, joined by dots")
    if declared.complete or declared.randomized is not None:
        _fail(where, "complete" if declared.complete else "randomized", "is of a column; take it out")
    type_ = TEXT if declared.bounds is None and declared.step is None else DOUBLE
    return build_column(where, declared, LiveColumn(declared.name, type_, str(type_)))


def _with_members(
    policy: Policy, declared: TablePolicy, table: LiveTable, columns: dict[str, Column]
) -> dict[str, Column]:
    """Return columns with what is declared of their members. Raises PolicyError."""
    found = dict(columns)
    for member in declared.columns:
        path = member_path(member, table)
        if path is None:
            continue
        where = column_key(policy, declared.name, member.name)
        built, (name, keys) = build_member(where, member, table), path
        if declared.unit is None:
            _fail(where, "", "is of a public table, whose rows are shown as they are; take it out")
        if name not in found:
            _fail(where, "", f"is of a column that is not declared; declare it too: {quote_key(name)} = {{}}")
        found[name] = replace(found[name], members=(*found[name].members, (keys, built)))
    return found


def whole_table(policy: Policy, name: str, live: LiveSchema) -> Table:
    """Return a table with all of its columns, as views read it. Raises PolicyError."""
    live = live.as_called(policy.called)
    grounded = _Grounded(policy, live)
    return grounded.table(_build_table(policy, policy.tables[name], live, is_whole=True))


class _Grounded:
    """The tables of a policy, each built once, with what plans rest on that read it: that is made when one does."""

    def __init__(self, policy: Policy, live: LiveSchema) -> None:
        self._policy, self._live = policy, live
        self._built: dict[str, Table] = {}

    def built(self, name: str) -> Table:
        """Return a table as the policy has it. Raises PolicyError."""
        if name not in self._built:
            self._built[name] = _build_table(self._policy, self._policy.tables[name], self._live)
        return self._built[name]

    def table(self, table: Table) -> Table:
        """Return a table with its grounds."""
        return replace(
            table,
            grounds=Later(lambda: (self._dataset, *self._grounds(table))),
            column_grounds=Later(lambda: _column_grounds(table, _live(table, self._live))),
            whose=Later(lambda: whose_of(self._policy, table.name)),
        )

    @cached_property
    def _dataset(self) -> Ground:
        return _of_dataset(self._policy, self._live)

    def _grounds(self, table: Table) -> Iterator[Ground]:
        """Yield what plans that read a table rest on, beside the dataset: what is said of it but for the columns that
        they do not read, and of each table on the way to its owner what leads on from there.
        """
        by_periods = self._policy.privacy.time is not None
        own = _way_content(table, self._live, by_periods=by_periods)
        yield table.name, _digest([*own, *_own_content(table)])
        while table.unit is not None and table.unit.references is not None:
            table = self.built(table.unit.references[0])
            yield table.name, _digest(_way_content(table, self._live, by_periods=by_periods))


def _column_grounds(table: Table, found: LiveTable) -> tuple[Ground, ...]:
    return tuple(
        (f"{table.name}.{column.name}", _digest(_column_content(column, found))) for column in table.columns
    )


def _build_table(policy: Policy, declared: TablePolicy, live: LiveSchema, *, is_whole: bool = False) -> Table:
    is_whole = is_whole or declared.is_hidden
    where = table_key(policy, declared.name)
    table = find_live_table(where, declared.name, live)
    asserted = asserted_key(where, table)
    unit = build_unit(where, policy, declared, live)
    if unit is not None and policy.privacy.time is not None:
        unit = replace(
            unit, time=event_time(where, policy, declared, live), max_rows_ever=declared.max_rows_ever
        )
        if table.column(PERIOD) is not None:
            _fail(where, "", f'has a column "{PERIOD}", which is the name of the period here; rename it')
    columns: dict[str, Column] = {}
    for column in declared.columns:
        if member_path(column, table) is None:
            place = column_key(policy, declared.name, column.name)
            columns[column.name] = build_column(place, column, match_column(place, column, table))
    columns = _with_members(policy, declared, table, columns)
    ordered = []
    pointing = {name for one in declared.also for name in one.columns}
    for live_column in table.columns:
        if live_column.name in columns:
            ordered.append(columns[live_column.name])
        elif (unit is None or is_whole or live_column.name in pointing) and not (
            live_column.is_generated or live_column.refused
        ):
            ordered.append(describe_column(live_column))
    _require_lists(where, policy, declared, live, columns)
    known = {column.name for column in ordered} | (set() if unit is None else set(unit.columns))
    keys, path = enforced_keys(table, known), live.written_path(declared.name)
    return Table(
        declared.name, path, tuple(ordered), unit, declared.description, keys, table.is_partitioned,
        declared.is_hidden, asserted, () if table.place == path else table.place, live.called.get(declared.name, ""),
        proved=_proved(table, keys), referred=_referred(policy, declared, keys),
        order=tuple(column.name for column in table.columns),
    )  # fmt: skip


_MOMENTS = frozenset(
    {"date", "timestamp", "timestamptz", "timestamp with time zone", "timestamp without time zone"}
)
_ZONED = frozenset({"timestamptz", "timestamp with time zone"})


def event_time(where: str, policy: Policy, declared: TablePolicy, live: LiveSchema) -> EventTime | None:
    """Return when a table's rows were, None where they are undated. Raises PolicyError."""
    if declared.time is None:
        return None
    way: list[Hop] = []
    source, place = declared, f"{where}.time"
    while source.name != declared.time[0]:
        unit = source.unit
        assert unit is not None, "it is on the way, as was read"
        assert unit.references is not None, "the way goes on"
        parent, key = unit.references
        way.append((unit.columns, parent, key))
        source = policy.tables[parent]
    table = find_live_table(place, source.name, live)
    column = match_column(place, ColumnPolicy(declared.time[1]), table)
    engine_type = re.sub(r"\([0-9]+\)", "", column.engine_type.lower())
    if column.type.kind not in (Kind.DATE, Kind.TIMESTAMP) or engine_type not in _MOMENTS:
        _fail(place, "", f'"{column.name}" is {column.engine_type.lower()}; name a date or timestamp column')
    if column.is_generated or column.refused:
        _fail(place, "", f'"{column.name}" is computed when it is read; store it, or name another')
    return EventTime(column.name, comparable_type(column), engine_type in _ZONED, tuple(way))


def _referred(
    policy: Policy, declared: TablePolicy, keys: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the keys that other tables refer to for a person, and that are none of `keys`: each is enforced.

    Not the columns of the unit itself, of which a table may have many rows (soundness.md 1.26).
    """
    own = declared.unit
    held = {tuple(sorted(own.columns))} if own is not None and own.references is None else set()
    return tuple(sorted(policy.referred(declared.name) - held - {tuple(sorted(key)) for key in keys}))


def _proved(table: LiveTable, keys: tuple[tuple[str, ...], ...]) -> Proved | None:
    """Return what the engine proves of a table; of its keys those whose equality is that of their values."""
    if table.proved is None:
        return None
    return replace(table.proved, keys=tuple(key for key in table.proved.keys if key in keys))


# --- what plans rest on (soundness.md 3.7) -----------------------------------------------------------------


def view_ground(view: ViewPolicy, definition: str) -> Ground:
    """Return what a plan rests on that reads a table through a view: its text, and what is declared of its columns."""
    declared = [repr(replace(column, description=None)) for column in view.columns]
    return view.name, _digest([view.source, declared, definition])


def _of_dataset(policy: Policy, live: LiveSchema) -> Ground:
    """Return what every plan rests on. Caps, analysts and descriptions are left out: they change no plan.

    `version` rises when the same declaration comes to mean something else, so that no draw of the old meaning answers
    the new.
    """
    units = [table.unit for table in policy.tables.values() if table.unit is not None]
    content = {
        "version": 5,
        "dataset": policy.dataset_id,
        "neighbours": policy.privacy.neighbours.value,
        "together": policy.privacy.together,
        "root": [
            policy.root,
            *(unit.columns for unit in units if unit.references is None and not unit.is_row),
        ][:2],
        "default_schema": live.default_schema,
        "engine": [live.dialect, live.case_collation],
    }
    time = policy.privacy.time
    if time is not None:
        content["time"] = [time.period.value, time.zone, time.since.isoformat()]
    return MEASURING if policy.is_measuring else "dataset", _digest(content)


def _way_content(table: Table, live: LiveSchema, *, by_periods: bool) -> list[object]:
    """Return what plans rest on whose rows find their owner over a table: where it is, its keys, and how it leads on.

    Not its bounds, nor its other columns: the rows that count are bounded where they are read. Nor, under a budget by
    periods, the version of its rows: the epoch says of which periods they are others (soundness.md 3.22).
    """
    found = _live(table, live)
    key_columns = {name for key in (*table.keys, *table.referred) for name in key}
    columns = key_columns.union(() if table.unit is None else table.unit.columns)
    return [
        found.path,
        None if by_periods else found.version,
        table.is_partitioned,
        None if table.unit is None else _unit_content(table.unit, found),
        table.keys,
        table.referred,
        found.asserted,
        None if table.proved is None else [table.proved.keys, table.proved.foreign_keys],
        [_column_content(column, found) for column in table.columns if column.name in columns],
    ]


def _require_lists(
    where: str, policy: Policy, declared: TablePolicy, live: LiveSchema, columns: Mapping[str, Column]
) -> None:
    """Hold the columns of `max_norm` to have a list of values, where squares add up. Raises PolicyError."""
    if not declared.max_norm:
        return
    if policy.privacy.accounting is not Accounting.ZCDP:
        _fail(
            where,
            "max_norm",
            'bounds squares, which add up under privacy.accounting = "zcdp" alone; take it out',
        )
    if live.dialect == "spark":
        _fail(where, "max_norm", "is not enforced on Spark; take it out")
    for key, _ in declared.max_norm:
        unit, name = norm_key(key)
        column = columns.get(name)
        if column is None:
            _fail(
                where, f"max_norm.{key}", "is no column that the policy declares; declare it, or take it out"
            )
        kind = column.type.kind
        if unit is not None and (kind not in (Kind.DATE, Kind.TIMESTAMP) or column.bounds is None):
            _fail(where, f"max_norm.{key}", "is of no column of dates with bounds; declare bounds")
        is_listed = column.bounds is not None and (column.type.is_integer or kind is Kind.DATE)
        if unit is None and column.values is None and not is_listed:
            _fail(where, f"max_norm.{key}", "is a column without a list of values; declare values or bounds")


def _own_content(table: Table) -> list[object]:
    """Return what plans that read a table's rows rest on besides: its bounds, and which column stands where."""
    unit = table.unit
    bounds: list[object] | None = (
        None if unit is None else [unit.max_rows, unit.max_rows_per_group, unit.max_groups, *unit.max_norm]
    )
    if unit is not None and unit.also:
        bounds = [bounds, [[one.columns, one.references, one.max_rows] for one in unit.also]]
    if unit is not None and unit.time is not None:
        bounds = [bounds, [unit.time.column, unit.time.way, unit.max_rows_ever]]
    if unit is not None and unit.row_number is not None:
        number = unit.row_number
        bounds = [bounds, "row_number", number.column, *([] if number.period is None else [number.period])]
    if unit is not None and unit.range is not None:
        bounds = [bounds, "unit_range", unit.range]
    return [bounds, [column.name for column in table.columns]]


def _live(table: Table, live: LiveSchema) -> LiveTable:
    found = live.table(live.path_of(table.name))
    assert found is not None, "the catalog's tables were found in this schema"
    return found


def _unit_content(unit: Unit, found: LiveTable) -> list[object]:
    types = [
        [str(type_), _engine_type(name, found)] for name, type_ in zip(unit.columns, unit.types, strict=True)
    ]
    return [unit.columns, types, unit.references, unit.is_unique, unit.is_not_null, unit.is_held, unit.is_row]


def _column_content(column: Column, found: LiveTable) -> list[object]:
    enforced = column.enforced
    return [
        column.name,
        [str(column.type), _engine_type(column.name, found)],
        [enforced.not_null, _text(enforced.lo), _text(enforced.hi), enforced.max_length],
        *_said_of(column)[:4],
        None if column.randomized is None else repr(column.randomized),
        *(["log"] if column.is_log else []),
        *([keys, *_said_of(member)] for keys, member in column.members),
    ]


def _said_of(column: Column) -> list[object]:
    values = column.values
    return [
        None if column.bounds is None else [str(bound) for bound in column.bounds],
        _text(column.step),
        None if values is None else [[type(value).__name__, str(value)] for value in values],
        column.max_length,
        *(["log"] if column.is_log else []),
    ]


def _engine_type(name: str, found: LiveTable) -> str:
    column = found.column(name)
    assert column is not None, "the catalog's columns were found in this table"
    return column.engine_type


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _digest(content: object) -> str:
    """Return 128 bits of a SHA-256 in hex."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


# --- what one analyst sees --------------------------------------------------------------------------------


def access_of(policy: Policy, analyst: str) -> Access:
    """Return what an analyst may see: everything, where the policy has nothing to say."""
    known = policy.analysts.get(analyst)
    return Access() if known is None else known.access


def check_access(policy: Policy, catalog: Catalog) -> list[PolicyError]:
    """Return what is wrong with the grants: columns that are hidden and are not there."""
    found = []
    for analyst in (*policy.analysts.values(), *policy.groups.values()):
        known = {f"{name}.{column.name}" for name, table in catalog.shown.items() for column in table.named}
        for hidden in analyst.access.hide:
            if hidden not in known and not any(hidden.startswith(f"{name}.") for name in catalog.left_out):
                kind = "groups" if analyst is policy.groups.get(analyst.name) else "analysts"
                where = f"{policy.source}: {kind}.{quote_key(analyst.name)}.hide"
                problem = f'"{hidden}" is no column that analysts see{suggest(hidden, sorted(known))}'
                found.append(PolicyError(f"{where}: {problem}"))
    return found


def narrowed(catalog: Catalog, access: Access) -> Catalog:
    """Return a catalog in which what is not granted has no name."""
    granted = {name for name in catalog.shown if access.tables is None or name in access.tables}
    tables = {name: _narrowed_table(table, access, granted) for name, table in catalog.tables.items()}
    roots = tuple(f"{name}@" for name, table in tables.items() if table.is_hidden)
    for name, table in tables.items():
        tables[name] = replace(table, is_way_named=_has_named_way(table, tables))
    views = {
        name: _narrowed_view(view, access, tables) for name, view in catalog.views.items() if name in granted
    }
    databases = tuple(name for name in catalog.databases if not name.startswith(roots))
    left_out = {} if access.is_narrowed else catalog.left_out
    return replace(
        catalog,
        tables=MappingProxyType(tables),
        views=MappingProxyType(views),
        databases=databases,
        left_out=left_out,
    )


def seen_lines(policy: Policy, catalog: Catalog) -> tuple[str, ...]:
    """Return who sees which tables, a line for each analyst; none where all see everything."""
    if not any(analyst.access.is_narrowed for analyst in policy.analysts.values()):
        return ()
    lines = []
    for analyst in policy.analysts.values():
        shown = narrowed(catalog, analyst.access).shown
        tables = ", ".join(_seen_text(name, table, catalog.shown[name]) for name, table in shown.items())
        lines.append(f"{quote_key(analyst.name)}: {tables if analyst.access.is_narrowed else 'everything'}")
    return tuple(lines)


def _seen_text(name: str, table: Table | View, whole: Table | View) -> str:
    left = {column.name for column in table.named}
    hidden = [quote_key(column.name) for column in whole.named if column.name not in left]
    return f"{quote_key(name)} without {' and '.join(hidden)}" if hidden else quote_key(name)


def _narrowed_table(table: Table, access: Access, granted: set[str]) -> Table:
    if table.is_hidden:
        return table
    names = {column.name for column in (*table.columns, *table.owner_columns)}
    if table.name not in granted:
        return replace(table, is_hidden=True, unnamed=frozenset(names))
    return replace(table, unnamed=frozenset(access.hidden_in(table.name) & names))


def _has_named_way(table: Table, tables: dict[str, Table]) -> bool:
    unit = table.unit
    if unit is None or table.unnamed.intersection(unit.columns):
        return unit is None
    if unit.references is None:
        return True
    name, key = unit.references
    return not (tables[name].is_hidden or tables[name].unnamed.intersection(key))


def _narrowed_view(view: View, access: Access, tables: dict[str, Table]) -> View:
    """Return a view without its hidden columns, over tables as they are seen."""
    hidden = access.hidden_in(view.name)

    def seen(table: Table) -> Table:
        known = tables[table.name]
        return replace(
            table, is_hidden=known.is_hidden, unnamed=known.unnamed, is_way_named=known.is_way_named
        )

    is_whole = not any(tables[name].unnamed for name in view.reads)
    if is_whole and not hidden:
        return replace(view, relation=map_tables(view.relation, seen))
    relation = map_tables(view.relation, seen, _without_name)
    names = tuple("" if column.name in hidden else column.name for column in relation.columns)
    shown = tuple(column for column in view.columns if column.name not in hidden)
    return replace(view, columns=shown, relation=renamed(relation, names))


def _without_name(field: Field) -> Field:
    return replace(field, name="")
