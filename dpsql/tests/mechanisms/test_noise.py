"""Noise as the engine sees it, and law L8 over the source text of the package."""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpsql.mechanisms
from dpsql.mechanisms import OS_RANDOM, Laplace, Noise, SampledNoise
from dpsql.testing.injected_noise import SeededSource, ZeroNoise

_ROOT = Path(dpsql.mechanisms.__file__).parent
_MODULES = sorted(_ROOT.rglob("*.py"))


def test_noise_comes_from_the_operating_system_unless_told_otherwise() -> None:
    assert SampledNoise().source is OS_RANDOM
    first, second = (SampledNoise().draw(Laplace(Fraction(10**9)), 50) for _ in range(2))
    assert first.tolist() != second.tolist()


def test_noise_can_be_injected_in_process() -> None:
    same = [SampledNoise(SeededSource(1)).draw(Laplace(Fraction(20)), 50).tolist() for _ in range(2)]
    assert same[0] == same[1]
    nothing: Noise = ZeroNoise()
    zeros = nothing.draw(Laplace(Fraction(20)), 3)
    assert zeros.tolist() == [0, 0, 0]
    assert zeros.dtype == np.int64


def test_a_seeded_source_does_not_repeat_itself() -> None:
    source = SeededSource(1)
    assert source.random_bytes(16) != source.random_bytes(16)


@pytest.mark.parametrize("path", _MODULES, ids=lambda path: path.name)
def test_nothing_can_make_the_noise_predictable(path: Path) -> None:
    """No module reads the environment, takes a seed, or knows another generator than `os.urandom`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imports |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not names & {"environ", "getenv", "seed", "default_rng", "random", "RandomState", "Generator"}
    assert not {name.split(".")[0] for name in imports} & {"random", "secrets", "time", "testing"}
    if path.name != "uniform.py":
        assert "os" not in imports


@pytest.mark.parametrize("path", _MODULES, ids=lambda path: path.name)
def test_the_package_knows_nothing_above_it(path: Path) -> None:
    """Its imports are its own modules, errors and records, the standard library and numpy."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        above = node.level - len(path.relative_to(_ROOT).parts)
        if above == 1:
            assert node.module in {"errors", "records"}
        assert above <= 1
        if node.level:
            assert not (node.module or "").startswith("dpsql")
