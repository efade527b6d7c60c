"""Names: which column of which FROM item a written name means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.catalog import Catalog, Table
from ..relation.expressions import Expr, Field
from ..relation.relations import OutputColumn, Relation

__all__ = ["Context", "Scope", "Source", "find_table", "fold_name"]


@dataclass(frozen=True, slots=True)
class Context:
    """What binding reads besides the text: the catalog, parameters, the moment, and the CTEs in view."""

    catalog: Catalog
    text: str
    parameters: tuple[object, ...]
    now: int
    ctes: Mapping[str, Relation]


@dataclass(frozen=True, slots=True)
class Source:
    """A FROM item: its name, its columns' names ("" for hidden ones), and where its columns start."""

    name: str
    columns: tuple[OutputColumn, ...]
    start: int


def fold_name(identifier: exp.Expr) -> tuple[str, bool]:
    """Return a name as Postgres folds it (lower case unless quoted), and whether it was quoted."""
    if not isinstance(identifier, exp.Identifier):
        raise Refusal("a name is expected", sqlstate="42601")
    name, quoted = str(identifier.args["this"]), bool(identifier.args.get("quoted"))
    return (name if quoted else name.lower()), quoted


def _matches(written: str, quoted: bool, names: Sequence[str]) -> list[int]:
    """Return the positions of the names meant: exact ones, else (unquoted) those that differ in case."""
    exact = [index for index, name in enumerate(names) if name and name == written]
    if exact or quoted:
        return exact
    return [index for index, name in enumerate(names) if name and name.lower() == written]


def find_table(context: Context, node: exp.Table, position: Position | None) -> Table:
    """Return the declared table that a FROM item names.

    Raises:
        Refusal: 42P01, the same whether the table is missing or not declared.
    """
    identifier, schema = node.args["this"], node.args.get("db")
    written = "this"
    if isinstance(identifier, exp.Identifier):
        name, quoted = fold_name(identifier)
        written = name if schema is None else f"{fold_name(schema)[0]}.{name}"
        names = list(context.catalog.tables)
        for sought in dict.fromkeys((written, name)):
            found = _matches(sought, quoted, names)
            table = context.catalog.tables[names[found[0]]] if len(found) == 1 else None
            if table is not None and (schema is None or fold_name(schema)[0] == _schema_of(context, table)):
                return table
    known = ", ".join(sorted(context.catalog.tables)) or "none"
    raise Refusal(
        f'table "{written}" does not exist', sqlstate="42P01", position=position, hint=f"tables: {known}"
    )


def _schema_of(context: Context, table: Table) -> str:
    return table.path[0] if len(table.path) > 1 else context.catalog.default_schema


class Scope:
    """The FROM items in view, in order, and the columns that USING made one.

    `merged`: name and value of each column of USING. `hidden`: the input columns that they stand for,
    which a bare name and a bare `*` no longer see.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        merged: Sequence[tuple[str, Expr]] = (),
        hidden: frozenset[int] = frozenset(),
    ) -> None:
        self.sources = tuple(sources)
        self.merged = tuple(merged)
        self.hidden = hidden

    def joined(self, source: Source, merged: Sequence[tuple[str, Expr]], hidden: frozenset[int]) -> Scope:
        """Return the scope with one more FROM item, and the columns that its USING merges."""
        names = {name for name, _ in merged}
        kept = [pair for pair in self.merged if pair[0] not in names]
        return Scope([*self.sources, source], [*merged, *kept], self.hidden | hidden)

    def named(self, name: str, quoted: bool = True, position: Position | None = None) -> list[Expr]:
        """Return the columns that a name without a table can mean."""
        merged = _matches(name, quoted, [known for known, _ in self.merged])
        found: list[Expr] = [replace(self.merged[index][1], position=position) for index in merged]
        for field in self._fields(self.sources, name, quoted, position):
            if field.index not in self.hidden:
                found.append(field)
        return found

    def _fields(
        self, sources: Sequence[Source], name: str, quoted: bool, position: Position | None
    ) -> list[Field]:
        found: list[Field] = []
        for source in sources:
            for index in _matches(name, quoted, [column.name for column in source.columns]):
                column = source.columns[index]
                found.append(Field(column.type, source.start + index, column.name, position=position))
        return found

    def _meant(self, table: exp.Expr) -> list[Source]:
        name, quoted = fold_name(table)
        wanted = _matches(name, quoted, [source.name for source in self.sources])
        return [self.sources[index] for index in wanted]

    def star(self, table: exp.Expr | None, position: Position | None) -> list[tuple[str, Expr]]:
        """Return the names and values of `*` or `table.*`.

        Raises:
            Refusal: 42601 without a FROM item, 42P01 for a table that is not in FROM.
        """
        sources = self.sources if table is None else tuple(self._meant(table))
        if not sources:
            if table is None:
                raise Refusal("* needs a table in FROM", sqlstate="42601", position=position)
            raise Refusal(
                f'table "{fold_name(table)[0]}" is not in FROM', sqlstate="42P01", position=position
            )
        found: list[tuple[str, Expr]] = list(self.merged) if table is None else []
        for source in sources:
            for index, column in enumerate(source.columns, source.start):
                if column.name and (table is not None or index not in self.hidden):
                    found.append((column.name, Field(column.type, index, column.name)))
        return found

    def resolve(self, node: exp.Column, position: Position | None) -> Expr:
        """Return the input column that a written column means.

        Raises:
            Refusal: 42703 no such column, 42702 more than one.
        """
        identifier = node.args["this"]
        if not isinstance(identifier, exp.Identifier) or node.args.get("db") is not None:
            raise Refusal("this is not a column name", sqlstate="42703", position=position)
        name, quoted = fold_name(identifier)
        table = node.args.get("table")
        found: Sequence[Expr]
        if table is None:
            written, sources, found = name, self.sources, self.named(name, quoted, position)
        else:
            written, sources = f"{fold_name(table)[0]}.{name}", tuple(self._meant(table))
            found = self._fields(sources, name, quoted, position)
        if len(found) == 1:
            return found[0]
        if found:
            raise Refusal(
                f'column "{written}" is ambiguous',
                sqlstate="42702",
                position=position,
                hint="write the table before it: " + f"{self.sources[0].name}.{name}",
            )
        known = ", ".join(c.name for s in sources for c in s.columns if c.name)
        raise Refusal(
            f'column "{written}" does not exist',
            sqlstate="42703",
            position=position,
            hint=f"columns: {known}" if known else None,
        )
