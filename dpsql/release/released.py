"""Released values: group keys in canonical form, noisy integers, and both as bytes for the store.

House rules:

1. Nothing exact comes in here. `privatise` is the only maker of a `ReleasedMeasurement`, and the bytes hold
   noisy integers and published keys alone (soundness.md 3.7).
2. Keys are kept by column, since a release may have a million of them.
3. The bytes never change: what a release's measures are stored under depends on its keys' bytes.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..budget import Together
from ..cache import Made
from ..mechanisms import Assembled, Law, Vector, sum_of
from ..plan.measures.measurements import BoundingQuery
from ..plan.privacy.axes import Axis, cells_of
from ..plan.privacy.value_set import spelled
from ..plan.release_plan import ReleasePlan
from ..records import dataclass
from ..relation.calendar import parse_date, parse_timestamp
from ..relation.catalog import Scalar
from ..relation.types import Kind, SqlType

Array = npt.NDArray[Any]
"""A coordinate's whole numbers over some groups, shape (groups,): int64, or Python ints (dtype object) where one does
not fit. They are in coordinate units: `Measurement.step` over `Measurement.denominator`."""
KeyColumn = list[Scalar] | Array
"""Canonical values; an array where all are integers, as the store gives them."""
_EPOCH = datetime.datetime(1970, 1, 1)
_WIDE = Context(prec=80)
_VALUES, _KEYS = b'{"values":[', b',"keys":['
_INTEGERS = b"0123456789-,"
_CERTAIN = 10**18
_FEW_BYTES = 200


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a release: one column of canonical values per key, all of length `size`.

    A canonical value is text, bool, int (whole numbers, days, microseconds), Fraction, or None for NULL.
    An ungrouped release has no column and size 1.
    """

    columns: tuple[KeyColumn, ...]
    size: int

    def tuples(self) -> list[tuple[Scalar, ...]]:
        """Return the groups as tuples."""
        return list(zip(*map(_listed, self.columns), strict=True)) if self.columns else [()] * self.size


@dataclass(frozen=True, slots=True)
class ReleasedMeasurement:
    """The noisy integers of one measurement, one array of shape (groups,) per coordinate.

    `groups`: the published groups, where the measurement was drawn together with them. `laws`: of the noise on each
    coordinate, as it was drawn; none where there is no noise, since the answer is in the statement's own text.
    The bytes do not hold them: they are the stored draw's own. `vectors`: where noises depend on each other, of each
    coordinate in which vector it was drawn, and at which place; () where they are all independent. `draws`: of each
    coordinate the stored draws that it is the mean of; () where they are another question's. `each`: of each coordinate
    what returns the law in a group, where they differ; `laws` has the widest then.
    """

    values: tuple[Array, ...]
    groups: Groups | None
    laws: tuple[Law, ...]
    vectors: tuple[Vector | None, ...] = ()
    draws: tuple[Together, ...] = ()
    each: tuple[Callable[[int], Law], ...] = ()

    @property
    def law(self) -> Assembled:
        """The law of all coordinates."""
        return Assembled(self.laws, self.vectors or (None,) * len(self.laws))


def vectors_of(law: Law, measures: Sequence[bytes], payload: bytes) -> tuple[Vector | None, ...]:
    """Return where each coordinate of a draw stands in what was drawn together."""
    if not law.is_joint:
        return (None,) * len(measures)
    draw = hashlib.sha256(b"".join(measures) + payload).digest()
    return tuple(Vector(draw, law, place) for place in range(len(measures)))


def canonical(type_: SqlType) -> Callable[[Any], Scalar] | None:
    """Return what turns an engine's value of a key type into canonical form; None: nothing to do.

    Dates and timestamps come as text. One that has no place in our calendar (infinity, years beyond
    9999 or before 1) stays text: no declared group has such a key, and none is ever published.
    """
    if type_.kind is Kind.DATE:
        return _days
    if type_.kind is Kind.TIMESTAMP:
        return _microseconds
    if type_.kind is Kind.NUMERIC:
        return _exact
    return None


def _days(value: Any) -> Scalar:
    days = None if value is None else parse_date(value)
    return value if days is None else days


def _microseconds(value: Any) -> Scalar:
    moment = None if value is None else parse_timestamp(value)
    return value if moment is None else moment


def _exact(value: Any) -> Scalar:
    if value is None:
        return None
    number = Fraction(value)
    return int(number) if number.denominator == 1 else number


