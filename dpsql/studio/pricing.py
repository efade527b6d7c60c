"""While somebody types: where the analyst is, which names there are, and what a statement would cost, or why not.

House rules of the statement that works, where one is refused:

1. A guess is made from the refused text, the refusal and the names that this analyst sees; it is offered only if it
   plans, under the same settings. Nothing is read and nothing is charged by that.
2. What is offered asks for less than, or for the same as, what was written: it never reads another table, and a
   comparison is left as it is but for a misspelt value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from ..budget import Status
from ..engine.answer import budget_text, said_delta
from ..engine.explain import Explanation, expected_errors
from ..engine.session import Session
from ..engine.settings import AGGREGATES, SETTINGS, Offers, decimal_text
from ..errors import DpsqlError, Refusal
from ..mechanisms import NANO
from ..plan.dialects.quote import identifier
from ..records import dataclass
from ..regex import regex
from ..relation.catalog import Column, OwnView, Table, View
from ..sql.statement import AdmittedQuery, Explain, ResetSetting, SetSetting, ShowSetting, parse_statement
from ..sql.text import ScriptStatement
from ..sql.workspace import WorkspaceStatement
from ..words import KEYWORDS, meant, nearest, plain_text
from .desk import Body, Desk, Overtaken, Seat, Unread, refusal, statement_at

# --- the statement that works, where one is refused -------------------------------------------------------


_MOST_TRIED = 4
_LONGEST = 2_000
"""Characters of a statement that is guessed at."""
_WORD = regex(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|\w+")
_FUNCTION = regex(r"did you mean (\w+)\(\)\?")
_KEYWORD = regex(r"did you mean ([A-Z][A-Z ]*)\?")
_VALUE = regex(r"did you mean ('(?:[^']|'')*')\?")


@dataclass(frozen=True, slots=True)
class Fix:
    """A statement that plans: what was changed, in words, and what it would cost and give."""

    sql: str
    said: str
    explanation: Explanation


def fix_of(session: Session, sql: str, error: DpsqlError) -> Fix | None:
    """Return a statement like a refused one that plans; None where none is known."""
    if not isinstance(error, Refusal) or len(sql) > _LONGEST:
        return None
    tried = set[str]()
    for text, said in _guesses(session, sql, error):
        if text in tried or len(tried) >= _MOST_TRIED:
            continue
        tried.add(text)
        try:
            return Fix(text, said, session.explain(text))
        except Refusal as other:
            for more, told in _guesses(session, text, other):
                if more not in tried and len(tried) < _MOST_TRIED:
                    tried.add(more)
                    try:
                        return Fix(
                            more, said if told == said else f"{said}, and {told}", session.explain(more)
                        )
                    except (Refusal, Unread):
                        continue
        except Unread:
            continue
    return None


def _guesses(session: Session, sql: str, error: Refusal) -> Iterator[tuple[str, str]]:
    """Yield statements that may be meant, with what was changed."""
    hint = error.hint or ""
    at = None if error.position is None else error.position.offset
    if error.sqlstate == "PV302" and (value := _VALUE.search(hint)):
        yield from _written(sql, at, value[1])
    elif error.sqlstate == "42883" and (name := _FUNCTION.search(hint)):
        yield from _written(sql, at, name[1].upper())
    elif error.sqlstate in ("42P01", "42703") and (close := meant(error, sql)):
        yield from _written(sql, at, close if re.fullmatch("[a-z_][a-z0-9_]*", close) else identifier(close))
    elif error.sqlstate == "42601":
        yield from _spelt(sql, at, hint, meant(error, sql))
    elif error.sqlstate in ("PV002", "42803"):
        yield from _aggregated(session, sql)
    elif error.sqlstate in ("PV103", "PV005", "PV203"):
        yield from _binned(session, sql)
        yield from _without_key(session, sql)


def _written(sql: str, at: int | None, word: str) -> Iterator[tuple[str, str]]:
    """Yield a statement with another word at a place: of a name with its table, the name's own part."""
    if at is None or (found := _WORD.match(sql, at)) is None:
        return
    while sql[found.end() : found.end() + 1] == "." and (after := _WORD.match(sql, found.end() + 1)):
        found = after
    yield sql[: found.start()] + word + sql[found.end() :], f"{word} for {found[0]}"


def _spelt(sql: str, at: int | None, hint: str, word: str | None) -> Iterator[tuple[str, str]]:
    if (told := _KEYWORD.search(hint)) is not None:
        yield from _written(sql, at, told[1])
    elif word is not None:
        parts = [*word.split(), word.replace(" ", "")]
        for found in _WORD.finditer(sql):
            if found[0].isalpha() and found[0].upper() not in word and nearest(found[0].upper(), parts, 0.75):
                yield sql[: found.start()] + word + sql[found.end() :], f"{word} for {found[0]}"


# --- what is asked of people's rows as they are --------------------------------------------------------------


