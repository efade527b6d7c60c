"""`dpsql serve` and `dpsql user add` on the command line: what is printed, and what is refused to start."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dpsql import pgwire
from dpsql.cli.application import program
from dpsql.errors import PolicyError
from dpsql.pgwire import Verifier, make_verifier
from dpsql.policy import load_policy, parse_policy

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


def add(policy: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["-P", str(policy), "user", "add", *words], input="a password\n")


def test_a_line_is_written_where_it_belongs(tmp_path: Path) -> None:
    """One who is named, one who is new with a cap, and nothing else is changed: no comment, no right on the file."""
    policy = make_dataset(tmp_path)
    before = policy.read_text() + "[analysts.'the last']  # comes last\nepsilon = 1"
    policy.write_text(before)
    policy.chmod(0o640)
    for words in (["nameless"], ["the last"], ["new one", "--epsilon", "0.25"]):
        done = add(policy, *words, "--write")
        assert (done.exit_code, done.stdout) == (
            0, f"{words[0]} can connect. A running server reads it at SIGHUP.\n"
        )  # fmt: skip
    analysts = load_policy(policy).analysts
    assert all(analysts[name].password for name in ("nameless", "the last", "new one"))
    assert analysts["new one"].epsilon == Fraction(1, 4)
    left = [line for line in policy.read_text().split("\n") if line in before.split("\n")]
    assert [line for line in left if line] == [line for line in before.split("\n") if line]
    assert policy.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("words", "why"),
    [(["nobody"], "does not name nobody"), (["alice"], "has a password"), (["nameless", "--epsilon", "2"], "has a cap of 1"),
     (["new", "--epsilon", "1e30"], "epsilon")],
)  # fmt: skip
def test_what_cannot_be_written_changes_nothing(tmp_path: Path, words: list[str], why: str) -> None:
    policy = make_dataset(tmp_path)
    before = policy.read_bytes()
    done = add(policy, *words, "--write")
    assert done.exit_code != 0
    assert why in re.sub(r"\s+", " ", done.output)
    assert policy.read_bytes() == before
    assert "Traceback" not in done.output


def test_an_inline_section_is_left_to_its_owner(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    alone = re.sub(r"\[analysts(.|\n)*", "", policy.read_text())
    policy.write_text(f"{alone}[analysts]\npoor = {{ epsilon = 1 }}\n")
    before = policy.read_bytes()
    done = add(policy, "poor", "--write")
    assert (done.exit_code, policy.read_bytes()) == (5, before)
    assert "write it there by hand: password = " in done.output


def test_a_policy_that_was_changed_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make_dataset(tmp_path)

    def changed(text: str) -> Verifier:
        policy.write_text(policy.read_text() + "# somebody was here\n")
        return make_verifier(text)

    monkeypatch.setattr(pgwire, "make_verifier", changed)
    done = add(policy, "nameless", "--write")
    assert done.exit_code == 5
    assert "was changed meanwhile" in done.output
    assert policy.read_text().endswith("# somebody was here\n")


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
