"""The manual as a site: `make docs` writes it to `build/site`, with a search, a page for each code of an error, and what
Python code imports, from its docstrings.

The pages are those of `dpsql docs`; this only lays them out for Zensical: the README is the first page, the notebook is
read as text, and each section of `errors.md` is a page of its own beside the whole. Nothing is fetched when a page is
read: fonts are the reader's, scripts are those of the theme's own wheel.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import dpsql
from dpsql.cli.docs import TOPICS, parts_of, read_part, read_section, read_topic
from dpsql.errors import CODES

__all__ = ["lay_out", "make"]

ROOT = Path(__file__).parents[3]
_DOCS = ROOT / "dpsql" / "docs"
_FIRST, _NAMES = (f"{name}.md" for name in ("index", "api"))
"""The first page, and that of the names that Python code imports."""
_LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")


def lay_out(folder: Path) -> Path:
    """Write the pages and the generator's settings to a folder that is there; return the settings' file."""
    pages = folder / "docs"
    for topic in TOPICS:
        _write(pages / f"{topic}.md", read_topic(topic))
        for part in parts_of(topic):
            _write(pages / topic / f"{part}.md", read_part(topic, part))
    shutil.copytree(_DOCS / "pictures", pages / "pictures")
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"):
        _write(pages / f"{name}.md", _from_the_root((ROOT / f"{name}.md").read_text("utf-8")))
    _write(pages / _FIRST, _from_the_root((ROOT / "README.md").read_text("utf-8")))
    for code in CODES:
        _write(pages / "errors" / f"{code}.md", _error_page(code))
    _write(pages / _NAMES, _api())
    settings = folder / "mkdocs.yml"
    settings.write_text(json.dumps(_settings(), indent=1), encoding="utf-8")  # JSON is YAML
    return settings


def make(target: Path) -> None:
    """Write the site to `target`, which it takes the place of. Raises CalledProcessError: a page names what is not there."""
    work = target.with_name(f"{target.name}-pages")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    settings = lay_out(work)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(settings)]
    subprocess.run(command, cwd=work, check=True)
    shutil.rmtree(target, ignore_errors=True)
    (work / "site").rename(target)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _from_the_root(text: str) -> str:
    """Return a page of the repository's root with its links as the site has them; a file that is no page is no link."""

    def link(found: re.Match[str]) -> str:
        target = found[1].removeprefix("dpsql/docs/").replace(".ipynb", ".md")
        return f"]({target.replace('README.md', _FIRST)})" if target != "LICENSE" else f"]({_FIRST})"

    return _LINK.sub(link, text)


def _error_page(code: str) -> str:
    said = read_section("errors", code)
    assert said is not None, code
    title, _, body = said.removeprefix("## ").partition("\n")
    body = _LINK.sub(lambda found: f"](../{found[1]})", body)
    return f"# {title}\n{re.sub('^### ', '## ', body, flags=re.MULTILINE)}"


def _api() -> str:
    """Return the page of the names that the package gives, from their docstrings."""
    parts = ["# Python's names, from their docstrings\n"]
    homes = {name: f"dpsql.{home}" for home, names in dpsql._HOMES.items() for name in names}
    for name in dpsql.__all__:
        home = homes.get(name, "dpsql.dbapi")
        if getattr(getattr(dpsql, name), "__doc__", None) and callable(getattr(dpsql, name)):
            parts.append(f"::: {home}.{name}\n    options:\n      show_root_heading: true\n")
    return "\n".join(parts)


def _settings() -> dict[str, object]:
    def of(topic: str) -> object:
        below: list[object] = [{_below(topic, part): f"{topic}/{part}.md"} for part in parts_of(topic)]
        if topic == "errors":
            below = [f"errors/{code}.md" for code in CODES]
        return {_heading(topic): [f"{topic}.md", *below] if below else f"{topic}.md"}

    return {
        "site_name": "dpsql",
        "docs_dir": "docs",
        "site_dir": "site",
        "use_directory_urls": False,
        "theme": {
            "name": "material",  # as Zensical calls its own too
            "font": False,
            "features": ["navigation.indexes", "navigation.top", "search.highlight", "search.suggest", "content.code.copy"],
            "palette": [
                {
                    "media": f"(prefers-color-scheme: {scheme})", "scheme": name,
                    "toggle": {"icon": f"material/weather-{icon}", "name": f"to {other}"},
                }
                for scheme, name, icon, other in (
                    ("light", "default", "sunny", "dark"), ("dark", "slate", "night", "light"),
                )
            ],
        },
        "plugins": [
            "search",
            {"mkdocstrings": {"handlers": {"python": {
                "paths": [str(ROOT)],
                "options": {"show_source": False, "heading_level": 2, "docstring_style": "google"},
            }}}},
        ],
        "markdown_extensions": ["tables", "fenced_code", "sane_lists", "pymdownx.superfences", {"toc": {"permalink": True}}],
        "validation": {"links": {"anchors": "warn", "not_found": "warn", "unrecognized_links": "warn"}},
        "nav": [_FIRST, *map(of, TOPICS), _NAMES, "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"],
    }  # fmt: skip


def _heading(topic: str) -> str:
    return read_topic(topic).split("\n", 1)[0].removeprefix("# ").partition(":")[0]


def _below(topic: str, part: str) -> str:
    """Return what a part's heading says after its document's name, as a line of the contents."""
    said = read_part(topic, part).split("\n", 1)[0].partition(": ")[2]
    return said[:1].upper() + said[1:]


if __name__ == "__main__":
    make(ROOT / "build" / "site")
