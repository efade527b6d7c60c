"""`dpsql audit`: it passes on the real code, and fails on code that is known to be wrong."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import beta  # type: ignore[import-untyped]  # has no types

from dpsql.backends import duckdb_files, open_backend
from dpsql.backends.pinned_files import write_record
from dpsql.engine.audit import Audit, Fuzzed, audit, run_audit, run_fuzz, twins
from dpsql.engine.audit.audit import allowed, at_least, at_most, attack, neighbours_in
from dpsql.engine.audit.statements import SHAPES, pairs_in, pairs_of, statements
from dpsql.errors import Refusal
from dpsql.mechanisms import Gaussian, Laplace, Law, Noise, SampledNoise, Truncated
from dpsql.plan import planner, release_plan
from dpsql.plan.backend_sql import print_release
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.measures import measurements
from dpsql.plan.measures.measurements import WEIGHT
from dpsql.policy import Policy, build_catalog, parse_policy
from dpsql.policy.live_schema import LiveSchema
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_files import SCHEMA_OF_FILES, RecordedFiles, policies_of_files

RUNS = 20_000
POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 10
delta = 1e-3
{more}
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 120] }}
height = {{ bounds = [0.5, 2.5], step = 0.01 }}
city = {{ values = ["a", "b", "c'c", {{ null = true }}] }}
born = {{ bounds = [1990-01-01, 2009-12-31] }}
[tables.visit]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 6
max_groups = 3
[tables.visit.columns]
place = {{ values = ["a", "b", "c"] }}
tag = {{}}
days = {{ bounds = [-3, 7] }}
[tables.line]
unit = {{ column = "visit_id", references = "visit.id" }}
max_rows = 4
[tables.line.columns]
price = {{ bounds = [0, 5] }}
[tables.town]
public = true
"""
SCHEMA = """
CREATE TYPE size AS ENUM ('s', 'm');
CREATE TABLE person (id UUID PRIMARY KEY, age SMALLINT, height DOUBLE, city VARCHAR, born DATE NOT NULL, secret BLOB NOT NULL);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id UUID NOT NULL REFERENCES person (id), place VARCHAR, tag VARCHAR,
    days BIGINT CHECK (days BETWEEN -3 AND 7));
CREATE TABLE line (visit_id INTEGER, price DECIMAL(6,2), kind size);
CREATE TABLE town (name VARCHAR);
INSERT INTO person SELECT gen_random_uuid(), 200, 1.0, 'real', DATE '2000-01-01', 'x' FROM range(3);
"""
JOINT = "SELECT COUNT(*) FILTER (WHERE place = 'a'), COUNT(*) FROM visit"
TAGS = "SELECT tag, COUNT(*) FROM visit GROUP BY tag"
PLACES = "SELECT place, COUNT(*) FROM visit GROUP BY place"
FOUND = "SELECT tag, COUNT(*) FROM visit GROUP BY 1"
"""Half of what one person moves here are keys of their own, which are delta's part."""
SOME = (JOINT, PLACES, FOUND, "SELECT AVG(height) FROM person", "SELECT SUM(price) FROM line")
"""A filter beside its whole, declared groups, found ones, a mean, and rows two tables away from their person."""
Run = Callable[..., Audit]


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str], tuple[Policy, LiveSchema]]:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(SCHEMA)

    def load(more: str) -> tuple[Policy, LiveSchema]:
        policy = parse_policy(POLICY.format(more=more), tmp_path / "people.toml")
        with open_backend(policy.database).snapshot() as snapshot:
            return policy, snapshot.schema()

    return load


@pytest.fixture
def audited(made: Callable[[str], tuple[Policy, LiveSchema]]) -> Run:
    def run(*sql: str, more: str = "", noise: Noise | None = None, runs: int = RUNS) -> Audit:
        return run_audit(*made(more), sql, noise=noise, runs=runs)

    return run


def test_people_are_made_up_inside_a_decimal_that_has_no_bounds(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, gpa DECIMAL(3,2), share DECIMAL(2,2))"
        )
    text = (
        'database = "duckdb:people.duckdb"\nledger = "sqlite:people.db"\n[privacy]\nepsilon = 1\n[tables.person]\n'
        'unit = "id"\n[tables.person.columns]\ngpa = {}\nshare = {}\n'
    )
    policy = parse_policy(text, tmp_path / "people.toml")
    with open_backend(policy.database).snapshot() as snapshot:
        live = snapshot.schema()
    assert run_audit(policy, live, ["SELECT COUNT(gpa), COUNT(share) FROM person"], runs=RUNS).has_passed


class HalfNoise(ZeroNoise):
    """Noise of half the scale."""

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return SampledNoise().draw(Laplace(law.scale / 2), count)


