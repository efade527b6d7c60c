"""The owner's policy as it would be: what another text of it does to statements of the owner's own.

House rules:

1. Nothing is written: the page shows a text and its difference from the file, and the owner saves it.
2. What is said of a statement follows from the text, the schema and stored sums: its plan reads no row.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from ..engine.dataset import Dataset
from ..errors import DpsqlError, EngineFailure, LedgerError, PolicyError
from ..policy import parse_policy
from .desk import TypingSession, Unread
from .door import BadRequest, Body, Seat, refusal, statement_at
from .pricing import priced

__all__ = ["ENDPOINTS"]

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
    if piece is None:
        return {"state": "empty"}
    with closing(TypingSession(dataset, name, is_shared=True)) as session:
        session.settings = session.settings.set("dpsql.reuse", "off", dataset.policy)
        try:
            return dict(priced(session.explain(piece.text)))
        except Unread:
            return {"state": "unread"}
        except DpsqlError as error:
            return {"state": "refused", "refusal": refusal(error, piece, is_owner=True)}


def _usual(dataset: Dataset) -> list[str]:
    """Return a count of each table of people's."""
    tables = dataset.catalog.tables.items()
    return [f"SELECT COUNT(*) FROM {name}" for name, table in tables if table.unit is not None][:6]


ENDPOINTS = {"policy": policy, "try_policy": try_policy}
