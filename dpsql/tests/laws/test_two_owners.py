"""L1 for rows of two people: a voter and an author, a sender and a receiver (soundness.md 1.38).

A neighbour lacks all rows of one person; what pointed at them points at nothing. R_a is 2, R_b is 3 in all tables.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb
import pytest

from dpsql.engine.contribution import contribution_lines
from dpsql.errors import Refusal
from dpsql.plan.backend_sql import print_release
from dpsql.plan.dialects.dialect_duckdb import DUCKDB as DIALECT
from dpsql.plan.measures.measurements import Measurement
from dpsql.plan.privacy import analyze, join, ownership
from dpsql.plan.privacy.rows import Lookup
from dpsql.policy import Accounting, Neighbours, Policy, parse_policy
from dpsql.relation.types import BIGINT, INTEGER, SqlType
from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.verify.certificate import Facts

from .held import worst_losses
from .measured import World, world
from .planting import plant

Patch = pytest.MonkeyPatch
FIRST, MOST = 2, 3

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE post (id INTEGER PRIMARY KEY, owner INTEGER, cat TEXT);
CREATE TABLE vote (id INTEGER PRIMARY KEY, voter INTEGER, post INTEGER, kind INTEGER, amount INTEGER);
CREATE TABLE opinion (voter INTEGER, post INTEGER, kind INTEGER, PRIMARY KEY (voter, post));
CREATE TABLE message (sender INTEGER, receiver INTEGER, chars INTEGER);
CREATE TABLE kind (no INTEGER PRIMARY KEY, name TEXT)
"""
POLICY = """
database = "duckdb:laws.db"
[privacy]
epsilon = 10
delta = 1e-6
[defaults]
epsilon = 1
[tables.person]
unit = "id"
columns = { city = { values = ["a", "b"] } }
[tables.post]
unit = { column = "owner", references = "person.id" }
columns = { cat = { values = ["x", "y"] }, id = {} }
[tables.vote]
unit = { column = "voter", references = "person.id" }
max_rows = 2
also = [{ column = "post", references = "post.id", max_rows = 3 }]
columns = { id = {}, kind = { values = [0, 1, 2] }, amount = { bounds = [-5, 4] } }
[tables.opinion]
unit = { column = "voter", references = "person.id" }
max_rows = 2
also = [{ column = "post", references = "post.id", max_rows = 3 }]
columns = { kind = { values = [0, 1, 2] } }
[tables.message]
unit = { column = "sender", references = "person.id" }
max_rows = 2
also = [{ column = "receiver", references = "person.id", max_rows = 3 }]
columns = { chars = { bounds = [0, 9] } }
[tables.kind]
public = true
columns = { name = { values = ["x", "y"] } }
"""

