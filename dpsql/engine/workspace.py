"""An analyst's workspace: what statements that write make of it, and what others see of it (soundness.md 3.21).

House rules:

1. Rows that are written were released, are public, or came from the analyst. A query in such a statement is planned,
   charged, drawn and told as it is alone; what is kept of it is the very answer.
2. What can be wrong with the table that is written is said before the query is charged.
3. The owner's database is never written: a name of the policy is nothing that is made, changed or dropped here.
4. Which columns of public tables rows rest on is kept with them. Who may no longer see one of those columns reads
   nothing of the rows (`sql.scope.find_table`).

Bars over a copy are those over what it is a copy of, by the laws of the noise that stands in it. With each table that a
query made, the query is kept as it was asked, and up to which ledger entry draws answered it. Who reads the table with
error bars has the query read once more from the store: nothing is measured, nothing charged. If that gives the very
rows of the table, the table stands for the query, and its noise is that of the stored draws.

House rules of copies:

1. A table stands for its query where the query gives its rows now, to the last of them, and never otherwise. What the
   analyst has written, and a table that is gone, are not taken for a query by their names.
2. One draw is one, in however many copies and releases it stands. What was read up to different entries may rest on
   common draws in ways that are not known: of those no bar is made of both.
3. What cannot be had is NULL, as a bar that took too long is. No answer has another number for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import EngineFailure, Position, Refusal
from ..plan.privacy.rows import Release, Select, fields_in, selects_in, written_in
from ..policy import Policy
from ..postprocess.bars import BAR_ENDS, has_laws, holds_kept_noise, kept_noise, noisy_columns, noisy_rows
from ..postprocess.public_parts import needed_below
from ..postprocess.workspace import Change, Contents, Origin, Store, StoredColumn, StoredObject, file_of
from ..records import dataclass
from ..relation.catalog import OWN_SCHEMA, TEMPORARY, Catalog, Column, Enforced, OwnRows, OwnView, Table, View
from ..relation.expressions import Expr, Literal, Scalar, fields_of, map_children, walk
from ..relation.relations import (
    Block,
    OutputColumn,
    Relation,
    Scan,
    Values,
    all_parts,
    called_in,
    expressions,
    projected,
    renamed,
)
from ..relation.types import TEXT, Kind, SqlType
from ..release.post_processing import Compiled, Patience, PublicRows, compile_public
from ..release.price import Cost
from ..release.run import ReleasedRows
from ..sql.bind_expression import cast
from ..sql.scope import find_own, own_names
from ..sql.statement import written_query
from ..sql.workspace import (
    LONGEST_NAME,
    AddColumn,
    CreateSchema,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Insert,
    Nothing,
    ObjectName,
    Rename,
    Truncate,
    WorkspaceStatement,
    WrittenQuery,
    value_of,
    values_of,
)
from .answer import Answer, AnswerColumn
from .settings import OWN, Settings

if TYPE_CHECKING:
    from .dataset import LazySnapshot, PreparedPlan
    from .spine import Spine

_Bound = tuple[Relation, list[Table | View | OwnView]]
"""What a query means, and what it names."""
_RESERVED = ("pg_", "information_schema")
_MOST_COMPARED = 100_000
"""Most rows of a table that is compared with what its query gives."""
_MOST_COLUMNS = 1_600
"""As in Postgres."""


def folder_of(policy: Policy) -> Path:
    """Return where the files of analysts' own tables are: beside the ledger, or beside its log on this machine."""
    is_file = policy.ledger.startswith("sqlite:")
    ledger = Path(policy.ledger.removeprefix("sqlite:")) if is_file else policy.ledger_log
    return ledger.with_name(f"{ledger.name}.workspaces")


@dataclass(frozen=True, slots=True)
class Kept:
    """A query whose rows are kept: `shape` makes of its relation what is stored; `has_bars`: bars are columns of it."""

    query: WrittenQuery
    shape: Callable[[Relation], Relation]
    has_bars: bool = False


