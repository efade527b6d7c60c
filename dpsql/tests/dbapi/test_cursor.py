"""Cursors: fetching, descriptions, many sets of parameters, receipts and error bars."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import pytest

import dpsql
from dpsql.tests.dbapi.conftest import COUNT, left

TEN = "SELECT i FROM number ORDER BY i"


def test_fetching(connection: dpsql.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.connection is connection
    assert cursor.execute(TEN) is cursor
    assert (cursor.rowcount, cursor.rownumber, cursor.arraysize, cursor.lastrowid) == (10, 0, 1, None)
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany() == [(1,)]
    cursor.arraysize = 3
    assert cursor.fetchmany() == [(2,), (3,), (4,)]
    assert cursor.fetchmany(0) == []
    assert cursor.rownumber == 5
    assert next(cursor) == (5,)
    assert list(cursor) == [(6,), (7,), (8,), (9,)]
    assert (cursor.fetchone(), cursor.fetchmany(5), cursor.fetchall()) == (None, [], [])
    assert cursor.rownumber == cursor.rowcount == 10
    with pytest.raises(dpsql.ProgrammingError):
        cursor.fetchmany(-1)


def test_scrolling(connection: dpsql.Connection) -> None:
    cursor = connection.execute(TEN)
    cursor.scroll(4)
    cursor.scroll(-1)
    assert cursor.fetchone() == (3,)
    cursor.scroll(0, "absolute")
    assert cursor.fetchone() == (0,)
    cursor.scroll(10, "absolute")
    assert cursor.fetchone() is None
    for place in (11, -1):
        with pytest.raises(IndexError):
            cursor.scroll(place, "absolute")
    with pytest.raises(dpsql.ProgrammingError):
        cursor.scroll(0, "sideways")  # type: ignore[arg-type]  # the point


def test_rows_handed_out_are_the_callers(connection: dpsql.Connection) -> None:
    """An answer is kept for the next identical statement: what a caller does to a list does not reach it."""
    first = connection.execute(COUNT).fetchall()
    kept = list(first)
    first.clear()
    assert connection.execute(COUNT).fetchall() == kept


def test_no_result(connection: dpsql.Connection) -> None:
    cursor = connection.cursor()
    for sql in (None, "SET dpsql.reuse = on", "RESET dpsql.reuse"):
        if sql is not None:
            cursor.execute(sql)
        assert (cursor.description, cursor.rowcount, cursor.rownumber, cursor.receipt) == (
            None,
            -1,
            None,
            None,
        )
        for fetch in (
            cursor.fetchone, cursor.fetchall, cursor.fetchmany, cursor.fetch_arrow_table, cursor.fetchdf, cursor.pl,
            lambda: cursor.explanation, lambda: cursor.scroll(0),
        ):  # fmt: skip
            with pytest.raises(dpsql.ProgrammingError, match="there is no result"):
                fetch()


def test_a_failed_statement_leaves_no_result(connection: dpsql.Connection) -> None:
    cursor = connection.execute(TEN)
    with pytest.raises(dpsql.ProgrammingError):
        cursor.execute("SELECT nothing")
    assert cursor.description is None


def test_a_closed_cursor(connection: dpsql.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute(TEN)
        assert not cursor.closed
    assert cursor.closed
    cursor.close()
    for use in (
        cursor.fetchone, cursor.nextset, cursor.__enter__, lambda: cursor.execute(TEN),
        lambda: cursor.executemany(TEN, [()]), lambda: cursor.with_intervals(0.9), lambda: list(cursor),
    ):  # fmt: skip
        with pytest.raises(dpsql.InterfaceError, match="the cursor is closed"):
            use()
    assert not connection.closed


def test_values_and_description(connection: dpsql.Connection) -> None:
    cursor = connection.execute("SELECT * FROM thing WHERE small = 1")
    assert cursor.description == [
        ("small", "smallint", None, 2, None, None, None),
        ("whole", "integer", None, 4, None, None, None),
        ("big", "bigint", None, 8, None, None, None),
        ("money", "numeric", None, None, 9, 2, None),
        ("single", "real", None, 4, None, None, None),
        ("double", "double precision", None, 8, None, None, None),
        ("flag", "boolean", None, 1, None, None, None),
        ("name", "text", None, None, None, None, None),
        ("day", "date", None, 4, None, None, None),
        ("moment", "timestamp", None, 8, None, None, None),
    ]
    types = [column[1] for column in cursor.description]
    assert types[:7] == [dpsql.NUMBER] * 7
    assert types[7:] == [dpsql.STRING, dpsql.DATETIME, dpsql.DATETIME]
    (row,) = cursor.fetchall()
    assert row == (
        1, 2, 9007199254740993, Decimal("12.50"), 1.5, 0.1, True, "a 'quoted' % ? :x", datetime.date(2020, 2, 29),
        datetime.datetime(2020, 2, 29, 12, 30, 0, 1),
    )  # fmt: skip
    assert connection.execute("SELECT * FROM thing WHERE small IS NULL").fetchone() == (None,) * 10


def test_the_position_of_a_refusal_is_in_the_written_text(connection: dpsql.Connection) -> None:
    with pytest.raises(dpsql.ProgrammingError) as refused:
        connection.execute("SELECT COUNT(*) FROM person WHERE age > %s AND\n  aged = %s", (1, 2))
    assert refused.value.sqlstate == "42703"
    assert str(refused.value.position) == "2:3"
    assert refused.value.hint is not None
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


# --- many ------------------------------------------------------------------------------------------------


def test_executemany_charges_each_and_keeps_each_result(connection: dpsql.Connection) -> None:
    cursor = connection.cursor()
    cities = [("north",), ("south",), ("north",)]
    assert cursor.executemany("SELECT COUNT(*) FROM person WHERE city = ?", iter(cities)) is cursor
    found, costs = [], []
    while True:
        found.append(cursor.fetchone())
        assert cursor.receipt is not None
        costs.append(cursor.receipt.epsilon)
        if not cursor.nextset():
            break
    assert len(found) == 3
    assert found[0] == found[2]
    assert costs == [Fraction(1, 10), Fraction(1, 10), 0]
    assert left(connection) == "1.8"


def test_executemany_looks_at_all_sets_first(connection: dpsql.Connection) -> None:
    with pytest.raises(dpsql.ProgrammingError):
        connection.cursor().executemany("SELECT COUNT(*) FROM person WHERE age > ?", [(1,), (2,), (3, 4)])
    assert left(connection) == "2"


def test_executemany_keeps_what_was_paid_for(connection: dpsql.Connection) -> None:
    connection.execute("SET dpsql.epsilon = 1")
    cursor = connection.cursor()
    with pytest.raises(dpsql.OperationalError) as spent:
        cursor.executemany("SELECT COUNT(*) FROM person WHERE age > ?", [(1,), (2,), (3,)])
    assert spent.value.sqlstate == "53V01"
    assert cursor.rowcount == 1
    assert cursor.nextset()
    assert cursor.nextset() is None


def test_executemany_of_nothing(connection: dpsql.Connection) -> None:
    cursor = connection.cursor().executemany(COUNT, [])
    assert (cursor.description, cursor.rowcount) == (None, -1)
    assert cursor.nextset() is None


# --- receipts and error bars -----------------------------------------------------------------------------


def test_receipts(connection: dpsql.Connection) -> None:
    cursor = connection.execute(COUNT)
    assert cursor.receipt is not None
    assert (cursor.receipt.epsilon, cursor.receipt.delta) == (Fraction(1, 10), 0)
    assert (cursor.receipt.left, cursor.receipt.reused, cursor.receipt.notes) == (Fraction(19, 10), False, ())
    cursor.execute(COUNT)
    assert cursor.receipt is not None
    assert cursor.receipt.reused
    cursor.execute("SELECT 1")
    assert cursor.receipt is not None
    assert not cursor.receipt.reused
    assert connection.execute("SHOW dpsql.epsilon").receipt is None


def test_the_explanation_is_of_the_statement_as_it_was_asked(connection: dpsql.Connection) -> None:
    connection.execute("SET dpsql.epsilon = 0.5")
    cursor = connection.execute("SELECT COUNT(*) FROM person WHERE age > :age", {"age": 3})
    connection.execute("SET dpsql.epsilon = 0.1")
    (release,) = cursor.explanation.as_dict()["releases"]  # type: ignore[misc]  # a list, as JSON has it
    assert release["measures"][0]["scale"] == "2"
    assert left(connection) == "1.5"
    assert connection.execute("SHOW dpsql.epsilon").fetchone() == ("0.1",)
    with pytest.raises(dpsql.NotSupportedError):
        _ = connection.execute("SHOW dpsql.epsilon").explanation


def names(cursor: dpsql.Cursor) -> list[str]:
    return [column[0] for column in cursor.description or ()]


def test_intervals_of_a_cursor(connection: dpsql.Connection) -> None:
    plain = connection.execute(COUNT)
    assert (names(plain), plain.intervals) == (["n"], None)
    cursor = connection.cursor().with_intervals(0.95).execute(COUNT)
    assert (names(cursor), cursor.intervals) == (["n", "n_low", "n_high"], Decimal("0.95"))
    ((n, low, high),) = cursor.fetchall()
    assert low < n < high  # type: ignore[operator]  # numbers all
    assert (n,) == plain.fetchone()
    assert names(connection.execute(COUNT)) == ["n"]
    assert names(cursor.with_intervals(None).execute(COUNT)) == ["n"]
    with pytest.raises(dpsql.DataError):
        cursor.with_intervals(2)
    with pytest.raises(dpsql.ProgrammingError):
        cursor.with_intervals(0.9).execute("SELECT nothing")
    assert connection.execute("SHOW dpsql.intervals").fetchone() == ("off",)


def test_intervals_of_a_connection(connection: dpsql.Connection) -> None:
    own = connection.cursor(intervals="off")
    connection.execute("SET dpsql.intervals = 0.9")
    assert names(connection.execute(COUNT)) == ["n", "n_low", "n_high"]
    assert names(own.execute(COUNT)) == ["n"]
    own.execute(" \n SET dpsql.intervals = 0.8")
    assert connection.execute("SHOW dpsql.intervals").fetchone() == ("0.8",)
    assert own.execute("SHOW dpsql.intervals").fetchone() == ("0.8",)


def test_sizes_are_taken_and_do_nothing(connection: dpsql.Connection) -> None:
    cursor = connection.cursor()
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)
    cursor.setoutputsize(1, 0)
    assert cursor.execute("SELECT ?", ["longer than one"]).fetchone() == ("longer than one",)
    assert not hasattr(cursor, "callproc")


def test_accuracy_of_a_cursor_and_of_a_connection(connection: dpsql.Connection) -> None:
    cursor = connection.cursor(accuracy=50).execute(COUNT)
    assert cursor.receipt is not None
    assert cursor.receipt.epsilon == Fraction("0.0594")
    other = connection.cursor(accuracy=30.5, intervals=0.9).execute(f"{COUNT} WHERE age > 3")
    assert names(other) == ["n", "n_low", "n_high"]
    assert other.receipt is not None
    assert other.receipt.notes[0] == "epsilon 0.0755 chosen for ± 30.5"
    plain = connection.cursor().execute(f"{COUNT} WHERE age > 4")
    assert plain.receipt is not None
    assert plain.receipt.epsilon == Fraction(1, 10)
    with pytest.raises(dpsql.ProgrammingError):
        connection.cursor(accuracy=0)


def test_medians_and_extremes(connection: dpsql.Connection) -> None:
    """Chosen values have their types, NULL bars, and one charge; a fraction may be a parameter."""
    cursor = connection.cursor()
    cursor.execute("SELECT MEDIAN(age) AS m, MIN(age) AS low, MAX(age) AS high FROM person")
    ((middle, low, high),) = cursor.fetchall()
    assert [column[0] for column in cursor.description or ()] == ["m", "low", "high"]
    assert (type(middle), type(low), type(high)) == (float, int, int)
    assert 0 <= low < middle < high <= 120
    assert cursor.receipt is not None
    assert cursor.receipt.epsilon == 3 * Fraction(33_333_333, 10**9)
    sql = "SELECT city, PERCENTILE_DISC(?) WITHIN GROUP (ORDER BY age) AS p FROM person GROUP BY city ORDER BY city"
    cursor = connection.cursor().with_intervals(0.9).execute(sql, [0.25])
    assert [(row[0], row[2:]) for row in cursor.fetchall()] == [
        ("north", (None, None)),
        ("south", (None, None)),
    ]
    with pytest.raises(dpsql.Error, match="between 0 and 1"):
        cursor.execute(sql, [2])


QUARTILES = "SELECT PERCENTILE_CONT(ARRAY[0.75, 0.25, 0.5]) WITHIN GROUP (ORDER BY age) AS q FROM person"


def test_several_percentiles_are_a_list(connection: dpsql.Connection) -> None:
    cursor = connection.execute(QUARTILES)
    assert cursor.description is not None
    assert cursor.description[0][:2] == ("q", "double precision[]")
    ((found,),) = cursor.fetchall()
    assert [type(value) for value in found] == [float] * 3
    assert found[1] <= found[2] <= found[0]


def test_a_list_in_a_table_of_arrow(connection: dpsql.Connection) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = connection.execute(QUARTILES).fetch_arrow_table()
    assert table.schema.field("q").type == pyarrow.list_(pyarrow.float64())
    assert table.column("q").to_pylist() == [connection.execute(QUARTILES).fetchall()[0][0]]
