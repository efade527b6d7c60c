"""A key that another one says is shown beside it: the draw is that of the statement without it (1.7).

With the noise that users meet, in DuckDB; and without noise against the engine's own GROUP BY, on both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from dpsql.engine.answer import Answer
from dpsql.plan.privacy import release_boundary, rows, value_set
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, random_database

from .conftest import Desk, OpenDesk, make_desk
from .examples import HEAVY, person, visit
from .planting import plant

Patch = pytest.MonkeyPatch
Row = tuple[Any, ...]

DAYS = Database(
    (person(1), person(2)),
    (*(visit(1 + i % 2, city="abc"[i % 3], day=f"2020-{1 + i % 12:02d}-{1 + i:02d}", seen=f"2020-0{1 + i % 3}-0{1 + i % 9} 10:00:00")
       for i in range(18)), visit(2, n="5")),
)  # fmt: skip

PAIRS = [
    ("EXTRACT(month FROM day)", "to_char(day, 'Mon')"),
    ("date_trunc('month', day)", "date_trunc('quarter', day)"),
    ("date_trunc('month', day)", "extract(year FROM day)"),
    ("date_trunc('day', seen)", "extract(isodow FROM seen)"),
    ("city", "upper(city)"),
    ("city", "CASE WHEN city IN ('a', 'b') THEN 'first' ELSE 'last' END"),
    ("city", "upper(coalesce(city, 'none'))"),
    ("CASE WHEN n > 3 THEN 1 ELSE 0 END", "CASE WHEN n > 3 THEN 'many' ELSE 'few' END"),
    ("n / 2", "n / 4"),
    ("day", "to_char(day, 'YYYY-MM')"),
]
"""A key, and what it says."""


def charge(answer: Answer) -> Any:
    assert answer.receipt is not None
    return answer.receipt.epsilon


@pytest.mark.parametrize(("key", "label"), PAIRS)
def test_a_label_has_the_draw_of_its_key(desk: OpenDesk, key: str, label: str) -> None:
    """The statement with it is free after the one without it, and shows the same numbers; in any order of both."""
    opened = desk()
    opened.settle(DAYS)
    alone = opened.session.execute(f"SELECT {key}, COUNT(*) FROM visit GROUP BY 1")
    for keys in ((key, label), (label, key)):
        both = opened.session.execute(f"SELECT {', '.join(keys)}, COUNT(*) FROM visit GROUP BY 1, 2")
        assert charge(both) == 0, keys
        place = keys.index(key)
        assert [(row[place], row[2]) for row in both.rows] == [tuple(row) for row in alone.rows]


@pytest.fixture
def exact(engine: PostgresServer | None, tmp_path: Any) -> Iterator[Desk]:
    with ExitStack() as stack:
        yield make_desk(stack, tmp_path, ZeroNoise(), server=engine)


_WITHIN = """
    (day IS NULL OR day BETWEEN '2020-01-01' AND '2020-12-31') AND (n IS NULL OR n BETWEEN -3 AND 7)
    AND (seen IS NULL OR seen BETWEEN '2020-01-01' AND '2020-03-31') AND (city IS NULL OR city IN ('a', 'b', 'c'))"""


def check_labels(opened: Desk) -> None:
    """What a label is beside its key is what DuckDB says of the rows."""
    for key, label in PAIRS:
        answer = opened.session.execute(f"SELECT {key}, {label}, COUNT(*) FROM visit GROUP BY 1, 2")
        own = f"SELECT DISTINCT {key}, {label} FROM visit WHERE {_WITHIN}".replace("/", "//")
        own = own.replace("to_char(day, 'Mon')", "strftime(day, '%b')")
        own = own.replace("to_char(day, 'YYYY-MM')", "strftime(day, '%Y-%m')")
        expected = {_plain(row) for row in opened.connection.execute(own).fetchall()}
        assert expected <= {_plain(row[:2]) for row in answer.rows}, (key, label)


def _plain(row: Row) -> Row:
    """Return a row as texts, a day alike as date and as timestamp."""
    return tuple(str(value).removesuffix(" 00:00:00") for value in row)


def test_labels_are_those_of_the_rows(exact: Desk) -> None:
    for seed in range(tried(1, 3)):
        exact.settle(random_database(random.Random(seed), 40))
        check_labels(exact)
    exact.settle(DAYS)
    check_labels(exact)


def check_rollup(opened: Desk) -> None:
    """Quarters are sums of their three months, and the total of all quarters."""
    sql = """
        SELECT GROUPING(date_trunc('month', day)), GROUPING(date_trunc('quarter', day)), date_trunc('quarter', day),
               COUNT(*), COUNT(DISTINCT n)
        FROM visit GROUP BY ROLLUP(date_trunc('quarter', day), date_trunc('month', day))"""
    found = opened.session.execute(sql).rows
    months, quarters, (total,) = (
        [row for row in found if tuple(row[:2]) == bits] for bits in ((0, 0), (1, 0), (1, 1))
    )
    assert (len(months), len(quarters)) == (13, 5)
    for quarter in quarters:
        assert quarter[3] == sum(month[3] for month in months if month[2] == quarter[2])
    assert total[3] == sum(row[3] for row in quarters)


def test_a_rollup_adds_up_by_labels(desk: OpenDesk) -> None:
    opened = desk(epsilon="0.25")
    opened.settle(HEAVY)
    check_rollup(opened)
    opened.session.execute(
        "SELECT date_trunc('quarter', day), date_trunc('month', day), COUNT(*) FROM visit GROUP BY ROLLUP(1, 2)"
    )
    months = opened.session.execute("SELECT date_trunc('month', day), COUNT(*) FROM visit GROUP BY 1")
    assert charge(months) == 0


def test_what_is_no_function_of_the_other_key_is_no_label(desk: OpenDesk) -> None:
    opened = desk()
    opened.settle(DAYS)
    check_no_labels(opened)


def check_no_labels(opened: Desk) -> None:
    for keys in ("EXTRACT(month FROM day), EXTRACT(day FROM day)", "n, flag", "upper(city), lower(city)"):
        (release,) = opened.session.explain(f"SELECT {keys}, COUNT(*) FROM visit GROUP BY 1, 2").plan.releases
        assert len(release.release.keys) == 2, keys


@pytest.mark.parametrize(
    ("function", "fault", "check"),
    [
        (release_boundary._function, ("if found.setdefault(value, label) != label:", "if False:"), check_no_labels),
        (value_set.told_together, ("takes_others=False", "takes_others=True"), check_no_labels),
        (rows.Label.over, ("if value is None", "if False"), check_labels),
        (rows.Label.over, ("Literal(self.type, shown)]", "Literal(self.type, self.values[0][1])]"), check_labels),
    ],
    ids=["several values of one key", "texts that nothing names", "a NULL that is compared", "the first label of all"],
)  # fmt: skip
def test_faults_are_seen(
    desk: OpenDesk, monkeypatch: Patch, function: Callable[..., object], fault: tuple[str, str],
    check: Callable[[Desk], None],
) -> None:  # fmt: skip
    opened = desk(ZeroNoise())
    opened.settle(DAYS)
    plant(monkeypatch, function, fault)
    with pytest.raises(AssertionError):
        check(opened)
