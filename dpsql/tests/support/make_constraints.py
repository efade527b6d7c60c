"""Makes `dpsql/constraints.txt` anew: `make constraints`, after the tests have passed with what is installed.

House rules:

1. The versions are those installed here, of what dpsql needs to run, and of nothing else.
2. The hashes are what the package index that pip is set up for says of each file, asked by pip; no file is fetched
   to be hashed here, and neither the index nor its address is written down.
3. Wheels alone: who installs by this file runs no package's build.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["PATH", "make", "needed"]

PATH = Path(__file__).parents[2] / "constraints.txt"

_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_LINUX = (
    "manylinux_2_28",
    "manylinux_2_27",
    "manylinux_2_26",
    "manylinux_2_24",
    "manylinux_2_17",
    "manylinux2014",
)
_PLATFORMS = {
    "Linux, x86-64": tuple(f"{tag}_x86_64" for tag in _LINUX),
    "Linux, ARM": tuple(f"{tag}_aarch64" for tag in _LINUX),
    "macOS, ARM": ("macosx_15_0_arm64",),
}
_HEAD = """\
# The versions that dpsql was tested with, and the sha256 of their files: made by `make constraints`, not by hand.
# For Python {pythons} on {platforms}. To install just these:
#   pip install --require-hashes --only-binary :all: -r constraints.txt
#   pip install --no-deps <the wheel of dpsql>
"""


def needed(name: str = "dpsql", extras: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the installed version of each package that one needs to run, itself left out."""
    found: dict[str, str] = {}
    for text in metadata.requires(name) or ():
        requirement = Requirement(text)
        environments = [{"extra": extra} for extra in (*extras, "")]
        if requirement.marker and not any(requirement.marker.evaluate(one) for one in environments):
            continue
        key = canonicalize_name(requirement.name)
        if key not in found:
            found[key] = metadata.version(key)
        if key != canonicalize_name(name):
            deeper = needed(key, frozenset(requirement.extras))
            found |= {other: version for other, version in deeper.items() if other != canonicalize_name(name)}
    return found


def make() -> None:
    """Write the file. Raises CalledProcessError where the index lacks a file for one of the platforms."""
    versions = needed()
    hashes: dict[str, set[str]] = {name: set() for name in versions}
    for python in _PYTHONS:
        for tags in _PLATFORMS.values():
            for name, digest in _ask(versions, python, tags).items():
                hashes[name].add(digest)
    lines = [_HEAD.format(pythons=", ".join(_PYTHONS), platforms="; ".join(_PLATFORMS))]
    for name in sorted(versions):
        digests = " \\\n".join(f"    --hash=sha256:{digest}" for digest in sorted(hashes[name]))
        lines.append(f"{name}=={versions[name]} \\\n{digests}\n")
    PATH.write_text("".join(lines), encoding="ascii")


def _ask(versions: dict[str, str], python: str, tags: tuple[str, ...]) -> dict[str, str]:
    """Return the sha256 of the file of each package that pip would take."""
    with tempfile.TemporaryDirectory() as nowhere:
        command = [
            sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--no-deps",
            "--only-binary", ":all:", "--python-version", python, "--implementation", "cp",
            *(word for tag in tags for word in ("--platform", tag)), "--target", nowhere, "--report", "-",
            *(f"{name}=={version}" for name, version in versions.items()),
        ]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    taken = json.loads(done.stdout)["install"]
    return {
        canonicalize_name(one["metadata"]["name"]): one["download_info"]["archive_info"]["hashes"]["sha256"]
        for one in taken
    }


if __name__ == "__main__":
    make()