@dataclass(frozen=True, slots=True)
class Asking:
    """What a session does with a query that is kept: says what it means and gives, answers it, and how it was asked."""

    bound: Callable[[WrittenQuery], _Bound]
    columns: Callable[[Kept], tuple[AnswerColumn, ...]]
    answer: Callable[[Kept], tuple[Answer, PreparedPlan]]
    origin: Callable[[Kept], Origin | None]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a query gave that is kept; `noisy`: of each column, whether noise moved it; `is_chosen`: and its rows.

    `ends`: of each column, whether it has the ends of bars. `has_laws`: whether laws may be known of all its noise.
    """

    rows: Sequence[tuple[Any, ...]]
    reads: frozenset[str]
    noisy: tuple[bool, ...]
    ends: tuple[bool, ...]
    is_chosen: bool
    has_laws: bool
    answer: Answer

    def onto(self, one: StoredObject) -> StoredObject:
        """Return a table as it is with these rows in it."""
        columns = tuple(
            replace(column, is_noisy=column.is_noisy or is_noisy, is_end=is_end)
            for column, is_noisy, is_end in zip(one.columns, self.noisy, self.ends, strict=True)
        )
        is_chosen = one.is_chosen or self.is_chosen
        return replace(one, columns=columns, reads=one.reads | self.reads, is_chosen=is_chosen)


class Workspace:
    """One session's own tables: those of its analyst, and temporary ones. One statement at a time.

    `in_block`: whether statements stand in a block that `commit` or `roll_back` ends; else each is by itself.
    """

    def __init__(self, policy: Policy, analyst: str) -> None:
        whose = f"{policy.dataset_id} {analyst}"
        most = policy.server.workspace_mib
        self._kept = Store(file_of(folder_of(policy), analyst), whose, most)
        self._temporary = Store(None, whose, most)
        self._most = most
        self.in_block = False

    # --- what is seen of it ----------------------------------------------------------------------------------

    def seen(self, catalog: Catalog) -> Catalog:
        """Return a catalog with what the analyst has made. Raises EngineFailure."""
        kept, temporary = self._kept.contents(), self._temporary.contents()
        if not kept.objects and not temporary.objects and not kept.spaces:
            return catalog
        own = {
            **{place: _table_of(one, is_temporary=False) for place, one in kept.objects.items()},
            **{place: _table_of(one, is_temporary=True) for place, one in temporary.objects.items()},
        }
        return replace(catalog, own=MappingProxyType(own), own_schemas=kept.spaces | {OWN_SCHEMA})

    def columns(self, own: OwnRows, sql: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
        """Return columns of an own table as arrays. Raises EngineFailure."""
        return self._store(is_temporary=own.is_temporary).read(sql)

    def origin_of(self, own: OwnRows) -> Origin | None:
        """Return the query of which an own table is a copy; None: of none, or with too many rows."""
        found = self._store(is_temporary=own.is_temporary).contents().objects.values()
        known = next((one for one in found if one.number == own.number), None)
        return None if known is None or known.rows > _MOST_COMPARED else known.origin

    # --- blocks ----------------------------------------------------------------------------------------------

    @property
    def has_block(self) -> bool:
        """Whether a block has begun to write, or has savepoints."""
        return self._kept.has_block or self._temporary.has_block

    def save(self) -> None:
        """Make a savepoint of the block at hand."""
        self._kept.save()
        self._temporary.save()

    def release(self, count: int) -> None:
        """Have only so many savepoints be left."""
        self._kept.release(count)
        self._temporary.release(count)

    def undo(self, count: int) -> None:
        """Have nothing be there of what was written since the last of so many savepoints, which stays.

        Raises EngineFailure, Refusal: the block has to be rolled back.
        """
        self._kept.undo(count)
        self._temporary.undo(count)

    def commit(self) -> None:
        """End a block: what it has written is there. Raises Refusal (40001), EngineFailure: nothing of it is."""
        try:
            self._kept.commit()
            self._temporary.commit()
        finally:
            self.roll_back()

    def roll_back(self) -> None:
        """End a block: nothing of what it has written is there."""
        self._kept.roll_back()
        self._temporary.roll_back()

    def cancel(self) -> None:
        """Stop what is read, from any thread."""
        self._kept.cancel()
        self._temporary.cancel()

    def clear_temporary(self) -> None:
        """Have all temporary tables be gone."""
        self._temporary.clear()

    def close(self) -> None:
        """Let it go; what no block has committed is not there."""
        self._kept.close()
        self._temporary.close()

    # --- what a statement writes -----------------------------------------------------------------------------

    def query_of(self, statement: WorkspaceStatement, catalog: Catalog) -> Kept | None:
        """Return the query of a statement whose rows are kept, and as what; None: it has none. Raises Refusal."""
        seen = self.seen(catalog)
        if isinstance(statement, CreateTable) and statement.query is not None:
            names = statement.names
            return Kept(statement.query, lambda relation: _named(relation, names), has_bars=True)
        if isinstance(statement, Insert) and statement.query is not None:
            table = self._writable(seen, statement.name)
            targets = _targets(table, statement.names)
            return Kept(statement.query, lambda relation: _coerced(relation, table, targets))
        if isinstance(statement, Delete) and statement.query is not None:
            self._writable(seen, statement.name)
            return Kept(statement.query, lambda relation: relation)
        return None

    def run(
        self, statement: WorkspaceStatement, catalog: Catalog, parameters: Sequence[object], asking: Asking
    ) -> Answer:
        """Carry a statement out. Raises Refusal, EngineFailure, and as `Session.execute` does."""
        if not self._most:
            raise _none_here()
        seen = self.seen(catalog)
        match statement:
            case CreateTable():
                return self._create(statement, seen, asking)
            case CreateView():
                return self._create_view(statement, seen, asking)
            case CreateSchema():
                return self._create_schema(statement, seen)
            case Drop():
                return self._drop(statement, seen)
            case Rename():
                return self._rename(statement, seen)
            case AddColumn():
                return self._add_column(statement, seen)
            case Insert():
                return self._insert(statement, seen, parameters, asking)
            case Delete():
                return self._delete(statement, seen, asking)
            case Truncate():
                tables = [self._writable(seen, name) for name in statement.names]
                with self._changing(tables) as stored:
                    for change, one in stored:
                        change.empty(one)
                return _done("TRUNCATE TABLE")
            case Nothing():
                if statement.name is not None:
                    self._found(seen, statement.name, "TABLE")
                return _done(statement.tag)

    def _create(self, statement: CreateTable, seen: Catalog, asking: Asking) -> Answer:
        space, name = self._target(seen, statement.name, is_temporary=statement.is_temporary)
        tag = "CREATE TABLE" if statement.query is None else "CREATE TABLE AS"
        if (space, name) in seen.own:
            if statement.may_exist:
                return _done(tag)
            raise _exists(statement.name)
        is_temporary = space == TEMPORARY
        kept = self.query_of(statement, seen)
        made = StoredObject(space, name, _of_columns(statement), drops=statement.drops)
        if kept is None:
            _check_names([one.name for one in made.columns])
            with self._store(is_temporary=is_temporary).change(in_block=self.in_block) as change:
                change.add(made)
            return _done(tag)
        given = asking.columns(kept)
        _check_names([one.name for one in given])
        _check_types(given)
        self._check_room(is_temporary=is_temporary)
        made = replace(made, columns=tuple(StoredColumn(one.name, _kept_type(one.type)) for one in given))
        if not statement.has_rows:
            with self._store(is_temporary=is_temporary).change(in_block=self.in_block) as change:
                change.add(made)
            return _done(tag)
        found = _given(*asking.answer(kept))
        made = found.onto(made)
        if found.has_laws and (made.is_chosen or any(one.is_noisy for one in made.columns)):
            made = replace(made, origin=asking.origin(kept))
        with self._store(is_temporary=is_temporary).change(in_block=self.in_block) as change:
            count = change.insert(change.add(made), found.rows)
        return _wrote(f"SELECT {count}", found.answer)

    def _insert(
        self, statement: Insert, seen: Catalog, parameters: Sequence[object], asking: Asking
    ) -> Answer:
        table = self._writable(seen, statement.name)
        kept = self.query_of(statement, seen)
        if kept is None:
            return self._insert_sent(statement, table, parameters)
        asking.columns(kept)
        self._check_room(is_temporary=_rows_of(table).is_temporary)
        found = _given(*asking.answer(kept))
        with self._changing([table]) as stored:
            for change, one in stored:
                whole = found.onto(one)
                if whole != one:
                    change.redefine(whole)
                count = change.insert(whole, found.rows)
        return _wrote(f"INSERT 0 {count}", found.answer)

    def _insert_sent(self, statement: Insert, table: Table, parameters: Sequence[object]) -> Answer:
        rows = self.sent(statement, table, parameters)
        with self._changing([table]) as ((change, one),):
            count = change.insert(one, rows)
        return _done(f"INSERT 0 {count}")

    def sent(self, statement: Insert, table: Table, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """Return rows that the analyst sends as those of a table. Raises Refusal."""
        assert statement.sent is not None
        targets = _targets(table, statement.names)
        width = statement.sent.width
        _check_width(width, targets, table, statement.name.position)
        targets = targets[:width]
        types = [table.columns[i].type for i in targets]
        whole = [None] * len(table.columns)
        found = []
        for row in values_of(statement.sent, types, parameters):
            placed: list[Any] = list(whole)
            for place, value in zip(targets, row, strict=True):
                placed[place] = value
            found.append(tuple(placed))
        return found

    def target(
        self, name: ObjectName, names: Sequence[str], catalog: Catalog
    ) -> tuple[Table, tuple[int, ...]]:
        """Return the own table that rows are copied into, and the places of their values. Raises Refusal."""
        if not self._most:
            raise _none_here()
        table = self._writable(self.seen(catalog), name)
        targets = _targets(table, names)
        self._check_room(is_temporary=_rows_of(table).is_temporary)
        return table, targets

    def copied(
        self,
        name: ObjectName,
        names: Sequence[str],
        rows: Sequence[Sequence[Any]],
        first: int,
        catalog: Catalog,
    ) -> None:
        """Write rows, of texts or of values that have types, into an own table.

        `first`: the number of the first, for who is told. Raises Refusal.
        """
        table, targets = self.target(name, names, catalog)
        columns = [table.columns[i] for i in targets]
        whole = [None] * len(table.columns)

        def read() -> Iterator[tuple[Any, ...]]:
            for number, row in enumerate(rows, first):
                if len(row) != len(targets):
                    raise Refusal(
                        f"line {number} has {len(row)} values for {len(targets)} columns", sqlstate="22P04",
                        hint=f"columns: {', '.join(column.name for column in columns)}",
                    )  # fmt: skip
                placed: list[Any] = list(whole)
                for place, column, given in zip(targets, columns, row, strict=True):
                    try:
                        placed[place] = None if given is None else value_of(given, column.type)
                    except Refusal as refusal:
                        refusal.message = f'line {number}, column "{column.name}": {refusal.message}'
                        raise
                yield tuple(placed)

        with self._changing([table]) as ((change, one),):
            change.insert(one, read())

    def parameters_of(
        self, statement: WorkspaceStatement, catalog: Catalog, awaited: Sequence[object]
    ) -> None:
        """Have parameters without a value meet the types of what they are sent for. Raises Refusal."""
        if isinstance(statement, Insert) and statement.sent is not None:
            self.sent(statement, self._writable(self.seen(catalog), statement.name), awaited)

    def _delete(self, statement: Delete, seen: Catalog, asking: Asking) -> Answer:
        """Keep the rows of which the condition is not true: they were all there, so nothing new is read of them."""
        table = self._writable(seen, statement.name)
        kept = self.query_of(statement, seen)
        with self._changing([table]) as stored:
            ((change, one),) = stored
            found = None if kept is None else _given(*asking.answer(kept))
            change.empty(one)
            if found is None:
                return _done(f"DELETE {one.rows}")
            whole = found.onto(one)
            if whole != one:
                change.redefine(whole)
            left = change.insert(replace(whole, rows=0, bytes=0), found.rows)
        return _wrote(f"DELETE {one.rows - left}", found.answer)

    def _create_view(self, statement: CreateView, seen: Catalog, asking: Asking) -> Answer:
        space, name = self._target(seen, statement.name, is_temporary=statement.is_temporary)
        known = seen.own.get((space, name))
        if known is not None and not (statement.replaces and isinstance(known, OwnView)):
            raise _exists(statement.name)
        found, read = asking.bound(statement.query)
        if known is not None and any(one.path == known.path for one in read):
            hint = "write its old text into the new one"
            raise _refused(statement.name, "42P19", f'the view "{name}" would read itself', hint)
        relation = _named(found, statement.names)
        _check_names([one.name for one in relation.columns])
        columns = tuple(StoredColumn(one.name, one.type) for one in relation.columns)
        text = statement.query.text.strip().removesuffix(";")
        made = StoredObject(space, name, columns, text=text, names=statement.names)
        store = self._store(is_temporary=space == TEMPORARY)
        with store.change(in_block=self.in_block) as change:
            if known is not None:
                change.drop(change.contents().objects[space, name])
            change.add(made)
        return _done("CREATE VIEW")

    def _create_schema(self, statement: CreateSchema, seen: Catalog) -> Answer:
        name = statement.name.name
        _check_database(seen, statement.name)
        owners = {one.lower() for one in seen.schemas}
        if name.lower() in owners or name in self._kept.contents().spaces | {OWN_SCHEMA, TEMPORARY}:
            if statement.may_exist:
                return _done("CREATE SCHEMA")
            hint = "CREATE SCHEMA IF NOT EXISTS"
            raise _refused(statement.name, "42P06", f'schema "{name}" already exists', hint)
        if name.startswith(_RESERVED):
            hint = "take another name"
            raise _refused(statement.name, "42501", f'the name "{name}" is the system\'s', hint)
        with self._kept.change(in_block=self.in_block) as change:
            change.add_space(name)
        return _done("CREATE SCHEMA")

    def _drop(self, statement: Drop, seen: Catalog) -> Answer:
        tag = f"DROP {statement.what}"
        if statement.what == "SCHEMA":
            for name in statement.names:
                self._drop_schema(name, statement, seen)
            return _done(tag)
        if statement.what == "INDEX":
            if not statement.may_lack:
                raise Refusal("own tables have no indexes", sqlstate="42P01", hint="DROP INDEX IF EXISTS")
            return _done(tag)
        found = [
            self._found(seen, name, statement.what, may_lack=statement.may_lack) for name in statement.names
        ]
        for table in found:
            if table is not None:
                store = self._store(is_temporary=table.path[0] == TEMPORARY)
                with store.change(in_block=self.in_block) as change:
                    change.drop(_object(change.contents(), table))
        return _done(tag)

    def _drop_schema(self, name: ObjectName, statement: Drop, seen: Catalog) -> None:
        _check_database(seen, name)
        contents = self._kept.contents()
        inside = [one for one in contents.objects.values() if one.space == name.name]
        if name.name not in contents.spaces and not (name.name == OWN_SCHEMA and inside):
            if statement.may_lack and name.name not in seen.schemas:
                return
            if name.name in seen.schemas:
                raise _owners(f'schema "{name.name}"', name.position)
            if name.name != OWN_SCHEMA:
                raise _no_schema(name.name, name.position)
        if inside and not statement.cascades:
            said = f'schema "{name.name}" still has {len(inside)} tables and views'
            raise _refused(name, "2BP01", said, "DROP SCHEMA … CASCADE")
        with self._kept.change(in_block=self.in_block) as change:
            for one in inside:
                change.drop(one)
            change.drop_space(name.name)

    def _rename(self, statement: Rename, seen: Catalog) -> Answer:
        tag = f"ALTER {statement.what}"
        what = "" if statement.what == "TABLE" else statement.what  # as in Postgres, a view too
        table = self._found(seen, statement.name, what, may_lack=statement.may_lack)
        if table is None:
            return _done(tag)
        store = self._store(is_temporary=table.path[0] == TEMPORARY)
        if statement.column:
            return self._rename_column(statement, table, store)
        space = table.path[0]
        name = replace(statement.name, name=statement.new)
        if space in (OWN_SCHEMA, TEMPORARY):
            _check_free(
                seen, replace(name, schema="" if not statement.name.schema else statement.name.schema)
            )
        if (space, statement.new) in seen.own:
            raise _exists(name)
        with store.change(in_block=self.in_block) as change:
            change.rename(_object(change.contents(), table), statement.new)
        return _done(tag)

    def _rename_column(self, statement: Rename, table: Table | OwnView, store: Store) -> Answer:
        names = [column.name for column in table.columns]
        if statement.column not in names:
            raise _no_column(statement.column, names, statement.name.position)
        place = names.index(statement.column)
        names[place] = statement.new
        _check_names(names)
        with store.change(in_block=self.in_block) as change:
            one = _object(change.contents(), table)
            columns = tuple(replace(c, name=n) for c, n in zip(one.columns, names, strict=True))
            change.redefine(replace(one, columns=columns, names=tuple(names) if one.is_view else ()))
        return _done(f"ALTER {statement.what}")

    def _add_column(self, statement: AddColumn, seen: Catalog) -> Answer:
        table = self._found(seen, statement.name, "TABLE", may_lack=statement.may_lack)
        if table is None:
            return _done("ALTER TABLE")
        names = [column.name for column in table.columns]
        if statement.column.name in names and statement.may_exist:
            return _done("ALTER TABLE")
        _check_names([*names, statement.column.name])
        added = StoredColumn(statement.column.name, statement.column.type)
        with self._changing([self._writable(seen, statement.name)]) as stored:
            for change, one in stored:
                change.redefine(replace(one, columns=(*one.columns, added)), added)
        return _done("ALTER TABLE")

    # --- names -----------------------------------------------------------------------------------------------

    def _target(self, seen: Catalog, name: ObjectName, *, is_temporary: bool) -> tuple[str, str]:
        """Return schema and name of what is made. Raises Refusal."""
        _check_database(seen, name)
        if is_temporary or name.schema == TEMPORARY:
            if name.schema not in ("", TEMPORARY):
                hint = f"CREATE TEMP TABLE {name.name}"
                raise _refused(name, "42601", "a temporary table has no schema", hint)
            _check_free(seen, replace(name, schema=""))
            return TEMPORARY, name.name
        space = name.schema or OWN_SCHEMA
        if space in seen.schemas:
            if not name.schema:
                said = f'the owner has a schema "{OWN_SCHEMA}": own tables need another'
                raise _refused(name, "42501", said, f"CREATE SCHEMA mine, then CREATE TABLE mine.{name.name}")
            raise _owners(f'schema "{space}"', name.position)
        if space != OWN_SCHEMA and space not in self._kept.contents().spaces:
            raise _no_schema(space, name.position)
        _check_free(seen, name)
        return space, name.name

    def _found(
        self, seen: Catalog, name: ObjectName, what: str, *, may_lack: bool = False
    ) -> Table | OwnView | None:
        """Return an own table or view of a name; None: there is none, and may be none. Raises Refusal."""
        _check_database(seen, name)
        found = (
            None if not name.schema and _policys(seen, name.name) else find_own(seen, name.schema, name.name)
        )
        if found is None:
            is_owners = _policys(seen, name.name) and (not name.schema or name.schema in seen.schemas)
            if is_owners:
                raise _owners(f'"{name.name}"', name.position)
            if may_lack:
                return None
            hint = f"your own: {own_names(seen)}"
            raise _refused(name, "42P01", f'there is no table "{name}" of your own', hint)
        if isinstance(found, OwnView) != (what == "VIEW") and what in ("TABLE", "VIEW"):
            shown = "view" if isinstance(found, OwnView) else "table"
            raise _refused(name, "42809", f'"{name}" is a {shown}', f"write {shown.upper()}")
        return found

    def _writable(self, seen: Catalog, name: ObjectName) -> Table:
        """Return the own table that rows are written to. Raises Refusal."""
        found = self._found(seen, name, "TABLE")
        assert isinstance(found, Table)
        return found

    # --- stores ----------------------------------------------------------------------------------------------

    def _store(self, *, is_temporary: bool) -> Store:
        return self._temporary if is_temporary else self._kept

    @contextmanager
    def _changing(self, tables: Sequence[Table]) -> Iterator[list[tuple[Any, StoredObject]]]:
        """Yield what changes each of some tables, all of them or none, and how they are stored."""
        wanted = {_rows_of(table).is_temporary for table in tables}
        if len(wanted) > 1:
            raise Refusal(
                "temporary tables are truncated by themselves", sqlstate="0A000", hint="in two statements"
            )
        with self._store(is_temporary=wanted.pop()).change(in_block=self.in_block) as change:
            contents = change.contents()
            yield [(change, _written(change, _object(contents, table))) for table in tables]

    def _check_room(self, *, is_temporary: bool) -> None:
        """Raise Refusal (53100) where nothing more can be kept: before a query is charged."""
        with self._store(is_temporary=is_temporary).change(in_block=self.in_block) as change:
            change.check_room()


# --- own tables as the catalog has them ---------------------------------------------------------------------


def _table_of(one: StoredObject, *, is_temporary: bool) -> Table | OwnView:
    columns = _columns_of(_Same(one.columns))
    path = (one.space, one.name)
    if one.text is not None:
        return OwnView(one.name, path, columns, one.text, one.names)
    noisy = tuple(column.is_noisy for column in one.columns)
    ends = tuple(column.is_end for column in one.columns)
    own = OwnRows(is_temporary, one.number, one.reads, noisy, one.is_chosen, one.origin is not None, ends)
    return Table(one.name, path, columns, None, own=own)


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """Columns that are told from others by which object they are: a store has one for what it reads again."""

    columns: tuple[StoredColumn, ...]

    def __hash__(self) -> int:
        return id(self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.columns is other.columns


@lru_cache(maxsize=2_048)
def _columns_of(of: _Same) -> tuple[Column, ...]:
    return tuple(Column(column.name, column.type, Enforced(column.not_null)) for column in of.columns)


def is_own(one: Table | View | OwnView) -> bool:
    """Say whether something is an analyst's own."""
    return isinstance(one, OwnView) or (isinstance(one, Table) and one.own is not None)


