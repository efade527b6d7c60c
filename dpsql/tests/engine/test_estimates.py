"""Estimates over randomised answers: what they ask of the data, how good they and their bars are, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.errors import Refusal
from dpsql.mechanisms import Channel
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import load_policy
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import first, long_where

SURVEYS, ANSWERS = 500, 160
DRUG = Channel.of_epsilon(4, Fraction(1))
SMOKES = Channel.of_truth(2, Fraction(3, 4))
ILL = Channel.of_bit(Fraction(1, 2), Fraction(1, 4), 1)
COINS = """
drug = { values = ["a", "b", "c", "d"], randomized = { epsilon = 1 } }
smokes = { values = ["yes", "no"], randomized = { p = 0.75 } }
ill = { values = [false, true], randomized = { p = 0.5, q = 0.25 } }
"""
PLAIN = 'drug = { values = ["a", "b", "c", "d"] }\nsmokes = { values = ["yes", "no"] }\nill = { values = [false, true] }\n'
POLICY = """
database = "duckdb:survey.duckdb"
ledger = "sqlite:survey.db"
[privacy]
epsilon = 9000
delta = 1e-5
[defaults]
max_epsilon = 10
[tables.person]
unit = "id"
[tables.person.columns]
survey = { bounds = [0, 499] }
age = { bounds = [0, 80] }
debt = { bounds = [-50, 50] }
copy = { values = ["a", "b", "c", "d"] }
COINS
[tables.trip]
unit = { column = "person_id", references = "person.id" }
max_rows = 5
[tables.trip.columns]
days = { bounds = [0, 30] }
[tables.place]
public = true
[tables.sent]
public = true
[tables.sent.columns]
COINS
"""
TABLES = """
CREATE TABLE person (id INTEGER PRIMARY KEY, survey INTEGER NOT NULL, age INTEGER NOT NULL, debt INTEGER NOT NULL,
    copy VARCHAR NOT NULL, drug VARCHAR NOT NULL, smokes VARCHAR NOT NULL, ill BOOLEAN NOT NULL);
