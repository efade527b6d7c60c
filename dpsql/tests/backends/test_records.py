"""What an owner's command says where Spark's client is not installed."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from pathlib import Path
sys.modules["pyspark"] = None
from dpsql.backends.pinned_files import differences, take
from dpsql.errors import PolicyError
from dpsql.policy.model import FileSources
files = FileSources(Path("."), {"t": ()}, Path("no-such-record.json"))
for act in (take, lambda *all_: differences(*all_, is_whole=False)):
    try:
        act("spark://127.0.0.1", files, "x.toml")
    except PolicyError as error:
        print(error.hint)
"""


def test_without_the_client_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == 'pip install "dpsql[spark]"\n' * 2
