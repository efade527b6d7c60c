"""L1 and L9 where the owner asserts keys of files: the claim holds in databases in which they hold, and in others
nothing is answered (soundness.md 1.30).

The world of `random_joins` in Parquet files: bookings lead over accounts to people by keys that nothing enforces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql import Session
from dpsql.backends import duckdb_files
from dpsql.backends.duckdb_backend import DuckDBSnapshot
from dpsql.budget.ledger_store import LedgerStore
from dpsql.cli.application import program
from dpsql.cli.owner import key_checks, read_live_schema
from dpsql.engine import asserted_keys
from dpsql.engine.audit import run_audit
from dpsql.engine.dataset import Dataset
from dpsql.errors import FilesChanged, PolicyError
from dpsql.policy import build_catalog, load_policy, units
from dpsql.relation.relations import all_grounds
from dpsql.tests.support.drawn_statements import growing_statements, statements
from dpsql.tests.support.length import some, tried
from dpsql.tests.support.random_files import (
    KEYED_TABLES,
    KEYS,
    SCHEMA_OF_KEYED_FILES,
    RecordedFiles,
    policies_of_keyed_files,
)
from dpsql.tests.support.random_joins import Database, databases, orphaned, replaced, units_of, without

from .measured import world
from .planting import plant
from .test_files import Files, check
from .test_neighbours_joined import FUZZ, HEAVY

Patch = pytest.MonkeyPatch

FEW = settings(FUZZ, max_examples=tried(1, 5))
"""Each writes, verifies and records eight files three times."""
LONG = settings(FUZZ, max_examples=100, derandomize=False)

# --- the claim, where the keys hold ---------------------------------------------------------------------------


def keyed(folder: Path, *, replace_one: bool) -> Iterator[Files]:
    policy, native = policies_of_keyed_files(folder, replace_one=replace_one)
    with world(folder, policy=native, schema=SCHEMA_OF_KEYED_FILES) as made:
        recorded = RecordedFiles(made.connection, policy, KEYED_TABLES)
        yield Files(made, policy, recorded)
        recorded.backend.close_idle()


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    yield from keyed(tmp_path_factory.mktemp("add"), replace_one=False)


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    yield from keyed(tmp_path_factory.mktemp("replace"), replace_one=True)


def verified(files: Files) -> bool:
    """Say whether the keys that are asserted hold in the files as they are."""
    return all(one.holds for one in asserted_keys.look_at_keys(files.policy, files.backend))


def check_less(adding: Files, sqls: list[str], database: Database) -> None:
    units = units_of(database)[:1]
    check(adding, sqls, database, [gone(database, unit) for unit in units for gone in (without, orphaned)])


def check_replaced(replacing: Files, sqls: list[str], database: Database, newcomer: Database) -> None:
    check(replacing, sqls, database, [replaced(database, unit, newcomer) for unit in units_of(database)[:1]])


SOME = st.lists(statements(), min_size=2, max_size=4)
SOME_THAT_GROW = st.lists(growing_statements(), min_size=2, max_size=4)


@FEW
@given(SOME, databases())
def test_one_unit_less(adding: Files, sqls: list[str], database: Database) -> None:
    check_less(adding, sqls, database)


@FEW
@given(SOME, databases(), databases(most=6))
def test_one_unit_replaced(replacing: Files, sqls: list[str], database: Database, newcomer: Database) -> None:
    check_replaced(replacing, sqls, database, newcomer)


@FEW
@given(SOME_THAT_GROW)
def test_what_grows_is_bounded_as_over_enforced_keys(adding: Files, sqls: list[str]) -> None:
    check(adding, sqls, HEAVY, [without(HEAVY, 1)])


@pytest.mark.long
@LONG
@given(SOME, databases())
def test_one_unit_less_at_length(adding: Files, sqls: list[str], database: Database) -> None:
    check_less(adding, sqls, database)


@pytest.mark.long
@LONG
@given(SOME, databases(), databases(most=6))
def test_one_unit_replaced_at_length(
    replacing: Files, sqls: list[str], database: Database, newcomer: Database
) -> None:
    check_replaced(replacing, sqls, database, newcomer)


@pytest.mark.long
@LONG
@given(SOME_THAT_GROW)
def test_what_grows_is_bounded_at_length(adding: Files, sqls: list[str]) -> None:
    check(adding, sqls, HEAVY, [without(HEAVY, 1)])


HOPS = [
    "SELECT COUNT(*) FROM booking",
    "SELECT city, COUNT(*), SUM(amount) FROM booking GROUP BY city",
    "SELECT a.kind, COUNT(*) FROM booking b JOIN account a ON a.no = b.account_no GROUP BY a.kind",
    "SELECT COUNT(DISTINCT a.person_id) FROM booking b JOIN account a ON a.no = b.account_no",
    "SELECT r.zone, SUM(b.n) FROM booking b JOIN region r ON r.name = b.city GROUP BY r.zone",
    "SELECT SUM(age) FROM person",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM account a WHERE a.person_id = p.id)",
]


def test_hops_over_asserted_keys_are_answered_and_tight(adding: Files) -> None:
    assert check(adding, HOPS, HEAVY, [without(HEAVY, 1), orphaned(HEAVY, 2)]) == len(HOPS)
    assert verified(adding), "a removal breaks no key"


def test_the_plans_are_those_of_enforced_keys(adding: Files) -> None:
    """But for what is said of the keys: that they are asserted is part of the catalog, and of what plans rest on."""
    with adding.backend.snapshot() as snapshot:
        live = snapshot.schema()
    catalog = build_catalog(adding.policy, live)
    native = {name: replace(table, proved=None) for name, table in adding.world.catalog.tables.items()}
    assert all(
        table.proved is None for table in catalog.tables.values()
    )  # what is asserted proves nothing (1.16)
    assert {name: replace(table, asserted=()) for name, table in catalog.tables.items()} == native
    assert {name: table.asserted for name, table in catalog.tables.items() if table.asserted} == KEYS
    unkeyed = replace(
        live,
        tables=tuple(
            replace(table, asserted=()) if table.path[1] in ("booking", "region", "rate") else table
            for table in live.tables
        ),
    )
    assert all_grounds(build_catalog(adding.policy, unkeyed)) != all_grounds(catalog)


# --- where they do not hold ------------------------------------------------------------------------------------

SHOP = """
database = "duckdb:"
[privacy]
epsilon = 10
[tables.customer]
source = "customer.parquet"
unit = "id"
key = ["id"]
[tables.orders]
source = "orders-*.parquet"
unit = "customer"
key = ["no"]
max_rows = 4
[tables.item]
source = "item.parquet"
unit = { column = "orders_no", references = "orders.no" }
max_rows = 8
columns.price = { bounds = [0, 10] }
columns.part = {}
[tables.part]
source = "part.parquet"
key = ["id", "kind"]
public = true
"""
ROWS = {
    "customer": "SELECT i::INTEGER AS id FROM range(20) AS t (i)",
    "orders-1": "SELECT i::INTEGER AS no, (i % 20)::INTEGER AS customer FROM range(40) AS t (i)",
    "item": "SELECT (i % 42)::INTEGER AS orders_no, i % 11 AS price, (i % 3)::INTEGER AS part FROM range(120) AS t (i)",
    "part": "SELECT i::INTEGER AS id, 'a' AS kind, 'p' || i AS name FROM range(3) AS t (i)",
}
BROKEN = {
    "a number twice": ("customer", f"{ROWS['customer']} UNION ALL SELECT 7"),
    "no number": ("customer", f"{ROWS['customer']} UNION ALL SELECT NULL"),
    "an order of two people": ("orders-2", "SELECT 5 AS no, 1 AS customer"),
    "an order with no number": ("orders-2", "SELECT NULL::INTEGER AS no, 1 AS customer"),
    "a part twice": ("part", f"{ROWS['part']} UNION ALL SELECT 1, 'a', 'q'"),
    "a part of no kind": ("part", f"{ROWS['part']} UNION ALL SELECT 1, NULL, 'q'"),
}
_WAY, _OWN = 'unit = { column = "orders_no", references = "orders.no" }', 'unit = "orders_no"'
ASKED = "SELECT COUNT(*), SUM(price) FROM item"
REFUSED = (
    "is not verified for the data as it is; run dpsql check --data\n"
    "HINT: it is the owner's command: it verifies the key, or says that it does not hold\n"
)


def write(folder: Path, name: str, rows: str) -> None:
    duckdb.sql(f"COPY ({rows}) TO '{folder}/{name}.parquet'")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, rows in ROWS.items():
        write(tmp_path, name, rows)
    path = tmp_path / "shop.toml"
    path.write_text(SHOP)
    return path


def run(policy: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["-P", str(policy), *words])


def done(policy: Path, *words: str) -> str:
    result = run(policy, *words)
    assert result.exit_code == 0, result.output
    return result.stdout


def spent_and_epoch(policy: Path) -> list[str]:
    return done(policy, "budget", "show").splitlines()


@pytest.mark.parametrize("how", BROKEN)
def test_what_does_not_hold_is_not_recorded(shop: Path, how: str) -> None:
    write(shop.parent, *BROKEN[how])
    made = run(shop, "budget", "create")
    assert made.exit_code == 5
    assert " is no key of " in made.stderr
    assert "nothing was changed" in made.stderr
    assert {path.suffix for path in shop.parent.iterdir()} == {".parquet", ".toml"}


@pytest.mark.parametrize("how", some([*BROKEN], 2))
def test_a_changed_version_is_refused_and_refresh_changes_nothing(shop: Path, how: str) -> None:
    done(shop, "budget", "create")
    done(shop, "query", ASKED)
    before, record = spent_and_epoch(shop), shop.with_name("shop-files.json").read_bytes()
    write(shop.parent, *BROKEN[how])
    refreshed = run(shop, "refresh")
    assert refreshed.exit_code == 5
    assert " is no key of " in refreshed.stderr
    assert spent_and_epoch(shop) == before
    assert shop.with_name("shop-files.json").read_bytes() == record


@pytest.mark.parametrize("how", some([*BROKEN][::-1], 2))
def test_a_version_that_nobody_verified_is_refused_before_the_charge(shop: Path, how: str) -> None:
    """The way round: the keys are taken out of the policy, the files recorded as they are, the keys put back."""
    done(shop, "budget", "create")
    unverified_version(shop, how)
    before = spent_and_epoch(shop)
    for sql in (ASKED, "SELECT COUNT(*) FROM orders", "SELECT * FROM part"):
        asked = run(shop, "query", sql)
        assert asked.exit_code == 5
        assert asked.stderr.endswith(REFUSED)
    looked = run(shop, "check", "--data")
    assert looked.exit_code == 5
    assert " is no key of " in looked.stdout
    again = run(shop, "query", ASKED)
    assert again.stderr == asked.stderr or again.stderr.endswith(REFUSED), (
        "that it was looked at tells nothing"
    )
    assert spent_and_epoch(shop) == before


def test_a_way_that_was_charged_is_not_taken_out(shop: Path) -> None:
    """Without the keys the items have another unit: no version is recorded under it."""
    done(shop, "budget", "create")
    done(shop, "query", ASKED)
    before = spent_and_epoch(shop)
    shop.write_text(without_keys())
    refused = run(shop, "refresh")
    assert refused.exit_code == 7
    assert 'rows of "item" were charged by' in refused.stderr
    shop.write_text(SHOP)
    assert spent_and_epoch(shop) == before


def unverified_version(shop: Path, how: str) -> None:
    write(shop.parent, *BROKEN[how])
    shop.write_text(without_keys())
    done(shop, "refresh")
    shop.write_text(SHOP)


def without_keys() -> str:
    """Return the shop's policy without a key, where items are of whom their own column names."""
    lines = [line for line in SHOP.splitlines() if not line.startswith(("key = ", "unit = { column"))]
    told = ["[tables.item]", 'unit = "orders_no"']
    return (
        "\n".join(lines)
        .replace(told[0], "\n".join(told))
        .replace("[privacy]", 'dataset = "customer@duckdb:customer.parquet"\n[privacy]')
    )


