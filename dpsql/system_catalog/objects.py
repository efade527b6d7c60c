"""The declared tables as Postgres' objects: OIDs, names, columns, keys. The catalog is the only input.

An object's OID is a hash of its kind and its qualified name, so that it is the same at every start.

The rows of the catalog's relations, what every Postgres has and what is declared; and the engine that holds them.

House rule: nothing here is a count of rows. `reltuples` is -1 (never analysed), sizes and statistics are 0 or absent.

Queries make the relations of others, or of what differs between connections: roles, the database, the information
schema. They are over the tables in `c` and `h`; $user and the like are facts of the connection. Columns that are not
given are NULL. An analyst sees their own role and the owner's, and no other analyst's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb

from ..errors import EngineFailure
from ..policy.describe import column_comment, table_comment
from ..records import dataclass
from ..relation.catalog import OWN_SCHEMA, TEMPORARY, Catalog, OwnView, Table, View
from ..relation.types import Kind, SqlType
from ..seal import seal
from .errors import CatalogRefusal, unsupported
from .pg_types import BY_NAME, OID, SPELLED, Builtin, CatalogRelation, PgType

FIRST_OID = 16_384
"""Postgres numbers its own objects below this."""
OWNER = "dpsql"
"""The role that owns everything; its OID is that of Postgres' first role."""

_OIDS = 2**31 - FIRST_OID
_PUBLIC = 2200
TYPE_OIDS = {
    Kind.BOOLEAN: 16, Kind.SMALLINT: 21, Kind.INTEGER: 23, Kind.BIGINT: 20, Kind.NUMERIC: 1700, Kind.REAL: 700,
    Kind.DOUBLE: 701, Kind.TEXT: 25, Kind.DATE: 1082, Kind.TIMESTAMP: 1114, Kind.TIME: 1083, Kind.INTERVAL: 1186,
    Kind.OPAQUE: 25, Kind.NULL: 25, Kind.JSON: 114, Kind.JSONB: 3802,
}  # fmt: skip
"""The numbers of types in Postgres; what has no type of its own here is text."""
_OPAQUE = {"uuid": 2950, "blob": 17, "bytea": 17}


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column: its number counts from 1."""

    number: int
    name: str
    type: int
    modifier: int
    is_not_null: bool
    comment: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """A key or a reference; `kind`: p, u or f. `index`: the OID of the index of the key, or of the key referred to."""

    oid: int
    name: str
    kind: str
    columns: tuple[int, ...]
    index: int = 0
    referred: int = 0
    referred_columns: tuple[int, ...] = ()
    definition: str = ""
    index_definition: str = ""
    bare_index_definition: str = ""


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A declared table, or an analyst's own, as objects; `kind`: r, or v for an own view."""

    oid: int
    schema: str
    name: str
    row_type: int
    row_array: int
    comment: str
    attributes: tuple[Attribute, ...]
    constraints: tuple[Constraint, ...] = ()
    kind: str = "r"


def object_oid(kind: str, name: str) -> int:
    """Return the OID that an object has unless another one has it already."""
    digest = hashlib.sha256(f"{kind}\0{name}".encode()).digest()
    return FIRST_OID + int.from_bytes(digest[:8], "big") % _OIDS


@dataclass
class Objects:
    """All declared objects; `schemas`: name -> OID, without the system's.

    `written_schema`: what the database calls the default schema, which a name may say too.
    """

    catalog: Catalog
    has_delta: bool
    written_schema: str = "public"
    schemas: dict[str, int] = field(default_factory=dict)
    tables: list[DeclaredTable] = field(default_factory=list)
    _taken: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        declared = sorted(self.catalog.everything.values(), key=lambda table: table.path)
        spaces = self.catalog.own_schemas - self.catalog.schemas
        for schema in sorted({self.catalog.default_schema, *spaces, *(table.path[0] for table in declared)}):
            self.schemas[schema] = _PUBLIC if schema == "public" else self._oid("schema", schema)
        bare = {table.path: self._table(table) for table in declared}
        oids = {path: self._keys(table, bare[path]) for table in declared for path in [table.path]}
        for table in declared:
            keys = oids[table.path]
            constraints = (*keys, *self._references(table, bare, oids))
            self.tables.append(replace(bare[table.path], constraints=constraints))

    @property
    def in_sight(self) -> list[int]:
        """The OIDs of the schemas, beside the default one, whose tables may be named without them."""
        known = {name for name in (OWN_SCHEMA, TEMPORARY) if name not in self.catalog.schemas}
        return [oid for name, oid in self.schemas.items() if name in known]

    @property
    def default_schema(self) -> str:
        """The schema of names without one."""
        return self.catalog.default_schema

    def function_oid(self, name: str) -> int:
        """Return the OID of a function of dpsql's own."""
        return self._oid("function", name)

    def _oid(self, kind: str, name: str) -> int:
        turn, oid = 0, object_oid(kind, name)
        while oid in self._taken:
            turn += 1
            oid = object_oid(f"{kind}\0{turn}", name)
        self._taken.add(oid)
        return oid

    def _table(self, table: Table | View | OwnView) -> DeclaredTable:
        schema, name = table.path[0], table.path[-1]
        path = f"{schema}\0{name}"
        attributes = tuple(
            Attribute(
                number,
                column.name,
                _type(column.type),
                column.type.modifier,
                column.enforced.not_null,
                column_comment(table, column.name, self.has_delta),
            )
            for number, column in enumerate(table.named, 1)
        )
        oids = (self._oid("table", path), self._oid("row type", path), self._oid("row array", path))
        kind = "v" if isinstance(table, OwnView) else "r"
        return DeclaredTable(
            oids[0], schema, name, oids[1], oids[2], table_comment(table), attributes, kind=kind
        )

    def _keys(self, table: Table | View | OwnView, bare: DeclaredTable) -> tuple[Constraint, ...]:
        never_null = {attribute.name for attribute in bare.attributes if attribute.is_not_null}
        primary = next((key for key in table.named_keys if never_null.issuperset(key)), None)
        found: list[Constraint] = []
        for key in table.named_keys:
            kind = "p" if key is primary else "u"
            name = f"{bare.name}_pkey" if kind == "p" else f"{bare.name}_{'_'.join(key)}_key"
            name = _free(name, {constraint.name for constraint in found})
            path = f"{bare.schema}\0{name}"
            columns = ", ".join(map(_quoted, key))
            on = f"CREATE UNIQUE INDEX {_quoted(name)} ON {{}} USING btree ({columns})"
            found.append(
                Constraint(
                    self._oid("constraint", path),
                    name,
                    kind,
                    _numbers(bare, key),
                    index=self._oid("index", path),
                    definition=f"{'PRIMARY KEY' if kind == 'p' else 'UNIQUE'} ({columns})",
                    index_definition=on.format(f"{_quoted(bare.schema)}.{_quoted(bare.name)}"),
                    bare_index_definition=on.format(self.shown(bare.schema, bare.name)),
                )
            )
        return tuple(found)

    def _references(
        self,
        table: Table | View | OwnView,
        bare: dict[tuple[str, ...], DeclaredTable],
        keys: dict[tuple[str, ...], tuple[Constraint, ...]],
    ) -> Iterator[Constraint]:
        unit = table.unit if isinstance(table, Table) else None
        if unit is None or not isinstance(table, Table) or table.reference is None:
            return
        name, columns = table.reference
        path = self.catalog.tables[name].path
        referred = bare[path]
        there = _numbers(referred, columns)
        here = bare[table.path]
        own = f"{here.name}_{'_'.join(unit.columns)}_fkey"
        shown = self.shown(referred.schema, referred.name)
        yield Constraint(
            self._oid("constraint", f"{here.schema}\0{own}"),
            own,
            "f",
            _numbers(here, unit.columns),
            index=next((key.index for key in keys[path] if key.columns == there), 0),
            referred=referred.oid,
            referred_columns=there,
            definition=f"FOREIGN KEY ({', '.join(map(_quoted, unit.columns))}) REFERENCES {shown}"
            f"({', '.join(map(_quoted, columns))})",
        )

    def shown(self, schema: str, name: str) -> str:
        """Return a name as a regclass is shown: with its schema where it is not on the search path."""
        return _quoted(name) if schema == self.default_schema else f"{_quoted(schema)}.{_quoted(name)}"


