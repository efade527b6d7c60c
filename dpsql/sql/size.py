"""How large a statement may be, told before work goes into it: from its characters, its tokens, its tree.

House rule: what is refused here would be refused later, or cost more than a statement may. Each check takes time in
proportion to the text; the parser does not (it tries some nested forms twice at every level), so it comes after.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import TokenType

from ..errors import Position, Refusal

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "MAX_OUTPUTS",
    "MAX_REPEATS",
    "MAX_TEXT",
    "Counts",
    "check_tokens",
    "check_words",
    "too_complex",
]

MAX_TEXT = 65_536
"""Longest statement, in characters."""
MAX_TOKENS = 10_000
"""Most tokens: a list of constants as long as the tree may have has two for each."""
MAX_DEPTH = 60
"""Deepest nesting of the parse tree, and of brackets, and most subscripts in a row."""
MAX_NODES = 5_000
"""Most nodes of the parse tree."""
MAX_SQUARE = 6
"""Most square brackets inside each other: Postgres' arrays have no more dimensions."""
MAX_TYPED = 6
"""Most brackets inside each other that follow the name of a type."""
MAX_REPEATS = 4_096
"""Most times that a part of a form is written out: `x BETWEEN y AND z` has x twice, in another one four times."""
MAX_CTES = 100
"""Most queries in WITH, of all that a statement holds."""
MAX_JOINED = 64
"""Most tables and subqueries of one FROM."""
MAX_AGGREGATES = 200
"""Most calls of aggregates, of all that a statement holds."""
MAX_OUTPUTS = 1_664
"""Most columns of a SELECT list, as in Postgres."""

_WORD = re.compile(
    r"""
      (?:'[^']*+(?:'|\Z))++
    | (?:"[^"]*+(?:"|\Z))++
    | (?P<open>\$(?:[A-Za-z_]\w*+)?\$).*?(?:(?P=open)|\Z)
    | --[^\n]*+
    | /\*(?:[^*/]|\*(?!/)|/(?!\*)|/\*(?:[^*]|\*(?!/))*+\*/)*+\*/
    | \d[\w.]*+
    | \w++
    | [-+*/<>=~!@#%^&|`?:]{1,3}+
    | [^\w\s]
    """,
    re.VERBOSE | re.DOTALL,
)
"""A piece of a text: never more of them than the tokenizer makes tokens, but for comments and unusual quotes."""
_TYPES = frozenset(Postgres.Parser.TYPE_TOKENS)
_OPEN = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET}
_CLOSE = frozenset(_OPEN.values())


def too_complex(hint: str = "split it into smaller ones", position: Position | None = None) -> Refusal:
    """Return the refusal of a statement that is too large, whatever of it is."""
    return Refusal("the statement is too complex", sqlstate="54001", position=position, hint=hint)


_FEWER = f"{MAX_TOKENS} words and signs at most, {MAX_NODES} names and constants; split it into smaller ones"


def check_words(text: str) -> None:
    """Refuse a text of far too many words before it is cut into tokens. Raises Refusal (54001)."""
    if len(text) > MAX_TOKENS and sum(1 for _ in _WORD.finditer(text)) > MAX_TOKENS:
        raise too_complex(_FEWER)


def check_tokens(tokens: Sequence[Token]) -> None:
    """Refuse too many tokens, brackets that nest too deeply, and subscripts without end. Raises Refusal (54001)."""
    if len(tokens) > MAX_TOKENS:
        raise too_complex(_FEWER)
    inside: list[
        tuple[TokenType, bool, int]
    ] = []  # what closes it, after the name of a type, subscripts before it
    squares = typed = closed = 0
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind in _OPEN:
            is_square, is_typed = kind is TokenType.L_BRACKET, before in _TYPES
            chain = closed + 1 if is_square and before is TokenType.R_BRACKET else 0
            inside.append((_OPEN[kind], is_typed, chain))
            squares, typed = squares + is_square, typed + is_typed
            if len(inside) > MAX_DEPTH or squares > MAX_SQUARE or typed > MAX_TYPED or chain > MAX_DEPTH:
                raise too_complex("nest fewer brackets inside each other")
        elif kind in _CLOSE and inside and inside[-1][0] is kind:
            _, was_typed, closed = inside.pop()
            squares, typed = squares - (kind is TokenType.R_BRACKET), typed - was_typed
        before = kind


class Counts:
    """What a tree holds of the things that cost far more to bind and to plan than they say."""

    def __init__(self) -> None:
        self.aggregates = self.ctes = 0

    def add(self, node: exp.Expr, *, is_aggregate: bool) -> None:
        """Count a node in. Raises Refusal (54001), without a place."""
        if isinstance(node, exp.Select):
            joined, outputs = len(node.args.get("joins") or ()) + 1, len(node.args.get("expressions") or ())
            if joined > MAX_JOINED:
                raise too_complex(f"{joined} tables and subqueries are joined here; {MAX_JOINED} at most")
            if outputs > MAX_OUTPUTS:
                raise too_complex(f"a SELECT list has {MAX_OUTPUTS} columns at most")
        self.ctes += isinstance(node, exp.CTE)
        self.aggregates += is_aggregate
        if self.ctes > MAX_CTES:
            raise too_complex(f"{MAX_CTES} queries in WITH at most")
        if self.aggregates > MAX_AGGREGATES:
            raise too_complex(f"{MAX_AGGREGATES} aggregates at most; ask for some of them")
