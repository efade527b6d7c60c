"""A catalog query's text to sqlglot's tree, nothing in it that the binder does not read, and what its nodes say.

The tokens of a catalog query as sqlglot's parser is to see them.

sqlglot makes nodes of its own from many names and operators, and reads some as another dialect means them. So it does
not see them: every name is a quoted one in lower case already, a function's or a type's name is one that no text can
hold outside quotes, an operator that it has no word for is OPERATOR(…), and `type 'text'` is the cast that it means.
What is left to it is the grammar. (Its classes are compiled and cannot be inherited from.)

Operators bind as in Postgres, but that || is tighter than OPERATOR(…): who needs it otherwise has parentheses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from ..records import dataclass
from ..regex import regex
from ..sql.text import MAX_DEPTH, MAX_NODES, MAX_TEXT, PostgresAsWritten, dialect_of, is_text
from .errors import CatalogRefusal, unsupported
from .objects import SCHEMAS
from .pg_types import CHAR, SPELLED

# --- the tokens of a catalog query as sqlglot's parser is to see them ---------------------------------------


_HIDDEN = "called "
"""What stands before the name of a function or a type: no name has it that is not quoted."""
_WORDS = frozenset(
    {"all", "and", "any", "array", "as", "asc", "at", "between", "both", "case", "cross", "desc", "distinct", "else",
     "end", "escape", "except", "false", "fetch", "filter", "first", "for", "from", "full", "group by", "having",
     "ilike", "in", "inner", "intersect", "into", "is", "isnull", "join", "last", "lateral", "leading", "left",
     "like", "limit", "materialized", "natural", "next", "not", "notnull", "null", "nulls", "offset", "on", "only",
     "or", "order by", "ordinality", "outer", "over", "partition by", "recursive", "right", "row", "rows", "select",
     "similar to", "some", "symmetric", "table", "then", "time", "trailing", "true", "union", "using", "variadic",
     "when", "where", "window", "with", "within", "zone"}
)  # fmt: skip
"""Words of the grammar, wherever they stand but after AS or a point."""
_RESERVED = frozenset(
    {"check", "constraint", "create", "default", "foreign", "grant", "group", "order", "overlaps", "placing", "primary",
     "references", "returning", "similar", "unique"}
)  # fmt: skip
"""Words that are no names, and in no form that is read."""
_FORMS = frozenset({"cast", "exists", "position", "substring", "trim", "values"})
"""Words of the grammar before a parenthesis."""
_CALLED = frozenset({"array", "left", "right", "row"})
"""Words of the grammar that are a function's name before a parenthesis."""
_BARE = frozenset(
    {"current_user", "session_user", "user", "current_role", "current_catalog", "current_schema", "current_date",
     "current_timestamp", "localtimestamp"}
)  # fmt: skip
_TYPED = frozenset(
    {"interval", "date", "timestamp", "text", "regclass", "regtype", "bool", "boolean", "name", "oid"}
)
_SIGNS = frozenset("-+*/<>=~!@#%^&|`?")
_RUN = regex(r"(?:(?!--|/\*)[-+*/<>=~!@#%^&|`?]){1,63}")
_MAY_END_IN_SIGN = frozenset("~!@#%^&|`?")
_OPERATORS = {
    "=": TokenType.EQ, "<>": TokenType.NEQ, "!=": TokenType.NEQ, "<": TokenType.LT, ">": TokenType.GT,
    "<=": TokenType.LTE, ">=": TokenType.GTE, "+": TokenType.PLUS, "-": TokenType.DASH, "*": TokenType.STAR,
    "/": TokenType.SLASH, "%": TokenType.MOD, "^": TokenType.CARET, "||": TokenType.DPIPE,
}  # fmt: skip
_COMPARED = frozenset({*_OPERATORS.values(), TokenType.R_PAREN, TokenType.LIKE, TokenType.ILIKE})
"""What ANY and ALL may stand after, where they are no words of SELECT and UNION."""
_STRINGS = frozenset({TokenType.STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING})
_FOREIGN = frozenset(
    {TokenType.NATIONAL_STRING, TokenType.UNICODE_STRING, TokenType.RAW_STRING, TokenType.BIT_STRING,
     TokenType.HEX_STRING}
)  # fmt: skip
_AS_THEY_ARE = frozenset(
    {TokenType.NUMBER, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.L_BRACKET, TokenType.R_BRACKET,
     TokenType.COMMA, TokenType.DOT, TokenType.COLON, TokenType.SEMICOLON}
)  # fmt: skip
_INDEXED = frozenset(
    {TokenType.IDENTIFIER, TokenType.VAR, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.ARRAY, TokenType.NUMBER}
)  # fmt: skip
_OPENING = frozenset(
    {None, TokenType.ALIAS, TokenType.COMMA, TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.SELECT, TokenType.FROM,
     TokenType.ORDER_BY, TokenType.GROUP_BY, TokenType.WHERE, TokenType.VALUES}
)  # fmt: skip
_BEFORE_NAME = frozenset({TokenType.ALIAS, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER})
_BEFORE_JOIN = frozenset(
    {TokenType.INNER, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.OUTER, TokenType.CROSS,
     TokenType.NATURAL}
)  # fmt: skip


