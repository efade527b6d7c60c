"""Bars that hold noise and cut: whether they hold the truth, over people with lognormal numbers of rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpsql.engine import Session
from dpsql.engine.bounds import Measured, Wish, measure
from dpsql.engine.dataset import open_ledger
from dpsql.errors import PolicyError
from dpsql.policy import load_policy
from dpsql.tests.docs.documents import text
from dpsql.tests.support.length import tried

_POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 9000
{privacy}
[defaults]
epsilon = 0.5
max_epsilon = 10
[tables.person]
unit = "id"
[tables.visit]
unit = {{ column = "who", references = "person.id" }}
max_rows = {rows}
{groups}
[tables.visit.columns]
place = {{ values = ["a", "b", "c"] }}
cost = {{ bounds = [-2, 10] }}
"""
_PEOPLE = 4_000
_PRICE = Fraction(1, 2)
_ASKED = (
    "SELECT COUNT(*) FROM visit",
    "SELECT place, COUNT(*) FROM visit GROUP BY place ORDER BY place",
    "SELECT COUNT(*) FROM visit WHERE cost > 3",
    "SELECT SUM(cost) FROM visit",
    "SELECT place, COUNT(*) FROM visit WHERE cost > 3 GROUP BY place ORDER BY 2 DESC LIMIT 1",
)
"""Who has many visits has them at c: there a bound leaves out most."""


@dataclass
class Held:
    """Of bars: how many there were, how many hold the truth, how many the noise's bar would; of how many draws some."""

    bars: int = 0
    held: int = 0
    by_noise: int = 0
    draws: int = 0
    bounded: int = 0
    kept: float = 0.0
    beyond: float = 0.0

    @property
    def share(self) -> float:
        """The share of bars that hold the truth."""
        return self.held / max(1, self.bars)


@contextmanager
def _opened(
    folder: Path, spread: float, max_rows: int, privacy: str = "", groups: str = ""
) -> Iterator[Session]:
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(11)
    rows = np.floor(random.lognormal(1, spread, _PEOPLE)).astype(int)
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY)")
        connection.execute(
            "CREATE TABLE visit (who INTEGER REFERENCES person(id), place VARCHAR, cost INTEGER)"
        )
        connection.execute("INSERT INTO person SELECT unnest(?)", [list(range(_PEOPLE))])
        connection.execute(
            "INSERT INTO visit SELECT who, CASE WHEN i > 12 THEN 'c' WHEN i % 2 = 0 THEN 'a' ELSE 'b' END, i % 13 - 2 "
            "FROM (SELECT unnest(?) AS who, unnest(?) AS n), range(n) AS r(i)",
            [list(range(_PEOPLE)), rows.tolist()],
        )
    (folder / "people.toml").write_text(_POLICY.format(rows=max_rows, privacy=privacy, groups=groups))
    open_ledger(load_policy(folder / "people.toml"), create=True).close()
    with Session.open(folder / "people.toml") as session:
        session.execute("SET dpsql.intervals = 0.95")
        yield session


def _asked(session: Session, sql: str) -> tuple[list[tuple[float, ...]], str]:
    """Return value, low and high of each row's number by its key, and the notes."""
    answer = session.execute(sql)
    assert answer.receipt is not None
    return [tuple(row) for row in answer.rows], " ".join(answer.receipt.notes)  # type: ignore[misc]  # of numbers


def coverage(folder: Path, spread: float, max_rows: int, draws: int, privacy: str = "") -> Held:
    """Measure and ask so often, each time anew; return how often bars hold the truth."""
    found = Held()
    with _opened(folder, spread, max_rows, privacy) as session:
        with session.dataset.backend.snapshot() as snapshot:
            truths = {
                sql: {
                    row[:-1]: float(row[-1])
                    for chunk in snapshot.run(sql.replace(" LIMIT 1", ""))
                    for row in chunk
                }
                for sql in _ASKED
            }
            each = "SELECT SUM(LEAST(n, {})) / SUM(n) FROM (SELECT COUNT(*) AS n FROM visit GROUP BY who)"
            found.kept = float(next(snapshot.run(each.format(max_rows)))[0][0])
        for _ in range(draws):
            session.dataset.store.advance_epoch()
            for sql in _ASKED:
                _asked(session, sql)
            session.dataset.answers.clear()  # those after it have moved it
            plain = {sql: _asked(session, sql)[0] for sql in _ASKED}
            measure(session, Wish("visit", _PRICE, Fraction(1, 2)), "dpsql bounds visit")
            found.draws += 1
            for sql in _ASKED:
                rows, notes = _asked(session, f"{sql} ")
                if "hold the noise and what that leaves out" not in notes:
                    continue
                found.bounded += 1
                for row, before in zip(rows, plain[sql], strict=True):
                    (value, low, high), truth = map(float, row[-3:]), truths[sql][row[:-3]]
                    assert (value, low) == (float(before[-3]), float(before[-2])) or "SUM" in sql
                    found.bars += 1
                    found.held += low <= truth <= high
                    found.by_noise += float(before[-2]) <= truth <= float(before[-1])
                    if sql == _ASKED[0]:
                        found.beyond += high / truth - 1
    found.beyond /= max(1, found.bounded / len(_ASKED))
    return found


_DATA = (  # how many rows people have: too low, right, too high a bound
    (1.0, (2, 20, 100)),
    (1.5, (2, 50, 400)),
)


