"""Postgres' functions of chapters 9.1 to 9.9 that are not answered: why, and what is written in their place."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["REFUSED", "Left", "refused_lines"]


@dataclass(frozen=True, slots=True)
class Left:
    """Functions that are left out for one reason, and the rewrite that works."""

    names: tuple[str, ...]
    why: str
    instead: str


_LEFT = (
    Left(("random", "random_normal", "setseed", "gen_random_uuid"),
         "it draws at random, and an answer is the same each time", "md5(x)"),
    Left(("clock_timestamp", "timeofday"), "it goes on while a statement runs", "now()"),
    Left(("sha224", "sha256", "sha384", "sha512", "encode", "decode", "convert_to", "convert_from", "convert",
          "get_byte", "set_byte", "get_bit", "set_bit", "bit_count", "crc32", "crc32c"),
         "there is no type of bytes here", "encode(sha256(convert_to(x, 'UTF8')), 'hex')"),
    Left(("quote_ident",), "which words it quotes depends on Postgres' version",
         "'\"' || replace(x, '\"', '\"\"') || '\"'"),
    Left(("to_number",), "its formats skip what they do not know", "replace(x, ',', '')::numeric"),
    Left(("to_ascii", "normalize", "is_normalized", "unistr", "casefold", "unicode_assigned", "parse_ident",
          "pg_client_encoding"), "the engine has no such table of characters", "lower(x), translate(x, 'éè', 'ee')"),
    Left(("sind", "cosd", "tand", "cotd", "asind", "acosd", "atand", "atan2d"), "it is exact at whole angles alone",
         "sin(radians(x))"),
    Left(("erf", "erfc", "gamma", "lgamma"), "not every Postgres has it", "exp(x), factorial(n)"),
    Left(("scale",), "it tells how a number was stored, which is not kept", "min_scale(x)"),
    Left(("date_add", "date_subtract"), "it is of one zone, and not every Postgres has it", "x + INTERVAL '1 day'"),
    Left(("make_time", "make_timestamptz"), "there is no such type here",
         "make_timestamp(2024, 1, 31, 12, 0, 0) AT TIME ZONE 'UTC'"),
    Left(("timezone",), "it is written as an operator here", "x::timestamptz AT TIME ZONE 'Europe/Berlin'"),
)  # fmt: skip

REFUSED = {name: left for left in _LEFT for name in left.names}
"""Name of a function -> why it is left out."""


def refused_lines() -> str:
    """Return the manual's table of what is left out."""
    rows = [
        f"| {', '.join(f'`{name}`' for name in left.names)} | {left.why} | `{left.instead}` |"
        for left in _LEFT
    ]
    return "\n".join(["| | why not | write |", "|---|---|---|", *rows])
