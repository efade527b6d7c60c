"""Which groups can have rows: the keys of a statement, computed of all that its columns can be and its filter leaves.

    >>> image([to_char(ts, 'Mon'), extract(month FROM ts)], [ts < '2024-07-01'])
    SELECT DISTINCT <keys> FROM <pieces of ts> WHERE <filter>: the six pairs that there are

The sealed engine computes keys and filter by the very SQL that is printed for people's rows, over the pieces of their
columns (`pieces`) in place of rows. Columns that nothing ties multiply; those that a key or a term ties are joined
there. A comparison of two columns that have many values is asked of the ends of their pieces: `x < y` is possible where
the least x is below the greatest y.

House rules (soundness.md 1.6, 1.7):

1. Text and policy alone decide (law L6): no row is read.
2. A group is left out only when no row within the declarations can be in it. A term that is not understood is left out,
   and a key that is not is taken to be any of its values.
3. What is left out is not released at all: sensitivities are those of the groups that are left. A wrong image costs
   correctness, never privacy.
4. Pieces hold texts as they are read, and two columns are compared whole (soundness.md 1.17): what a term says of two
   that may be longer than they are read to is left out, and what a key says of them is not known.
"""

from __future__ import annotations

import itertools
import math
import operator
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from decimal import Decimal
from fractions import Fraction

import duckdb

from ...cache import Cache
from ...errors import Refusal
from ...records import dataclass
from ...relation.calendar import parse_date, parse_timestamp
from ...relation.catalog import Column, Scalar
from ...relation.expressions import (
    Call,
    Expr,
    Field,
    IntermediateValue,
    LiteralValue,
    compared,
    fields_of,
    map_children,
    moved,
    parts_in,
    walk,
)
from ...relation.facts import Facts, common_grid, intersect, is_cut, read_length
from ...relation.intervals import TYPE_RANGE, Environment, facts_of, narrowed_facts
from ...relation.types import BOOLEAN, DOUBLE, Kind, SqlType
from ...seal import seal
from ..backend_sql.print_private import PrivatePrinter
from ..dialects.dialect_duckdb import DUCKDB
from .functional_dependencies import Classes, equalities
from .pieces import (
    COMPARISONS,
    Grain,
    NotTold,
    Pieces,
    grains,
    has_many,
    interval_unit,
    is_rising,
    listed,
    pieces,
)

MOST_PAIRS = 4_000_000
"""Most tuples of pieces that are joined for one statement, whatever it is made of: a third of a second."""
_MOST_LITERALS = 2_000
_MANY = 400
"""From so many values on two columns are compared by the ends of their pieces."""
_MEMORY_MIB = 512
_MAX_KEPT = 200_000

Group = tuple[Scalar, ...]


