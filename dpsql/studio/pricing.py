"""While somebody types: where the analyst is, which names there are, and what a statement would cost, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..budget import Status
from ..engine.answer import budget_text, said_delta
from ..engine.explain import Explanation, expected_errors
from ..engine.offers import AGGREGATES, SETTINGS, Offers
from ..engine.session import Session
from ..engine.settings import decimal_text
from ..errors import DpsqlError, Refusal
from ..mechanisms import NANO
from ..sql.statement import AdmittedQuery, Explain, ResetSetting, SetSetting, ShowSetting, parse_statement
from ..sql.workspace import WorkspaceStatement
from ..words import KEYWORDS, plain_text
from .desk import Desk, Overtaken, Unread
from .door import Body, Seat, refusal, statement_at
from .fixes import Fix, fix_of

_MOST_VALUES = 100


def left_of(desk: Desk) -> dict[str, Any]:
    """Return what is left for an analyst, in words and as a share of the cap that is reached first."""
    status = desk.asking.budget()
    return {"said": budget_text(status, desk.dataset.policy.defaults.epsilon), "share": _share(status)}


def _share(status: Status) -> float:
    return min((scope.left / scope.cap if scope.cap else 0.0) for scope in status.scopes)


def about(seat: Seat, _: Body) -> Mapping[str, Any]:
    """Return whose page this is, and its limits."""
    desk, policy = seat.desk, seat.desk.dataset.policy
    return {
        "dataset": policy.path.stem,
        "datasets": [one.dataset.policy.path.stem for one in seat.desks],
        "analyst": desk.name,
        "is_owner": seat.is_owner,
        "epsilon": decimal_text(desk.settings.epsilon),
        "max_epsilon": decimal_text(policy.defaults.max_epsilon),
        "accounting": policy.privacy.accounting.value,
        "left": left_of(desk),
    }


def names(seat: Seat, _: Body) -> Mapping[str, Any]:
    """Return the tables with their columns and declared values, and the functions, words and settings."""
    return seat.desk.look(_names)


def _names(session: Session) -> dict[str, Any]:
    offers = Offers(session)
    return {
        "tables": [
            {
                "name": name,
                "said": offers.tables[name],
                "columns": [
                    {
                        "name": one.name,
                        "type": str(one.type),
                        "said": offers.columns[name][one.name],
                        "values": [plain_text(value) for value in (one.values or ())[:_MOST_VALUES]],
                    }
                    for one in table.named
                ],
            }
            for name, table in session.seen.everything.items()
        ],
        "aggregates": AGGREGATES,
        "functions": offers.functions,
        "settings": SETTINGS,
        "words": KEYWORDS,
    }


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


ENDPOINTS = {"about": about, "names": names, "price": price, "fix": fix}
