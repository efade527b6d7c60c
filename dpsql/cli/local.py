"""`dpsql local`: randomised response on the respondents' side, and what the reports say together."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .failure import tell
from .text_cells import terminal_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from .local_answers import Coins

__all__ = ["local"]

_SIZES = (100, 10_000, 1_000_000)
_VALUES = (2, 5, 20, 100)


class _Local(click.Group):
    """A group whose first argument may be left out where it is `randomize`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["randomize", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_Local)
def local() -> None:
    """Randomise answers before they are sent, so that nobody need be trusted with the true ones.

    \b
      dpsql local answers.csv --column drug --values a,b,c,d --epsilon 1 > sent.csv
      dpsql local estimate sent.csv --column drug --values a,b,c,d --epsilon 1

    Needs no policy, no database and no ledger. `dpsql local FILE` is `dpsql local randomize FILE`.
    """


def _with_coins(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say which answers there are, and by which coins they are sent."""
    for decorator in (
        click.option("--bits", is_flag=True, help="A column of true and false for each value (OUE)."),
        click.option("--p", metavar="P", help="Tell the truth with this probability, else another value."),
        click.option(
            "--epsilon", metavar="E", help="Tell the truth with probability e^E / (e^E + values - 1)."
        ),
        click.option("--values", required=True, metavar="A,B,…", help="All answers that could be given."),
        click.option("--column", required=True, metavar="NAME", help="The column that has the answers."),
        click.argument("file", type=click.Path(dir_okay=False, path_type=Path)),
    ):
        command = decorator(command)
    return command


def _coins(given: dict[str, Any]) -> Coins:
    from .local_answers import Coins, read_values

    return Coins.of(read_values(given["values"]), given["epsilon"], given["p"], is_unary=given["bits"])


@local.command()
@_with_coins
def randomize(file: Path, column: str, **given: Any) -> None:
    """Write FILE with each answer of a column randomised, by coins of this machine; other columns stay.

    FILE is CSV with a header. The true answers are kept nowhere: delete FILE if they are to be gone. What one
    person sends more than once adds up. Nothing is written unless all of FILE is right.
    """
    from .local_answers import read_answers, sent_file

    coins, answers = _coins(given), read_answers(file)
    text = sent_file(answers, column, coins)
    click.echo(text, nl=False)
    tell(f"loss {coins.channel.loss:.6g} for each answer, towards everybody who sees it")
    others = [terminal_text(name) for name in answers.header if name != column]
    if others:
        tell(f"sent as they are: {', '.join(others)}")
    tell(coins.advice)
    tell("for the policy of who collects them:")
    for line in coins.declared(column):
        tell(f"  {terminal_text(line)}")


@local.command()
@_with_coins
def estimate(file: Path, column: str, **given: Any) -> None:
    """Say how many of the answers in FILE, which were randomised, are which: unbiased, with error bars.

    By the same formula as a statement over a `randomized` column of a public table.
    """
    from .local_answers import estimated, read_answers

    coins, answers = _coins(given), read_answers(file)
    found = estimated(answers, column, coins)
    width = max(len("answer"), *(len(terminal_text(one.value)) for one in found))
    click.echo(f"{'answer':{width}}  {'reported':>9}  {'estimate':>11}  {'± at 95 %':>10}")
    for one in found:
        shown = terminal_text(one.value)
        click.echo(f"{shown:{width}}  {one.reported:>9}  {one.estimate:>11.1f}  {one.half_width:>10.1f}")
    click.echo(f"({len(answers.rows)} answers)")


@local.command()
@click.option("--epsilon", required=True, metavar="E", help="The loss: of each answer, or of each person.")
def errors(epsilon: str) -> None:
    """Show how far off a share is at one epsilon: with one noise for all (central), and coins for each (local).

    95 times in 100, of a share of 1 in as many as there are values; of these people themselves, not of others whom
    they may stand for.
    """
    from ..mechanisms import Channel, Laplace, exact_parameter, is_one_report_better, unary_bit

    _coins({"values": "a,b", "epsilon": epsilon, "p": None, "bits": True})  # says what is wrong with it
    given = exact_parameter(epsilon)
    noise = Laplace(1 / given).half_width(Fraction(1, 20))
    click.echo(f"{'people':>9}  {'central':>9}" + "".join(f"  {f'local, of {k}':>13}" for k in _VALUES))
    for people in _SIZES:
        cells = [f"{noise / people:>9.2g}"]
        for size in _VALUES:
            is_one = is_one_report_better(size, given)
            channel = Channel.of_epsilon(size, given) if is_one else unary_bit(given)
            inside, outside = channel.weights(frozenset({1}))
            share = 1 / size
            says = share * float(channel.p) + (1 - share) * float(channel.q)
            variance = says * float(inside**2 - inside) + (1 - says) * float(outside**2 - outside)
            half = 1.959964 * math.sqrt(variance / people)
            cells.append(f"{f'{half:.2g}' + (' ' if is_one else '*'):>13}")
        click.echo(f"{people:>9}  " + "  ".join(cells).rstrip())
    click.echo("* a bit for each value (--bits), where that is better than one value")
