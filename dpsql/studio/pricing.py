"""What a statement would cost and how far off it would be, or why it would be refused: told while somebody types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.answer import said_delta
from ..engine.explain import Explanation, expected_errors
from ..engine.session import Session
from ..engine.settings import decimal_text
from ..errors import DpsqlError, Refusal
from ..mechanisms import NANO
from ..sql.statement import AdmittedQuery, Explain, ResetSetting, SetSetting, ShowSetting, parse_statement
from ..sql.workspace import WorkspaceStatement
from .body import Body, refusal, statement_at
from .desk import Overtaken, Unread
from .door import Seat
from .fixes import Fix, fix_of

__all__ = ["ENDPOINTS", "priced"]

_FREE = "this sets or shows something, and costs nothing"
_OWN = "this writes to tables of your own, and costs nothing; whether it can is told when it is run"
_UNREAD = (
    "the price depends on rows of a public table, which are not read while you type: run EXPLAIN, it is free"
)


def price(seat: Seat, body: Body) -> Mapping[str, Any]:
    """Return the price of the statement at the cursor. Nothing is charged and no row is read."""
    text = body.text("text")
    piece = statement_at(text, body.number("cursor", len(text)))
    if piece is None:
        return {"state": "empty"}
    place = {"start": piece.start, "end": piece.start + len(piece.text)}
    try:
        settings = seat.desk.under(**body.controls())
        found = seat.desk.plan(lambda session: _priced(session, piece.text), settings)
    except Overtaken:
        return {"state": "overtaken"}
    except Unread:
        return place | {"state": "unread", "said": _UNREAD}
    except DpsqlError as error:
        return place | {"state": "refused", "refusal": refusal(error, piece, is_owner=seat.is_owner)}
    return place | found


def fix(seat: Seat, body: Body) -> Mapping[str, Any]:
    """Return a statement that works in place of the one at the cursor, where it is refused and one is known.

    It is asked once nobody types for a moment: it takes several plans.
    """
    text = body.text("text")
    piece = statement_at(text, body.number("cursor", len(text)))
    if piece is None:
        return {"fix": None}
    try:
        settings = seat.desk.under(**body.controls())
        found = seat.desk.plan(lambda session: _fixed(session, piece.text), settings)
    except (Overtaken, Unread, DpsqlError):
        return {"fix": None}
    return {"fix": found and _offered(found), "start": piece.start, "end": piece.start + len(piece.text)}


def _fixed(session: Session, sql: str) -> Fix | None:
    try:
        _priced(session, sql)
    except Refusal as error:
        return fix_of(session, sql, error)
    return None


def _offered(found: Fix) -> dict[str, str]:
    widths = [
        f"{name} {expected}"
        for name, expected in expected_errors(found.explanation.plan, found.explanation.compiled)
    ]
    cost = f"epsilon {decimal_text(found.explanation.cost)}" if found.explanation.cost else "free"
    return {"sql": found.sql, "said": found.said, "cost": "; ".join([cost, *widths[:3]])}


def _priced(session: Session, sql: str) -> dict[str, Any]:
    statement = parse_statement(sql)
    if isinstance(statement, AdmittedQuery | Explain):
        return priced(session.explain(sql))
    if isinstance(statement, WorkspaceStatement):
        kept = session.workspace.query_of(statement, session.catalog)
        return {"state": "free", "said": _OWN} if kept is None else priced(session.explain(kept.query.text))
    if isinstance(statement, SetSetting):
        session.settings.set(statement.name, statement.value, session.policy)
    elif isinstance(statement, ShowSetting | ResetSetting) and statement.name != "dpsql.budget":
        session.settings.show(statement.name)
    return {"state": "free", "said": _FREE}


def priced(explanation: Explanation) -> dict[str, Any]:
    """Return what EXPLAIN tells, as far as a page shows it at a glance; amounts are exact decimals as text."""
    said: Any = explanation.as_dict()
    return {
        "state": "priced",
        "charge": said["charge"],
        "now": decimal_text(explanation.cost),
        "delta": said_delta(explanation.plan.delta) if explanation.plan.delta else "",
        "fits": explanation.cost * NANO <= explanation.status.left_nano,
        "left": said["left"],
        "columns": [
            {"name": name, "expected": expected}
            for name, expected in expected_errors(explanation.plan, explanation.compiled)
        ],
        "groups": explanation.rows,
        "notes": said["notes"],
        "stored": said["from_the_store"],
    }


ENDPOINTS = {"price": price, "fix": fix}
