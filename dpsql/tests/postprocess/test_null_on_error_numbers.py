"""Numbers: the printed forms agree with Postgres' arithmetic, and are NULL where Postgres raises."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsql.postprocess import ReleasedColumn, ReleasedTable, SealedEngine, null_on_error
from dpsql.postprocess.print_calls import CALLS
from dpsql.relation.expressions import Call
from dpsql.relation.types import BIGINT, DOUBLE, INTEGER, NUMERIC, REAL, SMALLINT, SqlType

from .conftest import Evaluate

quick = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)

LIMITS = {BIGINT: 2**63, INTEGER: 2**31, SMALLINT: 2**15}
EDGES = [
    0,
    1,
    -1,
    2,
    5,
    10,
    -7,
    2**15,
    -(2**15),
    2**31 - 1,
    -(2**31),
    2**32,
    2**53 + 1,
    2**62,
    2**63 - 1,
    -(2**63),
]
FLOAT_EDGES = [
    0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 2.675, 1.005, 0.1, 1e-5, 5e-324, 1e15 + 0.5, 4503599627370495.5,
    2.0**53, 1e17, 1e22, 1e300, -1e300, 1.7976931348623157e308, math.inf, -math.inf, math.nan, 99999.995,
    0.49999999999999994, -0.5, 123456789.005, 1e-300,
]  # fmt: skip

wide_integers = st.one_of(
    st.none(), st.sampled_from(EDGES), st.integers(-50, 50), st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**63, -(2**70), 2**125, -(2**126)]),
)  # fmt: skip
floats = st.one_of(
    st.none(), st.sampled_from(FLOAT_EDGES), st.floats(), st.decimals(-(10**6), 10**6, places=3).map(float)
)


def in_range(value: int | None, limit: int) -> int | None:
    return value if value is not None and -limit <= value < limit else None


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def total(formula: Callable[..., float]) -> Callable[..., float | None]:
    """Return `formula` over floats, None for what is none, infinite or undefined."""

    def evaluate(*operands: float | None) -> float | None:
        if any(operand is None for operand in operands):
            return None
        try:
            result = formula(*operands)
        except (ArithmeticError, ValueError):
            return None
        return None if isinstance(result, complex) else finite(result)

    return evaluate


def assert_close(found: list[Any], expected: list[Any], operands: list[Any], tolerance: float = 0.0) -> None:
    for given_row, value, wanted in zip(operands, found, expected, strict=True):
        if value is None or wanted is None:
            assert value is wanted, f"{given_row}: {value} is not {wanted}"
        else:
            assert math.isclose(value, wanted, rel_tol=tolerance), f"{given_row}: {value} is not {wanted}"


def above(name: str, *args: str) -> str:
    """Return the SQL of a function, from its row, over printed arguments."""
    return CALLS[name](Call(DOUBLE, name, ()), list(args))


INTEGER_FORMS: list[tuple[Callable[[SqlType], str], Callable[[int, int], int]]] = [
    (lambda t: null_on_error.arithmetic("+", '"a"', '"b"', t), lambda a, b: a + b),
    (lambda t: null_on_error.arithmetic("-", '"a"', '"b"', t), lambda a, b: a - b),
    (lambda t: null_on_error.arithmetic("*", '"a"', '"b"', t), lambda a, b: a * b),
    (lambda t: null_on_error.divide('"a"', '"b"', t), lambda a, b: int(Fraction(a, b))),
    (lambda t: null_on_error.modulo('"a"', '"b"', t), lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1)),
    (lambda t: null_on_error.negate('"a"', t), lambda a, b: -a),
    (lambda t: null_on_error.absolute('"a"', t), lambda a, b: abs(a)),
]  # fmt: skip


@quick
@given(st.lists(st.tuples(wide_integers, wide_integers), min_size=1, max_size=60))
def test_integers(evaluate: Evaluate, rows: list[tuple[int | None, int | None]]) -> None:
    for form, oracle in INTEGER_FORMS:
        uses_both = '"b"' in form(BIGINT)
        for type_, limit in LIMITS.items():
            expected: list[int | None] = []
            for a, b in rows:
                small_a, small_b = in_range(a, 2**63), in_range(b, 2**63) if uses_both else 1
                try:
                    value = None if small_a is None or small_b is None else oracle(small_a, small_b)
                except ZeroDivisionError:
                    value = None
                expected.append(in_range(value, limit))
            assert evaluate(form(type_), [BIGINT, BIGINT], rows) == expected, form(type_)


FLOAT_FORMS: list[tuple[str, Callable[..., float], float]] = [
    (null_on_error.arithmetic("+", '"a"', '"b"', DOUBLE), lambda a, b: a + b, 0),
    (null_on_error.arithmetic("-", '"a"', '"b"', NUMERIC), lambda a, b: a - b, 0),
    (null_on_error.arithmetic("*", '"a"', '"b"', DOUBLE), lambda a, b: a * b, 0),
    (null_on_error.divide('"a"', '"b"', DOUBLE), lambda a, b: a / b, 0),
    (null_on_error.modulo('"a"', '"b"', NUMERIC), lambda a, b: math.fmod(a, b), 0),
    (null_on_error.negate('"a"', DOUBLE), lambda a, b: -a, 0),
    (null_on_error.absolute('"a"', DOUBLE), lambda a, b: abs(a), 0),
    (above("power", '"a"', '"b"'), lambda a, b: a**b, 1e-12),
    (above("sqrt", '"a"'), lambda a, b: math.sqrt(a), 1e-15),
    (above("ln", '"a"'), lambda a, b: math.log(a), 1e-12),
    (above("log", '"a"'), lambda a, b: math.log10(a), 1e-12),
    (above("exp", '"a"'), lambda a, b: math.exp(a), 1e-12),
    (above("floor", '"a"'), lambda a, b: float(np.floor(a)), 0),
    (above("ceil", '"a"'), lambda a, b: float(np.ceil(a)), 0),
    (null_on_error.round_half_even('"a"'), lambda a, b: float(np.rint(a)), 0),
    (null_on_error.truncate('"a"'), lambda a, b: float(np.trunc(a)), 0),
]


@quick
@given(st.lists(st.tuples(floats, floats), min_size=1, max_size=60))
def test_doubles(evaluate: Evaluate, rows: list[tuple[float | None, float | None]]) -> None:
    operands = [(finite(a), finite(b)) for a, b in rows]
    for sql, formula, tolerance in FLOAT_FORMS:
        both = '"b"' in sql
        expected = [total(formula)(a, b if both else 1.0) for a, b in operands]
        assert_close(evaluate(sql, [DOUBLE, DOUBLE], rows), expected, [(sql, row) for row in rows], tolerance)


@quick
@given(st.lists(st.tuples(floats, floats), min_size=1, max_size=40))
def test_single_precision(evaluate: Evaluate, rows: list[tuple[float | None, float | None]]) -> None:
    def single(value: float | None) -> float | None:
        with np.errstate(over="ignore"):
            return None if value is None else finite(float(np.float32(value)))

    expected = []
    for a, b in rows:
        small_a, small_b = single(finite(a)), single(finite(b))
        expected.append(None if small_a is None or small_b is None else single(finite(small_a * small_b)))
    found = evaluate(null_on_error.arithmetic("*", '"a"', '"b"', REAL), [REAL, REAL], rows)
    assert_close(found, expected, rows)


@quick
@given(st.lists(floats, min_size=1, max_size=60), st.integers(-8, 37))
def test_numeric_rounding_reads_the_decimal_text(
    evaluate: Evaluate, values: list[float | None], places: int
) -> None:
    wide, unit = Context(prec=1000), Decimal(1).scaleb(-places)
    for sql, rounding in (
        (null_on_error.round_half_away('"a"', places), ROUND_HALF_UP),
        (null_on_error.truncate('"a"', places), ROUND_DOWN),
    ):
        expected = [
            None if finite(v) is None else float(Decimal(repr(v)).quantize(unit, rounding, wide))
            for v in values
        ]
        tolerance = 0.0 if places >= 0 else 1e-15
        assert_close(
            evaluate(sql, [NUMERIC], [(v,) for v in values]), expected, [(sql, v) for v in values], tolerance
        )


@pytest.mark.parametrize(
    ("value", "places", "rounded"),
    [
        (2.675, 2, 2.68), (-2.675, 2, -2.68), (1.005, 2, 1.01), (2.5, 0, 3.0), (-0.5, 0, -1.0),
        (0.49999999999999994, 0, 0.0), (1250.0, -2, 1300.0), (123.0, -400, 0.0), (1e300, 2, 1e300),
        (0.1, 400, 0.1), (1e-30, 35, 1e-30), (4.056031614710721e-20, 23, 4.056e-20),
        (8.438909503759644e-185, 23, 0.0), (8.4e-185, 2, 0.0), (5e-36, 35, 1e-35),
    ],
)  # fmt: skip
def test_numeric_ties(evaluate: Evaluate, value: float, places: int, rounded: float) -> None:
    assert evaluate(null_on_error.round_half_away('"a"', places), [NUMERIC], [(value,)]) == [rounded]


@pytest.mark.parametrize(("value", "rounded"), [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-2.5, -2.0)])
def test_double_ties(evaluate: Evaluate, value: float, rounded: float) -> None:
    assert evaluate(null_on_error.round_half_even('"a"'), [DOUBLE], [(value,)]) == [rounded]


AGGREGATES = [
    ("sum", BIGINT), ("sum", INTEGER), ("sum", DOUBLE), ("sum", NUMERIC), ("sum", REAL), ("avg", BIGINT),
    ("avg", DOUBLE), ("stddev_samp", DOUBLE), ("stddev_pop", BIGINT), ("var_samp", DOUBLE),
    ("var_pop", NUMERIC),
]  # fmt: skip


@quick
@given(st.lists(st.tuples(wide_integers, floats), max_size=40))
@pytest.mark.parametrize("tail", ["", " OVER ()", ' OVER (ORDER BY "row")', ' FILTER (WHERE "row" > 3)'])
def test_aggregates_never_raise(
    engine: SealedEngine, tail: str, rows: list[tuple[int | None, float | None]]
) -> None:
    columns = (
        ReleasedColumn("row", BIGINT, np.arange(len(rows))),
        ReleasedColumn("i", BIGINT, [i for i, _ in rows]),
        ReleasedColumn("f", DOUBLE, [f for _, f in rows]),
    )
    calls = [
        null_on_error.aggregate(name, '"i"' if type_.is_integer else '"f"', type_, tail)
        for name, type_ in AGGREGATES
    ]
    result = engine.run(f"SELECT {', '.join(calls)} FROM t", [ReleasedTable("t", columns)])
    values = [value for row in result.rows for value in row if isinstance(value, float)]
    assert all(map(math.isfinite, values))


def test_aggregates_have_postgres_values(engine: SealedEngine) -> None:
    table = ReleasedTable(
        "t", (ReleasedColumn("x", BIGINT, [1, 2, None, 6]), ReleasedColumn("f", DOUBLE, [1e308] * 4))
    )
    calls = [null_on_error.aggregate(*call) for call in (
        ("sum", '"x"', BIGINT), ("sum", '"x"', INTEGER), ("avg", '"x"', BIGINT), ("var_samp", '"x"', BIGINT),
        ("stddev_pop", '"x"', BIGINT), ("sum", '"f"', DOUBLE), ("var_pop", '"f"', DOUBLE),
    )]  # fmt: skip
    row = engine.run(f"SELECT {', '.join(calls)} FROM t", [table]).rows[0]
    assert row == (9.0, 9, 3.0, 7.0, pytest.approx(math.sqrt(14 / 3)), None, 0.0)
    assert isinstance(row[0], float)
    assert isinstance(row[1], int)


def test_nested_forms_stay_small_and_take_windows_and_subqueries(engine: SealedEngine) -> None:
    """Each form prints its operand once, so that depth costs nothing; TRY would refuse these operands."""
    table = ReleasedTable("t", (ReleasedColumn("x", BIGINT, [4]),))
    sql = '(SELECT max("x") FROM t) + sum("x") OVER ()'
    for _ in range(6):
        for wrap in (
            lambda x: above("nullif", x, "-1"),
            lambda x: null_on_error.arithmetic("+", x, "1", BIGINT),
            lambda x: null_on_error.divide(x, "1", DOUBLE),
            lambda x: null_on_error.round_half_away(x, 2),
            lambda x: above("sqrt", above("power", x, "2")),
        ):
            sql = wrap(sql)
            assert sql.count("SELECT") == 1
    assert "NULLIF" not in sql.upper()
    assert engine.run(f"SELECT {sql} FROM t", [table]).rows == [(14.0,)]


@pytest.mark.parametrize(("values", "answer"), [([], None), ([5], 5), ([None], None), ([5, 5], None)])
def test_scalar_subquery(engine: SealedEngine, values: list[int | None], answer: int | None) -> None:
    table = ReleasedTable("t", (ReleasedColumn("x", BIGINT, values),))
    assert engine.run(f"SELECT {null_on_error.scalar_subquery('SELECT x FROM t')}", [table]).rows == [
        (answer,)
    ]


@pytest.mark.parametrize(("a", "b", "value"), [(1, 1, None), (1, 2, 1), (None, 1, None), (1, None, 1)])
def test_nullif(evaluate: Evaluate, a: int | None, b: int | None, value: int | None) -> None:
    assert evaluate(above("nullif", '"a"', '"b"'), [BIGINT, BIGINT], [(a, b)]) == [value]


def test_greatest_and_least_skip_nulls_as_in_postgres(evaluate: Evaluate) -> None:
    rows = [(1, None), (None, None), (1, 2)]
    assert evaluate('greatest("a", "b")', [BIGINT, BIGINT], rows) == [1, None, 2]
    assert evaluate('least("a", "b")', [BIGINT, BIGINT], rows) == [1, None, 1]


def test_unknown_forms_are_errors() -> None:
    with pytest.raises(ValueError, match="arithmetic"):
        null_on_error.arithmetic("^", "1", "2", BIGINT)
    with pytest.raises(ValueError, match="aggregate"):
        null_on_error.aggregate("string_agg", "1", BIGINT)


def test_integers_beyond_all_types_are_doubles_and_never_raise(evaluate: Evaluate) -> None:
    rows = [(2**200, 3), (-(2**2000), 0), (None, 1), (7, 2)]
    for form, _ in INTEGER_FORMS:
        assert evaluate(form(BIGINT), [BIGINT, BIGINT], rows)[:3] == [None] * 3
    assert evaluate(null_on_error.divide('"a"', '"b"', DOUBLE), [BIGINT, BIGINT], rows) == [
        2.0**200 / 3,
        None,
        None,
        3.5,
    ]
