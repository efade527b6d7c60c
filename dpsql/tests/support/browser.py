"""A real browser for tests: Debian's chromium, without a screen, steered by its driver (W3C WebDriver)."""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Browser", "browsing", "missing"]

_ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--no-proxy-server",
)  # fmt: skip
_SECONDS = 120
_FOCUSED = "return document.activeElement"


def missing() -> str:
    """Return why there is no browser to test with; empty where there is one."""
    names = ("chromium", "chromedriver")
    lacking = [name for name in names if shutil.which(name) is None]
    return f"needs {' and '.join(lacking)} (Debian: chromium, chromium-driver)" if lacking else ""


class Browser:
    """One window."""

    def __init__(self, port: int, session: str) -> None:
        self._port, self._path = port, f"/session/{session}"

    def open(self, address: str) -> None:
        """Load a page, and wait for it."""
        self._ask("/url", {"url": address})

    def run(self, script: str, *arguments: object) -> Any:
        """Return what JavaScript returns: `return document.title`."""
        return self._ask("/execute/sync", {"script": script, "args": list(arguments)})

    def keys(self, keys: str) -> None:
        """Type, into what has the focus."""
        ((_, element),) = self.run(_FOCUSED).items()
        self._ask(f"/element/{element}/value", {"text": keys})

    def tab(self) -> None:
        """Move the focus on by the keyboard."""
        pressed = [{"type": kind, "value": "\ue004"} for kind in ("keyDown", "keyUp")]
        self._ask("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": pressed}]})

    def size(self, width: int, height: int) -> None:
        """Have a screen of so many pixels, a telephone's as well."""
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": screen})

    def scheme(self, name: str) -> None:
        """Have a person prefer `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self._ask(
            "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}
        )

    def press(self, key: str, *held: str) -> None:
        """Press a key while others are held."""
        down = [{"type": "keyDown", "value": one} for one in (*held, key)]
        up = [{"type": "keyUp", "value": one} for one in (key, *reversed(held))]
        self._ask("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": [*down, *up]}]})

    def picture(self) -> bytes:
        """Return what is seen, as a PNG."""
        found = self._ask("/goog/cdp/execute", {"cmd": "Page.captureScreenshot", "params": {"format": "png"}})
        return base64.b64decode(found["data"])

    def complaints(self) -> list[str]:
        """Return what the console has said since the last time: errors, and what the page may not load."""
        return [one["message"] for one in self._ask("/se/log", {"type": "browser"})]

    def close(self) -> None:
        """Close the window."""
        _request(self._port, "DELETE", self._path, None)

    def _ask(self, path: str, body: dict[str, object]) -> Any:
        return _request(self._port, "POST", self._path + path, body)


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """Start a browser with an empty profile."""
    command = ["chromedriver", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as driver:
        try:
            port = _port_of(driver)
            arguments = [*_ARGUMENTS, f"--user-data-dir={profile}"]
            wanted = {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
            made = _request(port, "POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            browser = Browser(port, made["sessionId"])
            try:
                yield browser
            finally:
                browser.close()
        finally:
            driver.terminate()


def _port_of(driver: subprocess.Popen[str]) -> int:
    assert driver.stdout is not None
    for line in driver.stdout:
        if "started successfully on port" in line:
            return int(line.rstrip(".\n").rpartition(" ")[2])
    raise AssertionError("chromedriver did not start")


def _request(port: int, method: str, path: str, body: dict[str, object] | None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    connection.request(method, path, None if body is None else json.dumps(body))
    reply = connection.getresponse()
    value = json.loads(reply.read())["value"]
    connection.close()
    assert reply.status == 200, value
    return value