COUNT = "SELECT COUNT(*) FROM vote v JOIN post p ON v.post = p.id"
BY_KIND = "SELECT v.kind, COUNT(*) FROM vote v JOIN post p ON v.post = p.id GROUP BY v.kind"
VARIANCES = "SELECT v.kind, VAR_POP(v.amount) FROM vote v JOIN post p ON v.post = p.id GROUP BY v.kind"
CORRELATIONS = "SELECT v.kind, CORR(v.amount, v.amount * v.amount) FROM vote v JOIN post p ON v.post = p.id GROUP BY v.kind"
STATEMENTS = (
    COUNT,
    BY_KIND,
    "SELECT SUM(v.amount) FROM vote v JOIN post p ON v.post = p.id",
    "SELECT v.kind, SUM(v.amount) FROM vote v JOIN post p ON v.post = p.id GROUP BY v.kind",
    "SELECT v.kind, AVG(v.amount), COUNT(*) FROM vote v JOIN post p ON v.post = p.id GROUP BY v.kind",
    "SELECT AVG(amount) FILTER (WHERE kind = 1), SUM(amount) FILTER (WHERE kind <> 1) FROM vote v JOIN post p ON v.post = p.id",
    "SELECT COUNT(DISTINCT v.amount) FROM vote v JOIN post p ON v.post = p.id",
    "SELECT v.kind, COUNT(DISTINCT v.voter) FROM vote v JOIN post p ON v.post = p.id GROUP BY v.kind",
    "SELECT v.kind, COUNT(*) FROM vote v JOIN post p ON v.post = p.id WHERE p.cat = 'x' AND v.amount > 0 GROUP BY v.kind",
    "SELECT a.city, v.kind, COUNT(*) FROM vote v JOIN post p ON v.post = p.id JOIN person a ON a.id = p.owner "
    "JOIN person b ON b.id = v.voter JOIN kind k ON k.no = v.kind WHERE b.city <> a.city GROUP BY a.city, v.kind",
    "SELECT o.kind, COUNT(*) FROM opinion o JOIN post p ON p.id = o.post GROUP BY o.kind",
    "SELECT COUNT(*) FROM message m JOIN person r ON r.id = m.receiver",
    "SELECT r.city, COUNT(*), SUM(m.chars) FROM message m JOIN person r ON r.id = m.receiver GROUP BY r.city",
    "SELECT p.cat, v.kind, COUNT(*) FROM vote v JOIN post p ON v.post = p.id GROUP BY ROLLUP (p.cat, v.kind)",
    "SELECT STDDEV(v.amount) FROM vote v JOIN post p ON v.post = p.id",
    VARIANCES,
    CORRELATIONS,
    "SELECT VAR_POP(m.chars) FILTER (WHERE r.city = 'a') FROM message m JOIN person r ON r.id = m.receiver",
    *(LOOKED_UP := (
        "SELECT COUNT(*) FROM vote WHERE post = 1",
        "SELECT COUNT(*) FROM vote WHERE NOT post IN (2, 3)",
        "SELECT COUNT(DISTINCT post) FROM vote",
        "SELECT COUNT(post) FROM vote",
        "SELECT kind, SUM(amount) FROM vote WHERE post > 0 AND (post < 2 OR amount > 0) GROUP BY kind",
        "SELECT kind, COUNT(*) FILTER (WHERE post = 1), COUNT(DISTINCT post) FROM opinion GROUP BY kind",
        "SELECT COUNT(*) FROM vote v JOIN post p ON v.post = p.id WHERE v.post < 5",
        "SELECT name, COUNT(*) FROM vote v JOIN kind k ON k.no = v.post GROUP BY name",
        "SELECT COUNT(DISTINCT receiver) FROM message",
    )),
)  # fmt: skip


@dataclass(frozen=True)
class People:
    """The rows of a database, by table."""

    person: tuple[tuple[object, ...], ...]
    post: tuple[tuple[object, ...], ...]
    vote: tuple[tuple[object, ...], ...]
    message: tuple[tuple[object, ...], ...]

    def without(self, one: int) -> People:
        """Return the database without a person's rows; others' rows that point at them stay."""
        return People(
            tuple(row for row in self.person if row[0] != one),
            tuple(row for row in self.post if row[1] != one),
            tuple(row for row in self.vote if row[1] != one),
            tuple(row for row in self.message if row[0] != one),
        )


def put(connection: duckdb.DuckDBPyConnection, people: People, order: int = 0) -> None:
    """Put rows in, in a physical order that depends on `order`."""
    opinions = tuple(
        (voter, post, kind)
        for (voter, post), kind in {
            (row[1], row[2]): row[3] for row in people.vote if None not in row[1:3]
        }.items()
    )
    tables = {"person": people.person, "post": people.post, "vote": people.vote, "message": people.message}
    for name, rows in {**tables, "opinion": opinions}.items():
        shuffled = list(rows)
        random.Random(order).shuffle(shuffled)
        connection.execute(f"DELETE FROM {name}")
        if shuffled:
            shown = ", ".join(
                f"({', '.join('NULL' if one is None else repr(one) for one in row)})" for row in shuffled
            )
            connection.execute(f"INSERT INTO {name} VALUES {shown}")


def _spread(one: int) -> int:
    return one * 2654435761 % 2**32


