"""What one statement asks for: a value of its own kind for each, as `read_statement` makes them; and what it gives.

House rules, a statement's text -> the one kind of statement that it is:

1. This decides nothing about privacy. What is not one of the forms here goes to the session as it is.
2. Which of session and system catalog answers a query is decided by what it reads. One that reads both is answered
   by neither.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from sqlglot.tokenizer_core import TokenType

from ..engine import AnswerColumn
from ..pgwire import (
    ELEMENTS,
    TYPES,
    Bind,
    CsvOptions,
    FieldDescription,
    Format,
    Interval,
    NoticeResponse,
    Oid,
    ParameterError,
    TextOptions,
    read_parameter,
)
from ..records import dataclass
from ..regex import regex
from ..relation.expressions import Months
from ..relation.types import DATE, TEXT, TIMESTAMP, Kind, SqlType
from ..sql.literals import TypedNull
from ..sql.text import (
    MAX_TEXT,
    ScriptStatement,
    blank_prefix,
    read_constant,
    split_statements,
    tokenize,
    unquoted,
)
from ..sql.workspace import WRITES, ObjectName, count_sent, read_sent_rows
from ..system_catalog import Reads
from ..system_catalog.objects import TYPE_OIDS
from .report import Fault, unsupported

# --- values to and fro ------------------------------------------------------------------------------------


_ARRAYS: dict[int, int] = {element: array for array, element in ELEMENTS.items()}
_UNKNOWN = (0, Oid.UNKNOWN)
_REFCURSOR = 1790
"""A driver that looks for the types which are read as text may find this one: the same on the wire."""
_SAME = {Oid.UNKNOWN: 0, _REFCURSOR: Oid.TEXT}
_DECLARED: dict[int, SqlType] = {
    **{oid: SqlType(kind) for kind, oid in TYPE_OIDS.items() if kind not in (Kind.JSON, Kind.JSONB)},
    Oid.TEXT: TEXT, Oid.VARCHAR: TEXT, Oid.TIMESTAMPTZ: TIMESTAMP,
}  # fmt: skip
_MOMENT = regex(rb"\d{4,6}-\d\d-\d\d(?:T\d| ?[+\-Z]| \d.*[+\-Z])")
_LONGEST_MOMENT = 100


def columns_of(columns: Sequence[AnswerColumn]) -> tuple[FieldDescription, ...]:
    """Return an answer's columns as a RowDescription has them, in text."""
    pairs = [(column, oid_of(column.type)) for column in columns]
    return tuple(
        FieldDescription(column.name, oid, TYPES[oid].size, column.type.modifier) for column, oid in pairs
    )


def in_formats(
    columns: Sequence[FieldDescription], formats: Sequence[Format]
) -> tuple[FieldDescription, ...]:
    """Return columns in other formats, one for each."""
    return tuple(
        column if column.format is form else replace(column, format=form)
        for column, form in zip(columns, formats, strict=True)
    )


def oid_of(type_: SqlType) -> int:
    """Return Postgres' number of a type."""
    if type_.element is not None:
        return _ARRAYS[TYPE_OIDS[type_.element.kind]]
    return TYPE_OIDS[type_.kind]


def sql_type(oid: int) -> SqlType | None:
    """Return the type that a parameter of one of Postgres' types has for the session; None: not known."""
    return _DECLARED.get(oid)


