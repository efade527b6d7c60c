"""Values of expressions: their types, when they are NULL, between which ends they lie, and what a row adds to a
sum.

A **flag** is a condition that holds or not of a row; a **form** is what each row adds to a number: for sets of
flags a polynomial over numeric expressions (*atoms*) whose ends are known. How far a row can move a vector of forms
is computed: over all truth values of the flags, and all corners of the box of the atoms (`reach`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import product
from math import gcd, lcm
from typing import Any, NamedTuple

from dpsql.verify.certificate import Facts
from dpsql.verify.read import Dialect, columns_of
from dpsql.verify.terms import Pool, Refused, Term, Type

Number = Any
"""An int or a Fraction: ints are a hundred times faster, and most numbers are."""
Poly = dict[tuple[Term, ...], Number]
"""Monomials, each a sorted tuple of atoms, and their coefficients."""
Form = dict[tuple[Term, ...], Poly]
"""Conditions that are TRUE, and what a row adds where they are."""
Formula = bool | tuple[str, Any]
"""`("is", flag)`, `("no", formula)`, `("all", formulas)`, `("any", formulas)`, or known."""


class Ends(NamedTuple):
    """Where a number lies when it is not NULL, and of what it is a multiple; None: not known."""

    low: Number | None = None
    high: Number | None = None
    step: Number | None = None


_UNSCALED: Type = ("decimal", None, None)
"""A number with as many places as it happens to have: equal ones may be written apart."""
ROWS = 2**40
"""More rows than a query reads (soundness.md 1.9)."""
_LONGEST = 2**32
"""More bytes than a text has on any engine."""
_PARTS = {
    "MONTH": 12,
    "DAY": 31,
    "HOUR": 23,
    "MINUTE": 59,
    "QUARTER": 4,
    "WEEK": 53,
    "DOW": 7,
    "ISODOW": 7,
} | {
    **dict.fromkeys(("DAYOFWEEK", "DAYOFWEEK_ISO"), 7),
    **dict.fromkeys(("DOY", "DAYOFYEAR"), 366),
}
"""Parts of a moment and the most that they are; none is below 0."""
_STRICT = {"add", "sub", "mul", "neg", "concat", "shr", "bitand", "eq", "ne", "lt", "le", "like"}


class Values:
    """Answers about expressions over the tables of `facts`; what is asked twice is computed once."""

    def __init__(self, pool: Pool, dialect: Dialect, facts: Facts) -> None:
        self.pool = pool
        self.dialect = dialect
        self.facts = facts
        self._types: dict[Term, Type] = {}
        self._ends: dict[Term, Ends] = {}
        self._present: dict[Term, frozenset[Term]] = {}
        self._formulas: dict[tuple[Term, bool], Formula] = {}
        self._polys: dict[Term, Poly] = {}
        self._column_types: dict[str, Type] = {}
        self._given: dict[tuple[Term, ...], tuple[dict[object, bool], list[Formula]]] = {}
        self.spells_doubles = True
        self.checks: Callable[[str], list[Term]] = lambda table: []

    # --- types ---

    def type(self, term: Term) -> Type:
        """An expression's type, `("other", …)` where it is not known."""
        known = self._types.get(term)
        if known is None:
            rule = _TYPES.get(term.op)
            known = self._types[term] = ("other", term.op) if rule is None else rule(self, term.args)
        return known

    def column_type(self, relation: Term, name: str) -> Type:
        """The type of a relation's column; of a union, the one that all members have or are widened to."""
        if relation.op == "table":
            text = self.facts.tables[relation.args[0]].columns[name]
            if text not in self._column_types:
                self._column_types[text] = self.dialect.type_of(text)
            return self._column_types[text]
        if relation.op == "union":
            return self.joined([self.column_type(one, name) for one in relation.args[0]])
        return self.type(columns_of(relation)[name])

    def joined(self, types: Sequence[Type]) -> Type:
        """The type that values of several types are brought to."""
        found = {one for one in types if one != ("null",)}
        if len(found) == 1:
            return found.pop()
        kinds = {one[0] for one in found}
        if kinds <= {"int"}:
            return ("int", max(one[1] for one in found)) if found else ("null",)
        if kinds <= {"int", "decimal"}:
            scales = {one[2] if one[0] == "decimal" else 0 for one in found}
            if None in scales or (len(scales) > 1 and not self.dialect.DECIMALS_ARE_FIXED):
                return _UNSCALED
            return ("decimal", None, max(scales))
        return ("float", 64) if kinds and kinds <= {"int", "decimal", "float"} else ("other", "several")

    def cast_type(self, args: Args) -> Type:
        """A number without a scale of its own, as it is cast, has as many places as what it was had."""
        inner: Type = self.type(args[0])
        if args[1] != _UNSCALED:
            return tuple(args[1])
        return ("decimal", None, 0 if inner[0] == "int" else inner[2] if inner[0] == "decimal" else None)

    def literal_type(self, value: Number, kind: str) -> Type:
        if kind == "int":
            wide = [bits for bits in (32, 64, 128) if bits <= self.dialect.WIDEST]
            fit = [bits for bits in wide if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)]
            return ("int", fit[0]) if fit else ("decimal", None, 0)
        if kind == "decimal":
            return ("decimal", None, _places(Fraction(value)))
        return ("float", 64) if kind == "float" else (kind,)

    def arithmetic(self, op: str, left: Type, right: Type) -> Type:
        kinds = {left[0], right[0]}
        if kinds == {"int"}:
            return ("int", max(left[1], right[1]))
        if kinds <= {"int", "decimal"}:
            scales = [one[2] if one[0] == "decimal" else 0 for one in (left, right)]
            if op == "intdiv" or None in scales:
                return ("decimal", None, 0 if op == "intdiv" else None)
            return ("decimal", None, sum(scales) if op == "mul" else max(scales))
        if kinds <= {"int", "decimal", "float"}:
            return ("float", 64)
        if left == right == ("date",) and op == "sub" and self.dialect.NAME != "spark":
            return ("int", 64)  # of days
        if left[0] == "date" and right[0] == "other":
            return ("timestamp",)  # a date and an interval
        return left if left[0] in ("date", "timestamp") else ("other", op)

    # --- presence ---

    def present(self, term: Term) -> frozenset[Term]:
        """Flags that hold all together exactly where an expression is not NULL; `NULL` itself has the flag
        FALSE."""
        known = self._present.get(term)
        if known is None:
            known = self._present[term] = self._presence(term)
        return known

    def _presence(self, term: Term) -> frozenset[Term]:
        op, args = term.op, term.args
        nothing: frozenset[Term] = frozenset()
        if op in (
            "num",
            "text",
            "bool",
            "literal",
            "count*",
            "count",
            "distinct",
            "exists",
            "isnull",
            "notnull",
        ):
            return nothing
        if op in ("istrue", "isfalse", "same", "struct"):
            return nothing
        if op == "null":
            return frozenset((self.pool("bool", False),))
        if op == "cast":
            return self.present(args[0])
        if op in _STRICT:
            return nothing.union(*(self.present(one) for one in args if isinstance(one, Term)))
        if op == "in" and not any(map(self.present, args[1])):  # else what is found is found beside a NULL
            return self.present(args[0])
        if op == "coalesce" and self._of_either_side(args):
            return nothing
        if op in ("coalesce", "least", "greatest") and any(not self.present(one) for one in args):
            return nothing
        if op == "case":
            clamped = _clamped(term)
            if clamped is not None and self.type(clamped)[0] in _ORDERED:
                number = frozenset() if any(map(_takes_nan, term.args[0])) else self._number(clamped)
                return number or self.present(clamped)
            each = {self.present(value) for _, value in self._branches(term, {})}
            if len(each) == 1:
                return each.pop()
        if op in ("mod", "intdiv", "div"):
            ends = self.ends(args[1])
            if (ends.low is not None and ends.low > 0) or (ends.high is not None and ends.high < 0):
                return self.present(args[0]) | self.present(args[1])
        if op == "nullif" and args[1].op == "num" and _apart(self.ends(args[0]), args[1].args[0]):
            return self.present(args[0])
        if op == "fn" and (flags := self.function(args).present(self, args)) is not None:
            return flags
        if op == "col" and self.never_null(args[0], args[1]):
            return nothing
        if op == "over" and not self.present(args[0]):
            return nothing
        return frozenset((self.pool("notnull", term),))

    def _number(self, term: Term) -> frozenset[Term]:
        """The flag of what is neither NULL nor NaN; none of what is never NaN: of an exact type, or with ends."""
        kind = self.type(term)[0]
        exact = kind != "float" and (kind != "decimal" or self.dialect.DECIMALS_ARE_FIXED)
        if exact or self.has_ends(term):
            return frozenset()
        no_number = ((self.pool("fn", "ISNAN", term), self.pool("null")),)
        return frozenset((self.pool("notnull", self.pool("case", no_number, term)),))

    def _of_either_side(self, args: tuple[Term, ...]) -> bool:
        """Whether COALESCE has a column of each side of a FULL JOIN that is never NULL there: a row has one of
        them."""
        sides = set()
        for one in args:
            while one.op == "cast":
                one = one.args[0]
            if one.op != "col" or one.args[0].args[0].op != "full":
                return False
            source, (side, _, name) = one.args[0], one.args[1].partition(".")
            if self.never_null(self.pool("src", source.args[0].args[int(side)], 0, 0), name):
                sides.add((source, side))
        return (
            len(sides) == 2
            and len({source for source, _ in sides}) == 1
            and not any(len(source.args) > 3 for source, _ in sides)
        )

    def has_ends(self, term: Term) -> bool:
        ends = self.ends(term)
        return ends.low is not None and ends.high is not None

    def function(self, args: Args) -> Function:
        return _FUNCTIONS.get(args[0], _UNKNOWN)

    def field(self, column: Term, name: str) -> tuple[Term, Term] | None:
        """(grouping, what it is there) of a field of the lowest values that a grouping shows a row for each of."""
        relation = column.args[0].args[0] if column.op == "col" else column
        exploded = columns_of(relation)[column.args[1]] if relation.op == "agg" else column
        lowest = exploded.args[1] if exploded.args[:1] == ("EXPLODE",) else exploded
        if relation.op != "agg" or lowest.op != "lowest" or lowest.args[0].op != "struct":
            return None
        names = lowest.args[0].args[0]
        return (relation, lowest.args[0].args[1 + names.index(name)]) if name in names else None

    def never_null(self, source: Term, name: str) -> bool:
        """Whether a column holds no NULL by the schema, or by what it is computed of; not after a LEFT JOIN."""
        relation = source.args[0]
        if len(source.args) > 3:
            return False
        if relation.op == "table":
            return name in self.facts.tables[relation.args[0]].not_null
        if relation.op == "union":
            return all(self.never_null(self.pool("src", one, 0, 0), name) for one in relation.args[0])
        if relation.op in ("full", "public"):
            return False
        having = relation.args[2] if relation.op == "agg" else ()
        return self.present(columns_of(relation)[name]) <= self.established(
            (*relation.args[0].args[2], *having)
        )

    def established(self, conditions: Iterable[Term]) -> set[Term]:
        """Flags of presence that hold where conditions are TRUE: a comparison with NULL is not."""
        found: set[Term] = set()
        for one in conditions:
            if one.op in ("eq", "ne", "lt", "le", "in", "like"):
                found |= self.present(one.args[0] if one.op == "in" else one)
                if one.op in ("eq", "lt", "le") and one.args[1].op == "num":
                    found |= self._number(one.args[0])
            elif one.op == "notnull":
                found |= self.present(one.args[0])
            elif one.op == "or":
                possible = [part for part in one.args if self.formula(part) is not False]
                found |= set.intersection(*(self.established([part]) for part in possible or one.args))
            elif one.op in ("and", "insub"):
                found |= self.established(one.args)
            elif one.op == "exists":
                inner = set(one.args[0].args[0])
                found |= {flag for flag in self.established(one.args[0].args[2]) if not flag.free & inner}
        return found

    # --- flags ---

    def formula(self, term: Term, holds: bool = True) -> Formula:
        """When a condition is TRUE (or FALSE), over flags: three-valued logic written out in two."""
        key = (term, holds)
        known = self._formulas.get(key)
        if known is None:
            known = self._formulas[key] = self._formula(term, holds)
        return known

    def _formula(self, term: Term, holds: bool) -> Formula:
        op, args = term.op, term.args
        if op == "bool":
            return args[0] is holds
        if op in ("and", "or"):
            kind = "all" if (op == "and") == holds else "any"
            return _combined(kind, [self.formula(one, holds) for one in args])
        if op == "not":
            return self.formula(args[0], not holds)
        if op in ("istrue", "isfalse"):
            inner: Formula = self.formula(args[0], op == "istrue")
            return inner if holds else _no(inner)
        if op in ("isnull", "notnull"):
            flags = self.present(args[0])
            if flags == {term}:
                inner = ("is", (term, True))
            else:
                inner = _combined(
                    "all", [self.formula(one) for one in sorted(flags, key=lambda one: one.serial)]
                )
            return inner if (op == "notnull") == holds else _no(inner)
        if op == "insub":
            return self.formula(args[0]) if holds else ("is", (term, False))
        if op == "exists":
            return ("is", (term, True)) if holds else ("no", ("is", (term, True)))
        return ("is", (term, holds))

    def true_vectors(
        self, keys: Sequence[tuple[Term, ...]], known: tuple[Term, ...] = ()
    ) -> Iterator[tuple[tuple[bool, ...], dict[object, bool]]]:
        """Every way in which a row can make sets of conditions true or not, given conditions that hold of all
        rows."""
        formulas = [_combined("all", [self.formula(one) for one in key]) for key in keys]
        if known not in self._given:
            holds = [self.formula(one) for one in (*known, *self.established(known))]
            fixed: dict[object, bool] = {}
            for one in holds:
                _assume(one, fixed)
            self._given[known] = fixed, [one for one in holds if _evaluated(one, fixed)[0] is not True]
        assigned, given = dict(self._given[known][0]), self._given[known][1]

        def search() -> Iterator[tuple[tuple[bool, ...], dict[object, bool]]]:
            flag = None
            truths = []
            for one in formulas:
                truth, first = _evaluated(one, assigned)
                truths.append(bool(truth))
                if truth is None and flag is None:
                    flag = first
            if flag is None:
                if all(_evaluated(one, assigned)[0] is not False for one in given):
                    yield tuple(truths), assigned
                return
            for value in (True, False):
                added = [flag]
                assigned[flag] = value
                assert isinstance(flag, tuple)
                other = (flag[0], not flag[1])
                if value and other not in assigned:
                    assigned[other] = False  # not TRUE and FALSE at once
                    added.append(other)
                yield from search()
                for gone in added:
                    del assigned[gone]

        return search()

    # --- ends ---

    def ends(self, term: Term) -> Ends:
        """Where an expression lies when it is not NULL."""
        known = self._ends.get(term)
        if known is None:
            known = self._ends[term] = self._end(term, {})
        return known

    def _divided(self, args: tuple[Term, ...], parts: list[Ends]) -> Ends:
        """A quotient; where the divisor is NULL in place of 0, by how near to 0 it is else."""
        left, divisor = parts[0], args[1]
        found = _quotient(*parts)
        if (
            found.low is not None
            or divisor.op != "nullif"
            or divisor.args[1].op != "num"
            or divisor.args[1].args[0]
        ):
            return found
        nearest = self._nearest_to_0(divisor.args[0])
        if not nearest or left.low is None or left.high is None:
            return found
        most = 2 * Fraction(max(-left.low, left.high)) / nearest  # twice: more than doubles are off by
        return Ends(-most, most)

    def _nearest_to_0(self, term: Term) -> Number | None:
        """How near to 0 a number is that is not 0, None if not known: a step of what it is cast of, or e of `CASE WHEN
        x BETWEEN -e AND e THEN 0 ELSE x END`."""
        while term.op == "cast" and term.args[1][0] in ("float", "decimal", "int"):
            term = term.args[0]
        if term.op == "case" and len(term.args[0]) == 1:
            [(when, value)], x = term.args
            compares = value.op == "num" and not value.args[0] and all(x in one.args for one in _ands(when))
            if compares and (stretch := _stretch(when, x)) is not None:
                (low, _), (high, _) = stretch
                return min(-low, high) if low < 0 < high else None
        return self.ends(term).step

    def _in(self, term: Term, under: dict[Term, Ends]) -> Ends:
        if not under:
            return self.ends(term)
        found = under.get(term)
        if found is not None:
            return _meet(self.ends(term), found)
        return self._end(term, under) if term.op != "col" else self.ends(term)

    def _end(self, term: Term, under: dict[Term, Ends]) -> Ends:
        op, args = term.op, term.args
        if op == "num":
            return Ends(args[0], args[0], abs(args[0]) if args[1] != "float" else None)
        if op == "mean":
            return Ends(args[0], args[1])
        if op == "col":
            return self._column_ends(args[0].args[0], args[1])
        if op in ("add", "sub", "mul", "neg", "div"):
            parts = [self._in(one, under) for one in args]
            if op in ("add", "sub") and "date" in (kinds := [self.type(one)[0] for one in args]):
                return _of_dates(op, kinds, parts)
            found = self._divided(args, parts) if op == "div" else _computed(op, parts)
            return _finite(found) if found.step is None else found
        if op == "cast":
            inner = self._wider(args[0], self._in(args[0], under))
            nearest = self.type(args[0])[0] == "float" and self.dialect.NAME != "spark"
            return _cast(_nearest(inner) if nearest and args[1][0] == "int" else inner, args[1])
        if op == "case":
            return self._case(term, under)
        if op == "coalesce":
            return _hull([self._in(one, under) for one in args if one.op != "null"])
        if op in ("least", "greatest"):
            parts = [self._in(one, under) for one in args]
            hull = _hull(parts)
            sure = [part for one, part in zip(args, parts, strict=True) if not self.present(one)]
            if op == "least":
                return hull._replace(
                    high=min((p.high for p in sure if p.high is not None), default=hull.high)
                )
            return hull._replace(low=max((p.low for p in sure if p.low is not None), default=hull.low))
        if op in ("mod", "intdiv", "shr", "bitand"):
            return self._whole_numbers(op, args, under)
        if op in ("count*", "count", "distinct"):
            return Ends(0, None, 1)
        if op == "sum":
            inner = self._in(args[0], under)
            return Ends(0 if inner.low is not None and inner.low >= 0 else None, None, inner.step)
        if op in ("min", "max", "nullif"):
            return self._in(args[0], under)
        if op == "over":
            return self.ends(args[0]) if args[0].op != "sum" else Ends(None, None, self.ends(args[0]).step)
        if op == "scalar":
            return self.ends(args[1])
        if op == "fn":
            return self._function_ends(args, under)
        kind = self.type(term)
        return Ends(0, 1, 1) if kind[0] == "bool" else Ends(step=1) if kind[0] == "int" else Ends()

    def _wider(self, term: Term, ends: Ends) -> Ends:
        """Ends of a double that is computed: each step may be off in the last of 53 bits, and there are few; by a
        power of two it is multiplied exactly."""
        if term.op == "mul" and any(_is_power_of_two(one) for one in term.args):
            return _computed("mul", [self._wider(one, self.ends(one)) for one in term.args])
        if (
            self.type(term)[0] != "float"
            or term.op in ("num", "col", "case", "cast")
            or ends.step is not None
        ):
            return ends
        low = None if ends.low is None else ends.low - abs(ends.low) * Fraction(1, 2**40)
        return Ends(low, None if ends.high is None else ends.high + abs(ends.high) * Fraction(1, 2**40), None)

    def _column_ends(self, relation: Term, name: str) -> Ends:
        if relation.op == "union":
            return _hull([self._column_ends(one, name) for one in relation.args[0]])
        if relation.op not in ("agg", "table"):
            return self.ends(columns_of(relation)[name])
        under: dict[Term, Ends] = {}
        for one in relation.args[2] if relation.op == "agg" else self.checks(relation.args[0]):
            under = _narrowed(under, one)
        if relation.op == "agg":
            return self._in(columns_of(relation)[name], under)
        kind = self.column_type(relation, name)
        ends = _of_type(kind, self.dialect.DECIMALS_ARE_FIXED)
        said = under.get(self.pool("col", self.pool("src", relation, 0, 0), name))
        return _meet(ends, said) if said is not None and kind[0] in ("int", "decimal") else ends

    def _branches(self, term: Term, under: dict[Term, Ends]) -> list[tuple[Term, Term]]:
        """The branches of a CASE that can be taken, as the ends of what is compared tell; the default's condition is
        TRUE."""
        found = []
        for when, value in (*term.args[0], (self.pool("bool", True), term.args[1])):
            truth = self._decided(when, under)
            if truth is not False:
                found.append((when, value))
            if truth:
                break
        return found

    def _decided(self, when: Term, under: dict[Term, Ends]) -> bool | None:
        if when.op == "bool":
            truth: bool = when.args[0]
            return truth
        if when.op not in ("lt", "le") or self.present(when):
            return None
        left, right = (self._wider(one, self._in(one, under)) for one in when.args)
        if left.low is None or left.high is None or right.low is None or right.high is None:
            return None
        strict = when.op == "lt"
        if left.high < right.low or (left.high == right.low and not strict):
            return True
        return False if left.low > right.high or (left.low == right.high and strict) else None

    def _case(self, term: Term, under: dict[Term, Ends]) -> Ends:
        """The hull of the branches, each under its own condition and, the last, under none of the others. What is below
        NaN is a number of its type."""
        parts = []
        left, nan = dict(under), self.pool("cast", self.pool("text", "NaN"), _UNSCALED)
        for when, value in self._branches(term, under):
            last = when.op == "bool"
            if not self._is_null(value):
                ends = self._in(value, left if last else _narrowed(dict(under), when))
                is_number = any(one.op == "lt" and one.args == (value, nan) for one in _ands(when))
                parts.append(_meet(ends, _of_type(self.type(value), True)) if is_number else ends)
            if when.op == "lt" and len(term.args[0]) <= 4:
                left = _narrowed(left, self.pool("le", when.args[1], when.args[0]))
        return _hull(parts)

    def _is_null(self, term: Term) -> bool:
        return term.op == "null" or (term.op == "cast" and self._is_null(term.args[0]))

    def _whole_numbers(self, op: str, args: tuple[Term, ...], under: dict[Term, Ends]) -> Ends:
        left, right = self._in(args[0], under), self._in(args[1], under)
        if op == "mod":
            return _remainder(left, right)
        if op == "intdiv":
            return _divided(left, right)
        if right.low is None or right.low != right.high or not isinstance(right.low, int) or right.low <= 0:
            return Ends(step=1)
        by = right.low
        if op == "bitand":
            return Ends(0, by, 1)
        if left.low is None or left.high is None or not _whole(left.step):
            return Ends(step=1)
        return Ends(int(left.low) >> by, int(left.high) >> by, 1)

    def _function_ends(self, args: Args, under: dict[Term, Ends]) -> Ends:
        ends = self.function(args).ends
        if ends is None:
            return Ends()
        parts = [self._wider(one, self._in(one, under)) for one in args[1:] if isinstance(one, Term)]
        return ends(self, args, parts)

    def characters(self, term: Term) -> int | None:
        """How many characters a text has at most, where it is cut: `left(x, n)`, or `x` where it has n bytes at
        most."""
        if term.op == "text":
            return len(term.args[0])
        if self.type(term)[0] == "enum":
            return int(self.type(term)[1])
        if term.op == "cast" and term.args[1] == ("text",):
            return self.characters(term.args[0])
        if term.op == "col" and term.args[0].args[0].op in ("select", "agg", "window", "union"):
            relation: Term = term.args[0].args[0]
            members = relation.args[0] if relation.op == "union" else (relation,)
            sizes = [self._column_characters(one, term.args[1]) for one in members]
            return None if None in sizes else max(one for one in sizes if one is not None)
        if term.op == "fn" and term.args[0] == "LEFT" and term.args[2].op == "num":
            many: int = term.args[2].args[0]
            return many if term.args[2].args[1] == "int" and many >= 0 else None
        if term.op != "case" or len(term.args[0]) != 1:
            return None
        [(when, value)] = term.args[0]
        rest = self.characters(term.args[1])
        cut_off = (
            when.op == "le" and when.args[0] is self.pool("fn", "BYTES", value) and when.args[1].op == "num"
        )
        return max(int(when.args[1].args[0]), rest) if cut_off and rest is not None else None

    def _column_characters(self, relation: Term, name: str) -> int | None:
        return (
            self.characters(columns_of(relation)[name])
            if relation.op in ("select", "agg", "window")
            else None
        )

    # --- forms ---

    def poly(self, term: Term) -> Poly:
        """A number as a polynomial over atoms; equal to it wherever it is not NULL."""
        known = self._polys.get(term)
        if known is None:
            known = self._polys[term] = self._poly(term)
        return known

    def _poly(self, term: Term) -> Poly:
        op, args = term.op, term.args
        if op == "num" and args[1] != "float":
            return {(): args[0]} if args[0] else {}
        if op in ("add", "sub"):
            return add_polys(self.poly(args[0]), self.poly(args[1]), 1 if op == "add" else -1)
        if op == "neg":
            return add_polys({}, self.poly(args[0]), -1)
        if op == "mul":
            return _product(self.poly(args[0]), self.poly(args[1]))
        if op == "cast" and self.exact_cast(term):
            return self.poly(args[0])
        return {(term,): 1}

    def exact_cast(self, term: Term) -> bool:
        """Whether a cast changes no number: to integers or decimals whose grid has all values, and not to
        doubles."""
        inner, kind = term.args
        if self.type(inner)[0] not in ("int", "decimal") or kind[0] not in ("int", "decimal"):
            return False
        step = self.ends(inner).step
        places = kind[2] if kind[0] == "decimal" else 0
        return places is None or (step is not None and Fraction(step * 10**places).denominator == 1)

    def extent(self, polys: Sequence[Poly]) -> Number:
        """The most that `Σ abs(poly)` is over the box of the atoms.

        Each absolute value is convex in one atom alone where no atom is squared, so their sum is greatest at a
        corner. With squares, or more than 12 atoms together, each is bounded by itself."""
        total: Number = 0
        for group in _together([one for one in polys if one]):
            atoms = sorted(
                {atom for poly in group for term in poly for atom in term}, key=lambda one: one.serial
            )
            if len(atoms) <= 12 and all(len(set(term)) == len(term) for poly in group for term in poly):
                total += max(sum(abs(_at(poly, corner)) for poly in group) for corner in self._corners(atoms))
            else:
                total += sum(max(map(abs, self.range(poly))) for poly in group)
        return total

    def range(self, poly: Poly) -> tuple[Number, Number]:
        """The least and the most of a polynomial over the box: exact at corners, at vertices of one atom; else by
        parts."""
        atoms = sorted({atom for term in poly for atom in term}, key=lambda one: one.serial)
        squared = any(len(set(term)) != len(term) for term in poly)
        if not squared and len(atoms) <= 12:
            found = [_at(poly, corner) for corner in self._corners(atoms)]
            return min(found), max(found)
        if len(atoms) == 1 and all(len(term) <= 2 for term in poly):
            [atom] = atoms
            points = list(self._box(atom))
            square, line = poly.get((atom, atom), 0), poly.get((atom,), 0)
            vertex = Fraction(-line, 1) / (2 * square) if square else points[0]
            if points[0] < vertex < points[1]:
                points.append(vertex)
            found = [square * x * x + line * x + poly.get((), 0) for x in points]
            return min(found), max(found)
        ends = _computed_sum(
            [_times(factor, [Ends(*self._box(one)) for one in term]) for term, factor in poly.items()]
        )
        assert ends.low is not None
        assert ends.high is not None
        return ends.low, ends.high

    def _box(self, atom: Term) -> tuple[Number, Number]:
        ends = self.ends(atom)
        if ends.low is None or ends.high is None:
            raise Refused("values: a number that is added up has ends", repr(atom)[:200])
        return ends.low, ends.high

    def _corners(self, atoms: Sequence[Term]) -> Iterator[dict[Term, Number]]:
        for corner in product(*(self._box(one) for one in atoms)):
            yield dict(zip(atoms, corner, strict=True))

    def reach(
        self,
        forms: Sequence[Form],
        known: tuple[Term, ...] = (),
        measure: Callable[[Sequence[Poly]], Number] | None = None,
        within: Sequence[Term] = (),
    ) -> Number:
        """The most that `Σ abs(form)` is in one row (or another `measure` of what the row adds).

        Every row that adds something has to satisfy `within`: else refused.
        """
        measure = measure or self.extent
        keys = list(dict.fromkeys(key for form in forms for key in form))
        most: Number = 0
        inside = [self.formula(one) for one in within]
        seen: set[tuple[bool, ...]] = set()
        for truths, assigned in self.true_vectors(keys, known):
            if truths in seen and not inside:
                continue
            holding = {key for key, truth in zip(keys, truths, strict=True) if truth}
            rows: list[Poly] = []
            for form in forms:
                total: Poly = {}
                for key, poly in form.items():
                    if key in holding:
                        total = add_polys(total, poly, 1) if total else poly
                rows.append(total)
            if any(rows):
                if not all(self._follows(one, assigned) for one in inside):
                    raise Refused("values: what adds something is counted", "a row outside of t")
                if truths not in seen:
                    most = max(most, measure(rows))
            seen.add(truths)
        return most

    def _follows(self, formula: Formula, assigned: dict[object, bool]) -> bool:
        return _evaluated(formula, assigned)[0] is True


