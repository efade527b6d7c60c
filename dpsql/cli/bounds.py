"""`dpsql bounds`: the owner pays once to learn how many rows a person has, and between which ends a column lies."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from ..records import dataclass
from ..words import terminal_text
from . import interrupts
from .owner import login_name
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .terminal import decimal_text
from .worker import open_session

if TYPE_CHECKING:
    from pathlib import Path

    from ..budget import Charge, Status
    from ..engine.bounds import Measured, Normed, Pointed, Wish
    from ..policy import ColumnPolicy
    from ..release.left_out import LeftOut
    from .worker import RunningSession

    Found = Measured | Normed | Pointed

_PART = Fraction(1, 100)
"""What all tables together take of the budget."""
_ENOUGH = 10_000
"""From about so many people on, what is measured is a better guide than what an owner knows (mechanisms' benchmark)."""


@click.command()
@click.argument("table", required=False)
@click.option("--all", "is_all", is_flag=True, help="Every table of which a person may have many rows.")
@click.option(
    "--epsilon",
    metavar="PRICE",
    help="What to take of the budget, for all of it together; without it, as much as one usual question, or with "
    "--all 1 % of the budget.",
)
@click.option(
    "--for-epsilon",
    metavar="EPSILON",
    help="What people will spend on a question; without it, the policy's default.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME[=LOW,HIGH]",
    help="Also find bounds for this column, between two values that you are sure of; without them, between the "
    "declared ones. May be repeated; each shares the price.",
)
@click.option(
    "--groups",
    "groups",
    multiple=True,
    metavar="NAME",
    help="Also measure in how many groups of this column a person is, for max_groups. May be repeated.",
)
@click.option(
    "--also",
    "also",
    metavar="NAME[,NAME]",
    help="Measure how many rows count of each person whom this column points at, for the max_rows of also.",
)
@click.option(
    "--norm",
    "norm",
    metavar="NAME",
    help="Measure how many rows a person has on each value of this column, or in each of its months, month(NAME), "
    "squared and added up, for max_norm.",
)
@click.option("--yes", "is_sure", is_flag=True, help="With --all: do not ask before it is charged.")
@json_option
@pass_settings
def bounds(
    settings: CommandSettings,
    table: str | None,
    is_all: bool,
    epsilon: str | None,
    for_epsilon: str | None,
    columns: tuple[str, ...],
    groups: tuple[str, ...],
    also: str | None,
    norm: str | None,
    is_sure: bool,
) -> None:
    """Measure, privately, which max_rows fits TABLE, how many people have more rows, and what that leaves out.

    If you know how many rows hardly anybody exceeds, write that into the policy: it costs nothing, and for fewer than
    about 10,000 people it is better than what can be measured. If you do not, this asks the data once, as a question
    that is charged to the budget, and prints the lines to paste. The answer is noisy, and safe to show.

    It also stores how many rows people have beside max_rows. From then on error bars over the table hold the noise and
    what max_rows leaves out together, and answers say what share of the rows counts.
    Run again, it is answered from the store, free. A public table, or one row a person, costs nothing either.

    \b
      dpsql bounds --all
      dpsql bounds loan
      dpsql bounds loan --epsilon 0.5 --column fee=0,1000 --column loaned_on=2020-01-01,2025-12-31
      dpsql bounds vote --also post_id
      dpsql bounds loan --norm loaned_on
    """
    from ..engine.bounds import Wish
    from ..mechanisms import parse_epsilon
    from ..policy.measured import read_range

    _check_usage(table, also, norm, is_all=is_all, is_of_columns=bool(columns or groups))
    later = None if for_epsilon is None else parse_epsilon(for_epsilon)
    price = None if epsilon is None else parse_epsilon(epsilon)
    if is_all:
        measure_tables(settings.policy_path, price, later, is_sure=is_sure)
        return
    assert table is not None
    asked = []
    for column in columns:
        name, equals, text = column.partition("=")
        asked.append((name, read_range(name, text) if equals else None))
    alone = (("also", also), ("norm", norm), ("epsilon", epsilon), ("for-epsilon", for_epsilon))
    options = (*(("column", one) for one in columns), *(("groups", one) for one in groups), *alone)
    command = " ".join(["dpsql bounds", table, *(f"--{name} {value}" for name, value in options if value)])
    with open_session(settings.policy_path, f"owner {login_name()}") as running:
        usual = running.session.policy.defaults.epsilon
        wish = Wish(table, price or usual, later or usual, tuple(asked), groups)
        found = _measured(running, wish, also, norm, command)
        left = _left(running.session.budget())
    if isinstance(found, str):
        body: dict[str, object] = {"table": table, "charged": {"epsilon": "0"}, "nothing_to_measure": found}
        lines: Iterable[str] = [f"{found} Nothing was charged."]
    else:
        told = _told(found)
        body, lines = told.body(found), told.lines(found, left)
    click.echo(json.dumps(body) if wants_json() else "\n".join(map(terminal_text, lines)))


def _check_usage(
    table: str | None, also: str | None, norm: str | None, *, is_all: bool, is_of_columns: bool
) -> None:
    """Raise UsageError for options that do not go together."""
    if (table is None) != is_all or (is_all and is_of_columns):
        raise click.UsageError("Name one table, or say --all; --column and --groups are for one table.")
    for name, named in (("--also", also), ("--norm", norm)):
        if named is not None and (is_all or is_of_columns):
            raise click.UsageError(f"{name} is measured by itself: leave --all, --column and --groups out.")
    if also is not None and norm is not None:
        raise click.UsageError("--also and --norm are measured one after the other: leave one out.")


def _measured(
    running: RunningSession, wish: Wish, also: str | None, norm: str | None, command: str
) -> Found | str:
    """Return what was measured: of whom columns point at, of a norm, or of a table's rows, groups and columns."""
    from ..engine.bounds import measure, measure_norm, measure_pointed

    if also is not None:
        names = tuple(name.strip() for name in also.split(","))
        return running.run(measure_pointed, running.session, wish, names, command)
    if norm is not None:
        return running.run(measure_norm, running.session, wish, norm, command)
    return running.run(measure, running.session, wish, command)


def measure_tables(
    policy_path: Path, price: Fraction | None, later: Fraction | None, *, is_sure: bool
) -> None:
    """Measure every table of which a person may have many rows, after asking whether to charge it, and print it.

    `price`: of all together; None: 1 % of the budget. `later`: what people will spend on a question.
    """
    from ..engine.bounds import Wish, group_columns, measure_all, tables_to_measure
    from ..mechanisms import floor_to_nano

    with open_session(policy_path, f"owner {login_name()}") as running:
        policy, names = running.session.policy, tables_to_measure(running.session)
        whole = floor_to_nano(policy.privacy.epsilon * _PART) if price is None else price
        if not names:
            click.echo(
                "In each table a person has one row: there is no max_rows to choose. Nothing was charged."
            )
            return
        asked = (
            f"Measure how many rows people have in {', '.join(names)}, for epsilon {decimal_text(whole)} of "
        )
        asked += f"{decimal_text(policy.privacy.epsilon)}, once?"
        if not is_sure and not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise click.UsageError(f"Say --yes to spend epsilon {decimal_text(whole)} on this.")
        if not is_sure and not _is_agreed(asked):
            click.echo("Nothing was charged.")
            return
        each = floor_to_nano(whole / len(names))
        usual = later or policy.defaults.epsilon
        wishes = [Wish(name, each, usual, (), group_columns(running.session, name)) for name in names]
        found = running.run(measure_all, running.session, wishes, "dpsql bounds --all")
        left = _left(running.session.budget())
    if wants_json():
        click.echo(json.dumps([_told(one).body(one) for one in found]))
        return
    for number, one in enumerate(found):
        lines = _told(one, is_short=True).lines(one, left)
        click.echo("\n".join(map(terminal_text, lines)) + "\n" * (number + 1 < len(found)))


def _is_agreed(asked: str) -> bool:
    with interrupts.unwinding():
        return click.confirm(terminal_text(asked), err=True)


def _left(status: Status) -> Fraction:
    return Fraction(status.epsilon_cap_nano - status.epsilon_spent_nano, 10**9)


# --- what is said of it, for people and for programs --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Told:
    """What is said of a measurement: `said` to people, `fields` to programs; `named`: what of the table it is of.

    `pasted`: lines for the policy, behind a line that says so, `paste`; none where there is nothing to paste.
    """

    said: Iterable[str]
    fields: dict[str, object]
    pasted: list[str]
    paste: str = "Paste into the policy:"
    named: dict[str, object] = field(default_factory=dict)

    def lines(self, found: Found, left: Fraction) -> Iterator[str]:
        """Yield what was charged, what was measured and what to paste."""
        spent = _epsilon(found.spent)
        cost = f"charged epsilon {spent}" if found.spent.epsilon_nano else "free: measured before, and stored"
        yield f"{cost}; {decimal_text(left)} left"
        yield ""
        yield from self.said
        if self.paste:
            yield from (self.paste, "", *self.pasted)

    def body(self, found: Found) -> dict[str, object]:
        """Return the same for programs."""
        return {
            "table": found.wish.table,
            **self.named,
            "epsilon": decimal_text(found.wish.epsilon),
            "for_epsilon": decimal_text(found.wish.for_epsilon),
            "charged": {"epsilon": _epsilon(found.spent)},
            "measured": found.measured,
            **self.fields,
            "policy": "\n".join(self.pasted),
        }


def _told(found: Found, *, is_short: bool = False) -> _Told:
    """Return what is said of what was measured; `is_short`: nothing is to be pasted where the declared is kept."""
    from ..engine.bounds import Normed, Pointed

    if isinstance(found, Pointed):
        return _of_pointed(found)
    return _of_norm(found) if isinstance(found, Normed) else _of_table(found, is_short=is_short)


def _of_table(found: Measured, *, is_short: bool) -> _Told:
    is_kept = found.suggested == found.declared and all(one.suggested == one.declared for one in found.groups)
    has_paste = not (is_short and is_kept)
    said = [*_people_lines(found), *_group_lines(found), *(_trust_lines(found) if has_paste else ())]
    paste = "Paste into the policy:" if has_paste else ""
    return _Told(said, _fields(found), list(_policy_lines(found)), paste)


def _people_lines(found: Measured) -> Iterator[str]:
    """Yield how many people have rows, and what bounds leave out of these."""
    if found.left_out:
        best = found.left_out[0]
        low, high = best.people_ends
        yield f"{best.people:,} people have rows in {found.wish.table} ({low:,} to {high:,} at 95 %)."
        for one in found.left_out:
            yield from _share_lines(one, found)
        yield f"max_rows = {found.suggested} suits questions at epsilon {decimal_text(found.wish.for_epsilon)}."
        if high < _ENOUGH:
            yield f"Of fewer than {_ENOUGH:,} people this is a rough guide: what you know of them goes first."
        yield ""


def _of_pointed(found: Pointed) -> _Told:
    """Return how many rows count under bounds on those that point at one person."""
    declared = found.declared
    joined = f"{found.wish.table} joined with {declared.references[0]}"
    said = [f"Rows of {joined} that count, with at most {found.first} of each owner:"]
    for most, rows, near in found.kept:
        which = " (declared)" if most == declared.max_rows else ""
        said.append(f"  max_rows = {most}{which}: {max(0, rows):,} ± {near:,}")
    noise, wide = found.first + found.suggested, 2 * found.first + found.suggested
    asked = decimal_text(found.wish.for_epsilon)
    said += [
        f"max_rows = {found.suggested} suits a count of all at epsilon {asked}: of the most that were found to count",
        f"it leaves out about {found.left_out:,}, and noise hides {noise:,} rows, {wide:,} where there are groups.",
    ]
    if found.suggested == max(most for most, _, _ in found.kept) > declared.max_rows:
        said.append("More may suit better still: declare this one and run it again.")
    fields: dict[str, object] = {
        "max_rows": {"declared": declared.max_rows, "suggested": found.suggested},
        "kept": [{"max_rows": most, "rows": rows, "plus_minus_95": near} for most, rows, near in found.kept],
    }
    return _Told(
        [*said, ""], fields, _also_lines(found),
        f"Paste into the policy, for {', '.join(declared.columns)}:", {"also": list(declared.columns)},
    )  # fmt: skip


def _also_lines(found: Pointed) -> list[str]:
    from ..policy.units import quoted_key

    columns, (parent, key) = found.declared.columns, found.declared.references
    word = "column" if len(columns) == 1 else "columns"
    names = quoted_key([f"{parent}.{one}" for one in key])
    said = f"{word} = {quoted_key(columns)}, references = {names}, max_rows = {found.suggested}"
    return [_section(found), f"also = [{{ {said} }}]  {_note(found)}"]


def _of_norm(found: Normed) -> _Told:
    """Return what norms by a column leave out."""
    from ..policy.section import quote_key
    from ..release.left_out import left_text

    said = [f"Rows of {found.wish.table} by {found.column}, each value's squared and added up, of a person:"]
    for most, one in found.left_out:
        named = (("declared", found.declared), ("suggested", found.suggested))
        which = " and ".join(name for name, value in named if value == most)
        what = f"rows that max_rows = {found.max_rows} keeps"
        said.append(f"  max_norm = {most} ({which}): {left_text(one.left, what)}")
    asked = decimal_text(found.wish.for_epsilon)
    said += [
        f"max_norm = {found.suggested} suits GROUP BY {found.column} at epsilon {asked}:",
        f"its noise hides {found.suggested:,} rows of a person, where max_rows alone hides {found.max_rows:,}.",
        "",
    ]
    pasted = f"max_norm = {{ {quote_key(found.column)} = {found.suggested} }}  {_note(found)}"
    fields: dict[str, object] = {
        "max_norm": {"declared": found.declared, "suggested": found.suggested},
        "left_out": [{"max_norm": most, **_rows_left_out(one.left)} for most, one in found.left_out],
    }
    return _Told(
        said, fields, [_section(found), pasted],
        "Paste into the policy, beside what stands in max_norm:", {"norm": found.column},
    )  # fmt: skip


def _rows_left_out(left: tuple[float, float] | None) -> dict[str, object]:
    share, near = left or (None, None)
    return {"share_of_rows_left_out": share, "share_of_rows_left_out_plus_minus_95": near}


def _section(found: Found) -> str:
    from ..policy.section import quote_key

    return f"[tables.{quote_key(found.wish.table)}]"


def _note(found: Found) -> str:
    """Return how it was measured, as a comment of the policy's."""
    return f"# measured privately, epsilon {_epsilon(found.paid)} of the ledger, {found.measured}"


def _share_lines(one: LeftOut, found: Measured) -> Iterator[str]:
    from ..release.left_out import FEW, TAIL, about, left_text, percent

    which = [
        name
        for name, value in (("declared", found.declared), ("suggested", found.suggested))
        if value == one.max_rows
    ]
    share = about(one.share)
    most = percent(one.share_ends[1], up=True)
    yield f"  max_rows = {one.max_rows} ({' and '.join(which)}): {share} of the people have more, at most {most};"
    if one.left is None:
        yield f"    {left_text(None)} for this price, or {percent(float(FEW))} of them or more"
        yield "    have far more rows: what you know of them goes first"
        return
    rung = one.rungs[-1]
    yield f"    {left_text(one.left)}, if who has more than {rung:,} rows"
    yield f"    has no more than {(1 + TAIL) * rung:,} on average"


def _group_lines(found: Measured) -> Iterator[str]:
    """Yield in how many groups people are, and which bound on them leaves out few."""
    from ..release.left_out import left_text

    for one in found.groups:
        for cut in one.left_out:
            said = left_text(cut.left, f"groups by {one.column} that people are in")
            yield f"  max_groups = {cut.max_rows}: {said}"
        yield f"max_groups = {one.suggested} suits GROUP BY {one.column}."
    if found.groups:
        yield ""


def _trust_lines(found: Measured) -> Iterator[str]:
    """Yield of each column whether its bounds can be trusted: the ends of few people may be far outside."""
    price = found.wish.epsilon
    for column, enough in zip(found.columns, found.reliable_from, strict=True):
        line = f"About 1 % of the values of {column.name} lie outside its bounds, where {enough:,} people have one"
        if found.left_out and (people := max(1, found.left_out[0].people)) < enough:
            needed = Fraction(math.ceil(price * enough / people * 10), 10)
            line += f"; of {people:,} the bounds may be far too wide, but at --epsilon {decimal_text(needed)}"
        yield f"{line}."
    if found.columns:
        yield ""


def _policy_lines(found: Measured) -> Iterator[str]:
    """Yield what to paste: TOML, with how it was measured."""
    from ..policy.section import quote_key

    note = _note(found)
    if found.suggested is not None:
        yield _section(found)
        yield f"max_rows = {found.suggested}  {note}"
        if most := max((one.suggested for one in found.groups), default=0):
            yield f"max_groups = {min(most, found.suggested)}  {note}"
    if found.columns:
        yield f"[tables.{quote_key(found.wish.table)}.columns]"
        yield from (
            f"{quote_key(column.name)} = {{ {_declaration(column)} }}  {note}" for column in found.columns
        )


def _declaration(column: ColumnPolicy) -> str:
    """Return a column's bounds, and what else stands there of numbers; `values` and notes are the owner's to keep."""
    from ..policy.section import bound_text, plain, quote_text

    assert column.bounds is not None
    parts = [f"bounds = [{', '.join(map(bound_text, column.bounds))}]"]
    parts += [] if column.step is None else [f"step = {plain(column.step)}"]
    parts += [] if column.description is None else [f"description = {quote_text(column.description)}"]
    return ", ".join(parts)


def _epsilon(charge: Charge) -> str:
    return decimal_text(Fraction(charge.epsilon_nano, 10**9))


def _fields(found: Measured) -> dict[str, object]:
    from ..policy.section import bound_text

    return {
        "max_rows": {"declared": found.declared, "suggested": found.suggested},
        "people": [
            {
                "max_rows": one.max_rows,
                "people": one.people,
                "people_95": one.people_ends,
                "above": one.above,
                "share_above": one.share,
                "share_above_95": one.share_ends,
                "share_of_rows_kept": one.kept,
                "share_of_rows_kept_at_least_95": one.kept_at_least,
                **_rows_left_out(one.left),
            }
            for one in found.left_out
        ],
        "groups": [
            {
                "column": one.column,
                "max_groups": {"declared": one.declared, "suggested": one.suggested},
                "share_kept": [cut.kept for cut in one.left_out],
            }
            for one in found.groups
        ],
        "columns": [
            {
                "name": column.name,
                "bounds": [bound_text(end) for end in column.bounds or ()],
                "reliable_from": people,
            }
            for column, people in zip(found.columns, found.reliable_from, strict=True)
        ],
    }
