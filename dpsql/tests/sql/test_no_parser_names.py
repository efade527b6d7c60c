"""No refusal names a class of the parser's: over all its kinds of nodes, and over all functions that it knows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from dpsql.errors import Refusal
from dpsql.sql.statement import ADMITTED, admit, parse_statement
from dpsql.sql.text import _SAID

from .campus import relation


def _is_made(kind: object) -> bool:
    """Say whether it is a class of which there are nodes; some are traits of others alone."""
    try:
        return isinstance(kind, type) and issubclass(kind, exp.Expr) and kind is not exp.Expr and bool(kind())
    except TypeError:
        return False


_KINDS = [kind for kind in vars(exp).values() if _is_made(kind)]
_OF_OURS = {word for said in _SAID.values() for word in re.findall("[A-Z]{3,}", said)}
_NAMES = (
    {kind.key.upper() for kind in _KINDS}
    - _OF_OURS
    - {"SELECT", "FROM", "WHERE", "GROUP", "ORDER", "EXISTS", "ALL"}
)
_ARGUMENTS = ("", "name", "name, 'a'", "born, 3, 'a'", "DISTINCT name", "name ORDER BY name", "*")


def _said(message: str, text: str) -> Iterator[str]:
    """Yield the words of a message that are the parser's and not the statement's."""
    for word in re.findall(r"\b[A-Z]{3,}\b", message):
        if word in _NAMES and not re.search(rf"\b{word}\b", text, re.IGNORECASE):
            yield word


def _message(tree: exp.Expr, text: str) -> str:
    """Return why a tree is refused, "" where it is not."""
    try:
        admit(tree, text)
    except Refusal as refusal:
        return refusal.message
    return ""


def _message_of(text: str) -> str:
    try:
        parse_statement(text)
        relation(text)
    except Refusal as refusal:
        return refusal.message
    return ""


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.__name__)
def test_no_kind_of_node_is_named(kind: type[exp.Expr]) -> None:
    text = "SELECT x"
    node = kind(**{name: exp.column("x") for name, needed in kind.arg_types.items() if needed})
    message = _message(exp.Select(expressions=[node]), text)
    assert message or kind in ADMITTED
    assert list(_said(message, text)) == []
    assert kind.__name__ not in message.split()


@pytest.mark.parametrize("name", sorted(Postgres.Parser.FUNCTIONS))
def test_no_function_is_called_otherwise_than_it_was_written(name: str) -> None:
    for arguments in _ARGUMENTS:
        call = f"{name}({arguments})"
        for text in (f"SELECT COUNT(*) FROM student WHERE {call} IS NULL", f"SELECT {call} FROM student"):
            message = _message_of(text)
            assert list(_said(message, text)) == [], (message, text)
