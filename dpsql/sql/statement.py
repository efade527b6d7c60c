"""Text to one statement, parsed and admitted: a query, EXPLAIN of a query, SET / SHOW / RESET of a dpsql setting, or
one that writes an analyst's own tables (`workspace`).

The allow-list of syntax has every kind of tree node and every argument of it that is read at all.

House rules (law L4):

1. A node kind that is not a key of `ADMITTED` is refused, wherever it stands.
2. An argument that is not listed for its node is refused unless it is absent (None or an empty list);
   False counts as present, since False can be a clause of its own.
3. Listing an argument here is a promise that the binder reads it. Nothing is ever dropped.
4. What functions, operators and aggregates are written with is said in their rows (`relation.functions`,
   `aggregates`).

A view's text, as the engine keeps it, to a query of ours: parsed, admitted and bound as a statement is.

House rules (soundness.md 1.28):

1. Nothing of the engine's view is trusted: what its text means is what our binder makes of it, and the view itself is
   never read. Where the engine would mean something else by the same words, the text is refused.
2. A change of spelling keeps every place, so that a refusal can name it.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import logging
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from ..errors import Refusal
from ..records import dataclass
from ..regex import regex
from ..relation.aggregates import ROWS as AGGREGATE_ROWS
from ..relation.aggregates import Aggregate
from ..relation.functions import FUNCTIONS, NAMES, SYNTAX
from ..relation.functions.above import REFUSED
from .text import (
    MAX_DEPTH,
    MAX_NODES,
    Counts,
    PostgresAsWritten,
    blank_prefix,
    dialect_of,
    mark_starts,
    more_statements,
    place,
    position_of,
    said_of,
    said_of_clause,
    tokenize,
    too_complex,
)
from .workspace import (
    WRITES,
    WorkspaceStatement,
    WrittenQuery,
    into_query,
    read_sent,
    read_workspace_statement,
)

if TYPE_CHECKING:
    from sqlglot.dialects.postgres import Postgres

_PLAIN = [row for row in AGGREGATE_ROWS if not row.is_ordered]
AGGREGATES = {node: row for row in _PLAIN for node in row.nodes}
"""Kind of node -> row, of those whose arguments stand in parentheses."""
ORDERED: dict[type[exp.Expr], Aggregate] = {
    node: row for row in AGGREGATE_ROWS if row.is_ordered for node in row.nodes
}
"""Kind of node before WITHIN GROUP (ORDER BY the argument) -> row."""
NAMED = {name: row for row in _PLAIN for name in row.names}
"""Name of a function that the parser has no node for -> row."""
OPERATOR_NAMES = frozenset(
    f"{kind}_extract{rest}" for kind in ("json", "jsonb") for rest in ("", "_scalar", "_path", "_path_text")
) | {"parse_json"}
"""Names of which the parser makes the nodes of -> and #>, by paths that are written otherwise."""

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
_NEEDED = {kind: tuple(name for name, is_needed in kind.arg_types.items() if is_needed) for kind in ADMITTED}
"""Node kind -> those that the parser gives every node, unless the text lacks them."""

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
        missing = any(node.args.get(name) is None for name in _NEEDED[type(node)])
        if missing:
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


@dataclass(frozen=True, slots=True)
class AdmittedQuery:
    """An admitted SELECT, VALUES or set operation; `text` is what positions point into."""

    tree: exp.Expr
    text: str


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a query; `form`: text, json, xml or yaml. `verify`: its plan as it is verified."""

    query: AdmittedQuery
    form: str
    verify: bool = False


@dataclass(frozen=True, slots=True)
class SetSetting:
    """SET name = value; the value is text still."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ShowSetting:
    """SHOW name."""

    name: str


@dataclass(frozen=True, slots=True)
class ResetSetting:
    """RESET name."""

    name: str


Statement = AdmittedQuery | Explain | SetSetting | ShowSetting | ResetSetting | WorkspaceStatement