CREATE TABLE sent AS SELECT * FROM person;
ALTER TABLE sent ALTER drug SET NOT NULL; ALTER TABLE sent ALTER smokes SET NOT NULL;
ALTER TABLE sent ALTER ill SET NOT NULL;
CREATE TABLE trip (person_id INTEGER REFERENCES person (id), days INTEGER);
CREATE TABLE place (survey INTEGER PRIMARY KEY, town VARCHAR);
"""
Ints = npt.NDArray[np.int64]


def reported(channel: Channel, truth: Ints, rng: np.random.Generator) -> Ints:
    """Return what is reported of many answers: the same coins as `report`, from a seeded source for speed."""
    table = np.array(
        [[float(channel.chance(true, said)) for said in range(channel.size)] for true in range(channel.size)]
    ).cumsum(axis=1)
    drawn = rng.random(len(truth))
    return np.asarray((drawn[:, None] > table[truth]).sum(axis=1).clip(0, channel.size - 1))


class Truth:
    """The true answers, survey by survey, of the first so many surveys of as many people."""

    def __init__(self, seed: int = 4) -> None:
        rng = np.random.default_rng(seed)
        count = SURVEYS * ANSWERS
        self.survey = np.repeat(np.arange(SURVEYS), ANSWERS)
        self.drug = rng.choice(4, count, p=[0.4, 0.3, 0.2, 0.1])
        self.smokes = rng.choice(2, count, p=[0.3, 0.7])
        self.ill = rng.choice(2, count, p=[0.7, 0.3])
        self.age = np.where(self.drug == 0, 60, 30) + rng.integers(-20, 21, count)
        self.debt = rng.integers(-50, 51, count)
        self.said = [
            reported(channel, true, rng)
            for channel, true in ((DRUG, self.drug), (SMOKES, self.smokes), (ILL, self.ill))
        ]

    def fill(self, path: Path) -> None:
        drug, smokes, ill = self.said
        with duckdb.connect(str(path)) as connection:
            connection.execute(TABLES)
            frame = {
                "id": np.arange(len(self.survey)), "survey": self.survey, "age": self.age, "debt": self.debt,
                "copy": np.array(list("abcd"))[self.drug], "drug": np.array(list("abcd"))[drug],
                "smokes": np.array(["yes", "no"])[smokes], "ill": ill == 1,
            }  # fmt: skip
            connection.register("frame", frame)
            for table in ("person", "sent"):
                connection.execute(f"INSERT INTO {table} SELECT * FROM frame")
            connection.execute("INSERT INTO place SELECT range, 'town ' || range % 3 FROM range(500)")

    def per_survey(self, value: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return np.bincount(self.survey, weights=value, minlength=SURVEYS)


def opened(folder: Path, policy: str) -> Session:
    (folder / "survey.toml").write_text(policy)
    open_ledger(load_policy(folder / "survey.toml"), create=not (folder / "survey.db").exists()).close()
    return Session.open(folder / "survey.toml")


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, truth: Truth) -> Path:
    made = tmp_path_factory.mktemp("survey")
    truth.fill(made / "survey.duckdb")
    return made


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    with opened(folder, POLICY.replace("COINS", COINS)) as made:
        yield made


# --- right on average, and bars that hold -------------------------------------------------------------------

TRUTHS: dict[str, Callable[[Truth], npt.NDArray[Any]]] = {
    "COUNT(*) FILTER (WHERE drug = 'a')": lambda t: t.per_survey(t.drug == 0),
    "COUNT(*) FILTER (WHERE drug IN ('b', 'd'))": lambda t: t.per_survey((t.drug == 1) | (t.drug == 3)),
    "COUNT(*) FILTER (WHERE NOT ill)": lambda t: t.per_survey(t.ill == 0),
    "COUNT(*) FILTER (WHERE drug <> 'a' AND smokes = 'yes')": lambda t: t.per_survey((t.drug > 0) & (t.smokes == 0)),
    "SUM(age) FILTER (WHERE smokes = 'yes')": lambda t: t.per_survey(t.age * (t.smokes == 0)),
    "SUM(CASE WHEN ill THEN debt ELSE 0 END)": lambda t: t.per_survey(t.debt * (t.ill == 1)),
    "AVG(age) FILTER (WHERE smokes = 'no')": lambda t: t.per_survey(t.age * (t.smokes == 1)) / t.per_survey(t.smokes == 1),
    "AVG(CASE WHEN drug = 'a' THEN 1.0 ELSE 0 END)": lambda t: t.per_survey(t.drug == 0) / ANSWERS,
}  # fmt: skip


def answers(session: Session, sql: str) -> npt.NDArray[np.float64]:
    """Return value, low and high of the last column of each row, in the order of the first column."""
    session.execute("SET dpsql.intervals = 0.95")
    rows = sorted(session.execute(sql).rows)
    return np.array([row[-3:] for row in rows], dtype=np.float64)


@pytest.mark.parametrize("aggregate", TRUTHS)
def test_public_surveys(session: Session, truth: Truth, aggregate: str) -> None:
    """500 surveys: the errors have no mean, and 95 % bars hold as often as they say; nothing is charged."""
    before = session.budget().epsilon_spent_nano
    found = answers(session, f"SELECT survey, {aggregate} AS n FROM sent GROUP BY survey")
    true = TRUTHS[aggregate](truth)
    errors = found[:, 0] - true
    if not aggregate.startswith("AVG(age"):  # a ratio has a bias of the order of its variance
        assert abs(errors.mean()) < 3.5 * errors.std() / math.sqrt(SURVEYS)
    held = ((found[:, 1] <= true) & (true <= found[:, 2])).mean()
    assert 0.928 <= held <= 0.972, held  # 95 % of 500, within three standard errors where the bar is exact
    assert session.budget().epsilon_spent_nano == before


@long_where(lambda epsilon, aggregate: (epsilon == "5") is ("drug" in aggregate))
@pytest.mark.parametrize("aggregate", [name for name in TRUTHS if "COUNT" in name])
@pytest.mark.parametrize("epsilon", ["0.05", "5"])
def test_private_surveys(session: Session, truth: Truth, aggregate: str, epsilon: str) -> None:
    """The same with noise: far above the answers' own error, and far below it."""
    session.execute(f"SET dpsql.epsilon = {epsilon}")
    found = answers(session, f"SELECT survey, {aggregate} AS n FROM person GROUP BY survey")
    true = TRUTHS[aggregate](truth)
    held = ((found[:, 1] <= true) & (true <= found[:, 2])).mean()
    assert 0.91 <= held <= 0.99, held  # fresh noise in each run: four standard errors of 95 % of 500
    errors = found[:, 0] - true
    assert abs(errors.mean()) < 4.5 * errors.std() / math.sqrt(SURVEYS)


