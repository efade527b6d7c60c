"""Answers for the scripted server: every type, parameters, errors, notices, copies."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from dpsql.pgwire import (
    BinaryCopy,
    CsvOptions,
    ErrorResponse,
    FieldDescription,
    LineCopy,
    NoticeResponse,
    Oid,
    TextOptions,
    Verifier,
)

from .scripted_server import Answer, Script

ONE = Answer((FieldDescription("one", Oid.INT4, 4),), ((1,),))
EVERYTHING: dict[int, Any] = {
    Oid.BOOL: True,
    Oid.INT2: -(2**15),
    Oid.INT4: 2**31 - 1,
    Oid.INT8: -(2**63),
    Oid.NUMERIC: Decimal("-12345.6700"),
    Oid.FLOAT4: 0.5,
    Oid.FLOAT8: 1e300,
    Oid.TEXT: "grüße, \N{SNOWMAN}",
    Oid.VARCHAR: "",
    Oid.DATE: date(1999, 12, 31),
    Oid.TIMESTAMP: datetime(2024, 2, 29, 23, 59, 59, 500_000),
    Oid.INTERVAL: timedelta(days=3, hours=4),
    Oid.TEXT_ARRAY: ["a", None, 'b "c"'],
    Oid.INT8_ARRAY: [1, 2],
    Oid.OID: 4_000_000_000,
    Oid.BPCHAR: None,
}
COLUMNS = tuple(FieldDescription(f"c{oid}", oid) for oid in EVERYTHING)
ROW = tuple(EVERYTHING.values())
ROWS = Answer(
    (FieldDescription("n", Oid.INT4, 4), FieldDescription("t", Oid.TEXT)),
    tuple((n, f"t{n}") for n in range(10)),
)
PASSWORD = "pä ss\N{ROMAN NUMERAL NINE}"


def _copied(copy: LineCopy | BinaryCopy) -> Answer:
    return Answer(ROWS.columns, ROWS.rows, copy=(copy.begin(), copy.encode(ROWS.rows), copy.end()))


def make_script(verifier: Verifier) -> Script:
    """Return what the server answers to `ada`, who has the verifier's password."""
    trouble = ErrorResponse("PV002", "no", detail="because", hint="write that", position=8)
    return Script(
        {
            "SELECT 1": ONE,
            "SELECT everything": Answer(COLUMNS, (ROW, ROW)),
            "SELECT $1, $2, $3, $4, $5": Answer(
                tuple(
                    FieldDescription(f"p{i}", oid)
                    for i, oid in enumerate((Oid.INT8, Oid.TEXT, Oid.NUMERIC, Oid.DATE, Oid.FLOAT8))
                ),
                parameters=(Oid.INT8, Oid.TEXT, Oid.NUMERIC, Oid.DATE, Oid.FLOAT8),
                echo=True,
            ),
            "SELECT ten": ROWS,
            "SELECT trouble": Answer(error=trouble),
            "SET x": Answer(tag="SET", notice=NoticeResponse("00000", "charged 0.1", hint="0.9 left")),
            "SET application_name = 'PostgreSQL JDBC Driver'": Answer(tag="SET"),
            "BEGIN": Answer(tag="BEGIN"),
            "COMMIT": Answer(tag="COMMIT"),
            "COPY t": _copied(LineCopy(ROWS.columns, TextOptions())),
            "COPY c": _copied(LineCopy(ROWS.columns, CsvOptions(header=True))),
            "COPY b": _copied(BinaryCopy(ROWS.columns)),
        },
        verifiers={"ada": verifier},
    )
