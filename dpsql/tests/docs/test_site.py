"""The manual as a site: every link leads somewhere, every code has its page, and a reader's browser fetches nothing else."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

import dpsql
from dpsql.cli.docs import TOPICS, parts_of
from dpsql.errors import CODES
from dpsql.tests.support.make_site import lay_out, make


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    lay_out(folder)
    return folder / "docs"


def test_every_page_is_in_the_contents_once(pages: Path) -> None:
    settings = json.loads((pages.parent / "mkdocs.yml").read_text("utf-8"))

    def below(entry: object) -> list[str]:
        if isinstance(entry, dict):
            return below(list(entry.values()))
        return [file for one in entry for file in below(one)] if isinstance(entry, list) else [str(entry)]

    listed = below(settings["nav"])
    there = sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.md"))
    assert sorted(listed) == there
    wanted = {f"{topic}.md" for topic in TOPICS} | {
        f"{topic}/{part}.md" for topic in TOPICS for part in parts_of(topic)
    }
    assert wanted | {f"errors/{code}.md" for code in CODES} <= set(there)


def test_every_link_leads_to_a_page_or_a_picture(pages: Path) -> None:
    missing = [
        (page.name, target)
        for page in pages.rglob("*.md")
        for target in re.findall(
            r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)", re.sub(r"(?s)```.*?```", "", page.read_text("utf-8"))
        )
        if not (page.parent / target).exists()
    ]
    assert missing == []


def test_a_code_has_a_page_with_its_section(pages: Path) -> None:
    page = (pages / "errors" / "PV005.md").read_text("utf-8")
    assert page.startswith("# PV005 ")
    assert len(re.findall(r"^# ", re.sub(r"(?s)```.*?```", "", page), re.MULTILINE)) == 1


def test_the_page_of_python_names_each_class_and_function(pages: Path) -> None:
    page = (pages / "api.md").read_text("utf-8")
    for name in ("Session", "Answer", "Receipt", "DpsqlError", "connect", "randomize", "Cursor"):
        (home,) = re.findall(rf"^::: (dpsql[\w.]*)\.{name}$", page, re.MULTILINE)
        assert hasattr(importlib.import_module(home), name)


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="the group `docs` is not installed")
def test_the_site_is_whole(tmp_path: Path) -> None:
    site = tmp_path / "site"
    make(site)
    assert {f"{code}.html" for code in CODES} == {path.name for path in (site / "errors").iterdir()}
    found = json.dumps(json.loads((site / "search.json").read_text("utf-8")))
    assert all(code in found for code in CODES)
    assert "Where parallel composition fails" in found
    api = (site / "api.html").read_text("utf-8")
    assert f'id="dpsql.engine.{dpsql.Session.__name__}"' in api
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)=[\"']?(https?://[^\"' >]+)",
            page.read_text("utf-8"),
        )
        assert loaded == [], page
