"""Names: which column of which FROM item a written name means.

House rule: a name that means a table or view of the policy means nothing else, whatever an analyst has made, and
whatever a search path says. What an analyst has made is looked for after that.

Subqueries as joins: what an expression asks to be joined to its row, and the joining of it.

House rules:

1. While a SELECT is bound, a subquery's value is an `Attached` marker; the `Attacher` of its level (below the
   aggregate, or above it) joins the subquery's relation and puts a column in the marker's place.
2. Columns are added after the existing ones, which never move; names do not see them.

Columns of the query around a subquery, and how the conditions on them are taken out of it.

House rules:

1. An `Outer` node stands for an expression over the row of the query directly around; it lives while a
   subquery is being bound. `bind_subquery` turns each into a condition of a join, or refuses: none leaves sql/.
2. A condition is taken out only past nodes that commute with it: Filter, Project, Sort, the left side of a join
   that keeps or narrows the left rows, and DISTINCT where only existence matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..records import dataclass
from ..relation.catalog import OWN_SCHEMA, TEMPORARY, Catalog, OwnView, Table, View
from ..relation.expressions import (
    TRUE,
    Call,
    Expr,
    Field,
    conjunction,
    conjuncts,
    map_children,
    moved,
    size_of,
    substitute,
    walk,
)
from ..relation.relations import (
    Join,
    Lateral,
    OutputColumn,
    Relation,
    ends_in,
    expressions,
    filtered,
    skipped,
)
from .text import said_of


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


# --- columns of the query around a subquery, and how the conditions on them are taken out of it -------------


MAX_EXPRESSION = 1_000
"""Most nodes of an expression whose subqueries' columns were put in."""


@dataclass(frozen=True, slots=True)
class Outer(Expr):
    """The value of `expr` in the row of the query directly around the subquery that holds this."""

    expr: Expr


def outer_in(expr: Expr) -> bool:
    """Say whether an expression reads the query around."""
    return any(isinstance(part, Outer) for part in walk(expr))


def _outers_of(relation: Relation) -> Iterator[Outer]:
    """Yield the references to the query around that a relation holds.

    Those of a lateral join's right side are to its left side.
    """
    seen: set[int] = set()
    stack = [relation]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for expr in expressions(node):
            yield from (part for part in walk(expr) if isinstance(part, Outer))
        stack += node.inputs[:1] if isinstance(node, Lateral) else node.inputs


def first_outer(relation: Relation) -> Outer | None:
    """Return a reference to the query around that a relation holds; None when it is closed."""
    return next(_outers_of(relation), None)


def _with_outers(relation: Relation, change: Callable[[Expr], Expr]) -> Relation:
    """Return a relation with `change` applied to what its references to the query around stand for."""

    def put(expr: Expr) -> Expr:
        if isinstance(expr, Outer):
            return replace(expr, expr=change(expr.expr))
        return map_children(expr, put)

    if isinstance(relation, Lateral):
        return replace(relation, left=_with_outers(relation.left, change), condition=put(relation.condition))
    return relation.map_expressions(put).map_inputs(lambda below: _with_outers(below, change))


def check_closed(relation: Relation) -> None:
    """Check that no reference to the query around is left.

    Raises:
        Refusal: PV004 at the first that is.
    """
    left = first_outer(relation)
    if left is None:
        return
    name = left.expr.name
    said = f'column "{name}" of the query around' if name else "a value of the query around"
    raise Refusal(
        f"{said} cannot stand here in a subquery",
        sqlstate="PV004",
        position=left.position,
        hint="compare it in the subquery's own WHERE, not below GROUP BY, LIMIT, UNION or an outer join",
    )


@dataclass(frozen=True, slots=True)
class Opened:
    """A query taken apart: a closed relation, the query's columns over it, and the conditions taken out.

    `outputs` and `conditions` are over the relation's row and, in `Outer` nodes, the row around.
    """

    relation: Relation
    outputs: tuple[Expr, ...]
    conditions: tuple[Expr, ...]


def open_query(relation: Relation, *, exists: bool) -> Opened:
    """Return a query with the conditions on the row around taken out; a closed one stays as it is.

    `exists`: only whether there is a row matters, not how many alike.

    Raises:
        Refusal: PV004 when a reference to the row around stays inside, 54001 when the query grows too large.
    """
    opened = _open(relation, exists)
    check_closed(opened.relation)
    return opened


