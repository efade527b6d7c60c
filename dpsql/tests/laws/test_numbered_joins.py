"""L1 and L9 for joins of tables whose rows are numbered within a person (soundness.md 1.39).

A person has at most 2 purchases that count, 3 items, 4 visits and 2 votes on anybody's purchases, of whom 3 count of
whose purchases they are. Numbers are whatever the constraints admit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb
import pytest

from dpsql.engine.contribution import contribution_lines
from dpsql.plan import planner
from dpsql.plan.backend_sql.print_source import SourcePrinter
from dpsql.plan.privacy import growth, ownership
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Accounting, Neighbours, parse_policy
from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.tests.support.postgres_server import PostgresServer

from . import measured
from .held import verdict, worst_losses
from .measured import World, world
from .planting import plant

Patch = pytest.MonkeyPatch
Rows = tuple[tuple[object, ...], ...]

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE purchase (owner INTEGER NOT NULL, n INTEGER NOT NULL, id INTEGER PRIMARY KEY, day INTEGER, UNIQUE (owner, n));
CREATE TABLE item (owner INTEGER NOT NULL, n INTEGER NOT NULL, purchase INTEGER, g INTEGER, price INTEGER, UNIQUE (owner, n));
CREATE TABLE visit (owner INTEGER NOT NULL, n INTEGER NOT NULL, g INTEGER, kind INTEGER, UNIQUE (owner, n));
CREATE TABLE note (owner INTEGER, g INTEGER);
CREATE TABLE vote (owner INTEGER NOT NULL, n INTEGER NOT NULL, purchase INTEGER, kind INTEGER, UNIQUE (owner, n));
CREATE TABLE kind (no INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE tag (g INTEGER, word TEXT);
INSERT INTO kind VALUES (0, 'a'), (1, 'b'), (2, 'b');
INSERT INTO tag VALUES (0, 'x'), (0, 'y'), (1, 'x'), (1, 'y'), (2, 'x')
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
[tables.purchase]
unit = { column = "owner", references = "person.id" }
row_number = "n"
max_rows = 2
columns = { id = {}, day = { values = [0, 1, 2] } }
[tables.item]
unit = { column = "owner", references = "person.id" }
row_number = "n"
max_rows = 3
columns = { purchase = {}, g = { values = [0, 1, 2] }, price = { bounds = [-5, 4] } }
[tables.visit]
unit = { column = "owner", references = "person.id" }
row_number = "n"
max_rows = 4
columns = { g = { values = [0, 1, 2] }, kind = { bounds = [0, 2] } }
[tables.note]
unit = { column = "owner", references = "person.id" }
max_rows = 2
columns = { g = { values = [0, 1, 2] } }
[tables.vote]
unit = { column = "owner", references = "person.id" }
row_number = "n"
max_rows = 2
also = [{ column = "purchase", references = "purchase.id", max_rows = 3 }]
columns = { kind = { values = [0, 1, 2] } }
[tables.kind]
public = true
columns = { name = { values = ["a", "b"] } }
[tables.tag]
public = true
"""

