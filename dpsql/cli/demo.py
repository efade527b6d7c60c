"""`dpsql demo`: a small university, and a walk through what dpsql does with it."""

from __future__ import annotations

from pathlib import Path

import click

from .demo_folder import MAIN_POLICY, TEXTBOOK_POLICY, make_folder
from .demo_tour import CAMPUS, TEXTBOOK, walk

__all__ = ["demo"]


@click.command()
@click.argument("folder", metavar="[DIR]", default="demo", type=click.Path(path_type=Path))
@click.option(
    "--fresh", is_flag=True, help="Remove the demo in DIR first, with its ledger, and make it anew."
)
def demo(folder: Path, fresh: bool) -> None:
    """Make a small university database in DIR (default: demo) and ask it some questions.

    Its students are invented. Run again, it uses the same data and the same ledger: questions asked
    before are answered from the store, free.
    """
    if make_folder(folder, fresh=fresh):
        click.echo(f"Made a university in {folder}: 20,000 students, 300,000 library loans, all invented.")
    else:
        click.echo(
            f"{folder} holds the demo already. Its data and its ledger are used as they are: what was\n"
            "spent stays spent, and questions asked before are answered from the store, free.\n"
            f"To begin anew: dpsql demo --fresh {folder}"
        )
    click.echo(f"What its owner declares is in {folder / MAIN_POLICY}.")
    walk(folder / MAIN_POLICY, CAMPUS)
    walk(folder / TEXTBOOK_POLICY, TEXTBOOK)
    click.echo(
        "\nNow you:\n"
        f'  dpsql -P {folder / MAIN_POLICY} query "SELECT COUNT(*) FROM loan WHERE days_out > 28"\n'
        f"  dpsql -P {folder / MAIN_POLICY} check\n"
        f"  dpsql -P {folder / MAIN_POLICY} budget show"
    )