def test_a_key_that_is_asserted_later_waits_for_check(shop: Path) -> None:
    shop.write_text(SHOP.replace('key = ["id", "kind"]\n', ""))
    done(shop, "budget", "create")
    done(shop, "query", ASKED)
    shop.write_text(SHOP)
    assert run(shop, "query", "SELECT MAX(price) FROM item").stderr.endswith(REFUSED)
    assert "free: answered from stored releases" in run(shop, "query", ASKED).stderr  # it rests on no part
    assert "warning: shop.toml: tables.part.key: not verified for the data as it is" in done(shop, "check")
    assert "(id, kind) is a key of its 3 rows; recorded" in done(shop, "check", "--data")
    done(shop, "query", ASKED)
    assert "(id, kind), which you assert is a key, was verified on " in done(shop, "check")


def test_another_key_of_the_same_version_is_another_key(shop: Path) -> None:
    done(shop, "budget", "create")
    shop.write_text(SHOP.replace('key = ["id", "kind"]', 'key = ["kind"]'))
    assert run(shop, "query", ASKED).stderr.endswith(REFUSED)
    looked = run(shop, "check", "--data")
    assert looked.exit_code == 5
    assert "(kind) is no key of part: 1 of its values stands in several rows" in looked.stdout


def test_refresh_verifies_the_new_version_and_forgets_the_old_answers(shop: Path) -> None:
    done(shop, "budget", "create")
    done(shop, "query", ASKED)
    assert "free: answered from stored" in run(shop, "query", ASKED).stderr
    assert "epoch 2" in done(shop, "refresh")
    again = run(shop, "query", ASKED)
    assert again.exit_code == 0
    assert "charged epsilon" in again.stderr
    write(shop.parent, "orders-2", "SELECT 40 AS no, 1 AS customer")
    assert run(shop, "query", ASKED).exit_code == 0, "a file that is not recorded is not read"
    assert "epoch 3" in done(shop, "refresh")
    done(shop, "query", ASKED)