@dataclass
class Looking:
    """How many pieces a statement may still look at, by its text alone, since its parts come in order.

    `gave_up`: they were not enough for some list of groups, which may then hold some that do not exist.
    """

    left: int = MOST_PAIRS
    gave_up: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Keys that columns or terms tie to each other, by number, and the tuples of values that they can have together."""

    numbers: tuple[int, ...]
    groups: tuple[Group, ...]


def existing(
    keys: Sequence[Expr],
    domains: Sequence[Sequence[Scalar]],
    env: Environment,
    terms: Sequence[Expr],
    looking: Looking,
) -> list[Part]:
    """Return the groups that rows can be in as parts of which they are the product, in canonical form, in no order.

    `domains`: what each key may be; `terms`: the AND terms of the filter; `env`: what is known of the columns, by these
    terms too. A part without groups says that no row passes the filter.
    """
    longest = _longest_text((*keys, *terms), env, (value for domain in domains for value in domain))
    terms = [term for term in terms if fields_of(term) and not _is_of_whole_texts(term, env, longest)]
    unknown = frozenset(
        i for i, key in enumerate(keys) if not fields_of(key) or _is_of_whole_texts(key, env, longest)
    )
    keys, terms, env = _over_one_of_each(keys, terms, env)
    image = _Image(keys, domains, unknown, env, terms)
    found = image.parts(looking)
    if found is not None:
        return found
    looking.gave_up = len(keys) > 1 or bool(terms)
    ties = frozenset(i for i, key in enumerate(keys) if len(fields_of(key)) != 1)
    alone = [term for term in terms if len(fields_of(term)) == 1]
    found = _Image(keys, domains, unknown | ties, env, alone).parts(looking)
    if found is not None:
        return found
    return [
        Part((i,), tuple((one,) for one in canonical(domains[i], key.type))) for i, key in enumerate(keys)
    ]


@dataclass
class _Source:
    """One column: its pieces, and what prints expressions over these; `parts`: expressions that each class of its
    pieces has one value of, by name, and as they are printed; `ends`: those of which each class has the least and the
    greatest; `terms`: those of the filter that are of it alone.
    """

    column: Field
    pieces: Pieces
    is_many: bool
    printer: PrivatePrinter
    parts: dict[Expr, tuple[Field, str]] = field(default_factory=dict)
    ends: dict[Expr, str] = field(default_factory=dict)
    terms: list[Expr] = field(default_factory=list)
    is_listed: bool = False


class _Image:
    """The image of some keys under some terms. `unknown`: keys that are taken to be any of their values."""

    def __init__(
        self,
        keys: Sequence[Expr],
        domains: Sequence[Sequence[Scalar]],
        unknown: frozenset[int],
        env: Environment,
        terms: Sequence[Expr],
    ) -> None:
        self.own, self.domains, self.env, self.names = keys, domains, env, itertools.count()
        columns = {one.index: one for one in parts_in(Field, *keys, *terms)}
        known: dict[int, bool] = {}
        for index, column in columns.items():
            with suppress(NotTold):
                known[index] = has_many(column, env)
        self.many = frozenset(index for index, many in known.items() if many)
        opaque = {
            i
            for i, key in enumerate(keys)
            if i in unknown
            or not self._is_told(key, self._told_in_key(key), known.keys())
            or any(self._is_of_unlisted(key, column) for column in columns.values())
        }
        # a key that is not understood is a column of its own, which has the values that are listed
        first = len(env.columns)
        stands = {keys[i]: Field(keys[i].type, first + i) for i in sorted(opaque)}
        self.columns = [*env.columns, *(Column("", key.type, facts=narrowed_facts(key, env)) for key in keys)]
        # and so is what a key, or a choice in a term, compares by the ends of pieces: true, or false, or NULL
        self.ties: dict[int, Expr] = {}
        chosen_by = [
            *(key for i, key in enumerate(keys) if i not in opaque),
            *(p for t in terms for p in self._told_apart(t)),
        ]
        for part in dict.fromkeys(p for expr in chosen_by for p in walk(expr)):
            if self._sides(part) is not None:
                stands[part] = Field(BOOLEAN, len(self.columns))
                self.ties[len(self.columns)] = part
                self.columns.append(Column("", BOOLEAN, facts=facts_of(part, env)))
        self.keys = [_replaced(key, stands) for key in keys]
        self.terms = [
            term
            for term in (_replaced(term, stands) for term in terms)
            if self._is_told(term, self._told_apart(term), known.keys() | {f.index for f in stands.values()})
        ]
        self.lists = {first + i: canonical(domains[i], keys[i].type) for i in opaque}
        for index, part in self.ties.items():
            self.lists[index] = [True, False, *([None] if facts_of(part, env).nullable else [])]
        self.row = ["NULL"] * len(self.columns)
        self.known = Environment(self.columns, self.env.narrowed)  # of columns that are added too

    # --- what is understood ------------------------------------------------------------------------------------

    def _is_told(self, expr: Expr, parts: Iterable[Expr], known: Iterable[int]) -> bool:
        """Say whether an expression can be computed over pieces, each of which has one value of its parts."""
        if not fields_of(expr) <= set(known) or any(parts_in(IntermediateValue, expr)):
            return False
        with suppress(NotTold):
            grains(parts, self.env, self.many)
            return True
        return False

    def _is_of_unlisted(self, key: Expr, column: Field) -> bool:
        """Say whether a key reads more of a text that has no list than whether it is one that a literal names.

        Its texts may be any: what a pattern, or a length, says of those that literals name is not all that it can.
        """
        has_none = column.type.kind is Kind.TEXT and facts_of(column, self.env).values is None
        return has_none and key != column and _reads_more(key, column)

    def _told_apart(self, term: Expr) -> Iterator[Expr]:
        """Yield the parts of a term that have one value on each piece: all but what is asked of the ends of pieces."""
        if term.calls("and", "or", "not"):
            for arg in term.args:
                yield from self._told_apart(arg)
        elif self._sides(term) is None:
            yield term

    def _told_in_key(self, key: Expr) -> Iterator[Expr]:
        """Yield the parts of a key that have one value on each piece: all but what is asked of the ends of pieces."""
        if not any(self._sides(part) for part in walk(key)):
            yield key
        elif self._sides(key) is None:
            for arg in key.args:
                yield from self._told_in_key(arg)

    def _sides(self, term: Expr) -> tuple[Expr, Expr] | None:
        """Return the sides of a comparison of two columns that is asked of the ends of their pieces."""
        if term.function not in COMPARISONS or term.calls("is_not_distinct"):
            return None
        left, right = term.args
        read = [fields_of(side) for side in (left, right)]
        if (
            any(len(one) != 1 for one in read)
            or read[0] == read[1]
            or not (is_rising(left) and is_rising(right))
        ):
            return None
        return (left, right) if (read[0] | read[1]) & self.many else None

    # --- the answer --------------------------------------------------------------------------------------------

    def parts(self, looking: Looking) -> list[Part] | None:
        """Return the image as parts; None: it takes too long, or cannot be told."""
        try:
            self.sources = self._sources()
            return [self._part(columns, numbers, looking) for columns, numbers in self._linked()]
        except (NotTold, Refusal):
            return None

    def _sources(self) -> dict[int, _Source]:
        exprs = [*self.keys, *self.terms, *self.ties.values()]
        found = grains(
            [*self.keys, *(p for t in self.terms for p in self._told_apart(t))], self.env, self.many
        )
        apart = {index for index, grain in found.items() if grain.is_apart}
        for side in (side for expr in exprs for part in walk(expr) for side in self._sides(part) or ()):
            units = {interval_unit(arg) for arg in walk(side) if arg.type.kind is Kind.INTERVAL}
            for index in fields_of(side) & apart:  # as differences are told by whole units, so is this
                found[index].units.update(units)
        if len(apart) > 2:
            raise NotTold
        sources: dict[int, _Source] = {}
        for column in {one.index: one for one in parts_in(Field, *exprs)}.values():
            try:
                own = self._pieces(column, found.get(column.index), exprs)
            except NotTold:
                if any(column.index in fields_of(expr) for expr in (*self.keys, *self.ties.values())):
                    raise
                self.terms = [term for term in self.terms if column.index not in fields_of(term)]
                continue
            row = ["NULL"] * column.index + ["v"]
            printer = PrivatePrinter(self.known, row, DUCKDB)
            sources[column.index] = _Source(column, own, column.index in self.many, printer)
        read = fields_of(*self.keys, *self.terms, *self.ties.values())
        return {index: source for index, source in sources.items() if index in read}

    def _pieces(self, column: Field, grain: Grain | None, exprs: Sequence[Expr]) -> Pieces:
        if column.index in self.lists:
            return listed(column.type, self.lists[column.index])
        named, ends = literals_beside(column, exprs)
        return pieces(column, self.env, grain, named, ends, is_key=column in self.keys)

    def _linked(self) -> list[tuple[list[int], list[int]]]:
        """Return columns, and the keys made of them, in parts that no term and no key ties to each other."""
        classes = Classes()
        ties = ({index} | fields_of(part) for index, part in self.ties.items())
        for read in (*map(fields_of, (*self.keys, *self.terms)), *ties):
            for index in read:
                classes.unite(min(read), index)
        found: dict[int, tuple[list[int], list[int]]] = {}
        for index in sorted(self.sources):
            found.setdefault(classes.find(index), ([], []))[0].append(index)
        for number, key in enumerate(self.keys):
            found[classes.find(min(fields_of(key)))][1].append(number)
        return list(found.values())

    def _part(self, columns: Sequence[int], numbers: Sequence[int], looking: Looking) -> Part:
        """Return what the keys of some columns can be together."""
        is_alone = len(numbers) == 1 and self.keys[numbers[0]].column is not None
        if is_alone and not any(fields_of(term) & set(columns) for term in self.terms):
            (number,) = numbers  # a column is what its list says
            return Part(
                (number,), tuple((one,) for one in canonical(self.domains[number], self.own[number].type))
            )
        own = [self.sources[index] for index in columns]
        if not numbers and len(own) == 1 and self._has_passing(own[0]):
            self._check(own, (), looking)
            return Part((), ((),))
        wheres = []
        for term in self.terms:
            read = fields_of(term)
            if len(read) == 1 and read <= set(columns):
                self.sources[min(read)].terms.append(term)
            elif read <= set(columns) and not any(self._is_doubtful(term, self.sources[i]) for i in read):
                wheres.append(self._possible(term, is_true=True))
        for index in self.ties.keys() & set(columns):
            self._over_parts(self.sources[index].column)
            told, tie = self.row[index], self.ties[index]
            yes, no = (self._possible(tie, is_true=is_true) for is_true in (True, False))
            ends = " OR ".join(f"{self._ends(side)}l IS NULL" for side in self._sides(tie) or ())
            wheres.append(f"(({told} AND {yes}) OR (NOT {told} AND {no}) OR ({told} IS NULL AND ({ends})))")
        keys = [self._over_parts(self.keys[number]) for number in numbers]
        for source in own:
            source.is_listed = any(self._is_doubtful(self.keys[number], source) for number in numbers)
        tables = [f"({self._classes(source)}) AS c{source.column.index}" for source in own]
        self._check(own, tables, looking)
        joined = ", ".join(tables) + (f" WHERE {' AND '.join(wheres)}" if wheres else "")
        if any(len(fields_of(key)) > 1 for key in keys):  # differences are far fewer than what they are of
            keys, first = self._differences(keys)
            joined = f"(SELECT DISTINCT {first} FROM {joined}) AS d"
        shown = [_exact(_printed(self._printer(), key)[0], key.type) for key in keys] or ["1"]
        rows = _run(f"SELECT DISTINCT {', '.join(shown)} FROM {joined}")
        return Part(tuple(numbers), rows if numbers else tuple(() for _ in rows))

    def _has_passing(self, source: _Source) -> bool:
        """Say whether the least, the greatest or the middle value of a number passes all terms, each a comparison with
        a constant: then some piece does, and none has to be run.
        """
        column, facts = source.column, facts_of(source.column, self.env)
        if facts.lo is None or facts.hi is None or facts.lo > facts.hi or facts.values is not None:
            return False
        if column.type == DOUBLE:
            found = {Fraction(float(one)) for one in (facts.lo, facts.hi, (facts.lo + facts.hi) / 2)}
        elif column.type.is_integer:
            least, most = math.ceil(facts.lo), math.floor(facts.hi)
            found = {Fraction(one) for one in (least, most, (least + most) // 2) if least <= one <= most}
        else:
            return False
        for term in self.terms:
            if fields_of(term) != {column.index}:
                if column.index in fields_of(term):
                    return False
                continue
            function, left, right = compared(term) or ("", term, term)
            constant = right.exact
            if left != column or function not in _HOLDS or not isinstance(constant, Fraction):
                return False
            found = {one for one in found if _HOLDS[function](one, constant)}
        return bool(found) and not any(column.index in fields_of(tie) for tie in self.ties.values())

    def _differences(self, keys: Sequence[Expr]) -> tuple[list[Expr], str]:
        """Return keys over what is computed of several columns first, and SQL of that and of all else they read."""
        first: dict[Expr, Field] = {}
        shown: list[str] = []

        def inner(expr: Expr) -> Expr:
            if len(fields_of(expr)) > 1 and all(
                arg.column is not None or arg.is_constant for arg in expr.args
            ):
                if expr not in first:
                    sql, type_ = _printed(self._printer(), expr)
                    first[expr] = self._add(f"p{next(self.names)}", type_, facts_of(expr, self.known))
                    shown.append(f"{sql} AS {self.row[-1]}")
                return first[expr]
            return map_children(expr, inner)

        over = [inner(key) for key in keys]
        bare = fields_of(*over) - {field.index for field in first.values()}
        return over, ", ".join([*shown, *sorted(self.row[index] for index in bare)])

    def _check(self, own: Sequence[_Source], tables: Sequence[str], looking: Looking) -> None:
        """Raises NotTold: too many tuples of pieces are to be joined."""
        limit, sizes = min(looking.left, MOST_PAIRS), [source.pieces.count for source in own]
        if math.prod(sizes) > limit and len(own) > 1:
            sizes = [len(_run(f"SELECT * FROM {table}")) for table in tables]
        if math.prod(sizes) > limit:
            raise NotTold
        looking.left -= math.prod(sizes)

    def _classes(self, source: _Source) -> str:
        """Return SQL of the classes of a column's pieces: those on which its parts have one value each.

        With the ends of what is compared: a class is then of pieces that follow one another.
        """
        printer = source.printer
        passes = [f"({_printed(printer, t)[0]})" + (" OR o" if self._is_doubtful(t, source) else "")
                  for t in source.terms]  # fmt: skip
        passes += ["NOT o"] if source.is_listed else []
        where = " AND ".join(f"({one})" for one in passes) or "TRUE"
        parts = [(self.row[named.index], sql) for named, sql in source.parts.values()]
        shown = ", ".join(f"{sql} AS {name}" for name, sql in parts)
        if not source.ends:
            return f"SELECT DISTINCT {shown or '1 AS one'} FROM ({source.pieces.sql}) AS s WHERE {where}"
        names = ", ".join(["w", "z", *(name for name, _ in parts)])
        sides = [(name, _side(_printed(printer, side)[0], side.type)) for side, name in source.ends.items()]
        computed = ", ".join(
            [
                f"({where}) IS TRUE AS w",
                "v IS NULL AS z",
                *(f"{sql} AS {name}" for name, sql in (*parts, *sides)),
            ]
        )
        changed = f"({names}) IS DISTINCT FROM lag(({names})) OVER (ORDER BY v) AS changed"
        run = "count(*) FILTER (WHERE changed) OVER (ORDER BY v ROWS UNBOUNDED PRECEDING) AS run"
        ends = ", ".join(f"min({name}) AS {name}l, max({name}) AS {name}h" for name, _ in sides)
        kept = ", ".join([*(name for name, _ in parts), *(f"{n}l, {n}h" for n, _ in sides)])
        each = f"SELECT v, {computed} FROM ({source.pieces.sql}) AS s"
        runs = f"SELECT *, {run} FROM (SELECT *, {changed} FROM ({each}) AS t) AS t"
        by_run = f"SELECT {names}, {ends} FROM ({runs}) AS t GROUP BY {names}, run"
        return f"SELECT DISTINCT {kept} FROM ({by_run}) AS t WHERE w"

    # --- keys and terms over classes ---------------------------------------------------------------------------

    def _over_parts(self, expr: Expr) -> Expr:
        """Return an expression with a name in place of each part that is of one column."""
        read = fields_of(expr)
        if len(read) == 1:
            return self._named(expr, self.sources[min(read)])
        return map_children(expr, self._inner)

    def _inner(self, expr: Expr) -> Expr:
        read = fields_of(expr)
        if len(read) == 1 and (expr.column is not None or self.sources[min(read)].is_many):
            return self._named(expr, self.sources[min(read)])
        return map_children(expr, self._inner)

    def _named(self, expr: Expr, source: _Source) -> Expr:
        if expr in source.parts:
            return source.parts[expr][0]
        name = f"p{next(self.names)}"
        sql, type_ = _printed(source.printer, expr)
        if isinstance(expr, Field):
            self.row[expr.index], named = name, expr
        else:
            named = self._add(name, type_, facts_of(expr, self.known))
        source.parts[expr] = named, sql
        return named

    def _add(self, name: str, type_: SqlType, facts: Facts) -> Field:
        """Return a new column of this name, of which this is known; of a double it is not read on which grid it is."""
        facts = replace(facts, grid=None) if type_.is_float else facts
        self.columns.append(Column("", type_, facts=facts))
        self.row.append(name)
        return Field(type_, len(self.columns) - 1)

    def _printer(self) -> PrivatePrinter:
        return PrivatePrinter(self.known, self.row, DUCKDB)

    def _possible(self, term: Expr, *, is_true: bool) -> str:
        """Return SQL that says whether a term may be true (or false) on a tuple of classes."""
        if term.calls("not"):
            return self._possible(term.args[0], is_true=not is_true)
        if term.calls("and", "or"):
            both = "AND" if term.calls("and") == is_true else "OR"
            return "(" + f" {both} ".join(self._possible(arg, is_true=is_true) for arg in term.args) + ")"
        sides = self._sides(term)
        if sides is None:
            over = self._over_parts(term)
            return f"({_printed(self._printer(), over)[0]}){'' if is_true else ' IS FALSE'}"
        x, y = (self._ends(side) for side in sides)
        sign = term.function if is_true else _OPPOSITE[term.function]
        return {
            "lt": f"{x}l < {y}h", "le": f"{x}l <= {y}h", "gt": f"{x}h > {y}l", "ge": f"{x}h >= {y}l",
            "eq": f"({x}l <= {y}h AND {y}l <= {x}h)",
            "ne": f"({x}l < {x}h OR {y}l < {y}h OR {x}l <> {y}l)",
        }[sign]  # fmt: skip

    def _ends(self, side: Expr) -> str:
        (index,) = fields_of(side)
        return self.sources[index].ends.setdefault(side, f"e{next(self.names)}")

    def _is_doubtful(self, expr: Expr, source: _Source) -> bool:
        """Say whether a text that nothing names may be told apart by more than that it is none of those named."""
        return source.pieces.has_others and _reads_more(expr, source.column)


_HOLDS = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def _printed(printer: PrivatePrinter, expr: Expr) -> tuple[str, SqlType]:
    """Return an expression as people's rows have it, and its type there."""
    if not expr.type.is_number or expr.column is not None or expr.is_constant:
        return printer.value(expr), expr.type
    number = printer.number(expr)
    if number.is_decimal:
        return printer.decimal(number, expr), expr.type
    return printer.double(number), DOUBLE