def star(*, is_alone: bool = False, by: Callable[[int], int] = _spread) -> People:
    """One person votes on two authors of many votes, and is an author of many votes: where all of K moves.

    Rows are kept in the order of their numbers, spread: the person's own come first. `is_alone`: nobody else votes
    on those two, so that no row takes another's place. `by`: the place of a number among those kept.
    """
    numbers = iter(sorted(range(100, 160), key=by))
    post = ((1, 1, "x"), (2, 2, "y"), (3, 3, "y"))
    vote: list[tuple[object, ...]] = [(next(numbers), 1, which, 0, -5) for which in (2, 3)]
    message: list[tuple[object, ...]] = [(1, 2, 9), (1, 3, 9)]
    others = iter(range(10, 60))
    for which, many in ((1, 12), (2, 0 if is_alone else 5), (3, 0 if is_alone else 5)):
        for _ in range(many):
            voter = next(others)
            vote.append((next(numbers), voter, which, 2 if which == 1 else 1, -5 if which == 1 else 4))
            message.append((voter, which, 9))
    people = tuple((one, "b" if one == 2 else "a") for one in range(1, 60))
    return People(people, post, tuple(vote), tuple(message))


def drawn(seed: int) -> People:
    """A random database: stars, self rows, orphans, NULL references and owners, one author or one voter of all."""
    draw = random.Random(seed)
    people = list(range(1, 7))
    authors = draw.choice([people, people[:1], [*people, None]])
    voters = draw.choice([people, people[:1], [*people, None, 99]])
    post = tuple((i, draw.choice(authors), draw.choice("xy")) for i in range(8))
    vote = tuple(
        (
            i,
            draw.choice(voters),
            draw.choice([*range(10), None]),
            draw.randrange(3),
            draw.choice([-9, -5, 0, 4, None]),
        )
        for i in draw.sample(range(500), draw.randrange(5, 40))
    )
    message = tuple(
        (draw.choice(voters), draw.choice([*people, None, 50]), draw.randrange(12))
        for _ in range(draw.randrange(30))
    )
    return People(tuple((one, draw.choice("abc")) for one in people), post, vote, message)


def opened(
    folder: Path,
    engine: PostgresServer | None,
    *,
    replace_one: bool = False,
    together: int = 1,
    zcdp: bool = False,
    text: str = POLICY,
) -> Iterator[World]:
    policy: Policy = parse_policy(text, folder / "laws.toml")
    privacy = replace(
        policy.privacy,
        neighbours=Neighbours.REPLACE_ONE if replace_one else Neighbours.ADD_REMOVE,
        together=together,
        accounting=Accounting.ZCDP if zcdp else Accounting.PURE,
        conversion_delta=policy.privacy.delta / 2 if zcdp else Fraction(0),
    )
    with world(folder, policy=replace(policy, privacy=privacy), schema=SCHEMA, server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory.mktemp("two"), engine)


check = partial(worst_losses, put)


def read_facts_of(made: World) -> Facts:
    """What a verifier is told of the database."""
    with made.backend.snapshot() as snapshot:
        return read_facts(snapshot, made.policy, lambda *_: None)


def verdict(made: World, sql: str) -> str:
    """The rule by which a statement is not verified; "" where it is."""
    return rule_against(certificate_of(made.plan(sql).releases, read_facts_of(made)))


@pytest.mark.parametrize("sql", STATEMENTS)
def test_it_is_verified(adding: World, sql: str) -> None:
    assert verdict(adding, sql) == ""


def test_the_claim_is_reached(adding: World) -> None:
    people, alone = star(), star(is_alone=True)
    assert check(adding, STATEMENTS[1:4], people, [people.without(1)]) == [1, 1, Fraction(33, 35)]
    assert check(adding, (COUNT,), alone, [alone.without(1)]) == [1]
    assert check(adding, (VARIANCES, CORRELATIONS), people, [people.without(1)]) == [1, 1]


@pytest.mark.parametrize("seed", range(tried(2, 4)))
def test_no_claim_is_passed(adding: World, seed: int) -> None:
    people = drawn(seed)
    check(adding, STATEMENTS, people, [people.without(one) for one in (1, 2, 3)])


@pytest.mark.parametrize("how", ["replace", "together", "zcdp"])
def test_other_promises_hold(tmp_path: Path, engine: PostgresServer | None, how: str) -> None:
    people = star()
    gone, come = (
        people.without(1),
        {"replace": [people.without(2)], "together": [people.without(1).without(2)]},
    )
    for made in opened(
        tmp_path,
        engine,
        replace_one=how == "replace",
        together=2 if how == "together" else 1,
        zcdp=how == "zcdp",
    ):
        assert [verdict(made, sql) for sql in STATEMENTS] == [""] * len(STATEMENTS)
        neighbours = come.get(how, [gone])
        worst = check(made, STATEMENTS, gone if how == "replace" else people, neighbours)
        if how == "zcdp":  # what goes in one group, and what comes in another: 2·5, 2·4 and 3·5 of (5·7)²
            assert worst[3] > Fraction(10**2 + 8**2 + 15**2, 35**2) - Fraction(1, 1000)
            alone = star(is_alone=True)
            assert check(made, (COUNT,), alone, [alone.without(1)])[0] > Fraction(999, 1000)