class _TokenReader:
    """Reads a text's tokens, from `at` on; `found` are those for the parser."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text, self.tokens, self.at, self.found = text, tokens, 0, list[Token]()
        self.casts: list[bool] = []  # of every open parenthesis: whether it is a CAST's

    def read(self) -> list[Token]:
        """Return the tokens for the parser. Raises CatalogRefusal: a form that is not read."""
        while (token := self._peek(0)) is not None:
            kind = token.token_type
            if kind in _AS_THEY_ARE:
                self._take(token)
            elif kind in _FOREIGN or not (token.text or kind in _STRINGS):
                raise unsupported("a string or a name of that kind")
            elif kind in _STRINGS:
                if self._before in _BEFORE_NAME:
                    raise unsupported("a string where a name or an operator stands")
                self._put(TokenType.STRING, token.text)
            elif kind is TokenType.DCOLON:
                self._put(kind, "::")
                self._type()
            elif kind is TokenType.IDENTIFIER:
                self._name(token.text)
            elif kind is TokenType.PARAMETER and token.text == "$":
                self._put(kind, "$")
            elif token.text[0] in _SIGNS:
                self._operator(self._signs())
            elif token.text[0].isalpha() or token.text[0] == "_":
                self._word(" ".join(token.text.lower().split()))
            else:
                raise unsupported("a character that begins no word")
        self._no_comma()
        return self.found

    @property
    def _before(self) -> TokenType | None:
        return self.found[-1].token_type if self.found else None

    def _peek(self, ahead: int) -> Token | None:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else None

    def _is(self, kind: TokenType, ahead: int = 1) -> bool:
        token = self._peek(ahead)
        return token is not None and token.token_type is kind

    def _put(self, kind: TokenType, text: str, taken: int = 1) -> None:
        """Give the parser a token in the place of the next `taken` ones."""
        at = self.tokens[min(self.at, len(self.tokens) - 1)]
        self.found.append(Token(kind, text, at.line, at.col, at.start, at.end))
        self.at += taken

    def _take(self, token: Token) -> None:
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            self.casts.append(len(self.found) > 0 and self.found[-1].text == "cast")
            if len(self.casts) > MAX_DEPTH:
                raise unsupported("a query nested too deep")
        elif kind is TokenType.R_PAREN:
            self._no_comma()
            del self.casts[-1:]
        elif kind is TokenType.L_BRACKET and self._before not in _INDEXED:
            raise unsupported("a bracket where a value begins")
        elif kind is TokenType.COMMA and (
            self._before in _OPENING or self.found[-2:][0].token_type is TokenType.LIMIT
        ):
            raise unsupported("a comma that stands between no two items")
        self._put(kind, token.text)

    def _no_comma(self) -> None:
        if self._before is TokenType.COMMA:
            raise unsupported("a comma with nothing after it")

    # --- operators ------------------------------------------------------------------------------------------

    def _signs(self) -> str:
        """Take the signs of one operator: + and - end one as in Postgres."""
        token = self._peek(0)
        run = None if token is None else _RUN.match(self.text, token.start)
        if run is None:
            raise unsupported("an operator expected")
        kept = run.group()
        if not _MAY_END_IN_SIGN.intersection(kept):
            kept = kept[0] + kept[1:].rstrip("+-")
        while self.at < len(self.tokens) and self.tokens[self.at].start < run.start() + len(kept):
            self.at += 1
        return kept

    def _operator(self, text: str) -> None:
        if text == "=>":
            raise unsupported("a named argument")
        kind = _OPERATORS.get(text)
        if kind is not None:
            self._put(kind, text, 0)
            return
        self._put(TokenType.OPERATOR, "operator", 0)
        self._put(TokenType.L_PAREN, "(", 0)
        self._put(TokenType.VAR, text, 0)
        self._put(TokenType.R_PAREN, ")", 0)

    def _named_operator(self) -> None:
        self.at += 2
        self._skip_schema()
        operator = self._signs()
        if not self._is(TokenType.R_PAREN, 0):
            raise unsupported("an operator expected")
        self._operator(operator)
        self.at += 1

    # --- names, types, words ----------------------------------------------------------------------------------

    def _skip_schema(self) -> None:
        while self._is(TokenType.DOT):
            self.at += 2

    def _name(self, name: str) -> None:
        """Take a name: a function's or an item's before a parenthesis."""
        is_path = name in SCHEMAS and self._is(TokenType.DOT) and self._is(TokenType.L_PAREN, 3)
        if self._is(TokenType.L_PAREN) and self._before is not TokenType.ALIAS:
            self._put(TokenType.VAR, _HIDDEN + name)
        elif is_path and self._before is not TokenType.DOT:
            self.at += 2
        else:
            self._put(TokenType.IDENTIFIER, name)

    def _type(self) -> None:
        self._skip_schema()
        token = self._peek(0)
        if token is None or not token.text or token.token_type in _STRINGS:
            raise unsupported("a type expected")
        name, taken = token.text, 1
        if token.token_type is TokenType.IDENTIFIER:
            name = CHAR.name if name == "char" else name
        else:
            name = " ".join(name.lower().split())
            zoned = " ".join(
                [name, *(found.text.lower() for found in self.tokens[self.at + 1 : self.at + 4])]
            )
            if zoned in SPELLED:
                name, taken = zoned, 4
            name = SPELLED.get(name, name)
        self._put(TokenType.VAR, _HIDDEN + name, taken)
        if (
            self._is(TokenType.L_BRACKET, 0)
            and self._is(TokenType.NUMBER)
            and self._is(TokenType.R_BRACKET, 2)
        ):
            self._put(TokenType.L_BRACKET, "[", 2)

    def _word(self, word: str) -> None:
        before, is_called = self._before, self._is(TokenType.L_PAREN)
        if before is TokenType.NUMBER and self.tokens[self.at - 1].end + 1 == self.tokens[self.at].start:
            raise unsupported("a number that runs into a name")
        if before is TokenType.DOT:
            self._name(word)
        elif before is TokenType.ALIAS:
            self._after_as(word)
        elif word in _WORDS and not (is_called and self._is_call(word)):
            self._keyword(word)
        elif is_called and word in _FORMS:
            self._put(self.tokens[self.at].token_type, word)
        elif is_called and word == "extract" and self._is(TokenType.FROM, 3):
            self._put(TokenType.VAR, _HIDDEN + word)
            self._take(self.tokens[self.at])
            self._put(TokenType.STRING, self.tokens[self.at].text.lower())
            self._put(TokenType.COMMA, ",")
        elif is_called and word == "operator":
            self._named_operator()
        elif word == "collate":
            self.at += 1
            self._skip_schema()
            self.at += 1
        elif word in _BARE and not is_called:
            self._put(TokenType.VAR, _HIDDEN + word)
            self._put(TokenType.L_PAREN, "(", 0)
            self._put(TokenType.R_PAREN, ")", 0)
        elif word in _TYPED and self._is(TokenType.STRING):
            self._put(TokenType.STRING, self.tokens[self.at + 1].text, 2)
            self._put(TokenType.DCOLON, "::", 0)
            self._put(TokenType.VAR, _HIDDEN + SPELLED.get(word, word), 0)
        elif word == "unknown" and before in (TokenType.IS, TokenType.NOT):
            self._put(TokenType.NULL, "null")
        elif word in _RESERVED:
            raise unsupported("a word of the grammar")
        else:
            self._name(word)

    def _is_call(self, word: str) -> bool:
        """Say whether a word of the grammar is a function's name, before a parenthesis."""
        return self._before in _COMPARED if word in ("any", "some", "all") else word in _CALLED

    def _after_as(self, word: str) -> None:
        """Take a CAST's type, what is said of a query of WITH, or a name."""
        ahead = 2 if word == "not" else 1
        if self.casts and self.casts[-1]:
            self._type()
        elif self.tokens[self.at + ahead - 1].text.lower() == "materialized" and self._is(
            TokenType.L_PAREN, ahead
        ):
            self._keyword(word)
        else:
            self._put(TokenType.IDENTIFIER, word)

    def _keyword(self, word: str) -> None:
        kind = self.tokens[self.at].token_type
        if kind is TokenType.FROM:
            self._no_comma()
        if kind is TokenType.JOIN and self._before not in _BEFORE_JOIN:
            self._put(TokenType.INNER, "inner", 0)
        self._put(kind, word)


