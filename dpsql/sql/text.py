"""The statement's text: limits, characters, where in it a tree node stands; and the statements of a script.

House rules: what a lenient parser could read in two ways is refused here, before it parses
(soundness.md 4.5): characters outside ASCII anywhere but inside quotes and comments, U& escapes, a carriage
return that ends a line for Postgres alone, a number that runs into a name, and string literals side by side.

Scripts are cut by a lexer of their own, which knows where quotes and comments are. It decides nothing about privacy:
every piece is parsed and admitted on its own afterwards, so a cut in an unexpected place can only end in a refusal.

How large a statement may be, told before work goes into it: from its characters, its tokens, its tree.

House rule: what is refused here would be refused later, or cost more than a statement may. Each check takes time in
proportion to the text; the parser does not (it tries some nested forms twice at every level), so it comes after.

What a refusal calls a piece of syntax: in the statement's own words, never in the parser's.

House rule: a name of the parser's is said only where the statement has it too, as a word; else "this form".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from ..errors import Position, Refusal
from ..records import dataclass
from ..regex import regex

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token


# --- how large a statement may be, told before work goes into it --------------------------------------------


MAX_TEXT = 65_536
"""Longest statement, in characters."""
MAX_TOKENS = 10_000
"""Most tokens: a list of constants as long as the tree may have has two for each."""
MAX_DEPTH = 60
"""Deepest nesting of the parse tree, and of brackets, and most subscripts in a row."""
MAX_NODES = 5_000
"""Most nodes of the parse tree."""
MAX_SQUARE = 6
"""Most square brackets inside each other: Postgres' arrays have no more dimensions."""
MAX_TYPED = 6
"""Most brackets inside each other that follow the name of a type."""
MAX_REPEATS = 4_096
"""Most times that a part of a form is written out: `x BETWEEN y AND z` has x twice, in another one four times."""
MAX_CTES = 100
"""Most queries in WITH, of all that a statement holds."""
MAX_JOINED = 64
"""Most tables and subqueries of one FROM."""
MAX_AGGREGATES = 200
"""Most calls of aggregates, of all that a statement holds."""
MAX_OUTPUTS = 1_664
"""Most columns of a SELECT list, as in Postgres."""

_WORD = regex(
    r"""
      (?:'[^']*+(?:'|\Z))++
    | (?:"[^"]*+(?:"|\Z))++
    | (?P<open>\$(?:[A-Za-z_]\w*+)?\$).*?(?:(?P=open)|\Z)
    | --[^\n]*+
    | /\*(?:[^*/]|\*(?!/)|/(?!\*)|/\*(?:[^*]|\*(?!/))*+\*/)*+\*/
    | \d[\w.]*+
    | \w++
    | [-+*/<>=~!@#%^&|`?:]{1,3}+
    | [^\w\s]
    """,
    re.VERBOSE | re.DOTALL,
)
"""A piece of a text: never more of them than the tokenizer makes tokens, but for comments and unusual quotes."""
_TYPES = frozenset(Postgres.Parser.TYPE_TOKENS)
_OPEN = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET}
_CLOSE = frozenset(_OPEN.values())


def too_complex(hint: str = "split it into smaller ones", position: Position | None = None) -> Refusal:
    """Return the refusal of a statement that is too large, whatever of it is."""
    return Refusal("the statement is too complex", sqlstate="54001", position=position, hint=hint)


_FEWER = f"{MAX_TOKENS} words and signs at most, {MAX_NODES} names and constants; split it into smaller ones"


def check_words(text: str) -> None:
    """Refuse a text of far too many words before it is cut into tokens. Raises Refusal (54001)."""
    if len(text) > MAX_TOKENS and sum(1 for _ in _WORD.finditer(text)) > MAX_TOKENS:
        raise too_complex(_FEWER)