def _rows_of(table: Table) -> OwnRows:
    assert table.own is not None
    return table.own


def _object(contents: Contents, table: Table | OwnView) -> StoredObject:
    """Return how a table is stored now. Raises Refusal (42P01): it is gone."""
    space, name = table.path
    found = contents.objects.get((space, name))
    if found is None:
        raise Refusal(f'"{name}" is gone', sqlstate="42P01", hint="another session of yours has dropped it")
    return found


def _written(change: Change, one: StoredObject) -> StoredObject:
    """Return a table that is about to be written: it is the copy of no query any more."""
    if one.origin is None:
        return one
    whole = replace(one, origin=None)
    change.redefine(whole)
    return whole


def _policys(seen: Catalog, name: str) -> bool:
    """Say whether a name without a schema is one of the policy's."""
    return any(known.lower() == name.lower() for known in seen.shown)


def _check_free(seen: Catalog, name: ObjectName) -> None:
    """Raise Refusal (42P07) for a name without a schema that the policy has: it would never be found."""
    if not name.schema and _policys(seen, name.name):
        hint = f"take another name, or write the schema: {OWN_SCHEMA}.{name.name}"
        raise _refused(name, "42P07", f'"{name.name}" is a table of the policy', hint)


def _check_database(seen: Catalog, name: ObjectName) -> None:
    if name.database and name.database not in seen.databases:
        hint = "leave it out: schema.table, or table alone"
        raise _refused(name, "0A000", f'the database "{name.database}" is not this one', hint)


