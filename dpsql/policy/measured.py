"""Policies for what the owner measures of a table: of the same people, under bounds of the measuring's own.

They declare no more than it takes to say whose a row is (and the column that is looked at), so that what is stored of
them is found again whatever else the owner changes.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace

from ..errors import PolicyError
from ..relation.catalog import References, norm_key
from .load_tables import MAX_CONTRIBUTION, read_bounds
from .model import Accounting, AlsoPolicy, Bound, ColumnPolicy, Policy, TablePolicy, UnitPolicy
from .section import Section, read_decimal, suggest


def find_table(policy: Policy, name: str) -> TablePolicy:
    """Return a declared table. Raises PolicyError: there is none of this name."""
    table = policy.tables.get(name)
    if table is None:
        raise PolicyError(f'{policy.source}: no table "{name}"{suggest(name, list(policy.tables))}')
    return table


def read_range(column: str, text: str) -> tuple[Bound, Bound]:
    """Return the outer range of a column that `text` writes as the policy would, without brackets: `0, 1000000`.

    Raises PolicyError.
    """
    try:
        content = tomllib.loads(f"bounds = [{text}\n]", parse_float=read_decimal)
    except tomllib.TOMLDecodeError:
        raise PolicyError(
            f'column "{column}": write its two ends, like 0,1000000 or 2020-01-01,2025-12-31'
        ) from None
    section = Section(f'column "{column}"', content)
    found = read_bounds(section)
    section.finish()
    assert found is not None, "the key is there"
    return found


def declared_column(policy: Policy, name: str, column: str, ends: tuple[Bound, Bound] | None) -> ColumnPolicy:
    """Return a table's column with bounds in which its ends are looked for: these, or else its declared ones.

    Raises PolicyError: there are neither, or they leave nothing to look for.
    """
    declared = next((one for one in policy.tables[name].columns if one.name == column), ColumnPolicy(column))
    bounds = ends or declared.bounds
    if bounds is None:
        raise PolicyError(
            f'column "{column}" has no bounds yet: say between which values to look, wide enough to be sure',
            hint=f"--column {column}=0,1000000",
        )
    if bounds[0] == bounds[1]:
        raise PolicyError(
            f'column "{column}": the two ends are the same, there is nothing to look for between them'
        )
    return replace(declared, bounds=bounds)


def path_to_owner(policy: Policy, name: str) -> tuple[TablePolicy, ...]:
    """Return the tables over which a table's rows find their owner, itself first; the last has the owner's key."""
    root = _unit_of(policy.tables[policy.root])
    path = [policy.tables[name]]
    while (way := _unit_of(path[-1]).references) is not None and way != (policy.root, root.columns):
        path.append(policy.tables[way[0]])
    return tuple(path)


def people_policy(policy: Policy, name: str, of: str | None = None) -> Policy:
    """Return the policy under which the people of a table are counted by their rows: any number of them.

    `of`: the column by whose values they are counted in place of rows.
    """
    path = path_to_owner(policy, name)
    columns = _linking(path)
    columns[name].update(() if of is None else (of,))
    tables = {policy.root: _bare(policy.tables[policy.root], set(), None)}
    for table in path:
        tables[table.name] = _bare(table, columns[table.name], MAX_CONTRIBUTION)
    return _of(policy, tables)


def declared_also(policy: Policy, name: str, columns: tuple[str, ...]) -> AlsoPolicy:
    """Return whom some columns of a table point at, as declared. Raises PolicyError: nobody."""
    table = policy.tables[name]
    found = next((one for one in table.also if one.columns == columns), None)
    if found is None:
        raise PolicyError(
            f'table "{name}" does not declare that {", ".join(columns)} points at a person',
            hint=f'write also = [{{ column = "…", references = "….…", max_rows = 100 }}] in [tables.{name}] first: '
            "what is measured is near the max_rows that stands there",
        )
    return found


def pointed_policy(policy: Policy, name: str, also: AlsoPolicy) -> Policy:
    """Return the policy under which a table's rows are counted with those that they point at (soundness.md 1.38)."""
    columns: dict[str, set[str]] = {policy.root: set()}
    for start, own in ((name, also.columns), also.references):
        for table, linking in _linking(path_to_owner(policy, start)).items():
            columns.setdefault(table, set()).update(linking)
        columns[start].update(own)
    tables = {one: _bare(policy.tables[one], columns[one], policy.tables[one].max_rows) for one in columns}
    tables[name] = replace(tables[name], also=(also,))
    return _of(policy, tables)


