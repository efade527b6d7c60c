"""Every error a person can meet, as one table of codes and one small tree of exceptions.

House rules:

1. A message is built from the statement's own text and the public schema. It never holds a value
   from the data, and never a word of the engine's own error text (law L6, soundness.md 4.3).
2. The class says who has to act: the analyst (`Refusal`, `BudgetExhausted`), the owner
   (`PolicyError`, `LedgerError`), or nobody yet (`EngineFailure`, constant text).
3. A code names one kind of refusal; `CODES` is the list that the manual shows and that the grammar
   cases must cover.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

CODES = MappingProxyType(
    {
        # Postgres' own codes, where one exists.
        "42601": "syntax error",
        "42703": "no such column",
        "42702": "ambiguous column",
        "42P01": "no such table (missing or not declared: the same)",
        "42883": "no such function, or not for these argument types",
        "42804": "types do not match",
        "42803": "a column is neither grouped nor aggregated",
        "42P02": "no such parameter",
        "42P10": "bad ordinal or column reference",
        "42P19": "a recursive query that is none",
        "42P20": "a window frame that ends before it starts",
        "42704": "no such setting",
        "42501": "not permitted",
        "22023": "bad value for a setting or parameter",
        "54000": "rows without end: a series, a query of the system catalog; more public rows than the owner gives",
        "54001": "statement too complex: too large, too many rows, too much memory, a recursion without end",
        "0A000": "statement or clause not supported",
        # An analyst's own tables.
        "42P07": "there is a table or view of this name",
        "42P06": "there is a schema of this name",
        "3F000": "no such schema of one's own",
        "42701": "a column is named twice",
        "42809": "a table where a view is meant, or a view where a table is",
        "2BP01": "a schema that is dropped still has tables",
        "22P04": "a row that is copied in is not written right",
        "23502": "NULL for a column that is NOT NULL",
        "40001": "another session has changed the same tables",
        "53100": "the workspace is full",
        # Class PV: privacy refusals.
        "PV001": "this form is not in the grammar that dpsql can prove private",
        "PV002": "a private column stands outside an aggregate",
        "PV003": "a relation whose rows have no single owner",
        "PV004": "this subquery over private rows has no private reading",
        "PV005": "a group key would single out people",
        "PV101": "column bounds are not declared",
        "PV102": "contribution bounds are not declared",
        "PV103": "undeclared group keys need a delta",
        "PV104": "no period that is read is over",
        "PV201": "the sensitivity cannot be bounded",
        "PV202": "the expression could fail on some row",
        "PV203": "too many group keys",
        "PV301": "bad privacy parameter",
        "PV302": "a comparison with a value that the policy does not list",
        # Resources.
        "53200": "no room for answers: what is kept for an analyst, or for all, is at its limit",
        "53V01": "the privacy budget is spent",
        "55006": "the database is busy: another program has its file open",
        "57014": "statement cancelled",
        "P0002": "no group is shown, where that is asked to be an error",
        "57V01": "post-processing took too long",
        "58V01": "the engine failed",
        "F0V01": "the policy is wrong",
        "F0V02": "the ledger cannot be used",
        "XX000": "the plan could not be verified, and is not run",
    }
)
"""SQLSTATE -> what it means, for all codes that dpsql raises."""

UNLISTED = "PV302"
"""Of a refusal that a prompt asks about: whether the comparison was meant."""

ON_THE_WIRE = MappingProxyType(
    {
        **dict.fromkeys(("PV002", "PV003", "PV005"), "42501"),
        **dict.fromkeys(
            ("PV001", "PV004", "PV101", "PV102", "PV103", "PV104", "PV201", "PV202", "PV203"), "0A000"
        ),
        **dict.fromkeys(("PV301", "PV302"), "22023"),
        "53V01": "53400",
        "57V01": "57014",
        "58V01": "58000",
        **dict.fromkeys(("F0V01", "F0V02"), "F0000"),
    }
)
"""A code of dpsql's own -> Postgres' code that a driver is sent in its place: one that none knows is a server's bug
to them. 42501 is for what would show people, 0A000 for what cannot be proved or is not declared; a budget that is spent
is a limit that the owner configured (53400)."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the statement's text: line and column count from 1, offset from 0 in characters."""

    line: int
    column: int
    offset: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class DpsqlError(Exception):
    """The base of all errors that dpsql raises on purpose.

    Attributes: `sqlstate` (a key of `CODES`), `message` (one sentence), `hint` (what to write or
    declare instead), `owner_hint` (the same for who has the policy file in hand; None where it is the same), `position`
    (where in the statement, when known), `cost` (what the statement had spent when it failed, as a clause; None where
    nothing can have been).
    """

    default_sqlstate: ClassVar[str] = "58V01"

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        hint: str | None = None,
        position: Position | None = None,
        owner_hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate if sqlstate is not None else self.default_sqlstate
        if self.sqlstate not in CODES:
            raise AssertionError(f"unlisted SQLSTATE {self.sqlstate}")
        self.message = message
        self.hint = hint
        self.owner_hint = owner_hint
        self.position = position
        self.cost: str | None = None

    def __str__(self) -> str:
        where = f" at {self.position}" if self.position else ""
        cost = f"\nDETAIL: {self.cost}" if self.cost else ""
        hint = f"\nHINT: {self.hint}" if self.hint else ""
        return f"{self.sqlstate}{where}: {self.message}{cost}{hint}"


