"""L1 and L9 for numbered rows of Parquet files: what an engine enforces of a table was found to hold in these very files
(soundness.md 1.39, 1.30). R is 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.backends.duckdb_files import DuckDBFiles
from dpsql.budget import KeyCheck
from dpsql.cli.application import program
from dpsql.cli.owner import key_checks
from dpsql.engine.asserted_keys import look_at_keys
from dpsql.errors import PolicyError
from dpsql.policy import Policy, build_catalog, load_policy, parse_policy, units
from dpsql.policy.live_schema import LiveSchema
from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against

from .measured import World, world
from .planting import plant
from .test_numbered import (
    BY_G,
    BY_NUMBER,
    BY_WEIGHT,
    COUNT,
    POLICY,
    SCHEMA,
    People,
    check,
    heavy,
    refreshed,
)  # fmt: skip
from .test_numbered import put as put_rows

Patch = pytest.MonkeyPatch

TABLES = ("person", "visit", "wallet", "kind", "tag")
KEYS = {"person": ["id"], "visit": ["owner", "n"], "wallet": ["owner"], "kind": ["no"]}
LOOSE = SCHEMA.replace(", PRIMARY KEY (owner, n)", "").replace(" PRIMARY KEY", "").replace(" NOT NULL", "")
LOOSE = LOOSE.replace(" UNIQUE", "")
ASKED = "SELECT g, COUNT(*), SUM(minutes) FROM visit GROUP BY g"


def policy_text(keys: dict[str, list[str]] = KEYS) -> str:
    text = POLICY.replace("duckdb:laws.db", "duckdb:")
    for name in TABLES:
        listed = ", ".join(f'"{one}"' for one in keys.get(name, ()))
        key = f"key = [{listed}]\n" if listed else ""
        text = text.replace(f"[tables.{name}]\n", f'[tables.{name}]\nsource = "{name}-*.parquet"\n{key}')
    return text


def opened(folder: Path, schema: str = LOOSE, keys: dict[str, list[str]] = KEYS) -> Iterator[World]:
    policy = parse_policy(policy_text(keys), folder / "laws.toml")
    with world(folder, policy=policy, schema=schema, tables=TABLES) as made:
        yield made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    yield from opened(tmp_path_factory.mktemp("numbered"))


def verdict(made: World, sql: str, *, is_checked: bool = True) -> str:
    """The rule by which a statement is not verified, "" where it is; keys are believed where they were checked."""
    found = {(one.table, one.columns): one for one in key_checks(look_at_keys(made.policy, made.backend))}

    def check_of(table: str, columns: tuple[str, ...], version: str) -> KeyCheck | None:
        return found.get((table, columns)) if is_checked else None

    with made.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, made.policy, check_of)
    return rule_against(certificate_of(made.plan(sql).releases, facts))


def holds(made: World) -> bool:
    """Say whether what is asserted holds in the files: else nothing is answered of them."""
    return all(one.holds for one in look_at_keys(made.policy, made.backend))


@pytest.mark.parametrize("sql", BY_NUMBER)
def test_rows_are_read_up_to_a_number(files: World, sql: str) -> None:
    for release in files.plan(sql).releases:
        assert release.bounding.numbered is not None
        (query,) = release.queries(tuple(range(len(release.measurements))))
        assert "BETWEEN 1 AND 3)" in query.sql
    assert verdict(files, sql) == ""
    assert verdict(files, sql, is_checked=False) != ""


@pytest.mark.parametrize("sql", BY_WEIGHT)
def test_the_choice_is_that_of_tables(files: World, sql: str) -> None:
    assert all(release.bounding.numbered is None for release in files.plan(sql).releases)
    assert verdict(files, sql) == ""


def test_the_claim_is_reached(files: World) -> None:
    people = heavy()
    assert check(files, BY_NUMBER[:3], people, [people.without(1)]) == [1, 1, 1]
    assert holds(files)


@pytest.mark.parametrize("seed", range(3))
def test_no_claim_is_passed(files: World, seed: int) -> None:
    people = refreshed(seed)
    check(files, BY_NUMBER + BY_WEIGHT[:3], people, [people.without(one) for one in (1, 2)])
    assert holds(files)


# --- mutants ------------------------------------------------------------------------------------------------


def falls(made: World, sql: str, people: People) -> None:
    with pytest.raises(AssertionError):
        check(made, (sql,), people, [people.without(1)])


def alike(people: People, minutes: int | None = None) -> People:
    """All visits of the first person numbered 1."""
    rows = tuple(
        (1, 1, *row[2:4], i - 5 if minutes is None else minutes) if row[0] == 1 else row
        for i, row in enumerate(people.visit)
    )
    return replace(people, visit=rows)


def test_a_key_that_does_not_hold_bounds_nothing(files: World) -> None:
    """Why every statement asks the ledger: without that this would be answered."""
    people = alike(heavy(), 0)
    falls(files, COUNT, people)
    put_rows(files.connection, people)
    files.refresh()
    assert not holds(files)


def test_take_a_wider_key(tmp_path: Path, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        units.row_number_of,
        ("set(table.asserted) != wanted", "not wanted & set(table.asserted)"),
    )
    for made in opened(tmp_path, keys=KEYS | {"visit": ["owner", "n", "minutes"]}):
        falls(made, COUNT, alike(heavy()))
        assert holds(made), "nothing but the rule stands against it"
        assert verdict(made, COUNT) != ""


def test_ask_for_no_key(tmp_path: Path, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        units.row_number_of,
        ("if policy.files is not None and set(table.asserted) != wanted:", "if False:"),
        ("if not column.not_null:", "if False:"),
        ("if not all(one.not_null for one in owner):", "if False:"),
    )
    for made in opened(tmp_path, keys={name: key for name, key in KEYS.items() if name != "visit"}):
        falls(made, COUNT, alike(heavy()))
        assert holds(made), "nothing but the rule stands against it"
        assert verdict(made, COUNT) != ""


@pytest.mark.parametrize("type_", ["DECIMAL(9, 4)", "DOUBLE"])
def test_number_by_fractions(tmp_path: Path, monkeypatch: Patch, type_: str) -> None:
    """The key holds, and between 1 and 3 there are more than three fractions."""
    plant(monkeypatch, units._require_number, ("if not column.type.is_integer:", "if False:"))
    plant_key(monkeypatch)
    people = heavy()
    rows = tuple((1, 1 + i / 8, *row[2:]) if row[0] == 1 else row for i, row in enumerate(people.visit))
    for made in opened(tmp_path, LOOSE.replace("owner INTEGER, n INTEGER", f"owner INTEGER, n {type_}")):
        falls(made, BY_G, replace(people, visit=rows))
        assert verdict(made, BY_G) != ""


def plant_key(monkeypatch: Patch) -> None:
    """Let any column be part of a key: doubles are none, by a rule of its own."""
    monkeypatch.setattr(units, "can_identify_unit", lambda column: True)


# --- each way in which a number of files holds nothing ---------------------------------------------------------

ROWS = "SELECT (i % 20)::INTEGER AS owner, (i // 20 + 1)::INTEGER AS n, i % 5 AS g, 1 AS minutes FROM range(100) AS t (i)"
SHOP = """
database = "duckdb:"
[privacy]
epsilon = 10
[tables.visit]
source = "visit.parquet"
unit = "owner"
key = ["owner", "n"]
row_number = "n"
max_rows = 3
[tables.visit.columns]
g = { values = [0, 1, 2, 3, 4] }
minutes = { bounds = [-5, 4] }
"""
KEY = 'key = ["owner", "n"]\n'
OF_THE_POLICY = {
    "no key": (KEY, "", 'files enforce no key; write key = ["owner", "n"] here'),
    "a key of the owner alone": (KEY, 'key = ["owner"]\n', "files enforce no key"),
    "a key of the number alone": (KEY, 'key = ["n"]\n', "files enforce no key"),
    "a wider key": (KEY, 'key = ["owner", "n", "g"]\n', "files enforce no key"),
    "no column": ('row_number = "n"', 'row_number = "no"', 'has no column "no"'),
    "a column that is asked": ("minutes = {", "n = {}\nminutes = {", "no statement reads it"),
    "the owner": ('row_number = "n"', 'row_number = "owner"', "says whose a row is"),
}
OF_THE_SCHEMA = {
    "a decimal": (ROWS.replace("+ 1)::INTEGER AS n", "+ 1)::DECIMAL(9, 2) AS n"), "of which many values may lie between"),
    "a double": (ROWS.replace("+ 1)::INTEGER AS n", "+ 1)::DOUBLE AS n"), "which cannot be part of a key"),
    "a text": (ROWS.replace("+ 1)::INTEGER AS n", "+ 1)::VARCHAR AS n"), "of which many values may lie between"),
}  # fmt: skip
OF_THE_ROWS = {
    "a number twice": (f"{ROWS} UNION ALL SELECT 3, 1, 0, 1", "1 of its values stands in several rows"),
    "no number": (f"{ROWS} UNION ALL SELECT 3, NULL, 0, 1", "1 row has none"),
    "nobody's rows": (f"{ROWS} UNION ALL SELECT NULL, 7, 0, 1", "1 row has none"),
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write(tmp_path, ROWS)
    path = tmp_path / "shop.toml"
    path.write_text(SHOP)
    return path


def write(folder: Path, rows: str) -> None:
    duckdb.sql(f"COPY ({rows}) TO '{folder}/visit.parquet'")


def run(policy: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["-P", str(policy), *words])


def test_what_holds_is_taken(shop: Path) -> None:
    """Numbers with holes, below 1 and beyond any R are no matter of the claim."""
    write(shop.parent, f"{ROWS} UNION ALL SELECT 3, 900, 0, 1 UNION ALL SELECT 3, -7, 0, 1")
    assert run(shop, "budget", "create").exit_code == 0
    asked = run(shop, "query", ASKED)
    assert asked.exit_code == 0
    assert "numbered 1 to 3" in asked.stderr
    explained = run(shop, "explain", ASKED).stdout
    assert "a key that the owner asserts: visit (owner, n); verified in the files that are read" in explained


@pytest.mark.parametrize("how", OF_THE_POLICY)
def test_a_policy_that_holds_nothing(shop: Path, how: str) -> None:
    old, new, said = OF_THE_POLICY[how]
    assert old in SHOP
    shop.write_text(SHOP.replace(old, new))
    refused(shop, said)


@pytest.mark.parametrize("how", OF_THE_SCHEMA)
def test_numbers_that_are_none(shop: Path, how: str) -> None:
    rows, said = OF_THE_SCHEMA[how]
    write(shop.parent, rows)
    refused(shop, said)


def refused(shop: Path, said: str) -> None:
    checked = run(shop, "check")
    assert checked.exit_code == 5
    assert said in checked.stdout
    policy = load_policy(shop)
    with pytest.raises(PolicyError) as refusal:
        build_catalog(policy, live_schema(policy))
    assert said in refusal.value.message


def live_schema(policy: Policy) -> LiveSchema:
    assert policy.files is not None
    with DuckDBFiles(policy.files, is_recorded=False).snapshot() as snapshot:
        return snapshot.schema()


@pytest.mark.parametrize("how", OF_THE_ROWS)
def test_rows_that_are_not_held_apart(shop: Path, how: str) -> None:
    """They are not recorded; where they are by a way round, nothing is answered, and check --data says why."""
    assert run(shop, "budget", "create").exit_code == 0
    rows, said = OF_THE_ROWS[how]
    write(shop.parent, rows)
    refreshed_ = run(shop, "refresh")
    assert refreshed_.exit_code == 5
    assert f"(owner, n) is no key of visit: {said}" in refreshed_.stderr
    assert run(shop, "query", ASKED).exit_code != 0
    shop.write_text(SHOP.replace(KEY, "").replace('row_number = "n"\n', ""))
    assert run(shop, "refresh").exit_code == 0
    shop.write_text(SHOP)
    asked = run(shop, "query", ASKED)
    assert asked.exit_code == 5
    assert "is not verified for the data as it is; run dpsql check --data" in asked.stderr
    looked = run(shop, "check", "--data")
    assert looked.exit_code == 5
    assert said in looked.stdout
    assert run(shop, "query", ASKED).exit_code == 5


def test_a_lake_is_refused(shop: Path) -> None:
    text = SHOP.replace('"duckdb:"', '"spark://localhost:1"').replace(
        '"visit.parquet"', '"/data/visit.parquet"'
    )
    policy, live = parse_policy(text, shop), live_schema(load_policy(shop))
    with pytest.raises(PolicyError, match="tables of a lake enforce no key"):
        build_catalog(policy, live)
