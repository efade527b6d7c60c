"""The tests of law L10 have power: each turns red when a size is not enforced, forgotten or claimed too small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.errors import EngineFailure
from dpsql.plan.privacy import derived
from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Call
from dpsql.relation.facts import ONE, Facts, read_length
from dpsql.relation.functions import FUNCTIONS
from dpsql.tests.support.random_growing_texts import SCHEMA, load_extreme, policy_of
from dpsql.tests.support.random_joins import SCHEMA as JOINS
from dpsql.tests.support.random_joins import policy_of as policy_of_joins
from dpsql.tests.support.random_joins import without

from .measured import World, world
from .test_growth import is_refused, nested, run, watch_in_duckdb, watched
from .test_neighbours_joined import HEAVY, check

Patch = pytest.MonkeyPatch

__all__ = ["watched"]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("growth")
    with world(folder, policy=policy_of(folder), schema=SCHEMA) as made:
        load_extreme(made.connection)
        watch_in_duckdb(made.connection)
        yield made


LONG_BODY = "SELECT COUNT(*) FROM story WHERE concat(body, body) > 'a'"
FACTOR = "SELECT COUNT(*) FROM story WHERE concat(title, title, title) > 'a'"
UNION = (
    "SELECT COUNT(*) FROM (SELECT person_id, upper(body) AS n FROM story UNION ALL SELECT person_id, 'x' FROM story) t "
    "WHERE n > 'a'"
)
OUTPUT = "SELECT COUNT(*) FROM (SELECT person_id, MAX(concat(title, title)) AS n FROM story GROUP BY 1) t WHERE n > 'a'"


def change(monkeypatch: Patch, name: str, **cells: Any) -> None:
    """Put other cells into a function's row."""
    monkeypatch.setitem(FUNCTIONS, name, replace(FUNCTIONS[name], **cells))


@pytest.mark.parametrize("sql", [LONG_BODY, FACTOR, UNION, OUTPUT])
def test_the_law_holds_without_a_mutant(grown: World, sql: str) -> None:
    assert run(grown, sql)


def test_leave_the_cut_out(grown: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr("dpsql.plan.dialects.dialect.Dialect.cut", lambda self, sql, most: sql)
    with pytest.raises(EngineFailure):
        run(grown, LONG_BODY)


def test_forget_a_part_of_what_is_joined(grown: World, monkeypatch: Patch) -> None:
    change(monkeypatch, "concat", size=lambda args, call: args[0].size)
    with pytest.raises(EngineFailure):
        run(grown, FACTOR)


def test_take_the_last_side_of_a_union(grown: World, monkeypatch: Patch) -> None:
    original = derived._merge

    def of_the_last(options: Sequence[Column]) -> Column:
        merged = original(options)
        if merged.facts is None:
            return merged
        return replace(merged, facts=replace(merged.facts, size=read_length(options[-1])))

    monkeypatch.setattr(derived, "_merge", of_the_last)
    with pytest.raises(EngineFailure):
        run(grown, UNION)


def test_begin_anew_at_the_output_of_a_subquery(grown: World, monkeypatch: Patch) -> None:
    original = derived.facts_of

    def forgotten(*args: Any) -> Facts:
        return replace(original(*args), size=1)

    monkeypatch.setattr(derived, "facts_of", forgotten)
    assert not is_refused(grown, nested("max", 6))
    with pytest.raises(EngineFailure):
        run(grown, OUTPUT)


def test_leave_the_limit_out(grown: World, monkeypatch: Patch) -> None:
    assert is_refused(grown, nested("max", 6))
    monkeypatch.setattr("dpsql.relation.facts.MAX_TEXT", 10**12)
    monkeypatch.setattr("dpsql.relation.facts.MAX_ROW_BYTES", 10**12)
    assert not is_refused(grown, nested("max", 6))


def test_a_text_without_a_rule_is_refused(grown: World, monkeypatch: Patch) -> None:
    change(monkeypatch, "concat", size=None)
    assert not run(grown, LONG_BODY)


# --- the final clamp is there whatever an interval rule says (functions.row, house rule 5) -------------------

DOUBLED = "SELECT SUM(v) FROM (SELECT person_id, MAX(n * 2) AS v FROM note GROUP BY person_id) t"


def test_a_wrong_interval_rule_moves_no_sum_further(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: Patch
) -> None:
    def wrong(args: list[Facts], call: Call) -> Facts:
        return Facts(Fraction(0), ONE, ONE, True, None, True)

    folder = tmp_path_factory.mktemp("wrong")
    with world(folder, policy=policy_of_joins(folder), schema=JOINS) as made:
        change(monkeypatch, "mul", interval=wrong)
        assert check(made, DOUBLED, HEAVY, [without(HEAVY, 1)]) == 1
        monkeypatch.setattr("dpsql.plan.dialects.dialect.Dialect.clamp", lambda self, sql, lo, hi, **_: sql)
        with pytest.raises(AssertionError):
            check(made, DOUBLED, HEAVY, [without(HEAVY, 1)])
