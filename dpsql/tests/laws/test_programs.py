"""What is asked of one person's rows is a function of their bag, as Postgres means it, and moves no more than is claimed
(soundness.md 1.13)."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import Refusal
from dpsql.plan.privacy import derived, programs
from dpsql.policy import load_policy
from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import Measured, World, compared, engine_of, measure_release, world

POLICY = """
database = "duckdb:rows.duckdb"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 1000
delta = 1e-3
[defaults]
epsilon = 1
delta = 1e-6
[tables.person]
unit = "id"
[tables.person.columns]
id = {{}}
age = {{ bounds = [0, 100] }}
[tables.visit]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = {rows}
[tables.visit.columns]
person_id = {{}}
day = {{ bounds = [2024-01-01T00:00:00, 2024-12-31T00:00:00] }}
n = {{ bounds = [-5, 9] }}
x = {{ bounds = [-10, 90] }}
tag = {{ values = ["a", "b", "c"] }}
note = {{ max_length = 20 }}
"""
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER NOT NULL);
CREATE TABLE visit (person_id INTEGER NOT NULL REFERENCES person (id), day TIMESTAMP, n INTEGER, x DECIMAL(6, 2), tag VARCHAR,
  note VARCHAR);
"""
_GROUPED = "(SELECT person_id, {} AS v FROM visit GROUP BY person_id) t"
_OVER = "(SELECT person_id, n, {} OVER (PARTITION BY person_id ORDER BY {}) AS v FROM visit) t"
_JOINED = "string_agg(note, '>' ORDER BY n DESC, day) FILTER (WHERE tag <> 'd')"
_JOINED_ONCE = "string_agg(DISTINCT tag, '' ORDER BY tag DESC)"
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def _over(call: str, order: str, what: str = "AVG(v)", where: str = "") -> str:
    return f"SELECT {what} FROM {_OVER.format(call, order)}{where}"


