"""Tables on Spark as the owner recorded them: which files or which version they are, and whether they still are.

House rules (soundness.md 1.32):

1. What is read is a list of files, or a version of a lake's table, fixed by an act of the owner. A pattern is looked
   up, and a table's newest version is asked for, by that act alone.
2. Statements read views of their session, made from exactly that. A view's name has its version in it, so that a
   statement that was printed for one version fails where another one is read.
3. A file is known by its name, its size and the time of its last change, before and after each result. Spark shows no
   more of it without reading it: its rows were counted and hashed when it was recorded, and are when the owner checks.
   A look is a query of its own, which takes as long as a small statement: the one that followed a result is the one
   before the next, for `_FRESH_SECONDS`.
4. Messages name files and what to do. They hold nothing of what is in a file.

What Spark's catalog says of a table, as dpsql sees it: names, types, and how each column is read.

House rules:

1. Nothing is a key here and nothing is NOT NULL: Spark's catalogs enforce neither, whatever a table declares.
2. A column that dpsql shows otherwise than Spark has it (`_shown`) is read by a form that fails for no value.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql.types import StructField, StructType

from ..errors import FilesChanged, PolicyError
from ..policy.live_schema import LiveColumn, LiveSchema, LiveTable
from ..policy.model import FileSources
from ..records import dataclass
from ..regex import regex
from ..relation import types
from ..relation.types import Kind, SqlType, numeric
from .backend import Finding, Severity
from .pinned_files import read_json, write_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

# --- what Spark's catalog says of a table, as dpsql sees it: names, types, and how each column is read ------


_TYPES = {
    "boolean": types.BOOLEAN,
    "tinyint": types.SMALLINT,
    "smallint": types.SMALLINT,
    "int": types.INTEGER,
    "bigint": types.BIGINT,
    "float": types.REAL,
    "double": types.DOUBLE,
    "string": types.TEXT,
    "date": types.DATE,
    "timestamp_ntz": types.TIMESTAMP,
}
_DECIMAL = regex(r"decimal\(([0-9]+),([0-9]+)\)")
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Where a field keeps that it was declared as char(n) or varchar(n); it is a string everywhere else."""

_MOMENT = "timestamp"
_COLLATED = "string collate "
_DETAILS = "# Detailed Table Information"
_VIEW = "is a view, whose text is not read on Spark; declare the tables that it reads, or write its rows to a table"
_OTHER = "is kept as {}, of which no version can be read again; keep it as Parquet files or Delta"
_ICEBERG = (
    "is kept as Iceberg, which passes over files and rows by metrics that cannot be verified; keep it as Parquet files "
    "or Delta"
)
KEPT = ("parquet", "delta")
"""The providers of tables whose rows can be fixed, and are read whatever is said of them beside."""


def read_type(engine_type: str) -> SqlType:
    """Return our type for Spark's, as `simpleString` has it.

    A collated string is OPAQUE, and so is every type that is not listed: binary, nested ones, variant, intervals.
    """
    if found := _DECIMAL.fullmatch(engine_type):
        return numeric(int(found[1]), int(found[2]))
    return _TYPES.get(engine_type, types.OPAQUE)


def _quoted(*names: str) -> str:
    """Return a name as Spark reads it under every setting."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def _shown(field: StructField) -> str:
    """Return how a column is read: a moment in UTC, char(n) without what it is padded with, anything else as it is.

    A double is read in a form that no source holds its statistics against: these know no NaN (soundness.md 1.32).
    """
    name, type_ = _quoted(field.name), field.dataType.simpleString()
    if type_ in ("float", "double"):
        return f"CASE WHEN isnan({name}) THEN CAST('NaN' AS {type_}) ELSE {name} END AS {name}"
    if type_ == _MOMENT:
        return f"CAST({name} AS TIMESTAMP_NTZ) AS {name}"
    if str(field.metadata.get(_DECLARED, "")).startswith("char("):
        return f"rtrim({name}) AS {name}"
    return name


def _live_columns(fields: StructType) -> tuple[LiveColumn, ...]:
    """Return a table's columns as they are read."""
    return tuple(map(_live_column, fields.fields))


def _live_column(field: StructField) -> LiveColumn:
    engine_type = field.dataType.simpleString()
    if engine_type == _MOMENT:
        engine_type = "timestamp_ntz"
    is_bytewise = not engine_type.startswith(_COLLATED)
    return LiveColumn(field.name, read_type(engine_type), engine_type, is_bytewise=is_bytewise)


