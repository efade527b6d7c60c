"""The tokens of a catalog query as sqlglot's parser is to see them.

sqlglot makes nodes of its own from many names and operators, and reads some as another dialect means them. So it does
not see them: every name is a quoted one in lower case already, a function's or a type's name is one that no text can
hold outside quotes, an operator that it has no word for is OPERATOR(…), and `type 'text'` is the cast that it means.
What is left to it is the grammar. (Its classes are compiled and cannot be inherited from.)

Operators bind as in Postgres, but that || is tighter than OPERATOR(…): who needs it otherwise has parentheses.
"""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import Token, TokenType

from ..sql.size import MAX_DEPTH
from .errors import unsupported
from .pg_types import CHAR, SPELLED
from .read_relation import SCHEMAS

__all__ = ["HIDDEN", "TokenReader"]

HIDDEN = "called "
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
_RUN = re.compile(r"(?:(?!--|/\*)[-+*/<>=~!@#%^&|`?]){1,63}")
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


class TokenReader:
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
            self._put(TokenType.VAR, HIDDEN + name)
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
        self._put(TokenType.VAR, HIDDEN + name, taken)
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
            self._put(TokenType.VAR, HIDDEN + word)
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
            self._put(TokenType.VAR, HIDDEN + word)
            self._put(TokenType.L_PAREN, "(", 0)
            self._put(TokenType.R_PAREN, ")", 0)
        elif word in _TYPED and self._is(TokenType.STRING):
            self._put(TokenType.STRING, self.tokens[self.at + 1].text, 2)
            self._put(TokenType.DCOLON, "::", 0)
            self._put(TokenType.VAR, HIDDEN + SPELLED.get(word, word), 0)
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
