"""Forms that are short for others: bound as what they mean, each part once, with errors at the form."""

from __future__ import annotations

import doctest
import time
from types import ModuleType

import pytest
from sqlglot import exp

from dpsql.errors import Refusal
from dpsql.relation.expressions import Call, walk
from dpsql.relation.functions import ROWS, arrays, comparisons
from dpsql.sql import bind_forms, bind_moments
from dpsql.sql.statement import expression_of

from .campus import expression, refused


def means(written: str, meaning: str) -> None:
    """Compare what a form is bound to with what it means, written out."""
    assert expression(written) == expression(meaning), written


@pytest.mark.parametrize(
    "module", [arrays, comparisons, bind_forms, bind_moments], ids=lambda module: module.__name__
)
def test_examples(module: ModuleType) -> None:
    assert module.__doc__ is not None
    example = doctest.DocTestParser().get_doctest(
        module.__doc__, {"means": means}, module.__name__, module.__file__, 0
    )
    assert example.examples
    failures: list[str] = []
    doctest.DocTestRunner().run(example, out=failures.append)
    assert not failures, "".join(failures)


def test_an_example_can_fail() -> None:
    with pytest.raises(AssertionError):
        means("gpa BETWEEN 1 AND 3", "gpa > 1 AND gpa <= 3")


def test_a_meaning_is_read_once() -> None:
    assert expression_of("this >= low AND this <= high") is expression_of("this >= low AND this <= high")
    for syntax in (
        syntax for row in ROWS for syntax in row.syntax if isinstance(syntax.means, str) and syntax.means
    ):
        named = {column.name for column in expression_of(syntax.means).find_all(exp.Column)}
        assert named == set(syntax.args), syntax


@pytest.mark.parametrize(
    "form",
    [
        "({} BETWEEN SYMMETRIC 1 AND 2)::integer",
        "({} BETWEEN 1 AND 2)::integer",
        "CASE {} WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE 4 END",
        "({} IN (enrolled, 2, 3))::integer",
        "extract(year FROM age(DATE '2020-01-01', DATE '2000-01-01' + {}::integer))",
    ],
)
def test_forms_inside_each_other_are_few(form: str) -> None:
    """Each writes a part out several times, so that a short statement would become one without end."""
    text = "enrolled"
    for _ in range(13):
        text = form.format(text)
    started = time.process_time()
    with pytest.raises(Refusal, match="too complex"):
        expression(text)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("SELECT 1 FROM student WHERE gpa > 1 AND name BETWEEN 3 AND major", "42883", "name"),
        ("SELECT 1 FROM student WHERE gpa > 1 AND name IS DISTINCT FROM gpa", "42883", "name"),
        ("SELECT gpa, mod(name, 3) FROM student", "42883", "mod(name,"),
        ("SELECT gpa, extract(year FROM age(gpa)) FROM student", "42883", "age(gpa))"),
        ("SELECT gpa, generate_subscripts(name, 1) FROM student", "42883", "generate_subscripts(name,"),
        ("SELECT 1 FROM student WHERE nobody BETWEEN 1 AND 2", "42703", "nobody"),
    ],
)
def test_errors_point_into_the_statement(text: str, code: str, at: str) -> None:
    assert refused(text) == (code, at)


def test_errors_call_the_form_by_its_name() -> None:
    for text, said in (("name BETWEEN 3 AND 4", "BETWEEN"), ("ARRAY[1] <@ ARRAY['a']", "<@")):
        with pytest.raises(Refusal, match=f": {said} does not take"):
            expression(text)


def test_positions_are_those_of_the_form() -> None:
    bound = expression("gpa BETWEEN 1 AND 3")
    found = [part.position for part in walk(bound) if isinstance(part, Call)]
    assert [None if one is None else one.offset for one in found] == [len("SELECT ")] * len(found)
