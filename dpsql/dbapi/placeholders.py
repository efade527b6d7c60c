"""Placeholders: a statement as people write it for Python, to the engine's $1, $2, ….

`?` is the declared style: it means nothing else in the SQL that dpsql reads. `$1`, `%s`, and by name `:name`
and `%(name)s`, are read too. Right behind IN one stands for a list, and becomes a parameter for each value: `IN ?`.

House rules:

1. Only tokens are looked at: nothing inside quotes or comments is a placeholder, and no value is ever put
   into the text.
2. `%` and `:` begin a placeholder only where an expression must begin, and there they can mean nothing else.
3. Where psycopg and we would read a text differently (a `%` in quotes or `%%` beside `%s`), it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from sqlglot.tokenizer_core import TokenType

from ..errors import Position
from ..records import dataclass
from ..regex import regex
from ..sql.text import blank_prefix, place, tokenize
from ..words import counted
from .errors import ProgrammingError, guarded

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

Parameters = Iterable[object] | Mapping[str, object] | None
"""Values in order, or by name."""
Given = tuple[object, ...] | Mapping[str, object]
"""The same, read once; none is an empty tuple."""

_Found = tuple["re.Match[str]", str, bool]
_STYLES = {
    "?": re.compile(r"\?"),
    "$1": re.compile(r"\$([0-9]{1,9})"),
    "%s": re.compile(r"%s(?!\w)"),
    "%(name)s": re.compile(r"%\((\w+)\)s(?!\w)"),
    ":name": re.compile(r":([A-Za-z_]\w*)"),
}
_WORD = regex(r"[\w$.]")
_BY_NAME = ("%(name)s", ":name")
_QUOTED = frozenset(
    {TokenType.STRING, TokenType.IDENTIFIER, TokenType.RAW_STRING, TokenType.HEREDOC_STRING,
     TokenType.UNICODE_STRING, TokenType.BYTE_STRING, TokenType.NATIONAL_STRING}
)  # fmt: skip
_BEFORE_OPERAND = frozenset(
    {"=", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "|", "||", "(", ",", "SELECT", "DISTINCT",
     "WHERE", "AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "BETWEEN", "WHEN", "THEN", "ELSE", "CASE", "LIMIT",
     "OFFSET", "HAVING", "ON"}
)  # fmt: skip
"""After these an expression begins: no operator can stand there, and no word of these is a column's name."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder: where it stands in the written text, and where what replaces it stands in the engine's."""

    written: int
    written_end: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ParameterizedStatement:
    """A statement as `written` and its `text` for the engine, which takes `count` parameters.

    `names`: what each parameter is called; None where they are given in order. `count` None: the engine
    counts. `lists`: the places of those behind IN, which are lists of so many values as `text` has parameters for.
    """

    written: str
    text: str
    count: int | None = None
    names: tuple[str, ...] | None = None
    cuts: tuple[Placeholder, ...] = ()
    lists: frozenset[int] = frozenset()

    def find(self, position: Position) -> Position:
        """Return where a position in the engine's text is in the written one."""
        offset = position.offset
        for cut in reversed(self.cuts):
            if offset >= cut.start:
                after = offset - cut.end
                offset = cut.written if after < 0 else cut.written_end + after
                break
        return place(self.written, min(offset, len(self.written)))

    def bind(self, given: Given) -> tuple[object, ...]:
        """Return the values in the engine's order.

        Raises:
            ProgrammingError: too many or too few, a name without a value, or names for values in order.
        """
        if self.names is None:
            if isinstance(given, Mapping) and given:
                raise _misfit("the parameters have names and the statement has none", "write :name")
            if self.count is not None and self.count != len(given):
                raise _misfit(
                    f"the statement takes {counted(self.count, 'parameter')}, {len(given)} given",
                    "pass one for each placeholder",
                )
            return self._flat(tuple(given))
        if not isinstance(given, Mapping):
            raise _misfit("the statement's parameters have names", "pass a dict, or write ? and pass a list")
        missing = [name for name in self.names if name not in given]
        if missing:
            raise _misfit(f'parameter "{missing[0]}" is not given', "pass a value for each name")
        return self._flat([given[name] for name in self.names])

    def _flat(self, values: Sequence[object]) -> tuple[object, ...]:
        if not self.lists:
            return tuple(map(_plain, values))
        found: list[object] = []
        for index, value in enumerate(values):
            found += _items(value) if index in self.lists else [_plain(value)]
        return tuple(found)


