"""One hostile person, and the statements that this person's rows could make grow: what the job of limits asks.

The person is in one of two databases that are the same otherwise, with texts of megabytes in `note`, some 100,000 rows
with as many keys in `visit`, some 1,000 texts of a usual length in `line`, and numbers of 100,000 digits, where the
engine has them, in `bill`.
"""

from __future__ import annotations

from pathlib import Path

from ...policy import Policy, parse_policy

__all__ = ["HOSTILE", "STATEMENTS", "policy_of", "rows_of", "schema_of"]

HOSTILE = 1000
PEOPLE = 200
ROWS, TEXT, TEXTS, LINES = 300_000, 6_000_000, 2, 2_500
"""Rows and keys of the hostile person; characters of each long text; how many of these there are, and of texts of 1,000."""

_SCHEMA = """
CREATE TABLE person (id integer PRIMARY KEY, age integer);
CREATE TABLE visit (person_id integer, k bigint, code text, x double precision, n integer, seen timestamp);
CREATE TABLE note (person_id integer, n integer, t text);
CREATE TABLE line (person_id integer, t text);
CREATE TABLE bill (person_id integer, amount {number})
"""

_OTHERS = f"""
INSERT INTO person SELECT i, i % 90 FROM generate_series(1, {PEOPLE}) s(i);
INSERT INTO visit SELECT i % {PEOPLE} + 1, i % 7, 'c' || CAST(i % 7 AS text), i % 100, i % 10, TIMESTAMP '2024-01-01 00:00:00'
  FROM generate_series(1, {3 * PEOPLE}) s(i);
INSERT INTO note SELECT i % {PEOPLE} + 1, i % 5, 't' || CAST(i % 3 AS text) FROM generate_series(1, {2 * PEOPLE}) s(i);
INSERT INTO line SELECT i % {PEOPLE} + 1, 't' || CAST(i % 3 AS text) FROM generate_series(1, {PEOPLE}) s(i);
INSERT INTO bill SELECT i % {PEOPLE} + 1, i % 100 FROM generate_series(1, {2 * PEOPLE}) s(i)
"""

_HOSTILE = f"""
INSERT INTO person VALUES ({HOSTILE}, 40);
INSERT INTO visit SELECT {HOSTILE}, i, 'code ' || CAST(i AS text), i, i % 10, TIMESTAMP '2024-01-01 00:00:00'
  FROM generate_series(1, {ROWS}) s(i);
INSERT INTO note SELECT {HOSTILE}, 5, repeat('x', {TEXT}) || CAST(i AS text) FROM generate_series(1, {TEXTS}) s(i);
INSERT INTO line SELECT {HOSTILE}, CAST(i AS text) || repeat('y', 990) FROM generate_series(1, {LINES}) s(i);
INSERT INTO bill SELECT {HOSTILE}, {{huge}} FROM generate_series(1, 500) s(i)
"""

_NUMBERS = {
    "duckdb": ("DECIMAL(38, 4)", "CAST('9e33' AS DECIMAL(38, 4))"),
    "postgres": ("numeric", "CAST('1e100000' AS numeric)"),
}
"""Engine -> the type of exact numbers without bounds, and about its largest number."""

_POLICY = """
database = "{database}"
ledger = "sqlite:{folder}/ledger.db"
[privacy]
epsilon = 9999
delta = 0.9
[defaults]
epsilon = 1
delta = 1e-6
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 120] }}
[tables.visit]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 6
max_groups = 2
[tables.visit.columns]
person_id = {{}}
k = {{}}
code = {{}}
x = {{ bounds = [0, 100] }}
n = {{ bounds = [0, 9] }}
seen = {{}}
[tables.note]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 4
max_groups = 2
[tables.note.columns]
person_id = {{}}
n = {{ bounds = [0, 9] }}
t = {{}}
[tables.line]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 4
max_groups = 2
[tables.line.columns]
person_id = {{}}
t = {{}}
[tables.bill]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 4
[tables.bill.columns]
person_id = {{}}
amount = {{ bounds = [0, 1000] }}
"""


def schema_of(engine: str) -> str:
    """Return the statements that make the tables in an engine."""
    return _SCHEMA.format(number=_NUMBERS[engine][0])


def rows_of(engine: str, *, is_there: bool) -> str:
    """Return the statements that fill the tables, with the hostile person or without."""
    return _OTHERS + (";" + _HOSTILE.format(huge=_NUMBERS[engine][1]) if is_there else "")


def policy_of(database: str, folder: Path) -> Policy:
    """Return the policy over a database, with a ledger in a folder."""
    return parse_policy(_POLICY.format(database=database, folder=folder), folder / "dpsql.toml")


def _many(form: str, count: int, joined: str = ", ") -> str:
    return joined.join(form.format(i=i) for i in range(count))


def _copies(count: int) -> str:
    return _many("coalesce(t, '{i}') AS a{i}", count)


def _listed(count: int) -> str:
    return ", ".join(str(i + 1) for i in range(count))


_PAIRS = "visit a JOIN visit b ON b.person_id = a.person_id"
_PER_PERSON = "SELECT person_id, COUNT(*) AS c, SUM(n) AS s, MAX(code) AS m FROM visit GROUP BY person_id"

