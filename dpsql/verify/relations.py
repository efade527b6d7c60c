"""Whose rows: owners, keys and how many rows an owner has, derived from the printed relation and enforced keys.

A relation is public, or **owned**: the disjoint union, over owners, of functions of one owner's rows and of public
ones. An *identity* says where an owner is read off: `(UNIT, values)`, the owner itself, or `((table, key),
values)`, the owner of the one row of a private table that has those values for an enforced key. Two sources are one
owner's where an identity of the one has, by printed equalities, the values of an identity of the other, of the same
kind. Everything that is not one of the rules below is refused (soundness.md 1.10, 1.12, 5.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import NamedTuple

from dpsql.verify.certificate import Facts
from dpsql.verify.read import columns_of, ordered
from dpsql.verify.terms import AGGREGATES, Pool, Refused, Term, walk
from dpsql.verify.values import Values

Kind = tuple[str, ...]
UNIT: Kind = ("unit",)
ROW: tuple[Kind, tuple[()]] = (("row",), ())
"""Rows that are owners themselves: no two are of one owner, and no other identity is met."""
HIDDEN: tuple[Kind, tuple[()]] = (("hidden",), ())
"""Rows that have owners, of whom no column speaks: it meets no other identity."""
Identity = tuple[Kind, tuple[Term, ...]]
_EXACT = {"int", "decimal", "text", "bool", "date", "timestamp", "timestamptz", "uuid", "enum"}
_PEERS = ("", "ROWS UNBOUNDED PRECEDING UNBOUNDED FOLLOWING")
"""Frames that are the same for rows that tie."""


@dataclass(frozen=True)
class Rows:
    """What is known of a relation: identities by output columns (none: public), and the most rows of an owner."""

    identities: tuple[tuple[Kind, tuple[str, ...]], ...]
    mult: int | None

    @property
    def public(self) -> bool:
        return not self.identities


@dataclass
class Joined:
    """A block looked at: classes of equal columns, identities of its rows, what is established not to be NULL."""

    block: Term
    parent: dict[Term, Term] = field(default_factory=dict)
    constants: set[Term] = field(default_factory=set)
    established: set[Term] = field(default_factory=set)
    identities: list[Identity] = field(default_factory=list)
    public: bool = True

    def find(self, term: Term) -> Term:
        """The representative of a term's class."""
        while (above := self.parent.get(term)) is not None:
            term = above
        return term

    def unite(self, one: Term, other: Term) -> bool:
        """Makes one class of two; whether they were two."""
        one, other = self.find(one), self.find(other)
        if one is not other:
            self.parent[one] = other
        return one is not other

    def canonical(self, identity: Identity) -> Identity:
        return identity[0], tuple(self.find(term) for term in identity[1])


class CutOff(NamedTuple):
    """Of the rows of a block those of owners in `heavy` up to the `most`-th least `order` of each."""

    most: int
    owner: tuple[Term, ...]
    order: Term
    heavy: Term
    rows: Term


