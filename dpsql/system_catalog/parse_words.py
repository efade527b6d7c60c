"""A cursor over a query's words, and the words that are no names."""

from __future__ import annotations

from .errors import unsupported
from .tokens import Token

__all__ = ["MAX_DEPTH", "RESERVED", "SET_WORDS", "Words"]

MAX_DEPTH = 60
"""Deepest nesting of parentheses and operators."""

RESERVED = frozenset(
    {"all", "and", "any", "array", "as", "asc", "both", "case", "cast", "check", "collate",
     "constraint", "create", "cross", "default", "desc", "distinct", "else", "end", "except", "false",
     "fetch", "for", "foreign", "from", "full", "grant", "group", "having", "in", "inner", "intersect",
     "into", "is", "isnull", "join", "lateral", "leading", "left", "like", "ilike", "limit", "natural",
     "not", "notnull", "null", "offset", "on", "only", "or", "order", "outer", "over", "overlaps",
     "placing", "primary", "references", "returning", "right", "select", "similar", "some", "symmetric",
     "table", "then", "to", "trailing", "true", "union", "unique", "using", "variadic", "when", "where",
     "window", "with", "filter", "within"}
)  # fmt: skip
"""Words that are never a column's name or an alias without AS."""

SET_WORDS = ("union", "except", "intersect", "order", "limit", "offset")
"""Words that go on after a query in parentheses."""


class Words:
    """What is left of a query's words."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    def deeper(self) -> None:
        """Count a level of nesting. Raises CatalogRefusal: there are too many."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise unsupported("a query nested too deep")

    def shallower(self) -> None:
        """Leave a level of nesting."""
        self._depth -= 1

    def peek(self, ahead: int = 0) -> Token:
        """Return a word without taking it."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Return the next word."""
        token = self.peek()
        self._at += 1
        return token

    def is_word(self, *words: str, ahead: int = 0) -> bool:
        """Say whether the next word is one of these, unquoted."""
        token = self.peek(ahead)
        return token.kind == "word" and token.text in words

    def accept(self, *words: str) -> bool:
        """Take these words, if they come next one after the other."""
        if all(self.is_word(word, ahead=ahead) for ahead, word in enumerate(words)):
            self._at += len(words)
            return True
        return False

    def is_sign(self, text: str, ahead: int = 0) -> bool:
        """Say whether the next is this sign."""
        token = self.peek(ahead)
        return token.kind in ("symbol", "operator") and token.text == text

    def accept_sign(self, text: str) -> bool:
        """Take a sign, if it comes next."""
        if self.is_sign(text):
            self._at += 1
            return True
        return False

    def expect(self, *words: str) -> None:
        """Take these words. Raises CatalogRefusal: something else comes."""
        if not self.accept(*words):
            raise unsupported(f"{' '.join(words)} expected")

    def expect_sign(self, text: str) -> None:
        """Take a sign. Raises CatalogRefusal: something else comes."""
        if not self.accept_sign(text):
            raise unsupported(f"{text} expected")

    def name(self) -> str:
        """Take a name. Raises CatalogRefusal: something else comes."""
        token = self.take()
        if token.kind == "quoted" or (token.kind == "word" and token.text not in RESERVED):
            return token.text
        raise unsupported("a name expected")

    def any_name(self) -> str:
        """Take a name, after AS or a point, where every word is one."""
        token = self.take()
        if token.kind in ("quoted", "word"):
            return token.text
        raise unsupported("a name expected")

    def alias(self) -> str | None:
        """Take an alias, if there is one."""
        if self.accept("as"):
            return self.any_name()
        token = self.peek()
        if token.kind == "quoted" or (token.kind == "word" and token.text not in RESERVED):
            return self.take().text
        return None

    def names(self) -> tuple[str, ...]:
        """Take names in parentheses."""
        self.expect_sign("(")
        found = [self.name()]
        while self.accept_sign(","):
            found.append(self.name())
        self.expect_sign(")")
        return tuple(found)
