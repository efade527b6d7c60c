"""Filters that no row passes, by their own text or by what the engine enforces (soundness.md 1.6, 1.16).

House rules:

1. Literals speak; the binder has made each of them a value of the other side's type. Declared bounds and values
   play no part: the data may lie outside them. What the engine enforces does where it is asked for (`Facts`).
2. The answer is then exact and free, and a function of the text: a wrong "yes" costs correctness, never privacy.

House rules of what the engine's own constraints say of every row of a block (`Facts`):

1. Only what a table's `Proved` has, and NOT NULL columns of such a table: constraints that the live engine enforces
   and has validated. Never what is asserted or recorded, and nothing of a source whose rows a policy or a cut changes.
2. It says nothing about whose rows they are, and no sensitivity rests on it: a wrong fact costs correctness alone.

Which groups of a release the statement keeps above it, by filters on its keys, is for proofs that none is kept, and
for nothing else: what is measured of a release does not depend on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction

from ...cache import Made
from ...records import dataclass
from ...relation.catalog import Allowed, Proved, Table
from ...relation.expressions import MIRRORED, Call, Expr, compared, conjuncts, fields_of, substitute
from ...relation.relations import AggregateCall, Relation, ends_in, subqueries
from ...relation.types import BOOLEAN, Kind
from .functional_dependencies import Classes, equalities, functional_closure
from .ownership import path_begins
from .rows import Item, OwnedRows, Release, Select, Source, columns_of, fields_in


@dataclass(frozen=True)
class Facts:
    """Of a block's columns, by number: those that are never NULL, marks that are always TRUE, counts of 1 at most.

    `allowed`: what columns may be where they are not NULL.
    """

    not_null: frozenset[int] = frozenset()
    true: frozenset[int] = frozenset()
    at_most_one: frozenset[int] = frozenset()
    allowed: Mapping[int, Allowed] = field(default_factory=dict)


def facts_in(items: Sequence[Item], predicate: Sequence[Expr], *, inside: bool = False) -> Facts:
    """Return what constraints prove of the rows of a block that pass its filter's terms.

    `inside`: the columns of the last item, a mark, are its source's own, as its ON has them.
    """
    if any(item.kind == "full" for item in items):
        return Facts()  # rows of every source may be filled up with NULL
    not_null, true, single = set[int](), set[int](), set[int]()
    allowed: dict[int, Allowed] = {}
    placed = fields_in(tuple(items))
    for item, start in placed:
        if item.kind == "inner" or (inside and item is items[-1]):
            not_null |= _not_null(item, start)
            single |= _single_counts(item, start)
        if item.kind != "mark" or (inside and item is items[-1]):
            allowed |= _allowed(item, start)  # what a LEFT JOIN does not match is NULL
    known = not_null | _asked_not_null(predicate)
    for item, start in placed:
        if item.kind in ("left", "mark") and _is_always_matched(item, start, placed, known):
            not_null |= _not_null(item, start) if item.kind == "left" else set()
            true |= {start} if item.kind == "mark" else set()
    return Facts(frozenset(not_null), frozenset(true), frozenset(single), allowed)


@dataclass(frozen=True)
class _Rows:
    """Rows of a table whose engine proves something of them; `names`: of its columns, "" for what is none.

    `is_whole`: all of the table's rows are among them.
    """

    table: Table
    proved: Proved
    names: tuple[str, ...]
    is_whole: bool

    def has_key(self, names: set[str]) -> bool:
        """Say whether columns are a proved key, whose equality is that of their values."""
        return any({*key} == names for key in self.proved.keys)


def _rows(source: Source) -> _Rows | None:
    """Return a source as rows of one table; None where it is more than a table, a cut of it or a choice of columns."""
    if source.most is not None:
        found = _rows(source.uncut)
        return None if found is None else replace(found, is_whole=False)
    if source.declares:  # house rule 1: it has other values than its table
        return None
    if (table := source.table) is not None:
        return None if table.proved is None else _Rows(table, table.proved, source.shown, is_whole=True)
    if len(source.parts) != 1 or source.parts[0].calls or source.parts[0].aggregates is not None:
        return None
    part = source.parts[0]
    found = _rows(part.items[0].source) if len(part.items) == 1 and part.items[0].kind == "inner" else None
    if found is None:
        return None
    columns = (*part.outputs, *part.owner)
    names = tuple("" if one.column is None else found.names[one.column] for one in columns)
    return replace(found, names=names, is_whole=found.is_whole and not part.predicate)


def _not_null(item: Item, start: int) -> set[int]:
    """Return the columns of a table that are never NULL; whoever asks knows that NaN is NULL to a statement."""
    rows = _rows(item.source)
    if rows is None:
        return set()
    own = (*rows.table.owner_columns, *rows.table.columns)
    held = {column.name for column in own if column.enforced.not_null}
    return {start + place for place, name in enumerate(rows.names) if name in held}


def _allowed(item: Item, start: int) -> dict[int, Allowed]:
    """Return what the columns of a table may be; not of those whose values are reports in place of the true ones."""
    rows = _rows(item.source)
    if rows is None:
        return {}
    reported = {column.name for column in rows.table.columns if column.randomized is not None}
    known = {one.column: one for one in rows.proved.allowed if one.column not in reported}
    return {start + place: known[name] for place, name in enumerate(rows.names) if name in known}


def _asked_not_null(predicate: Sequence[Expr]) -> set[int]:
    """Return the columns that the terms of a filter leave no NULL of."""
    found = set[int]()
    for term in predicate:
        if term.calls("not") and term.args[0].calls("is_null"):
            column = term.args[0].args[0].column
            found |= set() if column is None else {column}
    return found


def _is_always_matched(item: Item, start: int, placed: Sequence[tuple[Item, int]], known: set[int]) -> bool:
    """Say whether each row finds a row of a joined table: by a foreign key without its NULLs, and nothing else."""
    parent = _rows(item.source)
    if parent is None or not parent.is_whole:
        return False
    pairs = {frozenset(pair) for pair in equalities(item.on)}
    if len(pairs) != len(item.on):
        return False
    named = {start + place: name for place, name in enumerate(parent.names)}
    for other, first in placed:
        child = _rows(other.source) if other.kind == "inner" else None
        if child is None:
            continue
        own = {first + place: name for place, name in enumerate(child.names) if first + place in known}
        found = {
            (own[one], named[two])
            for pair in pairs
            if len(pair) == 2  # x = x links nothing
            for one, two in (sorted(pair), sorted(pair, reverse=True))
            if one in own and two in named
        }
        for columns, path, referenced in child.proved.foreign_keys:
            if path == parent.table.place and found == {*zip(columns, referenced, strict=True)}:
                return len(pairs) == len(columns) and parent.has_key({*referenced})
    return False


def _single_counts(item: Item, start: int) -> set[int]:
    """Return which columns of a subquery count one row at most: those of a whole key, without its NULLs."""
    source = item.source
    if not source.is_subquery or len(source.parts) != 1:
        return set()
    part = source.parts[0]
    if part.aggregates is not None:
        is_single = _is_one_row(part, part.outputs)
        counts = [is_single and call.function == "count" for call in part.aggregates]
    else:
        counts = [call.function == "count" and _is_one_row(part, call.partition) for call in part.windows]
    return {start + len(part.outputs) + number for number, is_count in enumerate(counts) if is_count}


def _is_one_row(part: Select, keys: Sequence[Expr]) -> bool:
    """Say whether the rows of a subquery that agree in some keys are one at most, by keys that are proved."""
    items = tuple(replace(item, source=replace(item.source, keys=_keys(item.source))) for item in part.items)
    known = facts_in(part.items, part.predicate).not_null | _asked_not_null(part.predicate)
    fixed = {*known} & {key.column for key in keys}
    return all(functional_closure(items, part.predicate, Classes.of(part.predicate), fixed)[1])


def _keys(source: Source) -> tuple[frozenset[int], ...]:
    rows = _rows(source)
    if rows is None:
        return ()
    return tuple(key for key in source.keys if rows.has_key({rows.names[place] for place in key}))


Kept = dict[Release, set[tuple[Expr, ...]]]
"""Of each release, for every place in the statement that it is used in, terms that hold of all groups that are used
there: over the columns of its rows. No terms: all of them are used, as far as is known."""


def kept_groups(parts: Iterable[Relation]) -> Kept:
    """Return what analyzed relations keep of the groups of their releases."""
    found: Kept = {}
    for part in parts:
        _visit(part, (), found)
    return found


def _visit(node: Relation, terms: tuple[Expr, ...], found: Kept) -> None:
    """Note the uses of releases in a relation. `terms`: what holds of the rows of it that are used, over its columns.

    A filter goes through what neither makes a row of several nor leaves one out that another depends on; through
    windows, limits, joins and aggregates nothing goes.
    """
    for below in subqueries(node.alone):
        _visit(below, (), found)
    if isinstance(node, Release):
        own = [term for term in terms if fields_of(term) and fields_of(term) <= {*range(len(node.keys))}]
        found.setdefault(node, set()).add(tuple(substitute(term, node.keys) for term in own))
    elif ends_in(node, "where", "having"):
        _visit(node.below, (*terms, *conjuncts(node.predicate)), found)
    elif ends_in(node, "outputs"):
        exprs = node.exprs
        plain = {index for index, expr in enumerate(exprs) if expr.column is not None}
        own = [term for term in terms if fields_of(term) <= plain]  # others could grow with each projection
        _visit(node.below, tuple(substitute(term, exprs) for term in own), found)
    else:
        kept = terms if ends_in(node, "orders", "distinct") else ()
        for source in node.reads:
            _visit(source, kept, found)


_Value = Fraction | str | bool
_End = tuple[_Value, int]
"""A value, and on which side of it the end is: 0 is the value itself, 1 just above it, -1 just below."""

_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def has_no_rows(rows: OwnedRows, *, proved: bool = False) -> bool:
    """Say whether no row of people passes the filter that the statement has, or those of its subqueries.

    `proved`: by the constraints that the engine enforces, too. The path to the owner is none of the statement's: a row
    that it does not reach is there, and nobody's.
    """
    items, predicate = rows.asked
    return _is_empty(items, predicate, proved=proved)


class Filter:
    """A filter, read once to be held against many others."""

    def __init__(self, filter_: Expr) -> None:
        self._whole = filter_
        self._terms = list(_together((filter_,)))
        self._left = _left_by(self._terms)
        self._negated = {term.args[0] for term in self._terms if term.calls("not")}
        self._has_choices = any(_parts(term, "or") != (term,) for term in self._terms)

    def is_disjoint(self, other: Filter) -> bool:
        """Say whether no row passes both of two filters: their counts then share one epsilon without a joint mask.

        A wrong "yes" lets no row count in two masks: these are printed as truth assignments (soundness.md 1.5).
        """
        if self._has_choices or other._has_choices:
            return _is_empty((), (self._whole, other._whole), proved=False)
        if self._left is None or other._left is None:
            return True
        if not (self._negated.isdisjoint(other._terms) and other._negated.isdisjoint(self._terms)):
            return True
        both = ((left, other._left.get(expr)) for expr, left in self._left.items())
        return any(left.with_all_of(more).is_nothing for left, more in both if more is not None)


def asks_for_nobody(rows: OwnedRows) -> bool:
    """Say whether the filter leaves rows alone whose way to an owner is NULL: these are nobody's, and never count."""
    items, predicate = rows.asked
    columns = columns_of(items)
    ways = {*path_begins(rows, items), *(part.index for part in rows.owner if part.index < len(columns))}
    nullable = frozenset(place for place in ways if not columns[place].enforced.not_null)
    return bool(nullable) and _is_empty(items, predicate, proved=True, not_null=nullable)


