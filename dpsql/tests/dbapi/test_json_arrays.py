"""JSON and arrays through the DB-API, the frames and the command line's formats: texts, and lists."""

from __future__ import annotations

import json

import pytest

import dpsql
from dpsql.engine import AnswerColumn
from dpsql.relation.types import JSON, JSONB, TEXT, array_of
from dpsql.words import plain_text

SQL = (
    "SELECT json_build_object('a', 1) AS j, to_jsonb(ARRAY[1, 2]) AS b, ARRAY['x', NULL] AS t, "
    "array_agg(i ORDER BY i) AS i, ARRAY[to_jsonb(1)] AS bs FROM number WHERE i < 3"
)
ROW = ('{"a" : 1}', "[1, 2]", ["x", None], [0, 1, 2], ["1"])


def test_rows_are_texts_and_lists(connection: dpsql.Connection) -> None:
    cursor = connection.execute(SQL)
    assert [column[1] for column in cursor.description or ()] == [
        "json",
        "jsonb",
        "text[]",
        "bigint[]",
        "jsonb[]",
    ]
    assert [column[1] == dpsql.STRING for column in cursor.description or ()] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert cursor.fetchall() == [ROW]


def test_frames(connection: dpsql.Connection) -> None:
    pa = pytest.importorskip("pyarrow")
    table = connection.execute(SQL).fetch_arrow_table()
    assert table.schema.types == [
        pa.string(), pa.string(), pa.list_(pa.string()), pa.list_(pa.int64()), pa.list_(pa.string()),
    ]  # fmt: skip
    assert tuple(table.to_pylist()[0].values()) == ROW
    frame = connection.execute(SQL).fetchdf()
    assert (frame.j[0], list(frame.i[0])) == ('{"a" : 1}', [0, 1, 2])
    assert connection.execute(SQL).pl().rows() == [ROW]


def test_what_the_command_line_shows() -> None:
    shown = plain_text(["a", "b,c", None, "", 'q"\\', "null", "x y", "{}"])
    assert shown == '{a,"b,c",NULL,"","q\\"\\\\","null","x y","{}"}'
    assert plain_text(['{"a" : 1}']) == '{"{\\"a\\" : 1}"}'
    assert [str(type_) for type_ in (JSON, JSONB, array_of(TEXT), array_of(JSONB))] == [
        "json", "jsonb", "text[]", "jsonb[]",
    ]  # fmt: skip
    assert json.loads(ROW[0]) == {"a": 1}
    assert AnswerColumn("j", JSON).type.is_json
