"""Which faults a file can have: one small change of its syntax tree each, derived and never written by hand.

House rules:
1. Deterministic: the same source gives the same mutants, in the same order, with the same names.
2. A mutant's name is its function and the change as text, so that it outlives edits elsewhere in the file.
3. Left out, as no number depends on them: docstrings, annotations, `__all__`, imports, asserts, texts of errors.
4. What would only be a TypeError is not derived (a string minus a string, a parameter without a default left out): it
   would die, and show nothing.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "Mutant", "Place", "derive", "mutated"]

ROOT = Path(__file__).resolve().parents[2]
"""The folder of the package: what is named `plan/planner.py` lies in it."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_BESIDE: dict[type[ast.cmpop], type[ast.operator]] = {
    ast.Lt: ast.Sub, ast.LtE: ast.Add, ast.Gt: ast.Add, ast.GtE: ast.Sub,
}  # fmt: skip
"""Where a bound is moved by one in the way that the other comparison does not move it."""
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_ROUNDED = {"ceil": "floor", "floor": "ceil"}
_SQL = [
    (r" > ", " >= "), (r" >= ", " > "), (r" < ", " <= "), (r" <= ", " < "), (r" = ", " <> "), (r" <> ", " = "),
    (r"\bAND\b", "OR"), (r"\bOR\b", "AND"), (r"\bDISTINCT ", ""), (r"\bNOT ", ""), (r" \+ ", " - "), (r" - ", " + "),
    (r"\bGREATEST\b", "LEAST"), (r"\bLEAST\b", "GREATEST"), (r"\bMIN\(", "MAX("), (r"\bMAX\(", "MIN("),
    (r"\bUNION ALL\b", "UNION"), (r"\bLEFT JOIN\b", "JOIN"), (r" DESC\b", ""), (r"\bSUM\(", "COUNT("),
    (r"\bCOUNT\(\*\)", "1"),
]  # fmt: skip
_TERM = re.compile(r"\b(?:WHERE|HAVING|AND|ON|WHEN)\s\(*$")
_ORDER = re.compile(r"\b(?:ORDER|PARTITION) BY\s$")


@dataclass(frozen=True)
class Place:
    """Where a change is made: the node's number in the order of the walk."""

    number: int
    variant: int


@dataclass(frozen=True)
class Mutant:
    """One fault: `path` within the package; `function`, "" at the head of the file; `change`, "what was → what is"."""

    path: str
    function: str
    change: str
    lines: range
    """The lines of the statement that it lies in, or of its head."""
    place: Place
    is_late: bool
    """Whether it lies in the body of a function, which can be replaced after the import."""
    digest: str
    """Of the function, or of the statement at the head of the file: results hold as long as it stands."""

    @property
    def key(self) -> str:
        """Its name within the file."""
        return f"{self.function or '(head)'}: {self.change}"

    @property
    def name(self) -> str:
        return f"{self.path} {self.key}"


@dataclass
class _Site:
    """A node, how it is replaced in its parent, and what it lies in."""

    node: ast.AST
    put: Callable[[ast.AST], None]
    function: str
    is_late: bool
    parent: ast.AST
    owner: ast.AST
    """The innermost function around it, or the statement at the head of the file."""
    statement: ast.AST


def derive(path: str, source: str | None = None) -> list[Mutant]:
    """Return a file's mutants in the order of its lines. Raises SyntaxError, OSError."""
    text = (ROOT / path).read_text() if source is None else source
    tree = ast.parse(text)
    known: dict[tuple[str, str], int] = {}
    digests: dict[ast.AST, str] = {}
    found = []
    for number, site in enumerate(_sites(tree)):
        shown = None
        for variant, (what, new) in enumerate(_changes(site)):
            shown = shown or _shown(site.node)
            change = f"{shown} → {what or _shown(new)}"
            again = known[site.function, change] = known.get((site.function, change), 0) + 1
            change += f" ({again})" * (again > 1)
            lines, digest = _lines(site.statement), _digest(site.owner, digests)
            place = Place(number, variant)
            found.append(Mutant(path, site.function, change, lines, place, site.is_late, digest))
    return found


