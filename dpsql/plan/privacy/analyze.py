"""The privacy analysis: which relations are private, which are public, and what is refused (soundness.md 1.10).

House rules:

1. One function per relation node; what no rule derives is refused, with the reason and the rewrite.
2. A reviewer adding a rule adds its line of proof here and a neighbour-fuzz case. N(D) = ⊎_u N_u(D_u, Pub):
   - Scan: each row has the owner at the end of its unit's path; rows that reach none are dropped.
   - Filter, Project: a function of the one row; owner and separability are the input's.
   - Join: `join`; a row of the result is made of rows of one owner and of public rows.
   - Aggregate and Distinct by a key that has one owner, and Window partitioned by one: a function of that
     owner's rows. `derived` groups by the owner as well, so this holds whatever the keys hold.
   - UNION ALL of owned rows: owned rows. UNION: UNION ALL, then DISTINCT.
   - any other Aggregate or Distinct: the release boundary. The result is a `Release` and public.
3. A subquery on the private side that is public by itself is drawn first (soundness.md 1.14): a scalar one
   enters as an `IntermediateValue` of its static range, rows as a `Released` source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...errors import Refusal
from ...relation.catalog import Catalog
from ...relation.expressions import (
    Call,
    Expr,
    Field,
    IntermediateValue,
    Literal,
    Scalar,
    conjuncts,
    map_children,
    size_of,
    substitute,
)
from ...relation.forms import Lateral, Recursive, RecursiveRef, Series, Unnest
from ...relation.functions import FUNCTIONS
from ...relation.relations import (
    Aggregate,
    Declared,
    Distinct,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    SetOperation,
    Sort,
    Values,
    Window,
)
from ...relation.types import INTEGER, NULL
from ...sql.outer import Outer
from .above_alone import ReadsAround, check_whole, is_plain_frame
from .correlated_keys import held_to, keys_asked_for
from .derived import group_by_owner, plain, union, window_by_owner, with_declared
from .join import join_blocks
from .keys import environment_of, stepped_keys
from .ownership import resolve_owner, scanned
from .public_inputs import NotInPlace, drawn_first, is_single, read_in_place, static_range
from .release_boundary import check_keys, one_person, owner_of, release_each_set, shown_keys
from .rows import (
    Block,
    Derived,
    Grouped,
    Item,
    OwnedRows,
    PrivateBlock,
    Release,
)

__all__ = ["Analyzed", "analyze", "private_rows"]

MAX_EXPRESSION = 1_000
"""Most nodes of one expression on private rows, its subqueries' columns put in."""


@dataclass(frozen=True, slots=True)
class Analyzed:
    """A public relation with its releases inside, and the intermediate results it needs, in order of drawing.

    An intermediate result in `tables` is used as rows, any other as one value.
    """

    root: Relation
    intermediates: tuple[Relation, ...]
    tables: frozenset[int]


def analyze(relation: Relation, catalog: Catalog) -> Analyzed:
    """Return the statement's relation as public, every private part behind a `Release`.

    Raises:
        Refusal: PV0xx, when a part is not derivable as private or public, or the result would be private.
    """
    analysis = _Analysis(catalog)
    root = analysis.public(relation)
    return Analyzed(root, tuple(analysis.intermediates), frozenset(analysis.tables))


def private_rows(relation: Relation, catalog: Catalog) -> PrivateBlock | None:
    """Return a relation as a block of rows that are one person's each; None: it is public.

    Raises:
        Refusal: PV0xx, when it is not derivable as private or public.
    """
    found = _Analysis(catalog).relation(relation)
    if not isinstance(found, PrivateBlock):
        return None
    resolve_owner(found, catalog, relation.position)
    return found