class Details:
    """What the catalog says of a table beside its columns: `provider`, lower case; `location`; `is_view`."""

    def __init__(self, rows: list[tuple[str, str]]) -> None:
        """`rows`: names and values of DESCRIBE TABLE EXTENDED, in order."""
        names = [name for name, _ in rows]
        start = len(names) - 1 - names[::-1].index(_DETAILS) if _DETAILS in names else len(names)
        found = dict(reversed(rows[start:]))
        self.provider = found.get("Provider", "").lower()
        self.location = found.get("Location", "")
        self.is_view = found.get("Type", "").upper() in ("VIEW", "METRIC_VIEW", "MATERIALIZED_VIEW")

    @property
    def unusable(self) -> str | None:
        """Why no policy may declare it, as the end of a sentence; None for a table whose rows can be fixed."""
        if self.is_view:
            return _VIEW
        if self.provider == "iceberg":
            return _ICEBERG
        return None if self.provider in KEPT else _OTHER.format(self.provider or "something unknown")


def _read_details(session: SparkSession, path: tuple[str, str]) -> Details:
    """Return what the catalog says of a table. Raises what Spark raises."""
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {_quoted(*path)}").collect()
    return Details([(str(row[0]), str(row[1])) for row in rows])


def _read_schema(session: SparkSession, names: frozenset[str] | None = None) -> LiveSchema:
    """Return the catalog's tables as they are now; `names`: those that a policy declares, None: all. Reads no row.

    They are for the owner's eyes: no version of theirs is fixed. Raises what Spark raises.
    """
    default = str(session.catalog.currentDatabase())
    tables = tuple(
        read_table(session, path)
        for path in _paths(session)
        if names is None or (path[1] if path[0] == default else f"{path[0]}.{path[1]}") in names
    )
    return LiveSchema(default, tables, dialect="spark")


def read_table(session: SparkSession, path: tuple[str, str]) -> LiveTable:
    """Return one of the catalog's tables as it is now; what the server itself cannot read is there without columns."""
    try:
        details = _read_details(session, path)
        if details.unusable is not None:
            return LiveTable(path, (), unusable=details.unusable)
        return LiveTable(path, _live_columns(session.table(_quoted(*path)).schema))
    except PySparkException as error:
        condition = error.getCondition()
        if not condition:  # the server did not say it: it is not there any more
            raise
    return LiveTable(path, (), unusable=f"cannot be read by the server ({condition}); mend it there")


def _paths(session: SparkSession) -> Iterator[tuple[str, str]]:
    for (schema,) in sorted(tuple(row)[:1] for row in session.sql("SHOW SCHEMAS").collect()):
        found = session.sql(f"SHOW TABLES IN {_quoted(schema)}").collect()
        yield from sorted((schema, row["tableName"]) for row in found if not row["isTemporary"])


# --- tables on Spark as the owner recorded them -------------------------------------------------------------