def add_polys(left: Poly, right: Poly, factor: Number) -> Poly:
    """left + factor·right, without zeros."""
    result = dict(left)
    for term, value in right.items():
        new = result.get(term, 0) + factor * value
        if new:
            result[term] = new
        else:
            result.pop(term, None)
    return result


def add_forms(left: Form, right: Form, factor: Number) -> Form:
    """left + factor·right, without zeros."""
    result = dict(left)
    for key, poly in right.items():
        new = add_polys(result.get(key, {}), poly, factor)
        if new:
            result[key] = new
        else:
            result.pop(key, None)
    return result


def scaled(form: Form, factor: Number) -> Form:
    """A form times a number."""
    return add_forms({}, form, factor)


def _divided(left: Ends, right: Ends) -> Ends:
    """A quotient of whole numbers, cut towards zero, by one that is not 0 (NULL then, or an error)."""
    if left.low is None or left.high is None or not _whole(left.step) or not _whole(right.step):
        return Ends(step=1)
    known = _apart(right, 0) and right.low is not None and right.high is not None
    above = right.low is not None and right.low > 0
    by = (right.low, right.high) if known else (right.low,) if above else (-1, 1)
    found = [_cut(int(x), int(y)) for x in (left.low, left.high) for y in by if y is not None]
    return Ends(min(found), max(found), 1) if known else Ends(min(0, *found), max(0, *found), 1)


