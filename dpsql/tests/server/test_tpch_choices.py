"""Values by rank, MODE and regressions over TPC-H's tables: the same answers by command line, DB-API and wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

import dpsql
from dpsql.cli.application import program
from dpsql.engine.dataset import open_ledger
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy

from .conftest import PASSWORD, Served, run_server

FILES = Path(__file__).parents[3] / "grammar_tests" / "policies"
SQL = (
    "SELECT PERCENTILE_CONT(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY l_quantity) AS quartiles, "
    "MODE() WITHIN GROUP (ORDER BY l_returnflag) AS flag, MIN(l_shipdate) AS first, "
    "CORR(l_extendedprice, l_quantity) AS r, REGR_SLOPE(l_extendedprice, l_quantity) AS price FROM lineitem"
)
RANK = "percentile_cont(l_quantity): each of 3 values is within "


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the policy of a small TPC-H."""
    folder = tmp_path_factory.mktemp("tpch")
    schema = (FILES / "tpch.sql").read_text("utf-8").partition("\n-- rows\n")[0]
    with duckdb.connect(str(folder / "tpch.db")) as database:
        database.execute(schema + ";" + (FILES / "tpch_tame.sql").read_text("utf-8"))
    user = f'\n[analysts.alice]\nepsilon = 500\npassword = "{make_verifier(PASSWORD).text()}"\n'
    path = folder / "tpch.toml"
    text = (
        (FILES / "tpch.toml")
        .read_text("utf-8")
        .replace("[privacy]", 'ledger = "sqlite:ledger.db"\n[privacy]', 1)
    )
    path.write_text(text + user, "utf-8")
    open_ledger(load_policy(path), create=True).close()
    return path


@pytest.fixture(scope="module")
def served(tpch: Path) -> Iterator[Served]:
    with run_server(tpch) as server:
        yield server


def test_the_three_doors_answer_alike(tpch: Path, served: Served) -> None:
    told: list[str] = []
    with served.connect(dbname="tpch") as wire:
        wire.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        (row,) = wire.execute(SQL).fetchall()
        names = [column.name for column in wire.execute(SQL).description or ()]
    quartiles, flag, first, correlation, slope = row
    assert names == ["quartiles", "flag", "first", "r", "price"]
    assert [type(one) for one in quartiles] == [float] * 3
    assert 1 <= quartiles[0] <= quartiles[1] <= quartiles[2] <= 50
    assert flag in ("A", "N", "R")
    assert 1992 <= first.year <= 1998
    assert correlation is None or -1 <= correlation <= 1
    assert slope is None or isinstance(slope, float)
    ranks = [line for line in told if "rows" in line and "95 %" in line]
    assert len(ranks) == 6  # three, each told twice: the answer that is stored says it too
    assert ranks[:3] == ranks[3:]
    assert ranks[0].startswith(RANK)

    connection = dpsql.connect(tpch)
    cursor = connection.execute(SQL)
    assert cursor.fetchall() == [row]
    assert cursor.receipt is not None
    assert cursor.receipt.epsilon == 0
    assert [note for note in cursor.receipt.notes if note in ranks] == ranks[:3]
    connection.close()

    result = CliRunner().invoke(program, ["-P", str(tpch), "query", "--json", SQL])
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert set(ranks) <= set(shown["receipt"]["notes"])
    (answer,) = shown["rows"]
    assert list(quartiles) in (list(answer.values()) if isinstance(answer, dict) else answer)


def test_a_catalog_names_them(served: Served) -> None:
    with served.connect(dbname="tpch") as wire:
        (text,) = wire.execute(
            "SELECT pg_catalog.col_description('lineitem'::regclass, a.attnum) FROM pg_catalog.pg_attribute AS a "
            "WHERE a.attrelid = 'lineitem'::regclass AND a.attname = 'l_linenumber'"
        ).fetchone() or ("",)
    assert "CORR, REGR, MEDIAN, percentiles, MIN, MAX, MODE" in str(text)
