"""How many rows one person's rows can become: joins that multiply them are cut before, and bounded (law L10).

House rules:

1. A row of a join is made of one row of each source. Where one source determines another, by keys that the
   engine enforces and equalities that are printed (`functional_dependencies`), the other adds no rows. Where neither
   of two private sources does, they multiply, in whatever order the engine joins: each of them is printed as a cut,
   of each owner at most R rows, the policy's bound, *before* the join. Nothing else is cut, and the SQL of
   other statements stays as it was.
2. A cut is a function of one owner's rows: the first R of them in a total order of all columns that are read
   of the source. Or those numbered 1 to R, where the engine holds a person's rows apart by a number, and no filter
   of the source's own reads what a person has several of: it would be of those rows alone. So
   N(D) = ⊎_u N_u(D_u, Pub) still holds (soundness.md 1.10), rows that tie are alike, and all engines keep the same
   ones. A cut leaves rows out, never adds one: keys, identities and claims stay true.
   The final bounding (1.9) stays too: no sensitivity rests on first rows; on numbers one may (1.39).
3. Proof of the bound. Take sources S that an engine may have joined, and those of them, A, that no other of S
   determines: a row of S is determined by its rows of A, so there are at most the product over A of their R.
   `_product` is no smaller for any S: sources are given to one that determines them, and of a source and those
   given to it A has either it, or some of the others. A LEFT or FULL JOIN adds its unmatched rows: a sum there.
4. A public source that no key holds to one row is a `Fan`: beside one, all private sources of many rows are
   cut. Its size is counted, as the owner's engine runs, before anything is charged; rows of an earlier intermediate
   result when they are known. A mark (EXISTS, IN) adds no rows, but where its ON is more than equalities an engine
   looks at all pairs: it is bounded as if it were joined.
5. What a block multiplies to is at most MAX_GROWN. Subqueries multiply, UNION ALL adds, and GROUP BY the owner
   gives one row: `Reach` goes through the outputs of subqueries, and a subquery whose rows are bounded is not
   cut again.
6. Left as it is: what is linear in a person's own rows, and a source that keys determine which an engine joins
   to a public table before the source that determines it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...errors import Position, Refusal
from ...records import dataclass
from ...relation.catalog import Table
from ...relation.expressions import Expr, Field, conjuncts, fields_of, shifted
from ...relation.types import Kind
from .functional_dependencies import Classes, equalities, functional_closure
from .keys import undeclared_rows
from .rows import LINEAR, Fan, Identity, Item, Placed, Reach, Select, Source, fields_in

MAX_GROWN = 10**6
"""Most rows that joins make of one person's rows, and pairs that a mark looks at.

