"""A wire between a client and a Postgres that can be cut at a commit."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import parse_qs, urlsplit

_COMMIT = b"COMMIT\x00"
"""As a client sends the statement, and as the server says that it is done."""


class Relay:
    """Passes bytes from a loopback port on to a server's Unix socket; `url` is for its clients."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self._target = f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://{parts.username}@127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        self._reaches: bool | None = None
        self.cuts = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def cut_at_commit(self, *, reaches: bool) -> None:
        """Close both ends at the next commit: before the server has it, or when it has answered and nobody heard."""
        self._reaches = reaches

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        is_cut, answer = False, b""
        with client, server, selectors.PollSelector() as ends, suppress(OSError):
            for end in (client, server):
                ends.register(end, selectors.EVENT_READ)
            while _COMMIT not in answer:
                ready = [key.fileobj for key, _ in ends.select()]
                if client in ready:
                    said = client.recv(65536)
                    if _COMMIT in said and self._reaches is not None:
                        reaches, self._reaches = self._reaches, None
                        self.cuts += 1
                        is_cut = True
                        if not reaches:
                            return
                    if not said:
                        return
                    server.sendall(said)
                if server in ready:
                    heard = server.recv(65536)
                    if not heard:
                        return
                    if is_cut:
                        answer += heard
                    else:
                        client.sendall(heard)
