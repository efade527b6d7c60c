"""An edit forgets what rests on it and nothing else: the key of a measurement is what its plan asked (soundness.md 3.7).

Each line of a policy, and of its database's schema, is edited by itself. Under two policies a statement has one key
only where it is the same random experiment on the same rows; and an edit of what it does not read leaves its keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpsql.backends import DuckDBBackend
from dpsql.errors import PolicyError, Refusal
from dpsql.plan import planner, release_plan
from dpsql.plan.planner import PrivacyParameters, plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.plan.views import build_catalog
from dpsql.policy import LiveSchema, Neighbours, Policy, parse_policy
from dpsql.policy import catalog as policy_catalog
from dpsql.relation.catalog import Catalog, Table
from dpsql.release import table
from dpsql.release.table import grouping_of
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.tests.support.duckdb_pool import empty_duckdb
from dpsql.tests.support.length import tried

from .planting import plant

Patch = pytest.MonkeyPatch

SCHEMA = """
CREATE TABLE person (
    id INTEGER PRIMARY KEY,
    team VARCHAR,
    age INTEGER,
    height DOUBLE,
    drug VARCHAR NOT NULL,
    nick VARCHAR);
CREATE TABLE bill (
    id INTEGER PRIMARY KEY,
    person_id INTEGER NOT NULL REFERENCES person (id),
    kind VARCHAR,
    amount INTEGER);
CREATE TABLE line (
    bill_id INTEGER NOT NULL REFERENCES bill (id),
    place INTEGER NOT NULL,
    cost INTEGER,
    UNIQUE (bill_id, place));
CREATE TABLE note (
    person_id INTEGER,
    stars INTEGER,
    ward VARCHAR,
    body VARCHAR);
CREATE TABLE note_copy AS FROM note;
CREATE TABLE card (
    person_id INTEGER NOT NULL REFERENCES person (id),
    level INTEGER,
    points INTEGER);
CREATE TABLE ward (
    name VARCHAR PRIMARY KEY,
    floor INTEGER,
    beds INTEGER);
CREATE TABLE spare (
    name VARCHAR PRIMARY KEY,
    size INTEGER);
