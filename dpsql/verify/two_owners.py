"""Rows of two owners: a row of one, joined with what it points at, which is another's (soundness.md 1.38, 5.6).

`first_rows` derives in how many rows the results over two neighbours differ, `clamped_cells` whose counts are cut by
their norm; `References` holds every declared
reference to be read in one way alone, equal to the key that it refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dpsql.verify.certificate import ForeignKey
from dpsql.verify.read import columns_of, ordered
from dpsql.verify.relations import UNIT, Joined, Relations
from dpsql.verify.terms import Pool, Refused, Term, walk

_Said = tuple[Term, ForeignKey | None, str]


class _Kept(NamedTuple):
    """R, the owner, the order, what is shown, and J; `is_exact`: rows that tie would all be kept."""

    most: int
    owner: tuple[Term, ...]
    order: list[Term]
    shown: list[Term]
    joined: Term
    is_exact: bool


@dataclass(frozen=True)
class TwoOwners:
    """The most rows of one owner before the lookup, and of those joined of each who is pointed at."""

    first: int
    most: int

    @property
    def apart(self) -> int:
        return 2 * self.first + self.most


def first_rows(pool: Pool, relations: Relations, block: Term) -> TwoOwners | None:
    """Lemma *lookup*; None where a block is of no such pattern, or of one owner's rows.

    Premise: a union of the rows of J of owners b who have at most R_b rows there, and of the first R_b of who has more,
    in an order of J's rows that is total, or in which rows that tie are alike. J joins a relation of owners a, each of
    whom has at most R_a rows there, with tables of which each row of that relation has one row at most, by equal
    columns and conditions of the joined row alone; the private ones are a's, or another owner's b, who is never NULL.
    Conclusion: neighbours' results differ in `2·R_a + R_b` rows at most, R_a + R_b that go and R_a that come. Why: 1.38
    """
    members = _members(block)
    if members is None:
        return None
    few, many = members
    found = _cut_at(pool, relations, few, many)
    if found is None:
        return None
    most, owner, order, shown, inner, is_exact = found
    looked = _looked_up(relations, inner, owner, [*order, *shown])
    if looked is None:
        return None
    joined, first = looked
    _, told = relations.closure(joined, order)
    if told != set(joined.block.args[0]):
        if is_exact:
            raise Refused("lookup: an order of rows is total")
        basis = {relations.bare(term) for term in (*owner, *order) if relations.alike_where_equal(term)}
        if not all(relations.bare(term) in basis for term in shown):
            raise Refused("lookup: an order of rows is total")
    return TwoOwners(first, most)


class Cells(NamedTuple):
    """R_a; the most rows of a b whose counts are as they are; b; c, the counts of the others by b and keys, and q, what
    is made of each b's: sources of the second part."""

    first: int
    few: int
    owner: tuple[Term, ...]
    cells: Term
    made: Term


def clamped_cells(
    pool: Pool, relations: Relations, light: Term, heavy: Term, terms: Sequence[Term]
) -> Cells | None:
    """The pattern of lemma *clamp*; None where the second block joins no cells with what is made of them.

    Premise: the first block has the rows of J of the b who have R rows there at most; the second joins c with q by b, c
    groups the rows of J of all other b by b and keys, and q groups c by b. J and its owners are those of *lookup*;
    `terms`: what else is read of its rows.
    """
    pair = _cells_and_made(heavy)
    if pair is None:
        return None
    refused = Refused("clamp: cells by who is pointed at")
    cells, made = pair
    found = _few(pool, relations, light)
    if found is None:
        return None
    few, owner, relation, inner = found
    block, keys, _, columns = cells.args[0].args
    beside = [one for one in block.args[0] if one.args[0] is relation]
    if len(beside) != 1 or beside[0] in dict(block.args[1]):
        raise refused
    on = [one for one in block.args[2] if beside[0] in one.free]
    rest = pool(
        "block",
        tuple(one for one in block.args[0] if one is not beside[0]),
        block.args[1],
        tuple(one for one in block.args[2] if one not in on),
    )
    if rest is not inner or not relations.matches_owner(on, beside[0], relation, owner):
        raise refused
    shown, below = dict(columns), made.args[0].args[0].args[0][0]
    by = {
        name: shown.get(term.args[1])
        for name, term in columns_of(made.args[0]).items()
        if term in made.args[0].args[1] and term.op == "col" and term.args[0] is below
    }
    matched = set()
    for one in heavy.args[2]:
        sides = {
            side.args[0]: side.args[1] for side in one.args if isinstance(side, Term) and side.op == "col"
        }
        if one.op != "eq" or set(sides) != {cells, made} or by.get(sides[made]) is not shown[sides[cells]]:
            raise refused
        matched.add(shown[sides[cells]])
    is_by_owner = matched == set(owner) == set(by.values()) and set(owner) <= set(keys)
    if not is_by_owner or len(made.args[0].args[1]) != len(owner) or made.args[0].args[2]:
        raise refused
    looked = _looked_up(relations, inner, owner, terms)
    if looked is None:
        raise refused
    return Cells(looked[1], few, owner, cells, made)


