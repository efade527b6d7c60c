"""L1, L2, L4 and L9 over views: what a statement asks of them is asked of their tables (soundness.md 1.28).

The statements of several tables, in the world of `random_joins`, each of whose tables a view stands for: the tables
themselves are hidden, and the views have their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dpsql import Session
from dpsql.engine.dataset import Dataset, SchemaChanged, open_ledger
from dpsql.plan import views
from dpsql.plan.backend_sql import print_private
from dpsql.policy import Policy
from dpsql.policy.live_schema import LiveTable
from dpsql.relation.relations import all_grounds
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import warm_sealed
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_joins import (
    SCHEMA,
    Database,
    row,
    without,
)
from dpsql.tests.support.random_views import (
    MADE,
    MORE,
    view_policy,
    with_names_of_tables,
)

from .measured import REACHED, World, world
from .planting import plant
from .test_neighbours_joined import check

Patch = pytest.MonkeyPatch


@contextmanager
def opened(policy: Policy, engine: PostgresServer | None) -> Iterator[World]:
    """Open a world in which the views have the names of the tables that they stand for."""
    with world(policy.path.parent, policy=policy, schema=SCHEMA, server=engine, views=MADE) as made:
        yield replace(made, catalog=with_names_of_tables(made.catalog))


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with opened(view_policy(tmp_path_factory.mktemp("add")), engine) as made:
        yield made


MANY = Database(
    {
        "person": tuple(row("person", i, height="2.5", age="30", team="'red'") for i in (1, 2, 3)),
        "account": tuple(row("account", i, 1) for i in range(8)),
        "booking": tuple(row("booking", i, i, n="5") for i in range(8)),
        "note": tuple(row("note", 1, ref=str(i), n="5", x="9", city="'a'") for i in range(9)),
        "profile": (row("profile", 1),),
    }
)
"""The first person has more rows than count, of every table."""

TIGHT = (
    "SELECT COUNT(*) FROM person",
    "SELECT COUNT(*) FROM note",
    "SELECT COUNT(*) FROM members",
    "SELECT COUNT(*) FROM nested",
    "SELECT SUM(x) FROM note",
    "SELECT COUNT(*) FROM having_notes",
    "SELECT SUM(height) FROM having_notes WHERE height = 2.5",
    "SELECT COUNT(*) FROM per_person",
    "SELECT COUNT(*) FROM numbered",
    "SELECT SUM(n) FROM note",
    "SELECT SUM(total) FROM per_person",
    "SELECT SUM(notes) FROM per_person",
    "SELECT COUNT(*) FROM per_person p JOIN note n ON n.person_id = p.person_id",
)  # fmt: skip


@pytest.mark.parametrize("sql", TIGHT)
def test_the_bound_is_reached(adding: World, sql: str) -> None:
    """A heavy person moves some answer by all that is claimed: the scale is neither too small nor too large."""
    assert check(adding, sql, MANY, [without(MANY, 1)]) >= REACHED


def test_an_answer_over_a_view_is_that_over_its_text(adding: World) -> None:
    plans = [
        adding.plan(sql)
        for sql in ("SELECT COUNT(*) FROM having_notes", f"SELECT COUNT(*) FROM ({MORE['having_notes']}) t")
    ]
    sqls = [plan.releases[0].queries(plan.releases[0].fresh)[0].sql for plan in plans]
    assert "having_notes" not in sqls[0]
    assert '"person"' in sqls[0]


# --- the text is part of what is known of the data ---------------------------------------------------------


def changed_while_open(folder: Path, engine: PostgresServer | None, change: str) -> None:
    """Change a view between the start and a statement: nothing is answered, and nothing charged."""
    with ExitStack() as stack:
        policy = view_policy(folder)
        store = open_ledger(policy, create=True)
        made = stack.enter_context(opened(policy, engine))
        session = stack.enter_context(
            Session(Dataset(policy, made.backend, store, warm_sealed()), "tester", _noise=ZeroNoise())
        )
        session.execute("SELECT COUNT(*) FROM v_person")
        spent = store.spent().epsilon_nano
        if made.twin is None:
            made.connection.execute(change)
        else:
            made.twin.owner.execute(change.encode())
        with pytest.raises(SchemaChanged):
            session.execute("SELECT COUNT(*) FROM v_person WHERE height > 1")
        assert store.spent().epsilon_nano == spent
        again = Dataset(policy, made.backend, store, warm_sealed())
        assert all_grounds(again.catalog) != all_grounds(session.catalog)


CHANGE = "CREATE OR REPLACE VIEW v_person AS SELECT * FROM person WHERE age IS NULL OR age < 100"


def test_a_changed_text_is_a_changed_schema(tmp_path: Path, engine: PostgresServer | None) -> None:
    changed_while_open(tmp_path, engine, CHANGE)


def test_a_changed_text_under_a_view_is_one_too(tmp_path: Path, engine: PostgresServer | None) -> None:
    changed_while_open(
        tmp_path,
        engine,
        CHANGE.replace("v_person", "v_tag")
        .replace("person", "tag")
        .replace("age IS NULL OR age < 100", "n = 1"),
    )


# --- mutants -----------------------------------------------------------------------------------------------


def test_believe_the_text_of_the_start(
    tmp_path: Path, engine: PostgresServer | None, monkeypatch: Patch
) -> None:
    same = LiveTable.__eq__

    def apart_from_its_text(left: LiveTable, right: object) -> bool:
        return same(
            replace(left, definition=""),
            replace(right, definition="") if isinstance(right, LiveTable) else right,
        )

    monkeypatch.setattr(LiveTable, "__eq__", apart_from_its_text)
    with pytest.raises(pytest.fail.Exception):
        changed_while_open(tmp_path, engine, CHANGE)


def test_believe_what_is_declared_of_computed_columns(
    tmp_path: Path, engine: PostgresServer | None, monkeypatch: Patch
) -> None:
    plant(
        monkeypatch, print_private._of_column,
        ("held = column.facts is None and printer.is_held", "held = column.facts is not None or printer.is_held"),
    )  # fmt: skip
    with opened(view_policy(tmp_path), engine) as made, pytest.raises(AssertionError):
        assert check(made, "SELECT SUM(n) FROM note", MANY, [without(MANY, 1)]) >= REACHED


def test_forget_whose_the_rows_of_a_view_are(
    tmp_path: Path, engine: PostgresServer | None, monkeypatch: Patch
) -> None:
    """The view would be a public table, whose rows are told as they are: no release claims anything of them."""
    plant(monkeypatch, views._Reader._catalog_of, ("is_hidden=False)", "is_hidden=False, unit=None)"))
    with opened(view_policy(tmp_path, said=""), engine) as made, pytest.raises(AssertionError):
        assert (check(made, TIGHT[1], MANY, [without(MANY, 1)]) or 0) >= REACHED