def _is_empty(
    items: Sequence[Item], predicate: Sequence[Expr], *, proved: bool, not_null: frozenset[int] = frozenset()
) -> bool:
    """Say whether a block has no rows, by its filter or by that of a subquery it is made of.

    `not_null`: columns of which no NULL counts.
    """
    facts = facts_in(items, predicate) if proved else Facts()
    facts = replace(facts, not_null=facts.not_null | not_null)
    terms = list(_together(predicate))
    if _excludes(terms, facts) or any(
        all(_excludes([*terms, *_together([alternative])], facts) for alternative in _alternatives(term))
        for term in terms
        if _parts(term, "or") != (term,)
    ):
        return True
    for item, start in fields_in(tuple(items)):
        source = item.source
        is_empty = source.is_subquery and all(
            _is_empty(part.items, part.predicate, proved=proved) for part in source.parts
        )
        if is_empty and item.kind == "inner" and all(one.kind != "full" for one in items):
            return True  # beside a FULL JOIN the rows of the other side are left
        is_wanted = any(term.column == start for term in predicate)
        if (
            item.kind == "mark"
            and is_wanted
            and (is_empty or _excludes(item.on, _inside(items, item, proved)))
        ):
            return True  # EXISTS or IN of no rows
    return False


def has_no_groups(release: Release, kept: Collection[Sequence[Expr]], *, proved: bool = False) -> bool:
    """Say whether no group of a release is kept by any of those that use it. `kept`: as `kept_groups` has it.

    Groups are those of the rows that have such keys: HAVING on keys is WHERE on keys. A release without keys has a row
    whatever is filtered.
    """
    items, predicate = release.rows.asked
    return bool(release.keys and kept) and all(
        terms and _is_empty(items, (*predicate, *terms), proved=proved) for terms in kept
    )


