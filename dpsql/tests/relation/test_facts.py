"""Sizes of texts: every function that may return one has a rule, and no rule says less than what is printed."""

from __future__ import annotations

import itertools

import pytest

from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Call, Expr, Field, IntermediateValue, Literal
from dpsql.relation.facts import LETTER_GROWTH, TEXT_CUT, is_long_number, size_as_text
from dpsql.relation.functions import FUNCTIONS
from dpsql.relation.intervals import Environment, facts_of
from dpsql.relation.types import BIGINT, BOOLEAN, INTEGER, NUMERIC, TEXT, numeric

NAME = Field(TEXT, 0)
BODY = Field(TEXT, 1)
ENV = Environment([Column("name", TEXT, max_length=20), Column("body", TEXT)])
ARGUMENTS = (NAME, Literal(INTEGER, 3), Literal(BOOLEAN, True))


def text(function: str, *args: Expr) -> Call:
    return Call(TEXT, function, args)


def word(value: str) -> Literal:
    return Literal(TEXT, value)


@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.private])
def test_what_may_return_a_text_has_a_rule(name: str) -> None:
    """Whatever the arguments: a function that makes a text of any three of them has a rule."""
    if name == "cast":  # carries its own type
        assert FUNCTIONS[name].size
        return
    for count in (1, 2, 3):
        for args in itertools.product(ARGUMENTS, repeat=count):
            try:
                type_ = FUNCTIONS[name].result(args)
            except (IndexError, ValueError):  # another number of arguments
                continue
            assert type_ != TEXT or FUNCTIONS[name].size


@pytest.mark.parametrize(
    ("expr", "size"),
    [
        (NAME, 20),
        (BODY, TEXT_CUT),
        (word("añ😀"), 3),
        (IntermediateValue(TEXT, 1, None, None), TEXT_CUT),
        (text("concat", NAME, word("ab"), NAME), 42),
        (text("concat_op", BODY, Literal(BIGINT, -7)), TEXT_CUT + 34),
        (text("upper", NAME), 20 * LETTER_GROWTH),
        (text("lower", text("upper", NAME)), 20 * LETTER_GROWTH**2),
        (text("trim", NAME), 20),
        (text("left", BODY, Literal(INTEGER, 5)), 5),
        (text("left", NAME, Literal(INTEGER, 50)), 20),
        (text("substr", NAME, Literal(INTEGER, 5)), 20),
        (text("substr", NAME, Literal(INTEGER, 5), Literal(INTEGER, 2)), 2),
        (text("coalesce", NAME, word("x")), 20),
        (text("coalesce", text("lower", NAME), word("x")), 60),
        (text("case", Literal(BOOLEAN, True), word("abc"), word("x")), 3),
        (text("greatest", NAME, BODY), TEXT_CUT),
        (text("nullif", word("abc"), BODY), 3),
        (text("cast", NAME), 20),
        (text("cast", Field(BIGINT, 0)), 20),
    ],
)
def test_the_size_of_a_text(expr: Expr, size: int) -> None:
    assert facts_of(expr, ENV).size == size


def test_an_open_number_is_cut_as_text() -> None:
    number = Field(NUMERIC, 0)
    assert size_as_text(number, facts_of(number, ENV)) == TEXT_CUT
    assert is_long_number(number)
    assert not is_long_number(Field(numeric(10, 2), 0))


def test_a_length_has_the_size_that_is_read() -> None:
    def high(arg: Expr) -> tuple[object, bool]:
        facts = facts_of(Call(INTEGER, "length", (arg,)), ENV)
        return facts.hi, facts.declared

    assert high(NAME) == (20, True)
    assert high(BODY) == (TEXT_CUT, True)
    assert high(text("concat", BODY, NAME)) == (TEXT_CUT + 20, True)
