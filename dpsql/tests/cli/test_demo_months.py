"""`dpsql demo --month`: a month that arrives has a budget of its own, and what was told of those before stays."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.plan.privacy.time import Clock
from dpsql.policy import Period
from dpsql.policy.periods import last_closed, period_text


def demo(*arguments: str) -> Result:
    return CliRunner().invoke(program, ["demo", *arguments])


def move_clock(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    at = Clock.at.__func__  # type: ignore[attr-defined]
    by = timedelta(days=days)
    monkeypatch.setattr(
        Clock, "at", classmethod(lambda cls, time, now, **how: at(cls, time, now + by, **how))
    )


def budget(text: str) -> dict[str, str]:
    """Return what is spent by months, as the walk told it last."""
    last = text[text.rindex("What is left") :]
    return dict(re.findall(r"^  (\d{4}-\d\d(?: to \d{4}-\d\d)?) +([\d.]+) of 2 spent", last, re.MULTILINE))


def told(text: str) -> dict[str, str]:
    """Return the number of each month, the first time that it is told."""
    found: dict[str, str] = {}
    for month, number in re.findall(r"^  (\d{4}-\d\d)  (\d+ ± \d+)", text, re.MULTILINE):
        found.setdefault(month, number)
    return found


def loans(folder: Path) -> dict[str, int]:
    with duckdb.connect(str(folder / "library.duckdb"), read_only=True) as database:
        rows: list[Any] = database.execute(
            "SELECT strftime(loaned_on, '%Y-%m'), COUNT(*) FROM loan GROUP BY 1"
        ).fetchall()
    return dict(rows)


def names(last: int, count: int) -> list[str]:
    return [period_text(Period.MONTH, number) for number in range(last - count + 1, last + 1)]


def test_a_month_arrives_with_its_own_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "library"
    last = last_closed(Period.MONTH, "UTC", timedelta(days=3), datetime.now(UTC))
    *old, new = names(last, 4)
    walked = demo("--month", str(folder))
    assert walked.exit_code == 0, walked.output
    text = walked.stdout
    assert max(len(line) for line in text.splitlines() if str(folder) not in line) <= 80
    first = told(text)
    assert [*first] == [*old, new]
    assert f"refused: {old[0]} to {old[-1]} have epsilon 0.1 left of 2, and this" in text
    for month in old[1:]:
        assert f"  {month}  {first[month]}  as before\n" in text
    assert f"  {new}  {first[new]}  new\n  charged for the new ones alone: epsilon 0.1\n" in text
    assert budget(text) == {f"{old[0]} to {old[2]}": "1.9", new: "0.7"}
    truths = loans(folder)
    assert [*sorted(truths)] == names(last, 6)
    assert all(abs(int(number.split()[0]) - truths[month]) < 1200 for month, number in first.items())

    again = demo("--month", str(folder))
    assert again.exit_code == 0, again.output
    assert f"The newest month is {new}, and no other has closed since" in again.stdout
    assert budget(again.stdout) == budget(text), "to look costs nothing"

    move_clock(monkeypatch, 31)
    later = demo("--month", str(folder))
    assert later.exit_code == 0, later.output
    newest = names(last + 1, 1)[0]
    assert f"{newest} is over: its {loans(folder)[newest]:,} loans are there." in later.stdout
    assert told(later.stdout)[new] == first[new], "what was told of a month stays"
    assert f"{first[new]}  as before\n" in later.stdout
    assert re.search(
        rf"^  {newest}  \d+ ± \d+  new\n  charged for the new ones alone: epsilon 0.1$", later.stdout, re.M
    )
    assert budget(later.stdout)[f"{new} to {newest}"] == "0.7"
    assert {month: count for month, count in loans(folder).items() if month != newest} == truths


def test_a_folder_with_anything_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    refused = demo("--month", "--fresh", str(tmp_path))
    assert refused.exit_code == 2
    assert "thesis.tex" in refused.stderr
    (tmp_path / "file").write_text("")
    assert demo("--month", str(tmp_path / "file")).exit_code == 2
    assert demo("--month", "--serve", str(tmp_path / "x")).exit_code == 2
    assert not (tmp_path / "x").exists()