CREATE TABLE extra (name VARCHAR, size INTEGER);
CREATE TABLE own (person_id INTEGER NOT NULL REFERENCES person (id));
CREATE TABLE again (person_id INTEGER);
CREATE VIEW v_card AS SELECT person_id, level, points + 1 AS more FROM card WHERE level > 0;
CREATE VIEW v_floor AS SELECT name, floor FROM ward;
"""
POLICY = """
database = "duckdb:release_plan.duckdb"
[privacy]
epsilon = 100
delta = 1e-2
{promise}
[defaults]
epsilon = 1
max_epsilon = 10
delta = 1e-3
minimum_units = 2
[tables.person]
unit = "id"
[tables.person.columns]
team = {{ values = ["red", "blue"], max_length = 5 }}
age = {{ bounds = [0, 90] }}
height = {{ bounds = [1, 2], step = 0.5 }}
drug = {{ values = ["yes", "no"], randomized = {{ epsilon = 2 }} }}
nick = {{ max_length = 9 }}
[tables.bill]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 6
max_rows_per_group = 3
max_groups = 4
[tables.bill.columns]
id = {{}}
kind = {{ values = ["a", "b", "c", {{ null = true }}] }}
amount = {{ bounds = [-5, 50] }}
[tables.line]
unit = {{ column = "bill_id", references = "bill.id" }}
max_rows = 8
[tables.line.columns]
place = {{ bounds = [1, 9] }}
cost = {{ bounds = [0, 20] }}
[tables.note]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 5
[tables.note.columns]
stars = {{ bounds = [1, 5] }}
ward = {{}}
body = {{}}
[tables.card]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 2
hidden = true
[tables.card.columns]
level = {{ bounds = [0, 7] }}
[tables.ward]
public = true
[tables.ward.columns]
floor = {{ bounds = [0, 3] }}
[tables.v_card]
view = true
[tables.v_card.columns]
level = {{ bounds = [1, 6] }}
more = {{ bounds = [0, 30] }}
[tables.v_floor]
view = true
[tables.spare]
public = true
[tables.spare.columns]
size = {{ bounds = [0, 9] }}
[analysts.ada]
epsilon = 50
"""

READS: dict[str, str] = {
    "SELECT COUNT(*) FROM person": "person",
    "SELECT SUM(age), AVG(height) FROM person": "person person.age person.height",
    "SELECT team, COUNT(*) FROM person GROUP BY team": "person person.team",
    "SELECT MEDIAN(age) FROM person WHERE height > 1.2": "person person.age person.height",
    "SELECT drug, COUNT(*) FROM person GROUP BY drug": "person person.drug",
    "SELECT nick, COUNT(*) FROM person GROUP BY nick": "person person.nick defaults.minimum_units",
    "SELECT COUNT(DISTINCT kind) FROM bill": "bill bill.kind",
    "SELECT kind, SUM(amount), COUNT(*) FROM bill GROUP BY kind": "bill bill.kind bill.amount",
    "SELECT COUNT(*) FROM bill WHERE amount + 1 > 2": "bill bill.amount",
    "SELECT SUM(cost) FROM line": "line line.cost",
    "SELECT kind, SUM(cost) FROM line JOIN bill ON bill_id = bill.id GROUP BY kind": "line line.cost bill bill.kind bill.id",
    "SELECT team, COUNT(*) FROM bill JOIN person ON person_id = person.id GROUP BY team": "bill person person.team",
    "SELECT COUNT(*) FROM bill JOIN person ON person_id = person.id WHERE age + 1 > 30": "bill person person.age",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM bill b WHERE b.person_id = p.id AND b.amount + 1 > 4)":
        "person bill bill.amount",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM bill b WHERE b.person_id = p.id AND b.amount + 1 > 4)"
    " AND NOT EXISTS (SELECT 1 FROM note n WHERE n.person_id = p.id AND n.stars + 1 > 4)":
        "person bill bill.amount note note.stars",
    "SELECT COUNT(*) FROM person WHERE height + 0.3 > 1.5": "person person.height",
    "SELECT upper(team), COUNT(*) FROM person WHERE team || 'x' <> 'redx' GROUP BY 1": "person person.team",
    "SELECT COUNT(amount) FROM bill": "bill bill.amount",
    "SELECT COUNT(*) FILTER (WHERE amount + 1 > 2) FROM bill": "bill bill.amount",
    "SELECT kind, COUNT(*) FILTER (WHERE amount + 1 > 2) FROM bill GROUP BY kind": "bill bill.kind bill.amount",
    "SELECT place, COUNT(*) FROM line GROUP BY place": "line line.place",
    "SELECT COUNT(DISTINCT cost) FROM line": "line line.cost",
    "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n, MAX(amount) AS m FROM bill GROUP BY person_id) AS b WHERE n < 9":
        "bill bill.amount",
    "SELECT SUM(floor) FROM note JOIN ward ON ward = name": "note note.ward ward ward.floor ward.name",
    "SELECT ward, COUNT(*) FROM note GROUP BY ward": "note note.ward defaults.minimum_units",
    "SELECT stars, COUNT(*) FROM note WHERE stars IN (1, 2) GROUP BY stars": "note note.stars",
    "SELECT COUNT(*) FROM note WHERE stars > (SELECT AVG(age) FROM person)": "note note.stars person person.age",
    "SELECT COUNT(*) FROM note WHERE stars > (SELECT MIN(floor) FROM ward)": "note note.stars ward ward.name ward.floor ward.beds",
    "SELECT COUNT(*) FROM note WHERE ward IN (SELECT name FROM v_floor)": "note note.ward ward ward.name v_floor",
    "SELECT COUNT(*), SUM(more) FROM v_card": "v_card card card.person_id card.level card.points",
    "SELECT level, COUNT(*) FROM v_card GROUP BY level": "v_card card card.person_id card.level card.points",
    "SELECT amount, COUNT(*) FROM (SELECT amount, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY amount) AS n"
    " FROM bill) AS b WHERE n = 1 GROUP BY amount": "bill bill.id bill.kind bill.amount",
}  # fmt: skip
"""Statements, with the tables and columns that each reads, and what else its plan asks."""

Keys = dict[tuple[int, int], tuple[bytes, ...]]
Plans = dict[str, tuple[ReleasePlan, ...] | None]


def live_from(schema: str) -> LiveSchema:
    with empty_duckdb() as connection:
        connection.execute(schema)
        with DuckDBBackend.over(connection).snapshot() as snapshot:
            return snapshot.schema()


@cache
def live() -> LiveSchema:
    return live_from(SCHEMA)


def plans_under(text: str, schema: LiveSchema) -> Plans | None:
    """Return what each statement comes to, None for one that is refused; None where the policy is refused."""
    try:
        policy = parse_policy(text, Path("/srv/grounds.toml"))
        catalog = build_catalog(policy, schema)
    except PolicyError:
        return None
    return {sql: planned(sql, catalog, policy) for sql in READS}


def planned(
    sql: str, catalog: Catalog, policy: Policy, tables: Mapping[str, Table] | None = None
) -> tuple[ReleasePlan, ...] | None:
    """Return a statement's releases, None where it is refused; `tables`: what the planner has in place of the catalog's."""
    defaults, privacy = policy.defaults, policy.privacy
    given = PrivacyParameters(
        Fraction(1), Fraction(1, 1000), defaults.minimum_units, privacy.neighbours is Neighbours.REPLACE_ONE, None,
        privacy.together, privacy.accounting,
    )  # fmt: skip
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    try:
        relation = bind(query, BindingContext(catalog, query.text, (), 0, {}))
        return plan(relation, replace(catalog, tables=tables or catalog.tables), given).releases
    except Refusal:
        return None


def stored(releases: tuple[ReleasePlan, ...] | None) -> Iterator[tuple[tuple[object, ...], object]]:
    """Yield each key under which a statement's draws are stored, and the experiment that is stored under it."""
    for number, index, release in measured(releases):
        made = experiment(release, index)
        yield from ((key, made) for key in _keys(number, index, release))


