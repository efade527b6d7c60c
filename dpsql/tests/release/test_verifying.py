"""No charge before a plan is verified, in any door, and no text of private rows is sent that was not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.backends.duckdb_backend import DuckDBSnapshot
from dpsql.budget import LedgerStore, certificates
from dpsql.engine import Session, proofs
from dpsql.engine.bounds import Wish, measure
from dpsql.engine.dataset import open_ledger
from dpsql.engine.proofs import prove, prove_ledger
from dpsql.errors import BudgetExhausted, Unverified
from dpsql.mechanisms import Gaussian, Laplace
from dpsql.policy import load_policy
from dpsql.release import verifying
from dpsql.tests.support.length import long_where
from dpsql.verify import Refused
from dpsql.verify.certificate import Certificate, Facts, digest, loads

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = {epsilon}
delta = 1e-4
{more}
[defaults]
epsilon = 0.5
delta = 1e-6
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 90] }}
name = {{}}
city = {{ values = ["a", "b", "c", "d", "e", "f", "g", "h"] }}
[tables.visit]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 40
max_rows_per_group = 5
[tables.visit.columns]
day = {{ bounds = [0, 10] }}
place = {{ values = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13"] }}
[tables.town]
public = true
"""
COUNT = "SELECT COUNT(*) FROM person"
NAMES = "SELECT name, COUNT(*) FROM person GROUP BY name"
TOP = "SELECT place, COUNT(*) AS n FROM visit GROUP BY place ORDER BY n DESC LIMIT 1"
QUARTILES = ", ".join(
    f"PERCENTILE_DISC({share}) WITHIN GROUP (ORDER BY age)" for share in ("0.1", "0.25", "0.5", "0.75", "0.9")
)

TOLD = "a plan is not verified: a rule"

Open = Callable[..., Session]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER NOT NULL, name VARCHAR NOT NULL, city VARCHAR NOT "
            "NULL);"
            "CREATE TABLE visit (person_id INTEGER NOT NULL REFERENCES person (id), day INTEGER, place VARCHAR);"
            "CREATE TABLE town (city VARCHAR PRIMARY KEY);"
            "INSERT INTO town VALUES ('a'), ('b');"
            "INSERT INTO person SELECT i, i % 90, 'n' || (i % 4), chr((97 + i % 8)::INTEGER) FROM range(9000) t(i);"
            "INSERT INTO visit SELECT i % 900, i % 10, 'p' || (i % 14) FROM range(9000) t(i)"
        )
    with ExitStack() as stack:

        def session(more: str = 'verify = "refuse"', epsilon: str = "50") -> Session:
            path = tmp_path / "people.toml"
            path.write_text(POLICY.format(more=more, epsilon=epsilon))
            open_ledger(load_policy(path), create=True).close()
            return stack.enter_context(Session.open(path))

        yield session


class Checked:
    """A checker that notes what it verifies, and refuses by a word in a text."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refused: str = "no text has this") -> None:
        self.seen: list[Certificate] = []
        self.refused = refused
        monkeypatch.setattr(verifying, "verify", self)

    def __call__(self, certificate: Certificate, facts: Facts) -> tuple[()]:
        self.seen.append(certificate)
        if any(self.refused in text for text in self.texts):
            raise Refused("a rule", f"of {self.refused}")
        return ()

    @property
    def texts(self) -> set[str]:
        return {query.sql for one in self.seen for release in one.releases for query in release.queries}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reaches the database."""
    found: list[str] = []
    run = DuckDBSnapshot.run

    def noted(self: DuckDBSnapshot, sql: str, *more: Any, **how: Any) -> Any:
        found.append(sql)
        return run(self, sql, *more, **how)

    monkeypatch.setattr(DuckDBSnapshot, "run", noted)
    return found


def heard(session: Session) -> list[str]:
    """Return what the owner is told, from now on."""
    told: list[str] = []
    session.dataset.tell = told.append
    return told


def private(asked: list[str]) -> list[str]:
    return [sql for sql in asked if '"person"' in sql or '"visit"' in sql]


def released(session: Session) -> None:
    session.release(["SELECT COUNT(*) FROM person WHERE age > 50", "SELECT AVG(age) FROM person"])


def measured(session: Session) -> None:
    measure(session, Wish("visit", Fraction(1), Fraction(1)), "dpsql bounds visit")


def accurate(session: Session) -> None:
    session.execute("SET dpsql.accuracy = '40'")
    session.execute("SELECT COUNT(*) FROM person WHERE age < 20")


def anew(session: Session) -> None:
    session.execute("SET dpsql.reuse = off")
    session.execute(COUNT)


