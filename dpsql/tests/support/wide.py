"""`python -m dpsql.tests.support.wide TIMES.xml SECONDS`: choose what `make test` leaves to `make test-wide`.

A test function may take so many seconds of `make test`. Of one that takes more as many cases stay as fit, a quarter of
them whatever they take, as far apart as may be; `make test-wide` runs the others, and `.ci/run` runs it beside `make
test`: nothing lands untried.
TIMES.xml is the report of a whole run (`pytest -m "not long" --junitxml=TIMES.xml`).

House rule: each file keeps a test, the quickest; so each claim and each law keeps what it names (soundness.md 5.7).
"""

from __future__ import annotations

import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

__all__ = ["PARTS", "Times", "chosen", "read_parts", "read_times", "written"]

ROOT = Path(__file__).parents[3]
PARTS = Path(__file__).with_name("wide.toml")
_PARTS = 4
"""Of so many cases one stays, however long it takes."""
_HEAD = """\
# Of how many cases of a test function `make test` runs how many; `make test-wide` runs the others.
# Written by `python -m dpsql.tests.support.wide` from the times of a whole run (soundness.md 5.7).
"""

Times = Mapping[str, Mapping[str, tuple[float, ...]]]
"""By file, below the project's folder, and by test function the seconds of its cases, in the order of their run."""


def read_times(report: Path) -> Times:
    """Return the times of a run's tests from pytest's report in JUnit's form."""
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for case in ET.parse(report).iter("testcase"):
        file, function = case.attrib["classname"].replace(".", "/") + ".py", case.attrib["name"].split("[")[0]
        of_file = found.setdefault(file, {})
        of_file[function] = (*of_file.get(function, ()), float(case.attrib["time"]))
    return found


def chosen(times: Times, most: float) -> dict[str, dict[str, int]]:
    """Return by file and test function how many cases stay, of those that take more than `most` seconds."""
    parts = {}
    for file, functions in sorted(times.items()):
        quickest = min(functions, key=lambda function: sum(functions[function]))
        least = {function: int(function == quickest) for function in functions}
        wide = {
            function: max(least[function], len(seconds) // _PARTS, int(len(seconds) * most / sum(seconds)))
            for function, seconds in functions.items()
            if sum(seconds) > most
        }
        if wide := {function: stay for function, stay in wide.items() if stay < len(functions[function])}:
            parts[file] = wide
    return parts


def written(parts: Mapping[str, Mapping[str, int]]) -> str:
    """Return what `read_parts` reads."""
    tables = (
        f'\n["{file}"]\n' + "".join(f"{name} = {stay}\n" for name, stay in functions.items())
        for file, functions in parts.items()
    )
    return _HEAD + "".join(tables)


def read_parts() -> dict[str, dict[str, int]]:
    """Return by file and test function how many cases stay in `make test`, where not all of them do."""
    parts: dict[str, dict[str, int]] = tomllib.loads(PARTS.read_text("utf-8"))
    return parts


def main(report: str, seconds: str) -> None:
    parts = chosen(read_times(Path(report)), float(seconds))
    PARTS.write_text(written(parts), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
