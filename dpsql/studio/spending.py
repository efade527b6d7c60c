"""The owner's: what was spent, by whom, until when it lasts, what was refused; and what another policy would do.

House rules:

1. Nothing is written: the page shows a text and its difference from the file, and the owner saves it.
2. What is said of a statement follows from the text, the schema and stored sums: its plan reads no row.
3. From the ledger, the policy and the log of refusals alone. No row is read and nothing is charged.
"""

from __future__ import annotations

import difflib
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from ..budget import Entry
from ..engine.dataset import Dataset
from ..engine.refusals import Refused
from ..errors import CODES, EngineFailure, LedgerError, PolicyError
from ..policy import parse_policy
from .desk import BadRequest, Body, Seat, TypingSession, statement_at
from .pricing import outlook, priced
from .report import Facts, facts_of, report_of

_MOST_STATEMENTS = 30
_MOST_TEXT = 400_000
_ONE_AT_A_TIME = threading.Lock()


def policy(seat: Seat, _: Body) -> Mapping[str, Any]:
    """Return the policy's text as it is in the file, and statements to try it with: the ledger's newest."""
    dataset = seat.desk.dataset
    texts = (" ".join(entry.statement.split()) for entry in dataset.store.log(_MOST_STATEMENTS * 10))
    asked = [one for one in dict.fromkeys(texts) if not one.lower().startswith("dpsql ")]
    return {
        "name": dataset.policy.source,
        "text": dataset.policy.path.read_text(encoding="utf-8"),
        "statements": asked[:6] or _usual(dataset),
    }


def try_policy(seat: Seat, body: Body) -> Mapping[str, Any]:
    """Return for each statement its price and errors under the file's policy and under a text, or why not."""
    dataset, text, statements = seat.desk.dataset, body.text("text"), body.texts("statements")
    if len(statements) > _MOST_STATEMENTS or len(text) > _MOST_TEXT:
        raise BadRequest
    written = dataset.policy.path.read_text(encoding="utf-8")
    lines = difflib.unified_diff(
        written.splitlines(), text.splitlines(), "as it is", "as it would be", lineterm="", n=2
    )
    with _ONE_AT_A_TIME:
        before = [_outlook(dataset, seat.desk.name, one) for one in statements]
        found: dict[str, Any] = {"difference": list(lines), "before": before, "after": None}
        try:
            other = dataset.imagined(parse_policy(text, dataset.policy.path))
        except (PolicyError, EngineFailure, LedgerError) as error:
            return found | {"wrong": {"message": error.message, "hint": error.hint}}
        after = [_outlook(other, seat.desk.name, one) for one in statements]
    return found | {"after": after}


def _outlook(dataset: Dataset, name: str, sql: str) -> dict[str, Any]:
    """Return what a statement would cost alone, and its errors; nothing that is stored is used."""
    piece = statement_at(sql, 0)
    with closing(TypingSession(dataset, name, is_shared=True)) as session:
        session.settings = session.settings.set("dpsql.reuse", "off", dataset.policy)
        return outlook(piece, lambda text: priced(session.explain(text)), is_owner=True)


def _usual(dataset: Dataset) -> list[str]:
    """Return a count of each table of people's."""
    tables = dataset.catalog.tables.items()
    return [f"SELECT COUNT(*) FROM {name}" for name, table in tables if table.unit is not None][:6]


_MOST_ENTRIES = 2_000
_MOST_REFUSALS = 1_000


