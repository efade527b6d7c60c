"""The examples at the head of the printing rules: SQL in, SQL out, as it is printed today."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from dpsql.plan.backend_sql import print_private, print_release, print_source, print_sums, private_forms
from dpsql.postprocess import print_public
from dpsql.postprocess.print_public import PublicPrinter
from dpsql.tests.plan.planned import planned, printed


def backend_sql(sql: str) -> None:
    """Show what the owner's engine runs."""
    print(printed(sql))


def from_(source: str) -> None:
    """Show a source as a count over it reads it."""
    shown = printed(f"SELECT COUNT(*) FROM {source}")
    print(shown[shown.index(" AS one FROM ") + len(" AS one FROM ") : shown.rindex(") AS r")])


def where(condition: str) -> None:
    """Show a filter of people."""
    shown = printed(f"SELECT COUNT(*) FROM person WHERE {condition}")
    print(shown[shown.index(" WHERE ") + len(" WHERE ") : shown.rindex(") AS r")])


def above(sql: str) -> None:
    """Show what the sealed engine runs over releases r0, r1, …."""
    plan = planned(sql)
    numbered = {release.release: (number, release) for number, release in enumerate(plan.releases)}
    print(PublicPrinter(numbered).relation(plan.root))


@pytest.mark.parametrize(
    "module",
    [print_private, private_forms, print_release, print_source, print_sums, print_public],
    ids=lambda module: module.__name__,
)
def test_examples(module: ModuleType) -> None:
    assert module.__doc__ is not None
    shown = {"backend_sql": backend_sql, "from_": from_, "where": where, "above": above}
    example = doctest.DocTestParser().get_doctest(module.__doc__, shown, module.__name__, module.__file__, 0)
    assert example.examples
    failures: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=failures.append)
    assert not failures, "".join(failures)
