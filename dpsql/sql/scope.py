"""Names: which column of which FROM item a written name means.

House rule: a name that means a table or view of the policy means nothing else, whatever an analyst has made, and
whatever a search path says. What an analyst has made is looked for after that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..records import dataclass
from ..relation.catalog import OWN_SCHEMA, TEMPORARY, Catalog, OwnView, Table, View
from ..relation.expressions import Expr, Field, moved
from ..relation.relations import OutputColumn, Relation
from .attach import Outer
from .text import said_of

__all__ = ["BindingContext", "Scope", "ScopeSource", "find_own", "find_table", "fold_name", "own_names"]


def _single_quotes(name: str, known: str) -> str:
    """Return the hint where a quoted name is none: most often a text is meant."""
    text = name[:60].replace("'", "''")
    return f"a text is written in single quotes: '{text}'" + (f"; columns: {known}" if known else "")


@dataclass(frozen=True, slots=True)
class BindingContext:
    """What binding reads besides the text: the catalog, parameters, the moment, and the CTEs in view.

    `outer`: the names of the query directly around, for a subquery in an expression. `moments`: those that were asked
    for, of the whole statement: none where it is the same at any other time. `found`: what FROM has named, in order; an
    analyst's own views among it stand for their texts.
    """

    catalog: Catalog
    text: str
    parameters: tuple[object, ...]
    now: int
    ctes: Mapping[str, Relation]
    outer: Scope | None = None
    moments: list[int] = field(default_factory=list)
    found: list[Table | View | OwnView] = field(default_factory=list)

    def moment(self) -> int:
        """Return the statement's moment, and take note that it was asked for."""
        self.moments.append(self.now)
        return self.now


@dataclass(frozen=True, slots=True)
class ScopeSource:
    """A FROM item: its name, its columns' names ("" for hidden ones), and where its columns start.

    `schemas`: of a table that stands under its own name, which may be written before it. `is_padded`: an outer join
    may have put NULL in the place of its row. `is_table`: its columns are a table's own, of the types that it has.
    `is_value`: its first column is what its name means, where no column is called so. `listed`: in which order `*`
    lists its columns; None: in theirs.
    """

    name: str
    columns: tuple[OutputColumn, ...]
    start: int
    schemas: frozenset[str] = frozenset()
    is_padded: bool = False
    is_table: bool = False
    is_value: bool = False
    listed: tuple[int, ...] | None = None


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


def find_table(context: BindingContext, node: exp.Table, position: Position | None) -> Table | View | OwnView:
    """Return the table or view that a FROM item names: the policy's, else the analyst's own.

    Raises:
        Refusal: 42P01, the same whether the table is missing or not declared; 42501 for an own one that holds what is
            no longer shown to the analyst.
    """
    known = _named_table(context, node, position)
    if isinstance(known, Table) and known.own is not None:
        _check_shown(context.catalog, known, known.own.reads, position)
    context.found.append(known)
    return known


def _check_shown(catalog: Catalog, table: Table, reads: frozenset[str], position: Position | None) -> None:
    """Raise Refusal (42501) where an own table holds what the policy no longer shows to its analyst."""
    for read in sorted(reads):
        name, _, column = read.rpartition(".")
        known = catalog.shown.get(name)
        is_public = known is not None and (
            known.unit is None if isinstance(known, Table) else known.role != "private"
        )
        is_there = (
            not column or any(one.name == column for one in known.named) if known is not None else False
        )
        if not is_public or not is_there:
            said = read.rstrip(".")
            raise Refusal(
                f'"{table.name}" holds what was read of "{said}", which is not shown to you any more', sqlstate="42501",
                position=position, hint=f"DROP TABLE {table.name}, and make it anew without that",
            )  # fmt: skip