def _cells_and_made(block: Term) -> tuple[Term, Term] | None:
    """(c, q) of a block that is a grouping c joined with a grouping q of the rows of c."""
    sources, outer, _ = block.args
    if len(sources) != 2 or outer or any(one.args[0].op != "agg" for one in sources):
        return None
    for cells, made in (sources, sources[::-1]):
        below = made.args[0].args[0]
        if (
            len(below.args[0]) == 1
            and below.args[0][0].args[0] is cells.args[0]
            and below.args[1:] == ((), ())
        ):
            return cells, made
    return None


def _few(pool: Pool, relations: Relations, block: Term) -> tuple[int, tuple[Term, ...], Term, Term] | None:
    """(R, owner, heavy, J) of a block with the rows of J of owners who have R there at most, not listed in heavy."""
    denied = [one for one in block.args[2] if one.op == "not" and one.args[0].op == "exists"]
    if len(denied) != 1:
        return None
    heavies, none, matched = denied[0].args[0].args[0].args
    if len(heavies) != 1 or none or heavies[0].args[0].op != "agg":
        return None
    heavy: Term = heavies[0].args[0]
    inner, owner, having, _ = heavy.args
    sources, outer, conditions = inner.args
    if block is not pool("block", sources, outer, ordered([*conditions, denied[0]])):
        return None
    if not relations.matches_owner(matched, heavies[0], heavy, owner):
        return None
    number = relations.number(having[0].args[0]) if len(having) == 1 and having[0].op == "lt" else None
    if number is None or having[0].args[1] is not pool("count*", ()):
        return None
    return number, owner, heavy, inner


def _looked_up(
    relations: Relations, inner: Term, owner: Sequence[Term], terms: Sequence[Term]
) -> tuple[Joined, int] | None:
    """J looked at, and R_a; None where it is one owner's. Premise: `owner` is who is pointed at, never NULL."""
    joined, groups = _owners(relations, inner)
    if len(groups) < 2:
        return None
    if len(groups) > 2:
        raise Refused("lookup: rows of two owners")
    _is_plain(inner, [*owner, *terms])
    theirs = [
        number
        for number, sources in enumerate(groups)
        for source in sources
        for kind, ones in map(joined.canonical, relations.identities(source))
        if kind == UNIT and set(ones) == {joined.find(relations.bare(term)) for term in owner}
    ]
    if len(set(theirs)) != 1 or not all(relations.sure(term, joined) for term in owner):
        raise Refused("lookup: rows are kept by who is pointed at")
    return joined, _fan_of_one(relations, joined, groups[1 - theirs[0]])


def _members(block: Term) -> tuple[Term, Term] | None:
    """The two members of a union that a block is all rows of: who has few rows, who has more."""
    sources, outer, conditions = block.args
    if len(sources) != 1 or outer or conditions or sources[0].args[0].op != "union":
        return None
    members = sources[0].args[0].args[0]
    if len(members) != 2 or any(one.op != "select" for one in members):
        return None
    return members[0], members[1]


