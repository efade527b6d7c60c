"""Every reference to a document names one of the repository, and a heading that is there.

A reference is a document's name and, for soundness.md, perhaps sections after it: numbers of headings (1.9) in any of
its chapters, items of the numbered list below one (1.14(5)), attacks (D01); or a law (L5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.cli.docs import parts_of, read_section

from .documents import DOCUMENTS, MANUAL, ROOT, text

HERE = Path(__file__).parent
SECTION = r"(?:[0-9]+(?:\.[0-9]+)?(?:\([0-9]+\))?|[A-G][0-9]{2})(?![\w.]*[\w])"
NAMED = re.compile(rf"([\w-]+)\.md\b((?:(?:,? and|,|)\s+(?:#\s*)?{SECTION})*)")
LAW = re.compile(r"\bL[0-9]+\b")


def sources() -> Iterator[Path]:
    for top in ("dpsql", "grammar_tests", "benchmarks"):
        for path in (ROOT / top).rglob("*"):
            if path.suffix in (".py", ".case", ".toml", ".sql") and HERE not in path.parents:
                yield path
    yield from (ROOT / "Makefile", ROOT / "pyproject.toml")


def sections() -> dict[str, str]:
    """Return the text below each numbered heading of soundness.md, by its number."""
    parts = re.split(r"^#{2,3} ([0-9]+(?:\.[0-9]+)?) .*$", text("soundness"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


SECTIONS = sections()
PARTS = {part for topic in MANUAL for part in parts_of(topic)}
ATTACKS = set(re.findall(r"^\| ((?:[A-G][0-9]{2}(?:, )?)+) \|", text("soundness"), re.MULTILINE))
LAWS = set(re.findall(r"^### (L[0-9]+) ", text("soundness"), re.MULTILINE))


def leads_somewhere(section: str) -> bool:
    """Say whether a section of soundness.md is there: a heading, an item below one, or an attack."""
    if section[0].isalpha():
        return any(section in row.split(", ") for row in ATTACKS)
    number, _, item = section.partition("(")
    below = SECTIONS.get(number)
    return below is not None and (not item or f"\n{item.rstrip(')')}. " in below)


def faults(source: str) -> list[str]:
    """Return the references of a text that lead nowhere."""
    found = []
    for match in NAMED.finditer(source):
        name, named = match[1], re.findall(SECTION, match[2])
        if name not in DOCUMENTS and name not in PARTS and not (ROOT / f"{name}.md").exists():
            found.append(f"{name}.md")
        elif named and name != "soundness":
            found.append(match[0])
        else:
            found += [f"{name}.md {section}" for section in named if not leads_somewhere(section)]
    return found + [law for law in LAW.findall(source) if law not in LAWS]


def test_every_reference_leads_somewhere() -> None:
    lost = {
        str(path.relative_to(ROOT)): wrong for path in sources() if (wrong := faults(path.read_text("utf-8")))
    }
    assert not lost


def test_the_contents_of_soundness_are_its_chapters() -> None:
    """Each chapter stands there with all of its numbered sections, in their order."""
    folder = ROOT / "dpsql" / "docs" / "soundness"
    listed = re.findall(
        r"^\| \[(\w+)\]\(soundness/\1\.md\) \| .* \| (.*?) ?\|$", (folder.parent / "soundness.md").read_text("utf-8"), re.M
    )  # fmt: skip
    assert {name: numbers.split(", ") if numbers else [] for name, numbers in listed} == {
        path.stem: re.findall(r"^#{2,3} ([0-9]+(?:\.[0-9]+)?) ", path.read_text("utf-8"), re.M)
        for path in folder.glob("*.md")
    }


def test_the_laws_are_ten() -> None:
    assert {f"L{number}" for number in range(1, 11)} == LAWS


@pytest.mark.parametrize(
    "reference",
    [
        "soundness.md 1.99",
        "soundness.md 1.9 and 8",
        "soundness.md 1.14(9)",
        "soundness.md 4.4, D99",
        "elsewhere.md",
        "law L11",
    ],
)
def test_a_lost_reference_is_seen(reference: str) -> None:
    assert faults(f"as it is said ({reference}): so")


@pytest.mark.parametrize(
    "reference",
    [
        "soundness.md 1.9 and 1.11: x",
        "soundness.md 4.4, D01 and D03",
        "soundness.md 2.2(4).",
        "law L9",
        "README.md",
    ],
)
def test_a_reference_is_found(reference: str) -> None:
    assert NAMED.search(reference) or LAW.search(reference)
    assert not faults(f"as it is said ({reference})")


FOLDERS = "|".join(sorted(path.name for path in (ROOT / "dpsql").iterdir() if path.is_dir()))
NAMED_FILE = re.compile(rf"`((?:dpsql|grammar_tests|{FOLDERS})/[\w/*.-]+)`(?:, `([\w.]+)`)?")


def missing(body: str) -> list[str]:
    """Return what is not there of the files that a document names, and of the functions and classes named after one."""
    found = []
    for pattern, name in NAMED_FILE.findall(body):
        base = ROOT if pattern.startswith(("dpsql/", "grammar_tests/")) else ROOT / "dpsql"
        paths = list(base.glob(pattern))
        if not paths:
            found.append(pattern)
        elif name and pattern.endswith(".py"):
            defined = set(
                re.findall(r"\b(?:def|class) (\w+)", "".join(path.read_text("utf-8") for path in paths))
            )
            found += [f"{pattern}, {name}"] if not set(name.split(".")) <= defined else []
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_references_within_a_document(name: str) -> None:
    """Sections in parentheses in soundness.md, what `dpsql docs` is said to show, and files that are named."""
    body = text(name)
    named = re.findall(r"\(([1-5]\.\d{1,2})(?:, rule \d)?\)", body) if name == "soundness" else []
    assert all(leads_somewhere(part) for part in named)
    for topic, part in re.findall(r"`dpsql docs ([a-z-]+)(?: ([^`]+))?`", body):
        known = topic in MANUAL and (not part or part in parts_of(topic) or read_section(topic, part))
        assert topic == "search" or known, (topic, part)
    assert not missing(body)


@pytest.mark.parametrize("lost", ["`plan/nowhere.py`", "`plan/measures/measurements.py`, `sensitivity_of`"])
def test_a_lost_file_or_function_is_seen(lost: str) -> None:
    assert missing(f"See {lost}: it says how.")


PAGES = {
    name: path
    for name, path in [
        *DOCUMENTS.items(),
        *(
            (f"{topic}/{part}", MANUAL[topic].parent / topic / f"{part}.md")
            for topic in MANUAL
            for part in parts_of(topic)
        ),
    ]
    if path.suffix == ".md"
}


def anchors(path: Path) -> set[str]:
    """Return what a link into a document may end in: its headings, as GitHub makes anchors of them."""
    plain = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", plain, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    path = PAGES[name]
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
        if not target.startswith("https://"):
            file, _, anchor = target.partition("#")
            found = path.parent / file if file else path
            assert found.exists(), target
            assert not anchor or anchor in anchors(found), target
