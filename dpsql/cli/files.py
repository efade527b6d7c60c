"""`dpsql convert`, `dpsql prepare`, `dpsql refresh`: what the owner does once files or data are new; and `dpsql
synthesize`: a made-up table that has the stored counts of a real one, as a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import LedgerMissing, PolicyError
from ..words import counted, terminal_text
from .owner import login_name, open_ledger, read_live_schema, verified_files
from .terminal import CommandSettings, json_option, pass_settings, say, wants_json
from .worker import open_session

if TYPE_CHECKING:
    from ..backends.prepared_rows import Numbering, Prepared
    from ..budget import LedgerStore
    from ..policy import LiveSchema, Policy, Slices, TablePolicy
    from ..policy.model import Period


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def convert(files: tuple[Path, ...]) -> None:
    """Convert CSV files, or JSON lines, to Parquet files beside them.

    A policy's tables may be Parquet files; files of text are never parsed for an analyst, since a line that does
    not parse would be an error that tells of it. Here such a line is named, to the owner. A Parquet file of that
    name is replaced, and after that nothing is answered from it until dpsql refresh.
    """
    from ..backends.prepared_rows import convert as convert_file

    for file in files:
        done = convert_file(file)
        click.echo(f"{terminal_text(str(done.target))}: {done.rows} rows")
        for name, type_ in done.columns:
            click.echo(f"  {terminal_text(name)}  {terminal_text(type_.lower())}")


# --- `dpsql refresh`: the owner has loaded new data ---------------------------------------------------------


@click.command()
@click.option(
    "--from",
    "first",
    metavar="PERIOD",
    help="Under a budget by periods: answers of this period (2026-03) and of all later ones.",
)
@click.option("--to", "last", metavar="PERIOD", help="With --from: of the periods up to this one alone.")
@click.option(
    "--all", "is_all", is_flag=True, help="Under a budget by periods: all answers, of closed ones too."
)
@json_option
@pass_settings
def refresh(settings: CommandSettings, first: str | None, last: str | None, is_all: bool) -> None:
    """Make stored answers stop answering, after new data has been loaded.

    Questions asked before are then drawn and charged anew. The budget does not come back: somebody
    who was in the data before and after loses the sum of both. Where tables are files, all of them are read, and
    recorded as they are now, and the keys that the policy asserts are verified in them; until then nothing is answered
    from a file that has changed. Where a key does not hold, nothing is changed. Where a copy of the database file is
    asked (snapshot = "copy"), it is made anew.

    Under a budget by periods ([privacy.time]) it is answers of undated rows, and of periods that are not over, that are
    asked anew; closed periods keep theirs. Where rows of a closed one came late or were corrected, --from names it:
    what is asked again of it is charged to it again, and to no other.
    """
    verified = verified_files(settings.policy_path)
    with open_ledger(settings.policy_path) as ledger:
        retired = _retired(settings.policy_path, ledger, first, last, is_all=is_all)
        epoch = ledger.advance_epoch(verified.checked, retired)
        period, since = ledger.promise.period, ledger.promise.since
    verified.record()
    of = "" if retired is None or period is None else retired.text(period, since)
    lines = [
        f"The dataset is at epoch {epoch}: earlier answers {f'of {of} ' if of else ''}are no longer given again."
    ]
    if of and period is not None and first is None:
        lines.append(_closed_keep(period))
    say({"epoch": epoch} | ({"retired": of} if of else {}), lines)


def _closed_keep(period: Period) -> str:
    return f"Closed {period.value}s keep theirs; of one in which rows came late: dpsql refresh --from it."


def _retired(
    path: Path, ledger: LedgerStore, first: str | None, last: str | None, *, is_all: bool
) -> Slices | None:
    """Return whose answers are given no more; None: all. Raises UsageError."""
    from ..plan.privacy.time import Clock
    from ..policy import Slices, load_policy
    from ..policy.periods import MOST_NUMBER, number_in

    time = load_policy(path).privacy.time
    if time is None:
        if is_all or first is not None or last is not None:
            raise click.UsageError("--from, --to and --all are for a budget by periods: [privacy.time]")
        return None
    if is_all and (first is not None or last is not None):
        raise click.UsageError("--all or --from, not both")
    if last is not None and first is None:
        raise click.UsageError("--to needs --from")
    if is_all:
        return None
    if first is None:
        now = max(datetime.now(UTC), datetime.fromisoformat(ledger.moment()))
        return Slices(((Clock.at(time, now).end, MOST_NUMBER),), is_undated=True)
    low, high = (MOST_NUMBER if one is None else number_in(time.period, one) for one in (first, last))
    if low is None or high is None or not low <= high:
        raise click.UsageError(f"write {time.period.value}s in their order, as dpsql budget show names them")
    return Slices(((low, high),))


@click.command()
@click.argument("table")
@click.option(
    "--into",
    metavar="NAME",
    help="What the copy is called; without it, the table's source where that has numbers, else its name and _prepared.",
)
@click.option(
    "--column",
    "number",
    metavar="NAME",
    help="The column of numbers; without it, the policy's row_number, or n.",
)
@click.option("--in-place", is_flag=True, help="Number the table itself, and make no copy.")
@click.option(
    "--renumber", is_flag=True, help="Number all rows anew, by a hash, in place of the new ones alone."
)
@click.option(
    "--database",
    metavar="URL",
    help="The policy's database, under a role that may write; without it, as the policy has it.",
)
@json_option
@pass_settings
def prepare(
    settings: CommandSettings,
    table: str,
    into: str | None,
    number: str | None,
    in_place: bool,
    renumber: bool,
    database: str | None,
) -> None:
    """Number the rows of each person, in a copy of a table, for row_number in the policy.

    Counts and sums then read the rows up to max_rows by their number, and need no list of the people with more. The
    copy holds the person's own key in each row, and is sorted by it. Run again after new data: new rows get the next
    numbers of their person, deleted ones leave holes, one that is another person's now is put in anew. Where it was
    there before, earlier answers stop answering, as with dpsql refresh. All of it is one transaction. Of a policy
    whose tables are Parquet files the copy is one more such file, written anew each time; dpsql refresh verifies it.

    Rows with a time, under [privacy.time], are numbered within each period, whose first day stands beside the number;
    all of them anew each time, as with --renumber: in a period to which no row came they get the same numbers again.
    """
    from ..backends.prepared_rows import numbering_of, prepare_files, what_is_copied

    policy = settings.policy()
    declared = policy.tables.get(table)
    if declared is None:
        raise PolicyError(
            f'{policy.source}: no table "{table}" is declared', hint="name one of the policy's tables"
        )
    if in_place and into is not None:
        raise click.UsageError("--into names a copy, and --in-place makes none.")
    where = f"{policy.source}: tables.{table}"
    if policy.files is not None and database is not None:
        raise click.UsageError("--database is for a policy of a database; this one is of files.")
    live = read_live_schema(database or policy.database, policy.files)
    live, target = what_is_copied(where, policy, declared, live, into, in_place=in_place)
    number = number or (declared.row_number[-1] if declared.row_number else "n")
    numbering = numbering_of(where, policy, declared, live, target, number)
    name, file, epochs = live.own_name(numbering.target), None, list[int]()
    if policy.files is not None:
        file = _file_of(policy, name, where)
        done = prepare_files(policy.files, where, numbering, live, file)
    else:
        done, epochs = _in_database(
            settings, policy, numbering, live, database or policy.database, anew=renumber
        )
    _tell_prepared(name, done, epochs, file, policy)
    if not (done.was_there or wants_json()):
        source = "" if file is None else os.path.relpath(file, policy.path.parent)
        for line in _policy_lines(policy, declared, name, numbering, source):
            click.echo(terminal_text(line))


def _in_database(
    settings: CommandSettings, policy: Policy, numbering: Numbering, live: LiveSchema, url: str, *, anew: bool
) -> tuple[Prepared, list[int]]:
    """Number rows of a database; return what was done, and the epochs that began: where what is numbered may be read.

    Raises PolicyError, and what is wrong with the ledger before anything is changed.
    """
    from ..backends.prepared_rows import prepare

    epochs, name = list[int](), live.own_name(numbering.target)
    is_copied = policy.copied is not None  # then what is asked is another file, made as by dpsql refresh
    with _ledger(settings) as ledger:

        def advance(done: Prepared) -> None:
            is_read = done.was_there or (not numbering.is_in_place and name in policy.read_from)
            if ledger is not None and is_read:
                retired = _retired(settings.policy_path, ledger, None, None, is_all=False)
                epochs.append(ledger.advance_epoch((), retired))

        try:
            done = prepare(url, numbering, live, anew=anew, advance=None if is_copied else advance)
        except PolicyError as error:
            raise _with_epoch(error, epochs) from None
        if is_copied and done.was_there:
            epochs += _next_epoch(settings, ledger)
        if ledger is None and done.was_there:
            click.echo(_NO_LEDGER, err=True)
    return done, epochs


def _tell_prepared(
    name: str, done: Prepared, epochs: Sequence[int], file: Path | None, policy: Policy
) -> None:
    """Tell which rows were numbered, and what became of earlier answers. `epochs`: those that began."""
    changed = f", {done.changed} changed" if done.changed else ""
    lines = [f"{name}: {done.rows} rows, {done.came} of them numbered now, {done.went} gone{changed}"]
    epoch = epochs[-1] if epochs else None
    if epoch is not None:
        time = policy.privacy.time
        of = "" if time is None else f"of undated rows, and of {time.period.value}s that are not over, "
        lines.append(f"The dataset is at epoch {epoch}: earlier answers {of}are no longer given again.")
        lines += [] if time is None else [_closed_keep(time.period)]
    if file is not None and done.was_there:
        lines.append("It is another file than before: dpsql refresh verifies its numbers and records it.")
    counts = {"rows": done.rows, "came": done.came, "went": done.went, "changed": done.changed}
    say({"table": name, **counts, "epoch": epoch}, lines)


_NO_LEDGER = (
    "No ledger is there, so none of its answers was retired: where one is restored, run dpsql refresh."
)


def _with_epoch(error: PolicyError, epochs: Sequence[int]) -> PolicyError:
    """Return what is said where the copy stayed as it was; an epoch that began before that stays begun."""
    if not epochs:
        return error
    said = f"{error.message}; the dataset is at epoch {epochs[-1]} all the same, and earlier answers are asked anew"
    return PolicyError(said, hint=error.hint)


@contextmanager
def _ledger(settings: CommandSettings) -> Iterator[LedgerStore | None]:
    """Open the policy's ledger; None where there is none yet."""
    with ExitStack() as stack:
        try:
            ledger = stack.enter_context(open_ledger(settings.policy_path))
        except LedgerMissing:
            ledger = None
        yield ledger


