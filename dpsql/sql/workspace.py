"""Statements that write an analyst's own tables: text -> one value of a kind of its own.

CREATE TABLE … AS, CREATE TABLE, CREATE VIEW, SELECT … INTO, INSERT, DELETE, TRUNCATE, ALTER … RENAME, DROP, CREATE
SCHEMA; and what tools send beside them and there is nothing of here (CREATE INDEX, ANALYZE, COMMENT).

House rules:

1. Their heads are read word by word, here; a query in one is cut out of the text, with blanks in the place of all else,
   and read, admitted and bound as if it stood alone. So nothing of it is judged otherwise than alone.
2. A word that is not read is refused. None is passed over.

Rows that a client sends: INSERT … VALUES of constants and parameters alone, read without a parser.

`INSERT INTO t (a, b) VALUES (1, 'x'), ($1, NULL)`: thousands of rows in one statement are what tools send, far more
than a statement's tree may hold. Each value is read as its column's type, as Postgres reads a constant of no type.

House rule: what is not one of these forms, to its last character, is no such statement, and is read as any other.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from ..errors import Position, Refusal
from ..records import dataclass
from ..regex import regex
from ..relation.expressions import Expr, Literal
from ..relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    JSON,
    JSONB,
    NULL,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    Kind,
    SqlType,
    numeric,
)
from .literals import Awaited, cast_literal, coerce_literal, exact_value, number_literal, parameter_literal
from .text import blank_prefix, is_text, more_statements, place, split_statements, tokenize, unquoted

_Read = TypeVar("_Read")

LONGEST_NAME = 127
WRITES = frozenset(
    {"create", "drop", "alter", "insert", "delete", "truncate", "analyze", "analyse", "comment"}
)
"""First words of what is read here; SELECT … INTO is found by `into_query`."""


@dataclass(frozen=True, slots=True)
class ObjectName:
    """A name as it is written: schema "" for none; of the database before it, `database` "" for none."""

    schema: str
    name: str
    position: Position | None = None
    database: str = ""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True, slots=True)
class WrittenQuery:
    """A query in such a statement: its text, blank where other words stood, so that its places are the statement's."""

    text: str


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column of CREATE TABLE."""

    name: str
    type: SqlType
    not_null: bool = False


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A table: of a query's rows, under `names` where some are written, or without rows, of `columns`.

    `has_rows`: WITH NO DATA was not said. `drops`: a temporary one goes at the end of its block.
    """

    name: ObjectName
    query: WrittenQuery | None
    names: tuple[str, ...] = ()
    columns: tuple[NewColumn, ...] = ()
    is_temporary: bool = False
    may_exist: bool = False
    has_rows: bool = True
    drops: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    """A view: a text that stands for itself wherever its name does."""

    name: ObjectName
    query: WrittenQuery
    names: tuple[str, ...] = ()
    is_temporary: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """A schema of one's own."""

    name: ObjectName
    may_exist: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """Tables, views or schemas go; `what` is TABLE, VIEW, SCHEMA or INDEX."""

    what: str
    names: tuple[ObjectName, ...]
    may_lack: bool = False
    cascades: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """A table or view, or (`column`) a column of one, gets another name."""

    what: str
    name: ObjectName
    new: str
    column: str = ""
    may_lack: bool = False


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A table gets a column, NULL in its rows."""

    name: ObjectName
    column: NewColumn
    may_lack: bool = False
    may_exist: bool = False


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows come into a table, into `names` of its columns where some are written: of a query, or as they are `sent`."""

    name: ObjectName
    query: WrittenQuery | None
    names: tuple[str, ...] = ()
    sent: SentRows | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Rows of a table go; `query`: those that stay."""

    name: ObjectName
    query: WrittenQuery | None


@dataclass(frozen=True, slots=True)
class Truncate:
    """All rows of tables go."""

    names: tuple[ObjectName, ...]


@dataclass(frozen=True, slots=True)
class Nothing:
    """What there is nothing of here, for tables of one's own alone: an index, statistics, a comment."""

    tag: str
    name: ObjectName | None


