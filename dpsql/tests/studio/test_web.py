"""The studio of a server: analysts log in with their passwords, and reach what is theirs under a connection's rules."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dpsql.cli.demo import ANALYST, MAIN_POLICY, PASSWORD
from dpsql.pgwire import make_verifier
from dpsql.server import Server
from dpsql.studio.server import OWNER
from dpsql.studio.web import _MOST_CONNECTIONS, _MOST_OF_ONE, WebDesk, WebDoor, _digest, _Member
from dpsql.tests.support.forked import Forked

from ..support.browser import browsing, missing
from .test_in_browser import check_axe, check_layout, until

COUNT = "SELECT COUNT(*) AS n FROM student"
BEN = "ben's password"


@pytest.fixture(scope="module")
def folder(made_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shutil.copytree(made_once, tmp_path_factory.mktemp("web") / "demo")
    policy = folder / MAIN_POLICY
    policy.write_text(
        policy.read_text()
        + f'\n[analysts.ben]\nepsilon = 5\npassword = "{make_verifier(BEN, iterations=4096).text()}"\n'
    )
    return folder


class Served:
    """A server that runs in a process of its own, with the studio beside it."""

    def __init__(self, process: subprocess.Popen[str], port: int, context: ssl.SSLContext | None) -> None:
        self.process, self.port, self._context = process, port, context
        self.origin = f"{'http' if context is None else 'https'}://localhost:{port}"

    def request(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection: http.client.HTTPConnection
        if self._context is None:
            connection = http.client.HTTPConnection("localhost", self.port, timeout=60)
        else:
            connection = http.client.HTTPSConnection(
                "localhost", self.port, timeout=60, context=self._context
            )
        named = {"Origin": self.origin, "Content-Type": "application/json"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, None if body is None else json.dumps(body), named)
        reply = connection.getresponse()
        found = reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
        connection.close()
        return found

    def login(self, user: str, password: str, database: str = "") -> tuple[int, Member | None]:
        body = {"user": user, "password": password, "database": database}
        status, headers, found = self.request("POST", "/door/login", body)
        if status != 200:
            return status, None
        return status, Member(self, headers["set-cookie"], json.loads(found)["key"])

    def member(self, user: str = ANALYST, password: str = PASSWORD) -> Member:
        _, found = self.login(user, password)
        assert found is not None
        return found


class Member:
    def __init__(self, served: Served, cookie: str, key: str) -> None:
        self._served, self.cookie, self.key = served, cookie, key

    @property
    def headers(self) -> dict[str, str]:
        return {"Cookie": self.cookie.partition(";")[0], "X_Dpsql_Key": self.key}

    def status(self, name: str, **changed: str) -> int:
        return self._served.request("POST", f"/api/{name}", {}, **(self.headers | changed))[0]

    def ask(self, name: str, **body: Any) -> Any:
        status, _, found = self._served.request("POST", f"/api/{name}", body, **self.headers)
        assert status == 200, found
        return json.loads(found)


@contextmanager
def serving(folder: Path, *options: str, context: ssl.SSLContext | None = None) -> Iterator[Served]:
    arguments = [
        "-m", "dpsql.cli", "-P", str(folder / MAIN_POLICY), "serve", "--port", "0", "--web", "0", *options
    ]  # fmt: skip
    with Forked(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            port = 0
            for line in process.stderr:
                event = json.loads(line)
                port = event["port"] if event["event"] == "studio" else port
                if event["event"] == "listening":
                    break
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield Served(process, port, context)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with serving(folder) as served:
        yield served


def test_a_password_opens_it_and_nothing_else_does(served: Served) -> None:
    status, headers, page = served.request("GET", "/")
    assert status == 200
    assert b'id="password"' in page
    assert b"campus" not in page
    assert "script-src 'self'" in headers["content-security-policy"]
    for path in ("/page/main.js", "/page/views/ask.js"):
        assert served.request("GET", path)[0] == 403
    assert served.request("POST", "/api/about", {})[0] == 403
    status, member = served.login(ANALYST, PASSWORD)
    assert member is not None
    assert re.search(r"=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict$", member.cookie)
    about = member.ask("about")
    assert (about["analyst"], about["is_owner"], about["dataset"]) == (ANALYST, False, "campus")
    assert b"/page/main.js" in served.request("GET", "/", **member.headers)[2]


def test_a_cookie_without_its_key_and_other_pages_ask_nothing(served: Served) -> None:
    ada, ben = served.member(), served.member("ben", BEN)
    assert ada.status("about") == 200
    for changed in (
        {"X_Dpsql_Key": ""}, {"X_Dpsql_Key": ben.key}, {"Cookie": ""}, {"Cookie": ben.headers["Cookie"]},
        {"Origin": "http://evil.example"}, {"Content_Type": "text/plain"}, {"Sec_Fetch_Site": "cross-site"},
    ):  # fmt: skip
        assert ada.status("about", **changed) == 403
    assert ada.status("about", Host=f"evil.example:{served.port}") == 421
    body = {"user": ANALYST, "password": PASSWORD}
    assert served.request("POST", "/door/login", body, Origin="http://evil.example")[0] == 403


def test_a_wrong_password_is_late_and_an_unknown_name_looks_the_same(folder: Path) -> None:
    with serving(folder) as served:
        told = []
        for user, password, database in (
            (ANALYST, "x", ""), ("nobody", "x", ""), (ANALYST, "", ""), ("nobody", PASSWORD, "campus"), (ANALYST, PASSWORD, "other"),
        ):  # fmt: skip
            start = time.monotonic()
            status, _, body = served.request(
                "POST", "/door/login", {"user": user, "password": password, "database": database}
            )
            told.append((status, body))
            late = time.monotonic() - start
        assert len(set(told)) == 1, "nothing tells who exists"
        for _ in range(3):
            start = time.monotonic()
            assert served.login("nobody", "x")[0] == 403
            late = time.monotonic() - start
        assert late >= 0.5, "failures wait"


def test_where_a_request_ends_is_said_once(served: Served) -> None:
    member = served.member()
    head = (
        f"Host: localhost:{served.port}\r\nOrigin: {served.origin}\r\nContent-Type: application/json\r\n"
        + "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in member.headers.items())
    )
    inner = f"POST /api/about HTTP/1.1\r\n{head}Content-Length: 2\r\n\r\n{{}}"
    for first in (
        f"GET / HTTP/1.1\r\n{head}Content-Length: {len(inner)}\r\n\r\n",
        f"POST /api/about HTTP/1.1\r\n{head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{{}}",
        f"POST /api/about HTTP/1.1\r\n{head}Content-Length: 2\r\nContent-Length: {len(inner) + 2}\r\n\r\n{{}}",
        f"POST /api/about HTTP/1.1\r\n{head}Content-Length: 2\r\nContent-Length : 9\r\n\r\n{{}}",
        f"POST /api/about HTTP/1.1\r\n{head}Host: elsewhere\r\nContent-Length: 2\r\n\r\n{{}}",
    ):
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as plain:
            plain.sendall((first + inner).encode())
            told = b""
            with suppress(ConnectionResetError):
                while more := plain.recv(65536):
                    told += more
        assert re.findall(rb"HTTP/1.1 (\d+)", told) == [b"400"], first
    assert member.status("about") == 200


def test_leaving_while_seats_are_tidied_ends_nothing_else() -> None:
    door, leaving = object.__new__(WebDoor), list[threading.Thread]()

    class Slow:
        def close(self) -> None: ...

        @property
        def is_current(self) -> bool:
            leaving.append(threading.Thread(target=door.logout, args=(f"{door._name}=b",)))
            leaving[-1].start()
            leaving[-1].join(0.2)
            return True

    door.scheme, door._port, door._lock = "http", 1, threading.Lock()
    door._server = cast(Server, SimpleNamespace(options=SimpleNamespace(idle_seconds=60.0)))
    door._members = {_digest(name): _Member(cast(WebDesk, Slow()), "") for name in "abc"}
    door.tidy()
    for one in leaving:
        one.join()
    assert len(door._members) == 2


def test_the_owners_endpoints_are_not_here(served: Served) -> None:
    member = served.member()
    assert OWNER
    for name in OWNER:
        assert member.status(name) == 404


def test_an_answer_is_charged_to_its_analyst_and_history_is_ones_own(served: Served) -> None:
    ada, ben = served.member(), served.member("ben", BEN)
    secret = "SELECT COUNT(*) AS bens_own_question FROM loan"
    found = ben.ask("run", text=secret)
    assert found["receipt"]["charge"] == "epsilon 0.1"
    ada.ask("run", text=COUNT)
    for name in ("history", "about", "names", "price", "fix"):
        assert "bens_own_question" not in json.dumps(ada.ask(name, text=COUNT))
    assert ben.ask("history")["here"][0]["sql"] == secret
    assert [one["sql"] for one in served.member("ben", BEN).ask("history")["before"]] == [secret]
    assert ada.ask("again", number=1)["sql"] == COUNT


def test_a_price_is_told_and_a_failure_comes_on_the_grid(served: Served) -> None:
    member = served.member()
    assert member.ask("price", text="SELECT AVG(gpa) AS g FROM student WHERE gpa > 3")["now"] == "0.1"
    assert (
        member.ask("fix", text="SELECT gpa FROM student")["fix"]["sql"]
        == "SELECT AVG(gpa) AS gpa FROM student"
    )
    start = time.monotonic()
    assert member.ask("run", text="SELECT gpa FROM student")["refusal"]["code"] == "PV002"
    assert time.monotonic() - start >= 0.1
    start = time.monotonic()
    assert member.ask("run", text="SELECT COUNT(*) FROM student WHERE gpa > 3.9")["state"] == "answered"
    assert time.monotonic() - start >= 0.1


def test_a_hint_is_for_the_analyst(served: Served) -> None:
    hint = served.member().ask("price", text="SELECT SUM(id) FROM student")["refusal"]["hint"]
    assert hint
    assert "policy" not in hint


def test_a_running_statement_is_stopped(served: Served) -> None:
    member = served.member()
    endless = (
        f"SELECT COUNT(*) AS n FROM ({COUNT}) AS t, course AS a, course AS b, course AS c, course AS d, course AS e,"
        " course AS f WHERE (a.id * b.id + c.id * d.id + e.id * f.id + t.n) % 7 = 3"
    )
    found = list[Any]()
    running = threading.Thread(target=lambda: found.append(member.ask("run", text=endless)))
    running.start()
    while running.is_alive():
        member.ask("cancel")
        running.join(0.2)
    assert found[0]["refusal"]["code"] in ("57014", "57V01")


def test_leaving_ends_it(served: Served) -> None:
    member = served.member()
    assert served.request("POST", "/door/logout", {}, **member.headers)[0] == 200
    assert member.status("about") == 403


def test_an_analyst_has_so_many_seats(served: Served) -> None:
    members = [served.member() for _ in range(5)]
    assert [one.status("about") for one in members] == [403, 200, 200, 200, 200]


def test_who_is_not_in_holds_nobody_up(served: Served) -> None:
    member = served.member()
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(_MOST_CONNECTIONS + 50)]
    try:
        start = time.monotonic()
        assert member.status("about") == 200
        assert served.login(ANALYST, PASSWORD)[0] == 200
        assert time.monotonic() - start < 10
    finally:
        for one in silent:
            one.close()


def test_logins_that_wait_give_way_with_their_connections(folder: Path) -> None:
    with serving(folder) as served:
        member, body = served.member(), json.dumps({"user": "ben", "password": "x"})
        head = (
            f"POST /door/login HTTP/1.1\r\nHost: localhost:{served.port}\r\nOrigin: {served.origin}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        for _ in range(_MOST_CONNECTIONS + 200):
            with socket.create_connection(("127.0.0.1", served.port)) as one:
                one.sendall((head + body).encode())
        tasks = Path(f"/proc/{served.process.pid}/task")
        ends = time.monotonic() + 20
        while len(os.listdir(tasks)) > _MOST_CONNECTIONS + 30:
            assert time.monotonic() < ends, "threads of connections that are gone"
            time.sleep(0.2)
        assert member.status("about") == 200


def test_one_analyst_has_so_many_connections(served: Served) -> None:
    ada, ben = served.member(), served.member("ben", BEN)
    held = []
    for _ in range(_MOST_OF_ONE + 8):
        connection = http.client.HTTPConnection("localhost", served.port, timeout=60)
        headers = {name.replace("_", "-"): value for name, value in ada.headers.items()}
        connection.request(
            "POST",
            "/api/about",
            "{}",
            headers | {"Origin": served.origin, "Content-Type": "application/json"},
        )
        reply = connection.getresponse()
        reply.read()
        held.append((connection, reply.status))
    assert [status for _, status in held][-1] == 429
    assert ben.status("about") == 200
    for connection, _ in held:
        connection.close()


def test_another_policy_ends_a_seat(made_once: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made_once, tmp_path / "demo")
    policy = folder / MAIN_POLICY
    with serving(folder) as served:
        member = served.member()
        assert member.status("about") == 200
        policy.write_text(policy.read_text().replace("max_rows   = 60", "max_rows   = 50"))
        served.process.send_signal(signal.SIGHUP)
        ends = time.monotonic() + 60
        while member.status("about") == 200:
            assert time.monotonic() < ends
            time.sleep(0.2)
        assert served.member().status("about") == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate),
    ]  # fmt: skip
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    subprocess.run(command, check=True, capture_output=True)
    os.chmod(key, 0o600)
    return certificate, key


def test_over_tls_the_cookie_is_of_tls_alone(folder: Path, certificate: tuple[Path, Path]) -> None:
    made, key = certificate
    context = ssl.create_default_context(cafile=str(made))
    with serving(folder, "--certificate", str(made), "--key", str(key), context=context) as served:
        member = served.member()
        assert re.match(r"__Host-dpsql_studio_web_\d+=", member.cookie)
        assert member.cookie.endswith("; Secure")
        assert member.ask("price", text=COUNT)["state"] == "priced"
        with socket.create_connection(("127.0.0.1", served.port)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            told = b""
            with suppress(ConnectionResetError):
                told = plain.recv(1000)
            assert b"password" not in told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--web", "0.0.0.0:0"], "takes TLS"),
        (["--web", "nowhere"], "is no address"),
        (["--web", "0", "--workers", "2"], "goes with one worker"),
    ],
)
def test_it_is_not_served_otherwise(folder: Path, options: list[str], said: str) -> None:
    command = [
        sys.executable,
        "-m",
        "dpsql.cli",
        "-P",
        str(folder / MAIN_POLICY),
        "serve",
        "--port",
        "0",
        *options,
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 2
    assert said in " ".join(found.stderr.split())


# --- in a browser ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser")
def test_an_analyst_logs_in_asks_and_leaves(served: Served, tmp_path: Path) -> None:
    with browsing(tmp_path / "profile") as browser:
        for width, scheme in ((360, "dark"), (1440, "light")):
            browser.size(width, 800)
            browser.scheme(scheme)
            browser.open(served.origin)
            until(browser, "document.getElementById('login')")
            check_axe(browser, "login")
            check_layout(browser, width, "login")
            for password in ("wrong", PASSWORD):
                for name, text in (("user", ANALYST), ("password", password)):
                    browser.run(
                        "const one = document.getElementById(arguments[0]); one.value = ''; one.focus()", name
                    )
                    browser.keys(text)
                browser.press("\ue007")
                if password == "wrong":
                    until(browser, "document.getElementById('said')?.textContent === 'The login failed.'")
            until(browser, "document.querySelector('.cm-content')")
            assert browser.run("return document.cookie") == ""
            assert browser.run("return [...document.querySelectorAll('nav a')].map((one) => one.textContent)") == [
                "Ask", "History",
            ]  # fmt: skip
            check_layout(browser, width, "in")
            check_axe(browser, "in")
            browser.run("document.querySelector('.leave').click()")
            until(browser, "document.getElementById('login')")
        assert [one for one in browser.complaints() if "403" not in one] == []