STATEMENTS = {
    # texts that are carried
    "190 keys of one text": f"SELECT {_copies(190)}, COUNT(*) FROM note GROUP BY {_listed(190)}",
    "DISTINCT of 190 parts": "SELECT COUNT(*) FROM (SELECT DISTINCT person_id, "
    f"{_many('substr(t, 1 + {i}) AS a{i}', 190)} FROM note) q",
    "MAX of 30 texts": "SELECT COUNT(*) FROM (SELECT person_id, " + _many("MAX(CASE WHEN n > {i} - 30 THEN t END) AS a{i}", 30)
    + " FROM note GROUP BY person_id) q WHERE " + _many("a{i} > 'a'", 30, " OR "),
    "LAG of 30 texts": "SELECT COUNT(*) FROM (SELECT "
    + _many("LAG(t, {i}) OVER (PARTITION BY person_id ORDER BY n) AS a{i}", 30)
    + " FROM note) q WHERE " + _many("a{i} > 'a'", 30, " OR "),
    "90 texts of a UNION": f"SELECT COUNT(*) FROM (SELECT DISTINCT * FROM (SELECT person_id, {_copies(90)} FROM note "
    f"UNION ALL SELECT person_id, {_copies(90)} FROM note) u) q",
    "40 keys of many texts": f"SELECT {_copies(40)}, COUNT(*) FROM line GROUP BY {_listed(40)}",
    # texts that are made, compared and counted
    "a key of texts": "SELECT t, COUNT(*) FROM note GROUP BY t",
    "texts joined": f"SELECT COUNT(*) FROM note WHERE concat({_many('t', 8)}) > 'a'",
    "letters of 30 texts": "SELECT COUNT(*) FROM note WHERE " + _many("upper(concat(t, '{i}')) > 'a'", 30, " OR "),
    "COUNT(DISTINCT text)": "SELECT COUNT(DISTINCT concat(t, t)) FROM note",
    "lengths of texts": "SELECT SUM(length(left(t, 9))) FROM note",
    # keys
    "found keys": "SELECT k, COUNT(*) FROM visit GROUP BY k",
    "found texts": "SELECT code, COUNT(*), SUM(n) FROM visit GROUP BY code",
    "two found keys": "SELECT k, code, COUNT(DISTINCT person_id) FROM visit GROUP BY k, code",
    "ROLLUP of found keys": "SELECT k, n, COUNT(*) FROM visit GROUP BY ROLLUP (k, n)",
    "medians of found keys": "SELECT k, MEDIAN(x) FROM visit GROUP BY k",
    "the largest groups": "SELECT k, COUNT(*) AS c FROM visit GROUP BY k ORDER BY c DESC LIMIT 5",
    "MODE": "SELECT MODE() WITHIN GROUP (ORDER BY n) FROM visit",
    "COUNT(DISTINCT key)": "SELECT COUNT(DISTINCT k) FROM visit",
    # rows
    "rows above R": "SELECT COUNT(*), SUM(x), AVG(n) FROM visit",
    "rows by a declared key": "SELECT n, COUNT(*), SUM(x) FROM visit GROUP BY n",
    "medians": "SELECT MEDIAN(x), MIN(n), MAX(x) FROM visit",
    "many fractions": f"SELECT {_many('PERCENTILE_CONT(0.{i}5) WITHIN GROUP (ORDER BY x)', 9)} FROM visit",
    "variances": "SELECT VAR_SAMP(x), STDDEV(n), CORR(x, n) FROM visit",
    "huge numbers": "SELECT SUM(amount), VAR_SAMP(amount), MEDIAN(amount) FROM bill",
    "UNION ALL": "SELECT COUNT(*) FROM (SELECT person_id, n FROM visit UNION ALL SELECT person_id, n FROM note "
    "UNION ALL SELECT person_id, n FROM visit) u",
    "DISTINCT rows": "SELECT COUNT(*) FROM (SELECT DISTINCT person_id, k, code FROM visit) q",
    # people
    "rows per person": f"SELECT COUNT(*) FROM ({_PER_PERSON}) q WHERE c > 3 AND s > 1 AND m > 'a'",
    "windows per person": "SELECT SUM(n), COUNT(*) FROM (SELECT n, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY k) "
    "AS r FROM visit) q WHERE r < 5",
    "running sums": "SELECT COUNT(*) FROM (SELECT SUM(n) OVER (PARTITION BY person_id ORDER BY k) AS r FROM visit) q "
    "WHERE r > 5",
    # joins
    "pairs of rows": f"SELECT COUNT(*) FROM {_PAIRS}",
    "pairs in order": f"SELECT SUM(a.n) FROM {_PAIRS} WHERE a.x > b.x",
    "rows beside texts": "SELECT COUNT(*) FROM note a JOIN visit b ON b.person_id = a.person_id WHERE a.t > b.code",
    "EXISTS in order": "SELECT COUNT(*) FROM visit a WHERE EXISTS (SELECT 1 FROM visit b "
    "WHERE b.person_id = a.person_id AND b.k > a.k)",
    "EXISTS of another": "SELECT COUNT(*) FROM visit a WHERE EXISTS (SELECT 1 FROM visit b "
    "WHERE b.person_id = a.person_id AND b.k <> a.k)",
    "rows with their person's": f"SELECT COUNT(*) FROM visit v JOIN ({_PER_PERSON}) q ON q.person_id = v.person_id "
    "WHERE q.c > 1",
}  # fmt: skip
"""Each way in which one person's rows could make a value, a step or an answer grow."""