@dataclass
class _Analysis:
    catalog: Catalog
    intermediates: list[Relation] = field(default_factory=list)
    tables: set[int] = field(default_factory=set)

    def public(self, relation: Relation) -> Relation:
        """Analyze a relation that must be public: the statement itself, or a scalar subquery."""
        self._refuse_raw_rows(relation)
        analyzed = self.relation(relation)
        if isinstance(
            analyzed, PrivateBlock
        ):  # no release stands above it: rows of people would be the answer
            raise _raw(relation, analyzed)
        return analyzed

    def _refuse_raw_rows(self, relation: Relation) -> None:
        """Give raw rows their own refusal, also below ORDER BY and LIMIT."""
        node = relation
        while isinstance(node, (Sort, Limit)) or (
            isinstance(node, Project) and isinstance(node.input, (Sort, Limit))
        ):
            node = node.input
        if node is not relation and isinstance(node, (Project, Filter, Scan)):
            analyzed = self.relation(node)
            if isinstance(analyzed, PrivateBlock):
                raise _raw(node, analyzed)

    def relation(self, node: Relation) -> PrivateBlock | Relation:
        if isinstance(node, Scan):
            return self._scan(node)
        if isinstance(node, (Values, Series, RecursiveRef)):
            return node
        if isinstance(node, (Lateral, Recursive, Unnest)):
            return self._above_alone(node)
        if isinstance(node, Filter):
            return self._filter(node)
        if isinstance(node, Project):
            return self._projected(node, self.relation(node.input))
        if isinstance(node, Aggregate):
            return self._aggregated(node, self.relation(node.input))
        if isinstance(node, Distinct):
            return self._distinct(node)
        if isinstance(node, SetOperation):
            return self._set_operation(node)
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, Window):
            return self._window(node)
        if isinstance(node, Declared):
            return self._declared(node)
        if isinstance(node, (Sort, Limit)):
            return self._ordered(node)
        raise AssertionError(type(node).__name__)

    def _above_alone(self, node: Lateral | Recursive | Unnest) -> Relation:
        """Analyze what stands above the release alone: a side of it that is of people's rows is refused."""
        inputs = []
        for child in node.inputs:
            try:
                analyzed = self.relation(child)
            except ReadsAround as refused:
                raise _not_below(node, refused) from None
            if isinstance(analyzed, PrivateBlock):
                raise _not_below(node, None)
            inputs.append(analyzed)
        given = iter(inputs)
        return node.map_inputs(lambda _: next(given)).map_expressions(self._above)

    def _scan(self, node: Scan) -> PrivateBlock | Relation:
        return node if node.table.unit is None else scanned(node, self.catalog)

    def _filter(self, node: Filter) -> PrivateBlock | Relation:
        source = self.relation(node.input)
        if not isinstance(source, PrivateBlock):
            return replace(node, input=source, predicate=self._above(node.predicate))
        terms = conjuncts(self._onto(node.predicate, source))
        return replace(source, predicate=tuple(sorted(dict.fromkeys((*source.predicate, *terms)), key=repr)))

    def _projected(self, node: Project, source: PrivateBlock | Relation) -> PrivateBlock | Relation:
        if not isinstance(source, PrivateBlock):
            return replace(node, input=source, exprs=tuple(self._above(expr) for expr in node.exprs))
        outputs = tuple(self._onto(expr, source) for expr in node.exprs)
        return replace(source, outputs=outputs, names=node.names)

    def _ordered(self, node: Sort | Limit) -> Relation:
        source = self.relation(node.input)
        if isinstance(source, PrivateBlock):
            said, hint = {
                Sort: ("ORDER BY below an aggregate has no meaning", "put ORDER BY at the end of the statement"),
                Limit: ("LIMIT over private rows lets one person's row push out another's",
                        "limit the released rows, or number each person's rows: ROW_NUMBER() OVER (PARTITION BY …)"),
            }[type(node)]  # fmt: skip
            raise _refuse(node, said, hint)
        if isinstance(node, Sort):
            orders = tuple(replace(order, expr=self._above(order.expr)) for order in node.orders)
            return replace(node, input=source, orders=orders)
        return replace(node, input=source)

    # --- several relations ---------------------------------------------------------------------------

    def _join(self, node: Join) -> PrivateBlock | Relation:
        left = self.relation(node.left)
        right = self._looked_up(node, left) if node.word == "scalar" else self.relation(node.right)
        if not isinstance(left, PrivateBlock) and not isinstance(right, PrivateBlock):
            return replace(node, left=left, right=right, condition=self._above(node.condition))
        first = left if isinstance(left, PrivateBlock) else self._public_input(left)
        second = right if isinstance(right, PrivateBlock) else self._public_input(right)
        return join_blocks(node, first, second, self.catalog, self._checked)

    def _looked_up(self, node: Join, left: PrivateBlock | Relation) -> PrivateBlock | Relation:
        """Analyze a correlated scalar subquery: a release of the groups alone that some left row can ask for."""
        project = node.right if isinstance(node.right, Project) else None
        aggregate = node.right if project is None else project.input
        if not isinstance(aggregate, Aggregate):
            return self.relation(node.right)
        source = self.relation(aggregate.input)
        analyzed = self._aggregated(aggregate, source)
        if isinstance(source, PrivateBlock) and not isinstance(analyzed, PrivateBlock):
            asked = keys_asked_for(node, left, len(aggregate.keys), self.catalog)
            if asked is not None:
                analyzed = self._aggregated(aggregate, held_to(source, aggregate, asked, self.catalog))
        return analyzed if project is None else self._projected(project, analyzed)

    def _public_input(self, relation: Relation) -> PrivateBlock:
        """Return a public relation as a block of a private one: read where it is, or drawn first as an intermediate
        result. Raises ReadsAround where it is no relation by itself."""
        check_whole(relation)
        try:
            return read_in_place(relation, self.catalog)
        except NotInPlace:
            if relation.columns:
                return drawn_first(relation, self._intermediate(relation, as_rows=True))
            # SELECT without FROM: rows travel as their columns, and one tells how many there are
            counted = Project(relation, (Literal(INTEGER, 1),), ("",), position=relation.position)
            drawn = drawn_first(counted, self._intermediate(counted, as_rows=True))
            return replace(drawn, outputs=(), names=())

    def _intermediate(self, relation: Relation, *, as_rows: bool) -> int:
        """Return the number of an intermediate result; one that is used as rows and as a value is two."""
        for number, known in enumerate(self.intermediates):
            if known == relation and (number in self.tables) == as_rows:
                return number
        self.intermediates.append(relation)
        if as_rows:
            self.tables.add(len(self.intermediates) - 1)
        return len(self.intermediates) - 1

    def _declared(self, node: Declared) -> PrivateBlock | Relation:
        """Return rows as a subquery of their own, whose columns the owner declares."""
        source = self.relation(node.input)
        if not isinstance(source, PrivateBlock):
            raise AssertionError("columns of people's rows are declared")
        rows = resolve_owner(source, self.catalog, node.position)
        return _of_source(with_declared(plain(rows, source), node.declared), source.names)

    def _set_operation(self, node: SetOperation) -> PrivateBlock | Relation:
        left, right = self.relation(node.left), self.relation(node.right)
        if not isinstance(left, PrivateBlock) and not isinstance(right, PrivateBlock):
            return replace(node, left=left, right=right)
        if not isinstance(left, PrivateBlock) or not isinstance(right, PrivateBlock):
            raise _refuse(node, f"{node.kind.upper()} of private rows and rows that nobody owns",
                          "aggregate the private side first, then combine the results")  # fmt: skip
        if node.kind != "union":
            word = "NOT EXISTS" if node.kind == "except" else "EXISTS"
            raise _refuse(node, f"{node.kind.upper()} over private rows is not answered",
                          f"write {word} with an equality on the person's key")  # fmt: skip
        parts = []
        for side in (left, right):
            rows = resolve_owner(side, self.catalog, node.position)
            block = Block(rows.items, rows.predicate, side.outputs, rows.owner, works=rows.works)
            parts.append((block, rows))
        _check_once(node, *(rows for _, rows in parts))
        both = _of_source(union(parts, node.outputs), [column.name for column in node.columns])
        return both if node.all else self._distinct_rows(node, both)

    # --- grouping ----------------------------------------------------------------------------------------

    def _window(self, node: Window) -> PrivateBlock | Relation:
        source = self.relation(node.input)
        if not isinstance(source, PrivateBlock):
            return replace(node, input=source).map_expressions(self._above)
        calls = tuple(call.map(lambda expr: self._onto(expr, source)) for call in node.calls)
        rows = resolve_owner(source, self.catalog, node.position)
        for call in calls:
            if not owner_of(call.partition, rows):
                by = "" if rows.row_tables else "partition it by the person's key, or "
                raise Refusal(
                    "a window over private rows mixes rows of different people", sqlstate="PV003",
                    position=call.position or node.position, hint=f"{by}aggregate with GROUP BY first",
                )  # fmt: skip
            if call.frame and not is_plain_frame(call.frame):
                raise Refusal(
                    "this frame of a window is not taken of people's rows", sqlstate="PV202",
                    position=call.position or node.position,
                    hint="ROWS with numbers, or RANGE from UNBOUNDED or CURRENT ROW, without EXCLUDE",
                )  # fmt: skip
            if (
                call.function in ("min", "max")
                and call.frame
                and "BETWEEN UNBOUNDED PRECEDING" not in call.frame
            ):
                # An engine that takes it anew for each row does n² work for a person with n rows (law L10).
                raise Refusal(
                    f"{call.function.upper()}() over a frame that moves its start is not taken of people's rows",
                    sqlstate="PV202", position=call.position or node.position,
                    hint="begin the frame with UNBOUNDED PRECEDING, or order the other way round",
                )  # fmt: skip
        names = [column.name for column in node.columns]
        return _of_source(window_by_owner(rows, source.outputs, calls, names), names)

    def _distinct(self, node: Distinct) -> PrivateBlock | Relation:
        source = self.relation(node.input)
        if not isinstance(source, PrivateBlock):
            return replace(node, input=source)
        return self._distinct_rows(node, source)

    def _distinct_rows(self, node: Relation, source: PrivateBlock) -> PrivateBlock | Relation:
        rows = resolve_owner(source, self.catalog, node.position)
        if owner_of(source.outputs, rows):
            return _of_source(group_by_owner(rows, source.outputs, (), source.names), source.names)
        check_keys(rows, source.outputs)
        steps = stepped_keys(source.outputs, environment_of(rows.columns, rows.predicate))
        keys = tuple(
            key if step is None else step.grouped for key, step in zip(source.outputs, steps, strict=True)
        )
        released = Release(rows, keys, (), (1, 1), source.names, position=node.position)
        return shown_keys(released, steps, source.names)

    def _aggregated(self, node: Aggregate, source: PrivateBlock | Relation) -> PrivateBlock | Relation:
        if not isinstance(source, PrivateBlock):
            return replace(node, input=source).map_expressions(self._above)
        keys = tuple(self._onto(key, source) for key in node.keys)
        mapped = (call.map(lambda expr: self._onto(expr, source)) for call in node.aggregates)
        # Only what stands above the release takes rows in an order; MODE chooses among ties by noise.
        aggregates = tuple(replace(call, orders=()) for call in mapped)
        rows = resolve_owner(source, self.catalog, node.position)
        owned = [bool(owner_of((keys[i] for i in chosen), rows)) for chosen in node.sets]
        if all(owned) and len(owned) == 1 and not node.groupings:
            names = [column.name for column in node.columns]
            return _of_source(group_by_owner(rows, keys, aggregates, names), names)
        return release_each_set(node, rows, keys, aggregates)

    def _onto(self, expr: Expr, source: PrivateBlock) -> Expr:
        """Return an expression over the output of private rows as one over the columns of their sources.

        Raises:
            Refusal: 54001 when it grows too large (subqueries that use a column twice double it).
        """
        return self._checked(substitute(expr, source.outputs))

    def _checked(self, whole: Expr) -> Expr:
        if size_of(whole, MAX_EXPRESSION) >= MAX_EXPRESSION:
            raise Refusal(
                "the statement is too complex", sqlstate="54001", position=whole.position,
                hint="nest fewer expressions inside each other",
            )  # fmt: skip
        return self._below(whole)

    def _below(self, expr: Expr) -> Expr:
        """Check an expression that will run on private rows, and turn its subqueries into intermediate results."""
        if isinstance(expr, Outer):
            raise ReadsAround(expr.position)
        if isinstance(expr, Scalar):
            relation = self.public(expr.relation)
            check_whole(relation)
            if not is_single(expr.relation):
                raise Refusal(
                    "this subquery may have more than one row", sqlstate="PV004", position=expr.position,
                    hint="leave out GROUP BY, or end it with LIMIT 1",
                )  # fmt: skip
            lo, hi = static_range(expr, relation)
            return IntermediateValue(
                expr.type, self._intermediate(relation, as_rows=False), lo, hi, position=expr.position
            )
        if isinstance(expr, Call) and expr.function == "cast" and expr.args[0] == Literal(NULL, None):
            return Literal(expr.type, None, position=expr.position)
        if isinstance(expr, Call) and not FUNCTIONS[expr.function].private:
            raise Refusal(
                f"{FUNCTIONS[expr.function].said} cannot be used on private rows",
                sqlstate="PV202",
                position=expr.position,
                hint=FUNCTIONS[expr.function].below,
            )
        return map_children(expr, self._below)

    def _above(self, expr: Expr) -> Expr:
        """Analyze the subqueries of an expression over public rows."""
        if isinstance(expr, Scalar):
            return replace(expr, relation=self.public(expr.relation))
        return map_children(expr, self._above)


