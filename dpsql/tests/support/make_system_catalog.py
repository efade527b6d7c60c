"""Makes `dpsql/system_catalog/builtin.json` anew from a Postgres 15:
`python -m dpsql.tests.support.make_system_catalog`.

House rules:

1. Only what every Postgres 15 has: shapes of the system's relations, and rows that initdb writes. The server is
   a fresh one, started for this, so that nothing of an owner's can get in.
2. Only what clients read: types and the functions that read and write them, operators and functions over the
   types that dpsql has, access methods, operator classes, casts. Row types of the system's relations are left out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import psycopg

from dpsql.relation.functions import ROWS
from dpsql.relation.functions.above import REFUSED
from dpsql.sql.bind_array import JSON_CALLS, ROW_CALLS
from dpsql.sql.bind_expression import _KNOWN

from .postgres_server import PostgresServer, find_servers

__all__ = ["make"]

_MAJOR = 15
_TYPES = (16, 18, 19, 20, 21, 23, 25, 26, 700, 701, 1042, 1043, 1082, 1114, 1184, 1186, 1700)
_ANSWERED = (
    "abs", "array_agg", "array_length", "array_to_string", "array_upper", "avg", "bool_and", "bool_or", "btrim",
    "ceil", "ceiling", "col_description", "concat", "count", "current_database", "current_schema",
    "current_schemas", "current_setting", "date_part", "date_trunc", "dense_rank", "exp", "extract", "first_value",
    "floor", "format_type", "greatest", "has_table_privilege", "lag", "last_value", "lead", "least", "left",
    "length", "ln", "lower", "ltrim", "max", "min", "mod", "now", "ntile", "obj_description", "pg_backend_pid",
    "pg_encoding_to_char", "pg_get_constraintdef", "pg_get_indexdef", "pg_get_userbyid", "pg_is_in_recovery",
    "pg_table_is_visible", "power", "quote_ident", "rank", "replace", "right", "round", "row_number", "rtrim",
    "set_config", "sign", "sqrt", "stddev", "stddev_pop", "stddev_samp", "strpos", "substr", "substring", "sum",
    "to_regclass", "to_regtype", "trunc", "unnest", "upper", "var_pop", "var_samp", "variance", "version",
)  # fmt: skip

_IN_FORMS = ("cume_dist", "mode", "nth_value", "percent_rank", "percentile_cont", "percentile_disc")
_WRITTEN = {name for row in ROWS for name in re.findall(r"`?(\w+)\(", f"{row.form} {row.doc}")}
_OF_TABLES = sorted({*_KNOWN, *_WRITTEN, *JSON_CALLS, *ROW_CALLS, *_IN_FORMS} - {*_ANSWERED, *REFUSED})
"""Names of functions that are answered, by the tables of functions and aggregates."""

_NO_ROW_TYPE = (
    "(t.typrelid = 0 AND NOT EXISTS (SELECT 1 FROM pg_type e WHERE e.oid = t.typelem AND e.typrelid <> 0))"
)
_IN_TYPES = f"IN ({', '.join(map(str, (0, *_TYPES)))})"
_INPUT_OUTPUT = (
    "typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze", "typsubscript",
)  # fmt: skip
_OPERATORS = f"o.oprleft {_IN_TYPES} AND o.oprright {_IN_TYPES}"
_FUNCTIONS = (
    " UNION ".join(f"SELECT {column}::oid FROM pg_type t WHERE {_NO_ROW_TYPE}" for column in _INPUT_OUTPUT)
    + " UNION SELECT amhandler::oid FROM pg_am"
    + f" UNION SELECT p.oid FROM pg_proc p WHERE p.proname = ANY('{{{','.join([*_ANSWERED, *_OF_TABLES])}}}')"
    + " AND p.proargtypes::oid[] <@ ARRAY[114,1007,2249,2276,2277,2283,2206,1009,3802,5077,5078,5079,"
    + f"{','.join(map(str, _TYPES))}]::oid[] AND p.pronamespace = 11"
)
_KEPT: dict[str, str] = {
    "pg_namespace": "nspname IN ('pg_catalog', 'information_schema', 'pg_toast')",
    "pg_type": _NO_ROW_TYPE,
    "pg_proc": f"t.oid IN ({_FUNCTIONS})",
    "pg_aggregate": f"aggfnoid::oid IN ({_FUNCTIONS})",
    "pg_operator": _OPERATORS.replace("o.", "t."),
    "pg_am": "true",
    "pg_opclass": "true",
    "pg_opfamily": "true",
    "pg_collation": "collname IN ('default', 'C', 'POSIX', 'ucs_basic')",
    "pg_language": "lanname <> 'plpgsql'",
    "pg_cast": f"castsource {_IN_TYPES} AND casttarget {_IN_TYPES}",
    "pg_range": "true",
    "pg_tablespace": "true",
    "pg_description": "objsubid = 0 AND (classoid::regclass::text IN ('pg_type', 'pg_namespace', 'pg_am', "
    "'pg_language', 'pg_collation') OR classoid = 'pg_proc'::regclass AND objoid IN (" + _FUNCTIONS + "))",
}
_REGULAR = {"regproc", "regclass", "regtype", "regoper", "regoperator", "regprocedure"}
_READ = {"int2vector": "int2[]", "oidvector": "oid[]", "xid": "text::bigint", "char": "text", "name": "text"}
_NEVER = {"_aclitem", "pg_node_tree", "timestamptz", "anyarray"}


def make() -> dict[str, Any]:
    """Return what the file holds: relations with their columns, rows, names of functions, keywords."""
    installation = next(found for found in find_servers() if found.major == _MAJOR)
    with PostgresServer(installation) as server, server.admin() as connection:
        connection.execute("CREATE ROLE anybody")
        relations = _relations(connection)
        shapes = {relation[1]: relation[6] for relation in relations if relation[0] == "pg_catalog"}
        rows = {name: _rows(connection, name, shapes[name], where) for name, where in _KEPT.items()}
        names = connection.execute(
            "SELECT oid::int8, proname FROM pg_proc WHERE oid IN ("
            f"SELECT oprcode FROM pg_operator o WHERE {_OPERATORS} "
            f"UNION SELECT oprrest FROM pg_operator o WHERE {_OPERATORS} "
            f"UNION SELECT oprjoin FROM pg_operator o WHERE {_OPERATORS}) ORDER BY oid"
        ).fetchall()
        keywords = connection.execute(
            "SELECT word, catcode::text, barelabel, catdesc, baredesc FROM pg_get_keywords() "
            'ORDER BY word COLLATE "C"'
        ).fetchall()
        spelled = connection.execute(
            f"SELECT oid::int8, format_type(oid, NULL) FROM pg_type t WHERE {_NO_ROW_TYPE} ORDER BY oid"
        ).fetchall()
    return {
        "relations": relations, "rows": rows, "hidden_functions": names, "keywords": keywords, "spelled": spelled,
    }  # fmt: skip


def _relations(connection: psycopg.Connection[Any]) -> list[list[Any]]:
    """Return [schema, name, kind, OID, row type (none here), whether anybody may read it, columns].

    A column is [name, type, modifier, whether it is NOT NULL].
    """
    column = "json_build_array(a.attname, a.atttypid::int8, a.atttypmod, a.attnotnull::int)"
    found = connection.execute(
        "SELECT n.nspname, c.relname, c.relkind::text, c.oid::int8, 0, "
        "has_table_privilege('anybody', c.oid, 'SELECT'), "
        f"(SELECT json_agg({column} ORDER BY attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0) "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') ORDER BY c.oid"
    ).fetchall()
    return [list(row) for row in found]


def _rows(
    connection: psycopg.Connection[Any], name: str, columns: list[list[Any]], where: str
) -> list[list[Any]]:
    types = dict(connection.execute("SELECT oid::int8, typname FROM pg_type").fetchall())
    wanted = ", ".join(_expression(column, types[type_]) for column, type_, *_ in columns)
    order = "oid" if columns[0][0] == "oid" else "1, 2"
    statement = f"SELECT {wanted} FROM pg_catalog.{name} t WHERE {where} ORDER BY {order}"
    return [list(row) for row in connection.execute(statement.encode()).fetchall()]


def _expression(column: str, type_: str) -> str:
    if type_ in _NEVER:
        return "NULL"
    if type_ in _REGULAR or type_ == "oid":
        return f't."{column}"::oid::int8'
    if type_ == "_regtype":
        return f't."{column}"::oid[]::int8[]'
    return f't."{column}"::{_READ[type_]}' if type_ in _READ else f't."{column}"'


def _text(found: dict[str, Any]) -> str:
    """Return the JSON, a line for each row, so that a change can be read."""
    parts = []
    for name, value in found.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"{json.dumps(key)}: {_lines(rows)}" for key, rows in value.items())
            parts.append(f"{json.dumps(name)}: {{\n{inner}\n}}")
        else:
            parts.append(f"{json.dumps(name)}: {_lines(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(rows: list[Any]) -> str:
    return (
        "[\n" + ",\n".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows) + "\n]"
    )


if __name__ == "__main__":
    target = Path(__file__).parents[2] / "system_catalog" / "builtin.json"
    target.write_text(_text(make()), encoding="utf-8")
    print(f"{target.name}: {target.stat().st_size} bytes")
