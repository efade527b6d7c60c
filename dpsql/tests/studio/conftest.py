"""A studio over a demo university of the test's own, and what a page asks of it."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpsql.cli.demo import MAIN_POLICY, make_folder
from dpsql.engine.dataset import Dataset
from dpsql.studio.desk import Desk
from dpsql.studio.server import StudioServer

ANALYST = "ada"


class Page:
    """What asks a studio as its page does."""

    def __init__(self, server: StudioServer) -> None:
        self.server = server
        self.port = server.server_port
        self.origin = f"http://127.0.0.1:{self.port}"
        self.cookie = self.key = ""

    def request(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Return what is replied to exactly this."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, named)
        reply = connection.getresponse()
        found = reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
        connection.close()
        return found

    def enter(self) -> None:
        """Open the link."""
        _, headers, _ = self.request("GET", self.server.door.link.removeprefix(self.origin))
        self.cookie = headers["set-cookie"].partition(";")[0]
        self.key = headers["location"].removeprefix("/#key=")

    @property
    def headers(self) -> dict[str, str]:
        """What the page sends with each request."""
        return {
            "Cookie": self.cookie,
            "Origin": self.origin,
            "Content_Type": "application/json",
            "X_Dpsql_Key": self.key,
        }

    def ask(self, name: str, /, **body: Any) -> Any:
        """Return what an endpoint replies."""
        status, _, found = self.request("POST", f"/api/{name}", body, **self.headers)
        assert status == 200, found
        return json.loads(found)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("university") / "demo"
    assert make_folder(folder, fresh=False)
    return folder


@pytest.fixture
def campus(made_once: Path, tmp_path: Path) -> Path:
    """The policy of a demo of the test's own, with nothing spent yet."""
    return shutil.copytree(made_once, tmp_path / "demo") / MAIN_POLICY


@pytest.fixture
def dataset(campus: Path) -> Iterator[Dataset]:
    dataset = Dataset.open(campus)
    yield dataset
    dataset.close()


@pytest.fixture
def desk(dataset: Dataset) -> Iterator[Desk]:
    desk = Desk(dataset, ANALYST)
    yield desk
    desk.close()


@pytest.fixture
def server(desk: Desk) -> Iterator[StudioServer]:
    server = StudioServer(0, desk)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def standing(made_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, Dataset]]:
    """A page, and its dataset, for the tests of a module that charge nothing and change nothing."""
    policy = shutil.copytree(made_once, tmp_path_factory.mktemp("standing") / "demo") / MAIN_POLICY
    with closing(Dataset.open(policy)) as dataset, closing(Desk(dataset, ANALYST)) as desk:
        server = StudioServer(0, desk)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        page = Page(server)
        page.enter()
        yield page, dataset
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def page(server: StudioServer) -> Page:
    """A page that has come in by the link."""
    page = Page(server)
    page.enter()
    return page
