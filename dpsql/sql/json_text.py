"""Constant texts of JSON, read as Postgres reads them: `json` as it stands, `jsonb` in its one spelling."""

from __future__ import annotations

import json
from decimal import Decimal

from ..errors import Position, Refusal
from ..records import dataclass
from ..relation.expressions import Call, Expr, Literal
from ..relation.types import TEXT, Kind, SqlType

__all__ = ["MAX_DEPTH", "as_json", "json_constant", "json_text", "jsonb_text", "quoted", "sorted_keys"]

MAX_DEPTH = 100
"""Deepest nesting of a constant."""
_MAX_EXPONENT = 1_000
_DOCUMENT = "write the text of a value in JSON, its texts and keys in double quotes: '{\"a\": [1, null]}'"


@dataclass(frozen=True, slots=True)
class _Number:
    text: str


def as_json(value: Expr, target: SqlType, position: Position | None) -> Expr:
    """Return a constant, or jsonb, as one of the types of JSON.

    Raises:
        Refusal: 42804 for what has no cast, 0A000 for json as jsonb, 22023 for a text that is no JSON.
    """
    if value.is_constant and value.constant is None:
        return Literal(target, None, position=position)
    if isinstance(value.constant, str):
        return json_constant(value, target, position)
    if value.type.kind is Kind.JSONB:
        return Call(target, "json_constant", (value,), position=position)
    raise Refusal(
        f"{value.type} is not cast to {target} here", sqlstate="0A000", position=position,
        hint="a constant is: '{\"a\": 1}'::jsonb; of values use to_jsonb(x), jsonb_build_object('a', x)",
    )  # fmt: skip


def json_constant(text: Expr, target: SqlType, position: Position | None) -> Expr:
    """Return a constant text as JSON: a call, so that nothing reads it as a text. Raises Refusal (22023)."""
    assert isinstance(text.constant, str)
    read = jsonb_text if target.kind is Kind.JSONB else json_text
    return Call(target, "json_constant", (Literal(TEXT, read(text.constant, position)),), position=position)


def json_text(text: str, position: Position | None) -> str:
    """Return a text of JSON as it stands. Raises Refusal (22023): it is none."""
    _read(text, position)
    return text


def jsonb_text(text: str, position: Position | None) -> str:
    """Return the text that Postgres has of a `jsonb`. Raises Refusal (22023)."""
    return _written(_read(text, position), position)


def quoted(text: str) -> str:
    """Return a text in JSON."""
    return json.dumps(text, ensure_ascii=False)


def sorted_keys(keys: list[str]) -> list[int]:
    """Return the places of keys in the order of `jsonb`, of equal ones the last alone."""
    last = {key: place for place, key in enumerate(keys)}
    return [last[key] for key in sorted(last, key=lambda key: (len(key.encode()), key.encode()))]


def _read(text: str, position: Position | None) -> object:
    try:
        found: object = json.loads(
            text,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_no_constant,
            object_pairs_hook=_Pairs,
        )
        if _depth(text) <= MAX_DEPTH:
            return found
    except RecursionError:
        pass
    except ValueError:
        raise Refusal("this text is no JSON", sqlstate="22023", position=position, hint=_DOCUMENT) from None
    raise Refusal(
        "this JSON is nested too deeply", sqlstate="54001", position=position, hint=f"{MAX_DEPTH} levels at most"
    )  # fmt: skip


class _Pairs(list[tuple[str, object]]):
    """The members of an object, in order."""


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _depth(text: str) -> int:
    """Return a depth that the nesting of a text does not exceed."""
    depth = most = 0
    for character in text:
        if character in "[{":
            depth += 1
            most = max(most, depth)
        elif character in "]}":
            depth -= 1
    return most


def _written(value: object, position: Position | None) -> str:
    if isinstance(value, _Pairs):
        order = sorted_keys([key for key, _ in value])
        members = [(_string(value[at][0], position), _written(value[at][1], position)) for at in order]
        return "{" + ", ".join(f"{key}: {member}" for key, member in members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_written(item, position) for item in value) + "]"
    if isinstance(value, str):
        return _string(value, position)
    if isinstance(value, _Number):
        return _number(value.text, position)
    return {None: "null", True: "true", False: "false"}[value]  # type: ignore[index]


def _string(value: str, position: Position | None) -> str:
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise Refusal(
            "this JSON has a character that no text has", sqlstate="22023", position=position,
            hint="leave \\u0000 and halves of pairs out",
        )  # fmt: skip
    return quoted(value)


def _number(text: str, position: Position | None) -> str:
    number = Decimal(text)
    if abs(number.adjusted()) > _MAX_EXPONENT:
        raise Refusal(
            "this number is out of range", sqlstate="22023", position=position,
            hint=f"{_MAX_EXPONENT} digits at most",
        )  # fmt: skip
    shown = f"{number:f}"
    return shown.removeprefix("-") if not number else shown