def publishable(columns: Sequence[list[Scalar]], types: Sequence[SqlType], size: int) -> Array:
    """Return which groups have a key of their type: a temporal key that stayed text has no place."""
    good = np.ones(size, dtype=bool)
    for column, type_ in zip(columns, types, strict=True):
        if type_.is_temporal:
            good &= np.array([not isinstance(value, str) for value in column], dtype=bool)
    return good


def _spelled(column: Sequence[Scalar], type_: SqlType) -> list[Scalar]:
    """Return a column of keys in canonical form; a value stands in many groups as one object."""
    known: dict[int, Scalar] = {}
    for value in column:
        if id(value) not in known:
            known[id(value)] = spelled(value, type_)
    return [known[id(value)] for value in column]


def declared_groups(groups: Sequence[tuple[Scalar, ...]], types: Sequence[SqlType]) -> Groups:
    """Return declared groups in canonical form, each once, however it is spelled (ISO text, or a number).

    One group in two spellings would be two releases of the same rows.
    """
    told: Iterable[tuple[Scalar, ...]] = groups
    if groups and types:
        columns = zip(zip(*groups, strict=True), types, strict=True)
        told = zip(*(_spelled(column, type_) for column, type_ in columns), strict=True)
    unique = list(dict.fromkeys(told))
    shown = zip(*unique, strict=True) if unique else ([] for _ in types)
    return Groups(tuple(list(column) for column in shown), len(unique))


_planned_groups = Made(
    lambda groups, keys: declared_groups(groups, [key.type for key in keys]),
    200_000,
    lambda made: made.size + 1,
)
"""Of so many groups: a plan is looked up, verified and answered by one and the same object."""


def planned_groups(plan: ReleasePlan) -> Groups:
    """Return the groups that a plan declares. Requires: it does."""
    assert plan.groups is not None
    return _planned_groups.of(plan.groups, plan.release.keys)


def completed(plan: ReleasePlan, number: int) -> Groups | None:
    """Return the groups of a measurement that is drawn with the rows of all others (soundness.md 1.34); None: it is
    drawn over those that are answered."""
    if plan.axes is None or plan.measurements[number].query is not BoundingQuery.SCALED:
        return None
    columns = zip(*cells_of(plan.axes), strict=True)
    return Groups(tuple(map(list, columns)), math.prod(axis.size for axis in plan.axes))


def most_drawn(plan: ReleasePlan) -> int | None:
    """Return of how many groups a measurement's numbers are drawn at most; None: which they are was found before."""
    if plan.groups is None:
        return None
    if plan.top is not None:
        return plan.top.count
    return len(plan.groups) if plan.axes is None else math.prod(axis.size for axis in plan.axes)


def listed_part(values: Array, axes: Sequence[Axis] | None) -> Array:
    """Return the numbers of the groups that are listed, of a draw that has the other ones too; of any other its own."""
    if axes is None or len(values) != math.prod(axis.size for axis in axes):
        return values
    return leading(values, [axis.size for axis in axes], [len(axis.values) for axis in axes])


def leading(values: Array, sizes: Sequence[int], kept: Sequence[int]) -> Array:
    """Return the numbers of a table of these sizes that stand at the first `kept` places of each key."""
    return values.reshape(sizes)[tuple(map(slice, kept))].ravel() if kept else values


def _listed(column: KeyColumn) -> list[Scalar]:
    return column.tolist() if isinstance(column, np.ndarray) else column


def others_of(draws: Together, axes: Sequence[Axis]) -> Iterator[tuple[int, int, Law]]:
    """Yield for each key that has others their number in the best of some draws of one coordinate, and its law."""
    best, sizes = draws[0], [axis.size for axis in axes]
    if not best.law.is_additive or best.law.is_joint or not any(axis.others for axis in axes):
        return
    one = decode(best.payload, best.law)
    if len(one.values) != 1 or len(one.values[0]) != math.prod(sizes):
        return
    table = np.array(one.values[0].tolist(), dtype=object).reshape(sizes)
    for place, axis in enumerate(axes):
        if axis.others:
            count = table.size // axis.size
            number = sum(table.take([axis.size - 1], axis=place).ravel().tolist())
            yield place, number, sum_of(one.laws[0], count)