def test_a_reference_is_read_in_one_way(adding: World) -> None:
    for sql in (
        "SELECT COUNT(*) FROM vote WHERE post IS NULL",
        "SELECT COUNT(*) FROM vote WHERE post = 1 OR kind = 1",
        "SELECT COUNT(*) FROM vote WHERE NOT (post = 1 AND kind = 1)",
        "SELECT COUNT(*) FROM vote WHERE (post = 1) IS NOT TRUE",
        "SELECT post, COUNT(*) FROM vote GROUP BY post",
        "SELECT COUNT(*), COUNT(post) FROM vote",
        "SELECT kind, COUNT(DISTINCT post) FROM vote GROUP BY kind",
        "SELECT COUNT(*) FROM vote v JOIN vote w ON v.post = w.post",
        "SELECT COUNT(*) FROM vote v LEFT JOIN post p ON v.post = p.id",
        "SELECT k.name, COUNT(o.post) FROM kind k LEFT JOIN opinion o ON o.kind = k.no GROUP BY k.name",
        "SELECT k.name, MAX(o.post) FROM kind k LEFT JOIN opinion o ON o.kind = k.no GROUP BY k.name",
        "SELECT COUNT(*) FROM (SELECT DISTINCT voter, post FROM vote) t",
        "SELECT COUNT(*) FROM (SELECT voter, ROW_NUMBER() OVER (PARTITION BY voter ORDER BY post) AS n FROM vote) t",
        "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM vote v WHERE v.voter = p.id AND v.post = 1)",
    ):
        with pytest.raises(Refusal) as caught:
            adding.plan(sql)
        assert caught.value.sqlstate == "PV003", sql
    for sql in (
        "SELECT voter, post FROM opinion GROUP BY voter, post",
        "SELECT AVG(n) FROM (SELECT voter, COUNT(*) FILTER (WHERE post = 1) AS n FROM opinion GROUP BY voter) t",
    ):
        with pytest.raises(Refusal) as caught:
            adding.plan(sql)
        assert caught.value.sqlstate == "PV005", sql
    assert adding.plan("SELECT COUNT(*) FROM vote WHERE kind = 1").releases, (
        "what does not read it is as before"
    )
    for own in (
        "SELECT COUNT(*) FROM vote v JOIN post p ON v.post = p.id WHERE p.owner = v.voter",
        "SELECT COUNT(*) FROM message WHERE sender = receiver",
    ):
        assert adding.plan(own).releases[0].bounding.of_two is None, "one person's rows"
        assert verdict(adding, own) == ""


def test_what_is_read_of_a_reference_is_read_of_its_row(adding: World) -> None:
    for sql in LOOKED_UP:
        (release,) = adding.plan(sql).releases
        assert release.bounding.of_two == (FIRST, MOST), sql


def test_a_reference_may_be_the_key_of_its_own_table(tmp_path: Path, engine: PostgresServer | None) -> None:
    """First rows are then not kept by a number that is made of it, which would be another reading."""
    schema = SCHEMA.replace("PRIMARY KEY (voter, post)", "PRIMARY KEY (post)")
    with world(
        tmp_path, policy=parse_policy(POLICY, tmp_path / "laws.toml"), schema=schema, server=engine
    ) as made:
        for sql in STATEMENTS:
            assert verdict(made, sql) == "", sql