STATEMENTS = {
    "median": f"SELECT AVG(v) FROM {_GROUPED.format('median(x)')}",
    "percentile_cont": f"SELECT AVG(v) FROM {_GROUPED.format('percentile_cont(0.3) WITHIN GROUP (ORDER BY n DESC)')}",
    "percentile_disc": f"SELECT v, COUNT(*) FROM {_GROUPED.format('percentile_disc(0.5) WITHIN GROUP (ORDER BY tag)')} GROUP BY v",
    "mode": f"SELECT AVG(v) FROM {_GROUPED.format('mode() WITHIN GROUP (ORDER BY n)')}",
    "mode of texts": f"SELECT COUNT(*) FROM {_GROUPED.format('mode() WITHIN GROUP (ORDER BY note DESC)')} WHERE v = 'k'",
    "any_value": f"SELECT AVG(v) FROM {_GROUPED.format('any_value(n)')}",
    "string_agg": f"SELECT COUNT(*) FROM {_GROUPED.format(_JOINED)} WHERE v LIKE 'k>%' OR v LIKE '%>k>k%'",
    "string_agg of distinct": f"SELECT v, COUNT(*) FROM {_GROUPED.format(_JOINED_ONCE)} GROUP BY v",
    "sum of distinct": f"SELECT AVG(v) FROM {_GROUPED.format('SUM(DISTINCT n)')}",
    "ntile": _over("ntile(3)", "day, n", "COUNT(*)", " WHERE v = 2"),
    "nth_value": _over("nth_value(n, 3)", f"day {_WHOLE}"),
    "first_value": _over("first_value(x)", "n DESC"),
    "last_value": _over("last_value(x)", f"tag {_WHOLE}"),
    "percent_rank": _over("percent_rank()", "x"),
    "cume_dist": _over("cume_dist()", "note"),
    "row_number": _over("row_number()", "n", "AVG(n)", " WHERE v <= 2"),
    "rank": _over("rank()", "tag", "COUNT(*)", " WHERE v = 1"),
    "dense_rank": _over("dense_rank()", "day DESC", "COUNT(*)", " WHERE v < 3"),
    "lag": _over("lag(n)", "day"),
    "lead": _over("lead(x, 2, 1)", "n"),
    "few rows": _over("min(x)", "day ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING"),
    "to the end": _over("max(n)", "day, x ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING"),
    "sum of few": _over("sum(n)", "day ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
    "range of days": _over("sum(x)", "day RANGE BETWEEN INTERVAL '7 days' PRECEDING AND CURRENT ROW"),
    "range of numbers": _over("count(*)", "x DESC RANGE BETWEEN 10.5 PRECEDING AND 3 FOLLOWING"),
    "groups": _over("count(n)", "n GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
    "largest of groups": _over("max(x)", "n GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
    "qualify": "SELECT AVG(n) FROM (SELECT person_id, n FROM visit "
    "QUALIFY row_number() OVER (PARTITION BY person_id ORDER BY day DESC NULLS LAST) <= 2) t",
    "distinct on": "SELECT AVG(n) FROM (SELECT DISTINCT ON (person_id, tag) person_id, n FROM visit ORDER BY person_id, tag, x) t",
    "intersect": "SELECT COUNT(*) FROM (SELECT person_id, tag FROM visit WHERE n > 2 "
    "INTERSECT SELECT person_id, tag FROM visit WHERE n < 3) t",
    "except": "SELECT COUNT(*) FROM (SELECT id FROM person EXCEPT SELECT person_id FROM visit WHERE n > 2) t",
    "not in": "SELECT COUNT(*) FROM person WHERE id NOT IN (SELECT person_id FROM visit WHERE tag = 'a')",
    "lateral": "SELECT AVG(l.n) FROM person p CROSS JOIN LATERAL "
    "(SELECT v.n FROM visit v WHERE v.person_id = p.id ORDER BY v.day DESC LIMIT 2) l",
    "lateral of an aggregate": "SELECT AVG(l.k) FROM person p CROSS JOIN LATERAL "
    "(SELECT MAX(v.n) AS m, COUNT(*) AS k FROM visit v WHERE v.person_id = p.id AND v.tag = 'a') l",
    "lateral of groups": "SELECT COUNT(*) FROM person p LEFT JOIN LATERAL (SELECT v.tag, MEDIAN(v.x) AS m FROM visit v "
    "WHERE v.person_id = p.id GROUP BY v.tag HAVING COUNT(*) > 1 ORDER BY m DESC, v.tag LIMIT 2) l ON TRUE WHERE l.m > 0",
}  # fmt: skip
"""A statement for each row of the table in 1.13."""


def test_each_row_of_the_table_is_asked() -> None:
    assert {*programs._PROGRAMS, *derived._OVER} <= {*STATEMENTS}


Row = tuple[object, ...]


def _rows(rng: random.Random) -> list[Row]:
    """Rows of nine people, many of whom tie; two have many more than count, one none."""
    days = [
        "2024-01-05",
        "2024-01-05 10:00:00",
        "2024-01-09",
        "2024-03-01",
        "0001-01-01",
        "9999-12-31",
        "infinity",
        "-infinity",
    ]
    found: list[Row] = []
    for person in range(1, 9):
        for _ in range(40 if person > 6 else rng.choice((1, 2, 5, 8))):
            n = rng.choice((None, -5, 0, 1, 2, 2, 3, 9, 2**31 - 1, -(2**31)))
            x = rng.choice((None, "-9999.99", "0", "1.25", "1.25", "7", "90", "9999.99"))
            day = rng.choice((None, *days, *days[:4]))
            found.append((person, day, n, x, rng.choice((None, "a", "b", "c", "d")), rng.choice((None, "k", "K", "", "é" * 30))))  # fmt: skip
    return found


def _fill(connection: duckdb.DuckDBPyConnection, people: Iterator[int] | range, rows: list[Row]) -> None:
    connection.execute("DELETE FROM visit; DELETE FROM person")
    insert(connection, "person", [(person, person * 10) for person in people])
    insert(connection, "visit", rows)


def _measured(made: World, plans: dict[str, object]) -> dict[str, Measured]:
    with made.backend.snapshot() as snapshot:
        return {
            name: [measure_release(release, snapshot) for release in plan.releases]  # type: ignore[attr-defined]
            for name, plan in plans.items()
        }


def test_another_order_and_one_person_less(tmp_path: Path, engine: PostgresServer | None) -> None:
    """The rows in another order give the same integers; without a person they move by no more than is claimed. Each
    statement is verified from its text."""
    rng = random.Random(7)
    (tmp_path / "policy.toml").write_text(POLICY.format(rows=4))
    with world(tmp_path, policy=load_policy(tmp_path / "policy.toml"), schema=SCHEMA, server=engine) as made:
        rows = _rows(rng)
        _fill(made.connection, range(1, 10), rows)
        made.refresh()
        plans = {name: made.plan(sql) for name, sql in STATEMENTS.items()}
        with made.backend.snapshot() as snapshot:
            facts = read_facts(snapshot, made.policy, lambda *_: None)
        for name, plan in plans.items():
            assert rule_against(certificate_of(plan.releases, facts)) == "", name
        here = _measured(made, dict(plans))
        for _ in range(tried(1, 2)):
            rng.shuffle(rows)
            _fill(made.connection, range(9, 0, -1), rows)
            made.refresh()
            assert _measured(made, dict(plans)) == here
        most = dict.fromkeys(plans, Fraction(0))
        for gone in (2, 7, 8, 9):
            kept = [row for row in rows if row[0] != gone]
            _fill(made.connection, (one for one in range(1, 10) if one != gone), kept)
            made.refresh()
            there = _measured(made, dict(plans))
            for name, plan in plans.items():
                most[name] = max(most[name], compared(plan, here[name], there[name], name))
        assert all(0 < one <= 1 for one in most.values()), most


# --- what Postgres means, by brute force ----------------------------------------------------------------------


def _disc(values: list[Fraction], share: Fraction, *, descends: bool = False) -> Fraction:
    ordered = sorted(values, reverse=descends)
    return next(v for i, v in enumerate(ordered, 1) if Fraction(i, len(ordered)) >= share)


def _cont(values: list[Fraction], share: Fraction) -> Fraction:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def _mode(values: list[Fraction], *, descends: bool = False) -> Fraction:
    counts = Counter(values)
    most = [value for value, count in counts.items() if count == max(counts.values())]
    return max(most) if descends else min(most)


MEANT: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "median(x)": lambda values: _cont(values, Fraction(1, 2)),
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY x)": lambda values: _cont(values, Fraction(3, 10)),
    "percentile_cont('1/3') WITHIN GROUP (ORDER BY x DESC)": lambda values: _cont(values, Fraction(2, 3)),
    "percentile_cont(1) WITHIN GROUP (ORDER BY x)": max,
    "percentile_disc(0.28) WITHIN GROUP (ORDER BY x)": lambda values: _disc(values, Fraction(28, 100)),
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC)": lambda values: _disc(values, Fraction(1, 2), descends=True),
    "percentile_disc(0) WITHIN GROUP (ORDER BY x)": min,
    "mode() WITHIN GROUP (ORDER BY x)": _mode,
    "mode() WITHIN GROUP (ORDER BY x DESC)": lambda values: _mode(values, descends=True),
    "SUM(DISTINCT x)": lambda values: sum(set(values), Fraction(0)),
    "AVG(DISTINCT x)": lambda values: sum(set(values), Fraction(0)) / len(set(values)),
    "any_value(x)": min,
}  # fmt: skip
"""An aggregate of one person's values -> what it is."""