def project_onto(exprs: tuple[Expr, ...], row: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return expressions over a projection as expressions over its input row.

    Raises:
        Refusal: 54001 when one grows too large (subqueries that use a column twice double it).
    """
    put = tuple(substitute(expr, row) for expr in exprs)
    for expr in put:
        if size_of(expr, MAX_EXPRESSION) >= MAX_EXPRESSION:
            raise Refusal(
                "the statement is too complex",
                sqlstate="54001",
                position=expr.position,
                hint="nest fewer expressions inside each other",
            )
    return put


def _open(node: Relation, exists: bool) -> Opened:
    node = skipped(node, "orders", *(["distinct"] if exists else []))
    if first_outer(node) is None:
        return Opened(node, node.row, ())
    if ends_in(node, "outputs"):
        opened = _open(node.below, exists)
        return replace(opened, outputs=project_onto(node.exprs, opened.outputs))
    if ends_in(node, "where", "having"):
        opened = _open(node.below, exists)
        own, taken = _divided(project_onto((node.predicate,), opened.outputs)[0])
        base = opened.relation if not own else filtered(opened.relation, conjunction(own), node.position)
        return Opened(base, opened.outputs, (*opened.conditions, *taken))
    if isinstance(node, Join) and node.kind in ("inner", "cross", "left", "mark"):
        return _open_join(node, exists)
    return Opened(node, node.row, ())


def _open_join(node: Join, exists: bool) -> Opened:
    opened = _open(node.left, exists)
    width = len(opened.relation.columns)
    right = tuple(Field(column.type, width + i, column.name) for i, column in enumerate(node.right.columns))
    condition = project_onto((node.condition,), (*opened.outputs, *right))[0]
    kind = node.kind
    taken: tuple[Expr, ...] = ()
    if kind in ("inner", "cross"):
        own, taken = _divided(condition)
        condition, kind = conjunction(own), "inner" if own else "cross"
    base = replace(node, kind=kind, left=opened.relation, condition=condition)
    added = right if kind != "mark" else (Field(base.columns[-1].type, width),)
    return Opened(base, (*opened.outputs, *added), (*opened.conditions, *taken))


def _divided(predicate: Expr) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Return the AND terms that do not read the row around, and those that do."""
    terms = conjuncts(predicate)
    return tuple(t for t in terms if not outer_in(t)), tuple(t for t in terms if outer_in(t))


# --- subqueries as joins: what an expression asks to be joined to its row, and the joining of it ------------


Lift = Callable[[Expr], Expr]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A relation to be joined on a condition over its own row and, as `Outer`, the row it joins.

    `kind`: mark or left; scalar or any, with `refused`, where it reads the row that it joins itself (`Lateral`).
    """

    kind: str
    right: Relation
    condition: Expr
    word: str = field(compare=False)
    position: Position | None = field(default=None, compare=False, repr=False)
    refused: Refusal | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Attached(Expr):
    """Column `column` of what attachment number `index` adds to the row."""

    index: int
    column: int


def attached_in(expr: Expr) -> bool:
    """Say whether an expression needs a join."""
    return any(isinstance(part, Attached) for part in walk(expr))


class Attacher:
    """A relation that grows by the joins that expressions ask for.

    `own`: what turns an expression over the names' row into one over this relation's row, and leaves
    markers to `column`; None when the two rows are one.
    """

    def __init__(
        self, relation: Relation, attachments: Sequence[Attachment], own: Lift | None = None
    ) -> None:
        self.relation = relation
        self._attachments = attachments
        self._own = own
        self._starts: dict[int, int] = {}

    def lift(self, expr: Expr) -> Expr:
        """Return the expression over the relation's row, joining what it needs."""
        if self._own is not None:
            return self._own(expr)
        if isinstance(expr, Attached):
            return self.column(expr)
        return map_children(expr, self.lift)

    def column(self, marker: Attached) -> Expr:
        """Return the column of a marker, its join made when this is the first to ask for it."""
        if marker.index not in self._starts:
            self._starts[marker.index] = self._join(self._attachments[marker.index])
        return Field(marker.type, self._starts[marker.index] + marker.column, position=marker.position)

    def filter(self, predicate: Expr, position: Position | None) -> None:
        """Keep the rows on which a predicate is true: first by the terms that need no join, then one by one."""
        terms = predicate.args if predicate.calls("and") else (predicate,)
        plain = tuple(term for term in terms if not attached_in(term))
        if len(plain) == len(terms):
            self._keep(self.lift(predicate), position)
            return
        if plain:
            whole = (
                plain[0]
                if len(plain) == 1
                else Call(predicate.type, "and", plain, position=predicate.position)
            )
            self._keep(self.lift(whole), position)
        for term in sorted((term for term in terms if attached_in(term)), key=_number_of):
            self._keep(self.lift(term), position)

    def _keep(self, predicate: Expr, position: Position | None) -> None:
        if predicate != TRUE:
            self.relation = filtered(self.relation, predicate, position)

    def _join(self, attachment: Attachment) -> int:
        for part in walk(attachment.condition):
            if isinstance(part, Outer):
                self.lift(part.expr)  # a subquery inside it joins first: the row is complete from here on
        if attachment.refused is not None:
            for outer in _outers_of(attachment.right):
                self.lift(outer.expr)
        width = len(self.relation.columns)

        def over_both(expr: Expr) -> Expr:
            if isinstance(expr, Outer):
                return self.lift(expr.expr)
            if isinstance(expr, Field):
                return Field(expr.type, width + expr.index, expr.name, position=expr.position)
            return map_children(expr, over_both)

        if attachment.refused is not None:
            right = _with_outers(attachment.right, self.lift)
            self.relation = Lateral(
                attachment.kind, self.relation, right, over_both(attachment.condition), attachment.refused,
                position=attachment.position,
            )  # fmt: skip
            return width
        self.relation = Join(
            attachment.kind, self.relation, attachment.right, over_both(attachment.condition), attachment.word,
            position=attachment.position,
        )  # fmt: skip
        return width


def _number_of(expr: Expr) -> int:
    return min(part.index for part in walk(expr) if isinstance(part, Attached))
