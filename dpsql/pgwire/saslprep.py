"""SASLprep (RFC 4013), as Postgres applies it to passwords."""

from __future__ import annotations

import stringprep
import unicodedata

__all__ = ["saslprep"]

_PROHIBITED = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def saslprep(password: str) -> bytes:
    """Return the prepared password; as it is, where the profile does not allow it, as Postgres and libpq do.

    Raises ValueError: the password is empty, or holds a zero byte or half of a surrogate pair.
    """
    if not password or "\0" in password:
        raise ValueError("a password is neither empty nor holds a zero byte")
    return _prepared(password).encode()


def _prepared(password: str) -> str:
    mapped = "".join(
        [
            " " if stringprep.in_table_c12(character) else character
            for character in password
            if not stringprep.in_table_b1(character)
        ]
    )
    normal = unicodedata.normalize("NFKC", mapped)
    if not normal or any(is_prohibited(character) for character in normal for is_prohibited in _PROHIBITED):
        return password
    if any(map(stringprep.in_table_d1, normal)):
        ends_right_to_left = stringprep.in_table_d1(normal[0]) and stringprep.in_table_d1(normal[-1])
        if not ends_right_to_left or any(map(stringprep.in_table_d2, normal)):
            return password
    return normal
