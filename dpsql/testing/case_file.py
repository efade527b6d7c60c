"""Grammar cases: plain text that says what a statement becomes, what is claimed for it, or why it is refused.

A file holds blocks divided by blank lines; a line that begins with `#` is a comment. A `policy NAME`
line holds for all cases below it, up to the next one (`policies/NAME.toml` and `NAME.sql`; the data set
`NAME_tame.sql` is one on which no bound bites). An accepted case::

    case sum-by-region epsilon=1 oracle
    SELECT region, SUM(amount) AS total FROM orders GROUP BY region
    ----
    rewritten
      SELECT … the backend SQL in full; a query starts with two blanks,
          and goes on with six
    measure sum coordinates=1 lattice=1/100 clamp=[0,5000] sensitivity=30000 scale=30000 epsilon=1
    groups declared 2
    charge epsilon=1 delta=0
    columns region:text total:numeric(38,2)
    post SELECT …

and a refused one::

    case raw epsilon=1
    SELECT name FROM orders
    ----
    refused PV002 at 1:8
    message column "name" is private and is not inside an aggregate
    hint aggregate it

Words after the name of a case: `epsilon=` the setting (required), `analyst=` who asks, `oracle` compare the
noiseless answer with the statement itself on the tame data, `ordered` in order as well, `engine=postgres` it is
of Postgres alone, whose words `rewritten` and the policy's SQL are in. Lines between the `case` line and the
statement: `parameter TYPE VALUE` binds $1, $2, … (TYPE: integer, numeric, double, text, boolean, date,
timestamp; `parameter null`); `oracle-sql …` is what the oracle runs instead.

The claims: one `measure` line for each measurement of noise, numbers as exact rationals, in units of the
lattice (the clamp is of one row's value); a `groups` line ends a release: `groups one`, `groups
declared N`, `groups chosen K of N` (the queries of what is measured of them then stand with the first K), or
`groups threshold tau=T delta=D`. `charge` is for the statement. In a zCDP dataset a measure says
`squared=… sigma=… rho=…` (a choice by rank: `sensitivity=… scale=… rho=…`), and the charge has `rho=…` too. Where the
budget is one by periods of the data, `slices=2024-01..2024-03,undated` says whose data the statement is charged for.
These lines, and a
refusal's code and position, are the privacy claim: they are derived by hand and never rewritten by `pytest
grammar_tests --rewrite-cases`, which refills `rewritten`, `columns`, `intermediate`, `post`, `message` and `hint`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from ..records import dataclass
from ..regex import regex

_WIDTH = 108
_NAME = regex(r"[a-z0-9][a-z0-9-]*")
_EXACT = regex(r"-?[0-9]+(/[1-9][0-9]*)?")
_DECIMAL = regex(r"[0-9]+(\.[0-9]+)?")
_CLAMP = regex(r"\[(-?[0-9]+),(-?[0-9]+)\]")
_REACH = regex(r"\[[0-9]+(,[0-9]+)*\]")
_REFUSED = regex(r"([0-9A-Z]{5})(?: at ([0-9]+:[0-9]+))?")
_BEFORE_SQL = ("parameter ", "oracle-sql ")


class CaseFileError(ValueError):
    """A case file that cannot be read: the message names the file and the line."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A measurement of noise: `clamp` holds one row's value, in lattice units; None for what is only counted.

    `reach`: of what is drawn together, the most that one row adds to each coordinate of a mask; the claim is in rows.
    `rho`: in a zCDP dataset, in place of epsilon. `is_gaussian`: the sensitivity is the square of one in L2.
    """

    kind: str
    coordinates: int
    lattice: Fraction | None
    clamp: tuple[int, int] | None
    sensitivity: int
    scale: Fraction
    epsilon: Fraction
    rho: Fraction | None = None
    is_gaussian: bool = False
    reach: tuple[int, ...] = ()

    def __str__(self) -> str:
        value = f" reach=[{','.join(map(str, self.reach))}]" if self.reach else ""
        value += (
            "" if self.clamp is None else f" lattice={self.lattice} clamp=[{self.clamp[0]},{self.clamp[1]}]"
        )
        moved, width = ("squared", "sigma") if self.is_gaussian else ("sensitivity", "scale")
        price = f"epsilon={self.epsilon}" if self.rho is None else f"rho={self.rho}"
        return (
            f"measure {self.kind} coordinates={self.coordinates}{value} {moved}={self.sensitivity} "
            f"{width}={self.scale} {price}"
        )


@dataclass(frozen=True, slots=True)
class ReleaseClaim:
    """A release: its measures, and its groups as the file writes them (`one`, `declared 2`, `threshold …`)."""

    measures: tuple[Measure, ...]
    groups: str

    def lines(self) -> list[str]:
        return [*map(str, self.measures), f"groups {self.groups}"]


@dataclass(frozen=True, slots=True)
class ExpectedCharge:
    """What the statement is charged; `slices`: to whose data, where the budget is one by periods."""

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = None
    slices: str = ""

    def __str__(self) -> str:
        rho = "" if self.rho is None else f" rho={self.rho}"
        slices = f" slices={self.slices}" if self.slices else ""
        return f"charge epsilon={self.epsilon} delta={self.delta}{rho}{slices}"


@dataclass(frozen=True, slots=True)
class Accepted:
    """What an answered statement becomes: `releases` and `charge` are the claim, the rest can be refilled."""

    rewritten: tuple[str, ...]
    releases: tuple[ReleaseClaim, ...]
    charge: ExpectedCharge | None
    columns: str
    intermediates: tuple[str, ...]
    post: str

    def claim(self) -> list[str]:
        """Return the lines that are never rewritten."""
        charge = [] if self.charge is None else [str(self.charge)]
        return [line for release in self.releases for line in release.lines()] + charge


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal: `code` and `position` ("line:column", "" for none) are the claim."""

    code: str
    position: str
    message: str
    hint: str

    def claim(self) -> list[str]:
        """Return the lines that are never rewritten."""
        return [f"refused {self.code}" + (f" at {self.position}" if self.position else "")]


