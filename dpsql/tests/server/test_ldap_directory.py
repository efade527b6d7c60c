"""Analysts whom a real OpenLDAP server vouches for, through a real libpq: who gets in, as whom, and with which budget."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from dpsql.engine.dataset import open_ledger
from dpsql.errors import PolicyError
from dpsql.policy import load_policy
from dpsql.policy.model import DirectoryPolicy
from dpsql.server.identity import Unproved, open_voucher

from ..support.slapd import ADMIN, ADMIN_PASSWORD, BASE, SLAPD, Slapd, make_certificate, run_slapd
from .conftest import COUNT, POLICY, Served, left, make_dataset, needs_openssl, run_server

ldap_directory = pytest.importorskip("dpsql.server.ldap_directory", reason="python-ldap is not installed")
pytestmark = [needs_openssl, pytest.mark.skipif(SLAPD is None, reason="slapd is not installed")]

PEOPLE = f"ou=people,{BASE}"
GROUPS = f"ou=groups,{BASE}"
NASTY = "o*(b),r=i\\en"
NASTY_DN = f"uid=o*(b)\\,r\\=i\\\\en,{PEOPLE}"


def person(name: str, *more: str, dn: str | None = None) -> str:
    shown = dn or f"uid={name},{PEOPLE}"
    lines = [f"dn: {shown}", "objectClass: inetOrgPerson", "sn: x", f"cn: {name}", f"uid: {name}", *more]
    return "\n".join([*lines, "userPassword: correct horse"]) + "\n\n"


LDIF = f"""dn: {BASE}
objectClass: domain
dc: example

dn: {PEOPLE}
objectClass: organizationalUnit
ou: people

dn: {GROUPS}
objectClass: organizationalUnit
ou: groups

dn: ou=deep,{PEOPLE}
objectClass: organizationalUnit
ou: deep

{person("alice")}{person("carol")}{person("nobody")}{person("twin", "uid: other")}{person("poor")}{
    person("dora", dn=f"cn=Dora,ou=deep,{PEOPLE}")
}{person("sage", f"memberOf: cn=rich,{GROUPS}")}{person(NASTY, dn=NASTY_DN)}dn: cn=research,{GROUPS}
objectClass: groupOfNames
cn: research
member: uid=carol,{PEOPLE}
member: uid=poor,{PEOPLE}
member: uid=twin,{PEOPLE}
member: cn=Dora,ou=deep,{PEOPLE}

dn: cn=rich,{GROUPS}
objectClass: groupOfNames
cn: rich
member: cn=nobody at all
"""
DECLARED = """
[analysts.alice]
epsilon = 500
[analysts.poor]
epsilon = 0.15
[analysts.boss]
epsilon = 3
identity = "b.oss"
[groups.rich]
member_of = "cn=rich, ou=groups, DC=example,dc=org"
epsilon = 7
[groups.research]
member_of = "cn=research,ou=groups,dc=example,dc=org"
epsilon = 2
hide = ["person.age"]
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    with run_slapd(tmp_path_factory.mktemp("slapd"), LDIF) as running:
        yield running


def make(folder: Path, auth: str) -> Path:
    path = make_dataset(folder)
    path.write_text(POLICY.split("[analysts.alice]")[0] + auth + DECLARED)
    return path


def auth_lines(directory: Slapd, *, url: str = "") -> str:
    return (
        f'[server]\nauth = "{url or directory.ldaps}/{PEOPLE}?uid"\nauth_groups = "{GROUPS}"\n'
        f'auth_ca = "{directory.certificate}"\n'
    )


def tls(folder: Path) -> tuple[str, ...]:
    certificate, key = make_certificate(folder, "server")
    return "--certificate", str(certificate), "--key", str(key)