def test_a_row_is_looked_up_by_a_key_that_no_statement_names(
    tmp_path: Path, engine: PostgresServer | None
) -> None:
    policy = parse_policy(
        POLICY.replace('columns = { cat = { values = ["x", "y"] }, id = {} }', ""), tmp_path / "laws.toml"
    )
    people = star()
    with world(tmp_path, policy=policy, schema=SCHEMA, server=engine) as made:
        for sql in ("SELECT COUNT(*) FROM vote WHERE post = 1", "SELECT COUNT(DISTINCT post) FROM vote"):
            assert verdict(made, sql) == ""
            check(made, (sql,), people, [people.without(1)])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MAX(v.amount) FROM vote v JOIN post p ON v.post = p.id",
        "SELECT AVG(DISTINCT v.amount) FROM vote v JOIN post p ON v.post = p.id",
        "SELECT dp_avg_direct(v.amount) FROM vote v JOIN post p ON v.post = p.id",
        "SELECT v.amount, COUNT(*) FROM vote v JOIN post p ON v.post = p.id WHERE v.kind = 0 GROUP BY v.amount / 2.5",
        "SELECT p.id, COUNT(*) FROM vote v JOIN post p ON v.post = p.id GROUP BY p.id",
        "SELECT v.voter, COUNT(*) FROM vote v JOIN post p ON v.post = p.id GROUP BY v.voter",
        "SELECT COUNT(*) FROM vote v JOIN post p ON v.post = p.id JOIN person a ON a.city = p.cat",
        "SELECT COUNT(*) FROM vote v JOIN post p ON v.post = p.id JOIN message m ON m.sender = p.owner",
        "SELECT COUNT(*) FROM vote v JOIN post p ON v.post = p.id WHERE EXISTS (SELECT 1 FROM message m WHERE m.sender = v.voter)",
        "SELECT AVG(n) FROM (SELECT p.owner, COUNT(*) AS n FROM vote v JOIN post p ON v.post = p.id GROUP BY p.owner) t",
        "SELECT COUNT(*) FROM vote v JOIN post p ON v.post = p.id JOIN message m ON m.sender = v.voter JOIN person r ON r.id = m.receiver",
    ],
)
def test_what_has_no_proof_is_refused(adding: World, sql: str) -> None:
    with pytest.raises(Refusal):
        adding.plan(sql)


def test_what_is_said_of_them(adding: World) -> None:
    hidden = 'hidden of who is pointed at: that rows of "vote" point at them; not hidden: that these rows are there'
    assert list(contribution_lines(adding.plan(BY_KIND).releases[0])) == [
        'rows of two people: at most 2 rows of "vote" of a person, and of those joined at most 3 that point at a person '
        'through "post"',
        "  one person leaving: 7 = 2 x 2 + 3 rows at most (2 out and 2 others in, 3 that point at them)",
        f"  {hidden}",
    ]
    assert adding.plan(COUNT).releases[0].measurements[0].sensitivity == 5, "2 + 3"
    with pytest.raises(Refusal) as caught:
        adding.plan("SELECT COUNT(*) FROM post p JOIN vote v ON v.id = p.id")
    assert (
        caught.value.hint
        == "join them by vote.post = post.id, with JOIN, in the block that counts: then rows of both people count"
    )