def measured(releases: tuple[ReleasePlan, ...] | None) -> Iterator[tuple[int, int, ReleasePlan]]:
    """Yield the measurements of a statement: the number of the release, its own there, and the release."""
    for number, release in enumerate(releases or ()):
        yield from (
            (number, index, release) for index in range(0 if release.is_empty else len(release.measurements))
        )


def _keys(number: int, index: int, release: ReleasePlan) -> Iterator[tuple[object, ...]]:
    for key in release.measure_keys(index, release.salted(b""), b""):
        yield (number, key)
    grouping = grouping_of(release, index)
    if grouping is not None:
        masks = release.measurements[index].masks
        yield (number, grouping.family, *(key.digest for key in grouping.keys), masks)


def experiment(release: ReleasePlan, index: int) -> object:
    """Return all that exact numbers depend on besides the rows, who is shown, and how far one person moves them."""
    one = release.measurements[index]
    queries = tuple(
        (query.sql, repr(query.intermediates), query.salted) for query in release.queries((index,))
    )
    return (
        queries, release.groups, repr(release.bounding), one.sensitivity, one.squared_sensitivity, repr(one.lattice),
        release.minimum_units if index == release.counted else None,
    )  # fmt: skip


def keys_of(releases: tuple[ReleasePlan, ...] | None) -> list[object]:
    return [key for measurement in measured(releases) for key in _keys(*measurement)]


def check_one_experiment(under: list[Plans]) -> None:
    """A key of a statement means one experiment, whatever the policy."""
    known: dict[object, object] = {}
    for plans in under:
        for sql, releases in plans.items():
            for key, made in stored(releases):
                assert known.setdefault((sql, *key), made) == made, sql


# --- edits -----------------------------------------------------------------------------------------------------


def policy_text(promise: str = "") -> str:
    return POLICY.format(promise=promise)


