"""How a table's rows find their owner: the declaration is held against what the engine enforces.

House rule: on an owner path only a constraint that the engine enforces is accepted, or a key that was verified on
the immutable version that is read (1.30). With two parents for one key a child row has two owners, and no SQL
repairs that (soundness.md 1.12). A key that was unique when somebody looked may not be so after the next insert.
Where the unit stands in the row there is no path, and nothing has to be unique (1.26): then all that counts is that
equal values are one unit, in all tables alike.

Which foreign keys may lead a table's rows to their owner. Which of them does is the policy's choice.

House rule: nothing here decides. Where two keys lead to owners, a row is about two people and dpsql protects
one of them; only the owner of the data can say which.

House rule of a column that numbers each person's rows (soundness.md 1.39): nothing is believed of it but that no two
rows of a person share one, and that they are integers: that the engine enforces, or it was verified in the very files
that are read (1.30). They may have holes, begin below 1 and end anywhere; who gives them, and in which order, is the
owner's. Of rows with a time it is no two of a person and a value of one more column; that this is the first day of the
row's period is not believed, but printed: a row with another day counts for nobody (1.40).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..errors import PolicyError
from ..relation.catalog import Also, Ground, References, RowNumber, Unit, quoted_names
from ..relation.types import Kind
from .live_schema import (
    KEY_TYPES,
    OPEN_NUMERIC,
    LiveColumn,
    LiveForeignKey,
    LiveSchema,
    LiveTable,
    comparable_type,
)
from .model import AlsoPolicy, Policy, TablePolicy, UnitPolicy
from .section import quote_text, suggest

# --- a column that numbers each person's rows -------------------------------------------------------------


_LOOSE = {
    "deferrable": "is DEFERRABLE, so that a transaction may have two rows of one number; make it NOT DEFERRABLE",
    "partial": "is of some rows alone (WHERE), and says nothing of the others; make it one of all rows",
    "expression": "is of an expression; make it one of the columns as they are",
    "invalid": "is not valid, so that rows of one number may be there; drop it and make it anew",
}
"""Why a unique index of the unit and the row number holds nothing."""


def row_number_of(
    where: str,
    policy: Policy,
    declared: TablePolicy,
    table: LiveTable,
    owner: Sequence[LiveColumn],
    *,
    holds_owner: bool,
) -> RowNumber | None:
    """Return what numbers the rows of each person, as the engine enforces it (soundness.md 1.39).

    `owner`: the unit's columns; `holds_owner`: they hold the person's own key. Raises PolicyError, with a sentence for
    each way in which a number would hold nothing.
    """
    if not declared.row_number:
        return None
    assert declared.unit is not None, "a number is of a person's rows"
    unit, shown = declared.unit.columns, quote_text(declared.name)
    *periods, name = declared.row_number
    columns = [_require_number(where, policy, declared, table, name)]
    columns += [_require_first_days(where, declared, table, period) for period in periods]
    wanted, names = {*unit, *periods, name}, quoted_names([*unit, *periods, name])
    if policy.files is not None and set(table.asserted) != wanted:
        key_ = ", ".join(map(quote_text, (*unit, *periods, name)))
        raise PolicyError(
            f"{where}: files enforce no key; write key = [{key_}] here, which dpsql refresh verifies over all rows "
            "before it records them"
        )
    for column in columns:
        if not column.not_null:
            raise PolicyError(
                f'{where}: "{column.name}" may be NULL, and any number of rows without one may be one person\'s; make '
                "it NOT NULL, and validate that"
            )
    if not holds_owner:
        raise PolicyError(
            f"{where}: {quoted_names(unit)} leads to a person over other tables; the person's own key has to stand in "
            f"the row: dpsql prepare {shown} makes such a copy"
        )
    if not all(one.not_null for one in owner):
        raise PolicyError(
            f"{where}: {quoted_names(unit)} may be NULL, and a key holds nothing of such rows; make it NOT NULL"
        )
    _require_key_of_numbers(where, policy, table, wanted, names)
    assert declared.max_rows is not None, "it is declared wherever rows are numbered"
    apart = (declared.max_rows_per_group or declared.max_rows) * (declared.max_groups or declared.max_rows)
    return RowNumber(name, min(declared.max_rows, apart), periods[0] if periods else None)


def _require_key_of_numbers(
    where: str, policy: Policy, table: LiveTable, wanted: set[str], names: str
) -> None:
    """Raise PolicyError where no key of exactly these columns is held; `names`: these, as they are told."""
    if policy.files is not None:
        return  # every statement asks whether the key was found to hold in the version that it reads
    assert table.proved is not None, "what proves nothing was refused"
    if any(set(key) == wanted for key in table.proved.keys):
        return
    for key, why in table.loose_keys:
        if set(key) == wanted:
            raise PolicyError(f"{where}: the key of {names} {_LOOSE[why]}")
    raise PolicyError(
        f"{where}: no PRIMARY KEY or UNIQUE constraint of {names} keeps two rows of one person from having one number; "
        "add one"
    )


def _column_of_numbers(where: str, declared: TablePolicy, table: LiveTable, name: str) -> LiveColumn:
    """Return a column that a key of numbers has, which is there, stored, and not the person's. Raises PolicyError."""
    assert declared.unit is not None, "a number is of a person's rows"
    column = table.column(name)
    if column is None:
        known, shown = suggest(name, [one.name for one in table.columns]), quote_text(declared.name)
        raise PolicyError(
            f'{where}: table "{table.path[1]}" has no column "{name}"{known}; dpsql prepare {shown} makes one'
        )
    if name in declared.unit.columns:
        raise PolicyError(f'{where}: "{name}" says whose a row is; name another column')
    if column.is_generated:
        raise PolicyError(f'{where}: "{name}" is computed when it is read; store it')
    return column


