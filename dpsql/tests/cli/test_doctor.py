"""`dpsql doctor`: each thing that can be wrong is a line, and nothing is a traceback."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from dpsql.cli import doctor
from dpsql.cli.doctor import bill_of_materials
from dpsql.server.channel import end_of_certificate, load_encryption

from .conftest import Run

Break = Callable[[Path], object]
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


def looked(run: Run, *options: str) -> tuple[int, dict[str, list[tuple[str, str]]]]:
    """Return the exit code, and what was found: states and sentences by what they are of."""
    result = run("doctor", "--json", *options)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    found: dict[str, list[tuple[str, str]]] = {}
    for line in result.stdout.splitlines():
        body = json.loads(line)
        found.setdefault(body["of"], []).append((body["state"], body["said"]))
    return result.exit_code, found


def test_an_installation_that_is_well(run: Run) -> None:
    code, found = looked(run)
    assert code == 0
    states = {name: [state for state, _ in looks] for name, looks in found.items()}
    assert states.pop("TLS") == ["-"]
    assert all(found == ["ok"] for found in states.values())
    assert list(found) == [name for name, _, _ in doctor._LOOKS]
    screen = run("doctor").stdout.splitlines()
    assert len(screen) <= 24
    assert screen[2].startswith("ok       database         can be read, and fits the policy: ")


def lose_log(campus: Path) -> None:
    campus.with_name("campus-ledger.db.log").unlink()


def lose_ledger(campus: Path) -> None:
    campus.with_name("campus-ledger.db.log").unlink()
    campus.with_name("campus-ledger.db").unlink()


def damage(name: str) -> Break:
    return lambda campus: campus.with_name(name).write_bytes(b"\x00garbage" * 100)


def edit(old: str, new: str) -> Break:
    def change(campus: Path) -> None:
        text = campus.read_text()
        assert old in text
        campus.write_text(text.replace(old, new))

    return change


def mode(name: str, rights: int) -> Break:
    return lambda campus: campus.with_name(name).chmod(rights)


def put_link(campus: Path) -> None:
    log = campus.with_name("campus-ledger.db.log")
    log.rename(log.with_name("elsewhere"))
    log.symlink_to("elsewhere")


def write_future(campus: Path) -> None:
    """Have the last record be of a time to come, and the policy have a period."""
    edit("[privacy]", '[privacy]\nperiod = "month"\nperiod_epsilon = 1')(campus)


BROKEN: dict[str, tuple[Break, int, str, str]] = {
    "no policy": (lambda campus: campus.unlink(), 5, "policy", "cannot be read"),
    "a policy of bytes": (damage("campus.toml"), 5, "policy", "campus.toml"),
    "a policy that others change": (mode("campus.toml", 0o646), 5, "policy", "others can change campus.toml"),
    "another column": (edit("gpa      =", "no_such_column ="), 6, "database", "no_such_column"),
    "no database": (
        lambda campus: campus.with_name("campus.duckdb").unlink(),
        6,
        "database",
        "cannot be read",
    ),
    "a damaged database": (damage("campus.duckdb"), 6, "database", "cannot be read"),
    "a server that is not there": (
        edit('database = "duckdb:campus.duckdb"', 'database = "postgresql://nobody@127.0.0.1:1/x"'),
        6,
        "database",
        "no server listens where the URL says",
    ),
    "no log": (lose_log, 7, "ledger", "log campus-ledger.db.log is missing"),
    "no ledger": (lose_ledger, 7, "ledger", "dpsql budget create"),
    "a damaged ledger": (damage("campus-ledger.db"), 7, "ledger", "damaged"),
    "a damaged log": (damage("campus-ledger.db.log"), 7, "ledger", "log"),
    "a log that is a link": (put_link, 7, "its files", "is a link"),
    "a ledger on a server that is not there": (
        edit('ledger   = "sqlite:campus-ledger.db"', 'ledger = "postgresql://nobody@127.0.0.1:1/x"'),
        7,
        "ledger",
        "cannot be reached",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_said_and_the_rest_is_looked_at(run: Run, campus: Path, case: str) -> None:
    break_it, expected, of, words = BROKEN[case]
    break_it(campus)
    code, found = looked(run)
    assert code == expected
    assert list(found) == [name for name, _, _ in doctor._LOOKS]
    assert any(state == "problem" and words in said for state, said in found[of]), found[of]
    assert all("\n" not in said and "Traceback" not in said for looks in found.values() for _, said in looks)


def test_who_can_read_what(run: Run, campus: Path) -> None:
    (campus.parent / "campus-ledger.db.holders").chmod(0o755)
    campus.parent.chmod(0o777)
    code, found = looked(run)
    assert code == 5
    assert any(
        "everybody can put another file in the place of campus.toml" in said for _, said in found["policy"]
    )
    assert ("warning", "others can read campus-ledger.db.holders: chmod go-rwx") in found["its files"]


def test_a_look_that_fails_is_a_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: doctor.Installation) -> doctor.Looks:
        yield doctor.Look(doctor.State.OK, "so far")
        raise RecursionError("a secret")

    monkeypatch.setattr(doctor, "_LOOKS", (("it", 6, fails),))
    code, found = looked(run)
    assert code == 6
    assert found == {"it": [("ok", "so far"), ("problem", "cannot be looked at: RecursionError")]}


def test_the_clock_of_a_ledger_with_periods(run: Run, campus: Path) -> None:
    write_future(campus)
    with sqlite3.connect(campus.with_name("campus-ledger.db")) as ledger:
        rows = ledger.execute("SELECT COUNT(*) FROM record").fetchone()
    assert rows[0] >= 1
    assert looked(run)[0] == 0
    assert run("budget", "clock").exit_code == 2, "nobody is there to be asked"
    assert "from now on" in run("budget", "clock", "--yes").stdout


def test_room(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def free(mib: int) -> None:
        usage = shutil.disk_usage("/")._replace(free=mib * 2**20)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    free(300)
    code, found = looked(run)
    assert code == 0
    assert [found[name][0][0] for name in ("disk", "temporary files")] == ["warning", "warning"]
    free(10)
    code, found = looked(run)
    assert (code, found["disk"][0][0]) == (5, "problem")


def test_versions(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    needs = ["one[c]>=2.0,<=3.1", "two>=1", 'three>=5; extra == "more"', "four<=2"]
    installed = {"one": "1.9", "three": "4.2", "four": "2.0.1"}

    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError
        return installed[name]

    monkeypatch.setattr(metadata, "requires", lambda _: needs)
    monkeypatch.setattr(metadata, "version", version)
    code, found = looked(run)
    assert code == 5
    assert found["versions"] == [
        ("problem", "one 1.9 is installed, and dpsql needs 2.0"),
        ("problem", "two is not installed"),
        ("problem", "three 4.2 is installed, and dpsql needs 5"),
        ("warning", "four 2.0.1 is installed, and dpsql is tested up to 2; see dpsql/constraints.txt"),
    ]


# --- TLS --------------------------------------------------------------------------------------------------


def make_certificate(folder: Path, days: int) -> tuple[Path, Path]:
    key, certificate = folder / "key.pem", folder / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", str(days),
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    key.chmod(0o600)
    return certificate, key


@needs_openssl
def test_the_servers_certificate(run: Run, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, 90)
    names = "--certificate", str(certificate), "--key", str(key)
    code, found = looked(run, *names)
    assert (code, found["TLS"][0][0]) == (0, "ok")
    encryption = load_encryption(certificate, key)
    assert encryption is not None
    end = end_of_certificate(certificate, encryption)
    assert end is not None
    assert 88 <= (end - datetime.now(UTC)).days <= 90
    make_certificate(tmp_path, 3)
    assert looked(run, *names)[1]["TLS"][0][0] == "warning"
    key.chmod(0o644)
    code, found = looked(run, *names)
    assert (code, found["TLS"][0][0]) == (5, "problem")
    assert "others than its owner can read the key" in found["TLS"][0][1]
    assert looked(run, "--certificate", str(certificate))[0] == 5


# --- the bill ---------------------------------------------------------------------------------------------


def test_the_bill_of_what_is_installed(run: Run) -> None:
    body: dict[str, Any] = json.loads(run("doctor", "--sbom").stdout)
    assert (body["bomFormat"], body["specVersion"], body["version"]) == ("CycloneDX", "1.6", 1)
    own = body["metadata"]["component"]
    assert (own["name"], own["version"], own["licenses"]) == (
        "dpsql",
        metadata.version("dpsql"),
        [{"expression": "Apache-2.0"}],
    )
    parts = {part["name"].lower(): part for part in body["components"]}
    for name in ("duckdb", "numpy", "sqlglot", "psycopg", "click"):
        assert parts[name]["version"] == metadata.version(name)
        assert parts[name]["licenses"]
    assert {"cpython", "sqlite"} <= set(parts)
    references = [own["bom-ref"], *(part["bom-ref"] for part in body["components"])]
    assert len(references) == len(set(references))
    edges = {edge["ref"]: edge["dependsOn"] for edge in body["dependencies"]}
    assert parts["duckdb"]["bom-ref"] in edges[own["bom-ref"]]
    assert all(set(needs) <= set(references) and len(needs) == len(set(needs)) for needs in edges.values())


def test_two_bills_are_two_documents() -> None:
    first, second = bill_of_materials(), bill_of_materials()
    assert first["serialNumber"] != second["serialNumber"]
    assert first["components"] == second["components"]


def test_it_does_not_wait_for_a_silent_server(
    run: Run, campus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket
    import time

    monkeypatch.setattr(doctor, "_LONGEST_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        edit('database = "duckdb:campus.duckdb"', f'database = "postgresql://a@127.0.0.1:{port}/x"')(campus)
        edit('ledger   = "sqlite:campus-ledger.db"', f'ledger = "postgresql://a@127.0.0.1:{port}/x"')(campus)
        start = time.monotonic()
        code, found = looked(run)
    assert time.monotonic() - start < 10
    assert code == 6
    assert ("problem", "does not answer within 1 seconds") in found["database"]
    assert ("problem", "does not answer within 1 seconds") in found["ledger"]