OWN = "FROM item i JOIN visit v ON v.owner = i.owner"
LED = "FROM item i JOIN purchase p ON p.id = i.purchase AND p.owner = i.owner"
COUNT = f"SELECT COUNT(*) {OWN}"
BY_G = f"SELECT i.g, COUNT(*) {OWN} GROUP BY i.g"
BY_DAY = f"SELECT p.day, COUNT(*) {LED} GROUP BY p.day"
TOGETHER = {
    COUNT: 12,
    BY_G: 12,
    f"SELECT v.g, SUM(i.price), COUNT(*) {OWN} GROUP BY v.g": 12,
    f"SELECT AVG(i.price), SUM(v.kind) FILTER (WHERE i.g = 1) {OWN}": 12,
    f"SELECT COUNT(*) {OWN} WHERE v.g < i.g": 12,
    f"SELECT COUNT(*) {OWN} WHERE i.owner > 1": 12,
    "SELECT COUNT(*) FROM item i LEFT JOIN visit v ON v.owner = i.owner": 12,
    "SELECT COUNT(*), COUNT(v.g) FROM item i LEFT JOIN visit v ON v.owner = i.owner AND v.g = i.g": 12,
    "SELECT COUNT(*) FROM person p LEFT JOIN item i ON i.owner = p.id LEFT JOIN visit v ON v.owner = p.id": 12,
    "SELECT COUNT(*) FROM visit v JOIN visit w ON w.owner = v.owner": 16,
    f"SELECT person.city, COUNT(*) {OWN} JOIN person ON person.id = v.owner GROUP BY person.city": 12,
    f"SELECT k.name, COUNT(*) {OWN} JOIN kind k ON k.no = v.kind GROUP BY k.name": 12,
    f"SELECT COUNT(*) {OWN} JOIN kind k ON k.no = v.kind WHERE k.name = 'b'": 12,
    f"SELECT COUNT(*), SUM(price) {LED} JOIN visit v ON v.owner = i.owner": 12,
    f"SELECT COUNT(*) {OWN} JOIN purchase p ON p.owner = i.owner": 24,
}
"""What multiplies a person's rows, and how many of these it leaves."""
FIRST = {
    f"SELECT COUNT(*), SUM(i.price) {LED}": 3,
    BY_DAY: 3,
    f"SELECT p.day, i.g, AVG(i.price) {LED} GROUP BY p.day, i.g": 3,
    "SELECT COUNT(*) FROM purchase p JOIN item i ON i.purchase = p.id AND i.owner = p.owner": 3,
    "SELECT COUNT(p.day), COUNT(*) FROM item i LEFT JOIN purchase p ON p.id = i.purchase AND p.owner = i.owner": 3,
}
"""What a person has several of, of which each row of another table has one: that table's rows are all there are."""
CUT = {
    f"SELECT COUNT(*) {OWN} WHERE v.g = 1": 12,
    "SELECT COUNT(*) FROM item i JOIN tag t ON t.g = i.g": 3,
    "SELECT t.word, SUM(i.price) FROM item i JOIN tag t ON t.g = i.g WHERE t.word IN ('x', 'y') GROUP BY t.word": 3,
    f"SELECT COUNT(*) {OWN} JOIN tag t ON t.g = i.g": 12,
    "SELECT COUNT(*) FROM item i JOIN note m ON m.owner = i.owner": 6,
}
"""What is weighed once it is joined, a table of which is cut by its numbers before."""
VOTED = "FROM vote v JOIN purchase p ON p.id = v.purchase"
OF_TWO = (
    f"SELECT COUNT(*) {VOTED}",
    f"SELECT p.day, COUNT(*) {VOTED} GROUP BY p.day",
    f"SELECT v.kind, COUNT(*) {VOTED} WHERE p.day = 0 GROUP BY v.kind",
)
"""Rows of two people: who votes, and whose the purchase is."""
OTHER = (
    "SELECT SUM(c) FROM (SELECT i.owner, COUNT(*) AS c FROM item i JOIN visit v ON v.owner = i.owner GROUP BY i.owner) "
    "t WHERE c BETWEEN 0 AND 12",
    "SELECT COUNT(*) FROM item i WHERE EXISTS (SELECT 1 FROM visit v WHERE v.owner = i.owner AND v.g < i.g)",
)
"""What is asked per person of joined rows, or of each pair whether there is one."""
FILTERED = (
    f"SELECT COUNT(*) {LED} WHERE p.day = 1",
    f"SELECT COUNT(*) {OWN} WHERE v.g = 1 AND i.g = 1",
    f"SELECT COUNT(DISTINCT i.owner) {OWN}",
    f"SELECT COUNT(*) {OWN} JOIN purchase p ON p.id = i.purchase AND p.owner = i.owner WHERE p.day = 1",
    "SELECT COUNT(*) FROM item i FULL JOIN visit v ON v.owner = i.owner",
)
"""What is answered without numbers throughout, or counts people."""