def _numbers(table: DeclaredTable, columns: tuple[str, ...]) -> tuple[int, ...]:
    numbers = {attribute.name: attribute.number for attribute in table.attributes}
    return tuple(numbers[column] for column in columns)


def _free(name: str, taken: set[str]) -> str:
    found, turn = name, 0
    while found in taken:
        turn += 1
        found = f"{name}{turn}"
    return found


def _type(type_: SqlType) -> int:
    if type_.kind is Kind.OPAQUE:
        return _OPAQUE.get((type_.engine or "").lower(), 25)
    return TYPE_OIDS[type_.kind]


def _quoted(name: str) -> str:
    is_plain = name[:1].isalpha() or name[:1] == "_"
    if is_plain and name.isascii() and name == name.lower() and name.replace("_", "a").isalnum():
        return name
    return '"' + name.replace('"', '""') + '"'


# --- the schema without a name: DuckDB's is called main, and tools look in Postgres' public -----------

_PUBLIC_SCHEMA = "public"


def shown_in_public(catalog: Catalog) -> Catalog:
    """Return a catalog whose default schema is called public, unless it is Postgres' own or there is one of that name.

    Statements may name it either way already (`sql.scope.schemas_of`).
    """
    default = catalog.default_schema
    paths = [table.path for table in catalog.tables.values()] + [view.path for view in catalog.views.values()]
    if catalog.dialect != "duckdb" or any(path[0] == _PUBLIC_SCHEMA for path in paths):
        return catalog

    def moved(path: tuple[str, ...]) -> tuple[str, ...]:
        return (_PUBLIC_SCHEMA, *path[1:]) if len(path) > 1 and path[0] == default else path

    tables = {name: replace(table, path=moved(table.path)) for name, table in catalog.tables.items()}
    views = {name: replace(view, path=moved(view.path)) for name, view in catalog.views.items()}
    return replace(catalog, tables=tables, views=views, default_schema=_PUBLIC_SCHEMA)


# --- names of objects to OIDs, as Postgres reads the text of a regclass -------------------------------------


_MISSING = {"regclass": ("relation", "42P01"), "regproc": ("function", "42883")}
_PART = re.compile(r'"(?:[^"]|"")+"|[A-Za-z_\u0080-\uffff][\w$]*')
_PATH = re.compile(rf"\s*+(?:{_PART.pattern})\s*+(?:\.\s*+(?:{_PART.pattern})\s*+)*")


def _split_name(text: str) -> tuple[str, ...]:
    """Return a name's parts. Raises CatalogRefusal: it is none."""
    if not _PATH.fullmatch(text):
        raise CatalogRefusal("a name that cannot be read", message="a name is not written right")
    return tuple(
        part[1:-1].replace('""', '"') if part[0] == '"' else part.lower() for part in _PART.findall(text)
    )


