"""The `ledger` key: a file, or a database that several servers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import parse_policy

from .conftest import HEAD, STUDENT

SERVER = "postgresql://keeper@db.example/books?sslmode=verify-full"


def test_a_ledger_on_a_server_has_its_log_beside_the_policy() -> None:
    policy = parse_policy(f'ledger = "{SERVER}"\n' + HEAD + STUDENT, Path("/srv/campus.toml"))
    assert policy.ledger == SERVER
    assert policy.ledger_log == Path("/srv/campus-ledger.log")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://keeper:secret@db.example/books",
        "postgresql://db.example/books?password=secret",
        "postgresql://db.example/books?%70assword=secret",
        "postgresql://db.example/books?sslpassword=secret",
    ],
)
def test_a_password_is_never_in_the_policy(url: str) -> None:
    with pytest.raises(PolicyError, match="ledger: holds a password; take it out") as caught:
        parse_policy(f'ledger = "{url}"\n' + HEAD + STUDENT, Path("/srv/campus.toml"))
    assert "secret" not in str(caught.value)