def parameter_types(declared: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the types of a statement's parameters: what the client declares holds, 0 stands for the others.

    There may be more than the statement names. Raises Fault (42704): a type does not exist.
    """
    for oid in declared:
        if oid not in TYPES and oid not in _UNKNOWN and oid != _REFCURSOR:
            raise Fault("42704", f"type {oid} does not exist", hint="send the parameter as text")
    types = [_SAME.get(oid, oid) for oid in declared]
    return (*types, *[0] * (count - len(types)))


def must_be_typed(event: Bind) -> bool:
    """Say whether a value can be read only when its type is known: in binary, or a moment with its zone or a T."""
    return any(
        form is Format.BINARY or (data is not None and len(data) < _LONGEST_MOMENT and _MOMENT.match(data))
        for form, data in zip(event.parameter_formats, event.parameters, strict=True)
    )


def read_values(event: Bind, types: Sequence[int]) -> tuple[object, ...]:
    """Return the values that a Bind gives to a statement's parameters; 0 is read as text.

    A moment with a zone becomes one without, in UTC: the only zone that there is. Raises Fault: another number of
    values than of parameters. Raises ParameterError: a value is not of its type.
    """
    if len(event.parameters) != len(types):
        raise Fault(
            "08P01", f"{len(event.parameters)} parameters are given, but the statement names {len(types)}"
        )
    given = zip(types, event.parameter_formats, event.parameters, strict=True)
    return tuple(plain(read_parameter(oid or Oid.TEXT, form, data)) for oid, form, data in given)


def typed_nulls(values: Sequence[object], types: Sequence[int]) -> tuple[object, ...]:
    """Return values for the session, each NULL as one of the type that its parameter has."""
    return tuple(
        TypedNull(known) if value is None and (known := sql_type(oid)) is not None else value
        for value, oid in zip(values, types, strict=True)
    )


def plain(value: object) -> object:
    """Return a moment with a zone as one without, in UTC, an interval as the session has it; else as it is."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Interval):
        return Months(value.months, value.days, value.microseconds)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


# --- EXECUTE's constants ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant as it was written; `type`: the name of its type, None for a bare string or NULL."""

    text: str | None
    type: str | None = None


def compile_form(form: str) -> re.Pattern[str]:
    """Return how something is written, in any case; blanks are never given back, so that it fails in linear time."""
    form = form.replace(r"\s+", r"\s++").replace(r"\s*", r"\s*+")
    return re.compile(form, re.IGNORECASE | re.DOTALL)


_TYPES = {
    "boolean": Oid.BOOL, "bool": Oid.BOOL,
    "smallint": Oid.INT2, "int2": Oid.INT2,
    "integer": Oid.INT4, "int": Oid.INT4, "int4": Oid.INT4,
    "bigint": Oid.INT8, "int8": Oid.INT8,
    "numeric": Oid.NUMERIC, "decimal": Oid.NUMERIC,
    "real": Oid.FLOAT4, "float4": Oid.FLOAT4,
    "double precision": Oid.FLOAT8, "float8": Oid.FLOAT8, "float": Oid.FLOAT8,
    "text": Oid.TEXT, "varchar": Oid.VARCHAR, "character varying": Oid.VARCHAR, "unknown": Oid.UNKNOWN,
    "date": Oid.DATE,
    "timestamp": Oid.TIMESTAMP, "timestamp without time zone": Oid.TIMESTAMP,
    "time": Oid.TIME, "time without time zone": Oid.TIME,
    "timestamptz": Oid.TIMESTAMPTZ, "timestamp with time zone": Oid.TIMESTAMPTZ,
}  # fmt: skip
_TYPE = (
    r"(?:pg_catalog\s*\.\s*)?(double\s+precision|character\s+varying|time(?:stamp)?\s+with(?:out)?\s+time\s+zone|[a-z]\w*)"
    r"(?:\s*\(\s*\d+(?:\s*,\s*\d+)?\s*\))?"
)
_BEFORE = compile_form(r"\s*(?:(?P<cast>cast\s*\(\s*)|(?P<typed>date|timestamp|time)\s*(?='))?")
_AFTER = compile_form(rf"\s*(?:::\s*(?P<type>{_TYPE})\s*)?")
_AFTER_CAST = compile_form(rf"\s+as\s+(?P<type>{_TYPE})\s*\)\s*")


def type_number(name: str) -> int:
    """Return Postgres' number of a type. Raises Fault (42704): there is none of this name."""
    match = re.fullmatch(_TYPE, name.strip(), re.IGNORECASE)
    oid = _TYPES.get(re.sub(r"\s+", " ", match[1].lower())) if match else None
    if oid is None:
        raise Fault(
            "42704", f'type "{name.strip()[:60]}" does not exist', hint="declare the parameter as text"
        )
    return oid


def read_arguments(written: str) -> tuple[Constant, ...]:
    """Read constants with commas between them. Raises Fault (0A000): one is none."""
    found, at = list[Constant](), -1
    while at < len(written):
        constant, at = _constant(written, at + 1)
        found.append(constant)
    return tuple(found)


def _constant(written: str, at: int) -> tuple[Constant, int]:
    """Return the constant that begins at a place, and where the comma after it stands. Raises Fault (0A000, 42704)."""
    before = _BEFORE.match(written, at)
    read = None if before is None else read_constant(written, before.end())
    if before is None or read is None:
        raise _no_constant()
    kind, text, end = read
    after = (_AFTER_CAST if before["cast"] else _AFTER).match(written, end)
    is_known = kind in ("string", "number") or (kind == "word" and text in ("null", "true", "false"))
    if after is None or not is_known or written[after.end() : after.end() + 1] not in ("", ","):
        raise _no_constant()
    type_ = after["type"] or before["typed"]
    if type_ is not None:
        type_number(type_)
        type_ = re.sub(r"\s+", " ", re.sub(r"\(.*", "", type_.lower())).strip()
    elif kind == "number":
        type_ = "integer" if text.lstrip("-").isdigit() else "numeric"
    elif kind == "word" and text != "null":
        type_ = "boolean"
    return Constant(None if (kind, text) == ("word", "null") else text, type_), after.end()


def _no_constant() -> Fault:
    return unsupported("an argument of EXECUTE that is no constant", "write a number, a string, NULL, a cast")


# --- as values ---------------------------------------------------------------------------------------

_BY_TEXT = "write a constant of the parameter's type"


def argument_values(name: str, arguments: Sequence[Constant], types: Sequence[int]) -> tuple[object, ...]:
    """Return one value for each parameter of the prepared statement `name`.

    Raises Fault: another number of arguments (42601), a type that the parameter's cannot be made of (42804), or a value
    that is not of its type, or not in its range (as ParameterError has it).
    """
    if not types:
        return ()  # Postgres does not look at them
    if len(arguments) != len(types):
        raise Fault(
            "42601", f'{len(arguments)} arguments are given, but prepared statement "{name}" takes {len(types)}',
            hint="give one constant for each $n",
        )  # fmt: skip
    pairs = enumerate(zip(arguments, types, strict=True), 1)
    return tuple(_value(number, argument, oid or Oid.TEXT) for number, (argument, oid) in pairs)


def _value(number: int, argument: Constant, oid: int) -> object:
    if argument.text is None:
        return None
    if argument.type is None:
        return _read(oid, argument.text)
    own = _own_type(argument)
    value, given, wanted = _read(own, argument.text), sql_type(own), sql_type(oid)
    assert given is not None, "every type that is read here is one of the session's"
    if given == wanted:
        return value
    if wanted == TEXT:
        return _plain_text(value, argument.text)
    if wanted is not None and wanted.is_number and given.is_number:
        return _read(oid, _rounded(value, given) if wanted.is_integer else argument.text)
    if wanted is not None and wanted.is_temporal and given.is_temporal:
        return _read(oid, str(value)[:10] if wanted == DATE else str(value))
    raise Fault(
        "42804", f"parameter ${number} of type {argument.type} cannot be coerced to {wanted or 'its type'}",
        hint="write the value in quotes, without a cast",
    )  # fmt: skip


def _own_type(argument: Constant) -> int:
    assert argument.type is not None
    assert argument.text is not None
    own = type_number(argument.type)
    if argument.type == "integer" and argument.text.lstrip("-").isdigit():
        value = Decimal(argument.text)  # a bare number, of any length, is of the smallest type that holds it
        fits = [oid for oid, limit in ((Oid.INT4, 2**31), (Oid.INT8, 2**63)) if -limit <= value < limit]
        return fits[0] if fits else Oid.NUMERIC
    return Oid.TEXT if own == Oid.UNKNOWN else own


def _read(oid: int, text: str) -> object:
    try:
        return plain(read_parameter(oid, Format.TEXT, text.encode("utf-8", "replace")))
    except ParameterError as error:
        raise Fault(error.sqlstate, error.message, hint=error.hint or _BY_TEXT) from None


def _rounded(value: object, given: SqlType) -> str:
    exact = Decimal(str(value))
    if not exact.is_finite():
        return str(value)
    return f"{exact.to_integral_value(ROUND_HALF_EVEN if given.is_float else ROUND_HALF_UP):f}"


def _plain_text(value: object, written: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime, date, time, int)):
        return str(value)
    return written


