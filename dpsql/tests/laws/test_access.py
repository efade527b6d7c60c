"""What is not granted does not exist (soundness.md 3.16): an analyst with a narrowed view gets exactly what a database
and a policy without those tables and columns would give.

The world is that of `random_joins`. The reference has none of what is hidden: the columns are dropped from the
database. `account`, over which bookings find their owner, is there for views alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import DpsqlError, PolicyError, Refusal
from dpsql.policy import Access, Analyst, Policy, catalog, parse_policy
from dpsql.policy.model import TablePolicy
from dpsql.release import finer
from dpsql.sql import scope
from dpsql.system_catalog.objects import Objects
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.drawn_statements import statements
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.random_joins import SCHEMA, Database, databases, load, policy_text

from .planting import plant
from .test_neighbours_joined import FUZZ as MANY_EXAMPLES

Patch = pytest.MonkeyPatch
FUZZ = settings(MANY_EXAMPLES, max_examples=25, phases=[Phase.generate])

GRANTED = ("person", "booking", "note", "region", "rate", "tag")
HIDDEN = ("person.team", "booking.id", "note.ref", "note.flag", "region.zone", "rate.kind")
SEEN = Access(GRANTED, HIDDEN)

FIXED = (
    "SELECT COUNT(*) FROM account",
    "SELECT COUNT(*) FROM nobody_there",
    "SELECT COUNT(*) FROM acount",
    "SELECT COUNT(*) FROM main.profile",
    "SELECT COUNT(*) FROM booking",
    "SELECT city, COUNT(*) AS n, SUM(amount) AS s FROM booking GROUP BY city ORDER BY city",
    "SELECT team, COUNT(*) FROM person GROUP BY team",
    "SELECT teem FROM person",
    "SELECT p.team FROM person p",
    "SELECT COUNT(*) FROM person WHERE team = 'red'",
    "SELECT * FROM rate ORDER BY 1, 2",
    "SELECT * FROM region ORDER BY 1, 2",
    "SELECT * FROM person",
    "SELECT r.* FROM rate r ORDER BY 1, 2",
    "SELECT COUNT(*) FROM rate JOIN region ON region.name = rate.region",
    "SELECT COUNT(*) FROM rate NATURAL JOIN region",
    "SELECT COUNT(*) FROM rate a JOIN rate b USING (kind)",
    "SELECT kind, COUNT(*) FROM rate GROUP BY kind",
    "SELECT COUNT(*) FROM note WHERE flag",
    "SELECT n.id FROM booking n",
    "SELECT COUNT(*) FROM note JOIN booking ON note.n = booking.n",
    "SELECT COUNT(*) FROM booking b JOIN person p ON p.id = b.account_no",
    "SELECT COUNT(*) FROM booking b JOIN account a ON a.no = b.account_no",
    "SELECT COUNT(*) FROM person WHERE EXISTS (SELECT 1 FROM profile f WHERE f.person_id = person.id)",
    "SELECT COUNT(*) FROM person p JOIN note n ON n.person_id = p.id WHERE n.city = 'a'",
    "SELECT SUM(age) AS s FROM person",
    "SELECT 1 AS account",
    "SELECT COUNT(*) FROM person AS p(a)",
    *(
        f"SELECT {shown} FROM {table} AS t({', '.join('abcdefgh'[:count])})"
        for table in ("person", "booking", "note", "region", "rate")
        for count in range(2, 9)
        for shown in ("*", f"COUNT(DISTINCT {'abcdefgh'[count - 1]})")
    ),
    "SELECT account FROM (SELECT COUNT(*) AS account FROM person) AS t",
    "SELECT COUNT(*) AS profile FROM note GROUP BY 7",
)  # fmt: skip


@dataclass
class Side:
    """A session over a database, and what fills it."""

    session: Session
    connection: duckdb.DuckDBPyConnection

    def said(self, sql: str) -> object:
        """Return all that an analyst gets of a statement."""
        session = self.session
        try:
            answer = session.execute(sql)
        except DpsqlError as error:
            return (
                type(error).__name__,
                error.sqlstate,
                error.message,
                error.hint,
                getattr(error, "position", None),
            )
        assert answer.receipt is not None
        receipt = answer.receipt
        return answer.columns, answer.rows, receipt.epsilon, receipt.delta, receipt.notes

    def explained(self, sql: str) -> object:
        """Return what EXPLAIN says, but for the backend's SQL where this side does not show it."""
        try:
            shown = self.session.explain(sql)
        except DpsqlError as error:
            return error.sqlstate, error.message, error.hint
        return shown.as_dict(), shown.text()