# The parser logs what it cannot read; the analyst's text belongs in no log.
logging.getLogger("sqlglot").disabled = True

_EXPLAIN = regex(
    r"\s*explain\b\s*(?:\(([a-z_,\s0-9]*)\)|((?:(?:analy[sz]e|verbose)\b\s*)*))\s*", re.IGNORECASE
)
_OPTION = regex(r"\s*([a-z_]+)(?:\s+([a-z]+|[01]))?\s*", re.IGNORECASE)
_OPTIONS = frozenset(
    {
        "analyze",
        "analyse",
        "verbose",
        "costs",
        "settings",
        "generic_plan",
        "buffers",
        "wal",
        "timing",
        "summary",
    }
    | {"memory"}
)
"""Postgres' own, which have no meaning here: nothing is run, and the only cost is what is charged."""
_FORMATS = ("text", "json", "xml", "yaml")
_SWITCHED = ("", "on", "off", "true", "false", "0", "1")
_SET = regex(
    r"\s*set\s+(?:session\s+)?([a-z_][a-z_0-9.]*)\s*(?:=|\bto\b)\s*('([^']*)'|[^\s';]+)\s*;?\s*",
    re.IGNORECASE,
)
_SHOW = regex(r"\s*show\s+([a-z_][a-z_0-9.]*)\s*;?\s*", re.IGNORECASE)
_RESET = regex(r"\s*reset\s+([a-z_][a-z_0-9.]*)\s*;?\s*", re.IGNORECASE)


def _word(token: Token) -> str:
    """Return a token's word in lower case; a quoted name is no word."""
    return "" if token.token_type is TokenType.IDENTIFIER else token.text.lower()


def parse_statement(text: str) -> Statement:
    """Return the one statement in the text.

    Raises:
        Refusal: 42601 for a syntax error or more than one statement, 0A000 for statements that are
            not answered, and what `admit` raises.
    """
    if (sent := read_sent(text)) is not None:
        return sent
    tokenized = tokenize(text)
    tokens = [token for token in tokenized if token.token_type is not TokenType.SEMICOLON]
    if not tokens:
        raise Refusal("there is no statement", sqlstate="42601", hint="write a SELECT")
    first = _word(tokens[0])
    if first == "set":
        match = _SET.fullmatch(text)
        if match is None:
            raise Refusal("SET is not written right", sqlstate="42601", hint="SET dpsql.epsilon = 0.5")
        return SetSetting(match[1].lower(), match[3] if match[3] is not None else match[2])
    if first == "show" and (match := _SHOW.fullmatch(text)):
        return ShowSetting(match[1].lower())
    if first == "reset" and (match := _RESET.fullmatch(text)):
        return ResetSetting(match[1].lower())
    if first == "explain" and _EXPLAIN.match(text, tokens[0].start):
        match = _EXPLAIN.match(text, tokens[0].start)
        assert match is not None
        form, is_verified = _read_options(text, match)
        return Explain(_parse_query(blank_prefix(text, match.end())), form, is_verified)
    if first in WRITES:
        return read_workspace_statement(text)
    if first in ("select", "with") and (made := into_query(text, tokens)) is not None:
        return made
    return _parse_tokens(text, tokenized)


def written_query(query: WrittenQuery) -> AdmittedQuery:
    """Return the query in a statement that writes an analyst's own tables. Raises as `parse_statement`."""
    return _parse_query(query.text)


def parse_own_view(text: str) -> AdmittedQuery:
    """Return the query that an analyst's own view stands for. Raises as `parse_view`."""
    return parse_view(text, dialect_of(text))


def check_statement(text: str) -> None:
    """Raise what `parse_statement` raises, and return nothing of what it reads."""
    parse_statement(text)


