"""The manual's notebook is run, cell by cell, and shows what it says."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dpsql

from .documents import MANUAL, text

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
CELLS = json.loads(MANUAL["notebook"].read_text("utf-8"))["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a cell has printed, and the value of its last line."""

    printed: str
    value: Any

    @property
    def html(self) -> str:
        found = self.value._repr_html_()
        assert isinstance(found, str)
        return found


def run_cell(source: str, names: dict[str, object]) -> Shown:
    """Run a cell as a notebook does."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102 (our own manual)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307 (as above)
    return Shown(printed.getvalue(), value)


def run_all(names: dict[str, object]) -> dict[str, Shown]:
    """Run the notebook in the current folder, but for its last cell; return what cells show by their source."""
    shown = {}
    for cell in CODE[:-1]:
        source = "".join(cell["source"])
        if "matplotlib" in cell["metadata"].get("tags", []):
            drawn(source, names)
        else:
            shown[source] = run_cell(source, names)
    return shown


def drawn(source: str, names: dict[str, object]) -> None:
    """Run a cell with a picture: drawn where there is something to draw with, a clear error elsewhere."""
    if not HAS_MATPLOTLIB:
        with pytest.raises(dpsql.NotSupportedError, match="pip install matplotlib"):
            run_cell(source, names)
        return
    import matplotlib

    matplotlib.use("agg")
    axes = run_cell(source, names).value
    axes.figure.canvas.draw()
    assert axes.containers, "there are whiskers"
    matplotlib.pyplot.close(axes.figure)


def test_the_notebook_runs_and_shows_what_it_says(reader: Path) -> None:
    names: dict[str, Any] = {}
    shown = run_all(names)

    def of(mark: str) -> Shown:
        (found,) = (one for source, one in shown.items() if mark in source)
        return found

    assert "student" in of("dpsql.connect").html
    assert [row.table_name for row in of("SHOW TABLES").value] == [
        "student",
        "loan",
        "enrolment",
        "review",
        "course",
    ]
    assert "step 0.01; COUNT, SUM, AVG" in of("DESCRIBE").html
    assert " ± 30</td>" in of("by_major = ").html
    assert "charged epsilon 0.1; 8.1 left" in of("by_major = ").html
    assert of("for row in by_major").printed.startswith("Biology ")
    assert str(of("for row in by_major").value).startswith("free: answered from stored releases")
    assert len(of("by_month = ").value.fetchall()) == 12
    assert "IN (&#x27;CS&#x27;, &#x27;EE&#x27;)" in of("campus.explain").html
    (median,) = of("COUNT(gpa)").value.fetchall()
    assert 2 <= median.median_low <= median.median <= median.median_high <= 4
    assert of("epsilon=0.02").value.receipt.epsilon * 50 == 1
    assert "chosen for ± 50" in of("accuracy=50").html
    assert of("campus.budget").value.endswith(" of 10 epsilon left")
    assert of("except").printed.startswith("PV005 at ")
    assert 10 < of("AVG(loans)").value.answer.rows[0][0] < 20
    run_cell("".join(CODE[-1]["source"]), names)
    assert names["campus"].closed


def test_the_notebook_is_stored_without_answers() -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CODE)
    assert len({cell["id"] for cell in CELLS}) == len(CELLS)


def test_it_is_shown_as_text_too() -> None:
    assert text("notebook").startswith("# Notebook: ")
    assert text("notebook").count("```python\n") == len(CODE)