WorkspaceStatement = (
    CreateTable | CreateView | CreateSchema | Drop | Rename | AddColumn | Insert | Delete | Truncate | Nothing
)


def read_workspace_statement(text: str) -> WorkspaceStatement:
    """Return what a statement that begins with one of `WRITES` asks for.

    Raises:
        Refusal: 42601 for one that is not written right, 0A000 for a form that is not done here, as `tokenize` does.
    """
    start = re.match(r"\W*(\w+)", _without_comments(text))
    assert start is not None
    words = _Words(text, start[1].lower(), start.end())
    return _HEADS[words.first](words)


def read_sent(text: str) -> Insert | None:
    """Return an INSERT of constants alone, however many; None for any other text. Raises Refusal: 42601."""
    sent = read_sent_rows(text)
    if sent is None:
        return None
    database, schema, name = ["", "", *sent.table][-3:]
    return Insert(ObjectName(schema, name, place(text, sent.start), database), None, sent.names, sent)


def _without_comments(text: str) -> str:
    tokens = tokenize(text)
    return text if not tokens else blank_prefix(text, tokens[0].start)


def into_query(text: str, tokens: Sequence[Token]) -> CreateTable | None:
    """Return what SELECT … INTO makes, None for a query without INTO. Raises Refusal: 42601."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        elif token.token_type is TokenType.INTO and not depth:
            words = _Words(text, "select", token.end + 1, tokens[index + 1 :])
            is_temporary = words.takes("temporary") or words.takes("temp")
            words.takes("unlogged")
            words.takes("table")
            name = words.name()
            cut = re.sub(r"[^\n]", " ", text[token.start : words.done])
            query = WrittenQuery(text[: token.start] + cut + text[words.done :])
            return CreateTable(name, query, is_temporary=is_temporary)
    return None


# --- words ------------------------------------------------------------------------------------------------


class _Words:
    """The tokens of a statement after its first word, one after another."""

    def __init__(self, text: str, first: str, start: int, tokens: Sequence[Token] | None = None) -> None:
        self.text, self.first = text, first
        found = tokenize(blank_prefix(text, start)) if tokens is None else tokens
        kinds = [token.token_type is TokenType.SEMICOLON for token in found]
        if any(ends and not all(kinds[index:]) for index, ends in enumerate(kinds)):
            raise more_statements()
        self._tokens = [one for token in found for one in _single(token, text)]
        self._at = 0
        self.done = start
        """Where what has been read ends."""

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._tokens)

    def word(self, ahead: int = 0) -> str:
        """Return the word, or sign, that stands here, in lower case; "" at the end; a quoted one is no word."""
        if self._at + ahead >= len(self._tokens):
            return ""
        token = self._tokens[self._at + ahead]
        quoted = (TokenType.IDENTIFIER, TokenType.STRING)
        return "" if token.token_type in quoted else token.text.lower()

    def takes(self, *words: str) -> bool:
        """Go past some words, if they all stand here."""
        if any(self.word(ahead) != word for ahead, word in enumerate(words)):
            return False
        self._at += len(words)
        self.done = self._tokens[self._at - 1].end + 1
        return True

    def expect(self, *words: str) -> None:
        """Go past some words. Raises Refusal: others stand here."""
        if not self.takes(*words):
            self.wrong()

    def wrong(self) -> NoReturn:
        """Raise Refusal (42601) for what stands here."""
        if self.is_done:
            raise Refusal(
                "the statement ends too soon", sqlstate="42601", hint="it is written as in Postgres"
            )
        token = self._tokens[self._at]
        raise Refusal(
            f'syntax error at or near "{self.text[token.start : token.end + 1][:60]}"', sqlstate="42601",
            position=place(self.text, token.start),
        )  # fmt: skip

    def refuse(self, what: str, hint: str) -> NoReturn:
        """Raise Refusal (0A000) for what stands here."""
        at = None if self.is_done else place(self.text, self._tokens[self._at].start)
        raise Refusal(f"{what} is not supported", sqlstate="0A000", position=at, hint=hint)

    def end(self) -> None:
        """Raise Refusal unless nothing more stands here."""
        if not self.is_done:
            self.wrong()

    def part(self) -> str:
        """Return a name, folded as Postgres does it. Raises Refusal: none stands here."""
        if self.is_done:
            self.wrong()
        token = self._tokens[self._at]
        written = self.text[token.start : token.end + 1]
        is_quoted = token.token_type is TokenType.IDENTIFIER
        if not is_quoted and not re.fullmatch(r"[A-Za-z_][\w$]*", written):
            self.wrong()
        name = token.text if is_quoted else written.lower()
        if not 1 <= len(name) <= LONGEST_NAME:
            raise Refusal(
                f"a name has 1 to {LONGEST_NAME} characters",
                sqlstate="42601",
                position=place(self.text, token.start),
            )
        self._at += 1
        self.done = token.end + 1
        return name

    def name(self) -> ObjectName:
        """Return a name with what is written before it."""
        at = None if self.is_done else place(self.text, self._tokens[self._at].start)
        parts = self.several(self.part, ".")
        if len(parts) > 3:
            raise Refusal("a name has three parts at most", sqlstate="42601", position=at)
        database, schema, name = ["", "", *parts][-3:]
        return ObjectName(schema, name, at, database)

    def several(self, read: Callable[[], _Read], sign: str = ",") -> list[_Read]:
        """Return what is read here, and behind each comma."""
        found = [read()]
        while self.takes(sign):
            found.append(read())
        return found

    def within(self, read: Callable[[], _Read]) -> list[_Read]:
        """Return what is read between brackets, and behind each comma there."""
        self.expect("(")
        found = self.several(read)
        self.expect(")")
        return found

    def names(self) -> tuple[str, ...]:
        """Return the names between brackets, if some stand here."""
        has_names = self.word() == "(" and self.word(1) not in (*_QUERIES, "(")
        return tuple(self.within(self.part)) if has_names else ()

    def query(self, *, until: int | None = None) -> WrittenQuery:
        """Return the rest, which is a query, or as much of it as stands before `until` tokens."""
        if self.is_done or self.word() not in (*_QUERIES, "("):
            self.wrong()
        start, last = self._tokens[self._at].start, self._tokens[-1] if until is None else self._tokens[until]
        end = last.end + 1 if until is None else last.start
        return WrittenQuery(blank_prefix(self.text[:end], start))

    def pass_over(self) -> None:
        """Go past what stands here, whatever it is."""
        self._at += 1

    @property
    def here(self) -> int:
        """Where what comes next begins."""
        return self._tokens[self._at].start

    def check_ends_in_query(self) -> None:
        """Raise Refusal: 0A000 for RETURNING and ON CONFLICT behind a query, 42601 for a bracket that none opens."""
        depth = 0
        for ahead in range(len(self._tokens) - self._at):
            word = self.word(ahead)
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth < 0:  # what follows would stand outside of what it is written into
                self._at += ahead
                self.wrong()
            if not depth and (word == "returning" or (word == "on" and self.word(ahead + 1) == "conflict")):
                self._at += ahead
                if word == "on":
                    self.refuse("ON CONFLICT", "own tables have no keys")
                self.refuse("RETURNING", "ask for the rows by a SELECT")

    def skipped(self) -> None:
        """Go past a bracket and all in it."""
        self.expect("(")
        depth = 1
        while depth:
            if self.is_done:
                self.wrong()
            depth += {"(": 1, ")": -1}.get(self.word(), 0)
            self._at += 1
        self.done = self._tokens[self._at - 1].end + 1

    def tail(self, *words: str) -> int | None:
        """Return the place of some words that the statement ends in; None: it does not."""
        at = len(self._tokens) - len(words)
        found = [self.word(at - self._at + ahead) for ahead in range(len(words))]
        return at if at > self._at and found == list(words) else None


def _single(token: Token, text: str) -> list[Token]:
    """Return a token as one for each word of it (`DOUBLE PRECISION`); none for a semicolon."""
    if token.token_type is TokenType.SEMICOLON:
        return []
    written = text[token.start : token.end + 1]
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING) or not re.search(r"\w\s+\w", written):
        return [token]
    return [
        Token(
            TokenType.VAR,
            one[0],
            token.line,
            token.col,
            token.start + one.start(),
            token.start + one.end() - 1,
            [],
        )
        for one in re.finditer(r"\w+", written)
    ]


_QUERIES = ("select", "with", "values", "table")


# --- heads ------------------------------------------------------------------------------------------------


def _create(words: _Words) -> WorkspaceStatement:
    replaces = words.takes("or", "replace")
    local = words.takes("local") or words.takes("global")
    is_temporary = words.takes("temporary") or words.takes("temp")
    if local and not is_temporary:
        words.wrong()
    if words.takes("view"):
        return _view(words, is_temporary=is_temporary, replaces=replaces)
    if replaces:
        words.refuse("OR REPLACE", "CREATE OR REPLACE VIEW alone is; DROP TABLE IF EXISTS first")
    is_unlogged = not is_temporary and words.takes("unlogged")
    if words.takes("table"):
        return _table(words, is_temporary=is_temporary)
    if is_temporary or is_unlogged:
        words.wrong()
    if words.takes("schema"):
        may_exist = words.takes("if", "not", "exists")
        name = words.name()
        if words.takes("authorization"):
            words.part()
        words.end()
        return CreateSchema(name, may_exist)
    if words.takes("unique", "index") or words.takes("index"):
        return _index(words)
    if words.word() == "materialized":
        words.refuse("CREATE MATERIALIZED VIEW", "write CREATE TABLE … AS")
    words.refuse(f"CREATE {words.word().upper()}", _FORMS)


_FORMS = "CREATE TABLE, CREATE TABLE … AS, CREATE VIEW, CREATE SCHEMA: of an analyst's own"


def _view(words: _Words, *, is_temporary: bool, replaces: bool) -> CreateView:
    name, names = words.name(), words.names()
    words.expect("as")
    if words.tail("with", "no", "schema", "binding") is not None:
        words.refuse("WITH NO SCHEMA BINDING", "leave it out: every view is read when it is asked")
    return CreateView(name, words.query(), names, is_temporary, replaces)


def _table(words: _Words, *, is_temporary: bool) -> CreateTable:
    may_exist = words.takes("if", "not", "exists")
    name = words.name()
    names: tuple[str, ...] = ()
    columns: tuple[NewColumn, ...] = ()
    if words.word() == "(":
        if words.word(2) in (",", ")"):
            names = words.names()
        else:
            columns = tuple(words.within(partial(_column, words)))
    drops = _options(words, is_temporary=is_temporary)
    if columns:
        words.end()
        return CreateTable(name, None, (), columns, is_temporary, may_exist, drops=drops)
    words.expect("as")
    without = words.tail("with", "no", "data")
    query = words.query(until=words.tail("with", "data") if without is None else without)
    return CreateTable(name, query, names, (), is_temporary, may_exist, without is None, drops)


def _options(words: _Words, *, is_temporary: bool) -> bool:
    """Go past what may stand after a table's name and columns; say whether it goes at the end of its block."""
    drops = False
    if words.takes("with"):
        words.skipped()  # how rows are stored
    if words.takes("on", "commit"):
        drops = words.takes("drop")
        if not drops and not words.takes("preserve", "rows"):
            words.refuse("ON COMMIT DELETE ROWS", "ON COMMIT PRESERVE ROWS, or DROP")
        if not is_temporary:
            raise Refusal("ON COMMIT is for temporary tables", sqlstate="42601")
    return drops


