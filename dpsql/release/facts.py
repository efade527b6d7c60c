"""What a verifier believes of the database and of the policy: types, constraints, whose rows they are, the promise.

It is read a second time here, by queries of its own, in the statement's snapshot, for the verifier alone: no plan sees
it, and it shares nothing with what plans are made from. It is short, as it has to be believed (`architecture.md`).

House rules:

1. A constraint is a fact only where the engine enforces it for every row that a query sees: valid, complete, not
   deferrable, over columns whose equality is that of their values. What is not understood is left out.
2. Of files and of tables on Spark nothing is enforced: a key is a fact where the ledger says that it was found to hold
   in the very version that this snapshot reads, and a name or a type is the record's.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import EngineFailure
from ..verify.certificate import Calendar, Facts, ForeignKey, Table, Unit, When

if TYPE_CHECKING:
    from ..backends import Snapshot
    from ..budget import KeyCheck
    from ..policy import Policy

Path = tuple[str, str]
Run = Callable[[str], list[tuple[Any, ...]]]
KeyChecks = Callable[[str, tuple[str, ...], str], "KeyCheck | None"]

_ALIKE = re.compile(
    r"(?:U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DECIMAL|NUMERIC|BOOLEAN|DATE|UUID|BLOB|BYTEA|VARCHAR|TEXT|NAME|ENUM"
    r"|CHARACTER VARYING|TIMESTAMP)(?:\(.*\))?(?: WITH(?:OUT)? TIME ZONE)?",
    re.IGNORECASE | re.DOTALL,
)
"""Types of which equal values are one value: no floats, intervals, padded or collated texts, nested ones."""
_DUCKDB_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, NOT is_nullable FROM duckdb_columns()
WHERE database_name = current_database() ORDER BY schema_name, table_name, column_index"""
_DUCKDB_CONSTRAINTS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, expression, referenced_table,
  referenced_column_names FROM duckdb_constraints() WHERE database_name = current_database()
ORDER BY schema_name, table_name, constraint_index"""
_DUCKDB_COLLATED = """
SELECT schema_name, table_name FROM duckdb_tables()
WHERE database_name = current_database() AND contains(lower(sql), 'collate')"""

_POSTGRES = """
SELECT pg_catalog.json_agg(pg_catalog.json_build_array(n.nspname, c.relname, (
  SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
    a.attname, COALESCE('ENUM(' || (SELECT pg_catalog.string_agg(pg_catalog.quote_literal(e.enumlabel), ', ')
      FROM pg_catalog.pg_enum AS e WHERE e.enumtypid = b.oid) || ')', pg_catalog.format_type(b.oid, b.typmod))
      || CASE WHEN NOT l.collisdeterministic THEN ' COLLATE ' || l.collname ELSE '' END,
    a.attnotnull AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = c.oid
      AND k.contype = 'n' AND a.attnum = ANY (k.conkey) AND NOT k.convalidated)) ORDER BY a.attnum)
  FROM pg_catalog.pg_attribute AS a LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = a.attcollation, LATERAL (
    WITH RECURSIVE base AS (
      SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, a.atttypmod AS typmod
      FROM pg_catalog.pg_type AS t WHERE t.oid = a.atttypid
      UNION ALL SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod,
        CASE WHEN base.typmod < 0 THEN base.typtypmod ELSE base.typmod END
      FROM base JOIN pg_catalog.pg_type AS t ON t.oid = base.typbasetype WHERE base.typtype = 'd')
    SELECT * FROM base WHERE typtype <> 'd') AS b
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), (
  SELECT pg_catalog.json_agg((
    SELECT pg_catalog.json_agg(a.attname ORDER BY k.place)
    FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS k (number, place)
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number WHERE k.place <= i.indnkeyatts))
  FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
  JOIN pg_catalog.pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
  WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
    AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT EXISTS (
      SELECT FROM pg_catalog.pg_opclass AS o WHERE o.oid = ANY (i.indclass::pg_catalog.oid[])
        AND NOT (o.opcdefault AND o.opcnamespace = 'pg_catalog'::pg_catalog.regnamespace))), (
  SELECT pg_catalog.json_agg(pg_catalog.pg_get_expr(k.conbin, c.oid)) FROM pg_catalog.pg_constraint AS k
  WHERE k.conrelid = c.oid AND k.contype = 'c' AND k.convalidated)))::pg_catalog.text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND (n.nspname, c.relname) IN ({paths}) AND NOT c.relrowsecurity
  AND NOT (c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits AS h WHERE h.inhparent = c.oid))
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_partition_tree(c.oid) AS p
    JOIN pg_catalog.pg_class AS e ON e.oid = p.relid WHERE c.relkind = 'p' AND e.relkind = 'f')"""


def read_facts(snapshot: Snapshot, policy: Policy, key_check: KeyChecks) -> Facts:
    """Return what is believed while this snapshot is open. Raises EngineFailure, PolicyError, and as `key_check`."""
    live = snapshot.schema()  # of it: the engine, and which version of files is read; no type, no constraint

    def path_of(name: str) -> Path:
        schema, dot, table = name.partition(".")
        return (schema, table) if dot else (live.default_schema, name)

    paths = {name: path_of(policy.origin(name)) for name in policy.tables}
    places = {path: ".".join(path) for path in paths.values()}
    found: dict[Path, Table] = {}
    if live.dialect != "spark":
        found = (
            _postgres(snapshot.catalog, paths.values())
            if live.dialect == "postgres"
            else _duckdb(snapshot.catalog)
        )
    for name, path in paths.items():
        here = live.table(path)
        if here is None or not here.version:
            continue
        if here.read_as:
            places[path], found[path] = here.read_as, _recorded(policy, name, here.version)
        key = policy.tables[name].key
        check = key_check(name, key, here.version) if key else None
        held = (key,) if check is not None and check.holds else ()
        found[path] = replace(found[path], unique=held, not_null=key if held else (), foreign_keys=())
    units = {path: _unit(policy, name, lambda other: places[paths[other]]) for name, path in paths.items()}
    shown: dict[str, Table] = {}
    for path, name in ((path, name) for name, path in paths.items() if path in found):
        also = (
            ForeignKey(one.columns, places[paths[one.references[0]]], one.references[1])
            for one in policy.tables[name].also
        )
        time = _when(policy, name, lambda other: places[paths[other]])
        shown[places[path]] = replace(found[path], unit=units[path], also=tuple(also), time=time)
    privacy = policy.privacy
    time_ = privacy.time
    calendar = None if time_ is None else Calendar(time_.period.value, time_.zone)
    promise = privacy.neighbours.value, privacy.together, privacy.accounting.value
    return Facts(live.dialect, shown, *promise, calendar)  # type: ignore[arg-type]


def _when(policy: Policy, name: str, place: Callable[[str], str]) -> When | None:
    """Return when a table's rows were: by its own column, or by one of a table on its way."""
    time, way, at = policy.tables[name].time, list[ForeignKey](), name
    while time is not None and at != time[0]:
        unit = policy.tables[at].unit
        assert unit is not None
        assert unit.references is not None, "the way leads to the table with the time"
        at, key = unit.references
        way.append(ForeignKey(unit.columns, place(at), key))
    return None if time is None else When(time[1], tuple(way))