PROMISES = ("", 'accounting = "zcdp"', 'neighbours = "replace-one"', "together = 2")
VIEWS = ("v_card", "v_floor")
WAY = {"bill": "person", "line": "bill person", "note": "person", "card": "person"}
ADDED_NAMES = ("extra", "own", "again")


def edits(text: str) -> Iterator[tuple[str, str]]:
    """Yield the place of each line of a policy, and the text without it, and with other numbers and words in it."""
    lines, table = text.split("\n"), ""
    for number, line in enumerate(lines):
        table = match[1] if (match := re.match(r"\[([\w.]+)\]", line)) else table
        place = f"{table}.{line.partition(' =')[0]}"
        changed = [
            *(f"{line[: at.start()]}{int(at[0]) + 1}{line[at.end() :]}" for at in re.finditer(r"\d+", line)),
            *(f"{line[: at.end(1)]}x{line[at.end(1) :]}" for at in re.finditer(r'"([a-z]+)"', line)),
        ]
        yield f"{place} left out", "\n".join([*lines[:number], *lines[number + 1 :]])
        for change in changed:
            yield place, "\n".join([*lines[:number], change, *lines[number + 1 :]])


def edited(promise: str) -> Iterator[tuple[str, Plans]]:
    """Yield where a policy was edited, and the plans under it, of each edit that leaves a policy."""
    seen = set[str]()
    for number, (place, text) in enumerate(edits(policy_text(promise))):
        if place in seen and number % tried(2, 1):
            continue
        seen.add(place)
        plans = (
            None if "accounting" in place else plans_under(text, live())
        )  # of another law (soundness.md 3.11)
        if plans is not None:
            yield place, plans
    for place, more in ADDED.items():
        plans = plans_under(policy_text(promise) + more, live())
        assert plans is not None
        yield place, plans


ADDED = {
    "tables.extra": "[tables.extra]\npublic = true\n",
    "tables.own": '[tables.own]\nunit = { column = "person_id", references = "person.id" }\nmax_rows = 3\n',
    "tables.again": '[tables.again]\nunit = "person_id"\nmax_rows = 3\n',
    "analysts.bob": "[analysts.bob]\nepsilon = 1\n",
}

OF_THE_SCHEMA = [
    (
        "id INTEGER PRIMARY KEY,\n    person_id INTEGER NOT NULL",
        "id INTEGER PRIMARY KEY,\n    person_id INTEGER",
    ),
    ("person_id INTEGER NOT NULL REFERENCES person (id),\n    kind", "person_id INTEGER NOT NULL,\n    kind"),
    ("bill_id INTEGER NOT NULL REFERENCES bill (id)", "bill_id INTEGER NOT NULL"),
    ("bill_id INTEGER NOT NULL", "bill_id INTEGER"),
    (",\n    UNIQUE (bill_id, place)", ""),
    (
        "person_id INTEGER NOT NULL REFERENCES person (id),\n    level",
        "person_id INTEGER NOT NULL UNIQUE,\n    level",
    ),
    ("amount INTEGER", "amount INTEGER NOT NULL"),
    ("amount INTEGER", "amount BIGINT"),
    ("amount INTEGER", "amount INTEGER CHECK (amount BETWEEN 0 AND 9)"),
    ("stars INTEGER", "stars INTEGER NOT NULL"),
    ("person_id INTEGER,\n    stars", "person_id INTEGER UNIQUE,\n    stars"),
    ("person_id INTEGER,\n    stars", "person_id INTEGER NOT NULL,\n    stars"),
    ("age INTEGER", "age SMALLINT"),
    ("age INTEGER", "age INTEGER NOT NULL"),
    ("height DOUBLE", "height DECIMAL(4,2)"),
    ("name VARCHAR PRIMARY KEY,\n    floor", "name VARCHAR,\n    floor"),
    ("floor INTEGER", "floor INTEGER NOT NULL"),
    ("points INTEGER", "points BIGINT"),
    ("level > 0", "level > 1"),
    ("SELECT name, floor FROM ward", "SELECT name, beds AS floor FROM ward"),
]


@pytest.fixture(scope="module")
def edited_plainly() -> list[tuple[str, Plans]]:
    """What `edited` yields without a further promise: each edit plans every statement."""
    return list(edited(""))


