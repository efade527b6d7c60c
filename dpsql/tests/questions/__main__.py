"""`python -m dpsql.tests.questions` asks every question anew, and records what comes of it in outcomes.txt."""

from __future__ import annotations

import tempfile
from pathlib import Path

from dpsql.tests.support.postgres_server import PostgresServer, find_servers

from .asking import Asking, write_outcomes
from .data_sets import DATA_SETS, read_questions

if __name__ == "__main__":
    outcomes: dict[str, str] = {}
    with PostgresServer(find_servers()[-1]) as server:
        for data_set in DATA_SETS:
            with tempfile.TemporaryDirectory() as ledgers, Asking(server, data_set, Path(ledgers)) as asking:
                for question in read_questions(data_set):
                    outcomes[question.name] = asking.outcome(question)
    write_outcomes(outcomes)