def read_statement(written: str, given: Given) -> ParameterizedStatement:
    """Return a statement for the engine; one without parameters and without `?` goes as it is.

    Raises:
        ProgrammingError: no text of SQL, placeholders of two styles, or one that could be read in two ways.
    """
    if not isinstance(written, str):
        raise ProgrammingError("a statement is a str")
    if not given and "?" not in written:
        return ParameterizedStatement(written, written)
    statement = _read(written)
    if not statement.lists:
        return statement
    if statement.names is None:
        if isinstance(given, Mapping) or len(given) != statement.count:
            return statement  # `bind` says so
        values = tuple(given)
    elif isinstance(given, Mapping) and all(name in given for name in statement.names):
        values = tuple(given[name] for name in statement.names)
    else:
        return statement
    return _read(written, tuple(len(_items(values[place])) for place in sorted(statement.lists)))


def collected(parameters: Parameters) -> Given:
    """Return parameters as a tuple or a mapping. Raises ProgrammingError for what is neither."""
    if parameters is None:
        return ()
    if isinstance(parameters, Mapping):
        return parameters
    if isinstance(parameters, (str, bytes)) or not isinstance(parameters, Iterable):
        raise _misfit("the parameters are one value", "pass a list of values: [value]")
    return tuple(parameters)


def is_setting(text: str) -> bool:
    """Say whether a statement is SET, RESET or SHOW. Raises as the engine's own reading of the text."""
    tokens = guarded(lambda: tokenize(text))
    return bool(tokens) and tokens[0].text.lower() in ("set", "reset", "show")


@lru_cache(maxsize=256)
def _read(written: str, sizes: tuple[int, ...] | None = None) -> ParameterizedStatement:
    """Return a statement; `sizes`: of the lists behind IN, None where they are not known yet."""
    tokens = guarded(lambda: tokenize(written))
    if tokens and tokens[0].text.lower() == "explain":  # the tokenizer takes what follows for one string
        query = blank_prefix(written, tokens[0].end + 1)
        tokens = guarded(lambda: tokenize(query))
    found = _found(written, tokens)
    styles = {style for _, style, _ in found}
    if len(styles) > 1:
        raise _misfit(f"placeholders of two styles: {' and '.join(sorted(styles))}", "write ? for each")
    if not found:
        return ParameterizedStatement(written, written, 0)
    (style,) = styles
    _refuse_doubtful(written, tokens, style)
    if style == "$1":
        return ParameterizedStatement(written, written, max(int(match[1]) for match, _, _ in found))
    return _rewritten(written, found, style in _BY_NAME, sizes)