def _column(words: _Words) -> NewColumn:
    is_constraint = words.word() in ("primary", "unique", "foreign", "constraint", "check", "like")
    if is_constraint or (words.word() == "exclude" and words.word(1) in ("using", "(")):
        words.refuse("a constraint of an own table", "leave it out: NOT NULL alone is kept")
    name, type_, not_null = words.part(), _type(words), False
    while words.word() not in (",", ")", ""):
        if words.takes("not", "null"):
            not_null = True
        elif not words.takes("null"):
            words.refuse("this of an own table's column", "a name, a type and NOT NULL")
    return NewColumn(name, type_, not_null)


_TYPES: dict[str, SqlType] = {
    **dict.fromkeys(("smallint", "int2"), SMALLINT),
    **dict.fromkeys(("integer", "int", "int4"), INTEGER),
    **dict.fromkeys(("bigint", "int8"), BIGINT),
    **dict.fromkeys(("real", "float4"), REAL),
    **dict.fromkeys(("double precision", "float8", "float"), DOUBLE),
    **dict.fromkeys(("numeric", "decimal"), NUMERIC),
    **dict.fromkeys(("boolean", "bool"), BOOLEAN),
    **dict.fromkeys(("text", "varchar", "character varying", "char", "character", "bpchar", "name", "uuid"), TEXT),
    "date": DATE,
    **dict.fromkeys(
        ("timestamp", "timestamptz", "timestamp without time zone", "timestamp with time zone"), TIMESTAMP
    ),
    "json": JSON,
    "jsonb": JSONB,
}  # fmt: skip
_AFTER_TYPE = ("precision", "varying", "without", "with", "time", "zone")


