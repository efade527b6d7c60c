"""The privacy analysis: which relations are private, which are public, and what is refused (soundness.md 1.10).

House rules:

1. `_RULES` has a row for each step of a statement over people's rows: what it becomes, or why it is refused, and the
   line of its proof. What no row derives is not answered. A step that reads public relations alone stays as it is.
2. A reviewer adding a rule adds its line of proof there, of N(D) = ⊎_u N_u(D_u, Pub), and a neighbour-fuzz case.
3. A subquery on the private side that is public by itself is drawn first (soundness.md 1.14): a scalar one
   enters as an `IntermediateValue` of its static range, rows as a `Released` source.
4. An analyst's own table is public, and is read only above the release: no query over people's rows contains it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

from ...errors import Refusal
from ...records import dataclass
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
from ...relation.functions import FUNCTIONS
from ...relation.intervals import narrowed_facts
from ...relation.relations import (
    AggregateCall,
    Block,
    Declared,
    Group,
    Join,
    Lateral,
    OutputColumn,
    Recursive,
    Relation,
    Scan,
    SetOperation,
    Unnest,
    all_parts,
    ends_in,
    projected,
    unordered,
)
from ...relation.types import BOOLEAN, INTEGER, NULL
from ...sql.scope import Outer
from .derived import group_by_owner, plain, union, window_by_owner, with_declared
from .join import Looked, join_blocks, narrowed, unmatched_left_out, with_lookups
from .keys import environment_of, undeclared_rows
from .ownership import check_aggregates, resolve_owner, scanned, within_range
from .programs import (
    MAX_PARTS,
    MAX_TILES,
    as_join,
    asked_of_texts,
    by_ranks,
    by_windows,
    checked,
    parts_in_rows,
    placed_parts,
    tiled,
)
from .public_inputs import (
    NotInPlace,
    ReadsAround,
    check_whole,
    drawn_first,
    held_to,
    is_single,
    keys_asked_for,
    read_in_place,
    static_range,
)
from .release_boundary import one_person, owner_of, release_each_set
from .rows import OwnedRows, PrivateBlock, Source, read_by, whole

_ABOVE_ALONE = (Lateral, Recursive, Unnest)
"""Forms that are answered only above the release, and may be written over people's rows by mistake."""
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
        if isinstance(analyzed, PrivateBlock):  # no release is above it: rows of people would be the answer
            raise _raw(relation, analyzed)
        return analyzed

    def _refuse_raw_rows(self, relation: Relation) -> None:
        """Give raw rows their own refusal, also below ORDER BY and LIMIT."""
        node = unordered(relation)
        if node is not relation and (isinstance(node, Scan) or ends_in(node, "where", "having", "outputs")):
            analyzed = self.relation(node)
            if isinstance(analyzed, PrivateBlock):
                raise _raw(node, analyzed)

    def relation(self, node: Relation) -> PrivateBlock | Relation:
        """Return a relation as rows of people, or as public with every private part behind a `Release`."""
        if isinstance(node, Scan):
            if node.table.unit is None:
                return node
            return self._kept(scanned(node, self.catalog), within_range(node))
        if isinstance(node, Block):
            found = self.relation(node.input)
            if not isinstance(found, PrivateBlock):
                return replace(node.map_expressions(self._above), input=found)
            for step in node.steps:
                tiles = tiled(step) if step.last == "windows" and isinstance(found, PrivateBlock) else None
                found = self._step(step, (found,)) if tiles is None else self.relation(tiles)
            return found
        if isinstance(node, Join) and node.word == "scalar":
            left = self.relation(node.left)
            return self._step(node, (left, self._looked_up(node, left)))
        if isinstance(node, Lateral) and (array := parts_in_rows(node)) is not None:
            left = self.relation(node.left)
            if isinstance(left, PrivateBlock):
                return self._parts(node, array, left)
        if isinstance(node, Lateral) and (joined := as_join(node)) is not None:
            return self.relation(joined)
        try:
            sides = tuple(map(self.relation, node.reads))
        except ReadsAround as refused:
            if isinstance(node, _ABOVE_ALONE):
                raise _not_below(node, refused) from None
            raise
        return self._step(node, sides)

    def _step(self, node: Relation, sides: tuple[PrivateBlock | Relation, ...]) -> PrivateBlock | Relation:
        """Return the last step of a relation over what it reads, analyzed: by a rule, where any side is private."""
        public = [side for side in sides if not isinstance(side, PrivateBlock)]
        if len(public) == len(sides):
            return node.alone.map_expressions(self._above).over(*public)
        shape = node.last if isinstance(node, Block) else node.kind if isinstance(node, SetOperation) else ""
        rule = _RULES[shape or type(node).__name__, "some" if public else "all"]
        if not isinstance(rule.becomes, tuple):
            return rule.becomes(self, node, *sides)
        message, hint = rule.becomes
        raise Refusal(message, sqlstate="PV003", position=node.position, hint=hint)

    # --- one step over people's rows -----------------------------------------------------------------

    def _filter(self, node: Block, source: PrivateBlock) -> PrivateBlock:
        return self._kept(source, conjuncts(self._onto(node.predicate, source)))

    def _kept(self, source: PrivateBlock, terms: tuple[Expr, ...]) -> PrivateBlock:
        if not terms:
            return source
        source = narrowed(source, terms)
        return replace(source, predicate=tuple(sorted(dict.fromkeys((*source.predicate, *terms)), key=repr)))

    def _projected(self, node: Block, source: PrivateBlock) -> PrivateBlock:
        outputs = tuple(self._onto(expr, source) for expr in node.exprs)
        return replace(source, outputs=outputs, names=node.names)

    def _join(self, node: Join, *sides: PrivateBlock | Relation) -> PrivateBlock:
        first, second = (
            side if isinstance(side, PrivateBlock) else self._public_input(side) for side in sides
        )
        return join_blocks(node, first, second, self.catalog, self._checked)

    def _looked_up(self, node: Join, left: PrivateBlock | Relation) -> PrivateBlock | Relation:
        """Analyze a correlated scalar subquery: a release of the groups alone that some left row can ask for."""
        shown = node.right if ends_in(node.right, "outputs") else None
        groups = node.right if shown is None else shown.below
        if not ends_in(groups, "group") or groups.group is None:
            return self.relation(node.right)
        source, keys = self.relation(groups.below), groups.group.keys
        analyzed = self._step(groups, (source,))
        if isinstance(source, PrivateBlock) and not isinstance(analyzed, PrivateBlock):
            asked = keys_asked_for(node, left, len(keys), self.catalog)
            if asked is not None:
                analyzed = self._step(groups, (held_to(source, groups, keys, asked, self.catalog),))
        return analyzed if shown is None else self._step(shown, (analyzed,))

    def _public_input(self, relation: Relation) -> PrivateBlock:
        """Return a public relation as a block of a private one: read where it is, or drawn first as an intermediate
        result. Raises ReadsAround where it reads columns of the query around it."""
        check_whole(relation)
        try:
            return read_in_place(relation, self.catalog)
        except NotInPlace:
            if relation.columns:
                return drawn_first(relation, self._intermediate(relation, as_rows=True))
            # a relation without columns: one constant column tells how many rows there are
            counted = projected(relation, (Literal(INTEGER, 1),), ("",), relation.position)
            drawn = drawn_first(counted, self._intermediate(counted, as_rows=True))
            return replace(drawn, outputs=(), names=())

    def _intermediate(self, relation: Relation, *, as_rows: bool) -> int:
        """Return the number of an intermediate result; one that is used both as rows and as a value is two of them.

        Raises:
            Refusal: 0A000 for one that reads an analyst's own table.
        """
        for part in all_parts(relation):
            if isinstance(part, Scan) and part.table.own is not None:
                raise Refusal(
                    f'"{part.table.name}" is your own table, and is not joined to people\'s rows', sqlstate="0A000",
                    position=part.position,
                    hint="the owner's database has it not: aggregate the people's rows first and join the groups, or "
                    "write its values into the statement",
                )  # fmt: skip
        for number, known in enumerate(self.intermediates):
            if known == relation and (number in self.tables) == as_rows:
                return number
        self.intermediates.append(relation)
        if as_rows:
            self.tables.add(len(self.intermediates) - 1)
        return len(self.intermediates) - 1

    def _declared(self, node: Declared, source: PrivateBlock) -> PrivateBlock:
        """Return rows as a subquery of their own, whose columns the owner declares."""
        rows = resolve_owner(source, self.catalog, node.position)
        return whole(with_declared(plain(rows, source), node.declared), source.names)

    def _union(self, node: SetOperation, *sides: PrivateBlock) -> PrivateBlock | Relation:
        parts = []
        for side in sides:
            rows = resolve_owner(side, self.catalog, node.position)
            parts.append((rows.select(side.outputs), rows))
        _check_once(node, *(rows for _, rows in parts))
        both = whole(union(parts, node.outputs), [column.name for column in node.columns])
        return both if node.all else self._distinct(node, both)

    def _compared(self, node: SetOperation, *sides: PrivateBlock) -> PrivateBlock:
        """Return INTERSECT or EXCEPT as groups of both sides' rows, each with a flag: whether it is of the left side.

        Raises:
            Refusal: PV003 for rows without the person's key, and for ALL.
        """
        name = node.kind.upper()
        if node.all:
            raise Refusal(
                f"{name} ALL over private rows is not answered", sqlstate="PV003", position=node.position,
                hint=f"write {name}, or count each side's rows per person and compare the counts",
            )  # fmt: skip
        parts = []
        for side, is_left in zip(sides, (True, False), strict=True):
            rows = resolve_owner(side, self.catalog, node.position)
            parts.append((rows.select((*side.outputs, Literal(BOOLEAN, is_left))), rows))
        _check_once(node, *(rows for _, rows in parts))
        both = whole(union(parts, (*node.outputs, OutputColumn(BOOLEAN))), [*sides[0].names, ""])
        rows = resolve_owner(both, self.catalog, node.position)
        *keys, mark = both.outputs
        if not owner_of(keys, rows):
            raise Refusal(
                f"{name} over private rows compares rows of one person", sqlstate="PV003", position=node.position,
                hint="show the person's key on both sides, or write EXISTS with an equality on it",
            )  # fmt: skip
        marks = tuple(AggregateCall(BOOLEAN, one, (mark,), False, None) for one in ("bool_and", "bool_or"))
        names = [column.name for column in node.columns]
        groups = whole(group_by_owner(rows, tuple(keys), marks, [*names, "", ""]), [*names, "", ""])
        alone, left = groups.outputs[-2:]
        kept = (alone,) if node.kind == "except" else (left, Call(BOOLEAN, "not", (alone,)))
        return replace(groups, predicate=kept, outputs=groups.outputs[:-2], names=tuple(names))

    def _parts(self, node: Lateral, array: Expr, source: PrivateBlock) -> PrivateBlock:
        """Return rows joined with the parts of a text column: the first R parts, and at most R such rows of a person.

        Raises:
            Refusal: PV102 where R is not declared.
        """
        rows = resolve_owner(source, self.catalog, node.position)
        if rows.row_tables:  # each row is a unit, which counts once
            raise _not_below(node, None)
        private = [item.source for item in rows.items if item.source.is_private]
        bounds: Source | OwnedRows = rows  # where a person has one row, the bound declared for several
        if rows.is_single:
            bounds = min(private, key=lambda one: MAX_PARTS if one.max_rows is None else one.max_rows)
        if bounds.max_rows is None:
            raise undeclared_rows(
                private[0].said, node.position, "the parts of a text may count in one result"
            )
        parts = []
        for placed in placed_parts(array, min(bounds.max_rows, MAX_PARTS)):
            there, part = (self._onto(expr, source) for expr in placed)
            one = replace(rows, predicate=tuple(sorted(dict.fromkeys((*rows.predicate, there)), key=repr)))
            parts.append((one.select((*source.outputs, part)), one))
        both = replace(
            union(parts, node.columns), max_rows=bounds.max_rows,
            max_rows_per_group=bounds.max_rows_per_group, max_groups=bounds.max_groups,
        )  # fmt: skip
        return whole(both, [column.name for column in node.columns])

    # --- grouping ----------------------------------------------------------------------------------------

    def _windowed(self, node: Block, source: PrivateBlock) -> PrivateBlock:
        calls = tuple(call.map(lambda expr: self._onto(expr, source)) for call in node.windows)
        read = (expr for call in calls for expr in read_by(call))
        rows = resolve_owner(source, self.catalog, node.position, (*source.outputs, *read))
        for call in calls:
            if not owner_of(call.partition, rows):
                by = "" if rows.row_tables else "partition it by the person's key, or "
                tiles = f"; ntile(k) OVER (ORDER BY x) with k from 2 to {MAX_TILES} is answered"
                is_share = call.function in ("ntile", "percent_rank", "cume_dist")
                raise Refusal(
                    "a window over private rows mixes rows of different people", sqlstate="PV003",
                    position=call.position or node.position,
                    hint=f"{by}aggregate with GROUP BY first{tiles * is_share}",
                )  # fmt: skip
        if (ranked := by_ranks(node, tuple(map(checked, node.windows)))) is not None:
            above = self._above_rows(ranked, node.below, source)
            assert isinstance(above, PrivateBlock), "windows over a private block's rows"
            return above
        names = [column.name for column in node.columns]
        return whole(window_by_owner(rows, source.outputs, tuple(map(checked, calls)), names), names)

    def _unordered(self, node: Block, source: PrivateBlock) -> PrivateBlock:
        return source

    def _distinct(self, node: Relation, source: PrivateBlock) -> PrivateBlock | Relation:
        rows = resolve_owner(source, self.catalog, node.position)
        if owner_of(source.outputs, rows):
            return whole(group_by_owner(rows, source.outputs, (), source.names), source.names)
        group = Group(source.outputs, (), (tuple(range(len(source.outputs))),), names=source.names)
        return release_each_set(group, rows, group.keys, (), node.position)

    def _grouped(self, node: Block, source: PrivateBlock) -> PrivateBlock | Relation:
        group = node.group
        assert group is not None
        keys = tuple(self._onto(key, source) for key in group.keys)
        mapped = (call.map(lambda expr: self._onto(expr, source)) for call in group.aggregates)
        # Ordered aggregates are answered above the release alone; MODE chooses among ties by noise.
        aggregates = tuple(replace(call, orders=()) for call in mapped)
        given, looked = source, with_lookups(Looked(source, keys, aggregates), self.catalog)
        source, keys, aggregates = looked.block, looked.keys, looked.aggregates
        rows = resolve_owner(source, self.catalog, node.position, looked.read, of_two=True, is_grouped=True)
        rows = unmatched_left_out(source, rows, keys, aggregates)
        if rows.lookup is not None:
            check_aggregates(aggregates)
        if rows.lookup is not None or rows.unmatched is not None:
            return release_each_set(group, rows, keys, aggregates, node.position)
        owned = [bool(owner_of((keys[i] for i in chosen), rows)) for chosen in group.sets]
        if all(owned) and len(owned) == 1 and not group.groupings:
            env = environment_of(rows.columns, rows.predicate)
            program = by_windows(node, lambda expr: narrowed_facts(self._onto(expr, given), env))
            if program is not None:
                return self._above_rows(program, node.below, given)
            names = [column.name for column in group.columns]
            return whole(group_by_owner(rows, keys, aggregates, names), names)
        return release_each_set(group, rows, keys, aggregates, node.position)

    def _above_rows(
        self, made: Relation, base: Relation, source: PrivateBlock | Relation
    ) -> PrivateBlock | Relation:
        """Analyze the steps of `made` above `base`, which is analyzed already as `source`."""
        if made is base:
            return source
        assert isinstance(made, Block)
        return self._step(made, (self._above_rows(made.below, base, source),))

    def _above_alone(self, node: Relation, *sides: PrivateBlock | Relation) -> PrivateBlock:
        raise _not_below(node, None)

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
        if expr.calls("cast") and expr.args[0] == Literal(NULL, None):
            return Literal(expr.type, None, position=expr.position)
        if isinstance(expr, Call) and not FUNCTIONS[expr.function].private:
            if (asked := asked_of_texts(expr)) is not None:
                return self._below(asked)
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
    """Return the refusal, over people's rows, of a form that is answered only above the release."""
    if isinstance(node, Lateral):
        return node.refused
    name = "WITH RECURSIVE" if isinstance(node, Recursive) else "unnest and generate_series"
    return Refusal(
        f"{name} over people's rows is not answered", sqlstate="PV003",
        position=node.position or (refused.position if refused is not None else None),
        hint="aggregate the people's rows in a subquery first, and use its result",
    )  # fmt: skip