def policy_at(folder: Path) -> Policy:
    folder.mkdir(exist_ok=True)
    text = policy_text(replace_one=False, rows=60, groups=60, epsilon="0.001")
    return parse_policy(text, folder / "laws.toml")


def without_hidden(policy: Policy) -> Policy:
    """Return the policy that has never heard of what is hidden."""
    tables = {}
    for name, table in policy.tables.items():
        if name == "account":
            tables[name] = replace(table, is_hidden=True)
        elif name in GRANTED:
            tables[name] = _kept(table)
    return replace(policy, tables=tables)


def _kept(table: TablePolicy) -> TablePolicy:
    return replace(
        table, columns=tuple(one for one in table.columns if f"{table.name}.{one.name}" not in HIDDEN)
    )


def dropped(schema: str) -> str:
    """Return the schema without the hidden columns and the table that nothing leads over."""
    schema = schema.replace(
        "name VARCHAR PRIMARY KEY, weight INTEGER, zone VARCHAR", "name VARCHAR PRIMARY KEY, weight INTEGER"
    )
    schema = schema.replace(
        "region VARCHAR, kind VARCHAR, value DOUBLE, PRIMARY KEY (region, kind)",
        "region VARCHAR NOT NULL, value DOUBLE",
    )
    schema = schema.replace("age SMALLINT, team VARCHAR,", "age SMALLINT,").replace(
        "id INTEGER PRIMARY KEY, account_no", "account_no"
    )
    schema = schema.replace("person_id INTEGER, ref BIGINT,", "person_id INTEGER,")
    schema = schema.replace(
        "tag VARCHAR, city VARCHAR, day DATE,\n    flag BOOLEAN", "tag VARCHAR, city VARCHAR, day DATE"
    )
    return re.sub(r"CREATE TABLE profile [^;]*;", "", schema)


def opened(stack: ExitStack, folder: Path, policy: Policy, schema: str, analyst: str) -> Side:
    connection = stack.enter_context(empty_duckdb())
    connection.execute(schema)
    dataset = Dataset(policy, DuckDBBackend.over(connection), open_ledger(policy, create=True), warm_sealed())
    session = stack.enter_context(Session(dataset, analyst, _noise=ZeroNoise()))
    return Side(session, connection)


def granting(policy: Policy, **analysts: Access) -> Policy:
    known = {name: Analyst(name, policy.privacy.epsilon, access=one) for name, one in analysts.items()}
    return replace(policy, analysts=known)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """The narrowed analyst, and the one of a world without."""
    folder = tmp_path_factory.mktemp("access")
    whole = policy_at(folder / "whole")
    with ExitStack() as stack:
        ours = opened(stack, folder, granting(whole, alice=SEEN, bob=Access()), SCHEMA, "alice")
        reference = without_hidden(policy_at(folder / "without"))
        theirs = opened(stack, folder, granting(reference, alice=Access(GRANTED)), dropped(SCHEMA), "alice")
        yield ours, theirs


def settle(sides: tuple[Side, Side], database: Database) -> None:
    """Put a database into both worlds, without what one of them does not have."""
    ours, theirs = sides
    load(ours.connection, database)
    for (table,) in theirs.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        columns = [name for name, *_ in theirs.connection.execute(f"DESCRIBE {table}").fetchall()]
        rows = ours.connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
        theirs.connection.execute(f"DELETE FROM {table}")
        insert(theirs.connection, table, rows)
    for side in sides:
        side.session.dataset.answers.clear()
        side.session.execute("SET dpsql.reuse = off")


