"""The judgement: which relations are private, which are public, and what is refused (soundness.md 1.10).

House rules:

1. One function per relation node; what no rule derives is refused, with the reason and the rewrite.
2. Private comes from private only through Filter and Project of the one row (c = 0 in 1.10's table).
   A reviewer adding a rule adds its line of proof here and a neighbour-fuzz case.
   - Scan: each row has the owner in its unit column; rows with a NULL owner are dropped when printed.
   - Filter, Project: a function of the one row; owner and separability are the input's.
   - Aggregate, Distinct: the door. The result is a `Release` and public.
3. A scalar subquery below the door must be public by itself: it is closed (the binder gives it no
   outer column), is drawn first, and enters as a `StageValue` of its static range (amendments.md a).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from ..errors import Refusal
from ..relation.catalog import Catalog, Table
from ..relation.expressions import (
    Call,
    Expr,
    Field,
    Literal,
    Scalar,
    StageValue,
    conjuncts,
    map_children,
    size_of,
    substitute,
    walk,
)
from ..relation.functions import FUNCTIONS
from ..relation.intervals import Environment
from ..relation.relations import (
    Aggregate,
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
from ..relation.types import INTEGER, Kind
from .keys import groups_per_unit_in
from .rows import Private, Release

__all__ = ["Judged", "judge"]

MAX_EXPRESSION = 1_000
"""Most nodes of one expression on private rows, its subqueries' columns put in."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A public relation with its releases inside, and the scalar stages it needs, in order of drawing."""

    root: Relation
    stages: tuple[Relation, ...]


def judge(relation: Relation, catalog: Catalog) -> Judged:
    """Return the statement's relation as public, every private part behind a `Release`.

    Raises:
        Refusal: PV0xx, when a part is not derivable as private or public, or the result would be private.
    """
    judgement = _Judgement(catalog)
    root = judgement.public(relation)
    return Judged(root, tuple(judgement.stages))


