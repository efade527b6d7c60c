"""L1 in squares for counts of rows of two people in a zCDP dataset: who is pointed at is cut by a norm (soundness.md 1.38).

R_a is 2 and T is 3, as in `test_two_owners`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.engine.contribution import contribution_lines
from dpsql.plan.backend_sql.print_release import norm_divisor
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.plan.measures.measurements import MAX_SQUARES, WEIGHT, Count, Measurement
from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import World, measure_release
from .planting import plant
from .test_two_owners import BY_KIND, COUNT, FIRST, MOST, POLICY, People, check, opened, put, star, verdict

Patch = pytest.MonkeyPatch

MASKS = (
    "SELECT COUNT(*) FILTER (WHERE v.kind = 0), COUNT(*) FILTER (WHERE v.kind = 1) FROM vote v "
    "JOIN post p ON v.post = p.id"
)
BOTH = "SELECT p.cat, v.kind, COUNT(*), COUNT(v.amount) FROM vote v JOIN post p ON v.post = p.id GROUP BY p.cat, v.kind"
STATEMENTS = (
    BY_KIND,
    MASKS,
    BOTH,
    "SELECT v.kind, COUNT(*), SUM(v.amount) FROM vote v JOIN post p ON v.post = p.id WHERE p.cat = 'x' GROUP BY v.kind",
    "SELECT r.city, COUNT(*) FROM message m JOIN person r ON r.id = m.receiver WHERE r.city IN ('a', 'b') GROUP BY r.city",
    "SELECT v.kind, COUNT(*) FROM vote v JOIN post p ON v.post = p.id WHERE v.kind IN (0, 1) GROUP BY v.kind",
)


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory.mktemp("clamped"), engine, zcdp=True)


def people_of(votes: list[tuple[int, int, int]], authors: int = 4) -> People:
    """Votes (voter, post, kind), of posts 1 to `authors`, each of the author of its number."""
    numbers = sorted(range(100, 100 + len(votes)), key=lambda one: one * 2654435761 % 2**32)
    vote = tuple((no, *rest, 1) for no, rest in zip(numbers, votes, strict=True))
    person = tuple((one, "ab"[one % 2]) for one in range(1, 200))
    message = tuple((voter, post, 1) for voter, post, _ in votes)
    return People(person, tuple((one, one, "xy"[one % 2]) for one in range(1, authors + 1)), vote, message)


def aligned() -> People:
    """Person 1 is voted on beyond the norm, and votes for two: all in one group."""
    return people_of([(1, 2, 0), (1, 3, 0), *((voter, 1, 0) for voter in range(20, 32))])


def crowded(seed: int) -> People:
    """Many voters, few authors, of whom some are just below and some far above the norm, in one group or in several."""
    draw = random.Random(seed)
    many = {post: draw.choice([1, 2, 3, 4, 5, 12, 40]) for post in range(1, 5)}
    kinds = {post: draw.choice([[0], [1], [0, 1], [0, 1, 2], [0, 0, 0, 1]]) for post in many}
    voters = iter(range(20, 200))
    votes = [
        (next(voters), post, draw.choice(kinds[post])) for post, number in many.items() for _ in range(number)
    ]
    votes += [(voter, draw.randint(1, 4), draw.randrange(3)) for voter in (1, 1, 2, 3, 3, 3, 5, 5)]
    draw.shuffle(votes)
    return people_of(votes)


def test_it_is_verified_by_the_norm(squares: World) -> None:
    for sql in STATEMENTS:
        assert verdict(squares, sql) == "", sql
        counts = [one for one in squares.plan(sql).releases[0].measurements if one.kind == "count"]
        assert all(one.is_clamped for one in counts), sql
    assert not squares.plan(COUNT).releases[0].measurements[0].is_clamped, (
        "of one number the norm is the rows"
    )


@pytest.mark.parametrize("sql", [BY_KIND, MASKS])
def test_the_figure_is_reached(squares: World, sql: str) -> None:
    """(2 + 3)², but for what is rounded; by rank it would be (2 + 3)² + 2² of the claim."""
    people = aligned()
    [worst] = check(squares, (sql,), people, [people.without(1)])
    assert Fraction(99_999, 100_000) < worst <= 1


@pytest.mark.parametrize("seed", range(12))
def test_no_norm_is_passed(squares: World, seed: int) -> None:
    people = crowded(seed)
    check(squares, STATEMENTS, people, [people.without(one) for one in (1, 2, 3, 5)])


@pytest.mark.parametrize("how", ["replace", "together"])
def test_other_promises_hold(tmp_path: Path, engine: PostgresServer | None, how: str) -> None:
    for made in opened(
        tmp_path, engine, zcdp=True, replace_one=how == "replace", together=2 if how == "together" else 1
    ):
        assert [verdict(made, sql) for sql in STATEMENTS] == [""] * len(STATEMENTS)
        for people in (aligned(), crowded(1)):
            one = people.without(1)
            pair = (one, people.without(2)) if how == "replace" else (people, one.without(2))
            check(made, STATEMENTS, pair[0], [pair[1]])


def test_within_the_norm_nothing_is_cut(squares: World) -> None:
    """Nine rows in nine cells are of norm 3; by rows three of them would count."""
    votes = [(20 + i, 1, i % 3) for i in range(3)]
    squares.settle(put, people_of(votes))
    assert cells(squares, BY_KIND) == {(0,): 1, (1,): 1, (2,): 1}
    squares.settle(put, people_of([(20 + i, 1, i % 3) for i in range(9)]))
    found = cells(squares, BY_KIND)
    assert all(abs(one - math.sqrt(3)) < 1e-5 for one in found.values()), found


def cells(made: World, sql: str) -> dict[object, float]:
    release = made.plan(sql).releases[0]
    with made.backend.snapshot() as snapshot:
        [groups] = measure_release(release, snapshot).values()
    return {key: one[0] / release.measurements[0].denominator for key, one in groups.items()}


def test_the_divisor_is_the_root(squares: World) -> None:
    """On the engine: not below V times the root, and above it by 2^-40 of it and 1 at most."""
    draw = random.Random(5)
    roots = [
        1,
        2,
        3,
        4,
        1000,
        2**20 - 1,
        2**26 + 1,
        2**29 - 1,
        *(draw.randrange(1, 2**29) for _ in range(200)),
    ]
    sums = sorted(
        {max(1, root**2 + i) for root in roots for i in (-1, 0, 1)} | {MAX_SQUARES - 1, MAX_SQUARES}
    )
    dialect = DUCKDB if squares.twin is None else PostgresDialect(None)
    z, d = norm_divisor(dialect, 3)
    values = ", ".join(f"(CAST({one} AS BIGINT))" for one in sums)
    sql = f"SELECT s, CAST({d} AS BIGINT) AS d FROM (SELECT s, {z} AS z FROM (VALUES {values}) AS v(s)) AS q"
    with squares.backend.snapshot() as snapshot:
        found = {int(s): int(d) for batch in snapshot.run(sql) for s, d in batch}
    assert len(found) == len(sums)
    for s, divisor in found.items():
        exact = s * WEIGHT**2
        assert divisor >= 3 * WEIGHT
        assert divisor**2 >= exact
        above = divisor if divisor > 3 * WEIGHT else math.isqrt(exact)
        assert (above - 1) ** 2 * 2**78 <= exact * (2**39 + 1) ** 2


def test_a_cell_of_another_norm_is_another_number(squares: World) -> None:
    """Beside more masks a person has more cells, and what is counted of each is less: no stored draw of one is the
    other's."""
    alone = "SELECT p.cat, COUNT(*) FILTER (WHERE v.kind = 0) FROM vote v JOIN post p ON v.post = p.id GROUP BY p.cat"
    beside = alone.replace(" FROM", ", COUNT(*) FROM")
    squares.settle(put, people_of([(20 + i, 1, i % 3) for i in range(30)]))
    one, other = cells(squares, alone)[("y",)], cells(squares, beside)[("y",)]
    assert one > 1.5 * other
    assert not {*keys_of(squares, alone)} & {*keys_of(squares, beside)}