def _exact(sql: str, type_: SqlType) -> str:
    if type_.kind is Kind.DATE:
        return f"({sql} - DATE '1970-01-01')"
    return f"epoch_us({sql})" if type_.kind is Kind.TIMESTAMP else sql


def _side(sql: str, type_: SqlType) -> str:
    return f"CAST({sql} AS TIMESTAMP)" if type_.kind is Kind.DATE else sql


def told_together(keys: Sequence[Expr], env: Environment) -> list[Group] | None:
    """Return what keys of one column are together; None: it is not known, or not of texts that nothing names.

    Where the column is a key by itself no other text is in a group.
    """
    is_key = any(key.column is not None for key in keys)
    return atoms(keys, env, is_key=is_key, takes_others=False)


def atoms(
    keys: Sequence[Expr], env: Environment, *, is_key: bool = False, takes_others: bool = True
) -> list[Group] | None:
    """Return what keys of one column are together, over its pieces in their order. None: it is not known on which
    pieces they have one value.

    What is made of a text that nothing names is NULL here where it is no text that is named, or is not known unless
    it `takes_others`; `is_key`: there are none.
    """
    (column,) = set(parts_in(Field, *keys))
    row = ["NULL"] * len(env.columns)
    row[column.index] = "v"
    printer = PrivatePrinter(env, row, DUCKDB)
    try:
        many = frozenset({column.index}) if has_many(column, env) else frozenset[int]()
        computed = [key for key in keys if key != column]
        grain = grains(computed, env, many).get(column.index)
        if column in keys and grain is not None:
            grain.units.add("day" if column.type.kind is Kind.DATE else "")
        own = pieces(column, env, grain, *literals_beside(column, keys), is_key=is_key)
        more = [own.has_others and _reads_more(key, column) for key in keys]
        if any(one and not (takes_others and key.type.kind is Kind.TEXT)
               for one, key in zip(more, keys, strict=True)):  # fmt: skip
            return None
        printed = [_exact(_printed(printer, key)[0], key.type) for key in keys]
        shown = ", ".join(
            f"CASE WHEN NOT o THEN {sql} END AS a{i}" if one else f"{sql} AS a{i}"
            for i, (one, sql) in enumerate(zip(more, printed, strict=True))
        )
        order, by = (
            "i" if column.type.kind is Kind.TEXT else "v",
            ", ".join(f"a{i}" for i in range(len(keys))),
        )
        each = f"SELECT *, row_number() OVER () AS i FROM ({own.sql}) AS s"
        rows = _run(f"SELECT {shown} FROM ({each}) AS t GROUP BY {by} ORDER BY min({order}) NULLS LAST")
    except (NotTold, Refusal):
        return None
    return list(rows)


