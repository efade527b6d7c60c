"""Keys of one column as partitions of what they tell apart, against the groups that the engine puts rows in."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from dpsql.plan.privacy import axes, pieces, release_boundary, value_set
from dpsql.plan.privacy.axes import Partition, Places, refined
from dpsql.plan.privacy.keys import environment_of
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import parse_policy
from dpsql.tests.laws.measured import World, measure_release, world
from dpsql.tests.laws.planting import plant

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, born DATE NOT NULL, seen TIMESTAMP, gpa DOUBLE, fee DECIMAL(6, 2),
                     n INTEGER NOT NULL, major VARCHAR, works BOOLEAN, level INTEGER);
"""
POLICY = """
database = "duckdb:laws.duckdb"
ledger = "sqlite:laws-ledger.db"
[privacy]
epsilon = 9999
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.person.columns]
born = { bounds = [2024-01-05, 2025-06-20] }
seen = { bounds = [2024-02-27T20:00:00, 2024-03-02T04:00:00] }
gpa = { bounds = [0, 4] }
fee = { bounds = [0, 3] }
n = { bounds = [-3, 12] }
major = { values = ["CS", "EE", "ME", "other"] }
level = { values = [1, 2, 5] }
works = {}
"""
ROWS = """
INSERT INTO person
SELECT i, DATE '2023-11-01' + (i * 7 % 700)::INTEGER, TIMESTAMP '2024-02-27 00:00:00' + INTERVAL (i * 37 % 9000) MINUTE,
       CASE WHEN i % 50 = 0 THEN 'nan'::DOUBLE WHEN i % 31 = 0 THEN NULL ELSE (i % 1300) / 300.0 - 0.1 END,
       CASE WHEN i % 29 = 0 THEN NULL ELSE ((i * 13) % 500) / 100.0 - 1 END, i % 20 - 6,
       CASE WHEN i % 6 = 5 THEN NULL ELSE ['CS', 'EE', 'ME', 'XX', 'other'][i % 6 + 1] END,
       CASE i % 3 WHEN 0 THEN NULL ELSE i % 3 = 1 END, i % 7
FROM range(1, 2600) AS t (i);
"""
TOGETHER = {
    "days and months": ("born", "date_trunc('month', born)"),
    "months, quarters and years": ("date_trunc('month', born)", "date_trunc('quarter', born)", "EXTRACT(year FROM born)"),
    "weeks and months": ("date_trunc('week', born)", "date_trunc('month', born)"),
    "months of any year": ("date_trunc('month', born)", "EXTRACT(month FROM born)"),
    "hours and days": ("date_trunc('hour', seen)", "CAST(seen AS DATE)"),
    "bins": ("floor(gpa / 0.25)", "floor(gpa / 0.5) * 0.5", "gpa >= 3"),
    "bins that cross": ("floor(gpa / 0.5)", "floor(gpa / 0.75)"),
    "cents": ("floor(fee)", "fee > 1.5", "CASE WHEN fee < 1 THEN 'low' WHEN fee < 2.25 THEN 'high' ELSE 'most' END"),
    "whole numbers": ("n", "n % 3", "n > 4", "abs(n)"),
    "a list and a coarser one": ("major", "CASE WHEN major IN ('CS', 'EE') THEN 'science' ELSE 'more' END", "major = 'ME'"),
    "a truth": ("works", "NOT works", "works IS NULL"),
}  # fmt: skip


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("partitions")
    policy = parse_policy(POLICY, folder / "policy.toml")
    with world(folder, policy=policy, schema=SCHEMA) as made:
        made.connection.execute(ROWS)
        yield made