@dataclass
class _Judgement:
    catalog: Catalog
    stages: list[Relation] = field(default_factory=list)

    def public(self, relation: Relation) -> Relation:
        """Judge a relation that must be public: the statement itself, or a scalar subquery."""
        self._refuse_raw_rows(relation)
        judged = self.relation(relation)
        if isinstance(judged, Private):
            raise _raw(relation, judged)
        return judged

    def _refuse_raw_rows(self, relation: Relation) -> None:
        """Give raw rows their own refusal, also below ORDER BY and LIMIT."""
        node = relation
        while isinstance(node, (Sort, Limit)) or (
            isinstance(node, Project) and isinstance(node.input, (Sort, Limit))
        ):
            node = node.input
        if node is not relation and isinstance(node, (Project, Filter, Scan)):
            judged = self.relation(node)
            if isinstance(judged, Private):
                raise _raw(node, judged)

    def relation(self, node: Relation) -> Private | Relation:
        if isinstance(node, Scan):
            return self._scan(node)
        if isinstance(node, Values):
            return node
        if isinstance(node, Filter):
            return self._filter(node)
        if isinstance(node, Project):
            return self._project(node)
        if isinstance(node, Aggregate):
            return self._aggregate(node)
        if isinstance(node, Distinct):
            return self._distinct(node)
        if isinstance(node, SetOperation):
            left, right = self.relation(node.left), self.relation(node.right)
            if isinstance(left, Private) or isinstance(right, Private):
                raise _refuse(node, f"{node.kind.upper()} over private rows is not supported yet",
                              "aggregate each side first, then combine the results")  # fmt: skip
            return replace(node, left=left, right=right)
        if isinstance(node, Join):
            left, right = self.relation(node.left), self.relation(node.right)
            if isinstance(left, Private) or isinstance(right, Private):
                raise _refuse(node, "joins with a private table are not supported yet",
                              "aggregate the private table first, then join the result")  # fmt: skip
            return replace(node, left=left, right=right, condition=self._above(node.condition))
        if isinstance(node, (Sort, Limit, Window)):
            return self._ordered(node)
        raise AssertionError(type(node).__name__)

    def _scan(self, node: Scan) -> Private | Relation:
        table = node.table
        if table.unit is None:
            return node
        _check_owner_path(table, self.catalog, node)
        fields = tuple(Field(column.type, i, column.name) for i, column in enumerate(node.columns))
        return Private(table, (), fields, tuple(column.name for column in node.columns))

    def _filter(self, node: Filter) -> Private | Relation:
        source = self.relation(node.input)
        if not isinstance(source, Private):
            return replace(node, input=source, predicate=self._above(node.predicate))
        terms = conjuncts(self._onto(node.predicate, source))
        merged = dict.fromkeys((*source.predicate, *terms))
        return replace(source, predicate=tuple(sorted(merged, key=repr)))

    def _project(self, node: Project) -> Private | Relation:
        source = self.relation(node.input)
        if not isinstance(source, Private):
            return replace(node, input=source, exprs=tuple(self._above(expr) for expr in node.exprs))
        outputs = tuple(self._onto(expr, source) for expr in node.exprs)
        return replace(source, outputs=outputs, names=node.names)

    def _ordered(self, node: Sort | Limit | Window) -> Relation:
        source = self.relation(node.input)
        if isinstance(source, Private):
            said, hint = {
                Sort: ("ORDER BY below an aggregate has no meaning", "put ORDER BY at the end of the statement"),
                Limit: ("LIMIT over private rows lets one person's row push out another's", "limit the released rows"),
                Window: ("a window over private rows mixes rows of different people", "aggregate with GROUP BY first"),
            }[type(node)]  # fmt: skip
            raise _refuse(node, said, hint)
        if isinstance(node, Sort):
            orders = tuple(replace(order, expr=self._above(order.expr)) for order in node.orders)
            return replace(node, input=source, orders=orders)
        if isinstance(node, Window):
            calls = tuple(
                replace(
                    call,
                    args=tuple(self._above(arg) for arg in call.args),
                    partition=tuple(self._above(part) for part in call.partition),
                    orders=tuple(replace(order, expr=self._above(order.expr)) for order in call.orders),
                )
                for call in node.calls
            )
            return replace(node, input=source, calls=calls)
        return replace(node, input=source)

    def _distinct(self, node: Distinct) -> Relation:
        source = self.relation(node.input)
        if not isinstance(source, Private):
            return replace(node, input=source)
        _check_keys(source, source.outputs)
        return Release(
            source.table, source.predicate, source.outputs, (), (1, 1), source.names, position=node.position
        )

    def _aggregate(self, node: Aggregate) -> Relation:
        source = self.relation(node.input)
        if not isinstance(source, Private):
            return replace(
                node,
                input=source,
                keys=tuple(self._above(key) for key in node.keys),
                aggregates=tuple(
                    replace(
                        call,
                        args=tuple(self._above(arg) for arg in call.args),
                        filter=None if call.filter is None else self._above(call.filter),
                    )
                    for call in node.aggregates
                ),
            )
        return self._release(node, source)

    def _release(self, node: Aggregate, source: Private) -> Relation:
        """Open the door: one release per grouping set, put together by UNION ALL."""
        keys = tuple(self._onto(key, source) for key in node.keys)
        _check_keys(source, keys)
        aggregates = tuple(
            replace(
                call,
                args=tuple(self._onto(arg, source) for arg in call.args),
                filter=None if call.filter is None else self._onto(call.filter, source),
            )
            for call in node.aggregates
        )
        env = Environment(source.table.columns)
        shares = [groups_per_unit_in(source, tuple(keys[i] for i in chosen), env) for chosen in node.sets]
        parts: list[Relation] = []
        for chosen, share in zip(node.sets, shares, strict=True):
            names = tuple(column.name for column in node.columns)
            kept = (*(names[i] for i in chosen), *names[len(keys) : len(keys) + len(aggregates)])
            whole = (share, sum(shares)) if len(shares) > 1 else (1, 1)
            release = Release(
                source.table, source.predicate, tuple(keys[i] for i in chosen), aggregates, whole, kept,
                position=node.position,
            )  # fmt: skip
            parts.append(
                release if len(node.sets) == 1 and not node.groupings else _spread(node, release, chosen)
            )
        result = parts[0]
        for part in parts[1:]:
            result = SetOperation("union", True, result, part, node.columns)
        return result

    def _onto(self, expr: Expr, source: Private) -> Expr:
        """Return an expression over the output of private rows as one over the table's own columns.

        Raises:
            Refusal: 54001 when it grows too large (subqueries that use a column twice double it).
        """
        whole = substitute(expr, source.outputs)
        if size_of(whole, MAX_EXPRESSION) >= MAX_EXPRESSION:
            raise Refusal(
                "the statement is too complex", sqlstate="54001", position=expr.position,
                hint="nest fewer expressions inside each other",
            )  # fmt: skip
        return self._below(whole)

    def _below(self, expr: Expr) -> Expr:
        """Check an expression that will run on private rows, and turn its subqueries into stages."""
        if isinstance(expr, Scalar):
            relation = self.public(expr.relation)
            if not _is_single(expr.relation):
                raise Refusal(
                    "this subquery may have more than one row", sqlstate="PV004", position=expr.position,
                    hint="leave out GROUP BY, or end it with LIMIT 1",
                )  # fmt: skip
            if relation not in self.stages:
                self.stages.append(relation)
            lo, hi = _static_range(expr)
            return StageValue(expr.type, self.stages.index(relation), lo, hi, position=expr.position)
        if isinstance(expr, Call) and not FUNCTIONS[expr.function].private:
            raise Refusal(
                f"{expr.function}() cannot be used on private rows",
                sqlstate="PV202",
                position=expr.position,
                hint="use it on the aggregated result",
            )
        return map_children(expr, self._below)

    def _above(self, expr: Expr) -> Expr:
        """Judge the subqueries of an expression over public rows."""
        if isinstance(expr, Scalar):
            return replace(expr, relation=self.public(expr.relation))
        return map_children(expr, self._above)


