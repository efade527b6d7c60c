"""Plants a fault in a function's source, in process: for mutants that a wrapper cannot express."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import pytest

from dpsql.policy import Verify
from dpsql.release import verifying

__all__ = ["plant", "unrefused"]


def unrefused(patch: pytest.MonkeyPatch) -> None:
    """Let plans run that are not verified, until `patch` is undone: the verifier sees many faults before a law does."""
    for engine in verifying.USUAL:
        patch.setitem(verifying.USUAL, engine, Verify.LOG)


def plant(patch: pytest.MonkeyPatch, function: Callable[..., Any], *pieces: tuple[str, str]) -> None:
    """Replace pieces of a function's source, for all who hold the function, until `patch` is undone.

    Each piece must be there exactly once: a fault that no longer fits the code fails here, by name.
    """
    assert isinstance(function, FunctionType)
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in pieces:
        assert source.count(old) == 1, f"{function.__qualname__} has {source.count(old)} times: {old}"
        source = source.replace(old, new)
    unrefused(patch)
    code = compile(f"from __future__ import annotations\n{source}", "<planted>", "exec")
    (planted,) = (
        constant
        for constant in code.co_consts
        if isinstance(constant, CodeType) and constant.co_name == function.__name__
    )
    patch.setattr(function, "__code__", planted)