def _require_first_days(where: str, declared: TablePolicy, table: LiveTable, name: str) -> LiveColumn:
    """Return the column that says of which period a row is: stored, of dates. Raises PolicyError."""
    column = _column_of_numbers(where, declared, table, name)
    if column.engine_type.lower() != "date":
        raise PolicyError(
            f'{where}: "{name}" is {column.engine_type.lower()}, and says of which period a row is by its first day; '
            "make it a date"
        )
    return column


def _require_number(
    where: str, policy: Policy, declared: TablePolicy, table: LiveTable, name: str
) -> LiveColumn:
    """Return the column of numbers: stored, of integers, and nothing else is declared of it. Raises PolicyError."""
    if policy.is_on_spark:
        raise PolicyError(
            f"{where}: tables of a lake enforce no key, and their rows are bounded as they are counted; take it out"
        )
    column = _column_of_numbers(where, declared, table, name)
    if any(one.name == name for one in declared.columns):
        raise PolicyError(
            f'{where}: "{name}" numbers rows, and no statement reads it; take it out of the columns'
        )
    if not column.type.is_integer:
        raise PolicyError(
            f'{where}: "{name}" is {column.engine_type.lower()}, of which many values may lie between 1 and 2; make it '
            "an integer"
        )
    return column


# --- whose a row is ---------------------------------------------------------------------------------------


# Types whose equality is the equality of their text, so that a key of one privacy unit is one key. Left
# out: floats (NaN, -0.0), intervals ('1 month' = '30 days'), collated text, nested types, json.
_UNIT_KINDS = frozenset(
    {Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.TEXT, Kind.DATE, Kind.TIMESTAMP}
)
# Text that is compared as it stands: neither padded (character) nor a label (ENUM).
_PLAIN_TEXT = frozenset({"VARCHAR", "text", "character varying", "string"})
# Kinds that stand for several types of the engine: to compare two of those it converts, and may fail on a value.
_MANY_ENGINE_TYPES = frozenset({Kind.OPAQUE, Kind.NUMERIC, Kind.TIMESTAMP})


