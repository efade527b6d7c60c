"""What BI tools and ORMs generate, in their own spelling: answered, or refused with a code of the right class."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import psycopg
import pytest

from ..conftest import Served

ANSWERED = {
    "probe by WHERE": 'SELECT * FROM "person" WHERE 1=0',
    "probe by LIMIT": "SELECT * FROM person LIMIT 0",
    "probe by rows": "SELECT * FROM person LIMIT 200",
    "probe of a query": "SELECT * FROM (SELECT * FROM person) AS t WHERE 1 = 0",
    "wrapped": "SELECT * FROM (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS t LIMIT 1000",
    "tableau": 'SELECT "person"."city" AS "city", COUNT(1) AS "cnt:x:ok" FROM "person" "person" GROUP BY 1',
    "tableau records": 'SELECT SUM(1) AS "Number of Records", "t"."city" AS "city" FROM "person" "t" GROUP BY 2',
    "tableau join": 'SELECT "p"."city", SUM("l"."amount") FROM "loan" "l" LEFT OUTER JOIN "person" "p" ON ("l"."person_id" = "p"."id") GROUP BY "p"."city"',
    "metabase": 'SELECT "source"."city" AS "city", COUNT(*) AS "count" FROM (SELECT "person"."id" AS "id", "person"."city" AS "city" FROM "person") AS "source" GROUP BY "source"."city" ORDER BY "source"."city" ASC LIMIT 10000',
    "metabase by month": """SELECT DATE_TRUNC('month', "loan"."taken") AS "taken", SUM("loan"."amount") AS "sum" FROM "loan" GROUP BY DATE_TRUNC('month', "loan"."taken") ORDER BY DATE_TRUNC('month', "loan"."taken") ASC""",
    "metabase bins": 'SELECT FLOOR("age" / 10.0) * 10 AS age, COUNT(*) FROM person GROUP BY FLOOR("age" / 10.0) * 10',
    "superset": 'SELECT city AS city, AVG(height) AS "AVG(height)" FROM person GROUP BY city ORDER BY "AVG(height)" DESC LIMIT 100',
    "superset count": 'SELECT COUNT(*) AS "COUNT(*)" FROM person ORDER BY "COUNT(*)" DESC LIMIT 50000',
    "power bi": 'select "rows"."city" as "city", count(1) as "n" from ( select "_"."city" from "person" "_" where "_"."age" > 3 and "_"."age" is not null ) "rows" group by "city"',
    "looker": 'SELECT COALESCE(person.city, \'none\') AS "person.city", COUNT(*) AS "person.count" FROM person AS person GROUP BY 1 ORDER BY 2 DESC LIMIT 500',
    "filter values": "SELECT DISTINCT city FROM person LIMIT 1001",
    "cast": "SELECT CAST(city AS varchar) AS c, COUNT(*) FROM person GROUP BY 1",
    "share": "SELECT city, COUNT(*)::float / SUM(COUNT(*)) OVER () FROM person GROUP BY 1",
    "recent": "SELECT COUNT(*) FROM loan WHERE taken >= date_trunc('day', now()) + INTERVAL '-30 day'",
    "having": "SELECT city FROM person GROUP BY 1 HAVING COUNT(1) > 0",
}
REFUSED = {
    "rows": ("SELECT * FROM person WHERE age > 90 LIMIT 200", "42501"),
    "row": ('SELECT 1 AS one FROM "person" WHERE "person"."id" = 1 LIMIT 1', "42501"),
    "top": ("SELECT TOP 10 * FROM thing", "42601"),
    "write": ("UPDATE thing SET id = 3", "0A000"),
}
CATALOG = {
    "typeorm": (
        """SELECT (table_schema <> '') AND ('"' || "udt_schema" || '"."' || "udt_name" || '"')::"regtype"::text = 'integer'
        AND pg_catalog.col_description(('"' || table_catalog || '"."' || table_schema || '"."' || table_name || '"')::regclass::oid, ordinal_position) LIKE '%in years%'
        FROM information_schema.columns WHERE table_name = 'person' AND column_name = 'age'""",
        [(True,)],
    ),
    "django": (
        "SELECT c.relname, key, option, arridx FROM pg_index i, unnest(i.indkey, i.indoption) WITH ORDINALITY koi(key, option, arridx) LEFT JOIN pg_class c ON true WHERE c.oid = i.indrelid AND c.relname = 'loan'",
        [("loan", 1, 0, 1)],
    ),
    "a name with its schema": (
        "SELECT 'public.person'::regclass::text, current_schema(), (SELECT count(*) FROM information_schema.tables"
        " WHERE table_schema = 'public')",
        [("person", "public", 4)],
    ),
    "sequelize": (
        """SELECT pk.constraint_type as "Constraint", c.column_name as "Field", c.column_default as "Default",
        c.is_nullable as "Null" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name,
        cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN
        information_schema.KEY_COLUMN_USAGE cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and
        tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON
        pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name
        WHERE c.table_name = 'number' AND c.table_schema = 'public'""",
        [("PRIMARY KEY", "i", None, "NO")],
    ),
    "pgadmin": (
        "SET DateStyle=ISO; SET client_min_messages=notice; SELECT set_config('bytea_output','hex',false)"
        " FROM pg_show_all_settings() WHERE name = 'bytea_output'; SET client_encoding='utf-8';",
        [("hex",)],
    ),
    "adbc": ("SELECT oid FROM pg_catalog.pg_type WHERE typreceive::TEXT = 'textrecv'", [(25,), (1790,)]),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_answered(served: Served, spent: Callable[[], Decimal], name: str) -> None:
    with served.connect() as connection:
        first = connection.execute(ANSWERED[name])
        rows = first.fetchall()
        assert first.description
        assert rows or name.startswith("probe")
        most = 0 if name.startswith("probe") else Decimal("0.1")
        assert 0 <= spent() <= most  # less where what others have asked tells a part, or all
        assert connection.execute(ANSWERED[name]).fetchall() == rows
        assert spent() == 0


@pytest.mark.parametrize("name", REFUSED)
def test_refused(served: Served, name: str) -> None:
    sql, sqlstate = REFUSED[name]
    with served.connect() as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute(sql)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize("name", CATALOG)
def test_the_catalog(served: Served, name: str) -> None:
    sql, expected = CATALOG[name]
    with served.connect() as connection:
        cursor = connection.execute(sql)
        while cursor.description is None:
            assert cursor.nextset()
        assert cursor.fetchall() == expected
