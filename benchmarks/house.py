"""How large the program is, room by room: lines of code, files, tests of a value's kind, functions of many branches.

`python -m benchmarks.house` prints the table of this checkout. A line of code holds something besides a comment or a
docstring. The core is what a reader must believe for the promise to hold: the plan, the mechanisms, the budget, the
expressions below the release, and what runs and noises a release. A test of a kind is an `isinstance`, a class pattern
or a `type(x) is` that names a relation, a source, an expression or a formula, or a comparison of a call's function by
name: what a new kind of these must be added to. Branches are counted as ruff's C901 counts them.
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "dpsql"
CORE = (
    "plan/", "mechanisms/", "budget/", "relation/", "release/run.py", "release/privatise.py", "release/released.py",
    "engine/batch.py", "release/batch_split.py", "engine/dataset.py",
)  # fmt: skip
"""What must be believed, as paths under the package; `ABOVE` is taken out of it."""
ABOVE = ("relation/functions/above",)
KINDS = (
    "relation/relations.py",
    "relation/expressions.py",
    "plan/privacy/rows.py",
    "plan/measures/formulas.py",
)
"""The modules whose classes are the kinds of a statement's parts."""
_QUIET = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_QUIET |= {tokenize.ENCODING, tokenize.ENDMARKER}


def main() -> None:
    """Print the table."""
    rooms: dict[str, Counter[str]] = {}
    total, core = Counter[str](), Counter[str]()
    branchy = _branchy()
    kinds = {
        found.name
        for name in KINDS
        for found in ast.parse((ROOT / name).read_text()).body
        if isinstance(found, ast.ClassDef)
    }
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("tests/"):
            continue
        found = _counted(path.read_text(encoding="utf-8"), kinds)
        found["branchy"] = branchy[name]
        room = name.split("/")[0] if "/" in name else "(top)"
        rooms.setdefault(room, Counter()).update(found)
        total.update(found)
        if name.startswith(CORE) and not name.startswith(ABOVE):
            core.update(found)
    print(
        f"{'room':16}{'files':>6}{'lines':>8}{'code':>8}{'docstring':>10}{'kinds':>7}{'functions':>10}{'branchy':>8}"
    )
    for room, found in sorted(rooms.items(), key=lambda item: -item[1]["code"]):
        _print(room, found)
    _print("all", total)
    _print("core", core)
    print(
        f"{total['packed']} fmt: skip; {total['branchy'] / total['functions']:.1%} of functions above ten branches"
    )


def _print(name: str, found: Counter[str]) -> None:
    columns = ("files", "lines", "code", "docstring", "kinds", "functions", "branchy")
    widths = (6, 8, 8, 10, 7, 10, 8)
    print(
        f"{name:16}"
        + "".join(f"{found[column]:>{width}}" for column, width in zip(columns, widths, strict=True))
    )


def _counted(text: str, kinds: set[str]) -> Counter[str]:
    tree = ast.parse(text)
    docstrings: set[int] = set()
    found = Counter(files=1, lines=text.count("\n"), packed=text.count("# fmt: skip"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                if (
                    isinstance(statement, ast.Expr)
                    and isinstance(statement.value, ast.Constant)
                    and isinstance(statement.value.value, str)
                ):
                    docstrings.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
        found["functions"] += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        found["kinds"] += _is_kind_test(node, kinds)
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _QUIET:
            code.update(range(token.start[0], token.end[0] + 1))
    found["docstring"] = len(docstrings)
    found["code"] = len(code - docstrings)
    return found


def _is_kind_test(node: ast.AST, kinds: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, named]) | ast.MatchClass(cls=named):
            pass
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="type")),
            ops=[ast.Is() | ast.IsNot() | ast.Eq()],
            comparators=[named],
        ):
            pass
        case ast.Compare(
            left=ast.Attribute(attr="function"), ops=[ast.Eq() | ast.NotEq() | ast.In() | ast.NotIn()]
        ):
            return True
        case _:
            return False
    return any(isinstance(part, ast.Name) and part.id in kinds for part in ast.walk(named))


def _branchy() -> Counter[str]:
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "C901", "--output-format", "json", str(ROOT)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Counter(Path(one["filename"]).relative_to(ROOT).as_posix() for one in json.loads(found.stdout))


if __name__ == "__main__":
    main()