def _not_below(node: Relation, refused: Refusal | None) -> Refusal:
    """Return the refusal of a form that stands above the release alone, over people's rows."""
    if isinstance(node, Lateral):
        return node.refused
    name = "WITH RECURSIVE" if isinstance(node, Recursive) else "unnest and generate_series"
    return Refusal(
        f"{name} over people's rows is not answered", sqlstate="PV003",
        position=node.position or (refused.position if refused is not None else None),
        hint="aggregate the people's rows in a subquery first, and use its result",
    )  # fmt: skip


def _check_once(node: SetOperation, left: OwnedRows, right: OwnedRows) -> None:
    """Refuse a UNION ALL in which a row that is a unit could stand twice, or beside rows of units of another kind."""
    if left.row_tables & right.row_tables:
        raise _refuse(
            node,
            f'a row of "{left.said}" could be in both parts of this UNION, and each row is one unit that counts once',
            "write one SELECT, its conditions joined by OR, or aggregate each part first",
        )  # fmt: skip
    if bool(left.row_tables) != bool(right.row_tables):
        raise _refuse(
            node, "UNION of rows that are one person's each and of rows that are units by themselves",
            "aggregate each part first, then combine the results",
        )  # fmt: skip


def _of_source(source: Derived, names: Sequence[str]) -> PrivateBlock:
    """Return a subquery as a block of its own."""
    columns = source.columns[: source.owner.start]
    fields = tuple(
        Field(column.type, i, name) for i, (column, name) in enumerate(zip(columns, names, strict=True))
    )
    return PrivateBlock((Item(source),), (), fields, tuple(names))


def _raw(relation: Relation, analyzed: PrivateBlock) -> Refusal:
    name, position = "", relation.position
    source = analyzed.items[0].source
    if (
        isinstance(source, Derived)
        and isinstance(grouped := source.parts[0], Grouped)
        and len(analyzed.items) == 1
    ):
        for places in sorted(source.identities):
            keys = [
                key
                for index in places
                for key in grouped.outputs[index : index + 1]
                if isinstance(key, Field)
            ]
            if len(keys) == len(places):
                return one_person([key.name for key in keys], keys[-1].position or relation.position)
    for column, expr in zip(analyzed.names, analyzed.outputs, strict=True):
        if isinstance(expr, Field):
            name, position = column or expr.name, expr.position or relation.position
            break
    said = f'column "{name}" is private and is not inside an aggregate' if name else "these rows are private"
    return Refusal(
        said,
        sqlstate="PV002",
        position=position,
        hint="aggregate it (COUNT, SUM, AVG, …), or group by it; LIMIT 0 shows its columns",
    )


def _refuse(node: Relation, message: str, hint: str, sqlstate: str = "PV003") -> Refusal:
    return Refusal(message, sqlstate=sqlstate, position=node.position, hint=hint)
