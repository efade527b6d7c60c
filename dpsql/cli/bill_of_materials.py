"""What is installed beside dpsql, as a software bill of materials: CycloneDX 1.6, in JSON, with licences.

It is made of what the installer has recorded of each package in this environment. Its own libraries make such bills of
lock files and need a dozen packages for it, which would be in every bill then.
"""

from __future__ import annotations

import platform
import re
import sqlite3
import ssl
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

__all__ = ["bill_of_materials"]

_NAME = re.compile(r"[\w.-]+")
_CLASSIFIER = "License :: "
_LONGEST_NAME = 80
"""Characters of a field "License" that is a name; longer ones are whole texts."""


def bill_of_materials() -> dict[str, Any]:
    """Return the bill: every package of this environment with its licence, what each depends on, and what Python is
    built with.
    """
    found = {_normal(one.metadata["Name"]): one for one in metadata.distributions() if one.metadata["Name"]}
    parts = {name: _component(name, one) for name, one in sorted(found.items())}
    own = parts.pop("dpsql", {"type": "application", "bom-ref": "dpsql", "name": "dpsql"})
    own["type"] = "application"
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {"timestamp": datetime.now(UTC).isoformat(timespec="seconds"), "component": own},
        "components": [*parts.values(), *_built_in()],
        "dependencies": [
            {"ref": _reference(name, one), "dependsOn": sorted(set(_needs(one, found)))}
            for name, one in sorted(found.items())
        ],
    }


def _component(name: str, one: metadata.Distribution) -> dict[str, Any]:
    reference = _reference(name, one)
    body: dict[str, Any] = {"type": "library", "bom-ref": reference, "name": one.metadata["Name"]}
    body |= {"version": one.version, "purl": reference}
    if licences := _licences(one):
        body["licenses"] = licences
    return body


def _licences(one: metadata.Distribution) -> list[dict[str, Any]]:
    """Return a package's licences as it states them: an SPDX expression, else names."""
    if expression := _field(one, "License-Expression"):
        return [{"expression": expression}]
    classified = [
        text.removeprefix(_CLASSIFIER).removeprefix("OSI Approved :: ")
        for text in one.metadata.get_all("Classifier") or ()
        if text.startswith(_CLASSIFIER) and text != f"{_CLASSIFIER}OSI Approved"
    ]
    stated = " ".join(_field(one, "License").split())
    names = classified or ([stated] if stated and len(stated) <= _LONGEST_NAME else [])
    return [{"license": {"name": name}} for name in dict.fromkeys(names)]


def _field(one: metadata.Distribution, name: str) -> str:
    return (one.metadata[name] or "") if name in one.metadata else ""


def _needs(one: metadata.Distribution, found: dict[str, metadata.Distribution]) -> Iterator[str]:
    """Yield the references of what a package requires, as far as it is here: optional parts count if they are."""
    for requirement in one.requires or ():
        match = _NAME.match(requirement)
        name = _normal(match[0]) if match else ""
        if name in found and found[name] is not one:
            yield _reference(name, found[name])


def _built_in() -> Iterator[dict[str, Any]]:
    """Yield what is no package: Python, and the libraries that it was built with and that dpsql uses."""
    openssl = re.match(r"(\S+) (\S+)", ssl.OPENSSL_VERSION)
    for kind, name, version in (
        ("platform", platform.python_implementation(), platform.python_version()),
        ("library", "SQLite", sqlite3.sqlite_version),
        ("library", *(openssl.groups() if openssl else ("OpenSSL", ssl.OPENSSL_VERSION))),
    ):
        yield {"type": kind, "bom-ref": f"built-in:{name}@{version}", "name": name, "version": version}


def _reference(name: str, one: metadata.Distribution) -> str:
    """Return a package's URL, by which a bill's readers know it."""
    return f"pkg:pypi/{name}@{one.version}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