_FORMAT = 2
_PATTERN = frozenset("*?[]{}\\")
_READ_AS_IT_IS = {
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
_FILE = ("path", "length", "unix_millis(CAST(modificationTime AS TIMESTAMP_LTZ))")
_NO_HASH = regex(r"map<|variant|interval|geo")
_REFRESH = "dpsql refresh"
_FRESH_SECONDS = 10
"""For how long what a look has found is taken for what another one would find, where one is to follow a result."""
_MISSING = "PATH_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class SparkFile:
    """A file as the server's storage tells of it: `modified` in milliseconds since 1970."""

    path: str
    size: int
    modified: int


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """What a table's rows are: `files` that have the columns of `schema` (Spark's JSON), or a `version` of `table`.

    `kind`: parquet or delta. `base`: the folder whose subfolders' names are values of columns, "" for none.
    `identity`: what a lake's table is beside its name, which another one could get. `rows` and `content`: how many rows
    there are, and a sum of their hashes; as they were verified, -1 and "" where nobody has looked.
    """

    kind: str
    schema: str
    files: tuple[SparkFile, ...] = ()
    base: str = ""
    table: str = ""
    version: str = ""
    identity: str = ""
    rows: int = -1
    content: str = ""

    @property
    def fields(self) -> StructType:
        """The columns, as Spark has them."""
        return StructType.fromJson(json.loads(self.schema))

    def unlooked(self) -> PinnedTable:
        """Return what it is without what its rows were found to be."""
        return replace(self, rows=-1, content="")


SparkPins = Mapping[str, PinnedTable]
"""What each declared table is, by its name in the policy."""


class PinnedTables:
    """The tables of a policy as they were recorded, or what is in the catalog where there is no policy yet.

    Safe to use from several threads, each with a session of its own.
    """

    def __init__(
        self,
        files: FileSources | None = None,
        names: Collection[str] | None = None,
        *,
        is_recorded: bool = True,
    ) -> None:
        """`files`: a policy's tables and their record; None: the catalog's tables that are in `names`, or all, as they
        are. `is_recorded` False: the policy's tables as they are now, for the owner's eyes; nothing may be answered
        from them."""
        self._files, self._is_recorded = files, is_recorded
        self._names = None if names is None else frozenset(names)
        self._last = OpenTables(LiveSchema("", ()), {})
        self._made: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
        self._defaults: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def open(self, session: SparkSession) -> OpenTables:
        """Return the tables, to be read in this session: they are what was recorded.

        Raises FilesChanged, PolicyError, what Spark raises.
        """
        if self._files is None:
            return OpenTables(_read_schema(session, self._names), {})
        found = self._opened(self._default(session), self._known(session))
        if self._is_recorded and (names := found.unseen()):
            found.check(session, names)
        made = self._made.setdefault(session, {})
        for name, view in found.views.items():
            if made.get(name) != view:
                one = found.pins[name]
                shown = _frame(session, one).selectExpr(*map(_shown, one.fields.fields))
                shown.createOrReplaceTempView(_quoted(view))
                made[name] = view
        return found

    def _opened(self, default: str, pins: SparkPins) -> OpenTables:
        """Return what follows from a record, as it was made last where it is the same: a table may have many files."""
        assert self._files is not None
        last = self._last
        if last.schema.default_schema != default or last.pins != pins:
            views = {name: view_name(_path_of(name, default), one) for name, one in pins.items()}
            self._last = last = OpenTables(_live(default, self._files, pins), pins, views)
        return last

    def _default(self, session: SparkSession) -> str:
        """Return a session's schema, asked for once, which takes as long as a small query: nothing sent changes it."""
        if session not in self._defaults:
            self._defaults[session] = str(session.catalog.currentDatabase())
        return self._defaults[session]

    def _known(self, session: SparkSession) -> SparkPins:
        assert self._files is not None
        if not self._is_recorded:
            return pin(session, self._files, "database", is_whole=False)
        found = read_record(self._files.record)
        if found is None:
            raise FilesChanged("tables: not recorded", is_recorded=False)
        if found.keys() != self._files.tables.keys():
            raise FilesChanged("tables: the policy has other tables than were recorded", is_recorded=True)
        return found


@dataclass(frozen=True)
class OpenTables:
    """Tables that are open in sessions: what they are for a plan, and whether they are still what was recorded.

    `views`: through which statements read them; `seen`: when a look began that found them as they were recorded, in
    seconds of the monotonic clock. All by the names of the policy.
    """

    schema: LiveSchema
    pins: SparkPins
    views: Mapping[str, str] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)

    def unseen(self) -> list[str]:
        """Return the tables that nobody has looked at for a while."""
        since = time.monotonic() - _FRESH_SECONDS
        return [name for name in self.pins if self.seen.get(name, since) <= since]

    def read_by(self, sql: str) -> list[str]:
        """Return the tables that a statement reads: each by its view's name; all, where it has none."""
        return [name for name, view in self.views.items() if _quoted(view) in sql] or [*self.pins]

    def check(self, session: SparkSession, names: Collection[str] | None = None) -> None:
        """Raise FilesChanged unless tables are what they were when they were recorded; `names`: which, None: all.

        Raises what Spark raises.
        """
        began = time.monotonic()
        asked = {name: self.pins[name] for name in (self.pins if names is None else names)}
        paths = {one.path for table in asked.values() for one in table.files}
        found = {one.path: one for one in _there(session, [*paths])} if paths else {}
        for name, table in asked.items():
            for one in table.files:
                if found.get(one.path) != one:
                    raise self._changed(f"{one.path} of {name} is not what was recorded")
            if table.kind == "delta" and _identity(session, table.table) != table.identity:
                raise self._changed(f"{name} is another table than was recorded")
            self.seen[name] = began

    def _changed(self, what: str) -> FilesChanged:
        """Return what to raise; from now on each statement is preceded by a look, until one finds nothing."""
        self.seen.clear()
        return FilesChanged(f"tables: {what}", is_recorded=True)