def _read_options(text: str, match: re.Match[str]) -> tuple[str, bool]:
    """Return the FORMAT of EXPLAIN's options, and whether to verify; what has no meaning here is read and left.

    Raises:
        Refusal: 42601 for an option that is none, or a FORMAT that is none.
    """
    form, is_verified = "text", False
    for option in () if match[1] is None else match[1].split(","):
        read = _OPTION.fullmatch(option)
        name, value = (read[1].lower(), (read[2] or "").lower()) if read is not None else ("", "")
        if name == "format" and value in _FORMATS:
            form = value
        elif name == "verify" and value in _SWITCHED:
            is_verified = value in ("", "on", "true", "1")
        elif name not in _OPTIONS or value not in _SWITCHED:
            raise Refusal(
                "EXPLAIN has no such option", sqlstate="42601", position=place(text, match.start(1)),
                hint="EXPLAIN (FORMAT JSON), EXPLAIN (VERIFY), or EXPLAIN alone",
            )  # fmt: skip
    return form, is_verified


_OF_JOIN = ("side", "kind", "method", "on", "using")
_STARTS = ("select", "with", "values", "(", "table")
_AT_PROMPT = "dpsql query without a statement is a prompt, which has help, SHOW TABLES and \\d"
_ELSE = {
    "help": _AT_PROMPT,
    "\\": _AT_PROMPT,
    **dict.fromkeys(
        ("update", "merge"), "rows of own tables are written by INSERT and DELETE, or CREATE TABLE … AS"
    ),
}
"""First words of what is no query -> what to do instead."""
_LIKE_QUERIES = ("select", "with", "values", "table", "explain")


def parse_view(text: str, dialect: type[Postgres]) -> AdmittedQuery:
    """Return the query that a view's text is, held against the same list as a statement.

    Raises:
        Refusal: as `parse_statement` does; PV001 for what stands for something that is given later.
    """
    query = _parse_query(text, dialect)
    given = query.tree.find(exp.Parameter)
    if given is not None:
        raise Refusal("a view has no parameters", position=position_of(text, given))
    return query


def _parse_query(text: str, dialect: type[Postgres] | None = None) -> AdmittedQuery:
    return _parse_tokens(text, tokenize(text), dialect)


def _parse_tokens(text: str, tokens: list[Token], dialect: type[Postgres] | None = None) -> AdmittedQuery:
    first = _word(tokens[0]) if tokens else ""
    known = first in _STARTS or first in _LIKE_QUERIES
    meant = [] if known else difflib.get_close_matches(first, _LIKE_QUERIES, 1, 0.8)
    if meant:
        raise Refusal(
            f'syntax error at or near "{first}"', sqlstate="42601", position=place(text, tokens[0].start),
            hint=f"did you mean {meant[0].upper()}?",
        )  # fmt: skip
    if first not in _STARTS:
        raise Refusal(
            f"only queries are answered, not {first.upper() or 'an empty statement'}",
            sqlstate="0A000",
            position=place(text, tokens[0].start) if tokens else None,
            hint=_ELSE.get(first, "write a SELECT with aggregates"),
        )
    try:
        reader = (dialect or dialect_of(text))()
        trees = _parsed_calls(text, reader, tokens if dialect is None else reader.tokenize(text))
    except ParseError as error:
        raise _syntax_error(text, error, _syntax_hint(tokens)) from None
    except (
        TypeError,
        AttributeError,
        KeyError,
        IndexError,
        ValueError,
    ):  # sqlglot's own, on text that no SQL is
        raise Refusal("syntax error", sqlstate="42601") from None
    except RecursionError:
        raise Refusal("the statement is too complex", sqlstate="54001") from None
    if len(trees) != 1:
        raise more_statements()
    tree = trees[0]
    if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)):
        raise Refusal("only queries are answered", sqlstate="0A000", hint="write a SELECT with aggregates")
    _check_brackets(tokens, text)
    _check_lists(tokens, text)
    admit(tree, text)
    _check_joins(tree, tokens, text)
    return AdmittedQuery(tree, text)


_HIDDEN = "called "


