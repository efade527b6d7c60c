"""Puts a mutant into a process: into the functions of a module that is there already, or into its source as it comes.

Replacing the code of functions needs no second import, so that one process that has collected the tests can be forked
for each mutant. What runs while the module is imported (constants, tables, fields) is put in by a hook before that.
"""

from __future__ import annotations

import ast
import gc
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from inspect import CO_OPTIMIZED
from types import CodeType, FunctionType, ModuleType

from dpsql.tests.mutants.derive import ROOT, Mutant, mutated

__all__ = ["Functions", "NotPlanted", "import_mutated", "module_name"]


class NotPlanted(Exception):
    """The mutant cannot be put into what is there: its functions are gone, or close over other names."""


def module_name(path: str) -> str:
    """Return a module's name for its path within the package."""
    return "dpsql." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Functions:
    """All functions of a module that is imported."""

    def __init__(self, path: str) -> None:
        file = str(ROOT / path)
        self._path, self._file = path, file
        self._found: dict[tuple[str, int, bytes], list[FunctionType]] = {}
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename == file:
                self._found.setdefault(_key(one.__code__), []).append(one)
        self._original = _functions(_compiled(ast.parse((ROOT / path).read_text()), file))

    def plant(self, mutant: Mutant) -> None:
        """Give the functions the mutant's code, for good. Raises NotPlanted."""
        changed = _functions(_compiled(mutated(self._path, mutant.place), self._file))
        if len(changed) != len(self._original):
            raise NotPlanted(mutant.name)
        pairs = [(old, new) for old, new in zip(self._original, changed, strict=True) if old != new]
        if not pairs:
            raise NotPlanted(mutant.name)
        for old, new in pairs:
            holders = self._found.get(_key(old), [])
            if not holders or old.co_freevars != new.co_freevars:
                raise NotPlanted(mutant.name)
            for holder in holders:
                holder.__code__ = new


def _key(code: CodeType) -> tuple[str, int, bytes]:
    return code.co_qualname, code.co_firstlineno, code.co_code


def _compiled(tree: ast.Module, file: str) -> CodeType:
    return compile(tree, file, "exec", dont_inherit=True)


def _functions(code: CodeType) -> list[CodeType]:
    """Return the code of functions of a module and of its classes, those inside of functions left out."""
    return list(_in_bodies(code))


def _in_bodies(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & CO_OPTIMIZED:
                yield constant
            else:
                yield from _in_bodies(constant)


class _Hook(MetaPathFinder, Loader):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != module_name(self._mutant.path):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        return importlib.util.spec_from_file_location(
            fullname,
            spec.origin,
            loader=self,
            submodule_search_locations=spec.submodule_search_locations,
        )

    def exec_module(self, module: ModuleType) -> None:
        tree = mutated(self._mutant.path, self._mutant.place)
        exec(_compiled(tree, str(ROOT / self._mutant.path)), module.__dict__)  # noqa: S102 the fault, to be run


def import_mutated(mutant: Mutant) -> None:
    """Let the module be the mutant when it is imported next: the package is forgotten, but for this program."""
    kept = ("dpsql.tests.mutants",)
    for name in [name for name in sys.modules if name == "dpsql" or name.startswith("dpsql.")]:
        if not name.startswith(kept) and name not in ("dpsql", "dpsql.tests"):
            del sys.modules[name]
    sys.meta_path.insert(0, _Hook(mutant))
