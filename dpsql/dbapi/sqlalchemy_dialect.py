"""The dialect of SQLAlchemy 2: `create_engine("dpsql:///path/to/policy.toml")`.

Statements are written in Postgres' words by SQLAlchemy's own compiler for it, and judged by dpsql as any
other text. What SQLAlchemy can write and dpsql does not answer is refused by dpsql, with its own words.

House rules:

1. Nothing that SQLAlchemy does of itself (connecting, pinging, reflecting, resetting) runs a query, so that
   nothing of it can charge.
2. Reflection reads the session's catalog and nothing else: an undeclared table is a missing one.
3. A connection is opened for its use and closed after it (NullPool). An idle one would keep the owner's DuckDB
   file from the writer that loads new data, answer for a schema that has changed, and hand the next user the
   SETs of the last. Where a pool is asked for all the same, SETs are undone when a connection goes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from sqlalchemy import Connection as EngineConnection
from sqlalchemy import Engine, event, exc, pool, types
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGIdentifierPreparer, PGTypeCompiler
from sqlalchemy.engine import URL
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import (
    ReflectedColumn,
    ReflectedForeignKeyConstraint,
    ReflectedPrimaryKeyConstraint,
    ReflectedTableComment,
    ReflectedUniqueConstraint,
)
from sqlalchemy.sql.elements import BindParameter

from ..engine import Receipt
from ..policy.describe import column_comment, table_comment
from ..relation.catalog import TEMPORARY, Catalog, OwnView, Table, View
from ..relation.types import Kind, SqlType
from ..sql.scope import find_own
from .connection import Connection
from .errors import InterfaceError, NotSupportedError

# --- SQLAlchemy's expressions as text that dpsql reads ------------------------------------------------------


_REAL_BITS = 24


class _Pattern(types.TypeDecorator[str]):
    """A text that is sent as a pattern of LIKE, with something before and after it."""

    impl = types.String
    cache_ok = True

    def __init__(self, before: str, after: str) -> None:
        super().__init__()
        self.before = before
        self.after = after

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:
        return None if value is None else f"{self.before}{value}{self.after}"

    process_literal_param = process_bind_param  # type: ignore[assignment]  # a value of None has no literal


class _DpsqlCompiler(PGCompiler):
    """Writes statements. What dpsql does not answer is written too: the refusal is dpsql's."""

    def visit_column(
        self,
        column: Any,
        add_to_result_map: Any = None,
        include_table: bool = True,
        *arguments: Any,
        **options: Any,
    ) -> str:
        """Write `table.column` where Postgres would have `schema.table.column`."""
        table = column.table
        is_named = include_table and table is not None and table.named_with_column
        if not is_named or not self.preparer.schema_for_object(table):
            return super().visit_column(column, add_to_result_map, include_table, *arguments, **options)
        name = super().visit_column(column, add_to_result_map, False, *arguments, **options)
        return f"{self.preparer.quote(table.name)}.{name}"

    def limit_clause(self, select: Any, **options: Any) -> str:
        """Write LIMIT and OFFSET, and OFFSET alone without Postgres' LIMIT ALL."""
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **options)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **options)
        return text

    def fetch_clause(self, select: Any, *arguments: Any, **options: Any) -> str:
        """Write FETCH FIRST n ROWS ONLY as the LIMIT that it is; WITH TIES and PERCENT stay."""
        if any(select._fetch_clause_options.values()):
            above: Any = super()
            return str(above.fetch_clause(select, *arguments, **options))
        text = "\n LIMIT " + self.process(select._fetch_clause, **options)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **options)
        return text

    def visit_empty_set_expr(self, element_types: Any, **options: Any) -> str:
        """Write the empty list of IN with text in place of a text of some length, which no cast has here."""
        texts = [types.TEXT() if isinstance(type_, types.String) else type_ for type_ in element_types or ()]
        above: Any = super()
        return str(above.visit_empty_set_expr(texts, **options))

    def visit_contains_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("contains", binary, operator, "%", "%", options)

    def visit_not_contains_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("not_contains", binary, operator, "%", "%", options)

    def visit_startswith_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("startswith", binary, operator, "", "%", options)

    def visit_not_startswith_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("not_startswith", binary, operator, "", "%", options)

    def visit_endswith_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("endswith", binary, operator, "%", "", options)

    def visit_not_endswith_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._like("not_endswith", binary, operator, "%", "", options)

    def _like(
        self, name: str, binary: Any, operator: Any, before: str, after: str, options: dict[str, Any]
    ) -> str:
        """Write LIKE with the whole pattern in the parameter: LIKE takes no pattern that is put together."""
        if not isinstance(binary.right, BindParameter):
            above: Any = getattr(super(), f"visit_{name}_op_binary")
            return str(above(binary, operator, **options))
        binary = binary._clone()
        binary.right = binary.right._with_binary_element_type(_Pattern(before, after))
        write: Any = self.visit_not_like_op_binary if name.startswith("not_") else self.visit_like_op_binary
        return str(write(binary, operator, **options))


