"""What values of a public table look like: a look, which decides nothing."""

from __future__ import annotations

import pytest

from dpsql.policy.scaffold import look_of

LOOKS = {
    "e-mail addresses": [f"person{i}@example.org" for i in range(5)],
    "IP addresses": ["10.0.0.1", "192.168.7.9", "2001:db8::1", "10.1.2.0/24"],
    "phone numbers": [
        "+41 44 123 45 67",
        "044 123 45 67",
        "0041-79-555-12-34",
        "(none)",
        "+1 (555) 010-1234",
    ],
    "random identifiers": ["9b2d7f6e-0c1b-4f43-9a86-1f1b6f5a2e11", "9B2D7F6E0C1B4F439A861F1B6F5A2E12"],
    "numbers of which each stands once": [f"CH{i:07}" for i in range(30)],
}


@pytest.mark.parametrize("words", LOOKS)
def test_what_looks_like_a_persons(words: str) -> None:
    assert look_of(LOOKS[words], is_key=False) == words


@pytest.mark.parametrize(
    "values",
    [
        [],
        ["CH", "FR", "DE"],
        ["2026-01-01", "2025-12-31 10:00"],
        ["1.2.3", "1.10.0"],
        ["Zürich", "Genève", "a sentence with 1 number"],
        [f"word{i}" for i in range(30)],
        [f"CH{i:07}" for i in range(5)],
        [f"CH{i % 9:07}" for i in range(30)],
        ["12:30:00", "08:15:59"],
        ["3.14159", "-2.71828"],
    ],
)
def test_what_does_not(values: list[str]) -> None:
    assert look_of(values, is_key=False) is None


def test_a_lookups_own_code_is_no_look() -> None:
    codes = [f"P{i:05}" for i in range(50)]
    assert look_of(codes, is_key=True) is None
    assert look_of([f"{one}@example.org" for one in codes], is_key=True) == "e-mail addresses"
