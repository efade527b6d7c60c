"""Rows are numbered within a person on both engines: once, by steps, anew; and what is half done is as if it was not."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import psycopg
import pytest

from dpsql.backends import PostgresBackend, open_backend, prepared_rows
from dpsql.backends.prepared_rows import Prepared, numbering_of, prepare
from dpsql.errors import LedgerError, PolicyError
from dpsql.policy import Policy, build_catalog, check, parse_policy
from dpsql.policy.model import Period
from dpsql.policy.periods import start_of
from dpsql.relation.catalog import RowNumber
from dpsql.tests.laws.planting import plant
from dpsql.tests.support.postgres_fixtures import NEWEST_FIRST
from dpsql.tests.support.postgres_server import Installation, PostgresServer

POLICY = """
database = "DATABASE"
[privacy]
epsilon = 10
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.visit]
unit = { column = "owner", references = "person.id" }
max_rows = 3
columns = { g = {} }
[tables.item]
unit = { column = "visit_id", references = "visit.id" }
max_rows = 3
[tables.other]
unit = { column = "owner", references = "person.id" }
max_rows = 3
[tables.loose]
unit = { column = "owner", references = "person.id" }
max_rows = 3
"""
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY);
CREATE TABLE visit (id INTEGER PRIMARY KEY, owner INTEGER, g INTEGER, word TEXT NOT NULL);
CREATE TABLE other (id INTEGER PRIMARY KEY, owner INTEGER, g INTEGER, word TEXT NOT NULL);
CREATE TABLE item (no INTEGER PRIMARY KEY, visit_id INTEGER, price NUMERIC(9, 2));
CREATE TABLE loose (owner INTEGER, g INTEGER);
INSERT INTO person VALUES (1), (2), (3);
INSERT INTO visit VALUES (1, 1, 0, 'a'), (2, 1, 1, 'b'), (3, 1, 2, 'c'), (4, 2, 0, 'd'), (5, 3, 0, 'e'), (6, NULL, 0, 'f');
INSERT INTO item VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3), (4, 4, 4), (5, 6, 5), (6, NULL, 6);
INSERT INTO loose VALUES (1, 1), (1, 1), (2, NULL);
"""

Execute = Callable[[str], list[tuple[Any, ...]]]


class Owner:
    """The owner of a database, who runs SQL in it and numbers its rows."""

    def __init__(self, url: str, folder: Path, execute: Execute, *, loose: str = "") -> None:
        """`loose`: a collation by which two spellings of a name are equal; "" where there is none."""
        self.url, self.execute, self.loose = url, execute, loose
        self.policy = parse_policy(POLICY.replace("DATABASE", url), folder / "laws.toml")

    def prepare(
        self,
        table: str,
        target: str | None = "copy",
        *,
        anew: bool = False,
        number: str = "n",
        advance: Callable[[Prepared], None] | None = None,
    ) -> Prepared:
        backend = open_backend(self.url)
        with backend.snapshot() as snapshot:
            live = snapshot.schema()
        backend.close_idle()
        found = numbering_of(table, self.policy, self.policy.tables[table], live, target, number)
        return prepare(self.url, found, live, anew=anew, advance=advance)

    def numbers(
        self, key: str = "id", table: str = "copy", owner: str = "owner"
    ) -> dict[int, tuple[int, int]]:
        """Return whose each row is, and its number."""
        rows = self.execute(f"SELECT {key}, {owner}, n FROM {table}")
        return {key: (owner, n) for key, owner, n in rows}


def on_duckdb(path: Path) -> Execute:
    def execute(sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(path)) as connection:
            return connection.execute(sql).fetchall()

    return execute


@pytest.fixture(
    params=["duckdb", *NEWEST_FIRST], ids=lambda one: one if one == "duckdb" else f"pg{one.major}"
)
def owner(
    request: pytest.FixtureRequest, tmp_path: Path, start_postgres: Callable[[Installation], PostgresServer]
) -> Iterator[Owner]:
    if request.param == "duckdb":
        path = tmp_path / "data.duckdb"
        made = Owner(f"duckdb:{path}", tmp_path, on_duckdb(path), loose="NOCASE")
        made.execute(SCHEMA)
        yield made
        return
    server = start_postgres(request.param)
    name = server.create_database()

    def execute(sql: str) -> list[tuple[Any, ...]]:
        with server.admin(name) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    execute(SCHEMA)
    yield Owner(server.url(name), tmp_path, execute, loose="loose" if server.has_icu() else "")
    server.drop_database(name)


def test_rows_are_numbered_from_one(owner: Owner) -> None:
    assert owner.prepare("visit") == Prepared(5, 5, 0, False)
    found = owner.numbers()
    assert sorted(found.values()) == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)], "nobody's row is left out"


def test_a_copy_lies_in_the_order_of_people(owner: Owner) -> None:
    """Rows of one person are read from one place: on DuckDB ten times as fast as from everywhere."""
    rows = ", ".join(f"({i}, {1 + i * 7919 % 3}, 0, 'w')" for i in range(10, 3000))
    owner.execute(f"INSERT INTO visit VALUES {rows}")
    owner.prepare("visit")
    place = "rowid" if owner.url.startswith("duckdb") else "ctid"
    lies = owner.execute(f"SELECT owner, n FROM copy ORDER BY {place}")
    assert lies == sorted(lies)
    assert lies != owner.execute("SELECT c.owner, c.n FROM copy c JOIN visit v ON v.id = c.id ORDER BY v.id")