def find_live_table(where: str, name: str, live: LiveSchema) -> LiveTable:
    """Return the base table that a policy name means. Raises PolicyError: missing, or unusable."""
    table, origin = live.table(live.path_of(name)), live.called.get(name, name)
    if table is None:
        known = [live.own_name(table.path) for table in live.tables if table.unusable is None]
        raise PolicyError(f'{where}: the database has no table "{origin}"{suggest(origin, known)}')
    for written in (name, origin):
        if live.own_name(path := live.written_path(written)) != written:
            raise PolicyError(
                f'{where}: "{live.default_schema}" is the default schema; write {path[1]} alone'
            )
    if table.unusable is not None:
        raise PolicyError(f"{where}: {table.unusable}")
    return table


def build_unit(where: str, policy: Policy, declared: TablePolicy, live: LiveSchema) -> Unit | None:
    """Return the catalog's unit of a declared table, None if it is public. `where` is its key, for messages.

    Requires: the references lead to a table that says its unit itself (checked when the policy was read).
    Ensures: a referenced key is enforced, or verified, to be unique and never NULL, unless it is the unit itself; both
    sides of the reference have one type, and so have the units of all tables that say theirs. So with the units of all
    tables every hop of every path is verified: a parent is a private table itself. `is_unique` is only claimed where
    the column itself holds the owner. Raises PolicyError.
    """
    if declared.unit is None:
        return None
    table = find_live_table(where, declared.name, live)
    if declared.unit.is_row:
        if table.column("row") is not None:
            raise PolicyError(
                f'{where}.unit: "row" says that each row is a unit by itself, and table "{table.path[1]}" has a column '
                'of that name; write unit = ["row"] if you mean the column, else rename it'
            )
        _require_rows_once(f"{where}.unit", policy, declared, table, live)
        return Unit((), (), is_unique=True, is_not_null=True, is_row=True)
    names, references = declared.unit.columns, declared.unit.references
    columns = [_unit_column(f"{where}.unit", table, name) for name in names]
    is_held = False
    if references is None:
        _require_one_unit(f"{where}.unit", policy, declared, columns, live)
        holds_owner = True
    else:
        place = f"{where}.unit.references"
        parent = find_live_table(place, references[0], live)
        key = [_unit_column(place, parent, name) for name in references[1]]
        declared_parent = policy.tables.get(references[0])
        holds_owner = declared_parent is not None and declared_parent.unit == UnitPolicy(references[1])
        if not holds_owner:
            _require_key(place, parent, key, None if declared_parent is None else declared_parent.unit)
        _require_one_type(place, columns, key)
        pairs = LiveForeignKey(names, parent.path, references[1]).pairs
        is_held = any(one.table == parent.path and one.pairs == pairs for one in table.foreign_keys)
    return Unit(
        columns=names,
        types=tuple(map(comparable_type, columns)),
        references=references,
        is_unique=holds_owner and table.is_unique(*names),
        is_not_null=all(column.not_null for column in columns),
        is_held=is_held,
        max_rows=declared.max_rows,
        max_rows_per_group=declared.max_rows_per_group,
        max_groups=declared.max_groups,
        max_norm=declared.max_norm,
        also=tuple(_build_also(f"{where}.also", policy, names, one, table, live) for one in declared.also),
        row_number=row_number_of(
            f"{where}.row_number", policy, declared, table, columns, holds_owner=holds_owner
        ),
        range=_unit_range(f"{where}.unit_range", declared, columns, holds_owner=holds_owner),
    )


def _unit_range(
    where: str, declared: TablePolicy, columns: Sequence[LiveColumn], *, holds_owner: bool
) -> tuple[int, int] | None:
    """Return the ends between which a table's owners are read, None for all. Raises PolicyError."""
    if declared.unit_range is None:
        return None
    names = quoted_names([column.name for column in columns])
    if not holds_owner:
        raise PolicyError(
            f"{where}: {names} leads to a person over other tables, so no row holds the number; take it out"
        )
    if len(columns) > 1 or not columns[0].type.is_integer:
        raise PolicyError(f"{where}: is of one integer, and people are told apart by {names}; take it out")
    if any(one.name == columns[0].name and (one.bounds or one.values) for one in declared.columns):
        raise PolicyError(
            f"{where}: {names} has bounds or values too, to which it is cut before it is compared; take them out"
        )
    return declared.unit_range