def _cut_at(pool: Pool, relations: Relations, few: Term, many: Term) -> _Kept | None:
    """The rows of J of owners with at most R, and the first R of the others; None where these are no such rows."""
    found = _few(pool, relations, few.args[0])
    if found is None:
        return None
    number, owner, heavy, inner = found
    sources, outer, conditions = inner.args
    exists = next(
        one.args[0] for one in few.args[0].args[2] if one.op == "not" and one.args[0].op == "exists"
    )
    if (cut := relations.last_kept(many.args[0])) is not None:
        same = cut.heavy is heavy and cut.rows is inner and cut.most == number
        if not same or dict(few.args[1]) != dict(many.args[1]):
            return None
        return _Kept(number, owner, [cut.order], [term for _, term in few.args[1]], inner, True)
    [window] = many.args[0].args[0] if len(many.args[0].args[0]) == 1 else [None]
    if window is None or window.args[0].op != "window" or many.args[0].args[1]:
        return None
    if window.args[0].args[0] is not pool("block", sources, outer, ordered([*conditions, exists])):
        return None
    columns = columns_of(window.args[0])
    rank = many.args[0].args[2]
    if len(rank) != 1 or rank[0].op != "le" or relations.number(rank[0].args[1]) != number:
        return None
    ranked = rank[0].args[0]
    over = columns[ranked.args[1]] if ranked.op == "col" and ranked.args[0] is window else None
    if over is None or over.op != "over" or over.args[0].args[0] != "ROWNUMBER":
        return None
    if set(over.args[1]) != set(owner):
        return None
    shown = []
    passed = dict(many.args[1])
    for name, term in few.args[1]:
        other = passed.get(name)
        if other is None or other.op != "col" or other.args[0] is not window:
            return None
        if columns[other.args[1]] is not term:
            return None
        shown.append(term)
    if len(passed) != len(few.args[1]):
        return None
    return _Kept(number, owner, [one for one, _, _ in over.args[2]], shown, inner, False)


def _owners(relations: Relations, block: Term) -> tuple[Joined, list[list[Term]]]:
    """A join looked at, and its owned sources: together those that are one owner's, by identities that meet."""
    block = relations.inner(block)
    joined, outer = Joined(block), dict(block.args[1])
    relations.equate(joined, [one for one in block.args[0] if one not in outer], block.args[2])
    joined.public = False
    left = [one for one in block.args[0] if one not in outer and relations.identities(one)]
    groups: list[list[Term]] = []
    while left:
        group = [left.pop(0)]
        while near := [one for one in left if _meet(relations, joined, one, group)]:
            group += near
            left = [one for one in left if one not in near]
        groups.append(group)
    return joined, groups


def _meet(relations: Relations, joined: Joined, source: Term, group: Sequence[Term]) -> bool:
    """Whether an identity of a source is one of those of others."""
    own = {joined.canonical(one) for one in relations.identities(source)}
    return any(joined.canonical(one) in own for other in group for one in relations.identities(other))


def _is_plain(block: Term, terms: Sequence[Term]) -> None:
    """Premise: nothing but tables and relations of one owner, joined; right sides of LEFT JOINs are public."""
    _, outer, conditions = block.args
    if any(term.nests or term.gathers for term in (*conditions, *terms)):
        raise Refused("lookup: conditions are of the joined row alone")
    if any(term.nests for _, on in outer for term in on):
        raise Refused("lookup: conditions are of the joined row alone")


def _fan_of_one(relations: Relations, joined: Joined, own: Sequence[Term]) -> int:
    """R_a: of a source among a's of which each owner has so many rows, and whose row determines all other sources'."""
    sources, outer, _ = joined.block.args
    if any(relations.identities(source) for source, _ in outer):
        raise Refused("lookup: right sides of LEFT JOINs are public")
    for source in own:
        most = relations.size(source, joined)
        _, told = relations.closure(joined, relations.columns(source).values())
        if most is not None and told | {source} == set(sources):
            return most
    raise Refused("lookup: a row of an owner with few gives one joined row")


