"""What a notebook shows and takes: names, paths, answers with bars, named rows, receipts, pictures."""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import create_engine, text

import dpsql
from dpsql.dbapi.connection import row_maker
from dpsql.engine import Answer, AnswerColumn, Receipt
from dpsql.relation.types import BIGINT, DOUBLE, TEXT
from dpsql.tests.dbapi.conftest import COUNT, Connect, left

BY_CITY = "SELECT city, COUNT(*) AS n FROM person GROUP BY city ORDER BY city"
RECEIPT = Receipt(Fraction(1, 10), Fraction(0), Fraction(19, 10), False, ("a <note>",))
BARRED = Answer(
    (
        AnswerColumn("city", TEXT),
        AnswerColumn("n", BIGINT),
        AnswerColumn("n_low", DOUBLE, 1),
        AnswerColumn("n_high", DOUBLE, 1),
    ),
    [("north", 5414, 5384.0, 5444.0), ("<b>\x1b[2J</b>", 40, 10.0, 70.0)],
    "SELECT",
    RECEIPT,
)


# --- names and paths --------------------------------------------------------------------------------------------


def test_completion_finds_what_is_there_for_use() -> None:
    names = [name for name in dir(dpsql) if not name.startswith("_")]
    assert {"connect", "Session", "randomize"} <= set(names)
    assert {"annotations", "import_module", "TYPE_CHECKING"}.isdisjoint(names)
    assert set(names) <= set(dpsql.__all__)


@pytest.mark.parametrize("as_path", [str, Path])
@pytest.mark.parametrize("door", [dpsql.connect, dpsql.Session.open])
def test_a_path_is_text_too_and_may_begin_at_home(
    policy: Path,
    monkeypatch: pytest.MonkeyPatch,
    door: Callable[..., object],
    as_path: Callable[[str], object],
) -> None:
    monkeypatch.setenv("HOME", str(policy.parent))
    for written in (str(policy), "~/people.toml"):
        with door(as_path(written)) as opened:  # type: ignore[attr-defined]  # both are closed by `with`
            assert opened.policy.path == policy


def test_no_home_is_a_designed_error() -> None:
    with pytest.raises(dpsql.OperationalError, match="there is no home folder"):
        dpsql.connect("~nobody-of-this-name/people.toml")


# --- what is shown ----------------------------------------------------------------------------------------------


def test_an_answer_is_shown_with_its_bars_and_its_receipt() -> None:
    assert repr(BARRED).splitlines() == [
        " city           |         n",
        "----------------+-----------",
        " north          | 5414 ± 30",
        " <b>\\x1b[2J</b> |   40 ± 30",
        "(2 rows)",
        "charged epsilon 0.1; 1.9 left",
        "NOTE: a <note>",
    ]


def test_html_holds_no_mark_of_the_data() -> None:
    shown = BARRED._repr_html_()
    assert "5414 ± 30" in shown
    assert "charged epsilon 0.1; 1.9 left<br>NOTE: a &lt;note&gt;" in shown
    assert "<b>" not in shown
    assert "\x1b" not in shown
    assert "&lt;b&gt;\\x1b[2J&lt;/b&gt;" in shown


def test_long_answers_are_shown_in_part() -> None:
    rows = [(f"c{i}" * 300, i, None, None) for i in range(100)]
    shown = Answer(BARRED.columns, rows, "SELECT", None)
    lines = repr(shown).splitlines()
    assert (len(lines), lines[-2:]) == (64, ["(100 rows)", "40 more rows in the answer"])
    assert max(map(len, lines)) < 230
    assert shown._repr_html_().count("<tr>") == 61


def test_a_receipt_and_an_explanation(connection: dpsql.Connection) -> None:
    assert repr(RECEIPT) == "<Receipt: charged epsilon 0.1; 1.9 left>"
    assert str(RECEIPT) == "charged epsilon 0.1; 1.9 left\nNOTE: a <note>"
    explanation = connection.explain("SELECT COUNT(*) FROM person WHERE age < 9")
    assert str(explanation) == explanation.text()
    assert "SELECT" in explanation.text()
    assert "SELECT" not in repr(explanation)
    assert repr(explanation).startswith('release r0 from "person"\n')
    assert "\ncharge: epsilon 0.1 (nothing, if it is answered already); 2 left" in repr(explanation)
    assert set(repr(explanation).splitlines()) <= set(explanation.text().splitlines())
    assert "&lt;" in explanation._repr_html_()
    assert " < " not in explanation._repr_html_()


