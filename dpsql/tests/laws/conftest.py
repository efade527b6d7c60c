"""Whole sessions over the random schema, on each engine: real databases, real ledger files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from hypothesis import is_hypothesis_test

from dpsql import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.mechanisms import Noise, SampledNoise
from dpsql.plan import release_plan
from dpsql.policy import Policy
from dpsql.tests.support import random_joins
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.postgres_fixtures import NEWEST_FIRST
from dpsql.tests.support.postgres_server import Installation, PostgresServer
from dpsql.tests.support.postgres_twin import PostgresTwin
from dpsql.tests.support.random_databases import SCHEMA, Database, load, policy_of

from .measured import World, engine_of, world


@pytest.fixture(autouse=True, scope="package")
def _prints_anew() -> Iterator[None]:
    """Keep nothing of what was printed of a plan: laws print a plan twice, and plant a fault in between."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_plan.ReleasePlan, "_made", property(lambda plan: release_plan._Measured()))
        patch.setattr(
            release_plan, "_rows_texts", SimpleNamespace(of=lambda *those: release_plan._rows_text(*those))
        )
        yield


@pytest.fixture(
    scope="session", params=[None, *NEWEST_FIRST], ids=lambda one: f"pg{one.major}" if one else "duckdb"
)
def engine(
    request: pytest.FixtureRequest, start_postgres: Callable[[Installation], PostgresServer]
) -> PostgresServer | None:
    """Give None for DuckDB, then a server of the newest Postgres at hand, under `long` also of the oldest."""
    return None if request.param is None else start_postgres(request.param)


_ON_BOTH = frozenset(
    {"test_neighbours", "test_neighbours_joined", "test_searched", "test_total", "test_total_joined"}
)
"""Laws of all statements alike, which Postgres is held to in all their forms."""
_NO_FAULTS = frozenset(
    {"test_growth", "test_json_members", "test_listed_keys", "test_shifted", "test_together"}
)
"""Where a patch is no planted fault, or one of an engine's own."""


_ON_ALL = frozenset({"test_default_deny", "test_periods", "test_total", "test_total_joined"})
"""Where each statement stands for itself: it was refused, or an engine failed on it."""
_FOR_ITSELF = re.compile("refused|refusal|nobodys|hidden|attack")
"""In the name of a test whose statements do: each is an attack, or is refused for a reason of its own."""
_PLANTED = frozenset({"fault", "mutant", "old", "planted"})
"""Arguments that say what is planted."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put under `long` what `make test` shows otherwise: see `_on_postgres` and `_in_part`."""
    laws = [
        item
        for item in items
        if isinstance(item, pytest.Function)
        and item.path.parent == Path(__file__).parent
        and hasattr(item, "callspec")
    ]
    _on_postgres(laws)
    _in_part(laws)


