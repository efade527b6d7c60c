"""The studio as README and manual show it, photographed in a real browser over the demo: `make studio`."""

from __future__ import annotations

import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

from dpsql.cli.demo import MAIN_POLICY, make_folder
from dpsql.engine.dataset import Dataset
from dpsql.studio.desk import Desk
from dpsql.studio.server import StudioServer

from .browser import Browser, browsing
from .make_pictures import PICTURES

__all__ = ["NAME"]

NAME = "studio.png"
_ASKED = "SELECT major, COUNT(*) AS n, AVG(gpa) AS mean FROM student GROUP BY major ORDER BY n DESC"
_TYPED = "SELECT semester, AVG(grade) AS mean FROM enrolment WHERE course_id <= 60 GROUP BY semester"
_CONTROL, _ENTER, _ESCAPE = "\ue009", "\ue007", "\ue00c"


def main() -> None:
    """Ask one statement, type another, and take the picture."""
    with tempfile.TemporaryDirectory(prefix="dpsql-studio-") as name:
        folder = Path(name, "demo")
        make_folder(folder, fresh=False)
        with closing(Dataset.open(folder / MAIN_POLICY)) as dataset, closing(Desk(dataset, "ada")) as desk:
            server = StudioServer(0, desk)
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            with browsing(Path(name, "profile")) as browser:
                PICTURES.joinpath(NAME).write_bytes(_taken(browser, server.door.link))
            server.shutdown()
            server.server_close()
            thread.join()


def _taken(browser: Browser, link: str) -> bytes:
    browser.size(1280, 900)
    browser.open(link)
    _until(browser, "document.querySelector('.cm-content')")
    _type(browser, _ASKED)
    browser.press(_ENTER, _CONTROL)
    _until(browser, "document.querySelector('.answers .answer svg')")
    _type(browser, _TYPED)
    _until(browser, "document.querySelector('.price').innerText.includes('mean')")
    time.sleep(1)
    return browser.picture()


def _type(browser: Browser, text: str) -> None:
    browser.run("document.querySelector('.cm-content').focus()")
    browser.press("a", _CONTROL)
    browser.keys(text)
    browser.press(_ESCAPE)
    browser.run("document.querySelector('.cm-content').focus()")
    time.sleep(0.5)


def _until(browser: Browser, condition: str) -> None:
    while not browser.run(f"return Boolean({condition})"):
        time.sleep(0.05)


if __name__ == "__main__":
    main()
