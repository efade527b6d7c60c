"""SQL text to relations: what is printed, as terms, with nothing decided yet.

A select-project-join block stays flat: sources, conditions that all hold, columns as expressions over the sources.
What is none (GROUP BY, windows, UNION ALL, FULL JOIN) is a relation of its own, and one source of whoever reads it:

    ("table", name)                         ("agg", block, keys, having, columns)     ("union", relations)
    ("select", block, columns)              ("window", block, columns)                ("full", left, right, on)
    ("public", columns)                     block: ("block", sources, outer, conditions)

`columns` are pairs of a name and a term; `outer` pairs of a source and the ON terms of its LEFT JOIN. CTEs are
inlined. Nodes and arguments of the parser that are not listed here are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.verify.certificate import Facts
from dpsql.verify.terms import AGGREGATES, Pool, Refused, Term, Type, walk


class Dialect(Protocol):
    """What an engine spells, types or computes in a way of its own; one module each."""

    NAME: str
    FUNCTIONS: Mapping[str, str]
    WIDEST: int
    INTEGERS_DIVIDE_WHOLE: bool
    DECIMALS_ARE_FIXED: bool

    def type_of(self, text: str) -> Type: ...

    def decimal_digits(self, sides: Sequence[Type]) -> int: ...

    def sum_of(self, kind: Type) -> Type: ...


@dataclass
class Flat:
    """A select-project-join block while it is read."""

    sources: list[Term] = field(default_factory=list)
    outer: dict[Term, tuple[Term, ...]] = field(default_factory=dict)
    conditions: list[Term] = field(default_factory=list)
    columns: dict[str, Term] = field(default_factory=dict)


@dataclass
class Scope:
    """Names that an expression may say: of the sources at hand, then of those around it. `loose`: sources some of
    whose names differ in case alone."""

    items: dict[str, dict[str, Term]]
    ctes: Ctes
    depth: int
    around: Scope | None = None
    aliases: dict[str, exp.Expression] = field(default_factory=dict)
    loose: set[str] = field(default_factory=set)

    def has(self, alias: str) -> bool:
        """Whether a name is that of a source."""
        return alias in self.items or (self.around is not None and self.around.has(alias))

    def column(self, table: str, name: str) -> Term:
        """The column of a name. Names that differ in case alone are one name to some engines, and none here; the
        name of a column of sources around is written with its source, since an engine knows more names inside."""
        alias = table if table or len(self.items) != 1 else next(iter(self.items))
        if alias in self.items and alias not in self.loose and name in self.items[alias]:
            return self.items[alias][name]
        found = [
            (alias, own, term)
            for alias, columns in self.items.items()
            if not table or alias.lower() == table.lower()
            for own, term in columns.items()
            if own.lower() == name.lower()
        ]
        if len(found) == 1 and found[0][0] == (table or found[0][0]) and found[0][1] == name:
            return found[0][2]
        inside = any(alias.lower() == table.lower() for alias in self.items)
        if found or inside or not table or self.around is None:
            raise Refused("read: a name means one column", f"{table}.{name}")
        return self.around.column(table, name)


@dataclass(frozen=True)
class Ctes:
    """The WITH entries that are visible, each with those that are visible to it."""

    entries: dict[str, tuple[exp.Expression, Ctes]]


_OVER = {
    "ROWNUMBER", "RANK", "DENSERANK", "PERCENTRANK", "CUMEDIST", "NTILE", "LAG", "LEAD", "FIRSTVALUE", "LASTVALUE",
    "NTHVALUE",
}  # fmt: skip
_FORMAL = frozenset(
    [
        "big_int",
        "safe",
        "typed",
        "ignore_nulls",
        "is_left",
        "date_part_boundary",
        "position",
        "single_replace",
        "null_if_pos_overflow",
    ]
)
"""Arguments that the parser sets of itself, to say which dialect it read."""


class Reader:
    """Reads queries of one dialect over the tables of `facts`."""

    def __init__(self, pool: Pool, dialect: Dialect, facts: Facts, type_of: Callable[[Term], Type]) -> None:
        self.pool = pool
        self.type_of = type_of
        self.dialect = dialect
        self.facts = facts
        self._flat: dict[tuple[int, int], Flat] = {}
        self._sources: dict[Term, Flat] = {}
        self._kept: list[exp.Expression] = []
        self._types: dict[str, Type] = {}
        self._checks: dict[str, list[Term]] = {}
        self.words: tuple[str, ...] = ()

    def query(self, sql: str) -> Term:
        """The relation that a text computes."""
        return self.tree(self.parse(sql))

    def parse(self, sql: str, dialect: str = "") -> exp.Expression:
        """One statement, by the dialect's own parser; templates are written in DuckDB's."""
        try:
            [tree] = sqlglot.parse(sql, read=dialect or self.dialect.NAME)
        except (SqlglotError, ValueError, RecursionError) as error:
            raise Refused("read: the text is one statement", type(error).__name__) from error
        if not isinstance(tree, exp.Expression):
            raise Refused("read: the text is one statement")
        self._kept.append(tree)
        return tree

    def checks(self, table: str) -> list[Term]:
        """What the engine holds of a table's rows, where it is not NULL: a CHECK in words that have no rule says
        nothing."""
        if table not in self._checks:
            source = self.pool("src", self.pool("table", table), 0, 0)
            names = {name: self.pool("col", source, name) for name in self._table(table)}
            found: list[Term] = []
            for text in self.facts.tables[table].checks:
                try:
                    [item] = self.parse(f"SELECT {text}").expressions
                    loose = {""} if self._is_loose(table) else set[str]()
                    found += conjuncts(self.term(item, Scope({"": names}, Ctes({}), 0, loose=loose)))
                except (Refused, ValueError):
                    continue
            self._checks[table] = found
        return self._checks[table]

    def tree(self, tree: exp.Expression, ctes: Ctes | None = None) -> Term:
        """The relation of a parsed query."""
        return self._whole(self._relation(tree, ctes or Ctes({}), None, 0))

    def unlisted(
        self, tree: exp.Expression
    ) -> tuple[exp.Expression, list[Term], dict[str, Term], Term] | None:
        """Of `SELECT f.* FROM (…) AS f JOIN (SELECT unnest($1) …) AS s ON …`: the query f, the ON terms, f's
        columns as they are in them, and s; None of any other query."""
        joins = tree.args.get("joins") or []
        first = tree.args["from_"].this if isinstance(tree, exp.Select) and tree.args.get("from_") else None
        if (
            len(joins) != 1
            or not isinstance(first, exp.Subquery)
            or not isinstance(joins[0].this, exp.Subquery)
        ):
            return None
        _only(tree, "expressions", "from_", "joins", "order")
        _only(joins[0], "this", "on")
        star = tree.expressions[0] if len(tree.expressions) == 1 else None
        listed = self._relation(joins[0].this.this, Ctes({}), None, 0)
        plain = isinstance(star, exp.Column) and isinstance(star.this, exp.Star) and star.table == first.alias
        if not plain or len(listed.sources) != 1 or listed.sources[0].args[0].op != "public":
            return None
        source = self.pool("src", self.tree(first.this), 0, 1)
        names = {name: self.pool("col", source, name) for name, _ in _pairs(source.args[0])}
        scope = Scope({first.alias: names, joins[0].this.alias: listed.columns}, Ctes({}), 0)
        return first.this, self._conditions(joins[0].args.get("on"), scope), names, listed.sources[0]

    # --- relations ---

    def _relation(self, node: exp.Expression, ctes: Ctes, around: Scope | None, depth: int) -> Flat:
        """What a query computes, as a block at `depth`; what is no block becomes its one source."""
        key = (id(node), depth)
        if around is None and key in self._flat:
            return self._flat[key]
        ctes = self._with(node, ctes)
        if isinstance(node, exp.Subquery):
            _only(node, "this")
            flat = self._relation(node.this, ctes, around, depth)
        elif isinstance(node, exp.Union):
            _only(node, "this", "expression", "with_", "distinct")
            flat = self._source(self._union(node, ctes), depth)
        elif isinstance(node, exp.Select):
            flat = self._select(node, ctes, around, depth)
        else:
            raise Refused("read: a query of a listed kind", type(node).__name__)
        if around is None:
            self._flat[key] = flat
        return flat

    def _with(self, node: exp.Expression, ctes: Ctes) -> Ctes:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        _only(clause, "expressions")
        names = [cte.alias.lower() for cte in clause.expressions]
        if len(set(names)) < len(names):
            raise Refused("read: a name means one query")
        for cte in clause.expressions:
            _only(cte, "this", "alias", "materialized")
            if set(cte.args["alias"].args) - {"this"} and cte.args["alias"].args.get("columns"):
                raise Refused("read: a query of a listed kind", "column aliases of a CTE")
            ctes = Ctes({**ctes.entries, cte.alias: (cte.this, ctes)})
        return ctes

    def _union(self, node: exp.Union, ctes: Ctes) -> Term:
        if node.args.get("distinct"):
            raise Refused("read: a query of a listed kind", "UNION DISTINCT")
        members: list[Term] = []
        for part in (node.this, node.expression):
            flat = self._relation(part, ctes, None, 0)
            relation = self._whole(flat)
            if isinstance(part, exp.Union) and relation.op == "union":
                members.extend(relation.args[0])
            else:
                members.append(relation)
        names = tuple(name for name, _ in _pairs(members[0]))
        return self.pool("union", tuple(self._renamed(member, names) for member in members))

    def _whole(self, flat: Flat) -> Term:
        """A block as a relation: the relation itself where the block only passes it on."""
        if len(flat.sources) == 1 and not flat.conditions and not flat.outer:
            [source] = flat.sources
            relation: Term = source.args[0]
            if relation.op != "table":
                plain = {self.pool("col", source, name): term for name, term in _pairs(relation)}
                if len(plain) == len(flat.columns) and list(flat.columns.values()) == list(plain):
                    return self._renamed(relation, tuple(flat.columns))
        return self._closed(flat)

    def _renamed(self, relation: Term, names: tuple[str, ...]) -> Term:
        """A relation under other column names, by position."""
        if relation.op == "union":
            return self.pool("union", tuple(self._renamed(one, names) for one in relation.args[0]))
        columns = _pairs(relation)
        if len(columns) != len(names):
            raise Refused("read: members of a union have the same columns")
        if relation.op == "full":
            return relation
        renamed = tuple((name, term) for name, (_, term) in zip(names, columns, strict=True))
        return self.pool(relation.op, *relation.args[:-1], renamed)

    def _source(self, relation: Term, depth: int) -> Flat:
        """A relation as the one source of a block at some depth."""
        source = self.pool("src", relation, depth, 0)
        if source not in self._sources:
            names = (
                [name for name, _ in _pairs(relation)]
                if relation.op != "table"
                else self._table(relation.args[0])
            )
            columns = {name: self.pool("col", source, name) for name in names}
            self._sources[source] = Flat([source], columns=columns)
        return self._sources[source]

    def _table(self, name: str) -> list[str]:
        if name not in self.facts.tables:
            raise Refused("facts: the table is known", name)
        return list(self.facts.tables[name].columns)

    def _is_loose(self, name: str) -> bool:
        """Whether names of a table's columns differ in case alone."""
        names = self.facts.tables[name].columns
        return len(set(map(str.lower, names))) < len(names)

    def _closed(self, flat: Flat) -> Term:
        return self.pool("select", self.block(flat), tuple(flat.columns.items()))

    def block(self, flat: Flat) -> Term:
        """A block without its columns, in normal form: conditions in one order, each once."""
        outer = tuple((source, flat.outer[source]) for source in flat.sources if source in flat.outer)
        sources = tuple(sorted(flat.sources, key=lambda source: source.serial))
        return self.pool("block", sources, outer, ordered(flat.conditions))

    def _select(self, node: exp.Select, ctes: Ctes, around: Scope | None, depth: int) -> Flat:
        _only(node, "expressions", "from_", "joins", "where", "group", "having", "with_", "order")
        self._unordered(node)
        kinds = _kinds(node.expressions)
        windows = exp.Window in kinds
        grouped = bool(node.args.get("group") or node.args.get("having")) or any(
            issubclass(one, exp.AggFunc) for one in kinds
        )
        if windows or grouped:
            around_here, here = None, 0
            if around is not None and not windows and not node.args.get("group"):
                around_here, here = around, depth  # an aggregate that looks outwards: read by `_scalar` alone
        else:
            around_here, here = around, depth
        scope, flat = self._from(node, ctes, around_here, here)
        scope.aliases = {item.alias: item.this for item in node.expressions if isinstance(item, exp.Alias)}
        if where := node.args.get("where"):
            flat.conditions += self._conditions(where.this, scope)
        columns: dict[str, Term] = {}
        names: set[str] = set()
        for item in node.expressions:
            for name, term in self._item(item, scope):
                if name.lower() in names:
                    raise Refused("read: a name means one column", name)
                names.add(name.lower())
                columns[name] = term
        if flat.sources and not grouped:
            self._multiplies_no_row(columns.values())
        if grouped and not windows:
            relation = self._grouped(node, scope, flat, columns)
            return self._source(relation, depth)
        if windows:
            if grouped and (node.args.get("group") or node.args.get("having")):
                raise Refused("read: a query of a listed kind", "windows beside GROUP BY")
            return self._source(self.pool("window", self.block(flat), tuple(columns.items())), depth)
        if not flat.sources:
            return self._source(self.pool("public", tuple(columns.items())), depth)
        return Flat(flat.sources, flat.outer, flat.conditions, columns)

    def _multiplies_no_row(self, terms: Iterable[Term]) -> None:
        """Of a block's columns none makes several rows of one: it would do so where nobody reads the column too."""
        if any(one.args[:1] == ("EXPLODE",) for term in terms if term.nests for one in walk(term)):
            raise Refused("relations: rows are multiplied by C lowest values alone")

    def _unordered(self, node: exp.Select) -> None:
        """ORDER BY without LIMIT says nothing about which rows there are; it names columns alone, so it cannot
        fail."""
        for one in node.args["order"].expressions if node.args.get("order") else ():
            if not isinstance(one.this, (exp.Column, exp.Literal)):
                raise Refused("read: ORDER BY names columns")

    def _grouped(self, node: exp.Select, scope: Scope, flat: Flat, columns: dict[str, Term]) -> Term:
        keys: list[Term] = []
        if group := node.args.get("group"):
            _only(group, "expressions")
            for key in group.expressions:
                if isinstance(key, exp.Literal):
                    raise Refused("read: a query of a listed kind", "GROUP BY position")
                keys.append(self._key(key, scope))
        having: list[Term] = []
        if clause := node.args.get("having"):
            having = self._conditions(clause.this, scope)
        for term in (*columns.values(), *having):
            self._of_groups(term, frozenset(keys))
        relation = self.pool(
            "agg", self.block(flat), tuple(dict.fromkeys(keys)), ordered(having), tuple(columns.items())
        )
        return relation

    def _key(self, key: exp.Expression, scope: Scope) -> Term:
        """A GROUP BY item: an input column, or the alias of a SELECT item where no input column has that name."""
        alias = isinstance(key, exp.Column) and not key.table and key.name in scope.aliases
        if alias and not any(key.name in columns for columns in scope.items.values()):
            return self.term(scope.aliases[key.name], scope)
        return self.term(key, scope)

    def _of_groups(self, term: Term, keys: frozenset[Term]) -> None:
        """An item of a group: made of keys, constants and aggregates alone."""
        for one in walk(term, lambda one: one not in keys and one.op not in AGGREGATES):
            if one.op in ("col", "exists", "scalar", "over") and one not in keys:
                raise Refused("read: an item of a group is made of keys and aggregates", repr(one))

    def _from(self, node: exp.Select, ctes: Ctes, around: Scope | None, depth: int) -> tuple[Scope, Flat]:
        flat = Flat()
        scope = Scope({}, ctes, depth, around)
        clause = node.args.get("from_")
        if clause is None:
            if node.args.get("joins"):
                raise Refused("read: a query of a listed kind", "a join of nothing")
            return scope, flat
        _only(clause, "this")
        self._add(clause.this, scope, flat)
        for join in node.args.get("joins") or ():
            self._join(join, scope, flat)
        return scope, flat

    def _join(self, join: exp.Join, scope: Scope, flat: Flat) -> None:
        _only(join, "this", "kind", "side", "on")
        kind, side, on = join.kind.upper(), join.side.upper(), join.args.get("on")
        if kind == "ANTI":
            inner = Scope({}, scope.ctes, scope.depth + 1, scope)
            kept = Flat()
            self._add(join.this, inner, kept)
            kept.conditions += self._conditions(on, inner)
            flat.conditions.append(self.pool("not", self.pool("exists", self.block(kept))))
        elif side == "FULL":
            self._full(join, scope, flat)
        elif side == "LEFT":
            alias, item = self._item_of_from(join.this, scope)
            if (
                len(item.sources) != 1
                or item.conditions
                or item.outer
                or any(t.op != "col" for t in item.columns.values())
            ):
                closed = self._closed(self._item_of_from(join.this, Scope({}, scope.ctes, 0))[1])
                item = self._source(closed, scope.depth)
            self._merge(alias, self._outer(item), scope, flat)
            source = next(iter(scope.items[alias].values())).args[0]
            flat.outer[source] = ordered(self._conditions(on, scope))
        elif not side and kind in ("", "INNER", "CROSS"):
            self._add(join.this, scope, flat)
            if on is not None:
                flat.conditions += self._conditions(on, scope)
        else:
            raise Refused("read: a query of a listed kind", f"{side} {kind} JOIN")

    def _outer(self, item: Flat) -> Flat:
        """A source as the right side of a LEFT JOIN has it: another one, as all its columns can be NULL."""
        [source] = item.sources
        other = self.pool("src", *source.args, "outer")
        return Flat([other], columns={n: self.pool("col", other, t.args[1]) for n, t in item.columns.items()})

    def _full(self, join: exp.Join, scope: Scope, flat: Flat) -> None:
        """FULL JOIN of two sources, as one source whose columns are `0.name` and `1.name`."""
        [(left_alias, left_columns)] = scope.items.items()
        alias, item = self._item_of_from(join.this, Scope({}, scope.ctes, 0))
        self._name(alias, item, scope)
        left, right = (
            self._closed(Flat(flat.sources, flat.outer, flat.conditions, left_columns)),
            self._closed(item),
        )
        sides = [self.pool("src", left, 0, 0), self.pool("src", right, 0, 1)]
        names = [[name for name, _ in _pairs(side)] for side in (left, right)]
        inner = Scope(
            {
                one: {name: self.pool("col", source, name) for name in ours}
                for one, source, ours in zip((left_alias, alias), sides, names, strict=True)
            },
            scope.ctes,
            0,
            loose=scope.loose,
        )
        relation = self.pool("full", left, right, ordered(self._conditions(join.args["on"], inner)))
        source = self.pool("src", relation, scope.depth, 0)
        flat.sources[:], flat.outer, flat.conditions[:] = [source], {}, []
        scope.items[left_alias] = {name: self.pool("col", source, f"0.{name}") for name in names[0]}
        scope.items[alias] = {name: self.pool("col", source, f"1.{name}") for name in names[1]}

    def _add(self, node: exp.Expression, scope: Scope, flat: Flat) -> None:
        self._merge(*self._item_of_from(node, scope), scope, flat)

    def _item_of_from(self, node: exp.Expression, scope: Scope) -> tuple[str, Flat]:
        if isinstance(node, exp.Table):
            _only(node, "this", "db", "alias", "only")
            name = node.name
            if (
                not node.db
                and name not in scope.ctes.entries
                and any(name.lower() == one.lower() for one in scope.ctes.entries)
            ):
                raise Refused("read: a name means one query", name)
            if not node.db and name in scope.ctes.entries:
                query, visible = scope.ctes.entries[name]
                return node.alias or name, self._relation(query, visible, None, scope.depth)
            full = f"{node.db}.{name}" if node.db else name
            return node.alias or name, self._source(self.pool("table", full), scope.depth)
        if isinstance(node, exp.Subquery):
            _only(node, "this", "alias")
            return node.alias, self._relation(node.this, scope.ctes, scope.around, scope.depth)
        raise Refused("read: a query of a listed kind", type(node).__name__)

    def _name(self, alias: str, item: Flat, scope: Scope) -> None:
        """Premise of a source's name: no other is like it; those of which columns are alike are marked."""
        if not alias or any(alias.lower() == one.lower() for one in scope.items):
            raise Refused("read: a name means one column", alias)
        if any(one.args[0].op == "table" and self._is_loose(one.args[0].args[0]) for one in item.sources):
            scope.loose.add(alias)

    def _merge(self, alias: str, item: Flat, scope: Scope, flat: Flat) -> None:
        """Joins the rows of `item`; a source that is there already gets another number."""
        self._name(alias, item, scope)
        by: dict[Term, Term] = {}
        taken = {*flat.sources, *item.sources}
        for source in item.sources:
            if source in flat.sources:
                number = source.args[2]
                while (other := self.pool("src", *source.args[:2], number, *source.args[3:])) in taken:
                    number += 1
                taken.add(other)
                by[source] = other
        if not by:
            flat.sources += item.sources
            flat.outer |= item.outer
            flat.conditions += item.conditions
            scope.items[alias] = item.columns
            return
        memo: dict[Term, Term] = {}

        def new(term: Term) -> Term:
            return self.pool.replace(term, by, memo)

        flat.sources += [by.get(source, source) for source in item.sources]
        flat.outer |= {by.get(one, one): tuple(map(new, on)) for one, on in item.outer.items()}
        flat.conditions += map(new, item.conditions)
        scope.items[alias] = {name: new(term) for name, term in item.columns.items()}

    def _item(self, item: exp.Expression, scope: Scope) -> Iterable[tuple[str, Term]]:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            table = item.table if isinstance(item, exp.Column) else ""
            if table and table not in scope.items:
                raise Refused("read: a name means one column", table)
            for alias, columns in scope.items.items():
                if not table or alias == table:
                    yield from columns.items()
        elif isinstance(item, exp.Alias):
            _only(item, "this", "alias")
            yield item.alias, self.term(item.this, scope)
        elif isinstance(item, exp.Aliases) and isinstance(item.this, exp.Inline):
            for name, one in zip(item.expressions, item.this.this.expressions, strict=True):
                yield name.name, self.pool("fn", "EXPLODE", self.term(one, scope))
        elif isinstance(item, exp.Column):
            yield item.name, self.term(item, scope)
        else:
            yield "", self.term(item, scope)

    # --- expressions ---

    def _conditions(self, node: exp.Expression | None, scope: Scope) -> list[Term]:
        """The AND terms of a condition."""
        if node is None:
            raise Refused("read: a query of a listed kind", "a join without ON")
        return conjuncts(self.term(node, scope))

    def term(self, node: Any, scope: Scope) -> Term:
        """An expression as a term, by its row of `_READ`."""
        read = _READ.get(type(node))
        if read is None:
            raise Refused("read: an expression of a listed kind", type(node).__name__)
        return read(self, node, scope)

    def _read_paren(self, node: exp.Paren, scope: Scope) -> Term:
        return self.term(node.this, scope)

    def _read_column(self, node: exp.Column, scope: Scope) -> Term:
        _only(node, "this", "table")
        table = node.table
        if table and not scope.has(table):
            return self.pool("fn", "FIELD", scope.column("", table), node.name)
        return scope.column(table, node.name)

    def _read_eq(self, node: exp.EQ, scope: Scope) -> Term:
        """`=`; arrays are equal where their elements are, NULL with NULL."""
        _only(node, "this", "expression")
        if not type(node.this) is type(node.expression) is exp.Array:
            return self.pool("eq", self.term(node.this, scope), self.term(node.expression, scope))
        pairs = zip(node.this.expressions, node.expression.expressions, strict=True)
        return self.pool(
            "and", *(self.pool("same", self.term(a, scope), self.term(b, scope)) for a, b in pairs)
        )

    def _read_anonymous(self, node: exp.Anonymous, scope: Scope) -> Term:
        name = self.dialect.FUNCTIONS.get(node.name.lower())
        if name is None:
            raise Refused("read: an expression of a listed kind", node.name)
        return self.pool("fn", name, *(self.term(one, scope) for one in node.expressions))

    def _read_literal(self, node: exp.Literal, scope: Scope) -> Term:
        if node.is_string:
            return self.pool("text", node.name)
        text = node.name
        if text.isdigit():
            return self.pool("num", int(text), "int")
        kind = "float" if "e" in text.lower() else "decimal" if "." in text else "int"
        if kind == "decimal" and text.endswith("0") and not self.dialect.DECIMALS_ARE_FIXED:
            raise Refused("read: a number is written without zeros at its end", text)
        return self.pool("num", (double if kind == "float" else number)(text), kind)

    def _read_boolean(self, node: exp.Boolean, scope: Scope) -> Term:
        return self.pool("bool", bool(node.this))

    def _read_null(self, node: exp.Null, scope: Scope) -> Term:
        return self.pool("null")

    def _read_placeholder(self, node: exp.Expression, scope: Scope) -> Term:
        """What is passed, with the word that says what it is."""
        name = str(node.name or node.this).lstrip("p")
        place = int(name) - 1 if name.isdigit() else -1
        return self.pool("param", name, self.words[place] if 0 <= place < len(self.words) else "")

    def _read_neg(self, node: exp.Neg, scope: Scope) -> Term:
        inner = self.term(node.this, scope)
        return (
            self.pool("num", -inner.args[0], inner.args[1]) if inner.op == "num" else self.pool("neg", inner)
        )

    def _read_between(self, node: exp.Between, scope: Scope) -> Term:
        _only(node, "this", "low", "high")
        this = self.term(node.this, scope)
        low, high = self.term(node.args["low"], scope), self.term(node.args["high"], scope)
        return self.pool("and", self.pool("le", low, this), self.pool("le", this, high))

    def _read_and(self, node: exp.And, scope: Scope) -> Term:
        return self.pool("and", *(self.term(one, scope) for one in node.flatten()))

    def _read_or(self, node: exp.Or, scope: Scope) -> Term:
        """OR; a COUNT(*) below 0 is FALSE."""
        parts = [self.term(one, scope) for one in node.flatten()]
        never = self.pool("lt", self.pool("count*", ()), self.pool("num", 0, "int"))
        parts = [one for one in parts if one is not never]
        return parts[0] if len(parts) == 1 else self.pool("or", *parts)

    def _read_not(self, node: exp.Not, scope: Scope) -> Term:
        inner = self.term(node.this, scope)
        return self.pool("notnull", inner.args[0]) if inner.op == "isnull" else self.pool("not", inner)

    def _read_is(self, node: exp.Is, scope: Scope) -> Term:
        _only(node, "this", "expression", "negate")
        this, what = self.term(node.this, scope), node.expression
        negated = bool(node.args.get("negate"))
        if isinstance(what, exp.Null):
            return self.pool("notnull" if negated else "isnull", this)
        if isinstance(what, exp.Boolean):
            result = self.pool("istrue" if what.this else "isfalse", this)
            return self.pool("not", result) if negated else result
        raise Refused("read: an expression of a listed kind", "IS")

    def _read_in(self, node: exp.In, scope: Scope) -> Term:
        _only(node, "this", "expressions", "query")
        if query := node.args.get("query"):
            kept = self._sub(query, scope)
            left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
            if len(left) != len(kept.columns):
                raise Refused("read: an expression of a listed kind", "IN")
            for one, term in zip(left, kept.columns.values(), strict=True):
                kept.conditions.append(self.pool("eq", self.term(one, scope), term))
            return self.pool("insub", self.pool("exists", self.block(kept)))
        return self.pool(
            "in", self.term(node.this, scope), tuple(self.term(one, scope) for one in node.expressions)
        )

    def _sub(self, query: exp.Expression, scope: Scope) -> Flat:
        """A subquery that may look outwards: one level deeper, so its sources are none of those around it."""
        found = self._relation(query, scope.ctes, scope, scope.depth + 1)
        return Flat(list(found.sources), dict(found.outer), list(found.conditions), dict(found.columns))

    def _read_exists(self, node: exp.Exists, scope: Scope) -> Term:
        return self.pool("exists", self.block(self._sub(node.this, scope)))

    def _read_subquery(self, node: exp.Subquery, scope: Scope) -> Term:
        """A scalar subquery: an aggregate without GROUP BY, so one row whatever it reads."""
        query = node.this
        if not isinstance(query, exp.Select) or query.args.get("group") or query.args.get("having"):
            raise Refused("read: a scalar subquery is an aggregate without groups")
        found = self._relation(query, scope.ctes, scope, scope.depth + 1)
        relation = found.sources[0].args[0] if len(found.sources) == 1 else None
        if relation is None or relation.op != "agg" or len(relation.args[3]) != 1:
            raise Refused("read: a scalar subquery is an aggregate without groups")
        return self.pool("scalar", relation.args[0], relation.args[3][0][1])

    def _read_cast(self, node: exp.Cast, scope: Scope) -> Term:
        _only(node, "this", "to")
        kind, inner = self._type(node.to), self.term(node.this, scope)
        if kind[0] == "other":
            raise Refused("read: a cast to a listed type", str(kind[1])[:50])
        if node.args.get("safe"):
            return self.pool("fn", "TRYCAST", inner, kind)
        if inner.op == "text" and kind[0] in ("float", "date", "timestamp"):
            return self._constant(inner.args[0], kind[0])
        return self.pool("cast", inner, kind)

    def _type(self, node: exp.DataType) -> Type:
        """A type of a CAST, with the numbers that stand behind it."""
        more = any(value not in (None, False, []) for name, value in node.args.items() if name not in _PLAIN)
        numbers = [one.this for one in node.expressions]
        if more or not all(isinstance(one, exp.Literal) for one in numbers):
            return self.dialect.type_of(node.sql(self.dialect.NAME))
        text = _spelled(self.dialect.NAME, node.this)
        key = f"{text}({', '.join(one.name for one in numbers)})" if numbers else text
        if key not in self._types:
            self._types[key] = self.dialect.type_of(key)
        return self._types[key]

    def _constant(self, text: str, kind: str) -> Term:
        """A literal of another type that is written as text: a double, or a moment, in microseconds."""
        try:
            if kind == "float":
                return self.pool("num", double(text), "float")
            moment = datetime.fromisoformat(text) - datetime(1970, 1, 1)
            return self.pool("num", moment // timedelta(microseconds=1), kind)
        except (ValueError, OverflowError):
            return self.pool("literal", text, kind)

    def _read_case(self, node: exp.Case, scope: Scope) -> Term:
        """CASE as pairs of a condition and a value, with a default."""
        _only(node, "this", "ifs", "default")
        subject = self.term(node.this, scope) if node.this is not None else None
        pairs = []
        for branch in node.args["ifs"]:
            _only(branch, "this", "true")
            when = self.term(branch.this, scope)
            when = self.pool("eq", subject, when) if subject is not None else when
            pairs.append((when, self.term(branch.args["true"], scope)))
        default = node.args.get("default")
        return self.pool("case", tuple(pairs), self.term(default, scope) if default else self.pool("null"))

    def _read_div(self, node: exp.Div, scope: Scope) -> Term:
        left, right = self.term(node.this, scope), self.term(node.expression, scope)
        whole = (
            self.dialect.INTEGERS_DIVIDE_WHOLE and self.type_of(left)[0] == self.type_of(right)[0] == "int"
        )
        return self.pool("intdiv" if whole else "div", left, right)

    def _read_collate(self, node: exp.Collate, scope: Scope) -> Term:
        """Collations of which equal texts are one text: those of bytes, and Postgres' own that are deterministic."""
        named, schema = node.expression.name, node.expression.args.get("table")
        is_owners = schema is not None and schema.name != "pg_catalog"
        if named not in ("C", "pg_c_utf8", "C.utf8", "C.UTF-8", "und-x-icu") or is_owners:
            raise Refused("read: an expression of a listed kind", "COLLATE")
        return self.term(node.this, scope)

    def _read_hexstring(self, node: exp.HexString, scope: Scope) -> Term:
        return self.pool("literal", str(node.this), "binary")

    def _read_lambda(self, node: exp.Lambda, scope: Scope) -> Term:
        """A function of one name, of what it is called with alone."""
        names = {one.name: self.pool("param", f"lambda {one.name}", "") for one in node.expressions}
        return self.pool("fn", "LAMBDA", self.term(node.this, Scope({"": names}, scope.ctes, scope.depth)))

    def _read_identifier(self, node: exp.Identifier, scope: Scope) -> Term:
        return scope.column("", node.name)

    def _read_like(self, node: exp.Like, scope: Scope, escape: str = "") -> Term:
        return self.pool("like", self.term(node.this, scope), self.term(node.expression, scope), escape)

    def _read_escape(self, node: exp.Escape, scope: Scope) -> Term:
        if not isinstance(node.this, exp.Like):
            raise Refused("read: an expression of a listed kind", "ESCAPE")
        return self._read_like(node.this, scope, node.expression.name)

    def _read_substring(self, node: exp.Substring, scope: Scope) -> Term:
        """A part of a text by places, or by a pattern: that one is NULL where nothing is found."""
        _only(node, "this", "start", "length")
        parts = [
            self.term(one, scope) for name in ("this", "start", "length") if (one := node.args.get(name))
        ]
        is_pattern = len(parts) > 1 and self.type_of(parts[1])[0] == "text"
        return self.pool("fn", "REGEXPEXTRACT" if is_pattern else "SUBSTRING", *parts)

    def _read_jsonextract(self, node: exp.JSONExtractScalar | exp.JSONExtract, scope: Scope) -> Term:
        """DuckDB's member, as JSON or as text, by keys alone."""
        path = node.expression
        steps = path.expressions if isinstance(path, exp.JSONPath) else []
        keys = [one.this for one in steps[1:] if type(one) is exp.JSONPathKey and isinstance(one.this, str)]
        more = any(value for name, value in node.args.items() if name not in ("this", "expression"))
        if more or self.dialect.NAME != "duckdb" or not keys or len(keys) < len(steps) - 1:
            raise Refused("read: an expression of a listed kind", "JSON path")
        name = "JSONMEMBER" if isinstance(node, exp.JSONExtractScalar) else "JSONFIELD"
        return self.pool("fn", name, self.term(node.this, scope), *(self.pool("text", key) for key in keys))

    _read_jsonextractscalar = _read_jsonextract

    def _read_struct(self, node: exp.Struct, scope: Scope) -> Term:
        names = tuple(one.this.name for one in node.expressions)
        return self.pool("struct", names, *(self.term(one.expression, scope) for one in node.expressions))

    def _read_array(self, node: exp.Array, scope: Scope) -> Term:
        return self.pool("struct", (), *(self.term(one, scope) for one in node.expressions))

    # --- aggregates and windows ---

    def _read_count(self, node: exp.Count, scope: Scope) -> Term:
        _only(node, "this")
        if isinstance(node.this, exp.Star):
            return self.pool("count*", ())
        if isinstance(node.this, exp.Distinct):
            _only(node.this, "expressions")
            return self.pool("distinct", tuple(self.term(one, scope) for one in node.this.expressions), ())
        return self.pool("count", self.term(node.this, scope), ())

    def _read_min(self, node: exp.Min, scope: Scope) -> Term:
        if node.args.get("count") is not None:
            _only(node, "this", "count")
            return self.pool("lowest", self.term(node.this, scope), self.term(node.args["count"], scope), ())
        _only(node, "this")
        return self.pool("min", self.term(node.this, scope), ())

    def _read_filter(self, node: exp.Filter, scope: Scope) -> Term:
        inner = self.term(node.this, scope)
        if inner.op not in AGGREGATES or inner.args[-1]:
            raise Refused("read: an expression of a listed kind", "FILTER")
        return self.pool(inner.op, *inner.args[:-1], ordered(self._conditions(node.expression.this, scope)))

    def _frame(self, spec: exp.Expression) -> str:
        """A frame's words; the running frame of rows has one spelling."""
        _only(spec, "kind", "start", "start_side", "end", "end_side")
        said = [spec.args.get(name) for name in ("kind", "start", "start_side", "end", "end_side")]
        words = [one.name if isinstance(one, exp.Literal) else str(one) for one in said if one]
        if any(isinstance(one, exp.Expression) and not isinstance(one, exp.Literal) for one in said):
            raise Refused("read: an expression of a listed kind", "a window's frame")
        running = words in (
            ["ROWS", "UNBOUNDED", "PRECEDING"],
            ["ROWS", "UNBOUNDED", "PRECEDING", "CURRENT ROW"],
        )
        return "running rows" if running else " ".join(words)

    def _read_window(self, node: exp.Window, scope: Scope) -> Term:
        """`f OVER (PARTITION BY … ORDER BY …)`, with its frame where one is written."""
        _only(node, "this", "partition_by", "order", "over", "spec")
        function = self.term(node.this, scope)
        if function.op not in AGGREGATES and function.args[0] not in _OVER:
            raise Refused("read: an expression of a listed kind", "OVER")
        partition = tuple(self.term(one, scope) for one in node.args.get("partition_by") or ())
        order: list[tuple[Term, bool, bool]] = []
        if clause := node.args.get("order"):
            for one in clause.expressions:
                _only(one, "this", "desc", "nulls_first")
                order.append(
                    (
                        self.term(one.this, scope),
                        bool(one.args.get("desc")),
                        bool(one.args.get("nulls_first")),
                    )
                )
        frame = self._frame(node.args["spec"]) if node.args.get("spec") else ""
        return self.pool("over", function, partition, tuple(order), frame)


_PLAIN = ("this", "expressions")


@lru_cache(256)
def _spelled(engine: str, kind: object) -> str:
    """How an engine spells a type, without what stands behind it."""
    return exp.DataType(this=kind).sql(engine)


def number(text: str) -> int | Fraction:
    """A literal as a number: an int where it is whole."""
    value = Fraction(text)
    return value.numerator if value.denominator == 1 else value


def double(text: str) -> int | Fraction:
    """A double's literal as the number that the engine reads: the nearest of 53 bits."""
    return number(str(Fraction(float(text))))


def ordered(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Terms in the order in which they were first built, each once."""
    return tuple(sorted(set(terms), key=lambda term: term.serial))


def conjuncts(term: Term) -> list[Term]:
    """The terms of an AND, of any depth."""
    if term.op == "and":
        return [part for one in term.args for part in conjuncts(one)]
    return [] if term.op == "bool" and term.args[0] is True else [term]


def columns_of(relation: Term) -> dict[str, Term]:
    """A relation's columns by name: what each is over the block below (a union: of its first member)."""
    return dict(_pairs(relation))


def _pairs(relation: Term) -> tuple[tuple[str, Term], ...]:
    if relation.op == "union":
        return _pairs(relation.args[0][0])
    if relation.op == "full":
        return tuple(
            (f"{side}.{name}", term) for side in (0, 1) for name, term in _pairs(relation.args[side])
        )
    result: tuple[tuple[str, Term], ...] = relation.args[-1]
    return result


def _only(node: exp.Expression, *names: str) -> None:
    """A node has no arguments but these, and none of the parser's own flags changes its meaning."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []) and name not in _FORMAL:
            raise Refused("read: an argument of a listed kind", f"{type(node).__name__}.{name}")


def _kinds(items: Sequence[exp.Expression]) -> set[type]:
    """The kinds of nodes of expressions, those of subqueries left out."""
    found: set[type] = set()
    stack: list[Any] = list(items)
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is list:
            stack += node
        elif isinstance(node, exp.Expression):
            found.add(kind)
            if kind not in (exp.Subquery, exp.Exists, exp.Column, exp.Literal, exp.DataType):
                stack += node.args.values()
    return found


# --- which kinds of nodes are read, and how ---

_Read = Callable[[Reader, Any, Scope], Term]


def _as(op: str, *, swapped: bool = False) -> _Read:
    """An operator of two sides; `swapped`: `a > b` is `b < a`."""
    first, second = ("expression", "this") if swapped else ("this", "expression")

    def read(reader: Reader, node: Any, scope: Scope) -> Term:
        _only(node, "this", "expression")
        return reader.pool(op, reader.term(node.args[first], scope), reader.term(node.args[second], scope))

    return read


def _call(*arguments: str) -> _Read:
    """A function of these arguments alone, which are read where they are there."""

    def read(reader: Reader, node: Any, scope: Scope) -> Term:
        _only(node, *arguments)
        parts: list[Any] = []
        for name in arguments:
            value = node.args.get(name)
            for one in value if isinstance(value, list) else [value] if value is not None else []:
                parts.append(one.name.upper() if isinstance(one, exp.Var) else reader.term(one, scope))
        said = [str(node.args[name]) for name in ("is_left", "position") if node.args.get(name)]
        return reader.pool("fn", type(node).__name__.upper(), *parts, *said)

    return read


def _several(op: str) -> _Read:
    """An operator of all that it lists."""

    def read(reader: Reader, node: Any, scope: Scope) -> Term:
        _only(node, "this", "expressions")
        return reader.pool(op, *(reader.term(one, scope) for one in (node.this, *node.expressions)))

    return read


def _aggregate(op: str) -> _Read:
    def read(reader: Reader, node: Any, scope: Scope) -> Term:
        _only(node, "this")
        return reader.pool(op, reader.term(node.this, scope), ())

    return read


_READ: dict[type, _Read] = {
    getattr(exp, name): read
    for names, read in {
        "Add": _as("add"),
        "Sub": _as("sub"),
        "Mul": _as("mul"),
        "Mod": _as("mod"),
        "IntDiv": _as("intdiv"),
        "BitwiseAnd": _as("bitand"),
        "BitwiseRightShift": _as("shr"),
        "NEQ": _as("ne"),
        "LT": _as("lt"),
        "LTE": _as("le"),
        "GT": _as("lt", swapped=True),
        "GTE": _as("le", swapped=True),
        "NullSafeEQ": _as("same"),
        "DPipe": _as("concat"),
        "Nullif": _as("nullif"),
        "RowNumber Rank DenseRank PercentRank CumeDist": _call(),
        "Ntile": _call("this"),
        "Lag Lead FirstValue LastValue NthValue": _call("this", "offset", "default"),
        "Abs Atan Ceil Cos Exp Floor Ln Rint Round Sign Sin Sqrt Tanh Trunc": _call("this"),
        "Explode FromBase64 IsNan Length Lower MD5 TsOrDsToDate UnixDate UnixMicros Upper Year": _call(
            "this"
        ),
        "ArrayToString Contains Left Log RegexpSplit Right Split Transform Trim": _call("this", "expression"),
        "DateDiff TimestampAdd": _call("this", "expression", "unit"),
        "Interval TimestampTrunc": _call("this", "unit"),
        "AtTimeZone": _call("this", "zone"),
        "Chr": _call("expressions"),
        "Extract": _call("expression", "this"),
        "Format": _call("this", "expressions"),
        "FromJson": _call("this", "expression", "options"),
        "Pad": _call("this", "expression", "fill_pattern"),
        "RegexpLike": _call("this", "expression"),
        "RegexpExtract": _call("this", "expression", "group"),
        "RegexpReplace": _call("this", "expression", "replacement", "modifiers"),
        "Replace": _call("this", "expression", "replacement"),
        "SplitPart": _call("this", "delimiter", "part_index"),
        "StrPosition": _call("this", "substr"),
        "Translate": _call("this", "from_", "to"),
        "VarMap": _call("keys", "values"),
        "Coalesce": _several("coalesce"),
        "Least": _several("least"),
        "Greatest": _several("greatest"),
        "Sum": _aggregate("sum"),
        "Max": _aggregate("max"),
        "LogicalOr": _aggregate("boolor"),
        "LogicalAnd": _aggregate("booland"),
        "Placeholder Parameter": Reader._read_placeholder,
        "Cast TryCast": Reader._read_cast,
    }.items()
    for name in names.split()
} | {
    kind: getattr(Reader, f"_read_{name.lower()}")
    for name, kind in vars(exp).items()
    if isinstance(kind, type) and hasattr(Reader, f"_read_{name.lower()}")
}
"""What an expression may be made of; a function of its arguments is one that says no more than these."""