def _named_table(
    context: BindingContext, node: exp.Table, position: Position | None
) -> Table | View | OwnView:
    identifier, schema = node.args["this"], node.args.get("db")
    database = node.args.get("catalog")
    if database is not None and fold_name(database)[0] not in context.catalog.databases:
        raise Refusal(
            f'the database "{fold_name(database)[0]}" is not this one', sqlstate="0A000", position=position,
            hint="leave it out: schema.table, or table alone",
        )  # fmt: skip
    shown = context.catalog.shown
    known = ", ".join(sorted(shown)) or "none"
    if not isinstance(identifier, exp.Identifier):
        said = said_of(identifier, context.text) if isinstance(identifier, exp.Expr) else "this form"
        raise Refusal(
            f"{said} does not exist as a table", sqlstate="42P01", position=position, hint=f"tables: {known}"
        )
    name, quoted = fold_name(identifier)
    written = name if schema is None else f"{fold_name(schema)[0]}.{name}"
    names = list(shown)
    for sought in dict.fromkeys((written, name)):
        found = _matches(sought, quoted, names)
        table = shown[names[found[0]]] if len(found) == 1 else None
        if table is not None and (schema is None or fold_name(schema)[0] in schemas_of(context, table)):
            return table
    own = find_own(context.catalog, "" if schema is None else fold_name(schema)[0], name)
    if own is not None:
        return own
    mine = f"; your own: {own_names(context.catalog)}" if context.catalog.own else ""
    hint, left_out = f"tables: {known}{mine}", written in context.catalog.left_out
    raise Refusal(
        f'table "{written}" does not exist', sqlstate="42P01", position=position, hint=hint,
        owner_hint=f"{hint}; the policy has a view of this name, and dpsql check says what is wrong with it"
        if left_out else None,
    )  # fmt: skip


_SHOWN_NAMES = 20


def own_names(catalog: Catalog) -> str:
    """Return the names of the analyst's own tables and views, as a hint has them: not all of very many."""
    names = sorted(".".join(path) for path in catalog.own)
    more = [] if len(names) <= _SHOWN_NAMES else ["…"]
    return ", ".join([*names[:_SHOWN_NAMES], *more]) or "none"


def find_own(catalog: Catalog, schema: str, name: str) -> Table | OwnView | None:
    """Return the analyst's own table or view of a name; schema "": none is written. None: there is none."""
    for space in (schema,) if schema else (TEMPORARY, OWN_SCHEMA):
        if (space, name) in catalog.own and space not in catalog.schemas:
            return catalog.own[space, name]
    return None


def schemas_of(context: BindingContext, table: Table | View | OwnView) -> frozenset[str]:
    """Return the names of the schema that a table is in.

    The default one may be written as Postgres names it, which is what tools do unasked, where no other is called so.
    """
    default = context.catalog.default_schema
    own = table.path[0] if len(table.path) > 1 else default
    if isinstance(table, OwnView) or (isinstance(table, Table) and table.own is not None):
        return frozenset({own})
    others = {other.path[0] for other in context.catalog.shown.values() if len(other.path) > 1}
    return frozenset({own, "public"} if own == default and "public" not in others else {own})