Outcome = Accepted | Refused


@dataclass(frozen=True, slots=True)
class Case:
    """A statement and what must come of it. `line` is where it stands in `path`."""

    path: Path
    line: int
    policy: str
    name: str
    epsilon: Fraction
    sql: str
    expected: Outcome
    analyst: str = "local"
    is_compared: bool = False
    is_ordered: bool = False
    parameters: tuple[object, ...] = ()
    oracle_sql: str = ""
    engine: str = "duckdb"

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}/{self.name}"


@dataclass
class _CaseLines:
    """The lines of one case, split at `----`; `start` and `end` are where the expected lines stand."""

    path: Path
    line: int
    head: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def error(self, said: str) -> CaseFileError:
        return CaseFileError(f"{self.path.name}:{self.line}: {said}")


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file, in order.

    Raises:
        CaseFileError: the file is not in the format, or a name comes twice.
    """
    cases = [_read_case(policy, block) for policy, block in _blocks(path)]
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise CaseFileError(f"{path.name}: two cases are named {name}")
    return cases


def rewrite_case(path: Path, name: str, outcome: Outcome) -> None:
    """Refill a case's lines that are no claim from `outcome`; its claim, comments and statement stay.

    Raises:
        CaseFileError: there is no such case.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    for _, block in _blocks(path):
        if block.head.split()[1] == name:
            lines[block.start : block.end] = _refilled(block.after, outcome)
            path.write_text("\n".join(lines), encoding="utf-8")
            return
    raise CaseFileError(f"{path.name}: no case {name}")


# --- reading -------------------------------------------------------------------------------------------


def _blocks(path: Path) -> Iterator[tuple[str, _CaseLines]]:
    policy = ""
    block: _CaseLines | None = None
    is_after = False
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate([*lines, ""]):
        if block is None:
            words = line.split()
            if not words or line.startswith("#"):
                continue
            if words[0] == "policy" and len(words) == 2:
                policy = words[1]
                continue
            if words[0] != "case" or not policy:
                raise CaseFileError(f"{path.name}:{number + 1}: expected `policy NAME` or `case NAME …`")
            block, is_after = _CaseLines(path, number + 1, line), False
        elif not line.strip():
            if not is_after:
                raise block.error("no line ---- between the statement and what is expected")
            block.end = number
            yield policy, block
            block = None
        elif line == "----" and not is_after:
            is_after, block.start = True, number + 1
        elif is_after:
            block.after.append(line)
        elif not line.startswith("#"):
            block.before.append(line)