def _parsed_calls(text: str, dialect: Postgres, tokens: list[Token]) -> list[exp.Expr]:
    """Return the trees of a text, with every function of the table as an `Anonymous`; what sqlglot raises.

    The parser has a node of its own for some of their names, with arguments renamed, moved or read as another dialect
    means them. So it does not see them: in the place of each stands a name that no statement can hold outside quotes.
    `tokens`: the text's, as the dialect makes them.
    """
    tokens = _with_brackets(_with_intervals(_without_schema(tokens)))
    hidden = [
        _hidden(token) if after.token_type is TokenType.L_PAREN and _is_name(token) else token
        for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True)
    ] if tokens else []  # fmt: skip
    trees = [tree for tree in dialect.parser().parse(hidden, text) if tree is not None]
    is_any_hidden = any(token.text.startswith(_HIDDEN) for token in hidden)
    for tree in trees if is_any_hidden else ():
        for node in tree.find_all(exp.Anonymous, exp.Identifier):
            name = node.args.get("this")
            if isinstance(name, str) and name.startswith(_HIDDEN) and not node.args.get("quoted"):
                node.set("this", name.removeprefix(_HIDDEN))
    return trees


@functools.cache
def expression_of(sql: str) -> exp.Expr:
    """Return the tree of one of dpsql's own expressions, read as a statement's are; it is not to be changed."""
    dialect = PostgresAsWritten()
    tokens = [_hidden(token) if _is_own(token) else token for token in dialect.tokenize(sql)]
    (tree,) = _parsed_calls(sql, dialect, tokens)
    return tree


def _is_own(token: Token) -> bool:
    """Say whether a name is of a function that dpsql alone writes, whatever the parser knows by it."""
    row = None if token.text in NAMES else FUNCTIONS.get(token.text)
    return row is not None and not row.syntax


def _without_schema(tokens: list[Token]) -> list[Token]:
    """Return tokens without the `pg_catalog.` that drivers write before types and functions: ours are in no other."""
    kept: list[Token] = []
    index = 0
    while index < len(tokens):
        if _is_qualifier(tokens, index):
            index += 2
        kept.append(tokens[index])
        index += 1
    return kept


_BARE_NUMBER = regex(r"\s*-?[0-9]+(?:\.[0-9]+)?\s*")


def _with_intervals(tokens: list[Token]) -> list[Token]:
    """Return tokens with `'1 day 02:03'::interval` for `INTERVAL '1 day 02:03'`, which are one.

    Of a text that is more than a number the parser keeps the first number and unit that it finds in it.
    """
    found = list(tokens)
    for index, (first, second) in enumerate(itertools.pairwise(tokens)):
        is_text = first.token_type is TokenType.INTERVAL and second.token_type is TokenType.STRING
        if is_text and not _BARE_NUMBER.fullmatch(second.text):
            found[index], found[index + 1] = second, first
    kept: list[Token] = []
    for token, after in zip(found, [*found[1:], None], strict=True):
        kept.append(token)
        if after is not None and after.token_type is TokenType.INTERVAL and after.start < token.start:
            kept.append(_bracket(TokenType.DCOLON, "::", token))
    return kept


_LISTS = (TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS)
_NOT_WRAPPED = (*_LISTS, TokenType.SELECT, TokenType.WITH, TokenType.VALUES)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def _with_brackets(tokens: list[Token]) -> list[Token]:
    """Return tokens with brackets about each expression in ROLLUP, CUBE and GROUPING SETS.

    The parser reads no comparison, IS or AND there, but in brackets, which mean nothing about one expression.
    """
    if not any(token.token_type in _LISTS for token in tokens):
        return tokens
    opened: list[tuple[int, int, bool]] = []  # a bracket, where its element begins, is it a list
    around: list[tuple[int, int]] = []
    partner: dict[int, int] = {}
    for index, token in enumerate(tokens):
        if token.token_type in _OPENING:
            opened.append((index, index + 1, index > 0 and tokens[index - 1].token_type in _LISTS))
        elif opened and token.token_type in (*_CLOSING, TokenType.COMMA):
            bracket, start, is_list = opened.pop()
            if is_list:
                around.append((start, index - 1))
            if token.token_type is TokenType.COMMA:
                opened.append((bracket, index + 1, is_list))
            else:
                partner[bracket] = index
    wanted = [
        (first, last)
        for first, last in around
        if first < last and partner.get(first) != last and tokens[first].token_type not in _NOT_WRAPPED
    ]
    before, after = ({place[side] for place in wanted} for side in (0, 1))
    found: list[Token] = []
    for index, token in enumerate(tokens):
        if index in before:
            found.append(_bracket(TokenType.L_PAREN, "(", token))
        found.append(token)
        if index in after:
            found.append(_bracket(TokenType.R_PAREN, ")", token))
    return found