def _refused(name: ObjectName, code: str, said: str, hint: str) -> Refusal:
    """Return what is wrong with a name, where it stands."""
    return Refusal(said, sqlstate=code, position=name.position, hint=hint)


def _none_here() -> Refusal:
    return Refusal(
        "analysts have no tables of their own here", sqlstate="42501", hint="ask with SELECT",
        owner_hint="server.workspace_mib of the policy is 0",
    )  # fmt: skip


def _exists(name: ObjectName) -> Refusal:
    return _refused(name, "42P07", f'"{name}" already exists', "DROP it first, or take another name")


def _owners(what: str, position: Position | None) -> Refusal:
    return Refusal(
        f"{what} is the owner's, and is not written", sqlstate="42501", position=position,
        hint=f"own tables are made in the schema {OWN_SCHEMA}, or in one that CREATE SCHEMA makes",
    )  # fmt: skip


def _no_schema(name: str, position: Position | None) -> Refusal:
    return Refusal(
        f'there is no schema "{name}" of your own',
        sqlstate="3F000",
        position=position,
        hint=f"CREATE SCHEMA {name}",
    )


def _no_column(name: str, known: Sequence[str], position: Position | None) -> Refusal:
    return Refusal(
        f'column "{name}" does not exist',
        sqlstate="42703",
        position=position,
        hint=f"columns: {', '.join(known)}",
    )


