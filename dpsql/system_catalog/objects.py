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
from ..regex import regex
from ..relation.catalog import OWN_SCHEMA, TEMPORARY, Catalog, OwnView, Table, View
from ..relation.types import Kind, SqlType
from ..seal import seal
from .errors import CatalogRefusal, unsupported
from .pg_types import BY_NAME, OID, SPELLED, Builtin, CatalogRelation, PgType, data, sections

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
_PART = regex(r'"(?:[^"]|"")+"|[A-Za-z_\u0080-\uffff][\w$]*')
_PATH = regex(rf"\s*+(?:{_PART.pattern})\s*+(?:\.\s*+(?:{_PART.pattern})\s*+)*")


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
        database.execute(data("made.sql"))
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


def _queries() -> dict[str, str]:
    """Return what relations.sql says: by schema.relation, the pieces written out."""
    found: dict[str, str] = {}
    for names, sql in sections("relations.sql").items():
        written = re.sub(r"\{(\w+)\}", lambda piece: found[piece[1]], sql)
        found.update(dict.fromkeys(names.split(), written))
    return {name: sql for name, sql in found.items() if "." in name}


SESSION_RELATIONS = _queries()
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
