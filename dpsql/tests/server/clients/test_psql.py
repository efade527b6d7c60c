"""psql: its backslash commands, errors, copies, repeats, and completion of names by the Tab key."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from ..conftest import PASSWORD, Served, needs_psql
from .conftest import ROWS, needs_openssl

pytestmark = needs_psql
COUNT = "SELECT city, COUNT(*) AS n FROM person WHERE age > {} GROUP BY city"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (r"\d", "person"),
        (r"\dt", "person | table | dpsql"),
        (r"\d person", '"person_pkey" PRIMARY KEY, btree (id)'),
        (r"\d loan", "FOREIGN KEY (person_id) REFERENCES person(id)"),
        (r"\d+ person", "bounds 0 to 120"),
        (r"\d+ person", "in years"),
        (r"\dt+ person", "one row each"),
        (r"\l", "people"),
        (r"\l+", "people"),
        (r"\dn", "dpsql"),
        (r"\dn+", "dpsql"),
        (r"\df", "dp_low"),
        (r"\df+ dp_low", "dp_low"),
        (r"\df upper", "pg_catalog | upper | text "),
        (r"\df lpad", "text, integer, text"),
        (r"\df string_to_array", "text[]"),
        (r"\df jsonb_each", "SETOF record"),
        (r"\da regr_slope", "double precision, double precision"),
        (r"\du", "alice"),
        (r"\dp person", "person"),
        (r"\di", "person_pkey"),
        (r"\dv", "Did not find any relations."),
        (r"\ds", "Did not find any relations."),
        (r"\dT", "List of data types"),
        (r"\dx", "List of installed extensions"),
        (r"\do =", "List of operators"),
        (r"\da count", "count"),
        (r"\dC", "List of casts"),
        (r"\dL", "List of languages"),
        (r"\db", "List of tablespaces"),
        (r"\dconfig work_mem", "4MB"),
        (r"\conninfo", 'as user "alice"'),
        (r"\encoding", "UTF8"),
        (r"\z", "person"),
        (r"\d nosuch", 'Did not find any relation named "nosuch".'),
    ],
)
def test_a_backslash_command(served: Served, command: str, shown: str) -> None:
    assert shown in served.psql(command + "\n")


def test_expanded_timing_and_types_without_running(served: Served, spent: Callable[[], Decimal]) -> None:
    shown = served.psql(COUNT.format(50) + r" \gdesc" + "\n")
    assert "city   | text" in shown
    assert "n      | bigint" in shown
    assert spent() == 0
    shown = served.psql("\\x\n\\timing\nSELECT 1 AS one, NULL AS two;\n")
    assert "-[ RECORD 1 ]" in shown
    assert "one | 1" in shown
    assert "Time: " in shown


def test_repeats_are_free(served: Served, spent: Callable[[], Decimal]) -> None:
    sql = COUNT.format(51)
    shown = served.psql(
        f"{sql} \\g\n\\g\n{sql} \\gx\n{sql} ORDER BY n \\gset x_\n\\echo :x_n\n", "-v", "FETCH_COUNT=0"
    )
    assert shown.count("NOTICE:  free: answered before") >= 2
    assert spent() <= Decimal("0.2")


def test_rows_by_parts(served: Served) -> None:
    shown = served.psql("SELECT i FROM number ORDER BY i;\n", "-At", "-v", "FETCH_COUNT=700")
    assert shown.split() == [str(number) for number in range(ROWS)]


def test_copy_to_a_file(served: Served, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    served.psql(f"\\copy (SELECT id, name FROM thing ORDER BY id) TO '{out}' WITH (FORMAT csv, HEADER)\n")
    assert out.read_text(encoding="utf-8") == "id,name\n1,ä 'quoted'\n2,\n"
    served.psql(f"\\copy thing (id) to '{out}' csv\n")
    assert out.read_text() == "1\n2\n"


def test_the_caret_and_the_code(served: Served) -> None:
    shown = served.psql(
        "\\set VERBOSITY verbose\nSELECT 1,\n  nosuch FROM person;\nSELECT age FROM person;\n\\errverbose\n"
    )
    assert (
        'ERROR:  42703: column "nosuch" does not exist\nLINE 2:   nosuch FROM person;\n          ^' in shown
    )
    assert "LINE 1: SELECT age FROM person;\n               ^" in shown
    assert shown.count("ERROR:  42501: ") == 2
    assert shown.count("DETAIL:  PV002: a private column stands outside an aggregate") == 2
    assert shown.count("CONSTRAINT NAME:  PV002") == 2


def test_a_block_rolled_back_to_its_savepoint(served: Served) -> None:
    script = "BEGIN;\nSELECT 1;\nSELECT nosuch;\nSELECT 2;\nCOMMIT;\n"
    shown = served.psql(script, "-At", "-v", "ON_ERROR_ROLLBACK=on")
    assert shown.splitlines()[-2:] == ["2", "COMMIT"]
    assert served.psql(script, "-At").splitlines()[-1] == "ROLLBACK"


def test_variables_parameters_and_several_rows(served: Served) -> None:
    script = "\\set a 2\nSELECT :a AS a, :'a' AS b \\gset\n\\echo :a :b\nVALUES (1), (2);\nSELECT i FROM number WHERE i < 4 ORDER BY i \\crosstabview\n"
    assert served.psql(script, "-At").startswith("2 2\n1\n2\n")


@needs_openssl
def test_over_tls(served: Served) -> None:
    assert "protocol: TLSv1." in served.psql("\\conninfo\n", env={"PGSSLMODE": "require"})


def _typed(served: Served, keys: str, wanted: str) -> str:
    """Type keys at psql's prompt; return what the terminal shows until `wanted` is there."""
    ours, theirs = pty.openpty()
    environment = {
        "PGPASSWORD": PASSWORD,
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "PATH": os.environ["PATH"],
        "INPUTRC": "/dev/null",
    }
    command = ["psql", "-X", "-h", "127.0.0.1", "-p", str(served.port), "-U", "alice", "people"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    typed = select.poll()  # select() takes no number above 1,023
    typed.register(ours, select.POLLIN)
    shown, is_typed, deadline = "", False, time.monotonic() + 300
    try:
        while wanted not in shown and time.monotonic() < deadline:
            if typed.poll(200):
                shown += os.read(ours, 4096).decode()
            if not is_typed and "people=> " in shown:
                os.write(ours, keys.encode())
                shown, is_typed = "", True
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return shown


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("SELECT COUNT(*) FROM pers\t", "person "),
        ("SELECT COUNT(*) FROM person WHERE inc\t", "income "),
        ("\\dt lo\t", "loan "),
        ("SET appl\t", "application_name "),
        ("\\c peo\t", "people "),
    ],
)
def test_the_tab_key(served: Served, keys: str, wanted: str) -> None:
    assert wanted in _typed(served, keys, wanted)


needs_pgbench = pytest.mark.skipif(shutil.which("pgbench") is None, reason="pgbench is not installed")


@needs_pgbench
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench(served: Served, tmp_path: Path, spent: Callable[[], Decimal], mode: str) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        "\\set a random(60, 62)\nSELECT COUNT(*) FROM person WHERE age > :a;\n"
        "BEGIN;\nSELECT id FROM thing WHERE id = :a;\nEND;\n"
    )
    done = subprocess.run(
        ["pgbench", "-n", "-f", script, "-M", mode, "-c", "3", "-t", "20", "-h", "127.0.0.1", "-p", str(served.port),
         "-U", "alice", "people"],
        env={"PGPASSWORD": PASSWORD, "PATH": os.environ["PATH"], "PGOPTIONS": "-c client_min_messages=warning"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert "number of transactions actually processed: 60/60" in done.stdout, done.stderr
    assert "number of failed transactions: 0 " in done.stdout
    assert spent() <= Decimal("0.3")