def _next_epoch(settings: CommandSettings, ledger: LedgerStore | None) -> list[int]:
    """Have earlier answers answer no more, as `dpsql refresh`; return the epoch, none where there is no ledger yet."""
    verified = verified_files(settings.policy_path)
    epochs = []
    if ledger is not None:
        retired = _retired(settings.policy_path, ledger, None, None, is_all=False)
        epochs.append(ledger.advance_epoch(verified.checked, retired))
    verified.record()
    return epochs


def _file_of(policy: Policy, name: str, where: str) -> Path:
    """Return the file that a copy of files is: as the policy says, where it has that table. Raises PolicyError."""
    declared = policy.tables.get(name)
    if declared is None:
        return Path(os.path.abspath(policy.path.parent / f"{name}.parquet"))
    if len(declared.source) > 1 or any(char in declared.source[0] for char in "*?["):
        raise PolicyError(
            f'{where}: "{name}" is of several files, and a copy is one', hint="name one file as its source"
        )
    return Path(os.path.abspath(policy.path.parent / declared.source[0]))


def _policy_lines(
    policy: Policy, declared: TablePolicy, name: str, numbering: Numbering, source: str
) -> Iterator[str]:
    """Yield what the policy says of the numbered table, `declared` before; `source`: its file, "" in a database.

    In a database it keeps its name there: analysts ask what they asked before.
    """
    from ..policy.section import quote_key, quote_text  # a policy takes as long to load as all else here
    from ..policy.units import quoted_key, unit_line

    unit, is_moved = numbering.unit, not (source or numbering.is_in_place)
    line = (
        f"unit = {quoted_key(unit)}"
        if numbering.references is None
        else unit_line(unit, numbering.references)
    )
    shown = policy.origin(declared.name) if declared.is_hidden else declared.name
    yield f"In the policy, in place of what it says of {shown}:" if is_moved else "In the policy:"
    yield f"  [tables.{quote_key(name if source else shown)}]"
    if source or name != shown:
        yield f"  source = {quote_text(source or name)}"
    yield f"  {line}"
    if source:
        yield f"  key = [{', '.join(map(quote_text, numbering.apart))}]"
    if numbering.dated is not None:
        yield f"  time = {quote_text(numbering.dated.name)}"
    yield f"  row_number = {quoted_key(numbering.apart[len(unit) :])}"
    yield f"  max_rows = {declared.max_rows or '<rows of one person>'}"
    if declared.max_rows_ever is not None:
        yield f"  max_rows_ever = {declared.max_rows_ever}"
    if declared.unit_range is not None:
        yield f"  unit_range = {list(declared.unit_range)}"
    yield "and its columns as before, without what numbers rows."
    if source:
        yield "dpsql budget create, or dpsql refresh, looks at all rows and records that the key holds."
    if numbering.dialect == "postgres":
        yield "Let the policy's role read it: GRANT SELECT."
    if is_moved and not declared.is_hidden and (numbering.ways or policy.referred(declared.name)):
        assert declared.unit is not None, "its rows are people's"
        way = declared.unit.references
        yield "And, for dpsql prepare and for tables that refer to it, the table as it is:"
        yield f"  [tables.{quote_key(f'{shown}_base')}]"
        yield f"  source = {quote_text(policy.origin(declared.name))}"
        yield (
            f"  unit = {quoted_key(declared.unit.columns)}"
            if way is None
            else f"  {unit_line(declared.unit.columns, way)}"
        )
        if declared.time is not None:
            table, column = declared.time
            yield f"  time = {quote_text(column if table == declared.name else f'{table}.{column}')}"
        yield "  hidden = true"
    if source and policy.dataset_id.startswith(f"{declared.name}@"):  # what it is called by its first table
        dataset = quote_text(policy.dataset_id)
        yield f"Where {declared.name} is taken out, dataset = {dataset} at the top keeps its ledger."