# --- what sqlglot's nodes say, as the binder asks it --------------------------------------------------------


_OWN_CLAUSES = ("order", "limit", "offset", "with_")
_SIDES = {"LEADING": "ltrim", "TRAILING": "rtrim"}


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as it is written, by its name in pg_type."""

    name: str
    modifiers: tuple[int, ...] = ()
    is_array: bool = False


@dataclass(frozen=True, slots=True)
class CallNode:
    """A function's call."""

    name: str
    arguments: tuple[exp.Expr, ...] = ()
    is_star: bool = False
    is_distinct: bool = False
    order: Sequence[exp.Ordered] = ()
    filter: exp.Expr | None = None
    window: exp.Window | None = None


def name_of(node: object) -> str:
    """Return an identifier's name. Raises CatalogRefusal: it is none."""
    if isinstance(node, (exp.Identifier, exp.Anonymous, exp.Var)) and isinstance(node.this, str):
        return node.this if node.args.get("quoted") else node.this.removeprefix(_HIDDEN).lower()
    raise unsupported("a name expected")


def parts_of(node: exp.Column) -> tuple[str, ...]:
    """Return the names of a column; the last is "" for *."""
    found = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
    return tuple("" if isinstance(part, exp.Star) else name_of(part) for part in found if part is not None)