def count_nothing(release: Release, *, proved: bool = False) -> frozenset[int]:
    """Return the aggregates of a release that are 0 in each group: no row passes a condition of their own."""
    items, predicate = release.rows.asked
    kept = [_counted(call) for call in release.aggregates]
    return frozenset(
        number
        for number, terms in enumerate(kept)
        if terms is not None and _is_empty(items, (*predicate, *terms), proved=proved)
    )


def _counted(call: AggregateCall) -> tuple[Expr, ...] | None:
    """Return terms that hold of all rows which make a count or a sum other than 0; None where there are none.

    `COUNT(…) FILTER (WHERE c)`, `COUNT(CASE WHEN c THEN … END)` and `SUM(CASE WHEN c THEN … ELSE 0 END)`: c.
    """
    if call.function == "count" and call.filter is not None:
        return conjuncts(call.filter)
    (arg,) = call.args if len(call.args) == 1 else (None,)
    if arg is None or not arg.calls("case") or call.filter is not None:
        return None
    condition, _, *rest = arg.args
    otherwise = rest[0].constant if len(rest) == 1 and rest[0].is_constant else ""
    counts = call.function == "count" and (not rest or otherwise is None)
    adds = call.function == "sum" and otherwise == 0 and otherwise is not False
    return conjuncts(condition) if counts or adds else None