def keys_of(made: World, sql: str) -> tuple[bytes, ...]:
    """The store keys of a statement's first measurement."""
    release = made.plan(sql).releases[0]
    return release.measure_keys(0, release.identity, b"")


def test_what_is_said_of_it(squares: World) -> None:
    release = squares.plan(BY_KIND).releases[0]
    assert release.measurements[0].squared_sensitivity == (5 * WEIGHT + 2 * (2 + 4)) ** 2
    lines = list(contribution_lines(release))
    assert (
        "counts by group: of who is pointed at 3 in root-sum-of-squares over the groups, in place of 3 rows"
        in lines[2]
    )


@pytest.mark.parametrize("most", [2**20, 2**20 + 1])
def test_a_norm_beyond_what_is_rounded_well_is_no_norm(
    tmp_path: Path, engine: PostgresServer | None, most: int
) -> None:
    for made in opened(
        tmp_path, engine, zcdp=True, text=POLICY.replace("max_rows = 3", f"max_rows = {most}")
    ):
        assert verdict(made, BY_KIND) == ""
        assert made.plan(BY_KIND).releases[0].measurements[0].is_clamped is (most == 2**20)


# --- mutants ------------------------------------------------------------------------------------------------


def fails(made: World, sql: str, people: People, one: int = 1) -> None:
    assert verdict(made, sql) != "", "it is not verified"
    with pytest.raises(AssertionError):
        check(made, (sql,), people, [people.without(one)])


