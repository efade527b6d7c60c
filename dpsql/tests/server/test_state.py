"""DECLARE, FETCH, MOVE, CLOSE: where a cursor stands, what it costs, and how long it lives."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.engine import AnswerColumn
from dpsql.errors import EngineFailure
from dpsql.memory import MemoryLimits, ResultMemory
from dpsql.pgwire import Bind
from dpsql.relation.types import BIGINT
from dpsql.server import state
from dpsql.server.report import Fault
from dpsql.server.state import Portal, Portals, PreparedStatement, PreparedStatements, step
from dpsql.server.statements import Direction, Fetch, Query, Result

from ..pgwire.frontend import SYNC, bind, describe, execute, parse
from .conftest import COUNT, Connect, left
from .raw import exchange

_FIVE = "SELECT i FROM number WHERE i < 5 ORDER BY i"


def numbers(connection: psycopg.Connection[Any], sql: str) -> list[int]:
    return [row[0] for row in connection.execute(sql).fetchall()]


def test_scrolling_is_free(connection: psycopg.Connection[Any]) -> None:
    """One charge, at the first fetch, whichever way the cursor then goes, and after its block too."""
    before = Decimal(left(connection))
    sql = "SELECT city, COUNT(*) FROM person WHERE age > 41 GROUP BY city UNION ALL SELECT 'x', 0"
    connection.execute("BEGIN")
    connection.execute(f"DECLARE c SCROLL CURSOR WITH HOLD FOR {sql}")
    assert connection.execute("FETCH 0 FROM c").fetchall() == []
    assert connection.execute("MOVE 0 FROM c").statusmessage == "MOVE 0"
    assert Decimal(left(connection)) == before
    first = connection.execute("FETCH ALL FROM c").fetchall()
    assert before - Decimal(left(connection)) == Decimal("0.1")
    connection.execute("COMMIT")
    connection.execute("SET dpsql.reuse = off")  # a second run would be charged
    for where, expected in (("BACKWARD ALL", first[::-1]), ("ABSOLUTE 2", [first[1]]), ("LAST", [first[2]]),
                            ("PRIOR", [first[1]]), ("RELATIVE 0", [first[1]]), ("FIRST", [first[0]])):  # fmt: skip
        assert connection.execute(f"FETCH {where} FROM c").fetchall() == expected
    assert before - Decimal(left(connection)) == Decimal("0.1")


def test_a_binary_cursor_gives_binary(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        connection.execute(f"DECLARE c BINARY CURSOR FOR {_FIVE}")
        assert connection.pgconn.exec_(b"MOVE 3 c").command_status == b"MOVE 3"
        result = connection.pgconn.exec_(b"FETCH c")
        assert (result.fformat(0), result.get_value(0, 0)) == (1, (3).to_bytes(8, "big"))


def test_a_query_is_checked_where_it_is_declared(connection: psycopg.Connection[Any]) -> None:
    before = left(connection)
    with pytest.raises(psycopg.Error) as caught:
        connection.execute("DECLARE c CURSOR WITH HOLD FOR SELECT age FROM person")
    assert (caught.value.sqlstate, caught.value.diag.constraint_name) == ("42501", "PV002")
    assert caught.value.diag.statement_position == "39"
    assert left(connection) == before


def test_a_portal_of_bind_is_fetched_from(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        opened = exchange(connection, parse("", _FIVE) + bind("p") + execute("p", 2) + SYNC)
        assert "".join(tag for tag, _ in opened) == "12DDsZ"
        assert numbers(connection, "FETCH 2 FROM p") == [2, 3]
        assert "".join(tag for tag, _ in exchange(connection, execute("p") + SYNC)) == "DCZ"
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState), connection.transaction():
            connection.execute("FETCH PRIOR FROM p")


def test_a_portal_cannot_be_fetched_from_itself(connection: psycopg.Connection[Any]) -> None:
    replies = exchange(connection, parse("", "FETCH 1 FROM p") + bind("p") + execute("p") + SYNC)
    assert [tag for tag, _ in replies] == ["1", "2", "E", "Z"]
    assert b"C55000\0" in replies[2][1]


def test_a_declared_cursor_is_described_and_executed(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        connection.execute(f'DECLARE "C d" CURSOR FOR {_FIVE}')
        replies = exchange(connection, describe("P", "C d") + execute("C d", 2) + SYNC)
        assert [tag for tag, _ in replies] == ["T", "D", "D", "s", "Z"]
        assert numbers(connection, 'FETCH ALL "C d"') == [2, 3, 4]


def test_cursors_end_with_their_savepoint(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        f"BEGIN; DECLARE a CURSOR FOR {_FIVE}; SAVEPOINT s; DECLARE b CURSOR WITH HOLD FOR {_FIVE}"
    )
    connection.execute("MOVE 2 a; ROLLBACK TO s")
    assert numbers(connection, "FETCH a") == [2]
    with pytest.raises(psycopg.errors.InvalidCursorName):
        connection.execute("FETCH b")
    connection.execute("ROLLBACK")


def test_a_savepoint_that_is_released_leaves_its_cursors(connection: psycopg.Connection[Any]) -> None:
    connection.execute(f"BEGIN; SAVEPOINT a; SAVEPOINT b; DECLARE c CURSOR FOR {_FIVE}; RELEASE b")
    connection.execute("SAVEPOINT b; ROLLBACK TO b")
    assert numbers(connection, "FETCH c") == [0]
    connection.execute("RELEASE a; SAVEPOINT a; ROLLBACK TO a")
    assert numbers(connection, "FETCH c") == [1]
    connection.execute("ROLLBACK")


def test_server_cursors_scroll(connect: Connect) -> None:
    connection = connect()
    with connection.transaction(), connection.cursor("c", scrollable=True) as cursor:
        cursor.execute("SELECT i FROM number WHERE i < %s ORDER BY i", [4])
        assert cursor.fetchall() == [(0,), (1,), (2,), (3,)]
        cursor.scroll(1, mode="absolute")
        assert cursor.fetchone() == (1,)
        cursor.scroll(-2)
        assert cursor.fetchmany(2) == [(0,), (1,)]


def test_a_charge_that_fails_leaves_the_cursor_open(connect: Connect) -> None:
    poor = connect(user="poor")
    poor.execute("SET dpsql.epsilon = 0.2")
    poor.execute(f"DECLARE c CURSOR WITH HOLD FOR {COUNT} WHERE age > 42")
    with pytest.raises(psycopg.Error) as caught:
        poor.execute("FETCH c")
    assert (caught.value.sqlstate, caught.value.diag.constraint_name) == ("53400", "53V01")
    assert caught.value.diag.statement_position is None
    assert poor.execute("CLOSE c").statusmessage == "CLOSE CURSOR"


# --- where a cursor stands, against a cursor that is moved row by row -------------------------------------------

_FETCHES = st.builds(
    Fetch, st.just("c"), st.sampled_from((Direction.FORWARD, Direction.BACKWARD)), st.none() | st.integers(-7, 7),
    st.booleans(),
) | st.builds(
    Fetch, st.just("c"), st.sampled_from((Direction.ABSOLUTE, Direction.RELATIVE)), st.integers(-7, 7), st.booleans()
)  # fmt: skip


def walked(how: Fetch, position: int, size: int) -> tuple[list[int], int]:
    """The documented meaning of a fetch, one row at a time."""

    def walk(by: int, count: int | None) -> list[int]:
        nonlocal position
        passed = list[int]()
        while count is None or len(passed) < count:
            position = min(max(position + by, 0), size + 1)
            if not 1 <= position <= size:
                return passed
            passed.append(position)
        return passed

    count = how.count
    if how.direction is Direction.ABSOLUTE:
        position = 0 if count is not None and count >= 0 else size + 1
    elif count == 0:
        return ([position] if 1 <= position <= size else []), position
    by = -1 if how.direction is Direction.BACKWARD else 1
    if count is not None and count < 0:
        by, count = -by, -count
    passed = walk(by, count)
    if how.direction in (Direction.FORWARD, Direction.BACKWARD):
        return passed, position
    return (passed[-1:] if len(passed) == count else []), position


@given(st.integers(0, 5), st.lists(_FETCHES, max_size=8))
def test_positions(size: int, fetches: list[Fetch]) -> None:
    position = 0
    for how in fetches:
        expected = walked(how, position, size)
        places, position = step(how, position, size)
        assert (list(places), position) == expected, how


# --- how many rows are kept ---------------------------------------------------------------------------------------


def filled(portals: Portals, name: str, count: int) -> Portal:
    portal = Portal(PreparedStatement(None, (), 0, 0), Bind(name, "", (), (), ()), ())
    portals.add(name, portal)
    portals.keep(portal, Result("SELECT", (AnswerColumn("n", BIGINT),), [(1,)] * count))
    return portal


def test_the_rows_kept_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_MAX_ROWS", 10)
    kept = Portals()
    filled(kept, "", 6)
    filled(kept, "", 6)  # takes the place of the first
    filled(kept, "a", 4)
    with pytest.raises(Fault, match="too many rows") as caught:
        kept.check_room()
    assert caught.value.sqlstate == "53400"
    kept.close("")
    kept.check_room()
    with pytest.raises(Fault, match="too many rows"):
        filled(kept, "b", 7)
    kept.clear()
    filled(kept, "b", 10)


# --- what is counted of what a client keeps ---------------------------------------------------------------------


def test_rows_parameters_and_texts_of_a_connection_are_counted() -> None:
    memory = ResultMemory(MemoryLimits(200_000, 100_000, 0, 0, first=0), wait_seconds=0)
    share = memory.share("alice")
    kept, texts = Portals(share), PreparedStatements(share)
    filled(kept, "few", 10)
    assert memory.held == 0, "what is little is not counted"
    filled(kept, "many", 500)
    rows = memory.held
    assert rows > 500 * 64
    kept.add("bound", Portal(PreparedStatement(None, (), 0, 0), Bind("b", "", (), (), ()), (), size=20_000))
    assert memory.held == rows + 20_000
    with pytest.raises(EngineFailure) as caught:
        filled(kept, "more", 500)
    assert caught.value.sqlstate == "53200"
    texts.add("long", PreparedStatement(Query("SELECT 1" + " " * 10_000), (), 0, 0))
    assert memory.held > rows + 30_000
    texts.close("long")
    kept.close("many")
    assert memory.held == 20_000
    kept.clear()
    assert memory.held == 0
