"""Figures in words and values as text: their examples are what they give."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from dpsql import words
from dpsql.engine import answer


@pytest.mark.parametrize("module", [words, answer], ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed
