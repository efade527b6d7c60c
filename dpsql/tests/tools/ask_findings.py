"""What was found to stop tools, F1 to F11, asked of people's tables as the tools send it: run by `make tools`.

Prints a line for each check: ok or failed, its name, and what came. A check's name begins with its finding. What is
refused by intent is a check too, of the code that it is refused with.
"""

from __future__ import annotations

import datetime
import json
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import psycopg
import psycopg2

PORT, WORD = int(sys.argv[1]), sys.argv[2]
AT = {"host": "127.0.0.1", "port": PORT, "user": "alice", "password": WORD, "dbname": "people"}
MONTH = datetime.timedelta(days=30)

# Of each finding: statements with their parameters ($n, bound by the server), and how many rows come; a text is the
# SQLSTATE of a refusal that is meant; None: any number.
Asked = tuple[str, Sequence[Any], int | str | None]
ASKED: dict[str, list[Asked]] = {
    "F1 DataGrip": [
        (
            "select L.transactionid::varchar::bigint as transaction_id from pg_catalog.pg_locks L where L.transactionid "
            "is not null order by pg_catalog.age(L.transactionid) desc limit 1", (), 0,
        ),
        ("select round(extract(epoch from pg_postmaster_start_time() at time zone 'UTC')) as startup_time", (), 1),
        ("select pg_catalog.age(T.xmin) from pg_catalog.pg_class T limit 1", (), 1),
        ("select pg_catalog.pg_indexam_has_property(oid, 'can_order') from pg_catalog.pg_am where amname = 'btree'", (), 1),
    ],
    "F2 units and intervals": [
        ("SELECT date_trunc(%s, taken), COUNT(*) FROM loan GROUP BY 1", ("quarter",), None),
        ("SELECT date_trunc('month'::text, taken), COUNT(*) FROM loan GROUP BY 1", (), None),
        ("SELECT date_part(%s, taken), COUNT(*) FROM loan GROUP BY 1", ("month",), 13),
        ("SELECT COUNT(*) FROM loan WHERE taken >= TIMESTAMP '2024-06-01' - %s", (MONTH,), 1),
        ("SELECT COUNT(*) FROM loan WHERE taken >= now() - '30 days 0.000000 seconds'::interval", (), 1),
        ("SELECT COUNT(*) FROM loan WHERE taken >= now() - %s * interval '1 day'", (30,), 1),
        ("SELECT COUNT(*) FROM loan WHERE taken >= now() - make_interval(days => 30)", (), 1),
    ],
    "F3 dates and casts": [
        ("SELECT DATE(taken), COUNT(*) FROM loan GROUP BY 1", (), None),
        ("SELECT COUNT(*) FROM loan WHERE taken >= now() + (-6 || ' day')::INTERVAL", (), 1),
        ("SELECT COALESCE(SUM(CAST(income AS DECIMAL(65))), 0) FROM person", (), 1),
        ("SELECT COUNT(*) FROM person WHERE city = ANY (VALUES ('north'), ('south'))", (), 1),
        ("SELECT COUNT(*) FROM ONLY person", (), 1),
        ("SELECT approx_count_distinct(city) FROM person", (), 1),
        ("WITH p AS (SELECT 30 AS age) SELECT COUNT(*) FROM person, p WHERE person.age > p.age", (), 1),
        ("SELECT COUNT(*) FROM person s, LATERAL (SELECT 1) l", (), 1),
        ("SELECT COUNT(*) FROM loan WHERE taken::time >= '09:00'", (), 1),
        ("SELECT date_trunc('hour', taken)::time, COUNT(*) FROM loan GROUP BY 1", (), 25),
        ("SELECT pg_typeof(count(*)) FROM person", (), "42883"),
    ],
    "F4 what the schema proves": [
        ("select count(*) as failures, count(*) != 0 as warns from (select id from person where id is null) t", (), 1),
        ("select count(*) from (select id from person group by id having count(*) > 1) t", (), 1),
        ("select count(*) from loan l left join person p on l.person_id = p.id where p.id is null", (), 1),
    ],
    "F5 functions of declared values": [
        ("SELECT upper(city), COUNT(*) FROM person GROUP BY 1", (), 3),
        ("SELECT length(city), COUNT(*) FROM person GROUP BY 1", (), None),
        ("SELECT lpad(extract(month from taken)::text, 2, '0'), COUNT(*) FROM loan GROUP BY 1", (), None),
        ("SELECT starts_with(city, 'n'), COUNT(*) FROM person GROUP BY 1", (), None),
        ("SELECT concat_ws(', ', city, 'CH'), COUNT(*) FROM person GROUP BY 1", (), None),
        ("SELECT born::text, COUNT(*) FROM person WHERE born BETWEEN '1990-01-01' AND '1990-01-03' GROUP BY 1", (), None),
    ],
    "F6 grids": [
        ("SELECT x.* FROM public.person x", (), 0),
        ("SELECT * FROM public.person ORDER BY id ASC", (), 0),
        ("SELECT * FROM person LIMIT 200", (), 0),
        ("SELECT t.*, CTID FROM public.person t LIMIT 501", (), 0),
        ("SELECT t.*, CTID FROM public.thing t LIMIT 501", (), None),
        ("SELECT * FROM person WHERE age > 30", (), "42501"),
    ],
    "F9 EXPLAIN": [
        ("EXPLAIN (FORMAT YAML) SELECT COUNT(*) FROM person", (), 1),
        ("EXPLAIN (FORMAT JSON, ANALYZE OFF, VERBOSE OFF, COSTS ON) SELECT COUNT(*) FROM person", (), 1),
    ],
    "F11 small": [
        ("SELECT 'a\r\nb' AS day, COUNT(*) FROM person", (), 1),
        ("SELECT COUNT(*)::text || ' ± ' || ((dp_high(COUNT(*)) - dp_low(COUNT(*))) / 2)::text FROM person", (), 1),
    ],
}  # fmt: skip
COPIES = {
    "delimiter": ("COPY (SELECT city, COUNT(*) AS n FROM person GROUP BY city) TO STDOUT WITH CSV HEADER DELIMITER ';'", "city;n"),
    "null": ("COPY (SELECT NULL AS a FROM number LIMIT 1) TO STDOUT WITH (FORMAT csv, NULL '-')", "-"),
    "quote": ("COPY (SELECT 'a' AS a FROM number LIMIT 1) TO STDOUT WITH (FORMAT csv, QUOTE '''', FORCE_QUOTE *)", "'a'"),
    "encoding": ("COPY thing (id) TO STDOUT WITH (ENCODING 'UTF8')", "1"),
}  # fmt: skip


