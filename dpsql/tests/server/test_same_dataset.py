"""A policy that is read anew while the server runs may not mean other data, nor another promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import Policy, parse_policy
from dpsql.server.database import _check_same_dataset

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 10
{more}
[tables.person]
unit = "id"
"""


def policy(folder: Path, more: str = "") -> Policy:
    return parse_policy(POLICY.format(more=more), folder / "people.toml")


@pytest.mark.parametrize("more", ["together = 4", 'neighbours = "replace-one"'])
def test_another_promise_is_refused(tmp_path: Path, more: str) -> None:
    with pytest.raises(PolicyError, match="which takes a new ledger"):
        _check_same_dataset(policy(tmp_path), policy(tmp_path, more))
    with pytest.raises(PolicyError, match="which takes a new ledger"):
        _check_same_dataset(policy(tmp_path, more), policy(tmp_path))


@pytest.mark.parametrize("more", ["", "delta = 1e-6", "together = 1", 'neighbours = "add-remove"'])
def test_the_same_promise_in_other_words_is_taken(tmp_path: Path, more: str) -> None:
    _check_same_dataset(policy(tmp_path), policy(tmp_path, more))
