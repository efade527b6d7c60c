"""Text files to Parquet: types that every line has, and lines that do not parse, named without a word of theirs."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dpsql.backends.prepared_rows import convert
from dpsql.errors import PolicyError


def rows(path: Path) -> list[tuple[object, ...]]:
    return duckdb.connect().execute(f"SELECT * FROM read_parquet('{path}')").fetchall()


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "it's.csv"
    path.write_text('id,n,when,x,note\n7,1,2026-01-01,1.5,"a, ""b"""\n8,,2026-01-02,,c\n')
    done = convert(path)
    assert done.target == tmp_path / "it's.parquet"
    assert done.rows == 2
    assert done.columns == (
        ("id", "BIGINT"), ("n", "BIGINT"), ("when", "DATE"), ("x", "DOUBLE"), ("note", "VARCHAR")
    )  # fmt: skip
    shown = duckdb.connect().execute(
        f"SELECT id, n, note FROM read_parquet('{str(done.target).replace(chr(39), chr(39) * 2)}')"
    )
    assert shown.fetchall() == [(7, 1, 'a, "b"'), (8, None, "c")]


@pytest.mark.parametrize("keys", [("007", "7"), ("+7", "7"), ("7 ", "7"), ("-0", "0")])
def test_numbers_that_are_written_in_two_ways_stay_two(tmp_path: Path, keys: tuple[str, str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,n\n" + "".join(f"{key},1\n" for key in keys))
    assert convert(path).columns[0] == ("id", "VARCHAR")
    assert {str(one) for one, _ in rows(tmp_path / "a.parquet")} == set(keys)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_header_tells_the_delimiter(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"id{delimiter}n\n1{delimiter}2,5\n")
    assert [name for name, _ in convert(path).columns] == ["id", "n"]


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "at": "2026-01-01T00:00:00"}\n{"id": 2, "n": 0.5}\n')
    assert convert(path).columns == (("id", "BIGINT"), ("at", "TIMESTAMP"), ("n", "DOUBLE"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "id,n\n1,2\n3,secret,5\n6,7\n", "a.csv: line 3 does not fit the others; mend it, and convert again"),
        (
            "a.jsonl", '{"id": 1}\n{"id": secret}\n',
            "a.jsonl: line 2 is no JSON object; mend it, and convert again",
        ),
        ("a.txt", "secret", "a.txt: is neither .csv, .tsv, .jsonl nor .ndjson; name such a file"),
        ("a.csv", None, "a.csv: cannot be converted: No such file or directory"),
    ],
)  # fmt: skip
def test_what_does_not_parse_is_named(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    (tmp_path / "a.parquet").write_text("of before")
    with pytest.raises(PolicyError) as caught:
        convert(tmp_path / name)
    assert caught.value.message == message
    assert caught.value.__context__ is None or "secret" not in str(caught.value)
    assert (tmp_path / "a.parquet").read_text() == "of before"
    assert not (tmp_path / "a.parquet.new").exists()