def check(sides: tuple[Side, Side], sql: str) -> None:
    ours, theirs = sides
    assert ours.said(sql) == theirs.said(sql), sql
    mine, other = ours.session.catalog, theirs.session.catalog
    assert list(mine.shown) == list(other.shown)
    explained, expected = ours.explained(sql), theirs.explained(sql)
    if isinstance(explained[0], dict) and isinstance(expected[0], dict):  # type: ignore[index]
        left, right = explained[0], expected[0]  # type: ignore[index]
        for one, two in zip(left["releases"], right["releases"], strict=True):
            if not one["backend_sql"]:
                two["backend_sql"] = []
        for key, unsaid in (("post_processing", "not shown"), ("public_parts", [])):
            if left[key] == unsaid:
                right[key] = unsaid
        right["intermediates"] = [
            one if one == "not shown" else two
            for one, two in zip(left["intermediates"], right["intermediates"], strict=True)
        ]
        assert left == right, sql
    else:
        assert explained == expected, sql


@pytest.mark.parametrize("sql", FIXED)
def test_each_statement_answers_as_without(sides: tuple[Side, Side], sql: str) -> None:
    settle(sides, Database({}))
    check(sides, sql)


@FUZZ
@given(st.lists(statements(), min_size=1, max_size=3), databases())
def test_all_statements_answer_as_without(
    sides: tuple[Side, Side], sqls: list[str], database: Database
) -> None:
    settle(sides, database)
    for sql in sqls:
        check(sides, sql)


def test_the_system_catalog_is_that_of_a_world_without(sides: tuple[Side, Side]) -> None:
    mine, other = (Objects(side.session.catalog, has_delta=True) for side in sides)
    assert mine.tables == other.tables
    assert mine.schemas == other.schemas


# --- what two analysts share, and what they do not ---------------------------------------------------------


@dataclass
class Desk:
    """Sessions of several analysts over one dataset."""

    dataset: Dataset

    def of(self, analyst: str) -> Session:
        return Session(self.dataset, analyst, is_shared=True, _noise=ZeroNoise())

    def charge(self, analyst: str, sql: str) -> Fraction:
        receipt = self.of(analyst).execute(sql).receipt
        assert receipt is not None
        return receipt.epsilon

    def refusal(self, analyst: str, sql: str) -> Refusal:
        with pytest.raises(Refusal) as caught:
            self.of(analyst).execute(sql)
        return caught.value


VIEWS = """
CREATE VIEW giro AS SELECT a.no, p.age, a.balance * 2 AS half, a.kind FROM account a JOIN person p ON p.id = a.person_id;
"""
_VIEW = "[tables.giro]\nview = true\n"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """alice sees notes, bookings and a view; bob everything; carol all but the units' columns."""
    text = policy_text(replace_one=False, rows=60, groups=60, epsilon="1") + _VIEW
    policy = granting(
        parse_policy(text, tmp_path / "laws.toml"),
        alice=Access(
            ("note", "booking", "giro", "rate"), ("note.flag", "note.ref", "giro.kind", "booking.id")
        ),
        bob=Access(),
        carol=Access(None, ("person.id", "note.person_id", "account.person_id")),
    )
    with ExitStack() as stack:
        connection = stack.enter_context(empty_duckdb())
        connection.execute(SCHEMA + VIEWS)
        load(connection, Database({}))
        yield Desk(
            Dataset(policy, DuckDBBackend.over(connection), open_ledger(policy, create=True), warm_sealed())
        )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM note",
        "SELECT city, SUM(n) FROM note GROUP BY city",
        "SELECT city, COUNT(*) FROM booking GROUP BY city",
        "SELECT AVG(age) FROM giro",
        "SELECT COUNT(*) FROM note n JOIN rate r ON r.region = n.city",
    ],
)
@pytest.mark.parametrize(("first", "second"), [("alice", "bob"), ("bob", "alice")])
def test_what_both_may_ask_is_charged_once(desk: Desk, sql: str, first: str, second: str) -> None:
    assert desk.charge(first, sql) > 0
    assert desk.charge(second, sql) == 0


def test_a_stored_answer_over_a_hidden_column_is_not_read(desk: Desk) -> None:
    bob = desk.of("bob")
    bob.execute("SET dpsql.epsilon = 10")
    bob.execute(SUMMED)
    assert desk.charge("bob", COARSE) == 0
    desk.dataset.answers.clear()
    assert desk.charge("alice", COARSE) > 0


