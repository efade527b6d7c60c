"""[server] auth: directories, issuers, groups and identities, and what is wrong with them."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import Policy, parse_policy
from dpsql.policy.auth import NameMap, read_map
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


# --- maps of names ----------------------------------------------------------------------------------------------


def mapped(*patterns: str) -> NameMap:
    found = read_map(patterns)
    assert isinstance(found, NameMap), found
    return found


TWO = (r"/^([a-z]+)@example\.org$ \1", r"/^([a-z]+)@partner\.org$ partner_\1")


def test_a_map_says_who_is_who() -> None:
    names = mapped(*TWO)
    for person, analyst in (("eve@example.org", "eve"), ("eve@partner.org", "partner_eve")):
        assert names.short(person) == analyst
        assert names.person(analyst) == person
        assert names.person(person) == person
    assert mapped(r"/^CN=(.+)$ \1").short("CN=Eve M.") == "Eve M."
    assert mapped(r"/^u(\d{3,5})$").short("u123456") is None
    assert mapped(r"/^u(\d{3,5})$").short("u12345") == "12345"
    assert mapped(r"/^(\w+)@x$").short("a_1@x") == "a_1"


@pytest.mark.parametrize(
    "name",
    [
        "eve@example.org\n", "\neve@example.org", "eve@exampleXorg", "EVE@example.org", "@example.org", "eve@example.orga",
        "xeve@example.org@example.org", "eve @example.org", "éve@example.org", "eve\0@example.org", "eve@example.org\0",
        "eve@partner.org@example.org", "ｅve@example.org", "eve‮@example.org", "a" * 65 + "@example.org", "", "eve",
    ],
)  # fmt: skip
def test_a_name_that_is_not_made_so_is_nobodys(name: str) -> None:
    names = mapped(*TWO)
    assert names.short(name) is None
    assert names.short(names.person(name)) in (None, name, name.removeprefix("partner_"))


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        ((r"/([a-z]+)@x$",), "is no pattern"),  # not anchored
        ((r"/^([a-z]+)@x",), "is no pattern"),
        ((r"/^[a-z]+@x$",), "is no pattern"),  # no group
        ((r"/^([a-z]+)@([a-z]+)$ \1",), "is no pattern"),  # two
        ((r"/^(([a-z]+))@x$",), "is no pattern"),
        ((r"/^([a-z]+)@.*$ \1",), "is no pattern"),  # whose all else is not in the analyst's name
        ((r"/^([a-z]+)@x.org$ \1",), "is no pattern"),
        ((r"/^([a-z]+)@(?:x|y)$ \1",), "is no pattern"),
        ((r"/^([a-z]+)x?$ \1",), "is no pattern"),
        ((r"/^([a-z]+|b)$ \1",), "is no pattern"),
        ((r"/^(?i)([a-z]+)$ \1",), "is no pattern"),
        ((r"/^([^@]+)@x$ \1",), "is no pattern"),
        ((r"/^([a-z]+?)@x$ \1",), "is no pattern"),
        ((r"/^([a-z]+)@x$ all",), "is no pattern"),  # everybody one analyst
        ((r"/^([a-z]+)@x$ \1\1",), "is no pattern"),
        ((r"/^([a-z]+)@x$ \2",), "is no pattern"),
        ((r"/^([a-z]+)@x$ \1 \1",), "is no pattern"),
        ((r"/^([z-a]+)@x$",), "is no pattern"),
        ((r"/^([a-z]{0,3})@x$",), "is no pattern"),
        ((r"/^([a-z]{3,99})@x$",), "is no pattern"),
        ((r"/^([à-ý]+)@x$",), "is no pattern"),
        ((r"/^([a-z]+)@x$", "*@y"), "is no pattern"),
        ((r"/^([a-z]+)@example\.org$", r"/^([a-z]+)@partner\.org$"), "two people one name"),
        ((r"/^([a-z]+)@x$ \1", r"/^([a-z_]+)@y$ p_\1"), None),
        ((r"/^([a-z_]+)@x$ \1", r"/^([a-z]+)@y$ p_\1"), "two people one name"),  # p_eve@x
        ((r"/^(\d+)@x$ \1", r"/^([a-z]+)@y$ \1"), None),
        ((r"/^(.+)@x$ \1", r"/^(.+)@y$ \1"), "two people one name"),
        ((r"/^([a-z]{2})@x$ \1", r"/^([a-z]{3})@y$ \1"), None),
        ((r"/^([a-z]{2,3})@x$ \1", r"/^([a-z]{3})@y$ \1"), "two people one name"),
        ((r"/^([a-z]+)@x$ a-\1", r"/^([a-z@]+)@x$ b-\1"), "one person two names"),
        ((TWO[0], TWO[0]), "two people one name"),
    ],
)
def test_a_map_in_which_somebody_could_be_another_is_refused(
    patterns: tuple[str, ...], said: str | None
) -> None:
    found = read_map(patterns)
    if said is None:
        assert isinstance(found, NameMap)
    else:
        assert isinstance(found, str)
        assert said in found


def test_no_two_names_of_two_patterns_are_one_for_any_letters() -> None:
    """What is decided of the patterns, against all short names over a few letters."""
    words = ["".join(one) for size in (1, 2, 3) for one in itertools.product("ab_", repeat=size)]
    classes = ("[ab]+", "[a_]+", "[b]{2}", "[ab_]{1,2}", "a_[ab]+", "[ab]+_")
    for first, second in itertools.product(classes, repeat=2):
        rules = []
        for one, host in ((first, "x"), (second, "y")):
            before, after = (
                (one.partition("[")[0], one.rpartition("]")[2].lstrip("+")) if "{" not in one else ("", "")
            )
            rules.append(
                f"/^([{one.partition('[')[2].partition(']')[0]}]{'+' if '+' in one else one[one.index('{') :]})@{host}$ {before}\\1{after}"
            )
        alone = [mapped(rule) for rule in rules]
        given = [
            {names.short(f"{word}@{host}") for word in words} - {None}
            for names, host in zip(alone, "xy", strict=True)
        ]
        if given[0] & given[1]:
            assert isinstance(read_map(rules), str), rules


def test_a_map_is_read_from_the_policy() -> None:
    found = policy_from(f"{LDAP}auth_names = {list(TWO)!r}\n".replace("\\\\", "\\") + ALICE).server.auth
    assert isinstance(found, DirectoryPolicy)
    assert found.names == mapped(*TWO)
    assert "is a member" not in wrong(f"{LDAP}auth_names = ['/^(.+)@x$', '/^(.+)@y$']\n")
    assert "in quotes" in wrong(f"{LDAP}auth_names = [1]\n")
    two = f"{LDAP}auth_names = '/^([a-z]+)@x$'\n{ALICE}[analysts.bob]\nepsilon = 1\nidentity = \"alice@x\"\n"
    assert "a person is one analyst" in wrong(two)
