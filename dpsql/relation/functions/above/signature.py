"""What a function takes and gives, as `text, integer -> text`.

The words: `integer` (any whole number, read as one of 32 bits), `int4` (a smallint or an integer), `bigint`, `numeric`
(an exact number), `double` (any number), `text`, `boolean`, `date`, `timestamp` (a date too), `clock` (no date),
`interval`, `any`, `pattern`, `format` and `flags` (constant texts). `any...` stands last, for one value and more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ...expressions import Literal
from ...types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, INTERVAL, NUMERIC, TEXT, TIMESTAMP, Kind, SqlType
from ..row import Args, Function, Syntax, Written

__all__ = ["MOST_BYTES", "Signature", "above", "constants_of", "fitting", "signature"]

MOST_BYTES = 10_000
"""A text that is made longer than this is NULL: the engine holds two thousand rows of each step at once, outside of
what it limits itself to."""

_TYPES = {
    "integer": INTEGER, "int4": INTEGER, "bigint": BIGINT, "numeric": NUMERIC, "double": DOUBLE, "text": TEXT,
    "boolean": BOOLEAN, "date": DATE, "timestamp": TIMESTAMP,
    "clock": TIMESTAMP, "interval": INTERVAL, "pattern": TEXT, "format": TEXT, "flags": TEXT,
}  # fmt: skip
_CONSTANT = frozenset({"pattern", "format", "flags"})
_ANY = "any"
_NEVER = (Kind.OPAQUE, Kind.ARRAY)


@dataclass(frozen=True, slots=True)
class Signature:
    """The words of what is taken, and the type of what is given; `is_open`: the last is taken once and more."""

    words: tuple[str, ...]
    result: SqlType
    is_open: bool = False

    def word(self, place: int) -> str:
        """Return the word of an argument."""
        return self.words[min(place, len(self.words) - 1)]

    def target(self, place: int) -> SqlType | None:
        """Return the type that an argument is read as; None where any will do."""
        return _TYPES.get(self.word(place))

    def is_constant(self, place: int) -> bool:
        """Say whether an argument is to be a constant."""
        return self.word(place) in _CONSTANT

    def counts(self, given: int) -> bool:
        """Say whether so many arguments are taken."""
        return given == len(self.words) or (self.is_open and given > len(self.words))

    def takes(self, args: Args) -> bool:
        """Say whether arguments fit."""
        return self.counts(len(args)) and all(
            _fits(arg.type, self.word(place)) and (not self.is_constant(place) or isinstance(arg, Literal))
            for place, arg in enumerate(args)
        )


def _fits(given: SqlType, word: str) -> bool:
    if given.kind in _NEVER:
        return False
    if given.kind is Kind.NULL or word == _ANY:
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
    return Signature(tuple(word.removesuffix("...") for word in words), _TYPES[given.strip()], is_open)


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
    return [arg.value if isinstance(arg, Literal) and isinstance(arg.value, str) else "" for arg in constants]


def above(
    name: str, form: str, doc: str, takes: str, *sql: Written,
    names: tuple[str, ...] | None = None, strict: bool = True,
    grows: bool = False, syntax: tuple[Syntax, ...] = (), since: int = 0, symbol: str = "", output: str = "",
    below: str = "use it on the aggregated result",
) -> Function:  # fmt: skip
    """Return a row. `takes`: its signatures, with semicolons between; `sql`: the value of each, or of all.

    `names`: what it is called by, `name` where nothing is said. `strict`: NULL for a NULL. `grows`: its text may be
    longer than its arguments'. `since`: the first version of Postgres that has it, where it is not the oldest.
    """
    signatures = tuple(part.strip() for part in takes.split(";"))

    def result(args: Args) -> SqlType | None:
        found = next((one for one in map(signature, signatures) if one.takes(args)), None)
        return None if found is None else found.result

    return Function(
        name, form, doc, result, private=False, names=(name,) if names is None else names, signatures=signatures,
        sql=sql, strict=strict, grows=grows, syntax=syntax, since=since, below=below, symbol=symbol, output=output,
    )  # fmt: skip
