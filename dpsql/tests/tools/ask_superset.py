"""What Apache Superset asks, through its own interface: run by `make tools` in Superset's environment, with a folder.

Prints a line for each check: ok or failed, its name, and what came.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from superset_charts import LOAN, PERSON, simple

PORT, PASSWORD, HOME = sys.argv[1], sys.argv[2], Path(sys.argv[3])
URL = f"postgresql+psycopg2://alice:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{PORT}/people"
SETTINGS = f"""
import os
SECRET_KEY = "{"x" * 42}"
SQLALCHEMY_DATABASE_URI = "sqlite:///" + os.environ["ITS_OWN_BASE"]
WTF_CSRF_ENABLED = TALISMAN_ENABLED = RATELIMIT_ENABLED = False
"""
ADMIN = "--username admin --firstname a --lastname a --email a@example.org --password admin"
LAB = {
    "select": "SELECT city, COUNT(*) AS n FROM person GROUP BY city ORDER BY n DESC",
    "preview": "SELECT * FROM person LIMIT 100",
    "public": "SELECT * FROM thing",
    "with": "WITH t AS (SELECT age, city FROM person) SELECT city, AVG(age) FROM t GROUP BY city",
    "budget": "SHOW dpsql.budget",
    "comment": "-- one\nSELECT COUNT(*) FROM person;",
}
UNASKED = "SELECT active, city, AVG(income) AS a FROM person GROUP BY active, city"


def check(name: str, ask: Callable[[], Any]) -> None:
    try:
        print("ok", f"superset {name}", str(ask()).replace("\n", " ")[:60], sep="\t", flush=True)
    except Exception as error:  # noqa: BLE001  # each place has its own
        print("failed", f"superset {name}", str(error).replace("\n", " ")[:600], sep="\t", flush=True)


class Asked:
    """Superset, as its pages speak to it."""

    def __init__(self, client: Any) -> None:
        self.client, self.headers = client, dict[str, str]()
        client.post("/login/", data={"username": "admin", "password": "admin"})
        login = {"username": "admin", "password": "admin", "provider": "db"}
        token = self.call("post", "security/login", login)["access_token"]
        self.headers = {"Authorization": f"Bearer {token}"}

    def call(self, verb: str, path: str, body: object = None, root: str = "/api/v1/") -> Any:
        answer = getattr(self.client, verb)(root + path, json=body, headers=self.headers)
        if answer.status_code >= 300:
            raise RuntimeError(f"{answer.status_code} {answer.get_data(as_text=True)}")
        return answer.get_json()

    def chart(self, dataset: int, query: dict[str, Any]) -> Any:
        """Return a chart's rows, of which there are some."""
        usual = {"row_limit": 1000, "orderby": [], "filters": [], "columns": []}
        body = {
            "datasource": {"id": dataset, "type": "table"}, "force": False, "result_format": "json",
            "result_type": "full", "queries": [usual | query],
        }  # fmt: skip
        (result,) = self.call("post", "chart/data", body)["result"]
        if result.get("error") or not result["rowcount"]:
            raise RuntimeError(f"{result['rowcount']} {result.get('error')} {result['query']}")
        return result["data"]

    def lab(self, database: int, sql: str) -> Any:
        body = {
            "database_id": database,
            "sql": sql,
            "schema": "public",
            "runAsync": False,
            "queryLimit": 1000,
        }
        return self.call("post", "sqllab/execute/", body)["data"]


def ask(asked: Asked) -> None:
    new = {"database_name": f"people {PORT}", "sqlalchemy_uri": URL}
    check("test connection", partial(asked.call, "post", "database/test_connection/", new))
    base = asked.call("post", "database/", new)["id"]
    check("schemas", partial(asked.call, "get", f"database/{base}/schemas/"))
    check("tables", partial(asked.call, "get", f"database/{base}/tables/?q=(schema_name:public)"))
    check("columns", partial(asked.call, "get", f"database/{base}/table_metadata/?name=person&schema=public"))
    place = {"database": base, "schema": "public"}
    made = [
        asked.call("post", "dataset/", {**place, "table_name": name})["id"] for name in ("person", "loan")
    ]
    check("refresh", partial(asked.call, "put", f"dataset/{made[0]}/refresh"))
    virtual = asked.call("post", "dataset/", {**place, "table_name": "by_city", "sql": LAB["select"]})["id"]
    check(
        "virtual dataset",
        partial(asked.chart, virtual, {"columns": ["city"], "metrics": [simple("SUM", "n")]}),
    )
    for dataset, charts in zip(made, (PERSON, LOAN), strict=True):
        for name, query in charts.items():
            check(name, partial(asked.chart, dataset, query))
    check("column's values", partial(asked.call, "get", f"datasource/table/{made[0]}/column/city/values/"))
    sampled = f"datasource/samples?force=false&datasource_type=table&datasource_id={made[0]}"
    check("samples", lambda: asked.call("post", sampled, {}, "/")["result"]["colnames"])
    for name, sql in LAB.items():
        check(f"lab {name}", partial(asked.lab, base, sql))
    check("lab estimate", partial(estimated, asked, base))
    grids = f"{URL}?options=-c%20dpsql.grids%3Dempty"
    asked.call("put", f"database/{base}", {"sqlalchemy_uri": grids})
    body = {"filters": [{"col": "city", "op": "==", "val": "north"}]}
    check("drill to detail", lambda: asked.call("post", sampled, body, "/")["result"]["colnames"])


def estimated(asked: Asked, base: int) -> Any:
    """What a statement costs, as SQL Lab shows it."""
    (cost,) = asked.call("post", "sqllab/estimate/", {"database_id": base, "sql": UNASKED})["result"]
    if not float(cost["Total cost"]) > 0:
        raise RuntimeError(f"no cost: {cost}")
    return cost


base = HOME / "superset.db"
(HOME / "superset_config.py").write_text(SETTINGS)
os.environ |= {"SUPERSET_CONFIG_PATH": str(HOME / "superset_config.py"), "SUPERSET_HOME": str(HOME)}
os.environ |= {"FLASK_APP": "superset", "ITS_OWN_BASE": str(base)}
if not base.exists():
    for step in ("db upgrade", f"fab create-admin {ADMIN}", "init"):
        subprocess.run(
            [Path(sys.executable).with_name("superset"), *step.split()], check=True, stdout=sys.stderr
        )
os.environ["ITS_OWN_BASE"] = str(shutil.copy(base, HOME / f"superset.{PORT}.db"))
from superset.app import create_app  # noqa: E402  # reads its settings as it is imported

ask(Asked(create_app().test_client()))
