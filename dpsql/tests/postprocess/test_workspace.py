"""The file of an analyst's own tables: sealed, one analyst's, bounded, and written whole or not at all."""

from __future__ import annotations

import datetime
import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from dpsql.errors import EngineFailure, Refusal
from dpsql.postprocess import workspace
from dpsql.postprocess.workspace import Store, StoredColumn, StoredObject, file_of
from dpsql.relation.types import BIGINT, BOOLEAN, DATE, DOUBLE, NUMERIC, TEXT, TIMESTAMP

COLUMNS = (StoredColumn("a", BIGINT), StoredColumn("b", TEXT))


def store_of(folder: Path, analyst: str = "alice", mib: int = 16) -> Store:
    return Store(file_of(folder / "w", analyst), f"d {analyst}", mib)


def fill(
    store: Store, name: str, rows: Iterable[tuple[object, ...]], *, in_block: bool = False
) -> StoredObject:
    with store.change(in_block=in_block) as change:
        made = change.add(StoredObject("workspace", name, COLUMNS))
        change.insert(made, rows)
    return made


def add(store: Store, made: StoredObject) -> None:
    with store.change(in_block=True) as change:
        change.insert(made, [(2, "y")])


def test_values_come_back_as_they_were_kept(tmp_path: Path) -> None:
    types = [BIGINT, TEXT, DATE, TIMESTAMP, DOUBLE, BOOLEAN, NUMERIC]
    row = (
        2**62 + 1, "ä\n'", datetime.date(2020, 2, 29), datetime.datetime(2020, 2, 29, 1, 2, 3, 4), 0.1, True, Decimal("1.25"),
    )  # fmt: skip
    store = store_of(tmp_path)
    columns = tuple(StoredColumn(f"x{i}", type_) for i, type_ in enumerate(types))
    with store.change(in_block=False) as change:
        made = change.add(StoredObject("workspace", "t", columns, frozenset({"course.title"})))
        change.insert(made, [row, (None,) * 7])
    store.close()
    again = store_of(tmp_path)
    found = again.contents().objects["workspace", "t"]
    assert (found.columns, found.reads, found.rows) == (columns, frozenset({"course.title"}), 2)
    shown = ", ".join(f"c{i}" for i in range(7))
    arrays = again.read(f"SELECT {shown} FROM t{found.number}")
    assert [nulls is not None or str(values[1]) in ("nan", "NaT", "None") for values, nulls in arrays] == [
        True
    ] * 7
    assert [values[0] for values, _ in arrays][:2] == [2**62 + 1, "ä\n'"]
    again.close()


