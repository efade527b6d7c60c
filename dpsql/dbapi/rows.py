"""Rows with names: tuples, whose values are found by their column too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from keyword import iskeyword
from operator import itemgetter
from typing import Any, ClassVar, SupportsIndex, cast

__all__ = ["Row", "row_maker"]

_MOST = 1_000
"""Columns from which on rows have no attributes: `row["name"]` finds them all the same."""


class Row(tuple[Any, ...]):
    """One row: `row[0]`, `row["n"]` and `row.n`, compared and unpacked as the tuple that it is.

    Of two columns of a name the first is found. A name that is a word of Python's, or begins with an underscore, is
    found as `row["class"]` alone.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    _places: ClassVar[dict[str, int]] = {}

    def __getitem__(self, place: SupportsIndex | slice | str) -> Any:
        if isinstance(place, str):
            if place not in self._places:
                raise KeyError(f"{place}: the columns are {', '.join(self._fields)}")
            return tuple.__getitem__(self, self._places[place])
        return tuple.__getitem__(self, place)

    def _asdict(self) -> dict[str, Any]:
        """Return the values by name."""
        return {name: self[name] for name in self._fields}

    def __repr__(self) -> str:
        return f"({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self, strict=True))})"

    def __reduce__(self) -> tuple[Callable[..., Row], tuple[tuple[str, ...], tuple[Any, ...]]]:
        return _made_again, (self._fields, tuple(self))


def row_maker(names: Sequence[str]) -> type[Row]:
    """Return the class of rows with columns of these names."""
    return _class_of(tuple(names))


@lru_cache(256)
def _class_of(names: tuple[str, ...]) -> type[Row]:
    places = {name: place for place, name in reversed([*enumerate(names)])}
    found: dict[str, object] = {"__slots__": (), "_fields": names, "_places": places}
    for name, place in places.items() if len(names) <= _MOST else ():
        if name.isidentifier() and not iskeyword(name) and not name.startswith("_"):
            found[name] = property(cast("Callable[[Any], Any]", _of_tuple(place)))
    return type("Row", (Row,), found)


def _of_tuple(place: int) -> Callable[[Row], Any]:
    return itemgetter(place)


def _made_again(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return row_maker(names)(values)