@pytest.mark.parametrize("of", [INTEGER, BIGINT])
def test_no_two_keys_have_one_place_in_the_order(adding: World, of: SqlType) -> None:
    """At both ends of the type, around 0 and where halves meet: as many places as keys, and none overflows."""
    end = 2 ** (63 if of is BIGINT else 31)
    starts = [-end, -5000, end - 10_000, end // 2, -end // 2]
    starts += [2**32 * n - 5000 for n in (-1, 1, 2**20)] if of is BIGINT else []
    rows = [start + i for start in starts for i in range(10_000)]
    listed = f"SELECT CAST(x AS {of.kind.name}) AS x FROM (VALUES {', '.join(f'({one})' for one in starts)}) AS v(x)"
    numbers = "generate_series(0, 9999) AS t(i)"
    place = DIALECT.scattered_apart("x", of)
    moved = f"SELECT CAST(x + i AS {of.kind.name}) AS x FROM ({listed}) AS v CROSS JOIN {numbers}"
    sql = f"SELECT COUNT(DISTINCT {place}) AS a, COUNT(DISTINCT x) AS b FROM ({moved}) AS q"
    with adding.backend.snapshot() as snapshot:
        [(places, keys)] = [row for batch in snapshot.run(sql) for row in batch]
    assert places == keys == len(rows)


def test_keys_of_64_bits_are_an_order_too(tmp_path: Path, engine: PostgresServer | None) -> None:
    """The claims are reached, as by those of 32, and a place that two keys could have is not verified."""
    schema = SCHEMA.replace("vote (id INTEGER", "vote (id BIGINT")
    with world(
        tmp_path, policy=parse_policy(POLICY, tmp_path / "laws.toml"), schema=schema, server=engine
    ) as made:
        people = star(by=lambda one: one * 1640531527 % 2**32)
        assert check(made, STATEMENTS[1:4], people, [people.without(1)]) == [1, 1, Fraction(33, 35)]
        assert [verdict(made, sql) for sql in STATEMENTS] == [""] * len(STATEMENTS)
        whole = certificate_of(made.plan(BY_KIND).releases, read_facts_of(made))
        (query,) = whole.releases[0].queries
        for old, new in (
            (" & 4294967295", " & 2147483647"),
            ("1640531527", "1640531526"),
            ("% 4294967296 - 2147483648", "% 2147483648 - 2147483648"),
            (") * 4294967296", ") * 2147483648"),
            (">> 32", ">> 33"),
            (">> 32) + 2147483648", ">> 32) + 2147483647"),
        ):
            before, found, after = query.sql.rpartition(old)
            assert found, old
            changed = replace(query, sql=f"{before}{new}{after}")
            rule = rule_against(replace(whole, releases=(replace(whole.releases[0], queries=(changed,)),)))
            assert rule != "", old


# --- mutants ------------------------------------------------------------------------------------------------


def falls(made: World, patch: Patch, sql: str, *, verified: bool = False) -> None:
    """A planted fault moves a number further than is claimed; `verified`: and the verifier sees it too."""
    people = star()
    if not verified:
        assert verdict(made, sql) != "", "it is not verified"
    with pytest.raises(AssertionError):
        check(made, (sql,), people, [people.without(1)])


def test_read_a_reference_that_is_looked_up(adding: World, monkeypatch: Patch) -> None:
    """A lookup is joined, and the reference is read all the same."""
    monkeypatch.setattr(join, "_of_key", lambda asked, *_: asked)
    monkeypatch.setattr(ownership, "check_references", lambda *_: None)
    rule = "references: read as equal to their key alone"
    assert verdict(adding, "SELECT COUNT(DISTINCT post) FROM vote") == rule


def test_leave_out_the_rows_that_come_in(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, Lookup.apart.fget, ("2 * self.first", "self.first"))  # type: ignore[attr-defined]
    falls(adding, monkeypatch, BY_KIND)


def test_take_the_figure_without_groups_for_groups(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, Measurement.of_one.fget, ("None if self.bounding.grouped or", "None if"))  # type: ignore[attr-defined]
    falls(adding, monkeypatch, BY_KIND)


def test_take_the_figure_of_one_coordinate_for_a_sum_of_both_signs(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, Measurement._of_two, ("(alone // self.bounding.in_all)", "self.reach"))
    falls(adding, monkeypatch, STATEMENTS[2])


def test_keep_more_of_who_is_pointed_at(adding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch, print_release.ReleasePrinter.looked_up,
        ("order, lookup.most, is", "order, lookup.most + 1, is"),
    )  # fmt: skip
    falls(adding, monkeypatch, BY_KIND)


def test_keep_all_rows_of_who_points(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, ownership._of_two, ("items[lookup.place] = cut\n", "pass\n"))
    people = replace(star(), vote=tuple((n, 1, which, 0, -5) for n, which in enumerate([2] * 9 + [3] * 9)))
    assert verdict(adding, BY_KIND) != ""
    with pytest.raises(AssertionError):
        check(adding, (BY_KIND,), people, [people.without(1)])


def test_rank_by_who_points_twice(adding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch, ownership._of_two,
        ("_with_owner(tuple(items), catalog, set(pointed))", "_with_owner(tuple(items), catalog, {lookup.place})"),
    )  # fmt: skip
    falls(adding, monkeypatch, BY_KIND)


def test_read_a_reference_without_its_lookup(adding: World, monkeypatch: Patch) -> None:
    """No number moves further than R_a rows: but it tells how many rows point at somebody."""
    monkeypatch.setattr(ownership, "check_references", lambda *_: None)
    monkeypatch.setattr(analyze, "with_lookups", lambda asked, _: asked)
    rule = "references: read as equal to their key alone"
    assert verdict(adding, "SELECT COUNT(*) FROM vote WHERE post = 1") == rule
    assert verdict(adding, "SELECT COUNT(*) FROM message WHERE sender = receiver") == rule
    assert verdict(adding, "SELECT COUNT(DISTINCT post) FROM vote WHERE kind = 1") == rule
    first = "(SELECT kind, ROW_NUMBER() OVER (PARTITION BY voter ORDER BY post, id) AS place FROM vote) AS t"
    assert verdict(adding, f"SELECT kind, COUNT(*) FROM {first} WHERE place = 1 GROUP BY kind") == rule
    assert verdict(adding, f"SELECT COUNT(*) FILTER (WHERE kind = place) FROM {first}") == rule


def test_pass_a_reference_on_under_a_cast(adding: World) -> None:
    """A cast that tells all values apart is no other reading, nor does it hide one."""
    whole = certificate_of(adding.plan(COUNT).releases, read_facts_of(adding))
    (query,) = whole.releases[0].queries
    for old, new, is_said in (
        ("t0.c1 = t1.", "CAST(t0.c1 AS BIGINT) = t1.", True),
        ("t0.c1 = t1.", "CAST(t0.c1 AS BIGINT) < 5 AND t0.c1 = t1.", False),
        ("t0.c1 = t1.", "CAST(t0.c1 AS SMALLINT) = t1.", False),
    ):
        before, found, after = query.sql.partition(old)
        assert found, old
        changed = replace(query, sql=f"{before}{new}{after}")
        rule = rule_against(replace(whole, releases=(replace(whole.releases[0], queries=(changed,)),)))
        assert (rule == "") is is_said, new


def test_believe_a_key_that_nobody_enforces(adding: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr(ownership, "functional_closure", lambda items, *_: (set(), [True] * len(items)))
    assert verdict(adding, COUNT + " JOIN person a ON a.city = p.cat AND a.id = p.owner") == ""
    fans = "SELECT COUNT(*) FROM vote v JOIN post p ON v.post = p.id JOIN post q ON q.owner = p.owner"
    assert verdict(adding, fans) == "lookup: a row of an owner with few gives one joined row"


def test_a_text_without_a_premise_is_not_verified(adding: World) -> None:
    """One piece of the printed text changed: each is a premise of the verifier's lemma."""
    plan = adding.plan(BY_KIND).releases
    with adding.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, adding.policy, lambda *_: None)
    whole = certificate_of(plan, facts)
    (query,) = whole.releases[0].queries
    assert rule_against(whole) == ""
    ends = (
        ("list_last(min(s.o0, 3))", "list_last(min(s.o0, 4))"),
        ("list_last(min(s.o0, 3))", "max(s.o0)"),
        ("list_last(min(s.o, 2))", "list_last(min(s.o, 3))"),
        ("e.u = s.u AND s.o0 <= e.last", "s.o0 <= e.last"),
        ("s.o0 <= e.last", "s.o0 + 1 <= e.last"),
    )
    ranks = (
        ("WHERE rn <= 3", "WHERE rn <= 4"),
        ("PARTITION BY s.u ORDER BY", "PARTITION BY s.k0 ORDER BY"),
    )
    for old, new in (
        *(ranks if adding.twin is not None else ends),
        ("2654435761", "2654435760"),
        ("4294967296", "4294967297"),
        ("HAVING COUNT(*) > 3", "HAVING COUNT(*) > 2"),
        ("HAVING COUNT(*) > 2", "HAVING COUNT(*) > 3"),
        ("FROM s WHERE NOT EXISTS (SELECT 1 FROM heavy WHERE heavy.u = s.u)", "FROM s"),
    ):
        before, found, after = query.sql.rpartition(old)
        assert found, old
        changed = replace(query, sql=f"{before}{new}{after}")
        assert (
            rule_against(replace(whole, releases=(replace(whole.releases[0], queries=(changed,)),))) != ""
        ), old


# --- mutants of what comes before the lookup, planted in the printed text -------------------------------------


def shifted() -> People:
    """Twelve people whose first two votes are for one author, and the next two for an author of their own."""
    numbers = sorted(range(100, 160), key=lambda one: one * 2654435761 % 2**32)
    voters = range(10, 22)
    first = [(voter, 1, 0) for voter in voters for _ in range(2)]
    rows = [*first, *((voter, voter, 1) for voter in voters for _ in range(2))]
    vote = tuple((no, voter, post, kind, 0) for no, (voter, post, kind) in zip(numbers, rows, strict=False))
    post = ((1, 1, "x"), *((one, one + 20, "x") for one in voters))
    return People(tuple((one, "a") for one in range(1, 50)), post, vote, ())


def moved(made: World, sql: str, *people: People, load: Callable[..., None] = put) -> int:
    """How far a text's counts move between two databases, over all groups together."""
    found: list[Counter[object]] = []
    for order, rows in enumerate(people):
        made.settle(load, rows, order)
        with made.backend.snapshot() as snapshot:
            counts = (row for batch in snapshot.run(sql) for row in batch)
            found.append(Counter({row[0]: int(row[1]) for row in counts}))
    one, other = found
    return sum(abs(one[key] - other[key]) for key in {*one, *other})


def planted(made: World, old: str, new: str) -> str:
    """The printed count by kind with a fault before its lookup, which the verifier refuses; `{post}`: that table."""
    with made.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, made.policy, lambda *_: None)
    whole = certificate_of(made.plan(BY_KIND).releases, facts)
    (query,) = whole.releases[0].queries
    said = re.search(r"(\S+) AS t1", query.sql)
    assert said is not None
    before, found, after = query.sql.partition(old)
    assert found, old
    changed = replace(query, sql=f"{before}{new.replace('{post}', said[1])}{after}")
    assert rule_against(replace(whole, releases=(replace(whole.releases[0], queries=(changed,)),))) != ""
    return changed.sql