class Names:
    """Looks names up. `shown`: a family of names -> OID -> the name shown."""

    def __init__(self, database: duckdb.DuckDBPyConnection, default_schema: str) -> None:
        """`database`: what `relations` has opened; it is read at once."""

        def read(sql: str) -> list[tuple[Any, ...]]:
            return database.execute(sql).fetchall()

        self.classes: dict[str, int] = dict(read("FROM h.named_class"))
        # Of several functions of a name, the first one is meant.
        self.functions: dict[str, int] = {
            **dict(read("SELECT name, o FROM h.shown_proc ORDER BY o DESC")),
            **dict(read("SELECT proname, oid FROM c.pg_proc ORDER BY rowid DESC")),
        }
        self.schemas: dict[str, int] = dict(read("SELECT nspname, oid FROM c.pg_namespace"))
        types = read("SELECT oid, typnamespace, typname, typarray FROM c.pg_type")
        self.types = {(schema, name): oid for oid, schema, name, _ in types}
        self.arrays = {oid: array for oid, _, _, array in types}
        self.shown: dict[str, dict[int, str]] = {
            "regclass": dict(read("FROM h.shown_class")),
            "regtype": dict(read("FROM h.shown_type")),
            "regproc": dict(read("FROM h.shown_proc")),
            "regnamespace": {oid: name for name, oid in self.schemas.items()},
            "regrole": {10: OWNER},
        }
        self._spaces = (11, self.schemas[default_schema])

    def find(self, type_: PgType, text: str) -> int:
        """Return the OID that a text means as a value of `type_`. Raises CatalogRefusal: there is no such object."""
        found = self._find(type_, text.strip())
        if found is None:
            kind, code = _MISSING.get(type_.name, ("object", "42704"))
            message = f'{kind} "{text[:60]}" does not exist'
            raise CatalogRefusal("no such object", message=message, sqlstate=code)
        return found

    def _find(self, type_: PgType, text: str) -> int | None:
        if text.isdigit() and len(text) < 11:
            return int(text)
        if text == "-":
            return 0
        match type_.name:
            case "regclass":
                return self.classes.get(".".join(_split_name(text)[-2:]))
            case "regtype":
                return self.type(text)
            case "regproc":
                return self.functions.get(_split_name(text.partition("(")[0])[-1])
            case "regnamespace":
                return self.schemas.get(_split_name(text)[-1])
            case _:
                return None

    def type(self, text: str) -> int | None:
        """Return a type's OID by its name in SQL or in pg_type."""
        is_array = text.endswith("[]")
        words = " ".join(text.removesuffix("[]").partition("(")[0].lower().split())
        if words in SPELLED:
            oid = self.types.get((11, SPELLED[words]))
        elif words in BY_NAME and text[:1] != '"':
            oid = BY_NAME[words].oid
        else:
            parts = _split_name(text.removesuffix("[]"))
            spaces = (self.schemas.get(parts[-2], -1),) if len(parts) > 1 else self._spaces
            oid = next(
                (self.types[space, parts[-1]] for space in spaces if (space, parts[-1]) in self.types), None
            )
        return self.arrays.get(oid) if is_array and oid is not None else oid


# --- values: parameters as the engine holds them, rows as Postgres' types have them -------------------


@dataclass(frozen=True, slots=True)
class NamedObject:
    """A value of regclass and the like: its OID, and the name that it is shown as."""

    oid: int
    name: str


def reader_of(type_: PgType, names: Names, user: tuple[int, str]) -> Callable[[Any], Any] | None:
    """Return what makes a value of a type out of the engine's; None where they are the same. `user`: the role."""
    if type_.element is not None:
        item = reader_of(type_.element, names, user)
        if item is None:
            return None
        return lambda values: [None if value is None else item(value) for value in values]
    if type_.is_object:
        shown: Mapping[int, str] = names.shown.get(type_.name, {})
        if type_.name == "regrole":
            shown = {**shown, user[0]: user[1]}
        return lambda oid: NamedObject(oid, shown.get(oid, "-" if oid == 0 else str(oid)))
    return _READERS.get(type_.name)


def _with_zone(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)


def _decimal(value: Decimal) -> Decimal:
    whole = value.to_integral_value()
    return whole if whole == value else value.normalize()


_READERS: Mapping[str, Callable[[Any], Any]] = {"timestamptz": _with_zone, "numeric": _decimal}


def to_engine(value: object, type_: PgType, names: Names) -> object:
    """Return a parameter as the engine holds it. Raises CatalogRefusal: the name of no object, or another type."""
    if value is None:
        return None
    if isinstance(value, list):
        if type_.element is None:
            raise unsupported("an array for a single value")
        element = type_.element
        return [to_engine(item, element, names) for item in value]
    if type_.is_object and isinstance(value, str):
        return names.find(type_, value)
    if not isinstance(value, (bool, int, float, Decimal, str, bytes, date, datetime)):
        raise unsupported("a parameter of that type")
    return value


FILLED = frozenset({"pg_attribute", "pg_class", "pg_constraint", "pg_depend", "pg_index"})
"""Relations that have rows by what is declared alone."""
_MEMORY_MIB = 256
_FUNCTIONS = ("dp_low", "dp_high", "dp_avg_direct")

_GIVEN = {
    "declared_schema": "oid BIGINT, name VARCHAR, written VARCHAR",
    "relation": "oid BIGINT, schema VARCHAR, name VARCHAR, kind VARCHAR, is_readable BOOLEAN, row_type BIGINT,"
    " row_array BIGINT, comment VARCHAR",
    "attribute": "owner BIGINT, number INTEGER, name VARCHAR, type BIGINT, modifier INTEGER, not_null BOOLEAN,"
    " comment VARCHAR",
    "key": "oid BIGINT, owner BIGINT, name VARCHAR, kind VARCHAR, places SMALLINT[], index BIGINT, referred BIGINT,"
    " referred_places SMALLINT[], definition VARCHAR, index_definition VARCHAR, bare_definition VARCHAR",
    "own_function": "oid BIGINT, name VARCHAR",
    "in_sight": "oid BIGINT",
    "shown_type": "o BIGINT, name VARCHAR",
    "shown_proc": "o BIGINT, name VARCHAR",
    "keywords": "word VARCHAR, catcode VARCHAR, barelabel BOOLEAN, catdesc VARCHAR, baredesc VARCHAR",
}
"""Tables of the engine that the rest is made of: the system's relations and the declared ones, and their columns.

`written`: what the database calls the schema of names without one; NULL for others. `row_type`: 0 for the system's.
"""