def alias_of(node: exp.Expr) -> tuple[str | None, tuple[str, ...]]:
    """Return the alias of an item of FROM or WITH, and its columns' names."""
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return None, ()
    name = alias.args.get("this")
    return None if name is None else name_of(name), tuple(map(name_of, alias.args.get("columns") or ()))


def inner(node: exp.Expr) -> exp.Expr:
    """Return what stands in parentheses that mean nothing."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def digits_of(node: exp.Expr) -> str | None:
    """Return the digits of a whole number that is written; None of any other node."""
    is_number = isinstance(node, exp.Literal) and not node.is_string
    return node.name if is_number and node.name.isdigit() else None


def is_query(node: object) -> bool:
    """Say whether a node is a query; VALUES is none to the parser."""
    return isinstance(node, (exp.Query, exp.Values))


def plain(query: exp.Expr) -> exp.Expr:
    """Return a query without its alias, and without parentheses that mean nothing."""
    while isinstance(query, exp.Subquery) and not any(query.args.get(name) for name in _OWN_CLAUSES):
        query = query.this
    return query


def sort_keys(node: exp.Expr) -> Sequence[exp.Ordered]:
    """Return the items of ORDER BY of a query or a window."""
    order = node.args.get("order")
    return () if order is None else order.expressions


def type_of(node: exp.Expr) -> TypeName:
    """Return the type of a cast. Raises CatalogRefusal: it is none that is read."""
    is_array = False
    while isinstance(node, exp.DataType) and node.this is exp.DType.ARRAY:
        node, is_array = node.expressions[0], True
    if not isinstance(node, exp.DataType) or node.this is not exp.DType.USERDEFINED:
        raise unsupported("a type expected")
    found = [part.name for part in node.expressions]
    if not all(text.isdigit() and len(text) < 9 for text in found):
        raise unsupported("a type's modifier")
    return TypeName(str(node.args["kind"].this).removeprefix(_HIDDEN), tuple(map(int, found)), is_array)


def call_of(node: exp.Expr) -> CallNode | None:
    """Return a node as a call; None where it is none. Raises CatalogRefusal: a call of a form that is not read."""
    window = node if isinstance(node, exp.Window) else None
    if window is not None:
        node = inner(window.this)
    condition = None
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    if isinstance(node, exp.Anonymous):
        return _anonymous(node, condition, window)
    read = _CALLS.get(type(node))
    found = None if read is None else read(node)
    if (window is not None or condition is not None) and found is None:
        raise unsupported("a window over something else than a function")
    return found


def _call(name: str, *parts: exp.Expr | None) -> CallNode:
    return CallNode(name, tuple(part for part in parts if part is not None))


def _trim(node: exp.Trim) -> CallNode:
    name = _SIDES.get(str(node.args.get("position")).upper(), "btrim")
    return _call(name, node.this, node.args.get("expression"))


def _substring(node: exp.Substring) -> CallNode:
    start, length = node.args.get("start"), node.args.get("length")
    first = exp.Literal.number(1) if start is None and length is not None else start
    return _call("substring", node.this, first, length)


_CALLS: dict[type[exp.Expr], Callable[[Any], CallNode]] = {
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.StrPosition: lambda node: _call("position", node.this, node.args["substr"]),
    exp.AtTimeZone: lambda node: _call("timezone", node.args["zone"], node.this),
}
"""Kind of node with words of its own -> the call that it is."""


def _anonymous(node: exp.Anonymous, condition: exp.Expr | None, window: exp.Window | None) -> CallNode:
    arguments, is_distinct = list(node.expressions), False
    order: Sequence[exp.Ordered] = ()
    if arguments and isinstance(arguments[-1], exp.Order):
        order, arguments[-1] = arguments[-1].expressions, arguments[-1].this
    if arguments and isinstance(arguments[0], exp.Distinct):
        is_distinct, arguments = True, [*arguments[0].expressions, *arguments[1:]]
    is_star = len(arguments) == 1 and isinstance(arguments[0], exp.Star)
    found = [part.this if isinstance(part, exp.Variadic) else part for part in arguments]
    return CallNode(
        name_of(node), () if is_star else tuple(found), is_star, is_distinct, order, condition, window
    )


# --- the name that Postgres gives to a column of a result without an alias ----------------------------


def output_name(expression: exp.Expr) -> str:
    """Return the name of a column."""
    return _name(expression)[0]


_Name = tuple[str, int]
"""A name, and how good it is: 2 for a column's or function's, 1 for a type's, 0 for none."""


