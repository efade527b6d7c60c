"""One warm sealed engine for the tests, and the way they evaluate printed SQL over rows of operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dpsql.postprocess import ReleasedColumn, ReleasedTable, SealedEngine
from dpsql.relation.types import SqlType

Evaluate = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def engine() -> SealedEngine:
    return SealedEngine()


@pytest.fixture(scope="session")
def evaluate(engine: SealedEngine) -> Evaluate:
    """Return a function that evaluates SQL over operands "a", "b", … for each row, in order."""

    def run(sql: str, types: Sequence[SqlType], rows: Sequence[Sequence[Any]]) -> list[Any]:
        columns = [
            ReleasedColumn("abcdef"[index], type_, [row[index] for row in rows])
            for index, type_ in enumerate(types)
        ]
        order = ReleasedColumn("row", SqlType(types[0].kind.BIGINT), list(range(len(rows))))
        table = ReleasedTable("t", (order, *columns))
        return [value for _, value in engine.run(f'SELECT "row", {sql} FROM t ORDER BY "row"', [table]).rows]

    return run