def tells_apart(shown: Expr, values: Sequence[Scalar]) -> bool:
    """Say whether each of some numbers is shown as another one that its type holds: what Postgres raises on is none."""
    (column,) = set(parts_in(Field, shown))
    numbers = [Fraction(value) for value in values if isinstance(value, (int, Fraction))]
    if not numbers:
        return True
    grid = common_grid([Fraction(1, number.denominator) for number in numbers])
    facts = Facts(min(numbers), max(numbers), grid, nullable=False, declared=True)
    printer = PrivatePrinter(Environment([Column("", column.type, facts=facts)]), ["v"], DUCKDB)
    held = []
    try:
        first, _ = _printed(printer, shown)
        for part in walk(shown):
            if not part.is_constant:
                sql, type_ = _printed(printer, part)
                lo, hi = TYPE_RANGE.get(part.type.kind, (None, None))
                within = f"{sql} BETWEEN {lo} AND {hi}" if lo is not None else f"{sql} IS NOT NULL"
                held.append(f"isfinite({sql})" if type_.is_float else within)
        own = listed(column.type, values)
        told = f"bool_and(coalesce({' AND '.join(held)}, FALSE)), count(DISTINCT {first})"
        ((is_whole, apart),) = _run(f"SELECT {told} FROM ({own.sql}) AS s")
    except (NotTold, Refusal):
        return False
    return is_whole is True and apart == len(values)


