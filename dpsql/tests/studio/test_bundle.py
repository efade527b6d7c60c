"""What the studio ships of others: the file that was made of what is pinned, with their licences."""

from __future__ import annotations

import hashlib
import json

from ..support.make_studio import BUNDLE, LICENCES, SOURCE

SHA256 = "3a4d5090e1ca911a3a376ecf203e06c927661044c377f90d2e209e16d925c033"


def test_the_bundle_is_the_one_that_was_made_and_looked_at() -> None:
    assert hashlib.sha256(BUNDLE.read_bytes()).hexdigest() == SHA256, "make studio, and its sha256 here"


def test_it_evaluates_no_text_and_asks_nobody() -> None:
    text = BUNDLE.read_text("utf-8")
    assert not any(
        word in text for word in ("eval(", "new Function", "importScripts", "XMLHttpRequest", "fetch(")
    )


def test_each_package_is_pinned_and_has_its_licence() -> None:
    wanted = json.loads((SOURCE / "package.json").read_text("utf-8"))
    assert all(
        version[0].isdigit() for version in {**wanted["dependencies"], **wanted["devDependencies"]}.values()
    )
    lock = json.loads((SOURCE / "package-lock.json").read_text("utf-8"))["packages"]
    shipped = {path: one for path, one in lock.items() if path and not one.get("dev")}
    assert set(wanted["dependencies"]) <= {path.removeprefix("node_modules/") for path in shipped}
    licences = LICENCES.read_text("utf-8")
    for path, package in shipped.items():
        assert f"\n{path.removeprefix('node_modules/')} {package['version']}\n---" in licences
        assert package["license"] in ("MIT", "ISC", "BSD-3-Clause")
        assert package["integrity"].startswith("sha512-")
        assert "resolved" not in package, "where it was had from is everybody's own"
