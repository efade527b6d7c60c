"""A view's text, as the engine keeps it, to a query of ours: parsed, admitted and bound as a statement is.

House rules (soundness.md 1.28):

1. Nothing of the engine's view is trusted: what its text means is what our binder makes of it, and the view itself is
   never read. Where the engine would mean something else by the same words, the text is refused.
2. A change of spelling keeps every place, so that a refusal can name it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ..errors import Refusal
from .statement import AdmittedQuery, parse_view
from .text import PostgresAsWritten, blank_prefix, place, tokenize

__all__ = ["tables_in", "view_query"]

_READS_FILES = re.compile(r"(read|scan)_\w+|\w+_scan|glob", re.IGNORECASE)


class _KeptByDuckDB(PostgresAsWritten):
    """Postgres' grammar, with the order of NULL that DuckDB means where its texts say none."""

    NULL_ORDERING = "nulls_are_last"


def view_query(definition: str, engine: str, enums: Collection[str] = ()) -> AdmittedQuery:
    """Return the query of a view. `engine`: whose text it is, `duckdb` (CREATE VIEW …) or `postgres` (the query alone).

    `enums`: types of labels, as the engine prints them in its texts.

    Raises:
        Refusal: what is not read in statements either; its position is in the text as the engine has it.
    """
    if engine != "duckdb":
        return parse_view(_without_labels(definition, enums), PostgresAsWritten)
    tokens = tokenize(definition)
    start = next((token.end + 1 for token in tokens if token.token_type is TokenType.ALIAS), None)
    if start is None:
        raise Refusal("this is no view's text", sqlstate="42601")
    text = _spelled(blank_prefix(definition, start).rstrip().removesuffix(";"), tokens)
    _refuse_files(text, tokens)
    return parse_view(text, _KeptByDuckDB)


def _spelled(text: str, tokens: list[Token]) -> str:
    """Return the text with two spellings of DuckDB's own in Postgres': names of functions that it quotes, COUNT(*)."""
    for before, name, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_call = after.token_type is TokenType.L_PAREN and after.start == name.end + 1
        if is_call and name.token_type is TokenType.IDENTIFIER and before.token_type is not TokenType.ALIAS:
            text = _put(text, name.start, f" {text[name.start + 1 : name.end]} ")
        if is_call and name.text == "count_star" and text[after.end + 1 : after.end + 2] == ")":
            text = _put(text, name.start, "count(*)    ")
    return text


_EQUAL = frozenset({TokenType.EQ, TokenType.NEQ})
_LISTED = frozenset({TokenType.L_BRACKET, TokenType.COMMA})


def _without_labels(text: str, enums: Collection[str]) -> str:
    """Return a text of Postgres' with labels as the texts that they are: `(state = 'paid'::public.state)`.

    A label is its text where it is compared by equality: alone, in `= ANY (ARRAY[…])` or after WHEN. In any other place
    the type is left, and refused: labels are ordered as they were declared, and texts by their letters.
    """
    if not enums:
        return text
    tokens = tokenize(text)
    for number, (label, cast) in enumerate(itertools.pairwise(tokens)):
        if label.token_type is not TokenType.STRING or cast.token_type is not TokenType.DCOLON:
            continue
        start = cast.end + 1
        type_ = next(
            (one for one in enums if re.compile(f'{re.escape(one)}(?![\\w."[])').match(text, start)), ""
        )
        later = [token for token in tokens[number + 2 :] if token.start >= start + len(type_)]
        is_whole = bool(type_) and tokens[number + 2].start == start
        if is_whole and _is_for_equality(tokens[:number], later[0].token_type if later else None):
            text = _put(text, cast.start, " " * (start + len(type_) - cast.start))
    return text


def _is_for_equality(before: list[Token], after: TokenType | None) -> bool:
    """Say whether what stands between some tokens and a next one is compared for being equal, and nothing else."""
    if not before:
        return False
    last = before[-1].token_type
    ends = after in (
        None,
        TokenType.R_PAREN,
        TokenType.AND,
        TokenType.OR,
        TokenType.THEN,
        TokenType.SEMICOLON,
    )
    if last in _EQUAL:
        return ends
    if last is TokenType.WHEN:
        return after is TokenType.THEN
    brackets = [token.token_type for token in before if token.token_type is TokenType.L_BRACKET]
    if last not in _LISTED or after not in (TokenType.COMMA, TokenType.R_BRACKET) or not brackets:
        return False
    opened = max(place for place, token in enumerate(before) if token.token_type is TokenType.L_BRACKET)
    words = tuple(token.text.upper() for token in before[max(0, opened - 4) : opened])
    return words in (("=", "ANY", "(", "ARRAY"), ("<>", "ALL", "(", "ARRAY"))


def _put(text: str, start: int, new: str) -> str:
    return text[:start] + new + text[start + len(new) :]


def _refuse_files(text: str, tokens: list[Token]) -> None:
    """Refuse what reads files: no snapshot covers them. Raises Refusal."""
    for name, after in itertools.pairwise(tokens):
        if _READS_FILES.fullmatch(name.text) and after.token_type is TokenType.L_PAREN:
            raise Refusal(
                f"{name.text}() reads files, which may change while a statement runs", sqlstate="0A000",
                position=place(text, name.start),
                hint='declare the files in a policy with database = "duckdb:" and source = "…", or load them',
            )  # fmt: skip


def tables_in(query: AdmittedQuery) -> list[tuple[str, str]]:
    """Return the schema ("" where none is written) and name of each table that a query names, but its own WITH."""
    own = {cte.alias for cte in query.tree.find_all(exp.CTE)}
    found = [(node.db, node.name) for node in query.tree.find_all(exp.Table)]
    return list(dict.fromkeys((schema, name) for schema, name in found if schema or name not in own))
