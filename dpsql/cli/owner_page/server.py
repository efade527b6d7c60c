"""Serves the page on this machine, to whoever has the link.

House rules:

1. It listens on the loopback alone. A request must name it as its host, so that no page of elsewhere reaches it under
   a name of its own (DNS rebinding).
2. The link's token is compared in constant time and becomes a cookie at once, so that it stays out of history and of
   what is sent on. The cookie is another secret, for this page alone: SameSite=Strict, HttpOnly. A browser sends the
   cookies of a host to all of its ports, on which others may listen: so it is for a path that nobody else knows.
3. GET alone: nothing can be changed here.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from ...errors import DpsqlError
from .write import content_security_policy, text

__all__ = ["PageServer"]

HOST = "127.0.0.1"
_SECONDS = 10


class PageServer(ThreadingHTTPServer):
    """A server of one page; `write` makes it anew for each request. Raises OSError where the port is taken."""

    daemon_threads = True

    def __init__(self, port: int, write: Callable[[], str]) -> None:
        super().__init__((HOST, port), _Handler)
        self.write = write
        self.token, self.session = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.path = f"/{secrets.token_urlsafe(16)}/"

    @property
    def link(self) -> str:
        """The address with the token."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The cookie's name: a browser has the cookies of all ports together."""
        return f"dpsql_page_{self.server_port}"

    def is_host(self, host: str | None) -> bool:
        """Say whether a request's host is this server."""
        return host in (f"{HOST}:{self.server_port}", f"localhost:{self.server_port}")

    def handle_error(self, *_: object) -> None:
        """Say nothing of a browser that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = _SECONDS
    server_version = "dpsql"
    sys_version = ""

    def do_GET(self) -> None:
        if not self.server.is_host(self.headers.get("Host")):
            self._say(421, "This server goes by another name.")
            return
        address = urlsplit(self.path)
        is_page = _same(address.path, self.server.path)
        if address.path != "/" and not is_page:
            self._say(404, "There is one page here: open the link that dpsql page has printed.")
            return
        token = parse_qs(address.query).get("token", [""])[0]
        if token:
            if _same(token, self.server.token):
                self._reply(303, "", Location=self.server.path, Set_Cookie=self._fresh_cookie())
            else:
                self._say(403, "This link is of another run; take the one that dpsql page has printed.")
        elif not is_page or not _same(self._cookie(), self.server.session):
            self._say(403, "Open the link that dpsql page has printed.")
        else:
            self._page()

    def _page(self) -> None:
        try:
            self._reply(200, self.server.write())
        except DpsqlError as error:
            self._say(503, error.message)

    def _fresh_cookie(self) -> str:
        return (
            f"{self.server.cookie}={self.server.session}; Path={self.server.path}; HttpOnly; SameSite=Strict"
        )

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    def _say(self, status: int, words: str) -> None:
        self._reply(
            status, f"<!doctype html><html lang='en'><title>dpsql</title><p>{text(words)}</p></html>\n"
        )

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no GET, or no HTTP, without telling it back."""
        self._say(405 if code == 501 else code, "This page is only read.")

    def _reply(self, status: int, body: str, **headers: str) -> None:
        content = body.encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": str(len(content)),
            "Content-Security-Policy": f"{content_security_policy()}; frame-ancestors 'none'",
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            **({"Allow": "GET"} if status == 405 else {}),
            **headers,
        }.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep quiet: the link's token is in what would be told."""


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), wanted.encode())