def _read_case(policy: str, block: _CaseLines) -> Case:
    words = block.head.split()
    if len(words) < 2 or not _NAME.fullmatch(words[1]):
        raise block.error("write: case NAME epsilon=…, a name of small letters, digits and hyphens")
    options = dict(word.partition("=")[::2] for word in words[2:])
    if unknown := set(options) - {"epsilon", "analyst", "oracle", "ordered", "engine"}:
        raise block.error(f"unknown word {min(unknown)}")
    epsilon, engine = options.get("epsilon", ""), options.get("engine", "duckdb")
    if not _DECIMAL.fullmatch(epsilon) or engine not in ("duckdb", "postgres"):
        raise block.error("epsilon= must be a decimal number, engine= postgres or duckdb")
    settings = [line for line in block.before if line.startswith(_BEFORE_SQL)]
    sql = "\n".join(block.before[len(settings) :])
    if block.before[: len(settings)] != settings:
        raise block.error("parameter and oracle-sql lines stand before the statement")
    oracle = " ".join(line.partition(" ")[2] for line in settings if line.startswith("oracle-sql"))
    given = tuple(_parameter(line, block) for line in settings if line.startswith("parameter"))
    return Case(
        block.path, block.line, policy, words[1], Fraction(epsilon), sql, _expected(block),
        options.get("analyst", "local"), "oracle" in options, "ordered" in options, given, oracle, engine,
    )  # fmt: skip


_PARAMETERS: dict[str, Callable[[str], object]] = {
    "boolean": {"true": True, "false": False}.__getitem__, "text": str, "integer": int, "numeric": Decimal,
    "double": float, "date": datetime.date.fromisoformat, "timestamp": datetime.datetime.fromisoformat,
}  # fmt: skip


def _parameter(line: str, block: _CaseLines) -> object:
    _, kind, *rest = line.split(" ", 2)
    if kind == "null" and not rest:
        return None
    try:
        return _PARAMETERS[kind](rest[0] if rest else "")
    except (KeyError, ValueError, ArithmeticError):
        raise block.error(f"{line!r} is no parameter: write parameter TYPE VALUE") from None


def _expected(block: _CaseLines) -> Outcome:
    fields: dict[str, list[str]] = {}
    claims: list[str] = []
    for line in block.after:
        if line.startswith("#"):
            continue
        if line.startswith(" "):
            if next(reversed(fields), "") != "rewritten":
                raise block.error("only the lines below `rewritten` are indented")
            if not line.startswith("      "):
                fields["rewritten"].append(line.strip())
            else:
                fields["rewritten"][-1] += " " + line.strip()
            continue
        word, _, rest = line.partition(" ")
        if word in ("measure", "groups"):
            claims.append(line)
        elif word == "rewritten" and not rest:
            fields["rewritten"] = []
        elif word in ("refused", "message", "hint", "charge", "columns", "intermediate", "post"):
            if word in fields and word != "intermediate":
                raise block.error(f"{word} comes twice")
            fields.setdefault(word, []).append(rest)
        else:
            raise block.error(f"unknown line {word}")
    first = {word: lines[0] for word, lines in fields.items() if lines}
    if "refused" in fields:
        match = _REFUSED.fullmatch(first["refused"])
        if match is None or claims or not set(fields) <= {"refused", "message", "hint"}:
            raise block.error("write: refused CODE [at LINE:COLUMN], message, hint")
        return Refused(match[1], match[2] or "", first.get("message", ""), first.get("hint", ""))
    if "message" in fields or "hint" in fields:
        raise block.error("a message without `refused`")
    charge = _charge(first["charge"], block) if "charge" in first else None
    releases = tuple(_releases(claims, block))
    return Accepted(
        tuple(fields.get("rewritten", ())), releases, charge, first.get("columns", ""),
        tuple(fields.get("intermediate", ())), first.get("post", ""),
    )  # fmt: skip


