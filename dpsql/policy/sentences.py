"""A policy as sentences, for people who read no configuration: what is protected, what counts, who may ask.

House rule: each sentence says what the policy file says, no more; the database is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..words import counted, listed, small_text
from .model import Accounting, Analyst, ColumnPolicy, Neighbours, Policy, TablePolicy
from .section import bound_text, plain

__all__ = ["one_person", "policy_sentences"]

_MOST_LISTED = 12
Chapter = tuple[str, tuple[str, ...]]


def policy_sentences(policy: Policy) -> tuple[Chapter, ...]:
    """Return the chapters of a policy, each with its title and its sentences."""
    chapters: list[Chapter] = [("The promise", tuple(_promise(policy)))]
    chapters += [(f"Table {name}", tuple(_table(policy, table))) for name, table in _shown(policy)]
    if policy.views:
        chapters.append(("Views", tuple(_views(policy))))
    chapters.append(("Who may ask", tuple(_analysts(policy))))
    return tuple(chapters)


def one_person(policy: Policy) -> str:
    """Return what one privacy unit is called, from the root's name: "a student"."""
    name = policy.root.rpartition(".")[2].replace("_", " ")
    if name.endswith("s") and not name.endswith(("ss", "us", "is")):
        name = name[:-1]
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _shown(policy: Policy) -> Iterator[tuple[str, TablePolicy]]:
    """Yield the tables: the root first, then those that are people's, then the public ones."""
    yield from sorted(policy.tables.items(), key=lambda item: (item[0] != policy.root, item[1].unit is None))


def _promise(policy: Policy) -> Iterator[str]:
    privacy, defaults, one = policy.privacy, policy.defaults, one_person(policy)
    whose = one if privacy.together == 1 else f"any {privacy.together} of them together, each {one},"
    said = (
        f"What is protected is whether {whose} is in the data at all."
        if privacy.neighbours is Neighbours.ADD_REMOVE
        else f"What is protected is everything that the data say of {whose}; how many there are is no secret."
    )
    yield said
    yield (
        f"All answers to everybody together cost at most epsilon {plain(privacy.epsilon)}, for ever"
        + (f", with delta {small_text(privacy.delta)}." if privacy.delta else ".")
    )
    if privacy.accounting is Accounting.ZCDP:
        yield (
            "Losses are added up in rho (zero-concentrated differential privacy); the sum is an epsilon at delta "
            f"{small_text(privacy.conversion_delta)}."
        )
    if privacy.rationing is not None:
        ration = privacy.rationing
        if ration.epsilon is not None:
            over = "what is left over may be spent later" if ration.carries else "what is left over lapses"
            yield f"Of that, epsilon {plain(ration.epsilon)} may be spent each {ration.period.value}; {over}."
        else:
            yield f"Some analysts have a ration for each {ration.period.value}."
    yield (
        f"A statement costs epsilon {plain(defaults.epsilon)} where its analyst sets none, and at most "
        f"{plain(defaults.max_epsilon)}."
    )
    if defaults.minimum_units > 1:
        yield f"A group that is found in the data is shown only where it has {defaults.minimum_units} people or more."


def _table(policy: Policy, table: TablePolicy) -> Iterator[str]:
    one, short = one_person(policy), table.name.rpartition(".")[2].replace("_", " ")
    start = one[0].upper() + one[1:]
    if table.description:
        yield f"{table.description.rstrip('.')}."
    if table.is_hidden:
        yield "Views read it; analysts do not see it."
    if table.unit is None:
        yield "Nobody's data: answered exactly and free."
        yield from filter(None, (_public_column(column) for column in table.columns))
        return
    if table.unit.is_row:
        yield "Each row is one person by itself; no column says whose it is."
    elif table.name == policy.root:
        yield f"Each row is {one}; whose it is stands in {_list(table.unit.columns)}."
    elif table.unit.references is not None:
        parent, _ = table.unit.references
        yield f"A row belongs to {one}, by {_list(table.unit.columns)}, which leads to {parent}."
    else:
        yield f"A row belongs to {one}, by {_list(table.unit.columns)}."
    if table.max_rows is not None:
        rows = counted(table.max_rows, "row")
        yield f"{start} counts with at most {rows} of {short} in one result; of whoever has more, each counts for less."
    if table.max_rows_per_group is not None:
        yield f"In one group {one} counts with at most {counted(table.max_rows_per_group, 'row')}."
    if table.max_groups is not None:
        yield (
            f"Where groups have to be found in the data, {one} counts in at most {counted(table.max_groups, 'group')}."
        )
    yield from (_column(column) for column in table.columns)


def _column(column: ColumnPolicy) -> str:
    said = [] if column.description is None else [column.description.rstrip(".")]
    if column.bounds is not None:
        low, high = map(bound_text, column.bounds)
        step = "" if column.step is None else f", in steps of {plain(column.step)}"
        said.append(f"counts as between {low} and {high}{step}, what lies outside as the nearer end")
    if column.values is not None:
        said.append(_listed(column))
    if column.randomized is not None:
        said.append("was randomised when it was collected")
    if column.max_length is not None:
        said.append(f"is at most {column.max_length} characters long")
    if column.bounds is None and column.values is None and column.randomized is None:
        said.append("may be counted and compared, not summed")
    return f"{column.name}: {'; '.join(said)}."


def _public_column(column: ColumnPolicy) -> str:
    return "" if column.description is None else f"{column.name}: {column.description.rstrip('.')}."


def _listed(column: ColumnPolicy) -> str:
    values = ["none (NULL)" if value is None else str(value) for value in column.values or ()]
    known = counted(len(values), "known value")
    return f"has {known}, each always answered: {listed(values, _MOST_LISTED)}"


def _views(policy: Policy) -> Iterator[str]:
    for name, view in policy.views.items():
        note = "" if view.description is None else f": {view.description.rstrip('.')}"
        yield f"{name}{note}{' (not shown to analysts)' if view.is_hidden else ''}."


def _analysts(policy: Policy) -> Iterator[str]:
    for name, analyst in policy.analysts.items():
        yield f"{name} may spend epsilon {plain(analyst.epsilon)} of it{_rights(policy, analyst)}."
    yield "Whoever runs the program on this machine with rights to the data may ask within the common cap."


def _rights(policy: Policy, analyst: Analyst) -> str:
    parts = []
    if analyst.ration is not None and policy.privacy.rationing is not None:
        parts.append(f"{plain(analyst.ration)} of it each {policy.privacy.rationing.period.value}")
    parts.append("may connect to a server" if analyst.password is not None else "cannot connect to a server")
    if analyst.access.tables is not None:
        parts.append(f"sees {_list(analyst.access.tables) or 'no table'} alone")
    if analyst.access.hide:
        parts.append(f"does not see {_list(analyst.access.hide)}")
    return ", " + ", ".join(parts)


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)