def _unit(policy: Policy, name: str, place: Callable[[str], str]) -> Unit | None:
    """Return whose a table's rows are. What refers to the unit of a table that says it itself holds that very unit."""
    unit = policy.tables[name].unit
    if unit is None:
        return None
    if unit.references is None:
        return Unit(unit.columns)
    parent, key = unit.references
    above = policy.tables[parent].unit
    if above is not None and above.references is None and above.columns == key:
        return Unit(unit.columns)
    return Unit(unit.columns, place(parent), key)


def _duckdb(run: Run) -> dict[Path, Table]:
    """Return the tables of a DuckDB database, which enforces its keys at once; collations stand in its texts alone."""
    collated = set(run(_DUCKDB_COLLATED))
    columns: defaultdict[Path, list[tuple[str, str, bool]]] = defaultdict(list)
    unique: defaultdict[Path, list[list[str]]] = defaultdict(list)
    checks: defaultdict[Path, list[str]] = defaultdict(list)
    for schema, table, column, type_, is_not_null in run(_DUCKDB_COLUMNS):
        is_loose = (schema, table) in collated and type_.startswith(("VARCHAR", "ENUM"))
        shown = f"{type_} COLLATE unknown" if is_loose else type_
        columns[schema, table].append((column, shown, is_not_null))
    references: defaultdict[Path, list[ForeignKey]] = defaultdict(list)
    for schema, table, kind, names, condition, other, referenced in run(_DUCKDB_CONSTRAINTS):
        if kind == "FOREIGN KEY":
            references[schema, table].append(ForeignKey(tuple(names), f"{schema}.{other}", tuple(referenced)))
        elif kind in ("PRIMARY KEY", "UNIQUE"):
            unique[schema, table].append(names)
        elif kind == "CHECK":
            checks[schema, table].append(condition)
    found = {path: _table(names, unique[path], checks[path]) for path, names in columns.items()}
    return {path: replace(table, foreign_keys=tuple(references[path])) for path, table in found.items()}


def _postgres(run: Run, paths: Iterable[Path]) -> dict[Path, Table]:
    """Return those of some tables of a Postgres database whose constraints hold for all rows that a query sees."""
    quoted = [[part.replace("'", "''") for part in path] for path in paths]
    listed = ", ".join(f"('{schema}', '{table}')" for schema, table in quoted)
    ((text,),) = run(_POSTGRES.replace("{paths}", listed))
    return {
        (schema, table): _table(columns or (), unique or (), checks or ())
        for schema, table, columns, unique, checks in json.loads(text or "[]")
    }


def _table(
    columns: Iterable[tuple[str, str, bool]], unique: Iterable[Sequence[str]], checks: Iterable[str]
) -> Table:
    """Return a table with those of its constraints of whose columns equal values are one value."""
    listed = list(columns)
    usable = {name for name, type_, _ in listed if _ALIKE.fullmatch(type_)}
    return Table(
        {name: type_ for name, type_, _ in listed},
        tuple(name for name, _, is_not_null in listed if is_not_null),
        tuple(dict.fromkeys(tuple(key) for key in unique if usable.issuperset(key))),
        checks=tuple(sorted(checks)),
    )


def _recorded(policy: Policy, name: str, version: str) -> Table:
    """Return a table on Spark as it was recorded, texts seen to be UTF-8. Raises EngineFailure: it is another now."""
    from ..backends.spark_tables import read_record, version_of

    recorded = None if policy.files is None else read_record(policy.files.record)
    if recorded is None or name not in recorded or version_of(recorded[name]) != version:
        raise EngineFailure("facts: the record changed while a statement was planned")
    shown = {"timestamp": "timestamp_ntz"} | ({"string": "string valid"} if recorded[name].rows >= 0 else {})
    types = {one.name: one.dataType.simpleString() for one in recorded[name].fields.fields}
    return Table({column: shown.get(type_, type_) for column, type_ in types.items()})
