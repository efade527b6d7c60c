"""Names: which column of which FROM item a written name means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.catalog import Catalog, Table
from ..relation.expressions import Field
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
    name, quoted = str(identifier.args["this"]), bool(identifier.args.get("quoted"))
    return (name if quoted else name.lower()), quoted


def _matches(written: str, quoted: bool, names: Sequence[str]) -> list[int]:
    """Return the positions of the names meant: exact ones, else (unquoted) those that differ in case alone."""
    exact = [index for index, name in enumerate(names) if name and name == written]
    if exact or quoted:
        return exact
    return [index for index, name in enumerate(names) if name and name.lower() == written]


def find_table(context: Context, node: exp.Table, position: Position | None) -> Table:
    """Return the declared table that a FROM item names.

    Raises:
        Refusal: 42P01, the same whether the table is missing or not declared.
    """
    identifier = node.args["this"]
    schema = node.args.get("db")
    if isinstance(identifier, exp.Identifier):
        name, quoted = fold_name(identifier)
        names = list(context.catalog.tables)
        found = _matches(name, quoted, names)
        in_schema = context.catalog.default_schema
        if len(found) == 1:
            table = context.catalog.tables[names[found[0]]]
            if schema is None or fold_name(schema)[0] == (
                table.path[0] if len(table.path) > 1 else in_schema
            ):
                return table
        written = name if schema is None else f"{fold_name(schema)[0]}.{name}"
    else:
        written = "this"
    known = ", ".join(sorted(context.catalog.tables)) or "none"
    raise Refusal(
        f'table "{written}" does not exist', sqlstate="42P01", position=position, hint=f"tables: {known}"
    )


class Scope:
    """The FROM items in view, in order."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)

    def resolve(self, node: exp.Column, position: Position | None) -> Field:
        """Return the input column that a written column means.

        Raises:
            Refusal: 42703 no such column, 42702 more than one.
        """
        identifier = node.args["this"]
        if not isinstance(identifier, exp.Identifier) or node.args.get("db") is not None:
            raise Refusal("this is not a column name", sqlstate="42703", position=position)
        name, quoted = fold_name(identifier)
        table = node.args.get("table")
        sources = self.sources
        written = name
        if table is not None:
            table_name, table_quoted = fold_name(table)
            written = f"{table_name}.{name}"
            wanted = _matches(table_name, table_quoted, [source.name for source in sources])
            sources = tuple(sources[index] for index in wanted)
        hits: list[Field] = []
        for source in sources:
            names = [column.name for column in source.columns]
            for index in _matches(name, quoted, names):
                column = source.columns[index]
                hits.append(Field(column.type, source.start + index, column.name, position=position))
        if len(hits) == 1:
            return hits[0]
        if hits:
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
