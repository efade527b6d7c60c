"""Answers queries of the system catalog: each text is translated once, and runs in the sealed engine.

House rules:

1. The `Catalog` is the only input: what is not declared does not exist here, and nothing here has seen a row.
2. The engine runs what `translate` wrote and nothing else; facts of the connection are parameters of it, so that
   a plan, once made, serves every connection.
3. An error of the engine's becomes one refusal of ours; its text goes nowhere.
4. A query that breaks the engine costs its own answer alone: the engine is opened anew from what is declared.
5. Whether a statement asks the system catalog, and nothing else, is asked of every statement (`classify`), so that a
   test of words comes first, and most end there.
"""

from __future__ import annotations

import enum
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb
from sqlglot import exp

from ..cache import Cache
from ..errors import EngineFailure
from ..records import dataclass
from ..regex import regex
from ..relation.catalog import Catalog
from ..sql.text import unquoted
from ..waits import Watch, interrupt_after
from .bind_query import CATALOG_CALLS, Bound, QueryBinder
from .errors import CatalogRefusal, raised_in, unsupported
from .functions import CATALOG_FUNCTIONS, TranslationContext, coerce
from .objects import (
    FILLED,
    OWNER,
    SCHEMAS,
    CatalogRelations,
    Names,
    Objects,
    object_oid,
    open_database,
    reader_of,
    shown_in_public,
    to_engine,
)
from .parse import alias_of, name_of, parse, type_of
from .pg_types import BY_OID, TEXT, UNKNOWN, PgType, load

_UNKNOWN = (0, UNKNOWN.oid)
_VARIABLE = regex(r"'(?:[^']|'')*+'|\$(\w+)")
"""A constant of the engine's SQL, or the name of a parameter."""


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column as RowDescription has it: Postgres' type, its size, and the type's modifier."""

    name: str
    oid: int
    size: int
    modifier: int


@dataclass(frozen=True, slots=True)
class CatalogPlan:
    """`sql`: the engine's statement. `types`: of its columns. `settings`: names, after "!" if they must be."""

    sql: str
    columns: tuple[ResultColumn, ...]
    types: tuple[PgType, ...]
    parameters: tuple[PgType, ...]
    facts: frozenset[str]
    settings: tuple[str, ...]
    used: frozenset[int]


def translate(
    query: exp.Expr, declared: Sequence[int], names: Names, relations: CatalogRelations
) -> CatalogPlan:
    """Return what answers a query. `declared`: the types of parameters that the client has said, or 0.

    The tree stays as it is. Raises CatalogRefusal.
    """
    given: dict[int, PgType] = {}
    for number, oid in enumerate(declared, 1):
        if oid not in _UNKNOWN:
            if oid not in BY_OID:
                raise unsupported("a parameter of that type")
            given[number] = BY_OID[oid]
    # A parameter's type may follow from a later mention of it, so that earlier ones are bound again.
    found = dict(given)
    for _ in range(2):
        context = TranslationContext(names, dict(found))
        binder = QueryBinder(context, relations)
        bound = _typed_columns(context, binder.query(query, None))
        found |= context.parameters
        for number in binder.numbers - found.keys():
            found[number] = TEXT
    count = max([len(declared), *found])
    variables = {match[1] for match in _VARIABLE.finditer(bound.sql) if match[1]}
    used = frozenset(number for number in found if f"p{number}" in variables)
    return CatalogPlan(
        bound.sql,
        tuple(
            ResultColumn(name, typed.type.oid, typed.type.size, typed.modifier)
            for name, typed in bound.columns
        ),
        tuple(typed.type for _, typed in bound.columns),
        tuple(found.get(number, TEXT) for number in range(1, count + 1)),
        frozenset(variables.difference(f"p{number}" for number in used)),
        tuple(context.settings),
        used,
    )


def _typed_columns(context: TranslationContext, bound: Bound) -> Bound:
    """Return the query with a type for every column."""
    if not bound.columns:
        raise unsupported("SELECT of no columns")
    columns = []
    for name, typed in bound.columns:
        if typed.type.family == "record":
            raise CatalogRefusal("a record as a result")
        columns.append((name, coerce(context, typed, TEXT) if typed.type is UNKNOWN else typed))
    return Bound(bound.sql, tuple(columns))


# --- who answers a statement --------------------------------------------------------------------------


class Reads(enum.Enum):
    """What a statement reads."""

    CATALOG = "the system catalog"
    OTHER = "something else"
    BOTH = "the system catalog and a declared table"