class References:
    """Declared references of a query's tables are read as equal to their key, and in no other way.

    `is_looked_up`: they may be; not where undated rows of who is pointed at stand as nobody's, or are not charged
    (1.40).
    """

    def __init__(self, relations: Relations, *, is_looked_up: bool = True) -> None:
        self.facts, self.is_looked_up = relations.facts, is_looked_up
        self._bare, self._number = relations.bare, relations.number
        self._said: dict[Term, _Said | None] = {}

    def check(self, relation: Term) -> None:
        """Premise: a column that refers to a person's row is passed on as it is, orders a ROW_NUMBER of which is asked
        alone whether it is at most a number, or is equated, all columns of the reference together, with the key that it
        refers to, in WHERE or the ON of a join; each of them bare, or under casts that tell all its values apart. Why:
        nothing else of a row then says whom it points at, but that it is among its owner's first."""
        if not any(table.also for table in self.facts.tables.values()):
            return
        seen: set[Term] = set()
        stack = [relation]
        while stack:
            one = stack.pop()
            if one in seen:
                continue
            seen.add(one)
            if one.op == "src":
                stack += [] if one.args[0].op == "table" else [one.args[0]]
                continue
            stack += [part for part in self._read(one) if part.op != "col"]
            stack += [part.args[0] for part in one.inner if part.op == "col"]
            for part in self._read(one):
                if self._refers(part) is not None:
                    raise Refused("references: read as equal to their key alone", repr(one)[:200])

    def _read(self, term: Term) -> Iterator[Term]:
        """What a term is made of, without the ways in which a reference may be read."""
        if term.op in ("select", "window"):
            yield term.args[0]
            yield from (one for _, one in term.args[1] if self._refers(one) is None)
        elif term.op == "block":
            yield from term.args[0]
            yield from (one for _, on in term.args[1] for one in on)
            allowed = self._equated(term.args[2])
            yield from (one for one in term.args[2] if one not in allowed and not self._is_cut(one))
        elif term.op == "over" and term.args[0].args[0] == "ROWNUMBER":
            yield term.args[0]
            yield from term.args[1]
        else:
            yield from term.inner

    def _is_cut(self, condition: Term) -> bool:
        """Whether it keeps the first rows of an order that reads references."""
        if condition.op != "le" or self._number(condition.args[1]) is None:
            return False
        said = self._refers(condition.args[0])
        return said is not None and said[1] is None

    def _equated(self, conditions: Sequence[Term]) -> set[Term]:
        """The conditions that equate whole references with the keys that they refer to."""
        found: dict[tuple[Term, ForeignKey, Term], dict[str, Term]] = {}
        for one in conditions if self.is_looked_up and conditions else ():
            sides = tuple(map(self._bare, one.args)) if one.op == "eq" else ()
            for side, other in (sides, sides[::-1]) if sides else ():
                said = self._refers(side)
                if said is None or other.op != "col" or other.args[0].args[0].op != "table":
                    continue
                source, key, column = said
                if key is None:
                    continue
                wanted = dict(zip(key.columns, key.referenced, strict=True))[column]
                if other.args[0].args[0].args[0] == key.table and other.args[1] == wanted:
                    found.setdefault((source, key, other.args[0]), {})[column] = one
        return {
            condition
            for (_, key, _), pairs in found.items()
            if set(pairs) == set(key.columns)
            for condition in pairs.values()
        }

    def _refers(self, term: Term) -> _Said | None:
        """(source, reference, its column) of a column that refers to a person's row, passed on or not; a ROW_NUMBER in
        an order that reads such columns has None for the reference."""
        term = self._bare(term) if term.op == "cast" else term
        if term.op != "col":
            return None
        if term not in self._said:
            self._said[term] = self._refer(term)
        return self._said[term]

    def _refer(self, term: Term) -> _Said | None:
        source, name = term.args
        relation = source.args[0]
        if relation.op == "table":
            for key in self.facts.tables[relation.args[0]].also:
                if name in key.columns:
                    return source, key, name
            return None
        if relation.op == "full":
            side, _, inner = name.partition(".")
            return self._below(source, columns_of(relation.args[int(side)]).get(inner)) if inner else None
        for member in relation.args[0] if relation.op == "union" else (relation,):
            below = columns_of(member).get(name) if member.op in ("select", "window", "agg") else None
            if (said := self._below(source, below)) is not None:
                return said
        return None

    def _below(self, source: Term, term: Term | None) -> _Said | None:
        said = None if term is None else self._refers(term)
        if term is not None and term.op == "over":
            said = (source, None, "") if self._reads(one for one, _, _ in term.args[2]) else None
        return None if said is None else (source, *said[1:])

    def _reads(self, terms: Iterable[Term]) -> bool:
        """Whether some term reads a reference."""
        return any(self._refers(part) is not None for one in terms for part in walk(one))
