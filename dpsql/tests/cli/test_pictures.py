"""The pictures of README and manual are what the program's own code makes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from ..docs.documents import ROOT
from ..support.make_pictures import PICTURES, pictures

SEEN = {"superset-band.png", "plotly-bars.png", "vega-band.png", "ggplot-bars.png", "studio.png"}
"""What tools themselves have drawn, photographed by `make tools`; and the studio, by `make studio`."""


def test_the_committed_pictures_are_made_by_the_code(made_once: Path) -> None:
    made = pictures(made_once / "campus.duckdb")
    assert {path.name for path in PICTURES.iterdir()} == set(made) | SEEN
    wrong = [name for name, svg in made.items() if (PICTURES / name).read_text("utf-8") != svg]
    assert wrong == [], "make pictures"


def test_they_stand_alone() -> None:
    for path in PICTURES.glob("*.svg"):
        root = ET.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.get("aria-label")
        assert not re.search(r"<script|href|url\(|@import", path.read_text("utf-8"))


def test_photographs_are_small() -> None:
    assert all((PICTURES / name).stat().st_size < 200_000 for name in SEEN)


def test_each_is_shown_with_words_for_who_cannot_see_it() -> None:
    shown = {}
    for document in (ROOT / "README.md", *PICTURES.parent.rglob("*.md")):
        for words, name in re.findall(
            r"!\[([^\]]+)\]\((?:dpsql/docs/|\.\./)?pictures/([\w.-]+)\)", document.read_text("utf-8")
        ):
            shown[name] = words
    assert set(shown) == {path.name for path in PICTURES.iterdir()}
    assert all(len(words) > 20 for words in shown.values())
