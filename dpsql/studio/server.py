"""The studio over HTTP: who may come in, what is sent with every reply, and which endpoint answers.

House rules:

1. Nothing is served before the host, and nothing but a new link before the cookie, was looked at (`desk.Door`).
2. Where a request ends is said once and in one way (`_is_whole`): a proxy in front that saw its end elsewhere would
   send what one person wrote as the beginning of another's.
3. What is told of an error is a `DpsqlError`'s own words. Of a fault of dpsql's own it is told that there was one.

A group of endpoints is a module with `ENDPOINTS`. What one is sent is JSON that a page has made: `Body` reads it, and
what is not as it should be is a BadRequest.
"""

from __future__ import annotations

import json
import secrets
import socket
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from ..errors import DpsqlError
from . import pricing, running, spending
from .desk import BadRequest, Body, Desk, LoopbackDoor, Seat, refusal

Endpoint = Callable[[Seat, Body], Mapping[str, Any]]

ANALYST: Mapping[str, Endpoint] = MappingProxyType({**pricing.ENDPOINTS, **running.ENDPOINTS})
"""Each analyst's, of what is theirs."""

OWNER: Mapping[str, Endpoint] = MappingProxyType(spending.ENDPOINTS)
"""Of who has the policy file in hand."""


def endpoint_for(seat: Seat, name: str) -> Endpoint | None:
    """Return the endpoint of a name that this seat has; None where there is none."""
    found = ANALYST.get(name)
    return OWNER.get(name) if found is None and seat.is_owner else found


_HOST = "127.0.0.1"
_SECONDS = 60
_MOST_BYTES = 1 << 20
_MOST_OF_STRANGERS = 4096
_TYPES = MappingProxyType({"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"})


def _listed(folder: str) -> list[str]:
    found = []
    for one in files(__package__).joinpath("page", folder).iterdir():
        if one.name.rpartition(".")[2] in _TYPES:
            found.append(f"{folder}/{one.name}" if folder else one.name)
    return found


ASSETS = frozenset((*_listed(""), *_listed("views"), *_listed("vendor")))
"""What the page is made of, by its path below /page/."""


def asset(name: str) -> bytes:
    """Return a file of the page."""
    return files(__package__).joinpath("page", *name.split("/")).read_bytes()


class Door(Protocol):
    """What decides who comes in."""

    scheme: str

    def is_host(self, host: str | None) -> bool:
        """Say whether a request's host is this server."""
        ...

    def open(self, token: str) -> tuple[str, str] | None:
        """Return the cookie for a link's token, and where the page goes on; None: it is none, or was used."""
        ...

    def seat(self, cookies: str) -> Seat | None:
        """Return whose seat a request's cookies are; None: nobody's."""
        ...

    def asks(self, cookies: str, key: str) -> Seat | None:
        """Return whose seat asks something: it has brought the key as well."""
        ...


class PageServer(ThreadingHTTPServer):
    """Serves the page, and what it asks, to whom a door lets in.

    `stranger`: the page of who is not in; None: a sentence. `shown`: files that it needs. `acts`: what it may post.
    """

    daemon_threads = True
    door: Door
    stranger: str | None = None
    shown: frozenset[str] = frozenset()

    def act(
        self, connection: socket.socket, name: str, cookies: str, body: Body
    ) -> tuple[dict[str, object], str] | None:
        """Return what is replied to a stranger's post, and the cookie that goes with it; None: there is none such."""
        return None

    def let_in(self, connection: socket.socket, seat: Seat) -> bool:
        """Take note that a connection is of somebody who is in; False where they have too many at once."""
        return True

    def handle_error(self, *_: object) -> None:
        """Say nothing of a browser that went away; of a fault its kind alone, since its text may hold anything."""
        kind = sys.exc_info()[0]
        if kind is not None and not issubclass(kind, OSError):
            self.tell(f"dpsql met a bug ({kind.__name__}) in the studio")

    def tell(self, line: str) -> None:
        """Tell whoever runs it."""
        sys.stderr.write(f"{line}\n")