def view_name(path: tuple[str, str], pinned: PinnedTable) -> str:
    """Return the name of the view through which statements read a table: its own, and its version."""
    return f"{'.'.join(path)}@{pinned.version or version_of(pinned)[:12]}"


def version_of(pinned: PinnedTable) -> str:
    """Return what a table is as one hash: other files, or another version, have another."""
    text = json.dumps(asdict(pinned.unlooked()), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _live(default: str, files: FileSources, pins: SparkPins) -> LiveSchema:
    """Return the schema of tables that are pinned: none of their keys is enforced.

    What is asserted is shown as asserted: who answers asks the ledger whether it holds in this version.
    """
    tables = []
    for name, one in pins.items():
        path, asserted = _path_of(name, default), files.keys.get(name, ())
        columns = tuple(
            replace(column, not_null=column.name in asserted) for column in _live_columns(one.fields)
        )
        tables.append(
            LiveTable(
                path, columns, version=version_of(one), asserted=asserted, read_as=view_name(path, one),
                parts=frozenset(file.path for file in one.files) | ({one.identity} - {""}),
            )
        )  # fmt: skip
    return LiveSchema(default, tuple(sorted(tables, key=lambda table: table.path)), dialect="spark")


def _path_of(name: str, default: str) -> tuple[str, str]:
    schema, dot, table = name.partition(".")
    return (schema, table) if dot else (default, name)


# --- what tables are now ------------------------------------------------------------------------------------


def pin(
    session: SparkSession,
    files: FileSources,
    where: str,
    *,
    is_whole: bool,
    known: SparkPins = MappingProxyType({}),
) -> dict[str, PinnedTable]:
    """Return what each table is now. `where`: the policy's name; `is_whole`: every row is read, and has to be readable.

    `known`: what tables were, whose files are not looked into for their columns. A table that is not in the catalog is
    left out, unless `is_whole`. Raises PolicyError: files are missing or have
    not one schema, a table has no version that can be read again; what Spark raises otherwise.
    """
    default = str(session.catalog.currentDatabase())
    found = {}
    for name, patterns in files.tables.items():
        place = f"{where}: tables.{name}"
        path = _path_of(name, default)
        if not patterns and not session.catalog.tableExists(_quoted(*path)):
            if is_whole:
                raise PolicyError(f'{place}: the catalog has no table "{name}"')
            continue
        columns = known[name].schema if name in known else ""
        if patterns:
            one = _pin_files(session, f"{place}.source", patterns, columns)
        else:
            one = _pin_table(session, place, path)
            if is_whole and one.kind == "parquet":
                _require_named_folders(session, place, path, one)
        found[name] = _looked_at(session, place, one) if is_whole else one
    return found


def pin_verified(session: SparkSession, files: FileSources, where: str) -> dict[str, PinnedTable]:
    """Return what the tables are, once every value of every row has been read. An owner's act.

    Raises PolicyError, as `pin`, and where something changed meanwhile; what Spark raises.
    """
    found = pin(session, files, where, is_whole=True)
    try:
        OpenTables(LiveSchema("", ()), found).check(session)
    except FilesChanged:
        problem = PolicyError(
            f"{where}: files changed while they were read; wait until they are written, and try again"
        )
    else:
        return found
    raise problem


def compare(
    session: SparkSession, files: FileSources, where: str, recorded: SparkPins, *, is_whole: bool
) -> list[Finding]:
    """Return what is otherwise than it was recorded; `is_whole`: every row is read.

    Raises PolicyError, as `pin`; what Spark raises.
    """
    said: list[Finding] = []
    for name, one in pin(session, files, where, is_whole=False, known=recorded).items():
        known = recorded.get(name)
        if known is None:
            continue
        wrong = _difference(name, known, one)
        if wrong is not None:
            said.append(wrong)
        if is_whole and (wrong is None or wrong.severity is Severity.WARNING):
            said += _other_rows(session, f"{where}: tables.{name}", name, known)
    return said


def _other_rows(session: SparkSession, place: str, name: str, known: PinnedTable) -> Iterator[Finding]:
    looked = _looked_at(session, place, known)
    if (looked.rows, looked.content) != (known.rows, known.content):
        said = f"the rows of {name} are not what was recorded, though its files look the same"
        yield Finding(Severity.ERROR, said, _REFRESH)


def _difference(name: str, known: PinnedTable, one: PinnedTable) -> Finding | None:
    """Return what is otherwise; a warning where what was recorded is still there, and read."""
    if known.kind != one.kind or known.identity != one.identity:
        said = f"{name} is another table than was recorded, and nothing is answered"
        return Finding(Severity.ERROR, said, _REFRESH)
    now, then = ({file.path: file for file in table.files} for table in (one, known))
    if changed := sorted(path for path, file in then.items() if now.get(path) != file):
        said = f'"{changed[0]}" of {name} is not what was recorded, and nothing is answered'
        return Finding(Severity.ERROR, said, _REFRESH)
    if more := sorted(now.keys() - then.keys()):
        return Finding(Severity.WARNING, f'"{more[0]}" of {name} is not recorded, and is not read', _REFRESH)
    if one.version != known.version:
        said = f"{name} has a newer version, {one.version}, and {known.version} is read"
        return Finding(Severity.WARNING, said, _REFRESH)
    return None


def _pin_files(session: SparkSession, place: str, patterns: Sequence[str], columns: str) -> PinnedTable:
    found: list[SparkFile] = []
    for pattern in patterns:
        files = _there(session, [pattern])
        if not files:
            raise PolicyError(f'{place}: the server sees no file that is named like "{pattern}"')
        found += files
    files = tuple(sorted(set(found), key=lambda one: one.path))
    return PinnedTable("parquet", columns or _schema_of(session, place, files), files)


def _there(session: SparkSession, paths: Sequence[str]) -> tuple[SparkFile, ...]:
    """Return what the server's storage says of files, nothing where one of them is missing."""
    try:
        return _listed(session, paths)
    except PySparkException as error:
        if error.getCondition() != _MISSING:
            raise
    return ()


def _schema_of(session: SparkSession, place: str, files: Sequence[SparkFile]) -> str:
    """Return the columns that all files have. Raises PolicyError: not one and the same type in all of them."""
    for one in files:
        if _PATTERN.intersection(one.path) or not one.path.isprintable():
            raise PolicyError(f'{place}: "{one.path}" has a name that is a pattern too; rename it')
    options = {**_READ_AS_IT_IS, "mergeSchema": "true", "recursiveFileLookup": "true"}
    try:
        return str(session.read.options(**options).parquet(*(one.path for one in files)).schema.json())
    except PySparkException as error:
        condition = error.getCondition() or type(error).__name__
    raise PolicyError(
        f"{place}: the files' columns cannot be read as those of one table ({condition}); write them as Parquet, with "
        "columns of the same names and types"
    )


def _pin_table(session: SparkSession, place: str, path: tuple[str, str]) -> PinnedTable:
    details = _read_details(session, path)
    if details.unusable is not None:
        raise PolicyError(f"{place}: {details.unusable}")
    table = _quoted(*path)
    if details.provider != "parquet":
        return _pin_version(session, place, table)
    session.catalog.refreshTable(table)
    frame = session.table(table)
    names = [_plain(one) for one in frame.inputFiles()]
    if not names:
        raise PolicyError(f"{place}: has no files yet; load it, and try again")
    files = _listed(session, names)
    base = details.location if any("=" in one.path.removeprefix(details.location) for one in files) else ""
    if base and not all(one.path.startswith(f"{base}/") for one in files):
        raise PolicyError(f"{place}: has partitions outside of {base}; write the table anew")
    return PinnedTable("parquet", str(frame.schema.json()), files, base)


def _require_named_folders(
    session: SparkSession, place: str, path: tuple[str, str], pinned: PinnedTable
) -> None:
    """Raise PolicyError where the catalog keeps a partition in a folder that its values do not name.

    What is pinned has the values that folders name; the catalog may have any folder stand for any.
    """
    table = _quoted(*path)
    by = [_quoted(one.name) for one in session.catalog.listColumns(table) if one.isPartition]
    if not by:
        return
    known, read = (
        frame.selectExpr("_metadata.file_path", *by).distinct()
        for frame in (session.table(table), _frame(session, pinned))
    )
    if known.exceptAll(read).limit(1).collect():
        raise PolicyError(
            f"{place}: has partitions in folders that are not named by their values; write the table anew"
        )


def _pin_version(session: SparkSession, place: str, table: str) -> PinnedTable:
    ((version,),) = session.sql(f"SELECT max(version) FROM (DESCRIBE HISTORY {table})").collect()
    if version is None:
        raise PolicyError(f"{place}: has no version yet; load it, and try again")
    known = PinnedTable(
        "delta", "", table=table, version=str(int(version)), identity=_identity(session, table)
    )
    return replace(known, schema=str(_frame(session, known).schema.json()))


def _identity(session: SparkSession, table: str) -> str:
    """Return what Delta's table is beside its name, which another one could get."""
    return str(session.sql(f"DESCRIBE DETAIL {table}").collect()[0]["id"])


def _listed(session: SparkSession, paths: Sequence[str]) -> tuple[SparkFile, ...]:
    """Return what the server's storage says of files: their content is not read. Raises what Spark raises."""
    frame = session.read.format("binaryFile").option("recursiveFileLookup", "true").load(list(paths))
    shown: Any = frame.selectExpr(*_FILE)
    # `collect` asks for a setting, too
    found, *_ = session.client.to_table(shown._plan.to_proto(session.client), {})
    rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
    return tuple(sorted((SparkFile(*row) for row in rows), key=lambda one: one.path))


def _plain(url: str) -> str:
    """Return a file's name out of the URL that Spark gives for one."""
    scheme, _, rest = unquote(url).partition(":")
    return f"{scheme}:{rest.removeprefix('//')}" if scheme == "file" else f"{scheme}:{rest}"


def _frame(session: SparkSession, pinned: PinnedTable) -> DataFrame:
    """Return a table's rows: of exactly the files, or of the version, that are pinned."""
    if pinned.kind != "parquet":
        return session.sql(f"SELECT * FROM {pinned.table} VERSION AS OF {int(pinned.version)}")
    place = {"basePath": pinned.base} if pinned.base else {"recursiveFileLookup": "true"}
    reader = session.read.schema(pinned.fields).options(**_READ_AS_IT_IS, **place)
    return reader.parquet(*(one.path for one in pinned.files))


def _malformed(field: StructField) -> str:
    """Return the test that a value is none of its type, which Spark's reader lets pass; "" where none can be.

    A decimal is kept in more bits than its digits need, and no writer has to look at what else is in them.
    """
    type_ = read_type(field.dataType.simpleString())
    if type_ == types.TEXT:
        return f"NOT is_valid_utf8({_quoted(field.name)})"
    if type_.kind is Kind.NUMERIC:
        assert type_.precision is not None
        scale = type_.scale or 0
        most = f"{'9' * (type_.precision - scale) or '0'}{'.' if scale else ''}{'9' * scale}"
        return f"{_quoted(field.name)} NOT BETWEEN -{most} AND {most}"
    return ""


def _looked_at(session: SparkSession, place: str, pinned: PinnedTable) -> PinnedTable:
    """Return a table with what its rows are; each of its values is read. Raises PolicyError: some value cannot be."""
    fields = pinned.fields.fields
    hashed = [
        f"{_quoted(one.name)} IS NULL" if _NO_HASH.search(one.dataType.simpleString()) else _quoted(one.name)
        for one in fields
    ]
    wrong = " OR ".join(filter(None, map(_malformed, fields))) or "false"
    try:
        row = (
            _frame(session, pinned)
            .selectExpr(
                "COUNT(*)",
                f"COALESCE(SUM(CAST(xxhash64({', '.join(hashed)}) AS DECIMAL(38, 0))), 0)",
                f"COUNT(CASE WHEN {wrong} THEN 1 END)",
            )
            .collect()[0]
        )
    except PySparkException as error:
        condition = error.getCondition() or type(error).__name__
    else:
        if row[2]:
            raise PolicyError(
                f"{place}: holds text that is no UTF-8, or a decimal with more digits than its type; write it anew"
            )
        return replace(pinned, rows=int(row[0]), content=str(row[1]))
    raise PolicyError(f"{place}: cannot be read to its end ({condition}); write it anew")


# --- the record ---------------------------------------------------------------------------------------------


def read_record(record: Path) -> dict[str, PinnedTable] | None:
    """Return what was recorded; None if nothing was. Raises PolicyError: it cannot be read."""
    try:
        content = read_json(record, _FORMAT)
        return None if content is None else {name: _from_json(one) for name, one in content["tables"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise PolicyError(
            f"{record.name}: is no record of tables on Spark; dpsql refresh writes it anew"
        ) from None


def _from_json(one: dict[str, Any]) -> PinnedTable:
    return PinnedTable(**{**one, "files": tuple(SparkFile(**file) for file in one["files"])})


def write_record(record: Path, pins: SparkPins) -> None:
    """Write what the tables are, all of it or nothing. Raises PolicyError: it cannot be written."""
    write_json(record, _FORMAT, {name: asdict(one) for name, one in pins.items()})
