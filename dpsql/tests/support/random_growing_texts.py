"""Random statements that make texts of texts, over one person whose texts are long: the world of law L10's tests.

`person` is the root; `story` has many rows of the one person; `word` is public. Every level of a statement
gives the columns u (the person), n and m (texts) and k (a number), and is made of the level below in one of the
forms that are accepted. Needs hypothesis, as only tests do.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from ...policy import Policy, parse_policy
from .random_databases import SEEDED

if TYPE_CHECKING:
    import duckdb

__all__ = ["LONGEST", "SCHEMA", "load_extreme", "policy_of", "statements"]

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, name VARCHAR, age SMALLINT);
CREATE TABLE story (
    person_id INTEGER, title VARCHAR, body VARCHAR, amount DECIMAL(20,4), big BIGINT, day DATE, seen TIMESTAMP,
    flag BOOLEAN);
CREATE TABLE word (w VARCHAR, n INTEGER);
"""

_POLICY = """
database = "duckdb:growth.duckdb"
ledger = "sqlite:growth-ledger.db"
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
name = { max_length = 12 }
age = { bounds = [0, 120] }
[tables.story]
unit = { column = "person_id", references = "person.id" }
max_rows = 6
max_rows_per_group = 3
max_groups = 2
[tables.story.columns]
person_id = {}
title = { max_length = 20 }
body = {}
amount = { bounds = [-100, 100] }
big = { bounds = [0, 1000] }
day = { bounds = [2020-01-01, 2020-12-31] }
seen = { bounds = [2020-01-01T00:00:00, 2020-12-31T00:00:00] }
flag = {}
[tables.word]
public = true
"""

LONG = 20_000
LONGEST = 6_000_000
"""Characters of the one person's texts, and of one of them; that of nobody else, or of a public row, is longer than 30."""

_LETTERS = ("a", "ß", "ΐ", "é", "İ", "%", "ŉ")


def policy_of(folder: Path) -> Policy:
    """Return the policy; its database and ledger are files in `folder`, of which neither has to exist."""
    return parse_policy(_POLICY, folder / "growth.toml")


def load_extreme(connection: duckdb.DuckDBPyConnection) -> None:
    """Give the one person long texts, and a few others short ones."""
    for table in ("person", "story", "word"):
        connection.execute(f"DELETE FROM {table}")
    connection.executemany("INSERT INTO person VALUES (?, ?, 30)", [[1, "a" * LONG], [2, "b"], [3, None]])
    for letter in _LETTERS:
        connection.execute(
            "INSERT INTO story VALUES (1, repeat($1, $2), repeat($1, $2), 9999999999999999.9999, 9223372036854775807, "
            "DATE '290000-12-31', TIMESTAMP '290000-12-31 23:59:59.999999', true)",
            [letter, LONG],
        )
    connection.execute("UPDATE story SET body = repeat('a', $1) WHERE title[1] = 'a'", [LONGEST])
    connection.execute(
        "INSERT INTO story VALUES (1, NULL, '', -5, -1, DATE '2020-01-01', NULL, false), "
        "(2, 'x', 'y z ', 1.5, 1, '2020-02-02', '2020-02-02 10:00:00', NULL)"
    )
    connection.execute("INSERT INTO word VALUES ('public text of thirty letters.', 1), ('', 2), (NULL, 3)")


