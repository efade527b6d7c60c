"""Patterns: LIKE and ILIKE, and regular expressions as the LIKE patterns that mean the same.

Postgres' own engine of regular expressions backtracks: a pattern could take long on one row, which would tell that it
is there (soundness.md 1.11). What is read here is LIKE in another spelling: plain characters, `.`, `.*`, `^` and `$` at
the ends, and one choice in parentheses or of the whole; others are for released rows.
"""

from __future__ import annotations

import re

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import FALSE, TRUE, Expr, Literal
from ..relation.functions import FUNCTIONS
from ..relation.types import TEXT, Kind
from .bind_expression import Binder, call, negated
from .bind_lists import joined, quantified
from .literals import sample
from .named_calls import bind_row

__all__ = ["bind_escape", "bind_like", "bind_regex", "like_patterns"]

_TOKEN = re.compile(r"\\[^A-Za-z0-9]|\.\*|\(\?:|[^\\*+?\[\]{}]", re.DOTALL)
_ESCAPED = str.maketrans({"%": "\\%", "_": "\\_", "\\": "\\\\"})
_MOST_CHOICES, _MOST_WILDCARDS, _LONGEST = 32, 8, 200


def bind_like(binder: Binder, node: exp.Expr, escape: str = "\\") -> Expr:
    """Return x LIKE or ILIKE a pattern, or ANY or ALL of a list of them that is written out.

    Raises:
        Refusal: PV202 for another list, and for patterns with too much of what makes them slow.
    """
    listed, position = quantified(binder, node.args["expression"]), binder.position(node)
    folds_case = isinstance(node, exp.ILike)
    often = len(listed[1]) if listed is not None and isinstance(listed[1], list) else 1
    value = binder.repeated(node.args["this"], often)
    if listed is None:
        pattern = binder.bind(node.args["expression"])
        return negated(node, _alike(value, pattern, position, escape, folds_case=folds_case))
    is_any, items = listed
    if not isinstance(items, list):
        raise Refusal(
            "LIKE ANY and LIKE ALL take a list that is written out", sqlstate="PV202", position=position,
            hint="write x LIKE ANY (ARRAY['a%', 'b%']), or EXISTS (SELECT 1 FROM unnest(q) AS p WHERE x LIKE p)",
        )  # fmt: skip
    if not items:
        return FALSE if is_any else TRUE
    each = [negated(node, _alike(value, item, position, escape, folds_case=folds_case)) for item in items]
    return joined(each, position, is_any=is_any)


def _alike(value: Expr, given: Expr, position: Position | None, escape: str, *, folds_case: bool) -> Expr:
    """Return x LIKE a pattern; `folds_case`: x ILIKE 'A%' as lower(x) LIKE 'a%', of letters with but one small form."""
    pattern = sample(given, TEXT, "")
    if folds_case:
        pattern, escape = _lower(pattern, position), escape.lower()
        value = call("lower", [value], position, said="ILIKE")
    if not isinstance(pattern.constant, str):
        return call("like_computed", [value, pattern, Literal(TEXT, escape)], position, said="LIKE")
    if (
        pattern.constant.count("%") + pattern.constant.count("_") > _MOST_WILDCARDS
        or len(pattern.constant) > _LONGEST
    ):
        raise Refusal(
            "this LIKE pattern has too many wildcards", sqlstate="PV202", position=position, hint="8 at most"
        )
    bare = pattern.constant.replace(escape * 2, "") if escape else pattern.constant
    if escape and bare.endswith(escape):
        raise Refusal("the LIKE pattern ends in its escape character", sqlstate="22023", position=position)
    return call("like", [value, pattern, Literal(TEXT, escape)], position, said="LIKE")


def _lower(pattern: Expr, position: Position | None) -> Expr:
    if not pattern.is_constant:
        return call("lower", [pattern], position, said="ILIKE")
    if not isinstance(pattern.constant, str):
        return pattern
    if not pattern.constant.isascii():
        raise Refusal(
            "ILIKE takes a pattern of ASCII letters", sqlstate="PV202", position=position,
            hint="write x LIKE '…' for each spelling, joined by OR",
        )  # fmt: skip
    return Literal(TEXT, pattern.constant.lower(), position=pattern.position)


def bind_escape(binder: Binder, node: exp.Expr) -> Expr:
    """Return x LIKE, ILIKE or SIMILAR TO a pattern ESCAPE a character. Raises Refusal (42601): it is none."""
    like, character = node.args["this"], node.args["expression"]
    if isinstance(like, exp.SimilarTo):
        args = [binder.bind(part) for part in (like.args["this"], like.args["expression"], character)]
        return bind_row(binder, node, "SIMILAR TO", [FUNCTIONS["similar_to"]], args)
    text = str(character.args.get("this", "")) if isinstance(character, exp.Literal) else "  "
    is_like = isinstance(like, (exp.Like, exp.ILike))
    if not is_like or len(text) > 1 or not text.isascii() or text == "'":
        raise Refusal(
            "ESCAPE takes one character after LIKE", sqlstate="42601", position=binder.position(node)
        )
    return bind_like(binder, like, text)


def bind_regex(binder: Binder, node: exp.Expr) -> Expr:
    """Return x ~ pattern or x ~* pattern: of LIKE patterns where it is a choice of them, which are of ASCII letters."""
    position, folds_case = binder.position(node), isinstance(node, exp.RegexpILike)
    value, pattern = binder.bind(node.args["this"]), binder.bind(node.args["expression"])
    known = sample(pattern, TEXT, "")
    written = known.constant
    is_read = isinstance(written, str) and (written.isascii() or not folds_case)
    found = like_patterns(str(written)) if is_read else ""
    if not isinstance(found, str):
        literals = (Literal(TEXT, one, position=position) for one in found)
        each = [_alike(value, one, position, "\\", folds_case=folds_case) for one in literals]
        return joined(each, position, is_any=True)
    if not folds_case and pattern.type.kind is Kind.TEXT and not pattern.is_constant:
        return call("regexp_computed", [value, pattern], position, said="~")
    said, name = ("~*", "regexp_matches_no_case") if folds_case else ("~", "regexp_matches")
    return bind_row(binder, node, said, [FUNCTIONS[name]], [value, pattern])


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