def _check_names(names: Sequence[str]) -> None:
    if len(names) > _MOST_COLUMNS:
        raise Refusal(f"a table has {_MOST_COLUMNS} columns at most", sqlstate="54001", hint="make two of it")
    seen = set[str]()
    for name in names:
        if len(name) > LONGEST_NAME:
            raise Refusal(
                f"a name has 1 to {LONGEST_NAME} characters",
                sqlstate="42601",
                hint="give it a shorter name: AS n",
            )
        if name in seen:
            raise Refusal(
                f'column "{name}" is named twice',
                sqlstate="42701",
                hint="give each its own name: count(*) AS n",
            )
        seen.add(name)


def _check_types(columns: Sequence[AnswerColumn]) -> None:
    for column in columns:
        if column.type.kind in (Kind.INTERVAL, Kind.ARRAY, Kind.OPAQUE, Kind.TIME):
            raise Refusal(
                f'"{column.name}" is {column.type}, which is not kept in a table', sqlstate="0A000",
                hint="cast it to text, or take numbers out of it",
            )  # fmt: skip


def _kept_type(type_: SqlType) -> SqlType:
    return TEXT if type_.kind is Kind.NULL else type_


def _of_columns(statement: CreateTable) -> tuple[StoredColumn, ...]:
    return tuple(StoredColumn(one.name, one.type, one.not_null) for one in statement.columns)


