"""L1 for rows that are kept by the number that they have among their person's (soundness.md 1.39). R is 3.

Numbers are whatever the constraint admits: with holes, below 1, beyond R, after rows went, came and changed hands.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb
import pytest

from dpsql.plan import planner
from dpsql.plan.backend_sql.print_source import SourcePrinter
from dpsql.plan.dialects.dialect_duckdb import DuckDBDialect
from dpsql.plan.measures.measurements import Measurement
from dpsql.plan.privacy import ownership
from dpsql.policy import Accounting, Neighbours, Policy, parse_policy, units
from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.tests.backends.test_prepared_rows import SCHEMA as BASE
from dpsql.tests.backends.test_prepared_rows import Owner, histories, on_duckdb
from dpsql.tests.support.postgres_server import PostgresServer

from .held import verdict, worst_losses
from .measured import World, world
from .planting import plant

Patch = pytest.MonkeyPatch

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE visit (owner INTEGER NOT NULL, n INTEGER NOT NULL, g INTEGER, kind INTEGER, minutes INTEGER, PRIMARY KEY (owner, n));
CREATE TABLE wallet (owner INTEGER NOT NULL UNIQUE, level INTEGER);
CREATE TABLE kind (no INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE tag (kind INTEGER, word TEXT);
INSERT INTO kind VALUES (0, 'a'), (1, 'b'), (2, 'b');
INSERT INTO tag VALUES (0, 'x'), (0, 'y'), (1, 'x'), (1, 'y'), (2, 'x'), (2, 'z')
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
[tables.visit]
unit = { column = "owner", references = "person.id" }
row_number = "n"
max_rows = 3
columns = { g = { values = [0, 1, 2, 3, 4] }, kind = {}, minutes = { bounds = [-5, 4] } }
[tables.wallet]
unit = { column = "owner", references = "person.id" }
columns = { level = { values = [0, 1] } }
[tables.kind]
public = true
columns = { name = { values = ["a", "b"] } }
[tables.tag]
public = true
"""

COUNT = "SELECT COUNT(*) FROM visit"
BY_G = "SELECT g, COUNT(*) FROM visit GROUP BY g"
BY_NUMBER = (
    COUNT,
    BY_G,
    "SELECT SUM(minutes) FROM visit",
    "SELECT g, SUM(minutes), COUNT(*) FROM visit GROUP BY g",
    "SELECT g, AVG(minutes) FROM visit GROUP BY g",
    "SELECT COUNT(*), COUNT(*) FILTER (WHERE g = 1), SUM(minutes) FILTER (WHERE minutes > 0) FROM visit",
    "SELECT VAR_POP(COALESCE(minutes, 0)) FROM visit",
    "SELECT k.name, COUNT(*), SUM(v.minutes) FROM visit v JOIN kind k ON k.no = v.kind GROUP BY k.name",
    "SELECT COUNT(*), SUM(v.minutes) FROM visit v LEFT JOIN kind k ON k.no = v.kind AND k.name = 'a'",
    "SELECT p.city, v.g, COUNT(*) FROM visit v JOIN person p ON p.id = v.owner GROUP BY p.city, v.g",
    "SELECT COUNT(*) FROM visit v JOIN person p ON p.id = v.owner WHERE p.city = 'a'",
    "SELECT w.level, COUNT(*) FROM visit v JOIN wallet w ON w.owner = v.owner GROUP BY w.level",
    "SELECT g, COUNT(*) FROM visit GROUP BY ROLLUP (g)",
    "SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM wallet w WHERE w.owner = v.owner AND w.level = 1) THEN minutes END), "
    "COUNT(*) FROM visit v",
    "SELECT COUNT(*) FROM visit v JOIN visit w ON w.owner = v.owner",
)
BY_WEIGHT = (
    "SELECT COUNT(*) FROM visit WHERE g = 1",
    "SELECT g, COUNT(*) FROM visit WHERE g IN (1, 2) GROUP BY g",
    "SELECT COUNT(*) FILTER (WHERE g = 1) FROM visit",
    "SELECT COUNT(*) FROM visit v JOIN kind k ON k.no = v.kind WHERE k.name = 'b'",
    "SELECT COUNT(DISTINCT owner) FROM visit",
    "SELECT g, COUNT(DISTINCT kind) FROM visit GROUP BY g",
    "SELECT kind, COUNT(*) FROM visit GROUP BY kind",
    "SELECT MEDIAN(minutes) FROM visit",
    "SELECT MODE() WITHIN GROUP (ORDER BY g) FROM visit",
    "SELECT COUNT(*) FROM visit v JOIN tag t ON t.kind = v.kind",
    "SELECT SUM(c) FROM (SELECT owner, COUNT(*) AS c FROM visit GROUP BY owner) t WHERE c BETWEEN 0 AND 9",
    "SELECT COUNT(*) FROM (SELECT g FROM visit UNION ALL SELECT level FROM wallet) t",
)
"""What is answered as without numbers: what filters, counts a thing once, is found or chosen, copies rows."""


