"""`dpsql synthesize`: a made-up table that has the stored counts of a real one, as a file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..words import counted, terminal_text
from .owner import login_name
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .worker import open_session

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
    from ..engine.synthesis import said_of, write
    from ..engine.synthesis import synthesize as fitted

    if out.suffix not in _ENDINGS:
        raise click.UsageError("--out is a file that ends in .parquet or .csv.")
    if out.exists():
        raise click.UsageError(f"{out} is there already; name another file, or remove it.")
    wanted = () if columns is None else tuple(name.strip() for name in columns.split(","))
    with open_session(settings.policy_path, f"owner {login_name()}") as running:
        model = running.run(fitted, running.session, table, wanted)
    try:
        write(model, table, out)
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}") from error
    said = said_of(model, table)
    if wants_json():
        found = {
            "file": str(out), "rows": model.rows, "columns": list(model.names), "tables": model.tables,
            "edition": model.edition, "off": model.off, "left_out": list(model.left_out), "epsilon": "0",
        }  # fmt: skip
        click.echo(json.dumps(found))
        return
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
    click.echo("\n".join(map(terminal_text, lines)))
