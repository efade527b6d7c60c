"""Where a URL of Spark leads, which URLs are refused, and where its secret comes from. Needs no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.backends.spark_target import TOKEN, SparkTarget, target_of
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
