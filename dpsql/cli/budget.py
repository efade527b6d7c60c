"""`dpsql budget`: what is spent and left, on what and of which period (soundness.md 3.22); and the allowing of more.

`dpsql bounds`: the owner pays once to learn how many rows a person has, and between which ends a column lies.

House rule: under zCDP no two epsilons are added or subtracted (`dpsql.engine.answer`); what is left is told in
statements there, and in both where epsilon is what is added up.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from ..errors import LedgerError, PolicyError
from ..mechanisms import ATTO, NANO, epsilon_of_rho, rho_of_pure
from ..policy.periods import MOST_NUMBER, UNDATED, first_day, number_of, run_text
from ..records import dataclass
from ..words import terminal_text
from .faults import Failure, tell
from .owner import login_name, looked, open_ledger, verified_files
from .terminal import CommandSettings, decimal_text, is_agreed, json_option, pass_settings, say, wants_json
from .worker import open_session

if TYPE_CHECKING:
    from pathlib import Path

    from ..budget import Charge, LedgerStore, Odometer, Promise, Scope, Status
    from ..budget.stretches import Stretch
    from ..engine.bounds import Measured, Normed, Pointed, Wish
    from ..policy import ColumnPolicy, Policy
    from ..policy.model import Time
    from ..release.left_out import LeftOut
    from .worker import RunningSession

    Found = Measured | Normed | Pointed


# --- what is measured of bounds ---------------------------------------------------------------------------


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
    say(body, lines)


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
        if not is_agreed(
            asked, f"Say --yes to spend epsilon {decimal_text(whole)} on this.", is_sure=is_sure
        ):
            click.echo("Nothing was charged.")
            return
        each = floor_to_nano(whole / len(names))
        usual = later or policy.defaults.epsilon
        wishes = [Wish(name, each, usual, (), group_columns(running.session, name)) for name in names]
        found = running.run(measure_all, running.session, wishes, "dpsql bounds --all")
        left = _left(running.session.budget())
    lines = [line for one in found for line in ("", *_told(one, is_short=True).lines(one, left))]
    say([_told(one).body(one) for one in found], lines[1:])


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


# --- the budget -------------------------------------------------------------------------------------------


def _statements(left: int, usual: Fraction, in_rho: bool) -> int:
    cost = int(usual * NANO)
    return max(0, left) // (rho_of_pure(cost) if in_rho else cost)


def _text(promise: Promise, first: int, last: int) -> str:
    assert promise.period is not None, "kept by slices"
    return run_text(promise.period, first, last, promise.since)


def _amount(amount: int, in_rho: bool) -> str:
    from ..budget import epsilon_text, rho_text

    return rho_text(amount) if in_rho else epsilon_text(amount)


def period_lines(ledger: LedgerStore, status: Status, usual: Fraction) -> list[str]:
    """Return the lines of `dpsql budget show` about a ledger that is kept by periods, none about another."""
    from ..budget.stretches import stretches_of

    promise = ledger.promise
    if promise.period is None:
        return []
    in_rho, cap = status.in_rho, status.scopes[0].cap
    lines: list[tuple[str, str]] = []
    for one in stretches_of(ledger, in_rho):
        spent = _amount(one.most, in_rho)
        if one.least != one.most:
            spent = f"{_amount(one.least, in_rho)} to {spent}"
        number = _statements(cap - one.most, usual, in_rho)
        more = f"about {number:,} more at {decimal_text(usual)}"
        unit = "rho " if in_rho else ""
        lines.append(
            (_text(promise, one.first, one.last), f"{unit}{spent} of {_amount(cap, in_rho)} spent; {more}")
        )
    width = max((len(name) for name, _ in lines), default=0)
    said = [f"{name:<{width}}  {text}" for name, text in lines]
    return [*said, *_person_lines(ledger, ledger.odometer(), in_rho)]


def _person_lines(ledger: LedgerStore, odometer: Odometer, in_rho: bool) -> list[str]:
    promise = ledger.promise
    assert promise.period is not None, "kept by slices"
    period = promise.period.value
    lines = []
    for length, allowed in ledger.window_caps:
        worst = odometer.worst(length)
        where = _text(promise, worst.first, worst.first + length - 1)
        spent, most = _amount(worst.amount, in_rho), _amount(allowed, in_rho)
        unit = "rho" if in_rho else "epsilon"
        told = f", in {where}" if worst.amount else ""
        lines.append(f"over {length} {period}s: at most {unit} {spent} of {most}{told}")
    said = f"epsilon {_amount(odometer.ever, in_rho)}"
    if in_rho:
        delta = Fraction(promise.conversion_delta_atto, ATTO)
        epsilon = decimal_text(round(epsilon_of_rho(odometer.ever, delta), 2))
        said = f"epsilon {epsilon} (rho {_amount(odometer.ever, in_rho)})"
    cap_said = (
        ""
        if ledger.person_cap is None
        else f" of {'rho ' if in_rho else ''}{_amount(ledger.person_cap, in_rho)}"
    )
    lines.append(f"a person in every {period} so far: at most {said}{cap_said}")
    return lines


def period_body(ledger: LedgerStore, status: Status, usual: Fraction) -> dict[str, Any]:
    """Return what `dpsql budget show --json` says beside, about a ledger that is kept by periods."""
    from ..budget.stretches import stretches_of

    promise = ledger.promise
    if promise.period is None:
        return {}
    in_rho, cap = status.in_rho, status.scopes[0].cap
    unit = ATTO if in_rho else NANO
    odometer = ledger.odometer()
    periods = [
        {
            **_ends(promise, one),
            "least_spent": one.least / unit,
            "spent": one.most / unit,
            "cap": cap / unit,
            "left": max(0, cap - one.most) / unit,
            "statements_left": _statements(cap - one.most, usual, in_rho),
        }
        for one in stretches_of(ledger, in_rho, MOST_NUMBER)
    ]
    windows = [
        {
            f"{promise.period.value}s": length,
            "spent": odometer.worst(length).amount / unit,
            "cap": most / unit,
        }
        for length, most in ledger.window_caps
    ]
    person = {
        "spent": odometer.ever / unit,
        "cap": None if ledger.person_cap is None else ledger.person_cap / unit,
    }
    return {"period": promise.period.value, "periods": periods, "windows": windows, "person": person}


def _ends(promise: Promise, one: Stretch) -> dict[str, str | None]:
    assert promise.period is not None, "kept by slices"
    if one.last == UNDATED:
        return {"of": "undated rows"}
    before = _first_of(promise)
    first = None if one.first < before else first_day(promise.period, one.first).isoformat()
    last = None if one.last == MOST_NUMBER else first_day(promise.period, one.last + 1).isoformat()
    return {"of": _text(promise, one.first, one.last), "from": first, "until": last}


def _first_of(promise: Promise) -> int:
    assert promise.period is not None
    assert promise.since is not None, "kept by slices"
    return number_of(promise.period, promise.since)


# --- what is spent and what is left, for everybody together and for each analyst: as lines, and as JSON -----


def dataset_text(status: Status, usual: Fraction) -> str:
    """Return what everybody together has spent and what is left; `usual`: the epsilon of a usual statement."""
    from ..engine.answer import in_statements, of_text, spent_text

    if not status.in_rho:
        spent, cap = _of(status.epsilon_spent_nano, NANO), _of(status.epsilon_cap_nano, NANO)
        return f"{_spent_of(spent, cap)}; {in_statements(status, usual)}{of_text(status)}"
    spent_nano, cap_nano = status.epsilon_spent_nano, status.epsilon_cap_nano
    so_far = spent_text(spent_nano, cap_nano, status.rho_spent_atto, status.rho_cap_atto, status)
    return f"{so_far}; {in_statements(status, usual)}{of_text(status)}"


def spending_lines(status: Status, analysts: Mapping[str, Status], usual: Fraction) -> list[str]:
    """Return the lines of `dpsql budget show`: the dataset's, each analyst's, the epoch."""
    from ..engine.answer import ration_text

    delta = _spent_of(_of(status.delta_spent_atto, ATTO), _of(status.delta_cap_atto, ATTO))
    if status.in_rho:
        lines = [dataset_text(status, usual), f"delta {delta}, for groups that are found"]
    else:
        lines = [f"epsilon  {dataset_text(status, usual)}", f"delta    {delta}"]
    lines += [ration_text(scope, status) for scope in status.rations]
    between = " " if status.in_rho else "  "
    for name, own in analysts.items():
        shown = terminal_text(name)
        lines.append(f"analyst{between}{shown}: {_own_text(own, usual)}")
        lines += [
            ration_text(replace(scope, whose=scope.whose.replace("your own", f"{shown}'s own")), own)
            for scope in _own_rations(status, own)
        ]
    return [*lines, f"epoch{between if status.in_rho else '    '}{status.epoch}"]


def spending_body(
    status: Status, analysts: Mapping[str, Status], usual: Fraction, name: str
) -> dict[str, object]:
    """Return what `dpsql budget show --json` says; `name`: the analyst who is told apart from the others."""
    from ..engine.answer import statements_left

    everyone = [_analyst_body(each, own, usual, status) for each, own in analysts.items()]
    rations = [_ration_body(scope, status) for scope in status.rations]
    rho = {"rho": _scope(status.rho_spent_atto, status.rho_cap_atto, ATTO)}
    epsilon = _scope(status.epsilon_spent_nano, status.epsilon_cap_nano, NANO)
    if status.in_rho:
        del epsilon["left"]
    return {
        "epsilon": epsilon,
        **({"conversion_delta": status.conversion_delta_atto / ATTO, **rho} if status.in_rho else {}),
        "delta": _scope(status.delta_spent_atto, status.delta_cap_atto, ATTO),
        "statements_left": {"epsilon": float(usual), "number": statements_left(status, usual)},
        "analyst": next(one for one in everyone if one["name"] == name),
        "analysts": everyone,
        **({"rations": rations} if rations else {}),
        "epoch": status.epoch,
    }


def _own_text(own: Status, usual: Fraction) -> str:
    from ..engine.answer import in_statements, spent_text

    if own.in_rho:
        text = spent_text(
            own.analyst_spent_nano,
            own.analyst_cap_nano,
            own.analyst_rho_spent_atto,
            own.analyst_rho_cap_atto,
            own,
        )
    elif own.analyst_cap_nano is None:
        text = f"epsilon {decimal_text(_of(own.analyst_spent_nano, NANO))} spent, no cap of their own"
    else:
        text = f"epsilon {_spent_of(_of(own.analyst_spent_nano, NANO), _of(own.analyst_cap_nano, NANO))}"
    return text if own.analyst_cap_nano is None else f"{text}; {in_statements(own, usual)}"


def _own_rations(status: Status, own: Status) -> tuple[Scope, ...]:
    return own.rations[len(status.rations) :]


def _analyst_body(name: str, own: Status, usual: Fraction, status: Status) -> dict[str, object]:
    from ..engine.answer import statements_left

    rations = [_ration_body(scope, own) for scope in _own_rations(status, own)]
    spent = (
        {"rho": _scope(own.analyst_rho_spent_atto, own.analyst_rho_cap_atto, ATTO)}
        if own.in_rho
        else dict(_scope(own.analyst_spent_nano, own.analyst_cap_nano, NANO))
    )
    left = {"statements_left": statements_left(own, usual)}
    return {"name": name, **spent, **left, **({"rations": rations} if rations else {})}


def _ration_body(scope: Scope, status: Status) -> dict[str, object]:
    return {
        "of": scope.whose,
        "until": scope.until,
        **_scope(scope.spent, scope.cap, ATTO if status.in_rho else NANO),
    }


def _scope(spent: int, cap: int | None, unit: int) -> dict[str, float | None]:
    left = None if cap is None else max(cap - spent, 0) / unit
    return {"spent": spent / unit, "cap": None if cap is None else cap / unit, "left": left}


def _spent_of(spent: Fraction, cap: Fraction) -> str:
    return f"{decimal_text(spent)} of {decimal_text(cap)} spent, {decimal_text(max(cap - spent, Fraction(0)))} left"


def _of(amount: int, unit: int) -> Fraction:
    return Fraction(amount, unit)


# --- `dpsql budget`: what is spent, on what, and the owner's act of allowing more ---------------------------


@click.group()
def budget() -> None:
    """Make the ledger, show what is spent, list what it was spent on, allow more."""


@budget.command()
@pass_settings
def create(settings: CommandSettings) -> None:
    """Make the ledger of a new dataset. Once: without its ledger a dataset is not answered.

    Where tables are files, they are read and recorded as they are now, and the keys that the policy asserts are
    verified in them; where a copy of the database file is asked (snapshot = "copy"), it is made.

    At a terminal it then offers to measure how many rows people have in each table, for 1 % of the budget, once, so
    that error bars hold what max_rows leaves out (`dpsql bounds --all`).

    A ledger that is lost is restored from its backup or from its log, not made anew: a new one has
    forgotten what was spent.
    """
    was_there = True
    verified = verified_files(settings.policy_path, only_new=True)
    try:
        with open_ledger(settings.policy_path) as ledger:
            ledger.record_keys(verified.checked)
            status = ledger.status()
    except LedgerError:
        was_there = False
        with open_ledger(settings.policy_path, create=True) as ledger:
            ledger.record_keys(verified.checked)
            status = ledger.status()
    verified.record()
    click.echo("The ledger was there already." if was_there else "The ledger is made. Keep it, and its log.")
    head = "" if status.in_rho else "epsilon  "
    click.echo(f"{head}{dataset_text(status, settings.policy().defaults.epsilon)}")
    if not was_there and sys.stdin.isatty() and sys.stderr.isatty():
        click.echo("")
        measure_tables(settings.policy_path, None, None, is_sure=False)


@budget.command()
@json_option
@pass_settings
def show(settings: CommandSettings) -> None:
    """Show what is spent and what is left, for everybody together and for each analyst.

    Listed are those who have a section in the policy, those who were charged, and --analyst.
    """
    policy = settings.policy()
    usual = policy.defaults.epsilon
    with open_ledger(settings.policy_path) as ledger:
        status = ledger.status()
        names = {settings.analyst, *policy.analysts, *ledger.analysts()}
        analysts = {name: ledger.status(name) for name in sorted(names)}
        body = spending_body(status, analysts, usual, settings.analyst) | period_body(ledger, status, usual)
        say(body, [*spending_lines(status, analysts, usual), *period_lines(ledger, status, usual)])


@budget.command()
@click.argument("folder", type=click.Path(path_type=Path))
@pass_settings
def backup(settings: CommandSettings, folder: Path) -> None:
    """Copy the ledger and its log into FOLDER, which is made; servers may go on running.

    To restore, put both files back in their places while nothing runs. The log that is there since the backup is worth
    more than its copy: keep it, and nothing that was spent is forgotten.
    """
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    if folder.exists():
        raise click.UsageError(f"{folder} is there already; name a new folder.")
    with open_ledger(settings.policy_path) as ledger:
        try:
            draft.mkdir(0o700)
            names = [path.name for path in ledger.back_up(draft)]
            draft.rename(folder)
        except OSError as error:
            raise click.UsageError(f"{folder} cannot be written: {error.strerror}.") from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    click.echo(f"Copied to {terminal_text(str(folder))}: {' and '.join(names)}")


@budget.command()
@click.option(
    "--archive", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with sealed files of the log that do not stand beside it.",
)  # fmt: skip
@click.option(
    "--witness", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that a witness has written: ledger and log must be no older than what it has seen.",
)  # fmt: skip
@pass_settings
def verify(settings: CommandSettings, archive: Path | None, witness: Path | None) -> None:
    """Compare all of the ledger with all of its log, and every stored answer with its checksum.

    Every command looks at what is new since the last look, and believes what was compared before. This believes
    nothing. Servers may go on running: nobody waits for it.
    """
    from ..budget import read_notes

    notes = None
    if witness is not None:
        try:
            notes = read_notes(witness.read_text("ascii", errors="replace").splitlines())
        except OSError as error:
            raise click.UsageError(f"{witness} cannot be read: {error.strerror}.") from None
    with open_ledger(settings.policy_path) as ledger:
        report = ledger.verify(archive, notes)
    files = "1 file" if report.files == 1 else f"{report.files} files"
    click.echo(
        f"{report.records} records in {files} of the log: the ledger has the same, and adds up to what is spent."
    )
    click.echo(f"{report.answers} stored answers are as they were stored.")
    if report.certificates:
        tell(f"Note: {report.certificates} certificates of charges are damaged or missing.")
    if notes is not None:
        click.echo(f"The witness has seen the same, {report.agreed} times.")
    if report.damaged:
        raise Failure(
            LedgerError(
                f"{report.damaged} stored answers are damaged or missing",
                hint="what was spent is sound; restore the ledger from a backup, or give up what is stored: "
                "dpsql refresh",
            )
        )


@budget.command()
@pass_settings
def rotate(settings: CommandSettings) -> None:
    """Seal the log's file under a name of its own, and begin the next one. A server does that by itself every 64 MiB.

    A sealed file never changes. It may be moved away: dpsql budget verify takes the folder as --archive; only a ledger
    from a backup of before it was sealed needs it beside the log again.
    """
    with open_ledger(settings.policy_path) as ledger:
        sealed = ledger.rotate()
    click.echo(
        "The log's file has nothing to seal."
        if sealed is None
        else f"Sealed as {terminal_text(sealed.name)}."
    )


@budget.command()
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1_000_000), default=20, show_default=True, help="At most so many."
)
@json_option
@pass_settings
def log(settings: CommandSettings, limit: int) -> None:
    """List the newest charges: when, who, what it cost, which measures, which statement."""
    from ..budget import rho_text

    with open_ledger(settings.policy_path) as ledger:
        entries = ledger.log(limit)
        in_rho, promise = ledger.status().in_rho, ledger.promise
    for entry in entries:
        of = ""  # as of what was charged before the ledger was divided
        if promise.period is not None and entry.slices is not None:
            of = entry.slices.text(promise.period, promise.since)
        epsilon, delta = _of(entry.charge.epsilon_nano, NANO), Fraction(entry.charge.delta_atto, ATTO)
        if wants_json():
            body = {
                "number": entry.seq,
                "at": entry.at,
                "epoch": entry.epoch,
                "analyst": entry.analyst,
                "epsilon": float(epsilon),
                "delta": float(delta),
                **({"rho": entry.charge.rho_atto / ATTO} if in_rho else {}),
                **({"of": of} if of else {}),
                "state": entry.state.value,
                "note": entry.note,
                "statement": entry.statement,
            }
            click.echo(json.dumps(body))
            continue
        cost = f"epsilon {decimal_text(epsilon)}" + (f", delta {decimal_text(delta)}" if delta else "")
        cost += f", rho {rho_text(entry.charge.rho_atto)}" if in_rho else ""
        cost += f" of {of}" if of else ""
        click.echo(f"{entry.at}  {terminal_text(entry.analyst)}  {cost}  {entry.state.value}")
        click.echo(f"    {terminal_text(entry.note)}")
        click.echo(f"    {terminal_text(' '.join(entry.statement.split()))}")
    if not entries:
        tell("Nothing was charged yet.")


@budget.command()
@click.argument("epsilon")
@click.option("--to", "analyst", help="Raise this analyst's cap; without it, the cap for everybody together.")
@pass_settings
def grant(settings: CommandSettings, epsilon: str, analyst: str | None) -> None:
    """Raise a cap by EPSILON: the owner's act, recorded for ever in the ledger.

    More epsilon means that more can be learned about each person. It cannot be taken back.
    """
    from ..mechanisms import parse_epsilon

    amount = parse_epsilon(epsilon)
    with open_ledger(settings.policy_path) as ledger:
        if analyst is not None and ledger.status(analyst).analyst_cap_nano is None:
            raise click.UsageError(f"{analyst} has no cap of their own that could be raised.")
        ledger.grant(analyst, int(amount * NANO), by=login_name())
        status = ledger.status(analyst)
    cap = status.epsilon_cap_nano if analyst is None else status.analyst_cap_nano
    whose = "everybody together" if analyst is None else terminal_text(analyst)
    click.echo(f"The cap for {whose} is now epsilon {decimal_text(_of(cap or 0, NANO))}.")


@budget.command()
@click.option("--yes", is_flag=True, help="Take the clock without being asked.")
@pass_settings
def clock(settings: CommandSettings, yes: bool) -> None:
    """Have the ledger take this machine's clock as it is, where periods have caps.

    A clock that goes back opens no period again, and one that is more than a day beyond the ledger's last record is not
    taken before the owner has looked at it, as after some days in which nothing ran. Recorded in the ledger.
    """
    with open_ledger(settings.policy_path) as ledger:
        moment, now = ledger.moment(), datetime.now(UTC).isoformat(timespec="seconds")
        click.echo(f"The ledger's last moment is {moment}.")
        click.echo(f"This machine's clock says   {now}.")
        if not is_agreed("Is the clock right?", "Say --yes to take the clock as it is.", is_sure=yes):
            tell("The ledger stays as it was.")
            return
        click.echo(f"The ledger is at {ledger.confirm_clock(by=login_name())} from now on.")


@budget.command()
@click.argument("accounting", type=click.Choice(["zcdp", "day", "week", "month", "year"]))
@click.option("--all", "is_all", is_flag=True, help="Count what was charged for all periods to come, too.")
@click.option("--yes", is_flag=True, help="Divide it without being asked.")
@pass_settings
def account(settings: CommandSettings, accounting: str, is_all: bool, yes: bool) -> None:
    """Have a ledger count otherwise from now on: in rho, or by periods of the data. No way back.

    zcdp: a ledger that adds up epsilon adds up rho: more answers for the same promise. What was spent counts, each
    charge by its own rho, and has to fit. The promise is from then on the epsilon and the delta of the policy, for all
    that was and will be answered. Write accounting = "zcdp" in [privacy] first.

    day, week, month, year: what is promised is from then on about what a person has in one such period, which is less
    than it was: who is in k of them may lose k times epsilon (k times k of rho). What was charged so far counts twice,
    for each period up to the running one, and for undated rows; those that come begin with the whole budget, except
    where rows of them are there already: then nothing is changed without --all. Write [privacy.time] first.

    Start what is running on the same ledger again.
    """
    policy = settings.policy()
    if accounting == "zcdp":
        _move(policy)
    else:
        _divide(policy, accounting, is_all=is_all, yes=yes)


def _move(policy: Policy) -> None:
    from ..engine.ledgers import open_ledger as open_store
    from ..policy import Accounting

    if policy.privacy.accounting is not Accounting.ZCDP:
        raise PolicyError(f'{policy.source}: privacy.accounting: is "pure"; write "zcdp" first')
    try:
        with closing(open_store(policy, create=False)) as ledger:
            status, was_moved = ledger.status(), True
    except LedgerError:
        before = replace(policy.privacy, accounting=Accounting.PURE, conversion_delta=Fraction(0))
        with closing(open_store(replace(policy, privacy=before), create=False)) as ledger:
            conversion = int(policy.privacy.conversion_delta * ATTO)
            status, was_moved = ledger.move_to_zcdp(conversion, by=login_name()), False
    click.echo("The ledger adds up rho already." if was_moved else "The ledger adds up rho from now on.")
    click.echo(dataset_text(status, policy.defaults.epsilon))


def _divide(policy: Policy, period: str, *, is_all: bool, yes: bool) -> None:
    from ..budget import Promise
    from ..engine.ledgers import open_ledger as open_store
    from ..engine.ledgers import times_of

    time = policy.privacy.time
    if time is None or time.period.value != period:
        raise PolicyError(f'{policy.source}: privacy.time: has to say period = "{period}" first')
    if not _is_made_for(policy):
        before = replace(policy, privacy=replace(policy.privacy, time=None))
        with closing(open_store(before, create=False)) as ledger:
            if not is_all and (needed := _needs_all(policy, time, ledger.moment())) is not None:
                raise needed
            click.echo(f"So far: {dataset_text(ledger.status(), policy.defaults.epsilon)}.")
            click.echo(
                f"From now on the promise is about what a person has in one {period}: who is in k of them may lose k "
                "times as much (rho: k times k). What was charged so far counts twice (rho: four times) for each of "
                f"them up to the running one{', for all that are to come' if is_all else ''}, and for rows without a "
                "time. There is no way back."
            )
            if is_all and _is_all_needless(policy, time, ledger.moment()):
                click.echo(
                    f"No row is of a {period} that is still to come: unless some were that are gone now, --all is not "
                    f"needed, and without it a {period} that comes begins with the whole budget."
                )
            if not is_agreed("Divide the ledger?", "Say --yes to divide the ledger.", is_sure=yes):
                tell("The ledger stays as it was.")
                return
            promise = Promise(period=time.period, zone=time.zone, since=time.since)
            division = ledger.divide(promise, is_all=is_all, by=login_name(), times=times_of(policy))
        said = division.slices.text(time.period, time.since)
        click.echo(f"The ledger is kept by {period} from now on. What was charged counts for {said}.")
    else:
        click.echo(f"The ledger is kept by {period} already.")


def _is_made_for(policy: Policy) -> bool:
    from ..engine.ledgers import open_ledger as open_store

    try:
        open_store(policy, create=False).close()
    except LedgerError:
        return False
    return True


def _is_all_needless(policy: Policy, time: Time, moment: str) -> bool:
    """Say whether the rows, as far as they can be read, need no --all."""
    try:
        return _needs_all(policy, time, moment) is None
    except PolicyError:
        return False


def _needs_all(policy: Policy, time: Time, moment: str) -> LedgerError | None:
    """Return why --all is needed: rows are of a period that is not begun, which old answers may have read; else None.

    Raises PolicyError.
    """
    from ..engine.asserted_keys import look_at_times

    now = max(datetime.fromisoformat(moment), datetime.now(UTC)).astimezone(ZoneInfo(time.zone))
    for found in looked(look_at_times, policy, True, now.date()):
        if found.later:
            return LedgerError(
                f'"{found.table}" has rows whose "{found.column}" is of a {time.period.value} that is still to come, '
                "and answers may have read them",
                hint="mend these rows where they are mistakes and answers never read them, or say --all: what was "
                "charged then counts for all that are to come, too",
            )
    return None
