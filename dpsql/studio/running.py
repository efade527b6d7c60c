"""A statement run: its answer, what it cost, and what this desk has asked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from ..budget import ZERO, Charge, Entry
from ..engine.answer import Receipt, charged_text, said_epsilon
from ..errors import DpsqlError
from ..mechanisms import NANO
from ..sql.statement import ResetSetting, SetSetting, parse_statement
from ..words import terminal_text
from .answers import csv_text, shown_answer, widths_of
from .body import BadRequest, Body, refusal, statement_at
from .desk import Desk
from .door import Seat
from .naming import left_of

__all__ = ["ENDPOINTS"]

_MOST_ENTRIES = 2_000
_MOST_SHOWN = 200


def run(seat: Seat, body: Body) -> Mapping[str, Any]:
    """Run the statement at the cursor. It is charged, unless it is stored or asks nothing private."""
    desk, text = seat.desk, body.text("text")
    piece = statement_at(text, body.number("cursor", len(text)))
    if piece is None:
        return {"state": "empty"}
    try:
        sets = isinstance(parse_statement(piece.text), SetSetting | ResetSetting)
        settings = None if sets else desk.under(**body.controls())
        asked = desk.run(piece.text, settings)
    except DpsqlError as error:
        return {
            "state": "refused",
            "sql": piece.text,
            "refusal": refusal(error, piece, is_owner=seat.is_owner),
            "left": left_of(desk),
        }
    return {
        "state": "answered",
        "number": asked.number,
        "sql": asked.sql,
        "at": asked.at,
        **shown_answer(asked.answer),
        "left": left_of(desk),
    }


def cancel(seat: Seat, _: Body) -> Mapping[str, Any]:
    """Stop the running statement."""
    seat.desk.cancel()
    return {}


def csv(seat: Seat, body: Body) -> Mapping[str, Any]:
    """Return an answer of this desk as CSV, all of its rows."""
    asked = seat.desk.asked(body.number("number"))
    if asked is None:
        raise BadRequest
    return {"csv": csv_text(asked.answer)}


def again(seat: Seat, body: Body) -> Mapping[str, Any]:
    """Return an answer of this desk as it was told."""
    asked = seat.desk.asked(body.number("number"))
    if asked is None:
        raise BadRequest
    return {
        "state": "answered",
        "number": asked.number,
        "sql": asked.sql,
        "at": asked.at,
        **shown_answer(asked.answer),
    }


# --- what was asked before -----------------------------------------------------------------------------------


def history(seat: Seat, _: Body) -> Mapping[str, Any]:
    """Return what this desk has asked, and what the ledger has charged this analyst for before."""
    desk = seat.desk
    return {
        "here": [
            {
                "number": one.number,
                "sql": one.sql,
                "at": one.at,
                "cost": _cost(one.answer.receipt),
                "widths": widths_of(one.answer),
                "rows": len(one.answer.rows),
            }
            for one in desk.all_asked()
        ],
        "before": list(_charged(desk)),
        "left": left_of(desk),
    }


def _cost(receipt: Receipt | None) -> str:
    return "free" if receipt is None or not (receipt.epsilon or receipt.delta) else receipt.said_charge


def _charged(desk: Desk) -> list[dict[str, Any]]:
    """Return this analyst's own statements of before, the newest first: an entry of the ledger is one measurement."""
    in_rho = desk.asking.budget().in_rho
    here = {" ".join(one.sql.split()) for one in desk.all_asked()}
    found: list[tuple[Entry, Charge]] = []
    for entry in desk.dataset.store.log(_MOST_ENTRIES):
        is_from_here = _moment(entry.at) >= desk.began and entry.statement in here
        if entry.analyst != desk.name or is_from_here:
            continue
        last = found[-1] if found else None
        if last is not None and last[0].statement == entry.statement and _is_same_run(last[0], entry):
            found[-1] = last[0], last[1] + entry.charge
        elif len(found) < _MOST_SHOWN:
            found.append((entry, ZERO + entry.charge))
        else:
            break
    return [
        {"sql": terminal_text(entry.statement), "at": entry.at, "cost": _said(charge, in_rho=in_rho)}
        for entry, charge in found
    ]


def _moment(at: str) -> datetime:
    return datetime.fromisoformat(at)


def _is_same_run(one: Entry, other: Entry) -> bool:
    return abs((_moment(one.at) - _moment(other.at)).total_seconds()) < 1


def _said(charge: Charge, *, in_rho: bool) -> str:
    return (
        charged_text(charge.rho_atto)
        if in_rho
        else f"epsilon {said_epsilon(Fraction(charge.epsilon_nano, NANO))}"
    )


ENDPOINTS = {"run": run, "cancel": cancel, "csv": csv, "again": again, "history": history}