def _check_tokens(tokens: Sequence[Token]) -> None:
    """Refuse too many tokens, brackets that nest too deeply, and subscripts without end. Raises Refusal (54001)."""
    if len(tokens) > MAX_TOKENS:
        raise too_complex(_FEWER)
    inside: list[
        tuple[TokenType, bool, int]
    ] = []  # what closes it, after the name of a type, subscripts before it
    squares = typed = closed = 0
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind in _OPEN:
            is_square, is_typed = kind is TokenType.L_BRACKET, before in _TYPES
            chain = closed + 1 if is_square and before is TokenType.R_BRACKET else 0
            inside.append((_OPEN[kind], is_typed, chain))
            squares, typed = squares + is_square, typed + is_typed
            if len(inside) > MAX_DEPTH or squares > MAX_SQUARE or typed > MAX_TYPED or chain > MAX_DEPTH:
                raise too_complex("nest fewer brackets inside each other")
        elif kind in _CLOSE and inside and inside[-1][0] is kind:
            _, was_typed, closed = inside.pop()
            squares, typed = squares - (kind is TokenType.R_BRACKET), typed - was_typed
        before = kind


class Counts:
    """What a tree holds of the things that cost far more to bind and to plan than they say."""

    def __init__(self) -> None:
        self.aggregates = self.ctes = 0

    def add(self, node: exp.Expr, *, is_aggregate: bool) -> None:
        """Count a node in. Raises Refusal (54001), without a place."""
        if isinstance(node, exp.Select):
            joined, outputs = len(node.args.get("joins") or ()) + 1, len(node.args.get("expressions") or ())
            if joined > MAX_JOINED:
                raise too_complex(f"{joined} tables and subqueries are joined here; {MAX_JOINED} at most")
            if outputs > MAX_OUTPUTS:
                raise too_complex(f"a SELECT list has {MAX_OUTPUTS} columns at most")
        self.ctes += isinstance(node, exp.CTE)
        self.aggregates += is_aggregate
        if self.ctes > MAX_CTES:
            raise too_complex(f"{MAX_CTES} queries in WITH at most")
        if self.aggregates > MAX_AGGREGATES:
            raise too_complex(f"{MAX_AGGREGATES} aggregates at most; ask for some of them")


# --- the statement's text -----------------------------------------------------------------------------------


_COMMENT = regex(r"--[^\n]*|/\*(?:[^*/]|\*(?!/)|/(?!\*)|/\*(?:[^*]|\*(?!/))*\*/)*\*/", re.DOTALL)
_TYPED = frozenset(
    {"BIGINT", "BOOL", "BOOLEAN", "CHAR", "DATE", "DECIMAL", "FLOAT", "INT", "INTEGER", "INTERVAL", "NUMERIC",
     "PRECISION", "REAL", "SMALLINT", "TEXT", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "VARCHAR", "ZONE"}
)  # fmt: skip
_LONE_RETURN = regex(r"\r(?!\n)")
_NAME = regex(r"[A-Za-z_]")
_FOREIGN = regex(r"[^\t\n\r\x20-\x7e]")


class PostgresAsWritten(Postgres):
    """Postgres whose places of arrays stand as they are written: sqlglot counts them down, to count from 0."""

    INDEX_OFFSET = 0


class PostgresWithParameters(PostgresAsWritten):
    """Postgres without dollar quotes: sqlglot reads `$1,$` as the tag of one, which no tag can be."""

    class Tokenizer(Postgres.Tokenizer):
        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
            **Postgres.Tokenizer.SINGLE_TOKENS,
            "$": TokenType.PARAMETER,
        }


_PARAMETER = regex(r"\$[0-9]")
_SURROGATE = regex("[\ud800-\udfff]")


def dialect_of(text: str) -> type[Postgres]:
    """Return the dialect that reads a statement: one with parameters has no dollar quotes."""
    return PostgresWithParameters if _PARAMETER.search(text) else PostgresAsWritten


def place(text: str, offset: int) -> Position:
    """Return the line and column (from 1) of a character offset."""
    start = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, start) + 1, offset - start + 1, offset)