@dataclass(frozen=True)
class People:
    """The rows of a database, by table, each with its owner first."""

    person: Rows = ()
    purchase: Rows = ()
    item: Rows = ()
    visit: Rows = ()
    note: Rows = ()
    vote: Rows = ()

    def without(self, one: int) -> People:
        """Return the database without a person's rows."""
        kept = {
            part.name: tuple(row for row in getattr(self, part.name) if row[0] != one)
            for part in fields(self)
        }
        return People(**kept)


def put(connection: duckdb.DuckDBPyConnection, people: People, order: int = 0) -> None:
    """Put rows in, in a physical order that depends on `order`."""
    for part in fields(people):
        connection.execute(f"DELETE FROM {part.name}")
        shuffled = list(getattr(people, part.name))
        random.Random(order).shuffle(shuffled)
        if shuffled:
            rows = (f"({', '.join('NULL' if one is None else repr(one) for one in row)})" for row in shuffled)
            connection.execute(f"INSERT INTO {part.name} VALUES {', '.join(rows)}")


def heavy(first: int = -4) -> People:
    """One person with twelve rows in each table, numbered from below 1 on, among others with one."""
    numbers = range(first, first + 12)
    purchases = [(1, n, 100 + n, 0) for n in numbers]
    items = [(1, n, 100 + numbers[-1 - i], 0, -5) for i, n in enumerate(numbers)]
    visits = [(1, n, 1, 2) for n in numbers]
    others = range(2, 9)
    return People(
        tuple((one, "a" if one % 2 else "b") for one in range(1, 9)),
        (*purchases, *((one, 1, one, one % 3) for one in others)),
        (*items, *((one, 2, one, one % 3, 4) for one in others)),
        (*visits, *((one, 3, one % 3, 0) for one in others)),
        (*((1, 0) for _ in range(5)), (2, 1), (None, 2)),
        (*((1, n, 2 + n % 7, 0) for n in numbers), *((one, 1, 100 + numbers[0], 1) for one in others)),
    )


def random_people(seed: int) -> People:
    """Tables of five people, with numbers of all kinds, holes, NULLs, and rows that lead nowhere or to others'."""
    draw = random.Random(seed)

    def numbered(rest: Callable[[int], tuple[object, ...]], most: int) -> Rows:
        keys = {
            (draw.choice([1, 1, 1, 2, 3, 4, 9]), draw.choice([-7, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 50]))
            for _ in range(most)
        }
        return tuple((*key, *rest(place)) for place, key in enumerate(sorted(keys)))

    def value(*among: object) -> object:
        return draw.choice([*among, None])

    return People(
        tuple((one, draw.choice("abc")) for one in draw.sample(range(1, 6), 3)),
        numbered(lambda place: (place, value(0, 1, 2, 7)), 16),
        numbered(lambda _: (value(*range(12), 999), value(0, 1, 2, 7), value(-9, 0, 4)), 24),
        numbered(lambda _: (value(0, 1, 2), value(0, 1, 2, 9)), 24),
        tuple((value(1, 1, 2), value(0, 1)) for _ in range(draw.randrange(6))),
        numbered(lambda _: (value(*range(12), 999), value(0, 1, 2, 9)), 30),
    )


def opened(
    folder: Path, engine: PostgresServer | None = None, *, replace_one: bool = False, together: int = 1,
    zcdp: bool = False, schema: str = SCHEMA, text: str = POLICY,
) -> Iterator[World]:  # fmt: skip
    policy = parse_policy(text, folder / "laws.toml")
    privacy = replace(
        policy.privacy,
        neighbours=Neighbours.REPLACE_ONE if replace_one else Neighbours.ADD_REMOVE,
        together=together,
        accounting=Accounting.ZCDP if zcdp else Accounting.PURE,
        conversion_delta=policy.privacy.delta / 2 if zcdp else Fraction(0),
    )
    with world(folder, policy=replace(policy, privacy=privacy), schema=schema, server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory.mktemp("numbered"), engine)