def _in_part(laws: Sequence[pytest.Function]) -> None:
    """Put under `long` two thirds of the faults that one test plants, where they are four or more, and of random seeds;
    and of six statements or more: each form is held to its claim as a grammar case too."""
    of_one: dict[tuple[Path, str, object], list[pytest.Function]] = {}
    for item in laws:
        if item.get_closest_marker("long") is None:
            key = item.path, item.originalname, item.callspec.params.get("engine")
            of_one.setdefault(key, []).append(item)
    for members in of_one.values():
        known = members[0].callspec.params
        if "seed" in known:
            seeds = list(dict.fromkeys(item.callspec.params["seed"] for item in members))
            stay = seeds[: -(-len(seeds) // 3)]
            moved = [item for item in members if item.callspec.params["seed"] not in stay]
        elif len(members) > 3 and "monkeypatch" in members[0].fixturenames and _PLANTED & known.keys():
            moved = [item for place, item in enumerate(members) if place % 3]
        elif len(members) > 5 and "sql" in known and not _stands_for_itself(members[0]):
            moved = _two_thirds(members, 0 if known.get("engine") is None else 1)
        else:
            continue
        for item in moved:
            item.add_marker(pytest.mark.long)


def _stands_for_itself(item: pytest.Function) -> bool:
    return item.path.stem in _ON_ALL or _FOR_ITSELF.search(item.originalname) is not None


def _two_thirds(members: Sequence[pytest.Function], turn: int) -> list[pytest.Function]:
    """Return two thirds of a product of statements and other parameters: two thirds of each of these, too; `turn`: by
    which each engine is left others."""
    places: tuple[dict[str, int], dict[str, int]] = {}, {}
    moved = []
    for item in members:
        known = item.callspec.params
        beside = repr([value for name, value in known.items() if name != "sql"])
        here, there = (
            of.setdefault(one, len(of)) for of, one in zip(places, (str(known["sql"]), beside), strict=True)
        )
        if (here + there + turn) % 3:
            moved.append(item)
    return moved


def _on_postgres(laws: Sequence[pytest.Function]) -> None:
    """Put under `long`, on Postgres, what `make test` shows on DuckDB: that a fault planted in the plan turns a law red
    there too, what is searched at random, of each law all parameters but the first, and of a file's laws two of
    three. The laws over all statements stay, on fixed databases and over every world of `test_searched`, and grammar cases
    of each rule are held to DuckDB's integers on Postgres."""
    engines = [(item, item.callspec.params.get("engine")) for item in laws]
    shown = {(item.path, item.originalname) for item, engine in engines if engine is None}
    known, beside = set[object](), dict[Path, int]()
    for item, engine in engines:
        if engine is None:
            continue
        law, patches = (item.path, item.originalname), "monkeypatch" in item.fixturenames
        plants = patches and item.path.stem not in _NO_FAULTS
        is_repeated = law in known and law in shown and not patches and item.path.stem not in _ON_BOTH
        if plants or is_repeated or is_hypothesis_test(item.obj):
            item.add_marker(pytest.mark.long)
        elif item.get_closest_marker("long") is None:
            known.add(law)
            if law in shown and item.path.stem not in _ON_BOTH:
                beside[item.path] = beside.get(item.path, -1) + 1
                if beside[item.path] % 3:
                    item.add_marker(pytest.mark.long)


@dataclass(repr=False)
class Desk:
    """A session with the connection that `resolve_owner` puts a database's rows into; `twin`: its copy in Postgres."""

    session: Session
    connection: duckdb.DuckDBPyConnection
    policy: Policy
    twin: PostgresTwin | None = None

    def settle(self, database: Database, order: int = 0) -> None:
        load(self.connection, database, order)
        if self.twin is not None:
            self.twin.refresh()


OpenDesk = Callable[..., Desk]


def make_desk(
    stack: ExitStack,
    folder: Path,
    noise: Noise | None = None,
    epsilon: str = "1",
    server: PostgresServer | None = None,
    policy: Policy | None = None,
) -> Desk:
    """Open a ledger in `folder` and a database in memory or on a server, and a session over both."""
    policy = policy or policy_of(folder, epsilon=epsilon)
    connection = stack.enter_context(empty_duckdb())
    connection.execute(SCHEMA)
    store = open_ledger(policy, create=True)
    twin, backend = engine_of(stack, connection, policy, server)
    session = Session(
        Dataset(policy, backend, store, warm_sealed()), "tester", _noise=noise or SampledNoise()
    )
    stack.enter_context(session)
    session.execute("SET dpsql.unlisted = on")  # the laws hold for every text
    return Desk(session, connection, policy, twin)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[OpenDesk]:
    """Open desks, each in a folder of its own unless one is given."""
    with ExitStack() as stack:
        count = 0

        def open_one(
            noise: Noise | None = None,
            epsilon: str = "1",
            folder: Path | None = None,
            policy: Policy | None = None,
        ) -> Desk:
            nonlocal count
            count += 1
            place = folder or tmp_path / f"desk{count}"
            place.mkdir(exist_ok=True)
            return make_desk(stack, place, noise, epsilon, policy=policy)

        yield open_one


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("single"), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("joined")
    policy = random_joins.policy_of(folder)
    with world(folder, policy=policy, schema=random_joins.SCHEMA, server=engine) as made:
        yield made
