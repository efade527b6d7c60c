from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsql.mechanisms.uniform import (
    COIN,
    OS_RANDOM,
    WORD_LIMIT,
    _multiply_shift,
    draw_below,
    draw_below_each,
    draw_coins,
    draw_one_below,
    draw_wide_below_each,
)

from .tape import Tape


def tape_of(words: list[int], size: int) -> Tape:
    """A tape of words of `size` bytes."""
    return Tape(b"".join(word.to_bytes(size, "little") for word in words))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 8, 10, 20, 255, 256, 257, 720, 1000, 1023, 1024])
def test_every_value_has_exactly_as_many_16_bit_words(n: int) -> None:
    words = np.arange(2**16, dtype=np.uint16)
    values, rejected = _multiply_shift(words, n, 16, np.dtype(np.uint32))
    counts = np.bincount(values[~rejected], minlength=n)
    assert counts.tolist() == [2**16 // n] * n


@pytest.mark.parametrize("n", [1025, 10**4, 10**9, 2**31 - 1, 2**31])
def test_every_value_has_exactly_as_many_32_bit_words(n: int) -> None:
    """The words of value v are the w with floor(w n / 2^32) = v; count those that are kept."""
    for v in (0, 1, n // 3, n // 2, n - 2, n - 1):
        first, last = -(-v * 2**32 // n), -(-(v + 1) * 2**32 // n) - 1
        words = np.arange(first, last + 1, dtype=np.uint32)[:100_000]
        values, rejected = _multiply_shift(words, n, 32, np.dtype(np.uint64))
        assert set(values.tolist()) == {v}
        # What was cut off above is kept: only a first word may be rejected.
        assert (last - first + 1) - int(rejected.sum()) == 2**32 // n


@pytest.mark.parametrize("n", [2**31 + 1, 10**12, 2**55, 2**55 - 1, 2**63 - 1, 2**63])
def test_64_bit_words_are_kept_up_to_the_largest_multiple(n: int) -> None:
    last_kept = 2**64 // n * n - 1
    tape = Tape(b"".join(w.to_bytes(8, "little") for w in (last_kept, 0, n - 1, n)))
    assert draw_below(n, 4, tape).tolist() == [n - 1, 0, n - 1, 0]
    if last_kept < 2**64 - 1:
        tape = Tape(b"".join(w.to_bytes(8, "little") for w in (5, last_kept + 1, 6, 7)))
        assert draw_below(n, 3, tape).tolist() == [5, 7, 6]  # the rejected word alone is drawn anew
        assert tape.rest == b""


@pytest.mark.parametrize(
    ("n", "size"), [(1, 2), (2**10, 2), (2**10 + 1, 4), (2**31, 4), (2**31 + 1, 8), (2**63, 8)]
)
def test_a_value_takes_the_narrowest_word_that_is_wide_enough(n: int, size: int) -> None:
    word = 2 ** (8 * size - 1) + (
        2**14 if size == 4 else 0
    )  # of which a narrower word would be another value
    tape = tape_of([word, 7], size)
    value = word * n >> 8 * size if size < 8 else word % n
    assert draw_below(n, 1, tape).tolist() == [value]
    assert tape.rest == (7).to_bytes(size, "little")


@pytest.mark.parametrize("n", [1, 3, 2**31, 2**55 - 1, 2**63 - 1, 2**63])
def test_each_its_own_n_is_kept_up_to_the_largest_multiple(n: int) -> None:
    last_kept = 2**64 // n * n - 1
    each = np.array([n, 1, n, n, n], dtype=np.uint64)
    tape = tape_of([last_kept, 2**64 - 1, 0, n - 1, n], 8)
    assert draw_below_each(each, tape).tolist() == [n - 1, 0, 0, n - 1, 0]
    assert tape.rest == b""
    if last_kept < 2**64 - 1:
        tape = tape_of([5 % n, last_kept + 1, 2**64 - 1, 2**64 - 1, 2], 8)
        each = np.array([n, n, 1, n, n], dtype=np.uint64)
        tape.rest += b"".join(word.to_bytes(8, "little") for word in (last_kept + 1, n - 1, last_kept))
        assert draw_below_each(each, tape).tolist() == [5 % n, n - 1, 0, n - 1, 2]
        assert tape.rest == b""


@pytest.mark.parametrize(
    "chance", [Fraction(0), Fraction(1, COIN), Fraction(1, 2**20), Fraction(5, 8), Fraction(1)]
)
def test_a_coin_is_true_for_exactly_its_share_of_words(chance: Fraction) -> None:
    heads = int(chance * COIN)
    words = sorted({0, max(heads - 1, 0), min(heads, COIN - 1), min(heads + 1, COIN - 1), COIN - 1})
    coins = draw_coins(
        chance, len(words), tape_of(words, 8)
    )  # COIN divides 2^64: each word below it stands for itself
    assert coins.tolist() == [word < heads for word in words]


@pytest.mark.parametrize(
    "chance",
    [
        Fraction(-1, COIN),
        1 + Fraction(1, COIN),
        Fraction(1, 2 * COIN),
        Fraction(1, 3),
        Fraction(7, 3),
        Fraction(-1),
    ],
)
def test_a_coin_that_cannot_be_thrown_exactly_is_an_error(chance: Fraction) -> None:
    with pytest.raises(ValueError, match="multiple of 2"):
        draw_coins(chance, 1, OS_RANDOM)


def test_a_rejected_16_bit_word_alone_is_drawn_anew() -> None:
    # 2^16 mod 3 = 1, so that only the word 0 is rejected.
    words = (60000, 0, 30000, 0, 1)
    tape = Tape(b"".join(w.to_bytes(2, "little") for w in words))
    assert draw_below(3, 3, tape).tolist() == [2, 0, 1]
    assert tape.rest == b""


def test_the_limits_are_the_ones_that_are_proved() -> None:
    assert (WORD_LIMIT, COIN) == (2**63, 2**60)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 200, 255, 256, 257, 40_000])
def test_one_at_a_time_every_value_has_exactly_one_word(n: int) -> None:
    bits = (n - 1).bit_length()
    size = (bits + 7) // 8
    step = 2 ** (8 * size - bits)  # the low bits of the last byte are not used
    seen = []
    for word in range(0, 2 ** (8 * size), step):
        tape = Tape(word.to_bytes(size, "little") + bytes(size))
        value = draw_one_below(n, tape)
        if word // step < n:
            assert len(tape.rest) == size
            seen.append(value)
        else:
            assert (value, tape.rest) == (0, b"")
    assert seen == list(range(n))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 200, 255, 256, 257, 40_000])