def spending(seat: Seat, _: Body) -> Mapping[str, Any]:
    """Return all that is spent, day by day, and the newest charges and refusals one by one."""
    dataset = seat.desk.dataset
    found, now = facts_of(dataset, ()), datetime.now(UTC)
    entries = dataset.store.log(_MOST_ENTRIES)
    return {
        "today": now.date().isoformat(),
        "unit": found.unit,
        "spent": found.amount(found.spent),
        "cap": found.amount(found.cap),
        "share": _part(found.spent, found.cap),
        "left": found.left_in_words,
        "delta": found.delta,
        "as_epsilon": found.as_epsilon,
        "rations": found.rations,
        "forecast": _forecast(found),
        "days": [
            {
                "day": one.day.isoformat(),
                "left": _part(one.left, found.cap),
                "spent": {name: _part(amount, found.cap) for name, amount in one.spent.items()},
            }
            for one in found.days
        ],
        "spenders": [
            {
                "name": one.name,
                "spent": found.amount(one.spent),
                "cap": None if one.cap is None else found.amount(one.cap),
                "share": _part(one.spent, found.cap if one.cap is None else one.cap),
                "left": one.left,
            }
            for one in found.spenders
        ],
        "tables": _by_table(entries, found),
        "periods": None if found.periods is None else [
            {"name": one.name, "spent": found.amount(one.spent), "share": _part(one.spent, found.cap)}
            for one in found.periods
        ],
        "entries": [_entry(one, found) for one in entries],
        "is_cut": len(entries) == _MOST_ENTRIES,
        "refusals": [_refused(one) for one in dataset.refusals.read()[:_MOST_REFUSALS]],
        "refusals_hold": dataset.policy.server.refusals,
    }  # fmt: skip


def errors(seat: Seat, body: Body) -> Mapping[str, Any]:
    """Return how far off a statement's numbers are expected to be under the policy of today. Nothing is read."""
    desk, piece = seat.desk, statement_at(body.text("statement"), 0)
    return outlook(
        piece,
        lambda text: desk.plan(lambda session: priced(session.explain(text)), desk.settings),
        is_owner=True,
    )


def report(seat: Seat, _: Body) -> Mapping[str, Any]:
    """Return all of it, the policy in sentences and a bench for other settings as one page, to be kept as a file."""
    return {"page": report_of(seat.desk.dataset)}


def _forecast(found: Facts) -> dict[str, Any]:
    one = found.forecast
    return {
        "days": one.days,
        "spent": _part(one.spent, found.cap),
        "ends": None if one.day is None else one.day.isoformat(),
    }


def _by_table(entries: Sequence[Entry], found: Facts) -> list[dict[str, Any]]:
    """Return the charges of the releases that read each table; one that reads two counts for both."""
    spent, number = Counter[str](), Counter[str]()
    for entry in entries:
        for name in _tables(entry, found):
            spent[name] += entry.charge.amount(in_rho=found.status.in_rho)
            number[name] += 1
    return [
        {
            "name": name,
            "spent": found.amount(amount),
            "share": _part(amount, found.cap),
            "charges": number[name],
        }
        for name, amount in spent.most_common()
    ]


def _tables(entry: Entry, found: Facts) -> list[str]:
    names = entry.note.partition(":")[0].split(", ")
    return [name for name in names if name in found.policy.tables]


def _entry(entry: Entry, found: Facts) -> dict[str, Any]:
    return {
        "at": entry.at,
        "analyst": entry.analyst,
        "statement": entry.statement,
        "note": entry.note,
        "spent": found.amount(entry.charge.amount(in_rho=found.status.in_rho)),
        "share": _part(entry.charge.amount(in_rho=found.status.in_rho), found.cap),
        "tables": _tables(entry, found),
        "state": entry.state.value,
        "noise": entry.law.text,
    }


def _refused(one: Refused) -> dict[str, Any]:
    return {
        "at": one.at,
        "analyst": one.analyst,
        "code": one.code,
        "means": CODES.get(one.code, ""),
        "statement": one.statement,
        "message": one.message,
        "is_of_budget": one.is_of_budget,
    }


def _part(amount: int, whole: int) -> float:
    return amount / whole if whole else 0.0


ENDPOINTS = {
    "spending": spending,
    "errors": errors,
    "report": report,
    "policy": policy,
    "try_policy": try_policy,
}
