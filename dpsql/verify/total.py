"""No row makes a printed query fail: what each operator needs of its arguments (law L2, soundness.md 1.11).

Whether a statement fails would tell of the row that made it. No guard is relied on: engines evaluate branches
of CASE early, so an argument's ends are those that it has whatever stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

from dpsql.verify.read import Dialect, columns_of
from dpsql.verify.terms import AGGREGATES, Refused, Term, Type, inside, parts
from dpsql.verify.values import ROWS, Ends, Number, Values

_READ_OF_TEXT = frozenset({"int", "decimal", "float", "bool", "date", "timestamp", "timestamptz", "uuid"})
_FRAME_WORDS = frozenset({"RANGE", "UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT", "ROW"})
_BY_CONSTANTS = frozenset({"SPLITPART", "REPLACE", "REGEXPLIKE", "REGEXPEXTRACT", "REGEXPREPLACE"})
_PASSES_ON = ("LAG", "LEAD", "FIRSTVALUE", "LASTVALUE", "NTHVALUE", "FIELD", "EXPLODE")

Growth = tuple[Number, Number]
"""(a, b): at most `a·n + b`, n the rows below."""


class Total:
    """The premises, over one query's terms."""

    def __init__(self, values: Values, dialect: Dialect) -> None:
        self.values = values
        self.dialect = dialect
        self.spells_doubles = False
        self._seen: set[Term] = set()
        self._totals: dict[Term, bool] = {}
        self._growths: dict[Term, Growth | None] = {}

    def relation(self, relation: Term) -> None:
        """Every expression of a relation, and of the relations that it reads."""
        stack = [relation]
        while stack:
            one = stack.pop()
            if one in self._seen:
                continue
            self._seen.add(one)
            if one.op == "src":
                if one.args[0].op != "table":
                    stack.append(one.args[0])
                continue
            stack += one.inner
            self.spells_doubles = self.spells_doubles or self._spells(one)
            rule = _RULES.get(one.op)
            if rule is not None and one.reads:  # a failure of anything else follows from what is released
                rule(self, one)

    def _spells(self, term: Term) -> bool:
        """Whether a term may tell 0 from -0: it makes something else than a number of a double."""
        if term.op not in ("cast", "concat", "fn", "like"):
            return False
        makes = self.values.type(term)
        numbers = makes[0] in ("int", "decimal", "float", "bool") or term.args[0] in _PASSES_ON
        return not numbers and any("float" in _words(self.values.type(one)) for one in parts(term))

    def bounds(self, term: Term) -> Ends:
        """Where a whole number lies when it is not NULL: as computed, else within its type; totals of rows have
        none."""
        ends, kind = self.values.ends(term), self.values.type(term)
        if kind[0] != "int" or (ends.low is not None and ends.high is not None):
            return ends
        if term.op == "cast" and self.values.type(term.args[0])[0] == "int":
            return self.bounds(term.args[0])
        most = 2 ** (kind[1] - 1)
        return Ends(
            -most if ends.low is None else ends.low, most - 1 if ends.high is None else ends.high, ends.step
        )

    def most(self, term: Term) -> Number | None:
        """How large a number is at most, whatever the rows are: by its ends; of totals by how many rows there are."""
        growth = self.growth(term)
        return None if growth is None else growth[0] * ROWS + growth[1]

    def growth(self, term: Term) -> Growth | None:
        """(a, b) of a number that is at most `a·n + b`, n the rows below it: of an item of a group the group's rows, so
        that it may be added up again over groups, which share no row. None: it grows faster, or has no rule."""
        if term not in self._growths:
            total = self._is_total(term)
            ends = self.values.ends(term) if total else self.bounds(term)
            if ends.low is not None and ends.high is not None:
                self._growths[term] = 0, max(abs(ends.low), abs(ends.high))
            else:
                self._growths[term] = self._growth(term) if total else None
        return self._growths[term]

    def _growth(self, term: Term) -> Growth | None:
        op, args = term.op, term.args
        if op in ("count*", "count", "distinct"):
            return 1, 0
        if op == "col" and args[0].args[0].op != "full":
            relation: Term = args[0].args[0]
            members = relation.args[0] if relation.op == "union" else (relation,)
            return _largest(self.growth(columns_of(one)[args[1]]) for one in members if one.op != "table")
        if op == "fn" and args[0] == "ABS":
            return self.growth(args[1])
        if op == "fn" and args[0] == "FIELD" and (found := self.values.field(args[1], args[2])) is not None:
            return self.growth(found[1])
        if op in ("min", "max", "neg", "nullif", "cast", "intdiv", "mod"):
            return self.growth(args[0])
        if (totals := inside(term)) is not None and not any(map(self.values.present, totals[1:])):
            return _largest(self.growth(one) for one in totals[1:])
        if op in ("coalesce", "least", "greatest", "case"):
            values = [*(value for _, value in args[0]), args[1]] if op == "case" else args
            return _largest(self.growth(one) for one in values if one.op != "null")
        if op in ("sum", "over", "scalar"):
            inner = self.growth(args[1] if op == "scalar" else args[0])
            if inner is None:
                return None
            return (inner[0] + inner[1], 0) if op == "sum" else (0, inner[0] * ROWS + inner[1])
        if op in ("add", "sub"):
            one, other = (self.growth(side) for side in args)
            return None if one is None or other is None else (one[0] + other[0], one[1] + other[1])
        if op == "mul":
            for one, other in (map(self.growth, args), map(self.growth, args[::-1])):
                if one is not None and other is not None and not other[0]:
                    return one[0] * other[1], one[1] * other[1]
        return None

    def _fits(self, most: Number | None, kind: Type, term: Term) -> None:
        """Premise of a number's type: an integer of its bits, a decimal of 38 digits, a double of 2^1000."""
        if kind[0] == "int":
            limit: Number = 2 ** (kind[1] - 1)
        elif kind[0] == "decimal":
            digits = 38 if kind[1] is None else kind[1]
            limit = (
                None if kind[2] is None or not self.dialect.DECIMALS_ARE_FIXED else 10 ** (digits - kind[2])
            )
        else:
            limit = 2**1000 if kind[0] == "float" else None
        if limit is not None and (most is None or most >= limit):
            raise Refused("total: a result fits its type", repr(term)[:300])

    def _arithmetic(self, term: Term) -> None:
        """Premise of + - *: the result, by the ends of both sides, is of its type; of totals by their rows. Decimals of
        18 digits make no more on DuckDB. A moment has ends beyond which each engine has moments too."""
        kind = self.values.type(term)
        if kind[0] in ("date", "timestamp"):
            ends = self.values.ends(term)
            if ends.low is None or ends.high is None or ends.low < _FIRST or ends.high > _LAST:
                raise Refused("total: a moment stays in the calendar", repr(term)[:300])
            return
        if kind[0] == "decimal" and kind[1] is None:
            kind = (
                "decimal",
                self.dialect.decimal_digits([self.values.type(one) for one in term.args]),
                kind[2],
            )
        if self._is_total(term):
            self._fits(self.most(term), kind, term)
            return
        (a, b, _), (c, d, _) = (self.bounds(one) for one in term.args)
        if a is None or b is None or c is None or d is None:
            self._fits(None, kind, term)
            return
        corners = {"add": (a + c, b + d), "sub": (a - d, b - c), "mul": (a * c, a * d, b * c, b * d)}[term.op]
        low, high = min(corners), max(corners)
        self._fits(max(high, -1 - low if kind[0] == "int" else -low), kind, term)

    def _is_total(self, term: Term) -> bool:
        """Whether a number is made of totals over rows, which are bounded by the number of rows."""
        known = self._totals.get(term)
        if known is None:
            known = (
                term.op in AGGREGATES or term.op == "over" or any(self._is_total(one) for one in parts(term))
            )
            if term.op == "col" and not known and term.args[0].args[0].op != "table":
                relation: Term = term.args[0].args[0]
                members = relation.args[0] if relation.op == "union" else (relation,)
                known = any(
                    one.op != "table" and one.op != "full" and self._is_total(columns_of(one)[term.args[1]])
                    for one in members
                )
            self._totals[term] = known
        return known

    def _divided(self, term: Term) -> None:
        """Premise of a quotient and of %: the divisor is not 0, or NULL where it would be."""
        ends = self.values.ends(term.args[1])
        if (
            term.args[1].op == "nullif"
            and term.args[1].args[1].op == "num"
            and term.args[1].args[1].args[0] == 0
        ):
            return
        if not (ends.low is not None and ends.low > 0) and not (ends.high is not None and ends.high < 0):
            raise Refused("total: a divisor is not 0", repr(term)[:300])

    def _cast(self, term: Term) -> None:
        """Premise of a cast: of a number, that it fits; a double that becomes an exact one has ends, so it is no NaN.
        Of a text, that it is constant, passed, hexadecimal digits, or what a pattern finds. A day that becomes
        a moment has ends."""
        inner, kind = term.args
        given = self.values.type(inner)
        if kind in (("text",), given) or given == ("null",) or given[0] == "bool":
            return
        if given[0] == kind[0] == "int" and given[1] <= kind[1]:
            return
        if given[0] in ("int", "decimal", "float") and kind[0] in ("int", "decimal"):
            if given[0] != "decimal" or kind[0] == "int" or kind[1] is not None:
                self._fits(self.most(inner), kind, term)
        elif given[0] in ("text", "bits", "other") and not (
            _is_hexadecimal(inner) or self._is_numeral(inner, kind)
        ):
            raise Refused("total: a text that is read as a number is passed", repr(term)[:300])
        elif (given[0], kind[0]) == ("date", "timestamp") and None in self.values.ends(inner)[:2]:
            raise Refused("total: a result fits its type", repr(term)[:300])

    def _is_numeral(self, term: Term, kind: tuple[object, ...]) -> bool:
        """Whether a text is NULL or what the one group of a pattern finds: digits that fit a type of numbers, or a day
        that there is."""
        found, groups = term, term.args[3:]
        if self.dialect.NAME == "duckdb":  # '' where nothing is found
            if term.op != "nullif" or term.args[1].op != "text" or term.args[1].args[0]:
                return False
            found = term.args[0]
            groups = found.args[3:]
            if len(groups) != 1 or groups[0].op != "num" or groups[0].args[0] != 1:
                return False
        elif self.dialect.NAME != "postgres" or groups:  # NULL where nothing is found
            return False
        if found.op != "fn" or found.args[0] != "REGEXPEXTRACT" or found.args[2].op != "text":
            return False
        pattern: str = found.args[2].args[0]
        if kind in (("date",), ("timestamp",)):
            return pattern == (_DATE if kind == ("date",) else _MOMENT)
        whole, real = (one.fullmatch(pattern) for one in (_WHOLE, _REAL))
        if whole is not None and kind == ("int", 64):
            return int(whole[1]) <= 18
        return real is not None and kind == ("float", 64) and max(map(int, real.groups())) <= 100

    def _compared(self, term: Term) -> None:
        """Premise of a comparison: no text of a row beside a number, which an engine may read it as."""
        sides = (term.args[0], *term.args[1]) if term.op == "in" else term.args
        kinds = {self.values.type(one)[0] for one in sides}
        texts = (one for one in sides if self.values.type(one)[0] == "text")
        if kinds & _READ_OF_TEXT and any(one.reads for one in texts):
            raise Refused("total: a text that is read as a number is passed", repr(term)[:300])

    def _function(self, term: Term) -> None:
        """Premise of functions of doubles: the argument is where they have a value that is not too large. Of parts of
        texts: separators, places and patterns are constant, so that the engine has read them before any row."""
        name, *given = term.args
        if name in _BY_CONSTANTS and any(one.reads or one.op not in ("text", "num") for one in given[1:]):
            raise Refused("total: what a text is taken apart by is constant", repr(term)[:300])
        if name == "SPLITPART" and not (given[1].args[0] and given[2].op == "num" and given[2].args[0] > 0):
            raise Refused("total: a part has a place from 1", repr(term)[:300])
        if name in ("JSONFIELD", "JSONMEMBER"):
            self._member(term, given)
        if name in ("LN", "LOG", "SQRT", "EXP"):
            ends = self.values.ends(term.args[-1])
            least = {"SQRT": 0, "EXP": -(2**1000)}.get(name, Fraction(1, 2**1000))
            most = 600 if name == "EXP" else 2**1000
            if ends.low is None or ends.high is None or ends.low < least or ends.high > most:
                raise Refused("total: a function has a value", repr(term)[:300])

    def _member(self, term: Term, given: list[Term]) -> None:
        """Premise of a member of JSON: its keys are constant, and what it is of is JSON: Postgres' own type, or a
        text that is NULL where it is none. Of Postgres' own as text: it is short, or it is a number or a string; an
        object or an array is written out whole, and its numbers of a few bytes as 147,000 digits."""
        whole = given[0]
        is_valid = (
            whole.op == "case"
            and len(whole.args[0]) == 1
            and whole.args[0][0][0] is self.values.pool("fn", "JSONVALID", whole.args[0][0][1])
            and whole.args[1].op == "null"
        )
        is_json = self.values.type(whole) == ("other", "jsonb")
        if not (is_valid or is_json) or any(one.op != "text" for one in given[1:]):
            raise Refused("total: a member is of JSON", repr(term)[:300])
        if is_json and term.args[0] == "JSONMEMBER" and not self._is_short(whole, given[1]):
            raise Refused("total: a member is written out where it is short", repr(term)[:300])

    def _is_short(self, whole: Term, key: Term) -> bool:
        """Whether JSON is `CASE WHEN s <= n OR t IN (…) THEN j END`, s and t the size and the type of its member: so
        little of JSON that its text is below 2^27 characters, or a number or a string."""
        if whole.op != "case" or len(whole.args[0]) != 1 or whole.args[1].op != "null":
            return False
        [(when, inner)] = whole.args[0]
        pool = self.values.pool
        member = pool("fn", "JSONFIELD", inner, key)
        size, kind = (pool("fn", name, member) for name in ("STOREDSIZE", "JSONTYPE"))
        scalars = {pool("text", name) for name in ("number", "string")}
        return all(
            (one.op == "in" and one.args[0] is kind and set(one.args[1]) <= scalars)
            or (
                one.op == "le"
                and one.args[0] is size
                and one.args[1].op == "num"
                and one.args[1].args[0] <= 2**13
            )
            for one in (when.args if when.op == "or" else (when,))
        )

    def _over(self, term: Term) -> None:
        """Premise of NTILE and NTH_VALUE: what they count to is constant, and from 1. Of a frame by value: it is of one
        whole number, and none with the distance added leaves its type."""
        function, _, order, frame = term.args
        if function.op == "fn" and function.args[0] in ("NTILE", "NTHVALUE"):
            place = function.args[-1]
            if place.op != "num" or not 0 < place.args[0] < 2**31:
                raise Refused("total: a part has a place from 1", repr(term)[:300])
        said = [one for one in frame.split() if one not in _FRAME_WORDS]
        if not frame.startswith("RANGE ") or not said:
            return
        far = [int(one) for one in said if one.isdecimal()]
        kind = self.values.type(order[0][0]) if len(order) == 1 else ("none",)
        ends = self.bounds(order[0][0]) if kind[0] == "int" else Ends()
        if ends.low is None or ends.high is None or len(far) < len(said):
            raise Refused("total: a frame by value is of whole numbers", repr(term)[:300])
        self._fits(max(abs(ends.low), abs(ends.high)) + max(far), kind, term)

    def _sum(self, term: Term) -> None:
        """Premise of SUM: 2^40 values fit the sum's type; of doubles there is none (`relations`)."""
        kind = self.dialect.sum_of(self.values.type(term.args[0]))
        if kind[0] != "float":
            self._fits(self.most(term), kind, term)