def unquoted(name: str) -> str:
    """Return a name as Postgres reads it."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def more_statements() -> Refusal:
    """Return the refusal of a text that is more than one statement."""
    return Refusal("there is more than one statement", sqlstate="42601", hint="send one statement at a time")


def is_text(value: str) -> bool:
    """Say whether a Python string is text that SQL can hold: no zero, no half of a surrogate pair."""
    return "\x00" not in value and (value.isascii() or _SURROGATE.search(value) is None)


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a statement's text.

    Raises:
        Refusal: too long or too large (54001), not a text of SQL (42601), or one of the forms named above.
    """
    if len(text) > MAX_TEXT:
        raise Refusal(
            f"the statement has more than {MAX_TEXT} characters", sqlstate="54001", hint="write it shorter"
        )
    if not is_text(text):
        raise Refusal(
            "the statement holds a zero byte or half a character",
            sqlstate="42601",
            hint="send it as UTF-8 text",
        )
    check_words(text)
    try:
        tokens: list[Token] = dialect_of(text)().tokenize(text)
    except TokenError:
        raise Refusal(
            "the text ends inside a quote or a comment", sqlstate="42601", hint="close every quote"
        ) from None
    _check_tokens(tokens)
    _check_characters(text, tokens)
    _check_neighbours(text, tokens)
    return tokens


def _check_characters(text: str, tokens: Sequence[Token]) -> None:
    if text.isascii() and not _FOREIGN.search(text):
        return
    start = 0
    quoted = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.RAW_STRING, TokenType.HEREDOC_STRING)
    for token in [*tokens, None]:
        end = len(text) if token is None else token.start
        gap = _COMMENT.sub(lambda match: " " * len(match.group()), text[start:end])
        bad = _FOREIGN.search(gap)
        if bad is None and token is not None and token.token_type not in quoted:
            bad = _FOREIGN.search(text[token.start : token.end + 1])
            start = token.start
        if bad is not None:
            raise Refusal(
                "a character outside plain ASCII stands outside quotes",
                sqlstate="42601",
                position=place(text, start + bad.start()),
                hint="retype the spaces and quotes around it, or quote the name",
            )
        start = end if token is None else token.end + 1


def _check_neighbours(text: str, tokens: Sequence[Token]) -> None:
    strings = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING)
    quoted = [(token.start, token.end) for token in tokens if token.token_type in strings]
    for lone in _LONE_RETURN.finditer(text):
        if any(start < lone.start() < end for start, end in quoted):
            continue
        raise Refusal(
            "a carriage return stands without a line feed",
            sqlstate="42601",
            position=place(text, lone.start()),
            hint="end lines with a line feed",
        )
    for kind, string, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (
            string.token_type in strings
            and after.token_type is TokenType.DCOLON
            and kind.text.upper() in _TYPED
        ):
            # For Postgres the cast is of the typed literal, for the parser of the text inside it.
            raise Refusal(
                "a cast stands after a typed literal",
                sqlstate="42601",
                position=place(text, after.start),
                hint="put the literal in parentheses",
            )
    for left, right in itertools.pairwise([*tokens, None]):
        assert left is not None
        if _is_unicode_escape(text, left, right):
            raise Refusal(
                "U& escapes are not read here",
                sqlstate="42601",
                position=place(text, left.start),
                hint="write the character itself inside quotes",
            )
        if right is None:
            break
        if left.token_type in strings and right.token_type in strings:
            raise Refusal(
                "two string literals stand side by side",
                sqlstate="42601",
                position=place(text, right.start),
                hint="join them with ||",
            )
        if left.token_type is TokenType.NUMBER and right.start == left.end + 1 and _NAME.match(right.text):
            raise Refusal(
                "a number runs into a name",
                sqlstate="42601",
                position=place(text, left.start),
                hint="put a space between them",
            )


def _is_unicode_escape(text: str, left: Token, right: Token | None) -> bool:
    if left.token_type is TokenType.UNICODE_STRING:
        return True
    is_u = right is not None and left.text in ("u", "U")
    return is_u and text[left.end + 1 : left.end + 3] in ("&'", '&"')


def blank_prefix(text: str, end: int) -> str:
    """Return the text with everything before `end` blanked, so that positions stay true."""
    return re.sub(r"[^\n]", " ", text[:end]) + text[end:]


_FIRST = "first"
"""Where a tree node keeps the first start of what it holds, once that is known; -1: none is known."""


def mark_starts(nodes: Sequence[exp.Expr]) -> None:
    """Have every node of a tree know where it starts, so that no search does. `nodes`: parents before children."""
    for node in reversed(nodes):
        own, parent = node.meta, node.parent
        first, start = own.get(_FIRST, -1), own.get("start", -1)
        if first < 0 or 0 <= start < first:
            first = start
        own[_FIRST] = first
        if parent is not None and first >= 0:
            above = parent.meta.get(_FIRST, -1)
            if above < 0 or first < above:
                parent.meta[_FIRST] = first


