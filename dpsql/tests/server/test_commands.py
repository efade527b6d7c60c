"""`dpsql serve` and `dpsql user add` on the command line: what is printed, and what is refused to start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.errors import PolicyError
from dpsql.pgwire import Verifier
from dpsql.policy import parse_policy

from .conftest import POLICY, make_dataset


def test_user_add_prints_a_line_for_the_policy() -> None:
    done = CliRunner().invoke(program, ["user", "add", "bob"], input="a password\n")
    assert done.exit_code == 0
    line = done.stdout.strip()
    policy = parse_policy(POLICY + f"[analysts.bob]\nepsilon = 1\n{line}\n", Path("people.toml"))
    verifier = policy.analysts["bob"].password
    assert verifier is not None
    assert Verifier.parse(verifier).iterations == 4096
    assert "a password" not in done.output
    assert verifier not in repr(policy)


def test_user_add_takes_no_empty_password() -> None:
    assert CliRunner().invoke(program, ["user", "add", "bob"], input="\n").exit_code == 2


def test_users_are_listed(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    done = CliRunner().invoke(program, ["-P", str(policy), "user", "list"])
    assert done.stdout.splitlines() == [
        "alice  epsilon 500  may connect",
        "poor  epsilon 0.15  may connect",
        "nameless  epsilon 1  has no password, cannot connect",
    ]


def test_a_user_who_is_removed_keeps_their_cap(tmp_path: Path) -> None:
    """Their line goes and nothing else: not what looks like it, not the same password of another, no right on the file."""
    policy = make_dataset(tmp_path)
    text = "# password = 'not this one'\n" + policy.read_text()
    policy.write_text(text)
    policy.chmod(0o640)
    done = CliRunner().invoke(program, ["-P", str(policy), "user", "remove", "poor"])
    assert (done.exit_code, done.output) == (
        0,
        "poor cannot connect any more. A running server reads it at SIGHUP.\n",
    )
    head, tail = text.split("epsilon = 0.15\n")
    assert policy.read_text() == head + "epsilon = 0.15\n" + tail.split("\n", 1)[1]
    assert policy.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("name", ["poor", "nameless", "nobody"])
def test_a_user_without_a_password_cannot_be_removed(tmp_path: Path, name: str) -> None:
    policy = make_dataset(tmp_path)
    CliRunner().invoke(program, ["-P", str(policy), "user", "remove", "poor"])
    before = policy.read_text()
    done = CliRunner().invoke(program, ["-P", str(policy), "user", "remove", name])
    assert (done.exit_code, policy.read_text()) == (2, before)
    assert f"no password of {name}" in done.output


def test_a_password_inside_a_line_of_others_is_left_to_its_owner(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    text = re.sub(r"\[analysts\.poor\]\nepsilon = 0.15\n(password = .*)\n", "", policy.read_text())
    line = CliRunner().invoke(program, ["user", "add", "poor"], input="a password\n").stdout.strip()
    alone = re.sub(r"\[analysts(.|\n)*", "", text)
    policy.write_text(alone + f"[analysts]\npoor = {{ epsilon = 1, {line} }}\n")
    before = policy.read_text()
    done = CliRunner().invoke(program, ["-P", str(policy), "user", "remove", "poor"])
    assert (done.exit_code, policy.read_text()) == (5, before)
    assert "take it out of the policy by hand" in done.output


@pytest.mark.parametrize("text", ["correct horse", "SCRAM-SHA-256$4096:c2FsdA==$x:y", "md5" + "0" * 32])
def test_a_plain_password_in_the_policy_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(PolicyError, match=r"analysts\.bob\.password: is no verifier") as caught:
        parse_policy(POLICY + f'[analysts.bob]\nepsilon = 1\npassword = "{text}"\n', Path("people.toml"))
    assert text not in str(caught.value)


def test_serve_refuses_the_open_network_without_tls(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    done = CliRunner().invoke(program, ["-P", str(policy), "serve", "--host", "0.0.0.0"])
    assert done.exit_code == 2
    assert "takes TLS" in done.output


def test_serve_refuses_a_policy_without_passwords(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    policy.write_text(re.sub(r"^password.*$", "", POLICY, flags=re.MULTILINE))
    done = CliRunner().invoke(program, ["-P", str(policy), "serve"])
    assert done.exit_code == 5
    assert "dpsql user add" in done.output