def _rewritten(
    written: str, found: Sequence[_Found], by_name: bool, sizes: tuple[int, ...] | None
) -> ParameterizedStatement:
    """Return the statement with each placeholder as $1, $2, …, set off by blanks where it touches a word."""
    keys = [(match[1] if by_name else str(at), is_list) for at, (match, _, is_list) in enumerate(found)]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    lists = [place for (_, is_list), place in places.items() if is_list]
    widths = dict(zip(lists, sizes or [1] * len(lists), strict=True))
    first = [1 + sum(widths.get(before, 1) for before in range(place)) for place in range(len(places))]
    names = tuple(name for name, _ in places) if by_name else None
    cuts: list[Placeholder] = []
    text, done = "", 0
    for (match, _, is_list), key in zip(found, keys, strict=True):
        number = first[places[key]]
        engines = f"${number}"
        if is_list:
            engines = f"({', '.join(f'${number + more}' for more in range(widths[places[key]]))})"
        before = " " if _WORD.match(written[match.start() - 1 : match.start()]) else ""
        after = " " if _WORD.match(written[match.end() : match.end() + 1]) else ""
        text += written[done : match.start()]
        start = len(text)
        text += f"{before}{engines}{after}"
        cuts.append(Placeholder(match.start(), match.end(), start, len(text)))
        done = match.end()
    return ParameterizedStatement(
        written, text + written[done:], len(places), names, tuple(cuts), frozenset(lists)
    )


def _found(written: str, tokens: Sequence[Token]) -> list[_Found]:
    """Return the placeholders in order, each with its style, and whether it stands right behind IN."""
    found: list[_Found] = []
    before: Token | None = None
    end = 0
    for token in tokens:
        if token.start < end:
            before = None if token.end + 1 < end else token
            continue
        for style in _possible(token, before):
            match = _STYLES[style].match(written, token.start)
            if match is not None:
                is_list = before is not None and before.token_type is TokenType.IN
                found.append((match, style, is_list))
                end = match.end()
                break
        before = token
    return found


def _possible(token: Token, before: Token | None) -> tuple[str, ...]:
    """Return the styles that a token may begin, from its kind and from what stands before it."""
    if token.token_type in _QUOTED:
        return ()
    if token.text.startswith("?"):  # `?::int` and `?||x` begin with a token of their own
        return ("?",)
    if token.token_type is TokenType.PARAMETER:
        return ("$1",)
    if before is None or before.token_type in _QUOTED or before.text.upper() not in _BEFORE_OPERAND:
        return ()
    if token.token_type is TokenType.MOD:
        return ("%s", "%(name)s")
    return (":name",) if token.token_type is TokenType.COLON else ()


def _refuse_doubtful(written: str, tokens: Sequence[Token], style: str) -> None:
    """Refuse what would be read differently once the placeholders are $1, or by psycopg."""
    for token in tokens:
        if token.token_type is TokenType.HEREDOC_STRING:
            raise ProgrammingError(
                "a dollar-quoted string stands beside placeholders", sqlstate="42601",
                position=place(written, token.start), hint="use single quotes",
            )  # fmt: skip
        if not style.startswith("%"):
            continue
        is_doubled = token.token_type is TokenType.MOD and written[token.start : token.start + 2] == "%%"
        if is_doubled or (token.token_type in _QUOTED and "%" in written[token.start : token.end + 1]):
            raise ProgrammingError(
                f"a % that may be doubled or not stands beside {style}", sqlstate="42601",
                position=place(written, token.start),
                hint="write the placeholders as ?, or pass the text as a parameter",
            )  # fmt: skip


def _items(value: object) -> list[object]:
    """Return the values of a list for IN. Raises ProgrammingError: it is none, or is empty."""
    if isinstance(value, (set, frozenset)) or (
        hasattr(value, "tolist") and not isinstance(value, np.generic)
    ):
        value = (
            list(value) if isinstance(value, (set, frozenset)) else value.tolist()
        )  # a column of pandas too
    if not isinstance(value, (list, tuple)):
        raise _misfit("behind IN a parameter is a list, and one value is given", "pass [value], or write =")
    if not value:
        raise _misfit("the list for IN is empty", "write = ANY(?), or <> ALL(?): they take an empty list too")
    return list(map(_plain, value))


def _plain(value: object) -> object:
    """Return a number of numpy's as Python's own, and a list as a tuple of such."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, (np.integer, np.floating, np.bool_)) else value


def _misfit(message: str, hint: str) -> ProgrammingError:
    return ProgrammingError(message, sqlstate="42P02", hint=hint)