def _check_once(node: SetOperation, left: OwnedRows, right: OwnedRows) -> None:
    """Refuse a UNION ALL in which a row that is a unit could appear twice, or together with rows that have an owner."""
    if left.row_tables & right.row_tables:
        raise Refusal(
            f'a row of "{left.said}" could be in both parts of this UNION, and each row is one unit that counts once',
            sqlstate="PV003", position=node.position,
            hint="write one SELECT, its conditions joined by OR, or aggregate each part first",
        )  # fmt: skip
    if bool(left.row_tables) != bool(right.row_tables):
        raise Refusal(
            "UNION of rows that are one person's each and of rows that are units by themselves",
            sqlstate="PV003", position=node.position, hint="aggregate each part first, then combine the results",
        )  # fmt: skip


def _raw(relation: Relation, analyzed: PrivateBlock) -> Refusal:
    name, position = "", relation.position
    source = analyzed.items[0].source
    grouped = source.parts[0] if source.is_subquery and len(analyzed.items) == 1 else None
    if grouped is not None and grouped.aggregates is not None:
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


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a step over people's rows becomes, or the message and the hint of its refusal; and why that is sound."""

    becomes: Callable[..., PrivateBlock | Relation] | tuple[str, str]
    proof: str


_RULES: Mapping[tuple[str, str], _Rule] = {
    ("where", "all"): _Rule(_Analysis._filter, "a function of the one row: the owner is the row's"),
    ("having", "all"): _Rule(_Analysis._filter, "as `where`, over rows that are one owner's each"),
    ("outputs", "all"): _Rule(_Analysis._projected, "a function of the one row: the owner is the row's"),
    ("group", "all"): _Rule(
        _Analysis._grouped,
        "by a key that has one owner a function of that owner's rows: `derived` groups by the owner too, whatever the "
        "keys hold (1.10); any other is a release",
    ),
    ("distinct", "all"): _Rule(_Analysis._distinct, "as `group` by all columns, without an aggregate (1.10)"),
    ("windows", "all"): _Rule(
        _Analysis._windowed, "partitioned by a key that has one owner: a function of that owner's rows (1.10)"
    ),
    ("orders", "all"): _Rule(_Analysis._unordered, "the same rows: a bag, whose order nothing reads"),
    ("limit", "all"): _Rule(
        ("LIMIT over private rows lets one person's row push out another's",
         "limit the released rows, or number each person's rows: ROW_NUMBER() OVER (PARTITION BY …)"),
        "which rows are left depends on several owners' rows",
    ),
    ("Declared", "all"): _Rule(_Analysis._declared, "the same rows; what is declared is enforced as it is read (L9)"),
    ("Join", "all"): _Rule(_Analysis._join, "a row is made of rows of one owner, which `join` holds it to (1.10)"),
    ("Join", "some"): _Rule(_Analysis._join, "a row is made of one owner's row and of public rows (1.10, 1.14)"),
    ("union", "all"): _Rule(_Analysis._union, "each row is one side's, and has its owner; then `distinct`"),
    **{
        (kind, "all"): _Rule(
            _Analysis._compared, "as `union`, then `group` by all columns: a function of one owner's rows of both sides"
        )
        for kind in ("intersect", "except")
    },
    **{
        (kind, "some"): _Rule(
            (f"{kind.upper()} of private rows and rows that nobody owns",
             "aggregate the private side first, then combine the results"),
            "rows without an owner among those that have one",
        )
        for kind in ("union", "intersect", "except")
    },
    **{
        (one.__name__, which): _Rule(_Analysis._above_alone, "no engine below the release is asked for one")
        for one in _ABOVE_ALONE for which in ("all", "some")
    },
}  # fmt: skip
"""(step, whether all sides are people's rows or some) -> what it becomes; no other step is ever over people's rows."""