def mutated(path: str, place: Place, source: str | None = None) -> ast.Module:
    """Return a file's tree with one fault in it. Raises SyntaxError, OSError."""
    tree = ast.parse((ROOT / path).read_text() if source is None else source)
    for number, site in enumerate(_sites(tree)):
        if number == place.number:
            _, new = list(_changes(site))[place.variant]
            site.put(ast.fix_missing_locations(ast.copy_location(new, site.node)))
            return ast.fix_missing_locations(tree)
    raise LookupError(f"{path} has no node {place.number}")


def _lines(statement: ast.AST) -> range:
    first, last = getattr(statement, "lineno", 1), getattr(statement, "end_lineno", 1)
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if isinstance(statement, (ast.For, ast.While, ast.If, ast.With, ast.Match, ast.Try)) and body:
        inner = getattr(body[0], "lineno", None) or body[0].pattern.lineno
        last = max(first, inner - 1)
    return range(first, last + 1)


def _digest(owner: ast.AST, known: dict[ast.AST, str]) -> str:
    if owner not in known:
        known[owner] = hashlib.sha256(ast.dump(owner).encode()).hexdigest()[:12]
    return known[owner]


def _shown(node: ast.AST) -> str:
    if isinstance(node, (ast.If, ast.While)):
        return f"{type(node).__name__.lower()} {_shown(node.test)}"
    if isinstance(node, ast.Raise):
        return "raise"
    if isinstance(node, ast.match_case):
        return f"case {_shown(node.pattern)} if {ast.unparse(node.guard) if node.guard else ''}"
    return " ".join(ast.unparse(node).split())[:120]


# --- where -------------------------------------------------------------------------------------------------------


def _sites(tree: ast.Module) -> Iterator[_Site]:
    for index, statement in enumerate(tree.body):
        if not _is_without_claim(statement):
            put = _putting(tree, "body", index, True)
            yield _Site(statement, put, "", False, tree, statement, statement)
            yield from _within(statement, "", False, statement, statement)


def _within(
    parent: ast.AST, function: str, is_late: bool, owner: ast.AST, statement: ast.AST
) -> Iterator[_Site]:
    for name, value in list(ast.iter_fields(parent)):
        if _is_left_out(parent, name):
            continue
        inner, late, of = function, is_late, owner
        if isinstance(parent, (*_FUNCTIONS, ast.ClassDef)) and name == "body":
            inner = f"{function}.{parent.name}" if function else parent.name
            if isinstance(parent, _FUNCTIONS):
                late, of = True, parent
        elif isinstance(parent, ast.Lambda) and name == "body":
            late = True
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or _is_without_claim(node):
                continue
            if isinstance(node, ast.stmt):
                lies_in: ast.AST = node
                if isinstance(parent, ast.ClassDef):
                    of = node
            else:
                lies_in = statement
            put = _putting(parent, name, index, isinstance(value, list))
            yield _Site(node, put, inner, late, parent, of, lies_in)
            if not isinstance(node, ast.Raise):
                yield from _within(node, inner, late, of, lies_in)


def _putting(parent: ast.AST, name: str, index: int, is_list: bool) -> Callable[[ast.AST], None]:
    def put(new: ast.AST) -> None:
        if is_list:
            getattr(parent, name)[index] = new
        else:
            setattr(parent, name, new)

    return put


def _is_left_out(parent: ast.AST, name: str) -> bool:
    if name in (
        "annotation",
        "returns",
        "decorator_list",
        "type_comment",
        "ctx",
        "op",
        "ops",
        "bases",
        "keywords",
    ):
        return not (name == "keywords" and isinstance(parent, ast.Call))
    return isinstance(parent, ast.JoinedStr) or (name == "slice" and _is_type(parent))


def _is_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id[0].isupper()


def _is_without_claim(node: ast.AST) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert, ast.Global, ast.Nonlocal, ast.Pass)):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring, or an ellipsis
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id == "__all__"
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, _FUNCTIONS) and node.name in ("__repr__", "__str__")


# --- what --------------------------------------------------------------------------------------------------------

_Change = tuple[str, ast.AST]
"""How it is told, "" for the new node itself, and what stands there instead."""


