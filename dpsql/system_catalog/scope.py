"""What names mean inside a query: the items of FROM, and those of the queries around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .errors import CatalogRefusal
from .typed import Typed

__all__ = ["Bound", "CatalogScope", "CatalogSource", "Output"]

Output = tuple[str, Typed]
"""A column: its name, and what it is."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A query in the engine's SQL; its columns are c0, c1, … there."""

    sql: str
    columns: tuple[Output, ...]


@dataclass
class CatalogSource:
    """An item of FROM. `merged`: columns that USING made one with another item's."""

    name: str
    columns: tuple[Output, ...]
    system: Mapping[str, Typed] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)
    schema: str | None = None

    def find(self, name: str) -> Typed | None:
        """Return a column by its name."""
        found = next((typed for column, typed in self.columns if column == name), None)
        return self.system.get(name) if found is None else found


@dataclass
class CatalogScope:
    """The items that an expression sees; `ctes`: the queries of WITH by name."""

    parent: CatalogScope | None
    ctes: dict[str, Bound]
    sources: list[CatalogSource] = field(default_factory=list)

    def column(self, parts: tuple[str, ...]) -> Typed:
        """Return what a name means. Raises CatalogRefusal: nothing, or two things."""
        found = self._search(parts)
        if found is None:
            name = ".".join(parts)[:100]
            raise CatalogRefusal(
                "no such column", message=f'column "{name}" does not exist', sqlstate="42703"
            )
        return found

    def _search(self, parts: tuple[str, ...]) -> Typed | None:
        found = [
            typed for source in self._named(parts) for typed in [source.find(parts[-1])] if typed is not None
        ]
        if len(found) > 1:
            raise CatalogRefusal(
                "an ambiguous column", message=f'column "{parts[-1][:60]}" is ambiguous', sqlstate="42702"
            )
        if found:
            return found[0]
        return None if self.parent is None else self.parent._search(parts)

    def _named(self, parts: tuple[str, ...]) -> Iterator[CatalogSource]:
        for source in self.sources:
            if len(parts) == 1:
                if parts[0] not in source.merged:
                    yield source
            elif source.name == parts[-2] and (len(parts) < 3 or source.schema == parts[-3]):
                yield source

    def source(self, name: str) -> CatalogSource | None:
        """Return an item by its name, here or around."""
        for source in self.sources:
            if source.name == name:
                return source
        return None if self.parent is None else self.parent.source(name)

    def cte(self, name: str) -> Bound | None:
        """Return a query of WITH."""
        if name in self.ctes:
            return self.ctes[name]
        return None if self.parent is None else self.parent.cte(name)