def _bracket(kind: TokenType, text: str, at: Token) -> Token:
    return Token(kind, text, at.line, at.col, at.start, at.end, [])


def _is_qualifier(tokens: list[Token], index: int) -> bool:
    if index + 3 > len(tokens) or tokens[index + 1].token_type is not TokenType.DOT:
        return False
    token, before = tokens[index], tokens[index - 1].token_type if index else None
    if token.token_type is TokenType.STRING or token.text.lower() != "pg_catalog":
        return False
    after = tokens[index + 3].token_type if index + 3 < len(tokens) else None
    return before is TokenType.DCOLON or after is TokenType.L_PAREN or (
        before is TokenType.ALIAS and after in (TokenType.R_PAREN, TokenType.L_BRACKET)
    )  # fmt: skip


def _is_name(token: Token) -> bool:
    quoted = (TokenType.IDENTIFIER, TokenType.STRING)
    name = token.text.lower()
    is_ours = name in NAMES or name in REFUSED or name in NAMED
    return (is_ours or name in OPERATOR_NAMES or name in ("mod", "date")) and token.token_type not in quoted


def _hidden(token: Token) -> Token:
    name = _HIDDEN + token.text
    return Token(TokenType.VAR, name, token.line, token.col, token.start, token.end, token.comments)


_BEFORE_VALUES = frozenset(
    {
        "select",
        "where",
        "and",
        "or",
        "not",
        "in",
        "on",
        "by",
        "then",
        "else",
        "when",
        "case",
        "having",
        "distinct",
        "all",
    }
)


def _check_brackets(tokens: Sequence[Token], text: str) -> None:
    """Refuse […] where a value begins: the parser takes it for ARRAY[…], and for Postgres it is none."""
    depth = 0
    for before, token in itertools.pairwise(tokens):
        if token.token_type is TokenType.L_BRACKET:
            is_value = before.text.lower() in _BEFORE_VALUES or not (
                before.text[-1:].isalnum() or before.text[-1:] in '_"])'
            )
            if is_value and not depth and before.token_type is not TokenType.IDENTIFIER:
                raise Refusal(
                    'syntax error at or near "["', sqlstate="42601", position=place(text, token.start),
                    hint="write ARRAY[1, 2]",
                )  # fmt: skip
            depth += 1
        elif token.token_type is TokenType.R_BRACKET:
            depth -= 1


_AFTER_LISTS = frozenset(
    {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING,
     TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH, TokenType.UNION, TokenType.INTERSECT,
     TokenType.EXCEPT, TokenType.WINDOW, TokenType.SEMICOLON}
)  # fmt: skip


def _check_lists(tokens: Sequence[Token], text: str) -> None:
    """Refuse GROUP BY, or a comma, with nothing after it: the parser's tree has a place for neither."""
    hints = {
        TokenType.GROUP_BY: "write a list of keys, or the word ALL, after it",
        TokenType.COMMA: "write what belongs after it, or take it out",
    }
    for token, after in itertools.zip_longest(tokens, tokens[1:]):
        if token.token_type in hints and (after is None or after.token_type in _AFTER_LISTS):
            written = "GROUP BY" if token.token_type is TokenType.GROUP_BY else token.text
            raise Refusal(
                f'syntax error at or near "{written}"', sqlstate="42601", position=place(text, token.start),
                hint=hints[token.token_type],
            )  # fmt: skip