# --- what is kept of a query --------------------------------------------------------------------------------


def _named(relation: Relation, names: Sequence[str]) -> Relation:
    """Return a relation whose first columns have other names. Raises Refusal (42601): there are more names."""
    if not names:
        return relation
    if len(names) > len(relation.columns):
        raise Refusal("there are more names than columns", sqlstate="42601", position=relation.position)
    return renamed(relation, [*names, *(one.name for one in relation.columns[len(names) :])])


def _targets(table: Table, names: Sequence[str]) -> tuple[int, ...]:
    """Return the places of the columns that are written. Raises Refusal."""
    known = [column.name for column in table.columns]
    for name in names:
        if name not in known:
            raise _no_column(name, known, None)
    _check_names(names)
    return tuple(map(known.index, names)) if names else tuple(range(len(known)))


def _coerced(relation: Relation, table: Table, targets: Sequence[int]) -> Relation:
    """Return a relation as the rows of a table: each value of its column's type, NULL for a column that none is of.

    Raises Refusal: 42601 for another number of columns, 42804 and 22023 for values of another type.
    """
    width = len(relation.columns)
    _check_width(width, targets, table, relation.position)
    places = {target: place for place, target in enumerate(targets[:width])}
    types = [column.type for column in table.columns]
    names = [column.name for column in table.columns]
    if isinstance(relation, Values):
        rows = tuple(
            tuple(
                _literal(row[places[i]], type_) if i in places else Literal(type_, None)
                for i, type_ in enumerate(types)
            )
            for row in relation.rows
        )
        outputs = tuple(OutputColumn(type_, name) for type_, name in zip(types, names, strict=True))
        return Values(rows, outputs, position=relation.position)
    row = relation.row
    exprs = [
        cast(row[places[i]], type_, relation.position) if i in places else Literal(type_, None)
        for i, type_ in enumerate(types)
    ]
    if list(row) == exprs:
        return relation
    return projected(relation, exprs, names, relation.position)


def _check_width(width: int, targets: Sequence[int], table: Table, position: Position | None) -> None:
    """Raise Refusal (42601) for another number of values than of columns; fewer may be given where none is named."""
    if width > len(targets) or (width < len(targets) and len(targets) < len(table.columns)):
        raise Refusal(
            f"there are {width} values for {len(targets)} columns", sqlstate="42601", position=position,
            hint=f"columns: {', '.join(table.columns[i].name for i in targets)}",
        )  # fmt: skip


def _literal(cell: Expr, type_: SqlType) -> Literal:
    found = cast(cell, type_, cell.position)
    if not isinstance(found, Literal):
        raise Refusal(
            f"{cell.type} is no value of type {type_}", sqlstate="42804", position=cell.position,
            hint="write INSERT … SELECT, with a CAST",
        )  # fmt: skip
    return found


def _given(answer: Answer, prepared: PreparedPlan) -> _Found:
    plans = {one.release: one for one in prepared.plan.releases}
    is_chosen = noisy_rows(prepared.plan.root, plans)
    ends = tuple(one.bar_of is not None for one in prepared.columns)
    is_told = has_laws(prepared.plan.root)
    return _Found(answer.rows, public_columns(prepared), _noisy(prepared), ends, is_chosen, is_told, answer)