def _given(objects: Objects, builtin: Builtin) -> dict[str, Sequence[tuple[Any, ...]]]:
    """Return the rows of the tables of `_GIVEN`."""
    system, tables = list(builtin.relations.values()), objects.tables
    return {
        "declared_schema": [
            (oid, name, objects.written_schema if name == objects.default_schema else None)
            for name, oid in objects.schemas.items()
        ],
        "relation": [
            *((one.oid, one.schema, one.name, one.kind, one.is_readable, 0, 0, None) for one in system),
            *(
                (one.oid, one.schema, one.name, one.kind, True, one.row_type, one.row_array, one.comment)
                for one in tables
            ),
        ],
        "attribute": [
            *(
                (one.oid, number, name, declared, modifier if declared == type_.oid else -1, not_null, None)
                for one in system
                for number, ((name, type_, modifier, not_null), declared) in enumerate(
                    zip(one.columns, one.declared_types, strict=True), 1
                )
            ),
            *(
                (one.oid, a.number, a.name, a.type, a.modifier, a.is_not_null, a.comment)
                for one in tables
                for a in one.attributes
            ),
        ],
        "key": [
            (key.oid, one.oid, key.name, key.kind, list(key.columns), key.index, key.referred,
             list(key.referred_columns), key.definition, key.index_definition, key.bare_index_definition)
            for one in tables
            for key in one.constraints
        ],
        "own_function": [(objects.function_oid(name), name) for name in _FUNCTIONS],
        "in_sight": [(oid,) for oid in objects.in_sight],
        "shown_type": list(builtin.spelled.items()),
        "shown_proc": list(builtin.hidden_functions.items()),
        "keywords": [tuple(row) for row in builtin.keywords],
    }  # fmt: skip