def _changes(site: _Site) -> Iterator[_Change]:
    node = site.node
    if isinstance(node, ast.stmt):
        yield from _statement(node, site.parent)
    elif isinstance(node, ast.Compare):
        for index, op in enumerate(node.ops):
            if type(op) in _COMPARED:
                yield "", _with(node, ops=[*node.ops[:index], _COMPARED[type(op)](), *node.ops[index + 1 :]])
            if type(op) in _BESIDE and not isinstance(node.comparators[index], ast.Constant):
                moved = ast.BinOp(node.comparators[index], _BESIDE[type(op)](), ast.Constant(1))
                beside = [*node.comparators[:index], moved, *node.comparators[index + 1 :]]
                yield "", _with(node, comparators=beside)
    elif isinstance(node, ast.BinOp):
        if not _is_union(node):
            yield from _arithmetic(node)
        elif isinstance(site.parent, ast.Call):  # isinstance; elsewhere it is an annotation's
            yield "", node.left
            yield "", node.right
    elif isinstance(node, ast.BoolOp):
        yield "", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for index in range(len(node.values)):
            rest = node.values[:index] + node.values[index + 1 :]
            left_out = f"without {_shown(node.values[index])}"
            yield left_out, rest[0] if len(rest) == 1 else _with(node, values=rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield "", node.operand
    elif isinstance(node, ast.Constant):
        yield from _constant(node, site.parent)
    elif isinstance(node, ast.JoinedStr):
        yield from _formatted(node)
    elif isinstance(node, ast.IfExp):
        yield "", node.body
        yield "", node.orelse
    elif isinstance(node, ast.comprehension):
        for index in range(len(node.ifs)):
            yield (
                "without " + _shown(node.ifs[index]),
                _with(node, ifs=node.ifs[:index] + node.ifs[index + 1 :]),
            )
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, (ast.Dict, ast.Tuple, ast.List, ast.Set)):
        yield from _entries(node, site.parent)
    elif isinstance(node, ast.match_case) and node.guard is not None:
        yield "without its guard", _with(node, guard=None)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _statement(node: ast.stmt, parent: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.If):
        for forced in (True, False):
            yield f"if {forced}", _with(node, test=ast.Constant(forced))
    elif isinstance(node, ast.While):
        if not isinstance(node.test, ast.Constant):
            yield "while False", _with(node, test=ast.Constant(False))
    elif isinstance(node, (ast.Raise, ast.AugAssign, ast.Continue, ast.Break)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.YieldFrom))
    ):
        alone = isinstance(parent, ast.If) and len(parent.body) == 1 and not parent.orelse
        if not alone:  # else it is the condition forced False
            yield "pass", ast.Pass()


def _arithmetic(node: ast.BinOp) -> Iterator[_Change]:
    sides = (node.left, node.right)
    literal = [isinstance(side, (ast.JoinedStr, ast.List, ast.Tuple)) or _is_text(side) for side in sides]
    if any(literal):
        yield "", node.left if literal[1] else node.right
    elif isinstance(node.op, ast.Mult):
        yield "", node.left
        yield "", node.right
    elif type(node.op) in _COMPUTED:
        yield "", _with(node, op=_COMPUTED[type(node.op)]())
        if isinstance(node.op, (ast.Div, ast.FloorDiv, ast.BitOr, ast.BitAnd)):
            yield "", node.left
        if isinstance(node.op, (ast.BitOr, ast.BitAnd)):
            yield "", node.right