def _noisy(prepared: PreparedPlan) -> tuple[bool, ...]:
    """Return for each column of an answer whether noise has moved it: bars are of what is noisy too."""
    root, plans = prepared.plan.root, {one.release: one for one in prepared.plan.releases}
    moved = iter(zip(noisy_columns(root, plans), kept_noise(root), strict=True))
    return tuple(one.bar_of is not None or any(next(moved)) for one in prepared.columns)


def _done(tag: str) -> Answer:
    return Answer((), [], tag, None)


def _wrote(tag: str, answer: Answer) -> Answer:
    return Answer((), [], tag, answer.receipt)


# --- which public columns an answer rests on ----------------------------------------------------------------


def public_columns(prepared: PreparedPlan) -> frozenset[str]:
    """Return the columns of public tables, and of views, that a statement's answer rests on, as `table.column`, and the
    tables, as `table.`.

    Of own tables: those that their rows rest on. Of a view that the policy shows: all of its columns.
    """
    plan = prepared.plan
    found = set[str]()
    for relation in (plan.root, *plan.intermediates):
        _read(relation, frozenset(range(len(relation.columns))), found)
    for release in plan.releases:
        _read_release(release.release, found)
    for view in prepared.found:
        if isinstance(view, View) and view.role != "private":
            found |= {f"{view.name}.{column.name}" for column in view.named}
    return frozenset(found)


def _read(node: Relation, wanted: frozenset[int], found: set[str]) -> None:
    if isinstance(node, Scan):
        _note(node.table, wanted, found)
    if isinstance(node, Release):
        _read_release(node, found)
        return
    for child, read in zip(node.reads, needed_below(node, wanted), strict=True):
        _read(child, read, found)
    alone = node.alone if isinstance(node, Block) else node
    for expr in expressions(alone):
        for part in walk(expr):
            if isinstance(part, Scalar):
                _read(part.relation, frozenset({0}), found)


def _note(table: Table, wanted: frozenset[int], found: set[str]) -> None:
    if table.own is not None:
        found |= table.own.reads
    elif table.unit is None and not table.is_hidden:
        found |= {f"{table.name}.{column.name}" for i, column in enumerate(table.columns) if i in wanted}
        found.add(f"{table.name}.")  # that it has rows, and how many


def _read_release(release: Release, found: set[str]) -> None:
    rows = release.rows
    for select in selects_in(rows):
        exprs: list[Expr] = [*written_in(select), *select.outputs]
        if select is rows:
            exprs += release.keys
            for call in release.aggregates:
                exprs += [*call.args, *(() if call.filter is None else (call.filter,))]
        _read_select(select, fields_of(*exprs), found)


def _read_select(select: Select, wanted: frozenset[int], found: set[str]) -> None:
    sources = fields_in(select.items)
    joined = [fields_of(*placed.item.on) for placed in sources]
    before = [
        frozenset(i for i in read if i < placed.start) for placed, read in zip(sources, joined, strict=True)
    ]
    wanted = wanted.union(*before)
    for placed, read in zip(sources, joined, strict=True):
        source = placed.item.source.uncut
        if source.table is not None:
            inside = frozenset(index - placed.start for index in wanted if index in placed.own)
            inside |= frozenset(index - placed.start for index in read if index >= placed.start)
            _note(source.table, inside, found)


# --- the laws of noise that stands in own tables ---------------------------------------------------------


LOST = "error bars of own tables are NULL here: the queries that made them do not tell all of their rows now"
_DEEPEST = 20
_ALONE = "alone"
"""What is read without what is stored: how it depends on that is not known."""
_PLAIN = (str, int, float, bool, type(None))


class _NoLaws(Exception):
    """A table does not stand for its query."""


@dataclass(frozen=True, slots=True)
class Above:
    """What is computed above releases, and these; `is_lost`: a table does not stand for its query, and has no bars."""

    compiled: Compiled
    rows: Sequence[ReleasedRows]
    is_lost: bool = False


def asked_as(settings: Settings, kept: Kept, parameters: Sequence[object], newest: int) -> Origin | None:
    """Return a query as it is kept with the table that it made; None: its constants are none that are kept.

    `newest`: the number of the ledger's last entry.
    """
    if any(type(value) not in _PLAIN for value in parameters):
        return None
    shown = {name: settings.show(name) for name in OWN}
    shown["dpsql.reuse"] = "on"
    if settings.edition is None:
        shown["dpsql.edition"] = str(newest)
    return Origin(kept.query.text, tuple(parameters), tuple(shown.items()), settings.draws_ends)  # type: ignore[arg-type]


def with_laws(
    spine: Spine,
    prepared: PreparedPlan,
    rows: Sequence[ReleasedRows],
    snapshot: LazySnapshot,
    public: PublicRows,
) -> Above:
    """Return a statement over the queries that its own tables are copies of, where it asks for bars of their noise.

    Raises EngineFailure: cancelled.
    """
    plain = Above(prepared.compiled, rows)
    root = spine.barred_root(prepared.plan)
    if not holds_kept_noise(root) or not any(BAR_ENDS & called_in(one) for one in all_parts(root)):
        return plain
    types = [one.type for one in prepared.compiled.relation.columns]
    newest = spine.dataset.store.log(1)
    for edition in (*(str(one.seq) for one in newest), None):
        try:
            found = _Copies(spine, snapshot, public, edition).of(root, rows)
        except (_NoLaws, Refusal):
            continue
        except EngineFailure as failure:
            if failure.sqlstate == "57014":
                raise
            continue
        if [one.type for one in found.compiled.relation.columns] == types:
            return found
    return replace(plain, is_lost=True)


_Reading = str | None
"""Up to which ledger entry draws answered; None: all that are stored."""