class _Writer:
    """Writes one statement; `pick` draws one of several texts."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.count = 0

    def pick(self, *options: str) -> str:
        return self.rng.choice(options)

    def alias(self) -> str:
        self.count += 1
        return f"t{self.count}"

    # --- expressions ----------------------------------------------------------------------------------------

    def text(self, row: str, depth: int = 2) -> str:
        """Return a text over the columns n, m and k of a level, named `row`."""
        if depth == 0:
            return self.pick(f"{row}.n", f"{row}.n", f"{row}.m", f"{row}.m", "'some text'")
        x, y, z = (self.text(row, depth - 1) for _ in range(3))
        pattern = self.pick(
            "concat({x}, {y}, {z})", "concat({x}, {x}, {x}, {y})", "({x} || {y})", "({x} || {x} || '-' || {x})",
            "lower({x})", "upper({x})", "upper(lower({x}))", "trim({x})", "ltrim({x})", "substr({x}, 2, 9)",
            "substr({x}, 3)", "left({x}, 7)", "right({x}, 5000)", "CASE WHEN {p} THEN {x} ELSE {y} END",
            "COALESCE({x}, {y})", "NULLIF({x}, {y})", "GREATEST({x}, {y})", "LEAST({x}, {y}, {z})",
            "CAST({k} AS text)", "CAST({x} AS text)", "concat({k}, {x})", "concat({k}, {k})", "{x}",
        )  # fmt: skip
        return pattern.format(
            x=x, y=y, z=z, k=f"{row}.k", p=self.predicate(row, 0) if "{p}" in pattern else ""
        )

    def predicate(self, row: str, depth: int = 1) -> str:
        """Return a predicate over a level."""
        pattern = self.pick(
            "{x} > 'a'", "{x} LIKE '%a%'", "{x} = {y}", "length({x}) > 30", "{x} IS NOT NULL",
            "position('a' in {x}) > 1", "{x} IN ('a', 'some text')", "({x} > 'a' OR {y} < 'b')",
        )  # fmt: skip
        return pattern.format(x=self.text(row, depth), y=self.text(row, depth))

    # --- levels ---------------------------------------------------------------------------------------------

    def base(self) -> str:
        """Return a level over the tables."""
        own = ("s.title", "s.body", "CAST(s.amount AS text)", "CAST(s.seen AS text)", "CAST(s.day AS text)",
               "upper(s.body)", "concat(s.body, s.title)", "CAST(s.flag AS text)", "'literal'")  # fmt: skip
        n, m = self.pick(*own), self.pick(*own)
        children = f"{self.pick('JOIN', 'LEFT JOIN')} story s ON s.person_id = p.id"
        number = self.pick("s.big", "s.amount", "s.big + 1", "length(s.title)", "length(s.body)")
        return self.pick(
            f"SELECT s.person_id AS u, {n} AS n, {m} AS m, {number} AS k FROM story s",
            f"SELECT s.person_id AS u, {n} AS n, {m} AS m, {number} AS k FROM story s WHERE s.flag",
            f"SELECT p.id AS u, p.name AS n, {n} AS m, p.age AS k FROM person p {children}",
            f"SELECT p.id AS u, {n} AS n, p.name AS m, {number} AS k FROM person p {children}",
            f"SELECT s.person_id AS u, {n} AS n, w.w AS m, w.n AS k FROM story s JOIN word w ON w.n > 0",
            "SELECT p.id AS u, p.name AS n, upper(p.name) AS m, p.age AS k FROM person p",
        )

    def level(self, depth: int) -> str:
        """Return a subquery with the columns u, n, m and k."""
        if depth == 0:
            return self.base()
        t, below = self.alias(), self.level(depth - 1)
        n, m = self.text(t), self.text(t, 1)
        from_ = f"FROM ({below}) {t}"
        over = f"OVER (PARTITION BY {t}.u ORDER BY {t}.k, {t}.n)"
        shape = self.pick(
            "plain",
            "plain",
            "group",
            "group",
            "key",
            "lag",
            "first",
            "union",
            "distinct",
            "join",
            "outer",
            "in",
        )
        if shape == "group":
            return (
                f"SELECT {t}.u, MAX({n}) AS n, MIN({m}) AS m, COUNT(DISTINCT {n}) AS k {from_} GROUP BY {t}.u"
            )
        if shape == "key":
            return f"SELECT {t}.u, {m} AS n, MAX({n}) AS m, COUNT(*) AS k {from_} GROUP BY {t}.u, {m}"
        if shape == "lag":
            return f"SELECT {t}.u, LAG({n}, 1, 'none') {over} AS n, {m} AS m, {t}.k {from_}"
        if shape == "first":
            return f"SELECT {t}.u, FIRST_VALUE({n}) {over} AS n, MAX({m}) {over} AS m, {t}.k {from_}"
        if shape == "union":
            return f"SELECT {t}.u, {n} AS n, {m} AS m, {t}.k {from_} UNION ALL {self.base()}"
        if shape == "distinct":
            return f"SELECT DISTINCT {t}.u, {n} AS n, {m} AS m, 1 AS k {from_}"
        if shape in ("join", "outer"):
            word = "JOIN" if shape == "join" else "LEFT JOIN"
            p = self.alias()
            return (
                f"SELECT {t}.u, concat({n}, {p}.name) AS n, COALESCE({p}.name, {m}) AS m, {t}.k {from_} "
                f"{word} person {p} ON {p}.id = {t}.u"
            )
        p = self.alias()
        exists = f"EXISTS (SELECT 1 FROM person {p} WHERE {p}.id = {t}.u AND concat({p}.name, {m}) > 'a')"
        return f"SELECT {t}.u, {n} AS n, {m} AS m, {t}.k {from_}{f' WHERE {exists}' if shape == 'in' else ''}"

    def statement(self) -> str:
        depth = self.rng.randint(0, 4)
        below, z = self.level(depth), "z"
        source = f"FROM ({below}) {z}"
        if self.rng.randint(0, 4) == 0:
            below, source = f"WITH z AS ({below}) ", "FROM z"
        else:
            below = ""
        where = f" WHERE {self.predicate(z)}" if self.rng.random() < 0.5 else ""
        carried = [self.text(z, 1) for _ in range(int(self.pick("2", "5", "40")))]
        named = ", ".join(f"{text} AS c{i}" for i, text in enumerate(carried))
        places = ", ".join(str(i + 1) for i in range(len(carried)))
        return below + self.pick(
            f"SELECT {named}, COUNT(*) {source}{where} GROUP BY {places}",
            f"SELECT COUNT(*) FROM (SELECT DISTINCT {z}.u, {named} {source}{where}) d WHERE d.c0 > 'a'",
            f"SELECT COUNT(*) {source} WHERE {self.predicate(z)}",
            f"SELECT {self.text(z)} AS t, COUNT(*) {source}{where} GROUP BY 1",
            f"SELECT COUNT(DISTINCT {self.text(z)}) {source}{where}",
            f"SELECT SUM(length(left({self.text(z)}, 40))) {source}{where}",
            f"SELECT COUNT(*) FILTER (WHERE {self.predicate(z)}) {source}{where}",
            f"SELECT COUNT({self.text(z)}) {source}{where}",
        )  # fmt: skip


@st.composite
def statements(draw: st.DrawFn) -> str:
    """A statement that makes texts of texts; some of them are refused."""
    return _Writer(draw(SEEDED)).statement()