DOORS: dict[str, Callable[[Session], object]] = {
    "a count": lambda session: session.execute(COUNT),
    "of joins": lambda session: session.execute(
        "SELECT city, SUM(day) FROM person JOIN visit ON visit.person_id = person.id GROUP BY city"
    ),
    "found groups": lambda session: session.execute(NAMES),
    "chosen groups": lambda session: session.execute(TOP),
    "ranks": lambda session: session.execute(f"SELECT {QUARTILES} FROM person"),
    "ranks of rows": lambda session: session.execute("SELECT MEDIAN(day), MODE() WITHIN GROUP (ORDER BY place) FROM visit"),
    "an intermediate result": lambda session: session.execute(
        "SELECT COUNT(*) FROM person WHERE age > (SELECT AVG(age) FROM person)"
    ),
    "a released table": lambda session: session.execute(
        "SELECT COUNT(*) FROM person JOIN (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS c USING (city) "
        "WHERE c.n > 500"
    ),
    "listed keys": lambda session: session.execute(
        "SELECT town.city, COUNT(*) FROM person JOIN town ON town.city = person.city GROUP BY town.city"
    ),
    "a batch": released,
    "bounds": measured,
    "an accuracy": accurate,
    "without reuse": anew,
}  # fmt: skip


@pytest.mark.parametrize("accounting", ["", 'accounting = "zcdp"'], ids=["pure", "zcdp"])
@pytest.mark.parametrize("door", DOORS)
@long_where(lambda accounting, door: bool(accounting) and [*DOORS].index(door) % 3)
def test_what_is_sent_was_verified_as_it_is(
    opened: Open, monkeypatch: pytest.MonkeyPatch, asked: list[str], door: str, accounting: str
) -> None:
    checked, session = Checked(monkeypatch), opened(f'verify = "refuse"\n{accounting}')
    DOORS[door](session)
    sent = private(asked)
    assert sent
    assert set(sent) <= checked.texts


@pytest.mark.parametrize("door", DOORS)
def test_what_is_not_verified_is_refused_and_free(
    opened: Open, monkeypatch: pytest.MonkeyPatch, asked: list[str], door: str
) -> None:
    session = opened()
    told = heard(session)
    Checked(monkeypatch, "FROM")
    with pytest.raises(Unverified) as refused:
        DOORS[door](session)
    assert refused.value.sqlstate == "XX000"
    assert "the plan could not be verified" in str(refused.value)
    assert "a rule" not in str(refused.value), "it is for the owner"
    assert told == [TOLD]
    assert not private(asked)
    store = session.dataset.store
    assert (store.spent().epsilon_nano, store.log(9)) == (0, [])


