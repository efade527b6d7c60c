"""L1 and L9 on Spark, which enforces nothing: what is deduced from a key is refused where it does not hold, and no number
comes of other rows than the recorded ones (soundness.md 1.30 and 1.32).

The shop of `test_asserted_keys`, read by Spark.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dpsql import Session
from dpsql.backends import spark_tables
from dpsql.backends.pinned_files import take
from dpsql.backends.spark_backend import SparkBackend
from dpsql.backends.spark_connection import SparkConnection
from dpsql.engine.asserted_keys import look_at_keys
from dpsql.errors import EngineFailure, FilesChanged, PolicyError
from dpsql.policy import Policy, build_catalog, load_policy
from dpsql.tests.support.spark_server import SparkServer

from .planting import plant
from .test_asserted_keys import ASKED, BROKEN, REFUSED, ROWS, SHOP, done, run, write

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.spark


@pytest.fixture
def shop(spark: SparkServer, tmp_path: Path) -> Path:
    for name, rows in ROWS.items():
        write(tmp_path, name, rows)
    path = tmp_path / "shop.toml"
    text = SHOP.replace('database = "duckdb:"', f'database = "{spark.url}"')
    path.write_text(text.replace('source = "', f'source = "{tmp_path}/'))
    return path


@pytest.fixture
def session(shop: Path) -> Iterator[Session]:
    done(shop, "budget", "create")
    with Session.open(shop, analyst="analyst") as opened:
        yield opened


def as_they_are(policy: Policy) -> SparkBackend:
    return SparkBackend.of(policy.database, policy.read_from, policy.files, is_recorded=False)


def held(shop: Path) -> bool:
    policy = load_policy(shop)
    backend = as_they_are(policy)
    found = look_at_keys(policy, backend)
    backend.close_idle()
    assert {one.table for one in found} == {"customer", "orders", "part"}
    return all(one.holds for one in found)


def test_what_does_not_hold_is_found(shop: Path) -> None:
    assert held(shop)
    for name, broken in BROKEN.items():
        write(shop.parent, *broken)
        assert not held(shop), name
        table = broken[0]
        if table in ROWS:
            write(shop.parent, table, ROWS[table])
        else:
            (shop.parent / f"{table}.parquet").unlink()
    assert held(shop)


def test_what_nobody_verified_answers_nothing(shop: Path) -> None:
    """Recorded without the commands that verify: the ledger has nothing of this version."""
    done(shop, "budget", "create")
    write(shop.parent, "orders-1", f"{ROWS['orders-1']} UNION ALL SELECT 5, 1")
    policy = load_policy(shop)
    assert policy.files is not None
    take(policy.database, policy.files, policy.source).write()
    asked = run(shop, "query", ASKED)
    assert asked.exit_code == 5
    assert asked.stderr.endswith(REFUSED)


def test_files_that_are_replaced_while_a_statement_runs(
    session: Session, shop: Path, monkeypatch: Patch
) -> None:
    stream = SparkConnection.stream

    def late(self: SparkConnection, sql: str, arguments: Mapping[str, object]) -> Iterator[pa.RecordBatch]:
        path = shop.parent / "orders-1.parquet"
        yield from stream(self, sql, arguments)
        os.utime(path, ns=(1, 10**9))

    monkeypatch.setattr(SparkConnection, "stream", late)
    with pytest.raises(FilesChanged):
        session.execute(ASKED)
    assert session.dataset.store.spent().epsilon_nano, "it was charged first, and stays so"
    assert session.dataset.store.log(1)[0].state.value == "failed"


def test_files_that_are_replaced_between_two_statements(
    session: Session, shop: Path, monkeypatch: Patch
) -> None:
    """The look that followed the first is the one before the second, which is charged; what follows is refused."""
    monkeypatch.setattr(spark_tables, "_FRESH_SECONDS", 3600)
    session.execute(ASKED)
    os.utime(shop.parent / "orders-1.parquet", ns=(1, 10**9))
    spent = [session.dataset.store.spent().epsilon_nano]
    for least in range(3):
        with pytest.raises(FilesChanged):
            session.execute(f"SELECT COUNT(*) FROM item WHERE price > {least}")
        spent.append(session.dataset.store.spent().epsilon_nano)
    assert spent[0] < spent[1] == spent[2] == spent[3]


def test_a_look_of_long_ago_precedes_no_statement(session: Session, shop: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(spark_tables, "_FRESH_SECONDS", 0)
    session.execute(ASKED)
    os.utime(shop.parent / "orders-1.parquet", ns=(1, 10**9))
    spent = session.dataset.store.spent()
    with pytest.raises(FilesChanged):
        session.execute("SELECT COUNT(*) FROM item WHERE price > 3")
    assert session.dataset.store.spent() == spent


def test_a_statement_of_one_version_reads_no_other(shop: Path) -> None:
    policy = load_policy(shop)
    first = as_they_are(policy)
    with first.snapshot() as snapshot:
        (place,) = (one.place for one in snapshot.schema().tables if one.path[1] == "orders")
    first.close_idle()
    sql = f"SELECT COUNT(*) FROM `{place[0]}`"
    write(shop.parent, "orders-2", "SELECT 40 AS no, 1 AS customer")
    second = as_they_are(policy)
    with second.snapshot() as snapshot, pytest.raises(EngineFailure):
        list(snapshot.run(sql))
    second.close_idle()


def test_a_catalog_s_own_key_is_not_believed(shop: Path) -> None:
    """What the catalog says of keys is read by nothing: without an assertion a hop is refused."""
    shop.write_text(shop.read_text().replace('key = ["no"]\n', ""))
    policy = load_policy(shop)
    backend = as_they_are(policy)
    with backend.snapshot() as snapshot:
        live = snapshot.schema()
    backend.close_idle()
    assert all(not table.primary_key and not table.unique and not table.foreign_keys for table in live.tables)
    assert not any(column.not_null for table in live.tables for column in table.columns if not table.asserted)
    checked = run(shop, "check")
    assert checked.exit_code == 5
    assert 'nothing says that "no" of "orders" is unique' in checked.stdout
    with pytest.raises(PolicyError, match="nothing says that"):
        build_catalog(policy, live)


# --- the tests above have power ------------------------------------------------------------------------------------

MUTANTS: dict[str, tuple[Callable[..., Any], tuple[str, str], Callable[[Path], None]]] = {
    "what is asserted is forgotten": (
        spark_tables._live,
        ("version=version_of(one), asserted=asserted", "version=version_of(one), asserted=()"),
        test_what_does_not_hold_is_found,
    ),
    "a version is only a name": (
        spark_tables.view_name,
        ("@{pinned.version or version_of(pinned)[:12]}", ""),
        test_a_statement_of_one_version_reads_no_other,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_turns_a_test_red(shop: Path, monkeypatch: Patch, name: str) -> None:
    function, piece, law = MUTANTS[name]
    plant(monkeypatch, function, piece)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        law(shop)


LOOKS: dict[str, tuple[Callable[..., Any], tuple[str, str], Callable[..., None]]] = {
    "a file that is there is taken for the recorded one": (
        spark_tables.OpenTables.check,
        ("found.get(one.path) != one", "one.path not in found"),
        test_files_that_are_replaced_while_a_statement_runs,
    ),
    "a table that is read is not looked at": (
        spark_tables.OpenTables.read_by,
        ("if _quoted(view) in sql", "if f'FROM {_quoted(view)}' in sql"),
        test_files_that_are_replaced_while_a_statement_runs,
    ),
    "a look is good for ever": (
        spark_tables.OpenTables.unseen,
        ("if self.seen.get(name, since) <= since", "if name not in self.seen"),
        test_a_look_of_long_ago_precedes_no_statement,
    ),
    "a look is good though another one found a change": (
        spark_tables.OpenTables._changed,
        ("self.seen.clear()", "pass"),
        test_files_that_are_replaced_between_two_statements,
    ),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_that_is_left_out_turns_a_test_red(
    session: Session, shop: Path, monkeypatch: Patch, name: str
) -> None:
    function, piece, law = LOOKS[name]
    plant(monkeypatch, function, piece)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        law(session, shop, monkeypatch)
