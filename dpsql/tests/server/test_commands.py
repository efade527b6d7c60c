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
