"""`make studio`: the editor and the charts of `dpsql studio` as one file, with the licences of what is in it.

From the packages that `studio_bundle/package-lock.json` pins, by esbuild; the same ones give the same bytes, whose
sha256 a test holds. Nothing of it is fetched when dpsql runs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["BUNDLE", "LICENCES", "SOURCE"]

SOURCE = Path(__file__).with_name("studio_bundle")
_VENDOR = Path(__file__).parents[2] / "studio" / "page" / "vendor"
BUNDLE, LICENCES = _VENDOR / "vendor.js", _VENDOR / "LICENSES.txt"
_OPTIONS = (
    "--bundle",
    "--minify",
    "--format=esm",
    "--target=es2022",
    "--legal-comments=none",
    "--charset=utf8",
)


def main() -> None:
    """Install what is pinned in a temporary folder, and bundle it."""
    with tempfile.TemporaryDirectory(prefix="dpsql-studio-") as name:
        folder = Path(name, "bundle")
        shutil.copytree(SOURCE, folder)
        subprocess.run(
            ["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder, check=True
        )
        esbuild = folder / "node_modules" / ".bin" / "esbuild"
        made = folder / "vendor.js"
        subprocess.run([esbuild, "entry.js", *_OPTIONS, f"--outfile={made}"], cwd=folder, check=True)
        _VENDOR.mkdir(exist_ok=True)
        shutil.copyfile(made, BUNDLE)
        LICENCES.write_text(_licences(folder), "utf-8")


def _licences(folder: Path) -> str:
    """Return the licence of each package that is in the bundle, in the order of their names."""
    lock = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
    parts = ["vendor.js holds these packages, unchanged but for their names being shortened:\n"]
    for path, package in sorted(lock.items()):
        if path and not package.get("dev"):
            licence = next(iter(sorted((folder / path).glob("LICENSE*")))).read_text("utf-8").strip()
            title = f"{path.removeprefix('node_modules/')} {package['version']}"
            parts.append(f"{title}\n{'-' * len(title)}\n\n{licence}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main()