def under_edits(promise: str, of_the_policy: Iterable[tuple[str, Plans]]) -> list[Plans]:
    """Return the plans under every edit of a policy, and of its schema."""
    found = [plans for _, plans in of_the_policy]
    elsewhere = plans_under(policy_text(promise).replace(*ELSEWHERE), live())
    assert elsewhere is not None
    found.append(elsewhere)
    for old, new in OF_THE_SCHEMA:
        plans = plans_under(policy_text(promise), changed_schema(old, new))
        found += [] if plans is None else [plans]
    return found


@cache
def changed_schema(old: str, new: str) -> LiveSchema:
    assert SCHEMA.count(old) >= 1
    return live_from(SCHEMA.replace(old, new, 1))


def test_one_key_is_one_experiment(edited_plainly: list[tuple[str, Plans]]) -> None:
    found = under_edits("", edited_plainly)
    assert len(found) > tried(40, 80)
    check_one_experiment(found)


@pytest.mark.long
@pytest.mark.parametrize("promise", PROMISES[1:])
def test_one_key_is_one_experiment_under_a_promise(promise: str) -> None:
    found = under_edits(promise, edited(promise))
    assert len(found) > tried(40, 80)
    check_one_experiment(found)


def test_other_promises_are_other_experiments() -> None:
    """Which loss is added up is said by the law that is stored with a draw, and not by its key (soundness.md 3.11)."""
    under = [plans_under(policy_text(promise), live()) for promise in PROMISES if "zcdp" not in promise]
    check_one_experiment([plans for plans in under if plans is not None])


def test_each_statement_rests_on_what_it_reads() -> None:
    plans = plans_under(policy_text(), live())
    assert plans is not None
    for sql, releases in plans.items():
        assert releases is not None, sql
        read = READS[sql].split()
        way = [table for name in read for table in WAY.get(name, "").split()]
        asked = {
            name
            for release in releases
            for number in range(len(release.measurements))
            for name, _ in release.grounds_at(number)
        }
        assert asked == {"dataset", *read, *way}, sql


class Asked(Mapping[str, Table]):
    """The tables of a catalog, which takes note of those that are looked up: of all, where somebody goes through them."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self.tables, self.seen = tables, set[str]()

    def __getitem__(self, name: str) -> Table:
        self.seen.add(name)
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        self.seen.update(self.tables)
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)


def test_a_plan_looks_up_no_other_table(monkeypatch: Patch) -> None:
    """But for the root, which is the dataset's."""
    policy = parse_policy(policy_text(), Path("/srv/grounds.toml"))
    catalog = build_catalog(policy, live())
    monkeypatch.setattr(Catalog, "root", property(lambda self, root=catalog.root: root))
    for sql in READS:
        asked = Asked(catalog.tables)
        releases = planned(sql, catalog, policy, asked)
        assert releases is not None
        assert asked.seen <= {name for one in releases for name, _ in one.grounds}, sql


def test_an_edit_of_what_is_not_read_keeps_the_keys(edited_plainly: list[tuple[str, Plans]]) -> None:
    plans = plans_under(policy_text(), live())
    assert plans is not None
    before, kept = {sql: keys_of(releases) for sql, releases in plans.items()}, 0
    for place, plans in edited_plainly:
        what = touched(place)
        for sql in READS if what is not None else ():
            if what not in READS[sql].split():
                assert keys_of(plans[sql]) == before[sql], (place, sql)
                kept += 1
    assert kept > tried(450, 900)


def touched(place: str) -> str | None:
    """Return the table or column that an edit is one of, "" for none; None for what many plans rest on."""
    is_out = place.endswith(" left out")
    section, *rest = place.removesuffix(" left out").split(".")
    if "[" in place or rest[-1:] == [""] or section not in ("analysts", "defaults", "tables"):
        return None if section != "analysts" else ""
    if section != "tables":
        return place.removesuffix(" left out") if "minimum_units" in rest else ""
    if rest[0] in VIEWS or rest[0] in ADDED_NAMES:
        return rest[0]
    if (
        rest[1] == "columns" and not is_out and rest[2] not in ("id", "place")
    ):  # in keys, which the table tells
        return f"{rest[0]}.{rest[2]}"
    return None if rest[1] in ("unit", "public", "hidden") or rest[2:] == ["id"] else rest[0]


