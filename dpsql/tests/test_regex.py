"""A regular expression that is compiled when it is first used."""

from __future__ import annotations

import copy
import re
from importlib import import_module
from pathlib import Path

import pytest

import dpsql
from dpsql import regex

FOLDER = Path(dpsql.__file__).parent
USERS = [
    path.relative_to(FOLDER)
    for path in sorted(FOLDER.rglob("*.py"))
    if "tests" not in path.parts and "regex import regex" in path.read_text(encoding="utf-8")
]


def test_it_is_compiled_at_its_first_use() -> None:
    named = regex.regex(r"(?P<name>\w+)=(\d+)", re.ASCII)
    assert "match" not in vars(named)
    found = named.match("a=12")
    assert found is not None
    assert (found["name"], found[2], named.sub("x", "b=1 c=2")) == ("a", "12", "x x")
    assert vars(named)["match"] == re.compile(r"(?P<name>\w+)=(\d+)", re.ASCII).match


@pytest.mark.parametrize("user", USERS, ids=str)
def test_every_one_of_a_module_can_be_compiled(user: Path) -> None:
    name = ".".join(("dpsql", *user.with_suffix("").parts)).removesuffix(".__init__")
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"an optional part: {error.name}")
    ours = [one for one in vars(module).values() if isinstance(one, type(regex.regex("")))]
    assert ours
    assert all(re.compile(one.pattern, one.flags).groups == one.groups for one in ours)


def test_it_is_copied_before_it_is_compiled_and_after() -> None:
    named = regex.regex("a+", re.ASCII)
    assert copy.copy(named).fullmatch("aa")
    assert named.fullmatch("aa")
    assert copy.copy(named).fullmatch("aa")