def _is_union(node: ast.AST) -> bool:
    """Say whether these are types, or one of several."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and _is_union(node.left) and _is_union(node.right)
    if isinstance(node, ast.Subscript):
        return _is_union(node.value)
    if isinstance(node, ast.Constant):
        return node.value is None
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return (name.lstrip("_")[:1].isupper() and not name.isupper()) or name in (
        "int",
        "str",
        "bool",
        "float",
        "bytes",
    )


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _constant(node: ast.Constant, parent: ast.AST) -> Iterator[_Change]:
    value = node.value
    if isinstance(value, bool):
        yield "", ast.Constant(not value)
    elif isinstance(value, int):
        if isinstance(parent, ast.Subscript):
            yield "", ast.Constant(1 - value if value in (0, 1) else value - 1)
        else:
            yield from (
                ("", ast.Constant(other)) for other in ((1,) if value == 0 else (value - 1, value + 1))
            )
    elif isinstance(value, str):
        yield from (("", ast.Constant(other)) for other in _other_sql(value))


def _other_sql(text: str) -> Iterator[str]:
    """Yield a piece of SQL with one operator or word of it replaced."""
    for pattern, new in _SQL:
        for hit in re.finditer(pattern, text):
            yield text[: hit.start()] + new + text[hit.end() :]


def _formatted(node: ast.JoinedStr) -> Iterator[_Change]:
    for index, part in enumerate(node.values):
        rest = node.values[:index], node.values[index + 1 :]
        if isinstance(part, ast.Constant):
            for other in _other_sql(str(part.value)):
                yield f"… {_cut(other)} …", _with(node, values=[*rest[0], ast.Constant(other), *rest[1]])
        elif index and isinstance(before := node.values[index - 1], ast.Constant):
            for pattern, new in ((_TERM, "TRUE"), (_ORDER, "NULL")):
                if pattern.search(str(before.value)):
                    yield (
                        f"{new} for {{{ast.unparse(part.value)}}}"
                        if isinstance(part, ast.FormattedValue)
                        else new,
                        _with(node, values=[*rest[0], ast.Constant(new), *rest[1]]),
                    )


def _cut(text: str) -> str:
    return " ".join(text.split())


def _call(node: ast.Call) -> Iterator[_Change]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in _SWAPPED:
        yield "", _with(node, func=ast.Name(_SWAPPED[name], ast.Load()))
    if (
        name in ("min", "max")
        and len(node.args) > 1
        and not any(isinstance(a, ast.Starred) for a in node.args)
    ):
        for index in range(len(node.args)):
            rest = node.args[:index] + node.args[index + 1 :]
            yield "", rest[0] if len(rest) == 1 else _with(node, args=rest)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _ROUNDED:
        yield "", _with(node, func=_with(node.func, attr=_ROUNDED[node.func.attr]))
        name = node.func.attr
    if name in ("abs", "sorted", *_ROUNDED) and node.args:
        yield "", node.args[0]
    for index, keyword in enumerate(node.keywords):
        if keyword.arg in _with_defaults():
            yield (
                f"without {keyword.arg}=",
                _with(node, keywords=node.keywords[:index] + node.keywords[index + 1 :]),
            )


@cache
def _with_defaults() -> frozenset[str]:
    """Return the names of parameters and fields that have a default somewhere in the package, and nowhere none."""
    have: set[str] = set()
    need: set[str] = set()
    for path in sorted(ROOT.rglob("*.py")):
        if "tests" in path.relative_to(ROOT).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.arguments):
                positional = [*node.posonlyargs, *node.args]
                bare = len(positional) - len(node.defaults)
                need |= {one.arg for one in positional[:bare]}
                have |= {one.arg for one in positional[bare:]}
                for one, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
                    (need if default is None else have).add(one.arg)
            elif isinstance(node, ast.ClassDef):
                for field in node.body:
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                        (need if field.value is None else have).add(field.target.id)
    return frozenset(have - need) | {"key", "default", "start", "reverse", "strict"}


def _entries(node: ast.Dict | ast.Tuple | ast.List | ast.Set, parent: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.Dict):
        for index, key in enumerate(node.keys):
            keys, values = (list(part[:index] + part[index + 1 :]) for part in (node.keys, node.values))
            told = "without " + ("**" if key is None else _shown(key))
            yield told, _with(node, keys=keys, values=values)
        return
    if isinstance(node, (ast.Tuple, ast.List)) and not isinstance(node.ctx, ast.Load):
        return
    unpacked = isinstance(
        parent, (ast.Return, ast.Yield, ast.Assign, ast.For, ast.comprehension, ast.Subscript)
    )
    if len(node.elts) < 2 or (isinstance(node, ast.Tuple) and unpacked):
        return
    for index, entry in enumerate(node.elts):
        yield "without " + _shown(entry), _with(node, elts=node.elts[:index] + node.elts[index + 1 :])