# --- the sealed engine -----------------------------------------------------------------------------------------


class _Engine:
    """One sealed DuckDB in memory, with a cursor for each thread; opened when it is first asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = threading.local()
        self._database: duckdb.DuckDBPyConnection | None = None

    def run(self, sql: str) -> list[tuple[Scalar, ...]]:
        """Return the rows of a SELECT. Raises duckdb.Error."""
        cursor: duckdb.DuckDBPyConnection | None = getattr(self._own, "cursor", None)
        if cursor is None:
            with self._lock:
                if self._database is None:
                    self._database = duckdb.connect(":memory:")
                    seal(self._database, _MEMORY_MIB, {"max_expression_depth": "1000"})
                cursor = self._own.cursor = self._database.cursor()
        return cursor.execute(sql).fetchall()


_engine = _Engine()
_kept: Cache[tuple[Group, ...]] = Cache(_MAX_KEPT, weigh=lambda key, rows: len(key) // 100 + len(rows))
"""Answers by their SQL, which says all that they depend on."""


def _run(sql: str) -> tuple[Group, ...]:
    """Return the rows of a SELECT over pieces; exact numbers as Fractions. Raises NotTold: the engine gives up."""
    found = _kept.get(sql)
    if found is None:
        try:
            rows = _engine.run(sql)
        except duckdb.Error as error:
            raise NotTold from error
        found = tuple(tuple(Fraction(v) if isinstance(v, Decimal) else v for v in row) for row in rows)
        _kept.put(sql, found)
    return found


def canonical(values: Iterable[Scalar], type_: SqlType) -> list[Scalar]:
    """Return the values of a key as the engine gives them: moments as whole numbers."""
    return [spelled(value, type_) for value in values]


def spelled(value: Scalar, type_: SqlType) -> Scalar:
    """Return a key's value in canonical form: days, microseconds and whole numbers as integers."""
    if isinstance(value, str) and type_.is_temporal:
        return parse_date(value) if type_.kind is Kind.DATE else parse_timestamp(value)
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