def test_leave_out_who_points(squares: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, Measurement._clamped_norm, ("(first + most) *", "most *"))
    fails(squares, BY_KIND, aligned())


def test_leave_out_who_is_pointed_at(squares: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, Measurement._clamped_norm, ("(first + most) *", "first *"))
    fails(squares, BY_KIND, aligned())


def test_leave_out_a_replacement(tmp_path: Path, engine: PostgresServer | None, monkeypatch: Patch) -> None:
    plant(monkeypatch, Measurement._clamped_norm, ("(2 if self", "(1 if self"))
    for made in opened(tmp_path, engine, zcdp=True, replace_one=True):
        both = people_of([*((voter, 1, 0) for voter in range(20, 30)), *((voter, 2, 1) for voter in range(40, 50)),
                          (1, 3, 0), (1, 4, 0), (2, 3, 1), (2, 4, 1)])  # fmt: skip
        assert verdict(made, BY_KIND) != ""
        with pytest.raises(AssertionError):
            check(made, (BY_KIND,), both.without(1), [both.without(2)])


def test_clamp_sums_of_rows_by_their_count(squares: World, monkeypatch: Patch) -> None:
    """A norm is of the coordinates themselves: values are not in it."""
    sums = "SELECT v.kind, SUM(v.amount) FROM vote v JOIN post p ON v.post = p.id GROUP BY v.kind"
    assert not squares.plan(sums).releases[0].measurements[0].is_clamped
    assert Count.is_clamped is not Measurement.is_clamped


def spread() -> People:
    """Person 1 is voted on in three groups alike."""
    return people_of([(1, 2, 0), (1, 3, 0), *((voter, 1, voter % 3) for voter in range(20, 32))])


def shallow() -> People:
    """Two authors with as many rows as the norm is, and inside of it: with one more of person 1, who has many in that
    group."""
    others = [(50, 2, 0), (51, 2, 0), (52, 2, 1), (53, 3, 0), (54, 3, 0), (55, 3, 1)]
    return people_of([(1, 2, 1), (1, 3, 1), *others, *((voter, 1, 1) for voter in range(20, 32))])