def check(name: str, ask: Callable[[], Any]) -> None:
    try:
        print("ok", name, str(ask()).replace("\n", " ")[:60], sep="\t", flush=True)
    except Exception as error:  # noqa: BLE001  # each tool has its own
        said = f"{type(error).__name__} {error}".replace("\n", " ")[:400]
        print("failed", name, said, sep="\t", flush=True)


def answered(connection: psycopg.Connection[Any], asked: Asked) -> int | str:
    sql, parameters, expected = asked
    try:
        found = connection.execute(sql, parameters or None).fetchall()
    except psycopg.Error as error:
        if error.sqlstate != expected:
            raise
        return str(expected)
    if expected is not None and len(found) != expected:
        raise AssertionError(f"{len(found)} rows, not {expected}")
    return len(found)


def copied(connection: psycopg.Connection[Any], sql: str, first: str) -> str:
    with connection.cursor().copy(sql) as copy:
        text = b"".join(bytes(part) for part in copy).decode()
    assert text.split("\n")[0] == first, text
    return text


def estimated(connection: psycopg.Connection[Any]) -> str:
    """Superset's estimate of a cost, with its own pattern."""
    line = connection.execute("EXPLAIN SELECT city, COUNT(*) FROM person GROUP BY city").fetchall()[0][0]
    found = re.search(r"cost=([\d\.]+)\.\.([\d\.]+)", line)
    assert found is not None, line
    return str({"Start-up cost": float(found[1]), "Total cost": float(found[2])})


def drawn(connection: psycopg.Connection[Any]) -> str:
    """DBeaver's plan from XML, and pgAdmin's from JSON."""
    sql = "SELECT city, COUNT(*) FROM person GROUP BY city"
    text = connection.execute(f"EXPLAIN (FORMAT XML, ANALYSE) {sql}").fetchall()[0][0]
    space = "{http://www.postgresql.org/2009/explain}"
    release = ElementTree.fromstring(text).find(f"{space}Query/{space}Plan/{space}Plans/{space}Plan")
    assert release is not None, text
    (plan,) = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()[0][0]
    assert plan["Plan"]["Plans"][0]["Relation Name"] == release.findtext(f"{space}Relation-Name") == "person"
    return json.dumps(plan["Plan"]["Plan Rows"])


with psycopg.connect(**AT, autocommit=True) as opened:
    for finding, statements in ASKED.items():
        for number, one in enumerate(statements, 1):
            check(f"{finding} {number}", lambda one=one: answered(opened, one))
    for name, (text, start) in COPIES.items():
        check(f"F8 COPY {name}", lambda text=text, start=start: copied(opened, text, start))
    check("F9 Superset's estimate", lambda: estimated(opened))
    check("F9 plans drawn", lambda: drawn(opened))
    check(
        "F11 the table's order",
        lambda: [one.name for one in opened.execute("SELECT * FROM person LIMIT 0").description],
    )
    opened.execute("SET dpsql.on_empty = error")
    check(
        "F7 no group shown",
        lambda: answered(opened, ("SELECT income, COUNT(*) FROM person GROUP BY income", (), "P0002")),
    )
with psycopg2.connect(**AT) as older, older.cursor() as cursor:
    check(
        "F2 psycopg2's timedelta",
        lambda: cursor.execute("SELECT COUNT(*) FROM loan WHERE taken > now() - %s", (MONTH,)),
    )
