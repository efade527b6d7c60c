"""Text: Postgres' values for every offset and pattern."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.postprocess import null_on_error
from dpsql.postprocess.null_on_error import MAX_TEXT_BYTES
from dpsql.relation.types import BIGINT, TEXT

from .conftest import Evaluate
from .test_null_on_error_numbers import above, quick

texts = st.one_of(st.none(), st.text(alphabet="ab é%_\\\0x", max_size=8))
counts = st.one_of(
    st.none(), st.integers(-12, 12), st.sampled_from([2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63)])
)


def is_int32(value: int) -> bool:
    return -(2**31) <= value < 2**31


def pg_substring(text: str, start: int, length: int | None) -> str | None:
    if length is not None and length < 0:
        return None
    stop = len(text) + 1 if length is None else start + length
    return "".join(text[i - 1] for i in range(max(start, 1), min(stop, len(text) + 1)))


def pg_left(text: str, count: int) -> str:
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def pg_right(text: str, count: int) -> str:
    return text[max(len(text) - count, 0) :] if count >= 0 else text[-count:]


@quick
@given(st.lists(st.tuples(texts, counts, counts), min_size=1, max_size=60))
def test_parts(evaluate: Evaluate, rows: list[tuple[str | None, int | None, int | None]]) -> None:
    types = [TEXT, BIGINT, BIGINT]
    forms = [
        (null_on_error.substring('"a"', '"b"', '"c"'), pg_substring),
        (null_on_error.substring('"a"', '"b"'), lambda a, b, c: pg_substring(a, b, None)),
        (above("left", '"a"', '"b"'), lambda a, b, c: pg_left(a, b)),
        (above("right", '"a"', '"b"'), lambda a, b, c: pg_right(a, b)),
    ]
    for sql, oracle in forms:
        uses_c = '"c"' in sql
        expected = [
            None if a is None or b is None or not is_int32(b) or (uses_c and (c is None or not is_int32(c)))
            else oracle(a, b, c)
            for a, b, c in rows
        ]  # fmt: skip
        assert evaluate(sql, types, rows) == expected, sql


def pg_like(text: str, pattern: str, escape: str) -> bool | None:
    expression, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            position += 1
            if position == len(pattern):
                return None
            expression += re.escape(pattern[position])
        else:
            expression += {"%": ".*", "_": "."}.get(character, re.escape(character))
        position += 1
    return re.fullmatch(expression, text, re.DOTALL) is not None


@quick
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=60), st.sampled_from(["\\", "x", "%", "_", ""]))
def test_like(evaluate: Evaluate, rows: list[tuple[str | None, str | None]], escape: str) -> None:
    found = evaluate(null_on_error.like('"a"', '"b"', escape=escape), [TEXT, TEXT], rows)
    assert found == [None if a is None or b is None else pg_like(a, b, escape) for a, b in rows]


@pytest.mark.parametrize(
    ("pattern", "answer"), [("ab\\", None), ("\\", None), ("ab\\\\\\", None), ("a%\\b", True)]
)
def test_a_pattern_that_ends_in_an_escape_has_no_answer(
    evaluate: Evaluate, pattern: str, answer: bool | None
) -> None:
    assert evaluate(null_on_error.like('"a"', '"b"'), [TEXT, TEXT], [("ab", pattern)]) == [answer]


def test_like_ignoring_case(evaluate: Evaluate) -> None:
    sql = null_on_error.like('"a"', "'h\\%L%'", ignore_case=True)
    assert evaluate(sql, [TEXT], [("H%llo",), ("Hello",), (None,)]) == [True, False, None]


@pytest.mark.parametrize("escape", ["'", "ab", "\n", "é"])
def test_bad_escapes(escape: str) -> None:
    with pytest.raises(ValueError, match="escape"):
        null_on_error.like("x", "y", escape=escape)


@quick
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=40))
def test_positions_joins_and_trims(evaluate: Evaluate, rows: list[tuple[str | None, str | None]]) -> None:
    present = [None if a is None or b is None else (a, b) for a, b in rows]
    assert evaluate(above("position", '"a"', '"b"'), [TEXT, TEXT], rows) == [
        p and p[0].find(p[1]) + 1 for p in present
    ]
    assert evaluate(null_on_error.concatenate('"a"', '"b"'), [TEXT, TEXT], rows) == [
        p and p[0] + p[1] for p in present
    ]
    for name, oracle in (("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
        expected = [None if a is None else oracle(a, " ") for a, _ in rows]
        assert evaluate(above(name, '"a"'), [TEXT, TEXT], rows) == expected


def test_trim_takes_spaces_alone(evaluate: Evaluate) -> None:
    assert evaluate(above("trim", '"a"'), [TEXT], [(" \t\u00a0 ",)]) == ["\t\u00a0"]


def test_long_concatenations_are_null(evaluate: Evaluate) -> None:
    rows = [("a" * (MAX_TEXT_BYTES // 2),), ("a" * (MAX_TEXT_BYTES // 2 + 1),)]
    found = evaluate(null_on_error.concatenate('"a"', '"a"'), [TEXT], rows)
    assert [text and len(text) for text in found] == [MAX_TEXT_BYTES, None]