def test_by_a_hash_wherever_rows_lie(owner: Owner) -> None:
    owner.prepare("visit")
    first = owner.numbers()
    owner.execute("CREATE TABLE again AS SELECT * FROM visit ORDER BY id DESC")
    owner.execute("DELETE FROM visit")
    owner.execute("INSERT INTO visit SELECT * FROM again ORDER BY word DESC")
    owner.prepare("visit", anew=True)
    assert owner.numbers() == first


def test_the_policy_takes_the_copy(owner: Owner, tmp_path: Path) -> None:
    for table in ("visit", "item"):
        owner.prepare(table, f"{table}_copy")
    text = POLICY.replace("DATABASE", owner.url) + (
        '[tables.visit_copy]\nunit = { column = "owner", references = "person.id" }\nrow_number = "n"\nmax_rows = 2\n'
        '[tables.item_copy]\nunit = { column = "owner", references = "person.id" }\nrow_number = "n"\nmax_rows = 2\n'
    )
    backend = open_backend(owner.url)
    with backend.snapshot() as snapshot:
        catalog = build_catalog(parse_policy(text, tmp_path / "laws.toml"), snapshot.schema())
    backend.close_idle()
    for name in ("visit_copy", "item_copy"):
        unit = catalog.tables[name].unit
        assert unit is not None
        assert unit.row_number == RowNumber("n", 2)


def test_a_persons_own_key_is_copied_in(owner: Owner) -> None:
    owner.prepare("item")
    assert {key: one for key, (one, _) in owner.numbers("no").items()} == {1: 1, 2: 1, 3: 1, 4: 2}


def test_a_refresh_by_steps(owner: Owner) -> None:
    """New rows get the next numbers, deletions leave holes, other contents keep theirs, another's row is put in anew."""
    owner.prepare("visit")
    before = owner.numbers()
    second = next(key for key, found in before.items() if found == (1, 2))
    last = next(key for key, found in before.items() if found == (1, 3))
    rest = next(key for key, found in before.items() if found == (1, 1))
    owner.execute(f"DELETE FROM visit WHERE id = {second}")
    owner.execute(f"UPDATE visit SET owner = 2 WHERE id = {last}")
    owner.execute(f"UPDATE visit SET g = 77 WHERE id = {rest}")
    owner.execute("INSERT INTO visit VALUES (10, 1, 5, 'x'), (11, 3, 5, 'y')")
    assert owner.prepare("visit") == Prepared(6, 3, 2, True, 1)
    assert owner.numbers() == {rest: (1, 1), 4: (2, 1), 5: (3, 1), last: (2, 2), 10: (1, 4), 11: (3, 2)}
    assert owner.execute(f"SELECT g FROM copy WHERE id = {rest}") == [(77,)]
    assert owner.prepare("visit") == Prepared(6, 0, 0, True), "and again it changes nothing"
    owner.prepare("visit", anew=True)
    assert sorted(owner.numbers().values()) == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]


Rows = dict[int, tuple[int | None, int]]
"""By key: whose a row is, and what is in it."""


