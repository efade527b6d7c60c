"""L8: noise is always on, and no exact value gets out another way."""

from __future__ import annotations

import ast
import logging
import os
import random
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dpsql
from dpsql.errors import EngineFailure, Refusal
from dpsql.mechanisms import Law, SampledNoise
from dpsql.release.released import completed
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import first
from dpsql.tests.support.random_databases import Database, load

from .conftest import Desk, OpenDesk
from .examples import HEAVY, ORDINARY, visit

PACKAGE = Path(dpsql.__file__).parent
CITIES = "SELECT city, COUNT(*) FROM visit GROUP BY city"


def sources() -> Iterator[tuple[str, str]]:
    """Yield the modules that are shipped and run: all but tests and test helpers."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(("tests/", "testing/")):
            yield name, path.read_text(encoding="utf-8")


@cache
def tree(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def imports(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)
    return found


# --- nothing turns it off ------------------------------------------------------------------------------


def test_two_sessions_differ(desk: OpenDesk) -> None:
    """16 draws of scale 600 each: equal once in more than 10^40."""
    rows = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # the very thing that must have no effect
        opened = desk(epsilon="0.01")
        opened.settle(HEAVY)
        rows.append([opened.session.execute(f"{CITIES}, {i}").rows for i in ("flag", "level")])
    assert rows[0] != rows[1]


_VARIABLES = ("DPSQL_SEED", "DPSQL_DEBUG", "DPSQL_NOISE", "PYTHONHASHSEED", "DPSQL_TEST")


@pytest.mark.parametrize(
    "variables", first(1, map(pytest.param, [_VARIABLES, *((one,) for one in _VARIABLES)])), ids=str
)
def test_no_variable_of_the_environment_changes_it(variables: tuple[str, ...]) -> None:
    """All of them at once; under `long` each by itself."""
    code = (
        "from fractions import Fraction\nfrom dpsql.mechanisms import Laplace, SampledNoise\n"
        "print(SampledNoise().draw(Laplace(Fraction(10**9)), 8).tolist())"
    )
    drawn = {
        subprocess.run(
            [sys.executable, "-O", "-c", code], env={**os.environ, **dict.fromkeys(variables, "0")}, capture_output=True,
            text=True, check=True,
        ).stdout
        for _ in range(2)
    }  # fmt: skip
    assert len(drawn) == 2


@pytest.mark.parametrize(
    "statement",
    ["SET dpsql.noise = off", "SET dpsql.seed = 1", "SET dpsql.debug = on", "SET seed = 1", "SET dpsql.epsilon = inf",
     "SET dpsql.epsilon = 1e9", "SET dpsql.epsilon = nan"],
)  # fmt: skip
def test_no_setting_changes_it(desk: OpenDesk, statement: str) -> None:
    with pytest.raises(Refusal):
        desk().session.execute(statement)


def test_the_injected_noises_are_for_tests_alone() -> None:
    for name, text in sources():
        assert "ZeroNoise" not in text, name
        assert "SeededSource" not in text, name
        assert not any("testing" in module.split(".") for module in imports(text)), name


def test_only_the_command_line_reads_the_environment() -> None:
    """What an operator may set there is a path or a name; nothing that a session reads."""
    readers = {name for name, text in sources() if re.search(r"os\.environ|getenv|envvar", text)}
    readers.discard("backends/spark_connection.py")  # a Spark server's token, which no policy may hold
    assert all(name.startswith("cli/") for name in readers), readers


_WRITERS = {f"engine/audit/{name}.py" for name in ("expressions", "statements")}
"""They write the texts of statements from a seed, for the audit: no noise is drawn by any of it."""


def test_randomness_comes_from_the_operating_system_alone() -> None:
    for name, text in sources():
        taken = {module.split(".")[0] for module in imports(text)}
        if name not in {"cli/demo.py", *_WRITERS}:  # the seeded university: data, not noise
            assert "random" not in taken, name
            assert "np.random" not in text, name
            assert "numpy.random" not in text, name


def test_seeded_bytes_are_for_bars_alone() -> None:
    users = {name for name, text in sources() if re.search(r"\bSeeded\b", text)}
    assert users == {"release/answer_bars.py", "release/estimate.py", "postprocess/simulate.py"}


class Recorded(ZeroNoise):
    """A noise that is different in every draw, and remembered."""

    def __init__(self) -> None:
        self.drawn: list[int] = []
        self.next = 10**10

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        values = list(range(self.next, self.next + count))
        self.next += 10**10
        self.drawn += values
        return np.array(values, dtype=np.int64)


def test_every_coordinate_gets_a_draw_of_its_own(desk: OpenDesk) -> None:
    """No count, no second half of a pair, no group goes out as it is; no draw is used twice."""
    noise = Recorded()
    noisy, plain = desk(noise), desk(ZeroNoise())
    sql = "SELECT city, COUNT(*), COUNT(DISTINCT tag), COUNT(*) FILTER (WHERE flag) FROM visit GROUP BY city"
    plan = noisy.session.explain(sql).plan
    for opened in (noisy, plain):
        opened.settle(
            ORDINARY
        )  # nobody passes C: what is kept of a unit does not depend on the ledger's salt
    rows, exact = noisy.session.execute(sql).rows, plain.session.execute(sql).rows
    (release,) = plan.releases
    groups = [completed(release, number) for number in range(len(release.measurements))]
    sizes = [len(rows) if group is None else group.size for group in groups]
    draws = sum(one.size * size for one, size in zip(release.measurements, sizes, strict=True))
    assert max(sizes) > len(rows)  # what no declared group holds has its draw too
    assert len(noise.drawn) == len(set(noise.drawn)) == draws
    added = [a - b for r, e in zip(rows, exact, strict=True) for a, b in zip(r[1:], e[1:], strict=True)]  # type: ignore[operator]  # numbers
    assert all(value >= 10**10 // 2**21 for value in added)  # a row of who has many is 2^20 units


def test_the_default_noise_is_the_real_one(desk: OpenDesk) -> None:
    noise = desk().session._noise
    assert noise == SampledNoise()


# --- nothing shows an exact value -----------------------------------------------------------------------

_SECRET = 777_123


def _secret_database() -> Database:
    rows = tuple(visit(unit, city="a", n="1", tag="777123") for unit in range(1, 6))
    return Database((), rows)


def test_an_error_on_the_way_shows_no_exact_value(desk: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault between the engine and the noise: no text of the traceback holds what was read."""
    opened = desk()
    load(opened.connection, _secret_database())

    class Broken(ZeroNoise):
        def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
            raise RuntimeError("no randomness")

    opened.session._noise = Broken()
    with pytest.raises(RuntimeError) as caught:
        opened.session.execute("SELECT tag, COUNT(*) FROM visit GROUP BY tag")
    shown = "".join(traceback.format_exception(caught.value))
    assert str(_SECRET) not in shown
    assert opened.session.dataset.store.spent().epsilon_nano == 10**9