@pytest.mark.parametrize("promise", PROMISES)
def test_every_statement_is_answered(promise: str) -> None:
    plans = plans_under(policy_text(promise), live())
    assert plans is not None
    assert not [sql for sql, releases in plans.items() if releases is None]


# --- mutants -----------------------------------------------------------------------------------------------------

AMOUNT = ("amount = { bounds = [-5, 50] }", "amount = { bounds = [-5, 40] }")
ROWS = ("max_rows_per_group = 3\n", "")
NICK = ("max_length = 9", "max_length = 8")
OF_BILL = "person_id INTEGER NOT NULL REFERENCES person (id),\n    kind"
ELSEWHERE = ("[tables.note]\n", '[tables.note]\nsource = "note_copy"\n')
NULL = (OF_BILL, OF_BILL.replace(" NOT NULL", ""))
CHECKED = ("amount INTEGER", "amount INTEGER CHECK (amount BETWEEN 0 AND 9)")
FAULTS: list[tuple[Callable[..., Any], str, str, tuple[str, str]]] = [
    (policy_catalog._own_content, "return [bounds, [", "return [None, [", ROWS),
    (policy_catalog._way_content, "found.path,", "table.path,", ELSEWHERE),
    (policy_catalog._said_of, "[str(bound) for bound in column.bounds]", "0", AMOUNT),
    (policy_catalog._said_of, "column.max_length,", "None,", NICK),
    (policy_catalog._column_content, "_text(enforced.lo), _text(enforced.hi)", "0", CHECKED),
    (policy_catalog._unit_content, "unit.is_not_null, ", "", NULL),
    (policy_catalog._Grounded._grounds, "while table.unit", "while False and table.unit", NULL),
    (release_plan._read_in, "yield from _grounds(item.source.table)", "pass", ROWS),
    (release_plan._read_in, "if index >= start:", "if False:", AMOUNT),
    (release_plan._read_in, "item.on", "()", AMOUNT),
    (release_plan._read_in, "(*written_in(select), *select.owner)", "select.owner", AMOUNT),
    (release_plan.grounds_of, "selects_in(rows)", "[rows]", ROWS),
    (release_plan.grounds_of, "column_grounds(rows, asked)", "()", NICK),
    (release_plan.column_grounds, "() if item.kind ==", "() if start or item.kind ==", ("age = { bounds = [0, 90] }", "age = { bounds = [0, 80] }")),
    (planner._Planner.release, "{units_ground(privacy.minimum_units)}", "set()", ("minimum_units = 2", "minimum_units = 3")),
    (ReleasePlan._label_texts, "tuple(sorted({*said_of_head, *self.said_of(tail)}))", "()", AMOUNT),
    (ReleasePlan.family, "self.said_of((label, bounds))", "()", AMOUNT),
    (table._digest, "plan.said_of(key)", "()", ("max_length = 5", "max_length = 6")),
]  # fmt: skip
"""What a plan asks, each left out of a key once, and an edit after which one key is two experiments then.

What is not here stands in a key twice: what of values, steps and types enters a plan does so through its domains,
lattices and expressions, which stand there by themselves, and the rest of a unit through the bounding.
"""


@pytest.mark.parametrize(("function", "old", "new", "edit"), FAULTS)
def test_leave_out_what_a_plan_asks(
    monkeypatch: Patch, function: Callable[..., Any], old: str, new: str, edit: tuple[str, str]
) -> None:
    plant(monkeypatch, function, (old, new))
    text, schema = (whole.replace(*edit, 1) for whole in (policy_text(), SCHEMA))
    assert (text, schema) != (policy_text(), SCHEMA)
    under = [plans_under(policy_text(), live()), plans_under(text, live_from(schema))]
    with pytest.raises(AssertionError):
        check_one_experiment([plans for plans in under if plans is not None])