@pytest.mark.parametrize("aggregate", first(2, (name for name in reversed(TRUTHS) if "COUNT" not in name)))
def test_bars_of_private_sums_hold_at_least_so_often(session: Session, truth: Truth, aggregate: str) -> None:
    """Squares of people's values are known by their bounds alone: bars are wider, never narrower."""
    session.execute("SET dpsql.epsilon = 5")
    found = answers(session, f"SELECT survey, {aggregate} AS n FROM person GROUP BY survey")
    true = TRUTHS[aggregate](truth)
    assert ((found[:, 1] <= true) & (true <= found[:, 2])).mean() >= 0.93


@pytest.mark.parametrize("table", ["sent", "person"])
def test_grouped_by_the_answer(session: Session, truth: Truth, table: str) -> None:
    """Over 500 surveys of 4 answers each: 2000 bars; of people 480."""
    session.execute("SET dpsql.epsilon = 5")
    session.execute("SET dpsql.intervals = 0.95")
    some = SURVEYS if table == "sent" else 120
    sql = f"SELECT survey, drug, COUNT(*) AS n FROM {table} WHERE survey < {some} GROUP BY survey, drug"
    rows = session.execute(sql).rows
    assert len(rows) == 4 * some
    true = {
        (survey, "abcd"[drug]): int(((truth.drug == drug) & (truth.survey == survey)).sum())
        for survey in range(SURVEYS) for drug in range(4)
    }  # fmt: skip
    held = np.mean([low <= true[survey, drug] <= high for survey, drug, _, low, high in rows])
    assert 0.94 <= held <= 0.965 if table == "sent" else 0.925 <= held <= 0.975, held
    errors = np.array([n - true[survey, drug] for survey, drug, n, *_ in rows])
    assert (
        abs(errors.mean()) < 1e-6 if table == "sent" else abs(errors.mean()) < 1
    )  # groups add up to all rows


def test_two_answers_as_keys_are_the_product_of_their_inverses(session: Session, truth: Truth) -> None:
    rows = session.execute("SELECT smokes, drug, COUNT(*) AS n FROM sent GROUP BY smokes, drug").rows
    found = {(smokes, drug): n for smokes, drug, n in rows}
    drug, smokes, _ = truth.said
    for a in range(2):
        for b in range(4):
            exact = Fraction(0)
            for i in range(2):
                for j in range(4):
                    first, second = SMOKES.weights(frozenset({a})), DRUG.weights(frozenset({b}))
                    weight = first[i != a] * second[j != b]
                    exact += weight * int(((smokes == i) & (drug == j)).sum())
            assert found["yes" if a == 0 else "no", "abcd"[b]] == pytest.approx(float(exact), rel=1e-12)


def test_filters_and_groups_agree(session: Session) -> None:
    by_group = dict(session.execute("SELECT drug, COUNT(*) FROM sent GROUP BY drug").rows)
    for drug in "abcd":
        (row,) = session.execute(f"SELECT COUNT(*) FROM sent WHERE drug = '{drug}'").rows
        assert row[0] == pytest.approx(by_group[drug], rel=1e-12)
    (flags,) = session.execute(
        "SELECT COUNT(*) FILTER (WHERE drug = 'a'), SUM(CASE WHEN drug = 'a' THEN 1 ELSE 0 END),"
        " COUNT(CASE WHEN drug = 'a' THEN 1 END), SUM((drug = 'a')::int), SUM(CASE drug WHEN 'a' THEN 1 ELSE 0 END),"
        " COUNT(*) FILTER (WHERE NOT drug IN ('b', 'c', 'd')) FROM sent"
    ).rows
    assert flags == pytest.approx([by_group["a"]] * 6, rel=1e-12)