def _check_joins(tree: exp.Expr, tokens: Sequence[Token], text: str) -> None:
    """Refuse JOIN without ON or USING: the parser's tree shows it as a comma, and for Postgres it is no query."""
    written = [token for token in tokens if token.token_type is TokenType.JOIN]
    known = sum(any(join.args.get(name) for name in _OF_JOIN) for join in tree.find_all(exp.Join))
    if len(written) != known:
        position = place(text, written[-1].start) if written else None
        raise Refusal("JOIN takes ON or USING", sqlstate="42601", position=position)


def _syntax_error(text: str, error: ParseError, hint: str | None) -> Refusal:
    details = error.errors[0] if error.errors else {}
    line, column, token = details.get("line"), details.get("col"), str(details.get("highlight") or "")
    position = None
    if isinstance(line, int) and isinstance(column, int):
        lines = text.split("\n")
        offset = sum(len(part) + 1 for part in lines[: line - 1]) + max(column - len(token), 0)
        position = place(text, min(offset, len(text)))
    near = f' at or near "{token}"' if token and token.isprintable() and len(token) <= 60 else ""
    return Refusal(f"syntax error{near}", sqlstate="42601", position=position, hint=hint)


def _syntax_hint(tokens: list[Token]) -> str | None:
    """Return what is known to be wrong with a text that cannot be parsed: its parentheses, or another dialect's TOP."""
    opened, closed = (
        sum(one.token_type is kind for one in tokens) for kind in (TokenType.L_PAREN, TokenType.R_PAREN)
    )
    if opened != closed:
        return f"parentheses: {opened} opened, {closed} closed"
    words = [one.text.lower() for one in tokens[:3]]
    if words[:2] == ["select", "top"] and words[2].isdecimal():
        return f"write LIMIT {words[2][:9]} at the end"
    return None


def check_parameters(query: AdmittedQuery, given: int) -> None:
    """Check that no more parameters are given than the query names.

    Raises:
        Refusal: 42P02, as Postgres refuses a bind message of the wrong length.
    """
    numbers = [str(node.args["this"].args.get("this")) for node in query.tree.find_all(exp.Parameter)]
    named = max((int(number) for number in numbers if number.isascii() and number.isdigit()), default=0)
    if given > named:
        raise Refusal(
            f"{given} parameters are given, but the statement names {named}", sqlstate="42P02",
            hint="write $1, $2, … where they belong",
        )  # fmt: skip


# --- a view's text, as the engine keeps it, to a query of ours ----------------------------------------------


_READS_FILES = regex(r"(read|scan)_\w+|\w+_scan|glob", re.IGNORECASE)


class _KeptByDuckDB(PostgresAsWritten):
    """Postgres' grammar, with the order of NULL that DuckDB means where its texts say none."""

    NULL_ORDERING = "nulls_are_last"


def view_query(definition: str, engine: str, enums: Collection[str] = ()) -> AdmittedQuery:
    """Return the query of a view. `engine`: whose text it is, `duckdb` (CREATE VIEW …) or `postgres` (the query alone).

    `enums`: types of labels, as the engine prints them in its texts.

    Raises:
        Refusal: what is not read in statements either; its position is in the text as the engine has it.
    """
    if engine != "duckdb":
        return parse_view(_without_labels(definition, enums), PostgresAsWritten)
    tokens = tokenize(definition)
    start = next((token.end + 1 for token in tokens if token.token_type is TokenType.ALIAS), None)
    if start is None:
        raise Refusal("this is no view's text", sqlstate="42601")
    text = _spelled(blank_prefix(definition, start).rstrip().removesuffix(";"), tokens)
    _refuse_files(text, tokens)
    return parse_view(text, _KeptByDuckDB)