IN_RHO = 'accounting = "zcdp"'


OTHERS = (f"{IN_RHO}\ntogether = 2", 'neighbours = "replace-one"\ntogether = 2')
LONG = pytest.mark.long


@pytest.mark.parametrize(
    "more", ["", *(pytest.param(other, marks=LONG) for other in (*OTHERS, IN_RHO, "together = 3"))]
)
def test_the_usual_statements_pass(audited: Run, more: str) -> None:
    done = audited(more=more)
    check_reached(done, more)
    assert done.has_passed, [one for one in done.findings if one.problems]
    asked = {one.sql for one in done.findings}
    assert {"SELECT COUNT(*) FROM person", "SELECT AVG(height) FROM person", "SELECT VAR_POP(days) FROM visit",
            "SELECT place, COUNT(*) FROM visit GROUP BY 1", JOINT, "SELECT tag, COUNT(*) FROM visit GROUP BY 1",
            "SELECT SUM(price) FROM line"} <= asked  # fmt: skip
    assert all(one.claimed <= 1 for one in done.findings)


@pytest.mark.parametrize("more", OTHERS)
def test_some_statements_pass_under_other_claims(audited: Run, more: str) -> None:
    done = audited(*SOME, more=more)
    assert done.has_passed, [one for one in done.findings if one.problems]
    assert len(done.findings) == len(SOME)


def check_reached(done: Audit, more: str) -> None:
    """The made-up people are hard enough: they move each sum by what is claimed, or a fraction of a row less."""
    if more not in ("", "together = 3"):
        return
    for one in done.findings:
        moved, most = (float(part.removesuffix(" %")) for part in one.moved.split(" of "))
        assert 0.97 * most <= moved <= most, one
        assert one.epsilon > (0.65 if one.sql != FOUND else 0.2)
        assert one.found == pytest.approx(0.136, abs=0.02) or one.sql == FOUND
        assert one.allowed == pytest.approx(0.136, abs=0.002)


def test_half_the_noise_is_found(audited: Run) -> None:
    done = audited(*tried(SOME, ()), noise=HalfNoise())
    assert not done.has_passed
    for one in done.findings:
        assert any("the real epsilon is at least" in problem for problem in one.problems), one
        assert one.epsilon > (1.4 if one.sql != FOUND else 1)


def test_half_the_noise_is_found_in_rho_too(audited: Run) -> None:
    class Half(ZeroNoise):
        def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
            half = Gaussian(Fraction(round(law.scale * 512), 1024))
            return SampledNoise().draw(half, count)

    (right,) = audited("SELECT COUNT(*) FROM person", more=IN_RHO).findings
    assert right.problems == ()
    assert 0.6 < right.epsilon < right.claimed == 1.0
    assert right.found <= right.allowed
    (wrong,) = audited("SELECT COUNT(*) FROM person", more=IN_RHO, noise=Half()).findings
    assert any(problem.startswith("the real rho is at least") for problem in wrong.problems)


def test_the_rho_of_a_coin_is_never_above_what_it_is() -> None:
    runs = 100_000
    for rho in (0.125, 0.5, 2.0):
        sigma = 1 / np.sqrt(2 * rho)
        draws = np.random.default_rng(7).normal(size=(2, runs)) * sigma
        found = attack(draws[0] + 1, draws[1], in_rho=True)
        assert 0.35 * rho < found.epsilon**2 / 2 <= rho
        assert found.found <= allowed(int(rho * 10**18), 0.0) + 0.01