def _inside(items: Sequence[Item], mark: Item, proved: bool) -> Facts:
    """Return what is known of the columns that the ON of a mark is over: those of the sources before, and its own."""
    before = items[: [one is mark for one in items].index(True)]
    return facts_in([*before, mark], mark.on, inside=True) if proved else Facts()


def _alternatives(term: Expr) -> Iterator[Expr]:
    """Yield the alternatives of an OR, or of NOT of an AND; nested ones too."""
    parts = _parts(term, "or")
    if parts == (term,):
        yield term
    else:
        for part in parts:
            yield from _alternatives(part)


def _together(terms: Iterable[Expr]) -> Iterator[Expr]:
    """Yield what terms say one by one: the parts of an AND, or of NOT of an OR, by themselves."""
    for term in terms:
        parts = _parts(term, "and")
        if parts == (term,):
            yield term
        else:
            yield from _together(parts)


def _parts(term: Expr, function: str) -> tuple[Expr, ...]:
    """Return the parts of an AND or an OR, by De Morgan's laws too, which hold of NULL as of the others."""
    if term.calls(function):
        return term.args
    (inner,) = term.args if term.calls("not") else (term,)
    if term.calls("not") and inner.calls({"and": "or", "or": "and"}[function]):
        return tuple(Call(BOOLEAN, "not", (arg,)) for arg in inner.args)
    return inner.args if term.calls("not") and inner.calls("not") else (term,)


@dataclass
class _Left:
    """What terms leave of the values of one expression: those listed, those between two ends, NULL or no NULL."""

    listed: frozenset[_Value] | None = None
    excluded: frozenset[_Value] = frozenset()
    low: _End | None = None
    high: _End | None = None
    is_null: bool = False
    is_not_null: bool = False

    def with_all_of(self, other: _Left) -> _Left:
        """Return what is left by what left either."""
        found = replace(self)
        if other.listed is not None:
            found.keep(other.listed)
        found.excluded |= other.excluded
        if other.low is not None:
            found.low = other.low if found.low is None else max(found.low, other.low)
        if other.high is not None:
            found.high = other.high if found.high is None else min(found.high, other.high)
        found.is_null |= other.is_null
        found.is_not_null |= other.is_not_null
        return found

    @property
    def is_nothing(self) -> bool:
        """Whether no value is left."""
        if self.is_null and self.is_not_null:
            return True
        if self.listed is not None:
            return not any(self._holds(value) for value in self.listed)
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and not self._holds(self.low[0]))

    def _holds(self, value: _Value) -> bool:
        above = self.low is None or self.low <= (value, 0)
        below = self.high is None or (value, 0) <= self.high
        return above and below and value not in self.excluded

    def compare(self, function: str, value: _Value, is_whole: bool) -> None:
        """Add a comparison with a value; `is_whole`: there are whole numbers alone."""
        if function == "eq":
            self.keep(frozenset({value}))
        elif function == "ne":
            self.excluded |= {value}
        elif isinstance(value, bool):
            return
        elif function in ("gt", "ge"):
            end = (value, int(function == "gt"))
            if is_whole and isinstance(value, Fraction):
                end = (value + end[1], 0)
            self.low = end if self.low is None else max(self.low, end)
        else:
            end = (value, -int(function == "lt"))
            if is_whole and isinstance(value, Fraction):
                end = (value + end[1], 0)
            self.high = end if self.high is None else min(self.high, end)

    def take(self, allowed: Allowed) -> None:
        """Add what a constraint leaves of a value that is not NULL."""
        if allowed.lo is not None:
            self.compare("ge", allowed.lo, is_whole=False)
        if allowed.hi is not None:
            self.compare("le", allowed.hi, is_whole=False)
        if allowed.listed is not None:
            self.keep(allowed.listed)

    def keep(self, values: frozenset[_Value]) -> None:
        """Add a list that holds the value."""
        self.listed = values if self.listed is None else self.listed & values