def test_an_edition_has_no_draw_by_a_hidden_column(desk: Desk) -> None:
    """Both read one release; what another drew by a column that alice does not see is in bob's number, not in hers."""
    editions = {}
    for asked in (COARSE, SUMMED):
        assert desk.charge("bob", asked) > 0
    for analyst in ("bob", "alice", "bob", "alice"):
        desk.dataset.answers.clear()
        receipt = desk.of(analyst).execute(COARSE).receipt
        assert receipt is not None
        assert receipt.epsilon == 0
        told = [note for note in receipt.notes if str(note).startswith("edition ")]
        assert editions.setdefault(analyst, told) == told
    assert (len(editions["bob"]), editions["alice"]) == (1, [])


def test_a_price_and_a_pinned_edition_know_no_draw_by_a_hidden_column(desk: Desk) -> None:
    """It leaves as much to be paid for as nothing does, and no edition of it answers."""
    assert desk.charge("bob", SUMMED) > 0
    said = {analyst: desk.of(analyst).explain(COARSE).text() for analyst in ("bob", "alice")}
    assert "is known from entry 1" in " ".join(said["bob"].split())
    assert "known from" not in said["alice"]
    alice = desk.of("alice")
    alice.execute("SET dpsql.edition = 1")
    with pytest.raises(Refusal, match="edition 1 does not answer this"):
        alice.execute(COARSE)
    alice.execute("RESET dpsql.edition")
    assert desk.charge("alice", COARSE) == alice.settings.epsilon


def test_an_edition_has_the_draws_by_columns_that_are_seen(desk: Desk) -> None:
    """As without the hidden column: the total of who does not see a flag is told by the cities' counts too."""
    for asked in ("SELECT COUNT(*) FROM note", COARSE):
        assert desk.charge("bob", asked) > 0
    said = []
    for analyst in ("bob", "alice"):
        desk.dataset.answers.clear()
        receipt = desk.of(analyst).execute("SELECT COUNT(*) FROM note").receipt
        assert receipt is not None
        said.append([str(note) for note in receipt.notes if str(note).startswith("edition 2 ")])
    assert said[0] == said[1] != []


SUMMED = "SELECT city, flag, COUNT(*) FROM note GROUP BY city, flag"
COARSE = "SELECT city, COUNT(*) FROM note GROUP BY city"


def test_an_answer_that_is_remembered_is_no_answer_for_others(desk: Desk) -> None:
    sql = "SELECT COUNT(*) FROM account"
    assert desk.charge("bob", sql) > 0
    assert desk.of("bob").recall(sql) is not None
    assert desk.of("alice").recall(sql) is None
    assert desk.refusal("alice", sql).message == 'table "account" does not exist'
    public = "SELECT * FROM region"
    desk.of("bob").execute(public)
    assert desk.refusal("alice", public).hint == "tables: booking, giro, note, rate"


NAMES = re.compile(
    r"\"person\"|\bperson\.|_id\b|profile|\"region\"|kind|balance|\bref\b|flag|team|account\b(?!_no)"
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM booking b JOIN note n ON n.n = b.n",
        "SELECT COUNT(*) FROM giro g JOIN note n ON n.n = g.age",
        "SELECT SUM(half) FROM giro",
        "SELECT half FROM giro",
        "SELECT SUM(age * half) FROM giro",
        "SELECT k FROM giro",
        "SELECT COUNT(*) FROM booking b WHERE EXISTS (SELECT 1 FROM giro g WHERE g.age = b.n)",
        "SELECT COUNT(*) FROM booking, giro",
        "SELECT x FROM note UNION SELECT x FROM booking",
    ],
)
def test_no_refusal_names_what_is_hidden(desk: Desk, sql: str) -> None:
    try:
        desk.of("alice").execute(sql)
    except Refusal as refusal:
        said = f"{refusal.message} {refusal.hint or ''}"
        assert not NAMES.search(said), said


@pytest.mark.parametrize(
    "sql",
    ["SELECT COUNT(*) FROM booking", "SELECT COUNT(*) FROM giro", "SELECT city, AVG(n) FROM note GROUP BY city",
     "SELECT COUNT(*) FROM note n JOIN rate r ON r.region = n.city"],
)  # fmt: skip
def test_no_explanation_names_what_is_hidden(desk: Desk, sql: str) -> None:
    session = desk.of("alice")
    shown = session.explain(sql)
    receipt = session.execute(sql).receipt
    assert receipt is not None
    said = f"{shown.text()} {json.dumps(shown.as_dict())} {receipt.notes}"
    assert not NAMES.search(said), said