def test_what_is_exact_or_private_has_no_open_repr(desk: OpenDesk) -> None:
    from dpsql.plan.privacy.rows import PrivateBlock
    from dpsql.release.privatise import Exact

    opened = desk()
    table = opened.session.catalog.tables["visit"]
    assert repr(PrivateBlock(table, (), names=())) == "Private(…)"
    exact = Exact()
    assert repr(exact) == str(exact) == "Exact(…)"
    with pytest.raises(TypeError):
        list(exact)  # type: ignore[call-overload]  # that is the test
    assert str(_SECRET) not in repr(opened.session)


def test_nothing_is_logged_or_printed(
    desk: OpenDesk, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    opened = desk()
    load(opened.connection, _secret_database())
    opened.session.execute("SELECT tag, COUNT(*) FROM visit GROUP BY tag")
    opened.connection.execute("DROP TABLE visit")
    with pytest.raises(EngineFailure):
        opened.session.execute("SELECT tag, SUM(n) FROM visit GROUP BY tag")
    out, err = capfd.readouterr()
    assert str(_SECRET) not in caplog.text + out + err


def test_exact_values_stay_in_two_modules() -> None:
    """`run` asks for people's rows and fills an `Exact`, `privatise` alone reads it; `finish` asks for public rows.

    The audit asks a database that it has made up itself, in memory, and publishes made-up keys. The advice of `check`
    asks Postgres' catalog about indexes, for the owner; `init` the keys of tables that the owner has called public;
    the spine those keys of public tables that are listed as groups, while it plans;
    `check --data` counts, for the owner, the rows that break a key which they assert, and those with a value that a
    column lacks which they call complete.
    """
    asking, holding = set(), set()
    for name, text in sources():
        for node in ast.walk(tree(text)):
            if isinstance(node, ast.Attribute) and (
                node.attr in ("run", "columns") or name == "release/run.py"
            ):
                held = ast.unparse(node.value).removesuffix(".open()").rpartition(".")[2]
                if re.fullmatch(r"\w*snapshot(\(.*\))?", held, re.IGNORECASE) and node.attr in (
                    "run",
                    "columns",
                ):
                    asking.add(name)
                if name == "release/run.py" and held == "exact":
                    assert node.attr in ("add", "add_windows")
            if (isinstance(node, ast.Name) and node.id == "Exact") or (
                isinstance(node, ast.Attribute) and node.attr == "Exact"
            ):
                holding.add(name)
    assert asking == {
        "release/run.py", "release/post_processing.py", "engine/audit/audit.py", "backends/postgres_schema.py",
        "cli/owner.py", "engine/asserted_keys.py", "engine/spine.py",
    }  # fmt: skip
    assert holding == {"release/run.py", "release/privatise.py", "engine/audit/audit.py"}


def test_seeded_numbers_reach_no_noise() -> None:
    """Who writes statements from a seed is asked by the audit's search alone."""
    pattern = r"from (?:\.|\S*audit\.)statements import"
    users = {
        name for name, text in sources() if name.startswith("engine/audit/") and re.search(pattern, text)
    }
    assert users == {"engine/audit/audit.py"}
    others = {name for name, text in sources() if re.search(r"audit\.statements\b", text)}
    assert others == set()


def test_the_audit_is_of_made_up_people_alone() -> None:
    """What it asks is a DuckDB in memory that it opened itself, over files that it wrote where a policy's tables are
    files; no session, server or driver goes through it."""
    texts = {name: text for name, text in sources() if name.startswith("engine/audit/")}
    assert [name for name, text in texts.items() if "duckdb.connect(" in text] == ["engine/audit/twins.py"]
    assert texts["engine/audit/twins.py"].count("duckdb.connect()") == 1
    for text in texts.values():
        assert re.findall(r"(?:open_backend|PostgresBackend)\([^)]*\)", text) == []
        assert set(re.findall(r"DuckDBBackend\.over\((\w+)\)", text)) <= {"connection"}
    users = {name for name, other in sources() if "engine.audit" in other or "from .audit" in other}
    assert users == {"cli/verify.py", "engine/audit/__init__.py"}


_SILENCING = ("sql/statement.py", "backends/postgres_connection.py", "backends/spark_connection.py")
"""They silence a library's loggers."""

_SPOOLED = "postprocess/rows.py"
"""It writes finished rows, which the analyst may read, to a file that has no name."""

_PROCESS = "sql/text_process.py"
"""It sends an analyst's own text to a process of dpsql's, and gets a refusal: no row is in its reach."""

_CLIENT = "backends/spark_connection.py"
"""It silences a warning of a library's import."""


def test_what_is_written_to_files_is_finished() -> None:
    """Only what is after the noise, or of public tables alone, holds a spool; nothing that sees exact rows does."""
    holding = {name for name, text in sources() if re.search(r"\bSpool\(", text)}
    assert holding == {"release/post_processing.py"}
    importing = {
        name
        for name, text in sources()
        for node in ast.walk(tree(text))
        if isinstance(node, ast.ImportFrom) and "Spool" in {one.name for one in node.names}
    }
    assert importing == {"release/post_processing.py", "postprocess/sealed.py"}
    assert "Exact" not in dict(sources())["release/post_processing.py"]


_MANUAL = "relation/functions/__main__.py"
"""No query goes through it: it prints the list of functions, which knows no table."""


def test_the_engine_has_no_way_to_print() -> None:
    for name, text in sources():
        if name.split("/")[0] in (
            "engine",
            "release",
            "plan",
            "sql",
            "relation",
            "mechanisms",
            "postprocess",
            "backends",
            "budget",
        ):
            called = {
                node.func.id
                for node in ast.walk(tree(text))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            assert "print" not in called or name == _MANUAL, name
            taken = {module.split(".")[0] for module in imports(text)}
            assert "pickle" not in taken or name in (_SPOOLED, _PROCESS), name
            assert "warnings" not in taken or name == _CLIENT, name
            assert "logging" not in taken or name in _SILENCING, name


def test_the_ledger_holds_no_exact_value(desk: OpenDesk, tmp_path: Path) -> None:
    """Neither a suppressed key nor an exact count is in the ledger's files (soundness.md 3.7)."""
    folder = tmp_path / "kept"
    opened: Desk = desk(Recorded(), folder=folder)
    load(opened.connection, _secret_database())

    class Negative(ZeroNoise):
        def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
            return np.full(count, -(10**6), dtype=np.int64)

    opened.session._noise = Negative()
    answer = opened.session.execute("SELECT tag, COUNT(*) FROM visit GROUP BY tag")
    assert answer.rows == []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        assert str(_SECRET).encode() not in path.read_bytes(), path.name