def shown(column: KeyColumn, type_: SqlType) -> list[Any] | Array:
    """Return a column of canonical values as Python values of its SQL type, integers also as an array."""
    if type_.is_integer:
        return column
    column = _listed(column)
    if type_.kind is Kind.DATE:
        return [_EPOCH.date() + datetime.timedelta(days=v) if isinstance(v, int) else None for v in column]
    if type_.kind is Kind.TIMESTAMP:
        return [_EPOCH + datetime.timedelta(microseconds=v) if isinstance(v, int) else None for v in column]
    if type_.kind is Kind.TIME:
        return [
            None if v is None else (_EPOCH + datetime.timedelta(microseconds=int(v))).time() for v in column
        ]
    if type_.kind is Kind.NUMERIC:
        return [None if v is None else _decimal(Fraction(v)) for v in column]
    return column


def listed(groups: Groups, types: Sequence[SqlType]) -> list[list[object]]:
    """Return the keys of groups as they travel to the engine: a list for each key, moments and exact numbers as text
    (`print_release` reads them: `_listed_key`)."""
    return [_travelling(column, type_) for column, type_ in zip(groups.columns, types, strict=True)]


def _travelling(column: KeyColumn, type_: SqlType) -> list[object]:
    if type_.kind is Kind.NUMERIC:
        return [None if value is None else _plain_text(Fraction(value)) for value in _listed(column)]
    if type_.is_temporal:
        return [None if value is None else str(value) for value in shown(column, type_)]
    return list(_listed(column))


def _plain_text(value: Fraction) -> str:
    """Return an exact number as text without zeros at the end of a fraction."""
    text = format(_decimal(value), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimal(value: Fraction) -> Decimal:
    return _WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))


def encode(measurement: ReleasedMeasurement) -> bytes:
    """Return a released measurement as bytes."""
    body: dict[str, object] = {"values": [array.tolist() for array in measurement.values]}
    if measurement.groups is not None:
        body["size"] = measurement.groups.size
        body["keys"] = [_listed(column) for column in measurement.groups.columns]
    return json.dumps(body, separators=(",", ":"), default=_plain).encode()


def _plain(value: Any) -> object:
    if isinstance(value, Fraction):
        return {"n": [value.numerator, value.denominator]}
    raise TypeError(f"{type(value).__name__} has no place in a release")


def decode(payload: bytes, law: Law) -> ReleasedMeasurement:
    """Return the released measurement that `encode` made bytes of, each coordinate under the draw's law."""
    if not payload.startswith(_VALUES):
        raise ValueError("not a released measurement")
    values, rest = _integer_lists(payload, len(_VALUES))
    if not payload.startswith(b"]", rest):
        raise ValueError("not a released measurement")
    start = payload.find(_KEYS, rest)
    if start < 0:
        return ReleasedMeasurement(tuple(values), None, _laws(law, values))
    columns, end = _integer_lists(payload, start + len(_KEYS))
    if payload[end:] == b"]}":
        size = json.loads(b"{" + payload[rest + 2 : start] + b"}")["size"]
        return ReleasedMeasurement(tuple(values), Groups(tuple(columns), size), _laws(law, values))
    body = json.loads(b"{" + payload[rest + 2 :], object_hook=_fraction)
    return ReleasedMeasurement(tuple(values), Groups(tuple(body["keys"]), body["size"]), _laws(law, values))


def _laws(law: Law, values: Sequence[Array]) -> tuple[Law, ...]:
    return tuple(law.at(place) for place in range(len(values)))


def _integer_lists(payload: bytes, at: int) -> tuple[list[Array], int]:
    """Return the lists of integers that begin at a place, and where they end: at what is no such list."""
    found: list[Array] = []
    while payload.startswith(b"[", at):
        end = payload.find(b"]", at)
        text = payload[at + 1 : end]
        if text.translate(None, _INTEGERS):
            break
        found.append(_parsed(text))
        at = end + 1
        if payload.startswith(b",", at):
            at += 1
    return found, at


def _parsed(text: bytes) -> Array:
    """Return integers with commas between; numpy stops at 64 bits without a word, so it is not asked near there.

    Nor is it for a few.
    """
    if 0 < len(text) <= _FEW_BYTES:
        return integers(list(map(int, text.split(b","))))
    parsed = np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, dtype=np.int64)
    if len(parsed) and (parsed.min() <= -_CERTAIN or parsed.max() >= _CERTAIN):
        return integers(json.loads(b"[" + text + b"]"))
    return parsed


def _fraction(body: dict[str, Any]) -> object:
    return Fraction(*body["n"]) if "n" in body else body


def integers(values: Sequence[int]) -> Array:
    """Return integers as an int64 array, or of Python ints when one does not fit."""
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array(values, dtype=object)