_FIRST, _LAST = -2 * 10**17, 9 * 10**18
"""Microseconds: moments of the years -4367 to 287000 are there on each engine that adds to them."""
_WHOLE = re.compile(r"\^ \*\(\[-\+\]\?\[0-9\]\{1,([0-9]{1,3})\}\) \*\$")
"""The pattern of a whole number of so many digits between blanks, as one group."""
_REAL = re.compile(r"\^ \*\(\[-\+\]\?\[0-9\]\{1,([0-9]{1,3})\}\(\[\.\]\[0-9\]\{1,([0-9]{1,3})\}\)\?\) \*\$")
"""The pattern of a number of so many digits before a point, and after it, between blanks, as the first group."""
_EVEN = "0[48]|[2468][048]|[13579][26]"
_DAY = (
    "(?:(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-"  # no year 0
    "(?:(?:0?[13578]|1[02])-(?:0?[1-9]|[12][0-9]|3[01])|(?:0?[469]|11)-(?:0?[1-9]|[12][0-9]|30)"
    "|0?2-(?:0?[1-9]|1[0-9]|2[0-8]))"
    f"|(?:[0-9]{{2}}(?:{_EVEN})|(?:{_EVEN})00)-0?2-29)"  # every fourth year, of the hundredth ones every fourth
)
_TIME = "(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,6})?)?)?"
_DATE, _MOMENT = f"^ *({_DAY}){_TIME}Z? *$", f"^ *({_DAY}{_TIME})Z? *$"
"""The patterns of a day of the years 1 to 9999 as the first group, and of one with a time of day: engines have each."""
_RULES: dict[str, Callable[[Total, Term], None]] = {
    **dict.fromkeys(("add", "sub", "mul"), Total._arithmetic),
    **dict.fromkeys(("intdiv", "mod", "div"), Total._divided),
    **dict.fromkeys(("eq", "ne", "lt", "le", "same", "in"), Total._compared),
    "cast": Total._cast,
    "fn": Total._function,
    "over": Total._over,
    "sum": Total._sum,
}


def _largest(growths: Iterable[Growth | None]) -> Growth | None:
    found = list(growths)
    known = [one for one in found if one is not None]
    return (
        (max(a for a, _ in known), max(b for _, b in known)) if known and len(known) == len(found) else None
    )


def _is_hexadecimal(term: Term) -> bool:
    """Whether a text is digits of an MD5, after `x` or `0x`, or their number."""
    if term.op == "concat":
        return (
            term.args[0].op == "text"
            and term.args[0].args[0] in ("x", "0x")
            and _is_hexadecimal(term.args[1])
        )
    name = term.args[0] if term.op == "fn" else None
    return (
        name == "MD5"
        or (name in ("SUBSTRING", "CONV") and _is_hexadecimal(term.args[1]))
        or (term.op == "cast" and term.args[1] == ("bits",) and _is_hexadecimal(term.args[0]))
    )


def _words(kind: Iterable[object]) -> Iterator[object]:
    """All that a type is made of."""
    for one in kind:
        if isinstance(one, tuple):
            yield from _words(one)
        else:
            yield one