# Rows stand in the order in which Postgres makes them: a table, then its indexes.
_MADE = """
INSERT INTO c.pg_namespace BY NAME SELECT oid, name AS nspname, 10 AS nspowner FROM h.declared_schema;

CREATE VIEW h.found AS SELECT r.*, r.row_type <> 0 AS is_declared, n.oid AS namespace, r.rowid AS place
FROM h.relation AS r JOIN c.pg_namespace AS n ON n.nspname = r.schema;

CREATE VIEW h.found_key AS SELECT k.*, r.namespace, r.place, k.rowid + 1 AS turn
FROM h.key AS k JOIN h.found AS r ON r.oid = k.owner;

CREATE VIEW h.key_column AS SELECT k.oid, k.index, k.place, k.turn, k.part, a.*
FROM (SELECT *, unnest(places) AS number, unnest(generate_series(1, len(places))) AS part
    FROM h.found_key WHERE kind <> 'f') AS k
JOIN h.attribute AS a ON a.owner = k.owner AND a.number = k.number;

INSERT INTO c.pg_class BY NAME SELECT * EXCLUDE (place, turn), 10 AS relowner, -1 AS reltuples,
    true AS relispopulated, 'p' AS relpersistence
FROM (
    SELECT r.oid, r.name AS relname, r.namespace AS relnamespace, r.row_type AS reltype, r.kind AS relkind,
        if(r.kind = 'r', 2, 0) AS relam, r.kind = 'v' AS relhasrules, if(r.is_declared, 'd', 'n') AS relreplident,
        (SELECT count(*) FROM h.attribute AS a WHERE a.owner = r.oid) AS relnatts,
        EXISTS (FROM h.key AS k WHERE k.owner = r.oid AND k.kind <> 'f') AS relhasindex,
        EXISTS (FROM h.key AS k WHERE k.referred = r.oid OR (k.owner = r.oid AND k.kind = 'f')) AS relhastriggers,
        r.place, 0 AS turn
    FROM h.found AS r
    UNION ALL SELECT index, name, namespace, 0, 'i', 403, false, 'n', len(places), false, false, place, turn
    FROM h.found_key WHERE kind <> 'f'
) ORDER BY place, turn;

INSERT INTO c.pg_attribute BY NAME SELECT a.owner AS attrelid, a.name AS attname, a.type AS atttypid,
    -1 AS attstattarget, y.typlen AS attlen, a.number AS attnum, CAST(y.typname[1] = '_' AS INTEGER) AS attndims,
    -1 AS attcacheoff, a.modifier AS atttypmod, y.typbyval AS attbyval, y.typalign AS attalign,
    y.typstorage AS attstorage, a.not_null AS attnotnull, true AS attislocal, y.typcollation AS attcollation
FROM (
    SELECT a.owner, a.number, a.name, a.type, a.modifier, a.not_null, r.place, 0 AS turn
    FROM h.attribute AS a JOIN h.found AS r ON r.oid = a.owner
    UNION ALL SELECT index, part, name, type, modifier, false, place, turn FROM h.key_column
) AS a
JOIN c.pg_type AS y ON y.oid = if(a.type IN (SELECT oid FROM c.pg_type), a.type, 25)
ORDER BY a.place, a.turn, a.number;

INSERT INTO c.pg_type BY NAME SELECT * EXCLUDE (place), 10 AS typowner, true AS typisdefined, ',' AS typdelim,
    'd' AS typalign, 'x' AS typstorage, -1 AS typtypmod, -1 AS typlen
FROM (
    SELECT row_type AS oid, name AS typname, namespace AS typnamespace, 'c' AS typtype, 'C' AS typcategory,
        oid AS typrelid, row_array AS typarray, 0 AS typelem, 2290 AS typinput, 2291 AS typoutput, 2402 AS typreceive,
        2403 AS typsend, 0 AS typanalyze, 0 AS typsubscript, place
    FROM h.found WHERE is_declared
    UNION ALL SELECT row_array, '_' || name, namespace, 'b', 'A', 0, 0, row_type, 750, 751, 2400, 2401, 3816, 6179,
        place + 0.5
    FROM h.found WHERE is_declared
) ORDER BY place;

INSERT INTO c.pg_constraint BY NAME SELECT oid, name AS conname, namespace AS connamespace, kind AS contype,
    true AS convalidated, owner AS conrelid, index AS conindid, referred AS confrelid, true AS conislocal,
    true AS connoinherit, places AS conkey, if(kind = 'f', 'a', ' ') AS confupdtype,
    if(kind = 'f', 'a', ' ') AS confdeltype, if(kind = 'f', 's', ' ') AS confmatchtype,
    if(kind = 'f', referred_places, NULL) AS confkey, if(kind = 'f', [96], NULL) AS conpfeqop,
    if(kind = 'f', [96], NULL) AS conppeqop, if(kind = 'f', [96], NULL) AS conffeqop
FROM h.found_key ORDER BY turn;

INSERT INTO c.pg_index BY NAME SELECT k.index AS indexrelid, k.owner AS indrelid, len(k.places) AS indnatts,
    len(k.places) AS indnkeyatts, true AS indisunique, k.kind = 'p' AS indisprimary, true AS indimmediate,
    true AS indisvalid, true AS indisready, true AS indislive, k.places AS indkey,
    list(if(a.type IN (25, 1043), 100, 0) ORDER BY a.part) AS indcollation,
    list(coalesce(o.oid, 0) ORDER BY a.part) AS indclass, list(0) AS indoption
FROM h.found_key AS k JOIN h.key_column AS a ON a.oid = k.oid
LEFT JOIN c.pg_opclass AS o ON o.opcintype = a.type AND o.opcmethod = 403 AND o.opcdefault
GROUP BY k.turn, k.index, k.owner, k.places, k.kind ORDER BY k.turn;

INSERT INTO c.pg_depend BY NAME SELECT 1259 AS classid, index AS objid, 2606 AS refclassid, oid AS refobjid,
    'i' AS deptype
FROM h.found_key WHERE kind <> 'f' ORDER BY turn;

INSERT INTO c.pg_proc BY NAME SELECT f.oid, f.name AS proname, s.oid AS pronamespace, 10 AS proowner, 12 AS prolang,
    1 AS procost, 'f' AS prokind, 'v' AS provolatile, 'u' AS proparallel, 1 AS pronargs, 701 AS prorettype,
    [701] AS proargtypes, f.name AS prosrc
FROM h.own_function AS f JOIN h.declared_schema AS s ON s.written IS NOT NULL;

INSERT INTO c.pg_description BY NAME SELECT oid AS objoid, 1259 AS classoid, number AS objsubid,
    comment AS description
FROM (
    SELECT oid, 0 AS number, comment, place FROM h.found WHERE is_declared
    UNION ALL SELECT a.owner, a.number, a.comment, r.place FROM h.attribute AS a JOIN h.found AS r ON r.oid = a.owner
    WHERE a.comment <> ''
) ORDER BY place, number;

CREATE MACRO h.quoted(name) AS
CASE WHEN regexp_full_match(name, '[a-z_][a-z0-9_]*') THEN name ELSE '"' || replace(name, '"', '""') || '"' END;

CREATE VIEW h.class AS SELECT x.oid AS o, x.relname AS name, n.nspname AS schema, s.written,
    s.written IS NOT NULL AS is_default,
    x.relname IN (SELECT r.name FROM h.relation AS r WHERE r.schema = 'pg_catalog') AS is_hidden
FROM c.pg_class AS x JOIN c.pg_namespace AS n ON n.oid = x.relnamespace
LEFT JOIN h.declared_schema AS s ON s.oid = n.oid;

CREATE TABLE h.own AS SELECT x.oid AS o, x.relname AS name FROM c.pg_class AS x
WHERE x.relnamespace IN (SELECT oid FROM h.in_sight) AND x.relname NOT IN (SELECT name FROM h.class WHERE is_default
    OR schema = 'pg_catalog');

CREATE TABLE h.shown_class AS SELECT o, CASE WHEN schema = 'pg_catalog' THEN name
    WHEN is_default AND is_hidden THEN schema || '.' || name
    WHEN is_default THEN h.quoted(name) ELSE h.quoted(schema) || '.' || h.quoted(name) END AS name
FROM h.class;

CREATE TABLE h.named_class AS SELECT schema || '.' || name AS name, o FROM h.class
UNION SELECT written || '.' || name, o FROM h.class WHERE is_default
UNION SELECT name, o FROM h.class WHERE schema = 'pg_catalog' OR (is_default AND NOT is_hidden)
UNION SELECT name, o FROM h.own
ORDER BY ALL;

INSERT INTO h.shown_type SELECT r.row_type, s.name FROM h.found AS r JOIN h.shown_class AS s ON s.o = r.oid
WHERE r.is_declared ORDER BY r.place;
INSERT INTO h.shown_type SELECT r.row_array, s.name || '[]' FROM h.found AS r JOIN h.shown_class AS s ON s.o = r.oid
WHERE r.is_declared ORDER BY r.place;

INSERT INTO h.shown_proc SELECT oid, proname FROM c.pg_proc EXCEPT FROM h.shown_proc;

CREATE TABLE h.definition AS SELECT oid AS o, definition AS full_text, definition AS bare FROM h.key
UNION ALL SELECT index, index_definition, bare_definition FROM h.key WHERE kind <> 'f';

CREATE TABLE h.readable AS SELECT oid AS o FROM h.relation WHERE is_readable;
"""
"""What makes the other rows; h.named_class has what an object may be called, the tables shown_… what it is shown as."""