class Scope:
    """The FROM items in view, in order, and the columns that USING made one.

    `merged`: name and value of each column of USING. `hidden`: the input columns that they stand for,
    which a bare name and a bare `*` no longer see. `outer`: the scope of the query directly around.
    """

    def __init__(
        self,
        sources: Sequence[ScopeSource],
        merged: Sequence[tuple[str, Expr]] = (),
        hidden: frozenset[int] = frozenset(),
        outer: Scope | None = None,
    ) -> None:
        self.sources = tuple(sources)
        self.merged = tuple(merged)
        self.hidden = hidden
        self.outer = outer

    def is_of_table(self, index: int) -> bool:
        """Say whether a column is a table's own, and not computed in a subquery or a view."""
        return any(
            source.is_table and source.start <= index < source.start + len(source.columns)
            for source in self.sources
        )

    def joined(self, other: Scope, merged: Sequence[tuple[str, Expr]], hidden: frozenset[int]) -> Scope:
        """Return the scope with the FROM items of another, and the columns that a USING merges."""
        names = {name for name, _ in merged}
        kept = [pair for pair in (*self.merged, *other.merged) if pair[0] not in names]
        hidden = self.hidden | other.hidden | hidden
        return Scope([*self.sources, *other.sources], [*merged, *kept], hidden, self.outer)

    def padded(self, left: Scope, right: Scope, side: str) -> Scope:
        """Return the scope with the FROM items marked that an outer join of two may leave without a row."""
        lost = {"left": right.sources, "right": left.sources, "full": self.sources}.get(side, ())
        names = {(source.name, source.start) for source in lost}
        sources = [
            replace(source, is_padded=source.is_padded or (source.name, source.start) in names)
            for source in self.sources
        ]
        return Scope(sources, self.merged, self.hidden, self.outer) if names else self

    def is_padded(self, table: exp.Expr) -> bool:
        """Say whether a FROM item may have lost its row in an outer join."""
        return any(source.is_padded for source in self._meant(table))

    def moved(self, start: int) -> Scope:
        """Return the scope of the same FROM items with their columns starting `start` further on."""
        sources = [replace(source, start=source.start + start) for source in self.sources]
        merged = [(name, moved(expr, lambda index: index + start)) for name, expr in self.merged]
        return Scope(sources, merged, frozenset(index + start for index in self.hidden), self.outer)

    def named(self, name: str, quoted: bool = True, position: Position | None = None) -> list[Expr]:
        """Return the columns that a name without a table can mean."""
        merged = _matches(name, quoted, [known for known, _ in self.merged])
        found: list[Expr] = [replace(self.merged[index][1], position=position) for index in merged]
        for one in self._fields(self.sources, name, quoted, position):
            if one.index not in self.hidden:
                found.append(one)
        values = [] if found else [source for source in self.sources if source.is_value]
        for index in _matches(name, quoted, [source.name for source in values]):
            column = values[index].columns[0]
            found.append(Field(column.type, values[index].start, column.name, position=position))
        return found

    def _fields(
        self, sources: Sequence[ScopeSource], name: str, quoted: bool, position: Position | None
    ) -> list[Field]:
        found: list[Field] = []
        for source in sources:
            for index in _matches(name, quoted, [column.name for column in source.columns]):
                column = source.columns[index]
                found.append(Field(column.type, source.start + index, column.name, position=position))
        return found

    def _meant(self, table: exp.Expr) -> list[ScopeSource]:
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
            places = range(len(source.columns)) if source.listed is None else source.listed
            for place in places:
                column, index = source.columns[place], source.start + place
                if column.name and (table is not None or index not in self.hidden):
                    found.append((column.name, Field(column.type, index, column.name)))
        return found

    def resolve(self, node: exp.Expr, position: Position | None) -> Expr:
        """Return the input column that a written column means.

        Raises:
            Refusal: 42703 no such column, 42702 more than one.
        """
        identifier = node.args["this"]
        if not isinstance(identifier, exp.Identifier):
            raise Refusal("this is not a column name", sqlstate="42703", position=position)
        name, quoted = fold_name(identifier)
        table, schema = node.args.get("table"), node.args.get("db")
        found, sources = self._find(table, schema, name, quoted, position)
        if not found and (table is None or not sources):
            around = self._around(table, schema, name, quoted, position)
            if around is not None:
                return around
        written = name if table is None else f"{fold_name(table)[0]}.{name}"
        if len(found) == 1:
            return found[0]
        if found:
            raise self._ambiguous(written, name, position)
        known = ", ".join(c.name for s in sources for c in s.columns if c.name)
        raise Refusal(
            f'column "{written}" does not exist',
            sqlstate="42703",
            position=position,
            hint=_single_quotes(name, known)
            if quoted and table is None
            else f"columns: {known}"
            if known
            else None,
        )

    def _ambiguous(self, written: str, name: str, position: Position | None) -> Refusal:
        return Refusal(
            f'column "{written}" is ambiguous',
            sqlstate="42702",
            position=position,
            hint="write the table before it: " + f"{self.sources[0].name}.{name}",
        )

    def _find(
        self,
        table: exp.Expr | None,
        schema: exp.Expr | None,
        name: str,
        quoted: bool,
        position: Position | None,
    ) -> tuple[Sequence[Expr], Sequence[ScopeSource]]:
        """Return the columns that a name can mean here, and the FROM items that were looked through."""
        if table is None:
            return self.named(name, quoted, position), self.sources
        sources = self._meant(table)
        if schema is not None:
            wanted = fold_name(schema)[0]
            sources = [source for source in sources if wanted in source.schemas]
        return self._fields(sources, name, quoted, position), sources

    def _around(
        self,
        table: exp.Expr | None,
        schema: exp.Expr | None,
        name: str,
        quoted: bool,
        position: Position | None,
    ) -> Expr | None:
        """Return a column of the query directly around; None when no query around has it.

        Raises:
            Refusal: 0A000 for a column of a query further out, 42702 for more than one column.
        """
        scope, steps = self.outer, 1
        while scope is not None:
            found, sources = scope._find(table, schema, name, quoted, position)
            if len(found) > 1:
                raise scope._ambiguous(name, name, position)
            if found and steps > 1:
                raise Refusal(
                    "a subquery can use columns of the query directly around it",
                    sqlstate="0A000",
                    position=position,
                    hint="join the tables in the subquery, or select the column in the query between",
                )
            if found:
                return Outer(found[0].type, found[0], position=position)
            if table is not None and sources:
                return None
            scope, steps = scope.outer, steps + 1
        return None
