"""`dpsql demo`: a small university, and a walk through what dpsql does with it; or, as a challenge, one with a secret.

The challenge's flag is the GPA of student 7, drawn anew from 201 values by the operating system. Epsilon is 1 for
everybody together, so a guess is right with probability e / 201 + delta at most, whatever was asked: Pr[v is guessed |
the flag is v] is at most e · Pr[v is guessed | the student is not there] + delta, and these last sum up to 1 over all
v, each of which is the flag with probability 1 / 201.

House rule: only files that the challenge itself names are ever removed, and only on `--fresh`.
"""

from __future__ import annotations

import math
import secrets
from pathlib import Path

import click

from .demo_folder import (
    ANALYST,
    DATABASE,
    MAIN_POLICY,
    PASSWORD,
    campus_policy,
    fill_folder,
    make_folder,
    write_database,
)
from .faults import tell
from .owner import open_ledger, write_private
from .serve import psql_line, run_server

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
        from .demo_tour import walk_months  # the engine takes long to load

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


POLICY = "challenge.toml"
_LEDGER = "challenge-ledger.db"
_PERSON = 7
_VALUES = 201
_EPSILON = 1

TRIED = {
    "laws/test_searched.py": "statements of every shape on neighbouring databases, against the claimed sensitivity",
    "laws/test_audit.py": "the best test between two neighbours, with the noise that is really used",
    "laws/test_non_interference.py": "errors, charges, types and numbers of rows, which must not depend on one person",
    "laws/test_same_answer.py": "asking again, in other words or another order, to average the noise out",
    "laws/test_charge_first.py": "ending the process at every step of a charge",
    "laws/test_attack_bounding.py": "one person with very many rows, groups or values",
    "laws/test_default_deny.py": "what the policy does not declare: columns, tables, functions, the catalog",
    "limits": "memory, files and time that one person's rows could exhaust",
}
"""What the tests try, by their names in `dpsql/tests`."""


def make_challenge(folder: Path, *, fresh: bool) -> bool:
    """Make the challenge in a folder, or leave the one that is there; return whether it was made now.

    Raises click.UsageError when the folder holds anything else.
    """
    return fill_folder(folder, "demo --challenge", [POLICY], (DATABASE, _LEDGER), _write, fresh=fresh)


def _write(folder: Path) -> None:
    write_database(folder / DATABASE)
    _hide_flag(folder / DATABASE)
    write_private(folder / POLICY, campus_policy(ledger=_LEDGER, epsilon=_EPSILON, of_analyst=_EPSILON))
    with open_ledger(folder / POLICY, create=True):
        pass


def _hide_flag(database: Path) -> None:
    import duckdb

    with duckdb.connect(str(database)) as connection:
        flag = 200 + secrets.randbelow(_VALUES)
        connection.execute(f"UPDATE student SET gpa = ($1 / 100)::DECIMAL(3,2) WHERE id = {_PERSON}", [flag])
    database.chmod(0o600)


def told() -> str:
    """Return the challenge's page: the flag, what breaks the promise, what was tried, how to report."""
    most = 100 * math.exp(_EPSILON) / _VALUES
    tried = "\n".join(f"  {name:<{max(map(len, TRIED))}}  {what}" for name, what in TRIED.items())
    return f"""\
THE FLAG is the GPA of student {_PERSON}, Theo Evans: one of {_VALUES} values, 2.00 to 4.00, drawn for this folder
alone. Epsilon is {_EPSILON}, for everybody together and for ever. You are the analyst {ANALYST}, password {PASSWORD},
and may read the policy, this program and all of its code. The database's file and the ledger are the owner's alone.

WHAT WOULD BREAK THE PROMISE
  a way to name flags that is right more often than {most:.1f} % of the time (e^{_EPSILON} / {_VALUES}; 0.5 % by blind
  guessing): three of ten, each of a folder made anew, would come by luck once in 3,600 such tries at most
  an answer, an error, a charge or a plan that depends on Theo beyond that; a charge that is lost or given back
  a statement that reaches what the policy does not declare, or that writes
  a login without the password; a message that stops the server
WHAT WOULD NOT: one lucky guess, facts about all students, reading the owner's files, how long answers take within
what the threat model says (dpsql docs threat-model)

WHAT WAS TRIED, by the names of the tests in dpsql/tests; each attack by name: dpsql docs soundness attacks
{tried}

TO REPORT IT: SECURITY.md, privately. To check a guess, which tells the flag: dpsql demo --challenge --guess 3.14
"""


def told_of_guess(folder: Path, guess: float) -> str:
    """Say whether a guess is right, and what the flag was. Raises click.UsageError."""
    import duckdb

    if not (folder / POLICY).is_file():
        raise click.UsageError(f"{folder} holds no challenge. Make one: dpsql demo --challenge {folder}")
    try:
        with duckdb.connect(str(folder / DATABASE), read_only=True) as connection:
            (flag,) = connection.execute(
                f"SELECT gpa::DOUBLE FROM student WHERE id = {_PERSON}"
            ).fetchone() or (0.0,)
    except duckdb.Error:
        raise click.UsageError(f"{folder / DATABASE} cannot be read.") from None
    said = "Right" if math.isclose(guess, flag, abs_tol=0.001) else "Wrong"
    return f"{said}: the flag was {flag:.2f}. For a new one: dpsql demo --challenge --fresh {folder}"
