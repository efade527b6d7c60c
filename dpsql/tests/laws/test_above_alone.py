"""What stands above the release alone is refused over people's rows (L4, 1.10), each form by a rule that is needed.

Every mutant takes one rule out: some statement is then no longer refused as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dpsql.errors import Refusal
from dpsql.plan.measures import normal_form
from dpsql.plan.privacy import analyze
from dpsql.relation.aggregates import Asks

from .measured import World, world

Patch = pytest.MonkeyPatch
_PLACES = "(VALUES ('a', 1), ('b', 2)) AS c(city, size)"
_FRAMED = "SELECT SUM(x) FROM (SELECT person_id, SUM(n) OVER (PARTITION BY person_id ORDER BY n {}) AS x FROM visit) AS t"

REFUSED = {
    "PV001": [
        "SELECT array_agg(n) FROM visit", "SELECT string_agg(tag, ',') FROM visit", "SELECT bit_or(n) FROM visit",
        "SELECT any_value(n) FROM visit", "SELECT json_agg(n) FROM visit", "SELECT ARRAY(SELECT n FROM visit)",
    ],
    "PV202": [
        _FRAMED.format("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW"),
        "SELECT unnest(ARRAY[n]) FROM visit", "SELECT row_to_json(visit) FROM visit",
    ],
    "PV003": [
        "SELECT city FROM visit ORDER BY city FETCH FIRST 1 ROWS WITH TIES",
        "SELECT DISTINCT ON (city) city, n FROM visit",
        "WITH RECURSIVE r(n) AS (SELECT n FROM visit UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT COUNT(*) FROM r",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n + 1 FROM r JOIN visit AS v ON v.n = r.n) SELECT n FROM r",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT COUNT(*) FROM visit AS v "
        "WHERE v.n > (SELECT MAX(k.n) FROM r AS k))) SELECT n FROM r",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT COUNT(*) FROM visit AS v "
        "JOIN r AS k ON v.n = k.n)) SELECT n FROM r",
    ],
    "PV004": [
        f"SELECT c.city, (SELECT COUNT(*) FROM visit AS v WHERE v.n > c.size) FROM {_PLACES}",
        f"SELECT c.city, x.c FROM {_PLACES}, LATERAL (SELECT COUNT(*) AS c FROM visit AS v WHERE v.n > c.size) AS x",
        f"SELECT COUNT(*) FROM visit AS v, LATERAL (SELECT c.size FROM {_PLACES} WHERE c.size > v.n) AS x",
        "SELECT COUNT(*) FROM visit AS v, generate_series(1, v.n) AS g",
        f"SELECT c.city, (SELECT COUNT(*) FROM visit AS v JOIN (SELECT c.size AS s) AS k ON v.n = k.s) FROM {_PLACES}",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("above")) as made:
        yield made


def outcome(made: World, sql: str) -> str:
    """Return the code that a statement is refused with, or else what becomes of it."""
    try:
        made.plan(sql)
    except Refusal as refusal:
        return refusal.sqlstate
    except (AssertionError, KeyError):
        return "a bug's error"
    return "accepted"


@pytest.mark.parametrize(("code", "sql"), [(code, sql) for code, found in REFUSED.items() for sql in found])
def test_what_stands_above_alone_is_refused_over_peoples_rows(people: World, code: str, sql: str) -> None:
    assert outcome(people, sql) == code


_COUNTED = dict.fromkeys(Asks, normal_form._FORMS[Asks.COUNT])
"""A form for whatever an aggregate asks: a count where it has none of its own."""


class _Nothing:
    """A class that nothing is of."""


RULES: dict[str, Callable[[Patch], None]] = {
    "any aggregate is measured": lambda patch: patch.setattr(normal_form, "_FORMS", _COUNTED | normal_form._FORMS),
    "any frame is one of people's rows": lambda patch: patch.setattr(analyze, "checked", lambda call: call),
    "a part of a join or a recursion is whole": lambda patch: patch.setattr(analyze, "check_whole", lambda node: None),
    "the row around is one's own": lambda patch: patch.setattr(analyze, "Outer", _Nothing),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_needed(people: World, monkeypatch: Patch, rule: str) -> None:
    RULES[rule](monkeypatch)
    assert any(outcome(people, sql) != code for code, found in REFUSED.items() for sql in found)