def test_without_a_policy_it_is_the_same_estimate(session: Session, tmp_path: Path) -> None:
    """`dpsql local estimate` over a file of the same reported answers; its bars to their simulation's error."""
    session.execute("SET dpsql.intervals = 0.95")
    rows = session.execute("SELECT smokes, COUNT(*) AS n FROM sent WHERE survey < 20 GROUP BY smokes").rows
    said = session.execute("SELECT smokes FROM sent WHERE survey < 20").rows
    (tmp_path / "sent.csv").write_text("smokes\n" + "".join(f"{one}\n" for (one,) in said))
    coins = ["--column", "smokes", "--values", "yes,no", "--p", "0.75"]
    printed = CliRunner().invoke(program, ["local", "estimate", str(tmp_path / "sent.csv"), *coins]).output
    shown = {line.split()[0]: line.split()[1:] for line in printed.splitlines()}
    for smokes, n, low, high in rows:
        assert float(shown[smokes][1]) == pytest.approx(n, abs=0.06)
        assert float(shown[smokes][2]) == pytest.approx((high - low) / 2, rel=0.12)


def test_groups_that_are_asked_for_alone(session: Session) -> None:
    rows = session.execute("SELECT drug, COUNT(*) AS n FROM sent WHERE drug IN ('a', 'd') GROUP BY drug").rows
    every = dict(session.execute("SELECT drug, COUNT(*) FROM sent GROUP BY drug").rows)
    assert [drug for drug, _ in rows] == ["a", "d"]
    assert all(n == pytest.approx(every[drug], rel=1e-12) for drug, n in rows)


# --- the declaration changes no scale ----------------------------------------------------------------------

ALIKE = {
    "SELECT COUNT(*) AS n FROM person WHERE drug = 'a'":
        "SELECT COUNT(*) FILTER (WHERE drug = 'a') AS n, COUNT(*) FILTER (WHERE drug IN ('b', 'c', 'd')) AS m FROM person",
    "SELECT drug, COUNT(*) AS n FROM person GROUP BY drug":
        "SELECT drug, COUNT(*) AS n FROM person GROUP BY drug",
    "SELECT drug, smokes, AVG(age) AS n FROM person GROUP BY drug, smokes":
        "SELECT drug, smokes, SUM(age) AS n, COUNT(age) AS m FROM person GROUP BY drug, smokes",
    "SELECT SUM(age) FILTER (WHERE ill) AS n FROM person":
        "SELECT SUM(age) FILTER (WHERE ill = true) AS n, SUM(age) FILTER (WHERE ill = false) AS m FROM person",
}  # fmt: skip


@pytest.mark.parametrize(("asked", "plain"), ALIKE.items())
def test_the_declaration_changes_no_scale(folder: Path, asked: str, plain: str) -> None:
    """The release is the very one that is made of the counts of reported answers, written out and not declared.

    But for the rows of all other values (soundness.md 1.34): they are drawn with answers that nobody reported alone, and
    at no cost.
    """
    made: list[tuple[object, ...]] = []
    for policy, sql in ((COINS, asked), (PLAIN, plain)):
        with opened(folder, POLICY.replace("COINS", policy)) as session:
            releases = session.explain(sql).plan.releases
            made.append(tuple(map(_claims, releases)))
    assert made[0] == made[1]


def _claims(release: ReleasePlan) -> tuple[object, ...]:
    numbers = range(len(release.measurements))
    vars(release)["axes"] = None
    return (
        [(type(one.measurement).__name__, one.measurement.size, one.measurement.sensitivity, one.scale, one.epsilon)
         for one in release.measures],
        release.delta, [query.sql for query in release.queries(tuple(numbers))],
    )  # fmt: skip


def test_a_false_claim_changes_the_estimate_alone(folder: Path) -> None:
    """A column that was never randomised, declared as if: the answer is wrong, the noise and the charge are not."""
    charges = []
    for copy in ('copy = { values = ["a", "b", "c", "d"], randomized = { epsilon = 1 } }',
                 'copy = { values = ["a", "b", "c", "d"] }'):  # fmt: skip
        text = POLICY.replace("COINS", COINS).replace('copy = { values = ["a", "b", "c", "d"] }', copy)
        with opened(folder, text) as session:
            plan = session.explain("SELECT copy, COUNT(*) FROM person GROUP BY copy").plan
            charges.append((plan.epsilon, [_claims(release) for release in plan.releases]))
    assert charges[0] == charges[1]


def test_beside_an_exact_copy_each_keeps_its_scale(session: Session) -> None:
    sql = "SELECT COUNT(*) FROM person WHERE drug = 'a' AND copy = 'b'"
    (release,) = session.explain(sql).plan.releases
    assert [one.sensitivity for one in release.measurements] == [1]
    assert session.explain(sql).plan.epsilon == session.settings.epsilon