def _cut(value: int, by: int) -> int:
    size = abs(value) // abs(by)
    return size if (value >= 0) == (by > 0) else -size


def _product(left: Poly, right: Poly) -> Poly:
    result: Poly = {}
    for one, factor in left.items():
        term = {
            tuple(sorted((*one, *two), key=lambda atom: atom.serial)): value for two, value in right.items()
        }
        result = add_polys(result, term, factor)
    return result


def _at(poly: Poly, corner: dict[Term, Number]) -> Number:
    total: Number = 0
    for term, factor in poly.items():
        for atom in term:
            factor = factor * corner[atom]
        total += factor
    return total


def _together(polys: Sequence[Poly]) -> list[list[Poly]]:
    """Polynomials in groups that share no atoms."""
    groups: list[tuple[set[Term], list[Poly]]] = []
    for poly in polys:
        atoms = {atom for term in poly for atom in term}
        joined, rest = (atoms, [poly]), []
        for group in groups:
            if group[0] & atoms:
                joined = (joined[0] | group[0], joined[1] + group[1])
            else:
                rest.append(group)
        groups = [*rest, joined]
    return [group for _, group in groups]


def _clamped(term: Term) -> Any:
    """`x` of a CASE without ELSE whose conditions compare x with numbers, one of them TRUE of every number (not of
    NaN), and whose values are x or constants: it is NULL exactly where x is."""
    pairs, default = term.args
    tests = [one for when, _ in pairs for one in _ands(when)]
    if default.op != "null" or any(one.op == "in" or len(one.args) != 2 for one in tests):
        return None
    compared = {side for one in tests for side in one.args if not _is_constant(side)}
    if len(compared) != 1:
        return None
    [x] = compared
    stretches = [_stretch(when, x) for when, _ in pairs]
    constant = all(value is x or _is_constant(value) for _, value in pairs)
    return x if constant and _cover(sorted(one for one in stretches if one is not None)) else None


