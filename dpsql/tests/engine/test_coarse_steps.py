"""A variance over a wide range has a coarse lattice, and EXPLAIN says what that makes of the average beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.engine.notes import bias_notes
from dpsql.policy import load_policy

_POLICY = """
database = "duckdb:wide.duckdb"
ledger = "sqlite:wide-ledger.db"
[privacy]
epsilon = 10
[tables.person]
unit = "id"
[tables.person.columns]
wide = { bounds = [0, 1000000000000] }
real = { bounds = [0, 1000000000000], step = 0.5 }
age = { bounds = [0, 120] }
"""
_SAID = (
    "a variance rounds its values to steps of 65536, for sums and averages of the same values too; "
    "asked for without it, they have steps of "
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with duckdb.connect(str(tmp_path / "wide.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, wide BIGINT, real DOUBLE, age INTEGER)"
        )
    (tmp_path / "wide.toml").write_text(_POLICY)
    open_ledger(load_policy(tmp_path / "wide.toml"), create=True).close()
    with Session.open(tmp_path / "wide.toml") as opened:
        yield opened


@pytest.mark.parametrize(
    ("aggregates", "notes"),
    [
        ("AVG(wide), VARIANCE(wide)", (f"{_SAID}1",)),
        ("SUM(wide), STDDEV(wide)", (f"{_SAID}1",)),
        ("AVG(real), VAR_POP(real)", (f"{_SAID}0.5",)),
        ("AVG(wide), SUM(real)", ()),
        ("AVG(age), VARIANCE(age)", ()),
    ],
)
def test_explain_says_what_a_variance_costs(
    session: Session, aggregates: str, notes: tuple[str, ...]
) -> None:
    explanation = session.explain(f"SELECT {aggregates} FROM person")
    assert bias_notes(explanation.plan) == notes
    assert ("a variance rounds" in explanation.text()) == bool(notes)
