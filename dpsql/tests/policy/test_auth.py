"""[server] auth: directories, issuers, groups and identities, and what is wrong with them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import Policy, parse_policy
from dpsql.policy.model import DirectoryPolicy, IssuerPolicy, NamePattern

HEAD = 'database = "duckdb:x.db"\nprivacy.epsilon = 5\n[tables.student]\nunit = "id"\n'
LDAP = '[server]\nauth = "ldaps://ldap.example.org/ou=people,dc=example,dc=org?uid"\n'
OIDC = '[server]\nauth = "oidc+https://login.example.org/lab"\nauth_audience = "dpsql"\n'
ALICE = "[analysts.alice]\nepsilon = 2\n"
LAB = '[groups.lab]\nmember_of = "lab"\nepsilon = 1\n'
VERIFIER = "SCRAM-SHA-256$4096:c2FsdHNhbHRzYWx0c2FsdA==$" + ":".join(["A" * 43 + "="] * 2)


def policy_from(text: str) -> Policy:
    return parse_policy(HEAD + text, Path("/srv/campus.toml"))


def wrong(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        policy_from(text)
    return caught.value.message


def test_a_password_is_the_usual_way() -> None:
    policy = policy_from(ALICE)
    assert policy.server.auth is None
    assert policy.groups == {}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (LDAP, DirectoryPolicy("ldaps://ldap.example.org", "ou=people,dc=example,dc=org", "uid")),
        (
            '[server]\nauth = "ldap://[::1]:1389/o=a%20b"\n',
            DirectoryPolicy("ldap://[::1]:1389", "o=a b", "uid"),
        ),
        (
            '[server]\nauth = "ldaps://h/o=a?sAMAccountName?sub"\nauth_bind = "cn=d"\nauth_password_file = "p"\n'
            'auth_groups = "ou=g"\nauth_ca = "/etc/ca.pem"\n',
            DirectoryPolicy(
                "ldaps://h",
                "o=a",
                "sAMAccountName",
                True,
                "ou=g",
                "cn=d",
                Path("/srv/p"),
                Path("/etc/ca.pem"),
            ),
        ),
        (OIDC, IssuerPolicy("https://login.example.org/lab", "dpsql")),
        (
            f'{OIDC}auth_names = "auth0|*"\n',
            IssuerPolicy("https://login.example.org/lab", "dpsql", names=NamePattern("auth0|")),
        ),
        (
            f'{LDAP}auth_names = "*@example.org"\n',
            DirectoryPolicy(
                "ldaps://ldap.example.org",
                "ou=people,dc=example,dc=org",
                "uid",
                names=NamePattern("", "@example.org"),
            ),
        ),
        (
            f'{OIDC}auth_scope = "openid x"\nauth_groups = "roles"\nauth_ca = "ca.pem"\n',
            IssuerPolicy("https://login.example.org/lab", "dpsql", "openid x", "roles", Path("/srv/ca.pem")),
        ),
    ],
)
def test_who_vouches(lines: str, expected: object) -> None:
    assert policy_from(lines + ALICE).server.auth == expected


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://h/o=a", "neither a directory nor an issuer over TLS"),
        ("oidc+http://h", "neither a directory nor an issuer over TLS"),
        ("oidc+ldaps://h/o=a", "neither a directory nor an issuer over TLS"),
        ("https://h", "neither a directory nor an issuer over TLS"),
        ("ldaps:///o=a", "no URL of a server"),
        ("ldaps://user:secret@h/o=a", "no URL of a server"),
        ("ldaps://h:port/o=a", "no URL"),
        ("ldaps://h", "the entry above the people"),
        ("ldaps://h/o=a?uid?one", "the entry above the people"),
        ("ldaps://h/o=a?u(id)", "the entry above the people"),
        ("ldaps://h/o=a?uid?sub?(x=y)", "the entry above the people"),
    ],
)
def test_no_such_way(url: str, said: str) -> None:
    message = wrong(f'[server]\nauth = "{url}"\n')
    assert said in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('[server]\nauth_ca = "x"\n', "server.auth_ca: goes with auth"),
        ('[server]\nauth = "oidc+https://h"\n', "server.auth_audience: is missing"),
        (f'{OIDC}auth_bind = "x"\n', "is not for an issuer of tokens"),
        (f'{LDAP}auth_audience = "x"\n', "is not for a directory"),
        (f'{LDAP}auth_bind = "x"\n', "go together"),
        ('[server]\nauth_names = "*@x"\n', "server.auth_names: goes with auth"),
        *((f'{LDAP}auth_names = "{one}"\n', "with one *") for one in ("*", "x", "*@*", "*\u200b")),
        (
            f'{LDAP}auth_names = "*@x"\n{ALICE}[analysts.bob]\nepsilon = 1\nidentity = "alice@x"\n',
            "a person is one analyst",
        ),
        (f'{LDAP}auth_names = "*@x"\n{ALICE}[analysts."alice@x"]\nepsilon = 1\n', "a person is one analyst"),
        (f'{LDAP}auth_bind = "x"\nauth_password_file = "y"\n', "end the URL with ?sub"),
        (f'{ALICE}identity = "a"\n', "analysts.alice.identity: goes with auth in [server]"),
        (LAB, "groups.lab.member_of: goes with auth in [server]"),
        (f"{LDAP}[groups.lab]\nepsilon = 1\n", "groups.lab.member_of: is missing"),
        (f'{LDAP}[groups.lab]\nmember_of = "x"\n', "groups.lab.epsilon: is missing"),
        (f'{LDAP}{LAB}password = "{VERIFIER}"\n', "groups.lab.password: unknown key"),
        (f'{LDAP}{ALICE}password = "{VERIFIER}"\n', "analysts.alice.password: is not asked for"),
        (
            f'{LDAP}{ALICE}[analysts.bob]\nepsilon = 1\nidentity = "alice"\n',
            "analysts.bob.identity: is that of alice too",
        ),
        (
            f'{OIDC}{ALICE}identity = "s"\n[analysts.bob]\nepsilon = 1\nidentity = "s"\n',
            "a person is one analyst",
        ),
        (f'{LDAP}{LAB}tables = ["nothing"]\n', 'groups.lab.tables: no table "nothing" is declared'),
    ],
)
def test_what_is_wrong(lines: str, said: str) -> None:
    assert said in wrong(lines)


def test_a_short_name_is_one_persons() -> None:
    names = NamePattern("x|", "@y")
    people = ["x|a@y", "x|a@y@y", "x|x|a@y@y", "x|x|a@y", "x|@y@y", "x|x|@y"]
    shorts = [names.short(one) for one in people]
    assert shorts == ["a", "a@y", "x|a@y", "x|a", "@y", "x|"]
    assert [names.short(one) for one in ("x|@y", "x@y", "|a@y", "x|a", "a@y", "", "x|", "@y")] == [None] * 8
    assert [names.person(one) for one in ("a", "x|a@y", "x|a", "@y")] == [
        "x|a@y",
        "x|a@y",
        "x|x|a@y",
        "x|@y@y",
    ]
    assert [NamePattern().person(one) for one in ("a", "")] == ["a", ""]
    assert NamePattern().short("a") == "a"


def test_groups_and_members() -> None:
    policy = policy_from(LDAP + ALICE + LAB)
    lab = policy.groups["lab"]
    assert (lab.identity, lab.epsilon) == ("lab", Fraction(1))
    assert policy.analysts["alice"].identity_under(policy.server.auth) == "alice"
    assert policy_from(OIDC + ALICE).analysts["alice"].identity_under(IssuerPolicy("x", "y")) is None
    from dataclasses import replace

    joined = policy.with_member(replace(lab, name="carol"))
    assert joined.analysts["carol"].epsilon == 1
    assert joined.members == {"carol"}
    seen = joined.as_for("alice")
    assert (list(seen.analysts), seen.groups, seen.members) == (["alice"], {}, frozenset())