Either engine joins a million rows in about a second, so that one person's part of a statement's time and
memory stays small; the bounds of common policies, some tens of rows, may still be multiplied twice or thrice.
"""


@dataclass(frozen=True)
class Grown:
    """The sources of a block, cut where they multiply; the most rows of one owner in it, and of any join on the way."""

    items: tuple[Item, ...]
    reach: Reach
    works: tuple[Reach, ...]


Path = Callable[[Source], tuple[tuple[Item, ...], tuple[Expr, ...], tuple[Field, ...]]]
"""A source -> it and the tables that lead to its owner, their equalities, the owner."""


def grown(
    items: tuple[Item, ...],
    predicate: tuple[Expr, ...],
    root: Identity,
    path: Path,
    position: Position | None,
) -> Grown:
    """Return the sources with cuts before what multiplies.

    Raises:
        Refusal: PV102 where a source to be cut has no declared bounds, PV201 beyond MAX_GROWN.
    """
    block = _Multiplicity(items, predicate, root)
    costly = block.costly_marks() if block.many or block.fans else []
    if not costly and not block.fans and block.multiplied() == set():
        return Grown(items, block.reach(), ())
    chosen = block.many if costly or block.fans else block.multiplied()
    found = list(items)
    for place in sorted({*chosen, *costly}):
        if items[place].source.is_private and block.size(place).most is None:
            found[place] = cut_before(items, place, predicate, path, position)
    cut = _Multiplicity(tuple(found), predicate, root)
    works = [Reach(cut.product(through=False), cut.all_fans())]
    works += [_times(works[0], cut.size(place)) for place in costly]
    where = [items[place].position for place in sorted({*chosen, *costly}) if items[place].position]
    for work in works:
        _check(work.most, where[-1] if where else position)
    return Grown(cut.items, cut.reach(), tuple(works))


def _check(most: int | None, position: Position | None) -> None:
    assert most is not None
    if most > MAX_GROWN:
        raise Refusal(
            f"one person's rows could become more than {MAX_GROWN} in this join", sqlstate="PV201",
            position=position, hint="aggregate per person first, in a subquery, or join on a key",
        )  # fmt: skip


class _Multiplicity:
    """What determines what among the sources of a block, each row of which matches."""

    def __init__(self, items: tuple[Item, ...], predicate: tuple[Expr, ...], root: Identity) -> None:
        self.items, self.predicate = items, predicate
        self._placed = fields_in(items)
        self._joined = tuple(
            item if item.kind == "mark" else replace(item, kind="inner", on=()) for item in items
        )
        conditions = (term for item in items if item.kind != "mark" for term in item.on)
        written = (*predicate, *conditions)
        self._terms = (*written, *(shared for term in written for shared in _in_all_alternatives(term)))
        self._classes, owners = _classes(self._joined, self._terms, root)
        self._root = root
        known, whole = self._closure(owners)
        private = [p for p, item in enumerate(items) if item.kind != "mark" and item.source.is_private]
        self.many = {
            place
            for place in private
            if not whole[place] and not _is_hop(items[place].source) and not items[place].source.row_tables
        }
        self._determines = {place: self._closure(known | self._own(place))[1] for place in sorted(self.many)}
        self.fans = self._fans(known.union(*(self._own(place) for place in private)))

    def _closure(self, known: set[int]) -> tuple[set[int], list[bool]]:
        return functional_closure(self._joined, self._terms, self._classes, known)

    def _own(self, place: int) -> set[int]:
        return {*self._placed[place].own}

    def multiplied(self) -> set[int]:
        """Return the private sources beside which there is one that neither determines nor is determined."""
        return {a for a in self.many for b in self.many if a != b and not self._related(a, b)}

    def _related(self, a: int, b: int) -> bool:
        return self._determines[a][b] or self._determines[b][a]

    # --- public sources ---------------------------------------------------------------------------

    def _fans(self, known: set[int]) -> tuple[Fan, ...]:
        """Return the public sources that no key holds to one row, one after the other, linked ones first."""
        found: list[Fan] = []
        public = {
            p for p, item in enumerate(self.items) if item.kind != "mark" and not item.source.is_private
        }
        while True:
            known, whole = self._closure(known)
            public -= {place for place in public if whole[place]}
            if not public:
                return tuple(found)
            place = max(public, key=lambda place: (len(self._own(place) & known), -place))
            start = self._placed[place].start
            by = tuple(index - start for index in sorted(self._own(place) & known))
            own = _own_terms(self.items, place, self.predicate)
            found.append(Fan((Item(self.items[place].source),), own, by))
            known |= self._own(place)
            public.remove(place)

    def all_fans(self) -> tuple[Fan, ...]:
        """Return the fans of this block and of the subqueries in it."""
        return (*self.fans, *(fan for place in sorted(self.many) for fan in self.size(place).fans))

    # --- marks --------------------------------------------------------------------------------------

    def costly_marks(self) -> list[int]:
        """Return the marks of many rows whose ON is more than equalities: an engine looks at all pairs."""
        return [
            place
            for place, item in enumerate(self.items)
            if item.kind == "mark" and not self._is_looked_up(self._placed[place])
        ]

    def _is_looked_up(self, mark: Placed) -> bool:
        source, by = mark.item.source, _linked(mark)
        owners = {index for places in source.holds(self._root) for index in places}
        if any(key <= by or key <= owners for key in source.keys):
            return True
        return not _beyond_equalities(mark) or unlike(*mark) is not None

    # --- numbers --------------------------------------------------------------------------------------

    def size(self, place: int) -> Reach:
        """Return the most rows of one owner that are read of a source, or of a mark beside one row."""
        item = self.items[place]
        source = item.source
        if source.most is not None:
            return Reach(source.most)
        if not source.is_private:
            own = _own_terms(self.items, place, self.predicate)
            return Reach(1, (Fan((Item(source),), own, tuple(sorted(_linked(self._placed[place])))),))
        return source.reach

    def reach(self) -> Reach:
        """Return the most rows of one owner in this block."""
        most = self.product(through=True)
        return LINEAR if most is None else Reach(most, self.all_fans())

    def product(self, *, through: bool) -> int | None:
        """Return the product of house rule 3, None for no number; not `through`: of what is cut alone."""
        if any(item.kind == "full" for item in self.items):
            sizes = [self.size(place).most if place in self.many else 1 for place in range(len(self.items))]
            if through and None in sizes:
                return None
            known = [size or 1 for size in sizes]
            return max(math.prod(known), sum(known))
        outer = any(item.kind == "left" for item in self.items)
        return self._product(self.many, through=through, outer=outer)

    def _product(self, places: set[int], *, through: bool, outer: bool) -> int | None:
        """Return the product over sources of which no other determines any, of each the larger of it and the others."""
        # Who determines most comes first, so that what something determines stands under it; where it does
        # not, the product is larger, never smaller. Rows of any join are told apart by sources of which none
        # determines another: of a top and those under it these have the top alone, or some of those under it,
        # hence the larger of the two. An outer join has rows of either kind, matched and not: their sum.
        # `through`: all sources match, and a top says it all.
        given: dict[int, set[int]] = {}
        for place in sorted(places, key=lambda p: (-sum(self._determines[p]), p)):
            first = next((top for top in given if self._determines[top][place]), None)
            if first is None:
                given[place] = set()
            else:
                given[first].add(place)
        product = 1
        for top, under in given.items():
            most = self.size(top).most
            rest = (
                self._product(under, through=through, outer=outer) if under and (outer or not through) else 0
            )
            if through and (most is None or rest is None):
                return None
            product *= (most or 1) + (rest or 0) if outer else max(most or 1, rest or 0)
        return product


def _classes(items: tuple[Item, ...], terms: tuple[Expr, ...], root: Identity) -> tuple[Classes, set[int]]:
    """Return what is equal where everything matches, and the columns that hold the owner."""
    classes = Classes.of(terms)
    owners = [
        tuple(start + index for index in places)
        for item, start in fields_in(items) if item.kind != "mark"
        for places in item.source.holds(root)
    ]  # fmt: skip
    for owner in owners[1:]:
        for first, other in zip(owners[0], owner, strict=True):
            classes.unite(first, other)
    return classes, {index for owner in owners for index in owner}


def _linked(mark: Placed) -> set[int]:
    """Return the columns of a marked source that a bare column of the left row equals."""
    own = mark.inside
    pairs = [pair for pair in equalities(mark.item.on) if (pair[0] in own) != (pair[1] in own)]
    return {index - mark.start for pair in pairs for index in pair if index in own}


def _beyond_equalities(mark: Placed) -> list[Expr]:
    """Return the terms of a mark's ON that are neither over its own columns nor an equality with a column before."""
    own = mark.inside
    return [
        term
        for term in mark.item.on
        if not all(index in own for index in fields_of(term))
        and not any((a in own) != (b in own) for a, b in equalities((term,)))
    ]


