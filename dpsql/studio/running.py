"""A statement run: its answer as a page shows it, cells with their bars, what it cost, and what this desk has asked.

House rule: only what was released is here. Nothing is asked anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

from ..budget import ZERO, Charge, Entry
from ..engine.answer import Answer, Picture, Receipt, Shown, charged_text, columns_of, pictures, said_epsilon
from ..errors import DpsqlError
from ..mechanisms import NANO
from ..relation.types import Kind
from ..sql.statement import ResetSetting, SetSetting, parse_statement
from ..words import csv_lines, plain_text, terminal_text
from .desk import BadRequest, Body, Desk, Seat, refusal, statement_at
from .pricing import left_of

MOST_ROWS = 1_000
"""Rows that a page is sent; all are in the CSV."""
_MOST_DRAWN = 400
_MOST_SERIES = 8
_LONGEST_CELL = 1_000
_MOST_WIDTHS = 6


def shown_answer(answer: Answer) -> dict[str, Any]:
    """Return an answer: each cell is a text and its bar, which is empty where there is none; NULL is None."""
    shown = columns_of(answer, MOST_ROWS)
    cells = [_cells(one) for one in shown]
    return {
        "command": answer.command,
        "columns": [
            {"name": one.name, "type": str(one.type), "is_number": one.type.is_number} for one in shown
        ],
        "rows": [list(row) for row in zip(*cells, strict=True)],
        "count": len(answer.rows),
        "pictures": [_picture(one) for one in pictures(answer)],
        "receipt": None if answer.receipt is None else _receipt(answer.receipt),
    }


def _cells(column: Shown) -> list[list[str] | None]:
    barred = column.barred(_plain)
    return [
        None if value is None else [text, bar]
        for value, (text, bar) in zip(column.values, barred, strict=True)
    ]


def _plain(value: object) -> str:
    text = terminal_text(plain_text(value))
    return text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…"


def _receipt(receipt: Receipt) -> dict[str, Any]:
    is_charged = bool(receipt.epsilon or receipt.delta)
    return {
        "said": receipt.said,
        "charge": receipt.said_charge if is_charged else "free",
        "notes": [terminal_text(note) for note in receipt.notes],
    }


def _picture(picture: Picture) -> dict[str, Any]:
    """Return what is drawn: points with the ends of their bars, by labels or along an axis."""
    points, (axis, series) = picture.points[:_MOST_DRAWN], _axis_of(picture)
    places = None if axis is None else [_place(value) for value in axis.values[:_MOST_DRAWN]]
    kind = None if places is None else ("number" if axis is not None and axis.type.is_number else "time")
    low, high, is_from_zero = picture.range
    return {
        "title": picture.title,
        "by": [terminal_text(key.name) for key in picture.keys],
        "labels": list(picture.labels[:_MOST_DRAWN]),
        "points": points,
        "bars": [" ".join(filter(None, cell)) for cell in picture.shown.barred(_plain)][:_MOST_DRAWN],
        "axis": kind,
        "series": None if series is None else [_plain(value) for value in series.values[:_MOST_DRAWN]],
        "places": places,
        "is_from_zero": is_from_zero,
        "range": [low, high],
        "count": len(picture.points),
    }


def _axis_of(picture: Picture) -> tuple[Shown | None, Shown | None]:
    """Return the key that is an axis, and the one that has a line for each of its values."""
    if picture.axis is not None or len(picture.keys) != 2:
        return picture.axis, None
    for axis, series in (picture.keys, picture.keys[::-1]):
        is_axis = axis.type.is_number or axis.type.kind in (Kind.DATE, Kind.TIMESTAMP)
        pairs = list(zip(axis.values, map(str, series.values), strict=True))
        few = 1 < len(set(map(str, series.values))) <= _MOST_SERIES
        if is_axis and few and len(set(pairs)) == len(pairs) and len(set(axis.values)) > 2:
            return axis, series
    return None, None


def _place(value: object) -> float | None:
    """Return where a number or a moment stands on its axis, a moment in milliseconds since 1970 (UTC)."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).timestamp() * 1000
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp() * 1000
    place = float(value)  # type: ignore[arg-type]  # a number: the axis is one of numbers or of moments
    return place if abs(place) < 1e100 else None


def widths_of(answer: Answer) -> list[str]:
    """Return the columns with bars, each with its widest: `n ± 30`."""
    return list(_widths(answer))[:_MOST_WIDTHS]


def _widths(answer: Answer) -> Iterator[str]:
    for column in columns_of(answer, MOST_ROWS):
        if column.has_bars:
            bars = [bar for _, bar in column.barred(_plain) if bar]
            widest = max(bars, key=_size, default="")
            yield f"{terminal_text(column.name)} {widest}"


def _size(bar: str) -> float:
    try:
        return float(bar.removeprefix("± "))
    except ValueError:
        return -1.0  # told by its ends


def csv_text(answer: Answer) -> str:
    """Return all columns and rows as CSV, the ends of bars too."""
    return "\n".join(csv_lines([column.name for column in answer.columns], answer.rows)) + "\n"


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