def require_squares(policy: Policy, name: str, column: str) -> None:
    """Hold that a table can have a norm by a column that it declares, or by periods of it. Raises PolicyError."""
    table = policy.tables[name]
    if policy.privacy.accounting is not Accounting.ZCDP:
        raise PolicyError(
            'max_norm bounds squares, which add up under privacy.accounting = "zcdp" alone',
            hint=f"max_rows and max_groups are what bounds a person here: dpsql bounds {name} --groups {column}",
        )
    if table.max_rows is None:
        raise PolicyError(f'table "{name}" declares no max_rows, which max_norm tightens; declare that first')
    if not any(one.name == norm_key(column)[1] for one in table.columns):
        raise PolicyError(f'table "{name}" declares no column "{norm_key(column)[1]}"')


def norms_policy(policy: Policy, name: str, norms: tuple[tuple[str, int], ...]) -> Policy:
    """Return the policy under which a table's rows are counted with these norms (soundness.md 1.36)."""
    path = path_to_owner(policy, name)
    columns = _linking(path)
    tables = {policy.root: _bare(policy.tables[policy.root], set(), None)}
    for table in path:
        tables[table.name] = _bare(table, columns[table.name], table.max_rows)
    asked = {norm_key(key)[1] for key, _ in norms}
    own = [column for column in tables[name].columns if column.name not in asked]
    own += [column for column in policy.tables[name].columns if column.name in asked]
    tables[name] = replace(tables[name], columns=tuple(own), max_norm=norms)
    return _of(policy, tables)


def column_policy(policy: Policy, name: str, column: ColumnPolicy) -> Policy:
    """Return the policy under which a column's values are looked at: as declared here, each person weighing one row."""
    path = path_to_owner(policy, name)
    tables = dict(people_policy(policy, name).tables)
    own = tables[name]
    columns = (*(one for one in own.columns if one.name != column.name), column)
    is_of_people = path[0].name == policy.root and policy.tables[name].max_rows is None
    tables[name] = replace(own, columns=columns, max_rows=None if is_of_people else 1, max_norm=())
    return _of(policy, tables)


def _linking(path: tuple[TablePolicy, ...]) -> dict[str, set[str]]:
    """Return the columns of each table of a way to the owner that lead along it."""
    columns = {table.name: set(_unit_of(table).columns) for table in path}
    for table in path[:-1]:
        parent, key = _references(table)
        columns[parent].update(key)
    return columns


def _of(policy: Policy, tables: dict[str, TablePolicy]) -> Policy:
    defaults = replace(policy.defaults, minimum_units=1)
    return replace(policy, tables=tables, views={}, defaults=defaults, is_measuring=True)


def _bare(table: TablePolicy, columns: set[str], max_rows: int | None) -> TablePolicy:
    declared = tuple(ColumnPolicy(name) for name in sorted(columns))
    return TablePolicy(table.name, _unit_of(table), declared, max_rows, source=table.source)


def _unit_of(table: TablePolicy) -> UnitPolicy:
    assert table.unit is not None, "rows of a public table are nobody's, and lead to nobody"
    return table.unit


def _references(table: TablePolicy) -> References:
    way = _unit_of(table).references
    assert way is not None, "the root is the last"
    return way