@pytest.fixture(scope="module")
def folder(directory: Slapd, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vouched")
    make(path, auth_lines(directory))
    return path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with run_server(folder / "people.toml", *tls(folder)) as served:
        yield served


def login(server: Served, user: str, password: str = "correct horse", **more: Any) -> psycopg.Connection[Any]:
    return server.connect(user=user, password=password, **{"sslmode": "require", **more})


def refusal(server: Served, user: str, password: str, **more: Any) -> tuple[str | None, str]:
    with pytest.raises(psycopg.OperationalError) as caught:
        login(server, user, password, **more)
    return caught.value.sqlstate, str(caught.value).partition("FATAL:  ")[2].partition("\n")[0]


def test_who_binds_is_the_analyst(server: Served) -> None:
    with closing(login(server, "alice")) as connection:
        assert connection.execute("SELECT current_user").fetchall() == [("alice",)]
        assert left(connection) == "500"
        assert connection.execute(COUNT).fetchall()[0][0] > 1000


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("alice", "wrong"),
        ("alice", " "),
        ("ALICE", "correct horse"),  # the directory takes it for alice, and here it would be another budget
        ("alice ", "correct horse"),
        ("a*", "correct horse"),
        ("*", "correct horse"),
        ("alice)(uid=*", "correct horse"),
        ("alice,ou=people", "correct horse"),
        ("nobody", "correct horse"),  # a person, and no analyst
        ("twin", "correct horse"),  # one of two names of a person
        ("boss", "correct horse"),  # whose name there is another
        ("research", "correct horse"),
        ("carol\t", "correct horse"),
    ],
)
def test_who_is_not_let_in_is_told_one_thing(server: Served, user: str, password: str) -> None:
    assert refusal(server, user, password) == (None, "the login failed")


def test_an_empty_password_binds_as_nobody_and_is_not_tried(directory: Slapd) -> None:
    """The directory lets it in: what keeps it out is here."""
    import ldap

    connection = ldap.initialize(directory.ldaps)
    connection.set_option(ldap.OPT_X_TLS_CACERTFILE, str(directory.certificate))
    connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)
    connection.simple_bind_s(f"uid=alice,{PEOPLE}", "")  # succeeds
    policy = DirectoryPolicy("ldaps://127.0.0.1:1", PEOPLE, "uid", ca=directory.certificate)
    with pytest.raises(Unproved, match="password"):  # and not "directory", which cannot be reached
        ldap_directory.LdapDirectory(policy).identify("alice", "")


def test_an_empty_password_of_a_client_that_sends_one(server: Served) -> None:
    """libpq sends none, other clients do."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", server.port), 60) as bare:
        bare.sendall(bytes.fromhex("0000000804d2162f"))
        assert bare.recv(1) == b"S"
        with context.wrap_socket(bare) as wire:
            body = b"\0\x03\0\0user\0alice\0database\0people\0\0"
            wire.sendall((len(body) + 4).to_bytes(4, "big") + body)
            assert wire.recv(9) == b"R\0\0\0\x08\0\0\0\x03"
            wire.sendall(b"p\0\0\0\x05\0")
            answer = wire.recv(4096)
    assert b"C28P01\0" in answer
    assert b"Mthe login failed\0" in answer


def test_what_a_name_holds_is_escaped(directory: Slapd, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(ADMIN_PASSWORD)
    for searches in (False, True):
        policy = DirectoryPolicy(
            directory.ldaps, PEOPLE, "uid", searches, ca=directory.certificate,
            bind=ADMIN if searches else None, password_file=tmp_path / "secret",
        )  # fmt: skip
        voucher = ldap_directory.LdapDirectory(policy)
        assert voucher.identify(NASTY, "correct horse").name == NASTY
        for wrong in ("o*", "*", "(uid=*)", "alice)(objectClass=*"):
            with pytest.raises(Unproved):
                voucher.identify(wrong, "correct horse")


def test_nothing_is_said_in_the_clear(server: Served, directory: Slapd, tmp_path: Path) -> None:
    _, said = refusal(server, "alice", "correct horse", sslmode="disable")
    assert said == "connections must be encrypted here"
    other, _ = make_certificate(tmp_path, "other")
    for url, certificate in ((directory.ldaps, other), (directory.ldap, other), (directory.ldaps, None)):
        with pytest.raises(Unproved, match="directory"):
            ldap_directory.LdapDirectory(
                DirectoryPolicy(url, PEOPLE, "uid", ca=certificate)
            ).identify("alice", "correct horse")  # fmt: skip
    started = DirectoryPolicy(directory.ldap, PEOPLE, "uid", ca=directory.certificate)
    assert ldap_directory.LdapDirectory(started).identify("alice", "correct horse").name == "alice"


def test_a_directory_that_has_no_tls_gets_no_password(tmp_path: Path) -> None:
    """It hears a StartTLS alone, refuses it, and hears no bind."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        voucher = ldap_directory.LdapDirectory(
            DirectoryPolicy(f"ldap://127.0.0.1:{listening.getsockname()[1]}", PEOPLE, "uid")
        )
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(voucher.identify, "alice", "correct horse")
            heard, _ = listening.accept()
            heard.settimeout(30)
            first = heard.recv(4096)
            heard.sendall(bytes.fromhex("300c02010178070a01020400 0400".replace(" ", "")))  # protocolError
            rest = heard.recv(4096)
            heard.close()
            with pytest.raises(Unproved, match="directory"):
                asked.result(60)
    assert b"1.3.6.1.4.1.1466.20037" in first
    assert b"correct horse" not in first + rest