_CONSTANT = ("num", "text", "literal")
_ORDERED = ("int", "decimal", "float", "date", "timestamp")
_FAR = Fraction(2**2000)
_INFINITY = ("Infinity", "float")


def _is_constant(term: Term) -> bool:
    return term.op in _CONSTANT or (term.op == "cast" and term.args[0].op in _CONSTANT)


def _ands(when: Term) -> tuple[Term, ...]:
    return when.args if when.op == "and" else (when,)


def _stretch(when: Term, x: Term) -> tuple[tuple[Number, int], tuple[Number, int]] | None:
    """From where to where a condition is TRUE of x: a number, and 0 just below it, 1 just above."""
    low, high = (-_FAR, 1), (_FAR, 0)
    for one in _ands(when):
        if one.op not in ("lt", "le", "eq"):
            return None
        left, right = one.args
        other = right if left is x else left
        if left is x and _is_above_numbers(other, one.op):
            continue
        if other.op != "num":
            return None
        if left is not x or one.op == "eq":
            low = max(low, (other.args[0], 1 if one.op == "lt" else 0))
        if left is x or one.op == "eq":
            high = min(high, (other.args[0], 0 if one.op == "lt" else 1))
    return low, high


def _is_above_numbers(term: Term, op: str) -> bool:
    """Whether `x < term`, or `x <= term`, is TRUE of every number: infinity, and NaN, which is above it."""
    inner = term.args[0] if term.op == "cast" else term
    return (term.op == "literal" and term.args == _INFINITY and op == "le") or (
        inner.op == "text" and inner.args[0] == "NaN" and op == "lt"
    )