check = partial(worst_losses, put)


def texts_of(release: ReleasePlan) -> str:
    return " ".join(query.sql for query in release.queries(tuple(range(len(release.measurements)))))


@pytest.mark.parametrize("sql", [*TOGETHER, *FIRST])
def test_joined_rows_are_read_up_to_a_number(adding: World, sql: str) -> None:
    for release in adding.plan(sql).releases:
        assert release.bounding.numbered is not None
        assert release.bounding.in_all == {**TOGETHER, **FIRST}[sql]
        assert release.measurements[0].denominator == 1
        assert not {"heavy", "ROW_NUMBER"} & {*texts_of(release).replace("(", " ").split()}
    assert verdict(adding, sql) == ""


@pytest.mark.parametrize("sql", CUT)
def test_what_is_weighed_is_cut_by_number_before(adding: World, sql: str) -> None:
    (release,) = adding.plan(sql).releases
    assert release.bounding.numbered is None
    assert release.bounding.in_all == CUT[sql]
    assert '"n" BETWEEN 1 AND 3)' in texts_of(release)
    assert verdict(adding, sql) == ""


@pytest.mark.parametrize("sql", OF_TWO)
def test_who_points_is_cut_by_number(adding: World, sql: str) -> None:
    (release,) = adding.plan(sql).releases
    assert '"n" BETWEEN 1 AND 2)' in texts_of(release)
    assert release.bounding.of_two == (2, 3)
    assert next(contribution_lines(release)) == (
        'rows of two people: at most 2 rows of "vote" of a person, numbered 1 to 2, and of those joined at most 3 that '
        'point at a person through "purchase"'
    )
    assert verdict(adding, sql) == ""
    (filtered,) = adding.plan(f"SELECT COUNT(*) {VOTED} WHERE v.kind = 1").releases
    assert "BETWEEN 1 AND" not in texts_of(filtered)


@pytest.mark.parametrize("sql", [*OTHER, *FILTERED])
def test_other_forms_are_verified(adding: World, sql: str) -> None:
    assert all(release.bounding.numbered is None for release in adding.plan(sql).releases)
    assert verdict(adding, sql) == ""


def test_a_filter_of_its_own_leaves_numbers_out(adding: World) -> None:
    """Of what a filter leaves of one table, more would have higher numbers: that one is cut by first rows."""
    (release,) = adding.plan(f"SELECT COUNT(*) {OWN} WHERE v.g = 1 AND i.g = 1").releases
    assert "BETWEEN 1 AND" not in texts_of(release)


def test_the_claims_are_reached(adding: World) -> None:
    people = heavy()
    statements = (COUNT, BY_G, BY_DAY, [*TOGETHER][9], [*TOGETHER][-1])
    assert check(adding, statements, people, [people.without(1)]) == [1] * len(statements)


@pytest.mark.parametrize("seed", range(8))
def test_no_claim_is_passed(adding: World, seed: int) -> None:
    people = random_people(seed)
    statements = (*TOGETHER, *FIRST, *CUT, *OF_TWO, *OTHER, *FILTERED)
    check(adding, statements, people, [people.without(one) for one in (1, 2, 3, 9)])


@pytest.mark.parametrize("how", ["replace", "together", "zcdp"])
def test_other_promises_hold(tmp_path: Path, how: str) -> None:
    people, statements = heavy(), (*TOGETHER, *FIRST, *OF_TWO)
    for made in opened(
        tmp_path, replace_one=how == "replace", together=2 if how == "together" else 1, zcdp=how == "zcdp"
    ):
        assert [verdict(made, sql) for sql in statements] == [""] * len(statements)
        base = people.without(2) if how == "replace" else people
        other = people.without(1).without(2) if how == "together" else people.without(1)
        worst = check(made, statements, base, [other])
        if how == "zcdp":
            assert worst[1] > Fraction(999, 1000), "all of a person's rows in one group"