def test_members_of_a_group_have_its_budget_each_and_keep_what_they_spent(
    server: Served, directory: Slapd, folder: Path
) -> None:
    with closing(login(server, "carol")) as connection:
        assert left(connection) == "2"
        connection.execute("SET dpsql.epsilon = 0.5")
        connection.execute(f"{COUNT} WHERE city = 'north'")  # of which nothing is stored
        assert left(connection) == "1.5"
        with pytest.raises(psycopg.Error, match='column "age" does not exist'):
            connection.execute("SELECT AVG(age) FROM person")
        directory.change(f"cn=rich,{GROUPS}", "member", add=[f"uid=carol,{PEOPLE}"])
        with closing(login(server, "carol")) as richer:
            assert left(richer) == "6.5"
            assert richer.execute("SELECT AVG(age) FROM person").fetchall()
            assert left(richer) == "6.4"
        assert left(connection) == "6.4"
    directory.change(f"cn=rich,{GROUPS}", "member", remove=[f"uid=carol,{PEOPLE}"])
    with closing(login(server, "carol")) as connection:
        assert left(connection) == "1.4"
    directory.change(f"cn=research,{GROUPS}", "member", remove=[f"uid=carol,{PEOPLE}"])
    assert refusal(server, "carol", "correct horse") == (None, "the login failed")
    directory.change(f"cn=research,{GROUPS}", "member", add=[f"uid=carol,{PEOPLE}"])


def test_what_an_entry_says_of_itself_counts_where_no_groups_are_named(directory: Slapd) -> None:
    policy = DirectoryPolicy(directory.ldaps, PEOPLE, "uid", ca=directory.certificate)
    for groups, found in ((None, {f"cn=rich,{GROUPS}"}), (GROUPS, set())):
        voucher = ldap_directory.LdapDirectory(replace(policy, groups=groups))
        assert voucher.identify("sage", "correct horse").groups == found


def test_an_analyst_of_the_policy_goes_before_a_group(server: Served) -> None:
    with closing(login(server, "poor")) as connection:
        assert left(connection) == "0.15"


def test_the_log_says_why_and_no_name(server: Served) -> None:
    before = len(server.lines)
    refusal(server, "alice", "wrong")
    refusal(server, "nobody", "correct horse")
    server.wait_for("login refused", 2)
    told = [line for line in server.lines[before:] if line["event"] == "login refused"]
    assert [line["reason"] for line in told][-2:] == ["password", "identity"]
    assert not any("wrong" in str(line) or "nobody" in str(line) for line in server.lines)