# --- the sealed engine: in memory, one thread, no way out -----------------------------------------------


def open_database(objects: Objects, builtin: Builtin) -> duckdb.DuckDBPyConnection:
    """Return the engine with everything in it: pg_catalog's relations in `c`, what functions look in in `h`.

    Raises EngineFailure.
    """
    database = duckdb.connect(":memory:")
    try:
        database.execute("CREATE SCHEMA c; CREATE SCHEMA h")
        for name in FILLED.union(builtin.rows):
            columns = builtin.relations["pg_catalog", name].columns
            shape = ", ".join(
                f'"{column}" {type_.holder}{_default(type_) if not_null else ""}'
                for column, type_, _, not_null in columns
            )
            holders = [type_.holder for _, type_, *_ in columns]
            _fill(database, f"c.{name}", shape, holders, builtin.rows.get(name, ()))
        for name, rows in _given(objects, builtin).items():
            holders = [column.split()[1] for column in _GIVEN[name].split(", ")]
            _fill(database, f"h.{name}", _GIVEN[name], holders, rows)
        database.execute(_MADE)
        seal(database, _MEMORY_MIB, {"max_expression_depth": 500})
    except duckdb.Error as error:
        database.close()
        raise EngineFailure(f"the system catalog cannot be made: {error}") from error
    return database


def _default(type_: PgType) -> str:
    """Return what a column that is NOT NULL holds where nothing is said."""
    nothing = {"boolean": "false", "number": "0", "oid": "0", "array": "[]"}
    return f" DEFAULT {nothing.get(type_.family, repr(''))}"


def _fill(
    database: duckdb.DuckDBPyConnection,
    table: str,
    shape: str,
    holders: Sequence[str],
    rows: Sequence[Sequence[Any]],
) -> None:
    database.execute(f"CREATE TABLE {table} ({shape})")
    if not rows:
        return
    # A column that is one value throughout (most are) is written as a constant; the first one never is.
    parts: list[str] = []
    values: list[Any] = []
    for holder, column in zip(holders, zip(*rows, strict=True), strict=True):
        first = column[0]
        if parts and all(value is None for value in column):
            parts.append(f"CAST(NULL AS {holder})")
            continue
        is_constant = bool(parts) and not isinstance(first, list) and all(value == first for value in column)
        values.append(first if is_constant else list(column))
        place = f"${len(values)}"
        parts.append(f"CAST({place if is_constant else f'unnest({place})'} AS {holder})")
    database.execute(f"INSERT INTO {table} SELECT {', '.join(parts)}", values)


# --- what a relation of the catalog is in the engine's SQL --------------------------------------------------


_DB = "CAST($database AS VARCHAR)"
_USER = "CAST($user AS VARCHAR)"
_ROLES = f"""SELECT DISTINCT ON (oid) * FROM (VALUES
    (10, 'dpsql', false), (CAST($user_oid AS BIGINT), {_USER}, true)) AS r(oid, name, can_login)"""
_TABLES = """SELECT x.oid AS o, x.relname AS name, x.relkind AS kind, n.nspname AS schema
    FROM c.pg_class AS x
    JOIN c.pg_namespace AS n ON n.oid = x.relnamespace JOIN h.readable AS h ON h.o = x.oid
    WHERE x.relkind IN ('r', 'v')"""
_KEYS = f"""SELECT k.*, t.name AS table_name, t.schema AS table_schema FROM c.pg_constraint AS k
    JOIN ({_TABLES}) AS t ON t.o = k.conrelid"""
_UNNESTED = f"""SELECT k.conname, k.contype, k.conrelid, k.confrelid, k.conindid, k.confkey,
    k.table_name, k.table_schema,
    unnest(k.conkey) AS number, unnest(generate_series(1, len(k.conkey))) AS place FROM ({_KEYS}) AS k"""
_GRANTS = f"""SELECT 'dpsql' AS grantor, CASE WHEN t.schema IN ('pg_catalog', 'information_schema') THEN 'PUBLIC'
    ELSE {_USER} END AS grantee, {_DB} AS table_catalog, t.schema AS table_schema, t.name AS table_name,
    'SELECT' AS privilege_type, 'NO' AS is_grantable, 'YES' AS with_hierarchy, t.o FROM ({_TABLES}) AS t"""
_COLUMN_GRANTS = f"""SELECT g.grantor, g.grantee, g.table_catalog, g.table_schema, g.table_name,
    a.attname AS column_name, g.privilege_type, g.is_grantable
    FROM ({_GRANTS}) AS g JOIN c.pg_attribute AS a ON a.attrelid = g.o AND a.attnum > 0"""
_KIND = "CASE {} WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' WHEN 'f' THEN 'FOREIGN KEY' END"
_CONSTRAINTS = f"""SELECT {_DB} AS constraint_catalog, k.table_schema AS constraint_schema,
    k.conname AS constraint_name,
    {_DB} AS table_catalog, k.table_schema AS table_schema, k.table_name AS table_name,
    {_KIND.format("k.contype")} AS constraint_type, 'NO' AS is_deferrable, 'NO' AS initially_deferred,
    'YES' AS enforced, CASE WHEN k.contype = 'u' THEN 'YES' END AS nulls_distinct FROM ({_KEYS}) AS k"""