def histories(owner: Owner, seed: int) -> Iterator[None]:
    """Number `visit` in `copy` and `other`, which is without the first person, in `copy_other`, again and again.

    Rows come, go, change, are somebody else's, and lie anywhere; now and then all are numbered anew.
    """
    draw, rows, last = random.Random(seed), Rows(), 0

    def whose() -> int | None:
        return draw.choice([1, 1, 1, 2, 2, 3, None])

    for step in range(5):
        for key in draw.sample(sorted(rows), len(rows) // 3):
            del rows[key]
        for key in draw.sample(sorted(rows), len(rows) // 3):
            rows[key] = whose(), draw.randrange(9)
        for _ in range(draw.randrange(12)):
            last += 1
            rows[last] = whose(), draw.randrange(9)
        put_rows(owner, "visit", rows, draw)
        put_rows(owner, "other", {key: row for key, row in rows.items() if row[0] != 1}, draw)
        is_anew = step > 0 and draw.random() < 0.2
        for table, target in ("visit", "copy"), ("other", "copy_other"):
            owner.prepare(table, target, anew=is_anew)
        yield


def put_rows(owner: Owner, table: str, rows: Rows, draw: random.Random) -> None:
    owner.execute(f"DELETE FROM {table}")
    values = [f"({key}, {'NULL' if one is None else one}, {g}, 'w')" for key, (one, g) in rows.items()]
    draw.shuffle(values)
    if values:
        owner.execute(f"INSERT INTO {table} VALUES {', '.join(values)}")


@pytest.mark.parametrize("seed", range(3))
def test_nobody_moves_anothers_numbers(owner: Owner, seed: int) -> None:
    """The copies of two neighbouring tables are neighbours, whatever became of these between."""
    for _ in histories(owner, seed):
        others = {key: found for key, found in owner.numbers().items() if found[0] != 1}
        assert owner.numbers(table="copy_other") == others
        assert len({*others.values()}) == len(others)


def test_mutant_go_on_after_anybodys_last_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(
        monkeypatch, prepared_rows._by_steps,
        ("LEFT JOIN dpsql_last AS b ON {_same(unit, 'b', 'r')}", "CROSS JOIN (SELECT MAX(last) AS last FROM dpsql_last) AS b"),
    )  # fmt: skip
    path = tmp_path / "data.duckdb"
    made = Owner(f"duckdb:{path}", tmp_path, on_duckdb(path))
    made.execute(SCHEMA)
    with pytest.raises(AssertionError):
        test_nobody_moves_anothers_numbers(made, 0)


def test_a_row_whose_way_leads_elsewhere_is_put_in_anew(owner: Owner) -> None:
    owner.prepare("item")
    owner.execute("UPDATE visit SET owner = 3 WHERE id = 1")
    assert owner.prepare("item") == Prepared(4, 2, 2, True)
    assert {key: one for key, (one, _) in owner.numbers("no").items()} == {1: 3, 2: 3, 3: 1, 4: 2}


@pytest.mark.parametrize(
    ("before", "table", "target", "said"),
    [
        ("CREATE TABLE copy (owner INTEGER, n INTEGER)", "visit", "copy", "no copy with numbers"),
        (
            "CREATE TABLE copy (owner INTEGER, n INTEGER, PRIMARY KEY (n))",
            "visit",
            "copy",
            "no copy with numbers",
        ),
        ("ALTER TABLE visit ADD COLUMN n INTEGER", "visit", "copy", 'a column "n" already'),
        ("SELECT 1", "person", "copy", "a person has one row here"),
        ("SELECT 1", "item", None, "own key does not stand in its rows"),
        ("SELECT 1", "visit", "visit", 'a copy is another table than "visit"'),
        ("SELECT 1", "visit", "a.b.c", "a copy is another table"),
    ],
)
def test_what_is_refused(owner: Owner, before: str, table: str, target: str | None, said: str) -> None:
    owner.execute(before)
    with pytest.raises(PolicyError, match=said):
        owner.prepare(table, target)


NAMED = (
    'CREATE TABLE "Human" ("Id" TEXT NOT NULL, "No" INTEGER NOT NULL, PRIMARY KEY ("Id", "No")); '
    'CREATE TABLE "My Visit" (y INTEGER NOT NULL, "V" CHAR(3) NOT NULL, "n""o" INTEGER, "Own er" TEXT, PRIMARY KEY ("V", y)); '
    'CREATE TABLE "select" (no INTEGER PRIMARY KEY, "y" INTEGER, "vv" CHAR(3), "Id" INTEGER); '
    """INSERT INTO "Human" VALUES ('a', 1), ('b', 1); INSERT INTO "My Visit" VALUES (1, 'x', 1, 'a'), (2, 'x', 1, 'b'); """
    """INSERT INTO "select" VALUES (1, 1, 'x', 0), (2, 1, 'x', 0), (3, 2, 'x', 0), (4, NULL, 'x', 0)"""
)


def test_names_and_keys_of_every_kind(owner: Owner, tmp_path: Path) -> None:
    """Quoted and mixed names, keys of several columns in any order, a padded text, a name that both tables have."""
    owner.execute(NAMED)
    text = POLICY[: POLICY.index("[tables.person]")] + (
        '[tables.Human]\nunit = ["Id", "No"]\n'
        "[tables.'My Visit']\nunit = { column = ['n\"o', 'Own er'], references = ['Human.No', 'Human.Id'] }\nmax_rows = 3\n"
        "[tables.select]\nunit = { column = ['vv', 'y'], references = ['My Visit.V', 'My Visit.y'] }\nmax_rows = 3\n"
    )
    owner.policy = parse_policy(text.replace("DATABASE", owner.url), tmp_path / "laws.toml")
    assert owner.prepare("My Visit", "My Copy") == Prepared(2, 2, 0, False)
    assert owner.prepare("select", "Copy") == Prepared(3, 3, 0, False)
    found = 'SELECT no, "Own er", "n""o", n FROM "Copy" ORDER BY "Own er", n'
    assert [(*rest, n) for _, *rest, n in owner.execute(found)] == [("a", 1, 1), ("a", 1, 2), ("b", 1, 1)]
    owner.execute("""UPDATE "My Visit" SET "Own er" = 'b' WHERE y = 1""")
    owner.execute("""INSERT INTO "select" VALUES (9, 2, 'x', 5)""")
    assert owner.prepare("select", "Copy") == Prepared(4, 3, 2, True)
    assert owner.prepare("select", "Copy") == Prepared(4, 0, 0, True)
    assert {(one, n) for _, one, _, n in owner.execute(found)} == {("b", n) for n in range(1, 5)}


def test_without_a_key_nothing_is_found_again(owner: Owner) -> None:
    owner.prepare("loose")
    assert sorted(owner.execute("SELECT owner, n FROM copy")) == [(1, 1), (1, 2), (2, 1)]
    with pytest.raises(PolicyError, match="has no key by which its rows are found again"):
        owner.prepare("loose")
    assert owner.prepare("loose", anew=True) == Prepared(3, 3, 0, True)


def test_other_columns_are_told(owner: Owner) -> None:
    owner.prepare("visit")
    owner.execute("ALTER TABLE visit ADD COLUMN more INTEGER")
    with pytest.raises(PolicyError, match="are no longer those of its copy"):
        owner.prepare("visit")
    assert owner.prepare("visit", anew=True) == Prepared(5, 5, 0, True)


def test_another_table_is_not_dropped(owner: Owner) -> None:
    """One with the key of a copy and columns of its own, numbered anew too."""
    owner.execute("CREATE TABLE copy (owner INTEGER, n INTEGER, secret TEXT, PRIMARY KEY (owner, n))")
    owner.execute("INSERT INTO copy VALUES (1, 1, 'kept')")
    for anew in (False, True):
        with pytest.raises(PolicyError, match="no copy with numbers"):
            owner.prepare("visit", anew=anew)
    assert owner.execute("SELECT secret FROM copy") == [("kept",)]


def tales(url: str, folder: Path) -> Policy:
    text = POLICY[: POLICY.index("[tables.person]")] + '[tables.tale]\nunit = "teller"\nmax_rows = 1\n'
    return parse_policy(text.replace("DATABASE", url), folder / "laws.toml")


def test_two_spellings_of_one_person_are_not_copied(owner: Owner, tmp_path: Path) -> None:
    """A copy would have them apart, each with R rows, where they are one person's in the table."""
    if not owner.loose:
        pytest.skip("this server has no such collation")
    if owner.loose == "loose":
        owner.execute(
            "CREATE COLLATION loose (PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false)"
        )
    owner.execute(f"CREATE TABLE tale (id INTEGER PRIMARY KEY, teller TEXT COLLATE {owner.loose} NOT NULL)")
    owner.execute("INSERT INTO tale VALUES (1, 'Bob'), (2, 'BOB'), (3, 'bob'), (4, 'bOb')")
    owner.policy = tales(owner.url, tmp_path)
    with pytest.raises(PolicyError, match='"teller" has a collation'):
        owner.prepare("tale")


def test_mutant_copy_what_check_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the copy lets one person of the table have several rows of number 1, where R is 1."""
    plant(monkeypatch, prepared_rows._require_one_owner, ("build_unit(", "print if True else build_unit("))
    path = tmp_path / "data.duckdb"
    made = Owner(f"duckdb:{path}", tmp_path, on_duckdb(path))
    made.execute("CREATE TABLE tale (id INTEGER PRIMARY KEY, teller TEXT COLLATE NOCASE NOT NULL)")
    made.execute("INSERT INTO tale VALUES (1, 'Bob'), (2, 'BOB'), (3, 'bob'), (4, 'bOb')")
    made.policy = tales(made.url, tmp_path)
    made.prepare("tale")
    assert made.execute("SELECT COUNT(*) FROM tale WHERE teller = 'BOB'") == [(4,)]
    made.execute("INSERT INTO copy (id, teller, n) SELECT id, teller, 1 FROM copy WHERE n > 1")
    assert made.execute("SELECT COUNT(*) FROM copy WHERE n BETWEEN 1 AND 1") == [(4,)]


def test_a_row_that_may_lead_to_several_people_is_not_copied(owner: Owner) -> None:
    owner.execute("DROP TABLE visit")
    owner.execute("CREATE TABLE visit (id INTEGER NOT NULL, owner INTEGER)")
    owner.execute("INSERT INTO visit VALUES (1, 1), (1, 2)")
    with pytest.raises(PolicyError, match='does not enforce that "id" of "visit" is unique'):
        owner.prepare("item")


def test_a_failure_changes_nothing(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.prepare("visit")
    before = owner.numbers()
    owner.execute("DELETE FROM visit WHERE id = 1")
    monkeypatch.setattr(prepared_rows, "_number", lambda *_: "1 / nothing")
    for anew in (False, True):
        with pytest.raises(PolicyError, match="and nothing was changed"):
            owner.prepare("visit", anew=anew)
        assert owner.numbers() == before


def test_a_kill_leaves_nothing_half_done(owner: Owner, tmp_path: Path) -> None:
    """The process dies after its last statement, before the transaction ends."""
    owner.prepare("visit")
    before = owner.numbers()
    owner.execute("DELETE FROM visit WHERE id = 1")
    policy = tmp_path / "kill.toml"
    policy.write_text(POLICY.replace("DATABASE", owner.url))
    script = f"""
        import os, signal
        from dpsql.backends import open_backend, prepared_rows
        from dpsql.policy import load_policy
        from pathlib import Path
        policy = load_policy(Path({str(policy)!r}))
        backend = open_backend({owner.url!r})
        with backend.snapshot() as snapshot:
            live = snapshot.schema()
        backend.close_idle()
        count = prepared_rows._count
        def dies(run, numbering, seen=[]):
            seen.append(count(run, numbering))
            if len(seen) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return seen[-1]
        prepared_rows._count = dies
        found = prepared_rows.numbering_of("visit", policy, policy.tables["visit"], live, "copy", "n")
        prepared_rows.prepare({owner.url!r}, found, live)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, check=False, text=True
    )
    assert done.returncode == -9, done.stderr
    assert owner.numbers() == before
    owner.prepare("visit")
    assert 1 not in owner.numbers()


# --- rows with a time ---------------------------------------------------------------------------------------------


TIMED = (
    POLICY.replace(
        "[defaults]", '[privacy.time]\nperiod = "PERIOD"\nzone = "ZONE"\nsince = 2020-01-01\n[defaults]'
    )
    .replace("max_rows = 3\ncolumns", 'max_rows = 3\ntime = "seen"\ncolumns')
    .replace('"visit.id" }\nmax_rows = 3', '"visit.id" }\nmax_rows = 3\ntime = "visit.seen"')
    .replace("[tables.other]\n", '[tables.other]\ntime = "seen"\n')
)
SEEN = "ALTER TABLE visit ADD COLUMN seen TIMESTAMP; ALTER TABLE other ADD COLUMN seen TIMESTAMP; "
UPDATED = (
    "UPDATE visit SET seen = CASE id WHEN 1 THEN TIMESTAMP '2026-01-31 23:59:59.999999' WHEN 2 THEN TIMESTAMP '2026-02-01' "
    "WHEN 3 THEN TIMESTAMP '2026-02-03' WHEN 4 THEN NULL ELSE TIMESTAMP '2026-02-28 12:00:00' END"
)


def timed(
    owner: Owner, folder: Path, period: str = "month", zone: str = "UTC", kind: str = "TIMESTAMP"
) -> Owner:
    """Give the visits of an owner's database a time."""
    owner.execute(SEEN.replace("TIMESTAMP", kind))
    text = TIMED.replace("PERIOD", period).replace("ZONE", zone).replace("DATABASE", owner.url)
    owner.policy = parse_policy(text, folder / "laws.toml")
    return owner


def of_months(owner: Owner, key: str = "id", table: str = "copy") -> dict[int, tuple[int, str, int]]:
    """Return whose each row is, the first day of its period, and its number there."""
    rows = owner.execute(f"SELECT {key}, owner, CAST(n_month AS VARCHAR), n FROM {table}")
    return {one: (*rest,) for one, *rest in rows}  # type: ignore[misc]


def test_rows_with_a_time_are_numbered_within_their_month(owner: Owner, tmp_path: Path) -> None:
    timed(owner, tmp_path).execute(UPDATED)
    assert owner.prepare("visit") == Prepared(5, 5, 0, False)
    found = of_months(owner)
    january, february = "2026-01-01", "2026-02-01"
    assert (found[1], found[4], found[5]) == ((1, january, 1), (2, "0001-01-01", 1), (3, february, 1))
    assert sorted((found[2], found[3])) == [(1, february, 1), (1, february, 2)]


def test_the_time_is_copied_in_with_the_persons_key(owner: Owner, tmp_path: Path) -> None:
    """It stood in the visit, and the copy of an item is on no way there."""
    timed(owner, tmp_path).execute(UPDATED)
    owner.prepare("item", "item_copy")
    owner.prepare("visit", "visit_copy")
    assert {key: (one, day) for key, (one, day, _) in of_months(owner, "no", "item_copy").items()} == {
        1: (1, "2026-01-01"), 2: (1, "2026-01-01"), 3: (1, "2026-02-01"), 4: (2, "0001-01-01"),
    }  # fmt: skip
    taken = "".join(
        f'[tables.{name}]\nunit = {{ column = "owner", references = "person.id" }}\ntime = "seen"\n'
        'row_number = ["n_month", "n"]\nmax_rows = 2\n'
        for name in ("visit_copy", "item_copy")
    )
    text = TIMED.replace("PERIOD", "month").replace("ZONE", "UTC").replace("DATABASE", owner.url)
    policy = parse_policy(text + taken, tmp_path / "laws.toml")
    backend = open_backend(owner.url)
    with backend.snapshot() as snapshot:
        live = snapshot.schema()
    backend.close_idle()
    assert build_catalog(policy, live).tables["item_copy"].unit.row_number == RowNumber("n", 2, "n_month")  # type: ignore[union-attr]
    assert not check(policy, live).problems


def test_in_a_month_to_which_no_row_came_numbers_are_the_same_again(owner: Owner, tmp_path: Path) -> None:
    timed(owner, tmp_path)
    months = ", ".join(f"({100 + i}, 1, 0, 'm', TIMESTAMP '2026-0{1 + i % 3}-05')" for i in range(30))
    owner.execute(f"INSERT INTO visit VALUES {months}")
    owner.prepare("visit")
    before = of_months(owner)
    owner.execute("DELETE FROM visit WHERE id = 102")  # of March
    owner.execute("INSERT INTO visit VALUES (200, 1, 0, 'm', TIMESTAMP '2026-03-06')")
    owner.prepare("visit")
    after = of_months(owner)
    assert [key for key, found in before.items() if found[1] < "2026-03-01" and after[key] != found] == []
    march = sorted(found[2] for found in after.values() if found[1] == "2026-03-01")
    assert march == list(range(1, 11)), "all of its rows are numbered anew"


MOMENTS = [
    datetime(2026, 1, 1), datetime(2026, 3, 29, 0, 59, 59), datetime(2026, 3, 29, 1), datetime(2026, 10, 25, 1),
    datetime(2025, 12, 31, 18, 30), datetime(2026, 2, 28, 23, 59, 59, 999999), datetime(2024, 2, 29, 12),
    datetime(2026, 6, 7, 22), datetime(1969, 12, 31, 23, 30),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"])
@pytest.mark.parametrize(
    ("period", "zone"),
    [("month", "UTC"), ("week", "Europe/Berlin"), ("day", "America/New_York"), ("year", "Asia/Kolkata")],
)
def test_first_days_are_those_of_the_policys_calendar(
    owner: Owner, tmp_path: Path, period: str, zone: str, kind: str
) -> None:
    """As `policy/periods.py` has them, by which statements are printed."""
    timed(owner, tmp_path, period, zone, kind)
    owner.execute("DELETE FROM visit")
    suffix = "+00" if "ZONE" in kind else ""
    shown = ", ".join(
        f"({i}, 1, 0, 'm', CAST('{moment}{suffix}' AS {kind}))" for i, moment in enumerate(MOMENTS)
    )
    owner.execute(f"INSERT INTO visit VALUES {shown}")
    owner.prepare("visit")
    found = dict(owner.execute(f"SELECT id, CAST(n_{period} AS VARCHAR) FROM copy"))
    for i, moment in enumerate(MOMENTS):
        local = moment.replace(tzinfo=UTC).astimezone(ZoneInfo("UTC" if kind == "DATE" else zone))
        assert found[i] == start_of(Period(period), local.date()).isoformat(), moment


@pytest.mark.parametrize("seed", range(2))
def test_what_goes_of_a_month_moves_no_other_number(owner: Owner, tmp_path: Path, seed: int) -> None:
    """`other` lacks the first person's rows of February, and so does its copy, whatever came, went and was corrected."""
    timed(owner, tmp_path)
    draw, rows = random.Random(seed), dict[int, tuple[int, int]]()
    for step in range(4):
        rows = {key: row for key, row in rows.items() if draw.random() > 0.2}
        for key in draw.sample(sorted(rows), len(rows) // 3):
            rows[key] = rows[key][0], draw.choice((1, 2, 3))
        rows |= {100 * step + i: (draw.choice((1, 1, 2, 3)), draw.choice((1, 2, 2, 3))) for i in range(12)}
        for table in ("visit", "other"):
            kept = {key: row for key, row in rows.items() if table == "visit" or row != (1, 2)}
            values = [
                f"({key}, {one}, 0, 'm', TIMESTAMP '2026-0{month}-05')" for key, (one, month) in kept.items()
            ]
            draw.shuffle(values)
            owner.execute(f"DELETE FROM {table}; INSERT INTO {table} VALUES {', '.join(values)}")
            owner.prepare(table, f"copy_{table}")
        whole = of_months(owner, table="copy_visit")
        left = {key: found for key, found in whole.items() if found[:2] != (1, "2026-02-01")}
        assert left == of_months(owner, table="copy_other")
        assert len(left) < len(whole)


def test_a_copy_without_months_is_not_one_of_rows_with_a_time(owner: Owner, tmp_path: Path) -> None:
    owner.prepare("visit")
    timed(owner, tmp_path)
    with pytest.raises(PolicyError, match="no copy with numbers"):
        owner.prepare("visit")


@pytest.mark.parametrize("column", ["n", "n_month"])
def test_a_column_of_the_numbers_name_is_told(owner: Owner, tmp_path: Path, column: str) -> None:
    timed(owner, tmp_path).execute(f"ALTER TABLE visit ADD COLUMN {column} DATE")
    with pytest.raises(PolicyError, match=f'the table has a column "{column}" already'):
        owner.prepare("visit")


# --- on Postgres alone, and not on DuckDB ----------------------------------------------------------------------


@pytest.fixture
def on_postgres(postgres: PostgresServer, tmp_path: Path) -> Iterator[Owner]:
    name = postgres.create_database()

    def execute(sql: str) -> list[tuple[Any, ...]]:
        with postgres.admin(name) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    execute(SCHEMA)
    yield Owner(postgres.url(name), tmp_path, execute)
    postgres.drop_database(name)


def test_in_place_on_postgres(on_postgres: Owner, tmp_path: Path) -> None:
    made, execute = on_postgres, on_postgres.execute
    execute("DELETE FROM visit WHERE owner IS NULL")
    execute("ALTER TABLE visit ALTER COLUMN owner SET NOT NULL")
    assert made.prepare("visit", None) == Prepared(5, 5, 0, False)
    first = made.numbers(table="visit")
    assert sorted(first.values()) == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)]
    execute("DELETE FROM visit WHERE (owner, n) = (1, 1)")
    assert made.prepare("visit", None) == Prepared(4, 4, 0, True)
    assert sorted(made.numbers(table="visit").values()) == [(1, 1), (1, 2), (2, 1), (3, 1)]
    text = POLICY.replace("DATABASE", made.url).replace(
        "max_rows = 3\ncolumns", 'max_rows = 3\nrow_number = "n"\ncolumns'
    )
    backend = PostgresBackend(made.url)
    with backend.snapshot() as snapshot:
        unit = (
            build_catalog(parse_policy(text, tmp_path / "laws.toml"), snapshot.schema()).tables["visit"].unit
        )
    backend.close_idle()
    assert unit is not None
    assert unit.row_number == RowNumber("n", 3)


def test_rows_with_a_time_in_place(owner: Owner, tmp_path: Path) -> None:
    made = timed(owner, tmp_path)
    made.execute(UPDATED)
    made.execute("DELETE FROM visit WHERE owner IS NULL; ALTER TABLE visit ALTER COLUMN owner SET NOT NULL")
    for was_there in (False, True):
        assert made.prepare("visit", None) == Prepared(5, 5, 0, was_there)
        found = of_months(made, table="visit")
        assert found[1] == (1, "2026-01-01", 1)
        assert found[4] == (2, "0001-01-01", 1)
        assert sorted((found[2], found[3])) == [(1, "2026-02-01", 1), (1, "2026-02-01", 2)]
    text = TIMED.replace("PERIOD", "month").replace("ZONE", "UTC").replace("DATABASE", made.url)
    text = text.replace('time = "seen"\ncolumns', 'time = "seen"\nrow_number = ["n_month", "n"]\ncolumns')
    backend = open_backend(made.url)
    with backend.snapshot() as snapshot:
        assert not check(parse_policy(text, tmp_path / "laws.toml"), snapshot.schema()).problems
    backend.close_idle()


def test_rows_with_a_time_that_no_key_finds_again_in_place(owner: Owner, tmp_path: Path) -> None:
    """They are told apart by all that is in them but what they get."""
    made = timed(owner, tmp_path)
    made.execute(
        "ALTER TABLE loose ADD COLUMN seen TIMESTAMP; UPDATE loose SET seen = TIMESTAMP '2026-02-03'"
    )
    tables = made.policy.tables | {"loose": replace(made.policy.tables["loose"], time=("loose", "seen"))}
    made.policy = replace(made.policy, tables=tables)
    for was_there in (False, True):
        assert made.prepare("loose", None) == Prepared(3, 3, 0, was_there)
        rows = made.execute("SELECT owner, CAST(n_month AS VARCHAR), n FROM loose ORDER BY 1, 2, 3")
        assert rows == [(1, "2026-02-01", 1), (1, "2026-02-01", 2), (2, "2026-02-01", 1)]


@pytest.mark.parametrize("column", ["n", "n_month"])
def test_in_place_no_column_of_dates_is_overwritten(owner: Owner, tmp_path: Path, column: str) -> None:
    made = timed(owner, tmp_path)
    made.execute(f"ALTER TABLE visit ADD COLUMN {column} DATE; UPDATE visit SET {column} = DATE '2026-01-09'")
    with pytest.raises(PolicyError, match=f'a column "{column}" already, and no UNIQUE constraint'):
        made.prepare("visit", None)
    assert {str(one) for (one,) in made.execute(f"SELECT {column} FROM visit")} == {"2026-01-09"}


def test_in_place_no_column_of_the_tables_own_is_overwritten(on_postgres: Owner) -> None:
    on_postgres.execute("ALTER TABLE visit ADD COLUMN n INTEGER; UPDATE visit SET n = 1000 + id")
    with pytest.raises(PolicyError, match='a column "n" already, and no UNIQUE constraint'):
        on_postgres.prepare("visit", None)
    assert on_postgres.execute("SELECT MIN(n), MAX(n) FROM visit") == [(1001, 1006)]


@pytest.mark.parametrize("target", ["copy", None])
def test_nobodys_function_runs_under_the_owners_role(on_postgres: Owner, target: str | None) -> None:
    """One of public's that fits better than the server's own would be called, and could read all rows."""
    for made in (
        "FUNCTION md5(varchar) RETURNS text LANGUAGE sql AS $$ SELECT pg_catalog.text(1 / 0) $$",
        "FUNCTION other(varchar, varchar) RETURNS boolean LANGUAGE sql AS $$ SELECT 1 / 0 = 1 $$",
        "OPERATOR <> (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = other)",
    ):
        on_postgres.execute(f"CREATE {made}")
    on_postgres.execute("DELETE FROM visit WHERE owner IS NULL")
    on_postgres.prepare("visit", target)
    if target is not None:
        on_postgres.execute("UPDATE visit SET g = 77 WHERE id = 1")
        assert on_postgres.prepare("visit", target) == Prepared(5, 0, 0, True, 1)
        assert on_postgres.execute("SELECT g FROM copy WHERE id = 1") == [(77,)]


def test_an_epoch_begins_while_nobody_reads_the_copy(on_postgres: Owner) -> None:
    """What was drawn of the rows before is stored before, and what is drawn behind it is of the rows that are new."""
    on_postgres.prepare("visit")
    on_postgres.execute("DELETE FROM visit WHERE id = 1")
    seen = []

    def advance(done: Prepared) -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            on_postgres.execute("SET lock_timeout = '50ms'; LOCK TABLE copy IN ACCESS SHARE MODE")
        seen.append(done)

    assert on_postgres.prepare("visit", advance=advance) == Prepared(4, 0, 1, True)
    assert on_postgres.prepare("visit", advance=advance) == Prepared(4, 0, 0, True)
    assert seen == [Prepared(4, 0, 1, True), Prepared(4, 0, 0, True)], "whether it finds other rows or not"


def test_what_fails_as_an_epoch_begins_leaves_the_copy_as_it_was(owner: Owner) -> None:
    owner.prepare("visit")
    before = owner.numbers()
    owner.execute("DELETE FROM visit WHERE id = 1")

    def advance(done: Prepared) -> None:
        raise LedgerError("no")

    for anew in (False, True):
        with pytest.raises(LedgerError):
            owner.prepare("visit", anew=anew, advance=advance)
        assert owner.numbers() == before


def test_rows_of_a_childs_are_not_copied(on_postgres: Owner) -> None:
    """No key of the parent covers them: an item would be of two visits."""
    on_postgres.execute("CREATE TABLE more () INHERITS (visit); INSERT INTO more VALUES (1, 2, 0, 'a')")
    with pytest.raises(PolicyError, match="has inheritance children"):
        on_postgres.prepare("item")


# --- in place on DuckDB -------------------------------------------------------------------------------------------


@pytest.fixture
def in_duckdb(tmp_path: Path) -> Owner:
    """Visits of which each column has something that a rebuilt table might lose."""
    path = tmp_path / "data.duckdb"
    made = Owner(f"duckdb:{path}", tmp_path, on_duckdb(path))
    made.execute(SCHEMA)
    made.execute("DROP TABLE item; ALTER TABLE visit RENAME TO gone")
    made.execute(
        "CREATE TABLE visit (id INTEGER PRIMARY KEY, owner INTEGER NOT NULL REFERENCES person (id), g INTEGER CHECK (g < 9), "
        "word TEXT COLLATE NOCASE DEFAULT 'w', twice INTEGER GENERATED ALWAYS AS (id * 2), UNIQUE (g, id))"
    )
    made.execute("INSERT INTO visit SELECT id, owner, g, word FROM gone WHERE owner IS NOT NULL")
    return made


def test_in_place_on_duckdb(in_duckdb: Owner) -> None:
    made, rows = in_duckdb, "SELECT * EXCLUDE (n) FROM visit ORDER BY id"
    before = made.execute("FROM visit ORDER BY id")
    ((sql,),) = made.execute("SELECT sql FROM duckdb_tables() WHERE table_name = 'visit'")
    assert made.prepare("visit", None) == Prepared(5, 5, 0, False)
    assert made.execute(rows) == before
    ((after,),) = made.execute("SELECT sql FROM duckdb_tables() WHERE table_name = 'visit'")
    assert after == sql.replace(", FOREIGN", ", n INTEGER NOT NULL, FOREIGN").replace(
        "));", '), UNIQUE("owner", n));'
    )
    assert made.execute("SELECT owner, n FROM visit") == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)]
    for wrong in (
        "9, 1, 0, 'x', 1",
        "9, 1, 0, 'x', NULL",
        "9, 8, 0, 'x', 1",
        "9, 2, 10, 'x', 7",
        "1, 2, 0, 'x', 7",
    ):
        with pytest.raises(duckdb.ConstraintException):
            made.execute(f"INSERT INTO visit (id, owner, g, word, n) VALUES ({wrong})")
    made.execute("DELETE FROM visit WHERE (owner, n) = (1, 1)")
    made.execute("INSERT INTO visit (id, owner, g, word, n) VALUES (9, 2, 0, 'x', 70)")
    made.execute("CREATE INDEX words ON visit (word)")
    assert made.prepare("visit", None) == Prepared(5, 5, 0, True)
    assert made.execute("SELECT owner, n FROM visit") == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (
            "CREATE TABLE item (no INTEGER, visit_id INTEGER REFERENCES visit (id))",
            'rows of "item" refer to the table',
        ),
        ("CREATE INDEX words ON visit (word)", 'the table has the index "words"'),
        ("ALTER TABLE visit ADD COLUMN n INTEGER", 'a column "n" already, and no UNIQUE constraint'),
    ],
)
def test_in_place_on_duckdb_is_refused(in_duckdb: Owner, before: str, said: str) -> None:
    in_duckdb.execute(before)
    rows = in_duckdb.execute("FROM visit")
    with pytest.raises(PolicyError, match=said):
        in_duckdb.prepare("visit", None)
    assert in_duckdb.execute("FROM visit") == rows


