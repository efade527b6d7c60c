"""Who comes in: by the link, once, from this page alone, under this server's own name."""

from __future__ import annotations

import re

import pytest

from dpsql.engine.dataset import Dataset
from dpsql.studio.desk import Seat
from dpsql.studio.server import ANALYST, ASSETS, OWNER, StudioServer, endpoint_for

from .conftest import Page

JSON = "application/json"


def path_of(server: StudioServer) -> str:
    return server.door.link.partition(str(server.server_port))[2]


def test_the_link_opens_once_and_becomes_a_cookie_that_no_script_has(server: StudioServer) -> None:
    page = Page(server)
    assert page.request("GET", "/")[0] == 403
    assert page.request("GET", "/?token=x")[0] == 403
    status, headers, _ = page.request("GET", path_of(server))
    assert status == 303
    assert re.fullmatch(r"/#key=[\w-]{43}", headers["location"])
    assert re.fullmatch(
        rf"dpsql_studio_{page.port}=[\w-]{{43}}; Path=/; HttpOnly; SameSite=Strict", headers["set-cookie"]
    )
    status, headers, _ = page.request("GET", path_of(server))
    assert status == 403
    assert "set-cookie" not in headers


def test_who_is_in_may_open_the_link_again(page: Page) -> None:
    status, headers, _ = page.request("GET", path_of(page.server), Cookie=page.cookie)
    assert (status, headers["location"], headers.get("set-cookie")) == (303, "/", None)


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/api/about"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}"]
)
def test_nothing_is_served_under_another_name(standing: tuple[Page, Dataset], path: str, host: str) -> None:
    page, _ = standing
    for method in ("GET", "POST"):
        status, _, body = page.request(
            method, path, {}, Host=host.format(port=page.port), Cookie=page.cookie, Origin=page.origin,
            Content_Type=JSON,
        )  # fmt: skip
        assert status == 421
        assert b"campus" not in body


@pytest.mark.parametrize(
    "changed",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://localhost:1"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_no_other_page_asks_anything(standing: tuple[Page, Dataset], changed: dict[str, str]) -> None:
    page, _ = standing
    usual = page.headers
    assert page.request("POST", "/api/about", {}, **usual)[0] == 200
    status, _, body = page.request("POST", "/api/about", {}, **(usual | changed))
    assert status == 403
    assert b"ada" not in body


def test_the_cookie_alone_which_other_ports_see_shows_the_empty_page(page: Page) -> None:
    assert page.request("GET", "/", Cookie=page.cookie)[0] == 200
    for key in ("", page.key[:-1], page.cookie.partition("=")[2]):
        status, _, body = page.request("POST", "/api/about", {}, **(page.headers | {"X_Dpsql_Key": key}))
        assert status == 403
        assert b"campus" not in body
    for path in ("/", "/page/main.js", "/page/api.js"):
        assert page.key.encode() not in page.request("GET", path, Cookie=page.cookie)[2]
    status, headers, _ = page.request("GET", path_of(page.server), Cookie=page.cookie)
    assert page.key not in headers["location"]


def test_without_the_cookie_there_is_nothing(page: Page) -> None:
    for cookie in ("", page.cookie[:-1], f"dpsql_studio_{page.port}=", "dpsql_studio_1=x", "="):
        headers = page.headers | {"Cookie": cookie}
        assert page.request("POST", "/api/about", {}, **headers)[0] == 403
        assert page.request("GET", "/page/main.js", Cookie=cookie)[0] == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"])
def test_other_methods_are_refused(standing: tuple[Page, Dataset], method: str) -> None:
    page, _ = standing
    assert page.request(method, "/api/about", Cookie=page.cookie, Origin=page.origin)[0] == 405


def test_files_of_the_page_alone_are_served(page: Page) -> None:
    for name in ASSETS:
        status, headers, body = page.request("GET", f"/page/{name}", Cookie=page.cookie)
        assert status == 200
        assert body
        assert headers["x-content-type-options"] == "nosniff"
    for name in (
        "../server.py",
        "views/../../server.py",
        "%2e%2e/server.py",
        "vendor/LICENSES.txt",
        "",
        "index.html",
    ):
        assert page.request("GET", f"/page/{name}", Cookie=page.cookie)[0] == 404


def test_the_policy_of_the_page_has_no_inline_script_and_nothing_of_elsewhere(page: Page) -> None:
    _, headers, body = page.request("GET", "/", Cookie=page.cookie)
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == policy["img-src"] == "'self'"
    nonce = re.fullmatch(r"'self' 'nonce-([\w-]+)'", policy["style-src"])
    assert nonce
    assert f'data-nonce="{nonce[1]}"'.encode() in body
    assert b"<style" not in body
    assert not re.search(rb"<script(?![^>]* src=)| on\w+=|https?:", body)
    assert nonce[1] not in page.request("GET", "/", Cookie=page.cookie)[1]["content-security-policy"]


@pytest.mark.parametrize(
    "body", [[], "text", None, {"text": 1}, {"text": "SELECT 1", "controls": {"reuse": "off"}}]
)
def test_what_the_page_does_not_send_is_refused(page: Page, body: object) -> None:
    assert page.request("POST", "/api/price", body, **page.headers)[0] == 400


def test_the_owners_endpoints_are_of_the_owners_seat_alone(page: Page) -> None:
    desk = page.server.door.seat(page.cookie)
    assert desk is not None
    assert desk.is_owner
    analyst = Seat(desk.desk, is_owner=False)
    for name in OWNER:
        assert endpoint_for(analyst, name) is None
        assert endpoint_for(desk, name) is not None
    assert not set(OWNER) & set(ANALYST)
