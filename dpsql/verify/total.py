"""No row makes a printed query fail: what each operator needs of its arguments (law L2, soundness.md 1.11).

Whether a statement fails would tell of the row that made it. No guard is relied on: engines evaluate branches
of CASE early, so an argument's ends are those that it has whatever stands around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpsql.verify.read import AGGREGATES, Dialect, columns_of
from dpsql.verify.terms import Refused, Term, parts, walk
from dpsql.verify.values import Ends, Values

__all__ = ["Total"]

_PASSES_ON = ("LAG", "LEAD", "FIRSTVALUE", "LASTVALUE", "FIELD", "EXPLODE")

ROWS = 2**40
"""More rows than a query reads (soundness.md 1.9)."""


class Total:
    """The premises, over one query's terms."""

    def __init__(self, values: Values, dialect: Dialect) -> None:
        self.values = values
        self.dialect = dialect
        self.spells_doubles = False
        self._seen: set[Term] = set()
        self._totals: dict[Term, bool] = {}

    def relation(self, relation: Term) -> None:
        """Every expression of a relation, and of the relations that it reads."""
        for term in self._terms(relation):
            for one in walk(term):
                if one in self._seen:
                    continue
                self._seen.add(one)
                if one.op == "src":
                    if one.args[0].op != "table":
                        self.relation(one.args[0])
                else:
                    self.spells_doubles = self.spells_doubles or self._spells(one)
                    rule = getattr(self, f"_{one.op}", None)
                    if rule is not None:
                        rule(one)

    def _spells(self, term: Term) -> bool:
        """Whether a term may tell 0 from -0: it makes something else than a number of a double."""
        if term.op not in ("cast", "concat", "fn", "like"):
            return False
        makes = self.values.type(term)
        numbers = makes[0] in ("int", "decimal", "float", "bool") or term.args[0] in _PASSES_ON
        return not numbers and any("float" in _words(self.values.type(one)) for one in parts(term))

    def _terms(self, relation: Term) -> Iterator[Term]:
        if relation.op == "union":
            for one in relation.args[0]:
                yield from self._terms(one)
        else:
            yield relation
            if relation.op != "full":
                yield from columns_of(relation).values()

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

    def _arithmetic(self, term: Term) -> None:
        """Premise of + - * of whole numbers of one row: the result, by the ends of both sides, is of its type."""
        kind = self.values.type(term)
        if kind[0] != "int" or self._is_total(term):
            return
        (a, b, _), (c, d, _) = (self.bounds(one) for one in term.args)
        if a is None or b is None or c is None or d is None:
            raise Refused("total: a result fits its type", repr(term)[:300])
        corners = {"add": (a + c, b + d), "sub": (a - d, b - c), "mul": (a * c, a * d, b * c, b * d)}[term.op]
        most = 2 ** (kind[1] - 1)
        if min(corners) < -most or max(corners) >= most:
            raise Refused("total: a result fits its type", repr(term)[:300])

    _add = _sub = _mul = _arithmetic

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

    def _intdiv(self, term: Term) -> None:
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

    _mod = _div = _intdiv

    def _cast(self, term: Term) -> None:
        """Premise of a cast of a double to a whole number: it has ends (so it is no NaN), and these fit."""
        inner, kind = term.args
        if kind[0] == "int" and self.values.type(inner)[0] == "float":
            ends, most = self.values.ends(inner), 2 ** (kind[1] - 1)
            if ends.low is None or ends.high is None or not -most <= ends.low <= ends.high < most:
                raise Refused("total: a result fits its type", repr(term)[:300])

    def _sum(self, term: Term) -> None:
        """Premise of SUM: 2^40 values fit the sum's type."""
        kind, ends = self.dialect.sum_of(self.values.type(term.args[0])), self.values.ends(term.args[0])
        if kind[0] != "int" or ends.low is None or ends.high is None:
            return
        if max(-ends.low, ends.high) * ROWS >= 2 ** (kind[1] - 1):
            raise Refused("total: a result fits its type", repr(term)[:300])


def _words(kind: Iterable[object]) -> Iterator[object]:
    """All that a type is made of."""
    for one in kind:
        if isinstance(one, tuple):
            yield from _words(one)
        else:
            yield one