# --- a made-up table --------------------------------------------------------------------------------------


_ENDINGS = (".parquet", ".csv")


@click.command()
@click.argument("table")
@click.option(
    "--from-stored",
    is_flag=True,
    required=True,
    help="From answers that are stored already: costs nothing, and asks the database nothing.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The file to write, .parquet or .csv.",
)
@click.option(
    "--columns",
    metavar="A,B,…",
    help="Only these columns; without it, all of which counts are stored.",
)
@json_option
@pass_settings
def synthesize(
    settings: CommandSettings, table: str, from_stored: bool, out: Path, columns: str | None
) -> None:
    """Write a made-up TABLE that has about the counts which were answered of the real one.

    Some tools need rows, to try a query on, to fill a chart, to train a class. This writes rows that nobody is behind:
    their numbers by one column, and by two columns together, are those of the answers that are stored, within noise.
    It reads nothing else, so it costs no budget and tells nothing that those answers do not tell.

    What it is not: data. What no stored table says of three columns together is made up, as if it were chance. A row is
    no person, and there are no error bars. For a number that matters, ask the real table.

    It is as good as what was asked before: ask for all tables of two columns first, in one file, and then run this.

    \b
      dpsql release two-way.sql --epsilon 1     SELECT major, gpa >= 3, COUNT(*) FROM student GROUP BY 1, 2; …
      dpsql synthesize student --from-stored --out synthetic.parquet
    """
    from ..engine.notes import MODEL
    from ..engine.stored import said_of, write
    from ..engine.stored import synthesize as fitted

    if out.suffix not in _ENDINGS:
        raise click.UsageError("--out is a file that ends in .parquet or .csv.")
    if out.exists():
        raise click.UsageError(f"{out} is there already; name another file, or remove it.")
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise click.UsageError(f"{out} cannot be written: {out.parent} is no folder that you may write to.")
    wanted = () if columns is None else tuple(name.strip() for name in columns.split(","))
    if not all(wanted):
        raise click.UsageError("--columns are names with a comma between two: major,enrolled.")
    with open_session(settings.policy_path, f"owner {login_name()}") as running:
        model = running.run(fitted, running.session, table, wanted)
    try:
        write(model, table, out)
    except OSError as error:
        raise click.UsageError(f"{out} cannot be written: {error.strerror}") from error
    said = said_of(model, table)
    found = {
        "file": str(out), "rows": model.rows, "columns": list(model.names), "tables": model.tables,
        "edition": model.edition, "off": model.off, "left_out": list(model.left_out), "epsilon": "0",
    }  # fmt: skip
    name = table.rpartition(".")[2]
    lines = [
        f"{out}: {model.rows:,} made-up rows of {', '.join(model.names)}, {said}. Nothing was charged.",
        f"Fitted to {counted(model.tables, 'stored table')}, none of whose numbers is off by more than {model.off:,}.",
        *(
            [f"Rows with other values of {', '.join(model.left_out)} than the declared ones are left out."]
            if model.left_out
            else []
        ),
        "It is a model, not data: no row is a person, and what no table says of several columns is made up.",
        f'To let analysts ask it, load it as a table of the schema "{MODEL}", and declare:',
        "",
        f'  [tables."{MODEL}.{name}"]',
        "  public = true",
        f"  description = '{said}'",
    ]
    say(found, lines)