def limit(patch: Patch, rows: int) -> None:
    """Have every statement ask for at most so many rows of a person."""
    whole = measured.plan
    patch.setattr(
        measured,
        "plan",
        lambda relation, catalog, privacy: whole(relation, catalog, replace(privacy, max_rows=rows)),
    )


def test_less_than_all_pairs_is_weighed(adding: World, monkeypatch: Patch) -> None:
    limit(monkeypatch, 11)
    (release,) = adding.plan(COUNT).releases
    assert release.bounding.numbered is None
    assert release.bounding.in_all == 11
    assert '"n" BETWEEN 1 AND 3)' in texts_of(release)
    assert verdict(adding, COUNT) == ""


def test_no_draw_is_shared_with_other_rows(adding: World, monkeypatch: Patch) -> None:
    """Of other bounds, of first rows and of weighed ones."""

    def names(sql: str) -> tuple[bytes, bytes | None]:
        (release,) = adding.plan(sql).releases
        return release.identity, release.family(0, ())

    before = names(BY_G)
    (release,) = adding.plan(BY_G).releases
    weighed = replace(release, bounding=replace(release.bounding, per_row=False, numbered=None))
    assert weighed.family(0, ()) != before[1]
    with monkeypatch.context() as patch:
        plant(patch, growth._number_of, ("return number.column if", "return None if True or"))
        assert not set(names(BY_G)) & set(before)
    with monkeypatch.context() as patch:
        plant(patch, growth.cut_before, ("item.source, item.source.max_rows", "item.source, 2"))
        assert not set(names(BY_G)) & set(before)


def test_explain_says_the_numbers(adding: World) -> None:
    (release,) = adding.plan(COUNT).releases
    assert next(contribution_lines(release)) == (
        'at most 12 rows, "item" numbered 1 to 3 × "visit" numbered 1 to 4 of a person'
    )


# --- mutants ------------------------------------------------------------------------------------------------


def falls(made: World, sql: str, people: People, *, is_seen: bool = True) -> None:
    """A planted fault moves a number further than is claimed, and the verifier sees it."""
    assert (verdict(made, sql) != "") == is_seen
    with pytest.raises(AssertionError):
        check(made, (sql,), people, [people.without(1)])


@pytest.mark.parametrize("table", ["item", "visit"])
def test_leave_out_one_bound(adding: World, monkeypatch: Patch, table: str) -> None:
    plant(
        monkeypatch,
        SourcePrinter._cut,
        (
            "taken = Numbered(0, cut.number), most",
            f"taken = (Numbered(0, cut.number), most if cut.name != '{table}' else 99)",
        ),
    )
    falls(adding, BY_G, heavy())


def test_leave_out_the_bound_of_who_points(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, SourcePrinter._cut, ("Numbered(0, cut.number), most", "Numbered(0, cut.number), 99"))
    falls(adding, OF_TWO[0], heavy(1))


def test_read_one_more(adding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        SourcePrinter._cut,
        ("Numbered(0, cut.number), most", "Numbered(0, cut.number), most + 1"),
    )
    falls(adding, COUNT, heavy())


def test_add_bounds_up(adding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch, ownership._contribution,
        ("in_all = _product(", "in_all = sum_of_bounds("),
    )  # fmt: skip
    plant(monkeypatch, planner._numbered, ("math.prod(", "sum("))
    falls(adding, COUNT, heavy())


def test_take_all_pairs_for_less(adding: World, monkeypatch: Patch) -> None:
    limit(monkeypatch, 5)
    plant(
        monkeypatch,
        planner._numbered,
        ("if math.prod(one.most or 1 for one in told) > bounding.in_all:", "if False:"),
    )
    falls(adding, COUNT, heavy())