def test_people_who_are_looked_for(directory: Slapd, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(ADMIN_PASSWORD + "\n")
    lines = auth_lines(directory).replace("?uid", "?uid?sub")
    path = make(tmp_path, f'{lines}auth_bind = "{ADMIN}"\nauth_password_file = "secret"\n')
    with run_server(path, *tls(tmp_path)) as server:
        with closing(login(server, "dora")) as connection:
            assert left(connection) == "2"
        assert refusal(server, "d*", "correct horse") == (None, "the login failed")
        assert refusal(server, "dora", "wrong") == (None, "the login failed")
        assert refusal(server, "nobody2", "wrong") == (None, "the login failed")


def test_names_that_are_longer_there(tmp_path: Path) -> None:
    people = "".join(map(person, ("alice@lab", "carol@lab", "carol@lab@lab", "carol", "poor@lab")))
    members = "".join(
        f"member: uid={name},{PEOPLE}\n" for name in ("alice@lab", "carol@lab", "carol@lab@lab", "carol")
    )
    head, tail = LDIF.split(person("alice"))[0], LDIF[LDIF.index("dn: cn=research") :]
    ldif = head + people + tail.replace("member: uid=carol", f"{members}member: uid=carol_")
    (tmp_path / "slapd").mkdir()
    with run_slapd(tmp_path / "slapd", ldif) as directory:
        path = make(tmp_path, f'{auth_lines(directory)}auth_names = "*@lab"\n')
        with run_server(path, *tls(tmp_path)) as server:
            for user, name, budget in (
                ("alice", "alice", "500"), ("alice@lab", "alice", "500"), ("carol", "carol", "2"), ("carol@lab", "carol", "2"),
                ("carol@lab@lab", "carol@lab", "2"), ("poor", "poor", "0.15"),
            ):  # fmt: skip
                with closing(login(server, user)) as connection:
                    assert connection.execute("SELECT current_user").fetchall() == [(name,)]
                    assert left(connection) == budget
            for nobody in ("dave", "@lab", "lab", "carol@LAB"):
                assert refusal(server, nobody, "correct horse") == (None, "the login failed")


def test_a_directory_that_is_away_lets_nobody_in_and_holds_nobody_up(
    tmp_path: Path, directory: Slapd
) -> None:
    path = make(tmp_path, auth_lines(directory, url="ldaps://127.0.0.1:1"))
    with run_server(path, *tls(tmp_path)) as server:
        start = time.monotonic()
        assert refusal(server, "alice", "correct horse") == (None, "the login failed")
        assert time.monotonic() - start < 30
        server.wait_for("login refused")
        assert [line["reason"] for line in server.lines if line["event"] == "login refused"] == ["directory"]


STARTED = bytes.fromhex("300c02010178070a010004000400")
"""What a directory answers to StartTLS before it makes TLS."""


@pytest.mark.parametrize("stage", ["ldaps", "ldap", "handshake"])
def test_a_directory_that_says_nothing_more_is_left(stage: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        scheme = "ldaps" if stage == "ldaps" else "ldap"
        url = f"{scheme}://127.0.0.1:{listening.getsockname()[1]}"
        start = time.monotonic()
        asked = pool.submit(
            ldap_directory.LdapDirectory(DirectoryPolicy(url, PEOPLE, "uid")).identify,
            "alice",
            "correct horse",
        )
        heard, _ = listening.accept()
        with heard:
            if stage == "handshake":
                assert heard.recv(4096)
                heard.sendall(STARTED)
            with pytest.raises(Unproved, match="directory"):
                asked.result(60)
    assert time.monotonic() - start < 60


def test_a_directory_that_hangs_holds_no_statement_up(tmp_path: Path) -> None:
    (tmp_path / "slapd").mkdir()
    with run_slapd(tmp_path / "slapd", LDIF) as hanging:
        path = make(tmp_path, auth_lines(hanging))
        with run_server(path, *tls(tmp_path)) as server, closing(login(server, "alice")) as connection:
            hanging.process.send_signal(signal.SIGSTOP)
            try:
                with ThreadPoolExecutor(3) as pool:
                    start = time.monotonic()
                    tried = [pool.submit(refusal, server, f"user{i}", "correct horse") for i in range(3)]
                    time.sleep(1)
                    for age in range(5):
                        connection.execute(f"{COUNT} WHERE age > {age}")
                    for one in tried:
                        one.result(120)
                    assert time.monotonic() - start < 240
            finally:
                hanging.process.send_signal(signal.SIGCONT)
            with closing(login(server, "carol")) as again:
                assert left(again) == "2"


def test_a_server_without_the_library_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path, f'[server]\nauth = "ldaps://localhost/{PEOPLE}?uid"\n')
    monkeypatch.delitem(sys.modules, "dpsql.server.ldap_directory", raising=False)
    monkeypatch.setitem(sys.modules, "ldap", None)
    with pytest.raises(PolicyError, match="takes an optional part") as caught:
        open_voucher(load_policy(path))
    assert caught.value.hint == 'pip install "dpsql[ldap]"'


def test_a_reload_keeps_members(directory: Slapd, tmp_path: Path) -> None:
    path = make(tmp_path, auth_lines(directory))
    with run_server(path, *tls(tmp_path)) as server, closing(login(server, "carol")) as connection:
        connection.execute(COUNT)
        assert left(connection) == "1.9"
        path.write_text(path.read_text().replace("epsilon = 500", "epsilon = 400"))
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("reloaded", 2)
        assert left(connection) == "1.9"
        path.write_text(path.read_text().replace("epsilon = 2\n", "epsilon = 1\n"))
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("reloaded", 4)
        with closing(login(server, "carol")) as again:
            assert left(again) == "0.9"


def test_a_server_without_a_certificate_does_not_begin(directory: Slapd, tmp_path: Path) -> None:
    path = make(tmp_path, auth_lines(directory))
    command = [sys.executable, "-m", "dpsql.cli", "-P", str(path), "serve", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "passwords or tokens sent as they are, which takes TLS" in " ".join(done.stderr.split())


def test_a_ledger_knows_members_by_their_own_names(server: Served, folder: Path) -> None:
    with closing(login(server, "carol")) as connection:
        connection.execute("SELECT city, COUNT(*) FROM person GROUP BY city")
    policy = load_policy(folder / "people.toml")
    with closing(open_ledger(policy, create=False)) as ledger:
        assert "carol" in ledger.analysts()
