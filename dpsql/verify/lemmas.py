"""How far one owner can move the numbers that a query prints: the lemmas, each on a pattern of relations.

A coordinate is a number for each group. `Move` bounds one owner's part of a vector of coordinates, over all groups:
what removing or adding the owner changes. Laws take it from there (`check`). Proofs: soundness.md 1.9, 1.20-1.23,
5.6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt

from sqlglot import exp

from dpsql.verify.certificate import Measurement
from dpsql.verify.read import Reader, columns_of
from dpsql.verify.relations import ROW, UNIT, Joined, Relations
from dpsql.verify.terms import AGGREGATES, Pool, Refused, Term, inside, walk
from dpsql.verify.two_owners import Cells, TwoOwners, clamped_cells, first_rows
from dpsql.verify.values import Form, Number, Poly, Values, add_forms, scaled


@dataclass(frozen=True)
class Part:
    """One SELECT of aggregates: its block, keys and HAVING, and the columns as expressions of aggregates. `merged`:
    groups of it are added up, to those of a function of its keys, `told`."""

    block: Term
    keys: tuple[Term, ...]
    having: frozenset[Term]
    columns: dict[str, Term]
    merged: bool = False
    told: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Move:
    """One owner's part: its L1 norm, the ends of its sum where there is one coordinate, whether each coordinate has
    one sign, and the most of it in one group. `span`: the length of the interval that each coordinate itself stays
    in, whoever is there, where there is one; an owner is then in `rows` groups at most. `squared`: the most of the sum
    of the squares over groups, where a norm says so."""

    lemma: str
    rows: int
    reach: Number
    l1: Number
    low: Number
    high: Number
    one_sign: bool
    in_group: Number
    monotone: bool = False
    span: Number | None = None
    squared: Number | None = None


_OF_ROWS = ("col", "exists", "scalar", "over")


class Lemmas:
    """The lemmas over one query's relations. `drawn`: of how many groups of a list, fixed before, numbers are drawn."""

    def __init__(self, pool: Pool, values: Values, relations: Relations, drawn: int | None = None) -> None:
        self.pool = pool
        self.values = values
        self.relations = relations
        self._drawn = drawn
        self._boxed = False
        self._masks: list[int] = []
        self._reaches: list[tuple[int, ...]] = []

    # --- patterns ---

    def parts(self, top: Term, keys: Sequence[str], counted: tuple[str, int] | None = None) -> list[Part]:
        """The SELECTs whose rows are added up by group: the query itself, the members of a UNION ALL below it, or one
        whose groups are merged.

        Premise of the sum: its keys are the members' columns, or functions of these, all of which are read; its items
        SUM of one column each. Why: a function of the keys merges whole groups, and `abs(x + y) <= abs(x) + abs(y)`:
        what bounds the sum over groups bounds it over merged ones; what bounds one group does not.
        """
        if top.op != "agg":
            raise Refused("lemmas: a query of aggregates", top.op)
        block, group, having, columns = top.args
        sources, outer, conditions = block.args
        shown = columns_of(top)
        merged = any(one.op != "col" for one in group)
        summed = len(sources) == 1 and sources[0].args[0].op == "union"
        if merged and not summed and len(sources) == 1 and sources[0].args[0].op == "agg":
            summed = self._reads_all_keys(group, sources[0])
            members: tuple[Term, ...] = (sources[0].args[0],)
        elif summed:
            members = sources[0].args[0].args[0]
        if not summed or all(one.op == "select" for one in members):
            self.keys_are(group, [shown[name] for name in keys])
            return [Part(block, group, frozenset(having), {n: t for n, t in columns if n not in keys})]
        [source] = sources
        if outer or conditions:
            raise Refused("lemmas: parts are added up as they are")
        members = tuple(self._passed_on(one) for one in members)
        members = self._without_people(top, members, counted)
        names = self._read_of(group, source)
        if len(group) != len(keys) or len(names) != len(keys):
            raise Refused("lemmas: groups are those of the keys")
        self.keys_are(group, [shown[name] for name in keys])
        found = []
        for member in members:
            inner = columns_of(member)
            self.keys_are(member.args[1], [inner[name] for name in names])
            taken = {}
            for name, term in columns:
                if name in keys:
                    continue
                item = self.plain(term)
                if (
                    item.op != "sum"
                    or item.args[1]
                    or item.args[0].op != "col"
                    or item.args[0].args[0] is not source
                ):
                    raise Refused("lemmas: parts are added up as they are", name)
                taken[name] = inner[item.args[0].args[1]]
            ordered_keys = tuple(inner[name] for name in names)
            if set(ordered_keys) != set(member.args[1]):
                raise Refused("lemmas: groups are those of the keys")
            by = {self.pool("col", source, name): inner[name] for name in names}
            told = tuple(self.pool.replace(key, by) for key in group)
            found.append(Part(member.args[0], ordered_keys, frozenset(member.args[2]), taken, merged, told))
        return found

    def _read_of(self, group: Sequence[Term], source: Term) -> list[str]:
        """The columns of a source that keys are made of, and of nothing else of a row."""
        read = [one for key in group for one in walk(key) if one.op in _OF_ROWS or one.op in AGGREGATES]
        if any(one.op != "col" or one.args[0] is not source for one in read):
            raise Refused("lemmas: groups are those of the keys")
        return list(dict.fromkeys(one.args[1] for one in read))

    def _reads_all_keys(self, group: Sequence[Term], source: Term) -> bool:
        """Whether keys are functions of those of a grouping, and read each of them."""
        columns = columns_of(source.args[0])
        read = [one for key in group for one in walk(key) if one.op == "col"]
        return all(one.args[0] is source for one in read) and {columns[one.args[1]] for one in read} == set(
            source.args[0].args[1]
        )

    def _passed_on(self, member: Term) -> Term:
        """A grouping, where a SELECT only passes on its columns, keys among them."""
        if member.op == "agg":
            return member
        block, columns = member.args
        if member.op != "select" or len(block.args[0]) != 1 or block.args[1:] != ((), ()):
            raise Refused("lemmas: a query of aggregates", member.op)
        [source] = block.args[0]
        if source.args[0].op != "agg":
            raise Refused("lemmas: a query of aggregates", member.op)
        inner = columns_of(source.args[0])
        by = {self.pool("col", source, name): term for name, term in inner.items()}
        shown = tuple((name, self.pool.replace(term, by)) for name, term in columns)
        return self.pool("agg", *source.args[0].args[:3], shown)

    def _without_people(
        self, top: Term, members: tuple[Term, ...], counted: tuple[str, int] | None
    ) -> tuple[Term, ...]:
        """Members without a join with `people`, the numbers of persons by group. Premise: rows are joined with
        it on all its keys, NULL with NULL; the whole keeps groups alone in which that number, and nothing else,
        is 1 or more. Why: of such a group the join keeps each row once, and other groups are dropped anyway."""
        if counted is None:
            return members
        total = self.plain(columns_of(top)[counted[0]])
        tested = any(
            one.op == "le"
            and one.args[0].op == "num"
            and one.args[0].args[0] >= 1
            and self.plain(one.args[1]) is total
            for one in top.args[2]
        )
        if not tested or total.op != "sum" or total.args[0].op != "col":
            return members
        name = total.args[0].args[1]
        counting = [one for one in members if not self._nothing(columns_of(one)[name])]
        if (
            len(counting) != 1
            or columns_of(counting[0])[name] is not self.pool("count*", ())
            or counting[0].args[2]
        ):
            return members
        return tuple(one if one is counting[0] else self._unjoined(one, counting[0]) for one in members)

    def _unjoined(self, relation: Term, counting: Term) -> Term:
        """A grouping over rows, or over p's rows, without the join with people."""
        block = relation.args[0]
        p = self._grouped_source(block)
        if p is not None:
            other = self.pool("src", self._unjoined(p.args[0], counting), *p.args[1:])
            by = {self.pool("col", p, name): self.pool("col", other, name) for name in columns_of(p.args[0])}
            changed = self.pool("block", (other,), (), ())
            rest = [tuple(self.pool.replace(one, by) for one in part) for part in relation.args[1:3]]
            shown = tuple((name, self.pool.replace(term, by)) for name, term in relation.args[3])
            return self.pool("agg", changed, *rest, shown)
        for people in block.args[0]:
            if people.args[0].op != "agg" or people.args[0].args[:3] != counting.args[:3]:
                continue
            joins = [one for one in block.args[2] if people in one.free]
            held = {
                side.args[1]
                for one in joins
                for side in one.args
                if side.op == "col" and side.args[0] is people
            }
            keys = {
                name for name, term in columns_of(people.args[0]).items() if term in people.args[0].args[1]
            }
            used = any(people in term.free for _, term in relation.args[3]) or people in dict(block.args[1])
            if held != keys or len(joins) != len(keys) or used or any(one.op != "same" for one in joins):
                continue
            sources = tuple(one for one in block.args[0] if one is not people)
            conditions = tuple(one for one in block.args[2] if one not in joins)
            return self.pool(
                "agg", self.pool("block", sources, block.args[1], conditions), *relation.args[1:]
            )
        return relation

    def _grouped_source(self, block: Term) -> Term | None:
        sources, outer, conditions = block.args
        single = len(sources) == 1 and not outer and not conditions and sources[0].args[0].op == "agg"
        source: Term | None = sources[0] if single else None
        return source

    def unlisted(self, reader: Reader, tree: exp.Expression, keys: Sequence[str]) -> exp.Expression:
        """A query without the list of shown groups that it is joined with. Premise: functions of keys alone are
        compared with the list's columns, and the list passes each group once. Why: whole groups are dropped, by
        a list that is the draw's own, and none is there twice."""
        found = reader.unlisted(tree)
        if found is None:
            return tree
        inner, conditions, names, listed = found
        ours = {names[key] for key in keys if key in names}
        held = set()
        for one in conditions:
            sides = [side for side in one.args if isinstance(side, Term)] if one.op in ("eq", "same") else []
            theirs = [
                side.args[0] if side.op == "cast" and side.args[1] == ("text",) else side for side in sides
            ]
            theirs = [side for side in theirs if listed in side.free]
            rest = [side for side in sides if listed not in side.free]
            columns = {part for side in rest for part in walk(side) if part.op in ("col", "exists", "scalar")}
            if (
                len(theirs) != 1
                or len(rest) != 1
                or theirs[0].op not in ("col", "cast")
                or not columns <= ours
            ):
                raise Refused("lemmas: a list of shown groups, by their keys")
            held.add(theirs[0].args[1] if theirs[0].op == "col" else self._cast_of(theirs[0]))
        if not self.relations.determined(listed.args[0], held):
            raise Refused("lemmas: a list of shown groups, each once")
        return inner

    def _cast_of(self, term: Term) -> str:
        """The column of a list that is read as a moment: as it was written."""
        inner = term.args[0]
        if inner.op != "col":
            raise Refused("lemmas: a list of shown groups, by their keys")
        return str(inner.args[1])

    def keys_are(self, group: Sequence[Term], shown: Sequence[Term]) -> None:
        """The printed keys are functions of the groups' keys alone, and each has one spelling of a value."""
        for key in group:
            if not self._has_one_spelling(key):
                raise Refused("lemmas: a key has one spelling", f"{self.values.type(key)}")
        for term in shown:
            for one in walk(term, lambda one: one not in group):
                if (one.op in _OF_ROWS or one.op in AGGREGATES) and one not in group:
                    raise Refused("lemmas: groups are those of the keys")

    def _has_one_spelling(self, key: Term) -> bool:
        """Whether equal values of a key are written alike: by its type; or, of decimals of several scales, where it is
        `CASE WHEN k IN (…) THEN k ELSE c END` with a c that is none of these."""
        kind = self.values.type(key)
        if kind[0] not in ("float", "other") and kind != ("decimal", None, None):
            return True
        if key.op != "case" or len(key.args[0]) != 1 or key.args[1].op != "num":
            return key.op == "fn" and key.args[0] == "TRIM_SCALE"
        [(when, value)], other = key.args
        tests = when.args if when.op == "or" else (when,)
        listed = [one for test in tests if test.op == "in" and test.args[0] is value for one in test.args[1]]
        rest = [
            test for test in tests if test.op != "in" and not (test.op == "isnull" and test.args[0] is value)
        ]
        apart = all(one.op == "num" and one.args[0] != other.args[0] for one in listed)
        return bool(listed) and apart and not rest and self._has_one_spelling(value)

    def plain(self, term: Term) -> Term:
        """An item without casts that keep its number, and without COALESCE(…, 0): no rows count as 0 anyway."""
        while True:
            if term.op == "cast" and term.args[1][0] in ("int", "decimal"):
                if not self._whole(term.args[0]):
                    raise Refused("lemmas: a cast of a total changes nothing", repr(term)[:200])
                term = term.args[0]
            elif (
                term.op == "coalesce"
                and len(term.args) == 2
                and term.args[1].op == "num"
                and not term.args[1].args[0]
            ):
                term = term.args[0]
            else:
                return term

    def _whole(self, term: Term) -> bool:
        step = self.values.ends(term).step
        return step is not None and Fraction(step).denominator == 1

    # --- forms ---

    def form(self, term: Term, known: tuple[Term, ...] = ()) -> Form:
        """An expression of aggregates as a sum over rows, of which `known` holds: what each row adds. NULL counts
        as 0, so what can be NULL stands alone, under COALESCE(…, 0), or times a number."""
        op, args = term.op, term.args
        if op == "num" and not args[0]:
            return {}
        if op == "count*":
            return {args[0]: {(): 1}}
        if op == "count":
            return {self._flags(args[1], self.values.present(args[0])): {(): 1}}
        if op == "sum":
            if self.values.type(args[0])[0] not in ("int", "decimal"):
                raise Refused("lemmas: a sum is of integers or decimals", repr(args[0])[:200])
            flags = self._flags(args[1], self.values.present(args[0]))
            return self._split(flags, self.values.poly(args[0]))
        if op == "add" and (whole := self._halves(*args)) is not None:
            return self.form(whole, known)
        if op in ("add", "sub"):
            for one in args:
                if self._may_be_null(one):
                    raise Refused("lemmas: a SUM beside others is under COALESCE", repr(one)[:200])
            return add_forms(self.form(args[0], known), self.form(args[1], known), 1 if op == "add" else -1)
        if op == "neg":
            return scaled(self.form(args[0], known), -1)
        if op == "mul":
            for one, other in (args, args[::-1]):
                if (factor := self._constant(one)) is not None:
                    return scaled(self.form(other, known), factor)
        if op in ("least", "greatest") and (one := self._outermost(term, known)) is not None:
            return self.form(one, known)
        if op == "cast":
            return self.form(self.plain(term), known)
        if op == "coalesce" and self.plain(term) is not term:
            return self.form(self.plain(term), known)
        raise Refused("lemmas: a number is a sum over rows", repr(term)[:200])

    def _outermost(self, term: Term, known: tuple[Term, ...]) -> Term | None:
        """The side that LEAST or GREATEST of two totals is, whatever the rows are: on no row it adds more (less)."""
        if len(term.args) != 2 or any(self._may_be_null(one) for one in term.args):
            return None
        first: Term = term.args[0]
        second: Term = term.args[1]
        low, high = self.row_ends([add_forms(self.form(first, known), self.form(second, known), -1)], known)
        if low < 0 < high:
            return None
        return second if (low >= 0) == (term.op == "least") else first

    def _halves(self, high: Term, low: Term) -> Term | None:
        """SUM(x) of `2^k·SUM(x >> k) + SUM(x & (2^k - 1))`: an integer is its high and its low bits."""
        if high.op != "mul" or low.op != "sum" or low.args[0].op != "bitand":
            return None
        factor, above = self._constant(high.args[1]), high.args[0]
        above = above.args[0] if above.op == "cast" and above.args[1][0] in ("int", "decimal") else above
        if above.op != "sum" or above.args[0].op != "shr" or above.args[1] != low.args[1]:
            return None
        (x, places), (y, mask) = above.args[0].args, low.args[0].args
        power = 2 ** places.args[0] if places.op == "num" and places.args[0] in range(63) else None
        if x is not y or power is None or factor != power or mask.op != "num" or mask.args[0] != power - 1:
            return None
        return self.pool("sum", x, low.args[1]) if self.values.type(x)[0] == "int" else None

    def _split(self, flags: tuple[Term, ...], poly: Poly) -> Form:
        return {flags: poly} if poly else {}

    def _constant(self, term: Term) -> Number | None:
        if term.op == "cast" and term.args[1][0] in ("int", "decimal"):
            return self._constant(term.args[0])
        return term.args[0] if term.op == "num" and term.args[1] != "float" else None

    def _flags(self, conditions: tuple[Term, ...], present: frozenset[Term]) -> tuple[Term, ...]:
        there = (self.values.present(one.args[0]) for one in conditions if one.op == "notnull")
        rest = {one for one in conditions if one.op != "notnull"}
        return tuple(sorted(rest.union(present, *there), key=lambda one: one.serial))

    def _may_be_null(self, term: Term) -> bool:
        if term.op == "sum":
            return True
        if term.op in ("coalesce", "count*", "count", "distinct", "num"):
            return False
        return any(self._may_be_null(one) for one in term.args if isinstance(one, Term))

    def shown(self, top: Term, parts: list[Part], counted: tuple[str, int] | None) -> None:
        """HAVING of the whole: of keys alone; or, where people are counted for a threshold, that there are at least
        the fewest that are ever told. Why: groups with fewer are never shown, so which of them leave the engine is
        not told."""
        allowed: set[Term] = set()
        if counted is not None:
            name, least = counted
            total = {columns_of(top)[name], self.plain(columns_of(top)[name])}
            for one in top.args[2]:
                if (
                    one.op == "le"
                    and one.args[1] in total
                    and one.args[0].op == "num"
                    and one.args[0].args[0] <= least
                ):
                    allowed.add(one)
        for number, part in enumerate(parts):
            if part.block is top.args[0]:
                parts[number] = replace(part, having=part.having - allowed)
        whole = Part(top.args[0], top.args[1], frozenset(top.args[2]) - allowed, {})
        self.key_having(whole)
        if whole.having and parts[0].block is not top.args[0]:
            raise Refused("lemmas: HAVING looks at keys alone", "above the parts")

    # --- lemmas ---

    def score(self, move: Move, measurement: Measurement, chosen: int | None) -> Move:
        """Lemma *cap*. Premise: scores of groups that an owner raises by at most `in_group` each, and lowers none.
        Conclusion: a choice loses rate times that, whichever groups were taken before. Why: 1.23."""
        if not move.monotone or measurement.choices != chosen:
            raise Refused("lemmas: cap, scores rise only, and each choice is counted")
        return replace(move, l1=move.in_group)

    def boxed(self, parts: Sequence[Part], columns: Sequence[Sequence[str]], reaches: Sequence[int]) -> Move:
        """Lemma *box*. Premise: a row adds to coordinates of one mask alone, to each at most U times its reach r_i;
        who has t > R rows weighs them `K // t`. Conclusion: `Σ over groups and masks of max_i abs(y_i) / r_i <=
        max(R·U, K)`, in whole numbers. Why: 1.22."""
        self._reaches = [tuple(reaches)] * len(columns)
        self._masks = [len(mask) for mask in columns]
        if any(len(mask) != len(reaches) or any(one < 1 for one in reaches) for mask in columns):
            raise Refused("lemmas: box, a reach for each coordinate")
        used = [
            part
            for part in parts
            if any(not self._nothing(part.columns[n]) for mask in columns for n in mask)
        ]
        names = [name for mask in columns for name in mask]
        self._boxed = True
        try:
            if len(used) == 2:
                return self._merged(used[0], self.corrected(used[0], used[1], names))
            return self._merged(used[0], self.single(used[0], names))
        finally:
            self._boxed = False

    def measure(self, rows: Sequence[Poly]) -> Number:
        """What a row adds, in L1; for a box, in steps of its reaches, over masks."""
        if not self._boxed:
            return self.values.extent(rows)
        total, place = 0, 0
        for size, reaches in zip(self._masks, self._reaches, strict=True):
            steps = 0
            for poly, reach in zip(rows[place : place + size], reaches, strict=True):
                most = max(map(abs, self.values.range(poly)))
                steps = max(steps, -(-most // reach))
            total, place = total + steps, place + size
        return total

    def move(self, parts: Sequence[Part], names: Sequence[str]) -> Move:
        """The lemma that fits the parts in which these columns are not 0."""
        used = [part for part in parts if any(not self._nothing(part.columns[name]) for name in names)]
        if len(used) == 1:
            return self._merged(used[0], self.single(used[0], names))
        if len(used) == 2 and (move := self.clamped(used[0], used[1], names)) is not None:
            return move
        if len(used) == 2:
            return self._merged(used[0], self.corrected(used[0], used[1], names))
        raise Refused("lemmas: a pattern with a lemma", f"{len(used)} parts")

    def _merged(self, part: Part, move: Move) -> Move:
        """What is moved where groups of a part are merged: all of it may stand in one of them."""
        if part.merged and move.lemma == "direct":
            raise Refused("lemmas: direct, averages are not added up")
        return replace(move, in_group=move.l1) if part.merged else move

    def _nothing(self, term: Term) -> bool:
        return term.op == "num" and term.args[0] == 0

    def single(self, part: Part, names: Sequence[str]) -> Move:
        """Lemmas *plain*, *by unit* and *lookup*."""
        if (two := first_rows(self.pool, self.relations, part.block)) is not None:
            return self.looked_up(part, names, two)
        joined = self.relations.joined(part.block)
        items = [self.plain(part.columns[name]) for name in names]
        self.relations.subqueries([*part.keys, *part.having, *items], joined)
        if joined.public:
            return Move("public", 0, 0, 0, 0, 0, True, 0)
        if len(items) == 1 and items[0].op in ("coalesce", "add") and self._has_quotient(items[0]):
            return self.direct(part, joined, items[0])
        self.key_having(part)
        if any(one.op == "distinct" for one in items):
            return self.distinct(part, joined, items)
        forms = [self.form(one) for one in items]
        p = self._by_owner(part.block)
        if p is not None and (weight := self._weight(forms, p, least=2)) is not None:
            return self.by_unit(part, p, forms, weight)
        mult = self.relations.mult(self.pool("select", part.block, ()))
        mult = mult if mult is not None else self._ranked(forms)
        mult = self._of_drawn(mult, joined, part)
        self._owner_is_known(joined)
        return self.plain_move("plain", forms, joined, part, mult)

    def _of_drawn(self, mult: int | None, joined: Joined, part: Part) -> int:
        """An owner's rows in the groups that are drawn. Premise: one row of an owner in a group, groups that are not
        merged, a list that is fixed before. Conclusion: no more than groups are drawn. Why: of rows of other groups no
        number is drawn, so they move none (V18)."""
        drawn = self._drawn
        if (
            drawn is not None
            and not part.merged
            and (mult is None or mult > drawn)
            and self._is_single(joined, part)
        ):
            return drawn
        if mult is None:
            raise Refused("lemmas: an owner's rows are bounded")
        return mult

    def _is_single(self, joined: Joined, part: Part) -> bool:
        return self._one_row_in_a_group(joined, part.keys) or self._one_row_of_p(part)

    def looked_up(self, part: Part, names: Sequence[str], two: TwoOwners) -> Move:
        """Lemma *lookup*. Premise: of rows of two owners, R_a + R_b go and R_a come at most. Conclusion: 2·R_a + R_b
        times a row's reach; of one coordinate without groups R_a times what a row moves it that takes another's place,
        and R_b times what a row moves it; squares add up to `(R_a + R_b)² + R_a²` times the reach's where each
        coordinate has one sign. Why: 1.38."""
        self.key_having(part)
        items = [self.plain(part.columns[name]) for name in names]
        if len(items) == 1 and items[0].op == "distinct" and len(items[0].args[0]) == 1:
            if self.values.type(items[0].args[0][0])[0] == "float":
                raise Refused("lemmas: distinct values are of an exact type")
            forms: list[Form] = [{(): {(): 1}}]
        else:
            forms = [self.form(one) for one in items]
        reach, ends = self.values.reach(forms, (), self.measure), self.each_ends(forms, ())
        low, high = _hull(ends)
        if len(names) == 1 and not part.keys and not part.merged:
            most = two.first * (max(0, high) - min(0, low)) + two.most * reach
            return Move("lookup", two.apart, reach, most, -most, most, False, most)
        most = two.apart * reach
        square = reach**2 * ((two.first + two.most) ** 2 + two.first**2)
        is_square = _one_sign(ends) and not self._boxed
        return Move(
            "lookup", two.apart, reach, most, -most, most, False, most, squared=square if is_square else None
        )

    def clamped(self, light: Part, heavy: Part, names: Sequence[str]) -> Move | None:
        """Lemma *clamp*; None where it is another pattern.

        Premise: of rows of two owners, masks that are disjoint, and G listed cells, which HAVING leaves of both parts
        alike. Of b with at most `few` rows each
        row counts u; of the others, a cell of c rows, cut to `cap`, counts `c·K // D`, with D the larger of T·V and of
        the step of Newton's for V times the root of s = Σ c², from z, the engine's root in whole numbers; K = u·T·V.
        Conclusion: squares add up to the square of `u·T + R_a·(u + ceil(sqrt G) + 4)`. Why: D is not below V·sqrt(s),
        whatever z is, so what b counts is of norm u·T at most; and, the root being right to 20 bits, within a step and
        2 of the projection on that ball, which no row moves by more than u (1.38)."""
        flags = [
            flag
            for term in light.columns.values()
            for one in walk(term)
            if one.op == "count*"
            for flag in one.args[0]
        ]
        found = clamped_cells(self.pool, self.relations, light.block, heavy.block, [*light.keys, *flags])
        if found is None:
            return None
        refused = Refused("lemmas: clamp, counts of cells by their norm")
        self._same_cells(light, heavy, found, refused)
        forms, cells, unit, cap, share, divisor = self._cut_counts(light, heavy, names, found, refused)
        many = self._listed(light.keys, found.cells.args[0].args[2]) * len(names)
        norm = self._newton(divisor, found, cells, many * cap**2)
        ok = (
            isinstance(unit, int)
            and isinstance(share, int)
            and 1 <= unit <= norm[1]
            and share == unit * norm[0]
        )
        whole = Fraction(norm[0], norm[1])
        if not ok or found.few > whole or found.few > cap or whole * unit > 2**40:
            raise refused
        if self.values.reach(forms, (), self.values.extent) != unit:
            raise refused
        root = isqrt(many - 1) + 1
        most = whole * unit + found.first * (unit + root + 4)
        return Move(
            "clamp",
            found.first,
            unit,
            root * most,
            -root * most,
            root * most,
            False,
            root * most,
            squared=most**2,
        )

    def _cut_counts(
        self, light: Part, heavy: Part, names: Sequence[str], found: Cells, refused: Refused
    ) -> tuple[list[Form], list[Term], Number, int, Number | None, Term]:
        """Premise of *clamp*: (forms, cells' columns, u, cap, K, D), the last four of which all masks have alike."""
        forms, units, caps, shares, cells = [], set(), set(), set(), []
        for name in names:
            form, cell = (
                self.form(self.plain(light.columns[name])),
                self._share_of_cell(heavy.columns[name], found),
            )
            [(told_by, poly)] = form.items()
            column, share, divisor = cell
            counted, cap = self._counted_to(columns_of(found.cells.args[0])[column])
            if self.form(counted) != {told_by: {(): 1}} or set(poly) != {()}:
                raise refused
            forms.append(form)
            units.add(poly[()])
            caps.add(cap)
            shares.add((share, divisor))
            cells.append(self.pool("col", found.cells, column))
        if len(units) != 1 or len(caps) != 1 or len(shares) != 1:
            raise refused
        [unit], [cap], [(share, divisor)] = units, caps, shares
        return forms, cells, unit, cap, share, divisor

    def _same_cells(self, light: Part, heavy: Part, found: Cells, refused: Refused) -> None:
        """Premise of *clamp*: both parts have the keys of the cells, beside their owner, and what HAVING leaves is of
        the keys, and alike."""
        _, keys, having, _ = found.cells.args[0].args
        shown = columns_of(found.cells.args[0])
        if light.merged or heavy.merged or light.having != frozenset(having):
            raise refused
        self.key_having(light)
        known = {self.pool("col", found.cells, name): term for name, term in shown.items()}
        if not {self.pool.replace(one, known) for one in heavy.having} <= light.having:
            raise refused
        told = [shown[key.args[1]] for key in heavy.keys if key.op == "col" and key.args[0] is found.cells]
        if tuple(told) != light.keys or len(keys) != len(found.owner) + len(light.keys):
            raise refused
        if not set(keys) <= {*found.owner, *light.keys}:
            raise refused

    def _share_of_cell(self, term: Term, found: Cells) -> tuple[str, Number | None, Term]:
        """(c, K, D) of `SUM(c·K // D)`, c a column of cells."""
        total = self.plain(term)
        quotient = self._uncast(total.args[0]) if total.op == "sum" and not total.args[1] else total
        product = self._uncast(quotient.args[0]) if quotient.op == "intdiv" else quotient
        cell = self._uncast(product.args[0]) if product.op == "mul" else product
        if cell.op != "col" or cell.args[0] is not found.cells or quotient.op != "intdiv":
            raise Refused("lemmas: clamp, counts of cells by their norm")
        self._cuts(quotient)
        return cell.args[1], self._constant(product.args[1]), self._uncast(quotient.args[1])

    def _counted_to(self, term: Term) -> tuple[Term, int]:
        """(COUNT(*), cap) of the least of both."""
        given = term.args if term.op == "least" else ()
        caps = [number for one in given if isinstance(number := self._constant(one), int)]
        counted = [one for one in given if one.op == "count*"]
        if len(caps) != 1 or len(counted) != 1 or len(given) != 2 or caps[0] < 1:
            raise Refused("lemmas: clamp, counts of cells by their norm")
        return counted[0], caps[0]

    def _newton(self, divisor: Term, found: Cells, cells: Sequence[Term], most: int) -> tuple[int, int]:
        """(T·V, V) of `GREATEST((z + s·V² // z) // 2 + 1, T·V)`, with `z = GREATEST(CAST(LEAST(sqrt(s)·V, b)), 1)` and
        s the sum of squares of the cells, `most` at most and cut to no less, b not below sqrt(s)·V."""
        refused = Refused("lemmas: clamp, a divisor by the root of squares")

        def pair(term: Term, op: str) -> tuple[Term, int]:
            """The two sides of which the other is a whole number."""
            for one, other in (term.args, term.args[::-1]) if term.op == op and len(term.args) == 2 else ():
                if isinstance(number := self._constant(other), int):
                    return self._uncast(one), number
            raise refused

        step, least = pair(divisor, "greatest")
        half, one = pair(step, "add")
        if half.op != "intdiv":
            raise refused
        both, two = self._uncast(half.args[0]), self._constant(half.args[1])
        if (one, two) != (1, 2) or both.op != "add":
            raise refused
        quotients = [side for side in map(self._uncast, both.args) if side.op == "intdiv"]
        roots = [side for side in map(self._uncast, both.args) if side.op != "intdiv"]
        if len(quotients) != 1 or len(roots) != 1 or self._uncast(quotients[0].args[1]) is not roots[0]:
            raise refused
        self._cuts(half)
        self._cuts(quotients[0])
        s, square = pair(self._uncast(quotients[0].args[0]), "mul")
        guess, smallest = pair(roots[0], "greatest")
        scale = isqrt(square)
        if scale**2 != square or scale < 2**20 or smallest != 1 or guess.op != "least":
            raise refused
        ends = [one.args[0] for one in guess.args if one.op == "num"]
        products = [one for one in guess.args if one.op == "mul"]
        if len(ends) != 1 or len(products) != 1 or len(guess.args) != 2:
            raise refused
        factors = [one.args[0] for one in products[0].args if one.op == "num"]
        root = [one for one in products[0].args if one.op == "fn" and one.args[0] == "SQRT"]
        if factors != [scale] or len(root) != 1 or self._uncast(root[0].args[1], "float") is not s:
            raise refused
        total = columns_of(found.made.args[0])[s.args[1]] if s.op == "col" and s.args[0] is found.made else s
        sums, bound = pair(self._uncast(total), "least")
        below = found.made.args[0].args[0].args[0][0]
        own = [self.pool("col", below, one.args[1]) for one in cells]
        if sums.op != "sum" or sums.args[1] or bound < most or ends[0] ** 2 < square * bound:
            raise refused
        if self.values.poly(sums.args[0]) != {(one, one): 1 for one in own}:
            raise refused
        return least, scale

    def _uncast(self, term: Term, more: str = "int") -> Term:
        """A number without casts that keep it, or that read it as a double."""
        while term.op == "cast" and term.args[1][0] in ("int", "decimal", more):
            term = term.args[0]
        return term

    def _listed(self, keys: Sequence[Term], having: Sequence[Term]) -> int:
        """How many groups there are at most, by lists of each key's values in HAVING."""
        groups = 1
        for key in keys:
            sizes = []
            for one in having:
                tests = one.args if one.op == "or" else (one,)
                values = [test.args[1] for test in tests if test.op == "in" and test.args[0] is key]
                null = [test for test in tests if test.op == "isnull" and test.args[0] is key]
                if len(values) + len(null) == len(tests):
                    sizes.append(sum(map(len, values)) + len(null))
            if not sizes:
                raise Refused("lemmas: clamp, groups are listed")
            groups *= min(sizes)
        return groups

    def _ranked(self, forms: Sequence[Form]) -> int | None:
        """C, where only rows of rank up to C among their owner's add something: `FILTER (WHERE rn <= C)`."""
        most = 0
        ranks = set()
        for key in (key for form in forms for key in form):
            for one in key:
                bound = self.relations.ranked(one)
                if bound is not None:
                    ranks.add(bound[0])
                    most = max(most, bound[1])
                    break
            else:
                return None
        return most if len(ranks) == 1 else None

    def plain_move(self, lemma: str, forms: Sequence[Form], joined: Joined, part: Part, mult: int) -> Move:
        """Premise: `mult` rows of an owner. Conclusion: mult times a row's reach. Why: triangle inequality, row by
        row."""
        known = joined.block.args[2]
        reach = self.values.reach(forms, known, self.measure)
        ends = self.each_ends(forms, known)
        low, high = _hull(ends)
        single = self._is_single(joined, part)
        return Move(
            lemma,
            mult,
            reach,
            mult * reach,
            mult * min(0, low),
            mult * max(0, high),
            _one_sign(ends),
            reach if single else mult * reach,
            low >= 0,
        )

    def row_ends(self, forms: Sequence[Form], known: tuple[Term, ...]) -> tuple[Number, Number]:
        """The least and the most of one row, over the coordinates."""
        return _hull(self.each_ends(forms, known))

    def each_ends(self, forms: Sequence[Form], known: tuple[Term, ...]) -> list[tuple[Number, Number]]:
        """The least and the most that a row adds to each coordinate; 0 lies between them."""
        found: list[tuple[Number, Number]] = [(0, 0)] * len(forms)

        def widened(rows: Sequence[Poly]) -> Number:
            for place, poly in enumerate(rows):
                if poly:
                    low, high = self.values.range(poly)
                    found[place] = min(found[place][0], low), max(found[place][1], high)
            return 0

        self.values.reach(forms, known, widened)
        return found

    def _one_row_in_a_group(self, joined: Joined, keys: Sequence[Term]) -> bool:
        """Whether enforced keys leave an owner one row in a group."""
        return self.relations.determines(joined, [*self.relations.unit_terms(joined), *keys])

    def _one_row_of_p(self, part: Part) -> bool:
        """Whether the keys are all of p's but the owner: p has one row of an owner for each."""
        p = self._by_owner(part.block)
        grouping = self.grouping(p) if p is not None else None
        if p is None or grouping is None or any(one.op != "col" or one.args[0] is not p for one in part.keys):
            return False
        joined = self.relations.joined(grouping.args[0])
        owner = {joined.find(term) for term in self.relations.unit_terms(joined)}
        held = {self.definition(p, one.args[1]) for one in part.keys}
        return all(key in held or joined.find(self.relations.bare(key)) in owner for key in grouping.args[1])

    def _owner_is_known(self, joined: Joined) -> None:
        """Rows of nobody are not counted: the owner is not NULL, there or in the rows that p groups."""
        p = self._by_owner(joined.block) if not joined.block.args[1] else None
        grouping = self.grouping(p) if p is not None else None
        joined = self.relations.joined(grouping.args[0]) if grouping is not None else joined
        said = [one for one in joined.identities if one[0] == UNIT] or joined.identities
        for kind, terms in said:
            if (kind, terms) == ROW or (terms and all(self.relations.sure(term, joined) for term in terms)):
                return
        raise Refused("lemmas: rows of nobody are left out")

    def distinct(self, part: Part, joined: Joined, items: Sequence[Term]) -> Move:
        """Premise: COUNT(DISTINCT x), `mult` rows of an owner. Conclusion: mult, upwards. Why: each row brings or
        takes at most one value of one group."""
        if len(items) != 1 or items[0].op != "distinct" or len(items[0].args[0]) != 1:
            raise Refused("lemmas: a number is a sum over rows", "DISTINCT beside others")
        if self.values.type(items[0].args[0][0])[0] == "float":
            raise Refused("lemmas: distinct values are of an exact type")
        mult = self._of_drawn(self.relations.mult(self.pool("select", part.block, ())), joined, part)
        self._owner_is_known(joined)
        return self.plain_move("plain, distinct", [{(): {(): 1}}], joined, part, mult)

    def key_having(self, part: Part) -> None:
        """Premise of HAVING: of keys alone. Why: it drops whole groups, the same whoever is there."""
        for one in part.having:
            if any(inner.op in AGGREGATES for inner in walk(one, lambda term: term not in part.keys)):
                raise Refused("lemmas: HAVING looks at keys alone", repr(one)[:200])

    def _has_quotient(self, term: Term) -> bool:
        return any(one.op == "intdiv" for one in walk(term, lambda one: one.op not in AGGREGATES))

    def _by_owner(self, block: Term) -> Term | None:
        """p, where a block is `FROM p` alone and p is grouped; or p with windows over its rows."""
        sources, outer, _ = block.args
        if len(sources) != 1 or outer or self.grouping(sources[0]) is None:
            return None
        self.relations.rows(sources[0].args[0])
        source: Term = sources[0]
        return source

    def grouping(self, p: Term) -> Term | None:
        """The GROUP BY whose rows p has."""
        relation: Term = p.args[0]
        if relation.op == "union":
            kept = self.relations.kept(relation)
            return kept[0] if kept is not None else None
        if (
            relation.op == "window"
            and len(relation.args[0].args[0]) == 1
            and relation.args[0].args[1:] == ((), ())
        ):
            relation = relation.args[0].args[0][0].args[0]
        return relation if relation.op == "agg" else None

    def definition(self, p: Term, name: str) -> Term:
        """A column of p over the rows that p groups; of a window over p's rows as it is."""
        if p.args[0].op == "union":
            grouping = self.grouping(p)
            return columns_of(grouping if grouping is not None else p.args[0])[name]
        term: Term = columns_of(p.args[0])[name]
        if p.args[0].op == "window" and term.op == "col":
            term = columns_of(term.args[0].args[0])[term.args[1]]
        return term

    # --- weights ---

    def _weight(self, forms: Sequence[Form], source: Term, least: int = 1) -> Term | None:
        """The first column of a source, among what rows add, that is made of a quotient; of `least` factors."""
        terms = (term for form in forms for poly in form.values() for term in poly if len(term) >= least)
        for atom in (atom for term in terms for atom in term):
            if atom.op == "col" and atom.args[0] is source:
                definition = self.definition(source, atom.args[1])
                if any(one.op == "intdiv" for one in walk(definition, lambda one: one.op not in AGGREGATES)):
                    return atom
        return None

    def unweighed(self, forms: Sequence[Form], weight: Term) -> list[Form]:
        """Forms without the weight, which all their terms have once. Why: then each row adds its form that often."""
        found: list[Form] = []
        for form in forms:
            rest: Form = {}
            for flags, poly in form.items():
                if any(term.count(weight) != 1 for term in poly):
                    raise Refused("lemmas: one weight for all")
                rest[flags] = {
                    tuple(atom for atom in term if atom is not weight): one for term, one in poly.items()
                }
            found.append(rest)
        return found

    def share(self, weight: Term) -> tuple[int, Term]:
        """(K, d) of `K // d`, a whole number. Why: t rows of an owner with t <= d weigh K at most."""
        most = self._constant(weight.args[0]) if weight.op == "intdiv" else None
        if not isinstance(most, int) or most <= 0:
            raise Refused("lemmas: a weight is K // t", repr(weight)[:200])
        self._cuts(weight)
        divisor: Term = weight.args[1]
        return most, divisor

    def _cuts(self, quotient: Term) -> None:
        """A quotient of whole numbers is cut towards zero."""
        kinds = {self.values.type(one)[0] for one in quotient.args}
        if not kinds <= {"int", "decimal"} or ("decimal" in kinds and self.values.dialect.NAME == "duckdb"):
            raise Refused("lemmas: a quotient of whole numbers is cut", repr(quotient)[:200])
        if not self._whole(quotient.args[0]):
            raise Refused("lemmas: a quotient of whole numbers is cut", repr(quotient)[:200])

    def _below(self, atom: Term, p: Term) -> Form:
        """A column of p as a sum over the rows below it."""
        if atom.op != "col" or atom.args[0] is not p:
            raise Refused("lemmas: a quotient of a sum over rows", repr(atom)[:200])
        grouping = self.grouping(p)
        known = grouping.args[0].args[2] if grouping is not None else ()
        total = self.plain(self.definition(p, atom.args[1]))
        return self._of_means(total, known) or self.form(total, known)

    def _of_means(self, term: Term, known: tuple[Term, ...]) -> Form | None:
        """What a row of one owner adds to `LEAST(GREATEST(COALESCE(SUM(z), 0), low·n), high·n)` of these, n how many
        values z has: a number from low to high of which nothing else is known. Why: the total is n times a mean that
        lies between, and so that of rows of which each has the mean. Of rows of several owners it is not: where one is
        gone, the others' mean is another."""
        totals = inside(term)
        if totals is None:
            return None
        total, *bounds = totals
        plain = self.plain(total)
        if total.op != "coalesce" or plain.op != "sum" or any(self._may_be_null(one) for one in bounds):
            return None
        flags = self._flags(plain.args[1], self.values.present(plain.args[0]))
        forms = [self.form(one, known) for one in bounds]
        if any(set(form) - {flags} or set(form.get(flags, {})) - {()} for form in forms):
            return None
        low, high = (form.get(flags, {}).get((), 0) for form in forms)
        return {flags: {(self.values.pool("mean", low, high, plain),): 1}} if low <= high else None

    def by_unit(self, part: Part, p: Term, forms: Sequence[Form], weight: Term) -> Move:
        """Lemma *by unit*. Premise: sums over p times `K // t`, p is grouped by exactly the owner (and keys), `t =
        GREATEST(n, R)` with n the owner's rows that satisfy F in all groups, every row that adds something satisfies
        F. Conclusion: `K·reach`. Why: at most t rows add something, each its form K // t times."""
        if any(one.free or one.op in ("exists", "insub") for one in part.block.args[2]):
            raise Refused("lemmas: by unit, of all persons")
        if any(set(form) - {()} for form in forms):
            raise Refused("lemmas: what a person adds is never NULL")
        self.relations.rows(p.args[0])
        most, divisor = self.share(self.definition(p, weight.args[1]))
        counted, bound, joined = self.all_rows(p, divisor, part)
        self._owner_is_known(joined)
        rows: list[Form] = []
        for form in self.unweighed(forms, weight):
            total: Form = {}
            for term, factor in form.get((), {}).items():
                if len(term) != 1:
                    raise Refused("lemmas: a person adds sums over rows", repr(term)[:200])
                total = add_forms(total, self._below(term[0], p), factor)
            rows.append(total)
        return self._weighing("by unit", rows, most, joined, counted, bound)

    def _weighing(
        self, lemma: str, rows: Sequence[Form], most: int, joined: Joined, within: Sequence[Term], bound: int
    ) -> Move:
        """Rows of an owner that weigh `most` in all: whole numbers, so that a box counts each in whole steps."""
        known = joined.block.args[2]
        reach = self.values.reach(rows, known, self.measure, within) * most
        each = self.each_ends(rows, known)
        low, high = (most * one for one in _hull(each))
        ends = (min(0, low), max(0, high))
        return Move(lemma, bound, reach, reach, *ends, _one_sign(each), reach, low >= 0)

    def all_rows(self, p: Term, t: Term, part: Part) -> tuple[tuple[Term, ...], int, Joined]:
        """(F, R, rows) of `t = GREATEST(n, R)`: n is COUNT(*) of F where p is grouped by exactly the owner, or
        the sum over the owner's groups of p's COUNT(*), where p has keys too; p leaves out no group."""
        grouping = self.grouping(p)
        definition = self.definition(p, t.args[1]) if t.op == "col" and t.args[0] is p else t
        counted, least = (
            definition.args if definition.op == "greatest" and len(definition.args) == 2 else (t, t)
        )
        bound = self._constant(least)
        counted = counted.args[0] if counted.op == "cast" and counted.args[1][0] == "int" else counted
        if not isinstance(bound, int) or bound < 1 or grouping is None:
            raise Refused("lemmas: t is at least R, and all rows that count")
        if grouping.args[2]:
            raise Refused("lemmas: no row of an owner is left out of t")
        if counted.op == "count*" and p.args[0] is grouping and not part.keys:
            return counted.args[0], bound, self._exactly_by_owner(grouping)
        function, partition, order, _ = counted.args if counted.op == "over" else (t, (), (), "")
        inner = p.args[0].args[0].args[0][0] if p.args[0] is not grouping else p
        if function.op != "sum" or function.args[1] or order or function.args[0].op != "col":
            raise Refused("lemmas: t is at least R, and all rows that count")
        number = self.plain(self.definition(inner, function.args[0].args[1]))
        joined = self.relations.joined(grouping.args[0])
        owner = {self.definition(inner, one.args[1]) for one in partition if one.op == "col"}
        if number.op != "count*" or len(owner) != len(partition) or not owner <= set(grouping.args[1]):
            raise Refused("lemmas: t is at least R, and all rows that count")
        self._is_owner(owner, joined)
        return number.args[0], bound, joined

    def _is_owner(self, terms: set[Term], joined: Joined) -> None:
        classes = {joined.find(self.relations.bare(one)) for one in terms}
        if not any(
            k == UNIT and {joined.find(one) for one in unit} == classes for k, unit in joined.identities
        ):
            raise Refused("lemmas: t is of exactly the owner")

    def _exactly_by_owner(self, relation: Term, more: Sequence[Term] = ()) -> Joined:
        """Premise: the keys are the owner and no others (but `more`)."""
        joined = self.relations.joined(relation.args[0])
        keys = {joined.find(self.relations.bare(key)) for key in relation.args[1] if key not in more}
        for kind, terms in joined.identities:
            if kind == UNIT and {joined.find(term) for term in terms} == keys:
                return joined
        raise Refused("lemmas: p is grouped by exactly the owner")

    # --- E2 ---

    def corrected(self, first: Part, second: Part, names: Sequence[str]) -> Move:
        """Lemma *E2*. Premise: the first part sums U·f over B by keys; the second, over B joined with the owners who
        have t > R rows in B that satisfy F, by the same keys under the same HAVING, f times `W - U` with `W = K // t`;
        every row that adds something satisfies F. Conclusion: the larger of R·U and K, times reach(f). Why: an owner
        with t <= R adds U·f over at most R rows; one above it W·f over t. With norms (V14) W is the least of several,
        each of the owners who are beyond its bound, and U of those who are beyond none."""
        corrections = [self.form(self.plain(second.columns[name])) for name in names]
        read = {atom for form in corrections for poly in form.values() for term in poly for atom in term}
        weights = [one for one in read if one.op == "col" and one.args[0] in second.block.args[0]]
        weights = [one for one in weights if one.args[0].args[0].op == "agg"]
        if len(weights) != 1:
            raise Refused("lemmas: E2, a correction by one weight")
        [weight] = weights
        heavy, rest = self._without_heavy(second.block, weight)
        self._same_rows(first, rest)
        joined = self.relations.joined(rest)
        self.relations.rows(heavy.args[0])
        unit, members = self._least_of(heavy, weight)
        on = [one for one in second.block.args[2] if heavy in one.free]
        bound, most = 0, 0
        within: tuple[Term, ...] = ()
        squares: list[tuple[int, Term]] = []
        for place, (relation, weighed) in enumerate(members):
            if relation.op == "select":
                norm, key, inside = self._norm(relation, weighed, on, heavy, rest, unit)
                squares.append((norm, key))
            else:
                owner = self._equated(on, heavy, columns_of(relation), relation.args[1])
                bound, inside = self.heavy(relation, owner, rest)
                most, divisor = self.share(weighed)
                self._is_counted(divisor, relation)
            if place and inside != within:
                raise Refused("lemmas: E2, all bounds are of the same rows")
            within = inside
        if not bound:
            raise Refused("lemmas: E2, HAVING t > R")
        if second.keys != first.keys:
            raise Refused("lemmas: E2, both parts have the same groups")
        if second.having != first.having:
            raise Refused("lemmas: E2, both parts have the same HAVING")
        self.key_having(first)
        light = [self.form(self.plain(first.columns[name])) for name in names]
        rows = self.unweighed(corrections, weight)
        if any(add_forms(whole, one, -unit) for whole, one in zip(light, rows, strict=True)):
            raise Refused("lemmas: E2, what is taken off is what was added")
        self.relations.subqueries([*first.keys, *first.columns.values()], joined)
        move = self._larger(
            light, self._weighing("E2", rows, most, joined, within, bound), joined, first.keys
        )
        held = [
            norm for norm, key in squares if any(self._refines(one, key) for one in first.told or first.keys)
        ]
        if not held:
            return move
        reach = self.values.reach(rows, joined.block.args[2], self.measure)
        return replace(move, squared=reach**2 * min(held))

    def _least_of(self, heavy: Term, weight: Term) -> tuple[int, list[tuple[Term, Term]]]:
        """(U, relations with W) of a column `W - U` of heavy: heavy itself, or the least of a UNION ALL by owners."""
        relation = self._over_rows(heavy.args[0])
        definition = columns_of(relation)[weight.args[1]]
        unit = self._constant(definition.args[1]) if definition.op == "sub" else None
        if not isinstance(unit, int) or unit < 1:
            raise Refused("lemmas: E2, a correction by one weight")
        weighed = self.plain(definition.args[0])
        if weighed.op != "min":
            return unit, [(relation, weighed)]
        block, keys, having, columns = relation.args
        [union] = block.args[0] if len(block.args[0]) == 1 else [None]
        least = weighed.args[0]
        if (
            union is None or union.args[0].op != "union" or block.args[1:] != ((), ()) or having
            or any(key.op != "col" or key.args[0] is not union for key in (*keys, least))
            or {term for _, term in columns} != {*keys, definition}
        ):  # fmt: skip
            raise Refused("lemmas: E2, the least of several weights of an owner")
        return unit, [(one, columns_of(one)[least.args[1]]) for one in union.args[0].args[0]]

    def _over_rows(self, relation: Term) -> Term:
        """A grouping of p as one of the rows that p groups. Premise: keys of p's, all of p's groups, and of the rest of
        p the sum of its COUNT(*) alone. Conclusion: that sum is COUNT(*) of p's rows. Why: each of them is in one
        group of p, which has its keys."""
        alone = relation.op == "agg" and relation.args[0].args[1:] == ((), ())
        p: Term | None = relation.args[0].args[0][0] if alone and len(relation.args[0].args[0]) == 1 else None
        if p is None or p.args[0].op != "agg" or p.args[0].args[2]:
            return relation
        by: dict[Term, Term] = {}
        block, grouped, _, shown = p.args[0].args
        for name, term in shown:
            column = self.pool("col", p, name)
            if term in grouped:
                by[column] = term
            elif term is self.pool("count*", ()):
                by[self.pool("sum", column, ())] = term
        _, keys, having, columns = relation.args
        terms = [*having, *(term for _, term in columns)]
        inner = [one for term in terms for one in walk(term, lambda one: one not in by)]
        if any(key not in by for key in keys) or any(one.op in AGGREGATES and one not in by for one in inner):
            return relation
        below = [tuple(self.pool.replace(one, by) for one in part) for part in (keys, having)]
        named = tuple((name, self.pool.replace(term, by)) for name, term in columns)
        over = self.pool("agg", block, *below, named)
        return relation if p in over.free else over

    def _equated(
        self, on: Sequence[Term], heavy: Term, columns: dict[str, Term], keys: Sequence[Term]
    ) -> tuple[Term, ...]:
        """The terms of B that are equated with a relation's owner, which stands in heavy under the same names: all of
        its keys and no others."""
        owner: dict[str, Term] = {}
        for one in on:
            sides = [side for side in one.args if isinstance(side, Term)] if one.op == "eq" else []
            inner = [side for side in sides if side.op == "col" and side.args[0] is heavy]
            outer = [side for side in sides if heavy not in side.free]
            if len(inner) != 1 or len(outer) != 1 or inner[0].args[1] in owner:
                raise Refused("lemmas: E2, heavy is joined on the owner alone")
            owner[inner[0].args[1]] = outer[0]
        if set(owner) - set(columns) or {columns[name] for name in owner} != set(keys):
            raise Refused("lemmas: E2, heavy is joined on the owner alone")
        if any(ours is not columns[name] for name, ours in owner.items()):
            raise Refused("lemmas: E2, heavy's owner is the rows' owner")
        return tuple(owner.values())

    def _is_counted(self, divisor: Term, relation: Term) -> None:
        counted = [one for one in divisor.args if one.op != "num"] if divisor.op == "greatest" else [divisor]
        if [self.plain(one) for one in counted] != [self.plain(relation.args[2][0].args[1])]:
            raise Refused("lemmas: E2, a weight by the rows of HAVING")

    def _norm(
        self, relation: Term, weighed: Term, on: Sequence[Term], heavy: Term, rest: Term, unit: int
    ) -> tuple[int, Term, tuple[Term, ...]]:
        """(Q, place, F). Premise: `CASE WHEN w·w·s <= q THEN w … ELSE 0`, s at least S or a number above q, S the sum
        of c² over cells by owner and place, c at least the least of their rows and a number whose square is above q;
        without those of S <= h. Conclusion: `W²·Σ n² <= Q = max(q, h·U²)`, n an owner's rows of F by place."""
        refused = Refused("lemmas: norm, whole weights by sums of squares")
        [sums] = relation.args[0].args[0] if len(relation.args[0].args[0]) == 1 else [None]
        if sums is None or relation.args[0].args[1:] != ((), ()) or sums.args[0].op != "agg":
            raise refused
        _, keys, having, _ = sums.args[0].args
        [cells] = sums.args[0].args[0].args[0] if len(sums.args[0].args[0].args[0]) == 1 else [None]
        if cells is None or sums.args[0].args[0].args[1:] != ((), ()) or cells.args[0].op != "agg":
            raise refused
        square = self.pool("mul", *([self._only(cells, "c")] * 2))
        total = self.pool("sum", square, ())
        limit = self._constant(having[0].args[0]) if len(having) == 1 and having[0].op == "lt" else None
        if not isinstance(limit, int) or limit < 1 or self.plain(having[0].args[1]) is not total:
            raise refused
        s, q = self._decided(weighed)
        if (
            s.op != "col"
            or s.args[0] is not sums
            or min(self._at_least(columns_of(sums.args[0])[s.args[1]], total)) <= q
        ):
            raise refused
        counted = self.pool("count*", ())
        if min(self._at_least(columns_of(cells.args[0])["c"], counted)) ** 2 <= q:
            raise refused
        block, inner, none, _ = cells.args[0].args
        if none or block.args[:2] != rest.args[:2] or not set(rest.args[2]) <= set(block.args[2]):
            raise Refused("lemmas: E2, heavy counts the rows of B")
        shown, below = columns_of(relation), columns_of(cells.args[0])
        names = {name: term for name, term in shown.items() if term is not weighed}
        owner = {}
        for name, term in names.items():
            under = (
                columns_of(sums.args[0]).get(term.args[1])
                if term.op == "col" and term.args[0] is sums
                else None
            )
            if under in keys and under is not None and under.op == "col" and under.args[0] is cells:
                owner[name] = below[under.args[1]]
        terms = set(owner.values())
        self._equated(on, heavy, owner, tuple(terms))
        self._is_owner(terms, self.relations.joined(rest))
        places = [key for key in inner if key not in terms]
        if len(places) != 1 or len(keys) != len(terms) or len(inner) != len(terms) + 1:
            raise Refused("lemmas: norm, cells by owner and place")
        within = tuple(one for one in block.args[2] if one not in rest.args[2])
        if limit > q or q > (limit + 1) * unit**2:
            raise Refused("lemmas: norm, no weight is above U")
        return max(q, limit * unit**2), places[0], within

    def _only(self, source: Term, name: str) -> Term:
        if name not in columns_of(source.args[0]):
            raise Refused("lemmas: norm, whole weights by sums of squares")
        return self.pool("col", source, name)

    def _decided(self, weighed: Term) -> tuple[Term, int]:
        """(s, q) of `CASE WHEN w·w·s <= q THEN w … ELSE 0 END`: each w is at least 0, and tested by itself."""
        refused = Refused("lemmas: norm, a weight is tested")
        found = set()
        if weighed.op != "case" or self._constant(weighed.args[1]) != 0:
            raise refused
        for when, value in weighed.args[0]:
            q = self._constant(when.args[1]) if when.op == "le" else None
            ends, product = self.values.ends(value), when.args[0]
            if not isinstance(q, int) or product.op != "mul" or ends.low is None or ends.low < 0:
                raise refused
            s = product.args[1]
            poly = self.values.poly(self.pool("mul", value, self.pool("mul", value, s)))
            if self.values.poly(product) != poly or not self._whole(value):
                raise refused
            found.add((s, q))
        if len(found) != 1:
            raise refused
        [only] = found
        return only

    def _at_least(self, term: Term, total: Term) -> list[int]:
        """Numbers of which the least, or else the total, a term is not below: of LEAST(total, a), GREATEST(that, b)."""
        term = self.plain(term)
        if term is total:
            return []
        if term.op == "greatest":
            inner = [one for one in term.args if self._constant(one) is None]
            return self._at_least(inner[0], total) if len(inner) == 1 else [0]
        if term.op == "least":
            numbers = [number for one in term.args if isinstance(number := self._constant(one), int)]
            rest = [one for one in term.args if self._constant(one) is None]
            if len(rest) == 1 and self.plain(rest[0]) is total and len(numbers) == len(term.args) - 1:
                return numbers
        return [0]

    def _refines(self, told: Term, place: Term) -> bool:
        """Whether a group's key says in which place a row is: it is the placed key itself, or tells apart each value
        that the places do."""
        key, listed, rest = self._told(place)
        if told is place or (told is key and rest is not None):
            return True
        own, values, other = self._told(told)
        if own is not key or not listed <= values or other is None or rest is None:
            return False
        ops = {one.op for one in values}
        apart = ops == {other.op} and all(one.args[0] != other.args[0] for one in values)
        return other.op == "null" or (other.op in ("num", "text", "bool") and apart)

    def _told(self, term: Term) -> tuple[Term, frozenset[Term], Term | None]:
        """(k, values, c) of `CASE WHEN k IN (values) THEN k ELSE c END`: each value is itself, and all others c."""
        if term.op != "case" or len(term.args[0]) != 1:
            return term, frozenset(), None
        [(when, value)], other = term.args
        tests = when.args if when.op == "or" else (when,)
        listed: set[Term] = set()
        for one in tests:
            if one.op == "in" and one.args[0] is value:
                listed |= set(one.args[1])
            elif one.op != "isnull" or one.args[0] is not value:
                return term, frozenset(), None
        return value, frozenset(listed), other

    def _larger(self, light: Sequence[Form], above: Move, joined: Joined, keys: Sequence[Term]) -> Move:
        """Who has at most R rows adds the form of each, who has more what `above` says."""
        known, bound = joined.block.args[2], above.rows
        reach = self.values.reach(light, known, self.measure)
        ends = self.each_ends(light, known)
        low, high = _hull(ends)
        most = max(bound * reach, above.l1)
        single = bool(keys) and self._one_row_in_a_group(joined, keys)
        return Move(
            "E2",
            bound,
            reach,
            most,
            min(bound * min(0, low), above.low),
            max(bound * max(0, high), above.high),
            above.one_sign and _one_sign(ends),
            max(reach, above.l1 / Fraction(bound)) if single else most,
            low >= 0 and above.monotone,
        )

    def _without_heavy(self, block: Term, weight: Term) -> tuple[Term, Term]:
        """(heavy, B) of a block that is B joined with heavy on the owner and on nothing else."""
        heavy: Term = weight.args[0]
        sources = tuple(one for one in block.args[0] if one is not heavy)
        conditions = tuple(one for one in block.args[2] if heavy not in one.free)
        if any(heavy in one.free for _, on in block.args[1] for one in on) or heavy in dict(block.args[1]):
            raise Refused("lemmas: E2, heavy is joined on the owner alone")
        return heavy, self.pool("block", sources, block.args[1], conditions)

    def owner_of(self, on: Sequence[Term], heavy: Term) -> tuple[Term, ...]:
        """The terms that are equated with heavy's columns: its owner's, all of them and no others."""
        if heavy.args[0].op != "agg":
            raise Refused("lemmas: E2, heavy is joined on the owner alone")
        return self._equated(on, heavy, columns_of(heavy.args[0]), heavy.args[0].args[1])

    def heavy(self, relation: Term, owner: Sequence[Term], rest: Term) -> tuple[int, tuple[Term, ...]]:
        """(R, F). Premise: heavy groups B and F by exactly the owner, `HAVING n > R` with n COUNT(*) of the rows."""
        joined = self.relations.joined(rest)
        classes = {joined.find(self.relations.bare(one)) for one in owner}
        if not any(
            k == UNIT and {joined.find(term) for term in terms} == classes for k, terms in joined.identities
        ):
            raise Refused("lemmas: E2, heavy's owner is the rows' owner")
        self.relations.rows(relation)
        block, keys, having, _ = relation.args
        if len(having) != 1 or having[0].op != "lt":
            raise Refused("lemmas: E2, HAVING t > R")
        bound = self._constant(having[0].args[0])
        if not isinstance(bound, int) or bound < 1 or set(keys) != set(owner):
            raise Refused("lemmas: E2, HAVING t > R")
        if self.plain(having[0].args[1]) is not self.pool("count*", ()):
            raise Refused("lemmas: E2, t counts rows")
        if block.args[:2] != rest.args[:2] or not set(rest.args[2]) <= set(block.args[2]):
            raise Refused("lemmas: E2, heavy counts the rows of B")
        return bound, tuple(one for one in block.args[2] if one not in rest.args[2])

    def _same_rows(self, first: Part, rest: Term) -> None:
        """B is the same in both parts: the same block, but for tables that only lead to the owner."""
        read = [*first.keys, *first.having, *first.columns.values()]
        if first.block is not rest and first.block is not self.relations.without_ways(rest, read):
            raise Refused("lemmas: E2, both parts read the same rows")

    # --- direct ---

    def direct(self, part: Part, joined: Joined, item: Term) -> Move:
        """Lemma *direct*. Premise: `COALESCE(L + N // NULLIF(D, 0), m)`, N and D sums over rows with `0 <= N <=
        k·D` on each. Conclusion: each of an owner's groups moves by the length W of the hull of `[L, L + floor(k)]` and
        m at most; where it has one row in a group, and rows add the same to D, by floor(floor(k)/2) + 1, or what
        lies between m and the farther end. Why: 1.1, direct."""
        self.key_having(part)
        whole = item.op == "coalesce"
        middle, inner = (
            (self._constant(item.args[1]), item.args[0]) if whole else (0, item)
        )  # `plain` took it
        least: Number = 0
        if inner.op == "add" and (first := self._constant(inner.args[0])) is not None:
            least, inner = first, inner.args[1]
        inner = self.plain(inner)
        if (
            middle is None
            or inner.op != "intdiv"
            or inner.args[1].op != "nullif"
            or inner.args[1].args[1].op != "num"
        ):
            raise Refused("lemmas: direct, an average in its interval")
        forms = [
            self._rows_below(self.form(one), part.block) for one in (inner.args[0], inner.args[1].args[0])
        ]
        block = forms[0][1]
        over, under = forms[0][0], forms[1][0]
        known = block.args[2]
        if self.row_ends([over], known)[0] < 0 or self.row_ends([under], known)[0] < 0:
            raise Refused("lemmas: direct, an average in its interval")

        sizes: set[Number] = set()

        def ratio(rows: Sequence[Poly]) -> Number:
            if not rows[0] and not rows[1]:
                return 0
            if set(rows[1]) != {()}:
                raise Refused("lemmas: direct, an average in its interval")
            sizes.add(rows[1][()])
            return Fraction(self.values.range(rows[0])[1]) / rows[1][()]

        width = int(self.values.reach([over, under], known, ratio))
        if not self.values.reach([under], known):
            return Move("direct", 0, 0, 0, 0, 0, True, 0)  # no row is averaged, ever
        rows = self.relations.mult(self.pool("select", part.block, ()))
        mult = 1 if not part.keys else rows
        if mult is None:
            raise Refused("lemmas: an owner's rows are bounded")
        self._owner_is_known(joined)
        far = max(middle - least, least + width - middle)
        hull = max(width, far)
        single = (
            block is part.block
            and len(sizes) == 1
            and (rows == 1 or self._one_row_in_a_group(joined, part.keys))
        )
        step = min(hull, max(width // 2 + 1, far)) if single else hull
        return Move("direct", mult, hull, mult * step, 0, hull, False, step, span=hull)

    def _rows_below(self, form: Form, block: Term) -> tuple[Form, Term]:
        """A form over p as one over the rows that p groups; over other blocks itself."""
        p = self._by_owner(block)
        grouping = self.grouping(p) if p is not None else None
        if p is None or grouping is None:
            return form, block
        self.relations.rows(p.args[0])
        total: Form = {}
        if any(form) or any(len(term) != 1 or term[0].op != "col" for poly in form.values() for term in poly):
            return form, block
        for poly in form.values():
            for term, factor in poly.items():
                total = add_forms(total, self._below(term[0], p), factor)
        return total, grouping.args[0]

    # --- windows ---

    def weights(self, block: Term, weight: Term) -> Move:
        """Lemma *weights*. Premise: each row weighs 1; or `COALESCE(K // t, U)`, t of the owners with t > R of these
        rows and more, by LEFT JOIN on the owner, and who has t > K is left out. Conclusion: an owner's weights add
        up to at most max(K, R·U). Why: t rows of K // t each, at most."""
        if weight.op == "num" and weight.args[0] == 1:
            joined = self.relations.joined(block)
            mult = self.relations.mult(self.pool("select", block, ()))
            if mult is None:
                raise Refused("lemmas: an owner's rows are bounded")
            self._owner_is_known(joined)
            return Move("weights", mult, 1, mult, 0, mult, True, mult, True)
        quotient = weight.args[0] if weight.op == "coalesce" and len(weight.args) == 2 else weight
        unit = self._constant(weight.args[1]) if weight.op == "coalesce" else None
        most = self._constant(quotient.args[0]) if quotient.op == "intdiv" else None
        if not isinstance(unit, int) or not isinstance(most, int) or unit < 1:
            raise Refused("lemmas: weights, COALESCE(K // t, U)")
        t = quotient.args[1]
        heavy = t.args[0] if t.op == "col" else None
        on = dict(block.args[1]).get(heavy)
        test = self.pool("or", self.pool("isnull", t), self.pool("le", t, quotient.args[0]))
        if heavy is None or on is None or test not in block.args[2]:
            raise Refused("lemmas: weights, too heavy owners are left out")
        rest = self.pool(
            "block",
            tuple(one for one in block.args[0] if one is not heavy),
            tuple(pair for pair in block.args[1] if pair[0] is not heavy),
            tuple(one for one in block.args[2] if one is not test and one in heavy.args[0].args[0].args[2]),
        )
        if any(heavy in one.free for one in block.args[2] if one is not test) or any(
            heavy in x.free for _, y in rest.args[1] for x in y
        ):
            raise Refused("lemmas: E2, heavy is joined on the owner alone")
        owner = self.owner_of(on, heavy)
        bound, within = self.heavy(heavy.args[0], owner, rest)
        if columns_of(heavy.args[0])[t.args[1]] is not heavy.args[0].args[2][0].args[1]:
            raise Refused("lemmas: E2, HAVING t > R")
        if within:
            raise Refused("lemmas: weights, t counts all rows")
        total = max(most, bound * unit)
        return Move("weights", bound, unit, total, 0, total, True, total, True)


def _hull(ends: Sequence[tuple[Number, Number]]) -> tuple[Number, Number]:
    return min((low for low, _ in ends), default=0), max((high for _, high in ends), default=0)


def _one_sign(ends: Sequence[tuple[Number, Number]]) -> bool:
    """Whether each coordinate is nowhere below 0, or nowhere above."""
    return all(0 in pair for pair in ends)