def _takes_nan(branch: tuple[Term, Term]) -> bool:
    """Whether a condition that compares x with numbers is TRUE of NaN: it asks x to be above them, and no more."""
    return all(one.op in ("lt", "le") and one.args[0].op in ("num", "literal") for one in _ands(branch[0]))


def _cover(stretches: Sequence[tuple[tuple[Number, int], tuple[Number, int]]]) -> bool:
    """Whether stretches, in order, leave out no number."""
    reached: tuple[Number, int] = (-_FAR, 1)
    for low, high in stretches:
        if low > reached:
            return False
        reached = max(reached, high)
    return reached >= (_FAR, 0)


def _narrowed(under: dict[Term, Ends], when: Term) -> dict[Term, Ends]:
    """Ends of expressions where a condition is TRUE."""
    if when.op == "and":
        for one in when.args:
            under = _narrowed(under, one)
    elif when.op in ("lt", "le", "eq"):
        left, right = when.args
        for one, other, below in ((left, right, True), (right, left, False)):
            number = other.args[0] if other.op == "cast" and other.args[1] == _UNSCALED else other
            if number.op == "num" and one.op != "num":
                ends = under.get(one, Ends())
                if below or when.op == "eq":
                    ends = ends._replace(high=_min(ends.high, number.args[0]))
                if not below or when.op == "eq":
                    ends = ends._replace(low=_max(ends.low, number.args[0]))
                under[one] = ends
    return under