def _excludes(terms: Sequence[Expr], facts: Facts) -> bool:
    """Say whether terms can never all be true of rows for which the facts hold."""
    left = _left_by(terms)
    if left is None:
        return True
    for expr, what in left.items():
        column = expr.column
        if column is not None:
            what.is_not_null |= column in facts.not_null
            if column in facts.true:
                what.keep(frozenset({True}))
            if column in facts.at_most_one:
                what.compare("le", Fraction(1), is_whole=True)
            if what.is_not_null and column in facts.allowed:
                what.take(facts.allowed[column])
        if what.is_not_null and expr.type.kind is Kind.BOOLEAN:
            what.keep(frozenset({True, False}))
    return any(what.is_nothing for what in left.values())


def _left_by(terms: Sequence[Expr]) -> dict[Expr, _Left] | None:
    """Return what terms leave of the values of each expression; None where they can never all be true."""
    left: dict[Expr, _Left] = {}
    for term in terms:
        if term.is_constant and term.constant in (False, None):
            return None
        if term.column is not None:
            left.setdefault(term, _Left()).keep(frozenset({True}))
        if _is_never_true(term) or (term.calls("not") and term.args[0] in terms):
            return None
        _take(term, left)
    for expr, what in left.items():
        if what.is_not_null and expr.type.kind is Kind.BOOLEAN:
            what.keep(frozenset({True, False}))
    return left


def _is_never_true(term: Expr) -> bool:
    """Say whether a comparison is of NULL, or of a value that differs from itself; `x NOT IN (…, NULL)`."""
    if term.calls("not") and term.args[0].calls("in"):
        return any(map(_is_null, term.args[0].args[1:]))
    if MIRRORED.get(term.function) is None:
        return False
    a, b = term.args
    return _is_null(a) or _is_null(b) or (a == b and term.calls("ne", "lt", "gt"))


def _take(term: Expr, left: dict[Expr, _Left]) -> None:
    """Add what a term leaves of one expression; a term of another form leaves all of it."""
    is_true = not term.calls("not")
    if not is_true:
        (term,) = term.args
        if not term.function:
            left.setdefault(term, _Left()).keep(frozenset({False}))
            return
    expr = term.args[0] if term.args else term
    if term.calls("is_null") and not expr.type.is_float and expr.type.kind is not Kind.NUMERIC:
        what = left.setdefault(expr, _Left())  # NaN is NULL here, and above all numbers in a comparison
        what.is_null, what.is_not_null = what.is_null or is_true, what.is_not_null or not is_true
    elif term.calls("in"):
        listed, are_all = _lists.of(term)
        what = left.setdefault(expr, _Left())
        what.is_not_null = True
        if not is_true:
            what.excluded |= listed
        elif are_all:
            what.keep(listed)
    elif (found := compared(term)) is not None:
        function, expr, other = found
        what = left.setdefault(expr, _Left())
        what.is_not_null = True
        if (value := _value(expr, other)) is not None:
            whole = expr.type.is_integer or expr.type.is_temporal
            what.compare(function if is_true else _OPPOSITE[function], value, whole)


def _listed(term: Expr) -> tuple[frozenset[_Value], bool]:
    """Return the values of `x IN (…)` that are known by the text, and whether these are all but NULL."""
    values = [_value(term.args[0], arg) for arg in term.args[1:] if not _is_null(arg)]
    return frozenset(value for value in values if value is not None), None not in values


_lists = Made(_listed)


def _is_null(expr: Expr) -> bool:
    return expr.is_constant and expr.constant is None


def _value(expr: Expr, literal: Expr) -> _Value | None:
    """Return a literal that an expression is compared with; None for what is not known by the text."""
    if not literal.is_constant or expr.is_constant:
        return None
    alike = expr.type.kind is literal.type.kind or (expr.type.is_number and literal.type.is_number)
    return literal.exact if alike else None
