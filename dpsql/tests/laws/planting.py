"""Plants a fault in a function's source, in process: for mutants that a wrapper cannot express."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import pytest

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch, function: Callable[..., Any], old: str, new: str) -> None:
    """Replace one piece of a function's source, for all who hold the function, until `patch` is undone.

    The piece must be there exactly once: a fault that no longer fits the code fails here, by name.
    """
    assert isinstance(function, FunctionType)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, f"{function.__qualname__} has {source.count(old)} times: {old}"
    code = compile(f"from __future__ import annotations\n{source.replace(old, new)}", "<planted>", "exec")
    (planted,) = (
        constant
        for constant in code.co_consts
        if isinstance(constant, CodeType) and constant.co_name == function.__name__
    )
    patch.setattr(function, "__code__", planted)