def test_a_missing_weight_is_found(audited: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's rows that all count in full, however many they are, move more than is claimed (soundness.md 1.9)."""
    monkeypatch.setattr(print_release.ReleasePrinter, "_weight", lambda self, rows: str(WEIGHT))
    (joint,) = audited(JOINT).findings
    assert any("moved by more than is claimed" in problem for problem in joint.problems)
    assert any("the real epsilon is at least " in problem for problem in joint.problems)


def test_a_forgotten_clamp_of_a_value_is_found(audited: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialect, "clamp", lambda self, sql, lo, hi, **_: sql)
    assert not audited("SELECT SUM(height) FROM person").has_passed


def test_a_forgotten_person_of_a_group_is_found(audited: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements.Measurement, "sensitivity", measurements.Measurement.of_one)
    assert audited(PLACES).has_passed
    assert not audited(PLACES, more="together = 2").has_passed


@pytest.mark.parametrize(
    "more", ["", pytest.param("together = 3", marks=LONG), "[defaults]\nminimum_units = 4"]
)
def test_a_threshold_that_is_too_low_is_found(
    audited: Run, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    assert audited(TAGS, more=more, runs=200_000).has_passed
    original = release_plan.key_rule

    def lower(*given: Any) -> Truncated:
        law = original(*given)
        return Truncated(law.scale, max(1, law.bound // 2), law.weight)

    monkeypatch.setattr(planner, "key_rule", lower)
    (one,) = audited(TAGS, more=more, runs=200_000).findings
    assert any("shown too often" in problem for problem in one.problems)


def test_an_engine_that_fails_on_a_value_is_found(audited: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialect, "clamp", lambda self, sql, lo, hi, **_: f"CAST(error({sql}) AS BIGINT)")
    (one,) = audited("SELECT SUM(price) FROM line").findings
    assert any("the engine failed" in problem for problem in one.problems)


def test_what_cannot_be_audited(audited: Run) -> None:
    for sql in (
        "SELECT COUNT(*) FROM person WHERE age > (SELECT AVG(age) FROM person)",
        "SHOW dpsql.epsilon",
        "SELECT age FROM person",
        "SELECT MEDIAN(age) FROM person",
    ):
        with pytest.raises(Refusal):
            audited(sql)


def test_not_a_row_of_the_owner_is_read(
    made: Callable[[str], tuple[Policy, LiveSchema]], tmp_path: Path
) -> None:
    """The schema is enough: the database may be gone."""
    policy, live = made("")
    (tmp_path / "people.duckdb").unlink()
    assert run_audit(policy, live, ["SELECT COUNT(*) FROM person"], runs=RUNS).has_passed


@pytest.mark.parametrize(
    ("hits", "runs"),
    [(0, 10), (1, 10), (9, 10), (10, 10), (3, 200_000), (14_000, 200_000), (199_999, 200_000)],
)
def test_the_bounds_are_those_of_clopper_and_pearson(hits: int, runs: int) -> None:
    for error in (0.05, 1e-6):
        low = float(beta.ppf(error, hits, runs - hits + 1)) if hits else 0.0
        high = float(beta.ppf(1 - error, hits + 1, runs - hits)) if hits < runs else 1.0
        assert at_least(hits, runs, error) == pytest.approx(low, rel=1e-9, abs=1e-15)
        assert at_most(hits, runs, error) == pytest.approx(high, rel=1e-9)


def test_an_attack_on_what_is_alike_finds_nothing() -> None:
    scores = np.random.default_rng(1).laplace(size=(2, 100_000))
    seen = attack(scores[0], scores[1])
    assert seen.epsilon == 0
    assert seen.found == pytest.approx(0.05, abs=0.005)


def test_the_claim_is_a_fraction_of_an_exact_epsilon(audited: Run) -> None:
    (one,) = audited(PLACES).findings
    assert Fraction(one.claimed) == 1
    assert (one.moved, one.by) != ("", "")


POSTGRES = """
CREATE SCHEMA other;
CREATE TABLE person (id uuid PRIMARY KEY, age smallint, height double precision, city varchar(9), born date NOT NULL,
    seen timestamptz, open numeric);
CREATE TABLE other.visit (id bigint PRIMARY KEY, person_id uuid NOT NULL REFERENCES person (id), place text, tag text,
    days bigint CHECK (days >= -3 AND days <= 7), secret bytea NOT NULL);
CREATE TABLE line (visit_id bigint, price numeric(6,2));
CREATE TABLE town (name text);
"""


def test_the_schema_may_be_of_postgres(postgres: PostgresServer, tmp_path: Path) -> None:
    """Its tables are made in DuckDB, each in its schema and with the types that are nearest."""
    database = postgres.create_database()
    with postgres.admin(database) as connection:
        connection.execute(POSTGRES)
    url = postgres.create_reader(database)
    text = (
        POLICY.format(more="")
        .replace("tables.visit", 'tables."other.visit"')
        .replace("visit.id", "other.visit.id")
    )
    text = text.replace("born = {", "seen = {}\nopen = { bounds = [0, 1] }\nborn = {")
    policy = parse_policy(text.replace("duckdb:people.duckdb", url), tmp_path / "people.toml")
    backend = open_backend(url, policy.tables)
    with backend.snapshot() as snapshot:
        live = snapshot.schema()
    assert backend.close_idle()
    usual = [
        "SELECT COUNT(*) FROM other.visit",
        "SELECT SUM(open) FROM person",
        "SELECT SUM(price) FROM line",
    ]
    done = run_audit(policy, live, tried(usual, []), runs=RUNS)
    assert done.has_passed, done
    assert {*usual} <= {one.sql for one in done.findings}


# --- the search -------------------------------------------------------------------------------------------

Fuzz = Callable[..., Fuzzed]
BARE = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 1
[tables.person]
unit = "id"
"""


@pytest.fixture
def searched(made: Callable[[str], tuple[Policy, LiveSchema]]) -> Fuzz:
    def run(count: int, seed: int = 0, more: str = "") -> Fuzzed:
        return run_fuzz(*made(more), count, seed)

    return run


@pytest.mark.parametrize(
    "more", ["", f"{IN_RHO}\ntogether = 2", pytest.param('neighbours = "replace-one"', marks=LONG)]
)
def test_what_is_searched_passes(searched: Fuzz, more: str) -> None:
    count = tried(10, 40)
    done = searched(count, 3, more)
    assert done.has_passed, done.violations
    assert done.tried == count == done.answered + sum(done.refused.values())
    assert done.answered > 0.6 * count
    assert 0.5 < done.worst <= 1
    assert done.at


def test_a_seed_says_all(searched: Fuzz) -> None:
    one, again, other = (searched(tried(2, 12), seed) for seed in (1, 1, 2))
    assert one == again
    assert one.at != other.at


def test_every_pair_of_shapes_comes_first(made: Callable[[str], tuple[Policy, LiveSchema]]) -> None:
    catalog = build_catalog(*made(""))
    asked = list(statements(catalog, 5, 700))
    missing = set(pairs_of(SHAPES)) - set[object]().union(*(pairs_in(one.shape) for one in asked))
    assert missing == set()
    assert len({one.sql for one in asked}) > 600
    assert [one.sql for one in statements(catalog, 5, 40)] == [one.sql for one in asked[:40]]


def test_a_policy_that_declares_nothing_is_searched(
    made: Callable[[str], tuple[Policy, LiveSchema]], tmp_path: Path
) -> None:
    _, live = made("")
    done = run_fuzz(parse_policy(BARE, tmp_path / "people.toml"), live, tried(12, 60))
    assert done.has_passed
    assert done.answered > tried(1, 10)


def test_the_search_finds_a_forgotten_clamp(searched: Fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialect, "clamp", lambda self, sql, lo, hi, **_: sql)
    found = searched(tried(5, 20), 5)
    assert not found.has_passed, found


def test_the_search_finds_a_forgotten_person(searched: Fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements.Measurement, "sensitivity", measurements.Measurement.of_one)
    assert not searched(tried(8, 20), 3, "together = 2").has_passed


def test_the_search_finds_an_engine_that_fails(searched: Fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dialect, "clamp", lambda self, sql, lo, hi, **_: f"CAST(error({sql}) AS BIGINT)")
    assert any("the engine failed" in one.problem for one in searched(tried(8, 20), 3).violations)


# --- files ------------------------------------------------------------------------------------------------


@pytest.fixture
def of_files(tmp_path: Path) -> tuple[Policy, LiveSchema]:
    """Return a policy over recorded files, and what is in them."""
    policy, _ = policies_of_files(tmp_path)
    with duckdb.connect() as connection:
        connection.execute(SCHEMA_OF_FILES)
        backend = RecordedFiles(connection, policy).backend
        with backend.snapshot() as snapshot:
            live = snapshot.schema()
        assert backend.close_idle()
    return policy, live


def test_files_are_searched_as_files(
    of_files: tuple[Policy, LiveSchema], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are made up are recorded anew for each neighbour, and are gone at the end."""
    monkeypatch.setattr(audit, "neighbours_in", lambda policy: islice(neighbours_in(policy), tried(4, 100)))
    recorded = list[Path]()
    monkeypatch.setattr(twins, "write_record", lambda *args: (recorded.append(args[0]), write_record(*args)))
    done = run_fuzz(*of_files, 12, 3)
    assert done.has_passed, done.violations
    assert done.answered > 5
    assert len(recorded) > tried(4, 7)
    assert not any(path.parent.exists() for path in recorded)


@pytest.mark.long  # what an audit does with a twin is what a search does
def test_files_are_audited_as_files(of_files: tuple[Policy, LiveSchema]) -> None:
    assert run_audit(*of_files, ["SELECT COUNT(*) FROM note"], runs=RUNS).has_passed


def test_the_search_finds_a_file_of_which_a_part_is_not_read(
    of_files: tuple[Policy, LiveSchema], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that stand in the file with the most of them: how many these are is the other people's doing."""
    shown = duckdb_files._select
    monkeypatch.setattr(
        duckdb_files, "_select", lambda *args: f"SELECT * FROM ({shown(*args)}) QUALIFY COUNT(*) OVER () < 50"
    )
    monkeypatch.setattr(audit, "neighbours_in", lambda policy: islice(neighbours_in(policy), tried(4, 100)))
    assert not run_fuzz(*of_files, tried(11, 20), 3).has_passed