# --- what COPY says of its lines --------------------------------------------------------------------------


_HINT = "FORMAT, DELIMITER, NULL, HEADER, QUOTE, ESCAPE, FORCE_QUOTE and ENCODING 'UTF8' are read"
_TRUE, _FALSE = ("true", "on", "1", ""), ("false", "off", "0")
_IN_VALUES = frozenset("\\.abcdefghijklmnopqrstuvwxyz0123456789")
_ESCAPED = regex(r"[eE]'((?:[^'\\]|''|\\[^0-7xuU])*)'", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_Value = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """How rows are copied: `lines`, None for binary. `forced`: the columns that are quoted whatever they hold; ("*",)
    for all."""

    lines: TextOptions | CsvOptions | None = TextOptions()
    forced: tuple[str, ...] = ()

    def of(self, columns: tuple[FieldDescription, ...]) -> TextOptions | CsvOptions | None:
        """Return the options for a result's columns. Raises Fault (42703): one that is forced is none of them."""
        if not isinstance(self.lines, CsvOptions) or not self.forced:
            return self.lines
        names = [column.name for column in columns]
        if self.forced == ("*",):
            return replace(self.lines, force_quote=frozenset(range(len(names))))
        for name in self.forced:
            if name not in names:
                raise Fault(
                    "42703",
                    f'column "{name[:60]}" does not exist',
                    hint="FORCE_QUOTE names the query's",
                )
        return replace(self.lines, force_quote=frozenset(names.index(name) for name in self.forced))


def read_options(text: str) -> CopyOptions:
    """Return what stands in the parentheses after WITH. Raises Fault: it is not written right, or not done here."""
    reader, given = _Reader(text), dict[str, _Value]()
    while not reader.is_done:
        _put(given, reader.word(), reader.value())
        if not reader.is_done:
            reader.skip(",")
    return _made(given)


_OLDER = {"delimiter": "delimiter", "null": "null", "quote": "quote", "escape": "escape",
          "encoding": "encoding"}  # fmt: skip


def older_options(text: str) -> CopyOptions:
    """Return what stands after TO STDOUT without parentheses, as before Postgres 9. Raises Fault, as `read_options`."""
    reader, given = _Reader(text), dict[str, _Value]()
    while not reader.is_done:
        word = reader.word()
        if word in ("csv", "binary", "text"):
            _put(given, "format", word)
        elif word == "header":
            _put(given, "header", "")
        elif word == "force":
            if reader.word() != "quote":
                raise unsupported("this option of COPY", _HINT)
            _put(given, "force_quote", reader.names())
        elif word in _OLDER:
            reader.leave_out("as")
            _put(given, _OLDER[word], reader.value())
        else:
            raise unsupported("this option of COPY", _HINT)
    return _made(given)


def _plain(escaped: str | None) -> str:
    """Return the character that stands after a backslash, or a quote that is written twice."""
    return "'" if escaped is None else _ESCAPES.get(escaped, escaped)


class _Reader:
    """The pieces of the options, one after another."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text.strip(), 0

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._text)

    def _piece(self) -> tuple[str, str]:
        """Return the kind and value of what stands here, and go past it."""
        rest = self._text[self._at :]
        if (escaped := _ESCAPED.match(rest)) is not None:
            value = re.sub(r"\\(.)|''", lambda found: _plain(found[1]), escaped[1], flags=re.DOTALL)
            kind, end = "string", self._at + escaped.end()
        elif rest[:1] in ("(", ")", ",", "*"):
            kind, value, end = "sign", rest[0], self._at + 1
        else:
            found = read_constant(self._text, self._at)
            if found is None:
                raise Fault("42601", "an option of COPY is not written right", hint=_HINT)
            kind, value, end = found
        self._at = end + len(self._text[end:]) - len(self._text[end:].lstrip())
        return kind, value

    def word(self) -> str:
        kind, value = self._piece()
        if kind != "word":
            raise Fault("42601", "an option of COPY is not written right", hint=_HINT)
        return value

    def skip(self, sign: str) -> None:
        if self._piece() != ("sign", sign):
            raise Fault("42601", "an option of COPY is not written right", hint=_HINT)

    def leave_out(self, word: str) -> None:
        before = self._at
        if self.is_done or self._piece() != ("word", word):
            self._at = before

    def value(self) -> _Value:
        """Return a constant, or names in parentheses; "" where none stands."""
        if self.is_done or self._text[self._at] == ",":
            return ""
        if self._text[self._at] in ("(", "*"):
            return self.names()
        return self._piece()[1]

    def names(self) -> tuple[str, ...]:
        """Return a list of names, in parentheses or without, or ("*",)."""
        return tuple(self._names())

    def _names(self) -> Iterator[str]:
        bracket = not self.is_done and self._text[self._at] == "("
        if bracket:
            self.skip("(")
        while True:
            kind, value = self._piece()
            if kind not in ("word", "quoted") and value != "*":
                raise Fault("42601", "an option of COPY is not written right", hint=_HINT)
            yield value
            if value == "*" or self.is_done or self._text[self._at] != ",":
                break
            self.skip(",")
        if bracket:
            self.skip(")")


_KNOWN = frozenset({"format", "header", "delimiter", "null", "quote", "escape", "force_quote", "encoding"})


def _put(given: dict[str, _Value], name: str, value: _Value) -> None:
    if name not in _KNOWN:
        raise unsupported("this option of COPY", _HINT)
    if name in given:
        raise Fault("42601", "conflicting or redundant options", hint=f"write {name.upper()} once")
    given[name] = value


def _made(given: dict[str, _Value]) -> CopyOptions:
    text = {name: value for name, value in given.items() if isinstance(value, str)}
    if set(given) - set(text) - {"force_quote"}:
        raise Fault("42601", "an option of COPY takes one value", hint=_HINT)
    form, header = text.pop("format", "text").lower(), text.pop("header", "off").lower()
    if form not in ("text", "csv", "binary") or header not in (*_TRUE, *_FALSE):
        raise unsupported("this option of COPY", _HINT)
    if text.pop("encoding", "utf8").lower().replace("-", "") not in ("utf8", "unicode"):
        raise unsupported("this encoding", "rows are copied as UTF-8")
    forced = given.get("force_quote", ())
    forced = (forced,) if isinstance(forced, str) and forced else tuple(forced)
    text.pop("force_quote", None)
    if form == "binary":
        if text or forced or header in _TRUE:
            raise Fault("42601", "binary rows have no such options", hint="FORMAT binary stands alone")
        return CopyOptions(None)
    if form == "text" and (forced or "quote" in text or "escape" in text):
        raise Fault("42601", "quotes are for CSV alone", hint="COPY … TO STDOUT (FORMAT csv, QUOTE '\"')")
    has_header = header in _TRUE
    lines = _csv(has_header, **text) if form == "csv" else _text(has_header, **text)
    _check(lines)
    return CopyOptions(lines, forced)


def _text(header: bool, delimiter: str = "\t", null: str = "\\N") -> TextOptions:
    return TextOptions(delimiter, null, header)


def _csv(
    header: bool, delimiter: str = ",", null: str = "", quote: str = '"', escape: str | None = None
) -> CsvOptions:
    return CsvOptions(delimiter, null, header, quote, quote if escape is None else escape)


def _check(lines: TextOptions | CsvOptions) -> None:
    """Check that lines can be read again. Raises Fault (22023), as Postgres."""
    signs = {"delimiter": lines.delimiter}
    if isinstance(lines, CsvOptions):
        signs |= {"quote": lines.quote, "escape": lines.escape}
    for name, sign in signs.items():
        if len(sign) != 1 or not sign.isascii() or sign in "\r\n\0":
            raise Fault(
                "22023", f"COPY {name} must be a single one-byte character", hint="e.g. ';' or E'\\t'"
            )
    if isinstance(lines, TextOptions) and lines.delimiter in _IN_VALUES:
        raise Fault(
            "22023", "COPY delimiter cannot be a letter, a digit, a point or a backslash", hint="e.g. ';'"
        )
    if isinstance(lines, CsvOptions) and lines.delimiter == lines.quote:
        raise Fault("22023", "COPY delimiter and quote must be different", hint="e.g. ';' and '\"'")
    if set(lines.null) & {*"\r\n", lines.delimiter} or (
        isinstance(lines, CsvOptions) and lines.quote in lines.null
    ):
        raise Fault(
            "22023",
            "COPY null cannot hold a delimiter, a quote or a line end",
            hint="e.g. 'NA'",
        )


# --- what a statement asks for ----------------------------------------------------------------------------


Modes = tuple[tuple[str, str], ...]
"""Names and values of the settings that a transaction's modes stand for."""


@dataclass(frozen=True, slots=True)
class Query:
    """For the session: a query, EXPLAIN, SHOW of a setting of dpsql's, or what writes own tables; blank where other
    words stood."""

    text: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """A query of the system catalog; `types`: of its parameters, where they are known."""

    text: str
    types: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Begin:
    """A block begins."""

    tag: str
    modes: Modes = ()


@dataclass(frozen=True, slots=True)
class End:
    """A block ends; `is_chain`: another begins at once, with its modes."""

    is_commit: bool
    is_chain: bool = False


class Marking(enum.Enum):
    """What is done with a savepoint."""

    SAVE = "SAVEPOINT"
    RELEASE = "RELEASE"
    ROLLBACK = "ROLLBACK"


@dataclass(frozen=True, slots=True)
class Mark:
    """A savepoint is made, released or gone back to."""

    marking: Marking
    name: str


@dataclass(frozen=True, slots=True)
class Characteristics:
    """The modes of the block at hand, or of all from now on (`is_session`)."""

    modes: Modes
    is_session: bool


@dataclass(frozen=True, slots=True)
class Set:
    """A setting gets a value, of one or several parts, or goes back (None); no name: all go back.

    `is_local`: until the block ends. `tag`: as it was written.
    """

    name: str | None
    values: tuple[str, ...] | None = None
    is_local: bool = False
    tag: str = "SET"


@dataclass(frozen=True, slots=True)
class Show:
    """A client's setting is shown; None: all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Prepare:
    """A query is prepared under a name; `types`: the declared types of its first parameters, as Postgres' numbers."""

    name: str
    types: tuple[int, ...]
    query: Query | Catalog


@dataclass(frozen=True, slots=True)
class Execute:
    """A prepared statement is run."""

    name: str
    arguments: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Deallocate:
    """A prepared statement is forgotten; None: all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """What the connection has gathered is forgotten, or of that `what` alone."""

    what: str


@dataclass(frozen=True, slots=True)
class Done:
    """What there is nothing of here, so that it is done already."""

    tag: str
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY (query) TO STDOUT. `is_table`: COPY table; no position in the query that says the same is the client's."""

    query: Query | Catalog
    options: CopyOptions
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class CopyIn:
    """COPY table FROM STDIN: rows that the client sends come into an own table, into `names` of its columns, or all.

    `lines`: None for binary.
    """

    table: ObjectName
    names: tuple[str, ...]
    lines: TextOptions | CsvOptions | None


@dataclass(frozen=True, slots=True)
class Declare:
    """A cursor is opened over a query; `is_held`: it outlives its block."""

    name: str
    query: Query | Catalog
    is_held: bool = False
    is_binary: bool = False
    is_forward_only: bool = False


class Direction(enum.Enum):
    """How a fetch counts."""

    FORWARD = "forward"
    BACKWARD = "backward"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass(frozen=True, slots=True)
class Fetch:
    """A cursor's rows, `count` or all of them (None); `is_move`: they are passed over."""

    name: str
    direction: Direction
    count: int | None
    is_move: bool


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """A cursor is closed; None: all."""

    name: str | None


Statement = (
    Query | Catalog | Begin | End | Mark | Characteristics | Set | Show | Prepare | Execute | Deallocate | Discard
    | Done | Copy | CopyIn | Declare | Fetch | CloseCursor
)  # fmt: skip

_COUNTED = ("SELECT", "COPY", "FETCH")


@dataclass(frozen=True, slots=True)
class Result:
    """Rows, or a tag alone; `copy`: the rows go out as a copy; `is_binary`: they are those of a binary cursor."""

    tag: str
    columns: tuple[FieldDescription, ...] = ()
    rows: Sequence[tuple[object, ...]] = ()
    notices: tuple[NoticeResponse, ...] = ()
    copy: Copy | None = None
    is_binary: bool = False

    def tag_of(self, count: int) -> str:
        """Return the tag after so many rows."""
        return f"{self.tag} {count}" if self.tag in _COUNTED else self.tag


# --- A statement's text -> the one kind of statement that it is ---------------------------------------------


_MAX_TEXT = 4 * MAX_TEXT
_MAX_STATEMENTS = 10_000
_LONGEST = 10_000
"""Characters of a statement of the connection's own."""


def cut(text: str, split: Callable[[str], list[ScriptStatement]] = split_statements) -> list[ScriptStatement]:
    """Return the statements of a text, as `split` finds them. Raises Fault: it is too long to be looked through."""
    if len(text) > _MAX_TEXT:
        raise Fault(
            "54001", f"the text has more than {_MAX_TEXT} characters", hint="send fewer statements at once"
        )
    found = split(text)
    if len(found) > _MAX_STATEMENTS:
        raise Fault("54001", f"there are more than {_MAX_STATEMENTS} statements", hint="send fewer at once")
    return found


def read_statement(piece: ScriptStatement, reads: Callable[[str], Reads]) -> Statement:
    """Return what one statement asks for; `reads` says of a query what it reads.

    Raises Fault: a statement of the connection's own is not written right (42601), or something is not supported.
    """
    text, bare = piece.text, piece.bare.rstrip()
    first = _word(bare)
    if first in _WITH_QUERY:
        return _WITH_QUERY[first](text[: len(bare)], bare, lambda query: _query(query, reads))
    if first in WRITES:
        return Query(text)
    if first in _OWN and len(bare) > _LONGEST:
        raise Fault("54001", f"the statement has more than {_LONGEST} characters", hint="write it shorter")
    if first in _REFUSED:
        sqlstate, hint = _REFUSED[first]
        raise Fault(sqlstate, f"{first.upper()} is not done here", hint=hint)
    if first in _OWN and not _SHOW_OWN.match(bare):
        return _own(first, bare)
    if first == "explain" and _EXPLAIN_EXECUTE.match(bare):
        raise unsupported("EXPLAIN EXECUTE", "EXPLAIN the query itself, with its constants")
    return _query(text, reads)


_Ask = Callable[[str], Query | Catalog]
"""A query's text to who answers it."""


def _query(text: str, reads: Callable[[str], Reads]) -> Query | Catalog:
    what = reads(text)
    if what is Reads.BOTH:
        raise Fault(
            "0A000", "a declared table and the system catalog cannot be read in one query",
            hint="ask for each by itself",
        )  # fmt: skip
    return Catalog(text) if what is Reads.CATALOG else Query(text)


def _own(first: str, bare: str) -> Statement:
    for form, make in _COMPILED[first]:
        if match := form.fullmatch(bare):
            return make(match)
    if re.match(r"set\s+transaction\s+snapshot\b", bare, re.IGNORECASE):
        raise unsupported("SET TRANSACTION SNAPSHOT", "each statement reads the database as it is")
    if re.match(r"(?:commit|rollback)\s+prepared\b", bare, re.IGNORECASE):
        raise unsupported(f"{first.upper()} PREPARED", _ENDS)
    raise _syntax_error(first.upper())


def count_parameters(statement: Statement) -> int:
    """Return the largest n of the $n in a statement's query. Raises Refusal: no text of SQL."""
    if isinstance(statement, (Copy, Declare)):
        statement = statement.query
    if not isinstance(statement, (Query, Catalog)):
        return 0
    text = statement.text
    if (sent := read_sent_rows(text)) is not None:
        return count_sent(sent)
    tokens = tokenize(text)
    if tokens and tokens[0].text.lower() == "explain":  # the tokenizer takes what follows for one string
        tokens = tokenize(blank_prefix(text, tokens[0].end + 1))
    numbers = [
        re.match(r"\$(\d{1,4})(?!\d)", text[token.start :])
        for token in tokens
        if token.token_type is TokenType.PARAMETER
    ]
    return max((int(number[1]) for number in numbers if number), default=0)


# --- words, names and values ----------------------------------------------------------------------------

_NAME = r'([a-z_][\w$]*|"(?:[^"]|"")+")'
"""A name, quoted or not, as one group of a regular expression."""


def _word(text: str) -> str:
    """Return the first word in lower case; "" where the text begins otherwise."""
    match = re.match(r"[A-Za-z_]+", text)
    return match.group().lower() if match else ""


def _values(text: str, what: str) -> tuple[str, ...]:
    """Return the values of a list with commas: strings and quoted names as they are, words in lower case.

    Raises Fault (42601): it is no such list.
    """
    values, at, text = list[str](), 0, text.strip()
    while True:
        read = read_constant(text, at)
        if read is None:
            raise _syntax_error(what)
        values.append(read[1])
        rest = text[read[2] :].lstrip()
        if not rest:
            return tuple(values)
        if not rest.startswith(","):
            raise _syntax_error(what)
        at = len(text) - len(rest[1:].lstrip())


def _syntax_error(what: str) -> Fault:
    """Return the error of a statement of the connection's own that is not written right."""
    return Fault("42601", f"syntax error in {what}", hint="it is written as in Postgres 15", position=0)


# --- blocks and settings ----------------------------------------------------------------------------------

_LEVEL = r"(?:serializable|repeatable\s+read|read\s+(?:un)?committed)"
_MODE = rf"(?:isolation\s+level\s+{_LEVEL}|read\s+only|read\s+write|(?:not\s+)?deferrable)"
_MODES = rf"({_MODE}(?:(?:\s*,\s*|\s+){_MODE})*)"
_BLOCK = r"(?:\s+(?:work|transaction))?"
_CHAIN = r"(?:\s+and(\s+no)?(\s+chain))?"
_SCOPE = r"set(?:\s+(session|local))?\s+"
_SETTING = r'((?:[a-z_][\w$]*|"[^"]+")(?:\s*\.\s*(?:[a-z_][\w$]*|"[^"]+"))*)'


def _setting(written: str) -> str:
    return ".".join(map(unquoted, re.findall(_NAME, written, re.IGNORECASE)))


def _set(scope: str | None, name: str, written: str) -> Statement:
    values = None if written.strip().lower() == "default" else _values(written, "SET")
    return Set(name, values, (scope or "").lower() == "local")


def _reset(name: str | None) -> Statement:
    return Set(name, tag="RESET")


def _zone(match: re.Match[str]) -> Statement:
    written = match[2].strip()
    if written.lower() == "local":
        return _set(match[1], "timezone", "default")
    interval = re.fullmatch(r"interval\s*('[^']*')(?:\s+hour(?:\s+to\s+minute)?)?", written, re.IGNORECASE)
    return _set(match[1], "timezone", interval[1] if interval else written)


def _modes(text: str | None) -> Modes:
    found = list[tuple[str, str]]()
    for mode in re.findall(_MODE, text or "", re.IGNORECASE):
        words = mode.lower().split()
        if words[0] == "isolation":
            found.append(("transaction_isolation", " ".join(words[2:])))
        elif words[0] == "read":
            found.append(("transaction_read_only", "on" if words[1] == "only" else "off"))
        else:
            found.append(("transaction_deferrable", "off" if words[0] == "not" else "on"))
    return tuple(found)


def _role(match: re.Match[str]) -> Statement:
    if match[1].strip().lower() in ("none", "default"):
        return Done("SET")
    raise Fault("42501", "who you are cannot be changed", hint="connect as somebody else")


# --- cursors and prepared statements ----------------------------------------------------------------------

_QUERIES = ("select", "with", "values", "table", "")
_ENDS = "dpsql only reads: COMMIT or ROLLBACK end a block"
_DECLARE = compile_form(
    rf"declare\s+{_NAME}\s+((?:(?:binary|asensitive|insensitive|no\s+scroll|scroll)\s+)*)cursor"
    r"(?:\s+(with|without)\s+hold)?\s+for\b\s*(?=\S)"
)
_PREPARE = compile_form(rf"prepare\s+{_NAME}\s*(?:\(([^()]*(?:\([^()]*\)[^()]*)*)\))?\s*as\b\s*")
_COUNT = r"[+-]?\s*\d{1,10}"
_FETCH = (
    rf"(fetch|move)(?:\s+(next|prior|first|last|(?:absolute|relative)\s*{_COUNT}|{_COUNT}|all"
    rf"|(?:forward|backward)(?:\s*{_COUNT}|\s+all)?))?(?:\s+(?:from|in))?\s+{_NAME}"
)
_WORDS = {
    "": (Direction.FORWARD, 1), "next": (Direction.FORWARD, 1), "prior": (Direction.BACKWARD, 1),
    "first": (Direction.ABSOLUTE, 1), "last": (Direction.ABSOLUTE, -1),
}  # fmt: skip
_MAX_COUNT = 2**31 - 1


def _declare(text: str, bare: str, query: _Ask) -> Statement:
    match = _DECLARE.match(bare)
    if match is None or _word(bare[match.end() :]) not in _QUERIES:
        raise _syntax_error("DECLARE")
    options = re.findall(r"no scroll|\w+", " ".join(match[2].lower().split()))
    for one, other in (("scroll", "no scroll"), ("asensitive", "insensitive")):
        if one in options and other in options:
            both = f"{one.upper()} and {other.upper()}"
            raise Fault("42P11", f"a cursor cannot be both {both}", hint="write one of them")
    return Declare(
        unquoted(match[1]), query(blank_prefix(text, match.end())), (match[3] or "").lower() == "with",
        "binary" in options, "no scroll" in options,
    )  # fmt: skip


def _prepare(text: str, bare: str, query: _Ask) -> Statement:
    if re.match(r"prepare\s+transaction\b", bare, re.IGNORECASE):
        raise unsupported("PREPARE TRANSACTION", _ENDS)
    match = _PREPARE.match(bare)
    if match is None:
        raise _syntax_error("PREPARE")
    what = _word(bare[match.end() :])
    if what in ("update", "merge"):
        raise unsupported(what.upper(), "prepare a SELECT, INSERT or DELETE")
    if what not in (*_QUERIES, "insert", "delete") or match.end() == len(bare):
        raise _syntax_error("PREPARE")
    types = tuple(map(type_number, re.split(r",(?![^(]*\))", match[2]))) if match[2] is not None else ()
    written = blank_prefix(text, match.end())
    return Prepare(unquoted(match[1]), types, Query(written) if what in WRITES else query(written))


def _execute(match: re.Match[str]) -> Statement:
    return Execute(unquoted(match[1]), () if match[2] is None else read_arguments(match[2]))


def _fetch(match: re.Match[str]) -> Statement:
    how = (match[2] or "").lower()
    direction, count = _WORDS.get(how) or _counted(how, match[1].upper())
    return Fetch(unquoted(match[3]), direction, count, match[1].lower() == "move")


def _counted(how: str, what: str) -> tuple[Direction, int | None]:
    name = _word(how)
    direction = Direction.FORWARD if name in ("", "all") else Direction(name)
    rest = how.removeprefix(name).strip()
    if name == "all" or rest == "all":
        return direction, None
    count = int(re.sub(r"\s", "", rest)) if rest else 1
    if abs(count) > _MAX_COUNT:
        raise _syntax_error(what)
    return direction, count


# --- copies -----------------------------------------------------------------------------------------------

_HOW = r"(?:\s*(?:with\b\s*)?(?:\((?P<options>(?:[^()']|'[^']*'|\([^()]*\))*)\)|(?P<older>[^(].*)))?"
_TO = r"\s*to\s+stdout" + _HOW
_COPY = compile_form(r"copy\s*(?P<query>\(.*\))" + _TO)
_WORD = r'(?:[a-z_][\w$]*|"(?:[^"]|"")+")'
_OF_TABLE = (
    rf"copy\s+(?P<table>{_WORD}(?:\s*\.\s*{_WORD}){{0,2}})\s*"
    rf"(?:\((?P<columns>\s*{_WORD}\s*(?:,\s*{_WORD}\s*)*)\))?"
)
_COPY_TABLE = compile_form(_OF_TABLE + _TO)
_COPY_IN = compile_form(_OF_TABLE + r"\s*from\s+stdin" + _HOW)


def _copy(text: str, bare: str, query: _Ask) -> Statement:
    match = _COPY_IN.fullmatch(bare)
    if match is not None:
        return _copy_in(match)
    match = _COPY.fullmatch(bare)
    if match is None:
        match = _COPY_TABLE.fullmatch(bare)
        if match is None:
            hint = "COPY (SELECT …) TO STDOUT (FORMAT csv, HEADER), COPY table FROM STDIN"
            raise unsupported("this form of COPY", hint)
        same = f"SELECT {match['columns'] or '*'} FROM {match['table']}"
        return Copy(query(same), _copy_options(match), is_table=True)
    start, end = match.span("query")
    if _word(bare[start + 1 :].lstrip()) == "execute":
        raise Fault(
            "42601", "COPY cannot run a prepared statement", hint="write its query between the brackets"
        )
    return Copy(query(blank_prefix(text[: end - 1], start + 1)), _copy_options(match))


def _copy_in(match: re.Match[str]) -> CopyIn:
    options = _copy_options(match)
    if options.forced:
        raise Fault("42601", "FORCE_QUOTE is for COPY … TO STDOUT", hint="leave it out")
    database, schema, name = ["", "", *_names(match["table"])][-3:]
    return CopyIn(
        ObjectName(schema, name, None, database), tuple(_names(match["columns"] or "")), options.lines
    )


def _names(text: str) -> list[str]:
    return [unquoted(name) for name in re.findall(_WORD, text, re.IGNORECASE)]


def _copy_options(match: re.Match[str]) -> CopyOptions:
    """Return how rows are copied. Raises Fault."""
    if match["options"] is not None:
        return read_options(match["options"])
    return older_options(match["older"] or "")


# --- the forms, by their first words ----------------------------------------------------------------------

_CONSTRAINTS = "SET CONSTRAINTS can only be used in transaction blocks"
_Make = Callable[[re.Match[str]], Statement]
_FORMS: tuple[tuple[str, str, _Make], ...] = (
    ("begin", rf"begin{_BLOCK}(?:\s+{_MODES})?", lambda m: Begin("BEGIN", _modes(m[1]))),
    ("start", rf"start\s+transaction(?:\s+{_MODES})?", lambda m: Begin("START TRANSACTION", _modes(m[1]))),
    ("commit end", rf"(?:commit|end){_BLOCK}{_CHAIN}", lambda m: End(True, m[2] is not None and m[1] is None)),
    ("rollback abort", rf"(?:rollback|abort){_BLOCK}{_CHAIN}",
     lambda m: End(False, m[2] is not None and m[1] is None)),
    ("savepoint", rf"savepoint\s+{_NAME}", lambda m: Mark(Marking.SAVE, unquoted(m[1]))),
    ("release", rf"release\s+(?:savepoint\s+)?{_NAME}", lambda m: Mark(Marking.RELEASE, unquoted(m[1]))),
    ("rollback", rf"rollback{_BLOCK}\s+to\s+(?:savepoint\s+)?{_NAME}",
     lambda m: Mark(Marking.ROLLBACK, unquoted(m[1]))),
    ("set", rf"set\s+(?:local\s+)?transaction\s+{_MODES}", lambda m: Characteristics(_modes(m[1]), False)),
    ("set", rf"set\s+session\s+characteristics\s+as\s+transaction\s+{_MODES}",
     lambda m: Characteristics(_modes(m[1]), True)),
    ("set", r"set\s+constraints\s+.+\s(?:deferred|immediate)", lambda m: Done("SET CONSTRAINTS", _CONSTRAINTS)),
    ("set", rf"{_SCOPE}time\s+zone\s+(.+)", _zone),
    ("set", rf"{_SCOPE}names(?:\s+(.+))?", lambda m: _set(m[1], "client_encoding", m[2] or "default")),
    ("set", rf"{_SCOPE}xml\s+option\s+(.+)", lambda m: _set(m[1], "xmloption", m[2])),
    ("set", r"set\s+(?:(?:session|local)\s+)?(?:role|session\s+authorization)\s+(.+)", _role),
    ("set", rf"{_SCOPE}{_SETTING}\s*(?:=|\bto\b)\s*(.+)", lambda m: _set(m[1], _setting(m[2]), m[3])),
    ("show", r"show\s+all", lambda m: Show(None)),
    ("show", r"show\s+time\s+zone", lambda m: Show("timezone")),
    ("show", r"show\s+transaction\s+isolation\s+level", lambda m: Show("transaction_isolation")),
    ("show", r"show\s+session\s+authorization", lambda m: Show("session_authorization")),
    ("show", rf"show\s+{_SETTING}", lambda m: Show(_setting(m[1]))),
    ("reset", r"reset\s+all", lambda m: _reset(None)),
    ("reset", r"reset\s+time\s+zone", lambda m: _reset("timezone")),
    ("reset", r"reset\s+(?:transaction\s+isolation\s+level|role|session\s+authorization)", lambda m: Done("RESET")),
    ("reset", rf"reset\s+{_SETTING}", lambda m: _reset(_setting(m[1]))),
    ("deallocate", r"deallocate\s+(?:prepare\s+)?all", lambda m: Deallocate(None)),
    ("deallocate", rf"deallocate\s+(?:prepare\s+)?{_NAME}", lambda m: Deallocate(unquoted(m[1]))),
    ("discard", r"discard\s+(all|plans|sequences|temp(?:orary)?)",
     lambda m: Discard(m[1].lower().replace("temporary", "temp"))),
    ("unlisten", rf"unlisten\s+(?:\*|{_NAME})", lambda m: Done("UNLISTEN")),
    ("close", r"close\s+all", lambda m: CloseCursor(None)),
    ("close", rf"close\s+{_NAME}", lambda m: CloseCursor(unquoted(m[1]))),
    ("execute", rf"execute\s+{_NAME}\s*(?:\((.*)\))?", _execute),
    ("fetch move", _FETCH, _fetch),
)  # fmt: skip
_COMPILED: dict[str, list[tuple[re.Pattern[str], _Make]]] = {}
for _firsts, _form, _make in _FORMS:
    for _first in _firsts.split():
        _COMPILED.setdefault(_first, []).append((compile_form(_form), _make))
_OWN = frozenset(_COMPILED)
_WITH_QUERY = {"copy": _copy, "declare": _declare, "prepare": _prepare}
_READS = "nothing of the owner's is written or run: ask with SELECT"
_REFUSED = {
    **dict.fromkeys(("listen", "notify"), ("0A000", "nothing is ever notified here")),
    **dict.fromkeys(("lock", "do", "call", "load"), ("0A000", _READS)),
    **dict.fromkeys(
        ("checkpoint", "vacuum", "cluster", "reindex", "refresh", "grant", "revoke", "security", "reassign", "import"),
        ("42501", _READS),
    ),
}  # fmt: skip
"""First words of what is never done here: SQLSTATE and hint."""
_SHOW_OWN = regex(r"show\s+dpsql\s*\.", re.IGNORECASE)
_EXPLAIN_EXECUTE = compile_form(r"explain\s*(?:\([^()]*\)\s*)?(?:(?:analyze|verbose)\s+)*execute\b")
