"""Texts that are cut (soundness.md 1.17): what is compared is compared whole, and means what the cut text means.

All texts are read to four characters here, and there are some of three, four, five and many more that begin alike.
A cut key is one group for all that begin alike: no key of the engine's makes it one row of a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.engine.notes import bias_notes
from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_private import PrivatePrinter
from dpsql.plan.backend_sql.print_release import print_keys
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.privacy import functional_dependencies
from dpsql.plan.privacy.public_inputs import key_lists
from dpsql.plan.privacy.rows import Source
from dpsql.policy import build_catalog, parse_policy
from dpsql.relation.expressions import Field
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import Measured, World, compared, measure_release, world

Patch = pytest.MonkeyPatch

SCHEMA = """
CREATE TABLE person (id VARCHAR PRIMARY KEY, t VARCHAR, whole VARCHAR);
CREATE TABLE visit (person_id VARCHAR, url VARCHAR NOT NULL, n INTEGER NOT NULL, UNIQUE (person_id, url),
    UNIQUE (person_id, n));
CREATE TABLE page (url VARCHAR, kind VARCHAR);
CREATE TABLE thing (person_id VARCHAR, j BLOB, o TIME);
"""

POLICY = """
database = "duckdb:cut.duckdb"
ledger = "sqlite:cut-ledger.db"
[privacy]
epsilon = 9999
delta = 0.9
[defaults]
epsilon = 1
max_epsilon = 10
delta = 1e-3
[tables.person]
unit = "id"
[tables.person.columns]
id = { max_length = 4 }
t = { max_length = 4 }
whole = { max_length = 9 }
[tables.visit]
unit = { column = "person_id", references = "person.id" }
max_rows = 3
[tables.visit.columns]
person_id = { max_length = 4 }
url = { max_length = 4 }
n = { bounds = [0, 9] }
[tables.page]
public = true
[tables.thing]
unit = { column = "person_id", references = "person.id" }
max_rows = 3
[tables.thing.columns]
j = {}
o = {}
"""

BEGINS = ("abcd", "abc", "ab%_", "é😀ßz", "ABCD", "")
TEXTS = tuple(dict.fromkeys(
    (None, *BEGINS, *(one + end for one in BEGINS for end in ("d", "de", "\\", " ", "x" * 2000)), "abd", "zzzz")
))  # fmt: skip
"""Around the fourth character, with one of each that is longer than any text should be."""

LITERALS = ("", "abc", "abcd", "abcde", "abce", "ab%_", "é😀ß", "é😀ßz", "é😀ßza")


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("cut")
    with world(
        folder, policy=parse_policy(POLICY, folder / "cut.toml"), schema=SCHEMA, server=engine
    ) as made:
        fill(made)
        yield made


def fill(made: World) -> None:
    for table in ("visit", "thing", "person", "page"):
        made.connection.execute(f"DELETE FROM {table}")
    people = [[f"long{i}", text, text] for i, text in enumerate(TEXTS)]
    made.connection.executemany("INSERT INTO person VALUES (?, ?, ?)", people)
    rows = [[f"long{i}", f"http{end}", end] for i in range(3) for end in range(8)]
    made.connection.executemany("INSERT INTO visit VALUES (?, ?, ?)", rows)
    made.connection.execute("INSERT INTO page VALUES ('http1', 'a'), ('http2', 'b'), ('ftp', 'c')")
    made.connection.execute("INSERT INTO thing VALUES ('long1', 'x'::BLOB, '10:00'), ('long1', NULL, NULL)")
    made.refresh()


def exact(made: World, sql: str) -> dict[tuple[object, ...], int]:
    """Return the first coordinate of each group of a statement, in rows."""
    (release,) = made.plan(sql).releases
    with made.backend.snapshot() as snapshot:
        found = measure_release(release, snapshot)
    measurement = release.measurements[0]
    return {key: values[0] // measurement.denominator for key, values in found[0].items()}


def count(made: World, sql: str) -> int:
    return exact(made, sql)[()]


# --- a comparison of the whole text is one of the cut text --------------------------------------------------

OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda x, y: x == y, "<>": lambda x, y: x != y, "<": lambda x, y: x.encode() < y.encode(),
    "<=": lambda x, y: x.encode() <= y.encode(), ">": lambda x, y: x.encode() > y.encode(),
    ">=": lambda x, y: x.encode() >= y.encode(),
}  # fmt: skip


def expected(holds: Callable[[str], bool]) -> int:
    """Return how many people have a text of which something holds, as it is read."""
    return sum(holds(text[:4]) for text in TEXTS if text is not None)


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_is_compared_with_what_is_read(cut: World, literal: str) -> None:
    for sign, holds in OPERATORS.items():
        found = count(cut, f"SELECT COUNT(*) FROM person WHERE t {sign} '{literal}'")
        assert found == expected(lambda text, holds=holds: holds(text, literal)), sign  # type: ignore[misc]
    listed = count(cut, f"SELECT COUNT(*) FROM person WHERE t IN ('{literal}', 'zzzz', 'a')")
    assert listed == expected(lambda text: text in (literal, "zzzz", "a"))
    between = count(cut, f"SELECT COUNT(*) FROM person WHERE t BETWEEN 'abc' AND '{literal}'")
    assert between == expected(lambda text: b"abc" <= text.encode() <= literal.encode())


@pytest.mark.parametrize("literal", LITERALS)
def test_a_beginning_is_looked_for_in_what_is_read(cut: World, literal: str) -> None:
    shown = literal.replace("%", "\\%").replace("_", "\\_")
    for form, holds in (
        (f"{shown}%", str.startswith), (f"%{shown}", str.endswith), (shown, str.__eq__), (f"%{shown}%", str.__contains__),
        (f"{shown}%%", str.startswith),
    ):  # fmt: skip
        found = count(cut, f"SELECT COUNT(*) FROM person WHERE t LIKE '{form}'")
        assert found == expected(lambda text, holds=holds: holds(text, literal)), form  # type: ignore[misc]
    one_more = count(cut, f"SELECT COUNT(*) FROM person WHERE t LIKE '{shown}_'")
    assert one_more == expected(lambda text: text[:-1] == literal and text != "")


def test_what_is_short_is_compared_whole(cut: World) -> None:
    """An index serves `t = 'abc'`, and no filter of a file is lost: the column stands alone in it."""
    for where, is_whole in {
        "t = 'abc'": True, "t = 'abcd'": False, "'abc' < t": True, "t IN ('abc', 'x')": True,
        "t IN ('abc', 'abcd')": False, "t LIKE 'abc%'": True, "t LIKE 'abcd%'": False, "t LIKE '%c'": False,
        "t LIKE 'a_'": False, "t IS NULL": True, "t = whole": True, "left(t, 4) = 'abc'": True, "right(t, 4) = 'abc'": False,
    }.items():  # fmt: skip
        (release,) = cut.plan(f"SELECT COUNT(*) FROM person WHERE {where}").releases
        (query,) = release.queries((0,))
        assert ("CASE" not in query.sql) is is_whole, where


# --- keys, owners, links ------------------------------------------------------------------------------------

GROUPS = "SELECT t, COUNT(*) FROM person GROUP BY t"
BY_URL = "SELECT url, COUNT(*) FROM visit GROUP BY url"
BY_NUMBER = "SELECT n, COUNT(*) FROM visit GROUP BY n"


def test_texts_that_begin_alike_are_one_group(cut: World) -> None:
    found = exact(cut, GROUPS)
    assert max(len(str(key[0])) for key in found) <= 4
    assert found["abcd",] == expected(lambda text: text == "abcd") > 5
    distinct = count(cut, "SELECT COUNT(DISTINCT t) FROM person")
    assert distinct == len({text[:4] for text in TEXTS if text is not None})


def test_whoever_groups_by_a_text_is_told_how_far_it_is_read(cut: World) -> None:
    told = "texts are cut to 4 characters: those that begin alike are one group"
    assert told in bias_notes(cut.plan(GROUPS))
    assert told not in bias_notes(cut.plan("SELECT t, COUNT(*) FROM person WHERE t IN ('a', 'b') GROUP BY t"))
    assert told not in bias_notes(cut.plan(BY_NUMBER))


def test_whoever_begins_alike_is_not_one_person(cut: World) -> None:
    """All owners agree in the first four characters: what they are told apart by is never cut."""
    visitors = "SELECT person_id, COUNT(*) AS c FROM visit GROUP BY person_id"
    assert count(cut, "SELECT COUNT(DISTINCT person_id) FROM visit") == 3
    assert count(cut, f"SELECT COUNT(*) FROM ({visitors}) v WHERE c = 3") == 3
    assert count(cut, f"SELECT COUNT(*) FROM ({visitors}) v JOIN person p ON p.id = v.person_id") == 3
    assert count(cut, f"SELECT COUNT(*) FROM person p LEFT JOIN ({visitors}) v ON p.id = v.person_id") == len(
        TEXTS
    )
    united = "SELECT person_id FROM visit UNION ALL SELECT id FROM person"
    joined = f"SELECT COUNT(*) FROM ({united}) u JOIN person p ON p.id = u.person_id"
    (release,) = cut.plan(joined).releases
    with cut.backend.snapshot() as snapshot:
        ((values,),) = (found.values() for found in measure_release(release, snapshot).values())
    assert values[0] > release.measurements[0].denominator * (len(TEXTS) - 3)


def test_a_cut_key_is_not_one_row(cut: World) -> None:
    """UNIQUE (person_id, url): the eight addresses of a person are one group with all of their rows."""
    (by_url,), (by_number,) = cut.plan(BY_URL).releases, cut.plan(BY_NUMBER).releases
    assert (by_number.bounding.in_group, by_number.bounding.one_a_group) == (1, True)
    assert (by_url.bounding.in_group, by_url.bounding.one_a_group) == (3, False)
    assert exact(cut, BY_URL) == {("http",): 9}
    check(cut, BY_URL)
    check(cut, "SELECT COUNT(DISTINCT url), SUM(n) FROM visit GROUP BY url")


def check(made: World, sql: str) -> None:
    """Hold the claims of a statement for a database with a person and without."""
    plan = made.plan(sql)

    def measured() -> list[Measured]:
        made.refresh()
        with made.backend.snapshot() as snapshot:
            return [[measure_release(release, snapshot) for release in plan.releases]]

    here = measured()
    made.connection.execute("DELETE FROM visit WHERE person_id = 'long1'")
    try:
        there = measured()
    finally:
        fill(made)
    for left, right in zip(here, there, strict=True):
        compared(plan, left, right, sql)


def test_a_literal_as_long_as_what_is_read_is_of_many_values(cut: World) -> None:
    """`url = 'http'` holds for all addresses that begin so: it makes no key of one row."""
    (release,) = cut.plan("SELECT n, COUNT(*) FROM visit WHERE url = 'http' GROUP BY n").releases
    assert not release.release.rows.is_single
    (release,) = cut.plan("SELECT COUNT(*) FROM visit WHERE url = 'htt'").releases
    assert release.release.rows.is_single
    assert count(cut, "SELECT COUNT(*) FROM visit WHERE url = 'http'") == 9


def test_a_public_key_is_read_as_far_as_the_column_that_it_lists(cut: World) -> None:
    """`page.url` is read to 1,000 characters, and `visit.url` to four: its groups are those of four."""
    sql = "SELECT v.url, COUNT(*) FROM visit v JOIN page p ON p.url = v.url GROUP BY v.url"
    (release,) = cut.plan(sql).releases
    (one,) = key_lists(release.release.rows, release.release.keys, [None])
    with cut.backend.snapshot() as snapshot:
        chunks = list(snapshot.run(print_keys(one, release.dialect).sql, []))
    assert [row for chunk in chunks for row in chunk] == [("ftp",), ("http",)]


def test_bytes_are_compared_and_counted_alone(cut: World) -> None:
    for refused in (
        "SELECT j, COUNT(*) FROM thing GROUP BY j", "SELECT COUNT(*) FROM (SELECT DISTINCT person_id, j FROM thing) t",
        "SELECT COUNT(*) FROM (SELECT person_id, j FROM thing UNION ALL SELECT person_id, j FROM thing) t WHERE j = j",
    ):  # fmt: skip
        with pytest.raises(Refusal) as caught:
            cut.plan(refused)
        assert caught.value.sqlstate in ("PV202", "42804")
    assert count(cut, "SELECT COUNT(*) FROM thing WHERE j IS NOT NULL") == 1
    counted = "SELECT COUNT(*) FROM (SELECT person_id, o, LAG(o) OVER (PARTITION BY person_id ORDER BY person_id) AS b FROM thing) t"
    with pytest.raises(Refusal):
        cut.plan(f"{counted} WHERE o IS NOT NULL")  # a window cannot order them
    plain = "SELECT person_id, o FROM thing UNION ALL SELECT person_id, o FROM thing"
    (query,) = cut.plan(f"SELECT COUNT(*) FROM ({plain}) t WHERE o IS NOT NULL").releases[0].queries((0,))
    assert "IS NOT NULL THEN 1 END) AS c" in query.sql


@pytest.mark.parametrize(
    ("sql", "found"),
    {
        "SELECT t, COUNT(*) FROM person WHERE t = whole AND whole = 'abcdd' AND t IN ('abcd', 'abd') GROUP BY t": {"abcd": 1, "abd": 0},
        "SELECT whole, COUNT(*) FROM person WHERE t = whole AND t = 'abcd' AND whole IN ('abcdd', 'abcd') GROUP BY whole":
            {"abcdd": 1, "abcd": 1},
        "SELECT t, COUNT(*) FROM person WHERE t >= whole AND whole = 'abcdd' AND t IN ('abcd') GROUP BY t": {"abcd": 1},
        "SELECT t, COUNT(*) FROM person WHERE t = whole AND whole = 'abd' AND t IN ('abd', 'abc') GROUP BY t": {"abd": 1},
        "SELECT t = whole, COUNT(*) FROM person WHERE t = 'abcd' AND whole = 'abcdd' GROUP BY 1": {False: 0, True: 1},
        "SELECT NOT t >= whole, COUNT(*) FROM person WHERE t = 'abcd' AND whole = 'abcdd' GROUP BY 1": {False: 1, True: 0},
        "SELECT t = whole, COUNT(*) FROM person WHERE t = 'abd' AND whole = 'abc' GROUP BY 1": {False: 0},
    }.items(),
)  # fmt: skip
def test_no_group_is_left_out_by_what_is_read_of_texts_that_are_compared_whole(
    cut: World, sql: str, found: dict[object, int]
) -> None:
    """`t = whole` holds of texts that are read to four characters and to nine."""
    assert exact(cut, sql) == {(key,): count for key, count in found.items()}


# --- what the engine's own type holds ------------------------------------------------------------------------


def test_a_type_of_so_many_characters_is_not_cut(tmp_path: Path, postgres: PostgresServer) -> None:
    """varchar(4) holds what is read: nothing is printed around it, and its key is one row."""
    with world(
        tmp_path, policy=parse_policy(POLICY, tmp_path / "cut.toml"), schema=SCHEMA, server=postgres
    ) as made:
        assert made.twin is not None
        made.twin.owner.execute("ALTER TABLE visit ALTER COLUMN url TYPE varchar(4)")
        made.twin.owner.execute("ALTER TABLE person ALTER COLUMN t TYPE varchar(5)")
        with made.backend.snapshot() as snapshot:
            made = replace(made, catalog=build_catalog(made.policy, snapshot.schema()))
        (by_url,), (by_text,) = made.plan(BY_URL).releases, made.plan(GROUPS).releases
        assert (by_url.bounding.in_group, by_url.bounding.one_a_group) == (1, True)
        assert not any("octet_length(CAST" in query.sql for query in by_url.queries((0,)))
        assert any("octet_length(CAST" in query.sql for query in by_text.queries((0,)))


# --- the tests have power --------------------------------------------------------------------------------------


def test_mutants(cut: World, monkeypatch: Patch) -> None:
    """Each planted fault turns a test above red."""
    tests: dict[str, tuple[Callable[[Patch], None], Callable[[World], None]]] = {
        "a key is not cut": (_key_not_cut, test_texts_that_begin_alike_are_one_group),
        "one character more": (_one_more, test_texts_that_begin_alike_are_one_group),
        "the owner is cut": (_owner_cut, test_whoever_begins_alike_is_not_one_person),
        "links are cut": (_links_cut, test_whoever_begins_alike_is_not_one_person),
        "a join key is cut": (_joins_cut, test_what_is_short_is_compared_whole),
        "a cut key is one row": (_unique, test_a_cut_key_is_not_one_row),
        "a long literal is one value": (_one_value, test_a_literal_as_long_as_what_is_read_is_of_many_values),
        "what is as long stands whole": (_long_whole, lambda made: test_a_literal_is_compared_with_what_is_read(made, "abcd")),
        "any pattern stands whole": (_any_pattern, lambda made: test_a_beginning_is_looked_for_in_what_is_read(made, "abc")),
    }  # fmt: skip
    for name, (plant, test) in tests.items():
        with monkeypatch.context() as patch:
            plant(patch)
            with pytest.raises((AssertionError, ValueError, KeyError)):
                test(cut)
            del name


def _key_not_cut(patch: Patch) -> None:
    patch.setattr(PrivatePrinter, "column", PrivatePrinter.whole)


def _one_more(patch: Patch) -> None:
    original = Dialect.cut
    patch.setattr(Dialect, "cut", lambda self, sql, most: original(self, sql, most + 1))


def _owner_cut(patch: Patch) -> None:
    patch.setattr(PrivatePrinter, "owner", PrivatePrinter.column)


def _links_cut(patch: Patch) -> None:
    patch.setattr(Source, "linking", frozenset[int]())


def _joins_cut(patch: Patch) -> None:
    patch.setattr(PrivatePrinter, "stands_whole", lambda *_: False)


def _unique(patch: Patch) -> None:
    patch.setattr(functional_dependencies, "is_cut", lambda _: False)


def _one_value(patch: Patch) -> None:
    patch.setattr(functional_dependencies, "read_length", lambda _: 10**6)


def _long_whole(patch: Patch) -> None:
    patch.setattr(PrivatePrinter, "stands_whole", lambda self, side, others: isinstance(side, Field))


def _any_pattern(patch: Patch) -> None:
    patch.setattr("dpsql.plan.backend_sql.private_forms._prefix", lambda pattern, escape: "")