def edge() -> People:
    """Two authors with as many rows as the norm is, all in one group, and one more of person 1 there."""
    others = [(50 + i, 2 + i % 2, 2) for i in range(6)]
    return people_of([(1, 2, 2), (1, 3, 2), *others, *((voter, 1, 1) for voter in range(20, 32))])


def twice() -> People:
    """Person 1 and another are voted on beyond the norm."""
    return people_of([(voter, 1 + 3 * (voter % 2), 0) for voter in range(20, 44)])


TEXT = (
    # of the norm: what is moved further than is claimed
    ("HAVING COUNT(*) > 3", "HAVING COUNT(*) > 300", aligned),
    ("SUM(c0 * c0)", "MAX(c0 * c0)", spread),
    ("d.d", "(d.d / 2)", aligned),
    (", 3145728)", ", 1)", shallow),
    ("FROM s WHERE NOT EXISTS (SELECT 1 FROM heavy WHERE heavy.u = s.u) GROUP", "FROM s GROUP", aligned),
    ("c CROSS JOIN d WHERE d.u = c.u", "c CROSS JOIN d", twice),
    ("HAVING ((k0 IN (0, 1, 2)))", "HAVING ((k0 IN (0, 1)))", edge),
)


def queries_of(made: World, sql: str) -> tuple[object, object, str]:
    with made.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, made.policy, lambda *_: None)
    whole = certificate_of(made.plan(sql).releases, facts)
    (query,) = whole.releases[0].queries
    return whole, query, query.sql


def refuses(whole: object, query: object, sql: str) -> bool:
    release = whole.releases[0]  # type: ignore[attr-defined]
    changed = replace(query, sql=sql)  # type: ignore[type-var]
    return rule_against(replace(whole, releases=(replace(release, queries=(changed,)),))) != ""  # type: ignore[type-var]


def far(made: World, sql: str, *people: People) -> float:
    """The root of the sum of squares by which a text's counts differ between two databases, in rows."""
    found: list[dict[object, int]] = []
    for order, rows in enumerate(people):
        made.settle(put, rows, order)
        with made.backend.snapshot() as snapshot:
            found.append({row[0]: int(row[1]) for batch in snapshot.run(sql) for row in batch})
    one, other = found
    return math.sqrt(sum((one.get(key, 0) - other.get(key, 0)) ** 2 for key in {*one, *other})) / WEIGHT


@pytest.mark.parametrize(("old", "new", "made_of"), TEXT)
def test_a_text_that_moves_further(squares: World, old: str, new: str, made_of: object) -> None:
    whole, query, sql = queries_of(squares, BY_KIND)
    people = made_of()  # type: ignore[operator]
    assert far(squares, sql, people, people.without(1)) <= FIRST + MOST + 1e-4
    before, found, after = sql.rpartition(old)
    assert found, old
    changed = f"{before}{new}{after}"
    assert refuses(whole, query, changed), old
    assert far(squares, changed, people, people.without(1)) > FIRST + MOST + 0.01