@pytest.fixture
def asking(tmp_path: Path, engine: PostgresServer | None) -> Iterator[tuple[Session, list[Row]]]:
    rng = random.Random(3)
    (tmp_path / "policy.toml").write_text(POLICY.format(rows=100))
    policy = load_policy(tmp_path / "policy.toml")
    rows: list[Row] = []
    for person in range(1, 60):
        for _ in range(rng.choice((0, 1, 2, 3, 4, 7, 25))):
            x = rng.choice((None, "0", "1.25", "1.25", "7", "-3.5", "90", str(rng.randrange(0, 90))))
            rows.append((person, f"2024-02-{rng.randrange(1, 29):02}", rng.randrange(-5, 10), x, "a", ""))
    with ExitStack() as stack:
        connection = stack.enter_context(empty_duckdb())
        connection.execute(SCHEMA)
        _fill(connection, range(1, 60), rows)
        store = open_ledger(policy, create=True)
        twin, backend = engine_of(stack, connection, policy, engine)
        if twin is not None:
            twin.refresh()
        yield (
            stack.enter_context(
                Session(Dataset(policy, backend, store, warm_sealed()), "tester", _noise=ZeroNoise())
            ),
            rows,
        )


def _answer(session: Session, sql: str) -> float:
    ((found,),) = session.execute(sql).rows
    return float(found)  # type: ignore[arg-type]


