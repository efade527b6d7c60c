"""A result as a table of Arrow, pandas or Polars, with the types of its columns.

The three packages are optional: each is imported when it is first asked for.

| SQL | Arrow | pandas |
|---|---|---|
| smallint, integer, bigint | int16, int32, int64 | Int16, Int32, Int64 (NULL stays NULL, nothing is rounded) |
| numeric(p, s) | decimal128(38, s) | that, of Arrow |
| numeric | decimal128(38, as many digits as the values have) | that, of Arrow |
| real, double precision | float, double | float32, float64 |
| boolean, text | bool, string | boolean, str |
| an array of one of these | list | that, as an object |
| date, timestamp, interval | date32, timestamp[us], duration[us] | date32 of Arrow, datetime64[us], timedelta64[us] |

A column with a number of more digits than a decimal of 38 holds has 76, and beyond that it is double.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..errors import Refusal
from ..relation.types import Kind, SqlType
from .answer import AnswerColumn

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_PLAIN = {
    Kind.BOOLEAN: "bool", Kind.SMALLINT: "int16", Kind.INTEGER: "int32", Kind.BIGINT: "int64",
    Kind.REAL: "float", Kind.DOUBLE: "double", Kind.DATE: "date32", Kind.TIMESTAMP: "timestamp[us]",
    Kind.TIME: "time64[us]", Kind.INTERVAL: "duration[us]",
}  # fmt: skip
_DIGITS, _WIDE_DIGITS = 38, 76
_DEFAULT_SCALE = 18


def arrow_table(columns: Sequence[AnswerColumn], rows: Sequence[tuple[object, ...]]) -> pyarrow.Table:
    """Return rows as an Arrow table. Raises Refusal 0A000 when pyarrow is not installed."""
    pa = needed("pyarrow", '"dpsql[arrow]"')
    arrays = [
        _array(pa, list(map(itemgetter(index), rows)), column.type) for index, column in enumerate(columns)
    ]
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


def pandas_frame(columns: Sequence[AnswerColumn], rows: Sequence[tuple[object, ...]]) -> pandas.DataFrame:
    """Return rows as a pandas DataFrame. Raises Refusal 0A000 when pandas is not installed."""
    pd, pa = needed("pandas", '"dpsql[pandas]"'), needed("pyarrow", '"dpsql[pandas]"')
    whole = {
        pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }  # fmt: skip

    def dtype(type_: Any) -> Any:
        of_arrow = pa.types.is_decimal(type_) or pa.types.is_date(type_)
        return pd.ArrowDtype(type_) if of_arrow else whole.get(type_)

    frame: pandas.DataFrame = arrow_table(columns, rows).to_pandas(types_mapper=dtype)
    return frame


def polars_frame(columns: Sequence[AnswerColumn], rows: Sequence[tuple[object, ...]]) -> polars.DataFrame:
    """Return rows as a Polars DataFrame, in which the second column of a name has a number behind it.

    Raises Refusal 0A000 when Polars is not installed.
    """
    pl = needed("polars", '"dpsql[polars]"')
    needed("pyarrow", '"dpsql[polars]"')
    table = arrow_table(columns, rows)
    names = _distinct([column.name for column in columns])
    frame: polars.DataFrame = pl.from_arrow(table.rename_columns(names))
    return frame


def needed(package: str, install: str, module: str | None = None) -> Any:
    """Return a module of an optional package. Raises Refusal 0A000, with the line that installs it."""
    try:
        return importlib.import_module(module or package)
    except ImportError:
        missing = Refusal(
            f"this needs {package}, which is not installed", sqlstate="0A000", hint=f"pip install {install}"
        )
    raise missing


def _array(pa: Any, values: list[Any], type_: SqlType) -> Any:
    if type_.element is not None:
        return _lists(pa, values, type_.element)
    if type_.kind is Kind.NUMERIC:
        return _decimals(pa, values, type_.scale)
    name = _PLAIN.get(type_.kind)
    return pa.array(values, pa.string() if name is None else pa.type_for_alias(name))


def _lists(pa: Any, values: list[Any], element: SqlType) -> Any:
    """Return arrays, all of whose values are of one type."""
    ends = [0]
    flat: list[Any] = []
    for value in values:
        flat += value or []
        ends.append(len(flat))
    offsets = pa.array(
        [None if value is None else end for value, end in zip([*values, []], ends, strict=True)], pa.int32()
    )
    return pa.ListArray.from_arrays(offsets, _array(pa, flat, element))


def _decimals(pa: Any, values: list[Any], scale: int | None) -> Any:
    """Return exact decimals of one scale: the declared one, or the one that the values need."""
    found: Any = values
    if scale is None:
        found, scale = _read_scale(pa, values)
    for digits, decimal in ((_DIGITS, pa.decimal128), (_WIDE_DIGITS, pa.decimal256)):
        if scale <= digits:
            try:
                type_ = decimal(digits, scale)
                return pa.array(found, type_) if found is values else found.cast(type_)
            except pa.ArrowInvalid:  # too many digits
                continue
    return _doubles(pa, values)


def _read_scale(pa: Any, values: list[Any]) -> tuple[Any, int]:
    """Return the values as Arrow's text, and the most digits that one has after its point.

    Arrow finds that out by itself as well, and takes five times as long. Text with an exponent is written out.
    """
    pc = importlib.import_module("pyarrow.compute")
    text = pa.array([None if value is None else str(value) for value in values], pa.string())
    if pc.any(pc.match_substring(text, "E")).as_py():
        text = pa.array([None if value is None else f"{value:f}" for value in values], pa.string())
    point = pc.find_substring(text, ".")
    after = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(pc.binary_length(text), point), 1))
    most = pc.max(after).as_py()
    return text, _DEFAULT_SCALE if most is None else most


def _doubles(pa: Any, values: list[Any]) -> Any:
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def _distinct(names: list[str]) -> list[str]:
    """Return the names, each once: the second "n" is "n_1", or the next number that is free."""
    taken: set[str] = set(names)
    seen: set[str] = set()
    distinct = []
    for name in names:
        chosen, number = name, 0
        while chosen in seen or (number and chosen in taken):
            number += 1
            chosen = f"{name}_{number}"
        seen.add(chosen)
        distinct.append(chosen)
    return distinct
