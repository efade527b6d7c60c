"""A real Postgres as the oracle: it reads one of our formats, and must write the other as we do."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import pq

from dpsql.pgwire import Format
from dpsql.pgwire.write_binary import BINARY_WRITERS
from dpsql.pgwire.write_columns import TEXT_WRITERS

TEXT, BINARY = Format.TEXT, Format.BINARY


def written(oid: int, form: Format, value: Any) -> bytes:
    return TEXT_WRITERS[oid](value).encode() if form is TEXT else BINARY_WRITERS[oid](value)


def through_postgres(
    connection: psycopg.Connection[Any], oid: int, form: Format, data: bytes, result: Format
) -> bytes | None:
    answer = connection.pgconn.exec_params(b"SELECT $1", [data], [oid], [pq.Format(form)], pq.Format(result))
    assert answer.status == pq.ExecStatus.TUPLES_OK, answer.error_message
    return answer.get_value(0, 0)