def test_check_says_where_there_is_nothing_to_verify(shop: Path) -> None:
    shop.write_text(
        "\n".join(line for line in SHOP.splitlines() if not line.startswith("key = ")).replace(_WAY, _OWN)
    )
    assert "no key is asserted" not in done(shop, "check")
    assert "warning: shop.toml: no key is asserted, so --data has none to verify" in done(
        shop, "check", "--data"
    )


def test_orphans_are_told_to_the_owner_alone(shop: Path) -> None:
    done(shop, "budget", "create")
    said = '4 rows lead by "orders_no" to no orders.no: nobody\'s, and never counted'
    assert said in done(shop, "check", "--data")
    assert said not in done(shop, "check")


def test_check_reads_no_row_unless_it_is_told_to(shop: Path, monkeypatch: Patch) -> None:
    done(shop, "budget", "create")

    def never(*_: object, **__: object) -> Any:
        raise AssertionError("it read rows")

    monkeypatch.setattr(DuckDBSnapshot, "run", never)
    done(shop, "check")


# --- between the check and a statement, and during one ---------------------------------------------------------


@pytest.fixture
def session(shop: Path) -> Iterator[Session]:
    done(shop, "budget", "create")
    with Session.open(shop, analyst="analyst") as opened:
        yield opened


def swap(shop: Path) -> None:
    """Put an order of two people in the place of the file that was verified, at its own time and of its size."""
    path = shop.parent / "orders-1.parquet"
    before = os.stat(path)
    write(shop.parent, "orders-1", f"{ROWS['orders-1']} UNION ALL SELECT 5, 1")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_files_that_are_replaced_between_check_and_statement(session: Session, shop: Path) -> None:
    session.execute(ASKED)
    before = session.dataset.store.spent()
    swap(shop)
    with pytest.raises(FilesChanged):
        session.execute("SELECT COUNT(*) FROM orders")
    assert session.dataset.store.spent() == before