def _type(words: _Words) -> SqlType:
    """Return a column's type; the length of a text is not kept."""
    if words.takes("pg_catalog"):
        words.expect(".")
    said, digits = words.part(), list[int]()
    while words.word() in _AFTER_TYPE or words.word() == "(":
        if words.word() != "(":
            said = f"{said} {words.part()}"
            continue
        digits = words.within(partial(_digits, words))
    found = _TYPES.get(said)
    if found is None or words.word() == "[":
        words.refuse(f"the type {said}", "numbers, text, boolean, date, timestamp and json are kept")
    if found is NUMERIC and digits:
        precision, scale = (*digits, 0)[:2]
        if len(digits) > 2 or not 1 <= precision <= 1000 or scale > min(precision, 38):
            raise Refusal("numeric(p,s) takes 1 <= p <= 1000, s <= p and s <= 38", sqlstate="22023")
        return numeric(min(precision, 38), scale)
    return REAL if said == "float" and digits and digits[0] <= 24 else found


def _digits(words: _Words) -> int:
    if not re.fullmatch(r"[0-9]{1,8}", words.word()):
        words.wrong()
    found = int(words.word())
    words.expect(words.word())
    return found


def _index(words: _Words) -> Nothing:
    words.takes("concurrently")
    words.takes("if", "not", "exists")
    if words.word() != "on":
        words.part()
    words.expect("on")
    words.takes("only")
    name = words.name()
    if words.takes("using"):
        words.part()
    words.skipped()
    words.end()
    return Nothing("CREATE INDEX", name)