def test_connections_and_cursors_say_what_they_are(connect: Connect) -> None:
    connection = connect("alice")
    cursor = connection.cursor()
    assert repr(connection) == "<dpsql.Connection to people.toml as 'alice'>"
    assert "person" in connection._repr_html_()
    assert repr(cursor) == "<dpsql.Cursor: no result>"
    cursor.execute(BY_CITY)
    assert repr(cursor) == "<dpsql.Cursor: 2 rows of city, n; charged epsilon 0.1; 0.05 left>"
    assert cursor._repr_html_() == cursor.answer._repr_html_()
    assert str(cursor) == str(cursor.answer)
    connection.close()
    assert repr(connection) == "<dpsql.Connection to people.toml as 'alice', closed>"
    assert repr(cursor) == "<dpsql.Cursor: closed>"
    assert cursor._repr_html_() == "<p>&lt;dpsql.Cursor: closed&gt;</p>"


def test_a_session_does_not_show_its_insides(policy: Path) -> None:
    with dpsql.Session.open(policy) as session:
        assert repr(session) == "<Session on people.toml as 'local'>"


# --- rows -------------------------------------------------------------------------------------------------------


def test_rows_have_names(connection: dpsql.Connection) -> None:
    cursor = connection.execute("SELECT i, i + 1 AS count, i * 2 AS class FROM number WHERE i < 3 ORDER BY i")
    row = cursor.fetchone()
    assert row == (0, 1, 0)
    assert (row.i, row.count, row["class"], row[1], row[-1], row[:2]) == (0, 1, 0, 1, 0, (0, 1))
    i, *_ = row
    assert i == 0
    assert row._asdict() == {"i": 0, "count": 1, "class": 0}
    assert repr(row) == "(i=0, count=1, class=0)"
    assert pickle.loads(pickle.dumps(row)).count == 1  # noqa: S301 (our own)
    assert [one["i"] for one in cursor] == [1, 2]
    with pytest.raises(KeyError, match="the columns are i, count, class"):
        row["j"]
    with pytest.raises(AttributeError):
        _ = row.j
    assert list(pd.DataFrame(connection.execute("SELECT i FROM number").fetchmany(2)).columns) == ["i"]


def test_of_two_columns_of_a_name_the_first_is_found() -> None:
    made = row_maker(["n", "n", "_x", "a b"])
    assert made((1, 2, 3, 4)).n == 1
    assert made((1, 2, 3, 4))["_x"] == 3
    assert made((1, 2, 3, 4))["a b"] == 4


def test_df(connection: dpsql.Connection) -> None:
    assert connection.execute("SELECT i FROM number WHERE i < 2 ORDER BY i").df()["i"].tolist() == [0, 1]
    answer = connection.execute(BY_CITY).answer
    assert answer.df()["n"].tolist() == answer.arrow().column("n").to_pylist() == answer.pl()["n"].to_list()


# --- what a cursor asks with ------------------------------------------------------------------------------------


def test_epsilon_of_a_cursor(connection: dpsql.Connection) -> None:
    receipt = connection.cursor(epsilon=0.05).execute(COUNT).receipt
    assert receipt is not None
    assert receipt.epsilon == Fraction(1, 20)
    other = connection.execute("SELECT SUM(age) FROM person").receipt
    assert other is not None
    assert other.epsilon == Fraction(1, 10)
    with pytest.raises(dpsql.ProgrammingError) as refused:
        connection.cursor(epsilon=Decimal(5))
    assert refused.value.sqlstate == "PV301"
    wide = dpsql.connect(connection.policy, epsilon=0.5)
    with wide:
        usual = (
            wide.cursor(epsilon=0.5).with_epsilon(None).execute("SELECT SUM(age) FROM person WHERE age > 3")
        )
        assert usual.receipt is not None
        assert usual.receipt.epsilon == Fraction(1, 10)


def test_what_is_left(connection: dpsql.Connection) -> None:
    assert connection.receipt is None
    connection.execute(COUNT)
    assert connection.budget == connection.execute("SHOW dpsql.budget").fetchone()[0]
    assert connection.budget.startswith("1.9 of 2")
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        pd.read_sql(BY_CITY, connection)
    assert connection.receipt is not None
    assert (connection.receipt.epsilon, connection.receipt.left) == (Fraction(1, 10), Fraction(18, 10))