class Relations:
    """The rules, over one set of facts."""

    def __init__(self, pool: Pool, values: Values, facts: Facts) -> None:
        self.pool = pool
        self.values = values
        self.facts = facts
        self._rows: dict[Term, Rows] = {}
        self._joined: dict[Term, Joined] = {}
        self._columns: dict[Term, dict[str, Term]] = {}

    # --- relations ---

    def rows(self, relation: Term) -> Rows:
        """The rule of a relation's operator."""
        known = self._rows.get(relation)
        if known is None:
            rule = getattr(self, f"_{relation.op}", None)
            if rule is None:
                raise Refused("relations: an operator with a rule", relation.op)
            known = self._rows[relation] = rule(relation)
        return known

    def _table(self, relation: Term) -> Rows:
        """Premise: the table is public, or says its unit; a way's next key is enforced unique. Conclusion:
        public, or owned. Why: a row has one owner, since the key that it names has one row."""
        table = self.facts.tables[relation.args[0]]
        if table.unit is None:
            return Rows((), None)
        found: list[tuple[Kind, tuple[str, ...]]] = []
        if not table.unit.columns:
            return Rows((ROW,), 1)
        if table.unit.table is None:
            found.append((UNIT, table.unit.columns))
        else:
            above = self.facts.tables[table.unit.table]
            if set(table.unit.referenced) not in [set(key) for key in above.unique] or above.unit is None:
                raise Refused("relations: a key on the way to the unit is enforced", relation.args[0])
            self.rows(self.pool("table", table.unit.table))
            pairs = sorted(zip(table.unit.referenced, table.unit.columns, strict=True))
            kind = ("key", table.unit.table, *(one for one, _ in pairs))
            found.append((kind, tuple(column for _, column in pairs)))
        for key in table.unique:
            found.append((("key", relation.args[0], *sorted(key)), tuple(sorted(key))))
        single = table.unit.table is None and any(set(key) <= set(table.unit.columns) for key in table.unique)
        return Rows(tuple(found), 1 if single else None)

    def _public(self, relation: Term) -> Rows:
        """Premise: no FROM. Conclusion: public. Why: constants and parameters, of which claims hold for each
        value."""
        for _, term in relation.args[0]:
            if term.free or any(one.op in AGGREGATES or one.op in ("exists", "scalar") for one in walk(term)):
                raise Refused("relations: an operator with a rule", "aggregates of nothing")
        return Rows((), None)

    def _select(self, relation: Term) -> Rows:
        """Premise: a block of one owner. Conclusion: owned, by what is exposed of its identities. Why: a row
        function."""
        block, columns = relation.args
        joined = self.joined(block)
        self.subqueries((term for _, term in columns), joined)
        return Rows(self._exposed(joined, dict(columns)), self.mult(relation))

    def _exposed(self, joined: Joined, columns: dict[str, Term]) -> tuple[tuple[Kind, tuple[str, ...]], ...]:
        """The identities of which each value is a column."""
        if joined.public:
            return ()
        place: dict[Term, str] = {}
        for name, term in columns.items():
            place.setdefault(joined.find(self.bare(term)), name)
        found = [
            (kind, tuple(place[one] for one in classes))
            for kind, classes in dict.fromkeys(joined.canonical(one) for one in joined.identities)
            if all(one in place for one in classes)
        ]
        return tuple(found) or (HIDDEN,)

    def _agg(self, relation: Term) -> Rows:
        """Premise: the keys have an identity of the block, not NULL; sums are of integers or decimals. Conclusion:
        owned, a row for each owner and other keys. Why: a group is of one owner's rows, and its aggregates are of
        their bag."""
        block, keys, having, columns = relation.args
        joined = self.joined(block)
        terms = [*keys, *having, *(term for _, term in columns)]
        self.subqueries((one.args[1] if one.args[:1] == ("EXPLODE",) else one for one in terms), joined)
        self.aggregates(terms)
        for key in keys:
            if self.values.type(key)[0] == "float":
                raise Refused("relations: a group's key is no double", repr(key)[:200])
        if joined.public:
            return Rows((), 1 if not keys else None)
        held = {joined.find(self.bare(key)): key for key in keys}
        whole = [
            one for one in joined.identities if one[1] and all(joined.find(term) in held for term in one[1])
        ]
        if not any(
            all(self._tells(held[joined.find(t)], kind, joined) for t in terms) for kind, terms in whole
        ):
            raise Refused("relations: GROUP BY has the owner", "among its keys, not NULL")
        kept = {name: term for name, term in columns if term in keys}
        return Rows(self._exposed(joined, kept), self.mult(relation))

    def _tells(self, key: Term, kind: Kind, joined: Joined) -> bool:
        """Whether a key that is NULL is nobody's: of the owner itself, read as it is; else it is never NULL."""
        read = walk(key, lambda one: one.op in ("cast", "fn"))
        as_it_is = kind == UNIT and all(one.op in ("cast", "col") for one in read)
        return as_it_is or self.sure(key, joined)

    def aggregates(self, terms: Iterable[Term]) -> None:
        """Premise of every aggregate of rows: what is added up is exact, and of what is compared equal values are
        alike, since which of them is shown depends on how rows lie."""
        for term in terms:
            for one in walk(term) if term.gathers else ():
                if one.op == "sum" and self.values.type(one.args[0])[0] not in ("int", "decimal"):
                    raise Refused("relations: a sum is of integers or decimals", repr(one)[:200])
                if one.op in ("min", "max", "lowest") and not self.alike_where_equal(one.args[0]):
                    raise Refused("relations: MIN and MAX are of an exact order", repr(one)[:200])

    def alike_where_equal(self, term: Term) -> bool:
        """Whether equal values are one value. Of doubles 0 and -0 are two, and NaNs are: none is there, or nothing
        that is printed tells them apart (V6)."""
        kind = self.values.type(term)
        if term.op == "struct":
            return all(self.alike_where_equal(one) for one in term.args[1:])
        if kind[0] == "float":
            ends = self.values.ends(term)
            apart = (ends.low or 0) > 0 or (ends.high or 0) < 0
            return not self.values.spells_doubles or (apart and None not in (ends.low, ends.high))
        return kind[0] in (*_EXACT, "null") and kind != ("decimal", None, None)

    def _window(self, relation: Term) -> Rows:
        """Premise: PARTITION BY has an identity of the block; rows that tie are alike in all that is shown, or the
        order determines the row. Conclusion: owned, the same rows. Why: numbers are of one owner's rows, and of
        nothing else."""
        block, columns = relation.args
        joined = self.joined(block)
        shown = [term for _, term in columns]
        self.subqueries(shown, joined)
        self.aggregates(shown)
        for term in shown:
            for over in (one for one in walk(term) if one.op == "over"):
                self._partition(over, joined, [one for one in shown if one.op != "over"])
        plain = {name: term for name, term in columns if term.op != "over"}
        return Rows(self._exposed(joined, plain), self.mult(relation))

    def _partition(self, over: Term, joined: Joined, shown: Sequence[Term]) -> None:
        function, partition, order, frame = over.args
        if joined.public:
            return
        held = {joined.find(self.bare(one)) for one in partition if self.sure(one, joined)}
        if not any(
            terms and all(joined.find(term) in held for term in terms) for _, terms in joined.identities
        ):
            raise Refused("relations: PARTITION BY has the owner")
        if function.op == "fn" and function.args[0] in ("RANK", "DENSERANK", "PERCENTRANK", "CUMEDIST"):
            return
        if function.op in AGGREGATES and (not order or frame in _PEERS or frame.startswith("RANGE ")):
            return  # rows that tie have one frame, all of them or none in it, and an aggregate is of its bag
        read = [*(term for term, _, _ in order), *partition]
        written = {
            one for term in read for one in walk(term) if one.op == "cast" and one.args[1] == ("text",)
        }
        basis = {
            self.bare(term)
            for term in read
            if self.alike_where_equal(term)
            or any(self.bare(term) is self.bare(one.args[0]) for one in written)
        }
        asked = [one for one in function.args if isinstance(one, Term)]
        if function.args[0] not in ("FIRSTVALUE", "LASTVALUE") or frame not in _PEERS:
            asked += shown
        if not self.determines(joined, basis) and not all(self._made_of(one, basis, joined) for one in asked):
            raise Refused("relations: rows that tie are alike", repr(function))

    def _made_of(self, term: Term, basis: set[Term], joined: Joined) -> bool:
        if term in basis or not (term.free or term.nests):
            return True
        classes = {joined.find(one) for one in basis}
        inner = walk(term, lambda one: one not in basis and joined.find(self.bare(one)) not in classes)
        return all(
            one in basis or joined.find(self.bare(one)) in classes
            for one in inner
            if one.op in ("col", "exists", "scalar", "insub")
        )

    def _union(self, relation: Term) -> Rows:
        """Premise: all members owned, one identity in the same columns (or all public). Conclusion: owned; rows add
        up. Why: a union of disjoint unions over the same owners."""
        members = [self.rows(one) for one in relation.args[0]]
        if all(one.public for one in members):
            return Rows((), None)
        common = [
            (kind, names)
            for kind, names in members[0].identities
            if (kind, names) != HIDDEN
            if all((kind, names) in other.identities for other in members)
            and all(self.values.column_type(relation, name)[0] in _EXACT for name in names)
        ]
        if any(one.public for one in members):
            raise Refused("relations: the members of a union are owned, or all public")
        kept = self.kept(relation)
        mult = kept[1] if kept is not None else self._cut_before_a_join(relation)
        if mult is None and all(one.mult is not None for one in members):
            apart = set(common) == {ROW} and self._of_other_tables(relation.args[0])
            mult = (max if apart else sum)(one.mult or 0 for one in members)
        return Rows(tuple(common) or (HIDDEN,), mult)

    def _of_other_tables(self, members: Sequence[Term]) -> bool:
        """Whether no private table is read by two of these blocks: rows that are owners are then in one of them
        alone."""
        seen: set[str] = set()
        for member in members:
            names = [
                source.args[0].args[0] for source in member.args[0].args[0] if source.args[0].op == "table"
            ]
            names = [name for name in names if self.facts.tables[name].unit is not None]
            if (
                member.op != "select"
                or len(names) != 1
                or len(member.args[0].args[0]) != 1
                or names[0] in seen
            ):
                return False
            seen |= set(names)
        return True

    def _full(self, relation: Term) -> Rows:
        """Premise: both sides owned, of one owner wherever ON holds. Conclusion: owned by whichever side is there.
        Why: a row that matched is of one owner's rows, one that did not is there because of its owner's rows, or
        for lack of them."""
        left, right, on = relation.args
        sides = [self.pool("src", side, 0, number) for number, side in enumerate((left, right))]
        joined = self.joined(self.pool("block", tuple(sides), (), on))
        rows = [self.rows(side) for side in (left, right)]
        if joined.public or any(one.public for one in rows):
            raise Refused("relations: both sides of a FULL JOIN are owned")
        return Rows((HIDDEN,), None)

    # --- blocks ---

    def joined(self, block: Term, around: Joined | None = None) -> Joined:
        """A join of sources. Premise: all owned ones have one owner, by printed equalities; of a LEFT JOIN the left
        side is owned, and the right public or of the left's owner by ON; a subquery is public or of the row's
        owner. Conclusion: owned. Why: a row is made of rows of one owner and public ones."""
        if around is None and block in self._joined:
            return self._joined[block]
        whole, block = block, self.inner(block)
        sources, outer, conditions = block.args
        joined = Joined(block)
        if around is not None:
            joined.parent, joined.constants = dict(around.parent), set(around.constants)
            joined.established = set(around.established)
        ons = dict(outer)
        owned: list[list[Identity]] = []
        for source in sources:
            if source not in ons:
                identities = self.identities(source)
                if identities:
                    owned.append(identities)
        self.equate(joined, [one for one in sources if one not in ons], conditions)
        if around is not None and around.identities:
            owned[:0] = [around.identities, *self._matched_too(joined, around.block.args[1], conditions)]
        self._one_owner(joined, owned)
        if around is not None and around.public and owned:
            raise Refused("relations: a public row is not filtered by private ones")
        joined.public = not owned
        for source, on in outer:
            self._left(joined, source, on)
        if around is None:
            self._joined[whole] = joined
        self.subqueries(conditions, joined)
        return joined

    def inner(self, block: Term) -> Term:
        """A LEFT JOIN of which WHERE, or the ON of one that has to match, asks a column not to be NULL is a join: rows
        without a match are not there."""
        sources, outer, conditions = block.args
        flags = self.values.established(conditions) if outer else ()
        asked = {one.args[0].args[0] for one in flags if one.op == "notnull" and one.args[0].op == "col"}
        matched = [one for source, on in outer if source in asked for one in on]
        if not asked & {source for source, _ in outer}:
            return block
        rest = tuple(pair for pair in outer if pair[0] not in asked)
        return self.inner(self.pool("block", sources, rest, ordered([*conditions, *matched])))

    def equate(self, joined: Joined, sources: Sequence[Term], conditions: Iterable[Term]) -> None:
        """Classes of equal columns: printed equalities of one exact type, closed under enforced keys."""
        joined.established |= self.values.established(conditions)
        for one in conditions:
            if one.op == "eq" or (one.op == "same" and any(self.sure(side, joined) for side in one.args)):
                self.equal(joined, *one.args)
        for source in sources:
            for names in self._alike(source.args[0]):
                for name in names[1:]:
                    joined.unite(self.pool("col", source, names[0]), self.pool("col", source, name))
        tables = [one for one in sources if one.args[0].op == "table"]
        changed = True
        while changed:
            changed = False
            for place, one in enumerate(tables):
                for other in tables[place + 1 :]:
                    if one.args[0] is other.args[0] and self._one_row(joined, one, other):
                        for name in self.facts.tables[one.args[0].args[0]].columns:
                            changed |= joined.unite(
                                self.pool("col", one, name), self.pool("col", other, name)
                            )

    def _alike(self, relation: Term) -> list[tuple[str, ...]]:
        """Columns of a derived relation that are equal in each of its rows: of one class in the block below."""
        if relation.op == "union":
            found = [{frozenset(names) for names in self._alike(one)} for one in relation.args[0]]
            return [tuple(sorted(names)) for names in found[0] if all(names in others for others in found)]
        if relation.op not in ("select", "agg", "window"):
            return []
        joined = self.joined(relation.args[0])
        classes: dict[Term, list[str]] = {}
        for name, term in columns_of(relation).items():
            classes.setdefault(joined.find(self.bare(term)), []).append(name)
        return [tuple(names) for names in classes.values() if len(names) > 1]

    def equal(self, joined: Joined, left: Term, right: Term) -> None:
        """Takes over one printed equality, where both sides are columns, or a column and a constant, of one exact
        type."""
        a, b = self.bare(left), self.bare(right)
        kinds = {
            "text" if kind == "enum" else kind for kind in (self.values.type(a)[0], self.values.type(b)[0])
        }
        if len(kinds) > 1 or not kinds <= _EXACT:
            return
        if a.op in ("col", "coalesce") and b.op in ("col", "coalesce"):
            joined.unite(a, b)
        for one, other in ((a, b), (b, a)):
            if one.op == "col" and other.op in ("num", "text", "bool", "literal"):
                joined.constants.add(one)

    def _one_row(self, joined: Joined, one: Term, other: Term) -> bool:
        keys = self.facts.tables[one.args[0].args[0]].unique
        return any(
            all(
                joined.find(self.pool("col", one, name)) is joined.find(self.pool("col", other, name))
                for name in key
            )
            and all(self.sure(self.pool("col", one, name), joined) for name in key)
            for key in keys
        )

    def _one_owner(self, joined: Joined, owned: Sequence[Sequence[Identity]]) -> None:
        """Sources whose identities meet are one owner's; all have to be."""
        if not owned:
            return
        met = {joined.canonical(one) for one in owned[0]} - {HIDDEN, ROW}
        rest = [list(one) for one in owned[1:]]
        while rest:
            near = [one for one in rest if any(joined.canonical(identity) in met for identity in one)]
            if not near:
                raise Refused("relations: rows of two owners")
            for one in near:
                met |= {joined.canonical(identity) for identity in one} - {HIDDEN, ROW}
                rest.remove(one)
        joined.identities = [one for identities in owned for one in identities]

    def _left(self, joined: Joined, source: Term, on: tuple[Term, ...]) -> None:
        identities = self.identities(source)
        inner = Joined(joined.block, dict(joined.parent), set(joined.constants), set(joined.established))
        self.equate(inner, [source], on)
        inner.public = joined.public and not identities
        if identities:
            if joined.public:
                raise Refused("relations: a public row is not filtered by private ones", "LEFT JOIN")
            before = [pair for pair in joined.block.args[1] if pair[0] is not source]
            self._one_owner(inner, [joined.identities, *self._matched_too(inner, before, on), identities])
        else:
            inner.identities = joined.identities
        self.subqueries(on, inner)

    def _matched_too(
        self, inner: Joined, outer: Sequence[tuple[Term, tuple[Term, ...]]], conditions: Sequence[Term]
    ) -> list[list[Identity]]:
        """The identities of right sides of LEFT JOINs of which conditions ask a column not to be NULL: where these hold
        they have matched, so their ON held too."""
        found: list[list[Identity]] = []
        asked = self.values.established(conditions)
        for other, on in reversed(outer):
            columns = {one.args[0] for one in asked if one.op == "notnull" and one.args[0].op == "col"}
            if any(one.args[0] is other for one in columns):
                asked = asked | self.values.established(on)
                self.equate(inner, [other], on)
                found += [identities] if (identities := self.identities(other)) else []
        return found

    def identities(self, source: Term) -> list[Identity]:
        """The identities of a source's rows, over its own columns."""
        relation = source.args[0]
        if relation.op == "full":
            return self._full_identities(source)
        rows = self.rows(relation)
        return [
            (kind, tuple(self.pool("col", source, name) for name in names)) for kind, names in rows.identities
        ]

    def _full_identities(self, source: Term) -> list[Identity]:
        """Of a FULL JOIN the owner is COALESCE of both sides' columns of one kind."""
        self.rows(source.args[0])
        sides = source.args[0].args[:2]
        found: list[Identity] = []
        for kind, names in self.rows(sides[0]).identities:
            for other, others in self.rows(sides[1]).identities:
                if kind == other == UNIT:
                    left, right = self._spellings(source, 0, names), self._spellings(source, 1, others)
                    for pair in product(left, right):
                        for one, two in (pair, pair[::-1]):
                            terms = (self.pool("coalesce", *both) for both in zip(one, two, strict=True))
                            found.append((kind, tuple(terms)))
        return found or [HIDDEN]

    def _spellings(self, source: Term, side: int, names: Sequence[str]) -> list[tuple[Term, ...]]:
        """Columns of one side of a FULL JOIN, and those that are equal to them in each of its rows."""
        alike = self._alike(source.args[0].args[side])
        each = [next((ones for ones in alike if name in ones), (name,)) for name in names]
        return list(product(*([self.pool("col", source, f"{side}.{one}") for one in ones] for ones in each)))

    def subqueries(self, terms: Iterable[Term], joined: Joined) -> None:
        """Premise of EXISTS, IN and scalar aggregates, wherever they stand: public, or of the row's own owner; and
        no row becomes several."""
        for term in terms:
            for one in walk(term, lambda one: one.op not in ("exists", "scalar")) if term.nests else ():
                if one.args[:1] == ("EXPLODE",):
                    raise Refused("relations: rows are multiplied by C lowest values alone")
                if one.op in ("exists", "scalar"):
                    inner = self.joined(one.args[0], joined)
                    if one.op == "scalar":
                        self.aggregates([one.args[1]])
                        self.subqueries([one.args[1]], inner)

    # --- equality, NULL, keys ---

    def _spread(self, term: Term) -> Term | None:
        """c of `(c * a) % 2^32`. Premise: c is an integer of 32 bits, a is odd and below 2^32. Conclusion: one value
        of c for each. Why: numbers from 0 to 2^31 keep apart modulo 2^32 when multiplied by an odd one, those below 0
        do, and a remainder has its number's sign.

        c of `(((c & (2^32 - 1)) * a) % 2^32 - 2^31) * 2^32 + ((c >> 32) + 2^31)`. Premise: c is an integer of 64 bits,
        and a as above. Conclusion: the same. Why: the last summand is 0 to 2^32 - 1, so it is the remainder of the
        whole by 2^32, and says the high half of c; the rest says what the low half is multiplied to."""
        if term.op == "add" and (inner := self._halves(term)) is not None:
            return inner
        if term.op != "mod" or term.args[0].op != "mul" or self.number(term.args[1]) != 2**32:
            return None
        inner, times = self.bare(term.args[0].args[0]), self.number(term.args[0].args[1])
        kind = self.values.type(inner)
        is_narrow = kind[0] == "int" and kind[1] <= 32
        return inner if is_narrow and times is not None and times % 2 == 1 and 0 < times < 2**32 else None

    def _halves(self, term: Term) -> Term | None:
        """c of the second form of `_spread`."""
        product, last = term.args
        shift = last.args[0] if last.op == "add" else last
        low = product.args[0].args[0] if product.op == "mul" and product.args[0].op == "sub" else product
        times = low.args[0].args[1] if low.op == "mod" and low.args[0].op == "mul" else None
        if shift.op != "shr" or times is None or (a := self.number(times)) is None or a % 2 != 1:
            return None
        inner, pool = shift.args[0], self.pool
        half, whole = pool("num", 2**31, "int"), pool("num", 2**32, "int")
        masked = pool("bitand", inner, pool("num", 2**32 - 1, "int"))
        spread = pool("sub", pool("mod", pool("mul", masked, times), whole), half)
        kept = pool("add", pool("shr", inner, pool("num", 32, "int")), half)
        bare = self.bare(inner)
        is_whole = self.values.type(bare)[0] == "int" and self.values.type(inner)[:2] == ("int", 64)
        same = term is pool("add", pool("mul", spread, whole), kept)
        return bare if same and is_whole and 0 < a < 2**32 else None

    def bare(self, term: Term) -> Term:
        """A column under casts that tell all its values apart: text as text, labels as texts, integers as wider
        ones."""
        while True:
            if term.op == "cast":
                inner, outer = self.values.type(term.args[0]), term.args[1]
                same = (inner == outer and inner[0] in _EXACT) or (inner[0], outer[0]) == ("enum", "text")
                whole = (inner[0], outer[0]) == ("int", "decimal") and outer[2] == 0
                same = same or (whole and not self.values.dialect.DECIMALS_ARE_FIXED)
                if not same and not (inner[0] == outer[0] == "int" and inner[1] <= outer[1]):
                    return term
                term = term.args[0]
            elif term.op == "fn" and term.args[0] == "VALID":
                term = term.args[1]
            elif term.op == "coalesce":
                return self.pool("coalesce", *map(self.bare, term.args))
            else:
                return term

    def sure(self, term: Term, joined: Joined) -> bool:
        """Whether a term is not NULL in any row of a block."""
        return all(
            flag in joined.established
            or (
                flag.op == "notnull"
                and any(self._in_class(flag.args[0], one, joined) for one in joined.established)
            )
            for flag in self.values.present(term)
        )

    def _in_class(self, term: Term, flag: Term, joined: Joined) -> bool:
        return flag.op == "notnull" and joined.find(self.bare(flag.args[0])) is joined.find(self.bare(term))

    def closure(self, joined: Joined, start: Iterable[Term]) -> tuple[set[Term], set[Term]]:
        """Classes and sources that given terms determine (soundness.md 1.12): a source one of whose keys is known
        is one row, and all its columns are known; of a LEFT JOIN no more than one row, and nothing of it is
        known."""
        given = [*start]
        known = {joined.find(self.bare(term)) for term in given} | {
            joined.find(one) for one in joined.constants
        }
        known |= {joined.find(one) for one in map(self._spread, given) if one is not None}
        sources, outer, _ = joined.block.args
        ons = dict(outer)
        done: set[Term] = set()
        changed = True
        while changed:
            changed = False
            for source in sources:
                if source in done:
                    continue
                columns = self.columns(source)
                met = self._known_by_on(source, ons.get(source, joined.block.args[2]), known, joined)
                names = {name for name, column in columns.items() if joined.find(column) in known} | met

                def filled(
                    name: str, columns: dict[str, Term] = columns, met: set[str] = met, source: Term = source
                ) -> bool:
                    return name in met or (source not in ons and self.sure(columns[name], joined))

                if self.determined(source.args[0], names, filled):
                    done.add(source)
                    changed = True
                    if source not in ons or self._matched(source, ons[source], known, joined):
                        known |= {joined.find(column) for column in columns.values()}
        return known, done

    def columns(self, source: Term) -> dict[str, Term]:
        """A source's columns by name."""
        if source not in self._columns:
            self._columns[source] = {
                name: self.pool("col", source, name) for name in self._names(source.args[0])
            }
        return self._columns[source]

    def _matched(self, source: Term, on: Sequence[Term], known: set[Term], joined: Joined) -> bool:
        """Whether what is known tells which row of a LEFT JOIN's right side matches: ON reads nothing else."""
        inner = [one for term in on for one in walk(term) if one.op in ("col", "exists", "scalar", "insub")]
        return all(
            one.op == "col" and (one.args[0] is source or joined.find(self.bare(one)) in known)
            for one in inner
        )

    def _known_by_on(self, source: Term, on: Sequence[Term], known: set[Term], joined: Joined) -> set[str]:
        """The columns of a source that are printed equal to what is known, by an equality of one exact type."""
        found = set()
        for one in on:
            if one.op == "eq":
                sides = [self.bare(side) for side in one.args]
                kinds = {self.values.type(side)[0] for side in one.args}
                for a, b in (sides, sides[::-1]) if len(kinds) == 1 and kinds <= _EXACT else ():
                    if a.op == "col" and a.args[0] is source and self._made_of(b, known, joined):
                        found.add(a.args[1])
        return found

    def _names(self, relation: Term) -> Iterator[str]:
        if relation.op == "table":
            yield from self.facts.tables[relation.args[0]].columns
        else:
            yield from columns_of(relation)

    def determined(
        self, relation: Term, names: set[str], filled: Callable[[str], bool] = lambda _: False
    ) -> bool:
        """Whether no two rows of a relation agree in these columns; `filled`: which of them are not NULL there."""
        if relation.op == "table":
            table = self.facts.tables[relation.args[0]]
            return any(
                names.issuperset(key) and all(one in table.not_null or filled(one) for one in key)
                for key in table.unique
            )
        if relation.op in ("select", "window"):
            block, columns = relation.args
            joined, held = self.joined(block), {term for name, term in columns if name in names}
            return self.determines(joined, held) or any(self._is_number(one, held, joined) for one in held)
        if relation.op == "union":
            kept = self.kept(relation)
            return self.determined(kept[0], names) if kept is not None else self._of_a_cut(relation, names)
        if relation.op == "agg" and self.spread(relation) is None:
            block, keys, _, columns = relation.args
            joined = self.joined(block)
            held = {term for name, term in columns if name in names and term in keys}
            known, _ = self.closure(joined, held)
            return all(key in held or self._made_of(key, known, joined) for key in keys)
        if relation.op == "public":
            return self._passed_once(relation, names)
        return False

    def _is_number(self, term: Term, held: set[Term], joined: Joined) -> bool:
        """Whether a term is a ROW_NUMBER whose partition these terms tell: no two rows of one have the same."""
        if term.op != "over" or term.args[0].args[0] != "ROWNUMBER":
            return False
        known = {self.bare(one) for one in held}
        return all(self._made_of(one, known, joined) for one in term.args[1])

    def _passed_once(self, relation: Term, names: set[str]) -> bool:
        """Lists of parameters side by side: of a release's groups each is passed once, of one without keys one
        row."""
        words = {}
        for name, term in relation.args[0]:
            parameters = [one.args[1] for one in walk(term) if one.op == "param"]
            if len(parameters) != 1:
                return False
            words[name] = parameters[0]
        keys = {name for name, word in words.items() if word in ("released-key", "keys", "chosen")}
        return keys <= names if keys else set(words.values()) == {"released-row"}

    def determines(self, joined: Joined, terms: Iterable[Term]) -> bool:
        """Whether no two rows of a block agree in these terms."""
        _, done = self.closure(joined, terms)
        return done == set(joined.block.args[0])

    # --- how many rows ---

    def mult(self, relation: Term) -> int | None:
        """The most rows of one owner, or None where nothing bounds them."""
        block = relation.args[0]
        joined = self.joined(block)
        if joined.public:
            return None
        mult = self.rows_of_block(joined)
        if relation.op == "agg":
            known, _ = self.closure(joined, self.unit_terms(joined))
            free = [key for key in relation.args[1] if not self._made_of(key, known, joined)]
            listed = self.listed(relation.args[2], free)
            mult = 1 if not free else _least(mult, listed)
            spread = self.spread(relation)
            mult = mult if spread is None or mult is None else mult * spread
        elif relation.op == "select":
            mult = _least(mult, self._ranked(joined))
            mult = _least(mult, self._few(joined))
            mult = _least(mult, self._up_to_last(block))
        return mult

    def last_kept(self, block: Term) -> CutOff | None:
        """A block that is the rows of B of the owners of heavy, which groups B by them and has those with many rows, up
        to the R-th least of a number of theirs; None where it is no such block."""
        sources, outer, conditions = block.args
        for ends in sources:
            if ends.args[0].op != "agg" or ends.args[0].args[2]:
                continue
            inner, owner, _, columns = ends.args[0].args
            ons = [one for one in conditions if ends in one.free]
            tests = [
                one
                for one in ons
                if one.op == "le" and one.args[1].op == "col" and one.args[1].args[0] is ends
            ]
            if len(tests) != 1:
                continue
            last = dict(columns)[tests[0].args[1].args[1]]
            if last.args[:1] != ("LISTLAST",) or last.args[1].op != "lowest" or last.args[1].args[2]:
                continue
            order, most = last.args[1].args[0], self.number(last.args[1].args[1])
            ons.remove(tests[0])
            rest = self.pool(
                "block", tuple(one for one in sources if one is not ends), outer,
                ordered(one for one in conditions if ends not in one.free),
            )  # fmt: skip
            heavies = [one for one in inner.args[0] if one not in rest.args[0]]
            if most is None or order is not tests[0].args[0] or len(heavies) != 1:
                continue
            [heavy] = heavies
            left = tuple(one for one in inner.args[0] if one is not heavy)
            matched = [one for one in inner.args[2] if heavy in one.free]
            others = ordered(one for one in inner.args[2] if heavy not in one.free)
            if (
                self.pool("block", left, inner.args[1], others) is rest
                and heavy.args[0].op == "agg"
                and heavy.args[0].args[0] is rest
                and set(heavy.args[0].args[1]) == set(owner)
                and self.matches_owner(matched, heavy, heavy.args[0], owner)
                and self.matches_owner(ons, ends, ends.args[0], owner)
            ):
                return CutOff(most, owner, order, heavy.args[0], rest)
        return None

    def _up_to_last(self, block: Term) -> int | None:
        """R of a block that keeps rows up to the R-th least of a number that no two rows share: R rows of an owner."""
        cut = self.last_kept(block)
        if cut is None or self.above(cut.heavy) is None:
            return None
        _, told = self.closure(self.joined(cut.rows), [cut.order])
        return cut.most if told == set(cut.rows.args[0]) else None

    def unit_terms(self, joined: Joined) -> list[Term]:
        """Terms that are the same in all rows of an owner: the owner, and what an owner has one row of."""
        found = [term for kind, terms in joined.identities if kind == UNIT for term in terms]
        outer = dict(joined.block.args[1])
        for source in joined.block.args[0]:
            relation = source.args[0]
            rows = self.rows(relation) if source not in outer and relation.op != "full" else None
            if rows is not None and rows.mult == 1 and not rows.public:
                found += self.columns(source).values()
        return found

    def rows_of_block(self, joined: Joined) -> int | None:
        """The product over sources whose rows, and the owner, tell all others: first those that tell most of them."""
        told, left, total = self.unit_terms(joined), [*joined.block.args[0]], 1
        while True:
            done = self.closure(joined, told)[1]
            left = [one for one in left if one not in done]
            sizes = {one: most for one in left if (most := self.size(one, joined)) is not None}
            if not left or not sizes:
                return None if left else total

            def tells(source: Term, told: tuple[Term, ...] = tuple(told)) -> int:
                return len(self.closure(joined, [*told, *self.columns(source).values()])[1] | {source})

            best = max(sizes, key=lambda one: (tells(one), -sizes[one]))
            total *= sizes[best]
            told += self.columns(best).values()
            left.remove(best)

    def size(self, source: Term, joined: Joined) -> int | None:
        """The most rows of an owner that a source has in a block; one without a match counts as one."""
        if source.args[0].op == "full" or (rows := self.rows(source.args[0])).public:
            return None
        if source in dict(joined.block.args[1]):
            return None if rows.mult is None else max(1, rows.mult)
        return _least(rows.mult, self._numbered(source, joined))

    def listed(self, having: Sequence[Term], keys: Sequence[Term]) -> int | None:
        """How many tuples of these keys a HAVING lets through, by its lists of literals."""
        number, fixed = self._list(self.pool("and", *having) if having else self.pool("bool", True))
        return number if set(keys) <= fixed else None

    def _list(self, term: Term) -> tuple[int, set[Term]]:
        """(at most so many combinations of these keys); without keys nothing is said."""
        if term.op == "in" and not any(one.free for one in term.args[1]):
            return len(set(term.args[1])), {term.args[0]}
        if term.op in ("isnull", "istrue", "isfalse"):
            return 1, {term.args[0]}
        if term.op in ("eq", "same") and term.args[1].op in ("num", "text", "bool", "literal"):
            return 1, {term.args[0]}
        parts = (
            [self._list(one) for one in term.args if isinstance(one, Term)]
            if term.op in ("and", "or")
            else []
        )
        if term.op == "or" and parts and all(fixed for _, fixed in parts):
            return sum(number for number, _ in parts), set.intersection(*(fixed for _, fixed in parts))
        number, keys = 1, set[Term]()
        for one, fixed in parts if term.op == "and" else []:
            if fixed - keys:
                number, keys = number * one, keys | fixed
        return number, keys

    def _ranked(self, joined: Joined) -> int | None:
        """`rn <= C` over ROW_NUMBER by owner: C rows of each."""
        if len(joined.block.args[0]) != 1:
            return None
        found = [bound for one in joined.block.args[2] if (bound := self.ranked(one)) is not None]
        return min((number for _, number in found), default=None)

    def ranked(self, condition: Term) -> tuple[Term, int] | None:
        """(rn, C) of `rn <= C`, or `rn = 1`, where rn is a ROW_NUMBER by owner."""
        if condition.op not in ("le", "eq"):
            return None
        column, number = self.bare(condition.args[0]), self.number(condition.args[1])
        if column.op != "col" or number is None or not self._is_rank(*column.args):
            return None
        return column, 1 if condition.op == "eq" else number

    def number(self, term: Term) -> int | None:
        term = term.args[0] if term.op == "cast" and term.args[1][0] == "int" else term
        return term.args[0] if term.op == "num" and isinstance(term.args[0], int) else None

    def _is_rank(self, source: Term, name: str) -> bool:
        relation = source.args[0]
        if relation.op != "window":
            return False
        term = columns_of(relation)[name]
        if term.op != "over" or term.args[0].args[0] != "ROWNUMBER":
            return False
        inner = self.joined(relation.args[0])
        known, _ = self.closure(inner, self.unit_terms(inner))
        return all(self._made_of(one, known, inner) for one in term.args[1])

    def _few(self, joined: Joined) -> int | None:
        """`NOT EXISTS (heavy of the owner)` over the rows that heavy counts, `HAVING COUNT(*) > R`: R rows of
        each."""
        for one in joined.block.args[2]:
            if one.op == "not" and one.args[0].op == "exists":
                sources, _, conditions = one.args[0].args[0].args
                if len(sources) == 1 and sources[0].args[0].op == "agg":
                    heavy: Term = sources[0].args[0]
                    rest = [other for other in joined.block.args[2] if other is not one]
                    above = self.above(heavy)
                    same = heavy.args[0] is self.pool("block", joined.block.args[0], (), tuple(rest))
                    if (
                        above is not None
                        and same
                        and self.matches_owner(conditions, sources[0], heavy, heavy.args[1])
                    ):
                        return above
        return None

    def _numbered(self, source: Term, joined: Joined) -> int | None:
        """Lemma *numbered*. Premise: a table whose rows hold the owner, and of which the engine enforces that no two
        rows agree in the owner's columns and some others, none of them NULL; WHERE keeps the integers from a to b of
        each of these, or those on a list. Conclusion: as many rows of it of an owner as there are such tuples.
        Why: 1.39."""
        relation = source.args[0]
        if relation.op != "table":
            return None
        table = self.facts.tables[relation.args[0]]
        unit = table.unit
        if unit is None or unit.table is not None or not unit.columns:
            return None
        found = []
        for key in table.unique:
            rest = [name for name in key if name not in unit.columns]
            if not rest or not set(key) <= set(table.not_null):
                continue
            if any(self.values.column_type(relation, name)[0] != "int" for name in rest):
                continue
            columns = (self.pool("col", source, name) for name in rest)
            numbers = [self._left_of(column, joined.block.args[2]) for column in columns]
            if None not in numbers:
                found.append(prod(one for one in numbers if one is not None))
        return min(found, default=None)

    def _left_of(self, column: Term, conditions: Sequence[Term]) -> int | None:
        """How many integers conditions leave of a column; None where nothing bounds them."""
        listed = (
            len(set(one.args[1]))
            for one in conditions
            if one.op == "in" and one.args[0] is column and not any(value.free for value in one.args[1])
        )
        between = self._between(column, conditions)
        return min((*listed, *([] if between is None else [max(0, between)])), default=None)

    def _between(self, column: Term, conditions: Sequence[Term]) -> int | None:
        """How many integers conditions leave of a column, by `a <= n` and `n <= b`; None where an end is open."""
        at_least = [
            self.number(one.args[0]) for one in conditions if one.op == "le" and one.args[1] is column
        ]
        at_most = [self.number(one.args[1]) for one in conditions if one.op == "le" and one.args[0] is column]
        lows = [one for one in at_least if one is not None]
        highs = [one for one in at_most if one is not None]
        return min(highs) - max(lows) + 1 if lows and highs else None

    def matches_owner(
        self, conditions: Sequence[Term], source: Term, relation: Term, owner: Sequence[Term]
    ) -> bool:
        """Conditions that equate exactly the columns of `source` that are the owner with these terms."""
        columns = columns_of(relation)
        pairs = set()
        for one in conditions:
            if one.op != "eq":
                return False
            for inner, other in (one.args, one.args[::-1]):
                if inner.op == "col" and inner.args[0] is source:
                    pairs.add((columns[inner.args[1]], other))
        return pairs == {(term, term) for term in owner} and len(pairs) == len(conditions)

    def above(self, relation: Term) -> int | None:
        """R of a grouping by exactly the owner with `HAVING COUNT(*) > R`; None where it is no such grouping."""
        if relation.op != "agg" or len(relation.args[2]) != 1:
            return None
        joined = self.joined(relation.args[0])
        keys = {joined.find(self.bare(key)) for key in relation.args[1]}
        exact = any(
            kind == UNIT and {joined.find(one) for one in terms} == keys for kind, terms in joined.identities
        )
        having = relation.args[2][0]
        if (
            exact
            and having.op == "lt"
            and having.args[0].op == "num"
            and having.args[1] is self.pool("count*", ())
        ):
            return int(having.args[0].args[0])
        return None

    def _cut_before_a_join(self, union: Term) -> int | None:
        """Who has at most R rows keeps all, who has more keeps R ranked ones: R rows of each, as nobody is both."""
        members = union.args[0]
        if len(members) != 2 or any(one.op != "select" for one in members):
            return None
        few, ranked = (self.mult(one) for one in members)
        first, second = members
        exists = [
            one.args[0] for one in first.args[0].args[2] if one.op == "not" and one.args[0].op == "exists"
        ]
        if few is None or ranked is None:
            return None
        if (cut := self.last_kept(second.args[0])) is not None:
            listed = [[source.args[0] for source in one.args[0].args[0]] for one in exists]
            return max(few, ranked) if listed == [[cut.heavy]] else None
        window = second.args[0].args[0][0].args[0] if len(second.args[0].args[0]) == 1 else None
        if window is None or window.op != "window":
            return None
        return max(few, ranked) if any(one in window.args[0].args[2] for one in exists) else None

    def _of_a_cut(self, union: Term, names: set[str]) -> bool:
        """Whether no two rows of a cut before a join agree in these columns: nobody is in both parts, and rows of one
        part are rows of the same block, so that they would be one."""
        if self._cut_before_a_join(union) is None:
            return False
        first, second = (dict(one.args[1]) for one in union.args[0])
        if self.last_kept(union.args[0][1].args[0]) is not None:
            passed = all(first.get(name) is not None and first[name] is second.get(name) for name in names)
        else:
            [window] = union.args[0][1].args[0].args[0]
            columns = columns_of(window.args[0])
            passed = all(
                (other := second.get(name)) is not None
                and other.op == "col"
                and other.args[0] is window
                and columns[other.args[1]] is first.get(name)
                for name in names
            )
        return passed and all(self.determined(one, names) for one in union.args[0])

    def without_ways(self, block: Term, read: Sequence[Term]) -> Term:
        """A block without tables that lead to the owner alone. Premise: the columns of an enforced foreign key, none
        of which is NULL, are equated with those that it refers to, and nothing else is read of that table. Conclusion:
        the same rows. Why: each has exactly one row there."""
        sources, outer, conditions = block.args
        plain = [one for one in sources if one.args[0].op == "table" and one not in dict(outer)]
        for way, source in product(plain, plain):
            joins = [one for one in conditions if way in one.free]
            rest = [one for one in conditions if way not in one.free]
            others = [*read, *(one for _, on in outer for one in on)]
            if way is source or any(way in one.free for one in others):
                continue
            pairs = {frozenset(map(self.bare, one.args)) for one in joins if one.op == "eq"}
            table = self.facts.tables[source.args[0].args[0]]
            for key in table.foreign_keys:
                if key.table != way.args[0].args[0] or not set(key.columns) <= set(table.not_null):
                    continue
                columns = zip(key.columns, key.referenced, strict=True)
                said = {
                    frozenset((self.pool("col", source, a), self.pool("col", way, b))) for a, b in columns
                }
                exact = all(self.values.type(one)[0] in _EXACT for pair in said for one in pair)
                if exact and said == pairs and len(joins) == len(pairs):
                    kept = tuple(one for one in sources if one is not way)
                    return self.without_ways(self.pool("block", kept, outer, tuple(rest)), read)
        return block

    def spread(self, relation: Term) -> int | None:
        """C of a grouping that shows, of each group, a row for each of its C lowest values; None where it shows
        one row."""
        found = [
            one
            for term in columns_of(relation).values()
            if term.nests
            for one in walk(term)
            if one.args[:1] == ("EXPLODE",)
        ]
        if not found:
            return None
        lowest = found[0].args[1]
        number = self.number(lowest.args[1]) if lowest.op == "lowest" else None
        if len(found) != 1 or number is None or lowest.args[2]:
            raise Refused("relations: rows are multiplied by C lowest values alone")
        return number

    def kept(self, union: Term) -> tuple[Term, int] | None:
        """Lemma *kept*: (p, C). Premise: p's rows of owners that are not in `above`; those ranked to C of
        owners in it that have at most N rows; and the C lowest, by all that is shown, of those in it with more;
        above has who has more than C' <= C rows of p. Conclusion: C rows of an owner, each a row of p and each
        once. Why: nobody is in two parts."""
        members = union.args[0]
        if any(one.op != "select" or len(one.args[0].args[0]) != 1 or one.args[0].args[1] for one in members):
            return None
        [p] = members[0].args[0].args[0]
        found = [self._kept_part(member, p) for member in members]
        parts = [one for one in found if one is not None]
        if len(parts) != len(members) or p.args[0].op != "agg":
            return None
        above = {part[1] for part in parts}
        bound = self.above(next(iter(above)))
        most = max(part[0] for part in parts)
        inside = [part[2] for part in parts if part[2] is not None]
        if len(above) != 1 or bound is None or bound > most or len(inside) != len(parts) - 1:
            return None
        apart = len(inside) == 1 or (len(inside) == 2 and self._apart(*inside))
        return (p.args[0], most) if apart else None

    def _apart(self, one: tuple[Term, ...], other: tuple[Term, ...]) -> bool:
        """Conditions `n <= N` and `n > N`."""
        for few, many in ((one, other), (other, one)):
            single = len(few) == len(many) == 1
            if single and (few[0].op, many[0].op) == ("le", "lt") and few[0].args == many[0].args[::-1]:
                return True
        return False

    def _kept_part(self, member: Term, p: Term) -> tuple[int, Term, tuple[Term, ...] | None] | None:
        """(C, above, conditions on above) of a part of lemma *kept*; None for conditions: who is not in above."""
        block, columns = member.args
        [source], _, conditions = block.args
        relation: Term = source.args[0]
        if source is p:
            if (
                len(conditions) != 1
                or conditions[0].op != "not"
                or any(t is not self.pool("col", p, n) for n, t in columns)
            ):
                return None
            inside = self._in_above(conditions[0].args[0], p)
            few = self._few(self.joined(block))
            return (
                (few, inside[0], None) if inside is not None and few is not None and not inside[1] else None
            )
        if (
            relation.op not in ("window", "agg")
            or relation.args[0].args[0] != (p,)
            or len(relation.args[0].args[2]) != 1
        ):
            return None
        condition = relation.args[0].args[2][0]
        inside = self._in_above(condition.args[0], p) if condition.op == "insub" else None
        shown = {name: self._of_p(term, source) for name, term in columns}
        if inside is None or any(term is not self.pool("col", p, name) for name, term in shown.items()):
            return None
        self.rows(relation)
        bound = self._ranked(self.joined(block)) if relation.op == "window" else self.spread(relation)
        whole = relation.op == "window" or (not conditions and set(relation.args[1]) <= set(shown.values()))
        return (bound, *inside) if bound is not None and whole else None

    def _of_p(self, term: Term, source: Term) -> Term:
        """A column over the rows that a window or grouping reads; of a field of its lowest values, what the
        field is."""
        columns = columns_of(source.args[0])
        if term.op == "col" and term.args[0] is source:
            return columns[term.args[1]]
        if term.op == "fn" and term.args[0] == "FIELD" and term.args[1].op == "col":
            exploded = columns[term.args[1].args[1]]
            if exploded.args[:1] == ("EXPLODE",) and exploded.args[1].op == "lowest":
                struct = exploded.args[1].args[0]
                if struct.op == "struct" and term.args[2] in struct.args[0]:
                    field: Term = struct.args[1 + struct.args[0].index(term.args[2])]
                    return field
        return term

    def _in_above(self, exists: Term, p: Term) -> tuple[Term, tuple[Term, ...]] | None:
        """(above, further conditions) of `EXISTS (above of p's owner)`, above grouped over all of p's rows."""
        sources, outer, conditions = exists.args[0].args
        if exists.op != "exists" or len(sources) != 1 or outer:
            return None
        above: Term = sources[0].args[0]
        if (
            above.op != "agg"
            or above.args[0] is not self.pool("block", (p,), (), ())
            or self.above(above) is None
        ):
            return None
        further = tuple(one for one in conditions if one.free == {sources[0]})
        owner = [one for one in conditions if one not in further]
        return (above, further) if self.matches_owner(owner, sources[0], above, above.args[1]) else None


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