def _meet(ends: Ends, found: Ends) -> Ends:
    """Ends of a number that lies between both."""
    return Ends(_max(ends.low, found.low), _min(ends.high, found.high), ends.step)


def _of_type(kind: Type, decimals_are_fixed: bool) -> Ends:
    """Where a number lies because the engine holds it in a column of this type; where a decimal can be NaN it has no
    ends."""
    if kind[0] == "bool":
        return Ends(0, 1, 1)
    if kind[0] == "int":
        return Ends(-(2 ** (kind[1] - 1)), 2 ** (kind[1] - 1) - 1, 1)
    if kind[0] == "decimal" and kind[2] is not None:
        step = Fraction(1, 10 ** kind[2]) if kind[2] else 1
        most = (10 ** kind[1] - 1) * step if kind[1] is not None and decimals_are_fixed else None
        return Ends(None if most is None else -most, most, step)
    return Ends()


def _max(one: Number | None, other: Number | None) -> Number | None:
    return other if one is None else one if other is None else max(one, other)


def _min(one: Number | None, other: Number | None) -> Number | None:
    return other if one is None else one if other is None else min(one, other)


def _places(value: Fraction) -> int:
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    return places


def _whole(step: Number | None) -> bool:
    return step is not None and Fraction(step).denominator == 1


def _common(one: Number | None, other: Number | None) -> Number | None:
    """The greatest common divisor of two rationals (of 0 and x: x)."""
    if one is None or other is None:
        return None
    if isinstance(one, int) and isinstance(other, int):
        return gcd(one, other)
    a, b = Fraction(one), Fraction(other)
    below = lcm(a.denominator, b.denominator)
    found = Fraction(gcd(int(a * below), int(b * below)), below)
    return found.numerator if found.denominator == 1 else found


def _hull(parts: Sequence[Ends]) -> Ends:
    if not parts:
        return Ends(0, 0, 0)
    lows, highs = [one.low for one in parts], [one.high for one in parts]
    step: Number | None = 0
    for one in parts:
        step = _common(step, one.step)
    low = None if None in lows else min(one for one in lows if one is not None)
    return Ends(low, None if None in highs else max(one for one in highs if one is not None), step)


def _computed(op: str, parts: Sequence[Ends]) -> Ends:
    if op == "neg":
        [one] = parts
        return Ends(None if one.high is None else -one.high, None if one.low is None else -one.low, one.step)
    left, right = parts
    if op == "sub":
        right = _computed("neg", [right])
    if op in ("add", "sub"):
        low = None if left.low is None or right.low is None else left.low + right.low
        high = None if left.high is None or right.high is None else left.high + right.high
        return Ends(low, high, _common(left.step, right.step))
    step = None if left.step is None or right.step is None else left.step * right.step
    if None in (left.low, left.high, right.low, right.high):
        if left.low is not None and right.low is not None and left.low >= 0 and right.low >= 0:
            return Ends(left.low * right.low, None, step)
        return Ends(None, None, step)
    corners = [x * y for x in left[:2] for y in right[:2] if x is not None and y is not None]
    return Ends(min(corners), max(corners), step)


def _computed_sum(parts: Sequence[Ends]) -> Ends:
    total = Ends(0, 0, 0)
    for one in parts:
        total = _computed("add", [total, one])
    return total


def _times(factor: Number, parts: Sequence[Ends]) -> Ends:
    total = Ends(factor, factor, None)
    for one in parts:
        total = _computed("mul", [total, one])
    return total