def unlike(item: Item, start: int) -> tuple[Expr, Field, Field] | None:
    """Return the `<>` of a mark that asks for nothing else but equalities, its own column and the one before.

    Such a mark is looked up in the least and the greatest value of its column among the rows that are equal in the
    others: some value is unlike x if and only if one of these two is. Of types with one order alone.
    """
    mark = Placed(item, start)
    own, rest = mark.inside, _beyond_equalities(mark)
    if item.kind != "mark" or len(rest) != 1 or not rest[0].calls("ne"):
        return None
    fields = [arg for arg in rest[0].args if isinstance(arg, Field)]
    mine = [field for field in fields if field.index in own]
    if len(fields) != 2 or len(mine) != 1:
        return None
    other = next(field for field in fields if field.index not in own)
    is_ordered = mine[0].type.is_integer and other.type.is_integer
    alike = mine[0].type == other.type and mine[0].type.kind in (Kind.DATE, Kind.TIMESTAMP)
    return (rest[0], mine[0], other) if is_ordered or alike else None


def _in_all_alternatives(term: Expr) -> list[Expr]:
    """Return the terms that every alternative of an OR has: they hold wherever it does."""
    if not term.calls("or"):
        return []
    first, *others = [conjuncts(alternative) for alternative in term.args]
    return [shared for shared in first if all(shared in other for other in others)]