def test_the_receipt_of_a_frame_that_sqlalchemy_read(policy: Path) -> None:
    engine = create_engine(f"dpsql:///{policy}")
    assert engine.dialect.receipt is None
    pd.read_sql(BY_CITY, engine)
    assert engine.dialect.receipt.epsilon == Fraction(1, 10)
    pd.read_sql(text("SELECT COUNT(*) FROM person WHERE age < :age"), engine, params={"age": 9})
    assert engine.dialect.receipt.left == Fraction(18, 10)
    assert create_engine(f"dpsql:///{policy}").dialect.receipt is None


# --- lists ------------------------------------------------------------------------------------------------------

CITIES = ["north", "west"]


@pytest.mark.parametrize(
    ("condition", "given"),
    [
        ("city IN ?", [CITIES]),
        ("city IN %s", [tuple(CITIES)]),
        ("city IN %(cities)s", {"cities": pd.Series(CITIES)}),
        ("city IN :cities", {"cities": set(CITIES)}),
        ("city = ANY(?)", [CITIES]),
        ("age >= ? AND city IN ? AND age < ?", [0, CITIES, 1000]),
        ("city IN :c AND city = ANY(:c) AND age >= :a", {"c": CITIES, "a": 0}),
        ("NOT city NOT IN ?", [CITIES]),
    ],
)
def test_a_list_for_in(connection: dpsql.Connection, condition: str, given: object) -> None:
    (row,) = connection.execute(f"SELECT COUNT(*) AS n FROM person WHERE {condition}", given)
    assert 800 < row.n < 1200


def test_lists_of_several_sizes(connection: dpsql.Connection) -> None:
    cursor = connection.cursor()
    cursor.executemany("SELECT COUNT(*) FROM number WHERE i IN ?", [[[1]], [[1, 2, 3]], [[4, 5]]])
    found = [cursor.fetchone()]
    while cursor.nextset():
        found.append(cursor.fetchone())
    assert found == [(1,), (3,), (2,)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["north"], "behind IN a parameter is a list, and one value is given"),
        ([[]], "the list for IN is empty"),
        ([CITIES, 1], "the statement takes 1 parameter, 2 given"),
        ([], "the statement takes 1 parameter, 0 given"),
    ],
)
def test_what_is_no_list_for_in(connection: dpsql.Connection, given: list[object], message: str) -> None:
    with pytest.raises(dpsql.ProgrammingError) as refused:
        connection.execute("SELECT COUNT(*) FROM person WHERE city IN ?", given)
    assert refused.value.message == message
    assert left(connection) == "2"


def test_a_value_of_a_list_is_never_text_of_the_statement(connection: dpsql.Connection) -> None:
    hostile = "x') OR ('1' = '1"
    (row,) = connection.execute("SELECT COUNT(*) AS n FROM thing WHERE name IN ?", [[hostile, "$1"]])
    assert row.n == 0


def test_a_position_behind_a_list(connection: dpsql.Connection) -> None:
    sql = "SELECT COUNT(*) FROM person WHERE city IN ? AND nothing = 1"
    with pytest.raises(dpsql.ProgrammingError) as refused:
        connection.execute(sql, [["north", "south", "west", "east"]])
    assert refused.value.position is not None
    assert refused.value.position.offset == sql.index("nothing")


# --- the schema -------------------------------------------------------------------------------------------------


def test_tables_are_listed(connection: dpsql.Connection) -> None:
    rows = connection.execute("show tables;").fetchall()
    assert [row.table_name for row in rows] == ["person", "thing", "number"]
    assert rows[0].rows == 'private, one row per unit in "id"'
    assert left(connection) == "2"


@pytest.mark.parametrize("asked", ["DESCRIBE person", 'desc "person"', "SHOW COLUMNS FROM public.person"])
def test_a_table_is_described(connection: dpsql.Connection, asked: str) -> None:
    rows = connection.execute(asked).fetchall()
    assert [row[:2] for row in rows] == [("id", "integer"), ("age", "integer"), ("city", "text")]
    assert rows[2].what_may_be_asked == "COUNT, MODE; group keys: 'north', 'south'"


def test_a_table_that_is_not_declared_is_missing(connection: dpsql.Connection) -> None:
    with pytest.raises(dpsql.ProgrammingError) as refused:
        connection.execute("DESCRIBE persons")
    assert (refused.value.sqlstate, refused.value.message) == ("42P01", 'table "persons" does not exist')


