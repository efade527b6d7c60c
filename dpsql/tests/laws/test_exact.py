"""L3: from the clamp to the noise every number is an integer; the order of rows and threads changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.plan.measures.measurements import WEIGHT
from dpsql.tests.support.random_databases import Database, load

from .examples import visit
from .measured import Groups, World, measure_release, parameters_of, world

ROWS = 260_000
FILL = f"""
INSERT INTO visit (person_id, n, big, x, wild, r, d, city, tag, flag, day)
SELECT hash(i) % 5000, (hash(i + 1) % 14)::BIGINT - 5, hash(i + 2) % 1152921504606846976,
       CASE WHEN i % 7 = 0 THEN 1e16 WHEN i % 7 = 1 THEN -1e16 ELSE (hash(i + 3) % 1000) / 300.0 END,
       (hash(i + 4) % 1000) / 7.0, (hash(i + 5) % 100) / 50.0, (hash(i + 6) % 800) / 100.0,
       chr((97 + hash(i + 7) % 5)::INTEGER), chr((97 + hash(i + 8) % 9)::INTEGER), hash(i + 9) % 2 = 0,
       DATE '2020-01-01' + (hash(i + 10) % 400)::INTEGER
FROM range({ROWS}) t(i) ORDER BY hash(i + {{order}})
"""  # fmt: skip
STATEMENTS = (
    "SELECT city, COUNT(*), SUM(x), AVG(d), COUNT(DISTINCT tag) FROM visit GROUP BY city",
    "SELECT tag, COUNT(*) FILTER (WHERE flag), COUNT(*), SUM(big), AVG(r) FROM visit GROUP BY tag",
    "SELECT VAR_POP(x), AVG(big), SUM(x * d), dp_avg_direct(n) FROM visit",
    "SELECT date_trunc('month', day), SUM(sqrt(abs(x))) FROM visit GROUP BY 1",
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("exact")) as made:
        yield made


def all_measures(world: World) -> list[dict[int, Groups]]:
    with world.backend.snapshot() as snapshot:
        return [
            measure_release(release, snapshot) for sql in STATEMENTS for release in world.plan(sql).releases
        ]


def test_neither_order_nor_threads_change_an_integer(large: World) -> None:
    """Several row groups, so that four threads do share the work; sums of ±1e16 would show any float."""
    found = []
    for order, threads in ((1, 1), (2, 4)):
        large.connection.execute("DELETE FROM visit")
        large.connection.execute(FILL.format(order=order))
        large.connection.execute(f"SET threads = {threads}")
        found.append(all_measures(large))
    assert found[0] == found[1]
    assert sum(len(groups) for release in found[0] for groups in release.values()) > 40


def test_sums_are_exact_beyond_doubles(large: World) -> None:
    """An oracle in Python integers: 2^60 - 1 a thousand times."""
    value = 2**60 - 1
    load(large.connection, Database((), tuple(visit(unit, big=str(value)) for unit in range(1000))))
    (release,) = large.plan("SELECT SUM(big) FROM visit").releases
    with large.backend.snapshot() as snapshot:
        assert measure_release(release, snapshot)[0] == {(): (WEIGHT * 1000 * value,)}


def test_values_are_rounded_and_clamped_as_declared(large: World) -> None:
    """d in [0, 5] by 0.01 and n in [-3, 7]: what lies outside counts at the bound, NULL and NaN not at all."""
    cells = ["0.01", "2.50", "9999.99", "-9999.99", None]
    load(large.connection, Database((), tuple(visit(i, d=cell) for i, cell in enumerate(cells))))
    (release,) = large.plan("SELECT SUM(d) FROM visit").releases
    with large.backend.snapshot() as snapshot:
        assert measure_release(release, snapshot)[0] == {(): (WEIGHT * (1 + 250 + 500),)}
    reals = ["nan", "inf", "-inf", "1e308", "-0.0", None]
    load(large.connection, Database((), tuple(visit(i, x=cell) for i, cell in enumerate(reals))))
    (release,) = large.plan("SELECT SUM(x) FROM visit").releases
    lattice = release.measurements[0].lattice
    assert lattice is not None
    with large.backend.snapshot() as snapshot:
        found = measure_release(release, snapshot)[0]
    assert found == {(): (WEIGHT * (2 * lattice.high + lattice.low),)}


def test_scales_and_charges_are_fractions(large: World) -> None:
    for sql in STATEMENTS:
        plan = large.plan(sql)
        for release in plan.releases:
            for number, measurement in enumerate(release.measurements):
                assert type(measurement.sensitivity) is int
                assert type(release.measures[number].scale) is Fraction
                assert type(release.measures[number].epsilon) is Fraction
        assert type(plan.epsilon) is Fraction


def test_no_float_is_made_between_the_clamp_and_the_noise() -> None:
    """The two modules on that way have no float literal, no true division and no float() at all."""
    import ast

    import dpsql.plan.measures.measurements as measurements
    import dpsql.release.privatise as noised

    for module in (noised, measurements):
        assert module.__file__ is not None
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
            assert not (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float"
            )
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                assert "Fraction" in ast.unparse(node), ast.unparse(node)


def test_no_engine_aggregate_runs_on_doubles(large: World) -> None:
    """Every SUM in the printed SQL is over integers or decimals: DuckDB itself says the types."""
    for sql in STATEMENTS:
        for release in large.plan(sql).releases:
            for query in release.queries(tuple(range(len(release.measurements)))):
                assert not re.search(r"\b(AVG|VAR_POP|STDDEV|MEDIAN|RANDOM)\(", query.sql.upper())
                shown = large.connection.execute(
                    f"DESCRIBE {query.sql}", parameters_of(release, query)
                ).fetchall()
                numbers = [row[1] for row in shown if row[0].startswith("m")]
                assert numbers
                assert set(numbers) <= {"BIGINT", "HUGEINT"}


def test_parameters_of_privacy_are_read_exactly(large: World) -> None:
    assert Fraction(Decimal("0.1")) == Fraction(1, 10) != Fraction(0.1)
    assert large.policy.privacy.epsilon == 9999