def _build_also(
    where: str,
    policy: Policy,
    unit: tuple[str, ...],
    declared: AlsoPolicy,
    table: LiveTable,
    live: LiveSchema,
) -> Also:
    """Return whom a table's rows point at besides. `unit`: the columns that say whose they are.

    Ensures: what is pointed at is a private table's key, that the engine holds unique and not NULL. Raises PolicyError.
    """
    columns = [_unit_column(where, table, name, "point at a person") for name in declared.columns]
    if shared := set(unit) & set(declared.columns):
        raise PolicyError(f"{where}: {quoted_names(sorted(shared))} says whose a row is already; take it out")
    name, key = declared.references
    place = f"{where}.references"
    parent = policy.tables.get(name)
    if parent is None:
        raise PolicyError(f'{place}: no table "{name}" is declared{suggest(name, list(policy.tables))}')
    if parent.unit is None or parent.unit.is_row:
        raise PolicyError(
            f'{place}: nobody\'s rows are in "{name}" by a key; name a table that says whose its rows are'
        )
    live_parent = find_live_table(place, name, live)
    others = [_unit_column(place, live_parent, one) for one in key]
    _require_key(place, live_parent, others, parent.unit)
    _require_one_type(place, columns, others)
    return Also(
        declared.columns, tuple(map(comparable_type, columns)), declared.references, declared.max_rows
    )


def _require_rows_once(
    where: str, policy: Policy, declared: TablePolicy, table: LiveTable, live: LiveSchema
) -> None:
    """Hold a table whose rows are units by themselves against those before it: a row in two of them would be two units,
    and count twice where these are put together (soundness.md 1.33). Raises PolicyError."""
    for other in policy.tables.values():
        if other.name == declared.name:
            return
        first = live.table(live.path_of(other.name)) if other.unit is not None and other.unit.is_row else None
        if first is None:
            continue
        if table.parts & first.parts:
            raise PolicyError(
                f"{where}: some of its rows are read from what {other.name} is read from, where each row is a unit as "
                "well; have each row in one table"
            )
        if (table.is_partition and (first.is_partitioned or first.is_partition)) or (
            table.is_partitioned and first.is_partition
        ):
            raise PolicyError(
                f"{where}: rows of a partition are rows of the whole table too, and {other.name} may have them, where "
                "each row is a unit as well; declare the whole table alone"
            )


def unit_line(columns: Sequence[str], references: References) -> str:
    """Return the policy's line for a table whose owner is found through a parent's key."""
    parent, keys = references
    shown = [quoted_key(columns), quoted_key([f"{parent}.{key}" for key in keys])]
    return f"unit = {{ column = {shown[0]}, references = {shown[1]} }}"


def whose_of(policy: Policy, name: str) -> tuple[Ground, ...]:
    """Return how the policy says whose rows a table has, and those on the way to its owner; () of a public one.

    It is what a charge protected: by another one the same rows are other people's (soundness.md 1.26). Tables are told
    by the names that the database has for them: under another name in the policy they are the same rows.
    """
    found: list[Ground] = []
    declared: TablePolicy | None = policy.tables[name]
    while declared is not None and declared.unit is not None:
        unit = declared.unit
        line = f"unit = {quote_text('row') if unit.is_row else quoted_key(unit.columns)}"
        if unit.references is not None:
            parent, key = unit.references
            line = unit_line(unit.columns, (policy.origin(parent), key))
        found.append((policy.origin(declared.name), line))
        declared = None if unit.references is None else policy.tables.get(unit.references[0])
    return tuple(found)