# --- terms and literals ------------------------------------------------------------------------------------------


def _replaced(expr: Expr, stands: dict[Expr, Field]) -> Expr:
    """Return an expression with a column in place of each part that it stands for."""
    found = stands.get(expr)
    return found if found is not None else map_children(expr, lambda part: _replaced(part, stands))


def _reads_more(expr: Expr, column: Field) -> bool:
    """Say whether a column is read otherwise than beside literals that it is compared with."""
    if column not in expr.args:
        return expr == column or any(_reads_more(arg, column) for arg in expr.args)
    if expr.calls("is_null"):
        return False
    is_compared = expr.function in COMPARISONS or expr.calls("in")
    return not (is_compared and all(arg == column or arg.is_constant for arg in expr.args))


def _longest_text(exprs: Iterable[Expr], env: Environment, known: Iterable[Scalar] = ()) -> int:
    """Return the most characters of a text that expressions name, of a value of their columns, and of known values."""
    parts = [part for expr in exprs for part in walk(expr)]
    texts = [value for value in known if isinstance(value, str)]
    texts += [text for part in parts if (text := part.constant_as(str)) is not None]
    texts += [
        value
        for part in parts
        if part.column is not None
        for value in facts_of(part, env).values or ()
        if isinstance(value, str)
    ]
    return max(map(len, texts), default=0)


