"""V17, whole periods (soundness.md 5.6): for each premise a text, or a charge, that lacks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.tests.laws.periods import ONE, SOME, plan_at, shops
from dpsql.verify.certificate import Certificate, Reach, Release

Change = Callable[[Release], Release]
MONTHS = f"SELECT SUM(amount) FROM orders WHERE {SOME}"
MONTH = f"SELECT SUM(amount) FROM orders WHERE {ONE}"
CITY = f"SELECT u.city, COUNT(*) FROM orders o JOIN users u ON u.id = o.user_id WHERE {SOME} GROUP BY u.city"
CITY_OF_MONTH = CITY.replace(SOME, ONE)
LEFT = "SELECT u.city, COUNT(*) FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.city"
BESIDE = "SELECT u.city, COUNT(*) FROM users u JOIN ({}) t ON t.user_id = u.id GROUP BY u.city"
PER_PERSON = BESIDE.format(f"SELECT user_id, COUNT(*) AS n FROM orders WHERE {ONE} GROUP BY user_id").replace(
    "COUNT(*) FROM users", "SUM(n) FROM users"
)
OF_BOTH = BESIDE.format(
    f"SELECT user_id FROM orders WHERE {ONE} UNION ALL SELECT user_id FROM visits WHERE {ONE.replace('bought', 'day')}"
)
RUNNING = BESIDE.format(
    f"SELECT user_id, SUM(amount) OVER (PARTITION BY user_id ORDER BY bought) AS k FROM orders WHERE {ONE}"
).replace("GROUP BY", "WHERE k > 1 GROUP BY")
ITEMS = f"SELECT SUM(i.n) FROM items i JOIN orders o ON o.id = i.order_id WHERE {SOME}"


def certified(folder: Path, sql: str) -> Certificate:
    with shops(folder) as made:
        planned = plan_at(made, sql)
        with made.backend.snapshot() as snapshot:
            return certificate_of(planned.releases, read_facts(snapshot, made.policy, lambda *_: None))


def text(*pieces: tuple[str, str]) -> Change:
    """Return what replaces pieces of all texts; each is in one of them at least."""

    def change(release: Release) -> Release:
        queries = release.queries
        for old, new in pieces:
            assert any(old in query.sql for query in queries), old
            queries = tuple(replace(query, sql=query.sql.replace(old, new)) for query in queries)
        return replace(release, queries=queries)

    return change


def charge(**parts: object) -> Change:
    """Return what changes whose data is charged."""

    def change(release: Release) -> Release:
        assert isinstance(release.reach, Reach)
        return replace(release, reach=replace(release.reach, **parts))  # type: ignore[arg-type]

    return change


END, MIDDLE = "TIMESTAMP '2026-04-01 00:00:00'", "TIMESTAMP '2026-04-01 00:00:01'"
SCAN = """(SELECT s."id", s."user_id", s."bought", s."amount", s."kind" FROM "main"."orders" AS s WHERE"""
FORM, CHARGED, JOINED = (
    "periods: a scan has its form",
    "periods: what is read is charged",
    "periods: undated rows are joined to timed ones",
)
AMOUNTS = f"SELECT SUM(o.amount) FROM orders o JOIN users u ON u.id = o.user_id WHERE {ONE}"
AMOUNT = """t0."amount" AS v0"""
ALONE = (""" CROSS JOIN "main"."users" AS t1 WHERE (t1."id" = t0."user_id") AND""", " WHERE")
BOTH = f"""main.users AS x CROSS JOIN {SCAN} s."bought" >= TIMESTAMP '2026-02-01 00:00:00' AND s."bought" < TIMESTAMP '2026-03-01 00:00:00') AS y WHERE (x."id" = y."user_id")"""
NAMED = ("WITH r AS", f"""WITH q AS (SELECT x."id" AS c0 FROM {BOTH} GROUP BY x."id"), r AS""")
"""Of a month's rows the amounts; of people alone who have rows of it, in a subquery: whose undated row then is not that
of the row beside which it is read, and leaves another amount where it goes."""
FAULTS: list[tuple[str, Change, str]] = [
    (MONTHS, text((f""" AND s."bought" < {END}""", "")), FORM),
    (MONTHS, text((f"""s."bought" < {END}""", f"""s."bought" < {MIDDLE}""")), FORM),
    (MONTHS, text((f"""s."bought" < {END}""", f"""s."bought" <= {END}""")), FORM),
    (MONTHS, text((f"""s."bought" < {END}""", f"""s."id" < {END}""")), FORM),
    (MONTHS, text((f"""s."bought" < {END}""", f"""COALESCE(s."bought", {END}) < {END}""")), FORM),
    (MONTHS, text((f"""s."bought" < {END}""", f"""s."bought" < {END} OR s."amount" > 3""")), FORM),
    (MONTHS, text((f"""s."bought" < {END}""", """s."bought" < DATE '2026-04-01'""")), FORM),
    (MONTHS, text((f"""s."bought" < {END}""", """s."bought" < TIMESTAMP '2026-05-01 00:00:00'""")), CHARGED),
    (MONTHS, charge(runs=((24312, 24313),)), CHARGED),
    (MONTHS, text((" THEN 24312", " THEN 24313")), "periods: a row's period is its number"),
    (MONTHS, charge(by="one"), "periods: all rows are of one period"),
    (MONTHS, lambda release: replace(release, reach=None), "periods: a charge says whose, where there are periods"),
    (MONTH, text((SCAN, """(SELECT s."id", s."user_id", s."bought", s."amount", s."kind" FROM "main"."orders" AS s CROSS JOIN "main"."users" AS w0 WHERE""")), FORM),
    (MONTH, text((""" AS s WHERE""", """ AS q WHERE"""), ("s.\"", "q.\"")), "periods: a table with a time is read in whole periods"),
    (ITEMS, text(("""(s."order_id" = w0."id")""", """(s."n" = w0."id")""")), FORM),
    (ITEMS, text((""" AND ((w0."bought" >=""", """ AND ((s."n" >=""")), FORM),
    (CITY, text(("""t1."id" = t0."user_id\"""", """t1."age" = t0."user_id\"""")), JOINED),
    (CITY, charge(by="person"), "periods: undated rows are charged"),
    (CITY_OF_MONTH, text((" CROSS JOIN \"main\".\"users\" AS t1 WHERE", " LEFT JOIN \"main\".\"users\" AS t1 ON TRUE WHERE")), JOINED),
    (PER_PERSON, text((" GROUP BY t2.\"user_id\"", ""), ("t2.\"user_id\" AS", "MAX(t2.\"user_id\") AS")), "relations: GROUP BY has the owner"),
    (AMOUNTS, text(ALONE, (AMOUNT, f"COALESCE((SELECT MAX(y.\"amount\") FROM {BOTH} AND (y.\"user_id\" = t0.\"user_id\")), -3) AS v0")), JOINED),
    (AMOUNTS, text(NAMED, ALONE, (AMOUNT, "CASE WHEN EXISTS (SELECT 1 FROM q WHERE q.c0 = t0.\"user_id\") THEN 4 ELSE -3 END AS v0")), JOINED),
    (AMOUNTS, text(NAMED, (" CROSS JOIN \"main\".\"users\" AS t1 WHERE (t1.\"id\" = t0.\"user_id\") AND", " LEFT JOIN q AS t1 ON (t1.c0 = t0.\"user_id\") WHERE"), (AMOUNT, "CASE WHEN t1.c0 IS NULL THEN -3 ELSE 4 END AS v0")), JOINED),
    (OF_BOTH, text((" UNION ALL ", " UNION ALL SELECT 1 AS c0 UNION ALL ")), JOINED),
    (LEFT, charge(undated=False), "periods: undated rows are charged"),
    (LEFT, charge(by="pair"), JOINED),
]  # fmt: skip


@pytest.mark.parametrize(
    "sql", [MONTHS, MONTH, CITY, CITY_OF_MONTH, LEFT, ITEMS, PER_PERSON, OF_BOTH, RUNNING]
)
def test_what_has_all_premises_is_verified(tmp_path: Path, sql: str) -> None:
    assert rule_against(certified(tmp_path, sql)) == ""


@pytest.mark.parametrize(("sql", "change", "rule"), FAULTS, ids=range(len(FAULTS)))
def test_what_lacks_a_premise_is_not(tmp_path: Path, sql: str, change: Change, rule: str) -> None:
    whole = certified(tmp_path, sql)
    assert rule_against(replace(whole, releases=tuple(map(change, whole.releases)))) == rule
