"""What real clients ask: the answers are those of a Postgres 15 that has the same objects, and no rows.

`corpus.json` holds the texts as the clients sent them, with {{schema.relation}} for an OID; those of DBeaver,
DataGrip, Metabase, Grafana, Power BI and pgAdmin are written after what those send. `rows` are Postgres' answer, where
it is short. `differs` says why an answer is meant to be another one; its columns are Postgres' nevertheless.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from dpsql.pgwire import Format, read_parameter
from dpsql.pgwire.write_binary import BINARY_WRITERS
from dpsql.pgwire.write_columns import TEXT_WRITERS
from dpsql.system_catalog import Reads, SystemCatalog
from dpsql.tests.support.length import tried
from dpsql.tests.system_catalog.dataset import FACTS, our_side, postgres_side

_CORPUS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("corpus.json").read_text(encoding="utf-8")
)
_Columns = list[list[Any]]
_Rows = list[list[str | None]]


def _id(case: dict[str, Any]) -> str:
    return f"{_CORPUS.index(case)}-{case['client'].replace('/', '-')}"


def _ours(catalog: SystemCatalog, case: dict[str, Any]) -> tuple[_Columns, _Rows]:
    side = our_side(catalog)
    sql, values = str(side.fill(case["sql"])), [side.fill(value) for value in case["values"]]
    assert catalog.reads(sql) is Reads.CATALOG
    described, types = catalog.describe(sql, FACTS)
    read = [
        read_parameter(oid, Format.TEXT, None if value is None else value.encode())
        for oid, value in zip(types, values, strict=True)
    ]
    columns, rows = catalog.run(sql, FACTS, read)
    assert columns == described
    for row in rows:  # what is not of its type cannot be written
        for column, value in zip(columns, row, strict=True):
            if value is not None and column.oid in BINARY_WRITERS:
                BINARY_WRITERS[column.oid](value)
    texts = [
        [
            None if value is None else side.plain(TEXT_WRITERS[column.oid](value))
            for column, value in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    return [[column.name, column.oid, column.modifier] for column in columns], texts


def _theirs(connection: psycopg.Connection[Any], case: dict[str, Any]) -> tuple[_Columns, _Rows]:
    side = postgres_side(connection)
    values = [side.fill(value) for value in case["values"]]
    cursor = psycopg.RawCursor(connection)
    cursor.execute(str(side.fill(case["sql"])).encode(), values or None)
    result = cursor.pgresult
    assert result is not None
    columns = [
        [(result.fname(at) or b"").decode(), result.ftype(at), result.fmod(at)]
        for at in range(result.nfields)
    ]
    cells = [[result.get_value(row, at) for at in range(result.nfields)] for row in range(result.ntuples)]
    return columns, [[None if cell is None else side.plain(cell.decode()) for cell in row] for row in cells]


def _in_order(rows: _Rows, case: dict[str, Any]) -> _Rows:
    return sorted(rows, key=repr) if "any_order" in case else rows


@pytest.mark.parametrize("case", [case for case in _CORPUS if "rows" in case], ids=_id)
def test_the_answer_is_what_postgres_said(catalog: SystemCatalog, case: dict[str, Any]) -> None:
    columns, rows = _ours(catalog, case)
    assert columns == case["columns"]
    assert _in_order(rows, case) == _in_order(case["rows"], case)


@pytest.mark.parametrize("case", [case for case in _CORPUS if "differs" in case], ids=_id)
def test_what_differs_on_purpose_has_the_same_columns(catalog: SystemCatalog, case: dict[str, Any]) -> None:
    columns, _ = _ours(catalog, case)
    names_only = slice(1) if "anyarray" in case["differs"] else slice(3)
    assert [column[names_only] for column in columns] == [column[names_only] for column in case["columns"]]


def test_the_answers_are_those_of_a_postgres(
    catalog: SystemCatalog, postgres: psycopg.Connection[Any]
) -> None:
    wrong = []
    for case in _CORPUS[:: tried(4, 1)]:
        if "differs" not in case:
            columns, rows = _ours(catalog, case)
            expected, theirs = _theirs(postgres, case)
            if columns != expected or _in_order(rows, case) != _in_order(theirs, case):
                wrong.append(case["sql"])
    assert wrong == []


def test_what_differs_on_purpose_does_differ(
    catalog: SystemCatalog, postgres: psycopg.Connection[Any]
) -> None:
    same = [
        case["sql"]
        for case in [case for case in _CORPUS if "differs" in case][:: tried(3, 1)]
        if _ours(catalog, case) == _theirs(postgres, case)
    ]
    assert same == []
