"""node's `pg`: parameters as text without a type, dates as JavaScript writes them, named statements, pools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ..conftest import PASSWORD, Served
from ..test_channel import Pair
from .conftest import SLOW, VALUES

_HERE = Path(__file__).parent
_FOLDERS = [_HERE.parents[3] / ".venv" / "node" / "node_modules"]
_FOLDERS += [Path(folder) for folder in os.environ.get("NODE_PATH", "").split(os.pathsep) if folder]
_MODULES = next((folder for folder in _FOLDERS if (folder / "pg").is_dir()), None)
pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or _MODULES is None,
    reason="needs node, and `npm install --prefix .venv/node pg`",
)


@pytest.fixture
def found(served: Served, pair: Pair | None) -> dict[str, Any]:
    done = subprocess.run(
        ["node", _HERE / "client.js", str(served.port), PASSWORD, SLOW, "tls" if pair else ""],
        env={"NODE_PATH": str(_MODULES), "PATH": os.environ["PATH"], "TZ": "UTC"},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


def test_node(spent: Callable[[], Decimal], found: dict[str, Any], pair: Pair | None) -> None:
    for name in VALUES:
        assert found.pop(f"parameter {name}") == [[1]], name
        assert found.pop(f"null {name}") == []
    row = found.pop("row")[0]
    assert row[:9] == [1, 1, 2, "9007199254740993", "12.50", 1.5, 0.1, True, "ä 'quoted'"]
    if pair is not None:
        assert found.pop("tls") == [{"a": 1}]
    assert found == {
        "date": [[1]],
        "date before": [[1]],
        "untyped": [{"a": "1", "b": "x", "c": 3}],
        "limit": [["3"], ["4"]],
        "several": [[{"a": 1}], [{"b": 2}]],
        "named": True,
        "notices": ["charged epsilon 0.1", "free: answered before"],
        "error": {"code": "42501", "rule": "PV002", "position": "8", "hint": True},
        "block": "COMMIT",
        "many": 20000,
        "timeout": {"code": "57014", "hint": True},
        "pool": 1,
    }
    assert spent() == Decimal("0.2")
