"""Labels in a view's text, as Postgres keeps it: texts where they are compared for being equal, and nowhere else."""

from __future__ import annotations

import pytest

from dpsql.errors import Refusal
from dpsql.sql.statement import view_query

STATE = "public.state"

EQUAL = {
    "SELECT id FROM o WHERE (state = 'paid'::public.state);": "state = 'paid'",
    "SELECT id FROM o WHERE ((state <> 'paid'::public.state) AND (id > 3))": "state <> 'paid'",
    "SELECT id FROM o WHERE (state = ANY (ARRAY['open'::public.state, 'paid'::public.state]))": "'open', 'paid'",
    "SELECT id FROM o WHERE (state <> ALL (ARRAY['open'::public.state, 'paid'::public.state]))": "'open', 'paid'",
    "SELECT CASE state WHEN 'it''s'::public.state THEN 1 ELSE 0 END AS x FROM o": "'it''s'",
}


@pytest.mark.parametrize("text", EQUAL)
def test_a_label_is_its_text(text: str) -> None:
    query = view_query(text, "postgres", {STATE})
    assert "::" not in query.tree.sql("postgres")
    assert EQUAL[text] in query.tree.sql("postgres").replace("!=", "<>")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM o WHERE (state > 'paid'::public.state)",
        "SELECT id FROM o WHERE (state >= ANY (ARRAY['open'::public.state, 'paid'::public.state]))",
        "SELECT GREATEST(state, 'paid'::public.state) AS g FROM o",
        "SELECT CASE WHEN ('paid'::public.state < state) THEN 1 ELSE 0 END AS x FROM o",
        "SELECT id FROM o WHERE (state = 'paid'::public.state2)",
        "SELECT id FROM o WHERE (state = 'paid'::public.state[])",
        "SELECT id FROM o WHERE (state = 'paid'::other.state)",
    ],
)
def test_what_may_order_labels_or_is_of_another_type_is_refused(text: str) -> None:
    with pytest.raises(Refusal):
        view_query(text, "postgres", {STATE})
