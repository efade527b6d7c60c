"""`dpsql demo`: a small university, and a walk through what dpsql does with it."""

from __future__ import annotations

from pathlib import Path

import click

from .demo_folder import ANALYST, MAIN_POLICY, PASSWORD, make_folder
from .faults import tell
from .serve import psql_line, run_server

__all__ = ["demo"]

_TO_PASTE = (
    "\\d+ student",
    "SET dpsql.intervals = 0.95;",
    "SELECT major, COUNT(*) AS n FROM student WHERE gpa >= 3.5 GROUP BY major ORDER BY n DESC;",
    "SELECT name, gpa FROM student WHERE id = 7;",
)
"""What is worth seeing first in psql."""


@click.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--fresh", is_flag=True, help="Remove the demo in DIR first, with its ledger, and make it anew."
)
@click.option("--serve", is_flag=True, help="Serve it to psql instead, on this machine alone, until Ctrl-C.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=5433,
    show_default=True,
    help="The port for --serve and --challenge; 0 takes a free one.",
)
@click.option(
    "--challenge",
    is_flag=True,
    help="Serve a university with a secret in it (DIR: challenge), and say what would break the promise.",
)
@click.option(
    "--guess", type=float, metavar="GPA", help="With --challenge: say whether that is the secret, and tell it."
)  # fmt: skip
@click.option(
    "--month",
    is_flag=True,
    help="Walk through a library (DIR: library) whose loans go on: each month of them has a budget of its own.",
)
def demo(
    folder: Path | None,
    fresh: bool,
    serve: bool,
    port: int,
    challenge: bool,
    guess: float | None,
    month: bool,
) -> None:
    """Make a small university database in DIR (default: demo) and ask it some questions.

    At a terminal each step of the walk waits for Enter, and q leaves it; elsewhere all of it is shown at once.
    Its students are invented. Run again, it uses the same data and the same ledger: questions asked
    before are answered from the store, free.
    """
    if guess is not None and not challenge:
        raise click.UsageError("--guess is of a --challenge.")
    if month and (challenge or serve):
        raise click.UsageError("--month is a walk of its own: leave --serve and --challenge out.")
    if month:
        from .demo_months import walk_months  # the engine takes long to load

        walk_months(folder or Path("library"), fresh=fresh)
        return
    if challenge:
        _challenge(folder or Path("challenge"), fresh, port, guess)
        return
    folder = folder or Path("demo")
    if serve:
        make_folder(folder, fresh=fresh)
        _serve(folder, port)
        return
    if make_folder(folder, fresh=fresh):
        click.echo(f"Made a university in {folder}: 20,000 students, 300,000 library loans, all invented.")
    else:
        click.echo(
            f"{folder} holds the demo already. Its data and its ledger are used as they are: what was\n"
            "spent stays spent, and questions asked before are answered from the store, free.\n"
            f"To begin anew: dpsql demo --fresh {folder}"
        )
    click.echo(f"What its owner declares is in {folder / MAIN_POLICY}.")
    from .demo_tour import walk  # the engine takes long to load

    walk(folder)
    click.echo(
        f"\nNow you:\n  dpsql -P {folder / MAIN_POLICY} query         a prompt; \\d lists what may be asked\n"
        f"  dpsql -P {folder / MAIN_POLICY} budget show   what is left\n"
        f"  dpsql demo --serve {folder}                   the same for psql, as make serve does"
    )


def _challenge(folder: Path, fresh: bool, port: int, guess: float | None) -> None:
    """Make the challenge and serve it, or say whether a guess is right."""
    from .demo_challenge import POLICY, make_challenge, told, told_of_guess

    if guess is not None:
        click.echo(told_of_guess(folder, guess))
        return
    make_challenge(folder, fresh=fresh)
    _run(folder / POLICY, port, told())


def _serve(folder: Path, port: int) -> None:
    """Serve the demo in a folder; says on standard error how to connect, before the log begins."""
    from ..policy import load_policy

    policy = load_policy(folder / MAIN_POLICY)
    analyst = policy.analysts.get(ANALYST)
    if analyst is None or analyst.password is None:
        raise click.UsageError(
            f"{folder} was made before the demo had an analyst. Make it anew: dpsql demo --fresh --serve {folder}"
        )
    _run(folder / MAIN_POLICY, port, "")


def _run(path: Path, port: int, first: str) -> None:
    """Serve a policy of the demo's; says on standard error `first`, and how to connect, before the log begins."""
    from ..policy import load_policy
    from ..server import Options

    policy, options = load_policy(path), Options(port=port)

    def announce(port: int) -> None:
        line = psql_line(options.host, port, ANALYST, policy.path.stem)
        tell(
            (f"{first}\n" if first else "")
            + "A small university is served on this machine, until Ctrl-C; the server's log comes below,\n"
            f"one JSON object a line. Paste into another terminal:\n\n  PGPASSWORD={PASSWORD} {line}\n\n"
            "and there:\n\n" + "".join(f"  {one}\n" for one in _TO_PASTE)
        )

    run_server([policy], options, announce)
