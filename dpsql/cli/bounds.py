"""`dpsql bounds`: the owner pays once to learn how many rows a person has, and between which ends a column lies."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import click

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
    from ..engine.bounds import Wish, measure, measure_norm, measure_pointed
    from ..mechanisms import parse_epsilon
    from ..policy.measured import read_range

    if (table is None) != is_all or (is_all and (columns or groups)):
        raise click.UsageError("Name one table, or say --all; --column and --groups are for one table.")
    for name, named in (("--also", also), ("--norm", norm)):
        if named is not None and (is_all or columns or groups):
            raise click.UsageError(f"{name} is measured by itself: leave --all, --column and --groups out.")
    if also is not None and norm is not None:
        raise click.UsageError("--also and --norm are measured one after the other: leave one out.")
    later = None if for_epsilon is None else parse_epsilon(for_epsilon)
    if is_all:
        price = None if epsilon is None else parse_epsilon(epsilon)
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
        price = usual if epsilon is None else parse_epsilon(epsilon)
        wish = Wish(table, price, later or usual, tuple(asked), groups)
        found: Measured | Normed | Pointed | str
        if also is not None:
            names = tuple(name.strip() for name in also.split(","))
            found = running.run(measure_pointed, running.session, wish, names, command)
        elif norm is not None:
            found = running.run(measure_norm, running.session, wish, norm, command)
        else:
            found = running.run(measure, running.session, wish, command)
        body, lines = _told(found, wish, _left(running.session.budget()))
    click.echo(json.dumps(body) if wants_json() else "\n".join(map(terminal_text, lines)))


def _told(
    found: Measured | Normed | Pointed | str, wish: Wish, left: Fraction
) -> tuple[dict[str, object], Iterable[str]]:
    """Return what was measured, for programs and for people."""
    from ..engine.bounds import Normed, Pointed

    if isinstance(found, str):
        return _nothing_json(wish, found), [f"{found} Nothing was charged."]
    if isinstance(found, Pointed):
        return _pointed_json(found), _pointed_lines(found, left)
    if isinstance(found, Normed):
        return _norm_json(found), _norm_lines(found, left)
    return _json(found), _lines(found, left)


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
        click.echo(json.dumps([_json(one) for one in found]))
        return
    for number, one in enumerate(found):
        click.echo(
            "\n".join(map(terminal_text, _lines(one, left, is_short=True))) + "\n" * (number + 1 < len(found))
        )


def _is_agreed(asked: str) -> bool:
    with interrupts.unwinding():
        return click.confirm(terminal_text(asked), err=True)


def _left(status: Status) -> Fraction:
    return Fraction(status.epsilon_cap_nano - status.epsilon_spent_nano, 10**9)


# --- for people ---------------------------------------------------------------------------------------------


def _lines(found: Measured, left: Fraction, *, is_short: bool = False) -> Iterator[str]:
    """Yield what was measured; `is_short`: where what is declared is kept, there is nothing to paste."""
    spent = _epsilon(found.spent)
    cost = f"charged epsilon {spent}" if found.spent.epsilon_nano else "free: measured before, and stored"
    yield f"{cost}; {decimal_text(left)} left"
    yield ""
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
    yield from _group_lines(found)
    is_kept = found.suggested == found.declared and all(one.suggested == one.declared for one in found.groups)
    if is_short and is_kept:
        return
    yield from _trust_lines(found)
    yield "Paste into the policy:"
    yield ""
    yield from _policy_lines(found)


def _pointed_lines(found: Pointed, left: Fraction) -> Iterator[str]:
    """Yield how many rows count under bounds on those that point at one person, and what to paste."""
    columns, parent = ", ".join(found.declared.columns), found.declared.references[0]
    spent = _epsilon(found.spent)
    cost = f"charged epsilon {spent}" if found.spent.epsilon_nano else "free: measured before, and stored"
    yield f"{cost}; {decimal_text(left)} left"
    yield ""
    yield f"Rows of {found.wish.table} joined with {parent} that count, with at most {found.first} of each owner:"
    for most, rows, near in found.kept:
        said = " (declared)" if most == found.declared.max_rows else ""
        yield f"  max_rows = {most}{said}: {max(0, rows):,} ± {near:,}"
    noise, wide = found.first + found.suggested, 2 * found.first + found.suggested
    asked = decimal_text(found.wish.for_epsilon)
    yield f"max_rows = {found.suggested} suits a count of all at epsilon {asked}: of the most that were found to count"
    yield f"it leaves out about {found.left_out:,}, and noise hides {noise:,} rows, {wide:,} where there are groups."
    if found.suggested == max(most for most, _, _ in found.kept) > found.declared.max_rows:
        yield "More may suit better still: declare this one and run it again."
    yield ""
    yield f"Paste into the policy, for {columns}:"
    yield ""
    yield from _also_lines(found)


def _also_lines(found: Pointed) -> Iterator[str]:
    from ..policy.section import quote_key, quote_text

    columns = [quote_text(column) for column in found.declared.columns]
    parent, key = found.declared.references
    names = [quote_text(f"{parent}.{one}") for one in key]
    texts = (one[0] if len(one) == 1 else f"[{', '.join(one)}]" for one in (columns, names))
    words = ("column" if len(columns) == 1 else "columns", "references")
    said = ", ".join(f"{word} = {text}" for word, text in zip(words, texts, strict=True))
    note = f"# measured privately, epsilon {_epsilon(found.paid)} of the ledger, {found.measured}"
    yield f"[tables.{quote_key(found.wish.table)}]"
    yield f"also = [{{ {said}, max_rows = {found.suggested} }}]  {note}"


def _norm_lines(found: Normed, left: Fraction) -> Iterator[str]:
    """Yield what norms by a column leave out, and what to paste."""
    from ..release.left_out import left_text

    spent = _epsilon(found.spent)
    cost = f"charged epsilon {spent}" if found.spent.epsilon_nano else "free: measured before, and stored"
    yield f"{cost}; {decimal_text(left)} left"
    yield ""
    yield f"Rows of {found.wish.table} by {found.column}, each value's squared and added up, of a person:"
    for most, one in found.left_out:
        named = (("declared", found.declared), ("suggested", found.suggested))
        which = " and ".join(name for name, value in named if value == most)
        what = f"rows that max_rows = {found.max_rows} keeps"
        yield f"  max_norm = {most} ({which}): {left_text(one.left, what)}"
    asked = decimal_text(found.wish.for_epsilon)
    yield f"max_norm = {found.suggested} suits GROUP BY {found.column} at epsilon {asked}:"
    yield f"its noise hides {found.suggested:,} rows of a person, where max_rows alone hides {found.max_rows:,}."
    yield ""
    yield "Paste into the policy, beside what stands in max_norm:"
    yield ""
    yield from _norm_policy_lines(found)


def _norm_policy_lines(found: Normed) -> Iterator[str]:
    from ..policy.section import quote_key

    note = f"# measured privately, epsilon {_epsilon(found.paid)} of the ledger, {found.measured}"
    yield f"[tables.{quote_key(found.wish.table)}]"
    yield f"max_norm = {{ {quote_key(found.column)} = {found.suggested} }}  {note}"


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

    note = f"# measured privately, epsilon {_epsilon(found.paid)} of the ledger, {found.measured}"
    if found.suggested is not None:
        yield f"[tables.{quote_key(found.wish.table)}]"
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


# --- for programs -------------------------------------------------------------------------------------------


def _nothing_json(wish: Wish, why: str) -> dict[str, object]:
    return {"table": wish.table, "charged": {"epsilon": "0"}, "nothing_to_measure": why}


def _pointed_json(found: Pointed) -> dict[str, object]:
    return {
        "table": found.wish.table,
        "also": list(found.declared.columns),
        "epsilon": decimal_text(found.wish.epsilon),
        "for_epsilon": decimal_text(found.wish.for_epsilon),
        "charged": {"epsilon": _epsilon(found.spent)},
        "measured": found.measured,
        "max_rows": {"declared": found.declared.max_rows, "suggested": found.suggested},
        "kept": [{"max_rows": most, "rows": rows, "plus_minus_95": near} for most, rows, near in found.kept],
        "policy": "\n".join(_also_lines(found)),
    }


def _norm_json(found: Normed) -> dict[str, object]:
    shares = ((most, one.left) for most, one in found.left_out)
    return {
        "table": found.wish.table,
        "norm": found.column,
        "epsilon": decimal_text(found.wish.epsilon),
        "for_epsilon": decimal_text(found.wish.for_epsilon),
        "charged": {"epsilon": _epsilon(found.spent)},
        "measured": found.measured,
        "max_norm": {"declared": found.declared, "suggested": found.suggested},
        "left_out": [
            {
                "max_norm": most,
                "share_of_rows_left_out": None if left is None else left[0],
                "share_of_rows_left_out_plus_minus_95": None if left is None else left[1],
            }
            for most, left in shares
        ],
        "policy": "\n".join(_norm_policy_lines(found)),
    }


def _json(found: Measured) -> dict[str, object]:
    from ..policy.section import bound_text

    return {
        "table": found.wish.table,
        "epsilon": decimal_text(found.wish.epsilon),
        "for_epsilon": decimal_text(found.wish.for_epsilon),
        "charged": {"epsilon": _epsilon(found.spent)},
        "measured": found.measured,
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
                "share_of_rows_left_out": None if one.left is None else one.left[0],
                "share_of_rows_left_out_plus_minus_95": None if one.left is None else one.left[1],
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
        "policy": "\n".join(_policy_lines(found)),
    }
