"""What Excel, Tableau and Power BI ask by psqlODBC: run by `make tools` where the driver is; pyodbc speaks to it.

Prints a line for each check: ok or failed, its name, and what came.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pyodbc

PLACE = (
    f"DRIVER={sys.argv[3]};SERVER=127.0.0.1;PORT={sys.argv[1]};DATABASE=people;UID=alice;PWD={sys.argv[2]};"
)
WAYS = {
    "excel": "UseDeclareFetch=0;ReadOnly=1;",
    "tableau": "UseDeclareFetch=1;Fetch=2048;BoolsAsChar=0;UnknownsAsLongVarchar=0;MaxVarcharSize=255;",
    "power bi": "UseDeclareFetch=1;Fetch=100;BoolsAsChar=1;ByteaAsLongVarBinary=1;UpdatableCursors=0;",
    "client side": "UseServerSidePrepare=0;UseDeclareFetch=0;",
    "savepoints": "Protocol=7.4-2;",
    "keyset": "UpdatableCursors=1;Protocol=7.4-0;",
}
CATALOG: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "SQLTables": (4, lambda c: c.tables(schema="public", tableType="TABLE")),
    "SQLTables of all": (4, lambda c: c.tables()),
    "SQLTables catalogs": (1, lambda c: c.tables(catalog="%", schema="", table="")),
    "SQLTables schemas": (1, lambda c: c.tables(catalog="", schema="%", table="")),
    "SQLColumns": (7, lambda c: c.columns(table="person", schema="public")),
    "SQLColumns of all": (15, lambda c: c.columns(schema="public")),
    "SQLPrimaryKeys": (1, lambda c: c.primaryKeys("person", schema="public")),
    "SQLForeignKeys": (1, lambda c: c.foreignKeys(foreignTable="loan", foreignSchema="public")),
    "SQLStatistics": (1, lambda c: c.statistics("person", schema="public")),
    "SQLSpecialColumns": (0, lambda c: c.rowIdColumns("person", schema="public")),
    "SQLProcedures": (0, lambda c: c.procedures()),
    "SQLGetTypeInfo": (10, lambda c: c.getTypeInfo()),
}
ASKED: dict[str, tuple[int, str, tuple[Any, ...]]] = {
    "groups": (2, "SELECT city, COUNT(*) AS n, AVG(income) AS a FROM person GROUP BY city", ()),
    "quoted": (2, 'SELECT "person"."city" AS "city", SUM("person"."income") AS "s" FROM "public"."person" "person"'
               ' GROUP BY "person"."city"', ()),
    "records": (1, 'SELECT SUM(1) AS "cnt:x:ok" FROM "public"."loan" "l" HAVING (COUNT(1) > 0)', ()),
    "months": (6, "SELECT DATE_TRUNC('MONTH', CAST(\"l\".\"taken\" AS TIMESTAMP)) AS m, COUNT(1) FROM \"public\".\"loan\" \"l\""
               " GROUP BY 1", ()),
    "escapes": (1, "SELECT COUNT(*) FROM person WHERE born >= {d '1980-01-01'} AND {fn UCASE(city)} = 'NORTH'", ()),
    "moment": (1, "SELECT COUNT(*) FROM loan WHERE taken >= {ts '2024-03-01 00:00:00'}", ()),
    "power bi's folding": (2, 'select "_"."city" as "city", "_"."n" as "n" from (select "rows"."city" as "city", count(1) as "n"'
                           ' from (select "city" from "public"."person" "$Table") "rows" group by "city") "_" limit 1000', ()),
    "preview": (0, 'select "$Table"."id", "$Table"."age" from "public"."person" "$Table" limit 200', ()),
    "public rows": (20000, "SELECT i FROM number", ()),
    "number": (1, "SELECT COUNT(*) FROM person WHERE age > ? AND income < ?", (30, Decimal("99.50"))),
    "text": (1, "SELECT COUNT(*) FROM person WHERE city = ? OR city LIKE ?", ("north", "s%")),
    "day": (1, "SELECT COUNT(*) FROM person WHERE born >= ?", (datetime.date(1980, 1, 1),)),
    "moment given": (1, "SELECT COUNT(*) FROM loan WHERE taken >= ?", (datetime.datetime(2024, 3, 1, 12),)),
    "day given as moment": (1, "SELECT COUNT(*) FROM person WHERE born >= ?", (datetime.datetime(1980, 1, 1),)),
    "null": (1, "SELECT COUNT(*) FROM thing WHERE name = ? OR whole = ?", (None, None)),
    "true": (1, "SELECT COUNT(*) FROM person WHERE active = ?", (True,)),
}  # fmt: skip


def check(name: str, ask: Callable[[], Any]) -> None:
    try:
        print("ok", f"odbc {name}", str(ask()).replace("\n", " ")[:60], sep="\t", flush=True)
    except Exception as error:  # noqa: BLE001  # each place has its own
        print("failed", f"odbc {name}", f"{error!r}".replace("\n", " ")[:400], sep="\t", flush=True)


def many(cursor: Any, least: int, ask: Callable[[Any], Any]) -> int:
    rows = ask(cursor).fetchall()
    assert len(rows) >= least, rows
    return len(rows)


def described(cursor: Any) -> list[str]:
    cursor.execute("SELECT * FROM person WHERE 1 = 0")
    return [column[1].__name__ for column in cursor.description]


def again(connection: Any) -> str:
    """Return what is answered after an error in a block."""
    cursor, code = connection.cursor(), ""
    try:
        cursor.execute("SELECT age FROM person").fetchall()
    except pyodbc.Error as error:
        code = error.args[0]
    assert code == "42501", f"rows of people: {code}"
    connection.rollback()
    return str(cursor.execute("SELECT 1").fetchval())


for way, options in WAYS.items():
    for autocommit in (True, False):
        with pyodbc.connect(PLACE + options, autocommit=autocommit) as connection:
            cursor = connection.cursor()
            name = f"{way}{'' if autocommit else ' in a block'}"
            check(f"{name} types", partial(described, cursor))
            for what, (least, ask) in CATALOG.items():
                check(f"{name} {what}", partial(many, cursor, least, ask))
            for what, (least, sql, values) in ASKED.items():
                check(
                    f"{name} {what}",
                    partial(many, cursor, least, lambda c, q=sql, v=values: c.execute(q, *v)),
                )  # type: ignore[misc]
            check(f"{name} error", partial(again, connection))
