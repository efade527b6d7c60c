"""A catalog query's text to sqlglot's tree, and nothing in it that the binder does not read."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from ..sql.size import MAX_DEPTH, MAX_NODES
from ..sql.text import MAX_TEXT, PostgresAsWritten, dialect_of, is_text
from .errors import CatalogRefusal, unsupported
from .read_tokens import TokenReader
from .tree import is_query

__all__ = ["parse"]

_BINARY, _UNARY = frozenset({"this", "expression"}), frozenset({"this"})
_MODIFIERS = frozenset({"order", "limit", "offset", "with_"})

ADMITTED: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: _MODIFIERS | {"expressions", "from_", "joins", "where", "group", "having", "distinct"},
    **dict.fromkeys((exp.Union, exp.Except, exp.Intersect), _MODIFIERS | _BINARY | {"distinct"}),
    exp.Subquery: _MODIFIERS | {"this", "alias", "joins"},
    exp.Values: _MODIFIERS | {"expressions", "alias"},
    exp.With: frozenset({"expressions", "recursive"}),
    exp.CTE: frozenset({"this", "alias", "materialized"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Table: frozenset({"this", "db", "catalog", "alias", "ordinality", "joins", "only", "rows_from"}),
    exp.Lateral: frozenset({"this", "alias", "ordinality"}),
    exp.Join: frozenset({"this", "side", "kind", "method", "on", "using"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows"}),
    **dict.fromkeys((exp.Group, exp.Tuple, exp.Array, exp.Order), frozenset({"this", "expressions"})),
    exp.Distinct: frozenset({"expressions", "on"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.DataType: frozenset({"this", "kind", "expressions", "nested", "values"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Bracket: frozenset({"this", "expressions"}),
    exp.Window: frozenset({"this", "partition_by", "order", "over"}),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Operator: _BINARY | {"operator"},
    exp.DPipe: _BINARY | {"safe"},
    exp.Div: _BINARY | {"typed"},
    **dict.fromkeys((exp.Is, exp.Like, exp.ILike), _BINARY | {"negate"}),
    exp.AtTimeZone: frozenset({"this", "zone"}),
    exp.Trim: _BINARY | {"position"},
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.StrPosition: frozenset({"this", "substr"}),
    **dict.fromkeys(
        (exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Add, exp.Sub, exp.Mul, exp.Mod,
         exp.Pow, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Escape, exp.Dot, exp.Slice, exp.Filter), _BINARY,
    ),
    **dict.fromkeys(
        (exp.From, exp.Where, exp.Having, exp.Not, exp.Neg, exp.Paren, exp.Exists, exp.Parameter, exp.Var,
         exp.Boolean, exp.DataTypeParam, exp.Variadic), _UNARY,
    ),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Star: frozenset(),
    exp.Null: frozenset(),
}  # fmt: skip
"""Node kind -> the arguments that the binder reads; what is absent or false is no clause of a catalog query."""


def parse(text: str) -> exp.Expr:
    """Return the tree of one query. Raises CatalogRefusal: it is anything else, or a form that is not read."""
    if len(text) > MAX_TEXT:
        raise CatalogRefusal("too long", message="the statement is too long", sqlstate="54001")
    if not is_text(text):
        raise unsupported("a zero byte or half a character")
    try:
        tokens = dialect_of(text)().tokenize(text)
        if len(tokens) > 2 * MAX_NODES:
            raise _too_complex()
        tokens = TokenReader(text, tokens).read()
        trees = [tree for tree in PostgresAsWritten().parser().parse(tokens, text) if tree is not None]
    except TokenError:
        raise unsupported("a quote or a comment without an end") from None
    except ParseError:
        raise unsupported("a syntax error") from None
    except RecursionError:
        raise unsupported("a query nested too deep") from None
    except (TypeError, AttributeError, KeyError, IndexError, ValueError):  # sqlglot's own, on what no SQL is
        raise unsupported("a syntax error") from None
    if len(trees) != 1 or not is_query(trees[0]):
        raise unsupported("something else than one query")
    _admit(trees[0])
    return trees[0]


def _too_complex() -> CatalogRefusal:
    return CatalogRefusal("too complex", message="the statement is too complex", sqlstate="54001")


def _admit(tree: exp.Expr) -> None:
    """Check that a tree is small, and holds what is admitted. Raises CatalogRefusal."""
    count = 0
    stack: list[tuple[exp.Expr, int]] = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        kind = type(node)
        if kind is exp.Identifier:
            continue
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            raise _too_complex()
        allowed = ADMITTED.get(kind)
        if allowed is None:
            raise unsupported(f"{kind.__name__} here")
        for name, needed in node.arg_types.items():
            if needed and node.args.get(name) is None:
                raise unsupported("a syntax error")
        for name, value in node.args.items():
            if not value:
                continue
            if name not in allowed:
                raise unsupported(f"{name.rstrip('_')} of {kind.__name__}")
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, exp.Expr):
                    # What AND and OR join lies side by side, however the parser nests it.
                    stack.append(
                        (child, depth + (type(child) is not kind or not isinstance(node, exp.Connector)))
                    )