@pytest.mark.parametrize("asked", ["", " WHERE cost > 0"])
def test_people_in_groups_beyond_those_that_count(tmp_path: Path, asked: str) -> None:
    """Of three places one counts of each person, so that many are missing in each; no more than were measured."""
    sql = f"SELECT place, COUNT(DISTINCT who) FROM visit{asked} GROUP BY place ORDER BY place"
    with _opened(tmp_path, 1.5, 50, groups="max_groups = 1") as session:
        with session.dataset.backend.snapshot() as snapshot:
            truth = {row[0]: row[1] for chunk in snapshot.run(sql) for row in chunk}
        before, notes = _asked(session, sql)
        assert notes.endswith("a person counts with at most 1 group; no error bar holds what that leaves out")
        assert not all(low <= truth[place] <= high for place, _, low, high in before)
        measure(session, Wish("visit", Fraction(40), Fraction(1), groups=("place",)), "dpsql bounds")
        rows, notes = _asked(session, f"{sql} ")
        assert re.search(
            r"at most 1 group, about \d+ % of all groups of people, at least \d+ % \(meas", notes
        )
        assert notes.endswith("; the error bars hold the noise and what that leaves out")
        assert all(low <= truth[place] <= high for place, _, low, high in rows)
        _, notes = _asked(session, "SELECT cost, COUNT(DISTINCT who) FROM visit GROUP BY cost")
        assert "at most 1 group; no error bar holds what that leaves out" in notes, (
            "the groups of another column are others"
        )


def test_what_was_made_to_agree_holds_the_noise_alone(tmp_path: Path) -> None:
    """Of a fit some numbers have weights below 0: what they lose is no longer between nothing and all that is cut."""
    with _opened(tmp_path, 1.5, 50) as session:
        measure(session, Wish("visit", Fraction(8), Fraction(1)), "dpsql bounds")
        where = "FROM visit WHERE place IN ('a', 'b', 'c')"
        answers = session.release(
            [f"SELECT place, COUNT(*) {where} GROUP BY place", f"SELECT COUNT(*) {where}"]
        )
        for answer in answers:
            assert answer.receipt is not None
            notes = " ".join(answer.receipt.notes)
            assert "were made to agree, by least squares" in notes
            assert "; no error bar holds what that leaves out where numbers were made to agree" in notes
            for *_, value, low, high in answer.rows:
                assert abs((high - value) - (value - low)) <= 2  # type: ignore[operator]  # numbers


def test_a_suggestion_for_groups(tmp_path: Path) -> None:
    with _opened(tmp_path, 1.5, 50) as session:
        found = measure(session, Wish("visit", Fraction(40), Fraction(1), groups=("place",)), "dpsql bounds")
        assert isinstance(found, Measured)
        (one,) = found.groups
        assert (one.column, one.declared) == ("place", None)
        assert one.suggested in (2, 3, 5)
        with pytest.raises(PolicyError, match='declares no column "plaice"'):
            measure(session, Wish("visit", Fraction(8), Fraction(1), groups=("plaice",)), "dpsql bounds")


def _holds(found: Held) -> bool:
    """Whether so many bars hold the truth as 19 of 20 would, in all but a draw in a thousand.

    Bars of one draw rest on one measurement: as if each of them missed with it.
    """
    return found.share >= 0.95 - 3 * (0.95 * 0.05 / max(1, found.bounded / len(_ASKED))) ** 0.5


@pytest.mark.parametrize("max_rows", [2, pytest.param(50, marks=pytest.mark.long), 400])
def test_bars_hold_noise_and_cut(tmp_path: Path, max_rows: int) -> None:
    found = coverage(tmp_path, 1.5, max_rows, tried(6, 12))
    assert found.bounded >= 0.5 * found.draws * len(_ASKED)
    assert _holds(found), found
    if max_rows == 2:
        assert found.by_noise < 0.1 * found.bars, "they would not without"


@pytest.mark.parametrize(
    "privacy", ['neighbours = "replace-one"', "together = 2", 'delta = 1e-6\naccounting = "zcdp"']
)
def test_bars_hold_noise_and_cut_under_other_promises(tmp_path: Path, privacy: str) -> None:
    found = coverage(tmp_path, 1.0, 4, tried(4, 8), privacy)
    assert found.bounded >= 0.5 * found.draws * len(_ASKED)
    assert _holds(found), found


@pytest.mark.long
@pytest.mark.parametrize(
    ("spread", "max_rows"), [(spread, rows) for spread, bounds in _DATA for rows in bounds]
)
def test_bars_hold_noise_and_cut_in_many_draws(tmp_path: Path, spread: float, max_rows: int) -> None:
    found = coverage(tmp_path, spread, max_rows, 300)
    assert found.bounded >= 0.5 * found.draws * len(_ASKED)
    assert found.share >= 0.95, found
    shown = re.search(rf"^\| {spread:g} \| {max_rows} \|(.*)\|$", text("owner"), re.MULTILINE)
    assert shown, "the manual has a row of it"
    kept, noise, both, beyond = (float(cell.strip(" %")) for cell in shown[1].split("|"))
    assert abs(kept - 100 * found.kept) <= 1
    assert abs(noise - 100 * found.by_noise / found.bars) <= 8
    assert abs(both - 100 * found.share) <= 3
    assert abs(beyond - 100 * found.beyond) <= 20
