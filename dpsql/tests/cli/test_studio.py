"""`dpsql studio --export`: what the report shows is the ledger's and the policy's; and that the studio is served."""

from __future__ import annotations

import html
import http.client
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dpsql.studio.report import Day, forecast_of
from dpsql.tests.support.forked import Forked

from .conftest import Run, length_of_log

HOSTILE = "SELECT COUNT(*) FROM student -- </script><script>document.title = 'taken'</script>\u202e"


def exported(run: Run, campus: Path) -> str:
    file = campus.parent / "report.html"
    result = run("studio", "--export", str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert file.stat().st_mode & 0o777 == 0o600
    return file.read_text("utf-8")


def bench_data(page: str) -> dict[str, object]:
    found = re.search('id="bench-data">(.*?)</script>', page)
    assert found
    body: dict[str, object] = json.loads(found[1])
    return body


@contextmanager
def serving(campus: Path) -> Iterator[tuple[str, int]]:
    """Serve in a process of its own; give the link and the port. It ends with exit code 0 on Ctrl-C."""
    command = ["-m", "dpsql.cli", "-P", str(campus), "studio"]
    with Forked(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout
            link = process.stdout.readline().strip()
            yield link, urlsplit(link).port or 0
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
    assert process.returncode == 0


def ask(port: int, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers=headers)
    reply = connection.getresponse()
    reply.read()
    connection.close()
    return reply


def test_it_is_served_until_ctrl_c_and_charges_nothing(campus: Path) -> None:
    before = length_of_log(campus)
    with serving(campus) as (link, port):
        opened = ask(port, link.partition(str(port))[2])
        own = (opened.getheader("Set-Cookie") or "").partition(";")[0]
        assert ask(port, "/", Cookie=own).status == 200
    assert length_of_log(campus) == before


def test_what_it_shows_is_the_ledgers(run: Run, campus: Path) -> None:
    assert "Nothing was charged yet." in exported(run, campus)
    assert run("query", "--epsilon", "0.3", HOSTILE).exit_code == 0
    assert run("query", "SELECT AVG(fee) FROM loan").exit_code == 0
    before = length_of_log(campus)
    page = exported(run, campus)
    assert length_of_log(campus) == before
    assert "<dd>9.6 <small>96 % of 10</small></dd>" in page
    assert "<dd>0.4 <small>in 2 charges</small></dd>" in page
    assert (
        "<strong>2 stored releases</strong> answer again at no charge. They were charged epsilon 0.4" in page
    )
    first, second = re.findall(
        '<td class="n"[^>]*>([^<]*)</td><td class="text"[^>]*><code>(.*?)</code>', page
    )[:2]
    assert (first[0], second) == ("0.3", ("0.1", "SELECT AVG(fee) FROM loan"))
    assert "A student counts with at most 60 rows of loan in one result" in page


def test_statements_are_text_and_nothing_comes_from_elsewhere(run: Run, campus: Path) -> None:
    run("query", HOSTILE)
    page = exported(run, campus)
    assert "&lt;/script&gt;&lt;script&gt;document.title" in page
    assert len(re.findall("<script", page)) == 2
    assert "\u202e" not in page
    assert not re.findall(
        r"(?:src|href)\s*=\s*[\"'](?!#)|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page
    )
    assert not re.findall(r"\son[a-z]+=|\sstyle=", page)


def test_the_bench_tells_the_bar_that_an_answer_has(run: Run, campus: Path) -> None:
    known = {one["sql"]: one for one in bench_data(exported(run, campus))["statements"]}  # type: ignore[attr-defined]
    for sql, rows in (("SELECT COUNT(*) FROM loan", 60), ("SELECT SUM(gpa) FROM student", None)):
        low, high = json.loads(run("query", "--json", "--intervals", "0.95", sql).stdout)["rows"][0][1:]
        one = known[sql]
        place = one["epsilons"].index(0.1)
        row = one["noises"][one["max_rows"].index(rows) if rows else 0]
        assert row[place][2] == pytest.approx((float(high) - float(low)) / 2, abs=1)


def test_the_share_of_people_is_told_where_it_was_measured(run: Run, campus: Path) -> None:
    assert bench_data(exported(run, campus))["people"] == {"loan": [], "enrolment": [], "review": []}
    measured = json.loads(run("bounds", "loan", "--json").stdout)["people"]
    told = bench_data(exported(run, campus))["people"]["loan"]  # type: ignore[index]
    assert {one["max_rows"] for one in told} == {one["max_rows"] for one in measured}
    assert all("of the people have more than" in one["said"] or "Too few" in one["said"] for one in told)


def test_a_forecast_is_the_pace_of_the_last_days() -> None:
    today = date(2026, 3, 31)
    days = [Day(today - timedelta(back), {"ada": 10, "ben": 4}, 0) for back in (40, 9, 4, 0)]
    found = forecast_of(days, 280, today)
    assert (found.days, found.spent) == (28, 42)
    assert found.day == today + timedelta(280 * 28 // 42)
    assert forecast_of(days[1:], 280, today).days == 10
    assert forecast_of(days[3:], 280, today).day is None, "one day is no pace"
    assert forecast_of(days[:1], 280, today).day is None, "nothing was spent lately"
    assert forecast_of([], 280, today).spent == 0


def test_where_rho_is_added_up_rho_is_shown(run: Run, campus: Path) -> None:
    said = campus.read_text("utf-8").replace("campus-ledger.db", "rho.db")
    said = said.replace(
        "[privacy]", '[privacy]\naccounting = "zcdp"\nperiod = "month"\nperiod_epsilon = 3', 1
    )
    campus.write_text(said, "utf-8")
    assert run("budget", "create").exit_code == 0
    assert run("query", "SELECT COUNT(*) FROM loan").exit_code == 0
    page = exported(run, campus)
    shown = run("budget", "show").stdout
    spent = re.search(r"^(epsilon \S+ of 10 spent at delta \S+ \(rho 0\.005 of 1\.478\));", shown)
    ration = re.search(r"^this (month's ration: .*)$", shown, re.MULTILINE)
    assert spent
    assert ration
    assert f"<p>E{spent[1][1:]}.</p>" in page
    assert f"<p>This {html.escape(ration[1])}.</p>" in page
    assert "<dt>rho spent</dt><dd>0.005 <small>in 1 charge</small></dd>" in page
    assert '<td class="n" data-head="rho">0.005</td>' in page
    count = next(one for one in bench_data(page)["statements"] if one["sql"] == "SELECT COUNT(*) FROM loan")  # type: ignore[attr-defined]
    assert {noise[0] for row in count["noises"] for noise in row} == {"discrete Gaussian"}


def test_what_was_granted_is_told_beside_the_policy(run: Run, campus: Path) -> None:
    assert "Granted since" not in exported(run, campus)
    run("budget", "grant", "2.5")
    run("budget", "grant", "1", "--to", "analyst")
    page = exported(run, campus)
    assert "<li>The cap for everybody together is epsilon 12.5 now: 2.5 was granted.</li>" in page
    assert "<li>The cap for analyst is epsilon 6 now: 1 was granted.</li>" in page
    assert "<dd>12.5 <small>100 % of 12.5</small></dd>" in page