@dataclass
class _Copies:
    """Puts queries in the place of the tables that they made. `edition`: in place of each query's own; None: that."""

    spine: Spine
    snapshot: LazySnapshot
    public: PublicRows
    edition: str | None
    told: dict[Release, tuple[ReleasedRows, _Reading]] = field(default_factory=dict)
    known: dict[tuple[bool, int], Relation] = field(default_factory=dict)
    depth: int = 0

    def of(self, root: Relation, rows: Sequence[ReleasedRows]) -> Above:
        """Return a relation over own tables as one over their queries, and the releases of both. Raises _NoLaws."""
        settings = self.spine.settings
        reading = self.edition if settings.edition is None else str(settings.edition)
        for one in rows:
            self._tell(one, reading if settings.reuse else _ALONE)
        compiled = self._compiled(self._over(root))
        told = list(self.told.values())
        for simulation in compiled.simulations:
            if len({told[number][1] for number in simulation.replicated}) > 1:
                raise _NoLaws
        return Above(compiled, [one for one, _ in told])

    def _compiled(self, root: Relation) -> Compiled:
        plans = [one.plan for one, _ in self.told.values()]
        return compile_public(root, plans, self.spine.dataset.dialect)

    def _tell(self, rows: ReleasedRows, reading: _Reading) -> None:
        """Take in a release. Raises _NoLaws: it was read otherwise as well."""
        known = self.told.get(rows.plan.release)
        if known is None:
            self.told[rows.plan.release] = rows, reading
        elif known[1] != reading or not _are_same(known[0], rows):
            raise _NoLaws

    def _over(self, node: Relation) -> Relation:
        """Return a relation with queries in the place of own tables that hold noise. Raises _NoLaws."""
        if isinstance(node, Scan) and holds_kept_noise(node):
            return self._query_of(node)
        if not holds_kept_noise(node):
            return node
        whole = node.over(*(self._over(below) for below in node.reads))
        return whole.map_expressions(self._within)

    def _within(self, expr: Expr) -> Expr:
        if isinstance(expr, Scalar):
            return replace(expr, relation=self._over(expr.relation))
        return map_children(expr, self._within)

    def _query_of(self, scan: Scan) -> Relation:
        """Return the query that a table is a copy of, which gives its rows. Raises _NoLaws."""
        own = scan.table.own
        assert own is not None
        place = own.is_temporary, own.number
        if place in self.known:
            return self.known[place]
        origin = self.spine.workspace.origin_of(own)
        if origin is None or self.depth > _DEEPEST:
            raise _NoLaws
        self.depth += 1
        with self._as_asked(origin) as reading:
            root = self._read_again(origin, reading)
            self._check_same(scan, root)
        self.depth -= 1
        if any(own.ends) and self.spine.settings.intervals != self._level_of(origin):
            raise _NoLaws  # its ends hold at another level
        self.known[place] = root
        return root

    def _level_of(self, origin: Origin) -> object:
        with self._as_asked(origin):
            return self.spine.settings.intervals

    @contextmanager
    def _as_asked(self, origin: Origin) -> Iterator[_Reading]:
        """Have the session's settings be those under which a query was asked. Raises Refusal: one is none any more."""
        spine, before = self.spine, self.spine.settings
        found, policy = Settings.of(spine.policy), spine.policy
        for name, value in origin.settings:
            found = found.set(name, self.edition or value if name == "dpsql.edition" else value, policy)
        spine.settings = replace(found, draws_ends=origin.draws_ends)
        try:
            yield self.edition or dict(origin.settings)["dpsql.edition"]
        finally:
            spine.settings = before

    def _read_again(self, origin: Origin, reading: _Reading) -> Relation:
        """Return what a query means over its releases, which are read from the store. Raises _NoLaws: not all are."""
        spine = self.spine
        query = written_query(WrittenQuery(origin.text))
        kept = Kept(WrittenQuery(origin.text), lambda relation: relation)
        prepared = spine.planned(query, tuple(origin.parameters), self.snapshot, kept)
        runner = spine.runner(prepared, query.text, self.public, Cost(), lambda: None)
        if not runner.from_store():
            other = spine.beside(prepared, runner)
            if other is None or not other[1].from_store():
                raise _NoLaws
            prepared, runner = other
        for one in spine.agreeing(runner, spine.dataset.store.epoch):
            self._tell(one, reading)
        return self._over(spine.barred_root(prepared.plan))

    def _check_same(self, scan: Scan, root: Relation) -> None:
        """Check that a query gives a table's rows, all of them and no other. Raises _NoLaws."""
        if [one.type.kind for one in root.columns] != [one.type.kind for one in scan.columns]:
            raise _NoLaws
        stored, given = self._rows(projected(scan, scan.row)), self._rows(root)
        if len(stored) != len(given) or sorted(map(repr, stored)) != sorted(map(repr, given)):
            raise _NoLaws

    def _rows(self, node: Relation) -> list[tuple[object, ...]]:
        compiled, spine = self._compiled(node), self.spine
        rows = [one for one, _ in self.told.values()]
        patience = Patience(spine.time_limit)
        found = spine.run_above(compiled, rows, self.public, patience)
        if patience.without_bars:
            raise _NoLaws
        return list(found)


def _are_same(one: ReleasedRows, other: ReleasedRows) -> bool:
    """Say whether two readings of a release are of the same draws: of the same numbers, under the same laws."""
    if one.groups is None or other.groups is None or one.groups.tuples() != other.groups.tuples():
        return False
    if one.measurements.keys() != other.measurements.keys() or one.plan.formulas != other.plan.formulas:
        return False
    pairs = [(one.measurements[index], other.measurements[index]) for index in one.measurements]
    return all(
        [law.text for law in a.laws] == [law.text for law in b.laws]
        and len(a.values) == len(b.values)
        and all(np.array_equal(x, y) for x, y in zip(a.values, b.values, strict=True))
        for a, b in pairs
    )
