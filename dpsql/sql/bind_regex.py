"""Regular expressions with a literal pattern, as the LIKE patterns that mean the same; others are for released rows.

Postgres' own engine backtracks: a pattern could take long on one row, which would tell that it is there (soundness.md
1.11). What is read here is LIKE in another spelling: plain characters, `.`, `.*`, `^` and `$` at the ends, and one
choice in parentheses or of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from ..relation.expressions import Call, Expr, Literal
from ..relation.types import BOOLEAN, TEXT
from .bind_expression import Binder, Form
from .parameters import sample

__all__ = ["like_patterns", "regex_form"]

Alike = Callable[[Binder, exp.Expr, Literal], Expr]

_TOKEN = re.compile(r"\\[^A-Za-z0-9]|\.\*|\(\?:|[^\\*+?\[\]{}]", re.DOTALL)
_ESCAPED = str.maketrans({"%": "\\%", "_": "\\_", "\\": "\\\\"})
_MOST_CHOICES = 32


def regex_form(alike: Alike, otherwise: Form, *, folds_case: bool = False) -> Form:
    """Return the form of x ~ pattern; `alike`: what binds x LIKE 'pattern', or x ILIKE, which is of ASCII letters.

    `otherwise`: binds what is no choice of such patterns, which released rows take.
    """

    def form(binder: Binder, node: exp.Expr) -> Expr:
        position = binder.position(node)
        pattern = sample(binder.bind(node.args["expression"]), TEXT, "")
        written = pattern.value if isinstance(pattern, Literal) else None
        is_read = isinstance(written, str) and (written.isascii() or not folds_case)
        found = like_patterns(str(written)) if is_read else ""
        if isinstance(found, str):
            return otherwise(binder, node)
        terms = {alike(binder, node, Literal(TEXT, one, position=position)) for one in found}
        if len(terms) == 1:
            return terms.pop()
        return Call(BOOLEAN, "or", tuple(sorted(terms, key=repr)), position=position)

    return form


def like_patterns(text: str) -> list[str] | str:
    """Return the LIKE patterns of which a text has to match one, or what of a regular expression is not read."""
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return text[at : at + 2] if text[at] == "\\" else text[at]
        tokens.append(match[0])
        at = match.end()
    choices = _choices(tokens)
    if isinstance(choices, str):
        return choices
    if len(choices) > _MOST_CHOICES:
        return "|"
    found = []
    for choice in choices:
        begins, ends = choice[:1] == ["^"], choice[-1:] == ["$"]
        inner = choice[begins : len(choice) - ends]
        wrong = next((token for token in inner if token in ("^", "$")), None)
        if wrong is not None:
            return wrong
        found.append(f"{'' if begins else '%'}{''.join(map(_of_like, inner))}{'' if ends else '%'}")
    return list(dict.fromkeys(found))


def _of_like(token: str) -> str:
    if token in (".", ".*"):
        return "%" if token == ".*" else "_"
    return token.removeprefix("\\").translate(_ESCAPED) if len(token) > 1 else token.translate(_ESCAPED)


def _choices(tokens: list[str]) -> list[list[str]] | str:
    """Return the sequences of tokens that a pattern chooses from, or what of it is more than one choice."""
    opening = [i for i, token in enumerate(tokens) if token in ("(", "(?:")]
    closing = [i for i, token in enumerate(tokens) if token == ")"]
    if not opening and not closing:
        return _split(tokens)
    if len(opening) != 1 or len(closing) != 1 or closing[0] < opening[0]:
        return "("
    before, inside, after = (
        tokens[: opening[0]],
        tokens[opening[0] + 1 : closing[0]],
        tokens[closing[0] + 1 :],
    )
    if "|" in before or "|" in after:
        return "|"
    return [[*before, *choice, *after] for choice in _split(inside)]


def _split(tokens: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for token in tokens:
        if token == "|":
            found.append([])
        else:
            found[-1].append(token)
    return found
