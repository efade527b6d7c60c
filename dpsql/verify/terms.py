"""Expressions and relations as terms that are built once: two prints of the same thing are one object.

A term is an operator and its arguments; the same operator over the same arguments is the same object, so "the same
rows" and "the same value" are questions of identity. A source of rows is `("src", relation, depth, number)`: the
alias that it was printed under is not kept, so two prints of one join have the same sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["Pool", "Refused", "Term", "Type", "parts", "simple_type", "walk"]

Type = tuple[Any, ...]
"""`("int", bits)`, `("decimal", digits, scale)`, `("float", bits)`, `("text",)`, `("bool",)`, `("date",)`,
`("timestamp",)`, `("enum", characters of the longest label)`, `("list", of)`, …
and `("other", name)` of which nothing is known."""

_LABEL = re.compile(r"'(?:[^']|'')*'")
_NOTHING: frozenset[Term] = frozenset()


class Refused(Exception):
    """What was printed could not be proved. `rule` names the rule whose premise fails, or that is missing."""

    def __init__(self, rule: str, why: str = "") -> None:
        super().__init__(f"{rule}: {why}" if why else rule)
        self.rule = rule
        self.why = why


class Term:
    """An interned expression or relation. `free`: the sources that it reads and does not bind itself. `nests`: whether
    it has a subquery, or makes several rows of one."""

    __slots__ = ("args", "free", "nests", "op", "serial")

    def __init__(self, op: str, args: tuple[Any, ...], serial: int) -> None:
        self.op = op
        self.args = args
        self.serial = serial
        self.nests = op in ("exists", "scalar") or args[:1] == ("EXPLODE",)
        if op == "src":
            self.free: frozenset[Term] = frozenset((self,))
        else:
            free = _NOTHING
            for one in _terms(args):
                free = free | one.free if free else one.free
                self.nests = self.nests or one.nests
            self.free = free - set(args[0]) if op == "block" else free

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(_shown, self.args))})"


def _shown(argument: object) -> str:
    if isinstance(argument, Term) and argument.op == "src":
        relation = argument.args[0]
        return f"{relation.args[0] if relation.op == 'table' else relation.op}#{argument.args[2]}"
    return repr(argument)


def parts(term: Term) -> Iterator[Term]:
    """What a term is directly made of; of a column nothing."""
    return _terms(term.args) if term.op not in ("col", "src") else iter(())


def _terms(arguments: tuple[Any, ...]) -> Iterator[Term]:
    for one in arguments:
        if isinstance(one, Term):
            yield one
        elif isinstance(one, tuple):
            yield from _terms(one)


def walk(term: Term, into: Callable[[Term], bool] = lambda _: True) -> Iterator[Term]:
    """A term and what it is made of, each once; sources are not entered, nor what `into` says no of."""
    seen: set[Term] = set()
    stack = [term]
    while stack:
        one = stack.pop()
        if one in seen:
            continue
        seen.add(one)
        yield one
        if one.op != "src" and into(one):
            stack.extend(_terms(one.args))


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
    known = names.get(head.strip().upper())
    if head.strip().upper() in ("DECIMAL", "NUMERIC"):
        digits = [int(one) for one in rest.rstrip(")").split(",")] if rest else []
        return (
            "decimal",
            digits[0] if digits else None,
            digits[1] if len(digits) > 1 else 0 if digits else None,
        )
    return known if known is not None and not rest else ("other", text)