def quoted_key(names: Sequence[str]) -> str:
    """Return a key's columns as the policy has them: one text, or a list."""
    quoted = [quote_text(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"


def _require_one_type(place: str, columns: Sequence[LiveColumn], key: Sequence[LiveColumn]) -> None:
    """Raise PolicyError unless each column is of the very type of the one that it points at."""
    for column, other in zip(columns, key, strict=True):
        is_alike = other.type.kind not in _MANY_ENGINE_TYPES or column.engine_type == other.engine_type
        if column.type != other.type or not is_alike:
            names = _both_types(column, other)
            raise PolicyError(
                f'{place}: "{column.name}" is {names[0]} and "{other.name}" is {names[1]}; '
                "give both columns one type"
            )


def _require_one_unit(
    where: str, policy: Policy, declared: TablePolicy, columns: Sequence[LiveColumn], live: LiveSchema
) -> None:
    """Hold the unit of a table that says it itself against those of the tables before it: all are one person's.

    Raises PolicyError: a value could not be compared, or could well be another person's.
    """
    table, own = find_live_table(where, declared.name, live), [column.name for column in columns]
    _refuse_another_owners_key(where, policy, table, own, live)
    for other in policy.tables.values():
        if other.name == declared.name:
            return
        if other.unit is None or other.unit.references is not None or other.unit.is_row:
            continue
        first = live.table(live.path_of(other.name))
        others = other.unit.columns
        known = [] if first is None else [one for name in others if (one := first.column(name)) is not None]
        if first is None or len(known) < len(others):
            continue  # an error of its own
        if len(known) != len(own):
            raise PolicyError(
                f"{where}: is {quoted_names(own)}, and {quoted_names(others)} in {other.name}; tables share the unit "
                "by its values, so name as many columns, in one order"
            )
        for column, one in zip(columns, known, strict=True):
            if shared_type(one) != shared_type(column):
                names = _both_types(column, one)
                raise PolicyError(
                    f'{where}: "{column.name}" is {names[0]} and "{one.name}" of {other.name} is {names[1]}; '
                    "tables share the unit by its values, so give both columns one type"
                )
        if table.is_unique(*own) and first.is_unique(*others):
            raise PolicyError(
                f"{where}: {quoted_names(own)} is a key of this table and {quoted_names(others)} one of {other.name}, "
                "so that equal values may well be two people; if they are one person's, write "
                f"{unit_line(own, (other.name, others))}; if they are two kinds of people, one "
                "kind is protected: leave the other's table out, or number all people in one column"
            )


def _refuse_another_owners_key(
    where: str, policy: Policy, table: LiveTable, columns: Sequence[str], live: LiveSchema
) -> None:
    """Refuse a unit that a foreign key shows to be a key of something else, which has an owner. Raises PolicyError."""
    for key in table.foreign_keys:
        name = live.name_of(key.table)
        parent = policy.tables.get(name)
        if key.pairs.keys() != set(columns) or parent is None or parent.unit is None:
            continue
        referenced = tuple(key.pairs[column] for column in columns)
        if parent.unit != UnitPolicy(referenced):
            points = "points" if len(columns) == 1 else "together point"
            raise PolicyError(
                f"{where}: {quoted_names(columns)} {points} at a row of {name}, whose owner stands there; write "
                f"{unit_line(columns, (name, referenced))}"
            )


def shared_type(column: LiveColumn) -> str:
    """Return the type in which values of a unit are compared: equal there and nowhere else are they one person's."""
    if column.type.is_integer:
        return "integer"
    if column.type.kind is Kind.TEXT and column.engine_type in _PLAIN_TEXT:
        return "text"
    return column.engine_type


def can_identify_unit(column: LiveColumn) -> bool:
    """Say whether equal values of the column are one unit, to every query and every constraint alike."""
    is_opaque_key = column.type.kind is Kind.OPAQUE and column.engine_type in KEY_TYPES
    is_key = column.type.kind in _UNIT_KINDS or is_opaque_key
    has_scale = column.engine_type != OPEN_NUMERIC  # read at fewer decimals, two keys would be one
    return is_key and has_scale and column.is_bytewise and not (column.is_generated or column.refused)


def asserted_key(where: str, table: LiveTable) -> tuple[str, ...]:
    """Return the key that is asserted of a table, () for none. `where`: its key in the policy, for messages.

    Raises PolicyError: a column is not there, or equal values of it need not be one value.
    """
    for name in table.asserted:
        _unit_column(f"{where}.key", table, name, "be part of a key")
    return table.asserted


def enforced_keys(table: LiveTable, known: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """Return the column sets of PRIMARY KEY, UNIQUE and an asserted key that a plan may rely on, each once, so ordered.

    All columns are `known` ones, stored, and equal to a query exactly where they are equal to the constraint.
    """
    usable = {column.name for column in table.columns if column.name in known and _has_identity(column)}
    found = (table.primary_key, *table.unique, table.asserted)
    return tuple(dict.fromkeys(key for key in found if key and usable.issuperset(key)))


def _has_identity(column: LiveColumn) -> bool:
    return can_identify_unit(column) or (column.type.kind is Kind.BOOLEAN and not column.is_generated)


def _unit_column(where: str, table: LiveTable, name: str, purpose: str = "identify a unit") -> LiveColumn:
    column = table.column(name)
    if column is None:
        known = [column.name for column in table.columns]
        raise PolicyError(f'{where}: table "{table.path[1]}" has no column "{name}"{suggest(name, known)}')
    if not column.is_bytewise:
        raise PolicyError(
            f'{where}: "{name}" has a collation, under which keys that are spelled differently can be equal; '
            "remove the collation"
        )
    if not can_identify_unit(column):
        what = "a generated column" if column.is_generated else _type_name(column)
        if column.engine_type == OPEN_NUMERIC:
            what = "numeric without a scale"
        raise PolicyError(
            f'{where}: "{name}" is {what}, which cannot {purpose}; use a stored integer, text or uuid'
        )
    return column


_UNIQUE = {True: "is unique; if it is", False: "are unique together; if they are"}


def _require_key(where: str, table: LiveTable, key: Sequence[LiveColumn], unit: UnitPolicy | None) -> None:
    """Raise PolicyError unless columns are an enforced key; `unit`: how their table's own rows find their owner."""
    names = [column.name for column in key]
    if table.is_unique(*names) and all(column.not_null for column in key):
        return
    shown, is_one = quoted_names(names), len(names) == 1
    if unit is not None and unit.references is not None and set(unit.columns) == set(names):
        parent, keys = unit.references
        raise PolicyError(
            f'{where}: {shown} of "{table.path[1]}" is no key, it says whose a row is there; write '
            f"references = {quoted_key([f'{parent}.{column}' for column in keys])} here too"
        )
    if table.version:
        raise PolicyError(
            f'{where}: nothing says that {shown} of "{table.path[1]}" {_UNIQUE[is_one]}, write '
            f"key = [{', '.join(map(quote_text, names))}] at that table, which dpsql check --data then verifies; or "
            "write the person's number into the rows, as unit"
        )
    raise PolicyError(
        f'{where}: the database does not enforce that {shown} of "{table.path[1]}" {"is" if is_one else "are"} '
        f"unique{'' if is_one else ' together'}; add PRIMARY KEY ({', '.join(names)}), or UNIQUE and NOT NULL, or "
        "write the person's number into the rows, as unit"
    )


def _both_types(column: LiveColumn, other: LiveColumn) -> list[str]:
    names = [_type_name(column), _type_name(other)]
    return names if names[0] != names[1] else [column.engine_type.lower(), other.engine_type.lower()]


def _type_name(column: LiveColumn) -> str:
    return column.engine_type.lower() if column.type.kind is Kind.OPAQUE else str(column.type)


# --- which foreign keys may lead a table's rows to their owner. Which of them does is the policy's choice ---


NO_UNIT = (
    'has no unit; write unit = …, unit = "row" if each row is one person and nobody has two, or public = true if '
    "nobody's data is in it"
)


def possible_owners(
    table: LiveTable,
    roots: Collection[tuple[str, str]],
    tables: Sequence[LiveTable],
    chosen: Mapping[tuple[str, str], tuple[str, str]] | None = None,
) -> tuple[LiveForeignKey, ...]:
    """Return the foreign keys from which a way leads over `tables` to one of the roots, without passing `table` again.

    Each step of a way is columns that point at an enforced key of their own types. `chosen`: the parents of
    those tables whose unit is declared; their other foreign keys are no way.
    """
    chosen = chosen or {}
    parents = {
        other.path: {chosen[other.path]}
        if other.path in chosen
        else {key.table for key in other.foreign_keys if _can_own(other, key, tables)}
        for other in tables
        if other.path != table.path
    }
    reached = {*roots} - {table.path}
    while found := {path for path, ways in parents.items() if path not in reached and ways & reached}:
        reached |= found
    return tuple(key for key in table.foreign_keys if key.table in reached and _can_own(table, key, tables))


def _can_own(table: LiveTable, key: LiveForeignKey, tables: Sequence[LiveTable]) -> bool:
    parent = next((parent for parent in tables if parent.path == key.table), None)
    if parent is None or not parent.is_unique(*key.referenced):
        return False
    columns = [(table.column(own), parent.column(other)) for own, other in key.pairs.items()]
    return all(
        own is not None
        and other is not None
        and other.not_null
        and can_identify_unit(own)
        and own.engine_type == other.engine_type
        for own, other in columns
    )


def unit_text(key: LiveForeignKey, live: LiveSchema) -> str:
    """Return the policy's line that chooses a foreign key as the way to the owner."""
    return unit_line(key.columns, (live.name_of(key.table), key.referenced))


def without_unit(where: str, policy: Policy, name: str, live: LiveSchema) -> PolicyError:
    """Return the error for a declared table that has no unit and is not public: it names the possible owners."""
    if policy.files is not None:  # no foreign key leads anywhere
        return PolicyError(f"{where}: {NO_UNIT}")
    try:
        table = find_live_table(where, name, live)
    except PolicyError as error:
        return error
    public = {live.path_of(one.name) for one in policy.tables.values() if one.unit is None}
    chosen = {
        live.path_of(one.name): live.path_of(one.unit.references[0])
        for one in policy.tables.values()
        if one.unit is not None and one.unit.references is not None
    }
    tables = [one for one in live.tables if one.unusable is None and one.path not in public]
    roots = [
        live.path_of(one.name)
        for one in policy.tables.values()
        if one.unit is not None and one.unit.references is None and not one.unit.is_row
    ]
    keys = possible_owners(table, roots, tables, chosen)
    if not keys:
        return PolicyError(f"{where}: {NO_UNIT}")
    names = " and ".join(dict.fromkeys(quoted_names(key.columns) for key in keys))
    if len(keys) == 1:
        return PolicyError(
            f"{where}: has no unit, and {names} leads to an owner; write {unit_text(keys[0], live)}"
        )
    return PolicyError(
        f"{where}: has no unit, and {names} each lead to an owner, of whom only the one that you name is "
        f"protected; write {unit_text(keys[0], live)}, or the like with the other: see "
        "dpsql docs owner two people in a row"
    )


def is_own_way(key: LiveForeignKey, unit: UnitPolicy, policy: Policy, live: LiveSchema) -> bool:
    """Say whether a foreign key points at the very row through which the policy finds the owner, or of its own unit."""
    if unit.references is None:
        parent = policy.tables.get(live.name_of(key.table))
        if parent is None or key.pairs.keys() != set(unit.columns):
            return False
        return parent.unit == UnitPolicy(tuple(key.pairs[column] for column in unit.columns))
    if key.table != live.path_of(unit.references[0]):
        return False
    own = zip(unit.columns, unit.references[1], strict=True)
    return all(key.pairs.get(column) == referenced for column, referenced in own)


def private_behind(key: LiveForeignKey, policy: Policy, live: LiveSchema) -> str | None:
    """Return the first private table that a foreign key leads to, over tables that are not private."""
    pending, seen = [key.table], set[tuple[str, str]]()
    while pending:
        path = pending.pop(0)
        if path in seen:
            continue
        seen.add(path)
        name = live.name_of(path)
        declared = policy.tables.get(name)
        if name in policy.undecided or (declared is not None and declared.unit is not None):
            return name
        if table := live.table(path):
            pending += [further.table for further in table.foreign_keys]
    return None
