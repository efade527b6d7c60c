"""`dpsql local`: randomised response on the respondents' side, and what the reports say together.

House rule: a message says where something is wrong, and never what stands there: it is somebody's answer.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..mechanisms import Channel, report
from ..mechanisms.randomized_response import exact_parameter, is_one_report_better, report_bits, unary_bit
from ..records import dataclass
from ..regex import regex
from ..words import terminal_text
from .faults import tell

if TYPE_CHECKING:
    from collections.abc import Callable

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

    return Coins.of(read_values(given["values"]), given["epsilon"], given["p"], is_unary=given["bits"])


@local.command()
@_with_coins
def randomize(file: Path, column: str, **given: Any) -> None:
    """Write FILE with each answer of a column randomised, by coins of this machine; other columns stay.

    FILE is CSV with a header. The true answers are kept nowhere: delete FILE if they are to be gone. What one
    person sends more than once adds up. Nothing is written unless all of FILE is right.
    """

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
    from ..mechanisms import Channel, Laplace
    from ..mechanisms.randomized_response import exact_parameter, is_one_report_better, unary_bit

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


# --- files of answers on the respondents' side: CSV with a header, read whole before anything is written ----


_NUMBER = regex(r"[0-9]{1,9}(\.[0-9]{0,30})?|\.[0-9]{1,30}")
_NORMAL = 1.959964
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Coins:
    """By which coins answers are sent: of the listed values one, or a bit for each (`is_unary`)."""

    values: tuple[str, ...]
    channel: Channel
    is_unary: bool

    @classmethod
    def of(cls, values: tuple[str, ...], epsilon: str | None, p: str | None, *, is_unary: bool) -> Coins:
        """Return the coins that options ask for. Raises UsageError."""
        if (epsilon is None) == (p is None):
            raise click.UsageError("Give --epsilon or --p, and not both.")
        if is_unary and epsilon is None:
            raise click.UsageError("--bits goes with --epsilon.")
        given = _number("--epsilon" if p is None else "--p", epsilon if p is None else p)
        try:
            if is_unary:
                channel = unary_bit(given)
            else:
                channel = (
                    Channel.of_truth(len(values), given) if p else Channel.of_epsilon(len(values), given)
                )
        except ValueError as error:
            raise click.UsageError(f"{str(error).capitalize()}.") from None
        return cls(values, channel, is_unary)

    @property
    def advice(self) -> str:
        """Which of the two encodings has the smaller error, and why."""
        size, loss = len(self.values), self.channel.loss
        most = 3 * math.exp(loss) + 2
        if is_one_report_better(size, Fraction(loss)):
            better, sign = "one value for each answer", "<"
        else:
            better, sign = "a bit for each value (--bits)", ">="
        rule = f"{size} {sign} 3 e^epsilon + 2 = {most:.1f}"
        return f"of {size} values at epsilon {loss:.4g}, {better} has the smaller error: {rule}"

    def declared(self, column: str) -> list[str]:
        """Return what a policy says of the columns that are sent."""
        if not self.is_unary:
            listed = ", ".join(_quoted(value) for value in self.values)
            channel = self.channel
            coins = (
                f"p = {_decimal(channel.p)}"
                if channel.epsilon is None
                else f"epsilon = {_decimal(channel.epsilon)}"
            )
            return [f"{_quoted(column)} = {{ values = [{listed}], randomized = {{ {coins} }} }}"]
        coins = f"p = {_decimal(self.channel.p)}, q = {_decimal(self.channel.q)}"
        return [
            f"{_quoted(name)} = {{ values = [false, true], randomized = {{ {coins} }} }}"
            for name in bit_columns(column, self.values)
        ]


def _number(option: str, text: str | None) -> Fraction:
    if text is None or not _NUMBER.fullmatch(text):
        raise click.UsageError(f"{option} is a plain decimal number, like 0.75.")
    return exact_parameter(text)


def _quoted(text: str) -> str:
    from ..policy.section import quote_text

    return quote_text(text)


def _decimal(number: Fraction) -> str:
    from ..policy.section import plain

    return plain(number)


def read_values(text: str) -> tuple[str, ...]:
    """Return the values of a list with commas, as a line of CSV has them. Raises UsageError."""
    try:
        (row,) = csv.reader([text], strict=True)
    except (csv.Error, ValueError):
        raise click.UsageError("--values is a list with commas, like yes,no.") from None
    if len(set(row)) < len(row):
        raise click.UsageError("A value of --values is listed twice.")
    if len(row) < 2:
        raise click.UsageError("--values needs two or more: of one there is nothing to randomise.")
    return tuple(row)


@dataclass(frozen=True, slots=True)
class Answers:
    """A file of answers: its header and its rows, all of the header's width."""

    name: str
    header: list[str]
    rows: list[list[str]]

    def place(self, column: str) -> int:
        """Return which column has a name. Raises UsageError."""
        if self.header.count(column) != 1:
            many = "no column" if column not in self.header else "more than one column"
            raise click.UsageError(f'{self.name} has {many} "{column}".')
        return self.header.index(column)

    def numbers(self, column: str, values: Sequence[str]) -> list[int]:
        """Return a column as numbers of values. Raises UsageError."""
        place, known = self.place(column), {value: number for number, value in enumerate(values)}
        found = []
        for line, row in enumerate(self.rows, 2):
            if row[place] not in known:
                raise click.UsageError(f"{self.name}, row {line}: the answer is not one of --values.")
            found.append(known[row[place]])
        return found