class _DpsqlTypeCompiler(PGTypeCompiler):
    """Writes types, for CAST."""

    def visit_FLOAT(self, type_: Any, **options: Any) -> str:
        """Write FLOAT(bits) as the one of two types that it means in Postgres."""
        return "REAL" if type_.precision and type_.precision <= _REAL_BITS else "DOUBLE PRECISION"


# --- the dialect of SQLAlchemy 2: `create_engine("dpsql:///path/to/policy.toml")` ---------------------------


_OPTIONS = ("analyst", "epsilon", "intervals", "accuracy")
_TYPES: dict[Kind, types.TypeEngine[Any]] = {
    Kind.BOOLEAN: types.BOOLEAN(), Kind.SMALLINT: types.SMALLINT(), Kind.INTEGER: types.INTEGER(),
    Kind.BIGINT: types.BIGINT(), Kind.REAL: types.REAL(), Kind.DOUBLE: types.DOUBLE_PRECISION(),
    Kind.TEXT: types.TEXT(), Kind.DATE: types.DATE(), Kind.TIMESTAMP: types.TIMESTAMP(),
    Kind.TIME: types.TIME(),
    Kind.INTERVAL: postgresql.INTERVAL(), Kind.JSON: postgresql.JSON(), Kind.JSONB: postgresql.JSONB(),
}  # fmt: skip
_NATIVE: dict[Any, Any] = {types.Interval: postgresql.INTERVAL}


