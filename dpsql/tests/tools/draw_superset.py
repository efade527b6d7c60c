"""The band that Superset draws of error bars, in a browser: run by `make tools` where chromium is, over the demo.

Prints a line for each check: ok or failed, its name, and what came. The picture is written to the path of the last
argument; that of the manual is such a one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

from PIL import Image

PORT, PASSWORD, HOME, PICTURE = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
OWN_PORT = 18_088
AT = f"http://127.0.0.1:{OWN_PORT}"
SETTINGS = f"""
SECRET_KEY = "{"x" * 42}"
SQLALCHEMY_DATABASE_URI = "sqlite:///{HOME / "drawn.db"}"
WTF_CSRF_ENABLED = TALISMAN_ENABLED = RATELIMIT_ENABLED = False
AUTH_ROLE_PUBLIC = "Admin"  # the browser logs in nowhere
"""
ADMIN = "--username admin --firstname a --lastname a --email a@example.org --password admin"
PROGRAM = Path(sys.executable).with_name("superset")
SHOWN = (0, 0, 900, 330)
"""What is kept of the picture: below it the page is empty."""
PALE, COLOURED = 180, 12
"""What makes a point one of the band: its least part, and how far its parts differ; the theme chooses the colour."""
MONTHS = {
    "viz_type": "echarts_timeseries_line", "x_axis": "loaned_on", "time_grain_sqla": "P1M", "groupby": [],
    "metrics": [
        {"expressionType": "SQL", "sqlExpression": sql, "label": label, "optionName": f"metric_{label}"}
        for label, sql in (
            ("n", "COUNT(*)"), ("n__yhat_lower", "dp_low(COUNT(*))"), ("n__yhat_upper", "dp_high(COUNT(*))"),
        )
    ],
    "adhoc_filters": [], "row_limit": 10000, "markerEnabled": True, "y_axis_title": "loans a month", "y_axis_title_margin": 50,
}  # fmt: skip


def told(state: str, name: str, what: object) -> None:
    print(state, f"superset {name}", str(what).replace("\n", " ")[:400], sep="\t", flush=True)


def main() -> None:
    (HOME / "superset_config.py").write_text(SETTINGS)
    its = {
        "SUPERSET_CONFIG_PATH": str(HOME / "superset_config.py"),
        "SUPERSET_HOME": str(HOME),
        "FLASK_APP": "superset",
    }
    environment = {**os.environ, **its}
    for step in ("db upgrade", f"fab create-admin {ADMIN}", "init"):
        subprocess.run([PROGRAM, *step.split()], check=True, stdout=sys.stderr, env=environment)
    serving = [PROGRAM, "run", "-h", "127.0.0.1", "-p", str(OWN_PORT), "--no-reload"]
    with subprocess.Popen(
        serving, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    ) as web:
        try:
            draw()
        finally:
            web.terminate()


def draw() -> None:
    opener = build_opener(HTTPCookieProcessor(CookieJar()))
    for _ in range(240):
        try:
            opener.open(f"{AT}/health")
            break
        except OSError:
            time.sleep(0.5)
    opener.open(f"{AT}/login/", urlencode({"username": "admin", "password": "admin"}).encode())

    def call(path: str, body: dict[str, Any]) -> Any:
        asked = Request(
            f"{AT}/api/v1/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        return json.load(opener.open(asked))

    uri = f"postgresql+psycopg2://analyst:{PASSWORD}@127.0.0.1:{PORT}/campus"
    base = call("database/", {"database_name": "campus", "sqlalchemy_uri": uri})["id"]
    loans = call("dataset/", {"database": base, "schema": "public", "table_name": "loan"})["id"]
    form = {**MONTHS, "datasource": f"{loans}__table"}
    new = {"slice_name": "Loans a month", "viz_type": form["viz_type"], "datasource_id": loans}
    chart = call("chart/", {**new, "datasource_type": "table", "params": json.dumps(form)})["id"]
    shoot(f"{AT}/explore/?slice_id={chart}&standalone=1")
    with Image.open(PICTURE) as picture:
        cut = picture.convert("RGB").crop(SHOWN)
    cut.save(PICTURE, optimize=True)
    pixels = list(cut.getdata())
    near = sum(min(one) > PALE and max(one) - min(one) > COLOURED for one in pixels)
    told("ok" if near > len(pixels) // 50 else "failed", "band drawn", f"{near} of {len(pixels)} points")


def shoot(url: str) -> None:
    browser = [
        "chromium",
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--window-size=900,420",
    ]
    waits = ["--virtual-time-budget=30000", f"--screenshot={PICTURE}"]
    subprocess.run(
        [*browser, *waits, url], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300
    )


main()
