"""The world of `random_joins` behind views: its tables are hidden, and a view stands for each."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ...policy import Policy, parse_policy
from ...relation.catalog import Catalog
from .random_joins import policy_text

__all__ = ["DECLARED", "MADE", "MORE", "STANDING", "TEXTS", "view_policy", "with_names_of_tables"]

STANDING = {
    "person": "SELECT * FROM person WHERE age IS NULL OR age < 200",
    "account": "SELECT no, person_id, kind, balance, opened FROM account",
    "booking": "SELECT b.id, b.account_no, b.n, b.amount, b.x, b.big, b.city, b.seen, b.flag FROM booking b "
    "JOIN v_account a ON a.no = b.account_no WHERE b.n IS NULL OR b.n <> 100",
    "note": "SELECT person_id, ref, n + 0 AS n, x * 2 AS x, fine, tag, city, day, COALESCE(flag, FALSE) AS flag FROM note",
    "profile": "SELECT f.person_id, f.city, f.level, f.score FROM person p LEFT JOIN profile f ON f.person_id = p.id",
    "region": "SELECT name, weight, zone FROM region",
    "rate": "SELECT * FROM rate WHERE value IS NOT NULL",
    "tag": "SELECT tag, grp, n FROM tag",
}
"""The text of the view that stands for each table."""

MORE = {
    "per_person": "SELECT person_id, COUNT(*) AS notes, SUM(n) AS total FROM note GROUP BY person_id",
    "members": "SELECT person_id FROM account UNION ALL SELECT person_id FROM note",
    "nested": "SELECT p.team, b.n, b.account_no FROM v_booking b JOIN v_account a ON a.no = b.account_no "
    "JOIN v_person p ON p.id = a.person_id",
    "numbered": "SELECT person_id, n, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY ref, n, x, tag) AS place FROM note",
    "having_notes": "SELECT p.id, p.height FROM person p WHERE EXISTS (SELECT 1 FROM note n WHERE n.person_id = p.id)",
}
TEXTS = {**{f"v_{name}": text for name, text in STANDING.items()}, **MORE}
MADE = "".join(f"CREATE VIEW {name} AS {text};" for name, text in TEXTS.items())


DECLARED = """
[tables.v_note.columns]
city = { values = ["a", "b"] }
n = { bounds = [1, 3], values = [1, 2, 3] }
x = { bounds = [0, 2.5], step = 0.01 }
[tables.v_person.columns]
age = { bounds = [5, 60] }
[tables.per_person.columns]
notes = { bounds = [1, 2] }
total = { bounds = [0, 4] }
[tables.numbered.columns]
place = { values = [1, 2] }
"""
"""What is declared of columns that are a table's, and of computed ones (n, x, notes, total, place)."""


def view_policy(
    folder: Path, *, replace_one: bool = False, epsilon: str = "1", said: str = DECLARED
) -> Policy:
    """Return the policy of `random_joins` with its tables hidden, and the views."""
    hidden = re.sub(
        r"(\[tables\.\w+\]\n)",
        r"\1hidden = true\n",
        policy_text(replace_one=replace_one, rows=3, groups=2, epsilon=epsilon),
    )
    declared = "".join(f"[tables.{name}]\nview = true\n" for name in TEXTS)
    return parse_policy(hidden + declared + said, folder / "laws.toml")


def with_names_of_tables(catalog: Catalog) -> Catalog:
    """Return the catalog in which the views have the names of the tables that they stand for."""
    named = {name.removeprefix("v_"): view for name, view in catalog.views.items()}
    return replace(catalog, views={name: replace(view, name=name) for name, view in named.items()})
