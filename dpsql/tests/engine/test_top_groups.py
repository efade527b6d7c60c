"""The largest groups in a session: what is charged, stored, said and shown, through every door (soundness.md 1.23)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

import dpsql
from dpsql import Session
from dpsql.cli.application import program
from dpsql.cli.docs import read_topic
from dpsql.engine.dataset import open_ledger
from dpsql.errors import EngineFailure, Refusal
from dpsql.mechanisms import SampledNoise
from dpsql.policy import load_policy
from dpsql.release.run import PlanRunner
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.server.conftest import POLICY as SERVED
from dpsql.tests.server.conftest import run_server

PLACES = 40
POLICY = f"""
database = "duckdb:trips.duckdb"
ledger = "sqlite:trips.db"
[privacy]
epsilon = 1000
delta = 1e-6
[defaults]
epsilon = 0.1
max_epsilon = 10
[tables.person]
unit = "id"
[tables.person.columns]
id = {{}}
[tables.trip]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 20
max_rows_per_group = 1
max_groups = 20
[tables.trip.columns]
place = {{ values = {json.dumps([f"p{i:02}" for i in range(PLACES)])} }}
street = {{}}
"""
ROWS = f"""
CREATE TABLE person AS SELECT i AS id FROM range(3000) AS r(i);
ALTER TABLE person ADD PRIMARY KEY (id);
CREATE TABLE trip AS SELECT i AS person_id, printf('p%02d', p) AS place, 's' || (i % 7) AS street
    FROM range(3000) AS r(i), range({PLACES}) AS s(p) WHERE CASE WHEN p < 3 THEN i % (p + 1) = 0 ELSE (i * 7 + p) % 60 = 0 END;
ALTER TABLE trip ALTER COLUMN person_id SET NOT NULL;
ALTER TABLE trip ALTER COLUMN place SET NOT NULL;
"""
TRUE = {"p00": 3000, "p01": 1500, "p02": 1000}
GROUPS = "SELECT place, COUNT(*) AS n FROM trip GROUP BY place"
TOP = f"{GROUPS} ORDER BY n DESC LIMIT 3"


def make(folder: Path, more: str = "") -> Path:
    with duckdb.connect(str(folder / "trips.duckdb")) as connection:
        connection.execute(ROWS)
    path = folder / "trips.toml"
    path.write_text(POLICY + more)
    open_ledger(load_policy(path), create=True).close()
    return path


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session.open(make(tmp_path)) as opened:
        yield opened


def ask(session: Session, sql: str) -> tuple[list[tuple[Any, ...]], Fraction]:
    """Return rows and cost, from what is stored and not as the answer was remembered."""
    session.dataset.answers.clear()
    answer = session.execute(sql)
    assert answer.receipt is not None
    return list(answer.rows), answer.receipt.epsilon


def told(session: Session, sql: str) -> str:
    return " ".join(session.explain(sql).text().split())


# --- what comes out ---------------------------------------------------------------------------------------


def test_the_largest_with_their_counts(tmp_path: Path) -> None:
    with Session.open(make(tmp_path)) as opened:
        opened._noise = ZeroNoise()
        assert dict(opened.execute(TOP).rows) == TRUE


def test_the_noise_is_that_of_three_groups(session: Session) -> None:
    """In 40 draws each: the counts are off by the noise of 3 rows at half of epsilon, not of 20."""
    session.execute("SET dpsql.reuse = off")
    session.execute("SET dpsql.epsilon = 1")
    errors = []
    for _ in range(40):
        rows, cost = ask(session, TOP)
        assert cost == 1
        errors += [abs(n - TRUE[place]) for place, n in rows]
    assert len(errors) == 120
    assert (
        3 < sum(errors) / len(errors) < 9
    )  # 6 with a deviation of 0.55; of the whole histogram it would be 20


def test_the_charge_is_one_and_before_both_questions(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every bit is drawn before the first is asked, the choice before the counts, in one snapshot."""

    @dataclass
    class Watched:
        real: Any = field(default_factory=SampledNoise)

        def __getattr__(self, name: str) -> Any:
            seen.append(name)
            return getattr(self.real, name)

    seen: list[Any] = []
    original, snapshots = PlanRunner._ask, []

    def asked(self: PlanRunner, exact: Any, plan: Any, query: Any, snapshot: Any, salt: str) -> None:
        assert session.dataset.store.spent().epsilon_nano == 10**8
        seen.append(query.measurements)
        snapshots.append(snapshot)
        original(self, exact, plan, query, snapshot, salt)

    monkeypatch.setattr(PlanRunner, "_ask", asked)
    session._noise = Watched()
    session.execute(TOP)
    assert seen == ["bits", "draw", (1,), "pick", "pick", "pick", (0,)]
    assert snapshots[0] is snapshots[1]