def _drop(words: _Words) -> Drop:
    what = words.part().upper()
    if what not in ("TABLE", "VIEW", "SCHEMA", "INDEX"):
        words.refuse(f"DROP {what}", "DROP TABLE, DROP VIEW, DROP SCHEMA: of an analyst's own")
    may_lack = words.takes("if", "exists")
    names = tuple(words.several(words.name))
    cascades = words.takes("cascade")
    if not cascades:
        words.takes("restrict")
    words.end()
    return Drop(what, names, may_lack, cascades)


def _alter(words: _Words) -> Rename | AddColumn:
    what = words.part().upper()
    if what not in ("TABLE", "VIEW"):
        words.refuse(f"ALTER {what}", _ALTER)
    may_lack = words.takes("if", "exists")
    words.takes("only")
    name = words.name()
    if words.takes("rename", "to"):
        new = words.part()
        words.end()
        return Rename(what, name, new, may_lack=may_lack)
    if words.takes("rename"):
        words.takes("column")
        column = words.part()
        words.expect("to")
        new = words.part()
        words.end()
        return Rename(what, name, new, column, may_lack)
    if what == "TABLE" and words.takes("add"):
        words.takes("column")
        may_exist = words.takes("if", "not", "exists")
        column_ = _column(words)
        if column_.not_null:
            words.refuse("NOT NULL of a column that is added", "its rows have NULL there")
        words.end()
        return AddColumn(name, column_, may_lack, may_exist)
    words.refuse(f"this form of ALTER {what}", _ALTER)


