"""Where a URL of Spark leads, which URLs are refused, and where its secret comes from. Needs no Spark."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import dpsql.plan
from dpsql.backends.spark_connection import TOKEN, SparkTarget, calls, require_query, target_of
from dpsql.errors import EngineFailure, PolicyError


def test_a_url_names_a_server_and_perhaps_a_catalog() -> None:
    assert target_of("spark://localhost") == SparkTarget("localhost", 15002)
    assert target_of("spark://127.0.0.1:7077/lake") == SparkTarget("127.0.0.1", 7077, "lake")
    assert target_of("spark://[::1]:1").endpoint == "[::1]:1"
    assert target_of("spark://127.0.0.1?ca_file=/a/b") == SparkTarget(
        "127.0.0.1", 15002, uses_tls=True, ca_file=Path("/a/b")
    )


@pytest.mark.parametrize(
    ("host", "is_near"),
    [("localhost", True), ("127.8.9.1", True), ("[::1]", True), ("spark", False), ("10.0.0.1", False),
     ("localhost.example.org", False), ("0.0.0.0", False)],
)  # fmt: skip
def test_what_is_not_on_this_machine_is_encrypted(host: str, is_near: bool) -> None:
    target = target_of(f"spark://{host}")
    assert target.is_near is is_near
    assert target.uses_tls is not is_near
    assert target_of(f"spark://{host}?tls=on").uses_tls


@pytest.mark.parametrize(
    "url",
    ["spark://", "spark:///a", "spark:host", "spark://host:x", "spark://host:99999", "spark://[::1", "sc://host",
     "spark://host#a", "spark://a b"],
)  # fmt: skip
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(PolicyError, match="is not a URL of Spark; write spark://host:port"):
        target_of(url)


@pytest.mark.parametrize(
    "url",
    ["spark://h/;token=hush", "spark://h;token=hush", "spark://h/a?token=hush", "spark://h?TOKEN=hush",
     "spark://h?password=hush", "spark://u:hush@h", "spark://hush@h", "spark://h?%74oken=hush"],
)  # fmt: skip
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(PolicyError) as caught:
        target_of(url)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("rest", "said"),
    [("/a/b", "one name, of a catalog"), ("/a.b", "one name, of a catalog"), ("?tls=off", "tls is on"),
     ("?use_ssl=true", "there are tls, ca_file, token_file"), ("?token_file=a", "by its whole path")],
)  # fmt: skip
def test_what_a_url_cannot_say(rest: str, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        target_of(f"spark://host{rest}")


def test_the_token_comes_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    assert target_of("spark://localhost").token() is None
    monkeypatch.setenv(TOKEN, "from the environment")
    assert target_of("spark://localhost").token() == "from the environment"
    file = tmp_path / "token"
    file.write_text("hush\n")
    file.chmod(0o600)
    target = target_of(f"spark://localhost?token_file={file}")
    assert target.token() == "hush"
    assert "hush" not in repr(target)
    file.chmod(0o640)
    with pytest.raises(EngineFailure) as caught:
        target.token()
    assert caught.value.detail == "open: others on this machine can read the token_file; chmod 600 mends that"


@pytest.mark.parametrize("content", [None, "", "\n", "é", "a\0b"])
def test_a_file_without_a_token(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
        file.chmod(0o600)
    with pytest.raises(EngineFailure) as caught:
        target_of(f"spark://localhost?token_file={file}").token()
    assert caught.value.detail == "open: the token_file cannot be read, or holds no token"


ALLOWED = [
    "SELECT 1",
    "WITH a AS (SELECT 1 AS x) SELECT x FROM a",
    "(SELECT 1) UNION ALL (SELECT 2)",
    "SELECT `it's; -- \\ ${env:HOME}` FROM `main`.`text` WHERE x = 'a; b' AND y = CAST(X'5C27' AS STRING)",
    "SELECT c.c0 FROM (SELECT inline(arrays_zip(a, b)) AS (c0, c1) FROM t) AS c",
    "SELECT array_join(transform(split(x, ''), c -> upper(c)), '') FROM t ORDER BY 1 DESC NULLS LAST",
    "SELECT COUNT(*) FILTER (WHERE x IS NULL), CAST(:p1 AS DECIMAL(38, 0)) FROM `a`.`b` AS t (`c`, `d`)",
    "SELECT `text`.`x`, `parquet`.`y` FROM `main`.`t` AS `text`",
]
COMMANDS = [
    "INSERT INTO t VALUES (1)",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT 1",
    "WITH a AS (SELECT 1) INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT * FROM a",
    "FROM t INSERT INTO u SELECT 1",
    "SET spark.sql.ansi.enabled = false",
    "SET",
    "RESET",
    "ADD JAR '/tmp/x.jar'",
    "CREATE TABLE t AS SELECT 1",
    "CREATE FUNCTION f AS 'a.B'",
    "DROP TABLE t",
    "CACHE TABLE t",
    "USE other",
    "BEGIN SELECT 1; END",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "EXPLAIN SELECT 1",
    "DESCRIBE t",
    "TABLE t",
    "MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE",
]
BEYOND = [
    "SELECT java_method('java.lang.System', 'getProperty', 'user.name')",
    "SELECT JAVA_METHOD ('java.lang.System', 'getProperty', 'user.name')",
    "SELECT reflect('java.lang.System', 'getProperty', 'user.name')",
    "SELECT `reflect`('java.lang.System', 'getProperty', 'user.name')",
    "SELECT 1, `reflect`('a', 'b', 'c')",
    "SELECT try_reflect('a', 'b', 'c')",
    "SELECT system.builtin.reflect('a', 'b', 'c')",
    "SELECT system.builtin.`reflect`('a', 'b', 'c')",
    "SELECT input_file_name() FROM t",
    "SELECT own_function(x) FROM t",
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM `text`.`/etc/passwd`",
    "SELECT 1 FROM t CROSS JOIN TEXT . `/etc/passwd`",
    "SELECT 1 FROM t, binaryFile.`/etc/passwd`",
    "SELECT * FROM read_files('/etc')",
    "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
    "SELECT TRANSFORM(x) USING 'sh' FROM t",
    "SELECT transform (x) USING 'sh' AS (y) FROM t",
    "SELECT MAP x USING 'sh' FROM t",
]
UNREAD = [
    "",
    "   ",
    "SELECT 1; SELECT 2",
    "SELECT 1;",
    "SELECT 1 -- x",
    "SELECT /*+ BROADCAST(t) */ 1",
    "SELECT /* x */ 1",
    "SELECT '\\'",
    "SELECT 'x\\' OR 1=1 --'",
    'SELECT "a"',
    "SELECT ${env:HOME}",
    "SELECT 'unfinished",
    "SELECT `unfinished",
    "SELECT r'a'",
    "SELECT @@x",
    "SELECT ?",
    "SELECT é",
]


@pytest.mark.parametrize("sql", ALLOWED)
def test_a_query_is_let_through(sql: str) -> None:
    require_query(sql)


@pytest.mark.parametrize("sql", COMMANDS + BEYOND + UNREAD)
def test_anything_else_is_refused_without_a_word_of_it(sql: str) -> None:
    with pytest.raises(EngineFailure) as caught:
        require_query(sql)
    assert caught.value.detail in (
        "refused: not a single query in the words that dpsql prints",
        "refused: a function that dpsql does not print",
        "refused: a file by its path",
    )


def test_every_command_is_refused_inside_a_query_too() -> None:
    for sql in COMMANDS:
        if sql != "TABLE t":  # which is a query, of a table
            for inside in (f"WITH a AS (SELECT 1) {sql}", f"SELECT 1 UNION ALL {sql}", f"(SELECT 1) {sql}"):
                with pytest.raises(EngineFailure):
                    require_query(inside)


def test_every_function_that_the_dialect_names_is_let_through() -> None:
    path = Path(dpsql.plan.__file__).parent / "dialects" / "dialect_spark.py"
    texts = [
        node.value for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]  # fmt: skip
    named = {name for text in texts for name in re.findall(r"\b([a-z][a-z0-9_]*)\((?=[^)\s]|$)", text)}
    assert {"try_validate_utf8", "from_json", "unix_micros"} <= named
    assert {name for name in named if not calls(name)} == set()
