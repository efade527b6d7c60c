"""Which declared groups can have rows: a group that the statement's own filter excludes does not exist.

The filter and the keys are computed over cells (`cells`) of the columns that the keys read, and of those that a
filter term ties to them. A cell on which the filter is not true has no rows; one on which a key may be several
values, or the filter true or not, is split until it is clear, or can be split no further.

House rules:

1. Text and policy alone decide (law L6): what a column can be comes from its type, its declaration and the
   filter's literals. No row is read.
2. A group is left out only when no row within the declarations can be in it. Whoever is in doubt, or has looked
   at `MOST_CELLS`, leaves it in.
3. What is left out is not released at all: sensitivities are those of the groups that are left (soundness.md 1.7).
4. Cells hold texts as they are read, and two columns are compared whole (soundness.md 1.17): what a term says of two
   that may be longer than they are read to is left out, and what a key says of them is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...relation.calendar import parse_date, parse_timestamp
from ...relation.catalog import Scalar
from ...relation.expressions import (
    Call,
    Expr,
    Field,
    LiteralValue,
    fields_of,
    map_children,
    moved,
    walk,
)
from ...relation.facts import intersect
from ...relation.intervals import Environment, facts_of
from ...relation.size_rules import is_cut, read_length
from ...relation.types import BOOLEAN, Kind, SqlType
from .cells import Evaluation, OneOf, Part, Span, Value, compiled, point
from .functional_dependencies import Classes, equalities
from .spaces import Listed, Space, space_of

__all__ = [
    "MOST_CELLS",
    "Looking",
    "can_be",
    "is_clear",
    "is_possible",
    "key_of",
    "linked",
    "literals_beside",
    "reached",
]

MOST_CELLS = 50_000
"""Most cells that are looked at for one list of groups: a second or so."""
_MOST_IN_ALL = 100_000
"""Most of them for one statement, whatever it is made of."""
_MOST_LITERALS = 200
_MOST_SCANNED = 2_000
"""Most groups that a cell with an unclear key is compared with."""

Group = tuple[Scalar, ...]


@dataclass
class Looking:
    """How many cells a statement may still look at: by its text alone, since its parts come in order."""

    left: int = _MOST_IN_ALL


def reached(
    keys: Sequence[Expr], groups: Sequence[Group], env: Environment, terms: Sequence[Expr], looking: Looking
) -> list[Group]:
    """Return those of some groups that rows can be in, in their order.

    `terms`: the AND terms of the filter; `env`: what is known of the columns, by these terms too.
    """
    terms = [term for term in terms if fields_of(term)]
    longest = _longest_text((*keys, *terms), env, (value for group in groups for value in group))
    terms = [term for term in terms if not _is_of_whole_texts(term, env, longest)]
    keys = [_as_read(key, env, longest) for key in keys]
    if not terms or not groups or not fields_of(*keys):
        return list(groups)
    keys, terms, env = _over_one_of_each(keys, terms, env)
    types = [key.type for key in keys]
    spelled = {_canonical(group, types): group for group in groups}
    wanted = list(spelled)
    if {part for term in terms for part in walk(term) if part.args}.intersection(keys):
        own = [Listed(tuple(dict.fromkeys(_value(group[i]) for group in wanted))) for i in range(len(keys))]
        found = _Search(keys, wanted, terms, dict(zip(keys, own, strict=True))).run(looking)
        wanted = wanted if found is None else found
    read = fields_of(*keys)
    for columns in (_tied(read, terms), read):
        found = _Search(keys, wanted, terms, _spaces(columns, keys, terms, env)).run(looking)
        if found is not None:
            wanted = found
            break
    return [spelled[group] for group in wanted]


def is_possible(env: Environment, terms: Sequence[Expr], looking: Looking) -> bool:
    """Say whether some row can pass a filter, as far as that is found out."""
    longest = _longest_text(terms, env)
    _, terms, env = _over_one_of_each(
        (), [term for term in terms if not _is_of_whole_texts(term, env, longest)], env
    )
    left = {index for term in terms for index in fields_of(term)}
    while left:
        columns = _tied(frozenset({min(left)}), terms)
        left -= columns
        if _Search((), [()], terms, _spaces(columns, (), terms, env)).run(looking) == []:
            return False
    return True


def linked(keys: Sequence[Expr], terms: Sequence[Expr]) -> list[list[int]]:
    """Return the keys, by number, in parts that no filter term and no column ties to each other."""
    classes = Classes()
    for columns in map(fields_of, (*terms, *keys)):
        for index in columns:
            classes.unite(min(columns), index)
    parts: dict[int, list[int]] = {}
    for number, key in enumerate(keys):
        columns = fields_of(key)
        parts.setdefault(classes.find(min(columns)) if columns else -1 - number, []).append(number)
    return list(parts.values())


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


def _as_read(key: Expr, env: Environment, longest: int) -> Expr:
    """Return a key in which what compares such columns is a function of them of which nothing is known."""
    if isinstance(key, Call) and _compares_whole_texts(key, env, longest):
        return replace(key, function=f"whole {key.function}")
    return map_children(key, lambda part: _as_read(part, env, longest))


def _compares_whole_texts(part: Expr, env: Environment, longest: int) -> bool:
    texts = [env.declared(arg) for arg in part.args if arg.type.kind is Kind.TEXT]
    columns = [column for column in texts if column is not None]
    return (
        part.type == BOOLEAN
        and len(columns) > 1
        and any(is_cut(one) and read_length(one) <= longest for one in columns)
    )


def _tied(read: frozenset[int], terms: Sequence[Expr]) -> frozenset[int]:
    """Return the columns that terms tie to some columns, those among them."""
    while True:
        more = read.union(*(columns for term in terms if (columns := fields_of(term)) & read))
        if more == read:
            return read
        read = more


def _spaces(
    columns: frozenset[int], keys: Sequence[Expr], terms: Sequence[Expr], env: Environment
) -> dict[Expr, Space]:
    parts = {part: None for expr in (*keys, *terms) for part in walk(expr)}
    found: dict[Expr, Space] = {}
    for part in parts:
        if isinstance(part, Field) and part.index in columns:
            literals, ends = literals_beside(part, parts)
            space = space_of(part, env, literals, ends, is_key=part in keys)
            if space is not None:
                found[part] = space
    return found


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


def _canonical(group: Group, types: Sequence[SqlType]) -> Group:
    return tuple(_read(value, type_) for value, type_ in zip(group, types, strict=True))


def _read(value: Scalar, type_: SqlType) -> Scalar:
    if isinstance(value, str) and type_.is_temporal:
        return parse_date(value) if type_.kind is Kind.DATE else parse_timestamp(value)
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _value(value: Scalar) -> Value:
    return value if value is None or isinstance(value, (bool, str)) else point(value)


class _Search:
    """A walk over the cells of a few variables, for the groups that some cell has."""

    def __init__(
        self, keys: Sequence[Expr], wanted: Iterable[Group], terms: Sequence[Expr], spaces: dict[Expr, Space]
    ) -> None:
        self.wanted = list(wanted)
        self.missing = dict.fromkeys(self.wanted)
        self.spaces = list(spaces.values())
        slots = {expr: number for number, expr in enumerate(spaces)}
        self.keys = [_prepared(key, slots) for key in keys]
        self.terms = [one for one in (_prepared(term, slots) for term in terms) if one[1]]

    def run(self, looking: Looking) -> list[Group] | None:
        """Return the wanted groups that rows can be in; None where that takes too long."""
        whole: tuple[Value, ...] = (Part.UNKNOWN,) * len(self.spaces)
        stack, count = [whole], 0
        while stack and self.missing:
            cell, count = stack.pop(), count + 1
            looking.left -= 1
            if count > MOST_CELLS or looking.left < 0:
                return None
            stack += self._look_at(cell)
        return [group for group in self.wanted if group not in self.missing]

    def _look_at(self, cell: tuple[Value, ...]) -> list[tuple[Value, ...]]:
        """Take a cell's groups out of those that are missing, or return the parts that it is split into."""
        unclear: list[int] = []
        for evaluate, slots in self.terms:
            truth = evaluate(cell)
            if truth is not True:
                if not can_be(truth, True):
                    return []
                unclear += slots
        shown = [evaluate(cell) for evaluate, _ in self.keys]
        for (_, slots), value in zip(self.keys, shown, strict=True):
            if not is_clear(value):
                unclear += slots
        if not self._may_be_missing(shown):
            return []
        for slot in sorted(set(unclear), key=lambda slot: _rank(cell[slot])):
            parts = self.spaces[slot].split(cell[slot])
            if parts or cell[slot] is Part.UNKNOWN:
                return [(*cell[:slot], part, *cell[slot + 1 :]) for part in reversed(parts)]
        for group in list(self._matches(shown)):
            del self.missing[group]
        return []

    def _may_be_missing(self, shown: list[Value]) -> bool:
        if not all(map(is_clear, shown)) and len(self.missing) > _MOST_SCANNED:
            return True
        return next(self._matches(shown), None) is not None

    def _matches(self, shown: list[Value]) -> Iterator[Group]:
        """Yield the missing groups that a cell's keys can be."""
        if all(map(is_clear, shown)):
            group = tuple(map(key_of, shown))
            if group in self.missing:
                yield group
            return
        for group in self.missing:
            if all(can_be(value, key) for value, key in zip(shown, group, strict=True)):
                yield group


def _prepared(expr: Expr, slots: dict[Expr, int]) -> tuple[Evaluation, list[int]]:
    """Return what computes an expression over a cell, and the variables that it reads."""
    return compiled(expr, slots), sorted({slots[part] for part in walk(expr) if part in slots})


def _rank(value: Value) -> int:
    """Return which of a cell's values is split first: what is whole."""
    return 0 if value is Part.UNKNOWN else 1


def is_clear(value: Value) -> bool:
    """Say whether a key is one value, or none that a group has."""
    return value is None or isinstance(value, (bool, str)) or (isinstance(value, Span) and value.is_point)


def key_of(value: Value) -> Scalar:
    """Return a clear value as a group has it."""
    if isinstance(value, Span):
        number = Fraction(value.lo)
        return int(number) if number.denominator == 1 else number
    assert value is None or isinstance(value, (bool, str))
    return value


def can_be(value: Value, key: Scalar) -> bool:
    if isinstance(value, OneOf):
        return any(can_be(one, key) for one in value.values)
    if isinstance(value, Span):
        return key is not None and not isinstance(key, (bool, str)) and value.lo <= key <= value.hi
    if value is Part.UNKNOWN:
        return True
    return is_clear(value) and value == key