def test_a_text_without_a_premise_is_not_verified(squares: World) -> None:
    whole, query, sql = queries_of(squares, BY_KIND)
    assert not refuses(whole, query, sql)
    divides = ("// 2)", "// 3)") if squares.twin is None else (", 2) + 1", ", 3) + 1")
    for old, new in (
        ("SUM(c0 * c0)", "SUM(c0)"),
        ("LEAST(COUNT(*), 268435456)", "LEAST(COUNT(*), 536870912)"),
        ("LEAST(COUNT(*), 268435456)", "LEAST(COUNT(*), 2)"),
        ("288230376151711744", "288230376"),
        ("1048576.0", "1024.0"),
        ("1125899906842624.0", "1125899.0"),
        ("1099511627776", "1099511627775"),
        ("1099511627776", "1048576"),
        ("3298534883328", "3298534883329"),
        ("+ 1, 3145728", "+ 0, 3145728"),
        (", 3145728", ", 3145727"),
        (", 3145728", ", 4194304"),
        divides,
        ("1048576 * COUNT(*)", "1048577 * COUNT(*)"),
        ("HAVING COUNT(*) > 3", "HAVING COUNT(*) > 4"),
        ("HAVING COUNT(*) > 2", "HAVING COUNT(*) > 3"),
        ("FROM c GROUP BY u", "FROM c WHERE c0 > 1 GROUP BY u"),
        ("GROUP BY s.u, s.k0 HAVING ((k0 IN (0, 1, 2)))", "GROUP BY s.u, s.k0 HAVING ((k0 IN (0, 1, 2, 3)))"),
        ("GROUP BY s.u, s.k0 HAVING ((k0 IN (0, 1, 2)))", "GROUP BY s.u, s.k0 HAVING ((k0 >= 0))"),
        (
            "FROM s CROSS JOIN heavy WHERE heavy.u = s.u GROUP",
            "FROM s CROSS JOIN heavy WHERE heavy.u <> s.u GROUP",
        ),
        ("d.u = c.u", "d.u >= c.u"),
    ):
        before, found, after = sql.rpartition(old)
        assert found, old
        assert refuses(whole, query, f"{before}{new}{after}"), (old, new)


OF_BOTH, COUNTED = "f0 IS TRUE AND f1 IS NOT TRUE", "f0 IS NOT TRUE AND f1 IS TRUE"


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        (BOTH, (("GROUP BY s.u, s.k0, s.k1 HAVING", "GROUP BY s.u, s.k0, s.k1, s.f0 HAVING"),)),
        (BOTH, (("SELECT s.u, s.k0, s.k1, LEAST", "SELECT s.u, s.k1 AS k0, s.k0 AS k1, LEAST"),)),
        (MASKS, (("c.c0", "c.c9"), ("c.c1", "c.c0"), ("c.c9", "c.c1"))),
        (MASKS, (("c.c1", "c.c0"),)),
        (MASKS, ((OF_BOTH, "f0 IS TRUE"), (COUNTED, "f1 IS TRUE"))),
        (MASKS, (("c.c1 AS HUGEINT) * 3298534883328", "c.c1 AS HUGEINT) * 1048576"),
                 ("c.c1 AS numeric(39, 0)) * 3298534883328", "c.c1 AS numeric(39, 0)) * 1048576"))),
        (MASKS, (("1099511627776) // z", "1099511627776) // (z + 1)"), ("1099511627776), z)", "1099511627776), z + 1)"))),
        (MASKS, ((", 1) AS z", ", 0) AS z"),)),
        (MASKS, (("SUM(c0 * c0 + c1 * c1)", "SUM(c0 * c0 + c1 * c1) FILTER (WHERE c1 > 0)"),)),
        (MASKS, (("d.u = c.u", "d.u <> c.u"),)),
        (MASKS, (("FROM c GROUP BY u", "FROM c GROUP BY u, c1"),)),
    ],
    ids=[
        "cells by more than is shown", "of other groups", "of another mask", "of one mask twice", "masks that overlap",
        "shares that differ", "no step to the root", "a root of nothing", "of some cells",
        "another's norm", "norms of parts",
    ],
)  # fmt: skip
def test_a_text_of_several_cells_lacks_a_premise(
    squares: World, sql: str, changes: tuple[tuple[str, str], ...]
) -> None:
    whole, query, text = queries_of(squares, sql)
    assert not refuses(whole, query, text)
    changed = text
    for old, new in changes:
        changed = changed.replace(old, new)
    assert changed != text
    assert refuses(whole, query, changed)


def test_the_star_is_within_the_claim(squares: World) -> None:
    people = star()
    check(squares, STATEMENTS, people, [people.without(one) for one in (1, 2, 3)])