def _name(expression: exp.Expr) -> _Name:
    """Return a name, and how good it is."""
    node = inner(expression)
    read = _NAMES.get(type(node))
    return _of_call(node) if read is None else read(node)


def _of_call(node: exp.Expr) -> _Name:
    call = call_of(node)
    return ("?column?", 0) if call is None else (call.name, 2)


def _of_field(node: exp.Dot) -> _Name:
    is_field = isinstance(node.expression, exp.Identifier)
    return (name_of(node.expression), 2) if is_field else _of_call(node)


def _of_cast(node: exp.Cast) -> _Name:
    name, strength = _name(node.this)
    return (name, strength) if strength > 1 else (type_of(node.args["to"]).name.strip('"'), 1)


def _of_case(node: exp.Case) -> _Name:
    default = node.args.get("default")
    name, strength = _name(default) if default is not None else ("", 0)
    return (name, strength) if strength > 1 else ("case", 1)


_NAMES: dict[type[exp.Expr], Callable[[Any], _Name]] = {
    exp.Column: lambda node: (parts_of(node)[-1], 2),
    exp.Dot: _of_field,
    exp.Bracket: lambda node: _name(node.this),
    exp.Cast: _of_cast,
    exp.Case: _of_case,
    exp.Subquery: lambda node: (_of_query(node.this), 2),
    exp.Tuple: lambda node: ("row", 2),
    **dict.fromkeys((exp.Array, exp.Exists), lambda node: (node.key, 2)),
}
"""Kind of node -> the name of a column that is one."""


def _of_query(query: exp.Expr) -> str:
    while isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.Select) and query.expressions:
        first = query.expressions[0]
        return name_of(first.args["alias"]) if isinstance(first, exp.Alias) else output_name(first)
    return "?column?"


# --- a catalog query's text to sqlglot's tree, and nothing in it that the binder does not read --------------


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
        tokens = _TokenReader(text, tokens).read()
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