class DpsqlDialect(DefaultDialect):
    """Asks a dataset through `dpsql.connect`.

    The URL is `dpsql:///` and the policy's path, absolute with a fourth slash, and in the query string
    `analyst`, `epsilon`, `intervals` and `accuracy` as `dpsql.connect` takes them.

    There are no transactions: COMMIT and ROLLBACK do nothing, each statement sees the data as they are when it
    runs, and no charge is given back. That is the one isolation level, AUTOCOMMIT.
    """

    name = "dpsql"
    driver = "dpsql"
    poolclass = pool.NullPool
    supports_statement_cache = True
    statement_compiler = _DpsqlCompiler
    type_compiler_cls = _DpsqlTypeCompiler
    preparer = PGIdentifierPreparer
    colspecs = _NATIVE
    max_identifier_length = 63  # Postgres': labels are the same on every engine below

    supports_comments = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_multivalues_insert = True  # it is written, so that dpsql refuses it
    postfetch_lastrowid = False

    receipt: Receipt | None = None
    """What the engine's last answer cost and what is left: `engine.dialect.receipt`, after pandas.read_sql too."""

    _backslash_escapes = False  # read by the compiler of Postgres
    _supports_jsonb_subscripting = False  # likewise

    # --- connecting ----------------------------------------------------------------------------------

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Return the driver."""
        from dpsql import dbapi

        return dbapi

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        """Have SETs undone when a connection goes back to a pool."""
        event.listen(engine, "reset", lambda connection, record, state: _undo_settings(connection))

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Return what `dpsql.connect` is called with. Raises ArgumentError for what a URL cannot say here."""
        if url.host or url.port or url.username or url.password:
            raise exc.ArgumentError(
                "a dpsql URL names a policy file and no host or user; write dpsql:///policy.toml, or "
                "dpsql:////path/to/policy.toml, and ?analyst=... for the analyst"
            )
        if not url.database:
            raise exc.ArgumentError("the dpsql URL names no policy file; write dpsql:///policy.toml")
        for name, value in url.query.items():
            if name not in _OPTIONS:
                raise exc.ArgumentError(
                    f'a dpsql URL has no option "{name}"; it takes {", ".join(_OPTIONS)}, '
                    "and SET sets the rest on a connection"
                )
            if not isinstance(value, str):
                raise exc.ArgumentError(f'the dpsql URL has the option "{name}" twice; write it once')
        return [url.database], dict(url.query)

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Return True for an open connection, without asking anything. Raises InterfaceError for a closed one."""
        dbapi_connection.commit()
        return True

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Say whether an error means that the connection is closed; all others leave it usable."""
        return isinstance(e, InterfaceError) and connection is not None and bool(connection.closed)

    def get_isolation_level_values(self, dbapi_conn: Any) -> Sequence[Any]:
        """Return AUTOCOMMIT, the only one: each statement stands alone."""
        return ("AUTOCOMMIT",)

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """Return AUTOCOMMIT."""
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """Do nothing: `level` is the one there is."""

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        """Return True."""
        return bool(dbapi_conn.autocommit)

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Refuse a query with several sets of parameters: all are charged, and SQLAlchemy shows the first answer.

        Raises: NotSupportedError for a query, what dpsql says of any other statement.
        """
        if context is None or not context.is_crud:
            raise NotSupportedError(
                "a statement is executed with one set of parameters at a time",
                sqlstate="0A000",
                hint="call execute for each set: SQLAlchemy shows the first answer of several alone",
            )
        cursor.executemany(statement, parameters)

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Answer a statement, and keep its receipt: a frame that is read has no room for it."""
        cursor.execute(statement, parameters)
        self.receipt = cursor.receipt or self.receipt

    def do_execute_no_params(self, cursor: Any, statement: str, context: Any = None) -> None:
        """As `do_execute`."""
        self.do_execute(cursor, statement, None)

    # --- reflection ----------------------------------------------------------------------------------

    def _get_default_schema_name(self, connection: EngineConnection) -> str:
        return _catalog(connection).default_schema

    def get_schema_names(self, connection: EngineConnection, **kw: Any) -> list[str]:
        """Return the schemas that hold a declared table, and the default one."""
        catalog = _catalog(connection)
        own = catalog.own_schemas - catalog.schemas
        return sorted({catalog.default_schema, *own, *(table.path[0] for table in catalog.shown.values())})

    def get_table_names(
        self, connection: EngineConnection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Return the tables of a schema."""
        return _names(connection, schema, are_views=False)

    def has_table(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Say whether a table is declared."""
        self._ensure_has_table_connection(connection)
        return _find(connection, table_name, schema) is not None

    def get_columns(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedColumn]:
        """Return the columns that an analyst can name, with what may be done with each as its comment."""
        table = _table(connection, table_name, schema)
        policy = _driver(connection).policy
        return [
            {
                "name": column.name,
                "type": _type(column.type),
                "nullable": not column.enforced.not_null,
                "default": None,
                "comment": column_comment(table, column.name, policy.has_delta),
            }
            for column in table.named
        ]

    def get_pk_constraint(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        """Return the first key that the database enforces and whose columns are never NULL."""
        table = _table(connection, table_name, schema)
        return {"constrained_columns": list(_primary_key(table)), "name": None}

    def get_unique_constraints(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedUniqueConstraint]:
        """Return the other keys that the database enforces."""
        table = _table(connection, table_name, schema)
        others = [key for key in table.named_keys if key != _primary_key(table)]
        return [{"column_names": list(key), "name": None} for key in others]

    def get_foreign_keys(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedForeignKeyConstraint]:
        """Return the foreign key that leads to the owner of a table's rows, the one that is declared."""
        table, catalog = _table(connection, table_name, schema), _catalog(connection)
        unit = table.unit if isinstance(table, Table) else None
        if unit is None or not isinstance(table, Table) or table.reference is None:
            return []
        name, columns = table.reference
        referred = catalog.tables[name].path
        return [
            {
                "name": None,
                "constrained_columns": list(unit.columns),
                "referred_schema": None if referred[0] == catalog.default_schema else referred[0],
                "referred_table": referred[1],
                "referred_columns": list(columns),
            }
        ]

    def get_table_comment(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedTableComment:
        """Return whose rows a table holds, and how many of them count."""
        return {"text": table_comment(_table(connection, table_name, schema))}

    def get_indexes(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return none: how the owner's engine finds rows is not declared."""
        _table(connection, table_name, schema)
        return []

    get_check_constraints = get_indexes

    def get_view_names(self, connection: EngineConnection, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the analyst's own views of a schema: what is declared is shown as a table."""
        return _names(connection, schema, are_views=True)

    def get_temp_table_names(
        self, connection: EngineConnection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Return the session's own."""
        return _names(connection, TEMPORARY, are_views=False)

    def get_temp_view_names(
        self, connection: EngineConnection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Return the session's own."""
        return _names(connection, TEMPORARY, are_views=True)

    def get_sequence_names(
        self, connection: EngineConnection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Return none."""
        return []

    get_materialized_view_names = get_sequence_names

    def get_view_definition(
        self, connection: EngineConnection, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        """Return the text of an own view. Raises NoSuchTableError: it is none."""
        view = _find(connection, view_name, schema)
        if not isinstance(view, OwnView):
            raise exc.NoSuchTableError(view_name)
        return view.text

    def has_sequence(
        self, connection: EngineConnection, sequence_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Return False."""
        return False


def _undo_settings(connection: Any) -> None:
    if not connection.closed:
        connection.reset()


def _driver(connection: EngineConnection) -> Connection:
    found = connection.connection.dbapi_connection
    assert isinstance(found, Connection), "the dialect's driver is dpsql's own"
    return found


def _catalog(connection: EngineConnection) -> Catalog:
    return _driver(connection).catalog


def _names(connection: EngineConnection, schema: str | None, *, are_views: bool) -> list[str]:
    catalog = _catalog(connection)
    sought = schema or catalog.default_schema
    found = (one for one in catalog.everything.values() if one.path[0] == sought)
    return sorted(one.path[1] for one in found if isinstance(one, OwnView) == are_views)


def _find(connection: EngineConnection, name: str, schema: str | None) -> Table | View | OwnView | None:
    catalog = _catalog(connection)
    path = (schema or catalog.default_schema, name)
    declared = next((table for table in catalog.shown.values() if table.path == path), None)
    return find_own(catalog, schema or "", name) if declared is None else declared


def _table(connection: EngineConnection, name: str, schema: str | None) -> Table | View | OwnView:
    """Return a declared table. Raises NoSuchTableError, the same whether it is missing or not declared."""
    table = _find(connection, name, schema)
    if table is None:
        raise exc.NoSuchTableError(name if schema is None else f"{schema}.{name}")
    return table


def _primary_key(table: Table | View | OwnView) -> tuple[str, ...]:
    never_null = {column.name for column in table.named if column.enforced.not_null}
    return next((key for key in table.named_keys if never_null.issuperset(key)), ())


def _type(type_: SqlType) -> types.TypeEngine[Any]:
    if type_.kind is Kind.NUMERIC:
        return types.NUMERIC(type_.precision, type_.scale)
    return _TYPES.get(type_.kind, types.NULLTYPE)