def test_a_guessed_name_changes_nothing(desk: Desk) -> None:
    """Whether a name is that of a hidden table cannot be read off what is said when a statement writes it."""
    for text in (
        "SELECT COUNT(*) AS {} FROM giro g JOIN note n ON n.n = g.age",
        "SELECT {} FROM giro",
        "SELECT COUNT(*) FROM {}",
        "SELECT COUNT(*) FROM giro AS {} JOIN note ON note.n = {}.age",
    ):
        said = [desk.refusal("alice", text.replace("{}", name)) for name in ("account", "accounx")]
        first, second = (f"{one.message}|{one.hint}|{one.position}" for one in said)
        assert first.replace("account", "accounx") == second


def test_hidden_unit_columns_still_say_whose_rows_are(desk: Desk) -> None:
    for sql in (
        "SELECT COUNT(*) FROM note",
        "SELECT COUNT(*) FROM person",
        "SELECT SUM(balance) FROM account",
    ):
        assert desk.charge("carol", sql) > 0
    assert desk.refusal("carol", "SELECT COUNT(DISTINCT person_id) FROM note").sqlstate == "42703"
    assert (
        desk.refusal("carol", "SELECT COUNT(*) FROM person p JOIN note n USING (person_id)").sqlstate
        == "42703"
    )
    hint = desk.refusal("carol", "SELECT COUNT(*) FROM person p JOIN note n ON n.n = p.age").hint
    assert hint is not None
    assert "person_id" not in hint
    shown = {table.name: table for table in Objects(desk.of("carol").catalog, has_delta=True).tables}
    assert [one.name for one in shown["person"].attributes] == ["age", "team", "home", "height"]
    assert shown["person"].constraints == ()
    assert "person_id" not in repr(shown["note"])
    assert "id" not in shown["note"].comment.split()


def test_a_hidden_column_that_is_not_there_is_an_error(desk: Desk) -> None:
    policy = granting(desk.dataset.policy, alice=Access(None, ("person.teem",)))
    with pytest.raises(PolicyError) as caught:
        Dataset(policy, desk.dataset.backend, desk.dataset.store)
    assert caught.value.message == (
        'laws.toml: analysts.alice.hide: "person.teem" is no column that analysts see; did you mean "person.team"?'
    )


# --- mutants -----------------------------------------------------------------------------------------------


def test_suggesting_all_names_is_noticed(sides: tuple[Side, Side], monkeypatch: Patch) -> None:
    plant(
        monkeypatch, scope._named_table,
        ('known = ", ".join(sorted(shown)) or "none"', 'known = ", ".join(sorted(context.catalog.tables)) or "none"'),
    )  # fmt: skip
    settle(sides, Database({}))
    with pytest.raises(AssertionError):
        check(sides, "SELECT COUNT(*) FROM nobody_there")


def test_a_column_with_its_name_is_noticed(sides: tuple[Side, Side], monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        catalog._narrowed_table,
        ("frozenset(access.hidden_in(table.name) & names)", "frozenset()"),
    )
    _narrowed_anew(sides, monkeypatch)
    settle(sides, Database({}))
    with pytest.raises(AssertionError):
        check(sides, "SELECT * FROM rate ORDER BY 1, 2")


def test_a_system_catalog_of_everything_is_noticed(sides: tuple[Side, Side]) -> None:
    ours, theirs = sides
    mine = Objects(ours.session.dataset.catalog, has_delta=True)
    assert mine.tables != Objects(theirs.session.catalog, has_delta=True).tables


def test_reading_any_stored_grouping_is_noticed(desk: Desk, monkeypatch: Patch) -> None:
    plant(
        monkeypatch, finer._is_named,
        ("named is None or", "True or"),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        test_a_stored_answer_over_a_hidden_column_is_not_read(desk)


def test_one_memory_for_all_analysts_is_noticed(desk: Desk, monkeypatch: Patch) -> None:
    plant(
        monkeypatch, Session._key,
        ("return sql, values, self.settings, self.access", "return sql, values, self.settings"),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        test_an_answer_that_is_remembered_is_no_answer_for_others(desk)


def _narrowed_anew(sides: tuple[Side, Side], patch: Patch) -> None:
    for side in sides:
        patch.setattr(side.session.dataset, "_seen", {})
        patch.setattr(side.session, "catalog", side.session.dataset.seen_by(side.session.access))
        side.session.dataset.prepared.clear()
