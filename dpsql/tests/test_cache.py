"""What is remembered of statements."""

from __future__ import annotations

from dpsql.cache import Made


def test_what_is_made_of_objects_is_made_once_and_not_of_their_equals() -> None:
    made: list[tuple[list[int], ...]] = []

    def make(*those: list[int]) -> int:
        made.append(those)
        return sum(map(len, those))

    known, one, other = Made(make, 2), [1, 2], [1, 2]
    assert known.of(one, other) == known.of(one, other) == 4
    assert len(made) == 1
    known.of(other, one)
    assert len(made) == 2  # equal, and not the same
    known.of(one), known.of(other)
    known.of(one, other)
    assert len(made) == 5  # two are kept


def test_an_object_is_kept_with_what_is_made_of_it() -> None:
    """Else a new one could have its number."""
    known = Made(tuple, 8)
    assert [known.of([number]) for number in range(200)] == [(number,) for number in range(200)]
