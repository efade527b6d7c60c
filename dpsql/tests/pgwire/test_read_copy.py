"""Rows that a client copies in: read as Postgres reads them, however their bytes are cut."""

from __future__ import annotations

import random

import pytest

from dpsql.pgwire import BinaryCopyReader, CopyReader, CsvOptions, Oid, ParameterError, TextOptions

TEXT = b"1\tx\n\\N\t\n2\ta\\tb\\\\c\\nd\n3\t\\x41\\102\\q\\\n\r\n4\tlast"
TEXT_ROWS = [["1", "x"], [None, ""], ["2", "a\tb\\c\nd"], ["3", "ABq\n"], ["4", "last"]]
CSV = b'a,b\n1,x\n,""\r\n2,"say ""hi"",\nyou"\n3,pre"quo,ted"post\n"\\.",\n'
CSV_ROWS = [["1", "x"], [None, ""], ["2", 'say "hi",\nyou'], ["3", "prequo,tedpost"], ["\\.", None]]


def read(options: TextOptions | CsvOptions, data: bytes, seed: int | None = None) -> list[list[str | None]]:
    reader, found, at = CopyReader(options), list[list[str | None]](), 0
    cuts = random.Random(seed)
    while at < len(data):
        size = len(data) if seed is None else cuts.randint(1, 3)
        found += reader.feed(data[at : at + size])
        at += size
    found += reader.finish()
    assert reader.rows == len(found)
    return found


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_rows_are_the_same_however_they_are_cut(seed: int | None) -> None:
    assert read(TextOptions(), TEXT, seed) == TEXT_ROWS
    assert read(CsvOptions(header=True), CSV, seed) == CSV_ROWS
    assert read(CsvOptions(escape="\\"), b'"a\\"b\\\\","c\nd"\n', seed) == [['a"b\\', "c\nd"]]
    assert read(TextOptions(";", "NA"), b"NA;x\\;y\n", seed) == [[None, "x;y"]]
    assert read(TextOptions(), b"1\n\\.\nafter\n", seed) == [["1"]]
    assert read(TextOptions(), b"\\xc3\\251\\\xc3\xa9\n", seed) == [["éé"]]
    assert read(TextOptions(), b"", seed) == []


@pytest.mark.parametrize(
    ("options", "data", "sqlstate"),
    [
        (CsvOptions(), b'"open\n', "22P04"),
        (TextOptions(), b"\xff\n", "22021"),
        (TextOptions(), b"a\0b\n", "22021"),
        (TextOptions(), b"a\\000b\n", "22021"),
        (TextOptions(), b"a\\x0\n", "22021"),
        (TextOptions(), b"\\xe9\n", "22021"),
        (TextOptions(), b"x" * (4 * 2**20 + 1), "54000"),
    ],
)
def test_what_is_no_row_is_refused(options: TextOptions | CsvOptions, data: bytes, sqlstate: str) -> None:
    with pytest.raises(ParameterError) as refused:
        read(options, data)
    assert refused.value.sqlstate == sqlstate


HEAD = b"PGCOPY\n\xff\r\n\0" + b"\0" * 8
ROW = b"\0\2" + b"\0\0\0\4" + b"\0\0\0\7" + b"\0\0\0\1x"
LAST = b"\xff\xff"


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_binary_rows_are_the_same_however_they_are_cut(seed: int | None) -> None:
    null = b"\0\2" + b"\xff\xff\xff\xff" * 2
    more = HEAD[:-4] + b"\0\0\0\3abc"
    for data in (HEAD + ROW + null + LAST, more + ROW + null + LAST + b"after", HEAD + ROW + null):
        reader, found, cuts, at = (
            BinaryCopyReader((Oid.INT4, Oid.TEXT)),
            list[list[object]](),
            random.Random(seed),
            0,
        )
        while at < len(data):
            size = len(data) if seed is None else cuts.randint(1, 3)
            found += reader.feed(data[at : at + size])
            at += size
        assert [*found, *reader.finish()] == [[7, "x"], [None, None]]
        assert reader.rows == 2


@pytest.mark.parametrize(
    ("data", "sqlstate"),
    [
        (b"", "22P04"),
        (b"1\tx\n", "22P04"),
        (HEAD[:15], "22P04"),
        (HEAD[:-8] + b"\0\1\0\0\0\0\0\0", "22P04"),
        (HEAD[:-4] + b"\xff\xff\xff\xff", "22P04"),
        (HEAD + ROW[:-1], "22P04"),
        (HEAD + b"\0\1" + ROW[2:], "22P04"),
        (HEAD + b"\x80\0", "22P04"),
        (HEAD + b"\0\2" + b"\xff\xff\xff\xfe", "22P04"),
        (HEAD + b"\0\2" + b"\0\0\0\3abc" + b"\0\0\0\1x", "22P03"),
        (HEAD + b"\0\2" + b"\0\0\0\4abcd" + b"\0\0\0\1\xff", "22021"),
    ],
)
def test_what_is_no_copy_in_binary_is_refused(data: bytes, sqlstate: str) -> None:
    reader = BinaryCopyReader((Oid.INT4, Oid.TEXT))

    def read_all() -> None:
        reader.feed(data)
        reader.finish()

    with pytest.raises(ParameterError) as refused:
        read_all()
    assert refused.value.sqlstate == sqlstate


def test_a_binary_row_of_any_length_is_not_waited_for() -> None:
    reader = BinaryCopyReader((Oid.TEXT,))
    reader.feed(HEAD + b"\0\1\x7f\xff\xff\xff")
    assert reader.feed(b"x" * 2**20) == []
    with pytest.raises(ParameterError, match="more than"):
        reader.feed(b"x" * 3 * 2**20)