def read_answers(path: Path) -> Answers:
    """Return a file's answers. Raises UsageError."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file, strict=True))
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise click.UsageError(f"{path} is no CSV file in UTF-8.") from None
    if not rows:
        raise click.UsageError(f"{path} is empty; its first line names the columns.")
    header, *body = rows
    for line, row in enumerate(body, 2):
        if len(row) != len(header):
            raise click.UsageError(f"{path}, row {line}: {len(row)} cells, and the header has {len(header)}.")
    return Answers(str(path), header, body)


def bit_columns(column: str, values: Sequence[str]) -> list[str]:
    """Return the names of the columns that have a bit for each value."""
    return [f"{column}_{value}" for value in values]


def sent_file(answers: Answers, column: str, coins: Coins) -> str:
    """Return the file to send: each answer randomised, all other columns as they are. Raises UsageError."""
    place, truths = answers.place(column), answers.numbers(column, coins.values)
    names = bit_columns(column, coins.values) if coins.is_unary else [column]
    others = answers.header[:place] + answers.header[place + 1 :]
    if set(names) & set(others):
        raise click.UsageError(f"{answers.name} has a column of the name of one that would be sent.")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*answers.header[:place], *names, *answers.header[place + 1 :]])
    for row, true in zip(answers.rows, truths, strict=True):
        if coins.is_unary:
            said = [str(bit).lower() for bit in report_bits(len(coins.values), true, coins.channel)]
        else:
            said = [coins.values[report(coins.channel, true)]]
        writer.writerow([*row[:place], *said, *row[place + 1 :]])
    return text.getvalue()


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of one value: how many reported it, how many it is true of, and how far off that is 95 times in 100."""

    value: str
    reported: int
    estimate: float
    half_width: float


def estimated(answers: Answers, column: str, coins: Coins) -> list[Estimate]:
    """Return how many answers each value is true of, by the inverse of the channel. Raises UsageError."""
    total = len(answers.rows)
    if coins.is_unary:
        counts = [_true_bits(answers, name) for name in bit_columns(column, coins.values)]
        inside, outside = coins.channel.weights(frozenset({1}))
    else:
        said = answers.numbers(column, coins.values)
        counts = [said.count(number) for number in range(len(coins.values))]
        inside, outside = coins.channel.weights(frozenset({0}))
    found = []
    for value, count in zip(coins.values, counts, strict=True):
        estimate = count * inside + (total - count) * outside
        variance = count * (inside**2 - inside) + (total - count) * (outside**2 - outside)
        found.append(Estimate(value, count, float(estimate), _NORMAL * math.sqrt(variance)))
    return found


def _true_bits(answers: Answers, name: str) -> int:
    place = answers.place(name)
    for line, row in enumerate(answers.rows, 2):
        if row[place].lower() not in _WORDS:
            raise click.UsageError(f"{answers.name}, row {line}: a bit is true or false.")
    return sum(_WORDS[row[place].lower()] for row in answers.rows)
