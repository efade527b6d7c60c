"""The allow-list of syntax: every kind of tree node and every argument of it that is read at all.

House rules (law L4):

1. A node kind that is not a key of `ADMITTED` is refused, wherever it stands.
2. An argument that is not listed for its node is refused unless it is absent (None or an empty list);
   False counts as present, since False can be a clause of its own.
3. Listing an argument here is a promise that the binder reads it. Nothing is ever dropped.
4. What functions, operators and aggregates are written with is said in their rows (`relation.functions`,
   `aggregates`).
"""

from __future__ import annotations

from sqlglot import exp

from ..errors import Refusal
from ..relation.functions import SYNTAX
from .named_calls import AGGREGATES, ORDERED
from .text import MAX_DEPTH, MAX_NODES, Counts, mark_starts, position_of, said_of, said_of_clause, too_complex

__all__ = ["ADMITTED", "admit"]

_BINARY = frozenset({"this", "expression"})
_UNARY = frozenset({"this"})

ADMITTED: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct",
         "with_", "windows", "qualify"}
    ),
    exp.Union: frozenset({"this", "expression", "distinct", "order", "limit", "offset", "with_"}),
    exp.Intersect: frozenset({"this", "expression", "distinct", "order", "limit", "offset", "with_"}),
    exp.Except: frozenset({"this", "expression", "distinct", "order", "limit", "offset", "with_"}),
    exp.Subquery: frozenset({"this", "alias", "joins"}),
    exp.With: frozenset({"expressions", "recursive"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.From: _UNARY,
    exp.Table: frozenset({"this", "db", "catalog", "alias", "joins", "ordinality", "only"}),
    exp.Lateral: frozenset({"this", "alias", "view", "outer", "ordinality"}),
    exp.Unnest: frozenset({"expressions", "alias", "offset"}),
    exp.ExplodingGenerateSeries: frozenset({"start", "end", "step"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind", "method"}),
    exp.Where: _UNARY,
    exp.Having: _UNARY,
    exp.Qualify: _UNARY,
    exp.Group: frozenset({"expressions", "all"}),
    exp.Rollup: frozenset({"expressions"}),
    exp.Cube: frozenset({"expressions"}),
    exp.GroupingSets: frozenset({"expressions"}),
    exp.Tuple: frozenset({"expressions"}),
    exp.Array: frozenset({"expressions", "value_constructor"}),
    exp.Order: frozenset({"this", "expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"percent", "rows", "with_ties"}),
    exp.Offset: frozenset({"expression"}),
    exp.Distinct: frozenset({"expressions", "on"}),
    exp.Values: frozenset({"expressions", "alias"}),
    exp.Column: frozenset({"this", "table", "db"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Star: frozenset(),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Paren: _UNARY,
    exp.Literal: frozenset({"this", "is_string"}),
    exp.RawString: _UNARY,
    exp.ByteString: _UNARY,
    exp.Boolean: _UNARY,
    exp.Null: frozenset(),
    exp.Var: _UNARY,
    exp.Parameter: _UNARY,
    exp.Interval: frozenset({"this", "unit"}),
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.DataTypeParam: _UNARY,
    **{syntax.node: frozenset((*syntax.args, *syntax.read)) for syntax in SYNTAX.values()},
    exp.Exists: _UNARY,
    exp.CurrentDate: frozenset(),
    exp.CurrentTimestamp: frozenset(),
    exp.Localtimestamp: frozenset(),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Kwarg: _BINARY,
    exp.JSONPath: frozenset({"expressions"}),
    exp.JSONPathRoot: frozenset(),
    **dict.fromkeys((exp.JSONPathKey, exp.JSONPathSubscript), _UNARY),
    # aggregates and windows
    **dict.fromkeys((*ORDERED, exp.FirstValue, exp.LastValue, exp.Ntile), _UNARY),
    **{node: frozenset(row.args) for node, row in AGGREGATES.items()},
    exp.Count: frozenset({"this", "big_int"}),
    exp.WithinGroup: _BINARY,
    exp.Filter: _BINARY,
    exp.Grouping: frozenset({"expressions"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "over", "alias"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"}),
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist), frozenset()),
    exp.NthValue: frozenset({"this", "offset"}),
    exp.Lag: frozenset({"this", "offset", "default"}),
    exp.Lead: frozenset({"this", "offset", "default"}),
}  # fmt: skip
"""Node kind -> the arguments that the binder reads."""

_ANEW = "build it anew: jsonb_build_object('a', j -> 'a')"
_HINTS: dict[type[exp.Expr], str] = {
    exp.BitString: "write a whole number: 5, for B'101'",
    exp.Placeholder: "write $1, $2, … where the values belong that are sent beside the statement",
    exp.ColumnDef: "take the values out by hand: json_array_elements(j) AS e, and (e ->> 'a')::integer",
    exp.JSONBDeleteAtPath: _ANEW,
    **dict.fromkeys(
        (exp.JSONBContainsAnyTopKeys, exp.JSONBContainsAllTopKeys),
        "join several j -> 'a' IS NOT NULL, of an object",
    ),
    **dict.fromkeys((exp.MatchAgainst, exp.JSONBPathExists), "take the value out: j #>> '{a,0}'"),
    **dict.fromkeys(
        (exp.Quantile, exp.ApproxQuantile), "write percentile_cont(0.25) WITHIN GROUP (ORDER BY x)"
    ),
    exp.Hll: "write COUNT(DISTINCT x)",
    **dict.fromkeys((exp.First, exp.Last), "MIN(x) and MAX(x) are answered, of numbers and dates"),
    **{
        node: f"write EXTRACT({node.__name__.upper()} FROM x)"
        for node in (exp.Year, exp.Month, exp.Day, exp.Week)
    },
    exp.DateDiff: "subtract them: DATE '2025-12-31' - x is in days",
    exp.TryCast: "write x::integer, x::date: of people's rows it is NULL where the text is none",
    exp.TableSample: "SELECT … ORDER BY md5(x) LIMIT 100, of released and public rows",
}
_LISTED = "`dpsql docs sql functions` lists the functions that are answered"
_CLAUSES: dict[tuple[type[exp.Expr], str], tuple[str, str]] = {
    **dict.fromkeys(
        ((node, "expressions") for node in (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)),
        ("a hypothetical set", "count the rows before it: COUNT(*) FILTER (WHERE x < 3) + 1"),
    ),
    **dict.fromkeys(
        ((node, "expression") for node in (exp.PercentileCont, exp.PercentileDisc)),
        ("a percentile without an order", "write percentile_cont(0.9) WITHIN GROUP (ORDER BY x)"),
    ),
    (exp.If, "false"): ("IF()", "write CASE WHEN … THEN … ELSE … END"),
    (exp.With, "search"): ("SEARCH or CYCLE", "keep the path in a column of your own: path || ',' || x"),
    (exp.Table, "rows_from"): ("ROWS FROM", "join the functions, each WITH ORDINALITY"),
}
"""A node and an argument that is not listed -> what a refusal calls it, and what to write."""


def admit(tree: exp.Expr, text: str) -> None:
    """Check that a tree holds nothing but admitted nodes and arguments.

    Raises:
        Refusal: PV001 for a node or an argument outside the allow-list, 54001 for a tree that is too large.
    """
    nodes = _nodes(tree)
    mark_starts(nodes)
    for node in nodes:
        allowed = ADMITTED.get(type(node))
        if allowed is None:
            said = said_of(node, text)
            raise Refusal(
                f"{said} is not supported",
                position=position_of(text, node),
                hint=_HINTS.get(type(node)) or (_LISTED if said.endswith("()") else None),
            )
        missing = next(
            (n for n, needed in node.arg_types.items() if needed and node.args.get(n) is None), None
        )
        if missing is not None:
            raise Refusal("something is missing here", sqlstate="42601", position=position_of(text, node))
        for name, value in node.args.items():
            if value is None or value == []:
                continue
            if name not in allowed:
                first = value[0] if isinstance(value, list) else value
                said, hint = _CLAUSES.get((type(node), name)) or (
                    said_of_clause(name, first, text),
                    _HINTS.get(type(first)),
                )
                raise Refusal(
                    f"{said} {'are' if ' and ' in said else 'is'} not supported here",
                    position=position_of(text, value if isinstance(value, exp.Expr) else node),
                    hint=hint,
                )


_COUNTED = frozenset((*AGGREGATES, *ORDERED))


def _nodes(tree: exp.Expr) -> list[exp.Expr]:
    """Return a tree's nodes, parents before children. Raises Refusal (54001): it is too large."""
    nodes: list[exp.Expr] = []
    counts = Counts()
    stack: list[tuple[exp.Expr, int]] = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        nodes.append(node)
        if depth > MAX_DEPTH or len(nodes) + len(stack) > MAX_NODES:
            raise too_complex()
        counts.add(node, is_aggregate=type(node) in _COUNTED)
        for value in node.args.values():
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, exp.Expr):
                    stack.append((child, depth + 1))
    return nodes
