"""`dpsql demo --challenge`: a flag that is drawn, a budget that bounds a guess, what is said of it, and who may ask."""

from __future__ import annotations

import json
import math
import re
import subprocess
from fractions import Fraction
from pathlib import Path

import duckdb
import psycopg
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.cli.demo import ANALYST, PASSWORD, POLICY, TRIED, make_challenge, told
from dpsql.policy import load_policy
from dpsql.tests.support.forked import Forked

TESTS = Path(__file__).parents[1]


def challenge(*arguments: str) -> Result:
    return CliRunner().invoke(program, ["demo", "--challenge", *arguments])


def flag_of(folder: Path) -> float:
    with duckdb.connect(str(folder / "campus.duckdb"), read_only=True) as database:
        (flag,) = database.execute("SELECT gpa::DOUBLE FROM student WHERE id = 7").fetchone() or (0.0,)
    return float(flag)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("challenge") / "challenge"
    assert make_challenge(folder, fresh=False)
    return folder


def test_flags_are_all_of_the_values_and_drawn_by_the_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn = iter([0, 200, 137])
    asked = []
    monkeypatch.setattr("dpsql.cli.demo.secrets.randbelow", lambda most: asked.append(most) or next(drawn))
    monkeypatch.setattr("dpsql.cli.demo.write_database", lambda path: _few_students(path))
    flags = []
    for _ in range(3):
        assert make_challenge(tmp_path / "c", fresh=True)
        flags.append(flag_of(tmp_path / "c"))
    assert (flags, asked) == ([2.0, 4.0, 3.37], [201] * 3)


def _few_students(path: Path) -> None:
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE student (id INTEGER PRIMARY KEY, gpa DECIMAL(3,2))")
        database.execute("INSERT INTO student SELECT i, 3 FROM range(9) AS t (i)")


def test_the_budget_is_what_the_page_says_a_guess_can_be(made: Path) -> None:
    policy = load_policy(made / POLICY)
    assert (policy.privacy.epsilon, policy.analysts[ANALYST].epsilon) == (1, 1)
    assert policy.privacy.delta <= Fraction(1, 10**6)
    assert f"{100 * math.e / 201:.1f} % of the time (e^1 / 201;" in told()
    p = math.e / 201 + 1e-6
    by_luck = sum(math.comb(10, k) * p**k * (1 - p) ** (10 - k) for k in range(3, 11))
    assert 1 / 3700 < by_luck < 1 / 3600
    assert (made / "campus.duckdb").stat().st_mode & 0o777 == 0o600


def test_what_was_tried_is_there() -> None:
    for name in TRIED:
        assert (TESTS / name).exists()
        assert name in told()
    assert max(map(len, told().splitlines())) <= 125


def test_a_folder_is_used_again_and_fresh_draws_anew(made: Path) -> None:
    flag = flag_of(made)
    assert not make_challenge(made, fresh=False)
    assert flag_of(made) == flag


def test_a_guess_is_told_right_or_wrong(made: Path) -> None:
    flag = flag_of(made)
    right, wrong = (challenge(str(made), "--guess", f"{guess:.2f}") for guess in (flag, 6 - flag + 0.01))
    assert right.stdout.startswith(f"Right: the flag was {flag:.2f}.")
    assert wrong.stdout.startswith(f"Wrong: the flag was {flag:.2f}.")


def test_what_it_does_not_take(tmp_path: Path) -> None:
    assert "holds no challenge" in challenge(str(tmp_path), "--guess", "3").stderr
    alone = CliRunner().invoke(program, ["demo", str(tmp_path / "d"), "--guess", "3"])
    assert (alone.exit_code, "--guess is of a --challenge" in alone.stderr) == (2, True)
    (tmp_path / "campus.toml").write_text("mine")
    refused = challenge("--fresh", str(tmp_path))
    assert (refused.exit_code, "holds something else (campus.toml)" in refused.stderr) == (2, True)
    assert (tmp_path / "campus.toml").read_text() == "mine"


def test_it_is_served_to_the_analyst_whose_row_reads_are_refused(made: Path) -> None:
    command = ["-m", "dpsql.cli", "demo", "--challenge", str(made), "--port", "0"]
    with Forked(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = []
        for line in server.stderr:
            said.append(line)
            if '"listening"' in line:
                break
        try:
            port = json.loads(said[-1])["port"]
            page = "".join(said)
            assert told() in page
            assert f"-p {port} -U {ANALYST} challenge" in page
            address = {
                "host": "127.0.0.1",
                "port": port,
                "user": ANALYST,
                "password": PASSWORD,
                "dbname": "challenge",
            }
            with psycopg.connect(**address, autocommit=True) as connection:
                with pytest.raises(psycopg.Error) as refused:
                    connection.execute("SELECT name, gpa FROM student WHERE id = 7")
                assert "PV002" in str(refused.value)
                assert connection.execute("SELECT COUNT(*) FROM student").fetchone()
            assert not re.search(
                rf"\b{flag_of(made):.2f}\b", page.replace("3.14", "").replace("2.00 to 4.00", "")
            )
        finally:
            server.terminate()
        server.wait(60)