def test_a_lookup_by_its_key_copies_no_answer(session: Session) -> None:
    sql = (
        "SELECT p.town, COUNT(*) FROM sent s JOIN place p ON s.survey = p.survey WHERE s.ill GROUP BY p.town"
    )
    (total,) = session.execute("SELECT COUNT(*) FROM sent WHERE ill").rows
    assert sum(n for _, n in session.execute(sql).rows) == pytest.approx(total[0], rel=1e-12)
    comma = sql.replace(
        "JOIN place p ON s.survey = p.survey WHERE", ", place p WHERE s.survey = p.survey AND"
    )
    assert sorted(session.execute(comma).rows) == sorted(session.execute(sql).rows)


def test_explain_and_notes_tell_of_the_coins(session: Session) -> None:
    text = session.explain("SELECT COUNT(*) FROM person WHERE drug = 'a'").text()
    assert "drug was randomised when it was collected (truth with probability 0.475)" in " ".join(
        text.split()
    )
    assert "2.48 sqrt(n)" in text
    assert "smokes" not in text.split("post-processing")[0].split("note:")[1]
    receipt = session.execute("SELECT COUNT(*) FROM sent WHERE drug = 'a'").receipt
    assert receipt is not None
    assert any("randomised when it was collected" in note for note in receipt.notes)


def test_groups_that_are_found_may_be_missing(session: Session) -> None:
    notes = session.explain(
        "SELECT debt * 100 + age AS k, drug, COUNT(*) FROM person GROUP BY 1, 2"
    ).as_dict()["notes"]
    assert any("not shown is missing" in note for note in notes)  # type: ignore[attr-defined]
    notes = session.explain("SELECT survey, drug, COUNT(*) FROM person GROUP BY 1, 2").as_dict()["notes"]
    assert not any("not shown is missing" in note for note in notes)  # type: ignore[attr-defined]


def test_no_epsilon_makes_the_coins_error_smaller(session: Session) -> None:
    session.execute("SET dpsql.accuracy = 50")
    with pytest.raises(Refusal, match="error of their own"):
        session.execute("SELECT COUNT(*) FROM person WHERE drug = 'a'")
    session.execute("SELECT COUNT(*) FROM person")
    session.execute("SELECT COUNT(*) FROM sent WHERE drug = 'a'")


def test_one_estimate_twice_has_one_error(session: Session) -> None:
    """Bars of a difference of an estimate and itself are nothing: its coins are the same coins."""
    session.execute("SET dpsql.intervals = 0.95")
    sql = (
        "WITH t AS (SELECT COUNT(*) AS n FROM sent WHERE drug = 'a')"
        " SELECT (SELECT n FROM t) - (SELECT n FROM t) AS d FROM place LIMIT 1"
    )
    ((d, low, high),) = session.execute(sql).rows
    assert (d, low, high) == (0, 0, 0)


def test_unknown_and_hidden_values(session: Session) -> None:
    session._noise = ZeroNoise()
    session.execute("SET dpsql.reuse = off")  # a count of all people may be stored by now, with its noise
    (row,) = session.execute("SELECT COUNT(*) FROM person WHERE drug IN ('a', 'b', 'c', 'd')").rows
    assert row[0] == SURVEYS * ANSWERS


# --- what has no estimate ----------------------------------------------------------------------------------

