"""The table of aggregates: what a row needs and nobody has is an error at import."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from dpsql.errors import Refusal
from dpsql.relation import aggregates
from dpsql.relation.aggregates import AGGREGATES, ROWS, Aggregate, Asks, check_printers
from dpsql.relation.types import BIGINT
from dpsql.tests.plan.planned import planned


def test_names_stand_once() -> None:
    assert len(AGGREGATES) == len(ROWS)
    nodes = [node for row in ROWS for node in row.nodes]
    assert len(nodes) == len(set(nodes))


def test_what_asks_for_sums_says_of_what() -> None:
    for row in ROWS:
        assert (row.asks is Asks.SUMS) == bool(row.needs.powers)
        if row.needs.powers:
            assert (len(row.needs.powers) == 2) == row.is_paired


def test_a_row_without_its_printer_is_an_error_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is a printer of no row; a shorthand is written out, and needs none."""
    toy = Aggregate("toy", lambda argument: BIGINT)
    short = Aggregate("short", toy.result, (exp.CountIf,), shorthand="count(a)")
    monkeypatch.setattr(aggregates, "ROWS", (toy, short))
    check_printers(["toy"], lambda row: not row.above)
    with pytest.raises(ImportError, match="toy"):
        check_printers([], lambda row: not row.above)
    with pytest.raises(ImportError, match="other"):
        check_printers(["toy", "other"], lambda row: not row.above)


@pytest.mark.parametrize(
    "written",
    [
        {"names": ("short",)},
        {"nodes": (exp.CountIf,), "names": ("short",)},
        {"nodes": (exp.Corr,), "args": ("this", "expression")},
    ],
)
def test_a_shorthand_is_of_a_nodes_one_argument(written: dict[str, Any]) -> None:
    """The binder reads it of a node: a name's would be met at the first statement, as an AttributeError."""
    with pytest.raises(ImportError, match="shorthand of short"):
        Aggregate("short", lambda argument: BIGINT, **written, shorthand="count(a)")


@pytest.mark.parametrize(
    ("call", "code", "column"),
    [
        ("COUNT_IF(days)", "42804", 17),
        ("COUNT_IF(COUNT(*) > 1)", "42803", 17),
        ("COUNT_IF(nothing)", "42703", 17),
    ],
)
def test_a_shorthand_fails_where_it_was_written(call: str, code: str, column: int) -> None:
    with pytest.raises(Refusal) as refusal:
        planned(f"SELECT {call} FROM visit")
    assert refusal.value.sqlstate == code
    assert refusal.value.position is not None
    assert refusal.value.position.column == column


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("COUNT_IF(urgent)", "COUNT(*) FILTER (WHERE urgent)"),
        ("COUNT_IF(days > 3) FILTER (WHERE urgent)", "COUNT(*) FILTER (WHERE days > 3 AND urgent)"),
    ],
)
def test_a_shorthand_is_what_it_stands_for(short: str, long: str) -> None:
    one, other = (planned(f"SELECT {call} FROM visit").releases[0] for call in (short, long))
    assert one.queries((0,)) == other.queries((0,))
