"""What an engine has to spell: whatever a dialect forgets is an error when its class is made."""

from __future__ import annotations

import pytest

from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.dialects.dialect_duckdb import DUCKDB, DuckDBDialect
from dpsql.relation.facts import TEXT_CUT
from dpsql.relation.types import INTEGER, TEXT

SPELLED = {name: value for name, value in vars(DuckDBDialect).items() if not name.startswith("__")}


@pytest.mark.parametrize("forgotten", sorted({*Dialect.__annotations__, *Dialect.__abstractmethods__}))
def test_what_is_forgotten_is_an_error_at_once(forgotten: str) -> None:
    type("Whole", (Dialect,), SPELLED)
    with pytest.raises(TypeError, match=f"Part does not say: {forgotten}$"):
        type("Part", (Dialect,), {name: value for name, value in SPELLED.items() if name != forgotten})


@pytest.mark.parametrize("forgotten", sorted(DUCKDB.forms))
def test_so_is_a_piece_of_sql_that_it_forgets(forgotten: str) -> None:
    left = {name: form for name, form in DUCKDB.forms.items() if name != forgotten}
    with pytest.raises(TypeError, match=f"Part does not say: {forgotten}$"):
        type("Part", (Dialect,), {**SPELLED, "forms": left})


def test_of_a_long_text_the_beginning_is_hashed() -> None:
    assert f", {TEXT_CUT})" in DUCKDB.hash_text("k0", TEXT)
    assert str(TEXT_CUT) not in DUCKDB.hash_text("k0", INTEGER)