def position_of(text: str, node: exp.Expr | None) -> Position | None:
    """Return where a node starts: its own token, or the first that is known below it, or above it."""
    above = node
    while above is not None:
        start = _start(above, is_whole=above is node)
        if start >= 0:
            return place(text, start)
        above = above.parent
    return None


def _start(node: exp.Expr, *, is_whole: bool) -> int:
    """Return where a node starts, or also what it holds; -1 where that is not known."""
    meta = node._meta or {}
    if not is_whole:
        return int(meta.get("start", -1))
    if _FIRST in meta:
        return int(meta[_FIRST])
    return min(
        (below._meta["start"] for below in node.walk() if below._meta and "start" in below._meta), default=-1
    )


# --- scripts ------------------------------------------------------------------------------------------

_MARK = regex(
    r"""
      (?<![\w$])[eE]'(?:\\.|''|[^'\\])*(?:'|\Z)     # escape string
    | '(?:''|[^'])*(?:'|\Z)                          # string
    | "(?:""|[^"])*(?:"|\Z)                          # quoted name
    | (?<![\w$])\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)  # dollar-quoted string
    | (?P<line>--[^\n]*)
    | (?P<block>/\*)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = regex(r"/\*|\*/")
_CONSTANT = regex(
    r"""
      '(?P<string>(?:''|[^'])*)'
    | [eE]'(?P<escaped>[^'\\]*)'
    | "(?P<quoted>(?:""|[^"])+)"
    | (?P<number>[+-]?\s*+(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?!\w)
    | (?P<word>[A-Za-z_][\w$]*)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement without its semicolon; `start` is where `text` begins in the script, in characters.

    `bare`: the text with a blank for every character of a comment; nothing else moves.
    """

    text: str
    start: int
    bare: str


def split_statements(script: str) -> list[ScriptStatement]:
    """Return the statements of `script` in order; pieces of blank space and comments alone are dropped.

    >>> [s.text for s in split_statements("SELECT ';'; -- a;b\\nSHOW x")]
    ["SELECT ';'", 'SHOW x']
    """
    bare, ends = _read(script)
    pieces = list[ScriptStatement]()
    begin = 0
    for end in [*ends, len(script)]:
        code = bare[begin:end]
        start = begin + len(code) - len(code.lstrip())
        if start < end:
            text = script[start:end].rstrip()
            pieces.append(ScriptStatement(text, start, bare[start : start + len(text)]))
        begin = end + 1
    return pieces


def ends_statement(script: str) -> bool:
    """Return whether the typed text is complete: nothing but blanks and comments after the last semicolon."""
    bare, ends = _read(script)
    return bool(ends) and not bare[ends[-1] + 1 :].strip() and bool(bare.replace(";", " ").strip())


def read_constant(text: str, at: int) -> tuple[str, str, int] | None:
    """Return the kind, the value and the end of a constant at a place of a text without comments; None: there is none.

    A string, an escaped one (without escapes), a quoted name, a number, or a word, which is in lower case then.
    """
    match = _CONSTANT.match(text, at)
    if match is None:
        return None
    kind = str(match.lastgroup)
    value = match[kind]
    if kind in ("string", "quoted"):
        quote = text[at]
        value = value.replace(2 * quote, quote)
    elif kind == "number":
        value = "".join(value.split()).lstrip("+")
    elif kind == "word":
        value = value.lower()
    return kind, value, match.end()


def _read(script: str) -> tuple[str, list[int]]:
    """Return the script without its comments, and where the semicolons between statements stand."""
    pieces, ends, at, copied = list[str](), list[int](), 0, 0
    while found := _MARK.search(script, at):
        start, at, kind = found.start(), found.end(), found.lastgroup
        if kind == "end":
            ends.append(start)
        elif kind in ("line", "block"):
            at = at if kind == "line" else _after_comment(script, start)
            pieces += [script[copied:start], re.sub(r"[^\n]", " ", script[start:at])]
            copied = at
    return "".join([*pieces, script[copied:]]), ends


def _after_comment(script: str, start: int) -> int:
    """Return the place after a block comment, which nests in Postgres; the end when it never closes."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(script, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(script)


# --- what a refusal calls a piece of syntax: in the statement's own words, never in the parser's ------------


_SAID: dict[type[exp.Expr], str] = {
    exp.Command: "this kind of statement",
    exp.TableSample: "TABLESAMPLE",
    exp.Lateral: "LATERAL",
    exp.WithinGroup: "WITHIN GROUP",
    exp.Qualify: "QUALIFY",
    exp.Lock: "FOR UPDATE and FOR SHARE",
    exp.RegexpLike: "regular expressions (~)",
    exp.SimilarTo: "SIMILAR TO",
    exp.Into: "SELECT INTO",
    exp.BitString: "a text of bits",
    exp.HexString: "an X'' string",
    exp.National: "an N'' string",
    exp.Dot: "a name in parts (x.y)",
    exp.CurrentUser: "CURRENT_USER",
    exp.SessionUser: "SESSION_USER",
    exp.CurrentCatalog: "CURRENT_CATALOG",
    exp.Bracket: "a subscript […]",
    exp.Array: "an array",
    exp.Struct: "a value of several fields {…}",
    exp.Tuple: "a row of values (…, …)",
    exp.Lambda: "a function as an argument",
    exp.Kwarg: "a named argument",
    exp.Placeholder: "a placeholder other than $1, $2, …",
    exp.ObjectIdentifier: "a cast to the name of an object",
    exp.ColumnDef: "a column with its type in FROM",
    exp.Star: "*",
    **dict.fromkeys((exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract), "JSON (->, ->>)"),
    exp.JSONBContainsTopKey: "the operator ?",
    exp.JSONBContainsAnyTopKeys: "the operator ?|",
    exp.JSONBContainsAllTopKeys: "the operator ?&",
    exp.JSONBDeleteAtPath: "the operator #-",
    exp.MatchAgainst: "the operator @@",
    exp.JSONBPathExists: "the operator @?",
    exp.RegexpILike: "regular expressions (~*)",
}

_PARSER = frozenset({"this", "expression", "expressions", "kind"})
_UNNAMED = "this form"
_CALL = regex(r"([A-Za-z_][\w$]*)\s*\(")
_OPENED = regex(r"([A-Za-z_][\w$]*)\s*\(\s*(?:DISTINCT\s+)?$", re.IGNORECASE)


def said_of(node: exp.Expr, text: str) -> str:
    """Return what to call a node: a function by its name as written, or the word that stands for it."""
    if isinstance(node, exp.Anonymous):
        return f"{node.name}()"
    position = position_of(text, node)
    if isinstance(node, exp.Func) and position is not None:
        written = _CALL.match(text, position.offset)
        is_own = written is not None and _is_name_of(written[1], node)
        # An operator begins with its left side, which may be another's call.
        if written is not None and (is_own or not (isinstance(node, exp.Binary) or type(node) in _SAID)):
            return f"{written[1]}()"
        around = _OPENED.search(text, 0, position.offset)
        is_mine = around is not None and not (isinstance(node, exp.Binary) or _is_inside(around[1], node))
        if around is not None and is_mine and type(node) not in _SAID:
            return f"{around[1]}()"
    return _SAID.get(type(node)) or _if_written(node.key, text)


def _is_name_of(word: str, node: exp.Func) -> bool:
    return word.upper() in node.sql_names() or word.replace("_", "").lower() == node.key


def _is_inside(word: str, node: exp.Expr) -> bool:
    """Say whether a call of that name is around a node."""
    above = node.parent
    while above is not None:
        if isinstance(above, exp.Func) and _is_name_of(word, above):
            return True
        above = above.parent
    return False


def said_of_clause(name: str, value: object, text: str) -> str:
    """Return what to call an argument of a node, by its value or by its name."""
    if isinstance(value, exp.Expr) and type(value) in _SAID and not isinstance(value, exp.Tuple):
        return _SAID[type(value)]
    return _if_written(name.rstrip("_").replace("_", " "), text)


def _if_written(name: str, text: str) -> str:
    is_written = all(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for word in name.split())
    return name.upper() if is_written and name not in _PARSER else _UNNAMED