def _releases(claims: Iterable[str], block: _CaseLines) -> Iterator[ReleaseClaim]:
    measures: list[Measure] = []
    for line in claims:
        word, _, rest = line.partition(" ")
        if word == "measure":
            measures.append(_measure(rest, block))
        else:
            yield ReleaseClaim(tuple(measures), rest)
            measures = []
    if measures:
        raise block.error("the measures of a release end with a line `groups …`")


def _measure(text: str, block: _CaseLines) -> Measure:
    kind, *words = text.split()
    fields = dict(word.partition("=")[::2] for word in words)
    is_gaussian, price = "squared" in fields, "rho" if "rho" in fields else "epsilon"
    squared, width = ("squared", "sigma") if is_gaussian else ("sensitivity", "scale")
    wanted = {"coordinates", squared, width, price}
    if set(fields) not in (wanted, wanted | {"lattice", "clamp"}, wanted | {"reach"}):
        raise block.error(
            "write: measure KIND coordinates= [lattice= clamp=[L,H] | reach=[D,…]] sensitivity= scale= epsilon=; "
            "in a zCDP dataset squared= sigma= rho=, of a choice sensitivity= scale= rho="
        )
    clamp = None
    if "clamp" in fields:
        match = _CLAMP.fullmatch(fields["clamp"])
        if match is None:
            raise block.error("write clamp=[L,H], whole numbers")
        clamp = int(match[1]), int(match[2])
    reach: tuple[int, ...] = ()
    if "reach" in fields:
        if not _REACH.fullmatch(fields["reach"]):
            raise block.error("write reach=[D,…], whole numbers")
        reach = tuple(map(int, fields["reach"][1:-1].split(",")))
    exact = {key: _exact(fields[key], block) for key in fields if key not in ("clamp", "reach")}
    if any(exact[key].denominator != 1 for key in ("coordinates", squared)):
        raise block.error("coordinates and sensitivity are whole numbers")
    return Measure(
        kind, int(exact["coordinates"]), exact.get("lattice"), clamp, int(exact[squared]),
        exact[width], exact.get("epsilon", Fraction(0)), exact.get("rho"), is_gaussian, reach,
    )  # fmt: skip


def _charge(text: str, block: _CaseLines) -> ExpectedCharge:
    fields = dict(word.partition("=")[::2] for word in text.split())
    if set(fields) - {"rho", "slices"} != {"epsilon", "delta"}:
        raise block.error("write: charge epsilon=… delta=… [rho=…] [slices=…]")
    rho = _exact(fields["rho"], block) if "rho" in fields else None
    slices = fields.get("slices", "")
    return ExpectedCharge(_exact(fields["epsilon"], block), _exact(fields["delta"], block), rho, slices)


def _exact(text: str, block: _CaseLines) -> Fraction:
    if not _EXACT.fullmatch(text):
        raise block.error(f"{text} is not an exact number: write 3 or 1/3")
    return Fraction(text)


# --- rewriting -----------------------------------------------------------------------------------------

_CLAIMS = ("measure ", "groups ", "charge ", "refused ", "#")


def _refilled(after: list[str], outcome: Outcome) -> list[str]:
    kept = [line for line in after if line.startswith(_CLAIMS)]
    if isinstance(outcome, Refused):
        return [*kept, f"message {outcome.message}", *([f"hint {outcome.hint}"] if outcome.hint else [])]
    lines = ["rewritten"] if outcome.rewritten else []
    for query in outcome.rewritten:
        lines += _wrapped(query)
    lines += kept
    lines += [
        f"columns {outcome.columns}",
        *(f"intermediate {intermediate}" for intermediate in outcome.intermediates),
    ]
    return [*lines, f"post {outcome.post}"]


def _wrapped(query: str) -> list[str]:
    """Break a query at single blanks only, so that joining its lines with one blank gives it back."""
    lines, line = [], " "
    for word in re.split(r"(?<=\S) (?=\S)", query):
        if len(line) + len(word) >= _WIDTH and line.strip():
            lines.append(line)
            line = "     "
        line += " " + word
    return [*lines, line]