class StudioServer(PageServer):
    """The studio of one owner's desks on this machine, each of a policy. Raises OSError where the port is taken."""

    def __init__(self, port: int, *desks: Desk) -> None:
        super().__init__((_HOST, port), Handler)
        self.door: LoopbackDoor = LoopbackDoor(Seat(desks[0], True, desks), self.server_port)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: PageServer
    timeout = _SECONDS
    protocol_version = "HTTP/1.1"
    wbufsize, disable_nagle_algorithm = -1, True  # a reply is one packet, which waits for none
    server_version = "dpsql"
    sys_version = ""

    def do_GET(self) -> None:
        if not self._is_here():
            return
        address = urlsplit(self.path)
        token = parse_qs(address.query).get("token", [""])[0]
        if address.path == "/" and token:
            self._open(token)
        elif self._seat() is None and (name := address.path.removeprefix("/page/")) in self.server.shown:
            self._reply(200, asset(name), _TYPES[name.rpartition(".")[2]])
        elif self._seat() is None and address.path == "/" and self.server.stranger is not None:
            self._reply(200, asset(self.server.stranger), "text/html")
        elif self._seat() is None:
            self._say(403, "Open the link that dpsql studio has printed.")
        elif address.path == "/":
            nonce = secrets.token_urlsafe(16)
            page = asset("index.html").decode().replace("{{nonce}}", nonce)
            self._reply(200, page.encode(), "text/html", nonce)
        elif (name := address.path.removeprefix("/page/")) in ASSETS:
            self._reply(200, asset(name), _TYPES[name.rpartition(".")[2]])
        else:
            self._say(404, "There is nothing here.")

    def do_POST(self) -> None:
        if not self._is_here():
            return
        if not self._is_own_page():
            self._refuse(403, "another page has sent this")
            return
        path = urlsplit(self.path).path
        if path.startswith("/door/"):
            self._act(path.removeprefix("/door/"))
            return
        seat = self.server.door.asks(self.headers.get("Cookie", ""), self.headers.get("X-Dpsql-Key", ""))
        if seat is None:
            self._refuse(403, "you are not in: open the link that dpsql studio has printed, or log in again")
            return
        if not self.server.let_in(self.connection, seat):
            self._refuse(429, "you ask too much at once")
            return
        chosen = seat.at(self.headers.get("X-Dpsql-Desk", "0"))
        endpoint = endpoint_for(seat, path.removeprefix("/api/"))
        if endpoint is None or chosen is None:
            self._refuse(404, "there is nothing here")
            return
        try:
            found = endpoint(chosen, self._body())
        except BadRequest:
            self._refuse(400, "this is not what the page sends")
        except DpsqlError as error:
            self._json(200, {"error": refusal(error, None, is_owner=seat.is_owner)})
        else:
            self._json(200, found)

    def _act(self, name: str) -> None:
        """Have somebody come in, or leave."""
        try:
            body = self._body(_MOST_OF_STRANGERS)
            found = self.server.act(self.connection, name, self.headers.get("Cookie", ""), body)
        except BadRequest:
            self._refuse(400, "this is not what the page sends")
            return
        if found is None:
            self._refuse(403, "the login failed")
            return
        reply, cookie = found
        self._reply(200, json.dumps(reply).encode(), "application/json", headers={"Set-Cookie": cookie})

    # --- what is looked at first -----------------------------------------------------------------------------

    def _is_here(self) -> bool:
        if not self.server.door.is_host(self.headers.get("Host")):
            self._say(421, "This server goes by another name.")
        elif not self._is_whole():
            self._say(400, "This is not answered here.")
        else:
            return True
        return False

    def _is_whole(self) -> bool:
        """Say whether a request ends where anybody who reads it says it does: a GET with its head."""
        lengths, hosts = (self.headers.get_all(name, []) for name in ("Content-Length", "Host"))
        has_one = len(lengths) <= 1 and len(hosts) <= 1
        is_plain = "Transfer-Encoding" not in self.headers and not self.headers.defects
        return has_one and is_plain and (self.command == "POST" or lengths in ([], ["0"]))

    def _is_own_page(self) -> bool:
        """Say whether a request comes from this page: a browser says truly where a POST comes from."""
        own = f"{self.server.door.scheme}://{self.headers.get('Host')}"
        is_json = self.headers.get("Content-Type", "").partition(";")[0].strip() == "application/json"
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        return self.headers.get("Origin") == own and site == "same-origin" and is_json

    def _seat(self) -> Seat | None:
        return self.server.door.seat(self.headers.get("Cookie", ""))

    def _open(self, token: str) -> None:
        opened = self.server.door.open(token)
        if opened is not None:
            cookie, place = opened
            self._reply(303, b"", "text/html", headers={"Location": place, "Set-Cookie": cookie})
        elif self._seat() is not None:
            self._reply(303, b"", "text/html", headers={"Location": "/"})
        else:
            self._say(403, "This link is of another run, or was used; dpsql studio prints a new one.")

    def _body(self, most: int = _MOST_BYTES) -> Body:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()) or int(length) > most:
            self.close_connection = True
            raise BadRequest
        try:
            return Body(json.loads(self.rfile.read(int(length))))
        except (ValueError, RecursionError):
            raise BadRequest from None

    # --- what is replied -------------------------------------------------------------------------------------

    def _json(self, status: int, content: object) -> None:
        self._reply(status, json.dumps(content).encode(), "application/json")

    def _refuse(self, status: int, words: str) -> None:
        self.close_connection = True
        self._json(status, {"error": {"code": "", "message": words}})

    def _say(self, status: int, words: str) -> None:
        self.close_connection = True
        text = f"<!doctype html><html lang='en'><title>dpsql studio</title><p>{words}</p></html>\n"
        self._reply(status, text.encode(), "text/html")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no HTTP, or another method, without telling it back."""
        self._say(405 if code == 501 else code, "This is not answered here.")

    def _reply(
        self,
        status: int,
        content: bytes,
        kind: str,
        nonce: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        styles = "'self'" if nonce is None else f"'self' 'nonce-{nonce}'"
        policy = (
            f"default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self'; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(content)),
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            **({"Connection": "close"} if self.close_connection else {}),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep quiet: the link's token is in what would be told."""