_COLUMNS = f"""SELECT {_DB} AS table_catalog, t.schema AS table_schema, t.name AS table_name, a.attname AS column_name,
    a.attnum AS ordinal_position, CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END AS is_nullable,
    CASE WHEN y.typelem <> 0 AND y.typlen = -1 THEN 'ARRAY' WHEN y.typtype = 'd' THEN b.name
    WHEN y.typnamespace = 11 THEN s.name ELSE 'USER-DEFINED' END AS data_type,
    CASE WHEN a.atttypid IN (1042, 1043) AND a.atttypmod > 4 THEN a.atttypmod - 4 END AS character_maximum_length,
    CASE WHEN a.atttypid IN (25, 1042, 1043) THEN 1073741824 END AS character_octet_length,
    CASE a.atttypid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53
    WHEN 1700 THEN CASE WHEN a.atttypmod >= 4 THEN (a.atttypmod - 4) >> 16 END END AS numeric_precision,
    CASE WHEN a.atttypid IN (20, 21, 23, 700, 701) THEN 2
    WHEN a.atttypid = 1700 THEN 10 END AS numeric_precision_radix,
    CASE WHEN a.atttypid IN (20, 21, 23) THEN 0
    WHEN a.atttypid = 1700 AND a.atttypmod >= 4 THEN (a.atttypmod - 4) & 65535 END AS numeric_scale,
    CASE WHEN a.atttypid IN (1114, 1184, 1186) THEN 6 WHEN a.atttypid = 1082 THEN 0 END AS datetime_precision,
    {_DB} AS udt_catalog, CASE WHEN y.typtype = 'd' THEN 'pg_catalog' ELSE ns.nspname END AS udt_schema,
    CASE WHEN y.typtype = 'd' THEN bt.typname ELSE y.typname END AS udt_name,
    CAST(a.attnum AS VARCHAR) AS dtd_identifier,
    CASE WHEN y.typtype = 'd' THEN {_DB} END AS domain_catalog,
    CASE WHEN y.typtype = 'd' THEN ns.nspname END AS domain_schema,
    CASE WHEN y.typtype = 'd' THEN y.typname END AS domain_name, 'NO' AS is_self_referencing, 'NO' AS is_identity,
    'NO' AS identity_cycle, 'NEVER' AS is_generated, 'NO' AS is_updatable
    FROM ({_TABLES}) AS t JOIN c.pg_attribute AS a ON a.attrelid = t.o AND a.attnum > 0
    JOIN c.pg_type AS y ON y.oid = a.atttypid JOIN c.pg_namespace AS ns ON ns.oid = y.typnamespace
    JOIN h.shown_type AS s ON s.o = y.oid LEFT JOIN h.shown_type AS b ON b.o = y.typbasetype
    LEFT JOIN c.pg_type AS bt ON bt.oid = y.typbasetype"""
_SETTINGS = """SELECT unnest(CAST($setting_names AS VARCHAR[])) AS name,
    unnest(CAST($setting_values AS VARCHAR[])) AS setting, 'Client Connection Defaults' AS category,
    'user' AS context, 'string' AS vartype, 'session' AS source, false AS pending_restart"""
_ROLE = f"""SELECT r.name AS rolname, false AS rolsuper, true AS rolinherit, false AS rolcreaterole,
    false AS rolcreatedb, r.can_login AS rolcanlogin, false AS rolreplication, -1 AS rolconnlimit,
    false AS rolbypassrls, r.oid AS oid FROM ({_ROLES}) AS r"""
_LOGIN = f"""SELECT r.name AS usename, r.oid AS usesysid, false AS usecreatedb, false AS usesuper,
    false AS userepl, false AS usebypassrls FROM ({_ROLES}) AS r WHERE r.can_login"""