def release(here: World, keys: tuple[str, ...]) -> ReleasePlan:
    """Return the release by some keys, none of which is a label of another."""
    columns = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
    places = ", ".join(map(str, range(1, len(keys) + 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_boundary.Labels, "_labels", lambda *_: {})
        (found,) = here.plan(f"SELECT {columns}, COUNT(*) FROM person GROUP BY {places}").releases
    return found


def partitions_of(here: World, keys: tuple[str, ...]) -> tuple[Partition, ...] | None:
    plans = [release(here, (key,)) for key in keys]
    places: list[Places] = []
    for plan in plans:
        assert plan.axes is not None
        (axis,) = plan.axes
        places.append((axis.values, axis.size))
    rows = plans[0].release.rows
    env = environment_of(rows.columns, rows.predicate)
    return refined([plan.release.keys[0] for plan in plans], places, env)


def check(here: World, keys: tuple[str, ...]) -> tuple[Partition, ...]:
    """Every group of two keys that the engine finds a row in is an atom, and each place has one."""
    found = partitions_of(here, keys)
    assert found is not None
    assert len({len(one.groups) for one in found}) == 1
    assert len(set(zip(*(one.groups for one in found), strict=True))) == len(found[0].groups)
    for (i, one), (j, other) in itertools.combinations(enumerate(found), 2):
        both = release(here, (keys[i], keys[j]))
        axes = [axis for key in (keys[i], keys[j]) for axis in release(here, (key,)).axes or ()]
        known = [(*axis.values, *axis.others) for axis in axes]
        both.__dict__["axes"] = tuple(axes)  # all pairs, those too that no row can be in
        with here.backend.snapshot() as snapshot:
            cells = measure_release(both, snapshot, ())[0]
        places = {
            tuple(values.index(value) for values, value in zip(known, key, strict=True))
            for key, (count,) in cells.items()
            if count
        }
        assert places <= set(zip(one.groups, other.groups, strict=True)), (keys[i], keys[j])
        assert (one.size, other.size) == tuple(map(len, known))
        assert min(*one.groups, *other.groups) == 0
    return found


@pytest.mark.parametrize("name", TOGETHER)
def test_each_row_is_in_an_atom(here: World, name: str) -> None:
    check(here, TOGETHER[name])


def test_months_are_made_of_days(here: World) -> None:
    days, months = check(here, TOGETHER["days and months"])
    assert (days.size, months.size) == (534, 19)
    # days beyond the bounds are others, and in the first month or the last
    assert (len(days.groups), days.sizes[-1]) == (536, 3)
    assert (months.sizes[0], months.sizes[1], months.sizes[-2]) == (28, 29, 21)


def test_where_narrows_what_is_beyond(here: World) -> None:
    """No day beyond the bounds is left: months are made of days alone."""
    where = "WHERE born BETWEEN '2024-02-01' AND '2024-03-31'"
    plans = [
        here.plan(f"SELECT {key}, COUNT(*) FROM person {where} GROUP BY 1").releases[0]
        for key in TOGETHER["days and months"]
    ]
    rows = plans[0].release.rows
    places = [(axis.values, axis.size) for plan in plans for axis in plan.axes or ()]
    keys = [plan.release.keys[0] for plan in plans]
    days, months = refined(keys, places, environment_of(rows.columns, rows.predicate)) or ()
    assert (days.size, months.sizes) == (len(days.groups), [29, 31, 1])


def test_weeks_and_months_meet_in_what_both_tell_apart(here: World) -> None:
    weeks, months = check(here, TOGETHER["weeks and months"])
    assert weeks.size < len(weeks.groups) < weeks.size + months.size


def test_a_list_that_grew(here: World) -> None:
    """What was listed before, and now: others are others of both."""
    plan = release(here, ("major",))
    rows = plan.release.rows
    env = environment_of(rows.columns, rows.predicate)
    lists: list[Places] = [(("CS", "EE"), 3), (("CS", "ME", "EE"), 4)]
    before, now = refined(plan.release.keys * 2, lists, env) or ()
    assert sorted(zip(before.groups, now.groups, strict=True)) == [(0, 0), (1, 2), (2, 1), (2, 3)]


@pytest.mark.parametrize(
    "keys",
    [
        ("born", "n"),  # of two columns
        ("level", "level > 2"),  # of a list of numbers, between which others may stand
    ],
)
def test_what_has_no_partitions(here: World, keys: tuple[str, ...]) -> None:
    assert partitions_of(here, keys) is None


def test_too_many_pieces_have_none(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_MOST", 100)
    assert partitions_of(here, TOGETHER["days and months"]) is None


# --- mutants ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "function", "fault"),
    [
        ("bins", pieces._all_cuts, ("range(first, last + 1)", "range(first, first + 1)")),
        ("a list and a coarser one", value_set.atoms, ("is_key=is_key", "is_key=True")),
        (
            "hours and days",
            axes.refined,
            ("for empty in sorted(set(range(size))", "for empty in sorted(set()"),
        ),
        ("days and months", axes.refined, ("len(known[itself])", "place[itself]")),
    ],
)
def test_faults_are_seen(
    here: World, monkeypatch: pytest.MonkeyPatch, name: str, function: object, fault: tuple[str, str]
) -> None:
    plant(monkeypatch, function, fault)
    with pytest.raises(AssertionError):
        check(here, TOGETHER[name])
