"""How much is tried: all of it where the long tests run too, a part of it where they do not (`-m "not long"`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

from dpsql.tests.support.wide import ROOT, read_parts

__all__ = ["first", "long_where", "pytest_collection_modifyitems", "pytest_configure", "some", "tried"]

_T = TypeVar("_T")
_PARAMETERS = type(pytest.param())
_is_short = False


def pytest_configure(config: pytest.Config) -> None:
    """Note which run it is, before a module of tests is read."""
    global _is_short
    _is_short = "not long" in config.option.markexpr


def tried(few: _T, many: _T) -> _T:
    """Return how many are tried of what each run tries the same first ones of: `few` in `make test`, else `many`."""
    return few if _is_short else many


def first(count: int, cases: Iterable[Any]) -> list[Any]:
    """Return the parameters of a test: the first `count` are tried by every run, the others are `long`."""
    return [one if number < count else _as_long(one) for number, one in enumerate(cases)]


def some(cases: Sequence[Any], few: int) -> list[Any]:
    """Return the same where those that every run tries are as far apart as may be, beginning with the first."""
    shown = _spread(len(cases), few)
    return [one if number in shown else _as_long(one) for number, one in enumerate(cases)]


def _spread(count: int, few: int) -> set[int]:
    """Return the places of so few of so many, as far apart as may be, beginning with the first."""
    return {number * count // few for number in range(min(few, count))} if few < count else set(range(count))


def _as_long(case: Any) -> Any:
    if isinstance(case, _PARAMETERS):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.long], id=case.id)
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)


def long_where(is_long: Callable[..., bool]) -> pytest.MarkDecorator:
    """Mark those cases of a product `long` for which a function of some of its parameters, by name, says so."""
    return pytest.mark.long_where.with_args(is_long)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("long_where"):
            given = item.callspec.params  # type: ignore[attr-defined]  # only a test with parameters has it
            if mark.args[0](**{name: given[name] for name in inspect.signature(mark.args[0]).parameters}):
                item.add_marker(pytest.mark.long)
    _leave_wide([item for item in items if item.get_closest_marker("long") is None])


def _leave_wide(items: Sequence[pytest.Item]) -> None:
    """Mark `wide` what `make test` leaves to `make test-wide`, of the cases that are not long."""
    parts = {str(ROOT / file): functions for file, functions in read_parts().items()}
    cases: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        file, function = str(item.path), getattr(item, "originalname", item.name)
        if function in parts.get(file, ()):
            cases.setdefault((file, function), []).append(item)
    for (file, function), every in cases.items():
        shown = _spread(len(every), parts[file][function])
        for number, item in enumerate(every):
            if number not in shown:
                item.add_marker(pytest.mark.wide)