SESSION_RELATIONS = {
    "pg_catalog.pg_database": """SELECT unnest(CAST($database_oids AS BIGINT[])) AS oid,
        unnest(CAST($databases AS VARCHAR[])) AS datname, 10 AS datdba, 6 AS encoding,
        'c' AS datlocprovider, true AS datallowconn, -1 AS datconnlimit, 1663 AS dattablespace,
        'C.UTF-8' AS datcollate, 'C.UTF-8' AS datctype""",
    "pg_catalog.pg_roles": _ROLE,
    "pg_catalog.pg_authid": _ROLE,
    "pg_catalog.pg_user": _LOGIN,
    "pg_catalog.pg_shadow": _LOGIN,
    "pg_catalog.pg_settings": _SETTINGS,
    "pg_catalog.pg_tables": f"""SELECT t.schema AS schemaname, t.name AS tablename, 'dpsql' AS tableowner,
        x.relhasindex AS hasindexes, x.relhasrules AS hasrules, x.relhastriggers AS hastriggers,
        x.relrowsecurity AS rowsecurity FROM ({_TABLES}) AS t JOIN c.pg_class AS x ON x.oid = t.o WHERE t.kind = 'r'""",
    "pg_catalog.pg_views": f"""SELECT t.schema AS schemaname, t.name AS viewname, 'dpsql' AS viewowner
        FROM ({_TABLES}) AS t WHERE t.kind = 'v'""",
    "pg_catalog.pg_indexes": """SELECT n.nspname AS schemaname, t.relname AS tablename, x.relname AS indexname,
        d.full_text AS indexdef FROM c.pg_index AS i JOIN c.pg_class AS x ON x.oid = i.indexrelid
        JOIN c.pg_class AS t ON t.oid = i.indrelid JOIN c.pg_namespace AS n ON n.oid = t.relnamespace
        LEFT JOIN h.definition AS d ON d.o = i.indexrelid""",
    "pg_catalog.pg_timezone_names": """SELECT 'UTC' AS name, 'UTC' AS abbrev, INTERVAL 0 SECOND AS utc_offset,
        false AS is_dst""",
    "information_schema.information_schema_catalog_name": f"SELECT {_DB} AS catalog_name",
    "information_schema.schemata": f"""SELECT {_DB} AS catalog_name, n.nspname AS schema_name,
        'dpsql' AS schema_owner FROM c.pg_namespace AS n WHERE n.nspname <> 'pg_toast'""",
    "information_schema.tables": f"""SELECT {_DB} AS table_catalog, t.schema AS table_schema, t.name AS table_name,
        CASE t.kind WHEN 'r' THEN 'BASE TABLE' ELSE 'VIEW' END AS table_type, 'NO' AS is_insertable_into,
        'NO' AS is_typed FROM ({_TABLES}) AS t""",
    "information_schema.views": f"""SELECT {_DB} AS table_catalog, t.schema AS table_schema, t.name AS table_name,
        'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into, 'NO' AS is_trigger_updatable,
        'NO' AS is_trigger_deletable, 'NO' AS is_trigger_insertable_into FROM ({_TABLES}) AS t WHERE t.kind = 'v'""",
    "information_schema.columns": _COLUMNS,
    "information_schema.table_constraints": _CONSTRAINTS,
    "information_schema.key_column_usage": f"""SELECT {_DB} AS constraint_catalog,
        u.table_schema AS constraint_schema, u.conname AS constraint_name, {_DB} AS table_catalog,
        u.table_schema AS table_schema, u.table_name AS table_name, a.attname AS column_name,
        u.place AS ordinal_position, CASE WHEN u.contype = 'f' THEN u.place END AS position_in_unique_constraint
        FROM ({_UNNESTED}) AS u JOIN c.pg_attribute AS a ON a.attrelid = u.conrelid AND a.attnum = u.number""",
    "information_schema.constraint_column_usage": f"""SELECT {_DB} AS table_catalog, t.schema AS table_schema,
        t.name AS table_name, a.attname AS column_name, {_DB} AS constraint_catalog,
        u.table_schema AS constraint_schema, u.conname AS constraint_name FROM ({_UNNESTED}) AS u
        JOIN ({_TABLES}) AS t ON t.o = CASE WHEN u.contype = 'f' THEN u.confrelid ELSE u.conrelid END
        JOIN c.pg_attribute AS a ON a.attrelid = t.o
        AND a.attnum = CASE WHEN u.contype = 'f' THEN list_extract(u.confkey, u.place) ELSE u.number END""",
    "information_schema.constraint_table_usage": f"""SELECT {_DB} AS table_catalog, t.schema AS table_schema,
        t.name AS table_name, {_DB} AS constraint_catalog, k.table_schema AS constraint_schema,
        k.conname AS constraint_name FROM ({_KEYS}) AS k
        JOIN ({_TABLES}) AS t ON t.o = CASE WHEN k.contype = 'f' THEN k.confrelid ELSE k.conrelid END""",
    "information_schema.referential_constraints": f"""SELECT {_DB} AS constraint_catalog,
        k.table_schema AS constraint_schema, k.conname AS constraint_name, {_DB} AS unique_constraint_catalog,
        t.schema AS unique_constraint_schema, o.conname AS unique_constraint_name, 'NONE' AS match_option,
        'NO ACTION' AS update_rule, 'NO ACTION' AS delete_rule FROM ({_KEYS}) AS k
        LEFT JOIN c.pg_constraint AS o ON o.conindid = k.conindid AND o.conrelid = k.confrelid AND o.contype <> 'f'
        LEFT JOIN ({_TABLES}) AS t ON t.o = o.conrelid WHERE k.contype = 'f'""",
    "information_schema.table_privileges": _GRANTS,
    "information_schema.role_table_grants": f"SELECT * FROM ({_GRANTS}) AS z WHERE z.grantee <> 'PUBLIC'",
    "information_schema.column_privileges": _COLUMN_GRANTS,
    "information_schema.role_column_grants": f"SELECT * FROM ({_COLUMN_GRANTS}) AS z WHERE z.grantee <> 'PUBLIC'",
    "information_schema.enabled_roles": f"SELECT {_USER} AS role_name",
    "information_schema.character_sets": f"""SELECT 'UTF8' AS character_set_name, 'UCS' AS character_repertoire,
        'UTF8' AS form_of_use, {_DB} AS default_collate_catalog""",
}
"""schema.relation -> the query that makes it, or those of its columns that are not empty."""

SCHEMAS = ("pg_catalog", "information_schema")


@dataclass(frozen=True)
class CatalogRelations:
    """Finds relations; `filled`: those that are tables of the engine."""

    builtin: Builtin
    filled: frozenset[str]
    oid: PgType = OID
    xid: PgType = BY_NAME["xid"]

    def read(self, schema: str | None, name: str) -> tuple[str, CatalogRelation]:
        """Return what stands in FROM for a relation. Raises CatalogRefusal: there is no such relation."""
        relation = self.builtin.relations.get((schema or "pg_catalog", name))
        if relation is None or not (relation.is_readable or relation.schema == "pg_catalog"):
            shown = f"{schema}.{name}" if schema else name
            message = f'relation "{shown[:100]}" does not exist'
            raise CatalogRefusal("no such relation", message=message, sqlstate="42P01")
        if relation.schema == "pg_catalog" and name in self.filled:
            return f'c."{name}"', relation
        return f"({_completed(SESSION_RELATIONS.get(f'{relation.schema}.{name}'), relation)})", relation


def _completed(sql: str | None, relation: CatalogRelation) -> str:
    """Return a query of all the relation's columns in order: what another gives, the rest NULL, or nothing."""
    nulls = ", ".join(f'NULL AS "{column}"' for column, *_ in relation.columns)
    rows = f"SELECT {nulls} WHERE false" + ("" if sql is None else f" UNION ALL BY NAME ({sql})")
    parts = []
    for column, type_, _, not_null in relation.columns:
        empty = {"boolean": "false", "number": "0", "oid": "0"}.get(type_.family) if not_null else None
        value = f'q."{column}"' if empty is None else f'coalesce(q."{column}", {empty})'
        parts.append(f'CAST({value} AS {type_.holder}) AS "{column}"')
    return f"SELECT {', '.join(parts)} FROM ({rows}) AS q"