OWN = '("voter" IS NOT NULL)'
THERE = 'EXISTS (SELECT 1 FROM {post} AS pp WHERE pp."id" = "post")'
SPREAD = '(CAST("id" AS BIGINT) * 2654435761) % 4294967296'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OWN, f"{OWN} AND {THERE}"),
        (OWN, f"""{OWN} AND {THERE[:-1]} AND pp."cat" = 'x')"""),
        (SPREAD, f"(CASE WHEN {THERE} THEN 0 ELSE 4294967296 END) + {SPREAD}"),
    ],
    ids=["after the join", "after a joined filter", "by an order that reads who is pointed at"],
)
def test_keep_the_first_rows_of_who_points(adding: World, old: str, new: str) -> None:
    people = shifted()
    with adding.backend.snapshot() as snapshot:
        printed = certificate_of(
            adding.plan(BY_KIND).releases, read_facts(snapshot, adding.policy, lambda *_: None)
        )
    assert moved(adding, printed.releases[0].queries[0].sql, people, people.without(1)) == 3
    assert moved(adding, planted(adding, old, new), people, people.without(1)) == 3 + 24


def test_rank_by_both_on_the_raw_join(adding: World) -> None:
    table = re.search(r"(\S+) AS t1", planted(adding, OWN, f"{OWN} AND {THERE}"))
    assert table is not None
    schema = table[1].removesuffix('"post"')
    order = "ORDER BY (CAST(v.id AS BIGINT) * 2654435761) % 4294967296"
    ranks = ", ".join(
        f"ROW_NUMBER() OVER (PARTITION BY {one} {order}) AS r{i}" for i, one in enumerate(("voter", "owner"))
    )
    joined = f"SELECT kind, {ranks} FROM {schema}vote AS v JOIN {schema}post AS p ON v.post = p.id"
    sql = f"SELECT kind, COUNT(*) AS n FROM ({joined}) AS q WHERE r0 <= 2 AND r1 <= 3 GROUP BY kind"
    people = shifted()
    assert moved(adding, sql, people, people.without(1)) == 3 + 24


def test_keep_rows_by_an_order_that_is_not_total(adding: World) -> None:
    sql = planted(adding, SPREAD, "CAST(0 AS BIGINT)")
    if adding.twin is None:  # rows that tie are all kept
        many = replace(shifted(), vote=tuple((n, 10, 10 + n % 12, 0, 0) for n in range(100, 136)))
        assert moved(adding, sql, many, many.without(10)) > 7
        return

    def other_order(seed: int) -> Callable[..., None]:
        return lambda connection, people, order: put(connection, people, seed * order)

    same = shifted()  # and the rows that are kept differ, of one database laid in two orders
    assert any(moved(adding, sql, same, same, load=other_order(seed)) for seed in range(1, 9))