REFUSED = {
    "SELECT * FROM sent WHERE drug = 'a'": "count or sum other columns",
    "SELECT COUNT(*) FROM person WHERE drug = drug": "compare it with literals",
    "SELECT COUNT(*) FROM person WHERE drug = copy": "on one of them alone",
    "SELECT COUNT(*) FROM person WHERE drug = smokes": "on one of them alone",
    "SELECT COUNT(*) FROM person WHERE drug LIKE 'a%'": "=, <> and IN",
    "SELECT COUNT(*) FROM person WHERE drug < 'b'": "=, <> and IN",
    "SELECT COUNT(*) FROM person WHERE lower(drug) = 'a'": "compare it with literals",
    "SELECT COUNT(*) FROM person WHERE drug = 'a' OR age > 3": "joined by AND",
    "SELECT COUNT(*) FROM person WHERE drug = 'a' OR smokes = 'yes'": "joined by AND",
    "SELECT COUNT(drug) FROM person": "FILTER",
    "SELECT COUNT(DISTINCT drug) FROM person": "COUNT, SUM and AVG",
    "SELECT COUNT(DISTINCT id) FROM person WHERE drug = 'a'": "COUNT, SUM and AVG",
    "SELECT MIN(drug) FROM sent": "COUNT, SUM and AVG",
    "SELECT MEDIAN(age) FROM person WHERE drug = 'a'": "COUNT, SUM and AVG",
    "SELECT STDDEV(age) FILTER (WHERE ill) FROM person": "COUNT, SUM and AVG",
    "SELECT SUM(age) FROM person GROUP BY ROLLUP (drug)": "plain GROUP BY",
    "SELECT GROUPING(drug), COUNT(*) FROM person GROUP BY drug": "plain GROUP BY",
    "SELECT drug || 'x', COUNT(*) FROM person GROUP BY 1": "column itself",
    "SELECT drug, COUNT(*) FILTER (WHERE drug = 'a') FROM person GROUP BY drug": "group key already",
    "SELECT DISTINCT drug FROM sent": "count or sum",
    "SELECT drug FROM sent UNION ALL SELECT drug FROM sent": "count or sum",
    "SELECT drug, ROW_NUMBER() OVER (PARTITION BY drug ORDER BY id) FROM sent": "count or sum",
    "SELECT id FROM sent ORDER BY drug LIMIT 1": "count or sum",
    "SELECT COUNT(*) FROM sent s JOIN person p ON s.drug = p.drug": "count or sum",
    "SELECT COUNT(*) FROM person WHERE drug IN (SELECT drug FROM sent)": "count or sum",
    "SELECT COUNT(*) FROM place p WHERE EXISTS (SELECT 1 FROM sent s WHERE s.survey = p.survey AND s.ill)": "count or sum",
    "SELECT COUNT(*) FROM person p, sent s WHERE p.survey = s.survey AND p.drug = 'a'": "one row for each",
    "SELECT COUNT(*) FROM person p JOIN trip t ON t.person_id = p.id WHERE p.drug = 'a'": "one row for each",
    "SELECT COUNT(*) FROM person p JOIN person q ON p.id = q.id WHERE p.ill AND q.ill": "twice",
    "SELECT id, COUNT(*) FROM person WHERE drug = 'a' GROUP BY id": "below a person's GROUP BY",
    "SELECT AVG(n) FROM (SELECT id, COUNT(*) FILTER (WHERE ill) AS n FROM person GROUP BY id) t": "below a person's",
    "SELECT COUNT(*) FROM (SELECT CASE WHEN ill THEN 1 ELSE 0 END AS f FROM person) t WHERE f = 1": "count or sum",
    "SELECT COUNT(*) FROM (SELECT drug || '' AS d FROM person) t WHERE d = 'a'": "count or sum",
    "SELECT AVG(ill::int * age) FROM person": "COUNT(*) FILTER",
    "SELECT COUNT(*) FROM place WHERE (SELECT drug FROM sent LIMIT 1) = 'a'": "count or sum",
}  # fmt: skip


@pytest.mark.parametrize(("sql", "hint"), REFUSED.items())
def test_any_other_use_is_refused(session: Session, sql: str, hint: str) -> None:
    before = session.budget().epsilon_spent_nano
    with pytest.raises(Refusal) as caught:
        session.execute(sql)
    assert caught.value.sqlstate == "PV003"
    assert "randomised when it was collected" in caught.value.message
    assert hint in (caught.value.hint or "")
    assert session.budget().epsilon_spent_nano == before


def test_no_declared_value(session: Session) -> None:
    for sql in (
        "SELECT COUNT(*) FROM sent WHERE drug = 'x'",
        "SELECT COUNT(*) FROM sent WHERE drug = 'a' AND drug = 'b'",
    ):
        with pytest.raises(Refusal) as caught:
            session.execute(sql)
        assert caught.value.sqlstate == "22023"


def test_reported_rows_of_a_public_table_are_shown_as_they_are(session: Session) -> None:
    (row,) = session.execute("SELECT drug, smokes FROM sent LIMIT 1").rows
    assert row[0] in "abcd"