_ALTER = "ALTER TABLE … RENAME TO, RENAME COLUMN … TO, ADD COLUMN; ALTER VIEW … RENAME TO"


def _insert(words: _Words) -> Insert:
    words.expect("into")
    name = words.name()
    if words.takes("as"):
        words.part()
    names = words.names()
    if words.takes("overriding"):
        words.refuse("OVERRIDING", "leave it out")
    if words.word() == "default":
        words.refuse("DEFAULT VALUES", "write VALUES (NULL)")
    words.check_ends_in_query()
    return Insert(name, words.query(), names)


def _delete(words: _Words) -> Delete:
    """Return the rows that stay: those of which the condition is not true."""
    words.expect("from")
    words.takes("only")
    start = words.done
    name = words.name()
    if words.takes("as") or words.word() not in ("where", "using", "returning", ""):
        words.part()
    words.check_ends_in_query()
    shown = words.text[start : words.done].strip()
    return Delete(name, None if words.is_done else _kept(words, shown))


def _kept(words: _Words, shown: str) -> WrittenQuery:
    """Return the query of the rows that stay after DELETE. Raises Refusal: RETURNING."""
    using = ""
    if words.takes("using"):
        start = words.done
        depth = 0
        while words.word() != "where" or depth:
            if words.is_done:
                words.wrong()
            depth += {"(": 1, ")": -1}.get(words.word(), 0)
            if depth < 0:
                words.wrong()
            words.pass_over()
        using = words.text[start : words.here]
    words.expect("where")
    condition = words.text[words.done :].rstrip().removesuffix(";")
    words.check_ends_in_query()
    if using:
        return WrittenQuery(
            f"SELECT * FROM {shown} WHERE NOT EXISTS (SELECT 1 FROM {using} WHERE {condition}\n)"
        )
    return WrittenQuery(f"SELECT * FROM {shown} WHERE ({condition}\n) IS NOT TRUE")


def _truncate(words: _Words) -> Truncate:
    words.takes("table")
    names = tuple(words.several(words.name))
    if not words.takes("cascade"):
        words.takes("restrict")
    words.end()
    return Truncate(names)


def _analyze(words: _Words) -> Nothing:
    words.takes("verbose")
    name = None if words.is_done else words.name()
    if words.word() == "(":
        words.skipped()
    words.end()
    return Nothing("ANALYZE", name)


def _comment(words: _Words) -> Nothing:
    words.expect("on")
    what = words.part()
    if what not in ("table", "view", "column", "schema"):
        words.refuse(f"COMMENT ON {what.upper()}", "COMMENT ON TABLE, VIEW or COLUMN of an analyst's own")
    name = words.name()
    if what == "column":
        name = ObjectName(name.database, name.schema, name.position)
    words.expect("is")
    return Nothing("COMMENT", None if what == "schema" else name)


_HEADS: dict[str, Callable[[_Words], WorkspaceStatement]] = {
    "create": _create, "drop": _drop, "alter": _alter, "insert": _insert, "delete": _delete, "truncate": _truncate,
    "analyze": _analyze, "analyse": _analyze, "comment": _comment,
}  # fmt: skip