def test_the_file_is_of_its_owner_alone(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    fill(store, "t", [(1, "x")])
    store.close()
    path = file_of(tmp_path / "w", "alice")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_is_opened_for_nobody_else(tmp_path: Path) -> None:
    assert file_of(tmp_path, "Alice") != file_of(tmp_path, "alice")
    assert len({file_of(tmp_path, f"{'x' * 40}{i}").name for i in range(100)}) == 100
    assert file_of(tmp_path, "../../etc/passwd").parent == tmp_path
    store = store_of(tmp_path)
    fill(store, "t", [(1, "x")])
    store.close()
    os.rename(file_of(tmp_path / "w", "alice"), file_of(tmp_path / "w", "bob"))
    with pytest.raises(EngineFailure, match="could not answer"):
        store_of(tmp_path, "bob").contents()


def test_it_is_sealed(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    fill(store, "t", [(1, "x")])
    out = tmp_path / "out.csv"
    for sql in (
        f"COPY (SELECT 1) TO '{out}'", "SELECT * FROM read_csv('/etc/passwd')", f"ATTACH '{tmp_path / 'o.duckdb'}'",
        "INSTALL httpfs", "SET enable_external_access = true", "SET memory_limit = '9GB'",
    ):  # fmt: skip
        with pytest.raises(EngineFailure):
            store.read(sql)
    assert not out.exists()
    store.close()


def test_a_statement_that_fails_has_written_nothing(tmp_path: Path) -> None:
    def rows() -> Iterator[tuple[object, ...]]:
        yield 1, "x"
        raise RuntimeError

    store = store_of(tmp_path)
    with pytest.raises(RuntimeError):
        fill(store, "t", rows())
    assert not store.contents().objects
    assert not store.has_block
    store.close()


def test_a_block_is_seen_by_itself_alone_until_it_commits(tmp_path: Path) -> None:
    store, other = store_of(tmp_path), store_of(tmp_path)
    fill(store, "t", [(1, "x")], in_block=True)
    assert set(store.contents().objects) == {("workspace", "t")}
    assert not other.contents().objects
    store.commit()
    assert set(other.contents().objects) == {("workspace", "t")}
    fill(store, "u", [(1, "x")], in_block=True)
    store.roll_back()
    assert set(store.contents().objects) == {("workspace", "t")}
    store.close()
    other.close()


def test_a_process_that_is_killed_has_written_nothing_of_its_block(tmp_path: Path) -> None:
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from pathlib import Path
from dpsql.tests.postprocess.test_workspace import fill, store_of
store = store_of(Path({str(tmp_path)!r}))
fill(store, "whole", [(1, "x")])
fill(store, "half", [(1, "x")], in_block=True)
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    store = store_of(tmp_path)
    assert set(store.contents().objects) == {("workspace", "whole")}
    store.close()


def test_two_blocks_that_change_one_table_are_not_both_there(tmp_path: Path) -> None:
    store, other = store_of(tmp_path), store_of(tmp_path)
    made = fill(store, "t", [(1, "x")])
    add(store, made)
    with pytest.raises(Refusal) as refused:
        add(other, made)
    assert refused.value.sqlstate == "40001"
    other.roll_back()
    store.commit()
    assert store.contents().objects["workspace", "t"].rows == 2
    store.close()
    other.close()


def test_two_blocks_that_make_one_name_are_not_both_there(tmp_path: Path) -> None:
    store, other = store_of(tmp_path), store_of(tmp_path)
    made = fill(store, "u", [(1, "x")])
    fill(store, "t", [(1, "x")], in_block=True)
    fill(other, "t", [(2, "y")], in_block=True)
    store.commit()
    with pytest.raises(Refusal) as refused:
        other.commit()
    assert refused.value.sqlstate == "40001"
    with store.change(in_block=True) as change:
        change.rename(made, "v")
    fill(other, "v", [(2, "y")])
    with pytest.raises(Refusal, match='has made "v"'):
        store.commit()
    assert set(other.contents().objects) == {("workspace", name) for name in "tuv"}
    with store.change(in_block=False) as change:  # what it has dropped itself may be made anew
        change.drop(store.contents().objects["workspace", "t"])
        change.rename(store.contents().objects["workspace", "u"], "t")
    assert set(store.contents().objects) == {("workspace", name) for name in "tv"}
    store.close()
    other.close()


def test_two_blocks_have_the_room_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, other = store_of(tmp_path, mib=1), store_of(tmp_path, mib=1)
    fill(store, "t", [(1, "x" * 600_000)], in_block=True)
    fill(other, "u", [(1, "x" * 600_000)], in_block=True)
    store.commit()
    with pytest.raises(Refusal, match="1 MiB at most"):
        other.commit()
    monkeypatch.setattr(workspace, "_MOST_OBJECTS", 2)
    fill(store, "v", [], in_block=True)
    fill(other, "w", [], in_block=True)
    store.commit()
    with pytest.raises(Refusal, match="2 tables and views"):
        other.commit()
    store.close()
    other.close()


def test_temporary_tables_of_all_sessions_have_the_room_of_one() -> None:
    one, two, bob = (Store(None, f"d {name}", 1) for name in ("alice", "alice", "bob"))
    fill(one, "t", [(1, "x" * 600_000)])
    fill(bob, "t", [(1, "x" * 600_000)])
    with pytest.raises(Refusal, match="1 MiB at most"):
        fill(two, "t", [(1, "x" * 600_000)])
    one.close()
    fill(two, "t", [(1, "x" * 600_000)])
    two.close()
    bob.close()
    assert not workspace._HELD


def test_long_names_of_columns_are_counted(tmp_path: Path) -> None:
    store = store_of(tmp_path, mib=1)
    made = fill(store, "t", [(1, "x")])
    with store.change(in_block=False) as change:
        change.redefine(replace(made, columns=(StoredColumn("a" * 1000, BIGINT), COLUMNS[1])))
    assert store.contents().bytes > 1000
    with store.change(in_block=False) as change:
        change.empty(made)
    assert store.contents().bytes > 1000
    store.close()


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(tmp_path, mib=1)
    monkeypatch.setattr(workspace, "MOST_ROWS", 10)
    with pytest.raises(Refusal, match="more than 10 rows") as refused:
        fill(store, "t", [(i, "x") for i in range(11)])
    assert refused.value.sqlstate == "53100"
    with pytest.raises(Refusal, match="1 MiB at most"):
        fill(store, "t", [(1, "x" * 2**20)])
    monkeypatch.setattr(workspace, "_MOST_OBJECTS", 1)
    fill(store, "t", [(1, "x")])
    with pytest.raises(Refusal, match="1 tables and views"):
        fill(store, "u", [(1, "x")])
    assert set(store.contents().objects) == {("workspace", "t")}
    store.close()


def test_null_is_refused_where_a_column_is_not_null(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    columns = (StoredColumn("a", BIGINT, True),)
    with pytest.raises(Refusal) as refused, store.change(in_block=False) as change:
        change.insert(change.add(StoredObject("workspace", "t", columns)), [(1,), (None,)])
    assert refused.value.sqlstate == "23502"
    store.close()


def test_a_file_that_another_process_has_open_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "_BUSY_SECONDS", 0.2)
    store = store_of(tmp_path)
    fill(store, "t", [(1, "x")])
    store.close()
    code = f"import duckdb, sys; c = duckdb.connect({str(file_of(tmp_path / 'w', 'alice'))!r}); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()
        with pytest.raises(EngineFailure) as failed:
            fill(store, "u", [(1, "x")])
        assert failed.value.sqlstate == "55006"
        other.stdin.close()
    fill(store, "u", [(1, "x")])
    store.close()
