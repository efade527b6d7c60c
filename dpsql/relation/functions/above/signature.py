"""What a function takes and gives, as `text, integer -> text`.

The words: `integer` (any whole number, read as one of 32 bits), `int4` (a smallint or an integer), `bigint`, `numeric`
(an exact number), `double` (any number), `text`, `boolean`, `date`, `timestamp` (a date too), `clock` (no date),
`interval`, `any` (as text, as Postgres shows it), `value` (as text, as a cast makes it), `array` and `element` (one of
its values), `shown` (an array of texts, integers or dates), `texts` (of texts), `places` (of integers), `pattern`,
`format`, `flags` and `separator` (constant texts). `any...` stands last, for one value and more. What is given may be
any of these but the constants.
"""

from __future__ import annotations

from functools import cache

from ....records import dataclass
from ...types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    Kind,
    SqlType,
    array_of,
)
from ..row import ON_GROUPS, Args, Function, Syntax, Written, common_type

MOST_BYTES = 10_000
"""A text that is made longer than this is NULL: the engine holds two thousand rows of each step at once, outside of
what it limits itself to."""
MOST_VALUES = 10_000
"""An array that is made longer than this is NULL, for the same reason."""

_TYPES = {
    "integer": INTEGER, "int4": INTEGER, "bigint": BIGINT, "numeric": NUMERIC, "double": DOUBLE, "text": TEXT,
    "boolean": BOOLEAN, "date": DATE, "timestamp": TIMESTAMP,
    "clock": TIMESTAMP, "interval": INTERVAL, "pattern": TEXT, "format": TEXT, "flags": TEXT, "separator": TEXT,
    "texts": array_of(TEXT), "places": array_of(INTEGER),
}  # fmt: skip
_CONSTANT = frozenset({"pattern", "format", "flags", "separator"})
_ANY = frozenset({"any", "value"})
_OF_ARRAY = frozenset({"array", "element", "shown"})
_SHOWN = frozenset({Kind.TEXT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE})
_NEVER = (Kind.OPAQUE, Kind.ARRAY)


@dataclass(frozen=True, slots=True)
class Signature:
    """The words of what is taken, and the type of what is given; `is_open`: the last is taken once and more."""

    words: tuple[str, ...]
    given: str
    is_open: bool = False

    def result(self, args: Args) -> SqlType:
        """Return the type of what is given for arguments that fit."""
        found = self._of_array(self.given, args) if self.given in _OF_ARRAY else _TYPES[self.given]
        assert found is not None
        return found

    def word(self, place: int) -> str:
        """Return the word of an argument."""
        return self.words[min(place, len(self.words) - 1)]

    def target(self, place: int, args: Args) -> SqlType | None:
        """Return the type that an argument is read as; None where any will do."""
        word = self.word(place)
        return self._of_array(word, args) if word in _OF_ARRAY else _TYPES.get(word)

    def _of_array(self, word: str, args: Args) -> SqlType | None:
        """Return the type of an array, or of its values, as the first among arguments has it; None: none has."""
        arrays = (
            arg.type.element for place, arg in enumerate(args) if self.word(place) in ("array", "shown")
        )
        element = next((one for one in arrays if one is not None), None)
        if element is None:
            return None
        element = NUMERIC if element.kind is Kind.NUMERIC else element
        return element if word == "element" else array_of(element)

    def is_constant(self, place: int) -> bool:
        """Say whether an argument is to be a constant."""
        return self.word(place) in _CONSTANT

    def counts(self, given: int) -> bool:
        """Say whether so many arguments are taken."""
        return given == len(self.words) or (self.is_open and given > len(self.words))

    def takes(self, args: Args) -> bool:
        """Say whether arguments fit."""
        return self.counts(len(args)) and all(
            self._fits(place, args) and (not self.is_constant(place) or arg.is_constant)
            for place, arg in enumerate(args)
        )

    def _fits(self, place: int, args: Args) -> bool:
        given, word = args[place].type, self.word(place)
        if word not in _OF_ARRAY and word not in ("texts", "places"):
            return _fits(given, word)
        target = self.target(place, args)
        if target is None or (target.element or target).is_json:
            return False
        if word == "shown" and target.element is not None and target.element.kind not in _SHOWN:
            return False
        if given.kind is Kind.NULL:
            return True
        if target.element is not None:
            return given.element is not None and given.element.kind is target.element.kind
        return given.kind is target.kind or common_type([target, given]) == target


def _fits(given: SqlType, word: str) -> bool:
    if given.kind in _NEVER:
        return False
    if given.kind is Kind.NULL or word in _ANY:
        return True
    if word == "int4":
        return given.kind in (Kind.SMALLINT, Kind.INTEGER)
    if word in ("integer", "bigint"):
        return given.is_integer
    if word == "numeric":
        return given.is_integer or given.kind is Kind.NUMERIC
    if word == "double":
        return given.is_number
    if word == "timestamp":
        return given.is_temporal
    return given.kind is _TYPES[word].kind


@cache
def signature(text: str) -> Signature:
    """Return a signature as it is written in a row."""
    taken, given = text.split("->")
    words = [word.strip() for word in taken.split(",") if word.strip()]
    is_open = bool(words) and words[-1].endswith("...")
    return Signature(tuple(word.removesuffix("...") for word in words), given.strip(), is_open)


def fitting(row: Function, args: Args) -> tuple[Signature, Written]:
    """Return the first signature of a row that takes arguments, and its SQL. Raises StopIteration: none does."""
    return next(
        (one, row.sql[min(place, len(row.sql) - 1)])
        for place, one in enumerate(map(signature, row.signatures))
        if one.takes(args)
    )


def constants_of(found: Signature, args: Args) -> list[str]:
    """Return the constant texts among arguments; "" for a NULL."""
    constants = [arg for place, arg in enumerate(args) if found.is_constant(place)]
    return [arg.constant if arg.is_constant and isinstance(arg.constant, str) else "" for arg in constants]


def above(
    name: str, form: str, doc: str, takes: str, *sql: Written,
    names: tuple[str, ...] | None = None, strict: bool = True,
    grows: bool = False, syntax: tuple[Syntax, ...] = (), since: int = 0, symbol: str = "", output: str = "",
    below: str = ON_GROUPS,
) -> Function:  # fmt: skip
    """Return a row. `takes`: its signatures, with semicolons between; `sql`: the value of each, or of all.

    `names`: what it is called by, `name` where nothing is said. `strict`: NULL for a NULL. `grows`: its text may be
    longer than its arguments'. `since`: the first version of Postgres that has it, where it is not the oldest.
    """
    signatures = tuple(part.strip() for part in takes.split(";"))

    def result(args: Args) -> SqlType | None:
        found = next((one for one in map(signature, signatures) if one.takes(args)), None)
        return None if found is None else found.result(args)

    return Function(
        name, form, doc, result, private=False, names=(name,) if names is None else names, signatures=signatures,
        sql=sql, strict=strict, grows=grows, syntax=syntax, since=since, below=below, symbol=symbol, output=output,
    )  # fmt: skip