_NAME = r'(?:[A-Za-z_][\w$]*|"(?:[^"]|"")+")'
_INSERT = regex(r"(?:\s|--[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/)*+insert\b", re.IGNORECASE)
_HEAD = regex(
    rf"\s*insert\s+into\s+({_NAME}(?:\s*\.\s*{_NAME}){{0,2}})\s*(?:\(([^()']*)\)\s*)?values\b\s*",
    re.IGNORECASE,
)
_PART = regex(r'[A-Za-z_][\w$]*|"(?:[^"]|"")+"')
_LIST = regex(rf"\s*{_NAME}\s*(?:,\s*{_NAME}\s*)*")
_CELL = regex(
    r"""\s*+(?:
      (?:(?:date|timestamp)\s*+)?(?P<text>'(?:[^']|'')*+')
    | e(?P<escaped>'(?:[^'\\]|''|\\[\\'ntr])*+')
    | (?P<number>[+-]?\s*+(?:\d+\.?\d*+|\.\d++)(?:e[+-]?\d++)?)(?![\w$])
    | \$(?P<parameter>\d{1,5})
    | (?P<word>null|true|false|default)\b
    )\s*+(?:::\s*+(?:[a-z]\w*+(?:\s++(?:precision|varying|without\s+time\s+zone))?(?:\s*+\([\d\s,]*+\))?)\s*+)?
    (?P<end>[,)])""",
    re.VERBOSE | re.IGNORECASE,
)
_CELLS = ("text", "escaped", "number", "parameter", "word")
_OPEN = regex(r"\s*\(")
_NEXT = regex(r"\s*,\s*\(")
_END = regex(r"\s*;?\s*")
_ESCAPED = regex(r"\\(.)|''", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}

Cell = tuple[str, str, int]
"""Kind, text, and where it stands."""


@dataclass(frozen=True, slots=True)
class SentRows:
    """The name parts of a table, the names of columns (none: all), and the rows as they are written."""

    text: str
    table: tuple[str, ...]
    start: int
    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def width(self) -> int:
        """How many values each row has."""
        return len(self.rows[0])


def read_sent_rows(text: str) -> SentRows | None:
    """Return what an INSERT of constants says; None for any other text. Raises Refusal (42601): rows differ."""
    if not _INSERT.match(text) or not is_text(text):
        return None
    pieces = split_statements(text)
    if len(pieces) != 1:
        return None
    bare = " " * pieces[0].start + pieces[0].bare
    head = _HEAD.match(bare)
    if head is None or (head[2] is not None and not _LIST.fullmatch(head[2])):
        return None
    rows = _rows(bare, head.end())
    if rows is None:
        return None
    if len(set(map(len, rows))) != 1:
        raise Refusal(
            "the rows of VALUES differ in length", sqlstate="42601", position=place(text, head.end()),
            hint="give every row as many values",
        )  # fmt: skip
    names = () if head[2] is None else tuple(map(unquoted, _PART.findall(head[2])))
    table = tuple(map(unquoted, _PART.findall(head[1])))
    return SentRows(text, table, head.start(1), names, rows)


def _rows(bare: str, at: int) -> tuple[tuple[Cell, ...], ...] | None:
    """Return the rows that the rest of a text is; None where it is anything else."""
    rows: list[tuple[Cell, ...]] = []
    opened = _OPEN.match(bare, at)
    while opened is not None:
        at, row, end = opened.end(), list[Cell](), ","
        while end == ",":
            cell = _CELL.match(bare, at)
            if cell is None:
                return None
            kind = next(kind for kind in _CELLS if cell[kind] is not None)
            row.append((kind, cell[kind], cell.start(kind)))
            at, end = cell.end(), cell["end"]
        rows.append(tuple(row))
        opened = _NEXT.match(bare, at)
    return tuple(rows) if rows and _END.fullmatch(bare, at) else None


def count_sent(rows: SentRows) -> int:
    """Return the largest n of the $n."""
    return max((int(text) for row in rows.rows for kind, text, _ in row if kind == "parameter"), default=0)


