"""The policy's part about the server."""

from __future__ import annotations

import pytest

from dpsql.errors import PolicyError

from .conftest import HEAD, STUDENT, policy_from


@pytest.mark.parametrize(
    ("text", "has_grid"),
    [
        ("", True),
        ("[server]\n", True),
        ("[server]\ngrid = true\n", True),
        ("[server]\ngrid = false\n", False),
    ],
)
def test_the_grid(text: str, has_grid: bool) -> None:
    assert policy_from(HEAD + STUDENT + text).server.has_grid is has_grid


def test_the_longest_statement() -> None:
    assert policy_from(HEAD + STUDENT).server.statement_seconds == 600
    assert policy_from(HEAD + STUDENT + "[server]\nstatement_timeout = 30\n").server.statement_seconds == 30


def test_public_statements() -> None:
    usual = policy_from(HEAD + STUDENT).server
    assert (usual.public_seconds, usual.public_rows, usual.public_at_once) == (60, 1_000_000, 1)
    said = "[server]\npublic_seconds = 5\npublic_rows = 10\npublic_at_once = 3\n"
    found = policy_from(HEAD + STUDENT + said).server
    assert (found.public_seconds, found.public_rows, found.public_at_once) == (5, 10, 3)


@pytest.mark.parametrize(
    "text",
    [
        "public_seconds = 61",
        "public_rows = 0",
        "public_rows = 1000001",
        'public_at_once = "one"',
        "statement_timeout = 0",
        "statement_timeout = 601",
        'statement_timeout = "1s"',
        'grid = "off"',
        "grid = 0",
        "gird = false",
        "port = 5433",
    ],
)
def test_what_is_wrong(text: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy_from(HEAD + STUDENT + "[server]\n" + text)
    assert caught.value.message.startswith(f"campus.toml: server.{text.split(' ')[0]}: ")