class Refusal(DpsqlError):
    """The statement is not answered: a decision made from the text, the policy and the schema alone."""

    default_sqlstate = "PV001"


class Unverified(Refusal):
    """A plan that is not proved once more to hold what it claims: a fault of dpsql's own, or a form without a rule.

    `rule` is for the owner's log alone and is never part of `str()`.
    """

    default_sqlstate = "XX000"

    def __init__(self, rule: str) -> None:
        super().__init__(
            "the plan could not be verified",
            hint="another form of the question may do; tell the owner, whose log says what is missing and whose "
            'policy may say verify = "log"',
        )
        self.rule = rule


class BudgetExhausted(DpsqlError):
    """The charge does not fit under a cap; nothing was charged and nothing was run."""

    default_sqlstate = "53V01"


class EngineFailure(DpsqlError):
    """The statement was not brought to its end. Constant text for the analyst; the charge stays spent.

    `detail` is for the owner's log alone and is never part of `str()`.
    """

    default_sqlstate = "58V01"

    def __init__(self, detail: str = "", *, sqlstate: str | None = None, limit: str | None = None) -> None:
        """`limit`: which limit ended it, in words that every analyst may read, in place of the code's message."""
        text, hint = _FAILURES.get(sqlstate or "", _FAILED)
        super().__init__(limit or text, sqlstate=sqlstate, hint=hint)
        self.limit = limit
        self.detail = detail


class NothingShown(DpsqlError):
    """No group of the answer is shown, and the analyst has asked for an error then; the charge stays spent."""

    default_sqlstate = "P0002"


class FilesChanged(EngineFailure):
    """The data files are not those that were recorded, or none were: nothing is answered until the owner has acted."""

    def __init__(self, detail: str, *, is_recorded: bool) -> None:
        super().__init__(detail)
        if is_recorded:
            self.message = "the data files are not the ones that were recorded"
            self.hint = (
                "the owner looks at them with dpsql check, and takes them as they are with dpsql refresh"
            )
            self.owner_hint = "look at them with dpsql check, and take them as they are with dpsql refresh"
        else:
            self.message = "the data files are not recorded yet"
            self.hint = "the owner runs dpsql budget create"
            self.owner_hint = "run dpsql budget create"


_FAILED = ("the database could not answer this statement", "the owner's log says more")
_FAILURES: dict[str, tuple[str, str | None]] = {
    "57014": ("the statement was cancelled", None),
    "53200": (
        "there is no room for another answer",
        "read, or close, what was asked before; then ask again",
    ),
    "55006": ("the database is busy: another program has its file open", "ask again in a moment"),
    "57V01": (
        "post-processing took too long",
        "ask in a simpler form, or with a longer time limit; what is released already is not charged again",
    ),
}
"""Messages and hints of an `EngineFailure` by its code; of all other codes, `_FAILED`."""


class PolicyError(DpsqlError):
    """The owner's policy file is wrong: the message names the file, the key and the fix."""

    default_sqlstate = "F0V01"


class LedgerError(DpsqlError):
    """The ledger cannot be trusted or reached; nothing is answered until the owner has mended it."""

    default_sqlstate = "F0V02"


class LedgerAway(LedgerError):
    """The ledger cannot be reached now: its server, or its disk, is away, does not answer, or has no room."""


class LedgerMissing(LedgerError):
    """There is neither a ledger nor a log of one, so nothing was ever spent here, as far as anybody can see."""
