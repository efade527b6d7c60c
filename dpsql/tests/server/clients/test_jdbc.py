"""JDBC: its modes of asking, server-prepared statements, fetch sizes, and what tools on it ask of the metadata."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import pytest

from ..conftest import PASSWORD, Served
from ..test_channel import Pair
from .conftest import SLOW

_DRIVER = Path("/usr/share/java/postgresql.jar")
pytestmark = pytest.mark.skipif(
    shutil.which("java") is None or not _DRIVER.exists(),
    reason="needs java, and Debian's libpostgresql-jdbc-java",
)
_ONCE, _OFTEN = "1 ;", "1 ;" * 7
_CONNECTIONS = [
    "sslmode=disable",
    "preferQueryMode=simple",
    "preferQueryMode=extendedForPrepared",
    "preferQueryMode=extendedCacheEverything&prepareThreshold=1",
    "binaryTransfer=false",
    "prepareThreshold=-1&autosave=always",
    "prepareThreshold=0&autosave=conservative&defaultRowFetchSize=100",
    "stringtype=unspecified&readOnly=true&ApplicationName=Metabase+v1",
]
_SAME = {
    "row": "1 9007199254740993 12.50 0.1 t 2020-02-29 2020-02-29 12:30:00.000001 ;2 null null null null null null ;",
    "parameters": _OFTEN,
    "nulls": "0 ;",
    "error": "error 42501 PV002 at 8",
    "several": "1 ;2 ;",
    "savepoint": _ONCE,
    "question": "free: answered before",
    "read only": "1 ;true",
    "write": "error 42501 at 13",
}
_EXTENDED = {"dates": _OFTEN * 2, "described": "int4 city:text n:int8 a:numeric", "fetched": "20000"}
_FIRST = {
    "getTables": "loan TABLE ;number TABLE ;person TABLE ;thing TABLE ;",
    "getColumns": "id int4 NO ;age int4 NO ;city text YES ;income numeric YES ;height float8 YES ;born date YES ;"
    "active bool YES ;",
    "getPrimaryKeys": "id person_pkey ;",
    "getImportedKeys": "person id loan person_id ;",
    "getExportedKeys": "person id loan person_id ;",
    "getCrossReference": "id person_id ;",
    "getIndexInfo": "person_pkey id -1 ;",
    "getBestRowIdentifier": "id ;",
    "getFunctions": "dp_avg_direct ;dp_high ;dp_low ;",
    "getCatalogs": "people ;",
    "answers": "true",
    "timeout": "error 57014",
    "after": "1 ;",
}


@pytest.mark.parametrize(
    ("age", "connections"),
    [(80, _CONNECTIONS[:2]), pytest.param(90, _CONNECTIONS[2:], marks=pytest.mark.long)],
    ids=["usual", "others"],
)
def test_jdbc(
    served: Served, spent: Callable[[], Decimal], pair: Pair | None, age: int, connections: Sequence[str]
) -> None:
    connections = [*connections, *(["sslmode=require"] if pair else [])]
    done = subprocess.run(
        ["java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-Duser.timezone=UTC", "-cp", _DRIVER,
         Path(__file__).with_name("Client.java"), str(served.port), quote(PASSWORD), SLOW, str(age), *connections],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, str]] = {}
    for line in done.stdout.splitlines():
        name, shown = line.split("\t", 1)
        if name == "connection":
            found[shown] = {}
        else:
            found[list(found)[-1]][name] = shown
    for connection in connections:
        expected = _SAME if "=simple" in connection else _SAME | _EXTENDED
        expected = expected | _FIRST if connection == connections[0] else expected
        assert found[connection] == expected, connection
    assert spent() == Decimal("0.1") * len(connections)