def values_of(
    sent: SentRows, types: Sequence[SqlType], parameters: Sequence[object]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as Python's values of some types.

    Raises Refusal: 22023 for what is no value of its type, 42P02 for a parameter that is not given.
    """
    for row in sent.rows:
        yield tuple(
            _value(sent.text, cell, type_, parameters) for cell, type_ in zip(row, types, strict=True)
        )


def _value(text: str, cell: Cell, type_: SqlType, parameters: Sequence[object]) -> Any:
    kind, written, start = cell
    if kind == "word" and written.lower() in ("null", "default"):
        return None
    try:
        if kind == "parameter":
            number = int(written)
            if not 1 <= number <= len(parameters):
                raise Refusal(
                    f"there is no parameter ${number}", sqlstate="42P02", hint="pass a value for each"
                )
            given = parameters[number - 1]
            at = place(text, start) if isinstance(given, Awaited) else None
            literal: Expr = parameter_literal(given, number, at)
        else:
            literal = _literal(kind, written)
        return python_value(_as_type(literal, type_), type_)
    except Refusal as refusal:
        refusal.position = place(text, start)
        raise


def value_of(given: object, type_: SqlType) -> Any:
    """Return what stands in a copy as a value of a type: a text as Postgres reads it. Raises Refusal: it is none."""
    if isinstance(given, float) and not math.isfinite(given):
        raise Refusal(f"{given} is not kept in a table", sqlstate="22023", hint="send NULL for it")
    literal = Literal(TEXT, given) if isinstance(given, str) else parameter_literal(given, 1, None)
    return python_value(_as_type(literal, type_), type_)


def _literal(kind: str, written: str) -> Expr:
    if kind == "number":
        bare = "".join(written.split())
        found = number_literal(bare.lstrip("+-"), None)
        number = exact_value(found)
        if not bare.startswith("-") or number is None:
            return found
        return Literal(found.type, -number)
    if kind == "word":
        return Literal(BOOLEAN, written.lower() == "true")
    if kind == "escaped":
        return Literal(TEXT, _ESCAPED.sub(lambda m: _ESCAPES.get(m[1], m[1]) if m[1] else "'", written[1:-1]))
    return Literal(TEXT, written[1:-1].replace("''", "'"))


def _as_type(literal: Expr, type_: SqlType) -> Expr:
    """Return a constant as a value of a type. Raises Refusal."""
    if literal.type.kind is Kind.TEXT and (type_.is_json or type_.kind in (Kind.TEXT, Kind.NULL)):
        return literal
    read = coerce_literal(literal, type_)
    if read.type == type_:
        return read
    found = cast_literal(literal, type_)
    if found is None or found.type != type_:
        raise Refusal(
            f"this is no value of type {type_}", sqlstate="42804", hint="send it as the column's type has it"
        )
    return found


_DAY_ONE = datetime.date(1970, 1, 1)
_EPOCH = datetime.datetime(1970, 1, 1)


def python_value(literal: Expr, type_: SqlType) -> Any:
    """Return a constant's value as an answer would hold it."""
    value = literal.constant
    if value is None or literal.type.kind is NULL.kind:
        return None
    change = _PYTHON.get(type_.kind)
    return value if change is None else change(value)


def _decimal(value: int | Fraction) -> Decimal:
    exact = Fraction(value)
    return Decimal(exact.numerator) / Decimal(exact.denominator)


_PYTHON: dict[Kind, Callable[[Any], Any]] = {
    Kind.DATE: lambda days: _DAY_ONE + datetime.timedelta(days=days),
    Kind.TIMESTAMP: lambda moment: _EPOCH + datetime.timedelta(microseconds=moment),
    Kind.NUMERIC: _decimal,
    **dict.fromkeys((Kind.REAL, Kind.DOUBLE), float),
    **dict.fromkeys((Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT), int),
}
"""Kind of a type -> what makes Python's value of a constant of it."""