def test_files_that_are_replaced_while_a_statement_runs(
    session: Session, shop: Path, monkeypatch: Patch
) -> None:
    run_it = DuckDBSnapshot._execute

    def late(self: DuckDBSnapshot, *asked: Any) -> None:
        run_it(self, *asked)
        swap(shop)

    monkeypatch.setattr(DuckDBSnapshot, "_execute", late)
    with pytest.raises(FilesChanged):
        session.execute(ASKED)
    assert session.dataset.store.spent().epsilon_nano, "it was charged first, and stays so"
    assert session.dataset.store.log(1)[0].state.value == "failed"


def test_files_that_are_replaced_while_they_are_verified(shop: Path, monkeypatch: Patch) -> None:
    run_it = DuckDBSnapshot._execute

    def late(self: DuckDBSnapshot, *asked: Any) -> None:
        run_it(self, *asked)
        swap(shop)

    monkeypatch.setattr(DuckDBSnapshot, "_execute", late)
    assert run(shop, "budget", "create").exit_code != 0
    assert not shop.with_name("shop-files.json").exists()


def test_files_that_are_replaced_before_they_are_verified(shop: Path, monkeypatch: Patch) -> None:
    """What is recorded is what was verified: each is asked for its version."""
    pin = duckdb_files.pin_verified

    def then_swapped(*args: Any) -> Any:
        pins = pin(*args)
        write(shop.parent, "orders-1", ROWS["orders-1"].replace("40", "41"))
        return pins

    monkeypatch.setattr(duckdb_files, "pin_verified", then_swapped)
    made = run(shop, "budget", "create")
    assert made.exit_code == 5
    assert "the files changed while they were read" in made.stderr


