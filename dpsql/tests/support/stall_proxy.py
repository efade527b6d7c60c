"""A network between a client and a real Postgres that falls silent in the middle: nothing is closed, nothing passes.

What was sent meanwhile comes through once it speaks again, as it would after a router's pause.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from contextlib import suppress
from typing import Self
from urllib.parse import parse_qs, urlsplit

__all__ = ["StallProxy"]


class StallProxy:
    """Passes bytes from a loopback port on to a server's Unix socket; `url` is for its clients."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self._target = f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}"
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"postgresql://{parts.username}@127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        self._speaks = threading.Event()
        self._speaks.set()
        self._ended = False
        self._markers: list[bytes] = []
        self._reaches, self._closes = True, False
        self._left: int | None = None
        self._drip: float | None = None
        self._lock = threading.Lock()
        self._clients: set[socket.socket] = set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended = True
        self.resume()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def stall(self) -> None:
        """Fall silent now. New connections are taken, and hear nothing."""
        self._speaks.clear()

    def stall_at(self, *markers: bytes, reaches: bool = True, closes: bool = False) -> None:
        """Fall silent when clients have said all of these, in order.

        `reaches`: the server still hears the last; `closes`: it closes its half of all connections then.
        """
        self._markers, self._reaches, self._closes = list(markers), reaches, closes

    def stall_after(self, size: int) -> None:
        """Fall silent once the server has said so many bytes more."""
        self._left = size

    def drip(self, pause: float) -> None:
        """From now on let the server's bytes through one by one, with a pause before each."""
        self._drip = pause

    def resume(self) -> None:
        """Speak again."""
        self._markers = []
        self._left = self._drip = None
        self._speaks.set()

    def half_close(self) -> None:
        """Say nothing more on the connections that are there, as a peer does that has closed its half of each."""
        self.stall()
        for client in list(self._clients):
            with suppress(OSError):
                client.shutdown(socket.SHUT_WR)

    @property
    def is_silent(self) -> bool:
        """Whether it has fallen silent."""
        return not self._speaks.is_set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        self._speaks.wait()
        server = socket.socket(socket.AF_UNIX)
        self._clients.add(client)
        with client, server, selectors.PollSelector() as ends, suppress(OSError):
            server.connect(self._target)
            for end in (client, server):
                ends.register(end, selectors.EVENT_READ)
            while not self._ended:
                ready = [key.fileobj for key, _ in ends.select(0.2)]
                if client in ready:
                    said = client.recv(65536)
                    if not said:
                        return
                    self._to_server(server, said)
                if server in ready:
                    heard = server.recv(65536)
                    if not heard:
                        self._speaks.wait()
                        return
                    self._to_client(client, heard)

    def _to_server(self, server: socket.socket, said: bytes) -> None:
        with self._lock:
            rest, waits = said, bool(self._markers)
            while self._markers and self._markers[0] in rest:
                rest = rest.partition(self._markers.pop(0))[2]
            meets = waits and not self._markers
            if meets and not self._reaches:
                self.stall()
        self._speaks.wait()
        server.sendall(said)
        if meets and self._reaches:
            self.stall()
            if self._closes:
                self.half_close()

    def _to_client(self, client: socket.socket, heard: bytes) -> None:
        with self._lock:
            if self._left is not None:
                first, heard = heard[: self._left], heard[self._left :]
                self._left -= len(first)
                client.sendall(first)
                if self._left == 0:
                    self._left = None
                    self.stall()
        self._speaks.wait()
        if self._drip is None:
            client.sendall(heard)
            return
        for place in range(len(heard)):
            pause = self._drip
            if pause is not None and not self._ended:
                time.sleep(pause)
            client.sendall(heard[place : place + 1])