def _spelled(text: str, tokens: list[Token]) -> str:
    """Return the text with two spellings of DuckDB's own in Postgres': names of functions that it quotes, COUNT(*)."""
    for before, name, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_call = after.token_type is TokenType.L_PAREN and after.start == name.end + 1
        if is_call and name.token_type is TokenType.IDENTIFIER and before.token_type is not TokenType.ALIAS:
            text = _put(text, name.start, f" {text[name.start + 1 : name.end]} ")
        if is_call and name.text == "count_star" and text[after.end + 1 : after.end + 2] == ")":
            text = _put(text, name.start, "count(*)    ")
    return text


_EQUAL = frozenset({TokenType.EQ, TokenType.NEQ})
_IN_BRACKETS = frozenset({TokenType.L_BRACKET, TokenType.COMMA})


def _without_labels(text: str, enums: Collection[str]) -> str:
    """Return a text of Postgres' with labels as the texts that they are: `(state = 'paid'::public.state)`.

    A label is its text where it is compared by equality: alone, in `= ANY (ARRAY[…])` or after WHEN. In any other place
    the type is left, and refused: labels are ordered as they were declared, and texts by their letters.
    """
    if not enums:
        return text
    tokens = tokenize(text)
    for number, (label, cast) in enumerate(itertools.pairwise(tokens)):
        if label.token_type is not TokenType.STRING or cast.token_type is not TokenType.DCOLON:
            continue
        start = cast.end + 1
        type_ = next(
            (one for one in enums if re.compile(f'{re.escape(one)}(?![\\w."[])').match(text, start)), ""
        )
        later = [token for token in tokens[number + 2 :] if token.start >= start + len(type_)]
        is_whole = bool(type_) and tokens[number + 2].start == start
        if is_whole and _is_for_equality(tokens[:number], later[0].token_type if later else None):
            text = _put(text, cast.start, " " * (start + len(type_) - cast.start))
    return text


def _is_for_equality(before: list[Token], after: TokenType | None) -> bool:
    """Say whether what stands between some tokens and a next one is compared for being equal, and nothing else."""
    if not before:
        return False
    last = before[-1].token_type
    ends = after in (
        None,
        TokenType.R_PAREN,
        TokenType.AND,
        TokenType.OR,
        TokenType.THEN,
        TokenType.SEMICOLON,
    )
    if last in _EQUAL:
        return ends
    if last is TokenType.WHEN:
        return after is TokenType.THEN
    brackets = [token.token_type for token in before if token.token_type is TokenType.L_BRACKET]
    if last not in _IN_BRACKETS or after not in (TokenType.COMMA, TokenType.R_BRACKET) or not brackets:
        return False
    opened = max(place for place, token in enumerate(before) if token.token_type is TokenType.L_BRACKET)
    words = tuple(token.text.upper() for token in before[max(0, opened - 4) : opened])
    return words in (("=", "ANY", "(", "ARRAY"), ("<>", "ALL", "(", "ARRAY"))


def _put(text: str, start: int, new: str) -> str:
    return text[:start] + new + text[start + len(new) :]


def _refuse_files(text: str, tokens: list[Token]) -> None:
    """Refuse what reads files: no snapshot covers them. Raises Refusal."""
    for name, after in itertools.pairwise(tokens):
        if _READS_FILES.fullmatch(name.text) and after.token_type is TokenType.L_PAREN:
            raise Refusal(
                f"{name.text}() reads files, which may change while a statement runs", sqlstate="0A000",
                position=place(text, name.start),
                hint='declare the files in a policy with database = "duckdb:" and source = "…", or load them',
            )  # fmt: skip


def tables_in(query: AdmittedQuery) -> list[tuple[str, str]]:
    """Return the schema ("" where none is written) and name of each table that a query names, but its own WITH."""
    own = {cte.alias for cte in query.tree.find_all(exp.CTE)}
    found = [(node.db, node.name) for node in query.tree.find_all(exp.Table)]
    return list(dict.fromkeys((schema, name) for schema, name in found if schema or name not in own))