def test_the_information_schema(connection: dpsql.Connection) -> None:
    sql = "SELECT table_name, column_name, ordinal_position FROM information_schema.columns WHERE table_schema = 'public' AND table_name = ? ORDER BY 3"
    cursor = connection.execute(sql, ["person"])
    assert cursor.fetchall() == [("person", "id", 1), ("person", "age", 2), ("person", "city", 3)]
    assert cursor.receipt is None
    assert cursor.description is not None
    assert [one[1] for one in cursor.description] == ["text", "text", "integer"]
    cursor.execute("SELECT relname, oid::regclass AS name, relacl FROM pg_class WHERE relname = 'person'")
    assert cursor.fetchone()[:2] == ("person", "person")
    frame = connection.execute("SELECT * FROM information_schema.tables WHERE table_schema = 'public'").df()
    assert sorted(frame["table_name"]) == ["number", "person", "thing"]
    assert left(connection) == "2"


def test_the_system_catalog_is_no_way_to_rows(connection: dpsql.Connection) -> None:
    with pytest.raises(dpsql.Error):
        connection.execute("SELECT * FROM information_schema.tables, person")
    with pytest.raises(dpsql.Error):
        connection.execute("SELECT id FROM person WHERE 'pg_' <> 'information_schema'")
    assert connection.execute("SELECT COUNT(*) FROM thing WHERE 'pg_class' <> ''").fetchone() == (2,)


# --- pictures ---------------------------------------------------------------------------------------------------


class Axes:
    """Axes that write down what is drawn: what matplotlib would be told."""

    def __init__(self) -> None:
        self.drawn: list[tuple[str, tuple[object, ...], dict[str, object]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given, **named: self.drawn.append((name, given, named))


def test_a_bar_for_each_row() -> None:
    axes = Axes()
    assert BARRED.plot(ax=axes) is axes
    (name, given, named), (_, ticks, _), *_, (_, label, _) = axes.drawn
    assert (name, given, named["xerr"]) == ("barh", ([0, 1], [5414.0, 40.0]), [[30.0, 30.0], [30.0, 30.0]])
    assert ticks == ([0, 1], ["north", "<b>\\x1b[2J</b>"])
    assert label == ("city",)


def test_points_along_an_axis(connection: dpsql.Connection) -> None:
    cursor = connection.cursor(intervals=0.95).execute(
        "SELECT age, COUNT(*) AS n FROM person WHERE age < 5 GROUP BY age ORDER BY age DESC"
    )
    axes = Axes()
    cursor.plot("n", ax=axes)
    name, (places, values), named = axes.drawn[0]
    assert (name, places) == ("errorbar", [0.0, 1.0, 2.0, 3.0, 4.0])
    by_age = {row.age: row for row in cursor.fetchall()}
    assert values == [by_age[age].n for age in range(5)]
    assert named["yerr"][1] == [by_age[age].n_high - by_age[age].n for age in range(5)]


def test_numbers_far_from_zero_are_points_and_a_bar_that_is_not_known_is_none() -> None:
    columns = (
        AnswerColumn("city", TEXT),
        AnswerColumn("a", DOUBLE),
        AnswerColumn("a_low", DOUBLE, 1),
        AnswerColumn("a_high", DOUBLE, 1),
    )
    rows = [("north", 50.0, 49.0, 52.0), ("south", 51.0, None, None), ("$west", None, None, None)]
    axes = Axes()
    Answer(columns, rows, "SELECT", None).plot(ax=axes)
    name, (values, places), named = axes.drawn[0]
    assert (name, values[:2], places) == ("errorbar", [50.0, 51.0], [0, 1, 2])
    below, above = named["xerr"]
    assert (below[0], above[0]) == (1.0, 2.0)
    assert [math.isnan(one) for one in (values[2], *below[1:], *above[1:])] == [True] * 5
    assert axes.drawn[1][1][1][2] == r"\$west", "no formula"


def test_what_cannot_be_drawn(connection: dpsql.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = connection.execute(BY_CITY)
    with pytest.raises(dpsql.ProgrammingError, match='the answer has no number "city" to draw'):
        cursor.plot("city", ax=Axes())
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(dpsql.NotSupportedError) as missing:
        cursor.plot()
    assert "this needs matplotlib, which is not installed\nHINT: pip install matplotlib" in str(missing.value)


def test_in_matplotlib_itself() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    far = Answer((*BARRED.columns[1:],), [(9, 8.0, 10.0), (8, None, None)], "SELECT", None)
    far = replace(
        far, columns=(AnswerColumn("a", DOUBLE), *(replace(one, bar_of=0) for one in BARRED.columns[2:]))
    )
    far.plot().figure.canvas.draw()
    axes = BARRED.plot()
    axes.figure.canvas.draw()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["north", "<b>\\x1b[2J</b>"]
    assert len(axes.containers) == 2
    matplotlib.pyplot.close("all")