def test_what_aggregates_mean(asking: tuple[Session, list[Row]]) -> None:
    session, rows = asking
    people = itertools.groupby(rows, key=lambda row: row[0])
    values = [[Fraction(str(row[3])) for row in mine if row[3] is not None] for _, mine in people]
    for call, meant in MEANT.items():
        each = [meant(mine) for mine in values if mine]
        assert _answer(session, f"SELECT AVG(v) FROM {_GROUPED.format(call)}") == pytest.approx(
            float(sum(each) / len(each)), abs=1e-5
        ), call


@pytest.mark.parametrize("most", [3, 40])
def test_what_string_agg_means(
    asking: tuple[Session, list[Row]], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """The first of a person's values in their order, those that tie by value; of distinct ones each once; no NULL."""
    monkeypatch.setattr(programs, "MAX_JOINED", most)
    session, rows = asking
    people = [list(mine) for _, mine in itertools.groupby(rows, key=lambda row: row[0])]
    for call, meant in {
        "string_agg(n::text, ', ' ORDER BY day DESC)": lambda mine: [
            str(row[2]) for row in sorted(mine, key=lambda row: (-int(str(row[1])[-2:]), str(row[2])))
        ],
        "string_agg(DISTINCT n::text, ', ') FILTER (WHERE n > 3)": lambda mine: sorted(
            {str(row[2]) for row in mine if int(row[2]) > 3}
        ),
    }.items():
        texts = Counter(", ".join(found[:most]) for mine in people if (found := meant(mine)))
        for text, count in [*texts.most_common(2), min(texts.items(), key=lambda one: -len(one[0]))]:
            asked = f"SELECT COUNT(*) FROM {_GROUPED.format(call)} WHERE v = '{text}'"
            assert _answer(session, asked) == pytest.approx(count, abs=1e-5), (call, text)


def test_what_frames_mean(asking: tuple[Session, list[Row]]) -> None:
    """Of RANGE with a distance and GROUPS, by looking at all pairs of a person's rows."""
    session, rows = asking
    people = [list(mine) for _, mine in itertools.groupby(rows, key=lambda row: row[0])]

    def near(one: Row, other: Row) -> bool:
        return 0 <= int(str(one[1])[-2:]) - int(str(other[1])[-2:]) <= 5

    def beside(mine: list[Row], one: Row, other: Row) -> bool:
        places = sorted({int(str(row[2])) for row in mine})
        return abs(places.index(int(str(one[2]))) - places.index(int(str(other[2])))) <= 1

    days = [sum(near(one, other) for other in mine) for mine in people for one in mine]
    found = _answer(
        session, _over("count(*)", "day RANGE BETWEEN INTERVAL '5 days' PRECEDING AND CURRENT ROW")
    )
    assert found == pytest.approx(sum(days) / len(days), abs=1e-5)
    above = [
        sum(1 <= int(str(other[2])) - int(str(one[2])) <= 2 for other in mine)
        for mine in people
        for one in mine
    ]
    found = _answer(session, _over("count(*)", "n RANGE BETWEEN 0.5 FOLLOWING AND 2.5 FOLLOWING"))
    assert found == pytest.approx(sum(above) / len(above), abs=1e-5)
    far = sum(int(str(one[2])) <= 0 < int(str(other[2])) for mine in people for one in mine for other in mine)
    for away, meant in (("10", far), ("11", 0), ("99999999999999999999", 0)):
        over = f"CASE WHEN n > 0 THEN 5 ELSE -5 END RANGE BETWEEN {away} FOLLOWING AND 99999999999999999999 FOLLOWING"
        assert _answer(session, _over("count(*)", over, "SUM(v)")) == pytest.approx(meant, abs=1e-5), away
    assert far > 0
    ties = [sum(beside(mine, one, other) for other in mine) for mine in people for one in mine]
    found = _answer(session, _over("count(*)", "n GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING"))
    assert found == pytest.approx(sum(ties) / len(ties), abs=1e-5)
    for empty in (
        "3 FOLLOWING AND 1 FOLLOWING",
        "1 PRECEDING AND 3 PRECEDING",
        "4 FOLLOWING AND 3 FOLLOWING",
    ):
        none = _over("count(*)", f"day ROWS BETWEEN {empty}", "COUNT(*)", " WHERE v = 0")
        assert _answer(session, none) == pytest.approx(len(rows), abs=1e-5), empty
    last = [
        max(int(str(row[2])) for row in mine[i:]) for mine in map(_by_day, people) for i in range(len(mine))
    ]
    found = _answer(session, _over("max(n)", "day, n, x ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"))
    assert found == pytest.approx(sum(last) / len(last), abs=1e-5)


def _by_day(mine: list[Row]) -> list[Row]:
    return sorted(mine, key=lambda row: (row[1], row[2], row[3] is None, Fraction(str(row[3] or 0))))


# --- planted faults -------------------------------------------------------------------------------------------


def test_a_row_number_that_no_order_tells_apart_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault: windows by place leave ties as they come. The verifier refuses it."""
    monkeypatch.setattr(derived, "ignores_ties", lambda call: True)
    monkeypatch.setattr("dpsql.plan.backend_sql.print_source.ignores_ties", lambda call: True)
    (tmp_path / "policy.toml").write_text(POLICY.format(rows=4))
    with world(tmp_path, policy=load_policy(tmp_path / "policy.toml"), schema=SCHEMA) as made:
        made.refresh()
        with made.backend.snapshot() as snapshot:
            facts = read_facts(snapshot, made.policy, lambda *_: None)
        for name in ("nth_value", "few rows", "sum of few"):
            assert "alike" in rule_against(certificate_of(made.plan(STATEMENTS[name]).releases, facts)), name


def test_no_frame_by_groups_is_printed(tmp_path: Path, engine: PostgresServer | None) -> None:
    """DuckDB walks over the groups of a frame anew for each row: so many as a person has, and as many rows as tie."""
    (tmp_path / "policy.toml").write_text(POLICY.format(rows=4))
    with world(tmp_path, policy=load_policy(tmp_path / "policy.toml"), schema=SCHEMA, server=engine) as made:
        for frame in ("10000 PRECEDING AND 2147483647 FOLLOWING", "UNBOUNDED PRECEDING AND 1 FOLLOWING"):
            over = f"day, n DESC GROUPS BETWEEN {frame}"
            (release,) = made.plan(_over("sum(n)", over, "COUNT(*)", " WHERE v > 2")).releases
            (query,) = release.queries(tuple(range(len(release.measurements))))
            assert "GROUPS" not in query.sql
            assert "dense_rank() OVER (" in query.sql
            assert "RANGE BETWEEN " in query.sql


@pytest.mark.parametrize(
    "call",
    [
        "min(n) OVER (PARTITION BY person_id ORDER BY day ROWS BETWEEN 100 PRECEDING AND CURRENT ROW)",
        "max(n) OVER (PARTITION BY person_id ORDER BY n GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "sum(n) OVER (PARTITION BY person_id ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)",
    ],
)
def test_what_is_taken_anew_for_each_row_is_refused(tmp_path: Path, call: str) -> None:
    (tmp_path / "policy.toml").write_text(POLICY.format(rows=4))
    with world(tmp_path, policy=load_policy(tmp_path / "policy.toml"), schema=SCHEMA) as made:
        with pytest.raises(Refusal) as refused:
            made.plan(f"SELECT AVG(v) FROM (SELECT person_id, {call} AS v FROM visit) t")
        assert refused.value.sqlstate == "PV202"
    assert programs.MAX_FEW == 100