def _is_of_whole_texts(expr: Expr, env: Environment, longest: int) -> bool:
    """Say whether an expression compares columns of texts of which some value is as long as one is read to.

    `'abcde' = x` and `'abcde' = y` are one text, and `'abcd'` and `'abcde'` as they are read to 4 and 5; `'abcda' < y`
    may hold of what is read as `'abcd'` of both.
    """
    return any(_compares_whole_texts(part, env, longest) for part in walk(expr))


def _compares_whole_texts(part: Expr, env: Environment, longest: int) -> bool:
    texts = [env.declared(arg) for arg in part.args if arg.type.kind is Kind.TEXT]
    columns = [column for column in texts if column is not None]
    return (
        part.type == BOOLEAN
        and len(columns) > 1
        and any(is_cut(one) and read_length(one) <= longest for one in columns)
    )


_ORDERED = ("lt", "le", "gt", "ge")


def literals_beside(column: Field, exprs: Iterable[Expr]) -> tuple[list[LiteralValue], list[LiteralValue]]:
    """Return the literals that expressions compare a column with, and those of them by order."""
    parts = list(dict.fromkeys(part for expr in exprs for part in walk(expr)))
    return _compared_with(column, parts), _compared_with(column, parts, _ORDERED)


def _compared_with(
    column: Field, parts: Iterable[Expr], functions: Sequence[str] | None = None
) -> list[LiteralValue]:
    """Return the literals that a column is compared with, by some functions alone where they are given."""
    calls = [
        part
        for part in parts
        if part.type == BOOLEAN and column in part.args and (functions is None or part.calls(*functions))
    ]
    found = dict.fromkeys(arg.constant for call in calls for arg in call.args if arg.is_constant)
    return list(found)[:_MOST_LITERALS]


def _over_one_of_each(
    keys: Sequence[Expr], terms: Sequence[Expr], env: Environment
) -> tuple[list[Expr], list[Expr], Environment]:
    """Return keys and terms with one column in place of all that the filter makes equal to it."""
    classes = Classes()
    for left, right in equalities(terms):
        if env.columns[left].type == env.columns[right].type:
            classes.unite(left, right)
    if not classes.parents:
        return list(keys), list(terms), env
    narrowed = dict(env.narrowed)
    for index in {classes.find(index) for index in classes.parents}:
        type_ = env.columns[index].type
        known = [facts_of(Field(type_, i), env) for i in range(len(env.columns)) if classes.find(i) == index]
        for facts in known[1:]:
            known[0] = intersect(known[0], facts)
        narrowed[Field(type_, index)] = known[0]

    return (
        [moved(key, classes.find) for key in keys],
        [_not_null(moved(term, classes.find)) for term in terms],
        replace(env, narrowed=narrowed),
    )


def _not_null(term: Expr) -> Expr:
    """Return `x = x` as what it says."""
    if term.calls("eq") and term.args[0] == term.args[1]:
        return Call(BOOLEAN, "not", (Call(BOOLEAN, "is_null", term.args[:1]),))
    return term