_NAMES = frozenset({*CATALOG_FUNCTIONS, *CATALOG_CALLS, "current_catalog"})
_TYPES = frozenset(
    {"oid", "name", '"char"', "regclass", "regtype", "regproc", "regnamespace", "regrole", "xid", "int2vector",
     "oidvector", "aclitem", "regprocedure", "regoper", "regoperator"}
)  # fmt: skip
_KNOWN = frozenset({"information_schema", "[", *(word.strip('"') for word in _NAMES | _TYPES)})
_WORD = regex(r"\b[A-Za-z_]\w*|\[")
_FIRST = regex(r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/|\()*(?:select|with|values|table)\b", re.IGNORECASE)
_FROM = regex(
    r'\b(?:from|join)\s+\(*(?:"?pg_catalog"?\s*\.|"?information_schema"?\s*\.|"?pg_\w)', re.IGNORECASE
)
_FROM_CALL = regex(r"pg_|_pg_|has_")


def classify(text: str, declared: Collection[str], parse: Callable[[str], exp.Expr]) -> Reads:
    """Return what one statement reads; `declared`: names of tables without a schema, which hide the catalog's."""
    if not _FIRST.match(text) or not _has_words(text):
        return Reads.OTHER
    try:
        query = parse(text)
        kinds = set(_relations(query, declared))
        is_catalogs = any(map(_is_catalogs, () if kinds else query.walk()))
    except CatalogRefusal:
        return Reads.CATALOG if _FROM.search(text) else Reads.OTHER
    if kinds == {True, False}:
        return Reads.BOTH
    if kinds:
        return Reads.CATALOG if True in kinds else Reads.OTHER
    return Reads.CATALOG if is_catalogs else Reads.OTHER


def _has_words(text: str) -> bool:
    """Say whether a text has a word of the catalog's; in a tenth of the time of one expression of all these words."""
    words = {word.lower() for word in _WORD.findall(text)}
    return not _KNOWN.isdisjoint(words) or any(word.startswith("pg_") for word in words)


def _relations(query: exp.Expr, declared: Collection[str]) -> Iterator[bool]:
    """Yield for every relation that is read whether it is the catalog's: names of WITH hide it."""
    stack: list[tuple[exp.Expr, frozenset[str]]] = [(query, frozenset())]
    while stack:
        node, hidden = stack.pop()
        with_ = node.args.get("with_")
        if with_ is not None:
            names = [alias_of(cte)[0] or "" for cte in with_.expressions]
            for at, cte in enumerate(with_.expressions):
                stack.append((cte, hidden.union(names if with_.args.get("recursive") else names[:at])))
            hidden = hidden.union(names)
        if isinstance(node, (exp.Table, exp.Lateral)):
            yield from _kind_of(node, hidden, declared)
        stack += [(child, hidden) for child in node.iter_expressions() if not isinstance(child, exp.With)]


def _kind_of(item: exp.Expr, hidden: frozenset[str], declared: Collection[str]) -> Iterator[bool]:
    call, schema = item.this, item.args.get("db")
    if isinstance(call, exp.Anonymous):
        if _FROM_CALL.match(name_of(call)):
            yield True
    elif schema is not None:
        yield name_of(schema) in SCHEMAS
    elif isinstance(call, exp.Identifier) and name_of(call) not in hidden:
        yield name_of(call).startswith("pg_") and name_of(call) not in declared


def _is_catalogs(node: exp.Expr) -> bool:
    """Say whether a node is a function or a type that dpsql's own SQL has not."""
    if isinstance(node, exp.Anonymous):
        name = name_of(node)
        return name in _NAMES or name.startswith("pg_")
    if not isinstance(node, exp.Cast):
        return False
    type_ = type_of(node.args["to"])
    return type_.name in _TYPES or type_.is_array


# --- the answers --------------------------------------------------------------------------------------

Rows = list[tuple[object, ...]]

_SECONDS = 5.0
"""The longest that a query may run."""
_MOST_ROWS = 100_000
_BREAKING = (duckdb.FatalException, duckdb.InternalException, duckdb.ConnectionException)
"""After these the engine answers nothing any more."""
_KEPT_PLANS, _KEPT_RESULTS = 400, 400
_KEPT_TREES = 8
"""Trees are large, and are kept from the question who answers a statement to its plan."""
_KEPT_TEXT, _KEPT_VALUES, _KEPT_CHARACTERS = 20_000, 4_000, 100_000
"""Longer texts and larger results are not kept."""
_SETTINGS = {"default_table_access_method": "heap", "max_index_keys": "32", "max_identifier_length": "63"}
"""What clients ask of the server that is no setting of a connection's."""


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """What differs from connection to connection; `settings`: by name in lower case, as SHOW gives them.

    `others`: the names of the databases that the user can connect to besides.
    """

    user: str
    database: str
    process_id: int
    settings: Mapping[str, str]
    others: tuple[str, ...] = ()


class SystemCatalog:
    """The system catalog of one dataset; any number of threads may ask at once.

    `has_delta`: whether undeclared group keys can be found, which the comments say. `version` and `version_text`:
    the Postgres that the server says it is. `default_schema`: of tables that are named without one.
    Raises EngineFailure: the engine cannot be made.
    """

    def __init__(self, catalog: Catalog, *, has_delta: bool, version: str, version_text: str) -> None:
        builtin = load()
        objects = Objects(shown_in_public(catalog), has_delta, catalog.default_schema)
        self.default_schema = objects.default_schema
        self._contents = (objects, builtin)
        self._database = open_database(*self._contents)
        self._names = Names(self._database, objects.default_schema)
        self._relations = CatalogRelations(builtin, FILLED.union(builtin.rows))
        self._declared = frozenset(table.name for table in objects.tables)
        self._constants: dict[str, object] = {
            "version": version_text, "started": _now(),
            "schema_oid": objects.schemas[objects.default_schema],
        }  # fmt: skip
        self._default_schema = objects.default_schema
        self._own_schemas = catalog.own_schemas - catalog.schemas
        self._version = version
        self._plans: Cache[CatalogPlan] = Cache(_KEPT_PLANS)
        self._trees: Cache[exp.Expr] = Cache(_KEPT_TREES)
        self._results: Cache[Rows] = Cache(_KEPT_RESULTS)
        self._running: dict[int, Watch] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def reads(self, sql: str) -> Reads:
        """Return whether one statement reads the system catalog, something else, or both (and nobody answers it)."""
        return classify(sql, self._declared, self._parse)

    def describe(
        self, sql: str, facts: ConnectionFacts, types: Sequence[int] = ()
    ) -> tuple[tuple[ResultColumn, ...], tuple[int, ...]]:
        """Return a query's columns and its parameters' types; nothing is run.

        `types`: what the client has declared; 0 and 705 are unknown. Raises CatalogRefusal.
        """
        plan = self._plan(sql, types)
        return plan.columns, tuple(type_.oid for type_ in plan.parameters)

    def run(
        self, sql: str, facts: ConnectionFacts, values: Sequence[object] = (), types: Sequence[int] = ()
    ) -> tuple[tuple[ResultColumn, ...], Rows]:
        """Return a query's columns and rows. `types` as `describe` got them.

        Raises CatalogRefusal; EngineFailure 57014 when `interrupt` ended it.
        """
        plan = self._plan(sql, types)
        if len(values) != len(plan.parameters):
            raise CatalogRefusal(
                "another number of parameters",
                message=f"the query has {len(plan.parameters)} parameters, and {len(values)} are given",
                sqlstate="42P02",
            )
        arguments = self._arguments(plan, facts)
        for number in plan.used:
            arguments[f"p{number}"] = to_engine(values[number - 1], plan.parameters[number - 1], self._names)
        key = (plan.sql, repr(sorted(arguments.items())), facts.user)
        rows = None if "now" in plan.facts else self._results.get(key)
        if rows is None:
            rows = self._finished(plan, self._fetch(plan.sql, arguments, facts.process_id), facts)
            if "now" not in plan.facts and len(plan.sql) <= 10 * _KEPT_TEXT and _is_small(rows):
                self._results.put(key, rows)
        return plan.columns, list(rows)

    def interrupt(self, process_id: int) -> None:
        """End what runs for a connection, if anything does; from any thread."""
        with self._lock:
            if process_id in self._running:
                self._running[process_id].cancel()

    def close(self) -> None:
        """Close the engine; nothing may be asked after it."""
        with self._lock:
            self._is_closed = True
            self._database.close()

    def _reopen(self, broken: duckdb.DuckDBPyConnection) -> None:
        """Put a new engine in the place of a broken one, unless another thread has done it."""
        with self._lock:
            if self._database is broken and not self._is_closed:
                self._database = open_database(*self._contents)

    def _parse(self, sql: str) -> exp.Expr:
        tree = self._trees.get(sql)
        if tree is None:
            tree = parse(sql)
            if len(sql) <= _KEPT_TEXT:
                self._trees.put(sql, tree)
        return tree

    def _plan(self, sql: str, types: Sequence[int]) -> CatalogPlan:
        key = (sql, tuple(types))
        plan = self._plans.get(key)
        if plan is None:
            try:
                plan = translate(self._parse(sql), types, self._names, self._relations)
            except RecursionError:
                raise CatalogRefusal("a query nested too deep") from None
            if len(sql) <= _KEPT_TEXT and len(plan.sql) <= 10 * _KEPT_TEXT:
                self._plans.put(key, plan)
        return plan

    def _arguments(self, plan: CatalogPlan, facts: ConnectionFacts) -> dict[str, object]:
        settings = {**_SETTINGS, "server_version": self._version, **facts.settings}
        known = sorted(settings.items())
        found: dict[str, object] = {
            "user": facts.user, "database": facts.database, "process_id": facts.process_id,
            "user_oid": _role(facts.user), "database_oid": object_oid("database", facts.database), "now": _now(),
            "setting_names": [name for name, _ in known], "setting_values": [value for _, value in known],
            "databases": [facts.database, *facts.others],
            "database_oids": [object_oid("database", name) for name in (facts.database, *facts.others)],
            **self._constants, "schema": self._schema(settings.get("search_path", "")),
        }  # fmt: skip
        for number, asked in enumerate(plan.settings, 1):
            name = asked[1:]
            if asked[0] == "!" and name not in settings:
                message = f'setting "{name[:60]}" does not exist'
                raise CatalogRefusal("no such setting", message=message, sqlstate="42704")
            found[f"s{number}"] = settings.get(name)
        return {name: found[name] for name in plan.facts}

    def _fetch(self, sql: str, arguments: dict[str, object], process_id: int) -> list[tuple[Any, ...]]:
        database = self._database
        try:
            cursor = database.cursor()
        except duckdb.Error:
            self._reopen(database)
            raise CatalogRefusal("engine: closed") from None
        with cursor, interrupt_after(cursor, _SECONDS) as watch:
            with self._lock:
                self._running[process_id] = watch
            try:
                rows = cursor.execute(sql, arguments or None).fetchmany(_MOST_ROWS + 1)
            except (duckdb.Error, RuntimeError, ValueError, OverflowError) as error:
                if watch.is_cancelled:
                    raise EngineFailure("cancelled", sqlstate="57014") from None
                if isinstance(error, _BREAKING):
                    self._reopen(database)
                raise _failed(error, watch.is_late) from None
            finally:
                with self._lock:
                    self._running.pop(process_id, None)
        if len(rows) > _MOST_ROWS:
            raise CatalogRefusal(
                "too many rows", message=f"a query of the system catalog gives at most {_MOST_ROWS} rows",
                sqlstate="54000",
            )  # fmt: skip
        return rows

    def _schema(self, path: str) -> str:
        """Return where a client's search_path has new tables be: an analyst's own schema that it names first."""
        first = unquoted(path.partition(",")[0].strip())
        return first if first in self._own_schemas else self._default_schema

    def _finished(self, plan: CatalogPlan, rows: list[tuple[Any, ...]], facts: ConnectionFacts) -> Rows:
        user = (_role(facts.user), facts.user)
        readers = [reader_of(type_, self._names, user) for type_ in plan.types]
        if not any(readers):
            return list(rows)
        return [
            tuple(_read(reader, value) for reader, value in zip(readers, row, strict=True)) for row in rows
        ]


def _failed(error: Exception, is_late: bool) -> CatalogRefusal:
    """Return the refusal of a query that the engine did not finish; `is_late`: it was ended for that."""
    if is_late:
        message = f"a query of the system catalog may take {_SECONDS:g} seconds"
        return CatalogRefusal("too long", message=message, sqlstate="54000")
    return raised_in(error) or CatalogRefusal(f"engine: {type(error).__name__}")


def _read(reader: Callable[[Any], Any] | None, value: Any) -> object:
    return value if reader is None or value is None else reader(value)


def _is_small(rows: Rows) -> bool:
    """Say whether a result is worth keeping: arrays and bytes count as their own number of characters."""
    if sum(map(len, rows)) > _KEPT_VALUES:
        return False
    return sum(len(str(value)) for row in rows for value in row) <= _KEPT_CHARACTERS


def _role(user: str) -> int:
    return 10 if user == OWNER else object_oid("role", user)


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