def test_count_copies_as_they_are(adding: World, monkeypatch: Patch) -> None:
    """A public table has two rows for each pair."""
    plant(monkeypatch, ownership._contribution, ("tuple(sorted(told)) if are_told else ()", "tuple(told)"))
    falls(adding, [*CUT][3], heavy())


def test_take_the_bound_of_the_parent(adding: World, monkeypatch: Patch) -> None:
    """Of two purchases there are any number of items."""
    plant(monkeypatch, planner._numbered, ("Numbered(rows.alone,", "Numbered(1 - rows.alone,"))
    people = heavy()
    items = tuple(
        (1, n, 100 + n % 2 + 1, 0, -5) if one == 1 else (one, n, *rest) for one, n, *rest in people.item
    )
    falls(adding, f"SELECT COUNT(*), SUM(i.price) {LED}", replace(people, item=items))


def test_believe_a_parents_key_that_nobody_enforces(tmp_path: Path, monkeypatch: Patch) -> None:
    """A purchase's number that nobody holds unique: an item has several purchases."""
    schema = SCHEMA.replace("id INTEGER PRIMARY KEY, day", "id INTEGER NOT NULL, day")
    text = "\n".join(line for line in POLICY.splitlines() if not line.startswith("also = "))
    people = heavy()
    purchases = tuple((1, n, 100, 0) if one == 1 else (one, n, *rest) for one, n, *rest in people.purchase)
    items = tuple((1, n, 100, 0, -5) if one == 1 else (one, n, *rest) for one, n, *rest in people.item)
    people = replace(people, purchase=purchases, item=items)
    for made in opened(tmp_path, schema=schema, text=text):
        (release,) = made.plan(BY_DAY).releases
        assert release.bounding.in_all == 6
        assert verdict(made, BY_DAY) == ""
        assert check(made, (BY_DAY,), people, [people.without(1)]) == [1]
        plant(
            monkeypatch, ownership._table_source,
            ("known = [*table.keys,", "known = [*([('id',)] if table.name == 'purchase' else []), *table.keys,"),
        )  # fmt: skip
        (release,) = made.plan(BY_DAY).releases
        assert release.bounding.in_all == 3
        falls(made, BY_DAY, people)


def test_a_text_without_a_premise_is_not_verified(adding: World) -> None:
    """One piece of the printed text changed: each is a premise of the verifier's lemma."""
    with adding.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, adding.policy, lambda *_: None)
    whole = certificate_of(adding.plan(BY_G).releases, facts)
    (query,) = whole.releases[0].queries
    assert rule_against(whole) == ""
    for old, new in (
        ('"n" BETWEEN 1 AND 3', '"n" <= 3'),
        ('"n" BETWEEN 1 AND 4', '"n" >= 1'),
        ('"n" BETWEEN 1 AND 3', '"n" BETWEEN 0 AND 3'),
        ('"n" BETWEEN 1 AND 4', '"n" BETWEEN 1 AND 5'),
        ('"n" BETWEEN 1 AND 4', "TRUE"),
        ('("n" BETWEEN 1 AND 3)', '("n" BETWEEN 1 AND 3 OR "g" = 1)'),
        ('"n" BETWEEN 1 AND 3', '"g" BETWEEN 1 AND 3'),
        ("(t1.c2 = t0.c3)", "TRUE"),
    ):
        assert old in query.sql, (old, query.sql)
        changed = replace(query, sql=query.sql.replace(old, new))
        certificate = replace(whole, releases=(replace(whole.releases[0], queries=(changed,)),))
        assert rule_against(certificate) != "", new
    for ending in (".item", ".visit"):
        table = next(one for name, one in facts.tables.items() if name.endswith(ending))
        for said in (
            replace(table, unique=(("g", "n"),)),
            replace(table, not_null=("owner",)),
            replace(table, not_null=("n",)),
        ):
            tables = {name: said if one is table else one for name, one in facts.tables.items()}
            certificate = certificate_of(adding.plan(BY_G).releases, replace(facts, tables=tables))
            assert rule_against(certificate) != "", said