def test_what_is_printed_from_released_numbers_is_verified_before_it_is_sent(
    opened: Open, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    """Of chosen groups the second text has their names: it is refused after the charge, and never sent."""
    session, checked = opened(), Checked(monkeypatch)
    chosen = next(one for one in session.explain(TOP).plan.releases if one.top is not None)
    planned = {query.sql for query in chosen.queries(tuple(range(len(chosen.measurements))))}
    original = checked.__call__

    def only_planned(certificate: Certificate, facts: Facts) -> tuple[()]:
        original(certificate, facts)
        texts = {query.sql for release in certificate.releases for query in release.queries}
        if not texts <= planned:
            raise Refused("a rule")
        return ()

    monkeypatch.setattr(verifying, "verify", only_planned)
    for _ in range(8):  # the groups that are chosen may be those that stood for them
        session.execute("SET dpsql.reuse = off")
        asked.clear()
        with suppress(Unverified):
            session.execute(TOP)
            continue
        assert session.dataset.store.spent().epsilon_nano
        assert set(private(asked)) <= planned
        return
    raise AssertionError("the same group was chosen each time")


def test_the_policy_can_have_it_run_and_logged(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened('verify = "log"')
    told = heard(session)
    Checked(monkeypatch, "FROM")
    assert session.execute(COUNT).rows
    assert told == [TOLD]


def test_a_bug_of_the_checker_refuses(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(certificate: Certificate, facts: Facts) -> tuple[()]:
        raise KeyError("on purpose")

    monkeypatch.setattr(verifying, "verify", broken)
    with pytest.raises(Unverified) as refused:
        opened().execute(COUNT)
    assert refused.value.rule == "a bug: KeyError"


def test_the_same_text_facts_and_claim_are_verified_once(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, checked = opened(), Checked(monkeypatch)
    session.execute("SET dpsql.reuse = off")
    for _ in range(3):
        session.execute(COUNT)
    assert len(checked.seen) == 1
    session.execute("SET dpsql.epsilon = 0.25")
    session.execute(COUNT)
    assert len(checked.seen) == 2, "another claim"


def test_the_entry_names_the_certificate_which_is_stored(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, checked = opened(), Checked(monkeypatch)
    session.execute("SELECT COUNT(*), AVG(age) FROM person")
    store = session.dataset.store
    entries = store.log(9)
    (digest,) = {entry.certificate for entry in entries}
    assert digest is not None
    content = store.certificate(digest)
    assert content is not None
    assert loads(Certificate, content.decode()) == checked.seen[0]
    assert sum((entry.charge.epsilon_nano for entry in entries), 0) == checked.seen[0].charge.epsilon * 10**9


def test_what_does_not_fit_the_budget_leaves_no_certificate(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, checked = opened(epsilon="0.75"), Checked(monkeypatch)
    session.execute(COUNT)
    with pytest.raises(BudgetExhausted):
        session.execute("SELECT COUNT(*) FROM visit")
    _, certificate = checked.seen
    assert session.dataset.store.certificate(digest(certificate)) is None


def test_what_is_stored_already_is_not_asked_and_not_in_the_certificate(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, checked = opened(), Checked(monkeypatch)
    session.execute(COUNT)
    session.execute(COUNT)
    assert len(checked.seen) == 1
    session.execute("SELECT COUNT(*), AVG(age) FROM person")
    (release,) = checked.seen[-1].releases
    assert all(one.kind != "count" for one in release.measurements)


def test_one_claim_is_verified_once(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever its draws are stored: EXPLAIN knows of no place."""
    session, seen, rule_against = opened(), list[Certificate](), verifying.rule_against

    def noted(certificate: Certificate) -> str:
        seen.append(certificate)
        return rule_against(certificate)

    monkeypatch.setattr(verifying, "rule_against", noted)
    session.execute("SET dpsql.reuse = off")
    for sql in (f"EXPLAIN (VERIFY) {COUNT}", COUNT, COUNT):
        session.execute(sql)
    assert len(seen) == 1
    session.execute("SET dpsql.epsilon = 0.25")
    session.execute(COUNT)
    assert len(seen) == 2


@pytest.mark.parametrize("accounting", ["", 'accounting = "zcdp"'], ids=["pure", "zcdp"])
def test_every_door_is_verified(opened: Open, asked: list[str], accounting: str) -> None:
    """By the verifier itself; and what is asked again of groups that were found before, or for more."""
    session = opened(f'verify = "refuse"\n{accounting}', epsilon="500")
    told = heard(session)
    for door in DOORS.values():
        door(session)
        session.execute("RESET dpsql.accuracy")
        session.execute("RESET dpsql.reuse")
    for epsilon in ("0.2", "0.4"):
        session.execute(f"SET dpsql.epsilon = {epsilon}")
        session.execute("SELECT name, COUNT(*), SUM(age) FROM person GROUP BY name")
        session.execute("SELECT city, COUNT(*) FROM person GROUP BY city")
    assert told == []
    assert len(private(asked)) > len(DOORS)


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        (verifying, "MOST_BYTES_OF_ONE", "is too long to be stored"),
        (certificates, "MOST_BYTES", "there is no room for a certificate: "),
    ],
)
def test_a_certificate_that_cannot_be_stored_is_missing_and_logged(
    opened: Open, monkeypatch: pytest.MonkeyPatch, module: object, name: str, said: str
) -> None:
    session = opened()
    told = heard(session)
    Checked(monkeypatch)
    monkeypatch.setattr(module, name, 10)
    assert session.execute(COUNT).rows
    assert [entry.certificate for entry in session.dataset.store.log(9)] == [None]
    (line,) = told
    assert said in line


@pytest.mark.parametrize("more", ["", 'accounting = "zcdp"'])
def test_a_choice_beside_a_sum_of_found_groups_is_a_charge_of_its_own(opened: Open, more: str) -> None:
    """Their keys are not known before: each charge is looked for among all that its certificate says, and is one."""
    session = opened(f'verify = "refuse"\n{more}')
    session.execute(
        "SELECT name, MODE() WITHIN GROUP (ORDER BY age), MEDIAN(age), SUM(age) FROM person GROUP BY name"
    )
    store = session.dataset.store
    assert isinstance(store, LedgerStore)
    proved = list(prove_ledger(store, 100))
    assert {type(entry.law).__name__ for one in proved for entry in one.entries} >= {"Rank"}
    assert {one.problem for one in proved} == {""}


def test_a_charge_is_held_against_what_was_derived_and_not_against_what_is_claimed(opened: Open) -> None:
    """A draw that was topped up has a noise of its own: the certificate's word for how far a person moves it is a claim."""
    session = opened('verify = "refuse"\naccounting = "zcdp"')
    for epsilon in ("0.5", "0.9"):
        session.execute(f"SET dpsql.epsilon = {epsilon}")
        for sql in (COUNT, "SELECT SUM(age), COUNT(*) FROM person", "SELECT VAR_SAMP(age), AVG(day) FROM person "
                    "JOIN visit ON person_id = id", "SELECT place, SUM(day) FROM visit GROUP BY place"):  # fmt: skip
            session.execute(sql)
    store = session.dataset.store
    assert isinstance(store, LedgerStore)
    proved = list(prove_ledger(store, 100))
    assert proved
    assert {one.problem for one in proved} == {""}
    forged = 0
    for one in proved:
        for entry in one.entries:
            assert one.proof is not None
            releases = tuple(
                replace(
                    part, measurements=tuple(replace(m, sensitivity=Fraction(0)) for m in part.measurements)
                )
                for part in one.proof.certificate.releases
            )
            claimed = prove(replace(one.proof.certificate, releases=releases))
            assert proofs._is_of(entry, claimed)  # what is charged is enough of what is derived
            said = [m.stored for part in releases for m in part.measurements]
            assert said.count(tuple(key.hex() for key in entry.measures)) == 1, (
                "it is told which one it is of"
            )
            if isinstance(entry.law, Gaussian):
                forged += 1
                parts = 2**20 if entry.law.scale <= 2**20 else 1  # what a deviation is a multiple of
                half = Gaussian(Fraction(int(entry.law.scale * parts) // 2, parts))
                assert not proofs._is_of(replace(entry, law=half), claimed)
    assert forged > 4


def test_a_charge_in_epsilon_that_stored_draws_lowered_is_proved(opened: Open) -> None:
    session = opened('verify = "refuse"')
    for sql in (
        COUNT,
        "SELECT city, COUNT(*) FROM person GROUP BY city",
        "SELECT age >= 40, COUNT(*) FROM person GROUP BY 1",
    ):
        session.execute(sql)
    store = session.dataset.store
    assert isinstance(store, LedgerStore)
    proved = list(prove_ledger(store, 100))
    assert {one.problem for one in proved} == {""}
    charges = [entry.charge.epsilon_nano for one in proved for entry in one.entries]
    assert min(charges) < max(charges), "one of them costs less, as others are stored"
    for one in proved:
        for entry in one.entries:
            assert one.proof is not None
            assert isinstance(entry.law, Laplace)
            less = replace(entry.charge, epsilon_nano=entry.charge.epsilon_nano - 1000)
            for forged in (replace(entry, charge=less), replace(entry, law=Laplace(entry.law.scale / 2))):
                assert not proofs._is_of(forged, one.proof)


PEOPLE = "SELECT place, COUNT(DISTINCT person_id) FROM visit GROUP BY place"


@pytest.mark.parametrize("told", [1, 13, 14])
def test_no_more_groups_are_drawn_than_were_verified(
    opened: Open, monkeypatch: pytest.MonkeyPatch, asked: list[str], told: int
) -> None:
    session = opened()
    monkeypatch.setattr(verifying, "most_drawn", lambda plan: told)
    monkeypatch.setattr(verifying, "verify", lambda *_: ())
    if told == 14:
        assert len(session.execute(PEOPLE).rows) == 14
        return
    with pytest.raises(AssertionError, match="more groups are drawn than were verified"):
        session.execute(PEOPLE)
    assert private(asked) == []


def test_the_cells_of_other_values_are_among_those_that_are_drawn(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, checked = opened(), Checked(monkeypatch)
    session.execute("SELECT city, COUNT(*) FROM person GROUP BY city")
    session.execute(PEOPLE)
    session.execute(NAMES)
    session.execute(COUNT)
    counts, people, names, whole, *_ = (one.releases[0].groups for one in checked.seen)
    assert (counts.count, counts.drawn) == (8, 9)  # with all other cities as one
    assert (people.count, people.drawn) == (14, 15)
    assert names.drawn is None
    assert whole.drawn is None
    session.execute("SELECT name, AVG(age) FROM person GROUP BY name")
    found = checked.seen[-1].releases[0].groups
    assert (found.kind, found.drawn) == ("declared", None)  # which they are was found before


QUOTED = """
database = "duckdb:quoted.duckdb"
ledger = "sqlite:quoted.db"
[privacy]
epsilon = 10
[defaults]
epsilon = 1
[tables.'of "people"']
unit = "id"
[tables.'of "people"'.columns]
'in "years"' = { bounds = [0, 90] }
"""


def test_a_name_with_quotes_is_verified(tmp_path: Path) -> None:
    """It stands twice in a text, and once among the facts."""
    with duckdb.connect(str(tmp_path / "quoted.duckdb")) as connection:
        connection.execute('CREATE TABLE "of ""people""" (id INTEGER PRIMARY KEY, "in ""years""" INTEGER)')
    path = tmp_path / "quoted.toml"
    path.write_text(QUOTED)
    open_ledger(load_policy(path), create=True).close()
    with Session.open(path) as session:
        assert session.execute('SELECT SUM("in ""years""") FROM "of ""people"""').receipt is not None