# --- what the policy says ----------------------------------------------------------------------------------------


def test_a_hop_over_a_key_that_nobody_asserts_says_what_to_write(shop: Path) -> None:
    shop.write_text(SHOP.replace('key = ["no"]\n', ""))
    assert (
        'tables.item.unit.references: nothing says that "no" of "orders" is unique; if it is, write key = ["no"] at '
        "that table, which dpsql check --data then verifies; or write the person's number into the rows, as unit"
    ) in run(shop, "check").stdout


def test_a_key_of_two_columns_is_no_hop_over_one_of_them(shop: Path) -> None:
    shop.write_text(SHOP.replace('key = ["no"]', 'key = ["no", "customer"]'))
    assert 'nothing says that "no" of "orders" is unique' in run(shop, "check").stdout


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("SELECT i::DOUBLE AS no, i AS customer FROM range(3) AS t (i)", '"no" is double precision, which cannot be part of a key'),
        ("SELECT i AS number, i AS customer FROM range(3) AS t (i)", 'table "orders" has no column "no"'),
    ],
)  # fmt: skip
def test_a_key_is_of_columns_that_can_be_compared(shop: Path, rows: str, message: str) -> None:
    write(shop.parent, "orders-1", rows)
    assert f"tables.orders.key: {message}" in run(shop, "check").stdout
    assert message in run(shop, "budget", "create").stderr


def test_check_explain_and_catalog_say_what_is_asserted(shop: Path) -> None:
    assert 'owned through "orders_no" by orders.no, which you assert is unique' in done(shop, "check")
    explained = done(shop, "explain", "SELECT COUNT(*) FROM item i JOIN part p ON p.id = i.part")
    assert (
        "keys that the owner asserts: part (id, kind), orders (no); verified in the files that are read"
        in explained
    )