def test_of_wide_ones_every_value_has_exactly_one_word(n: int) -> None:
    bits = (n - 1).bit_length()
    size = (bits + 7) // 8
    step = 2 ** (8 * size - bits)
    words = range(0, 2 ** (8 * size), step)
    again = len(words) - n  # which are drawn a second time, as 0
    tape = Tape(b"".join(word.to_bytes(size, "little") for word in words) + bytes(size * again))
    assert draw_wide_below_each([n] * len(words), tape) == [*range(n), *[0] * again]
    assert tape.rest == b""


def test_wide_ones_of_several_sizes_take_the_bytes_of_each() -> None:
    wide = 2**80 + 1
    first = (7).to_bytes(2, "little") + bytes([255] * 11) + bytes([5 << 5])
    tape = Tape(first + (2**79).to_bytes(11, "little"))
    # of 81 bits in 11 bytes the last seven are not used
    assert draw_wide_below_each([2**16, wide, 1, 8], tape) == [7, 2**79 >> 7, 0, 5]
    assert tape.rest == b""


def test_a_short_source_gives_no_wide_ones() -> None:
    class Short:
        def random_bytes(self, count: int) -> bytes:
            return bytes(count - 1)

    with pytest.raises(ValueError, match="as many bytes"):
        draw_wide_below_each([2**70, 2**70], Short())


def test_big_n_one_at_a_time() -> None:
    values = [draw_one_below(10**40, OS_RANDOM) for _ in range(200)]
    assert all(0 <= value < 10**40 for value in values)
    assert max(values) > 10**39  # fails with probability 10^-200


@pytest.mark.parametrize("n", [0, -1, WORD_LIMIT + 1])
def test_n_out_of_range_is_an_error(n: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        draw_below(n, 1, OS_RANDOM)


def test_a_source_that_gives_too_little_is_an_error() -> None:
    class Short:
        def random_bytes(self, count: int) -> bytes:
            return bytes(count // 2)

    with pytest.raises(ValueError, match="buffer"):
        draw_below(20, 100, Short())