def _cast(inner: Ends, kind: Type) -> Ends:
    """A cast rounds to the grid of its type; what is on it stays."""
    if kind[0] == "float":
        return Ends(inner.low, inner.high, None)
    if kind[0] == "timestamptz" and inner.low is not None and inner.high is not None:
        return Ends(inner.low - _DAY, inner.high + _DAY, inner.step)  # a zone is less away
    if kind[0] == "date" and inner.low is not None:
        return inner._replace(low=inner.low // _DAY * _DAY)  # where the day begins
    if kind[0] not in ("int", "decimal"):
        return inner if kind[0] in ("date", "timestamp") else Ends()
    places = kind[2] if kind[0] == "decimal" else 0
    if places is None:
        return inner
    if inner.step is not None and Fraction(inner.step * 10**places).denominator == 1:
        return inner
    grid = 10**places
    low = None if inner.low is None else Fraction(Fraction(inner.low * grid).__floor__(), grid)
    high = None if inner.high is None else Fraction(Fraction(inner.high * grid).__ceil__(), grid)
    return Ends(low, high, Fraction(1, grid) if places else 1)


def _nearest(ends: Ends) -> Ends:
    """Whole numbers that are at most a half away."""
    low = None if ends.low is None else (Fraction(ends.low) - Fraction(1, 2)).__ceil__()
    return Ends(low, None if ends.high is None else (Fraction(ends.high) + Fraction(1, 2)).__floor__(), 1)


def _quotient(left: Ends, right: Ends) -> Ends:
    """The hull of the corners, where the divisor is not near 0."""
    if not _apart(right, 0) or None in (left.low, left.high, right.low, right.high):
        return Ends()
    corners = [Fraction(x) / y for x in left[:2] for y in right[:2] if x is not None and y is not None]
    return Ends(min(corners), max(corners), None)


def _finite(ends: Ends) -> Ends:
    """Ends of a double that is computed of doubles: none where it may be too large for one."""
    if ends.low is None or ends.high is None or max(-ends.low, ends.high) >= 2**1000:
        return Ends()
    return ends


def _remainder(left: Ends, right: Ends) -> Ends:
    """`a % b` of exact numbers has a's sign (or is 0), and is neither larger than a nor as large as b."""
    step = _common(left.step, right.step)
    if step is None:
        return Ends()
    sizes = [max(-one.low, one.high) for one in (left,) if one.low is not None and one.high is not None]
    if right.low is not None and right.high is not None:
        sizes.append(max(0, max(-right.low, right.high) - step))
    most = min(sizes, default=None)
    low = 0 if left.low is not None and left.low >= 0 else None if most is None else -most
    return Ends(low, 0 if left.high is not None and left.high <= 0 else most, step)


def _is_power_of_two(term: Term) -> bool:
    value = term.args[0] if term.op == "num" and term.args[1] == "float" else None
    return isinstance(value, int) and 0 < value < 2**900 and value & (value - 1) == 0


def _apart(ends: Ends, value: Number) -> bool:
    """Whether a number is never this one."""
    return (ends.low is not None and ends.low > value) or (ends.high is not None and ends.high < value)


def _year(moment: Number) -> int:
    return (datetime(1970, 1, 1) + timedelta(microseconds=int(moment))).year


def _combined(kind: str, parts: list[Formula]) -> Formula:
    absorbing = kind == "any"
    rest = [one for one in dict.fromkeys(parts) if one is not (not absorbing)]
    if any(one is absorbing for one in rest):
        return absorbing
    if not rest:
        return not absorbing
    return rest[0] if len(rest) == 1 else (kind, tuple(rest))


def _no(formula: Formula) -> Formula:
    if isinstance(formula, bool):
        return not formula
    return formula[1] if formula[0] == "no" else ("no", formula)


def _assume(formula: Formula, assigned: dict[object, bool], value: bool = True) -> None:
    """Takes over flags that a formula that holds fixes."""
    if isinstance(formula, bool):
        return
    kind, inner = formula
    if kind == "is":
        assigned[inner] = value
    elif kind == "no":
        _assume(inner, assigned, not value)
    elif (kind == "all") == value:
        for one in inner:
            _assume(one, assigned, value)


def _evaluated(formula: Formula, assigned: dict[object, bool]) -> tuple[bool | None, object]:
    """A formula's truth, or None and the first flag that it waits for."""
    if isinstance(formula, bool):
        return formula, None
    kind, inner = formula
    if kind == "is":
        truth = assigned.get(inner)
        return truth, inner if truth is None else None
    if kind == "no":
        truth, flag = _evaluated(inner, assigned)
        return None if truth is None else not truth, flag
    absorbing = kind == "any"
    waiting = None
    for one in inner:
        truth, flag = _evaluated(one, assigned)
        if truth is absorbing:
            return absorbing, None
        if truth is None and waiting is None:
            waiting = flag
    return (None, waiting) if waiting is not None else (not absorbing, None)


# --- operators and functions: a row each ----------------------------------------------------------------------


Args = tuple[Any, ...]
"""A function's name, and its arguments: terms, words, types."""


class Function(NamedTuple):
    """What is known of a function: its type; the flags that hold where it is not NULL, or None; and where it lies,
    given where its arguments do."""

    type: Callable[[Values, Args], Type]
    present: Callable[[Values, Args], frozenset[Term] | None] = lambda values, args: None
    ends: Callable[[Values, Args, list[Ends]], Ends] | None = None


def _of(kind: Type) -> Callable[[Values, Args], Type]:
    return lambda values, args: kind


def _as_argument(values: Values, args: Args) -> Type:
    return values.type(args[1])


def _of_rows(values: Values, args: Args) -> Type:
    """Of a value of another row, or what stands for it where there is none."""
    return values.joined([values.type(args[1]), *(values.type(one) for one in args[3:])])


def _of_a_field(values: Values, args: Args) -> Type:
    kind = values.type(args[1])
    there = kind[0] == "struct" and args[2] in kind[1]
    return tuple(kind[2 + kind[1].index(args[2])]) if there else ("other", "FIELD")


def _of_an_element(values: Values, args: Args) -> Type:
    kind = values.type(args[1])
    element: Type = kind[1] if kind[0] == "list" else ("other", "list")
    return element


def _where_arguments_are(values: Values, args: Args) -> frozenset[Term]:
    found: frozenset[Term] = frozenset()
    return found.union(*(values.present(one) for one in args[1:] if isinstance(one, Term)))


def _of_finite(values: Values, args: Args) -> frozenset[Term] | None:
    """Of moments of which none is infinite."""
    finite = all(values.has_ends(one) for one in args[1:] if isinstance(one, Term))
    return _where_arguments_are(values, args) if finite else None


def _of_positive(values: Values, args: Args) -> frozenset[Term] | None:
    """Of a number above 0: of others a logarithm is NULL, or fails."""
    low = values.ends(args[-1]).low if _plain_base(args) else None
    return _where_arguments_are(values, args) if low is not None and low > 0 else None


def _of_fields(values: Values, args: Args) -> frozenset[Term] | None:
    """Of a grouping's lowest values, where what the field is made of is never NULL."""
    found = values.field(args[1], args[2])
    there = found is not None and values.present(found[1]) <= values.established(found[0].args[0].args[2])
    return frozenset() if there else None


def _of_utf_8(values: Values, args: Args) -> frozenset[Term] | None:
    """Of a column that was found to be UTF-8: checking it makes nothing NULL."""
    term = args[1]
    while term.op == "cast":
        term = term.args[0]
    relation = term.args[0].args[0] if term.op == "col" else term
    text = values.facts.tables[relation.args[0]].columns[term.args[1]] if relation.op == "table" else ""
    return _where_arguments_are(values, args) if text.endswith(" valid") else None


def _plain_base(args: Args) -> bool:
    """Whether a function has one argument, or is a logarithm to a whole base."""
    base = args[1] if len(args) == 3 and args[0] == "LOG" else None
    return len(args) == 2 or (base is not None and base.op == "num" and base.args[0] >= 2)


def _whole_between(values: Values, args: Args, parts: list[Ends]) -> Ends:
    low, high, _ = _nearest(parts[0]) if args[0] in ("ROUND", "RINT") else parts[0]
    low = None if low is None else Fraction(low).__floor__()
    return Ends(low, None if high is None else Fraction(high).__ceil__(), 1)


def _size(values: Values, args: Args, parts: list[Ends]) -> Ends:
    low, high, step = parts[0]
    return Ends(0, None if low is None or high is None else max(abs(low), abs(high)), step)


def _of_a_double(values: Values, args: Args, parts: list[Ends]) -> Ends:
    """Wide ends of functions of doubles; none where an argument has none, and so may be NaN."""
    name, inner = args[0], parts[-1]
    if inner.low is None or inner.high is None or not _plain_base(args):
        return Ends()
    if name in ("SIN", "COS", "TANH", "ATAN"):
        return Ends(-2, 2)
    if name == "SQRT" and inner.low >= 0:
        return Ends(0, max(1, inner.high))
    if name == "EXP" and inner.high <= 600:
        return Ends(0, 3 ** max(0, Fraction(inner.high).__ceil__()))
    if name in ("LN", "LOG") and inner.low > 0:
        most = max(Fraction(inner.high), 1 / Fraction(inner.low), Fraction(1)).__ceil__().bit_length()
        return Ends(-most, most)
    return Ends()


def _part(values: Values, args: Args, parts: list[Ends]) -> Ends:
    """A part of a moment: of its microseconds, its year, or what has ends of its own."""
    [moment], part = parts, args[2]
    if part == "EPOCH":
        second = Fraction(1, 10**6)
        return _computed("mul", [moment._replace(step=1), Ends(second, second, second)])
    if part in ("YEAR", "ISOYEAR", "YEAROFWEEK") and moment.low is not None and moment.high is not None:
        off = int(part != "YEAR")
        return Ends(_year(moment.low) - off, _year(moment.high) + off, 1)
    return Ends(0, _PARTS[part], 1) if part in _PARTS else Ends(step=1)


def _days(values: Values, args: Args, parts: list[Ends]) -> Ends:
    moments = _computed("sub", parts)
    if args[3:] != ("DAY",) or moments.low is None or moments.high is None:
        return Ends(step=1)
    return Ends(int(moments.low) // _DAY, -(-int(moments.high) // _DAY), 1)


def _of_dates(op: str, kinds: list[str], parts: list[Ends]) -> Ends:
    """A date and so many days, or an interval; of two dates the days between them."""
    by = Ends(_DAY, _DAY, _DAY)
    found = _computed(
        op, [_computed("mul", [p, by]) if k == "int" else p for k, p in zip(kinds, parts, strict=True)]
    )
    if kinds != ["date", "date"] or found.low is None or found.high is None:
        return found._replace(step=1)
    return Ends(int(found.low) // _DAY, -(-int(found.high) // _DAY), 1)


def _interval(values: Values, args: Args, parts: list[Ends]) -> Ends:
    """An interval in microseconds, a month as 28 to 31 days: of so many of each, or of microseconds alone."""
    if args[1].op != "text":
        return parts[0]._replace(step=1)
    if args[1:] == (values.pool("text", "1"), "MICROSECOND"):
        return Ends(1, 1, 1)
    found = _INTERVAL.fullmatch(args[1].args[0]) if len(args) == 2 else None
    if found is None:
        return Ends()
    months, days, microseconds = map(int, found.groups())
    ends = [months * most * _DAY + days * _DAY + microseconds for most in (28, 31)]
    return Ends(min(ends), max(ends), 1)


def _truncated(values: Values, args: Args, parts: list[Ends]) -> Ends:
    inner = parts[0]
    return inner if inner.low is None else inner._replace(low=inner.low - 366 * _DAY)


def _of_field(values: Values, args: Args, parts: list[Ends]) -> Ends:
    found = values.field(args[1], str(args[2]))
    return values.ends(found[1]) if found is not None else Ends()


def _length(values: Values, args: Args, parts: list[Ends]) -> Ends:
    most = values.characters(args[1]) if args[0] != "BYTES" else None
    return Ends(0, _LONGEST if most is None else most, 1)


def _of_both(op: str) -> Callable[[Values, Args], Type]:
    return lambda values, args: values.arithmetic(op, values.type(args[0]), values.type(args[1]))


def _of_a_quotient(values: Values, args: Args) -> Type:
    return ("float", 64) if "float" in {values.type(one)[0] for one in args} else ("other", "division")


_TYPES: dict[str, Callable[[Values, Args], Type]] = {
    op: rule
    for ops, rule in {
        "eq ne lt le same in like exists insub": _of(("bool",)),
        "and or not isnull notnull istrue isfalse bool boolor booland": _of(("bool",)),
        "text concat": _of(("text",)),
        "count* count distinct": _of(("int", 64)),
        "null": _of(("null",)),
        "num": lambda values, args: values.literal_type(*args),
        "col": lambda values, args: values.column_type(args[0].args[0], args[1]),
        "cast": Values.cast_type,
        "neg shr bitand nullif min max over": lambda values, args: values.type(args[0]),
        "scalar": lambda values, args: values.type(args[1]),
        "sum": lambda values, args: values.dialect.sum_of(values.type(args[0])),
        **{op: _of_both(op) for op in ("add", "sub", "mul", "mod", "intdiv")},
        "div": _of_a_quotient,
        "case": lambda values, args: values.joined(
            [*(values.type(one) for _, one in args[0]), values.type(args[1])]
        ),
        "coalesce least greatest": lambda values, args: values.joined([values.type(one) for one in args]),
        "fn": lambda values, args: values.function(args).type(values, args),
        "struct": lambda values, args: ("struct", args[0], *(values.type(one) for one in args[1:])),
        "lowest": lambda values, args: ("list", values.type(args[0])),
    }.items()
    for op in ops.split()
}
"""The type of an operator of terms, those of one row alike."""
_DAY = 86_400 * 10**6
_INTERVAL = re.compile(r"(-?[0-9]{1,18}) months (-?[0-9]{1,18}) days (-?[0-9]{1,18}) microseconds")
_INT, _TEXT, _DOUBLE, _MOMENT = _of(("int", 64)), _of(("text",)), _of(("float", 64)), _of(("timestamp",))
_UNKNOWN = Function(lambda values, args: ("other", args[0]))
_FUNCTIONS = {
    name: row
    for names, row in {
        "SIN COS TANH ATAN SQRT EXP": Function(_DOUBLE, _where_arguments_are, _of_a_double),
        "LN LOG": Function(_DOUBLE, _of_positive, _of_a_double),
        "FLOOR CEIL TRUNC ROUND RINT": Function(_as_argument, _where_arguments_are, _whole_between),
        "ABS": Function(_as_argument, _where_arguments_are, _size),
        "LEFT RIGHT LOWER UPPER SUBSTRING TRIM MD5 CHR SPLITPART REPLACE REGEXPREPLACE": Function(
            _TEXT, _where_arguments_are
        ),
        "PAD TEXT ARRAYTOSTRING FORMAT TRANSLATE REGEXPEXTRACT JSONMEMBER JSONTYPE": Function(_TEXT),
        "JSONFIELD": Function(_of(("other", "jsonb"))),
        "JSONVALID": Function(
            _of(("bool",)), _where_arguments_are, lambda values, args, parts: Ends(0, 1, 1)
        ),
        "REGEXPLIKE": Function(
            _of(("bool",)), _where_arguments_are, lambda values, args, parts: Ends(0, 1, 1)
        ),
        "STOREDSIZE": Function(_INT, ends=lambda values, args, parts: Ends(0, _LONGEST, 1)),
        "LENGTH STRPOSITION BYTES": Function(_INT, _where_arguments_are, _length),
        "ISNAN CONTAINS": Function(_of(("bool",)), ends=lambda values, args, parts: Ends(0, 1, 1)),
        "ROWNUMBER RANK DENSERANK": Function(
            _INT, _where_arguments_are, lambda values, args, parts: Ends(0, ROWS, 1)
        ),
        "NTILE": Function(_INT, _where_arguments_are, lambda values, args, parts: Ends(1, parts[0].high, 1)),
        "PERCENTRANK CUMEDIST": Function(
            _DOUBLE, _where_arguments_are, lambda values, args, parts: Ends(0, 1, None)
        ),
        "LAG LEAD FIRSTVALUE LASTVALUE NTHVALUE": Function(
            _of_rows, ends=lambda values, args, parts: _hull([parts[0], *parts[2:]])
        ),
        "EXTRACT": Function(
            lambda values, args: ("decimal", None, 6) if args[2] == "EPOCH" else ("int", 64),
            _of_finite,
            _part,
        ),
        "DATEDIFF": Function(_INT, _of_finite, _days),
        "EPOCH_US UNIXMICROS": Function(
            _INT, _of_finite, lambda values, args, parts: parts[0]._replace(step=1)
        ),
        "UNIXDATE": Function(_INT, _of_finite, lambda values, args, parts: Ends(step=1)),
        "TIMESTAMPTRUNC": Function(_as_argument, _of_finite, _truncated),
        "TIMESTAMPADD ATTIMEZONE": Function(_MOMENT),
        "INTERVAL": Function(_of(("other", "INTERVAL")), _where_arguments_are, _interval),
        "FIELD": Function(_of_a_field, _of_fields, _of_field),
        "EXPLODE LISTLAST": Function(_of_an_element),
        "VALID": Function(_as_argument, _of_utf_8),
        "TRYCAST": Function(lambda values, args: tuple(args[2])),
        "FROMJSON": Function(
            lambda values, args: (
                ("list", ("text",)) if args[2].args == ("ARRAY<STRING>",) else ("other", args[0])
            )
        ),
    }.items()
    for name in names.split()
}
"""What is known of functions, those of one row alike."""
