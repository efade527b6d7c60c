"""Expressions and relations as terms that are built once: two prints of the same thing are one object.

A term is an operator and its arguments; the same operator over the same arguments is the same object, so "the same
rows" and "the same value" are questions of identity. A source of rows is `("src", relation, depth, number)`: the
alias that it was printed under is not kept, so two prints of one join have the same sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Type = tuple[Any, ...]
"""`("int", bits)`, `("decimal", digits, scale)`, `("float", bits)`, `("text",)`, `("bool",)`, `("date",)`,
`("timestamp",)`, `("enum", characters of the longest label)`, `("list", of)`, …
and `("other", name)` of which nothing is known."""

AGGREGATES = frozenset({"count*", "count", "distinct", "sum", "min", "max", "boolor", "booland", "lowest"})
_LABEL = re.compile(r"'(?:[^']|'')*'")
_ALIKE: dict[str, Type] = {
    "SMALLINT": ("int", 16),
    "INTEGER": ("int", 32),
    "INT": ("int", 32),
    "BIGINT": ("int", 64),
    "BOOLEAN": ("bool",),
    "DATE": ("date",),
}
"""Types that all engines spell alike."""
_NOTHING: frozenset[Term] = frozenset()


class Refused(Exception):
    """What was printed could not be proved. `rule` names the rule whose premise fails, or that is missing."""

    def __init__(self, rule: str, why: str = "") -> None:
        super().__init__(f"{rule}: {why}" if why else rule)
        self.rule = rule
        self.why = why


class Term:
    """An interned expression or relation; what is asked of it often is said by its parts, once.

    `inner`: the terms that it is directly made of. `free`: the sources that it reads and does not bind itself.
    `nests`: whether it has a subquery, or makes several rows of one. `gathers`: whether it has an aggregate or a
    window. `reads`: whether what it comes to depends on rows, released ones aside.
    """

    __slots__ = ("args", "free", "gathers", "inner", "nests", "op", "reads", "serial")

    def __init__(self, op: str, args: tuple[Any, ...], serial: int) -> None:
        self.op = op
        self.args = args
        self.serial = serial
        self.inner: tuple[Term, ...] = tuple(_terms(args))
        self.gathers = op in AGGREGATES or op == "over"
        is_subquery = op in ("exists", "scalar")
        self.nests = is_subquery or args[:1] == ("EXPLODE",)
        self.reads = is_subquery or self.gathers
        self.free: frozenset[Term] = _NOTHING
        if op == "src":
            self.free = frozenset((self,))
            self.gathers = self.nests = False
            return
        for one in self.inner:
            if one.free is not self.free:
                self.free = self.free | one.free if self.free else one.free
            self.gathers = self.gathers or one.gathers
            self.nests = self.nests or one.nests
            self.reads = self.reads or one.reads
        if op == "block":
            self.free = self.free - set(args[0])
        elif op == "col":
            self.reads = args[0].args[0].op != "public"

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(_shown, self.args))})"


def _shown(argument: object) -> str:
    if isinstance(argument, Term) and argument.op == "src":
        relation = argument.args[0]
        return f"{relation.args[0] if relation.op == 'table' else relation.op}#{argument.args[2]}"
    return repr(argument)


def parts(term: Term) -> tuple[Term, ...]:
    """What a term is directly made of; of a column nothing."""
    return term.inner if term.op not in ("col", "src") else ()


def inside(term: Term) -> tuple[Term, Term, Term] | None:
    """(x, low, high) of `LEAST(GREATEST(x, low), high)`, which lies from low to high where these are not NULL."""
    if (
        term.op != "least"
        or len(term.args) != 2
        or term.args[0].op != "greatest"
        or len(term.args[0].args) != 2
    ):
        return None
    return *term.args[0].args, term.args[1]


def _terms(arguments: tuple[Any, ...]) -> list[Term]:
    found: list[Term] = []
    for one in arguments:
        kind = type(one)
        if kind is Term:
            found.append(one)
        elif kind is tuple:
            found += _terms(one)
    return found


def walk(term: Term, into: Callable[[Term], bool] | None = None) -> Iterator[Term]:
    """A term and what it is made of, each once; sources are not entered, nor what `into` says no of."""
    seen = {term}
    stack = [term]
    while stack:
        one = stack.pop()
        yield one
        if one.op != "src" and (into is None or into(one)):
            for part in one.inner:
                if part not in seen:
                    seen.add(part)
                    stack.append(part)


class Pool:
    """Builds terms. One pool serves one verification."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[Any, ...]], Term] = {}

    def __call__(self, op: str, *args: Any) -> Term:
        key = (op, args)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Term(op, args, len(self._known))
        return known

    def replace(self, term: Term, by: Mapping[Term, Term], memo: dict[Term, Term] | None = None) -> Term:
        """A term with some of its parts replaced, also inside of subqueries that look outwards (not in sources)."""
        memo = {} if memo is None else memo

        def of(one: Any) -> Any:
            if isinstance(one, tuple):
                return tuple(of(part) for part in one)
            if not isinstance(one, Term):
                return one
            if one in by:
                return by[one]
            if one.op == "src":
                return one
            if one not in memo:
                memo[one] = self(one.op, *(of(part) for part in one.args))
            return memo[one]

        result = of(term)
        assert isinstance(result, Term)
        return result


def simple_type(text: str, names: Mapping[str, Type]) -> Type:
    """A type by its name; `NAME(p, s)` where `names` says `("decimal",)`, lists of a type, and else a type of its
    own."""
    text = text.strip()
    if text.endswith("[]"):
        return ("list", simple_type(text[:-2], names))
    head, _, rest = text.partition("(")
    if head == "ENUM":
        labels = _LABEL.findall(rest)
        return (
            ("enum", max(map(len, labels), default=0))
            if f"({rest}" == f"({', '.join(labels)})"
            else ("other", text)
        )
    name = head.strip().upper()
    known = names.get(name, _ALIKE.get(name))
    if head.strip().upper() in ("DECIMAL", "NUMERIC"):
        digits = [int(one) for one in rest.rstrip(")").split(",")] if rest else []
        return (
            "decimal",
            digits[0] if digits else None,
            digits[1] if len(digits) > 1 else 0 if digits else None,
        )
    return known if known is not None and not rest else ("other", text)