def test_an_error_between_both_keeps_the_charge(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    original = PlanRunner._ask

    def fails(self: PlanRunner, exact: Any, plan: Any, query: Any, snapshot: Any, salt: str) -> None:
        if query.measurements == (0,):
            raise EngineFailure("gone")
        original(self, exact, plan, query, snapshot, salt)

    with monkeypatch.context() as patch:
        patch.setattr(PlanRunner, "_ask", fails)
        with pytest.raises(EngineFailure):
            session.execute(TOP)
    assert session.dataset.store.spent().epsilon_nano == 10**8
    assert ask(session, TOP)[1] == Fraction(1, 10)


# --- the store --------------------------------------------------------------------------------------------


def test_the_same_statement_is_free(session: Session) -> None:
    rows, cost = ask(session, TOP)
    assert cost == Fraction(1, 10)
    for again in (
        TOP,
        TOP.replace("n DESC", "2 DESC, place"),
        f"SELECT place, n / 2 FROM ({TOP}) AS t ORDER BY n DESC",
    ):
        found, cost = ask(session, again)
        assert (cost, [place for place, _ in found]) == (0, [place for place, _ in rows])
    session.execute("SET dpsql.epsilon = 0.05")
    assert ask(session, TOP) == (rows, 0)
    session.execute("SET dpsql.epsilon = 0.2")
    assert ask(session, TOP)[1] == Fraction(1, 5)


def test_another_aggregate_of_the_same_groups_pays_for_itself(session: Session) -> None:
    """The choice is stored at half of 0.1, which serves a third of it: two thirds are charged."""
    session.execute("SET dpsql.epsilon = 0.3")
    places = {place for place, _ in ask(session, TOP)[0]}
    sql = (
        "SELECT place, COUNT(*) AS n, COUNT(DISTINCT street) FROM trip GROUP BY place ORDER BY n DESC LIMIT 3"
    )
    rows, cost = ask(session, sql)
    assert {row[0] for row in rows} == places
    assert cost == Fraction(1, 10)  # the count is stored too


def test_another_limit_is_another_charge(session: Session) -> None:
    assert "another LIMIT, or the whole histogram, is another charge" in told(session, TOP)
    ask(session, TOP)
    for sql in (TOP.replace("3", "2"), GROUPS):
        assert ask(session, sql)[1] == Fraction(1, 10)


def test_any_limit_of_a_stored_histogram_is_free(session: Session) -> None:
    whole = dict(ask(session, GROUPS)[0])
    assert "chooses" not in told(session, TOP)
    for count in (1, 2, 3, 5):
        rows, cost = ask(session, TOP.replace("3", str(count)))
        assert (cost, len(rows)) == (0, count)
        assert all(whole[place] == n for place, n in rows)
        assert min(n for _, n in rows) >= sorted(whole.values())[-count]
    session.execute("SET dpsql.epsilon = 1")
    assert ask(session, TOP)[1] == 1  # the stored one is not as exact


def test_what_was_drawn_first_stays(session: Session) -> None:
    rows, _ = ask(session, TOP)
    ask(session, GROUPS)
    assert ask(session, TOP) == (rows, 0)


def test_nothing_of_the_scores_is_stored(session: Session, tmp_path: Path) -> None:
    rows, _ = ask(session, TOP)
    log = (tmp_path / "trips.db.log").read_text() if (tmp_path / "trips.db.log").exists() else ""
    session.dataset.store.close()
    import sqlite3

    with sqlite3.connect(tmp_path / "trips.db") as ledger:
        dump = "\n".join(ledger.iterdump())
    for place, exact in TRUE.items():
        assert f"[{exact}" not in dump + log, place
    chosen = json.dumps(sorted(place for place, _ in rows), separators=(",", ":"))
    assert chosen.encode().hex().upper() in dump.upper() or chosen in dump


# --- what is said -----------------------------------------------------------------------------------------


def test_explain_says_what_is_chosen(session: Session) -> None:
    """r = 3 · 1 / 0.05 · ln(20 · 3 · 40) = 60 · 7.7832 = 467."""
    said = told(session, TOP)
    for words in (
        "chooses 3 of 40 groups (epsilon 0.05), then counts them (epsilon 0.05); the whole histogram would have "
        "± 599.146",
        "of a person at most 1 in a group: sensitivity 1 of each score, permute-and-flip",
        "a group may be missed whose count is within 467 of the last one's at 95 %",
        "max_rows_per_group × LIMIT sets the noise",
        "here with the first groups in place of those that are chosen",
        "charge: epsilon 0.1",
    ):
        assert words in said
    (release,) = session.explain(TOP).as_dict()["releases"]  # type: ignore[misc]  # a list, as JSON has it
    assert release["measures"][1] == {
        "measure": "choice of groups", "chosen": 3, "candidates": 40, "sensitivity": "1", "within_95": "467",
        "epsilon": "0.05", "stored": False, "by": "count of rows", "most_in_a_group": "1", "costs": "epsilon 0.05",
        "missed": "a group may be missed whose count is within 467 of the last one's", "whole": "± 599.146",
        "then": "counts them (epsilon 0.05)",
    }  # fmt: skip
    receipt = session.execute(TOP).receipt
    assert receipt is not None
    assert any("3 of 40 groups were chosen, and these alone measured" in note for note in receipt.notes)


def test_explain_adds_up_rho_and_not_what_it_stands_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.1 is rho 0.005, in two parts: each as epsilon 0.1 / √2, together 0.1 and not twice that."""
    monkeypatch.setattr(
        "dpsql.tests.engine.test_top_groups.POLICY",
        POLICY.replace("delta = 1e-6", 'delta = 1e-6\naccounting = "zcdp"'),
    )
    with Session.open(make(tmp_path)) as opened:
        said = told(opened, TOP)
        assert "chooses 3 of 40 groups (as epsilon 0.0707107, rho 0.0025), then counts them " in said
        assert "(as epsilon 0.0707107, rho 0.0025); the whole histogram" in said
        more = told(opened, TOP.replace("AS n", "AS n, COUNT(DISTINCT street)"))
        assert "then measures them (as epsilon 0.0816497, rho 0.003333)" in more
        (release,) = opened.explain(TOP).as_dict()["releases"]  # type: ignore[misc]  # likewise
        assert release["measures"][1]["rho"] == "0.0025"
        opened.execute(TOP)
        notes = [entry.note for entry in opened.dataset.store.log(5)]
        assert any("top, sensitivity 3, scale" in note for note in notes), notes


def test_the_manual_shows_what_explain_says(tmp_path: Path) -> None:
    names = json.dumps([f"p{i:03}" for i in range(1000)])
    path = make(tmp_path)
    path.write_text("\n".join(
        f"place = {{ values = {names} }}" if line.startswith("place") else line for line in POLICY.split("\n")
    ))  # fmt: skip
    manual = read_topic("analyst").split("## The largest groups")[1].split("## EXPLAIN")[0]
    shown = [line.strip() for line in manual.split("\n") if line.startswith("    ")]
    assert len(shown) == 3
    with Session.open(path) as opened:
        said = [line.strip() for line in opened.explain(TOP).text().split("\n")]
    assert set(shown) <= set(said)


@pytest.mark.parametrize(
    "sql",
    [
        TOP.replace("place", "street"), TOP.replace("3", "40"), TOP.replace("3", "6"), TOP + " OFFSET 1",
        GROUPS, TOP.replace("n DESC", "n"), TOP.replace("ORDER BY", "HAVING COUNT(*) > 1 ORDER BY"),
        TOP.replace("COUNT(*)", "COUNT(DISTINCT street)"), TOP.replace("n DESC", "COUNT(*) + 1 DESC"),
        "SELECT COUNT(*) AS n FROM trip ORDER BY n DESC LIMIT 1", f"SELECT DISTINCT n FROM ({GROUPS}) t ORDER BY n DESC LIMIT 1",
    ],
)  # fmt: skip
def test_these_choose_nothing(session: Session, sql: str) -> None:
    assert all(release.top is None for release in session.explain(sql).plan.releases)


def test_the_limit_may_be_a_parameter_that_has_a_value(session: Session) -> None:
    sql = TOP.replace("3", "$1")
    rows = session.execute(sql, (3,)).rows
    assert len(rows) == 3
    assert ask(session, TOP) == (list(rows), 0)
    with pytest.raises(Refusal):
        session.execute(TOP.replace("3", "(SELECT COUNT(*) FROM trip)"))
    (columns, types) = session.describe_parameters(sql, (None,))
    assert ([column.name for column in columns], len(types)) == (["place", "n"], 1)


def test_the_setting(session: Session) -> None:
    assert session.execute("SHOW dpsql.selection").rows == [("on",)]
    session.execute("SET dpsql.selection = off")
    assert session.execute("SHOW dpsql.selection").rows == [("off",)]
    assert session.explain(TOP).plan.releases[0].top is None
    assert ask(session, TOP)[1] == Fraction(1, 10)
    assert ask(session, GROUPS)[1] == 0
    session.execute("RESET dpsql.selection")
    session.execute("SET dpsql.epsilon = 0.5")
    assert session.explain(TOP).plan.releases[0].top is not None
    with pytest.raises(Refusal, match=r"dpsql\.selection is on or off"):
        session.execute("SET dpsql.selection = 3")


def test_bars_are_those_of_the_counts(session: Session) -> None:
    """All chosen rows are shown, so each has its own: ± 180 is 60 · ln 20; where one of three is chosen again, wider."""
    session.execute("SET dpsql.intervals = 0.95")
    rows, _ = ask(session, TOP)
    halves = {(high - low) / 2 for _, _, low, high in rows}
    assert len(halves) == 1
    assert 179 < halves.pop() < 181
    ((_, _, low, high),), _ = ask(session, f"SELECT * FROM ({TOP}) AS t ORDER BY n DESC LIMIT 1")
    assert (high - low) / 2 > 200


def test_an_accuracy_is_of_what_is_measured(session: Session) -> None:
    session.execute("SET dpsql.accuracy = 50")
    found = session.explain(TOP)
    assert 0.3 < float(found.plan.epsilon) < 0.4  # 3 · ln 20 / 50 is 0.18, and as much for the choice
    assert ask(session, TOP)[1] == found.plan.epsilon


def test_the_audit_refuses_what_is_chosen(session: Session, tmp_path: Path) -> None:
    result = CliRunner().invoke(program, ["-P", str(tmp_path / "trips.toml"), "audit", "--sql", TOP])
    assert result.exit_code != 0
    assert "chooses groups" in result.output


# --- the doors --------------------------------------------------------------------------------------------


def test_every_door_answers_the_same(tmp_path: Path) -> None:
    """The command line draws; the driver and the server find it in the ledger."""
    alice = SERVED[SERVED.index("[analysts.alice]") :].split("\n[")[0]
    policy = make(tmp_path, alice)
    result = CliRunner().invoke(program, ["-P", str(policy), "query", "--json", TOP])
    assert result.exit_code == 0, result.output
    rows = [tuple(row) for row in json.loads(result.stdout)["rows"]]
    assert len(rows) == 3
    with dpsql.connect(policy) as connection, connection.cursor() as cursor:
        assert [tuple(row) for row in cursor.execute(TOP).fetchall()] == rows
    with run_server(policy) as served, served.connect(dbname="trips") as wire:
        assert wire.execute(TOP).fetchall() == rows
        assert wire.execute(TOP.replace("3", "%s"), (3,)).fetchall() == rows
        said = "\n".join(line for (line,) in wire.execute(f"EXPLAIN {TOP}").fetchall())
        assert "chooses 3 of 40 groups" in said
        wire.execute("SET dpsql.selection = off")
        assert wire.execute("SHOW dpsql.selection").fetchone() == ("off",)
    with Session.open(policy) as session:
        assert session.dataset.store.spent().epsilon_nano == 10**8