@dataclass(frozen=True)
class People:
    """The rows of a database, by table: visits are (owner, n, g, kind, minutes)."""

    person: tuple[tuple[object, ...], ...]
    visit: tuple[tuple[object, ...], ...]
    wallet: tuple[tuple[object, ...], ...]

    def without(self, one: int) -> People:
        """Return the database without a person's rows."""
        found = ([row for row in rows if row[0] != one] for rows in (self.person, self.visit, self.wallet))
        return People(*map(tuple, found))


def put(connection: duckdb.DuckDBPyConnection, people: People, order: int = 0) -> None:
    """Put rows in, in a physical order that depends on `order`."""
    for name in ("wallet", "visit", "person"):
        connection.execute(f"DELETE FROM {name}")
    for name, rows in (("person", people.person), ("visit", people.visit), ("wallet", people.wallet)):
        shuffled = list(rows)
        random.Random(order).shuffle(shuffled)
        if shuffled:
            shown = ", ".join(
                f"({', '.join('NULL' if one is None else repr(one) for one in row)})" for row in shuffled
            )
            connection.execute(f"INSERT INTO {name} VALUES {shown}")


def heavy(first: int = -4, step: int = 1, g: int = 0) -> People:
    """One person with twelve visits whose numbers begin below 1, among others with few."""
    mine = [(1, first + step * i, g, i % 3, -5) for i in range(12)]
    others = [(one, 1 + one % 3, one % 5, one % 3, 4) for one in range(2, 12)]
    people = tuple((one, "a" if one % 2 else "b") for one in range(1, 12))
    return People(people, (*mine, *others), ((1, 1), (2, 0)))