def _static_range(expr: Scalar) -> tuple[Fraction | None, Fraction | None]:
    """Return the range that a released value has whatever its value is; numbers saturate at 2^62."""
    if expr.type.is_number:
        return Fraction(-(2**62)), Fraction(2**62)
    if expr.type.kind in (Kind.BOOLEAN, Kind.TEXT, Kind.DATE, Kind.TIMESTAMP):
        return None, None
    raise Refusal(
        "this subquery's type cannot be used on private rows", sqlstate="PV004", position=expr.position
    )


def _is_single(relation: Relation) -> bool:
    """Say whether a relation has at most one row, whatever is released (amendments.md a4)."""
    while isinstance(relation, (Project, Filter, Sort, Window, Distinct)):
        relation = relation.input
    if isinstance(relation, Limit):
        return relation.limit in (0, 1)
    if isinstance(relation, Values):
        return len(relation.rows) <= 1
    return isinstance(relation, Aggregate) and relation.sets == ((),)


def _spread(node: Aggregate, release: Release, chosen: tuple[int, ...]) -> Relation:
    """Return one grouping set's rows in the columns of the whole: absent keys NULL, GROUPING() bits."""
    exprs: list[Expr] = []
    for index, key in enumerate(node.keys):
        if index in chosen:
            exprs.append(Field(key.type, chosen.index(index)))
        else:
            exprs.append(Literal(key.type, None))
    exprs += [Field(call.type, len(chosen) + i) for i, call in enumerate(node.aggregates)]
    for wanted in node.groupings:
        bits = 0
        for index in wanted:
            bits = bits * 2 + (index not in chosen)
        exprs.append(Literal(INTEGER, bits))
    return Project(release, tuple(exprs), tuple(column.name for column in node.columns))


def _check_owner_path(table: Table, catalog: Catalog, node: Scan) -> None:
    unit = table.unit
    assert unit is not None
    if unit.references is None:
        return
    parent = catalog.tables.get(unit.references[0])
    if parent is None or parent.unit is None or parent.unit.references is not None:
        raise _refuse(node, f'the owner of a row of "{table.name}" is more than one step away',
                      "owners through several foreign keys are not supported yet", "PV003")  # fmt: skip


def _check_keys(source: Private, keys: tuple[Expr, ...]) -> None:
    unit = source.table.unit
    assert unit is not None
    for key in keys:
        for part in walk(key):
            if isinstance(part, Field) and source.table.is_owner(part.index):
                raise Refusal(
                    f'grouping by "{unit.column}" would make one group per person',
                    sqlstate="PV005",
                    position=part.position or key.position,
                    hint="group by a property that many people share",
                )


def _raw(relation: Relation, judged: Private) -> Refusal:
    name, position = "", relation.position
    for column, expr in zip(judged.names, judged.outputs, strict=True):
        if isinstance(expr, Field):
            name, position = column or expr.name, expr.position or relation.position
            break
    said = f'column "{name}" is private and is not inside an aggregate' if name else "these rows are private"
    return Refusal(
        said,
        sqlstate="PV002",
        position=position,
        hint="aggregate it (COUNT, SUM, AVG, …), or group by it",
    )


def _refuse(node: Relation, message: str, hint: str, sqlstate: str = "PV003") -> Refusal:
    return Refusal(message, sqlstate=sqlstate, position=node.position, hint=hint)