def _is_hop(source: Source) -> bool:
    """Say whether a source was joined to find the owner: it stands beside nothing but what leads to it."""
    return source.table is not None and not source.name


def _own_terms(items: tuple[Item, ...], place: int, predicate: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the filter terms that are over one source's columns alone, as terms over it."""
    placed = fields_in(items)[place]
    terms = predicate if placed.item.kind == "inner" else placed.item.on
    return shifted(placed.all_own(terms), -placed.start)


def cut_before(
    items: tuple[Item, ...], place: int, predicate: tuple[Expr, ...], path: Path, position: Position | None
) -> Item:
    """Return a source that gives at most R rows of an owner. Raises Refusal: PV102 where R is not declared."""
    item = items[place]
    source, most = item.source, item.source.max_rows
    if most is None:
        raise undeclared_rows(source.said, item.position or position, "a join may multiply")
    inside, links, owner = path(source)
    outputs = tuple(Field(column.type, i, column.name) for i, column in enumerate(source.columns))
    own = () if item.kind == "full" else _own_terms(items, place, predicate)
    block = Select(inside, tuple(sorted(dict.fromkeys((*own, *links)), key=repr)), outputs, owner)
    number = None if source.table is None else _number_of(source, source.table, own)
    cut = Source(
        source.name, source.columns, source.keys, source.identities, source.max_rows_per_group,
        source.max_groups, most, parts=(block,), most=most, label=source.label, noted=source.noted, number=number,
    )  # fmt: skip
    return replace(item, source=cut)


def _number_of(source: Source, table: Table, own: Sequence[Expr]) -> str | None:
    """Return the column by which a table's first rows are kept, under filter terms of its own; None: by a hash."""
    if table.unit is None or table.spans is not None:
        return None
    number = table.unit.row_number
    if number is None or number.period is not None:
        return None
    held = frozenset(place for place, name in enumerate(source.shown) if name in table.unit.columns)
    return number.column if fields_of(*own) <= held else None


def sum_of_reaches(parts: Sequence[Reach]) -> Reach:
    """Return the reach of parts that stand one after the other; each fan counts at least one."""
    if any(part.most is None for part in parts):
        return LINEAR
    fans: Counter[Fan] = Counter()
    for part in parts:
        fans |= Counter(part.fans)
    return Reach(sum(part.most or 0 for part in parts), tuple(fans.elements()))


def _times(left: Reach, right: Reach) -> Reach:
    most = None if left.most is None or right.most is None else left.most * right.most
    return Reach(most, (*left.fans, *right.fans))


def joined_rows(reach: Reach) -> int:
    """Return to how many rows joins can multiply one owner's; 1 where nothing does."""
    if reach.fans:
        return MAX_GROWN
    return reach.most or 1