def refreshed(seed: int) -> People:
    """Rows that were numbered, deleted, added under the next numbers, put in at another owner, and in part by hand."""
    draw = random.Random(seed)
    visits: dict[tuple[int, int], tuple[object, ...]] = {}

    def add(owner: int, rest: tuple[object, ...]) -> None:
        taken = [n for one, n in visits if one == owner]
        visits[owner, max([0, *taken]) + 1] = rest

    for _ in range(draw.randrange(1, 6)):
        for _ in range(draw.randrange(12)):
            add(
                draw.choice([1, 1, 2, 3, 4]),
                (draw.choice([0, 1, 2, 7, None]), draw.choice([0, 1, 2, 9, None]), draw.choice([-9, 0, 4, None])),
            )  # fmt: skip
        for key in draw.sample(sorted(visits), len(visits) // 3):
            gone = visits.pop(key)
            if draw.random() < 0.5:
                add(draw.choice([1, 2, 3, 4]), gone)
    for key in draw.sample(sorted(visits), len(visits) // 4):  # numbers that no refresh gives
        other = key[0], draw.choice([-7, 0, 2, 3, 50])
        if other not in visits:
            visits[other] = visits.pop(key)
    rows = tuple((*key, *rest) for key, rest in visits.items())
    wallets = tuple((one, draw.randrange(2)) for one in draw.sample(range(1, 6), 3))
    return People(tuple((one, draw.choice("abc")) for one in (1, 2, 3)), rows, wallets)


def prepared(folder: Path, seed: int) -> People:
    """Rows as the owner's command numbered them, by steps over a table that changed between, and by hand beside them."""
    path = folder / "data.duckdb"
    owner = Owner(f"duckdb:{path}", folder, on_duckdb(path))
    owner.execute(BASE)
    for _ in histories(owner, seed):
        pass
    rows = owner.execute("SELECT owner, n, g - 4, g % 3, g FROM copy ORDER BY ALL")
    more = [(1, n, 1, 1, -5) for n in (-1, 0, 40)]
    return People(((1, "a"), (2, "b")), (*rows, *more), ((1, 1), (3, 0)))


def opened(
    folder: Path, engine: PostgresServer | None = None, *, replace_one: bool = False, together: int = 1,
    zcdp: bool = False, schema: str = SCHEMA, text: str = POLICY,
) -> Iterator[World]:  # fmt: skip
    policy: Policy = parse_policy(text, folder / "laws.toml")
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


@pytest.mark.parametrize("sql", BY_NUMBER)
def test_rows_are_read_up_to_a_number(adding: World, sql: str) -> None:
    for release in adding.plan(sql).releases:
        assert release.bounding.numbered is not None
        (query,) = release.queries(tuple(range(len(release.measurements))))
        assert "BETWEEN 1 AND 3)" in query.sql
        assert "heavy" not in query.sql
    assert verdict(adding, sql) == ""


@pytest.mark.parametrize("sql", BY_WEIGHT)
def test_the_choice_is_of_text_and_policy(adding: World, sql: str) -> None:
    assert all(release.bounding.numbered is None for release in adding.plan(sql).releases)
    assert verdict(adding, sql) == ""


def test_the_claim_is_reached(adding: World) -> None:
    people = heavy()
    assert check(adding, BY_NUMBER[:3], people, [people.without(1)]) == [1, 1, 1]


@pytest.mark.parametrize("seed", range(6))
def test_no_claim_is_passed(adding: World, seed: int) -> None:
    people = refreshed(seed)
    check(adding, BY_NUMBER + BY_WEIGHT[:3], people, [people.without(one) for one in (1, 2, 3)])


@pytest.mark.parametrize("seed", range(3))
def test_no_claim_is_passed_by_what_was_prepared(adding: World, tmp_path: Path, seed: int) -> None:
    people = prepared(tmp_path, seed)
    check(adding, BY_NUMBER, people, [people.without(one) for one in (1, 2, 3)])


# --- a table that the database calls otherwise ------------------------------------------------------------------


def put_elsewhere(connection: duckdb.DuckDBPyConnection, people: People, order: int = 0) -> None:
    """Put rows into the copy; the table whose name it has in the policy holds them too, all under one number."""
    put(connection, people, order)
    connection.execute(
        "DELETE FROM visit_prepared; INSERT INTO visit_prepared FROM visit; UPDATE visit SET n = 1"
    )


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    loose = SCHEMA.replace("minutes INTEGER, PRIMARY KEY (owner, n)", "minutes INTEGER")
    (key,) = (line for line in SCHEMA.splitlines() if "TABLE visit" in line)
    text = POLICY.replace("[tables.visit]", '[tables.visit]\nsource = "visit_prepared"')
    yield from opened(
        tmp_path_factory.mktemp("elsewhere"),
        schema=loose + ";" + key.replace("visit", "visit_prepared"),
        text=text,
    )


ELSEWHERE = (
    *BY_NUMBER[:4],
    BY_WEIGHT[0],
    "SELECT p.city, COUNT(*) FROM visit v JOIN person p ON p.id = v.owner GROUP BY p.city",
)


def test_no_claim_is_passed_under_another_name(elsewhere: World) -> None:
    people = heavy()
    assert [verdict(elsewhere, sql) for sql in ELSEWHERE] == [""] * len(ELSEWHERE)
    assert worst_losses(put_elsewhere, elsewhere, ELSEWHERE, people, [people.without(1)])[:2] == [1, 1]


def test_mutant_read_the_table_of_the_policys_name(elsewhere: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, DuckDBDialect.table, ("table.place", "table.path"))
    people = heavy()
    assert verdict(elsewhere, COUNT) != ""
    with pytest.raises(AssertionError):
        worst_losses(put_elsewhere, elsewhere, (COUNT,), people, [people.without(1)])


@pytest.mark.parametrize("how", ["replace", "together", "zcdp"])
def test_other_promises_hold(tmp_path: Path, how: str) -> None:
    people = heavy()
    for made in opened(
        tmp_path, replace_one=how == "replace", together=2 if how == "together" else 1, zcdp=how == "zcdp"
    ):
        assert [verdict(made, sql) for sql in BY_NUMBER] == [""] * len(BY_NUMBER)
        base = people.without(2) if how == "replace" else people
        other = people.without(1).without(2) if how == "together" else people.without(1)
        worst = check(made, BY_NUMBER, base, [other])
        if how == "zcdp":
            assert worst[1] > Fraction(999, 1000), "all of a person's rows in one group"


def test_rows_of_one_family_share_no_draw_with_the_other(adding: World) -> None:
    (numbered,), (weighed,) = (adding.plan(sql).releases for sql in (BY_G, BY_WEIGHT[1]))
    other = replace(numbered, bounding=replace(numbered.bounding, per_row=False, numbered=None))
    assert numbered.identity != weighed.identity
    assert numbered.family(0, ()) not in (weighed.family(0, ()), other.family(0, ()))
    single = replace(numbered, bounding=replace(numbered.bounding, numbered=None))
    assert numbered.family(0, ()) != single.family(0, ()), "nor with rows of which a person has one"


def test_a_number_is_no_column(adding: World) -> None:
    assert adding.catalog.tables["visit"].column("n") is None


# --- mutants ------------------------------------------------------------------------------------------------


def falls(made: World, sql: str, people: People) -> None:
    """A planted fault moves a number further than is claimed, and the verifier sees it."""
    assert verdict(made, sql) != "", "it is not verified"
    with pytest.raises(AssertionError):
        check(made, (sql,), people, [people.without(1)])


def test_leave_out_the_lower_end(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, SourcePrinter.block, ("{column} BETWEEN 1 AND {", "{column} <= {"))
    falls(adding, BY_G, heavy())


def test_read_one_more(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, SourcePrinter.block, ("AND {by_number[1]})", "AND {by_number[1] + 1})"))
    falls(adding, BY_G, heavy())


def test_begin_at_zero(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, SourcePrinter.block, ("BETWEEN 1 AND", "BETWEEN 0 AND"))
    falls(adding, COUNT, heavy())


def test_read_all_rows(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, SourcePrinter.block, ("[*taken, *(", "[*("))
    falls(adding, BY_G, heavy())


def test_bound_rows_above_a_join_that_copies(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, ownership.resolve_owner, ("items=held_.items, written", "items=items, written"))
    plant(
        monkeypatch, planner._numbered,
        ("table = rows.table_alone\n", "table = rows.items[0].source.table\n"),
        ("assert rows.alone is not None", "pass"),
        ("Numbered(rows.alone,", "Numbered(0,"),
    )  # fmt: skip
    falls(adding, BY_WEIGHT[9], heavy())


def test_take_a_person_for_one_row(tmp_path: Path, monkeypatch: Patch) -> None:
    plant(
        monkeypatch, Measurement.most_in_group.fget,  # type: ignore[attr-defined]
        ("self.bounding.per_row and self.bounding.numbered is None", "self.bounding.per_row"),
    )  # fmt: skip
    for made in opened(tmp_path, zcdp=True):
        falls(made, BY_G, heavy())


def test_count_people_by_their_rows(adding: World, monkeypatch: Patch) -> None:
    """Rows kept by number are several of a person: a count of rows is none of people."""
    plant(monkeypatch, planner._numbered, ("call.distinct or ", ""))
    plant(monkeypatch, planner._measured_by_number, ("are_sums and ", ""))
    falls(adding, BY_WEIGHT[4], heavy())


@pytest.mark.parametrize("type_", ["DECIMAL(9, 4)", "DOUBLE"])
def test_number_by_fractions(tmp_path: Path, monkeypatch: Patch, type_: str) -> None:
    """Between 1 and 3 there are more than three fractions."""
    schema = SCHEMA.replace("n INTEGER NOT NULL", f"n {type_} NOT NULL")
    plant(monkeypatch, units._require_number, ("if not column.type.is_integer:", "if False:"))
    people = heavy()
    rows = tuple((1, 1 + i / 8, *row[2:]) if row[0] == 1 else row for i, row in enumerate(people.visit))
    for made in opened(tmp_path, schema=schema):
        falls(made, BY_G, replace(people, visit=rows))


def test_believe_a_key_that_nobody_enforces(tmp_path: Path, monkeypatch: Patch) -> None:
    schema = SCHEMA.replace(", PRIMARY KEY (owner, n))", ")")
    plant(
        monkeypatch,
        units._require_key_of_numbers,
        ("if any(set(key) == wanted for key in table.proved.keys):", "if True:"),
    )
    people = heavy()
    rows = tuple((1, 1, *row[2:]) if row[0] == 1 else row for row in people.visit)
    for made in opened(tmp_path, schema=schema):
        falls(made, COUNT, replace(people, visit=rows))


def test_a_key_of_the_number_and_something_else_holds_nothing(tmp_path: Path, monkeypatch: Patch) -> None:
    schema = SCHEMA.replace("PRIMARY KEY (owner, n)", "PRIMARY KEY (owner, n, minutes)")
    plant(
        monkeypatch,
        units._require_key_of_numbers,
        ("set(key) == wanted for key", "set(key) >= wanted for key"),
    )
    people = heavy()
    rows = tuple((1, 1, *row[2:4], i - 5) if row[0] == 1 else row for i, row in enumerate(people.visit))
    for made in opened(tmp_path, schema=schema):
        falls(made, COUNT, replace(people, visit=rows))


def test_a_row_beyond_the_bound_lists_nobody(adding: World) -> None:
    """Who has a row numbered R + 1 is no list of those with more than R rows: that number may be a hole."""
    plan = adding.plan(BY_WEIGHT[0]).releases
    with adding.backend.snapshot() as snapshot:
        whole = certificate_of(plan, read_facts(snapshot, adding.policy, lambda *_: None))
    (query,) = whole.releases[0].queries
    assert rule_against(whole) == ""
    before, found, after = query.sql.partition("HAVING COUNT(*) > 3")
    assert found
    changed = replace(query, sql=f"{before}HAVING MAX(n) > 3{after}")
    assert rule_against(replace(whole, releases=(replace(whole.releases[0], queries=(changed,)),))) != ""


def test_a_text_without_a_premise_is_not_verified(adding: World) -> None:
    """One piece of the printed text changed: each is a premise of the verifier's lemma."""
    sql = "SELECT v.g, COUNT(*) FROM visit v JOIN kind k ON k.no = v.kind GROUP BY v.g"
    with adding.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, adding.policy, lambda *_: None)
    whole = certificate_of(adding.plan(sql).releases, facts)
    (query,) = whole.releases[0].queries
    assert rule_against(whole) == ""
    number = 't0."n" BETWEEN 1 AND 3'
    for old, new in (
        (number, 't0."n" <= 3'),
        (number, 't0."n" >= 1'),
        (number, 't0."n" BETWEEN 0 AND 3'),
        (number, 't0."n" BETWEEN 1 AND 4'),
        (number, '(t0."n" BETWEEN 1 AND 3 OR t0."g" = 1)'),
        (number, 't0."g" BETWEEN 1 AND 3'),
        (number, 't1."no" BETWEEN 1 AND 3'),
        (number, 'ABS(t0."n") BETWEEN 1 AND 3'),
        ('t1."no" = t0."kind"', "TRUE"),
        ('"kind" AS t1', '"tag" AS t1'),
    ):
        assert old in query.sql, old
        changed = replace(query, sql=query.sql.replace(old, new))
        assert (
            rule_against(replace(whole, releases=(replace(whole.releases[0], queries=(changed,)),))) != ""
        ), new
    for key, unit in ((("g", "n"), None), (("owner", "g"), None), (("owner", "n"), ("g",))):
        table = next(one for name, one in facts.tables.items() if name.endswith(".visit"))
        said = replace(table, unique=(key,))
        said = (
            said
            if unit is None or said.unit is None
            else replace(said, unit=replace(said.unit, columns=unit))
        )
        others = {name: said if one is table else one for name, one in facts.tables.items()}
        assert rule_against(certificate_of(adding.plan(sql).releases, replace(facts, tables=others))) != "", (
            key
        )
    for nullable in ("owner", "n"):
        kept = tuple(name for name in table.not_null if name != nullable)
        others = {
            name: replace(one, not_null=kept) if one is table else one for name, one in facts.tables.items()
        }
        assert rule_against(certificate_of(adding.plan(sql).releases, replace(facts, tables=others))) != ""