def test_the_audit_makes_people_under_asserted_keys(shop: Path) -> None:
    policy = load_policy(shop)
    live = read_live_schema(policy.database, policy.files)
    assert run_audit(policy, live, [ASKED], runs=tried(6_000, 20_000)).has_passed


# --- the tests above have power ------------------------------------------------------------------------------------

MUTANTS: dict[str, tuple[Callable[..., Any], tuple[str, str], Callable[[Path], None]]] = {
    "a version is not compared": (
        LedgerStore.key_check,
        (
            "found.get((table, columns, version))",
            "next((one for key, one in found.items() if key[:2] == (table, columns) and one.holds), None)",
        ),
        lambda shop: test_a_version_that_nobody_verified_is_refused_before_the_charge(
            shop, "an order of two people"
        ),
    ),
    "columns are not compared": (
        LedgerStore.key_check,
        (
            "found.get((table, columns, version))",
            "next((one for key, one in found.items() if key[::2] == (table, version) and one.holds), None)",
        ),
        test_another_key_of_the_same_version_is_another_key,
    ),
    "what was found is not read": (
        asserted_keys.require_verified,
        ("found is None or not found.holds", "found is None"),
        lambda shop: test_a_version_that_nobody_verified_is_refused_before_the_charge(shop, "no number"),
    ),
    "nothing has to be verified": (
        asserted_keys.require_verified,
        ("if not table.asserted", "if True"),
        test_a_key_that_is_asserted_later_waits_for_check,
    ),
    "NULL is not looked for": (
        asserted_keys._Rows.count,
        ("THEN 1 END", "THEN NULL END"),
        lambda shop: test_what_does_not_hold_is_not_recorded(shop, "no number"),
    ),
    "NULL in one column of two is let pass": (
        asserted_keys._look,
        ('" OR ".join', '" AND ".join'),
        lambda shop: test_what_does_not_hold_is_not_recorded(shop, "a part of no kind"),
    ),
    "two rows of one value are let pass": (
        asserted_keys._look,
        ("COUNT(*) > 1", "COUNT(*) > 2"),
        lambda shop: test_what_does_not_hold_is_not_recorded(shop, "an order of two people"),
    ),
    "a hop takes any column": (
        units._require_key,
        ("if table.is_unique(*names) and all(column.not_null for column in key):", "if True:"),
        test_a_hop_over_a_key_that_nobody_asserts_says_what_to_write,
    ),
    "the epoch stays": (
        LedgerStore.advance_epoch,
        ("fetchone()[0]) + 1", "fetchone()[0])"),
        test_refresh_verifies_the_new_version_and_forgets_the_old_answers,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", some([*MUTANTS], 3))
def test_each_rule_is_needed(shop: Path, monkeypatch: Patch, name: str) -> None:
    function, piece, law = MUTANTS[name]
    plant(monkeypatch, function, piece)
    with pytest.raises((AssertionError, PolicyError)):
        law(shop)


def test_a_dataset_asks_the_ledger_for_each_statement(session: Session, monkeypatch: Patch) -> None:
    """A dataset that is open reads what the owner's command has found since."""
    session.execute(ASKED)
    store = session.dataset.store
    policy = load_policy(session.dataset.policy.path)
    (orders,) = [
        one for one in asserted_keys.look_at_keys(policy, session.dataset.backend) if one.table == "orders"
    ]
    store_of(session.dataset).record_keys([replace(one, holds=False) for one in key_checks([orders])])
    with pytest.raises(PolicyError, match="is not verified"):
        session.execute("SELECT COUNT(*) FROM orders")
    store_of(session.dataset).record_keys(key_checks([orders]))
    session.execute("SELECT COUNT(*) FROM orders")
    assert store.epoch == 1


def store_of(dataset: Dataset) -> LedgerStore:
    assert isinstance(dataset.store, LedgerStore)
    return dataset.store