def _aggregated(session: Session, sql: str) -> Iterator[tuple[str, str]]:
    """Yield a statement that aggregates what was selected: keys that are declared are grouped by, numbers averaged."""
    select, columns = _select_of(session, sql)
    if select is None or not columns:
        return
    grouped = select.args.get("group")
    keys = [] if grouped is None else [key.sql("postgres").lower() for key in grouped.expressions]
    items: list[exp.Expr] = []
    by: list[exp.Expr] = []
    said = list[str]()
    for item in select.expressions:
        bare = item.this if isinstance(item, exp.Alias) else item
        if not isinstance(bare, exp.Column):
            if isinstance(bare, exp.Star):
                said.append("COUNT(*) for *")
                continue
            items.append(item.copy())
            continue
        column = columns.get(bare.name.lower())
        name = bare.sql("postgres")
        if bare.sql("postgres").lower() in keys:
            items.append(item.copy())
        elif column is not None and column.values is not None and grouped is None:
            items.append(item.copy())
            by.append(bare.copy())
            said.append(f"GROUP BY {name}")
        elif column is not None and column.bounds is not None and _is_number(column):
            items.append(
                exp.alias_(exp.Avg(this=bare.copy()), item.alias_or_name, quoted=_needs(item.alias_or_name))
            )
            said.append(f"AVG({name}) for {name}")
        else:
            said.append(f"without {name}")
    if said == ["COUNT(*) for *"]:
        items.append(exp.Count(this=exp.Star()))
    if not any(one.find(exp.AggFunc) for one in items):
        items.append(exp.Count(this=exp.Star()))
        said.append("COUNT(*)")
    changed = select.copy()
    changed.set("expressions", items)
    changed.set("distinct", None)
    for key in by:
        changed = changed.group_by(key)
    if changed.args.get("order") is not None and any("without" in one for one in said):
        changed.set("order", None)
    yield changed.sql("postgres"), "; ".join(dict.fromkeys(said))


def _binned(session: Session, sql: str) -> Iterator[tuple[str, str]]:
    """Yield a statement that groups by tens of a bounded number in place of each of its values."""
    for select, place, key, column in _plain_keys(session, sql):
        if column.bounds is None or not _is_number(column):
            continue
        low, high = column.bounds
        size = _size(float(high - low))
        binned = f"FLOOR({key} / {size}) * {size}"
        changed = select.copy()
        changed.args["group"].expressions[place].replace(parse_one(binned, dialect="postgres"))
        for item in changed.expressions:
            bare = item.this if isinstance(item, exp.Alias) else item
            if bare.sql("postgres") == key:
                name = item.alias_or_name
                item.replace(exp.alias_(parse_one(binned, dialect="postgres"), name, quoted=_needs(name)))
        yield changed.sql("postgres"), f"{key} in steps of {size}"


def _size(width: float) -> str:
    """Return a step of which a range has some twenty at most."""
    size = 1.0
    while width / size > 20:
        size *= 10
    while width / size <= 2:
        size /= 10
    return f"{size:g}"


def _without_key(session: Session, sql: str) -> Iterator[tuple[str, str]]:
    """Yield a statement without a group key that cannot be one."""
    for select, place, key, column in _plain_keys(session, sql):
        if column.values is not None:
            continue
        changed = select.copy()
        keys = changed.args["group"].expressions
        keys.pop(place)
        if not keys:
            changed.set("group", None)
        changed.set("expressions", [
            item for item in changed.expressions
            if (item.this if isinstance(item, exp.Alias) else item).sql("postgres") != key
        ])  # fmt: skip
        changed.set("order", None)
        if changed.expressions:
            yield changed.sql("postgres"), f"without {key}"


def _plain_keys(session: Session, sql: str) -> Iterator[tuple[exp.Select, int, str, Column]]:
    """Yield the group keys that are columns: their SELECT, which place, as they are written, and what is declared."""
    select, columns = _select_of(session, sql)
    if select is None or (grouped := select.args.get("group")) is None:
        return
    for place, key in enumerate(grouped.expressions):
        if isinstance(key, exp.Column) and (column := columns.get(key.name.lower())) is not None:
            yield select, place, key.sql("postgres"), column


def _select_of(session: Session, sql: str) -> tuple[exp.Select | None, dict[str, Column]]:
    """Return a statement as one SELECT over tables, and the columns of these by their names; None: it is another.

    Requires: the statement was admitted, so that it is not too large for the parser.
    """
    try:
        tree = parse_one(sql, dialect="postgres")
    except (SqlglotError, RecursionError):
        return None, {}
    if not isinstance(tree, exp.Select) or tree.args.get("with_") is not None:
        return None, {}
    found: dict[str, Column] = {}
    for table in _tables(session, tree):
        for column in table.named:
            found.setdefault(column.name.lower(), column)
    return tree, found


def _tables(session: Session, select: exp.Select) -> Sequence[Table | View | OwnView]:
    seen = {name.lower(): table for name, table in session.seen.everything.items()}
    names = [
        table.sql("postgres").partition(" ")[0].replace('"', "").lower()
        for table in select.find_all(exp.Table)
    ]
    return [seen[name] for name in names if name in seen]


def _is_number(column: Column) -> bool:
    return column.type.is_number


def _needs(name: str) -> bool:
    return re.fullmatch("[a-z_][a-z0-9_]*", name) is None


# --- what a statement would cost --------------------------------------------------------------------------


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

    def found(sql: str) -> Mapping[str, Any]:
        return seat.desk.plan(lambda session: _priced(session, sql), seat.desk.under(**body.controls()))

    place = {} if piece is None else {"start": piece.start, "end": piece.start + len(piece.text)}
    return place | outlook(piece, found, is_owner=seat.is_owner)


def outlook(
    piece: ScriptStatement | None, found: Callable[[str], Mapping[str, Any]], *, is_owner: bool
) -> dict[str, Any]:
    """Return what is found of a statement by planning it, or why there is nothing."""
    if piece is None:
        return {"state": "empty"}
    try:
        return dict(found(piece.text))
    except Overtaken:
        return {"state": "overtaken"}
    except Unread:
        return {"state": "unread", "said": _UNREAD}
    except DpsqlError as error:
        return {"state": "refused", "refusal": refusal(error, piece, is_owner=is_owner)}


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
