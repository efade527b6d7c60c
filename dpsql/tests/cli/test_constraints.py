"""The versions that the promise rests on: bounded in pyproject.toml, pinned by hash, and warned of beyond."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from dpsql.backends import postgres_connection
from dpsql.cli import check
from dpsql.errors import PolicyError
from dpsql.tests.support.make_constraints import PATH, needed
from dpsql.tests.support.postgres_server import find_servers

from .conftest import Run

ROOT = Path(__file__).parents[3]
DECLARED = {
    canonicalize_name(requirement.name): requirement
    for requirement in map(
        Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    )
}
TRUSTED = ("sqlglot", "duckdb", "psycopg")
"""What reads the statement, runs it, and brings its values."""


def pins() -> dict[str, tuple[str, list[str]]]:
    """Return the version and the hashes of each package in the file."""
    found = {}
    for block in re.split(r"\n(?=[a-z])", PATH.read_text("ascii").split("\n\n")[-1]):
        if match := re.match(r"([a-z0-9-]+)==([0-9.]+) \\\n", block):
            found[match[1]] = (match[2], re.findall(r"--hash=sha256:([0-9a-f]{64})", block))
    return found


def ceiling(name: str) -> str:
    (most,) = [one.version for one in DECLARED[name].specifier if one.operator == "<="]
    return str(most)


def test_all_that_dpsql_needs_to_run_is_pinned_and_nothing_else() -> None:
    assert set(pins()) == set(needed())
    assert set(DECLARED) <= set(pins())


def test_each_pin_is_inside_the_declared_bounds_and_has_hashes() -> None:
    for name, (version, hashes) in pins().items():
        assert hashes, name
        assert len(set(hashes)) == len(hashes), name
        if name in DECLARED:
            assert version in DECLARED[name].specifier, name
    compiled = {name for name, (_, hashes) in pins().items() if len(hashes) >= 3}
    assert compiled >= {"duckdb", "numpy", "psycopg-binary", "sqlglotc"}, "a file for each platform"


@pytest.mark.parametrize("name", TRUSTED)
def test_the_ceiling_is_the_version_that_is_pinned_and_tested(name: str) -> None:
    assert ceiling(name) == pins()[name][0]
    assert Version(metadata.version(name)) <= Version(ceiling(name)), (
        "raise it: make test-all, make constraints"
    )


def test_the_file_says_nothing_of_where_the_packages_are() -> None:
    text = PATH.read_text("ascii")
    assert not re.search(r"://|\.(org|com|io|net|dev|whl)\b|^-[ief]", text, re.MULTILINE)


def test_what_is_newer_than_tested_is_warned_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = [str(requirement) for requirement in DECLARED.values()]
    monkeypatch.setattr(check.metadata, "requires", lambda name: declared)
    assert list(check.untested()) == []
    real = metadata.version
    monkeypatch.setattr(check.metadata, "version", lambda name: "99.1.0" if name == "sqlglot" else real(name))
    sentence = f"sqlglot 99.1.0 is installed, and dpsql is tested up to {ceiling('sqlglot')}"
    assert list(check.untested()) == [sentence]
    assert f"warning: this installation: {sentence}" in run("check").stdout


def test_an_optional_part_that_is_not_installed_is_no_fault(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = metadata.version
    declared = [one for one in metadata.requires("dpsql") or [] if "pyspark" in one]
    assert declared, "no optional part with a ceiling is left to ask for"

    def version(name: str) -> str:
        if name == "pyspark-client":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(check.metadata, "version", version)
    assert list(check.untested()) == []
    assert run("check").exit_code == 0


def test_the_tests_run_on_the_majors_that_are_called_tested() -> None:
    majors = {found.major for found in find_servers()}
    tested_majors = range(postgres_connection.OLDEST_TESTED, postgres_connection.NEWEST_TESTED + 1)
    assert majors <= set(tested_majors)


@pytest.mark.parametrize(
    ("version", "is_asked"), [(120018, False), (130000, True), (180003, True), (190000, False)]
)
def test_a_server_beyond_the_tested_majors_is_not_asked(version: int, is_asked: bool) -> None:
    class Info:
        server_version = version

        def parameter_status(self, name: str) -> str:
            return "UTF8"

    class Connection:
        info = Info()

    if is_asked:
        postgres_connection.check_connection(Connection())  # type: ignore[arg-type]  # what is looked at
        return
    with pytest.raises(PolicyError, match=r"is Postgres 1[29]; 13 to 18 can be asked"):
        postgres_connection.check_connection(Connection())  # type: ignore[arg-type]  # as above