@pytest.mark.parametrize("at", [5, 7, 9])
def test_a_kill_leaves_a_table_that_is_numbered_in_place_whole(
    in_duckdb: Owner, tmp_path: Path, at: int
) -> None:
    """The process dies behind the DELETE, the INSERT or the key, none of which is there then."""
    before = in_duckdb.execute("FROM visit ORDER BY id")
    policy = tmp_path / "kill.toml"
    policy.write_text(POLICY.replace("DATABASE", in_duckdb.url))
    script = f"""
        import contextlib, os, signal
        from dpsql.backends import open_backend, prepared_rows
        from dpsql.policy import load_policy
        policy = load_policy({str(policy)!r})
        backend = open_backend({in_duckdb.url!r})
        with backend.snapshot() as snapshot:
            live = snapshot.schema()
        backend.close_idle()
        opened, seen = prepared_rows._on_duckdb, []
        @contextlib.contextmanager
        def dies(url):
            with opened(url) as run:
                def counted(sql):
                    found = run(sql)
                    seen.append(sql)
                    if len(seen) == {at}:
                        print(sql, flush=True)
                        os.kill(os.getpid(), signal.SIGKILL)
                    return found
                yield counted
        prepared_rows._on_duckdb = dies
        found = prepared_rows.numbering_of("visit", policy, policy.tables["visit"], live, None, "n")
        prepared_rows.prepare({in_duckdb.url!r}, found, live)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, check=False, text=True
    )
    assert done.returncode == -9, done.stderr
    assert done.stdout.startswith({5: "DELETE", 7: "ALTER TABLE", 9: "DROP TABLE"}[at]), done.stdout
    assert in_duckdb.execute("FROM visit ORDER BY id") == before
    assert in_duckdb.prepare("visit", None) == Prepared(5, 5, 0, False)
