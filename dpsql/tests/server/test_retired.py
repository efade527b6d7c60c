"""A reload of an edited policy: what rests on the edit is asked anew, all else stays free, and the log counts it."""

from __future__ import annotations

import signal
from pathlib import Path

from .conftest import COUNT, POLICY, make_dataset, run_server

SUM = "SELECT SUM(age) FROM person"
LEFT = "SHOW dpsql.budget"


def test_a_reload_says_what_an_edit_retires(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    with run_server(policy) as server:
        with server.connect() as alice:
            counted, summed = (alice.execute(sql.encode()).fetchone() for sql in (COUNT, SUM))
        policy.write_text(POLICY.replace("age = { bounds = [0, 120] }", "age = { bounds = [0, 110] }"))
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("answers retired")
        (line,) = [line for line in server.lines if line["event"] == "answers retired"]
        assert (line["number"], line["cost"], line["by"]) == (1, "epsilon 0.1", "person.age (1)")
        with server.connect() as alice:
            assert alice.execute(COUNT.encode()).fetchone() == counted
            assert alice.execute(LEFT.encode()).fetchone() == ("499.8 of 500 epsilon left",)
            assert alice.execute(SUM.encode()).fetchone() != summed
            assert alice.execute(LEFT.encode()).fetchone() == ("499.7 of 500 epsilon left",)
